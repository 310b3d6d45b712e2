"""Two processes at one run: what each of them sees of it, who may go on, whose answer counts, and who can stop it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest

from tests import forked
from tests.counting import endless
from workbench.errors import NotPaused, RunError, WorkbenchError, WorkspaceBusy
from workbench.parts.memory.service import find_store
from workbench.records.store import RunStore
from workbench.records.tape import canonical
from workbench.session import Workbench

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "喜宴哪一年上映？"
COMMAND = [sys.executable, "-c", "from workbench.cli import main; main()"]


class Other:
    """A process with the workspace open that does what it is told."""

    def __init__(self, workspace: Path):
        code = "import sys; from tests.test_two_at_once import obey; obey(*sys.argv[1:])"
        with Listener(family="AF_UNIX") as listener:
            self.process = forked.Popen([sys.executable, "-c", code, workspace, listener.address], cwd=ROOT)
            self.pipe = listener.accept()
        assert self.heard() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, what: str, *words: str) -> None:
        self.pipe.send([what, *words])

    def heard(self):
        return self.pipe.recv()

    def do(self, what: str, *words: str):
        self.tell(what, *words)
        return self.heard()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def obey(workspace: str, address: str) -> None:
    """What ``Other`` runs."""
    pipe = Client(address)
    with Workbench.open(workspace, time_budget_s=600) as wb:  # so that what is endless is
        endless(wb)
        wb.ports()
        doing = {
            "ask": lambda review: wb.ask(QUESTION, kb="film", review=review or None).run_id,
            "slow": lambda: started(wb),
            "status": lambda run_id: [wb.run(run_id).status, wb.run(run_id).to_dict()["holder"]],
            "approve": lambda run_id, note: wb.run(run_id).approve(note).status,
            "respond": lambda run_id, words: wb.run(run_id).respond(words).status,
            "resume": lambda run_id: wb.run(run_id).resume(wait=False).status,
            "cancel": lambda run_id: wb.run(run_id).cancel().status,
            "wait": lambda run_id: wb.run(run_id).wait(60).status,
            "say": lambda name, count: [wb.ask(f"{name} {n} hello", session=name).run_id for n in range(count)],
        }
        pipe.send("ready")
        while True:
            what, *words = pipe.recv()
            try:
                pipe.send(doing[what](*words))
            except WorkbenchError as error:
                pipe.send({"refused": f"{type(error).__name__}: {error}"})


def started(wb: Workbench) -> str:
    """A run that is in the middle of its endless step."""
    run = wb.start(f"SLOW {QUESTION}", kb="film")
    next(event for event in run.events() if "retrieval_step_start" in event)
    return run.run_id


@pytest.fixture
def other(workspace: Path) -> Iterator[Callable[[], Other]]:
    begun: list[Other] = []

    def begin() -> Other:
        begun.append(Other(workspace))
        return begun[-1]

    yield begin
    for one in begun:
        one.kill()


def decisions(workspace: Path, run_id: str) -> list[dict]:
    store = RunStore(workspace / "workbench.db")
    try:
        return store.decisions(run_id)
    finally:
        store.close()


def test_a_run_is_seen_from_another_process(workspace, wb, other):
    them = other()
    run = wb.run(them.do("slow"))
    assert run.status == "running" and f"process {them.pid} on " in run.to_dict()["holder"]
    assert f"process {them.pid} on " in str(run)
    for refused in (lambda: run.resume(), lambda: wb.runs.remove(run.run_id)):
        with pytest.raises((WorkspaceBusy, RunError), match=f"process {them.pid} on|is running"):
            refused()
    with pytest.raises(NotPaused, match=f"is running: it waits for no answer. It is worked on by process {them.pid}"):
        run.approve()
    paused = wb.run(them.do("ask", "reflect"))
    assert paused.status == "paused" and paused.to_dict()["holder"] is None and paused.review["point"] == "reflect"
    them.kill()
    assert (run.status, run.to_dict()["holder"]) == ("interrupted", None), "at once"
    assert paused.approve().status == "done"
    endless(wb)
    run.resume(wait=False)
    assert run.status == "running" and f"process {os.getpid()} on" in run.to_dict()["holder"]
    assert run.cancel().status == "cancelled"
    with pytest.raises(RunError, match="was cancelled"):
        run.resume()


def test_the_command_line_says_who_works_on_a_run_and_stops_it(workspace, other):
    them = other()
    run_id = them.do("slow")

    def cli(*words: str) -> subprocess.CompletedProcess[str]:
        return forked.run([*COMMAND, *words, "--workspace", str(workspace)], capture_output=True, text=True, cwd=ROOT)

    holder = f"process {them.pid} on "
    assert holder in cli("runs").stdout and holder in cli("show", run_id).stdout
    assert json.loads(cli("runs", "--json").stdout)["runs"][0]["holder"].startswith(holder)
    for words in (["resume", run_id], ["resume", run_id, "--approve"]):
        refused = cli(*words)
        assert refused.returncode == 1 and holder in refused.stderr and refused.stderr.count("\n") == 1
    began = time.monotonic()
    stopped = cli("cancel", run_id, "--json")
    assert stopped.returncode == 0, stopped.stderr
    assert json.loads(stopped.stdout)["runs"][0]["status"] == "cancelled"
    assert them.do("status", run_id) == ["cancelled", None]
    assert them.do("wait", run_id) == "cancelled" and time.monotonic() - began < 30
    assert cli("cancel", "nothing").returncode == 1


def test_cancelling_a_paused_run_and_one_whose_process_died(wb, other):
    them = other()
    paused, lost = wb.run(them.do("ask", "plan")), wb.run(them.do("slow"))
    assert paused.cancel().status == "cancelled"
    assert "cancelled" in them.do("approve", paused.run_id, "")["refused"]
    them.kill()
    assert lost.cancel().status == "cancelled" and wb.runs.lines(1)[0]["ended_at"]
    done = wb.ask(QUESTION, kb="film")
    assert done.cancel().status == "done" and done.answer


@pytest.mark.parametrize("rounds", [2, pytest.param(12, marks=pytest.mark.full)])
def test_one_answer_counts_when_two_processes_give_one(workspace, wb, other, rounds):
    one, two = other(), other()
    for _ in range(rounds):
        run = wb.ask(QUESTION, kb="film", review="reflect", session=str(time.monotonic_ns()))
        assert run.status == "paused"
        for number, them in enumerate((one, two)):
            them.tell("approve", run.run_id, f"answer {number}")
        said = [one.heard(), two.heard()]
        [refused] = [told["refused"] for told in said if told != "done"]
        assert refused.startswith(("NotPaused", "WorkspaceBusy"))
        assert "worked on by process" in refused or "done" in refused
        [kept] = decisions(workspace, run.run_id)
        assert kept["note"] == f"answer {said.index('done')}" and run.decisions == [kept] and run.status == "done"
        messages = find_store(wb).list_messages(run.row["conversation_id"])
        assert [m["role"] for m in messages] == ["user", "assistant"]


@pytest.mark.parametrize("rounds", [2, pytest.param(6, marks=pytest.mark.full)])
def test_one_answer_counts_when_two_threads_give_one(wb, rounds):
    for _ in range(rounds):
        run = wb.ask(QUESTION, kb="film", review="reflect", session=str(time.monotonic_ns()))
        barrier, said = threading.Barrier(4), list[str]()

        def answer(number: int, run=run, barrier=barrier, said=said) -> None:
            barrier.wait()
            try:
                said.append(wb.run(run.run_id).approve(f"answer {number}").status)
            except (NotPaused, WorkspaceBusy) as refused:
                said.append(type(refused).__name__)

        threads = [threading.Thread(target=answer, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(said)["done"] == 1, said
        assert len(run.decisions) == 1 and Counter(entry["node"] for entry in run.log)["generate"] == 1


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.full)])
def test_one_process_goes_on_with_an_interrupted_run(workspace, wb, other, rounds):
    dead, one, two = other(), other(), other()
    for _ in range(rounds):
        run_id = dead.do("slow")
        dead.kill()
        one.tell("resume", run_id)
        two.tell("resume", run_id)
        said = [one.heard(), two.heard()]
        assert said.count("running") == 1, said
        refused = next(told for told in said if told != "running")["refused"]
        winner = (one, two)[said.index("running")]
        assert refused.startswith(("WorkspaceBusy", "NotPaused")) and f"process {winner.pid} on" in refused, said
        assert winner.do("cancel", run_id) == "cancelled"
        dead = other() if rounds > 1 else dead


def test_the_recorded_answer_goes_on_and_another_is_refused(workspace, wb, other):
    """The process dies after it kept the answer, and before the checkpoint of it."""
    undisturbed = wb.ask(QUESTION, kb="film", review="reflect", session="a")
    code = f"""
import os, sys
from workbench.records.store import RunStore
from workbench.session import Workbench
save = RunStore.save_decision
def save_and_die(self, *given):
    save(self, *given)
    os._exit(9)
RunStore.save_decision = save_and_die
with Workbench.open(sys.argv[1]) as wb:
    run = wb.ask({QUESTION!r}, kb="film", review="reflect", session=sys.argv[2])
    print(run.run_id, flush=True)
    run.approve("because")
"""
    runs = []
    for session in ("b", "c"):
        died = forked.run(
            [sys.executable, "-c", code, str(workspace), session], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert died.returncode == 9
        runs.append(wb.run(died.stdout.strip()))
    for run in runs:
        assert run.status == "interrupted" and run.review is None and len(run.decisions) == 1
        with pytest.raises(NotPaused, match="interrupted"):
            run.reject()
        with pytest.raises(NotPaused, match="interrupted"):
            run.respond("something else")
    assert runs[0].resume().status == "done", "resume alone"
    assert runs[1].approve("again").status == "done", "the recorded answer again"
    undisturbed.approve("because")
    for run in runs:
        assert [d["note"] for d in run.decisions] == ["because"]
        assert canonical(run.to_dict()) == canonical(undisturbed.to_dict())
        with pytest.raises(NotPaused, match="is done"):
            run.approve()


@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.full)])
def test_two_sessions_and_two_runs_or_processes_in_one_keep_their_order(wb, other, count):
    one, two = other(), other()
    for them, mine in ((one, "A"), (two, "B")):
        them.tell("say", mine, count)
    shared = [threading.Thread(target=lambda n=n: wb.ask(f"shared {n} hello", session="S")) for n in range(count)]
    for thread in shared:
        thread.start()
    for thread in shared:
        thread.join()
    for them in (one, two):
        assert len(them.heard()) == count
    store = find_store(wb)
    for session in "AB":
        messages = store.list_messages(store.get_or_create_conversation_id("default", session))
        assert [m["role"] for m in messages] == ["user", "assistant"] * count
        assert [m["content"] for m in messages[::2]] == [f"{session} {n} hello" for n in range(count)]
    messages = store.list_messages(store.get_or_create_conversation_id("default", "S"))
    assert Counter(m["role"] for m in messages) == {"user": count, "assistant": count}
    assert sorted(m["content"] for m in messages if m["role"] == "user") == [f"shared {n} hello" for n in range(count)]
    for run in wb.runs.list(session_id="S"):
        place = {(m["debug"] or {}).get("run_id"): i for i, m in enumerate(messages) if m["role"] == "assistant"}
        asked = next(i for i, m in enumerate(messages) if m["content"] == run.message)
        assert asked < place[run.run_id], "an answer stands after its question"
        before = [m["content"] for m in messages[:asked]]
        assert [h["content"] for h in run.state["history"]] == before[-len(run.state["history"]) :] or not before
    for them in (one, two):
        them.tell("say", "both", count)
    ids = {*one.heard(), *two.heard()}
    messages = store.list_messages(store.get_or_create_conversation_id("default", "both"))
    assert len(messages) == len({m["id"] for m in messages}) == 4 * count
    assert {(m["debug"] or {}).get("run_id") for m in messages if m["role"] == "assistant"} == ids
