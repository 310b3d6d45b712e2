"""Entities and relations from fields and texts; names in texts; genres and countries in both languages."""

from __future__ import annotations

import re

import pytest

from tests.shelf import VOCABULARY
from workbench.errors import CorpusError
from workbench.knowledge import vocabulary
from workbench.knowledge.names.phrases import names_in

FILMS = vocabulary.load(VOCABULARY)


def test_names_in_texts_without_a_model():
    text = (
        "Unfortunately, the American film was shot in New York City in May 2001 by J. K. Simmons and Brock O'Hurn for "
        "20th Century Fox. The Duke of York's story. However it failed. 《喜宴》的作者李安在台湾出生。"
    )
    found = list(names_in(text))
    surfaces = ["New York City", "J. K. Simmons", "Brock O'Hurn", "20th Century Fox", "Duke of York", "喜宴"]
    assert [surface for surface, _ in found] == surfaces
    assert found[4][1] == "The Duke of York's story."


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
