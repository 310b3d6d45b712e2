"""Question sets, rankings and logs of other tools: BEIR folders, TREC runs and qrels, logs of Inspect, MLflow, PRML.

python -m experiments.interchange questions BEIR_FOLDER > questions.jsonl
python -m experiments.interchange runs EXPERIMENT --workspace DIR --out FOLDER    a TREC run each, and qrels
python -m experiments.interchange inspect EXPERIMENT --workspace DIR --out FOLDER    a log (.eval) each configuration
python -m experiments.interchange samples LOG.eval > questions.jsonl
python -m experiments.interchange mlflow EXPERIMENT --workspace DIR    a run each configuration; needs the extra mlflow
python -m experiments.interchange prml SPEC.yaml > NAME.prml.yaml    what is claimed, before it runs
python -m experiments.interchange recall QRELS RUN [RUN ...] [--top 5]            runs of any tool, compared
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml

from workbench import Workbench
from workbench.errors import CorpusError
from workbench.parts.evaluate.answers import gold_answers, gold_documents
from workbench.parts.evaluate.questions import read_rows
from workbench.parts.experiments.experiment import Experiment
from workbench.parts.experiments.spec import Spec, load_spec
from workbench.parts.experiments.statistics import differences
from workbench.plans import canonical_json
from workbench.records.tape import digest
from workbench.records.writing import write_file
from workbench.state import Data, Json

Rankings = Mapping[str, Mapping[str, float]]
"""Question -> document -> score; in qrels, how relevant it is."""


def read_beir(folder: Path, split: str = "test") -> list[Json]:
    """Return the questions of a folder with ``queries.jsonl`` and ``qrels/SPLIT.tsv``; ``corpus.jsonl`` is for a base.

    Raises:
        CorpusError: a file is missing, or a line cannot be read.
    """
    qrels = _table(folder / "qrels" / f"{split}.tsv", 2)
    rows = []
    for query in read_rows(folder / "queries.jsonl", "_id", "text"):
        gold = [
            document for document, relevant in qrels.get(query["_id"], {}).items() if relevant > 0
        ]
        if gold:
            rows.append({"id": query["_id"], "question": query["text"], "gold": gold})
    return rows


def write_beir(folder: Path, rows: Iterable[Data], corpus: Iterable[Data]) -> None:
    """Write questions with ``gold``, and documents with ``id``, ``title`` and ``text``, as BEIR has them."""
    rows = list(rows)
    judged = [f"{row['id']}\t{document}\t1" for row in rows for document in row["gold"]]
    documents = [{"_id": row["id"], "title": row["title"], "text": row["text"]} for row in corpus]
    _write(folder / "corpus.jsonl", map(json.dumps, documents))
    _write(
        folder / "queries.jsonl",
        [json.dumps({"_id": row["id"], "text": row["question"]}) for row in rows],
    )
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
        rows = [
            line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
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
            documents = {
                str(piece["metadata"].get("doc_id") or piece["source_id"]): piece
                for piece in best_last
            }
            rankings[question["id"]] = {name: piece["score"] for name, piece in documents.items()}
        write_trec(folder / f"{number}.run", rankings, experiment.name)
    gold = {row["id"]: dict.fromkeys(gold_documents(row), 1.0) for row in experiment.questions}
    write_trec(folder / "qrels.txt", gold)


def write_inspect(experiment: Experiment, folder: Path) -> list[Path]:
    """Write a log of Inspect (``.eval``, version 2) for each configuration, by its number; failed cells are in it."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = experiment._store.cells()
    paths = list[Path]()
    questions = {row["id"]: row for row in experiment.questions}
    for number, variant in enumerate(experiment.variants):
        own = [cell for cell in cells if cell["configuration"] == number and cell["ended_at"]]
        samples = [_sample(cell, questions[cell["question"]], experiment) for cell in own]
        created = min((cell["ended_at"] for cell in own), default="1970-01-01T00:00:00+00:00")
        ids = list(dict.fromkeys(sample["id"] for sample in samples))
        spec = {
            "eval_id": digest([experiment.name, number]), "run_id": digest(experiment.name), "created": created,
            "task": experiment.name, "task_id": digest(experiment.name), "task_args": variant, "model": "workbench",
            "dataset": {"name": experiment.spec.kb, "samples": len(ids), "sample_ids": ids},
            "config": {"epochs": experiment.spec.repeats},
        }  # fmt: skip
        start = {"version": 2, "eval": spec, "plan": {"name": "plan", "steps": []}}
        names = sorted({name for sample in samples for name in sample["scores"]})
        scores = [_inspect_score(name, samples) for name in names]
        results = {
            "total_samples": len(samples),
            "completed_samples": len([s for s in samples if s["scores"]]),
        }
        header = {**start, "status": "success", "results": {**results, "scores": scores}}
        summary = ("id", "epoch", "input", "target", "scores", "error")
        members = {
            "_journal/start.json": start,
            **{
                f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample
                for sample in samples
            },
            "summaries.json": [
                {name: sample[name] for name in summary if name != "error"}
                | (
                    {"error": sample["error"]["message"]}
                    if sample.get("error")
                    else {"completed": True}
                )
                for sample in samples
            ],
            "header.json": header,
        }
        paths.append(folder / f"{number}.eval")
        with zipfile.ZipFile(paths[-1], "w", zipfile.ZIP_DEFLATED) as archive:
            for name, value in members.items():
                archive.writestr(name, json.dumps(value, ensure_ascii=False))
    return paths


def _sample(cell: Json, question: Json, experiment: Experiment) -> Json:
    scores = cell["scores"] or {}
    run = experiment._wb.run(cell["run_id"]) if cell["run_id"] in experiment._wb.runs else None
    answer = (run.answer or "") if run else ""
    error = cell["error"] or ""
    choice = {"message": {"role": "assistant", "content": answer}, "stop_reason": "stop"}
    sample = {
        "id": question["id"], "epoch": cell["repeat"] + 1, "input": question["question"],
        "target": gold_answers(question) or "", "output": {"model": "workbench", "choices": [choice]},
        "scores": {name: {"value": value, "answer": answer} for name, value in scores.items()},
        "metadata": {"run_id": cell["run_id"], "proof": json.loads(cell["proof"])},
    }  # fmt: skip
    failure = {"message": error, "traceback": error, "traceback_ansi": error}
    return sample | ({"error": failure} if error else {})


def _inspect_score(name: str, samples: Sequence[Json]) -> Json:
    values = [sample["scores"][name]["value"] for sample in samples if name in sample["scores"]]
    counts = {"scored_samples": len(values), "unscored_samples": len(samples) - len(values)}
    mean = {"name": "mean", "value": sum(values) / len(values)}
    return {"name": name, "scorer": name, **counts, "metrics": {"mean": mean}}


def read_inspect(path: Path) -> list[Json]:
    """Return the samples of a log of Inspect as questions, with the answer that was given and its scores.

    Raises:
        CorpusError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [json.loads(archive.read(name)) for name in names]
        return [
            {
                "id": f"{sample['id']}"
                if sample["epoch"] == 1
                else f"{sample['id']}_epoch_{sample['epoch']}",
                "question": _text(sample["input"]),
                "answers": [sample["target"]]
                if isinstance(sample["target"], str)
                else sample["target"],
                "given": _text(
                    [
                        choice["message"]
                        for choice in (sample.get("output") or {}).get("choices", [])[:1]
                    ]
                ),
                "scores": {
                    name: score["value"] for name, score in (sample.get("scores") or {}).items()
                },
            }
            for sample in samples
        ]
    except (
        OSError,
        zipfile.BadZipFile,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        raise CorpusError(f"{path} cannot be read as a log of Inspect: {error}.") from None


def _text(content: object) -> str:
    """Return the words of a text, or of messages, as Inspect and chat models have them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(_text(part.get("content", part.get("text", ""))) for part in parts)


def export_mlflow(experiment: Experiment) -> list[str]:
    """Log a run of MLflow for each configuration: parameters, means, and differences to the first; return their ids."""
    import mlflow

    mlflow.set_experiment(experiment.name)
    ids = list[str]()
    table = experiment.compare()
    variants = experiment.variants
    for number, row in enumerate(table.to_dict("records")):
        figures = {re.sub(r"[^\w\-./ ]", "_", str(name)): value for name, value in row.items()}
        numbers = {
            name: float(v)
            for name, v in figures.items()
            if isinstance(v, (int, float)) and not math.isnan(v)
        }
        with mlflow.start_run(run_name=str(row["configuration"])) as run:
            mlflow.log_params({name: str(value) for name, value in variants[number].items()})
            mlflow.log_metrics(numbers)
            mlflow.set_tags({"decision": str(row.get("decision", "")), "baseline": number == 0})
            ids.append(run.info.run_id)
    return ids


def prml(spec: Spec, questions: Sequence[Json], now: datetime) -> str:
    """Return what an experiment claims as a manifest of PRML 0.1, in its canonical bytes: to be hashed before it runs.

    The claim is that a configuration differs from the baseline by at least the smallest difference, in points.
    """
    rows = "".join(canonical_json(row) + "\n" for row in questions).encode()
    stamp = f"{int(now.timestamp() * 1000):012x}"
    content = hashlib.sha256(rows + spec.model_dump_json().encode())
    digest = content.hexdigest()
    claim = f"{stamp[:8]}-{stamp[8:]}-7{digest[:3]}-8{digest[3:6]}-{digest[6:18]}"
    manifest = {
        "version": "prml/0.1", "claim_id": claim, "created_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "metric": f"difference of {spec.measure} to the baseline, points", "comparator": ">=",
        "threshold": float(spec.smallest_difference), "seed": spec.random.seed if spec.random else 0,
        "dataset": {"id": f"{spec.name} on {spec.kb}: {len(questions)}", "hash": hashlib.sha256(rows).hexdigest()},
        "producer": {"id": "workbench"}, "notes": spec.hypothesis or "none",
    }  # fmt: skip
    return yaml.safe_dump(manifest, sort_keys=True, width=math.inf, allow_unicode=True)


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "act", choices=["questions", "runs", "inspect", "samples", "mlflow", "prml", "recall"]
    )
    parser.add_argument("names", nargs="+")
    parser.add_argument("--workspace", default=".workbench")
    parser.add_argument("--out", type=Path, default=Path("build/trec"))
    parser.add_argument("--top", type=int, default=5)
    options = parser.parse_args()
    first = Path(options.names[0])
    if options.act in ("questions", "samples"):
        for row in read_beir(first) if options.act == "questions" else read_inspect(first):
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    elif options.act == "prml":
        spec = load_spec(first)
        questions = read_rows(Path(str(spec.questions)), "id", "question")
        sys.stdout.write(prml(spec, questions, datetime.now(UTC)))
    elif options.act in ("runs", "inspect", "mlflow"):
        with Workbench.open(options.workspace) as wb:
            experiment = wb.experiments.get(options.names[0])
            act = {
                "runs": export,
                "inspect": write_inspect,
                "mlflow": lambda done, _: export_mlflow(done),
            }[options.act]
            act(experiment, options.out)
    else:
        qrels, *runs = map(Path, options.names)
        scores = {
            str(path): recall(read_trec(path), read_trec(qrels), options.top) for path in runs
        }
        for name, values in scores.items():
            print(
                f"{name}: {100 * sum(values.values()) / len(values):.1f} over {len(values)} questions"
            )
        for name, apart in differences(scores, str(runs[0]), 5).items():
            print(f"{name}: {apart.decision}")


if __name__ == "__main__":
    main()
