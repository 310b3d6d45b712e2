"""Where experiments are kept: a row for each cell, with its proof and its results, in ``experiments.db``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from workbench.errors import WorkbenchError
from workbench.extensions import Service
from workbench.records.sqlite import Tables
from workbench.state import Json
from workbench.text import to_json

ACTS = ("pause", "resume", "drop", "take", "add", "clone", "change")
"""Acts by which an experiment is changed while it runs; ``take`` runs what was dropped after all."""
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS experiments (
        name TEXT PRIMARY KEY, spec TEXT NOT NULL, created_at TEXT NOT NULL, state TEXT NOT NULL,
        steered TEXT NOT NULL DEFAULT '[]'
    );
    CREATE TABLE IF NOT EXISTS cells (
        experiment TEXT, cell TEXT, configuration INTEGER NOT NULL, parameters TEXT NOT NULL, question TEXT NOT NULL,
        repeat INTEGER NOT NULL, proof TEXT NOT NULL, status TEXT NOT NULL, owner TEXT, run_id TEXT, scores TEXT,
        seconds REAL, tokens INTEGER, money REAL, executed INTEGER, replayed INTEGER, error TEXT, ended_at TEXT,
        PRIMARY KEY (experiment, cell)
    );
    CREATE TABLE IF NOT EXISTS looks (experiment TEXT, at TEXT, what TEXT, detail TEXT);
"""


@dataclass
class ExperimentStore:
    """What is kept of one experiment, in SQLite; datasette opens the file.

    A cell is ``waiting``, ``running``, ``done``, ``failed``, or ``dropped``: then it is not run.

    Args:
        tables: the file.
        name: of the experiment.
    """

    tables: Tables
    name: str

    def _rows(self, sql: str, *values: Any) -> list[Json]:
        """Return the rows of a query, in which ``?1`` is the experiment."""
        return self.tables.rows(sql, (self.name, *values))

    def _write(self, sql: str, *values: Any) -> int:
        return self.tables.write(sql, (self.name, *values))

    def steered(self) -> list[Json]:
        """Return the configurations that were added after the experiment began."""
        rows = self._rows("SELECT value FROM experiments, json_each(steered) WHERE name = ?1")
        return [json.loads(row["value"]) for row in rows]

    def experiment(self) -> Json:
        """Return the row of the experiment.

        Raises:
            WorkbenchError: there is none; it lists those there are.
        """
        for row in self._rows("SELECT * FROM experiments WHERE name = ?1"):
            return {**row, "spec": json.loads(row["spec"])}
        raise WorkbenchError(
            f"No experiment {self.name!r}. Known: {', '.join(names(self.tables)) or 'none'}."
        )

    def save_spec(self, spec: Json) -> None:
        """Keep a specification; that of the same name is replaced, its cells stay."""
        sql = (
            "INSERT INTO experiments (name, spec, created_at, state) VALUES (?1, ?2, ?3, 'running')"
            " ON CONFLICT (name) DO UPDATE SET spec = excluded.spec"
        )
        self._write(sql, to_json(spec), _now())

    def steer(self, variant: Json) -> None:
        """Add a configuration to those of the specification."""
        self._write(
            "UPDATE experiments SET steered = json_insert(steered, '$[#]', json(?2)) WHERE name = ?1",
            to_json(variant),
        )

    def set_state(self, state: str) -> None:
        """Note ``running``, ``paused`` or ``stopped``; a running experiment looks at it before each cell."""
        self._write("UPDATE experiments SET state = ?2 WHERE name = ?1", state)

    def keep_cells(self, cells: Sequence[Json]) -> None:
        """Keep these cells alone; one whose proof differs begins again, without its results."""
        fresh = "excluded.proof = cells.proof"
        columns = ", ".join(
            f"{column} = iif({fresh}, cells.{column}, NULL)"
            for column in ("run_id", "scores", "error")
        )
        with self.tables.transaction() as connection:
            connection.executemany(
                "INSERT INTO cells (experiment, cell, configuration, parameters, question, repeat, proof, status)"
                " VALUES (:experiment, :cell, :configuration, :parameters, :question, :repeat, :proof, 'waiting')"
                " ON CONFLICT (experiment, cell) DO UPDATE SET configuration = excluded.configuration, proof ="
                f" excluded.proof, {columns},"
                f" status = iif({fresh} OR cells.status = 'dropped', cells.status, 'waiting')",
                [{"experiment": self.name, **cell} for cell in cells],
            )
            connection.execute(
                "DELETE FROM cells WHERE experiment = ? AND cell NOT IN (SELECT value FROM json_each(?))",
                (self.name, json.dumps([cell["cell"] for cell in cells])),
            )

    def cells(self) -> list[Json]:
        """Return the cells, in the order in which they run."""
        return [
            _read(row)
            for row in self._rows("SELECT * FROM cells WHERE experiment = ?1 ORDER BY rowid")
        ]

    def claim(self, question: str, owner: str, alive: Callable[[str], bool]) -> list[Json]:
        """Take the cells of a question that have not ended and that no living process has taken; return all of it."""
        mine = "experiment = ?1 AND question = ?2"
        where = (self.name, question)
        with self.tables.transaction() as connection:
            owners = connection.execute(
                f"SELECT DISTINCT owner FROM cells WHERE {mine}", where
            ).fetchall()
            free = [row["owner"] for row in owners if row["owner"] and not alive(row["owner"])]
            connection.execute(
                f"UPDATE cells SET status = 'waiting', owner = ?3 WHERE {mine} AND status IN ('waiting', 'running')"
                " AND (owner IS NULL OR owner IN (SELECT value FROM json_each(?4)))",
                (*where, owner, json.dumps(free)),
            )
            rows = connection.execute(
                f"SELECT * FROM cells WHERE {mine} ORDER BY rowid", where
            ).fetchall()
        return [_read(dict(row)) for row in rows]

    def begin(self, cell: str, owner: str) -> bool:
        """Note that a cell runs; return whether it is still to run: it may have been dropped since it was taken."""
        sql = "UPDATE cells SET status = 'running' WHERE experiment = ?1 AND cell = ?2 AND owner = ?3"
        return self._write(f"{sql} AND status = 'waiting'", cell, owner) == 1

    def note_run(self, cell: str, run_id: str) -> None:
        """Note the run of a cell before it works, so that it is found after a kill."""
        self._write(
            "UPDATE cells SET run_id = ?3 WHERE experiment = ?1 AND cell = ?2", cell, run_id
        )

    def release(self, owner: str) -> None:
        """Let others run the cells that this process has taken and not ended."""
        sql = "UPDATE cells SET status = 'waiting', owner = NULL WHERE experiment = ?1 AND owner = ?2"
        self._write(f"{sql} AND status IN ('waiting', 'running')", owner)

    def mark(self, old: str, new: str, parameters: str | None = None) -> None:
        """Give the cells that have one status another: all, or those of a configuration."""
        sql = (
            "UPDATE cells SET status = ?3 WHERE experiment = ?1 AND status = ?2"
            " AND parameters = ifnull(?4, parameters)"
        )
        self._write(sql, old, new, parameters)

    def totals(self) -> Json:
        """Return how many cells there are in each state, and the effects, tokens and money they took."""
        sql = """
            SELECT count(*) AS cells, coalesce(sum(status = 'waiting'), 0) AS waiting,
            coalesce(sum(status = 'running'), 0) AS running, coalesce(sum(status = 'done'), 0) AS done,
            coalesce(sum(status = 'failed'), 0) AS failed, coalesce(sum(status = 'dropped'), 0) AS dropped,
            coalesce(sum(executed), 0) AS executed, coalesce(sum(replayed), 0) AS replayed,
            coalesce(sum(tokens), 0) AS tokens, coalesce(sum(money), 0) AS money, group_concat(DISTINCT owner) AS owners
            FROM cells WHERE experiment = ?1
        """
        return self._rows(sql)[0]

    def summary(self) -> list[Json]:
        """Return a row for each configuration: questions asked and failed, answers that refuse, seconds, tokens."""
        sql = """
            SELECT configuration, count(DISTINCT question) AS asked, count(DISTINCT iif(status = 'failed' AND NOT EXISTS
            (SELECT 1 FROM cells AS other WHERE other.experiment = cells.experiment AND other.status = 'done' AND
            other.configuration = cells.configuration AND other.question = cells.question), question, NULL)) AS failed,
            coalesce(sum(json_extract(scores, '$.refused') > 0), 0) AS refused, sum(status = 'dropped') AS dropped,
            round(avg(seconds), 3) AS seconds, coalesce(sum(tokens), 0) AS tokens
            FROM cells WHERE experiment = ?1 GROUP BY configuration ORDER BY configuration
        """
        return self._rows(sql)

    def values(self, measure: str) -> list[Json]:
        """Return a measure of each cell that is done and has it."""
        sql = """
            SELECT configuration, question, json_extract(scores, '$."' || ?2 || '"') AS value FROM cells
            WHERE experiment = ?1 AND status = 'done' AND value IS NOT NULL ORDER BY rowid
        """
        return self._rows(sql, measure)

    def measures(self) -> list[str]:
        """Return the measures that any cell has."""
        sql = "SELECT DISTINCT key FROM cells, json_each(cells.scores) WHERE experiment = ?1 ORDER BY key"
        return [row["key"] for row in self._rows(sql)]

    def unfinished(self) -> set[str]:
        """Return the questions of which a cell is still to end."""
        sql = "SELECT DISTINCT question FROM cells WHERE experiment = ?1 AND status IN ('waiting', 'running')"
        return {row["question"] for row in self._rows(sql)}

    def pace(self) -> dict[str, float]:
        """Return the mean seconds of a cell: run from the start (``alone``), made from a tape, or a notebook."""
        sql = (
            "SELECT iif(executed IS NULL, 'notebook', iif(replayed > 0, 'forked', 'alone')) AS kind,"
            " avg(seconds) AS seconds FROM cells WHERE status = 'done' GROUP BY kind"
        )
        return {row["kind"]: row["seconds"] for row in self.tables.rows(sql)}

    def end(self, cell: Json, **columns: Any) -> None:
        """Note what came of a cell, unless what it depends on has changed since it was taken."""
        columns = {**columns, "owner": None, "ended_at": _now()}
        assignments = ", ".join(f"{column} = ?" for column in columns)
        sql = f"UPDATE cells SET {assignments} WHERE experiment = ? AND cell = ? AND proof = ?"
        self.tables.write(sql, (*columns.values(), self.name, cell["cell"], cell["proof"]))

    def note(self, what: str, detail: str) -> None:
        """Note a look at the results, or a change of the experiment."""
        self._write("INSERT INTO looks VALUES (?1, ?2, ?3, ?4)", _now(), what, detail)

    def looks(self) -> list[Json]:
        """Return the looks, oldest first."""
        return self._rows(
            "SELECT at, what, detail FROM looks WHERE experiment = ?1 ORDER BY rowid"
        )


def names(tables: Tables) -> list[str]:
    """Return the experiments of a file, newest first."""
    return [
        row["name"]
        for row in tables.rows(
            "SELECT name FROM experiments ORDER BY created_at DESC, rowid DESC"
        )
    ]


class Stored(Service):
    """The experiments of an open workspace: their file, opened when first used."""

    @cached_property
    def tables(self) -> Tables:
        """Return the file."""
        return Tables(self._wb.path / "experiments.db", _SCHEMA, version=2)

    def close(self) -> None:
        """Close the file, if it was opened."""
        if "tables" in self.__dict__:
            self.tables.close()


def _read(row: Json) -> Json:
    columns = ("parameters", "scores")
    return {**row, **{column: json.loads(row[column] or "null") for column in columns}}


def _now() -> str:
    return datetime.now(UTC).isoformat()
