"""``local_search``: the entities in a question, what they are related to, and the passages that state it.

Its probability: logistic in the words covered and whose passage it is.
"""

from __future__ import annotations

from pydantic import Field

from workbench.ports import KnowledgeBase, ToolLog
from workbench.state import Json, RetrievalResult, unique
from workbench.tools import evidence
from workbench.tools.scoring import Question, around, passages_around
from workbench.tools.tool import FunctionTool, Search


class LocalSearchInput(Search):
    """The input of ``local_search``."""

    entities: list[str] = Field(default_factory=list)
    """More names to look around than those of the query"""


def search(tool_input: LocalSearchInput, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return cards of the linked entities, the sentences of their relations, and their passages."""
    most_neighbours = 30
    with log("link") as detail:
        question = Question.read(tool_input.query, knowledge, tool_input.entities)
        detail["entities"] = question.entities
    with log("neighbours") as detail:
        neighbours = around(question, knowledge)[:most_neighbours]
        detail["neighbours"] = len(neighbours)
    with log("passages") as detail:
        passages = knowledge.passages(
            passages_around(question, knowledge, max(most_neighbours, tool_input.top_k))
        )
        results = evidence.judged(TOOL.name, question, passages)
        detail["hits"] = len(results)
    with log("relations") as detail:
        sentences = _cards(question, knowledge) + _sentences(question, knowledge, neighbours)
        detail["hits"] = len(sentences)
    answer = evidence.answer(question, [*results, *sentences], tool_input.top_k)
    around_them = (entity["name"] for entity, _ in neighbours)
    return answer | {"entities": unique([*question.entities, *around_them])}


def _cards(question: Question, knowledge: KnowledgeBase) -> list[RetrievalResult]:
    cards = []
    for name in question.named:
        about = next(iter(knowledge.passages(doc_ids=name.subjects[:1])), None)
        entity = knowledge.entity(name.entity_id)
        if entity is not None:
            text = evidence.card(entity, knowledge)
            score = question.judge(
                TOOL.name, text, name.name, next(iter(name.subjects), ""), subject=1.0
            )
            cards.append(evidence.entity(entity, text, score, TOOL.name, knowledge.name, about))
    return cards


def _sentences(
    question: Question, knowledge: KnowledgeBase, neighbours: list
) -> list[RetrievalResult]:
    relations = [r for _, between in neighbours for r in between]
    # a sentence that states several relations is there once
    by_sentence = {(r["chunk_id"], r["sentence"]): r for r in reversed(relations)}
    passages = {
        p["chunk_id"]: p
        for p in knowledge.passages([r["chunk_id"] for r in by_sentence.values()])
    }
    results = []
    for relation in reversed(by_sentence.values()):
        passage = passages.get(relation["chunk_id"])
        title, doc_id = (passage["title"], passage["doc_id"]) if passage else ("", "")
        score = question.judge(TOOL.name, relation["sentence"], title, doc_id)
        results.append(evidence.relationship(relation, score, TOOL.name, knowledge.name, passage))
    return results


TOOL = FunctionTool(
    name="local_search",
    description="What the knowledge graph says of the names in the question: their cards, relations and passages.",
    input_schema=LocalSearchInput,
    function=search,
)
