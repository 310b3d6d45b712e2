"""Measure what it costs to record a graph: ``python -m experiments.recording [--nodes 20] [--rounds 30]``.

A chain of nodes runs bare and recorded, both on the workspace's SQLite saver (LangGraph's own waits for the disk at
each write, and would make recording look cheap); once with trivial nodes, once with nodes that take 20 ms. Rounds
alternate, so that both see the same machine. Printed: p50 per node, and the ratio with its 95 % bootstrap interval
over rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
from langgraph.graph import START, StateGraph
from scipy.stats import bootstrap

from workbench.records.checkpoints import Checkpoints
from workbench.session import Workbench


class State(TypedDict):
    """What the nodes write."""

    log: Annotated[list[int], operator.add]


def chain(nodes: int, seconds: float) -> StateGraph[State]:
    """Return a chain of nodes that each wait so long."""

    def step(number: int) -> Any:
        async def node(state: State) -> Any:
            if seconds:
                await asyncio.sleep(seconds)
            return {"log": [number]}

        return node

    graph = StateGraph(State)
    graph.add_sequence([(f"node{number}", step(number)) for number in range(nodes)])
    graph.add_edge(START, "node0")
    return graph


def main() -> None:
    """Print a line for each kind of node."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Workbench.open(folder) as wb:
        for seconds in (0.0, 0.02):
            graph = chain(given.nodes, seconds)
            saver = Checkpoints.open(Path(folder) / f"bare {seconds}.db")
            bare = graph.compile(checkpointer=saver)
            recorded = wb.record(graph.compile(), f"chain {seconds}")
            times = np.array(
                [[_bare(bare, n), _recorded(recorded)] for n in range(given.rounds + 2)][2:]
            )
            per_node = np.median(times, axis=0) / given.nodes * 1000
            ratio = times[:, 1] / times[:, 0]
            low, high = bootstrap(
                (ratio,), np.median, method="percentile", random_state=1
            ).confidence_interval
            print(
                f"nodes of {seconds * 1000:g} ms: bare {per_node[0]:.2f} ms a node, recorded {per_node[1]:.2f} "
                f"({per_node[1] - per_node[0]:+.2f} ms); ratio {np.median(ratio):.2f} [{low:.2f}, {high:.2f}]"
            )


def _bare(graph: Any, number: int) -> float:
    began = time.perf_counter()
    config = {"configurable": {"thread_id": str(number)}}
    asyncio.run(graph.ainvoke({"log": []}, config, durability="sync"))
    return time.perf_counter() - began


def _recorded(agent: Any) -> float:
    began = time.perf_counter()
    agent.ask({"log": []})
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
