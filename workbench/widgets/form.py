"""A JSON schema as a form of ordinary widgets: a field for each property, with what is wrong with it beneath."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import ipywidgets
from traitlets import TraitError

from workbench.plans import parsed, written
from workbench.records.proposals import resolved
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.page import BLANK, button, el, glyph
from workbench.widgets.panel import Event, Pick, display_if, on_change

_DEEPEST = 2
_NOT_SHOWN = (TraitError, ValueError, TypeError, KeyError, AttributeError, StopIteration)
"""Errors of a widget or of its formatting when it cannot show a value."""
ABSENT: Final = object()
"""The value of a field that is left to its default."""


class Said(NamedTuple):
    """What is wrong with a field; ``mend`` is what a button next to it says, ``do`` what that does."""

    text: str
    mend: str = ""
    do: Callable[[], None] | None = None


class Control:
    """A widget that holds a value.

    Args:
        widget: what is typed into.
        blank: what it shows for no value at all.
        parse: the value of what is in the widget; raises ValueError, in words, when that is none.
        format: what is in the widget for a value.
    """

    def __init__(
        self,
        widget: Any,
        blank: Any = None,
        parse: Callable[[Any], Any] = lambda typed: typed,
        format: Callable[[Any], Any] = lambda value: value,
    ):
        self.widget, self.blank, self._parse, self._format = widget, blank, parse, format

    def read(self) -> Any:
        """Return the value that was typed.

        Raises:
            ValueError: in words, when it is none.
        """
        return self._parse(self.widget.value)

    def write(self, value: Any) -> bool:
        """Show a value, unless it is shown already; return False where the widget cannot show it."""
        try:
            with suppress(ValueError):
                if _same(self.read(), value):
                    return True
            self.widget.value = self._format(value)
            return _same(self.read(), value)
        except _NOT_SHOWN:
            return False

    def listen(self, heard: Callable[[], None]) -> None:
        """Call when a person changed the value."""
        on_change(self.widget, heard)

    def disable(self, disabled: bool) -> None:
        """Allow or forbid changes."""
        self.widget.disabled = disabled

    def say(self, said: Mapping[str, Sequence[Said]]) -> list[Said]:
        """Show messages about parts of the value, by path; return those that have no place here."""
        return [message for messages in said.values() for message in messages]


def _same(read: Any, value: Any) -> bool:
    """Compare a value as it reads with the one that was written: 1 is not true; none and no text are alike.

    >>> _same(1, True), _same(1.0, 1), _same(None, "")
    (False, True, True)
    """
    if read in (None, "") and value in (None, ""):
        return True
    return read == value and isinstance(read, bool) == isinstance(value, bool)


def text(widget: ipywidgets.Widget | None = None) -> Control:
    """Written text, in one line that grows or in the widget that is given."""
    return Control(widget or ipywidgets.Textarea(rows=1), "")


def names(placeholder: str = "") -> Control:
    """Return a list of texts."""
    return Control(ipywidgets.TagsInput(allow_duplicates=False, placeholder=placeholder or "\u200b"), [], list)


def choice(options: Sequence[tuple[str, Any]]) -> Control:
    """Return one of a few."""
    values = dict(options)

    def name_of(value: Any) -> str:
        return next(name for name, one in options if one == value and type(one) is type(value))

    return Control(ipywidgets.Dropdown(options=list(values)), options[0][1], values.__getitem__, name_of)


def toggle(options: Sequence[tuple[str, Any]]) -> Control:
    """Return one of two or three, each a button."""
    return Control(ipywidgets.ToggleButtons(options=options), options[0][1])


def _conditions() -> Control:
    """Conditions on typed fields, one per line: ``status != finished``."""

    def parse(typed: str) -> list[Json]:
        return [dict(parsed(line)) for line in typed.splitlines() if line.strip()]

    widget = ipywidgets.Textarea(rows=2, placeholder="year >= 1990")
    return Control(widget, [], parse, lambda value: "\n".join(map(written, value)))


def _number_or_none(kind: str, labels: Labels) -> Control:
    """Return a number that may be left out, typed as text."""

    def parse(typed: str) -> Any:
        value = None
        if typed.strip():
            with suppress(ValueError):
                value = _from_json(typed)
            if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
                raise ValueError(labels(f"form_no_{kind}", value=typed.strip()[:50]))
        return value

    widget = ipywidgets.Text(placeholder=labels("form_none"))
    return Control(widget, None, parse, lambda value: "" if value is None else json.dumps(value))


def _as_json(labels: Labels, shape: type = object) -> Control:
    """Any value, written as JSON; one of another shape is refused."""

    def parse(typed: str) -> Any:
        try:
            value = _from_json(typed)
        except (ValueError, RecursionError) as error:
            why = str(error)[:200]
            if isinstance(error, json.JSONDecodeError):
                why = labels("json_at", line=error.lineno, column=error.colno)
            raise ValueError(labels("form_no_json", why=why)) from None
        if not isinstance(value, shape):
            raise ValueError(labels("form_no_object"))
        return value

    widget = ipywidgets.Textarea(rows=3).add_class("wb-json")
    return Control(widget, None, parse, lambda value: json.dumps(value, ensure_ascii=False, indent=1))


def _from_json(typed: str) -> Any:
    """Return a value of JSON, which knows no ``NaN``."""

    def refused(name: str) -> Any:
        raise ValueError(name)

    return json.loads(typed, parse_constant=refused)


class Field:
    """One value: its name above, its control, and what is wrong with it beneath.

    What was given comes back as it was until a person changes it. A value that the control cannot show, as one taken
    from an earlier step, is shown as JSON; so is an object where a person wants to write it.

    Args:
        name: the property.
        control: what it is typed into.
        form: the form that it is part of.
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
        form: Fields,
        spec: Mapping[str, Any] = {},
        required: bool = True,
        nullable: bool = False,
    ):
        self.name, self.spec, self.required, self.fault = name, spec, required, ""
        self.value: Any = ABSENT
        self.said: tuple[Said, ...] = ()
        self.given, self._writing = False, False
        self._labels, self._heard, self._nullable = form.labels, form.heard, nullable
        self.control: Control
        self._plain: Any = None
        self._json: Control | None = None  # made when it is needed: a bench with all of them would open late
        self._note: Pick | None = None
        hint = "" if isinstance(control, Fields) else str(spec.get("description", ""))
        label: Any = ipywidgets.HTML(el("label.wb-label", form.title(name) or name, title=hint or None))
        self.form: ipywidgets.ToggleButtons | None = None
        if isinstance(control, Fields) and control.writable:
            words = [(self._labels("form_as_form"), True), (self._labels("form_as_json"), False)]
            self.form = ipywidgets.ToggleButtons(options=words)
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
        self.show(self.value, again=True)

    def show(self, value: Any = ABSENT, again: bool = False) -> None:
        """Show a value. One that it has already is left as it is being typed, unless it is shown ``again``."""
        if not again and repr(value) == repr(self.value):
            return
        self.fault, self.given = "", value is not ABSENT
        self._writing = True
        try:
            shown = self._default if value is ABSENT else value
            self.control = self._plain
            if (self.form and not self.form.value) or not self.control.write(shown):
                if self._json is None:
                    self._json = _as_json(self._labels, dict if self.form else object)
                    self._json.listen(self._changed)
                self.control = self._json
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

    def _switched(self) -> None:
        self.show(self.value, again=True)
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
        schema: Data,
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
        self.labels, self.title, self.writable = labels, title, writable
        self._listener: Callable[[str], None] = heard
        self._without, self._disabled, self._depth = without, False, depth
        self.fields: dict[str, Field] = {}
        definitions, required = schema.get("$defs", {}), schema.get("required", ())
        for name, spec in schema.get("properties", {}).items():
            spec, nullable = _plain(spec, definitions)
            control = own.get(name) or self._control({**spec, "$defs": definitions}, nullable, name in required)
            self.fields[name] = Field(name, control, self, spec, name in required, nullable)
        self._known = frozenset(self.fields)
        self.box = ipywidgets.VBox().add_class("wb-fields")
        super().__init__(self.box, blank)
        self.show({}, again=True)

    def heard(self, path: str) -> None:
        """Tell who listens what a person changed."""
        self._listener(path)

    @property
    def value(self) -> Json:
        """Return the object; what stands at its default and was not given is left out."""
        return {name: field.value for name, field in self.fields.items() if field.value is not ABSENT}

    @property
    def faults(self) -> dict[str, str]:
        """Return what was typed and is no value, in words, by path."""
        return {path: field.fault for path, field in fields_of(self) if field.fault}

    def show(self, value: Data, again: bool = False) -> None:
        """Show an object; what the schema does not know of is shown as JSON. See ``Field.show``."""
        for name in {*self.fields} - self._known - {*value}:
            del self.fields[name]
        for name in [name for name in value if name not in self.fields]:
            self.fields[name] = Field(name, _as_json(self.labels), self)
            self.fields[name].control.disable(self._disabled)
        for name, field in self.fields.items():
            field.show(value.get(name, ABSENT), again)
            display_if(field.box, name in value or name not in self._without)
        self.box.children = [field.box for field in self.fields.values()]

    def read(self) -> Any:
        """Return the object, or the blank one."""
        return self.value or self.blank

    def write(self, value: Any) -> bool:
        """Show an object; one that is taken from an earlier step is none."""
        if not (value is self.blank is None or (isinstance(value, dict) and "$from" not in value)):
            return False
        self.show(value or {}, again=True)
        return True

    def listen(self, heard: Callable[..., None]) -> None:
        """Tell this one the path of whatever a person changed."""
        self._listener = heard

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

    def _control(self, spec: Data, nullable: bool, required: bool) -> Control:
        """Return the control of a property, by its type."""
        kind, items, labels = spec.get("type"), spec.get("items", {}), self.labels
        optional = nullable or (not required and "default" not in spec)
        none: list[tuple[str, Any]] = [("—", None)] if optional else []
        if isinstance(options := spec.get("enum"), list) and options:
            return choice([*none, *((str(option), option) for option in options)])
        if kind == "boolean" and optional:
            return choice([*none, (labels("form_yes"), True), (labels("form_no"), False)])
        if kind == "boolean":
            return Control(ipywidgets.Checkbox(indent=False), False)
        if kind in ("integer", "number"):
            made = ipywidgets.IntText if kind == "integer" else ipywidgets.FloatText
            return _number_or_none(kind, labels) if optional else Control(made(continuous_update=True), 0)
        if kind == "array" and not nullable and items.get("type") == "string" and "enum" not in items:
            return names()
        if kind == "array" and {"field", "op", "value"} == set(_plain(items, spec["$defs"])[0].get("properties", ())):
            return _conditions()
        if kind == "object" and spec.get("properties") and self._depth < _DEEPEST:
            return Fields(spec, labels, title=self.title, blank=None if nullable else {}, depth=self._depth + 1)
        if kind == "string" and nullable:
            widget = ipywidgets.Textarea(rows=1, placeholder=labels("form_none"))
            return Control(widget, None, lambda typed: typed or None, lambda value: value or "")
        return text() if kind == "string" else _as_json(labels)


def _plain(spec: Any, definitions: Data) -> tuple[Json, bool]:
    """Return a property without its references and its null, and whether it may be null."""
    own = spec if isinstance(spec, Mapping) else {}
    nullable = any(option.get("type") == "null" for option in own.get("anyOf", ()))
    found = {**resolved(own, definitions), **{name: own[name] for name in own if name not in ("anyOf", "$ref")}}
    if "const" in found:
        found["enum"] = [found["const"]]
    return found, nullable


def fields_of(form: Fields, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield every field by its path, those within too."""
    for name, field in form.fields.items():
        yield prefix + name, field
        if isinstance(field.control, Fields):
            yield from fields_of(field.control, f"{prefix}{name}.")
