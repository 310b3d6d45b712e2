"""One corpus and its three indexes as one ``ports.KnowledgeBase``.

Each call reads from one snapshot of the file, and so do all calls of a thread inside ``reading``. What stays in memory
(vectors, graph, fields) belongs to a ``View`` of one generation of the index, and each call checks that the generation
still holds: another process may have written.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from workbench.errors import KnowledgeError
from workbench.extensions import provided
from workbench.knowledge.graph import graph
from workbench.knowledge.graph.view import View, entities, relations
from workbench.knowledge.indexes import keywords, vectors
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.indexes.stores import vector_place
from workbench.knowledge.names import schema
from workbench.knowledge.names.known import Names
from workbench.knowledge.names.surfaces import surface_key
from workbench.knowledge.reading import canvas
from workbench.models import rerank
from workbench.models.embeddings import TextModel, products, text_model, word_vectors
from workbench.ports import (
    About,
    Community,
    Enricher,
    Entity,
    Matches,
    Mention,
    Passage,
    Relation,
    call_reranker,
)
from workbench.settings import Settings
from workbench.state import Condition, Json, Sort
from workbench.text import CJK, FUNCTION_WORDS, simplified, stem, terms

if TYPE_CHECKING:
    import networkx
    import numpy as np

Hits = list[tuple[str, float]]
"""``(chunk_id, score)``, best first, ties by id."""

# --- Several entities have one name: the words around it and the names next to it decide ---

RIVALS = 8
"""Entities of one name that are compared."""
LEAD = 0.35
"""How much rarer words must support an entity than the next, as a share of the weight of the rarest word."""
_SHARE = 0.7
"""An entity with this share of the best one's score is not ruled out."""
_UNTYPED = "Document"
_QUESTION_WORDS = "who whom whose what which when where why how is are was were be did does do has have"
_IGNORED = FUNCTION_WORDS | frozenset(_QUESTION_WORDS.split())
"""Words that decide nothing."""


def disambiguate(
    text: str, mentions: Sequence[Mention], index: Index, weight: Callable[[str], float], rarest: float
) -> list[Mention]:
    """Return the mentions of a text, each name of several entities with the one that is meant.

    ``others`` of a mention are those that nothing in the text rules out.

    Args:
        text: in which the names are.
        mentions: of every name in the text, the best connected entity first.
        index: of the base.
        weight: how rare a term is.
        rarest: the weight of a term that one passage has.
    """
    resolved = []
    for mention in mentions:
        ids = [mention["entity_id"], *mention.get("others", ())][:RIVALS]
        rows = entities(index, f"WHERE entity_id IN ({', '.join('?' * len(ids))})", ids) if len(ids) > 1 else []
        bearers = sorted(rows, key=lambda entity: ids.index(entity["entity_id"]))
        if bearers:
            around = f"{text[: mention['start']]} / {text[mention['end'] :]}"
            names = {m["entity_id"] for m in mentions if m["start"] != mention["start"]}
            words = [w for w in dict.fromkeys(terms(around)) if w not in _IGNORED and (len(w) > 1 or CJK.match(w))]
            scores, about = dict[str, float](), [(entity, *_surroundings(index, entity)) for entity in bearers]
            first, first_year, *_ = about[0]
            for entity, year, neighbours, said_words in about:
                # documents of one title without a type or a year are parts of one
                dated = year is not None and first_year is not None
                same = year == first_year if dated else entity["type"] == first["type"] == _UNTYPED
                if not scores or not same:
                    support = len(names & neighbours) + (str(year) in words)
                    scores[entity["entity_id"]] = rarest * support + sum(weight(w) for w in words if w in said_words)
            best = max(scores, key=scores.__getitem__)  # the first of equal ones
            limit = min(scores[best] - LEAD * rarest, _SHARE * scores[best])
            possible = [entity_id for entity_id, score in scores.items() if entity_id != best and score > limit]
            start, end, surface = mention["start"], mention["end"], mention["surface"]
            mention = Mention(start=start, end=end, surface=surface, entity_id=best)
            if possible:
                mention["others"] = possible
        resolved.append(mention)
    return resolved


def _surroundings(index: Index, entity: Entity) -> tuple[int | None, set[str], set[str]]:
    """Return the year of an entity, the entities related to it, and all its terms."""
    neighbours = {
        i: (name, *json.loads(aliases)) for i, name, aliases in index.rows(_NEIGHBOURS, (entity["entity_id"],) * 2)
    }
    passages = index.rows(_FIRST_PASSAGES, (entity["doc_id"],))
    texts = [*(name for names in neighbours.values() for name in names), *(text for _, text in passages)]
    return passages[0][0] if passages else None, set(neighbours), {term for text in texts for term in terms(text)}


_NEIGHBOURS = (
    "SELECT entity_id, name, aliases FROM relations JOIN entities ON entity_id = target "
    "WHERE source = ? AND relations.type != 'mentions' UNION "
    "SELECT entity_id, name, aliases FROM relations JOIN entities ON entity_id = source "
    "WHERE target = ? AND relations.type != 'mentions' LIMIT 200"
)
_FIRST_PASSAGES = (
    "SELECT year, passages.text FROM documents JOIN passages ON passages.doc_id = documents.doc_id "
    "WHERE documents.doc_id = ? ORDER BY position LIMIT 3"
)


# --- The knowledge base ---

P = ParamSpec("P")
T = TypeVar("T")
_CACHED_WORDS = 50_000
_BLOCK = 4096
SIMILAR = 0.55
"""The cosine from which two words mean nearly the same."""
_CLOSED = (-1, -1)  # the identity of no file: that of a closed one may be given to another


def _in_one_generation(
    method: Callable[Concatenate[CorpusKnowledge, P], T],
) -> Callable[Concatenate[CorpusKnowledge, P], T]:
    """Return a method that reads from one snapshot of the index, however many queries it makes."""

    @wraps(method)
    def reading(self: CorpusKnowledge, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.reading():
            return method(self, *args, **kwargs)

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
        self._lock, self._block = threading.RLock(), threading.local()
        self._seen: View | None = None
        self._warm = False
        self._words: dict[str, np.ndarray] = {}
        self.ways = Names(self._index)

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
        """Hold one generation for every call of this thread in the block, whatever another process writes.

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
                f"Knowledge base {self.name!r} is no longer open: it was removed, rebuilt or closed. "
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
                self._seen = View(self._index, self._folder, generation, vector_place(self._folder, self._settings))
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
        """Check whether a vector search is approximate."""
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
    def keyword_search(self, query: str, top_k: int) -> Hits:
        """Return ``(chunk_id, BM25 score > 0)``, best first, ties by id."""
        return keywords.search(self._index, query, top_k)

    @_in_one_generation
    def vector_search(self, query: str, top_k: int) -> Hits:
        """Return ``(chunk_id, cosine)``, best first, ties by id; exact up to ``exact_search_limit`` passages."""
        vector = self._model.array([simplified(query)])[0]
        hits = self._view.nearest(vector, top_k) if self._is_large else None
        return self._view.matrix.search(vector, top_k) if hits is None else hits

    @_in_one_generation
    def rerank(self, query: str, texts: Sequence[str], model: str = "") -> list[float] | None:
        """Return a score for each text, higher is better, or None when no reranker is configured.

        The text of a passage of this base is known with its title, and costs no embedding.

        Args:
            query: what is asked.
            texts: what is read next to it.
            model: by name; "" is the base's own, ``chosen`` the one of the settings. A registered reranker means both.

        Raises:
            MissingExtra: the library of a cross-encoder is not installed.
            ModelError: it cannot be read.
        """
        if self.reranker is not None and model in ("", rerank.CHOSEN):
            return call_reranker(self.reranker, query, texts)
        name = self._settings.rerank_model if model == rerank.CHOSEN else model or "auto"
        if name == "none":
            return None
        if name not in rerank.OWN:
            return rerank.cross_encoded(name, query, texts)
        if name == "maxsim":
            rerank.available(self._settings.model_copy(update={"rerank_model": name}), self._model.name)
        if not self._reranks or not texts:
            return [] if self._reranks else None
        titled, rows = self._titled(texts)
        vector = self._model.array([simplified(query)])[0]
        weights = {word: self._weight(word) + 1e-6 for word in rerank.words(query) or [query]}
        cosines = products(rows, vector).tolist()
        return rerank.scores(weights, [rerank.words(text) for text in titled], self._word_vectors, cosines)

    @_in_one_generation
    def matches(self, question: str, texts: Sequence[str]) -> Matches:
        """Return how far each text says each content word of a question, by word vectors or by stems."""
        if self._reranks:
            words = list(dict.fromkeys(rerank.words(question)))
            matched = rerank.closest(words, [rerank.words(text) for text in texts], self._word_vectors)
            rows = matched.round(3).tolist()
        else:
            words = [term for term in dict.fromkeys(terms(question)) if term not in FUNCTION_WORDS]
            stems_of_texts = [{stem(term) for term in terms(text)} for text in texts]
            rows = [[float(stem(word) in stems) for word in words] for stems in stems_of_texts]
        highest = math.log1p(self._view.passages) or 1.0
        rarity = [round(min(1.0, self._weight(word) / highest), 6) for word in words]
        return Matches(words, rarity, rows)

    @_in_one_generation
    def similar_words(self, text: str) -> dict[str, list[tuple[str, float]]]:
        """Word of a text -> words of the corpus that mean nearly the same, with their cosines, the nearest first.

        Only of words in a script in which the corpus is not written, and nothing without word vectors.
        """
        import numpy as np

        foreign = self._view.foreign if self._reranks else None
        queries = [w for w in dict.fromkeys(rerank.words(text)) if len(w) > 1 and bool(CJK.match(w)) is foreign]
        if not queries:
            return {}
        words, matrix = self._view.words
        rows = self._word_vectors(queries).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        blocks = (matrix[i : i + _BLOCK].astype(np.float32) @ rows.T for i in range(0, len(words), _BLOCK))
        cosines = np.concatenate([*blocks]).round(2)
        neighbours = {}
        for query, column in zip(queries, cosines.T, strict=True):
            close = [(words[i], float(column[i])) for i in np.flatnonzero(column >= SIMILAR)]
            if close:
                neighbours[query] = sorted(close, key=lambda pair: (-pair[1], pair[0]))
        return neighbours

    @_in_one_generation
    def term_weight(self, term: str) -> float:
        """Inverse document frequency of a term of ``text.terms``; 0 for a term that every passage has."""
        return self._view.weight(term)

    @_in_one_generation
    def passages(self, chunk_ids: Sequence[str] = (), doc_ids: Sequence[str] = ()) -> list[Passage]:
        """Return the passages of these ids, in this order, then every passage of these documents, by position."""
        rows = self._index.rows_in(_PASSAGES + "WHERE chunk_id IN ({})", list(dict.fromkeys(chunk_ids)))
        passages = {row[0]: _passage(row) for row in rows}
        places = {doc_id: place for place, doc_id in enumerate(dict.fromkeys(doc_ids))}
        in_documents = map(_passage, self._index.rows_in(_PASSAGES + "WHERE passages.doc_id IN ({})", list(places)))
        in_order = sorted(in_documents, key=lambda passage: (places[passage["doc_id"]], passage["position"]))
        return [*(passages[chunk_id] for chunk_id in chunk_ids if chunk_id in passages), *in_order]

    @_in_one_generation
    def about(self) -> About:
        """Return how much there is, and the words of its documents, fields and values."""
        return self._view.about

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
        order, more = schema.order(sort, self._view.fields.get(sort["field"]) if sort else None)
        sql = f"SELECT doc_id FROM documents WHERE {where} ORDER BY {order} LIMIT ?"
        return self._column(sql, *parameters, *more, -1 if limit is None else limit)

    @_in_one_generation
    def tally(self, field: str, conditions: Sequence[Condition] = ()) -> list[tuple[str, int]]:
        """``(value, documents)`` of a field among the documents that hold, most frequent first."""
        where, parameters = self._where(conditions)
        sql = (
            f"SELECT min(value), count(*) FROM facts WHERE field = ? AND doc_id IN (SELECT doc_id FROM documents "
            f"WHERE {where}) GROUP BY key ORDER BY 2 DESC, 1"
        )
        return [(value, count) for value, count in self._index.rows(sql, [field, *parameters])]

    def _column(self, sql: str, *parameters: Any) -> list[Any]:
        return [row[0] for row in self._index.rows(sql, parameters)]

    def _where(self, conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
        tests, parameters, fields = list[str](), list[Any](), self._view.fields
        for condition in conditions:
            field = fields.get(condition["field"])
            test, values = "0", list[Any]()
            if field:
                test, values = schema.where(condition, field, self._keys)
            elif condition["field"] == "table":
                test, values = schema.in_table(condition, self._view.tables)
            tests.append(test)
            parameters += values
        return " AND ".join(tests) or "1", parameters

    def _keys(self, field: str, value: str) -> list[str]:
        """Return the keys of a value: its own, as the documents write it, and those of the entity of that name."""
        names = [value, self._view.vocabulary.canonical(field, value)]
        entity = self.find_entity(value)
        if entity and not entity["doc_id"]:
            names += [entity["name"], *entity["aliases"]]
        return sorted({schema.key(name) for name in names})

    @_in_one_generation
    def link(self, text: str) -> list[Mention]:
        """Return the known names in a text, longest match first wins, in the order of the text.

        Values that only group (genres, countries, years) are not names: ``values_in`` returns those.
        """
        view = self._view
        return disambiguate(text, self.ways.link(text), self._index, view.weight, math.log(1 + view.passages))

    @_in_one_generation
    def entity(self, entity_id: str) -> Entity | None:
        """Return the entity of that id."""
        return next(iter(entities(self._index, "WHERE entity_id = ?", (entity_id,))), None)

    @_in_one_generation
    def find_entity(self, name: str) -> Entity | None:
        """Return the entity that has this name or alias, compared folded; the best connected one if several do."""
        key = surface_key(name)
        bearers = self.ways.bearers([key]).get(key)
        return self.entity(bearers[0].entity_id) if bearers else None

    @_in_one_generation
    def entity_relations(self, entity_id: str) -> list[Relation]:
        """Return relations in which the entity stands on either side, by id."""
        return relations(self._index, "WHERE source = ? OR target = ?", (entity_id, entity_id))

    @_in_one_generation
    def entity_mentions(self, entity_id: str) -> list[str]:
        """Return ids of the passages that name the entity, by id."""
        return self._column("SELECT chunk_id FROM mentions WHERE entity_id = ? ORDER BY chunk_id", entity_id)

    @_in_one_generation
    def communities(self) -> list[Community]:
        """Return every community, largest first."""
        return graph.read(self._index)

    @_in_one_generation
    def entity_communities(self, entity_ids: Sequence[str]) -> list[Community]:
        """Return the communities in which one of these entities is, by id."""
        rows = self._index.rows_in("SELECT community_id FROM homes WHERE entity_id IN ({})", list(entity_ids))
        return graph.read(self._index, sorted({row[0] for row in rows}))

    @_in_one_generation
    def graph(self) -> networkx.MultiDiGraph:
        """Return the knowledge graph for people: entities as nodes, relations as edges. Shared: do not change it."""
        return self._view.graph

    @_in_one_generation
    def inspect(self) -> Json:
        """Return counts, models, files and fields; ``chroma`` says whether its vectors are up to the index."""
        return {
            "name": self.name,
            "bytes": sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file()),
            "counts": self._view.about["counts"],
            "fingerprint": self.fingerprint(),
            "generation": self._index.generation,
            "embedding_model": self._model.name,
            "reranker": self._reranker_name,
            "search": "hnsw" if self._is_large and self._settings.vector_store == "chroma" else "exact",
            "vector_store": self._settings.vector_store,
            "chroma": self._view.in_chroma,
            "chroma_at": vector_place(self._folder, self._settings).mark,
            "fields": self._view.about["fields"],
            "sources": dict(self._index.rows("SELECT source, count(*) FROM documents GROUP BY source ORDER BY source")),
        }

    @property
    def _reranker_name(self) -> str:
        if self.reranker is not None:
            return "own"
        own = "maxsim" if self._reranks else "none"
        return own if self._settings.rerank_model in rerank.OWN else self._settings.rerank_model

    def _titled(self, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
        """Return the texts, those of the base's passages with their titles, and a vector for each."""
        import numpy as np

        digests = [vectors.vector_key("", text) for text in texts]
        stored = {
            digest: (vectors.titled(title, json.loads(aliases), text), np.frombuffer(blob, np.float32))
            for digest, title, aliases, text, blob in sorted(self._index.rows_in(_TITLED, digests))
        }
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in stored}
        embedded = self._model.array([simplified(text) for text in missing.values()])
        stored |= {digest: (text, row) for (digest, text), row in zip(missing.items(), embedded, strict=True)}
        titled, rows = zip(*(stored[digest] for digest in digests), strict=True)
        return list(titled), np.array(rows)

    def _word_vectors(self, words: Sequence[str]) -> np.ndarray:
        import numpy as np

        cache = self._words
        missing = [word for word in words if word not in cache]
        if missing:
            sql = "SELECT word, vector FROM words WHERE word IN ({})"
            rows = {word: np.frombuffer(blob, np.float16) for word, blob in self._index.rows_in(sql, missing)}
            new = [word for word in missing if word not in rows]
            rows.update(zip(new, word_vectors(self._model, new), strict=True))
            if len(cache) >= _CACHED_WORDS:
                cache = {word: cache[word] for word in words if word in cache}
            # a new dict, since other threads read the one before
            cache = self._words = cache | {word: row.astype(np.float32) for word, row in rows.items()}
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
            f"{model.name!r}. Set WORKBENCH_EMBEDDING_MODEL={remembered}, or remove the base and add its files again."
        )
    return model


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file is at this place: another one after a base was removed and made again; None for no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
    typed = json.loads(fields)
    typed.pop(canvas.STRUCTURE, None)  # the place of a node is no fact
    return Passage(
        chunk_id=chunk_id,
        doc_id=doc_id,
        title=title,
        text=text,
        position=position,
        url=url,
        licence=licence,
        fields=typed,
    )
