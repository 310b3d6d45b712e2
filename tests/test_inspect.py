"""Looking into a knowledge base: every figure counted by hand on a small one, as data, as a page, by the command."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from workbench.cli import main
from workbench.session import Workbench

SAYS = "She grew tea in the hills above the old town for thirty years and sold it on the market every Sunday"
NOTES = [
    {"id": "a", "title": "Ann Tea", "text": f"Ann Tea was a farmer. {SAYS}."},
    {"id": "b", "title": "Bob Bee", "text": f"Bob Bee was no farmer. {SAYS}, with Ann Tea."},
    {"id": "c", "text": "nothing of note was ever seen here."},
    {"id": "d</b>", "text": "nothing of note was ever seen here."},
    {"id": "e", "title": "采茶人", "text": "采茶人住在山上。他每天早上去采茶，晚上喝茶。", "farmers": ["Zoe Hill"]},
    {"id": "<b>f</b>", "title": "<script>alert(1)</script>", "text": f"Ann Tea was a farmer. {SAYS} morning."},
]
CORE = {"embedding_model": "hashing", "rerank_model": "none"}


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(f"{json.dumps(note)}\n" for note in NOTES))
    with Workbench.open(tmp_path / "ws", **CORE) as wb:
        wb.add_knowledge("notes", [path])
        yield wb


@pytest.mark.parametrize(("lang", "words"), [("zh", "文档"), ("en", "documents")])
def test_as_a_page_and_as_text_in_both_languages(notes, monkeypatch, lang, words):
    monkeypatch.setattr("workbench.views.labels._spoken", lang)
    found = notes.inspect_knowledge("notes")
    assert words in found._repr_html_() and words in str(found)


def test_by_the_command(notes, tmp_path):
    notes.close()
    asked = ["kb", "inspect", "notes", "--workspace", str(tmp_path / "ws")]
    told = CliRunner().invoke(main, asked)
    assert told.exit_code == 0 and "documents" in told.output
    assert json.loads(CliRunner().invoke(main, [*asked, "--json"]).output)["counts"]["documents"] == 6
