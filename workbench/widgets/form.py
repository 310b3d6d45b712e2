"""A JSON schema as a form of ordinary widgets: a field for each property, with what is wrong with it beneath."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import ipywidgets

from workbench.records.proposals import resolved
from workbench.views.labels import Labels
from workbench.views.page import BLANK, button, el, glyph
from workbench.widgets import controls
from workbench.widgets.controls import Control, Said
from workbench.widgets.panel import Event, Json, Pick, display_if, on_change

_DEEPEST = 2


ABSENT: Final = object()
"""The value of a field that is left to its default."""


class Field:
    """One value: its name above, its control, and what is wrong with it beneath.

    What was given comes back as it was until a person changes it. A value that the control cannot show, as one taken
    from an earlier step, is shown as JSON; so is an object where a person wants to write it.

    Args:
        name: the property.
        control: what it is typed into.
        labels: the words.
        heard: told the name whenever a person changed the value.
        title: the name for people.
        spec: of its schema, what it is for (``description``) and means when absent (``default``).
        required: whether it must be there; another one stays absent until it differs from its default.
        nullable: whether it may be null.

    Attributes:
        value: the value, or ``ABSENT``; while what is typed is no value, the last one.
        given: whether it was shown a value.
        fault: why what is typed is no value, in words.
        said: the messages that are shown.
        form: whether an object is shown as a form (True) or as JSON.
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
        self.name, self.spec, self.required, self.fault = name, spec, required, ""
        self.value: Any = ABSENT
        self.said: tuple[Said, ...] = ()
        self.given, self._writing = False, False
        self._labels, self._heard, self._nullable = labels, heard, nullable
        self._plain: Any = None
        self.control: Control
        self._json: Control | None = None
        self._note: Pick | None = None
        hint = "" if isinstance(control, Fields) else str(spec.get("description", ""))
        label: Any = ipywidgets.HTML(el("label.wb-label", title or name, title=hint or None))
        words = [(labels("form_as_form"), True), (labels("form_as_json"), False)]
        writable = isinstance(control, Fields) and control.writable
        self.form = ipywidgets.ToggleButtons(options=words) if writable else None
        if self.form:
            on_change(self.form, self._switched)
            label = ipywidgets.HBox([label, self.form]).add_class("wb-input-title")
        self.box = ipywidgets.VBox([label]).add_class("wb-field")
        self.adopt(control)

    def adopt(self, control: Control) -> None:
        """Type the value into this control from now on."""
        if control is self._plain:
            return
        self._plain, self._default = control, self.spec.get("default", control.blank)
        if isinstance(control, Fields):  # its fields have defaults of their own
            self._default = control.blank
            control.box.add_class("wb-within")
        control.listen(self._changed)
        self.show(self.value, anew=True)

    def show(self, value: Any = ABSENT, anew: bool = False) -> None:
        """Show a value. One that it has already is left as it is being typed, unless it is shown ``anew``."""
        if not anew and repr(value) == repr(self.value):
            return
        self.fault, self.given = "", value is not ABSENT
        self._writing = True
        try:
            shown = self._default if value is ABSENT else value
            self.control = self._plain
            if (self.form and not self.form.value) or not self.control.write(shown):
                self.control = self._as_json()
                self.control.write(shown)
            self.box.children = (self.box.children[0], self.control.widget, *self.box.children[2:])
        finally:
            self.value, self._writing = value, False

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
        """Do what the button next to a message does."""
        if which < len(self.said) and (do := self.said[which].do):
            do()

    def _pressed(self, event: Event) -> None:
        if event.kind == "mend" and event.key.isdecimal():
            self.mend(int(event.key))

    def _as_json(self) -> Control:
        if self._json is None:
            self._json = controls.as_json(self._labels, dict if self.form else object)
            self._json.listen(self._changed)
        return self._json

    def _switched(self) -> None:
        self.show(self.value, anew=True)
        self._heard(self.name)

    def _changed(self, inner: str = "") -> None:
        if self._writing:
            return
        try:
            read = self.control.read()
        except ValueError as error:
            self.fault = str(error)
        else:
            self.fault = ""
            absent = not self.required and not self.given and read == self._default
            self.value = ABSENT if absent or (read is None and not self._nullable) else read
        self._heard(f"{self.name}.{inner}" if inner else self.name)


class Fields(Control):
    """The form of an object, which may be a part of another one.

    Args:
        schema: the object's JSON schema.
        labels: the words.
        heard: told the path of whatever a person changed, as ``sort.field``.
        without: properties that are shown only when the object has them.
        title: the name of a property for people; the property itself when empty.
        own: controls for properties that take another one than that of their type.
        blank: the value of an empty form.
        writable: whether the object can be written as JSON too.
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
        blank: Any = None,
        writable: bool = False,
        depth: int = 0,
    ):
        self.writable = writable
        self._heard: Callable[[str], None] = heard
        self._labels, self._without, self._title = labels, without, title
        self._disabled = False
        self.fields: dict[str, Field] = {}
        definitions, required = schema.get("$defs", {}), schema.get("required", ())
        for name, spec in schema.get("properties", {}).items():
            spec, nullable = _plain(spec, definitions)
            needed = name in required
            control = own.get(name) or self._control({**spec, "$defs": definitions}, nullable, needed, depth)
            self._add(name, control, spec=spec, required=needed, nullable=nullable)
        self._known = frozenset(self.fields)
        self.box = ipywidgets.VBox().add_class("wb-fields")
        super().__init__(self.box, blank)
        self.show({}, anew=True)

    def _add(self, name: str, control: Control, **more: Any) -> None:
        heard = lambda path: self._heard(path)  # noqa: E731 - who hears may change
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
                self.fields[name].control.disable(self._disabled)
        for name, field in self.fields.items():
            field.show(value.get(name, ABSENT), anew)
            display_if(field.box, name in value or name not in self._without)
        self.box.children = [field.box for field in self.fields.values()]

    def read(self) -> Any:
        """Return the object, or the blank one."""
        return self.value or self.blank

    def write(self, value: Any) -> bool:
        """Show an object; one that is taken from an earlier step is none."""
        if not (value is self.blank is None or (isinstance(value, dict) and "$from" not in value)):
            return False
        self.show(value or {}, anew=True)
        return True

    def listen(self, heard: Callable[..., None]) -> None:
        """Tell this one the path of whatever a person changed."""
        self._heard = heard

    def say(self, said: Mapping[str, Sequence[Said]]) -> list[Said]:
        """Show messages by path; return those whose field is not in this form."""
        left = dict(said)
        for name, field in self.fields.items():
            inner = [path for path in left if path.startswith(f"{name}.")]
            rest = field.control.say({path.removeprefix(f"{name}."): left.pop(path) for path in inner})
            field.say([*left.pop(name, ()), *rest])
        return super().say(left)

    def disable(self, disabled: bool) -> None:
        """Allow or forbid changes."""
        self._disabled = disabled
        for field in self.fields.values():
            field.control.disable(disabled)

    def _control(self, spec: Json, nullable: bool, required: bool, depth: int) -> Control:
        """The control of a property, by its type."""
        kind, items, labels = spec.get("type"), spec.get("items", {}), self._labels
        optional = nullable or (not required and "default" not in spec)
        none: list[tuple[str, Any]] = [("—", None)] if optional else []
        if isinstance(options := spec.get("enum"), list) and options:
            return controls.choice([*none, *((str(one), one) for one in options)])
        if kind == "boolean" and optional:
            return controls.choice([*none, (labels("form_yes"), True), (labels("form_no"), False)])
        if kind == "boolean":
            return Control(ipywidgets.Checkbox(indent=False), False)
        if kind in ("integer", "number"):
            return controls.number_or_none(kind, labels) if optional else controls.number(kind)
        if kind == "array" and not nullable and items.get("type") == "string" and "enum" not in items:
            return controls.names()
        if kind == "array" and {"field", "op", "value"} == set(_plain(items, spec["$defs"])[0].get("properties", ())):
            return controls.conditions()
        if kind == "object" and spec.get("properties") and depth < _DEEPEST:
            return Fields(spec, labels, title=self._title, blank=None if nullable else {}, depth=depth + 1)
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
        if isinstance(field.control, Fields):
            yield from fields_of(field.control, f"{prefix}{name}.")
