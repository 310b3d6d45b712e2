"""What is in an index: how it grew, how much of it is covered, what belongs to nothing, what is there twice.

Every figure is counted by SQLite over its own sorted indexes, so that 10^5 documents take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.knowledge import sketches
from workbench.knowledge.index import Index
from workbench.text import language_of

EXAMPLES = 3
_BEGINNING = 400
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


def inspect(index: Index) -> dict[str, Any]:
    """Growth by day, coverage by document, orphans and duplicates with a few examples each; all of it JSON."""
    (documents,) = index.rows("SELECT count(*) FROM documents")[0]
    return {
        "growth": list(_growth(index)),
        "coverage": {
            name: {"documents": covered, "percent": round(100 * covered / max(documents, 1), 1)}
            for name, sql in _COVERED.items()
            for covered in [index.rows(sql)[0][0]]
        },
        "languages": _languages(index),
        "orphans": {name: _counted(index, sql) for name, sql in _ORPHANS.items()},
        "duplicates": {"same": _same(index), "nearly_same": _nearly(index)},
    }


def _growth(index: Index) -> Iterator[dict[str, Any]]:
    """Documents by the day on which they came (UTC), and how many there were then; "" is before that was noted."""
    total = 0
    for day, count in index.rows("SELECT added, count(*) FROM documents GROUP BY added ORDER BY added"):
        total += count
        yield {"day": day, "documents": count, "total": total}


def _languages(index: Index) -> dict[str, int]:
    found = dict(index.rows("SELECT language, count(*) FROM documents GROUP BY language ORDER BY language"))
    if found.pop("", 0):  # an older version did not note it
        for (text,) in index.rows(f"SELECT substr(text, 1, {_BEGINNING}) FROM documents WHERE language = ''"):
            language = language_of(text)
            found[language] = found.get(language, 0) + 1
    return found


def _counted(index: Index, sql: str) -> dict[str, Any]:
    (count,) = index.rows(f"SELECT count(*) FROM ({sql})")[0]
    examples = index.rows(f"{sql} LIMIT {EXAMPLES}") if count else []
    return {"count": count, "examples": [row[0] for row in examples]}


def _same(index: Index) -> dict[str, Any]:
    """Texts that stand in several passages."""
    sql = "SELECT digest, count(*) AS times FROM passages GROUP BY digest HAVING times > 1"
    texts, passages = index.rows(f"SELECT count(*), ifnull(sum(times), 0) FROM ({sql})")[0]
    examples = []
    for digest, _ in index.rows(f"{sql} ORDER BY times DESC, digest LIMIT {EXAMPLES}"):
        rows = index.rows("SELECT chunk_id FROM passages WHERE digest = ? ORDER BY 1 LIMIT 5", (digest,))
        examples.append([row[0] for row in rows])
    return {"texts": texts, "count": passages - texts, "examples": examples}


def _nearly(index: Index) -> dict[str, Any]:
    """Passages that nearly repeat an earlier one, and are not the same; those of an older version have no sketch."""
    pairs = sketches.alike(index)
    numbers = sorted({number for pair in pairs for number in pair})
    known = {
        number: (chunk_id, digest)
        for number, chunk_id, digest in index.rows_in(
            "SELECT number, chunk_id, digest FROM passages WHERE number IN ({})", numbers
        )
    }
    unlike = [(a, b) for a, b in pairs if known[a][1] != known[b][1]]
    (unread,) = index.rows("SELECT (SELECT count(*) FROM passages) - (SELECT count(*) FROM sketches)")[0]
    return {
        "count": len({b for _, b in unlike}),
        "examples": [[known[a][0], known[b][0]] for a, b in unlike[:EXAMPLES]],
        "not_compared": unread,
    }
