"""The runs of a workspace on the bench: searched, sorted, chosen; compared, tagged, exported, deleted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import ipywidgets

from workbench.errors import WorkbenchError
from workbench.runs.fork import details
from workbench.views.comparison import LETTERS
from workbench.views.labels import Labels
from workbench.views.markup import el
from workbench.views.runs import PAGE, SORTS, runs_table
from workbench.widgets.panel import Event, Panel, Pick, display_if, on_change, press_button


def letters(wb: Any, run_ids: Iterable[str]) -> dict[str, str]:
    """Return the letter of each of two to four runs that are compared, the oldest first; of others none."""
    runs = [wb.run(run_id) for run_id in run_ids if run_id in wb.runs]
    runs.sort(key=lambda run: run.row["created_at"])
    ids = [run.run_id for run in runs]
    return dict(zip(ids, LETTERS, strict=False)) if 1 < len(ids) <= len(LETTERS) else {}


MOVES = ("run_id", "origin", "status", "decided")
"""What of a line tells whether its details are to be read again."""
_STATUSES = ("done", "paused", "running", "interrupted", "failed", "cancelled")


class RunTable(Panel):
    """A table of runs: a click opens one; several are marked and acted on.

    It asks for ``{"do": "open" | "compare", "runs": [run ids]}``.

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
        self._marked = list[str]()
        self._tagging = False
        # read again once a run has moved
        self.details = cache(lambda i, origin, *_: details(wb.run(i), origin))
        self.search = ipywidgets.Text(
            placeholder=labels("runs_search"), description=labels("runs_search_label")
        )
        statuses = [
            (labels("runs_every"), ""),
            *((labels(status), status) for status in _STATUSES),
        ]
        self.status = ipywidgets.Dropdown(options=statuses, description=labels("status"))
        self.tags = ipywidgets.Text(
            placeholder=labels("runs_tags_told"), description=labels("runs_tags")
        )
        self.note = ipywidgets.Text(description=labels("decision_note"))
        self.save = press_button("", self._annotate)
        self.table = Pick(listener=self._pressed)
        self.message = ipywidgets.HTML()
        for narrowing in (self.search, self.status):
            on_change(narrowing, self._narrowed)
        filters = ipywidgets.HBox([self.search, self.status]).add_class("wb-filters")
        self.about = ipywidgets.HBox([self.tags, self.note, self.save]).add_class("wb-filters")
        self.about.add_class("wb-about")
        self.region = ipywidgets.VBox([filters, self.table, self.about, self.message]).add_class(
            "wb-part"
        )

    def show(self, open_id: str = "") -> None:
        """Show the runs; ``open_id`` is of the run on the bench, which is marked first."""
        if open_id != self._open_id:
            self._open_id = open_id
            self._marked = [open_id] if open_id else []
        narrowed = {"status": self.status.value} if self.status.value else {}
        self._rows = self._wb.runs.lines(100_000, self.search.value, **narrowed)
        self._marked = [run_id for run_id in self._marked if run_id in self._wb.runs]
        self._draw()

    def _draw(self) -> None:
        column, down = self._sort
        rows = sorted(self._rows, key=lambda row: str(row[column] or "").casefold(), reverse=down)
        place = {row["run_id"]: n for n, row in enumerate(rows)}
        lineage = dict[str, tuple[int, ...]]()
        for row in reversed(self._rows):  # a fork is newer than its origin, and stands below it
            lineage[row["run_id"]] = (*lineage.get(row["origin"], ()), place[row["run_id"]])
        rows.sort(key=lambda row: lineage[row["run_id"]])
        self._page = min(self._page, max(0, (len(rows) - 1) // PAGE))
        shown = rows[self._page * PAGE :][:PAGE]
        rated = {row["run_id"]: row["good"] for row in self._wb.feedback().on_answers()}
        costs = {row["run_id"]: self.details(*(row[name] for name in MOVES)) for row in shown}
        table = runs_table(
            shown,
            self.labels,
            total=len(rows),
            page=self._page,
            sort=self._sort,
            here=self._open_id,
            costs=costs,
            rated=rated,
            tagging=self._tagging,
            marked=self._marked,
            letters=letters(self._wb, self._marked),
        )
        self.table.show(table)
        self.save.description = self.labels("runs_save", n=len(self._marked))
        display_if(self.about, self._marked and self._tagging)

    def _narrowed(self) -> None:
        self._page = 0
        self.show(self._open_id)

    def _pressed(self, event: Event) -> None:
        kind, _, what = event.kind.partition(":")
        self.message.value = ""
        if kind == "choose":
            self.ask(do="open", runs=[event.key])
        elif kind == "compare":
            with_open = [self._open_id] if len(self._marked) == 1 else []
            self.ask(do="compare", runs=[*with_open, *self._marked])
        elif kind == "sort" and what in SORTS:
            self._sort = (
                what,
                not self._sort[1] if what == self._sort[0] else what == "created_at",
            )
        elif kind == "page" and what in ("1", "-1"):
            self._page = max(0, self._page + int(what))
        elif kind == "mark":
            if event.key in self._marked:
                self._marked.remove(event.key)
            else:
                self._marked.append(event.key)
        elif kind == "tag":
            self._tagging = not self._tagging
        elif kind == "export":
            folder = self._wb.path / "exports"
            folder.mkdir(exist_ok=True)
            self._each("runs_exported", lambda i: self._wb.export(i, folder / f"{i}.zip"))
        elif kind == "delete":
            self._each("runs_deleted", self._wb.runs.remove)
            self.show(self._open_id)
        self._draw()

    def _annotate(self) -> None:
        """Give the marked runs these tags and this note; an empty field changes nothing."""
        tags = [tag.strip() for tag in self.tags.value.split(",") if tag.strip()]
        self._each(
            "runs_saved",
            lambda i: self._wb.runs.annotate(i, tags=tags or None, note=self.note.value or None),
        )
        self.tags.value = self.note.value = ""
        self.show(self._open_id)

    def _each(self, word: str, action: Any) -> None:
        """Act on every marked run, and say for how many it was done, or why it was not."""
        refused = list[str]()
        for run_id in self._marked:
            try:
                action(run_id)
            except WorkbenchError as error:
                refused.append(str(error))
        done = len(self._marked) - len(refused)
        message = self.labels(word, n=done, where=str(self._wb.path / "exports"))
        self.message.value = el("p.wb-dim", " ".join([message, *refused]), role="status")
