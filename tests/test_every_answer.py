"""Every answer at every review point, in any order, many times: valid ones keep what holds, others change nothing."""

import math
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shelves import fill
from tests.test_models import TEXTS
from tests.test_retrieval_graph import Desk
from workbench.errors import InvalidAnswer
from workbench.plans import Plan, PlanStep
from workbench.runs.run import Run
from workbench.session import Workbench

MOST_ANSWERS = 6
MOST_PAUSES = 80
WORDS = ["Ang Lee", "1993", "喜宴", "Memento film", "x" * 2_000, "a\ud800\x00b", "<script>", "\u202eabc"]


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Three notes, the tools of a desk, and a planner whose steps ask the query."""
    folder = tmp_path_factory.mktemp("answers")
    with Workbench.open(folder, embedding_model="hashing", rerank_model="none") as opened:
        fill(opened, TEXTS)
        Desk(opened)

        @opened.register("planner")
        async def three(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
            steps = [
                step("step_0_a", query),
                step("step_1_b", query, tool="broken"),
                step("step_2_c", query + " more", "step_0_a"),
                step("step_3_d", query + " again", condition="if_insufficient"),
            ]
            return Plan(problem_statement=query, steps=steps)

        yield opened


def step(step_id: str, query: str, *depends_on: str, tool: str = "found", **more: Any) -> PlanStep:
    given = {"tool_input": {"query": query}, "depends_on": list(depends_on), **more}
    return PlanStep(step_id=step_id, objective="", tool=tool, **given)


def new_step(draw: Any, plan: Plan) -> dict[str, Any]:
    """A step that the plan does not have, behind some of those that it has."""
    behind = draw(st.lists(st.sampled_from(list(plan.by_id())), max_size=2, unique=True)) if plan.steps else []
    name = f"mine_{uuid.uuid4().hex[:6]}"
    tool = draw(st.sampled_from(["found", "broken", "naive_search"]))
    return step(name, draw(st.sampled_from(["Ang Lee", "film", "喜宴"])), *behind, tool=tool).model_dump(mode="json")


@st.composite
def valid(draw: Any, run: Run) -> dict[str, Any]:
    point, plan = run.review["point"], run.plan
    kind = draw(st.sampled_from(["approve", "approve", "edit", "edit", "edit", "reject", "respond"]))
    note = draw(st.sampled_from(["", "why not"]))
    if kind == "respond":
        return {"decisions": [{"type": kind, "message": draw(st.sampled_from(WORDS))}], "note": note}
    if kind != "edit":
        return {"decisions": [{"type": kind}], "note": note}
    thresholds = {"min_evidence": draw(st.integers(0, 40)), "min_top_score": draw(st.floats(0, 1))}
    if point == "reflect":
        choices = [
            {"thresholds": thresholds},
            {"next_steps": [new_step(draw, plan)]},
            {"rewrite_query": draw(st.sampled_from(WORDS))},
            {"should_continue": draw(st.booleans())},
            {"activate": [s.step_id for s in plan.steps if s.condition == "if_insufficient"]},
            {},
        ]
    else:
        started = {r["step_id"] for r in run.records}
        open_ones = [s.step_id for s in plan.steps if s.step_id not in started]
        less = plan.without(*open_ones[:1])
        if any(less.step(i) != plan.step(i) for i in started & {*less.by_id()}):
            less = plan  # what has run behind the step that goes may not change
        more = plan.dump() | {"steps": [*plan.dump()["steps"], new_step(draw, plan)]}
        choices = [
            {"thresholds": thresholds},
            {"query": draw(st.sampled_from(WORDS))},
            {"plan": more},
            {"plan": less.dump()},
            {"plan": plan.dump() | {"version": 99}, "query": "Ang Lee"},
            {},
        ]
    args = draw(st.sampled_from(choices))
    return {"decisions": [{"type": "edit", "edited_action": {"name": point, "args": args}}], "note": note}


def edit(point: str, **args: Any) -> dict[str, Any]:
    return {"decisions": [{"type": "edit", "edited_action": {"name": point, "args": args}}]}


def invalid(run: Run) -> list[tuple[Any, str]]:
    """Answers that do not fit, each with what the refusal must say."""
    point, plan, records = run.review["point"], run.plan, run.records
    other = "plan" if point == "reflect" else "reflect"
    one = {"type": "approve"}
    field = "next_steps" if point == "reflect" else "plan"
    start = "$.decisions[0].edited_action"

    def steps(*made: PlanStep | dict[str, Any]) -> Any:
        listed = [s.model_dump(mode="json") if isinstance(s, PlanStep) else s for s in made]
        return listed if point == "reflect" else plan.dump() | {"steps": [*plan.dump()["steps"], *listed]}

    place = len(plan.steps) if point != "reflect" else 0
    at = f"{start}.args.{field}[{place}]" if point == "reflect" else f"{start}.args.plan.steps[{place}]"
    nowhere = step("new", "x", tool="naive_search", tool_input={"query": "x", "kb_prefix": "nowhere"})
    cones = step("new", "x", tool="discover", tool_input={"conditions": [{"field": "cones", "value": 1}]})
    found: list[tuple[Any, str]] = [
        (edit(point, **{field: steps(nowhere)}), f"{at}.tool_input: new: Unknown knowledge base 'nowhere'"),
        (edit(point, **{field: steps(cones)}), "new: The documents have no field 'cones'"),
        (None, "$: an answer is"),
        ({}, "$: an answer is"),
        ("approve", "this is a str"),
        ({"decisions": {1, 2}}, "an answer is JSON"),
        ({"decisions": [reduce(lambda inner, _: {"a": inner}, range(5_000), {})]}, "nested too deeply"),
        ({"decisions": "approve"}, "$.decisions"),
        ({"decisions": []}, "$.decisions"),
        ({"decisions": [one, one]}, "$.decisions"),
        ({"decisions": [one], "notes": "x"}, "$.notes: there is no such thing here. Known: decisions, note, who."),
        ({"decisions": [one], "note": 5}, "$.note"),
        ({"decisions": [{"type": "aprove"}]}, "'approve', 'edit', 'reject' or 'respond'"),
        ({"decisions": [{**one, "foo": 1}]}, "$.decisions[0].foo"),
        ({"decisions": [{**one, "edited_action": {"name": point, "args": {}}}]}, "only an edit has"),
        ({"decisions": [{"type": "respond"}]}, "$.decisions[0].message: a response needs a message"),
        ({"decisions": [{"type": "respond", "message": " \n"}]}, "$.decisions[0].message"),
        ({"decisions": [{"type": "respond", "message": "x" * 20_000}]}, "at most 10000 characters"),
        ({"decisions": [{"type": "respond", "message": "x" * 2_000_000}]}, "1,000,000 are the most"),
        ({"decisions": [{"type": "edit"}]}, "$.decisions[0].edited_action: an edit needs"),
        (edit(other), f"{start}.name: {other!r} is not what is asked; it is {point!r}"),
        (edit(point, foo=1), f"{start}.args.foo: there is no such thing here. Known:"),
        (edit(point, thresholds={"min_evidence": -1}), f"{start}.args.thresholds.min_evidence"),
        (edit(point, thresholds={"min_evidence": 10**400}), f"{start}.args.thresholds.min_evidence: the number is too"),
        (edit(point, thresholds={"min_top_score": math.nan}), f"{start}.args.thresholds.min_top_score"),
        (edit(point, thresholds={"min_top": 1}), "Known: min_evidence, min_top_score, min_probability."),
        (edit(point, **{field: 5}), f"{start}.args.{field}"),
        (edit(point, **{field: steps(step("new", "x", tool="rm_rf"))}), f"{at}.tool: new: unknown tool 'rm_rf'"),
        (edit(point, **{field: steps(step("new", "x", "nowhere"))}), f"{at}.depends_on"),
        (edit(point, **{field: steps(step("new", "x", "new"))}), "Cycle: new -> new"),
        (edit(point, **{field: steps({"step_id": "new"})}), f"{at}.objective"),
        (edit(point, **{field: steps(step(" ", "x"))}), "has no id"),
        (edit(point, **{field: steps(step("new", "x", budget={"timeout_s": -1}))}), f"{at}.budget.timeout_s"),
        (edit(point, **{field: steps(step("new", "x"), step("new", "y"))}), "is used twice"),
    ]
    if point == "reflect":
        found.append((edit(point, activate=["nowhere"]), f"{start}.args.activate[0]: 'nowhere' is not in the plan."))
    else:
        found.append((edit(point, query=" "), f"{start}.args.query"))
    if records and point != "reflect":
        ran = records[0]["step_id"]
        changed = plan.replace(ran, objective="history rewritten")
        found.append((edit(point, plan=changed.dump()), f"{ran} has already run."))
        found.append((edit(point, plan=plan.without(ran).dump()), f"{ran} has already run."))
    return found


def kept(run: Run) -> dict[str, Any]:
    """Everything that is written down of a run."""
    return {"plans": run.plans, "records": run.records, "decisions": run.decisions, "log": run.log}


def refused(run: Run, given: Any, words: str) -> None:
    """The answer is refused with these words, and nothing at all has changed."""
    before, asked = kept(run), run.review
    with pytest.raises(InvalidAnswer) as raised:
        run.answer_review(given)
    said = str(raised.value)
    assert words in said, said[:500]
    assert "$" in said and len(said) < 6_000
    assert run.status == "paused" and run.review == asked and run.error is None
    assert kept(run) == before


def grown(run: Run, before: dict[str, Any], answers: int) -> None:
    """What was written down is still there, and what is new is in order."""
    now = kept(run)
    for name, old in before.items():
        assert now[name][: len(old)] == old, f"{name} was rewritten"
    assert [row["version"] for row in now["plans"]] == list(range(1, len(now["plans"]) + 1))
    assert all(row["plan"].version == row["version"] for row in now["plans"])
    assert [d["review_id"] for d in now["decisions"]] == [f"{n}-{d['point']}" for n, d in enumerate(now["decisions"])]
    assert len(now["decisions"]) == answers
    assert len({(r["step_id"], r["attempt"]) for r in now["records"]}) == len(now["records"])
    assert run.error is None and run.status in ("paused", "done")


def ended(run: Run) -> None:
    """Every step of the last plan has exactly one end, and the run says truly how it went."""
    assert run.status == "done" and run.answer and run.review is None and run.state["stop_reason"]
    assert run.log[-1]["node"] == "persist"
    ends = run.plan.ends(run.records)
    assert set(run.plan.by_id()) <= set(ends)
    counts = Counter(r["step_id"] for r in run.records if r["status"] not in ("failed", "timeout"))
    assert set(counts.values()) <= {1}
    for record in run.records:
        if record["tool"] == "broken":
            assert record["status"] in ("failed", "skipped")
        if record["status"] == "failed":
            assert "down" in record["error"]


@settings(max_examples=8)
@given(data=st.data())
def test_any_answers_in_any_order(wb: Workbench, data: st.DataObject) -> None:
    points = data.draw(st.sampled_from([True, ["plan"], ["step"], ["reflect"], ["plan", "reflect"]]))
    run = wb.ask("Who directed it?", kb="notes", review=points, session=uuid.uuid4().hex)
    answers = pauses = 0
    while run.status == "paused":
        pauses += 1
        assert pauses < MOST_PAUSES, "the run does not end"
        if answers < MOST_ANSWERS and data.draw(st.booleans()):
            refused(run, *data.draw(st.sampled_from(invalid(run))))
            continue
        before = kept(run)
        fits = {"decisions": [{"type": "approve"}]} if answers >= MOST_ANSWERS else data.draw(valid(run))
        run.answer_review(fits)
        answers += 1
        grown(run, before, answers)
    ended(run)


@pytest.mark.parametrize("point", ["plan", "step", "reflect"])
def test_every_wrong_answer_at_every_point(wb: Workbench, point: str) -> None:
    run = wb.ask("Who directed it?", kb="notes", review=point, session=uuid.uuid4().hex)
    if point == "step":
        run.approve()
    assert run.review["point"] == point and (run.records or point == "plan")
    wrong = invalid(run)
    for given_, words in wrong:
        refused(run, given_, words)
    while run.status == "paused":
        run.approve()
    ended(run)
