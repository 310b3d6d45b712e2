"""Routing, planning, reflecting; a plan by itself, its steps run within their budgets, and what they found merged."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import tables
from tests.handmade import record
from tests.servers import Reply, scripted_server
from tests.shelves import CORE, jsonl
from workbench.graphs.merge import distinct, merge
from workbench.graphs.plan import RulePlanner
from workbench.graphs.reflect import Proposal, propose
from workbench.graphs.route import decide, is_small_talk
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.tools.registry import ToolRegistry, check

CASES = tables("retrieval_graph")
ENOUGH = {"min_evidence": 0, "min_top_score": 0.0, "min_probability": 0.0}


class Desk:
    """A workspace of a few notes, and tools of its own; ``calls`` are the queries that they were asked."""

    def __init__(self, wb: Workbench):
        self.wb, self.calls = wb, list[str]()
        calls, failures = self.calls, ["down"]

        @wb.tools.tool
        def found(query: str) -> list[str]:
            """Always finds one thing."""
            calls.append(query)
            return [f"about {query}"]

        @wb.tools.tool
        async def slow(query: str, seconds: float = 0.5) -> list[str]:
            """Takes its time."""
            calls.append(query)
            await asyncio.sleep(seconds)
            return [f"about {query}"]

        @wb.tools.tool
        def flaky(query: str) -> list[str]:
            """Fails once."""
            calls.append(query)
            if failures:
                raise ConnectionError(failures.pop())
            return [f"about {query}"]

        @wb.tools.tool
        def broken(query: str) -> list[str]:
            """Always fails."""
            raise ConnectionError("down")

        @wb.tools.tool(parallel=False)
        def alone(query: str) -> list[str]:
            """Runs beside nothing."""
            return [f"about {query}"]

    def start(self, *steps: PlanStep, mode: Any = "parallel", **options: Any) -> Run:
        plan = Plan(problem_statement="q?", steps=list(steps), execution_mode=mode)
        return self.wb.start("q?", kb="notes", plan=plan, **{"thresholds": ENOUGH, **options})

    def ask(self, *steps: PlanStep, **options: Any) -> Run:
        return self.start(*steps, **options).wait()


@pytest.fixture
def desk(tmp_path: Any) -> Iterator[Desk]:
    notes = [{"id": str(n), "text": f"Kiln {n} was built in 19{n:02}.", "cones": n} for n in range(9)]
    with Workbench.open(tmp_path / "w", **CORE) as opened:
        opened.add_knowledge("notes", [jsonl(tmp_path / "notes.jsonl", notes)])
        yield Desk(opened)


def step(step_id: str, *depends_on: str, tool: str = "found", **fields: Any) -> PlanStep:
    given = {"tool_input": {"query": step_id}, "depends_on": list(depends_on), **fields}
    return PlanStep(step_id=step_id, objective=step_id, tool=tool, **given)


def ends(run: Run) -> dict[str, tuple[str, str | None]]:
    return {r["step_id"]: (r["status"], r["error"]) for r in run.records}


def test_a_plan_runs_in_order_fails_by_record_and_is_merged(desk):
    run = desk.ask(step("a"), step("b", "a"), step("c"))
    assert {name: status for name, (status, _) in ends(run).items()} == dict.fromkeys("abc", "success")
    assert desk.calls.index("b") > desk.calls.index("a")
    assert {"about a", "about b", "about c"} <= {piece["evidence"] for piece in run.evidence}
    assert run.status == "done" and run.state["merged"]["context"]
    run = desk.ask(step("f", tool="flaky"), step("x", tool="broken"), step("y", "x"), step("z", "y"))
    attempts = [(r["step_id"], r["attempt"], r["status"]) for r in run.records]
    assert {("f", 1, "failed"), ("f", 2, "success"), ("x", 2, "failed")} <= set(attempts)
    assert ends(run)["x"][1] == "ConnectionError: down"
    assert ends(run)["y"][0] == "skipped" and ends(run)["z"] == ("skipped", "its dependency y was skipped")
    assert "ConnectionError: down" in desk.ask(step("x", tool="broken"), settings={"max_iterations": 1}).answer
    assert "I answer questions from notes" in desk.wb.ask("Hello!").answer, "why there is no evidence is said"
    counted = run.state["merged"]["statistics"]
    assert (counted["total_steps"], counted["success_rate"]) == (5, 0.4), "an attempt is no step"
    assert counted["tool_distribution"] == {"broken": 1, "flaky": 1, "found": 2, "naive_search": 1}
    hot, gone = {"conditions": [{"field": "cones", "op": "gt", "value": "hot"}]}, {"kb_prefix": "nowhere"}
    run = desk.ask(step("h", tool="discover", tool_input=hot), step("g", tool="discover", tool_input=gone))
    assert "a number is needed" in ends(run)["h"][1] and "Unknown knowledge base 'nowhere'" in ends(run)["g"][1]


def test_four_independent_half_seconds_take_about_half_a_second(desk):
    @desk.wb.tools.tool
    def plain(query: str) -> list[str]:
        """Takes its time, and no loop with it."""
        time.sleep(0.5)
        return [f"about {query}"]

    began = time.monotonic()
    tools = ("slow", "plain", "slow", "plain")
    run = desk.ask(*(step(f"s{n}", tool=tool) for n, tool in enumerate(tools)), settings={"max_concurrency": 4})
    assert {status for status, _ in ends(run).values()} == {"success"} and len(run.records) == 4
    assert run.state["merged"]["statistics"]["total_duration_ms"] < 1500, time.monotonic() - began


def test_the_time_budget_ends_the_run_and_says_so(desk):
    slow = {"tool": "slow", "tool_input": {"query": "a", "seconds": 0.3}}
    hard = {"min_evidence": 5, "min_top_score": 0.9}
    run = desk.ask(step("a", **slow), step("b", "a"), settings={"time_budget_s": 0.2}, thresholds=hard)
    assert ends(run)["b"][0] == "skipped" and run.state["stop_reason"] == "budget_exhausted"


@pytest.mark.parametrize(("least", "end"), [(0, ("skipped", "not needed")), (2, ("success", None))])
def test_a_conditional_step_runs_where_too_little_was_found_and_else_counts_in_no_rate(desk, least, end):
    thresholds = {**ENOUGH, "min_evidence": least}
    run = desk.ask(step("a"), step("b", "a", condition="if_insufficient"), thresholds=thresholds)
    assert ends(run)["b"] == end and run.state["merged"]["statistics"]["success_rate"] == 1.0
    assert [one["activate"] for one in run.reflections] == ([["b"], []] if least else [[]])


def test_a_fork_with_more_time_asks_again_what_was_cut_short(desk):
    once = {"tool": "slow", "tool_input": {"query": "a", "seconds": 0.3}}
    run = desk.ask(step("a", **once, budget=PlanBudget(max_retries=0)), settings={"time_budget_s": 0.1})
    assert ends(run)["a"][0] == "timeout"
    same, longer = (run.fork(settings={"time_budget_s": seconds}) for seconds in (0.1, 30.0))
    assert (ends(same)["a"][0], ends(longer)["a"][0]) == ("timeout", "success") and len(desk.calls) == 2


MODES = {"sequential": [["a"], ["b"], ["c"]], "parallel": [["a", "b", "c"]], "adaptive": [["a", "c"], ["b"]]}


@pytest.mark.parametrize("mode", MODES)
def test_execution_modes_start_what_they_should(desk, mode):
    run, waves = desk.ask(step("a"), step("b", tool="alone"), step("c"), mode=mode, review="step"), []
    while run.status == "paused":
        waves.append(run.review["action_requests"][0]["args"]["wave"])
        run.approve()
    assert waves == MODES[mode] and run.status == "done"


@pytest.mark.parametrize("bound", ["top_k", "max_evidence_count"])
def test_evidence_beyond_the_budget_is_cut_and_the_summary_says_so(desk, bound):
    @desk.wb.tools.tool
    def many(query: str) -> list[str]:
        """Finds five things."""
        return [f"{query} {n}" for n in range(5)]

    (record,) = desk.ask(step("a", tool="many", budget=PlanBudget(**{bound: 2}))).records
    assert record["status"] == "success"
    assert (record["output_summary"]["evidence_count"], record["output_summary"]["cut"]) == (2, 3)


def piece(source_id: str, score: float, text: str = "text", tool: str = "naive_search", **more):
    kind = {"source_type": "chunk", "granularity": "low_level", **more}
    about = {"doc_id": source_id.partition("#")[0], "title": source_id, "tools": [tool]}
    ids = {"result_id": f"{kind['granularity']}:{source_id}", "source_id": source_id}
    return {**ids, **kind, "score": score, "evidence": text, "metadata": about}


def test_what_is_merged_is_weighed_ordered_and_cut() -> None:
    search = [piece("both#0", 0.5, tool="hybrid_search"), piece("search#0", 0.5, tool="hybrid_search")]
    chain = [piece("both#0", 0.5, tool="chain_exploration"), piece("chain#0", 0.5, tool="chain_exploration")]
    chain[0]["metadata"]["chain"] = {"says": "a way", "steps": [{"by": "title"}]}
    found = distinct({"a": search, "b": chain})
    assert found[0]["source_id"] == "both#0" and found[0]["score"] > max(found[1]["score"], found[2]["score"])
    assert found[0]["metadata"]["chain"]["says"] == "a way"
    assert found[0]["metadata"]["tools"] == ["chain_exploration", "hybrid_search"]
    assert [r["score"] for r in distinct({"a": search})] == [0.5, 0.5]
    found = {"a": [piece("a#0", 0.2), piece("b#0", 0.1)], "b": [piece("c#0", 0.9), piece("b#0", 0.8)]}
    assert [r["source_id"] for r in merge(found)["retrieval_results"]] == ["c#0", "b#0", "a#0"]
    merged = merge({"a": [piece(f"d{n}#0", 0.9 - n / 10, "x" * 90) for n in range(5)]}, max_characters=220)
    assert merged["context"].count("x" * 90) == 2 and len(merged["context"]) <= 220
    assert len(merged["retrieval_results"]) == 5
    assert merged["statistics"]["used"] == 2 and merged["statistics"]["left_out"] == 3
    assert merged["statistics"]["context_length"] == len(merged["context"])


pieces = st.lists(
    st.builds(piece, st.sampled_from(["a#0", "a#1", "b#0", "c#0"]), st.integers(0, 10).map(lambda n: n / 10)),
    max_size=8,
)


@given(st.dictionaries(st.sampled_from("abc"), pieces), st.integers(1, 6), st.integers(1, 200), st.randoms())
def test_merge_holds_its_promises_for_anything(found, most, longest, random) -> None:
    merged = merge(found, max_results=most, max_characters=longest)
    results = merged["retrieval_results"]
    keys = [(r["source_id"], r["granularity"]) for r in results]
    assert len(set(keys)) == len(keys) <= most
    assert results == sorted(results, key=lambda r: (-r["score"], r["source_id"]))
    assert bool(merged["context"]) == bool(any(found.values()))
    every = [piece for step in found.values() for piece in step]
    counted = merged["statistics"]
    assert counted["used"] + counted["left_out"] == counted["after_dedup"] >= len(results)
    for result in results:
        assert result["score"] == max(p["score"] for p in every if p["source_id"] == result["source_id"])
    assert merged == merge(dict(reversed(found.items())), max_results=most, max_characters=longest)
    shuffled = {name: random.sample(step, len(step)) for name, step in found.items()}
    assert merge(shuffled, max_results=most, max_characters=longest)["retrieval_results"] == results


TOOLS = ToolRegistry()


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
    step_id="step_1_naive", objective="o", tool="naive_search", tool_input={"query": "喜宴 上映", "top_k": 30},
    depends_on=["step_0_hybrid"], condition="if_insufficient",
)  # fmt: skip
DONE = record("step_0_hybrid", "hybrid_search", 0, 10, 2, raw_input={"query": "喜宴 上映"})


def proposed(query: str = "喜宴 上映", of: Plan | None = None, records=(DONE,), tools=tuple(TOOLS), **more: Any):
    state, one_step = more.pop("state", {}), more.pop("one_step", False)
    return propose(Proposal(query, of or plan(HYBRID, NAIVE), seen(**state), records, tools, **more), 3, one_step)


NAMES = {"writings": ["喜宴", "The Wedding Banquet"]}
LOST = {"answered": False, "missing_fields": [["喜宴", "片长"]]}
COUNT = {"need": "at least 3 sources", "kind": "count", "met": 0.33, "said": "open"}
NOTHING = {"evidence_count": 0, "top_score": 0.0}


def ended(tool: str) -> dict[str, Any]:
    """A plan of one step of this tool that ended badly."""
    only = PlanStep(step_id="s", objective="o", tool=tool, tool_input={"query": "q"})
    late = record("s", tool, 0, 1, 0, status="failed", raw_input={"query": "q"})
    return {"query": "q", "of": plan(only), "records": [late]}


LOW, Q = {"top_score": 0.1}, {"query": "q", "top_k": 30}
PROPOSALS = {  # what is seen, further arguments -> steps as (tool, input), activated steps, why it stops
    "enough": ({}, {}, [], [], "quality_satisfied"),
    "too little": ({"evidence_count": 2}, {}, [], ["step_1_naive"], None),
    "no fallback": (
        {"evidence_count": 2}, {"of": plan(HYBRID)}, [("naive_search", {"query": "喜宴 上映", "top_k": 30})], [], None,
    ),
    "low": (
        {"top_score": 0.1}, NAMES, [("hybrid_search", {"query": "喜宴 上映 The Wedding Banquet", "top_k": 100})], [],
        None,
    ),
    "missing field": (LOST, {}, [("local_search", {"query": "喜宴 片长", "entities": ["喜宴"]})], [], None),
    "missing side": ({"missing": ["Hulk"]}, {}, [("local_search", {"query": "Hulk", "entities": ["Hulk"]})], [], None),
    "a person counts": ({"needs": [COUNT]}, {}, [], ["step_1_naive"], None),
    "few candidates": (
        {"candidates": 1, "thresholds": {**seen()["thresholds"], "min_candidates": 5}}, {"of": plan(HYBRID)},
        [("global_search", {"query": "喜宴 上映"})], [], None,
    ),
    "rewritten": (
        LOW, {"rewritten": "喜宴 Ang Lee"}, [("hybrid_search", {"query": "喜宴 Ang Lee", "top_k": 50})], [], None,
    ),
    "outside": (
        LOST, {"enrich": True},
        [
            ("local_search", {"query": "喜宴 片长", "entities": ["喜宴"]}),
            ("enrichment", {"query": "喜宴 上映", "names": ["喜宴"]}),
        ],
        [], None,
    ),
    "late": ({**LOW, "timeouts": ["s"]}, ended("global_search"), [("local_search", Q)], [], None),
    "failed": ({**LOW, "failures": ["s"]}, ended("awards"), [("naive_search", Q)], [], None),
    "last pass": ({**NOTHING, "iteration": 3}, {}, [], [], "max_iterations_reached"),
    "one step": (NOTHING, {"one_step": True, "rewritten": "other"}, [], [], "no_further_action"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROPOSALS)
def test_what_is_seen_decides_what_is_proposed(name) -> None:
    state, more, steps, activate, stop = PROPOSALS[name]
    reflection = proposed(state=state, **more)
    assert [(step["tool"], step["tool_input"]) for step in reflection["next_steps"]] == steps
    assert (reflection["activate"], reflection["stop_reason"]) == (activate, stop)
    assert not steps or reflection["rewrite_query"] == more.get("rewritten", reflection["rewrite_query"])
    assert reflection["should_continue"] == (stop is None) and reflection["max_iterations"] == 3


def plan_for(shelf: Any, question: str, kb: Any = ("film",), worker="", tools: Any = None, **settings: Any) -> Plan:
    tools = ToolRegistry() if tools is None else tools
    decision, prefixes = decide(question, list(kb), worker, shelf)
    made = RulePlanner(Settings.load(**settings))
    plan = asyncio.run(made(question, decision, [shelf.get(name) for name in prefixes], tools))
    assert check(plan, tools) == []
    return plan


def shape(plan: Plan) -> list[str]:
    """A line a step: ``id tool <- dependencies``."""
    return [
        f"{s.step_id} {s.tool}" + (f" <- {', '.join(s.dependencies())}" if s.dependencies() else "") for s in plan.steps
    ]


@pytest.mark.parametrize(("question", "expected"), CASES["plans"])
def test_plans_by_intent(shelf: Any, question: str, expected: str) -> None:
    plan = plan_for(shelf, question)
    steps = [re.sub(r"step_(\d)_\w+", r"\1", line.partition(" ")[2]).replace(" <- ", "<") for line in shape(plan)]
    names = [step.step_id.split("_", 2)[2] for step in plan.steps]
    assert ", ".join(f"{n} {s.replace(', ', '')}" for n, s in zip(names, steps, strict=True)) == expected
    assert plan.problem_statement == question
    asleep = [step.tool for step in plan.steps if step.condition == "if_insufficient"]
    assert asleep == ["naive_search"] * ("naive" in expected and "对比" not in question)


def test_a_plan_is_by_language_base_and_tools(shelf: Any) -> None:
    chinese, english = plan_for(shelf, "90年代的喜剧有哪些？"), plan_for(shelf, "List comedies from the 1990s")
    assert chinese.assumptions == ["理解为：年份在1990到1999之间、类型是喜剧。"]
    assert english.assumptions == ["Read as: genre is Comedy, year from 1990 to 1999."]
    plan = plan_for(shelf, "Compare Inception and Photosynthesis", kb=("film", "essays"))
    assert shape(plan) == [
        "step_0_film_inception hybrid_search",
        "step_1_film_naive naive_search <- step_0_film_inception",
        "step_2_essays_photosynthesis hybrid_search",
        "step_3_essays_naive naive_search <- step_2_essays_photosynthesis",
    ]
    assert [s.tool_input["kb_prefix"] for s in plan.steps] == ["film", "film", "essays", "essays"]
    assert "film, essays" in plan.assumptions[0]
    plan = plan_for(shelf, "喜宴哪一年上映？", tools=own_tools())
    assert shape(plan)[2:] == ["step_2_awards awards"]
    assert plan.steps[2].objective == "Award winners by name"
    assert all(s.tool != "awards" for s in plan_for(shelf, "推荐几部科幻片", tools=own_tools()).steps)
    assert len(plan_for(shelf, "喜宴哪一年上映？", tools=own_tools(), max_tasks=2).steps) == 2


def test_a_plan_has_no_more_tasks_than_allowed_and_another_agent_is_one_step_of_its_tool(shelf: Any) -> None:
    for most in (1, 3):
        question = "Compare Inception, Tenet, Memento and Hulk"
        plan = plan_for(shelf, question, kb=("film", "essays"), max_tasks=most)
        assert len(plan.steps) == most and f"at most {most} steps" in str(plan.assumptions), "what is left out is said"
    for agent, tool in (("graph_agent", "local_search"), ("deep_research_agent", "deep_research")):
        plan = plan_for(shelf, "Compare Inception and Tenet", worker=f"film:{agent}")
        assert [s.tool for s in plan.steps] == [tool]
    tools = {name: tool for name, tool in ToolRegistry().items() if name != "deep_research"}
    plan = plan_for(shelf, "Compare Inception and Tenet", worker="film:deep_research_agent", tools=tools)
    assert plan.steps[0].tool != "deep_research" and "deep_research" in str(plan.assumptions), "what stands in for it"
    assert [s.tool for s in plan_for(shelf, "Compare Tenet and Hulk", planner="one_step").steps] == ["hybrid_search"]


def own_tools() -> ToolRegistry:
    tools = ToolRegistry()

    @tools.tool(description="Award winners by name", intents={"qa"})
    def awards(query: str) -> list[str]:
        return [query]

    @tools.tool(description="Needs more than a query", intents={"qa"})
    def prices(query: str, currency: str) -> list[str]:
        return [query, currency]

    return tools


def drafted(tool: str = "hybrid_search", **more: Any) -> dict[str, Any]:
    return {"name": "look", "objective": "查《喜宴》", "tool": tool, "query": "喜宴", **more}


def condition(field: str, op: str, *values: str) -> dict[str, Any]:
    return {"field": field, "op": op, "value": values[0]}


def llm_plan(workspace: Path, *answers: Any, kb: str | list[str] = "film") -> tuple[Plan, list[str]]:
    with scripted_server(*(Reply([json.dumps(answer, ensure_ascii=False)]) for answer in answers)) as server:
        models = {"chat_base_url": server.url, "models": {"planner": "openai:m"}}
        with Workbench.open(workspace, **models) as wb:
            if "essays" not in wb.knowledge.names():
                (workspace / "tea.md").write_text("# Tea\n\nOolong tea is partly oxidised.\n", encoding="utf-8")
                wb.add_knowledge("essays", [workspace / "tea.md"])
            run = wb.ask("喜宴哪一年上映？", kb=kb, review="plan")
            return run.plan, [json.dumps(request["messages"], ensure_ascii=False) for request in server.requests]


def test_a_model_plans(workspace: Path) -> None:
    conditions = [condition("directors", "eq", "Ang Lee"), condition("year", "ge", "1990")]
    rank = drafted("global_search", name="rank", candidates={"$from": "Find.candidates"}, depends_on=["Find"])
    plan, _ = llm_plan(workspace, {"steps": [drafted("discover", name="Find", conditions=conditions), rank]})
    assert shape(plan) == ["step_0_find discover", "step_1_rank global_search <- step_0_find"]
    assert plan.steps[0].tool_input["conditions"] == conditions
    assert plan.steps[1].tool_input["candidates"] == {"$from": "step_0_find.candidates"}
    assert (plan.metadata["planner"], plan.metadata["answer"]) == ("llm", "first")
    answer = {"steps": [drafted(kb_prefix="essays"), drafted(name="two", kb_prefix="film")]}
    plan, _ = llm_plan(workspace, answer, kb=["film", "essays"])
    assert [s.tool_input["kb_prefix"] for s in plan.steps] == ["essays", "film"]
    for name, offered in (("film", True), ("essays", False)):
        _, sent = llm_plan(workspace, {"steps": [drafted()]}, kb=name)
        assert ("- enrichment:" in sent[0]) is offered


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (drafted("hybrid_search", count_by="year"), "count_by"),
        (drafted("discover", conditions=[condition("year", "gt", "soon")]), "soon"),
        (drafted(query={"$from": "find.results", "text": "Who made {}?"}), "depends on 'find'"),
    ],
)
def test_what_a_tool_does_not_take_goes_back(workspace: Path, wrong: Any, why: str) -> None:
    plan, sent = llm_plan(workspace, {"steps": [wrong]}, {"steps": [drafted()]})
    assert plan.metadata["answer"] == "repaired" and why in plan.metadata["refused"][0] and why in sent[1]


def test_small_talk_and_bases_are_told_apart(shelf: Any) -> None:
    assert [text for (text,) in CASES["small_talk"] if not is_small_talk(text)] == []
    assert [text for (text,) in CASES["questions"] if is_small_talk(text)] == []
    assert decide("Compare Inception and Photosynthesis", [], "", shelf).kb_prefixes == ["essays", "film"]
    decision, prefixes = decide("Who is Ang Lee?", [], "", shelf, auto_route=False)
    assert (prefixes, decision["kb_prefix"], decision["worker_name"]) == ([], "general", "")
    assert "off" in decision["reason"]


@pytest.mark.parametrize(
    ("message", "requested", "worker", "prefixes", "method"),
    [
        ("喜宴哪一年上映？", [], "", ["film"], "heuristic"),
        ("How do plants turn sunlight into sugar?", [], "", ["essays"], "heuristic"),
        ("Hello!", [], "", [], "default"),
        ("Best pizza dough recipe", [], "", ["film", "essays"], "heuristic"),  # searched where it may be
        ("Who is Ang Lee?", ["essays"], "", ["essays"], "override"),
        ("Who is Ang Lee?", ["general"], "film:graph_agent", [], "override"),
        ("Who is Ang Lee?", ["essays"], "film:graph_agent", ["film"], "override"),
        ("Who is Ang Lee?", [], "graph_agent", ["film"], "heuristic"),
    ],
)
def test_the_knowledge_base(shelf, message, requested, worker, prefixes, method):
    decision, found = decide(message, requested, worker, shelf)
    assert (found, decision["method"]) == (prefixes, method), decision["reason"]
    assert decision["kb_prefix"] == (prefixes[0] if prefixes else "general")
    agent = "graph_agent" if "graph_agent" in worker else "fusion_agent"
    assert decision["worker_name"] == (f"{prefixes[0]}:{agent}:retrieve_only" if prefixes else "")
