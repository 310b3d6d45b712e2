"""SVG for the bench and for pages: colours are variables of the bench's style sheet, and plain colours in a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from workbench.records.writing import write_file
from workbench.views.page import ROWS, Data, Picture, draw, el, joined

if TYPE_CHECKING:
    import pandas

COLOURS: Mapping[str, tuple[str, str, str]] = {
    "done": ("#00705A", "#2A9D83", "#E6F4F0"),
    "run": ("#0B5CAD", "#2F7FD1", "#E8F1FB"),
    "person": ("#855000", "#EBAA2A", "#FFF5DD"),
    "fail": ("#A8201A", "#B3362B", "#FCECEA"),
    "idle": ("#666666", "#8C8C8C", "#F3F3F3"),
}
"""Family -> ink, fill, tint; families are those of ``page.family``."""
GROUND, INK, DIM, LINE = "#FFFFFF", "#1F1F1F", "#666666", "#E0E0E0"
FONT = "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
_VARIABLE = re.compile(r'="var\(--wb-([a-z-]+)\)"')
_HEAD, _FOOT, _EDGE = 60, 36, 20


_NAMES = {"ground": GROUND, "text": INK, "line": LINE, "dim": DIM}
_NAMES |= {
    f"{family}{ending}": colour
    for family, shades in COLOURS.items()
    for ending, colour in zip(("", "-fill", "-tint"), shades, strict=True)
}


def short(words: str, columns: int) -> str:
    """Cut a text to so many columns, a Chinese character counted as two.

    >>> short("step_0_wedding_banquet", 12), short("饮食男女饮食男女", 9)
    ('step_0_wedd…', '饮食男女…')
    """
    width = 0
    for index, character in enumerate(words):
        width += 2 if character > "\u2e7f" else 1
        if width > columns - (index + 1 < len(words)):
            return words[:index] + "…"
    return words


class Body(NamedTuple):
    """What is drawn: lines behind, rows by key (as in ``page.Picture``), and the size in pixels."""

    lines: Sequence[Markup]
    rows: Mapping[str, Markup]
    width: float | str
    height: float

    def picture(self, **attributes: Any) -> Picture:
        """Return it as a picture of the bench, whose rows can be chosen and replaced."""
        size = {"width": self.width, "height": self.height, **attributes}
        return Picture(el("svg", self.lines, ROWS, **size), self.rows)


@dataclass(frozen=True)
class Drawing:
    """A picture for a page, and the rows behind it. It is white in every theme, like a printed page."""

    title: str
    markup: Markup
    data: Sequence[Data]

    @property
    def svg(self) -> str:
        """Return the picture as a file of its own."""
        return _VARIABLE.sub(lambda name: f'="{_NAMES[name[1]]}"', self.markup)

    def to_frame(self) -> pandas.DataFrame:
        """Return what is drawn as a table."""
        import pandas

        return pandas.DataFrame(list(self.data))

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write it to a file: a page when its name ends in ``.html``, else SVG.

        Raises:
            WorkbenchError: there is another file of that name and it may not be replaced, or it cannot be written.
        """
        target = Path(path).expanduser()
        page = f"<!doctype html><meta charset=utf-8>{self._repr_html_()}"
        return write_file(target, (page if target.suffix == ".html" else self.svg).encode(), replace=replace)

    def __repr__(self) -> str:
        return f"<Drawing {self.title!r}: {len(self.data)} rows>"

    def _repr_html_(self) -> str:
        return f'<div class="mathjax_ignore tex2jax_ignore" style="overflow:auto;max-height:800px">{self.svg}</div>'


def sheet(data: Iterable[Data], body: Body, title: str, under: str = "", legend: str = "") -> Drawing:
    """Put a body on a sheet with a title, a line under it, and what its signs mean."""
    width, height = max(float(body.width) + 2 * _EDGE, 620), body.height + _HEAD + (_FOOT if legend else _EDGE)
    root = draw(
        "svg.sheet",
        title=title,
        heading=short(title, 90),
        under=short(under, 150),
        inside=joined([body.lines, *body.rows.values()]),
        body=body,
        legend=legend,
        width=width,
        height=height,
        font=FONT,
    )
    return Drawing(title, root, tuple(data))
