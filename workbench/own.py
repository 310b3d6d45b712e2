"""Parts of one's own in an open workspace: given, checked, put in place and taken away again."""

from __future__ import annotations

from typing import Any

from workbench import parts
from workbench.context import Handler, Planner
from workbench.given import PREFIX
from workbench.settings import Settings


class OwnParts:
    """What ``Workbench`` knows of its user's parts."""

    knowledge: Any

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._unsearched: set[str] = set()
        self._parts: dict[str, Any] = {}
        self._chats: dict[str, Any] = {}

    def register_handler(self, kb: str, handler: Handler | None, retrieve: bool = True) -> None:
        """Let a base answer by itself: ``async (state, context) -> {"answer", "citations"}``; None undoes it.

        With ``retrieve=False`` nothing is searched first: the handler is asked at once.
        """
        if handler is None:
            self._handlers.pop(kb, None)
        else:
            self._handlers[kb] = parts.checked("handler", handler, "state, context")
        (self._unsearched.discard if retrieve or handler is None else self._unsearched.add)(kb)

    def register_planner(self, planner: Planner | None) -> Planner | None:
        """Plan with ``async (query, decision, knowledge, tools) -> Plan``; usable as a decorator. None undoes it."""
        return self.register("planner", planner)

    def register(self, part: str, given: Any) -> Any:
        """Put a part of one's own in its place: planner, reflector, merger, writer, reranker; None undoes it.

        See ``workbench.parts`` for how each is called. The part comes back, unchanged.

        Raises:
            WorkbenchError: there is no such part, or it cannot be called so.
        """
        parts.checked(part, given)
        self._parts = {name: own for name, own in self._parts.items() if name != part}
        if given is not None:
            self._parts[part] = given
        self.knowledge.reranker = self._parts.get("reranker")
        return given

    def _own(self) -> dict[str, Any]:
        """What a run's ports have of it."""
        after = {name: part for name, part in self._parts.items() if name not in ("planner", "reranker")}
        return {"handlers": dict(self._handlers), "unsearched": frozenset(self._unsearched), "parts": after}

    def _chat_for(self, settings: Settings) -> Any:
        """The chat model of these settings, opened once; a fork may name another one than the workspace."""
        name = settings.chat_model
        if name and name not in self._chats:
            from workbench.models.chat import open_chat_model

            self._chats[name] = open_chat_model(settings)
        return self._chats[name] if name else None

    def _planner_for(self, settings: Settings) -> Planner:
        return self._parts.get("planner") or _default_planner(settings, self._chat_for(settings))

    async def _close_chats(self) -> None:
        for name, chat in self._chats.items():
            from workbench.models.chat import close_chat_model

            if not name.startswith(PREFIX):  # what somebody gave is theirs
                await close_chat_model(chat)


def _default_planner(settings: Settings, chat: Any) -> Planner:
    from workbench.retrieval.plan import RulePlanner

    rules = RulePlanner(settings)
    if settings.planner != "llm" or chat is None:
        return rules
    from workbench.retrieval.llm_plan import LLMPlanner

    return LLMPlanner(chat, rules, settings)
