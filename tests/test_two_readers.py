"""Two processes on one knowledge base: a reader sees the old state or the new one, at once, and never a mixture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.shelves import workbench
from workbench.errors import KnowledgeError, UnknownKnowledge, WorkspaceBusy
from workbench.session import Workbench

ROOT = Path(__file__).resolve().parent.parent
HASHING = {"embedding_model": "hashing"}
COMEDIES = [{"field": "genres", "op": "eq", "value": "Comedy"}]


def write_corpus(folder: Path, generation: int, documents: int = 12) -> Path:
    """Films of which everything says which generation they are of; two come and go."""
    about = {
        "type": "Film",
        "year": 1900 + generation,
        "directors": [f"Director Gen{generation}"],
        "genres": ["Comedy"],
    }
    text = f"is a comedy. It is of state{generation} and of nothing else."
    titles = {f"f{number}": f"Film {number} Gen{generation}" for number in range(documents + generation % 2)}
    lines = [{"id": name, "title": title, "text": f"{title} {text}", **about} for name, title in titles.items()]
    path = folder / "films.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def process(function: str, *args: object) -> subprocess.Popen[str]:
    """A real process that runs a function of this file with these words; told and heard line by line."""
    code = f"import sys; from tests.test_two_readers import {function}; {function}(*sys.argv[1:])"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return forked.Popen([sys.executable, "-c", code, *map(str, args)], cwd=ROOT, **pipes)


def end(*processes: subprocess.Popen[str]) -> None:
    for one in processes:
        one.kill()
        one.communicate()


def add_when_told(workspace: str, corpus: str, limit: str) -> None:
    """For each number on a line: that generation of the corpus is added, and the number said back."""
    with Workbench.open(workspace, **{**HASHING, "exact_search_limit": int(limit)}) as wb:
        print("ready", flush=True)
        for line in sys.stdin:
            wb.add_knowledge("film", [write_corpus(Path(corpus), int(line))])
            print(int(line), flush=True)


def hold_for_writing(workspace: str) -> None:
    """Holds the base for writing until it dies."""
    with Workbench.open(workspace, **HASHING) as wb, wb.knowledge.writing("film"):
        print("held", flush=True)
        sys.stdin.read()


def tell(writer: subprocess.Popen[str], generation: int) -> None:
    assert writer.stdin and writer.stdout
    writer.stdin.write(f"{generation}\n")
    writer.stdin.flush()
    assert writer.stdout.readline().strip() == str(generation)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    return folder


@pytest.fixture(
    params=[
        pytest.param((20_000, "chroma"), id="matrix"),
        pytest.param((2, "chroma"), id="chroma"),
        pytest.param((2, "lancedb"), id="lancedb", marks=pytest.mark.full),
    ]
)
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if request.param[1] == "lancedb":
        pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    monkeypatch.setenv("WORKBENCH_VECTOR_STORE", request.param[1])
    return request.param[0]


@pytest.fixture
def writer(tmp_path: Path, corpus: Path, limit: int) -> Iterator[subprocess.Popen[str]]:
    one = process("add_when_told", tmp_path / "ws", corpus, limit)
    assert one.stdout and one.stdout.readline() == "ready\n"
    yield one
    end(one)


def seen(base) -> dict[str, set[int]]:
    def found(way: str) -> list[str]:
        return [p["title"] for p in base.passages([chunk for chunk, _ in base.search(way, "a film, a comedy", 50)])]

    titles = {
        "keywords": found("words"),
        "vectors": found("meaning"),
        "graph": [data["name"] for _, data in base.graph().nodes(data=True)],
        "select": [p["title"] for p in base.passages(doc_ids=base.select(COMEDIES))],
        "communities": [community["title"] for community in base.around("communities")],
    }
    return {name: {int(t.partition("Gen")[2][:1]) for t in some if "Gen" in t} for name, some in titles.items()}


def test_an_open_reader_sees_what_another_process_added_with_its_next_call(tmp_path, writer, limit):
    with pytest.raises(UnknownKnowledge), Workbench.open(tmp_path / "ws", **HASHING) as wb:
        wb.knowledge.get("film")
    tell(writer, 1)
    with Workbench.open(tmp_path / "ws", **{**HASHING, "exact_search_limit": limit}) as wb:
        base = wb.knowledge.get("film")
        for generation in (1, 2, 3):
            if generation > 1:
                tell(writer, generation)
            found = seen(base)
            assert {name: states for name, states in found.items() if states not in ({generation}, set())} == {}
            assert found["keywords"] and found["vectors"] and found["graph"] and found["select"]
            count = 12 + generation % 2
            assert base.about()["counts"]["documents"] == count
            assert len(base.search("meaning", "a film that is a comedy", 50)) == count
            mentions = base.link(f"Who made Film 3 Gen{generation}, and who is Director Gen{generation}?")
            assert {m["surface"] for m in mentions} == {f"Film 3 Gen{generation}", f"Director Gen{generation}"}
            assert base.link(f"Film 3 Gen{generation - 1}") == []
            now, before = base.words([f"state{generation}", f"state{generation - 1}"])["weights"]
            assert now < before
            approximate = limit == 2 and os.environ["WORKBENCH_VECTOR_STORE"] == "chroma"
            assert base.inspect()["search"] == ("hnsw" if approximate else "exact")


def test_a_reader_never_sees_a_mixture(tmp_path, writer, limit):
    tell(writer, 1)
    with Workbench.open(tmp_path / "ws", **{**HASHING, "exact_search_limit": limit}) as wb:
        base, last, looked = wb.knowledge.get("film"), 1, dict[int, int]()
        for generation in range(2, 8):
            assert writer.stdin
            writer.stdin.write(f"{generation}\n")
            writer.stdin.flush()
            while last < generation:
                with base.reading():
                    found = seen(base)
                    states = set().union(*found.values())
                    count = base.about()["counts"]["documents"]
                assert len(states) == 1, found
                (now,) = states
                assert last <= now <= generation and count == 12 + now % 2
                assert len(base.graph()) and {len(s) for s in seen(base).values()} <= {0, 1}
                looked[now] = looked.get(now, 0) + 1
                last = now
            assert writer.stdout and writer.stdout.readline().strip() == str(generation)
        assert sum(looked.values()) > 6


@pytest.mark.parametrize("limit", [(2, "chroma")], indirect=True)
def test_whole_steps_of_a_run_read_one_state(tmp_path, writer, limit):
    tell(writer, 1)
    with Workbench.open(tmp_path / "ws", **{**HASHING, "exact_search_limit": limit}) as wb:
        for generation in (2, 3, 4):
            assert writer.stdin and writer.stdout
            writer.stdin.write(f"{generation}\n")
            writer.stdin.flush()
            run = wb.ask("List comedies", kb="film", session=str(generation))
            assert run.status == "done", run.error
            for record in run.records:
                if record["raw_output_ref"]:
                    results = run._store.body(run.run_id, record["raw_output_ref"])["results"]
                    titles = [r["metadata"]["title"] for r in results if r["source_type"] == "chunk"]
                    assert len({title.partition("Gen")[2] for title in titles}) <= 1
            assert writer.stdout.readline().strip() == str(generation)


def test_one_writer_and_its_name(tmp_path, corpus):
    with Workbench.open(tmp_path / "ws", **HASHING) as wb:
        wb.add_knowledge("film", [write_corpus(corpus, 1)])
        holder = process("hold_for_writing", tmp_path / "ws")
        try:
            assert holder.stdout.readline() == "held\n"
            for refused in (lambda: wb.add_knowledge("film", [corpus]), lambda: wb.knowledge.remove("film")):
                with pytest.raises(WorkspaceBusy, match=rf"'film' is being written by process {holder.pid} on \S+ "):
                    refused()
            said = workbench(tmp_path / "ws", "kb", "add", "film", str(corpus))
            assert said.returncode == 1 and f"process {holder.pid} on" in said.stderr and said.stderr.count("\n") == 1
            assert len(wb.knowledge.get("film").search("words", "comedy", 50)) == 13, "reading goes on"
        finally:
            end(holder)
        assert wb.add_knowledge("film", [write_corpus(corpus, 2)]).changed == 12, "a dead holder's lock is free at once"


def test_a_base_removed_or_made_anew_under_a_reader(tmp_path, corpus):
    with Workbench.open(tmp_path / "ws", **HASHING) as wb, Workbench.open(tmp_path / "ws", **HASHING) as other:
        wb.add_knowledge("film", [write_corpus(corpus, 1)])
        base = wb.knowledge.get("film")
        assert base.about()["counts"]["documents"] == 13
        other.knowledge.remove("film")
        with pytest.raises(KnowledgeError, match="'film' is no longer open: it was removed"):
            base.about()["counts"]
        with pytest.raises(UnknownKnowledge, match="Known: none yet"):
            wb.knowledge.get("film")
        other.add_knowledge("film", [write_corpus(corpus, 2)])
        with pytest.raises(KnowledgeError, match="Get it again"):
            base.search("words", "comedy", 5)
        assert wb.knowledge.get("film").about()["counts"]["documents"] == 12
        assert sorted(p.name for p in (tmp_path / "ws" / "knowledge").iterdir() if p.is_dir()) == ["film"]
    (tmp_path / "near" / "knowledge").mkdir(parents=True)
    (tmp_path / "near" / "knowledge" / "film").symlink_to(tmp_path / "ws" / "knowledge" / "film")
    with Workbench.open(tmp_path / "near", **HASHING) as near, Workbench.open(tmp_path / "ws", **HASHING) as wb:
        assert near.knowledge.get("film").about()["counts"]["documents"] == 12
        near.knowledge.remove("film")
        assert near.knowledge.names() == [] and wb.knowledge.get("film").about()["counts"]["documents"] == 12


def remove_and_add(workspace: str, corpus: str, times: str) -> None:
    """Removes the base and makes it anew, so many times."""
    with Workbench.open(workspace, **HASHING) as wb:
        for generation in range(int(times)):
            wb.knowledge.remove("film")
            wb.add_knowledge("film", [write_corpus(Path(corpus), generation, 3)])
        print("done", flush=True)


def test_reading_while_another_process_removes_and_makes_anew(tmp_path, corpus):
    with Workbench.open(tmp_path / "ws", **HASHING) as wb:
        wb.add_knowledge("film", [write_corpus(corpus, 1, 3)])
        other = process("remove_and_add", tmp_path / "ws", corpus, 8)
        answers = 0
        try:
            while other.poll() is None:
                try:
                    base = wb.knowledge.get("film")
                    with base.reading():
                        counts, found = base.about()["counts"], base.search("words", "comedy", 50)
                    assert counts["documents"] == len(found) in (3, 4)
                    answers += 1
                except UnknownKnowledge:
                    pass
                except WorkspaceBusy as told:
                    assert "is being made by process" in str(told)
                except KnowledgeError as told:
                    assert "is no longer open: it was removed" in str(told)
            assert other.stdout.read() == "done\n" and other.returncode == 0
        finally:
            end(other)
        assert answers


def make_slowly(workspace: str, corpus: str) -> None:
    """Stops in the middle of a first add, until it dies."""
    from workbench.knowledge.adding.adding import Addition

    def stopping(self: Addition, *_: object) -> None:
        print("half", flush=True)
        sys.stdin.read()

    Addition._write = stopping
    with Workbench.open(workspace, **HASHING) as wb:
        wb.add_knowledge("film", [write_corpus(Path(corpus), 1)])


def test_a_base_that_is_being_made_is_not_asked(tmp_path, corpus):
    maker = process("make_slowly", tmp_path / "ws", corpus)
    with Workbench.open(tmp_path / "ws", **HASHING) as wb:
        try:
            assert maker.stdout.readline() == "half\n"
            with pytest.raises(WorkspaceBusy, match=rf"'film' is being made by process {maker.pid} on"):
                wb.knowledge.get("film")
        finally:
            end(maker)
        with pytest.raises(KnowledgeError, match="'film' was never finished"):
            wb.knowledge.get("film")
        assert wb.add_knowledge("film", [write_corpus(corpus, 1)]).added == 13
        assert wb.knowledge.get("film").about()["counts"]["documents"] == 13
