"""Time travel: the past of a run as a list, what changed at each point of it, and a fork from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets

from workbench.errors import WorkbenchError
from workbench.runs.past import Checkpoint, Past, review_after
from workbench.views.labels import Labels, labels_for
from workbench.views.page import Picture, el
from workbench.views.past import Row, checkpoints, looked_at, rows_of
from workbench.widgets.pick import Event, Pick, Root


class Checkpoints(traitlets.HasTraits):
    """The checkpoints of a run; where `gc` let them go, its decisions.

    Attributes:
        chosen: ``{"do": "look" | "fork", "at": checkpoint or review id, "n": count}``; a fork of a run that asked
            nobody has ``review`` too, where the new one is to ask.
        region: the widget, to be put into another.
    """

    chosen = traitlets.Dict()

    def __init__(self, labels: Labels | None = None):
        super().__init__()
        self._given, self._every, self._at = labels, False, ""
        self._document: Mapping[str, Any] = {}
        self._found: dict[str, Checkpoint] = {}
        self._rows: list[Row] = []
        self._list, self._detail = Pick(), Pick()
        for pick in (self._list, self._detail):
            pick.on_event(self._heard)
        self.region = ipywidgets.VBox([self._list, self._detail])

    def show(self, document: Mapping[str, Any], checkpoints: Sequence[Checkpoint]) -> None:
        """Show the past of this run.

        Args:
            document: ``Run.to_dict()``.
            checkpoints: ``Run.checkpoints()``; empty when they were let go.
        """
        if document["run_id"] != self._document.get("run_id"):
            self._at, self._every = "", False
        self._document = document
        self._found = {one.id: one for one in checkpoints}
        self._rows = rows_of(document, [one.to_dict() for one in checkpoints], self.labels)
        if self._at not in {row.key for row in self._rows}:
            self._at = ""
        self._draw()
        self._look()

    def widget(self) -> Root:
        """It alone, for a cell."""
        return Root([self.region], self.labels.html_lang)

    @property
    def labels(self) -> Labels:
        """The words: those given, or else in the language of the question."""
        return self._given or labels_for(self._document.get("message", ""))

    def _draw(self) -> None:
        pruned = bool(self._rows) and not self._found
        self._list.show(checkpoints(self._rows, self.labels, chosen=self._at, every=self._every, pruned=pruned))

    def _look(self) -> None:
        labels = self.labels
        row = next((row for row in self._rows if row.key == self._at), None)
        if row is None:
            told = el("div", labels("past_look"), cls="wb-dim wb-part") if self._rows else ""
            self._detail.show(Picture(told))  # type: ignore[arg-type]
            return
        one = self._found.get(row.key)
        values: Mapping[str, Any] | str = {}
        if one is not None:
            try:
                values = one.values
            except WorkbenchError as gone:
                values = str(gone)
        review = row.decision or (self._review_after(one) if one else row.key)
        told = looked_at(
            row, one.to_dict() if one else None, values, labels, review=review, ask=self._may_ask(one, review)
        )
        self._detail.show(Picture(told))

    def _review_after(self, one: Checkpoint) -> str:
        """The review point that a fork from here asks at; empty when none comes."""
        decisions, pending = self._document["decisions"], self._document["review"]
        comes = one.decided < len(decisions) or pending is not None
        return review_after(one, decisions, pending) if comes else ""

    def _may_ask(self, one: Checkpoint | None, review: str) -> Sequence[str]:
        """Where a fork of a run that asked nobody may ask."""
        if one is None or review or self._document["decisions"]:
            return ()
        places = list(self._found.values())
        later = {node for other in places[places.index(one) :] for node in other.next}
        return [point for point, node in (("plan", "review_plan"), ("reflect", "review_reflect")) if node in later]

    def _heard(self, event: Event) -> None:
        known = {row.key: row for row in self._rows}
        kind, _, point = event.kind.partition(":")
        if kind == "every":
            self._every = not self._every
            self._draw()
        elif event.key not in known:
            return
        elif kind == "choose":
            self._at = event.key
            self._draw()
            self._look()
            self._tell({"do": "look", "at": event.key})
        elif kind == "fork":
            at = known[event.key].decision or event.key
            self._tell({"do": "fork", "at": at, **({"review": [point]} if point else {})})

    def _tell(self, asked: Mapping[str, Any]) -> None:
        self.chosen = {**asked, "n": self.chosen.get("n", 0) + 1}


def past_of(found: Past) -> Root:
    """What the checkpoints of a run show of themselves in a cell: a fork opens below them."""
    run, past, below = found.run, Checkpoints(), ipywidgets.VBox()
    past.show(run.to_dict(), found)

    def act(change: Any) -> None:
        asked = dict(change["new"])
        if asked["do"] == "fork":
            review = {"review": asked["review"]} if "review" in asked else {}
            fork = run.start_fork(at=asked["at"], **review)
            below.children = [run.workspace.bench(fork.run_id)]

    past.observe(act, "chosen")
    return Root([past.region, below], past.labels.html_lang)
