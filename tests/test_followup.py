"""What leans on a conversation is asked with what it leans on, and what stays open is asked back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.films import small_base
from workbench.language.answer import left_open
from workbench.language.followup import standalone
from workbench.language.question import read


def said(*turns: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)]


BANQUET = said("Who directed The Wedding Banquet?", "The Wedding Banquet was directed by Ang Lee [1].")
XIYAN = said("喜宴哪一年上映？", "《喜宴》于 1993 年上映 [1]。")
LIKE = said("推荐几部类似《喜宴》的电影", "可以看看《饮食男女》[1]、《推手》[2]、《断背山》[3]。")
LIST = said("Which films did Ang Lee direct after 2000?", "Hulk (2003) [1], Brokeback Mountain [2], Life of Pi [3].")
SIDES = said("对比《喜宴》和《饮食男女》的风格", "两部都讲家庭。")
PERSON = said("Who is Ang Lee?", "Ang Lee is a filmmaker. He directed The Ice Storm [1].")
NOLAN = said("列出诺兰2005年以后的电影", "《盗梦空间》《星际穿越》")
CAST = said(
    "Who directed Inception?",
    "Inception was directed by Christopher Nolan [1].",
    "And who stars in it?",
    "Inception stars Leonardo DiCaprio [1].",
)

LEANING = [
    # a pronoun, or no name of its own
    (BANQUET, "When did it come out?", "When did it come out? (The Wedding Banquet)"),
    (BANQUET, "What else has he directed?", "What else has he directed? (Ang Lee)"),
    (BANQUET, "Is he also the director of Tenet?", "Is he also the director of Tenet? (Ang Lee)"),
    (BANQUET, "And its cast?", "And its cast? (The Wedding Banquet)"),
    (BANQUET, "When was the movie released?", "When was the movie released? (The Wedding Banquet)"),
    (BANQUET, "Recommend something similar", "Recommend something similar (The Wedding Banquet)"),
    (PERSON, "his best film?", "his best film? (Ang Lee)"),
    (CAST, "What else did he star in?", "What else did he star in? (Leonardo DiCaprio)"),
    (BANQUET, "那个导演还拍过什么？", "那个导演还拍过什么？（The Wedding Banquet）"),
    (XIYAN, "它是谁导演的？", "它是谁导演的？（喜宴）"),
    (XIYAN, "该片的主演是谁", "该片的主演是谁（喜宴）"),
    (XIYAN, "导演是谁？", "导演是谁？（喜宴）"),
    (NOLAN, "他还导演过什么？", "他还导演过什么？（诺兰）"),
    (SIDES, "它们的导演是谁？", "它们的导演是谁？（《喜宴》, 《饮食男女》）"),
    # what only begins stands behind the question before
    (BANQUET, "And Pushing Hands?", "Who directed The Wedding Banquet? And Pushing Hands?"),
    (BANQUET, "What about Hulk?", "Who directed The Wedding Banquet? What about Hulk?"),
    (LIST, "And after 2005?", "Which films did Ang Lee direct after 2000? And after 2005?"),
    (XIYAN, "那《推手》呢？", "喜宴哪一年上映？ 那《推手》呢？"),
    (NOLAN, "那2010年以后呢？", "列出诺兰2005年以后的电影 那2010年以后呢？"),
    # more of the same, or less
    (LIKE, "再推荐几部", "推荐几部类似《喜宴》的电影"),
    (LIKE, "还有吗？", "推荐几部类似《喜宴》的电影"),
    (LIKE, "还有其他推荐吗", "推荐几部类似《喜宴》的电影"),
    (LIST, "Any others?", "Which films did Ang Lee direct after 2000?"),
    (LIST, "Only the comedies", "Which films did Ang Lee direct after 2000? Only the comedies"),
]


@pytest.mark.parametrize(("history", "message", "expected"), LEANING)
def test_what_leans_is_asked_with_what_it_leans_on(shelf, history, message, expected):
    assert standalone(message, history, [shelf.get("film")]) == expected


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (BANQUET, "Who directed Inception?"), (BANQUET, "Recommend a comedy"), (BANQUET, "thanks"), (BANQUET, "Hulk"),
        (BANQUET, "And the director of Inception?"), (BANQUET, "Who is Tim Burton and what did he make?"),
        (XIYAN, "李安是谁？"), (XIYAN, "推荐几部科幻片"), (LIKE, "推荐几部诺兰的电影"), ([], "And Pushing Hands?"),
        ([], "它是谁导演的？"),
    ],
)  # fmt: skip
def test_what_stands_alone_is_left_alone(shelf: Any, history: list[dict[str, str]], message: str) -> None:
    assert standalone(message, history, [shelf.get("film")]) == message


def test_small_talk_between_changes_nothing(shelf: Any) -> None:
    history = [*XIYAN, *said("谢谢", "不客气。")]
    assert standalone("导演是谁？", history, [shelf.get("film")]) == "导演是谁？（喜宴）"


def test_a_conversation_without_names_gives_its_rarest_words(shelf: Any) -> None:
    history = said("Is tea partly oxidised?", "Oolong tea is.")
    assert (
        standalone("How does it work?", history, [shelf.get("essays")]) == "How does it work? (tea, partly, oxidised)"
    )


def test_more_of_a_list_is_what_was_not_listed(wb: Any, tmp_path: Path) -> None:
    rows = [{"id": str(n), "title": f"Mill {n}", "text": f"Mill {n} is in Tarn.", "kind": "mill"} for n in range(20)]
    corpus = tmp_path / "mills.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    wb.add_knowledge("mills", [corpus])
    answers = [wb.ask(text, kb="mills", session="one").answer for text in ("Recommend a few mills", "Any others?")]
    first, more = ({line.partition(" [")[0] for line in answer.splitlines()[1:]} for answer in answers)
    assert len(first) == len(more) == 8 and not first & more


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
