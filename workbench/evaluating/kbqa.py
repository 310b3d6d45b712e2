"""Questions whose answers are names in a graph of triples: is the first answer right, and how good is the whole list?

    {"set", "questions", "topic", "tools": {name: {"Hits@1", "F1", "answered", "by", "ms", "ci"}}, "paired"}

A tool answers by the ``answers`` of its output, best first, or else by its ``entities`` without those that stand in the
question (by which ``entities`` begin). ``Hits@1``: the first is one of the gold answers. ``F1``:
of the whole list against all gold answers. Names are compared folded. With ``topic="given"`` a tool also gets the name
that the question is about, as published systems do; otherwise it gets the words alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from workbench.errors import ToolError
from workbench.evaluating.asking import Measured, Told, ask_every, compared
from workbench.evaluating.rankings import Asked, Row, asked_of, called, listed
from workbench.evaluating.statistics import Scores
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
    told: Told | None = None,
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
    given = {row["id"]: {"entities": listed(row, TOPIC)} for row in rows} if topic == "given" else {}
    names = list(dict.fromkeys([*tools, BASELINE]))
    for name in names:
        _must_answer(context.tools[name], topic)
    knowledge.warm()
    asked, done = [asked_of(row) for row in rows], dict[str, Measured[list[str]]]()
    for name in names:

        async def ask(one: Asked, tool: Any = context.tools[name]) -> list[str]:
            return answers_of(await called(tool, one, knowledge, context, **given.get(one.id, {})), one.question)

        done[name] = await ask_every(name, asked, ask, [], told)
    scores = {name: _scores(gold, measured.found) for name, measured in done.items()}
    return {"set": knowledge.name, "questions": len(asked), "topic": topic, **compared(rows, done, scores)}


def _must_answer(tool: Any, topic: Topic) -> None:
    if not {"answers", "entities"} & set(tool.output_schema.model_fields):
        known = ", ".join(tool.output_schema.model_fields)
        raise ToolError(f"{tool.name} gives no `answers` and no `entities`, so it answers nothing. It gives: {known}.")
    if topic == "given" and "entities" not in tool.input_schema.model_fields:
        raise ToolError(f"{tool.name} takes no `entities`, so no topic can be given. Measure it with --topic asked.")


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
