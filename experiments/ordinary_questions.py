"""Ordinary questions that are read as more than a question: what would be noted or dropped that was only asked.

python -m experiments.ordinary_questions [FOLDER ...] [--show]

The questions that ship with the repository, and those of every ``questions.jsonl`` below the folders: a line is JSON
with ``question``. By halves: what is wrong in the first half may be looked at (``--show``), the second is only counted.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from experiments.blind import BLIND, SETS, questions, rows
from workbench.parts.memory.recall import by_rules

KINDS = ("preferences", "facts", "name", "recall", "search changed")


def shipped() -> dict[str, list[str]]:
    """The questions of the repository, by set."""
    blind = {f"blind/{name}": [row["question"] for row in questions(name)] for name in SETS}
    reworded = BLIND.parent / "reworded"
    again = {
        f"reworded/{path.stem}": [
            row[key] for row in rows(path) for key in ("question", "en", "zh")
        ]
        for path in sorted(reworded.rglob("*.jsonl"))
    }
    negated = {"negation": [row["question"] for row in rows(BLIND / "negation.jsonl")]}
    return {
        name: [q for q in asked if q] for name, asked in {**blind, **negated, **again}.items()
    }


def below(folder: Path) -> dict[str, list[str]]:
    """The questions of every set below a folder."""
    return {
        path.parent.name: [row["question"] for row in rows(path)]
        for path in sorted(folder.rglob("questions.jsonl"))
    }


def more(question: str) -> list[str]:
    """What a message is read as beyond a question, by the names of ``KINDS``."""
    read = by_rules(question)
    found = [note["section"] for note in read["noted"]] + ["recall"] * (
        read["recalls"] is not None
    )
    return found + ["search changed"] * (not read["recalls"] and read["to_search"] != question)


def half(question: str) -> str:
    """``a`` (may be looked at) or ``b``."""
    return "ab"[hashlib.sha256(question.encode()).digest()[0] % 2]


def row(name: str, asked: Iterable[str]) -> str:
    """Of a set: questions, those read as more, and as what."""
    asked = list(asked)
    read = [set(more(q)) for q in asked]
    counts = [sum(kind in one for one in read) for kind in KINDS]
    n = sum(map(bool, read))
    return f"| {name} | {len(asked)} | {n} | {n / max(1, len(asked)):.2%} | {' | '.join(map(str, counts))} |"


def main() -> None:
    sets = shipped()
    for folder in [Path(arg) for arg in sys.argv[1:] if not arg.startswith("--")]:
        sets |= below(folder)
    print(
        f"| set | questions | read as more | | {' | '.join(KINDS)} |\n| --- |{' --: |' * (3 + len(KINDS))}"
    )
    for name, asked in sets.items():
        print(row(name, asked))
    for side in "ab":
        print(
            row(f"half {side}", [q for asked in sets.values() for q in asked if half(q) == side])
        )
    if "--show" in sys.argv:
        for q in [q for asked in sets.values() for q in asked if half(q) == "a" and more(q)]:
            print(more(q), q)


if __name__ == "__main__":
    main()
