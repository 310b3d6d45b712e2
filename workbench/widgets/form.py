"""A JSON schema as a form of ordinary widgets: a field for each property, with what is wrong with it beneath."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import ipywidgets

from workbench.records.proposals import resolved
from workbench.views.labels import Labels
from workbench.views.page import BLANK, button, el, glyph
from workbench.widgets import controls
from workbench.widgets.controls import Control, exactly
from workbench.widgets.panel import Event, Json, Pick, display_if, on_change

_DEEPEST = 2


ABSENT: Final = object()
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
        spec: of its schema, what it is for (``description``) and stands for when absent (``default``).
        required: whether it must be there; another one stays absent until it differs from its default.
        nullable: whether it may be null.

    Attributes:
        value: the value, or ``ABSENT``; while what is typed is no value, the last one.
        fault: why what is typed is no value, in words.
        said: the messages that are shown.
    """

    def __init__(
        self,
        name: str,
        control: Control,
        labels: Labels,
        heard: Callable[[str], None],
        *,
        title: str = "",
        spec: Mapping[str, Any] = {},
        required: bool = True,
        nullable: bool = False,
    ):
        self.name, self.control, self.fault = name, control, ""
        self.value: Any = ABSENT
        self.said: tuple[Said, ...] = ()
        self._plain, self._labels, self._heard = control, labels, heard
        self._required, self._nullable = required, nullable
        self._default = control.blank if control.group else spec.get("default", control.blank)
        self._given, self._writing = False, False
        self._note: Pick | None = None
        hint = str(spec.get("description", ""))
        label = ipywidgets.HTML(el("label.wb-label", title or name, title=hint or None))
        self.box = ipywidgets.VBox([label, control.widget]).add_class("wb-field")
        self._listen()

    def show(self, value: Any = ABSENT, anew: bool = False) -> None:
        """Show a value. One that it has already is left as it is being typed, unless it is shown ``anew``."""
        if not anew and exactly(value) == exactly(self.value):
            return
        self.fault, self._given = "", value is not ABSENT
        self._writing = True
        try:
            self._use_plain(value is ABSENT or self._plain.takes(value))
            self.control.write(self._default if value is ABSENT else value)
        finally:
            self.value, self._writing = value, False

    def disable(self, disabled: bool) -> None:
        """Whether it can be changed."""
        if self.control.group:
            self.control.group.disable(disabled)
        else:
            self.control.widget.disabled = disabled

    def say(self, said: Sequence[Said]) -> None:
        """Show these messages beneath, and what the field itself has to say before them."""
        said = (*([Said(self.fault)] if self.fault else []), *said)
        if said == self.said:
            return
        self.said = said
        if self._note is None:
            self._note = Pick(heard=self._pressed)
            self.box.children = (*self.box.children, self._note)
        sign = glyph("invalid", self._labels, said=False)
        lines = [
            el("p", sign, el("span", one.text), button(one.mend, "mend", key=str(at)) if one.mend else None)
            for at, one in enumerate(said)
        ]
        self._note.show(el("div.wb-alert.wb-beside", lines, role="alert") if lines else BLANK)
        (self.box.add_class if said else self.box.remove_class)("wb-wrong")

    def mend(self, which: int = 0) -> None:
        """What the button beside a message does."""
        if which < len(self.said) and (do := self.said[which].do):
            do()

    def _pressed(self, event: Event) -> None:
        if event.kind == "mend" and event.key.isdecimal():
            self.mend(int(event.key))

    def _use_plain(self, plain: bool) -> None:
        """The field's own control, or JSON."""
        if plain == (self.control is self._plain):
            return
        self.control = self._plain if plain else controls.as_json(self._labels)
        self.box.children = (self.box.children[0], self.control.widget, *self.box.children[2:])
        if not plain:
            self._listen()

    def _listen(self) -> None:
        if self.control.group:
            self.control.group.heard = self._changed
        else:
            on_change(self.control.widget, self._changed)

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
            self.value = ABSENT if absent or (read is None and not self._nullable) else read
        self._heard(f"{self.name}.{inner}" if inner else self.name)


class Fields:
    """The form of an object.

    Args:
        schema: the object's JSON schema.
        labels: the words.
        heard: told the path of whatever somebody changed, as ``sort.field``.
        without: properties that are shown only when the object has them.
        title: the name of a property for people; the property itself when empty.
        own: controls for properties that take another one than that of their type.
    """

    def __init__(
        self,
        schema: Json,
        labels: Labels,
        heard: Callable[[str], None] = lambda _: None,
        *,
        without: Collection[str] = (),
        title: Callable[[str], str] = str,
        own: Mapping[str, Control] = {},
        depth: int = 0,
    ):
        self.heard = heard
        self._labels, self._without, self._title = labels, without, title
        self._disabled = False
        self.fields: dict[str, Field] = {}
        definitions, required = schema.get("$defs", {}), schema.get("required", ())
        for name, spec in schema.get("properties", {}).items():
            spec, nullable = _plain(spec, definitions)
            needed = name in required
            control = own.get(name) or _control({**spec, "$defs": definitions}, nullable, needed, labels, depth)
            self._add(name, control, spec=spec, required=needed, nullable=nullable)
        self._known = frozenset(self.fields)
        self.box = ipywidgets.VBox([field.box for field in self.fields.values()]).add_class("wb-fields")
        self.show({}, anew=True)

    def _add(self, name: str, control: Control, **more: Any) -> None:
        heard = lambda path: self.heard(path)  # noqa: E731 - who hears may change
        self.fields[name] = Field(name, control, self._labels, heard, title=self._title(name), **more)

    @property
    def value(self) -> dict[str, Any]:
        """The object; what stands at its default and was not given is left out."""
        return {name: field.value for name, field in self.fields.items() if field.value is not ABSENT}

    @property
    def faults(self) -> dict[str, str]:
        """What was typed and is no value, in words, by path."""
        return {path: field.fault for path, field in fields_of(self) if field.fault}

    def show(self, value: Json, anew: bool = False) -> None:
        """Show an object; what the schema does not know of is shown as JSON. See ``Field.show``."""
        for name in [name for name in self.fields if name not in self._known and name not in value]:
            del self.fields[name]
        for name in value:
            if name not in self.fields:
                self._add(name, controls.as_json(self._labels))
                self.fields[name].disable(self._disabled)
        for name, field in self.fields.items():
            field.show(value.get(name, ABSENT), anew)
            display_if(field.box, name in value or name not in self._without)
        self.box.children = [field.box for field in self.fields.values()]

    def say(self, said: Mapping[str, Sequence[Said]]) -> list[Said]:
        """Show messages by path, and give those whose field is not in this form.

        Those of a path within a field that has no form of its own stand at the field.
        """
        left = dict(said)
        for name, field in self.fields.items():
            inner = [path for path in left if path.startswith(f"{name}.")]
            within = {path.removeprefix(f"{name}."): left.pop(path) for path in inner}
            rest = field.control.group.say(within) if field.control.group else _all(within)
            field.say([*left.pop(name, ()), *rest])
        return _all(left)

    def disable(self, disabled: bool) -> None:
        """Whether anything can be changed."""
        self._disabled = disabled
        for field in self.fields.values():
            field.disable(disabled)


def _all(said: Mapping[str, Sequence[Said]]) -> list[Said]:
    return [one for told in said.values() for one in told]


def _control(spec: Json, nullable: bool, required: bool, labels: Labels, depth: int) -> Control:
    """The control of a property, by its type."""
    kind, items = spec.get("type"), spec.get("items", {})
    optional = nullable or (not required and "default" not in spec)
    none: list[tuple[str, Any]] = [("—", None)] if optional else []
    if isinstance(options := spec.get("enum"), list) and options:
        return controls.choice([*none, *((str(one), one) for one in options)])
    if kind == "boolean" and optional:
        return controls.choice([*none, (labels("form_yes"), True), (labels("form_no"), False)])
    if kind == "boolean":
        return controls.switch()
    if kind in ("integer", "number"):
        return controls.number_or_none(kind, labels) if optional else controls.number(kind)
    if kind == "array" and not nullable and items.get("type") == "string" and "enum" not in items:
        return controls.names()
    if kind == "array" and {"field", "op", "value"} == set(_plain(items, spec["$defs"])[0].get("properties", ())):
        return controls.conditions()
    if kind == "object" and spec.get("properties") and depth < _DEEPEST:
        fields = Fields(spec, labels, depth=depth + 1)
        fields.box.add_class("wb-within")

        def takes(value: Any) -> bool:
            return (isinstance(value, dict) and "$from" not in value) or (nullable and value is None)

        return Control(fields.box, takes, None if nullable else {}, group=fields)
    if kind == "string":
        return controls.text_or_none(labels) if nullable else controls.text()
    return controls.as_json(labels)


def _plain(spec: Any, definitions: Json) -> tuple[dict[str, Any], bool]:
    """A property without its references and its null, and whether it may be null."""
    own = spec if isinstance(spec, Mapping) else {}
    nullable = any(option.get("type") == "null" for option in own.get("anyOf", ()))
    found = {**resolved(own, definitions), **{name: own[name] for name in own if name not in ("anyOf", "$ref")}}
    if "const" in found:
        found["enum"] = [found["const"]]
    return found, nullable


def fields_of(form: Fields, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field by its path, those within too."""
    for name, field in form.fields.items():
        yield prefix + name, field
        if field.control.group:
            yield from fields_of(field.control.group, f"{prefix}{name}.")
