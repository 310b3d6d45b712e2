"""A plan by itself, its steps run in order and within their budgets, and what they found merged."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.films import where
from tests.handmade import record
from tests.shelves import CORE
from workbench.errors import PlanError
from workbench.graphs.execute import make_record
from workbench.graphs.merge import distinct, gather, matching_documents, merge
from workbench.plans import NOT_NEEDED, Plan, PlanBudget, PlanStep, work_seconds
from workbench.runs.run import Run
from workbench.session import Workbench

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
    notes = [{"id": str(n), "text": f"Kiln {n} was built in 19{n:02}."} for n in range(9)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, notes)))
    with Workbench.open(tmp_path / "w", **CORE) as opened:
        opened.add_knowledge("notes", [tmp_path / "notes.jsonl"])
        yield Desk(opened)


def step(step_id: str, *depends_on: str, tool: str = "found", **fields: Any) -> PlanStep:
    given = {"tool_input": {"query": step_id}, "depends_on": list(depends_on), **fields}
    return PlanStep(step_id=step_id, objective=step_id, tool=tool, **given)


def ends(run: Run) -> dict[str, tuple[str, str | None]]:
    return {r["step_id"]: (r["status"], r["error"]) for r in run.records}


def test_a_plan_runs_in_order_and_is_merged(desk):
    run = desk.ask(step("a"), step("b", "a"), step("c"))
    assert {name: status for name, (status, _) in ends(run).items()} == dict.fromkeys("abc", "success")
    assert desk.calls.index("b") > desk.calls.index("a")
    assert {"about a", "about b", "about c"} <= {piece["evidence"] for piece in run.evidence}
    assert run.status == "done" and run.state["merged"]["context"]


def test_four_independent_half_seconds_take_about_half_a_second(desk):
    began = time.monotonic()
    run = desk.ask(*(step(f"s{n}", tool="slow") for n in range(4)), settings={"max_concurrency": 4})
    assert len(run.records) == 4 and desk.calls == ["s0", "s1", "s2", "s3"]
    assert run.state["merged"]["statistics"]["total_duration_ms"] < 1500, time.monotonic() - began


def test_a_failure_is_a_record_is_retried_and_then_skips_what_needs_it(desk):
    run = desk.ask(step("f", tool="flaky"), step("x", tool="broken"), step("y", "x"), step("z", "y"))
    attempts = [(r["step_id"], r["attempt"], r["status"]) for r in run.records]
    assert {("f", 1, "failed"), ("f", 2, "success"), ("x", 2, "failed")} <= set(attempts)
    assert ends(run)["x"][1] == "ConnectionError: down"
    assert ends(run)["y"] == ("skipped", "x failed") and ends(run)["z"] == ("skipped", "y was skipped")


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


STATISTICS = {
    "total_steps", "total_duration_ms", "tool_distribution", "success_rate", "total_retrieved", "after_dedup", "used",
    "deduplication_rate", "total_evidence_count", "context_length",
}  # fmt: skip


def piece(source_id: str, score: float, text: str = "text", tool: str = "naive_search", **more):
    kind = {"source_type": "chunk", "granularity": "low_level", **more}
    return {
        "result_id": f"{kind['granularity']}:{source_id}",
        "source_id": source_id,
        **kind,
        "score": score,
        "evidence": text,
        "metadata": {"doc_id": source_id.partition("#")[0], "title": source_id, "tools": [tool]},
    }


def test_no_evidence_has_every_key() -> None:
    merged = merge({})
    assert merged["context"] == "" and merged["retrieval_results"] == []
    assert merged["reference"] == {"chunks": [], "entities": [], "relationships": []}
    assert set(merged["statistics"]) >= STATISTICS
    assert merged["statistics"]["success_rate"] == 0 and merged["statistics"]["deduplication_rate"] == 0


def test_what_a_search_and_a_chain_say_of_a_passage_is_weighed_together() -> None:
    search = [piece("both#0", 0.5, tool="hybrid_search"), piece("search#0", 0.5, tool="hybrid_search")]
    chain = [piece("both#0", 0.5, tool="chain_exploration"), piece("chain#0", 0.5, tool="chain_exploration")]
    chain[0]["metadata"]["chain"] = {"says": "a way", "steps": [{"by": "title"}]}
    found = distinct({"a": search, "b": chain})
    assert found[0]["source_id"] == "both#0" and found[0]["score"] > max(found[1]["score"], found[2]["score"])
    assert found[0]["metadata"]["chain"]["says"] == "a way"
    assert found[0]["metadata"]["tools"] == ["chain_exploration", "hybrid_search"]
    assert [r["score"] for r in distinct({"a": search})] == [0.5, 0.5]
    again = distinct({"a": search, "b": chain, "c": [piece("search#0", 0.97, tool="naive_search")]})
    assert (again[0]["source_id"], again[0]["score"]) == ("search#0", 0.97)


def test_as_found_one_step_stands_behind_the_other_and_nothing_is_compared() -> None:
    found = {"a": [piece("a#0", 0.2), piece("b#0", 0.1)], "b": [piece("c#0", 0.9), piece("b#0", 0.8)]}
    assert [r["source_id"] for r in merge(found)["retrieval_results"]] == ["c#0", "b#0", "a#0"]
    plain = merge(found, by_score=False)["retrieval_results"]
    assert [(r["source_id"], r["score"]) for r in plain] == [("a#0", 0.2), ("b#0", 0.8), ("c#0", 0.9)]


def test_the_cut_is_between_pieces_and_touches_the_context_only() -> None:
    merged = merge({"a": [piece(f"d{n}#0", 0.9 - n / 10, "x" * 90) for n in range(5)]}, max_characters=220)
    assert merged["context"].count("x" * 90) == 2 and len(merged["context"]) <= 220
    assert len(merged["retrieval_results"]) == 5
    assert merged["statistics"]["used"] == 2 and merged["statistics"]["left_out"] == 3
    assert merged["statistics"]["context_length"] == len(merged["context"])


def test_statistics_count_steps_once_and_parallel_time_once() -> None:
    records = [
        record("a", "hybrid_search", 0, 400, 3),
        record("b", "hybrid_search", 100, 400, 3),
        record("c", "global_search", 500, 100, 0, status="timeout", error="late"),
        record("c", "global_search", 600, 100, 2, attempt=2),
        record("d", "local_search", 700, 50, 0, status="failed", error="broken"),
        record("e", "naive_search", 750, 0, 0, status="skipped", error=NOT_NEEDED, raw_output_ref=None),
    ]
    statistics = merge({"a": [piece("x#0", 0.5)], "b": [piece("x#0", 0.6)]}, records)["statistics"]
    assert statistics["total_steps"] == 4 and statistics["success_rate"] == 0.75
    assert statistics["tool_distribution"] == {"global_search": 1, "hybrid_search": 2, "local_search": 1}
    assert statistics["total_duration_ms"] == 750
    assert (statistics["total_retrieved"], statistics["after_dedup"], statistics["deduplication_rate"]) == (2, 1, 0.5)


def test_evidence_against_the_filters_ranks_down_and_says_so() -> None:
    old, new, note = piece("old#0", 0.8), piece("new#0", 0.6), piece("note#0", 0.5)
    old["metadata"]["fields"], new["metadata"]["fields"] = {"year": 1990}, {"year": 2010}
    found = distinct({"a": [old, new, note]}, matching={"new"})
    assert [(r["source_id"], r["score"]) for r in found] == [("new#0", 0.6), ("note#0", 0.5), ("old#0", 0.4)]
    assert found[2]["metadata"]["contradicts_filters"] is True


def test_filters_count_for_lists_and_recommendations_only() -> None:
    class Base:
        def select(self, filters):
            return ["a", "b"] if filters == where("year >= 2006") else []

    decision = {"query_intent": "list", "filters": where("year >= 2006")}
    assert matching_documents(decision, [Base()]) == {"a", "b"}
    assert matching_documents({**decision, "query_intent": "qa"}, [Base()]) is None
    assert matching_documents({**decision, "filters": []}, [Base()]) is None
    assert matching_documents(None, []) is None


def test_gather_reads_what_ended_well_in_a_settled_order() -> None:
    bodies = {"b/1": {"results": [piece("x#0", 0.5)]}, "a/2": {"results": [piece("y#0", 0.5)]}}

    class Runs:
        def body(self, run_id, ref):
            return bodies[ref]

    records = [
        record("b", "naive_search", 0, 1, 1),
        record("c", "naive_search", 0, 1, 0, status="failed", raw_output_ref=None),
        record("a", "naive_search", 0, 1, 1, attempt=1, status="timeout", raw_output_ref=None),
        record("a", "naive_search", 0, 1, 1, attempt=2, raw_output_ref="a/2"),
    ]
    assert list(gather(records, Runs(), "run")) == ["a", "b"]


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


def bare(step_id: str, *depends_on: str, **fields) -> PlanStep:
    return PlanStep(step_id=step_id, objective=step_id, tool="naive_search", depends_on=list(depends_on), **fields)


def ended(step_id: str, status: str = "success", attempt: int = 1, **fields):
    return {
        **make_record(bare(step_id), attempt, 1, "skipped", "2026-01-01T00:00:00+00:00"),
        "status": status,
        **fields,
    }


@pytest.mark.parametrize(
    ("steps", "field", "said"),
    [
        ([bare("a"), bare("a")], "step_id", "'a' is used twice"),
        ([bare("a", "b")], "depends_on", "'b', which is not in the plan"),
        ([bare("a", "b"), bare("b", "a")], "depends_on", "Cycle: "),
        ([bare("a", "a")], "depends_on", "Cycle: a -> a"),
        ([bare("a", budget=PlanBudget(top_k=0))], "budget.top_k", "top_k is 0"),
        ([bare("a", budget=PlanBudget(timeout_s=0))], "budget.timeout_s", "timeout_s is 0"),
        ([PlanStep(step_id="a", objective="x" * 10_001, tool="naive_search")], "objective", "10,001 characters"),
        ([bare("a", budget=PlanBudget(timeout_s=float("nan")))], "budget.timeout_s", "timeout_s is nan"),
        ([bare(" ")], "step_id", "has no id"),
    ],
)
def test_problems_name_the_step_the_field_and_the_mend(steps, field, said):
    (found,) = [p for p in Plan(steps=steps).problems() if p["field"] == field]
    assert said in found["message"] and found["fix"]


def test_plan_id_follows_content_and_survives_the_json_form():
    plan = Plan(steps=[bare("a")], problem_statement="喜宴")
    assert Plan.load(plan.dump()) == plan
    assert plan.model_copy(update={"version": 7}).plan_id == plan.plan_id
    assert plan.replace("a", top_k=5).plan_id != plan.plan_id


def test_replace_refuses_an_unknown_step_and_without_cuts_its_edges():
    plan = Plan(steps=[bare("a"), bare("b", "a")])
    with pytest.raises(PlanError, match="Known: a, b"):
        plan.replace("z", top_k=1)
    assert plan.without("a").steps[0].depends_on == []


def test_critical_path_by_time_outs_and_by_measured_seconds():
    plan = Plan(steps=[bare("a"), bare("b"), bare("c", "a"), bare("d", "b")])
    assert plan.critical_path({"a": 1, "b": 3, "c": 1, "d": 1}) == ["b", "d"]
    assert len(plan.critical_path()) == 2


def test_work_time_counts_parallel_steps_once_and_pauses_not_at_all():
    def ran(start: str, ms: float):
        return ended(start, started_at=f"2026-01-01T{start}+00:00", duration_ms=ms)

    assert work_seconds([ran("00:00:00", 2000), ran("00:00:01", 2000)]) == pytest.approx(3)
    assert work_seconds([ran("00:00:00", 1000), ran("09:00:00", 1000)]) == pytest.approx(2)
    assert work_seconds([ended("skipped", "skipped", duration_ms=0.0, started_at="")]) == 0


def test_signal_is_what_a_scheduler_reads():
    plan = Plan(steps=[bare("b", "a"), bare("a")], assumptions=["x"], acceptance_criteria=["y"])
    assert plan.signal()["execution_sequence"] == ["a", "b"]
    assert set(plan.signal()) == {
        "plan_id", "version", "mode", "tasks", "execution_sequence", "assumptions", "acceptance_criteria",
    }  # fmt: skip
