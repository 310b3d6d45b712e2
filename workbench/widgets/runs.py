"""The runs of a workspace on the bench: searched, sorted, chosen; compared, tagged, exported, deleted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import ipywidgets

from workbench.errors import WorkbenchError
from workbench.runs.family import details
from workbench.runs.listing import fits
from workbench.runs.stored import origin_of
from workbench.state import Data
from workbench.text import visible
from workbench.views.comparison import LETTERS
from workbench.views.labels import Labels
from workbench.views.markup import el
from workbench.views.runs import FACTS, PAGE, SORTS, runs_table
from workbench.widgets.panel import Event, Panel, Pick, display_if, on_change


def letters(wb: Any, run_ids: Iterable[str]) -> dict[str, str]:
    """Return the letter of each of two to four runs that are compared, the oldest first; of others none."""
    present = (run_id for run_id in run_ids if run_id in wb.runs)
    ids = sorted(present, key=lambda run_id: wb.run(run_id).row["created_at"])
    return dict(zip(ids, LETTERS, strict=False)) if 1 < len(ids) <= len(LETTERS) else {}


_MOVES = ("run_id", "origin", "status", "decided")
"""What of a line tells whether its details are to be read again."""
_EVERY = 100_000
_FILTERS = {"status": "status", "kb": "runs_kb", "tag": "runs_tags", "rated": "runs_rated"}
"""What the table is narrowed by, with the labels."""


class RunTable(Panel):
    """A table of runs: a click opens one; several are marked and acted on.

    ``marked`` are the ids of those that are marked. It asks for ``{"do": "open" | "compare", "runs": [run ids]}``.

    Args:
        labels: the words.
        wb: the workspace.
    """

    def __init__(self, labels: Labels, wb: Any):
        super().__init__(labels)
        self._wb = wb
        self._open_id = ""
        self._page = 0
        self._sort = ("created_at", True)
        self._lines = list[Data]()
        self.marked = list[str]()
        # read again once a run has moved
        self._details = cache(lambda i, origin, *_: details(wb.run(i), origin))
        self.search = ipywidgets.Text(
            placeholder=labels("runs_search"), description=labels("runs_search_label")
        )
        self.filters = {
            name: ipywidgets.Dropdown(description=labels(word)) for name, word in _FILTERS.items()
        }
        self.table = Pick(listener=self._pressed)
        self.message = ipywidgets.HTML()
        self._narrowing = [self.search, *self.filters.values()]
        for widget in self._narrowing:
            on_change(widget, self._narrowed)
        filters = ipywidgets.HBox(self._narrowing).add_class("wb-filters")
        self.region = ipywidgets.VBox([filters, self.table, self.message]).add_class("wb-part")

    def show(self, open_id: str = "") -> None:
        """Show the runs; ``open_id`` is of the run on the bench, which is marked first."""
        if open_id != self._open_id:
            self._open_id = open_id
            self.marked = [open_id] if open_id else []
        runs = self._wb.runs
        rated = {
            row["run_id"]: "feedback_good" if row["good"] else "feedback_bad"
            for row in self._wb.feedback().on_answers()
        }
        lines = runs.lines(_EVERY)
        self._lines = [row | {"rated": rated.get(row["run_id"], "")} for row in lines]
        self.marked = [run_id for run_id in self.marked if run_id in runs]
        page = self._page
        self._offer()
        self._page = page
        self._narrow()

    def _narrow(self) -> None:
        """Show those of the lines that fit."""
        chosen = {name: box.value for name, box in self.filters.items() if box.value}
        self._rows = [row for row in self._lines if fits(row, self.search.value, **chosen)]
        self._draw()

    def details(self, row: Data) -> Data:
        """Return what a run has cost, and how it differs from its origin (``fork.details``)."""
        return self._details(*(row[name] for name in _MOVES))

    def _offer(self) -> None:
        """Offer to narrow by what several runs differ in; a choice is kept."""
        values = {name: {row[name] for row in self._lines} for name in ("status", "kb", "rated")}
        values["tag"] = {tag for row in self._lines for tag in row["tags"]}
        for name, box in self.filters.items():
            chosen = box.value or ""
            offered = sorted((values[name] | {chosen}) - {""})
            display_if(box, offered)
            words = self.labels if name in ("status", "rated") else visible
            options = (
                (self.labels("runs_every"), ""),
                *((words(value), value) for value in offered),
            )
            if box.options != options:
                box.options = options
                box.value = chosen

    def _draw(self) -> None:
        rows = sorted(self._rows, key=self._rank, reverse=self._sort[1])
        place = {row["run_id"]: n for n, row in enumerate(rows)}
        lineage = dict[str, tuple[int, ...]]()
        for row in reversed(self._rows):  # a fork is newer than its origin, and stands below it
            above = lineage.get(row["origin"], ()) if self._sort[0] in SORTS else ()
            lineage[row["run_id"]] = (*above, place[row["run_id"]])
        rows.sort(key=lambda row: lineage[row["run_id"]])
        self._page = min(self._page, max(0, (len(rows) - 1) // PAGE))
        shown = rows[self._page * PAGE :][:PAGE]
        costs = {row["run_id"]: self.details(row) for row in shown}
        compared, partner = self._compared()
        table = runs_table(
            shown,
            self.labels,
            total=len(rows),
            page=self._page,
            sort=self._sort,
            here=self._open_id,
            costs=costs,
            narrowed=any(widget.value for widget in self._narrowing),
            hidden=len({*self.marked} - {*place}),
            marked=self.marked,
            compared=compared,
            partner=partner,
        )
        self.table.show(table)

    def _rank(self, row: Data) -> tuple[bool, Any]:
        """Return what a row is sorted by: without a figure it is last, whatever the direction."""
        column, down = self._sort
        if column in SORTS:
            return True, str(row[column] or "").casefold()
        value = (row if column in row else self.details(row))[column]
        return (value is None) != down, value is not None and value

    def _compared(self) -> tuple[dict[str, str], str]:
        """Return the runs to compare, with their letters; a single one with its parent or the open run."""
        chosen = {*self.marked}
        partner = ""
        if len(chosen) == 1:
            parent = origin_of(self._wb.run(*chosen))
            partner = "parent" if parent else "open"
            chosen.add(parent or self._open_id)
        return letters(self._wb, chosen), partner

    def _narrowed(self) -> None:
        self._page = 0
        self._narrow()

    def _pressed(self, event: Event) -> None:
        kind, _, what = event.kind.partition(":")
        self.message.value = ""
        if kind == "choose":
            self.ask(do="open", runs=[event.key])
        elif kind == "compare":
            self.ask(do="compare", runs=[*self._compared()[0]])
        elif kind == "clear":
            for widget in self._narrowing:
                widget.value = ""
        elif kind == "sort" and what in (*SORTS, *FACTS):
            down = what in ("created_at", *FACTS)
            self._sort = (what, not self._sort[1] if what == self._sort[0] else down)
        elif kind == "page" and what in ("1", "-1"):
            self._page = max(0, self._page + int(what))
        elif kind == "mark":
            marked = self.marked
            (marked.remove if event.key in marked else marked.append)(event.key)
        elif kind in ("tags", "note"):
            tags = [tag.strip() for tag in what.split(",") if tag.strip()]
            about = {kind: tags if kind == "tags" else what}
            self._each("runs_saved", lambda i: self._wb.runs.annotate(i, **about))
            self.show(self._open_id)
        elif kind == "export":
            folder = self._wb.path / "exports"
            folder.mkdir(exist_ok=True)
            self._each("runs_exported", lambda i: self._wb.export(i, folder / f"{i}.zip"))
        elif kind == "delete":
            self._each("runs_deleted", self._wb.runs.remove)
            self.show(self._open_id)
        self._draw()

    def _each(self, word: str, action: Any) -> None:
        """Act on every marked run, and say for how many it was done, or why it was not."""
        refused = list[str]()
        for run_id in self.marked:
            try:
                action(run_id)
            except WorkbenchError as error:
                refused.append(str(error))
        done = len(self.marked) - len(refused)
        message = self.labels(word, n=done, where=str(self._wb.path / "exports"))
        self.message.value = el("p.wb-dim", " ".join([message, *refused]), role="status")
