"""The rows that an index keeps of one document: itself, its fields, its passages, their terms, titles and sketches."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from workbench.knowledge import corpus, entities, keywords, schema, sketches, title_links, vectors
from workbench.knowledge.corpus import Document
from workbench.knowledge.vocabulary import Vocabulary
from workbench.plans import canonical_json
from workbench.text import language_of

_BEGINNING = 400
"""Characters by which the language of a document is known."""


def insert(
    connection: sqlite3.Connection,
    document: Document,
    texts: Sequence[str],
    model: str,
    day: str,
    vocabulary: Vocabulary,
) -> None:
    """Keep a document that is cut into these texts, of the day on which it came."""
    content = document.content()
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.doc_id,
            document.digest(),
            document.title,
            document.text,
            document.url,
            document.licence,
            document.type,
            *(canonical_json(content[name]) for name in ("fields", "aliases", "names")),
            document.source,
            entities.year_of(document.fields),
            day,
            language_of(document.text[:_BEGINNING]),
        ),
    )
    schema.insert(connection, document.doc_id, document.fields)
    given = [] if document.title == corpus.made_title(document.text) else [document.title]
    title = keywords.stored(" | ".join([*given, *document.aliases]))
    # each by itself: terms never run over the border between two names
    names = " ".join(map(keywords.stored, entities.names_in_fields(document.fields, document.names, vocabulary)))
    keys = title_links.title_keys(document.title, document.aliases, document.text) if given else {}
    title_links.insert(connection, document.doc_id, keys)
    for position, text in enumerate(texts):
        key = vectors.key_of(model, vectors.titled(document.title, document.aliases, text))
        chunk_id = f"{document.doc_id}#{position}"
        row = (chunk_id, document.doc_id, position, text, vectors.key_of("", text), key)
        number = (
            connection.execute(
                "INSERT INTO passages (chunk_id, doc_id, position, text, digest, vector) VALUES (?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            or 0
        )
        connection.execute("INSERT OR IGNORE INTO unfollowed VALUES (?)", (chunk_id,))
        sketches.insert(connection, number, keywords.insert(connection, number, title, names, text))
        title_links.insert_phrases(connection, number, keys, text)


def delete(connection: sqlite3.Connection, doc_id: str) -> None:
    """Forget a document; its vectors and names are kept by content, and go with the last text that has them."""
    title_links.delete(connection, doc_id)
    mine = "SELECT number FROM passages WHERE doc_id = ?"
    connection.execute(f"DELETE FROM terms WHERE rowid IN ({mine})", (doc_id,))
    connection.execute(f"DELETE FROM sketches WHERE number IN ({mine})", (doc_id,))
    connection.execute("INSERT OR IGNORE INTO unfollowed SELECT chunk_id FROM passages WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM passages WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM documents WHERE doc_id = ?", (doc_id,))
    connection.execute("DELETE FROM facts WHERE doc_id = ?", (doc_id,))
