"""Where experiments are kept: a row for each cell, with its proof and its results, in ``experiments.db``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.extensions import Service
from workbench.records.sqlite import Tables
from workbench.state import Json

VERSION = 1
_SCHEMA = """
    CREATE TABLE experiments (
        name TEXT PRIMARY KEY, spec TEXT NOT NULL, created_at TEXT NOT NULL, state TEXT NOT NULL
    );
    CREATE TABLE cells (
        experiment TEXT, cell TEXT, configuration INTEGER NOT NULL, parameters TEXT NOT NULL, question TEXT NOT NULL,
        repeat INTEGER NOT NULL, proof TEXT NOT NULL, status TEXT NOT NULL, owner TEXT, run_id TEXT, scores TEXT,
        seconds REAL, tokens INTEGER, executed INTEGER, replayed INTEGER, error TEXT, ended_at TEXT,
        PRIMARY KEY (experiment, cell)
    );
    CREATE TABLE looks (experiment TEXT, at TEXT, what TEXT, detail TEXT);
"""


class ExperimentStore(Tables):
    """Experiments in SQLite; datasette opens the file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path):
        super().__init__(path, _SCHEMA, VERSION)

    def names(self) -> list[str]:
        """Return the experiments, newest first."""
        return [row["name"] for row in self.rows("SELECT name FROM experiments ORDER BY created_at DESC")]

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
            "INSERT INTO experiments VALUES (?, ?, ?, 'running') ON CONFLICT (name) DO UPDATE SET spec = excluded.spec,"
            " state = 'running'",
            (name, json.dumps(spec, ensure_ascii=False), _now()),
        )

    def set_state(self, name: str, state: str) -> None:
        """Note ``running`` or ``stopped``; a running experiment looks at it before each cell."""
        self.write("UPDATE experiments SET state = ? WHERE name = ?", (state, name))

    def state(self, name: str) -> str:
        """Return ``running`` or ``stopped``."""
        return str(self.rows("SELECT state FROM experiments WHERE name = ?", (name,))[0]["state"])

    def add_cells(self, name: str, cells: Iterable[Json]) -> None:
        """Add cells that are not there yet; one whose proof differs begins again."""
        with self.transaction() as connection:
            connection.executemany(
                "INSERT INTO cells (experiment, cell, configuration, parameters, question, repeat, proof, status)"
                " VALUES (:experiment, :cell, :configuration, :parameters, :question, :repeat, :proof, 'waiting')"
                " ON CONFLICT (experiment, cell) DO UPDATE SET configuration = excluded.configuration, proof ="
                " excluded.proof, status = iif(cells.proof = excluded.proof, cells.status, 'waiting')",
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

    def claim(self, name: str, cells: Iterable[str], owner: str, alive: Callable[[str], bool]) -> list[str]:
        """Take those of these cells that are free and have not ended."""
        mine = []
        for cell in cells:
            rows = self.rows("SELECT status, owner FROM cells WHERE experiment = ? AND cell = ?", (name, cell))
            status, holder = rows[0]["status"], rows[0]["owner"]
            if status in ("done", "failed") or (status == "running" and holder and alive(holder)):
                continue
            sql = (
                "UPDATE cells SET status = 'running', owner = ?"
                " WHERE experiment = ? AND cell = ? AND status = ? AND owner IS ?"
            )
            if self.write(sql, (owner, name, cell, status, holder)) == 1:
                mine.append(cell)
        return mine

    def release(self, name: str, owner: str) -> None:
        """Let others run the cells that this process has taken and not ended."""
        sql = "UPDATE cells SET status = 'waiting', owner = NULL WHERE experiment = ? AND owner = ?"
        self.write(sql, (name, owner))

    def retry_failed(self, name: str) -> None:
        """Let cells that have failed run again: their server may be back."""
        self.write("UPDATE cells SET status = 'waiting' WHERE experiment = ? AND status = 'failed'", (name,))

    def totals(self, name: str) -> Json:
        """Return how many cells there are, how many have ended, and the tokens they took."""
        sql = (
            "SELECT count(*) AS cells, coalesce(sum(status IN ('done', 'failed')), 0) AS ended,"
            " coalesce(sum(tokens), 0) AS tokens FROM cells WHERE experiment = ?"
        )
        return self.rows(sql, (name,))[0]

    def end(self, name: str, cell: str, **columns: Any) -> None:
        """Note what came of a cell, once."""
        columns = {**columns, "owner": None, "ended_at": _now()}
        assignments = ", ".join(f"{column} = ?" for column in columns)
        self.write(f"UPDATE cells SET {assignments} WHERE experiment = ? AND cell = ?", (*columns.values(), name, cell))

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
