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
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from workbench.errors import CorpusError
from workbench.graphs.route import AGENT_TYPES
from workbench.knowledge.library import Library
from workbench.parts.evaluate.measures import (
    Progress,
    Rows,
    Scores,
    compare,
    milliseconds,
    scipy_stats,
    scores_of,
)
from workbench.parts.evaluate.questions import Row, choose, gold_of, read_rows
from workbench.parts.evaluate.rankers import BASELINES, Found, Ranker, ranker, without
from workbench.ports import Context, KnowledgeBase
from workbench.state import Data, Json

CUTS = (1, 2, 5, 10)
FIRST = 5
"""Documents in which a gold one must be, for the evidence to be complete."""
BINS = 10

Claim = tuple[float, bool]
"""The probability that a tool gives a finding, and whether its document is a gold one."""


class Bench(Protocol):
    """Whose knowledge bases and tools are measured: a ``Workbench``."""

    knowledge: Library

    def ports(self) -> Context:
        """Return the ports that nodes see."""

    def call(self, work: Coroutine[Any, Any, Json]) -> Json:
        """Wait for what is measured."""


@dataclass
class Measured:
    """The findings of one tool for each question, by its id, with the seconds they took; and its failures."""

    found: dict[str, Found] = field(default_factory=dict)
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
        self.rows, self._knowledge = rows, knowledge
        self.gold = {row["id"]: gold_of(row, gold) for row in rows}
        wanted = sorted({doc_id for ids in self.gold.values() for doc_id in ids})
        self.lost = len(wanted) - len({passage["doc_id"] for passage in knowledge.passages_of(wanted)})
        if self.lost == len(wanted):
            raise CorpusError(
                f"Knowledge base {knowledge.name!r} holds none of the gold documents, such as {wanted[0]!r}. "
                "Name the base that these questions are about with --kb."
            )
        knowledge.warm()

    async def ask(self, name: str, rank: Ranker, progress: Progress | None = None) -> Measured:
        """Ask every question; a tool that fails has found nothing, and its failure is kept."""
        measured = Measured()
        for number, row in enumerate(self.rows, start=1):
            begun = time.perf_counter()
            try:
                found = await rank(row["question"], self._knowledge)
            except Exception as error:  # a tool may raise anything, and the table says so
                found = Found([])
                measured.failures.append(f"{row['id']}: {type(error).__name__}: {error}")
            measured.found[row["id"]] = found
            measured.seconds.append(time.perf_counter() - begun)
            if progress:
                progress(name, number, len(self.rows))
        return measured

    def scores(self, measured: Measured, cuts: Sequence[int]) -> Scores:
        """Score each ranking."""
        return scores_of(self.gold, {name: found.documents for name, found in measured.found.items()}, cuts)

    def details(self, name: str, measured: Measured) -> Json:
        """Return what a tool's line has besides its scores."""
        found = measured.found
        line: Json = {"ms": milliseconds(measured.seconds)}
        claims = [[(p, doc in self.gold[i]) for doc, p in one.scores] for i, one in found.items() if one.scores]
        if claims:
            best = [max(part, key=lambda claim: claim[0]) for part in claims]
            every = [claim for part in claims for claim in part]
            line["calibration"] = {**reliability(every), "first": reliability(best)}
        if name.split()[0] in AGENT_TYPES:
            line |= {key: round(np.mean([getattr(f, key) for f in found.values()]), 2) for key in ("steps", "passes")}
            line["judged"] = self._judged(found)
        if measured.failures:
            line |= {"failed": len(measured.failures), "failures": measured.failures[:3]}
        return line

    def _judged(self, found: Mapping[str, Found]) -> Json:
        """Return how many questions lack a document, and how well the first reflection tells these from the others."""
        judged = [
            (f.quality, set(self.gold[i]) <= set(f.documents[:FIRST]))
            for i, f in found.items()
            if f.quality is not None
        ]
        whole = [quality for quality, complete in judged if complete]
        poor = [quality for quality, complete in judged if not complete]
        pairs = len(whole) * len(poor)
        auc = round(scipy_stats().mannwhitneyu(whole, poor).statistic / pairs, 3) if pairs else None
        return {"questions": len(judged), "incomplete": len(poor), "auc": auc}


def eval_retrieval(
    bench: Bench,
    kb: str,
    questions: Path,
    *,
    tools: Sequence[str] = (),
    parts: Sequence[str] = (),
    cuts: Sequence[int] = CUTS,
    gold: str = "gold",
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Rows:
    """Ask every question of every tool, and return the table of the module's docstring, with the models' names.

    Args:
        bench: an open workspace.
        kb: the knowledge base to search.
        questions: JSON Lines: ``id``, ``question``, the gold documents, and whatever else.
        tools: the first one is what all others are compared with; the baselines follow.
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
    base, context = bench.knowledge.get(kb), bench.ports()
    rankers = _rankers(tools, parts, context)  # an unknown one is an error before the first question
    asked = QuestionSet(choose(read_rows(questions, "id", "question"), where, limit), base, gold)

    async def measure() -> Json:
        return {name: await asked.ask(name, rank, progress) for name, rank in rankers.items()}

    measured = bench.call(measure())
    table = compare("tool", asked.rows, {name: asked.scores(one, cuts) for name, one in measured.items()})
    for name, line in table["tools"].items():
        line |= asked.details(name, measured[name])
    about = base.describe()
    models = {name: about[name] for name in ("embedding_model", "reranker")}
    names = sorted({context.settings.model_of(role) for role in context.models})
    models["language_model"] = ", ".join(names) or "none"
    lost = {"gold_not_in_base": asked.lost} if asked.lost else {}
    return Rows(set=base.name, questions=len(asked.rows), **lost, **table, models=models)


def _rankers(tools: Sequence[str], parts: Sequence[str], context: Context) -> dict[str, Ranker]:
    """Return what ranks by each name: the tools, each agent without each part, and the baselines."""
    rankers: dict[str, Ranker] = {}
    for tool in tools:
        rankers[tool] = ranker(tool, context)
        if tool in AGENT_TYPES:
            rankers |= {f"{tool} without {part}": ranker(tool, without(part, context)) for part in parts}
    return {**rankers, **{name: rank for name, rank in BASELINES.items() if name not in rankers}}


def reliability(claims: Sequence[Claim]) -> Json:
    """Hold the probabilities of findings against what share of them is right.

    ``ECE`` is the distance of the two, averaged over ten equally wide bins by the findings in them (Guo et al. 2017).

    >>> found = reliability([(0.9, True), (0.9, True), (0.2, False), (0.2, True)])
    >>> found["ECE"], found["Brier"], [(b["said"], b["right"]) for b in found["bins"]]
    (0.2, 0.175, [(0.2, 0.5), (0.9, 1.0)])
    """
    import pandas

    frame = pandas.DataFrame(claims, columns=["said", "right"], dtype=float)
    low = (frame["said"] * BINS).astype(int).clip(upper=BINS - 1) / BINS
    bins = frame.groupby(low.rename("low")).mean().assign(findings=frame.groupby(low).size())
    error = ((bins["said"] - bins["right"]).abs() * bins["findings"]).sum() / max(1, len(frame))
    brier = ((frame["said"] - frame["right"]) ** 2).mean()
    figures = {**frame.mean(), "ECE": error, "Brier": brier}
    return {
        "findings": len(frame),
        **{name: round(float(value), 4) if len(frame) else 0.0 for name, value in figures.items()},
        "bins": bins.round(4).reset_index().to_dict("records"),
    }


def bins_of(table: Data) -> list[Json]:
    """Return the bins of every tool as rows, for the reliability diagram."""
    lines = {tool: line["calibration"] for tool, line in table["tools"].items() if "calibration" in line}
    return [{"tool": tool, **part} for tool, line in lines.items() for part in line["bins"]]
