"""One thing under many names, in both languages, scripts and widths; and one name of several things."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import opencc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.films import VOCABULARY
from tests.test_dates_and_numbers import cases
from workbench.errors import CorpusError
from workbench.knowledge import vocabulary
from workbench.knowledge.library import Library
from workbench.knowledge.names.surfaces import Matcher, surface_key, unbroken, units
from workbench.settings import Settings
from workbench.text import fold
from workbench.tools.local import TOOL
from workbench.tools.tool import StepLog, read_input

ROWS = [
    {
        "id": "w", "type": "Film", "title": "The Wedding Banquet", "original_title": "喜宴", "year": 1993,
        "directors": ["Ang Lee"], "directors_zh": ["李安"],
        "text": "A gay New Yorker marries for appearances. It is a comedy of manners.",
    },
    {
        "id": "t", "type": "Film", "title": "卧虎藏龙", "title_en": "Crouching Tiger, Hidden Dragon", "year": 2000,
        "directors": ["Ang Lee"], "text": "玉娇龙盗走青冥剑。",
    },
    {"id": "p", "type": "Film", "title": "計畫", "year": 1999, "text": "這部電影講述臺灣的鐵路規畫與發展。"},
    {
        "id": "h1", "type": "Film", "title": "Halloween", "year": 1978, "directors": ["John Carpenter"],
        "text": "A masked killer escapes from a sanitarium.",
    },
    {
        "id": "h2", "type": "Film", "title": "Halloween", "year": 2018, "directors": ["David Gordon Green"],
        "text": "Forty years later he returns to Haddonfield for the granddaughter.",
    },
    {
        "id": "b1", "type": "Person", "title": "John Moore",
        "text": "John Moore is an Irish film director from Dundalk.",
    },
    {"id": "b2", "type": "Person", "title": "John Moore", "text": "John Moore, a British general, fell at Corunna."},
    {"id": "a1", "title": "Berlin", "text": "Berlin is the capital of Germany."},
    {"id": "a2", "title": "Berlin", "text": "Its first mention is of 1244, as a town of merchants."},
]  # fmt: skip
TRIPLES = "霸王别姬\talso_known_as\tFarewell My Concubine\n霸王别姬\tdirected_by\t陈凯歌\n陈凯歌\t英文名\tChen Kaige\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("names")
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS), "utf-8")
    (folder / "triples.tsv").write_text(TRIPLES, "utf-8")
    found = Library(folder / "kb", Settings.load(embedding_model="hashing"))
    found.add("rows", [folder / "rows.jsonl"], vocabulary=VOCABULARY)
    found.add("triples", [folder / "triples.tsv"])
    yield found
    found.close()


# A question, and who is meant: under any name of a thing, in either script; by the words around a name that several
# bear; and all of them without such words.
MEANT_BY_WORDS = """
喜宴讲什么？ | doc:w; 《The Wedding Banquet》 | doc:w; 李安导演了什么？ | person:ang lee; 臥虎藏龍 | doc:t
计划讲什么 | doc:p; Who stars in the Halloween of John Carpenter? | doc:h1, person:john carpenter
Halloween by David Gordon Green | doc:h2, person:david gordon green; 2018年的Halloween讲什么 | doc:h2
Halloween from 1978 | doc:h1; In Halloween, who returns to Haddonfield? | doc:h2, name:haddonfield
When did the general John Moore fall at Corunna? | doc:b2, name:corunna; Halloween (2018) | doc:h2
Which films did the Irish director John Moore make? | doc:b1; Halloween讲什么？ | doc:h1, doc:h2
Who is John Moore? | doc:b1, doc:b2
"""


def test_a_thing_is_known_by_every_name_and_the_words_around_it_say_which_is_meant(library):
    base, wrong = library.get("rows"), {}
    for text, meant in cases(MEANT_BY_WORDS):
        found = {one for m in base.link(text) for one in (m["entity_id"], *m.get("others", ()))}
        if found != set(meant.split(", ")):
            wrong[text] = found
    assert wrong == {}
    output = TOOL.function(read_input(TOOL, {"query": "Who is John Moore?"}), base, StepLog())
    assert {"b1", "b2"} <= {r["metadata"]["doc_id"] for r in output["results"] if r["source_type"] == "chunk"}


@pytest.mark.parametrize(
    ("asked", "found"), [("计划讲述台湾的铁路规划", "p#0"), ("鐵路規劃與發展", "p#0"), ("盜走青冥劍", "t#0")]
)
def test_either_script_finds_texts_of_the_other(library, asked, found):
    assert library.get("rows").search("words", asked, 1)[0][0] == found


PIECES = st.sampled_from([*"喜宴aéＡ· -。1&龍", "the", "dark", "Knight", ". "])
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=30)


@given(st.lists(TEXTS, max_size=12), TEXTS)
def test_the_matcher_equals_a_naive_one(names, text):
    keys = {key for name in names if (key := surface_key(name))}
    matcher, found = Matcher(sorted(keys)), units(text)
    for at in range(len(found)):
        parts = [found[at:end] for end in range(len(found), at, -1)]
        said = [(" ".join(unit.key for unit in part), part) for part in parts]
        whole = [(key, len(part)) for key, part in said if all(unbroken(text, *two) for two in pairwise(part))]
        assert matcher.at(text, found, at) == [(key, count) for key, count in whole if key in keys]


def test_a_text_and_its_simplified_form_are_the_same_when_folded():
    simplified = opencc.OpenCC("t2s").convert
    every = [chr(code) for code in (*range(0x3400, 0x4DC0), *range(0x4E00, 0xA000))]
    assert not [c for c in every if fold(c) != fold(simplified(c))]
    text = "計畫、規畫與藉口；答覆、瞭解、著名、看著、乾隆、頭髮、發展、皇后、後來、裡面、鐘錶、姓鍾、於是、徵求"
    assert fold(simplified(text)) == fold(text)


FILMS = """喜宴|The Wedding Banquet, 饮食男女|Eat Drink Man Woman, The Dark Knight, The Dark Knight Rises, It, Her, Up,
Ran, Big, Red, Old, The Game, True Lies, The Ice Storm, Inception|盗梦空间, Spider-Man, 蝙蝠侠：侠影之谜|Batman Begins,
1917, Seven, Amélie, 英|A Hero, Arrival, Yours & Ours""".replace("\n", " ").split(", ")
PEOPLE = ["Christopher Nolan|克里斯托弗·诺兰", "Ang Lee|李安", "Spike Lee"] * 6
PEOPLE += ["Jonathan Nolan", "Guillermo del Toro", "Sam Young", "M. Night Shyamalan", "Louis Gossett Jr."]
# A question, and the names that it means. First: the longest, folded, in both languages; then people by their names and
# surnames; then titles that are ordinary words.
MEANT = """
对比《喜宴》和《饮食男女》的风格 | 喜宴, 饮食男女; who directed the wedding banquet | 喜宴
dark knight | The Dark Knight
Compare The Dark Knight and The Dark Knight Rises | The Dark Knight, The Dark Knight Rises; spider man | Spider-Man
Ｉｎｃｅｐｔｉｏｎ vs INCEPTION | Inception, Inception; 蝙蝠侠侠影之谜 | 蝙蝠侠：侠影之谜
yours and ours | Yours & Ours; Amelie, AMÉLIE | Amélie, Amélie; It was a storm. Ice fell. |
李安、諾蘭和《飲食男女》 | Ang Lee, Christopher Nolan, 饮食男女; 李安和克里斯托弗诺兰 | Ang Lee, Christopher Nolan
nolan films | Christopher Nolan; Jennifer Nolan |; 吉姆·诺兰 |; Lee |; Did Jonathan Nolan write it? | Jonathan Nolan
did Nolan Bushnell found Atari? |; Ang Lee or Lee | Ang Lee; the young man |; del Toro | Guillermo del Toro
Gossett and Shyamalan | Louis Gossett Jr., M. Night Shyamalan; what is up with her and it |; Tell me about it |
Tell me about Up | Up; Up is good |; Up是谁导演的 | Up; 《1917》 | 1917; What is "It" about? | It
who directed Her? | Her; she ran the big red game |; is The Game good | The Game; films of 1917 |; Seven is a number |
Is Seven good? | Seven; I saw Old School |; A story of True Lies | True Lies; 英是一个字 |; 《英》 | 英
the arrival of a train |; WHAT IS UP WITH THE OLD RED GAME |; ?!《》 |
"""


def test_a_question_means_the_names_that_its_writer_means(tmp_path):
    def row(number: int, film: str, person: str) -> dict[str, Any]:
        (title, *aliases), (director, *names) = film.split("|"), person.split("|")
        told = {"id": str(number), "type": "Film", "title": title, "aliases": aliases, "text": "A film."}
        return {**told, "directors": [director], "names": {director: names}}

    rows = [row(n, *pair) for n, pair in enumerate(zip(FILMS, PEOPLE, strict=True))]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    library = Library(tmp_path / "kb", Settings.load(embedding_model="hashing"))
    library.add("films", [tmp_path / "rows.jsonl"], vocabulary=VOCABULARY)
    base, wrong = library.get("films"), {}
    for text, names in cases(MEANT):
        found = [base.entity(mention["entity_id"])["name"] for mention in base.link(text)]
        if ", ".join(found) != names:
            wrong[text] = found
    library.close()
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[fields.budget]\nunits = 3", "fields.budget.units"), ("not toml", "cannot be read"),
        ("[fields.budget]\ntype = 'money'", "fields.budget.type"), ("enrichment = 'imdb'", "enrichment"),
        ("[fields.x]\nrelation = '; DROP TABLE'", "fields.x.relation"),
    ],
)  # fmt: skip
def test_a_vocabulary_that_is_wrong_is_refused_by_its_key(tmp_path, text, where):
    (tmp_path / "vocabulary.toml").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=re.escape(where)):
        vocabulary.load(tmp_path / "vocabulary.toml")


def test_the_tail_of_a_triple_that_is_a_head_is_that_head(library):
    relations = library.get("triples").around("relations", ["doc:霸王别姬"])
    assert [(r["type"], r["target"]) for r in relations] == [("directed_by", "doc:陈凯歌")]
