"""Recall: what an answer has of the conversation and of the person, in the order of the contract and within a budget.

Core memory, summary, earlier exchanges, and the last messages before the one that is answered. What did not fit, or was
switched off, is listed with its reason. The message itself is read too: what it says that is worth remembering, whether
it asks what was said before, and what of it is to be searched.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from math import log1p, sqrt
from typing import TYPE_CHECKING, Any, Literal

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from workbench.errors import WorkbenchError
from workbench.extensions import Service
from workbench.graphs.roles import ask_model
from workbench.graphs.slots import history_messages, history_text, numbered, window
from workbench.language.words import is_small_talk
from workbench.models import rerank
from workbench.models.embeddings import TextModel, text_model, word_vectors
from workbench.parts.memory.reading import question_to_memory, read_preferences
from workbench.parts.memory.store import Memory, MemoryStore, outdated
from workbench.parts.memory.views import Rows, prompt_blocks
from workbench.ports import Context, Remembering
from workbench.records.conversations import SqlConversations
from workbench.records.prompts import fenced
from workbench.records.tape import begun, estimated_tokens
from workbench.runs.driver import Driver
from workbench.runs.stored import Recording, prompts_of, snapshot
from workbench.settings import RULES, Settings
from workbench.state import ConversationState, Data, Json, MemoryQuestion, Message, Remembered
from workbench.text import (
    clean,
    closest,
    content_stems,
    detect_language,
    sentences,
    stems,
    unmarked,
)
from workbench.views.labels import Labels
from workbench.views.markup import cut

if TYPE_CHECKING:
    import numpy as np

    from workbench.parts.memory.ranking import Conversation


_PERSONAL = re.compile(
    r"\b(?:i|me|my|mine|we|us|our|you|your)\b|[我咱你您]|刚才|刚刚", re.IGNORECASE
)
"""Who speaks: a message that names neither of the two says nothing of a person, and asks nothing of a conversation."""
MOST_NOTED = 8
"""Notes of one message."""


async def recall(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Load what is remembered; the current message, stored already, is never among it."""
    context = runtime.context
    message = state.get("message", "")
    conversation = state.get("conversation_id", "")
    stored = window(state, context)
    history = history_messages(stored)
    request = question_to_memory(message, []) if context.settings.memory_core else None
    # by its own words a question about what was said would fit the earlier ones of that kind best
    sought = (request and request["about"]) or message
    recalled = await asyncio.to_thread(
        context.memory.recall,
        sought,
        user_id=state.get("user_id", ""),
        conversation_id=conversation,
        before=state.get("user_message_id") or None,
    )
    left_out = set(state.get("without", []))
    memories = [m for m in recalled["memories"] if m["id"] not in left_out]
    read = await noticed(context, message, history, memories)
    parts = assembled(recalled, stored, left_out, context, message)
    texts = prompt_lines(parts)
    episode_ids = {part["id"] for part in parts if part["kept"]}
    counts = {"history_count": len(history), "has_memory_context": bool(texts["core"])}
    counts |= {"has_summary": bool(texts["summary"]), "episodic_count": len(texts["episode"])}
    runtime.stream_writer({"history": counts})
    return {
        "history": history,
        "memory_context": "\n".join(texts["core"]),
        "conversation_summary": "\n".join(texts["summary"]),
        "episodic_memory": [e for e in recalled["episodes"] if e["id"] in episode_ids],
        "recalled_episodes": [e for e in recalled["episodes"] if e["id"] not in left_out],
        "known": memories,
        "remembered": parts,
        **read,
    }


def assembled(
    recalled: Data, stored: Sequence[Data], left_out: set[str], context: Context, message: str
) -> list[Remembered]:
    """Return all that was recalled, in the order of a prompt, with what is in it and why the rest is not.

    The budget goes to core memory first, the newest before what is older, then to the last messages from the newest on,
    to the summary, and to exchanges by how well they fit. Of what was archived only that is recalled which shares a
    word with the message.
    """
    # Earlier exchanges that a prompt includes.
    most_episodes = 2
    labels = Labels(detect_language(message))
    core = []
    words = content_stems(message)
    for memory in recalled["memories"]:
        if memory["section"] != "archival" or words & content_stems(memory["content"]):
            text = labels(f"core_{memory['section']}") + labels("colon") + memory["content"]
            core.append(prompt_part("core", text, memory, message_id=memory["message_id"]))
    row = recalled["summary"]
    summary = [prompt_part("summary", row["summary"], {**row, "id": "summary"})] if row else []
    episodes = [
        prompt_part(
            "episode",
            told_episode(episode, message),
            episode,
            message_id=episode["user_message_id"],
        )
        for episode in recalled["episodes"]
        if not episode["shown"]
    ]
    history = [
        prompt_part("history", row["content"], row, message_id=row["id"]) for row in stored
    ]
    left = context.settings.memory_token_budget
    shown = 0
    for entry in [*reversed(core), *reversed(history), *summary, *episodes]:
        why = "budget" if entry["tokens"] > left else ""
        if entry["id"] in left_out:
            why = "left_out"
        if entry["part"] == "episode" and not why:
            why = "enough" if shown >= most_episodes else ""
            shown += 1
        left -= 0 if why else entry["tokens"]
        entry["kept"], entry["why"] = not why, why
    return [*core, *summary, *episodes, *history]


def prompt_part(part: str, text: str, row: Data, message_id: str = "") -> Remembered:
    """Return a part of a prompt from the row that it is made of."""
    return Remembered(
        part=part,
        id=row["id"],
        text=text,
        tokens=estimated_tokens(text),
        kept=True,
        why="",
        at=row.get("updated_at") or row["created_at"],
        score=round(row.get("similarity", 1.0), 3),
        author=row.get("author") or row.get("role", ""),
        message_id=message_id,
        content=row.get("content", text),
    )


def prompt_lines(parts: Sequence[Remembered]) -> dict[str, list[str]]:
    """Return what a prompt has of core memory, the summary and earlier exchanges."""
    texts: dict[str, list[str]] = {"core": [], "summary": [], "episode": []}
    for part in parts:
        if part["kept"] and part["part"] in texts:
            texts[part["part"]].append(part["text"])
    return texts


def prompt_text(state: Data, language: str) -> str:
    """Return what is remembered for the prompt, in the order of the contract; "" for nothing."""
    labels = Labels(language)
    texts = prompt_lines(state.get("remembered") or []).items()
    return "\n\n".join(
        "\n".join([labels(f"prompt_{part}"), *map(clean, lines)])
        for part, lines in texts
        if lines
    )


def told_episode(episode: Data, message: str) -> str:
    """Return an exchange in a line, as the requirement has it: of each message the sentence that fits best."""
    # Characters of a message of an earlier exchange.
    excerpt = 120
    messages = (
        " ".join(clean(str(episode[part])).split())
        for part in ("user_message", "assistant_message")
    )
    return "- " + " → ".join(cut(closest(message, sentences(text)), excerpt) for text in messages)


# --- What a message says of the person, and what it asks of the conversation ---


class Note(BaseModel, extra="forbid"):
    """Something to be remembered."""

    section: Literal["name", "preferences", "current_intent", "facts"]
    content: str = Field(min_length=1, max_length=200)
    about: str = Field(min_length=1, max_length=80)
    polarity: Literal["like", "dislike", ""] = ""
    replaces: list[int] = Field(default_factory=list, max_length=5)


class Read(BaseModel, extra="forbid"):
    """What the memory's model fills in."""

    notes: list[Note] = Field(max_length=MOST_NOTED)
    question: str = Field(max_length=500)
    asks_what_was_said: bool
    about: str = Field("", max_length=100)


async def noticed(
    context: Context, message: str, history: Sequence[Message], memories: Sequence[Memory]
) -> Json:
    """Return what of the message is to be remembered, what it asks memory, and what is left to search."""
    if not context.settings.memory_core:
        return {"noted": [], "recalls": None, "to_search": message}
    # a model is not asked about every question
    speaks_of_person = "memory" in context.models and _PERSONAL.search(message)
    if speaks_of_person and (read := await _by_model(context, message, history, memories)):
        return read
    return by_rules(message, memories)


def by_rules(message: str, memories: Sequence[Memory] = ()) -> Json:
    """Return what ``noticed`` does, without a model."""
    notes, rest = read_preferences(message)
    return {
        "noted": notes[:MOST_NOTED],
        "recalls": None if notes else question_to_memory(message, memories),
        "to_search": message if rest else "",
    }


async def _by_model(
    context: Context, message: str, history: Sequence[Message], memories: Sequence[Memory]
) -> Json | None:
    slots = {
        "known": fenced(numbered([f"{m['section']}: {m['content']}" for m in memories])),
        "history": fenced(history_text(history, context.settings.history_window)),
        "message": message,
    }
    reply = await ask_model(context, "memory", Read, slots, question=message)
    if reply.form is None:
        return None
    noted = []
    for note in reply.form.notes:
        replaced = [memories[n - 1]["id"] for n in note.replaces if 1 <= n <= len(memories)]
        noted.append({**note.model_dump(), "replaces": replaced})
    recalls = (
        MemoryQuestion(about=reply.form.about, whose="", notes=None)
        if reply.form.asks_what_was_said
        else None
    )
    return {
        "noted": noted,
        "recalls": recalls,
        "to_search": reply.form.question.strip() if noted else message,
    }


# what a run had of memory: of which parts its prompt is made, and what was left out of it


def prompt_parts(run: Recording) -> Rows:
    """Return the parts of the writer's prompt in their order, and what of memory was left out of it, with why.

    Where no model writes it is what one would be sent. A row has ``part`` (``system``, ``core``, ``summary``,
    ``episode``, ``evidence``, ``history`` or ``question``), ``id``, ``text``, ``tokens`` (``estimated_tokens``),
    ``kept``, ``why`` not (``budget``, ``enough`` or ``left_out``), ``sent`` (to a model), ``at``, ``author``, and the
    ``session`` and ``turn`` in which it was said, its ``content``, the ``conditions`` that it became,
    whether it is ``quoted`` in the answer, and ``unused``: the rules, which alone worked, did neither.
    """
    from workbench.graphs.slots import evidence_text

    run = snapshot(run)
    prompt = prompts_of(run).for_language("writer", detect_language(run.message))
    default = Settings.model_fields["merge_max_characters"].default
    limit = (begun(run.tape()).get("settings") or {}).get("merge_max_characters") or default
    frame = re.sub(r"\$\{?\w+\}?", "", prompt.user)
    store = find_store(run._workspace, run.run_id)
    calls = run.calls()
    question = (run.state.get("route_decision") or {}).get("question") or {}
    quoted = (run.state.get("recalls") or {}).get("notes") or ()
    by_rules = not calls and "report" not in run.options
    sent = any(call["role"] == "writer" for call in calls)
    recalled = run.state.get("remembered", [])
    parts = [
        _part("system", f"{prompt.system}\n{frame}"),
        *(part for part in recalled if part["part"] != "history"),
    ]
    if run.evidence:
        parts.append(_part("evidence", evidence_text(run.evidence, int(limit))))
    parts += [part for part in recalled if part["part"] == "history"]
    rows = []
    for part in [*parts, _part("question", run.message)]:
        row = {**part, **store.source(part["message_id"]), "sent": sent}
        row["conditions"] = question.get("preferences", {}).get(part["id"], [])
        row["quoted"] = part["id"] in quoted
        used = row["conditions"] or row["quoted"]
        row["unused"] = by_rules and part["part"] == "core" and not used
        rows.append(row)
    return Rows(rows, run.message, prompt_blocks)


def _part(name: str, text: str) -> Remembered:
    """Return a part that is not of memory."""
    return prompt_part(name, text, {"id": name, "created_at": ""})


# Memory while a workspace is open: it recalls for runs, and keeps up with what was said once they have ended.
#
# What is remembered, for a question: memories of the person, the summary, and the earlier exchanges that fit best.
# Exchanges are ranked over the turns of a conversation, or of all of a user's, which are kept in memory for the
# conversations asked of last and follow the store with each call. Vectors come later, with ``embed``: an exchange that
# has none yet is found by its words among those that have one, and so is every one where the embedding model fails.
#
# What a message says of the person is noted when it has been answered, by a run of its own alone: forks and replays
# write nothing. Summaries are written after the answer.


_PARTS = ("user_message", "assistant_message")


class Recalling:
    """Recalls from one store. Safe from any thread.

    Args:
        store: what is kept.
        settings: which parts are on, and how much is recalled.
        model: the embedding model; that of the settings when None.
        counted: called with ``vector_search`` and the seconds that it took.
    """

    def __init__(
        self,
        store: MemoryStore,
        settings: Settings,
        model: TextModel | None = None,
        counted: Callable[[str, float], object] = lambda name, seconds: None,
    ):
        self.store = store
        self._settings = settings
        self._given = model
        self._counted = counted
        self.remember = store.remember
        self._held: dict[str, _Talk] = {}
        self._lock = threading.Lock()
        self._embedding = threading.Lock()
        self._refused = set[str]()
        """Episodes that the model does not take though it answers."""

    @property
    def _model(self) -> TextModel:
        if self._given is None:
            self._given = text_model(self._settings)
        return self._given

    def recall(
        self, message: str, *, user_id: str, conversation_id: str, before: str | None = None
    ) -> Json:
        """See ``ports.Remembering``; parts that are switched off are empty."""
        settings = self._settings
        history = (
            self.store.memories(user_id, ended=True) if settings.memory_core and user_id else []
        )
        memories = [memory for memory in history if memory["ended_at"] is None]
        summary = self.store.get_summary(conversation_id) if settings.memory_summary else None
        if summary and outdated(summary, history):
            summary = None  # until it is made again
        episodes = []
        note = ""
        if settings.memory_episodes and conversation_id:
            scope = "" if settings.memory_scope == "user" else conversation_id
            begun = time.perf_counter()
            fitting, note = self.find(message, user_id, scope, before)
            self._counted("vector_search", time.perf_counter() - begun)
            window = self.store.list_messages(
                conversation_id, settings.history_window, before=before
            )
            shown = {message["id"] for message in window}
            left = settings.memory_top_k
            for episode in fitting:
                in_window = episode["user_message_id"] in shown
                if in_window or left > 0:
                    episodes.append({**episode, "shown": in_window})
                left -= not in_window
        return {"memories": memories, "summary": summary, "episodes": episodes, "note": note}

    def find(
        self, message: str, user_id: str, conversation_id: str = "", before: str | None = None
    ) -> tuple[list[Json], str]:
        """Return the exchanges that fit best with their ``similarity``, and what failed.

        Of all of a user's where no conversation is named. ``similarity`` is the larger of the cosine of the nearer
        message and the share of the question's words.
        """
        if not self.store.count_episodes(conversation_id, user_id)[0]:
            return [], ""  # nothing is embedded, and NumPy is not loaded
        # Exchanges of which the similarity is looked at.
        looked_at = 50
        today = datetime.fromisoformat(self.store.time())
        days = self._settings.memory_days
        since = (today - timedelta(days=days)).isoformat() if days else ""
        with self._lock:
            talk, vector, note = self._lookup(message, conversation_id, user_id)
            results = {}
            for episode_id in talk.turns.rank(message, vector, today=today.date().isoformat()):
                episode = talk.episodes[episode_id]
                earlier = episode["user_message_id"] != before and episode["created_at"] >= since
                if earlier and episode_id not in results:
                    results[episode_id] = _result(episode, message, vector)
                if len(results) == looked_at:
                    break
        return [
            row for row in results.values() if row["similarity"] >= self._settings.memory_least
        ], note

    def _lookup(
        self, message: str, conversation_id: str, user_id: str
    ) -> tuple[_Talk, np.ndarray | None, str]:
        """Return what is in memory, and the vector of the question; without it where the model fails."""
        # Exchanges embedded while a question waits.
        inline = 8
        model = ""
        vector = None
        note = "recalled by words alone"
        try:
            model = self._model.name
            vector = self._model.array([message])[0]
            note = "recalled by words where there is no vector yet"
            if len(self.store.unembedded(model, inline + 1, conversation_id, user_id)) <= inline:
                self.embed(conversation_id, user_id)
            note = ""
        except WorkbenchError as error:  # words do without
            note = f"{note}: {error}"
        return self._follow(conversation_id, user_id, model), vector, note

    def _follow(self, conversation_id: str, user_id: str, model: str) -> _Talk:
        """Return what is kept in memory of a conversation, with what has come since.

        It is read again where an exchange of it was forgotten, or has a vector since.
        """
        # Conversations in memory.
        cached = 100
        # NumPy is loaded at the first question
        from workbench.parts.memory.ranking import Conversation

        key = conversation_id or f"user:{user_id}"
        talk = self._held.pop(key, None)
        counts = (
            self.store.count_episodes(conversation_id, user_id, model, talk.last)
            if talk
            else None
        )
        if talk is None or counts != (len(talk.episodes), talk.embedded):
            talk = _Talk(Conversation(self._words if model else None))
        talk.add(self.store.episodes(conversation_id, user_id, talk.last, model))
        while len(self._held) >= cached:
            del self._held[next(iter(self._held))]
        self._held[key] = talk
        return talk

    @property
    def _words(self) -> rerank.WordVectors | None:
        """Return the vectors of words, where the reranker has them."""
        if not rerank.available(self._settings, self._model.name):
            return None
        return lambda words: word_vectors(self._model, list(words))

    def forget(self) -> None:
        """Release everything in memory."""
        with self._lock:
            self._held.clear()

    def embed(self, conversation_id: str, user_id: str = "") -> int:
        """Give exchanges that have none their vectors; how many got them.

        Those of a conversation or of a person alone, where one is named. An exchange that the model refuses, though it
        answers, is left out until the next start.

        Raises:
            ModelError: the model does not answer.
        """
        # Exchanges embedded at once.
        batch = 64
        done = 0
        size = batch
        with self._embedding:
            while new := self.store.unembedded(
                self._model.name, size, conversation_id, user_id, self._refused
            ):
                try:
                    rows = self._model.array([e[part] for e in new for part in _PARTS])
                except WorkbenchError:
                    self._model.array(["ok"])  # raises where nothing is answered
                    self._refused |= {new[0]["id"]} if len(new) == 1 else set()
                    size = max(1, len(new) // 4)
                    continue
                pairs = ((e["id"], rows[2 * n : 2 * n + 2].tobytes()) for n, e in enumerate(new))
                self.store.save_vectors(pairs, self._model.name)
                done += len(new)
        return done

    async def keep_up(self, user_id: str, waits: Sequence[float] = (0.0,)) -> bool:
        """Embed what is new of a user, waiting so many seconds before each attempt; False where no model answered."""
        for seconds in waits:
            await asyncio.sleep(seconds)
            with suppress(WorkbenchError):
                await asyncio.to_thread(self.embed, "", user_id)
                return True
        return False


@dataclass
class _Talk:
    """The exchanges of one conversation in memory, and their turns to be ranked."""

    turns: Conversation
    episodes: dict[str, Json] = field(default_factory=dict)
    last: int = 0
    embedded: int = 0

    def add(self, new: Sequence[Json]) -> None:
        """Take in what is new."""
        from workbench.parts.memory.ranking import Turn

        for episode in new:
            day = episode["created_at"][:10]
            vectors = _vectors(episode)
            session = f"{episode['conversation_id']} {day}"
            for number, part in enumerate(_PARTS):
                turn = Turn(episode["id"], session, day, part.partition("_")[0], episode[part])
                self.turns.add(turn, None if vectors is None else vectors[number])
            self.episodes[episode["id"]], self.last = episode, episode["position"]
            self.embedded += vectors is not None


def _vectors(episode: Json) -> np.ndarray | None:
    import numpy as np

    if episode["vector"] is None:
        return None
    return np.frombuffer(episode["vector"], np.float32).reshape(2, -1)


def _result(episode: Json, message: str, vector: np.ndarray | None) -> Json:
    """Return an exchange with how near its nearer message is to the question, without its vectors."""
    result = dict(episode)
    vectors = _vectors(episode)
    share = word_share(message, f"{episode['user_message']} {episode['assistant_message']}")
    cosines = [] if vectors is None or vector is None else (vectors @ vector).tolist()
    del result["vector"]
    return {**result, "similarity": round(max([share, *cosines]), 4)}


def word_share(query: str, text: str) -> float:
    """Return the share of a query's words that a text has."""
    wanted = content_stems(query)
    return len(wanted & stems(text)) / len(wanted) if wanted else 0.0


class MemoryService(Service):
    """Recalls from the conversations of each driver; what is remembered incognito is another's."""

    def __init__(self, wb: Any):
        super().__init__(wb)
        self._recalling: dict[SqlConversations, Recalling] = {}
        self._keeping: list[Future[None]] = []
        self._retrying: Future[bool] | None = None
        self._summing = asyncio.Lock()
        self.recalling(wb._work.durable)  # from now on each answer is an episode

    def recalling(self, driver: Driver) -> Recalling:
        """Return what recalls from the store of a driver."""
        store = driver.conversations
        if store not in self._recalling:
            self._recalling[store] = Recalling(
                MemoryStore(store), self._wb.settings, counted=self._wb._counted
            )
        return self._recalling[store]

    def memory(self, driver: Driver, memory: Any) -> Any:
        """Return the memory that the user registered, else this one; episodes are stored either way."""
        recalling = self.recalling(driver)
        return memory or recalling

    def cleared(self) -> None:
        """Release what was read of conversations."""
        for recalling in self._recalling.values():
            recalling.forget()

    def ended(self, run: Any) -> None:
        """Begin to bring up what is remembered of the conversation of a run; a fork or a replay adds nothing."""
        if run.status == "done" and "tape" not in run.options:
            self._keeping = [work for work in self._keeping if not work.done()]
            self._keeping.append(self._wb._work.loop.submit(self._keep_up(run.run_id)))

    async def _keep_up(self, run_id: str) -> None:
        """Add vectors for new exchanges, and a summary where it is due; no answer waits for it."""
        # Waits before each new attempt to embed in the background.
        retries_s = (1.0, 2.0, 4.0)
        driver = self._wb._work.driver(run_id)
        row = driver.runs.get(run_id)
        recalling = self.recalling(driver)
        conversation_id = row["conversation_id"]
        user_id = row["user_id"]
        # a greeting gets its vectors with what is said next
        answered = is_small_talk(row["message"]) or await recalling.keep_up(user_id)
        if not answered and (self._retrying is None or self._retrying.done()):
            self._retrying = self._wb._work.loop.submit(recalling.keep_up(user_id, retries_s))
        context = self._wb._context(driver)
        async with self._summing:
            begun = time.perf_counter()
            author = await bring_up(context, recalling.store, conversation_id, user_id)
            if author:  # it was due
                self._wb._counted("summary_generation", time.perf_counter() - begun)
            if author == RULES and "summarizer" in context.models:
                self._wb._counted("summary_generation", None)

    def close(self) -> None:
        """Wait for what is under way; what is not done by then is done with the next exchange."""
        # How long closing waits for summaries and vectors that are under way.
        wait(self._keeping, timeout=10)
        if self._retrying:
            self._retrying.cancel()


def find_recalling(wb: Any, run_id: str = "") -> Recalling:
    """Return what recalls in an open workspace; of a run that is incognito, from what is remembered there."""
    service = wb._services["memory"]
    return service.recalling(wb._work.driver(run_id))


def find_store(wb: Any, run_id: str = "") -> MemoryStore:
    """Return what is remembered in an open workspace; of a run that is incognito, what is remembered there."""
    return find_recalling(wb, run_id).store


def keep_noted(memory: Remembering, state: Data, author: str) -> None:
    """Write down what the message said of the person; running again writes it once."""
    source = {"conversation_id": state["conversation_id"], "message_id": state["user_message_id"]}
    for number, note in enumerate(state.get("noted") or []):
        memory.remember(
            state["user_id"], author=author, key=f"{state['run_id']}:{number}", **note, **source
        )


# --- The summary of a conversation, brought up to date when an answer is there ---


class SummedUp(BaseModel, extra="forbid"):
    """What the summarizer fills in."""

    summary: str = Field(min_length=1, max_length=2_000)


def due(count: int, covered: int, *, begins: int, window: int, every: int) -> bool:
    """Return whether a summary is due: enough messages have left the window since it was.

    >>> [n for n in range(9, 25) if due(n, 0 if n < 12 else 6, begins=10, window=6, every=5)]
    [10, 11, 17, 18, 19, 20, 21, 22, 23, 24]
    """
    return count >= begins and count - window - covered >= (every if covered else 1)


async def bring_up(context: Context, store: Any, conversation_id: str, user_id: str) -> str:
    """Sum up what has left the window of a conversation, if that is due; by whom, or "" where it was not.

    Incremental, and of all messages again at every tenth time. Where the model fails the rules do it.
    """
    # Updates after which a summary is made of all messages again.
    rebuild_every = 10
    settings = context.settings
    window = settings.history_window
    old = store.get_summary(conversation_id)
    count = store.count_messages(conversation_id)
    covered = old["covered_message_count"] if old else 0
    limits = {"begins": settings.summary_from, "window": window, "every": settings.summary_every}
    of_user = store.memories(user_id, ended=True) if settings.memory_core and user_id else []
    stale = old is not None and outdated(old, of_user)
    if not settings.memory_summary or not (stale or due(count, covered, **limits)):
        return ""
    rebuild = old is None or stale or (old["update_count"] + 1) % rebuild_every == 0
    messages = store.list_messages(conversation_id)[: count - window]
    fresh = messages if rebuild else messages[covered:]
    before = "" if rebuild else old["summary"]
    author = RULES
    if "summarizer" in context.parts:
        text = str(await context.parts["summarizer"](before, fresh)).strip()
        author = "summarizer"
    elif (
        text := await _summed_by_model(context, before, fresh)
        if "summarizer" in context.models
        else ""
    ):
        author = settings.role_model("summarizer")
    if not text:
        text = summarize(_of_the_corpus(messages, of_user))
    store.save_summary(conversation_id, text, len(messages), author, [m["id"] for m in messages])
    return author


async def _summed_by_model(context: Context, old: str, messages: Sequence[Data]) -> str:
    text = "\n".join(f"{m['role']}: {' '.join(m['content'].split())[:1_000]}" for m in messages)
    slots = {"summary": fenced(old) or "—", "messages": fenced(text)}
    reply = await ask_model(
        context, "summarizer", SummedUp, slots, question=messages[-1]["content"], quiet=True
    )
    return reply.form.summary.strip() if reply.form else ""


def _of_the_corpus(messages: Sequence[Data], notes: Sequence[Any]) -> list[Data]:
    """Return messages without what memory was asked and answered: that is in memory, and may not hold any more."""
    to_memory = [
        m["role"] == "user" and question_to_memory(str(m["content"]), notes) is not None
        for m in messages
    ]
    answered = [False, *to_memory]
    return [
        m
        for m, question, answer in zip(messages, to_memory, answered, strict=False)
        if not (question or answer)
    ]


LONGEST = 180
"""Characters of a sentence that is chosen."""
_HEADS = {"en": ("Asked: ", "Found: ", "Asked last: "), "zh": ("问过：", "查明：", "最近问：")}
_REFUSED = re.compile(
    r"corpus does not say|^nothing (?:here|in)\b|没有(?:提到|找到|记过)|资料库里?没有",
    re.IGNORECASE,
)

_FORGETS = re.compile(r"^\W*(?:please )?forget\b|忘[掉了记]", re.IGNORECASE)


def summarize(messages: Sequence[Data]) -> str:
    """Return the question most spoken of, what answered it, and the newest question; without a model, and nothing about
    the person: that is in core memory, and a summary would keep what has been taken back.

    Args:
        messages: oldest first, each with ``role`` (``user`` or ``assistant``) and ``content``.

    >>> asked = [{"role": "user", "content": "Who wrote Emma?"},
    ...          {"role": "assistant", "content": "Jane Austen wrote Emma in 1815 [1]."}]
    >>> print(summarize(asked))
    Asked: Who wrote Emma?
    Found: Jane Austen wrote Emma in 1815.
    """
    words = Counter(
        word for message in messages for word in content_stems(str(message["content"]))
    )
    questions = list(_questions(messages))
    if not questions:
        return ""
    # of equal ones the first: the topic
    sentence, answer = max(questions, key=lambda pair: _weight(pair[0], words))
    newest = questions[-1][0]
    lines = [sentence, _best(answer, sentence), newest if newest != sentence else ""]
    heads = _HEADS[detect_language(sentence)]
    return "\n".join(f"{head}{line}" for head, line in zip(heads, lines, strict=True) if line)


def _questions(messages: Sequence[Data]) -> Iterator[tuple[str, str]]:
    """Yield the sentences of the person that are to be answered, each with the answer that follows."""
    nothing = {"role": "", "content": ""}
    for message, following in pairwise([*messages, nothing]):
        if message["role"] != "user" or is_small_talk(message["content"]):
            continue
        answer = str(following["content"]) if following["role"] == "assistant" else ""
        for sentence in sentences(read_preferences(str(message["content"]))[1]):
            if (
                len(sentence) <= LONGEST
                and content_stems(sentence)
                and not _FORGETS.search(sentence)
            ):
                yield sentence, answer


def _best(answer: str, question: str) -> str:
    """Return the sentence of an answer that has most of the question's words; "" where it only refuses."""
    plain = [unmarked(sentence).strip() for sentence in sentences(answer)]
    plain = [
        sentence
        for sentence in plain
        if 8 <= len(sentence) <= LONGEST and not _REFUSED.search(sentence)
    ]
    return closest(question, plain)


def _weight(sentence: str, counts: Counter[str]) -> float:
    """Return how much a sentence is about what the conversation speaks of again and again."""
    words = content_stems(sentence)
    return sum(log1p(counts[word]) for word in words) / sqrt(len(words))
