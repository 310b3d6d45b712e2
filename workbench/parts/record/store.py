"""Where recorded graphs are kept: runs, their effects and the answers of people, in ``graphs.db`` of the workspace."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from workbench.errors import RunError, UnknownRun
from workbench.extensions import Service, load
from workbench.records.sqlite import Tables

VERSION = 2
_NOT_LOADED = "workbench.parts.record.elsewhere:Elsewhere"
"""The class of graphs that are not loaded; it builds on what is recorded here."""
_SCHEMA = """
    CREATE TABLE runs (
        run_id TEXT PRIMARY KEY, graph TEXT NOT NULL, thread TEXT NOT NULL, options TEXT NOT NULL, input BLOB,
        status TEXT NOT NULL, owner TEXT, error TEXT, result BLOB, created_at TEXT NOT NULL, ended_at TEXT
    );
    CREATE INDEX runs_by_graph ON runs (graph, created_at);
    CREATE TABLE effects (
        position INTEGER PRIMARY KEY, run_id TEXT NOT NULL, effect TEXT NOT NULL, value TEXT NOT NULL
    );
    CREATE INDEX effects_by_run ON effects (run_id, position);
    CREATE TABLE contents (digest TEXT PRIMARY KEY, content BLOB NOT NULL);
    CREATE TABLE streamed (
        position INTEGER PRIMARY KEY, run_id TEXT NOT NULL, content BLOB NOT NULL
    );
    CREATE INDEX streamed_by_run ON streamed (run_id, position);
    CREATE TABLE memory (
        position INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT, key TEXT, item TEXT NOT NULL,
        UNIQUE (namespace, key)
    );
    CREATE TABLE answers (
        run_id TEXT, question TEXT, asked BLOB, answer BLOB NOT NULL, who TEXT NOT NULL, answered_at TEXT NOT NULL,
        PRIMARY KEY (run_id, question)
    );
"""


Answer = tuple[str, bytes, bytes, str]
"""The key of a question, the question, its answer, and who gave it."""
_ANSWER = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)"


class GraphStore(Tables):
    """Runs of recorded graphs in SQLite.

    Args:
        path: the file.
    """

    def __init__(self, path: Path):
        super().__init__(path, _SCHEMA, VERSION)

    def create(self, graph: str, thread: str, options: Mapping[str, Any], inputs: bytes, owner: str) -> str:
        """Note a run that begins now, and return its id."""
        run_id = uuid.uuid4().hex[:12]
        self.write(
            "INSERT INTO runs (run_id, graph, thread, options, input, status, owner, created_at)"
            " VALUES (?, ?, ?, ?, ?, 'running', ?, ?)",
            (run_id, graph, thread or run_id, json.dumps(options), inputs, owner, _now()),
        )
        return run_id

    def run(self, run_id: str) -> dict[str, Any]:
        """Return the row of a run.

        Raises:
            UnknownRun: lists the newest.
        """
        rows = self.rows("SELECT * FROM runs WHERE run_id = ?", (run_id,))
        if not rows:
            newest = self.rows("SELECT run_id FROM runs ORDER BY created_at DESC LIMIT 5")
            raise UnknownRun(run_id, [row["run_id"] for row in newest])
        return {**dict(rows[0]), "options": json.loads(rows[0]["options"])}

    def run_ids(self, graph: str, thread: str = "") -> list[str]:
        """Return the runs of a graph, newest first."""
        sql = "SELECT run_id FROM runs WHERE graph = ? AND (? = '' OR thread = ?) ORDER BY created_at DESC, run_id"
        return [row["run_id"] for row in self.rows(sql, (graph, thread, thread))]

    def claim(self, run_id: str, seen: Mapping[str, Any], owner: str, answers: Iterable[Answer] = ()) -> None:
        """Take a run without an owner, together with the answers that it continues with.

        Raises:
            RunError: another process took it first.
        """
        sql = (
            "UPDATE runs SET status = 'running', owner = ?, error = NULL WHERE run_id = ? AND status = ? AND owner IS ?"
        )
        with self.transaction() as connection:  # an answer that comes too late replaces none
            if connection.execute(sql, (owner, run_id, seen["status"], seen["owner"])).rowcount != 1:
                raise RunError(f"Run {run_id} is worked on elsewhere. Look at it again.")
            connection.executemany(_ANSWER, [(run_id, *answer, _now()) for answer in answers])

    def end(self, run_id: str, status: str, error: str | None = None, result: bytes | None = None) -> None:
        """Note how a run stands, now without an owner it."""
        ended = _now() if status in ("done", "failed", "cancelled") else None
        self.write(
            "UPDATE runs SET status = ?, owner = NULL, error = ?, result = coalesce(?, result), ended_at = ?"
            " WHERE run_id = ?",
            (status, error, result, ended, run_id),
        )

    def save_effect(self, run_id: str, effect: Mapping[str, Any], value: bytes) -> None:
        """Keep an effect, and its value unless an equal one is there."""
        digest = hashlib.sha256(value).hexdigest()[:16]
        with self.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (digest, value))
            connection.execute(
                "INSERT INTO effects (run_id, effect, value) VALUES (?, ?, ?)",
                (run_id, json.dumps(effect, ensure_ascii=False), digest),
            )

    def effects(self, run_id: str) -> list[tuple[dict[str, Any], bytes]]:
        """Return the effects of a run in their order, each with its value."""
        rows = self.rows(
            "SELECT effect, content FROM effects JOIN contents ON digest = value WHERE run_id = ? ORDER BY position",
            (run_id,),
        )
        return [(json.loads(row["effect"]), row["content"]) for row in rows]

    def save_streamed(self, run_id: str, content: bytes) -> None:
        """Keep what a run streamed."""
        self.write("INSERT INTO streamed (run_id, content) VALUES (?, ?)", (run_id, content))

    def streamed(self, run_id: str, after: int = 0) -> list[tuple[int, bytes]]:
        """Return what a run has streamed after a position, each with its own."""
        sql = "SELECT position, content FROM streamed WHERE run_id = ? AND position > ? ORDER BY position"
        return [(row["position"], row["content"]) for row in self.rows(sql, (run_id, after))]

    def set_options(self, run_id: str, options: Mapping[str, Any]) -> None:
        """Replace the options of a run."""
        self.write("UPDATE runs SET options = ? WHERE run_id = ?", (json.dumps(options), run_id))

    def remove(self, run_ids: Sequence[str]) -> None:
        """Forget runs, and contents that no other run has."""
        with self.transaction() as connection:
            for table in ("effects", "answers", "streamed", "runs"):
                connection.executemany(f"DELETE FROM {table} WHERE run_id = ?", [(run_id,) for run_id in run_ids])
            connection.execute("DELETE FROM contents WHERE digest NOT IN (SELECT value FROM effects)")

    def save_answer(self, run_id: str, answer: Answer) -> None:
        """Keep what a person answered to a question."""
        self.write(_ANSWER, (run_id, *answer, _now()))

    def answers(self, run_id: str) -> list[dict[str, Any]]:
        """Return the answers of a run, oldest first."""
        sql = "SELECT question, asked, answer, who, answered_at FROM answers WHERE run_id = ? ORDER BY answered_at"
        return [dict(row) for row in self.rows(sql, (run_id,))]


class GraphRuns(Service):
    """The recorded graphs of an open workspace: their store, opened when first used, and who works on runs."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self._store: GraphStore | None = None
        self._saver: Any = None
        self._memory: Any = None
        self._lock = threading.Lock()
        self.working: WeakValueDictionary[str, Future[None]] = WeakValueDictionary()
        self.agents: dict[str, Any] = {}

    def find(self, run_id: str) -> Any:
        """Return a recorded run; one whose graph was not recorded here and cannot be loaded can be looked at."""
        rows = self.store.rows("SELECT graph, options FROM runs WHERE run_id = ?", (run_id,))
        if not rows:
            return None
        agent, source = self.agents.get(rows[0]["graph"]), json.loads(rows[0]["options"]).get("source")
        if agent is None:
            why = ""
            try:
                agent = self._wb.record(source, rows[0]["graph"]) if source else None
            except RunError as error:
                why = str(error)
            agent = self.agents[rows[0]["graph"]] = agent or load(_NOT_LOADED)(self._wb, rows[0]["graph"], why)
        return agent.run(run_id)

    def lines(self) -> list[Any]:
        """Return what a list shows of each run, newest first."""
        rows = self.store.rows("SELECT run_id, graph FROM runs ORDER BY created_at DESC, run_id LIMIT 200")
        agents = {name: load(_NOT_LOADED)(self._wb, name) for name in {row["graph"] for row in rows}} | self.agents
        runs = [agents[row["graph"]].run(row["run_id"]) for row in rows]  # a list loads no graph
        return [
            {"message": run.message, "query": "", "status": run.status, "holder": "", "graph": run.agent.name}
            | {name: run.row[name] for name in ("run_id", "created_at")}
            for run in runs
        ]

    def waiting(self) -> list[Any]:
        """Return the runs that wait for a person, newest first."""
        rows = self.store.rows("SELECT run_id FROM runs WHERE status = 'paused' ORDER BY created_at DESC LIMIT 100")
        return [self.find(row["run_id"]) for row in rows]

    @property
    def store(self) -> GraphStore:
        """Return the store."""
        with self._lock:
            if self._store is None:
                self._store = GraphStore(self._wb.path / "graphs.db")
            return self._store

    def saver(self) -> Any:
        """Return the keeper of checkpoints."""
        from workbench.records.checkpoints import Checkpoints

        with self._lock:
            if self._saver is None:
                self._saver = Checkpoints.open(self._wb.path / "graph-checkpoints.db")
            return self._saver

    def shared_store(self) -> Any:
        """Return the store that graphs find which were compiled without one."""
        from workbench.parts.record.memory import WorkspaceStore

        store = self.store
        with self._lock:
            if self._memory is None:
                self._memory = WorkspaceStore(store)
            return self._memory

    def close(self) -> None:
        """Stop what runs (it stays resumable), and close what was opened."""
        for work in list(self.working.values()):
            work.cancel()
        if self.working:
            self._wb._work.loop.settle(10)
        for opened in (self._store, self._saver and self._saver.conn):
            if opened is not None:
                opened.close()


def _now() -> str:
    return datetime.now(UTC).isoformat()
