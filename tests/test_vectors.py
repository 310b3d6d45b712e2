"""Vectors: exact search, and stores in files or on a server that follow the index from whatever state."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.api.shared_system_client import SharedSystemClient

from tests import forked
from tests.servers.chroma import ChromaServer
from tests.shelves import jsonl
from workbench.errors import KnowledgeError
from workbench.knowledge.indexes import vectors
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.stores import Chroma, Place, opened
from workbench.knowledge.library import Library
from workbench.models.embeddings import HashingEmbeddings
from workbench.parts.sources.lance import Lance
from workbench.parts.upkeep.files import faults_in
from workbench.session import Workbench
from workbench.settings import Settings


@pytest.fixture
def model():
    return HashingEmbeddings(64)


@pytest.fixture(params=["chroma", "lancedb"])
def store(request, tmp_path):
    """Opens a store in a folder: one list of tests over both."""
    kind = {"chroma": Chroma, "lancedb": Lance}[request.param]
    if kind is Lance:
        pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    return lambda name="store": kind(Place(tmp_path / name, kind=request.param))


@pytest.fixture
def index(tmp_path):
    index = Index(tmp_path / "index.db", create=True)
    yield index
    index.close()


def hold(index, model, texts):
    """The index holds exactly these passages, ``{chunk_id: text}``."""
    vectors.ensure(index, model, list(texts.values()), set(), lambda done, total: None)
    with index.transaction() as connection:
        connection.execute("DELETE FROM passages")
        for chunk_id, text in texts.items():
            row = (chunk_id, chunk_id, 0, text, "", vectors.vector_key(model.name, text))
            sql = "INSERT INTO passages (chunk_id, doc_id, position, text, digest, vector) VALUES (?, ?, ?, ?, ?, ?)"
            connection.execute(sql, row)


TEXTS = {
    f"d{n}#0": f"passage {n} on {word}" for n, word in enumerate(["tea", "bees", "喜宴", "李安", "war", "love"] * 20)
}


def test_a_store_is_mended_from_any_state(store, index, model):
    hold(index, model, TEXTS)
    with store() as kept:
        kept.follow(index)
        kept.delete(["d3#0", "d4#0"])
        kept.put(["stray"], ["x"], model.array(["wrong"]))
        kept.put(["d5#0"], ["x"], model.array(["wrong"]))
        kept.follow(index)
        held = dict(kept.stored_keys())
    assert held == dict(index.rows("SELECT chunk_id, vector FROM passages"))


def test_what_the_process_had_in_memory_is_in_no_file_of_a_store(tmp_path, store):
    """HNSW writes its whole table down, used or not; it used to hold whatever had been in that memory before."""
    secret = b"sk-planted-0123456789abcdef"

    def forget() -> None:
        pieces = [(secret * (size // len(secret) + 1))[:size] for size in (20_000, 30_100, 60_000) for _ in range(60)]
        del pieces

    for round_ in range(6):
        index = Index(tmp_path / f"{round_}.db", create=True)
        with index.transaction() as connection:
            row = (f"c{round_}", "d", 0, "t", "x", "k")
            connection.execute("INSERT INTO vectors VALUES ('k', ?)", (np.ones(8, np.float32).tobytes(),))
            connection.execute(
                "INSERT INTO passages (chunk_id, doc_id, position, text, digest, vector) VALUES (?, ?, ?, ?, ?, ?)", row
            )
        threads = [threading.Thread(target=forget) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        folder = tmp_path / f"store-{round_}"
        with store(folder.name) as chroma:
            chroma.follow(index)
        index.close()
        written = [file for file in folder.rglob("*") if file.is_file() and secret in file.read_bytes()]
        assert written == []


HOSTILE = [
    "a'b", "a\\'b", "a\\", "x\ny", "' OR '1'='1", '") --', "') OR true --", "; DROP TABLE passages", "喜宴'#0", "%_",
]  # fmt: skip


def test_an_id_is_never_read_as_a_condition(store, index, model):
    hold(index, model, dict.fromkeys(HOSTILE, "tea") | {"plain#0": "bees"})
    with store() as kept:
        kept.follow(index)
        for number, one in enumerate(HOSTILE, 1):
            kept.delete([one])
            assert {i for i, _ in kept.stored_keys()} == {*HOSTILE[number:], "plain#0"}
        assert kept.search(index, model.array(["bees"])[0], 5) == [("plain#0", 1.0)]


def test_an_open_store_is_of_one_generation_and_a_new_one_sees_what_another_deleted(store, index, model):
    hold(index, model, TEXTS)
    with store() as reader:
        reader.follow(index)
        hold(index, model, {"d0#0": TEXTS["d0#0"]})
        with store() as writer:
            writer.follow(index)
        found = {i for i, _ in reader.search(index, model.array(["passage"])[0], 30)}
        assert found <= {"d0#0"}, "what the index does not have any more is never shown"
    with store() as reader:
        assert [i for i, _ in reader.stored_keys()] == ["d0#0"]


@pytest.mark.parametrize("shared", [False, True])
def test_both_stores_find_the_same_in_the_films_and_a_base_that_goes_takes_its_table(tmp_path, monkeypatch, shared):
    pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    films = Path(__file__).parent.parent / "data" / "films.jsonl"
    kept = {"embedding_model": "hashing", "rerank_model": "none", "exact_search_limit": 2}
    path = {"lancedb_path": str(tmp_path / "lance")} if shared else {}
    lance = Library(tmp_path / "kb", Settings.load(**kept, vector_store="lancedb", **path))
    chroma, some = Library(tmp_path / "kb", Settings.load(**kept)), tmp_path / "film.jsonl"
    some.write_text("".join(films.read_text(encoding="utf-8").splitlines(keepends=True)[:150]), encoding="utf-8")

    def killed(stage, done, total):
        if stage == "chroma":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lance.add("film", [some], progress=killed)
    assert not lance.get("film").inspect()["chroma"], "the index was written, and the store is behind it"
    lance.add("film", [some])
    told = lance.get("film").inspect()
    assert (told["vector_store"], told["search"], told["chroma"]) == ("lancedb", "exact", True)
    questions = ["Who directed The Wedding Banquet?", "a war film", "喜宴", "love and tea"]
    found = [lance.get("film").search("meaning", question, 20) for question in questions]
    chroma.add("film", [some])
    assert not lance.get("film").inspect()["chroma"] and chroma.get("film").inspect()["search"] == "hnsw"
    assert [chroma.get("film").search("meaning", question, 20) for question in questions] == found
    lance.add("film", [some])
    lance.remove("film")
    assert not list(tmp_path.rglob("*.lance"))
    for one in (lance, chroma):
        one.close()


KILLED = """
import json, os, sys, threading
from contextlib import suppress
from pathlib import Path
from workbench.knowledge.indexes import stores
from workbench.session import Workbench

workspace, notes, place, sign, settings = sys.argv[1:]
going, whole = threading.Event(), stores.stored
stores.WRITE = 20

def files():
    seen = set()
    for file in Path(place).glob(sign):
        with suppress(FileNotFoundError):  # the store renames its temporary files while they are listed
            seen.add((str(file), file.stat().st_mtime_ns))
    return seen

def watch(before):
    going.wait()
    while files() <= before:
        pass
    os.kill(os.getpid(), 9)

def put(*given):
    going.set()  # the store is written from here on: at the first sign of it in its files the process dies
    return whole(*given)

threading.Thread(target=watch, args=[files()], daemon=True).start()
stores.stored = put
with Workbench.open(workspace, **json.loads(settings)) as wb:
    wb.add_knowledge("notes", [notes], lambda *_: None)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sign", "torn"),
    [
        ("chroma", "chroma.sqlite3*", False),
        pytest.param("lancedb", "*/data/*", False, marks=pytest.mark.full),
        pytest.param("lancedb", "*/_transactions/*", False, marks=pytest.mark.full),
        pytest.param("lancedb", "*/_versions/*", True, marks=pytest.mark.full),
    ],
)
def test_killed_inside_a_write_of_a_store_it_opens_and_answers_as_one_that_was_not(tmp_path, kind, sign, torn):
    if kind == "lancedb":
        pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    settings = Settings.load(embedding_model="hashing", rerank_model="none", vector_store=kind, exact_search_limit=2)
    notes, place = tmp_path / "notes.jsonl", tmp_path / "killed" / "knowledge" / "notes" / kind

    def told(numbers):
        notes_of = ({"id": f"n{n}", "text": f"Note {n} is on {list(TEXTS.values())[n % 6]}."} for n in numbers)
        return [jsonl(notes, notes_of)]

    def answers(wb):
        return [wb.knowledge.get("notes").search("meaning", query, 10) for query in ("tea", "note 70 on 喜宴", "love")]

    with Workbench.open(tmp_path / "killed", settings) as wb:
        wb.add_knowledge("notes", told(range(60)), lambda *_: None)
    told(range(30, 120))
    words = (tmp_path / "killed", notes, place, sign, settings.model_dump_json(exclude_defaults=True))
    killed = forked.run([sys.executable, "-c", KILLED, *map(str, words)], timeout=120, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if torn:  # as a machine leaves it that loses its power
        newest = max((f for f in place.rglob("*") if f.is_file()), key=lambda f: f.stat().st_mtime_ns)
        os.truncate(newest, newest.stat().st_size // 2)
    with Workbench.open(tmp_path / "untouched", settings) as wb:
        wb.add_knowledge("notes", [notes], lambda *_: None)
        expected = answers(wb)
    with Workbench.open(tmp_path / "killed", settings) as wb:
        assert not wb.knowledge.get("notes").inspect()["chroma"], "it was killed before the store was up to the index"
        assert answers(wb) == expected
        wb.add_knowledge("notes", [notes], lambda *_: None)
        assert wb.knowledge.get("notes").inspect()["chroma"] and answers(wb) == expected
        base = wb.knowledge.get("notes")
        with opened(base._view._place, base._view._index) as kept:
            assert dict(kept.stored_keys()) == dict(base._view._index.rows("SELECT chunk_id, vector FROM passages"))


@pytest.mark.parametrize("lost", ["empty file", "no file", "torn table"])
def test_a_store_that_lost_what_it_held_is_named_and_made_anew(tmp_path, lost):
    kind = "lancedb" if lost == "torn table" else "chroma"
    if kind == "lancedb":
        pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    settings = Settings.load(embedding_model="hashing", rerank_model="none", vector_store=kind, exact_search_limit=2)
    notes, place = tmp_path / "notes.jsonl", tmp_path / "w" / "knowledge" / "notes" / kind
    jsonl(notes, ({"id": i, "text": text} for i, text in TEXTS.items()))

    def lose():
        SharedSystemClient.clear_system_cache()  # as in a new process
        if kind == "lancedb":
            for file in place.glob("*/_versions/*"):
                os.truncate(file, file.stat().st_size // 2)
            return
        shutil.rmtree(place)
        place.mkdir()
        if lost == "empty file":
            (place / "chroma.sqlite3").touch()

    def add(wb):
        wb.add_knowledge("notes", [notes], lambda *_: None)

    with Workbench.open(tmp_path / "w", settings) as wb:
        add(wb)
        expected = wb.knowledge.get("notes").search("meaning", "李安", 10)
    for fix in (lambda wb: wb.knowledge.rebuild("notes"), *([add] if kind == "chroma" else [])):
        assert not list(faults_in(tmp_path / "w", settings))
        lose()
        assert ["workbench kb rebuild notes" in fix for *_, fix in faults_in(tmp_path / "w", settings)] == [True]
        with Workbench.open(tmp_path / "w", settings) as wb:
            with pytest.raises(KnowledgeError, match=r"workbench kb rebuild notes"):
                wb.knowledge.get("notes").search("meaning", "李安", 10)
            fix(wb)
            assert wb.knowledge.get("notes").search("meaning", "李安", 10) == expected
        assert not list(faults_in(tmp_path / "w", settings))


WORDS = ["tea", "bees", "war", "love", "喜宴", "stones"]


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    running = ChromaServer(tmp_path_factory.mktemp("server"))
    yield running
    running.kill()


@pytest.fixture
def server(one_server: ChromaServer) -> ChromaServer:
    """A server that runs, whatever the test before did to it."""
    one_server.start()
    return one_server


def settings(url: str) -> Settings:
    return Settings.load(embedding_model="hashing", rerank_model="none", exact_search_limit=2, chroma_url=url)


def write(path: Path, numbers: range) -> Path:
    made = ({"id": f"d{n}", "text": f"Passage {n} is about {WORDS[n % 6]} and {WORDS[n % 5]}."} for n in numbers)
    return jsonl(path, made)


def test_it_follows_what_came_changed_and_went_and_finds_as_the_index_does(tmp_path, server):
    library = Library(tmp_path / "kb", settings(server.url))
    exact = Library(tmp_path / "kb", Settings.load(embedding_model="hashing", rerank_model="none"))
    for numbers in (range(60), range(5, 70)):
        library.add("notes", [write(tmp_path / "notes.jsonl", numbers)])
        told = library.get("notes").inspect()
        assert (told["search"], told["chroma"], told["chroma_at"]) == ("hnsw", True, server.url)
        found = library.get("notes").search("meaning", "Passage 7 is about bees and war.", 5)
        assert found == exact.get("notes").search("meaning", "Passage 7 is about bees and war.", 5)
    assert not (tmp_path / "kb" / "notes" / "chroma").exists()
    assert not exact.get("notes").inspect()["chroma"], "files of the base's own were never made"
    for one in (library, exact):
        one.close()


def test_two_workspaces_share_a_server_and_a_base_that_goes_takes_its_vectors_with_it(tmp_path, server):
    one, other = (Library(tmp_path / name, settings(server.url)) for name in ("one", "other"))
    one.add("notes", [write(tmp_path / "a.jsonl", range(10))])
    other.add("notes", [write(tmp_path / "b.jsonl", range(100, 120))])
    assert one.get("notes").search("meaning", "Passage 105", 1)[0][0] != "d105#0"
    assert other.get("notes").search("meaning", "Passage 105 is about", 20)[0][0].startswith("d1")
    held = len(chromadb.HttpClient(port=server.port).list_collections())
    one.remove("notes")
    assert len(chromadb.HttpClient(port=server.port).list_collections()) == held - 1
    assert len(other.get("notes").search("meaning", "Passage", 20)) == 20
    for library in (one, other):
        library.close()


def test_a_server_that_is_killed_is_named_and_work_goes_on_when_it_is_back(tmp_path, server):
    library = Library(tmp_path / "kb", settings(server.url))
    path = write(tmp_path / "notes.jsonl", range(30))
    library.add("notes", [path])
    base = library.get("notes")
    before = base.search("meaning", "bees and war", 5)
    server.kill()
    with pytest.raises(KnowledgeError, match=rf"{server.url} cannot be used: .*`chroma run`.*WORKBENCH_CHROMA_URL"):
        base.search("meaning", "bees and war", 5)
    write(path, range(40))
    with pytest.raises(KnowledgeError, match=rf"{server.url} cannot be used: .*The index itself is whole"):
        library.add("notes", [path])
    assert base.about()["counts"]["documents"] == 40
    assert base.search("words", "passage 35", 1)[0][0] == "d35#0"
    server.start()
    assert not library.get("notes").inspect()["chroma"]
    report = library.add("notes", [path])
    assert (report.added, report.unchanged) == (0, 40)
    assert library.get("notes").inspect()["chroma"]
    found = base.search("meaning", "bees and war", 40)
    assert len(found) == 40 and {i for i, _ in before} <= {i for i, _ in found}
    library.close()


def test_a_server_that_is_killed_between_two_writes_or_lost_its_files_is_caught_up_with(tmp_path, server, monkeypatch):
    monkeypatch.setattr("workbench.knowledge.indexes.stores.WRITE", 7)
    library = Library(tmp_path / "kb", settings(server.url))
    path = write(tmp_path / "notes.jsonl", range(50))

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "chroma" and done >= 21:
            server.kill()

    with pytest.raises(KnowledgeError, match="cannot be used"):
        library.add("notes", [path], progress=kill)
    server.start()
    library.add("notes", [path])
    assert len(library.get("notes").search("meaning", "Passage", 60)) == 50
    other = ChromaServer(tmp_path / "fresh")
    other.port, other.url = server.port, server.url
    server.kill()
    other.start()
    try:
        with pytest.raises(KnowledgeError, match="has lost its files, run `workbench kb rebuild`"):
            library.get("notes").search("meaning", "Passage", 20)
        write(path, range(51))
        library.add("notes", [path])
        assert len(library.get("notes").search("meaning", "Passage", 60)) == 51
    finally:
        other.kill()
    library.close()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://"])
def test_an_address_that_is_none_is_an_error_with_its_mend(tmp_path, url):
    library = Library(tmp_path / "kb", settings(url))
    with pytest.raises(KnowledgeError, match="must be like http://localhost:8000"):
        library.add("notes", [write(tmp_path / "notes.jsonl", range(3))])
    library.close()
