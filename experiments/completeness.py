"""Fit how likely it is that the first five passages lack one that is needed (``graphs/completeness.py``), and judge it.

    python experiments/completeness.py WORKSPACE DATA [--limit 150] [--reworded data/reworded]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``); a set that is not
there is skipped. Every question is asked with one pass. A pass is incomplete when a gold document is not among the
first five. Weights are fitted on half of the questions of every set (those whose ``sha256("half " + id)`` ends in an
even digit), each set counting the same, and reported on the other half, and on all of them by ten folds, each folded
question judged by weights that never saw it. ``--reworded`` asks the questions there too, which fit nothing.

AUC: how often an incomplete pass is called likelier to be incomplete than a complete one, with an interval over
resampled questions; 0.5 is chance. ``top score`` is the same for one minus the best score, the plain baseline.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from calibrate import _half, ece
from thresholds import SETS

from workbench.evaluating.rankings import WITHOUT, OneBase, changed, chosen, listed, order, read_rows
from workbench.evaluating.statistics import auc_interval
from workbench.graphs.agents import RetrieveAgent
from workbench.graphs.completeness import FIRST, MODEL, signals
from workbench.graphs.route import make_worker_name, read_question
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench
from workbench.tools.scoring import Logistic

ALL: Mapping[str, tuple[str, Mapping[str, str], str]] = {"musique": ("musique", {}, "gold"), **SETS}
SHRINK = 10.0
"""How strongly weights are held near 0."""
FOLDS = 10


class Pass(NamedTuple):
    """A first pass: what was seen of it, the best score, whether it lacks a document, and whether it may fit."""

    seen: list[float]
    top: float
    lacks: bool
    fits: bool


def main() -> None:
    """Ask, fit, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=150, help="questions of each set, at most")
    parser.add_argument("--reworded", type=Path, help="folder with questions in other words")
    options = parser.parse_args()
    asked: dict[str, list[Pass]] = {}
    with Workbench.open(options.workspace) as wb:
        context = changed(wb.ports(), WITHOUT["reflect"])
        for name, (folder, where, gold) in ALL.items():
            path = options.data / folder / "questions.jsonl"
            if name not in wb.knowledge.names() or not path.exists():
                sys.stderr.write(f"skipped: {name}\n")
                continue
            base = wb.knowledge.get(name)
            base.warm()
            rows = chosen(read_rows(path, "id", "question"), where, options.limit)
            asked[name] = list(passes(rows, "question", gold, base, context))
            other = options.reworded / f"{name}.jsonl" if options.reworded else None
            for language in ("en", "zh") if other and other.exists() else ():
                rows = read_rows(other, "id", language)
                told = f"{name}, reworded {language}"
                asked[told] = [one._replace(fits=False) for one in passes(rows, language, "gold", base, context)]
    sys.stdout.write(report(asked))


def passes(
    rows: Sequence[Mapping[str, Any]], asks: str, gold: str, base: KnowledgeBase, context: Context
) -> Iterator[Pass]:
    """One pass over each question."""
    agent = RetrieveAgent(
        make_worker_name(base.name, "fusion_agent"), replace(context, knowledge=OneBase(base)), _never
    )
    for row in rows:
        question = row[asks]
        results = asyncio.run(agent.aretrieve_with_trace(question, "measured"))["retrieval_results"]
        names = read_question(question, [base])["extracted_entities"]["low_level"]
        seen = signals(question, results, names, base)
        first = order(str(result["metadata"].get("doc_id") or "") for result in results)[:FIRST]
        top = max((result["score"] for result in results), default=0.0)
        yield Pass(list(seen.values()), top, not set(listed(row, gold)) <= set(first), _half(row["id"]))


def _never(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def fitted(sets: Sequence[Sequence[Pass]]) -> Logistic:
    """Ridge regression of the log odds, each set of questions counting the same (Newton's method)."""
    x = np.array([one.seen for group in sets for one in group])
    y = np.array([one.lacks for group in sets for one in group], float)
    share = np.array([len(y) / len(sets) / len(group) for group in sets for _ in group])
    middle, spread = x.mean(0), x.std(0) + 1e-9
    scaled = np.c_[np.ones(len(x)), (x - middle) / spread]
    ridge = np.diag([1e-6, *[SHRINK] * x.shape[1]])
    weights = np.zeros(scaled.shape[1])
    for _ in range(30):
        said = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (share * (said - y)) + ridge @ weights
        weights -= np.linalg.solve((scaled * (share * said * (1 - said))[:, None]).T @ scaled + ridge, slope)
    own = weights[1:] / spread
    names = signals("", [], [], _Nothing())
    rounded = {name: round(float(w), 2) for name, w in zip(names, own, strict=True)}
    return Logistic(round(float(weights[0] - own @ middle), 2), rounded)


class _Nothing:
    def matches(self, question: str, texts: Sequence[str]) -> tuple[list[float], list[list[float]]]:
        return [], []


def said_by(model: Logistic, group: Sequence[Pass]) -> np.ndarray:
    """The probabilities of these passes."""
    return np.array([model(dict(zip(model.weights, one.seen, strict=True))) for one in group])


def folded(asked: Mapping[str, Sequence[Pass]]) -> dict[str, np.ndarray]:
    """The probability of each pass by weights fitted without its fold."""
    dice = np.random.default_rng(1)
    fold = {name: dice.permutation(len(group)) % FOLDS for name, group in asked.items()}
    said = {name: np.zeros(len(group)) for name, group in asked.items()}
    for number in range(FOLDS):
        kept = [[one for one, f in zip(group, fold[name], strict=True) if f != number] for name, group in asked.items()]
        model = fitted(kept)
        for name, group in asked.items():
            out = fold[name] == number
            said[name][out] = said_by(model, [one for one, o in zip(group, out, strict=True) if o])
    return said


def interval(said: np.ndarray, lacks: np.ndarray) -> str:
    """The area under the curve, and its interval over resampled questions."""
    found = auc_interval(said, lacks)
    return "not tested" if found["auc"] is None else f"{found['auc']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def report(asked: Mapping[str, Sequence[Pass]]) -> str:
    """Each set: how much is incomplete, and the areas of the baseline, the package's weights and the fitted ones."""
    sets = {name: group for name, group in asked.items() if any(one.fits for one in group)}
    model, by_folds = fitted([[one for one in group if one.fits] for group in sets.values()]), folded(sets)
    lines = [
        f"{'set':24}{'asked':>6}{'lack':>6}  {'top score':20}{'in the package':20}{'fitted, other half':20}"
        f"{'ten folds':20}ECE, other half"
    ]
    for name, group in asked.items():
        rest = [one for one in group if not one.fits]
        lacks, other = np.array([one.lacks for one in group]), np.array([one.lacks for one in rest])
        now = interval(said_by(MODEL, rest), other) if MODEL.weights else "-"
        lines.append(
            f"{name:24}{len(group):>6}{lacks.sum():>6}  {interval(-np.array([one.top for one in rest]), other):20}"
            f"{now:20}{interval(said_by(model, rest), other):20}"
            f"{interval(by_folds[name], lacks) if name in by_folds else '-':20}{ece(said_by(model, rest), other):.3f}"
        )
    return "\n".join([*lines, f"Logistic({model.bias}, {dict(model.weights)})"]) + "\n"


if __name__ == "__main__":
    main()
