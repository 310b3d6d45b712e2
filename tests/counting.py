"""A tool that counts its own calls: what a fork, a graft or a question of what-if really runs again."""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.fixture
def calls(wb) -> Counter[str]:
    """How often the tool ``look`` was called, by query."""
    counted = Counter[str]()

    @wb.tools.tool(name="look", description="looks a thing up")
    async def look(query: str) -> list[dict]:
        counted[query] += 1
        return [{"text": f"{query} was looked up.", "metadata": {"title": query, "doc_id": query}}]

    return counted
