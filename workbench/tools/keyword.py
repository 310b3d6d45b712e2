"""``keyword_search``: the passages that hold the question's words, by BM25 over Latin words and Chinese bigrams."""

from __future__ import annotations

from workbench.ports import KnowledgeBase, ToolLog
from workbench.tools import evidence
from workbench.tools.scoring import Question, shares
from workbench.tools.tool import Found, FunctionTool, Search


class Input(Search):
    """What ``keyword_search`` can be asked."""


class Output(Found):
    """What ``keyword_search`` gives."""


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """Passages by BM25, calibrated and ranked by the result."""
    with log("bm25", k=tool_input.top_k) as detail:
        hits = knowledge.keyword_search(tool_input.query, tool_input.top_k)
        detail["hits"] = len(hits)
    with log("calibrate"):
        question = Question.of(tool_input.query, knowledge)
        bm25 = shares(hits)
        found = [
            evidence.judged(
                TOOL.name, passage, question.signals(passage) | {"bm25": bm25[passage["chunk_id"]]}, knowledge
            )
            for passage in knowledge.passages([chunk_id for chunk_id, _ in hits])
        ]
    return Output(**evidence.answer(question, found, tool_input.top_k))


TOOL = FunctionTool(
    name="keyword_search",
    description="Passages that hold the question's own words (BM25); best for names, numbers and rare terms.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in the words covered and whose passage it is, and BM25.",
)
