"""The other views of the bench: runs and their forks, comparisons, decisions, the graph around the answer."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import ipywidgets

from workbench.errors import WorkbenchError
from workbench.runs.family import family
from workbench.runs.run import Run
from workbench.runs.stored import found_pieces, origin_of
from workbench.state import Data
from workbench.views.comparison import beside
from workbench.views.edits import decision_texts, fork_name
from workbench.views.knowledge import detail
from workbench.views.labels import Labels
from workbench.views.markup import Picture, draw, el
from workbench.views.render import page_html
from workbench.widgets.display import find_widget
from workbench.widgets.panel import Event, Panel, Pick, display_if
from workbench.widgets.runs import RunTable, letters


class Decisions(Panel):
    """The decisions of a run.

    It asks for a fork as ``Run.fork`` takes it: ``{"edits": {"at": review id}}``; where there was no decision, for one
    that pauses before its plan runs.
    """

    def __init__(self, labels: Labels):
        super().__init__(labels)
        self.region = Pick(listener=self._pressed)

    def show(self, document: Data) -> None:
        """Show the decisions of a run (``Run.to_dict()``)."""
        rows = {
            decision["review_id"]: draw(
                "futures.decision",
                self.labels,
                decision=decision,
                texts=decision_texts(decision, self.labels),
            )
            for decision in document["decisions"]
        }
        self.region.show(Picture(draw("futures.decisions", self.labels, document=document), rows))

    def _pressed(self, event: Event) -> None:
        if event.kind == "fork":
            self.ask(edits={"at": event.key} if event.key else {"review": ["plan", "reflect"]})


class Futures:
    """The views of a bench other than the work on its run.

    Args:
        bench: the bench.
    """

    def __init__(self, bench: Any):
        self._bench = bench
        self._wb = bench.wb
        labels = bench.labels
        self.runs = RunTable(labels, bench.wb)
        # by run the entities whose neighbours are shown; "" for those of the whole answer
        self._expanded = defaultdict[str, set[str]](set)
        self.knowledge = Pick(listener=self._choose)
        self.entity = Pick(listener=self._choose)
        self.compared = Pick(listener=self._pressed)
        self._compared = ("none yet", list[str]())
        self.below = ipywidgets.VBox()
        self._regions = {
            "runs": self.runs.region,
            "compare": self.compared,
            "knowledge": ipywidgets.VBox([self.knowledge, self.entity]),
        }
        self.region = ipywidgets.VBox([*self._regions.values(), self.below]).add_class(
            "wb-futures"
        )
        self.runs.on_request(lambda request: bench.act(lambda: self._handle_request(request)))

    def show(self, view: str, run: Run | None, document: Data | None) -> None:
        """Show one of the views."""
        for name, region in self._regions.items():
            display_if(region, name == view)
        if view == "runs":
            self.runs.show(run.run_id if run else "")
        elif view == "compare":
            self._show_family(run)
        elif run and document and document["status"] != "running":
            self._show_knowledge(run)

    def _show_family(self, run: Run | None) -> None:
        """Show the tree of forks around a run, and two to four runs next to each other or an offer of some."""
        labels = self._bench.labels
        lines = family(run) if run else []
        for line in lines:
            line |= self.runs.details(line)
            line["name"] = fork_name(line["changes"], labels)
        open_id = self._bench.run_id
        at, ids = self._compared
        if at != open_id:
            origin = origin_of(run) if run else None
            forks = [line["run_id"] for line in lines if line["origin"] == open_id]
            ids = [origin, open_id] if origin else [open_id, *forks[-1:]]
            if self.runs.marked[1:]:
                ids = self.runs.marked
        by_letter = letters(self._wb, ids)
        drawn = draw("futures.tree", labels, lines=lines, here=open_id, letters=by_letter)
        if by_letter:
            blocks = beside(self._wb.compare(*by_letter).to_dict(), labels)
            # those of the tree have their letters there
            blocks = blocks[{*by_letter} <= {line["run_id"] for line in lines} :]
            drawn += page_html(blocks, labels, "wb-worked wb-part wb-columns")
        else:
            rows = self._wb.runs.lines(7)
            drawn += draw("futures.offered", labels, rows=rows, here=open_id, name=rows.name)
        self.compared.show(drawn)

    def _pressed(self, event: Event) -> None:
        if event.kind in ("open", "choose"):
            self._bench.act(lambda: self._open(event.key))
        elif event.kind == "with":
            self.runs.ask(do="compare", runs=[self._bench.run_id, event.key])

    def _open(self, run_id: str) -> None:
        """Open a run on the bench; one of a recorded graph on its own, below."""
        run = self._wb.run(run_id)
        widget = find_widget(run)
        self.below.children = [widget] if widget else []
        if widget is None:
            self._bench.put(run)

    def _choose(self, event: Event) -> None:
        """Show below the graph what states the relations of an entity, or one of them; more or fewer neighbours."""
        if not (run := self._bench.run):
            return
        expanded = self._expanded[run.run_id]
        if event.kind in ("nearby", "neighbours"):
            expanded ^= {event.key}
            self._show_knowledge(run)
        if event.key:
            self._show_detail(run, event.key)
            self.entity.reveal("detail")

    def _show_detail(self, run: Run, key: str = "") -> None:
        expanded = self._expanded[run.run_id]
        graph = run._neighbourhood(expanded)
        shown = graph if key or "" in expanded else graph.core(expanded)
        stated = detail(
            shown,
            self._bench.labels,
            run.answer,
            key,
            base=self._wb.knowledge.get(run.state["kb_prefix"]),
            pieces=found_pieces(run),
            expanded=expanded,
        )
        self.entity.show(stated)

    def _show_knowledge(self, run: Run) -> None:
        """Show the graph around the answer of a run, or why its knowledge base is missing."""
        self.entity.show()
        expanded = self._expanded[run.run_id]
        nearby = "" in expanded
        try:
            picture = str(run.knowledge(nearby or expanded).markup)
            self.knowledge.show(
                draw("svg.searched", self._bench.labels, picture=picture, nearby=nearby)
            )
            self._show_detail(run)
        except WorkbenchError as error:
            self.knowledge.show(el("p.wb-part.wb-dim", str(error)))

    def _handle_request(self, request: Data) -> None:
        if request["do"] == "open":
            self._open(request["runs"][0])
        else:
            self._compared = (self._bench.run_id, request["runs"])
            self._bench.view = "compare"
