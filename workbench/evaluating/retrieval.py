"""How well documents are ranked: a table of tools over a set of questions with gold documents.

    {"set", "questions", "tools": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ms", "ci", "calibration"}}, "paired"}

BM25, dense and their fusion are always in it. A tool gets the words of a question, and its conversation as a narrower
base, and nothing else of the row. An agent's line has its ``steps`` and ``passes`` too, and ``judged``: how many
questions lack a gold document among the first so many, and the AUC with which the first reflection's quality tells
them apart. It may be followed by lines that differ from it in one thing: "fusion_agent without plan". ``calibration``
says how far the scores of a tool can be believed (``reliability``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from workbench.errors import CorpusError
from workbench.evaluating.rankings import (
    BASELINES,
    Asked,
    Found,
    Narrowed,
    Ranker,
    Row,
    asked_of,
    chosen,
    documents_by,
    listed,
    ranker,
    read_rows,
    without,
)
from workbench.evaluating.statistics import (
    Progress,
    Scores,
    compare,
    frame_text,
    measures,
    scipy_stats,
    scores_of,
    spread,
)
from workbench.evaluating.statistics import table_text as ranking_text
from workbench.graphs.route import AGENT_TYPES
from workbench.knowledge.library import Library
from workbench.ports import Context, KnowledgeBase

CUTS = (1, 2, 5, 10)
FIRST = 5
"""Documents in which a gold one must be, for the evidence to be complete."""
OWN = "conv"
"""The one field of a question, besides its words, that may say where to look."""
BINS = 10

Claim = tuple[float, bool]
"""The probability that a tool gives a finding, and whether its document is a gold one."""


@dataclass
class Measured:
    """The findings of one tool for each question, by its id, with the seconds they took; and its failures."""

    found: dict[str, Found]
    seconds: dict[str, float]
    failures: list[str]


class Bench(Protocol):
    """Whose knowledge bases and tools are measured: a ``Workbench``."""

    knowledge: Library

    def ports(self) -> Context:
        """The ports that nodes see."""

    def call(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Wait for what is measured."""


@dataclass
class Measure:
    """A set that is asked: its questions, their gold documents, and the base of each.

    Attributes:
        name: of the base.
        rows: as they were chosen.
        gold: question -> ids of documents.
        lost: how many of these the base does not have.
        progress: called after each question.
    """

    name: str
    rows: Sequence[Row]
    gold: Mapping[str, list[str]]
    lost: int
    asked: Sequence[Asked]
    base_of: Callable[[Asked], KnowledgeBase]
    progress: Progress | None

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        knowledge: KnowledgeBase,
        gold: str = "gold",
        docs: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Measure:
        """Read what a question is asked of and what is right.

        Raises:
            CorpusError: a question has no gold documents, or the base holds none of them.
        """
        wanted = {row["id"]: listed(row, gold) for row in rows}
        lost, asked = _lost(wanted, knowledge), [asked_of(row) for row in rows]
        knowledge.warm()
        return cls(knowledge.name, rows, wanted, lost, asked, _bases(asked, knowledge, docs or {}), progress)

    async def ask(self, name: str, rank: Ranker) -> Measured:
        """Ask every question, each of its base; a tool that fails has found nothing, and its failure is kept."""
        bases = {one.id: self.base_of(one) for one in self.asked}  # where one has none, that is an error before any
        measured = Measured({}, {}, [])
        for number, one in enumerate(self.asked, start=1):
            begun, base = time.perf_counter(), bases[one.id]
            try:
                found = await rank(one, base)
            except Exception as error:  # a tool may raise anything, and the table says so
                found = Found([])
                measured.failures.append(f"{one.id}: {type(error).__name__}: {error}")
            within = base.within(found.documents) if isinstance(base, Narrowed) else found.documents
            measured.found[one.id] = found._replace(documents=within)
            measured.seconds[one.id] = time.perf_counter() - begun
            if self.progress:
                self.progress(name, number, len(self.asked))
        return measured

    def scores(self, measured: Measured, cuts: Sequence[int]) -> Scores:
        """Score each ranking."""
        return scores_of(self.gold, {i: found.documents for i, found in measured.found.items()}, cuts)

    def line(self, name: str, measured: Measured) -> dict[str, Any]:
        """Return what a tool's line has beside its scores."""
        found = measured.found
        line: dict[str, Any] = {"ms": spread(list(measured.seconds.values()))}
        claims = [[(p, doc in self.gold[i]) for doc, p in one.said] for i, one in found.items()]
        if any(claims):
            best = [max(part, key=lambda claim: claim[0]) for part in claims if part]
            every = [claim for part in claims for claim in part]
            line["calibration"] = {**reliability(every), "first": reliability(best)}
        if name.split()[0] in AGENT_TYPES:
            line |= {key: round(np.mean([getattr(f, key) for f in found.values()]), 2) for key in ("steps", "passes")}
            line["judged"] = self._judged(found)
        if measured.failures:
            line |= {"failed": len(measured.failures), "failures": measured.failures[:3]}
        return line

    def _judged(self, found: Mapping[str, Found]) -> dict[str, Any]:
        """Return how many questions lack a document, and how well the first reflection tells these from the others."""
        judged = [
            (f.quality, set(self.gold[i]) <= set(f.documents[:FIRST]))
            for i, f in found.items()
            if f.quality is not None
        ]
        whole = [quality for quality, complete in judged if complete]
        poor = [quality for quality, complete in judged if not complete]
        both = len(whole) * len(poor)
        auc = scipy_stats().mannwhitneyu(whole, poor).statistic / both if both else None
        return {"questions": len(judged), "incomplete": len(poor), "auc": None if auc is None else round(auc, 3)}


def eval_retrieval(
    bench: Bench,
    kb: str,
    questions: Path,
    *,
    tools: Sequence[str] = (),
    parts: Sequence[str] = (),
    cuts: Sequence[int] = CUTS,
    gold: str = "gold",
    docs: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Ask every question of every tool, and return the table of the module's docstring, with the models' names.

    Args:
        bench: an open workspace.
        kb: the knowledge base to search.
        questions: JSON Lines: ``id``, ``question``, the gold documents, and whatever else.
        tools: the first one is what all others are compared with; the baselines follow.
        parts: of ``rankings.WITHOUT``: each agent is asked once more without each of them.
        cuts: the k of ``R@k`` and ``all@k``.
        gold: the field with the ids of the gold documents.
        docs: only documents that hold these values; the value ``conv`` is that of the question.
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
    rows = chosen(read_rows(questions, "id", "question"), where or {}, limit)
    rankers = rankers_of(tools, parts, context)  # an unknown one is an error before the first question
    of = Measure.of(rows, base, gold, docs, progress)

    async def measure() -> dict[str, Any]:
        return {name: await of.ask(name, rank) for name, rank in rankers.items()}

    measured = bench.call(measure())
    table = compare("tool", rows, {name: of.scores(one, cuts) for name, one in measured.items()})
    for name, line in table["tools"].items():
        line |= of.line(name, measured[name])
    about = base.describe()
    models = {name: about[name] for name in ("embedding_model", "reranker")}
    names = sorted({context.settings.model_of(role) for role in context.models})
    models["language_model"] = ", ".join(names) or "none"
    lost = {"gold_not_in_base": of.lost} if of.lost else {}
    return {"set": of.name, "questions": len(rows), **lost, **table, "models": models}


def rankers_of(tools: Sequence[str], parts: Sequence[str], context: Context) -> dict[str, Ranker]:
    """Return what ranks by each name: the tools, each agent without each part, and the baselines."""
    found: dict[str, Ranker] = {}
    for tool in tools:
        found[tool] = ranker(tool, context)
        if tool in AGENT_TYPES:
            found |= {f"{tool} without {part}": ranker(tool, without(part, context)) for part in parts}
    return {**found, **{name: ranker(name, context) for name in BASELINES if name not in found}}


def reliability(claims: Sequence[Claim]) -> dict[str, Any]:
    """Hold the probabilities of findings against what share of them is right.

    ``ECE`` is the distance of the two, averaged over ten equally wide bins by the findings in them (Guo et al. 2017).

    >>> found = reliability([(0.9, True), (0.9, True), (0.2, False), (0.2, True)])
    >>> found["ECE"], found["Brier"], [(b["said"], b["right"]) for b in found["bins"]]
    (0.2, 0.175, [(0.2, 0.5), (0.9, 1.0)])
    """
    if not claims:
        return {"findings": 0, "said": 0.0, "right": 0.0, "ECE": 0.0, "Brier": 0.0, "bins": []}
    said, right = np.array(claims, float).T
    places = np.minimum((said * BINS).astype(int), BINS - 1)
    bins = []
    for place in np.unique(places).tolist():
        here = places == place
        bins.append({"low": place / BINS, "findings": int(here.sum()), **_averages(said[here], right[here])})
    apart = sum(abs(part["said"] - part["right"]) * part["findings"] for part in bins) / len(said)
    brier = ((said - right) ** 2).mean()
    return {
        "findings": len(said),
        **_averages(said, right),
        "ECE": round(apart, 4),
        "Brier": round(float(brier), 4),
        "bins": bins,
    }


def _averages(said: np.ndarray, right: np.ndarray) -> dict[str, float]:
    return {"said": round(float(said.mean()), 4), "right": round(float(right.mean()), 4)}


def bins_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the bins of every tool as rows, for the reliability diagram."""
    lines = {tool: line["calibration"] for tool, line in table["tools"].items() if "calibration" in line}
    return [{"tool": tool, **part} for tool, line in lines.items() for part in line["bins"]]


def _bases(
    asked: Iterable[Asked], knowledge: KnowledgeBase, docs: Mapping[str, str]
) -> Callable[[Asked], KnowledgeBase]:
    """Return what gives the base for each question: the whole one, or the documents that it is about."""
    own = [field for field, value in docs.items() if value == OWN]
    if not own and any(one.conv for one in asked) and OWN not in docs:
        own = [OWN]
    holding = {field: documents_by(knowledge, field) for field in {*docs, *own}}
    made: dict[str, KnowledgeBase] = {}

    def base_of(one: Asked) -> KnowledgeBase:
        if not holding:
            return knowledge
        if one.conv not in made:
            values = {**docs, **dict.fromkeys(own, one.conv)}
            kept = set.intersection(*(holding[field].get(value, set()) for field, value in values.items()))
            if not kept:
                wanted = ", ".join(f"{field}={value}" for field, value in values.items())
                raise CorpusError(f"No document of {knowledge.name!r} has {wanted}. Look at a line of its file.")
            made[one.conv] = Narrowed(knowledge, kept)
        return made[one.conv]

    return base_of


def _lost(wanted: Mapping[str, Sequence[str]], knowledge: KnowledgeBase) -> int:
    """Count the gold documents that the base does not have."""
    every = sorted({doc_id for ids in wanted.values() for doc_id in ids})
    held = {passage["doc_id"] for passage in knowledge.passages_of(every)}
    if not held:
        raise CorpusError(
            f"Knowledge base {knowledge.name!r} holds none of the gold documents, such as {every[0]!r}. "
            "Name the base that these questions are about with --kb."
        )
    return len(every) - len(held)


def table_text(table: Mapping[str, Any], cuts: Sequence[int]) -> str:
    """Return the table for people: the rankings, how far the scores can be believed, and the agents' judgement."""
    parts = [f"{table['set']}: {table['questions']} questions, in percent"]
    parts.append(ranking_text(table, "tool", measures(cuts)))
    lines = table["tools"]
    scores = {tool: _believed(line["calibration"]) for tool, line in lines.items() if "calibration" in line}
    if scores:
        parts.append(f"\nscores as probabilities, of all findings and of the best:\n{frame_text(scores)}")
    for name, line in lines.items():
        if judged := line.get("judged"):
            work = f"{line['steps']} steps and {line['passes']} passes a question"
            lack = f"a document is missing among the first {FIRST} in {judged['incomplete']} of {judged['questions']}"
            parts.append(f"{name}: {work}; {lack}; AUC of the quality: {judged['auc']}")
    return "\n".join(parts)


def _believed(line: Mapping[str, Any]) -> dict[str, str]:
    names = ("said", "right", "ECE", "Brier")
    cells = {name: f"{line[name]:.3f}" for name in names}
    return cells | {f"best: {name}": f"{line['first'][name]:.3f}" for name in names}
