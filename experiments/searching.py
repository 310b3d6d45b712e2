"""Choose the weights by which ``hybrid_search`` orders what it finds, and cross-validate the choice over sets.

    python experiments/searching.py WORKSPACE DATA [--limit 400]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``, and the set of the
films' texts in it); a set that is not there is skipped. Every question is asked once, the rest is arithmetic: from the
weights as they are, the one that gains most at another multiple moves, until none gains ``GAIN``. What is gained is the
sum of R@1, R@2 and R@5 over the sets, each counting the same. That is done once without each set, which is ranked with
the weights found (``left out``; the two directions of XQuAD are left out together); then with all. How probable it is
what it finds, ``calibrate.py`` fits. MuSiQue is not in it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from merging import given, in_percent, ranking, sets_there

from workbench.parts.evaluate.questions import distinct, gold_ids
from workbench.parts.evaluate.retrieval import run_tool
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench
from workbench.tools.scoring import ORDER

TOOL, BESIDE = "hybrid_search", "keyword_search"
NAMES = tuple(ORDER)
MULTIPLES = (0.5, 0.7, 1.4, 2.0)
GAIN = 1.0
"""What a weight has to gain to move: less is the noise of a question or two."""
FIRST = (1, 2, 5)
WIDE = 30


class Question(NamedTuple):
    """What was found for one question.

    Attributes:
        seen: passages x signals, in the order of ``NAMES``.
        documents: of each passage.
        gold: the right documents.
        beside: how ``BESIDE`` ranks the documents.
    """

    seen: np.ndarray
    documents: list[str]
    gold: frozenset[str]
    beside: list[str]


def main() -> None:
    """Ask, choose, and print."""
    options = given(__doc__, 400)
    asked = {}
    with Workbench.open(options.workspace) as wb:
        for name, rows, gold in sets_there(wb, options.workspace, options.data, options.limit):
            asked[name] = list(observe(wb.ports(), wb.knowledge.get(name), rows, gold))
    sys.stdout.write(report({name: questions for name, questions in asked.items() if questions}))


def observe(
    context: Context, base: KnowledgeBase, rows: Sequence[dict[str, object]], gold: str
) -> Iterator[Question]:
    """What the search sees of the passages that it finds for each question."""
    for row in rows:
        found, beside = (
            asyncio.run(run_tool(context.tools[name], str(row["question"]), base, context))[:WIDE]
            for name in (TOOL, BESIDE)
        )
        seen = np.array(
            [[result["metadata"]["signals"].get(name, 0.0) for name in NAMES] for result in found]
        )
        documents = [str(result["metadata"]["doc_id"]) for result in found]
        if found:
            yield Question(seen, documents, frozenset(gold_ids(row, gold)), ranking(beside))


def worth(documents: Sequence[str], gold: frozenset[str]) -> list[float]:
    """The recall among the first 1, 2 and 5.

    >>> worth(["a", "c", "b"], frozenset("ab"))
    [0.5, 0.5, 1.0]
    """
    return [len(gold & set(documents[:k])) / len(gold) for k in FIRST]


def ranked(question: Question, weights: np.ndarray) -> list[str]:
    """The documents as the search ranks them with these weights."""
    best = np.argsort(-np.round(question.seen @ weights, 9), kind="stable")
    return distinct(question.documents[place] for place in best)


def judged(questions: Sequence[Question], weights: np.ndarray) -> np.ndarray:
    """The mean of ``worth`` in percent."""
    return 100 * np.mean(
        [worth(ranked(question, weights), question.gold) for question in questions], axis=0
    )


def chosen_weights(asked: Mapping[str, Sequence[Question]], weights: np.ndarray) -> np.ndarray:
    """The weights from which no multiple of a single one gains ``GAIN``."""

    def total(tried: np.ndarray) -> float:
        return round(
            float(sum(judged(questions, tried).sum() for questions in asked.values())), 6
        )

    best = total(weights)
    while True:
        near = [
            _moved(weights, place, multiple)
            for place in range(len(NAMES))
            for multiple in MULTIPLES
        ]
        gained, tried = max(((total(one), one) for one in near), key=lambda pair: pair[0])
        if gained < best + GAIN:
            return weights
        best = gained
        weights = tried


def _moved(weights: np.ndarray, place: int, multiple: float) -> np.ndarray:
    moved = weights.copy()
    moved[place] = round(float(moved[place]) * multiple, 2)
    return moved


def report(asked: Mapping[str, Sequence[Question]]) -> str:
    """Each set by the search of words, as the weights are now, chosen on the other sets, chosen on all."""
    now = np.array([ORDER[name] for name in NAMES])
    of_all = chosen_weights(asked, now)
    lines = [f"R@1 / R@2 / R@5   {BESIDE}      now                 left out            of all"]
    for name, questions in asked.items():
        beside = 100 * np.mean(
            [worth(question.beside, question.gold) for question in questions], axis=0
        )
        others = {
            other: q for other, q in asked.items() if other.split("_")[0] != name.split("_")[0]
        }
        told = [beside, judged(questions, now)]
        told += [judged(questions, weights) for weights in (chosen_weights(others, now), of_all)]
        lines.append(f"{name:10} {len(questions):4}  " + "".join(map(in_percent, told)))
    weights = {name: round(float(w), 2) for name, w in zip(NAMES, of_all, strict=True)}
    return "\n".join([*lines, f"{TOOL}: {weights}"]) + "\n"


if __name__ == "__main__":
    main()
