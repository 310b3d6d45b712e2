"""The score of a table of questions, the rows that ship, the bytes in which runs agree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.evaluating.answers import USER, ask_all, faults
from workbench.evaluating.rankings import read_rows
from workbench.records.tape import canonical

from . import handmade

ROW = {
    "id": "1",
    "kind": "compare",
    "split": "dev",
    "question": "对比《喜宴》和《饮食男女》的风格",
    "must": [{"say": ["1993"], "cite": ["film-1"]}],
}
PIECE, OTHER = handmade.evidence(1, "喜宴", 0.8), handmade.evidence(2, "饮食男女", 0.7)


def answered(answer: str = "《喜宴》于1993年上映 [1]。", status: str = "done") -> SimpleNamespace:
    return SimpleNamespace(status=status, answer=answer, evidence=[PIECE, OTHER], support=[])


def wrong(said: str, **gold: Any) -> list[str]:
    """The kinds of what is wrong."""
    return [fault.partition(":")[0] for fault in faults({"id": "1", "question": "?", **gold}, answered(said))]


def test_a_run_is_held_against_its_row() -> None:
    assert list(faults(ROW, answered())) == []
    assert next(iter(faults(ROW, answered(status="failed")))) == "missing: there is no answer"
    must = ROW["must"]
    assert wrong("《喜宴》于1993年上映 [2]。", must=must) == ["missing"], "another document is cited"
    assert wrong("《喜宴》于1993年上映。", must=must) == ["missing"], "none is cited"
    assert wrong("《喜宴》于1993年上映。", must=[{"say": ["1993"], "cite": []}]) == []
    assert wrong("资料库没有提到。", must=must) == ["refused", "missing"]
    assert wrong("资料库没有提到。", refuse=True) == [] and wrong("1993 [1].", refuse=True) == ["answered"]
    assert wrong("In 1993 [1], not 1999.", must=must, must_not=["1999"]) == ["false"]
    assert wrong("It was 1993 [1].", answer="1993", gold=["film-1"]) == [] == wrong("It was 1993.", answers=["1993"])


def test_lists_and_counts_are_whole_and_of_no_other_document() -> None:
    exact = [{"say": ["喜宴"], "cite": ["film-1"]}]
    assert wrong("喜宴 [1]", list={"exact": exact}) == []
    assert wrong("喜宴 [1]\n饮食男女 [2]", list={"exact": exact}) == ["foreign"]
    assert wrong("喜宴 [1]\n饮食男女 [2]", list={"exact": exact, "may": [{"say": [], "cite": ["film-2"]}]}) == []
    count = {"is": 2, "cite": ["film-1", "film-2"]}
    assert wrong("2 部 [1][2]。", number=count) == [] and wrong("3 部 [1]。", number=count) == ["count"]
    assert wrong("喜宴 [1]。", some={"least": 2, "of": [*exact, {"say": ["断背山"], "cite": []}]}) == ["missing"]


class Bench:
    """Answers everything in the same way, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def ask(self, message: str, *, kb: str, session: str, user: str) -> SimpleNamespace:
        assert user == USER
        self.asked.append((message, session))
        return answered()

    def map(self, messages: list[str], *, progress: Any, **options: Any) -> list[SimpleNamespace]:
        return [answered() for _ in messages]


def test_conversations_keep_to_themselves() -> None:
    bench: Any = Bench()
    rows = [
        {"id": "0", "question": "喜宴？", "session": "a"},
        {**ROW, "session": "a"},
        {**ROW, "id": "2", "earlier": ["?"]},
    ]
    assert len(ask_all(bench, rows, kb="film")) == 3
    sessions = [session for _, session in bench.asked]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]
    assert len(ask_all(bench, [ROW], kb="film")) == 1 and len(bench.asked) == 4, "what stands alone is asked at once"


def test_the_rows_that_ship(project) -> None:
    rows = read_rows(project / "experiments" / "film_questions.jsonl", "id", "question")
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
