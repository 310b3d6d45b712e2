"""How well documents are ranked: a table of tools over a set of questions with gold documents.

    {"set", "questions", "tools": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ms", "ci", "calibration"}}, "paired"}

BM25, dense and their fusion are always in it. A tool gets the words of a question and nothing else of the row. An
agent's line has its ``steps`` and ``passes`` too, and ``judged``: how many questions lack a gold document among the
first so many, and the AUC with which the first reflection's quality tells them apart. It may be followed by lines that
differ from it in one thing: "fusion_agent without plan". ``calibration`` says how far the scores of a tool can be
believed (``reliability``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from workbench.errors import CorpusError, ToolError
from workbench.graphs.plan import RulePlanner
from workbench.graphs.route import AGENT_TYPES, make_worker_name
from workbench.parts.agent.pool import AgentPool
from workbench.parts.evaluate.measures import (
    Rows,
    compare,
    milliseconds,
    score_rankings,
)
from workbench.parts.evaluate.questions import Row, choose, distinct, gold_ids, read_rows
from workbench.ports import Context, KnowledgeBase
from workbench.session import Workbench
from workbench.state import Data, Json, Progress, drop, pick
from workbench.tools.scoring import rrf
from workbench.tools.tool import StepLog, read_input

# --- Rankings: the order in which the ids of documents first appear among what was found, never cut ---


class RankResult(NamedTuple):
    """The ranking of a question.

    Attributes:
        documents: their ids, best first, each once.
        scores: document and probability of every passage; empty without probabilities.
        steps: how many steps ran.
        passes: how often the evidence was judged.
        quality: how well the first pass covers the question; None without a judgement.
        seconds: that it took.
        failure: why nothing was found.
    """

    documents: list[str]
    scores: Sequence[tuple[str, float]] = ()
    steps: int = 1
    passes: int = 1
    quality: float | None = None
    seconds: float = 0.0
    failure: str = ""


Ranker = Callable[[str, KnowledgeBase], Awaitable[RankResult]]
"""It gets the words of a question, and nothing else of its row."""

WITHOUT: Mapping[str, Data] = {
    "plan": {"planner": "one_step"},
    "reflect": {"max_iterations": 1},
    "merge": {"merge": "as_found"},
}
"""A part of the retrieval graph -> the setting that leaves it out: one search whatever is asked; one pass; the findings
as the steps gave them, one step behind the other."""


def _baseline(*kinds: Any) -> Ranker:
    """Return what ranks as the index does: no names linked, nothing calibrated; of several by reciprocal rank."""

    async def rank(question: str, knowledge: KnowledgeBase) -> RankResult:
        ranking = rrf({kind: knowledge.search(kind, question, 100) for kind in kinds})
        passages = knowledge.passages([chunk_id for chunk_id, _ in ranking])
        return RankResult(distinct(passage["doc_id"] for passage in passages))

    return rank


BASELINES: Mapping[str, Ranker] = {
    "bm25": _baseline("words"),
    "dense": _baseline("meaning"),
    "rrf": _baseline("words", "meaning"),
}
"""In every table."""


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


def without(part: str, context: Context) -> Context:
    """Return the ports of a retrieval graph without one of its parts.

    Raises:
        ToolError: there is no such part.
    """
    if part not in WITHOUT:
        raise ToolError(
            f"The retrieval graph has no part {part!r} to leave out. Parts: {', '.join(WITHOUT)}."
        )
    new = context.settings.with_changes(WITHOUT[part])
    by_rules = part == "plan" or isinstance(context.planner, RulePlanner)
    planner = RulePlanner(new) if by_rules else context.planner
    return replace(context, settings=new, planner=planner)


async def run_tool(
    tool: Any, question: str, knowledge: KnowledgeBase, context: Context
) -> Sequence[Json]:
    """Return what a tool finds for the words of a question, with the budget of a step."""
    values: Json = {"query": question}
    if "top_k" in tool.input_schema.model_fields:
        values["top_k"] = context.settings.step_top_k
    return (await tool(read_input(tool, values), knowledge, StepLog())).results


def _agent(agent_type: str, context: Context) -> Ranker:
    agents = AgentPool(lambda: context, asyncio.run)

    async def rank(question: str, knowledge: KnowledgeBase) -> RankResult:
        agent = agents.get(make_worker_name(knowledge.name, agent_type))
        state, log = await agent.walk(question, "evaluation")
        nodes = [entry["node"] for entry in log]
        return _result(state["merged"]["retrieval_results"])._replace(
            steps=nodes.count("executor"),
            passes=nodes.count("reflector"),
            quality=state["reflections"][0]["signals"].get("probability"),
        )

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


def _result(results: Sequence[Data]) -> RankResult:
    names = [str(result["metadata"].get("doc_id") or "") for result in results]
    scores = [
        (name, float(result["score"]))
        for name, result in zip(names, results, strict=True)
        if name and result["source_type"] == "chunk"
    ]
    return RankResult(distinct(names), scores)


# --- Their table ---


class QuestionSet:
    """Questions with the ids of their gold documents, over a knowledge base.

    Args:
        rows: as they were chosen.
        knowledge: what is searched.
        gold: the field with the gold documents.

    Raises:
        CorpusError: a question has no gold documents, or the base holds none of them.
    """

    def __init__(self, rows: Sequence[Row], knowledge: KnowledgeBase, gold: str = "gold"):
        self.rows = rows
        self._knowledge = knowledge
        self.gold = {row["id"]: gold_ids(row, gold) for row in rows}
        documents = sorted({doc_id for ids in self.gold.values() for doc_id in ids})
        self.lost = len(documents) - len(
            {passage["doc_id"] for passage in knowledge.passages(doc_ids=documents)}
        )
        if self.lost == len(documents):
            raise CorpusError(
                f"Knowledge base {knowledge.name!r} holds none of the gold documents, such as {documents[0]!r}. "
                "Name the base that these questions are about with --kb."
            )
        knowledge.warm()

    async def ask(
        self, name: str, rank: Ranker, progress: Progress | None
    ) -> dict[str, RankResult]:
        """Ask every question, and return what was found by its id; of a tool that fails, why."""
        results = {}
        for number, row in enumerate(self.rows, start=1):
            started = time.perf_counter()
            try:
                result = await rank(row["question"], self._knowledge)
            except Exception as error:  # a tool may raise anything, which the table lists
                result = RankResult([], failure=f"{row['id']}: {type(error).__name__}: {error}")
            results[row["id"]] = result._replace(seconds=time.perf_counter() - started)
            if progress:
                progress(name, number, len(self.rows))
        return results

    def details(self, name: str, results: Mapping[str, RankResult]) -> Json:
        """Return what a tool's line has besides its scores."""
        line: Json = {"ms": milliseconds([f.seconds for f in results.values()])}
        claims = [
            [(p, doc in self.gold[i]) for doc, p in f.scores]
            for i, f in results.items()
            if f.scores
        ]
        if claims:
            best = [max(group, key=lambda claim: claim[0]) for group in claims]
            line["calibration"] = {**reliability([*chain(*claims)]), "first": reliability(best)}
        if name.split()[0] in AGENT_TYPES:
            line |= {
                key: round(np.mean([getattr(f, key) for f in results.values()]), 2)
                for key in ("steps", "passes")
            }
            line["judged"] = self._judged(results)
        if failures := [f.failure for f in results.values() if f.failure]:
            line |= {"failed": len(failures), "failures": failures[:3]}
        return line

    def _judged(self, results: Mapping[str, RankResult]) -> Json:
        """Return how many questions lack a document, and how well the first reflection tells these from the others."""
        # Documents in which a gold one must be, for the evidence to be complete.
        judged = [
            (f.quality, set(self.gold[i]) <= set(f.documents[:5]))
            for i, f in results.items()
            if f.quality is not None
        ]
        complete = [quality for quality, is_complete in judged if is_complete]
        incomplete = [quality for quality, is_complete in judged if not is_complete]
        pairs = len(complete) * len(incomplete)
        auc = (
            round(stats.mannwhitneyu(complete, incomplete).statistic / pairs, 3)
            if pairs
            else None
        )
        return {"questions": len(judged), "incomplete": len(incomplete), "auc": auc}


def eval_retrieval(
    wb: Workbench,
    kb: str,
    questions: Path,
    *,
    tools: Sequence[Any] = (),
    parts: Sequence[str] = (),
    cuts: Sequence[int] = (1, 2, 5, 10),
    gold: str = "gold",
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Rows:
    """Ask every question of every tool, and return the table of the module's docstring, with the models' names.

    Args:
        wb: an open workspace.
        kb: the knowledge base to search.
        questions: JSON Lines: ``id``, ``question``, the gold documents, and whatever else.
        tools: the first one is what all others are compared with; the baselines follow. Recorded graphs are tools too,
            and ``"module:graph"`` names one: what is measured are the documents that it finds.
        parts: of ``WITHOUT``: each agent is asked once more without each of them.
        cuts: the k of ``R@k`` and ``all@k``.
        gold: the field with the ids of the gold documents.
        where: only questions that hold these values.
        limit: only so many of them.
        progress: called after each question.

    Raises:
        CorpusError: a question has no gold documents, or the base holds none of them.
        ToolError: there is no such part to leave out.
        UnknownTool: lists the known ones.
        MissingExtra: ir-measures is not installed.
    """
    base = wb.knowledge.get(kb)
    context = wb.ports()
    # an unknown one is an error before the first question
    rankers = _rankers(wb, tools, parts, context)
    question_set = QuestionSet(
        choose(read_rows(questions, "id", "question"), where, limit), base, gold
    )

    async def measure() -> Json:
        return {
            name: await question_set.ask(name, rank, progress) for name, rank in rankers.items()
        }

    measured = wb.call(measure())
    table = compare(
        "tool",
        question_set.rows,
        {
            name: score_rankings(
                question_set.gold, {i: f.documents for i, f in results.items()}, cuts
            )
            for name, results in measured.items()
        },
    )
    for name, line in table["tools"].items():
        line |= question_set.details(name, measured[name])
    about = base.inspect()
    models = pick(about, "embedding_model", "reranker")
    names = sorted({context.settings.role_model(role) for role in context.models})
    models["language_model"] = ", ".join(names) or "none"
    lost = {"gold_not_in_base": question_set.lost} if question_set.lost else {}
    return Rows(set=base.name, questions=len(question_set.rows), **lost, **table, models=models)


def _rankers(
    wb: Workbench, tools: Sequence[Any], parts: Sequence[str], context: Context
) -> dict[str, Ranker]:
    """Return what ranks by each name: the tools, each agent without each part, and the baselines."""
    rankers = {}
    for tool in tools:
        if not isinstance(tool, str) or ":" in tool:
            agent = wb.record(tool) if isinstance(tool, str) else tool
            rankers[agent.name] = graph_ranker(agent)
            continue
        rankers[tool] = ranker(tool, context)
        if tool in AGENT_TYPES:
            rankers |= {
                f"{tool} without {part}": ranker(tool, without(part, context)) for part in parts
            }
    return {**rankers, **drop(BASELINES, *rankers)}


def reliability(claims: Sequence[tuple[float, bool]]) -> Json:
    """Compare the probabilities of findings with the share of them whose documents are gold ones.

    ``ECE`` is the distance of the two, averaged over ten equally wide bins by the findings in them (Guo et al. 2017).

    >>> found = reliability([(0.9, True), (0.9, True), (0.2, False), (0.2, True)])
    >>> found["ECE"], found["Brier"], [(b["said"], b["right"]) for b in found["bins"]]
    (0.2, 0.175, [(0.2, 0.5), (0.9, 1.0)])
    """
    most_bins = 10
    import pandas

    frame = pandas.DataFrame(claims, columns=["said", "right"], dtype=float)
    low = (frame["said"] * most_bins).astype(int).clip(upper=most_bins - 1) / most_bins
    bins = frame.groupby(low.rename("low")).mean().assign(findings=frame.groupby(low).size())
    error = ((bins["said"] - bins["right"]).abs() * bins["findings"]).sum() / max(1, len(frame))
    brier = ((frame["said"] - frame["right"]) ** 2).mean()
    figures = {**frame.mean(), "ECE": error, "Brier": brier}
    return {
        "findings": len(frame),
        **{
            name: round(float(value), 4) if len(frame) else 0.0 for name, value in figures.items()
        },
        "bins": bins.round(4).reset_index().to_dict("records"),
    }
