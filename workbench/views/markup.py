"""HTML that is safe by construction: templates, elements, rows that can be replaced one by one, glyphs of statuses."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from workbench.text import visible
from workbench.views.labels import (
    SIGNS,
    Labels,
    decision_name,
    duration_text,
    milliseconds,
    percent,
    phase_name,
    reading_text,
    reason_text,
    score_text,
    seconds_text,
)

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_CHARACTERS = 2_000
"""A longer text is cut, with the number of characters left out."""
TEMPLATES = files("workbench.views.templates")


NOTHING = Markup()
ROWS = Markup("<!--rows-->")
"""The place of the rows in the frame of a picture; every other ``<`` of a text is escaped."""


def draw(name: str, /, *labels: Labels, **values: Any) -> Markup:
    """Render a macro of a template: ``draw("past.row", labels, row=row)``.

    Every text is escaped as in ``safe``. Lines of a template are joined without a space.
    """
    template, _, macro = name.partition(".")
    return Markup(getattr(_environment().get_template(template).module, macro)(*labels, **values))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def source(name: str) -> str:
        lines = (TEMPLATES / f"{name}.html").read_text("utf-8").splitlines()
        return "".join(line.strip() for line in lines)

    result = Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        auto_reload=False,
    )
    for function in (
        *(family, milliseconds, percent, score_text, seconds_text),
        *(decision_name, duration_text, phase_name, reading_text, reason_text),
    ):
        result.globals[function.__name__] = function
    result.globals |= {"ROWS": ROWS, "NL": Markup("\n"), "SIGNS": SIGNS}
    result.filters |= {"safely": safe, "brief": cut, "whole": partial(safe, limit=sys.maxsize)}
    result.filters |= {"step": step_name, "laid_out": laid_out, "parts": parts}
    result.globals |= vars(result.get_template("parts").module)
    result.tests["web"] = re.compile(r"https?://\S+$").match
    return result


def _shown(value: Any) -> Markup:
    """Format a value of a template: None is empty, a truth value as in ARIA, a number as short as possible."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, bool):
        value = str(value).lower()
    return NOTHING if value is None else safe(f"{value:g}" if isinstance(value, float) else value)


def el(tag: str, *inside: Any, **attributes: Any) -> Markup:
    """Return an element. Its content is escaped unless it is ``Markup``; None is dropped, as attributes of None are.

    Classes follow the tag as in a CSS selector; attributes have ``-`` for ``_``.

    >>> str(el("p.note.big", "a < b", el("b", "x"), data_key='"k"'))
    '<p class="note big" data-key="&quot;k&quot;">a &lt; b<b>x</b></p>'
    """
    return draw("parts.el", tag=tag, inside=joined(inside), attributes=attributes)


def safe(text: object, limit: int = MOST_CHARACTERS) -> Markup:
    """Return text as markup: escaped, hidden characters spelled out, cut where it is long.

    >>> str(safe("<i>")), str(safe("abcdef", limit=4))
    ('&lt;i&gt;', 'abcd… +2')
    """
    return Markup(escape(visible(cut(str(text), limit)), quote=True))


def cut(value: Any, limit: int = 160) -> str:
    """Return a value as a text of at most ``limit`` characters, with the number of those left out.

    >>> cut({"a": [1, 2]}), cut("abcdef", 4)
    ('{"a": [1, 2]}', 'abcd… +2')
    """
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )
    return text if len(text) <= limit else f"{text[:limit]}… +{len(text) - limit}"


_STEP = re.compile(r"(?<![A-Za-z0-9_])step_([0-9]+)_(\w+)")


def step_name(text: object, titles: Mapping[str, str] = {}) -> str:
    """Return a text with the ``titles`` of steps for their ids; of others the name comes before the number.

    >>> step_name("+step_0_naive ~step_2_a", {"step_2_a": "“Ann”"})
    '+naive 0 ~“Ann”'
    """
    return _STEP.sub(lambda step: titles.get(step[0], f"{step[2]} {step[1]}"), str(text))


_PART = re.compile(r"<(\w+)>\n(.*?)\n</\1>|(.+?)(?=<\w+>\n|\Z)", re.DOTALL)


def parts(text: str) -> list[tuple[str, str]]:
    """Return the parts of a prompt, each with the tag around it.

    >>> parts("Say.\\n<evidence>\\n[1] x\\n</evidence>\\nNow.")
    [('', 'Say.'), ('evidence', '[1] x'), ('', 'Now.')]
    """
    parts = ((tag, (inside or between).strip()) for tag, inside, between in _PART.findall(text))
    return [pair for pair in parts if pair[1]]


def laid_out(text: str) -> Any:
    """Return what a text holds as JSON: an object or a list of moderate size; else None."""
    try:
        value = json.loads(text[:30_000])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def joined(parts: Iterable[Any]) -> Markup:
    """Join pieces of markup and text."""
    return NOTHING.join(part if isinstance(part, Markup) else safe(part) for part in parts)


@dataclass(frozen=True)
class Picture:
    """A picture in pieces. A row's own outermost element carries its key as ``data-key``, so that it can be replaced.

    Attributes:
        frame: everything but the rows, which replace ``ROWS``.
        rows: markup by key, in order.
    """

    frame: Markup = ROWS
    rows: Mapping[str, Markup] = field(default_factory=dict)

    @property
    def html(self) -> str:
        """Return the markup with its rows."""
        return str(self.frame).replace(ROWS, "".join(self.rows.values()))

    def changed(self, before: Picture) -> dict[str, str] | None:
        """Return the rows that changed, by key; None when more than rows changed."""
        if self.frame != before.frame or list(self.rows) != list(before.rows):
            return None
        return {key: str(html) for key, html in self.rows.items() if html != before.rows[key]}


BLANK = Picture()


_INKS = {
    "done": ("success", "recorded"),
    "run": ("running",),
    "person": ("paused", "partial", "interrupted", "proposed", "warning"),
    "fail": ("failed", "timeout", "invalid"),
}
_FAMILIES = {status: ink for ink, statuses in _INKS.items() for status in statuses}


def family(status: str) -> str:
    """Return the family of colour of a status."""
    return _FAMILIES.get(status, "idle")
