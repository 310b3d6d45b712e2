"""Passages and turns of a conversation, ranked for a question in either language."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.knowledge.indexes import keywords
from workbench.knowledge.indexes.index import Index
from workbench.models.embeddings import HashingEmbeddings
from workbench.parts.memory.ranking import Conversation, Turn

PASSAGES = {
    "a#0": ("The Wedding Banquet | 喜宴", ["Ang Lee", "李安"], "A gay immigrant marries to please his parents."),
    "b#0": ("饮食男女", ["李安"], "一位大厨和他的三个女儿。"),
    "c#0": ("Marriage Story", ["Noah Baumbach"], "A couple marries, and the marriage ends in Hallström's Café."),
    "d#0": ("Tea", [], "Leaves in water."),
}


@pytest.fixture
def index(tmp_path):
    index = Index(tmp_path / "index.db", create=True)
    with index.transaction() as connection:
        for number, (chunk_id, (title, names, body)) in enumerate(PASSAGES.items(), 1):
            row = (number, chunk_id, chunk_id[0], 0, body, "", "")
            connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            keywords.insert(connection, number, *map(keywords.stored, (title, " ".join(names))), body)
    yield index
    index.close()


def found(index, query, top_k=10):
    return [chunk_id for chunk_id, _ in keywords.search(index, query, top_k)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("喜宴哪一年上映？", ["a#0"]), ("饮食男女", ["b#0"]), ("大廚的女兒", ["b#0"]), ("wedding banquets", ["a#0"]),
        ("ang lee's films", ["a#0"]), ("hallstrom CAFE", ["c#0"]), ("...", []), ("", []),
        ("who is the of", ["a#0", "c#0"]),  # nothing but function words, so they count
        ('"; DROP TABLE terms; NEAR(a b) OR * ^ -', []),
    ],
)  # fmt: skip
def test_finds(index, query, expected):
    assert found(index, query) == expected


TURNS = [
    ("a", "1", "2024-03-04", "Mei", "I adopted a grey cat last week, she is called Biscuit."),
    ("a", "1", "2024-03-04", "Tom", "Lovely! What will you do about your allergy?"),
    ("a", "1", "2024-03-04", "Mei", "The doctor gave me tablets."),
    ("a", "2", "2024-04-10", "Tom", "昨天我去了大理，住在洱海边。"),
    ("a", "2", "2024-04-10", "Mei", "那边天气怎么样？"),
    ("a", "2", "2024-04-10", "Tom", "一直下雨，不过米线很好吃。"),
    ("b", "1", "2024-05-01", "Ann", "My dentist is Doctor Lin."),
    ("b", "1", "2024-05-01", "Bo", "Mine retired in May."),
]
ASKED = [
    ("a", "What is the name of Mei's cat?", ["a0"], "en"),
    ("a", "Tom 去了哪里？", ["a3"], "zh"),
    ("a", "大理的天气如何？", ["a5"], "zh"),
    ("b", "Who is Ann's dentist?", ["b0"], "en"),
]


def numbered() -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    rows = []
    for conv, session, day, speaker, text in TURNS:
        number = counts[conv] = counts.get(conv, -1) + 1
        row = {"id": f"{conv}{number}", "conv": conv, "session": f"{conv}-{session}", "date": day}
        rows.append({**row, "speaker": speaker, "text": text})
    return rows


def talk(vectors: bool) -> Conversation:
    made, model = Conversation(), HashingEmbeddings()
    for row in [row for row in numbered() if row["conv"] == "a"]:
        turn = Turn(row["id"], row["session"], row["date"], row["speaker"], row["text"])
        made.add(turn, model.array([turn.text])[0] if vectors else None)
    return made


@pytest.mark.parametrize("vectors", [False, True])
def test_what_a_question_is_about_comes_first_in_both_languages(vectors):
    made, model = talk(vectors), HashingEmbeddings()
    for conv, question, gold, _ in ASKED:
        if conv == "a":
            vector = model.array([question])[0] if vectors else None
            assert gold[0] in [found.id for found in made.rank(question, vector)][:2], question


def test_who_is_named_is_preferred_and_pronouns_name_the_roles():
    names, roles = Conversation(), Conversation()
    for made, speakers in ((names, ("Ann", "Bo")), (roles, ("user", "assistant"))):
        for speaker in speakers:
            made.add(Turn(speaker, "1", "", speaker, "My bicycle is new."))
    assert next(names.rank("What about Bo's bicycle?")).id == "Bo"
    asked = ("What did I say about it?", "你推荐了什么？", "我说过什么，你说过什么？")
    assert [roles.signals(question)["who"].tolist() for question in asked] == [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("question", "session"),
    [
        ("What was said on 10 April?", "a-2"), ("3月4日说了什么？", "a-1"), ("What happened in March 2024?", "a-1"),
        ("What did we talk about yesterday?", "a-2"),  # it is a day and no word of the question
    ],
)  # fmt: skip
def test_a_day_or_a_month_that_is_asked_for_finds_its_session(question, session):
    made = talk(False)
    made.add(Turn("late", "a-3", "2024-04-20", "Tom", "I told you yesterday that the boat is sold."))
    best = next(made.rank(question, today="2024-04-11")).id
    assert next(turn.session for turn in made.turns if turn.id == best) == session
