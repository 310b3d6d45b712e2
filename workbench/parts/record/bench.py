"""A recorded graph in a cell: run it, answer what it asks, look at the run, and fork it at any effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets
from markupsafe import escape

from workbench.errors import InvalidAnswer, RunError, WorkbenchError
from workbench.parts.record.questions import Question, read_json
from workbench.views.outline import outline
from workbench.views.render import page_html
from workbench.widgets.form import Fields
from workbench.widgets.panel import labels_in

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph
    from workbench.parts.record.run import GraphRun


class GraphBench(ipywidgets.VBox):
    """A bench for one recorded graph.

    Attributes:
        run: the run that is shown; None before the first.
    """

    run: GraphRun | None = None

    def __init__(self, agent: RecordedGraph):
        self._labels = labels_in(None, agent._wb.settings.lang, message="")
        self.agent = agent
        self.input, self.result = self._text("input_hint"), self._text("result_hint")
        self.runs = ipywidgets.Dropdown(options=[], description=self._labels("record_runs"))
        self.place = ipywidgets.Dropdown(options=[], description=self._labels("record_at"))
        self.status, self.state, self.graph, self.timeline = (ipywidgets.HTML() for _ in range(4))
        self.questions = ipywidgets.VBox()
        fork = ipywidgets.VBox([ipywidgets.HBox([self.place, self._button("fork", self._fork)]), self.result])
        tabs = ipywidgets.Tab([ipywidgets.VBox([self.state, fork]), self.graph, self.timeline])
        tabs.titles = tuple(self._labels(f"record_{name}") for name in ("state", "graph", "timeline"))
        first = ipywidgets.HBox([self._button("start", self._start, "primary"), self.runs])
        super().__init__([self.input, first, self.status, self.questions, tabs])
        self.runs.observe(self._choose, "value")
        for run in agent.runs()[:1]:
            self.show(run)

    def _text(self, hint: str) -> ipywidgets.Textarea:
        layout = ipywidgets.Layout(width="100%", height="3.5em")
        return ipywidgets.Textarea(placeholder=self._labels(f"record_{hint}"), layout=layout)

    def _button(self, word: str, press: Callable[[], GraphRun], style: str = "") -> ipywidgets.Button:
        button = ipywidgets.Button(description=self._labels(f"record_{word}"), button_style=style)
        button.on_click(lambda _: self._act(press))
        return button

    def _act(self, work: Callable[[], GraphRun]) -> None:
        """Do what a button does, and show the run or why it was refused."""
        self.status.value, why = str(escape(self._labels("record_running"))), ""
        try:
            runs = [work()]
        except Exception as error:  # the graph's own code raises what it likes
            runs = [self.run] if self.run and isinstance(error, WorkbenchError) else self.agent.runs()[:1]
            why = f"{type(error).__name__}: {error}"
        for run in runs:
            self.show(run)
        if why:
            self.status.value = f'<span role="alert">{escape(why)}</span>'

    def _start(self) -> GraphRun:
        return self.agent.ask(read_json(self.input.value))

    def _fork(self) -> GraphRun:
        assert self.run is not None
        changed = {"at": self.place.value, "result": read_json(self.result.value)} if self.result.value.strip() else {}
        return self.run.fork(**changed)

    def _choose(self, change: Mapping[str, Any]) -> None:
        if change["new"] and (self.run is None or change["new"] != self.run.run_id):
            self.show(self.agent.run(change["new"]))

    def show(self, run: GraphRun) -> None:
        """Show a run."""
        self.run, questions, document = run, run.questions, run.to_dict()
        self.runs.options = [(f"{run.run_id} · {run.status}", run.run_id) for run in self.agent.runs()]
        self.runs.value = run.run_id
        self.status.value = str(escape(repr(run).strip("<>")))
        self.questions.children = [self._question(run, question) for question in questions]
        if run.status == "paused" and not questions:
            self.questions.children = [self._button("continue", lambda: run.answer(None), "primary")]
        self.state.value = page_html(outline(document, ("answer", "plan")), self._labels)
        self.timeline.value = run.timeline._repr_html_()
        try:
            self.graph.value = run.dag._repr_html_()
        except RunError as error:  # the graph is not loaded
            self.graph.value = str(escape(str(error)))
        self.place.options = list(dict.fromkeys(effect["at"] for effect in document["effects"]))

    def _question(self, run: GraphRun, question: Question) -> ipywidgets.Widget:
        request = {"review": question.request, "graph": "", "message": run.message}
        head, text, form = page_html(outline(request, ["review"]), self._labels), self._text("answer_hint"), None
        [action], [config] = question.request["action_requests"], question.request["review_configs"]
        if "edit" in question.decisions:
            form = Fields(config["args_schema"], self._labels)
            form.show(action["args"], again=True)

        def decide(decision: str) -> Callable[[], GraphRun]:
            return lambda: run.answer({question.id: question.answer(decision, filled(), text.value)})

        def filled() -> Any:
            if form and form.faults:
                raise InvalidAnswer("; ".join(f"{path}: {fault}" for path, fault in form.faults.items()))
            return form.value if form else None

        buttons = [self._button(decision, decide(decision)) for decision in question.decisions]
        return ipywidgets.VBox([ipywidgets.HTML(head), *([form.box] if form else []), text, ipywidgets.HBox(buttons)])


def bench_of_run(run: GraphRun) -> GraphBench:
    """Return the bench of a run's graph, open at it."""
    bench = GraphBench(run.agent)
    bench.show(run)
    return bench
