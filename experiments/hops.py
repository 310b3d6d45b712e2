"""Fit what a chain believes of a sub-question's answer (``parts/chains/chain.py``), and measure both halves.

    python -m experiments.hops WORKSPACE DATA [--limit 150]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``); a set that is not
there is skipped. Half of the questions (by a hash of their id) fit; the figures are of the other half: R@5 / all@5 of
the chain as it is, with the weights fitted here, and without sub-questions.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.calibrate import _half, fit
from experiments.merging import given, ranking, worth
from workbench.parts.chains.chain import TOOL, Walk, answers, sub_questions
from workbench.parts.evaluate.questions import choose, gold_ids, read_rows
from workbench.ports import KnowledgeBase
from workbench.session import Workbench
from workbench.tools import scoring
from workbench.tools.evidence import document_id
from workbench.tools.registry import StepLog
from workbench.tools.scoring import MODELS, UNSEEN, Logistic, log_odds
from workbench.tools.tool import read_input

SETS = ("hotpot", "2wiki", "musique")
TOP = 20

Questions = Sequence[tuple[KnowledgeBase, Mapping[str, Any], frozenset[str]]]


def main() -> None:
    """Fit on one half, and print the weights and the figures of the other half."""
    options = given(__doc__, 150)
    with Workbench.open(options.workspace) as wb:
        asked = []
        for name in SETS:
            if name not in wb.knowledge.names():
                sys.stderr.write(f"skipped: {name}\n")
                continue
            rows = choose(
                read_rows(options.data / name / "questions.jsonl", "id", "question"),
                {},
                options.limit,
            )
            asked += [
                (wb.knowledge.get(name), row, frozenset(gold_ids(row, "gold"))) for row in rows
            ]
        fits = [question for question in asked if _half(question[1]["id"])]
        rest = [question for question in asked if not _half(question[1]["id"])]
        before = dict(MODELS)
        next_hop = fit(hop_rows(fits), list(before["next_hop"].weights))
        use(next_hop=next_hop)
        second_pass = fit(order_rows(fits), list(before["second_pass"].weights))
        for name, model in {"next_hop": next_hop, "second_pass": second_pass}.items():
            print(f"{name}: {model.bias} {dict(model.weights)}")
        ways = {
            "as it is": {name: before[name] for name in ("next_hop", "second_pass")},
            "fitted": {"next_hop": next_hop, "second_pass": second_pass},
            "without": {
                "next_hop": Logistic(-20.0, {}),
                "second_pass": Logistic(0.0, {"first": 1.0}),
            },
        }
        print(f"{'R@5 / all@5':12}" + "".join(f"{name:>20}" for name in SETS))
        for way, models in ways.items():
            use(**models)
            print(
                f"{way:12}"
                + "".join(measure([q for q in rest if q[0].name == name]) for name in SETS)
            )


def use(**models: Logistic) -> None:
    """Put models in the place of those of ``tools/fitted.json``, in this process."""
    MODELS.update(models)


def hop_rows(questions: Questions) -> list[dict[str, Any]]:
    """Return the signals of each passage that a sub-question finds, and whether it is among the right documents."""
    rows = []
    for base, row, gold in questions:
        ids = walk_through(base, row["question"]).best(TOP)
        for sub_question in sub_questions(row["question"], base.passages(ids), base, Walk.hub):
            for chunk_id, signals in answers(row["question"], sub_question, base).items():
                rows.append({"signals": signals, "right": document_id(chunk_id) in gold})
    return rows


def order_rows(questions: Questions) -> list[dict[str, Any]]:
    """Return the signals by which both passes are ordered; the first passage stays where it is and is left out."""
    rows = []
    for base, row, gold in questions:
        walk = walk_through(base, row["question"])
        ids = walk.best(TOP)
        first = dict(zip(ids, walk.probabilities(ids)[0], strict=True))
        hops = dict[str, float]()
        for sub_question in sub_questions(row["question"], base.passages(ids), base, Walk.hub):
            for chunk_id, signals in answers(row["question"], sub_question, base).items():
                hops[chunk_id] = max(
                    hops.get(chunk_id, 0.0), scoring.probability("next_hop", signals)
                )
        front = {document_id(chunk_id) for chunk_id in ids[: Walk.answering]}
        for chunk_id in sorted({*ids, *hops} - set(ids[:1])):
            signals = {
                "first": log_odds(first.get(chunk_id, UNSEEN)),
                "hop": log_odds(hops.get(chunk_id, UNSEEN)),
                "front": float(document_id(chunk_id) in front),
            }
            rows.append({"signals": signals, "right": document_id(chunk_id) in gold})
    return rows


def walk_through(base: KnowledgeBase, question: str) -> Walk:
    """Return the walk of a question before sub-questions are asked."""
    walk = Walk(question, base)
    walk.step()
    return walk


def measure(questions: Questions) -> str:
    """Return R@5 / all@5 in percent and the number of questions."""
    if not questions:
        return f"{'-':>20}"
    values = []
    for base, row, gold in questions:
        tool_input = read_input(TOOL, {"query": row["question"], "top_k": TOP})
        values.append(
            worth(ranking(asyncio.run(TOOL(tool_input, base, StepLog())).results), gold)[1:]
        )
    recall, every = 100 * np.mean(values, axis=0)
    return f"{f'{recall:.1f} / {every:.1f} ({len(values)})':>20}"


if __name__ == "__main__":
    main()
