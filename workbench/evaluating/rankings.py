"""What ranks documents for a question: the plain baselines, a tool by its name, or the whole retrieval graph.

A ranking is the order in which the ids of documents first appear among what was found. The context that an answer is
written from may be cut; a ranking never is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from workbench.agents import RetrieveAgent
from workbench.context import Context, KnowledgeBase
from workbench.errors import ToolError
from workbench.evaluating.narrowed import OneBase
from workbench.evaluating.rows import Asked
from workbench.retrieval.plan import RulePlanner
from workbench.route import AGENT_TYPES, make_worker_name
from workbench.tools.hybrid import fuse
from workbench.tools.tool import StepLog, read_input


class Found(NamedTuple):
    """What was found for a question.

    Attributes:
        documents: their ids, best first, each once.
        said: document and probability of every passage that was found; empty where nothing says one.
        steps: how many steps ran.
        passes: how often what was found was judged.
    """

    documents: list[str]
    said: Sequence[tuple[str, float]] = ()
    steps: int = 1
    passes: int = 1


Ranker = Callable[[Asked, KnowledgeBase], Awaitable[Found]]

WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "plan": {"planner": "one_step"},
    "reflect": {"max_iterations": 1},
    "merge": {"merge": "as_found"},
}
"""A part of the retrieval graph -> the setting that leaves it out: one search whatever is asked; one pass; the findings
as the steps gave them, one step behind the other."""

DEPTH = 100
"""Passages that a baseline ranks."""


def order(doc_ids: Iterable[str]) -> list[str]:
    """Each document at its first appearance; what is of no document has no place.

    >>> order(["a", "", "b", "a"])
    ['a', 'b']
    """
    return [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id]


async def by_words(asked: Asked, knowledge: KnowledgeBase) -> Found:
    """BM25 as the index gives it: no names linked, nothing calibrated."""
    return _documents(knowledge, [i for i, _ in knowledge.keyword_search(asked.question, DEPTH)])


async def by_meaning(asked: Asked, knowledge: KnowledgeBase) -> Found:
    """Cosine as the index gives it."""
    return _documents(knowledge, [i for i, _ in knowledge.vector_search(asked.question, DEPTH)])


async def by_both(asked: Asked, knowledge: KnowledgeBase) -> Found:
    """Reciprocal-rank fusion of the two, constant 60."""
    words, meaning = (
        [chunk_id for chunk_id, _ in search(asked.question, DEPTH)]
        for search in (knowledge.keyword_search, knowledge.vector_search)
    )
    return _documents(knowledge, [chunk_id for chunk_id, _ in fuse([words, meaning])])


BASELINES: Mapping[str, Ranker] = {"bm25": by_words, "dense": by_meaning, "rrf": by_both}
"""In every table."""


def _documents(knowledge: KnowledgeBase, chunk_ids: Sequence[str]) -> Found:
    return Found(order(passage["doc_id"] for passage in knowledge.passages(chunk_ids)))


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

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> Found:
        return _found(await results_of(tool, asked, knowledge, context))

    return ranked


def changed(context: Context, settings: Mapping[str, Any]) -> Context:
    """The ports with other settings; whoever plans by rules plans by them."""
    new = context.settings.model_copy(update=settings)
    rules = isinstance(context.planner, RulePlanner) or "planner" in settings
    return replace(context, settings=new, planner=RulePlanner(new) if rules else context.planner)


def without(part: str, context: Context) -> Context:
    """The ports of a retrieval graph without one of its parts.

    Raises:
        ToolError: there is no such part.
    """
    if part not in WITHOUT:
        raise ToolError(f"The retrieval graph has no part {part!r} to leave out. Parts: {', '.join(WITHOUT)}.")
    return changed(context, WITHOUT[part])


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

    async def ranked(asked: Asked, knowledge: KnowledgeBase) -> Found:
        if knowledge not in agents:
            over = replace(context, knowledge=OneBase(knowledge))
            agents[knowledge] = RetrieveAgent(make_worker_name(knowledge.name, agent_type), over, _no_other_loop)
        found = await agents[knowledge].aretrieve_with_trace(asked.question, "evaluation")
        nodes = [entry["node"] for entry in found["execution_log"]]
        return _found(found["retrieval_results"], nodes.count("executor"), nodes.count("reflector"))

    return ranked


def _no_other_loop(work: Any) -> Any:
    raise RuntimeError("a measure is already in a loop")


def _found(results: Sequence[Mapping[str, Any]], steps: int = 1, passes: int = 1) -> Found:
    passages = [(_of(result), float(result["score"])) for result in results if result["source_type"] == "chunk"]
    return Found(order(map(_of, results)), [said for said in passages if said[0]], steps, passes)


def _of(result: Mapping[str, Any]) -> str:
    return str(result["metadata"].get("doc_id") or "")
