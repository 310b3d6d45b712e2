"""The session over the real films; budgets that stop while a person thinks; what people think of answers."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.shelves import CORE, fill, noted, workbench
from tests.test_models import TEXTS
from workbench.errors import InvalidAnswer, NotPaused, RunError, WorkbenchError
from workbench.events import for_client
from workbench.graphs.writer_prompt import messages
from workbench.language.citing import checked
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.runs.stored import debug_events
from workbench.session import Workbench
from workbench.testing import EPOCH, ManualClock, memory_context


def test_pause_at_reflect_and_all_that_can_be_said(wb):
    run = wb.ask("推荐几部类似《喜宴》的电影", kb="film", review={"reflect"})
    assert run.status == "paused" and run.review["point"] == "reflect" and run.answer == ""
    assert run.evidence and run.plan.version == 1
    with pytest.raises(InvalidAnswer, match=r"\$\.decisions\[0\]\.edited_action\.args\.min_evidence"):
        run.edit(min_evidence=-1)
    assert run.status == "paused"
    more = PlanStep(step_id="step_9_mine", objective="mine", tool="keyword_search", tool_input={"query": "wedding"})
    run.edit(next_steps=[more], note="look once more")
    assert run.status == "paused" and run.plan.steps[-1] == more and run.plan.version == 2
    assert any(r["step_id"] == "step_9_mine" and r["status"] == "success" for r in run.records)
    assert list(run.to_frame()["step_id"]) == [r["step_id"] for r in run.records]
    run.reject()
    assert run.status == "done" and run.state["stop_reason"] == "stopped_by_reviewer" and run.answer
    assert [d["action"] for d in run.decisions] == ["edit", "reject"]
    with pytest.raises(NotPaused, match="is done"):
        run.approve()


def test_a_question_alone_is_alone_and_a_follow_up_is_shown_as_it_was_read(wb):
    first = wb.ask("《喜宴》是谁导演的？", kb="film")
    run = wb.ask("他还导演过哪些电影？", kb="film", session=first.session_id)
    assert "李安" in run.query or "Ang Lee" in run.query
    for shown in (repr(run), repr(wb.runs.list()), str(run), run._repr_mimebundle_()["text/html"]):
        assert run.query in shown
    assert (
        sum(title in run.answer for title in ("推手", "饮食男女", "卧虎藏龙", "Pushing Hands", "Crouching Tiger")) >= 2
    )
    follow_up = "他还导演过哪些电影？"

    async def elsewhere():
        _ = [event async for event in wb.start(follow_up, kb="film").aio.events()]
        return await wb.start(follow_up, kb="film").aio.wait()

    ends = [asyncio.run(elsewhere()), *wb.map([follow_up] * 2, kb="film"), wb.ask(follow_up, kb="film")]
    alone = [one for one in wb.runs.list() if one.session_id != first.session_id]
    assert [one.query for one in alone] == [follow_up] * 5 and len({one.session_id for one in alone}) == 5
    assert "理解为" in str(run) and not any("理解为" in str(one) or "read as" in repr(one) for one in ends)


SOURCES = {1: "kiln\nThe kiln was built in 1993 by Mei Lan.", 2: "glaze\nIt has iron.", 3: "茶馆\n《茶馆》由老舍写成。"}
SOURCES[4] = "tape\nA replay is exact, call by call:\nIt needs no network."


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("The kiln was built in 1993 [1].", "supported"), ("The kiln was built in 1883 [1].", "unsupported"),
        ("The kiln was not built in 1993 [1].", "unjudged"), ("The kiln was built in 1993.", "uncited"),
        ("The kiln was built in 1993 [2].", "unsupported"), ("《茶馆》由老舍写成 [3]。", "supported"),
        ("A replay is exact, call by call [4].", "supported"), ("《茶馆》不是老舍写成的 [3]。", "unjudged"),
        ("《茶馆》于1957年由老舍写成 [3]。", "unsupported"),
    ],
)  # fmt: skip
def test_a_statement_is_held_against_what_it_cites(said: str, verdict: str) -> None:
    [one] = checked(f"{said} The corpus does not say. What was it? These are:", SOURCES)
    assert one.verdict == verdict, one


def test_what_a_tool_of_ones_own_found_on_a_known_thing_answers(wb):
    @wb.tools.tool(intents={"qa"})
    def awards(query: str) -> list[str]:
        """Prizes, from a list of one's own."""
        return ["《喜宴》获得第 43 届柏林国际电影节最佳影片金熊奖。", "《推手》获得金马奖。"]

    run = wb.ask("《喜宴》得过什么奖？", kb="film")
    assert "金熊奖" in run.answer.splitlines()[0], "what else is quoted stands behind it, and names its own film"
    assert "awards" in run.evidence[run.citations[0]["n"] - 1]["metadata"]["tools"]


def test_a_question_that_was_stored_is_asked_once():
    told = {"message": QUESTION, "query": QUESTION, "history": [{"role": "user", "content": QUESTION}]}
    sent = messages({**told, "records": [], "merged": {"retrieval_results": []}}, memory_context())
    assert sum(QUESTION in text for _, text in sent) == 1


def test_events_reach_a_chat_client_in_order(wb):
    async def collect():
        return [event async for event in wb.start("喜宴哪一年上映？", kb="film").aio.events() if for_client(event)]

    events = asyncio.run(collect())
    statuses = [event["status"] for event in events]
    assert statuses[0] == "start" and statuses[-1] == "done" and "progress" in statuses
    assert "1993" in events[-1]["content"]["answer"]

    async def collect_all():
        return [event async for event in wb.start("喜宴哪一年上映？", kb="film", debug=True).aio.events()]

    events = asyncio.run(collect_all())
    nodes = [e["execution_log"]["node"] for e in events if "execution_log" in e]
    assert {"recall", "planner", "executor", "reflector", "merger", "generate", "persist"} <= set(nodes)
    counts = [e["content"] for e in events if e.get("status") == "progress" and e["content"]["agent_type"]]
    assert [(c["completed"], c["total"]) for c in counts] == [(n, len(counts)) for n in range(1, len(counts) + 1)]
    run = wb.runs.list()[0]
    kept, sent = debug_events(run), [e for e in events if "status" not in e]  # nodes that run at once end in any order
    assert sorted(map(repr, kept)) == sorted(map(repr, sent)), "what no client reads is kept under the run"
    names = {name for event in debug_events(run) for name in event}
    assert {"route_decision", "rag_runs", "combined_context", "retrieval_merged", "retrieval_step_done"} <= names
    (agent,) = next(e["rag_runs"] for e in debug_events(run) if "rag_runs" in e)
    assert agent["worker_name"] == run.state["route_decision"]["worker_name"]
    assert agent["retrieval_results"] == run.evidence


def test_a_question_that_is_refused_costs_the_others_nothing(wb):
    questions = ["When was Inception released?", "", "Who directed Memento?"]
    with pytest.raises(RunError) as refused:
        wb.map(questions, kb="film")
    first, last = (run for run in reversed(wb.runs.list()))
    assert {first.status, last.status} == {"done"}
    assert all(r.run_id in refused.value.__notes__[0] for r in (first, last))
    first, error, last = wb.map(questions, kb="film", return_exceptions=True)
    assert isinstance(error, RunError) and "2010" in first.answer and "Nolan" in last.answer


def test_handlers_and_agents_of_a_base(wb):
    async def count(state, context):
        return {"answer": f"{len(state['merged']['retrieval_results'])} pieces", "citations": []}

    wb.register("handler", count, kb="film")
    run = wb.ask("喜宴哪一年上映？", kb="film")
    assert run.answer == f"{len(run.evidence)} pieces"
    assert "generate" not in [entry["node"] for entry in run.log]

    async def at_once(state, context):
        return {"answer": "no need", "citations": []}

    wb.register("handler", at_once, kb="film", retrieve=False)
    run = wb.ask("喜宴哪一年上映？", kb="film")
    assert run.answer == wb.replay(run.run_id).answer == "no need" and not run.records
    assert {"planner", "merger"}.isdisjoint(entry["node"] for entry in run.log)
    wb.register("handler", None, kb="film")
    assert "1993" in wb.ask("喜宴哪一年上映？", kb="film").answer
    agent = wb.agents.get("film:hybrid_agent:retrieve_only")
    assert agent is wb.agents.get("film:hybrid_agent:retrieve_only") is wb.agents.get("film:hybrid_agent")
    found = agent.retrieve_with_trace("喜宴哪一年上映？", "session-1")
    assert set(found) == {"context", "retrieval_results", "reference", "execution_log"}
    assert found["context"] and {entry["thread_id"] for entry in found["execution_log"]} == {"session-1"}
    assert not hasattr(agent, "ask") and not hasattr(agent, "stream")
    with pytest.raises(ValueError, match="a:b:c:d"):
        wb.agents.get("a:b:c:d")


DAY = 86_400.0


def at(folder: Path, wall: float) -> Workbench:
    """Open the workspace at that time, with a tool that takes eight seconds of it, and a plan of two such steps."""
    clock = ManualClock(EPOCH + timedelta(seconds=wall))
    wb = Workbench.open(folder, embedding_model="hashing", rerank_model="none", max_iterations=9)
    wb._clock = clock

    @wb.tools.tool
    async def slow(query: str) -> list[str]:
        """Takes eight seconds."""
        clock.advance(8.0)
        return [f"{query} is a film."]

    def step(step_id: str, *behind: str) -> PlanStep:
        query, budget = {"query": step_id}, PlanBudget(timeout_s=20)
        return PlanStep(
            step_id=step_id, objective="", tool="slow", tool_input=query, depends_on=[*behind], budget=budget
        )

    @wb.register("planner")
    async def two(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        return Plan(steps=[step("s0"), step("s1", "s0")])

    return wb


def ends(folder: Path, walls: list[float]) -> dict[str, Any]:
    """Answer at each of these times in a session of its own; return what must not depend on them."""
    with at(folder, 0) as wb:
        fill(wb, TEXTS)
        run_id = wb.ask("Who directed it?", kb="notes", review=("plan", "reflect")).run_id
    for n, wall in enumerate(walls):
        with at(folder, wall) as wb:
            run = wb.run(run_id)
            assert len(run.reflections) == n, "seen while it waits"
            more = {"step_id": f"more_{n}", "objective": "", "tool": "slow", "tool_input": {"query": str(n)}}
            run.edit(next_steps=[more]) if 0 < n < 3 else run.approve()
            document = {**run.to_dict(), "stop": run.state.get("stop_reason")}
    told = ("step_id", "attempt", "status", "error", "duration_ms")
    return {
        "status": (document["status"], document["stop"], document["answer"]),
        "records": [[record[name] for name in told] for record in document["records"]],
        "budgets": [one["remaining_budget"] for one in document["reflections"]],
    }


def test_the_same_as_at_once_whatever_the_clock_says(tmp_path):
    at_once = ends(tmp_path / "now", [0.0] * 4)
    assert at_once["status"][0] == "done" and at_once["budgets"][0] == 14.0, "two steps of eight seconds in thirty"
    assert ends(tmp_path / "later", [30 * DAY, -DAY, 3 * DAY, 1.0]) == at_once, "forwards, then back"


QUESTION = "When was the Aldermoor kiln built?"


@pytest.fixture
def kilns(tmp_path: Path) -> Iterator[Workbench]:
    with Workbench.open(noted(tmp_path / "w", {"Kiln": "The Aldermoor kiln was built in 1993."}), **CORE) as opened:
        yield opened


@pytest.fixture
def run(kilns: Workbench) -> Any:
    return kilns.ask(QUESTION, kb="notes", session="kilns", user="ann")


def test_each_person_has_one_verdict_and_the_newest_holds(kilns, run) -> None:
    assert kilns.feedback(run=run.run_id) == [] == kilns.feedback()
    run.feedback(True, "zuerst\x00", arm="a").feedback(False, "too short", who="bob", hard=3, seen=None)
    assert run.feedback(False, "短", arm="b") is run
    bob, ann = kilns.feedback(run=run.run_id)
    assert (
        bob.items() >= {"who": "bob", "good": False, "note": "too short", "labels": {"hard": 3, "seen": None}}.items()
    )
    assert ann.items() >= {"who": "ann", "good": False, "note": "短", "labels": {"arm": "b"}, "user_id": "ann"}.items()
    assert ann.items() >= {"run_id": run.run_id, "question": QUESTION, "agent_type": "fusion_agent"}.items()
    assert (ann["session_id"], ann["message_id"]) == ("kilns", kilns.messages("kilns", "ann")[-1]["id"])
    assert ann["when"] > bob["when"]
    run.feedback(None)
    assert [one["who"] for one in kilns.feedback(run=run.run_id)] == ["bob"]
    kilns.ask("hello", user="bob").feedback(False, "<b>", topic="talk")
    table = kilns.feedback().to_frame()
    assert list(table["topic"].dropna()) == ["talk"] and "<b>" not in kilns.feedback()._repr_html_()
    assert [one["user_id"] for one in kilns.feedback(user="bob")] == ["bob"]
    kilns.runs.remove(run.run_id)
    assert [one["question"] for one in kilns.feedback(session="kilns")] == [QUESTION], "it outlives the run"
    kilns.clear("kilns", "ann")
    assert len(kilns.feedback()) == 1
    with pytest.raises(WorkbenchError, match="Name a session, a user"):
        kilns.clear()


def test_ratings_are_counted_by_kind_of_answer_and_agent(kilns, run, tmp_path) -> None:
    run.feedback(True).feedback(False, who="bob")
    kilns.ask(QUESTION, kb="notes", worker="notes:naive_rag_agent").feedback(True)
    ratings = kilns.feedback().ratings()
    by_agent = {row["agent_type"]: row for row in ratings}
    kind = run.state["answer_kind"]
    assert by_agent["fusion_agent"] == {"answer_kind": kind, "agent_type": "fusion_agent", "good": 1, "bad": 1} and kind
    assert (by_agent["naive_rag_agent"]["good"], by_agent["naive_rag_agent"]["bad"]) == (1, 0)
    assert json.loads(workbench(tmp_path / "w", "feedback", "--json").stdout)["ratings"] == ratings


def test_what_does_not_fit_is_refused(kilns, run) -> None:
    for given, said in (
        ({"good": "yes"}, "good is 'yes'. Give True, False, or None"),
        ({"note": "x" * 4_001}, "note has 4,001 characters; 4,000"),
        ({"arm": [1]}, r"label 'arm' is \[1\]"),
        ({"arm": float("nan")}, "label 'arm' is nan"),
    ):
        with pytest.raises(RunError, match=said):
            run.feedback(**{"good": True, **given})
    assert kilns.feedback(run=run.run_id) == []


def test_in_the_terminal(kilns, run) -> None:
    cli = partial(workbench, kilns.path, "feedback")
    assert "Nothing was said yet" in cli().stderr
    kept = json.loads(cli(run.run_id, "--bad", "--note", "太短\x1b[2J", "--json").stdout)["feedback"]
    assert [one["good"] for one in kept] == [False]
    shown = cli()
    assert shown.returncode == 0 and run.run_id in shown.stdout
    assert "太短" in shown.stdout and "\x1b" not in shown.stdout
    assert json.loads(cli("--json").stdout)["feedback"] == kept
    for wrong in (["--good"], [run.run_id, "--good", "--withdraw"], [run.run_id, "--note", "x"]):
        assert cli(*wrong).returncode == 2
    assert "Unknown run 'nobody'" in cli("nobody", "--good").stderr
    assert cli(run.run_id, "--withdraw").returncode == 0 and kilns.feedback(run=run.run_id) == []
