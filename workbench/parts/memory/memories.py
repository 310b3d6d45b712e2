"""``wb.memory``: what is remembered of people and of their conversations, seen, searched, corrected and taken back.

Nothing is overwritten: an edit ends a memory and puts another in its place, so that what was known at any turn or on
any day can be seen again. The store is ``memory/store.py``; this is its face for a person, a script and an agent.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ModelError, WorkbenchError, shown
from workbench.language.preferences import read_note, read_preferences, same_thing
from workbench.models.embeddings import text_model
from workbench.parts.memory.forgetting import Forgotten, forget
from workbench.parts.memory.recalling import Recalling
from workbench.parts.memory.service import store_of
from workbench.parts.memory.store import Memory, MemoryStore, as_statement, core_of
from workbench.parts.memory.views import Rows, found_blocks, known_blocks
from workbench.records.tape import estimated_tokens
from workbench.records.writing import write_file
from workbench.runs.run import Run
from workbench.state import Data, Json
from workbench.text import clean, content_stems
from workbench.views.labels import labels_for
from workbench.views.render import Shown

if TYPE_CHECKING:
    import pandas

    from workbench.views.blocks import Block
    from workbench.views.figures.picture import Picture

HUMAN = ("name", "preferences", "current_intent", "facts")
"""The parts of core memory's ``human``."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d$")
At = int | str | date | datetime | Run | None
"""A moment: a turn (from 1, with its session), a run or its id, a day, a time; None is now."""


@dataclass(frozen=True)
class Known(Shown):
    """What is known of a person, or was: shows itself, and is data by ``to_dict`` and ``to_frame``.

    Attributes:
        user: of whom.
        at: as of when; None is now.
        memories: rows of the store, each with the ``session``, ``turn`` and words (``said``) from which it is, and its
            ``version``: how many there have been of it.
        conversations: theirs, with how many messages.
        summaries: of one conversation, or of all of them, in words.
    """

    user: str
    at: str | None
    memories: list[Any]
    conversations: list[Json]
    summaries: list[Json]

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return what is known, by which the language of the labels is chosen."""
        return " ".join(row["content"] for row in self.memories)

    @property
    def core(self) -> Json:
        """Core memory: ``persona``, and ``human`` with ``name``, ``preferences``, ``current_intent`` and ``facts``."""
        return core_of(row for row in self.memories if not row["ended_at"])

    def to_dict(self) -> Json:
        """Return all of it as JSON."""
        names = ("user", "at", "core", "memories", "summaries", "conversations")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pandas.DataFrame:
        """One row a memory."""
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
    ``archival_memory_search``; ``tools(user)`` gives them for one person, for a model that calls tools.
    """

    def __init__(self, wb: Any, store: MemoryStore, now: Callable[[], datetime]):
        self._wb, self._store, self._now = wb, store, now

    # looking

    def view(self, user: str = "default", *, session: str | None = None, at: At = None, ended: bool = False) -> Known:
        """What is known of a person, each with where it is from, who noted it, since when, and which version it is.

        Args:
            user: of whom.
            session: only what one conversation brought; and its summary.
            at: as of a turn of that session (until the next one began), of a run, a day or a time.
            ended: with what does not hold any more, and why.

        Raises:
            WorkbenchError: there is no such moment.
        """
        who, moment = clean(str(user)), self._moment(at, user, session)
        versions = _versions(self._store.memories(who, ended=True))
        rows = [self._row(m, versions) for m in self._store.memories(who, at=moment, ended=ended)]
        talks = [t for t in self._store.talks(who) if session in (None, t["session_id"])]
        if session is not None:
            of = self._store.conversation_id(who, clean(session))
            rows = [row for row in rows if row["conversation_id"] == of]
        if moment is not None:
            talks = [talk for talk in talks if talk["created_at"] <= moment]
        summaries = [summed for talk in talks if (summed := self._summary(talk, moment))]
        return Known(user=who, at=moment, memories=rows, conversations=talks, summaries=summaries)

    def search(self, query: str, *, user: str = "default", session: str | None = None, limit: int = 10) -> Rows:
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
        who, settings = clean(str(user)), self._wb.settings
        wide = {"memory_top_k": limit, "history_window": 0, "memory_scope": "conversation"}
        of = "" if session is None else self._store.conversation_id(who, clean(session))
        recalling = Recalling(self._store, settings.model_copy(update=wide), self._now)
        rows = [self._found(m["section"], m["content"], m, similarity) for m, similarity in self._fitting(query, who)]
        for e in recalling.episodes(query, who, of)[0]:
            text = f"{e['user_message']} → {e['assistant_message']}"
            rows.append(self._found("episode", text, {**e, "message_id": e["user_message_id"]}, e["similarity"]))
        rows = sorted((r for r in rows if r["similarity"] >= settings.memory_least), key=lambda r: -r["similarity"])
        return Rows(rows[:limit], query, lambda own, labels: found_blocks(query, own, labels))

    def tokens(self, session: str, *, user: str = "default") -> Picture:
        """What a conversation costs turn by turn: tokens of each part of memory in a prompt, next to sending all of it.

        ``to_frame()`` is the table behind it; tokens are estimated.
        """
        from workbench.parts.memory.figures import tokens

        newest = self._wb.runs.list(10_000, session_id=session, user_id=user)
        runs = [run for run in reversed(newest) if run.status == "done"]
        rows, said = list[dict[str, int]](), 0
        for turn, run in enumerate(runs, 1):
            row = {"turn": turn, **dict.fromkeys(("core", "summary", "episode", "history"), 0), "all": said}
            for part in run.remembered:
                row[part["part"]] += part["tokens"] if part["kept"] else 0
            rows.append(row)
            said += estimated_tokens([run.message, run.answer])
        labels = labels_for(runs[0].message if runs else "")
        return tokens(rows, labels("mem_costs", session=session), labels)

    # steering

    def edit(self, memory_id: str, content: str, *, user: str = "default", why: str = "") -> str:
        """Put another version in the place of a memory, which stays in the history; the id of the new one.

        What it is about, and whether it is liked, are read from the new text; where nothing of that is read they stay.

        Raises:
            WorkbenchError: there is no such memory that holds, or the text is empty.
        """
        who, old = clean(str(user)), self._held(memory_id, user)
        names = ("about", "attribute", "polarity")
        of = {name: str(dict(old)[name]) for name in names}
        if read := read_note(content):
            of = {name: getattr(read, name) or kept for name, kept in of.items()}
        elif old["section"] == "name":
            of["about"] = content
        of["polarity"] = of["polarity"] if old["section"] == "preferences" else old["polarity"]
        given: Any = {"replaces": [old["id"]], "why": why or "edited", **of}
        new = self._store.remember(who, old["section"], content, **given)
        if old["pinned"]:
            self._store.pin(who, new, True)
        return new

    def pin(self, memory_id: str, pinned: bool = True, *, user: str = "default") -> None:
        """Keep a memory whatever else is said, and first in a prompt; or, with ``pinned=False``, release that."""
        self._store.pin(user, memory_id, pinned)

    def invalidate(self, memory_id: str, why: str, *, user: str = "default") -> None:
        """Say that a memory does not hold any more, and why; it stays in the history.

        Raises:
            WorkbenchError: no reason is given, or there is no such memory that holds.
        """
        if not why.strip():
            raise WorkbenchError("Say why the memory does not hold any more: why='moved to another town'.")
        self._store.end(user, [self._held(memory_id, user)["id"]], why)

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
            Core memory as it is then.

        Raises:
            WorkbenchError: there is no such section, or nothing to write.
        """
        if section not in ("persona", "human", *HUMAN):
            raise WorkbenchError(
                f"There is no section {shown(section)} in core memory. Known: persona, human, {', '.join(HUMAN)}."
            )
        if isinstance(content, Mapping):
            for part, texts in content.items():
                for text in [texts] if isinstance(texts, str) else texts:
                    self.core_memory_update(part, text, user=user, author=author)
        else:
            self._update(clean(str(user)), section, str(content), author)
        return core_of(self._store.memories(clean(str(user))))

    def archival_memory_insert(self, content: str, *, user: str = "default", author: str = "person") -> str:
        """Keep a text for later: it is found by ``archival_memory_search``, and stands in a prompt while there is room.

        Returns:
            Its id.
        """
        return self._store.remember(user, "archival", content, author=author)

    def archival_memory_search(self, query: str, *, user: str = "default", limit: int = 5) -> list[Json]:
        """Return what was archived, noted or said earlier that fits a query, best first; as ``search``."""
        return [*self.search(query, user=user, limit=limit)]

    def tools(self, user: str = "default") -> list[Callable[..., Any]]:
        """The three tools over what is remembered of one person, for an agent: LangChain takes them as they are."""

        def core_memory_update(section: str, content: str) -> str:
            """Change what is always known of the person: section `persona`, `human`, `name`, `preferences`,
            `current_intent` or `facts`. What the new text contradicts is replaced."""
            return json.dumps(self.core_memory_update(section, content, user=user, author="agent"), ensure_ascii=False)

        def archival_memory_insert(content: str) -> str:
            """Keep a text for later. Gives its id."""
            return self.archival_memory_insert(content, user=user, author="agent")

        def archival_memory_search(query: str) -> str:
            """Search what was kept, noted or said earlier."""
            return json.dumps(self.archival_memory_search(query, user=user), ensure_ascii=False)

        return [core_memory_update, archival_memory_insert, archival_memory_search]

    def export(self, path: str | Path, *, user: str = "default", replace: bool = False) -> Path:
        """Write everything that is remembered of a person into a JSON file: memories with their history, summaries,
        messages.

        The file is a copy: what is forgotten in the workspace stays in it.

        Raises:
            WorkbenchError: another file is there and may not be replaced, or it cannot be written.
        """
        where, known = Path(path).expanduser(), self.view(user, ended=True).to_dict()
        for talk in known["conversations"]:
            talk["messages"] = self._store.list_messages(talk["id"])
        document = {"document": "workbench.memory/1", **known}
        text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        return write_file(where, text.encode(), replace=replace)

    # how it shows itself

    def __repr__(self) -> str:
        return str(self.view())

    def _repr_mimebundle_(self, **more: Any) -> dict[str, str]:
        return self.view()._repr_mimebundle_(**more)

    def _repr_html_(self) -> str:
        return self.view()._repr_html_()

    # inside

    def _moment(self, at: At, user: str, session: str | None) -> str | None:
        """A moment as the store writes it; of a turn, the one at which the next turn of its conversation began."""
        if isinstance(at, Run) or (isinstance(at, str) and at in self._wb.runs):
            run = at if isinstance(at, Run) else self._wb.run(at)
            return self._after(run.conversation_id, self._store.message_id(run.conversation_id, f"{run.run_id}:user"))
        if isinstance(at, int):
            if session is None:
                raise WorkbenchError("A turn is one of a conversation: name it with session=.")
            of = self._store.conversation_id(clean(str(user)), clean(session))
            asked = [m["id"] for m in self._store.list_messages(of) if m["role"] == "user"]
            if not 1 <= at <= len(asked):
                raise WorkbenchError(f"There is no turn {at} in {shown(session)}. It has {len(asked)}.")
            return self._after(of, asked[at - 1])
        return _written(at)

    def _after(self, conversation_id: str, message_id: str) -> str | None:
        ids = self._store.list_messages(conversation_id)
        place = next((n for n, m in enumerate(ids) if m["id"] == message_id), len(ids))
        return next((m["created_at"] for m in ids[place + 1 :] if m["role"] == "user"), None)

    def _source(self, message_id: str) -> Json:
        row = (self._store.source(message_id) if message_id else None) or {}
        return {"session": row.get("session_id", ""), "turn": row.get("turn"), "said": row.get("content", "")}

    def _row(self, memory: Memory, versions: Mapping[str, int]) -> Json:
        return {**memory, **self._source(memory["message_id"]), "version": versions[memory["id"]]}

    def _found(self, part: str, text: str, row: Data, similarity: float) -> Json:
        found = {"part": part, "id": row["id"], "text": text, "similarity": similarity}
        found |= self._source(row["message_id"])
        return {**found, "author": row.get("author", ""), "at": row["created_at"]}

    def _fitting(self, query: str, user: str) -> list[tuple[Memory, float]]:
        """Memories that hold, with the larger of the cosine and the share of the query's words."""
        held = self._store.memories(user)
        asked = content_stems(query)
        near = [len(asked & content_stems(m["content"])) / len(asked) if asked else 0.0 for m in held]
        if held:
            try:
                vectors = text_model(self._wb.settings).array([query, *(m["content"] for m in held)])
                near = [max(one, float(cosine)) for one, cosine in zip(near, vectors[1:] @ vectors[0], strict=True)]
            except ModelError as error:
                warnings.warn(f"Memories are searched by words alone: {error}", stacklevel=3)
        return [(m, round(one, 4)) for m, one in zip(held, near, strict=True)]

    def _summary(self, talk: Data, moment: str | None) -> Json | None:
        row = self._store.get_summary(talk["id"])
        if row is None or (moment is not None and row["updated_at"] > moment):
            return None
        names = ("author", "covered_message_count", "update_count", "created_at", "updated_at")
        return {"session_id": talk["session_id"], "text": row["summary"], **{name: row[name] for name in names}}

    def _held(self, memory_id: str, user: str) -> Memory:
        held = {m["id"]: m for m in self._store.memories(user)}
        if memory_id not in held:
            raise WorkbenchError(
                f"{shown(memory_id)} is no memory of {shown(user)} that holds. wb.memory.view() lists them."
            )
        return held[memory_id]

    def _update(self, user: str, section: str, content: str, author: str) -> None:
        """A new text in core memory, in the place of those that are about the same."""
        read = read_note(content)
        if section == "human":
            section = read.section if read else "facts"
        if section == "facts":  # as if the person had asked to remember it
            read = next(iter(read_preferences(f"remember that {content}")[0]), None)
        read = read if read and read.section == section else None
        free = [m for m in self._store.memories(user) if not m["pinned"] and m["section"] in HUMAN]
        same = [m["id"] for m in free if read and same_thing(read, as_statement(m))]
        of = {"about": read.about, "attribute": read.attribute, "polarity": read.polarity} if read else {}
        of = {"about": content, **of}
        self._store.remember(user, section, content, **of, author=author, replaces=same, why=content)


def _written(at: str | date | datetime | None) -> str | None:
    """Return a day (to its end) or a time, in UTC as the store writes it."""
    if at is None:
        return None
    try:
        if isinstance(at, str):
            at = date.fromisoformat(at) if _DAY.match(at) else datetime.fromisoformat(at)
    except ValueError:
        raise WorkbenchError(
            f"{shown(at)} is no moment. Give a turn with its session, the id of a run, or a day as 2026-01-31."
        ) from None
    if not isinstance(at, datetime):
        at = datetime.combine(at, time.max, UTC)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _versions(memories: Sequence[Memory]) -> dict[str, int]:
    """Return which version each memory is: one more than the one whose place it took."""
    found: dict[str, int] = {}
    for memory in memories:  # oldest first
        found.setdefault(memory["id"], 1)
        if after := memory["replaced_by"]:
            found[after] = max(found.get(after, 1), found[memory["id"]] + 1)
    return found


def _memory(wb: Any) -> Memories:
    """Return what is remembered of people and conversations: look at it, search, correct and undo it here."""
    return Memories(wb, store_of(wb), wb._clock.now)


memory = property(_memory)
"""``wb.memory``."""
