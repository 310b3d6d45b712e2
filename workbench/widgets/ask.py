"""The question form: the message, the knowledge base, where to pause, and examples from the knowledge base itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import ipywidgets

from workbench.settings import ROLES
from workbench.state import REPORT_POINTS, REVIEW_POINTS, ReviewPoint
from workbench.views.labels import Labels
from workbench.widgets.panel import Panel, display_if, on_change, press_button

EFFORTS = ("minimal", "low", "medium", "high")


class AskForm(Panel):
    """The form of a question, which asks for ``message``, ``kb``, ``review``, ``as_of``, ``models`` and ``report``.

    Args:
        labels: the words.
        kb: the knowledge base that is chosen at first.
        review: the points at which to pause that are ticked at first.
        models: names of models to choose from.
    """

    def __init__(
        self,
        labels: Labels,
        *,
        kb: str | None,
        review: Collection[str],
        models: Sequence[str] = (),
    ):
        super().__init__(labels)
        self.message = ipywidgets.Textarea(description=labels("question"), rows=2)
        self.message.add_class("wb-ask-message")
        self.kb = ipywidgets.Dropdown(description=labels("knowledge_base"))
        self.points = {
            point: ipywidgets.Checkbox(
                value=point in review, description=labels(f"point_{point}"), indent=False
            )
            for point in REPORT_POINTS
        }
        self.report = ipywidgets.Checkbox(
            False,
            description=labels("as_report"),
            tooltip=labels("ask_report_told"),
            indent=False,
        )
        on_change(self.report, self._show_points)
        self._show_points()
        self.button = press_button(labels("ask_now"), self.submit, "wb-primary")
        self.examples = ipywidgets.HBox().add_class("wb-examples")
        self.as_of = ipywidgets.Text(
            description=labels("as_of"),
            placeholder=labels("as_of_placeholder"),
            tooltip=labels("as_of_why"),
        )
        self.model = ipywidgets.Combobox(
            description=labels("ask_model"),
            options=models,
            placeholder=labels("ask_effort_as_set"),
            tooltip=labels("ask_model_told"),
        )
        roles = [(labels(f"role_{role}"), role) for role in ("all", *ROLES)]
        self.role = ipywidgets.Dropdown(description=labels("ask_role"), options=roles)
        efforts = [(labels("ask_effort_as_set"), ""), *((name, name) for name in EFFORTS)]
        self.effort = ipywidgets.Dropdown(
            description=labels("ask_effort"), options=efforts, disabled=True
        )
        self._models: dict[str, tuple[str, str]] = {}
        on_change(self.role, self._show_model)
        for control in (self.model, self.effort):
            on_change(control, self._choose_model)
        self._wanted = kb or ""
        points = ipywidgets.HBox([ipywidgets.Label(labels("pause_at")), *self.points.values()])
        # Of a follow-up they are shown while one of them has the focus.
        more = press_button(labels("ask_options"), self.as_of.focus, "wb-quiet", "wb-ask-more")
        first = ipywidgets.HBox([self.button, self.report, more, self.examples])
        options = ipywidgets.HBox(
            [self.kb, self.as_of, self.role, self.model, self.effort]
        ).add_class("wb-filters")
        inside = [
            self.message,
            first.add_class("wb-ask-go"),
            points.add_class("wb-ask-points"),
            options,
        ]
        self.region = ipywidgets.VBox(inside).add_class("wb-ask")

    def show(self, bases: Mapping[str, int], examples: Sequence[str], follows: bool) -> None:
        """Show the knowledge bases with their number of documents, and example questions."""
        labels = self.labels
        options = [
            (labels("kb_choice", name=name, n=f"{count:,}"), name)
            for name, count in bases.items()
        ]
        if len(bases) != 1:
            options.insert(0, (labels("kb_any"), ""))
        if tuple(options) != self.kb.options:
            self.kb.options = options
        names = [name for _, name in options]
        self.kb.value, self.kb.disabled = self.chosen(names) or names[0], len(names) < 2
        self.message.placeholder = labels("follow_up" if follows else "ask_placeholder")
        if [button.tooltip for button in self.examples.children] != list(examples):
            self.examples.children = [
                press_button(
                    text, partial(setattr, self.message, "value", text), "wb-quiet", tooltip=text
                )
                for text in examples
            ]

    def chosen(self, names: Collection[str]) -> str:
        """Return the chosen knowledge base, or that of the bench, if it is one of these."""
        name = self.kb.value or self._wanted
        return name if name in names else ""

    def submit(self) -> None:
        """Ask the question, unless it is empty."""
        if message := self.message.value.strip():
            points = [point for point in self._shown_points() if self.points[point].value]
            self.ask(
                message=message,
                kb=self.kb.value or None,
                review=points,
                as_of=self.as_of.value.strip(),
                report=self.report.value,
                models=self.models,
            )

    @property
    def models(self) -> dict[str, str]:
        """Return the model of each role for which one was chosen, with the effort."""
        return {
            role: f"{name}?effort={effort}" if effort else name
            for role, (name, effort) in self._models.items()
            if name
        }

    def _choose_model(self) -> None:
        self._models[self.role.value] = self.model.value.strip(), self.effort.value
        self.effort.disabled = not self.model.value.strip()

    def _show_model(self) -> None:
        self.model.value, self.effort.value = self._models.get(self.role.value, ("", ""))

    def _shown_points(self) -> Sequence[ReviewPoint]:
        return REPORT_POINTS if self.report.value else REVIEW_POINTS

    def _show_points(self) -> None:
        """Show the review points of a report only for a report."""
        for point, box in self.points.items():
            display_if(box, point in self._shown_points())
