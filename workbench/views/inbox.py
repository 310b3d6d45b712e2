"""The inbox: which runs wait for a person, as rows, as markup for the widget, and as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from markupsafe import Markup

from workbench.plans import canonical_json
from workbench.records import proposals
from workbench.records.tape import comparable
from workbench.state import Data
from workbench.views.labels import Labels
from workbench.views.outline import Block, Lines, clipped, columns
from workbench.views.page import Picture, draw

MOST_NAMED = 3


@dataclass(frozen=True)
class Waits:
    """A run that waits at a review point.

    Attributes:
        run_id: which.
        message: what was asked of it.
        request: what it asks.
        since: since when, UTC, ISO 8601.
    """

    run_id: str
    message: str
    request: Data
    since: str

    @property
    def review_id(self) -> str:
        """Return which question of the run."""
        return str(self.request.get("review_id", ""))

    @cached_property
    def key(self) -> str:
        """Equal for runs that were asked the same and propose the same."""
        proposed = comparable(dict(proposals.proposal(self.request)))
        same = [self.message, proposals.point(self.request), proposed]
        return hashlib.sha256(canonical_json(same).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Question:
    """What can be answered at once: runs with the same question and the same proposal, newest first."""

    key: str
    runs: tuple[Waits, ...]

    @property
    def first(self) -> Waits:
        """Return the newest."""
        return self.runs[0]

    @property
    def point(self) -> str:
        """Return where they wait."""
        return proposals.point(self.first.request)


def questions(waiting: Iterable[Waits], point: str = "") -> list[Question]:
    """Alike ones together, newest first; only those at a point, when one is given."""
    found: dict[str, list[Waits]] = {}
    for one in sorted(waiting, key=lambda one: (one.since, one.run_id), reverse=True):
        if not point or proposals.point(one.request) == point:
            found.setdefault(one.key, []).append(one)
    return [Question(key, tuple(runs)) for key, runs in found.items()]


def since(log: Sequence[Data], decisions: Sequence[Data], began: str) -> str:
    """When a run began to wait: after the last node that ran, or the last decision."""
    moments = [datetime.fromisoformat(began), *(datetime.fromisoformat(d["decided_at"]) for d in decisions)]
    for entry in log:
        moments.append(datetime.fromisoformat(entry["timestamp"]) + timedelta(milliseconds=entry["duration_ms"]))
    return max(moments).isoformat()


def short(request: Data, labels: Labels) -> str:
    """Return what is proposed, in a few words."""
    kind, proposed = proposals.kind(request), proposals.proposal(request)
    if kind == "plan":
        number = len(request.get("ahead", proposed["plan"]["steps"]))
        return labels("inbox_plan" if number else "inbox_plan_none", n=number)
    if kind == "step":
        wave = list(map(str, proposed["wave"]))
        more = [labels("and_more", n=len(wave) - MOST_NAMED)] if len(wave) > MOST_NAMED else []
        return labels("inbox_step", steps=labels("comma").join([*wave[:MOST_NAMED], *more]))
    if kind == "reflect":
        return _reflection(proposed, labels)
    if kind == "outline":
        return labels("comma").join(section["title"] for section in proposed["sections"])
    if kind == "section":
        return str(proposed["title"])
    return proposals.description(request)


def _reflection(proposed: Data, labels: Labels) -> str:
    number = len(proposed["next_steps"]) + len(proposed["activate"])
    asked = labels("inbox_more_steps", n=number) if proposed["should_continue"] else labels("inbox_answer")
    return f"{asked} {proposed.get('reasoning') or ''}".strip()


def how_long(begun: str, now: datetime) -> str:
    """Return how long it waits, for people.

    >>> now = datetime.fromisoformat("2026-01-02T00:00:00+00:00")
    >>> [how_long(f"2026-01-0{d}T{t}:00+00:00", now) for d, t in ((1, "23:59"), (1, "20:00"))]
    ['1:00', '4 h']
    >>> how_long("2025-12-30T00:00:00+00:00", now)
    '3 d'
    """
    seconds = max(0, int((now - datetime.fromisoformat(begun)).total_seconds()))
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02d}"
    return f"{seconds // 3600} h" if seconds < 48 * 3600 else f"{seconds // 86400} d"


# the list in the widget


def title(asked: Sequence[Question], labels: Labels) -> Picture:
    """Return the head of the list, with how much it is."""
    return Picture(draw("inbox.title", labels, told=_counted(asked, labels) if asked else ""))


def inbox(
    asked: Sequence[Question],
    settled: Iterable[tuple[Question, str]],
    labels: Labels,
    *,
    now: datetime,
    picked: str = "",
    point: str = "",
    more: int = 0,
    refused: str = "",
) -> Picture:
    """Return the list, newest first, and below it what was answered since it was shown first.

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
    rows = {one.key: _row(one.key, one, labels, now, picked=one.key == picked) for one in asked}
    for number, (question, became) in enumerate(settled):
        rows[f"settled {number}"] = _row(f"settled {number}", question, labels, became=became)
    empty = ""
    if not asked:
        empty = labels("inbox_empty_point", point=labels(f"point_{point}")) if point else labels("inbox_empty")
    return Picture(draw("inbox.list", labels, empty=empty, more=more, refused=refused), rows)


def _row(
    key: str, question: Question, labels: Labels, now: datetime | None = None, *, became: str = "", picked: bool = False
) -> Markup:
    """Return a question that waits until ``now``, or what ``became`` of it."""
    words, waits = became, how_long(question.first.since, now) if now else None
    if now:
        words, number = short(question.first.request, labels), len(question.runs)
        words = labels("inbox_alike", n=number, what=words) if number > 1 else words
    return draw("inbox.row", labels, key=key, question=question, told=words, waits=waits, picked=picked)


# the list as text, for a page without a front-end and for a terminal


def inbox_blocks(asked: Sequence[Question], labels: Labels, now: datetime) -> list[Block]:
    """List the questions, newest first."""
    if not asked:
        return [Lines((((labels("inbox_empty"), "strong"),),))]
    heads = columns(labels, "question_asked", "point", "proposed_in_short", "waits_for:number", "run:code")
    rows = [
        (
            " ".join(question.first.message.split()),
            labels(f"point_{question.point}"),
            " ".join(short(question.first.request, labels).split()),
            how_long(question.first.since, now),
            question.first.run_id if len(question.runs) == 1 else labels("inbox_runs", n=len(question.runs)),
        )
        for question in asked
    ]
    return [clipped(f"{labels('inbox')}{labels('colon')}{_counted(asked, labels)}", heads, rows)]


def _counted(asked: Sequence[Question], labels: Labels) -> str:
    return labels("inbox_count", questions=len(asked), runs=sum(len(question.runs) for question in asked))
