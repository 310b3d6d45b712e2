"""Rankings of documents for a question: by the baselines, by a tool, or by the whole retrieval graph.

A ranking is the order in which the ids of documents first appear among what was found. The context that an answer is
written from may be cut; a ranking never is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from workbench.errors import ToolError
from workbench.graphs.plan import RulePlanner
from workbench.graphs.route import AGENT_TYPES, make_worker_name
from workbench.parts.agent.pool import RetrieveAgent
from workbench.parts.evaluate.questions import distinct
from workbench.ports import Context, KnowledgeBase
from workbench.state import Data, Json
from workbench.tools.scoring import rrf
from workbench.tools.tool import StepLog, read_input


class RankResult(NamedTuple):
    """The ranking of a question.

    Attributes:
        documents: their ids, best first, each once.
        scores: document and probability of every passage; empty without probabilities.
        steps: how many steps ran.
        passes: how often the evidence was judged.
        quality: how well the first pass covers the question; None without a judgement.
    """

    documents: list[str]
    scores: Sequence[tuple[str, float]] = ()
    steps: int = 1
    passes: int = 1
    quality: float | None = None


Ranker = Callable[[str, KnowledgeBase], Awaitable[RankResult]]
"""It gets the words of a question, and nothing else of its row."""

WITHOUT: Mapping[str, Data] = {
    "plan": {"planner": "one_step"},
    "reflect": {"max_iterations": 1},
    "merge": {"merge": "as_found"},
}
"""A part of the retrieval graph -> the setting that leaves it out: one search whatever is asked; one pass; the findings
as the steps gave them, one step behind the other."""

DEPTH = 100
"""Passages that a baseline ranks."""


async def by_words(question: str, knowledge: KnowledgeBase) -> RankResult:
    """Rank by BM25 as the index gives it: no names linked, nothing calibrated."""
    return _documents(knowledge, knowledge.search("words", question, DEPTH))


async def by_meaning(question: str, knowledge: KnowledgeBase) -> RankResult:
    """Rank by cosine as the index gives it."""
    return _documents(knowledge, knowledge.search("meaning", question, DEPTH))


async def by_both(question: str, knowledge: KnowledgeBase) -> RankResult:
    """Rank by reciprocal-rank fusion of the two, constant 60."""
    rankings = {
        "bm25": knowledge.search("words", question, DEPTH),
        "dense": knowledge.search("meaning", question, DEPTH),
    }
    return _documents(knowledge, rrf(rankings))


BASELINES: Mapping[str, Ranker] = {"bm25": by_words, "dense": by_meaning, "rrf": by_both}
"""In every table."""


def _documents(knowledge: KnowledgeBase, ranking: Sequence[tuple[str, float]]) -> RankResult:
    passages = knowledge.passages([chunk_id for chunk_id, _ in ranking])
    return RankResult(distinct(passage["doc_id"] for passage in passages))


def ranker(name: str, context: Context) -> Ranker:
    """Return what ranks by this name: a baseline, an agent (the whole graph, no answer written), or a tool.

    Raises:
        UnknownTool: lists the known ones.
    """
    if name in BASELINES:
        return BASELINES[name]
    if name in AGENT_TYPES:
        return _agent(name, context)
    tool = context.tools[name]

    async def rank(question: str, knowledge: KnowledgeBase) -> RankResult:
        return _result(await run_tool(tool, question, knowledge, context))

    return rank


def change(context: Context, settings: Data) -> Context:
    """Return the ports with other settings; the rules plan by them."""
    new = context.settings.with_changes(settings)
    rules = isinstance(context.planner, RulePlanner) or "planner" in settings
    return replace(context, settings=new, planner=RulePlanner(new) if rules else context.planner)


def without(part: str, context: Context) -> Context:
    """Return the ports of a retrieval graph without one of its parts.

    Raises:
        ToolError: there is no such part.
    """
    if part not in WITHOUT:
        raise ToolError(
            f"The retrieval graph has no part {part!r} to leave out. Parts: {', '.join(WITHOUT)}."
        )
    return change(context, WITHOUT[part])


async def run_tool(
    tool: Any, question: str, knowledge: KnowledgeBase, context: Context
) -> Sequence[Json]:
    """Return what a tool finds for the words of a question, with the budget of a step."""
    values: Json = {"query": question}
    if "top_k" in tool.input_schema.model_fields:
        values["top_k"] = context.settings.step_top_k
    return (await tool(read_input(tool, values), knowledge, StepLog())).results


def _agent(agent_type: str, context: Context) -> Ranker:
    @cache
    def make_agent(kb: str) -> RetrieveAgent:
        return RetrieveAgent(make_worker_name(kb, agent_type), context, _no_other_loop)

    async def rank(question: str, knowledge: KnowledgeBase) -> RankResult:
        state, log = await make_agent(knowledge.name).walk(question, "evaluation")
        nodes = [entry["node"] for entry in log]
        result = _result(
            state["merged"]["retrieval_results"],
            nodes.count("executor"),
            nodes.count("reflector"),
        )
        return result._replace(quality=state["reflections"][0]["signals"].get("probability"))

    return rank


def graph_ranker(agent: Any) -> Ranker:
    """Return what ranks by the documents that a recorded graph finds."""

    async def rank(question: str, knowledge: KnowledgeBase) -> RankResult:
        run = await asyncio.to_thread(agent.ask, question)
        if run.status != "done":
            raise ToolError(
                f"{agent.name} is {run.status} at {question!r}: a graph that asks cannot be measured."
            )
        return _result(run.evidence)

    return rank


def _no_other_loop(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def _result(results: Sequence[Data], steps: int = 1, passes: int = 1) -> RankResult:
    names = [str(result["metadata"].get("doc_id") or "") for result in results]
    scores = [
        (name, float(result["score"]))
        for name, result in zip(names, results, strict=True)
        if name and result["source_type"] == "chunk"
    ]
    return RankResult(distinct(names), scores, steps, passes)
