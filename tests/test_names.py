"""One thing under many names, in both languages, scripts and widths; and one name of several things."""

import re
from collections.abc import Iterator
from itertools import pairwise

import opencc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import tables
from tests.films import VOCABULARY
from tests.shelves import CORPORA
from workbench.errors import CorpusError
from workbench.knowledge import vocabulary
from workbench.knowledge.library import Library
from workbench.knowledge.names.surfaces import Matcher, surface_key, unbroken, units
from workbench.settings import Settings
from workbench.text import fold
from workbench.tools.local import TOOL
from workbench.tools.tool import StepLog, read_input

TRIPLES = "霸王别姬\talso_known_as\tFarewell My Concubine\n霸王别姬\tdirected_by\t陈凯歌\n陈凯歌\t英文名\tChen Kaige\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("names")
    (folder / "triples.tsv").write_text(TRIPLES, "utf-8")
    found = Library(folder / "kb", Settings.load(embedding_model="hashing"))
    found.add("rows", [CORPORA / "names.jsonl"], vocabulary=VOCABULARY)
    found.add("triples", [folder / "triples.tsv"])
    yield found
    found.close()


def test_a_thing_is_known_by_every_name_and_the_words_around_it_say_which_is_meant(library):
    base, wrong = library.get("rows"), {}
    for text, meant in tables("names")["meant_by_words"]:
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


def test_a_question_means_the_names_that_its_writer_means(tmp_path):
    library = Library(tmp_path / "kb", Settings.load(embedding_model="hashing"))
    library.add("films", [CORPORA / "titles.jsonl"], vocabulary=VOCABULARY)
    base, wrong = library.get("films"), {}
    for text, names in tables("names")["meant"]:
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
