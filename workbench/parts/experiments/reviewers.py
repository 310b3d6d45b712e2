"""Who decides at a reflection in an experiment when no person does: a fitted threshold, or a chat model."""

from __future__ import annotations

from workbench.errors import WorkbenchError
from workbench.graphs.reviewers import Reply, answer
from workbench.models.chat import open_chat_model, stream_text
from workbench.settings import Settings
from workbench.state import Data
from workbench.text import to_json

_INSTRUCTION = (
    "You review a search before the answer is written. Read the question, the evidence and the proposal. Reply with "
    "'go on' if something that the answer needs is missing, 'stop' if more would not help, else 'approve'."
)


def margin(proposal: Data) -> float:
    """Return the smaller of evidence and top score as shares of their thresholds.

    >>> margin({"signals": {"evidence_count": 5, "top_score": 0.9, "thresholds": {"min_evidence": 10}}})
    0.5
    """
    signals = proposal.get("signals", {})
    thresholds = signals.get("thresholds", {})
    return min(
        signals.get(name, 0) / max(thresholds.get(limit, 1.0), 1e-6)
        for name, limit in (("evidence_count", "min_evidence"), ("top_score", "min_top_score"))
    )


class ThresholdReviewer:
    """Acts alone from a margin on, as proposed; below it searches on.

    Args:
        limit: as ``Pauses.threshold`` of an experiment returns it in ``margin``.
    """

    def __init__(self, limit: float):
        self._limit = limit

    def __call__(self, request: Data) -> Reply:
        """Return the answer to one request."""
        is_enough = margin(request["action_requests"][0]["args"]) >= self._limit
        return _chosen("approve" if is_enough else "go on", "threshold", request)


class ModelReviewer:
    """Lets a chat model decide at each reflection whether to search on.

    Args:
        settings: where its server is.
        model: its name, as in the settings.
    """

    def __init__(self, settings: Settings, model: str):
        opened = open_chat_model(settings.with_changes({"models": {"judge": model}}), "judge")
        if opened is None:
            raise WorkbenchError("A model that reviews needs a name, as {model: openai:NAME}.")
        self._model = opened

    async def __call__(self, request: Data) -> Reply:
        """Return its answer; one that begins with neither "go on" nor "stop" approves.

        Raises:
            ModelError: its server failed.
        """
        pieces = "\n\n".join(piece["evidence"] for piece in request.get("evidence", [])[:8])
        proposal = to_json(request["action_requests"][0]["args"])
        messages = [
            ("system", _INSTRUCTION),
            ("human", f"{request['in_force']['query']}\n\n{pieces}\n\n{proposal}"),
        ]
        reply = "".join([chunk async for chunk in stream_text(self._model, messages)])
        reply = reply.strip(" '\"\n").casefold()
        choice = next((c for c in ("go on", "stop") if reply.startswith(c)), "approve")
        return _chosen(choice, "model", request)


def _chosen(choice: str, who: str, request: Data) -> Reply:
    # a person who goes on may; these would for ever, so that from the second decision on they approve
    if int(request["review_id"].partition("-")[0]) > 1:
        choice = "approve"
    edits = {"should_continue": True} if choice == "go on" else {}
    action = {"go on": "edit", "stop": "reject"}.get(choice, "approve")
    return answer(action, point="reflect", edits=edits, who=who)
