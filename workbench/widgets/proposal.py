"""The form of what a run proposes at a review point, and what an edit of it changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import ipywidgets

from workbench.records import proposals
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.labels.sentences import field_told
from workbench.views.page import cut, el, glyph
from workbench.widgets.form import ABSENT, Control, Field, Fields, Said, choice, fields_of, text, toggle
from workbench.widgets.panel import Pick, on_change

Heard = Callable[[], None]
_BREAKS: dict[str, Callable[[Any, Any], bool]] = {
    "minLength": lambda value, least: isinstance(value, str) and len(value) < least,
    "maxLength": lambda value, most: isinstance(value, str) and len(value) > most,
    "pattern": lambda value, _: isinstance(value, str) and not value.strip(),
    "minimum": lambda value, least: isinstance(value, int | float) and value < least,
    "maximum": lambda value, most: isinstance(value, int | float) and value > most,
    "enum": lambda value, known: value not in known,
}
"""Rules of a schema that are told next to a field while it is typed, each as what breaks it; the rest is checked when
it is sent. The library for schemas takes seconds to import, which the first look at a bench would pay."""


def fault(field: Field, labels: Labels) -> str:
    """Return what the schema of a field says against its value; nothing when it fits."""
    limits = {name: field.spec[name] for name in _BREAKS if name in field.spec}
    if limits.get("pattern") != r"\S":  # another may not be Python's
        limits.pop("pattern", None)
    value = field.value
    if value is ABSENT or value is None:
        emptied = field.given and (field.spec.get("type") != "string" or {"pattern", "minLength"} & {*limits})
        return labels("wrong_minLength") if field.required or emptied else ""
    for rule, limit in limits.items():
        if _BREAKS[rule](value, limit):
            most = f"{limit:,}" if isinstance(limit, int | float) else cut(limit)
            return labels(f"wrong_{'minLength' if rule == 'pattern' else rule}", value=cut(value, 50), limit=most)
    return ""


class Form:
    """What of a request can be edited: every field of its schema, and what the schema says against a value next to it.

    Args:
        request: what a run asks.
        labels: the words.
        heard: told whenever a person changed something.

    Attributes:
        box: the widget.
        keeps: whether what is edited is kept while no one sends it.
        shown: the properties that are shown; None for all.
    """

    keeps = False
    shown: Sequence[str] | None = None

    def __init__(self, request: Data, labels: Labels, heard: Heard):
        self._labels, self._heard = labels, heard
        self._proposed, self._before = proposals.proposal(request), proposals.in_force(request)
        schema, values = dict(self._schema(proposals.schema(request))), self._before
        if self.shown is not None:
            known = schema.get("properties", {})
            schema["properties"] = {name: known[name] for name in self.shown if name in known}
            values = {name: values[name] for name in schema["properties"] if values.get(name) not in (None, "")}
        self._required = schema.get("required", ())
        self._wrong: set[str] = set()
        self._fields = Fields(schema, labels, self.changed, title=self._titled, own=self._own())
        self._fields.show(values)
        inside = [heading(labels("edit_first")), self._fields.box]
        self.box = ipywidgets.VBox(inside if self._fields.fields else [heading(labels("nothing_proposed"))])

    @property
    def faults(self) -> int:
        """Return how many things in it cannot be sent."""
        return len(self._wrong)

    def edits(self, plan: Data | None) -> Json:
        """Return what differs from the proposal, with the plan as it was edited next to this form."""
        return proposals.differing(self._before, self._fields.value, self._required)

    def restore(self, edits: Data) -> None:
        """Show edits that were kept."""
        self._fields.show({**self._fields.value, **edits})
        self.changed()

    def changed(self, path: str = "") -> None:
        """Say what is wrong, and that a person changed something."""
        wrong = {at: words for at, field in fields_of(self._fields) if (words := fault(field, self._labels))}
        self._fields.say({at: [Said(words)] for at, words in wrong.items()})
        self._wrong = {*wrong, *self._fields.faults}
        self._heard()

    def _schema(self, schema: Data) -> Data:
        return schema

    def _own(self) -> dict[str, Control]:
        """Controls of fields that take another one than that of their type."""
        return {}

    def _titled(self, name: str) -> str:
        return self._labels.known(f"field_{name}", field_told(name, self._labels))


class ClarifyForm(Form):
    """A field for each question, with what may be answered to choose from; one left empty goes by what is assumed."""

    shown = ("answers", "query")

    def edits(self, plan: Data | None) -> Json:
        """Return the answers that were given, and the query where it is another one."""
        given = {name: answer for name, value in self.answers.value.items() if (answer := value.strip())}
        changed = {**super().edits(plan), "answers": given}
        return changed if given else {name: value for name, value in changed.items() if name != "answers"}

    def _schema(self, schema: Data) -> Data:
        self._before.pop("answers", None)  # it has a control of its own, which begins empty
        return schema

    def _own(self) -> dict[str, Control]:
        questions = {question["question_id"]: question for question in self._proposed["questions"]}
        own = {}
        for name, one in questions.items():
            hint = self._labels("assumed_unless", what=one["assumed"])
            box = ipywidgets.Combobox(options=one["options"], placeholder=hint[:200], tooltip=hint[:500])
            own[name] = text(box)
        self.answers = _texts(
            {name: one["question"] for name, one in questions.items()}, self._labels, own, lambda told: cut(told, 60)
        )
        return {"answers": self.answers}


def _texts(
    told: dict[str, str], labels: Labels, own: dict[str, Control], title: Callable[[str], str], required: bool = False
) -> Fields:
    """Return a field for each text, which is its title and its hint."""
    properties = {name: {"description": cut(words, 200)} for name, words in told.items()}
    schema = {"properties": properties, "required": [*told] if required else []}
    return Fields(schema, labels, title=lambda name: title(told[name]), own=own)


class PlanForm(Form):
    """At a plan or its next steps: the query and the thresholds; the plan is edited next to it."""

    shown = ("query", proposals.LIMITS)

    def __init__(self, request: Data, labels: Labels, heard: Heard):
        super().__init__(request, labels, heard)
        self._obeyed = {memory["memory_id"]: ticked(memory["told"], heard) for memory in request.get("obeyed") or ()}
        if self._obeyed:
            words = heading(labels("mem_obeyed"))
            self.box.children += (ipywidgets.VBox([words, *self._obeyed.values()]).add_class("wb-obeyed"),)

    def edits(self, plan: Data | None) -> Json:
        """Return the plan, the query and the thresholds, each when it differs."""
        changed = super().edits(plan)
        if plan is not None and plan["steps"] != self._proposed["plan"]["steps"]:
            changed = {"plan": dict(plan), **changed}
        if not str(changed.get("query", "")).strip():
            changed.pop("query", None)
        struck = [memory_id for memory_id, box in self._obeyed.items() if not box.value]
        return {**changed, **({"struck": struck} if struck else {})}


class ReflectForm(Form):
    """At a reflection: the steps proposed next, the rewritten query, thresholds, needs, and whether to go on."""

    shown = ("rewrite_query", proposals.LIMITS, proposals.NEEDS, "should_continue")

    def __init__(self, request: Data, recorded: Data, labels: Labels, heard: Heard, ran: Collection[str] = ()):
        """``recorded`` is the plan without what is proposed; ``ran`` are ids of its steps that have run."""
        super().__init__(request, labels, heard)
        self._recorded = {step["step_id"]: step for step in recorded["steps"]}
        self._chosen: bool | None = None
        self._refused: list[str] = []
        self._boxes: dict[str, ipywidgets.Checkbox] = {}
        activated = self._proposed["activate"]
        self._wakes = {}
        for name, step in self._recorded.items():
            if step.get("condition") == "held" and name not in ran and name not in activated:
                self._wakes[name] = ticked(f"{name} · {labels('step_held')}", heard, on=False)
        self._wakes |= {name: ticked(labels("wake_step", step=name), heard) for name in activated}
        self._list, self._note = ipywidgets.VBox().add_class("wb-proposals"), Pick()
        self._nothing = heading(labels("nothing_proposed"))
        self.box.children = [heading(labels("proposed_next")), self._list, self._note, self._fields.box]
        self._next_steps(None)

    @property
    def faults(self) -> int:
        """Return how many fields cannot be sent, and how many steps changed that cannot change."""
        return len(self._wrong) + len(self._refused)

    @property
    def goes_on(self) -> Field:
        """Return whether retrieval continues."""
        return self._fields.fields["should_continue"]

    def changed(self, path: str = "") -> None:
        """Say what is wrong, and that a person changed something."""
        if path == "should_continue":
            self._chosen = self.goes_on.value
        super().changed(path)

    def edits(self, plan: Data | None) -> Json:
        """Return what differs from the reflection; the steps of ``plan`` beyond the recorded one are the next ones."""
        steps = [step for step in self._next_steps(plan) if self._boxes[step["step_id"]].value]
        woken = [name for name, box in self._wakes.items() if box.value]
        typed = self._fields.value
        query = str(typed.get("rewrite_query") or "")
        changed = proposals.next_pass(self._proposed, steps, woken, query, self._chosen)
        self.goes_on.show(proposals.will_go_on(self._proposed, changed))
        judged = proposals.differing(self._before, {name: typed.get(name) for name in proposals.JUDGED_BY})
        needs = judged.get(proposals.NEEDS, {})
        if added := needs.pop("", "").strip()[: proposals.LONGEST_NEED]:
            needs[added] = "open"
        return {**changed, **{name: value for name, value in judged.items() if value}}

    def _schema(self, schema: Data) -> Data:
        entries = (self._proposed.get("signals") or {}).get("needs") or []
        self._before[proposals.NEEDS] = {**{entry["need"]: entry["said"] for entry in entries}, "": ""}
        self._before["should_continue"] = bool(self._proposed["should_continue"])
        own: Data = {proposals.NEEDS: {}, "should_continue": {}}
        return {**schema, "properties": {**schema.get("properties", {}), **own}}

    def _own(self) -> dict[str, Control]:
        labels, before = self._labels, self._before[proposals.NEEDS]
        words = [(labels("need_judged"), ""), *((labels(f"need_{word}"), word) for word in proposals.VERDICTS)]
        # what was said can be changed, and not unsaid
        own = {need: choice([pair for pair in words if not word or pair[1]]) for need, word in before.items()}
        own[""] = text(ipywidgets.Text(placeholder=labels("need_another_hint")))
        texts = {need: need for need in before}
        self.needs = _texts(texts, labels, own, lambda need: cut(need, 60) or labels("need_another"), required=True)
        goes_on = toggle([(labels("search_on"), True), (labels("stop_searching"), False)])
        return {proposals.NEEDS: self.needs, "should_continue": goes_on}

    def _next_steps(self, plan: Data | None) -> Sequence[Data]:
        """Show a box for each step beyond the recorded plan, and refuse changes of that; without a plan as proposed."""
        steps = self._proposed["next_steps"]
        self._refused = []
        if plan is not None:
            kept = {step["step_id"]: step for step in plan["steps"]}
            self._refused = [name for name, step in self._recorded.items() if kept.get(name) != step]
            steps = [step for step in plan["steps"] if step["step_id"] not in self._recorded]
        words = self._labels("not_while_reflecting", steps=self._labels("comma").join(self._refused))
        alert = el("p.wb-alert", glyph("invalid", self._labels), " ", words, role="alert")
        self._note.show(el("div", alert if self._refused else None))
        following = {step["step_id"]: step for step in steps}
        for name, step in following.items():
            if name not in self._boxes:
                self._boxes[name] = ticked(f"{name} · {step['tool']}", self._heard, str(step["objective"]))
        boxes = [*map(self._boxes.__getitem__, following), *self._wakes.values()]
        self._list.children = boxes or [self._nothing]
        return list(following.values())


def ticked(text: str, heard: Heard, told: str = "", on: bool = True) -> ipywidgets.Checkbox:
    """Return a box to tick."""
    box = ipywidgets.Checkbox(on, description=text[:200], tooltip=told[:500] or None, indent=False)
    on_change(box, heard)
    return box


def heading(text: str) -> ipywidgets.HTML:
    """Return a line above widgets."""
    return ipywidgets.HTML(el("div.wb-dim.wb-strong", text))
