"""Links from passage to passage: titles of documents that a text names, and phrases that two texts share."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from workbench.knowledge.indexes import keywords
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.linking import Matcher
from workbench.knowledge.names.surfaces import LONGEST, Unit, ordinary_words, surface_key, units, writings
from workbench.ports import Link, Shared, Titled
from workbench.text import CJK, FUNCTION_WORDS, MONTHS, closed_up, sentences

NAMESAKES = 3
"""How many documents may share a derived short form; any number may share a title."""

_LITTLE = """
    song album series who what when where which i you we they one two first last new old american british french
    german english man woman king queen love life from with his her was he she
"""
_SAYS_LITTLE = frozenset(_LITTLE.split()) | FUNCTION_WORDS
_JOINS = r"(?:of|de|von|van|the|and|la|du|al|for|in|&)"
_CAPITAL = r"(?:[A-Z][\w’'-]*\.?|\d{4})"
_PHRASE = re.compile(rf"{_CAPITAL}(?:\s+(?:{_JOINS}\s+){{0,2}}{_CAPITAL})*")
_LEADS = (
    FUNCTION_WORDS
    | {"he", "she", "his", "her", "who", "what", "which", "this", "it"}
    | {"after", "during", "when", "while", "also", "there", "these", "those", "following", "because"}
)
_DATED = re.compile(rf"\s+(?:(?:for|in|of|and)\s+)(?:(?:{'|'.join(MONTHS).title()})\b.*|\d{{4}})$")
_BOOK = re.compile(r"[《「『]([^《》「」『』\n]{1,40})[》」』]")
_OPENING = re.compile(
    r"((?:(?:[A-Z][\w.’'-]*|of|de|von|van|the|and|la|du|al|ibn|bin|y|der)\s*,?\s*){2,8})(?=\(|is |was |are |were |, )"
)
_POSSESSIVE = re.compile(r"['’][sS]\b")
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


def title_keys(title: str, aliases: Iterable[str], text: str) -> dict[str, int]:
    """Return writings of a document's title: 0 for a title, 1 for a short form made of it or of how the text begins.

    >>> title_keys("John Smith (author)", [], "John Quincy Smith (born 1950) is a writer.")
    {'john smith author': 0, 'john smith': 0, 'john quincy smith': 1}
    >>> title_keys("Paris, Texas", [], "It is a book."), title_keys("茶馆", [], "")
    ({'paris texas': 0, 'paris': 1}, {'茶 馆': 0})
    """
    names = [title, *aliases]
    keys = {surface_key(form): 0 for name in names for form in (name, _BRACKETS.sub("", name))}
    opening = _OPENING.match(text)
    first = surface_key(opening[1]) if opening else ""
    derived = [key for name in names for key in writings(name)]
    if 2 <= first.count(" ") + 1 <= 7 and set(first.split()) & set(surface_key(title).split()) - _SAYS_LITTLE:
        derived.insert(0, first)
    if "," in title:
        derived.append(surface_key(title.split(",")[0]))
    return {key: rank for key, rank in {**keys, **dict.fromkeys(derived, 1), **keys}.items() if _names(key)}


def _names(key: str) -> bool:
    """Check whether a writing can name something on its own."""
    parts = key.split(" ")
    return len(parts) <= LONGEST and any(p not in _SAYS_LITTLE for p in parts) and (len(parts) > 1 or len(key) > 2)


def phrases(sentence: str) -> set[str]:
    """Return keys of the capitalised phrases and of what is in 《》; an ordinary word alone is none.

    >>> sorted(phrases("After the war he met Lao She's wife at New York University in 1990."))
    ['lao she', 'new york university']
    >>> phrases("老舍写了《茶馆》。")
    {'茶 馆'}
    """
    keys = {surface_key(title) for title in _BOOK.findall(sentence)}
    for match in _PHRASE.finditer(_POSSESSIVE.sub(" ,", sentence)):
        phrase = _DATED.sub("", match.group())
        parts = surface_key(phrase).split(" ")
        keys.add(" ".join(parts[1:] if parts[0] in _LEADS else parts))
    return {key for key in keys if _tells(key)}


def _tells(key: str) -> bool:
    parts = key.split(" ")
    if len(parts) > 1:
        return len(parts) <= LONGEST
    return len(key) > 2 and not key.isdigit() and key not in ordinary_words() and key not in _SAYS_LITTLE


def insert(connection: sqlite3.Connection, doc_id: str, keys: dict[str, int]) -> None:
    """Store the writings of a document's title."""
    connection.executemany(
        "INSERT OR IGNORE INTO titles (key, made, doc_id) VALUES (?, ?, ?)",
        ((key, rank, doc_id) for key, rank in keys.items()),
    )


def insert_phrases(connection: sqlite3.Connection, number: int, titles: Iterable[str], text: str) -> None:
    """Store the phrases of passage ``number``, with its document's titles."""
    keys = {key for sentence in sentences(text) for key in phrases(sentence)}
    keys.update(key for key in titles if _tells(key))
    connection.executemany("INSERT OR IGNORE INTO phrases VALUES (?, ?)", ((key, number) for key in sorted(keys)))


def delete(connection: sqlite3.Connection, doc_id: str) -> None:
    """Delete a document, before its passages."""
    connection.execute("DELETE FROM titles WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM phrases WHERE number IN (SELECT number FROM passages WHERE doc_id = ?)", (doc_id,))


class IndexWays:
    """``ports.Ways`` over an index."""

    def __init__(self, index: Index):
        self._index = index
        self._matcher: tuple[int, Matcher] = (-1, Matcher(()))

    def titles_in(self, text: str) -> list[Titled]:
        """Return the titles that a text names, in its order, with all documents of each."""
        return self._titles([text])[0]

    def _titles(self, texts: Sequence[str]) -> list[list[Titled]]:
        """Return for each text the titles that it names, in its order."""
        generation, matcher = self._matcher
        if generation != self._index.generation:
            sql = "SELECT key FROM titles GROUP BY key HAVING min(made) = 0 OR count(*) <= ?"
            matcher = Matcher(row[0] for row in self._index.rows(sql, (NAMESAKES,)))
            self._matcher = self._index.generation, matcher
        names = [list(_names_in(text, matcher)) for text in texts]
        doc_ids = self._documents(sorted({key for text_names in names for _, _, key in text_names}))
        return [[Titled(start=a, end=b, doc_ids=doc_ids[key]) for a, b, key in text_names] for text_names in names]

    def _documents(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return key -> the documents of that title; of a derived short form only where few documents share it."""
        documents: dict[str, dict[int, list[str]]] = {}
        for key, made, doc_id in self._index.rows_in("SELECT key, made, doc_id FROM titles WHERE key IN ({})", keys):
            documents.setdefault(key, {}).setdefault(made, []).append(doc_id)
        return {key: sorted(by[min(by)]) for key, by in documents.items() if 0 in by or len(by[1]) <= NAMESAKES}

    def _keys(self, doc_id: str) -> list[str]:
        """Return the writings of a document's title: derived ones only where they are no other document's title."""
        keys = [row[0] for row in self._index.rows("SELECT key FROM titles WHERE doc_id = ? ORDER BY key", (doc_id,))]
        return [key for key, doc_ids in self._documents(keys).items() if doc_id in doc_ids]

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
            surface = max((sentence[a:b] for a, b, _ in _names_in(sentence, matcher)), key=len, default="")
            if surface:
                links.append(Link(chunk_id=chunk_id, doc_id=doc_id, surface=surface, sentence=sentence))
        return links

    def shared(self, chunk_ids: Sequence[str], limit: int) -> list[Shared]:
        """Return what these passages say that at most ``limit`` others say too, sentence by sentence."""
        holders: dict[str, list[str]] = {}
        links = []
        for chunk_id, _, sentence in self._sentences(chunk_ids):
            for key in sorted(phrases(sentence)):
                if key not in holders:
                    holders[key] = self._holders(key, limit)
                holder_ids = [holder for holder in holders[key] if holder != chunk_id]
                if holder_ids:
                    links.append(
                        Shared(chunk_id=chunk_id, phrase=closed_up(key), sentence=sentence, chunk_ids=holder_ids)
                    )
        return links

    def holding(self, text: str, limit: int) -> dict[str, list[str]]:
        """Return phrase of a text -> ids of the passages that hold it, of at most ``limit`` passages."""
        holders = {closed_up(key): self._holders(key, limit) for key in sorted(phrases(text))}
        return {phrase: ids for phrase, ids in holders.items() if ids}

    def _holders(self, key: str, limit: int) -> list[str]:
        sql = "SELECT chunk_id FROM phrases JOIN passages USING (number) WHERE key = ? LIMIT ?"
        rows = self._index.rows(sql, (key, limit + 1))
        return sorted(row[0] for row in rows) if len(rows) <= limit else []

    def stems(self, chunk_ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the terms of each passage and of its titles, as the keyword index has them."""
        sql = "SELECT chunk_id, title, body FROM terms JOIN passages ON number = terms.rowid WHERE chunk_id IN ({})"
        rows = self._index.rows_in(sql, list(dict.fromkeys(chunk_ids)))
        return {chunk_id: frozenset(f"{title} {body}".split()) for chunk_id, title, body in rows}


def _names_in(text: str, matcher: Matcher) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and key of each name that a text may mean; where two overlap the longer wins."""
    parts = units(text)
    marks, at = _marks(text, parts), 0
    while at < len(parts):
        names = matcher.at(text, parts, at) if any(marks[at : at + 2]) else []
        key, length = next((n for n in names if _may_be_name(text, parts, marks, at, at + n[1] - 1, n[0])), ("", 1))
        if key:
            yield parts[at].start, parts[at + length - 1].end, key
        at += length


def _marks(text: str, parts: Sequence[Unit]) -> list[bool]:
    """Return whether each unit may be part of a name by its writing; without capitals, whether it is not ordinary."""
    marks = [not text[u.start].islower() for u in parts]
    return marks if any(marks) else [u.key not in ordinary_words() for u in parts]


def _may_be_name(text: str, parts: Sequence[Unit], marks: Sequence[bool], at: int, end: int, key: str) -> bool:
    if CJK.match(key):
        return end > at
    if not any(marks[at : end + 1]) or not _names(key):
        return False
    if end > at:
        return True
    before = at > 0 and marks[at - 1] and (at > 1 or parts[0].key not in ordinary_words() | FUNCTION_WORDS)
    left = before and text[parts[at - 1].end : parts[at].start] == " "
    right = at + 1 < len(parts) and marks[at + 1] and text[parts[at].end : parts[at + 1].start] == " "
    return not left and not right and key not in ordinary_words()
