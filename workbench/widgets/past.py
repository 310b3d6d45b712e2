"""The checkpoints of a run as a list: what changed at each of them, and a fork from there."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets
from markupsafe import Markup

from workbench.runs.past import Checkpoint, Past, review_after
from workbench.views.labels import Labels, labels_for
from workbench.views.page import BLANK, el
from workbench.views.past import Row, checkpoints, looked_at, rows_of
from workbench.widgets.panel import Event, Json, Panel, PanelRoot, Pick


class Checkpoints(Panel):
    """The checkpoints of a run; where `gc` let them go, its decisions.

    It asks for a fork as ``Run.fork`` takes it: ``{"edits": {"at": checkpoint or review id}}``; of a run that
    asked nobody with ``review`` too, where the new one is to ask.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._every, self._at = False, ""
        self._document: Json = {}
        self._found: dict[str, Checkpoint] = {}
        self._rows: dict[str, Row] = {}
        self._list, self._detail = Pick(heard=self._pressed), Pick(heard=self._pressed)
        self.region = ipywidgets.VBox([self._list, self._detail])

    def show(self, document: Json, checkpoints: Sequence[Checkpoint]) -> None:
        """Show the past of this run.

        Args:
            document: ``Run.to_dict()``.
            checkpoints: ``Run.checkpoints()``; empty when they were let go.
        """
        if document["run_id"] != self._document.get("run_id"):
            self._at, self._every = "", False
        self._document = document
        self._found = {one.id: one for one in checkpoints}
        rows = rows_of(document, [one.to_dict() for one in checkpoints], self.labels)
        self._rows = {row.key: row for row in rows}
        if self._at not in self._rows:
            self._at = ""
        self._draw()

    def _draw(self) -> None:
        rows, pruned = list(self._rows.values()), bool(self._rows) and not self._found
        self._list.show(checkpoints(rows, self.labels, chosen=self._at, every=self._every, pruned=pruned))
        if self._at:
            self._detail.show(self._looked_at(self._rows[self._at]))
        else:
            hint = el("div.wb-dim.wb-part", self.labels("past_look"))
            self._detail.show(hint if rows else BLANK)

    def _looked_at(self, row: Row) -> Markup:
        one = self._found.get(row.key)
        if one is None:
            return looked_at(row, None, {}, self.labels, review=row.decision or row.key, ask=())
        review = row.decision or self._review_after(one)
        return looked_at(row, one.to_dict(), one.values, self.labels, review=review, ask=self._may_ask(one, review))

    def _review_after(self, one: Checkpoint) -> str:
        """The review point that a fork from here asks at; empty when none comes."""
        decisions, pending = self._document["decisions"], self._document["review"]
        comes = one.decided < len(decisions) or pending is not None
        return review_after(one, decisions, pending) if comes else ""

    def _may_ask(self, one: Checkpoint, review: str) -> Sequence[str]:
        """Where a fork of a run that asked no one may ask."""
        if review or self._document["decisions"]:
            return ()
        places = list(self._found.values())
        later = {node for other in places[places.index(one) :] for node in other.next}
        return [point for point in ("plan", "reflect") if f"review_{point}" in later]

    def _pressed(self, event: Event) -> None:
        kind, _, point = event.kind.partition(":")
        if kind == "every":
            self._every = not self._every
            self._draw()
        elif event.key not in self._rows:
            return
        elif kind == "choose":
            self._at = event.key
            self._draw()
        elif kind == "fork":
            review = {"review": [point]} if point else {}
            self.ask(edits={"at": self._rows[event.key].decision or event.key, **review})


def past_of(found: Past) -> PanelRoot:
    """The checkpoints of a run in a cell: a fork opens below them."""
    run, panel = found.run, Checkpoints(labels_for(found.run.message))
    panel.show(run.to_dict(), found)
    return PanelRoot(panel, found, lambda asked: run.workspace.bench(run.fork(wait=False, **asked["edits"]).run_id))
