"""The judgement of the evidence: which sentence answers, what is lacking, and that spoilt evidence is not enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_writing import SAVED, evidence_of, library, reading_of  # noqa: F401 - a fixture
from workbench.knowledge.library import Library
from workbench.language.judging import Judged, judged
from workbench.language.quoting import parts

CASES = {case["question"]: case for case in SAVED["cases"]}


def judgement(library: Library, question: str, evidence: list[Any] | None = None, **reading: Any) -> Judged:  # noqa: F811
    case = dict(CASES[question])
    case["evidence"] = case["evidence"] if evidence is None else evidence
    base = library.get(case["corpus"])
    return judged({**reading_of(case), **reading}, evidence_of(case, base), [base])  # type: ignore[typeddict-item]


def test_what_the_evidence_answers_is_enough_and_what_it_does_not_is_not(library: Library):  # noqa: F811
    wrong = [q for q, case in CASES.items() if judgement(library, q).enough == case["refuse"]]
    assert len(wrong) <= 1, wrong


def test_without_the_pieces_that_answer_it_is_not_enough(library: Library):  # noqa: F811
    asked = [q for q, c in CASES.items() if len(c["cites"]) == 1 and not c["question"].get("count")]
    spoilt = [
        q
        for q in asked
        if judgement(library, q, [e for e in CASES[q]["evidence"] if e not in CASES[q]["cites"]]).enough
    ]
    assert len(asked) > 30 and len(spoilt) <= 1, spoilt


def test_the_first_of_an_order_is_not_the_first_of_what_was_found(library: Library):  # noqa: F811
    shortest = judgement(library, "What is the quickest recipe?", ["r1", "r2"])
    assert not shortest.first and not shortest.enough and shortest.holding == ("r1", "r2")
    assert judgement(library, "What is the quickest recipe?", ["r2", "r3"]).holding == ("r3", "r2")


def test_each_part_of_a_question_has_its_own_answer_or_is_lacking(library: Library):  # noqa: F811
    both = judgement(library, "Did Harbour Light win a prize, and what is its budget?")
    assert both.lacking == (("budget",),)
    surest = {one.part: one.text for one in reversed(both.answers) if one.answers}
    assert surest == {0: "It won the main prize at Locarno."}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## Steps\n1. Open it. Close it.\n2. Wait", [("Steps", "Open it. Close it."), ("Steps", "Wait")]),
        (
            "Run:\n```sh\nmake all\nmake test\n```\nDone now.",
            [("", "Run:"), ("", "make all; make test"), ("", "Done now.")],
        ),
        ("a **b** \x1b[31m`c` [2] [d](http://e) <b>f</b>\u202e.", [("", "a b [31mc d f.")]),
        ("一行\n接一行。", [("", "一行接一行。")]),
        ("```\nnever closed", [("", "never closed")]),
    ],
)
def test_items_rows_and_code_keep_their_bounds_and_lose_their_markup(text: str, said: list[tuple[str, str]]):
    assert list(parts(text, "Title")) == said


def test_a_reranker_tells_what_answers_where_no_word_is_shared(library: Library):  # noqa: F811
    question = "Did Harbour Light win a prize, and what is its budget?"
    other = {"words": ["honoured"], "names": [], "asked": [], "answer_type": "text"}
    assert not judgement(library, question, **other).enough
    library.reranker = lambda query, texts: [float("prize at Locarno" in text) for text in texts]
    try:
        told = judgement(library, question, **other)
    finally:
        library.reranker = None
    assert told.enough and told.answers[0].text == "It won the main prize at Locarno."
