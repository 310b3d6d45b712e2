"""Under an answer: what a person thinks of it, and what the run knew: switched off, corrected."""

from __future__ import annotations

from typing import Any

from workbench.parts.memory.views import panel
from workbench.runs.run import Run
from workbench.state import Json
from workbench.views.labels import Labels
from workbench.widgets.panel import Event, Panel, Pick


class Knew(Panel):
    """The memory of a run under its answer, folded.

    It asks for ``{"without": id}``, a fork that does not recall it, and for changes of what is remembered:
    ``{"do": "edit" | "invalidate" | "undo", "with": [...]}``, the method of the memory and its arguments.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._read: tuple[str, Any] = ("", ())
        self._held: dict[str, Json] = {}
        self.region = Pick(listener=self._pressed).add_class("wb-knew")

    def show(self, run: Run, memory: Any) -> None:
        """Show what a run that is done knew, next to what of it still holds."""
        if self._read[0] != run.run_id:
            self._read = (run.run_id, run.prompt_parts())
        rows = memory.view(run.row["user_id"], ended=True).memories
        self._held = {row["id"]: row for row in rows if not row["ended_at"]}
        about = {"current": self._held, "rows": rows, "session": run.session_id}
        self.region.show(panel(self._read[1], self.labels, **about))

    def _pressed(self, event: Event) -> None:
        key = event.key
        memory = self._held.get(key)
        kind, _, content = event.kind.partition(":")
        if kind == "without":
            self.ask(without=key)
        elif kind == "undo":
            self._change("undo")
        elif memory and kind == "correct" and content.strip() not in ("", memory["content"]):
            self._change("edit", key, content)
        elif memory and kind == "invalidate":
            self._change("invalidate", key, self.labels("mem_invalidated"))

    def _change(self, do: str, *args: Any) -> None:
        self.ask(**{"do": do, "with": args})
