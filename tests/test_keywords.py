"""The keyword index, by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.films import FILMS
from workbench.knowledge.indexes import keywords
from workbench.knowledge.indexes.index import Index

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
        ("喜宴哪一年上映？", ["a#0"]),
        ("饮食男女", ["b#0"]),
        ("大厨的女儿", ["b#0"]),
        ("大廚的女兒", ["b#0"]),
        ("wedding banquets", ["a#0"]),
        ("ang lee's films", ["a#0"]),
        ("hallstrom CAFE", ["c#0"]),
        ("who is the of", ["a#0", "c#0"]),  # nothing but function words, so they count
        ("...", []),
        ("", []),
        ('"; DROP TABLE terms; NEAR(a b) OR * ^ -', []),
    ],
)
def test_finds(index, query, expected):
    assert found(index, query) == expected


def test_ties_go_by_id_and_top_k_holds(index):
    with index.transaction() as connection:
        for number, chunk_id in ((11, "z#0"), (12, "y#0")):
            connection.execute("INSERT INTO passages VALUES (?, ?, 'x', 0, '', '', '')", (number, chunk_id))
            keywords.insert(connection, number, "same", "", "twin")
    assert found(index, "twin") == ["y#0", "z#0"]
    assert found(index, "twin", 1) == ["y#0"]
    assert found(index, "twin", 0) == []


def test_threads_stem_as_one_does():
    words = sorted({word for word in FILMS.read_text(encoding="utf-8").lower().split() if word.isalpha()})[:3000]
    keywords.stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(keywords.stem, words, chunksize=20))
    keywords.stem.cache_clear()
    assert together == [keywords.stem(word) for word in words]
