"""Calibration: of the findings that a tool calls right with some probability, what share is right.

    {"set", "questions", "tools": {name: {"findings", "said", "right", "ECE", "Brier", "bins": [...],
     "first": {"said", "right", "ECE", "Brier", "bins"}}}}

A finding is a passage; it is right when its document is one of the gold ones. ``ECE``: the distance of what was said
and what was, averaged over ten equally wide bins by the findings in them (after Guo et al. 2017). Most findings are far
down a list and rightly near 0; ``first`` is the same over the best finding of each question alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.evaluating.asking import Measured, Told
from workbench.evaluating.rankings import Found, Row, ranker
from workbench.evaluating.retrieval import Measure
from workbench.ports import Context, KnowledgeBase

BINS = 10
TOOLS = ("keyword_search", "naive_search", "local_search", "hybrid_search", "chain_exploration", "fusion_agent")
"""Asked when none is named: those whose score is a probability for any question."""

Claim = tuple[float, bool]
"""A probability that was said, and whether it was right."""


async def measure(
    rows: Sequence[Row],
    knowledge: KnowledgeBase,
    context: Context,
    *,
    tools: Sequence[str] = (),
    gold: str = "gold",
    docs: Mapping[str, str] | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """Ask every question of every tool, and hold what it says of its findings against the gold documents.

    Args:
        rows: of ``rankings.read_rows``, chosen.
        knowledge: the base to search.
        context: the ports; its tools are the ones that can be named.
        tools: tools and agents; none: ``TOOLS``.
        gold: the field with the ids of the gold documents.
        docs: only documents that hold these values.
        told: hears of progress.
    """
    rankers = {name: ranker(name, context) for name in tools or TOOLS}
    of = Measure.of(rows, knowledge, gold, docs, told)
    return table(of, {name: await of.ask(name, rank) for name, rank in rankers.items()})


def table(of: Measure, done: Mapping[str, Measured[Found]]) -> dict[str, Any]:
    """The table of the module's docstring, of what each tool did."""
    lines = {}
    for name, measured in done.items():
        said = [[(p, doc in of.gold[i]) for doc, p in found.said] for i, found in measured.found.items()]
        lines[name] = {
            **reliability(claim for claims in said for claim in claims),
            "first": reliability(max(claims, key=lambda claim: claim[0]) for claims in said if claims),
            **measured.failed(),
        }
    return {"set": of.name, "questions": len(of.asked), "tools": lines}


def reliability(claims: Iterable[Claim]) -> dict[str, Any]:
    """Bins and errors of what was said.

    >>> found = reliability([(0.9, True), (0.9, True), (0.2, False), (0.2, True)])
    >>> found["ECE"], found["Brier"], [(b["said"], b["right"]) for b in found["bins"]]
    (0.2, 0.175, [(0.2, 0.5), (0.9, 1.0)])
    """
    every = list(claims)
    if not every:
        return {"findings": 0, "said": 0.0, "right": 0.0, "ECE": 0.0, "Brier": 0.0, "bins": []}
    parts: dict[int, list[Claim]] = {}
    for claim in every:
        parts.setdefault(min(int(claim[0] * BINS), BINS - 1), []).append(claim)
    bins = [
        {"low": place / BINS, "findings": len(part), **_said_and_right(part)} for place, part in sorted(parts.items())
    ]
    apart = sum(abs(one["said"] - one["right"]) * one["findings"] for one in bins) / len(every)
    brier = sum((said - right) ** 2 for said, right in every) / len(every)
    return {
        "findings": len(every),
        **_said_and_right(every),
        "ECE": round(apart, 4),
        "Brier": round(brier, 4),
        "bins": bins,
    }


def _said_and_right(claims: Sequence[Claim]) -> dict[str, float]:
    """The mean probability that was said, and the share that was right; of one claim at least."""
    return {
        "said": round(sum(said for said, _ in claims) / len(claims), 4),
        "right": round(sum(right for _, right in claims) / len(claims), 4),
    }


def rows_of(measured: Mapping[str, Any], part: str = "") -> list[dict[str, Any]]:
    """The bins of every tool as rows, ``part`` ``"first"`` for those of the best findings: what the figure draws."""
    return [
        {"tool": tool, **one}
        for tool, line in measured["tools"].items()
        for one in (line[part] if part else line)["bins"]
    ]


def table_text(measured: Mapping[str, Any]) -> str:
    """The table for people: a line a tool, for all findings and for the best one of each question."""
    lines = [f"{measured['set']}: {measured['questions']} questions; said and right are means"]
    lines.append(f"{'':<18}{'every finding':<37}{'the best of each question':<30}".rstrip())
    head = f"{'said':>8}{'right':>8}{'ECE':>8}{'Brier':>8}"
    lines.append(f"{'':<18}{head}     {head}")
    for tool, line in measured["tools"].items():
        lines.append(f"{tool:<18}{_cells(line)}     {_cells(line['first'])}")
        if "failed" in line:
            lines.append(f"  {line['failed']} failed: {line['failures'][0]}")
    return "\n".join(lines)


def _cells(line: Mapping[str, Any]) -> str:
    return "".join(f"{line[name]:>8.3f}" for name in ("said", "right", "ECE", "Brier"))
