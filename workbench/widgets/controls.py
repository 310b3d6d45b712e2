"""The controls of a form: a widget each that shows a value, and gives back the value that was typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import ipywidgets
from traitlets import TraitError

from workbench.plans import parsed, written
from workbench.views.labels import Labels
from workbench.widgets.panel import on_change

_NOT_SHOWN = (TraitError, ValueError, TypeError, KeyError, AttributeError, StopIteration)
"""Errors of a widget or of its formatting when it cannot show a value."""


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


def text_or_none(labels: Labels) -> Control:
    """Text that may be left out."""
    widget = ipywidgets.Textarea(rows=1, placeholder=labels("form_none"))
    return Control(widget, None, lambda typed: typed or None, lambda value: value or "")


def number(kind: str) -> Control:
    """An ``integer`` or a ``number``; a wrong one is kept, so that it can be told."""
    made = ipywidgets.IntText if kind == "integer" else ipywidgets.FloatText
    return Control(made(continuous_update=True), 0)


def number_or_none(kind: str, labels: Labels) -> Control:
    """A number that may be left out, typed as text."""

    def parse(typed: str) -> Any:
        if not typed.strip():
            return None
        try:
            found = _from_json(typed)
        except ValueError:
            found = None
        if isinstance(found, bool) or not isinstance(found, int if kind == "integer" else int | float):
            raise ValueError(labels(f"form_no_{kind}", value=typed.strip()[:50]))
        return found

    widget = ipywidgets.Text(placeholder=labels("form_none"))
    return Control(widget, None, parse, lambda value: "" if value is None else json.dumps(value))


def names(placeholder: str = "") -> Control:
    """A list of texts."""
    return Control(ipywidgets.TagsInput(allow_duplicates=False, placeholder=placeholder or "\u200b"), [], list)


def conditions() -> Control:
    """Conditions on typed fields, one a line: ``status != finished``."""

    def parse(typed: str) -> list[dict[str, Any]]:
        return [dict(parsed(line)) for line in typed.splitlines() if line.strip()]

    widget = ipywidgets.Textarea(rows=2, placeholder="year >= 1990")
    return Control(widget, [], parse, lambda value: "\n".join(map(written, value)))


def choice(options: Sequence[tuple[str, Any]]) -> Control:
    """One of a few."""
    values = dict(options)

    def name_of(value: Any) -> str:
        return next(name for name, one in options if one == value and type(one) is type(value))

    return Control(ipywidgets.Dropdown(options=list(values)), options[0][1], values.__getitem__, name_of)


def toggle(options: Sequence[tuple[str, Any]]) -> Control:
    """One of two or three, each a button."""
    return Control(ipywidgets.ToggleButtons(options=options), options[0][1])


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
    return Control(widget, None, parse, lambda value: json.dumps(value, ensure_ascii=False, indent=1))


def _from_json(typed: str) -> Any:
    """A value of JSON, which knows no ``NaN``."""

    def refused(name: str) -> Any:
        raise ValueError(name)

    return json.loads(typed, parse_constant=refused)
