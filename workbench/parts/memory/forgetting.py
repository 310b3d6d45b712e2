"""Forgetting for good: one memory, one exchange, one conversation, or all of a person.

A memory goes with the versions that it replaced, the exchange that says it, and whatever says it word for word. A run
goes whole, with its tape and its checkpoints, where its exchange goes, where it was made
from such a run, or where an id of what goes is in its tape: one with words cut out of its tape would replay to
something that never was. The exchange of a run that only had it stays, unless the answer quotes it.

Runs go first, and the rows of the store last, in one transaction: after a kill the same call continues.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.errors import RunError, UnknownRun, WorkbenchError, WorkspaceBusy, shown
from workbench.parts.memory.service import find_store
from workbench.records.conversations import SqliteConversations
from workbench.records.lease import taken
from workbench.records.sqlite import PATIENCE_S, translate_errors
from workbench.state import Data
from workbench.text import clean, detect_language, fold, sentences
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.labels import labels_for
from workbench.views.render import Shown

if TYPE_CHECKING:
    from workbench.session import Workbench

Kind = Literal["memory", "exchange", "conversation", "user"]


@dataclass(frozen=True)
class Forgotten(Shown):
    """What was forgotten, or with ``dry_run`` would be.

    Attributes:
        kind: ``memory``, ``exchange``, ``conversation`` or ``user``.
        done: whether it is gone.
        counts: how many went: ``memories``, ``messages``, ``summaries``, ``feedback``, ``runs``.
        runs: ids of every run that goes, newest first.
        dependents: those of them that only had it from memory, by their tapes.
        left: names of labels that say what cannot be reached from here.
    """

    kind: Kind
    done: bool
    counts: Mapping[str, int]
    runs: tuple[str, ...]
    dependents: tuple[str, ...]
    left: tuple[str, ...]
    message: str = ""

    def blocks(self) -> list[Block]:
        """Return what goes, which runs, and what cannot be reached."""
        labels = labels_for(self.message)
        title = labels("forgot_done" if self.done else "forgot_would", what=labels(f"forgot_{self.kind}"))
        rows = [(labels(f"forgot_{name}"), str(count)) for name, count in self.counts.items() if count]
        rows = rows or [(labels("forgot_nothing"), "")]
        blocks: list[Block] = [clipped(title, columns(labels, "kb_what", "kb_count:number"), rows)]
        if self.runs:
            reasons = {True: labels("forgot_had_it"), False: labels("forgot_said_it")}
            runs = [(run_id, reasons[run_id in self.dependents]) for run_id in self.runs]
            blocks.append(clipped(labels("forgot_these_runs"), columns(labels, "run:code", "forgot_why"), runs))
        return [*blocks, Lines(tuple(((labels(name), "dim"),) for name in self.left))]


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
        memory: the id of a memory.
        message: the id of a message: it goes with its question or answer, and what was noted of it.
        session: the conversation, with what was noted there and the runs that were made from its runs.
        user: whose; None means the user that ``ask`` takes when none is named. Alone: everything of theirs.
        dry_run: only say what would go.

    Raises:
        WorkbenchError: nothing, or more than one thing, was named; or nothing is known under that id.
        RunError: a run of the person is at work, and may have read it.
        WorkspaceBusy: another process reads the database all the time.
    """
    kinds: dict[Kind, str | None] = {"memory": memory, "exchange": message, "conversation": session}
    targets = [(kind, clean(str(value))) for kind, value in kinds.items() if value is not None]
    if len(targets) > 1 or not (targets or user is not None):
        raise WorkbenchError("Name one thing to forget: a memory, a message, a session, or a user alone.")
    who = "default" if user is None else clean(str(user))
    kind, what = targets[0] if targets else ("user", who)
    forgetting = _Forgetting(wb, kind, what, who)
    report = forgetting.look()
    if kind in ("memory", "exchange") and not any(report.counts.values()):
        raise WorkbenchError(f"There is no {kind} {shown(what)} of {shown(who)} here, and no run that had it.")
    if dry_run:
        return report
    with taken(wb.path, wait=True):
        forgetting.remove()
        forgetting.remove()  # who read it meanwhile
    for name in ("workbench.db", "checkpoints.db"):
        rewrite(wb.path / name)
    return replace(report, done=True)


class _Candidate(NamedTuple):
    """A run of the person.

    Attributes:
        sources: the runs that it was made from, or brought in as.
        ids: every text in quotes in what is kept of it: what it recalled, and whose report it took over, among them.
        summarized: of how many messages of its conversation it had a summary.
        text: all that is kept of it, folded.
    """

    run_id: str
    conversation_id: str
    messages: frozenset[str]
    sources: frozenset[str]
    ids: frozenset[str]
    summarized: float
    text: str


class _Forgetting:
    """One forgetting; what was found stays known while it is removed."""

    def __init__(self, wb: Workbench, kind: Kind, what: str, who: str):
        self._wb, self._work, self._store, self._kind, self._who = wb, wb._work, find_store(wb), kind, who
        self._ids, self._conversations = set[str](), set[str]()
        self._runs, self._saying = set[str](), set[str]()
        """The runs that go, and those of them of which the exchange goes too."""
        self._contents, self._sentences = set[str](), set[str]()
        """The words of memories, and the sentences of the person, that are forgotten."""
        self._first: dict[str, int] = {}
        """The place in its conversation of the first message that goes."""
        if kind == "conversation":
            self._conversations.add(self._store.conversation_id(who, what))
        elif kind != "user":
            self._ids.add(what)

    def look(self) -> Forgotten:
        """Find everything that belongs to it now."""
        store, who = self._store, self._who
        talks = {conversation: store.list_messages(conversation) for conversation in store.conversations(who)}
        every = {message["id"]: message for messages in talks.values() for message in messages}
        texts = {message_id: fold(message["content"]) for message_id, message in every.items()}
        notes, runs = store.memories(who, ended=True), list(self._candidates())
        exchanges = store.episodes(user_id=who)
        summaries = [row for conversation in talks if (row := store.get_summary(conversation))]
        if self._kind == "user":
            self._conversations |= {*talks, *(run.conversation_id for run in runs)}
        size = (-1, -1, -1)
        while size != (size := (len(self._ids), len(self._conversations), len(self._runs))):
            for note in reversed(notes):
                self._add_note(note)
            for message in every.values():
                self._add_message(message, texts[message["id"]])
            for exchange in exchanges:
                first, second = exchange["user_message_id"], exchange["assistant_message_id"]
                together, question, answer = {exchange["id"], first, second}, texts[first], texts[second]
                if self._ids & together or any(text in answer and text not in question for text in self._sentences):
                    self._ids |= together
            for conversation, messages in talks.items():
                gone = [place for place, message in enumerate(messages) if message["id"] in self._ids]
                self._first.update({conversation: gone[0]} if gone else {})
            for run in runs:
                self._add_run(run)
        forgotten_summaries = [
            row
            for row in summaries
            if self._covers(row["conversation_id"], row["covered_message_count"])
            or _within(self._contents, row["summary"])
        ]
        self._feedback = [
            row["id"]
            for row in store.list_feedback(user_id=who)
            if row["message_id"] in self._ids or _within(self._contents, str(row))
        ]
        self._summaries = [row["id"] for row in forgotten_summaries]
        self._going = [run for run in runs if run.run_id in self._runs]
        messages = [message for message in every.values() if message["id"] in self._ids]
        forgotten = [note for note in notes if note["id"] in self._ids]
        run_ids = tuple(run.run_id for run in self._going)
        text = next((row["content"] for row in (*forgotten, *messages)), "")
        server = not isinstance(store.conversations_store, SqliteConversations)
        return Forgotten(
            kind=self._kind,
            done=False,
            counts={
                "memories": len(forgotten),
                "messages": len(messages),
                "summaries": len(forgotten_summaries),
                "feedback": len(self._feedback),
                "runs": len(run_ids),
            },
            runs=run_ids,
            dependents=tuple(run_id for run_id in run_ids if run_id not in self._saying),
            left=("forgot_elsewhere", *(["forgot_server"] if server else [])),
            message="忘" if detect_language(text) == "zh" else "",
        )

    def _add_note(self, note: Data) -> None:
        """Add a memory that goes; of a memory that was named, what it replaced and what says the same goes too."""
        if self._kind == "memory":
            goes = note["id"] in self._ids or note["replaced_by"] in self._ids
            if goes or _within(self._contents, note["content"]):
                self._ids |= {note["id"], note["message_id"]} - {""}
                self._contents |= _searchable([note["content"]])
        elif self._kind == "user" or note["message_id"] in self._ids or note["conversation_id"] in self._conversations:
            self._ids.add(note["id"])

    def _add_message(self, message: Data, text: str) -> None:
        is_named = message["id"] in self._ids or message["conversation_id"] in self._conversations
        if is_named or any(wanted in text for wanted in self._contents):
            self._ids.add(message["id"])
            if message["role"] == "user":
                # How much of a sentence a quotation keeps.
                self._sentences |= _searchable(sentence[:250] for sentence in sentences(message["content"]))

    def _covers(self, conversation_id: str, count: float) -> bool:
        """Return whether a summary of so many messages of a conversation covers one that goes."""
        return self._first.get(conversation_id, count) < count

    def _add_run(self, run: _Candidate) -> None:
        derived = bool(run.sources & self._saying)
        if derived or run.conversation_id in self._conversations or run.messages & self._ids:
            if derived and self._conversations:
                self._conversations.add(run.conversation_id)
            self._saying.add(run.run_id)
            self._runs.add(run.run_id)
            self._ids |= run.messages
        elif (
            run.ids & (self._ids | self._conversations | self._runs)
            or self._covers(run.conversation_id, run.summarized)
            or any(text in run.text for text in self._contents)
        ):
            self._runs.add(run.run_id)

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield the runs of the person."""
        runs = self._work.durable.runs
        for run_id in runs.ids(-1, user_id=self._who):
            with suppress(UnknownRun):  # another process removes it meanwhile
                contents = runs.contents(run_id)
                recalled = any((line["kind"], line["name"]) == ("memory", "recall") for line in contents["tape"])
                state = {} if recalled else self._work.values(run_id)  # its tape was pruned, or has just begun
                yield self._candidate({**contents, "state": state, "drafts": runs.drafts(run_id)})

    def _candidate(self, contents: Data) -> _Candidate:
        row, text = contents["run"], json.dumps(contents, ensure_ascii=False, default=str)
        run_id, conversation_id = row["run_id"], row["conversation_id"]
        values = {(line["kind"], line["name"]): line["value"] for line in contents["tape"]}
        begun, recalled = (values.get(name) or {} for name in (("begin", "ids"), ("memory", "recall")))
        remembered = ((row["result"] or contents.get("state")) or {}).get("remembered") or []
        all_messages = math.inf if any(part["part"] == "summary" for part in remembered) else 0
        sources = {*(row["options"].get("tape") or {}).get("sources", ()), begun.get("run_id", run_id)}
        message_ids = [self._store.message_id(conversation_id, f"{run_id}:{role}") for role in ("user", "assistant")]
        return _Candidate(
            run_id=run_id,
            conversation_id=conversation_id,
            messages=frozenset(message_ids),
            sources=frozenset(sources - {run_id}),
            ids=frozenset(re.findall(r'"([^"\s]{8,100})"', text)),
            summarized=recalled["summary"]["covered_message_count"] if recalled.get("summary") else all_messages,
            text=fold(text),
        )

    def remove(self) -> None:
        """Delete what is found now; no run of the person may be at work.

        Raises:
            RunError: one is.
        """
        self.look()
        run_ids = self._work.durable.runs.ids(-1, user_id=self._who, status="running")
        if at_work := [run_id for run_id in run_ids if self._work.status(run_id) == "running"]:
            raise RunError(
                f"Run {', '.join(at_work)} is at work, and may have read it. Wait for its end or cancel it, and forget "
                "it again."
            )
        self._work.remove(*(run.run_id for run in self._going))
        self._store.forget({*self._ids, *self._summaries}, self._conversations, self._feedback)
        self._wb._cleared()


def _searchable(texts: Iterator[str] | list[str]) -> set[str]:
    """Return the texts that are long enough to be looked for word for word, folded."""
    bare = [fold(text).strip(" .,;:!?'\"“”。，；：！？") for text in texts]
    # Characters of a text that is looked for word for word; a Chinese one counts double.
    return {text for text in bare if len(text) + sum(not c.isascii() for c in text) >= 8}


def _within(texts: set[str], text: str) -> bool:
    folded = fold(text) if texts else ""
    return any(wanted in folded for wanted in texts)


def rewrite(path: Path) -> None:
    """Write a database again, and empty its log.

    SQLite overwrites what it deletes, but not what stood in a page before rows of it moved to others.

    Raises:
        WorkspaceBusy: another process reads it all the time.
        WorkspaceFull: there is no room for it a second time; what was to go is deleted, and forgetting again ends it.
    """
    if not path.exists():
        return
    with translate_errors(path), closing(sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise WorkspaceBusy(f"{path} is read by another process all the time. Close it there, and try again.")
