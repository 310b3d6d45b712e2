"""The other views of the bench: runs and their forks, comparisons, checkpoints, the graph around the answer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, TypeVar

import ipywidgets
from markupsafe import Markup

from workbench.errors import WorkbenchError
from workbench.futures.compare import Comparison
from workbench.futures.tree import Tree
from workbench.runs.past import Checkpoint, Past, review_after
from workbench.runs.pictures import around_answer
from workbench.runs.run import Run
from workbench.state import Data
from workbench.views.comparison import LETTERS, Taken, beside, graft_panel, lettered, offered
from workbench.views.knowledge import Around, around, entity_card, knowledge_graph
from workbench.views.labels import Labels, labels_for
from workbench.views.page import BLANK, draw, el
from workbench.views.past import Row, checkpoint_card, checkpoint_list, forks, past_rows
from workbench.views.render import page_html
from workbench.widgets.panel import Event, Panel, PanelRoot, Pick, display_if

T = TypeVar("T")


def _toggled(chosen: Sequence[T], element: T, maximum: int | None = None) -> list[T]:
    """Add an element, or remove it; above the maximum it replaces the last one."""
    if element in chosen:
        return [remaining for remaining in chosen if remaining != element]
    return [*chosen[: maximum and maximum - 1], element]


class Compare(Panel):
    """Two to four runs next to each other, with the panel that grafts steps of the others onto the first.

    It asks for ``{"do": "graft", "steps": {step_id: [run_ids]}, "base": run_id}``, or for
    ``{"do": "open" | "swap", "runs": [run ids]}``.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._workspace: Any = None
        self._document: Data = {}
        self._ids: list[str] = []
        self._differing, self._open = False, False
        self._taken = list[Taken]()
        self._picks = [Pick(listener=self._pressed) for _ in range(4)]
        self._head, self._panel, self._note, self._body = self._picks
        self.region = ipywidgets.VBox(self._picks)
        self._head.show(el("div.wb-dim.wb-part", self.labels("forks_choose")))

    def show(self, comparison: Comparison) -> None:
        """Show a comparison; the steps chosen for a graft stay while the runs are the same."""
        self._workspace, self._document = comparison.workspace, comparison.to_dict()
        ids = [run["run_id"] for run in self._document["runs"]]
        if ids != self._ids:
            self._ids, self._open, self._taken = ids, False, []
            self._note.show()
        self._draw()

    def graft(self, request: Data) -> Run | None:
        """Make a graft and show a note about it; return None when it is refused."""
        try:
            run = self._workspace.graft(request["steps"], base=request["base"])
        except WorkbenchError as error:
            self._note.show(el("div.wb-alert", str(error), role="alert"))
            return None
        else:
            self._note.show(draw("graft.made", self.labels, run_id=run.run_id))
            return run
        finally:
            self._draw_panel()

    def _draw(self) -> None:
        document, labels = self._document, self.labels
        bar = {"runs": lettered(document), "differing": self._differing, "graft": self._open}
        self._head.show(draw("graft.bar", labels, **bar))
        blocks = beside(document, labels, self._differing)
        self._body.show(Markup(page_html(blocks, labels, "wb-worked wb-part wb-beside")))
        self._draw_panel()

    def _draw_panel(self, working: bool = False) -> None:
        if not self._open:
            self._panel.show()
            return
        self._panel.show(graft_panel(self._document, self.labels, taken=self._taken, working=working))

    def _steps(self) -> dict[str, list[str]]:
        """Return the chosen steps, each with its runs."""
        steps: dict[str, list[str]] = {}
        for n, step_id in self._taken:
            steps.setdefault(step_id, []).append(self._ids[n])
        return steps

    def _pressed(self, event: Event) -> None:
        kind, key, ids = event.kind, event.key, self._ids
        if kind == "open" and key:
            self.ask(do="open", runs=[key])
        elif kind == "swap" and ids:
            self.ask(do="swap", runs=[*ids[1:], ids[0]])
        elif self._taken and kind == "graft":
            self._note.show()
            self._draw_panel(working=True)
            self.ask(do="graft", steps=self._steps(), base=ids[0])
        elif kind == "take":
            takes = {f"{n}:{step_id}": (n, step_id) for n, step_id in offered(self._document)}
            self._taken = _toggled(self._taken, takes[key]) if key in takes else self._taken
            self._draw_panel()
        elif kind in ("differing", "panel"):
            self._differing ^= kind == "differing"
            if kind == "panel":
                self._open = not self._open
                self._note.show()
            self._draw()


def comparison_panel(comparison: Comparison) -> PanelRoot:
    """Return a comparison in a cell, which opens runs below it."""
    compare, workspace = Compare(labels_for(comparison.runs[0]["message"])), comparison.workspace
    compare.show(comparison)

    def act(request: Data) -> Any:
        if request["do"] == "open":
            return workspace.bench(*request["runs"])
        if request["do"] == "swap":
            compare.show(workspace.compare(*request["runs"]))
        else:  # in a thread, so that other cells can run
            threading.Thread(target=compare.graft, args=(request,), name="graft", daemon=True).start()
        return None

    return PanelRoot(compare, comparison, act)


class Forks(Panel):
    """Runs and their forks: a click opens a run; two to four are marked and compared.

    It asks for ``{"do": "open" | "compare", "runs": [run ids]}``.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._marked, self._tree = list[str](), Tree(())
        self._pick = Pick(listener=self._pressed)
        self.region = ipywidgets.VBox([self._pick])
        self._draw()

    def show(self, tree: Tree) -> None:
        """Show a tree; the current run is marked first."""
        if tree.here != self._tree.here or not self._tree.nodes:
            self._marked = [tree.here] if tree.here else []
        self._tree = tree
        self._marked = [run_id for run_id in self._marked if run_id in self._run_ids()]
        self._draw()

    def _run_ids(self) -> set[str]:
        return {node["run_id"] for node in self._tree.nodes}

    def _draw(self) -> None:
        self._pick.show(forks(self._tree.to_dict(), self.labels, self._marked))

    def _pressed(self, event: Event) -> None:
        if event.kind == "compare" and len(self._marked) >= 2:
            self.ask(do="compare", runs=list(self._marked))
        elif event.key in self._run_ids() and event.kind == "choose":
            self.ask(do="open", runs=[event.key])
        elif event.key in self._run_ids() and event.kind == "mark":
            self._marked = _toggled(self._marked, event.key, len(LETTERS))
            self._draw()


def forks_panel(tree: Tree) -> PanelRoot:
    """Return a tree in a cell, which opens runs and comparisons below it."""
    panel, workspace = Forks(labels_for(tree.nodes[0]["message"] if tree.nodes else "")), tree.workspace
    panel.show(tree)

    def act(request: Data) -> Any:
        if request["do"] == "compare":
            return comparison_panel(workspace.compare(*request["runs"]))
        return workspace.bench(*request["runs"])

    return PanelRoot(panel, tree, act)


class Checkpoints(Panel):
    """The checkpoints of a run.

    It asks for a fork as ``Run.fork`` takes it: ``{"edits": {"at": checkpoint or review id}}``.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._every, self._chosen = False, ""
        self._document: Data = {}
        self._checkpoints: dict[str, Checkpoint] = {}
        self._rows: dict[str, Row] = {}
        self._list, self._detail = Pick(listener=self._pressed), Pick(listener=self._pressed)
        self.region = ipywidgets.VBox([self._list, self._detail])

    def show(self, document: Data, checkpoints: Sequence[Checkpoint]) -> None:
        """Show the checkpoints of a run (``Run.to_dict()``, ``Run.checkpoints()``)."""
        if document["run_id"] != self._document.get("run_id"):
            self._chosen, self._every = "", False
        self._document = document
        self._checkpoints = {checkpoint.id: checkpoint for checkpoint in checkpoints}
        rows = past_rows(document, [checkpoint.to_dict() for checkpoint in checkpoints], self.labels)
        self._rows = {row.key: row for row in rows}
        self._draw()

    def _draw(self) -> None:
        self._list.show(checkpoint_list(list(self._rows.values()), self.labels, chosen=self._chosen, every=self._every))
        checkpoint = self._checkpoints.get(self._chosen)
        if checkpoint is None:
            self._detail.show(el("div.wb-dim.wb-part", self.labels("past_look")) if self._rows else BLANK)
            return
        row = self._rows[checkpoint.id]
        review = row.decision or self._review_after(checkpoint)
        self._detail.show(checkpoint_card(row, checkpoint.to_dict(), checkpoint.values, self.labels, review))

    def _review_after(self, checkpoint: Checkpoint) -> str:
        """Return the review point at which a fork from here asks; empty when none comes."""
        decisions, pending = self._document["decisions"], self._document["review"]
        comes = checkpoint.decided < len(decisions) or pending is not None
        return review_after(checkpoint, decisions, pending) if comes else ""

    def _pressed(self, event: Event) -> None:
        if event.kind == "every":
            self._every = not self._every
            self._draw()
        elif event.key not in self._rows:
            return
        elif event.kind == "choose":
            self._chosen = event.key
            self._draw()
        elif event.kind == "fork":
            self.ask(edits={"at": self._rows[event.key].decision or event.key})


def past_panel(past: Past) -> PanelRoot:
    """Return the checkpoints of a run in a cell, which open a fork below them."""
    run, panel = past.run, Checkpoints(labels_for(past.run.message))
    panel.show(run.to_dict(), past)
    return PanelRoot(panel, past, lambda request: run.workspace.bench(run.fork(wait=False, **request["edits"]).run_id))


class Explore:
    """The graph around the answer of a run, in its knowledge base.

    Attributes:
        graph: the part of the graph that is shown.
        chosen: the id of the chosen entity.
        region: the widget.
    """

    def __init__(self, labels: Labels):
        self._labels = labels
        self.graph, self.chosen = Around(), ""
        self._knowledge: Any = None
        self.picture, self.card, self.note = Pick(listener=self._pressed), Pick(listener=self._pressed), Pick()
        self.region = ipywidgets.Box([self.picture, ipywidgets.VBox([self.note, self.card])]).add_class("wb-explore")

    def show(self, run: Run) -> None:
        """Show the graph around the answer of a run, or why its knowledge base is missing."""
        self.graph, self.chosen = Around(), ""
        self.note.show()
        try:
            self.graph = around_answer(run)
            self._knowledge = run.workspace.knowledge.get(run.state.get("kb_prefix", ""))
        except WorkbenchError as error:
            self.note.show(draw("knowledge.note", text=str(error)))
        self._draw()

    def _pressed(self, event: Event) -> None:
        if event.key not in self.graph.entities:
            return
        if event.kind == "expand":
            opened = _toggled(self.graph.opened, event.key)
            self.graph = around(self._knowledge, self.graph.seeds, opened, self.graph.path)
        self.chosen = event.key
        self._draw()

    def _draw(self) -> None:
        self.picture.show(knowledge_graph(self.graph, self._labels, self.chosen) if self.graph.entities else BLANK)
        self.card.show(entity_card(self.graph, self.chosen, self._labels))


class Futures:
    """The views of a bench other than the work on its run.

    Args:
        bench: the bench.
    """

    def __init__(self, bench: Any):
        self._bench, self._wb, labels = bench, bench.wb, bench.labels
        self.forks, self.compare, self.knowledge = Forks(labels), Compare(labels), Explore(labels)
        self._compared: list[str] = []
        self._explored = ("", "")
        self._regions = {
            "runs": self.forks.region,
            "compare": self.compare.region,
            "knowledge": self.knowledge.region,
        }
        self.region = ipywidgets.VBox(list(self._regions.values())).add_class("wb-futures")
        for view in (self.forks, self.compare):
            view.on_request(lambda request: bench.act(lambda: self._handle_request(request)))

    def show(self, view: str, run: Run | None, document: Data | None) -> None:
        """Show one of the views."""
        for name, region in self._regions.items():
            display_if(region, name == view)
        if view == "runs":
            self.forks.show(self._wb.runs.tree())
        elif view == "compare":
            ids = self._compared or _relatives(run)
            if len(ids) > 1:
                self.compare.show(self._wb.compare(*ids))
        elif run and document and self._explored != (run.run_id, document["status"]):
            self._explored = (run.run_id, document["status"])
            self.knowledge.show(run)

    def _handle_request(self, request: Data) -> None:
        if request["do"] == "open":
            self._bench.put(self._wb.run(*request["runs"]))
        elif request["do"] != "graft":  # compare, or swap
            self._compared = request["runs"]
            self._bench.view = "compare"
        elif run := self.compare.graft(request):
            self._bench.put(run)


def _relatives(run: Run | None) -> list[str]:
    """Return the origin of a run and the run; or the run and its last fork."""
    if run is None:
        return []
    if run.origin:
        return [run.origin, run.run_id]
    children = [node["run_id"] for node in run.tree().nodes if node["parent"] == run.run_id]
    return [run.run_id, children[-1]] if children else []
