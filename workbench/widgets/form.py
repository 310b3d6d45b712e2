"""A JSON schema as a form of ordinary widgets: one field per property, with its faults beneath."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Final, NamedTuple

import ipywidgets
from traitlets import TraitError

from workbench.plans import format_condition, parse_condition
from workbench.records.proposals import resolved
from workbench.state import Data, Json
from workbench.views.labels import Labels
from workbench.views.markup import BLANK, draw, el
from workbench.widgets.panel import Event, Pick, display_if, on_change, set_class

_DEEPEST = 2
_NOT_SHOWN = (TraitError, ValueError, TypeError, KeyError, AttributeError, StopIteration)
"""Errors of a widget or of its formatting when it cannot show a value."""
ABSENT: Final = object()
"""The value of a field that stays at its default."""


class Message(NamedTuple):
    """A message next to a field, with the label of a button that fixes the problem, and what the button does."""

    text: str
    fix: str = ""
    apply: Callable[[], None] = lambda: None


class Control:
    """A widget that edits a value.

    Args:
        widget: the widget.
        blank: the value that an empty widget shows.
        parse: converts the widget's content to a value; raises ValueError, with a message, when it is invalid.
        format: converts a value to the widget's content.
    """

    def __init__(
        self,
        widget: Any,
        blank: Any = None,
        parse: Callable[[Any], Any] = lambda typed: typed,
        format: Callable[[Any], Any] = lambda value: value,
    ):
        self.widget = widget
        self.blank = blank
        self._parse = parse
        self._format = format

    def read(self) -> Any:
        """Return the typed value.

        Raises:
            ValueError: it is invalid; the message says why.
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

    def listen(self, listener: Callable[[], None]) -> None:
        """Call when a person changed the value."""
        on_change(self.widget, listener)

    def disable(self, disabled: bool) -> None:
        """Allow or forbid changes."""
        self.widget.disabled = disabled

    def report(self, messages: Mapping[str, Sequence[Message]]) -> list[Message]:
        """Show messages about parts of the value, by path; return those that have no place here."""
        return [message for group in messages.values() for message in group]


def _same(read: Any, value: Any) -> bool:
    """Compare the value of a control with the one written to it: 1 differs from true, None equals an empty text.

    >>> _same(1, True), _same(1.0, 1), _same(None, "")
    (False, True, True)
    """
    if read in (None, "") and value in (None, ""):
        return True
    return read == value and isinstance(read, bool) == isinstance(value, bool)


def text(widget: ipywidgets.Widget | None = None) -> Control:
    """Return a control for text, by default in one line that grows."""
    return Control(widget or ipywidgets.Textarea(rows=1), "")


def names(placeholder: str = "") -> Control:
    """Return a control for a list of texts."""
    return Control(
        ipywidgets.TagsInput(allow_duplicates=False, placeholder=placeholder or "\u200b"),
        [],
        list,
    )


def step_names(placeholder: str, titles: Mapping[str, str]) -> Control:
    """Return a control for a list of steps, which shows their ``titles``, by id, and takes titles and ids."""
    widget = names(placeholder).widget

    def parse(typed: list[str]) -> list[str]:
        ids = {title.casefold(): step_id for step_id, title in titles.items()}
        step_ids = (ids.get(name.strip().casefold(), name) for name in typed)
        return [*dict.fromkeys(step_ids)]

    def format(ids: list[str]) -> list[str]:
        return [titles.get(step_id, step_id) for step_id in ids]

    # an id that was typed becomes its title
    on_change(widget, lambda: setattr(widget, "value", format(parse(widget.value))))
    return Control(widget, [], parse, format)


def choice(options: Sequence[tuple[str, Any]]) -> Control:
    """Return a drop-down list."""
    return Control(ipywidgets.Dropdown(options=options), options[0][1])


def _conditions() -> Control:
    """Return a control for conditions on typed fields, one per line: ``status != finished``."""

    def parse(typed: str) -> list[Json]:
        return [dict(parse_condition(line)) for line in typed.splitlines() if line.strip()]

    widget = ipywidgets.Textarea(rows=2, placeholder="year >= 1990")
    return Control(widget, [], parse, lambda value: "\n".join(map(format_condition, value)))


def _number_or_none(kind: str, labels: Labels) -> Control:
    """Return a control for an optional number, typed as text."""

    def parse(typed: str) -> Any:
        try:
            number = (int if kind == "integer" else float)(typed) if typed.strip() else None
            if number is not None and not isfinite(number):
                raise ValueError
            return number
        except ValueError:
            raise ValueError(labels(f"form_no_{kind}", value=typed.strip()[:50])) from None

    widget = ipywidgets.Text(placeholder=labels("form_none"))
    return Control(widget, None, parse, lambda value: "" if value is None else json.dumps(value))


def _as_json(labels: Labels) -> Control:
    """Return a control for JSON."""

    def parse(typed: str) -> Any:
        try:
            return json.loads(typed, parse_constant=int)  # no number: NaN is refused
        except (ValueError, RecursionError) as error:
            why = str(error)[:200]
            if isinstance(error, json.JSONDecodeError):
                why = labels("json_at", line=error.lineno, column=error.colno)
            raise ValueError(labels("form_no_json", why=why)) from None

    widget = ipywidgets.Textarea(rows=3).add_class("wb-json")
    return Control(
        widget, None, parse, lambda value: json.dumps(value, ensure_ascii=False, indent=1)
    )


class Field:
    """One value: its name above, its control, and messages beneath.

    A value stays unchanged until a person edits it. A value that the control cannot show, such as one taken from an
    earlier step, is shown as JSON.

    Args:
        name: the property.
        control: the control of its type.
        form: the form that the field belongs to.
        spec: the JSON schema of the property; its ``description`` is a hint, its ``default`` what absence means.
        required: whether it must be present; an optional one stays absent until it differs from its default.
        nullable: whether it may be null.

    Attributes:
        value: the value, or ``ABSENT``; while the typed text is invalid, the last valid one.
        present: whether a value was shown.
        fault: why the typed text is invalid.
        messages: the messages that are shown.
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
        self.name = name
        self.spec = spec
        self.required = required
        self.fault = ""
        self.value: Any = ABSENT
        self.messages: Sequence[Message] = ()
        self.present = False
        self._writing = False
        self._labels = form.labels
        self._notify = form.notify
        self._nullable = nullable
        self.control: Control
        self._typed: Any = None
        # made on demand: a bench with all of them would open late
        self._json: Control | None = None
        self._note: Pick | None = None
        hint = "" if isinstance(control, Fields) else str(spec.get("description", ""))
        label: Any = ipywidgets.HTML(
            el("label.wb-label", form.title(name) or name, title=hint or None)
        )
        self.box = ipywidgets.VBox([label]).add_class("wb-field")
        self.adopt(control)

    def adopt(self, control: Control) -> None:
        """Edit the value with this control from now on."""
        if control is self._typed:
            return
        self._typed = control
        self._default = self.spec.get("default", control.blank)
        if isinstance(control, Fields):  # its fields have their own defaults
            self._default = control.blank
            control.box.add_class("wb-within")
        control.listen(self._changed)
        self.show(self.value, again=True)

    def show(self, value: Any = ABSENT, again: bool = False) -> None:
        """Show a value. An equal value does not disturb what is being typed, unless it is shown ``again``."""
        if not again and repr(value) == repr(self.value):
            return
        self.fault = ""
        self.present = value is not ABSENT
        self._writing = True
        try:
            shown = self._default if value is ABSENT else value
            self.control = self._typed
            if not self.control.write(shown):
                if self._json is None:
                    self._json = _as_json(self._labels)
                    self._json.listen(self._changed)
                self.control = self._json
                self.control.write(shown)
            self.box.children = (
                self.box.children[0],
                self.control.widget,
                *self.box.children[2:],
            )
        finally:
            self.value = value
            self._writing = False

    def report(self, messages: Sequence[Message]) -> None:
        """Show these messages beneath the control, after the field's own fault."""
        messages = [*([Message(self.fault)] if self.fault else []), *messages]
        if messages == self.messages:
            return
        self.messages = messages
        if self._note is None:
            self._note = Pick(listener=self._pressed)
            self.box.children = (*self.box.children, self._note)
        self._note.show(
            draw("plan.messages", self._labels, messages=messages) if messages else BLANK
        )
        set_class(self.box, "wb-wrong", messages)

    def _pressed(self, event: Event) -> None:
        for index, message in enumerate(self.messages):
            if event == ("fix", str(index)):
                message.apply()

    def _changed(self, inner: str = "") -> None:
        if self._writing:
            return
        try:
            value = self.control.read()
        except ValueError as error:
            self.fault = str(error)
        else:
            self.fault = ""
            absent = not self.required and not self.present and value == self._default
            self.value = ABSENT if absent or (value is None and not self._nullable) else value
        self._notify(f"{self.name}.{inner}" if inner else self.name)


class Fields(Control):
    """The form of an object, which may be part of another form.

    Args:
        schema: the JSON schema of the object.
        labels: the words.
        listener: called with the path of each change by a person, such as ``sort.field``.
        title: returns the label of a property; the property itself where it returns an empty text.
        own: custom controls, by property.
        blank: the value of an empty form.
    """

    def __init__(
        self,
        schema: Data,
        labels: Labels,
        listener: Callable[[str], None] = lambda _: None,
        *,
        title: Callable[[str], str] = str,
        own: Mapping[str, Control] = {},
        blank: Any = None,
        depth: int = 0,
    ):
        self.labels = labels
        self.title = title
        self._listener: Callable[[str], None] = listener
        self._disabled = False
        self._depth = depth
        self.fields: dict[str, Field] = {}
        definitions = schema.get("$defs", {})
        required = schema.get("required", ())
        for name, spec in schema.get("properties", {}).items():
            spec, nullable = _plain(spec, definitions)
            control = own.get(name) or self._control(
                {**spec, "$defs": definitions}, nullable, name in required
            )
            self.fields[name] = Field(name, control, self, spec, name in required, nullable)
        self._properties = frozenset(self.fields)
        self.box = ipywidgets.VBox().add_class("wb-fields")
        super().__init__(self.box, blank)
        self.show({}, again=True)

    def notify(self, path: str) -> None:
        """Pass on the path of a change."""
        self._listener(path)

    @property
    def value(self) -> Json:
        """Return the object without the properties that were absent and still equal their default."""
        return {
            name: field.value for name, field in self.fields.items() if field.value is not ABSENT
        }

    @property
    def faults(self) -> dict[str, str]:
        """Return why typed text is invalid, by path."""
        return {path: field.fault for path, field in form_fields(self) if field.fault}

    def show(self, value: Data, again: bool = False) -> None:
        """Show an object; a property that the schema does not have is shown as JSON. See ``Field.show``."""
        for name in {*self.fields} - self._properties - {*value}:
            del self.fields[name]
        for name in [name for name in value if name not in self.fields]:
            self.fields[name] = Field(name, _as_json(self.labels), self)
            self.fields[name].control.disable(self._disabled)
        for name, field in self.fields.items():
            field.show(value.get(name, ABSENT), again)
        self.box.children = [field.box for field in self.fields.values()]

    def read(self) -> Any:
        """Return the object, or the blank one."""
        return self.value or self.blank

    def write(self, value: Any) -> bool:
        """Show an object; return False for a reference to an earlier step."""
        if not (
            value is self.blank is None or (isinstance(value, dict) and "$from" not in value)
        ):
            return False
        self.show(value or {}, again=True)
        return True

    def listen(self, listener: Callable[..., None]) -> None:
        """Call with the path of each change by a person."""
        self._listener = listener

    def report(self, messages: Mapping[str, Sequence[Message]]) -> list[Message]:
        """Show messages by path; return those whose field is not in this form."""
        left = dict(messages)
        for name, field in self.fields.items():
            inner = [path for path in left if path.startswith(f"{name}.")]
            rest = field.control.report(
                {path.removeprefix(f"{name}."): left.pop(path) for path in inner}
            )
            field.report([*left.pop(name, ()), *rest])
        return super().report(left)

    def disable(self, disabled: bool) -> None:
        """Allow or forbid changes."""
        self._disabled = disabled
        for field in self.fields.values():
            field.control.disable(disabled)

    def _control(self, spec: Data, nullable: bool, required: bool) -> Control:
        """Return the control of a property, by its type."""
        kind = spec.get("type")
        items = spec.get("items", {})
        labels = self.labels
        optional = nullable or (not required and "default" not in spec)
        none: list[tuple[str, Any]] = [("—", None)] if optional else []
        if isinstance(options := spec.get("enum"), list) and options:
            return choice([*none, *((str(option), option) for option in options)])
        if kind == "boolean" and optional:
            return choice([*none, (labels("form_yes"), True), (labels("form_no"), False)])
        if kind == "boolean":
            return Control(ipywidgets.Checkbox(indent=False), False)
        if kind in ("integer", "number"):
            number = ipywidgets.IntText if kind == "integer" else ipywidgets.FloatText
            if optional:
                return _number_or_none(kind, labels)
            return Control(number(continuous_update=True), 0)
        if (
            kind == "array"
            and not nullable
            and items.get("type") == "string"
            and "enum" not in items
        ):
            return names()
        if kind == "array" and {"field", "op", "value"} == set(
            _plain(items, spec["$defs"])[0].get("properties", ())
        ):
            return _conditions()
        if kind == "object" and spec.get("properties") and self._depth < _DEEPEST:
            return Fields(
                spec,
                labels,
                title=self.title,
                blank=None if nullable else {},
                depth=self._depth + 1,
            )
        if kind == "string" and nullable:
            widget = ipywidgets.Textarea(rows=1, placeholder=labels("form_none"))
            return Control(widget, None, lambda typed: typed or None, lambda value: value or "")
        return text() if kind == "string" else _as_json(labels)


def fold(text: str, inside: ipywidgets.DOMWidget) -> ipywidgets.ToggleButton:
    """Return a button that opens and closes a part of a form, which is closed at first."""
    button = ipywidgets.ToggleButton(description=text).add_class("wb-fold")
    on_change(button, lambda: display_if(inside, button.value))
    display_if(inside, False)
    return button


def _plain(spec: Any, definitions: Data) -> tuple[Json, bool]:
    """Return the schema of a property without references and null, and whether it may be null."""
    own = spec if isinstance(spec, Mapping) else {}
    nullable = any(option.get("type") == "null" for option in own.get("anyOf", ()))
    plain = {
        **resolved(own, definitions),
        **{name: own[name] for name in own if name not in ("anyOf", "$ref")},
    }
    if "const" in plain:
        plain["enum"] = [plain["const"]]
    return plain, nullable


def form_fields(form: Fields, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield every field with its path, nested ones included."""
    for name, field in form.fields.items():
        yield prefix + name, field
        if isinstance(field.control, Fields):
            yield from form_fields(field.control, f"{prefix}{name}.")
