"""Two commits measured in pairs on one machine: what a change costs. ``python -m experiments.pairs BASE [HEAD]``.

Each commit is checked out into a folder of its own, and the same work is done with each in turn, A B A B, in fresh
processes with today's libraries. A ratio of neighbours holds where a machine is noisy; a single time does not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILMS = ROOT / "data" / "films.jsonl"
QUESTIONS = [
    "喜宴哪一年上映？",
    "推荐几部类似《喜宴》的电影",
    "对比《喜宴》和《饮食男女》的风格",
    "List Christopher Nolan films after 2005",
    "Who directed Memento?",
]


# what is done with each commit, in a process that has its package on the path


def nothing_to_do(folder: Path) -> Iterator[tuple[float, float]]:
    """Runs of two steps that do nothing, after the first."""
    from workbench.session import Workbench

    with Workbench.open(folder / "own") as wb:
        ask = idle(wb, folder)
        for n in range(25):
            taken = spent(lambda n=n: ask(f"own {n}"))
            if n >= 5:
                yield taken


def idle(wb: Any, folder: Path) -> Callable[[str], Any]:
    """Asks, in the session of that name, what two steps find that do nothing."""
    from workbench.plans import Plan, PlanStep

    notes = folder / "notes.jsonl"
    notes.write_text('{"id": "a", "title": "Hulk", "text": "Hulk is green."}\n')
    wb.add_knowledge("notes", [notes])

    @wb.tools.tool
    async def nothing(query: str) -> list[str]:
        """Take no time."""
        return ["one"]

    @wb.register("planner")
    async def fixed(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        steps = [
            PlanStep(step_id=f"s{n}", objective="", tool="nothing", tool_input={"query": "q"})
            for n in "ab"
        ]
        return Plan(steps=steps)

    async def short(state: Any, context: Any) -> dict[str, Any]:
        return {"answer": "one", "citations": []}

    wb.register("handler", short, kb="notes")
    enough = {"min_evidence": 0, "min_top_score": 0}
    return lambda session: wb.ask("q", kb="notes", thresholds=enough, session=session)


def questions(folder: Path) -> Iterator[tuple[float, float]]:
    """Film questions, one after the other."""
    for wb in films(folder):
        for n in range(3):
            for question in QUESTIONS:
                yield spent(
                    lambda wb=wb, q=question, n=n: wb.ask(q, kb="film", session=f"alone {n} {q}")
                )


def ten_at_once(folder: Path) -> Iterator[tuple[float, float]]:
    """Ten film questions at the same moment, and no more: seconds of each, and the processor's share of each."""
    for wb in films(folder):
        for burst in range(3):
            began = time.process_time()

            def one(n: int, wb: Any = wb, burst: int = burst) -> float:
                asked = QUESTIONS[n % len(QUESTIONS)]
                return spent(lambda: wb.ask(asked, kb="film", session=f"ten {burst} {n}"))[0]

            with ThreadPoolExecutor(10) as pool:
                waited = list(pool.map(one, range(10)))
            share = (time.process_time() - began) / 10
            yield from ((wall, share) for wall in waited)


def index(folder: Path, names: str = "rules") -> Iterator[tuple[float, float]]:
    """The films indexed, with names by these."""
    from workbench.session import Workbench

    with Workbench.open(folder / "index", names=names) as wb:
        yield spent(lambda: wb.add_knowledge("film", [FILMS]))


def films(folder: Path) -> Iterator[Any]:
    """A workspace with the films, warm."""
    from workbench.session import Workbench

    with Workbench.open(folder / "films") as wb:
        wb.add_knowledge("film", [FILMS])
        for question in QUESTIONS:
            wb.ask(question, kb="film", session="warm-up")
        yield wb


WORK: Mapping[str, Callable[[Path], Iterator[tuple[float, float]]]] = {
    "nothing": nothing_to_do,
    "questions": questions,
    "ten": ten_at_once,
    "index": index,
}


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Elapsed and processor seconds of one call, all threads together."""
    wall = time.perf_counter()
    cpu = time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


# the two in turn


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """The package of a commit, in a folder of its own; ``.`` is the working tree."""
    if revision == ".":
        yield ROOT
        return
    place = folder / revision.replace("/", "_")
    subprocess.run(
        ["git", "-C", ROOT, "worktree", "add", "-q", "--detach", place, revision], check=True
    )
    try:
        yield place
    finally:
        subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", place], check=True)


def measured(place: Path, what: str) -> tuple[float, float]:
    """Medians of elapsed and processor seconds of one process with that package."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", __file__, "--work", what, folder]
        environment = {**os.environ, "PYTHONPATH": str(place), "ANONYMIZED_TELEMETRY": "False"}
        done = subprocess.run(
            command, env=environment, cwd=place, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{what} at {place} failed:\n{done.stderr[-2000:]}")
        rows = json.loads(done.stdout.splitlines()[-1])
        wall, cpu = zip(*rows, strict=True)
        return statistics.median(wall), statistics.median(cpu)


def interval(ratios: list[float]) -> str:
    """The median, and the range of all pairs."""
    return f"{statistics.median(ratios):.2f}  [{min(ratios):.2f}, {max(ratios):.2f}]"


def main() -> None:
    """Print the ratios, HEAD over BASE."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    parser.add_argument(
        "head", nargs="?", default=".", help="a commit; the working tree when it is left out"
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(WORK), default=list(WORK))
    told = parser.parse_args()
    print(f"{'':12}{'base':>10}{'head':>10}   head/base, processor time     head/base, elapsed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with checked_out(told.base, folder) as base, checked_out(told.head, folder) as head:
            for what in told.only:
                pairs = [(measured(base, what), measured(head, what)) for _ in range(told.pairs)]
                ms = [
                    f"{statistics.median(pair[side][1] for pair in pairs) * 1000:,.0f} ms"
                    for side in (0, 1)
                ]
                ratios = [[b[which] / a[which] for a, b in pairs] for which in (1, 0)]
                print(
                    f"{what:12}{ms[0]:>10}{ms[1]:>10}   {interval(ratios[0]):<28}  {interval(ratios[1])}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        print(json.dumps(list(WORK[sys.argv[2]](Path(sys.argv[3])))))
    else:
        main()
