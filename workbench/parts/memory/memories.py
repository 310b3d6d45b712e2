"""``wb.memory``: what is remembered of people and of their conversations, seen, searched, corrected and forgotten.

Nothing is overwritten: an edit ends a memory and puts another in its place, so that what was known can be seen
again. The store is ``memory/store.py``; this is its face for a person, a script and an agent.
"""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workbench.errors import (
    ModelError,
    RunError,
    UnknownRun,
    WorkbenchError,
    WorkspaceBusy,
    shown,
)
from workbench.models.embeddings import text_model
from workbench.parts.memory.reading import read_note
from workbench.parts.memory.recall import find_recalling, find_store, word_share
from workbench.parts.memory.store import Memory, core_memory
from workbench.parts.memory.views import Rows, found_blocks, known_blocks
from workbench.records.lease import taken
from workbench.records.sqlite import PATIENCE_S, translate_errors
from workbench.records.tape import digest
from workbench.records.writing import write_file
from workbench.runs.stored import tape_sources
from workbench.session import Workbench
from workbench.state import Data, Json, pick
from workbench.text import clean, detect_language, fold, sentences
from workbench.views.blocks import Block, Lines, clipped, columns
from workbench.views.labels import labels_for
from workbench.views.render import Shown

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class MemoryView(Shown):
    """What is known of a person: shows itself, and is data by ``to_dict`` and ``to_frame``.

    Attributes:
        user: of whom.
        memories: rows of the store, each with the ``session``, ``turn`` and words (``said``) from which it is.
        summaries: of one conversation, or of all of them, in words.
    """

    user: str
    memories: list[Any]
    summaries: list[Json]

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return what is known, by which the language of the labels is chosen."""
        return " ".join(row["content"] for row in self.memories)

    @property
    def core(self) -> Json:
        """Core memory: ``persona``, and ``human`` with ``name``, ``preferences``, ``current_intent`` and ``facts``."""
        return core_memory(row for row in self.memories if not row["ended_at"])

    def to_dict(self) -> Json:
        """Return all of it as JSON."""
        names = ("user", "core", "memories", "summaries")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per memory."""
        import pandas

        return pandas.DataFrame(self.memories)

    def blocks(self) -> list[Block]:
        """Tables of it."""
        return [*known_blocks(self.to_dict(), labels_for(self.message))]

    __repr__ = Shown.__str__


class Memories:
    """What is remembered in a workspace; ``wb.memory``. ``user`` is whose, in every method.

    The three tools of an agent are methods too: ``core_memory_update``, ``archival_memory_insert`` and
    ``archival_memory_search``.
    """

    def __init__(self, wb: Any):
        self._wb = wb
        self._recalling = find_recalling(wb)
        self._store = self._recalling.store

    # looking

    def view(
        self, user: str = "default", *, session: str | None = None, ended: bool = False
    ) -> MemoryView:
        """Return what is known of a person, each with its source, author and time.

        Args:
            user: of whom.
            session: only what one conversation brought; and its summary.
            ended: with what does not hold any more, and why.
        """
        who = clean(str(user))
        rows = [
            {**m, **self._store.source(m["message_id"])}
            for m in self._store.memories(who, ended=ended)
        ]
        talks = self._store.conversations(who)
        if session is not None:
            conversation_id = self._store.conversation_id(who, clean(session))
            rows = [row for row in rows if row["conversation_id"] == conversation_id]
            talks = {conversation_id: session}
        by_session = {
            name: self._store.get_summary(conversation_id)
            for conversation_id, name in talks.items()
        }
        summaries = [
            {**row, "session_id": name, "text": row["summary"]}
            for name, row in by_session.items()
            if row
        ]
        return MemoryView(user=who, memories=rows, summaries=summaries)

    def search(
        self, query: str, *, user: str = "default", session: str | None = None, limit: int = 10
    ) -> Rows:
        """Return what fits a query best, by words and by meaning: of core memory, of the archive, of earlier exchanges.

        Args:
            query: its words.
            user: of whom.
            session: only exchanges of this conversation.
            limit: how many.

        Returns:
            Rows of ``part`` (a section, or ``episode``), ``id``, ``text``, ``similarity``, ``session``, ``turn``,
            ``author``, ``at``; best first. What fits less than ``memory_least`` is not there.
        """
        who = clean(str(user))
        conversation_id = (
            "" if session is None else self._store.conversation_id(who, clean(session))
        )
        rows = [
            self._result(m["section"], m["content"], m, similarity)
            for m, similarity in self._fitting(query, who)
        ]
        for e in self._recalling.find(query, who, conversation_id)[0]:
            text = f"{e['user_message']} → {e['assistant_message']}"
            rows.append(
                self._result(
                    "episode", text, {**e, "message_id": e["user_message_id"]}, e["similarity"]
                )
            )
        lowest = self._wb.settings.memory_least
        rows = sorted(
            (r for r in rows if r["similarity"] >= lowest), key=lambda r: -r["similarity"]
        )
        return Rows(rows[:limit], query, lambda own, labels: found_blocks(query, own, labels))

    # steering

    def edit(self, memory_id: str, content: str, *, user: str = "default", why: str = "") -> str:
        """Put another version in the place of a memory, which stays in the history; the id of the new one.

        What it is about, and whether it is liked, are read from the new text; where nothing of that is read they stay.

        Raises:
            WorkbenchError: there is no such memory that holds, or the text is empty.
        """
        old = self._current(memory_id, user)
        read = read_note(content)
        unread = old["section"] != "name" and not (read and read["section"] == old["section"])
        subject = pick(old, "about", "polarity") if unread else {}
        return self._store.remember(
            user, old["section"], content, replaces=[memory_id], why=why or "edited", **subject
        )

    def invalidate(self, memory_id: str, why: str, *, user: str = "default") -> None:
        """Say that a memory does not hold any more, and why; it stays in the history.

        Raises:
            WorkbenchError: no reason is given, or there is no such memory that holds.
        """
        if not why.strip():
            raise WorkbenchError(
                "Say why the memory does not hold any more: why='moved to another town'."
            )
        self._store.end(user, [self._current(memory_id, user)["id"]], why)

    def undo(self, *, user: str = "default") -> str:
        """Take back the last change of what is remembered of a person; the id of the memory that it was about."""
        return self._store.undo(user)

    def forget(self, memory: str | None = None, **what: Any) -> Forgotten:
        """Forget for good: a memory, or ``message=``, ``session=``, ``user=``; ``dry_run=``; see ``forget``."""
        return forget(self._wb, memory=memory, **what)

    # the tools of an agent

    def core_memory_update(
        self, section: str, content: str, *, user: str = "default", author: str = "person"
    ) -> Json:
        """Write something into core memory: what it contradicts is replaced, and stays in the history.

        Args:
            section: ``persona`` (what the assistant is), ``human``, or a part of it: ``name``, ``preferences``,
                ``current_intent``, ``facts``. In ``human`` the text says which part it is.
            content: a sentence, as "does not like horror".
            user: of whom.
            author: who writes it.

        Returns:
            Core memory after that.

        Raises:
            WorkbenchError: there is no such section, or nothing to write.
        """
        self._store.remember(user, section, content, author=author)
        return core_memory(self._store.memories(user))

    def archival_memory_insert(
        self, content: str, *, user: str = "default", author: str = "person"
    ) -> str:
        """Keep a text for later: ``archival_memory_search`` finds it, and a message that shares a word with it.

        Returns:
            Its id.
        """
        return self._store.remember(user, "archival", content, author=author)

    def archival_memory_search(
        self, query: str, *, user: str = "default", limit: int = 5
    ) -> list[Json]:
        """Return what was archived, noted or said earlier that fits a query, best first; as ``search``."""
        return [*self.search(query, user=user, limit=limit)]

    # inside

    def _result(self, part: str, text: str, row: Data, similarity: float) -> Json:
        result = {"part": part, "id": row["id"], "text": text, "similarity": similarity}
        result |= self._store.source(row["message_id"])
        return {**result, "author": row.get("author", ""), "at": row["created_at"]}

    def _fitting(self, query: str, user: str) -> list[tuple[Memory, float]]:
        """Memories that hold, with the larger of the cosine and the share of the query's words."""
        memories = self._store.memories(user)
        texts = [memory["content"] for memory in memories]
        shares = [word_share(query, text) for text in texts]
        try:
            vectors = text_model(self._wb.settings).array([query, *texts])
            cosines = (vectors[1:] @ vectors[0]).tolist()
        except ModelError as error:
            warnings.warn(f"Memories are searched by words alone: {error}", stacklevel=3)
            cosines = shares
        best = map(max, shares, cosines)
        return [(memory, round(share, 4)) for memory, share in zip(memories, best, strict=True)]

    def _current(self, memory_id: str, user: str) -> Memory:
        memories = {m["id"]: m for m in self._store.memories(user)}
        if memory_id not in memories:
            raise WorkbenchError(
                f"{shown(memory_id)} is no memory of {shown(user)} that holds. wb.memory.view() lists them."
            )
        return memories[memory_id]


memory = property(Memories)
"""``wb.memory``."""


# forgetting for good: one memory, one exchange, one conversation, or all of a person


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
    """

    kind: Kind
    done: bool
    counts: Mapping[str, int]
    runs: tuple[str, ...]
    dependents: tuple[str, ...]
    message: str = ""

    def blocks(self) -> list[Block]:
        """Return what goes, which runs, and what cannot be reached."""
        labels = labels_for(self.message)
        title = labels(
            "forgot_done" if self.done else "forgot_would", what=labels(f"forgot_{self.kind}")
        )
        rows = [
            (labels(f"forgot_{name}"), str(count)) for name, count in self.counts.items() if count
        ]
        rows = rows or [(labels("forgot_nothing"), "")]
        blocks = [clipped(title, columns(labels, "kb_what", ":number"), rows)]
        if self.runs:
            reasons = {True: labels("forgot_had_it"), False: labels("forgot_said_it")}
            runs = [(run_id, reasons[run_id in self.dependents]) for run_id in self.runs]
            blocks.append(
                clipped(
                    labels("forgot_these_runs"), columns(labels, "run:code", "forgot_why"), runs
                )
            )
        return [*blocks, Lines([(labels("forgot_elsewhere"), "dim")])]


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
    kinds: dict[Kind, str | None] = {
        "memory": memory,
        "exchange": message,
        "conversation": session,
    }
    targets = [(kind, clean(str(value))) for kind, value in kinds.items() if value is not None]
    if len(targets) > 1 or not (targets or user is not None):
        raise WorkbenchError(
            "Name one thing to forget: a memory, a message, a session, or a user alone."
        )
    who = "default" if user is None else clean(str(user))
    kind, what = targets[0] if targets else ("user", who)
    forgetting = _Forgetting(wb, kind, what, who)
    report = forgetting.look()
    is_known = any(report.counts.values()) or forgetting.begun.exists()
    if kind in ("memory", "exchange") and not is_known:
        raise WorkbenchError(
            f"There is no {kind} {shown(what)} of {shown(who)} here, and no run that had it."
        )
    if dry_run:
        return report
    with taken(wb.path, wait=True):
        forgetting.remove()
        forgetting.remove()  # who read it meanwhile
    for name in ("workbench.db", "checkpoints.db"):
        rewrite(wb.path / name)
    forgetting.begun.unlink(missing_ok=True)
    return replace(report, done=True)


class _Candidate(NamedTuple):
    """Something that is kept of the person, and goes once one of ``refs`` is gone, or its text has forgotten words.

    Attributes:
        table: where it is counted.
        key: its own id.
        refs: the ids whose going takes it along.
        ids: all that is gone then.
        text: its words, folded.
        contents: words of a memory that nothing may say any more.
        sentences: what an answer to another question may quote of it.
        question: that it answers, folded.
    """

    table: str
    key: str
    refs: Collection[str]
    ids: Collection[str]
    text: str = ""
    contents: Collection[str] = ()
    sentences: Collection[str] = ()
    question: str | None = None


class _Forgetting:
    """One forgetting; what was found stays known while it is removed.

    A memory goes with the versions that it replaced, the exchange that says it, and whatever says it word for word. A
    run goes whole, with its tape and its checkpoints, where its exchange goes, where it was made
    from such a run, or where an id of what goes is in its tape: one with words cut out of its tape would replay to
    something that never was. The exchange of a run that only had it stays, unless the answer quotes it.

    Runs go first, and the rows of the store last, in one transaction. With a run goes the way to what only it led to:
    the ids of all that goes are in a file meanwhile, and after a kill the next call for the person continues there.

    Attributes:
        begun: the file with the ids of what is being removed of the person.
    """

    def __init__(self, wb: Workbench, kind: Kind, what: str, who: str):
        self._wb = wb
        self._work = wb._work
        self._store = find_store(wb)
        self._kind = kind
        self._who = who
        self._gone = {self._store.conversation_id(who, what) if kind == "conversation" else what}
        self._contents = set[str]()
        self._sentences = set[str]()
        self.begun = wb.path / f".forgetting-{digest(who)}.json"
        if self.begun.exists():  # a call was killed
            self._gone.update(json.loads(self.begun.read_text("utf-8")))

    def look(self) -> Forgotten:
        """Find everything that belongs to it now."""
        candidates = list(self._candidates())
        left = candidates
        count = -1
        while len(left) != count:
            count = len(left)
            left = [candidate for candidate in left if not self._take(candidate)]
        gone = dict.fromkeys((c.table, c.key) for c in candidates if c.key in self._gone)
        counts = Counter(table for table, _ in gone)
        names = ("memories", "messages", "summaries", "feedback", "runs")
        runs = [key for table, key in gone if table == "runs"]
        texts = (c.text for c in candidates if c.table in names[:2] and c.key in self._gone)
        return Forgotten(
            kind=self._kind,
            done=False,
            counts=pick(counts, *names),
            runs=tuple(runs),
            dependents=tuple(run for run in runs if _exchange_id(run) not in self._gone),
            message="忘" if detect_language(next(texts, "")) == "zh" else "",
        )

    def _take(self, candidate: _Candidate) -> bool:
        """Add a candidate to what goes, where it belongs to it."""
        refers = self._kind == "user" or not self._gone.isdisjoint(candidate.refs)
        says = any(words in candidate.text for words in self._contents)
        quoted = self._sentences if candidate.question is not None else ()
        quotes = any(
            words in candidate.text and words not in str(candidate.question) for words in quoted
        )
        if not (refers or says or quotes):
            return False
        self._gone.update(candidate.ids)
        self._contents.update(candidate.contents)
        self._sentences.update(candidate.sentences)
        return True

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield all that is kept of the person, memories first."""
        store = self._store
        who = self._who
        for note in store.memories(who, ended=True):
            key = note["id"]
            message_id = note["message_id"]
            text = fold(note["content"])
            if self._kind == "memory":  # with what it replaced, and the exchange that says it
                ids = {key, message_id} - {""}
                yield _Candidate(
                    "memories", key, {key, note["replaced_by"]}, ids, text, _searchable([text])
                )
            else:
                yield _Candidate(
                    "memories", key, {key, message_id, note["conversation_id"]}, {key}
                )
        talks = {
            conversation: store.list_messages(conversation)
            for conversation in store.conversations(who)
        }
        exchanges = {
            e[part]: e
            for e in store.episodes(user_id=who)
            for part in ("user_message_id", "assistant_message_id")
        }
        for message in itertools.chain(*talks.values()):
            yield _message_candidate(message, exchanges.get(message["id"]))
        covered = {
            conversation: [m["id"] for m in messages] for conversation, messages in talks.items()
        }
        if self._kind == "user":
            self._gone.update(covered)
        for conversation, message_ids in covered.items():
            if summary := store.get_summary(conversation):
                refs = {summary["id"], *message_ids[: summary["covered_message_count"]]}
                yield _Candidate(
                    "summaries", summary["id"], refs, {summary["id"]}, fold(summary["summary"])
                )
        for row in store.list_feedback(user_id=who):
            yield _Candidate(
                "feedback", row["id"], {row["message_id"]}, {row["id"]}, fold(str(row))
            )
        runs = self._work.durable.runs
        for run_id in runs.ids(-1, user_id=who):
            with suppress(UnknownRun):  # another process removes it meanwhile
                contents = runs.contents(run_id)
                recalled = ("memory", "recall") in _taped(contents)
                # its tape was pruned, or has just begun
                state = {} if recalled else self._work.values(run_id)
                yield from self._run_candidates(
                    {**contents, "state": state, "drafts": runs.drafts(run_id)}, covered
                )

    def _run_candidates(
        self, contents: Data, talks: Mapping[str, Sequence[str]]
    ) -> Iterator[_Candidate]:
        """Yield what becomes of a run: it may have said something, or only had it."""
        row = contents["run"]
        text = json.dumps(contents, ensure_ascii=False, default=str)
        run_id = row["run_id"]
        conversation_id = row["conversation_id"]
        values = _taped(contents)
        begun, recalled = (
            values.get(name) or {} for name in (("begin", "ids"), ("memory", "recall"))
        )
        made_from = {
            *tape_sources(row["options"]),
            begun.get("run_id", run_id),
        } - {run_id}
        sources = {_exchange_id(source) for source in made_from}
        messages = [
            self._store.message_id(conversation_id, f"{run_id}:{role}")
            for role in ("user", "assistant")
        ]
        exchange = {run_id, _exchange_id(run_id), *messages}
        yield _Candidate("runs", run_id, {conversation_id, *messages, *sources}, exchange)
        if self._kind == "conversation":
            yield _Candidate("runs", run_id, sources, {conversation_id})
        if summary := recalled.get("summary"):
            count = summary["covered_message_count"]
        else:
            remembered = ((row["result"] or contents.get("state")) or {}).get("remembered") or []
            count = None if any(part["part"] == "summary" for part in remembered) else 0
        # What it recalled, and whose report it took over, are among the texts in quotes.
        quoted = {
            *re.findall(r'"([^"\s]{8,100})"', text),
            *talks.get(conversation_id, ())[:count],
        }
        yield _Candidate("runs", run_id, quoted, {run_id}, fold(text))

    def remove(self) -> None:
        """Delete what is found now; no run of the person may be at work.

        Raises:
            RunError: one is.
        """
        runs = self.look().runs
        run_ids = self._work.durable.runs.ids(-1, user_id=self._who, status="running")
        if at_work := [run_id for run_id in run_ids if self._work.status(run_id) == "running"]:
            raise RunError(
                f"Run {', '.join(at_work)} is at work, and may have read it. Wait for its end or cancel it, and forget "
                "it again."
            )
        write_file(self.begun, json.dumps(sorted(self._gone)).encode(), replace=True)
        self._work.remove(*runs)
        self._store.forget(self._gone)
        self._wb._cleared()


def _message_candidate(message: Data, exchange: Data | None) -> _Candidate:
    """Return a message, which goes with its exchange; an answer also where it quotes another that goes."""
    key = message["id"]
    text = fold(message["content"])
    parts = ("id", "user_message_id", "assistant_message_id")
    ids = {exchange[part] for part in parts} if exchange else {key}
    candidate = _Candidate("messages", key, {*ids, message["conversation_id"]}, ids, text)
    if message["role"] == "user":
        # How much of a sentence a quotation keeps.
        return candidate._replace(
            sentences=_searchable([sentence[:250] for sentence in sentences(message["content"])])
        )
    return candidate._replace(question=fold(exchange["user_message"])) if exchange else candidate


def _taped(contents: Data) -> dict[tuple[str, str], Data]:
    """Return what is on the tape of a run, by kind and name."""
    effects = (effect for page in contents["tapes"] for effect in page["effects"])
    return {(effect["kind"], effect["name"]): effect["value"] for effect in effects}


def _exchange_id(run_id: str) -> str:
    """Return the mark of a run of which the exchange goes too."""
    return f"said by {run_id}"


def _searchable(texts: Sequence[str]) -> set[str]:
    """Return the texts that are long enough to be looked for word for word, folded."""
    bare = [fold(text).strip(" .,;:!?'\"“”。，；：！？") for text in texts]
    # Characters of a text that is looked for word for word; a Chinese one counts double.
    return {text for text in bare if len(text) + sum(not c.isascii() for c in text) >= 8}


def rewrite(path: Path) -> None:
    """Write a database again, and empty its log.

    SQLite overwrites what it deletes, but not what stood in a page before rows of it moved to others.

    Raises:
        WorkspaceBusy: another process reads it all the time.
        WorkspaceFull: there is no room for it a second time; what was to go is deleted, and forgetting again ends it.
    """
    if not path.exists():
        return
    with (
        translate_errors(path),
        closing(sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)) as connection,
    ):
        connection.execute("VACUUM")
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise WorkspaceBusy(
                f"{path} is read by another process all the time. Close it there, and try again."
            )
