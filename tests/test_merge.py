"""Merging: doubles, order, numbering, the cut, the statistics."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.handmade import record
from tests.shelf import where
from workbench.graphs.merge import distinct, gather, matching_documents, merge
from workbench.plans import NOT_NEEDED

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
