"""What holds for every input: plans, reducers, running to the end, lines of a corpus.

``HYPOTHESIS_PROFILE=long pytest tests/test_properties.py`` draws many more.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import PlanError
from workbench.graphs.execute import make_record, unended
from workbench.graphs.retrieval import next_wave
from workbench.plans import Plan, PlanBudget, PlanStep, last_records, unkeepable
from workbench.state import keyed
from workbench.tools.registry import ToolRegistry

TEXT = st.text(st.characters(), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
TOOLS = ToolRegistry()


@st.composite
def dags(draw: st.DrawFn) -> Plan:
    """A plan without a fault, its steps in any order."""
    steps = []
    for n in range(draw(st.integers(0, 9))):
        before = sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else []
        more: Any = {
            "tool": draw(st.sampled_from(["naive_search", "local_search"])),
            "priority": draw(st.integers(1, 3)),
            "condition": draw(st.sampled_from(["always", "always", "if_insufficient"])),
            "budget": PlanBudget(max_retries=draw(st.integers(0, 2))),
        }
        depends_on = [f"s{b}" for b in before]
        steps.append(PlanStep(step_id=f"s{n}", objective="o", tool_input={"query": "q"}, depends_on=depends_on, **more))
    mode = draw(st.sampled_from(["sequential", "parallel", "adaptive"]))
    return Plan(steps=draw(st.permutations(steps)), execution_mode=mode)


@given(dags())
def test_a_plan_comes_back_from_its_json_and_differs_in_nothing(plan: Plan) -> None:
    again = Plan.load(json.loads(json.dumps(plan.dump())))
    assert again == plan and again.plan_id == plan.plan_id == plan.model_copy(update={"version": 7}).plan_id
    assert plan.diff(again) == {"added": [], "removed": [], "changed": {}, "plan": {}}
    assert plan.problems() == []


@given(dags(), st.data())
def test_a_cycle_is_named_and_never_ordered(plan: Plan, data: st.DataObject) -> None:
    pairs = [(s.step_id, d) for s in plan.steps for d in s.depends_on]
    if not pairs:
        return
    late, early = data.draw(st.sampled_from(pairs))
    bad = plan.replace(early, depends_on=[*plan.step(early).depends_on, late])
    assert any("Cycle" in p["message"] for p in bad.problems())
    with pytest.raises(PlanError, match="Cycle"):
        bad.topological_order()


def test_a_value_in_itself_is_refused() -> None:
    inside: dict = {}
    inside["again"] = inside
    assert "nested deeper" in unkeepable(inside)


ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(0, 4), "v": st.integers()}), max_size=8)


@given(ROWS, ROWS)
def test_a_reducer_doubles_nothing_keeps_the_order_and_lets_the_newest_win(old: list, new: list) -> None:
    reduce = keyed("id")
    once = reduce(reduce(None, old), new)
    assert reduce(once, new) == once
    assert [r["id"] for r in once] == list(dict.fromkeys(r["id"] for r in [*old, *new]))
    assert {r["id"]: r["v"] for r in once} == {r["id"]: r["v"] for r in [*old, *new]}


@given(ROWS)
def test_the_last_attempt_counts_in_whatever_order_records_come(rows: list) -> None:
    step = PlanStep(step_id="a", objective="", tool="t")
    records = [make_record(step, attempt, 1, "skipped", "") for attempt in dict.fromkeys(r["v"] for r in rows)]
    assert last_records(records) == last_records(reversed(records))


@given(dags(), st.data())
def test_every_step_ends_once_and_nothing_waits_for_ever(plan: Plan, data: st.DataObject) -> None:
    records, activated = [], data.draw(st.sets(st.sampled_from([s.step_id for s in plan.steps] or ["x"])))
    state = {"plan": plan.dump(), "iteration": 1, "activated": sorted(activated)}
    for _ in range(100):
        reasons = plan.blocked_steps(records, activated)
        assert not reasons.keys() & {step.step_id for step in plan.ready_steps(records, activated)}
        records += [make_record(plan.step(i), 1, 1, "skipped", "", reason=why) for i, why in reasons.items()]
        wave = next_wave(plan, records, activated, TOOLS)
        if not wave:
            break
        assert len(wave) == 1 or plan.execution_mode != "sequential"
        for step in wave:
            attempt = last_records(records).get(step.step_id, {"attempt": 0})["attempt"] + 1
            status = data.draw(st.sampled_from(["success", "partial", "failed", "timeout", "cancelled"]))
            records.append({**make_record(step, attempt, 1, "skipped", ""), "status": status})
    ends = plan.ends(records)
    left = unended({**state, "records": records}, "over", stops=True)
    assert set(ends) | set(left) == set(plan.by_id()) and not set(ends) & set(left)
    assert len({(r["step_id"], r["attempt"]) for r in records}) == len(records)
    unasked = {s.step_id for s in plan.steps if s.condition == "if_insufficient" and s.step_id not in activated}
    for waiting in left:
        assert waiting in unasked or any(d in left for d in plan.step(waiting).dependencies())
