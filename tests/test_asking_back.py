"""Asking back: what leaves a question open is named with its readings; a clear question has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.shelf import small_base
from workbench.language.asking_back import left_open
from workbench.language.question import read

FOOD = [
    ("a", "Jack in the Box", "Jack in the Box is a fast food chain founded in San Diego."),
    ("b", "Chipotle", "Chipotle is a fast food chain that sells burritos."),
    ("c", "Big Boy", "Big Boy is a fast food chain from Glendale."),
    ("d", "Mercury (planet)", "Mercury is the planet that is nearest to the sun."),
    ("e", "Mercury (element)", "Mercury is a metal that is liquid when it is warm."),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    library = small_base(tmp_path_factory.mktemp("chains"), FOOD)
    yield library.get("base")
    library.close()


def readings(question: str, bases: list[Any]) -> list[str]:
    left = left_open(read(question, bases), bases, [])
    return [reading.text for reading in left.readings] if left else []


def turn(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": "Yes."}]


def test_a_name_of_two_documents_is_asked_back(base: Any) -> None:
    found = readings("How warm is Mercury?", [base])
    assert found == ["Mercury (planet)", "Mercury (element)"]
    assert readings("How warm is the planet Mercury?", [base]) == []


@pytest.mark.parametrize(
    ("question", "word"), [("What did he sell?", "he"), ("When was it founded?", "it"), ("她在哪里？", "她")],
)  # fmt: skip
def test_a_referent_that_is_missing_is_asked_for(base: Any, question: str, word: str) -> None:
    left = left_open(read(question, [base]), [base], [])
    assert left and left.word == word


@pytest.mark.parametrize(
    "question",
    [
        "Which founder sold his shares?", "Write a report on Chipotle.", "Is it true that Chipotle sells burritos?",
        "写一份关于火星的报告", "其他公司呢？",
    ],
)  # fmt: skip
def test_a_subject_that_is_there_is_not_asked_for(base: Any, question: str) -> None:
    assert left_open(read(question, [base]), [base], []) is None
    assert left_open(read("What did he sell?", [base]), [base], turn("Who was Chipotle's founder?")) is None
