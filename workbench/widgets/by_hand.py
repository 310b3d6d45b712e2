"""A result of a run that is put in place by hand on the bench, which makes a fork."""

from __future__ import annotations

import json
from typing import Any

import ipywidgets

from workbench.records.tape import Effect, places
from workbench.runs.run import Run
from workbench.views.labels import Labels
from workbench.widgets.panel import Panel, display_if, on_change, press_button


class ByHand(Panel):
    """The effects of a run, one of which is given another result.

    It asks for a fork as ``Run.fork`` takes it: ``{"edits": {"at": place, "result": value}}``.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._run_id, self._effects = "", dict[str, Effect]()
        self.place = ipywidgets.Dropdown(options=[], description=labels("by_hand"))
        self.result = ipywidgets.Textarea(rows=6).add_class("wb-json")
        self.button = press_button(labels("past_fork"), self.submit)
        self.region = ipywidgets.VBox([self.place, self.result, self.button]).add_class("wb-part")
        on_change(self.place, self._choose)

    def show(self, run: Run) -> None:
        """Show the effects of a run that has ended; what was typed for it stays."""
        if run.run_id != self._run_id:
            self._run_id, self._effects = run.run_id, places(run.tape())
            self.place.options = [(self.labels("by_hand_none"), ""), *zip(self._effects, self._effects, strict=True)]
            self.place.value = ""
            self._choose()

    def submit(self) -> None:
        """Ask for the fork, unless nothing was changed."""
        typed = self.result.value
        if self.place.value and typed != self._before:
            self.ask(edits={"at": self.place.value, "result": _read(typed)})

    def _choose(self) -> None:
        effect = self._effects.get(self.place.value or "")
        self._before = "" if effect is None else _written(effect)
        self.result.value = self._before
        for part in (self.result, self.button):
            display_if(part, effect)


def _written(effect: Effect) -> str:
    value: Any = effect.value
    if effect.kind == "tool":
        body = value["body"] or {"output": {}, "results": []}
        value = {**body["output"], "results": body["results"]}
    return json.dumps(value, ensure_ascii=False, indent=1)


def _read(typed: str) -> Any:
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed
