"""Talking to a model's server: asking again where that helps, what went wrong in one line, bodies with an end.

No body is read past a number of bytes or of seconds: a client's own time-out starts again with every byte, so a server
that drips would be listened to for ever. No message shows a key.
"""

from __future__ import annotations

import json
import logging
import re
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit
from urllib.request import getproxies

from pydantic import SecretStr

from workbench.errors import SettingsError
from workbench.text import SHORTEST_SECRET

if TYPE_CHECKING:
    from workbench.settings import Settings


T = TypeVar("T")
_UNREACHED = {"APIConnectionError", "ConnectError", "ReadError", "RemoteProtocolError"}
_SLOW = {"APITimeoutError", "TimeoutException"}
_log = logging.getLogger(__name__)
_hears: ContextVar[Callable[[str], object]] = ContextVar("_hears", default=_log.warning)


@dataclass(frozen=True)
class Patience:
    """The number of retries, the first pause in seconds (each further one is twice as long), the longest pause."""

    retries: int = 2
    backoff_s: float = 0.5
    longest_s: float = 60.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Patience:
        """Read the patience from the settings."""
        return cls(settings.model_retries, settings.model_backoff_s)

    def pause(self, error: Exception, failures: int) -> float | None:
        """Return seconds until the next try; None when there is to be none.

        Args:
            error: what the last try raised.
            failures: how many tries have failed.
        """
        if failures > self.retries or not passing(error):
            return None
        wait = retry_after(getattr(getattr(error, "response", None), "headers", {}))
        if wait is not None:
            return wait if wait <= self.longest_s else None
        return min(self.backoff_s * 2 ** (failures - 1), 8.0, self.longest_s)


def passing(error: BaseException) -> bool:
    """Check whether asking again may help: the server is busy, in trouble or away, but not slow."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return (status in {408, 409, 425, 429} or status >= 500) and not is_spent(error)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return (
        bool(kinds & _UNREACHED)
        and not kinds & _SLOW
        and not isinstance(error.__cause__, LimitReached)
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: a number, or a date that is read by the server's own clock.

    >>> retry_after({"retry-after": "3"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (3.0, 0.25, None)
    >>> retry_after({"retry-after": "Fri, 02 Jan 2026 00:00:05 GMT", "date": "Fri, 02 Jan 2026 00:00:00 GMT"})
    5.0
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        until = parsedate_to_datetime(headers["retry-after"]).timestamp()
        now = (
            parsedate_to_datetime(headers["date"]).timestamp()
            if "date" in headers
            else time.time()
        )
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return max(0.0, until - now)


@contextmanager
def hearing(listener: Callable[[str], object]) -> Iterator[None]:
    """Within this block, what there is to say of a model goes to the listener; otherwise it is logged as a warning."""
    token = _hears.set(listener)
    try:
        yield
    finally:
        _hears.reset(token)


def tell(note: str) -> None:
    """Report something about a model to the current listener."""
    _hears.get()(note)


async def patiently(
    call: Callable[[], Awaitable[T]], patience: Patience, explain: Callable[[Exception], str]
) -> T:
    """Return what the call gives, after as many tries as patience allows.

    Raises:
        Exception: what the last try raised.
    """
    from tenacity import AsyncRetrying

    async def attempt() -> T:  # tenacity awaits what is declared so, and no lambda
        return await call()

    return cast(T, await _retrying(AsyncRetrying, patience, explain)(attempt))


def patiently_sync(
    call: Callable[[], T], patience: Patience, explain: Callable[[Exception], str]
) -> T:
    """``patiently`` for a thread that may block."""
    from tenacity import Retrying

    return _retrying(Retrying, patience, explain)(call)


def _retrying(
    kind: Callable[..., Any], patience: Patience, explain: Callable[[Exception], str]
) -> Any:
    def pause(state: Any) -> float | None:
        error = state.outcome.exception()
        return (
            patience.pause(error, state.attempt_number) if isinstance(error, Exception) else None
        )

    def tell_pause(state: Any) -> None:
        tries = f"({state.attempt_number} of {patience.retries})"
        tell(
            f"{explain(state.outcome.exception())} It is asked again in {state.upcoming_sleep:g} s {tries}."
        )

    return kind(
        retry=lambda state: pause(state) is not None,
        wait=pause,
        before_sleep=tell_pause,
        reraise=True,
    )


KEYLESS = "none"
"""What is sent as a key to a server that asks for none; the client library insists on one."""

_BROKE_OFF = "The server broke off its answer; resume the run to ask it again."
_NO_MODEL = "That is not the answer of an OpenAI-compatible server: is {base_url} right? It often ends in /v1."
_FIXES = {
    "LimitReached": "",
    "RemoteProtocolError": _BROKE_OFF,
    "ReadError": _BROKE_OFF,
    "AuthenticationError": "Is {api_key} right?",
    "PermissionDeniedError": "May this key use this model?",
    "NotFoundError": "Does the server have the model that {model} names?",
    "RateLimitError": "Wait a little, or use a smaller model.",
    "BadRequestError": "See what it says; a model with other parameters can be given as a LangChain object.",
    "InternalServerError": "The server is in trouble: see its log, and try again later.",
    "APITimeoutError": "Raise WORKBENCH_CHAT_TIMEOUT_S, or use a faster model.",
    "TimeoutException": "Raise WORKBENCH_CHAT_TIMEOUT_S, or use a faster model.",
    "APIConnectionError": "Is the server running, and is {base_url} right?",
    "UnicodeDecodeError": "The server sent bytes that are not UTF-8: see its log.",
    "JSONDecodeError": _NO_MODEL,
    "AttributeError": _NO_MODEL,
    "LookupError": _NO_MODEL,
    "TypeError": _NO_MODEL,
    "ValueError": _NO_MODEL,
}
"""What to do about each kind of error, by the names of the classes of openai and httpx; the first that fits."""


_TOO_LONG = re.compile(
    r"context.?(?:length|window|size)|too (?:long|large|many tokens)|maximum (?:context|prompt)",
    re.I,
)
_SPENT = re.compile(
    r"quota|insufficient.{0,9}(?:balance|credit|funds)|billing|payment|credits? (?:limit|exhausted)",
    re.I,
)
_REFUSES = re.compile(
    r"not (?:supported|support|permitted|allowed)|unsupported|unrecognized|unknown|extra", re.I
)
_PARAMETERS = ("max_completion_tokens", "stream_options", "temperature")


def _words(error: BaseException) -> str:
    return f"{getattr(error, 'code', '')} {error}"


def is_spent(error: BaseException) -> bool:
    """Return whether the server says that there is nothing left to pay with: waiting does not help."""
    status = getattr(error, "status_code", None)
    return status == 402 or (status in (403, 429) and bool(_SPENT.search(_words(error))))


def refused_parameter(error: BaseException) -> str:
    """Return the parameter of ours that the server does not take; "" where it complains of something else."""
    if getattr(error, "status_code", None) not in (400, 422):
        return ""
    text = _words(error)
    complaint = str(getattr(error, "param", None) or text)
    refused = [name for name in _PARAMETERS if name in complaint and _REFUSES.search(text)]
    return next(iter(refused), "")


def _special(error: BaseException) -> str:
    """Return the fix that the words of an error tell better than its kind."""
    if is_spent(error):
        return "The quota of {api_key} is spent: waiting does not help. Pay, or use another key or model."
    refused = getattr(error, "status_code", None) in (400, 413)
    if refused and _TOO_LONG.search(_words(error)):
        return "The prompt is too long for it: lower WORKBENCH_MERGE_MAX_CHARACTERS."
    return ""


class LimitReached(Exception):
    """An answer is longer, or takes longer, than a setting allows; the message names the setting."""


def explain(error: BaseException, server: str, *secrets: str, what: str = "chat") -> str:
    """Return what happened, where, and the fix, in one line without the key.

    Args:
        error: what the client library raised.
        server: its address.
        secrets: the keys that were sent.
        what: ``chat`` or ``embedding``: how the settings of this model begin.

    >>> explain(OSError("sk-123 was slow"), "https://me:pass@example.org/v1", "sk-123")
    'The chat model at https://example.org/v1 failed: OSError: (key) was slow. Try again, or see the log of the server.'
    """
    longest = 400
    chain = list(_causes(error))
    # Hidden before it is cut: half a key at the edge would not be found any more.
    lines = [str(chain[-1])] if isinstance(chain[-1], LimitReached) else _error_lines(chain)
    hiding = [
        *secrets,
        *(secret for url in (server, *getproxies().values()) for secret in hidden(url)),
    ]
    lines = [redact(line, hiding) for line in lines]
    kinds = {kind.__name__ for e in chain for kind in type(e).__mro__}
    kind = next(
        (fix for kind, fix in _FIXES.items() if kind in kinds),
        "Try again, or see the log of the server.",
    )
    fix = next(filter(None, map(_special, chain)), kind)
    settings = {
        name: f"WORKBENCH_{what}_{name}".upper() for name in ("api_key", "model", "base_url")
    }
    line = " <- ".join(dict.fromkeys(lines))
    line = line if len(line) <= longest else f"{line[:longest]}..."
    return f"The {what} model at {address(server)} failed: {line.rstrip('.')}. {fix.format(**settings)}".rstrip()


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return text with ``(key)`` in the place of each secret: unchanged, percent-encoded, or escaped by Python or JSON.

    >>> redact("Bearer a b/c and a%20b%2fc and a+b%2Fc", ["a b/c"]), redact("abcdef", ["abc", "abcdef"])
    ('Bearer (key) and (key) and (key)', '(key)')
    """
    forms = set()
    for secret in secrets:
        if secret and secret != KEYLESS:
            forms |= {secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}
            forms |= {json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
    longest_first = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.sub(longest_first, "(key)", text, flags=re.IGNORECASE) if forms else text


def secrets(settings: Settings) -> list[str]:
    """Return what must be in no file: keys and passwords of addresses; the longest first, lest a part hide a whole."""
    values = [getattr(settings, name) for name in type(settings).model_fields]
    texts = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
    addresses = [
        *texts,
        *(value for value in values if isinstance(value, str) and "://" in value),
    ]
    texts += [secret for address in addresses for secret in hidden(address)]
    return sorted(
        {text for text in texts if len(text) >= SHORTEST_SECRET},
        key=lambda text: (-len(text), text),
    )


def address(url: str) -> str:
    """Return the address of a server user, password and query.

    >>> address("https://me:pass@example.org:8443/v1?key=abc"), address("")
    ('https://example.org:8443/v1', '')
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _bare(record: logging.LogRecord) -> bool:
    """Remove passwords from the addresses that the HTTP library logs."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            address(str(arg)) if hasattr(arg, "userinfo") else arg for arg in record.args
        )
    return True


for _name in ("httpx", "httpx2"):
    logging.getLogger(_name).addFilter(_bare)


def _error_lines(chain: list[BaseException]) -> list[str]:
    """Return each error in a line, without those that only wrap another in the same words."""
    lines = [" ".join(str(error).split()) for error in chain]
    return [
        f"{type(error).__name__}: {text}".removesuffix(": ")
        for error, text, below in zip(chain, lines, [*lines[1:], None], strict=True)
        if text != below
    ]


def hidden(url: str) -> list[str]:
    """Return the secrets in an address: its password or, without one, its user; the values of its query.

    >>> hidden("https://me:p%40ss@example.org/v1?key=abcd"), hidden("https://token@example.org"), hidden("")
    (['p%40ss', 'p@ss', 'bWU6cEBzcw==', 'abcd'], ['token', 'token', 'dG9rZW46'], [])
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    # Characters of what may be a secret in an address: a shorter one, as of `?v=1`, is found everywhere.
    values = [value for _, value in parse_qsl(parts.query) if len(value) >= 4]
    if not user and not password:
        return values
    basic = b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return [password or user, unquote(password or user), basic, *values]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


MOST_BYTES = 32 * 2**20


def read_key(secret: SecretStr, variable: str) -> str:
    """Return the key without blanks around it, as editors and copying leave them.

    Raises:
        SettingsError: it holds what no HTTP header may hold.
    """
    key = secret.get_secret_value().strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            f"{variable} is (a secret). It holds characters that no key has: copy it again."
        )
    return key


def keys_in(model: Any) -> list[str]:
    """Return the keys that a model holds, only to keep them out of messages."""
    values = getattr(model, "__dict__", {}).values()
    return [str(value.get_secret_value()) for value in values if isinstance(value, SecretStr)]


class Meter:
    """Counts one body: ``most_s`` seconds from now on, and ``MOST_BYTES``."""

    def __init__(self, most_s: float, setting: str):
        self._until = time.monotonic() + most_s
        self._most_s = most_s
        self._setting = setting
        self._bytes = 0

    def __call__(self, part: bytes) -> bytes:
        """Return the part, if there is still room for it.

        Raises:
            LimitReached: the body is too long, or comes too slowly.
        """
        self._bytes += len(part)
        if self._bytes > MOST_BYTES:
            raise LimitReached(f"the server sent more than {MOST_BYTES >> 20} MB. See its log")
        if time.monotonic() > self._until:
            raise LimitReached(
                f"the answer was not complete after {self._most_s:g} s. Raise {self._setting}"
            )
        return part


def _may_be_error(response: Any) -> bool:
    """Return whether a success has a body that a stream's reader would not look at."""
    return bool(
        response.status_code == 200 and "json" in response.headers.get("content-type", "")
    )


def _refuse_error(body: bytes) -> None:
    """Raise the words of an error that a server sends as a success, as some do while a model is loading.

    Raises:
        LimitReached: it is such an error.
    """
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return
    error = reply.get("error") if isinstance(reply, dict) else None
    if error and not reply.get("choices") and not reply.get("data"):
        words = error.get("message") if isinstance(error, dict) else error
        raise LimitReached(
            f"the server answered with an error: {words or error}. See its log, or try again"
        )


def async_client(settings: Settings) -> Any:
    """Return an asynchronous client for the openai library, of the user: a shared one would outlive its event loop.

    ``chat_timeout_s`` is for a connection, and between two parts of an answer; ``chat_answer_s`` for all of it.
    """
    from openai import DefaultAsyncHttpxClient

    hooks = bounded(settings.chat_answer_s, "WORKBENCH_CHAT_ANSWER_S")
    return DefaultAsyncHttpxClient(timeout=settings.chat_timeout_s, event_hooks=hooks)


def bounded(most_s: float, setting: str) -> dict[str, list[Any]]:
    """Return the hooks of an asynchronous client whose answers are refused where they are too long or too slow."""

    async def bound(response: Any) -> None:
        meter = Meter(most_s, setting)
        parts = response.aiter_bytes
        # Whatever reads a body, reads it by this.
        response.aiter_bytes = lambda chunk_size=None: (
            meter(part) async for part in parts(chunk_size)
        )
        if _may_be_error(response):
            _refuse_error(await response.aread())

    return {"response": [bound]}


def sync_client(timeout_s: float) -> Any:
    """``async_client`` for threads that may block; a whole answer has as long as one part of it."""
    from openai import DefaultHttpxClient

    def bound(response: Any) -> None:
        meter = Meter(timeout_s, "WORKBENCH_CHAT_TIMEOUT_S")
        parts = response.iter_bytes
        response.iter_bytes = lambda chunk_size=None: map(meter, parts(chunk_size))
        if _may_be_error(response):
            _refuse_error(response.read())

    return DefaultHttpxClient(timeout=timeout_s, event_hooks={"response": [bound]})
