"""Measure follow-ups (MTRAG-UN) and long documents (GraphRAG-Bench): ``python -m experiments.long_texts DATA``.

    --set talk     documents found among the first five for the last user turn, and for the last two of them
    --set novels   evidence found: the share of the evidence's words in the first five passages, by type of question

Both on the reporting half (ids whose SHA-256 ends in 8 to f), with BM25 or one vector search as the plain baseline,
paired differences by the permutation test, and no language model. ``novels`` asks whether a graph agent pays.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench import Workbench
from workbench.parts.evaluate.questions import choose, read_rows
from workbench.parts.evaluate.retrieval import eval_retrieval
from workbench.parts.experiments.statistics import ERROR, differences
from workbench.state import Json
from workbench.text import terms

AGENTS = ("naive_rag_agent", "hybrid_agent", "graph_agent", "fusion_agent")
FIRST = 5


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
    if "talk" not in wb.knowledge.names():
        corpus = wb.path / "talk.jsonl"
        with gzip.open(data / "mtrag" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [{"id": row["doc_id"], "text": row["text"]} for row in map(json.loads, lines)]
        corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        wb.add_knowledge("talk", [corpus])
    for turns in (1, 2):
        path = wb.path / f"talk{turns}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in talk(data, turns)), encoding="utf-8")
        table = eval_retrieval(wb, "talk", path, tools=["hybrid_search", "chain_exploration"], limit=limit)
        print(f"\nMTRAG-UN, last {turns} user turn(s), {table['questions']} tasks\n\n| | R@5 | MRR |\n|---|--:|--:|")
        for name, row in table["tools"].items():
            print(f"| {name} | {row['R@5']} | {row['MRR']} |", flush=True)
        print(json.dumps(table["paired"]))


def coverage(evidence: Sequence[Json], words: set[str]) -> float:
    """Return the share of these words in the first five passages."""
    found = {word for piece in evidence[:FIRST] for word in terms(str(piece["evidence"]))}
    return len(words & found) / max(1, len(words))


def measure_novels(data: Path, wb: Workbench, limit: int) -> None:
    """Print the share of evidence found by each agent, by type of question, and its difference to a vector search."""
    if "novels" not in wb.knowledge.names():
        wb.add_knowledge("novels", [data / "graphragbench" / "novels.jsonl.gz"])
    rows = read_rows(data / "graphragbench" / "novels.questions.jsonl", "id", "question")
    own = [row for row in rows if reported(row["id"])]
    kinds = sorted({row["type"] for row in own})
    chosen = [row for kind in kinds for row in choose(own, {"type": kind}, limit // len(kinds))]
    words = {row["id"]: set(terms(str(row["evidence"]))) for row in chosen}
    sweep = {
        "name": "novels", "kb": "novels", "questions": [{"id": r["id"], "question": r["question"]} for r in chosen],
        "configurations": [{"worker": f"novels:{agent}:retrieve_only"} for agent in AGENTS],
    }  # fmt: skip
    done = wb.experiments.run(
        sweep, progress=lambda _, n, total: print(f"{n} of {total}", flush=True) if n % 20 == 0 else None
    )
    scores = {
        agent: {question["id"]: coverage(run.evidence, words[question["id"]]) for _, question, run in done.runs(number)}
        for number, agent in enumerate(AGENTS)
    }
    print(f"\nGraphRAG-Bench, novels, {len(chosen)} questions: evidence words in the first {FIRST} passages, %")
    print("\n| type | n | " + " | ".join(AGENTS) + " |\n|---|--:|" + "--:|" * len(AGENTS))
    for kind in [*kinds, ""]:
        ids = {row["id"] for row in chosen if kind in ("", row["type"])}
        part = {agent: {i: v for i, v in values.items() if i in ids} for agent, values in scores.items()}
        apart = differences(part, AGENTS[0], 5, error=ERROR / (len(kinds) + 1))
        cells = []
        for agent in AGENTS:
            mean = 100 * sum(part[agent].values()) / max(1, len(part[agent]))
            more = (
                f" ({apart[agent].mean:+.1f} [{apart[agent].low:+.1f}, {apart[agent].high:+.1f}])"
                if agent in apart
                else ""
            )
            cells.append(f"{mean:.1f}{more}")
        print(f"| {kind or 'all'} | {len(ids)} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", choices=["talk", "novels"], default="talk")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--work", type=Path, default=Path("build/long_texts"))
    options = parser.parse_args()
    with Workbench.open(options.work) as wb:
        (measure_talk if options.set == "talk" else measure_novels)(options.data, wb, options.limit)


if __name__ == "__main__":
    main()
