"""What a paused run asks a person, in the shapes that graphs use, and an answer in the same shape.

LangChain's middleware asks ``{"action_requests", "review_configs"}``, Agent Inbox ``{"action_request", "config"}``,
alone or in a list; whatever else is asked is answered by yes, no, or any value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.errors import InvalidAnswer
from workbench.parts.record.digests import plain
from workbench.state import Json

_INBOX: Mapping[str, str] = {"approve": "accept", "edit": "edit", "respond": "response", "reject": "ignore"}
"""A decision, and its name in Agent Inbox."""


class Question(NamedTuple):
    """What a paused run asks.

    Attributes:
        id: LangGraph's, of this pause.
        at: the node that asks.
        value: what it asks, as it gave it to ``interrupt``.
        schema: of the answer, as JSON Schema; None where the graph gives none.
    """

    id: str
    at: str
    value: Any
    schema: Any

    @property
    def request(self) -> Json:
        """Return it as the request of a review point: what is proposed, and which decisions are taken."""
        value, inbox = self.value, self._inbox
        if self._is_middleware:
            requests, configs = list(value["action_requests"]), list(value.get("review_configs") or [{}])
        elif inbox is not None:
            action, config = inbox["action_request"], inbox.get("config") or {}
            text = str(inbox.get("description") or "")
            requests = [{"name": action.get("action"), "args": action.get("args") or {}, "description": text}]
            allows = {"approve": "accept", "edit": "edit", "respond": "respond", "reject": "ignore"}
            configs = [{"allowed_decisions": [name for name, flag in allows.items() if config.get(f"allow_{flag}")]}]
        else:
            text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
            requests = [{"name": self.at, "args": {}, "description": text}]
            configs = [{"allowed_decisions": ["approve", "respond", "reject"]}]
        return {"review_id": self.id, "point": self.at, "action_requests": requests, "review_configs": configs}

    @property
    def decisions(self) -> list[str]:
        """Return the decisions that it takes: of ``approve``, ``edit``, ``respond`` and ``reject``."""
        return list(self.request["review_configs"][0].get("allowed_decisions") or _INBOX)

    def answer(self, decision: str, args: Any = None, message: str = "") -> Any:
        """Return the answer that the graph expects for a decision.

        Args:
            decision: one of ``decisions``.
            args: of an edit: the arguments instead.
            message: of a response or a rejection.

        Raises:
            InvalidAnswer: the question does not take this decision.
        """
        request = self.request
        if decision not in self.decisions:
            raise InvalidAnswer(f"{self.at} takes {', '.join(self.decisions)}; not {decision!r}.")
        names = [action.get("name") for action in request["action_requests"]]
        if self._is_middleware:
            parts: Json = {"type": decision, **({"message": message} if message else {})}
            edits = {"edited_action": {"name": names[0], "args": args}} if decision == "edit" else {}
            return {"decisions": [{**parts, **edits} for _ in names]}
        if self._inbox is not None:
            content = {"edit": {"action": names[0], "args": args}, "respond": message}.get(decision)
            return [{"type": _INBOX[decision], "args": content}]
        return read_json(message) if decision == "respond" else decision == "approve"

    @property
    def _is_middleware(self) -> bool:
        return isinstance(self.value, Mapping) and bool(self.value.get("action_requests"))

    @property
    def _inbox(self) -> Mapping[str, Any] | None:
        value = self.value[0] if isinstance(self.value, list) and len(self.value) == 1 else self.value
        return value if isinstance(value, Mapping) and isinstance(value.get("action_request"), Mapping) else None


def read_json(text: str) -> Any:
    """Read JSON; plain text stays what it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text
