"""Sub-questions: the part of a question that a passage leaves open, asked of a name in that passage.

"Where was the writer of The Reef born?": a sentence on The Reef says who wrote it and names Mara Velden, so "born" is
asked of her. No rule reads the sentence: what it says of the question is measured by what words mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from workbench.knowledge.names.surfaces import surface_key
from workbench.ports import KnowledgeBase, Passage
from workbench.text import sentences
from workbench.tools.scoring import coverage, shares

SUB_QUESTIONS = 2
"""The most sub-questions of one question."""
DOCUMENTS, PASSAGES = 6, 3
"""Documents in front whose sentences are read, and passages of each."""
COVERED = 0.75
"""The clearness, 0 to 1, from which a sentence covers a word of the question, so that it is not asked again."""
BEHIND = 0.04
"""How much more of the question a sentence must cover for each place that its document ranks below another."""
HITS = 10
"""Passages of each of the two searches of a sub-question."""


class SubQuestion(NamedTuple):
    """The remaining words of a question, asked of a ``name`` that a sentence of a passage mentions."""

    query: str
    name: str
    passage: Passage
    sentence: str


def sub_questions(
    question: str, front: Sequence[Passage], knowledge: KnowledgeBase, reach: int
) -> list[SubQuestion]:
    """Return the rest of a question, asked of the names in those sentences that cover most of it.

    Args:
        question: the question.
        front: the best passages, best first.
        knowledge: the base that has them.
        reach: the most passages that may share a name.
    """
    documents = list(dict.fromkeys(passage["doc_id"] for passage in front))[:DOCUMENTS]
    passages = [p for p in knowledge.passages(doc_ids=documents) if p["position"] < PASSAGES]
    ids = [passage["chunk_id"] for passage in passages]
    names = dict[tuple[str, str], set[str]]()
    for link in knowledge.around("links", ids):
        names.setdefault((link["chunk_id"], link["sentence"]), set()).add(link["surface"])
    for shared in knowledge.around("shared", ids, reach):
        names.setdefault((shared["chunk_id"], shared["sentence"]), set()).add(shared["phrase"])
    candidates = [
        (passage, sentence)
        for passage in passages
        for sentence in dict.fromkeys(sentences(passage["text"]))
    ]
    texts = [f"{passage['title']}. {sentence}" for passage, sentence in candidates]
    words, (weights, rows) = (
        knowledge.words(question)["words"],
        coverage(question, texts, knowledge),
    )
    best, question_key = dict[str, tuple[float, SubQuestion]](), surface_key(question)
    for (passage, sentence), row in zip(candidates, rows, strict=True):
        left = [word for word, clearness in zip(words, row, strict=True) if clearness < COVERED]
        covered = sum(weight * clearness for weight, clearness in zip(weights, row, strict=True))
        worth = covered - BEHIND * documents.index(passage["doc_id"])
        for name in sorted(
            names.get((passage["chunk_id"], sentence), set())
            | {passage["title"].partition(" (")[0]}
        ):
            key = surface_key(name)
            if key not in question_key and worth > best.get(key, (-1.0,))[0]:
                best[key] = worth, SubQuestion(" ".join([*left, name]), name, passage, sentence)
    return [
        best[key][1]
        for key in sorted(best, key=lambda key: (-round(best[key][0], 9), key))[:SUB_QUESTIONS]
    ]


def answers(
    question: str, sub_question: SubQuestion, knowledge: KnowledgeBase
) -> dict[str, dict[str, float]]:
    """Return the passages that a sub-question finds, each with its signals.

    ``holds``: whether it has the name; ``gain``: what it says of the question beyond the sentence; ``bm25``, and the
    inverse places of both searches, ``words`` and ``meaning``.
    """
    lexical, dense = (
        knowledge.search(kind, sub_question.query, HITS) for kind in ("words", "meaning")
    )
    passages = knowledge.passages(list(dict.fromkeys(i for i, _ in [*dense, *lexical])))
    texts = [f"{passage['title']}. {passage['text']}" for passage in passages]
    weights, rows = coverage(
        question, [f"{sub_question.passage['title']}. {sub_question.sentence}", *texts], knowledge
    )
    bm25, words, meaning = shares(lexical), _places(lexical), _places(dense)
    key = surface_key(sub_question.name)
    return {
        passage["chunk_id"]: {
            "holds": float(key in surface_key(text)),
            "gain": sum(
                w * max(0.0, new - old) for w, new, old in zip(weights, row, rows[0], strict=True)
            ),
            "bm25": bm25.get(passage["chunk_id"], 0.0),
            "words": words.get(passage["chunk_id"], 0.0),
            "meaning": meaning.get(passage["chunk_id"], 0.0),
        }
        for passage, text, row in zip(passages, texts, rows[1:], strict=True)
    }


def _places(ranking: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {chunk_id: 1 / place for place, (chunk_id, _) in enumerate(ranking, start=1)}
