"""Any graph on a tape: recorded, paused, replayed, forked."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, interrupt

from tests.parts.record.graphs import KINDS, LOG, Kind, Log, executed, finish, line, review, step
from tests.shelves import workbench
from workbench.errors import RunError, WorkspaceFull
from workbench.parts.record.agent import RecordedGraph
from workbench.parts.record.bench import GraphBench
from workbench.parts.record.digests import plain
from workbench.parts.record.effects import Recorder
from workbench.parts.record.run import GraphRun
from workbench.records.store import RunStore
from workbench.session import Workbench


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with Workbench.open(tmp_path_factory.mktemp("graphs")) as wb:
        yield wb


@pytest.fixture(autouse=True)
def _count() -> None:
    executed.clear()


def finished(agent: Any, kind: Kind) -> GraphRun:
    run: GraphRun = agent.ask(kind.given, **kind.options)
    for answer in kind.answers:
        assert run.status == "paused"
        _answer(run, answer)
    assert run.status == "done"
    return run


@pytest.mark.parametrize("name", KINDS)
def test_a_graph_gives_what_the_original_gives_and_replays_without_executing_anything(wb: Workbench, name: str) -> None:
    kind = KINDS[name]
    run = finished(wb.record(kind.build(), name), kind)
    assert executed
    before = dict(executed)
    again = run.replay()
    assert dict(executed) == before and again.executed == []
    assert plain(again.state) == plain(run.state)
    fork = run.fork()
    assert dict(executed) == before and fork.executed == []
    assert wb.compare(run, fork).parts is None


@pytest.mark.parametrize("name", KINDS)
def test_wherever_the_work_stops_nothing_of_it_is_lost_or_done_twice(wb, name, monkeypatch):
    kind = KINDS[name]
    graph = kind.build()
    calm = finished(wb.record(graph, f"calm {name}"), kind)
    for moment in range(1, len(calm.effects) + 1):
        run = stopped_once(wb.record(graph, f"{name} {moment}"), kind, moment, monkeypatch)
        assert run.status == "done", moment
        ended = [effect.at for effect in run.effects if effect.kind == "node" and effect.outcome == "value"]
        assert len(ended) == len(set(ended)), moment
        if "routed" not in name:  # by chance it goes another way
            assert sorted(ended) == sorted(e.at for e in calm.effects if e.kind == "node" and e.outcome == "value")
        before = dict(executed)
        assert plain(run.replay().state) == plain(run.state) and dict(executed) == before, moment


def stopped_once(agent: RecordedGraph, kind: Kind, moment: int, monkeypatch: pytest.MonkeyPatch) -> GraphRun:
    """Run a graph whose work stops before its effect of that number is kept, and go on."""
    keep, count = Recorder.keep, itertools.count(1)

    def die(self: Recorder, effect: Any) -> None:
        if next(count) == moment:
            raise OSError("killed")
        keep(self, effect)

    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "keep", die)
        run: Any = None
        for work in [
            lambda: agent.ask(kind.given, **kind.options),
            *(lambda answer=a: _answer(agent.runs()[0], answer) for a in kind.answers),
        ]:
            try:
                run = work()
            except OSError:
                run = agent.runs()[0].resume()
    return run


def _answer(run: GraphRun, answer: Any) -> GraphRun:
    return run.answer(answer(run.questions[0].value) if callable(answer) else answer)


def test_a_fork_changes_one_place_and_what_reads_it(wb: Workbench) -> None:
    run = finished(wb.record(KINDS["three_deep"].build(), "edit inside"), KINDS["three_deep"])
    executed.clear()
    [place] = [effect.at for effect in run.effects if effect.name.endswith("read")]
    fork = run.fork(at=place, result={"log": ["read by hand"]})
    assert executed == {"finish": 1}, "the others read the question alone"
    assert fork.state["log"][0] == "read by hand"
    executed.clear()
    fork = run.fork(at=place.replace("read", "note"), state={"question": "Fen Mill"})
    assert executed == {"note": 1, "finish": 1} and fork.state["log"][-1] == "note of Fen Mill"
    run = finished(wb.record(KINDS["react"].build(), "tool result"), KINDS["react"])
    assert run.messages[-1].content == "It says: Moss Mill was built by Ann Lee."
    executed.clear()
    fork = run.fork(at="tools/1:search/1", result="Nobody knows.")
    assert fork.messages[-1].content == "It says: Nobody knows."
    assert executed == {"agent": 1, "model": 1}
    executed.clear()
    fork = run.fork(at="agent/2:model/1", result="By hand.")
    assert fork.messages[-1].content == "By hand." and executed == {"agent": 1}
    executed.clear()
    fork = run.fork(at="agent/1:model/1", result=run.effects[0].value)
    assert fork.messages == run.messages and executed == {"agent": 1}, "an equal reply changes nothing"
    run = finished(wb.record(KINDS["supervisor"].build(), "command"), KINDS["supervisor"])
    fork = run.fork(at="boss/2", state={"question": "Fen Mill"})
    assert fork.state["log"] == ["one of Moss Mill", "two of Fen Mill"]
    run = finished(wb.record(KINDS["plain"].build(), "reducer"), KINDS["plain"])
    fork = run.fork(at="review/1", state={"log": ["other"]})
    assert fork.state["log"] == ["other", "review"] and fork.state["answer"] == "2 steps, approved: True"
    run = finished(wb.record(KINDS["plain"].build(), "where"), KINDS["plain"])
    for wrong in ({"at": "first/1"}, {"result": {"log": []}}, {"state": {"log": []}}):
        with pytest.raises(RunError, match="Name a place with `at`, and what changes there"):
            run.fork(**wrong)
    with pytest.raises(RunError, match=r"has no effect at 'third/1'. It has: first/1, review/1"):
        run.fork(at="third/1", result=None)
    with pytest.raises(RunError, match=r"at review/1 has no field 'typo'. It has: answer, .*log"):
        run.fork(at="review/1", state={"typo": 1})
    run = finished(wb.record(KINDS["react"].build(), "call"), KINDS["react"])
    with pytest.raises(RunError, match="tools/1:search/1 is a call, which has no state of its own"):
        run.fork(at="tools/1:search/1", state={"messages": []})


def test_langgraphs_own_cache_of_nodes_leaks_between_users_and_a_recorded_graph_does_not_use_it(wb: Workbench) -> None:
    def greet(state: Log, config: RunnableConfig) -> Any:
        return {"answer": f"Hello {config['configurable']['user']}"}

    builder = StateGraph(Log).add_node("greet", greet, cache_policy=CachePolicy()).add_edge(START, "greet")
    graph = builder.compile(cache=InMemoryCache())
    agent = wb.record(graph, "greetings")
    ours = [agent.ask(LOG, config={"configurable": {"user": user}}).state["answer"] for user in ("Ann", "Bea")]
    assert ours == ["Hello Ann", "Hello Bea"]


def test_a_thread_continues_and_a_replay_of_its_second_run_begins_where_that_did(wb: Workbench) -> None:
    agent = wb.record(KINDS["with_store"].build(), "chat")
    agent.ask({"messages": [("user", "one")]}, thread="t")
    second = agent.ask({"messages": [("user", "two")]}, thread="t")
    assert second.messages[-1].content == "3 messages so far"
    before = dict(executed)
    assert plain(second.replay().state) == plain(second.state) and dict(executed) == before
    third = agent.ask({"messages": [("user", "three")]}, thread="t")
    assert third.messages[-1].content == "5 messages so far", "replays leave the thread as it was"


@pytest.mark.parametrize("read", [lambda s: s | {}, lambda s: {} | s, lambda s: {**s}, dict, lambda s: s.copy(), len])
def test_however_a_node_reads_the_whole_state_it_runs_again_when_any_of_it_changes(wb: Workbench, read: Any) -> None:
    def look(state: Log) -> Any:
        executed["look"] += 1
        return {"answer": str(read(state))}

    run = wb.record(line(("look", look)), "whole").ask(LOG)
    fork = run.fork(input={**LOG, "log": ["more"]})
    assert executed == {"look": 2} and fork.executed == ["look/1"]


def test_a_run_that_was_killed_after_its_last_checkpoint_has_its_result(wb: Workbench) -> None:
    run = finished(wb.record(KINDS["plain"].build(), "last moment"), KINDS["plain"])
    state = run.state
    run._store.write(
        "UPDATE runs SET status = 'running', owner = 'gone', result = NULL WHERE run_id = ?", (run.run_id,)
    )
    executed.clear()
    assert run.status == "interrupted" and run.resume().status == "done"
    assert run.state == state and not executed


def test_a_disk_without_room_is_an_error_and_the_run_goes_on_when_there_is_some(wb, monkeypatch):
    agent = wb.record(KINDS["plain"].build(), "full disk")

    def full(*_: Any, **__: Any) -> None:
        raise WorkspaceFull("graphs.db: no room is left.")

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "save_page", full)
        patched.setattr(RunStore, "let_go", full)
        with pytest.raises(WorkspaceFull):
            agent.ask(LOG)
    [run] = agent.runs()
    assert run.status == "interrupted"
    assert run.resume().answer(True).status == "done"


def test_what_cannot_be_kept_and_what_ends_the_process_ends_its_run_alone(wb: Workbench) -> None:
    graph = line(("open", lambda state: {"answer": threading.Lock()}))
    with pytest.raises(RunError, match=r"The result of open/1, field 'answer', cannot be kept: .*lock"):
        wb.record(graph, "lock").ask(LOG)
    agent = wb.record(line(("leave", lambda state: sys.exit("gone"))), "leaving")
    with pytest.raises(RunError, match="SystemExit"):
        agent.ask(LOG)
    assert agent.runs()[0].status == "failed" and "gone" in str(agent.runs()[0].error)

    async def wait(state: Log) -> Any:
        await asyncio.sleep(600)

    run = wb.record(line(("wait", wait)), "endless").start(LOG)
    with pytest.raises(TimeoutError, match="still runs"):
        run.wait(0.2)
    assert run.cancel().wait().status == "cancelled"
    paused = wb.record(KINDS["plain"].build(), "cancelled").ask(LOG)
    assert paused.cancel().status == "cancelled"


def test_a_function_that_was_named_goes_on_the_tape(wb: Workbench) -> None:
    def node(state: Log) -> Any:
        return {"log": [f"{now()} {state.get('approved')}"]}

    agent = wb.record(line(("node", node)), "clock", wrap=[now])
    run = agent.ask({**LOG, "approved": True})
    fork = run.fork(input={**LOG, "approved": False})
    assert executed == {"now": 1} and fork.executed == ["node/1"]
    assert fork.state["log"] == [run.state["log"][0].replace("True", "False")]
    assert now.__name__ == "now" and now() != now(), "outside of runs it is what it was"


def now() -> int:
    executed["now"] += 1
    return time.perf_counter_ns()


def test_a_run_is_worked_on_by_one_process(wb: Workbench) -> None:
    run = wb.record(KINDS["plain"].build(), "claimed").ask(LOG)
    seen, late = run._store.get(run.run_id), {"review_id": "question", "answer": "late"}
    assert run._store.claim(seen, "another process")
    assert not run._store.claim(seen, run._work.lease.owner, [late])
    assert not run.decisions, "an answer that comes too late is not kept"
    assert run.status == "interrupted", "the other one died: its lease is gone"
    assert run.resume().status == "paused"
    assert run.answer(True).state["approved"] is True


def test_runs_of_a_recorded_graph_are_compared_sealed_and_removed_by_the_workspace(wb, tmp_path):
    agent = wb.record(KINDS["plain"].build(), "compared")
    run = finished(agent, KINDS["plain"])
    fork = run.fork(answers={"review": False})
    compared = wb.compare(run, fork)
    assert compared.parts and compared.parts["name"] == "review/1"
    assert [cost["calls"] for cost in compared.cost] == [3, 2]
    changed = {claim["text"] for claim in compared.claims if "shared" not in claim["changes"]}
    assert changed >= {"approved: true", "approved: false"}
    [decision] = compared.decisions
    assert [side["message"] for side in decision["sides"]] == ["true", "false"] and "review/1" in str(compared)
    assert [row["run_id"] for row in wb.runs.lines(graph="compared")] == [fork.run_id, run.run_id]
    wb.runs.annotate(run.run_id, tags=["kept"])
    assert wb.runs.find("moss", tag="kept", kb="compared")[0].run_id == run.run_id
    line, origin = wb.runs.lines(graph="compared")
    assert (line["origin"], line["edited"]) == (run.run_id, "review")
    assert line["answer"] == fork.reply != "" != origin["answer"] == run.reply
    bench = wb.bench()
    bench.view = "runs"
    bench.futures.runs.ask(do="open", runs=[fork.run_id])
    assert fork.run_id in bench.futures.runs.table.html and bench.futures.below.children[0].run.run_id == fork.run_id
    assert wb.export(run.run_id, tmp_path / "run.zip").read_bytes()[:2] == b"PK"
    wb.runs.remove(run.run_id)
    assert fork.replay().state == fork.state, "a fork has what it took"
    for each in agent.runs():
        wb.runs.remove(each.run_id)
    assert agent.runs() == [] and not agent.load_effects(run.run_id)


def test_a_replay_that_leaves_its_tape_says_where_and_why(wb: Workbench) -> None:
    run = finished(wb.record(KINDS["plain"].build(), "diverges"), KINDS["plain"])
    wb.record(line(("first", step("second")), ("review", review), ("finish", finish)), "diverges")
    changed = wb.run(run.run_id)
    with pytest.raises(RunError, match="The replay diverges at node 'first/1': version"):
        changed.replay()
    executed.clear()
    fork = changed.fork()
    assert executed == {"second": 1, "finish": 1} and fork.state["log"][0] == "second of Moss Mill"
    waiting = wb.record(KINDS["plain"].build(), "diverges").ask(LOG)
    wb.record(line(("first", step("first"))), "diverges")
    with pytest.raises(RunError, match="no node that continues at review/1, where the run waits"):
        wb.run(waiting.run_id).answer(True)
    wb.record(KINDS["plain"].build(), "diverges")
    assert wb.run(waiting.run_id).resume().status == "done"


def test_a_question_that_is_asked_again_is_another_question(wb: Workbench) -> None:
    def ask(state: Log) -> Any:
        return {"log": [interrupt("Sure?"), interrupt("Sure?")]}

    graph = StateGraph(Log).add_node("ask", ask).add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "ask" if len(state["log"]) < 4 else END)
    run = wb.record(graph.compile(), "again").ask(LOG)
    for answer in "abcd":
        run.answer(answer)
    assert run.state["log"] == run.replay().state["log"] == list("abcd") and run.fork().executed == []


def test_two_questions_at_once_are_answered_by_their_ids(wb: Workbench) -> None:
    def ask(name: str) -> Any:
        return lambda state: {"log": [f"{name}: {interrupt(name)}"]}

    graph = StateGraph(Log).add_node("left", ask("left")).add_node("right", ask("right"))
    graph.add_edge(START, "left").add_edge(START, "right")
    run = wb.record(graph.compile(), "both").ask(LOG)
    with pytest.raises(RunError, match="The run asks 2 questions"):
        run.answer("yes")
    run.answer({question.id: question.value.upper() for question in run.questions})
    assert run.state["log"] == ["left: LEFT", "right: RIGHT"]
    assert run.fork(answers={"left": "no"}).state["log"] == ["left: no", "right: RIGHT"]
    decided = wb.record(graph.compile(), "both").ask(LOG)
    for message in ("one", "two"):  # a decision is for what is shown
        decided.answer_review({"decisions": [{"type": "respond", "message": message}]})
    assert decided.state["log"] == ["left: one", "right: two"]


def test_a_run_is_drawn_and_says_what_is_not_on_its_tape(wb: Workbench) -> None:
    run = finished(wb.record(KINDS["three_deep"].build(), "drawn"), KINDS["three_deep"])
    assert all(name in run.dag.svg for name in ("read", "review", "finish"))
    assert "finish" in run.timeline.svg
    node = lambda state: {"log": [f"{time.time()} {os.environ.get('HOME')}"]}  # noqa: E731
    late = wb.record(line(("late", node)), "late").ask(LOG)
    [row] = late.unrecorded.to_dict("records")
    assert row == {"node": "late", "reads": ["clock", "environment"], "opaque": True, "time": 1.0, "bytes": 1.0}
    shares = [each.to_dict()["on_tape"] for each in (run, late)]
    assert shares == [{"time": 1.0, "bytes": 1.0}, {"time": 0.0, "bytes": 0.0}]


def test_the_bench_runs_answers_and_forks_and_escapes_what_it_shows(wb: Workbench) -> None:
    agent = wb.record(KINDS["plain"].build(), "bench")
    bench = GraphBench(agent)
    bench.input.value = json.dumps({**LOG, "question": "<b>Mill</b>"})
    bench.start.click()
    assert bench.run and bench.run.status == "paused" and "&lt;b&gt;Mill" in bench.review.band.html
    bench.review.primary.click()
    assert bench.run.status == "done" and "approved: True" in bench.state.value
    assert bench.question.layout.display == "none"
    bench.by_hand.place.value, bench.by_hand.result.value = "finish/1", '{"answer": "by hand"}'
    bench.by_hand.button.click()
    assert "by hand" in bench.state.value and bench.run.executed == []
    bench.input.value = "7"
    bench.start.click()
    assert "alert" in bench.status.value
    assert len(bench.runs.options) == 3


def test_a_graph_is_run_answered_and_replayed_from_the_terminal(tmp_path: Path) -> None:
    def shell(*words: str) -> str:
        done = workbench(tmp_path / "w", *words)
        return f"{done.returncode} {done.stdout}{done.stderr}"

    paused = shell("record", "tests.parts.record.graphs:plain", json.dumps(LOG))
    assert paused.startswith("3 ") and "Your decision:" in paused and "Interrupt" not in paused
    [row] = json.loads(workbench(tmp_path / "w", "runs", "--json").stdout)["runs"]
    run_id, path = row["run_id"], str(tmp_path / "run.zip")
    assert "2 steps, approved: True" in shell("resume", run_id, "--approve")
    assert shell("replay", run_id).startswith("0 ")
    assert "of the time and 100 % of the bytes" in shell("show", run_id)
    fork = json.loads(workbench(tmp_path / "w", "fork", run_id, "--at", "first/1", "--result", "{}", "--json").stdout)
    assert "first/1" in shell("compare", run_id, fork["run_id"])
    assert shell("export", run_id, path).startswith("0 ")
    assert "approved: true" in shell("record", "tests.parts.record.graphs:plain", path)
    assert shell("remove", run_id).startswith("0 ") and "Unknown run" in shell("show", run_id)
    assert "cannot be loaded" in shell("record", "tests.parts.record.graphs:nothing", "x")


class Weighing:
    def __init__(self, first: int, second: int):
        self.first, self.second = first, second

    def work(self, state: dict) -> dict:
        return {"answer": f"{self.first} {self.second}"}


@pytest.mark.parametrize("second", [(1, 3), (2, 1)])
def test_what_an_object_holds_is_in_the_key_of_its_method(tmp_path, second):
    def graph(weighing: Weighing):
        return StateGraph(dict).add_node("n", weighing.work).add_edge(START, "n").compile()

    with Workbench.open(tmp_path, embedding_model="hashing") as wb:
        run = wb.record(graph(Weighing(1, 2)), name="weighing").ask({"answer": ""})
        wb.record(graph(Weighing(*second)), name="weighing")
        assert wb.run(run.run_id).fork().state["answer"] == "{} {}".format(*second)


def test_a_node_that_asks_before_and_after_a_graph_that_asks_gets_each_answer(wb: Workbench) -> None:
    inner = line(("ask", lambda state: {"log": [interrupt("inner?"), interrupt("inner?")]}))

    def outer(state: Log) -> Any:
        first = interrupt("own?")
        return {"log": [first, *inner.invoke({"log": []})["log"], interrupt("own?")]}

    run = wb.record(line(("outer", outer)), "both ask").ask(LOG)
    for answer in "abcd":
        run.answer(answer)
    assert run.state["log"] == run.replay().state["log"] == list("abcd") and run.fork().executed == []
    assert run.fork(answers="x").state["log"] == list("xxxx")
