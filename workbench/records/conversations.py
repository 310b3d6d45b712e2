"""What is kept of conversations: messages in order, and what people thought of the answers.

The SQL is written once; a database gives it a transaction (``SqliteConversations`` here, PostgreSQL in the part
``sources``). Every write is one transaction that is durable when the method returns, so a killed process loses
nothing that it was told was stored. Ids follow from content (who, which session, which key): storing twice stores once.
"""

from __future__ import annotations

import json
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from workbench.errors import WorkbenchError, WorkspaceError
from workbench.extensions import required
from workbench.records.sqlite import Tables
from workbench.settings import Settings
from workbench.state import Citation, Data, Json, without_none
from workbench.text import clean, keep_secret, text_digest

VERSION = 5
"""Of the tables."""
TABLES = (
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
)
Execute = Callable[..., list[Json]]
"""``execute(sql, parameters=())`` -> rows, as dicts; parameters stand as ``?``."""


ROLES = ("user", "assistant")


class SqlConversations(ABC):
    """Conversations in a relational database; every method may be called from any thread.

    Attributes:
        answered: called as ``(execute, conversation, question, answer, now)`` in the transaction that stores an answer.
    """

    _types: ClassVar[Mapping[str, str]] = {}
    """The database's words: ``serial`` for an automatic counter, ``bytes``."""
    _exclusive = ""
    """SQL that lets one process at a time create tables, where the database does not see to that itself."""

    def __init__(self, now: Callable[[], datetime] | None = None):
        self._now = now or (lambda: datetime.now(UTC))
        self.answered: list[Callable[..., Any]] = []

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Execute]:
        """Begin a transaction: committed and durable at the end of the block, undone by an exception."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Json]:
        """Execute one statement in a transaction of its own, and return its rows."""
        with self.transaction() as execute:
            return execute(sql, parameters)

    def create_tables(self, name: str, version: int, statements: Sequence[str]) -> None:
        """Create tables unless they are there.

        Args:
            name: whose tables; their version is kept in ``NAME_version``.
            version: of these statements.
            statements: ``{serial}`` and ``{bytes}`` are replaced by the database's own words.

        Raises:
            WorkspaceError: another version of workbench wrote them.
        """
        with self.transaction() as execute:
            if self._exclusive:
                execute(self._exclusive)
            execute(f"CREATE TABLE IF NOT EXISTS {name}_version (version INTEGER PRIMARY KEY)")
            versions = [row["version"] for row in execute(f"SELECT version FROM {name}_version")]
            if versions not in ([], [version]):
                raise WorkspaceError(
                    f"Another version of workbench wrote the {name} tables (version {versions[-1]}, here {version}). "
                    "Open another workspace, or another database."
                )
            if not versions:
                execute(f"INSERT INTO {name}_version VALUES ({version})")
                for statement in statements:
                    execute(statement.format(**self._types))

    @abstractmethod
    def close(self) -> None:
        """Give the connection back; the store cannot be used afterwards."""

    def __enter__(self) -> SqlConversations:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_or_create_conversation_id(self, user_id: str, session_id: str) -> str:
        """Return the conversation of this user and session; the same id at every call and in every database."""
        conversation_id = self.conversation_id(user_id, session_id)
        now = self.time()
        self.rows(
            "INSERT INTO conversations (id, user_id, session_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (conversation_id, clean(user_id), clean(session_id), now, now),
        )
        return conversation_id

    def conversations(self, user_id: str) -> dict[str, str]:
        """Return the conversations of a user: id -> session."""
        rows = self.rows(
            "SELECT id, session_id FROM conversations WHERE user_id = ?", (clean(user_id),)
        )
        return {row["id"]: row["session_id"] for row in rows}

    @staticmethod
    def conversation_id(user_id: str, session_id: str) -> str:
        """Return the id that the conversation of this user and session has, or will have."""
        return digest(user_id, session_id)

    @staticmethod
    def message_id(conversation_id: str, message_key: str) -> str:
        """Return the id that the message of that key has, or will have."""
        return digest(conversation_id, message_key)

    def append_message(
        self,
        conversation_id: str,
        role: str,
        content: str,
        *,
        message_key: str | None = None,
        citations: Sequence[Citation] = (),
        debug: Data | None = None,
        partial: bool = False,
        answers: str = "",
    ) -> str:
        """Store a message at the end of the conversation.

        Args:
            conversation_id: from ``get_or_create_conversation_id``.
            role: ``user`` or ``assistant``.
            content: the text; NUL and lone surrogates, which no database takes, are replaced.
            message_key: what makes the message this one (``run_id`` + role). Storing the key again changes nothing,
                unless what is there is ``partial``: then the message is completed where it stands.
            citations: an answer's sources.
            debug: anything that JSON holds.
            partial: an answer that was cut off.
            answers: the id of the message that this one answers, for ``answered``.

        Returns:
            The id of the message.

        Raises:
            WorkbenchError: no such conversation or role.
        """
        if role not in ROLES:
            raise WorkbenchError(
                f"Unknown role {role!r} of a message. Known: {', '.join(ROLES)}."
            )
        message_id = (
            self.message_id(conversation_id, message_key) if message_key else uuid.uuid4().hex
        )
        now = self.time()
        with self.transaction() as execute:
            # The update comes first: it holds the conversation's row, so two writers cannot swap places in the order.
            if not execute(
                "UPDATE conversations SET updated_at = ? WHERE id = ? RETURNING id",
                (now, conversation_id),
            ):
                raise WorkbenchError(
                    f"Unknown conversation {conversation_id!r}: it was cleared, or is of another workspace. "
                    "Get one from get_or_create_conversation_id."
                )
            execute(
                "INSERT INTO messages (id, conversation_id, role, content, created_at, citations, debug, partial)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET content = excluded.content,"
                " citations = excluded.citations, debug = excluded.debug, partial = excluded.partial"
                " WHERE messages.partial",
                (
                    message_id,
                    conversation_id,
                    role,
                    clean(content),
                    now,
                    as_json(list(citations)),
                    None if debug is None else as_json(debug),
                    partial,
                ),
            )
            for note in self.answered if answers and not partial else ():
                note(execute, conversation_id, answers, message_id, now)
        return message_id

    def list_messages(
        self, conversation_id: str, limit: int | None = None, before: str | None = None
    ) -> list[Json]:
        """Return the newest ``limit`` messages (all when None), oldest first.

        Args:
            conversation_id: whose messages; an unknown conversation has none.
            limit: how many at most.
            before: id of a message: only what came earlier. Nothing comes before an id that is not there.

        Returns:
            Dicts with ``id, conversation_id, role, content, created_at, citations, debug, partial``.
        """
        clause = ""
        parameters = [conversation_id]
        if before is not None:
            clause = " AND position < (SELECT position FROM messages WHERE id = ? AND conversation_id = ?)"
            parameters += [before, conversation_id]
        tail = "" if limit is None else f" LIMIT {max(0, int(limit))}"
        rows = self.rows(
            f"SELECT {_COLUMNS} FROM messages WHERE conversation_id = ?{clause} ORDER BY position DESC{tail}",
            parameters,
        )
        return [_message(row) for row in reversed(rows)]

    def message(self, message_id: str) -> Json | None:
        """Return the message of that id, as ``list_messages`` gives it; None when there is none."""
        rows = self.rows(f"SELECT {_COLUMNS} FROM messages WHERE id = ?", (message_id,))
        return _message(rows[0]) if rows else None

    def count_messages(self, conversation_id: str) -> int:
        """Return how many messages the conversation has; 0 for one that is not there."""
        rows = self.rows(
            "SELECT COUNT(*) AS n FROM messages WHERE conversation_id = ?", (conversation_id,)
        )
        return int(rows[0]["n"])

    def clear_messages(self, conversation_id: str) -> int:
        """Delete the messages of a conversation and the feedback on them; the conversation can go on.

        Returns:
            How many messages were deleted.
        """
        sql = "DELETE FROM messages WHERE conversation_id = ? RETURNING id"
        return len(self.rows(sql, (conversation_id,)))

    def clear(self, user_id: str, session_id: str | None = None) -> int:
        """Delete one conversation of a user, or all of theirs; no other user's is touched.

        Returns:
            How many messages were deleted.
        """
        values = without_none({"user_id": user_id, "session_id": session_id})
        whose = " AND ".join(f"{name} = ?" for name in values)
        parameters = [*values.values()]
        with self.transaction() as execute:
            deleted = execute(
                f"DELETE FROM messages WHERE conversation_id IN (SELECT id FROM conversations WHERE {whose})"
                " RETURNING id",
                parameters,
            )
            execute(f"DELETE FROM conversations WHERE {whose}", parameters)
        return len(deleted)

    def add_feedback(
        self,
        message_id: str,
        is_positive: bool,
        *,
        query: str = "",
        thread_id: str = "",
        agent_type: str = "",
        metadata: Data | None = None,
        key: str | None = None,
    ) -> str:
        """Store a verdict on an answer.

        With a ``key``, as the name of who says it, what was stored under it is replaced.

        Returns:
            The id of the feedback.

        Raises:
            WorkbenchError: no such message.
        """
        feedback_id = digest(message_id, key) if key else uuid.uuid4().hex
        stored = self.rows(
            "INSERT INTO feedback (id, message_id, query, is_positive, thread_id, agent_type, created_at, metadata)"
            " SELECT ?, id, ?, ?, ?, ?, ?, ? FROM messages WHERE id = ? ON CONFLICT (id) DO UPDATE SET"
            " is_positive = excluded.is_positive, created_at = excluded.created_at, metadata = excluded.metadata"
            " RETURNING id",
            (
                feedback_id,
                clean(query),
                is_positive,
                thread_id,
                agent_type,
                self.time(),
                as_json(metadata or {}),
                message_id,
            ),
        )
        if not stored:
            raise WorkbenchError(
                f"Unknown message {message_id!r}. list_messages gives the ids of a conversation's."
            )
        return feedback_id

    def list_feedback(self, message_id: str | None = None, **equals: str) -> list[Json]:
        """Return the feedback on a message or on all of them, oldest first.

        ``equals`` narrows by ``thread_id``, ``user_id`` or ``session_id``.

        Returns:
            Every column of the table, ``metadata`` as a dict, and whose conversation it is.
        """
        values = without_none({**equals, "message_id": message_id})
        where = " AND ".join(f"{_ABOUT[name]} = ?" for name in values) or "1 = 1"
        rows = self.rows(
            "SELECT f.*, c.user_id, c.session_id FROM feedback f JOIN messages m ON m.id = f.message_id"
            f" JOIN conversations c ON c.id = m.conversation_id WHERE {where} ORDER BY f.created_at, f.id",
            list(values.values()),
        )
        return [
            {
                **row,
                "is_positive": bool(row["is_positive"]),
                "metadata": json.loads(row["metadata"]),
            }
            for row in rows
        ]

    def remove_feedback(self, message_id: str, key: str) -> None:
        """Take back what was stored under that key."""
        self.rows("DELETE FROM feedback WHERE id = ?", (digest(message_id, key),))

    def time(self) -> str:
        """Return now, UTC, ISO 8601."""
        return self._now().astimezone(UTC).isoformat()


_COLUMNS = "id, conversation_id, role, content, created_at, citations, debug, partial"
_ABOUT = {
    "message_id": "f.message_id",
    "thread_id": "f.thread_id",
    "user_id": "c.user_id",
    "session_id": "c.session_id",
}


class SqliteConversations(SqlConversations):
    """Conversations in a SQLite file, which other tables and other processes may share."""

    _types: ClassVar = {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "bytes": "BLOB"}

    def __init__(self, path: str | Path, now: Callable[[], datetime] | None = None):
        super().__init__(now)
        self._tables = Tables(path)
        self.create_tables("conversation", VERSION, TABLES)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """See ``SqlConversations``."""
        with self._tables.transaction() as connection:
            yield lambda sql, parameters=(): [
                dict(row) for row in connection.execute(sql, parameters)
            ]

    def close(self) -> None:
        """Close the file; what was stored stays stored."""
        self._tables.close()


def digest(*parts: str) -> str:
    """32 hex digits that follow from the parts, wherever the cut between them is."""
    return text_digest(json.dumps(parts), 32)


def _message(row: Json) -> Json:
    return {
        **row,
        "citations": json.loads(row["citations"]),
        "debug": None if row["debug"] is None else json.loads(row["debug"]),
        "partial": bool(row["partial"]),
    }


def as_json(value: Any) -> str:
    """Return JSON that every database takes."""
    return clean(json.dumps(value, ensure_ascii=False, sort_keys=True))


def open_conversations(
    path: str | Path, settings: Settings, now: Callable[[], datetime] | None = None
) -> SqlConversations:
    """Open the store of a workspace: PostgreSQL when its DSN or its host is set, else the SQLite file at ``path``.

    Raises:
        MissingExtra: the DSN is set and psycopg is not installed.
        WorkspaceError: the database cannot be reached, or another version of workbench wrote it.
    """
    keep_secret(os.environ.get("POSTGRES_PASSWORD", ""))
    dsn = settings.postgres_dsn.get_secret_value()
    if not (dsn or os.environ.get("POSTGRES_HOST")):
        return SqliteConversations(path, now)
    store = required("stores", "postgres", "sources")(dsn, now)
    return store
