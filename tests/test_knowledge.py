"""Knowledge bases as everybody sees them: adding and its bar, following changes, many threads, two processes, kills."""

import gc
import gzip
import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from experiments.blind import rows
from tests.cases import HERE, tables
from tests.films import FILMS as DATA
from tests.films import VOCABULARY, where
from tests.shelves import CORE, CORPORA, hills, jsonl
from workbench.errors import CorpusError, KnowledgeError, UnknownKnowledge, WorkbenchError
from workbench.knowledge.adding import MANY
from workbench.knowledge.library import Library
from workbench.knowledge.names.entities import Source
from workbench.knowledge.reading.corpus import Document
from workbench.settings import Settings

FILMS = rows(CORPORA / "five_films.jsonl")
TEXTS = [film.pop("said") for film in FILMS]


def write(path: Path, films=FILMS, texts=TEXTS) -> Path:
    made = (
        {**film, "type": "Film", "text": f"{film['title']} is a film. {text}"}
        for film, text in zip(films, texts, strict=False)
    )
    shutil.copyfile(VOCABULARY, path.with_name("vocabulary.toml"))  # which is read because it lies there
    return jsonl(path, made)


def state(base) -> list:
    found = [base.search(way, "a wedding film 喜宴, dreams", 10) for way in ("words", "meaning")]
    return [base.fingerprint(), base._index.generation, base.about()["counts"], *found]


@pytest.fixture
def library(tmp_path):
    library = Library(tmp_path / "kb", Settings.load(**CORE))
    yield library
    library.close()


@pytest.fixture
def film(library, tmp_path):
    library.add("film", [write(tmp_path / "films.jsonl")])
    return library.get("film")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    library = Library(folder / "kb", Settings.load(**CORE))
    library.add("film", [write(folder / "films.jsonl")])
    yield library.get("film")
    library.close()


def test_searches(shared):
    assert shared.search("words", "喜宴哪一年上映", 5)[0][0] == "f1#0"
    assert shared.search("words", "李安的喜剧", 5)[0][0] == "f1#0"
    for query in ("wedding banquets", "WEDDING Bänquet", "the wedding of the", 'a "wedding" NEAR(a b) OR * ^ -'):
        assert shared.search("words", query, 1)[0][0] == "f1#0", query
    assert shared.search("words", '"; DROP TABLE terms', 5) == shared.search("words", "...", 5) == []
    assert shared.search("meaning", "a cook and his daughters", 1)[0][0] == "f2#0"
    (passage,) = shared.passages(["f1#0", "nowhere#0"])
    assert (passage["title"], passage["fields"]["year"]) == ("The Wedding Banquet", 1993)
    assert [p["chunk_id"] for p in shared.passages(["f2#0", "f1#0", "f2#0"])] == ["f2#0", "f1#0", "f2#0"]
    assert [p["doc_id"] for p in shared.passages(doc_ids=["f3", "f1"])] == ["f3", "f1"]
    common, rare, absent = shared.words(["film", "wedding", "nowhere"])["weights"]
    assert common == 0 < rare < absent
    assert shared.about()["counts"]["documents"] == 5


@pytest.mark.parametrize(("lines", "expected"), tables("knowledge", end="\n")["selected"])
def test_select(shared, lines, expected):
    assert shared.select(where(*filter(None, lines.split(" & ")))) == expected.split()


def test_select_in_an_order_and_counted_by_a_schema_that_is_told_from_the_values(shared):
    told = {f["name"]: (f["type"], f["many"], f["documents"], f["low"], f["high"]) for f in shared.about()["fields"]}
    assert told["year"] == ("date", False, 4, "1993", "2010")
    assert told["directors"][0] == "name" and told["genres"][0] == "category"
    assert shared.select([], {"field": "year", "descending": False}, 2) == ["f1", "f2"]
    assert shared.select([], {"field": "year", "descending": True})[-1] == "f5"  # who has none comes last
    assert shared.select(count="directors") == [("Ang Lee", 2), ("Christopher Nolan", 2), ("Nobody Known", 1)]
    assert shared.select(where("directors = Ang Lee"), count="genres") == [("Comedy", 1), ("Drama", 1)]
    for line in ("year >= soon", "year between 1990", "directors < Ang Lee"):
        with pytest.raises(KnowledgeError, match="cannot be tested"):
            shared.select(where(line))


TABLES = ("entities", "relations", "mentions", "names", "communities", "homes")
NOTHING_THERE = (HERE / "orphans.sql").read_text("utf-8").split(";")


def test_after_every_change_the_graph_is_whole_and_a_function_of_the_documents(library, tmp_path):
    films = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    random.Random(3).shuffle(films)
    paths = [tmp_path / f"{name}.jsonl" for name in "ab"]

    def put(path: Path, documents: list[dict]) -> None:
        library.add("film", [jsonl(path, documents)])

    changed = [{**film, "title": f"{film['title']} Again"} for film in films[:3]]
    old = {"id": "old", "title": "A Visit", "text": "A Visit is a film. They read Marvin Gardens aloud."}
    new = {"id": "new", "title": "Marvin Gardens", "text": "Marvin Gardens is a book."}
    put(paths[0], [*films[:40], old])
    base = library.get("film")
    assert base.entity("Marvin Gardens")["entity_id"] == "name:marvin gardens"
    put(paths[1], [*films[40:80], new])
    assert base.entity("name:marvin gardens") is None, "a mere name becomes the title"
    assert [r["source"] for r in base.around("relations", ["doc:new"]) if r["type"] == "mentions"] == ["doc:old"]
    put(
        paths[0],
        [*changed, *({**film, "overview": "Nothing is said of it."} for film in films[3:6]), *films[10:40], old],
    )
    assert base.entity(changed[0]["title"])["doc_id"] == films[0]["id"]
    fresh = Library(tmp_path / "fresh", Settings.load(**CORE))
    fresh.add("film", paths[::-1])
    for table in TABLES:
        rows = (set(one._index.rows(f"SELECT * FROM {table}")) for one in (base, fresh.get("film")))
        assert next(rows) == next(rows), table
    fresh.close()
    assert [sql for sql in NOTHING_THERE if base._index.rows(sql)] == [] and base.inspect()["chroma"]


def test_adding_again_costs_nothing_and_changes_nothing(library, film, tmp_path, monkeypatch):
    before = state(film)
    monkeypatch.setattr("workbench.models.embeddings.HashingEmbeddings.array", None)
    report = library.add("film", [tmp_path / "films.jsonl"])
    assert (report.added, report.changed, report.deleted, report.unchanged) == (0, 0, 0, 5)
    assert film._index.generation == 1
    monkeypatch.undo()
    assert state(film) == before


@pytest.mark.parametrize("stage", ["read", "vectors", "write", "graph", "chroma"])
def test_an_add_that_is_stopped_by_who_watches_leaves_the_base_as_it_was(library, film, tmp_path, stage):
    before = state(film)
    write(tmp_path / "films.jsonl", FILMS[1:], ["It is about tea.", *TEXTS[2:]])

    def stop(at: str, done: int, total: int) -> None:
        if at == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.add("film", [tmp_path / "films.jsonl"], progress=stop)
    if stage != "chroma":
        assert state(film) == before
    library.add("film", [tmp_path / "films.jsonl"])
    assert film.about()["counts"]["documents"] == 4
    assert library.get("film").inspect()["chroma"]


def test_files_that_are_gone_from_a_folder_are_gone_from_the_base(library, tmp_path):
    (notes := tmp_path / "notes").mkdir()
    for name in "abc":
        (notes / f"{name}.md").write_text(f"# {name}\nNote {name}.")
    library.add("notes", [notes])
    library.add("notes", [write(tmp_path / "films.jsonl")])
    (notes / "b.md").unlink()
    report = library.add("notes", [notes])
    assert (report.deleted, report.unchanged) == (1, 2)
    assert library.get("notes").about()["counts"]["documents"] == 7  # what came from another file stays


def test_what_breaks_between_two_adds_deletes_no_document(library, tmp_path):
    path = tmp_path / "films.jsonl.gz"
    whole = gzip.compress(write(tmp_path / "films.jsonl").read_bytes())
    path.write_bytes(whole)
    library.add("film", [path])
    path.write_bytes(whole[:-20])
    report = library.add("film", [path])
    assert report.problems and report.deleted == 0 and library.get("film").about()["counts"]["documents"] == 5
    lines, path = [json.dumps({"id": i, "text": f"{i} is a note."}) for i in "abc"], tmp_path / "notes.jsonl"
    path.write_text("\n".join(lines))
    library.add("notes", [path])
    path.write_text("\n".join([lines[0], lines[1][:-4]]))
    report = library.add("notes", [path])
    assert report.problems and report.deleted == 0 and library.get("notes").about()["counts"]["documents"] == 3
    path.write_text("\n".join(lines[:2]))
    assert library.add("notes", [path]).deleted == 1


def test_other_settings_for_chunks_make_the_passages_anew(tmp_path):
    path = write(tmp_path / "films.jsonl", texts=["One sentence. " * 20] * 5)
    with closing(Library(tmp_path / "kb", Settings.load(**CORE))) as few:
        few.add("film", [path])
        assert few.get("film").about()["counts"]["passages"] == 5
    with closing(Library(tmp_path / "kb", Settings.load(**CORE, chunk_characters=100))) as many:
        assert many.add("film", [path]).unchanged == 5
        assert many.get("film").about()["counts"]["passages"] > 10


OUTSIDE = ("..", "/etc", "a\\b", ".hidden", "con", "nul", "com1", "x\x00", "ｘ")


def test_names_of_bases(library, film):
    for bad in (*("", "general", "../x", "a/b", "A", ".", "-a", "a" * 65, "喜宴"), *OUTSIDE):
        with pytest.raises(KnowledgeError, match="cannot be named"):
            library.add(bad, [])
        with pytest.raises(WorkbenchError):
            library.remove(bad)
    assert library.names() == ["film"]
    with pytest.raises(UnknownKnowledge, match="Known: film"):
        library.get("../film")
    with pytest.raises(CorpusError):
        library.add("new", ["/nowhere/at/all"])
    with pytest.raises(CorpusError, match="xxx' cannot be looked at: File name too long"):
        library.add("new", ["x" * 300])
    library.remove("film")
    assert library.names() == []
    with pytest.raises(UnknownKnowledge, match="none yet"):
        library.remove("film")


def test_an_index_of_another_version_is_made_anew(tmp_path, film):
    library = Library(tmp_path / "kb", Settings.load(**CORE))
    with closing(sqlite3.connect(tmp_path / "kb" / "film" / "index.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(KnowledgeError, match=r"tables 99, here .*kb rebuild film"):
        library.get("film")
    assert library.rebuild("film").added and library.get("film").about()["counts"]["documents"]


@pytest.mark.full
def test_closing_while_threads_read_is_an_error_for_them_and_never_a_crash(tmp_path):
    code = """
import sys, threading, time
from pathlib import Path
from workbench.errors import KnowledgeError
from workbench.knowledge.indexes.index import Index
LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) SELECT max(x) FROM c"
for n in range(10):
    index = Index(Path(sys.argv[1]) / f"{n}.db", create=True)
    begun, ends = threading.Barrier(5), []
    def read():
        begun.wait()
        try:
            while True:
                index.rows(LONG)
        except KnowledgeError as closed:
            ends.append(str(closed))
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads: thread.start()
    begun.wait(); time.sleep(0.01); index.close()
    for thread in threads: thread.join()
    assert len(ends) == 4 and all("is closed" in said for said in ends), ends
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr[-2000:]


def test_an_add_holds_as_many_documents_as_it_may(tmp_path):
    path, library = hills(tmp_path / "corpus.jsonl", 400), Library(tmp_path / "kb", Settings.load(**CORE))
    alive: dict[str, int] = {}
    gc.freeze()  # what is there already is not looked through at every step

    def look(stage: str, done: int, total: int) -> None:
        count = sum(type(one) in (Document, Source) for one in gc.get_objects())
        alive[stage] = max(count, alive.get(stage, 0))

    try:
        library.add("corpus", [path], progress=look)
    finally:
        gc.unfreeze()
    assert library.get("corpus").about()["counts"]["documents"] == 400
    assert max(alive.values()) <= 2 * MANY, alive
    assert alive["graph"], "the graph was looked at while it was made"
    library.close()
