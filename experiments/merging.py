"""Fit what the merge believes of a search and a chain (``parts/chains/merging.py``), and cross-validate it over sets.

    python experiments/merging.py WORKSPACE DATA [--limit 150]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``, and the set of the
films' texts in it); a set that is not there is skipped. Every question is planned and its first pass is run once; the
rest is arithmetic. Those that are planned otherwise than with a search and a chain are left out. The ratios of the
weights are those of a grid with which the rankings are best: the sum of R@1, R@5 and all@5, each set counting the same.
They are fitted once for each set on all others, and the set that was left out is ranked with them (``left out``); then
on all. Scale and bias are those with which the scores are probabilities: fitted on half of the questions, the errors
are of the other half. MuSiQue is not in the grid.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from calibrate import _half, ece, fit

from workbench.graphs.route import make_worker_name, read_question
from workbench.parts.chains.merging import CHAIN, SEARCH, merge_signals
from workbench.parts.evaluate.questions import choose, distinct, gold_ids, read_rows
from workbench.parts.evaluate.retrieval import run_tool
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench
from workbench.state import RouteDecision
from workbench.tools.scoring import MODELS, Logistic
from workbench.tools.tool import StepLog, read_input

TEXTS = "film_texts"
MODEL = "merge"
NAMES = tuple(MODELS[MODEL].weights)
GRID: Mapping[str, Sequence[float]] = {
    "search": (1.0,),
    "search_led": (0.0, 0.1, 0.2, 0.3),
    "chain_led": (0.7, 0.85, 1.0, 1.2),
    "first": (0.15, 0.3, 0.45),
}
ALONE = ("keyword_search", SEARCH, CHAIN)
SETS: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "2wiki": ("2wiki", {}, "gold"),
    "hotpot": ("hotpot", {}, "gold"),
    "cmrc": ("cmrc", {}, "gold"),
    "drcd": ("drcd", {}, "gold"),
    "lihua": ("lihua", {}, "gold"),
    "xquad_en": ("xquad", {"lang": "zh"}, "gold_en"),
    "xquad_zh": ("xquad", {"lang": "en"}, "gold_zh"),
}
"""Base -> folder, which of its questions, and the field with the gold documents. MuSiQue is not among them."""


class Question(NamedTuple):
    """What the first pass found for one question: a line of signals a passage, whose it is, and what tools find alone.

    Attributes:
        id: of the question.
        seen: passages x signals, in the order of ``NAMES``.
        documents: of each passage.
        gold: the right documents.
        alone: the ranking of each tool.
    """

    id: str
    seen: np.ndarray
    documents: list[str]
    gold: frozenset[str]
    alone: Mapping[str, list[str]]


def given(what: str | None, limit: int) -> argparse.Namespace:
    """The workspace, the folder of the question sets, and how many questions of each are asked, as they were given."""
    parser = argparse.ArgumentParser(
        description=what, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workspace", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=limit, help="questions of each set, at most")
    return parser.parse_args()


def main() -> None:
    """Ask, fit, and print."""
    options = given(__doc__, 150)
    asked = {}
    with Workbench.open(options.workspace) as wb:
        for name, rows, gold in sets_there(wb, options.workspace, options.data, options.limit):
            asked[name] = list(observe(wb, name, rows, gold))
    sys.stdout.write(report({name: questions for name, questions in asked.items() if questions}))


def sets_there(
    wb: Workbench, workspace: Path, data: Path, limit: int
) -> Iterator[tuple[str, list[dict[str, Any]], str]]:
    """Base, questions and the field with their gold documents of each set that is there; the others are told."""
    for name, (folder, where, gold) in {**SETS, TEXTS: (TEXTS, {}, "gold")}.items():
        path = (workspace if name == TEXTS else data) / folder / "questions.jsonl"
        if name in wb.knowledge.names() and path.exists():
            yield name, list(choose(read_rows(path, "id", "question"), where, limit)), gold
        else:
            sys.stderr.write(f"skipped: {name}\n")


def observe(
    wb: Workbench, kb: str, rows: Sequence[dict[str, Any]], gold: str
) -> Iterator[Question]:
    """The first pass over every question whose plan has a search and a chain, and the tools alone."""
    base = wb.knowledge.get(kb)
    context = wb.ports()
    base.warm()
    for row in rows:
        question = row["question"]
        found = asyncio.run(first_pass(question, base, context))
        alone = {
            name: ranking(asyncio.run(run_tool(context.tools[name], question, base, context)))
            for name in ALONE
        }
        documents = {
            result["source_id"]: result["metadata"]["doc_id"]
            for results in found
            for result in results
        }
        signals = {
            one[0]: seen
            for one, seen in merge_signals(dict(zip("abcdefgh", found, strict=False))).items()
        }
        if not signals:
            continue
        ids = sorted(signals)
        seen = np.array([[signals[i][name] for name in NAMES] for i in ids])
        yield Question(
            row["id"], seen, [documents[i] for i in ids], frozenset(gold_ids(row, gold)), alone
        )


async def first_pass(
    question: str, base: KnowledgeBase, context: Context
) -> list[Sequence[dict[str, Any]]]:
    """What the searches and chains of the plan find that run whatever the others find."""
    decision = RouteDecision(
        requested_kb_prefix=base.name,
        routed_kb_prefix=base.name,
        kb_prefix=base.name,
        confidence=1.0,
        method="override",
        reason="measured",
        worker_name=make_worker_name(base.name, "fusion_agent"),
        **read_question(question, [base]),
    )
    plan = await context.planner(question, decision, [base], context.tools)
    found = []
    for step in plan.steps:
        if step.tool in (SEARCH, CHAIN) and step.condition == "always":
            tool = context.tools[step.tool]
            given = read_input(tool, {**step.tool_input, "top_k": step.budget.top_k})
            found.append((await tool(given, base, StepLog())).results)
    return found


def ranking(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The documents, best first."""
    return distinct(str(result["metadata"].get("doc_id") or "") for result in results)


def worth(documents: Sequence[str], gold: frozenset[str]) -> tuple[float, float, float]:
    """R@1, R@5 and all@5.

    >>> worth(["a", "c", "b"], frozenset("ab"))
    (0.5, 1.0, 1.0)
    """
    five = gold & set(documents[:5])
    return len(gold & set(documents[:1])) / len(gold), len(five) / len(gold), float(five == gold)


def ranked(question: Question, weights: np.ndarray) -> list[str]:
    """The documents as the merge ranks them with these weights."""
    best = np.argsort(-np.round(question.seen @ weights, 6), kind="stable")
    return distinct(question.documents[place] for place in best[:40])


def judged(questions: Sequence[Question], weights: np.ndarray) -> np.ndarray:
    """The mean of ``worth`` in percent."""
    return 100 * np.mean(
        [worth(ranked(question, weights), question.gold) for question in questions], axis=0
    )


def report(asked: Mapping[str, Sequence[Question]]) -> str:
    """Each set by its best tool alone, as the merge is now, fitted on the others, fitted on all; and the model."""
    grid = np.array(list(product(*(GRID[name] for name in NAMES))))
    by_set = {
        name: np.array([judged(questions, w) for w in grid]) for name, questions in asked.items()
    }

    def best(names: Sequence[str]) -> int:
        return int(np.argmax(np.round(sum(by_set[name].sum(1) for name in names), 6)))

    now = np.array([MODELS[MODEL].weights[name] for name in NAMES])
    chosen_of_all = best(list(asked))
    lines = [
        "R@1 / R@5 / all@5  best tool alone                     now                 left out            of all"
    ]
    for name, questions in asked.items():
        tools = {
            t: np.mean([worth(q.alone[t], q.gold) for q in questions], axis=0) * 100
            for t in ALONE
        }
        first = max(tools, key=lambda tool: (tools[tool][1], tools[tool][0]))
        apart = by_set[name][best([other for other in asked if other != name])]
        told = [judged(questions, now), apart, by_set[name][chosen_of_all]]
        lines.append(
            f"{name:10} {len(questions):4}  {in_percent(tools[first])} {first:18}"
            + "".join(map(in_percent, told))
        )
    model, errors = calibrated(asked, grid[chosen_of_all], now)
    return (
        "\n".join([*lines, f"{MODEL}: Logistic({model.bias}, {dict(model.weights)})", errors])
        + "\n"
    )


def calibrated(
    asked: Mapping[str, Sequence[Question]], ratios: np.ndarray, now: np.ndarray
) -> tuple[Logistic, str]:
    """The scale and bias of weights in these ratios, and the errors on the half that no fit saw, before and after."""
    rows = [
        {
            "signals": {"all": float(seen @ ratios)},
            "seen": seen,
            "right": of in q.gold,
            "fits": _half(q.id),
        }
        for questions in asked.values()
        for q in questions
        for seen, of in zip(q.seen, q.documents, strict=True)
    ]
    one = fit([row for row in rows if row["fits"]], ["all"])
    weights = {
        name: round(one.weights["all"] * float(w), 2)
        for name, w in zip(NAMES, ratios, strict=True)
    }
    model = Logistic(one.bias, weights)
    rest = [row for row in rows if not row["fits"]]
    right = np.array([row["right"] for row in rest], float)
    said = {"before": MODELS[MODEL], "after": model}
    errors = [
        f"{when} {ece(np.array([by(dict(zip(NAMES, row['seen'], strict=True))) for row in rest]), right):.4f}"
        for when, by in said.items()
    ]
    return model, f"ECE of {len(rest)} passages: {', '.join(errors)}"


def in_percent(values: np.ndarray) -> str:
    """The three figures of a set, side by side."""
    return f"{values[0]:5.1f} /{values[1]:5.1f} /{values[2]:5.1f} "


if __name__ == "__main__":
    main()
