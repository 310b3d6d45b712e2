"""What models will probably take once a proposal is approved, in words: for the bench and for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from workbench.records.foreseeing import FEWEST, exceeds
from workbench.views.labels import Labels
from workbench.views.page import draw

_DIGITS = {"seconds": 1, "money": 4}


def foreseen_told(request: Mapping[str, Any], labels: Labels) -> tuple[str, list[str], list[str]]:
    """The forecast of a request in a line, a line for each role, and what it exceeds; "" where no model is asked."""
    told = request.get("expected")
    if not told:
        return "", [], []
    if not told["total"]:
        return labels("foreseen_none", n=told["runs"], least=FEWEST), [], []
    line = labels("foreseen", n=told["runs"], what=_measured(told["total"], labels))
    roles = [f"{labels(f'role_{role}')}{labels('colon')}{_measured(of, labels)}" for role, of in told["roles"].items()]
    over = [
        labels(f"foreseen_{how}", left=labels(f"foreseen_left_{name}", n=_number(name, told["left"][name])))
        for name, how in exceeds(told).items()
    ]
    return line, roles, over


def foreseen(request: Mapping[str, Any], labels: Labels) -> Markup:
    """The same for the bench, by role in a fold."""
    line, roles, over = foreseen_told(request, labels)
    if not line:
        return Markup()
    return draw("review.foreseen", labels=labels, line=line, roles=roles, over=over)


def _measured(of: Mapping[str, Sequence[float]], labels: Labels) -> str:
    """Calls, and whatever else was counted."""
    names = [name for name in ("calls", "input", "output", "seconds", "money") if name == "calls" or of[name][2]]
    return " · ".join(labels(f"foreseen_{name}", n=_interval(name, of[name])) for name in names)


def _interval(name: str, between: Sequence[float]) -> str:
    low, middle, high = (_number(name, value) for value in between)
    return middle if low == high else f"{middle} ({low}–{high})"


def _number(name: str, value: float) -> str:
    return f"{value:,.{_DIGITS.get(name, 0)}f}"
