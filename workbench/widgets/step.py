"""The form of one step of a plan: every field of it, with what is wrong next to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from workbench.plans import PlanBudget, PlanStep
from workbench.ports import Tool
from workbench.views.labels import Labels
from workbench.views.page import draw
from workbench.widgets.controls import Said, names, text, toggle
from workbench.widgets.form import Fields
from workbench.widgets.panel import Pick, display_if

SCOPES = ("only", "to", "rest")
_SELDOM = ("top_k", "kb_prefix")
"""Inputs that the step's budget and the run give anyway: shown when a step has them, or as JSON."""
_CONDITIONS = {"form_always": "always", "step_if_insufficient": "if_insufficient", "step_held": "held"}


class StepForm:
    """The fields of one step, by the schema of ``PlanStep`` and of the input of its tool.

    Args:
        labels: the words.
        tools: what a step may call, by name.
        heard: told the path of what a person changed, as ``budget.top_k``, and the value of the field.

    Attributes:
        box: the widget.
        head: the step's name; pressing tells ``duplicate``, ``remove`` and ``close``.
        foot: pressing tells a scope: ``only``, ``to``, ``rest``.
        form: the form; ``fields`` are its fields, by name.
    """

    def __init__(self, labels: Labels, tools: Mapping[str, Tool], heard: Callable[[str, Any], None]):
        self._labels, self._tools = labels, tools
        self._inputs: dict[str, Fields] = {}
        self._locked = ""
        self.head, self.foot = Pick(), Pick()
        schema = PlanStep.model_json_schema()
        schema["properties"]["tool"] = {"enum": list(tools)}

        def titled(name: str) -> str:
            return labels(f"form_{name}")

        budget = Fields(PlanBudget.model_json_schema(), labels, title=titled, blank={})
        own = {
            "step_id": text(ipywidgets.Text()),
            "condition": toggle([(labels(word), value) for word, value in _CONDITIONS.items()]),
            "depends_on": names(labels("form_depends_hint")),
            "tool_input": self._inputs_of(""),
            "budget": budget,
        }
        self.form = Fields(
            {**schema, "required": list(schema["properties"])},
            labels,
            lambda path: heard(path, self.fields[path.partition(".")[0]].value),
            title=titled,
            own=own,
        )
        self.fields = self.form.fields
        boxes = {name: field.box for name, field in self.fields.items()}
        numbers = [*(field.box for field in budget.fields.values()), boxes["priority"]]
        inside = [
            *(self.head, boxes["step_id"], boxes["objective"]),
            ipywidgets.HBox([boxes["tool"], boxes["condition"]]).add_class("wb-pair"),
            *(boxes["tool_input"], boxes["depends_on"]),
            ipywidgets.HBox(numbers).add_class("wb-numbers"),
            self.foot,
        ]
        self.box = ipywidgets.VBox(inside).add_class("wb-step-form")

    def show(self, step: PlanStep | None, locked: str = "", anew: bool = False) -> None:
        """Show a step, or nothing.

        Args:
            step: the step.
            locked: why it cannot be changed; empty when it can.
            anew: whether what is being typed is let go, since this is another step.
        """
        if step is None:
            display_if(self.box, False)
            return
        self.fields["tool_input"].adopt(self._inputs_of(step.tool))
        values = step.model_dump()
        if self.fields["step_id"].fault and not anew:
            values["step_id"] = self.fields["step_id"].value  # a name that was not given stays as it is typed
        self.form.show(values, anew)
        self._locked = locked
        self.form.disable(bool(locked))
        if step.tool in self._tools:
            self.fields["tool"].control.widget.tooltip = self._tools[step.tool].description
        self.head.show(draw("plan.step_head", labels=self._labels, step_id=step.step_id, locked=locked))
        display_if(self.box, True)  # not before it is filled: somebody may type at once

    def say(self, said: Mapping[str, Sequence[Said]], runnable: bool) -> None:
        """Show messages next to the fields, by path, and whether the plan can be run."""
        self.form.say(said)
        shut = {s: bool(self._locked) for s in SCOPES} | {"rest": self._locked in ("running", "ended")}
        scopes = [(scope, shut[scope] or not runnable) for scope in SCOPES]
        self.foot.show(draw("plan.step_foot", labels=self._labels, scopes=scopes))

    def _inputs_of(self, tool: str) -> Fields:
        if tool not in self._inputs:
            schema = self._tools[tool].input_schema.model_json_schema() if tool in self._tools else {}
            self._inputs[tool] = Fields(schema, self._labels, without=_SELDOM, blank={}, writable=True)
        return self._inputs[tool]
