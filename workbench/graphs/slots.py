"""What prompts are filled in with: what the bases hold, what tools do, what ran, the evidence, the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from workbench.plans import ENDED_WELL, Plan, format_condition, last_records
from workbench.ports import Context, KnowledgeBase, Tool, Tools
from workbench.records.figures import ResultsByStep
from workbench.records.spending import spent
from workbench.state import Data, Evidence, Json, Message, Records, RetrievalResult, drop
from workbench.text import clean, to_json

NONE = "—"
"""The text of an empty slot of a prompt."""


def left(context: Context, seconds: float) -> str:
    """Return what a run may still take, for a prompt."""
    tokens = context.settings.token_budget
    money = context.settings.money_budget
    sofar = spent(context.tape.calls())
    parts = [f"{max(0.0, seconds):.0f} s of search"]
    parts += [f"{max(0, tokens - sofar.tokens):,} tokens"] if tokens else []
    parts += [f"{max(0.0, money - sofar.money):.4f} of money"] if money else []
    return ", ".join(parts)


def numbered(items: Sequence[str]) -> str:
    """Return a list with one item per line, counted from 1."""
    return "\n".join(f"{n}. {item}" for n, item in enumerate(items, 1)) or NONE


def window(state: Data, context: Context) -> list[Json]:
    """Return the last messages before the one that is answered, as they are stored."""
    size = context.settings.history_window
    conversation = state.get("conversation_id", "")
    if not size or not conversation:
        return []
    return context.conversations.list_messages(
        conversation, size, before=state.get("user_message_id") or None
    )


def read_history(state: Data, context: Context) -> list[Message]:
    """Return the last messages before the one that is answered."""
    return history_messages(window(state, context))


def history_messages(rows: Iterable[Data]) -> list[Message]:
    """Return rows of the store as messages of a history."""
    return [
        Message(
            role=row["role"],
            content=row["content"],
            created_at=row["created_at"],
            only_noted=bool((row.get("debug") or {}).get("only_noted")),
        )
        for row in rows
    ]


def history_text(history: Sequence[Message], window: int) -> str:
    """Return the last messages, one per line."""
    lines = [
        f"{m['role']}: {' '.join(clean(m['content']).split())[:500]}"
        for m in (history[-window:] if window else [])
    ]
    return "\n".join(lines) or NONE


NEEDED = {
    "enrichment": "source",
    "discover": "fields",
    "local_search": "entities",
    "global_search": "entities",
    "chain_exploration": "entities",
}
"""What a knowledge base must have for a tool: a source outside, typed fields, or a graph of entities."""
_VALUES, _KINDS, _LONGEST_VALUE = 8, 20, 400


def evidence_text(results: Evidence, limit: int, numbers: Sequence[int] = ()) -> str:
    """Return the evidence with its numbers, titles, typed fields, sources and scores, as many as fit, at least one.

    ``numbers`` are those that the pieces have elsewhere; without them they count from 1.

    >>> piece = {"evidence": "It is green.", "score": 0.9, "metadata": {"title": "Moss", "fields": {"year": 2003}}}
    >>> evidence_text([piece], 1000)
    '[1] Moss (year: 2003; score 0.90)\\nIt is green.'
    """
    blocks = []
    length = 0
    for n, result in zip(numbers or range(1, len(results) + 1), results, strict=True):
        blocks.append(piece_text(n, result))
        length += len(blocks[-1]) + 2
        if length > limit and len(blocks) > 1:
            return "\n\n".join(blocks[:-1])
    return "\n\n".join(blocks)


def piece_text(n: int, result: RetrievalResult) -> str:
    """Return one piece of evidence under its number."""
    about = result["metadata"]
    fields = [
        f"{name}: {_cell(value)}" for name, value in (about.get("fields") or {}).items() if value
    ]
    aside = "; ".join([*fields, f"score {result['score']:.2f}"])
    return f"[{n}] {about.get('title') or ''} ({aside})\n{result['evidence']}".replace(
        "]  (", "] ("
    ).strip()


def _cell(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)[:_LONGEST_VALUE]
    more = f", … ({len(value)} in all)" if len(value) > _VALUES else ""
    return ", ".join(map(str, value[:_VALUES]))[:_LONGEST_VALUE] + more


def offered(tools: Tools, bases: Iterable[KnowledgeBase]) -> dict[str, Tool]:
    """Return the tools that a planning model may choose from: those that these bases can use."""
    abouts = [base.about() for base in bases]
    has = {
        "source": any(about["nouns"].get("source") for about in abouts),
        "fields": any(about["fields"] for about in abouts),
        "entities": any(about["counts"].get("entities") for about in abouts),
    }
    return {
        name: tool
        for name, tool in tools.items()
        if getattr(tool, "planned", True) and has.get(NEEDED.get(name, ""), True)
    }


def card(bases: Iterable[KnowledgeBase]) -> str:
    """Return what each knowledge base holds: sizes, languages, types with an example, fields with values, relations."""
    lines = []
    for base in bases:
        about = base.about()
        counts = about["counts"]
        sizes = ", ".join(
            f"{counts[name]:,} {name}"
            for name in ("documents", "passages", "entities")
            if name in counts
        )
        kinds = [kind for kind in about["relations"] if kind["type"] != "mentions"]
        kinds.sort(key=lambda k: (-k["count"], k["type"], k["source"], k["target"]))
        parts = {
            "types": [
                f"{_short(kind)} ({count:,}, as {_short(title)})"
                for kind, count, title in about["types"]
            ],
            "fields": map(_field, about["fields"]),
            "relations": [
                f"{_short(k['source'])} —{_short(k['type'])}→ {_short(k['target'])} ({k['count']})"
                for k in kinds[:_KINDS]
            ],
            "some titles": map(_short, about["titles"][:12]),
        }
        languages = " and ".join(about["languages"]) or "no language"
        lines.append(f"{base.name}: {sizes}; written in {languages}")
        for name, items in parts.items():
            if text := "; ".join(items):
                lines.append(f"  {name}: {text}")
    return "\n".join(lines)


def _short(name: Any) -> str:
    """Return a name as a card has it, in one line: a longer one tells a story, and the planner is to hear none."""
    return " ".join(str(name).split())[:80]


def _field(field: Data) -> str:
    values = ", ".join(map(_short, field["values"][:_VALUES]))
    values = values or (f"{field['low']} to {field['high']}" if field["low"] is not None else "")
    return f"{_short(field['name'])} {field['type']}" + (f" ({values})" if values else "")


def described(tools: Tools) -> str:
    """Return each tool in a line; the form has their inputs."""
    return "\n".join(f"- {name}: {tool.description}" for name, tool in tools.items())


def steps_text(
    plan: Plan | None, records: Records, totals: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return what ran so far: each step's tool and input, how it ended, what it found; ``totals`` by step."""
    last = last_records(records)
    lines = []
    for step in plan.steps if plan else ():
        if step.step_id in last:
            record = last[step.step_id]
            own = drop(record["raw_input"], "top_k", "timeout_s")
            tool_input = to_json(own)[:_LONGEST_VALUE]
            count = record["output_summary"].get("evidence_count", 0)
            result = totals.get(step.step_id, f"{count} found")
            why = f": {record['error'][:_LONGEST_VALUE]}" if record["error"] else ""
            lines.append(
                f"- {step.step_id}: {record['tool']} {tool_input}: {record['status']}, {result}{why}"
            )
    return "\n".join(lines) or NONE


def counts_by_step(state: Data, context: Context) -> dict[str, tuple[str, Json]]:
    """Return what each search by fields counted, by step: what it asked, and its output."""
    counted = {}
    for step_id, record in last_records(state["records"]).items():
        ref = record["raw_output_ref"]
        if record["tool"] == "discover" and record["status"] in ENDED_WELL and ref:
            output = context.runs.body(state.get("run_id", ""), ref).get("output", {})
            selection = record["raw_input"]
            conditions = " & ".join(map(format_condition, selection.get("conditions") or []))
            counted[step_id] = (conditions or str(selection.get("query") or step_id), output)
    return counted


def totals_by_step(state: Data, context: Context) -> dict[str, str]:
    """Return how many documents hold for each search by fields, and of each value where it counts them."""
    lines = {}
    for step_id, (_, output) in counts_by_step(state, context).items():
        values = ", ".join(
            f"{value} {count}" for value, count in list(output.get("counts", {}).items())[:_KINDS]
        )
        lines[step_id] = f"{output.get('total')} hold" + (f"; {values}" if values else "")
    return lines


READ = 60
"""The highest number of a passage that a model may name."""
SEEN = 0.005
"""The lowest score of a passage that is shown after the first ``FIRST`` of its step."""
FIRST = 3


def read_window(
    plan: Plan, results_by_step: ResultsByStep, met: Sequence[str], limit: int
) -> tuple[list[RetrievalResult], list[tuple[str, int]]]:
    """Return the passages that a model reads, and where each group of them begins: its title and its first number.

    What met a need before comes first, by its id; then the first results of each step, in the step's own order, without
    texts that a passage before them holds.
    """
    passages = list[RetrievalResult]()
    groups = []
    ids = set()

    def show(title: str, results: Evidence, limit: int) -> None:
        """Add a group, whose title says how many of them are shown."""
        new = list[RetrievalResult]()
        for result in results:
            text = result["evidence"]
            before = [*passages, *new]
            likely = len(new) < FIRST or result["score"] >= SEEN
            if (
                likely
                and len(new) < limit
                and len(before) < READ
                and result["result_id"] not in ids
            ):
                if not text or not any(text in shown["evidence"] for shown in before):
                    new.append(result)
                # one that is only listed may still be read where another step found its text
                if text:
                    ids.add(result["result_id"])
        if new:
            groups.append((f"{title}, {len(new)} of {len(results)} shown:", len(passages) + 1))
            passages.extend(new)

    by_id = {
        result["result_id"]: result for results in results_by_step.values() for result in results
    }
    show(
        "What met a need so far",
        [by_id[result_id] for result_id in met if result_id in by_id],
        READ,
    )
    for step_id, results in results_by_step.items():
        step = plan.by_id().get(step_id)
        listed = step is not None and is_listing(step.tool, step.tool_input)
        pieces = [without_text(result) for result in results] if listed else results
        # without their texts, four times as many fit
        show(
            f"{step_id} ({step.tool})" if step else step_id,
            pieces,
            limit * 4 if listed else limit,
        )
    return passages, groups


def is_listing(tool: str, tool_input: Data) -> bool:
    """Check whether a search asks for documents by their fields alone: their fields say what was asked."""
    return tool == "discover" and not tool_input.get("query")


def without_text(result: RetrievalResult) -> RetrievalResult:
    """Return a document with its fields alone, or unchanged where it has none."""
    return {**result, "evidence": ""} if result["metadata"].get("fields") else result


def window_text(
    passages: Evidence,
    groups: Sequence[tuple[str, int]],
    limit: int,
) -> str:
    """Return the passages with their numbers, each group under its title; where all do not fit, the longest are cut."""
    titles = {first: title for title, first in groups}
    texts = [piece_text(n, p) for n, p in enumerate(passages, 1)]
    share = limit
    room = limit
    for place, length in enumerate(sorted(map(len, texts))):
        # what shorter texts leave is shared by the longer ones
        share = room // (len(texts) - place)
        room -= min(length, share)
    lines = []
    for n, text in enumerate(texts, start=1):
        lines += [titles[n]] if n in titles else []
        lines.append(text if len(text) <= share else f"{text[:share]} …")
    return "\n\n".join(lines)
