"""Memory while a workspace is open: it recalls for runs, and keeps up with what was said once they have ended.

What is remembered, for a question: memories of the person, the summary, and the earlier exchanges that fit best.
Exchanges are ranked over the turns of a conversation, or of all of a user's, which are kept in memory for the
conversations asked of last and follow the store with each call. Vectors come later, with ``embed``: an exchange that
has none yet is found by its words among those that have one, and so is every one where the embedding model fails.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.extensions import Service
from workbench.models import rerank
from workbench.models.embeddings import TextModel, text_model, word_vectors
from workbench.parts.memory.ranking import Conversation, Ranked, Turn
from workbench.parts.memory.store import Episode, Memory, MemoryStore, outdated
from workbench.records.conversations import SqlConversations
from workbench.runs.driver import Driver
from workbench.settings import Settings
from workbench.state import Json
from workbench.text import content_stems, stems

if TYPE_CHECKING:
    import numpy as np

_CACHED, _BATCH, _INLINE, _LOOKED_AT = 100, 64, 8, 50
"""Conversations in memory; exchanges embedded at once, and while a question waits; exchanges of which the similarity is
looked at."""
RETRIES_S = (1.0, 2.0, 4.0)
"""Waits before each new attempt to embed in the background."""
_PARTS = ("user_message", "assistant_message")


class Recalling:
    """Recalls from one store. Safe from any thread.

    Args:
        store: what is kept.
        settings: which parts are on, and how much is recalled.
        now: the clock.
        model: the embedding model; that of the settings when None.
    """

    def __init__(
        self,
        store: MemoryStore,
        settings: Settings,
        now: Callable[[], datetime],
        model: TextModel | None = None,
    ):
        self.store, self._settings, self._now, self._given = store, settings, now, model
        self.remember, self.end = store.remember, store.end
        self._held: OrderedDict[str, _Talk] = OrderedDict()
        self._lock, self._embedding = threading.Lock(), threading.Lock()
        self._refused, self._begun = set[str](), set[str]()
        """Episodes that the model does not take though it answers; users whose episodes were looked through."""

    @property
    def _model(self) -> TextModel:
        if self._given is None:
            self._given = text_model(self._settings)
        return self._given

    def recall(self, message: str, *, user_id: str, conversation_id: str, before: str | None = None) -> Json:
        """See ``ports.Remembering``; parts that are switched off are empty."""
        settings = self._settings
        history: list[Memory] = self.store.memories(user_id, ended=True) if settings.memory_core and user_id else []
        memories = [memory for memory in history if memory["ended_at"] is None]
        summary = self.store.get_summary(conversation_id) if settings.memory_summary else None
        if summary and outdated(summary, history):
            summary = None  # until it is made again
        episodes, note = list[Json](), ""
        if settings.memory_episodes and conversation_id:
            episodes, note = self.episodes(message, user_id, conversation_id, before)
        return {"memories": memories, "summary": summary, "episodes": episodes, "note": note}

    def episodes(
        self, message: str, user_id: str, conversation_id: str, before: str | None = None
    ) -> tuple[list[Json], str]:
        """Return the exchanges that fit best with their ``similarity``, and what failed; ``shown`` are in the window.

        ``similarity`` is the larger of the cosine of the nearer message and the share of the question's words.
        """
        settings = self._settings
        of_user = settings.memory_scope == "user"
        window = {m["id"] for m in self.store.list_messages(conversation_id, settings.history_window, before=before)}
        today = self._now()
        since = (today - timedelta(days=settings.memory_days)).isoformat() if settings.memory_days else ""
        with self._lock:
            talk, vector, note = self._lookup(message, "" if of_user else conversation_id, user_id)
            ranked = talk.turns.rank(message, vector, today=today.date().isoformat())
            results = list[Json]()
            for episode in itertools.islice(talk.first(ranked, before, since), _LOOKED_AT):
                episode_id = episode["id"]
                similarity = talk.similarity(episode_id, message, vector)
                shown = episode["user_message_id"] in window
                if similarity >= settings.memory_least:
                    results.append({**episode, "similarity": round(similarity, 4), "shown": shown})
                if sum(not result["shown"] for result in results) == settings.memory_top_k:
                    break
        return results, note

    def _lookup(self, message: str, conversation_id: str, user_id: str) -> tuple[_Talk, np.ndarray | None, str]:
        """Return what is in memory, and the vector of the question; without it where the model fails."""
        try:
            vector = self._model.array([message])[0]
        except WorkbenchError as error:  # words do without
            return self._follow(conversation_id, user_id, ""), None, f"recalled by words alone: {error}"
        note = ""
        try:
            waiting = self.store.unembedded(self._model.name, _INLINE + 1, conversation_id, user_id)
            if len(waiting) <= _INLINE:
                self.embed(conversation_id, user_id)
        except WorkbenchError as error:
            note = f"recalled by words where there is no vector yet: {error}"
        return self._follow(conversation_id, user_id, self._model.name), vector, note

    def _follow(self, conversation_id: str, user_id: str, model: str) -> _Talk:
        """Return what is kept in memory of a conversation, with what has come since."""
        key = f"{conversation_id or f'user:{user_id}'} {model}"
        talk = self._held.pop(key, None)
        new = self.store.episodes(conversation_id, user_id, after=talk.last - 1 if talk else 0)
        if talk and talk.matches_store(new, self.store.count_episodes(conversation_id, user_id, talk.last)):
            new = new[1:]
        else:  # of what was forgotten nothing stays in memory
            talk = _Talk(self._words if model else None)
            new = self.store.episodes(conversation_id, user_id)
        while len(self._held) >= _CACHED:
            self._held.popitem(last=False)
        talk.add(new)
        if model and talk.blank:
            talk.place(self.store.vectors(list(talk.blank), model))
        self._held[key] = talk
        return talk

    @property
    def _words(self) -> Callable[[Sequence[str]], np.ndarray] | None:
        """Return the vectors of words, where the reranker has them."""
        if not rerank.available(self._settings, self._model.name):
            return None
        return lambda words: word_vectors(self._model, list(words))

    def forget(self) -> None:
        """Release everything in memory."""
        with self._lock:
            self._held.clear()

    def embed(self, conversation_id: str = "", user_id: str = "") -> int:
        """Give exchanges that have none their vectors; how many got them.

        Those of a conversation or of a person alone, where one is named. An exchange that the model refuses, though it
        answers, is left out until the next start.

        Raises:
            ModelError: the model does not answer.
        """
        done, size = 0, _BATCH
        with self._embedding:
            while new := self.store.unembedded(self._model.name, size, conversation_id, user_id, self._refused):
                try:
                    rows = self._model.array([e[part] for e in new for part in _PARTS])  # type: ignore[literal-required]
                except WorkbenchError:
                    self._model.array(["ok"])  # raises where nothing is answered
                    self._refused |= {new[0]["id"]} if len(new) == 1 else set()
                    size = max(1, len(new) // 4)
                    continue
                pairs = ((e["id"], rows[2 * n : 2 * n + 2].tobytes()) for n, e in enumerate(new))
                self.store.save_vectors(pairs, self._model.name)
                done += len(new)
        return done

    async def keep_up(self, conversation_id: str, user_id: str, waits: Sequence[float] = (0.0,)) -> bool:
        """Embed what is new of a conversation, and once per process all of a user's; False where no model answered.

        Args:
            conversation_id: the conversation.
            user_id: whose it is.
            waits: seconds before each attempt.
        """
        whose = (conversation_id, "") if user_id in self._begun else ("", user_id)
        for seconds in waits:
            await asyncio.sleep(seconds)
            with suppress(WorkbenchError):
                await asyncio.to_thread(self.embed, *whose)
                self._begun.add(user_id)
                return True
        return False


class _Talk:
    """The exchanges of one conversation in memory, and their turns to be ranked."""

    def __init__(self, words: Callable[[Sequence[str]], np.ndarray] | None):
        self.turns, self.last = Conversation(words), 0
        self.episodes: dict[str, Episode] = {}
        self.blank: dict[str, int] = {}
        """Episodes without a vector, with the number of their first turn."""
        self._vectors: dict[str, np.ndarray] = {}

    def add(self, new: Sequence[Episode]) -> None:
        """Take in what is new, without vectors yet."""
        for episode in new:
            episode_id, day = episode["id"], episode["created_at"][:10]
            self.blank[episode_id] = len(self.turns.turns)
            for part in _PARTS:
                session, speaker = f"{episode['conversation_id']} {day}", part.partition("_")[0]
                self.turns.add(Turn(f"{episode_id} {speaker}", session, day, speaker, episode[part]))  # type: ignore[literal-required]
            self.episodes[episode_id], self.last = episode, episode["position"]

    def place(self, vectors: Mapping[str, bytes]) -> None:
        """Give episodes their vectors."""
        import numpy as np

        for episode_id, vector in vectors.items():
            rows = self._vectors[episode_id] = np.frombuffer(vector, np.float32).reshape(2, -1)
            first = self.blank.pop(episode_id)
            for offset, row in enumerate(rows):
                self.turns.place(first + offset, row)

    def matches_store(self, from_last: Sequence[Episode], count: int) -> bool:
        """Check that the store still has what is in memory: a forgotten one may have been replaced by another."""
        newest = next(reversed(self.episodes), None)
        return newest is not None and len(self.episodes) == count and [e["id"] for e in from_last[:1]] == [newest]

    def first(self, ranked: Iterable[Ranked], before: str | None, since: str) -> Iterator[Episode]:
        """Yield the exchanges in the order of their best turns, without the current one and those before a day."""
        seen: set[str] = set()
        for turn in ranked:
            episode = self.episodes[turn.id.partition(" ")[0]]
            if episode["id"] in seen or episode["user_message_id"] == before or episode["created_at"] < since:
                continue
            seen.add(episode["id"])
            yield episode

    def similarity(self, episode_id: str, message: str, vector: np.ndarray | None) -> float:
        """Return how near the nearer message of an exchange is to the question."""
        wanted = content_stems(message)
        words = stems(" ".join(self.episodes[episode_id][part] for part in _PARTS))  # type: ignore[literal-required]
        share = len(wanted & words) / len(wanted) if wanted else 0.0
        rows = self._vectors.get(episode_id)
        return share if rows is None or vector is None else max(share, *map(float, rows @ vector))


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
            self._recalling[store] = Recalling(MemoryStore(store), self._wb.settings, self._wb._clock.now)
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
        from workbench.parts.memory.remember import RULES, bring_up  # it brings LangGraph

        driver = self._wb._work.driver(run_id)
        row, recalling = driver.runs.get(run_id), self.recalling(driver)
        conversation_id, user_id = row["conversation_id"], row["user_id"]
        answered = await recalling.keep_up(conversation_id, user_id)
        if not answered and (self._retrying is None or self._retrying.done()):
            self._retrying = self._wb._work.loop.submit(recalling.keep_up(conversation_id, user_id, RETRIES_S))
        ports = self._wb._ports(driver)
        async with self._summing:
            begun = time.perf_counter()
            author = await bring_up(ports, recalling.store, conversation_id, user_id)
            if author:  # it was due
                self._wb._counted("summary_generation", time.perf_counter() - begun)
            if author == RULES and "summarizer" in ports.models:
                self._wb._counted("summary_generation", None)

    def close(self) -> None:
        """Wait for what is under way; what is not done by then is done with the next exchange."""
        # How long closing waits for summaries and vectors that are under way.
        wait(self._keeping, timeout=10)
        if self._retrying:
            self._retrying.cancel()


def find_store(wb: Any, run_id: str = "") -> MemoryStore:
    """Return what is remembered in an open workspace; of a run that is incognito, what is remembered there."""
    service: MemoryService = wb._services["memory"]
    return service.recalling(wb._work.driver(run_id)).store
