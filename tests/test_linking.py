"""Known names in a text. The films are full of titles that are ordinary words: none may be linked by mistake."""

from __future__ import annotations

import pytest

from workbench.knowledge.names.linking import Matcher, mentions_in
from workbench.knowledge.names.surfaces import compiled
from workbench.ports import Entity

FILMS = {
    "喜宴|The Wedding Banquet": 1993, "饮食男女|Eat Drink Man Woman": 1994, "The Dark Knight": 2008,
    "The Dark Knight Rises": 2012, "It": 2017, "Her": 2013, "Up": 2009, "Ran": 1985, "Big": 1988, "Red": 2010,
    "Old": 2021, "The Game": 1997, "True Lies": 1994, "The Ice Storm": 1997, "Inception|盗梦空间": 2010,
    "Crouching Tiger, Hidden Dragon|卧虎藏龙": 2000, "Spider-Man": 2002, "蝙蝠侠：侠影之谜|Batman Begins": 2005,
    "1917": 2019, "Seven": 1995, "Yours, Mine & Ours": 2005, "Amélie": 2001, "英|A Hero": 2021, "Arrival": 2016,
}  # fmt: skip
TWICE = {"Halloween": (1978, 2018)}
PEOPLE = {
    "Christopher Nolan|克里斯托弗·诺兰": 20, "Jonathan Nolan": 3, "Ang Lee|李安": 26, "Spike Lee": 24,
    "Guillermo del Toro": 16, "Sam Young": 9, "M. Night Shyamalan": 9, "Louis Gossett Jr.": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def names():
    entities: list[Entity] = []
    years: dict[str, int] = {}
    degrees: dict[str, int] = {}

    def add(written: str, kind: str, suffix: str = "") -> str:
        name, *aliases = written.split("|")
        entity_id = name + suffix
        entities.append({"entity_id": entity_id, "name": name, "type": kind, "aliases": aliases, "doc_id": None})
        return entity_id

    for written, year in FILMS.items():
        years[add(written, "Film")] = year
    for title, both in TWICE.items():
        for year in both:
            entity_id = add(title, "Film", f" {year}")
            years[entity_id], degrees[entity_id] = year, 2050 - year
    for written, degree in PEOPLE.items():
        degrees[add(written, "Person")] = degree
    return compiled(entities, degrees, years=years)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # longest first, folded, in both languages
        ("对比《喜宴》和《饮食男女》的风格", ["喜宴", "饮食男女"]),
        ("喜宴哪一年上映？", ["喜宴"]),
        ("who directed the wedding banquet", ["喜宴"]),
        ("eat drink man woman or The Ice Storm", ["饮食男女", "The Ice Storm"]),
        ("Compare The Dark Knight and The Dark Knight Rises", ["The Dark Knight", "The Dark Knight Rises"]),
        ("dark knight", ["The Dark Knight"]),
        ("Ｉｎｃｅｐｔｉｏｎ vs INCEPTION", ["Inception", "Inception"]),
        ("crouching tiger hidden dragon", ["Crouching Tiger, Hidden Dragon"]),
        ("spider man", ["Spider-Man"]),
        ("Is Spider-Man good?", ["Spider-Man"]),
        ("蝙蝠侠侠影之谜", ["蝙蝠侠：侠影之谜"]),
        ("Yours, Mine and Ours", ["Yours, Mine & Ours"]),
        ("Amelie, AMÉLIE", ["Amélie", "Amélie"]),
        ("It was a storm. Ice fell.", []),
        # people, by their names and surnames
        ("李安和克里斯托弗诺兰", ["Ang Lee", "Christopher Nolan"]),
        ("李安、諾蘭和《飲食男女》", ["Ang Lee", "Christopher Nolan", "饮食男女"]),
        ("诺兰的电影", ["Christopher Nolan"]),
        ("Nolan's films", ["Christopher Nolan"]),
        ("nolan films", ["Christopher Nolan"]),
        ("Did Jonathan Nolan write it?", ["Jonathan Nolan"]),
        ("Jennifer Nolan", []),
        ("did Nolan Bushnell found Atari?", []),
        ("吉姆·诺兰", []),
        ("Lee", []),
        ("Ang Lee or Lee", ["Ang Lee"]),
        ("del Toro", ["Guillermo del Toro"]),
        ("Gossett and Shyamalan", ["Louis Gossett Jr.", "M. Night Shyamalan"]),
        ("the young man", []),
        # titles that are ordinary words
        ("what is up with her and it", []),
        ("Tell me about it", []),
        ("Tell me about Up", ["Up"]),
        ("Up is good", []),
        ("Up是谁导演的", ["Up"]),
        ("《Up》是谁导演的", ["Up"]),
        ('What is "It" about?', ["It"]),
        ("who directed Her?", ["Her"]),
        ("she ran the big red game", []),
        ("the game was good", []),
        ("is The Game good", ["The Game"]),
        ("The Game is good", ["The Game"]),
        ("Seven is a number", []),
        ("Is Seven good?", ["Seven"]),
        ("films of 1917", []),
        ("《1917》", ["1917"]),
        ("I saw Old School", []),
        ("A story of True Lies", ["True Lies"]),
        ("the arrival of a train", []),
        ("英是一个字", []),
        ("《英》", ["英"]),
        ("WHAT IS UP WITH THE OLD RED GAME", []),
        # several of one name
        ("Halloween", ["Halloween 1978"]),
        ("Halloween (2018) and Halloween, 1978", ["Halloween 2018", "Halloween 1978"]),
        ("《Halloween》2018", ["Halloween 2018"]),
        # nothing
        ("", []),
        ("你好", []),
        ("?!《》\x00", []),
    ],
)
def test_link(names, text, expected):
    mentions = mentions_in(text, names, Matcher(names), careless=True)
    assert [m["entity_id"] for m in mentions] == expected
    assert all(text[m["start"] : m["end"]] == m["surface"] for m in mentions)


def test_a_text_means_what_it_is_about(names):
    (mention,) = mentions_in("Halloween is a slasher film", names, Matcher(names), about="Halloween 2018")
    assert mention["entity_id"] == "Halloween 2018"
