"""``deep_research`` and ``deeper_research``: the loop of searching and following as one step with a budget of its own.

``hybrid_search`` finds the first evidence. What it leaves of the question is then asked of the names that it contains
(``next_hop``); where it contains none, the question is searched more widely. Round follows round until none of the
first passages is new or the budget is spent. ``deeper_research`` has the larger budget, and begins with
``chain_exploration`` as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json, RetrievalResult
from workbench.tools import chain, evidence, hybrid, next_hop
from workbench.tools.scoring import Question
from workbench.tools.tool import FunctionTool, Search, StepLog, ToolOutput

LONGEST_QUERY = 80
"""Characters of a query in the name of a sub-step."""
FRONT = 5
"""The first passages: a round that leaves them unchanged has found nothing new."""
SHARE_OF_TIME = 0.8
"""Of its time; then no search begins any more, because the results have to be returned, too."""


class DeepResearchInput(Search):
    """The input of both tools."""

    timeout_s: float = Field(12.0, gt=0, le=3600, description="After so many seconds it returns what it has")


class DeepResearchOutput(ToolOutput):
    """The evidence, and how it was found."""

    thoughts: list[Json] = Field(default_factory=list, description="Each round: its evidence, what it asks")
    paths: list[str] = Field(default_factory=list, description="Chains of titles, each with what leads on")
    stopped: str = Field("", description="Why it stopped: nothing new, rounds, or time")


Request = tuple[FunctionTool, Any]
"""A tool and its input."""


@dataclass
class Research:
    """The state of one question's research: each piece of evidence once, and the searches so far."""

    tool_input: DeepResearchInput
    knowledge: KnowledgeBase
    results: dict[str, RetrievalResult] = field(default_factory=dict)
    searches: list[Search] = field(default_factory=list)

    def search(self, tool: FunctionTool, request: Search, number: int) -> list[RetrievalResult]:
        """Run one search; return what it found."""
        self.searches.append(request)
        with self.knowledge.reading():
            source_ids: list[RetrievalResult] = tool.function(request, self.knowledge, StepLog())["results"]
        trust = 1.0
        if isinstance(request, next_hop.NextHopInput):  # at most as likely as the passage that leads to it
            document = evidence.document_id(request.passage)
            scores = [r["score"] for r in self.results.values() if r["metadata"].get("doc_id") == document]
            trust = max(scores, default=0.0)
        for result in source_ids:
            result["metadata"] |= {"research": {"round": number, "query": request.query}, **self._chain(result)}
            result["score"] = round(trust * result["score"], 6)
            if seen := self.results.get(result["result_id"]):
                result["metadata"] |= seen["metadata"]
                result["score"] = max(result["score"], seen["score"])
            self.results[result["result_id"]] = result
        return source_ids

    def best(self) -> list[RetrievalResult]:
        """Return the evidence, the likeliest first."""
        return sorted(self.results.values(), key=lambda result: (-result["score"], result["result_id"]))

    def _chain(self, result: RetrievalResult) -> Json:
        """Return the steps to a piece of evidence from where the research began, not only from the passage before."""
        steps = result["metadata"].get("chain", {}).get("steps", ())
        before = self.results.get(f"low_level:{steps[0]['from']}") if steps else None
        earlier = before["metadata"].get("chain", {}).get("steps", ()) if before else ()
        returns = any(step["from"] == result["source_id"] for step in earlier)
        return {} if returns else chain.chain_metadata([*earlier, *steps])

    def requests(self, limit: int) -> list[Request]:
        """Return what to search next: what is left, of names in the evidence, or the same more widely."""
        query, top_k = self.tool_input.query, self.tool_input.top_k
        done = {request.query for request in self.searches}
        with self.knowledge.reading():
            hops = next_hop.sub_questions(query, self.best(), self.knowledge, limit + len(done))
        left = [hop for hop in hops if hop.query not in done][:limit]
        wider = hybrid.HybridSearchInput(query=query, top_k=min(1000, 2 * top_k))
        if not left:
            return [] if wider in self.searches else [(hybrid.TOOL, wider)]
        return [(next_hop.TOOL, next_hop.NextHopInput(**hop.to_input(query), top_k=top_k)) for hop in left]


def research_tool(name: str, description: str, rounds: int, hops: int, first: Sequence[FunctionTool]) -> FunctionTool:
    """Make a preset of the loop.

    Args:
        name: of the tool.
        description: of the tool.
        rounds: the most rounds, the first search included.
        hops: the most names that are followed in a round.
        first: the tools of the first round.
    """

    async def search(tool_input: DeepResearchInput, knowledge: KnowledgeBase, log: ToolLog) -> DeepResearchOutput:
        research, query, top_k = Research(tool_input, knowledge), tool_input.query, tool_input.top_k
        requests: list[Request] = [(tool, tool.input_schema(query=query, top_k=top_k)) for tool in first]
        thoughts, stopped, seen = list[Json](), "", set[str]()
        for number in range(1, rounds + 1):
            for tool, request in requests:
                if research.searches and _late(log, tool_input.timeout_s):
                    stopped = "time"
                    break
                label = f"search {number}: {request.query[:LONGEST_QUERY]}"
                with log(label, tool=tool.name, query=request.query) as detail:
                    # each search is a thread of its own, so that a cancelled step begins no other one
                    results = await asyncio.to_thread(research.search, tool, request, number)
                    detail |= {"hits": len(results), "evidence": evidence.titles(results[:FRONT])}
            front = [result["result_id"] for result in research.best()[:FRONT]]
            new = [result_id for result_id in front if result_id not in seen]
            seen |= set(new)
            stopped = stopped or ("" if new else "nothing new") or ("rounds" if number == rounds else "")
            requests = [] if stopped else await asyncio.to_thread(research.requests, hops)
            asks = [{"tool": t.name, "query": r.query, "because": getattr(r, "sentence", "")} for t, r in requests]
            source_ids = [research.results[result_id]["source_id"] for result_id in new]
            thoughts.append({"round": number, "evidence": source_ids, "asks": asks})
            if not requests:
                stopped = stopped or "nothing new"
                break
        question = await asyncio.to_thread(Question.read, query, knowledge)
        for result in (results := research.best()):
            result["metadata"]["tools"] = [name]  # it is judged as this tool's, whichever search found it
        answer = evidence.answer(question, results, top_k)
        paths = chain.chain_paths(answer["results"])
        return DeepResearchOutput(**answer, thoughts=thoughts, paths=paths, stopped=stopped)

    return FunctionTool(
        name=name,
        description=description,
        function=search,
        input_schema=DeepResearchInput,
        output_schema=DeepResearchOutput,
        calibration="The highest probability of all searches that found the passage.",
    )


def _late(log: ToolLog, timeout_s: float) -> bool:
    """Return whether another search might not end in time: it may take as long as the longest so far."""
    ended = max((step["offset_ms"] + step["duration_ms"] for step in log.sub_steps), default=0.0)
    longest = max((step["duration_ms"] for step in log.sub_steps), default=0.0)
    return ended + longest > 1000 * SHARE_OF_TIME * timeout_s


DEEP = research_tool(
    "deep_research",
    "Searches, then asks the open part of the question about each new name in the evidence; the thoughts are shown.",
    rounds=3,
    hops=2,
    first=[hybrid.TOOL],
)
DEEPER = research_tool(
    "deeper_research",
    "As deep_research, wider and longer, and along chains: for questions whose way has several steps.",
    rounds=5,
    hops=4,
    first=[hybrid.TOOL, chain.TOOL],
)
