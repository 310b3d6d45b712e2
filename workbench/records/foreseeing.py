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

FEWEST, MOST = 5, 100
"""Past runs from which a forecast is made, and the newest of them that are looked at."""
MEASURES = ("calls", "input", "output", "tokens", "money", "seconds")
_TURNS = ("planner", "reflector", "executor", "merger")

Cost = Mapping[str, Mapping[str, float]]
"""Role -> what it took, by measure."""


class Node(NamedTuple):
    """A node that ran: its name, its pass, and the calls of models that it made."""

    name: str
    iteration: int
    calls: Sequence[Effect]


class Foreseen(TypedDict):
    """What models will probably take from here on.

    ``runs`` is how many past runs that rests on; below ``FEWEST`` nothing more is said. ``total``, and ``roles`` for
    each role, has for calls, tokens (read, written, both), money and seconds the first decile, the median and the
    ninth decile. ``left`` is what the budgets of tokens and money leave, where they are set.
    """

    runs: int
    total: dict[str, list[float]]
    roles: dict[str, dict[str, list[float]]]
    left: NotRequired[dict[str, float]]


def taken(nodes: Sequence[Node]) -> dict[str, Cost]:
    """Return what the models of a run that has ended took after each point where a person may decide.

    A point after which another run's tape answered a call says nothing of what calls take, and is left out.
    """
    found = dict[str, Cost]()
    for place, node in enumerate(nodes, 1):
        follows = next((one for one in nodes[place:] if one.name in _TURNS), None)
        calls = list({call.key: call for one in nodes[place:] for call in one.calls}.values())
        point = _point(node, follows)
        if not point or any(call.replayed for call in calls):
            continue
        found[point] = _cost(calls)
    return found


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


def foreseen(past: Sequence[Cost]) -> Foreseen:
    """Return the forecast from what past runs took.

    >>> one = {"writer": dict.fromkeys(MEASURES, 2.0)}
    >>> told = foreseen([one] * 5)
    >>> told["runs"], told["total"]["calls"], foreseen([one] * 4)["total"]
    (5, [2.0, 2.0, 2.0], {})
    """
    told = Foreseen(runs=len(past), total={}, roles={})
    if len(past) < FEWEST:
        return told
    told["total"] = {m: _between([sum(of.get(m, 0) for of in cost.values()) for cost in past]) for m in MEASURES}
    for role in sorted({role for cost in past for role in cost}):
        told["roles"][role] = {m: _between([cost.get(role, {}).get(m, 0) for cost in past]) for m in MEASURES}
    return told


def _between(values: Sequence[float]) -> list[float]:
    """Return the first decile, the median and the ninth."""
    cuts = statistics.quantiles(values, n=10, method="inclusive")
    return [round(cuts[place], 6) for place in (0, 4, 8)]


def exceeds(told: Foreseen) -> dict[str, str]:
    """The budgets that will not do: ``likely`` where half of the past runs took more than is left, else ``maybe``.

    >>> exceeds({"runs": 9, "total": {"tokens": [10, 20, 30]}, "roles": {}, "left": {"tokens": 25}})
    {'tokens': 'maybe'}
    """
    found: dict[str, str] = {}
    for name, left in told.get("left", {}).items():
        _, middle, high = told["total"].get(name, (0, 0, 0))
        if high > left:
            found[name] = "likely" if middle > left else "maybe"
    return found
