"""The head of the bench: the question, facts about its run, how it stands, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.draw.page import Markup, Picture, badge, button, code, el
from workbench.labels import Labels
from workbench.labels.told import read_told, saved_told, took_told

Document = Mapping[str, Any]
VIEWS = ("work", "runs", "compare", "knowledge")
_UNDER_WAY = ("running", "paused", "interrupted")


def head(
    document: Document | None,
    labels: Labels,
    *,
    view: str = "work",
    origin: str | None = None,
    said: str = "",
    sure: bool = False,
) -> Picture:
    """The head of a run, or of an empty bench.

    Args:
        document: of the run; None before there is one.
        labels: the words.
        view: which of ``VIEWS`` is open.
        origin: the run from which this one was made.
        said: a message about what was done just now, for everybody to see.
        sure: whether somebody pressed *Cancel*, and is asked if they are sure.
    """
    if document is None:
        question, read, status = labels("bench_empty"), "", None
        facts: Sequence[Markup | None] = ()
    else:
        question, read, status = document["message"], read_told(document, labels), _status(document, labels)
        facts = _facts(document, labels, origin)
    top = el(
        "div",
        el(
            "div",
            el("h2", question, cls="wb-question"),
            el("p", read, cls="wb-dim") if read else None,
            el("div", facts, cls="wb-facts wb-dim"),
            cls="wb-main",
        ),
        el("div", status, _actions(document, labels, origin, sure), cls="wb-actions"),
        cls="wb-head-top",
    )
    alert = el("p", said, cls="wb-said", role="status") if said else None
    return Picture(el("div", top, _tabs(view, labels), alert, cls="wb-head-inside"))


def _status(document: Document, labels: Labels) -> Markup:
    status, review = document["status"], document["review"]
    word = labels(status)
    if status == "paused" and review:
        word = f"{word} · {labels('point_' + str(review['point']))}"
    return el("span", badge(status, word, labels), role="status", aria_live="polite", cls="wb-status")


def _facts(document: Document, labels: Labels, origin: str | None) -> Sequence[Markup | None]:
    made = [labels("forked_from", run=origin)] if origin else []
    counted, reflections = document["figures"], document["reflections"]
    return [
        el("span", document["kb_prefix"]) if document["kb_prefix"] else None,
        el("span", labels("run"), " ", code(document["run_id"]), *(f" {told}" for told in made)),
        el("span", labels("pass_of", n=reflections[-1]["current_iteration"], most=reflections[-1]["max_iterations"]))
        if reflections
        else None,
        el("span", took_told(counted, labels) if document["log"] else labels("nothing_run")),
        el("span", saved_told(counted, labels)) if counted["saved_calls"] else None,
        el("span", document["holder"]) if document["holder"] and document["status"] == "running" else None,
    ]


def _actions(document: Document | None, labels: Labels, origin: str | None, sure: bool) -> list[Markup]:
    if document is None:
        return []
    if sure and document["status"] in _UNDER_WAY:
        sure_buttons = [button(labels("cancel_yes"), "cancel:yes"), button(labels("cancel_no"), "cancel:no")]
        return [el("span", labels("cancel_sure"), cls="wb-alert", role="alert"), *sure_buttons]
    status, found = document["status"], []
    if status in ("interrupted", "failed"):
        found.append(button(labels("carry_on"), "resume", cls="wb-primary", title=labels("carry_on_told")))
    if status == "done" and origin:
        found.append(button(labels("compare_with", run=origin), "view:compare"))
    if status == "done" and document["plan"]:
        found.append(button(labels("fork_anew"), "fork", title=labels("fork_anew_told")))
    if status in _UNDER_WAY:
        found.append(button(labels("cancel_run"), "cancel", cls="" if status == "running" else "wb-quiet"))
    for name in ("new_question", "new_conversation"):
        found.append(button(labels(name), name, cls="wb-quiet", title=labels(f"{name}_told")))
    return found


def _tabs(view: str, labels: Labels) -> Markup:
    tabs = [
        button(labels(f"view_{name}"), f"view:{name}", cls="wb-tab", aria_pressed="true" if name == view else "false")
        for name in VIEWS
    ]
    return el("nav", tabs, cls="wb-tabs", aria_label=labels("views"))
