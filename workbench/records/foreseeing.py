"""What models will probably take from a review point on: as much as in past runs with the same models from there on.

A run that has ended leaves one row a point: "plan", before the first step; "reflect 1 on" and "reflect 1 stop", after
the judgement of a pass that more steps followed, or none. What a person made of a proposal counts, not the proposal.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

from workbench.records.spending import spent
from workbench.records.tape import Effect
from workbench.state import ExecutionRecord

FEWEST, MOST = 5, 100
"""Past runs from which a forecast is made, and the newest of them that are looked at."""
MEASURES = ("calls", "input", "output", "tokens", "money", "seconds")
_ENOUGH_TO_SCALE, _BETTER = 8, 0.9
_TURNS = ("planner", "reflector", "executor", "merger")

Cost = Mapping[str, Mapping[str, float]]
"""Role -> what it took, by measure."""


class Node(NamedTuple):
    """A node that ran: its name, its pass, and the calls of models that it made."""

    name: str
    iteration: int
    calls: Sequence[Effect]


class Taken(NamedTuple):
    """What models took after a point, in a run that ran so many steps next."""

    point: str
    steps: int
    cost: Cost


class Foreseen(TypedDict):
    """What models will probably take from here on.

    ``runs`` is how many past runs that rests on; below ``FEWEST`` nothing more is said. ``total``, and ``roles`` for
    each role, has for calls, tokens (read, written, both), money and seconds the first decile, the median and the
    ninth decile. ``scaled`` names what past runs say is in proportion to the steps that run next. ``left`` is what the
    budgets of tokens and money leave, where they are set.
    """

    runs: int
    total: dict[str, list[float]]
    roles: dict[str, dict[str, list[float]]]
    scaled: list[str]
    left: NotRequired[dict[str, float]]


def taken(nodes: Sequence[Node], records: Iterable[ExecutionRecord]) -> list[Taken]:
    """What the models of a run that has ended took after each point where a person may decide.

    A point after which another run's tape answered a call says nothing of what calls take, and is left out.
    """
    found, records = dict[str, Taken](), list(records)
    for place, node in enumerate(nodes, 1):
        follows = next((one for one in nodes[place:] if one.name in _TURNS), None)
        calls = list({call.key: call for one in nodes[place:] for call in one.calls}.values())
        point = _point(node, follows)
        if not point or any(call.replayed for call in calls):
            continue
        ran = {r["step_id"] for r in records if follows and r["iteration"] == follows.iteration}
        ran -= {r["step_id"] for r in records if r["status"] == "skipped"}
        found[point] = Taken(point, len(ran) if follows and follows.name == "executor" else 0, _cost(calls))
    return list(found.values())


def _point(node: Node, follows: Node | None) -> str:
    if follows is None or follows.name not in ("executor", "merger"):
        return ""
    goes_on = follows.name == "executor"
    if node.name == "planner":
        return "plan" if goes_on and follows.iteration == 1 else ""
    return f"reflect {node.iteration} {'on' if goes_on else 'stop'}" if node.name == "reflector" else ""


def _cost(calls: Iterable[Effect]) -> Cost:
    by_role: dict[str, list[Effect]] = {}
    for call in calls:
        by_role.setdefault(call.name, []).append(call)
    found: dict[str, dict[str, float]] = {}
    for role, made in by_role.items():
        took, seconds = spent(made), round(sum(call.seconds for call in made), 3)
        measured = (took.calls, took.input, took.output, took.tokens, took.money, seconds)
        found[role] = dict(zip(MEASURES, measured, strict=True))
    return found


def foreseen(past: Sequence[tuple[int, Cost]], steps: int) -> Foreseen:
    """The forecast from what past runs took, each beside the steps that it ran next.

    >>> one = {"writer": dict.fromkeys(MEASURES, 2.0)}
    >>> told = foreseen([(1, one)] * 5, 1)
    >>> told["runs"], told["total"]["calls"], told["scaled"], foreseen([(1, one)] * 4, 1)["total"]
    (5, [2.0, 2.0, 2.0], [], {})
    """
    told = Foreseen(runs=len(past), total={}, roles={}, scaled=[])
    if len(past) < FEWEST:
        return told
    roles = sorted({role for _, cost in past for role in cost})
    of_all = {role: [cost.get(role, {}) for _, cost in past] for role in roles}
    ran = [n for n, _ in past]
    sums = {m: [sum(took.get(m, 0) for took in cost.values()) for _, cost in past] for m in MEASURES}
    told["scaled"] = [m for m in MEASURES if steps and in_proportion(ran, sums[m])]
    ratios = {m: [steps / n for n in ran] if m in told["scaled"] else [1.0] * len(past) for m in MEASURES}
    told["total"] = {m: _between(sums[m], ratios[m]) for m in MEASURES}
    for role, of in of_all.items():
        told["roles"][role] = {m: _between([took.get(m, 0) for took in of], ratios[m]) for m in MEASURES}
    return told


def in_proportion(steps: Sequence[int], took: Sequence[float]) -> bool:
    """Whether each run's figure is told better by the others' figure a step than by their figure alone.

    >>> counts = [1, 2, 3, 4, 1, 2, 3, 4]
    >>> in_proportion(counts, [100 * n for n in counts]), in_proportion(counts, [250] * 8)
    (True, False)
    """
    if len(steps) < _ENOUGH_TO_SCALE or len(set(steps)) < 2 or min(steps) < 1:
        return False
    flat = scaled = 0.0
    for place, (n, value) in enumerate(zip(steps, took, strict=True)):
        others = [(m, v) for at, (m, v) in enumerate(zip(steps, took, strict=True)) if at != place]
        flat += abs(value - statistics.median(v for _, v in others))
        scaled += abs(value - n * statistics.median(v / m for m, v in others))
    return scaled < _BETTER * flat


def _between(values: Sequence[float], ratios: Sequence[float]) -> list[float]:
    """The first decile, the median and the ninth."""
    cuts = statistics.quantiles([v * r for v, r in zip(values, ratios, strict=True)], n=10, method="inclusive")
    return [round(cuts[place], 6) for place in (0, 4, 8)]


def exceeds(told: Foreseen) -> dict[str, str]:
    """The budgets that will not do: ``likely`` where half of the past runs took more than is left, else ``maybe``.

    >>> exceeds({"runs": 9, "total": {"tokens": [10, 20, 30]}, "roles": {}, "scaled": [], "left": {"tokens": 25}})
    {'tokens': 'maybe'}
    """
    found: dict[str, str] = {}
    for name, left in told.get("left", {}).items():
        _, middle, high = told["total"].get(name, (0, 0, 0))
        if high > left:
            found[name] = "likely" if middle > left else "maybe"
    return found
