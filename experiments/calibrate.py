"""Fit the tools' calibration on public labelled questions, and show how far their probabilities can be believed.

    python experiments/calibrate.py DATA [--fit] [--questions 150] [--embeddings use]

DATA is a folder with ``cmrc``, ``xquad``, ``hotpot``, ``2wiki`` and ``metaqa``, each with ``questions.jsonl``; a set that
is not there is skipped, and that is said. They are for measuring and are not shipped. Half of the questions (by a hash of
their id) fit, the other half measure. One question in five is asked of a corpus that it does not belong to: all that is
found for it is wrong. Without ``--fit`` the constants of ``workbench/tools/calibration.py`` are measured as they are.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from workbench.knowledge.library import Library

from workbench.settings import Settings
from workbench.tools.calibration import MODELS, Logistic
from workbench.tools.registry import StepLog, ToolRegistry

TOOLS = ("keyword_search", "naive_search", "local_search", "hybrid_search")
DOWNWARDS = ("missing",)  # the signals that speak against a passage; all others speak for it
FILMS = Path(__file__).parent.parent / "data" / "films.jsonl"
TOP = 20


@dataclass
class Asked:
    """A question, the documents that answer it (none when it does not belong to the corpus)."""

    id: str
    text: str
    gold: frozenset[str]


@dataclass
class Corpus:
    """A corpus as files, and the questions asked of it."""

    name: str
    paths: list[Path]
    questions: list[Asked] = field(default_factory=list)


def main() -> None:
    """Measure, and fit when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--questions", type=int, default=150, help="of each corpus, at most")
    parser.add_argument("--embeddings", default="use")
    parser.add_argument("--work", type=Path, help="where to keep the indexes between runs; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        corpora = list(load(options.data, folder, options.questions))
        settings = Settings.load(embedding_model=options.embeddings, names="rules")
        library = Library(folder / f"kb-{options.embeddings}", settings)
        rows = [row for corpus in corpora for row in observe(corpus, library)]
    for tool in TOOLS:
        mine = [row for row in rows if row["tool"] == tool]
        model = fit([r for r in mine if r["fits"]], list(MODELS[tool].weights)) if options.fit else MODELS[tool]
        measured = [row for row in mine if not row["fits"]]
        sys.stdout.write(report(tool, model, measured) if measured else f"\n{tool}: nothing to measure\n")


def load(data: Path, folder: Path, limit: int) -> Iterator[Corpus]:
    """Every corpus that is there, with its own questions and, one in five, those of another."""
    known = [
        _films(data),
        _simple(data, "cmrc"),
        *_xquad(data, folder),
        _simple(data, "hotpot"),
        _simple(data, "2wiki"),
    ]
    corpora = [corpus for corpus in known if corpus.questions]
    for corpus in corpora:
        corpus.questions = _some(corpus.questions, limit)
    for place, corpus in enumerate(corpora):
        other = next((c for c in corpora[place + 2 :] + corpora if c.name[:5] != corpus.name[:5]), None)
        strangers = _some(other.questions, limit // 4) if other else []
        corpus.questions += [Asked(f"{corpus.name}/{q.id}", q.text, frozenset()) for q in strangers]
        yield corpus


def _films(data: Path) -> Corpus:
    """The films that are shipped, asked MetaQA's one-hop questions about films that are among them."""
    titles: dict[str, list[str]] = {}
    for film in _lines(FILMS):
        titles.setdefault(film["title"], []).append(film["id"])
    questions = []
    for q in _questions(data, "metaqa"):
        named = [q["topic_entity"]] if q["hops"] == 1 and not q["path"][0].startswith("~") else q["answers"]
        gold = frozenset(i for title in named for i in titles.get(title, []))
        if q["hops"] == 1 and gold:
            questions.append(Asked(q["id"], q["question"], gold))
    return Corpus("films", [FILMS], questions)


def _simple(data: Path, name: str) -> Corpus:
    questions = [Asked(q["id"], q["question"], frozenset(q["gold"])) for q in _questions(data, name)]
    return Corpus(name, [data / name / "corpus.jsonl.gz"], questions)


def _xquad(data: Path, folder: Path) -> Iterator[Corpus]:
    """One corpus a language, each asked in both."""
    asked = _questions(data, "xquad")
    for language in ("en", "zh") if asked else ():
        path = folder / f"xquad-{language}.jsonl"
        passages = [p for p in _lines(data / "xquad" / "corpus.jsonl.gz") if p["lang"] == language]
        path.write_text(
            "".join(json.dumps({"id": p["id"], "text": p["text"]}, ensure_ascii=False) + "\n" for p in passages)
        )
        questions = [Asked(q["id"], q["question"], frozenset(q[f"gold_{language}"])) for q in asked]
        yield Corpus(f"xquad-{language}", [path], questions)


def observe(corpus: Corpus, library: Library) -> Iterator[dict[str, Any]]:
    """What every tool finds for every question: signals, and whether it was right."""
    library.add(corpus.name, corpus.paths)
    knowledge, registry = library.get(corpus.name), ToolRegistry()
    for question in corpus.questions:
        for name in TOOLS:
            tool = registry[name]
            output = tool.function(tool.input_schema(query=question.text, top_k=TOP), knowledge, StepLog())
            found = [r for r in output.results if r["source_type"] == "chunk"]
            for rank, result in enumerate(found):
                yield {
                    "corpus": corpus.name if question.gold else "(off-corpus)",
                    "tool": name,
                    "question": question.id,
                    "fits": _half(question.id),
                    "rank": rank,
                    "signals": result["metadata"]["signals"],
                    "right": result["metadata"]["doc_id"] in question.gold,
                }


def fit(rows: Sequence[dict[str, Any]], signals: Sequence[str], ridge: float = 1e-3) -> Logistic:
    """Logistic regression by projected gradient: a weight never gets the sign that its signal must not have."""
    x = np.array([[row["signals"].get(name, 0.0) for name in signals] for row in rows])
    y = np.array([row["right"] for row in rows], float)
    down = np.array([name in DOWNWARDS for name in signals])
    weights, bias = np.zeros(len(signals)), 0.0
    step = 4.0 / (1 + (x**2).sum(1).mean())
    for _ in range(20_000):
        error = 1 / (1 + np.exp(-(x @ weights + bias))) - y
        weights -= step * (x.T @ error / len(y) + ridge * weights)
        weights = np.where(down, np.minimum(weights, 0), np.maximum(weights, 0))
        bias -= step * error.mean()
    return Logistic(round(bias, 2), {n: round(float(w), 2) for n, w in zip(signals, weights, strict=True)})


def report(tool: str, model: Logistic, rows: Sequence[dict[str, Any]]) -> str:
    """The model, its bins and errors beside min-max scaling, and what the best result of a question scores."""
    ours = np.array([model(row["signals"]) for row in rows])
    plain = min_max(rows, ours)
    right = np.array([row["right"] for row in rows], float)
    edges = [low / 10 for low in range(10)]
    inside = [(ours >= low) & (ours < low + 0.1) for low in edges]
    lines = [
        f"\n{tool}: Logistic({model.bias}, {dict(model.weights)})",
        f"  {len(rows)} results, {right.mean():.3f} right; {_errors(ours, right)}",
        f"  min-max a question instead: {_errors(plain, right)}",
        "  said      " + " ".join(f"{low:5.1f}" for low in edges),
        "  was right " + " ".join(f"{right[i].mean():5.2f}" if i.any() else "    -" for i in inside),
        "  results   " + " ".join(f"{i.sum():5d}" for i in inside),
        "  corpus         questions  top right  top score 10%/50%/90%   over .5",
    ]
    for corpus in sorted({row["corpus"] for row in rows}):
        best = _best(rows, ours, corpus)
        scores, hits = np.array([score for score, _ in best]), np.mean([hit for _, hit in best])
        low, mid, high = np.quantile(scores, [0.1, 0.5, 0.9])
        over = (scores > 0.5).mean()
        lines.append(
            f"  {corpus:14} {len(best):9d}  {hits:9.2f}       {low:.2f}/{mid:.2f}/{high:.2f}          {over:.2f}"
        )
    return "\n".join(lines) + "\n"


def _errors(said: np.ndarray, right: np.ndarray) -> str:
    return f"ECE {ece(said, right):.3f}, Brier {((said - right) ** 2).mean():.3f}"


def ece(said: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: the distance of what was said and what was, averaged over equally wide bins.

    >>> ece(np.array([0.95, 0.95, 0.05]), np.array([1.0, 1.0, 0.0]))
    0.05
    """
    place = np.minimum((said * bins).astype(int), bins - 1)
    inside = [place == b for b in range(bins) if (place == b).any()]
    return round(float(sum(abs(said[i].mean() - right[i].mean()) * i.mean() for i in inside)), 4)


def min_max(rows: Sequence[dict[str, Any]], raw: np.ndarray) -> np.ndarray:
    """What is often done instead: the best of each question is 1, the worst 0."""
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row["question"], []).append(place)
    scaled = np.zeros(len(rows))
    for places in groups.values():
        values = raw[places]
        spread = values.max() - values.min()
        scaled[places] = (values - values.min()) / spread if spread else 1.0
    return scaled


def _best(rows: Sequence[dict[str, Any]], said: np.ndarray, corpus: str) -> list[tuple[float, bool]]:
    best: dict[str, tuple[float, bool]] = {}
    for row, score in zip(rows, said, strict=True):
        if row["corpus"] == corpus and score > best.get(row["question"], (-1.0, False))[0]:
            best[row["question"]] = (float(score), row["right"])
    return list(best.values())


def _questions(data: Path, name: str) -> list[dict[str, Any]]:
    path = data / name / "questions.jsonl"
    if not path.exists():
        sys.stderr.write(f"skipped: there is no {path}\n")
        return []
    return list(_lines(path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    yield from (json.loads(line) for line in text.split("\n") if line.strip())


def _some(questions: Iterable[Asked], limit: int) -> list[Asked]:
    return sorted(questions, key=lambda q: _hash(q.id))[:limit]


def _half(question_id: str) -> bool:
    return _hash(f"half {question_id}")[-1] in "02468ace"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
