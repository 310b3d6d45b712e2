"""Questions whose answers are names in a graph of triples: is the first answer right, and how good is the whole list?

    {"set", "questions", "topic", "tools": {name: {"Hits@1", "F1", "answered", "by", "ms", "ci"}}, "paired"}

A tool answers by the ``answers`` of its output, best first, or else by its ``entities`` without those that stand in the
question (by which ``entities`` begin). ``Hits@1``: the first is one of the gold answers. ``F1``:
of the whole list against all gold answers. Names are compared folded. With ``topic="given"`` a tool also gets the name
that the question is about, as published systems do; otherwise it gets the words alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from workbench.errors import ToolError
from workbench.evaluating.rankings import Asked, Row, asked_of, called, groups, listed
from workbench.evaluating.statistics import Bootstrap, Scores, means, spread
from workbench.ports import Context, KnowledgeBase
from workbench.text import fold

Topic = Literal["given", "asked"]
BASELINE = "local_search"
"""In every table: the names around what the question names."""
TOPIC = "topic_entity"


async def measure(
    rows: Sequence[Row],
    knowledge: KnowledgeBase,
    context: Context,
    *,
    tools: Sequence[str] = (),
    topic: Topic = "asked",
    answers: str = "answers",
    told: Callable[[str, int, int], None] | None = None,
) -> dict[str, Any]:
    """Ask every question of every tool.

    Args:
        rows: of ``rows.read_rows``, chosen; ``answers`` and, with ``topic="given"``, ``topic_entity`` are read here.
        knowledge: a base made of triples.
        context: the ports; its tools are the ones that can be named.
        tools: the first one is what all others are compared with; the baseline follows.
        topic: whether a tool that takes ``entities`` is told what the question is about.
        answers: the field with the gold answers.
        told: hears of progress.

    Raises:
        CorpusError: a question has no answers, or no topic to give.
        ToolError: a tool gives no entities, or takes none though the topic is given.
        UnknownTool: lists the known ones.
    """
    gold = {row["id"]: [fold(answer) for answer in listed(row, answers)] for row in rows}
    given = {row["id"]: listed(row, TOPIC) for row in rows} if topic == "given" else {}
    names = list(dict.fromkeys([*tools, BASELINE]))
    for name in names:
        _must_answer(context.tools[name], topic)
    asked, split, bootstrap = [asked_of(row) for row in rows], groups(rows), Bootstrap(list(gold))
    table, scores = {}, {}
    knowledge.warm()
    for name in names:
        found, seconds, failures = await _ask(name, context, knowledge, asked, given, told)
        scores[name] = _scores(gold, found)
        table[name] = {
            **means(scores[name], list(gold)),
            "by": {
                field: {value: {"questions": len(ids), **means(scores[name], ids)} for value, ids in values.items()}
                for field, values in split.items()
            },
            "ms": spread(seconds),
            "ci": bootstrap.interval(scores[name]),
            **({"failed": len(failures), "failures": failures[:3]} if failures else {}),
        }
    first, *others = names
    return {
        "set": knowledge.name,
        "questions": len(asked),
        "topic": topic,
        "tools": table,
        "paired": [{"tool": n, "against": first, **bootstrap.compare(scores[n], scores[first])} for n in others],
    }


def _must_answer(tool: Any, topic: Topic) -> None:
    if not {"answers", "entities"} & set(tool.output_schema.model_fields):
        known = ", ".join(tool.output_schema.model_fields)
        raise ToolError(f"{tool.name} gives no `answers` and no `entities`, so it answers nothing. It gives: {known}.")
    if topic == "given" and "entities" not in tool.input_schema.model_fields:
        raise ToolError(f"{tool.name} takes no `entities`, so no topic can be given. Measure it with --topic asked.")


async def _ask(
    name: str,
    context: Context,
    knowledge: KnowledgeBase,
    asked: Sequence[Asked],
    given: Mapping[str, list[str]],
    told: Callable[[str, int, int], None] | None,
) -> tuple[dict[str, list[str]], list[float], list[str]]:
    """Answers by question, seconds, and what went wrong."""
    found, seconds, failures = dict[str, list[str]](), list[float](), list[str]()
    for number, one in enumerate(asked, start=1):
        more = {"entities": given[one.id]} if given else {}
        begun = time.perf_counter()
        try:
            output = await called(context.tools[name], one, knowledge, context, **more)
            found[one.id] = answers_of(output, one.question)
        except Exception as error:  # a tool may raise anything: it has no answer, and the table says so
            found[one.id] = []
            failures.append(f"{one.id}: {type(error).__name__}: {error}")
        seconds.append(time.perf_counter() - begun)
        if told:
            told(name, number, len(asked))
    return found, seconds, failures


def answers_of(output: Any, question: str) -> list[str]:
    """The answers in a tool's output, folded, best first."""
    told = getattr(output, "answers", None)
    if told is None:
        words = f" {fold(question)} "
        told = [name for name in output.entities if f" {fold(name)} " not in words]
    return list(dict.fromkeys(fold(answer) for answer in told))


def _scores(gold: Mapping[str, Sequence[str]], found: Mapping[str, Sequence[str]]) -> Scores:
    return {
        "Hits@1": {question: float(bool(set(found[question][:1]) & set(right))) for question, right in gold.items()},
        "F1": {question: f1(right, found[question]) for question, right in gold.items()},
        "answered": {question: float(bool(found[question])) for question in gold},
    }


def f1(gold: Sequence[str], found: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of two lists without doubles.

    >>> f1(["a", "b"], ["a"]), f1(["a"], [])
    (0.6666666666666666, 0.0)
    """
    right = len(set(gold) & set(found))
    return 2 * right / (len(set(gold)) + len(set(found))) if right else 0.0


def table_text(table: Mapping[str, Any]) -> str:
    """The table for people: a line a tool, and one for each number of hops."""
    lines = [f"{table['set']}: {table['questions']} questions, topic {table['topic']}, in percent"]
    lines.append(f"{'':<18}{'Hits@1':>8}{'F1':>8}{'answered':>10}{'p50 ms':>9}{'p95 ms':>9}")
    for tool, line in table["tools"].items():
        lines.append(f"{tool:<18}{_cells(line)}{line['ms']['p50']:>9.1f}{line['ms']['p95']:>9.1f}")
        for hops, part in line["by"].get("hops", {}).items():
            lines.append(f"  {hops + ' hops':<16}{_cells(part)}")
        if "failed" in line:
            lines.append(f"  {line['failed']} failed: {line['failures'][0]}")
    return "\n".join(lines)


def _cells(line: Mapping[str, Any]) -> str:
    return f"{line['Hits@1']:>8.1f}{line['F1']:>8.1f}{line['answered']:>10.1f}"
