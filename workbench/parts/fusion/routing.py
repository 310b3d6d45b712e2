"""The ways of edges on a canvas: along lanes between the nodes, at right angles, beside one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from workbench.state import Data
from workbench.views.drawing import Patch

_CLEAR, _APART = 12, 5
"""Pixels between an edge and a node that it passes, and between two lanes."""
_TURN, _BESIDE, _OVER = 30, 40, 400
"""Pixels that a turn is worth, a piece of a lane that has an edge already, and one that a node covers."""
Point = tuple[float, float]
_SIDES = {"left": (0, 0), "right": (0, 1), "top": (1, 0), "bottom": (1, 1)}
"""The axis on which an edge leaves a side, and whether that is the far side."""
_SPANS = (("x", "width"), ("y", "height"))


def ways(
    edges: Iterable[Data], nodes: Mapping[str, Data], boxes: Sequence[Patch], unit: float
) -> dict[str, list[Point]]:
    """Return the corners of each edge by its id; ``unit`` is the size of a pixel on the canvas."""
    streets = _Streets(boxes, unit)

    def ports(edge: Data, end: str) -> dict[int, Point]:
        return streets.ports(nodes[edge[f"{end}Node"]], edge.get(f"{end}Side"))

    return {edge["id"]: streets.way(ports(edge, "from"), ports(edge, "to")) for edge in edges}


class _Streets:
    """Lanes across and down, and what each piece of them costs; an edge makes its own pieces dearer for the next.

    A place is where two lanes cross, twice: for whoever goes across (axis 0) and for whoever goes down (axis 1).
    """

    def __init__(self, boxes: Sequence[Patch], unit: float):
        import numpy as np  # with scipy it takes a second to load

        self.unit, self.used = unit, set[int]()
        spans = [[(box.x, box.wide) for box in boxes], [(box.y, box.high) for box in boxes]]
        xs, ys = self.lanes = [np.array(self._lanes(span)) for span in spans]
        self.places = np.arange(len(xs) * len(ys) * 2).reshape(len(xs), len(ys), 2)
        across, down = self.places[..., 0], self.places[..., 1]
        turns = np.full(across.shape, _TURN * unit)
        self.costs = [
            np.tile(np.diff(xs)[:, None], len(ys)),
            np.tile(np.diff(ys), (len(xs), 1)),
            turns,
        ]
        for box in boxes:
            wide, high = (size / 2 + 3 * unit for size in (box.wide, box.high))
            left, right = np.searchsorted(xs, (box.x - wide, box.x + wide))
            top, low = np.searchsorted(ys, (box.y - high, box.y + high))
            self.costs[0][max(left - 1, 0) : right, top:low] += _OVER * unit
            self.costs[1][left:right, max(top - 1, 0) : low] += _OVER * unit
        starts, ends = (across[:-1], down[:, :-1], across), (across[1:], down[:, 1:], down)
        self.pairs = [np.concatenate([part.ravel() for part in side]) for side in (starts, ends)]

    def _lanes(self, spans: Iterable[tuple[float, float]]) -> list[float]:
        """Return where lanes run: beside each span and through it, none too close to the one before."""
        clear, places, lanes = _CLEAR * self.unit, set[float](), list[float]()
        for middle, size in spans:
            for end in (size / 2 + clear, size / 2 + 2 * clear, size / 4, 0):
                places |= {middle - end, middle + end}
        for place in sorted(places):
            if not lanes or place - lanes[-1] >= _APART * self.unit:
                lanes.append(round(place, 1))
        return lanes

    def ports(self, node: Data, side: Any) -> dict[int, Point]:
        """Return the places next to a node where edges leave it, and that point of its border; the best first."""
        import numpy as np

        places = list[tuple[float, int, Point]]()
        for name in [side] if side in _SIDES else _SIDES:
            axis, far = _SIDES[name]
            (at, size), (by, span) = _SPANS[axis], _SPANS[1 - axis]
            rows, border = self.lanes[1 - axis], node[at] + far * node[size]
            beside = border + (_CLEAR - _APART) * self.unit * (2 * far - 1)
            off = np.abs(rows - node[by] - node[span] / 2)
            inside = off < max(node[span] / 2 - 4 * self.unit, off.min() + 0.1)
            for row in np.flatnonzero(inside):
                lane = np.searchsorted(self.lanes[axis], beside) - 1 + far
                place, point = (lane, row), (border, float(rows[row]))
                if axis:
                    place, point = place[::-1], point[::-1]
                places.append((off[row], int(self.places[*place, axis]), point))
        ports = {place: point for _, place, point in sorted(places)}
        return {key: ports[key] for key in ports if key not in self.used} or ports

    def way(self, first: Mapping[int, Point], last: Mapping[int, Point]) -> list[Point]:
        """Return the corners of the cheapest way from one of the first ports to one of the last."""
        import numpy as np
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        costs = np.concatenate([cost.ravel() for cost in self.costs])
        streets = coo_array((costs, self.pairs), (self.places.size,) * 2)
        far, before, _ = dijkstra(streets, False, list(first), True, min_only=True)
        walk = [min(last, key=far.__getitem__)]
        while walk[-1] not in first:
            walk.append(int(before[walk[-1]]))
        self.used |= {walk[0], walk[-1]}
        at = [place for place, _ in groupby(divmod(key // 2, len(self.lanes[1])) for key in walk)]
        for (i, j), (k, _) in map(sorted, pairwise(at)):
            self.costs[i == k][i, j] += _BESIDE * self.unit
        xs, ys = self.lanes
        inner = [(float(xs[i]), float(ys[j])) for i, j in reversed(at)]
        points = [first[walk[-1]], *inner, last[walk[0]]]
        corners = [
            b
            for a, b, c in zip(points, points[1:], points[2:], strict=False)
            if a[0] != c[0] and a[1] != c[1]
        ]
        return [points[0], *corners, points[-1]]
