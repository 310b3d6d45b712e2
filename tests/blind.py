"""The blind questions and their corpora, read without the workbench: what its own reading is measured against."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from pathlib import Path
from typing import Any

BLIND = Path(__file__).parents[1] / "data" / "blind"
SETS = ("films", "lab", "tool", "company")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def questions(name: str) -> list[dict[str, Any]]:
    return rows(BLIND / name / "questions.jsonl")


def vocabulary(name: str) -> dict[str, Any]:
    return tomllib.loads((BLIND / name / "vocabulary.toml").read_text(encoding="utf-8"))


def corpus(name: str) -> dict[str, tuple[str, str]]:
    """Title and text by document: a record by its id, a file by its path."""
    root = BLIND / name / "corpus"
    if name == "films":
        return {row["id"]: _record(row, row["title"]) for row in rows(BLIND.parent / "films.jsonl")}
    found = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if path.suffix == ".jsonl":
            found |= {row["id"]: _record(row, row["标题"]) for row in rows(path)}
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                found |= {row["编号"]: _record(row, row["姓名"]) for row in csv.DictReader(file)}
        else:
            text = path.read_text(encoding="utf-8")
            title = re.search(r'(?m)^(?:title|标题): "?(.+?)"?$|^# (.+)$|^(.+)\n[=]{3,}$', text)
            found[path.relative_to(root).as_posix()] = next(filter(None, title.groups())) if title else path.stem, text
    return found


def _record(row: dict[str, Any], title: str) -> tuple[str, str]:
    return title, "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}." for name, value in row.items())
