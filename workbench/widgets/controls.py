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


@dataclass(frozen=True)
class Control:
    """A widget that holds a value.

    Attributes:
        widget: what is typed into.
        read: the value; raises ValueError, in words, when what was typed is none.
        write: shows a value.
        takes: whether it can show that value.
        blank: what it shows for no value at all.
        group: the fields within, where it is a form of its own.
    """

    widget: Any
    read: Callable[[], Any]
    write: Callable[[Any], None]
    takes: Callable[[Any], bool]
    blank: Any = None
    group: Fields | None = None

    def shows(self, value: Any) -> bool:
        """Whether it shows this value already."""
        try:
            return exactly(self.read()) == exactly(value)
        except ValueError:
            return False


def text(rows: int = 1, placeholder: str = "") -> Control:
    """Written text, one line or several."""
    widget = ipywidgets.Textarea(rows=rows, placeholder=placeholder)
    return Control(widget, lambda: widget.value, lambda v: _set(widget, v), lambda v: isinstance(v, str), "")


def line(placeholder: str = "") -> Control:
    """One line of text."""
    widget = ipywidgets.Text(placeholder=placeholder)
    return Control(widget, lambda: widget.value, lambda v: _set(widget, v), lambda v: isinstance(v, str), "")


def whole() -> Control:
    """A whole number; a wrong one is kept, so that it can be told."""
    widget = ipywidgets.IntText(continuous_update=True)
    return Control(widget, lambda: widget.value, lambda v: _set(widget, v), lambda v: type(v) is int, 0)


def number() -> Control:
    """A number."""
    widget = ipywidgets.FloatText(continuous_update=True)

    def takes(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    return Control(widget, lambda: widget.value, lambda v: _set(widget, v), takes, 0.0)


def names(placeholder: str = "") -> Control:
    """A list of texts."""
    widget = ipywidgets.TagsInput(allow_duplicates=False, placeholder=placeholder or "\u200b")

    def takes(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(one, str) and one for one in value)

    return Control(widget, lambda: list(widget.value), lambda v: _set(widget, list(v)), takes, [])


def conditions() -> Control:
    """Conditions on typed fields, one a line: ``status != finished``."""
    widget = ipywidgets.Textarea(rows=2, placeholder="year >= 1990")

    def read() -> list[dict[str, Any]]:
        return [dict(parsed(line)) for line in widget.value.splitlines() if line.strip()]

    def takes(value: Any) -> bool:
        try:
            return [dict(parsed(written(one))) for one in value] == [dict(one) for one in value]
        except (TypeError, ValueError, KeyError, AttributeError, StopIteration):
            return False

    return Control(widget, read, lambda v: _set(widget, "\n".join(map(written, v))), takes, [])


def switch() -> Control:
    """Yes or no."""
    widget = ipywidgets.Checkbox(indent=False)
    return Control(widget, lambda: widget.value, lambda v: _set(widget, v), lambda v: isinstance(v, bool), False)


def choice(options: Sequence[tuple[str, Any]]) -> Control:
    """One of a few."""
    shown = dict(options)
    widget = ipywidgets.Dropdown(options=[name for name, _ in options])

    def name_of(value: Any) -> str | None:
        return next((name for name, one in options if one == value and type(one) is type(value)), None)

    return Control(
        widget,
        lambda: shown[widget.value],
        lambda v: _set(widget, name_of(v)),
        lambda v: name_of(v) is not None,
        options[0][1],
    )


def toggle(options: Sequence[tuple[str, Any]]) -> Control:
    """One of two or three, each a button."""
    widget = ipywidgets.ToggleButtons(options=list(options))
    known = [value for _, value in options]
    return Control(widget, lambda: widget.value, lambda v: _set(widget, v), lambda v: v in known, known[0])


def as_json(labels: Labels, shape: type = object) -> Control:
    """Any value, written as JSON; one of another shape is refused."""
    widget = ipywidgets.Textarea(rows=3)
    widget.add_class("wb-json")

    def read() -> Any:
        try:
            found = json.loads(widget.value, parse_constant=_refused)
        except json.JSONDecodeError as error:
            where = labels("json_at", line=error.lineno, column=error.colno)
            raise ValueError(labels("form_no_json", why=where)) from None
        except (ValueError, RecursionError) as error:
            raise ValueError(labels("form_no_json", why=str(error)[:200])) from None
        if not isinstance(found, shape):
            raise ValueError(labels("form_no_object"))
        return found

    def write(value: Any) -> None:
        _set(widget, json.dumps(value, ensure_ascii=False, indent=1))

    return Control(widget, read, write, lambda v: True)


def _refused(name: str) -> Any:
    raise ValueError(name)


def number_or_none(kind: str, labels: Labels) -> Control:
    """A number that may be left out, typed as text."""
    widget = ipywidgets.Text(placeholder=labels("form_none"))

    def read() -> int | float | None:
        typed = widget.value.strip()
        if not typed:
            return None
        try:
            found = json.loads(typed, parse_constant=_refused)
        except ValueError:
            found = None
        if not takes(found):
            raise ValueError(labels(f"form_no_{kind}", value=typed[:50]))
        return found

    def takes(value: Any) -> bool:
        return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else int | float)

    def write(value: Any) -> None:
        _set(widget, "" if value is None else json.dumps(value))

    return Control(widget, read, write, lambda v: v is None or takes(v))


def text_or_none(labels: Labels) -> Control:
    """Text that may be left out."""
    control = text(placeholder=labels("form_none"))
    return Control(
        control.widget,
        lambda: control.widget.value or None,
        lambda v: control.write(v or ""),
        lambda v: v is None or isinstance(v, str),
    )


def exactly(value: Any) -> str:
    """A value so that two are the same only when they are: 1 is not true."""
    return json.dumps(value, sort_keys=True, default=repr)


def _set(widget: Any, value: Any) -> None:
    if widget.value != value:
        widget.value = value
