"""A JSON schema as a form of ordinary widgets: a field a property, what is wrong with it beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import ipywidgets

from workbench.draw.page import Picture, button, el, glyph, joined
from workbench.labels import Labels
from workbench.widgets.controls import (
    Control,
    as_json,
    choice,
    conditions,
    exactly,
    names,
    number,
    number_or_none,
    switch,
    text,
    text_or_none,
    whole,
)
from workbench.widgets.pick import Event, Pick

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
