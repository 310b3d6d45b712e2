"""SVG for the bench and for pages: colours are variables of the bench's style sheet, and plain colours in a page.

A network is boxes and lines, from above to below: a plan, or a graph of nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from workbench.records.writing import write_file
from workbench.state import Data
from workbench.views.layout import layered
from workbench.views.markup import TEMPLATES, draw, joined

if TYPE_CHECKING:
    import pandas

STYLE = (TEMPLATES / "colours.css").read_text("utf-8")
COLOURS: Mapping[str, str] = dict(
    re.findall(r"--wb-([a-z-]+):[^;]*?(#\w+)", STYLE.partition("}")[0])
)
"""Name -> colour in a file: each family of ``markup.family`` with ``-fill`` and ``-tint``; ``text`` and others."""
FONT = "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
_VARIABLE = re.compile(r'="var\(--wb-([a-z-]+)\)"')


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


class Patch(NamedTuple):
    """A part of a picture that is taken: its middle and its size."""

    x: float
    y: float
    wide: float
    high: float

    def meets(self, patch: Patch) -> bool:
        """Return whether they overlap."""
        return (
            2 * abs(self.x - patch.x) < self.wide + patch.wide
            and 2 * abs(self.y - patch.y) < self.high + patch.high
        )


def width(words: str, size: float = 12) -> float:
    """Return about how wide a text is."""
    return sum(1.2 if character > "\u2e7f" else 0.6 for character in words) * size


def free_patch(
    words: str,
    places: Iterable[tuple[float, float]],
    taken: Iterable[Patch],
    size: float,
    line: float,
) -> Patch | None:
    """Return the first of these places where a text, whose line is so many sizes high, meets nothing that is taken."""
    patches = (Patch(x, y, width(words, size), line * size) for x, y in places)
    return next((patch for patch in patches if not any(map(patch.meets, taken))), None)


class Body(NamedTuple):
    """What is drawn: lines behind, rows by key (as in ``page.Picture``), and the size in pixels."""

    lines: Sequence[Markup]
    rows: Mapping[str, Markup]
    width: float | str
    height: float


@dataclass(frozen=True)
class Drawing:
    """A picture for a page, and the rows behind it. In a notebook it takes JupyterLab's colours; a file is white."""

    title: str
    markup: Markup
    data: Sequence[Data]

    @property
    def svg(self) -> str:
        """Return the picture as a file of its own."""
        return _VARIABLE.sub(lambda name: f'="{COLOURS[name[1]]}"', self.markup)

    def to_frame(self) -> pandas.DataFrame:
        """Return what is drawn as a table."""
        import pandas

        return pandas.DataFrame(list(self.data))

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write it to a file as SVG.

        Raises:
            WorkbenchError: there is another file of that name and it may not be replaced, or it cannot be written.
        """
        return write_file(Path(path).expanduser(), self.svg.encode(), replace=replace)

    def __repr__(self) -> str:
        return f"<Drawing {self.title!r}: {len(self.data)} rows>"

    def _repr_html_(self) -> str:
        return zoomable(self.markup)


def zoomable(picture: Markup) -> Markup:
    """Return a picture that is fitted to its place, enlarged and scrolled without a script, in the page's colours."""
    return draw("svg.zoomable", picture=picture, style=Markup(STYLE))


Legend = Sequence[tuple[str, str, str]]
"""The meaning of signs: each sign, the name of its colour, and its words."""


_STILL = ('role="option" aria-selected="false"', 'role="img"')
"""What can be chosen on a bench, and what it is on a page."""


def sheet(
    data: Iterable[Data],
    body: Body,
    title: str,
    under: str = "",
    legend: Legend = (),
    heat: str = "",
    lines: Legend = (),
) -> Drawing:
    """Put a body on a sheet below its title, a line about it, and the meaning of its signs.

    ``heat`` names what the colours of shares are shares of; ``lines`` have dashes, no colour, and words.
    """
    inside = Markup(str(joined([*body.lines, *body.rows.values()])).replace(*_STILL))
    root = draw(
        "svg.sheet",
        title=title,
        under=under,
        inside=inside,
        body=body,
        font=FONT,
        legend=legend,
        heat=heat,
        lines=lines,
    )
    return Drawing(title, root, tuple(data))


# networks

_MARGIN, _NARROWEST, _WIDEST, _ROOM, _HEADING = 8, 130, 340, 780, 16
_ALL = 1200
"""How wide a layer of many boxes is, where their names can be cut so far."""
_BOLD = 13.5
"""The size by which a heavy text of 12 pixels is measured."""


class Box(NamedTuple):
    """A node: its name, a fact below it, its colours and its border; its share of the time."""

    name: str
    fact: str
    title: str
    ink: str
    tint: str
    border: float = 1.5
    dashed: bool = False
    chosen: bool = False
    share: float | None = None


class Line(NamedTuple):
    """From one node to another; ``look`` is ``plain``, ``heavy``, ``dashed`` or ``cycle``."""

    source: str
    target: str
    look: str = "plain"
    badge: str = ""


def network(
    boxes: Mapping[str, Box],
    lines: Iterable[Line],
    groups: Mapping[str, Sequence[str]] = {},
    high: int = 46,
) -> Body:
    """Draw boxes in layers, downwards; a line that leads back, or skips a layer, bows to one side.

    Boxes are as wide as their longest text, narrower where many are in a layer. In a low one the fact is on the line of
    its name, else below it. The boxes of a group are on a common ground with its name.
    """
    lines = sorted(lines, key=lambda line: line.look in ("heavy", "cycle"))
    layers = layered(boxes, [line[:2] for line in lines]).places
    texts = [(width(box.name, _BOLD), width(box.fact)) for box in boxes.values()]
    needed = max((sum(pair) + 16 if high < 40 else max(pair) for pair in texts), default=0)
    widest = max(Counter(layer for layer, _ in layers.values()).values(), default=1)
    most = max(_ROOM // widest, min(_WIDEST, _ALL // widest))
    wide = max(min(round(needed) + 24, most), _NARROWEST)
    pitch = high + min(20 + 4 * widest, 60)
    bows = {line: _bow(layers[line.source], layers[line.target]) for line in lines}
    left, right = (max([0, *(sign * bow * 3 // 4 for bow in bows.values())]) for sign in (-1, 1))
    first = min((row for _, row in layers.values()), default=0)
    begins = [min(layers[key][0] for key in keys) for keys in groups.values()]
    centres = {
        key: (
            round((row - first) * (wide + 12) + wide / 2 + left + _MARGIN),
            pitch * layer + _HEADING * sum(n <= layer for n in begins) + high // 2 + _MARGIN,
        )
        for key, (layer, row) in layers.items()
    }
    drawn = []
    for name, keys in groups.items():
        places = [centres[key] for key in keys]
        drawn.append(
            draw(
                "svg.ground",
                name=name,
                places=places,
                high=pitch,
                above=_HEADING,
                wide=wide,
            )
        )
    for line, bow in bows.items():
        (a, b), (c, d) = centres[line.source], centres[line.target]
        sign = (bow > 0) - (bow < 0)
        edge = sign * wide // 2
        loop = 10 if line.source == line.target else 0
        out = sign * max(sign * a, sign * c) + edge + bow
        middle = (b + d) / 2
        straight = ((a, b + high / 2), (a, middle), (c, middle), (c, d - high / 2))
        bowed = ((a + edge, b - loop), (out, b - loop), (out, d + loop), (c + edge, d + loop))
        drawn.append(draw("svg.curve", line=line, way=bowed if bow else straight, sign=sign))
    rows = {key: _box(key, box, centres[key], (wide, high)) for key, box in boxes.items()}
    broad = max((x for x, _ in centres.values()), default=0) + wide // 2 + right + _MARGIN
    return Body(
        drawn, rows, broad, max((y for _, y in centres.values()), default=0) + high // 2 + _MARGIN
    )


def _bow(source: tuple[int, float], target: tuple[int, float]) -> int:
    """Return how far a line bows: not at all to the next layer, else to the side where it begins."""
    span = target[0] - source[0]
    return 0 if span == 1 else (24 + 16 * abs(span)) * (-1 if span < 0 or source[1] < 0 else 1)


def _box(key: str, box: Box, centre: tuple[int, int], size: tuple[int, int]) -> Markup:
    (wide, high), (x, y) = size, centre
    beside = width(box.fact) + 16 if high < 40 else 0
    name = short(box.name, int((wide - 20 - beside) / (0.6 * _BOLD)))
    fits = width(box.fact) <= wide - 20
    fact = short(box.fact if fits else box.fact.partition(" · ")[0], int((wide - 20) / 7.2))
    place = {"x": x - wide // 2, "y": y - high // 2, "wide": wide, "high": high}
    return draw("svg.box", key=key, box=box, name=name, fact=fact, **place)
