"""Fit the tools' calibration on public labelled questions, and show how far their probabilities can be believed.

    python experiments/calibrate.py DATA [--fit] [--questions 120] [--embeddings use hashing] [--tools NAME ...]
        [--plot FILE]

DATA is a folder with ``cmrc``, ``xquad``, ``hotpot``, ``2wiki`` and ``metaqa``, each with ``questions.jsonl``; a set
that is not there is skipped, and that is said. They are for measuring and are not shipped. Half of the questions (by a
hash of their id) fit, the other half measure. One question in three is asked of a corpus it does not belong to: what
is found for it is wrong. Likeness is judged by people's tags: two films are alike when they share a rare one.
Without ``--fit`` the constants of ``workbench/tools/scoring.py`` are measured as they are. ``merge`` weighs
the scores of other tools as they are: where those are fitted anew, it is fitted once more after them, by
``merging.py``. ``--plot`` writes the reliability diagram of all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from plotly.express import line

from workbench.knowledge.library import Library
from workbench.parts.evaluate.retrieval import reliability
from workbench.settings import Settings
from workbench.tools.registry import StepLog, ToolRegistry
from workbench.tools.scoring import MODELS, Logistic
from workbench.tools.tool import read_input

OTHERWISE = ("global_search", "merge")
"""Whose questions are of another kind, of likeness; and what ``merging.py`` fits."""
TOOLS = tuple(tool for tool in MODELS if tool not in OTHERWISE)
OURS = tuple(tool for tool in MODELS if tool != "merge")
RAW = {
    "keyword_search": "bm25",
    "naive_search": "cosine",
    "hybrid_search": "reranked",
    "global_search": "cosine",
    "chain_exploration": "chain",
}
FILMS = Path(__file__).parent.parent / "data" / "films.jsonl"
TOP = 20
RARE_TAG = 150  # films that may share a tag: "comedy" and "own" say little
PLAIN_ENGLISH = (
    "Who directed {}?",
    "When was {} released?",
    "What is {} about?",
    "Who stars in {}?",
)
PLAIN_CHINESE = ("《{}》是谁导演的？", "{}哪一年上映？", "《{}》讲了什么故事？", "{}的主演有谁？")


@dataclass
class Asked:
    """A question, the documents that answer it (none when it does not belong to the corpus)."""

    id: str
    text: str
    gold: frozenset[str]
    judged: frozenset[str] | None = (
        None  # the documents that somebody labelled; None: all of them
    )


@dataclass
class Corpus:
    """A corpus as files, the questions asked of it, and the tools that they are for."""

    name: str
    paths: list[Path]
    questions: list[Asked] = field(default_factory=list)
    tools: tuple[str, ...] = TOOLS


def main() -> None:
    """Measure, and fit when asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--questions", type=int, default=120, help="of each corpus, at most")
    parser.add_argument("--passages", type=int, default=1200, help="of each corpus, at most")
    parser.add_argument("--embeddings", nargs="+", default=["use", "hashing"])
    parser.add_argument(
        "--work",
        type=Path,
        help="where to keep the indexes between runs; default: a temporary folder",
    )
    parser.add_argument("--tools", nargs="+", choices=[*OURS], default=[*OURS])
    parser.add_argument(
        "--plot", type=Path, help="write the reliability diagram to this HTML file"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        corpora = load(options.data, folder, options.questions, options.passages)
        for corpus in corpora:
            corpus.tools = tuple(tool for tool in corpus.tools if tool in options.tools)
        rows = [row for model in options.embeddings for row in observe(corpora, model, folder)]
    bins = []
    for tool in options.tools:
        model = judge(tool, rows, options.fit)
        bins += said_and_was(tool, model, rows)
    if options.plot:
        title = "Reliability, on the half of the questions that no fit saw"
        line(
            pandas.DataFrame(bins), x="said", y="right", color="tool", markers=True, title=title
        ).write_html(options.plot)


def said_and_was(
    tool: str, model: Logistic, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The bins of one tool, as the diagram draws them."""
    measured = [row for row in rows if row["tool"] == tool and not row["fits"]]
    return [
        {"tool": tool, **one}
        for one in reliability([(model(r["signals"]), r["right"]) for r in measured])["bins"]
    ]


def judge(tool: str, rows: Sequence[dict[str, Any]], fitting: bool) -> Logistic:
    """Report on one tool, by the half of the questions that the fit did not see; the model that was judged."""
    model = MODELS[tool]
    measured = [row for row in rows if row["tool"] == tool and not row["fits"]]
    if not measured:
        sys.stdout.write(f"\n{tool}: nothing to measure\n")
        return model
    if fitting:
        model = fit(
            [row for row in rows if row["tool"] == tool and row["fits"]], list(model.weights)
        )
    sys.stdout.write(report(tool, model, measured))
    return model


def load(data: Path, folder: Path, questions: int, passages: int) -> list[Corpus]:
    """Every corpus that is there, with its own questions and, one in three, those of another."""
    known = [
        _films(data),
        _cut(data, folder, "cmrc", questions, passages),
        _cut(data, folder, "xquad", questions, passages, language="en"),
        _cut(data, folder, "xquad", questions, passages, language="zh"),
        _cut(data, folder, "hotpot", questions, passages),
        _cut(data, folder, "2wiki", questions, passages),
    ]
    corpora = [corpus for corpus in known if corpus.questions]
    own = [corpus.questions for corpus in corpora]
    for place, corpus in enumerate(corpora):
        other = own[(place + 2) % len(own)] if len(own) > 2 else []
        strangers = other[: len(corpus.questions) // 2]
        corpus.questions = corpus.questions + [
            Asked(f"{corpus.name}/{q.id}", q.text, frozenset()) for q in strangers
        ]
    return [*corpora, _alike(data, questions)]


def _films(data: Path) -> Corpus:
    """The films that are shipped: MetaQA's one-hop questions on films among them, and plain ones in both languages."""
    films = list(_lines(FILMS))
    ids: dict[str, list[str]] = {}
    for film in films:
        ids.setdefault(film["title"], []).append(film["id"])
    questions = []
    for q in _questions(data, "metaqa"):
        titles = q["answers"] if q["path"][0].startswith("~") else [q["topic_entity"]]
        gold = frozenset(i for title in titles for i in ids.get(title, []))
        if q["hops"] == 1 and gold:
            questions.append(Asked(q["id"], q["question"], gold))
    translated = [film for film in films if film.get("aliases")]
    for films_asked, asked in ((films[::20], PLAIN_ENGLISH), (translated, PLAIN_CHINESE)):
        for place, film in enumerate(films_asked):
            name = film["aliases"][0] if asked is PLAIN_CHINESE else film["title"]
            text = asked[place % len(asked)].format(name)
            questions.append(Asked(f"plain-{text}", text, frozenset(ids[film["title"]])))
    return Corpus("films", [FILMS], questions)


def _cut(
    data: Path, folder: Path, name: str, questions: int, passages: int, language: str = ""
) -> Corpus:
    """A set cut to some questions, with the passages that answer them and as many others as there is room for."""
    gold = f"gold_{language}" if language else "gold"
    asked = _some(
        (Asked(q["id"], q["question"], frozenset(q[gold])) for q in _questions(data, name)),
        questions,
    )
    if not asked:
        return Corpus(name, [])
    wanted = frozenset(i for q in asked for i in q.gold)
    lines = [
        p
        for p in _lines(data / name / "corpus.jsonl.gz")
        if not language or p["lang"] == language
    ]
    lines.sort(key=lambda p: (p["id"] not in wanted, _hash(p["id"])))
    corpus = Corpus(
        f"{name}-{language}" if language else name, [folder / f"{name}{language}.jsonl"], asked
    )
    kept = [
        {key: p[key] for key in ("id", "title", "text") if key in p} for p in lines[:passages]
    ]
    corpus.paths[0].write_text(
        "".join(json.dumps(p, ensure_ascii=False) + "\n" for p in kept), encoding="utf-8"
    )
    return corpus


def _alike(data: Path, questions: int) -> Corpus:
    """The films again, asked for what is like one of them; people's tags are the labels, where there are any."""
    path = data / "metaqa" / "kb.tsv.gz"
    triples = [line.split("\t") for line in _text(path).splitlines()] if path.exists() else []
    tagged: dict[str, set[str]] = {}
    for film, relation, value in triples:
        if relation == "has_tags":
            tagged.setdefault(value, set()).add(film)
    tags: dict[str, set[str]] = {}
    for tag, films in tagged.items():
        if len(films) <= RARE_TAG:
            for film in films:
                tags.setdefault(film, set()).add(tag)
    ours = [film for film in _lines(FILMS) if film["title"] in tags]
    judged = frozenset(film["id"] for film in ours)
    asked = []
    for film in ours:
        mine = tags[film["title"]]
        gold = frozenset(
            o["id"] for o in ours if o["id"] != film["id"] and mine & tags[o["title"]]
        )
        asked.append(
            Asked(f"alike-{film['id']}", f"films similar to “{film['title']}”", gold, judged)
        )
    return Corpus("alike", [FILMS], _some(asked, questions), tools=("global_search",))


def observe(
    corpora: Sequence[Corpus], embedding_model: str, folder: Path
) -> Iterator[dict[str, Any]]:
    """What every tool finds for every question: signals, and whether it was right."""
    settings = Settings.load(embedding_model=embedding_model)
    library = Library(folder / f"kb-{embedding_model}", settings)
    registry = ToolRegistry()
    for corpus in corpora:
        name = "films" if corpus.paths == [FILMS] else corpus.name
        library.add(name, corpus.paths)
        base = library.get(name)
        for question in corpus.questions:
            found = {tool: _found(registry[tool], question, base) for tool in corpus.tools}
            told = {
                "corpus": corpus.name if question.gold else "(off-corpus)",
                "question": f"{embedding_model} {question.id}",
                "fits": _half(question.id),
            }
            claims = [
                (tool, signals, doc_id)
                for tool, results in found.items()
                for _, _, signals, doc_id in results
            ]
            for tool, signals, doc_id in claims:
                if question.judged is None or doc_id in question.judged:
                    yield {
                        **told,
                        "tool": tool,
                        "signals": signals,
                        "right": doc_id in question.gold,
                    }
    library.close()


Passage = tuple[str, float, dict[str, float], str]
"""Id, score, signals and document of a passage that a tool found."""


def _found(tool: Any, question: Asked, base: Any) -> list[Passage]:
    output = asyncio.run(
        tool(read_input(tool, {"query": question.text, "top_k": TOP}), base, StepLog())
    )
    passages = [result for result in output.results if result["source_type"] == "chunk"]
    return [
        (r["source_id"], r["score"], r["metadata"]["signals"], str(r["metadata"]["doc_id"]))
        for r in passages
    ]


def fit(rows: Sequence[dict[str, Any]], signals: Sequence[str], ridge: float = 1e-5) -> Logistic:
    """Logistic regression by projected gradient: every signal speaks for a result, so no weight falls below 0."""
    x = np.array([[row["signals"].get(name, 0.0) for name in signals] for row in rows])
    y = np.array([row["right"] for row in rows], float)
    weights = np.zeros(len(signals))
    bias = 0.0
    step = 4.0 / (1 + (x**2).sum(1).mean())
    for _ in range(20_000):
        error = 1 / (1 + np.exp(-(x @ weights + bias))) - y
        weights = np.maximum(0, weights - step * (x.T @ error / len(y) + ridge * weights))
        bias -= step * error.mean()
    return Logistic(
        round(bias, 2), {n: round(float(w), 2) for n, w in zip(signals, weights, strict=True)}
    )


def report(tool: str, model: Logistic, rows: Sequence[dict[str, Any]]) -> str:
    """The model, its bins and errors beside min-max scaling, and what the best result of a question scores."""
    ours = np.array([model(row["signals"]) for row in rows])
    raw = RAW.get(tool, "covered")
    plain = min_max(rows, np.array([row["signals"].get(raw, 0.0) for row in rows]))
    right = np.array([row["right"] for row in rows], float)
    edges = [low / 10 for low in range(10)]
    inside = [(ours >= low) & (ours < low + 0.1) for low in edges]
    lines = [
        f"\n{tool}: Logistic({model.bias}, {dict(model.weights)})",
        f"  {len(rows)} results, {right.mean():.3f} right; {_errors(ours, right)}",
        f"  min-max of {raw!r} instead: {_errors(plain, right)}",
        "  said      " + " ".join(f"{low:5.1f}" for low in edges),
        "  was right "
        + " ".join(f"{right[i].mean():5.2f}" if i.any() else "    -" for i in inside),
        "  results   " + " ".join(f"{i.sum():5d}" for i in inside),
        "  corpus         questions  top right  top score 10%/50%/90%   over .5",
    ]
    for corpus in sorted({row["corpus"] for row in rows}):
        best = _best(rows, ours, corpus)
        scores = np.array([score for score, _ in best])
        hits = np.mean([hit for _, hit in best])
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


def _best(
    rows: Sequence[dict[str, Any]], said: np.ndarray, corpus: str
) -> list[tuple[float, bool]]:
    best: dict[str, tuple[float, bool]] = {}
    for row, score in zip(rows, said, strict=True):
        if row["corpus"] == corpus and score > best.get(row["question"], (-1.0, False))[0]:
            best[row["question"]] = (float(score), row["right"])
    return list(best.values())


@cache
def _questions(data: Path, name: str) -> list[dict[str, Any]]:
    path = data / name / "questions.jsonl"
    if not path.exists():
        sys.stderr.write(f"skipped: there is no {path}\n")
        return []
    return list(_lines(path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line) for line in _text(path).split("\n") if line.strip())


def _text(path: Path) -> str:
    return (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).decode()


def _some(questions: Iterable[Asked], limit: int) -> list[Asked]:
    return sorted(questions, key=lambda q: _hash(q.id))[:limit]


def _half(question_id: str) -> bool:
    return _hash(f"half {question_id}")[-1] in "02468ace"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
