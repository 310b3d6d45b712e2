"""The lines between the steps of a list, as in a git log: who is joined to whom, in few lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from workbench.draw.page import Markup, el

MOST_LANES = 8
"""Lines beyond these share the last lane."""
_MID, _LOW, _FAR, _FIRST, _APART = 26, 52, 999, 9, 13
_STRENGTH = ("dashed", "plain", "heavy", "cycle")


class Edge(NamedTuple):
    """From one row to another; ``look`` is ``plain``, ``heavy``, ``dashed`` or ``cycle``."""

    source: int
    target: int
    look: str = "plain"

    @property
    def rows(self) -> tuple[int, int]:
        """Its rows, the upper one first."""
        return min(self.source, self.target), max(self.source, self.target)


@dataclass
class _Bus:
    """Edges that share a line: all that leave one row, or all that come to one."""

    owner: int
    lane: int = 0
    first: int = 0
    last: int = 0
    reach: dict[str, tuple[int, int]] = field(default_factory=dict)
    at: dict[int, list[Edge]] = field(default_factory=dict)

    def add(self, edge: Edge) -> None:
        """Take an edge in."""
        self.first, self.last = self._wider((self.first, self.last) if self.at else edge.rows, edge)
        self.reach[edge.look] = self._wider(self.reach.get(edge.look, edge.rows), edge)
        for row in edge.rows:
            self.at.setdefault(row, []).append(edge)

    def look(self, row: int) -> str:
        """Of the piece between the middle of a row and the middle of the next: all its edges meet in one row."""
        looks = (look for look, (first, last) in self.reach.items() if first <= row < last)
        return max(looks, key=_STRENGTH.index, default="")

    @staticmethod
    def _wider(known: tuple[int, int], edge: Edge) -> tuple[int, int]:
        return min(known[0], edge.rows[0]), max(known[1], edge.rows[1])


class Row(NamedTuple):
    """The gutter of one row: the lane of its dot, and the lines through it."""

    lane: int
    lines: tuple[tuple[str, str], ...]


def lanes(count: int, edges: Iterable[Edge]) -> list[Row]:
    """The gutter of each row. Two rows that feed a third share its line; so do those that one row feeds.

    >>> [row.lane for row in lanes(3, [Edge(0, 2), Edge(1, 2)])], len(lanes(1, []))
    ([0, 1, 0], 1)
    """
    buses = _buses(edges)
    starting: dict[int, list[_Bus]] = {}
    for bus in buses:
        starting.setdefault(bus.first, []).append(bus)
    active: list[_Bus] = []
    rows = []
    for row in range(count):
        lane = _lane_of(row, active)
        going = {bus.lane for bus in active if bus.last > row}
        for bus in sorted(starting.get(row, ()), key=lambda b: (b.owner != row, b.last)):
            bus.lane = lane if lane not in going else _free(going | {lane})
            going.add(bus.lane)
            active.append(bus)
        rows.append(Row(lane, tuple(line for bus in active for line in _lines(bus, row, lane))))
        active = [bus for bus in active if bus.last > row]
    return rows


def drawn(row: Row, hollow: bool, width: int) -> Markup:
    """The gutter of one row as SVG; its lines go on as far down as the row is high."""
    by_look: dict[str, str] = {}
    for look, path in row.lines:
        by_look[look] = by_look.get(look, "") + path
    paths = [
        el("path", d=by_look[look], cls=f"wb-dag wb-dag-{look}") for look in (*_STRENGTH, "arrow") if look in by_look
    ]
    dot = el("circle", cx=_x(row.lane), cy=_MID, r=4, cls="wb-dot wb-hollow" if hollow else "wb-dot")
    return el("svg", paths, dot, cls="wb-gutter", width=width, aria_hidden="true")


@lru_cache(8)
def gutters(count: int, edges: tuple[Edge, ...]) -> tuple[tuple[Row, ...], int]:
    """The gutter of each row, and its width in pixels; kept, since a list is drawn many times while a run goes on."""
    rows = lanes(count, edges)
    reached = max(
        (int(piece.split()[0]) for row in rows for _, path in row.lines for piece in path.split("M")[1:]), default=0
    )
    return tuple(rows), max(reached, *(_x(row.lane) for row in rows), 0) + _FIRST


def _buses(edges: Iterable[Edge]) -> list[_Bus]:
    edges = [edge for edge in dict.fromkeys(edges) if edge.source != edge.target]
    feeds, fed = dict[int, int](), dict[int, int]()
    for edge in edges:
        feeds[edge.source] = feeds.get(edge.source, 0) + 1
        fed[edge.target] = fed.get(edge.target, 0) + 1
    made: dict[tuple[str, int, int], _Bus] = {}
    for place, edge in enumerate(edges):
        if edge.look == "cycle":
            key = ("cycle", -1, place)
        elif fed[edge.target] >= feeds[edge.source]:
            key = ("to", edge.target, 0)
        else:
            key = ("from", edge.source, 0)
        made.setdefault(key, _Bus(key[1])).add(edge)
    return list(made.values())


def _lane_of(row: int, active: Sequence[_Bus]) -> int:
    ending = [bus.lane for bus in active if bus.last == row]
    owned = [bus.lane for bus in active if bus.owner == row]
    return min(ending or owned, default=_free({bus.lane for bus in active}))


def _free(used: set[int]) -> int:
    return next((lane for lane in range(MOST_LANES) if lane not in used), MOST_LANES - 1)


def _lines(bus: _Bus, row: int, lane: int) -> Iterable[tuple[str, str]]:
    x, here, on = _x(bus.lane), _x(lane), bus.lane == lane
    above, below = bus.look(row - 1), bus.look(row)
    by_strength = sorted(bus.at.get(row, ()), key=lambda edge: _STRENGTH.index(edge.look))
    joined = {edge.rows[0] == row: edge for edge in by_strength}
    if above and (on or below):
        yield (below if not on and False in joined else above), f"M{x} 0V{_MID}"
    if below and (on or above):
        yield (above if not on and True in joined else below), f"M{x} {_MID}V{_LOW}"
    if below:
        yield below, f"M{x} {_LOW}V{_FAR}"
    for down, edge in joined.items():
        if not on:
            yield edge.look, _bend(x, here, down, edge.look == "cycle")
        if edge.look == "cycle" and edge.target == row:
            yield "arrow", _arrow(here, on, down)


def _bend(x: int, here: int, down: bool, square: bool) -> str:
    end = _LOW if down else 0
    if square:
        return f"M{x} {end}V{_MID + (8 if down else -8)}Q{x} {_MID} {x + (-8 if x > here else 8)} {_MID}H{here}"
    return f"M{x} {end}C{x} {(end + _MID) // 2} {here} {(end + _MID) // 2} {here} {_MID}"


def _arrow(here: int, on: bool, down: bool) -> str:
    if not on:
        return f"M{here + 5} {_MID}l7 -4v8z"
    return f"M{here} {_MID + 5}l-4 7h8z" if down else f"M{here} {_MID - 5}l-4 -7h8z"


def _x(lane: int) -> int:
    return _FIRST + _APART * lane
