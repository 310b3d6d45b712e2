"""Tools that count their calls or never end, and texts with links between them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.ports import AroundKind, Link, LinkKind, Mention
from workbench.session import Workbench
from workbench.testing import MemoryKnowledge
from workbench.text import sentences


@pytest.fixture
def calls(wb) -> Counter[str]:
    counted = Counter[str]()

    @wb.tools.tool(name="look", description="looks a thing up")
    async def look(query: str) -> list[dict]:
        counted[query] += 1
        return [{"text": f"{query} was looked up.", "metadata": {"title": query, "doc_id": query}}]

    return counted


def endless(wb: Workbench) -> None:
    """A planner that follows the rules but for two words: SLOW searches until it is stopped, FAIL fails."""
    from workbench.graphs.plan import RulePlanner

    rules, budget = RulePlanner(wb.settings), PlanBudget(timeout_s=600)

    @wb.tools.tool(name="endless", description="never ends by itself")
    async def search(query: str) -> list[str]:
        await asyncio.sleep(600)
        return []

    @wb.register("planner")
    async def planner(query: str, decision: Any, knowledge: Any, tools: Any) -> Plan:
        if "FAIL" in query:
            raise RuntimeError("this planner fails when it is told to")
        if "SLOW" in query:
            step = {"step_id": "slow", "objective": query, "tool": "endless", "tool_input": {"query": query}}
            return Plan(problem_statement=query, steps=[PlanStep(**step, budget=budget)])
        return await rules(query, decision, knowledge, tools)


class LinkedKnowledge(MemoryKnowledge):
    """A few texts, with the links between them: a document's id is its title, and nothing else is a phrase."""

    def link(self, text: str, kind: LinkKind = "name") -> list[Mention]:
        found = [(text.find(doc_id), doc_id) for doc_id in self._texts] if kind == "title" else []
        return [Mention(start=at, end=at + len(i), surface=i, doc_ids=[i]) for at, i in sorted(found) if at >= 0]

    def around(self, kind: AroundKind, ids: Sequence[str] = (), limit: int = 0) -> list[Any]:
        """Return the other ids in the texts, or the sentences that hold an id."""
        if kind == "links":
            own = [chunk_id.rpartition("#")[0] for chunk_id in ids]
            return [link for doc_id in self._texts for i in own if i != doc_id for link in self._said(doc_id, i)]
        return []

    def _said(self, doc_id: str, within: str) -> list[Link]:
        told = [sentence for sentence in sentences(self._texts.get(within, "")) if doc_id in sentence]
        return [Link(chunk_id=f"{within}#0", doc_id=doc_id, surface=doc_id, sentence=sentence) for sentence in told]
