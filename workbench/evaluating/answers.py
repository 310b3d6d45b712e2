"""How good answers are: against the gold ones, against what they cite, and by a panel of judges; way beside way.

A way is how questions are answered: models by role, prompts. Beside them stand a floor, the writer's model without any
evidence, and a ceiling, the writer over the gold documents. A row is ``{"id", "question", "answer" or "answers",
"gold"}``; ``refuse`` says that there is none. All in percent:

    EM, F1        the answer is a gold one, and how far their words agree (characters in Chinese), as SQuAD has them
    holds         a gold answer stands in it
    precision     citations that support their statement (``figures``); ``recall``: statements that are supported
    refused       answers that say that the corpus does not say; ``wrongly``: over a question that has an answer
    correct, faithful   by the judges, where all of them agree; ``agreed`` on so many, ``alpha`` is Krippendorff's;
                        beside them what people would say of all answers, as far as they have labelled some (``labels``)
    pairs               which of two ways' answers to a question is better, asked in both orders (``panel``)
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

from workbench.errors import WorkbenchError
from workbench.evaluating.asking import Told
from workbench.evaluating.judging import judge
from workbench.evaluating.labels import FEWEST, Labelling, corrected, put
from workbench.evaluating.panel import GRADES, MARKS, Asked, Judging, asked_of, compared, graded, panel_of, told_grades
from workbench.evaluating.rankings import Row, chosen, read_rows
from workbench.evaluating.statistics import Bootstrap, Scores, means
from workbench.graphs.generate import generate
from workbench.graphs.route import decide
from workbench.ports import Context
from workbench.records.figures import precision_and_recall
from workbench.records.store import digest_of
from workbench.text import CJK, fold
from workbench.tools.evidence import chunk

AS_SET, RULES, CLOSED, GOLD = "as set", "rules", "closed book", "gold evidence"
MEASURES = ("EM", "F1", "holds", "R@5", "precision", "recall", "refused", "wrongly refused")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class Bench(Judging, Labelling, Protocol):
    """Whoever answers questions: a ``Workbench``."""

    knowledge: Any

    def ports(self) -> Context:
        """The ports that nodes see."""

    @property
    def map(self) -> Callable[..., Any]:
        """Asks many questions."""


def eval_answers(
    bench: Bench,
    kb: str,
    questions: Path,
    *,
    ways: Mapping[str, Mapping[str, Any]] | None = None,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    judges: Sequence[str] = (),
    pair_judges: Sequence[str] = (),
    label: int = 0,
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
        judges: one to five that grade each answer, as ``MODEL`` or ``MODEL@FILE.toml``; none for no grading.
        pair_judges: one to five that compare the answers of each way with those of the first; none for no comparing.
        label: to how many questions the answers are put before a person, in the inbox.
        told: hears of progress.

    Raises:
        WorkbenchError: more than five judges, or only one way to compare.
    """
    panel, comparing = panel_of(bench, judges), panel_of(bench, pair_judges, pairs=True)
    rows = chosen(read_rows(questions, "id", "question"), where or {}, limit)
    bench.knowledge.get(kb)
    writes = "writer" in bench.ports().models
    asked = dict(ways or ({AS_SET: {}, RULES: {"models": {"all": "rules"}}} if bench.ports().models else {RULES: {}}))
    if pair_judges and len(asked) < 2:
        raise WorkbenchError("There is only one way to answer, so nothing to compare. Set WORKBENCH_CHAT_MODEL.")
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
    most = bench.ports().settings.merge_max_characters
    answers = {
        name: {row["id"]: asked_of(row, run, most) for row, run in zip(rows, of, strict=True)}
        for name, of in runs.items()
    }
    if judges:
        table["judged"] = {name: _judged(bench, judges, panel, answers[name]) for name in runs}
    if pair_judges:
        table["pairs"] = [
            {
                "way": n,
                "against": first,
                **compared(bench, pair_judges, comparing, answers[n], answers[first], bootstrap),
            }
            for n in others
        ]
    if label:
        put(bench, answers, label)
    return relabelled(table, bench.labels())


def _judged(
    bench: Bench, judges: Sequence[str], panel: Sequence[Context], answers: Mapping[str, Asked]
) -> dict[str, Any]:
    votes = graded(bench, panel, list(answers.values()))
    verdicts = [{"id": i, "digest": digest_of(answers[i]), **of} for i, of in zip(answers, votes, strict=True)]
    return {**told_grades(judges, votes), "verdicts": verdicts}


def relabelled(table: Mapping[str, Any], given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table with the judges' figures corrected by the labels that there are now; no model is asked."""
    judged = {
        name: {**of, "corrected": corrected(of["verdicts"], given)} for name, of in table.get("judged", {}).items()
    }
    return {**table, **({"judged": judged} if judged else {})}


def read_table(file: Path) -> dict[str, Any]:
    """A table that ``workbench eval answers --json`` has printed.

    Raises:
        WorkbenchError: it is none, or nobody has judged.
    """
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
        verdicts = [one for of in table["judged"].values() for one in of["verdicts"]]
        good = all(isinstance(one["digest"], str) and all(set(one[n]) <= {True, False, None} for n in GRADES)
                   for one in verdicts)  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        good = False
    if not good:
        raise WorkbenchError(f"{file} is no table with judges. Write one: workbench eval answers --judge MODEL --json.")
    return dict(table)


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
        answer = MARKS.sub("", run.answer or "") if run.status == "done" else ""
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
        told = [f"{n} {of[n]} % of {of[f'{n} agreed']} agreed on (alpha {of[f'{n} alpha']})" for n in GRADES]
        lines.append(
            f"{name}, judged by {', '.join(of['judges'])}: {'; '.join(told)}; {of['refused']} unusable replies"
        )
        lines += [f"  {n}: {_corrected_text(of['corrected'][n])}" for n in GRADES if of["corrected"][n]["labelled"]]
    lines += [_pair_text(one) for one in table.get("pairs", [])]
    return "\n".join(lines)


def _corrected_text(of: Mapping[str, Any]) -> str:
    if of["estimate"] is None:
        return f"{of['labelled']} labels of people; with fewer than {FEWEST} the judges' figure is not corrected"
    judged = f"{of['raw']:.1f} % by all votes" if of["raw"] is not None else "no usable vote"
    agree = f"judges and people agree on {of['agree']} % (alpha {of['alpha']})" if of["agree"] is not None else "—"
    return (
        f"{judged}, corrected {of['estimate']:.1f} [{of['low']:.1f}, {of['high']:.1f}] by {of['labelled']} labels "
        f"of people ({of['skipped']} skipped); {agree}"
    )


def _pair_text(of: Mapping[str, Any]) -> str:
    orders = [
        f"{one['judge']} contradicts itself in {one['contradict']} % "
        f"(for the first place {one['first']}, for the second {one['second']})"
        for one in of["orders"]
        if one["usable"]
    ]
    head = f"{of['way']} against {of['against']}, in both orders: {of['wins']} wins, {of['ties']} ties"
    return (
        f"{head} ({of['alike']} alike), {of['losses']} losses, {of['undecided']} undecided; wins less losses "
        f"{of['difference']:+.1f} [{of['low']:+.1f}, {of['high']:+.1f}] % (alpha {of['alpha']}); {'; '.join(orders)}"
    )
