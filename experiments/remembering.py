"""Fit how the turns of a conversation are ranked (``memory/ranking.py``), and report on what was not fitted on.

    python experiments/remembering.py DATA [--blind data/blind/memory]

DATA holds ``locomo`` (``turns.jsonl.gz``, ``questions.jsonl``) and, if there, ``lihua`` (``sessions.jsonl.gz``). For
each question the log-probability of its gold turns under a softmax over all turns is raised, with a ridge. LoCoMo is
reported with each conversation left out of the fit in turn; LiHua and the frozen conversations of ``--blind`` are never
fitted on, and are reported with the weights of all of LoCoMo, which are the ones to ship. Printed are R@k in percent
beside BM25, and the weights: for words alone, with vectors of turns, and with vectors of words too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.evaluating.memory import index, read_conversations
from workbench.evaluating.rankings import read_rows
from workbench.models.embeddings import text_model
from workbench.settings import Settings

SETS = {"words": ("cosine", "near", "word", "word_before"), "vectors": ("word", "word_before"), "nearest": ()}
"""Signals that each set of weights does without."""
RIDGE, STEPS, RATE = 0.02, 250, 0.08
CUTS = (5, 10, 25)


class Asked(NamedTuple):
    """One question: its conversation, its signals ``(turns, signals)``, and for each gold id the turns that are it."""

    conv: str
    kind: str
    signals: np.ndarray
    gold: list[np.ndarray]
    keywords: np.ndarray
    unit: list[str]


def asked(conversations: Path, questions: Path, names: list[str]) -> list[Asked]:
    """Every question of a set with its signals."""
    model = text_model(Settings.load(embedding_model="use"))
    turns, by_turn = read_conversations(conversations)
    rows = [row for row in read_rows(questions, "id", "question") if row.get("gold")]
    talks = index(turns, model)
    found = []
    for row, vector in zip(rows, model.array([row["question"] for row in rows]), strict=True):
        conv = str(row.get("conv") or next(iter(turns)))
        talk = talks[conv]
        values = talk.turns.signals(row["question"], vector)
        names[:] = names or sorted(values)
        ids = [turn.id for turn in talk.turns.turns]
        unit = ids if by_turn else [talk.session_of[i] for i in ids]
        gold = [np.array([n for n, one in enumerate(unit) if one == wanted]) for wanted in row["gold"]]
        matrix = np.stack([values[name] for name in names], 1)
        kind = str(row.get("type", ""))
        found.append(Asked(conv, kind, matrix, gold, talk.turns.keywords(row["question"]), unit))
    return found


def fitted(rows: Sequence[Asked], used: np.ndarray) -> np.ndarray:
    """The weights with which gold turns are likeliest, by Adam; signals that are not used weigh nothing."""
    weights, first, second = (np.zeros(rows[0].signals.shape[1]) for _ in range(3))
    for step in range(1, STEPS + 1):
        slope = RIDGE * weights
        for row in rows:
            scores = row.signals @ weights
            spread = np.exp(scores - scores.max())
            told = spread / spread.sum() @ row.signals
            for places in row.gold:
                share = spread[places] / spread[places].sum()
                slope += (told - share @ row.signals[places]) / (len(row.gold) * len(rows))
        slope *= used
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return weights


def recalls(row: Asked, scores: np.ndarray) -> list[float]:
    """R@k of one question, over what a gold id names: a turn or a session."""
    ranked = list(dict.fromkeys(row.unit[n] for n in np.argsort(-scores.round(6), kind="stable")))
    wanted = {row.unit[places[0]] for places in row.gold}
    return [100 * len(wanted & set(ranked[:k])) / len(wanted) for k in CUTS]


def report(name: str, rows: Sequence[Asked], found: Iterable[list[float]]) -> None:
    """Means over questions, of all and by kind, with an interval over conversations where there are several."""
    values = np.array(list(found))
    convs = sorted({row.conv for row in rows})
    place = {conv: [n for n, row in enumerate(rows) if row.conv == conv] for conv in convs}
    drawn = np.random.default_rng(0)
    picks = [[i for conv in drawn.choice(convs, len(convs)) for i in place[conv]] for _ in range(500)]
    low, high = np.percentile([values[pick].mean(0) for pick in picks], [2.5, 97.5], 0)
    cells = "  ".join(
        f"R@{k} {m:5.1f} [{a:.0f}, {b:.0f}]" for k, m, a, b in zip(CUTS, values.mean(0), low, high, strict=True)
    )
    sys.stdout.write(f"{name:<34}{len(rows):>6}  {cells}\n")
    for kind in sorted({row.kind for row in rows} - {""}) if name.endswith("nearest") else ():
        some = [n for n, row in enumerate(rows) if row.kind == kind]
        cells = "  ".join(f"{m:5.1f}" for m in values[some].mean(0))
        sys.stdout.write(f"    {kind:<30}{len(some):>6}  {cells}\n")


def main() -> None:
    """Fit, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--blind", type=Path)
    args = parser.parse_args()
    names: list[str] = []
    locomo = asked(args.data / "locomo" / "turns.jsonl.gz", args.data / "locomo" / "questions.jsonl", names)
    others: dict[str, list[Asked]] = {}
    if (args.data / "lihua").exists():
        others["lihua"] = asked(
            args.data / "lihua" / "sessions.jsonl.gz", args.data / "lihua" / "questions.jsonl", names
        )
    for folder in sorted(args.blind.iterdir()) if args.blind else []:
        if (folder / "turns.jsonl").exists():
            others.setdefault("blind", []).extend(asked(folder / "turns.jsonl", folder / "questions.jsonl", names))
    for name, rows in {"locomo": locomo, **others}.items():
        report(f"{name}: BM25", rows, (recalls(row, row.keywords) for row in rows))
    shipped: dict[str, Mapping[str, float]] = {}
    for way, without in SETS.items():
        used = np.array([float(name not in without) for name in names])
        found: dict[int, list[float]] = {}
        for conv in sorted({row.conv for row in locomo}):
            weights = fitted([row for row in locomo if row.conv != conv], used)
            found |= {n: recalls(row, row.signals @ weights) for n, row in enumerate(locomo) if row.conv == conv}
        report(f"locomo, left out: {way}", locomo, (found[n] for n in range(len(locomo))))
        weights = fitted(locomo, used)
        for name, rows in others.items():
            report(f"{name}, never fitted: {way}", rows, (recalls(row, row.signals @ weights) for row in rows))
        shipped[way] = {n: round(float(w), 2) for n, w in zip(names, weights, strict=True) if abs(w) >= 0.005}
    told: Any = {way: dict(sorted(weights.items())) for way, weights in shipped.items()}
    sys.stdout.write(f"{told}\n")


if __name__ == "__main__":
    main()
