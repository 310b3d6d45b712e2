"""Indexing holds a part of a corpus at a time: its peak does not grow with the corpus."""

from __future__ import annotations

import gc
import json

import pytest

from workbench.knowledge.adding.spool import MANY
from workbench.knowledge.library import Library
from workbench.knowledge.names.entities import Source
from workbench.knowledge.reading.corpus import Document
from workbench.settings import Settings


def write(path, documents, characters, notes=0):
    with path.open("w") as file:
        for number in range(documents):
            said = f"Hill {number} has sheep. They came {number} times. "
            text = (said * (characters // len(said) + 1))[:characters]
            row = {"id": f"d{number}", "title": f"Hill {number}", "text": text, "notes": "z" * notes}
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def library(tmp_path):
    core = {"embedding_model": "hashing", "rerank_model": "none"}
    library = Library(tmp_path / "kb", Settings.load(**core))
    yield library
    library.close()


def test_an_add_holds_as_many_documents_as_it_may(library, tmp_path):
    path = write(tmp_path / "corpus.jsonl", 400, 100)
    alive: dict[str, int] = {}
    gc.freeze()  # what is there already is not looked through at every step

    def look(stage: str, done: int, total: int) -> None:
        count = sum(type(one) in (Document, Source) for one in gc.get_objects())
        alive[stage] = max(count, alive.get(stage, 0))

    try:
        library.add("corpus", [path], progress=look)
    finally:
        gc.unfreeze()
    assert library.get("corpus").about()["counts"]["documents"] == 400
    assert max(alive.values()) <= 2 * MANY, alive
    assert alive["graph"], "the graph was looked at while it was made"
