"""The form of a graft in the bench, and the forecast of a fork."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.views.comparison import LETTERS, change
from workbench.views.labels import Labels, milliseconds
from workbench.views.outline import Block, Column, clipped, columns
from workbench.views.page import Data, Markup, button, code, el, glyph

Taken = tuple[int, str]
"""The number of a run in the comparison, and a step of it."""
MOST_OFFERED = 200


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
    working: bool = False,
) -> Markup:
    """Return the form in which a graft is put together.

    Args:
        document: of the comparison.
        labels: the words.
        base: number of the run whose plan the steps join.
        taken: the steps that are chosen.
        working: it is being made.
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
        _go(labels, base, [t for t in offers if t in taken], working),
        aria_label=labels("graft"),
    )


def _offer(row: Mapping[str, Any], n: int, base: int, taken: bool, labels: Labels) -> Markup:
    side = row["sides"][n]
    parts = [LETTERS[n], el("b", row["step_id"]), code(side["tool"]), change(_kind(row, n, base), labels)]
    found = el("span.wb-dim", labels("n_found", n=side["found"]))
    key = f"{n}:{row['step_id']}"
    words = [[part, " "] for part in (*parts, found)]
    return button(words, "take", key=key, cls="wb-switch", role="checkbox", aria_checked=taken)


def _go(labels: Labels, base: int, taken: Sequence[Taken], working: bool) -> Markup:
    if not taken:
        return el("div.wb-dim", labels("graft_nothing"))
    others = labels("comma").join(dict.fromkeys(LETTERS[n] for n, _ in taken))
    many = labels("steps", n=len(taken))
    word = labels("graft_working") if working else labels("graft_now", base=LETTERS[base], steps=many, others=others)
    return el("div.wb-bar", button(word, "graft", cls="wb-primary", disabled=working))


def made(run_id: str, labels: Labels) -> Markup:
    """Return the new run, to be opened."""
    text = [glyph("done", labels, said=False), " ", labels("graft_made", run=run_id)]
    opening = button(labels("open_run"), "open", key=run_id)
    return el("div.wb-part.wb-bar.wb-graft-made", el("span.wb-strong", text), opening, role="status")


def forecast_blocks(forecast: Mapping[str, Any], labels: Labels) -> list[Block]:
    """Return what a fork will take: which steps run again, and how long such calls took in the past."""
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
