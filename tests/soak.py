"""A long life in one process: what it holds stays flat over runs of every kind."""

import ctypes
import gc
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench import QUESTIONS as ASKED
from workbench.runs.run import Run
from workbench.session import Workbench

_libc = ctypes.CDLL(None)
QUESTIONS = (*ASKED, "Tell me more about it", "Hello!")
KINDS = {"plain": 60, "answered": 14, "cancelled": 8, "failing": 6, "incognito": 8, "left paused": 2, "interrupted": 2}
"""Kind of a run -> how many of a hundred."""
ANSWERS: tuple[Callable[[Run], Any], ...] = (
    lambda run: run.approve(), lambda run: run.reject("enough"), lambda run: run.respond("only comedies"),
    lambda run: run.edit(thresholds={"min_evidence": 1}),
)  # fmt: skip
BOUNDS = {"memory MB": 6.0, "objects": 2_000.0, "threads": 0.5, "handles": 0.5, "sockets": 0.5}
"""The steepest slope that counts as flat, for a thousand runs.

SQLite's page caches and the allocator's own pieces still settle after thousands of runs; that nothing of ours stays is
what the count of objects says: a run that were held would be thousands of them.
"""


def held(workspace: Path) -> Iterator[tuple[str, float]]:
    """Yield what this process holds after a collection of garbage and after freed memory was given back."""
    gc.collect()
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    handles = [os.path.realpath(entry.path) for entry in os.scandir("/proc/self/fd")]
    yield "memory MB", pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    yield "objects", len(gc.get_objects())
    yield "threads", threading.active_count()
    yield "handles", len(handles)
    yield "sockets", sum("socket:" in target for target in handles)


def growing(workspace: Path, work: Callable[[int], object], runs: int, every: int = 20) -> list[str]:
    """Do so much work; return what grew over its second half, for a thousand runs. The first half fills the caches."""
    numbers, values = list[int](), list[dict[str, float]]()
    for number in range(runs):
        work(number)
        if number % every == every - 1:
            seen = dict(held(workspace))  # in the first half too: what is freed is given back all the way
            if number >= runs // 2:
                numbers.append(number)
                values.append(seen)
    slopes = {name: 1000 * np.polyfit(numbers, [value[name] for value in values], 1)[0] for name in BOUNDS}
    print("".join(f"\n{name:<12}{values[-1][name]:>12,.1f}{slope:>+12,.2f}" for name, slope in slopes.items()))
    return [
        f"{name}: {slope:+,.2f} of {values[-1][name]:,.1f}" for name, slope in slopes.items() if slope > BOUNDS[name]
    ]


def mixed(wb: Workbench, kind: str, number: int, dice: random.Random) -> str:
    """Make one run of that kind and return its status when it was left alone."""
    session, question = f"session-{number % 24}", dice.choice(QUESTIONS)
    if kind == "answered":
        run = wb.ask(question, kb="film", session=session, review=dice.choice(["plan", "reflect", "all"]))
        for _ in range(8):
            if run.status != "paused":
                break
            dice.choice(ANSWERS)(run)
        while run.status == "paused":
            run.reject()
        return run.status
    if kind == "left paused":
        return wb.ask(question, kb="film", session=session, review="plan").status
    if kind in ("cancelled", "interrupted"):  # in sessions of their own: a follow-up would inherit the word
        run = wb.start(f"SLOW {question}", kb="film", session=f"{kind}-{number}")
        next((event for event in run.events() if "retrieval_step_start" in event), None)
        return (run.cancel() if kind == "cancelled" else run.cancel(resumable=True)).status
    if kind == "failing":
        return wb.ask(f"FAIL {question}", kb="film", session=f"failing-{number}").status
    run = wb.ask(question, kb="film", session=session, incognito=kind == "incognito")
    if number % 5 == 0:
        run._repr_mimebundle_()
    return run.status
