"""Chat models by name: ``openai:NAME`` is any OpenAI-compatible server; an empty name means no model.

Whatever goes wrong with a model comes out as a ``ModelError`` that names the server, what happened and the fix, and
never shows the key. A server that is busy or away is asked again, until the first word of an answer; an answer that
was begun and not ended is never taken for the whole.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

from workbench import settings as given
from workbench.errors import ModelError, SettingsError
from workbench.models.thinking import Thinking, split
from workbench.models.wire import (
    KEYLESS,
    LimitReached,
    Patience,
    address,
    async_client,
    explain,
    patiently,
    read_key,
    refused_parameter,
    tell,
)
from workbench.state import Json

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

    from workbench.settings import Settings


T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Limits of one answer: characters, seconds in all, and the patience before it begins."""

    characters: int = 20_000
    seconds: float = 300.0
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        """Read the limits from the settings."""
        return cls(
            settings.chat_max_characters, settings.chat_answer_s, Patience.from_settings(settings)
        )


def open_chat_model(settings: Settings, role: str = "writer") -> BaseChatModel | None:
    """Return the chat model of a role; None for none. Nothing is sent until the first question.

    Args:
        settings: where its server is, and what it may take.
        role: whose model it is.

    Raises:
        SettingsError: an unknown provider, a name without a model, or no key for OpenAI's own server.
    """
    name = settings.role_model(role)
    setting = settings.model_variable(role)
    if not name:
        return None
    require_chat_model(settings, role)
    if name.startswith(given.PREFIX):
        model = given.model_object(setting, name)
        return model
    name, options = given.split_model(name)
    provider, _, own_name = name.partition(":")
    if provider != "openai":
        from langchain.chat_models import init_chat_model

        with _option_errors(setting, name):
            return init_chat_model(own_name, model_provider=provider, **options)
    key = read_key(settings.chat_api_key, "WORKBENCH_CHAT_API_KEY")
    client = async_client(
        settings.chat_timeout_s, settings.chat_answer_s, "WORKBENCH_CHAT_ANSWER_S"
    )
    kind = _model_class()
    effort = options.pop("effort", None)
    fields = {option: value for option, value in options.items() if option in kind.model_fields}
    extra = {
        option: value for option, value in options.items() if option not in kind.model_fields
    }
    given_by_settings = {
        "model": own_name,
        "base_url": settings.chat_base_url or None,
        "api_key": SecretStr(key or KEYLESS),
        "timeout": settings.chat_timeout_s,
        "temperature": 0,
        "stream_usage": True,
        "max_completion_tokens": settings.chat_max_tokens or None,
        "max_retries": 0,  # `patiently` does it, and reports it
        "stream_chunk_timeout": None,  # chat_timeout_s is the time between two parts already
        "http_async_client": client,
        "reasoning_effort": effort,
        "extra_body": extra or None,
    }
    with _option_errors(setting, name):
        return kind(**{**given_by_settings, **fields})


@contextmanager
def _option_errors(setting: str, name: str) -> Iterator[None]:
    """Raise what a model's class says of its options as a fault of the setting."""
    try:
        yield
    except (ValidationError, TypeError, ValueError) as error:
        fault = (
            error.errors()[0]
            if isinstance(error, ValidationError)
            else {"loc": (), "msg": str(error)}
        )
        where = ".".join(map(str, fault["loc"]))
        message = f"{where}: {fault['msg']}" if where else str(fault["msg"])
        raise SettingsError(
            f"WORKBENCH_{setting.upper()}: {name} cannot be opened: {message}"
        ) from None


@cache
def _model_class() -> Any:
    """ChatOpenAI that keeps what a server sends of the model's thoughts next to the content; the library drops it."""
    from langchain_openai import ChatOpenAI

    class Thoughtful(ChatOpenAI):
        def _convert_chunk_to_generation_chunk(self, chunk: Json, *more: Any) -> Any:
            generation = super()._convert_chunk_to_generation_chunk(chunk, *more)
            choices = chunk.get("choices") or [{}]
            return generation and _with_thought(generation, choices[0].get("delta"))

        def _create_chat_result(self, response: Any, *more: Any) -> Any:
            result = super()._create_chat_result(response, *more)
            reply = (
                response if isinstance(response, dict) else response.model_dump(warnings=False)
            )
            for generation, choice in zip(result.generations, reply["choices"], strict=False):
                _with_thought(generation, choice.get("message"))
            return result

    return Thoughtful


def _with_thought(generation: Any, message: Any) -> Any:
    thought = (message or {}).get("reasoning_content") or (message or {}).get("reasoning")
    if isinstance(thought, str):
        generation.message.additional_kwargs["reasoning_content"] = thought
    return generation


_SECRET = re.compile(r"key|token$|secret|password|authorization", re.I)


def require_chat_model(settings: Settings, role: str) -> None:
    """Refuse the name of a role's chat model that cannot be opened, without opening it.

    Raises:
        SettingsError: an unknown provider, a name without a model, or no key for OpenAI's own server.
    """
    model = settings.role_model(role)
    variable = settings.model_variable(role)
    if not model:
        return
    if model.startswith(given.PREFIX):
        given.model_object(variable, model)
        return
    full_name, options = given.split_model(model)
    provider, _, name = full_name.partition(":")
    if secret := next((option for option in options if _SECRET.search(option)), ""):
        raise SettingsError(
            f"{variable} has {secret!r} among its options, and names of models are kept with each run. Set "
            "WORKBENCH_CHAT_API_KEY, or give a LangChain chat model as an object."
        )
    package = f"langchain_{provider}"
    if not name or not (provider.isidentifier() and find_spec(package)):
        fix = f" {package.replace('_', '-')} is not installed." if name else ""
        raise SettingsError(
            f"{variable} is {model!r}. Known: '' (the offline default), 'openai:NAME', 'PROVIDER:NAME' where the "
            "provider's LangChain package is installed, or a LangChain chat model, as an object for Workbench.open."
            + fix
        )
    if provider != "openai":
        return
    key = read_key(settings.chat_api_key, "WORKBENCH_CHAT_API_KEY")
    if not key and not settings.chat_base_url:
        raise SettingsError(
            f"{variable} is {model!r}, and OpenAI's server wants a key. "
            "Set WORKBENCH_CHAT_API_KEY, or WORKBENCH_CHAT_BASE_URL to a server of your own."
        )


async def close_chat_model(model: BaseChatModel) -> None:
    """Give back the connections of a model that ``open_chat_model`` made."""
    client = getattr(model, "http_async_client", None)
    if client is not None:
        await client.aclose()


async def stream_text(
    model: BaseChatModel,
    messages: Sequence[Any],
    limits: Limits | None = None,
    heard: Callable[[BaseMessage], object] = lambda _: None,
    thinking: Thinking | None = None,
) -> AsyncIterator[str]:
    """Yield the model's answer in its own chunks; empty ones are left out. ``heard`` is given every chunk as it came.

    Thoughts stay in ``thinking``. Where it says ``prefilled``, what came before was a thought too, and is no answer.

    Raises:
        ModelError: the server failed or cannot be reached, before or in the middle of the answer; the answer is longer
            than a limit; or the stream ended without saying that the answer is whole.
    """
    limits = limits or Limits()
    place = f"{_place(model)} {getattr(model, 'model_name', '')}"
    thinking = thinking or Thinking()
    thinking.assume(place in _PREFILLED)
    until = asyncio.get_running_loop().time() + limits.seconds
    length = 0
    finish = ""
    halves = Surrogates()
    stream: Any = None

    async def first() -> Any:
        nonlocal stream
        stream = model.astream(list(messages))
        try:
            return await anext(stream, None)
        except Exception as error:
            if not _without(model, error):
                raise
            return await first()

    try:
        async with asyncio.timeout_at(until):
            chunk = await patiently(first, limits.patience, lambda e: explained(e, model))
        async with aclosing(stream):
            while chunk is not None:
                heard(chunk)
                finish = chunk.response_metadata.get("finish_reason") or finish
                thinking.note(_chunk_thought(chunk))
                text = thinking.heard(halves.joined(str(chunk.text)))[
                    : limits.characters - length + 1
                ]
                length += len(text)
                if length > limits.characters:
                    text = text[:-1]
                if text:
                    yield text
                # How many times as long as an answer thoughts may be.
                if length > limits.characters or len(thinking.thought) > 10 * limits.characters:
                    raise LimitReached(_too_long(limits))
                async with asyncio.timeout_at(until):
                    chunk = await anext(stream, None)
        if rest := thinking.end():
            yield rest
        if thinking.prefilled:
            _PREFILLED.add(place)
        _require_complete(model, finish, length + len(thinking.thought))
        if thinking.thought and not thinking.said.strip():
            raise LimitReached(
                "the model thought, and then said nothing. Raise WORKBENCH_CHAT_MAX_TOKENS, or use another model."
            )
    except Exception as error:
        # `from None`: what the library raised may quote the request with its key.
        raise ModelError(explained(_late(error, until, limits), model)) from None


async def call_model(
    model: BaseChatModel, call: Callable[[], Awaitable[T]], limits: Limits | None
) -> T:
    """Return what one call of the model gives that is not streamed: asked again where that helps, and bounded.

    Raises:
        ModelError: the server failed, cannot be reached, or does not answer as such a server does.
        ValidationError: it answered, in another form than was asked for.
    """
    limits = limits or Limits()
    until = asyncio.get_running_loop().time() + limits.seconds

    async def attempt() -> T:
        try:
            return await call()
        except Exception as error:
            if not _without(model, error):
                raise
            return await attempt()

    try:
        async with asyncio.timeout_at(until):
            return await patiently(attempt, limits.patience, lambda e: explained(e, model))
    except ValidationError:
        raise
    except Exception as error:
        raise ModelError(explained(_late(error, until, limits), model)) from None


async def filled_in(
    model: BaseChatModel,
    messages: Sequence[Any],
    form: type[BaseModel],
    limits: Limits | None = None,
) -> BaseMessage:
    """Return model's reply to a form, as it came: by JSON schema where the server takes one, else asked for in words.

    Raises:
        ModelError: the server failed, cannot be reached, or refuses; or the reply is longer than a limit.
    """
    place = f"{_place(model)} {getattr(model, 'model_name', '')} {form.__name__}"

    replying: Any = None
    if not hasattr(model, "openai_api_base") and hasattr(type(model), "with_structured_output"):
        # LangChain has no way to ask whether a model takes a JSON schema; one that does not is asked in words
        with suppress(NotImplementedError, ValueError, TypeError):
            replying = model.with_structured_output(form, method="json_schema", include_raw=True)

    async def by_schema() -> Any:
        # with the form itself the library checks the reply, and loses it
        if hasattr(model, "openai_api_base"):
            schema = {
                "name": form.__name__,
                "schema": strict(form.model_json_schema()),
                "strict": True,
            }
            return await model.bind(
                response_format={"type": "json_schema", "json_schema": schema}
            ).ainvoke(messages)
        return (await replying.ainvoke(messages))["raw"]

    async def in_words() -> Any:
        schema = json.dumps(untitled(form.model_json_schema()), ensure_ascii=False)
        return await model.ainvoke([*messages, ("human", IN_WORDS + schema)])

    async def call() -> Any:
        if place in _WITHOUT_SCHEMA or (
            replying is None and not hasattr(model, "openai_api_base")
        ):
            return await in_words()
        try:
            return await by_schema()
        except Exception as error:
            if not _takes_no_schema(error):
                raise
            if hasattr(model, "openai_api_base"):
                _WITHOUT_SCHEMA.add(place)
            return await in_words()

    reply = await call_model(model, call, limits)
    if refusal := reply.additional_kwargs.get("refusal"):
        raise ModelError(explained(LimitReached(f"it refused: {str(refusal)[:200]}"), model))
    if len(reply_text(reply)) > (limits or Limits()).characters:
        raise ModelError(explained(LimitReached(_too_long(limits or Limits())), model))
    return reply


async def with_tools(
    model: BaseChatModel,
    messages: Sequence[Any],
    tools: Sequence[Json],
    limits: Limits | None,
) -> BaseMessage | None:
    """Return a reply of a model that may call tools; None where it, or its server, takes no tools.

    Args:
        model: what is asked.
        messages: of the conversation, with the calls so far and their results.
        tools: each as OpenAI's servers take it.
        limits: of the reply.

    Raises:
        ModelError: the server failed, cannot be reached, or refuses.
    """
    place = f"{_place(model)} {getattr(model, 'model_name', '')} tools"
    if place in _WITHOUT_SCHEMA:
        return None
    try:
        bound = model.bind_tools(list(tools))
    except (NotImplementedError, AttributeError):
        return None

    async def call() -> Any:
        try:
            return await bound.ainvoke(list(messages))
        except Exception as error:
            if not _takes_no_tools(error):
                raise
            _WITHOUT_SCHEMA.add(place)
            return None

    reply = await call_model(model, call, limits)
    return reply


def without_tools(model: BaseChatModel) -> None:
    """Ask a model for forms from now on: its server takes tools, and does not pass them on."""
    _WITHOUT_SCHEMA.add(f"{_place(model)} {getattr(model, 'model_name', '')} tools")


async def probe(
    model: BaseChatModel, form: type[BaseModel], tool: Json, limits: Limits
) -> dict[str, bool]:
    """Return whether a model's server takes a JSON schema, here ``form``, and whether the model calls tools.

    Raises:
        ModelError: the server failed, cannot be reached, or refuses.
    """
    name = f"{_place(model)} {getattr(model, 'model_name', '')} {form.__name__}"
    await filled_in(
        model, [("human", "Fill in the form for the question: Who built the mill?")], form, limits
    )
    reply = await with_tools(
        model, [("human", "Call the tool to find who built the mill.")], [tool], limits
    )
    return {
        "schema": name not in _WITHOUT_SCHEMA,
        "tools": bool(getattr(reply, "tool_calls", None)),
    }


_PREFILLED: set[str] = set()
"""Models whose replies begin in a thought that only a closing tag ends, as found in this process."""
_WITHOUT_SCHEMA: set[str] = set()
"""Servers with the forms, or tools, that they do not take, as found in this process."""
IN_WORDS = "Answer with one JSON object and nothing else. Its JSON Schema: "


_REFUSED = {
    *(
        "default",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "pattern",
        "format",
        "uniqueItems",
    ),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
"""Keywords that strict servers refuse; a property of that name is a dict, and stays."""


def strict(schema: Any) -> Any:
    """Return a JSON Schema as strict servers take it: every property required, no other allowed, no defaults or limits.

    Limits are checked when the reply is read; how many items a list may have is said in its description.

    >>> strict({"type": "object", "properties": {"a": {"type": "string", "default": "", "maxLength": 9}}})["properties"]
    {'a': {'type': 'string'}}
    >>> strict({"type": "array", "maxItems": 3})
    {'type': 'array', 'description': 'At most 3.'}
    """
    if isinstance(schema, list):
        return [strict(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    schema = untitled(schema)
    now = {
        name: strict(inner)
        for name, inner in schema.items()
        if name not in _REFUSED or isinstance(inner, dict)
    }
    if "oneOf" in now and isinstance(now.pop("discriminator", None), dict):
        now["anyOf"] = now.pop("oneOf")  # strict servers know no other union
    if isinstance(schema.get("maxItems"), int):
        now["description"] = (
            f"{schema.get('description', '')} At most {schema['maxItems']}.".strip()
        )
    if isinstance(now.get("properties"), dict):
        now |= {"required": list(now["properties"]), "additionalProperties": False}
    return now


def untitled(schema: Any) -> Any:
    """Return a JSON Schema without the titles that pydantic writes: they say the names again.

    >>> untitled({"title": "A", "properties": {"title": {"title": "Title", "type": "string"}}})
    {'properties': {'title': {'type': 'string'}}}
    """
    if isinstance(schema, list):
        return [untitled(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: untitled(v) for k, v in schema.items() if k != "title" or not isinstance(v, str)}


def reply_text(message: BaseMessage) -> str:
    """Return what a model replied to a form: its text, or what it called the form with where that is a tool."""
    calls = getattr(message, "tool_calls", None)
    return split(str(message.text))[0] or (
        json.dumps(calls[0]["args"], ensure_ascii=False) if calls else ""
    )


def _chunk_thought(message: BaseMessage) -> str:
    """Return what a server sent of the model's thoughts next to its content, or as parts of it."""
    parts = message.content if isinstance(message.content, list) else []
    thoughts = [
        part.get("thinking") or part.get("reasoning") for part in parts if isinstance(part, dict)
    ]
    thoughts.append(message.additional_kwargs.get("reasoning_content"))
    return "".join(part for part in thoughts if isinstance(part, str))


def thinking_text(message: BaseMessage) -> str:
    """Return everything that a model thought in a whole reply."""
    return "\n".join(filter(None, [_chunk_thought(message), split(str(message.text))[1]]))


def _without(model: BaseChatModel, error: Exception) -> bool:
    """Leave out the parameter that the server has just refused, where it can be done without; it is said."""
    name = refused_parameter(error)
    own = {
        "temperature": "temperature",
        "stream_options": "stream_usage",
        "max_completion_tokens": "max_tokens",
    }
    value = getattr(model, own.get(name, ""), None)
    if value is None or value is False:
        return False
    setattr(model, own[name], False if name == "stream_options" else None)
    tell(f"The model at {server_name(model)} takes no {name}: it is asked without.")
    return True


def _takes_no_schema(error: Exception) -> bool:
    if isinstance(error, NotImplementedError):
        return True
    message = str(error).lower()
    return getattr(error, "status_code", None) in (400, 404, 422, 501) and any(
        word in message
        for word in ("response_format", "json_schema", "schema", "grammar", "structured")
    )


def _takes_no_tools(error: Exception) -> bool:
    refused = getattr(error, "status_code", None) in (400, 404, 422, 501)
    return refused and any(word in str(error).lower() for word in ("tool", "function call"))


def token_usage(message: BaseMessage) -> dict[str, int] | None:
    """Return tokens that the server counted: read, of which from its cache, and written; None where it says nothing."""
    usage = getattr(message, "usage_metadata", None)
    if not usage:
        return None
    cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
    thought = (usage.get("output_token_details") or {}).get("reasoning") or 0
    counts = {
        "input": usage.get("input_tokens", 0),
        "output": usage.get("output_tokens", 0),
        "cached": cached,
    }
    return {**counts, "reasoning": thought} if thought else counts


def sampling(model: Any) -> Json:
    """Return how a model samples, as far as it says; what was bound to it wins."""
    bound = {**getattr(model, "kwargs", {})} if hasattr(model, "bound") else {}
    while hasattr(model, "bound"):
        model = model.bound
        bound = {**getattr(model, "kwargs", {}), **bound}
    names = ("temperature", "top_p", "seed", "max_tokens", "reasoning_effort")
    values = {name: bound.get(name, getattr(model, name, None)) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, (int, float, str))}


class Surrogates:
    """Joins a character whose two halves a server sent in two chunks, and drops invalid characters.

    >>> halves = Surrogates()
    >>> halves.joined("a\\ud83d"), halves.joined("\\ude00b\\x00"), halves.joined("\\ude00")
    ('a', '😀b', '�')
    """

    def __init__(self) -> None:
        self._kept = ""

    def joined(self, text: str) -> str:
        """Return the text, without a half at its end; that comes with the next."""
        text = self._kept + text
        self._kept = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._kept = text[:-1], text[-1]
        return (
            text.encode("utf-16-le", "surrogatepass")
            .decode("utf-16-le", "replace")
            .replace("\x00", "")
        )


def explained(error: BaseException, model: BaseChatModel) -> str:
    """``failures.explain`` for this model."""
    return explain(error, _place(model), *model_secrets(model))


def server_name(model: BaseChatModel) -> str:
    """Return the address of the model's server, for messages."""
    return address(_place(model))


def _place(model: BaseChatModel) -> str:
    own = type(model).__name__ if not hasattr(model, "openai_api_base") else _OPENAI
    return str(getattr(model, "openai_api_base", None) or getattr(model, "base_url", None) or own)


def model_secrets(model: BaseChatModel) -> list[str]:
    """Return the keys that a model holds, only to keep them out of messages."""
    values = getattr(model, "__dict__", {}).values()
    return [str(value.get_secret_value()) for value in values if isinstance(value, SecretStr)]


_OPENAI = "api.openai.com"


def _late(error: Exception, until: float, limits: Limits) -> Exception:
    """Return the error, or the setting that was at its end."""
    if isinstance(error, TimeoutError) and asyncio.get_running_loop().time() >= until:
        return LimitReached(
            f"the answer was not complete after {limits.seconds:g} s. Raise WORKBENCH_CHAT_ANSWER_S"
        )
    return error


def _too_long(limits: Limits) -> str:
    return f"the answer is longer than {limits.characters:,} characters. Raise WORKBENCH_CHAT_MAX_CHARACTERS"


def _require_complete(model: BaseChatModel, finish: str, length: int) -> None:
    """Refuse an answer that is not whole. A model that is no OpenAI server need not say how it ended."""
    if finish == "length":
        raise LimitReached(
            "the model stopped in the middle, at its greatest length. "
            "Raise WORKBENCH_CHAT_MAX_TOKENS, or use a model with a longer context."
        )
    if finish == "content_filter":
        raise LimitReached(
            "the server's content filter cut the answer off. Ask otherwise, or use another model."
        )
    if finish or not hasattr(model, "openai_api_base"):
        return
    if length:
        raise LimitReached(
            "the stream ended before the answer did. Resume the run to ask it again."
        )
    raise LimitReached(
        "the stream ended without an answer. Is WORKBENCH_CHAT_BASE_URL an OpenAI-compatible server? "
        "It often ends in /v1."
    )
