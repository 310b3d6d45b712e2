"""Grafts and what-ifs to look at: the form of a graft in the bench, and results as blocks to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.views.comparison import LETTERS, change
from workbench.views.labels import Labels, labels_for
from workbench.views.outline import Block, Table, clipped, columns
from workbench.views.page import Data, Markup, button, code, cut, el, glyph
from workbench.views.plan_graph import plan_forecast
from workbench.views.render import page_html

if TYPE_CHECKING:
    from workbench.futures.graft import Graft


Taken = tuple[int, str]
"""The number of a run in the comparison, and a step of it."""
MOST_CONFLICTS, MOST_OFFERED = 20, 200


def offered(document: Data, base: int) -> list[Taken]:
    """Return the steps that the other runs have otherwise than this one."""
    places = ((n, row) for row in document["steps"] for n in range(len(document["runs"])))
    return [(n, row["step_id"]) for n, row in places if row["sides"][n] and _kind(row, n, base) != "same"]


def _kind(row: Mapping[str, Any], n: int, base: int) -> str:
    """What taking the step of one run does to the base's plan."""
    if row["sides"][base] is None:
        return "added"
    as_first = {0, *(other for other, kind in enumerate(row["changes"], 1) if kind == "same")}
    return "same" if n == base or {n, base} <= as_first else "changed"


def panel(
    document: Data,
    labels: Labels,
    *,
    base: int,
    taken: Collection[Taken],
    forecast: Mapping[str, Any] | None = None,
    working: bool = False,
    fault: str = "",
) -> Markup:
    """Return the form in which a graft is put together.

    Args:
        document: of the comparison.
        labels: the words.
        base: number of the run whose plan the steps join.
        taken: the steps that are chosen.
        forecast: what the graft will do (``fork.Forecast``), when that is known.
        working: it is being made.
        fault: what stands in the way, in words.
    """
    bases = [
        button(f"{LETTERS[n]} {run['run_id']}", "base", key=str(n), cls="wb-switch wb-round", role="radio",
               aria_checked=n == base)
        for n, run in enumerate(document["runs"])
    ]  # fmt: skip
    offers = offered(document, base)
    rows = {row["step_id"]: row for row in document["steps"]}
    steps = [_offer(rows[step_id], n, base, (n, step_id) in taken, labels) for n, step_id in offers[:MOST_OFFERED]]
    title = el("b", labels("graft_base"))
    hint = el("span.wb-dim", labels("graft_base_told"))
    return el(
        "section.wb-part.wb-graft",
        el("div.wb-dim", labels("graft_told")),
        el("div.wb-bar", title, hint, bases, role="radiogroup", aria_label=labels("graft_base")),
        el("div", el("b", labels("graft_take"))),
        el("div.wb-graft-steps", steps) if steps else el("div.wb-dim", labels("graft_none")),
        el("div.wb-alert", fault, role="alert") if fault else None,
        _go(labels, base, [t for t in offers if t in taken], forecast, working),
        aria_label=labels("graft"),
    )


def _offer(row: Mapping[str, Any], n: int, base: int, taken: bool, labels: Labels) -> Markup:
    side = row["sides"][n]
    parts = [LETTERS[n], el("b", row["step_id"]), code(side["tool"]), change(_kind(row, n, base), labels)]
    found = el("span.wb-dim", labels("n_found", n=side["found"]))
    key = f"{n}:{row['step_id']}"
    words = [[part, " "] for part in (*parts, found)]
    return button(words, "take", key=key, cls="wb-switch", role="checkbox", aria_checked=taken)


def _go(labels: Labels, base: int, taken: Sequence[Taken], forecast: Mapping[str, Any] | None, working: bool) -> Markup:
    if not taken:
        return el("div.wb-dim", labels("graft_nothing"))
    others = labels("comma").join(dict.fromkeys(LETTERS[n] for n, _ in taken))
    many = labels("steps", n=len(taken))
    word = labels("graft_working") if working else labels("graft_now", base=LETTERS[base], steps=many, others=others)
    go = button(word, "graft", cls="wb-primary", disabled=working)
    return el("div.wb-bar", go, plan_forecast(forecast, True, labels) if forecast else None)


def conflicts_form(document: Data, message: str, found: Sequence[Mapping[str, Any]], labels: Labels) -> Markup:
    """Return what branches contradict one another in, and the buttons that let one of them hold."""
    held = {run_id for conflict in found for run_id in conflict["values"]}
    choices = [
        button(labels("graft_prefer", run=letter), "prefer", key=run["run_id"])
        for letter, run in zip(LETTERS, document["runs"], strict=False)
        if run["run_id"] in held
    ]
    text = labels("graft_needs_choice") if found else message
    table = Markup(page_html(conflicts_blocks(found, labels), labels, "wb-worked"))
    return el(
        "div.wb-part.wb-graft-conflicts",
        el("div.wb-band.wb-person", glyph("warning", labels, said=False), el("span.wb-strong", text), role="alert"),
        table,
        el("div.wb-bar", choices, el("span.wb-dim", labels("graft_instead"))) if choices else None,
    )


def made(run_id: str, labels: Labels) -> Markup:
    """Return the new run, to be opened."""
    text = [glyph("done", labels, said=False), " ", labels("graft_made", run=run_id)]
    opening = button(labels("open_run"), "open", key=run_id)
    return el("div.wb-part.wb-bar.wb-graft-made", el("span.wb-strong", text), opening, role="status")


def graft_blocks(graft: Graft) -> list[Block]:
    """Return where the steps come from, what the branches contradict one another in, where the evidence comes from."""
    labels = labels_for(graft.message)
    anew, steps = set(graft.anew), graft.steps
    rows = tuple(
        (i, s["step_id"], s["run_id"], labels("made_anew" if i in anew else "from_tape")) for i, s in steps.items()
    )
    heads = columns(labels, "step:code", "from_step:code", "from_run:code", "how")
    first = Table(labels("graft_of", base=graft.base), heads, rows)
    return [first, *conflicts_blocks(graft.conflicts, labels), _provenance(graft, labels)]


def conflicts_blocks(conflicts: Sequence[Mapping[str, Any]], labels: Labels) -> list[Block]:
    """Return what branches contradict one another in: a row per conflict and run."""
    rows = [
        (labels(f"conflict_{c['kind']}"), c["where"], run_id, cut(value), labels(f"conflict_is_{c['how']}"))
        for c in conflicts[:MOST_CONFLICTS]
        for run_id, value in c["values"].items()
    ]
    left = len(conflicts) - MOST_CONFLICTS
    notes = [labels("and_more", n=left)] if left > 0 else []
    heads = columns(labels, "conflict", "where", "run:code", "says", "what_became")
    return [clipped(labels("conflicts"), heads, rows, notes=notes)] if rows else []


def _provenance(graft: Graft, labels: Labels) -> Block:
    """Where the cited pieces come from; all of them are in ``provenance()``."""
    cited = {citation["n"] for citation in graft.citations}
    rows = tuple(
        (f"[{row['n']}]", row["title"] or row["result_id"], f"{row['from_run']} {row['from_step']}")
        for row in graft.provenance()
        if row["n"] in cited
    )
    return Table(labels("provenance"), columns(labels, ":number", "source", "from_run:code"), rows)


def what_if_blocks(points: Iterable[Mapping[str, Any]], message: str) -> list[Block]:
    """Return a row per reflect point: what going on gains and costs."""
    labels, rows, notes = labels_for(message), [], []
    for point in points:
        row = [str(point["iteration"]), labels(f"way_{point['recorded']}")]
        if gain := point["gain"]:
            cost, live = point["cost"], [*point["stop"]["live"], *point["go_on"]["live"]]
            tokens = [labels("beside_saved_tokens", n=f"{cost['tokens']:,}")] if cost["tokens"] else []
            gains = (gain["pieces"], len(gain["left"]), gain["probability"], gain["recall"])
            row += [_signed(value) for value in gains]
            row += [labels("comma").join([f"{cost['seconds']:g} s", *tokens]), str(cost["calls"]), ", ".join(live)]
        else:
            row += ["–"] * 7
            notes.append(labels("nothing_more", n=point["iteration"]))
        rows.append(row)
    names = ("pass", "way_taken", "new_pieces", "displaced", "probability", "recall", "pay", "calls", "live")
    notes.append(labels("what_if_note" if rows else "no_reflect_points"))
    return [clipped(labels("what_if"), columns(labels, *names), rows, notes=notes)]


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+g}"
