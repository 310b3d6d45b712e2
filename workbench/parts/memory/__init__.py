"""Conversations that are kept, in SQLite or PostgreSQL: ``open_conversations`` is the door."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.parts.memory.store import SqlConversations
    from workbench.settings import Settings


def open_conversations(
    path: str | Path, settings: Settings, now: Callable[[], datetime] | None = None
) -> SqlConversations:
    """The store of a workspace: PostgreSQL when its DSN or its host is set, else the SQLite file at ``path``.

    Raises:
        MissingExtra: the DSN is set and psycopg is not installed.
        WorkspaceError: the database cannot be reached, or a newer workbench wrote it.
    """
    dsn = settings.postgres_dsn.get_secret_value() or _parts(settings)
    if not dsn:
        from workbench.parts.memory.store import SqliteConversations

        return SqliteConversations(path, now)
    from workbench.parts.memory.postgres import PostgresConversations  # psycopg is loaded where it is used

    return PostgresConversations(dsn, now)


def _parts(settings: Settings) -> str:
    """A DSN of the host and its fellows; empty without a host."""
    if not settings.postgres_host:
        return ""
    named = {"host": settings.postgres_host, "port": str(settings.postgres_port), "user": settings.postgres_user}
    named |= {"password": settings.postgres_password.get_secret_value(), "dbname": settings.postgres_db}
    quoted = {name: value.replace("\\", r"\\").replace("'", r"\'") for name, value in named.items() if value}
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())
