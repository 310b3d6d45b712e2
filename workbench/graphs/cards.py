"""What prompts are filled in with: what a corpus holds, what tools take, what ran, and the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.graphs.roles import NONE
from workbench.plans import Plan, last_records
from workbench.ports import KnowledgeBase, Tool
from workbench.state import Data, Evidence, ExecutionRecord
from workbench.tools.registry import BUILT_IN

ENRICHMENT = "enrichment"
"""The tool that is offered only where a vocabulary allows its source to be asked."""
OF_ALL = ("query", "kb_prefix", "entities", "conditions", "sort", "candidates", "top_k")
"""Inputs that the form of a step has for every tool."""
_VALUES, _TITLES, _KINDS, _TOLD, _NAME = 8, 12, 20, 400, 80


def told_evidence(results: Evidence, most: int) -> str:
    """The evidence with its numbers, titles, typed fields, sources and scores, as much as fits; always the first.

    >>> piece = {"evidence": "It is green.", "score": 0.9, "metadata": {"title": "Moss", "fields": {"year": 2003}}}
    >>> told_evidence([piece], 1000)
    '[1] Moss (year: 2003; score 0.90)\\nIt is green.'
    """
    told, length = list[str](), 0
    for n, result in enumerate(results, 1):
        about = result["metadata"]
        fields = [f"{name}: {_value(value)}" for name, value in (about.get("fields") or {}).items() if value]
        aside = "; ".join([*fields, *filter(None, [about.get("url")]), f"score {result['score']:.2f}"])
        told.append(f"[{n}] {about.get('title') or ''} ({aside})\n{result['evidence']}".replace("]  (", "] ("))
        length += len(told[-1]) + 2
        if length > most and n > 1:
            return "\n\n".join(told[:-1])
    return "\n\n".join(told)


def _value(value: Any) -> str:
    return (", ".join(map(str, value[:_VALUES])) if isinstance(value, list) else str(value))[:_TOLD]


def offered(tools: Mapping[str, Tool], bases: Iterable[KnowledgeBase]) -> dict[str, Tool]:
    """The tools that a model may choose from: enrichment only where a vocabulary allows its source to be asked."""
    asks = any(base.nouns().get("source") for base in bases)
    return {name: tools[name] for name in tools if asks or name != ENRICHMENT}


def card(bases: Iterable[KnowledgeBase]) -> str:
    """What each knowledge base holds: sizes, typed fields with values, kinds of relations, some titles."""
    told = []
    for base in bases:
        counts = base.counts()
        sizes = ", ".join(
            f"{counts[name]:,} {name}" for name in ("documents", "passages", "entities") if name in counts
        )
        fields = [_field(field) for field in base.schema()]
        kinds = sorted(base.relation_kinds(), key=lambda k: (-k["count"], k["type"], k["source"], k["target"]))[:_KINDS]
        relations = [f"{_short(k['source'])} —{_short(k['type'])}→ {_short(k['target'])} ({k['count']})" for k in kinds]
        titles = [*map(_short, base.notable(_TITLES))]
        lines = [f"{base.name}: {sizes}"]
        lines += [f"  fields: {'; '.join(fields)}"] if fields else []
        lines += [f"  relations: {'; '.join(relations)}"] if relations else []
        lines += [f"  some titles: {'; '.join(titles)}"] if titles else []
        told += lines
    return "\n".join(told)


def _short(name: Any) -> str:
    """A name as a card has it, in one line: a longer one tells a story, and the planner is to hear none."""
    return " ".join(str(name).split())[:_NAME]


def _field(field: Data) -> str:
    values = ", ".join(map(_short, field["values"][:_VALUES]))
    return f"{_short(field['name'])} {field['type']}" + (f" ({values})" if values else "")


def described(tools: Mapping[str, Tool]) -> str:
    """Each tool in a line, with the inputs that are its own and their types."""
    return "\n".join(
        f"- {name}: {tool.description}{_inputs(tool) if name not in BUILT_IN else ''}" for name, tool in tools.items()
    )


def _inputs(tool: Tool) -> str:
    schema = tool.input_schema.model_json_schema().get("properties", {})
    own = {name: told for name, told in schema.items() if name not in OF_ALL}
    return f" Its inputs: {json.dumps(own, ensure_ascii=False)}" if own else ""


def told_steps(plan: Plan | None, records: Iterable[ExecutionRecord]) -> str:
    """What ran so far: each step's tool and input, how it ended, what it found."""
    last = last_records(records)
    lines = []
    for step in plan.steps if plan else ():
        if step.step_id in last:
            record = last[step.step_id]
            asked = json.dumps(record["raw_input"], ensure_ascii=False)[:_TOLD]
            count = record["output_summary"].get("evidence_count", 0)
            lines.append(f"- {step.step_id}: {record['tool']} {asked}: {record['status']}, {count} found")
    return "\n".join(lines) or NONE
