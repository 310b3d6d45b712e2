"""Threads that follow a run while it works, and watch whether it is moved while it rests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakMethod

from workbench.errors import WorkbenchError
from workbench.runs.run import Run
from workbench.state import Data

_OFTEN_S, _SELDOM_S, _REST_S = 0.1, 0.4, 0.5
"""Seconds between two reports while something happens, and while nothing does; between two looks at a run at rest."""


@dataclass
class Now:
    """The progress of a run, by its events.

    Attributes:
        steps: when the call of each running step began, on the monotonic clock.
        written: the beginning of the answer.
        sections: titles of the written sections of a report.
    """

    steps: dict[str, float] = field(default_factory=dict)
    written: str = ""
    sections: set[str] = field(default_factory=set)

    def hear(self, event: Data) -> None:
        """Process an event."""
        if begun := event.get("retrieval_step_start"):
            self.steps[begun["step_id"]] = time.monotonic()
        elif ended := event.get("retrieval_step_done"):
            self.steps.pop(ended["step_id"], None)
        elif event.get("status") == "token":
            self.written += event["content"]
        elif event.get("status") == "progress" and event["content"]["stage"] == "report":
            self.sections.add(str(event["content"].get("note")))

    def seconds(self) -> dict[str, float]:
        """Return the seconds that each running step has taken."""
        now = time.monotonic()
        return {step_id: now - began for step_id, began in list(self.steps.items())}


class Watch:
    """Looks twice a second whether another cell or process has moved a run at rest.

    Args:
        run: the run.
        document: the document that is shown.
        moved: a bound method, called once, in a thread, when the run has moved or cannot be read; the watch ends with
            its object.
    """

    def __init__(self, run: Run, document: Data, moved: Callable[[Watch], None]):
        self._stood = document["status"], len(document["decisions"])
        self._moved = WeakMethod(moved)
        self._over = threading.Event()
        threading.Thread(
            target=self._look, args=(run,), name=f"watch-{run.run_id}", daemon=True
        ).start()

    def leave(self) -> None:
        """Stop."""
        self._over.set()

    def _look(self, run: Run) -> None:
        while not self._over.wait(_REST_S) and self._moved() is not None:
            with suppress(WorkbenchError):
                if (run.status, len(run.decisions)) == self._stood:
                    continue
            if (moved := self._moved()) and not self._over.is_set():
                moved(self)
            return


class Follow:
    """Follows a run in any process until it pauses or ends.

    Args:
        run: the run.
        changed: called at most ten times a second, with whether to read the run again or only to show the time.
        ended: the last call, at the pause or the end; with the error when the answer was invalid.
    """

    def __init__(
        self,
        run: Run,
        changed: Callable[[Now, bool], None],
        ended: Callable[[Now, WorkbenchError | None], None],
    ):
        self.run = run
        self.now = Now()
        self._changed = changed
        self._ended = ended
        self._news = threading.Event()
        self._over = threading.Event()
        self._telling = threading.Lock()
        self._elsewhere = False
        for work in (self._listen, self._tell):
            threading.Thread(target=work, name=f"follow-{run.run_id}", daemon=True).start()

    def leave(self) -> None:
        """Stop; the run continues."""
        self._over.set()
        self._news.set()

    def look(self) -> None:
        """Report as soon as possible, as if something had happened."""
        self._news.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the end was reported; return whether it was."""
        return self._over.wait(timeout)

    def _listen(self) -> None:
        fault: WorkbenchError | None = None
        try:
            for event in self.run.events():
                self.now.hear(event)
                self._news.set()
            self._elsewhere = True
            self.run.wait()
        except WorkbenchError as error:
            fault = error
        with self._telling:
            if not self._over.is_set():
                self._ended(self.now, fault)
            self._over.set()
        self._news.set()

    def _tell(self) -> None:
        """Report progress.

        The store may get a change a moment after its event, so the next look reads once more. A run in another process
        sends no events, so every look reads.
        """
        lately = False
        while not self._over.is_set():
            news = self._news.wait(_SELDOM_S)
            self._news.clear()
            with self._telling:
                if self._over.is_set():
                    return
                self._changed(self.now, news or lately or self._elsewhere)
            lately = news
            self._over.wait(_OFTEN_S)
