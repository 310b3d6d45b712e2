"""Asking back: what leaves a question open is named with its readings; a clear question has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.shelf import small_base
from workbench.language.asking_back import left_open

FOOD = [
    ("a", "Jack in the Box", "Jack in the Box is a fast food chain founded in San Diego."),
    ("b", "Chipotle", "Chipotle is a fast food chain that sells burritos."),
    ("c", "Big Boy", "Big Boy is a fast food chain from Glendale."),
    ("d", "Mercury (planet)", "Mercury is the planet that is nearest to the sun."),
    ("e", "Mercury (element)", "Mercury is a metal that is liquid when it is warm."),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A base of fast food chains and two things of one name."""
    library = small_base(tmp_path_factory.mktemp("chains"), FOOD)
    yield library.get("base")
    library.close()


def results(*ids: str) -> list[dict[str, Any]]:
    """Evidence of these documents."""
    metadata = {i: {"doc_id": i, "title": title} for i, title, _ in FOOD}
    return [{"source_type": "chunk", "evidence": text, "metadata": metadata[i]} for i, _, text in FOOD if i in ids]


def readings(question: str, evidence: list[dict[str, Any]], bases: list[Any], history: list[Any]) -> list[str]:
    """What a question may mean, as texts."""
    left = left_open(question, evidence, bases, history)
    return [reading.text for reading in left.readings] if left else []


def turn(question: str) -> list[dict[str, str]]:
    """A conversation of one question."""
    return [{"role": "user", "content": question}, {"role": "assistant", "content": "Yes."}]


@pytest.mark.parametrize("history", [[], turn("Is the sun warm?")])
def test_a_noun_that_nothing_explains_is_asked_back(base: Any, history: Any) -> None:
    found = readings("Where did the fast food chain open?", results("a", "b", "c"), [base], history)
    assert found == [f"fast food chain: {title}" for title in ("Jack in the Box", "Chipotle", "Big Boy")]


@pytest.mark.parametrize(
    ("question", "history", "ids"),
    [
        ("Where did the fast food chain open?", turn("Which fast food chain sells burritos?"), "abc"),
        ("Where did the fast food chain open?", turn("Tell me of Chipotle"), "abc"),
        ("Where did the fast food chain open?", [], "ad"),
        ("Where did the fast food chain of burritos open?", [], "abc"),
        ("Where did the largest fast food chain open?", [], "abc"),
        ("Where does a fast food chain open?", [], "abc"),
        ("Compare Chipotle and Big Boy", [], "bc"),
    ],
)
def test_a_clear_question_is_not(base: Any, question: str, history: Any, ids: str) -> None:
    assert readings(question, results(*ids), [base], history) == []


def test_a_name_of_two_documents_is_asked_back(base: Any) -> None:
    found = readings("How warm is Mercury?", results("d", "e"), [base], [])
    assert found == ["Mercury (planet)", "Mercury (element)"]
    assert readings("How warm is the planet Mercury?", results("d", "e"), [base], []) == []


def test_nothing_found_leaves_nothing_to_ask(base: Any) -> None:
    assert readings("Where did the fast food chain open?", [], [base], []) == []
    assert readings("", [], [], []) == []


@pytest.mark.parametrize(
    ("question", "what", "word"),
    [
        ("Write a full report.", "subject", ""),
        ("请写一份完整的报告。", "subject", ""),
        ("What did he sell?", "pronoun", "he"),
        ("When was it founded?", "pronoun", "it"),
        ("她在哪里？", "pronoun", "她"),
    ],
)
def test_a_subject_or_a_referent_that_is_missing_is_asked_for(base: Any, question: str, what: str, word: str) -> None:
    left = left_open(question, [], [base], [])
    assert left and (left.what, left.word) == (what, word)


@pytest.mark.parametrize(
    "question",
    ["Write a report on Chipotle.", "Is it true that Chipotle sells burritos?", "写一份关于火星的报告", "其他公司呢？"],
)
def test_a_subject_that_is_there_is_not_asked_for(base: Any, question: str) -> None:
    assert left_open(question, [], [base], []) is None
    assert left_open("What did he sell?", [], [base], turn("Who was Chipotle's founder?")) is None
