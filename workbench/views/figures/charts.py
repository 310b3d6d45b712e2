"""Plotly figures of records; equal records give an equal figure.

Every fate has its sign and its word (``labels``): colour is never the only difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from plotly.graph_objects import Scatter

from workbench.records.figures import Piece
from workbench.views.drawing import COLOURS, short
from workbench.views.figures.picture import Picture, axis, hover, picture, safe
from workbench.views.labels import Labels

MOST_DRAWN = 2_000
"""Points that are drawn; beyond them the dropped ones with the lowest scores are left out."""
_SIGNS = {
    "cited": ("star", "done"),
    "used": ("circle", "run"),
    "found": ("circle", "run"),
    "characters": ("circle-open", "idle"),
    "results": ("x-thin-open", "idle"),
    "duplicate": ("line-ns-open", "person"),
    "struck": ("x-thin-open", "fail"),
}
"""The fate of a finding -> shape and family of colour, from front to back."""


def findings(pieces: Sequence[Piece], title: str = "", cut: int = 0, language: str = "en") -> Picture:
    """Return every finding: its score, the step that found it, and its fate.

    Args:
        pieces: of ``records.figures.pieces``.
        title: the heading.
        cut: the number of findings beyond the limits of the steps, which were dropped at once.
        language: of the words.
    """
    labels = Labels(language)
    drawn, counts = _best(pieces), Counter(map(_kind, pieces))
    kinds = [kind for kind in reversed(_SIGNS) if counts[kind]]
    traces = [_trace(kind, counts[kind], [piece for piece in drawn if _kind(piece) == kind], labels) for kind in kinds]
    lanes = sorted({_lane(piece) for piece in pieces}, reverse=True)
    ticks = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
    scores = axis(
        labels("axis_score"),
        range=[_logit(0) - 0.4, _logit(1) + 0.4],
        tickvals=[_logit(tick) for tick in ticks],
        ticktext=[f"{tick:g}" for tick in ticks],
    )
    height = 220 + len(lanes) * min(64.0, max(11.0, 720 / max(len(lanes), 1)))
    axes = {"xaxis": scores, "yaxis": axis(type="category", categoryorder="array", categoryarray=lanes)}
    return picture(pieces, traces, title or labels("findings"), _subtitle(pieces, drawn, cut, labels), height, **axes)


def _logit(score: float) -> float:
    """Return the place of a probability: most scores are near 0, and near the ends a small difference matters."""
    inner = min(max(score, 0.0005), 0.9995)
    return round(log(inner / (1 - inner)), 3)


def _kind(piece: Piece) -> str:
    return piece["why"] or piece["fate"]


def _lane(piece: Piece) -> str:
    return safe(short(piece["step"], 34))


def _best(pieces: Sequence[Piece]) -> list[Piece]:
    """Return all that was not dropped, and the best of the dropped ones."""
    return sorted(pieces, key=lambda piece: (piece["fate"] == "dropped", -piece["score"], piece["key"]))[:MOST_DRAWN]


def _trace(kind: str, count: int, pieces: Sequence[Piece], labels: Labels) -> Scatter:
    symbol, family = _SIGNS[kind]
    return Scatter(
        x=[_logit(piece["score"]) for piece in pieces],
        y=[_lane(piece) for piece in pieces],
        mode="markers",
        name=safe(f"{_label(kind, labels)} · {count}"),
        marker={"symbol": symbol, "size": 10, "color": COLOURS[family][1]},
        hoverinfo="text",
        hovertext=[hover(piece["title"], f"{piece['score']:.2f}", short(piece["step"], 40)) for piece in pieces],
    )


def _label(kind: str, labels: Labels) -> str:
    if kind in ("cited", "used", "found"):
        return labels(f"fate_{kind}")
    return labels("dropped", why=labels(f"why_{kind}", n="[n]"))


def _subtitle(pieces: Sequence[Piece], drawn: Sequence[Piece], cut: int, labels: Labels) -> str:
    """Return what is not in the picture."""
    words = [labels("told_found", n=len(pieces))]
    words += [labels("told_cut", n=cut)] if cut else []
    words += [labels("not_drawn", n=len(pieces) - len(drawn))] if len(drawn) < len(pieces) else []
    return " · ".join(words)
