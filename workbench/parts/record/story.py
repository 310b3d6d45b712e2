"""The document of a recorded run as blocks, for a terminal, a page and other programs; its words in two languages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from workbench.parts.record.looking import as_text, state_lines
from workbench.records import proposals
from workbench.state import Data
from workbench.views.blocks import Block, Column, Lines, clipped
from workbench.views.labels import Labels
from workbench.views.page import cut

LONGEST = 4000
"""Characters of a field that are shown."""
_WORDS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))


def words(language: str) -> Mapping[str, str]:
    """Return the words of a recorded run in a language."""
    return _WORDS["zh" if language.startswith("zh") else "en"]


def _review(document: Data, labels: Labels) -> Iterator[Block]:
    if review := document["review"]:
        asked = words(labels.language)["asks"].format(at=proposals.point(review))
        yield Lines([proposals.description(review), *state_lines(proposals.in_force(review))], heading=asked)


def _effects(document: Data, labels: Labels) -> Iterator[Block]:
    text = words(labels.language)
    heads = [Column(text["at"], whole=True), *(Column(text[name]) for name in ("kind", "source", "value"))]
    rows = [[e["at"], e["kind"], text[e["source"]], as_text(e["value"])] for e in document["effects"]]
    shares = document["on_tape"]
    yield clipped(text["effects"], heads, rows, notes=[text["on_tape"].format(**shares)] if shares else [])


def _state(document: Data, labels: Labels) -> Iterator[Block]:
    yield Lines(
        [cut(line, LONGEST) for line in state_lines(document["state"])], heading=words(labels.language)["state"]
    )


PARTS = {"review": _review, "plan": _effects, "answer": _state}
"""What a recorded run shows in place of a plan and an answer."""
