"""Fit how the turns of a conversation are ranked (``memory/ranking.py``), and report on what was not fitted on.

    python -m experiments.remembering DATA [--blind data/blind/memory] [--ridge 0.001]

DATA holds ``locomo`` (``turns.jsonl.gz``, ``questions.jsonl``) and ``lihua`` (``sessions.jsonl.gz`` and the same).
Printed are R@k in percent beside BM25. A conversation of LoCoMo is measured by weights of all others; LiHua, which is a
single one, by weights of LoCoMo alone and, as if more were asked of a conversation that is known, by fifths of its
questions; the frozen conversations of ``--blind`` by those of LoCoMo and LiHua, which are printed last and shipped: for
words alone, with vectors of turns, and with vectors of words too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.recalling import index, read_conversations
from workbench.models.embeddings import text_model
from workbench.parts.evaluate.questions import read_rows
from workbench.settings import Settings

SETS = {
    "words": ("cosine", "near", "word", "word_before"),
    "vectors": ("word", "word_before"),
    "nearest": (),
}
"""Signals that each set of weights does without."""
STEPS = 25
CUTS = (5, 10, 25)


class Asked(NamedTuple):
    """One question: its conversation, its signals ``(turns, signals)``, the unit of each turn, and the gold units.

    A unit is what a gold id names, a turn or a session; ``sessions`` are those of the turns.
    """

    conv: str
    kind: str
    signals: np.ndarray
    units: np.ndarray
    gold: np.ndarray
    sessions: np.ndarray
    keywords: np.ndarray


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
        named = {
            one: n
            for n, one in enumerate(
                dict.fromkeys(ids if by_turn else map(talk.session_of.get, ids))
            )
        }
        units = np.array([named[one if by_turn else talk.session_of[one]] for one in ids])
        sessions = np.unique([talk.session_of[one] for one in ids], return_inverse=True)[1]
        gold = np.array([named[one] for one in dict.fromkeys(row["gold"])])
        matrix = np.stack([values[name] for name in names], 1).astype(np.float32)
        kind = str(row.get("type", ""))
        found.append(
            Asked(conv, kind, matrix, units, gold, sessions, talk.turns.keywords(row["question"]))
        )
    return found


def fitted(rows: Sequence[Asked], used: np.ndarray, ridge: float) -> np.ndarray:
    """The weights with which gold turns are likeliest, by Newton's method; signals that are not used weigh nothing.

    A conditional logit: each gold turn against all that are none, every question counting alike. Of a gold session
    stands the turn that is best by the weights so far, and so of every other.
    """
    weights = used.astype(float)
    for _ in range(STEPS):
        slope = ridge * weights
        bend = ridge * np.eye(len(used))
        for row in rows:
            best = row.signals[_best(row.units, row.signals @ weights)] * used
            scores = best @ weights
            shares = np.exp(scores - scores.max())
            for one in row.gold:
                against = np.where(np.isin(np.arange(len(shares)), row.gold), 0.0, shares)
                against[one] = shares[one]
                against /= against.sum()
                mean = against @ best
                parts = len(row.gold) * len(rows)
                slope += (mean - best[one]) / parts
                bend += ((best.T * against) @ best - np.outer(mean, mean)) / parts
        step = np.linalg.solve(bend, slope) * used
        weights -= step * min(1.0, 2 / (np.abs(step).max() + 1e-12))
        if np.abs(step).max() < 1e-3:
            break
    return weights


def _best(units: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Of each unit the row of its best turn."""
    ranked = np.argsort(scores, kind="stable")
    found = np.zeros(units.max() + 1, int)
    found[units[ranked]] = ranked
    return found


def recalls(row: Asked, scores: np.ndarray, level: str = "units") -> list[float]:
    """R@k of one question over ``units`` or ``sessions``."""
    of = row.units if level == "units" else row.sessions
    ranked = list(dict.fromkeys(of[np.argsort(-scores.round(6), kind="stable")].tolist()))
    wanted = set(of[np.isin(row.units, row.gold)].tolist())
    return [100 * len(wanted & set(ranked[:k])) / len(wanted) for k in CUTS]


def report(
    name: str, rows: Sequence[Asked], scores: Sequence[np.ndarray], level: str = "units"
) -> None:
    """Means over questions, of all and by kind, with an interval over conversations where there are several."""
    values = np.array(
        [recalls(row, found, level) for row, found in zip(rows, scores, strict=True)]
    )
    convs = sorted({row.conv for row in rows})
    place = {conv: [n for n, row in enumerate(rows) if row.conv == conv] for conv in convs}
    drawn = np.random.default_rng(0)
    picks = [
        [i for conv in drawn.choice(convs, len(convs)) for i in place[conv]] for _ in range(500)
    ]
    spread = np.percentile([values[pick].mean(0) for pick in picks], [2.5, 97.5], 0).T
    told = [f"[{low:.0f}, {high:.0f}]" if len(convs) > 1 else "" for low, high in spread]
    cells = "  ".join(
        f"R@{k} {m:5.1f} {t:<9}" for k, m, t in zip(CUTS, values.mean(0), told, strict=True)
    )
    sys.stdout.write(f"{name:<42}{len(rows):>6}  {cells}\n")
    for kind in sorted({row.kind for row in rows} - {""}) if name.endswith("nearest") else ():
        some = [n for n, row in enumerate(rows) if row.kind == kind]
        cells = "  ".join(f"{m:9.1f}" + " " * 10 for m in values[some].mean(0))
        sys.stdout.write(f"    {kind:<38}{len(some):>6}  {cells.rstrip()}\n")
    sys.stdout.flush()


def main() -> None:
    """Fit, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--blind", type=Path)
    parser.add_argument("--ridge", type=float, default=0.001)
    args = parser.parse_args()
    names: list[str] = []
    sets = [(args.data / "locomo", "turns.jsonl.gz"), (args.data / "lihua", "sessions.jsonl.gz")]
    locomo, lihua = (
        asked(folder / file, folder / "questions.jsonl", names) for folder, file in sets
    )
    frozen = (
        [folder for folder in sorted(args.blind.iterdir()) if (folder / "turns.jsonl").exists()]
        if args.blind
        else []
    )
    blind = [
        row
        for one in frozen
        for row in asked(one / "turns.jsonl", one / "questions.jsonl", names)
    ]
    for name, rows in {"locomo": locomo, "lihua": lihua, "blind": blind}.items():
        if rows:
            report(f"{name}: BM25", rows, [row.keywords for row in rows])
    report("locomo, sessions: BM25", locomo, [row.keywords for row in locomo], "sessions")
    shipped = {}
    for way, without in SETS.items():
        used = np.array([float(name not in without) for name in names])

        def scores(
            rows: Sequence[Asked], of: Sequence[Asked], used: np.ndarray = used
        ) -> list[np.ndarray]:
            weights = fitted(of, used, args.ridge)
            return [row.signals @ weights for row in rows]

        kept = {
            conv: [row for row in locomo if row.conv == conv]
            for conv in sorted({row.conv for row in locomo})
        }
        left = [
            scores(rows, [r for r in locomo if r.conv != conv] + lihua)
            for conv, rows in kept.items()
        ]
        ordered = [row for rows in kept.values() for row in rows]
        found = [one for some in left for one in some]
        report(f"locomo, conversation left out: {way}", ordered, found)
        report(f"locomo, sessions, left out: {way}", ordered, found, "sessions")
        report(f"lihua, by weights of locomo: {way}", lihua, scores(lihua, locomo))
        fifths = [
            (lihua[n::5], locomo + [row for i, row in enumerate(lihua) if i % 5 != n])
            for n in range(5)
        ]
        report(
            f"lihua, fifths left out: {way}",
            [row for rows, _ in fifths for row in rows],
            [one for rows, rest in fifths for one in scores(rows, rest)],
        )
        if blind:
            report(f"blind, never fitted: {way}", blind, scores(blind, locomo + lihua))
        weights = fitted(locomo + lihua, used, args.ridge)
        shipped[way] = {
            n: round(float(w), 2)
            for n, w in sorted(zip(names, weights, strict=True))
            if abs(w) >= 0.005
        }
    sys.stdout.write(f"{shipped}\n")


if __name__ == "__main__":
    main()
