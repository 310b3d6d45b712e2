"""The form of one step: every field of it, with what is wrong beside each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets

from workbench.context import Tool
from workbench.draw.page import Markup, Picture, button, code, el, safe
from workbench.labels import Labels
from workbench.plans import PlanStep
from workbench.widgets.controls import as_json, choice, line, names, number, text, toggle, whole
from workbench.widgets.fields import Field, Fields, Said
from workbench.widgets.pick import Pick

SCOPES = ("only", "to", "rest")
_BUDGET = ("top_k", "timeout_s", "max_retries", "max_evidence_count")
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
        self.fields = {name: self._field(name) for name in self._controls()}
        self.as_json = Field("tool_input", as_json(labels, dict), labels, lambda _: self._told_json(), title="JSON")
        words = [(labels("form_as_form"), True), (labels("form_as_json"), False)]
        self.mode = ipywidgets.ToggleButtons(options=words, tooltips=[labels("form_input")] * 2)
        self.mode.observe(lambda _: self._switched(), "value")
        self.inputs = Fields({}, labels)
        self._holder = ipywidgets.VBox()
        title = ipywidgets.HTML(el("span", labels("form_input"), cls="wb-label"))
        title_row = ipywidgets.HBox([title, self.mode])
        title_row.add_class("wb-input-title")
        budget = ipywidgets.HBox([self.fields[name].box for name in (*(f"budget.{n}" for n in _BUDGET), "priority")])
        pair = ipywidgets.HBox([self.fields["tool"].box, self.fields["condition"].box])
        budget.add_class("wb-numbers")
        pair.add_class("wb-pair")
        first = [self.fields[name].box for name in ("step_id", "objective")]
        last = [self.fields["depends_on"].box, budget, self.foot]
        inside = [self.head, self._note, *first, pair, title_row, self._holder, self.as_json.box, *last]
        self.box = ipywidgets.VBox(inside)
        self.box.add_class("wb-step-form")
        self._switched()

    def _controls(self) -> dict[str, Any]:
        labels = self._labels
        conditions = [
            (labels("form_always"), "always"),
            (labels("step_if_insufficient"), "if_insufficient"),
            (labels("step_held"), "held"),
        ]
        makers: dict[str, Any] = {
            "step_id": line,
            "objective": lambda: text(rows=2),
            "tool": lambda: choice([(name, name) for name in self._tools]),
            "condition": lambda: toggle(conditions),
            "depends_on": lambda: names(labels("form_depends_hint")),
            "budget.timeout_s": number,
        }
        return {**makers, **{f"budget.{name}": whole for name in _BUDGET if name != "timeout_s"}, "priority": whole}

    def _field(self, name: str) -> Field:
        title = self._labels(f"form_{name.removeprefix('budget.')}")
        return Field(name, self._controls()[name](), self._labels, self._told, title=title)

    # what it shows

    def show(self, step: PlanStep | None, locked: str = "", anew: bool = False) -> None:
        """Show a step, or nothing.

        Args:
            step: the step.
            locked: why it cannot be changed; empty when it can.
            anew: whether what is being typed is let go, since this is another step.
        """
        if step is None:
            self.box.layout.display = "none"
            return
        self.inputs = self._form(step.tool, step.tool_input)
        if self._holder.children != (self.inputs.box,):
            self._holder.children = (self.inputs.box,)
            anew = True
        for name, field in self.fields.items():
            if name != "step_id" or anew or not field.fault:
                field.show(_value(step, name), anew)
        self.inputs.show(step.tool_input, anew)
        self.as_json.show(step.tool_input, anew)
        self._locked = locked
        for field in (*self.fields.values(), self.as_json):
            field.disable(bool(locked))
        self.inputs.disable(bool(locked))
        if step.tool in self._tools:
            self.fields["tool"].control.widget.tooltip = self._tools[step.tool].description
        self._draw(step, locked)
        self.box.layout.display = None  # not before it is filled: somebody may type at once

    def _draw(self, step: PlanStep, locked: str) -> None:
        labels = self._labels
        do = [
            button(labels("form_duplicate"), "duplicate", cls="wb-quiet", disabled=locked in ("running", "ended")),
            button(labels("form_remove"), "remove", cls="wb-quiet", disabled=bool(locked)),
            button("×", "close", cls="wb-quiet", name=labels("form_close")),
        ]
        bar = [el("h3", code(safe(step.step_id, 120)), cls="wb-title wb-cut"), el("span", cls="wb-push"), do]
        self.head.show(Picture(el("div", bar, cls="wb-bar")))
        note = el("div", labels(f"form_locked_{locked}"), cls="wb-dim wb-locked") if locked else Markup()
        self._note.show(Picture(note))

    @property
    def faults(self) -> dict[str, str]:
        """What was typed and is no value, in words, by field."""
        if not self.mode.value:
            return {"tool_input": self.as_json.fault} if self.as_json.fault else {}
        typed = {_INPUT + path: fault for path, fault in self.inputs.faults.items()}
        return {**{name: field.fault for name, field in self.fields.items() if field.fault}, **typed}

    def say(self, said: Mapping[str, Sequence[Said]], runnable: bool) -> None:
        """Show messages beside the fields, by field as ``plans.problem`` names them.

        Args:
            said: the messages.
            runnable: whether the plan can be run.
        """
        for name, field in self.fields.items():
            field.say(said.get(name, ()))
        of_input = {path[len(_INPUT) :]: told for path, told in said.items() if path.startswith(_INPUT)}
        known = self.inputs.fields if self.mode.value else ()
        self.inputs.say(of_input)
        beyond = [one for path, told in of_input.items() if path.split(".")[0] not in known for one in told]
        self.as_json.say([*said.get("tool_input", ()), *beyond])
        self._switched()
        shut = {"only": bool(self._locked), "to": bool(self._locked), "rest": self._locked in ("running", "ended")}
        buttons = [button(self._labels(f"scope_{s}"), s, disabled=shut[s] or not runnable) for s in SCOPES]
        hint = el("div", self._labels("scope_hint"), cls="wb-dim")
        self.foot.show(Picture(el("div", el("div", buttons, cls="wb-bar"), hint, cls="wb-step-foot")))

    # what is typed

    def _form(self, tool: str, tool_input: Mapping[str, Any]) -> Fields:
        if tool not in self._forms:
            schema = self._tools[tool].input_schema.model_json_schema() if tool in self._tools else {}
            heard = lambda _: self._heard("tool_input", self.inputs.value)  # noqa: E731 - one line says it
            self._forms[tool] = Fields(schema, self._labels, heard, without=_SELDOM)
        return self._forms[tool]

    def _told(self, name: str) -> None:
        self._heard(name, self.fields[name].value)

    def _told_json(self) -> None:
        self._heard("tool_input", self.as_json.value)

    def _switched(self) -> None:
        told = self.as_json.said
        self._holder.layout.display = None if self.mode.value else "none"
        self.as_json.box.layout.display = "none" if self.mode.value and not told else None
        self.as_json.control.widget.layout.display = "none" if self.mode.value else None


def _value(step: PlanStep, name: str) -> Any:
    return getattr(step.budget, name.removeprefix("budget.")) if name.startswith("budget.") else getattr(step, name)
