"""``deep_research`` and ``deeper_research``: several searches as one step with a budget of its own.

``hybrid_search`` finds the first evidence; ``chain_exploration`` then follows what the question names. Each further
round of ``deeper_research`` follows the titles that were found too. Round follows round until none of the first
passages is new or the budget is spent.

Its probability: the highest probability of all searches that found the passage.
"""

from __future__ import annotations

import asyncio
from typing import cast

from pydantic import Field

from workbench.parts.chains import chain
from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json, RetrievalResult
from workbench.text import fold
from workbench.tools import evidence, hybrid
from workbench.tools.scoring import Question
from workbench.tools.tool import FunctionTool, Search, StepLog, ToolOutput


class DeepResearchInput(Search):
    """The input of both tools."""

    timeout_s: float = Field(12.0, gt=0, le=3600)
    """After so many seconds it returns what it has"""


class DeepResearchOutput(ToolOutput):
    """The evidence, and how it was found."""

    thoughts: list[Json] = Field(default_factory=list)
    """Each round: its evidence, what it asks"""
    paths: list[str] = Field(default_factory=list)
    """Chains of titles, each with what leads on"""
    stopped: str = ""
    """Why it stopped: nothing new, rounds, or time"""


def research_tool(name: str, description: str, rounds: int, planned: bool = True) -> FunctionTool:
    """Make a preset of the loop with at most so many rounds, the first search included."""

    longest_query = 80  # characters of a query in the name of a sub-step
    most_front = 5  # first passages, which a round that finds nothing new leaves unchanged

    async def search(
        tool_input: DeepResearchInput, knowledge: KnowledgeBase, log: ToolLog
    ) -> DeepResearchOutput:
        results = dict[str, RetrievalResult]()
        seen = set()
        thoughts = []
        stopped = ""
        tool = hybrid.TOOL
        query = tool_input.query
        for number in range(1, rounds + 1):
            if number > 1 and _late(log, tool_input.timeout_s):
                stopped = "time"
                break
            with log(
                f"search {number}: {query[:longest_query]}", tool=tool.name, query=query
            ) as detail:
                # each search is a thread of its own, so that a cancelled step begins no other one
                request = tool.input_schema(query=query, top_k=tool_input.top_k)
                output = await tool(request, knowledge, StepLog())
                hits = output.model_dump()["results"]
                detail |= {"hits": len(hits), "evidence": evidence.titles(hits[:most_front])}
            # each piece once, with its highest score and the search that had it first
            for result in hits:
                before = results.get(result["result_id"], result)
                research = {"research": {"round": number, "query": query}}
                metadata = {**research, **result["metadata"], **before["metadata"]}
                score = max(result["score"], before["score"])
                results[result["result_id"]] = cast(
                    RetrievalResult, {**result, "score": score, "metadata": metadata}
                )
            front = evidence.ranked(results.values(), most_front)
            new = [result["source_id"] for result in front if result["result_id"] not in seen]
            seen |= {result["result_id"] for result in front}
            # How many of their titles are followed.
            titles = [
                title
                for title in evidence.titles(front)[:3]
                if fold(title) not in fold(tool_input.query)
            ]
            following = query if number == 1 else " ".join([tool_input.query, *titles])
            # the chain is always followed once: it leads where no word of the question does
            if number > 1 and (not new or (tool is chain.TOOL and following == query)):
                stopped = "nothing new"
            elif number == rounds:
                stopped = "rounds"
            asks = [] if stopped else [{"tool": chain.TOOL.name, "query": following}]
            thoughts.append({"round": number, "evidence": new, "asks": asks})
            if stopped:
                break
            tool = chain.TOOL
            query = following
        for result in results.values():
            # it is judged as this tool's, whichever search found it
            result["metadata"]["tools"] = [name]
        question = await asyncio.to_thread(Question.read, tool_input.query, knowledge)
        answer = evidence.answer(question, results.values(), tool_input.top_k)
        paths = chain.chain_paths(answer["results"])
        return DeepResearchOutput(**answer, thoughts=thoughts, paths=paths, stopped=stopped)

    return FunctionTool(
        name=name,
        description=description,
        planned=planned,
        function=search,
        input_schema=DeepResearchInput,
        output_schema=DeepResearchOutput,
    )


def _late(log: ToolLog, timeout_s: float) -> bool:
    """Return whether another search might not end in time: it may take as long as the longest so far."""
    ended = max((step["offset_ms"] + step["duration_ms"] for step in log.sub_steps), default=0.0)
    longest = max((step["duration_ms"] for step in log.sub_steps), default=0.0)
    # Of its time; then no search begins any more, because the results have to be returned, too.
    return ended + longest > 1000 * 0.8 * timeout_s


DEEP = research_tool(
    "deep_research",
    "Searches, then follows the chains from what the question names; the thoughts are shown.",
    rounds=2,
)
DEEPER = research_tool(
    "deeper_research",
    "As deep_research, and further along the titles that are found: for questions whose way has several steps.",
    rounds=4,
    planned=False,
)
