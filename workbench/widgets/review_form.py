"""What can be edited at a review point: a form from the request's schema, and what of it differs from the proposal."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import ipywidgets
from pydantic import ValidationError

from workbench import proposals
from workbench.draw.page import Picture, el, glyph
from workbench.labels import Labels
from workbench.plans import Plan
from workbench.widgets.fields import ABSENT, Fields, Said
from workbench.widgets.pick import Pick

Request = Mapping[str, Any]
Steps = Sequence[Mapping[str, Any]]
Heard = Callable[[], None]


class Form(Protocol):
    """The form of one review point."""

    @property
    def box(self) -> ipywidgets.VBox:
        """The widget."""

    @property
    def faults(self) -> int:
        """How many things in it cannot be sent."""

    def edits(self, plan: Mapping[str, Any] | None) -> dict[str, Any]:
        """What differs from the proposal, with the plan as it was edited beside this form."""


def form_of(
    request: Request, recorded: Mapping[str, Any] | None, labels: Labels, heard: Heard, ran: Collection[str] = ()
) -> Form:
    """The form of this request; of a point that is not known, every field of its schema. ``ran`` are ids of steps."""
    kind = proposals.kind(request)
    if kind in ("plan", "step"):
        return PlanForm(request, labels, heard)
    if kind == "reflect":
        return ReflectForm(request, recorded or {"steps": []}, labels, heard, ran)
    return AnyForm(request, labels, heard)


def count(edits: Mapping[str, Any], request: Request) -> int:
    """How many things an edit changes: each step, each threshold, each field."""
    total, args = 0, proposals.proposal(request)
    for name, value in edits.items():
        if name == "plan":
            total += _plan_changes(args.get("plan") or {}, value)
        elif name == proposals.LIMITS:
            total += len(value)
        elif name in ("next_steps", "activate"):
            total += _list_changes(args.get(name) or [], value)
        else:
            total += value != args.get(name)  # what the schema requires goes along unchanged
    return total


class _Checked:
    """Fields, and what the schema says of them beside each."""

    def __init__(self, schema: Mapping[str, Any], values: Mapping[str, Any], labels: Labels, heard: Heard):
        self._schema, self._labels, self._heard = schema, labels, heard
        self.fields = Fields(schema, labels, lambda _: self._changed(), title=lambda name: _title(name, labels))
        self.fields.show(values)
        self.faults = 0

    @property
    def values(self) -> dict[str, Any]:
        return self.fields.value

    def _changed(self) -> None:
        said = {name: fault for name, field in self.fields.fields.items() if (fault := self._fault(name, field.value))}
        self.fields.say({name: [Said(fault)] for name, fault in said.items()})
        self.faults = len({*said, *self.fields.faults})
        self._heard()

    def _fault(self, name: str, value: Any) -> str:
        spec = proposals.property_of(name, self._schema)
        if value is ABSENT or value is None:
            return self._labels("must_be_given") if name in self._schema.get("required", ()) else ""
        return fault(value, spec, self._labels)


def fault(value: Any, spec: Mapping[str, Any], labels: Labels) -> str:
    """What the schema of a field says against a value; nothing when it fits.

    >>> fault(3, {"maximum": 1}, Labels("en"))
    '3 is too large. Enter 1 or less.'
    """
    if isinstance(value, str):
        if (most := spec.get("maxLength")) is not None and len(value) > most:
            return labels("too_long", n=f"{len(value):,}", most=f"{most:,}")
        if len(value) < spec.get("minLength", 0) or (spec.get("pattern") == r"\S" and not re.search(r"\S", value)):
            return labels("must_be_given")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if (least := spec.get("minimum")) is not None and value < least:
            return labels("too_small", value=f"{value:g}", least=f"{least:g}")
        if (most := spec.get("maximum")) is not None and value > most:
            return labels("too_large", value=f"{value:g}", most=f"{most:,g}")
    if "enum" in spec and value not in spec["enum"]:
        return labels("not_one_of", value=str(value)[:50], known=", ".join(map(str, spec["enum"])))
    return ""


class _Limits:
    """One text and the thresholds, flat in one form."""

    def __init__(self, request: Request, text: str, labels: Labels, heard: Heard, needed: bool = False):
        schema, now = proposals.schema(request), proposals.in_force(request)
        limits = proposals.property_of(proposals.LIMITS, schema).get("properties", {})
        texts = {text: schema["properties"][text]} if text in schema.get("properties", {}) else {}
        values = {text: now.get(text) or "", **now.get(proposals.LIMITS, {})}
        filled = [name for name in values if name in limits or (needed and values[name])]
        flat = {"$defs": schema.get("$defs", {}), "properties": {**texts, **limits}, "required": filled}
        self._text, self.before = text, now
        self.checked = _Checked(flat, values, labels, heard)
        self.box = self.checked.fields.box
        self.box.add_class("wb-limits")

    @property
    def text(self) -> str:
        """What stands in the text."""
        return str(self.checked.values.get(self._text) or "")

    def limits(self) -> dict[str, Any]:
        """The thresholds that are not as they were."""
        now = {name: value for name, value in self.checked.values.items() if name != self._text}
        return proposals.differing({proposals.LIMITS: self.before.get(proposals.LIMITS, {})}, {proposals.LIMITS: now})


class PlanForm:
    """At a plan or its next steps: the query and the thresholds; the plan is edited beside it."""

    def __init__(self, request: Request, labels: Labels, heard: Heard):
        self._proposed = proposals.proposal(request)["plan"]
        self._limits = _Limits(request, "query", labels, heard, needed=True)
        self.box = ipywidgets.VBox([_heading(labels("edit_first")), self._limits.box])

    @property
    def faults(self) -> int:
        """How many fields cannot be sent."""
        return self._limits.checked.faults

    def edits(self, plan: Mapping[str, Any] | None) -> dict[str, Any]:
        """The plan, the query and the thresholds, each when it differs."""
        changed: dict[str, Any] = {}
        if plan is not None and _plan_changes(self._proposed, plan):
            changed["plan"] = dict(plan)
        if self._limits.text.strip() and self._limits.text != (self._limits.before.get("query") or ""):
            changed["query"] = self._limits.text
        return {**changed, **self._limits.limits()}


class ReflectForm:
    """At a reflection: the steps proposed next, the rewritten query, the thresholds, and whether to go on."""

    def __init__(
        self, request: Request, recorded: Mapping[str, Any], labels: Labels, heard: Heard, ran: Collection[str] = ()
    ):
        self._labels, self._heard, self._proposed = labels, heard, proposals.proposal(request)
        self._recorded = {step["step_id"]: step for step in recorded["steps"]}
        self._limits = _Limits(request, "rewrite_query", labels, heard)
        self._chosen: bool | None = None
        self._writing = False
        self._left_out: set[str] = set()
        self._steps: list[Mapping[str, Any]] = []
        self._refused: list[str] = []
        self._boxes: dict[str, ipywidgets.Checkbox] = {}
        held = [i for i, step in self._recorded.items() if step.get("condition") == "held" and i not in ran]
        wakes = {**dict.fromkeys(held, False), **dict.fromkeys(self._proposed["activate"], True)}
        told = {i: labels("wake_step", step=i) if on else f"{i} · {labels('step_held')}" for i, on in wakes.items()}
        self._wakes = {i: self._box(told[i], i, ticked=on) for i, on in wakes.items()}
        self._list, self._note = ipywidgets.VBox(), Pick()
        self._list.add_class("wb-proposals")
        self.goes_on = ipywidgets.ToggleButtons(
            options=[(labels("search_on"), True), (labels("stop_searching"), False)],
            value=bool(self._proposed["should_continue"]),
        )
        self.goes_on.observe(self._chose, "value")
        after = ipywidgets.VBox([_label(labels("field_should_continue")), self.goes_on])
        self.box = ipywidgets.VBox([_heading(labels("proposed_next")), self._list, self._note, self._limits.box, after])
        self._show_steps(self._proposed["next_steps"])

    @property
    def faults(self) -> int:
        """How many fields cannot be sent, and how many steps changed that cannot change."""
        return self._limits.checked.faults + len(self._refused)

    def edits(self, plan: Mapping[str, Any] | None) -> dict[str, Any]:
        """What differs from the reflection; the steps of ``plan`` beyond the recorded one are the next ones."""
        self._show_steps(self._beyond(plan))
        steps = [step for step in self._steps if step["step_id"] not in self._left_out]
        woken = [name for name in self._wakes if name not in self._left_out]
        changed = proposals.next_pass(self._proposed, steps, woken, self._limits.text, self._chosen)
        self._follow(proposals.will_go_on(self._proposed, changed))
        return {**changed, **self._limits.limits()}

    def _beyond(self, plan: Mapping[str, Any] | None) -> Steps:
        """The steps of an edited plan that are not in the recorded one; without a plan those that are proposed."""
        if plan is None:
            self._refuse([])
            return list(self._proposed["next_steps"])
        kept = {step["step_id"]: step for step in plan["steps"] if step["step_id"] in self._recorded}
        self._refuse([name for name, step in self._recorded.items() if kept.get(name) != step])
        return [step for step in plan["steps"] if step["step_id"] not in self._recorded]

    def _refuse(self, names: list[str]) -> None:
        if names != self._refused:
            self._refused = names
            told = self._labels("not_while_reflecting", steps=self._labels("comma").join(names)) if names else ""
            said = el("p", glyph("invalid", self._labels), " ", told, cls="wb-alert", role="alert") if told else None
            self._note.show(Picture(el("div", said)))

    def _show_steps(self, steps: Steps) -> None:
        """A box to tick for each step that is proposed."""
        if self._list.children and [s["step_id"] for s in steps] == [s["step_id"] for s in self._steps]:
            self._steps = list(steps)
            return
        self._steps = list(steps)
        for step in steps:
            name = step["step_id"]
            if name not in self._boxes:
                self._boxes[name] = self._box(f"{name} · {step['tool']}", name, str(step["objective"]))
        shown = [*(self._boxes[step["step_id"]] for step in steps), *self._wakes.values()]
        self._list.children = shown or [_heading(self._labels("nothing_proposed"))]

    def _box(self, text: str, name: str, told: str = "", ticked: bool = True) -> ipywidgets.Checkbox:
        if not ticked:
            self._left_out.add(name)
        box = ipywidgets.Checkbox(ticked, description=text[:200], tooltip=told[:500] or None, indent=False)

        def heard(change: Any) -> None:
            (self._left_out.discard if change.new else self._left_out.add)(name)
            self._heard()

        box.observe(heard, "value")
        return box

    def _chose(self, change: Any) -> None:
        if not self._writing:
            self._chosen = bool(change.new)
            self._heard()

    def _follow(self, goes_on: bool) -> None:
        """Until somebody chooses, the choice shows what follows from the rest."""
        self._writing = True
        self.goes_on.value = goes_on
        self._writing = False


class AnyForm:
    """At a point of a graph of one's own: every field of its schema."""

    def __init__(self, request: Request, labels: Labels, heard: Heard):
        self._schema, self._before = proposals.schema(request), proposals.in_force(request)
        self._checked = _Checked(self._schema, self._before, labels, heard)
        empty = [] if self._schema.get("properties") else [_heading(labels("nothing_proposed"))]
        self.box = ipywidgets.VBox(empty or [_heading(labels("edit_first")), self._checked.fields.box])

    @property
    def faults(self) -> int:
        """How many fields cannot be sent."""
        return self._checked.faults

    def edits(self, plan: Mapping[str, Any] | None) -> dict[str, Any]:
        """What differs, and whatever the schema requires beside it."""
        return proposals.differing(self._before, self._checked.values, self._schema.get("required", ()))


def _title(name: str, labels: Labels) -> str:
    known = labels(f"field_{name}")
    return name.replace("_", " ") if known == f"field {name}".replace("_", " ") else known


def _heading(text: str) -> ipywidgets.HTML:
    return ipywidgets.HTML(el("div", text, cls="wb-dim wb-strong"))


def _label(text: str) -> ipywidgets.HTML:
    return ipywidgets.HTML(el("label", text, cls="wb-label"))


def _plan_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> int:
    """How many steps and fields of the plan differ; a plan that cannot be read counts as one change."""
    try:
        changed = Plan.load(before).diff(Plan.load(now))
    except ValidationError:
        return 1
    order = [step["step_id"] for step in before["steps"]] != [step["step_id"] for step in now["steps"]]
    return sum(map(len, changed.values())) or int(order)


def _list_changes(before: Sequence[Any], now: Sequence[Any]) -> int:
    """How many items differ; the order alone is one change."""
    gone, new = [one for one in before if one not in now], [one for one in now if one not in before]
    return max(len(gone), len(new)) or 1
