"""The questions made of the films: the file is what the script makes, and a bridge is seen in either language."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path

import pytest

from workbench.session import Workbench

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
FILE = EXPERIMENTS / "film_hops.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def made(monkeypatch, capsys):
    """Run the script with these options; what it says."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))

    def run(*options: object) -> str:
        monkeypatch.setattr("sys.argv", ["film_hops", *map(str, options)])
        importlib.import_module("film_hops").main()
        return capsys.readouterr().out

    return run


def test_the_file_is_what_the_script_makes(made) -> None:
    assert made() == FILE.read_text(encoding="utf-8")


def test_the_texts_are_the_films_without_their_fields(made, tmp_path: Path) -> None:
    made("--texts", tmp_path)
    assert (tmp_path / "questions.jsonl").read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8")
    texts = [json.loads(line) for line in (tmp_path / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {doc_id for row in ROWS for doc_id in row["gold"]} <= {text["id"] for text in texts}
    assert all(text.keys() == {"id", "title", "text"} and text["text"] for text in texts)


def test_as_many_in_each_language_and_every_document_is_there(wb: Workbench) -> None:
    counts = Counter((row["type"], row["lang"]) for row in ROWS)
    assert len(counts) == 8 and len(set(counts.values())) == 1
    gold = {doc_id for row in ROWS for doc_id in row["gold"]}
    assert {passage["doc_id"] for passage in wb.knowledge.get("film").passages(doc_ids=sorted(gold))} == gold
