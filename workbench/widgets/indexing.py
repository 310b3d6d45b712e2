"""The progress of indexing: a bar in a notebook or a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from workbench.views.labels import Labels
from workbench.views.page import el
from workbench.widgets.display import in_kernel

Tell = Callable[[str, int, int], None]
"""``tell(stage, done, total)``; ``total`` is 0 where it is unknown."""
_PAUSE_S = 0.3
"""Seconds before the first report to a notebook and between two; faster work needs no bar."""


@contextmanager
def watched(name: str, lang: str, report: Tell | None = None) -> Iterator[Tell | None]:
    """Yield a function for the progress of a block that indexes; ``report`` itself when it is passed."""
    if report:
        yield report
    elif "ipykernel" in sys.modules and in_kernel():
        with _in_cell(name, Labels(lang)) as tell:
            yield tell
    elif sys.stderr.isatty():
        with _in_terminal() as tell:
            yield tell
    else:
        yield None


@contextmanager
def _in_cell(name: str, labels: Labels) -> Iterator[Tell]:
    """Yield a bar in the output of a cell: a line remains when it was stopped (Kernel > Interrupt), else nothing."""
    from IPython.display import display

    handle: Any = None
    stage, shown_at = "read", time.monotonic()

    def tell(now: str, done: int, total: int) -> None:
        nonlocal handle, stage, shown_at
        stage, moment = now, time.monotonic()
        if moment - shown_at < _PAUSE_S:
            return
        shown_at = moment
        numbers = f" {done:,} / {total:,}" if total else ""
        words = f" {name}: {labels(f'kb_stage_{stage}')}{numbers}"
        # without a text, for nbval would compare whether there was time for a bar
        bundle = {"text/html": el("div", el("progress", max=total or None, value=done if total else None), words)}
        if handle:
            handle.update(bundle, raw=True)
        else:
            handle = display(bundle, raw=True, display_id=True)

    stopped = True
    try:
        yield tell
        stopped = False
    finally:
        if handle:
            line = labels("kb_stopped", name=name, stage=labels(f"kb_stage_{stage}"))
            handle.update({"text/plain": line} if stopped else {}, raw=True)


@contextmanager
def _in_terminal() -> Iterator[Tell]:
    """Yield a bar that disappears at the end of the block."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("read", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            progress.update(task, description=stage, completed=done, total=total or None)

        yield tell
