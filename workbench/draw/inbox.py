"""Everything that waits for a person: the question, what is proposed, since when; and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from workbench.draw.page import Markup, Picture, closed, code, el, glyph, joined, opened, safe
from workbench.labels import Labels
from workbench.waiting import Question, Settled, how_long, short

_LONGEST = 300


def title(asked: Sequence[Question], labels: Labels) -> Picture:
    """The head of the list, with how much it is."""
    runs = sum(len(question.runs) for question in asked)
    counted = labels("inbox_count", questions=len(asked), runs=runs)
    told = counted if asked else ""
    return Picture(
        el("div", el("h3", labels("inbox"), cls="wb-title"), " ", el("span", told, cls="wb-dim"), role="status")
    )


def inbox(
    asked: Sequence[Question],
    settled: Iterable[Settled],
    labels: Labels,
    *,
    now: datetime,
    picked: str = "",
    point: str = "",
    more: int = 0,
    refused: str = "",
) -> Picture:
    """The list, newest first, and below it what was answered since it was shown first.

    Args:
        asked: what waits.
        settled: what does not wait any more, with what became of it.
        labels: the words.
        now: until when is counted how long it waits.
        picked: the key of the row on which the buttons act.
        point: where is looked, when not everywhere.
        more: how many are listed, when there are more than these.
        refused: why the last answer was not taken.
    """
    rows = {question.key: _waiting(question, labels, now, question.key == picked) for question in asked}
    for number, one in enumerate(settled):
        rows[f"settled {number}"] = _settled(f"settled {number}", one, labels)
    empty = None
    if not asked:
        told = labels("inbox_empty_point", point=labels(f"point_{point}")) if point else labels("inbox_empty")
        empty = el("p", told, cls="wb-dim wb-empty")
    head = joined([empty, opened("div", cls="wb-list wb-scroll", role="listbox", aria_label=labels("inbox"))])
    left = el("p", labels("inbox_more", n=more), cls="wb-dim") if more else None
    alert = el("p", glyph("invalid", labels), " ", refused, cls="wb-alert", role="alert") if refused else None
    return Picture(head, rows, joined([closed("div"), left, alert]))


def _waiting(question: Question, labels: Labels, now: datetime, picked: bool) -> Markup:
    first, number = question.first, len(question.runs)
    proposed = short(first.request, labels)
    if number > 1:
        proposed = labels("inbox_alike", n=number, what=proposed)
    which = labels("inbox_runs", n=number) if number > 1 else code(first.run_id)
    return _row(
        question.key,
        glyph("paused", labels),
        question,
        proposed,
        [el("div", how_long(first.since, now)), el("div", which, cls="wb-dim")],
        labels,
        aria_selected="true" if picked else "false",
    )


def _settled(key: str, one: Settled, labels: Labels) -> Markup:
    runs = one.question.runs
    which = labels("inbox_runs", n=len(runs)) if len(runs) > 1 else code(runs[0].run_id)
    return _row(key, glyph("done", labels), one.question, one.said, [el("div", which, cls="wb-dim")], labels, gone=True)


def _row(
    key: str,
    sign: Markup,
    question: Question,
    told: str,
    side: Sequence[Markup],
    labels: Labels,
    *,
    gone: bool = False,
    aria_selected: str = "",
) -> Markup:
    where = f"{labels('point_' + question.point)} · " if question.point else ""
    main = el(
        "div",
        el("div", safe(question.first.message, _LONGEST), cls="wb-strong wb-lines"),
        el("div", where, safe(told, _LONGEST), cls="wb-dim wb-lines"),
        cls="wb-main",
    )
    chosen = {"role": "option", "aria_selected": aria_selected} if not gone else {"role": "note"}
    classes = "wb-row wb-gone" if gone else "wb-row"
    return el("div", sign, main, el("div", side, cls="wb-side"), cls=classes, data_key=key, **chosen)
