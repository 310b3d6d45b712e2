"""Who answers at a review point when it is not a person at a screen: sees the request, gives an answer or waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from workbench.errors import InvalidAnswer
from workbench.state import Decision

Answer = dict[str, Any]
"""``{"decisions": [{"type", "edited_action"?, "message"?}], "note", "who"}``, as LangChain's middleware writes it."""


class Reviewer(Protocol):
    """Answers a request, or returns None: then the run waits for a person."""

    def __call__(self, request: Mapping[str, Any]) -> Answer | None:
        """The answer to one request."""


class RuleReviewer:
    """Accepts what the rules propose; the decision is kept as its own."""

    def __call__(self, request: Mapping[str, Any]) -> Answer | None:
        """Approve."""
        return answer("approve", who="rules")


class ReplayReviewer:
    """Answers as recorded, in the order of the recording; then waits for a person.

    Args:
        decisions: ``Decision`` rows, or short forms of them: ``{"point", "action", "edits"?, "message"?, "note"?}``.
    """

    def __init__(self, decisions: Iterable[Mapping[str, Any] | Decision]):
        self._left = list(decisions)

    def __call__(self, request: Mapping[str, Any]) -> Answer | None:
        """The next recorded answer.

        Raises:
            InvalidAnswer: the run asks at another point than the recording.
        """
        if not self._left:
            return None
        decision = self._left[0]
        if decision["point"] != request["point"]:
            raise InvalidAnswer(
                f"The next recorded decision is for {decision['point']!r}, but the run asks at {request['point']!r}. "
                "Answer this one by hand, or run with the review points of the recording."
            )
        del self._left[0]
        return again(decision)


def again(decision: Mapping[str, Any] | Decision) -> Answer:
    """The answer that gives a recorded decision once more."""
    return answer(
        decision["action"],
        point=decision["point"],
        edits=decision.get("edits", {}),
        message=decision.get("message", ""),
        note=decision.get("note", ""),
        who=decision.get("who", "recording"),
    )


def answer(
    action: str,
    *,
    point: str = "",
    edits: Mapping[str, Any] | None = None,
    message: str = "",
    note: str = "",
    who: str = "person",
) -> Answer:
    """An answer in the shape that the review points take.

    >>> answer("respond", message="only comedies")["decisions"]
    [{'type': 'respond', 'message': 'only comedies'}]
    """
    decision: dict[str, Any] = {"type": action}
    if action == "edit":
        decision["edited_action"] = {"name": point, "args": dict(edits or {})}
    if message:
        decision["message"] = message
    return {"decisions": [decision], "note": note, "who": who}
