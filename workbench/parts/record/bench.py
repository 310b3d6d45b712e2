"""A recorded graph in a cell: run it, answer what it asks, look at the run, and fork it at any effect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets
from markupsafe import escape

from workbench.errors import InvalidAnswer, RunError, WorkbenchError
from workbench.parts.record.digests import plain
from workbench.parts.record.questions import Question, read_json
from workbench.parts.record.story import words
from workbench.views.labels import Labels
from workbench.widgets.form import Fields

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph
    from workbench.parts.record.run import GraphRun

LONGEST = 4000
"""Characters of a value that are shown."""


class GraphBench(ipywidgets.VBox):
    """A bench for one recorded graph.

    Attributes:
        run: the run that is shown; None before the first.
    """

    def __init__(self, agent: RecordedGraph):
        self.agent = agent
        self.run: GraphRun | None = None
        self._words = words(agent.language)
        self.input = self._text("input_hint")
        self.runs = ipywidgets.Dropdown(options=[], description=self._words["runs"])
        self.status, self.state = ipywidgets.HTML(), ipywidgets.HTML()
        self.questions = ipywidgets.VBox()
        self.graph, self.timeline, self.effects = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.place = ipywidgets.Dropdown(options=[], description=self._words["at"])
        self.result = self._text("result_hint")
        fork = ipywidgets.VBox([ipywidgets.HBox([self.place, self._button("fork", self._fork)]), self.result])
        tabs = ipywidgets.Tab([self.state, self.graph, self.timeline, ipywidgets.VBox([self.effects, fork])])
        tabs.titles = tuple(self._words[name] for name in ("state", "graph", "timeline", "effects"))
        first = ipywidgets.HBox([self._button("start", self._start, "primary"), self.runs])
        super().__init__([self.input, first, self.status, self.questions, tabs])
        self.runs.observe(self._choose, "value")
        runs = agent.runs()
        if runs:
            self.show(runs[0])

    def _text(self, hint: str) -> ipywidgets.Textarea:
        layout = ipywidgets.Layout(width="100%", height="3.5em")
        return ipywidgets.Textarea(placeholder=self._words[hint], layout=layout)

    def _button(self, word: str, press: Callable[[], GraphRun], style: str = "") -> ipywidgets.Button:
        button = ipywidgets.Button(description=self._words[word], button_style=style)
        button.on_click(lambda _: self._act(press))
        return button

    def _act(self, work: Callable[[], GraphRun]) -> None:
        """Do what a button does, and show the run or why it was refused."""
        self.status.value = str(escape(self._words["running"]))
        try:
            self.show(work())
        except (WorkbenchError, ValueError) as error:
            if self.run is not None:
                self.show(self.run)
            self.status.value = f'<span role="alert">{escape(str(error))}</span>'
        except Exception as error:  # raised by the graph's own code
            runs = self.agent.runs()
            if runs:
                self.show(runs[0])
            self.status.value = f'<span role="alert">{escape(f"{type(error).__name__}: {error}")}</span>'

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
        self.run = run
        self.runs.options = [(f"{run.run_id} · {run.status}", run.run_id) for run in self.agent.runs()]
        self.runs.value = run.run_id
        self.status.value = str(escape(repr(run).strip("<>")))
        self.questions.children = [self._question(question) for question in run.questions]
        if run.status == "paused" and not run.questions:
            self.questions.children = [self._button("continue", lambda: run.answer(None), "primary")]
        self.state.value = _pretty(run.state)
        self.timeline.value = run.timeline._repr_html_()
        try:
            self.graph.value = run.dag._repr_html_()
        except RunError as error:  # the graph is not loaded
            self.graph.value = str(escape(str(error)))
        frame = run.to_frame()
        columns = ["at", "kind", "outcome", "source", "seconds", "tokens"]
        self.effects.value = frame[columns].round(3).to_html(escape=True, index=False) if len(frame) else ""
        self.place.options = list(dict.fromkeys(frame["at"])) if len(frame) else []

    def _question(self, question: Question) -> ipywidgets.Widget:
        title = self._words["asks"].format(at=question.at)
        head = ipywidgets.HTML(f"<b>{escape(title)}</b>{_pretty(question.value)}")
        text, form = self._text("answer_hint"), None
        [action], [config] = question.request["action_requests"], question.request["review_configs"]
        if "edit" in question.decisions:
            form = Fields(config["args_schema"], Labels("zh" if self.agent.language.startswith("zh") else "en"))
            form.show(action["args"], again=True)

        def give(answer: Callable[[], Any]) -> Callable[[], GraphRun]:
            return lambda: self.agent.run(self._shown_id()).answer({question.id: answer()})

        def filled() -> Any:
            if form and form.faults:
                raise InvalidAnswer("; ".join(f"{path}: {fault}" for path, fault in form.faults.items()))
            return form.value if form else None

        def decide(decision: str) -> Callable[[], GraphRun]:
            return give(lambda: question.answer(decision, filled(), text.value))

        buttons = [self._button("answer", give(lambda: read_json(text.value)), "primary")]
        buttons += [self._button(decision, decide(decision)) for decision in question.decisions]
        return ipywidgets.VBox([head, *([form.box] if form else []), text, ipywidgets.HBox(buttons)])

    def _shown_id(self) -> str:
        assert self.run is not None
        return self.run.run_id


def _pretty(value: Any) -> str:
    text = json.dumps(plain(value), ensure_ascii=False, indent=1)
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    return f'<pre style="white-space:pre-wrap;max-height:24em;overflow:auto">{escape(cut)}</pre>'
