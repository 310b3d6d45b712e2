"""A result of a run that is put in place by hand on the bench, which makes a fork."""

from __future__ import annotations

import json
from typing import Any

import ipywidgets

from workbench.state import Json
from workbench.views.labels import Labels
from workbench.widgets.panel import Panel, display_if, on_change, press_button


class ByHand(Panel):
    """The effects of a run, one of which is given another result.

    It asks for a fork as ``Run.fork`` takes it: ``{"edits": {"at": place, "result": value}}``.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._shown = ("", "")
        self._results = Json()
        self.place = ipywidgets.Dropdown(description=labels("by_hand"))
        self.result = ipywidgets.Textarea(rows=6).add_class("wb-json")
        self.button = press_button(labels("past_fork"), self.submit)
        self.region = ipywidgets.VBox([self.place, self.result, self.button]).add_class("wb-part")
        on_change(self.place, self._choose)

    def show(self, run: Any) -> None:
        """Show the effects of a run; what was typed for it stays."""
        shown = (run.run_id, run.status)
        if shown != self._shown:
            self._shown = shown
            self._results = run.results_by_place()
            self.place.options = [
                (self.labels("by_hand_none"), ""),
                *((place, place) for place in self._results),
            ]
            self._choose()

    def submit(self) -> None:
        """Ask for the fork, unless nothing was changed."""
        typed = self.result.value
        if self.place.value and typed != self._before:
            self.ask(edits={"at": self.place.value, "result": _read(typed)})

    def _choose(self) -> None:
        place = self.place.value
        self._before = (
            json.dumps(self._results[place], ensure_ascii=False, indent=1) if place else ""
        )
        self.result.value = self._before
        for part in (self.result, self.button):
            display_if(part, place)


def _read(typed: str) -> Any:
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed
