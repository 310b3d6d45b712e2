"""Grafts, what-ifs and leave-one-outs to look at: the form of a graft in the bench, and results as blocks to read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.plans import canonical_json
from workbench.views.comparison import LETTERS, change, letter
from workbench.views.labels import Labels, labels_for, milliseconds
from workbench.views.outline import Block, Column, Lines, Table, clipped, columns
from workbench.views.page import Data, Markup, button, code, cut, el, glyph, table

if TYPE_CHECKING:
    from workbench.futures.graft import Graft
    from workbench.futures.what_if import LeaveOneOut, WhatIf


Taken = tuple[int, str]
"""The number of a run in the comparison, and a step of it."""
MOST_CONFLICTS, MOST_OFFERED = 20, 200


def offered(document: Data, base: int) -> list[Taken]:
    """The steps that the other runs have otherwise than this one."""
    runs = range(len(document["runs"]))
    return [
        (n, row["step_id"])
        for row in document["steps"]
        if not row["same"]
        for n in runs
        if n != base and row["sides"][n] is not None and _kind(row, n, base) != "same"
    ]


def _kind(row: Mapping[str, Any], n: int, base: int) -> str:
    """What taking the step of one run does to the base's plan."""
    if row["sides"][base] is None:
        return "added"
    return "same" if _as_first(row, n) and _as_first(row, base) else "changed"


def _as_first(row: Mapping[str, Any], n: int) -> bool:
    return n == 0 or row["changes"][n - 1] == "same"


def panel(
    document: Data,
    labels: Labels,
    *,
    base: int,
    taken: Collection[Taken],
    forecast: Mapping[str, Any] | None = None,
    working: bool = False,
    said: str = "",
) -> Markup:
    """What a graft is put together from.

    Args:
        document: of the comparison.
        labels: the words.
        base: number of the run whose plan the steps join.
        taken: the steps that are chosen.
        forecast: what the graft will do (``fork.Forecast``), when that is known.
        working: it is being made.
        said: what stands in the way, in words.
    """
    bases = [
        button(
            [letter(n), " ", code(run["run_id"])],
            "base",
            key=str(n),
            cls="wb-switch wb-round",
            role="radio",
            aria_checked=n == base,
        )
        for n, run in enumerate(document["runs"])
    ]
    known = offered(document, base)
    rows = {row["step_id"]: row for row in document["steps"]}
    steps = [_offer(rows[step_id], n, base, (n, step_id) in taken, labels) for n, step_id in known[:MOST_OFFERED]]
    choice = el("div.wb-graft-steps", steps) if steps else el("div.wb-dim", labels("graft_none"))
    return el(
        "section.wb-part.wb-graft",
        el("div.wb-dim", labels("graft_told")),
        el(
            "div.wb-bar",
            el("b", labels("graft_base")),
            el("span.wb-dim", labels("graft_base_told")),
            bases,
            role="radiogroup",
            aria_label=labels("graft_base"),
        ),
        el("div.wb-graft-take", el("b", labels("graft_take"))),
        choice,
        el("div.wb-alert", said, role="alert") if said else None,
        _go(document, labels, base, [t for t in known if t in taken], forecast, working),
        aria_label=labels("graft"),
    )


def _offer(row: Mapping[str, Any], n: int, base: int, taken: bool, labels: Labels) -> Markup:
    side = row["sides"][n]
    told = [letter(n), " ", el("b", row["step_id"]), " ", code(side["tool"]), " ", change(_kind(row, n, base), labels)]
    found = el("span.wb-dim", " ", labels("n_found", n=side["found"]))
    key = f"{n}:{row['step_id']}"
    return button([told, found], "take", key=key, cls="wb-switch", role="checkbox", aria_checked=taken)


def _go(
    document: Data,
    labels: Labels,
    base: int,
    taken: Sequence[Taken],
    forecast: Mapping[str, Any] | None,
    working: bool,
) -> Markup:
    if not taken:
        return el("div.wb-dim", labels("graft_nothing"))
    others = labels("comma").join(dict.fromkeys(LETTERS[n] for n, _ in taken))
    many = labels("steps", n=len(taken))
    word = labels("graft_working") if working else labels("graft_now", base=LETTERS[base], steps=many, others=others)
    go = button(word, "graft", cls="wb-primary", disabled=working)
    return el("div.wb-bar", go, el("span.wb-dim", _foreseen(forecast, labels)) if forecast else None)


def _foreseen(forecast: Mapping[str, Any], labels: Labels) -> str:
    again = [step["step_id"] for step in forecast["steps"] if step["runs"]]
    if not again:
        return labels("graft_foreseen_none")
    p50, p90 = (milliseconds(forecast["seconds"][name] * 1000) for name in ("p50", "p90"))
    told = labels(
        "graft_foreseen", again=len(again), taped=sum(step["replayed"] for step in forecast["steps"]), p50=p50, p90=p90
    )
    return f"{told} · {labels('graft_again', steps=cut(labels('comma').join(again), 200))}"


def conflicts_table(document: Data, message: str, found: Sequence[Mapping[str, Any]], labels: Labels) -> Markup:
    """What branches contradict one another in, with each run's value, and the buttons that let one of them hold."""
    ids = [run["run_id"] for run in document["runs"]]
    involved = [n for n, run_id in enumerate(ids) if any(run_id in conflict["values"] for conflict in found)]
    heads = [el("th", labels("conflict")), el("th", labels("where")), [el("th", letter(n)) for n in involved]]
    rows = [
        el(
            "tr",
            el("td", labels(f"conflict_{conflict['kind']}")),
            el("td", cut(str(conflict["where"]))),
            [el("td", _said(conflict["values"].get(ids[n], "–"))) for n in involved],
        )
        for conflict in found[:MOST_CONFLICTS]
    ]
    left = len(found) - len(rows)
    choices = [
        button([letter(n), " ", word], "prefer", key=ids[n], name=word)
        for n in involved
        for word in [labels("graft_prefer", run=LETTERS[n])]
    ]
    told = labels("graft_needs_choice") if found else message
    return el(
        "div.wb-part.wb-graft-conflicts",
        el("div.wb-band.wb-person", glyph("warning", labels, said=False), el("span.wb-strong", told), role="alert"),
        [table(heads, rows), el("div.wb-dim", labels("and_more", n=left)) if left > 0 else None] if found else None,
        el("div.wb-bar", choices, el("span.wb-dim", labels("graft_instead"))) if choices else None,
    )


def _said(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True), 400)


def made(run_id: str, labels: Labels) -> Markup:
    """The new run, to be opened."""
    told = [glyph("done", labels, said=False), " ", labels("graft_made", run=run_id)]
    opening = button(labels("open_run"), "open", key=run_id, name=labels("open_run_told", run=run_id))
    return el("div.wb-part.wb-bar.wb-graft-made", el("span.wb-strong", told), opening, role="status")


_LONGEST = 160


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
    heads = columns(labels, "step:code", "from_step:code", "from_run:code", "how")
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
    heads = columns(labels, "conflict", "where", "run:code", "says", "what_became")
    return Table(labels("conflicts"), heads, rows)


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
    return Table(labels("provenance"), columns(labels, ":number", "source", "from_run:code"), rows)


def what_if_blocks(found: WhatIf) -> list[Block]:
    """A row a reflect point: what going on gains and costs."""
    labels = labels_for(found.run.message)
    gains = ("new_pieces", "displaced", "probability", "recall")
    costs = ("pay", "calls", "worth", "live")
    heads = columns(labels, "pass", "way_taken", *gains, *costs)
    rows = tuple(_what_if_row(point, labels) for point in found.points)
    ended = [p for p in found.points if p["gain"] is None]
    notes = [labels("nothing_more", n=point["iteration"]) for point in ended]
    notes.append(labels("what_if_note") if rows else labels("no_reflect_points"))
    return [Table(labels("what_if"), heads, rows, notes=tuple(notes))]


def _what_if_row(point: Mapping[str, Any], labels: Labels) -> tuple[str, ...]:
    head = (str(point["iteration"]), labels(f"way_{point['recorded']}"))
    if point["gain"] is None:
        return (*head, *["–"] * 8)
    gain, cost, value = point["gain"], point["cost"], point["value"]
    told = {**gain, "displaced": len(gain["left"])}
    gains = (_signed(told[name]) for name in ("pieces", "displaced", "probability", "recall"))
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
    paid = columns(labels, "sentence", "sources", "rests_on:code", "spared:code")
    removals = tuple(
        (r["left_out"], r["title"], *(str(len(r[name])) for name in ("gone", "changed", "cited_otherwise", "added")))
        for r in found.removals
    )
    counts = ("gone:number", "otherwise:number", "cited_otherwise:number", "newly_said:number")
    return [
        Table(labels("who_paid"), paid, sentences, notes=(labels("single_removals"),)),
        Table(labels("leave_one_out"), columns(labels, "left_out:code", "title", *counts), removals),
    ]


def forecast_blocks(forecast: Mapping[str, Any], labels: Labels) -> list[Block]:
    """What a fork will take: which steps run again, and how long such calls took in the past."""
    rows = [
        (
            step["step_id"],
            step["tool"],
            labels("steps_made" if step["runs"] else "steps_taped" if step["replayed"] else "steps_asleep"),
            *(milliseconds(step[name] * 1000) if step["runs"] else "" for name in ("p50_s", "p90_s")),
        )
        for step in forecast["steps"]
    ]
    heads = (*columns(labels, "step", "tool:code", "status"), Column("P50", "number"), Column("P90", "number"))
    p50, p90 = (milliseconds(forecast["seconds"][name] * 1000) for name in ("p50", "p90"))
    note = labels("forecast_basis", n=forecast["basis"])
    title = labels("forecast", p50=p50, p90=p90)
    return [clipped(title, heads, rows, notes=[note])]
