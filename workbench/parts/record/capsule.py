"""A recorded run in a zip file, to be looked at, replayed and forked in another workspace.

Nothing of it is executed when it is read: values are decoded by the classes of the graph that reads it, and no others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from workbench.errors import CapsuleError
from workbench.futures.capsule import CONTENTS, Contents, read, zipped
from workbench.models.wire import secrets
from workbench.records.store import new_run_id
from workbench.records.writing import write_file
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph
    from workbench.parts.record.run import GraphRun


class _Answer(TypedDict):
    review_id: str
    asked: str
    answer: str
    who: str
    decided_at: str


class _GraphContents(Contents):
    decisions: list[_Answer]
    checkpoints: list[tuple[str, str, str | None, str, str]]
    writes: list[tuple[str, str, str, str, int, str, str]]


_COLUMNS = {
    "checkpoints": (*("checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "metadata"), "checkpoint"),
    "writes": (*("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel"), "value"),
}
"""What is sealed of a thread that the run continues: LangGraph's checkpoints up to the one at which it began."""


def write_capsule(run: GraphRun, path: str | Path) -> Path:
    """Write a run that is done into a zip file; the same run gives the same bytes.

    Raises:
        CapsuleError: it is not done, or holds a secret of the settings.
    """
    if run.status != "done":
        raise CapsuleError(f"Run {run.run_id} is {run.status}: only a run that is done can be sealed.")
    contents = run._store.contents(run.run_id) | {table: _rows_before(run, table) for table in _COLUMNS}
    contents["run"]["options"].setdefault("label", run._label)
    text = json.dumps(contents, ensure_ascii=False, indent=1)
    values = b"".join([text.encode(), *map(base64.b64decode, _values(contents))])
    if any(secret.encode() in values for secret in secrets(run.agent._wb.settings)):
        raise CapsuleError(f"Run {run.run_id} holds a secret of the settings, and is not sealed.")
    return write_file(path, zipped({CONTENTS: text}), kind=CapsuleError)


def read_capsule(agent: RecordedGraph, path: str | Path) -> GraphRun:
    """Keep the run of a capsule under a new id, and return it.

    Raises:
        CapsuleError: the file is not a capsule of this graph, or is damaged; nothing was kept.
    """
    file, run_id = Path(path).expanduser(), new_run_id()
    contents = read(file, _GraphContents, lambda contents: [agent.load_text(text) for text in _values(contents)])
    row = contents["run"]
    options = {"config": {}, "edits": {}, **row["options"], "mode": "fork", "sources": []}
    if "before" in options:
        options["before"] = [run_id, options["before"][1]]
        with agent._saver.cursor() as cursor:
            for table, columns in _COLUMNS.items():
                places = ", ".join("?" * (2 + len(columns)))
                sql = f"INSERT INTO {table} (thread_id, {', '.join(columns)}, type) VALUES ({places})"
                for *cells, text in contents[table]:
                    kind, _, content = base64.b64decode(text).partition(b"\n")
                    cursor.execute(sql, (run_id, *cells, content, kind.decode()))
    contents["run"] = {**row, "options": options, "conversation_id": run_id, "session_id": agent.name}
    agent._runs.store.bring(run_id, contents)
    return agent.run(run_id)


def _values(contents: Json) -> Iterator[str]:
    """Yield everything in a capsule that a graph's own classes decode."""
    yield contents["run"]["options"]["input"]
    yield contents["run"]["result"]["state"]
    yield from (effect["value"] for effect in contents["tape"])
    yield from (decision[name] for decision in contents["decisions"] for name in ("asked", "answer"))
    yield from (line["event"]["streamed"] for line in contents["events"])
    yield from (cells[-1] for table in _COLUMNS for cells in contents[table])


def _rows_before(run: GraphRun, table: str) -> list[list[Any]]:
    """Return the rows of the thread that a run continues, up to where it began; nothing of a thread of its own."""
    before = run.row["options"].get("before", ["", ""])
    columns = ", ".join(_COLUMNS[table])
    sql = f"SELECT {columns}, type FROM {table} WHERE thread_id = ? AND checkpoint_id <= ? ORDER BY 1, 2, 3, 4, 5"
    with run.agent._saver.cursor(transaction=False) as cursor:
        rows = cursor.execute(sql, before).fetchall()
    return [
        [cell.decode() if isinstance(cell, bytes) else cell for cell in cells] + [_text(kind, content)]
        for *cells, content, kind in rows
    ]


def _text(kind: str | None, content: bytes | None) -> str:
    """Return what LangGraph keeps as one text, as ``RecordedGraph.load_text`` reads it."""
    return base64.b64encode((kind or "null").encode() + b"\n" + (content or b"")).decode()
