"""Memory while a workspace is open: it recalls for runs, and keeps up with what was said once they have ended."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, wait
from typing import Any

from workbench.extensions import Service
from workbench.parts.memory.recalling import RETRIES_S, Recalling
from workbench.parts.memory.store import MemoryStore
from workbench.records.conversations import SqlConversations
from workbench.runs.driver import Driver


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
