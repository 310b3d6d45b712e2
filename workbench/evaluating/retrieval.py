"""How well documents are ranked: a table of tools over a set of questions with gold documents.

    {"set", "questions", "tools": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ms", "ci"}}, "paired"}

BM25, dense and their fusion are always in it. A tool gets the words of a question, and its conversation as a narrower
base, and nothing else of the row. An agent's line tells its ``steps`` and ``passes`` too, and may be followed by lines
that differ from it in one thing: "fusion_agent without plan".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import CorpusError
from workbench.evaluating.asking import Measured, Told, ask_every, compared
from workbench.evaluating.rankings import (
    BASELINES,
    Asked,
    Found,
    Narrowed,
    Ranker,
    Row,
    asked_of,
    documents_by,
    listed,
    ranker,
    without,
)
from workbench.evaluating.statistics import Scores, scores_of
from workbench.graphs.route import AGENT_TYPES
from workbench.ports import Context, KnowledgeBase

CUTS = (1, 2, 5, 10)
OWN = "conv"
"""The one field of a question, besides its words, that may say where to look."""


@dataclass
class Measure:
    """A set that is asked: its questions, their gold documents, and the base of each.

    Attributes:
        name: of the base.
        rows: as they were chosen.
        gold: question -> ids of documents.
        lost: how many of these the base does not have.
        told: hears of progress.
    """

    name: str
    rows: Sequence[Row]
    gold: Mapping[str, list[str]]
    lost: int
    asked: Sequence[Asked]
    base_of: Callable[[Asked], KnowledgeBase]
    told: Told | None

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        knowledge: KnowledgeBase,
        gold: str = "gold",
        docs: Mapping[str, str] | None = None,
        told: Told | None = None,
    ) -> Measure:
        """Read what a question is asked of and what is right.

        Raises:
            CorpusError: a question has no gold documents, or the base holds none of them.
        """
        wanted = {row["id"]: listed(row, gold) for row in rows}
        lost, asked = _lost(wanted, knowledge), [asked_of(row) for row in rows]
        knowledge.warm()
        return cls(knowledge.name, rows, wanted, lost, asked, _bases(asked, knowledge, docs or {}), told)

    async def ask(self, name: str, rank: Ranker) -> Measured[Found]:
        """Ask every question, each of its base."""

        async def within(one: Asked) -> Found:
            base = self.base_of(one)
            found = await rank(one, base)
            kept = base.within(found.documents) if isinstance(base, Narrowed) else found.documents
            return found._replace(documents=kept)

        return await ask_every(name, self.asked, within, Found([]), self.told)

    def scores(self, measured: Measured[Found], cuts: Sequence[int]) -> Scores:
        """What each ranking is worth."""
        return scores_of(self.gold, {i: found.documents for i, found in measured.found.items()}, cuts)


async def measure(
    rows: Sequence[Row],
    knowledge: KnowledgeBase,
    context: Context,
    *,
    tools: Sequence[str] = (),
    parts: Sequence[str] = (),
    cuts: Sequence[int] = CUTS,
    gold: str = "gold",
    docs: Mapping[str, str] | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Ask every question of every tool, and give the table of the module's docstring.

    Args:
        rows: of ``rows.read_rows``, chosen.
        knowledge: the base to search.
        context: the ports; its tools are the ones that can be named.
        tools: the first one is what all others are compared with; the baselines follow.
        parts: of ``rankings.WITHOUT``: each agent is asked once more without each of them.
        cuts: the k of ``R@k`` and ``all@k``.
        gold: the field with the ids of the gold documents.
        docs: only documents that hold these values; the value ``conv`` is that of the question.
        told: hears of progress.

    Raises:
        CorpusError: a question has no gold documents, or the base holds none of them.
        ToolError: there is no such part to leave out.
        UnknownTool: lists the known ones.
        MissingExtra: ir-measures is not installed.
    """
    rankers = rankers_of(tools, parts, context)  # an unknown one is an error before the first question
    of = Measure.of(rows, knowledge, gold, docs, told)
    return table(of, {name: await of.ask(name, rank) for name, rank in rankers.items()}, cuts)


def table(of: Measure, done: Mapping[str, Measured[Found]], cuts: Sequence[int] = CUTS) -> dict[str, Any]:
    """The table of the module's docstring, of what each tool did; the others are compared with the first one."""
    made = compared(of.rows, done, {name: of.scores(measured, cuts) for name, measured in done.items()})
    for name, line in made["tools"].items():
        line |= _work(done[name].found.values()) if name.split()[0] in AGENT_TYPES else {}
    lost = {"gold_not_in_base": of.lost} if of.lost else {}
    return {"set": of.name, "questions": len(of.asked), **lost, **made}


def rankers_of(tools: Sequence[str], parts: Sequence[str], context: Context) -> dict[str, Ranker]:
    """What ranks by each name: the tools, each agent without each part, and the baselines."""
    found: dict[str, Ranker] = {}
    for tool in tools:
        found[tool] = ranker(tool, context)
        if tool in AGENT_TYPES:
            found |= {f"{tool} without {part}": ranker(tool, without(part, context)) for part in parts}
    return {**found, **{name: ranker(name, context) for name in BASELINES if name not in found}}


def _work(found: Iterable[Found]) -> dict[str, float]:
    """Steps and passes of a question, on average."""
    every = list(found)
    return {name: round(sum(getattr(one, name) for one in every) / len(every), 2) for name in ("steps", "passes")}


def _bases(
    asked: Iterable[Asked], knowledge: KnowledgeBase, docs: Mapping[str, str]
) -> Callable[[Asked], KnowledgeBase]:
    """The base for each question: the whole one, or one narrowed to the documents that it is about."""
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
                told = ", ".join(f"{field}={value}" for field, value in values.items())
                raise CorpusError(f"No document of {knowledge.name!r} has {told}. Look at a line of its file.")
            made[one.conv] = Narrowed(knowledge, kept)
        return made[one.conv]

    return base_of


def _lost(wanted: Mapping[str, Sequence[str]], knowledge: KnowledgeBase) -> int:
    """How many gold documents the base does not have."""
    every = sorted({doc_id for ids in wanted.values() for doc_id in ids})
    held = {passage["doc_id"] for passage in knowledge.passages_of(every)}
    if not held:
        raise CorpusError(
            f"Knowledge base {knowledge.name!r} holds none of the gold documents, such as {every[0]!r}. "
            "Name the base that these questions are about with --kb."
        )
    return len(every) - len(held)


def table_text(measured: Mapping[str, Any], cuts: Sequence[int]) -> str:
    """The table for people: a line a tool, the difference to the first one with its interval behind it."""
    names = [name for k in cuts for name in (f"R@{k}", f"all@{k}")] + ["MRR", "nDCG@10"]
    shown = f"R@{5 if 5 in cuts else cuts[-1]}"
    paired = {row["tool"]: row[shown] for row in measured["paired"]}
    lines = [f"{measured['set']}: {measured['questions']} questions, in percent"]
    wide = max(18, *(len(tool) + 2 for tool in measured["tools"]))
    lines.append(f"{'':<{wide}}" + "".join(f"{name:>8}" for name in names) + f"{'p50 ms':>9}{'p95 ms':>9}  {shown} +-")
    for tool, line in measured["tools"].items():
        apart = paired.get(tool)
        behind = f"  {apart['difference']:+.1f} [{apart['low']:+.1f}, {apart['high']:+.1f}]" if apart else "  first"
        cells = "".join(f"{line[name]:>8.1f}" for name in names)
        lines.append(f"{tool:<{wide}}{cells}{line['ms']['p50']:>9.1f}{line['ms']['p95']:>9.1f}{behind}")
        if "failed" in line:
            lines.append(f"  {line['failed']} failed: {line['failures'][0]}")
    return "\n".join(lines)
