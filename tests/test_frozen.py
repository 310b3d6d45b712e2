"""Questions by which answers are measured are those that were frozen, and what is right stands in their corpora."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.blind import BLIND, rows

KINDS = (".jsonl", ".csv", ".md", ".rst", ".canvas")


def test_the_blind_sets_are_those_that_were_frozen():
    """A vocabulary may change its form, the corpora and the gold may not."""
    frozen = (BLIND / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in BLIND.rglob("*") if path.is_file() and path.suffix in KINDS]
    found = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(BLIND).as_posix()}" for p in files]
    assert {line for line in found if not line.endswith("README.md")} == set(frozen)


def test_the_reworded_questions_are_those_that_were_frozen():
    """Only those in ``fitting`` are of the half that constants are fitted on."""
    folder = BLIND.parent / "reworded"
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        asked = rows(folder / name)
        fits = name.startswith("fitting/")
        assert len(asked) == (30 if fits else 60)
        assert all(q["gold"] and len({q["question"], q["en"], q["zh"]}) == 3 for q in asked)
        last = {hashlib.sha256(f"half {q['id']}".encode()).hexdigest()[-1] for q in asked}
        assert last <= set("02468ace" if fits else "13579bdf")


FOLDER = Path(__file__).resolve().parent.parent / "experiments" / "questions"


def test_corpora_and_questions_are_those_that_were_frozen():
    frozen = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.name not in ("README.md", "SHA256SUMS")]
    present = {f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(FOLDER).as_posix()}" for p in files}
    assert present == set(frozen)
