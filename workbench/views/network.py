"""A network as boxes and lines: the plan from left to right, the graph of nodes downwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from markupsafe import Markup

from workbench.views.drawing import Body, short
from workbench.views.layout import layered
from workbench.views.page import draw

_WIDE, _HIGH, _EDGE = 188, 46, 12
_LINES = {"heavy": ("text", 2.5), "cycle": ("fail-fill", 2)}
_ANGLES = {(False, 0): 90, (False, -1): 180, (False, 1): 0, (True, 0): 180, (True, -1): 90, (True, 1): 270}


class Box(NamedTuple):
    """A node: its name, a fact below it, a badge in its corner, its colours and its border."""

    name: str
    fact: str
    title: str
    ink: str
    tint: str
    border: float = 1.5
    dashed: bool = False
    badge: str = ""
    chosen: bool = False


class Line(NamedTuple):
    """From one node to another; ``look`` is ``plain``, ``heavy``, ``dashed`` or ``cycle``."""

    source: str
    target: str
    look: str = "plain"
    badge: str = ""


def network(boxes: Mapping[str, Box], lines: Iterable[Line], down: bool = False) -> Body:
    """Draw boxes in layers; a line that leads back bows to one side, and one that skips a layer to the other."""
    lines = sorted(lines, key=lambda line: line.look in ("heavy", "cycle"))
    layers = layered(boxes, [line[:2] for line in lines]).places
    pitch = (74, _WIDE + 20) if down else (_WIDE + 52, 62)
    centres = {key: (float(pitch[0] * layer), pitch[1] * row) for key, (layer, row) in layers.items()}
    bows = {line: _bow(layers[line.source][0], layers[line.target][0]) for line in lines}
    along, across = (_HIGH, _WIDE) if down else (_WIDE, _HIGH)
    sides = [side for _, side in centres.values()] or [0.0]
    back, ahead = (max([0, *(sign * bow * 3 // 4 for bow in bows.values())]) for sign in (-1, 1))
    first = min(sides) - across / 2 - back - _EDGE
    long = max((place for place, _ in centres.values()), default=0) + along + 2 * _EDGE
    broad = max(sides) + across / 2 + ahead + _EDGE - first
    centres = {key: (place + along / 2 + _EDGE, side - first) for key, (place, side) in centres.items()}

    def point(place: float, side: float) -> tuple[int, int]:
        return (round(side), round(place)) if down else (round(place), round(side))

    drawn = []
    for line, bow in bows.items():
        (a, b), (c, d) = centres[line.source], centres[line.target]
        sign = (bow > 0) - (bow < 0)
        if sign:
            edge, loop = sign * across / 2, 10 if line.source == line.target else 0
            way = ((a - loop, b + edge), (a - loop, b + edge + bow), (c + loop, d + edge + bow), (c + loop, d + edge))
        else:
            middle = (a + c) / 2
            way = ((a + along / 2, b), (middle, b), (middle, d), (c - along / 2, d))
        drawn.append(_line(line, [point(*place) for place in way], _ANGLES[down, sign]))
    rows = {key: _box(key, box, point(*centres[key])) for key, box in boxes.items()}
    return Body(drawn, rows, *point(long, broad))


def _bow(source: int, target: int) -> int:
    """Return how far a line bows: not at all to the next layer."""
    span = target - source
    return 0 if span == 1 else (24 + 16 * abs(span)) * (1 if span > 0 else -1)


def _line(line: Line, way: list[tuple[int, int]], angle: int) -> Markup:
    ink, width = _LINES.get(line.look, ("idle-fill", 1.5))
    ways = [f"{x} {y}" for x, y in way]
    x, y = (round((p + 3 * q + 3 * r + s) / 8) for p, q, r, s in zip(*way, strict=True))
    look = {"look": line.look, "ink": ink, "width": width, "dashes": line.look in ("dashed", "cycle")}
    return draw("svg.curve", **look, way=ways, angle=angle, badge=line.badge, middle=(x, y))


def _box(key: str, box: Box, centre: tuple[int, int]) -> Markup:
    x, y = centre[0] - _WIDE // 2, centre[1] - _HIGH // 2
    words = {"name": short(box.name, 25 - len(box.badge)), "fact": short(box.fact, 30)}
    return draw("svg.box", key=key, box=box, x=x, y=y, wide=_WIDE, high=_HIGH, **words)
