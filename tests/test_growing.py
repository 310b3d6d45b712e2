"""A graph that grows: close to one made anew, whole after every change, and as it was after a kill."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys

import pytest

from tests.films import FILMS
from workbench.knowledge.adding import adding
from workbench.knowledge.library import Library
from workbench.settings import Settings

CORE = {"embedding_model": "hashing", "names": "rules", "rerank_model": "none"}


def write(path, documents):
    path.write_text("".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents), "utf-8")
    return path


@pytest.fixture
def films():
    drawn = [json.loads(line) for line in FILMS.read_text("utf-8").splitlines()]
    random.Random(3).shuffle(drawn)
    return drawn[:150]


@pytest.fixture
def growing(tmp_path, monkeypatch):
    """A library whose bases grow from the first document on."""
    monkeypatch.setattr(adding, "SMALL", 0)
    library = Library(tmp_path / "grown", Settings.load(**CORE))
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
        "SELECT key FROM surfaces WHERE entity_id NOT IN (SELECT entity_id FROM entities)",
        "SELECT entity_id FROM entities WHERE doc_id NOT IN (SELECT doc_id FROM documents)",
        "SELECT doc_id FROM documents WHERE 'doc:' || doc_id NOT IN (SELECT entity_id FROM entities)",
        "SELECT community_id FROM homes WHERE community_id NOT IN (SELECT community_id FROM communities)",
        "SELECT value FROM communities, json_each(doc_ids) WHERE value NOT IN (SELECT doc_id FROM documents)",
    ):
        assert index.rows(sql) == [], sql
    found = library.get("film").inspect()
    assert found["orphans"]["entities_alone"]["count"] == 0
    assert found["chroma"]


def alike(one: set, other: set) -> float:
    return len(one & other) / max(len(one | other), 1)


def test_what_grew_is_close_to_what_is_made_anew(growing, tmp_path, films):
    growing.add("film", [write(tmp_path / "a.jsonl", films[:140])])
    growing.add("film", [write(tmp_path / "b.jsonl", films[140:])])
    assert growing.get("film")._index.meta("grown") == "10"
    fresh = Library(tmp_path / "fresh", Settings.load(**CORE))
    fresh.add("film", [tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    for table, column in (("entities", "entity_id"), ("relations", "relation_id"), ("surfaces", "key")):
        assert alike(ids(growing, table, column), ids(fresh, table, column)) > 0.99, table
    assert alike(content(growing, "mentions"), content(fresh, "mentions")) > 0.98
    for table in ("titles", "facts"):
        assert content(growing, table) == content(fresh, table)
    assert growing.get("film").fingerprint() == fresh.get("film").fingerprint()
    question = "films about a family in New York"
    assert growing.get("film").keyword_search(question, 20) == fresh.get("film").keyword_search(question, 20)
    is_whole(growing)
    fresh.close()


def test_a_corpus_larger_than_a_part_is_joined_from_parts(growing, tmp_path, films, monkeypatch):
    monkeypatch.setattr(adding, "_PER_PASSAGE", 2**20)
    monkeypatch.setattr(adding, "_FEWEST", 50)
    parts = Library(tmp_path / "parts", Settings.load(**CORE, index_memory_mb=50))
    path = write(tmp_path / "a.jsonl", films)
    parts.add("film", [path])
    is_whole(parts)
    whole = Library(tmp_path / "whole", Settings.load(**CORE))
    whole.add("film", [path])
    assert alike(ids(parts, "relations", "relation_id"), ids(whole, "relations", "relation_id")) > 0.9
    for one in (parts, whole):
        one.close()


def test_documents_that_go_and_change_leave_a_whole_graph(growing, tmp_path, films):
    path = write(tmp_path / "a.jsonl", films)
    growing.add("film", [path])
    changed = [{**film, "title": f"{film['title']} Again"} for film in films[:3]]
    rewritten = [{**film, "overview": "Nothing is said of it."} for film in films[3:6]]
    write(path, [*changed, *rewritten, *films[10:]])
    report = growing.add("film", [path])
    assert (report.changed, report.deleted) == (6, 4)
    assert growing.get("film")._index.meta("grown") == "10"
    is_whole(growing)
    assert growing.get("film").find_entity(changed[0]["title"])["doc_id"] == films[0]["id"]
    assert not ids(growing, "entities", "doc_id") & {film["id"] for film in films[6:10]}


def test_old_texts_are_looked_through_for_a_new_title_and_a_mere_name_becomes_it(growing, tmp_path, films):
    old = {"id": "old", "title": "A Visit", "text": "A Visit is a film. They read Marvin Gardens aloud."}
    growing.add("film", [write(tmp_path / "a.jsonl", [*films[:60], old])])
    base = growing.get("film")
    assert base.find_entity("Marvin Gardens")["entity_id"] == "name:marvin gardens"
    new = {"id": "new", "title": "Marvin Gardens", "text": "Marvin Gardens is a book."}
    growing.add("film", [write(tmp_path / "b.jsonl", [new])])
    assert base.entity("name:marvin gardens") is None
    assert [r["source"] for r in base.relations_of("doc:new") if r["type"] == "mentions"] == ["doc:old"]
    assert "old#0" in base.mentions_of("doc:new")
    is_whole(growing)


def test_few_documents_leave_the_other_communities_as_they_are(growing, tmp_path, films):
    growing.add("film", [write(tmp_path / "a.jsonl", films)])
    before = content(growing, "communities")
    like = {**films[0], "id": "twin", "title": "Twin", "overview": "Twin is a film of the same people. It is short."}
    growing.add("film", [write(tmp_path / "b.jsonl", [like])])
    after = content(growing, "communities")
    assert len(before - after) <= 1
    (home,) = growing.get("film").communities_of(["doc:twin"])
    assert films[0]["id"] in home["doc_ids"] and "twin" in home["doc_ids"]


def test_a_summary_is_of_the_documents_own_sentences_in_their_language(growing, tmp_path):
    tea = [{"id": f"z{n}", "title": f"茶山{n}号", "text": f"茶山{n}号在福建。喝茶。"} for n in range(3)]
    sheep = [{"id": f"e{n}", "title": f"Hill {n}", "text": f"Hill {n} is in Devon. Sheep."} for n in range(3)]
    notes = [*({**one, "owner": "陈采"} for one in tea), *({**one, "owner": "Ann Lee"} for one in sheep)]
    growing.add("film", [write(tmp_path / "a.jsonl", notes)])
    told = {c["doc_ids"][0][0]: c["summary"] for c in growing.get("film").communities()}
    assert told["z"] == "茶山0号在福建。茶山1号在福建。茶山2号在福建。"
    assert told["e"].startswith("Hill 0 is in Devon. Hill 1 is in Devon.")


KILLED = """
import os, sys; from pathlib import Path
from workbench.knowledge.adding import adding, growing
from workbench.knowledge.library import Library; from workbench.settings import Settings
adding.SMALL = 0
settings = Settings.load(embedding_model="hashing", names="rules", rerank_model="none")
whole = getattr(growing.Growth, sys.argv[3])
def killed(self, *given):
    whole(self, *given)
    os.kill(os.getpid(), 9)
setattr(growing.Growth, sys.argv[3], killed)
Library(Path(sys.argv[1]), settings).add("film", [sys.argv[2]])
"""


@pytest.mark.parametrize("moment", ["forget", "_rename_known", "_join_surfaces", "_look_back", "finish"])
def test_killed_while_it_grows_it_is_as_it_was(growing, tmp_path, films, moment):
    path = write(tmp_path / "a.jsonl", films[:40])
    growing.add("film", [path])
    tables = ("documents", "passages", "entities", "relations", "mentions", "surfaces", "communities", "homes")
    before = {table: content(growing, table) for table in tables}
    write(path, [{**films[0], "title": "Other"}, *films[2:42]])
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "grown", path, moment], timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert {table: content(growing, table) for table in tables} == before
    growing.add("film", [path])
    is_whole(growing)
