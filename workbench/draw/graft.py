"""The panel in which steps of other runs are chosen for a new one, and what has to be chosen when they contradict."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.draw.changes import LETTERS, change, cut, letter
from workbench.draw.page import Markup, button, code, el, glyph
from workbench.labels import Labels, milliseconds

Document = Mapping[str, Any]
Taken = tuple[int, str]
"""The number of a run in the comparison, and a step of it."""
MOST_CONFLICTS, MOST_OFFERED = 20, 200


def offered(document: Document, base: int) -> list[Taken]:
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
    document: Document,
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
        button([letter(n), " ", code(run["run_id"])], "base", key=str(n), cls="wb-switch wb-round", role="radio",
               aria_checked=str(n == base).lower())
        for n, run in enumerate(document["runs"])
    ]  # fmt: skip
    known = offered(document, base)
    rows = {row["step_id"]: row for row in document["steps"]}
    steps = [_offer(rows[step_id], n, base, (n, step_id) in taken, labels) for n, step_id in known[:MOST_OFFERED]]
    choice = el("div", steps, cls="wb-graft-steps") if steps else el("div", labels("graft_none"), cls="wb-dim")
    return el(
        "section",
        el("div", labels("graft_told"), cls="wb-dim"),
        el("div", el("b", labels("graft_base")), el("span", labels("graft_base_told"), cls="wb-dim"), bases,
           cls="wb-bar", role="radiogroup", aria_label=labels("graft_base")),
        el("div", el("b", labels("graft_take")), cls="wb-graft-take"),
        choice,
        el("div", said, cls="wb-alert", role="alert") if said else None,
        _go(document, labels, base, [t for t in known if t in taken], forecast, working),
        cls="wb-part wb-graft",
        aria_label=labels("graft"),
    )  # fmt: skip


def _offer(row: Mapping[str, Any], n: int, base: int, taken: bool, labels: Labels) -> Markup:
    side = row["sides"][n]
    told = [letter(n), " ", el("b", row["step_id"]), " ", code(side["tool"]), " ", change(_kind(row, n, base), labels)]
    found = el("span", " ", labels("n_found", n=side["found"]), cls="wb-dim")
    key = f"{n}:{row['step_id']}"
    return button([told, found], "take", key=key, cls="wb-switch", role="checkbox", aria_checked=str(taken).lower())


def _go(
    document: Document,
    labels: Labels,
    base: int,
    taken: Sequence[Taken],
    forecast: Mapping[str, Any] | None,
    working: bool,
) -> Markup:
    if not taken:
        return el("div", labels("graft_nothing"), cls="wb-dim")
    others = labels("comma").join(dict.fromkeys(LETTERS[n] for n, _ in taken))
    many = labels("steps", n=len(taken))
    word = labels("graft_working") if working else labels("graft_now", base=LETTERS[base], steps=many, others=others)
    go = button(word, "graft", cls="wb-primary", disabled=working)
    return el("div", go, el("span", _foreseen(forecast, labels), cls="wb-dim") if forecast else None, cls="wb-bar")


def _foreseen(forecast: Mapping[str, Any], labels: Labels) -> str:
    again = [step["step_id"] for step in forecast["steps"] if step["runs"]]
    if not again:
        return labels("graft_foreseen_none")
    p50, p90 = (milliseconds(forecast["seconds"][name] * 1000) for name in ("p50", "p90"))
    told = labels(
        "graft_foreseen", again=len(again), taped=sum(step["replayed"] for step in forecast["steps"]), p50=p50, p90=p90
    )
    return f"{told} · {labels('graft_again', steps=cut(labels('comma').join(again), 200))}"


def conflicts_table(document: Document, message: str, found: Sequence[Mapping[str, Any]], labels: Labels) -> Markup:
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
    table = el("table", el("thead", el("tr", heads)), el("tbody", rows), cls="wb-table")
    choices = [
        button([letter(n), " ", labels("graft_prefer", run=LETTERS[n])], "prefer", key=ids[n], name=_named(n, labels))
        for n in involved
    ]
    told = labels("graft_needs_choice") if found else message
    return el(
        "div",
        el("div", glyph("warning", labels, said=False), el("span", told, cls="wb-strong"), cls="wb-band wb-person",
           role="alert"),
        [table, el("div", labels("and_more", n=left), cls="wb-dim") if left > 0 else None] if found else None,
        el("div", choices, el("span", labels("graft_instead"), cls="wb-dim"), cls="wb-bar") if choices else None,
        cls="wb-part wb-graft-conflicts",
    )  # fmt: skip


def _named(n: int, labels: Labels) -> str:
    return labels("graft_prefer", run=LETTERS[n])


def _said(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True), 400)


def made(run_id: str, labels: Labels) -> Markup:
    """The new run, to be opened."""
    told = [glyph("done", labels, said=False), " ", labels("graft_made", run=run_id)]
    opening = button(labels("open_run"), "open", key=run_id, name=labels("open_run_told", run=run_id))
    return el("div", el("span", told, cls="wb-strong"), opening, cls="wb-part wb-bar wb-graft-made", role="status")
