"""Every type that a graph carries, once: plain data, so that a checkpoint holds nothing but JSON.

The plan is the one thing that people and models write, so it has a validating type of its own in ``plans.py``;
the state carries its JSON form under ``plan``. Lists have reducers keyed by identity: running a node again,
resuming or replaying never doubles an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypeVar, get_args

# Not typing's: pydantic makes the published schema from these types, and before Python 3.12 it needs this one.
from typing_extensions import TypedDict

Json = dict[str, Any]
"""An object of plain data, as JSON has it."""
Data = Mapping[str, Any]
"""The same, read-only."""


class Passage(TypedDict):
    """One retrievable piece of a document. ``fields`` are the document's typed fields: ``year``, ``authors``, ..."""

    chunk_id: str
    doc_id: str
    title: str
    text: str
    position: int
    url: str
    licence: str
    fields: Json


class Entity(TypedDict):
    """A node of the knowledge graph. ``doc_id`` is set when a document is about it; ``aliases`` hold every language."""

    entity_id: str
    name: str
    type: str
    aliases: list[str]
    doc_id: str | None


class Relation(TypedDict):
    """An edge of the knowledge graph, with the sentence and passage that state it."""

    relation_id: str
    source: str
    type: str
    target: str
    sentence: str
    chunk_id: str


class RelationKind(TypedDict):
    """A type of relation between two types of entities, and how many relations are of it."""

    type: str
    source: str
    target: str
    count: int


class Community(TypedDict):
    """A group of entities that belong together. ``summary`` is extractive; ``doc_ids`` are the documents behind it."""

    community_id: str
    title: str
    members: list[str]
    summary: str
    doc_ids: list[str]


class Mention(TypedDict):
    """What ``text[start:end]`` means to a knowledge base.

    A name has an ``entity_id``; ``others`` share it where nothing in the text distinguishes them. A value has its
    ``field`` and ``value``, a title the ``doc_ids`` of all documents that it is of.
    """

    start: int
    end: int
    surface: str
    entity_id: NotRequired[str]
    others: NotRequired[list[str]]
    field: NotRequired[str]
    value: NotRequired[str]
    doc_ids: NotRequired[list[str]]


class Link(TypedDict):
    """A passage names a document: ``surface`` is its title as ``sentence`` writes it."""

    chunk_id: str
    doc_id: str
    surface: str
    sentence: str


class Shared(TypedDict):
    """A phrase in a sentence of a passage, and the other passages that hold it."""

    chunk_id: str
    phrase: str
    sentence: str
    chunk_ids: list[str]


QueryIntent = Literal["qa", "recommend", "compare", "list", "person", "unknown"]
ReviewPoint = Literal["clarify", "plan", "step", "reflect", "outline"]
StepStatus = Literal["success", "partial", "failed", "timeout", "cancelled", "skipped"]
StopReason = Literal[
    "quality_satisfied",
    "max_iterations_reached",
    "budget_exhausted",
    "no_further_action",
    "stopped_by_reviewer",
    "error",
]
REVIEW_POINTS: tuple[ReviewPoint, ...] = ("plan", "step", "reflect")
"""Of a question."""
REPORT_POINTS: tuple[ReviewPoint, ...] = ("clarify", *REVIEW_POINTS, "outline")
"""Of a report."""


Op = Literal["eq", "ne", "in", "not_in", "gt", "ge", "lt", "le", "between", "contains", "exists"]
AnswerType = Literal[
    "number", "date", "person", "place", "reason", "manner", "yes_no", "list", "text"
]


class Condition(TypedDict):
    """What a document's typed field must hold. ``value``: a text or number; for ``in`` and ``not_in`` a list; for
    ``between`` two bounds, both included; for ``exists`` true or false. Dates are ISO texts of any precision: ``le
    "2005"`` holds for all of 2005. A field with several values holds ``eq`` when one of them is it, ``ne`` and
    ``not_in`` when none is and there are some.
    """

    field: str
    op: Op
    value: Any


class Sort(TypedDict):
    """By which field documents are ordered."""

    field: str
    descending: bool


class NameRead(TypedDict):
    """A name in a question: ``question[start:end]``, with its quotation marks if it has some.

    ``name`` is as the knowledge base writes it, or as the question does when no knowledge base knows it (then ``type``
    and ``entity_id`` are empty and so is ``bases``). ``doc_id``: the document that is about it, or "".
    """

    surface: str
    start: int
    end: int
    name: str
    type: str
    entity_id: str
    doc_id: str
    bases: list[str]


Aggregate = Literal["", "sum", "mean", "count"]


class Question(TypedDict):
    """How a question was understood, over the fields and names of the knowledge bases it asks.

    Attributes:
        text: the question as it stands alone.
        language: ``en`` or ``zh``.
        intent: what kind of answer is wanted.
        answer_type: what kind of thing answers.
        names: the names in it, in order, without those that only give a condition its value.
        conditions: what documents must hold, all of them.
        sort: the order that is asked for ("longest", 最早), or None.
        limit: how many are asked for, or None; 1 for a superlative.
        count: whether it asks how many documents there are.
        aggregate: ``sum`` or ``mean`` of the first field over all documents that hold, or those of each value of the
            second; ``count``: how many have each value of the first; or "".
        fields: the fields whose values are asked for, in the order of the question.
        words: content words that are neither names, conditions nor words of asking; in order, as written.
        date_asked: the ISO date as of which it asks ("as of 2003", 截至2003年), or "".
        understood: how it was read, one sentence per part, in the language of the question.
        not_applied: conditions it states that no typed field can hold; they are searched as words.
        preferences: id of a memory -> how the conditions that it adds are read.
    """

    text: str
    language: Literal["en", "zh"]
    intent: QueryIntent
    answer_type: AnswerType
    names: list[NameRead]
    conditions: list[Condition]
    sort: Sort | None
    limit: int | None
    count: bool
    aggregate: Aggregate
    fields: list[str]
    words: list[str]
    date_asked: str
    understood: list[str]
    not_applied: list[str]
    preferences: NotRequired[dict[str, list[str]]]


class ExtractedEntities(TypedDict):
    """``low_level``: names as the knowledge base writes them, in the order of the question; ``high_level``: themes."""

    low_level: list[str]
    high_level: list[str]


RouteMethod = Literal["heuristic", "llm", "override", "default"]


class QuestionRead(TypedDict):
    """The part of a route decision that depends on nothing but the question and the knowledge bases."""

    query_intent: QueryIntent
    media_type_hint: str
    filters: list[Condition]
    extracted_entities: ExtractedEntities
    question: NotRequired[Question]


class RouteDecision(QuestionRead):
    """Where a message goes and what it wants."""

    requested_kb_prefix: str
    routed_kb_prefix: str
    kb_prefix: str
    confidence: float
    method: RouteMethod
    reason: str
    worker_name: str


class SubStep(TypedDict):
    """One line of a tool's own log; ``offset_ms`` counts from the start of the attempt."""

    name: str
    offset_ms: float
    duration_ms: float
    detail: Json


class Reason(TypedDict):
    """Why a step was skipped or cut short.

    Attributes:
        kind: why, as the key of its label: ``took_longer``, ``not_needed``, ``held_back``, the reason for which the
            retrieval stopped, or how the step before ended: ``after_failed``, ``after_skipped``...
        step: the id of the step before.
        tool: the tool that took longer than ``n`` seconds.
        n: see ``tool``.
    """

    kind: str
    step: NotRequired[str]
    tool: NotRequired[str]
    n: NotRequired[str]


class ExecutionRecord(TypedDict):
    """What one attempt at one step did. ``raw_output_ref`` names the body in the run store.

    ``effect`` is what determined it, ``{"version", "input", "limit_s"}``; ``replayed`` says that it comes from another
    run's tape. ``error`` says a ``reason`` in English.
    """

    step_id: str
    attempt: int
    iteration: int
    tool: str
    status: StepStatus
    error: str | None
    started_at: str
    duration_ms: float
    input_summary: Json
    output_summary: Json
    raw_input: Json
    raw_output_ref: str | None
    sub_steps: list[SubStep]
    effect: NotRequired[Json]
    replayed: NotRequired[bool]
    reason: NotRequired[Reason]


Records = Iterable[ExecutionRecord]
SourceType = Literal["chunk", "entity", "relationship", "community"]
Granularity = Literal["low_level", "high_level", "community"]


class RetrievalResult(TypedDict):
    """One piece of evidence. ``score`` is a calibrated probability that it is relevant, 0 to 1.

    ``metadata`` holds ``doc_id``, ``title``, ``url``, ``licence``, ``position``, ``kb_prefix``, ``fields`` (the
    document's typed fields), ``tools`` (who found it) and ``rank`` (in its tool).
    """

    result_id: str
    source_id: str
    source_type: SourceType
    granularity: Granularity
    score: float
    evidence: str
    metadata: Json


Evidence = Sequence[RetrievalResult]
"""Pieces of evidence, best first."""


class Reflection(TypedDict):
    """The judgement on the evidence so far, with a proposal. ``next_steps`` are plan steps as JSON."""

    current_iteration: int
    max_iterations: int
    remaining_budget: float
    should_continue: bool
    next_steps: list[Json]
    activate: list[str]
    rewrite_query: str
    stop_reason: StopReason | None
    reasoning: str
    signals: Json


Value = TypeVar("Value")
Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``; ``total`` is 0 while it is not known."""
Hits = list[tuple[str, float]]
"""``(chunk_id, score)``, best first, ties by id."""


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, anything else as the only value of one."""
    return value if isinstance(value, list) else [value]


def unique(values: Iterable[Value]) -> list[Value]:
    """Return values in their order, each once."""
    return list(dict.fromkeys(values))


def without_none(values: Data) -> Json:
    """Return the values that are there."""
    return {name: value for name, value in values.items() if value is not None}


def without_empty(values: Data) -> Json:
    """Return the values that say something: no empty text, no empty list, no 0."""
    return {name: value for name, value in values.items() if value}


def pick(values: Data, *names: str) -> Json:
    """Return the values of these names."""
    return {name: values[name] for name in names}


def drop(values: Data, *names: str) -> Json:
    """Return the values of all other names."""
    return {name: value for name, value in values.items() if name not in names}


Action = Literal["approve", "edit", "reject", "respond"]
ACTIONS: tuple[Action, ...] = get_args(Action)


class Decision(TypedDict):
    """What a reviewer answered at a review point, kept as data."""

    review_id: str
    point: ReviewPoint
    action: Action
    proposal: Json
    edits: Json
    message: str
    who: str
    decided_at: str
    note: str


class Enrichment(TypedDict):
    """A request to an external source: names, the number of pieces, what went wrong, a piece of graph for this run."""

    asked: list[str]
    found: int
    notes: list[str]
    entities: list[Json]
    relations: list[Json]


class Merged(TypedDict):
    """The evidence as the answer sees it."""

    context: str
    retrieval_results: list[RetrievalResult]
    reference: dict[str, list[dict[str, str]]]
    statistics: Json
    enrichment: NotRequired[Enrichment]


class RagRun(TypedDict):
    """The result of one agent of a run; ``result_ids`` name its evidence among what was merged."""

    worker_name: str
    result_ids: list[str]
    error: str | None
    duration_ms: float


class Citation(TypedDict):
    """One ``[n]`` of an answer: the sentence that carries it and the evidence behind it."""

    n: int
    result_id: str
    sentence: str
    source: Json


class Supported(TypedDict):
    """A statement of an answer, held against what it cites.

    Attributes:
        sentence: with its marks.
        verdict: of the passages that it cites; ``uncited`` where it cites none. Without a model ``supported`` means
            that they have each of its words, ``unsupported`` that a number, address or quotation is missing.
        cited: the marks.
        by: those of them that support it, wholly or in part.
        why: the words, numbers, addresses or quotations that they do not have.
        judge: the model that judged it, "" for the rules.
    """

    sentence: str
    verdict: Literal["supported", "partly", "unsupported", "unjudged", "uncited"]
    cited: list[int]
    by: list[int]
    why: str
    judge: str


class SectionOutline(TypedDict):
    """A section before it is written: its topic and its evidence.

    Attributes:
        section_id: ``1``, ``2``, ``2.1``: its place in the tree; a section comes after its parent.
        title: its heading.
        summary: what it is about, in a line.
        query: what is asked for it.
        evidence_ids: ids of the pieces of the merged evidence that it may use, best first.
        estimated_words: how long it will probably be.
        quotes: the sentences of these pieces that it quotes where no model writes it; empty: any.
    """

    section_id: str
    title: str
    summary: str
    query: str
    evidence_ids: list[str]
    estimated_words: int
    quotes: list[str]


class ReportOutline(TypedDict):
    """What a report will be."""

    report_type: str
    title: str
    abstract: str | None
    sections: list[SectionOutline]
    total_estimated_words: int


class Claim(TypedDict):
    """A statement of a section, held against what it cites.

    ``claim_id`` is the hash of its section and its number there; ``evidence_ids`` are of pieces; ``entities`` names;
    ``supporting_ids`` (of pieces) and ``judge`` as in ``Supported``.
    """

    claim_id: str
    section_id: str
    text: str
    evidence_ids: list[str]
    entities: list[str]
    verdict: Literal["supported", "partly", "unsupported", "unjudged", "uncited"]
    why: str
    supporting_ids: list[str]
    judge: str


class SectionContent(TypedDict):
    """A written section.

    Attributes:
        section_id: as in the outline; so are ``title`` and ``summary``.
        text: Markdown without its heading; ``[n]`` is the n-th of ``sources``.
        sources: ids of the pieces it was written from.
        claims: its statements.
        fingerprint: a hash of what it was written from.
        by: ``rules``, the name of a model, or of a person.
        reused: whether it was there already.
        notes: what went wrong on the way.
    """

    section_id: str
    title: str
    summary: str
    text: str
    sources: list[str]
    claims: list[Claim]
    fingerprint: str
    by: str
    reused: bool
    notes: list[str]


class Clarification(TypedDict):
    """A point that a question leaves open.

    Attributes:
        question_id: ``name:…`` or ``scope``.
        kind: what is open: whom a name means, or which subject; ``model`` where a model asks.
        question: as a person is asked.
        options: what may be answered, the likeliest first; empty where anything may.
        assumed: what is assumed without an answer.
        must: whether a report must wait for an answer.
        answer: the user's answer, or "".
    """

    question_id: str
    kind: Literal["name", "scope", "model"]
    question: str
    options: list[str]
    assumed: str
    must: bool
    answer: str


class Message(TypedDict):
    """One message of a conversation; ``created_at`` is UTC, ISO 8601.

    ``only_noted``: an answer to what was only to be remembered, on which no later question leans.
    """

    role: Literal["user", "assistant"]
    content: str
    created_at: str
    only_noted: bool


@cache  # a state that adds keys evaluates these annotations again, and must find the same channel
def keyed(*names: str) -> Callable[[list[Any] | None, list[Any] | None], list[Any]]:
    """Return a reducer that appends what is new and replaces what has the same identity, keeping the order.

    >>> by_id = keyed("id")
    >>> by_id([{"id": 1, "v": "a"}], [{"id": 1, "v": "b"}, {"id": 2, "v": "c"}])
    [{'id': 1, 'v': 'b'}, {'id': 2, 'v': 'c'}]
    """

    def reduce(old: list[Any] | None, new: list[Any] | None) -> list[Any]:
        # A dict keeps the place of the first entry: a record that is replaced does not move in the list.
        return list(
            {
                tuple(item[name] for name in names): item for item in [*(old or []), *(new or [])]
            }.values()
        )

    return reduce


class StepTask(TypedDict):
    """What the dispatcher sends to one executor task: one attempt at one step, and where its references point.

    ``upstream`` has, for each step before it, the key of its effect: a changed step changes what depends on it.
    ``tried``, ``wave`` and ``total`` tell how far the retrieval is: steps that were tried, that run with it, in all.
    """

    run_id: str
    kb_prefix: str
    step: Json
    attempt: int
    iteration: int
    remaining_s: float
    sources: dict[str, str]
    upstream: dict[str, str]
    dates: list[str]
    tried: NotRequired[list[str]]
    wave: NotRequired[list[Json]]
    total: NotRequired[int]


class Noted(TypedDict):
    """A note that memory takes from a message.

    Attributes:
        section: where it belongs: ``name``, ``preferences``, ``current_intent``, ``facts``.
        content: a note that stands alone.
        about: its subject.
        polarity: ``like`` or ``dislike`` of a preference, else "".
        replaces: ids of memories that no longer hold.
    """

    section: str
    content: str
    about: str
    polarity: str
    replaces: list[str]


class MemoryQuestion(TypedDict):
    """A question that memory answers: of the conversation, or of what is noted of the person.

    Attributes:
        about: its subject; "" of anything.
        whose: whose words are asked for: ``user`` or ``assistant``; "" for either.
        notes: ids of the memories that answer; None where the conversation is asked.
    """

    about: str
    whose: str
    notes: list[str] | None


class Remembered(TypedDict):
    """One recalled entry: whether it is in the prompt, how long it is, or why it was left out.

    ``part`` is ``core``, ``summary``, ``episode`` or ``history``; ``id`` that of a memory, an episode or a message;
    ``author`` noted it (of a message: ``user`` or ``assistant``), and ``message_id`` says it, where there are such.
    ``content`` is the text without what a prompt puts before it.
    """

    part: str
    id: str
    text: str
    tokens: int
    kept: bool
    why: str
    at: str
    score: float
    author: str
    message_id: str
    content: str


class RetrievalState(TypedDict, total=False):
    """The state of the child graph: its input, its output, and what its nodes pass on."""

    message: str
    query: str
    kb_prefix: str
    kb_prefixes: list[str]
    route_decision: RouteDecision
    debug: bool
    session_id: str
    user_id: str
    request_id: str
    conversation_id: str
    user_message_id: str
    incognito: bool
    resolved_agent_type: str
    run_id: str
    history: list[Message]

    review: list[str]
    thresholds: dict[str, float]
    dates: list[str]
    needs: dict[str, str]
    pieces: dict[str, str]
    report: Json
    known: list[Json]
    noted: list[Noted]
    given_plan: Json | None
    assumptions: list[str]
    without: list[str]
    plan: Json
    activated: list[str]
    wave: list[Json]
    remaining_s: float
    records: Annotated[list[ExecutionRecord], keyed("step_id", "attempt")]
    reflections: Annotated[list[Reflection], keyed("current_iteration")]
    decisions: Annotated[list[Decision], keyed("review_id")]
    iteration: int
    replan: bool
    wish: str
    rejudge: bool
    stop_reason: StopReason | None
    merged: Merged
    runs: list[RagRun]


class ConversationState(RetrievalState, total=False):
    """The parent graph: the child's keys under the same names, and its own."""

    requested_kb_prefixes: list[str]
    use_retrieval: bool
    answerer: str
    worker_name: str
    memory_context: str
    conversation_summary: str
    episodic_memory: list[Json]
    recalled_episodes: list[Json]
    remembered: list[Remembered]
    recalls: MemoryQuestion | None
    to_search: str
    stands_alone: str
    clarifications: list[Clarification]
    outline: ReportOutline
    sections: Annotated[list[SectionContent], keyed("section_id")]
    answer: str
    answer_kind: str
    citations: list[Citation]
    support: list[Supported]
    error: str | None
    partial: bool
    routing_ms: float
    retrieval_ms: float
    generation_ms: float
