"""Grafts and what-ifs to look at: the form of a graft in the bench, and results as blocks to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from workbench.views.comparison import LETTERS, change, lettered
from workbench.views.labels import Labels, labels_for, milliseconds
from workbench.views.outline import Block, Column, Table, clipped, columns
from workbench.views.page import Data, cut, draw
from workbench.views.plan_graph import plan_forecast
from workbench.views.render import page_html

if TYPE_CHECKING:
    from workbench.futures.graft import Graft


Taken = tuple[int, str]
"""The number of a run in the comparison, and a step of it."""
MOST_CONFLICTS, MOST_OFFERED = 20, 200


def offered(document: Data) -> list[Taken]:
    """Return the steps that the other runs have otherwise than the first one."""
    numbers = range(1, len(document["runs"]))
    found = ((n, row) for n in numbers for row in document["steps"] if row["sides"][n])
    return [(n, row["step_id"]) for n, row in found if row["changes"][n - 1] != "same"]


def panel(
    document: Data,
    labels: Labels,
    *,
    taken: Collection[Taken],
    forecast: Mapping[str, Any] | None = None,
    working: bool = False,
    fault: str = "",
) -> Markup:
    """Return the form in which a graft onto the first run is put together.

    Args:
        document: of the comparison.
        labels: the words.
        taken: the steps that are chosen.
        forecast: what the graft will do (``fork.Forecast``), when that is known.
        working: it is being made.
        fault: what is in the way, in words.
    """
    offers = offered(document)
    steps = {row["step_id"]: row for row in document["steps"]}
    go = ""
    if chosen := [one for one in offers if one in taken]:
        others = labels("comma").join(dict.fromkeys(LETTERS[n] for n, _ in chosen))
        many = labels("steps", n=len(chosen))
        go = labels("graft_working") if working else labels("graft_now", base="A", steps=many, others=others)
    rows = [
        {
            "key": f"{n}:{step_id}",
            "letter": LETTERS[n],
            "step_id": step_id,
            "side": steps[step_id]["sides"][n],
            "change": change("changed" if steps[step_id]["sides"][0] else "added", labels),
            "taken": (n, step_id) in taken,
        }
        for n, step_id in offers[:MOST_OFFERED]
    ]
    told = plan_forecast(forecast, True, labels) if forecast else ""
    return draw("graft.panel", labels=labels, offers=rows, go=go, working=working, forecast=told, fault=fault)


def conflicts_form(document: Data, message: str, found: Sequence[Mapping[str, Any]], labels: Labels) -> Markup:
    """Return what branches contradict one another in, and the buttons that let one of them hold."""
    held = {run_id for conflict in found for run_id in conflict["values"]}
    choices = [(letter, run["run_id"]) for letter, run in lettered(document) if run["run_id"] in held]
    text = labels("graft_needs_choice") if found else message
    table = Markup(page_html(conflicts_blocks(found, labels), labels, "wb-worked"))
    return draw("graft.conflicts", labels=labels, text=text, table=table, choices=choices)


def made(run_id: str, labels: Labels) -> Markup:
    """Return the new run, to be opened."""
    return draw("graft.made", labels=labels, run_id=run_id)


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
