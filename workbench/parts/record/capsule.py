"""A recorded run in a zip file, to be looked at, replayed and forked in another workspace.

Nothing of it is executed when it is read: values are decoded by the classes of the graph that reads it, and no others.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Base64Bytes, TypeAdapter
from typing_extensions import TypedDict

from workbench.errors import CapsuleError
from workbench.models.wire import secrets

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph
    from workbench.parts.record.run import GraphRun

CONTENTS = "run.json"
LIMIT = 128 * 2**20
"""Bytes that are read of a capsule."""


class _Contents(TypedDict):
    input: Base64Bytes
    result: Base64Bytes
    options: dict[str, Any]
    effects: list[tuple[dict[str, Any], Base64Bytes]]
    answers: list[tuple[str, Base64Bytes, Base64Bytes, str]]
    checkpoints: list[tuple[str, str, str | None, str | None, Base64Bytes, Base64Bytes | None]]
    writes: list[tuple[str, str, str, str, int, str, str | None, Base64Bytes | None]]


_COLUMNS = {
    "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
    "writes": "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value",
}
"""What is sealed of a thread that the run continues: LangGraph's checkpoints up to the one at which it began."""


def write_capsule(run: GraphRun, path: str | Path) -> Path:
    """Write a run that is done into a zip file; the same run gives the same bytes.

    Raises:
        CapsuleError: it is not done, or holds a secret of the settings.
    """
    store, row, target = run.agent._runs.store, run.row, Path(path).expanduser()
    if run.status != "done":
        raise CapsuleError(f"Run {run.run_id} is {run.status}: only a run that is done can be sealed.")
    effects, answers = store.effects(run.run_id), store.answers(run.run_id)
    contents = {
        "input": row["input"],
        "result": row["result"],
        "options": {**row["options"], "label": row["options"].get("label", run._label)},
        "effects": effects,
        "answers": [(a["question"], a["asked"], a["answer"], a["who"]) for a in answers],
        **{table: _rows_before(run, table) for table in _COLUMNS},
    }
    text = TypeAdapter(_Contents).dump_json(contents, indent=1)  # type: ignore[arg-type]
    kept = [cell for table in _COLUMNS for r in contents[table] for cell in r if isinstance(cell, bytes)]
    values = b"".join([text, row["input"], row["result"], *(value for _, value in effects), *kept])
    if any(secret.encode() in values for secret in secrets(run.agent._wb.settings)):
        raise CapsuleError(f"Run {run.run_id} holds a secret of the settings, and is not sealed.")
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(zipfile.ZipInfo(CONTENTS), text, zipfile.ZIP_DEFLATED)  # dated 1980, whatever the clock says
    return target


def read_capsule(agent: RecordedGraph, path: str | Path) -> GraphRun:
    """Keep the run of a capsule under a new id, and return it.

    Raises:
        CapsuleError: the file is not a capsule of this graph, or is damaged; nothing was kept.
    """
    store = agent._runs.store
    try:
        with zipfile.ZipFile(Path(path).expanduser()) as archive, archive.open(CONTENTS) as file:
            text = file.read(LIMIT + 1)  # a size in a header may lie
        if len(text) > LIMIT:
            raise ValueError(f"it unpacks to more than {LIMIT:,} bytes")
        contents: _Contents = TypeAdapter(_Contents).validate_json(text)
        for effect, value in contents["effects"]:
            agent._effect(effect, value)
        answers = [value for _, question, answer, _ in contents["answers"] for value in (question, answer)]
        for value in (contents["input"], contents["result"], *answers):
            agent._load(value)
        packed = [(c[3], c[4]) for c in contents["checkpoints"]] + [(w[6], w[7]) for w in contents["writes"]]
        for kind, content in packed:
            agent._serde.loads_typed((kind or "null", content or b""))
    except (OSError, zipfile.BadZipFile, EOFError, LookupError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CapsuleError(f"{path} is refused: {reason}. Nothing was kept.") from None
    options = {**contents["options"], "mode": "fork", "sources": []}
    run_id = store.create(agent.name, "", options, contents["input"], agent._owner)
    if before := options.get("before"):
        store.set_options(run_id, {**options, "before": [run_id, before[1]]})
        with agent._saver.cursor() as cursor:
            for table, names in _COLUMNS.items():
                places = ", ".join("?" * (1 + len(names.split(", "))))
                statement = f"INSERT INTO {table} (thread_id, {names}) VALUES ({places})"
                cursor.executemany(statement, [(run_id, *kept) for kept in contents[table]])  # type: ignore[literal-required]
    for effect, value in contents["effects"]:
        store.save_effect(run_id, effect, value)
    for answer in contents["answers"]:
        store.save_answer(run_id, answer)
    store.end(run_id, "done", result=contents["result"])
    return agent.run(run_id)


def _rows_before(run: GraphRun, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of the thread that a run continues, up to where it began; nothing of a thread of its own."""
    thread, checkpoint = run.row["options"].get("before", ["", ""])
    sql = f"SELECT {_COLUMNS[table]} FROM {table} WHERE thread_id = ? AND checkpoint_id <= ? ORDER BY 1, 2, 3, 4, 5"
    with run.agent._saver.cursor(transaction=False) as cursor:
        return [tuple(row) for row in cursor.execute(sql, (thread, checkpoint))]
