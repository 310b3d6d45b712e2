"""Measure follow-ups and asking back over MTRAG-UN, and fit when to ask back.

    python experiments/followups.py DATA [--work DIR] [--fit] [--report]

DATA holds the folder ``mtrag``; ``--work`` keeps the index. Conversations whose sha256 ends in 0-7 are for fitting; the
others are asked only with ``--report``. Printed are R@5 over the pool with paired 95 % intervals against the last turn
alone (bootstrap over conversations), and how many questions of each kind are asked back. ``--fit`` writes
``workbench/language/asking_back.json``: of the thresholds that ask back at most ``BOTHERED`` of the answerable, those
that ask back most underspecified ones; of equal ones those that ask back fewest.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.language import asking_back
from workbench.language.followup import standalone
from workbench.parts.evaluate.questions import distinct
from workbench.parts.evaluate.rankers import run_tool
from workbench.session import Workbench

BOTHERED = 0.025
"""Half of what may be bothered: the other half of the conversations may differ."""
SHARED, HOLDING = (0.25, 0.4, 0.5, 0.6), (2, 3, 4)
KINDS = ("UNDERSPECIFIED", "ANSWERABLE", "PARTIAL", "UNANSWERABLE")
SPEAKERS = {"user": "user", "agent": "assistant"}
FIRST = 5


class Task(NamedTuple):
    """One conversation up to its last question, and what was found for it in each way."""

    row: dict[str, Any]
    message: str
    history: list[dict[str, str]]
    results: list[dict[str, Any]]
    recall: dict[str, float]


def main() -> None:
    """Index, ask, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mtrag")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--report", action="store_true", help="look at the reporting half too: log that you did")
    options = parser.parse_args()
    rows = [json.loads(line) for line in (options.data / "mtrag" / "tasks.jsonl").open(encoding="utf-8")]
    with Workbench.open(options.work) as wb:
        if "mtrag" not in wb.knowledge.names():
            wb.add_knowledge("mtrag", [_corpus(options.data / "mtrag" / "corpus.jsonl.gz", options.work)])
        base = wb.knowledge.get("mtrag")
        halves = (True, False) if options.report else (True,)
        tasks = {half: [observe(row, wb, base) for row in rows if fits(row) is half] for half in halves}
        if options.fit:
            fit(tasks[True], base)
        for half in halves:
            sys.stdout.write(f"{'fit' if half else 'report'}\n{recalls(tasks[half])}{asked_back(tasks[half], base)}")


def fits(row: dict[str, Any]) -> bool:
    """Return whether a conversation is of the half for fitting."""
    conversation = row["id"].rpartition("-")[0]
    return hashlib.sha256(conversation.encode()).hexdigest()[-1] in "01234567"


def _corpus(path: Path, work: Path) -> Path:
    """Write the corpus with its ids where the workbench looks for them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    made = work / "mtrag.jsonl"
    made.write_text("".join(json.dumps({**d, "id": d["doc_id"]}) + "\n" for d in documents), encoding="utf-8")
    return made


def observe(row: dict[str, Any], wb: Workbench, base: Any) -> Task:
    """Search for a task's last question in each way."""
    history = [{"role": SPEAKERS[turn["speaker"]], "content": turn["text"]} for turn in row["turns"]]
    users = [entry["content"] for entry in history if entry["role"] == "user"]
    context, message = wb.ports(), users[-1]
    ways = {
        "last turn": message,
        "last two user turns": " ".join(users[-2:]),
        "all user turns": " ".join(users),
        "standalone": standalone(message, history[:-1], [base]),
    }
    search = context.tools["hybrid_search"]
    found = {name: asyncio.run(run_tool(search, text, base, context)) for name, text in ways.items()}
    ranked = {name: distinct(r["metadata"]["doc_id"] for r in results)[:FIRST] for name, results in found.items()}
    gold = set(row["gold"])
    recall = {name: len(gold & set(first)) / len(gold) for name, first in ranked.items()} if gold else {}
    return Task(row, message, history[:-1], [dict(result) for result in found["standalone"]], recall)


def recalls(tasks: Sequence[Task]) -> str:
    """Return R@5 of each way, and what it gains over the last turn alone."""
    scored = [task for task in tasks if task.recall]
    drawn = np.random.default_rng(7).integers(0, len(scored), (5000, len(scored)))
    lines = [f"  R@{FIRST} of {len(scored)} tasks"]
    for name in scored[0].recall:
        values = np.array([task.recall[name] for task in scored])
        gain = values - [task.recall["last turn"] for task in scored]
        low, high = np.percentile(100 * gain[drawn].mean(axis=1), (2.5, 97.5))
        lines.append(f"    {name:22}{100 * values.mean():5.1f}  {100 * gain.mean():+5.1f} [{low:+.1f}, {high:+.1f}]")
    return "\n".join(lines) + "\n"


def asked_back(tasks: Sequence[Task], base: Any) -> str:
    """Return how many questions of each kind are asked back."""
    lines = ["  asked back"]
    for kind in KINDS:
        asked = _asked(tasks, kind, base)
        lines.append(f"    {kind:22}{sum(asked):3} of {len(asked)} ({100 * np.mean(asked):.0f} %)")
    return "\n".join(lines) + "\n"


def _asked(tasks: Sequence[Task], kind: str, base: Any) -> list[bool]:
    of_kind = [task for task in tasks if task.row["answerability"] == kind]
    return [bool(asking_back.left_open(task.message, task.results, [base], task.history)) for task in of_kind]


def fit(tasks: Sequence[Task], base: Any) -> None:
    """Choose the thresholds, use them, and write them down."""
    best: tuple[int, int, dict[str, float]] = (-1, 0, {})
    for shared, holding in product(SHARED, HOLDING):
        tried = {"shared": shared, "holding": holding}
        asking_back.FITTED.update(tried)
        bothered = _asked(tasks, "ANSWERABLE", base)
        rank = (sum(_asked(tasks, "UNDERSPECIFIED", base)), -sum(bothered))
        if np.mean(bothered) <= BOTHERED and rank > best[:2]:
            best = (*rank, tried)
    asking_back.FITTED.update(best[2])
    path = Path(asking_back.__file__).with_suffix(".json")
    path.write_text(json.dumps(asking_back.FITTED) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
