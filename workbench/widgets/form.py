"""The form of one step: every field of it, with what is wrong beside each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import ipywidgets

from workbench.plans import PlanStep
from workbench.ports import Tool
from workbench.views.labels import Labels
from workbench.views.page import Markup, Picture, button, code, el, glyph, joined, safe
from workbench.widgets.controls import (
    Control,
    as_json,
    choice,
    conditions,
    exactly,
    line,
    names,
    number,
    number_or_none,
    switch,
    text,
    text_or_none,
    toggle,
    whole,
)
from workbench.widgets.pick import Event, Pick

# --- A JSON schema as a form of ordinary widgets: a field a property, what is wrong with it beside it ---

_DEEPEST = 2


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""The value of a field that is left to its default."""


class Said(NamedTuple):
    """What is wrong with a field; ``mend`` is what a button beside it says, ``do`` what that does."""

    text: str
    mend: str = ""
    do: Callable[[], None] | None = None


class Field:
    """One value: its name above, its control, and what is wrong with it beneath.

    What was given comes back as it was until somebody changes it. A value that the control cannot show, as one taken
    from an earlier step, is shown as JSON.

    Args:
        name: the property.
        control: what it is typed into.
        labels: the words.
        heard: told the name whenever somebody changed the value.
        title: the name for people.
        hint: what it is for.
        required: whether it must be there; another one stays absent until it differs from ``default``.
        default: what it stands for when absent.
        nullable: whether it may be null.
    """

    def __init__(
        self,
        name: str,
        control: Control,
        labels: Labels,
        heard: Callable[[str], None],
        *,
        title: str = "",
        hint: str = "",
        required: bool = True,
        default: Any = ABSENT,
        nullable: bool = False,
    ):
        self.name, self.control, self.fault = name, control, ""
        self._plain, self._labels, self._heard = control, labels, heard
        self._required, self._nullable = required, nullable
        self._default = control.blank if default is ABSENT or control.group else default
        self._given, self._value, self._writing = False, ABSENT, False
        self._said: tuple[Said, ...] = ()
        self._note: Pick | None = None
        label = ipywidgets.HTML(el("label", title or name, cls="wb-label", title=hint or None))
        self.box = ipywidgets.VBox([label, control.widget])
        self.box.add_class("wb-field")
        self._listen(control)

    @property
    def value(self) -> Any:
        """The value, or ``ABSENT``; while what is typed is no value, the last one."""
        return self._value

    def show(self, value: Any = ABSENT, anew: bool = False) -> None:
        """Show a value. One that it has already is left as it is being typed, unless it is shown ``anew``."""
        if not anew and (value is ABSENT) == (self._value is ABSENT) and exactly(value) == exactly(self._value):
            return
        self.fault, self._given = "", value is not ABSENT
        self._use(self._plain if value is ABSENT or self._plain.takes(value) else self._as_json())
        self._writing = True
        try:
            wanted = self._default if value is ABSENT else value
            if not self.control.shows(wanted):
                self.control.write(wanted)
        finally:
            self._value, self._writing = value, False

    def disable(self, disabled: bool) -> None:
        """Whether it can be changed."""
        if self.control.group:
            self.control.group.disable(disabled)
        else:
            self.control.widget.disabled = disabled

    def say(self, said: Sequence[Said]) -> None:
        """Show these messages beneath, and what the field itself has to say before them."""
        said = (*([Said(self.fault)] if self.fault else []), *said)
        if said == self._said:
            return
        self._said = said
        if self._note is None:
            self._note = Pick()
            self._note.on_event(self._mend)
            self.box.children = (*self.box.children, self._note)
        lines = [
            el(
                "p",
                glyph("invalid", self._labels, said=False),
                el("span", one.text),
                button(one.mend, "mend", key=str(at)) if one.mend else None,
            )
            for at, one in enumerate(said)
        ]
        self._note.show(Picture(joined([el("div", lines, cls="wb-alert wb-beside", role="alert")] if lines else [])))
        (self.box.add_class if said else self.box.remove_class)("wb-wrong")

    @property
    def said(self) -> tuple[Said, ...]:
        """The messages that are shown."""
        return self._said

    def mend(self, which: int = 0) -> None:
        """What the button beside a message does."""
        if which < len(self._said) and (do := self._said[which].do):
            do()

    def _mend(self, event: Event) -> None:
        if event.kind == "mend" and event.key.isdecimal():
            self.mend(int(event.key))

    def _as_json(self) -> Control:
        if self.control is self._plain:
            control = as_json(self._labels)
            self._listen(control)
            return control
        return self.control

    def _use(self, control: Control) -> None:
        if control is not self.control:
            self.control = control
            self.box.children = (self.box.children[0], control.widget, *self.box.children[2:])

    def _listen(self, control: Control) -> None:
        if control.group:
            control.group.heard = lambda name: self._changed(name)
        else:
            control.widget.observe(lambda _: self._changed(), "value")

    def _changed(self, inner: str = "") -> None:
        if self._writing:
            return
        try:
            read = self.control.read()
        except ValueError as error:
            self.fault = str(error)
        else:
            self.fault = ""
            absent = not self._required and not self._given and read == self._default
            self._value = ABSENT if absent or (read is None and not self._nullable) else read
        self._heard(f"{self.name}.{inner}" if inner else self.name)


class Fields:
    """The form of an object.

    Args:
        schema: the object's JSON schema.
        labels: the words.
        heard: told the path of whatever somebody changed, as ``sort.field``.
        without: properties that are shown only when the object has them.
        title: the name of a property for people; the property itself when empty.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        labels: Labels,
        heard: Callable[[str], None] = lambda _: None,
        *,
        without: Collection[str] = (),
        title: Callable[[str], str] = str,
        depth: int = 0,
    ):
        self.heard = heard
        self._labels, self._without, self._title = labels, without, title
        self._disabled = False
        definitions, required = schema.get("$defs", {}), schema.get("required", ())
        self.fields: dict[str, Field] = {}
        for name, spec in schema.get("properties", {}).items():
            spec, nullable = _plain(spec, definitions)
            self.fields[name] = Field(
                name,
                _control({**spec, "$defs": definitions}, nullable, name in required, labels, depth),
                labels,
                lambda path: self.heard(path),
                title=title(name),
                hint=str(spec.get("description", "")),
                required=name in required,
                default=spec.get("default", ABSENT),
                nullable=nullable,
            )
        self._known = frozenset(self.fields)
        self.box = ipywidgets.VBox([field.box for field in self.fields.values()])
        self.box.add_class("wb-fields")
        self.show({}, anew=True)

    @property
    def value(self) -> dict[str, Any]:
        """The object; what stands at its default and was not given is left out."""
        return {name: field.value for name, field in self.fields.items() if field.value is not ABSENT}

    @property
    def faults(self) -> dict[str, str]:
        """What was typed and is no value, in words, by path."""
        found = {}
        for name, field in self.fields.items():
            if field.fault:
                found[name] = field.fault
            if field.control.group:
                found |= {f"{name}.{path}": fault for path, fault in field.control.group.faults.items()}
        return found

    def show(self, value: Mapping[str, Any], anew: bool = False) -> None:
        """Show an object; what the schema does not know of is shown as JSON. See ``Field.show``."""
        for name in [name for name in self.fields if name not in self._known and name not in value]:
            del self.fields[name]
        for name in value:
            if name not in self.fields:
                heard, control = lambda path: self.heard(path), as_json(self._labels)
                self.fields[name] = Field(name, control, self._labels, heard, title=self._title(name))
                self.fields[name].disable(self._disabled)
        for name, field in self.fields.items():
            field.show(value.get(name, ABSENT), anew)
            field.box.layout.display = "none" if name in self._without and name not in value else None
        boxes = tuple(field.box for field in self.fields.values())
        if boxes != self.box.children:
            self.box.children = boxes

    def say(self, said: Mapping[str, Sequence[Said]]) -> None:
        """Show messages by path; those of a path within a field that has no form of its own stand at the field."""
        for name, field in self.fields.items():
            within = {path[len(name) + 1 :]: told for path, told in said.items() if path.startswith(f"{name}.")}
            own = list(said.get(name, ()))
            if field.control.group:
                field.control.group.say(within)
                within = {
                    path: told for path, told in within.items() if path.split(".")[0] not in field.control.group.fields
                }
            field.say([*own, *(one for told in within.values() for one in told)])

    def disable(self, disabled: bool) -> None:
        """Whether anything can be changed."""
        self._disabled = disabled
        for field in self.fields.values():
            field.disable(disabled)


def _group(schema: Mapping[str, Any], nullable: bool, labels: Labels, depth: int) -> Control:
    fields = Fields(schema, labels, depth=depth + 1)
    fields.box.add_class("wb-within")
    return Control(
        fields.box,
        lambda: fields.value or (None if nullable else {}),
        lambda v: fields.show(v or {}, anew=True),
        lambda v: (isinstance(v, dict) and "$from" not in v) or (nullable and v is None),
        None if nullable else {},
        fields,
    )


def _control(spec: Mapping[str, Any], nullable: bool, required: bool, labels: Labels, depth: int) -> Control:
    kind = spec.get("type")
    optional = nullable or (not required and "default" not in spec)
    none: list[tuple[str, Any]] = [("—", None)] if optional else []
    if isinstance(options := spec.get("enum"), list) and options:
        return choice([*none, *((str(one), one) for one in options)])
    if kind == "boolean":
        return choice([*none, (labels("form_yes"), True), (labels("form_no"), False)]) if optional else switch()
    if kind in ("integer", "number") and optional:
        return number_or_none(kind, labels)
    if (
        kind == "array"
        and not nullable
        and spec.get("items", {}).get("type") == "string"
        and "enum" not in spec["items"]
    ):
        return names()
    if kind == "array" and _names_conditions(spec.get("items", {}), spec.get("$defs", {})):
        return conditions()
    if kind == "object" and spec.get("properties") and depth < _DEEPEST:
        return _group(spec, nullable, labels, depth)
    if kind == "string":
        return text_or_none(labels) if nullable else text()
    made = {"integer": whole, "number": number}.get(str(kind))
    return made() if made else as_json(labels)


def _names_conditions(items: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    found = definitions.get(str(items.get("$ref", "")).rpartition("/")[2], items)
    return {"field", "op", "value"} == set(found.get("properties", {}))


def _plain(spec: Any, definitions: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A property without its references and its null, and whether it may be null."""
    spec, nullable = dict(spec) if isinstance(spec, Mapping) else {}, False
    for _ in range(_DEEPEST + 3):
        options = [o for o in spec.get("anyOf", ()) if o.get("type") != "null"]
        if len(options) == 1:
            nullable |= len(options) < len(spec["anyOf"])
            spec = {**options[0], **{k: v for k, v in spec.items() if k != "anyOf"}}
        elif "$ref" in spec:
            found = definitions.get(str(spec["$ref"]).rpartition("/")[2], {})
            spec = {**found, **{k: v for k, v in spec.items() if k != "$ref"}}
        elif "const" in spec:
            spec = {**spec, "enum": [spec.pop("const")]}
        elif isinstance(spec.get("type"), list):
            kinds = [kind for kind in spec["type"] if kind != "null"]
            nullable |= len(kinds) < len(spec["type"])
            spec["type"] = kinds[0] if len(kinds) == 1 else None
        else:
            break
    return spec, nullable


def fields_of(form: Fields, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field by its path, those within too."""
    for name, field in form.fields.items():
        yield prefix + name, field
        if field.control.group:
            yield from fields_of(field.control.group, f"{prefix}{name}.")


# --- The form of one step: every field of it, with what is wrong beside each ---

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
