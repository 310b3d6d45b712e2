"""What went wrong with a model's server, in one line: which server, what it said, the mend; never the key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote, urlsplit

KEYLESS = "none"
"""What is sent as a key to a server that asks for none; the client library insists on one."""

LONGEST = 400
_BROKE_OFF = "The server broke off its answer; resume the run to ask it again."
_NO_MODEL = "That is no answer of an OpenAI-compatible server: is {base_url} right? It often ends in /v1."
_MENDS = {
    "LimitReached": "",
    "RemoteProtocolError": _BROKE_OFF,
    "ReadError": _BROKE_OFF,
    "AuthenticationError": "Is {api_key} right?",
    "PermissionDeniedError": "May this key use this model?",
    "NotFoundError": "Does the server have the model that {model} names?",
    "RateLimitError": "Wait a little, or use a smaller model.",
    "BadRequestError": "If the prompt is too long, lower WORKBENCH_MERGE_MAX_CHARACTERS.",
    "InternalServerError": "The server is in trouble: see its log, and try again later.",
    "APITimeoutError": "Raise {timeout_s}, or use a faster model.",
    "TimeoutException": "Raise {timeout_s}, or use a faster model.",
    "APIConnectionError": "Is the server running, and is {base_url} right?",
    "UnicodeDecodeError": "The server sent bytes that are not UTF-8: see its log.",
    "JSONDecodeError": _NO_MODEL,
    "AttributeError": _NO_MODEL,
    "LookupError": _NO_MODEL,
    "TypeError": _NO_MODEL,
    "ValueError": _NO_MODEL,
}
"""What to do about each kind of error, by the names of the classes of openai and httpx; the first that fits."""


class LimitReached(Exception):
    """An answer is longer, or takes longer, than a setting allows; the message names the setting."""


def explain(error: BaseException, server: str, *secrets: str, what: str = "chat") -> str:
    """What happened, where, and the mend, in one line without the key.

    Args:
        error: what the client library raised.
        server: its address.
        secrets: the keys that were sent.
        what: ``chat`` or ``embedding``: how the settings of this model begin.

    >>> explain(OSError("sk-123 was slow"), "https://me:pass@example.org/v1", "sk-123")
    'The chat model at https://example.org/v1 failed: OSError: (key) was slow. Try again, or see the log of the server.'
    """
    chain = list(_causes(error))
    # Hidden before it is cut: half a key at the edge would not be found any more.
    told = [str(chain[-1])] if isinstance(chain[-1], LimitReached) else _told(chain)
    told = [hidden(line, [*secrets, _password(server)]) for line in told]
    kinds = {kind.__name__ for e in chain for kind in type(e).__mro__}
    mend = next((mend for kind, mend in _MENDS.items() if kind in kinds), "Try again, or see the log of the server.")
    settings = {name: f"WORKBENCH_{what}_{name}".upper() for name in ("api_key", "model", "base_url", "timeout_s")}
    line = " <- ".join(dict.fromkeys(told))
    line = line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
    return f"The {what} model at {address(server)} failed: {line.rstrip('.')}. {mend.format(**settings)}".rstrip()


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, however they are written in it.

    >>> hidden("Bearer a b/c and a%20b%2Fc", ["a b/c"])
    'Bearer (key) and (key)'
    """
    for secret in secrets:
        if secret and secret != KEYLESS:
            for form in (secret, quote(secret, safe=""), repr(secret)[1:-1]):
                text = text.replace(form, "(key)")
    return text


def address(url: str) -> str:
    """Where a server is, for people: without user, password and query.

    >>> address("https://me:pass@example.org:8443/v1?key=abc"), address("")
    ('https://example.org:8443/v1', '')
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _told(chain: list[BaseException]) -> list[str]:
    """Each error in a line, without those that only wrap another in the same words."""
    said = [" ".join(str(error).split()) for error in chain]
    return [
        f"{type(error).__name__}: {text}".removesuffix(": ")
        for error, text, below in zip(chain, said, [*said[1:], None], strict=True)
        if text != below
    ]


def _password(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[0].partition(":")[2]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
