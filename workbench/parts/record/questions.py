"""What a paused run asks a person, in the shapes that graphs use, and an answer in the same shape.

LangChain's middleware asks ``{"action_requests", "review_configs"}``, Agent Inbox ``{"action_request", "config"}``,
alone or in a list. What has a schema, of its own or in its value, is answered by a form; whatever else is asked by yes,
no, or any value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from workbench.errors import InvalidAnswer
from workbench.graphs.reviewers import ACTIONS
from workbench.parts.record.digests import plain
from workbench.state import Data, Json
from workbench.text import as_text

_INBOX = {decision: name for name, decision in ACTIONS.items()}
"""A decision, and its name in Agent Inbox."""
_ALLOWS = {**_INBOX, "respond": "respond"}
_ONLY_FIELD = "answer"
"""The one field of a form whose answer is not an object."""


class Question(NamedTuple):
    """What a paused run asks.

    Attributes:
        id: a digest of the node and what it asks, under which its answer is kept.
        at: the place of the node.
        value: what it asks, as it gave it to ``interrupt``.
        schema: of the answer, as JSON Schema; None where the graph gives none.
    """

    id: str
    at: str
    value: Any
    schema: Any

    @property
    def request(self) -> Json:
        """Return it as the request of a review point: what is proposed, what can be filled in, and which decisions."""
        _, actions, config = self._proposal
        name = ", ".join(str(action.get("name")) for action in actions) or self.at
        args = Json()
        form = config.get("args_schema")
        decisions = config.get("allowed_decisions", list(_INBOX))
        if actions:
            text = str(actions[0].get("description") or "")
            listed = [action.get("args") or {} for action in actions]
            names = (f"{number} {action.get('name')}" for number, action in enumerate(actions, 1))
            args = listed[0] if len(actions) == 1 else dict(zip(names, listed, strict=True))
        else:
            value = plain(self.value)
            text = as_text(value)
            decisions = ["approve", "respond", "reject"]
            if form := self._answer_schema:
                if isinstance(self.value, BaseModel):
                    value = self.value.model_dump(mode="json")
                fields = value if isinstance(value, Mapping) else {}
                args = {field: fields[field] for field in form["properties"] if field in fields}
                is_complete = set(form.get("required", ())) <= set(args)
                decisions = ["edit", "respond", *(["approve"] if is_complete else [])]
        config = {"allowed_decisions": decisions, "args_schema": form or _args_schema(args)}
        action = {"name": name, "args": args, "description": text}
        return {
            "review_id": self.id,
            "point": self.at,
            "action_requests": [action],
            "review_configs": [config],
        }

    def answer(self, decision: str, args: Any = None, message: str = "") -> Any:
        """Return the answer that the graph expects for a decision.

        Args:
            decision: one of the request's.
            args: of an edit: what was filled in, in place of the arguments or as the answer.
            message: of a response or a rejection.

        Raises:
            InvalidAnswer: the question does not take this decision, or a field is missing.
        """
        request = self.request
        [config] = request["review_configs"]
        shape, actions, _ = self._proposal
        form = None if actions else self._answer_schema
        if decision not in config["allowed_decisions"]:
            raise InvalidAnswer(
                f"{self.at} takes {', '.join(config['allowed_decisions'])}; not {decision!r}."
            )
        if decision == "edit" or (decision == "approve" and form):
            args = {**request["action_requests"][0]["args"], **(args or {})}
            required = config["args_schema"].get("required", ())
            if lacking := [name for name in required if name not in args]:
                raise InvalidAnswer(f"{self.at} needs {', '.join(lacking)}.")
        if shape == "inbox":
            content = {"edit": {"action": actions[0]["name"], "args": args}, "respond": message}
            return [{"type": _INBOX[decision], "args": content.get(decision)}]
        if actions:
            parts: Json = {"type": decision, **({"message": message} if message else {})}
            decided = [parts for _ in actions]
            if decision == "edit":
                new_args = [args] if len(actions) == 1 else list(args.values())
                if len(new_args) != len(actions):
                    names = ", ".join(request["action_requests"][0]["args"])
                    raise InvalidAnswer(f"{self.at} takes {names}.")
                decided = [
                    {**parts, "edited_action": {"name": action["name"], "args": new}}
                    for action, new in zip(actions, new_args, strict=True)
                ]
            return decided[0] if shape == "one" else {"decisions": decided}
        if decision == "respond":
            return read_json(message)
        if form:
            return args[_ONLY_FIELD] if _ONLY_FIELD in form["properties"] else args
        return decision == "approve"

    @property
    def _proposal(self) -> tuple[str, list[Json], Json]:
        """Return the shape in which it is asked, the actions that are proposed, and which decisions are allowed.

        LangChain's middleware asks about ``all`` calls of tools at once, or about ``one``.
        """
        value = (
            self.value[0] if isinstance(self.value, list) and len(self.value) == 1 else self.value
        )
        match value:
            case {"action_requests": [_, *_] as actions}:
                allowed = _named_decisions(self.schema)
                configs = value.get("review_configs") or [{}]
                for config in configs:  # one decision is for all
                    names = config.get("allowed_decisions", allowed)
                    allowed = [name for name in allowed if name in names]
                own = configs[0] if len(actions) == 1 else {}
                return "all", actions, {**own, "allowed_decisions": allowed}
            case {"type": "tool_approval"}:
                return "one", [value], {"allowed_decisions": _named_decisions(self.schema)}
            case {"action_request": {**action}}:
                config = value.get("config") or {}
                allowed = [name for name, flag in _ALLOWS.items() if config.get(f"allow_{flag}")]
                request = {"name": action.get("action"), "args": action.get("args")}
                return (
                    "inbox",
                    [{**request, "description": value.get("description")}],
                    {"allowed_decisions": allowed},
                )
        return "", [], {}

    @property
    def _answer_schema(self) -> Json | None:
        """Return the JSON Schema of the answer: the interrupt's own, else one in its value; a field's is wrapped."""
        value = self.value
        inside = list(value.values()) if isinstance(value, Mapping) else [value]
        for schema in [self.schema, value, *inside]:
            if isinstance(schema, BaseModel):
                schema = schema.model_json_schema()
            if isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping):
                return dict(schema)
            if isinstance(schema, Mapping) and schema is self.schema:
                return {
                    "properties": {_ONLY_FIELD: schema},
                    "required": [_ONLY_FIELD],
                    "$defs": schema.get("$defs", {}),
                }
        return None


def _args_schema(args: Data) -> Json:
    """Return a JSON Schema of arguments whose tool gives none: by the types of their values."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    properties = {}
    for name, value in args.items():
        properties[name] = {"type": kinds[type(value)]} if type(value) in kinds else {}
        if isinstance(value, Mapping):
            properties[name] = _args_schema(value)
    return {"type": "object", "properties": properties, "required": list(args)}


def _named_decisions(schema: Any) -> list[str]:
    """Return the decisions that a schema of LangChain's middleware names; all where it names none."""
    constants = re.findall(r'"const": "(\w+)"', json.dumps(plain(schema)))
    return [name for name in dict.fromkeys(constants) if name in _INBOX] or list(_INBOX)


def read_json(text: str) -> Any:
    """Read JSON; plain text stays what it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text
