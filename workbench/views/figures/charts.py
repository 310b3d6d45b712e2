"""What has axes: findings by their score, scores against the share that is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log, sqrt

from plotly.graph_objects import Scatter

from workbench.records.figures import Piece
from workbench.state import Data
from workbench.views.drawing import COLOURS, DIM, short
from workbench.views.figures.picture import Picture, axis, hover, picture, safe
from workbench.views.labels import Labels

MOST_DRAWN = 2_000
"""Points that are drawn; beyond them the dropped ones with the lowest scores stay out."""
_SIGNS = {
    "cited": ("star", "done"),
    "used": ("circle", "run"),
    "found": ("circle", "run"),
    "characters": ("circle-open", "idle"),
    "results": ("x-thin-open", "idle"),
    "duplicate": ("line-ns-open", "person"),
}
"""What became of a finding -> shape and family of colour, from front to back: the shape alone tells it."""


def findings(pieces: Sequence[Piece], title: str = "", cut: int = 0, language: str = "en") -> Picture:
    """Return every finding: its score, the step that found it, and what became of it.

    Args:
        pieces: of ``records.figures.pieces``.
        title: above it.
        cut: how many more the steps found over their own limits, which were not kept.
        language: of the words.
    """
    labels = Labels(language)
    drawn, counts = _drawn(pieces), Counter(map(_kind, pieces))
    kinds = [kind for kind in reversed(_SIGNS) if counts[kind]]
    traces = [_trace(kind, counts[kind], [piece for piece in drawn if _kind(piece) == kind], labels) for kind in kinds]
    lanes = sorted({safe(short(piece["step"], 34)) for piece in pieces}, reverse=True)
    ticks = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
    scores = axis(
        labels("axis_score"),
        range=[_logit(0) - 0.4, _logit(1) + 0.4],
        tickvals=[_logit(tick) for tick in ticks],
        ticktext=[f"{tick:g}" for tick in ticks],
    )
    height = 220 + len(lanes) * min(64.0, max(11.0, 720 / max(len(lanes), 1)))
    axes = {"xaxis": scores, "yaxis": axis(type="category", categoryorder="array", categoryarray=lanes)}
    return picture(pieces, traces, title or labels("findings"), _under(pieces, drawn, cut, labels), height, **axes)


def _logit(score: float) -> float:
    """Return where a probability stands: most findings have a score near 0, and near the ends a little means much."""
    kept = min(max(score, 0.0005), 0.9995)
    return round(log(kept / (1 - kept)), 3)


def _kind(piece: Piece) -> str:
    return piece["why"] or piece["fate"]


def _drawn(pieces: Sequence[Piece]) -> list[Piece]:
    """Return all that was not dropped, and the best of what was."""
    return sorted(pieces, key=lambda piece: (piece["fate"] == "dropped", -piece["score"], piece["key"]))[:MOST_DRAWN]


def _trace(kind: str, count: int, found: Sequence[Piece], labels: Labels) -> Scatter:
    symbol, family = _SIGNS[kind]
    return Scatter(
        x=[_logit(piece["score"]) for piece in found],
        y=[safe(short(piece["step"], 34)) for piece in found],
        mode="markers",
        name=safe(f"{_named(kind, labels)} · {count}"),
        marker={"symbol": symbol, "size": 10, "color": COLOURS[family][0]},
        hoverinfo="text",
        hovertext=[_hover(piece, labels) for piece in found],
    )


def _named(kind: str, labels: Labels, number: str = "[n]") -> str:
    if kind in ("cited", "used", "found"):
        return labels(f"fate_{kind}")
    return labels("dropped", why=labels(f"why_{kind}", n=number))


def _hover(piece: Piece, labels: Labels) -> str:
    number = f"[{piece['n']}] " if piece["n"] else ""
    fate = _named(_kind(piece), labels, f"[{piece['of']}]" if piece["of"] else "—")
    step, rank = short(piece["step"], 40), piece["ranks"].get(piece["step"])
    lane = labels("step_rank", step=step, n=rank) if rank else step
    return hover(f"{number}{piece['title']}", f"{piece['score']:.2f} · {fate}", lane)


def _under(pieces: Sequence[Piece], drawn: Sequence[Piece], cut: int, labels: Labels) -> str:
    """Return how many came how far."""
    counts = Counter(piece["fate"] for piece in pieces)
    words = [labels("told_found", n=len(pieces))]
    if not counts["found"]:
        words.append(labels("told_dropped", n=counts["dropped"]))
        words.append(labels("told_used", n=sum(p["in_prompt"] for p in pieces)))
        words.append(labels("told_cited", n=counts["cited"]))
    words += [labels("told_cut", n=cut)] if cut else []
    words += [labels("not_drawn", n=len(pieces) - len(drawn))] if len(drawn) < len(pieces) else []
    return " · ".join(words)


_INKS = [ink for ink, _, _ in COLOURS.values()]
_SHAPES = ("circle", "diamond", "square", "cross", "triangle-up", "x", "star", "hexagon")


def reliability(rows: Sequence[Data], title: str = "", language: str = "en") -> Picture:
    """For each tool the share of findings that are right, over the probability that was said of them.

    On the diagonal a score says what is; below it boasts, above it is too modest. A larger sign means more
    findings.

    Args:
        rows: ``{"tool", "low", "said", "right", "findings"}`` of each bin (``parts.evaluate.retrieval.bins_of``).
        title: above it.
        language: of the words.
    """
    labels = Labels(language)
    most = max((row["findings"] for row in rows), default=1)
    traces = [
        _scores(number, tool, [row for row in rows if row["tool"] == tool], most, labels)
        for number, tool in enumerate(dict.fromkeys(str(row["tool"]) for row in rows))
    ]
    diagonal = {"type": "line", "x0": 0, "y0": 0, "x1": 1, "y1": 1, "line": {"color": DIM, "dash": "dot"}}
    axes = {"xaxis": axis(labels("axis_said"), range=[0, 1]), "yaxis": axis(labels("axis_right"), range=[0, 1])}
    heading, under = title or labels("reliability"), labels("reliability_told")
    return picture(rows, traces, heading, under, 620, shapes=[diagonal], **axes)


def _scores(number: int, tool: str, rows: Sequence[Data], most: int, labels: Labels) -> Scatter:
    """Return the points of one tool, in a shape and a colour of its own."""
    ink, symbol = _INKS[number % len(_INKS)], _SHAPES[number % len(_SHAPES)]
    words = ({"said": f"{r['said']:.2f}", "right": f"{r['right']:.2f}", "n": r["findings"]} for r in rows)
    return Scatter(
        x=[row["said"] for row in rows],
        y=[row["right"] for row in rows],
        mode="lines+markers",
        name=safe(short(tool, 30)),
        line={"color": ink},
        marker={"symbol": symbol, "size": [5 + round(12 * sqrt(row["findings"] / most), 1) for row in rows]},
        hoverinfo="text",
        hovertext=[hover(tool, labels("reliability_bin", **values)) for values in words],
    )
