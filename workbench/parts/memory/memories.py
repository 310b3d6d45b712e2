"""``wb.memory``: what is remembered of people and of their conversations, seen, searched, corrected and taken back.

Nothing is overwritten: an edit ends a memory and puts another in its place, so that what was known can be seen
again. The store is ``memory/store.py``; this is its face for a person, a script and an agent.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import ModelError, WorkbenchError, shown
from workbench.models.embeddings import text_model
from workbench.parts.memory.forgetting import Forgotten, forget
from workbench.parts.memory.reading import read_note
from workbench.parts.memory.service import find_recalling, word_share
from workbench.parts.memory.store import Memory, core_memory
from workbench.parts.memory.views import Rows, found_blocks, known_blocks
from workbench.state import Data, Json
from workbench.text import clean
from workbench.views.blocks import Block
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
        return known_blocks(self.to_dict(), labels_for(self.message))

    def __repr__(self) -> str:
        return str(self)


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
        subject = {name: old[name] for name in ("about", "polarity")} if unread else {}
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
        """Forget for good: a memory, or ``message=``, ``session=``, ``user=``; ``dry_run=``; see ``forgetting.py``."""
        return forget(self._wb, memory=memory, **what)

    # the tools of an agent

    def core_memory_update(
        self, section: str, content: str | Data, *, user: str = "default", author: str = "person"
    ) -> Json:
        """Write something into core memory: what it contradicts is replaced, and stays in the history.

        Args:
            section: ``persona`` (what the assistant is), ``human``, or a part of it: ``name``, ``preferences``,
                ``current_intent``, ``facts``. In ``human`` the text says which part it is.
            content: a sentence, as "does not like horror"; for ``human`` also an object, part by part.
            user: of whom.
            author: who writes it.

        Returns:
            Core memory after that.

        Raises:
            WorkbenchError: there is no such section, or nothing to write.
        """
        parts = content if isinstance(content, Mapping) else {section: content}
        for part, texts in parts.items():
            for text in [texts] if isinstance(texts, str) else texts:
                self._store.remember(user, part, text, author=author)
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
