"""Under an answer: what a person thinks of it, and what the run knew: switched off, corrected."""

from __future__ import annotations

from typing import Any

import ipywidgets

from workbench.parts.memory.views import panel
from workbench.runs.run import Run
from workbench.state import Json
from workbench.views.labels import Labels
from workbench.widgets.panel import Event, Panel, Pick, display_if


class Knew(Panel):
    """The memory of a run under its answer, folded.

    It asks for ``{"without": id}``, a fork that does not recall it, and for changes of what is remembered:
    ``{"do": "edit" | "invalidate" | "undo", "with": [...]}``, the method of the memory and its arguments.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._read: tuple[str, Any] = ("", ())
        self._editing = ""
        self._changed = False
        self._held: dict[str, Json] = {}
        self.list = Pick(listener=self._pressed)
        self.text = ipywidgets.Text(
            description=labels("mem_correct_field"), continuous_update=False
        )
        self.text.observe(lambda change: self._typed(change.new), "value")
        self.region = ipywidgets.VBox([self.list, self.text]).add_class("wb-knew")
        display_if(self.text, False)

    def show(self, run: Run, memory: Any) -> bool:
        """Show what a run that is done knew, next to what of it still holds; whether there is anything to show."""
        if self._read[0] != run.run_id:
            self._read = (run.run_id, run.prompt_parts())
            self._changed = False
            self._close()
        self._held = {row["id"]: row for row in memory.view(run.row["user_id"]).memories}
        picture = panel(self._read[1], self.labels, current=self._held, undo=self._changed)
        self.list.show(picture)
        return bool(picture.html)

    def _pressed(self, event: Event) -> None:
        memory = self._held.get(event.key)
        if event.kind == "without":
            self.ask(without=event.key)
        elif event.kind == "undo":
            self._changed = False
            self._change("undo")
        elif memory and event.kind == "correct":
            self._editing = ""
            self.text.value = memory["content"]
            self._editing = event.key
            display_if(self.text, True)
            self.text.focus()
        elif memory and event.kind == "invalidate":
            self._changed = True
            self._change("invalidate", event.key, self.labels("mem_invalidated"))

    def _typed(self, content: str) -> None:
        memory = self._held.get(self._editing)
        if memory and content.strip() and content != memory["content"]:
            memory_id = self._editing
            self._changed = True
            self._close()
            self._change("edit", memory_id, content)

    def _change(self, do: str, *args: Any) -> None:
        self.ask(**{"do": do, "with": args})

    def _close(self) -> None:
        self._editing = ""
        display_if(self.text, False)
