"""The document of a recorded run as blocks, for a terminal, a page and other programs; its words in two languages."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.records import proposals
from workbench.state import Data
from workbench.views.blocks import Block, Column, Lines, clipped, one_line
from workbench.views.labels import labels_for

_WORDS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))


def words(language: str) -> Mapping[str, str]:
    """Return the words of a recorded run in a language."""
    return _WORDS["zh" if language.startswith("zh") else "en"]


def outline(document: Data, parts: Collection[str]) -> Iterator[Block]:
    """Yield the head of a run, what it asks, its effects (``plan``) and its state (``answer``)."""
    labels = labels_for(document["message"])
    text = words(labels.language)
    if "head" in parts:
        line = [
            (document["run_id"], "code"),
            (f" · {document['graph']} · ", "dim"),
            (labels.status(document["status"]), "status"),
        ]
        yield Lines([(document["message"], "strong"), line])
        if document["error"]:
            yield Lines([(document["error"], "strong")], mark="failed")
    if document["review"] and "review" in parts:
        review = document["review"]
        asked = text["asks"].format(at=proposals.point(review))
        yield Lines([proposals.description(review), *_lines(proposals.in_force(review))], heading=asked)
    if "plan" in parts:
        heads = [Column(text["at"], whole=True), *(Column(text[name]) for name in ("kind", "source", "value"))]
        rows = [[e["at"], e["kind"], text[e["source"]], _short(e["value"])] for e in document["effects"]]
        yield clipped(text["effects"], [*heads], rows)
    if "answer" in parts:
        yield Lines(_lines(document["state"]), heading=text["state"])


def _lines(value: Any) -> list[str]:
    return [f"{name}: {_short(inner)}" for name, inner in value.items()] if isinstance(value, dict) else [_short(value)]


def _short(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
