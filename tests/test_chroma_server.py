"""The vectors of a base on a real Chroma server: followed, searched, killed amid work, back again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import chromadb
import pytest

from tests.servers.chroma import ChromaServer
from workbench.errors import KnowledgeError
from workbench.knowledge.library import Library
from workbench.settings import Settings

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
    path.write_text("".join(f"{json.dumps(one)}\n" for one in made))
    return path


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
    assert base.about()["counts"]["documents"] == 40, "the index was written before the server was asked"
    assert base.search("words", "passage 35", 1)[0][0] == "d35#0"
    server.start()
    assert not library.get("notes").inspect()["chroma"]
    report = library.add("notes", [path])
    assert (report.added, report.unchanged) == (0, 40)
    assert library.get("notes").inspect()["chroma"]
    found = base.search("meaning", "bees and war", 40)
    assert len(found) == 40 and {i for i, _ in before} <= {i for i, _ in found}
    library.close()


def test_a_server_killed_between_two_writes_is_caught_up_with(tmp_path, server, monkeypatch):
    monkeypatch.setattr("workbench.knowledge.indexes.store.WRITE", 7)
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
    library.close()


def test_a_server_that_lost_its_files_is_filled_again(tmp_path, server):
    library = Library(tmp_path / "kb", settings(server.url))
    path = write(tmp_path / "notes.jsonl", range(20))
    library.add("notes", [path])
    other = ChromaServer(tmp_path / "fresh")
    other.port, other.url = server.port, server.url
    server.kill()
    other.start()
    try:
        with pytest.raises(KnowledgeError, match="has lost its files, run `workbench kb rebuild`"):
            library.get("notes").search("meaning", "Passage", 20)
        write(path, range(21))
        library.add("notes", [path])
        assert len(library.get("notes").search("meaning", "Passage", 30)) == 21
    finally:
        other.kill()
    library.close()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://"])
def test_an_address_that_is_none_is_an_error_with_its_mend(tmp_path, url):
    library = Library(tmp_path / "kb", settings(url))
    with pytest.raises(KnowledgeError, match="must be like http://localhost:8000"):
        library.add("notes", [write(tmp_path / "notes.jsonl", range(3))])
    library.close()
