"""The score of a table of questions, the rows that ship, the bytes in which runs agree."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.errors import CorpusError
from workbench.evaluating.questions import counted, read_questions, score, score_questions, split, table_text
from workbench.records.tape import canonical

from . import handmade

ROW = {
    "id": "1",
    "kind": "compare",
    "split": "dev",
    "question": "对比《喜宴》和《饮食男女》的风格",
    "must": [{"say": ["1993"], "cite": ["film-1"]}],
}
PIECE = {**handmade.evidence(1, "喜宴", 0.8), "evidence": "《喜宴》于1993年上映。它是喜剧。"}


def answered(answer: str = "《喜宴》于1993年上映 [1]。", **changes: Any) -> SimpleNamespace:
    return SimpleNamespace(status="done", answer=answer, evidence=[PIECE], **changes)


def test_a_run_is_held_against_its_row() -> None:
    found = score(ROW, answered(), plain=answered())
    assert found["right"] and found["wrong"] == [] and found["baseline"]
    refused = score(ROW, answered("资料库没有提到。"))
    assert refused["over_evidence"] and not refused["right"] and not refused["baseline"]
    anywhere = {**ROW, "must": [{"say": ["1993"], "cite": []}]}
    assert score(anywhere, answered())["right"] and not score(anywhere, answered("它是喜剧 [1]。"))["right"]
    nothing = {"id": "1", "question": ROW["question"], "refuse": True}
    assert score(nothing, answered("资料库没有提到。"))["refusal_is_right"] and not score(nothing, answered())["right"]
    failed = answered()
    failed.status = "failed"
    assert score(ROW, failed)["wrong"][0] == "missing: there is no answer"


class Bench:
    """Answers everything in the same way, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def ask(self, message: str, *, kb: str, session: str, user: str, worker: str, incognito: bool) -> SimpleNamespace:
        assert incognito
        self.asked.append((message, session, worker))
        return answered()


def test_conversations_keep_to_themselves_and_the_best_passage_stands_beside() -> None:
    bench = Bench()
    rows = [
        {"id": "0", "question": "喜宴？", "session": "a"},
        {**ROW, "session": "a"},
        {**ROW, "id": "2", "earlier": ["?"]},
    ]
    scores = score_questions(bench, rows, kb="film")
    assert [s["id"] for s in scores] == ["1", "2"], "a row without gold is asked and not judged"
    groups = split(scores)
    assert groups.keys() == {"dev", "all"} and counted(groups["all"])["right"] == counted(scores)["baseline"] == 2
    sessions = [session for _, session, worker in bench.asked if not worker]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]
    assert {worker for *_, worker in bench.asked} == {"", "film:naive_rag_agent:retrieve_only"}
    assert "2/2" in table_text(groups)


def test_rows_that_are_none_are_named(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + '\n\n{"id": "2", "kind": "qa"}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"rows\.jsonl:3"):
        read_questions(path)


def test_the_rows_that_ship(project) -> None:
    rows = read_questions(project / "experiments" / "film_questions.jsonl")
    assert len(rows) >= 60 and len({row["id"] for row in rows}) == len(rows)
    assert {row["kind"] for row in rows} == {
        "qa", "recommend", "compare", "list", "person", "follow-up", "greeting", "off-corpus",
    }  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    run = handmade.run()
    base = {
        "run_id": run.run_id,
        "plan": run.plan.dump(),
        "evidence": run.merged["retrieval_results"],
        "decisions": run.decisions,
        "merged": run.merged,
        "answer": run.answer,
    }
    return {**base, **changes}


def test_ids_and_times_do_not_tell_runs_apart() -> None:
    decisions = [{**handmade.run().decisions[0], "review_id": "other", "decided_at": "2030-01-01T00:00:00+00:00"}]
    merged = {**handmade.run().merged, "statistics": {"total_duration_ms": 12.5}}
    one = document(run_id="a", merged={**merged, "statistics": {"total_duration_ms": 99.0}})
    assert canonical(one) == canonical(document(run_id="b", merged=merged, decisions=decisions))


def test_what_was_said_tells_runs_apart() -> None:
    assert canonical(document()) != canonical(document(answer="otherwise"))
    other = [handmade.evidence(1, "The Wedding Banquet", 0.84), handmade.evidence(2, "Eat Drink Man Woman", 0.79)]
    assert canonical(document()) != canonical(document(evidence=other))


def test_a_number_without_json_form_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        canonical({"evidence": [float("nan")]})
