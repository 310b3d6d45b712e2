"""The inbox: the runs that wait for a person, and their list for the widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from workbench.records import proposals
from workbench.state import Data
from workbench.views.edits import fork_name
from workbench.views.labels import Labels
from workbench.views.markup import Picture, draw
from workbench.views.review import name_list, needs_text


@dataclass(frozen=True)
class WaitingRun:
    """A run that waits at a review point.

    Attributes:
        run_id: its id.
        message: its question.
        request: the request for a decision.
        since: since when it waits, UTC, ISO 8601.
        changes: of a fork (``family.changes``).
    """

    run_id: str
    message: str
    request: Data
    since: str
    changes: Data | None

    @property
    def point(self) -> str:
        """Return the review point."""
        return proposals.point(self.request)


def waiting_since(log: Sequence[Data], decisions: Sequence[Data], created_at: str) -> str:
    """Return when a run began to wait: after its last node, or its last decision."""
    moments = [
        datetime.fromisoformat(moment)
        for moment in (created_at, *(d["decided_at"] for d in decisions))
    ]
    moments += [
        datetime.fromisoformat(entry["timestamp"]) + timedelta(milliseconds=entry["duration_ms"])
        for entry in log
    ]
    return max(moments).isoformat()


def details(request: Data, labels: Labels) -> str:
    """Return what the proposal is about: the steps, the needs, the sections, or what a custom graph says."""
    kind = proposals.kind(request)
    proposal = proposals.proposal(request)
    if kind in ("plan", "step"):
        planned = [step["step_id"] for step in proposal["plan"]["steps"]]
        return name_list(proposal.get("wave") or planned, labels)
    if kind == "outline":
        return labels("comma").join(section["title"] for section in proposal["sections"])
    return needs_text([proposal], labels) if kind else proposals.description(request)


def duration(start: str, now: datetime, labels: Labels) -> str:
    """Return how long a run has waited.

    >>> now, labels = datetime.fromisoformat("2026-01-04T00:00:00+00:00"), Labels("en")
    >>> [duration(f"2026-01-0{t}+00:00", now, labels) for t in ("3T23:59:30", "3T23:58", "3T20:00", "1T00:00")]
    ['just now', '2 min', '4 h', '3 days']
    """
    minutes = int((now - datetime.fromisoformat(start)).total_seconds()) // 60
    if minutes < 1:
        return labels("waits_now")
    if minutes < 60:
        return labels("waits_min", n=minutes)
    if minutes < 48 * 60:
        return labels("waits_h", n=minutes // 60)
    return labels("waits_days", n=minutes // 1440)


def draw_inbox(
    waiting: Sequence[WaitingRun],
    labels: Labels,
    now: datetime,
    *,
    approvals: Mapping[str, str],
    picked: str = "",
    more: int = 0,
    refused: str = "",
) -> Picture:
    """Return the list, newest first.

    Args:
        waiting: the runs that wait.
        labels: the words.
        now: the end of the waiting times.
        approvals: what approving does, by the id of the run.
        picked: the id of the run that has buttons.
        more: the number of runs that are listed, when there are more.
        refused: why the last answer was refused.
    """
    rows = {
        run.run_id: draw(
            "inbox.row",
            labels,
            run=run,
            name=fork_name(run.changes, labels),
            approval=approvals[run.run_id],
            picked=run.run_id == picked,
            details=details(run.request, labels),
            waits=duration(run.since, now, labels),
        )
        for run in waiting
    }
    return Picture(draw("inbox.list", labels, count=len(rows), more=more, refused=refused), rows)
