"""How well documents are ranked: a table of tools over a set of questions with gold documents.

    {"set", "questions", "tools": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ms", "ci", "calibration"}}, "paired"}

BM25, dense and their fusion are always in it. A tool gets the words of a question and nothing else of the row. An
agent's line has its ``steps`` and ``passes`` too, and ``judged``: how many questions lack a gold document among the
first so many, and the AUC with which the first reflection's quality tells them apart. It may be followed by lines that
differ from it in one thing: "fusion_agent without plan". ``calibration`` says how far the scores of a tool can be
believed (``reliability``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from workbench.errors import CorpusError
from workbench.graphs.route import AGENT_TYPES
from workbench.parts.evaluate.measures import (
    Progress,
    Rows,
    Scores,
    compare,
    milliseconds,
    score_rankings,
)
from workbench.parts.evaluate.questions import Row, choose, gold_ids, read_rows
from workbench.parts.evaluate.rankers import (
    BASELINES,
    Ranker,
    RankResult,
    graph_ranker,
    ranker,
    without,
)
from workbench.ports import Context, KnowledgeBase
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.session import Workbench


Claim = tuple[float, bool]
"""The probability that a tool gives a finding, and whether its document is a gold one."""


@dataclass
class Measured:
    """The findings of one tool for each question, by its id, with the seconds they took; and its failures."""

    found: dict[str, RankResult] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


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

    async def ask(self, name: str, rank: Ranker, progress: Progress | None = None) -> Measured:
        """Ask every question; a tool that fails has no results, and its failure is listed."""
        measured = Measured()
        for number, row in enumerate(self.rows, start=1):
            started = time.perf_counter()
            try:
                result = await rank(row["question"], self._knowledge)
            except Exception as error:  # a tool may raise anything, which the table lists
                result = RankResult([])
                measured.failures.append(f"{row['id']}: {type(error).__name__}: {error}")
            measured.found[row["id"]] = result
            measured.seconds.append(time.perf_counter() - started)
            if progress:
                progress(name, number, len(self.rows))
        return measured

    def scores(self, measured: Measured, cuts: Sequence[int]) -> Scores:
        """Score each ranking."""
        return score_rankings(
            self.gold, {name: result.documents for name, result in measured.found.items()}, cuts
        )

    def details(self, name: str, measured: Measured) -> Json:
        """Return what a tool's line has besides its scores."""
        results = measured.found
        line: Json = {"ms": milliseconds(measured.seconds)}
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
        if measured.failures:
            line |= {"failed": len(measured.failures), "failures": measured.failures[:3]}
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
        parts: of ``rankers.WITHOUT``: each agent is asked once more without each of them.
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
        {name: question_set.scores(results, cuts) for name, results in measured.items()},
    )
    for name, line in table["tools"].items():
        line |= question_set.details(name, measured[name])
    about = base.inspect()
    models = {name: about[name] for name in ("embedding_model", "reranker")}
    names = sorted({context.settings.role_model(role) for role in context.models})
    models["language_model"] = ", ".join(names) or "none"
    lost = {"gold_not_in_base": question_set.lost} if question_set.lost else {}
    return Rows(set=base.name, questions=len(question_set.rows), **lost, **table, models=models)


def _rankers(
    wb: Workbench, tools: Sequence[Any], parts: Sequence[str], context: Context
) -> dict[str, Ranker]:
    """Return what ranks by each name: the tools, each agent without each part, and the baselines."""
    rankers: dict[str, Ranker] = {}
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
    return {**rankers, **{name: rank for name, rank in BASELINES.items() if name not in rankers}}


def reliability(claims: Sequence[Claim]) -> Json:
    """Compare the probabilities of findings with the share of them that is right.

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
