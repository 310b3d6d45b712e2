"""How the conversation tables came to be, one numbered step at a time; a step that has shipped is never edited.

A statement is written once for both databases; ``{serial}`` is each one's column that counts by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.errors import WorkspaceError

LEDGER = "CREATE TABLE IF NOT EXISTS conversation_migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)"

MIGRATIONS: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (
        1,
        "conversations, messages and feedback",
        (
            """CREATE TABLE conversations (
                id TEXT PRIMARY KEY,
                user_id TEXT NOT NULL,
                session_id TEXT NOT NULL,
                created_at TEXT NOT NULL,
                updated_at TEXT NOT NULL,
                UNIQUE (user_id, session_id)
            )""",
            """CREATE TABLE messages (
                position {serial},
                id TEXT NOT NULL UNIQUE,
                conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
                role TEXT NOT NULL,
                content TEXT NOT NULL,
                created_at TEXT NOT NULL,
                citations TEXT NOT NULL,
                debug TEXT,
                partial BOOLEAN NOT NULL
            )""",
            "CREATE INDEX messages_in_order ON messages (conversation_id, position)",
            """CREATE TABLE feedback (
                id TEXT PRIMARY KEY,
                message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
                query TEXT NOT NULL,
                is_positive BOOLEAN NOT NULL,
                thread_id TEXT NOT NULL,
                agent_type TEXT NOT NULL,
                created_at TEXT NOT NULL,
                metadata TEXT NOT NULL
            )""",
            "CREATE INDEX feedback_by_message ON feedback (message_id)",
        ),
    ),
)


def migrate(execute: Callable[..., Sequence[Any]], *, serial: str, now: str) -> None:
    """Bring the tables up to date, inside a transaction that the caller holds.

    Args:
        execute: runs one statement with its parameters and gives the rows.
        serial: the database's words for a column that counts by itself.
        now: when this happens, UTC, ISO 8601.

    Raises:
        WorkspaceError: a newer workbench wrote these tables.
    """
    execute(LEDGER)
    done = execute("SELECT MAX(number) AS number FROM conversation_migrations")[0]["number"] or 0
    newest = MIGRATIONS[-1][0]
    if done > newest:
        raise WorkspaceError(
            f"The conversation tables are at version {done}; this workbench knows them up to {newest}. Upgrade it."
        )
    for number, name, statements in MIGRATIONS[done:]:
        for statement in statements:
            execute(statement.replace("{serial}", serial))
        execute("INSERT INTO conversation_migrations (number, name, applied_at) VALUES (?, ?, ?)", (number, name, now))
