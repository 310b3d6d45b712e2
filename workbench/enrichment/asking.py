"""HTTP to a source outside: one address, one key, an end to every answer, and what went wrong in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from workbench.models.failures import LimitReached, address, hidden
from workbench.models.patience import Patience, patiently
from workbench.models.wire import Meter

MOST_ANSWERS = 16
"""Answers that one enrichment may ask for, whatever the first ones say."""


class Refused(Exception):
    """An answer that is none: another status than 200, as ``models.patience`` reads it."""

    def __init__(self, response: httpx.Response):
        super().__init__(f"{response.status_code} {response.reason_phrase}".strip())
        self.status_code, self.response = response.status_code, response


class NoJson(Exception):
    """The server sent what is not a JSON object."""


class _Keyed(httpx.AsyncBaseTransport):
    """Puts the key into a request on its way out, so that no log line and no error ever holds it.

    A token of TMDB's goes into a header; its shorter keys are taken in the address only.
    """

    def __init__(self, key: str, scheme: str, host: str):
        proxy = None if proxy_bypass(host) else getproxies().get(scheme)
        self._key, self._inner = key, httpx.AsyncHTTPTransport(proxy=proxy)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        headers, url = httpx.Headers(request.headers), request.url
        if len(self._key) > 32:
            headers["Authorization"] = f"Bearer {self._key}"
        else:
            url = url.copy_merge_params({"api_key": self._key})
        return await self._inner.handle_async_request(
            httpx.Request(
                request.method, url, headers=headers, stream=request.stream, extensions=dict(request.extensions)
            )
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class Server:
    """A source outside while one question is asked of it; ``async with`` closes its connections.

    Args:
        base_url: where its answers are.
        key: goes to this address and nowhere else: no redirect is followed.
        timeout_s: for an answer, from its first to its last byte.
        setting: the environment variable that changes ``timeout_s``.
        patience: how often a busy server is asked again.

    Raises:
        httpx.InvalidURL: ``base_url`` is no address.
    """

    def __init__(self, base_url: str, key: str, *, timeout_s: float, setting: str, patience: Patience):
        self.url, self.asked = base_url.rstrip("/"), 0
        self._key, self._timeout_s, self._setting, self._patience = key, timeout_s, setting, patience
        self._client = httpx.AsyncClient(
            transport=_Keyed(key, *_place(base_url)),
            timeout=timeout_s,
            follow_redirects=False,
            headers={"Accept": "application/json"},
        )

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object at a path.

        Raises:
            Refused: another status than 200, after as many tries as patience allows.
            NoJson: the answer is none.
            LimitReached: it is too long, comes too slowly, or too many were asked for.
            httpx.HTTPError: the server cannot be reached, or breaks off.
        """
        if self.asked >= MOST_ANSWERS:
            raise LimitReached(f"more than {MOST_ANSWERS} answers were needed")
        self.asked += 1
        body = await patiently(lambda: self._body(path, parameters), self._patience, self.explain)
        return _object(body)

    async def _body(self, path: str, parameters: Mapping[str, str]) -> bytes:
        meter, parts = Meter(self._timeout_s, self._setting), list[bytes]()
        async with self._client.stream("GET", f"{self.url}/{path}", params=dict(parameters)) as response:
            if response.status_code != 200:
                raise Refused(response)
            async for part in response.aiter_bytes():
                parts.append(meter(part))
        return b"".join(parts)

    def explain(self, error: BaseException) -> str:
        """What went wrong, and where, in a line without the key."""
        said = " ".join(str(error).split())[:200]
        kind = "" if isinstance(error, Refused | NoJson | LimitReached) else type(error).__name__
        told = ": ".join(part for part in (kind, said) if part)
        return hidden(f"{address(self.url)}: {told.rstrip('.')}.", [self._key])


def _place(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        scheme, host, _ = parts.scheme, parts.hostname or "", parts.port
    except ValueError as error:
        raise httpx.InvalidURL(str(error)) from None
    if scheme not in ("http", "https") or not host:
        raise httpx.InvalidURL("it needs http:// or https:// and a host")
    return scheme, host


def _object(body: bytes) -> dict[str, Any]:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON number")

    try:
        found = json.loads(body.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise NoJson("the answer is no JSON") from None
    if not isinstance(found, dict):
        raise NoJson("the answer is no JSON object")
    return found
