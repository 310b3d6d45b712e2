"""``keyword_search``: the passages that hold the question's words, by BM25 over Latin words and Chinese bigrams.

Its probability: logistic in the words covered and whose passage it is, and BM25.
"""

from __future__ import annotations

from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json
from workbench.tools import evidence
from workbench.tools.scoring import Question
from workbench.tools.tool import FunctionTool, Search


def search(tool_input: Search, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return passages by BM25, calibrated and ranked by the result."""
    with log("bm25", k=tool_input.top_k) as detail:
        hits = knowledge.search("words", tool_input.query, tool_input.top_k)
        detail["hits"] = len(hits)
    with log("calibrate"):
        question = Question.read(tool_input.query, knowledge)
        passages = knowledge.passages([chunk_id for chunk_id, _ in hits])
        results = evidence.judged(TOOL.name, question, passages, bm25=hits)
    return evidence.answer(question, results, tool_input.top_k)


TOOL = FunctionTool(
    name="keyword_search",
    description="Passages that hold the question's own words (BM25); best for names, numbers and rare terms.",
    function=search,
)
