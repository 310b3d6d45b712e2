"""The inbox: everything that waits for a person, over all runs of a workspace, answered where it stands."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from workbench.errors import UnknownRun, WorkbenchError, WorkspaceError
from workbench.graphs.reviewers import answer
from workbench.runs.run import Run
from workbench.views.inbox import Question, Settled, Waits, inbox, inbox_blocks, questions, short, since, title
from workbench.views.labels import LANGUAGES, Labels, labels_for
from workbench.views.static import page_html, plain
from workbench.widgets.pick import Event, Pick, Root
from workbench.widgets.shown import Static, in_kernel, live

if TYPE_CHECKING:
    import pandas


MOST = 100
"""So many runs are listed; there is a line when there are more."""
_EVERY_S = 1.0
_POINTS = ("", "plan", "step", "reflect")


class Inbox(Root):
    """What ``Workbench.inbox`` gives.

    Attributes:
        chosen: the run that was opened, on a bench below the list.
        picked: the key of the row on which the buttons act.
    """

    chosen = traitlets.Unicode("")
    picked = traitlets.Unicode("")

    def __init__(self, wb: Any, lang: str | None = None):
        if lang is not None and lang not in LANGUAGES:
            raise WorkbenchError(f"lang is {lang!r}. Known: {', '.join(LANGUAGES)}.")
        self._wb, self._held = wb, dict[tuple[str, int], Waits]()
        self._waiting: list[Waits] = []
        self._gone: list[Waits] = []
        self._mine: dict[tuple[str, str], tuple[str, str]] = {}
        self._refused, self._more, self._ticks = "", False, False
        self._static = Static()
        self._read()
        chosen = lang or wb.settings.lang
        labels = Labels(chosen) if chosen else labels_for(self._waiting[0].message if self._waiting else "")
        self.labels = labels
        self.title, self.list = Pick(), Pick()
        self.filter = ipywidgets.ToggleButtons(
            options=[(labels(f"point_{point}" if point else "inbox_all"), point) for point in _POINTS],
            tooltips=[labels("inbox_filter")] * len(_POINTS),
        )
        self.note = ipywidgets.Text(description=labels("decision_note"), placeholder=labels("why"))
        self.opens = _button(labels("inbox_open"), self._open, "wb-primary")
        self.approve = _button("", lambda: self._answer("approve"))
        self.stop = _button("", lambda: self._answer("reject"))
        self.renew = _button(labels("inbox_refresh"), self.refresh, "wb-quiet")
        head = ipywidgets.HBox([self.title, self.filter])
        head.add_class("wb-inbox-head")
        buttons = ipywidgets.HBox([self.opens, self.approve, self.stop, self.renew])
        buttons.add_class("wb-buttons")
        self.below = ipywidgets.VBox()
        super().__init__([head, self.list, self.note, buttons, self.below], lang=labels.html_lang)
        self.add_class("wb-inbox")
        self.filter.observe(lambda _: self._show(), "value")
        self.list.on_event(self._pressed)
        self.observe(lambda _: self._watch(), "_view_count")
        self._view_count = 0  # from now on front-ends count
        self.picked = self.questions[0].key if self.questions else ""
        self._show()

    # what it shows

    @property
    def questions(self) -> list[Question]:
        """What waits at the chosen point, alike runs together, newest first."""
        return questions(self._waiting, self.filter.value)

    def refresh(self) -> None:
        """Look at the workspace again, and put away what is answered."""
        self._refused = ""
        self._news()
        self._gone = []
        self._show()

    def to_frame(self) -> pandas.DataFrame:
        """One row a run that waits, newest first."""
        import pandas

        now = datetime.now(UTC)
        rows = [
            {
                "run_id": one.run_id,
                "question": one.message,
                "point": group.point,
                "review_id": one.review_id,
                "proposed": short(one.request, self.labels),
                "since": one.since,
                "waits_s": (now - datetime.fromisoformat(one.since)).total_seconds(),
                "alike": len(group.runs),
            }
            for group in questions(self._waiting)
            for one in group.runs
        ]
        columns = ["run_id", "question", "point", "review_id", "proposed", "since", "waits_s", "alike"]
        return pandas.DataFrame(rows, columns=columns)

    def _show(self) -> None:
        asked, labels = self.questions, self.labels
        picked = self._picked()
        if picked is None:  # no other row takes its place: a second click must not answer what nobody chose
            self.picked = ""
        self.title.show(title(asked, labels))
        self.list.show(
            inbox(
                asked,
                self._settled(),
                labels,
                now=datetime.now(UTC),
                picked=self.picked,
                point=self.filter.value,
                more=MOST if self._more else 0,
                refused=self._refused,
            )
        )
        number = len(picked.runs) if picked else 0
        several = number > 1
        _say(self.approve, labels("inbox_approve_n", n=number) if several else labels("inbox_approve"))
        _say(self.stop, labels("inbox_stop_n", n=number) if several else labels("stop_here"))
        for button in (self.opens, self.approve, self.stop):
            if button.disabled != (picked is None):
                button.disabled = picked is None
        self._static.show(self._repr_mimebundle_)

    def _picked(self) -> Question | None:
        return next((question for question in self.questions if question.key == self.picked), None)

    # looking

    def _read(self) -> None:
        """Everything that waits now; what was read before is not read again."""
        found: dict[tuple[str, int], Waits] = {}
        handles = [*self._wb.runs(MOST + 1, status="paused"), *self._wb.runs(MOST, status="running")]
        paused = [run for run in handles if run.status == "paused"]  # also when its process died while it waited
        for run in paused[:MOST]:
            decisions = run.decisions
            key = (run.run_id, len(decisions))
            waits = self._held.get(key) or _waits(run, decisions)
            if waits is not None:
                found[key] = waits
        self._more = len(paused) > MOST
        self._held, self._waiting = found, list(found.values())

    def _news(self) -> bool:
        """Read, and note what does not wait any more; whether the workspace can be read."""
        before = list(self._waiting)
        try:
            self._read()
        except WorkbenchError as error:
            self._refused, self._gone = str(error), []
            return False
        still = {(one.run_id, one.review_id) for one in self._waiting}
        gone = [one for one in before if (one.run_id, one.review_id) not in still]
        self._gone = [*gone, *self._gone][:MOST]
        return True

    def _settled(self) -> list[Settled]:
        """What waited here and does not any more, alike ones together."""
        found: dict[tuple[str, str], list[Waits]] = {}
        for one in self._gone:
            found.setdefault((one.key, self._became(one)), []).append(one)
        return [Settled(Question(key, tuple(ones)), said) for (key, said), ones in found.items()]

    def _became(self, one: Waits) -> str:
        labels, mine = self.labels, self._mine.get((one.run_id, one.review_id))
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
                    self._mine[one.run_id, one.review_id] = (kind, datetime.now(UTC).isoformat())
            except WorkbenchError as error:
                refused.append(str(error))
        self._refused = " ".join(dict.fromkeys(refused))
        if not refused:
            self.note.value = ""
        self._news()
        self._show()

    # how it stands in a cell

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        blocks = inbox_blocks(questions(self._waiting), self.labels, datetime.now(UTC))
        return {"text/plain": plain(blocks, 100), "text/html": page_html(blocks, self.labels)}

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]

    def _ipython_display_(self) -> None:
        self._static.display(self._repr_mimebundle_())
        if in_kernel():
            live(self)


def _waits(run: Run, decisions: Any) -> Waits | None:
    """What a run asks, or why that cannot be read; None when it was answered in this very moment."""
    try:
        asked = run.review
    except WorkspaceError as damaged:
        asked = {"action_requests": [{"description": str(damaged)}]}
    if asked is None:
        return None
    return Waits(run.run_id, run.message, asked, since(run.log, decisions, run.created_at))


def _tick(inbox: weakref.ref[Inbox], loop: asyncio.AbstractEventLoop) -> None:
    """Look, and come again; an inbox that is gone keeps nothing alive."""
    held = inbox()
    if held is not None and held.tick():
        loop.call_later(_EVERY_S, _tick, inbox, loop)


def _say(button: ipywidgets.Button, text: str) -> None:
    if button.description != text:
        button.description = text


def _button(text: str, press: Callable[[], None], cls: str = "") -> ipywidgets.Button:
    button = ipywidgets.Button(description=text)
    button.on_click(lambda _: press())
    if cls:
        button.add_class(cls)
    return button
