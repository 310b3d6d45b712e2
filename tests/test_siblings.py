"""A text that another base of the workspace has embedded is not embedded again, and no base needs another."""

from __future__ import annotations

import json
import shutil
import sqlite3

import numpy as np
import pytest

from workbench.knowledge.indexes.vectors import Siblings
from workbench.knowledge.library import Library
from workbench.models.embeddings import HashingEmbeddings
from workbench.settings import Settings

QUICK = {"names": "rules", "embedding_model": "hashing", "rerank_model": "none"}


@pytest.fixture
def asked(monkeypatch):
    """Every text that was embedded, in its order."""
    texts: list[str] = []
    array = HashingEmbeddings.array

    def noted(self, given):
        texts.extend(given)
        return array(self, given)

    monkeypatch.setattr(HashingEmbeddings, "array", noted)
    return texts


@pytest.fixture
def library(tmp_path):
    library = Library(tmp_path / "knowledge", Settings.load(**QUICK))
    yield library
    library.close()


def corpus(folder, name, numbers):
    path = folder / f"{name}.jsonl"
    rows = ({"id": f"{name}{n}", "title": f"Hill {n}", "text": f"Hill {n} has {n} sheep."} for n in numbers)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def kept(library, name):
    with sqlite3.connect(library.root / name / "index.db") as index:
        rows = dict(index.execute("SELECT key, vector FROM vectors"))
    index.close()
    return rows


def test_only_what_no_base_has_is_embedded(library, tmp_path, asked):
    library.add("one", [corpus(tmp_path, "a", range(40))])
    library.add("two", [corpus(tmp_path, "b", range(40, 50))])
    asked.clear()
    library.add("three", [corpus(tmp_path, "c", range(20, 60))])
    new = {f"Hill {n} has {n} sheep." for n in range(50, 60)}
    assert new <= set(asked) and len(asked) == len(new) + 2, "one text of either base is compared"
    shutil.rmtree(library.root / "one")
    asked.clear()
    assert library.get("three").vector_search("Hill 21 has 21 sheep.", 1)[0][0] == "c21#0"
    assert library.rebuild("three").added == 40


def test_what_is_taken_is_what_would_be_computed(library, tmp_path):
    library.add("one", [corpus(tmp_path, "a", range(40))])
    library.add("two", [corpus(tmp_path, "b", range(40))])
    alone = Library(tmp_path / "alone", Settings.load(**QUICK))
    alone.add("two", [tmp_path / "b.jsonl"])
    assert kept(library, "two") == kept(library, "one") == kept(alone, "two")
    alone.close()


@pytest.mark.parametrize("fault", ["another model", "another length", "no number", "cut short", "zeros", "no index"])
def test_a_base_that_is_not_what_it_seems_gives_nothing_wrong(library, tmp_path, fault):
    library.add("one", [corpus(tmp_path, "a", range(40))])
    right = kept(library, "one")
    first, *others = sorted(right)
    bad = {
        "another model": {key: right[other] for key, other in zip(right, [*list(right)[1:], first], strict=True)},
        "another length": {key: np.ones(8, np.float32).tobytes() for key in right},
        "no number": {key: np.full(1024, np.nan, np.float32).tobytes() for key in others},
        "cut short": {key: right[key][:-1] for key in others},
        "zeros": {key: bytes(4096) for key in others},
        "no index": {},
    }[fault]
    with sqlite3.connect(library.root / "one" / "index.db") as index:
        index.executemany("UPDATE vectors SET vector = ? WHERE key = ?", ((row, key) for key, row in bad.items()))
    index.close()
    if fault == "no index":
        (library.root / "one" / "index.db").write_bytes(b"nothing that SQLite knows" * 400)
    library.add("two", [corpus(tmp_path, "b", range(40))])
    assert kept(library, "two") == right


def test_the_base_that_is_made_anew_is_not_asked(library, tmp_path, asked):
    library.add("one", [corpus(tmp_path, "a", range(40))])
    asked.clear()
    library.rebuild("one")
    assert len(asked) == 40


def test_words_are_taken_too(library, tmp_path):
    words = np.eye(2, 4, dtype=np.float16)
    library.add("one", [corpus(tmp_path, "a", range(2))])
    with sqlite3.connect(library.root / "one" / "index.db") as index:
        index.executemany("INSERT INTO words VALUES (?, ?)", [("sheep", words[0].tobytes()), ("hill", b"??")])
    index.close()
    found = Siblings(library.root, "two").found("words", {"sheep": "sheep", "hill": "hill"}, lambda asked: words[1:])
    assert found == {}, "the one that is compared is damaged"
    found = Siblings(library.root, "two").found("words", {"sheep": "sheep"}, lambda asked: words[:1])
    assert found == {"sheep": words[0].tobytes()}
