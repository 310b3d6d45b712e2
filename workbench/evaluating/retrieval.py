"""How well documents are ranked: a table of tools over a set of questions with gold documents.

    {"set", "questions", "tools": {name: {"R@5", "all@5", "MRR", "nDCG@10", "by", "ms", "ci"}}, "paired"}

BM25, dense and their fusion are always in it. A tool gets the words of a question, and its conversation as a narrower
base, and nothing else of the row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.context import Context, KnowledgeBase
from workbench.errors import CorpusError
from workbench.evaluating.narrowed import Narrowed, documents_by
from workbench.evaluating.rankings import BASELINES, Ranker, ranker
from workbench.evaluating.rows import Asked, Row, asked_of, groups, listed
from workbench.evaluating.statistics import Bootstrap, means, scores_of, spread

CUTS = (1, 2, 5, 10)
OWN = "conv"
"""The one field of a question, besides its words, that may say where to look."""

Told = Callable[[str, int, int], None]
"""``told(tool, asked, of)``."""


@dataclass
class Measured:
    """What one tool did: a ranking and seconds for each question, and what it failed with."""

    rankings: dict[str, list[str]]
    seconds: list[float]
    failures: list[str]


async def measure(
    rows: Sequence[Row],
    knowledge: KnowledgeBase,
    context: Context,
    *,
    tools: Sequence[str] = (),
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
        cuts: the k of ``R@k`` and ``all@k``.
        gold: the field with the ids of the gold documents.
        docs: only documents that hold these values; the value ``conv`` is that of the question.
        told: hears of progress.

    Raises:
        CorpusError: a question has no gold documents, or the base holds none of them.
        UnknownTool: lists the known ones.
        MissingExtra: ir-measures is not installed.
    """
    wanted = {row["id"]: listed(row, gold) for row in rows}
    lost = _lost(wanted, knowledge)
    asked = [asked_of(row) for row in rows]
    bases = _bases(asked, knowledge, docs or {})
    names = list(dict.fromkeys([*tools, *BASELINES]))
    rankers = {name: ranker(name, context) for name in names}  # an unknown one is an error before the first question
    split, bootstrap = groups(rows), Bootstrap([one.id for one in asked])
    table, scores = {}, {}
    knowledge.warm()
    for name in names:
        found = await _ask(name, rankers[name], asked, bases, told)
        scores[name] = scores_of(wanted, found.rankings, cuts)
        table[name] = {
            **means(scores[name], list(wanted)),
            "by": {
                field: {value: {"questions": len(ids), **means(scores[name], ids)} for value, ids in values.items()}
                for field, values in split.items()
            },
            "ms": spread(found.seconds),
            "ci": bootstrap.interval(scores[name]),
            **({"failed": len(found.failures), "failures": found.failures[:3]} if found.failures else {}),
        }
    first, *others = names
    return {
        "set": knowledge.name,
        "questions": len(asked),
        **({"gold_not_in_base": lost} if lost else {}),
        "tools": table,
        "paired": [{"tool": n, "against": first, **bootstrap.compare(scores[n], scores[first])} for n in others],
    }


async def _ask(
    name: str, rank: Ranker, asked: Sequence[Asked], bases: Callable[[Asked], KnowledgeBase], told: Told | None
) -> Measured:
    done = Measured({}, [], [])
    for number, one in enumerate(asked, start=1):
        base = bases(one)
        begun = time.perf_counter()
        try:
            ranked = await rank(one, base)
            done.rankings[one.id] = base.within(ranked) if isinstance(base, Narrowed) else ranked
        except Exception as error:  # a tool may raise anything: it found nothing, and the table says so
            done.rankings[one.id] = []
            done.failures.append(f"{one.id}: {type(error).__name__}: {error}")
        done.seconds.append(time.perf_counter() - begun)
        if told:
            told(name, number, len(asked))
    return done


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


def table_text(table: Mapping[str, Any], cuts: Sequence[int]) -> str:
    """The table for people: a line a tool, the difference to the first one with its interval behind it."""
    names = [name for k in cuts for name in (f"R@{k}", f"all@{k}")] + ["MRR", "nDCG@10"]
    shown = f"R@{5 if 5 in cuts else cuts[-1]}"
    paired = {row["tool"]: row[shown] for row in table["paired"]}
    lines = [f"{table['set']}: {table['questions']} questions, in percent"]
    lines.append(f"{'':<18}" + "".join(f"{name:>8}" for name in names) + f"{'p50 ms':>9}{'p95 ms':>9}  {shown} +-")
    for tool, line in table["tools"].items():
        apart = paired.get(tool)
        behind = f"  {apart['difference']:+.1f} [{apart['low']:+.1f}, {apart['high']:+.1f}]" if apart else "  first"
        cells = "".join(f"{line[name]:>8.1f}" for name in names)
        lines.append(f"{tool:<18}{cells}{line['ms']['p50']:>9.1f}{line['ms']['p95']:>9.1f}{behind}")
        if "failed" in line:
            lines.append(f"  {line['failed']} failed: {line['failures'][0]}")
    return "\n".join(lines)
