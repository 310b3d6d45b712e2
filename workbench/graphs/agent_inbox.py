"""The shapes of LangChain's Agent Inbox: our request as its interrupt, its responses as our answers.

An inbox sends back every argument of an action, each turned into a string by its editor, edited or not. They are parsed
by the schema of the review point, and an unchanged argument is not an edit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.errors import InvalidAnswer, shown
from workbench.records import proposals
from workbench.state import Data, Json

Request = Data
ACTIONS = {"accept": "approve", "edit": "edit", "response": "respond", "ignore": "reject"}
"""Type of an inbox's response -> our action."""


def to_agent_inbox(request: Request) -> Json:
    """Return our request as an Agent Inbox reads it: ``{"action_request", "config", "description"}``.

    The arguments are what can be edited, with their current values; the description is plain text.
    """
    allowed = proposals.allowed(request)
    return {
        "action_request": {
            "action": proposals.point(request),
            "args": proposals.in_force(request),
        },
        "config": {
            "allow_ignore": "reject" in allowed,
            "allow_respond": "respond" in allowed,
            "allow_edit": "edit" in allowed,
            "allow_accept": "approve" in allowed,
        },
        "description": proposals.description(request),
    }


def from_agent_inbox(response: Any, request: Request) -> Any:
    """Convert an answer to the middleware's shape; return it unchanged where it has neither shape.

    Args:
        response: ``{"type": "accept" | "ignore" | "response" | "edit", "args": ...}`` or a list of one, as an
            inbox sends it; the bare word for a yes or a no, as Studio's field takes it; or ``{"decisions": [...]}``,
            whose edited arguments are parsed in the same way.
        request: the question.

    Raises:
        InvalidAnswer: names what does not fit, and what does.
    """
    if isinstance(response, list):
        if len(response) != 1:
            raise InvalidAnswer(
                f"one response is expected in the list, and there are {len(response)}."
            )
        response = response[0]
    if isinstance(response, str) and (action := ACTIONS.get(response, response)) in (
        "approve",
        "reject",
    ):
        return {"decisions": [{"type": action}]}
    if not isinstance(response, Mapping):
        return response
    if "decisions" in response:
        return _parse_middleware(response, request)
    return {"decisions": [_decision(response, request)]} if "type" in response else response


def _decision(response: Data, request: Request) -> Json:
    if response["type"] not in ACTIONS:
        raise InvalidAnswer(
            f"type is {shown(response['type'])}; it is one of {', '.join(ACTIONS)}."
        )
    if unknown := set(response) - {"type", "args"}:
        raise InvalidAnswer(
            f"{', '.join(sorted(map(str, unknown)))}: a response has type and args, and no more."
        )
    args = response.get("args")
    action = ACTIONS[response["type"]]
    if action == "respond":
        if not isinstance(args, str):
            raise InvalidAnswer(f"args of a response is its text, and this is {shown(args)}.")
        return {"type": action, "message": args}
    if action != "edit":
        return {"type": action}
    if not isinstance(args, Mapping) or not isinstance(args.get("args"), Mapping):
        raise InvalidAnswer('args of an edit is {"action": ..., "args": {...}}.')
    point = proposals.point(request)
    if args.get("action") != point:
        raise InvalidAnswer(
            f"action is {shown(args.get('action'))}, which is not what is asked; it is {point!r}."
        )
    required = proposals.schema(request).get("required", ())
    edits = proposals.differing(
        proposals.in_force(request), _parse(args["args"], request), required
    )
    if edits:
        return {"type": "edit", "edited_action": {"name": point, "args": edits}}
    return {"type": "approve"}


def _parse_middleware(answer: Data, request: Request) -> Data:
    """Return a middleware's answer whose edited arguments may be strings, and may include what was only shown."""
    try:
        decision = answer["decisions"][0]
        action = {
            **decision["edited_action"],
            "args": _parse(decision["edited_action"]["args"], request),
        }
    except (KeyError, IndexError, TypeError, AttributeError, InvalidAnswer):
        return answer  # the review point refuses it too, and names the place of the fault
    return {
        **answer,
        "decisions": [{**decision, "edited_action": action}, *answer["decisions"][1:]],
    }


def _parse(args: Data, request: Request) -> Json:
    """Return arguments in the types of the schema, without those that cannot be edited and were not."""
    schema = proposals.schema(request)
    proposal = proposals.proposal(request)
    parsed = {}
    for name, value in args.items():
        if name in schema.get("properties", {}):
            parsed[name] = _typed(
                value, proposals.property_schema(name, schema).get("type"), str(name)
            )
        elif name not in proposal or value not in (proposal[name], json.dumps(proposal[name])):
            parsed[name] = value  # the review point refuses it, and lists the known names
    return parsed


def _typed(value: Any, kind: str | None, name: str) -> Any:
    if not isinstance(value, str) or kind in (None, "string"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(
            f"{name} is {shown(value)}, and {kind} is asked for, as JSON: {error}."
        ) from None
