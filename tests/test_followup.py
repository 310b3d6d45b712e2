"""Follow-ups: what leans on the conversation is said again so that it stands alone; the rest is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shelf import shelf
from workbench.language.followup import standalone

__all__ = ["shelf"]


def said(*turns: str) -> list[dict[str, str]]:
    """A conversation: user, assistant, user, ..."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)]


BANQUET = said("Who directed The Wedding Banquet?", "The Wedding Banquet was directed by Ang Lee [1].")
XIYAN = said("喜宴哪一年上映？", "《喜宴》于 1993 年上映 [1]。")
LIKE = said("推荐几部类似《喜宴》的电影", "可以看看《饮食男女》[1]、《推手》[2]、《断背山》[3]。")
LIST = said("Which films did Ang Lee direct after 2000?", "Hulk (2003) [1], Brokeback Mountain [2], Life of Pi [3].")
SIDES = said("对比《喜宴》和《饮食男女》的风格", "两部都讲家庭。")
BOTH = said("Compare Inception and Tenet", "Both play with time.")
PERSON = said("Who is Ang Lee?", "Ang Lee is a filmmaker. He directed The Ice Storm [1].")
NOLAN = said("列出诺兰2005年以后的电影", "《盗梦空间》《星际穿越》")
CAST = said(
    "Who directed Inception?",
    "Inception was directed by Christopher Nolan [1].",
    "And who stars in it?",
    "Inception stars Leonardo DiCaprio [1].",
)

PAIR = said(
    "Who directed Inception?",
    "Inception was directed by Christopher Nolan [1].",
    "Is he also the director of Tenet?",
    "Yes: Tenet was directed by Christopher Nolan [1].",
)
LISTED = said("List Ang Lee films", "Hulk (2003) [1], Brokeback Mountain [2], Life of Pi [3].")

LEANING = [
    # pronouns and demonstratives
    (BANQUET, "When did it come out?", "When did The Wedding Banquet come out?"),
    (BANQUET, "What else has he directed?", "What else has Ang Lee directed?"),
    (BANQUET, "And its cast?", "The Wedding Banquet's cast?"),
    (BANQUET, "What is that film about?", "What is The Wedding Banquet about?"),
    (BANQUET, "When was the movie released?", "When was The Wedding Banquet released?"),
    (PERSON, "his best film?", "Ang Lee's best film?"),
    (PERSON, "When was he born?", "When was Ang Lee born?"),
    (CAST, "What else did he star in?", "What else did Leonardo DiCaprio star in?"),
    (XIYAN, "它是谁导演的？", "《喜宴》是谁导演的？"),
    (XIYAN, "这部电影讲了什么？", "《喜宴》讲了什么？"),
    (XIYAN, "该片的主演是谁", "《喜宴》的主演是谁"),
    (NOLAN, "他还导演过什么？", "诺兰还导演过什么？"),
    (SIDES, "它们的导演是谁？", "《喜宴》和《饮食男女》的导演是谁？"),
    (SIDES, "前者是哪年的？", "《喜宴》是哪年的？"),
    (LIST, "Who stars in the first one?", "Who stars in Hulk?"),
    (LIST, "Which of them is the longest?", "Which of Hulk, Brokeback Mountain and Life of Pi is the longest?"),
    (LIKE, "第二部是谁导演的？", "《推手》是谁导演的？"),
    # elliptic questions
    (BANQUET, "And Pushing Hands?", "Who directed Pushing Hands?"),
    (BANQUET, "What about Hulk?", "Who directed Hulk?"),
    (BANQUET, "And the director of Inception?", "The director of Inception?"),
    (PERSON, "And Christopher Nolan?", "Who is Christopher Nolan?"),
    (LIST, "And Nolan?", "Which films did Nolan direct after 2000?"),
    (XIYAN, "那《推手》呢？", "《推手》哪一年上映？"),
    (XIYAN, "推手呢", "推手哪一年上映？"),
    (LIKE, "那《盗梦空间》呢", "推荐几部类似《盗梦空间》的电影"),
    (SIDES, "那《推手》呢？", "对比《喜宴》和《推手》的风格"),
    (NOLAN, "那李安呢", "列出李安2005年以后的电影"),
    (XIYAN, "和《推手》比呢？", "对比《喜宴》和《推手》"),
    (XIYAN, "跟饮食男女比怎么样", "对比《喜宴》和《饮食男女》"),
    # questions without a subject, or without the other side
    (XIYAN, "导演是谁？", "《喜宴》导演是谁？"),
    (XIYAN, "主演有哪些？", "《喜宴》主演有哪些？"),
    (XIYAN, "有什么类似的电影推荐？", "有什么类似《喜宴》的电影推荐？"),
    (BANQUET, "Who else starred?", "Who else starred in The Wedding Banquet?"),
    (BANQUET, "Recommend something similar", "Recommend something similar to The Wedding Banquet"),
    (BANQUET, "Show me more films like that", "Show me more films like The Wedding Banquet"),
    (NOLAN, "还导演过哪些电影？", "诺兰还导演过哪些电影？"),
    # more of the same
    (LIKE, "再推荐几部", "推荐几部类似《喜宴》的电影"),
    (LIKE, "还有吗？", "推荐几部类似《喜宴》的电影"),
    (LIKE, "more", "推荐几部类似《喜宴》的电影"),
    (LIST, "Any more?", "Which films did Ang Lee direct after 2000?"),
]


@pytest.mark.parametrize(("history", "message", "expected"), LEANING)
def test_what_leans_is_said_again(shelf: Any, history: list[dict[str, str]], message: str, expected: str) -> None:
    assert standalone(message, history, [shelf.get("film")]) == expected


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (BANQUET, "Who directed Inception?"),
        (BANQUET, "Recommend a comedy"),
        (BANQUET, "thanks"),
        (BANQUET, "Hulk"),
        (BANQUET, "Is it true that Ang Lee won an Oscar?"),
        (BANQUET, "Who is Tim Burton and what did he make?"),
        (XIYAN, "李安是谁？"),
        (XIYAN, "推荐几部科幻片"),
        (XIYAN, "其他导演有哪些代表作"),
        (LIKE, "推荐几部诺兰的电影"),
        ([], "And Pushing Hands?"),
        ([], "它是谁导演的？"),
    ],
)
def test_what_stands_alone_is_left_alone(shelf: Any, history: list[dict[str, str]], message: str) -> None:
    assert standalone(message, history, [shelf.get("film")]) == message


def test_follow_ups_of_follow_ups(shelf: Any) -> None:
    history = [*BANQUET, *said("And Pushing Hands?", "Ang Lee.", "And Hulk?", "Ang Lee.")]
    assert standalone("When was it released?", history, [shelf.get("film")]) == "When was Hulk released?"
    assert standalone("And Inception?", history, [shelf.get("film")]) == "Who directed Inception?"


def test_small_talk_between_changes_nothing(shelf: Any) -> None:
    history = [*XIYAN, *said("谢谢", "不客气。")]
    assert standalone("导演是谁？", history, [shelf.get("film")]) == "《喜宴》导演是谁？"


def test_only_the_window_counts(shelf: Any) -> None:
    assert standalone("And Pushing Hands?", BANQUET[2:], [shelf.get("film")]) == "And Pushing Hands?"


def test_the_language_of_the_question_writes_the_name(shelf: Any) -> None:
    assert standalone("Who directed it?", XIYAN, [shelf.get("film")]) == "Who directed The Wedding Banquet?"
    assert standalone("它是哪一年的？", BANQUET, [shelf.get("film")]) == "《The Wedding Banquet》是哪一年的？"
