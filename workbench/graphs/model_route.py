"""Routing and follow-ups with a chat model: which knowledge bases, and the question as it stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from workbench.graphs.cards import card
from workbench.graphs.roles import say, told_history
from workbench.ports import Context
from workbench.state import Message

MOST_ASKED = 3
"""Knowledge bases that one question is searched in."""
_LONGEST = 500


class StandsAlone(BaseModel):
    """What the follow-up's model fills in."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=_LONGEST)


async def routed_by_model(context: Context, message: str, known: Sequence[str]) -> tuple[list[str] | None, str]:
    """The knowledge bases that the model names, and its reason; None where it names none that can be used, and why."""
    one_of: Any = Literal
    several: Any = list[one_of[tuple(known)]]  # type: ignore[misc]
    form = create_model(
        "Routed",
        __config__=ConfigDict(extra="forbid"),
        bases=(several, Field(default_factory=list, max_length=MOST_ASKED)),
        reason=(str, Field("", max_length=300)),
    )
    slots = {"question": message, "bases": card(context.bases(known))}
    said = await say(context, "router", form, slots, question=message)
    if said.form is None:
        return None, f"the model did not route ({said.refused[-1]})"
    return list(dict.fromkeys(said.form.bases)), said.form.reason.strip() or "the model says so"


async def alone_by_model(context: Context, message: str, history: Sequence[Message]) -> str | None:
    """The message as the model says it again; None where it gives nothing that can be used."""
    slots = {"history": told_history(history, context.settings.history_window), "message": message}
    said = await say(context, "follow_up", StandsAlone, slots, question=message)
    return None if said.form is None else " ".join(said.form.question.split())
