"""Entities and relations from fields and texts; names in texts; genres and countries in both languages."""

from __future__ import annotations

import re

import pytest

from tests.shelf import VOCABULARY, extracted
from workbench.errors import CorpusError
from workbench.knowledge import vocabulary
from workbench.knowledge.names.entities import Name, Source
from workbench.knowledge.names.in_texts import names_in

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


def test_names_in_texts_without_a_model():
    text = (
        "Unfortunately, the American film was shot in New York City in May 2001 by J. K. Simmons and Brock O'Hurn for "
        "20th Century Fox. The Duke of York's story. However it failed. 《喜宴》的作者李安在台湾出生。"
    )
    found = list(names_in(text))
    surfaces = ["New York City", "J. K. Simmons", "Brock O'Hurn", "20th Century Fox", "Duke of York", "喜宴"]
    assert [name.surface for name in found] == surfaces
    assert found[4].sentence == "The Duke of York's story."


@pytest.mark.parametrize(
    ("field", "word", "name"),
    [
        ("genres", "喜剧", "Comedy"), ("genres", "sci-fi", "Science Fiction"), ("countries", "美国", "United States"),
        ("countries", "台灣", "Taiwan"), ("countries", "british", "United Kingdom"),
        ("countries", "Atlantis", "Atlantis"), ("studios", "喜剧", "喜剧"),
    ],
)  # fmt: skip
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
