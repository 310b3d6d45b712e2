"""The controls of a form: a widget each that shows a value, and gives back the value that was typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ipywidgets

from workbench.plans import parsed, written
from workbench.views.labels import Labels

if TYPE_CHECKING:
    from workbench.widgets.form import Fields


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Control:
    """A widget that holds a value.

    Attributes:
        widget: what is typed into.
        takes: whether it can show that value.
        blank: what it shows for no value at all.
        parse: the value of what stands in the widget; raises ValueError, in words, when that is none.
        format: what stands in the widget for a value.
        group: the fields within, where it is a form of its own.
    """

    widget: Any
    takes: Callable[[Any], bool]
    blank: Any = None
    parse: Callable[[Any], Any] = _as_it_is
    format: Callable[[Any], Any] = _as_it_is
    group: Fields | None = None

    def read(self) -> Any:
        """The value that was typed.

        Raises:
            ValueError: in words, when it is none.
        """
        return (self.group.value or self.blank) if self.group else self.parse(self.widget.value)

    def write(self, value: Any) -> None:
        """Show a value, unless it is shown already."""
        try:
            if exactly(self.read()) == exactly(value):
                return
        except ValueError:
            pass
        if self.group:
            self.group.show(value or {}, anew=True)
        else:
            self.widget.value = self.format(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def text(widget: ipywidgets.Widget | None = None) -> Control:
    """Written text, in one line that grows or in the widget that is given."""
    return Control(widget or ipywidgets.Textarea(rows=1), _is_text, "")


def text_or_none(labels: Labels) -> Control:
    """Text that may be left out."""
    widget = ipywidgets.Textarea(rows=1, placeholder=labels("form_none"))
    return Control(widget, lambda v: v is None or _is_text(v), None, lambda typed: typed or None, lambda v: v or "")


def _is_number(value: Any, kind: str) -> bool:
    return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else int | float)


def number(kind: str) -> Control:
    """An ``integer`` or a ``number``; a wrong one is kept, so that it can be told."""
    made = ipywidgets.IntText if kind == "integer" else ipywidgets.FloatText
    return Control(made(continuous_update=True), lambda v: _is_number(v, kind), 0)


def number_or_none(kind: str, labels: Labels) -> Control:
    """A number that may be left out, typed as text."""

    def parse(typed: str) -> Any:
        if not (typed := typed.strip()):
            return None
        try:
            found = _from_json(typed)
        except ValueError:
            found = None
        if not _is_number(found, kind):
            raise ValueError(labels(f"form_no_{kind}", value=typed[:50]))
        return found

    def takes(value: Any) -> bool:
        return value is None or _is_number(value, kind)

    widget = ipywidgets.Text(placeholder=labels("form_none"))
    return Control(widget, takes, None, parse, lambda v: "" if v is None else json.dumps(v))


def names(placeholder: str = "") -> Control:
    """A list of texts."""

    def takes(value: Any) -> bool:
        return isinstance(value, list) and all(one and _is_text(one) for one in value)

    widget = ipywidgets.TagsInput(allow_duplicates=False, placeholder=placeholder or "\u200b")
    return Control(widget, takes, [], list, list)


def conditions() -> Control:
    """Conditions on typed fields, one a line: ``status != finished``."""

    def parse(typed: str) -> list[dict[str, Any]]:
        return [dict(parsed(line)) for line in typed.splitlines() if line.strip()]

    def format_(value: Any) -> str:
        return "\n".join(map(written, value))

    def takes(value: Any) -> bool:
        try:
            return parse(format_(value)) == [dict(one) for one in value]
        except (TypeError, ValueError, KeyError, AttributeError, StopIteration):
            return False

    return Control(ipywidgets.Textarea(rows=2, placeholder="year >= 1990"), takes, [], parse, format_)


def switch() -> Control:
    """Yes or no."""
    return Control(ipywidgets.Checkbox(indent=False), lambda v: isinstance(v, bool), False)


def choice(options: Sequence[tuple[str, Any]]) -> Control:
    """One of a few."""
    values = dict(options)

    def name_of(value: Any) -> str | None:
        return next((name for name, one in options if one == value and type(one) is type(value)), None)

    widget = ipywidgets.Dropdown(options=list(values))
    return Control(widget, lambda v: name_of(v) is not None, options[0][1], values.__getitem__, name_of)


def toggle(options: Sequence[tuple[str, Any]]) -> Control:
    """One of two or three, each a button."""
    known = [value for _, value in options]
    return Control(ipywidgets.ToggleButtons(options=options), known.__contains__, known[0])


def as_json(labels: Labels, shape: type = object) -> Control:
    """Any value, written as JSON; one of another shape is refused."""

    def parse(typed: str) -> Any:
        try:
            found = _from_json(typed)
        except (ValueError, RecursionError) as error:
            why = str(error)[:200]
            if isinstance(error, json.JSONDecodeError):
                why = labels("json_at", line=error.lineno, column=error.colno)
            raise ValueError(labels("form_no_json", why=why)) from None
        if not isinstance(found, shape):
            raise ValueError(labels("form_no_object"))
        return found

    widget = ipywidgets.Textarea(rows=3).add_class("wb-json")
    return Control(widget, lambda _: True, None, parse, lambda v: json.dumps(v, ensure_ascii=False, indent=1))


def _from_json(typed: str) -> Any:
    """A value of JSON, which knows no ``NaN``."""

    def refused(name: str) -> Any:
        raise ValueError(name)

    return json.loads(typed, parse_constant=refused)


def exactly(value: Any) -> str:
    """A value so that two are the same only when they are: 1 is not true."""
    return json.dumps(value, sort_keys=True, default=repr)
