"""Reflection: what is seen, what is enough, what is proposed, and when it stops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.handmade import record
from tests.test_retrieval_graph import piece
from workbench.graphs.needs import LinkedName, Supply, is_enough, signals, thresholds
from workbench.graphs.reflect import Proposal, propose
from workbench.graphs.retrieval import build_retrieval
from workbench.language.quoting import weights
from workbench.plans import Plan, PlanStep, call_key, calls
from workbench.testing import FixedPlanner, MemoryKnowledge, memory_context
from workbench.tools.registry import ToolRegistry

TOOLS = ToolRegistry()
BANQUET = LinkedName(
    "The Wedding Banquet", ("the wedding banquet", "喜宴"), frozenset({"f1"}), frozenset({"f1#0", "f9#0"})
)
EAT = LinkedName(
    "Eat Drink Man Woman", ("eat drink man woman", "饮食男女"), frozenset({"f2"}), frozenset({"f2#0", "f9#0"})
)


def seen(**changes: Any) -> dict[str, Any]:
    base = {
        "evidence_count": 20, "top_score": 0.9, "coverage": [], "unknown": [], "missing": [], "timeouts": [],
        "failures": [], "iteration": 1, "time_left_s": 25.0, "thresholds": {"min_evidence": 5, "min_top_score": 0.4},
    }  # fmt: skip
    return {**base, **changes}


def plan(*steps: PlanStep) -> Plan:
    return Plan(steps=list(steps))


HYBRID = PlanStep(step_id="step_0_hybrid", objective="o", tool="hybrid_search", tool_input={"query": "喜宴 上映"})
NAIVE = PlanStep(
    step_id="step_1_naive",
    objective="o",
    tool="naive_search",
    tool_input={"query": "喜宴 上映", "top_k": 30},
    depends_on=["step_0_hybrid"],
    condition="if_insufficient",
)
DONE = record("step_0_hybrid", "hybrid_search", 0, 10, 2, raw_input={"query": "喜宴 上映"})


def proposed(query: str = "喜宴 上映", of: Plan | None = None, records=(DONE,), tools=tuple(TOOLS), **more: Any):
    state, one_step = more.pop("state", {}), more.pop("one_step", False)
    return propose(Proposal(query, of or plan(HYBRID, NAIVE), seen(**state), records, tools, **more), 3, one_step)


@pytest.mark.parametrize(
    ("intent", "overrides", "supply", "least"),
    [
        ("qa", {}, {"passages": 1000}, {"min_evidence": 5, "min_top_score": 0.4}),
        ("recommend", {}, {"passages": 1000}, {"min_evidence": 10, "min_top_score": 0.6}),
        ("compare", {}, {"passages": 1000}, {"min_evidence": 8, "min_top_score": 0.5}),
        ("list", {}, {"passages": 1000}, {"min_evidence": 15, "min_top_score": 0.7}),
        ("person", {}, {"passages": 1000}, {"min_evidence": 5, "min_top_score": 0.5}),
        ("list", {}, {"passages": 1000, "relevant": 2}, {"min_evidence": 2}),
        ("list", {}, {"passages": 1000, "relevant": 0}, {"min_evidence": 1}),
        ("qa", {"min_evidence": 40}, {"passages": 3}, {"min_evidence": 3}),
        ("recommend", {}, {"passages": 4}, {"min_candidates": 3}),
        ("qa", {"min_evidence": 9, "min_top_score": 0.9}, {"passages": 100, "relevant": 2}, {"min_evidence": 9}),
    ],
)
def test_how_much_is_enough(intent, overrides, supply, least) -> None:
    enough = thresholds(intent, overrides, Supply(intent, **supply))
    assert least.items() <= enough.items() and enough["min_probability"] == weights()["sure"]


def test_each_side_of_a_comparison_is_counted_and_a_name_inside_another_word_is_not_that_name() -> None:
    wanted = Supply("compare", (BANQUET, EAT), passages=100)
    evidence = [piece("f1#0", 0.9), piece("x#0", 0.5, "like The Wedding Banquet"), piece("f2#0", 0.6)]
    found = signals(wanted, evidence, [], thresholds("compare", {}, wanted))
    assert [(side["found"], side["needed"]) for side in found["coverage"]] == [(2, 2), (1, 2)]
    assert found["missing"] == ["Eat Drink Man Woman"] and not is_enough(found)
    hulk = LinkedName("Hulk", ("hulk",), frozenset({"h"}))
    assert not hulk.covered_by(piece("x#0", 0.5, "a hulking man")) and hulk.covered_by(piece("x#0", 0.5, "The Hulk!"))


FILM = {**piece("x#0", 0.9), "metadata": {**piece("x#0", 0.9)["metadata"], "fields": {"year": 1990}}}
BOTH = {"f1": "The Wedding Banquet", "f2": "Eat Drink Man Woman"}


@pytest.mark.parametrize(
    ("supply", "evidence", "holds", "enough"),
    [
        (
            Supply("recommend", (BANQUET,), passages=100), [piece(f"f{n}#0", 0.8) for n in (1, 2, 3)],
            {"candidates": 2}, False,
        ),
        (Supply("recommend", passages=100), [piece(f"note{n}#0", 0.8) for n in range(3)], {"candidates": 3}, False),
        (
            Supply("list", passages=100, relevant=2, matching=BOTH), [piece("f1#0", 0.9), piece("x#0", 0.9)],
            {"holding": 1, "missing": ["Eat Drink Man Woman"]}, False,
        ),
        (
            Supply("list", passages=100, relevant=1, matching={"f1": "The Wedding Banquet"}), [piece("f1#0", 0.5)],
            {"complete": True}, True,
        ),
        (Supply("list", passages=100, relevant=0, matching={}), [FILM], {"complete": False}, False),
        (Supply("list", passages=100, relevant=0, matching={}), [piece("note#0", 0.9)], {}, True),
    ],
    ids=["named", "no fields", "one is missing", "all there are", "none holds", "texts hold no filter"],
)  # fmt: skip
def test_candidates_and_filters_are_counted(supply, evidence, holds, enough) -> None:
    found = signals(supply, evidence, [], thresholds(supply.intent, {}, supply))
    assert holds.items() <= found.items() and is_enough(found) is enough


NAMES = {"writings": ["喜宴", "The Wedding Banquet"]}
LOST = {"answered": False, "missing_fields": [["喜宴", "片长"]]}
COUNT = {"need": "at least 3 sources", "kind": "count", "met": 0.33, "said": "open"}
NEEDS = [
    {"need": "Inception", "kind": "name", "met": 1.0, "said": ""},
    {"need": "budget", "kind": "words", "met": 0.1, "said": ""},
]
UNSURE = {"answered": False, "probability": 0.1, "thresholds": {**seen()["thresholds"], "min_probability": 0.5}}
NOTHING = {"evidence_count": 0, "top_score": 0.0}
NAIVE_DONE = record("step_1_naive", "naive_search", 0, 1, 0, raw_input=NAIVE.tool_input)
PROPOSALS = {  # what is seen, further arguments -> steps as (tool, input), activated steps, why it stops
    "enough": ({}, {}, [], [], "quality_satisfied"),
    "enough in the last pass": ({"iteration": 3}, {}, [], [], "quality_satisfied"),
    "too little": ({"evidence_count": 2}, {}, [], ["step_1_naive"], None),
    "no fallback": (
        {"evidence_count": 2},
        {"of": plan(HYBRID)},
        [("naive_search", {"query": "喜宴 上映", "top_k": 30})],
        [],
        None,
    ),
    "low": (
        {"top_score": 0.1},
        NAMES,
        [("hybrid_search", {"query": "喜宴 上映 The Wedding Banquet", "top_k": 100})],
        [],
        None,
    ),
    "low again": ({"top_score": 0.1, "iteration": 2}, NAMES, [], [], "no_further_action"),
    "missing field": (LOST, {}, [("local_search", {"query": "喜宴 片长", "entities": ["喜宴"]})], [], None),
    "missing words": ({**UNSURE, "needs": NEEDS}, {}, [], [], "no_further_action"),
    "missing side": ({"missing": ["Hulk"]}, {}, [("local_search", {"query": "Hulk", "entities": ["Hulk"]})], [], None),
    "a person counts": ({"needs": [COUNT]}, {}, [], ["step_1_naive"], None),
    "and no more": ({"needs": [{**COUNT, "said": "struck"}]}, {}, [], [], "quality_satisfied"),
    "last pass": ({**NOTHING, "iteration": 3}, {}, [], [], "max_iterations_reached"),
    "no time": ({**NOTHING, "time_left_s": 0.0}, {}, [], [], "budget_exhausted"),
    "one step": (NOTHING, {"one_step": True, "rewritten": "other"}, [], [], "no_further_action"),
    "nothing left": (
        {**NOTHING, "thresholds": {"min_evidence": 0, "min_top_score": 0.0}},
        {"records": [DONE, NAIVE_DONE]},
        [],
        [],
        "no_further_action",
    ),
}


@pytest.mark.parametrize("name", PROPOSALS)
def test_what_is_seen_decides_what_is_proposed(name) -> None:
    state, more, steps, activate, stop = PROPOSALS[name]
    reflection = proposed(state=state, **more)
    assert [(step["tool"], step["tool_input"]) for step in reflection["next_steps"]] == steps
    assert (reflection["activate"], reflection["stop_reason"]) == (activate, stop)
    assert reflection["should_continue"] == (stop is None) and reflection["max_iterations"] == 3


def test_a_rewritten_query_is_searched_for_and_a_source_outside_is_asked() -> None:
    reflection = proposed(state={"top_score": 0.1}, rewritten="喜宴 The Wedding Banquet")
    assert reflection["rewrite_query"] == "喜宴 The Wedding Banquet"
    assert [s["tool"] for s in reflection["next_steps"]] == ["hybrid_search"]
    asked = proposed(state=LOST, enrich=True)["next_steps"]
    assert [step["tool"] for step in asked] == ["local_search", "enrichment"]
    assert asked[1]["tool_input"]["names"] == ["喜宴"]


@pytest.mark.parametrize(
    ("tool", "simpler"),
    [
        ("global_search", "local_search"),
        ("local_search", "naive_search"),
        ("naive_search", "keyword_search"),
        ("awards", "naive_search"),
    ],
)
@pytest.mark.parametrize(("how", "status"), [("timeouts", "timeout"), ("failures", "failed")])
def test_what_did_not_end_well_degrades(tool, simpler, how, status) -> None:
    late = record("step_0", tool, 0, 10, 0, status=status, raw_input={"query": "q"})
    step = PlanStep(step_id="step_0", objective="o", tool=tool, tool_input={"query": "q"})
    reflection = proposed("q", plan(step), [late], state={"evidence_count": 6, "top_score": 0.1, how: ["step_0"]})
    assert [s["tool"] for s in reflection["next_steps"]] == [simpler]


def test_the_same_call_is_never_made_twice_and_a_skipped_step_was_none() -> None:
    ran = PlanStep(step_id="s", objective="o", tool="naive_search", tool_input={"query": "Ang Lee ", "top_k": 5})
    done = record("s", "naive_search", 0, 1, 0, raw_input={"query": "Ang Lee ", "top_k": 5})
    reflection = proposed("ang lee", plan(ran), [done], state={"evidence_count": 0, "iteration": 2})
    assert not reflection["should_continue"] and reflection["stop_reason"] == "no_further_action"
    skipped = record("step_1_naive", "naive_search", 0, 0, 0, status="skipped", raw_input=NAIVE.tool_input)
    call = call_key("naive_search", NAIVE.tool_input)
    assert call not in calls(plan(HYBRID, NAIVE), [skipped]) and call not in calls(plan(HYBRID, NAIVE), [])
    assert call in calls(plan(HYBRID, NAIVE), [], ["step_1_naive"])


def test_when_every_step_failed_and_nothing_is_left_it_is_an_error() -> None:
    failed = record("k", "keyword_search", 0, 1, 0, status="failed", raw_input={"query": "q"})
    step = PlanStep(step_id="k", objective="o", tool="keyword_search", tool_input={"query": "q"})
    state = {**NOTHING, "failures": ["k"]}
    assert proposed("q", plan(step), [failed], ["keyword_search"], state=state)["stop_reason"] == "error"


NOTES = {
    "Hulk": "Hulk is a 2003 superhero film directed by Ang Lee.",
    "Tenet": "Tenet is a 2020 science fiction film directed by Christopher Nolan.",
    "Rice": "Boil the rice for twelve minutes.",
}


async def retrieved(query: str, names: list[str], *steps: PlanStep, agent: str = "fusion_agent", **more: Any) -> Any:
    decision = {
        "query_intent": more.pop("intent", "qa"),
        "filters": {},
        "extracted_entities": {"low_level": names, "high_level": []},
        "worker_name": f"notes:{agent}:retrieve_only",
        "kb_prefix": "notes",
    }
    state = {
        "run_id": "r", "query": query, "kb_prefix": "notes", "kb_prefixes": ["notes"], "review": [], "iteration": 1,
    }  # fmt: skip
    context = memory_context([MemoryKnowledge("notes", NOTES)], planner=FixedPlanner(plan(*steps)), **more)
    graph = build_retrieval().compile()
    return await graph.ainvoke(
        {**state, "route_decision": decision, "resolved_agent_type": agent, "thresholds": {}}, context=context
    )


def search(tool: str, query: str) -> PlanStep:
    return PlanStep(step_id="step_0", objective=query, tool=tool, tool_input={"query": query})


@pytest.mark.parametrize(
    ("query", "names", "searched", "more", "stop", "most"),
    [
        ("Who directed Hulk?", ["Hulk"], "Who directed Hulk?", {}, "quality_satisfied", 1),
        ("Who directed Parasite?", ["Parasite"], "Who directed Parasite?", {}, "no_further_action", 2),
        ("quantum chromodynamics", [], "quantum chromodynamics", {}, "no_further_action", 2),
        ("quantum", [], "quantum", {"agent": "naive_rag_agent"}, "no_further_action", 1),
        ("Compare Hulk and Tenet", ["Hulk", "Tenet"], "Hulk", {"intent": "compare"}, None, 3),
    ],
)
async def test_the_node_judges_until_it_is_enough_or_nothing_is_left(query, names, searched, more, stop, most) -> None:
    state = await retrieved(query, names, search("keyword_search", searched), **more)
    first = state["reflections"][0]
    assert state["iteration"] <= most and stop in (None, state["stop_reason"])
    assert not any(reflection["rewrite_query"] for reflection in state["reflections"])
    assert first["signals"]["unknown"] == [name for name in names if name not in NOTES]
    if "quantum" in query:
        assert state["merged"]["context"] == "" and state["merged"]["statistics"]["total_evidence_count"] == 0
    if stop is None:
        assert first["signals"]["missing"] == ["Tenet"]
        assert "local_search" in [step["tool"] for step in first["next_steps"]]
