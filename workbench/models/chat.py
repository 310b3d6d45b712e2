"""Chat models by name: ``openai:NAME`` is any OpenAI-compatible server; an empty name means the offline writer.

Whatever goes wrong with a model comes out as a ``ModelError`` that names the server, what happened and the mend, and
never shows the key.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import SecretStr

from workbench.errors import ModelError, SettingsError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

    from workbench.settings import Settings

PROVIDERS = ("openai",)
KEYLESS = "none"
"""What is sent as a key to a server that asks for none; the client library insists on one."""


def open_chat_model(settings: Settings) -> BaseChatModel | None:
    """The chat model of the settings; None for the offline writer. Nothing is sent until the first question.

    Raises:
        SettingsError: an unknown provider, a name without a model, or no key for OpenAI's own server.
    """
    if not settings.chat_model:
        return None
    provider, _, name = settings.chat_model.partition(":")
    if provider not in PROVIDERS or not name:
        raise SettingsError(
            f"WORKBENCH_CHAT_MODEL is {settings.chat_model!r}. Known: '' (the offline writer), "
            + ", ".join(f"'{known}:NAME'" for known in PROVIDERS)
            + "."
        )
    key = settings.chat_api_key.get_secret_value()
    if not key and not settings.chat_base_url:
        raise SettingsError(
            f"WORKBENCH_CHAT_MODEL is {settings.chat_model!r}, and OpenAI's server wants a key. "
            "Set WORKBENCH_CHAT_API_KEY, or WORKBENCH_CHAT_BASE_URL to a server of your own."
        )
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=name,
        base_url=settings.chat_base_url or None,
        api_key=SecretStr(key or KEYLESS),
        timeout=settings.chat_timeout_s,
        temperature=0,
        stream_usage=True,
        max_retries=2,
    )


async def stream_text(model: BaseChatModel, messages: Sequence[BaseMessage]) -> AsyncIterator[str]:
    """The model's answer in its own chunks; empty ones are left out.

    Raises:
        ModelError: the server failed or cannot be reached, before or in the middle of the answer.
    """
    try:
        async for chunk in model.astream(list(messages)):
            if text := str(chunk.text):
                yield text
    except Exception as error:
        # `from None`: what the library raised may quote the request with its key.
        raise ModelError(explain(error, server_of(model), secret_of(model))) from None


def server_of(model: BaseChatModel) -> str:
    """Where the model is, for people."""
    return str(getattr(model, "openai_api_base", None) or "api.openai.com")


def secret_of(model: BaseChatModel) -> str:
    """The key, only to keep it out of messages; empty when there is none."""
    key = getattr(model, "openai_api_key", None)
    return str(key.get_secret_value()) if isinstance(key, SecretStr) else ""


_BROKE_OFF = "The server broke off its answer; resume the run to ask it again."
_MENDS = {
    "RemoteProtocolError": _BROKE_OFF,
    "ReadError": _BROKE_OFF,
    "AuthenticationError": "Is WORKBENCH_CHAT_API_KEY right?",
    "PermissionDeniedError": "May this key use this model?",
    "NotFoundError": "Does the server have the model that WORKBENCH_CHAT_MODEL names?",
    "RateLimitError": "Wait a little, or use a smaller model.",
    "BadRequestError": "If the prompt is too long, lower WORKBENCH_MERGE_MAX_CHARACTERS.",
    "APITimeoutError": "Raise WORKBENCH_CHAT_TIMEOUT_S, or use a faster model.",
    "APIConnectionError": "Is the server running, and is WORKBENCH_CHAT_BASE_URL right?",
}
"""What to do about each kind of error, by the names of the classes of openai and httpx; the first that fits."""


def explain(error: Exception, server: str, secret: str = "") -> str:
    """What happened, where, and the mend, in one line without the key.

    >>> explain(TimeoutError("sk-123 was slow"), "example.org", "sk-123")
    'The chat model at example.org failed: TimeoutError: (key) was slow. Try again, or see the log of the server.'
    """
    chain = list(_causes(error))
    what = " <- ".join(dict.fromkeys(f"{type(e).__name__}: {' '.join(str(e).split())}" for e in chain))[:500]
    if secret and secret != KEYLESS:
        what = what.replace(secret, "(key)")
    kinds = {kind.__name__ for e in chain for kind in type(e).__mro__}
    mend = next((mend for kind, mend in _MENDS.items() if kind in kinds), "Try again, or see the log of the server.")
    return f"The chat model at {server} failed: {what.rstrip('.')}. {mend}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
