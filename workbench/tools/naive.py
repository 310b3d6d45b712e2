"""``naive_search``: the passages whose vectors are nearest to the question's.

Its probability: logistic in the cosine, its lead, the words covered, and whose passage it is.
"""

from __future__ import annotations

from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json
from workbench.tools import evidence
from workbench.tools.scoring import LEAD, Question
from workbench.tools.tool import FunctionTool, Search


def search(tool_input: Search, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return passages by cosine, calibrated and ranked by the result."""
    pool = max(LEAD, tool_input.top_k)
    with log("dense", k=pool) as detail:
        hits = knowledge.search("meaning", tool_input.query, pool)
        detail["hits"] = len(hits)
    with log("calibrate"):
        question = Question.read(tool_input.query, knowledge)
        passages = knowledge.passages([chunk_id for chunk_id, _ in hits])
        results = evidence.judged(TOOL.name, question, passages, dense=hits)
    return evidence.answer(question, results, tool_input.top_k)


TOOL = FunctionTool(
    name="naive_search",
    description="Passages nearest in meaning (vectors): the simplest tool, which others fall back to.",
    function=search,
)
