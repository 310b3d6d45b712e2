"""Where experiments are kept: a row for each cell, with its proof and its results, in ``experiments.db``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.extensions import Service
from workbench.records.sqlite import Tables
from workbench.state import Json

VERSION = 2
ACTS = ("pause", "resume", "drop", "take", "add", "clone", "change")
"""Acts by which an experiment is changed while it runs; ``take`` runs what was dropped after all."""
_SCHEMA = """
    CREATE TABLE experiments (
        name TEXT PRIMARY KEY, spec TEXT NOT NULL, created_at TEXT NOT NULL, state TEXT NOT NULL,
        steered TEXT NOT NULL DEFAULT '[]'
    );
    CREATE TABLE cells (
        experiment TEXT, cell TEXT, configuration INTEGER NOT NULL, parameters TEXT NOT NULL, question TEXT NOT NULL,
        repeat INTEGER NOT NULL, proof TEXT NOT NULL, status TEXT NOT NULL, owner TEXT, run_id TEXT, scores TEXT,
        seconds REAL, tokens INTEGER, money REAL, executed INTEGER, replayed INTEGER, error TEXT, ended_at TEXT,
        PRIMARY KEY (experiment, cell)
    );
    CREATE TABLE looks (experiment TEXT, at TEXT, what TEXT, detail TEXT);
"""


class ExperimentStore(Tables):
    """Experiments in SQLite; datasette opens the file.

    A cell is ``waiting``, ``running``, ``done``, ``failed``, or ``dropped``: then it is not run.

    Args:
        path: the file.
    """

    def __init__(self, path: Path):
        super().__init__(path, _SCHEMA, VERSION)

    def names(self) -> list[str]:
        """Return the experiments, newest first."""
        return [row["name"] for row in self.rows("SELECT name FROM experiments ORDER BY created_at DESC, rowid DESC")]

    def spec(self, name: str) -> Json:
        """Return the specification of an experiment.

        Raises:
            WorkbenchError: there is none; it lists those there are.
        """
        rows = self.rows("SELECT spec FROM experiments WHERE name = ?", (name,))
        if not rows:
            raise WorkbenchError(f"No experiment {name!r}. Known: {', '.join(self.names()) or 'none'}.")
        spec: Json = json.loads(rows[0]["spec"])
        return spec

    def save_spec(self, name: str, spec: Mapping[str, Any]) -> None:
        """Keep a specification; that of the same name is replaced, its cells stay."""
        self.write(
            "INSERT INTO experiments (name, spec, created_at, state) VALUES (?, ?, ?, 'running')"
            " ON CONFLICT (name) DO UPDATE SET spec = excluded.spec",
            (name, json.dumps(spec, ensure_ascii=False), _now()),
        )

    def steered(self, name: str) -> list[Json]:
        """Return the configurations that were added after the experiment began."""
        rows = self.rows("SELECT steered FROM experiments WHERE name = ?", (name,))
        added: list[Json] = json.loads(rows[0]["steered"]) if rows else []
        return added

    def steer(self, name: str, added: Sequence[Json]) -> None:
        """Keep the configurations that were added."""
        text = json.dumps(list(added), ensure_ascii=False)
        self.write("UPDATE experiments SET steered = ? WHERE name = ?", (text, name))

    def set_state(self, name: str, state: str) -> None:
        """Note ``running``, ``paused`` or ``stopped``; a running experiment looks at it before each cell."""
        self.write("UPDATE experiments SET state = ? WHERE name = ?", (state, name))

    def state(self, name: str) -> str:
        """Return ``running``, ``paused`` or ``stopped``."""
        return str(self.rows("SELECT state FROM experiments WHERE name = ?", (name,))[0]["state"])

    def add_cells(self, name: str, cells: Iterable[Json]) -> None:
        """Add cells that are not there yet; one whose proof differs begins again, without its results."""
        fresh = "excluded.proof = cells.proof"
        columns = ", ".join(
            f"{column} = iif({fresh}, cells.{column}, NULL)" for column in ("run_id", "scores", "error")
        )
        with self.transaction() as connection:
            connection.executemany(
                "INSERT INTO cells (experiment, cell, configuration, parameters, question, repeat, proof, status)"
                " VALUES (:experiment, :cell, :configuration, :parameters, :question, :repeat, :proof, 'waiting')"
                " ON CONFLICT (experiment, cell) DO UPDATE SET configuration = excluded.configuration, proof ="
                f" excluded.proof, {columns},"
                f" status = iif({fresh} OR cells.status = 'dropped', cells.status, 'waiting')",
                [{"experiment": name, **cell} for cell in cells],
            )

    def remove_cells(self, name: str, current: Iterable[str]) -> None:
        """Remove the cells that the specification no longer has."""
        cells = set(current)
        with self.transaction() as connection:
            gone = [(name, row["cell"]) for row in self.cells(name) if row["cell"] not in cells]
            connection.executemany("DELETE FROM cells WHERE experiment = ? AND cell = ?", gone)

    def cells(self, name: str) -> list[Json]:
        """Return the cells of an experiment, in the order in which they run."""
        return self.rows("SELECT * FROM cells WHERE experiment = ? ORDER BY rowid", (name,))

    def claim(self, name: str, question: str, owner: str, alive: Callable[[str], bool]) -> list[Json]:
        """Take the cells of a question that have not ended and that no living process has taken; return all of it."""
        mine = "experiment = ? AND question = ?"
        with self.transaction() as connection:
            connection.execute("BEGIN IMMEDIATE")
            owners = connection.execute(f"SELECT DISTINCT owner FROM cells WHERE {mine}", (name, question)).fetchall()
            free = [row["owner"] for row in owners if row["owner"] and not alive(row["owner"])]
            connection.execute(
                f"UPDATE cells SET status = 'waiting', owner = ? WHERE {mine} AND status IN ('waiting', 'running')"
                f" AND (owner IS NULL OR owner IN ({', '.join('?' * len(free))}))",
                (owner, name, question, *free),
            )
            rows = connection.execute(f"SELECT * FROM cells WHERE {mine} ORDER BY rowid", (name, question)).fetchall()
        return [dict(row) for row in rows]

    def begin(self, name: str, cell: str, owner: str) -> bool:
        """Note that a cell runs; return whether it is still to run: it may have been dropped since it was taken."""
        sql = "UPDATE cells SET status = 'running' WHERE experiment = ? AND cell = ? AND owner = ?"
        return self.write(f"{sql} AND status = 'waiting'", (name, cell, owner)) == 1

    def note_run(self, name: str, cell: str, run_id: str) -> None:
        """Note the run of a cell before it works, so that it is found after a kill."""
        self.write("UPDATE cells SET run_id = ? WHERE experiment = ? AND cell = ?", (run_id, name, cell))

    def release(self, name: str, owner: str) -> None:
        """Let others run the cells that this process has taken and not ended."""
        sql = "UPDATE cells SET status = 'waiting', owner = NULL WHERE experiment = ? AND owner = ?"
        self.write(f"{sql} AND status IN ('waiting', 'running')", (name, owner))

    def mark(self, name: str, parameters: str, old: str, new: str) -> int:
        """Give the cells of a configuration that have one status another, and return how many there were."""
        sql = "UPDATE cells SET status = ? WHERE experiment = ? AND parameters = ? AND status = ?"
        return self.write(sql, (new, name, parameters, old))

    def retry_failed(self, name: str) -> None:
        """Let cells that have failed run again: their server may be back."""
        self.write("UPDATE cells SET status = 'waiting' WHERE experiment = ? AND status = 'failed'", (name,))

    def totals(self, name: str) -> Json:
        """Return how many cells there are in each state, and the effects, tokens and money they took."""
        sql = """
            SELECT count(*) AS cells, coalesce(sum(status = 'waiting'), 0) AS waiting,
            coalesce(sum(status = 'running'), 0) AS running, coalesce(sum(status = 'done'), 0) AS done,
            coalesce(sum(status = 'failed'), 0) AS failed, coalesce(sum(status = 'dropped'), 0) AS dropped,
            coalesce(sum(executed), 0) AS executed, coalesce(sum(replayed), 0) AS replayed,
            coalesce(sum(tokens), 0) AS tokens, coalesce(sum(money), 0) AS money, group_concat(DISTINCT owner) AS owners
            FROM cells WHERE experiment = ?
        """
        return self.rows(sql, (name,))[0]

    def summary(self, name: str) -> list[Json]:
        """Return a row for each configuration: questions asked and failed, answers that refuse, seconds, tokens."""
        sql = """
            SELECT configuration, count(DISTINCT question) AS asked, count(DISTINCT iif(status = 'failed' AND NOT EXISTS
            (SELECT 1 FROM cells AS other WHERE other.experiment = cells.experiment AND other.status = 'done' AND
            other.configuration = cells.configuration AND other.question = cells.question), question, NULL)) AS failed,
            coalesce(sum(json_extract(scores, '$.refused') > 0), 0) AS refused, sum(status = 'dropped') AS dropped,
            round(avg(seconds), 3) AS seconds, coalesce(sum(tokens), 0) AS tokens
            FROM cells WHERE experiment = ? GROUP BY configuration ORDER BY configuration
        """
        return self.rows(sql, (name,))

    def values(self, name: str, measure: str) -> list[Json]:
        """Return a measure of each cell that is done and has it."""
        sql = """
            SELECT configuration, question, json_extract(scores, '$."' || ? || '"') AS value FROM cells
            WHERE experiment = ? AND status = 'done' AND value IS NOT NULL ORDER BY rowid
        """
        return self.rows(sql, (measure, name))

    def measures(self, name: str) -> list[str]:
        """Return the measures that any cell has."""
        sql = "SELECT DISTINCT key FROM cells, json_each(cells.scores) WHERE experiment = ? ORDER BY key"
        return [row["key"] for row in self.rows(sql, (name,))]

    def unfinished(self, name: str) -> set[str]:
        """Return the questions of which a cell is still to end."""
        sql = "SELECT DISTINCT question FROM cells WHERE experiment = ? AND status IN ('waiting', 'running')"
        return {row["question"] for row in self.rows(sql, (name,))}

    def pace(self) -> dict[str, float]:
        """Return the mean seconds of a cell: run from the start (``alone``), made from a tape, or a notebook."""
        sql = (
            "SELECT iif(executed IS NULL, 'notebook', iif(replayed > 0, 'forked', 'alone')) AS kind,"
            " avg(seconds) AS seconds FROM cells WHERE status = 'done' GROUP BY kind"
        )
        return {row["kind"]: row["seconds"] for row in self.rows(sql)}

    def end(self, name: str, cell: Mapping[str, Any], **columns: Any) -> None:
        """Note what came of a cell, unless what it depends on has changed since it was taken."""
        columns = {**columns, "owner": None, "ended_at": _now()}
        assignments = ", ".join(f"{column} = ?" for column in columns)
        sql = f"UPDATE cells SET {assignments} WHERE experiment = ? AND cell = ? AND proof = ?"
        self.write(sql, (*columns.values(), name, cell["cell"], cell["proof"]))

    def note(self, name: str, what: str, detail: str) -> None:
        """Note a look at the results, or a change of the experiment."""
        self.write("INSERT INTO looks VALUES (?, ?, ?, ?)", (name, _now(), what, detail))

    def looks(self, name: str) -> list[Json]:
        """Return the looks, oldest first."""
        return self.rows("SELECT at, what, detail FROM looks WHERE experiment = ? ORDER BY rowid", (name,))


class Stored(Service):
    """The experiments of an open workspace: their store, opened when first used."""

    @cached_property
    def store(self) -> ExperimentStore:
        """Return the store."""
        return ExperimentStore(self._wb.path / "experiments.db")

    def close(self) -> None:
        """Close the store, if it was opened."""
        if "store" in self.__dict__:
            self.store.close()


def _now() -> str:
    return datetime.now(UTC).isoformat()
