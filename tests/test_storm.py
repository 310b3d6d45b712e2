"""kill -9 in a wave and at drawn moments, a long life in one process, one table twice: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import forked, soak
from tests.counting import endless
from tests.storm.scenarios import ADDINGS, KEEPINGS, QUESTIONS, TALKS
from tests.storm.storm import Storm
from workbench.parts.evaluate.answers import ask_all
from workbench.parts.evaluate.questions import read_rows
from workbench.plans import Plan, PlanStep
from workbench.records.tape import canonical
from workbench.session import Workbench

QUESTION = "喜宴哪一年上映？"


def prepare(wb: Workbench, calls: Path, slow_s: float) -> None:
    """Tools that note each call in a file, and a plan of a wave of three and a step behind one of them."""

    def tool(name: str, seconds: float) -> None:
        @wb.tools.tool(name=name, description="notes the call")
        async def work(query: str) -> list[str]:
            import asyncio

            with calls.open("a") as file:
                file.write(f"{name}\n")
            await asyncio.sleep(seconds)
            return [f"《喜宴》于 1993 年上映。{query}"]

    tool("quick", 0.05)
    tool("slow", slow_s)

    def step(step_id: str, tool: str, *depends_on: str) -> PlanStep:
        return PlanStep(
            step_id=step_id, objective="", tool=tool, tool_input={"query": step_id}, depends_on=list(depends_on)
        )

    @wb.register("planner")
    async def wave(query, decision, knowledge, tools) -> Plan:
        return Plan(steps=[step("s0", "quick"), step("s1", "slow"), step("s2", "quick"), step("s3", "quick", "s0")])


def start_and_tell(folder: str, calls: str) -> None:
    """The process that is killed: prints the run's id, then each step that is finished and durable."""
    with Workbench.open(folder) as wb:
        prepare(wb, Path(calls), 60)
        run = wb.start(QUESTION, kb="film", review={"reflect"})
        print(run.run_id, flush=True)
        for event in run.events():
            if "retrieval_step_done" in event:
                print(event["retrieval_step_done"]["step_id"], flush=True)


@pytest.fixture
def undisturbed(workspace, tmp_path) -> bytes:
    with Workbench.open(workspace) as wb:
        prepare(wb, tmp_path / "other-calls", 0)
        run = wb.ask(QUESTION, kb="film", review={"reflect"})
        run.approve()
        return canonical(run.to_dict())


def test_killed_in_a_wave(workspace, tmp_path, undisturbed):
    calls = tmp_path / "calls"
    code = "import sys; from tests.test_storm import start_and_tell; start_and_tell(*sys.argv[1:])"
    command, project = [sys.executable, "-c", code, str(workspace), str(calls)], Path(__file__).parent.parent
    process = forked.Popen(command, stdout=subprocess.PIPE, text=True, cwd=project)
    run_id = process.stdout.readline().strip()
    finished = {process.stdout.readline().strip(), process.stdout.readline().strip()}
    process.kill()
    process.wait()
    process.stdout.close()
    assert finished == {"s0", "s2"}

    with Workbench.open(workspace) as wb:
        prepare(wb, calls, 0)
        run = wb.run(run_id)
        assert run.status == "interrupted"
        run.resume()
        assert run.status == "paused" and run.review["point"] == "reflect"
        assert Counter(calls.read_text().split()) == {"quick": 3, "slow": 2}, "only the unfinished step ran again"
        run.approve()
        assert run.status == "done"
        assert canonical(run.to_dict()) == undisturbed
        assert len(run.records) == len({(r["step_id"], r["attempt"]) for r in run.records})
        assert Counter(entry["node"] for entry in run.log)["executor"] == 4


LEFT = """
import asyncio, atexit, sys, threading, time
from workbench import Workbench

wb, begun = Workbench.open(sys.argv[1]), threading.Event()

@wb.tools.tool(intents={"qa"})
async def slow(query: str) -> list[str]:
    "Ends only when its names are gone."
    begun.set()
    while True:
        await asyncio.sleep(0.01)

print(wb.start(sys.argv[2], kb="film").run_id)
begun.wait()

@atexit.register  # as IPython does with a notebook's names
def emptied(names=globals(), wait=time.sleep):
    names.clear()
    wait(0.5)
"""


def test_left_while_a_step_runs(workspace):
    """A process that ends in good order, as a kernel that is restarted, leaves a run that can go on."""
    left = forked.run([sys.executable, "-c", LEFT, workspace, QUESTION], capture_output=True, text=True, timeout=60)
    assert left.returncode == 0 and not left.stderr, left.stderr
    with Workbench.open(workspace) as wb:
        run = wb.run(left.stdout.strip())
        assert (run.status, run.error) == ("interrupted", None)
        assert "slow" not in {record["tool"] for record in run.records}


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, pytest.param(30, marks=pytest.mark.full)])
def test_nothing_is_lost_doubled_repeated_or_answered_otherwise(film_index, tmp_path, count):
    every = tuple(scenario.name for scenario in (*QUESTIONS, *ADDINGS))
    only = every if count == 30 else (QUESTIONS[2].name, ADDINGS[1].name)
    with Storm(tmp_path, seed=20, only=only, knowledge=film_index / "knowledge") as storm:
        outcomes = list(storm.trials(kills=count, workers=2))
    kills = [kill for outcome in outcomes for kill in outcome.kills]
    assert [f"{outcome.scenario}, {outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []
    assert len(kills) >= count
    if count == 30:
        assert {kind for kind, _, _ in kills} == {"write", "event", "time"}
        assert len({name for _, _, name in kills}) >= 5


@pytest.mark.full
def test_of_200_turns_under_kills_every_message_episode_and_note_is_there_once(tmp_path):
    with Storm(tmp_path, seed=3, only=TALKS[0].name) as storm:
        outcomes = list(storm.trials(kills=8, workers=1))
    assert [f"{outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []
    assert sum(len(outcome.kills) for outcome in outcomes) >= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("only", "kills"),
    [(KEEPINGS[0].name, 2), *(pytest.param(scenario.name, 8, marks=pytest.mark.full) for scenario in KEEPINGS)],
)
def test_a_killed_gc_or_removal_loses_nothing_and_the_next_ones_leave_nothing_of_it(tmp_path, only, kills):
    with Storm(tmp_path, seed=5, only=only) as storm:
        outcomes = list(storm.trials(kills, workers=2))
    assert [f"{outcome.scenario}, {outcome.moments}: {fault}" for outcome in outcomes for fault in outcome.faults] == []


@pytest.mark.full
def test_threads_handles_and_sockets_stay(wb):
    endless(wb)
    soak.soak(wb, 16, 16, 1, lambda line: None)
    before = dict(soak.held(wb.path))
    curves, ended = soak.soak(wb, 60, 20, 2, lambda line: None)
    after = dict(soak.held(wb.path))
    for name in ("threads", "handles", "sockets"):
        # A pool makes its last threads, each with its connections, when it first needs them; a leak is one a run.
        assert after[name] <= before[name] + 5, (name, before, after)
    assert {kind for kind, _ in ended} == set(soak.KINDS) and ended["plain", "done"] > 20
    assert len(wb._work._live) <= 60 and {curve.name for curve in curves} >= set(soak.BOUNDS)


def test_what_leaves_nothing_is_forgotten_in_time(wb, monkeypatch):
    monkeypatch.setattr("workbench.runs.workers.RUNS_IN_MEMORY", 5)
    first = wb.ask("Hello!", incognito=True)
    for number in range(8):
        soak.one(wb, "incognito", number, random.Random(number)) if number < 2 else wb.ask("Hello!", incognito=True)
    private = wb._work._private
    wb._work.loop.settle(10)
    assert len(private.runs.ids(1000)) <= 7 and not private.runs.has(first.run_id)
    threads = private.saver.conn.execute("SELECT count(DISTINCT thread_id) FROM checkpoints")
    assert threads.fetchone()[0] <= 7


PROJECT = Path(__file__).resolve().parent.parent


def print_answers(folder: str, every: str) -> None:
    """Index the films, ask every nth question of the table, and print the canonical bytes of each run."""
    with Workbench.open(folder) as wb:
        wb.add_knowledge("film", [PROJECT / "data" / "films.jsonl"])
        rows = read_rows(PROJECT / "experiments" / "film_questions.jsonl", "id", "question")[:: int(every)]
        for row, run in zip(rows, ask_all(wb, rows, kb="film"), strict=True):
            document = {**run.to_dict(), "evidence": run.evidence, "merged": run.state.get("merged")}
            print(json.dumps([row["id"], canonical(document).decode()], ensure_ascii=False), flush=True)


@pytest.mark.full
def test_a_fifth_of_the_table_twice(project: Path, tmp_path: Path) -> None:
    def begin(seed: str) -> subprocess.Popen[str]:
        code = "import sys; from tests.test_storm import print_answers; print_answers(*sys.argv[1:])"
        own, pipes = {**os.environ, "PYTHONHASHSEED": seed}, {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-c", code, str(tmp_path / seed), "5"]
        return subprocess.Popen(command, cwd=project, env=own, text=True, **pipes)

    answers = []
    for process in [begin("1"), begin("2024")]:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err[-2000:]
        answers.append(dict(json.loads(line) for line in out.splitlines()))
    one, two = answers
    assert len(one) >= 30 and list(one) == list(two)
    assert [name for name in one if one[name] != two[name]] == []
