"""Fit the judgement of sentences on public questions with known answers, and show how far it can be believed.

    python experiments/judging.py DATA [--fit] [--questions 150]

DATA is a folder with ``cmrc``, ``drcd`` (Chinese), ``xquad`` (both languages) and ``hotpot`` (English), each with
``corpus.jsonl.gz`` and ``questions.jsonl``; they are for measuring and are not shipped. The best eight passages of a
``hybrid_search`` are judged, sentence by sentence; a sentence answers when it holds the answer and is in a gold
document. One question in four is asked of the corpus without its gold documents, which cannot answer it. Half of the
questions (by a hash of their id) fit, the other half measure: calibration, ranking (the share of questions whose surest
sentence answers), and what a threshold lets through (``Model.least`` is one). Beside it the baseline: the first one of
the best passage.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.evaluating.rankings import Narrowed
from workbench.knowledge.library import Library
from workbench.language import judging
from workbench.language.question import read
from workbench.settings import default_settings
from workbench.text import fold, language_of
from workbench.tools.registry import StepLog, ToolRegistry
from workbench.tools.tool import read_input

SETS = (
    ("cmrc", ""),
    ("drcd", ""),
    ("xquad", "en"),
    ("xquad", "zh"),
    ("xquad", "zh>en"),
    ("xquad", "en>zh"),
    ("hotpot", ""),
)
PASSAGES, TOP = 600, 8
SIGNALS: list[str] = []


def main() -> None:
    """Observe, fit when asked, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--fit", action="store_true", help="choose the weights anew, on the first half")
    parser.add_argument("--questions", type=int, default=150, help="of each set")
    args = parser.parse_args()
    rows = [row for name, lang in SETS for row in observed(args.data / name, lang, args.questions)]
    first, second = ([row for row in rows if row["first"] == half] for half in (True, False))
    if args.fit:
        for model in (judging.WORDS, judging.SENSE):
            SIGNALS[:] = [name for name in model.weights if name != "bias"]
            model.weights.update(fitted(first))
            sys.stdout.write(f"{model.weights}\n")
    for lang in ("en", "zh", "across"):
        told = report([row for row in second if row["lang"] == lang])
        sys.stdout.write(f"{lang} {told}\n")
    sys.stdout.write(f"all {report(second)}\n")


def observed(folder: Path, lang: str, most: int) -> Iterator[dict[str, Any]]:
    """One row a sentence."""
    lines = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    asked_in, _, lang = lang.partition(">") if ">" in lang else (lang, "", lang)
    answers = {q["id"]: q["answer"] for q in lines}
    questions = [q for q in lines if not asked_in or q["lang"] == asked_in]
    if asked_in != lang:  # the answer as the texts of the other language have it
        questions = [{**q, "answer": answers[f"{q['id'].partition('#')[0]}#{lang}"]} for q in questions]
    questions.sort(key=lambda q: hashlib.sha256(q["id"].encode()).hexdigest())
    questions = [q for q in questions if fold(q["answer"]) not in ("yes", "no")][:most]
    gold = {i for q in questions for i in _gold(q, lang)}
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        corpus = [json.loads(line) for line in file]
    corpus = [d for d in corpus if not lang or d["id"].startswith(lang)]
    kept = [d for d in corpus if d["id"] in gold] + [d for d in corpus if d["id"] not in gold][:PASSAGES]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "corpus.jsonl"
        path.write_text("\n".join(json.dumps(d, ensure_ascii=False) for d in kept), encoding="utf-8")
        library = Library(Path(temporary) / "kb", default_settings())
        library.add("set", [path])
        base = library.get("set")
        tool = ToolRegistry()["hybrid_search"]
        for place, question in enumerate(questions):
            without = place % 4 == 3
            golden = set(_gold(question, lang))
            asked = Narrowed(base, {d["id"] for d in kept} - golden) if without else base
            given = read_input(tool, {"query": question["question"], "top_k": TOP})
            results = [dict(r) for r in tool.function(given, asked, StepLog(_Clock())).model_dump()["results"]]
            first = int(hashlib.sha256(question["id"].encode()).hexdigest()[-1], 16) < 8
            reading = read(question["question"], [asked])
            for said, seen in judging.seen(
                reading, results, judging.weight_in([asked]), judging.sense_of(reading, results, [asked])
            ):
                right = said.doc_id in golden and fold(question["answer"]) in fold(said.text)
                yield {
                    "question": f"{folder.name}/{asked_in}>{lang}/{question['id']}",
                    "lang": "across" if asked_in != lang else language_of(question["question"]),
                    "first": first,
                    "signals": seen,
                    "right": right,
                    "can": not without,
                    "place": (said.n, said.place),
                }
        library.close()


def _gold(question: dict[str, Any], lang: str) -> list[str]:
    return question.get("gold") or question[f"gold_{lang}"]


class _Clock:
    def monotonic(self) -> float:
        """No time."""
        return 0.0


def fitted(rows: Sequence[dict[str, Any]], ridge: float = 1e-5) -> dict[str, float]:
    """Logistic regression by projected gradient: every signal speaks for a sentence."""
    x = np.array([[row["signals"].get(name, 0.0) for name in SIGNALS] for row in rows])
    y = np.array([row["right"] for row in rows], float)
    weights, bias = np.zeros(len(SIGNALS)), 0.0
    step = 4.0 / (1 + (x**2).sum(1).mean())
    for _ in range(12_000):
        error = 1 / (1 + np.exp(-(x @ weights + bias))) - y
        weights = np.maximum(0, weights - step * (x.T @ error / len(y) + ridge * weights))
        bias -= step * error.mean()
    return {"bias": round(bias, 2), **{n: round(float(w), 2) for n, w in zip(SIGNALS, weights, strict=True)}}


def report(rows: Sequence[dict[str, Any]]) -> str:
    """Calibration, ranking beside the baseline, and what each threshold lets through."""
    said = np.array([judging.probability(row["signals"]) for row in rows])
    right = np.array([row["right"] for row in rows], float)
    bins = np.minimum((said * 10).astype(int), 9)
    ece = sum(
        abs(said[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean()
        for b in range(10)
        if (bins == b).any()
    )
    by: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    for p, row in zip(said, rows, strict=True):
        by.setdefault(row["question"], []).append((p, row))
    can = [group for group in by.values() if group[0][1]["can"]]
    cannot = [group for group in by.values() if not group[0][1]["can"]]
    top = [max(group, key=lambda one: one[0]) for group in can]
    base = [min(group, key=lambda one: one[1]["place"]) for group in can]
    lines = [
        f"{len(by)} questions, {len(rows)} sentences; calibration error {ece:.4f}",
        f"  surest sentence answers {np.mean([r['right'] for _, r in top]):.3f}; "
        f"baseline {np.mean([r['right'] for _, r in base]):.3f}",
    ]
    for least in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5):
        kept = np.mean([p >= least for p, _ in top])
        wrong = np.mean([max(p for p, _ in group) >= least for group in cannot]) if cannot else float("nan")
        lines.append(f"  at {least}: {kept:.3f} of those with an answer, {wrong:.3f} of those without")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
