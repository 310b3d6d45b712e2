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

    In a notebook the bar leaves a line when it was stopped (Kernel > Interrupt).
    """
    if report:
        yield report
    elif "ipykernel" in sys.modules and in_kernel():
        with Bar(name, Labels(lang)) as shown:
            yield shown.tell
    elif sys.stderr.isatty():
        from rich.console import Console

        with bar(Console(stderr=True)) as tell:
            yield tell
    else:
        yield None


class Bar:
    """A line for the stage of indexing, with its numbers: text, for a reopened notebook has no widget."""

    def __init__(self, name: str, labels: Labels):
        self._name, self._labels = name, labels
        self._handle: Any = None
        self._stage, self._began, self._updated = "read", time.monotonic(), 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave a line when it was stopped, else nothing: it does not appear at each execution of a cell."""
        if self._handle is not None:
            stopped = self._labels("kb_stopped", name=self._name, stage=self._labels(f"kb_stage_{self._stage}"))
            self._handle.update({"text/plain": stopped} if kind else {}, raw=True)

    def tell(self, stage: str, done: int, total: int) -> None:
        """Show the progress of a stage; ``total`` is 0 where it is unknown."""
        now = time.monotonic()
        if now - self._began < _SHOWN_AFTER_S or (stage == self._stage and now - self._updated < _PAUSE_S):
            return
        self._stage, self._updated = stage, now
        if self._handle is None:
            from IPython.display import display

            # without a text, for nbval would compare whether there was time for it
            self._handle = display({}, raw=True, display_id=True)
        numbers = f" {done:,} / {total:,}" if total > 1 else f" {done:,}" if done > 1 else ""
        self._handle.update({"text/plain": f"{self._name}: {self._labels(f'kb_stage_{stage}')}{numbers}"}, raw=True)


@contextmanager
def bar(console: Any) -> Iterator[Tell]:
    """Yield a progress bar on this console, which disappears at the end of the block."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("read", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        yield tell
