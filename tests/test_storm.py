"""kill -9 before drawn writes, an end in good order, a long life in one process, one table twice."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import forked, soak
from tests.films import endless
from tests.servers import Reply, scripted_server
from tests.storm import SCENARIOS, Storm
from workbench.parts.evaluate.answers import ask_all
from workbench.parts.evaluate.questions import read_rows
from workbench.records.tape import canonical
from workbench.session import Workbench

KILLS, RUNS, SEED = (int(os.environ.get(name, value)) for name, value in (("KILLS", 60), ("RUNS", 100), ("SEED", 1)))
FEW = {"recommendation, reviewed": 2, "comparison, every wave": 2, "kb add, a change": 2, "gc": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kills"),
    [*FEW.items(), *(pytest.param(name, -(-KILLS // len(SCENARIOS)), marks=pytest.mark.full) for name in SCENARIOS)],
)
def test_kills_lose_double_repeat_and_change_nothing(tmp_path: Path, name: str, kills: int) -> None:
    with scripted_server(
        Reply(["Christopher ", "Nolan ", "directed ", "Memento", " [1]", "."], delay_s=0.02)
    ) as server:
        model = {"chat_model": "openai:scripted", "chat_base_url": server.url} if name == "streamed" else {}
        assert Storm(SCENARIOS[name], tmp_path / "storm", SEED, model).trials(kills) == []


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
    command = [sys.executable, "-c", LEFT, workspace, "喜宴哪一年上映？"]
    left = forked.run(command, capture_output=True, text=True, timeout=60)
    assert left.returncode == 0 and not left.stderr, left.stderr
    with Workbench.open(workspace) as wb:
        run = wb.run(left.stdout.strip())
        assert (run.status, run.error) == ("interrupted", None)
        assert "slow" not in {record["tool"] for record in run.records}


@pytest.mark.full
def test_what_a_process_holds_is_flat(wb):
    endless(wb)
    dice = random.Random(SEED)
    kinds = [*soak.KINDS, *dice.choices(list(soak.KINDS), list(soak.KINDS.values()), k=max(RUNS, 30))]
    ended = Counter[tuple[str, str]]()

    def work(number: int) -> None:
        ended[kinds[number], soak.mixed(wb, kinds[number], number, dice)] += 1

    for number in range(30):  # a pool makes its last threads, each with its connections, when it first needs them
        work(number)
    before = dict(soak.held(wb.path))
    grown, after = soak.growing(wb.path, work, RUNS), dict(soak.held(wb.path))
    for name in ("threads", "handles", "sockets"):
        assert after[name] <= before[name] + 5, (name, before, after)
    assert {kind for kind, _ in ended} == set(soak.KINDS) and len(wb._work._live) <= 60
    assert RUNS < 1000 or grown == []


def test_what_leaves_nothing_is_forgotten_in_time(wb, monkeypatch):
    monkeypatch.setattr("workbench.runs.work.RUNS_IN_MEMORY", 5)
    first = wb.ask("Hello!", incognito=True)
    for number in range(8):
        soak.mixed(wb, "incognito", number, random.Random(number)) if number < 2 else wb.ask("Hello!", incognito=True)
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
