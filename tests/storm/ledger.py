"""What a workspace has stored, read from outside while nobody is at it, and what must never change in it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

Key = tuple[str, ...]
_ROWS = {
    "runs": "SELECT run_id, message, options, created_at, result FROM runs",
    "plans": "SELECT run_id, version, plan, author, reason FROM plans",
    "records": "SELECT run_id, step_id, attempt, record FROM records",
    "bodies": "SELECT run_id, ref, body FROM bodies",
    "decisions": "SELECT run_id, review_id, decision FROM decisions",
    "events": "SELECT run_id, key, event FROM events",
    "tapes": "SELECT run_id, page, hex(effects) FROM tapes",
    "conversations": "SELECT id, user_id, session_id FROM conversations",
    "messages": "SELECT id, role, created_at, citations, content, partial FROM messages",
}
_KEYS = {"records": 2, "plans": 2, "bodies": 2, "decisions": 2, "events": 2, "tapes": 2}
"""How many leading columns name a row, where it is not one."""


def read(workspace: Path) -> dict[Key, list[Any]]:
    """Every stored row by its key; a database that is not there yet has none."""
    kept: dict[Key, list[Any]] = {}
    for name, tables in (("workbench.db", _ROWS), ("checkpoints.db", _CHECKPOINTS)):
        if not (workspace / name).exists():
            continue
        with closing(sqlite3.connect(workspace / name, timeout=30)) as connection:
            there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            for table, sql in tables.items():
                for row in connection.execute(sql) if table in there else ():
                    width = 3 if table == "checkpoints" else 3 if table == "records" else _KEYS.get(table, 1)
                    kept[(table, *map(str, row[:width]))] = list(row[width:])
    return kept


_CHECKPOINTS = {"checkpoints": "SELECT thread_id, checkpoint_ns, checkpoint_id, checkpoint FROM checkpoints"}


def lost(before: dict[Key, list[Any]], after: dict[Key, list[Any]]) -> list[str]:
    """What was stored and is no longer there, or says something else now.

    Three things may change: a run without a result gets one, then its checkpoints are folded, and a partial answer
    becomes whole.
    """
    faults = []
    done = {key[1] for key, row in after.items() if key[0] == "runs" and row[-1] is not None}
    for key, old in before.items():
        new = after.get(key)
        if new is None and not (key[0] == "checkpoints" and key[1] in done):
            faults.append(f"{' '.join(key)} is gone")
        elif (
            new is not None
            and new != old
            and not (key[0] == "runs" and old[-1] is None)
            and not (key[0] == "messages" and old[-1])
        ):
            faults.append(f"{' '.join(key)} was changed")
    return faults


def conversation(workspace: Path) -> dict[str, Any]:
    """What is kept of the only one: its messages in order, its episodes, how many lack a vector, and its summary."""
    with closing(sqlite3.connect(workspace / "workbench.db", timeout=30)) as connection:

        def rows(sql: str) -> list[Any]:
            return connection.execute(sql).fetchall()

        return {
            "messages": rows("SELECT role, content, partial, id FROM messages ORDER BY position"),
            "episodes": rows("SELECT user_message_id, assistant_message_id FROM episodes ORDER BY position"),
            "memories": rows("SELECT content FROM memories WHERE ended_at IS NULL ORDER BY position"),
            "bare": rows("SELECT COUNT(*) FROM episodes WHERE vector IS NULL")[0][0],
            "summaries": rows("SELECT summary, covered_message_count, author FROM conversation_summaries"),
        }


def counts(kept: dict[Key, list[Any]]) -> Counter[str]:
    """How many rows of each kind; log entries by their node, messages by what they say."""
    found: Counter[str] = Counter()
    for (table, *_), row in kept.items():
        if table == "events":
            event = json.loads(row[0])
            found[f"log of {event.get('execution_log', {}).get('node', 'other')}"] += 1
        elif table == "messages":
            found[f"{row[0]}: {row[3]}"] += 1
        elif table not in ("checkpoints", "tapes"):  # what a killed node had recorded is beside what it records again
            found[table] += 1
    return found


def finished_steps(kept: dict[Key, list[Any]]) -> set[tuple[str, int]]:
    """``(step_id, attempt)`` of every attempt whose record is stored."""
    return {(key[2], int(key[3])) for key in kept if key[0] == "records"}
