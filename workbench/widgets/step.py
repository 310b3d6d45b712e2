"""The form of one step of a plan: every field of it, with what is wrong beside each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from workbench.plans import PlanStep
from workbench.ports import Tool
from workbench.views.labels import Labels
from workbench.views.page import NOTHING, button, code, el, safe
from workbench.widgets.controls import as_json, names, text, toggle
from workbench.widgets.form import Fields, Said
from workbench.widgets.panel import Pick, display_if, on_change

SCOPES = ("only", "to", "rest")
_BUDGET = ("budget.top_k", "budget.timeout_s", "budget.max_retries", "budget.max_evidence_count")
_NUMBERS = (*_BUDGET, "priority")
_INPUT = "tool_input."
_SELDOM = ("top_k", "kb_prefix")
"""Inputs that the step's budget and the run give anyway: shown when a step has them, or as JSON."""


class StepForm:
    """The fields of one step.

    Args:
        labels: the words.
        tools: what a step may call, by name.
        heard: told the field and its value when somebody changed one: ``objective``, ``budget.top_k``, ``tool_input``.

    Attributes:
        box: the widget.
        head: the step's name; pressing tells ``duplicate``, ``remove`` and ``close``.
        foot: pressing tells a scope: ``only``, ``to``, ``rest``.
        fields: the fields, by name.
        as_json: the whole input as JSON.
        mode: whether the input is a form (True) or JSON.
        inputs: the form of the input of the tool that the step has.
    """

    def __init__(self, labels: Labels, tools: Mapping[str, Tool], heard: Callable[[str, Any], None]):
        self._labels, self._tools, self._heard = labels, tools, heard
        self._forms: dict[str, Fields] = {}
        self._locked = ""
        self.head, self.foot, self._note = Pick(), Pick(), Pick()
        self._form = self._step_form()
        self.fields = self._form.fields
        self.as_json = self.fields["tool_input"]
        words = [(labels("form_as_form"), True), (labels("form_as_json"), False)]
        self.mode = ipywidgets.ToggleButtons(options=words, tooltips=[labels("form_input")] * 2)
        on_change(self.mode, self._switched)
        self.inputs = Fields({}, labels)
        self._holder = ipywidgets.VBox()
        title = ipywidgets.HTML(el("span.wb-label", labels("form_input")))
        inside = [
            *(self.head, self._note, self.fields["step_id"].box, self.fields["objective"].box),
            self._row("wb-pair", ("tool", "condition")),
            ipywidgets.HBox([title, self.mode]).add_class("wb-input-title"),
            *(self._holder, self.as_json.box, self.fields["depends_on"].box),
            self._row("wb-numbers", _NUMBERS),
            self.foot,
        ]
        self.box = ipywidgets.VBox(inside).add_class("wb-step-form")
        self._switched()

    def _step_form(self) -> Fields:
        labels = self._labels
        conditions = {"form_always": "always", "step_if_insufficient": "if_insufficient", "step_held": "held"}
        own = {
            "step_id": text(ipywidgets.Text()),
            "objective": text(ipywidgets.Textarea(rows=2)),
            "condition": toggle([(labels(word), value) for word, value in conditions.items()]),
            "depends_on": names(labels("form_depends_hint")),
            "tool_input": as_json(labels, dict),
        }
        numbers = {name: {"type": "number" if name == "budget.timeout_s" else "integer"} for name in _NUMBERS}
        properties: dict[str, Any] = {**{name: {} for name in own}, "tool": {"enum": list(self._tools)}, **numbers}
        return Fields(
            {"properties": properties, "required": list(properties)},
            labels,
            lambda name: self._heard(name, self.fields[name].value),
            title=lambda name: "JSON" if name == "tool_input" else labels(f"form_{name.removeprefix('budget.')}"),
            own=own,
        )

    def _row(self, cls: str, fields: Sequence[str]) -> Any:
        return ipywidgets.HBox([self.fields[name].box for name in fields]).add_class(cls)

    # what it shows

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
        self.inputs = self._inputs_of(step.tool)
        if self._holder.children != (self.inputs.box,):
            self._holder.children = (self.inputs.box,)
            anew = True
        values = {name: _value(step, name) for name in self.fields}
        if self.fields["step_id"].fault and not anew:
            values["step_id"] = self.fields["step_id"].value  # a name that was not given stays as it is typed
        self._form.show(values, anew)
        self.inputs.show(step.tool_input, anew)
        self._locked = locked
        self._form.disable(bool(locked))
        self.inputs.disable(bool(locked))
        if step.tool in self._tools:
            self.fields["tool"].control.widget.tooltip = self._tools[step.tool].description
        self._draw(step, locked)
        display_if(self.box, True)  # not before it is filled: somebody may type at once

    def _draw(self, step: PlanStep, locked: str) -> None:
        labels = self._labels
        do = [
            button(labels("form_duplicate"), "duplicate", cls="wb-quiet", disabled=locked in ("running", "ended")),
            button(labels("form_remove"), "remove", cls="wb-quiet", disabled=bool(locked)),
            button("×", "close", cls="wb-quiet", name=labels("form_close")),
        ]
        bar = [el("h3.wb-title.wb-cut", code(safe(step.step_id, 120))), el("span.wb-push"), do]
        self.head.show(el("div.wb-bar", bar))
        self._note.show(el("div.wb-dim.wb-locked", labels(f"form_locked_{locked}")) if locked else NOTHING)

    @property
    def faults(self) -> dict[str, str]:
        """What was typed and is no value, in words, by field."""
        own = self._form.faults
        if self.mode.value:
            own.pop("tool_input", None)
            own |= {_INPUT + path: fault for path, fault in self.inputs.faults.items()}
        return own

    def say(self, said: Mapping[str, Sequence[Said]], runnable: bool) -> None:
        """Show messages beside the fields, by field as ``plans.problem`` names them.

        Args:
            said: the messages.
            runnable: whether the plan can be run.
        """
        of_input = {path.removeprefix(_INPUT): told for path, told in said.items() if path.startswith(_INPUT)}
        beyond = self.inputs.say(of_input)
        if self.mode.value:
            own = {path: told for path, told in said.items() if not path.startswith(_INPUT)}
            said = {**own, "tool_input": [*said.get("tool_input", ()), *beyond]}
        self._form.say(said)
        self._switched()
        shut = {s: bool(self._locked) for s in SCOPES} | {"rest": self._locked in ("running", "ended")}
        buttons = [button(self._labels(f"scope_{s}"), s, disabled=shut[s] or not runnable) for s in SCOPES]
        hint = el("div.wb-dim", self._labels("scope_hint"))
        self.foot.show(el("div.wb-step-foot", el("div", buttons, cls="wb-bar"), hint))

    def _inputs_of(self, tool: str) -> Fields:
        if tool not in self._forms:
            schema = self._tools[tool].input_schema.model_json_schema() if tool in self._tools else {}
            heard = lambda _: self._heard("tool_input", self.inputs.value)  # noqa: E731 - one line says it
            self._forms[tool] = Fields(schema, self._labels, heard, without=_SELDOM)
        return self._forms[tool]

    def _switched(self) -> None:
        form = self.mode.value
        display_if(self._holder, form)
        display_if(self.as_json.box, not form or self.as_json.said)
        display_if(self.as_json.control.widget, not form)


def _value(step: PlanStep, name: str) -> Any:
    return getattr(step.budget, name.removeprefix("budget.")) if name in _BUDGET else getattr(step, name)
