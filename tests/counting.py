"""Tools that count their calls or never end, and texts with links between them."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.session import Workbench


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
