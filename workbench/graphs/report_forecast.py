"""What writing an outline will take, before a person approves it: calls, tokens, money, seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.graphs.generate import found
from workbench.ports import Context
from workbench.records.spending import price

_PROMPT, _PER_CHARACTER = 400, {True: 1.0, False: 0.3}
"""Tokens of a prompt around its evidence; of a character, in Chinese and else."""
_WRITTEN = 1.6
"""Tokens of a written word."""


def forecast(state: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """What the sections of the outline will probably take; nothing is asked.

    Returns:
        ``sections``, ``calls``, ``tokens``, ``money`` (None without a price) and ``seconds`` (by how long it took
        for the outline; None without one); all 0 where no model writes.
    """
    sections, settings = state["outline"]["sections"], context.settings
    if "writer" not in context.models:
        return {"sections": len(sections), "calls": 0, "tokens": 0, "money": 0.0, "seconds": 0.0}
    length = {r["result_id"]: len(r["evidence"]) for r in found(state)}
    zh = state["route_decision"]["question"]["language"] == "zh"
    calls = given = written = 0
    for section in sections:
        pieces = [length[i] for i in section["evidence_ids"] if i in length]
        batches = max(1, math.ceil(len(pieces) / settings.section_max_evidence))
        reduced = settings.mapreduce and len(pieces) >= settings.mapreduce_threshold
        many = batches + max(1, batches // 2) if reduced else batches if settings.multi_pass else 1
        calls += many
        given += many * _PROMPT + int(sum(pieces) * _PER_CHARACTER[zh])
        written += int(section["estimated_words"] * _WRITTEN)
    usage = {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
    money = price(context.prices, settings.model_of("writer"), usage)
    took = [call.seconds for call in context.tape.calls() if call.name == "writer" and call.seconds]
    at_once = max(1, min(len(sections), settings.max_concurrency))
    seconds = round(calls * sum(took) / len(took) / at_once, 1) if took else None
    told = {"tokens": given + written, "money": money, "seconds": seconds}
    return {"sections": len(sections), "calls": calls, **told}
