"""Indexing holds a part of a corpus at a time: its peak does not grow with the corpus."""

from __future__ import annotations

import gc
import json
import tracemalloc

import pytest

from workbench.knowledge.corpus import Document, Reading
from workbench.knowledge.entities import Source
from workbench.knowledge.index import Index
from workbench.knowledge.library import Library
from workbench.knowledge.spool import BATCH, Spool
from workbench.settings import Settings

PART = 200
"""Passages of which a part of a graph is made when next to no memory is allowed."""


def write(path, documents, characters):
    with path.open("w") as file:
        for number in range(documents):
            said = f"Hill {number} has sheep. They came {number} times. "
            text = (said * (characters // len(said) + 1))[:characters]
            file.write(json.dumps({"id": f"d{number}", "title": f"Hill {number}", "text": text}) + "\n")
    return path


@pytest.fixture
def library(tmp_path):
    core = {"embedding_model": "hashing", "names": "rules", "rerank_model": "none"}
    library = Library(tmp_path / "kb", Settings.load(**core, index_memory_mb=1))
    yield library
    library.close()


def test_what_is_read_goes_to_disk(tmp_path):
    """10 MB of text cost under 2: a list of all documents, as it was before, would cost more than the text."""
    path = write(tmp_path / "corpus.jsonl", 2_000, 5_000)
    index = Index(tmp_path / "index.db", create=True)
    spool, reading = Spool(index), Reading([path])
    reading.places = spool.places
    tracemalloc.start()
    for _ in spool.take(reading):
        pass
    spool.compare([])
    held = sum(len(batch) for batch in spool.documents())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    index.close()
    assert held == 2_000
    assert peak < 2 * 2**20, f"{peak / 2**20:.1f} MB"


def test_an_add_holds_as_many_documents_as_it_may(library, tmp_path):
    path = write(tmp_path / "corpus.jsonl", 700, 100)
    alive: dict[str, int] = {}

    def look(stage: str, done: int, total: int) -> None:
        count = sum(type(one) in (Document, Source) for one in gc.get_objects())
        alive[stage] = max(count, alive.get(stage, 0))

    library.add("corpus", [path], progress=look)
    assert library.get("corpus").counts()["documents"] == 700
    assert max(alive.values()) <= PART + 2 * BATCH, alive
    assert alive["graph"] >= PART, "the graph was looked at while it was made"
