"""What a passage leaves of a question is asked of the names that it brings in; what is found has places in front."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.handmade import evidence as piece
from workbench import Workbench
from workbench.graphs.merge import FRONT, with_hops
from workbench.tools import next_hop
from workbench.tools.tool import StepLog

TEXTS = {
    "The Reef": "The Reef is a film about divers. It was directed by Mara Velden in 1962.",
    "Mara Velden": "Mara Velden was a director. She was born in Oslo.",
    "Oslo": "Oslo is a city of ships.",
    "Sheep": "Sheep graze on the hill all summer. Nobody was born there.",
    "The Cove": "The Cove is a film about swimmers, seen by Mara Velden.",
}
QUESTION = "Where was the director of The Reef born?"


@pytest.fixture(scope="module", params=["hashing", "use"])
def wb(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    lines = (json.dumps({"id": t.lower(), "title": t, "text": x}) for t, x in TEXTS.items())
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with Workbench.open(folder / "ws", embedding_model=request.param, names="rules") as wb:
        wb.add_knowledge("texts", [folder / "texts.jsonl"])
        yield wb


def reef(base) -> list[dict[str, Any]]:
    """The first passage of the film, as evidence."""
    passage = base.passages(doc_ids=["the reef"])[0]
    found = piece(1, "", 0.9)
    metadata = {**found["metadata"], "doc_id": "the reef", "title": "The Reef"}
    return [{**found, "source_id": passage["chunk_id"], "evidence": passage["text"], "metadata": metadata}]


def test_the_rest_of_a_question_is_asked_of_the_name_that_a_sentence_brings_in(wb) -> None:
    base = wb.knowledge.get("texts")
    first = next_hop.sub_questions(QUESTION, reef(base), base)[0]
    assert (first.name, first.title) == ("Mara Velden", "The Reef") and "born" in first.query
    assert "reef" not in first.query.lower() and first.sentence == "It was directed by Mara Velden in 1962."


def test_a_name_that_the_question_says_brings_nothing_in(wb) -> None:
    base = wb.knowledge.get("texts")
    asked = "Where was Mara Velden, the director of The Reef, born?"
    assert not any(sub.name == "Mara Velden" for sub in next_hop.sub_questions(asked, reef(base), base))
    assert next_hop.sub_questions(QUESTION, [], base) == []


def test_the_passage_that_says_the_rest_of_the_name_comes_first(wb) -> None:
    base = wb.knowledge.get("texts")
    sub = next_hop.sub_questions(QUESTION, reef(base), base)[0]
    given = next_hop.NextHopInput(
        query=sub.query,
        question=QUESTION,
        name=sub.name,
        passage=sub.passage,
        sentence=f"{sub.title}. {sub.sentence}",
    )
    results = next_hop.search(given, base, StepLog())["results"]
    best = results[0]
    assert best["metadata"]["title"] == "Mara Velden" and best["metadata"]["chain"]["steps"][0]["by"] == "title"
    assert best["metadata"]["chain"]["steps"][0]["from"] == sub.passage


def test_sub_questions_need_no_language_in_common(tmp_path) -> None:
    lines = (json.dumps({"id": t.lower(), "title": t, "text": x}) for t, x in TEXTS.items())
    (tmp_path / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with Workbench.open(tmp_path / "ws", embedding_model="use", names="rules") as wb:
        wb.add_knowledge("texts", [tmp_path / "texts.jsonl"])
        base = wb.knowledge.get("texts")
        near = base.similar_words("The Reef 的导演出生在哪里？")
        assert near["导演"][0][0] in ("director", "directed") and base.similar_words(QUESTION) == {}
        sub = next_hop.sub_questions("The Reef 的导演出生在哪里？", reef(base), base)[0]
        assert sub.name == "Mara Velden" and "出生" in sub.query


def hop(document: str, score: float) -> dict[str, Any]:
    """What a sub-question found."""
    found = piece(9, "", score)
    return {
        **found,
        "source_id": f"{document}#0",
        "metadata": {**found["metadata"], "doc_id": document, "tools": ["next_hop"]},
    }


def first_pass() -> list[dict[str, Any]]:
    """Eight documents, each of a third of the score of the one before."""
    made = []
    for n in range(8):
        found = piece(n, "", round(0.9 * 0.3**n, 6))
        made.append({**found, "source_id": f"d{n}#0", "metadata": {**found["metadata"], "doc_id": f"d{n}"}})
    return made


def test_what_is_found_has_a_place_among_the_first_five_behind_those_that_stand() -> None:
    merged = with_hops(first_pass(), [hop("new", 0.9)])
    order = [result["metadata"]["doc_id"] for result in merged]
    assert order[:FRONT] == ["d0", "d1"] and "new" in order[:5] and len(order) == 9
    scores = [result["score"] for result in merged]
    assert scores == sorted(scores, reverse=True)


def test_what_is_unlikely_has_no_place_among_the_first_five() -> None:
    merged = with_hops(first_pass(), [hop("new", 0.001)])
    assert [result["metadata"]["doc_id"] for result in merged][:5] == ["d0", "d1", "d2", "d3", "d4"]


def test_a_passage_that_both_found_keeps_both_tools() -> None:
    merged = with_hops(first_pass(), [hop("d6", 0.9)])
    both = next(result for result in merged if result["metadata"]["doc_id"] == "d6")
    assert "next_hop" in both["metadata"]["tools"] and len(merged) == 8
