"""The steps of a plan that follow chains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.graphs.plan import Ask
from workbench.parts.chains.merging import CHAIN
from workbench.plans import PlanStep
from workbench.ports import KnowledgeBase, Tools


def chain_steps(ask: Ask, base: KnowledgeBase, tools: Tools) -> list[PlanStep]:
    """Return the steps that follow chains, each side of a comparison alone, or none where fields answer.

    Where documents have typed fields, a chain joins in for words of the question that no field accounts for. A plain
    search runs next to each chain; ``merging`` weighs what both find.
    """
    intent = ask.decision["query_intent"]
    question = ask.decision.get("question")
    typed = any(field["documents"] for field in base.about()["fields"])
    if CHAIN not in tools or (intent == "compare" and len(ask.names) < 2):
        return []
    if typed and not (question and question["words"] and intent in ("qa", "person")):
        return []
    if not typed and intent in ("recommend", "list") and not ask.names:
        return []
    sides = ask.names[: max(1, ask.settings.max_tasks - 2)] if intent == "compare" else ()
    mentions = question["names"] if question else []
    steps = []
    for number, name in enumerate(sides, start=1):
        query = _without(
            ask.query, [(m["start"], m["end"]) for m in mentions if m["name"] != name]
        )
        steps.append(ask.step(f"side_{number}", CHAIN, "plan_side", {"query": query}, name=name))
    steps = steps or [
        ask.step("chain", CHAIN, "plan_chain", {"query": ask.grounded or ask.query})
    ]
    steps.append(ask.search())
    return [*steps, ask.naive("plan_fallback", steps, "if_insufficient")]


def _without(query: str, spans: Iterable[Sequence[int]]) -> str:
    for start, end in sorted(map(tuple, spans), reverse=True):
        query = query[:start] + query[end:]
    return " ".join(query.split())
