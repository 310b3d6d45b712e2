"""Measure follow-ups (MTRAG-UN) and long documents (GraphRAG-Bench): ``python -m experiments.long_texts DATA``.

    --set talk     documents found among the first five for the last user turn, and for the last two of them
    --set novels   evidence found: the share of the evidence's words in the first five passages, by type of question

Both on the reporting half (ids whose SHA-256 ends in 8 to f), with the plain baselines ``bm25``, ``dense`` and ``rrf``
beside chains and agents, paired differences to BM25, and no language model. ``novels`` asks whether a graph pays.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from workbench import Workbench
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.evaluate.retrieval import eval_retrieval, run_tool
from workbench.parts.experiments.statistics import differences
from workbench.ports import KnowledgeBase
from workbench.state import Json
from workbench.text import terms
from workbench.tools.scoring import rrf

AGENTS = ("graph_agent", "fusion_agent")
CHAINS = "chain_exploration"
FIRST = 5
NOVELS = 3
"""Of the 20: all of them take half an hour of a core."""


def reported(name: str) -> bool:
    """Return whether an id is of the half that is reported."""
    return hashlib.sha256(name.encode()).hexdigest()[-1] in "89abcdef"


def talk(data: Path, turns: int) -> Iterator[Json]:
    """Yield the tasks with gold; the question is what the user said last."""
    for task in read_rows(data / "mtrag" / "tasks.jsonl", "id"):
        said = [turn["text"] for turn in task["turns"] if turn["speaker"] == "user"]
        if task["gold"] and reported(task["id"].rpartition("-")[0]):
            yield {"id": task["id"], "question": " ".join(said[-turns:]), "gold": task["gold"]}


def measure_talk(data: Path, wb: Workbench, limit: int | None) -> None:
    """Print the table of tools for the last turn and for the last two."""
    index(wb, "talk", read_rows(data / "mtrag" / "corpus.jsonl.gz", "doc_id", "text"))
    for turns in (1, 2):
        path = wb.path / f"talk{turns}.jsonl"
        path.write_text(
            "".join(json.dumps(row) + "\n" for row in talk(data, turns)), encoding="utf-8"
        )
        table = eval_retrieval(
            wb, "talk", path, tools=["bm25", CHAINS, "fusion_agent"], limit=limit
        )
        apart = {row["tool"]: row["R@5"] for row in table["paired"]}
        print(f"\nMTRAG-UN, last {turns} user turn(s), {table['questions']} tasks\n")
        print("| | R@5 | MRR | R@5 +- bm25 [95 %] |\n|---|--:|--:|--:|")
        for name, row in table["tools"].items():
            gain = (
                "{difference:+.1f} [{low:+.1f}, {high:+.1f}]".format(**apart[name])
                if name in apart
                else ""
            )
            print(f"| {name} | {row['R@5']} | {row['MRR']} | {gain} |", flush=True)


def coverage(texts: Sequence[str], words: set[str]) -> float:
    """Return the share of these words in the first five passages."""
    found = {word for text in texts[:FIRST] for word in terms(text)}
    return len(words & found) / max(1, len(words))


def plain(base: KnowledgeBase, question: str) -> dict[str, list[str]]:
    """Return the passages of each plain baseline, best first."""
    rankings = {
        "bm25": base.search("words", question, 100),
        "dense": base.search("meaning", question, 100),
    }
    rankings["rrf"] = rrf(rankings)
    return {
        name: [
            str(row["text"])
            for row in base.passages([chunk_id for chunk_id, _ in ranking[:FIRST]])
        ]
        for name, ranking in rankings.items()
    }


def index(wb: Workbench, name: str, documents: Iterable[Json]) -> None:
    """Index documents, if they are not there."""
    if name not in wb.knowledge.names():
        path = wb.path / f"{name}.jsonl"
        lines = (
            json.dumps({"id": row["doc_id"], "text": row["text"]}) + "\n" for row in documents
        )
        path.write_text("".join(lines), encoding="utf-8")
        wb.add_knowledge(name, [path])


def measure_novels(data: Path, wb: Workbench, limit: int) -> None:
    """Print the share of evidence found by baselines, chains and agents, by type of question, against BM25."""
    novels = read_rows(data / "graphragbench" / "novels.jsonl.gz", "doc_id", "text")[:NOVELS]
    index(wb, "novels", novels)
    base = wb.knowledge.get("novels")
    context = wb.ports()
    rows = read_rows(data / "graphragbench" / "novels.questions.jsonl", "id", "question")
    own = [
        row
        for row in rows
        if reported(row["id"]) and row["source"] in {novel["doc_id"] for novel in novels}
    ]
    kinds = sorted({row["type"] for row in own})
    chosen = [row for kind in kinds for row in choose(own, {"type": kind}, limit // len(kinds))]
    texts: dict[str, dict[str, list[str]]] = {
        row["id"]: plain(base, row["question"]) for row in chosen
    }
    for row in chosen:
        pieces = wb.call(run_tool(context.tools[CHAINS], row["question"], base, context))
        texts[row["id"]][CHAINS] = [str(piece["evidence"]) for piece in pieces]
    sweep = {
        "name": "novels", "kb": "novels", "questions": [{"id": r["id"], "question": r["question"]} for r in chosen],
        "configurations": [{"worker": f"novels:{agent}:retrieve_only"} for agent in AGENTS],
    }  # fmt: skip
    done = wb.experiments.run(sweep, progress=lambda *_: None)
    for number, agent in enumerate(AGENTS):
        for _, question, run in done.runs(number):
            texts[question["id"]][agent] = [str(piece["evidence"]) for piece in run.evidence]
    scores: dict[str, dict[str, float]] = {}
    for row in chosen:
        words = set(terms(str(row["evidence"])))
        for name, found in texts[row["id"]].items():
            scores.setdefault(name, {})[row["id"]] = 100 * coverage(found, words)
    counts = Counter(row["type"] for row in chosen)
    print(
        f"\nGraphRAG-Bench, {len(novels)} novels, {len(chosen)} questions: % of evidence words in {FIRST} passages\n"
    )
    print(
        "| | "
        + " | ".join(f"{kind} ({counts[kind]})" for kind in kinds)
        + " | all, +- bm25 [95 %] | so it is |"
    )
    print("|---|" + "--:|" * (len(kinds) + 1) + "---|")
    apart = differences(
        {name: {i: v / 100 for i, v in values.items()} for name, values in scores.items()},
        "bm25",
        5,
    )
    for name, values in scores.items():
        means = [
            mean([values[row["id"]] for row in chosen if row["type"] == kind]) for kind in kinds
        ]
        gain = ""
        decision = ""
        if name in apart:
            gain = f" {apart[name].mean:+.1f} [{apart[name].low:+.1f}, {apart[name].high:+.1f}]"
            decision = apart[name].decision
        cells = " | ".join(f"{m:.1f}" for m in means)
        print(
            f"| {name} | {cells} | {mean(values.values()):.1f}{gain} | {decision} |", flush=True
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", choices=["talk", "novels"], default="talk")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--work", type=Path, default=Path("build/long_texts"))
    options = parser.parse_args()
    with Workbench.open(options.work) as wb:
        (measure_talk if options.set == "talk" else measure_novels)(
            options.data, wb, options.limit
        )


if __name__ == "__main__":
    main()
