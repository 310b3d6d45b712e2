"""The progress of indexing: a bar in a notebook or a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from workbench.views.labels import Labels
from workbench.widgets.display import in_kernel

Tell = Callable[[str, int, int], None]
"""``tell(stage, done, total)``; ``total`` is 0 where it is unknown."""
_SHOWN_AFTER_S = 0.3
"""Faster work needs no bar."""
_PAUSE_S = 0.1
"""Seconds between two messages to a front-end, unless another stage begins."""


@contextmanager
def watched(name: str, lang: str, report: Tell | None = None) -> Iterator[Tell | None]:
    """Yield a function for the progress of a block that indexes; ``report`` itself when it is passed.

    A notebook keeps a line when it was stopped (Kernel > Interrupt).
    """
    in_cell = "ipykernel" in sys.modules and in_kernel()
    if report or not (in_cell or sys.stderr.isatty()):
        yield report
    else:
        with Bar(name, Labels(lang), _cell() if in_cell else _terminal) as shown:
            yield shown.tell


class Bar:
    """A line for the stage of indexing, with its numbers: text, for a reopened notebook has no widget."""

    def __init__(self, name: str, labels: Labels, show: Callable[[str], None]):
        self._name = name
        self._labels = labels
        self._show = show
        self._stage = "read"
        self._began = time.monotonic()
        self._updated = 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave a line when it was stopped, else nothing: it does not appear at each execution of a cell."""
        if self._updated:
            stopped = self._labels(
                "kb_stopped", name=self._name, stage=self._labels(f"kb_stage_{self._stage}")
            )
            self._show(stopped if kind else "")

    def tell(self, stage: str, done: int, total: int) -> None:
        """Show the progress of a stage; ``total`` is 0 where it is unknown."""
        now = time.monotonic()
        if now - self._began < _SHOWN_AFTER_S or (
            stage == self._stage and now - self._updated < _PAUSE_S
        ):
            return
        self._stage = stage
        self._updated = now
        numbers = f" {done:,}" if done > 1 else ""
        if total > 1:
            numbers = f" {done:,} / {total:,}"
        self._show(f"{self._name}: {self._labels(f'kb_stage_{stage}')}{numbers}")


def _terminal(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


def _cell() -> Callable[[str], None]:
    """Return a function that shows a text under the running cell, in place of the one before."""
    handles: list[Any] = []

    def show(text: str) -> None:
        from IPython.display import display

        if not handles:  # without a text, for nbval would compare whether there was time for it
            handles.append(display({}, raw=True, display_id=True))
        handles[0].update({"text/plain": text} if text else {}, raw=True)

    return show
