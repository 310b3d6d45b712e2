"""Who answers at a review point when it is not a person at a screen: sees the request, gives an answer or waits."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Literal, Protocol

from workbench.errors import DecisionDiffers, InvalidAnswer, shown
from workbench.records import proposals
from workbench.records.tape import comparable, differences
from workbench.state import Data, Decision, Json
from workbench.text import clean, to_json

Reply = Json
"""``{"decisions": [{"type", "edited_action"?, "message"?}], "note", "who"}``, as LangChain's middleware writes it."""


Mismatch = Literal["stop", "ask", "rules"]


class Reviewer(Protocol):
    """Answers a request, or returns None: then the run waits for a person. It may be async.

    ``request["evidence"]`` is what was found so far, best first.
    """

    def __call__(self, request: Data) -> Reply | Awaitable[Reply | None] | None:
        """Return the answer to one request."""


class HumanReviewer:
    """Leaves every question to a person: the run pauses and waits."""

    def __call__(self, request: Data) -> Reply | None:
        """Return None."""
        return None


class RuleReviewer:
    """Accepts what the rules propose; the decision is kept as its own."""

    def __call__(self, request: Data) -> Reply | None:
        """Approve."""
        return answer("approve", who="rules")


class ReplayReviewer:
    """Answers as recorded, in the order of the recording.

    Args:
        decisions: ``Decision`` rows, or short forms of them: ``{"point", "action", "edits"?, "message"?, "note"?}``.
        mismatch: what to do when the run proposes something else than what the decision was made on: ``stop`` (the
            run stays paused, and the error says what differs), ``ask`` a person, or follow the ``rules``.
        rest: who answers after the last recorded decision: ``ask`` or ``rules``.
    """

    def __init__(
        self,
        decisions: Iterable[Data | Decision],
        mismatch: Mismatch = "stop",
        rest: Mismatch = "ask",
    ):
        self._left = list(decisions)
        self._mismatch = mismatch
        self._rest = rest

    def __call__(self, request: Data) -> Reply | None:
        """Return the next recorded answer.

        Raises:
            InvalidAnswer: the run asks at another point than the recording, and it is to stop there.
            DecisionDiffers: what it proposes is not what was decided on, and it is to stop there.
        """
        if not self._left:
            return answer("approve", who="rules") if self._rest == "rules" else None
        decision = self._left[0]
        fault = self._fault(decision, request)
        if fault is not None:
            self._left.clear()
            if self._mismatch == "stop":
                raise fault
            return answer("approve", who="rules") if self._mismatch == "rules" else None
        del self._left[0]
        return repeat_answer(decision)

    def _fault(self, decision: Data | Decision, request: Data) -> Exception | None:
        if decision["point"] != request["point"]:
            return InvalidAnswer(
                f"The next recorded decision is for {decision['point']!r}, but the run asks at {request['point']!r}. "
                "Answer this one by hand, or run with the review points of the recording."
            )
        if "proposal" not in decision or "action_requests" not in request:
            return None
        old, new = (
            comparable(p) for p in (decision["proposal"], request["action_requests"][0]["args"])
        )
        paths = differences(old, new)
        if paths:
            return DecisionDiffers(
                "decision", request["review_id"], old, new, [f"proposal{p}" for p in paths]
            )
        return None


def repeat_answer(decision: Data | Decision) -> Reply:
    """Return the answer that gives a recorded decision once more."""
    return answer(
        decision["action"],
        point=decision["point"],
        edits=decision.get("edits", {}),
        message=decision.get("message", ""),
        note=decision.get("note", ""),
        who=decision.get("who", "recording"),
    )


def as_json(reply: Any) -> Reply:
    """Return an answer as it can be written down: JSON, without what no store takes, and not endless.

    A list with one response in it, as an Agent Inbox sends it, is that response.

    Raises:
        InvalidAnswer: says what it is instead; the run waits as before.

    >>> as_json({"decisions": ({"type": "respond", "message": "a\\x00b"},)})
    {'decisions': [{'type': 'respond', 'message': 'a b'}]}
    """
    most_characters = 1_000_000
    if isinstance(reply, list) and len(reply) == 1:
        reply = reply[0]
    if not isinstance(reply, Mapping) or not reply:
        kind = "nothing" if not reply else f"a {type(reply).__name__}"
        raise InvalidAnswer(f"{_REFUSED} $: an answer is {_SHAPE}, and this is {kind}.")
    try:
        text = to_json(dict(reply))
    except (TypeError, ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidAnswer(
            f"{_REFUSED} $: an answer is JSON, as {_SHAPE}, and this is not: {reason}."
        ) from None
    if len(text) > most_characters:
        raise InvalidAnswer(
            f"{_REFUSED} $: it has {len(text):,} characters; {most_characters:,} are the most."
        )
    return dict(_clean(json.loads(text), "$"))


def _clean(value: Any, place: str) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _clean(inner, f"{place}.{name}") for name, inner in value.items()}
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InvalidAnswer(
            f"{_REFUSED} {place}: the number is too large. Give one of at most 64 bits."
        )
    if isinstance(value, list):
        return [_clean(inner, f"{place}[{n}]") for n, inner in enumerate(value)]
    return value


def describe_faults(error: Any) -> str:
    """Return the errors of pydantic as text: where in the answer, and what is allowed there."""
    most_faults = 10
    lines = []
    faults = error.errors()
    for fault in faults[:most_faults]:
        path = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]
        )
        lines.append(f"${path}: {fault['msg'].removeprefix('Value error, ')}")
    more = f"; and {len(faults) - most_faults} more" if len(faults) > most_faults else ""
    return f"{_REFUSED} {'; '.join(lines)}{more}"


_REFUSED = "The answer was refused, and the run waits as before."
_SHAPE = '{"decisions": [{"type": "approve"}]}'


def answer(
    action: str,
    *,
    point: str = "",
    edits: Data | None = None,
    message: str = "",
    note: str = "",
    who: str = "person",
) -> Reply:
    """Return an answer in the shape that the review points take.

    >>> answer("respond", message="only comedies")["decisions"]
    [{'type': 'respond', 'message': 'only comedies'}]
    """
    decision: Json = {"type": action}
    if action == "edit":
        decision["edited_action"] = {"name": point, "args": dict(edits or {})}
    if message:
        decision["message"] = message
    return {"decisions": [decision], "note": note, "who": who}


# --- The shapes of LangChain's Agent Inbox: our request as its interrupt, its responses as our answers ---
#
# An inbox sends back every argument of an action, each turned into a string by its editor, edited or not. They are
# parsed by the schema of the review point, and an unchanged argument is not an edit.

ACTIONS = {"accept": "approve", "edit": "edit", "response": "respond", "ignore": "reject"}
"""Type of an inbox's response -> our action."""


def to_agent_inbox(request: Data) -> Json:
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


def from_agent_inbox(response: Any, request: Data) -> Any:
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


def _decision(response: Data, request: Data) -> Json:
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


def _parse_middleware(answer: Data, request: Data) -> Data:
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


def _parse(args: Data, request: Data) -> Json:
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
