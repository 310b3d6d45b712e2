"""The form of what a run proposes at a review point, and what an edit of it changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import ipywidgets

from workbench.records import proposals
from workbench.views.labels import Labels
from workbench.views.labels.sentences import field_told
from workbench.views.page import cut, el, glyph
from workbench.widgets.controls import Control, Said, choice, text, toggle
from workbench.widgets.form import ABSENT, Field, Fields, fields_of
from workbench.widgets.panel import Json, Pick, on_change

Heard = Callable[[], None]
_BREAKS: dict[str, Callable[[Any, Any], bool]] = {
    "minLength": lambda value, least: isinstance(value, str) and len(value) < least,
    "maxLength": lambda value, most: isinstance(value, str) and len(value) > most,
    "pattern": lambda value, _: isinstance(value, str) and not value.strip(),
    "minimum": lambda value, least: isinstance(value, int | float) and value < least,
    "maximum": lambda value, most: isinstance(value, int | float) and value > most,
    "enum": lambda value, known: value not in known,
}
"""Rules of a schema that are told beside a field while it is typed, each as what breaks it; the rest is checked when it
is sent. The library for schemas takes seconds to import, which the first look at a bench would pay."""


def fault(field: Field, labels: Labels) -> str:
    """Return what the schema of a field says against its value; nothing when it fits."""
    limits = {name: field.spec[name] for name in _BREAKS if name in field.spec}
    if limits.get("pattern") != r"\S":  # another may not be Python's
        limits.pop("pattern", None)
    value, text = field.value, field.spec.get("type") == "string"
    if value is ABSENT or value is None:
        emptied = field.given and (not text or {"pattern", "minLength"} & {*limits})
        return labels("wrong_minLength") if field.required or emptied else ""
    rule = next((name for name, limit in limits.items() if _BREAKS[name](value, limit)), "")
    if not rule:
        return ""
    limit = limits[rule]
    rule = "minLength" if rule == "pattern" else rule
    known = f"{limit:,}" if isinstance(limit, int | float) else cut(limit)
    return labels(f"wrong_{rule}", value=cut(value, 50), limit=known)


class Form:
    """What of a request can be edited: every field of its schema, and what the schema says against a value next to it.

    Args:
        request: what a run asks.
        labels: the words.
        heard: told whenever a person changed something.

    Attributes:
        box: the widget.
        keeps: whether what is edited is kept while no one sends it.
    """

    keeps = False

    def __init__(self, request: Json, labels: Labels, heard: Heard):
        self._labels, self._heard = labels, heard
        self._proposed, self._before = proposals.proposal(request), proposals.in_force(request)
        self._schema, values = self._shown(proposals.schema(request))
        self._wrong: set[str] = set()
        self._fields = Fields(self._schema, labels, self.changed, title=self._titled, own=self._own())
        self._fields.show(values)
        some = self._fields.fields
        self.box = ipywidgets.VBox([heading(labels("edit_first" if some else "nothing_proposed"))])
        self.box.children += (self._fields.box,) if some else ()

    @property
    def faults(self) -> int:
        """How many things in it cannot be sent."""
        return len(self._wrong)

    def edits(self, plan: Json | None) -> dict[str, Any]:
        """What differs from the proposal, with the plan as it was edited next to this form."""
        return proposals.differing(self._before, self._fields.value, self._schema.get("required", ()))

    def restore(self, edits: Json) -> None:
        """Show edits that were kept."""
        self._fields.show({**self._fields.value, **edits})
        self.changed()

    def _shown(self, schema: Json) -> tuple[Json, Json]:
        """The schema of the fields that are shown, and their values."""
        return schema, self._before

    def _own(self) -> dict[str, Control]:
        """Controls of fields that take another one than that of their type."""
        return {}

    def _titled(self, name: str) -> str:
        return self._labels.known(f"field_{name}", field_told(name, self._labels))

    def changed(self, path: str = "") -> None:
        """Say what is wrong, and that a person changed something."""
        wrong = {at: told for at, field in fields_of(self._fields) if (told := fault(field, self._labels))}
        self._fields.say({at: [Said(told)] for at, told in wrong.items()})
        self._wrong = {*wrong, *self._fields.faults}
        self._heard()


def _parts(schema: Json, values: Json, *names: str) -> tuple[Json, Json]:
    """These properties of a schema, and the values that they have."""
    known = schema.get("properties", {})
    properties = {name: known[name] for name in names if name in known}
    return {**schema, "properties": properties}, {
        name: values[name] for name in properties if values.get(name) not in (None, "")
    }


class ClarifyForm(Form):
    """A field for each question, with what may be answered to choose from; one left empty goes by what is assumed."""

    def edits(self, plan: Json | None) -> dict[str, Any]:
        """The answers that were given, and the query where it is another one."""
        given = {name: answer for name, value in self.answers.value.items() if (answer := value.strip())}
        changed = {**super().edits(plan), "answers": given}
        return changed if given else {name: value for name, value in changed.items() if name != "answers"}

    def _shown(self, schema: Json) -> tuple[Json, Json]:
        return _parts(schema, {"query": self._before["query"]}, "answers", "query")

    def _own(self) -> dict[str, Control]:
        questions = {one["question_id"]: one for one in self._proposed["questions"]}
        self.answers = Fields(
            {"properties": {name: {"description": cut(one["question"], 200)} for name, one in questions.items()}},
            self._labels,
            title=lambda name: cut(questions[name]["question"], 60),
            own={name: self._control(one) for name, one in questions.items()},
        )
        return {"answers": self.answers}

    def _control(self, question: Json) -> Control:
        hint = self._labels("assumed_unless", what=question["assumed"])
        return text(ipywidgets.Combobox(options=question["options"], placeholder=hint[:200], tooltip=hint[:500]))


class PlanForm(Form):
    """At a plan or its next steps: the query and the thresholds; the plan is edited next to it."""

    def __init__(self, request: Json, labels: Labels, heard: Heard):
        super().__init__(request, labels, heard)
        self._obeyed = {one["memory_id"]: ticked(one["told"], heard) for one in request.get("obeyed") or ()}
        if self._obeyed:
            told = heading(labels("mem_obeyed"))
            self.box.children += (ipywidgets.VBox([told, *self._obeyed.values()]).add_class("wb-obeyed"),)

    def edits(self, plan: Json | None) -> dict[str, Any]:
        """The plan, the query and the thresholds, each when it differs."""
        changed = super().edits(plan)
        if plan is not None and plan["steps"] != self._proposed["plan"]["steps"]:
            changed = {"plan": dict(plan), **changed}
        if not str(changed.get("query", "")).strip():
            changed.pop("query", None)
        struck = [memory_id for memory_id, box in self._obeyed.items() if not box.value]
        return {**changed, **({"struck": struck} if struck else {})}

    def _shown(self, schema: Json) -> tuple[Json, Json]:
        return _parts(schema, self._before, "query", proposals.LIMITS)


class ReflectForm(Form):
    """At a reflection: the steps proposed next, the rewritten query, thresholds, needs, and whether to go on."""

    def __init__(self, request: Json, recorded: Json, labels: Labels, heard: Heard, ran: Collection[str] = ()):
        """``recorded`` is the plan without what is proposed; ``ran`` are ids of its steps that have run."""
        super().__init__(request, labels, heard)
        self._recorded = {step["step_id"]: step for step in recorded["steps"]}
        self._chosen: bool | None = None
        self._refused: list[str] = []
        self._boxes: dict[str, ipywidgets.Checkbox] = {}
        held = [i for i, step in self._recorded.items() if step.get("condition") == "held" and i not in ran]
        wakes = {**dict.fromkeys(held, False), **dict.fromkeys(self._proposed["activate"], True)}
        told = {i: labels("wake_step", step=i) if on else f"{i} · {labels('step_held')}" for i, on in wakes.items()}
        self._wakes = {i: ticked(told[i], heard, on=on) for i, on in wakes.items()}
        self._list, self._note = ipywidgets.VBox().add_class("wb-proposals"), Pick()
        self._nothing = heading(labels("nothing_proposed"))
        self.box.children = [heading(labels("proposed_next")), self._list, self._note, self._fields.box]
        self._next_steps(None)

    @property
    def faults(self) -> int:
        """How many fields cannot be sent, and how many steps changed that cannot change."""
        return len(self._wrong) + len(self._refused)

    @property
    def goes_on(self) -> Field:
        """Whether retrieval continues."""
        return self._fields.fields["should_continue"]

    def changed(self, path: str = "") -> None:
        """Say what is wrong, and that a person changed something."""
        if path == "should_continue":
            self._chosen = self.goes_on.value
        super().changed(path)

    def edits(self, plan: Json | None) -> dict[str, Any]:
        """What differs from the reflection; the steps of ``plan`` beyond the recorded one are the next ones."""
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

    def _shown(self, schema: Json) -> tuple[Json, Json]:
        entries = (self._proposed.get("signals") or {}).get("needs") or []
        self._before[proposals.NEEDS] = {**{entry["need"]: entry["said"] for entry in entries}, "": ""}
        self._before["should_continue"] = bool(self._proposed["should_continue"])
        names = ("rewrite_query", proposals.LIMITS, proposals.NEEDS, "should_continue")
        more: Json = {proposals.NEEDS: {}, "should_continue": {}}
        return _parts({**schema, "properties": {**schema.get("properties", {}), **more}}, self._before, *names)

    def _own(self) -> dict[str, Control]:
        labels, before = self._labels, self._before[proposals.NEEDS]
        words = [(labels("need_judged"), ""), *((labels(f"need_{word}"), word) for word in proposals.VERDICTS)]
        # what was said can be changed, and not unsaid
        own = {need: choice([pair for pair in words if not word or pair[1]]) for need, word in before.items()}
        own[""] = text(ipywidgets.Text(placeholder=labels("need_another_hint")))
        self.needs = Fields(
            {"properties": {need: {"description": cut(need, 200)} for need in before}, "required": [*before]},
            labels,
            title=lambda need: cut(need, 60) or labels("need_another"),
            own=own,
        )
        goes_on = toggle([(labels("search_on"), True), (labels("stop_searching"), False)])
        return {proposals.NEEDS: self.needs, "should_continue": goes_on}

    def _next_steps(self, plan: Json | None) -> Sequence[Json]:
        """Show a box for each step beyond the recorded plan, and refuse changes of that; without a plan as proposed."""
        steps = self._proposed["next_steps"] if plan is None else plan["steps"]
        kept = self._recorded if plan is None else {step["step_id"]: step for step in steps}
        self._refused = [name for name, step in self._recorded.items() if kept.get(name) != step]
        told = self._labels("not_while_reflecting", steps=self._labels("comma").join(self._refused))
        alert = el("p.wb-alert", glyph("invalid", self._labels), " ", told, role="alert")
        self._note.show(el("div", alert if self._refused else None))
        following = {step["step_id"]: step for step in steps if plan is None or step["step_id"] not in self._recorded}
        for name, step in following.items():
            if name not in self._boxes:
                self._boxes[name] = ticked(f"{name} · {step['tool']}", self._heard, str(step["objective"]))
        boxes = [*map(self._boxes.__getitem__, following), *self._wakes.values()]
        self._list.children = boxes or [self._nothing]
        return list(following.values())


def ticked(text: str, heard: Heard, told: str = "", on: bool = True) -> ipywidgets.Checkbox:
    """A box to tick."""
    box = ipywidgets.Checkbox(on, description=text[:200], tooltip=told[:500] or None, indent=False)
    on_change(box, heard)
    return box


def heading(text: str) -> ipywidgets.HTML:
    """A line above widgets."""
    return ipywidgets.HTML(el("div.wb-dim.wb-strong", text))
