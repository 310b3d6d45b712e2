"""The known names of a base: who is named in a text, and the links from passage to passage by titles and phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.knowledge.indexes import keywords
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.linking import Matcher, mentions_in
from workbench.knowledge.names.surfaces import Bearer, candidates
from workbench.ports import Link, Mention, Shared, Titled
from workbench.text import closed_up, sentences

NAMESAKES = 3
"""How many documents may share a derived short form; any number may share a title."""


class Names:
    """The names of an index: ``ports.Ways``, and who is meant by a name."""

    def __init__(self, index: Index):
        self._index = index
        self._matcher: tuple[int, Matcher] = (-1, Matcher(()))

    def bearers(self, keys: Sequence[str], also: str = "") -> dict[str, list[Bearer]]:
        """Return who has these names, the best first."""
        sql = f"SELECT key, place, rank, lead, entity_id, year, category FROM names WHERE key IN ({{}}) {also}"
        bearers: dict[str, list[Bearer]] = {}
        for key, _, *bearer in sorted(self._index.rows_in(sql, keys), key=lambda row: row[:2]):
            bearers.setdefault(key, []).append(Bearer(*bearer))
        return bearers

    def link(self, text: str) -> list[Mention]:
        """Return the known names in a text, without values that only group."""
        names = self.bearers(candidates(text), "AND NOT category")
        return mentions_in(text, names, Matcher(names), careless=True)

    def titles_in(self, text: str) -> list[Titled]:
        """Return the titles that a text names, in its order, with all documents of each."""
        return self._titles([text])[0]

    def _titles(self, texts: Sequence[str]) -> list[list[Titled]]:
        """Return for each text the titles that it names, in its order."""
        generation, matcher = self._matcher
        if generation != self._index.generation:
            sql = f"SELECT key FROM names WHERE {_OF_DOCUMENT} GROUP BY key HAVING min(rank) < 2 OR count(*) <= ?"
            matcher = Matcher(row[0] for row in self._index.rows(sql, (NAMESAKES,)))
            self._matcher = self._index.generation, matcher
        names = [list(matcher.names_in(text)) for text in texts]
        doc_ids = self._documents(sorted({key for text_names in names for _, _, key in text_names}))
        return [[Titled(start=a, end=b, doc_ids=doc_ids[key]) for a, b, key in text_names] for text_names in names]

    def _documents(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return key -> the documents of that title; of a short form only where few documents share it."""
        documents: dict[str, dict[bool, list[str]]] = {}
        for key, bearers in self.bearers(keys, f"AND {_OF_DOCUMENT}").items():
            for bearer in bearers:
                doc_id = bearer.entity_id.removeprefix("doc:")
                documents.setdefault(key, {}).setdefault(bearer.rank > 1, []).append(doc_id)
        return {key: sorted(by[min(by)]) for key, by in documents.items() if False in by or len(by[True]) <= NAMESAKES}

    def _keys(self, doc_id: str) -> list[str]:
        """Return the writings of a document's title: short forms only where they are no other document's title."""
        rows = self._index.rows("SELECT key FROM names WHERE entity_id = ? ORDER BY key", (f"doc:{doc_id}",))
        return [key for key, doc_ids in self._documents([row[0] for row in rows]).items() if doc_id in doc_ids]

    def _sentences(self, chunk_ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Yield chunk id, document id and sentence of these passages, in their order."""
        sql = "SELECT chunk_id, doc_id, text FROM passages WHERE chunk_id IN ({})"
        rows = {row[0]: row for row in self._index.rows_in(sql, list(dict.fromkeys(chunk_ids)))}
        for chunk_id, doc_id, text in (rows[i] for i in chunk_ids if i in rows):
            yield from ((chunk_id, doc_id, sentence) for sentence in sentences(text))

    def links_from(self, chunk_ids: Sequence[str]) -> list[Link]:
        """Return every document that these passages name, once per sentence, without their own."""
        rows = list(self._sentences(chunk_ids))
        titles = self._titles([sentence for _, _, sentence in rows])
        return [
            Link(chunk_id=chunk_id, doc_id=doc_id, surface=sentence[title["start"] : title["end"]], sentence=sentence)
            for (chunk_id, own, sentence), in_sentence in zip(rows, titles, strict=True)
            for title in in_sentence
            if own not in title["doc_ids"]
            for doc_id in title["doc_ids"]
        ]

    def naming(self, doc_id: str, limit: int) -> list[str]:
        """Return ids of other documents' passages that hold this title; none where more than ``limit`` do."""
        chunk_ids = set[str]()
        for key in self._keys(doc_id):
            sql = (
                "SELECT chunk_id FROM terms JOIN passages ON number = terms.rowid "
                "WHERE terms MATCH ? AND doc_id != ? LIMIT ?"
            )
            match = f'body : "{keywords.stored(closed_up(key))}"'
            chunk_ids.update(row[0] for row in self._index.rows(sql, (match, doc_id, limit + 1)))
            if len(chunk_ids) > limit:
                return []
        return sorted(chunk_ids)

    def links_to(self, doc_id: str, chunk_ids: Sequence[str]) -> list[Link]:
        """Return the sentences in which these passages name a document, each by its longest writing."""
        matcher, links = Matcher(self._keys(doc_id)), []
        for chunk_id, _, sentence in self._sentences(chunk_ids):
            surface = max((sentence[a:b] for a, b, _ in matcher.names_in(sentence)), key=len, default="")
            if surface:
                links.append(Link(chunk_id=chunk_id, doc_id=doc_id, surface=surface, sentence=sentence))
        return links

    def shared(self, chunk_ids: Sequence[str], limit: int) -> list[Shared]:
        """Return the names in these passages that at most ``limit`` others have too, sentence by sentence."""
        rows = list(self._sentences(chunk_ids))
        holders = self._holders([sentence for _, _, sentence in rows], limit)
        return [
            Shared(chunk_id=chunk_id, phrase=name, sentence=sentence, chunk_ids=holding)
            for (chunk_id, _, sentence), names in zip(rows, holders, strict=True)
            for name, ids in names.items()
            if (holding := [holder for holder in ids if holder != chunk_id])
        ]

    def _holders(self, texts: Sequence[str], limit: int) -> list[dict[str, list[str]]]:
        """Return for each text its names, and the passages that have them; no name of more than ``limit`` passages."""
        names = self.bearers(list({key for text in texts for key in candidates(text)}), "AND NOT category")
        matcher, holders = Matcher(names), dict[str, list[str]]()
        keys = [sorted({key for _, _, key in matcher.names_in(text)}) for text in texts]
        for key in {key for text_keys in keys for key in text_keys}:
            ids = [bearer.entity_id for bearer in names[key] if bearer.rank == names[key][0].rank]
            sql = "SELECT DISTINCT chunk_id FROM mentions WHERE entity_id IN ({}) LIMIT ?"
            rows = [row[0] for row in self._index.rows_in(sql, ids, limit + 1)]
            holders[key] = sorted(rows) if len(rows) <= limit else []
        return [{closed_up(key): holders[key] for key in text_keys if holders[key]} for text_keys in keys]

    def stems(self, chunk_ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the terms of each passage and of its titles, as the keyword index has them."""
        sql = "SELECT chunk_id, title, body FROM terms JOIN passages ON number = terms.rowid WHERE chunk_id IN ({})"
        rows = self._index.rows_in(sql, list(dict.fromkeys(chunk_ids)))
        return {chunk_id: frozenset(f"{title} {body}".split()) for chunk_id, title, body in rows}


_OF_DOCUMENT = "entity_id >= 'doc:' AND entity_id < 'doc;'"
