"""The questions of our own are those that were frozen, and what is right stands in their corpora."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "experiments" / "questions"
QUESTIONS = [json.loads(line) for line in (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def test_corpora_and_questions_are_those_that_were_frozen():
    frozen = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.name not in ("README.md", "SHA256SUMS")]
    present = {f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(FOLDER).as_posix()}" for p in files}
    assert present == set(frozen)


def test_both_halves_have_as_many_of_each_kind_and_language():
    halves = [Counter((q["kind"], q["lang"]) for q in QUESTIONS if q["half"] == half) for half in ("fit", "report")]
    assert halves[0] == halves[1] and halves[0].total() == 30


def test_what_a_quotation_must_hold_is_in_the_corpus():
    for question in QUESTIONS:
        files = [path for path in (FOLDER / question["kb"]).rglob("*") if path.is_file()]
        corpus = "\n".join(path.read_text(encoding="utf-8") for path in files)
        if question["kind"] == "quotation":
            assert all(re.search(pattern, corpus) for pattern in question["right"]), question["id"]
