"""The bench: one run that a person works on, and the way to the next.

It has five regions in fixed places: head, plan, side (for actions), evidence, timeline. Everything is read from
the store, so a bench that was closed, or whose kernel died, opens in the same state.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import traitlets

from workbench.errors import NotPaused, UnknownRun, WorkbenchError
from workbench.runs.asking import checked_points
from workbench.runs.family import fork_changes
from workbench.runs.run import Run
from workbench.runs.stored import origin_of
from workbench.state import Data, Json
from workbench.views.blocks import Lines
from workbench.views.edits import fork_name
from workbench.views.render import display_data
from workbench.views.run import VIEWS, head
from workbench.widgets.ask import AskForm
from workbench.widgets.calls import model_names
from workbench.widgets.display import in_kernel
from workbench.widgets.follow import Follow, Now, Watch
from workbench.widgets.futures import Futures
from workbench.widgets.panel import CellRoot, Event, Pick, display_if, labels_in
from workbench.widgets.run_panel import Working

UNDER_WAY = ("running", "paused", "interrupted")
AT_REST = ("paused", "interrupted", "failed")


class Bench(CellRoot):
    """The widget of ``Workbench.bench``.

    Attributes:
        wb: the workspace.
        run_id: the run on the bench; empty for none. Setting it opens another run.
        view: the open view: ``work``, ``runs``, ``compare`` or ``knowledge``.
    """

    run_id = traitlets.Unicode("")
    view = traitlets.Enum(VIEWS, "work")
    _follow: Follow | None = None
    _watch: Watch | None = None
    _document: Json | None = None

    def __init__(self, wb: Any, run: Run | None, asking: Data, lang: str | None):
        self.wb = wb
        self._asking = dict(asking)
        self._lock = threading.RLock()
        self._message = ""
        kb = asking.get("kb") or []
        self._bases = [kb] if isinstance(kb, str) else kb
        self._session = asking["session"] or " ".join(["bench", *self._bases])
        opened = run or self._waiting()
        saved, message = (
            (wb.runs.draft(opened.run_id, "lang"), opened.message) if opened else ("", "")
        )
        self._asking["session"] = asking["session"] or (
            opened.session_id if opened else self._conversation()
        )
        self.labels = labels_in(lang, wb.settings.lang, saved, message=message)
        self.head = Pick(listener=self._pressed).add_class("wb-head")
        points = checked_points(asking.get("review"))
        self.ask = AskForm(
            self.labels, kb=asking.get("kb"), review=points, models=model_names(wb.settings)
        )
        self.working, self.futures = Working(self), Futures(self)
        views = [part.region.add_class("wb-view") for part in (self.working, self.futures)]
        super().__init__([self.head, *views], lang=self.labels.html_lang)
        self.add_class("wb-bench")
        self.sheet.on_event(self._keyed)
        self.ask.on_request(lambda request: self.act(lambda: self._ask(request)))
        self.observe(lambda _: self._opened(), "run_id")
        self.observe(lambda _: self._viewed(), "view")
        if opened and run is None:
            self._message = self.labels("reopened")
        if opened:
            self.run_id = opened.run_id
        else:
            self.refresh()

    # show

    @property
    def run(self) -> Run | None:
        """Return the run on the bench."""
        return self.wb.run(self.run_id) if self.run_id else None

    def refresh(self, now: Now | None = None) -> str:
        """Show the run and return its status; empty for no run."""
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
        """Watch a paused or ended run until its work is followed."""
        self._leave(self._watch)
        self._watch = None
        if run and document["status"] in AT_REST:
            self._watch = Watch(run, document, self._moved)

    def _moved(self, watch: Watch) -> None:
        """Show and follow a run that was moved elsewhere, or was removed."""
        with self._lock:
            if watch is not self._watch:
                return
            self._message = self.labels("went_on_elsewhere")
            try:
                self._show_and_follow(True)
            except UnknownRun:
                self._message = self.labels("inbox_is_gone")
                self.run_id = ""
            except WorkbenchError as error:  # the workspace was closed
                self.head.show(head(None, self.labels, message=str(error)))

    def _viewed(self) -> None:
        """Open another view; the follower of a running run brings its content."""
        self._frame(self.run)
        if self._follow and self._document is not None and self._document["status"] == "running":
            self._follow.look()
        else:
            self.refresh()

    def _frame(self, run: Run | None) -> None:
        """Show the head and the open view."""
        origin = origin_of(run) if run else None
        name = fork_name(fork_changes(run, origin), self.labels) if run else ""
        self.head.show(
            head(
                self._document,
                self.labels,
                view=self.view,
                origin=origin,
                name=name,
                message=self._message,
            )
        )
        display_if(self.working.region, self.view == "work")
        display_if(self.futures.region, self.view != "work")

    def act(self, action: Callable[[], Any]) -> None:
        """Perform an action of a person and show its result; the head shows why it was refused.

        An action that returns a run has started it, which may fail before the bench looks at it.
        """
        self._message = ""
        worked = None
        try:
            worked = action()
        except NotPaused:
            self._message = self.labels("went_on_elsewhere")
        except WorkbenchError as error:
            self._message = str(error)
        self._show_and_follow(worked is not None)

    def put(self, run: Run) -> None:
        """Open another run."""
        if run.run_id == self.run_id:
            self.view = "work"
            return
        self.run_id = run.run_id

    def _opened(self) -> None:
        self._leave(self._follow)
        self._follow = None
        self.working.reset()
        self.view = "work"
        self._show_and_follow()
        self.head.reveal("question")

    # follow

    def _show_and_follow(self, worked: bool = False) -> None:
        """Show the run, and follow it if it was running then: by now it may be paused."""
        run = self.run
        status = self._refreshed()
        if run and (status == "running" or worked):
            self.follow(run)

    def follow(self, run: Run) -> None:
        """Show a run while it works; return at once."""
        self._leave(self._follow)
        with self._lock:  # its reports wait until it is the current follower
            self._follow = Follow(run, self._changed, self._ended)

    def wait(self, timeout: float | None = None) -> Bench:
        """Wait until the bench shows that its run pauses or ends, for scripts and tests."""
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
                self.follow(run)  # it was answered before the pause was shown
            if fault:
                self.working.review.refuse(str(fault))

    def _follows(self, now: Now) -> bool:
        """Return whether this is a report of the current follower."""
        return self._follow is not None and self._follow.now is now

    def _refreshed(self, now: Now | None = None) -> str:
        """Refresh, and show an error in the head."""
        try:
            return self.refresh(now)
        except WorkbenchError as error:  # the workspace was closed, or its file is gone
            self._leave(self._follow)
            self.head.show(head(None, self.labels, message=str(error)))
            return ""

    # what is pressed

    def _pressed(self, event: Event) -> None:
        kind, _, name = event.kind.partition(":")
        if kind == "view" and name in VIEWS:
            self.view = name
        elif kind == "new_conversation":
            self._asking["session"] = self._conversation()
            self.run_id = ""
            self.view = "work"
            self.refresh()
            self.ask.message.focus()
        elif kind == "resume" and (run := self.run):
            self.act(partial(run.resume, wait=False))
        elif kind == "cancel" and (run := self.run):
            cancel = partial(self._cancel, run)
            threading.Thread(target=self.act, args=(cancel,), name="cancel", daemon=True).start()

    @staticmethod
    def _cancel(run: Run) -> None:
        """Cancel a run, and return none to follow."""
        run.cancel()

    def _keyed(self, event: Event) -> None:
        if self.view == "work":
            self.working.keyed(event.kind)

    def _ask(self, request: Data) -> None:
        options = {**self._asking, "kb": request["kb"], "review": request["review"]}
        options["as_of"] = request.get("as_of") or self._asking.get("as_of", "")
        if request.get("models"):
            options["models"] = request["models"]
        if request.get("report"):
            run = self.wb.report(request["message"], wait=False, **options)
        else:
            run = self.wb.start(request["message"], **options)
        self.ask.message.value = ""
        self.wb.runs.save_draft(run.run_id, "lang", self.labels.language)
        self.put(run)

    def _conversation(self) -> str:
        """Return a name for a conversation that no other user is in."""
        return f"{self._session} ({uuid.uuid4().hex[:6]})"

    def follows_up(self) -> bool:
        """Return whether the conversation has a run already."""
        return bool(
            self.wb.runs.list(1, session_id=self._asking["session"], user_id=self._asking["user"])
        )

    def _waiting(self) -> Run | None:
        """Return the newest unfinished run of this conversation or of its forks."""
        runs = self.wb.runs.list(50, user_id=self._asking["user"])
        session = self._session
        return next(
            (
                run
                for run in runs
                if run.status in UNDER_WAY and f"{run.session_id} (".startswith(f"{session} (")
            ),
            None,
        )

    @staticmethod
    def _leave(*followers: Follow | Watch | None) -> None:
        for follower in followers:
            if follower:
                follower.leave()

    def close(self) -> None:
        """Stop following the run, which continues."""
        self._leave(self._follow, self._watch)
        super().close()

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if in_kernel():
            threading.Thread(target=self._warm, name="warm", daemon=True).start()

    def _warm(self) -> None:
        """Load graphs and models while the first question is typed."""
        import_module("workbench.graphs.conversation")
        for name in self._bases:
            with suppress(WorkbenchError):  # the question itself will report it
                self.wb.knowledge.get(name).warm()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the static form of the run, or a hint."""
        if self.run:
            return self.run._repr_mimebundle_()
        return display_data([Lines([[(self.labels("bench_empty"), "strong")]])], self.labels)


def find_bench(run: Run) -> Bench:
    """Return a bench on one run, which a cell shows for it."""
    return run._workspace.bench(
        run,
        kb=run.state.get("kb_prefix") or None,
        review=("plan", "reflect"),
        session=run.session_id,
        user=run.row["user_id"],
    )
