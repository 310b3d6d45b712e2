"""Facts of a Graphiti server, as a custom tool: ``wb.tools.register(graphiti(wb.settings))``.

It speaks to the REST service of Graphiti (``server/graph_service`` next to graphiti-core 0.29.3): ``POST /search``
gives facts with the times from and until which they hold, and when they were learnt. Strangers
wrote these facts: they are bounded in time and size, cleaned, and marked ``transient``; no base keeps them. A call is
one effect of a run, so a replay sends nothing. ``docs/graphiti.md`` has the whole example.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from workbench.errors import ToolError, first_fault, reason
from workbench.models.wire import LimitReached, address, bounded, hidden, redact
from workbench.ports import KnowledgeBase, ToolLog
from workbench.settings import Settings
from workbench.state import Data, Json
from workbench.text import clean
from workbench.tools.adapt import normalise
from workbench.tools.tool import FunctionTool, Search

_LONG, _SETTING = 4_000, "WORKBENCH_GRAPHITI_TIMEOUT_S"
When = Annotated[
    datetime, AfterValidator(lambda when: when if when.tzinfo else when.replace(tzinfo=UTC))
]
"""A time; one that names no zone is of UTC."""


class GraphitiInput(Search):
    """The input of ``graphiti``."""

    top_k: int = Field(10, ge=1, le=100)
    """How many facts at most"""
    group_ids: list[str] = Field(default_factory=list)
    """Of which groups; empty: of all"""
    as_of: When | None = None
    """Only what held at that time"""


class Fact(BaseModel, extra="ignore"):
    """The fields of a fact that are used, as the service sends them."""

    uuid: str = Field(min_length=1, max_length=200)
    name: str = Field(max_length=_LONG)
    fact: str = Field(min_length=1, max_length=_LONG)
    valid_at: When | None = None
    invalid_at: When | None = None
    created_at: When | None = None
    expired_at: When | None = None

    def holds(self, when: datetime) -> bool:
        """Check whether it held then; one without a beginning or an end has always, or still does."""
        return (self.valid_at is None or self.valid_at <= when) and (
            self.invalid_at is None or when < self.invalid_at
        )

    def to_result(self) -> Json:
        """Return the fact as a result of a custom tool."""
        times = self.model_dump(
            mode="json", include={"valid_at", "invalid_at", "created_at", "expired_at"}
        )
        about = {
            "id": f"graphiti:{clean(self.uuid)}",
            "title": clean(self.name),
            "text": clean(self.fact),
        }
        return {**about, **times, "transient": True, "source": "Graphiti"}


class _Facts(BaseModel):
    facts: list[Fact] = Field(max_length=1_000)


def graphiti(settings: Settings) -> FunctionTool:
    """Return the tool for the server at ``settings.graphiti_endpoint``.

    Raises:
        ToolError: there is no address, or it is not one of the REST service.
    """
    url = settings.graphiti_endpoint.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        reason = (
            "that is the database behind it"
            if parts.scheme.startswith(("bolt", "neo4j"))
            else "it must be http"
        )
        raise ToolError(
            f"WORKBENCH_GRAPHITI_ENDPOINT is {address(url)!r}: {reason}. Give the address of Graphiti's REST service "
            "(`server/` of its repository), like http://localhost:8000."
        )

    async def search(tool_input: GraphitiInput, knowledge: KnowledgeBase, log: ToolLog) -> Json:
        """Ask the server for facts, and judge them by the words of the query."""
        body = {
            "query": tool_input.query,
            "max_facts": tool_input.top_k,
            "group_ids": tool_input.group_ids or None,
        }
        with log("ask", source="Graphiti") as detail:
            facts = await _request_facts(url, settings.graphiti_timeout_s, body)
            detail["facts"] = len(facts)
        when = tool_input.as_of
        results = [
            fact.to_result()
            for fact in facts
            if clean(fact.fact).strip() and (when is None or fact.holds(when))
        ]
        with log("judge") as detail:
            output = await asyncio.to_thread(
                normalise, "graphiti", results, tool_input, knowledge
            )
            detail["hits"] = len(output["results"])
        return output

    return FunctionTool(
        name="graphiti",
        description="Facts of a Graphiti server, with the times from and until which they hold.",
        input_schema=GraphitiInput,
        function=search,
    )


async def _request_facts(url: str, timeout_s: float, body: Data) -> list[Fact]:
    import httpx

    hooks = bounded(timeout_s, _SETTING)
    try:
        async with (
            asyncio.timeout(timeout_s),
            httpx.AsyncClient(timeout=timeout_s, event_hooks=hooks) as client,
        ):
            response = await client.post(f"{url}/search", json=dict(body))
        if not response.is_success:
            raise LimitReached(f"it answered with the status {response.status_code}")
        return _Facts.model_validate_json(response.content).facts
    except ValidationError as error:
        why = f"its answer is not as expected: {first_fault(error)}"
    except TimeoutError:
        why = f"it did not answer within {timeout_s:g} s; raise {_SETTING}"
    except (httpx.HTTPError, httpx.InvalidURL, LimitReached) as error:
        why = reason(error)
    raise ToolError(
        redact(
            f"The Graphiti server at {address(url)} gave nothing: {why.rstrip('.')}. Is it running?",
            hidden(url),
        )
    )
