"""How good answers are: against the gold ones, against what they cite, and by a panel of judges; way beside way.

A way is how questions are answered: models by role, prompts. Beside them stand a floor, the writer's model without any
evidence, and a ceiling, the writer over the gold documents. A row is ``{"id", "question", "answer" or "answers",
"gold"}``; ``refuse`` says that there is none. All in percent:

    EM, F1        the answer is a gold one, and how far their words agree (characters in Chinese), as SQuAD has them
    holds         a gold answer stands in it
    precision     citations that support their statement (``figures``); ``recall``: statements that are supported
    refused       answers that say that the corpus does not say; ``wrongly``: over a question that has an answer
    correct, faithful   by the judges, where all of them agree; ``agreed`` on so many, ``alpha`` is Krippendorff's
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field

from workbench.errors import WorkbenchError
from workbench.evaluating.asking import Told
from workbench.evaluating.judging import judge
from workbench.evaluating.rankings import Row, chosen, read_rows
from workbench.evaluating.statistics import Bootstrap, Scores, means
from workbench.graphs.cards import told_evidence
from workbench.graphs.generate import generate
from workbench.graphs.roles import say
from workbench.graphs.route import decide
from workbench.ports import Context
from workbench.records.figures import precision_and_recall
from workbench.text import CJK, fold
from workbench.tools.evidence import chunk

AS_SET, RULES, CLOSED, GOLD = "as set", "rules", "closed book", "gold evidence"
MEASURES = ("EM", "F1", "holds", "R@5", "precision", "recall", "refused", "wrongly refused")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_MARKS = re.compile(r"\s?\[\d+\]")
_JUDGES = 5


class Bench(Protocol):
    """Whoever answers questions: a ``Workbench``."""

    knowledge: Any

    def ports(self) -> Context:
        """The ports that nodes see."""

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a coroutine."""

    def judging(self, model: str) -> Context:
        """The ports with this judge."""

    @property
    def map(self) -> Callable[..., Any]:
        """Asks many questions."""


class Judged(BaseModel):
    """What a judge fills in."""

    model_config = ConfigDict(extra="forbid")

    correct: bool
    faithful: bool
    reason: str = Field("", max_length=300)


def eval_answers(
    bench: Bench,
    kb: str,
    questions: Path,
    *,
    ways: Mapping[str, Mapping[str, Any]] | None = None,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    judges: Sequence[str] = (),
    told: Told | None = None,
) -> dict[str, Any]:
    """The table of these ways, floor and ceiling beside them.

    Args:
        bench: an open workspace.
        kb: the knowledge base to ask.
        questions: JSON Lines.
        ways: options of ``ask`` by name; None compares what is set with the rules alone.
        where: only questions that hold these values.
        limit: only so many of them.
        judges: the models of one to five judges; none for no judging.
        told: hears of progress.

    Raises:
        WorkbenchError: more than five judges.
    """
    if len(judges) > _JUDGES:
        raise WorkbenchError(f"{len(judges)} judges are too many. Name one to {_JUDGES}.")
    rows = chosen(read_rows(questions, "id", "question"), where or {}, limit)
    bench.knowledge.get(kb)
    writes = "writer" in bench.ports().models
    asked = dict(ways or ({AS_SET: {}, RULES: {"models": {"all": "rules"}}} if bench.ports().models else {RULES: {}}))
    runs = {name: _asked(bench, rows, {"kb": kb, **options}, told, name) for name, options in asked.items()}
    if writes:
        runs[CLOSED] = _asked(bench, rows, {"kb": "general"}, told, CLOSED)
    runs[GOLD] = _over_gold(bench, rows, kb)
    scores = {name: _scores(rows, found) for name, found in runs.items()}
    ids = [row["id"] for row in rows]
    first, *others = asked
    bootstrap = Bootstrap(ids, max(1, len(others)))
    table: dict[str, Any] = {
        "set": kb,
        "questions": len(rows),
        "ways": {name: {**means(scores[name], ids), "ci": bootstrap.interval(scores[name])} for name in runs},
        "paired": [{"way": n, "against": first, **bootstrap.compare(scores[n], scores[first])} for n in others],
    }
    if judges:
        table["judged"] = {name: _panel(bench, rows, runs[name], judges) for name in runs}
    return table


def _asked(bench: Bench, rows: Sequence[Row], options: Mapping[str, Any], told: Told | None, name: str) -> list[Any]:
    tell: Callable[[str, int, int], None] = (lambda _, done, of: told(name, done, of)) if told else lambda *_: None
    return list(bench.map([row["question"] for row in rows], progress=tell, **options))


def _over_gold(bench: Bench, rows: Sequence[Row], kb: str) -> list[Any]:
    """The writer over the gold documents alone, and nothing searched."""
    return [bench.call(_written(bench.ports(), row, kb)) for row in rows]


async def _written(context: Context, row: Row, kb: str) -> Any:
    base = context.knowledge.get(kb)
    route = await asyncio.to_thread(decide, row["question"], [kb], "", context.knowledge)
    found = [chunk(passage, 1.0, "gold", kb) for passage in base.passages_of(row.get("gold") or [])]
    state = {
        "message": row["question"],
        "query": row["question"],
        "kb_prefix": kb,
        "kb_prefixes": [kb],
        "use_retrieval": True,
        "route_decision": route.decision,
        "merged": {"retrieval_results": found, "statistics": {}, "context": "", "reference": {}},
        "records": [],
    }
    given = await generate(cast(Any, state), cast(Any, SimpleNamespace(context=context, stream_writer=lambda _: None)))
    return SimpleNamespace(status="done", answer=given["answer"], support=given["support"], evidence=found)


def _scores(rows: Sequence[Row], runs: Sequence[Any]) -> Scores:
    scores: Scores = {name: {} for name in MEASURES}
    for row, run in zip(rows, runs, strict=True):
        answer = _MARKS.sub("", run.answer or "") if run.status == "done" else ""
        gold = [row["answer"]] if "answer" in row else list(row.get("answers", []))
        refused = judge({"id": row["id"], "question": row["question"], "refuse": True}, answer, [])["refused"]
        ids = row.get("gold") or []
        first = list(dict.fromkeys(str(r["metadata"].get("doc_id")) for r in run.evidence))[:5]
        cited = precision_and_recall(run.support or [])
        told = {
            "EM": max((float(normal(answer) == normal(one)) for one in gold), default=0.0),
            "F1": max((f1(answer, one) for one in gold), default=0.0),
            "holds": float(any(normal(one) and normal(one) in normal(answer) for one in gold)),
            "R@5": sum(i in first for i in ids) / len(ids) if ids else 0.0,
            "precision": cited["citation_precision"] or 0.0,
            "recall": cited["citation_recall"] or 0.0,
            "refused": float(refused),
            "wrongly refused": float(refused and bool(gold) and not row.get("refuse")),
        }
        for name, value in told.items():
            scores[name][row["id"]] = float(value)
    return scores


def normal(text: str) -> str:
    """A text as answers are compared: folded, without articles and punctuation.

    >>> normal("The  East Kiln."), normal("《茶馆》")
    ('east kiln', '茶馆')
    """
    return " ".join(re.sub(r"[^\w\s]", " ", _ARTICLES.sub(" ", fold(text))).split())


def f1(answer: str, gold: str) -> float:
    """How far the words of two texts agree; Chinese by characters.

    >>> round(f1("It was Lao She", "Lao She"), 2), f1("老舍", "老舍")
    (0.67, 1.0)
    """
    said, wanted = Counter(_tokens(answer)), Counter(_tokens(gold))
    shared = sum((said & wanted).values())
    return 2 * shared / (sum(said.values()) + sum(wanted.values())) if shared else 0.0


def _tokens(text: str) -> list[str]:
    return re.findall(rf"{CJK.pattern}|[^\W_]+", re.sub(rf"({CJK.pattern})", r" \1 ", normal(text)))


def _panel(bench: Bench, rows: Sequence[Row], runs: Sequence[Any], judges: Sequence[str]) -> dict[str, Any]:
    """What the judges say of these answers."""
    said = [bench.call(_by_judge(bench.judging(judge), rows, runs)) for judge in judges]
    found: dict[str, Any] = {"judges": list(judges), "refused": sum(one is None for given in said for one in given)}
    for name in ("correct", "faithful"):
        votes = [[None if one is None else getattr(one, name) for one in given] for given in zip(*said, strict=True)]
        agreed = [of[0] for of in votes if None not in of and len(set(of)) == 1]
        found[name] = round(100 * sum(map(bool, agreed)) / len(agreed), 2) if agreed else None
        found[f"{name} agreed"], found[f"{name} alpha"] = len(agreed), alpha(votes)
    return found


async def _by_judge(context: Context, rows: Sequence[Row], runs: Sequence[Any]) -> list[Judged | None]:
    said = []
    for row, run in zip(rows, runs, strict=True):
        slots = {
            "question": row["question"],
            "gold": " / ".join([row["answer"]] if "answer" in row else row.get("answers", [])),
            "answer": run.answer or "",
            "evidence": told_evidence(run.evidence[:10], context.settings.merge_max_characters),
        }
        said.append((await say(context, "judge", Judged, slots, question=row["question"])).form)
    return said


def alpha(votes: Sequence[Sequence[Any]]) -> float | None:
    """Krippendorff's alpha of nominal votes, a row an item, None for no vote; None where it cannot be said.

    >>> alpha([[True, True], [False, False], [True, False]]), alpha([[True], [False]])
    (0.444, None)
    """
    items = [[v for v in row if v is not None] for row in votes]
    items = [row for row in items if len(row) > 1]
    every = Counter(v for row in items for v in row)
    n = sum(every.values())
    expected = n * n - sum(count * count for count in every.values())
    if not items or not expected:
        return None
    apart = sum((len(row) ** 2 - sum(c * c for c in Counter(row).values())) / (len(row) - 1) for row in items)
    return round(1 - (n - 1) * apart / expected, 3)


def table_text(table: Mapping[str, Any]) -> str:
    """The table for people."""
    lines = [f"{table['set']}: {table['questions']} questions", f"{'':<16}" + "".join(f"{n:>18}" for n in MEASURES)]
    for name, way in table["ways"].items():
        cells = [f"{way[m]:.1f} [{way['ci'][m][0]:.0f}, {way['ci'][m][1]:.0f}]" for m in MEASURES]
        lines.append(f"{name:<16}" + "".join(f"{cell:>18}" for cell in cells))
    for one in table["paired"]:
        told = [
            f"{m} {d['difference']:+.1f} [{d['low']:+.1f}, {d['high']:+.1f}]"
            for m in MEASURES
            if (d := one[m])["low"] > 0 or d["high"] < 0
        ]
        lines.append(f"{one['way']} against {one['against']}: {'; '.join(told) or 'no measure differs for sure'}")
    for name, of in table.get("judged", {}).items():
        told = [
            f"{what} {of[what]} % of {of[f'{what} agreed']} agreed on (alpha {of[f'{what} alpha']})"
            for what in ("correct", "faithful")
        ]
        lines.append(
            f"{name}, judged by {', '.join(of['judges'])}: {'; '.join(told)}; {of['refused']} unusable replies"
        )
    return "\n".join(lines)
