"""The question form: the message, the knowledge base, where to pause, and examples from the knowledge base itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets

from workbench.state import REVIEW_POINTS
from workbench.views.labels import Labels


class AskForm(traitlets.HasTraits):
    """Data in: knowledge bases by name with their size, review points, examples. Out: ``asked``.

    Attributes:
        asked: ``{"message", "kb", "review", "n"}``, a fresh one each time somebody asks.
        region: the widget.
    """

    asked = traitlets.Dict()

    def __init__(self, labels: Labels, *, kb: str | None, review: Iterable[str]):
        super().__init__()
        self._labels, self._n = labels, 0
        self.message = ipywidgets.Textarea(
            description=labels("question"), rows=2, layout=ipywidgets.Layout(width="auto")
        )
        self.message.add_class("wb-ask-message")
        self.kb = ipywidgets.Dropdown(
            description=labels("knowledge_base"), options=[(labels("kb_any"), "")], value="", disabled=True
        )
        chosen = set(review)
        self.points = {
            point: ipywidgets.Checkbox(value=point in chosen, description=labels(f"point_{point}"), indent=False)
            for point in REVIEW_POINTS
        }
        self.button = ipywidgets.Button(description=labels("ask_now"))
        for cls in ("wb-primary", "wb-ask-button"):
            self.button.add_class(cls)
        self.button.on_click(lambda _: self.submit())
        self.examples = ipywidgets.HBox()
        self._wanted = kb or ""
        points = ipywidgets.HBox([ipywidgets.Label(labels("pause_at")), *self.points.values()])
        points.add_class("wb-ask-points")
        last = ipywidgets.HBox([self.button, self.examples])
        last.add_class("wb-ask-last")
        self.region = ipywidgets.VBox([self.message, self.kb, points, last])
        self.region.add_class("wb-ask")

    def show(self, bases: Mapping[str, int], examples: Sequence[str], follows: bool) -> None:
        """Show what can be asked: knowledge bases with their documents, example questions, and whether it goes on."""
        labels = self._labels
        options = [(labels("kb_any"), "")] if len(bases) != 1 else []
        options += [(labels("kb_choice", name=name, n=f"{count:,}"), name) for name, count in bases.items()]
        if tuple(options) != tuple(self.kb.options):
            self.kb.options = options or [(labels("kb_any"), "")]
        known = [value for _, value in self.kb.options]
        self.kb.value, self.kb.disabled = self.chosen(known) or known[0], len(known) < 2
        self.message.placeholder = (
            labels("follow_up") if follows else labels("ask_placeholder", example=examples[0] if examples else "…")
        )
        if [button.tooltip for button in self.examples.children] != list(examples):
            self.examples.children = [self._example(text) for text in examples]

    def chosen(self, known: Collection[str]) -> str:
        """The knowledge base that is chosen, or that the bench was opened for, if it is one of these."""
        kept = self.kb.value or self._wanted
        return kept if kept in known else ""

    def submit(self) -> None:
        """Ask what is written there; an empty question does nothing."""
        message = self.message.value.strip()
        if not message:
            return
        self._n += 1
        points = [point for point, box in self.points.items() if box.value]
        self.asked = {"message": message, "kb": self.kb.value or None, "review": points, "n": self._n}

    def clear(self) -> None:
        """Forget what is written there."""
        self.message.value = ""

    def _example(self, text: str) -> Any:
        button = ipywidgets.Button(description=text, tooltip=text)
        button.add_class("wb-quiet")

        def take(_: Any) -> None:
            self.message.value = text

        button.on_click(take)
        return button
