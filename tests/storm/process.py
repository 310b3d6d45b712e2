"""What the processes of a storm do: begin or go on, answer what is asked, finish; and tell it line by line.

Each function here runs in a process of its own. What it tells reaches the watching process even when it is killed in
the next instant, since a line is one write into a pipe.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.storm.moments import Failpoints, Moment, Told, line
from tests.storm.scenarios import Adding, Keeping, Question, Talk
from workbench.errors import KnowledgeError, WorkbenchError
from workbench.graphs import execute
from workbench.knowledge.indexes.chroma import Chroma
from workbench.knowledge.indexes.store import Place
from workbench.records.tape import canonical
from workbench.session import Workbench

Tell = Callable[[dict[str, Any]], None]


def ask(pipe: Told, folder: str, scenario: Question, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Carry the scenario's run on, from wherever it stands, to its end.

    Tells ``begun``, ``run``, ``step``, ``call`` and ``done`` with the canonical bytes.
    """
    tell, points = _prepared(pipe, moment)

    _count_calls(tell)
    with Workbench.open(folder, **options) as wb:
        tell({"begun": True})
        found = [run for run in wb.runs.list() if run.message == scenario.message]
        run = found[0] if found else wb.start(scenario.message, kb="film", review=scenario.review, session="storm")
        tell({"run": run.run_id})
        while (status := run.status) != "done":
            if status in ("failed", "cancelled"):
                tell({"failed": f"{status}: {run.error}"})
                return
            if status == "interrupted":
                run.resume(wait=False)
            elif status == "paused":
                points.heard("paused")
                asked = run.review
                run.answer_review(scenario.answer(asked["review_id"]), wait=False)
                points.heard("answered")
            _listen(run, points, tell)
            run.wait()
        document = {**run.to_dict(), "evidence": run.evidence, "merged": run.state["merged"]}
        tell({"done": canonical(document).decode(), "answer": run.answer})


def talk(pipe: Told, folder: str, scenario: Talk, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Hold the conversation from wherever it stands; without a moment to be killed at, to its end. Tells ``done``."""
    tell, points = _prepared(pipe, moment)

    with Workbench.open(folder, **options) as wb:
        tell({"begun": True})
        known = {run.message: run for run in wb.runs.list(2 * scenario.turns)}
        for number in range(1, scenario.turns + 1 - (moment is not None)):
            message = scenario.message(number)
            run = known.get(message) or wb.start(message, kb="general", session="storm")
            if run.status == "interrupted":
                run.resume(wait=False)
            run.wait()
            if run.status != "done":
                tell({"failed": f"turn {number}: {run.status}: {run.error}"})
                return
            points.heard("turn")
    tell({"done": "held"})


def _listen(run: Any, points: Failpoints, tell: Tell) -> None:
    for event in run.events():
        if "retrieval_step_done" in event:
            done = event["retrieval_step_done"]
            tell({"step": [done["step_id"], done["attempt"]]})
        name = event.get("status") or next(iter(event))
        points.heard(name)


def _count_calls(tell: Tell) -> None:
    """Tell of every attempt that really runs a tool."""

    attempt = execute.attempt

    async def told(task: Any, step: Any, context: Any) -> Any:
        tell({"call": [step.step_id, task["attempt"]]})
        return await attempt(task, step, context)

    execute.attempt = told


def add(pipe: Told, folder: str, scenario: Adding, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Add the scenario's documents, or make the base anew, and tell ``done``."""
    tell, points = _prepared(pipe, moment)

    films = Path(folder) / "films.jsonl"
    with Workbench.open(folder, **options) as wb:
        tell({"begun": True})
        if films.exists():
            wb.add_knowledge("film", [films], lambda stage, *_: points.heard(stage))
        else:
            wb.knowledge.rebuild("film", progress=lambda stage, *_: points.heard(stage))
        tell({"done": "made"})


def look(pipe: Told, folder: str, scenario: Adding, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Tell what a reader finds: the documents, none when there is no index yet, and a digest of each table."""
    tell, _ = _prepared(pipe, None)

    with Workbench.open(folder, **options) as wb, suppress(KnowledgeError):
        hits = wb.knowledge.get("film").search("meaning", "film", 10_000)
        tell({"found": sorted({chunk_id.split("#")[0] for chunk_id, _ in hits})})
        tell({"content": {name: _digest(rows) for name, rows in _content(Path(folder)).items()}})


def furnish(pipe: Told, folder: str, scenario: Keeping, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Make the workspace that the scenario works on, and tell ``done``."""
    tell, _ = _prepared(pipe, None)

    with Workbench.open(folder, **options) as wb:
        scenario.furnish(wb, Path(folder).parent)
    scenario.damage(Path(folder))
    tell({"done": "furnished"})


def keep(pipe: Told, folder: str, scenario: Keeping, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Do what the scenario is named for, and tell ``done``."""
    tell, _points = _prepared(pipe, moment)

    tell({"begun": True})
    with Workbench.open(folder, **options) as wb:
        if scenario.name.startswith("gc"):
            wb.gc(yes=True)
        elif "film" in wb.knowledge.names():
            wb.knowledge.remove("film")
    tell({"done": "kept"})


def tidy(pipe: Told, folder: str, scenario: Keeping, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Free once more, and tell ``done``."""
    tell, _ = _prepared(pipe, None)

    with Workbench.open(folder, **options) as wb:
        wb.gc(yes=True)
    tell({"done": "tidy"})


def read(pipe: Told, folder: str, scenario: Keeping, moment: Moment | None, options: Mapping[str, Any]) -> None:
    """Tell what a reader can read, ``{name: bytes}``, or that the workspace does not open."""
    tell, _ = _prepared(pipe, None)

    seen: dict[str, str] = {}
    try:
        with Workbench.open(folder, **options) as wb:
            for name in wb.knowledge.names():
                with suppress(WorkbenchError):
                    seen[f"base {name}"] = wb.knowledge.get(name).fingerprint()
            for run in wb.runs.list():
                with suppress(WorkbenchError):
                    seen[f"run {run.run_id}"] = canonical(run.to_dict()).decode()
    except WorkbenchError as error:
        tell({"closed": str(error)})
    tell({"seen": seen})


def _content(folder: Path) -> dict[str, list[Any]]:
    """What an index holds, by content: its tables without numbering, and what Chroma has of it."""

    tables = ["documents", "vectors", "words", "facts", "entities", "names", "relations"]
    home, content = folder / "knowledge" / "film", {}
    with sqlite3.connect(home / "index.db") as index:
        for table in [*tables, "mentions", "communities"]:
            rows = index.execute(f"SELECT * FROM {table}")
            content[table] = [tuple(str(value).replace(str(folder), "") for value in row) for row in rows]
        content["passages"] = index.execute("SELECT chunk_id, doc_id, position, text, vector FROM passages").fetchall()
        content["terms"] = index.execute(
            "SELECT chunk_id, title, names, body FROM terms JOIN passages ON number = terms.rowid"
        ).fetchall()
    index.close()
    with Chroma(Place(home / "chroma")) as chroma:
        got = chroma._collection.get(include=["metadatas", "embeddings"])
        content["chroma"] = [
            (i, m["key"], v.tobytes()) for i, m, v in zip(got["ids"], got["metadatas"], got["embeddings"], strict=True)
        ]
    return content


def _digest(rows: list[Any]) -> str:
    text = "\n".join(sorted(map(repr, rows)))
    return f"{len(rows)} rows, {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _prepared(pipe: Told, moment: Moment | None) -> tuple[Tell, Failpoints]:
    lock = threading.Lock()

    def tell(message: dict[str, Any]) -> None:
        with lock:
            os.write(pipe.fileno(), line(message))

    points = Failpoints(tell, moment)
    points.install()
    return tell, points
