"""A recorded run in a zip file, to be looked at, replayed and forked in another workspace.

Nothing of it is executed when it is read: values are decoded by the classes of the graph that reads it, and no others.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import CapsuleError
from workbench.futures.capsule import Contents, exported, read
from workbench.models.wire import secrets
from workbench.records.store import new_run_id
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.parts.record.agent import RecordedGraph
    from workbench.parts.record.run import GraphRun


def write_capsule(run: GraphRun, path: str | Path) -> Path:
    """Write a run that is done into a zip file; the same run gives the same bytes.

    Raises:
        CapsuleError: it is not done, or holds a secret of the settings.
    """
    if run.status != "done":
        raise CapsuleError(
            f"Run {run.run_id} is {run.status}: only a run that is done can be sealed."
        )
    settings = run.agent._wb.settings
    values = b"".join(map(base64.b64decode, _values(run._store.contents(run.run_id))))
    if any(secret.encode() in values for secret in secrets(settings)):
        raise CapsuleError(f"Run {run.run_id} holds a secret of the settings, and is not sealed.")
    return exported(run, Path(path), settings)


def read_capsule(agent: RecordedGraph, path: str | Path) -> GraphRun:
    """Keep the run of a capsule under a new id, and return it.

    Raises:
        CapsuleError: the file is not a capsule of this graph, or is damaged; nothing was kept.
    """
    run_id = new_run_id()
    contents = read(
        Path(path).expanduser(),
        Contents,
        lambda contents: [agent.load_text(text) for text in _values(contents)],
    )
    row = contents["run"]
    options = row["options"] | {"tape": {"mode": "fork", "sources": []}}
    contents["run"] = {**row, "options": options, "session_id": "", "graph": agent.name}
    agent.store.bring(run_id, contents)
    return agent.run(run_id)


def _values(contents: Json) -> Iterator[str]:
    """Yield everything in a capsule that a graph's own classes decode."""
    yield contents["run"]["options"]["input"]
    yield contents["run"]["result"]["state"]
    yield from (effect["value"] for page in contents["tapes"] for effect in page["effects"])
    yield from (line["decision"]["answer"] for line in contents["decisions"])
    yield from (line["event"]["streamed"] for line in contents["events"])
