"""One corpus and its three indexes, as everybody else sees them: ``context.KnowledgeBase``.

Every answer is of one generation of the index: a call reads from one snapshot of the file, and so do all calls of a
thread inside ``reading``. What is kept in memory (vectors, graph, names) belongs to a ``View`` of that generation, and
each call looks whether the generation still holds: another process may have written.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from workbench.errors import KnowledgeError, ModelError
from workbench.extensions import provided
from workbench.knowledge.graph import graph, view
from workbench.knowledge.graph.view import View, entities, relations, surfaces
from workbench.knowledge.indexes import keywords, vectors
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.stores import place_of
from workbench.knowledge.names import schema
from workbench.knowledge.names.linking import Linker
from workbench.knowledge.names.surfaces import candidates, key_of
from workbench.knowledge.names.title_links import IndexWays
from workbench.knowledge.reading import canvas
from workbench.models import rerank
from workbench.models.embeddings import TextModel, products, text_model, word_vectors
from workbench.ports import (
    Community,
    Enricher,
    Entity,
    Field,
    Matches,
    Mention,
    Passage,
    Relation,
    RelationKind,
    scored,
)
from workbench.settings import Settings
from workbench.state import Condition, Json, Sort
from workbench.text import CJK, FUNCTION_WORDS, simplified, stem, terms

if TYPE_CHECKING:
    import networkx
    import numpy as np


# --- Several things bear one name: the words around it and the other names beside it say which one is meant ---

RIVALS = 8
"""Bearers of one name that are looked at."""
LEAD = 0.35
"""How much rarer words must speak for a bearer than for the next, as a share of the weight of the rarest word."""
_MOST = 0.7
"""A bearer of whom nearly as many words speak as of the best one is not ruled out."""
_UNTYPED = "Document"
_ASKED = "who whom whose what which when where why how is are was were be did does do has have"
_ASKING = FUNCTION_WORDS | frozenset(_ASKED.split())
"""Words that choose nobody."""


@dataclass(frozen=True)
class Candidate:
    """One bearer of a name: ``next to`` are the entities related to it, ``words`` all its terms."""

    entity: Entity
    year: int | None
    beside: frozenset[str]
    words: frozenset[str]

    def may_equal(self, other: Candidate) -> bool:
        """Check whether both may be one thing: documents of one title without a type or year are parts of one."""
        if self.year is not None and other.year is not None:
            return self.year == other.year
        return self.entity["type"] == other.entity["type"] == _UNTYPED


def disambiguate(
    text: str, mentions: Sequence[Mention], index: Index, weight: Callable[[str], float], rarest: float
) -> list[Mention]:
    """Return the mentions of a text, each name that several bear with who is meant.

    ``others`` of a mention are those whom nothing in the text tells from it.

    Args:
        text: in which the names stand.
        mentions: of every name in the text, the best connected bearer first.
        index: says what there is of each bearer.
        weight: how rare a term is.
        rarest: the weight of a term that one passage has.
    """
    found = []
    for mention in mentions:
        ids = [mention["entity_id"], *mention.get("others", ())][:RIVALS]
        bearers = [one for i in ids if (one := _candidate(index, i))] if len(ids) > 1 else []
        if bearers:
            rivals = [one for n, one in enumerate(bearers) if not n or not bearers[0].may_equal(one)]
            around = f"{text[: mention['start']]} / {text[mention['end'] :]}"
            names = {m["entity_id"] for m in mentions if m["start"] != mention["start"]}
            mention = _choose(mention, rivals, around, names, weight, rarest)
        found.append(mention)
    return found


def _choose(
    mention: Mention,
    rivals: Sequence[Candidate],
    around: str,
    names: set[str],
    weight: Callable[[str], float],
    rarest: float,
) -> Mention:
    """Return the mention with the rival of whom the words and names around it speak."""
    words = [w for w in dict.fromkeys(terms(around)) if w not in _ASKING and (len(w) > 1 or CJK.match(w))]
    scores = {
        rival.entity["entity_id"]: rarest * (len(names & rival.beside) + (str(rival.year) in words))
        + sum(weight(word) for word in words if word in rival.words)
        for rival in rivals
    }
    best = max(scores, key=lambda entity_id: scores[entity_id])  # the first of equal ones
    least = min(scores[best] - LEAD * rarest, _MOST * scores[best])
    others = [entity_id for entity_id in scores if entity_id != best and scores[entity_id] > least]
    plain = Mention(start=mention["start"], end=mention["end"], surface=mention["surface"], entity_id=best)
    return Mention(**plain, others=others) if others else plain


def _candidate(index: Index, entity_id: str) -> Candidate | None:
    entity = next(iter(view.entities(index, "WHERE entity_id = ?", (entity_id,))), None)
    if entity is None:
        return None
    beside = {i: (name, *json.loads(aliases)) for i, name, aliases in index.rows(_BESIDE, (entity_id,) * 2)}
    passages = index.rows(_SAID, (entity["doc_id"],))
    texts = [*(name for names in beside.values() for name in names), *(text for _, text in passages)]
    year = passages[0][0] if passages else None
    return Candidate(entity, year, frozenset(beside), frozenset(term for text in texts for term in terms(text)))


_BESIDE = (
    "SELECT entity_id, name, aliases FROM relations JOIN entities ON entity_id = target "
    "WHERE source = ? AND relations.type != 'mentions' UNION "
    "SELECT entity_id, name, aliases FROM relations JOIN entities ON entity_id = source "
    "WHERE target = ? AND relations.type != 'mentions' LIMIT 200"
)
_SAID = (
    "SELECT year, passages.text FROM documents JOIN passages ON passages.doc_id = documents.doc_id "
    "WHERE documents.doc_id = ? ORDER BY position LIMIT 3"
)


_RELATION_KINDS = (
    "SELECT relations.type, a.type, b.type, count(*) FROM relations JOIN entities AS a ON a.entity_id = source "
    "JOIN entities AS b ON b.entity_id = target GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
)


EXAMPLES = 3
_DOC = "'doc:' || documents.doc_id"
_COVERED = {
    "title": "SELECT count(DISTINCT doc_id) FROM titles",
    "entities": f"SELECT count(*) FROM documents WHERE EXISTS (SELECT 1 FROM relations WHERE source = {_DOC}) "
    f"OR EXISTS (SELECT 1 FROM relations WHERE target = {_DOC})",
    "links": f"SELECT count(*) FROM documents WHERE EXISTS (SELECT 1 FROM relations WHERE source = {_DOC} "
    "AND target >= 'doc:' AND target < 'doc;')",
    "vectors": "SELECT (SELECT count(*) FROM documents) - count(DISTINCT doc_id) FROM passages WHERE NOT EXISTS "
    "(SELECT 1 FROM vectors WHERE key = passages.vector)",
    "community": f"SELECT count(*) FROM documents WHERE EXISTS (SELECT 1 FROM homes WHERE entity_id = {_DOC})",
}
_ORPHANS = {
    "documents_without_passage": "SELECT doc_id FROM documents WHERE NOT EXISTS "
    "(SELECT 1 FROM passages WHERE passages.doc_id = documents.doc_id)",
    "passages_without_entity": "SELECT chunk_id FROM passages WHERE NOT EXISTS "
    "(SELECT 1 FROM mentions WHERE mentions.chunk_id = passages.chunk_id AND entity_id != 'doc:' || passages.doc_id)",
    "passages_without_vector": "SELECT chunk_id FROM passages WHERE NOT EXISTS "
    "(SELECT 1 FROM vectors WHERE key = passages.vector)",
    "entities_without_passage": "SELECT entity_id FROM entities WHERE NOT EXISTS "
    "(SELECT 1 FROM mentions WHERE mentions.entity_id = entities.entity_id)",
    "entities_alone": "SELECT entity_id FROM entities WHERE NOT EXISTS "
    "(SELECT 1 FROM mentions WHERE mentions.entity_id = entities.entity_id) AND NOT EXISTS "
    "(SELECT 1 FROM relations WHERE source = entities.entity_id OR target = entities.entity_id)",
    "vectors_without_passage": "SELECT key FROM vectors WHERE key NOT IN (SELECT vector FROM passages)",
}
"""What belongs to nothing. An entity of a field that no text names is in order; one that is alone is not."""


def inspect(index: Index) -> Json:
    """Return the coverage of documents, orphans and duplicates with a few examples each; all of it JSON."""
    (documents,) = index.rows("SELECT count(*) FROM documents")[0]
    return {
        "coverage": {
            name: {"documents": covered, "percent": round(100 * covered / max(documents, 1), 1)}
            for name, sql in _COVERED.items()
            for covered in [index.rows(sql)[0][0]]
        },
        "orphans": {name: _counted(index, sql) for name, sql in _ORPHANS.items()},
        "duplicates": {"same": _same(index)},
    }


def _counted(index: Index, sql: str) -> Json:
    (count,) = index.rows(f"SELECT count(*) FROM ({sql})")[0]
    examples = index.rows(f"{sql} LIMIT {EXAMPLES}") if count else []
    return {"count": count, "examples": [row[0] for row in examples]}


def _same(index: Index) -> Json:
    """Return texts that are in several passages."""
    sql = "SELECT digest, count(*) AS times FROM passages GROUP BY digest HAVING times > 1"
    texts, passages = index.rows(f"SELECT count(*), ifnull(sum(times), 0) FROM ({sql})")[0]
    examples = []
    for digest, _ in index.rows(f"{sql} ORDER BY times DESC, digest LIMIT {EXAMPLES}"):
        rows = index.rows("SELECT chunk_id FROM passages WHERE digest = ? ORDER BY 1 LIMIT 5", (digest,))
        examples.append([row[0] for row in rows])
    return {"texts": texts, "count": passages - texts, "examples": examples}


# --- One corpus and its three indexes, as everybody else sees them: ``context.KnowledgeBase`` ---

Given = ParamSpec("Given")
Got = TypeVar("Got")
_WORDS_HELD = 50_000
_BLOCK = 4096
NEAR = 0.55
"""The least cosine at which two words mean nearly the same."""
_CLOSED = (-1, -1)  # no file has this place, and one that was closed may leave its own to another


def _in_one_generation(
    method: Callable[Concatenate[CorpusKnowledge, Given], Got],
) -> Callable[Concatenate[CorpusKnowledge, Given], Got]:
    """Return a method that reads from one snapshot of the index, however many queries it makes."""

    @wraps(method)
    def reading(self: CorpusKnowledge, *args: Given.args, **named: Given.kwargs) -> Got:
        with self.reading():
            return method(self, *args, **named)

    return reading


class CorpusKnowledge:
    """The knowledge base in one folder. Made by ``Library.get``."""

    def __init__(self, name: str, folder: Path, settings: Settings):
        self.name, self._folder, self._settings = name, folder, settings
        self._file = _identity(folder / "index.db")
        self._index = Index(folder / "index.db")
        self._model = open_model(self._index, name, settings)
        self._reranks = rerank.available(settings, self._model.name)
        self.reranker: Any = None
        self.grader: Callable[[str, Sequence[str]], list[float] | None] | None = None
        self._lock, self._block = threading.RLock(), threading.local()
        self._seen: View | None = None
        self._warm = False
        self._words: dict[str, np.ndarray] = {}
        self.ways = IndexWays(self._index)

    def close(self) -> None:
        """Close the index; the base cannot be used after that."""
        self._file = _CLOSED
        with self._lock:
            if self._seen:
                self._seen.close()
            self._seen = None
        self._index.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One generation for every call of this thread inside the block, whatever another process writes meanwhile.

        Raises:
            KnowledgeError: the base was removed or made again since it was opened, or closed.
        """
        if self._file is not _CLOSED and self._index.connection().in_transaction:
            yield
            return
        self._must_be_there()
        connection = self._index.connection()
        connection.execute("BEGIN")
        try:
            self._block.generation = self._index.generation  # the first query opens the files of the snapshot
            self._must_be_there()  # so both are of the base that was opened
            yield
        finally:
            self._block.generation = 0
            connection.rollback()

    def _must_be_there(self) -> None:
        if self.replaced:
            raise KnowledgeError(
                f"Knowledge base {self.name!r} is no longer open: it was removed or made anew, or was closed. "
                "Get it again by its name."
            )

    @property
    def generation(self) -> int:
        """Return how many times its content has changed; 0 until the first ``add`` has ended."""
        return self._index.generation

    @property
    def replaced(self) -> bool:
        """Check whether the base was removed or made again since it was opened, or closed."""
        return self._file is _CLOSED or _identity(self._index.path) != self._file

    @property
    def _view(self) -> View:
        generation = getattr(self._block, "generation", 0) or self._index.generation
        seen = self._seen
        if seen and seen.generation == generation:
            return seen
        with self._lock:
            if self._seen is None or self._seen.generation != generation:
                if self._seen:
                    self._seen.close()
                self._seen = View(self._index, self._folder, generation, place_of(self._folder, self._settings))
            return self._seen

    @property
    def enricher(self) -> Enricher | None:
        """Return the source outside that the vocabulary of the base asks for."""
        if self._view.vocabulary.enrichment != "tmdb":
            return None
        source = provided("sources", "tmdb")
        return source(self._settings) if source else None

    @property
    def _is_large(self) -> bool:
        """Check whether a search looks at what is likely to be best, and not at everything."""
        return self._view.passages > self._settings.exact_search_limit

    @_in_one_generation
    def warm(self) -> None:
        """Load the models and vectors that a first search needs, so that its time is its own. Asks no server."""
        if not self._warm and not self._model.name.startswith("openai:"):
            self._model.array(["warm"])
            if self._reranks:
                rerank.words("预热")
            self._warm = True
        self.ways.titles_in("warm")
        if not self._is_large:
            self._view.matrix  # noqa: B018 - read when first asked for
        elif not self._settings.chroma_url and not self._model.name.startswith("openai:"):
            self._view.nearest(self._model.array(["warm"])[0], 1)

    @_in_one_generation
    def fingerprint(self) -> str:
        """Return hex digest of the documents: equal for equal documents, whatever the order in which they came."""
        return self._view.fingerprint

    @_in_one_generation
    def counts(self) -> dict[str, int]:
        """``documents``, ``passages``, ``entities``, ``relations``, ``communities``."""
        return dict(self._view.counts)

    @_in_one_generation
    def keyword_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """``(chunk_id, BM25 score > 0)``, best first, ties by id."""
        return keywords.search(self._index, query, top_k, self._view.frequency if self._is_large else None)

    @_in_one_generation
    def vector_search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """``(chunk_id, cosine)``, best first, ties by id; exact up to ``settings.exact_search_limit`` passages."""
        view = self._view
        vector = self._model.array([simplified(query)])[0]
        found = view.nearest(vector, top_k) if self._is_large else None
        return view.matrix.search(vector, top_k) if found is None else found

    @_in_one_generation
    def rerank(self, query: str, texts: Sequence[str], model: str = "") -> list[float] | None:
        """Return a score for each text, higher is better, or None when no reranker is configured.

        The text of a passage of this base is known with its title, and costs no embedding.

        Args:
            query: what is asked.
            texts: what is read next to it.
            model: by name; "" is the base's own, ``chosen`` the one of the settings. One's own part means both.

        Raises:
            MissingExtra: the library of a cross-encoder is not installed.
            ModelError: it cannot be read, or a grader is asked for and there is no model for it.
        """
        if self.reranker is not None and model in ("", rerank.CHOSEN):
            return scored(self.reranker, query, texts)
        name = self._settings.rerank_model if model == rerank.CHOSEN else model or "auto"
        if name == "none":
            return None
        if name == "grader":
            if self.grader is None:
                raise ModelError("The reranker is 'grader', and there is no model for it. Set WORKBENCH_GRADER_MODEL.")
            return self.grader(query, texts)
        if name not in rerank.OWN:
            return rerank.cross_encoded(name, query, texts)
        if name == "maxsim":
            rerank.available(self._settings.model_copy(update={"rerank_model": name}), self._model.name)
        if not self._reranks or not texts:
            return [] if self._reranks else None
        titled, rows = self._titled(texts)
        asked = self._model.array([simplified(query)])[0]
        weights = {word: self._weight(word) + 1e-6 for word in rerank.words(query) or [query]}
        cosines = products(rows, asked).tolist()
        return rerank.scores(weights, [rerank.words(text) for text in titled], self._word_vectors, cosines)

    @_in_one_generation
    def matches(self, question: str, texts: Sequence[str]) -> Matches:
        """How far each text says each content word of a question: by word vectors where it has them, else by stems."""
        if not self._reranks:
            question_words = [term for term in dict.fromkeys(terms(question)) if term not in FUNCTION_WORDS]
            stems_of_texts = [{stem(term) for term in terms(text)} for text in texts]
            rows = [[float(stem(term) in stems) for term in question_words] for stems in stems_of_texts]
        else:
            question_words = list(dict.fromkeys(rerank.words(question)))
            rows = (
                rerank.closest(question_words, [rerank.words(text) for text in texts], self._word_vectors)
                .round(3)
                .tolist()
            )
        most = math.log1p(self._view.passages) or 1.0
        return Matches(question_words, [round(min(1.0, self._weight(word) / most), 6) for word in question_words], rows)

    @_in_one_generation
    def near(self, text: str) -> dict[str, list[tuple[str, float]]]:
        """Word of a text -> words of the corpus that mean nearly the same, with their cosines, the nearest first.

        Only of words in a script in which the corpus is not written, and nothing without word vectors.
        """
        import numpy as np

        foreign = self._view.foreign if self._reranks else None
        if foreign is None:
            return {}
        foreign_words = [w for w in dict.fromkeys(rerank.words(text)) if len(w) > 1 and bool(CJK.match(w)) is foreign]
        if not foreign_words:
            return {}
        words, matrix = self._view.words
        rows = self._word_vectors(foreign_words).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        parts = range(0, len(words), _BLOCK)
        alike = np.concatenate([matrix[i : i + _BLOCK].astype(np.float32) @ rows.T for i in parts]).round(2)
        neighbours = {}
        for word, column in zip(foreign_words, alike.T, strict=True):
            close = [(words[i], float(column[i])) for i in np.flatnonzero(column >= NEAR)]
            if close:
                neighbours[word] = sorted(close, key=lambda one: (-one[1], one[0]))
        return neighbours

    @_in_one_generation
    def term_weight(self, term: str) -> float:
        """Inverse document frequency of a term of ``text.terms``; 0 for a term that every passage has."""
        return self._view.weight(term)

    @_in_one_generation
    def passages(self, chunk_ids: Sequence[str]) -> list[Passage]:
        """Return the passages of these ids, in this order; unknown ids are left out."""
        rows = self._index.rows_in(_PASSAGES + "WHERE chunk_id IN ({})", list(dict.fromkeys(chunk_ids)))
        by_id = {row[0]: row for row in rows}
        return [_passage(by_id[chunk_id]) for chunk_id in chunk_ids if chunk_id in by_id]

    @_in_one_generation
    def passages_of(self, doc_ids: Sequence[str]) -> list[Passage]:
        """Return every passage of these documents, in the order of the documents, then by position."""
        wanted = list(dict.fromkeys(doc_ids))
        place = {doc_id: i for i, doc_id in enumerate(wanted)}
        rows = self._index.rows_in(_PASSAGES + "WHERE passages.doc_id IN ({})", wanted)
        return [_passage(row) for row in sorted(rows, key=lambda row: (place[row[1]], row[4]))]

    @_in_one_generation
    def schema(self) -> list[Field]:
        """Return the typed fields of its documents, those that most documents have first."""
        return list(self._view.fields.values())

    @_in_one_generation
    def nouns(self) -> dict[str, list[str]]:
        """``en``, ``zh``: what its documents are called, the one to show first; ``measure``: how Chinese counts them.

        Nothing of these where no vocabulary says it, nor ``source``: whom its vocabulary allows to be asked for what
        the documents lack. ``types``: of the documents, as the graph has them; ``tables``: the files and folders
        they are from.
        """
        words = self._view.vocabulary
        documents = {language: list(names) for language, names in words.documents.items()}
        more = {"measure": words.measure, "source": words.enrichment}
        every = {**documents, **{key: [names] for key, names in more.items() if names}}
        return {**every, "types": self._view.types, "tables": list(self._view.tables)}

    @_in_one_generation
    def lexicon(self) -> list[dict[str, list[str]]]:
        """Words that its vocabulary says mean nearly the same, the narrower groups first."""
        return self._view.vocabulary.lexicon()

    @_in_one_generation
    def values_in(self, text: str) -> list[tuple[int, int, str, str]]:
        """``(start, end, field, value)`` of each value of a category that a text speaks of, longest first wins."""
        return schema.spoken(self._view.spoken, text)

    @_in_one_generation
    def select(
        self, conditions: Sequence[Condition] = (), sort: Sort | None = None, limit: int | None = None
    ) -> list[str]:
        """Return ids of the documents that hold for every condition: by ``sort``, else newest first, ties by id.

        Names are compared folded and through aliases, values through the words that a vocabulary gives them. A
        condition on a field that the base does not have holds for no document.

        Raises:
            KnowledgeError: an operator or a value does not fit its field.
        """
        where, parameters = self._where(conditions)
        by, values = schema.order(sort, self._view.fields.get(sort["field"]) if sort else None)
        limited = "" if limit is None else f" LIMIT {int(limit)}"
        rows = self._index.rows(
            f"SELECT doc_id FROM documents WHERE {where} ORDER BY {by}{limited}", [*parameters, *values]
        )
        return [row[0] for row in rows]

    @_in_one_generation
    def tally(self, field: str, conditions: Sequence[Condition] = ()) -> list[tuple[str, int]]:
        """``(value, documents)`` of a field among the documents that hold, most frequent first."""
        where, parameters = self._where(conditions)
        inside = f"SELECT doc_id FROM documents WHERE {where}"
        rows = self._index.rows(
            f"SELECT min(value), count(*) FROM facts WHERE field = ? AND doc_id IN ({inside}) GROUP BY key "
            "ORDER BY 2 DESC, 1",
            [field, *parameters],
        )
        return [(value, count) for value, count in rows]

    def _where(self, conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
        tests, parameters, fields = list[str](), list[Any](), self._view.fields
        for condition in conditions:
            field = fields.get(condition["field"])
            test, values = schema.where(condition, field, self._meant) if field else ("0", [])
            if condition["field"] == "table" and not field:
                test, values = schema.in_table(condition, self._view.tables)
            tests.append(test)
            parameters += values
        return " AND ".join(tests) or "1", parameters

    def _meant(self, field: str, value: str) -> list[str]:
        """Keys of all that a value of a field may stand for: itself, how the documents write it, who has that name."""
        names = [value, self._view.vocabulary.canonical(field, value)]
        entity = self.find_entity(value)
        if entity and not entity["doc_id"]:
            names += [entity["name"], *entity["aliases"]]
        return sorted({schema.key(name) for name in names})

    @_in_one_generation
    def link(self, text: str) -> list[Mention]:
        """Return the known names in a text, longest match first wins, in the order of the text.

        Values that only group (genres, countries, years) are no names; ``knowledge.vocabulary`` finds those. Of several
        bearers of a name the words around it choose.
        """
        found = surfaces(self._index, candidates(text), "AND NOT category")
        view = self._view
        linked = Linker(found, view.vocabulary.cues).link(text)
        return disambiguate(text, linked, self._index, view.weight, math.log(1 + view.passages))

    @_in_one_generation
    def entity(self, entity_id: str) -> Entity | None:
        """Return the entity of that id."""
        return next(iter(entities(self._index, "WHERE entity_id = ?", (entity_id,))), None)

    @_in_one_generation
    def find_entity(self, name: str) -> Entity | None:
        """Return the entity that has this name or alias, compared folded; the best connected one if several do."""
        key = key_of(name)
        surface = surfaces(self._index, [key]).get(key)
        return self.entity(surface.bearers[0].entity_id) if surface else None

    @_in_one_generation
    def relations_of(self, entity_id: str) -> list[Relation]:
        """Return relations in which the entity stands on either side, by id."""
        return relations(self._index, "WHERE source = ? OR target = ?", (entity_id, entity_id))

    @_in_one_generation
    def mentions_of(self, entity_id: str) -> list[str]:
        """Return ids of the passages that name the entity, by id."""
        rows = self._index.rows("SELECT chunk_id FROM mentions WHERE entity_id = ? ORDER BY chunk_id", (entity_id,))
        return [row[0] for row in rows]

    @_in_one_generation
    def notable(self, limit: int) -> list[str]:
        """Return titles of the documents of which the graph knows most, for examples of what can be asked."""
        rows = self._index.rows(
            "SELECT name FROM entities JOIN relations ON source = entity_id WHERE doc_id IS NOT NULL "
            "GROUP BY entity_id ORDER BY count(*) DESC, entity_id LIMIT ?",
            (limit,),
        )
        return [row[0] for row in rows]

    @_in_one_generation
    def relation_kinds(self) -> list[RelationKind]:
        """Return every type of relation with the types of its ends, sorted."""
        rows = self._index.rows(_RELATION_KINDS)
        return [RelationKind(type=kind, source=a, target=b, count=count) for kind, a, b, count in rows]

    @_in_one_generation
    def communities(self) -> list[Community]:
        """Return every community, largest first."""
        return graph.read(self._index)

    @_in_one_generation
    def communities_of(self, entity_ids: Sequence[str]) -> list[Community]:
        """Return the communities in which one of these entities is, by id."""
        return self._view.communities_of(entity_ids)

    @_in_one_generation
    def graph(self) -> networkx.MultiDiGraph:
        """Return the knowledge graph for people: entities as nodes, relations as edges. Shared: do not change it."""
        return self._view.graph

    @_in_one_generation
    def describe(self) -> Json:
        """Counts, models, files and fields; ``chroma`` says whether its vectors are up to the index."""
        return {
            "counts": self.counts(),
            "fingerprint": self.fingerprint(),
            "generation": self._index.generation,
            "embedding_model": self._model.name,
            "reranker": self._told_reranker,
            "search": "hnsw" if self._is_large and self._settings.vector_store == "chroma" else "exact",
            "vector_store": self._settings.vector_store,
            "chroma": self._view.in_chroma,
            "chroma_at": place_of(self._folder, self._settings).mark,
            "fields": self.schema(),
            "sources": dict(self._index.rows("SELECT source, count(*) FROM documents GROUP BY source ORDER BY source")),
        }

    @property
    def _told_reranker(self) -> str:
        if self.reranker is not None:
            return "own"
        own = "maxsim" if self._reranks else "none"
        return own if self._settings.rerank_model in rerank.OWN else self._settings.rerank_model

    @_in_one_generation
    def inspect(self) -> Json:
        """``describe``, and coverage, orphans and duplicates, with the bytes of its files."""
        held = sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())
        return {"name": self.name, "bytes": held, **self.describe(), **inspect(self._index)}

    def _titled(self, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
        """Return the texts, those of the base's passages with their titles, and a vector for each."""
        import numpy as np

        digests = [vectors.key_of("", text) for text in texts]
        by_digest = {
            digest: (vectors.titled(title, json.loads(aliases), text), np.frombuffer(blob, np.float32))
            for digest, title, aliases, text, blob in sorted(self._index.rows_in(_TITLED, digests))
        }
        missing = [text for text, digest in zip(texts, digests, strict=True) if digest not in by_digest]
        for text, row in zip(missing, self._model.array([simplified(text) for text in missing]), strict=True):
            by_digest[vectors.key_of("", text)] = (text, row)
        return [by_digest[digest][0] for digest in digests], np.array([by_digest[digest][1] for digest in digests])

    def _word_vectors(self, words: Sequence[str]) -> np.ndarray:
        import numpy as np

        cache = self._words
        missing = [word for word in words if word not in cache]
        if missing:
            sql = "SELECT word, vector FROM words WHERE word IN ({})"
            stored = {word: np.frombuffer(blob, np.float16) for word, blob in self._index.rows_in(sql, missing)}
            new = [word for word in missing if word not in stored]
            stored.update(zip(new, word_vectors(self._model, new), strict=True))
            recent = cache if len(cache) < _WORDS_HELD else {word: cache[word] for word in words if word in cache}
            cache = self._words = {**recent, **{word: row.astype(np.float32) for word, row in stored.items()}}
        return np.array([cache[word] for word in words])

    def _weight(self, word: str) -> float:
        return max((self._view.weight(term) for term in terms(word)), default=0.0)


def open_model(index: Index, name: str, settings: Settings) -> TextModel:
    """Return the embedding model that the index was made with.

    Raises:
        KnowledgeError: the settings name another one.
    """
    remembered = index.meta("embedding_model")
    model = text_model(settings, remembered)
    if remembered and model.name != remembered:
        raise KnowledgeError(
            f"Knowledge base {name!r} was indexed with the embedding model {remembered!r}, and the settings say "
            f"{model.name!r}. Set WORKBENCH_EMBEDDING_MODEL={remembered}, or remove the base and add its files anew."
        )
    return model


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file is at this place: another one after a base was removed and made again; None for no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


_TITLED = (
    "SELECT passages.digest, title, aliases, passages.text, vectors.vector FROM passages "
    "JOIN documents ON documents.doc_id = passages.doc_id JOIN vectors ON key = passages.vector "
    "WHERE passages.digest IN ({})"
)
_PASSAGES = (
    "SELECT chunk_id, passages.doc_id, title, passages.text, position, url, licence, fields "
    "FROM passages JOIN documents ON documents.doc_id = passages.doc_id "
)


def _passage(row: Sequence[Any]) -> Passage:
    chunk_id, doc_id, title, text, position, url, licence, fields = row
    held = json.loads(fields)
    held.pop(canvas.STRUCTURE, None)  # where a node stands is no fact to be told
    return {
        "chunk_id": chunk_id,
        "doc_id": doc_id,
        "title": title,
        "text": text,
        "position": position,
        "url": url,
        "licence": licence,
        "fields": held,
    }
