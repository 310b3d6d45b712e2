"""Measure the fusion graph and its strategies.

    python experiments/fusing.py WORKSPACE DATA [--limit 150]

WORKSPACE holds the bases of the question sets in DATA (``make bench`` keeps one with ``--work``); a set that is not
there is skipped. Every question is asked once; the rest is arithmetic.

- *strategies*: R@5 of each source alone and of what each strategy makes of them, before anything is reread; and of one
  pass after it, beside each source reread alone, with the difference and its interval.
- *time*: of one pass of the graph beside ``hybrid_search``; read the ratio.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from merging import given, ranking, sets_there

from workbench.parts.evaluate.measures import difference
from workbench.parts.evaluate.questions import choose, distinct, gold_ids, read_rows
from workbench.parts.fusion.graph import build_fusion
from workbench.parts.fusion.strategies import STRATEGIES
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench
from workbench.tools import hybrid
from workbench.tools.scoring import LEAD, Question, Ranking
from workbench.tools.tool import StepLog

SOURCES = ("bm25", "dense", "graph")
REPORTED = "musique"
"""A set that fits nothing."""
FIRST = 5
ASKS = {"session_id": "", "canvas_path": "", "operation": "explanation", "messages": []}
SPEED = 40
"""Questions whose time is taken."""


class Asked(NamedTuple):
    """What was found for one question.

    Attributes:
        hits: source -> its ranking of passages.
        alone: ``graph`` or ``texts`` -> the documents of one source, reread.
        once: the documents of one pass.
    """

    id: str
    gold: frozenset[str]
    hits: Mapping[str, Ranking]
    alone: Mapping[str, list[str]]
    once: list[str]


def main() -> None:
    """Ask, and print."""
    options = given(__doc__, 150)
    asked = {}
    asked_ms = {}
    with Workbench.open(options.workspace) as wb:
        for name, rows, gold in all_there(wb, options.workspace, options.data, options.limit):
            asked[name] = list(observe(wb.ports(), wb.knowledge.get(name), rows, gold))
            asked_ms[name] = times(wb.ports(), wb.knowledge.get(name), rows[:SPEED])
    sys.stdout.write("\n".join([*strategies(asked), "", ""]))
    sys.stdout.write("p50 ms       hybrid_search   one pass   ratio\n")
    for name, (tool, once) in asked_ms.items():
        sys.stdout.write(f"{name:12}{tool:>14.1f}{once:>11.1f}{once / tool:>8.2f}\n")


def all_there(
    wb: Workbench, workspace: Path, data: Path, limit: int
) -> Iterator[tuple[str, list[Any], str]]:
    """The sets that are there, and the one that fits nothing."""
    yield from sets_there(wb, workspace, data, limit)
    if REPORTED in wb.knowledge.names() and (data / REPORTED).exists():
        yield (
            REPORTED,
            choose(read_rows(data / REPORTED / "questions.jsonl", "id", "question"), limit=limit),
            "gold",
        )


def observe(
    context: Context, base: KnowledgeBase, rows: Sequence[Mapping[str, Any]], gold: str
) -> Iterator[Asked]:
    """Every question with its sources, and one pass over it."""
    base.warm()
    graph = build_fusion().compile()
    config: Any = {"configurable": {"kb_prefix": base.name, "max_retries": 0}}
    for row in rows:
        with base.reading():
            question = Question.read(row["question"], base)
            log = StepLog()
            of_texts = hybrid.from_texts(question, LEAD, log)
            of_graph = hybrid.from_graph(question, LEAD, log)
            alone = {
                name: ranking(
                    hybrid.rerank(
                        question,
                        [p for p, _ in hybrid.fuse(question, hits, LEAD, log)],
                        hits,
                        log,
                    )
                )
                for name, hits in (("texts", of_texts), ("graph", of_graph))
            }
        asking = {**ASKS, "query": row["question"]}
        found = asyncio.run(graph.ainvoke(asking, config, context=context))
        yield Asked(
            row["id"],
            frozenset(gold_ids(dict(row), gold)),
            of_texts | of_graph,
            alone,
            ranking(found["reranked_results"]),
        )


def times(
    context: Context, base: KnowledgeBase, rows: Sequence[Mapping[str, Any]]
) -> tuple[float, ...]:
    """Median milliseconds of ``hybrid_search`` and of one pass."""
    graph = build_fusion().compile()
    tool = context.tools["hybrid_search"]

    async def once(query: str) -> Any:
        config: Any = {"configurable": {"kb_prefix": base.name, "max_retries": 0}}
        return await graph.ainvoke({**ASKS, "query": query}, config, context=context)

    async def each() -> list[tuple[float, ...]]:
        found = []
        for row in rows:
            # so that neither of the two is the first to read what it needs
            await once(row["question"])
            at = [time.perf_counter()]
            await tool(tool.input_schema(query=row["question"], top_k=10), base, StepLog())
            at.append(time.perf_counter())
            await once(row["question"])
            at.append(time.perf_counter())
            found.append(tuple(np.diff(at)))
        return found

    taken = np.array(asyncio.run(each()))
    return tuple(1000 * float(m) for m in np.median(taken, axis=0))


def strategies(asked: Mapping[str, Sequence[Asked]]) -> Iterator[str]:
    """R@5 of each source, of each strategy, and of one pass beside each source alone."""
    yield (
        f"R@{FIRST}, before rereading"
        + " " * 6
        + "".join(f"{name:>11}" for name in (*SOURCES, *STRATEGIES))
    )
    for name, group in asked.items():
        rows = [
            [recall(documents([(s, one.hits[s])]), one.gold) for s in SOURCES] for one in group
        ]
        rows = [
            row + [recall(documents(one.hits.items(), how), one.gold) for how in STRATEGIES]
            for row, one in zip(rows, group, strict=True)
        ]
        yield f"{name:12}{len(group):>6}{'':10}" + "".join(
            f"{100 * v:>11.1f}" for v in np.mean(rows, axis=0)
        )
    yield ""
    yield f"R@{FIRST}, reread{'':7}one pass   texts alone [difference]       graph alone [difference]"
    for name, group in asked.items():
        once = {one.id: recall(one.once, one.gold) for one in group}
        told = ""
        for source in ("texts", "graph"):
            other = {one.id: recall(one.alone[source], one.gold) for one in group}
            told += f"   {percent(other.values())} {apart(once, other, 2 * len(asked)):22}"
        yield f"{name:12}{len(group):>6}{percent(once.values())}{told}"


def percent(values: Iterable[float]) -> str:
    """The mean, in percent."""
    return f"{100 * np.mean(list(values)):>6.1f}"


def apart(one: dict[str, float], other: dict[str, float], family: int = 1) -> str:
    """How much more one has by question, with the interval."""
    found = difference(one, other, family)
    return f"{found['difference']:+.1f} [{found['low']:+.1f}, {found['high']:+.1f}]"


def documents(hits: Iterable[tuple[str, Ranking]], how: str = "rrf") -> list[str]:
    """The documents in the order of the fused passages."""
    return distinct(i.rpartition("#")[0] for i, _ in STRATEGIES[how](dict(hits)))


def recall(found: Sequence[str], gold: frozenset[str], first: int = FIRST) -> float:
    """The share of the gold documents among the first.

    >>> recall(["a", "c", "b"], frozenset("ad"))
    0.5
    """
    return len(gold & set(found[:first])) / len(gold)


if __name__ == "__main__":
    main()
