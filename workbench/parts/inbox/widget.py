"""The inbox: every run of a workspace that waits for a person, with buttons to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import ipywidgets
import traitlets

from workbench.errors import WorkbenchError, WorkspaceError
from workbench.graphs.reviewers import answer
from workbench.plans import Plan
from workbench.records import proposals
from workbench.runs.family import fork_changes
from workbench.runs.run import Run, asked_words
from workbench.runs.stored import origin_of
from workbench.state import Data
from workbench.views.blocks import clipped, columns, one_line
from workbench.views.edits import fork_name
from workbench.views.labels import Labels
from workbench.views.markup import Picture, draw
from workbench.views.plan import step_titles
from workbench.views.render import display_data
from workbench.views.review import name_list, needs_text
from workbench.widgets.panel import CellRoot, Event, Pick, labels_in
from workbench.widgets.review import primary


def inbox(wb: Any, *, lang: str | None = None) -> Inbox:
    """Return everything that waits for a person, over all runs, newest first: open, approve or stop it there.

    It looks for news once a second while it is displayed.

    Args:
        wb: the workspace.
        lang: ``en`` or ``zh``; None takes ``WORKBENCH_LANG``, or else the language of the newest question.
    """
    return Inbox(wb, lang)


class Inbox(CellRoot):
    """The widget of ``wb.inbox``.

    Attributes:
        picked: the id of the run that has buttons.
        below: the bench of the run that was opened.
        most_rows: the number of runs that are listed at most.
        every_s: seconds between two looks.
    """

    most_rows = 100
    every_s = 1.0
    picked = traitlets.Unicode("")

    def __init__(self, wb: Any, lang: str | None = None):
        self._wb = wb
        self._waiting = dict[tuple[str, int], WaitingRun]()
        self._refused = ""
        self._has_more = False
        self._ticks = False
        self._read()
        newest = next(iter(self.waiting), None)
        self.labels = labels = labels_in(
            lang, wb.settings.lang, message=newest.message if newest else ""
        )
        self.list = Pick(listener=self._pressed)
        self.below = ipywidgets.VBox()
        super().__init__([self.list, self.below], lang=labels.html_lang)
        self.add_class("wb-inbox")
        self.observe(lambda _: self._watch(), "_view_count")
        self._view_count = 0  # front-ends count from now on
        self.picked = newest.run_id if newest else ""
        self._show()

    @property
    def waiting(self) -> list[WaitingRun]:
        """Return the runs that wait, newest first."""
        return sorted(
            self._waiting.values(), key=lambda run: (run.since, run.run_id), reverse=True
        )

    def refresh(self) -> bool:
        """Read the workspace again; return whether that is possible. A refusal is shown until the next answer."""
        readable = True
        try:
            self._read()
        except WorkbenchError as error:
            self._refused = str(error)
            readable = False
        self._show()
        return readable

    def _show(self) -> None:
        labels = self.labels
        picked = self._waiting_run(self.picked)
        now = datetime.now(UTC)
        rows = {
            run.run_id: draw(
                "inbox.row",
                labels,
                run=run,
                name=fork_name(run.changes, labels),
                approval=primary(run.request, {}, labels),
                picked=run is picked,
                details=details(run, labels),
                waits=duration(run.since, now, labels),
            )
            for run in self.waiting
        }
        frame = draw(
            "inbox.list",
            labels,
            count=len(rows),
            more=self._has_more * self.most_rows,
            refused=self._refused,
        )
        self.list.show(Picture(frame, rows))
        self.update_static_form()

    def _waiting_run(self, run_id: str) -> WaitingRun | None:
        return next((run for run in self.waiting if run.run_id == run_id), None)

    def _read(self) -> None:
        """Read every waiting run that is not known yet."""
        waiting = {}
        paused = self._wb.runs.list(self.most_rows + 1, status="paused")
        for run in paused[: self.most_rows]:
            decisions = run.decisions
            key = (run.run_id, len(decisions))
            entry = self._waiting.get(key) or _read_run(run, decisions)
            if entry is not None:
                waiting[key] = entry
        self._has_more = len(paused) > self.most_rows
        self._waiting = waiting

    # while it is displayed

    def _watch(self) -> None:
        if self._view_count and not self._ticks:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # a script calls `refresh`
                return
            self._ticks = True
            loop.call_later(self.every_s, self.tick)

    def tick(self) -> None:
        """Refresh once, and again later while it is displayed and the workspace can be read."""
        self._ticks = False
        if self.comm is not None and self.refresh():
            self._watch()

    # what is pressed

    def _pressed(self, event: Event) -> None:
        waiting = self._waiting_run(event.key)
        kind, _, note = event.kind.partition(":")  # what is typed goes with the button
        if waiting is None:
            return
        if kind == "choose":
            self.picked = event.key
            self._show()
        elif kind == "open":
            for bench in self.below.children:
                bench.close()
            run = self._wb.run(event.key)
            self.below.children = [self._wb.bench(run, lang=self.labels.language)]
        elif kind in ("approve", "reject"):
            self._answer(kind, waiting, note)

    def _answer(self, kind: str, waiting: WaitingRun, note: str) -> None:
        """Answer a run, unless it was answered in the meantime."""
        self._refused = ""
        try:
            run = self._wb.run(waiting.run_id)
            request = run.review
            if request and request.get("review_id") == waiting.request.get("review_id"):
                run.answer_review(answer(kind, note=note), wait=False)
        except WorkbenchError as error:
            self._refused = str(error)
        self.refresh()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        labels = self.labels
        rows = [
            (
                one_line(run.message),
                labels(f"point_{run.point}"),
                run.run_id,
            )
            for run in self.waiting
        ]
        heads = columns(labels, "question_asked", "point", "run:code")
        return display_data(
            [clipped(labels("inbox" if rows else "inbox_empty"), heads, rows)], labels
        )

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]


def _read_run(run: Any, decisions: Any) -> WaitingRun | None:
    """Return the request of a run, or why it cannot be read; None when it was answered at this very moment."""
    try:
        request = run.review
    except WorkspaceError as error:
        request = {"action_requests": [{"description": str(error)}]}
    if request is None:
        return None
    since = waiting_since(run.log, decisions, run.row["created_at"])
    changes = fork_changes(run, origin_of(run))
    waiting = WaitingRun(run.run_id, run.message, request, since, changes)
    if not isinstance(run, Run):  # a recorded graph has no needs
        return waiting
    needs = proposals.ledger({"reflections": run.reflections, "decisions": decisions})
    return waiting._replace(needs=needs, words=asked_words(run))


# the list


class WaitingRun(NamedTuple):
    """A run that waits at a review point.

    Attributes:
        run_id: its id.
        message: its question.
        request: the request for a decision.
        since: since when it waits, UTC, ISO 8601.
        changes: of a fork (``family.changes``).
        needs: of the answer (``proposals.ledger``).
        words: of the question for what is searched.
    """

    run_id: str
    message: str
    request: Data
    since: str
    changes: Data | None
    needs: Sequence[Data] = ()
    words: Mapping[str, str] = {}

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


def details(run: WaitingRun, labels: Labels) -> str:
    """Return what the proposal is about: the steps, the needs, the sections, or what a custom graph says."""
    kind = proposals.kind(run.request)
    proposal = proposals.proposal(run.request)
    if kind in ("plan", "step"):
        titles = step_titles(Plan.load(proposal["plan"]), asked=run.words)
        steps = [titles.get(step_id, step_id) for step_id in proposal.get("wave") or titles]
        return name_list(steps, labels)
    if kind == "outline":
        return labels("comma").join(section["title"] for section in proposal["sections"])
    if kind == "clarify":
        return str(proposal["questions"][0]["question"])
    return needs_text(run.needs, labels) if kind else proposals.description(run.request)


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
