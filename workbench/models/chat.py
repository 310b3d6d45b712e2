"""Chat models by name: ``openai:NAME`` is any OpenAI-compatible server; an empty name means no model.

Whatever goes wrong with a model comes out as a ``ModelError`` that names the server, what happened and the fix, and
never shows the key. A server that is busy or away is asked again, until the first word of an answer; an answer that
was begun and not ended is never taken for the whole.
"""

from __future__ import annotations

import asyncio
import re
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

from workbench import settings as given
from workbench.errors import ModelError, SettingsError, first_fault
from workbench.models.thinking import Thinking, split
from workbench.models.wire import (
    KEYLESS,
    LimitReached,
    Patience,
    address,
    async_client,
    explain,
    keys_in,
    patiently,
    read_key,
    refused_parameter,
    tell,
)
from workbench.state import Json
from workbench.text import to_json

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


_USUAL = Limits()


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
    kind = _model_class()
    effort = options.pop("effort", None)
    own = [option for option in options if option in kind.model_fields]
    fields = {option: options.pop(option) for option in own}
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
        "http_async_client": async_client(settings),
        "reasoning_effort": effort,
        "extra_body": options or None,
    }
    with _option_errors(setting, name):
        return kind(**{**given_by_settings, **fields})


@contextmanager
def _option_errors(setting: str, name: str) -> Iterator[None]:
    """Raise what a model's class says of its options as a fault of the setting."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = first_fault(error) if isinstance(error, ValidationError) else error
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


def _is_server(model: BaseChatModel) -> bool:
    """Check whether an OpenAI-compatible server is asked."""
    return hasattr(model, "openai_api_base")


def _model_key(model: BaseChatModel) -> str:
    """Return what is found out about a model under: its server and its name."""
    return f"{_place(model)} {getattr(model, 'model_name', '')}"


async def _answer(
    model: BaseChatModel, call: Callable[[], Awaitable[T]], limits: Limits, until: float
) -> T:
    """Make a call: again where that helps, without a parameter that the server refuses, and until then."""

    async def attempt() -> T:
        try:
            return await call()
        except Exception as error:  # each provider's client raises errors of its own
            if not _without(model, error):
                raise
            return await attempt()

    async with asyncio.timeout_at(until):
        return await patiently(attempt, limits.patience, lambda e: explained(e, model))


async def stream_text(
    model: BaseChatModel,
    messages: Sequence[Any],
    limits: Limits = _USUAL,
    heard: Callable[[BaseMessage], object] = lambda _: None,
    thinking: Thinking | None = None,
) -> AsyncIterator[str]:
    """Yield the model's answer in its own chunks; empty ones are left out. ``heard`` is given every chunk as it came.

    Thoughts stay in ``thinking``. Where it says ``prefilled``, what came before was a thought too, and is no answer.

    Raises:
        ModelError: the server failed or cannot be reached, before or in the middle of the answer; the answer is longer
            than a limit; or the stream ended without saying that the answer is whole.
    """
    place = _model_key(model)
    thinking = thinking or Thinking()
    thinking.assume(place in _PREFILLED)
    until = asyncio.get_running_loop().time() + limits.seconds
    length = 0
    finish = ""
    decoder = getincrementaldecoder("utf-16-le")("replace")
    stream: Any = None

    async def first() -> Any:
        nonlocal stream
        stream = model.astream(list(messages))
        return await anext(stream, None)

    try:
        chunk = await _answer(model, first, limits, until)
        async with aclosing(stream):
            while chunk is not None:
                heard(chunk)
                finish = chunk.response_metadata.get("finish_reason") or finish
                thinking.note(_chunk_thought(chunk))
                # a character may come in two halves, and NUL is in no text
                halves = str(chunk.text).encode("utf-16-le", "surrogatepass")
                text = thinking.heard(decoder.decode(halves).replace("\x00", ""))
                text = text[: limits.characters - length + 1]
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


async def call_model(model: BaseChatModel, call: Callable[[], Awaitable[T]], limits: Limits) -> T:
    """Return what one call of the model gives that is not streamed: asked again where that helps, and bounded.

    Raises:
        ModelError: the server failed, cannot be reached, or does not answer as such a server does.
        ValidationError: it answered, in another form than was asked for.
    """
    until = asyncio.get_running_loop().time() + limits.seconds
    try:
        return await _answer(model, call, limits, until)
    except ValidationError:
        raise
    except Exception as error:  # each provider's client raises errors of its own
        raise ModelError(explained(_late(error, until, limits), model)) from None


async def filled_in(
    model: BaseChatModel,
    messages: Sequence[Any],
    form: type[BaseModel],
    limits: Limits = _USUAL,
) -> BaseMessage:
    """Return model's reply to a form, as it came: by JSON schema where the server takes one, else asked for in words.

    Raises:
        ModelError: the server failed, cannot be reached, or refuses; or the reply is longer than a limit.
    """
    place = f"{_model_key(model)} {form.__name__}"
    by_schema: Any = None
    if _is_server(model):
        # with the form itself the library checks the reply, and loses it
        schema = strict(form.model_json_schema())
        json_schema = {"name": form.__name__, "schema": schema, "strict": True}
        by_schema = model.bind(
            response_format={"type": "json_schema", "json_schema": json_schema}
        )
    elif hasattr(type(model), "with_structured_output"):
        # LangChain has no way to ask whether a model takes a JSON schema; one that does not is asked in words
        with suppress(NotImplementedError, ValueError, TypeError):
            by_schema = model.with_structured_output(form, method="json_schema", include_raw=True)

    async def call() -> Any:
        if by_schema is not None and place not in _WITHOUT_SCHEMA:
            try:
                reply = await by_schema.ainvoke(messages)
                return reply["raw"] if isinstance(reply, dict) else reply
            except Exception as error:  # a client's own, or a server's answer to the schema
                if not _takes_no_schema(error):
                    raise
                if _is_server(model):
                    _WITHOUT_SCHEMA.add(place)
        form_text = to_json(untitled(form.model_json_schema()))
        return await model.ainvoke([*messages, ("human", IN_WORDS + form_text)])

    reply = await call_model(model, call, limits)
    if refusal := reply.additional_kwargs.get("refusal"):
        raise ModelError(explained(LimitReached(f"it refused: {str(refusal)[:200]}"), model))
    if len(reply_text(reply)) > limits.characters:
        raise ModelError(explained(LimitReached(_too_long(limits)), model))
    return reply


async def with_tools(
    model: BaseChatModel,
    messages: Sequence[Any],
    tools: Sequence[Json],
    limits: Limits,
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
    if f"{_model_key(model)} tools" in _WITHOUT_SCHEMA:
        return None
    try:
        bound = model.bind_tools(list(tools))
    except (NotImplementedError, AttributeError):
        return None

    async def call() -> Any:
        try:
            return await bound.ainvoke(list(messages))
        except Exception as error:  # a client's own, or a server's answer to the tools
            if not _refuses(error, "tool", "function call"):
                raise
            without_tools(model)
            return None

    reply = await call_model(model, call, limits)
    return reply


def without_tools(model: BaseChatModel) -> None:
    """Ask a model for forms from now on: its server takes tools, and does not pass them on."""
    _WITHOUT_SCHEMA.add(f"{_model_key(model)} tools")


async def probe(
    model: BaseChatModel, form: type[BaseModel], tool: Json, limits: Limits
) -> dict[str, bool]:
    """Return whether a model's server takes a JSON schema, here ``form``, and whether the model calls tools.

    Raises:
        ModelError: the server failed, cannot be reached, or refuses.
    """
    await filled_in(
        model, [("human", "Fill in the form for the question: Who built the mill?")], form, limits
    )
    reply = await with_tools(
        model, [("human", "Call the tool to find who built the mill.")], [tool], limits
    )
    return {
        "schema": f"{_model_key(model)} {form.__name__}" not in _WITHOUT_SCHEMA,
        "tools": bool(getattr(reply, "tool_calls", None)),
    }


_PREFILLED: set[str] = set()
"""Models whose replies begin in a thought that only a closing tag ends, as found in this process."""
_WITHOUT_SCHEMA: set[str] = set()
"""Servers with the forms, or tools, that they do not take, as found in this process."""
IN_WORDS = "Answer with one JSON object and nothing else. Its JSON Schema: "


_LIMITS = """
    default minLength maxLength minItems maxItems pattern format uniqueItems
    minimum maximum exclusiveMinimum exclusiveMaximum
"""
_REFUSED = frozenset(_LIMITS.split())
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
    return split(str(message.text))[0] or (to_json(calls[0]["args"]) if calls else "")


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
    words = ("response_format", "schema", "grammar", "structured")
    return isinstance(error, NotImplementedError) or _refuses(error, *words)


def _refuses(error: Exception, *words: str) -> bool:
    """Check whether a server refuses a request in one of these words."""
    refused = getattr(error, "status_code", None) in (400, 404, 422, 501)
    return refused and any(word in str(error).lower() for word in words)


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
    bound: Json = {}
    while hasattr(model, "bound"):
        bound = {**getattr(model, "kwargs", {}), **bound}
        model = model.bound
    names = ("temperature", "top_p", "seed", "max_tokens", "reasoning_effort")
    values = {name: bound.get(name, getattr(model, name, None)) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, (int, float, str))}


def explained(error: BaseException, model: BaseChatModel) -> str:
    """``failures.explain`` for this model."""
    return explain(error, _place(model), *keys_in(model))


def server_name(model: BaseChatModel) -> str:
    """Return the address of the model's server, for messages."""
    return address(_place(model))


def _place(model: BaseChatModel) -> str:
    own = _OPENAI if _is_server(model) else type(model).__name__
    return str(getattr(model, "openai_api_base", None) or getattr(model, "base_url", None) or own)


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
    if finish or not _is_server(model):
        return
    if length:
        raise LimitReached(
            "the stream ended before the answer did. Resume the run to ask it again."
        )
    raise LimitReached(
        "the stream ended without an answer. Is WORKBENCH_CHAT_BASE_URL an OpenAI-compatible server? "
        "It often ends in /v1."
    )
