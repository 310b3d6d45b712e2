"""Indexing holds a part of a corpus at a time: its peak does not grow with the corpus."""

from __future__ import annotations

import gc
import json
import subprocess
import sys

import pytest

from workbench.knowledge.adding.spool import MANY
from workbench.knowledge.library import Library
from workbench.knowledge.names.entities import Source
from workbench.knowledge.reading.corpus import Document
from workbench.settings import Settings


def write(path, documents, characters, notes=0):
    with path.open("w") as file:
        for number in range(documents):
            said = f"Hill {number} has sheep. They came {number} times. "
            text = (said * (characters // len(said) + 1))[:characters]
            row = {"id": f"d{number}", "title": f"Hill {number}", "text": text, "notes": "z" * notes}
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def library(tmp_path):
    core = {"embedding_model": "hashing", "rerank_model": "none"}
    library = Library(tmp_path / "kb", Settings.load(**core))
    yield library
    library.close()


def test_an_add_holds_as_many_documents_as_it_may(library, tmp_path):
    path = write(tmp_path / "corpus.jsonl", 400, 100)
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


PEAK = """
import os, sys
from pathlib import Path
from workbench.knowledge.adding import adding
from workbench.knowledge.library import Library
from workbench.settings import Settings

def look(stage, done, total):
    if stage == "chroma":  # whose graph of vectors is in memory; the index is made by now
        (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
        print(peak.split()[1], flush=True)  # ru_maxrss begins at what the parent has
        os._exit(0)

adding._CACHE_MB = 1
core = {"embedding_model": "hashing", "rerank_model": "none"}
library = Library(Path(sys.argv[1]), Settings.load(**core))
if sys.argv[2] == "add":
    library.add("corpus", [sys.argv[3]], progress=look)
else:
    library.rebuild("corpus", progress=look)
"""


@pytest.mark.full
def test_the_peak_of_a_process_that_indexes_does_not_grow_with_the_corpus(tmp_path):
    """The larger corpus has 17 MB more, of which next to nothing is left: documents that were held would be more."""
    fewer, more, notes = 300, 1_200, 20_000
    peaks: dict[tuple[str, int], float] = {}
    for documents in (fewer, more):
        path = write(tmp_path / f"{documents}.jsonl", documents, 40, notes)
        for verb in ("add", "rebuild"):
            place = [str(tmp_path / f"kb{documents}"), verb, str(path)]
            said = subprocess.run([sys.executable, "-c", PEAK, *place], check=True, capture_output=True, text=True)
            peaks[verb, documents] = int(said.stdout) / 1024
    corpus = (more - fewer) * notes / 2**20
    grown = {verb: peaks[verb, more] - peaks[verb, fewer] for verb in ("add", "rebuild")}
    assert max(grown.values()) < corpus / 2, (grown, peaks)
