"""``temporal_search``: facts with times, those that hold at the time that is asked about, each with its source."""

from __future__ import annotations

from workbench.ports import KnowledgeBase, Relation, ToolLog
from workbench.state import TimedFact
from workbench.tools import evidence
from workbench.tools.scoring import Question, ordered
from workbench.tools.tool import Found, FunctionTool, Search

SAID_LATER = 0.9
"""How probable a fact is that only what ended it says."""


class Input(Search):
    """What ``temporal_search`` can be asked."""


class Output(Found):
    """What ``temporal_search`` gives."""


def ranking(query: str, knowledge: KnowledgeBase, pool: int) -> list[tuple[str, float]]:
    """Passages by the facts in them that a question asks for, with the reciprocal of their place."""
    found = dict.fromkeys(fact["chunk_id"] for fact in knowledge.facts_about(query))
    return [(chunk_id, 1 / place) for place, chunk_id in enumerate(list(found)[:pool], start=1)]


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """The facts that are asked for, in the passages that state them."""
    with log("facts") as detail:
        facts = knowledge.facts_about(tool_input.query)
        detail["hits"] = len(facts)
    by_passage: dict[str, list[TimedFact]] = {}
    for fact in facts:
        by_passage.setdefault(fact["chunk_id"], []).append(fact)
    passages = knowledge.passages(list(by_passage))
    found = [
        evidence.chunk(passage, score, TOOL.name, knowledge.name)
        for passage, score in zip(passages, ordered(len(passages)), strict=True)
    ]
    for one in found:
        one["metadata"]["facts"] = by_passage.pop(one["source_id"])
    for chunk_id, told in by_passage.items():  # said by what is not told yet: "was succeeded in 2005"
        for fact in told:
            said = Relation(
                relation_id=f"fact:{chunk_id}",
                source=fact["subject"],
                type=fact["attribute"],
                target=fact["value"],
                sentence=fact["sentence"],
                chunk_id=chunk_id,
            )
            found.append(evidence.relationship(said, SAID_LATER, TOOL.name, knowledge.name))
            found[-1]["metadata"]["facts"] = [fact]
    for one in found:
        one["metadata"]["as_of"] = getattr(knowledge, "as_of", "")
    question = Question.of(tool_input.query, knowledge)
    return Output(**evidence.answer(question, found, tool_input.top_k))


TOOL = FunctionTool(
    name="temporal_search",
    description="Facts with times: who or what held at the time that is asked about, with sources.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Surely relevant where subject and attribute are named; from 1 down to 0.95 in the order of the facts.",
)
