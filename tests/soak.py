"""A long life in one process, measured: ``make soak``, or ``python -m tests.soak --runs 2000``.

Asks mixed questions in several conversations: most end, some pause and are answered, some stay paused, some are
cancelled, fail, or leave nothing (incognito). Before it begins, the table of film questions is asked once, so that
caches are as full as the corpus makes them. Every few runs it looks at what the process holds, and at the end it says
whether memory, threads, file handles and sockets are flat: a line is fitted through the second half of each curve, and
its slope must stay under a bound. The databases grow by what is kept; how much a run takes is printed beside them.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench import QUESTIONS as ASKED
from tests.counting import endless
from workbench.runs.run import Run
from workbench.session import Workbench

_libc = ctypes.CDLL(None)
TABLE = Path(__file__).resolve().parent.parent / "experiments" / "film_questions.jsonl"
FILMS = Path(__file__).resolve().parent.parent / "data" / "films.jsonl"
QUESTIONS = (*ASKED, "Tell me more about it", "Hello!")
KINDS = {"plain": 60, "answered": 14, "cancelled": 8, "failing": 6, "incognito": 8, "left paused": 2, "interrupted": 2}
"""Kind of a run -> how many of a hundred."""
ANSWERS: tuple[Callable[[Run], Any], ...] = (
    lambda run: run.approve(),
    lambda run: run.reject("enough"),
    lambda run: run.respond("only comedies"),
    lambda run: run.edit(thresholds={"min_evidence": 1}),
)
BOUNDS = {"memory MB": 6.0, "objects": 2_000.0, "threads": 0.5, "handles": 0.5, "sockets": 0.5}
"""What is judged -> the steepest slope of its second half that counts as flat, for a thousand runs.

A percent of the memory: SQLite's page caches and the allocator's own pieces still settle after thousands of runs. That
nothing of ours stays is what the count of objects says: a run that were held would be thousands of them.
"""


@dataclass
class Curve:
    """What was seen of one thing, run by run."""

    name: str
    runs: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def slope(self) -> float:
        """Of the line through the second half, for a thousand runs.

        >>> round(Curve("", list(range(0, 1000, 10)), [100 + i / 100 for i in range(0, 1000, 10)]).slope(), 6)
        10.0
        """
        half = len(self.runs) // 2
        return 1000 * float(np.polyfit(self.runs[half:], self.values[half:], 1)[0]) if len(self.runs) > 2 else 0.0


def held(workspace: Path) -> Iterator[tuple[str, float]]:
    """What this process holds now: after a collection of garbage, and after freed memory was given back.

    The allocator keeps freed pages for later, and its steps would hide what is looked for.
    """
    gc.collect()
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    handles = [_target(entry.path) for entry in os.scandir("/proc/self/fd")]
    yield "memory MB", pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    yield "objects", len(gc.get_objects())
    yield "threads", threading.active_count()
    yield "handles", len(handles)
    yield "sockets", sum(target.startswith("socket:") for target in handles)
    for name in ("workbench.db", "checkpoints.db"):
        yield f"{name} MB", sum(p.stat().st_size for p in workspace.glob(f"{name}*")) / 1e6


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # the handle of the listing itself
        return ""


def one(wb: Workbench, kind: str, number: int, dice: random.Random) -> str:
    """One run of that kind; its status when it was left alone."""
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


def soak(wb: Workbench, runs: int, every: int, seed: int, tell: Callable[[str], object]) -> tuple[list[Curve], Counter]:
    """So many runs: the curves, and how often each kind ended how."""
    curves: dict[str, Curve] = {}
    ended, dice, began = Counter[tuple[str, str]](), random.Random(seed), time.monotonic()
    kinds = dice.choices(list(KINDS), list(KINDS.values()), k=runs)
    for number, kind in enumerate(kinds, 1):
        ended[kind, one(wb, kind, number, dice)] += 1
        if number % every == 0:
            now = {**dict(held(wb.path)), "ms a run": (time.monotonic() - began) / every * 1000}
            for name, value in now.items():
                curve = curves.setdefault(name, Curve(name))
                curve.runs.append(number)
                curve.values.append(value)
            tell(f"{number:>6} runs  " + "  ".join(f"{name} {value:,.1f}" for name, value in now.items()))
            began = time.monotonic()
    return list(curves.values()), ended


def verdict(curves: Sequence[Curve]) -> tuple[str, bool]:
    """A table of the curves, and whether all that is judged is flat."""
    lines, flat = [f"{'':<18}{'first':>9}{'last':>9}{'most':>9}{'per 1,000':>11}{'bound':>7}  "], True
    for curve in curves:
        slope, bound = curve.slope(), BOUNDS.get(curve.name)
        fits = bound is None or slope <= bound
        flat &= fits
        said = "" if bound is None else "flat" if fits else "GROWS"
        numbers = f"{curve.values[0]:>9,.1f}{curve.values[-1]:>9,.1f}{max(curve.values):>9,.1f}{slope:>+11,.2f}"
        lines.append(f"{curve.name:<18}{numbers}{bound or '':>7}  {said}")
    return "\n".join(lines), flat


def main() -> None:
    """Soak, print, and say by the exit code whether all is flat."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--every", type=int, default=50, help="runs between two looks")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Workbench.open(folder) as wb:
        wb.add_knowledge("film", [FILMS])
        for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines()):
            wb.ask(json.loads(line)["question"], kb="film", session=f"first-{number}")  # fills the bounded caches
        endless(wb)
        curves, ended = soak(wb, asked.runs, asked.every, asked.seed, lambda line: print(line, flush=True))
    print("\n" + "\n".join(f"{count:>6} {kind}: {status}" for (kind, status), count in sorted(ended.items())))
    table, flat = verdict(curves)
    print(f"\n{table}\n\n{'flat' if flat else 'NOT flat'}: slopes of the second half, seed {asked.seed}")
    sys.exit(not flat)


if __name__ == "__main__":
    main()
