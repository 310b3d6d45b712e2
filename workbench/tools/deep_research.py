"""``deep_research``: search, say what is missing, ask for exactly that, until everything is covered or nothing comes.

Three rounds of ``hybrid_search``, two next searches a round for each name. ``deeper_research`` is wider and longer, and
begins with chains: slower, and better where the way is long.

No round of reflection asks for it: of the 13 questions of the project's own set of hops whose documents the fusion
agent does not all find, it has those of one, and there the evidence was not thin.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import Field

from workbench.ports import KnowledgeBase, ToolLog
from workbench.text import language_of
from workbench.tools import evidence
from workbench.tools.chain import ANSWERING, in_order, never_rising, paths_of
from workbench.tools.query_terms import AskedWords
from workbench.tools.research import SHARE_OF_TIME, Reach, Research
from workbench.tools.scoring import Question
from workbench.tools.tool import Found, FunctionTool, Search

DEEP = Reach(rounds=3, asks=2, chains=False)


class Input(Search):
    """What a research can be asked."""

    timeout_s: float = Field(12.0, gt=0, le=3600, description="How long it may take; then it gives what it has")


class Output(Found):
    """What a research gives: its ``thoughts`` in their order, and what is ``missing`` at the end."""

    thoughts: list[dict[str, Any]] = Field(default_factory=list, description="What was found, missing, and asked for")
    missing: list[str] = Field(default_factory=list, description="What of the question no evidence covers")
    stopped: str = Field("", description="Why it stopped: covered, nothing new, rounds, or time")
    paths: list[str] = Field(default_factory=list, description="What led from passage to passage")


def researched(
    tool: str, reach: Reach, tool_input: Input, knowledge: KnowledgeBase, log: ToolLog, cancelled: threading.Event
) -> Output:
    """The whole research, in this thread; it begins no other search when its time is nearly over, or when cancelled."""

    def late() -> str:
        if cancelled.is_set():
            return "cancelled"
        ended = max((step["offset_ms"] + step["duration_ms"] for step in log.sub_steps), default=0.0)
        longest = max((s["duration_ms"] for s in log.sub_steps if s["name"].startswith("search")), default=0.0)
        return "time" if ended + longest > 1000 * SHARE_OF_TIME * tool_input.timeout_s else ""

    with knowledge.reading():
        with log("link") as detail:
            question = Question.of(tool_input.query, knowledge)
            detail |= question.linked
        research = Research(tool_input.query, question, knowledge, reach, log, late)
        stopped = research.run()
        with log("choose", stopped=stopped) as detail:
            seen = [(i, {"worth": worth}) for i, worth in never_rising(research.best(tool_input.top_k))]
            words = AskedWords.of(tool_input.query, knowledge)
            results = in_order(tool, seen, words, knowledge, research.about)
            answer = evidence.answer(question, results, len(results))
            detail["evidence"] = evidence.titles(answer["results"][:ANSWERING])
    return Output(
        **answer,
        thoughts=[{**thought, "says": says(thought, tool_input.query, research)} for thought in research.thoughts],
        missing=[lack.what for lack in research.missing],
        stopped=stopped,
        paths=paths_of(results),
    )


_WORDS = {
    "en": ("Found {evidence}.", "Nothing found.", "Missing: {missing}.", "Nothing is missing.", "Asking for {asks}."),
    "zh": ("已找到{evidence}。", "没有找到。", "还缺：{missing}。", "什么都不缺。", "继续查：{asks}。"),
}


def says(thought: dict[str, Any], query: str, research: Research) -> str:
    """A thought in words, in the language of the question."""
    language = language_of(query)
    found, none, missing, whole, asks = _WORDS[language]
    titles = [f"“{research.chains.titles[i]}”" for i in thought["evidence"] if i in research.chains.titles]
    lacking = [_of(lack["what"], lack["side"], language) for lack in thought["missing"]]
    between = "、" if language == "zh" else ", "
    told = [found.format(evidence=between.join(dict.fromkeys(titles))) if titles else none]
    told.append(missing.format(missing=between.join(dict.fromkeys(lacking))) if lacking else whole)
    if thought["asks"]:
        told.append(asks.format(asks=between.join(f"“{ask['query']}”" for ask in thought["asks"])))
    return ("" if language == "zh" else " ").join(told)


def _of(what: str, side: str, language: str) -> str:
    if not side or what == side:
        return what
    return f"{side}的{what}" if language == "zh" else f"{what} ({side})"


Function = Callable[[Input, KnowledgeBase, ToolLog], Awaitable[Output]]


def in_a_thread(tool: str, reach: Reach) -> Function:
    """The tool's function: the research in a thread, which begins no other search once nobody waits for it."""

    async def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(researched, tool, reach, tool_input, knowledge, log, cancelled)
        finally:
            cancelled.set()

    return search


TOOL = FunctionTool(
    name="deep_research",
    description="Searches, says what of the question is missing, and asks for that; the thoughts are shown.",
    input_schema=Input,
    output_schema=Output,
    function=in_a_thread("deep_research", DEEP),
    calibration="Logistic in what a passage newly covers, its place, and how much of the question the best five cover.",
)
