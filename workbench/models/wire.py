"""HTTP to a model's server, with an end: no body is read past a number of bytes or of seconds.

A client's own time-out starts anew with every byte, so a server that drips would be listened to for ever.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pydantic import SecretStr

from workbench.errors import SettingsError
from workbench.models.failures import LimitReached

MOST_BYTES = 32 * 2**20


def read_key(secret: SecretStr, variable: str) -> str:
    """The key without blanks around it, as editors and copying leave them.

    Raises:
        SettingsError: it holds what no HTTP header may hold.
    """
    key = secret.get_secret_value().strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(f"{variable} is (a secret). It holds characters that no key has: copy it again.")
    return key


class Meter:
    """Counts one body: ``most_s`` seconds from now on, and ``MOST_BYTES``."""

    def __init__(self, most_s: float, setting: str):
        self._until, self._most_s, self._setting, self._bytes = time.monotonic() + most_s, most_s, setting, 0

    def __call__(self, part: bytes) -> bytes:
        """The part, if there is still room for it.

        Raises:
            LimitReached: the body is too long, or comes too slowly.
        """
        self._bytes += len(part)
        if self._bytes > MOST_BYTES:
            raise LimitReached(f"the server sent more than {MOST_BYTES >> 20} MB. See its log")
        if time.monotonic() > self._until:
            raise LimitReached(f"the answer was not complete after {self._most_s:g} s. Raise {self._setting}")
        return part


def async_client(timeout_s: float, most_s: float, setting: str, **more: Any) -> Any:
    """An asynchronous client for the openai library, of one's own: a shared one would outlive its event loop.

    Args:
        timeout_s: until a connection stands, and between two parts of an answer.
        most_s: for a whole answer.
        setting: the environment variable that changes ``most_s``.
        **more: what else the client of the openai library takes.
    """
    from openai import DefaultAsyncHttpxClient

    async def bound(response: Any) -> None:
        meter, parts = Meter(most_s, setting), response.aiter_bytes

        async def metered(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            async for part in parts(chunk_size):
                yield meter(part)

        response.aiter_bytes = metered  # whatever reads a body, reads it by this

    return DefaultAsyncHttpxClient(timeout=timeout_s, event_hooks={"response": [bound]}, **more)


def sync_client(timeout_s: float, most_s: float, setting: str, **more: Any) -> Any:
    """``async_client`` for threads that may block."""
    from openai import DefaultHttpxClient

    def bound(response: Any) -> None:
        meter, parts = Meter(most_s, setting), response.iter_bytes

        def metered(chunk_size: int | None = None) -> Iterator[bytes]:
            for part in parts(chunk_size):
                yield meter(part)

        response.iter_bytes = metered

    return DefaultHttpxClient(timeout=timeout_s, event_hooks={"response": [bound]}, **more)
