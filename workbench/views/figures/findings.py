"""Every finding by its score: a lane a step or a document, a sign for what became of it, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, Literal

from plotly.graph_objects import Scatter

from workbench.records.figures import Piece
from workbench.views.drawing import COLOURS, GROUND, short
from workbench.views.figures.paper import axis, hover, lanes_axis, paper, safe
from workbench.views.figures.picture import Picture
from workbench.views.labels import Labels

By = Literal["step", "document"]
MOST_DRAWN = 2_000
"""Points that are drawn; beyond them the dropped ones with the lowest scores stay out."""
_MOST_DOCUMENTS = 30
_FILLS = {name: fill for name, (_, fill, _) in COLOURS.items()}
_SIGNS: dict[str, tuple[str, int, str]] = {
    "cited": ("star", 13, COLOURS["done"][0]),
    "used": ("circle", 9, _FILLS["run"]),
    "found": ("circle", 9, _FILLS["run"]),
    "characters": ("circle-open", 9, COLOURS["idle"][0]),
    "results": ("x-thin-open", 8, COLOURS["idle"][0]),
    "duplicate": ("line-ns-open", 9, COLOURS["person"][0]),
    "without": ("square-open", 9, COLOURS["fail"][0]),
}
"""What became of a finding -> shape, size and colour, from front to back: the shape alone tells it."""


def findings(pieces: Sequence[Piece], title: str = "", by: By = "step", cut: int = 0, language: str = "en") -> Picture:
    """Every finding: its score, the step that found it, and what became of it.

    Args:
        pieces: of ``records.figures.pieces``.
        title: above it.
        by: a lane for each step, or for each document, those first that come first in the evidence.
        cut: how many more the steps found over their own limits, which were not kept.
        language: of the words.
    """
    labels = Labels(language)
    drawn = _drawn(pieces)
    lanes, names = _lanes(pieces, by, labels)
    high = min(64.0 if by == "step" else 24.0, max(11.0, 720 / max(len(names), 1)))
    layout = paper(
        title or labels("findings"),
        width=960,
        height=190 + high * max(len(names), 1),
        under=_under(pieces, drawn, cut, labels),
        below=110,
        xaxis=axis(
            labels("axis_score"),
            range=[_logit(0) - 0.4, _logit(1) + 0.4],
            tickvals=[_logit(tick) for tick in _TICKS],
            ticktext=[f"{tick:g}" for tick in _TICKS],
        ),
        yaxis=lanes_axis(
            {lane: safe(short(name, 34)) for lane, name in enumerate(names)},
            [len(names) - 0.3, -0.7],
            size=11 if high > 14 else 8,
            automargin=True,
        ),
    )
    kinds = [kind for kind in reversed(_SIGNS) if any(_kind(piece) == kind for piece in drawn)]
    counts = Counter(_kind(piece) for piece in pieces)
    traces = [_trace(kind, counts[kind], drawn, lanes, by, labels) for kind in kinds]
    return Picture.of((dict(piece) for piece in pieces), traces, layout)


_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


def _logit(score: float) -> float:
    """Where a probability stands: most findings have a score near 0, and near the ends a little means much."""
    kept = min(max(score, 0.0005), 0.9995)
    return round(log(kept / (1 - kept)), 3)


def _kind(piece: Piece) -> str:
    return piece["why"] or piece["fate"]


def _drawn(pieces: Sequence[Piece]) -> list[Piece]:
    """All that was not dropped, and the best of what was."""
    kept = [piece for piece in pieces if piece["fate"] != "dropped"]
    dropped = sorted((p for p in pieces if p["fate"] == "dropped"), key=lambda p: (-p["score"], p["key"]))
    return [*kept, *dropped[: max(MOST_DRAWN - len(kept), 0)]]


def _lanes(pieces: Sequence[Piece], by: By, labels: Labels) -> tuple[dict[str, int], list[str]]:
    """Lane of each step or document, and what the lanes are called; documents behind the first 30 share the last."""
    known = list(dict.fromkeys(_of(piece, by) for piece in pieces))
    if by == "step":
        known.sort()
    shown = known if by == "step" else known[:_MOST_DOCUMENTS]
    lanes = {name: min(number, len(shown)) for number, name in enumerate(known)}
    rest = [labels("other_documents", n=len(known) - len(shown))] if len(known) > len(shown) else []
    return lanes, [*shown, *rest]


def _of(piece: Piece, by: By) -> str:
    return piece["step"] if by == "step" else piece["title"]


def _trace(kind: str, count: int, drawn: Sequence[Piece], lanes: Mapping[str, int], by: By, labels: Labels) -> Any:
    found = [piece for piece in drawn if _kind(piece) == kind]
    symbol, size, colour = _SIGNS[kind]
    beside = _beside(found, lanes, by)
    line = {"width": 1.6 if "open" in symbol else 1, "color": colour if "open" in symbol else GROUND}
    return Scatter(
        x=[_logit(piece["score"]) for piece in found],
        y=beside,
        mode="markers",
        name=safe(f"{_named(kind, labels)} · {count}"),
        marker={"symbol": symbol, "size": size, "color": colour, "line": line},
        hoverinfo="text",
        hovertext=[_hover(piece, labels) for piece in found],
    )


def _beside(found: Sequence[Piece], lanes: Mapping[str, int], by: By) -> list[float]:
    """Their lanes; what has one score in one lane stands a little apart."""
    taken: Counter[tuple[int, float]] = Counter()
    places = []
    for piece in found:
        spot = (lanes[_of(piece, by)], round(_logit(piece["score"]), 1))
        places.append(round(spot[0] + (0, 0.16, -0.16, 0.3, -0.3)[taken[spot] % 5], 2))
        taken[spot] += 1
    return places


def _named(kind: str, labels: Labels, number: str = "[n]") -> str:
    if kind in ("cited", "used", "found"):
        return labels(f"fate_{kind}")
    return labels("dropped", why=labels(f"why_{kind}", n=number))


def _hover(piece: Piece, labels: Labels) -> str:
    number = f"[{piece['n']}] " if piece["n"] else ""
    fate = _named(_kind(piece), labels, f"[{piece['of']}]" if piece["of"] else "—")
    step, rank = short(piece["step"], 40), piece["ranks"].get(piece["step"])
    told = labels("step_rank", step=step, n=rank) if rank else step
    return hover(f"{number}{short(piece['title'], 48)}", f"{piece['score']:.2f} · {fate}", told)


def _under(pieces: Sequence[Piece], drawn: Sequence[Piece], cut: int, labels: Labels) -> str:
    """How many came how far."""
    counts = Counter(piece["fate"] for piece in pieces)
    told = [labels("told_found", n=len(pieces))]
    if not counts["found"]:
        told.append(labels("told_dropped", n=counts["dropped"]))
        told.append(labels("told_used", n=sum(p["in_prompt"] for p in pieces)))
        told.append(labels("told_cited", n=counts["cited"]))
    told += [labels("told_cut", n=cut)] if cut else []
    told += [labels("not_drawn", n=len(pieces) - len(drawn))] if len(drawn) < len(pieces) else []
    return " · ".join(told)
