"""What is remembered of conversations: summaries, episodes, and single memories with their history.

A memory is one row for as long as it holds: a changed one is ended, with a reason, and another takes its place, so that
what was known at any time can be seen again, and a change undone. An episode is an exchange that has been answered; its
row comes with the answer in one transaction, and its vector later, in the background: until then it is
found by its words.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any

from typing_extensions import TypedDict

from workbench.errors import WorkbenchError, shown
from workbench.parts.memory.reading import SINGLE, read_note, same_thing
from workbench.records.conversations import Execute, SqlConversations, digest
from workbench.state import Data, Json, Noted
from workbench.text import clean

TABLES = (
    """CREATE TABLE conversation_summaries (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL UNIQUE REFERENCES conversations (id) ON DELETE CASCADE,
        summary TEXT NOT NULL,
        covered_message_count INTEGER NOT NULL,
        update_count INTEGER NOT NULL,
        author TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    )""",
    "CREATE INDEX summaries_by_update ON conversation_summaries (updated_at DESC)",
    """CREATE TABLE episodes (
        position {serial},
        id TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        user_message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        assistant_message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
        created_at TEXT NOT NULL,
        model TEXT NOT NULL,
        vector {bytes}
    )""",
    "CREATE INDEX episodes_in_order ON episodes (conversation_id, position, model)",
    """CREATE TABLE memories (
        position {serial},
        id TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        section TEXT NOT NULL,
        content TEXT NOT NULL,
        about TEXT NOT NULL,
        polarity TEXT NOT NULL,
        author TEXT NOT NULL,
        created_at TEXT NOT NULL,
        ended_at TEXT,
        ended_why TEXT NOT NULL,
        replaced_by TEXT NOT NULL
    )""",
    "CREATE INDEX memories_of_user ON memories (user_id, ended_at)",
)
SECTIONS = ("persona", "human", "name", "preferences", "current_intent", "facts", "archival")
"""Where a memory stands: in core memory, whose ``human`` has a name, preferences, an intent and facts; or archived."""


class Memory(TypedDict):
    """One thing that is, or was, remembered of a person.

    Attributes:
        message_id: the message that says it; "" for what a person wrote by hand.
        polarity: ``like`` or ``dislike`` of a preference, else "".
        about: what it is about, by which a newer one replaces it.
        author: ``rules``, ``person``, or the name of a model.
        ended_at: since when it does not hold any more; None while it does.
    """

    id: str
    user_id: str
    conversation_id: str
    message_id: str
    section: str
    content: str
    about: str
    polarity: str
    author: str
    created_at: str
    ended_at: str | None
    ended_why: str
    replaced_by: str


_EPISODE = (
    "SELECT e.position, e.id, e.conversation_id, e.user_message_id, e.assistant_message_id, q.content AS user_message,"
    " a.content AS assistant_message, e.created_at, CASE WHEN e.model = ? THEN e.vector END AS vector FROM episodes e"
    " JOIN messages q ON q.id = e.user_message_id JOIN messages a ON a.id = e.assistant_message_id"
)
"""An exchange that was answered; ``vector`` has both messages' by the model that is named, or is None."""
_MEMORY = ", ".join(Memory.__annotations__)


def _whose(conversation_id: str, user_id: str) -> tuple[str, list[str]]:
    """Return the condition for a conversation, else for all of a user's, else for everyone's."""
    if conversation_id:
        return " AND e.conversation_id = ?", [conversation_id]
    if user_id:
        return " AND e.conversation_id IN (SELECT id FROM conversations WHERE user_id = ?)", [
            clean(user_id)
        ]
    return "", []


class MemoryStore:
    """What is remembered, in the database of the conversations; it has their methods too.

    Every method may be called from any thread.

    Args:
        conversations: the store of the messages.
    """

    def __init__(self, conversations: SqlConversations):
        self.conversations_store = conversations
        self._transaction = conversations.transaction
        self._rows = conversations.rows
        self._time = conversations.time
        conversations.create_tables("memory", 1, TABLES)
        conversations.answered.append(
            lambda execute, conversation_id, question, answer, now: execute(
                "INSERT INTO episodes (id, conversation_id, user_message_id, assistant_message_id,"
                " created_at, model, vector) SELECT ?, ?, id, ?, ?, '', NULL FROM messages WHERE id = ?"
                " ON CONFLICT (id) DO NOTHING",
                (digest(question, answer), conversation_id, answer, now, question),
            )
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.conversations_store, name)

    # summaries

    def get_summary(self, conversation_id: str) -> Json | None:
        """``summary``, ``covered_message_count``, ``update_count``, ``author``, ``created_at``, ``updated_at``."""
        rows = self._rows(
            "SELECT * FROM conversation_summaries WHERE conversation_id = ?",
            (conversation_id,),
        )
        return rows[0] if rows else None

    def save_summary(
        self,
        conversation_id: str,
        summary: str,
        covered_message_count: int,
        author: str = "",
        message_ids: Sequence[str] | None = None,
    ) -> None:
        """Keep the summary in the place of the one before; one that covers less than that is late, and is dropped.

        So is one of messages (``message_ids``) that are not the first ones any more: some were forgotten meanwhile.
        """
        now = self._time()
        with self._transaction() as execute:
            first = f"SELECT id FROM messages WHERE conversation_id = ? ORDER BY position LIMIT {covered_message_count}"
            if message_ids is not None and [
                row["id"] for row in execute(first, (conversation_id,))
            ] != list(message_ids):
                return
            execute(
                "INSERT INTO conversation_summaries (id, conversation_id, summary, covered_message_count, update_count,"
                " author, created_at, updated_at) SELECT ?, id, ?, ?, 1, ?, ?, ? FROM conversations WHERE id = ?"
                " ON CONFLICT (conversation_id) DO UPDATE SET summary = excluded.summary, author = excluded.author,"
                " covered_message_count = excluded.covered_message_count, updated_at = excluded.updated_at,"
                " update_count = conversation_summaries.update_count + 1"
                " WHERE conversation_summaries.covered_message_count <= excluded.covered_message_count",
                (
                    uuid.uuid4().hex,
                    clean(summary),
                    covered_message_count,
                    author,
                    now,
                    now,
                    conversation_id,
                ),
            )

    # episodes

    def episodes(
        self, conversation_id: str = "", user_id: str = "", after: int = 0, model: str = ""
    ) -> list[Json]:
        """Return the exchanges of a conversation, or where none is named of all of a user's, oldest first.

        Only those behind the position ``after`` are given, with their vectors by this model.
        """
        whose, arguments = _whose(conversation_id, user_id)
        return self._episodes(f"e.position > ?{whose}", (model, after, *arguments))

    def unembedded(
        self,
        model: str,
        limit: int,
        conversation_id: str = "",
        user_id: str = "",
        without: Collection[str] = (),
    ) -> list[Json]:
        """Return the oldest episodes that have no vector by this model, but for those ``without``; whose, as above."""
        whose, arguments = _whose(conversation_id, user_id)
        marks = ", ".join("?" * len(without))
        condition = f"e.model != ?{whose}" + (f" AND e.id NOT IN ({marks})" if without else "")
        return self._episodes(condition, (model, model, *arguments, *without, limit), " LIMIT ?")

    def _episodes(self, condition: str, arguments: Sequence[Any], limit: str = "") -> list[Json]:
        return self._rows(f"{_EPISODE} WHERE {condition} ORDER BY e.position{limit}", arguments)

    def count_episodes(
        self, conversation_id: str, user_id: str, model: str = "", until: float = inf
    ) -> tuple[int, int]:
        """Return how many exchanges there are up to a position, and how many of them have a vector by this model."""
        whose, arguments = _whose(conversation_id, user_id)
        # no vector is read for that
        embedded = "COUNT(CASE WHEN e.model = ? AND e.model != '' THEN 1 END) AS embedded"
        sql = f"SELECT COUNT(*) AS n, {embedded} FROM episodes e WHERE e.position <= ?{whose}"
        [row] = self._rows(sql, (model, until, *arguments))
        return row["n"], row["embedded"]

    def save_vectors(self, vectors: Iterable[tuple[str, bytes]], model: str) -> None:
        """Keep the vectors of episodes; of one that was forgotten meanwhile nothing is kept."""
        with self._transaction() as execute:
            for episode_id, vector in vectors:
                execute(
                    "UPDATE episodes SET vector = ?, model = ? WHERE id = ?",
                    (vector, model, episode_id),
                )

    # single memories

    def remember(
        self,
        user_id: str,
        section: str,
        content: str,
        *,
        about: str = "",
        polarity: str = "",
        author: str = "person",
        conversation_id: str = "",
        message_id: str = "",
        key: str = "",
        replaces: Sequence[str] = (),
        why: str = "",
    ) -> str:
        """Keep a memory, and end those that it replaces, at once: those named, and what is about the same thing.

        Args:
            user_id: whose.
            section: one of ``SECTIONS``; of ``human`` the text says which part it is.
            content: the text.
            about: what it is about; read from the text when "".
            polarity: of a preference, ``like`` or ``dislike``, read likewise.
            author: who noted it.
            conversation_id: where it was said.
            message_id: the message that says it.
            key: what makes it this one: keeping it again changes nothing.
            replaces: ids of memories that do not hold any more.
            why: why they do not; the text when "".

        Raises:
            WorkbenchError: no such section, or nothing to remember.
        """
        if section not in SECTIONS:
            raise WorkbenchError(
                f"There is no section {shown(section)} in memory. Known: {', '.join(SECTIONS)}."
            )

        if not (text := clean(content).strip()):
            raise WorkbenchError("There is nothing to remember: the text is empty.")
        read = read_note(text) or Noted(
            section="facts", content=text, about=text, polarity="", replaces=[]
        )
        section = read["section"] if section == "human" else section
        if not about:
            about, polarity = (
                (read["about"], read["polarity"])
                if read["section"] == section
                else (text, polarity)
            )
        memory = Memory(
            id=key or uuid.uuid4().hex,
            user_id=clean(user_id),
            conversation_id=conversation_id,
            message_id=message_id,
            section=section,
            content=text,
            about=clean(about),
            polarity=polarity,
            author=author,
            created_at=self._time(),
            ended_at=None,
            ended_why="",
            replaced_by="",
        )
        with self._transaction() as execute:
            if not execute("SELECT 1 FROM memories WHERE id = ?", (memory["id"],)):
                holding = execute(
                    "SELECT * FROM memories WHERE user_id = ? AND ended_at IS NULL",
                    (memory["user_id"],),
                )
                old = [*replaces, *(row["id"] for row in holding if same_thing(memory, row))]
                self._end(
                    execute,
                    memory["user_id"],
                    old,
                    memory["created_at"],
                    why or text,
                    memory["id"],
                )
                marks = ", ".join("?" * len(memory))
                execute(
                    f"INSERT INTO memories ({_MEMORY}) VALUES ({marks})", list(memory.values())
                )
        return memory["id"]

    def end(self, user_id: str, memory_ids: Sequence[str], why: str) -> None:
        """End those of these memories that hold, at once; they stay in the history."""
        with self._transaction() as execute:
            self._end(execute, clean(user_id), memory_ids, self._time(), why, "")

    @staticmethod
    def _end(
        execute: Execute, user_id: str, ids: Sequence[str], now: str, why: str, by: str
    ) -> None:
        sql = (
            "UPDATE memories SET ended_at = ?, ended_why = ?, replaced_by = ? WHERE id = ? AND user_id = ?"
            " AND ended_at IS NULL"
        )
        for memory_id in ids:
            execute(sql, (now, clean(why), by, memory_id, user_id))

    def undo(self, user_id: str) -> str:
        """Take back the last change of what is remembered of a person; the id of the memory that it was about.

        Raises:
            WorkbenchError: nothing was ever remembered.
        """
        who = clean(user_id)
        with self._transaction() as execute:
            sql = "SELECT id, created_at, ended_at FROM memories WHERE user_id = ? ORDER BY position DESC"
            rows = execute(sql, (who,))
            if not rows:
                raise WorkbenchError(
                    f"Nothing was remembered of {shown(user_id)}, so there is nothing to undo."
                )
            created = max(row["created_at"] for row in rows)
            last = max(row["ended_at"] or "" for row in rows)
            if last > created:
                back = [row["id"] for row in rows if row["ended_at"] == last]
            else:
                newest = next(row["id"] for row in rows if row["created_at"] == created)
                back = [
                    r["id"]
                    for r in execute("SELECT id FROM memories WHERE replaced_by = ?", (newest,))
                ]
                execute("DELETE FROM memories WHERE id = ?", (newest,))
            for memory_id in back:
                execute(
                    "UPDATE memories SET ended_at = NULL, ended_why = '', replaced_by = '' WHERE id = ?",
                    (memory_id,),
                )
        return back[0] if back else newest

    def memories(self, user_id: str, *, ended: bool = False) -> list[Memory]:
        """Return what is remembered of a person, oldest first; ``ended``: with what does not hold any more."""
        sql = f"SELECT {_MEMORY} FROM memories WHERE user_id = ? ORDER BY position"
        rows = self._rows(sql, (clean(user_id),))
        return [Memory(**row) for row in rows if ended or row["ended_at"] is None]  # type: ignore[typeddict-item]

    def source(self, message_id: str) -> Json:
        """Return where a message is; empty if it is gone.

        ``session``, its ``title``, which is its first question; ``turn`` (from 1), and what it ``said``.
        """
        rows = self._rows(
            "SELECT c.session_id AS session, m.content AS said, (SELECT COUNT(*) FROM messages b WHERE"
            " b.conversation_id = m.conversation_id AND b.role = 'user' AND b.position <= m.position) AS turn,"
            " (SELECT content FROM messages f WHERE f.conversation_id = m.conversation_id AND f.role = 'user'"
            " ORDER BY f.position LIMIT 1) AS title"
            " FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.id = ?",
            (message_id,),
        )
        return rows[0] if rows else {"session": "", "title": "", "turn": None, "said": ""}

    def forget(self, ids: Iterable[str]) -> None:
        """Delete memories, messages, summaries, feedback and conversations of these ids for good, in one transaction.

        A conversation goes when no message is left in it: its name may be in use again. With a message go its episode,
        its feedback, and the summary of its conversation, which is made again of what is left; what was replaced by a
        memory does not say any more by what.
        """
        empty = "NOT EXISTS (SELECT 1 FROM messages WHERE conversation_id = conversations.id)"
        of_message = "IN (SELECT conversation_id FROM messages WHERE id = ?)"
        ids = list(ids)
        with self._transaction() as execute:
            for sql in (
                f"DELETE FROM conversation_summaries WHERE conversation_id {of_message}",
                "DELETE FROM conversation_summaries WHERE id = ?",
                "DELETE FROM messages WHERE id = ?",
                "UPDATE memories SET message_id = '' WHERE message_id = ?",
                "UPDATE memories SET ended_why = '', replaced_by = '' WHERE replaced_by = ?",
                "DELETE FROM memories WHERE id = ?",
                "DELETE FROM feedback WHERE id = ?",
                f"DELETE FROM conversations WHERE id = ? AND {empty}",
            ):
                for row_id in ids:
                    execute(sql, (row_id,))


def outdated(summary: Data, memories: Iterable[Memory]) -> bool:
    """Return True if a memory has ended since a summary was made: the summary may still say it."""
    return any((memory["ended_at"] or "") > summary["updated_at"] for memory in memories)


def core_memory(memories: Iterable[Memory]) -> Json:
    """Core memory as one object: what the assistant is, and what is known of the person.

    >>> row = {"section": "preferences", "content": "likes tea"}
    >>> core_memory([row])["human"]
    {'name': '', 'preferences': ['likes tea'], 'current_intent': '', 'facts': []}
    """
    texts: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for memory in memories:
        # not the whole sentence that says it
        name = memory.get("about") if memory["section"] == "name" else ""
        texts[memory["section"]].append(name or memory["content"])
    newest = {section: (texts[section] or [""])[-1] for section in SINGLE}
    human = {
        "name": newest["name"],
        "preferences": texts["preferences"],
        "current_intent": newest["current_intent"],
    }
    return {"persona": newest["persona"], "human": {**human, "facts": texts["facts"]}}
