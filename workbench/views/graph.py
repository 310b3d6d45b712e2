"""The conversation graph with the graphs inside it in frames: where the run is, where it was, which ways it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.views.drawing import Body, Drawing, paint, sheet, short, text
from workbench.views.graph_trace import END, START, Edge, Frame, Node, Point, Walked
from workbench.views.labels import Labels, milliseconds
from workbench.views.page import Markup, el, family

_WIDE, _HIGH = 140, 62
"""A cell of the drawing in pixels."""
_HALF, _TALL = 0.45, 0.31
"""Half a node's width and height, in cells."""


def graph(walked: Walked, title: str, language: str = "en") -> Drawing:
    """Draw the graphs: the parent from left to right, the ones inside it downwards in their frames.

    A node that ran has how often and how long; where the run stands has a heavy border and a word; ways that were
    taken are heavy, and have their number when it was several times.
    """
    labels = Labels(language)
    nodes = {node["id"]: node for node in walked.nodes}
    tops = [frame["y0"] for frame in walked.frames] + [node["y"] - 0.5 for node in walked.nodes]
    lows = [frame["y1"] for frame in walked.frames] + [node["y"] + 0.5 for node in walked.nodes]
    top, low = min(tops, default=0) - 0.7, max(lows, default=0) + 0.7
    right = max((node["x"] for node in walked.nodes), default=0) + 0.6
    edges = sorted(walked.edges, key=lambda edge: edge["times"] > 0)
    lines = [_edge(edge, _way(nodes[edge["source"]], nodes[edge["target"]], edge, walked)) for edge in edges]
    inside = el("g", [_frame(frame) for frame in walked.frames], lines, transform=f"translate(0 {-top * _HIGH:.4g})")
    rows = {node["id"]: _node(node, top, labels) for node in walked.nodes}
    signs = (("━", "taken"), ("─", "not_taken"), ("┈", "either_way"))
    legend = "   ".join(f"{sign} {labels(word)}" for sign, word in signs)
    body = Body([inside], rows, round(right * _WIDE), round((low - top) * _HIGH))
    return sheet(walked.rows(), body, title, _under(walked, labels), legend)


def _edge(edge: Edge, way: Way) -> Markup:
    taken = edge["times"] > 0
    ink, width = paint("text" if taken else "idle-fill"), 2.4 if taken else 1
    dashes = "2 3" if edge["conditional"] and not taken else None
    a, b, c, d = (f"{x * _WIDE:.4g} {y * _HIGH:.4g}" for x, y in way.points)
    line = {"fill": "none", "stroke": ink, "stroke_width": width, "stroke_dasharray": dashes}
    curve = el("path", d=f"M{a}C{b} {c} {d}", **line)
    head = el("path", d="M0 0l-4 8h8z", fill=ink, transform=f"translate({d}) rotate({way.angle})")
    x, y = way.middle
    many = f"{edge['times']}×" if edge["times"] > 1 else None
    return el("g", curve, head, text(x * _WIDE, y * _HIGH - 4, many, 10, text_anchor="middle") if many else None)


def _frame(frame: Frame) -> Markup:
    x, y = (frame["x0"] + 0.04) * _WIDE, (frame["y0"] - 0.35) * _HIGH
    width, height = (frame["x1"] - frame["x0"] - 0.08) * _WIDE, (frame["y1"] - frame["y0"] + 0.47) * _HIGH
    ink = paint("line" if frame["status"] == "pending" else "idle-fill")
    box = el("rect", x=x, y=y, width=width, height=height, fill="none", stroke=ink)
    return el("g", box, text(x + 6, y + 14, frame["name"], 11, "dim"))


def _node(node: Node, top: float, labels: Labels) -> Markup:
    status, half, tall = node["status"], _half(node) * _WIDE, _TALL * _HIGH
    begun, ink = status != "pending", family(status)
    ended = node["name"] in (START, END)
    fact = _facts(node, labels) if begun and not ended else ""
    ran = f"{node['times']}× · {milliseconds(node['duration_ms'])}" if node["times"] else ""
    title = filter(None, (_name(node, labels), node["frame"], labels.status(status), ran))
    look = {"fill": paint(f"{ink}-tint" if begun else "ground"), "stroke": paint(f"{ink}-fill")}
    width, dashes = 1.4 if status in ("done", "pending") else 3, None if begun else "4 3"
    middle = {"text_anchor": "middle"}
    return el(
        "g",
        el("title", "\n".join(title)),
        el(
            "rect",
            x=-half,
            y=-tall,
            width=2 * half,
            height=2 * tall,
            **look,
            stroke_width=width,
            stroke_dasharray=dashes,
        ),
        text(
            0, -4 if fact else 4, short(_name(node, labels), 21), 11, "text" if begun and not ended else "dim", **middle
        ),
        text(0, 12, fact, 10, ink, **middle) if fact else None,
        transform=f"translate({node['x'] * _WIDE:.4g} {(node['y'] - top) * _HIGH:.4g})",
    )


class Way(NamedTuple):
    """An edge as it is drawn: the points of its curve, and whither it points at its end."""

    points: tuple[Point, Point, Point, Point]
    angle: int

    @property
    def middle(self) -> Point:
        """Where its number stands."""
        x, y = ((a + 3 * b + 3 * c + d) / 8 for a, b, c, d in zip(*self.points, strict=True))
        return x, y


def _way(source: Node, target: Node, edge: Edge, walked: Walked) -> Way:
    """Down inside a frame, to the right in the parent; what leads back bows to the left, what skips a row to the right.

    An edge of the parent that would cross a frame goes around it.
    """
    (x0, y0), (x1, y1) = (source["x"], source["y"]), (target["x"], target["y"])
    if source["frame"] and source["frame"] == target["frame"]:
        return _inside(x0, y0, x1, y1, edge["back"])
    between = [frame for frame in walked.frames if x0 < frame["x0"] and frame["x1"] < x1]
    if between:
        above = y1 < y0
        far = min(f["y0"] for f in between) - 0.3 if above else max(f["y1"] for f in between) + 0.3
        side = -_TALL if above else _TALL
        bend = y0 + (far - y0) / 0.75
        around = ((x0, y0 + side), (x0 + 0.25, bend), (x1 - 0.25, bend), (x1, y1 + side))
        return Way(around, 180 if above else 0)
    bend = max((x1 - x0) / 2, 0.6) / 2
    x0, x1 = x0 + _half(source), x1 - _half(target)
    return Way(((x0, y0), (x0 + bend, y0), (x1 - bend, y1), (x1, y1)), 90)


def _inside(x0: float, y0: float, x1: float, y1: float, back: bool) -> Way:
    if (x0, y0) == (x1, y1):
        return Way(((x0 - _HALF, y0 - 0.1), (x0 - 0.8, y0 - 0.5), (x0 - 0.8, y0 + 0.5), (x0 - _HALF, y0 + 0.1)), 90)
    if not back and y1 - y0 <= 1:
        return Way(((x0, y0 + _TALL), (x0, y1 - 0.5), (x1, y0 + 0.5), (x1, y1 - _TALL)), 180)
    side = -1 if back else 1
    bow = side * (0.32 + 0.13 * abs(y1 - y0))
    x0, x1 = x0 + side * _HALF, x1 + side * _HALF
    return Way(((x0, y0), (x0 + bow, y0), (x1 + bow, y1), (x1, y1)), 90 if back else 270)


def _half(node: Node) -> float:
    """Half its width."""
    return 0.2 if node["name"] in (START, END) else _HALF


def _name(node: Node, labels: Labels) -> str:
    return {START: labels("start"), END: labels("end")}.get(node["name"], node["name"])


def _facts(node: Node, labels: Labels) -> str:
    """Sign, how often and how long; where the run stands the word of that."""
    if node["status"] != "done":
        return labels.status(node["status"])
    return f"✓ {node['times']}× {milliseconds(node['duration_ms'])}" if node["times"] else "✓ "


def _under(walked: Walked, labels: Labels) -> str:
    """Where the run stands, in words."""
    here: list[Mapping[str, Any]] = [n for n in walked.nodes if n["status"] not in ("done", "pending")]
    here = here or [f for f in walked.frames if f["status"] not in ("done", "pending")]
    told = [f"{labels.status(one['status'])}{labels('colon')}{one['name']}" for one in here]
    if not told and any(node["name"] == END and node["status"] == "done" for node in walked.nodes):
        told = [labels.status("done")]
    return labels("comma").join(told)
