"""Every question asked of a tool, and the table in which tools are compared."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workbench.evaluating.rankings import Asked, Row, groups
from workbench.evaluating.statistics import Bootstrap, Scores, means, spread

T = TypeVar("T")
Told = Callable[[str, int, int], None]
"""``told(tool, asked, of)``."""


@dataclass
class Measured(Generic[T]):
    """What one tool did for each question, by its id: what it found, in how many seconds; and what it failed with."""

    found: dict[str, T]
    seconds: dict[str, float]
    failures: list[str]

    def failed(self) -> dict[str, Any]:
        """How many questions failed, and the first ones; nothing where none did."""
        return {"failed": len(self.failures), "failures": self.failures[:3]} if self.failures else {}


async def ask_every(
    name: str, asked: Sequence[Asked], ask: Callable[[Asked], Awaitable[T]], nothing: T, told: Told | None
) -> Measured[T]:
    """Ask every question; a tool that fails found ``nothing``, and that is kept."""
    done = Measured[T]({}, {}, [])
    for number, one in enumerate(asked, start=1):
        begun = time.perf_counter()
        try:
            done.found[one.id] = await ask(one)
        except Exception as error:  # a tool may raise anything, and the table says so
            done.found[one.id] = nothing
            done.failures.append(f"{one.id}: {type(error).__name__}: {error}")
        done.seconds[one.id] = time.perf_counter() - begun
        if told:
            told(name, number, len(asked))
    return done


def compared(rows: Sequence[Row], done: Mapping[str, Measured[Any]], scores: Mapping[str, Scores]) -> dict[str, Any]:
    """``tools``, a line each; ``paired``, each but the first one against that."""
    ids = [row["id"] for row in rows]
    first, *others = done
    bootstrap = Bootstrap(ids, len(others))
    lines = {
        name: {
            **means(scores[name], ids),
            "by": {
                field: {value: {"questions": len(some), **means(scores[name], some)} for value, some in values.items()}
                for field, values in groups(rows).items()
            },
            "ms": spread(list(measured.seconds.values())),
            "ci": bootstrap.interval(scores[name]),
            **measured.failed(),
        }
        for name, measured in done.items()
    }
    return {
        "tools": lines,
        "paired": [{"tool": n, "against": first, **bootstrap.compare(scores[n], scores[first])} for n in others],
    }
