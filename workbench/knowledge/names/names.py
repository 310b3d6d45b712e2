"""The names of a base: who is named in a text, and the links from passage to passage by titles and phrases.

What is in 《》 is written like a name, and so are words with capitals: one rule for the names in a text that no field
has, the phrases that passages share, and the names in a question that no base knows.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from workbench.knowledge.indexes.index import Index, entities
from workbench.knowledge.names.surfaces import (
    LONGEST,
    LONGEST_NAME,
    SAYS_LITTLE,
    Bearer,
    Matcher,
    candidates,
    is_ordinary,
    mentions_in,
    ordinary_words,
    surface_key,
)
from workbench.knowledge.vocabulary import country
from workbench.ports import Entity, Link, Mention, Shared
from workbench.text import CJK, MONTHS, closed_up, is_stop_word, sentences, terms

NAMESAKES = 3
"""How many documents may share a derived short form; any number may share a title."""
_UNTYPED = "Document"


class Names:
    """Who has which name in one generation of an index, who is meant in a text, and what leads on from a passage."""

    def __init__(self, index: Index):
        self._index = index

    def bearers(self, keys: Sequence[str], also: str = "") -> dict[str, list[Bearer]]:
        """Return who has these names, the best first."""
        sql = f"SELECT key, place, rank, lead, entity_id, year, category FROM names WHERE key IN ({{}}) {also}"
        bearers: dict[str, list[Bearer]] = {}
        for key, _, *bearer in sorted(self._index.rows_in(sql, keys), key=lambda row: row[:2]):
            bearers.setdefault(key, []).append(Bearer(*bearer))
        return bearers

    def link(
        self, text: str, weight: Callable[[str], float], rarest: float, *, careless: bool = False
    ) -> list[Mention]:
        """Return the known names in a text, without values that only group.

        Where several entities have a name, the words around it and the names next to it decide; ``others`` of a mention
        are those that nothing in the text rules out.

        Args:
            text: in which the names are.
            weight: how rare a term is.
            rarest: the weight of a term that one passage has.
            careless: a single word may be a name whose capital the writer left out.
        """
        # An entity with this share of the best one's score is not ruled out.
        share = 0.7
        # How much rarer words must support an entity than the next, as a share of the weight of
        # the rarest word.
        lead = 0.35
        # Entities of one name that are compared.
        rivals = 8
        names = self.bearers(candidates(text), "AND NOT category")
        mentions = mentions_in(text, names, Matcher(names), careless=2)
        small = {m["entity_id"] for m in mentions if re.fullmatch("[a-z]+", m["surface"])}
        if small and not careless and not text.islower():
            meant = entities(self._index, "entity_id", sorted(small))
            small -= {entity["entity_id"] for entity in meant if entity["name"].islower()}
            mentions = [m for m in mentions if m["entity_id"] not in small]
        for mention in mentions:
            ids = [mention["entity_id"], *mention.pop("others", ())][:rivals]
            if len(ids) == 1:
                continue
            bearers = {e["entity_id"]: e for e in entities(self._index, "entity_id", ids)}
            around = f"{text[: mention['start']]} / {text[mention['end'] :]}"
            names_around = {m["entity_id"] for m in mentions if m["start"] != mention["start"]}
            words = [
                w
                for w in dict.fromkeys(terms(around))
                if not is_stop_word(w) and (len(w) > 1 or CJK.match(w))
            ]
            scores = dict[str, float]()
            first = bearers[ids[0]]
            surroundings = {i: self._surroundings(bearers[i]) for i in ids}
            first_year, *_ = surroundings[ids[0]]
            for entity_id, (year, neighbours, own_words) in surroundings.items():
                # documents of one title without a type or a year are parts of one
                same = bearers[entity_id]["type"] == first["type"] == _UNTYPED
                if year is not None and first_year is not None:
                    same = year == first_year
                if not scores or not same:
                    support = len(names_around & neighbours) + (str(year) in words)
                    common = sum(weight(word) for word in words if word in own_words)
                    scores[entity_id] = rarest * support + common
            best = max(scores, key=scores.__getitem__)  # the first of equal ones
            limit = min(scores[best] - lead * rarest, share * scores[best])
            mention["entity_id"] = best
            close = [i for i, score in scores.items() if i != best and score > limit]
            if close:
                mention["others"] = close
        return mentions

    def _surroundings(self, entity: Entity) -> tuple[int | None, set[str], set[str]]:
        """Return the year of an entity, the entities related to it, and all its terms."""
        rows = self._index.rows(_NEIGHBOURS, (entity["entity_id"],) * 2)
        names = [name for _, name, aliases in rows for name in (name, *json.loads(aliases))]
        passages = self._index.rows(_FIRST_PASSAGES, (entity["doc_id"],))
        own_terms = {
            term for text in (*names, *(text for _, text in passages)) for term in terms(text)
        }
        return passages[0][0] if passages else None, {row[0] for row in rows}, own_terms

    @cached_property
    def _titles(self) -> Matcher:
        sql = f"SELECT key FROM names WHERE {_OF_DOCUMENT} GROUP BY key HAVING min(rank) < 2 OR count(*) <= ?"
        return Matcher(row[0] for row in self._index.rows(sql, (NAMESAKES,)))

    def titles(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return for each text the titles that it names, in its order, with all documents of each."""
        names = [list(self._titles.names_in(text)) for text in texts]
        doc_ids = self._documents(
            sorted({key for text_names in names for _, _, key in text_names})
        )
        return [
            [
                Mention(start=a, end=b, surface=text[a:b], doc_ids=doc_ids[key])
                for a, b, key in text_names
            ]
            for text, text_names in zip(texts, names, strict=True)
        ]

    def _documents(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return key -> the documents of that title, else those of that short form."""
        documents = {}
        for key, bearers in self.bearers(keys, f"AND {_OF_DOCUMENT}").items():
            titled = [bearer for bearer in bearers if bearer.rank < 2] or bearers
            documents[key] = sorted(b.entity_id.removeprefix("doc:") for b in titled)
        return documents

    def _sentences(self, chunk_ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Yield chunk id, document id and sentence of these passages, in their order."""
        sql = "SELECT chunk_id, doc_id, text FROM passages WHERE chunk_id IN ({})"
        rows = {row[0]: row for row in self._index.rows_in(sql, list(dict.fromkeys(chunk_ids)))}
        for chunk_id, doc_id, text in (rows[i] for i in chunk_ids if i in rows):
            yield from ((chunk_id, doc_id, sentence) for sentence in sentences(text))

    def links(self, chunk_ids: Sequence[str]) -> list[Link]:
        """Return every document that these passages name, once per sentence, without their own."""
        rows = list(self._sentences(chunk_ids))
        titles = self.titles([sentence for _, _, sentence in rows])
        return [
            Link(chunk_id=chunk_id, doc_id=doc_id, surface=title["surface"], sentence=sentence)
            for (chunk_id, own, sentence), in_sentence in zip(rows, titles, strict=True)
            for title in in_sentence
            if own not in title["doc_ids"]
            for doc_id in title["doc_ids"]
        ]

    def shared(self, chunk_ids: Sequence[str], limit: int) -> list[Shared]:
        """Return the phrases of these passages that at most ``limit`` have, sentence by sentence, and who else has."""
        rows = [
            (chunk_id, sentence, sorted(phrases(sentence)))
            for chunk_id, _, sentence in self._sentences(chunk_ids)
        ]
        sql = "SELECT chunk_id FROM phrases JOIN passages USING (number) WHERE key = ? LIMIT ?"
        holders = {
            key: {row[0] for row in self._index.rows(sql, (key, limit + 1))}
            for key in sorted({key for *_, own in rows for key in own})
        }
        return [
            Shared(
                chunk_id=chunk_id,
                phrase=closed_up(key),
                sentence=sentence,
                chunk_ids=sorted(holders[key] - {chunk_id}),
            )
            for chunk_id, sentence, own in rows
            for key in own
            if len(holders[key]) <= limit and holders[key] - {chunk_id}
        ]


_OF_DOCUMENT = "entity_id >= 'doc:' AND entity_id < 'doc;'"
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


# --- What is written like a name ---

_WORD = r"(?:[A-Z](?:[\w.-]|['’](?!s\b))*\w|[A-Z]\b\.?|\d+(?:st|nd|rd|th)?(?=\s[A-Z]))"
_JOIN = r"(?:of|the|de|del|der|van|von|da|di|du|la|le|&)"
_NAMELIKE = re.compile(
    rf"[《「『]([^《》「」『』\n]{{1,40}})[》」』]|(?<![\w'’]){_WORD}(?:\s+(?:{_JOIN}\s+){{0,2}}{_WORD})*"
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_NO_NAMES = frozenset(["the", "a", "an", "i", "i'm", *MONTHS, *_DAYS.split()])


def capitalised(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield where a sentence has a name: without dates, articles, and an ordinary word at its beginning.

    >>> text = "Did Zhang Yimou direct 《蛙》 with Kristin Hunter's son in May?"
    >>> [text[start:end] for start, end in capitalised(text)]
    ['Zhang Yimou', '蛙', 'Kristin Hunter']
    """
    for match in _NAMELIKE.finditer(sentence):
        if match[1]:
            yield match.span(1)
            continue
        begins = not sentence[: match.start()].strip(" \"'“‘(*_-")
        words = list(re.finditer(r"\S+", match[0]))
        while words and _is_no_name(words[0][0], begins):
            words = words[1:]
            begins = False
        while words and (words[-1][0].lower() in _NO_NAMES or words[-1][0].isdigit()):
            words = words[:-1]
        start, end = (words[0].start(), words[-1].end()) if words else (0, 0)
        if end - start > 1 and not (begins and len(words) == 1):
            yield match.start() + start, match.start() + end


def _is_no_name(word: str, begins: bool) -> bool:
    joins = word.isalpha() and word.islower()  # "of" of what stood before it
    return joins or word.lower() in _NO_NAMES or (begins and word.lower() in ordinary_words())


def names_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names in a text with their sentences, in its order; ordinary words and countries are no entities."""
    for sentence in sentences(text):
        for start, end in capitalised(sentence):
            surface = sentence[start:end]
            titled = sentence[start - 1 : start] in ("《", "「", "『")
            plain = (
                is_ordinary(surface_key(surface))
                or country(surface)
                or len(surface) > LONGEST_NAME
            )
            if titled or not plain:
                yield surface, sentence


def phrases(sentence: str) -> set[str]:
    """Return the keys of the names in a sentence; an ordinary word alone is not a phrase.

    >>> sorted(phrases("After the war he met Lao She's wife at New York University in 1990."))
    ['lao she', 'new york university']
    """
    keys = {surface_key(sentence[start:end]) for start, end in capitalised(sentence)}
    return set(filter(_is_phrase, keys))


def _is_phrase(key: str) -> bool:
    words = key.split(" ")
    if len(words) > 1:
        return len(words) <= LONGEST
    return (
        len(key) > 2
        and not key.isdigit()
        and key not in ordinary_words()
        and key not in SAYS_LITTLE
    )


def insert_phrases(
    connection: sqlite3.Connection, number: int, titles: Iterable[str], text: str
) -> None:
    """Store the phrases of passage ``number``, with the keys of its document's titles."""
    keys = {key for sentence in sentences(text) for key in phrases(sentence)}
    keys.update(filter(_is_phrase, titles))
    connection.executemany(
        "INSERT INTO phrases VALUES (?, ?)", ((key, number) for key in sorted(keys))
    )
