"""Measure why ten questions at once gain little without a model: the interpreter's lock.

    python experiments/mapping.py [--questions 10] [--rounds 5]

Ten questions over a small corpus are asked one after another, by ``wb.map``, and by two processes with five each.
Printed are the median seconds, the seconds of processor time in them, and the gain over one after another. Two
processes gain because each has a lock of its own; threads of one process share it, and a question without a model is
nearly all Python: its processor time is its time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from workbench.session import Workbench

CORE = {"embedding_model": "hashing", "rerank_model": "none"}


def make_corpus(path: Path, count: int = 60) -> Path:
    """Write ``count`` films as JSON lines."""
    films = [
        {
            "id": f"m{n}",
            "title": f"Film {n}",
            "type": "Film",
            "year": 1980 + n % 40,
            "text": f"Film {n} is film {n}.",
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(film) + "\n" for film in films), encoding="utf-8")
    return path


def ask_each(folder: Path, questions: Sequence[str], rounds: int) -> list[tuple[float, float]]:
    """Return (seconds, processor seconds) of each round of questions asked one after another."""
    with Workbench.open(folder, **CORE) as wb:
        return [
            measure(lambda: [wb.ask(question, kb="film") for question in questions])
            for _ in range(rounds + 1)
        ][1:]


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Return (seconds, processor seconds of this process) of ``work()``."""
    wall = time.perf_counter()
    processor = time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    """Print a line for each way to ask the questions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    questions = [f"When was Film {number} released?" for number in range(options.questions)]
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, name) for name in ("first", "second")]
        for folder in folders:
            with Workbench.open(folder, **CORE) as wb:
                wb.add_knowledge("film", [make_corpus(Path(place, "films.jsonl"))])
        rows = {"one after another": ask_each(folders[0], questions, options.rounds)}
        with Workbench.open(folders[0], **CORE) as wb:
            rows["wb.map"] = [
                measure(lambda: wb.map(questions, kb="film")) for _ in range(options.rounds + 1)
            ][1:]
        half = len(questions) // 2
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            parts = [questions[:half], questions[half:]]
            several = [*pool.map(ask_each, folders, parts, [options.rounds] * 2)]
        rows["two processes"] = [
            (max(first[0], second[0]), first[1] + second[1])
            for first, second in zip(*several, strict=True)
        ]
    alone = statistics.median(wall for wall, _ in rows["one after another"])
    for name, times in rows.items():
        wall, processor = (statistics.median(values) for values in zip(*times, strict=True))
        print(f"{name:18} {wall:6.2f} s  processor {processor:6.2f} s  gain {alone / wall:.2f}")


if __name__ == "__main__":
    main()
