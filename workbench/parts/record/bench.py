"""A recorded graph in a cell: run it, answer what it asks, look at the run, and fork it at any effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets
from markupsafe import escape

from workbench.errors import RunError, WorkbenchError
from workbench.parts.record.questions import read_json
from workbench.state import Data
from workbench.views.outline import outline
from workbench.views.render import page_html
from workbench.widgets.by_hand import ByHand
from workbench.widgets.panel import Root, display_if, labels_in, press_button
from workbench.widgets.review import Review

if TYPE_CHECKING:
    from workbench.parts.record.agent import GraphRun, RecordedGraph


class GraphBench(Root):
    """A bench for one recorded graph.

    Attributes:
        run: the run that is shown; None before the first.
    """

    run: Any = None

    def __init__(self, agent: RecordedGraph):
        labels = self._labels = labels_in(None, agent._wb.settings.lang, message="")
        self.agent = agent
        self.input = ipywidgets.Textarea(placeholder=labels("record_input_hint")).add_class(
            "wb-json"
        )
        self.start = press_button(
            labels("record_start"),
            lambda: self._act(lambda: agent.ask(read_json(self.input.value))),
            "wb-primary",
        )
        self.runs = ipywidgets.Dropdown(options=[], description=labels("record_runs"))
        self.status, self.state, self.graph, self.timeline = (ipywidgets.HTML() for _ in range(4))
        self.review = Review(labels, agent._wb.runs)
        self.by_hand = ByHand(labels)
        self.go_on = press_button(
            labels("record_continue"), lambda: self._act(lambda: self.run.answer(None))
        )
        self.question = ipywidgets.VBox([self.review.inside, self.review.dock])
        self.review.observe(lambda change: self._answer(change.new), "response")
        self.by_hand.on_request(
            lambda request: self._act(lambda: self.run.fork(**request["edits"]))
        )
        self.runs.observe(self._choose, "value")
        tabs = ipywidgets.Tab(
            [ipywidgets.VBox([self.state, self.by_hand.region]), self.graph, self.timeline]
        )
        tabs.titles = tuple(labels(f"record_{name}") for name in ("state", "graph", "timeline"))
        first = ipywidgets.HBox([self.start, self.runs])
        super().__init__(
            [self.input, first, self.status, self.question, self.go_on, tabs],
            lang=labels.html_lang,
        )
        for part in (self.question, self.go_on):
            display_if(part, False)
        for run in agent.runs()[:1]:
            self.show(run)

    def _act(self, work: Callable[[], GraphRun]) -> None:
        """Do what a button does, and show the run or why it was refused."""
        self.status.value, why = str(escape(self._labels("record_running"))), ""
        try:
            runs = [work()]
        except Exception as error:  # the graph's own code raises what it likes
            runs = (
                [self.run]
                if self.run and isinstance(error, WorkbenchError)
                else self.agent.runs()[:1]
            )
            why = f"{type(error).__name__}: {error}"
        for run in runs:
            self.show(run)
        if why:
            self.status.value = f'<span role="alert">{escape(why)}</span>'

    def _answer(self, answer: Any) -> None:
        if answer:  # an equal answer comes after an empty one
            self._act(lambda: self.run.answer_review(answer))

    def _choose(self, change: Data) -> None:
        if change["new"] and (self.run is None or change["new"] != self.run.run_id):
            self.show(self.agent.run(change["new"]))

    def show(self, run: GraphRun) -> None:
        """Show a run."""
        self.run = run
        document = run.to_dict()
        self.runs.options = [
            (f"{run.run_id} · {run.status}", run.run_id) for run in self.agent.runs()
        ]
        self.runs.value = run.run_id
        self.status.value = str(escape(repr(run).strip("<>")))
        display_if(self.question, document["review"])
        display_if(self.go_on, document["status"] == "paused" and not document["review"])
        if document["review"]:
            self.review.show(document)
        self.state.value = page_html(outline(document, ("answer", "plan")), self._labels)
        self.timeline.value = run.timeline._repr_html_()
        try:
            self.graph.value = run.dag._repr_html_()
        except RunError as error:  # the graph is not loaded
            self.graph.value = str(escape(str(error)))
        self.by_hand.show(run)


def bench_of_run(run: GraphRun) -> GraphBench:
    """Return the bench of a run's graph, open at it."""
    bench = GraphBench(run.agent)
    bench.show(run)
    return bench
