"""The other views of the bench: all runs and their forks, runs side by side, the knowledge graph around the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets

from workbench.errors import GraftConflict, WorkbenchError
from workbench.futures.compare import Comparison
from workbench.futures.tree import Tree
from workbench.runs.run import Run
from workbench.views.beside import beside_body, beside_head
from workbench.views.graft import Taken, conflicts_table, made, offered, panel
from workbench.views.labels import Labels, labels_for
from workbench.views.page import Picture, el
from workbench.views.past import LETTERS, forks
from workbench.widgets.knowledge import Explore
from workbench.widgets.pick import Event, Pick, Root
from workbench.widgets.working import Act, displayed

# --- Two to four runs side by side, with the panel in which steps of one are grafted onto another ---


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
        runs = [workspace.run(run_id).recording() for run_id in self._ids(self._document)]
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


# --- The tree of forks: runs are opened with a click, two to four are marked and compared ---


class Forks(traitlets.HasTraits):
    """Runs and what was made of them.

    Attributes:
        chosen: what somebody asked for: ``{"do": "open" | "compare", "runs": [run ids], "n": count}``.
        region: the widget, to be put into another.
    """

    chosen = traitlets.Dict()

    def __init__(self, labels: Labels | None = None):
        super().__init__()
        self._given, self._marked, self._tree = labels, list[str](), Tree(())
        self._pick = Pick()
        self._pick.on_event(self._heard)
        self.region = ipywidgets.VBox([self._pick])
        self._draw()

    def show(self, tree: Tree) -> None:
        """Show this tree; the run from which it is looked at is marked first."""
        known = [node["run_id"] for node in tree.nodes]
        if tree.here != self._tree.here or not self._tree.nodes:
            self._marked = [tree.here] if tree.here else []
        self._marked = [run_id for run_id in self._marked if run_id in known]
        self._tree = tree
        self._draw()

    def widget(self) -> Root:
        """It alone, for a cell."""
        return Root([self.region], self.labels.html_lang)

    @property
    def labels(self) -> Labels:
        """The words: those given, or else in the language of the newest question."""
        return self._given or labels_for(self._tree.nodes[0]["message"] if self._tree.nodes else "")

    def _draw(self) -> None:
        self._pick.show(forks(self._tree.to_dict(), self.labels, self._marked))

    def _heard(self, event: Event) -> None:
        known = {node["run_id"] for node in self._tree.nodes}
        if event.kind == "choose" and event.key in known:
            self._tell("open", [event.key])
        elif event.kind == "mark" and event.key in known:
            self._mark(event.key)
        elif event.kind == "compare" and len(self._marked) >= 2:
            self._tell("compare", list(self._marked))

    def _mark(self, run_id: str) -> None:
        """Take a run into the comparison, or out of it; the fifth takes the place of the fourth."""
        if run_id in self._marked:
            self._marked.remove(run_id)
        else:
            self._marked = [*self._marked[: len(LETTERS) - 1], run_id]
        self._draw()

    def _tell(self, do: str, runs: list[str]) -> None:
        self.chosen = {"do": do, "runs": runs, "n": self.chosen.get("n", 0) + 1}


def forks_of(tree: Tree) -> Root:
    """What a tree shows of itself in a cell: a comparison that is asked for opens below it."""
    below = ipywidgets.VBox()
    told = Forks()
    told.show(tree)

    def act(change: Any) -> None:
        if tree.workspace is None:
            return
        pass

        asked = change["new"]
        if asked["do"] == "compare":
            below.children = [beside_of(tree.workspace.compare(*asked["runs"]))]
        else:
            below.children = [tree.workspace.bench(asked["runs"][0])]

    told.observe(act, "chosen")
    return Root([told.region, below], told.labels.html_lang)


Document = Mapping[str, Any]


class Futures:
    """What is made of runs, and what an answer stands in.

    Args:
        wb: the workspace.
        labels: the words.
        act: does what somebody asked for, and shows the bench anew.
        opens: puts another run on the bench.
        goes: opens another view.
    """

    def __init__(self, wb: Any, labels: Labels, act: Act, opens: Callable[[Run], None], goes: Callable[[str], None]):
        self._wb, self._labels, self._act, self._opens, self._goes = wb, labels, act, opens, goes
        self.forks, self.compare, self.knowledge = Forks(labels), Compare(labels), Explore(labels)
        self._compared: list[str] = []
        self._explored = ""
        parts = (self.forks.region, self.compare.region, self.knowledge.region)
        self.region = ipywidgets.VBox(parts)
        self.region.add_class("wb-futures")
        self.forks.observe(lambda change: self._act(lambda: self._on_forks(change.new)), "chosen")
        self.compare.observe(lambda change: self._act(lambda: self._on_compare(change.new)), "asked")

    def show(self, view: str, run: Run | None, document: Document | None) -> None:
        """Show one of the views."""
        for name, part in (("runs", self.forks), ("compare", self.compare), ("knowledge", self.knowledge)):
            displayed(part.region, name == view)
        if view == "runs":
            self.forks.show(self._wb.tree())
        elif view == "compare":
            self._show_comparison(run)
        elif run and document and self._explored != f"{run.run_id} {document['status']}":
            self._explored = f"{run.run_id} {document['status']}"
            self.knowledge.show(run)

    def beside(self, run_ids: Sequence[str]) -> None:
        """Compare these runs."""
        self._compared = list(run_ids)
        self._goes("compare")

    def _show_comparison(self, run: Run | None) -> None:
        """The runs that were chosen; else this one beside the run that it was made from, or its first fork."""
        ids = self._compared or _relatives(run)
        if len(ids) > 1:
            self.compare.show(self._wb.compare(*ids))

    def _on_forks(self, chosen: Mapping[str, Any]) -> None:
        if chosen.get("do") == "open":
            self._opens(self._wb.run(chosen["runs"][0]))
        elif chosen.get("do") == "compare":
            self.beside(chosen["runs"])

    def _on_compare(self, asked: Mapping[str, Any]) -> None:
        if asked.get("do") == "open":
            self._opens(self._wb.run(asked["run"]))
        elif asked.get("do") == "swap":
            self._compared = list(asked["runs"])
        elif asked.get("do") == "graft":
            self._graft(asked)

    def _graft(self, asked: Mapping[str, Any]) -> None:
        try:
            made = self._wb.graft(asked["steps"], base=asked["base"], prefer=asked.get("prefer"))
        except GraftConflict as conflict:
            self.compare.refuse(str(conflict), conflict.conflicts)
            return
        self._opens(made)


def _relatives(run: Run | None) -> list[str]:
    """The run from which this one was made, and this one; or this one and what was made of it last."""
    if run is None:
        return []
    if run.origin:
        return [run.origin, run.run_id]
    children = [node["run_id"] for node in run.tree().nodes if node["parent"] == run.run_id]
    return [run.run_id, children[-1]] if children else []
