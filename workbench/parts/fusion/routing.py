"""The ways of edges on a canvas: along lanes around the nodes, at right angles, next to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import ceil, floor
from typing import Any

from workbench.state import Data
from workbench.views.drawing import Patch

Point = tuple[float, float]
_SPANS = (("x", "width"), ("y", "height"))


def ways(
    edges: Iterable[Data], nodes: Mapping[str, Data], boxes: Sequence[Patch], unit: float
) -> dict[str, list[Point]]:
    """Return the corners of each edge by its id.

    A place is where two lanes cross, twice: for ways across (axis 0) and for ways down (axis 1). An
    edge makes its own lane dearer for the next.

    Args:
        edges: those to draw.
        nodes: by id.
        boxes: what edges keep off.
        unit: the size of a pixel on the canvas.
    """
    import numpy as np  # with scipy it takes a second to load
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    # What a turn costs, a piece of a lane that has an edge already, and one that a node covers;
    # any other costs 1.
    turn = 4
    shared = 5
    over = 50
    # Pixels between two lanes, and about how many places there are; in a larger picture lanes are
    # farther apart.
    lane = 8
    most_places = 12_000
    middles = np.array(boxes)[:, :2]
    halves = np.array(boxes)[:, 2:] / 2 + 3 * unit
    area = np.array(
        [[node[name] for name in ("x", "y", "width", "height")] for node in nodes.values()]
    )
    low = area[:, :2].min(axis=0)
    high = (area[:, :2] + area[:, 2:]).max(axis=0)
    apart = max(lane * unit, (np.prod(high - low) / most_places) ** 0.5)
    low = low - 4 * apart
    shape = np.ceil((high - low) / apart).astype(int) + 4
    places = np.arange(2 * shape.prod()).reshape(*shape, 2)
    across = places[..., 0]
    down = places[..., 1]
    pieces = [(across[:-1], across[1:]), (down[:, :-1], down[:, 1:]), (across, down)]
    costs = [
        np.full(piece[0].shape, cost) for piece, cost in zip(pieces, (1, 1, turn), strict=True)
    ]
    corners = (np.ceil((middles + sign * halves - low) / apart).astype(int) for sign in (-1, 1))
    for (left, top), (right, bottom) in zip(*corners, strict=True):
        costs[0][left - 1 : right, top:bottom] += over
        costs[1][left:right, top - 1 : bottom] += over
    ends = [np.concatenate([piece[end].ravel() for piece in pieces]) for end in (0, 1)]
    used = set[int]()

    # the axis on which an edge leaves a side, and whether that is the far side
    sides = {"left": (0, 0), "right": (0, 1), "top": (1, 0), "bottom": (1, 1)}

    def ports(node: Data, side: Any) -> dict[int, Point]:
        """Return the places next to a node where edges leave it, and that point of its border; the best first."""
        options = list[tuple[float, int, Point]]()
        for name in [side] if side in sides else sides:
            axis, end = sides[name]
            (at, size), (by, span) = _SPANS[axis], _SPANS[1 - axis]
            border = float(node[at] + end * node[size])
            beside = (border + (14 * end - 7) * unit - low[axis]) / apart
            middle = (node[by] + node[span] / 2 - low[1 - axis]) / apart
            half = (node[span] / 2 - 4 * unit) / apart
            for row in range(ceil(middle - half), floor(middle + half) + 1) or [round(middle)]:
                place = (ceil(beside) if end else floor(beside), row)
                point = (border, float(low[1 - axis] + row * apart))
                if axis:
                    place = place[::-1]
                    point = point[::-1]
                options.append((abs(row - middle), int(places[*place, axis]), point))
        best = {place: point for _, place, point in sorted(options)}
        return {place: best[place] for place in best if place not in used} or best

    def way(edge: Data) -> list[Point]:
        """Return the corners of the cheapest way."""
        first, last = (
            ports(nodes[edge[f"{end}Node"]], edge.get(f"{end}Side")) for end in ("from", "to")
        )
        cost = np.concatenate([cost.ravel() for cost in costs])
        streets = coo_array((cost, ends), (places.size,) * 2)
        total, before, _ = dijkstra(streets, False, list(first), True, min_only=True)
        walk = [min(last, key=total.__getitem__)]
        while walk[-1] not in first:
            walk.append(int(before[walk[-1]]))
        used.update((walk[0], walk[-1]))
        at = [
            place
            for place, _ in groupby(divmod(place // 2, shape[1]) for place in reversed(walk))
        ]
        for (i, j), (k, _) in map(sorted, pairwise(at)):
            costs[int(i == k)][i, j] += shared
        inner = [(float(low[0] + i * apart), float(low[1] + j * apart)) for i, j in at]
        points = [first[walk[-1]], *inner, last[walk[0]]]
        turns = (
            point
            for a, point, b in zip(points, points[1:], points[2:], strict=False)
            if a[0] != b[0] and a[1] != b[1]
        )
        return [points[0], *turns, points[-1]]

    return {edge["id"]: way(edge) for edge in edges}
