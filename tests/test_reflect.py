"""Reflection: what is seen, what is enough, what is proposed, and when it stops."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.graphs.needs import LinkedName, Supply, is_enough, signals, thresholds
from workbench.graphs.reflect import Proposal, propose
from workbench.graphs.retrieval import build_retrieval
from workbench.language.quoting import weights
from workbench.plans import Plan, PlanStep, call_key, calls
from workbench.testing import FixedPlanner, MemoryKnowledge, memory_context
from workbench.tools.registry import ToolRegistry, check

from .handmade import record
from .test_merge import piece

TOOLS = ToolRegistry()
BANQUET = LinkedName(
    "The Wedding Banquet", ("the wedding banquet", "喜宴"), frozenset({"f1"}), frozenset({"f1#0", "f9#0"})
)
EAT = LinkedName(
    "Eat Drink Man Woman", ("eat drink man woman", "饮食男女"), frozenset({"f2"}), frozenset({"f2#0", "f9#0"})
)


def seen(**changes: Any) -> dict[str, Any]:
    base = {
        "evidence_count": 20,
        "top_score": 0.9,
        "coverage": [],
        "unknown": [],
        "missing": [],
        "timeouts": [],
        "failures": [],
        "iteration": 1,
        "time_left_s": 25.0,
        "thresholds": {"min_evidence": 5, "min_top_score": 0.4},
    }
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


# --- how much is enough ---


@pytest.mark.parametrize(
    ("intent", "evidence", "score"),
    [("qa", 5, 0.4), ("recommend", 10, 0.6), ("compare", 8, 0.5), ("list", 15, 0.7), ("person", 5, 0.5)],
)
def test_the_table(intent, evidence, score) -> None:
    enough = thresholds(intent, {}, Supply(intent, passages=1000))
    assert (enough["min_evidence"], enough["min_top_score"]) == (evidence, score)


def test_nothing_is_asked_for_that_is_not_there() -> None:
    assert thresholds("list", {}, Supply("list", passages=1000, relevant=2))["min_evidence"] == 2
    assert thresholds("qa", {"min_evidence": 40}, Supply("qa", passages=3))["min_evidence"] == 3
    assert thresholds("recommend", {}, Supply("recommend", passages=4))["min_candidates"] == 3
    assert thresholds("list", {}, Supply("list", passages=1000, relevant=0))["min_evidence"] == 1


def test_what_a_person_sets_wins() -> None:
    enough = thresholds("qa", {"min_evidence": 9, "min_top_score": 0.9}, Supply("qa", passages=100, relevant=2))
    assert enough == {"min_evidence": 9, "min_top_score": 0.9, "min_probability": weights()["sure"]}


# --- what is seen ---


def test_each_side_of_a_comparison_is_counted() -> None:
    wanted = Supply("compare", (BANQUET, EAT), passages=100)
    evidence = [piece("f1#0", 0.9), piece("x#0", 0.5, "like The Wedding Banquet"), piece("f2#0", 0.6)]
    found = signals(wanted, evidence, [], thresholds("compare", {}, wanted))
    assert found["coverage"] == [
        {"name": "The Wedding Banquet", "found": 2, "needed": 2},
        {"name": "Eat Drink Man Woman", "found": 1, "needed": 2},
    ]
    assert found["missing"] == ["Eat Drink Man Woman"] and not is_enough(found)


def test_a_name_inside_another_word_is_not_that_name() -> None:
    hulk = LinkedName("Hulk", ("hulk",), frozenset({"h"}))
    assert not hulk.covered_by(piece("x#0", 0.5, "a hulking man"))
    assert hulk.covered_by(piece("x#0", 0.5, "The Hulk!"))


def test_recommendations_need_candidates_that_the_question_did_not_name() -> None:
    wanted = Supply("recommend", (BANQUET,), passages=100)

    evidence = [piece(f"f{n}#0", 0.8) for n in (1, 2, 3)]
    assert signals(wanted, evidence, [], thresholds("recommend", {}, wanted))["candidates"] == 2


def test_documents_without_typed_fields_are_candidates_too() -> None:
    wanted = Supply("recommend", passages=100)
    evidence = [piece(f"note{n}#0", 0.8) for n in range(3)]
    assert signals(wanted, evidence, [], thresholds("recommend", {}, wanted))["candidates"] == 3


def test_a_list_misses_the_documents_that_hold_the_filters() -> None:
    wanted = Supply(
        "list", passages=100, relevant=2, matching={"f1": "The Wedding Banquet", "f2": "Eat Drink Man Woman"}
    )
    found = signals(wanted, [piece("f1#0", 0.9), piece("x#0", 0.9)], [], thresholds("list", {}, wanted))
    assert found["holding"] == 1 and found["missing"] == ["Eat Drink Man Woman"]


def test_when_every_filtered_document_is_there_no_score_can_be_higher() -> None:
    wanted = Supply("list", passages=100, relevant=1, matching={"f1": "The Wedding Banquet"})
    found = signals(wanted, [piece("f1#0", 0.5)], [], thresholds("list", {}, wanted))
    assert found["complete"] and is_enough(found)


def test_no_document_that_holds_the_filters_is_not_enough() -> None:
    wanted = Supply("list", passages=100, relevant=0, matching={})
    film = piece("x#0", 0.9)
    film["metadata"]["fields"] = {"year": 1990}
    found = signals(wanted, [film], [], thresholds("list", {}, wanted))
    assert not found["complete"] and not is_enough(found)


def test_texts_without_typed_fields_are_asked_for_none() -> None:
    wanted = Supply("list", passages=100, relevant=0, matching={})
    assert is_enough(signals(wanted, [piece("note#0", 0.9)], [], thresholds("list", {}, wanted)))


def test_timeouts_and_failures_are_those_of_the_last_attempt() -> None:
    records = [
        record("a", "naive_search", 0, 1, 0, status="timeout"),
        record("a", "naive_search", 1, 1, 3, attempt=2),
        record("b", "global_search", 0, 1, 0, status="failed"),
    ]
    found = signals(Supply("qa", passages=10), [], records, thresholds("qa", {}, Supply("qa", passages=10)))
    assert (found["timeouts"], found["failures"]) == ([], ["b"])


# --- what is proposed ---


def test_enough_stops() -> None:
    reflection = proposed()
    assert not reflection["should_continue"] and reflection["stop_reason"] == "quality_satisfied"
    assert reflection["next_steps"] == [] and reflection["max_iterations"] == 3


def test_too_little_wakes_the_fallback() -> None:
    reflection = proposed(state={"evidence_count": 2})
    assert reflection["activate"] == ["step_1_naive"] and reflection["next_steps"] == []
    assert reflection["should_continue"] and reflection["stop_reason"] is None


def test_too_little_without_a_fallback_adds_a_vector_search() -> None:
    reflection = proposed(of=plan(HYBRID), state={"evidence_count": 2})
    (step,) = reflection["next_steps"]
    assert (step["tool"], step["tool_input"]["query"]) == ("naive_search", "喜宴 上映")
    assert step["step_id"].startswith("step_1_more")


def test_a_low_score_searches_for_the_rewritten_query() -> None:
    reflection = proposed(state={"top_score": 0.1}, rewritten="喜宴 The Wedding Banquet")
    assert reflection["rewrite_query"] == "喜宴 The Wedding Banquet"
    assert [s["tool"] for s in reflection["next_steps"]] == ["hybrid_search"]


def test_without_a_model_a_low_score_searches_wider_once_with_every_writing_of_the_names() -> None:
    names = ["喜宴", "The Wedding Banquet"]
    reflection = proposed(state={"top_score": 0.1}, writings=names)
    (step,) = reflection["next_steps"]
    assert (step["tool"], reflection["rewrite_query"]) == ("hybrid_search", "")
    assert step["tool_input"] == {"query": "喜宴 上映 The Wedding Banquet", "top_k": 100}
    assert "扩大检索" in reflection["reasoning"]
    later = proposed(state={"top_score": 0.1, "iteration": 2}, writings=names)
    assert later["stop_reason"] == "no_further_action"


def test_a_missing_field_is_searched_for_on_its_document_and_outside() -> None:
    lost = {"answered": False, "missing_fields": [["喜宴", "片长"]]}
    (step,) = proposed(state=lost)["next_steps"]
    assert step["tool_input"] == {"query": "喜宴 片长", "entities": ["喜宴"]} and step["tool"] == "local_search"
    asked = proposed(state=lost, enrich=True)["next_steps"]
    assert [step["tool"] for step in asked] == ["local_search", "enrichment"]
    assert asked[1]["tool_input"]["names"] == ["喜宴"]


def test_words_that_nothing_says_are_searched_for_on_the_named_thing() -> None:
    name = {"need": "Inception", "kind": "name", "met": 1.0, "said": ""}
    needs = [name, {"need": "budget", "kind": "words", "met": 0.1, "said": ""}]
    unsure = {"answered": False, "probability": 0.1, "thresholds": {**seen()["thresholds"], "min_probability": 0.5}}
    (step,) = proposed(state={**unsure, "needs": needs})["next_steps"]
    assert step["tool"] == "local_search"
    assert step["tool_input"] == {"query": "Inception budget", "entities": ["Inception"]}


def test_a_count_that_a_person_asks_for_binds() -> None:
    need = {"need": "at least 3 sources", "kind": "count", "met": 0.33, "said": "open"}
    reflection = proposed(state={"needs": [need]})
    assert reflection["activate"] == ["step_1_naive"] and "at least 3 sources" in reflection["reasoning"]
    assert proposed(state={"needs": [{**need, "said": "struck"}]})["stop_reason"] == "quality_satisfied"


def test_a_missing_side_is_searched_for_alone() -> None:
    reflection = proposed(state={"missing": ["Eat Drink Man Woman"]})
    (step,) = reflection["next_steps"]
    assert step["tool"] == "local_search" and step["tool_input"]["entities"] == ["Eat Drink Man Woman"]


@pytest.mark.parametrize(
    ("tool", "simpler"),
    [("global_search", "local_search"), ("local_search", "naive_search"), ("naive_search", "keyword_search")],
)
@pytest.mark.parametrize("how", ["timeouts", "failures"])
def test_what_did_not_end_well_degrades(tool, simpler, how) -> None:
    status = "timeout" if how == "timeouts" else "failed"
    late = record("step_0", tool, 0, 10, 0, status=status, raw_input={"query": "family films"})
    step = PlanStep(step_id="step_0", objective="o", tool=tool, tool_input={"query": "family films"})
    reflection = proposed(
        "family films", plan(step), [late], state={"evidence_count": 6, "top_score": 0.1, how: ["step_0"]}
    )
    assert [s["tool"] for s in reflection["next_steps"]] == [simpler]


def test_a_tool_of_ones_own_degrades_to_a_vector_search() -> None:
    late = record("step_0", "awards", 0, 10, 0, status="failed", raw_input={"query": "q"})
    step = PlanStep(step_id="step_0", objective="o", tool="awards", tool_input={"query": "q"})
    reflection = proposed("q", plan(step), [late], state={"top_score": 0.1, "failures": ["step_0"]})
    assert [s["tool"] for s in reflection["next_steps"]] == ["naive_search"]


def test_the_same_call_is_never_made_twice() -> None:
    ran = PlanStep(step_id="s", objective="o", tool="naive_search", tool_input={"query": "Ang Lee ", "top_k": 5})
    done = record("s", "naive_search", 0, 1, 0, raw_input={"query": "Ang Lee ", "top_k": 5})
    reflection = proposed("ang lee", plan(ran), [done], state={"evidence_count": 0, "iteration": 2})
    assert not reflection["should_continue"] and reflection["stop_reason"] == "no_further_action"


def test_a_skipped_step_was_no_call_and_an_activated_one_is() -> None:
    skipped = record("step_1_naive", "naive_search", 0, 0, 0, status="skipped", raw_input=NAIVE.tool_input)
    call = call_key("naive_search", NAIVE.tool_input)
    assert call not in calls(plan(HYBRID, NAIVE), [skipped])
    assert call not in calls(plan(HYBRID, NAIVE), [])
    assert call in calls(plan(HYBRID, NAIVE), [], ["step_1_naive"])


def test_nothing_found_and_nothing_left_is_not_quality() -> None:
    nothing = {"evidence_count": 0, "top_score": 0.0, "thresholds": {"min_evidence": 0, "min_top_score": 0.0}}
    done = record("step_1_naive", "naive_search", 0, 1, 0, raw_input=NAIVE.tool_input)
    reflection = proposed(records=[DONE, done], state=nothing)
    assert reflection["stop_reason"] == "no_further_action"


def test_when_every_step_failed_and_nothing_is_left_it_is_an_error() -> None:
    failed = record("k", "keyword_search", 0, 1, 0, status="failed", raw_input={"query": "q"})
    step = PlanStep(step_id="k", objective="o", tool="keyword_search", tool_input={"query": "q"})
    state = {"evidence_count": 0, "top_score": 0.0, "failures": ["k"]}
    assert proposed("q", plan(step), [failed], ["keyword_search"], state=state)["stop_reason"] == "error"


def test_passes_and_time_end() -> None:
    low = {"evidence_count": 0, "top_score": 0.0}
    assert proposed(state={**low, "iteration": 3})["stop_reason"] == "max_iterations_reached"
    assert proposed(state={**low, "time_left_s": 0.0})["stop_reason"] == "budget_exhausted"
    assert proposed(state={"iteration": 3})["stop_reason"] == "quality_satisfied"


def test_a_one_step_agent_is_judged_and_not_extended() -> None:
    reflection = proposed(state={"evidence_count": 0, "top_score": 0.0}, rewritten="other", one_step=True)
    assert reflection["next_steps"] == [] and reflection["stop_reason"] == "no_further_action"


def test_everything_at_once_is_a_valid_plan() -> None:
    state = {"evidence_count": 1, "top_score": 0.1, "missing": ["A", "B"], "timeouts": ["step_0_hybrid"]}
    state["thresholds"] = {"min_evidence": 10, "min_top_score": 0.6, "min_candidates": 5}
    reflection = proposed(of=plan(HYBRID), records=[{**DONE, "status": "timeout"}], state=state, rewritten="喜宴 爱情")
    steps = [PlanStep.model_validate(step) for step in reflection["next_steps"]]
    assert check(plan(HYBRID).adding(*steps), TOOLS) == []
    assert len({step.step_id for step in steps}) == len(steps) >= 4
    assert len({call_key(step.tool, step.tool_input) for step in steps}) == len(steps)


@pytest.mark.parametrize(
    ("query", "words"), [("喜宴哪年上映", ["只有 1 条", "证据 7 条"]), ("When?", ["has 1 of 7", "7 pieces"])]
)
def test_the_reason_names_the_numbers_in_the_language_of_the_question(query, words) -> None:
    state = {"evidence_count": 7, "coverage": [{"name": "饮食男女", "found": 1, "needed": 7}], "missing": ["饮食男女"]}
    reasoning = proposed(query, state=state)["reasoning"]
    assert all(word in reasoning for word in words), reasoning


# --- the node in the graph ---

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
        "run_id": "r",
        "query": query,
        "kb_prefix": "notes",
        "kb_prefixes": ["notes"],
        "review": [],
        "iteration": 1,
    }
    context = memory_context([MemoryKnowledge("notes", NOTES)], planner=FixedPlanner(plan(*steps)), **more)
    graph = build_retrieval().compile()
    return await graph.ainvoke(
        {**state, "route_decision": decision, "resolved_agent_type": agent, "thresholds": {}}, context=context
    )


def search(tool: str, query: str) -> PlanStep:
    return PlanStep(step_id="step_0", objective=query, tool=tool, tool_input={"query": query})


async def test_what_is_found_is_enough() -> None:
    state = await retrieved("Who directed Hulk?", ["Hulk"], search("keyword_search", "Who directed Hulk?"))
    assert state["stop_reason"] == "quality_satisfied" and state["iteration"] == 1
    assert state["merged"]["retrieval_results"][0]["source_id"] == "Hulk#0"


async def test_a_name_that_the_corpus_never_writes_costs_one_wider_search() -> None:
    question = "Who directed the film Parasite?"
    state = await retrieved(question, ["Parasite"], search("keyword_search", question))
    assert state["stop_reason"] == "no_further_action" and state["iteration"] == 2
    assert state["reflections"][0]["signals"]["unknown"] == ["Parasite"]
    assert not any(reflection["rewrite_query"] for reflection in state["reflections"])


async def test_a_question_that_shares_no_word_with_the_corpus_ends_with_nothing() -> None:
    state = await retrieved("quantum chromodynamics", [], search("keyword_search", "quantum chromodynamics"))
    assert state["stop_reason"] == "no_further_action" and state["iteration"] <= 2
    assert state["merged"]["context"] == "" and state["merged"]["statistics"]["total_evidence_count"] == 0


async def test_a_one_step_agent_takes_one_step() -> None:
    step = search("keyword_search", "quantum chromodynamics")
    state = await retrieved("quantum chromodynamics", [], step, agent="naive_rag_agent")
    assert state["iteration"] == 1 and len(state["records"]) == 1


async def test_a_missing_side_is_fetched() -> None:
    question = "Compare Hulk and Tenet"
    state = await retrieved(question, ["Hulk", "Tenet"], search("keyword_search", "Hulk"), intent="compare")
    first = state["reflections"][0]
    assert first["signals"]["missing"] == ["Tenet"]
    assert "local_search" in [step["tool"] for step in first["next_steps"]]
