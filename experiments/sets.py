"""The question sets that are measured, and the figures of a ranking of documents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.parts.evaluate.questions import choose, distinct, read_rows
from workbench.session import Workbench

TEXTS = "film_texts"
SETS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "2wiki": ("2wiki", {}, "gold"),
    "hotpot": ("hotpot", {}, "gold"),
    "cmrc": ("cmrc", {}, "gold"),
    "drcd": ("drcd", {}, "gold"),
    "lihua": ("lihua", {}, "gold"),
    "xquad_en": ("xquad", {"lang": "zh"}, "gold_en"),
    "xquad_zh": ("xquad", {"lang": "en"}, "gold_zh"),
}
"""Base -> folder, which of its questions, and the field with the gold documents. MuSiQue is not among them."""


def given(what: str | None, limit: int) -> argparse.Namespace:
    """The workspace, the folder of the question sets, and how many questions of each are asked, as they were given."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=limit, help="questions of each set, at most")
    return parser.parse_args()


def sets_there(
    wb: Workbench, workspace: Path, data: Path, limit: int
) -> Iterator[tuple[str, list[dict[str, Any]], str]]:
    """Base, questions and the field with their gold documents of each set that is there; the others are told."""
    for name, (folder, where, gold) in {**SETS, TEXTS: (TEXTS, {}, "gold")}.items():
        path = (workspace if name == TEXTS else data) / folder / "questions.jsonl"
        if name in wb.knowledge.names() and path.exists():
            yield name, list(choose(read_rows(path, "id", "question"), where, limit)), gold
        else:
            sys.stderr.write(f"skipped: {name}\n")


def ranking(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The documents, best first."""
    return distinct(str(result["metadata"].get("doc_id") or "") for result in results)


def worth(documents: Sequence[str], gold: frozenset[str]) -> tuple[float, float, float]:
    """R@1, R@5 and all@5.

    >>> worth(["a", "c", "b"], frozenset("ab"))
    (0.5, 1.0, 1.0)
    """
    five = gold & set(documents[:5])
    return len(gold & set(documents[:1])) / len(gold), len(five) / len(gold), float(five == gold)


def in_percent(values: np.ndarray) -> str:
    """The three figures of a set, side by side."""
    return f"{values[0]:5.1f} /{values[1]:5.1f} /{values[2]:5.1f} "
