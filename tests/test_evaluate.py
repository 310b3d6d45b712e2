"""The score: what makes an answer right or wrong, the table, the rows that ship, the bytes in which runs agree."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.canonical import canonical
from workbench.errors import CorpusError
from workbench.evaluating.questions import is_refusal, read_questions, score, score_questions, table_text

from . import handmade

ROW = {
    "id": "1",
    "category": "compare",
    "question": "对比《喜宴》和《饮食男女》的风格",
    "intent": ["compare"],
    "steps": 3,
    "evidence": [["The Wedding Banquet", "喜宴"], ["Eat Drink Man Woman"]],
    "answer": [["1993"], ["1994"]],
}


def answered(**changes: Any) -> SimpleNamespace:
    run = handmade.run(**changes)
    run.evidence = run.merged["retrieval_results"]
    return run


def test_a_right_answer() -> None:
    found = score(ROW, answered())
    assert found["right"] and found["wrong"] == [] and found["evidence"] is True


@pytest.mark.parametrize(
    ("row", "change", "kind"),
    [
        ({"intent": ["qa"]}, {}, "intent"),
        ({"steps": 5}, {}, "steps"),
        ({"retrieval": False}, {}, "steps"),
        ({"evidence": [["Hulk"]]}, {}, "evidence"),
        ({"answer": [["Hulk"]]}, {}, "answer"),
        ({"answer_from": {"least": 2, "of": [["喜宴"], ["Hulk"]]}}, {}, "answer"),
        ({"cites_others": {"least": 2, "than": ["The Wedding Banquet"]}}, {}, "answer"),
        ({"must_not": ["朱家"]}, {}, "answer"),
        ({"refuse": True}, {}, "answer"),
        ({}, {"answer": ""}, "answer"),
        ({}, {"status": "failed"}, "answer"),
        ({}, {"answer": "It came out in 1993, the other in 1994."}, "answer"),
        ({}, {"citations": []}, "answer"),
    ],
)
def test_a_wrong_one_says_what_is_wrong(row, change, kind) -> None:
    found = score({**ROW, **row}, answered(**change))
    assert not found["right"] and found["wrong"][0].startswith(kind) and found[kind] is False


@pytest.mark.parametrize(
    "said",
    [
        "The corpus does not say.",
        "Nothing in the corpus is about Parasite.",
        "语料中没有提到《霸王别姬》。",
        "资料未提及票房。",
    ],
)
def test_refusals(said) -> None:
    assert is_refusal(said)


@pytest.mark.parametrize("said", ["It follows a man who does not sleep [1].", "《喜宴》于 1993 年上映 [1]。"])
def test_no_refusals(said) -> None:
    assert not is_refusal(said)


class Bench:
    """Answers everything in the same way, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def ask(self, message: str, *, kb: str, session: str, user: str, worker: str, incognito: bool) -> SimpleNamespace:
        assert incognito
        self.asked.append((message, session, worker))
        return answered(**({"records": handmade.records()[:1]} if worker else {}))


def test_the_table_stands_beside_a_baseline() -> None:
    bench = Bench()
    rows = [{**ROW, "session": "a"}, {**ROW, "id": "2", "session": "a"}, {**ROW, "id": "3", "category": "qa"}]
    table = score_questions(bench, rows)
    lines = {line["category"]: line for line in table["categories"]}
    assert lines["compare"]["right"] == [2, 2] and lines["all"]["right"] == [3, 3]
    assert lines["all"]["baseline"]["right"] == [3, 3] and lines["all"]["baseline"]["steps"] == [0, 0]
    assert bench.asked[0][1] == bench.asked[1][1] != bench.asked[2][1]
    assert {worker for *_, worker in bench.asked[3:]} == {"film:naive_rag_agent:retrieve_only"}
    assert "compare      2/2 (2)" in table_text(table)


def test_rows_that_are_none_are_named(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + '\n\n{"id": "2", "category": "qa"}\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"rows\.jsonl:3"):
        read_questions(path)


def test_the_rows_that_ship(project) -> None:
    rows = read_questions(project / "experiments" / "film_questions.jsonl")
    assert len(rows) >= 60 and len({row["id"] for row in rows}) == len(rows)
    assert {row["category"] for row in rows} == {
        "qa", "recommend", "compare", "list", "person", "follow-up", "greeting", "off-corpus",
    }  # fmt: skip
    asked = {row["question"] for row in rows}
    assert asked >= {
        "喜宴哪一年上映？",
        "推荐几部类似《喜宴》的电影",
        "对比《喜宴》和《饮食男女》的风格",
        "List Christopher Nolan films after 2005",
        "Who is Ang Lee and what has he directed?",
    }


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
