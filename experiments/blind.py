"""The blind questions and their corpora, read without the workbench: what its own reading is measured against."""

import json
from pathlib import Path
from typing import Any

BLIND = Path(__file__).parents[1] / "data" / "blind"
SETS = ("films", "lab", "tool", "company")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def questions(name: str) -> list[dict[str, Any]]:
    return rows(BLIND / name / "questions.jsonl")
