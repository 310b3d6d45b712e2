"""Question sets and rankings of other tools: folders as BEIR has them, runs and qrels as TREC has them.

python -m experiments.interchange questions BEIR_FOLDER > questions.jsonl
python -m experiments.interchange runs EXPERIMENT --workspace DIR --out FOLDER    a TREC run each, and qrels
python -m experiments.interchange recall QRELS RUN [RUN ...] [--top 5]            runs of any tool, compared
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from workbench import Workbench
from workbench.errors import CorpusError
from workbench.parts.evaluate.answers import gold_documents
from workbench.parts.evaluate.questions import read_rows
from workbench.parts.experiments.experiment import Experiment
from workbench.parts.experiments.statistics import differences
from workbench.records.writing import write_file
from workbench.state import Data, Json

Rankings = Mapping[str, Mapping[str, float]]
"""Question -> document -> score; in qrels, how relevant it is."""


def read_beir(folder: Path, split: str = "test") -> list[Json]:
    """Return the questions of a folder with ``queries.jsonl`` and ``qrels/SPLIT.tsv``; ``corpus.jsonl`` is for a base.

    Raises:
        CorpusError: a file is missing, or a line cannot be read.
    """
    qrels, rows = _table(folder / "qrels" / f"{split}.tsv", 2), []
    for query in read_rows(folder / "queries.jsonl", "_id", "text"):
        gold = [document for document, relevant in qrels.get(query["_id"], {}).items() if relevant > 0]
        if gold:
            rows.append({"id": query["_id"], "question": query["text"], "gold": gold})
    return rows


def write_beir(folder: Path, rows: Iterable[Data], corpus: Iterable[Data]) -> None:
    """Write questions with ``gold``, and documents with ``id``, ``title`` and ``text``, as BEIR has them."""
    rows = list(rows)
    judged = [f"{row['id']}\t{document}\t1" for row in rows for document in row["gold"]]
    documents = [{"_id": row["id"], "title": row["title"], "text": row["text"]} for row in corpus]
    _write(folder / "corpus.jsonl", map(json.dumps, documents))
    _write(folder / "queries.jsonl", [json.dumps({"_id": row["id"], "text": row["question"]}) for row in rows])
    _write(folder / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore", *judged])


def read_trec(path: Path) -> dict[str, dict[str, float]]:
    """Return a TREC run (``question Q0 document rank score tag``) or qrels (``question 0 document relevance``).

    Raises:
        CorpusError: it cannot be read.
    """
    return _table(path, 4) or _table(path, 3)


def write_trec(path: Path, rankings: Rankings, tag: str = "") -> None:
    """Write a TREC run of this tag, the best document first; without a tag qrels."""
    lines = []
    for question, scores in rankings.items():
        ranked = sorted(scores.items(), key=lambda pair: -pair[1])
        for rank, (document, score) in enumerate(ranked, start=1):
            ranked_line = f"{question} Q0 {document} {rank} {score:.6f} {tag}"
            lines.append(ranked_line if tag else f"{question} 0 {document} {score:g}")
    _write(path, lines)


def _table(path: Path, column: int) -> dict[str, dict[str, float]]:
    """Return a table by question and document; nothing if it has no such column."""
    table: dict[str, dict[str, float]] = {}
    try:
        rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        for row in rows[1:] if column == 2 else rows:  # BEIR has a line of names
            if len(row) > column:
                table.setdefault(row[0], {})[row[min(column - 1, 2)]] = float(row[column])
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read as such a table: {error}.") from None
    return table


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "".join(f"{line}\n" for line in lines).encode(), replace=True)


def export(experiment: Experiment, folder: Path) -> None:
    """Write the rankings of each configuration as a TREC run, by its number, and the gold as ``qrels.txt``."""
    for number in range(len(experiment.variants)):
        rankings: dict[str, dict[str, float]] = {}
        for _, question, run in experiment.runs(number):
            best_last = sorted(run.evidence, key=lambda piece: piece["score"])
            documents = {str(piece["metadata"].get("doc_id") or piece["source_id"]): piece for piece in best_last}
            rankings[question["id"]] = {name: piece["score"] for name, piece in documents.items()}
        write_trec(folder / f"{number}.run", rankings, experiment.name)
    gold = {row["id"]: dict.fromkeys(gold_documents(row), 1.0) for row in experiment.questions}
    write_trec(folder / "qrels.txt", gold)


def recall(run: Rankings, qrels: Rankings, top: int = 5) -> dict[str, float]:
    """Return for each judged question the share of its documents among the first.

    >>> recall({"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "c": 1}})
    {'q': 0.5}
    """
    values = {}
    for question, judged in qrels.items():
        gold = {document for document, relevant in judged.items() if relevant > 0}
        scores = run.get(question, {})
        first = sorted(scores, key=lambda document: -scores[document])[:top]
        if gold:
            values[question] = len(gold & set(first)) / len(gold)
    return values


def main() -> None:
    """Convert, or print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["questions", "runs", "recall"])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--workspace", default=".workbench")
    parser.add_argument("--out", type=Path, default=Path("build/trec"))
    parser.add_argument("--top", type=int, default=5)
    options = parser.parse_args()
    if options.act == "questions":
        for row in read_beir(Path(options.names[0])):
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    elif options.act == "runs":
        with Workbench.open(options.workspace) as wb:
            export(wb.experiments.get(options.names[0]), options.out)
    else:
        qrels, *runs = map(Path, options.names)
        scores = {str(path): recall(read_trec(path), read_trec(qrels), options.top) for path in runs}
        for name, values in scores.items():
            print(f"{name}: {100 * sum(values.values()) / len(values):.1f} over {len(values)} questions")
        for name, apart in differences(scores, str(runs[0]), 5).items():
            print(f"{name}: {apart.decision}")


if __name__ == "__main__":
    main()
