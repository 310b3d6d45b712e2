"""The graph of an index after every change: whole, and a function of the documents."""

from __future__ import annotations

import json
import random

import pytest

from tests.films import FILMS
from workbench.knowledge.library import Library
from workbench.settings import Settings

TABLES = ("entities", "relations", "mentions", "names", "communities", "homes")
CORE = {"embedding_model": "hashing", "rerank_model": "none"}


def write(path, documents):
    path.write_text("".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents), "utf-8")
    return path


@pytest.fixture
def films():
    drawn = [json.loads(line) for line in FILMS.read_text("utf-8").splitlines()]
    random.Random(3).shuffle(drawn)
    return drawn[:80]


@pytest.fixture
def library(tmp_path):
    library = Library(tmp_path / "kb", Settings.load(**CORE))
    yield library
    library.close()


def content(library, table):
    return set(library.get("film")._index.rows(f"SELECT * FROM {table}"))


def ids(library, table, column):
    return {row[0] for row in library.get("film")._index.rows(f"SELECT {column} FROM {table}")}


def is_whole(library):
    """Nothing refers to what is not there."""
    index = library.get("film")._index
    for sql in (
        "SELECT relation_id FROM relations WHERE source NOT IN (SELECT entity_id FROM entities)",
        "SELECT relation_id FROM relations WHERE target NOT IN (SELECT entity_id FROM entities)",
        "SELECT relation_id FROM relations WHERE chunk_id NOT IN (SELECT chunk_id FROM passages)",
        "SELECT relation_id FROM relations WHERE relation_id != source || '|' || type || '|' || target",
        "SELECT chunk_id FROM mentions WHERE chunk_id NOT IN (SELECT chunk_id FROM passages)",
        "SELECT entity_id FROM mentions WHERE entity_id NOT IN (SELECT entity_id FROM entities)",
        "SELECT key FROM names WHERE entity_id NOT IN (SELECT entity_id FROM entities)",
        "SELECT entity_id FROM entities WHERE doc_id NOT IN (SELECT doc_id FROM documents)",
        "SELECT doc_id FROM documents WHERE 'doc:' || doc_id NOT IN (SELECT entity_id FROM entities)",
        "SELECT community_id FROM homes WHERE community_id NOT IN (SELECT community_id FROM communities)",
        "SELECT entity_id FROM entities WHERE entity_id NOT IN (SELECT entity_id FROM mentions UNION SELECT source "
        "FROM relations UNION SELECT target FROM relations)",
        "SELECT d.value FROM communities, json_each(communities.value, '$.doc_ids') AS d "
        "WHERE d.value NOT IN (SELECT doc_id FROM documents)",
    ):
        assert index.rows(sql) == [], sql
    assert library.get("film").inspect()["chroma"]


def test_the_graph_is_a_function_of_the_documents_alone(library, tmp_path, films):
    library.add("film", [write(tmp_path / "a.jsonl", films[:40])])
    library.add("film", [write(tmp_path / "b.jsonl", films[40:])])
    fresh = Library(tmp_path / "fresh", Settings.load(**CORE))
    fresh.add("film", [tmp_path / "b.jsonl", tmp_path / "a.jsonl"])
    for table in TABLES:
        assert content(library, table) == content(fresh, table), table
    is_whole(library)
    fresh.close()


def test_documents_that_go_and_change_leave_a_whole_graph(library, tmp_path, films):
    path = write(tmp_path / "a.jsonl", films)
    library.add("film", [path])
    changed = [{**film, "title": f"{film['title']} Again"} for film in films[:3]]
    rewritten = [{**film, "overview": "Nothing is said of it."} for film in films[3:6]]
    write(path, [*changed, *rewritten, *films[10:]])
    report = library.add("film", [path])
    assert (report.changed, report.deleted) == (6, 4)
    is_whole(library)
    assert library.get("film").entity(changed[0]["title"])["doc_id"] == films[0]["id"]
    assert not ids(library, "entities", "doc_id") & {film["id"] for film in films[6:10]}


def test_old_texts_are_looked_through_for_a_new_title_and_a_mere_name_becomes_it(library, tmp_path, films):
    old = {"id": "old", "title": "A Visit", "text": "A Visit is a film. They read Marvin Gardens aloud."}
    library.add("film", [write(tmp_path / "a.jsonl", [*films[:30], old])])
    base = library.get("film")
    assert base.entity("Marvin Gardens")["entity_id"] == "name:marvin gardens"
    new = {"id": "new", "title": "Marvin Gardens", "text": "Marvin Gardens is a book."}
    library.add("film", [write(tmp_path / "b.jsonl", [new])])
    assert base.entity("name:marvin gardens") is None
    assert [r["source"] for r in base.around("relations", ["doc:new"]) if r["type"] == "mentions"] == ["doc:old"]
    assert "old#0" in base.around("mentions", ["doc:new"])
    is_whole(library)
