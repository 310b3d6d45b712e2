"""The form of a graft in the bench."""

from __future__ import annotations

from collections.abc import Collection

from markupsafe import Markup

from workbench.views.comparison import LETTERS, change
from workbench.views.labels import Labels
from workbench.views.page import Data, draw

Taken = tuple[int, str]
"""The number of a run in the comparison, and a step of it."""
MOST_OFFERED = 200


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
    working: bool = False,
) -> Markup:
    """Return the form in which a graft onto the first run is put together.

    Args:
        document: of the comparison.
        labels: the words.
        taken: the steps that are chosen.
        working: it is being made.
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
    return draw("graft.panel", labels=labels, offers=rows, go=go, working=working)


def made(run_id: str, labels: Labels) -> Markup:
    """Return the new run, to be opened."""
    return draw("graft.made", labels=labels, run_id=run_id)
