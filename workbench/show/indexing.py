"""How far an indexing is, in a terminal: one bar, its stage named, gone when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Tell = Callable[[str, int, int], None]
"""``tell(stage, done, total)``; ``total`` is 0 where nobody knows."""


@contextmanager
def bar(console: Console) -> Iterator[Tell]:
    """Show one on this console while the block works."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<8}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("read", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            shown.update(task, description=stage, completed=done, total=total or None)

        yield tell
