"""The feedback of a person on an answer: two buttons and a note."""

from __future__ import annotations

import ipywidgets

from workbench.runs.run import Run
from workbench.views.labels import Labels
from workbench.views.markup import draw
from workbench.widgets.panel import Event, Panel, Pick, display_if, on_change


class Verdict(Panel):
    """Two buttons under an answer, and a note once one of them is pressed.

    It asks for ``{"good": True | False | None, "note": "..."}``; pressing a pressed button withdraws the feedback.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._good: bool | None = None
        self._saved = ""
        self.buttons = Pick(listener=self._pressed)
        self.note = ipywidgets.Text(
            description=labels("feedback_why"),
            placeholder=labels("feedback_optional"),
            continuous_update=False,
        )
        on_change(self.note, self._noted)
        self.region = ipywidgets.VBox([self.buttons, self.note]).add_class("wb-thought")

    def show(self, run: Run) -> None:
        """Show the stored feedback of the run's user."""
        own = next(
            (
                row
                for row in run._workspace.feedback(run=run.run_id).on_answers()
                if row["who"] == run.row["user_id"]
            ),
            None,
        )
        self._good, self._saved = (own["good"], own["note"]) if own else (None, "")
        self.buttons.show(draw("run.verdict", self.labels, good=self._good))
        self.note.value = self._saved
        display_if(self.note, own)

    def _pressed(self, event: Event) -> None:
        if event.kind in ("good", "bad"):
            good = event.kind == "good"
            self.ask(good=None if good is self._good else good, note=self.note.value)

    def _noted(self) -> None:
        if self._good is not None and self.note.value != self._saved:
            self.ask(good=self._good, note=self.note.value)
