"""One corpus and its three indexes as one ``ports.KnowledgeBase``.

Each call reads from one snapshot of the file, and so do all calls of a thread inside ``reading``. What stays in memory
(vectors, graph, fields) belongs to a ``View`` of one generation of the index, and each call checks that the generation
still holds: another process may have written.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, lru_cache, partial, wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from workbench.errors import KnowledgeError
from workbench.extensions import provided
from workbench.knowledge import communities
from workbench.knowledge.indexes import vectors
from workbench.knowledge.indexes.index import (
    Index,
    entities,
    relations,
    search_words,
    term_frequency,
    term_weight,
)
from workbench.knowledge.indexes.stores import Damaged, Place, Store, checked, vector_place
from workbench.knowledge.names import schema
from workbench.knowledge.names.names import Names
from workbench.knowledge.names.surfaces import surface_key
from workbench.knowledge.reading.files import STRUCTURE
from workbench.knowledge.vocabulary import stored_vocabulary
from workbench.models import rerank
from workbench.models.embeddings import TextModel, products, text_model, word_vectors
from workbench.ports import (
    About,
    AroundKind,
    Entity,
    Field,
    LinkKind,
    Mention,
    Passage,
    RelationKind,
    SearchKind,
    Words,
    call_reranker,
)
from workbench.settings import Settings
from workbench.state import Condition, Hits, Json, Sort, unique
from workbench.text import FUNCTION_WORDS, detect_language, simplified, stem, stems, terms

if TYPE_CHECKING:
    import networkx
    import numpy as np


Method = TypeVar("Method", bound=Callable[..., Any])
_CLOSED = (-1, -1)  # the identity of no file: that of a closed one may be given to another


def _in_one_generation(method: Method) -> Method:
    """Return a method that reads from one snapshot of the index, however many queries it makes."""

    @wraps(method)
    def reading(self: CorpusKnowledge, *args: Any, **kwargs: Any) -> Any:
        with self.reading():
            return method(self, *args, **kwargs)

    return cast(Method, reading)


class CorpusKnowledge:
    """The knowledge base in one folder. Made by ``Library.get``."""

    def __init__(self, name: str, folder: Path, settings: Settings):
        self.name = name
        self._folder = folder
        self._settings = settings
        self._file = _identity(folder / "index.db")
        self._index = Index(folder / "index.db")
        self._model = open_model(self._index, name, settings)
        self._reranks = rerank.available(settings, self._model.name)
        self.reranker: Any = None
        self._lock = threading.RLock()
        self._block = threading.local()
        self._seen: View | None = None
        self._warm = False
        self._words: dict[str, np.ndarray] = {}

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
            # the first query opens the files of the snapshot
            self._block.generation = self._index.generation
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
        with self._lock:
            if self._seen is None or self._seen.generation != generation:
                if self._seen:
                    self._seen.close()
                place = vector_place(self._folder, self._settings)
                self._seen = View(self._index, self._folder, generation, place)
            return self._seen

    @property
    def enricher(self) -> Any:
        """Return the source outside that the vocabulary of the base asks for."""
        name = self._view.vocabulary.enrichment
        source = provided("sources", name) if name else None
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
        self._view.names.titles(["warm"])
        if not self._is_large:
            self._view.matrix  # noqa: B018 - read when first asked for
        elif not self._settings.chroma_url and not self._model.name.startswith("openai:"):
            self._view.nearest(self._model.array(["warm"])[0], 1)

    @_in_one_generation
    def fingerprint(self) -> str:
        """Return hex digest of the documents: equal for equal documents, whatever the order in which they came."""
        return self._view.fingerprint

    @_in_one_generation
    def search(self, kind: SearchKind, query: str, top_k: int) -> Hits:
        """Return ``(chunk_id, score)`` by ``words`` (BM25 > 0) or ``meaning`` (cosine), best first, ties by id.

        Cosines are exact; above ``exact_search_limit`` passages the candidates are what Chroma finds.
        """
        if kind == "words":
            return search_words(self._index, query, top_k)
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
            rerank.available(
                self._settings.model_copy(update={"rerank_model": name}), self._model.name
            )
        if not self._reranks or not texts:
            return [] if self._reranks else None
        titled, rows = self._titled(texts)
        vector = self._model.array([simplified(query)])[0]
        weights = {word: self._weight(word) + 1e-6 for word in rerank.words(query) or [query]}
        cosines = products(rows, vector).tolist()
        return rerank.scores(
            weights, [rerank.words(text) for text in titled], self._word_vectors, cosines
        )

    @_in_one_generation
    def words(self, text: str | Sequence[str], texts: Sequence[str] = ()) -> Words:
        """Return what the base has of the words of a text, or of these terms, and how far each of ``texts`` says them.

        They are compared by word vectors, or by stems where there are none.
        """
        split = rerank.words if self._reranks else _content_terms
        words = unique(split(text)) if isinstance(text, str) else list(text)
        weights = [self._weight(word) for word in words]
        highest = math.log1p(self._view.passages) or 1.0
        rarity = [round(min(1.0, weight / highest), 6) for weight in weights]
        return Words(
            words=words, weights=weights, rarity=rarity, texts=self._nearness(words, texts)
        )

    def _nearness(self, words: Sequence[str], texts: Sequence[str]) -> list[list[float]]:
        """Return for each text, for each word, how near its nearest word is."""
        if self._reranks and texts:
            return (
                rerank.closest(words, [rerank.words(text) for text in texts], self._word_vectors)
                .round(3)
                .tolist()
            )
        return [
            [float(stem(word) in text_stems) for word in words]
            for text_stems in map(stems, texts)
        ]

    @_in_one_generation
    def passages(
        self, chunk_ids: Sequence[str] = (), doc_ids: Sequence[str] = ()
    ) -> list[Passage]:
        """Return the passages of these ids, in this order, then every passage of these documents, by position."""
        passages = {passage["chunk_id"]: passage for passage in self._read("chunk_id", chunk_ids)}
        places = {doc_id: place for place, doc_id in enumerate(dict.fromkeys(doc_ids))}
        in_order = sorted(
            self._read("passages.doc_id", doc_ids),
            key=lambda passage: (places[passage["doc_id"]], passage["position"]),
        )
        return [
            *(passages[chunk_id] for chunk_id in chunk_ids if chunk_id in passages),
            *in_order,
        ]

    def _read(self, column: str, values: Sequence[str]) -> Iterator[Passage]:
        """Yield the passages that have one of these values in a column."""
        sql = f"{_PASSAGES} WHERE {column} IN ({{}})"
        for *own, fields in self._index.rows_in(sql, unique(values)):
            typed = json.loads(fields)
            typed.pop(STRUCTURE, None)  # the place of a node is no fact
            yield cast(Passage, dict(zip(Passage.__annotations__, [*own, typed], strict=True)))

    @_in_one_generation
    def about(self) -> About:
        """Return how much there is, and the words of its documents, fields and values."""
        return self._view.about

    @_in_one_generation
    def select(
        self,
        conditions: Sequence[Condition] = (),
        sort: Sort | None = None,
        limit: int | None = None,
        count: str = "",
    ) -> list[Any]:
        """Return ids of the documents that hold for every condition: by ``sort``, else newest first, ties by id.

        With a field to ``count`` it is ``(value, documents)`` instead, most frequent first. Names are compared folded
        and through aliases, values through the words that a vocabulary gives them. A condition on a field that the base
        does not have holds for no document.

        Raises:
            UnfitCondition: an operator or a value does not fit its field.
        """
        where, parameters = self._where(conditions)
        selected = f"SELECT doc_id FROM documents WHERE {where}"
        if count:
            return self._index.rows(
                f"SELECT min(value), count(*) FROM facts WHERE field = ? AND doc_id IN ({selected}) "
                "GROUP BY key ORDER BY 2 DESC, 1",
                [count, *parameters],
            )
        order, more = schema.order(sort, self._view.fields.get(sort["field"]) if sort else None)
        rows = self._index.rows(
            f"{selected} ORDER BY {order} LIMIT ?",
            [*parameters, *more, -1 if limit is None else limit],
        )
        return [row[0] for row in rows]

    def _where(self, conditions: Sequence[Condition]) -> schema.Test:
        tests = []
        parameters = []
        for condition in conditions:
            if field := self._view.fields.get(condition["field"]):
                test, values = schema.where(condition, field, self._keys)
            elif condition["field"] == "table":
                test, values = schema.in_table(condition, self._view.tables)
            else:
                test, values = "0", []
            tests.append(test)
            parameters += values
        return " AND ".join(tests) or "1", parameters

    def _keys(self, field: str, value: str) -> list[str]:
        """Return the keys of a value: its own, as the documents write it, and those of the entity of that name."""
        names = [value, self._view.vocabulary.canonical(field, value)]
        entity = self.entity(value)
        if entity and not entity["doc_id"]:
            names += [entity["name"], *entity["aliases"]]
        return sorted({schema.key(name) for name in names})

    @_in_one_generation
    def link(self, text: str, kind: LinkKind = "name") -> list[Mention]:
        """Return the known names or the titles in a text, in its order; the longest wins. See ``ports.KnowledgeBase``.

        Values that only group (genres, countries, years) are not names.
        """
        if kind == "title":
            return self._view.names.titles([text])[0]
        rarest = math.log(1 + self._view.passages)
        careless = kind == "careless"
        return self._view.names.link(text, self._view.weight, rarest, careless=careless)

    @_in_one_generation
    def entity(self, name: str) -> Entity | None:
        """Return the entity of this id, name or alias, compared folded; the best connected one if several have it."""
        bearers = self._view.names.bearers([surface_key(name)])
        ids = [name, *(bearer.entity_id for own in bearers.values() for bearer in own[:1])]
        matches = entities(self._index, "entity_id", ids)
        return min(matches, key=lambda entity: ids.index(entity["entity_id"]), default=None)

    @_in_one_generation
    def around(self, kind: AroundKind, ids: Sequence[str] = (), limit: int = 0) -> list[Any]:
        """Return what is next to these entities, passages or documents: see ``ports.KnowledgeBase``."""
        if kind == "relations":
            ends = [relations(self._index, end, ids) for end in ("source", "target")]
            by_id = {relation["relation_id"]: relation for relation in chain(*ends)}
            return [by_id[relation_id] for relation_id in sorted(by_id)]
        if kind == "mentions":
            sql = "SELECT chunk_id FROM mentions WHERE entity_id IN ({})"
            return sorted({row[0] for row in self._index.rows_in(sql, ids)})
        if kind == "communities":
            return communities.read(self._index, ids)
        if kind == "links":
            return self._view.names.links(ids)
        return self._view.names.shared(ids, limit)

    @_in_one_generation
    def graph(self) -> networkx.MultiDiGraph:
        """Return the knowledge graph for people: entities as nodes, relations as edges. Shared: do not change it."""
        return self._view.graph

    @_in_one_generation
    def inspect(self) -> Json:
        """Return counts, models, files and fields; ``chroma`` says whether its vectors are up to the index."""
        return {
            "name": self.name,
            "bytes": sum(
                file.stat().st_size for file in self._folder.rglob("*") if file.is_file()
            ),
            "counts": self._view.about["counts"],
            "fingerprint": self.fingerprint(),
            "generation": self._index.generation,
            "embedding_model": self._model.name,
            "reranker": self._reranker_name,
            "search": "hnsw"
            if self._is_large and self._settings.vector_store == "chroma"
            else "exact",
            "vector_store": self._settings.vector_store,
            "chroma": self._view.in_chroma,
            "chroma_at": vector_place(self._folder, self._settings).mark,
            "fields": self._view.about["fields"],
            "sources": dict(
                self._index.rows(
                    "SELECT source, count(*) FROM documents GROUP BY source ORDER BY source"
                )
            ),
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

        keys = [vectors.vector_key("", text) for text in texts]
        stored = {}
        for key, title, aliases, text, blob in sorted(self._index.rows_in(_TITLED, keys)):
            titled = vectors.titled(title, json.loads(aliases), text)
            stored[key] = titled, np.frombuffer(blob, np.float32)
        missing = {k: text for k, text in zip(keys, texts, strict=True) if k not in stored}
        embedded = self._model.array([simplified(text) for text in missing.values()])
        stored |= zip(missing, zip(missing.values(), embedded, strict=True), strict=True)
        return [stored[key][0] for key in keys], np.array([stored[key][1] for key in keys])

    def _word_vectors(self, words: Sequence[str]) -> np.ndarray:
        import numpy as np

        cache = self._words
        missing = [word for word in words if word not in cache]
        if missing:
            sql = "SELECT word, vector FROM words WHERE word IN ({})"
            rows = {
                word: np.frombuffer(blob, np.float16)
                for word, blob in self._index.rows_in(sql, missing)
            }
            new = [word for word in missing if word not in rows]
            rows.update(zip(new, word_vectors(self._model, new), strict=True))
            if len(cache) >= 50_000:
                cache = {word: cache[word] for word in words if word in cache}
            # a new dict, since other threads read the one before
            cache = self._words = cache | {
                word: row.astype(np.float32) for word, row in rows.items()
            }
        return np.array([cache[word] for word in words])

    def _weight(self, word: str) -> float:
        return max((self._view.weight(term) for term in terms(word)), default=0.0)


def _content_terms(text: str) -> list[str]:
    return [term for term in terms(text) if term not in FUNCTION_WORDS]


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
    "FROM passages JOIN documents ON documents.doc_id = passages.doc_id"
)
_RELATION_KINDS = (
    "SELECT relations.type, a.type, b.type, count(*) FROM relations JOIN entities AS a ON a.entity_id = source "
    "JOIN entities AS b ON b.entity_id = target GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
)
_NOTABLE = (
    "SELECT name FROM entities JOIN relations ON source = entity_id WHERE doc_id IS NOT NULL "
    "GROUP BY entity_id ORDER BY count(*) DESC, entity_id LIMIT 10"
)
_TYPES = "SELECT type, count(*), title, min(doc_id) FROM documents GROUP BY type ORDER BY 2 DESC, type LIMIT 12"


class View:
    """A reader's view of one generation. Any thread may use it; each part is read on first use."""

    def __init__(self, index: Index, folder: Path, generation: int, place: Place):
        self.vocabulary = stored_vocabulary(folder)
        self.generation = generation
        self._index = index
        self._place = place
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._closed = False
        self.names = Names(index)
        # a cache of limited size, since questions may have any words
        self._frequency = lru_cache(50_000)(partial(term_frequency, index))

    def close(self) -> None:
        """Release the store, after any search in it; readers may keep the rest."""
        with self._lock:
            self._closed = True
            if self._store:
                self._store.close()

    @cached_property
    def fingerprint(self) -> str:
        """Return the digest of the documents, as the last ``add`` stored it with its generation."""
        return self._index.meta("fingerprint").partition(" ")[2]

    @cached_property
    def passages(self) -> int:
        """Return how many passages there are."""
        return int(self._index.rows("SELECT count(*) FROM passages")[0][0])

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Return the typed fields by their names, those of most documents first."""
        return {field["name"]: field for field in schema.schema(self._index, self.vocabulary)}

    @cached_property
    def about(self) -> About:
        """Return how much there is, and the words of its documents, fields and values."""
        tables = ("documents", "passages", "entities", "relations", "communities")
        rows = self._index.rows("SELECT DISTINCT type FROM documents ORDER BY type LIMIT 50")
        nouns = {language: list(words) for language, words in self.vocabulary.documents.items()}
        if self.vocabulary.measure:
            nouns["measure"] = [self.vocabulary.measure]
        if self.vocabulary.enrichment:
            nouns["source"] = [self.vocabulary.enrichment]
        return About(
            counts={
                table: self._index.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables
            },
            fields=list(self.fields.values()),
            nouns={**nouns, "types": [row[0] for row in rows], "tables": list(self.tables)},
            relations=[
                RelationKind(type=kind, source=a, target=b, count=count)
                for kind, a, b, count in self._index.rows(_RELATION_KINDS)
            ],
            titles=[row[0] for row in self._index.rows(_NOTABLE)],
            types=[(row[0], row[1], row[2]) for row in self._index.rows(_TYPES)],
            languages=self._languages(),
        )

    def _languages(self) -> list[str]:
        """Return the languages of texts, the most frequent first, by a few of them from everywhere."""
        sample = 50
        every = max(1, self.passages // sample)
        texts = self._index.rows(
            f"SELECT substr(text, 1, 300) FROM passages WHERE rowid % {every} = 0 LIMIT {sample}"
        )
        counts = Counter(detect_language(row[0]) for row in texts)
        return [language for language, _ in counts.most_common()]

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """Return the names of files with several documents ("members" of members.csv), and of folders, with files."""
        tables = defaultdict[str, list[str]](list)
        rows = self._index.rows(
            "SELECT source, count(*) FROM documents WHERE source > '' GROUP BY source"
        )
        folders = {Path(source).parent for source, _ in rows}
        for source, count in rows:
            path = Path(source)
            names = {*[path.stem] * (count > 1), *[path.parent.name] * (len(folders) > 1)}
            for name in sorted(names):
                tables[name].append(source)
        # a base may have thousands of files: the first 50 have a name as a table
        return dict(list(tables.items())[:50])

    @cached_property
    def matrix(self) -> vectors.Matrix:
        """Return every passage's vector."""
        return vectors.Matrix.load(self._index)

    @cached_property
    def graph(self) -> networkx.MultiDiGraph:
        """Return entities as nodes with their names and types, relations as edges keyed by their id."""
        import networkx

        graph: networkx.MultiDiGraph = networkx.MultiDiGraph()
        graph.add_nodes_from((e["entity_id"], e) for e in entities(self._index))
        for r in relations(self._index):
            graph.add_edge(r["source"], r["target"], r["relation_id"], **r)
        return graph

    @property
    def in_chroma(self) -> bool:
        """Check whether the store of vectors is up to this generation; a killed ``add`` leaves it behind."""
        return self._place.holds(self._index, self.generation)

    def nearest(self, query: np.ndarray, top_k: int) -> Hits | None:
        """Return what the store finds, or None when it is not up to this generation, or was changed while it searched.

        A writer raises the generation before it touches the store, so the same generation afterwards means: untouched.
        """
        with self._lock:
            if self._closed or not self.in_chroma:
                return None
            try:
                self._store = self._store or checked(self._place, self._index)
            except Damaged:
                if self._newest() != self.generation:  # it follows a newer one just now
                    return None
                raise
            hits = self._store.search(self._index, query, top_k)
            return hits if self._newest() == self.generation else None

    def _newest(self) -> int:
        """Return the generation in the file now, outside of the snapshot that this thread reads from."""
        uri = f"{self._index.path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=30)) as now:
            rows = now.execute("SELECT value FROM meta WHERE key = 'generation'")
            return int(rows.fetchone()[0])

    def weight(self, term: str) -> float:
        """Inverse document frequency of a term."""
        return term_weight(self._frequency(stem(term)), self.passages)
