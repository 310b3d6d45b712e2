"""``naive_search``: the passages whose vectors are nearest to the question's."""

from __future__ import annotations

from workbench.ports import KnowledgeBase, ToolLog
from workbench.tools import evidence
from workbench.tools.scoring import LEAD, Question, both, cosine_signals
from workbench.tools.tool import Found, FunctionTool, Search


class Input(Search):
    """What ``naive_search`` can be asked."""


class Output(Found):
    """What ``naive_search`` gives."""


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """Passages by cosine, calibrated and ranked by the result."""
    pool = max(LEAD, tool_input.top_k)
    with log("dense", k=pool) as detail:
        near = knowledge.vector_search(tool_input.query, pool)
        detail["hits"] = len(near)
    with log("calibrate"):
        question = Question.of(tool_input.query, knowledge)
        dense = cosine_signals(near)
        found = [
            evidence.judged(TOOL.name, p, both(question.signals(p), dense[p["chunk_id"]]), knowledge)
            for p in knowledge.passages([chunk_id for chunk_id, _ in near])
        ]
    return Output(**evidence.answer(question, found, tool_input.top_k))


TOOL = FunctionTool(
    name="naive_search",
    description="Passages nearest in meaning (vectors): the simplest tool, which others fall back to.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in the cosine, its lead, the words covered, and whose passage it is.",
)
