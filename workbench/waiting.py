"""What waits for a person, over all runs: each with its question and what it proposes, alike ones together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from workbench import proposals
from workbench.canonical import comparable
from workbench.labels import Labels
from workbench.plans import canonical_json

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
    request: Mapping[str, Any]
    since: str

    @property
    def review_id(self) -> str:
        """Which question of the run."""
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
        """The newest."""
        return self.runs[0]

    @property
    def point(self) -> str:
        """Where they wait."""
        return proposals.point(self.first.request)


@dataclass(frozen=True)
class Settled:
    """What waited and does not wait any more, with what became of it."""

    question: Question
    said: str


def questions(waiting: Iterable[Waits], point: str = "") -> list[Question]:
    """Alike ones together, newest first; only those at a point, when one is given."""
    found: dict[str, list[Waits]] = {}
    for one in sorted(waiting, key=lambda one: (one.since, one.run_id), reverse=True):
        if not point or proposals.point(one.request) == point:
            found.setdefault(one.key, []).append(one)
    return [Question(key, tuple(runs)) for key, runs in found.items()]


def since(log: Sequence[Mapping[str, Any]], decisions: Sequence[Mapping[str, Any]], began: str) -> str:
    """When a run began to wait: after the last node that ran, or the last decision."""
    moments = [datetime.fromisoformat(began), *(datetime.fromisoformat(d["decided_at"]) for d in decisions)]
    for entry in log:
        moments.append(datetime.fromisoformat(entry["timestamp"]) + timedelta(milliseconds=entry["duration_ms"]))
    return max(moments).isoformat()


def short(request: Mapping[str, Any], labels: Labels) -> str:
    """What is proposed, in a few words."""
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
    return proposals.description(request)


def _reflection(proposed: Mapping[str, Any], labels: Labels) -> str:
    number = len(proposed["next_steps"]) + len(proposed["activate"])
    asked = labels("inbox_more_steps", n=number) if proposed["should_continue"] else labels("inbox_answer")
    return f"{asked} {proposed.get('reasoning') or ''}".strip()


def how_long(begun: str, now: datetime) -> str:
    """How long it waits, for people.

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
