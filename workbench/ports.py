"""Parts that a user registers in place of the built-in ones: checked on registration, recorded like every effect.

| part | called as | returns |
| --- | --- | --- |
| ``router`` | ``async (message, known)`` | bases (``"papers"``) or workers (``"papers:graph_agent"``), or None |
| ``planner`` | ``async (query, decision, knowledge, tools)`` | a ``Plan`` |
| ``reflector`` | ``async (query, evidence, proposal)`` | what differs from the rules' proposal, or {} |
| ``merger`` | ``async (query, evidence)`` | the pieces that stay, in their order |
| ``outliner`` | ``async (query, evidence)`` | a report's sections: ``title``, ``evidence`` (numbers from 1) |
| ``writer`` | ``async (query, evidence)`` | the answer or section, with ``[n]`` for the n-th piece |
| ``reducer`` | ``async (texts, reduce)`` | notes on much evidence as one text; ``await reduce(texts)`` is a call |
| ``handler`` | ``async (state, context)``, for one base (``kb=``) | ``{"answer", "citations"}`` |
| ``summarizer`` | ``async (summary, messages)`` | the updated summary |
| ``reranker`` | ``(query, texts)``, in a thread | a score for each text, higher is better |
| ``memory`` | an object with the methods of ``Remembering`` | what is remembered about a user |
| ``store`` | an object with the methods of ``Conversations`` | the messages of conversations |
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from workbench.errors import WorkbenchError, shown
from workbench.plans import Plan, unkeepable
from workbench.records.prompts import Prompts
from workbench.records.spending import Prices
from workbench.records.tape import Tape
from workbench.settings import Settings
from workbench.state import (
    Citation,
    Community,
    Condition,
    Data,
    Decision,
    Entity,
    ExecutionRecord,
    Hits,
    Json,
    Link,
    Mention,
    Passage,
    Relation,
    RelationKind,
    RouteDecision,
    Shared,
    Sort,
    SubStep,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from pydantic import BaseModel


__all__ = [
    "Clock",
    "Community",
    "Context",
    "Conversations",
    "Entity",
    "Field",
    "Handler",
    "KnowledgeBase",
    "KnowledgeBases",
    "Link",
    "Mention",
    "Passage",
    "Planner",
    "Relation",
    "RelationKind",
    "RunLog",
    "Shared",
    "Tool",
    "ToolLog",
]


class Field(TypedDict):
    """One typed field of a knowledge base's documents.

    Attributes:
        name: as the metadata has it.
        type: ``category`` repeats from document to document, ``name`` is of a person or a thing, ``text`` is long.
        many: whether a document may have several values.
        documents: how many have it.
        low, high: of numbers and dates (ISO texts of their own precision); else None.
        values: the distinct values of a category, most frequent first, at most ``MOST_VALUES``; else empty.
        called: language (``en``, ``zh``) -> words for the field, its own name among them; the first is the one to show.
        values_called: value -> language -> words for it.
        unit: what its numbers count, or "".
        relation: how the graph calls it ("written_by"), or "".
    """

    name: str
    type: Literal["number", "date", "category", "name", "text"]
    many: bool
    documents: int
    low: float | str | None
    high: float | str | None
    values: list[str]
    called: dict[str, list[str]]
    values_called: dict[str, dict[str, list[str]]]
    unit: str
    relation: str


class About(TypedDict):
    """What a knowledge base holds.

    Attributes:
        counts: of ``documents``, ``passages``, ``entities``, ``relations``, ``communities``.
        fields: the typed fields of its documents, those that most documents have first.
        nouns: language (``en``, ``zh``) -> what its documents are called ("paper", 论文), the one to show first; with
            ``measure`` (the Chinese measure word), ``source`` (outside), ``types`` and ``tables``.
        relations: every type of relation with the types of its ends, sorted.
        titles: some documents of which the graph knows most, for examples of what can be asked.
        types: each type of document with how many there are and the title of one, the most frequent first.
        languages: in which texts are written, the most frequent first.
    """

    counts: dict[str, int]
    fields: list[Field]
    nouns: dict[str, list[str]]
    relations: list[RelationKind]
    titles: list[str]
    types: list[tuple[str, int, str]]
    languages: list[str]


class Words(TypedDict):
    """The words of a text, by what a knowledge base has of them.

    Attributes:
        words: of the text, or the terms given.
        weights: inverse document frequency of each word; 0 for one that every passage has.
        rarity: of each word, 0 (every passage has it) to 1 (a single one has).
        texts: for each text, for each word, how near its nearest word is: 1 is the same.
    """

    words: list[str]
    weights: list[float]
    rarity: list[float]
    texts: list[list[float]]


SearchKind = Literal["words", "meaning"]
LinkKind = Literal["name", "careless", "title"]
AroundKind = Literal["relations", "mentions", "communities", "links", "shared"]


class KnowledgeBase(Protocol):
    """One indexed corpus and its three indexes. Any thread may call every method, and none changes anything.

    What a base does not have is empty: a class that inherits from this one defines the reads that it has. A read
    returns plain data, since a run keeps it on its tape.
    """

    name: str

    @property
    def enricher(self) -> Any:
        """Return the source outside that may be asked about what this base lacks; None where there is none.

        It has a ``name`` for users, says by ``ready`` whether it has what it needs, such as a key, and is called with
        names and a language (``parts/sources/enrichment.py``).
        """
        return None

    def warm(self) -> None:
        """Load what a first search needs; called before the clock of any step runs, and cheap when called again."""
        return

    def reading(self) -> AbstractContextManager[None]:
        """Hold one state of the base for every call of this thread inside the block, whatever is written meanwhile."""
        return nullcontext()

    def fingerprint(self) -> str:
        """Return hex digest of the content: equal for equal documents, whatever the order in which they came."""

    def about(self) -> About:
        """Return how much there is, and the words of its documents, fields and values."""

    def search(self, kind: SearchKind, query: str, top_k: int) -> Hits:
        """Return ``(chunk_id, score)`` by ``words`` (BM25 > 0) or ``meaning`` (cosine), best first, ties by id."""

    def rerank(self, query: str, texts: Sequence[str], model: str = "") -> list[float] | None:
        """Return a score for each text, higher is better, or None when no reranker is configured.

        Without ``model`` it is the base's own, which asks no chat model; ``chosen`` is the one of the settings.
        """
        return None

    def words(self, text: str | Sequence[str], texts: Sequence[str] = ()) -> Words:
        """Return what the base has of the words of a text, or of these terms, and how far each of ``texts`` says them.

        Words are compared by what they mean where the base can tell.
        """

    def passages(
        self, chunk_ids: Sequence[str] = (), doc_ids: Sequence[str] = ()
    ) -> list[Passage]:
        """Return the passages of these ids, in this order, then every passage of these documents, by position.

        Unknown ids are left out.
        """

    def select(
        self,
        conditions: Sequence[Condition] = (),
        sort: Sort | None = None,
        limit: int | None = None,
        count: str = "",
    ) -> list[Any]:
        """Return ids of the documents that hold for every condition: by ``sort``, else newest first, ties by id.

        With a field to ``count`` it is ``(value, documents)`` instead, most frequent first. A condition on a field that
        the base does not have holds for no document.
        """

    def link(self, text: str, kind: LinkKind = "name") -> list[Mention]:
        """Return the known names in a text, or its titles, in its order; the longest wins.

        Of a ``careless`` writer a single word is a name without its capital too.
        """
        return []

    def entity(self, name: str) -> Entity | None:
        """Return the entity of this id, name or alias, compared folded; the best connected one if several have it."""
        return None

    def around(self, kind: AroundKind, ids: Sequence[str] = (), limit: int = 0) -> list[Any]:
        """Return what is next to these entities, passages or documents.

        Args:
            kind: of entities their ``relations``, the ids of passages that are ``mentions`` of them, or their
                ``communities`` (of no ids: all, the largest first); of passages their ``links`` to the documents that
                they name, and the phrases ``shared`` with at most ``limit`` others.
            ids: of entities or passages.
            limit: of the passages that share a phrase.
        """
        return []


Bases = Sequence[KnowledgeBase]
"""The knowledge bases that are searched."""


class KnowledgeBases(Protocol):
    """The knowledge bases of a workspace."""

    def names(self) -> list[str]:
        """Return the names, sorted."""

    def get(self, name: str) -> KnowledgeBase:
        """Return the knowledge base of that name; ``UnknownKnowledge`` lists the known ones."""


class ToolLog(Protocol):
    """A tool's own log: ``with log("bm25", k=30) as detail: ...; detail["hits"] = 12`` makes one ``SubStep``."""

    sub_steps: list[SubStep]

    def __call__(self, name: str, **detail: Any) -> Any:
        """Return a context manager that times its block and yields the detail dict."""


class Tool(Protocol):
    """A retrieve-only function over one knowledge base, with all that a plan, a form and a drawing need of it."""

    @property
    def name(self) -> str:
        """Return the name in plans: lower-case letters, digits and underscores."""

    @property
    def description(self) -> str:
        """Return one sentence, for people and for planning models."""

    @property
    def input_schema(self) -> type[BaseModel]:
        """Return the schema of its input; becomes a form."""

    @property
    def output_schema(self) -> type[BaseModel]:
        """Return the schema of its output: ``results``, and fields that later steps may read by ``$from``."""

    @property
    def parallel(self) -> bool:
        """Check whether it may run next to other steps."""

    @property
    def intents(self) -> frozenset[str]:
        """Return the intents for which the rule planner adds a step with it."""

    async def __call__(
        self, tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog
    ) -> BaseModel:
        """Run; a synchronous function runs in a thread. Raises whatever went wrong: the executor records it."""


Tools = Mapping[str, Tool]
"""The available tools, by name."""


class Planner(Protocol):
    """Makes a plan for a query; deterministic unless it says otherwise in ``plan.metadata``."""

    async def __call__(
        self,
        query: str,
        decision: RouteDecision,
        knowledge: Sequence[KnowledgeBase],
        tools: Tools,
    ) -> Plan:
        """Return a plan that is valid for these tools."""


class Clock(Protocol):
    """Time, as a port, so that a replay can take it from a tape."""

    def now(self) -> datetime:
        """Return the time in UTC; it never goes back within a process, even when the wall clock does."""

    def monotonic(self) -> float:
        """Return seconds, for durations."""


class SystemClock:
    """UTC from one reading of the wall clock plus elapsed monotonic time: changing the clock changes no duration."""

    def __init__(self) -> None:
        self._wall = datetime.now(UTC)
        self._began = time.monotonic()

    def now(self) -> datetime:
        """UTC, with microseconds."""
        return self._wall + timedelta(seconds=time.monotonic() - self._began)

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.perf_counter()


@dataclass(frozen=True)
class ShiftedClock:
    """A clock, and by how much it is to be ahead."""

    clock: Clock
    by: timedelta

    def now(self) -> datetime:
        """UTC, and later by so much."""
        return self.clock.now() + self.by

    def monotonic(self) -> float:
        """Seconds since some moment, as the clock has them."""
        return self.clock.monotonic()


def clock_after(clock: Clock, moments: Iterable[datetime]) -> Clock:
    """Return the clock, never before any of these moments: what another process wrote down has been.

    Without this, a wall clock that was set back while a run waited would lay new work over old, and count both once.

    >>> from workbench.testing import EPOCH, ManualClock
    >>> clock_after(ManualClock(), [EPOCH + timedelta(days=1)]).now() - EPOCH
    datetime.timedelta(days=1)
    """
    late = max(moments, default=clock.now()) - clock.now()
    return ShiftedClock(clock, late) if late > timedelta(0) else clock


class Conversations(Protocol):
    """The stored conversations as nodes use them; each write is one durable transaction."""

    def get_or_create_conversation_id(self, user_id: str, session_id: str) -> str:
        """Return the conversation of this user and session; always the same id."""

    def append_message(
        self,
        conversation_id: str,
        role: str,
        content: str,
        *,
        message_key: str | None = None,
        citations: Sequence[Citation] = (),
        debug: Data | None = None,
        partial: bool = False,
        answers: str = "",
    ) -> str:
        """Store a message and return its id. A ``message_key`` stores once; only a ``partial`` message is completed.

        ``answers`` is the id of the message that it answers: the two are an episode then.
        """

    def list_messages(
        self, conversation_id: str, limit: int | None = None, before: str | None = None
    ) -> list[Json]:
        """Return the newest ``limit`` messages, oldest first; ``before`` is the id of a message."""


class Remembering(Protocol):
    """The memory of a user and a conversation as nodes use it; by default every method does nothing."""

    def recall(
        self, message: str, *, user_id: str, conversation_id: str, before: str | None = None
    ) -> Json:
        """Return what there is for a message: ``memories``, ``summary`` (a row, or None) and ``episodes``.

        ``episodes`` are earlier exchanges with their ``similarity``, best first; ``note`` says what failed, so that
        the window has to do.
        """
        return {"memories": [], "summary": None, "episodes": [], "note": ""}

    def remember(self, user_id: str, section: str, content: str, **about: Any) -> str:
        """Store a memory, once for its ``key``, end those that it replaces, and return its id."""
        return ""


class NoMemory(Remembering):
    """Remember nothing: agents, and graphs of the user."""


class RunLog(Protocol):
    """The records of a run as nodes write them; by default nothing is kept.

    Every write is insert-or-ignore under a key that the run determines.
    """

    def save_plan(self, run_id: str, plan: Data, author: str, reason: str) -> None:
        """Keep a version of the plan, with who made it and why."""
        return

    def record(self, run_id: str, step_id: str, attempt: int) -> ExecutionRecord | None:
        """Return the record of that attempt, when it has finished."""
        return None

    def save_record(self, run_id: str, record: ExecutionRecord, body: Data | None) -> None:
        """Store a record and its results; from then on the step is finished."""
        return

    def body(self, run_id: str, ref: str) -> Json:
        """Return what ``raw_output_ref`` names: ``{"results": [...], "output": {...}}``."""
        return {}

    def save_decision(self, run_id: str, decision: Decision) -> Decision:
        """Store a decision and return the stored one: the first of its ``review_id``."""
        return decision

    def save_event(self, run_id: str, key: str, event: Data) -> None:
        """Keep a line of the run's log."""
        return

    def events(self, run_id: str) -> list[Json]:
        """Return the lines of the run's log."""
        return []

    def save_result(self, run_id: str, result: Data) -> None:
        """Store the result of the run."""
        return

    def report(self, report_id: str, user: str) -> Json:
        """Return the newest report of that id and user: ``by``, ``outline``, ``proposed``,
        ``sections``, ``numbers``, ``evidence``; empty without one.
        """
        return {}

    def is_cancelled(self, run_id: str) -> bool:
        """Check whether the run was cancelled, in any process."""
        return False


Handler = Callable[[Data, "Context"], Awaitable[Json]]
"""A knowledge base's own answerer: (state, context) -> ``{"answer": str, "citations": [...]}``."""


@dataclass(frozen=True)
class Context:
    """Everything that a node may touch outside its state; ``unsearched`` bases answer without a retrieval.

    ``models`` are the chat models by role, ``prompts`` what they are asked with, ``prices`` what they cost; ``today``
    is the day on which the run began. ``parts`` are a user's own reflector, merger and writer, by name.
    """

    settings: Settings
    knowledge: KnowledgeBases
    tools: Tools
    conversations: Conversations
    runs: RunLog
    clock: Clock
    planner: Planner
    models: Mapping[str, BaseChatModel] = field(default_factory=dict)
    prompts: Prompts = field(default_factory=Prompts)
    prices: Prices = field(default_factory=dict)
    today: str = ""
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    unsearched: frozenset[str] = frozenset()
    parts: Mapping[str, Callable[..., Awaitable[Any]]] = field(default_factory=dict)
    tape: Tape = field(default_factory=Tape)
    corpora: KnowledgeBases | None = None
    memory: Remembering = field(default_factory=NoMemory)

    @property
    def searched(self) -> KnowledgeBases:
        """Return the knowledge bases as tools see them: a whole call of a tool is one effect, whatever it reads."""
        return self.corpora or self.knowledge

    def bases(self, names: Iterable[str]) -> list[KnowledgeBase]:
        """Return the knowledge bases of these names, in this order."""
        return [self.knowledge.get(name) for name in names]


PARAMETERS = {
    "router": "message, known",
    "planner": "query, decision, knowledge, tools",
    "reflector": "query, evidence, proposal",
    "merger": "query, evidence",
    "outliner": "query, evidence",
    "writer": "query, evidence",
    "reducer": "texts, reduce",
    "handler": "state, context",
    "summarizer": "summary, messages",
    "reranker": "query, texts",
}
IN_GRAPH = (
    "router",
    "reflector",
    "merger",
    "outliner",
    "writer",
    "reducer",
    "summarizer",
)
"""Kinds that a node of the graphs calls."""
METHODS = {
    "memory": ("recall", "remember"),
    "store": ("get_or_create_conversation_id", "append_message", "list_messages"),
}
_PROPOSAL_KEYS = (
    "should_continue",
    "stop_reason",
    "next_steps",
    "activate",
    "rewrite_query",
    "reasoning",
)


def checked(what: str, part: Any) -> Any:
    """Return the part after checking that it can be called as its kind; a wrong one would break every later run.

    Raises:
        WorkbenchError: there is no such kind; or names what was given, and what is accepted.
    """
    if what not in PARAMETERS and what not in METHODS:
        raise WorkbenchError(
            f"There is no part {shown(what)}. Known: {', '.join([*PARAMETERS, *METHODS])}."
        )
    if part is None:
        return None
    if what in METHODS:
        if missing := [name for name in METHODS[what] if not callable(getattr(part, name, None))]:
            raise WorkbenchError(
                f"{shown(part)} cannot be a {what}: it has no method {', '.join(missing)}."
            )
        return part
    parameters = PARAMETERS[what]
    called = part if inspect.isroutine(part) else getattr(part, "__call__", None)  # noqa: B004, an object may be one
    try:
        inspect.signature(part).bind(*parameters.split(", "))
    except (TypeError, ValueError):
        called = None
    wants_async = what != "reranker"
    if called is None or inspect.iscoroutinefunction(called) is not wants_async:
        raise WorkbenchError(
            f"{shown(part)} cannot be a {what}. Give `{'async ' * wants_async}def {what}({parameters})`."
        )
    return part


async def call_part(
    part: str, context: Context, *arguments: Any, unrecorded: Sequence[Any] = ()
) -> Any:
    """Call a registered part, or return its recorded reply from the tape.

    Raises:
        WorkbenchError: the reply cannot be stored as JSON.
    """

    async def ask() -> Any:
        value = await context.parts[part](*arguments, *unrecorded)
        if fault := unkeepable(value):
            raise WorkbenchError(f"The {part} gave what cannot be kept: {fault}.")
        return value

    return (await context.tape.effect("handler", f"own:{part}", arguments, ask)).value


async def call_router(context: Context, message: str, available: Sequence[str]) -> str | None:
    """Return the workers that the registered router names, joined by commas; None where it leaves that to the rules.

    Raises:
        WorkbenchError: it gives anything but a list of names.
    """
    names = await call_part("router", context, message, list(available))
    if names is None:
        return None
    if not isinstance(names, list) or not all(
        isinstance(name, str) and "," not in name for name in names
    ):
        raise WorkbenchError(
            f"The router gave {shown(names)}. Give a list of bases or workers, or None."
        )
    return ",".join(name if ":" in name else f"{name}:" for name in names)


async def call_reflector(
    context: Context, query: str, evidence: Sequence[Any], rules: Data
) -> Json:
    """Return the rules' proposal with the changes of the registered reflector.

    It never continues without a step, or beyond the permitted iterations.

    Raises:
        WorkbenchError: it changes keys that a proposal does not have.
    """
    changes = await call_part("reflector", context, query, list(evidence), dict(rules))
    if not isinstance(changes, Mapping) or set(changes) - set(_PROPOSAL_KEYS):
        raise WorkbenchError(
            f"The reflector gave {shown(changes)}. Give a dict with some of {', '.join(_PROPOSAL_KEYS)}."
        )
    new = {**rules, **changes}
    may = new["current_iteration"] < new["max_iterations"] and bool(
        new["next_steps"] or new["activate"]
    )
    if new["should_continue"] and may:
        return {**new, "stop_reason": None}
    stop = new["stop_reason"] or (
        "no_further_action" if new["should_continue"] else "quality_satisfied"
    )
    return {
        **new,
        "should_continue": False,
        "next_steps": [],
        "activate": [],
        "stop_reason": stop,
    }


async def call_merger(context: Context, query: str, evidence: Sequence[Any]) -> list[Any]:
    """Return the pieces that the registered merger keeps, in its order.

    Raises:
        WorkbenchError: it returns something that is not in this evidence.
    """
    by_id = {piece["result_id"]: piece for piece in evidence}
    pieces = await call_part("merger", context, query, list(evidence))
    ids = [
        piece.get("result_id") if isinstance(piece, Mapping) else piece
        for piece in (pieces if isinstance(pieces, list) else [None])
    ]
    if any(result_id not in by_id for result_id in ids):
        raise WorkbenchError(
            f"The merger gave {shown(pieces)}. Give a list of pieces of the evidence it was given."
        )
    return [by_id[result_id] for result_id in dict.fromkeys(ids)]


async def call_writer(context: Context, query: str, evidence: Sequence[Any]) -> str:
    """Return the answer of the registered writer.

    Raises:
        WorkbenchError: it is not text.
    """
    text = await call_part("writer", context, query, list(evidence))
    if not isinstance(text, str) or not text.strip():
        raise WorkbenchError(
            f"The writer gave {shown(text)}. Give the answer as text, with [n] for the n-th piece."
        )
    return text


def call_reranker(reranker: Any, query: str, texts: Sequence[str]) -> list[float]:
    """Return the scores of the registered reranker.

    Raises:
        WorkbenchError: there is not one number for each text.
    """
    scores = list(reranker(query, list(texts))) if texts else []
    if len(scores) != len(texts) or not all(
        isinstance(s, int | float) and math.isfinite(s) for s in scores
    ):
        raise WorkbenchError(
            f"The reranker gave {shown(scores)} for {len(texts)} texts. Give a number for each."
        )
    return [float(score) for score in scores]
