"""What a chat model's server can do, found out by tiny calls: stream, count tokens, keep to a schema, call tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from workbench.errors import ModelError
from workbench.models.chat import Limits, asked, filled_in, reply_text, stream_text, usage_of
from workbench.models.wire import Patience

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


_SHORT = Limits(characters=2_000, seconds=30, patience=Patience(retries=1))


class Sky(BaseModel):
    """Whether the sky is blue by day."""

    blue: bool


async def probe(model: BaseChatModel) -> dict[str, bool | str]:
    """``streaming``, ``usage``, ``schema`` and ``tools``: whether it does that, or why it cannot be said."""
    counted: list[Any] = []

    async def streams() -> bool:
        told = [("human", "Count from 1 to 5.")]
        return len([part async for part in stream_text(model, told, _SHORT, lambda c: counted.append(usage_of(c)))]) > 1

    async def fills_in() -> bool:
        reply = reply_text(await filled_in(model, [("human", "Is the sky blue by day?")], Sky, _SHORT))
        try:
            return bool(Sky.model_validate_json(reply))
        except ValidationError:
            return False

    async def calls_tools() -> bool:
        told = [("human", "Call the tool: the sky is blue.")]
        reply = await asked(model, lambda: model.bind_tools([Sky]).ainvoke(told), _SHORT)
        return bool(getattr(reply, "tool_calls", None))

    found = {"streaming": await _tried(streams), "usage": any(counted)}
    return {**found, "schema": await _tried(fills_in), "tools": await _tried(calls_tools)}


async def _tried(what: Callable[[], Awaitable[bool]]) -> bool | str:
    try:
        return await what()
    except ModelError as error:
        return str(error)
