"""The shapes of LangChain's Agent Inbox: our request as its interrupt, its responses as our answers.

An inbox gives back all arguments of an action, each turned into a string by its editor, edited or not. They are read
by the schema of the review point, and what is as it was is no edit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.errors import InvalidAnswer, shown
from workbench.records import proposals
from workbench.state import Data, Json

Request = Data
Answer = Json
ANSWERS = {"accept": "approve", "edit": "edit", "response": "respond", "ignore": "reject"}
"""What an inbox's answer is here."""


def interrupt_of(request: Request) -> Json:
    """Our request as an Agent Inbox reads it: ``{"action_request", "config", "description"}``.

    The arguments are what can be edited, with the values now in force; the description says why, as plain text.
    """
    allowed = proposals.allowed(request)
    return {
        "action_request": {"action": proposals.point(request), "args": proposals.in_force(request)},
        "config": {
            "allow_ignore": "reject" in allowed,
            "allow_respond": "respond" in allowed,
            "allow_edit": "edit" in allowed,
            "allow_accept": "approve" in allowed,
        },
        "description": proposals.description(request),
    }


def answer_of(given: Any, request: Request) -> Any:
    """Return an answer in either shape as the middleware writes it; what is neither comes back as it is.

    Args:
        given: ``{"type": "accept" | "ignore" | "response" | "edit", "args": ...}`` or a list with one of these, as an
            inbox sends it; the bare word for a yes or a no, as Studio's field takes it; or ``{"decisions": [...]}``,
            whose edited arguments are read in the same way.
        request: what was asked.

    Raises:
        InvalidAnswer: names what does not fit, and what does.
    """
    if isinstance(given, list):
        if len(given) != 1:
            raise InvalidAnswer(f"one response is expected in the list, and there are {len(given)}.")
        given = given[0]
    if isinstance(given, str) and (plain := ANSWERS.get(given, given)) in ("approve", "reject"):
        return {"decisions": [{"type": plain}]}
    if not isinstance(given, Mapping):
        return given
    if "decisions" in given:
        return _reread(given, request)
    return _from_inbox(given, request) if "type" in given else given


def _from_inbox(given: Data, request: Request) -> Answer:
    if given["type"] not in ANSWERS:
        raise InvalidAnswer(f"type is {shown(given['type'])}; it is one of {', '.join(ANSWERS)}.")
    if unknown := set(given) - {"type", "args"}:
        raise InvalidAnswer(f"{', '.join(sorted(map(str, unknown)))}: a response has type and args, and no more.")
    args, kind = given.get("args"), ANSWERS[given["type"]]
    if kind == "respond":
        if not isinstance(args, str):
            raise InvalidAnswer(f"args of a response is its text, and this is {shown(args)}.")
        return {"decisions": [{"type": kind, "message": args}]}
    if kind != "edit":
        return {"decisions": [{"type": kind}]}
    if not isinstance(args, Mapping) or not isinstance(args.get("args"), Mapping):
        raise InvalidAnswer('args of an edit is {"action": ..., "args": {...}}.')
    asked = proposals.point(request)
    if args.get("action") != asked:
        raise InvalidAnswer(f"action is {shown(args.get('action'))}, which is not what is asked; it is {asked!r}.")
    read = {name: value for name, value in _edits(args["args"], request).items() if value is not None}
    edits = proposals.differing(proposals.in_force(request), read, proposals.schema(request).get("required", ()))
    if not edits:
        return {"decisions": [{"type": "approve"}]}
    return {"decisions": [{"type": "edit", "edited_action": {"name": asked, "args": edits}}]}


def _reread(given: Data, request: Request) -> Answer:
    """Return a middleware's answer whose edited arguments may be strings, and may hold what was only shown."""
    try:
        decision = given["decisions"][0]
        args = decision["edited_action"]["args"]
    except (KeyError, IndexError, TypeError):
        return dict(given)
    if not isinstance(args, Mapping):
        return dict(given)
    try:
        action = {**decision["edited_action"], "args": _edits(args, request)}
    except InvalidAnswer:  # the review point refuses it too, and names the place in the answer
        return dict(given)
    return {**given, "decisions": [{**decision, "edited_action": action}, *given["decisions"][1:]]}


def _edits(args: Data, request: Request) -> Json:
    """Arguments in the types of the schema, without what cannot be edited and was not."""
    form, proposed = proposals.schema(request), proposals.proposal(request)
    definitions, properties = form.get("$defs", {}), form.get("properties", {})
    read = {}
    for name, value in args.items():
        if name in properties:
            read[name] = _read(value, properties[name], definitions, str(name))
        elif name not in proposed or not _same(value, proposed[name]):
            read[name] = value  # the review point refuses it, and says what it knows
    return read


def _read(value: Any, spec: Data, definitions: Data, place: str) -> Any:
    """Return a value that an editor may have made a string, as the schema has it."""
    spec = proposals.resolved(spec, definitions)
    if isinstance(value, str) and spec.get("type", "string") != "string":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            wanted = spec.get("type")
            raise InvalidAnswer(f"{place} is {shown(value)}, and {wanted} is asked for, as JSON: {error}.") from None
    if isinstance(value, Mapping) and (within := spec.get("properties")):
        return {
            name: _read(inner, within[name], definitions, f"{place}.{name}") if name in within else inner
            for name, inner in value.items()
        }
    return value


def _same(given: Any, proposed: Any) -> bool:
    """Check whether a value is the proposed one, as it is or as an editor wrote it."""
    if given == proposed:
        return True
    try:
        return isinstance(given, str) and json.loads(given) == proposed
    except (ValueError, RecursionError):
        return False
