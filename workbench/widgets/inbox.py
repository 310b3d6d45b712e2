"""The inbox: everything that waits for a person, over all runs of a workspace, answered where it stands."""

from __future__ import annotations

import asyncio
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from workbench.errors import UnknownRun, WorkbenchError, WorkspaceError
from workbench.graphs.reviewers import answer
from workbench.runs.run import Run
from workbench.state import REPORT_POINTS, REVIEW_POINTS
from workbench.views.inbox import (
    Question,
    Waits,
    inbox,
    inbox_blocks,
    questions,
    short,
    since,
    title,
)
from workbench.views.render import display_data
from workbench.widgets.panel import CellRoot, Event, Pick, labels_in, on_change, press_button

if TYPE_CHECKING:
    import pandas


MOST = 100
"""So many runs are listed; there is a line when there are more."""
_EVERY_S = 1.0


class Inbox(CellRoot):
    """What ``Workbench.inbox`` gives.

    Attributes:
        chosen: the run that was opened, on a bench below the list.
        picked: the key of the row on which the buttons act.
    """

    chosen = traitlets.Unicode("")
    picked = traitlets.Unicode("")

    def __init__(self, wb: Any, lang: str | None = None):
        self._wb, self._waiting = wb, dict[tuple[str, int], Waits]()
        self._gone: list[Waits] = []
        self._answered_here: dict[tuple[str, str], tuple[str, str]] = {}
        self._refused, self._has_more, self._ticks = "", False, False
        self._read()
        newest = next(iter(self._waiting.values()), None)
        self.labels = labels = labels_in(lang, wb.settings.lang, message=newest.message if newest else "")
        self.title, self.list = Pick(), Pick(heard=self._pressed)
        asks = {one.point for one in questions(self._waiting.values())}
        points = ["", *(point for point in REPORT_POINTS if point in REVIEW_POINTS or point in asks)]
        self.filter = ipywidgets.ToggleButtons(
            options=[(labels(f"point_{point}" if point else "inbox_all"), point) for point in points],
            tooltips=[labels("inbox_filter")] * len(points),
        )
        self.note = ipywidgets.Text(description=labels("decision_note"), placeholder=labels("why"))
        self.opens = press_button(labels("inbox_open"), self._open, "wb-primary")
        self.approve = press_button("", lambda: self._answer("approve"))
        self.stop = press_button("", lambda: self._answer("reject"))
        self.renew = press_button(labels("inbox_refresh"), self.refresh, "wb-quiet")
        head = ipywidgets.HBox([self.title, self.filter]).add_class("wb-inbox-head")
        buttons = ipywidgets.HBox([self.opens, self.approve, self.stop, self.renew]).add_class("wb-buttons")
        self.below = ipywidgets.VBox()
        super().__init__([head, self.list, self.note, buttons, self.below], lang=labels.html_lang)
        self.add_class("wb-inbox")
        on_change(self.filter, self._show)
        self.observe(lambda _: self._watch(), "_view_count")
        self._view_count = 0  # from now on front-ends count
        self.picked = self.questions[0].key if self.questions else ""
        self._show()

    # what it shows

    @property
    def questions(self) -> list[Question]:
        """Return what waits at the chosen point, alike runs together, newest first."""
        return questions(self._waiting.values(), self.filter.value)

    def refresh(self) -> None:
        """Look at the workspace again, and put away what is answered."""
        self._refused = ""
        self._news()
        self._gone = []
        self._show()

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a run that waits, newest first."""
        import pandas

        now = datetime.now(UTC)
        columns = ["run_id", "question", "point", "review_id", "proposed", "since", "waits_s", "alike"]
        rows = [
            (run.run_id, run.message, group.point, run.review_id, short(run.request, self.labels), run.since,
             (now - datetime.fromisoformat(run.since)).total_seconds(), len(group.runs))
            for group in questions(self._waiting.values())
            for run in group.runs
        ]  # fmt: skip
        return pandas.DataFrame(rows, columns=columns)

    def _show(self) -> None:
        asked, labels = self.questions, self.labels
        picked = self._picked()
        if picked is None:  # no other row takes its place: a second click must not answer what nobody chose
            self.picked = ""
        self.title.show(title(asked, labels))
        listed = inbox(
            asked,
            self._settled(),
            labels,
            now=datetime.now(UTC),
            refused=self._refused,
            picked=self.picked,
            point=self.filter.value,
            more=MOST if self._has_more else 0,
        )
        self.list.show(listed)
        number = len(picked.runs) if picked else 0
        several = number > 1
        self.approve.description = labels("inbox_approve_n" if several else "inbox_approve", n=number)
        self.stop.description = labels("inbox_stop_n" if several else "stop_here", n=number)
        for button in (self.opens, self.approve, self.stop):
            button.disabled = picked is None
        self.update_static_form()

    def _picked(self) -> Question | None:
        return next((question for question in self.questions if question.key == self.picked), None)

    # looking

    def _read(self) -> None:
        """Everything that waits now; what was read before is not read again."""
        found = {}
        handles = [*self._wb.runs.list(MOST + 1, status="paused"), *self._wb.runs.list(MOST, status="running")]
        paused = [run for run in handles if run.status == "paused"]  # also when its process died while it waited
        for run in paused[:MOST]:
            decisions = run.decisions
            key = (run.run_id, len(decisions))
            waits = self._waiting.get(key) or _waits(run, decisions)
            if waits is not None:
                found[key] = waits
        self._has_more = len(paused) > MOST
        self._waiting = found

    def _news(self) -> bool:
        """Read, and note what does not wait any more; whether the workspace can be read."""
        before = self._waiting.values()
        try:
            self._read()
        except WorkbenchError as error:
            self._refused, self._gone = str(error), []
            return False
        still = {(one.run_id, one.review_id) for one in self._waiting.values()}
        gone = [one for one in before if (one.run_id, one.review_id) not in still]
        self._gone = [*gone, *self._gone][:MOST]
        return True

    def _settled(self) -> list[tuple[Question, str]]:
        """Return what waited here and does not any more, alike ones together."""
        found: dict[tuple[str, str], list[Waits]] = {}
        for one in self._gone:
            found.setdefault((one.key, self._became(one)), []).append(one)
        return [(Question(key, tuple(ones)), said) for (key, said), ones in found.items()]

    def _became(self, one: Waits) -> str:
        labels, mine = self.labels, self._answered_here.get((one.run_id, one.review_id))
        try:
            run = self._wb.run(one.run_id)
            decision = next((d for d in run.decisions if d["review_id"] == one.review_id), None)
            if decision is None and mine is None:
                return labels("inbox_gone", status=labels(run.status))
        except UnknownRun:
            return labels("inbox_is_gone")
        action, at = (decision["action"], decision["decided_at"]) if decision else mine or ("", "")
        when = datetime.fromisoformat(at).astimezone().strftime("%H:%M")
        return labels("inbox_answered" if mine else "inbox_elsewhere", action=labels(f"inbox_did_{action}"), time=when)

    # while it is displayed

    def _watch(self) -> None:
        if self._view_count and not self._ticks:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # no loop to look in: the button does
                return
            self._ticks = True
            loop.call_later(_EVERY_S, _tick, weakref.ref(self), loop)

    def tick(self) -> bool:
        """Look once; whether to look again."""
        if not self._view_count or self.comm is None:
            self._ticks = False
            return False
        self._ticks = self._news()
        self._show()
        return self._ticks

    # what is pressed

    def _pressed(self, event: Event) -> None:
        if event.kind == "choose":
            self.picked = event.key
            self._show()

    def _open(self) -> None:
        if picked := self._picked():
            self.chosen = ""
            self.chosen = picked.first.run_id
            for old in self.below.children:
                old.close()
            self.below.children = [self._wb.bench(self.chosen, lang=self.labels.language)]

    def _answer(self, kind: str) -> None:
        """Give every run of the picked row this answer; one that was answered meanwhile is not answered again."""
        picked, refused = self._picked(), list[str]()
        for one in picked.runs if picked else ():
            try:
                run = self._wb.run(one.run_id)
                asked = run.review
                if asked is not None and asked.get("review_id") == one.review_id:
                    run.answer_review(answer(kind, note=self.note.value), wait=False)
                    self._answered_here[one.run_id, one.review_id] = (kind, datetime.now(UTC).isoformat())
            except WorkbenchError as error:
                refused.append(str(error))
        self._refused = " ".join(dict.fromkeys(refused))
        if not refused:
            self.note.value = ""
        self._news()
        self._show()

    # how it stands in a cell

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        blocks = inbox_blocks(questions(self._waiting.values()), self.labels, datetime.now(UTC))
        return display_data(blocks, self.labels)

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]


def _waits(run: Run, decisions: Any) -> Waits | None:
    """Return what a run asks, or why that cannot be read; None when it was answered in this very moment."""
    try:
        asked = run.review
    except WorkspaceError as damaged:
        asked = {"action_requests": [{"description": str(damaged)}]}
    if asked is None:
        return None
    return Waits(run.run_id, run.message, asked, since(run.log, decisions, run.row["created_at"]))


def _tick(inbox: weakref.ref[Inbox], loop: asyncio.AbstractEventLoop) -> None:
    """Look, and come again; an inbox that is gone keeps nothing alive."""
    held = inbox()
    if held is not None and held.tick():
        loop.call_later(_EVERY_S, _tick, inbox, loop)
