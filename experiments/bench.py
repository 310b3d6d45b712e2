"""What it costs, printed: a part of `make bench`. Every figure stands beside a baseline measured in the same run.

Machines are noisy: read ratios, not single times. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

from workbench.plans import Plan, PlanStep
from workbench.session import Workbench

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = [
    "喜宴哪一年上映？",
    "推荐几部类似《喜宴》的电影",
    "对比《喜宴》和《饮食男女》的风格",
    "List Christopher Nolan films after 2005",
    "Who is Ang Lee and what has he directed?",
    "Who directed Memento?",
    "What is Inception about?",
    "诺兰导演过哪些电影？",
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times each question is asked")
    run(parser.parse_args().rounds)


def run(rounds: int) -> None:
    """Measure, and print each figure as it comes."""
    print(
        f"Python {platform.python_version()}, {platform.machine()}, questions asked {rounds} times each\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        indexing(Path(folder))
        with Workbench.open(Path(folder) / "films") as wb:
            questions(wb, rounds)
            parallel_steps(wb)
            own_time(wb, rounds * 4)


def indexing(folder: Path) -> None:
    """Index the films, and once more without a change."""
    films = ROOT / "data" / "films.jsonl"
    print(row("index the films", "seconds", "baseline"))
    with Workbench.open(folder / "films") as wb:
        first = seconds(lambda: wb.add_knowledge("film", [films]))
        again = seconds(lambda: wb.add_knowledge("film", [films]))
    print(row("add", f"{first:.1f}", ""))
    print(
        row("  added again, unchanged", f"{again:.2f}", f"{again / first:.1%} of the first time")
    )


def questions(wb: Workbench, rounds: int) -> None:
    """Whole runs, alone and ten at once."""
    wb.ask(QUESTIONS[0], kb="film", session="warm-up")
    alone = sorted(
        seconds(lambda q=q, n=n: wb.ask(q, kb="film", session=f"{n}"))
        for n in range(rounds)
        for q in QUESTIONS
    )
    print("\n" + row("a question, offline defaults", "ms", "baseline: the earlier design"))
    print(row("alone, p50", ms(statistics.median(alone)), "500 mean"))
    print(row("alone, p95", ms(alone[int(len(alone) * 0.95)]), "1000 max"))
    print(row("alone, mean", ms(statistics.mean(alone)), "500 mean"))

    together = sorted(taken for n in range(rounds) for taken in ten_at_once(wb, n))
    print(row("ten at once, p50", ms(statistics.median(together)), "600 mean"))
    print(row("ten at once, p95", ms(together[int(len(together) * 0.95)]), ""))
    print(row("ten at once, mean", ms(statistics.mean(together)), "600 mean"))


def ten_at_once(wb: Workbench, burst: int) -> list[float]:
    """Ten conversations ask at the same moment: seconds until each has its answer."""

    def one(n: int) -> float:
        question = QUESTIONS[n % len(QUESTIONS)]
        return seconds(lambda: wb.ask(question, kb="film", session=f"ten-{burst}-{n}"))

    with ThreadPoolExecutor(10) as pool:
        return list(pool.map(one, range(10)))


def parallel_steps(wb: Workbench) -> None:
    """Four independent steps of half a second each."""

    @wb.tools.tool
    async def half_a_second(query: str) -> list[str]:
        """Take half a second."""
        await asyncio.sleep(0.5)
        return [query]

    steps = [
        PlanStep(
            step_id=f"s{n}", objective="", tool="half_a_second", tool_input={"query": f"q{n}"}
        )
        for n in range(4)
    ]
    print("\n" + row("four steps of 0.5 s", "seconds", "baseline"))
    for mode in ("sequential", "parallel"):

        @wb.register("planner")
        async def fixed(
            query: str, decision: Any, knowledge: Any, tools: Any, mode: Any = mode
        ) -> Plan:
            return Plan(steps=steps, execution_mode=mode)

        taken = seconds(
            lambda: wb.ask("q", kb="film", thresholds={"min_evidence": 0, "min_top_score": 0})
        )
        print(row(mode, f"{taken:.2f}", "2.00 one after the other"))
    wb._planner = None


def own_time(wb: Workbench, rounds: int) -> None:
    """The run's own time outside tools and models, beside a bare graph of the same shape and checkpointer."""

    @wb.tools.tool
    async def nothing(query: str) -> list[str]:
        """Take no time."""
        return ["one"]

    steps = [
        PlanStep(step_id=f"s{n}", objective="", tool="nothing", tool_input={"query": f"q{n}"})
        for n in range(2)
    ]

    @wb.register("planner")
    async def fixed(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        return Plan(steps=steps)

    async def short(state: Any, context: Any) -> dict[str, Any]:
        return {"answer": "one", "citations": []}

    wb.register("handler", short, kb="film")
    enough = {"min_evidence": 0, "min_top_score": 0}
    ours = []
    bare = []
    for n in range(rounds):
        ours.append(
            seconds(lambda n=n: wb.ask("q", kb="film", thresholds=enough, session=f"own-{n}"))
        )
        bare.append(asyncio.run(bare_graph(wb.path / "bare.db", f"bare-{n}")))
    ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    print("\n" + row("a run with nothing to do", "ms", "baseline"))
    print(
        row(
            "ours, p50",
            ms(statistics.median(ours)),
            f"{ms(statistics.median(bare))} a bare graph of the same shape",
        )
    )
    print(row("ratio, median of pairs", f"{ratio:.2f}", "aim: under 1.3"))


def both(old: list[str] | None, new: list[str] | None) -> list[str]:
    """Append."""
    return [*(old or []), *(new or [])]


class Bare(TypedDict, total=False):
    """The state of the bare graph."""

    records: Annotated[list[str], both]


async def bare_graph(path: Path, thread: str) -> float:
    """Seconds of a graph with the same nodes and checkpointer whose nodes do nothing."""
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    async def node(state: Any) -> dict[str, Any]:
        return {}

    def fan(state: Bare) -> Any:
        return (
            [Send("executor", {}), Send("executor", {})]
            if not state.get("records")
            else "reflector"
        )

    async def executor(state: Any) -> dict[str, Any]:
        return {"records": ["r"]}

    def chain(names: list[str], graph: Any) -> None:
        for name in names:
            graph.add_node(name, node)
        for before, after in itertools.pairwise(names):
            graph.add_edge(before, after)

    router = StateGraph(Bare)
    chain(["intent", "policy", "worker"], router)
    router.add_edge(START, "intent")
    child = StateGraph(Bare)
    chain(["planner", "review_plan", "dispatcher"], child)
    child.add_node("executor", executor)
    chain(["reflector", "review_reflect", "merger"], child)
    child.add_edge(START, "planner")
    child.add_conditional_edges("dispatcher", fan, ["executor", "reflector"])
    child.add_edge("executor", "dispatcher")
    child.add_edge("merger", END)
    parent = StateGraph(Bare)
    parent.add_node("route", router.compile())
    parent.add_node("retrieval", child.compile(checkpointer=True))
    chain(["recall", "prepare"], parent)
    chain(["generate", "persist"], parent)
    parent.add_edge(START, "route")
    parent.add_edge("route", "recall")
    parent.add_edge("prepare", "retrieval")
    parent.add_edge("retrieval", "generate")
    connection = await aiosqlite.connect(path)
    try:
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        await connection.execute("PRAGMA synchronous = NORMAL")
        graph = parent.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": thread}}
        began = time.perf_counter()
        async for _ in graph.astream(
            {}, config, stream_mode="custom", subgraphs=True, durability="sync"
        ):
            pass
        await graph.aget_state(config)
        return time.perf_counter() - began
    finally:
        await connection.close()


def seconds(work: Callable[[], object]) -> float:
    """Elapsed time of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ms(value: float) -> str:
    """Seconds as milliseconds."""
    return f"{value * 1000:.0f}"


def row(*cells: str) -> str:
    """One line of the table."""
    return f"{cells[0]:<34}{cells[1]:>10}   {cells[2]}"


if __name__ == "__main__":
    main()
