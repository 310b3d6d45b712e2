"""Two to four runs side by side, with the panel in which steps of one are grafted onto another."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets

from workbench.draw.beside import beside_body, beside_head
from workbench.draw.graft import Taken, conflicts_table, made, offered, panel
from workbench.draw.page import Picture, el
from workbench.errors import GraftConflict, WorkbenchError
from workbench.futures.compare import Comparison
from workbench.labels import Labels, labels_for
from workbench.widgets.pick import Event, Pick, Root


class Compare(traitlets.HasTraits):
    """A comparison.

    Attributes:
        asked: what somebody asked for: ``{"do": "graft", "steps": {step_id: [run_ids]}, "base": run_id, "prefer":
            run_id or None}``, ``{"do": "open", "run": run_id}`` or ``{"do": "swap", "runs": [run ids]}``, with ``n``,
            a count.
        region: the widget, to be put into another.
    """

    asked = traitlets.Dict()

    def __init__(self, labels: Labels | None = None):
        super().__init__()
        self._given = labels
        self._comparison: Comparison | None = None
        self._document: Mapping[str, Any] = {}
        self._differing, self._open, self._base = False, False, 0
        self._whole, self._taken = set[str](), list[Taken]()
        self._head, self._panel, self._note, self._body = Pick(), Pick(), Pick(), Pick()
        self._picks = (self._head, self._panel, self._note, self._body)
        for pick in self._picks:
            pick.on_event(self._heard)
        self.region = ipywidgets.VBox(self._picks)
        self._head.show(Picture(el("div", self.labels("forks_choose"), cls="wb-dim wb-part")))

    def show(self, comparison: Comparison) -> None:
        """Show this comparison; what was chosen for a graft stays, when the runs are the same."""
        document = comparison.to_dict()
        if self._ids(document) != self._ids(self._document):
            self._base, self._open = 0, False
            self._taken.clear()
            self._whole.clear()
        self._comparison, self._document = comparison, document
        known = set(offered(document, self._base))
        self._taken = [taken for taken in self._taken if taken in known]
        self._say(Picture())
        self._draw()

    def refuse(self, message: str, conflicts: Sequence[Mapping[str, Any]] = ()) -> None:
        """Say why no graft was made; conflicts are shown with each run's value, and with a way to choose.

        Args:
            message: in words.
            conflicts: of ``GraftConflict``.
        """
        self._say(Picture(conflicts_table(self._document, message, conflicts, self.labels)))
        self._draw_panel()

    def told(self, run_id: str) -> None:
        """Say that the graft is there, and offer to open it."""
        self._say(Picture(made(run_id, self.labels)))
        self._draw_panel()

    def widget(self) -> Root:
        """It alone, for a cell."""
        return Root([self.region], self.labels.html_lang)

    @property
    def labels(self) -> Labels:
        """The words: those given, or else in the language of the first question."""
        return self._given or labels_for(self._document["runs"][0]["message"] if self._document else "")

    # drawing

    @staticmethod
    def _ids(document: Mapping[str, Any]) -> list[str]:
        return [run["run_id"] for run in document.get("runs", ())]

    def _draw(self) -> None:
        head = beside_head(self._document, self.labels, differing=self._differing, graft=self._open)
        self._head.show(Picture(head))
        body = beside_body(self._document, self.labels, differing=self._differing, whole=self._whole)
        self._body.show(Picture(body))
        self._draw_panel()

    def _draw_panel(self, working: bool = False) -> None:
        if not self._open:
            self._panel.show(Picture())
            return
        forecast, said = None, ""
        try:
            forecast = self._forecast()
        except WorkbenchError as error:
            said = str(error)
        base, taken = self._base, self._taken
        drawn = panel(
            self._document, self.labels, base=base, taken=taken, forecast=forecast, working=working, said=said
        )
        self._panel.show(Picture(drawn))

    def _forecast(self) -> Mapping[str, Any] | None:
        """What the graft would do, where the runs are at hand."""
        from workbench.futures.graft import foreseen  # brings LangGraph along

        workspace = self._comparison.workspace if self._comparison else None
        if workspace is None or not self._taken:
            return None
        runs = [workspace.run(run_id) for run_id in self._ids(self._document)]
        steps = {step_id: [runs[n] for n in several] for step_id, several in self._several().items()}
        return foreseen(steps, runs[self._base])

    def _say(self, picture: Picture) -> None:
        self._note.show(picture)

    # what somebody does

    def _heard(self, event: Event) -> None:
        act = {
            "differing": self._on_differing,
            "panel": self._on_panel,
            "more": self._on_more,
            "base": self._on_base,
            "take": self._on_take,
        }.get(event.kind)
        ids = self._ids(self._document)
        if act:
            act(event.key)
        elif event.kind == "open" and event.key:
            self._ask({"do": "open", "run": event.key})
        elif event.kind == "swap" and ids:
            self._ask({"do": "swap", "runs": [*ids[1:], ids[0]]})
        elif event.kind == "graft" and self._taken:
            self._graft(None)
        elif event.kind == "prefer" and event.key in ids and self._taken:
            self._graft(event.key)

    def _on_differing(self, _: str) -> None:
        self._differing = not self._differing
        self._draw()

    def _on_panel(self, _: str) -> None:
        self._open = not self._open
        self._say(Picture())
        self._draw()

    def _on_more(self, name: str) -> None:
        self._whole = {name}  # one long table at a time
        self._draw()

    def _on_base(self, number: str) -> None:
        if number.isdecimal() and int(number) < len(self._ids(self._document)):
            self._base = int(number)
            self._taken.clear()
            self._say(Picture())
            self._draw_panel()

    def _on_take(self, key: str) -> None:
        number, _, step_id = key.partition(":")
        known = offered(self._document, self._base)
        taken = next((one for one in known if (str(one[0]), one[1]) == (number, step_id)), None)
        if taken is None:
            return
        if taken in self._taken:
            self._taken.remove(taken)
        else:
            self._taken.append(taken)
        self._draw_panel()

    def _several(self) -> dict[str, list[int]]:
        """The chosen steps, with the runs from which each is taken."""
        found: dict[str, list[int]] = {}
        for n, step_id in self._taken:
            found.setdefault(step_id, []).append(n)
        return found

    def _graft(self, prefer: str | None) -> None:
        ids = self._ids(self._document)
        steps = {step_id: [ids[n] for n in several] for step_id, several in self._several().items()}
        self._say(Picture())
        self._draw_panel(working=True)
        self._ask({"do": "graft", "steps": steps, "base": ids[self._base], "prefer": prefer})

    def _ask(self, asked: Mapping[str, Any]) -> None:
        self.asked = {**asked, "n": self.asked.get("n", 0) + 1}


def beside_of(comparison: Comparison) -> Root:
    """What a comparison shows of itself in a cell: it swaps and grafts by itself, and opens runs below."""
    compare, below = Compare(), ipywidgets.VBox()
    compare.show(comparison)
    workspace = comparison.workspace

    def graft(asked: Mapping[str, Any]) -> None:
        try:
            new = workspace.graft(asked["steps"], base=asked["base"], prefer=asked["prefer"])
        except GraftConflict as conflict:
            compare.refuse(str(conflict), conflict.conflicts)
        except WorkbenchError as error:
            compare.refuse(str(error))
        else:
            compare.told(new.run_id)

    def act(change: Any) -> None:
        asked = change["new"]
        if asked["do"] == "graft":  # beside the kernel's own thread, so that other cells go on
            threading.Thread(target=graft, args=(asked,), name="graft", daemon=True).start()
        elif asked["do"] == "swap":
            compare.show(workspace.compare(*asked["runs"]))
        else:
            below.children = [workspace.bench(asked["run"])]

    compare.observe(act, "asked")
    return Root([compare.region, below], compare.labels.html_lang)
