"""Conversations in PostgreSQL, for a group that shares them; the SQL is that of ``records/conversations.py``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.errors import SettingsError, WorkspaceError, needing
from workbench.records.conversations import TABLES, VERSION, Execute, SqlConversations
from workbench.state import Json, without_empty

if TYPE_CHECKING:
    import psycopg


class PostgresConversations(SqlConversations):
    """Conversations in PostgreSQL.

    One connection under one lock, opened again by the next call when the server has dropped it.

    Args:
        dsn: ``postgresql://user:password@host/database`` or libpq's ``key=value`` form; "" for the variables
            ``POSTGRES_HOST``, ``_PORT``, ``_USER``, ``_PASSWORD`` and ``_DB``. Never shown in an error.
        now: the clock.

    Raises:
        MissingExtra: psycopg is not installed.
        SettingsError: the DSN cannot be read.
        WorkspaceError: the server cannot be reached.
    """

    _types: ClassVar = {
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "bytes": "BYTEA",
    }
    # any number, as long as every workbench takes the same lock
    _exclusive = f"SELECT pg_advisory_xact_lock({0x776F726B})"

    def __init__(self, dsn: str, now: Callable[[], datetime] | None = None):
        super().__init__(now)
        self._dsn = dsn
        self._lock = threading.RLock()
        self._connection = self._connect()
        self.create_tables("conversation", VERSION, TABLES)

    def _connect(self) -> psycopg.Connection[Json]:
        with needing("A conversation store in PostgreSQL", "postgres"):
            import psycopg
            from psycopg.rows import dict_row
        parts = {} if self._dsn else environment()
        try:
            return psycopg.connect(
                self._dsn, autocommit=True, row_factory=dict_row, connect_timeout=10, **parts
            )
        except psycopg.OperationalError as error:
            raise WorkspaceError(
                f"PostgreSQL cannot be reached: {str(error).strip()}. "
                "Is it running, and is WORKBENCH_POSTGRES_DSN (or POSTGRES_HOST) right?"
            ) from None
        except psycopg.ProgrammingError:
            raise SettingsError(
                "WORKBENCH_POSTGRES_DSN cannot be read. It looks like postgresql://user:password@host:5432/database."
            ) from None

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """See ``SqlConversations``."""
        from psycopg import OperationalError

        with self._lock:
            if self._connection.closed:
                self._connection = self._connect()
            try:
                with ExitStack() as stack:
                    try:
                        stack.enter_context(self._connection.transaction())
                    except OperationalError:
                        # the server was started again since the last call: nothing is lost yet
                        self._connection.close()
                        self._connection = self._connect()
                        stack.enter_context(self._connection.transaction())
                    yield self._execute
            except OperationalError as error:
                raise WorkspaceError(
                    f"PostgreSQL dropped the conversation store: {str(error).strip()}. The next call connects again."
                ) from None

    def _execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Json]:
        cursor = self._connection.execute(sql.replace("?", "%s"), parameters)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection; what was stored stays stored."""
        with self._lock:
            self._connection.close()


def environment() -> Json:
    """Return where the server is by the variables ``POSTGRES_HOST``, ``_PORT``, ``_USER``, ``_PASSWORD``, ``_DB``."""
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    names["dbname"] = "DB"
    parts = {part: os.environ.get(f"POSTGRES_{name}", "") for part, name in names.items()}
    return without_empty(parts)
