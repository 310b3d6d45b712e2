"""A recorded run in a zip file, to be looked at, replayed and forked in another workspace.

Nothing of it is executed when it is read: values are decoded by the classes of the graph that reads it, and no others.
"""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from workbench.errors import CapsuleError
from workbench.models.wire import secrets

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph
    from workbench.parts.record.run import GraphRun

CONTENTS = "run.json"
LIMIT = 128 * 2**20
"""Bytes that are read of a capsule."""


class _Value(TypedDict):
    type: str
    content: str


class _Effect(TypedDict):
    effect: dict[str, Any]
    value: _Value


class _Answer(TypedDict):
    question: str
    asked: str
    answer: str
    who: str


class _Contents(TypedDict):
    graph: str
    input: str
    status: str
    error: str | None
    result: str
    options: dict[str, Any]
    effects: list[_Effect]
    answers: list[_Answer]


def write_capsule(run: GraphRun, path: str | Path) -> Path:
    """Write a run that is done into a zip file; the same run gives the same bytes.

    Raises:
        CapsuleError: it is not done, continues another run's thread, or holds a secret of the settings.
    """
    store, row = run.agent._runs.store, run.agent._runs.store.run(run.run_id)
    if run.status != "done":
        raise CapsuleError(f"Run {run.run_id} is {run.status}: only what is done can be sealed.")
    if "before" in row["options"]:
        raise CapsuleError(f"Run {run.run_id} continues a thread, and its beginning would be missing elsewhere.")
    contents: _Contents = {
        "graph": row["graph"],
        "input": _text(row["input"]),
        "status": row["status"],
        "error": row["error"],
        "result": _text(row["result"]),
        "options": {**row["options"], "sources": []},
        "effects": [
            {"effect": effect, "value": {"type": value[0], "content": _text(value[1])}}
            for effect, value in store.effects(run.run_id)
        ],
        "answers": [
            {**answer, "asked": _text(answer["asked"]), "answer": _text(answer["answer"]), "answered_at": ""}
            for answer in store.answers(run.run_id)
        ],
    }  # type: ignore[typeddict-item]
    values = [row["input"], row["result"], *(value[1] for _, value in store.effects(run.run_id))]
    text = json.dumps(contents, ensure_ascii=False, indent=1)
    for secret in secrets(run.agent._wb.settings):
        if secret in text or any(secret.encode() in value for value in values if value):
            raise CapsuleError(f"Run {run.run_id} holds a secret of the settings, and is not sealed.")
    target = Path(path).expanduser()
    with zipfile.ZipFile(target, "w") as archive:
        entry = zipfile.ZipInfo(CONTENTS)  # dated 1980: the bytes do not depend on the clock
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return target


def read_capsule(agent: RecordedGraph, path: str | Path) -> GraphRun:
    """Keep the run of a capsule under a new id, and return it.

    Raises:
        CapsuleError: the file is no capsule of a run of this graph, or is damaged; nothing was kept.
    """
    store = agent._runs.store
    try:
        with zipfile.ZipFile(Path(path).expanduser()) as archive, archive.open(CONTENTS) as file:
            content = file.read(LIMIT + 1)  # a size in a header may lie
        if len(content) > LIMIT:
            raise ValueError(f"it unpacks to more than {LIMIT:,} bytes")
        contents: _Contents = TypeAdapter(_Contents).validate_json(content)
        effects = [
            (effect["effect"], (effect["value"]["type"], _bytes(effect["value"]["content"])))
            for effect in contents["effects"]
        ]
        rows = [_unpacked(contents[name]) for name in ("input", "result")]  # type: ignore[literal-required]
        answers = [
            (answer["question"], _unpacked(answer["asked"]), _unpacked(answer["answer"]), answer["who"])
            for answer in contents["answers"]
        ]
        for value in [*rows, *(value for _, value in effects), *(value for answer in answers for value in answer[1:3])]:
            agent._load(value)
        for effect, value in effects:
            agent._effect(effect, value)
    except (OSError, zipfile.BadZipFile, EOFError, LookupError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CapsuleError(f"{path} is refused: {reason}. Nothing was kept.") from None
    options = {**contents["options"], "mode": "fork", "sources": []}
    run_id = store.create(agent.name, "", options, rows[0], agent._owner)
    for effect, value in effects:
        agent._store_effect(run_id, effect, value)
    for answer in answers:
        store.save_answer(run_id, *answer)
    store.end(run_id, contents["status"], contents["error"], rows[1])
    return agent.run(run_id)


def _text(content: bytes | None) -> str:
    return base64.b64encode(content or b"").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _unpacked(text: str) -> Any:
    from workbench.parts.record.store import unpacked

    return unpacked(_bytes(text) or None)
