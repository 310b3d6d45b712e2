"""The rail: the parent graph as a line of nodes, the child graph in a frame, the node where the run stands marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.draw.page import Markup, Picture, el, glyph
from workbench.labels import Labels

Document = Mapping[str, Any]
PARENT = ("route", "recall", "retrieval", "generate", "persist")
CHILD = ("planner", "executor", "reflector", "merger")
_AT_POINT = {"plan": "planner", "step": "executor", "reflect": "reflector"}
_IN_CHILD = {
    "intent_detect": "route",
    "apply_override_policy": "route",
    "worker_select": "route",
    "prepare_retrieval": "recall",
    "review_plan": "planner",
    "dispatcher": "executor",
    "review_reflect": "reflector",
}
"""Nodes that are part of one that is drawn."""
_ORDER = ("route", "recall", *CHILD, "generate", "persist")


def rail(document: Document, labels: Labels) -> Picture:
    """Where a run stands in its graphs; nodes that it did not come to, as for small talk, stay hollow."""
    states = node_states(document)
    pieces: list[Markup] = []
    for name in PARENT:
        if name == "retrieval":
            inside = _linked([_node(child, states[child], labels) for child in CHILD])
            frame = el("span", labels("rail_retrieval"), cls="wb-rail-name")
            pieces.append(el("span", frame, inside, cls="wb-rail-child"))
        else:
            pieces.append(_node(name, states[name], labels))
    return Picture(el("div", _linked(pieces), cls="wb-rail-line", role="img", aria_label=_told(states, labels)))


def node_states(document: Document) -> dict[str, str]:
    """Each node with ``done``, ``running``, ``paused``, ``failed``, ``interrupted``, ``cancelled`` or ``pending``."""
    ran = {_IN_CHILD.get(entry["node"], entry["node"]) for entry in document["log"]}
    states = {name: "done" if name in ran else "pending" for name in _ORDER}
    status = document["status"]
    if status == "done":
        return states
    if status == "paused" and document["review"]:
        here = _AT_POINT.get(document["review"]["point"], "reflector")
    else:
        here = _next(document, states)
    later = _ORDER.index(here) + 1
    states |= dict.fromkeys(_ORDER[later:], "pending")
    return {**states, here: status if status in ("running", "paused", "failed", "cancelled") else "interrupted"}


def _next(document: Document, states: Mapping[str, str]) -> str:
    """The node that is at work, or would be next."""
    last = document["log"][-1]["node"] if document["log"] else ""
    if last in ("dispatcher", "review_plan") or (last == "executor" and document["status"] == "running"):
        return "executor"
    if last == "review_reflect":
        return "executor" if states["merger"] == "pending" else "merger"
    place = _ORDER.index(_IN_CHILD.get(last, last)) + 1 if _IN_CHILD.get(last, last) in _ORDER else 0
    return _ORDER[min(place, len(_ORDER) - 1)]


def _node(name: str, state: str, labels: Labels) -> Markup:
    here = " wb-here" if state in ("running", "paused", "failed", "interrupted", "cancelled") else ""
    current = "step" if here else None
    return el(
        "span", glyph(state, labels), el("span", labels(f"node_{name}")), cls=f"wb-node{here}", aria_current=current
    )


def _linked(pieces: Sequence[Markup]) -> list[Markup]:
    dash = el("span", cls="wb-dash", aria_hidden="true")
    return [part for piece in pieces for part in (piece, dash)][:-1]


def _told(states: Mapping[str, str], labels: Labels) -> str:
    return labels("comma").join(f"{labels(f'node_{name}')} {labels(state)}" for name, state in states.items())
