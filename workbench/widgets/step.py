"""The form of one step of a plan: every field of it, with what is wrong beside each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from workbench.plans import PlanStep
from workbench.ports import Tool
from workbench.views.labels import Labels
from workbench.views.page import BLANK, Picture, button, code, el, safe
from workbench.widgets.controls import as_json, names, text, toggle
from workbench.widgets.form import Field, Fields, Said
from workbench.widgets.panel import Pick, display_if

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
        self.as_json = Field("tool_input", as_json(labels, dict), labels, lambda _: self._typed_json(), title="JSON")
        words = [(labels("form_as_form"), True), (labels("form_as_json"), False)]
        self.mode = ipywidgets.ToggleButtons(options=words, tooltips=[labels("form_input")] * 2)
        self.mode.observe(lambda _: self._switched(), "value")
        self.inputs = Fields({}, labels)
        self._holder = ipywidgets.VBox()
        title = ipywidgets.HTML(el("span", labels("form_input"), cls="wb-label"))
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
        }
        numbers = {name: {"type": "number" if name == "budget.timeout_s" else "integer"} for name in _NUMBERS}
        properties: dict[str, Any] = {**{name: {} for name in own}, "tool": {"enum": list(self._tools)}, **numbers}
        return Fields(
            {"properties": properties, "required": list(properties)},
            labels,
            lambda name: self._heard(name, self.fields[name].value),
            title=lambda name: labels(f"form_{name.removeprefix('budget.')}"),
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
        self.as_json.show(step.tool_input, anew)
        self._locked = locked
        for part in (self._form, self.inputs, self.as_json):
            part.disable(bool(locked))
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
        bar = [el("h3", code(safe(step.step_id, 120)), cls="wb-title wb-cut"), el("span", cls="wb-push"), do]
        self.head.show(Picture(el("div", bar, cls="wb-bar")))
        why = Picture(el("div", labels(f"form_locked_{locked}"), cls="wb-dim wb-locked")) if locked else BLANK
        self._note.show(why)

    @property
    def faults(self) -> dict[str, str]:
        """What was typed and is no value, in words, by field."""
        if not self.mode.value:
            return {"tool_input": self.as_json.fault} if self.as_json.fault else {}
        return {**self._form.faults, **{_INPUT + path: fault for path, fault in self.inputs.faults.items()}}

    def say(self, said: Mapping[str, Sequence[Said]], runnable: bool) -> None:
        """Show messages beside the fields, by field as ``plans.problem`` names them.

        Args:
            said: the messages.
            runnable: whether the plan can be run.
        """
        self._form.say(said)
        of_input = {path.removeprefix(_INPUT): told for path, told in said.items() if path.startswith(_INPUT)}
        beyond = self.inputs.say(of_input)
        if not self.mode.value:
            beyond = [one for told in of_input.values() for one in told]
        self.as_json.say([*said.get("tool_input", ()), *beyond])
        self._switched()
        shut = {"only": bool(self._locked), "to": bool(self._locked), "rest": self._locked in ("running", "ended")}
        buttons = [button(self._labels(f"scope_{s}"), s, disabled=shut[s] or not runnable) for s in SCOPES]
        hint = el("div", self._labels("scope_hint"), cls="wb-dim")
        self.foot.show(Picture(el("div", el("div", buttons, cls="wb-bar"), hint, cls="wb-step-foot")))

    def _inputs_of(self, tool: str) -> Fields:
        if tool not in self._forms:
            schema = self._tools[tool].input_schema.model_json_schema() if tool in self._tools else {}
            heard = lambda _: self._heard("tool_input", self.inputs.value)  # noqa: E731 - one line says it
            self._forms[tool] = Fields(schema, self._labels, heard, without=_SELDOM)
        return self._forms[tool]

    def _typed_json(self) -> None:
        self._heard("tool_input", self.as_json.value)

    def _switched(self) -> None:
        form = self.mode.value
        display_if(self._holder, form)
        display_if(self.as_json.box, not form or self.as_json.said)
        display_if(self.as_json.control.widget, not form)


def _value(step: PlanStep, name: str) -> Any:
    return getattr(step.budget, name.removeprefix("budget.")) if name in _BUDGET else getattr(step, name)
