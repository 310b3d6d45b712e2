"""What is made of runs as something to read: blocks in the language of the question, for text and HTML alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from workbench.labels import Labels, labels_for
from workbench.plans import canonical_json
from workbench.show import CLASSES
from workbench.show.outline import Block, Column, Lines, Table
from workbench.show.web import block_html

if TYPE_CHECKING:
    from workbench.futures.graft import Graft
    from workbench.futures.leave_one_out import LeaveOneOut
    from workbench.futures.what_if import WhatIf

_LONGEST = 160


def page(blocks: Iterable[Block], message: str) -> str:
    """Blocks as static HTML, in the frame that runs have."""
    body = "\n".join(block_html(block) for block in blocks)
    return f'<div class="{escape(CLASSES)}" lang="{labels_for(message).html_lang}">\n{body}\n</div>'


def brief(value: Any) -> str:
    """A value in a cell."""
    text = " ".join((value if isinstance(value, str) else canonical_json(value)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def graft_blocks(graft: Graft) -> list[Block]:
    """Where the steps come from, what the branches contradict one another in, where the evidence comes from."""
    labels = labels_for(graft.message)
    anew, steps = set(graft.anew), graft.steps
    rows = tuple(
        (i, s["step_id"], s["run_id"], labels("made_anew" if i in anew else "from_tape")) for i, s in steps.items()
    )
    heads = (*(Column(labels(n), "code") for n in ("step", "from_step", "from_run")), Column(labels("how")))
    return [
        Table(labels("graft_of", base=graft.base), heads, rows),
        conflicts_block(graft.conflicts, labels),
        _provenance(graft, labels),
    ]


def conflicts_block(conflicts: Iterable[Mapping[str, Any]], labels: Labels) -> Block:
    """What branches contradict one another in: a row a run."""
    rows = tuple(
        (labels(f"conflict_{c['kind']}"), c["where"], run_id, brief(value), labels(f"conflict_is_{c['how']}"))
        for c in conflicts
        for run_id, value in c["values"].items()
    )
    if not rows:
        return Lines((((labels("no_conflicts"), ""),),))
    columns = (Column(labels("conflict")), Column(labels("where")), Column(labels("run"), "code"))
    return Table(labels("conflicts"), (*columns, Column(labels("says")), Column(labels("what_became"))), rows)


def _provenance(graft: Graft, labels: Labels) -> Block:
    """Where the cited pieces come from; all of them are in ``provenance()``."""
    cited = {citation["n"] for citation in graft.citations}
    found: dict[int, list[Mapping[str, Any]]] = {}
    for row in graft.provenance():
        if row["n"] in cited:
            found.setdefault(row["n"], []).append(row)
    rows = tuple(
        (f"[{n}]", of[0]["title"] or of[0]["result_id"], "\n".join(f"{r['from_run']} {r['from_step']}" for r in of))
        for n, of in sorted(found.items())
    )
    columns = (Column("", "number"), Column(labels("source")), Column(labels("from_run"), "code"))
    return Table(labels("provenance"), columns, rows)


def what_if_blocks(found: WhatIf) -> list[Block]:
    """A row a reflect point: what going on gains and costs."""
    labels = labels_for(found.run.message)
    heads = ("pass", "way_taken", "new_pieces", "top_score", "coverage", "recall", "pay", "calls", "worth", "live")
    rows = tuple(_what_if_row(point, labels) for point in found.points)
    ended = [p for p in found.points if p["gain"] is None]
    notes = [labels("nothing_more", n=point["iteration"]) for point in ended]
    notes.append(labels("what_if_note") if rows else labels("no_reflect_points"))
    return [Table(labels("what_if"), tuple(Column(labels(name)) for name in heads), rows, notes=tuple(notes))]


def _what_if_row(point: Mapping[str, Any], labels: Labels) -> tuple[str, ...]:
    head = (str(point["iteration"]), labels(f"way_{point['recorded']}"))
    if point["gain"] is None:
        return (*head, *["–"] * 8)
    gain, cost, value = point["gain"], point["cost"], point["value"]
    gains = (_signed(gain[name]) for name in ("pieces", "top_score", "coverage", "recall"))
    tokens = [labels("beside_saved_tokens", n=f"{cost['tokens']:,}")] if cost["tokens"] else []
    seconds = labels("comma").join([f"{cost['seconds']:g} s", *tokens])
    worth = "" if value["pieces_per_s"] is None else labels("per_second", n=f"{value['pieces_per_s']:g}")
    live = [*point["stop"]["live"], *point["go_on"]["live"]]
    return (*head, *gains, seconds, str(cost["calls"]), worth, ", ".join(live))


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+g}"


def leave_one_out_blocks(found: LeaveOneOut) -> list[Block]:
    """Which step paid for which sentence, then what each removal does."""
    labels = labels_for(found.run.message)
    sentences = tuple(
        (
            s["sentence"],
            "\n".join(f"[{c['n']}] {c['title'] or c['result_id']}" for c in s["cites"]),
            "\n".join(s["rests_on"]),
            "\n".join(s["spared"]),
        )
        for s in found.sentences
    )
    heads = (
        *(Column(labels("sentence")), Column(labels("sources"))),
        *(Column(labels("rests_on"), "code"), Column(labels("spared"), "code")),
    )
    removals = tuple(
        (r["left_out"], r["title"], *(str(len(r[name])) for name in ("gone", "changed", "cited_otherwise", "added")))
        for r in found.removals
    )
    counts = tuple(Column(labels(name), "number") for name in ("gone", "otherwise", "cited_otherwise", "newly_said"))
    left_out = (Column(labels("left_out"), "code"), Column(labels("title")))
    return [
        Table(labels("who_paid"), heads, sentences, notes=(labels("single_removals"),)),
        Table(labels("leave_one_out"), (*left_out, *counts), removals),
    ]
