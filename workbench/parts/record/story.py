"""The document of a recorded run as blocks, for a terminal, a page and other programs."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.parts.record.looking import as_text, state_lines
from workbench.state import Data
from workbench.views.blocks import Block, Column, Lines, clipped
from workbench.views.labels import Labels
from workbench.views.markup import cut


def _effects(document: Data, labels: Labels) -> Iterator[Block]:
    heads = [
        Column(labels(f"record_{name}"), whole=name == "at")
        for name in ("at", "kind", "source", "value")
    ]
    rows = [
        [e["at"], e["kind"], labels(f"record_{e['source']}"), as_text(e["value"])]
        for e in document["effects"]
    ]
    shares = {name: f"{100 * share:.0f}" for name, share in (document["on_tape"] or {}).items()}
    yield clipped(
        labels("record_effects"),
        heads,
        rows,
        notes=[labels("record_on_tape", **shares)] if shares else [],
    )


def _state(document: Data, labels: Labels) -> Iterator[Block]:
    yield Lines(
        [cut(line, 4000) for line in state_lines(document["state"])],
        heading=labels("record_state"),
    )


PARTS = {"plan": _effects, "answer": _state}
"""What a recorded run shows in place of a plan and an answer."""
