"""The bench: one run worked on by hand, and the way from one run to the next.

Six regions, always in the same places: head, rail, plan, side (the one place to act), evidence, timeline. Everything
that is shown follows from the run as it is kept, so a bench that is closed, or whose kernel died, opens where it stood.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import traitlets

from workbench.errors import NotPaused, UnknownRun, WorkbenchError
from workbench.runs.asking import points_of
from workbench.runs.run import Run
from workbench.state import Data, Json
from workbench.views.outline import Lines
from workbench.views.render import display_data
from workbench.views.run import VIEWS, head
from workbench.widgets.ask import AskForm
from workbench.widgets.display import in_kernel
from workbench.widgets.follow import Follow, Now, Watch
from workbench.widgets.futures import Futures
from workbench.widgets.panel import CellRoot, Event, Pick, display_if, labels_in
from workbench.widgets.run_panel import Working

UNDER_WAY = ("running", "paused", "interrupted")
AT_REST = ("paused", "interrupted", "failed")


class Bench(CellRoot):
    """The widget that ``Workbench.bench`` gives.

    Attributes:
        wb: the workspace.
        run_id: the run on the bench; empty for none. Setting it opens another one.
        view: which view is open: ``work``, ``runs``, ``compare`` or ``knowledge``.
    """

    run_id = traitlets.Unicode("")
    view = traitlets.Enum(VIEWS, "work")
    _follow: Follow | None = None
    _watch: Watch | None = None
    _document: Json | None = None

    def __init__(self, wb: Any, run: Run | str | None, asking: Data, lang: str | None):
        self.wb, self._asking, self._lock = wb, dict(asking), threading.RLock()
        self._said, self._sure, self._session = "", False, str(asking["session"])
        opened = run if isinstance(run, Run) else wb.run(run) if run else self._waiting()
        kept, message = (wb.runs.draft(opened.run_id, "lang"), opened.message) if opened else ("", "")
        self.labels = labels_in(lang, wb.settings.lang, kept, message=message)
        self.head = Pick(heard=self._pressed).add_class("wb-head")
        self.ask = AskForm(self.labels, kb=asking.get("kb"), review=points_of(asking.get("review")))
        self.working, self.futures = Working(self), Futures(self)
        views = [part.region.add_class("wb-view") for part in (self.working, self.futures)]
        super().__init__([self.head, *views], lang=self.labels.html_lang)
        self.add_class("wb-bench")
        self.sheet.on_event(self._keyed)
        self.ask.on_asked(lambda asked: self.act(lambda: self._ask(asked)))
        self.observe(lambda _: self._opened(), "run_id")
        self.observe(lambda _: self._viewed(), "view")
        if opened and run is None:
            self._said = self.labels("reopened")
        if opened:
            self.run_id = opened.run_id
        else:
            self.refresh()

    # what it shows

    @property
    def run(self) -> Run | None:
        """Return the run on the bench."""
        return self.wb.run(self.run_id) if self.run_id else None

    def refresh(self, now: Now | None = None) -> str:
        """Show the run as it stands, and tell its status; empty for no run."""
        with self._lock:
            run = self.run
            self._document = document = run.to_dict() if run else None
            self._frame(run)
            if self.view == "work":
                self.working.show(run, document, now or Now())
            else:
                self.futures.show(self.view, run, document)
            status = document["status"] if document else ""
            if status != "running":
                self.update_static_form()
            self._watched(run, document)
            return status

    def _watched(self, run: Run | None, document: Any) -> None:
        """Look whether a run at rest moves, as long as it is not followed at its work."""
        self._leave(self._watch)
        self._watch = None
        if run and document["status"] in AT_REST:
            self._watch = Watch(run, document, self._moved)

    def _moved(self, watch: Watch) -> None:
        """Another user moved the run: show and follow it, unless that was seen already; or the run is gone."""
        with self._lock:
            if watch is not self._watch:
                return
            self._said = self.labels("went_on_elsewhere")
            try:
                self._show_and_follow(True)
            except UnknownRun:
                self._said, self.run_id = self.labels("inbox_is_gone"), ""
            except WorkbenchError as error:  # the workspace was closed meanwhile
                self.head.show(head(None, self.labels, said=str(error)))

    def _viewed(self) -> None:
        """Another view is open at once; next to a run that works its follower brings the content."""
        self._frame(self.run)
        if self._follow and self._document is not None and self._document["status"] == "running":
            self._follow.look()
        else:
            self.refresh()

    def _frame(self, run: Run | None) -> None:
        """The head, and which view is open."""
        words: Json = {"origin": run.origin if run else None, "said": self._said, "sure": self._sure}
        self.head.show(head(self._document, self.labels, view=self.view, **words))
        display_if(self.working.region, self.view == "work")
        display_if(self.futures.region, self.view != "work")

    def act(self, action: Callable[[], Any]) -> None:
        """Do what a person asked for, and show what came of it; what is refused is told in the head.

        An action that gives a run has set it to work, which may have been refused before anybody looked.
        """
        self._said, worked = "", None
        try:
            worked = action()
        except NotPaused:
            self._said = self.labels("went_on_elsewhere")
        except WorkbenchError as error:
            self._said = str(error)
        self._show_and_follow(worked is not None)

    def put(self, run: Run) -> None:
        """Put another run on the bench."""
        if run.run_id == self.run_id:
            self.view = "work"
            return
        self.run_id = run.run_id

    def _opened(self) -> None:
        self._leave(self._follow)
        self._follow = None
        self.working.reset()
        self._sure = False
        self.view = "work"
        self._show_and_follow()

    # a run that works

    def _show_and_follow(self, worked: bool = False) -> None:
        """Show the run, and follow it if it was shown at work: asked once more, it might have paused meanwhile."""
        run, status = self.run, self._refreshed()
        if run and (status == "running" or worked):
            self.follow(run)

    def follow(self, run: Run) -> None:
        """Show what the run does while it does it; returns at once."""
        self._leave(self._follow)
        with self._lock:  # what it tells waits until it is the one that is heard
            self._follow = Follow(run, self._changed, self._ended)

    def wait(self, timeout: float | None = None) -> Bench:
        """Wait until the run on the bench pauses or ends and the bench shows it, for scripts and tests."""
        if self._follow:
            self._follow.wait(timeout)
        return self

    def _changed(self, now: Now, read: bool) -> None:
        with self._lock:
            if not self._follows(now):
                return
            if read:
                self._refreshed(now)
            elif self.view == "work":
                self.working.pass_time(now)

    def _ended(self, now: Now, fault: WorkbenchError | None) -> None:
        with self._lock:
            if not self._follows(now):
                return
            if self._refreshed() == "running" and not fault and (run := self.run):
                self.follow(run)  # somebody answered before the pause was shown
            if fault:
                self.working.review.refuse(str(fault))

    def _follows(self, now: Now) -> bool:
        """Whether this comes from the follower of the run that is on the bench, and not from one that was left."""
        return self._follow is not None and self._follow.now is now

    def _refreshed(self, now: Now | None = None) -> str:
        """``refresh``, where no one would see an error: it is told in the head."""
        try:
            return self.refresh(now)
        except WorkbenchError as error:  # the workspace was closed, or its file is gone
            self._leave(self._follow)
            self.head.show(head(None, self.labels, said=str(error)))
            return ""

    # what is pressed

    def _pressed(self, event: Event) -> None:
        kind, _, name = event.kind.partition(":")
        if kind == "view" and name in VIEWS:
            self.view = name
        elif kind in ("new_question", "new_conversation"):
            if kind == "new_conversation":
                self._asking["session"] = f"{self._session} ({uuid.uuid4().hex[:6]})"
            self.run_id, self.view = "", "work"
            self.refresh()
        elif kind in ("cancel", "resume", "fork") and (run := self.run):
            self._act_on(run, kind, name)

    def _act_on(self, run: Run, kind: str, name: str) -> None:
        def cancel() -> None:  # gives no run: there is nothing to follow then
            run.cancel()

        if kind == "resume":
            self.act(lambda: run.resume(wait=False))
        elif kind == "fork":
            self.act(lambda: self.put(fork_anew(run)))
        else:
            self._sure = not name  # asked once more whether it is to be cancelled
            if name == "yes":
                threading.Thread(target=self.act, args=(cancel,), name="cancel", daemon=True).start()
            self._frame(run)

    def _keyed(self, event: Event) -> None:
        if self.view == "work":
            self.working.keyed(event.kind)

    def _ask(self, asked: Data) -> None:
        options = {**self._asking, "kb": asked["kb"], "review": asked["review"]}
        options["as_of"] = asked.get("as_of") or self._asking.get("as_of", "")
        if asked.get("report"):
            run = self.wb.report(asked["message"], wait=False, **options)
        else:
            run = self.wb.start(asked["message"], **options)
        self.ask.message.value = ""
        self.wb.runs.save_draft(run.run_id, "lang", self.labels.language)
        self.put(run)

    def follows_up(self) -> bool:
        """Return whether something was said before in the conversation that a question goes to."""
        return bool(self.wb.runs.list(1, session_id=self._asking["session"], user_id=self._asking["user"]))

    def _waiting(self) -> Run | None:
        """Return the newest run of this conversation, or of a fork of it, that is not at its end."""
        runs, session = self.wb.runs.list(50, user_id=self._asking["user"]), self._session
        here = (run for run in runs if run.session_id == session or run.session_id.startswith(f"{session} ("))
        return next((run for run in here if run.status in UNDER_WAY), None)

    @staticmethod
    def _leave(*following: Follow | Watch | None) -> None:
        for one in following:
            if one:
                one.leave()

    def close(self) -> None:
        """Follow the run no longer; it continues."""
        self._leave(self._follow, self._watch)
        super().close()

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if in_kernel():
            threading.Thread(target=self._warm, name="warm", daemon=True).start()

    def _warm(self) -> None:
        """Load graphs and models before the first question needs them, while it is typed."""
        import_module("workbench.graphs.conversation")
        kb = self._asking.get("kb")
        for name in [kb] if isinstance(kb, str) else kb or []:
            with suppress(WorkbenchError):  # the question itself will tell
                self.wb.knowledge.get(name).warm()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """That of the run, or a line that says how to ask."""
        if self.run:
            return self.run._repr_mimebundle_()
        return display_data([Lines((((self.labels("bench_empty"), "strong"),),))], self.labels)


def bench_of(run: Run) -> Bench:
    """Return a bench on one run, for the run to show itself with."""
    asking = {"kb": run.state.get("kb_prefix", "") or None, "review": ("plan", "reflect")}
    return run.workspace.bench(run, **asking, session=run.session_id, user=run.row["user_id"])


def fork_anew(run: Run) -> Run:
    """Return a new run from this one that asks a person again: at its last decision, or else before its plan runs."""
    if decisions := run.decisions:
        return run.fork(at=decisions[-1]["review_id"], wait=False)
    return run.fork(review=["plan", "reflect"], wait=False)
