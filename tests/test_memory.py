"""Indexing holds a part of a corpus at a time: its peak does not grow with the corpus."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

from workbench.knowledge.library import Library
from workbench.models.embeddings import HashingEmbeddings
from workbench.settings import Settings

CHARACTERS = 4_000


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setattr(HashingEmbeddings, "array", lambda self, texts: np.eye(len(texts), 1024, dtype=np.float32))
    core = {"embedding_model": "hashing", "names": "rules", "rerank_model": "none"}
    library = Library(tmp_path / "kb", Settings.load(**core, index_memory_mb=1, chunk_characters=CHARACTERS))
    yield library
    library.close()


def peak(library, path, documents) -> int:
    """Bytes of Python's own while so many documents are indexed."""
    with path.open("w") as file:
        for number in range(documents):
            said = f"Sheep {number} went over a hill. It came back at {number}. "
            text = (said * (CHARACTERS // len(said)))[:CHARACTERS]
            file.write(json.dumps({"id": f"{path.stem}{number}", "title": f"Hill {number}", "text": text}) + "\n")
    tracemalloc.start()
    library.add(path.stem, [path])
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_a_corpus_is_never_in_memory_as_a_whole(library, tmp_path):
    """Four times the documents cost next to nothing more; every copy of the corpus would show, and there were five."""
    peak(library, tmp_path / "first.jsonl", 1)  # what is loaded once is loaded
    few, many = (peak(library, tmp_path / f"n{count}.jsonl", count) for count in (200, 800))
    more = (many - few) / (600 * CHARACTERS)
    assert more < 1, f"{more:.1f} bytes a character more"
