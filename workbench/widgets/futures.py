"""The other views of the bench: runs and their forks, runs side by side, checkpoints, the graph around the answer."""

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
from workbench.views.knowledge import Around, around, entity_card, knowledge_graph, way, way_told
from workbench.views.labels import Labels, labels_for
from workbench.views.page import BLANK, draw, el
from workbench.views.past import Row, checkpoints, forks, looked_at, rows_of
from workbench.views.render import page_html
from workbench.widgets.panel import Event, Panel, PanelRoot, Pick, display_if

T = TypeVar("T")


def _toggled(chosen: Sequence[T], item: T, most: int | None = None) -> list[T]:
    """Take an item in, or out again; what is beyond the most takes the place of the last."""
    if item in chosen:
        return [other for other in chosen if other != item]
    return [*chosen[: most and most - 1], item]


class Compare(Panel):
    """Two to four runs side by side, with the panel in which steps of the others are grafted onto the first.

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
        self._picks = [Pick(heard=self._pressed) for _ in range(4)]
        self._head, self._panel, self._note, self._body = self._picks
        self.region = ipywidgets.VBox(self._picks)
        self._head.show(el("div.wb-dim.wb-part", self.labels("forks_choose")))

    def show(self, comparison: Comparison) -> None:
        """Show this comparison; what was chosen for a graft stays, when the runs are the same."""
        self._workspace, self._document = comparison.workspace, comparison.to_dict()
        ids = [run["run_id"] for run in self._document["runs"]]
        if ids != self._ids:
            self._ids, self._open, self._taken = ids, False, []
            self._note.show()
        self._taken = [taken for taken in self._taken if taken in offered(self._document)]
        self._draw()

    def graft(self, asked: Data) -> Run | None:
        """Make the graft that was asked for, and say so; None with the reason."""
        try:
            run = self._workspace.graft(asked["steps"], base=asked["base"])
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
        """Return the chosen steps, each with the runs that it is taken from."""
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


def beside_of(comparison: Comparison) -> PanelRoot:
    """Return a comparison in a cell: it swaps and grafts on its own, and opens runs below."""
    compare, workspace = Compare(labels_for(comparison.runs[0]["message"])), comparison.workspace
    compare.show(comparison)

    def act(asked: Data) -> Any:
        if asked["do"] == "open":
            return workspace.bench(*asked["runs"])
        if asked["do"] == "swap":
            compare.show(workspace.compare(*asked["runs"]))
        else:  # beside the kernel's own thread, so that other cells go on
            threading.Thread(target=compare.graft, args=(asked,), name="graft", daemon=True).start()
        return None

    return PanelRoot(compare, comparison, act)


class Forks(Panel):
    """Runs and what was made of them: runs are opened with a click, two to four are marked and compared.

    It asks for ``{"do": "open" | "compare", "runs": [run ids]}``.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._marked, self._tree = list[str](), Tree(())
        self._pick = Pick(heard=self._pressed)
        self.region = ipywidgets.VBox([self._pick])
        self._draw()

    def show(self, tree: Tree) -> None:
        """Show this tree; the run from which it is looked at is marked first."""
        if tree.here != self._tree.here or not self._tree.nodes:
            self._marked = [tree.here] if tree.here else []
        self._tree = tree
        self._marked = [run_id for run_id in self._marked if run_id in self._known()]
        self._draw()

    def _known(self) -> set[str]:
        return {node["run_id"] for node in self._tree.nodes}

    def _draw(self) -> None:
        self._pick.show(forks(self._tree.to_dict(), self.labels, self._marked))

    def _pressed(self, event: Event) -> None:
        if event.kind == "compare" and len(self._marked) >= 2:
            self.ask(do="compare", runs=list(self._marked))
        elif event.key in self._known() and event.kind == "choose":
            self.ask(do="open", runs=[event.key])
        elif event.key in self._known() and event.kind == "mark":
            self._marked = _toggled(self._marked, event.key, len(LETTERS))
            self._draw()


def forks_of(tree: Tree) -> PanelRoot:
    """Return a tree in a cell: runs and comparisons open below it."""
    panel, workspace = Forks(labels_for(tree.nodes[0]["message"] if tree.nodes else "")), tree.workspace
    panel.show(tree)

    def act(asked: Data) -> Any:
        if asked["do"] == "compare":
            return beside_of(workspace.compare(*asked["runs"]))
        return workspace.bench(*asked["runs"])

    return PanelRoot(panel, tree, act)


class Checkpoints(Panel):
    """The checkpoints of a run; where `gc` let them go, its decisions.

    It asks for a fork as ``Run.fork`` takes it: ``{"edits": {"at": checkpoint or review id}}``; of a run that
    asked nobody with ``review`` too, where the new one is to ask.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self._every, self._at = False, ""
        self._document: Data = {}
        self._found: dict[str, Checkpoint] = {}
        self._rows: dict[str, Row] = {}
        self._list, self._detail = Pick(heard=self._pressed), Pick(heard=self._pressed)
        self.region = ipywidgets.VBox([self._list, self._detail])

    def show(self, document: Data, checkpoints: Sequence[Checkpoint]) -> None:
        """Show the past of this run.

        Args:
            document: ``Run.to_dict()``.
            checkpoints: ``Run.checkpoints()``; empty when they were let go.
        """
        if document["run_id"] != self._document.get("run_id"):
            self._at, self._every = "", False
        self._document = document
        self._found = {checkpoint.id: checkpoint for checkpoint in checkpoints}
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
        """Return the review point that a fork from here asks at; empty when none comes."""
        decisions, pending = self._document["decisions"], self._document["review"]
        comes = one.decided < len(decisions) or pending is not None
        return review_after(one, decisions, pending) if comes else ""

    def _may_ask(self, one: Checkpoint, review: str) -> Sequence[str]:
        """Return where a fork of a run that asked no one may ask."""
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
    """Return the checkpoints of a run in a cell: a fork opens below them."""
    run, panel = found.run, Checkpoints(labels_for(found.run.message))
    panel.show(run.to_dict(), found)
    return PanelRoot(panel, found, lambda asked: run.workspace.bench(run.fork(wait=False, **asked["edits"]).run_id))


class Explore:
    """Data in: a run. The graph around its answer, in the knowledge base that it asked.

    Attributes:
        found: what is shown, as data.
        chosen: id of the entity that is looked at.
        region: the widget.
    """

    def __init__(self, labels: Labels):
        self._labels = labels
        self.found, self.chosen = Around(), ""
        self._start = ""
        self._knowledge: Any = None
        self.graph, self.card, self.told = Pick(heard=self._pressed), Pick(heard=self._pressed), Pick()
        self.region = ipywidgets.Box([self.graph, ipywidgets.VBox([self.told, self.card])]).add_class("wb-explore")

    def show(self, run: Run) -> None:
        """Show what is around the answer of a run; says so, when its knowledge base is not here."""
        self.chosen, self._start = "", ""
        self.told.show()
        try:
            self.found = around_answer(run)
            self._knowledge = run.workspace.knowledge.get(run.state.get("kb_prefix", ""))
        except WorkbenchError as error:
            self.found = Around()
            self.told.show(draw("knowledge.note", text=str(error), status=False))
        self._draw()

    def expand(self, one: str) -> None:
        """Show the neighbours of an entity, or hide them again."""
        opened = [*self.found.opened, one]
        if one in self.found.opened:
            opened = [other for other in self.found.opened if other != one]
        self.found = around(self._knowledge, self.found.seeds, opened, self.found.path)
        self._draw()

    def way(self, start: str, end: str) -> list[str]:
        """Show the shortest way from one entity to another, and give its ids."""
        path = way(self._knowledge, start, end)
        self.found = around(self._knowledge, self.found.seeds, self.found.opened, path)
        self._start = ""
        self.told.show(draw("knowledge.note", text=way_told(self.found, self._labels), status=True))
        self._draw()
        return path

    def _pressed(self, event: Event) -> None:
        if event.key not in self.found.entities:
            return
        if event.kind == "way" and self._start in self.found.entities:
            self.way(self._start, event.key)
        elif event.kind == "expand":
            self.expand(event.key)
        elif event.kind in ("choose", "start"):
            self.chosen = event.key
            self._start = event.key if event.kind == "start" else self._start
            self._draw()

    def _draw(self) -> None:
        self.graph.show(knowledge_graph(self.found, self._labels, self.chosen) if self.found.entities else BLANK)
        self.card.show(entity_card(self.found, self.chosen, self._labels, self._start))


class Futures:
    """The views of a bench next to the work on its run.

    Args:
        bench: whose views they are.
    """

    def __init__(self, bench: Any):
        self._bench, self._wb, labels = bench, bench.wb, bench.labels
        self.forks, self.compare, self.knowledge = Forks(labels), Compare(labels), Explore(labels)
        self._compared: list[str] = []
        self._explored = ""
        self._regions = {
            "runs": self.forks.region,
            "compare": self.compare.region,
            "knowledge": self.knowledge.region,
        }
        self.region = ipywidgets.VBox(list(self._regions.values())).add_class("wb-futures")
        for view in (self.forks, self.compare):
            view.on_asked(lambda asked: bench.act(lambda: self._do(asked)))

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
        elif run and document and self._explored != (explored := f"{run.run_id} {document['status']}"):
            self._explored = explored
            self.knowledge.show(run)

    def _do(self, asked: Data) -> None:
        if asked["do"] == "open":
            self._bench.put(self._wb.run(*asked["runs"]))
        elif asked["do"] != "graft":  # runs side by side, or the same in another order
            self._compared = asked["runs"]
            self._bench.view = "compare"
        elif new := self.compare.graft(asked):
            self._bench.put(new)


def _relatives(run: Run | None) -> list[str]:
    """Return the run from which this one was made, and this one; or this one and what was made of it last."""
    if run is None:
        return []
    if run.origin:
        return [run.origin, run.run_id]
    children = [node["run_id"] for node in run.tree().nodes if node["parent"] == run.run_id]
    return [run.run_id, children[-1]] if children else []
