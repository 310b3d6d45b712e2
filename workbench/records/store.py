"""What is kept of a run: its row, its plans by version, records, bodies, decisions, log and result.

Every write is insert-or-ignore under a key that the run determines, so a node that runs again after a crash changes
nothing. Checkpoints know where a run stands; this store knows what it did.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict

from workbench.errors import RunError, UnknownRun, WorkspaceError
from workbench.records.sqlite import Tables, translate_errors
from workbench.state import Data, Decision, ExecutionRecord, Json
from workbench.text import without_secrets

VERSION = 14
"""Of the tables."""
ENDED = ("done", "failed", "cancelled")
"""Status of a run that has ended."""
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS runs (
        run_id TEXT PRIMARY KEY, conversation_id TEXT, user_id TEXT, session_id TEXT, message TEXT NOT NULL,
        options TEXT NOT NULL, status TEXT NOT NULL, owner TEXT, error TEXT, result BLOB,
        created_at TEXT NOT NULL, ended_at TEXT, query TEXT, answer TEXT, report TEXT, graph TEXT NOT NULL DEFAULT '',
        figures TEXT
    );
    CREATE INDEX IF NOT EXISTS runs_by_time ON runs (created_at);
    CREATE TABLE IF NOT EXISTS plans (
        run_id TEXT, version INTEGER, plan TEXT NOT NULL, author TEXT, reason TEXT, PRIMARY KEY (run_id, version)
    );
    CREATE TABLE IF NOT EXISTS records (
        run_id TEXT, step_id TEXT, attempt INTEGER, record TEXT NOT NULL, PRIMARY KEY (run_id, step_id, attempt)
    );
    CREATE TABLE IF NOT EXISTS bodies (run_id TEXT, ref TEXT, body BLOB NOT NULL, PRIMARY KEY (run_id, ref));
    CREATE TABLE IF NOT EXISTS decisions (
        run_id TEXT, review_id TEXT, decision TEXT NOT NULL, PRIMARY KEY (run_id, review_id)
    );
    CREATE TABLE IF NOT EXISTS events (
        position INTEGER PRIMARY KEY, run_id TEXT, key TEXT, event TEXT NOT NULL, UNIQUE (run_id, key)
    );
    CREATE TABLE IF NOT EXISTS tapes (run_id TEXT, page TEXT, effects BLOB NOT NULL, PRIMARY KEY (run_id, page));
    CREATE TABLE IF NOT EXISTS drafts (run_id TEXT, name TEXT, text TEXT NOT NULL, PRIMARY KEY (run_id, name));
    CREATE INDEX IF NOT EXISTS runs_by_report ON runs (report);
"""
TABLES = ("plans", "records", "bodies", "decisions", "events", "tapes", "drafts", "runs")


_LINES = """
    SELECT runs.run_id, message, status, owner, user_id, session_id, created_at, ended_at, error, graph,
        ifnull(figures, '{}') AS figures,
        ifnull(query, message) AS query, ifnull(answer, '') AS answer,
        iif(graph = '', (SELECT ifnull(group_concat(value), '') FROM json_each(options, '$.kb')), graph) AS kb,
        json_extract(options, '$.tape.sources[0]') AS origin,
        (WITH RECURSIVE up(id) AS (
            SELECT json_extract(runs.options, '$.tape.sources[0]')
            UNION SELECT json_extract(o.options, '$.tape.sources[0]') FROM up JOIN runs AS o ON o.run_id = up.id
        ) SELECT json_group_array(id) FROM up WHERE id IS NOT NULL) AS origins,
        (SELECT ifnull(group_concat(value, ', '), '') FROM json_each(options, '$.edited')) AS edited,
        ifnull((SELECT json_extract(decision, '$.action') FROM decisions
            WHERE decisions.run_id = runs.run_id ORDER BY decisions.rowid DESC LIMIT 1), '') AS decided,
        (SELECT status = 'done' AND json_extract(decision, '$.action') = 'reject'
            AND json_extract(decision, '$.proposal.should_continue') IS NOT 0 FROM decisions
            WHERE decisions.run_id = runs.run_id ORDER BY decisions.rowid DESC LIMIT 1) AS stopped,
        ifnull(nullif(json_extract(text, '$.title'), ''), message) AS title,
        ifnull(json_extract(text, '$.tags'), '[]') AS tags, ifnull(json_extract(text, '$.note'), '') AS note
    FROM runs LEFT JOIN drafts ON drafts.run_id = runs.run_id AND name = 'about'
    WHERE runs.run_id IN (SELECT value FROM json_each(?)) ORDER BY created_at DESC, runs.run_id
"""
"""A list of runs, with those that each was made from, and what a person has added: title, tags, note."""


def new_run_id() -> str:
    """Twelve random hex digits."""
    return uuid.uuid4().hex[:12]


class RunRow(TypedDict):
    """One run as the store knows it; ``graph`` is the name of a recorded graph, empty of the workspace's own.

    ``status`` is what was last written; the session asks whether it still holds.
    """

    run_id: str
    conversation_id: str
    user_id: str
    session_id: str
    message: str
    options: Json
    status: str
    owner: str | None
    error: str | None
    result: Json | None
    created_at: str
    ended_at: str | None
    graph: str


_ROW = tuple(name for name in RunRow.__annotations__ if name != "owner")
"""What is kept of a run wherever it is carried."""


def runs_are_gone(folder: Path) -> bool:
    """Check whether the runs' file is empty or missing though their checkpoints are there.

    Opening would start an empty workspace in its place.
    """
    return not _size(folder / "workbench.db") and _size(folder / "checkpoints.db") > 0


def require_version(path: Path) -> None:
    """Refuse a file of runs that another version of workbench wrote, before anything in it is changed.

    Raises:
        WorkspaceError: it has other tables.
    """
    if not _size(path):
        return
    version = tables = 0
    with (
        suppress(sqlite3.Error),  # what is wrong otherwise is raised on opening
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'runs'"
        ).fetchone()
    if version != VERSION and (version or tables):
        raise WorkspaceError(
            f"{path} was written by another version of workbench (tables {version}, here {VERSION}). Open another "
            "workspace with --workspace DIR, and build its knowledge bases with `workbench kb add NAME PATH`."
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class RunStore(Tables):
    """Runs in SQLite. One connection behind a lock serves every thread; each write is its own transaction."""

    def __init__(self, path: Path | str):
        require_version(Path(path))
        super().__init__(path, _SCHEMA, VERSION)

    # the run's row

    def create(
        self,
        run_id: str,
        message: str,
        options: Data,
        *,
        owner: str,
        conversation_id: str = "",
        user_id: str = "",
        session_id: str = "",
        graph: str = "",
    ) -> None:
        """Note a run that begins now, held by ``owner``."""
        self._keep(
            "runs (run_id, conversation_id, user_id, session_id, message, options, status, owner, created_at, graph)",
            *(run_id, conversation_id, user_id, session_id, message),
            *(_json(options), "running", owner, _now(), graph),
        )

    def claim(self, row: RunRow, owner: str, decisions: Iterable[Data] = ()) -> bool:
        """Take a run as it was seen, with the answers that it continues with; False when it has changed since."""
        run_id = row["run_id"]
        sql = (
            "UPDATE runs SET owner = ?, status = 'running', error = NULL, figures = NULL"
            " WHERE run_id = ? AND owner IS ? AND status = ?"
        )
        answers = "INSERT OR REPLACE INTO decisions VALUES (?, ?, ?)"  # of one that was refused
        with self.transaction() as connection:  # an answer that comes too late is not kept
            values = owner, run_id, row["owner"], row["status"]
            changed = connection.execute(sql, values).rowcount
            for decision in decisions if changed else ():
                connection.execute(answers, (run_id, decision["review_id"], _json(decision)))
        return changed == 1

    def let_go(self, run_id: str, status: str, error: str | None = None) -> None:
        """Release the run and store its status; a cancelled run is only marked as done."""
        ended = _now() if status in ENDED else None
        unless_cancelled = status != "done"
        self.write(
            "UPDATE runs SET owner = NULL, status = iif(? AND status = 'cancelled', status, ?),"
            " error = iif(? AND status = 'cancelled', NULL, ?),"
            " ended_at = iif(? AND status = 'cancelled', ended_at, ?) WHERE run_id = ?",
            (unless_cancelled, status, unless_cancelled, error, unless_cancelled, ended, run_id),
        )

    def mark_cancelled(self, run_id: str) -> bool:
        """Say that a person cancelled the run, before its work is stopped; False when it had ended."""
        changed = self.write(
            "UPDATE runs SET status = 'cancelled', error = NULL, ended_at = ?"
            " WHERE run_id = ? AND status NOT IN ('done', 'cancelled')",
            (_now(), run_id),
        )
        return changed == 1

    def is_cancelled(self, run_id: str) -> bool:
        """Return whether a person cancelled the run."""
        rows = self.rows("SELECT status FROM runs WHERE run_id = ?", (run_id,))
        return bool(rows) and rows[0]["status"] == "cancelled"

    def save_result(self, run_id: str, result: Data) -> None:
        """Keep what the run gave, once."""
        self.write(
            "UPDATE runs SET result = ?, query = ?, answer = ?, report = ? WHERE run_id = ? AND result IS NULL",
            (_compressed(result), *_noted(result), run_id),
        )

    def get(self, run_id: str, whole: bool = False) -> RunRow:
        """Return the run of that id; unless ``whole``, with an empty result in the place of the one that it has.

        Raises:
            UnknownRun: lists the newest ones.
        """
        columns = ", ".join(RunRow.__annotations__)
        if not whole:
            columns = columns.replace("result", "iif(result IS NULL, NULL, '{}') AS result")
        rows = self.rows(f"SELECT {columns} FROM runs WHERE run_id = ?", (run_id,))
        if not rows:
            newest = self.rows("SELECT run_id FROM runs ORDER BY created_at DESC LIMIT 5")
            raise UnknownRun(run_id, [row["run_id"] for row in newest])
        return self._row(rows[0])

    def has(self, run_id: str) -> bool:
        """Return whether there is such a run."""
        return bool(self.rows("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)))

    def ids(self, limit: int = 100, **equals: str) -> list[str]:
        """Return ids, newest first, narrowed by ``user_id``, ``session_id``, ``status`` or ``graph``."""
        where = " AND ".join(f"{_column(name)} = ?" for name in equals) or "1"
        sql = f"SELECT run_id FROM runs WHERE {where} ORDER BY created_at DESC, run_id LIMIT ?"
        return [row["run_id"] for row in self.rows(sql, (*equals.values(), limit))]

    def lines(self, run_ids: Sequence[str]) -> list[Json]:
        """Return what a list shows of runs, without what they found, newest first; with the figures that are kept."""
        rows = self.rows(_LINES, [json.dumps(list(run_ids))])
        lists = ("tags", "origins")
        return [
            row | json.loads(row.pop("figures")) | {name: json.loads(row[name]) for name in lists}
            for row in rows
        ]

    def figures(self, run_id: str) -> Json:
        """Return the figures that are kept of a run; empty where there are none."""
        [row] = self.rows(
            "SELECT ifnull(figures, '{}') AS figures FROM runs WHERE run_id = ?", (run_id,)
        )
        return json.loads(row["figures"])

    def save_figures(self, row: RunRow, figures: Data) -> None:
        """Keep figures that were read after a row of a run that has ended, unless it was resumed meanwhile."""
        sql = "UPDATE runs SET figures = ? WHERE run_id = ? AND owner IS NULL AND ? IS NULL AND ended_at = ?"
        self.write(sql, (_json(figures), row["run_id"], row["owner"], row["ended_at"]))

    def report(self, report_id: str, user: str) -> Json:
        """Return the newest report of that id and user; empty without one, or when it was rejected or forgotten."""
        rows = self.rows(
            "SELECT run_id, result FROM runs WHERE report = ? AND user_id = ? AND status = 'done'"
            " ORDER BY created_at DESC LIMIT 1",
            (report_id, user),
        )
        if not rows:
            return {}
        result = self._loaded(rows[0]["result"])
        report = result.get("report") or {}
        if report.get("rejected"):
            return {}
        fields = {name: report.get(name) for name in ("by", "outlined_by", "numbers", "evidence")}
        outline = result.get("outline") or {"sections": []}
        sections = result.get("sections") or []
        return {"run_id": rows[0]["run_id"], **fields, "outline": outline, "sections": sections}

    def remove(self, run_ids: Sequence[str]) -> None:
        """Forget runs with all that they did, in one transaction."""
        with self.transaction() as connection:
            for table in TABLES:
                connection.executemany(
                    f"DELETE FROM {table} WHERE run_id = ?", [(run_id,) for run_id in run_ids]
                )

    # what it did

    def save_plan(self, run_id: str, plan: Data, author: str, reason: str) -> None:
        """Keep one version of the plan."""
        self._keep("plans", run_id, plan["version"], _json(plan), author, reason)

    def plans(self, run_id: str) -> list[Json]:
        """Return every version, oldest first: ``{"version", "plan", "author", "reason"}``."""
        rows = self._rows_of_run(
            run_id, "plans", "version, author, reason, plan", order="version"
        )
        return [{**row, "plan": self._loaded(row["plan"])} for row in rows]

    def record(self, run_id: str, step_id: str, attempt: int) -> ExecutionRecord | None:
        """Return the record of that attempt, if it has ended."""
        rows = self.rows(
            "SELECT record FROM records WHERE run_id = ? AND step_id = ? AND attempt = ?",
            (run_id, step_id, attempt),
        )
        return self._loaded(rows[0]["record"]) if rows else None

    def records(self, run_id: str) -> list[ExecutionRecord]:
        """Return every attempt, in the order in which they began: which of two at once ends first is chance."""
        records = self._all(run_id, "records", "record")
        return sorted(records, key=itemgetter("iteration", "started_at", "step_id"))

    def save_record(self, run_id: str, record: ExecutionRecord, body: Data | None) -> None:
        """Keep an attempt and, under ``raw_output_ref``, its body: both or neither."""
        with self.transaction() as connection:
            if body is not None:
                ref = record["raw_output_ref"]
                connection.execute(*_insert("bodies", run_id, ref, _compressed(body)))
            key = run_id, record["step_id"], record["attempt"]
            connection.execute(*_insert("records", *key, _json(record)))

    def body(self, run_id: str, ref: str) -> Json:
        """``{"results": [...], "output": {...}}`` of one attempt.

        Raises:
            WorkspaceError: it was never kept, or a repair could not read it.
        """
        rows = self.rows("SELECT body FROM bodies WHERE run_id = ? AND ref = ?", (run_id, ref))
        if not rows:
            raise WorkspaceError(
                f"What step {ref} of run {run_id} found is not in the workspace any more: {self._path} was damaged "
                "once. Ask the question again."
            )
        return self._loaded(rows[0]["body"])

    def save_decision(self, run_id: str, decision: Decision) -> Decision:
        """Keep an answer, once; gives back the one that counts."""
        review_id = decision["review_id"]
        self._keep("decisions", run_id, review_id, _json(decision))
        return next(row for row in self.decisions(run_id) if row["review_id"] == review_id)

    def decisions(self, run_id: str) -> list[Decision]:
        """Return every answer, oldest first."""
        return self._all(run_id, "decisions", "decision")

    def save_event(self, run_id: str, key: str, event: Data) -> None:
        """Keep a debug event under its key, once."""
        self._keep("events (run_id, key, event)", run_id, key, _json(event))

    def events(self, run_id: str) -> list[Json]:
        """Return the debug events, in order."""
        return [event for _, event in self.events_after(run_id, 0)]

    def events_after(self, run_id: str, position: int) -> list[tuple[int, Json]]:
        """Return the events after a position, in order, each with its own."""
        sql = "SELECT position, event FROM events WHERE run_id = ? AND position > ? ORDER BY position"
        return [
            (row["position"], self._loaded(row["event"]))
            for row in self.rows(sql, (run_id, position))
        ]

    def save_draft(self, run_id: str, name: str, text: str) -> None:
        """Keep what a person has typed or chosen and not sent; the newest holds."""
        self.write(
            "INSERT OR REPLACE INTO drafts (run_id, name, text) VALUES (?, ?, ?)",
            (run_id, name, text),
        )

    def draft(self, run_id: str, name: str) -> str:
        """Return what was typed there; empty when nothing was."""
        rows = self.rows("SELECT text FROM drafts WHERE run_id = ? AND name = ?", (run_id, name))
        return rows[0]["text"] if rows else ""

    def drafts(self, run_id: str) -> list[str]:
        """Everything that was typed there."""
        return [row["text"] for row in self._rows_of_run(run_id, "drafts", "text")]

    def tool_seconds(self) -> dict[str, list[float]]:
        """Return how long each tool took, call by call, in all runs: attempts that were made, not replayed ones."""
        seconds: dict[str, list[float]] = {}
        for row in self.rows(
            "SELECT json_extract(record, '$.tool') AS tool, json_extract(record, '$.duration_ms') AS ms FROM records"
            " WHERE json_extract(record, '$.replayed') IS NULL AND json_extract(record, '$.effect') IS NOT NULL"
            " ORDER BY rowid DESC LIMIT 5000"
        ):
            seconds.setdefault(row["tool"], []).append(row["ms"] / 1000)
        return seconds

    def save_page(self, run_id: str, page: str, effects: bytes) -> None:
        """Keep a page of the run's tape, once."""
        self._keep("tapes", run_id, page, effects)

    def pages(self, run_id: str) -> list[bytes]:
        """Return every page of the run's tape, in the order in which they were kept."""
        return [row["effects"] for row in self._rows_of_run(run_id, "tapes", "effects")]

    # carried from one workspace to another

    def contents(self, run_id: str) -> Json:
        """Everything that is kept of a run, as JSON: its row, and the rows of each other table."""
        run = self.get(run_id, whole=True)
        contents: Json = {"run": {name: value for name, value in run.items() if name != "owner"}}
        for table, columns in _CARRIED.items():
            contents[table] = rows = self._rows_of_run(run_id, table, ", ".join(columns))
            for row, name in product(rows, columns):
                row[name] = self._loaded(row[name]) if name in _WRITTEN else row[name]
        return contents

    def bring(self, run_id: str, contents: Data) -> bool:
        """Keep what ``contents`` gave under this id, whole or not at all; False when there is a run of that id."""
        run = {**contents["run"], "run_id": run_id}
        values = [_written(name, run[name]) if run[name] is not None else None for name in _ROW]
        row = _insert(
            f"runs ({', '.join(_ROW)}, query, answer, report)",
            *values,
            *_noted(run["result"] or {}),
        )
        with self.transaction() as connection:
            new = connection.execute(*row).rowcount
            for table, columns in _CARRIED.items() if new else ():
                sql, _ = _insert(f"{table} (run_id, {', '.join(columns)})", run_id, *columns)
                rows = [
                    [run_id, *(_written(name, row[name]) for name in columns)]
                    for row in contents[table]
                ]
                connection.executemany(sql, rows)
        return bool(new)

    # SQLite

    def _keep(self, table: str, *values: Any) -> None:
        """Insert a row, if there is none under its key."""
        self.write(*_insert(table, *values))

    def _rows_of_run(
        self, run_id: str, table: str, columns: str, order: str = "rowid"
    ) -> list[Json]:
        """Return what a table has of a run, in the order in which it was kept."""
        return self.rows(
            f"SELECT {columns} FROM {table} WHERE run_id = ? ORDER BY {order}", (run_id,)
        )

    def _all(self, run_id: str, table: str, column: str) -> list[Any]:
        """Return a column of JSON, read."""
        return [self._loaded(row[column]) for row in self._rows_of_run(run_id, table, column)]

    def _loaded(self, text: str | bytes) -> Any:
        with translate_errors(self._path):
            return loaded(text)

    def _row(self, row: Json) -> RunRow:
        result = None if row["result"] is None else self._loaded(row["result"])
        return RunRow(**{**row, "options": self._loaded(row["options"]), "result": result})  # type: ignore[typeddict-item]


def loaded(text: str | bytes) -> Any:
    """Return the value of a column: JSON, compressed where it is bytes."""
    return json.loads(zlib.decompress(text) if isinstance(text, bytes) else text)


def _written(column: str, value: Any) -> Any:
    return _WRITTEN[column](value) if column in _WRITTEN else value


def _compressed(value: Any) -> bytes:
    return zlib.compress(_json(value).encode())


def _noted(result: Data) -> tuple[Any, ...]:
    """Return what is looked for in results: the question as read, the answer's beginning, and the id of a report."""
    first_line = str(result.get("answer") or "").strip().partition("\n")[0]
    return result.get("query"), first_line[:200], (result.get("report") or {}).get("report_id")


def _insert(table: str, *values: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that keeps a row, if there is none under its key, and its values."""
    return f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(values))})", values


def _column(name: str) -> str:
    if name not in ("user_id", "session_id", "status", "graph"):
        raise RunError(
            f"Runs cannot be listed by {name!r}. Known: user_id, session_id, status, graph."
        )
    return name


def _json(value: Any) -> str:
    return without_secrets(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _now() -> str:
    return datetime.now(UTC).isoformat()


_CARRIED = {
    "plans": ("version", "author", "reason", "plan"),
    "records": ("step_id", "attempt", "record"),
    "bodies": ("ref", "body"),
    "decisions": ("review_id", "decision"),
    "events": ("key", "event"),
    "tapes": ("page", "effects"),
}
"""What a capsule has of a run besides its row: the columns of each table."""
_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("options", "plan", "record", "decision", "event"), _json),
    **dict.fromkeys(("result", "body", "effects"), _compressed),
}
"""Columns of JSON, and how it is written there."""
