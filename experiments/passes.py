"""Fit how well the first documents must cover a question, else what they leave is searched; and show what it brings.

    python experiments/passes.py DATA [--work DIR] [--sets hotpot musique 2wiki] [--limit 150] [--fit]

DATA is a folder with the question sets, which are for measuring and are not shipped. Each question is asked of the
fusion agent twice: with one pass, and with hops wherever it is not enough. Half of the questions, by a hash of
their id, fit ``workbench/graphs/needs.json``: the lowest quality that costs no more than ``COST`` points of R@5 or
all@5 of any set. The other half reports it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.graphs import needs, reflect
from workbench.parts.evaluate.rankers import change, ranker
from workbench.session import Workbench

SETS = ("hotpot", "musique", "2wiki")
AGENT, FIRST = "fusion_agent", 5
COST = 0.5
"""Points that the passes which are not run may cost on the fit half."""
STEPS = np.round(np.arange(0.1, 1.001, 0.02), 2)


class Case(NamedTuple):
    """A question: how well the first pass covers it, R@5 and all@5 after one pass and after all, and passes."""

    set_name: str
    fits: bool
    quality: float
    one: tuple[float, float]
    every: tuple[float, float]
    passes: int


def found(documents: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """Return R@5 and all@5 in percent.

    >>> found(["a", "b"], ["a", "c"])
    (50.0, 0.0)
    """
    share = len({*documents[:FIRST]} & {*gold}) / len({*gold})
    return 100 * share, 100.0 * (share == 1)


def is_of_fit(question_id: str) -> bool:
    """Check whether a question is of the half that fits."""
    return int(hashlib.sha256(question_id.encode()).hexdigest()[-1], 16) < 8


async def cases(wb: Workbench, data: Path, name: str, limit: int) -> list[Case]:
    """Ask the questions of a set with one pass, and with all."""
    lines = (data / name / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    rows = [rows[place * len(rows) // limit] for place in range(min(limit, len(rows)))] if limit < len(rows) else rows
    context, base = wb.ports(), wb.knowledge.get(name)
    once, always = ranker(AGENT, change(context, {"max_iterations": 1})), ranker(AGENT, context)
    rows_found = []
    for row in rows:
        one, every = await once(row["question"], base), await always(row["question"], base)
        scores = found(one.documents, row["gold"]), found(every.documents, row["gold"])
        quality = every.quality if every.quality is not None else 1.0  # what was enough was not looked at
        rows_found.append(Case(name, is_of_fit(row["id"]), quality, *scores, every.passes))
    return rows_found


def with_limit(rows: Sequence[Case], limit: float) -> tuple[float, float, float]:
    """Return R@5, all@5 and passes where only what is covered less is looked at again."""
    again = [row.quality < limit for row in rows]
    scores = [row.every if more else row.one for row, more in zip(rows, again, strict=True)]
    passes = [row.passes if more else 1 for row, more in zip(rows, again, strict=True)]
    recall, whole = np.mean(scores, axis=0)
    return float(recall), float(whole), float(np.mean(passes))


def fitted(rows: Sequence[Case]) -> float:
    """Return the lowest quality whose missing passes cost little on every set."""
    of_sets = [[row for row in rows if row.set_name == name] for name in dict.fromkeys(row.set_name for row in rows)]
    for limit in STEPS:
        pairs = [(with_limit(part, limit), with_limit(part, np.inf)) for part in of_sets]
        if all(most[n] - some[n] <= COST for some, most in pairs for n in (0, 1)):
            return float(limit)
    return 1.0


def interval(differences: np.ndarray) -> str:
    """Return the 95 % interval of a mean by a seeded bootstrap over questions."""
    drawn = np.random.default_rng(7).integers(0, len(differences), (2000, len(differences)))
    low, high = np.percentile(differences[drawn].mean(axis=1), [2.5, 97.5])
    return f"[{low:+.1f}, {high:+.1f}]"


def report(rows: Sequence[Case], limit: float) -> Iterator[str]:
    """Yield a line for each set: one pass, this limit, and every pass."""
    for name in dict.fromkeys(row.set_name for row in rows):
        part = [row for row in rows if row.set_name == name]
        yield f"{name}: {len(part)} questions"
        for title, value in (("one pass", 0.0), (f"below {limit:.2f}", limit), ("every pass", np.inf)):
            recall, whole, passes = with_limit(part, value)
            missed = np.array([row.every[1] - row.one[1] if row.quality >= value else 0.0 for row in part])
            lost = f"all@5 lost {missed.mean():.1f} {interval(missed)}"
            yield f"  {title:11} R@5 {recall:5.1f}  all@5 {whole:5.1f}  passes {passes:.2f}  {lost}"


def main() -> None:
    """Ask, fit when told to, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/passes"), help="where the indexes are kept")
    parser.add_argument("--sets", nargs="*", default=[*SETS])
    parser.add_argument("--limit", type=int, default=150, help="questions of each set")
    parser.add_argument("--fit", action="store_true", help="choose the quality again, on the fit half")
    args = parser.parse_args()
    limit, reflect.QUALITY = reflect.QUALITY, np.inf
    rows = list[Case]()
    with Workbench.open(args.work) as wb:
        for name in args.sets:
            if name not in wb.knowledge.names():
                wb.add_knowledge(name, [args.data / name / "corpus.jsonl.gz"])
            work: Coroutine[Any, Any, Any] = cases(wb, args.data, name, args.limit)
            rows += wb.call(work)
    if args.fit:
        limit = fitted([row for row in rows if row.fits])
        made_by = f"python experiments/passes.py DATA --fit: the fit halves of {', '.join(args.sets)}"
        content = json.dumps({"made_by": made_by, "quality": limit}, indent=1)
        Path(needs.__file__).with_suffix(".json").write_text(content + "\n", encoding="utf-8")
    for half in (True, False):
        sys.stdout.write(f"\n{'fit' if half else 'report'} half\n")
        for line in report([row for row in rows if row.fits is half], limit):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
