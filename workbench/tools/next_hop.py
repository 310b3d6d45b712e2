"""``next_hop``: what a passage leaves of a question, asked of a name in that passage.

"Where was the writer of The Reef born?": a sentence on The Reef says who wrote it and names Mara Velden, so "born"
is asked of her. ``sub_questions`` makes such searches of the evidence that is there, in any language, by what words
mean where the base can tell; the reflector proposes them as steps, and ``next_hop`` runs one. The sentence itself goes
with it: a passage is worth what it says beyond that sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from workbench.ports import KnowledgeBase, Passage, ToolLog
from workbench.state import Json, RetrievalResult
from workbench.text import CJK, fold, sentences
from workbench.tools import evidence
from workbench.tools.chain import chain_metadata, chain_step
from workbench.tools.chain_walk import HUB
from workbench.tools.fusing import Ranking
from workbench.tools.scoring import Question, probability, shares
from workbench.tools.tool import FunctionTool, Search

MAX_SUB_QUESTIONS = 4
"""Sub-questions of one pass."""
LOOKED_AT, PARTS = 6, 3
"""Documents of the evidence whose sentences are read, and passages of each."""
UNSAID, CLEAR = 0.4, 0.85
"""Cosines at which a word of a text does not say one of the question at all, and says it in full."""
SAID_ENOUGH = 0.75
"""From here on, 0 to 1, a word is said, and is asked no further."""
BEHIND = 0.04
"""What a sentence must say more of the question for each place that its document stands behind another."""
SAYS_MORE = 0.01
"""What a document must add to the share of the question that the better ones cover."""
HITS = 10
"""Passages of each of the two searches of a sub-question."""
_BRACKET = re.compile(r"\s*[(（][^()（）]*[)）]$")


class SubQuestion(NamedTuple):
    """The next question.

    Attributes:
        query: the words that are left, and the name.
        name: brought in by the sentence.
        passage: id of the passage that has the sentence, and ``title``: its own.
        sentence: as it stands there.
    """

    query: str
    name: str
    passage: str
    title: str
    sentence: str

    def to_input(self, question: str) -> Json:
        """Return the input of ``next_hop`` for it, of this question."""
        values = {"query": self.query, "name": self.name, "question": question, "passage": self.passage}
        return {**values, "sentence": f"{self.title}. {self.sentence}"}


def clarity(cosine: float) -> float:
    """Return how far a word says another one, 0 to 1, by the cosine of the two.

    >>> clarity(0.4), round(clarity(0.7), 2), clarity(1.0)
    (0.0, 0.67, 1.0)
    """
    return min(1.0, max(0.0, (cosine - UNSAID) / (CLEAR - UNSAID)))


class Reading(NamedTuple):
    """The coverage of a question's words by texts: each word's share of the whole weight, and 0 to 1 for each text."""

    words: list[str]
    weights: list[float]
    texts: list[list[float]]

    @classmethod
    def read(cls, question: str, texts: Sequence[str], knowledge: KnowledgeBase) -> Reading:
        """Read the texts by what words mean, where the base can tell."""
        words, rarity, rows = knowledge.matches(question, texts)
        total = sum(rarity) + 1e-6 * len(rarity) or 1.0
        shares = [(r + 1e-6) / total for r in rarity]
        return cls(words, shares, [[clarity(cosine) for cosine in row] for row in rows])

    def share(self, row: Sequence[float]) -> float:
        """Return how much of the question a row says, 0 to 1."""
        return sum(weight * clearness for weight, clearness in zip(self.weights, row, strict=True))

    def shares(self) -> list[float]:
        """Return how much of the question each text says, 0 to 1; of no words nothing is said."""
        return [self.share(row) if self.words else 0.0 for row in self.texts]


def measure_quality(question: str, results: Sequence[RetrievalResult], knowledge: KnowledgeBase) -> float:
    """Return the share of the question's words and names that results cover, times their mean score.

    The mean is over those that say something of the question which the better ones do not.
    """
    texts = [f"{result['metadata'].get('title') or ''}. {result['evidence']}" for result in results]
    reading = Reading.read(question, texts, knowledge)
    covered, share, scores = [0.0] * len(reading.words), 0.0, list[float]()
    for result, row in zip(results, reading.texts, strict=True):
        together = [max(pair) for pair in zip(covered, row, strict=True)]
        if reading.share(together) >= share + SAYS_MORE:
            covered, share = together, reading.share(together)
            scores.append(result["score"])
    return round(share * sum(scores) / len(scores), 3) if scores else 0.0


def sub_questions(
    question: str, results: Sequence[RetrievalResult], knowledge: KnowledgeBase, limit: int = MAX_SUB_QUESTIONS
) -> list[SubQuestion]:
    """Return what is left of a question, asked of each name in the sentences of the first documents.

    Args:
        question: the question.
        results: the evidence, best first.
        knowledge: where it was found.
        limit: how many; those whose sentences say most of the question.
    """
    folded, best = fold(question), dict[str, tuple[float, int, SubQuestion]]()
    statements = list(_sentences(results, knowledge))
    texts = [f"{passage['title']}. {sentence}" for _, passage, sentence, _ in statements]
    reading = Reading.read(question, texts, knowledge)
    for (place, passage, sentence, names), row in zip(statements, reading.texts, strict=True):
        explained = reading.share(row)
        left = [word for word, clearness in zip(reading.words, row, strict=True) if clearness < SAID_ENOUGH]
        inside = {word for word in left for longer in left if word != longer and word in longer and CJK.match(word)}
        left = [word for word in left if word not in inside]
        for name in names:
            key = fold(name)
            if len(key) > 1 and key not in folded and explained > best.get(key, (-1.0,))[0]:
                query = " ".join([*left, name])
                best[key] = (
                    explained,
                    place,
                    SubQuestion(query, name, passage["chunk_id"], passage["title"], sentence),
                )
    order = sorted(best, key=lambda key: (-round(best[key][0] - BEHIND * best[key][1], 9), key))
    return [best[key][2] for key in order[:limit]]


def _sentences(
    results: Sequence[RetrievalResult], knowledge: KnowledgeBase
) -> Iterable[tuple[int, Passage, str, list[str]]]:
    """Place of the document, passage, sentence, and the names in it, of the first documents."""
    ids_of_documents = (str(r["metadata"].get("doc_id") or "") for r in results if r["source_type"] == "chunk")
    documents = list(dict.fromkeys(filter(None, ids_of_documents)))[:LOOKED_AT]
    passages = [p for p in knowledge.passages(doc_ids=documents) if p["position"] < PARTS]
    names: dict[tuple[str, str], list[str]] = {}
    ids = [passage["chunk_id"] for passage in passages]
    for link in knowledge.ways.links_from(ids):
        names.setdefault((link["chunk_id"], link["sentence"]), []).append(link["surface"])
    for shared in knowledge.ways.shared(ids, HUB):
        names.setdefault((shared["chunk_id"], shared["sentence"]), []).append(shared["phrase"])
    for passage in sorted(passages, key=lambda p: (documents.index(p["doc_id"]), p["position"])):
        own = [_BRACKET.sub("", passage["title"])]
        in_passage = dict.fromkeys([*sentences(passage["text"]), *(s for i, s in names if i == passage["chunk_id"])])
        for sentence in in_passage:
            brought = [*names.get((passage["chunk_id"], sentence), ()), *own]
            yield documents.index(passage["doc_id"]), passage, sentence, sorted(set(brought))


class NextHopInput(Search):
    """The input of ``next_hop``."""

    question: str = Field("", description="The whole question; without it the query is")
    name: str = Field("", description="Of whom or what it is asked")
    passage: str = Field("", description="Id of the passage that brings the name in")
    sentence: str = Field("", description="The sentence that brings it in, with the title of its passage")


def search(tool_input: NextHopInput, knowledge: KnowledgeBase, log: ToolLog) -> Json:
    """Return passages that say of the name what is left of the question."""
    query = tool_input.query
    with log("bm25", k=HITS) as detail:
        lexical = knowledge.keyword_search(query, HITS)
        detail["hits"] = len(lexical)
    with log("dense", k=HITS) as detail:
        dense = knowledge.vector_search(query, HITS)
        detail["hits"] = len(dense)
    with log("read") as detail:
        passages = knowledge.passages(list(dict.fromkeys(i for i, _ in [*dense, *lexical])))
        detail["read"] = len(passages)
    with log("calibrate"):
        results = judged(tool_input, passages, {"bm25": lexical, "dense": dense}, knowledge)
    return evidence.answer(Question.read(query, knowledge), results, tool_input.top_k)


def judged(
    request: NextHopInput, passages: Sequence[Passage], hits: Mapping[str, Ranking], knowledge: KnowledgeBase
) -> list[RetrievalResult]:
    """Return the passages as evidence for a sub-question, by what they say beyond the sentence that it continues from.

    Args:
        request: the sub-question.
        passages: those that were found.
        hits: ``bm25`` and ``dense``, as they were found.
        knowledge: where.
    """
    name = fold(request.name)
    texts = [f"{passage['title']}. {passage['text']}" for passage in passages]
    reading = Reading.read(request.question or request.query, [request.sentence, *texts], knowledge)
    bm25, explained = shares(hits.get("bm25", ())), reading.texts[0]
    places = {
        source: {i: 1 / place for place, (i, _) in enumerate(ranking, start=1)} for source, ranking in hits.items()
    }
    results = []
    for passage, text, row in zip(passages, texts, reading.texts[1:], strict=True):
        chunk_id = passage["chunk_id"]
        seen = {
            "holds": float(bool(name) and name in fold(text)),
            "gain": reading.share([max(0.0, new - old) for new, old in zip(row, explained, strict=True)]),
            "bm25": bm25.get(chunk_id, 0.0),
            "said": places.get("bm25", {}).get(chunk_id, 0.0),
            "near": places.get("dense", {}).get(chunk_id, 0.0),
        }
        result = evidence.chunk(passage, probability(TOOL.name, seen), TOOL.name, knowledge.name, seen)
        result["metadata"] |= _way(request, passage, seen)
        results.append(result)
    return results


def _way(tool_input: NextHopInput, passage: Passage, seen: Mapping[str, float]) -> dict[str, object]:
    """Return the step from the sentence to a passage that holds the name."""
    if not seen["holds"] or tool_input.passage in ("", passage["chunk_id"]):
        return {}
    by = "title" if fold(_BRACKET.sub("", passage["title"])) == fold(tool_input.name) else "phrase"
    title, _, sentence = tool_input.sentence.partition(". ")
    source, target = tool_input.passage, passage["chunk_id"]
    titles = {source: title, target: passage["title"]}
    return chain_metadata([chain_step(target, source, by, tool_input.name, sentence, titles)])


TOOL = FunctionTool(
    name="next_hop",
    description="Asks the open part of the question about a new name in a passage: the next hop.",
    input_schema=NextHopInput,
    function=search,
    calibration="Logistic in whether the passage holds the name, what it says beyond the sentence that brought it in, "
    "BM25, and its places in both searches.",
)
