"""Forgetting for good: one memory, one exchange, one conversation, or all of a person.

Afterwards no file of the workspace holds it. A run that had it goes whole, with its tape, its checkpoints and the
capsules of it in the workspace: one with words cut out of its tape would replay to something that never was. What such
a run's conversation says stays, unless it speaks of what is forgotten.

A note of ids (no words) in the workspace says what is under way: forgetting the same again continues after a kill, with
these ids alone. What was said since then is reported, and stays: the name of a session may be used again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.errors import RunError, UnknownRun, WorkbenchError, WorkspaceBusy, shown
from workbench.parts.memory.service import find_store
from workbench.parts.memory.tracing import Candidate, Trace, TraceIds, candidates, strings
from workbench.records.conversations import SqliteConversations
from workbench.records.lease import taken
from workbench.records.sqlite import PATIENCE_S, translate_errors
from workbench.text import clean, detect_language
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.labels import Labels, labels_for
from workbench.views.render import Shown

if TYPE_CHECKING:
    from workbench.session import Workbench

Kind = Literal["memory", "exchange", "conversation", "user"]
_ROUNDS, _WAIT_S = 5, 0.05
"""How often to look for what came meanwhile; between two tries for a file that another process reads."""


@dataclass(frozen=True)
class Forgotten(Shown):
    """What was forgotten, or with ``dry_run`` would be.

    Attributes:
        kind: ``memory``, ``exchange``, ``conversation`` or ``user``.
        done: whether it is gone.
        counts: how many went: ``memories``, ``messages``, ``episodes``, ``summaries``, ``conversations``, ``feedback``,
            ``runs``, ``capsules``.
        runs: ids of every run that goes, newest first.
        dependents: those of them that only had it from memory, by their tapes.
        waiting: those of them that waited for a person.
        capsules: files in the workspace that go.
        left: what cannot be reached from here: the name of a label, and how many or which.
    """

    kind: Kind
    done: bool
    counts: Mapping[str, int]
    runs: tuple[str, ...]
    dependents: tuple[str, ...]
    waiting: tuple[str, ...]
    capsules: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    message: str = ""

    def blocks(self) -> list[Block]:
        """Return what goes, which runs, and what cannot be reached."""
        labels = labels_for(self.message)
        title = labels("forgot_done" if self.done else "forgot_would", what=labels(f"forgot_{self.kind}"))
        rows = [(labels(f"forgot_{name}"), str(count)) for name, count in self.counts.items() if count]
        rows = rows or [(labels("forgot_nothing"), "")]
        runs = [
            (entry, self._why(entry, labels), labels("paused") if entry in self.waiting else "") for entry in self.runs
        ]
        blocks: list[Block] = [clipped(title, columns(labels, "kb_what", "kb_count:number"), rows)]
        if runs:
            blocks.append(
                clipped(labels("forgot_these_runs"), columns(labels, "run:code", "forgot_why", "status"), runs)
            )
        if notes := [*(("forgot_file", entry) for entry in self.capsules), *self.left]:
            blocks.append(Lines(tuple(((labels(label, path=path), "dim"),) for label, path in notes)))
        return blocks

    def _why(self, run_id: str, labels: Labels) -> str:
        return labels("forgot_had_it" if run_id in self.dependents else "forgot_said_it")


def forget(
    wb: Workbench,
    *,
    memory: str | None = None,
    message: str | None = None,
    session: str | None = None,
    user: str | None = None,
    dry_run: bool = False,
) -> Forgotten:
    """Forget a memory, an exchange, a conversation, or a user, for good; or say what would go.

    Args:
        wb: the open workspace.
        memory: the id of a memory: it goes with the versions that it replaced, the exchange that says it, and every
            other one of the person in which it stands word for word.
        message: the id of a message: it goes with its question or answer, and what was noted of it.
        session: the conversation, with what was noted there and the runs that were made from its runs.
        user: whose; None means the user that ``ask`` takes when none is named. Alone: everything of theirs.
        dry_run: only say what would go.

    Raises:
        WorkbenchError: nothing, or more than one thing, was named; or nothing is known under that id.
        RunError: a run that has it is at work.
        WorkspaceBusy: another process reads on, or works with it; forgetting the same again continues from there.
    """
    kinds: dict[Kind, str | None] = {"memory": memory, "exchange": message, "conversation": session}
    targets = [(kind, clean(str(value))) for kind, value in kinds.items() if value is not None]
    if len(targets) > 1 or not (targets or user is not None):
        raise WorkbenchError("Name one thing to forget: a memory, a message, a session, or a user alone.")
    who = "default" if user is None else clean(str(user))
    kind, what = targets[0] if targets else ("user", who)
    forgetting = _Forgetting(wb, kind, what, who)
    report = forgetting.look()
    if kind in ("memory", "exchange") and not any(report.counts.values()) and not forgetting.begun:
        raise WorkbenchError(f"There is no {kind} {shown(what)} of {shown(who)} here, and no run that had it.")
    if dry_run:
        return report
    with taken(wb.path, wait=True):
        return forgetting.carry_out()


class _Forgetting:
    """One forgetting, from looking to the last byte."""

    def __init__(self, wb: Workbench, kind: Kind, what: str, who: str):
        self._wb, self._work = wb, wb._work
        self._store = find_store(wb)
        self._kind, self._what, self._who = kind, what, who
        named_so = hashlib.sha256(json.dumps([kind, what, who]).encode()).hexdigest()[:32]
        self._note = wb.path / f".forgetting-{named_so}.json"
        self._language = ""

    @property
    def begun(self) -> bool:
        """Return whether it was begun before, and not ended."""
        return self._note.exists()

    # looking

    def look(self) -> Forgotten:
        """Return everything that belongs to it, as it stands now."""
        self._traced = traced = TraceIds()
        runs = list(candidates(self._work, self._wb.path, self._who))
        trace = Trace(self._store, self._who, runs, self._kind == "memory")
        if self.begun:
            traced.add(self._note.read_text(encoding="utf-8"))
            trace.follow(traced)
        else:
            self._seed(trace)
            trace.widen(traced)
        return self._report(trace)

    def _seed(self, trace: Trace) -> None:
        traced = self._traced
        if self._kind == "user":
            traced.conversations |= {*trace.said, *(str(run.row["conversation_id"]) for run in trace.runs)}
            traced.memories |= {m["id"] for m in trace.memories}
        elif self._kind == "conversation":
            traced.conversations.add(self._store.conversation_id(self._who, self._what))
        else:
            (traced.memories if self._kind == "memory" else traced.messages).add(self._what)

    def _report(self, trace: Trace) -> Forgotten:
        traced = self._traced
        going = [run for run in trace.runs if run.run_id in traced.runs]
        self._going = [run for run in going if run.file is None]
        self._reading = [run for run in trace.runs if run.file is None and not run.told]
        self._capsules = [run for run in going if run.file is not None]
        erased = [m for m in trace.memories if m["id"] in traced.memories]
        messages = [m for talk in trace.said.values() for m in talk if m["id"] in traced.messages]
        texts = [m["content"] for m in (*erased, *messages)]
        self._language = self._language or "".join(texts[:1])
        feedback, summaries = self._feedback(trace), self._summaries(trace)
        traced.feedback |= set(feedback)
        traced.summaries |= set(summaries)
        ids = {entry: {m["id"] for m in talk} for entry, talk in trace.said.items()}
        counts = {
            "memories": len(erased),
            "messages": len(messages),
            "episodes": sum(entry["id"] in traced.messages for entry in trace.exchanges),
            "summaries": len(summaries),
            "conversations": sum(entry in traced.conversations and ids[entry] <= traced.messages for entry in ids),
            "feedback": len(feedback),
            "runs": len(self._going),
            "capsules": len({run.file for run in self._capsules}),
        }
        began = {m["message_id"] for m in erased} | {self._what}
        dependents = [run for run in self._going if run.had(traced) and not run.messages & began]
        return Forgotten(
            kind=self._kind,
            done=False,
            counts=counts,
            runs=tuple(run.run_id for run in self._going),
            dependents=tuple(r.run_id for r in dependents if r.row["conversation_id"] not in traced.conversations),
            waiting=tuple(run.run_id for run in self._going if self._stands(run) == "paused"),
            capsules=tuple(str(run.file) for run in self._capsules),
            left=(),
            message="忘" if detect_language(self._language) == "zh" else "",
        )

    def _stands(self, candidate: Candidate) -> str:
        """Return how a run stands; "" when another process has removed it since it was looked at."""
        try:
            return self._work.status(candidate.run_id)
        except UnknownRun:
            return ""

    def _summaries(self, trace: Trace) -> list[str]:
        traced, ids = self._traced, list[str]()
        for conversation in trace.said:
            if (row := self._store.get_summary(conversation)) is None:
                continue
            has = conversation in traced.conversations or conversation in traced.places
            has = has or trace.words.within([row["summary"]])
            if row["id"] in traced.summaries or (has and not self.begun):
                ids.append(str(row["id"]))
        return ids

    def _feedback(self, trace: Trace) -> list[str]:
        rows = self._store.list_feedback(user_id=self._who)
        gone = self._traced.messages | self._traced.feedback
        return [f["id"] for f in rows if {f["message_id"], f["id"]} & gone or trace.words.within(strings(dict(f)))]

    # doing

    def carry_out(self) -> Forgotten:
        """Forget what is found now, and who reads it meanwhile; what is said meanwhile is counted, and stays."""
        report = self.look()
        for _ in range(_ROUNDS):
            self._must_rest()
            self._write_note()
            self._remove()
            self._read_by()
            if not any(self.look().counts.values()):
                break
        else:
            raise WorkspaceBusy(
                "It is read as fast as it is forgotten. Stop the runs that read it, and forget it again."
            )
        for name in ("workbench.db", "checkpoints.db"):
            if (self._wb.path / name).exists():
                scrub(self._wb.path / name)
        left = self._left()
        for note in (self._note.with_suffix(".new"), self._note):
            note.unlink(missing_ok=True)
        if since := sum(self.look().counts.values()):
            left.append(("forgot_since", str(since)))
        return Forgotten(**{**vars(report), "done": True, "left": tuple(left)})

    def _must_rest(self) -> None:
        """No run that has it may be at work."""
        at_work = [c.run_id for c in self._going if self._stands(c) == "running"]
        if at_work:
            kind = WorkspaceBusy if self.begun else RunError
            raise kind(
                f"Run {', '.join(at_work)} is at work with it. Wait for its end or cancel it, and forget it again."
            )

    def _write_note(self) -> None:
        fresh = self._note.with_suffix(".new")
        with translate_errors(fresh), fresh.open("w", encoding="utf-8") as file:
            file.write(self._traced.dumps())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._note)

    def _remove(self) -> None:
        for candidate in self._capsules:
            _remove_capsule(candidate)
        traced = self._traced
        self._store.forget(
            memories=traced.memories,
            messages=traced.messages,
            conversations=traced.conversations,
            summaries=traced.summaries,
            feedback=traced.feedback,
        )
        self._work.remove(*(candidate.run_id for candidate in self._going))
        self._wb._cleared()

    def _read_by(self) -> None:
        """Wait for runs that may have read it before it was gone, until their tapes say whether they have."""
        until = time.monotonic() + PATIENCE_S
        self.look()
        early = {c.run_id for c in self._reading}  # what begins from now on finds nothing
        while reading := [c.run_id for c in self._reading if c.run_id in early and self._stands(c) == "running"]:
            self.look()
            if time.monotonic() > until:
                raise WorkspaceBusy(
                    f"Run {', '.join(reading)} may have it. Wait for its end or cancel it, and forget it again."
                )
            time.sleep(_WAIT_S)

    def _left(self) -> list[tuple[str, str]]:
        """Return what may hold it, and is not the workspace's to delete."""
        left = [("forgot_elsewhere", "")]
        if not isinstance(self._store.conversations_store, SqliteConversations):
            left.append(("forgot_server", ""))
        return left


def scrub(path: Path) -> None:
    """Rewrite a database without what was deleted, and empty its log.

    Raises:
        WorkspaceBusy: another process reads it all the time.
    """
    until = time.monotonic() + PATIENCE_S
    with translate_errors(path), closing(sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > until:
                raise WorkspaceBusy(f"{path} is read by another process all the time. Close it there, and try again.")
            time.sleep(_WAIT_S)


def _remove_capsule(candidate: Candidate) -> None:
    assert candidate.file is not None
    candidate.file.unlink(missing_ok=True)
