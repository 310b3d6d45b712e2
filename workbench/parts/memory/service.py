"""Memory while a workspace is open: it recalls for runs, and keeps up with what was said once they have ended.

What is remembered, for a question: memories of the person, the summary, and the earlier exchanges that fit best.
Exchanges are ranked over the turns of a conversation, or of all of a user's, which are kept in memory for the
conversations asked of last and follow the store with each call. Vectors come later, with ``embed``: an exchange that
has none yet is found by its words among those that have one, and so is every one where the embedding model fails.

What a message says of the person is noted when it has been answered, by a run of its own alone: forks and replays
write nothing. Summaries are written after the answer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from workbench.errors import WorkbenchError
from workbench.extensions import Service
from workbench.graphs.roles import ask_model
from workbench.language.words import is_small_talk
from workbench.models import rerank
from workbench.models.embeddings import TextModel, text_model, word_vectors
from workbench.parts.memory.reading import question_to_memory
from workbench.parts.memory.store import MemoryStore, outdated
from workbench.parts.memory.summarizing import summarize
from workbench.ports import Context, Remembering
from workbench.records.conversations import SqlConversations
from workbench.records.prompts import fenced
from workbench.runs.driver import Driver
from workbench.settings import RULES, Settings
from workbench.state import Data, Json
from workbench.text import content_stems, stems

if TYPE_CHECKING:
    import numpy as np

    from workbench.parts.memory.ranking import Conversation

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
            recalled = [e["id"] for e in fitting if e["user_message_id"] not in shown][
                : settings.memory_top_k
            ]
            for episode in fitting:
                if (in_window := episode["user_message_id"] in shown) or episode[
                    "id"
                ] in recalled:
                    episodes.append({**episode, "shown": in_window})
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
        text := await _by_model(context, before, fresh) if "summarizer" in context.models else ""
    ):
        author = settings.role_model("summarizer")
    if not text:
        text = summarize(_of_the_corpus(messages, of_user))
    store.save_summary(conversation_id, text, len(messages), author, [m["id"] for m in messages])
    return author


async def _by_model(context: Context, old: str, messages: Sequence[Data]) -> str:
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
    answered = [False, *to_memory][: len(messages)]
    return [
        m
        for m, question, answer in zip(messages, to_memory, answered, strict=True)
        if not (question or answer)
    ]
