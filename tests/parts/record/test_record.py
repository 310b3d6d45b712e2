"""Any graph on a tape: recorded, paused, replayed, forked, streamed, moved, killed and measured, one thing changed."""

import asyncio
import itertools
import json
import os
import sqlite3
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_stream_writer
from langgraph.errors import GraphRecursionError
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.store.sqlite import SqliteStore
from langgraph.types import CachePolicy, interrupt
from pydantic import BaseModel

from tests.parts.record.graphs import (
    KINDS,
    LOG,
    SAID,
    Kind,
    Log,
    Reader,
    Scripted,
    executed,
    finish,
    line,
    review,
    step,
    style,
)
from tests.shelves import workbench
from tests.soak import growing
from tests.storm import Scenario, Storm
from workbench.errors import CapsuleError, InvalidAnswer, NotPaused, RunError, WorkspaceFull
from workbench.parts.record.agent import GraphRun, RecordedGraph
from workbench.parts.record.bench import GraphBench
from workbench.parts.record.digests import plain
from workbench.parts.record.effects import Recorder
from workbench.parts.record.questions import Question
from workbench.parts.record.store import TABLES
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


class Sampled(Scripted):
    temperature: float = 0.0
    named: str = "one"

    @property
    def _identifying_params(self) -> Any:
        return {"temperature": self.temperature, "name": self.named}


def dependent(
    temperature: float = 0.0, named: str = "one", tool_answer: str = "Ann Lee", prompt: str = "Short.", limit: int = 3
) -> Any:
    """A graph whose one node depends on everything that a key must hold."""
    model = Sampled(temperature=temperature, named=named)

    @tool
    def look(query: str) -> str:
        """Look."""
        return f"{tool_answer} {query}"

    def node(state: Log) -> Any:
        executed["node"] += 1
        said = model.invoke([("system", prompt), ("user", state["question"])]).tool_calls[0]["args"]["query"]
        return {"answer": f"{said} {look.invoke(said)[:limit]} {interrupt('sure?')}"}

    return StateGraph(Log, context_schema=Reader).add_node("node", node).add_edge(START, "node").compile()


ONE_THING: dict[str, Any] = {
    "user": {"context": Reader("Bea")}, "thread": {"thread": "another"}, "settings": {"config": style("long")},
    "resume value": {"answer": False}, "input": {"given": {**LOG, "question": "Fen Mill"}},
    "model": {"graph": {"named": "two"}}, "sampling": {"graph": {"temperature": 0.7}},
    "prompt": {"graph": {"prompt": "Long."}}, "tool": {"graph": {"tool_answer": "Bea Lee"}},
    "constant": {"graph": {"limit": 5}},
}  # fmt: skip


@pytest.mark.parametrize("what", ONE_THING)
def test_of_two_runs_that_differ_in_one_thing_no_effect_crosses(wb: Workbench, what: str) -> None:
    change = ONE_THING[what]

    def ask(graph: Any, **changed: Any) -> Any:
        agent = wb.record(graph, f"crossing {what}")
        options = {"context": Reader("Ann"), "config": style("short"), "thread": "one"}
        options |= {name: value for name, value in changed.items() if name in options}
        run = agent.ask(changed.get("given", LOG), **options)
        return run.answer(changed.get("answer", True))

    first = ask(dependent())
    other = ask(dependent(**change.get("graph", {})), **{k: v for k, v in change.items() if k != "graph"})
    assert other.executed[-1] == "node/1", "a live run takes nothing from others"
    executed.clear()
    own, foreign = first.effects[-1], other.effects[-1]
    assert own.key != foreign.key or own.reads != foreign.reads, "their keys differ"
    with pytest.raises(RunError, match="The replay diverges"):  # and so the one does not answer the other
        other._row["options"]["tape"]["sources"] = [first.run_id]
        other._derive("replay", {}, sources=[first.run_id])
    assert not executed


def test_memory_that_changed_since_reaches_no_fork_and_a_fork_leaves_it_alone(wb: Workbench) -> None:
    agent = wb.record(KINDS["with_memory"].build(), "memory")
    before = agent.ask(LOG).state["log"][0]  # other graphs of the workspace share its store
    run = agent.ask({**LOG, "question": "Fen Mill"})
    assert run.state["log"][0] == "Moss Mill", "the store lasts"
    executed.clear()
    assert run.replay().executed == [] and run.fork().executed == []
    other = run.fork(at="learn/1", state={"question": "Lock Mill"})
    assert executed == {"learn": 1}, "the log has the same length"
    assert agent.ask(LOG).state["log"][0] == "Fen Mill", "what a fork learns stays its own"
    assert other.state["log"][0] == "Moss Mill" and before != "Lock Mill"


def test_what_a_fork_writes_to_the_store_is_read_by_its_later_nodes(wb: Workbench, monkeypatch: Any) -> None:
    def write(state: Log, runtime: Runtime[Any]) -> Any:
        runtime.store.put(("x",), "y", {"it": state["question"]})
        return {"log": ["written"]}

    def read(state: Log, runtime: Runtime[Any]) -> Any:
        executed["read"] += 1
        return {"answer": runtime.store.get(("x",), "y").value["it"]}

    run = wb.record(line(("write", write), ("read", read)), "reads").ask(LOG)
    executed.clear()
    assert run.fork(input={**LOG, "question": "Fen Mill"}).state["answer"] == "Fen Mill"
    assert executed == {"read": 1}, "it reads nothing of the state, but what was written"
    keep = Recorder.keep

    def die(self: Recorder, effect: Any) -> None:
        if effect.at == "read/1:get/1":
            raise OSError("killed")
        keep(self, effect)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="killed"):
        patched.setattr(Recorder, "keep", die)
        run.fork(input={**LOG, "question": "Lock Mill"})
    assert wb.runs.list(1)[0].resume().state["answer"] == "Lock Mill"


def test_edges_tasks_and_nodes_of_several_runs_come_from_the_tape(wb: Workbench) -> None:
    run = finished(wb.record(KINDS["routed_by_a_model"].build(), "edge"), KINDS["routed_by_a_model"])
    [way] = [effect for effect in run.effects if effect.kind == "edge"]
    other = {"left": "right", "right": "left"}[way.value]
    executed.clear()
    fork = run.fork(at=way.at, result=other)
    assert fork.state["log"] == ["first of Moss Mill", f"{other} of Moss Mill"]
    assert executed == {other: 1, "finish": 1}
    run = finished(wb.record(KINDS["tasks"].build(), "tasks"), KINDS["tasks"])
    executed.clear()
    fork = run.fork(answers=False)
    assert executed == {"flow": 1, "grade": 1} and fork.state["grade"] == run.state["grade"] - 1
    by_hand = run.fork(at="flow/1:write/1", result="Moss")
    assert by_hand.state["essay"] == "Moss" and by_hand.state["grade"] == 4
    agent = wb.record(KINDS["deferred"].build(), "graft")
    first, second = agent.ask(LOG), agent.ask({**LOG, "question": "Fen Mill"})
    executed.clear()
    grafted = first.graft({"right": second})
    assert "right of Fen Mill" in grafted.state["log"] and "left of Moss Mill" in grafted.state["log"]
    assert executed == {"finish": 1} and set(grafted.options["tape"]["sources"]) == {first.run_id, second.run_id}
    with pytest.raises(RunError, match="has no node 'middle'"):
        first.graft({"middle": second})


@tool
def sure(query: str) -> str:
    """Ask."""
    return f"{query}: {interrupt(f'Is it {query}?')}"


@task
def approve(query: str) -> str:
    return f"{query}: {interrupt(f'Is it {query}?')}"


@entrypoint()
def approving(queries: list[str]) -> str:
    return " ".join(approve(query).result() for query in queries)


def test_a_call_that_asked_runs_again_in_a_fork_with_another_answer(wb: Workbench) -> None:
    calls = [{"name": "sure", "args": {"query": query}, "id": query} for query in "AB"]
    ask = {"messages": [AIMessage("", tool_calls=calls)]}
    for graph, given in ((line(("tools", ToolNode([sure])), schema=MessagesState), ask), (approving, ["A", "B"])):
        run = wb.record(graph, "calls that ask").ask(given)
        while run.status == "paused":
            run.answer(run.questions[0].value.strip("Is it?"))
        assert run.status == "done" and "A: A" in str(run.state) and "B: B" in str(run.state)
        fork = run.fork(answers="no")
        assert "A: no" in str(fork.state) and "B: no" in str(fork.state)
        assert run.replay().state == run.state and fork.replay().state == fork.state


class Streaming(Scripted):
    def _stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        executed["model"] += 1
        for word in ("Ann ", "Lee ", "built it."):
            yield ChatGenerationChunk(message=AIMessageChunk(word))


def streaming() -> Any:
    model = Streaming()

    def say(state: MessagesState) -> Any:
        get_stream_writer()({"progress": 1})
        return {"messages": [model.invoke(state["messages"])]}

    return line(("say", say), schema=MessagesState)


def test_a_model_that_a_node_streams_is_a_call_of_its_own(wb: Workbench) -> None:
    model = Streaming()

    def say(state: Log) -> Any:
        return {"log": [chunk.text for chunk in model.stream(state["question"])]}

    async def repeat(state: Log) -> Any:
        return {"log": [chunk.text async for chunk in model.astream(state["log"][0])]}

    wb.record(line(("say", say)), "before")
    set_llm_cache(None)  # whoever sets another cache gets no second call
    run = wb.record(lambda *_, **__: line(("say", say), ("repeat", repeat)), "streamed").ask(LOG)
    assert [call["place"] for call in run.calls()] == ["say/1:model/1", "repeat/1:model/1"]
    before = dict(executed)
    fork = run.fork(at="repeat/1:model/1", result="By hand.")
    assert fork.state["log"] == [*run.effects[1].value["log"], "By hand."] and dict(executed) == before


@pytest.mark.parametrize("mode", ["updates", "values", "messages", "custom"])
def test_a_run_streams_what_its_graph_streams_and_its_replay_the_same(wb: Workbench, mode: Any) -> None:
    agent = wb.record(streaming(), f"streaming {mode}")
    events = list(agent.start(SAID, stream_mode=mode).stream())
    theirs = list(streaming().stream(SAID, stream_mode=mode))
    assert len(events) == len(theirs)
    if mode == "messages":
        assert [chunk.content for chunk, _ in events] == [chunk.content for chunk, _ in theirs]
    if mode == "custom":
        assert events == theirs == [{"progress": 1}]
    before = dict(executed)
    [run] = agent.runs()
    assert plain(list(run.replay().stream())) == plain(list(run.stream())) == plain(events)
    assert dict(executed) == before


@pytest.mark.parametrize(
    ("kind", "decision", "message", "says"),
    [
        ("plain", "approve", "", "2 steps, approved: True"),
        ("plain", "reject", "", "2 steps, approved: False"),
        ("plain", "respond", "later", "2 steps, approved: later"),
        ("inbox", "approve", "", "accept None"),
        ("inbox", "respond", "shorter", "response shorter"),
        ("inbox", "reject", "", "ignore None"),
        ("middleware", "approve", "", "It says: Moss Mill was built by Ann Lee."),
        ("middleware", "reject", "no", "with reason: no"),
    ],
)
def test_a_decision_reaches_each_graph_in_its_own_shape(wb, kind, decision, message, says):
    run = wb.record(KINDS[kind].build(), f"decided {kind}").ask(KINDS[kind].given)
    parts = {"type": decision, **({"message": message} if message else {})}
    run.answer_review({"decisions": [parts]})
    text = run.messages[-1].text if run.messages else run.state.get("answer") or run.state["log"][-1]
    assert says in text, text


class Verdict(BaseModel):
    """What a person says of a text."""

    good: bool
    note: str = "none"


PEOPLE = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
APPROVAL = {"type": "tool_approval", "name": "search", "args": {"query": "Mill"}, "description": "Search?"}
TWO = {"action_requests": [{"name": "a", "args": {"x": 1}}, {"name": "b", "args": {"y": 2}}]}


@pytest.mark.parametrize(
    ("value", "schema", "filled", "answer"),
    [
        ("Good?", Verdict.model_json_schema(), {"good": True, "note": "fine"}, {"good": True, "note": "fine"}),
        ("How many?", {"type": "integer"}, {"answer": 3}, 3),
        ({"who": "author", "schema": PEOPLE, "name": "Ann"}, None, {"name": "Bea"}, {"name": "Bea"}),
        (Verdict(good=False), None, {"good": True}, {"good": True, "note": "none"}),
        (APPROVAL, None, {"query": "A"}, {"type": "edit", "edited_action": {"name": "search", "args": {"query": "A"}}}),
        (
            TWO, None, {"1 a": {"x": 5}},
            {"decisions": [
                {"type": "edit", "edited_action": {"name": "a", "args": {"x": 5}}},
                {"type": "edit", "edited_action": {"name": "b", "args": {"y": 2}}},
            ]},
        ),
    ],
)  # fmt: skip
def test_a_question_with_a_schema_is_a_form(value: Any, schema: Any, filled: Any, answer: Any) -> None:
    question = Question("1", "ask/1", value, schema)
    form = question.request["review_configs"][0]["args_schema"]
    assert set(filled) <= set(form["properties"])
    assert question.answer("edit", filled) == answer
    with pytest.raises(InvalidAnswer, match="needs good"):
        Question("1", "ask/1", "Good?", Verdict.model_json_schema()).answer("edit", {})


def test_an_answer_that_does_not_fit_is_refused_and_the_run_waits_as_before(wb: Workbench) -> None:
    node = lambda state: {"log": [str(interrupt("Good?", response_schema=Verdict))]}  # noqa: E731
    run = wb.record(line(("ask", node)), "refused").ask(LOG)
    with pytest.raises(InvalidAnswer, match=r"the run waits as before. \$.good: Input should be a valid boolean"):
        run.answer({"good": "nonsense"})
    assert run.status == "paused" and run.answer({"good": True}).state["log"] == ["good=True note='none'"]


def test_a_form_is_filled_in_on_the_bench_and_what_is_missing_is_said(wb: Workbench) -> None:
    def ask(state: Log) -> Any:
        verdict = interrupt("Good?", response_schema=Verdict)
        return {"log": [f"{verdict.good} {verdict.note}"]}

    agent = wb.record(line(("ask", ask)), "form")
    bench = GraphBench(agent)
    bench._act(lambda: agent.ask(LOG))
    assert bench.review.primary.disabled, "what is required is missing"
    good, note = bench.review.form.children[0].children[1].children
    good.children[1].value, note.children[1].value = True, "fine"
    bench.review.primary.click()
    assert bench.run and bench.run.state["log"] == ["True fine"], bench.status.value


def test_a_pause_of_another_session_is_listed_and_says_which_cell_to_run(tmp_path: Path) -> None:
    graph = KINDS["inbox"].build()
    with Workbench.open(tmp_path / "w") as first:
        run_id = first.record(graph, "lost").ask(LOG).run_id
        done = finished(first.record(graph, "lost"), KINDS["inbox"])
        state = done.state
    with Workbench.open(tmp_path / "w") as second:
        inbox = second.inbox()
        assert "Write?" in inbox.list.html
        inbox.list.press("approve", run_id)
        assert "Run the cell with wb.record(..., name=&#x27;lost&#x27;)" in inbox.list.picture.html
        inbox.list.press("open", run_id)
        assert "recorded in another session" in inbox.below.children[0].graph.value
        lost = second.run(done.run_id)
        assert lost.state == state and lost.effects and len(second.runs.lines()) == 2
        for again in (lost.replay, lost.fork, second.run(run_id).resume):
            with pytest.raises(RunError, match="recorded in another session"):
                again()
        second.record(graph, "lost")
        inbox.list.press("approve", run_id)
        assert second.run(run_id).wait().state["log"] == ["accept None"]


def test_a_waiting_run_is_answered_from_the_terminal_by_its_id_alone(tmp_path: Path) -> None:
    shell = partial(workbench, tmp_path / "w")
    assert shell("record", "tests.parts.record.graphs:inbox", json.dumps(LOG)).returncode == 3
    [row] = json.loads(shell("runs", "--status", "paused", "--json").stdout)["runs"]
    assert "response later" in shell("resume", row["run_id"], "--respond", "later").stdout
    assert "not by --query" in shell("fork", row["run_id"], "--query", "x").stderr
    edit = tmp_path / "edit.json"
    edit.write_text('{"text": "Fen Mill"}')
    asked = json.loads(shell("record", "tests.parts.record.graphs:inbox", json.dumps(LOG), "--json").stdout)
    done = shell("resume", asked["run_id"], "--edit", str(edit), "--json")
    assert json.loads(done.stdout)["state"]["log"] == ["edit {'action': 'write', 'args': {'text': 'Fen Mill'}}"]


def test_a_sealed_run_is_replayed_and_forked_in_another_workspace(wb: Workbench, tmp_path: Path) -> None:
    kind = KINDS["plain"]
    run = finished(wb.record(kind.build(), "sealed"), kind)
    path = run.export(tmp_path / "run.zip")
    assert path.read_bytes() == run.export(tmp_path / "again.zip").read_bytes()
    with Workbench.open(tmp_path / "elsewhere") as other:
        agent = other.record(kind.build(), "sealed")
        brought = agent.read_capsule(path)
        executed.clear()
        assert plain(brought.replay().state) == plain(run.state) and not executed
        assert brought.fork(answers={"review": False}).state["answer"] == "2 steps, approved: False"
        hostile = {"page": "", "effects": [{"kind": "node", "name": "first", "parts": {}, "value": "AA=="}]}
        for damage in ({"run": 7}, {"tapes": [hostile]}, {}):
            with zipfile.ZipFile(path) as archive:
                contents = {**json.loads(archive.read("run.json")), **damage}
            with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
                archive.writestr("run.json" if damage else "other.json", json.dumps(contents))
            with pytest.raises(CapsuleError, match="Nothing was brought in"):
                agent.read_capsule(tmp_path / "bad.zip")
        assert len(agent.runs()) == 3
    with pytest.raises(CapsuleError, match="is paused"):
        wb.record(kind.build(), "unsealed").ask(LOG).export(tmp_path / "paused.zip")


def test_a_sealed_run_that_continues_a_thread_brings_its_beginning(wb: Workbench, tmp_path: Path) -> None:
    agent = wb.record(KINDS["with_store"].build(), "sealed talk")
    first = agent.ask({"messages": [("user", "one")]}, thread="t").export(tmp_path / "1.zip")
    second = agent.ask({"messages": [("user", "two")]}, thread="t")
    path = second.export(tmp_path / "2.zip")
    agent.ask({"messages": [("user", "three")]}, thread="t")
    assert path.read_bytes() == second.export(tmp_path / "again.zip").read_bytes()
    with Workbench.open(tmp_path / "elsewhere") as other:
        there = other.record(KINDS["with_store"].build(), "sealed talk")
        executed.clear()
        begun, run = there.read_capsule(first), there.read_capsule(path)
        for sealed, messages in ((begun, 1), (run, 3)):
            assert sealed.replay().messages[-1].content == f"{messages} messages so far" and not executed
        fork = run.fork(input={"messages": [("user", "else")]})
        assert [m.content for m in fork.messages][0::2] == ["one", "else"] and executed == {"chat": 1}
        for sealed in there.runs():
            other.runs.remove(sealed.run_id)
        with there._saver.cursor() as cursor:
            assert cursor.execute("SELECT count(*) FROM checkpoints").fetchone()[0] == 0


def test_a_graph_is_named_counted_and_played_with_each_answer(wb, tmp_path, monkeypatch):
    run = finished(wb.record(KINDS["react"].build(), "cost"), KINDS["react"])
    first, last = run.calls()
    assert (first["place"], first["role"]) == ("agent/1:model/1", "agent") and "Moss Mill" in str(first["messages"])
    assert last["reply"] == "ai: It says: Moss Mill was built by Ann Lee."
    assert wb.runs.costs(run.run_id)["tokens"] == run.calls().total()["tokens"] == 12
    (tmp_path / "langgraph.json").write_text('{"graphs": {"mill": "tests.parts.record.graphs:plain"}}')
    monkeypatch.chdir(tmp_path)
    run = finished(wb.record("mill"), KINDS["plain"])
    forks = [run.fork(answers={"review": answer}) for answer in (False, "later")]
    assert [fork.state["approved"] for fork in forks] == [False, "later"]
    with pytest.raises(RunError, match=r"'tide' is not in langgraph.json. Known: mill"):
        wb.record("tide")

    async def make(config: RunnableConfig) -> Any:
        return KINDS["supervisor"].build()

    with pytest.raises(GraphRecursionError):
        wb.record(make, "made").ask(LOG, config={"recursion_limit": 2})
    with pytest.raises(RunError, match=r"config has style. Known: configurable"):
        wb.record(make, "made").ask(LOG, config={"style": "short"})
    with pytest.raises(RunError, match="NoneType is not a compiled LangGraph graph"):
        wb.record(lambda: None)


@pytest.mark.parametrize("name", ["plain", "three_deep", "subgraph_called"])
def test_a_question_that_is_asked_again_after_a_kill_takes_its_answer(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    with Workbench.open(tmp_path) as wb:
        agent = wb.record(kind.build(), name)
        run = agent.ask(kind.given)
        with agent._saver.cursor() as cursor:  # killed before LangGraph wrote that it waits
            cursor.execute("DELETE FROM writes WHERE channel = '__interrupt__'")
        agent.store.let_go(run.run_id, "interrupted")
    with Workbench.open(tmp_path) as wb:
        [run] = wb.record(kind.build(), name).runs()
        with pytest.raises(NotPaused, match="Its process died; continue with `resume`"):
            run.answer(True)
        assert run.resume().answer(True).status == "done" and len(run.decisions) == 1
        assert plain(run.replay().state) == plain(run.state)


EXPORTS = json.loads(Path(__file__).with_name("traces.json").read_text("utf-8"))
"""One question as four tools export it."""


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_trace_is_a_run_that_is_seen_and_compared_and_never_replayed(wb, tmp_path: Path, tool):
    path, content = tmp_path / "export.json", EXPORTS[tool]
    path.write_text("\n".join(map(json.dumps, content)) if tool == "langfuse" else json.dumps(content))
    [run] = wb.read_traces(path)
    question = {"question": run.message, "answer": run.reply}
    assert question == {"question": "Who built Moss Mill?", "answer": "Ann Lee."}, "a row of a set of questions"
    assert run.input == {"question": "Who built Moss Mill?"} and "Ann Lee." in run.state.values()
    frame = run.to_frame()
    assert frame["tokens"].sum() == 42 and frame["seconds"].max() == 3
    assert any(at.endswith(":chat gpt/1") for at in frame["at"])
    assert wb.compare(run, run).parts is None and "svg" in run.timeline._repr_html_()
    for again in (run.replay, lambda: run.fork(input={}), lambda: run.dag):
        with pytest.raises(RunError, match="trace of another tool"):
            again()


BROKEN = [
    "",
    "no json",
    "[]",
    '{"a": 1}',
    "[" * 100_000,
    '{"start_time": 1, "context": 3, "attributes": {"llm": {"token_count": {"total": "many"}}}}',
    '{"start_time": 1, "attributes": [{"key": "retrieval.documents.0.document.score", "value": {"stringValue": "x"}}]}',
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_trace_is_said(wb, tmp_path: Path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RunError, match=r"spans|JSON"):
        wb.read_traces(tmp_path / "x.json")


def test_the_tables_of_the_store_are_those_of_langgraph() -> None:
    def look(database: sqlite3.Connection) -> list[Any]:
        columns = "SELECT name, type, pk FROM pragma_table_info('store')"
        queries = (columns, "SELECT max(v) FROM store_migrations", "SELECT name FROM sqlite_master ORDER BY name")
        return [database.execute(query).fetchall() for query in queries]

    with closing(sqlite3.connect(":memory:")) as own, closing(sqlite3.connect(":memory:")) as theirs:
        own.executescript(TABLES)
        SqliteStore(theirs).setup()
        assert look(own) == look(theirs)


# by chance it goes another way; its own store dies with the process; packages that need not be here
NAMES = [name for name in KINDS if not any(word in name for word in ("routed", "store", "langgraph"))]


def without_ids(state: Any) -> Any:
    """Drop the ids of messages and tool calls, which are of their run."""
    if isinstance(state, dict):
        return {key: without_ids(value) for key, value in state.items() if key not in ("id", "tool_call_id")}
    return [without_ids(value) for value in state] if isinstance(state, list) else state


class Graph(Scenario):
    """A run of the graph of this name, with its answers."""

    appends = False

    def work(self, wb: Workbench, tell: Any) -> None:
        kind = KINDS[self.name]
        agent = wb.record(kind.build(), self.name)
        run = agent.runs()[0] if agent.runs() else agent.ask(kind.given, **kind.options)
        while run.status != "done":
            if run.status != "paused":
                run.resume()
            else:
                _answer(run, kind.answers[len(run.decisions)]) if run.questions else run.answer(None)

    def look(self, wb: Workbench) -> dict[str, Any]:
        [run] = wb.record(KINDS[self.name].build(), self.name).runs()
        ended = sorted(
            [e.kind, e.at] for e in run.effects if e.outcome == "value" and e.kind in ("node", "model", "tool")
        )
        replayed = plain(run.replay().state) == plain(run.state)
        return {"state": without_ids(json.loads(json.dumps(plain(run.state)))), "ended": ended, "replayed": replayed}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(2)
def test_kills_at_any_moment_lose_double_and_repeat_nothing(tmp_path: Path, name: str) -> None:
    assert Storm(Graph(name), tmp_path / "storm").trials(3) == []


@pytest.mark.full
def test_memory_is_flat_over_3000_runs(tmp_path: Path) -> None:
    names = ("plain", "react", "map_reduce", "subgraph_called", "tasks", "with_memory")
    with Workbench.open(tmp_path) as wb:
        agents = {name: wb.record(KINDS[name].build(), name) for name in names}

        def work(number: int) -> None:
            name = names[number % len(names)]
            run = finished(agents[name], KINDS[name])
            if number % 10 == 0:
                run.replay()

        assert growing(tmp_path, work, 3000) == []
