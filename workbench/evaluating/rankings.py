"""What ranks documents for a question: the plain baselines, a tool by its name, or the whole retrieval graph.

A ranking is the order in which the ids of documents first appear among what was found. The context that an answer is
written from may be cut; a ranking never is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.agents import RetrieveAgent
from workbench.context import Context, KnowledgeBase
from workbench.evaluating.narrowed import OneBase
from workbench.evaluating.rows import Asked
from workbench.route import AGENT_TYPES, make_worker_name
from workbench.tools.hybrid import fuse
from workbench.tools.tool import StepLog, read_input

Ranker = Callable[[Asked, KnowledgeBase], Awaitable[list[str]]]

DEPTH = 100
"""Passages that a baseline ranks."""


def order(doc_ids: Iterable[str]) -> list[str]:
    """Each document at its first appearance; what is of no document has no place.

    >>> order(["a", "", "b", "a"])
    ['a', 'b']
    """
    return [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id]


async def by_words(asked: Asked, knowledge: KnowledgeBase) -> list[str]:
    """BM25 as the index gives it: no names linked, nothing calibrated."""
    return _documents(knowledge, [i for i, _ in knowledge.keyword_search(asked.question, DEPTH)])


async def by_meaning(asked: Asked, knowledge: KnowledgeBase) -> list[str]:
    """Cosine as the index gives it."""
    return _documents(knowledge, [i for i, _ in knowledge.vector_search(asked.question, DEPTH)])


async def by_both(asked: Asked, knowledge: KnowledgeBase) -> list[str]:
    """Reciprocal-rank fusion of the two, constant 60."""
    words, meaning = (
        [chunk_id for chunk_id, _ in search(asked.question, DEPTH)]
        for search in (knowledge.keyword_search, knowledge.vector_search)
    )
    return _documents(knowledge, [chunk_id for chunk_id, _ in fuse([words, meaning])])


BASELINES: Mapping[str, Ranker] = {"bm25": by_words, "dense": by_meaning, "rrf": by_both}
"""In every table."""


def _documents(knowledge: KnowledgeBase, chunk_ids: Sequence[str]) -> list[str]:
    return order(passage["doc_id"] for passage in knowledge.passages(chunk_ids))


def ranker(name: str, context: Context) -> Ranker:
    """What ranks under this name: a baseline, an agent (the whole graph, no answer written), or a tool.

    Raises:
        UnknownTool: lists the known ones.
    """
    if name in BASELINES:
        return BASELINES[name]
    if name in AGENT_TYPES:
        return _agent(name, context)
    tool = context.tools[name]

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> list[str]:
        return order(_of(result) for result in await results_of(tool, asked, knowledge, context))

    return ranked


async def results_of(tool: Any, asked: Asked, knowledge: KnowledgeBase, context: Context) -> Sequence[dict[str, Any]]:
    """What a tool finds for the words of a question, with the budget of a step."""
    return (await called(tool, asked, knowledge, context)).results


async def called(tool: Any, asked: Asked, knowledge: KnowledgeBase, context: Context, **inputs: Any) -> Any:
    """A tool's output for the words of a question, and for whatever else a measure gives it."""
    inputs["query"] = asked.question
    if "top_k" in tool.input_schema.model_fields:
        inputs["top_k"] = context.settings.step_top_k
    return await tool(read_input(tool, inputs), knowledge, StepLog())


def _agent(agent_type: str, context: Context) -> Ranker:
    agents: dict[KnowledgeBase, RetrieveAgent] = {}

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> list[str]:
        if knowledge not in agents:
            over = replace(context, knowledge=OneBase(knowledge))
            agents[knowledge] = RetrieveAgent(make_worker_name(knowledge.name, agent_type), over, _no_other_loop)
        found = await agents[knowledge].aretrieve_with_trace(asked.question, "evaluation")
        return order(_of(result) for result in found["retrieval_results"])

    return ranked


def _no_other_loop(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def _of(result: Mapping[str, Any]) -> str:
    return str(result["metadata"].get("doc_id") or "")
