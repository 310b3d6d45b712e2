"""One thing under many names, in both languages, scripts and widths; and one name of several things."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import opencc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shelf import VOCABULARY
from workbench.knowledge import aliases
from workbench.knowledge.library import Library
from workbench.knowledge.names.linking import Matcher, mentions_in
from workbench.knowledge.names.surfaces import compiled, surface_key, unbroken, units
from workbench.knowledge.reading.corpus import load
from workbench.ports import Entity
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


def linked(base, text: str) -> list[tuple[str, str]]:
    return [(text[m["start"] : m["end"]], m["entity_id"]) for m in base.link(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("喜宴讲什么？", [("喜宴", "doc:w")]),
        ("《The Wedding Banquet》", [("The Wedding Banquet", "doc:w")]),
        ("Ｔｈｅ Ｗｅｄｄｉｎｇ Ｂａｎｑｕｅｔ", [("Ｔｈｅ Ｗｅｄｄｉｎｇ Ｂａｎｑｕｅｔ", "doc:w")]),
        ("李安导演了什么？", [("李安", "person:ang lee")]),
        ("臥虎藏龍", [("臥虎藏龍", "doc:t")]),
        ("crouching tiger hidden dragon", [("crouching tiger hidden dragon", "doc:t")]),
        ("计划讲什么", [("计划", "doc:p")]),
    ],
)
def test_a_thing_is_known_by_every_name(library, text, expected):
    assert linked(library.get("rows"), text) == expected


def test_what_no_name_is_stays_a_field(tmp_path):
    row = {
        "id": 1,
        "text": "x",
        "title": "T",
        "director_zh": "李安",
        "title_en": 7,
        "cast": ["A"],
        "cast_zh": ["甲", "乙"],
    }
    path: Path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(row, ensure_ascii=False), "utf-8")
    (document,) = load([path]).documents
    assert document.aliases == () and document.names == {} and not aliases.says_names("cast_zh", document.fields)


@pytest.mark.parametrize(
    ("asked", "found"), [("计划讲述台湾的铁路规划", "p#0"), ("鐵路規劃與發展", "p#0"), ("盜走青冥劍", "t#0")]
)
def test_either_script_finds_texts_of_the_other(library, asked, found):
    assert library.get("rows").search("words", asked, 1)[0][0] == found


# one name of several


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Who stars in the Halloween of John Carpenter?", "doc:h1"), ("Halloween by David Gordon Green", "doc:h2"),
        ("Halloween from 1978", "doc:h1"), ("Halloween (2018)", "doc:h2"),
        ("In Halloween, who returns to Haddonfield?", "doc:h2"), ("2018年的Halloween讲什么", "doc:h2"),
        ("When did the general John Moore fall at Corunna?", "doc:b2"),
        ("Which films did the Irish director John Moore make?", "doc:b1"),
    ],
)  # fmt: skip
def test_the_words_around_a_name_say_who_is_meant(library, text, meant):
    (mention,) = [m for m in library.get("rows").link(text) if m["entity_id"][:5] in ("doc:h", "doc:b")]
    assert mention["entity_id"] == meant and "others" not in mention


@pytest.mark.parametrize(
    ("text", "all_of_them"),
    [
        ("What is Halloween about?", {"doc:h1", "doc:h2"}),
        ("Halloween讲什么？", {"doc:h1", "doc:h2"}),
        ("Who is John Moore?", {"doc:b1", "doc:b2"}),
    ],
)
def test_without_such_words_it_means_all_who_bear_it(library, text, all_of_them):
    base = library.get("rows")
    (mention,) = base.link(text)
    assert {mention["entity_id"], *mention["others"]} == all_of_them
    output = TOOL.function(read_input(TOOL, {"query": text}), base, StepLog())
    assert {f"doc:{r['metadata']['doc_id']}" for r in output["results"] if r["source_type"] == "chunk"} >= all_of_them


def test_a_text_names_the_bearer_that_is_related_to_what_it_is_about(tmp_path):
    row = {"id": "h0", "type": "Film", "title": "The Fog", "year": 1980, "directors": ["John Carpenter"]}
    other = {"id": "h9", "type": "Film", "title": "Joe", "year": 2013, "directors": ["David Gordon Green"]}
    rows = [*ROWS, {**row, "text": "After Halloween he made it."}, {**other, "text": "Before Halloween he made it."}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    found = Library(tmp_path / "kb", Settings.load(embedding_model="hashing"))
    found.add("rows", [path])
    base = found.get("rows")
    named = {
        i: [r["target"] for r in base.around("relations", [f"doc:{i}"]) if r["type"] == "mentions"]
        for i in ("h0", "h9")
    }
    found.close()
    assert named == {"h0": ["doc:h1"], "h9": ["doc:h2"]}


# the matcher, and folding


def entity(name: str, number: int) -> Entity:
    return Entity(entity_id=str(number), name=name, type="Film", aliases=[], doc_id=None)


def naive(keys: set[str], text: str) -> list[list[tuple[str, int]]]:
    """Every name at every unit, by trying every length."""
    found, rows = units(text), []
    for at in range(len(found)):
        row = []
        for end in range(len(found), at, -1):
            part = found[at:end]
            if all(unbroken(text, *two) for two in pairwise(part)):
                key = " ".join(unit.key for unit in part)
                row += [(key, end - at)] if key in keys else []
        rows.append(row)
    return rows


PIECES = st.sampled_from(
    ["喜", "宴", "the", "dark", "Knight", "a", "é", "Ａ", "·", " ", "-", ". ", "。", "1", "&", "龍"]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=30)


@given(st.lists(TEXTS, max_size=12), TEXTS)
def test_the_matcher_equals_a_naive_one(names, text):
    keys = {key for name in names if (key := surface_key(name))}
    matcher, found = Matcher(sorted(keys)), units(text)
    assert [matcher.at(text, found, at) for at in range(len(found))] == naive(keys, text)


@given(st.lists(TEXTS, max_size=8), TEXTS)
def test_linking_takes_any_text_and_its_spans_lie_in_it(names, text):
    known = compiled([entity(name, n) for n, name in enumerate(names)], {})
    mentions = mentions_in(text, known, Matcher(known))
    assert all(
        0 <= m["start"] < m["end"] <= len(text) and text[m["start"] : m["end"]] == m["surface"] for m in mentions
    )
    assert all(one["end"] <= two["start"] for one, two in pairwise(mentions))


def test_a_text_and_its_simplified_form_are_the_same_when_folded():
    simplified = opencc.OpenCC("t2s").convert
    every = [chr(code) for code in (*range(0x3400, 0x4DC0), *range(0x4E00, 0xA000))]
    assert not [c for c in every if fold(c) != fold(simplified(c))]
    text = "計畫、規畫與藉口；答覆、瞭解、著名、看著、乾隆、頭髮、發展、皇后、後來、裡面、鐘錶、姓鍾、於是、徵求"
    assert fold(simplified(text)) == fold(text)


def test_the_tail_of_a_triple_that_is_a_head_is_that_head(library):
    relations = library.get("triples").around("relations", ["doc:霸王别姬"])
    assert [(r["type"], r["target"]) for r in relations] == [("directed_by", "doc:陈凯歌")]
