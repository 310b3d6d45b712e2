"""Routing: which knowledge base a message goes to, what it wants, and which worker takes it.

Its own small graph, ``intent_detect -> apply_override_policy -> worker_select``, without a checkpointer. ``decide`` is
what the rules choose, for callers without a graph: it asks neither a registered router nor a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from langgraph.runtime import Runtime
from pydantic import Field, create_model

from workbench.errors import UnknownKnowledge
from workbench.events import logged
from workbench.extensions import call_node
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.slots import card, history_text, read_history
from workbench.language.question import read
from workbench.language.words import is_small_talk
from workbench.ports import Bases, Context, KnowledgeBase, KnowledgeBases, call_router
from workbench.settings import BY_MODEL, RULES, Settings
from workbench.state import Data, Json, QuestionRead, RouteDecision, RouteMethod, unique
from workbench.text import terms

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

GENERAL, DEFAULT = "general", "default"
TOOL_AGENT = "tool_agent"
AGENT_TYPES = (
    "fusion_agent",
    "naive_rag_agent",
    "graph_agent",
    "hybrid_agent",
    "deep_research_agent",
    TOOL_AGENT,
)
"""The first is the default: plan, execute, reflect. The last lets a model call tools; any other runs its one tool."""
AGENT_TOOLS: dict[str, tuple[str, ...]] = {
    "naive_rag_agent": ("naive_search",),
    "graph_agent": ("local_search",),
    "hybrid_agent": ("hybrid_search",),
    "deep_research_agent": ("deep_research", "hybrid_search"),
}
"""Agent type -> its one tool; the second replaces the first where that is not registered, and the plan notes it."""
AGENT_MODE = "retrieve_only"
_MOST_ASKED = 3
"""A question that fits more bases than these names none of them: each more costs a plan and a share of the prompt."""


class Worker(NamedTuple):
    """The three parts of a worker name; the first two are empty for ``general``."""

    kb_prefix: str
    agent_type: str
    agent_mode: str


def make_worker_name(kb_prefix: str, agent_type: str = AGENT_TYPES[0]) -> str:
    """Return the worker name, ``""`` for ``general``.

    >>> make_worker_name("papers"), make_worker_name("general")
    ('papers:fusion_agent:retrieve_only', '')
    """
    return "" if kb_prefix in ("", GENERAL) else f"{kb_prefix}:{agent_type}:{AGENT_MODE}"


def parse_worker_name(name: str) -> Worker:
    """Read a worker name, also in its short forms: ``kb:agent``, and one part alone, which is an agent type.

    With the knowledge base ``default`` the router chooses.

    >>> parse_worker_name("papers:graph_agent").agent_mode, tuple(parse_worker_name("default:graph_agent"))
    ('retrieve_only', ('', 'graph_agent', 'retrieve_only'))
    >>> tuple(parse_worker_name("graph_agent")), tuple(parse_worker_name("general"))
    (('', 'graph_agent', 'retrieve_only'), ('', '', 'retrieve_only'))

    Raises:
        ValueError: a fourth part, an unknown agent type, or another mode than ``retrieve_only``.
    """
    parts = [part.strip() for part in name.split(":")]
    if len(parts) > 3:
        raise ValueError(
            f"Worker name {name!r} has {len(parts)} parts. It is kb_prefix:agent_type:{AGENT_MODE}."
        )
    if len(parts) == 1:
        parts = [GENERAL, ""] if parts[0] in ("", GENERAL) else ["", *parts]
    kb_prefix, agent_type, mode = [*parts, ""][:3]
    if mode not in ("", AGENT_MODE):
        raise ValueError(
            f"Worker name {name!r} has the mode {mode!r}. Agents only retrieve: use {AGENT_MODE!r}."
        )
    if agent_type and agent_type not in AGENT_TYPES:
        raise ValueError(
            f"Worker name {name!r} has the agent type {agent_type!r}. Known: {', '.join(AGENT_TYPES)}. "
            "A knowledge base is named with its agent, as 'papers:graph_agent', or by kb=."
        )
    if kb_prefix == GENERAL:
        return Worker("", "", AGENT_MODE)
    return Worker(
        "" if kb_prefix == DEFAULT else kb_prefix, agent_type or AGENT_TYPES[0], AGENT_MODE
    )


def parse_worker_names(names: str) -> list[Worker]:
    """Read worker names that are joined by commas: one run asks all of them."""
    return [parse_worker_name(name) for name in names.split(",")]


def workers_by_base(names: str, prefixes: Sequence[str]) -> list[Worker]:
    """Return the workers of a run, base by base; a single name holds for every base.

    >>> [make_worker_name(*w[:2]) for w in workers_by_base("papers:graph_agent,naive_rag_agent", ["papers"])]
    ['papers:graph_agent:retrieve_only', 'papers:naive_rag_agent:retrieve_only']
    >>> [worker.kb_prefix for worker in workers_by_base("papers:graph_agent", ["papers", "notes"])]
    ['papers', 'notes']
    """
    workers = parse_worker_names(names)
    if len(workers) == 1:
        workers = [workers[0]._replace(kb_prefix="")]
    return unique(
        Worker(kb, worker.agent_type or AGENT_TYPES[0], AGENT_MODE)
        for kb in prefixes
        for worker in workers
        if worker.kb_prefix in ("", kb)
    )


def rules_bind(plan: Data | None, settings: Settings) -> bool:
    """Check whether conditions that the rules read in the question bind: not where a model made the plan."""
    planner = (plan.get("metadata") or {}).get("planner") if plan else ""
    return settings.bounds == "strict" and planner != BY_MODEL


def model_plans(context: Context) -> bool:
    """Check whether a model plans: it has a model, and no custom planner is registered."""
    return "planner" in context.models and getattr(context.planner, "name", "") == RULES


def is_driven(state: Data) -> bool:
    """Check whether a model calls the tools of a run, in place of planner and reflector."""
    return set(str(state.get("resolved_agent_type")).split(",")) == {TOOL_AGENT}


class Fit(TypedDict):
    """How well a knowledge base fits a question, 0 to 1, and why."""

    kb_prefix: str
    score: float
    reason: str


class Route(NamedTuple):
    """A decision with every knowledge base that the run asks; the decision names the first."""

    decision: RouteDecision
    kb_prefixes: list[str]


def decide(
    message: str,
    requested: Sequence[str],
    worker_name: str,
    knowledge: KnowledgeBases,
    auto_route: bool = True,
    today: str = "",
) -> Route:
    """Route a message.

    Args:
        message: a question that stands alone.
        requested: knowledge bases that were asked for; empty for none; ``general`` or ``""`` for no retrieval.
        worker_name: the worker that was asked for, ``""`` for none.
        knowledge: the knowledge bases of the workspace.
        auto_route: whether to look for a fitting knowledge base when none is requested.
        today: the ISO day that relative dates are counted from.

    Raises:
        UnknownKnowledge: a requested knowledge base does not exist.
        ValueError: the worker name cannot be read.
    """
    requested_names = _read_requested(requested, worker_name)
    fits = _find_fits(message, requested_names, knowledge, auto_route)
    choice = _choose(message, requested_names, fits, knowledge.names(), auto_route)
    return _with_worker(_route(message, requested, choice, knowledge, today), worker_name)


def _read_requested(requested: Sequence[str], worker_name: str) -> list[str] | None:
    """Return the knowledge bases that the user asked for; [] for ``general``; None where nothing was asked for."""
    if requested and all(name in ("", GENERAL) for name in requested):
        return []
    workers = parse_worker_names(worker_name)
    if prefixes := [worker.kb_prefix for worker in workers if worker.kb_prefix]:
        return unique(prefixes)
    if worker_name and not any(worker.agent_type for worker in workers):
        return []
    return unique(name for name in requested if name not in ("", GENERAL)) or None


def _find_fits(
    message: str, requested_names: list[str] | None, knowledge: KnowledgeBases, auto_route: bool
) -> list[Fit]:
    """Score every knowledge base where the router has to choose between several, the best first."""
    names = knowledge.names()
    if requested_names is not None or not auto_route or len(names) < 2 or is_small_talk(message):
        return []
    return sorted(
        (_fit(message, knowledge.get(name)) for name in names),
        key=lambda f: (-f["score"], f["kb_prefix"]),
    )


def _fit(message: str, base: KnowledgeBase) -> Fit:
    """Score what a base has of a question: names, conditions and fields that it reads, and words of a passage."""
    reading = read(message, [base])
    coverage = _coverage(message, base)
    names = [name["name"] for name in reading["names"] if name["entity_id"]]
    # how surely such a hit tells that the base is meant: a name or a value more than a field, which many bases share
    evidence = {
        "knows": (0.7, names),
        "has": (0.7, reading["understood"]),
        "has the fields": (0.3, reading["fields"]),
    }
    doubt = 1 - 0.6 * coverage
    reasons = []
    for verb, (weight, words) in evidence.items():
        if words:
            doubt *= 1 - weight
            reasons.append(f"{verb} {', '.join(words)}")
    if coverage >= 0.005:
        reasons.append(f"says {coverage:.0%} of the question in one passage")
    return Fit(
        kb_prefix=base.name,
        score=round(1 - doubt, 6),
        reason="; ".join(reasons) or "knows nothing of it",
    )


def _coverage(message: str, base: KnowledgeBase) -> float:
    """Return the idf-weighted share of the question's words that the best of a few passages has."""
    message_terms = unique(terms(message))
    weights = dict(zip(message_terms, base.words(message_terms)["weights"], strict=True))
    total = sum(weights.values()) or 1.0
    hits = base.passages([chunk_id for chunk_id, _ in base.search("words", message, 5)])
    texts = [set(terms(f"{passage['title']} {passage['text']}")) for passage in hits]
    return max(
        (sum(w for term, w in weights.items() if term in words) / total for words in texts),
        default=0.0,
    )


class Choice(NamedTuple):
    """The chosen knowledge bases; how, how surely and why they were chosen."""

    prefixes: list[str]
    method: RouteMethod
    confidence: float
    reason: str


def _choose(
    message: str,
    requested_names: list[str] | None,
    fits: Sequence[Fit],
    names: Sequence[str],
    auto_route: bool,
) -> Choice:
    """Choose the knowledge bases: those that were asked for, else those that fit."""
    if requested_names is not None:
        reason = f"{', '.join(requested_names) or GENERAL} was asked for"
        return Choice(requested_names, "override", 1.0, reason)
    if is_small_talk(message):
        return Choice([], "default", 1.0, "small talk needs no knowledge base")
    if not auto_route:
        reason = "automatic routing is off and no knowledge base was asked for"
        return Choice([], "default", 1.0, reason)
    if fits:
        # so near the best one, the score does not say which base is meant: each is asked
        best = [fit for fit in fits if fit["score"] >= fits[0]["score"] - 0.15][:_MOST_ASKED]
        prefixes = [fit["kb_prefix"] for fit in best]
        unsure = f"unsure between {', '.join(prefixes)}: " if len(best) > 1 else ""
        reason = unsure + "; ".join(f"{fit['kb_prefix']} {fit['reason']}" for fit in best)
        return Choice(prefixes, "heuristic", fits[0]["score"], reason)
    if names:
        return Choice([*names], "heuristic", 1.0, f"{names[0]} is the only knowledge base")
    return Choice([], "default", 1.0, "there is no knowledge base")


def _route(
    message: str, requested: Sequence[str], choice: Choice, knowledge: KnowledgeBases, today: str
) -> Route:
    names = knowledge.names()
    for name in choice.prefixes:
        if name not in names:
            raise UnknownKnowledge(name, names)
    prefix = choice.prefixes[0] if choice.prefixes else GENERAL
    decision = RouteDecision(
        requested_kb_prefix=",".join(requested),
        routed_kb_prefix=prefix,
        kb_prefix=prefix,
        confidence=round(choice.confidence, 2),
        method=choice.method,
        reason=choice.reason,
        worker_name="",
        **read_question(message, [knowledge.get(name) for name in choice.prefixes], today),
    )
    return Route(decision, choice.prefixes)


def read_question(question: str, bases: Bases, today: str = "") -> QuestionRead:
    """Return what a route decision says of the question itself, read over these knowledge bases."""
    reading = read(question, [] if is_small_talk(question) else bases, today)
    return QuestionRead(
        query_intent=reading["intent"],
        media_type_hint="",
        filters=reading["conditions"],
        extracted_entities={
            "low_level": unique(name["name"] for name in reading["names"]),
            "high_level": reading["words"],
        },
        question=reading,
    )


def _with_worker(route: Route, worker_name: str) -> Route:
    """Name the workers: those that were asked for, or the one that plans by intent; none for ``general``."""
    workers = workers_by_base(worker_name, route.kb_prefixes)
    name = ",".join(
        make_worker_name(*worker[:2])
        for worker in (workers if "," in worker_name else workers[:1])
    )
    return Route({**route.decision, "worker_name": name}, route.kb_prefixes)


class RouterState(TypedDict, total=False):
    """What the router shares with the conversation, and what it carries between its own nodes."""

    run_id: str
    conversation_id: str
    user_message_id: str
    message: str
    requested_kb_prefixes: list[str]
    worker_name: str
    route_decision: RouteDecision
    kb_prefix: str
    kb_prefixes: list[str]
    routing_ms: float
    routing_began: float
    fits: list[Fit]


async def intent_detect(state: RouterState, runtime: Runtime[Context]) -> Json:
    """Read the message, and see how well each knowledge base fits it."""
    context = runtime.context
    began = context.clock.monotonic()
    requested_names = requested_bases(state)
    auto_route = context.settings.auto_route
    fits = await asyncio.to_thread(
        _find_fits, state["message"], requested_names, context.knowledge, auto_route
    )
    return {"fits": fits, "routing_began": began}


def requested_bases(state: Data) -> list[str] | None:
    """Return the knowledge bases that the user of a run asked for, as ``_read_requested`` reads them."""
    return _read_requested(state.get("requested_kb_prefixes", []), state.get("worker_name", ""))


async def apply_override_policy(state: RouterState, runtime: Runtime[Context]) -> Json:
    """Choose the knowledge bases: those that were asked for, else those that fit or that a router names."""
    context = runtime.context
    message = state["message"]
    requested_names = requested_bases(state)
    names = context.knowledge.names()
    change = Json()
    choice = _choose(message, requested_names, state["fits"], names, context.settings.auto_route)
    if "router" in context.parts and requested_names is None:
        workers = await call_router(context, message, names)
        if workers is not None:
            prefixes = _read_requested([], workers) or []
            choice = Choice(prefixes, "heuristic", 1.0, "chosen by the registered router")
            change["worker_name"] = workers
    elif "router" in context.models and len(state["fits"]) > 1:
        # the user asked for none, and there are several
        history = history_text(read_history(state, context), context.settings.history_window)
        routed, reason = await _routed_by_model(context, message, names, history)
        if routed is None:
            choice = choice._replace(reason=f"{choice.reason}; {reason}")
        else:
            choice = Choice(routed, "llm", 1.0, reason)
    route = _route(
        message, state.get("requested_kb_prefixes", []), choice, context.knowledge, context.today
    )
    return {**change, "route_decision": route.decision, "kb_prefixes": route.kb_prefixes}


async def _routed_by_model(
    context: Context, message: str, names: Sequence[str], history: str
) -> tuple[list[str] | None, str]:
    """Return the knowledge bases that the model names, and its reason; None and why where it names none to use."""
    one_of = Literal
    several: Any = list[one_of[tuple(names)]]  # type: ignore[misc]
    form = create_model(
        "Routed",
        __base__=ModelForm,
        bases=(several, Field(default_factory=list, max_length=_MOST_ASKED)),
        reason=(str, Field("", max_length=300)),
    )
    slots = {"question": message, "bases": card(context.bases(names)), "history": history}
    reply = await ask_model(context, "router", form, slots, question=message)
    if reply.form is None:
        return None, f"the model did not route ({reply.refused[-1]})"
    return unique(reply.form.bases), reply.form.reason.strip() or "the model says so"


async def worker_select(state: RouterState, runtime: Runtime[Context]) -> Json:
    """Name the worker that takes the message."""
    route = _with_worker(
        Route(state["route_decision"], state["kb_prefixes"]), state.get("worker_name", "")
    )
    runtime.stream_writer({"route_decision": route.decision})
    return {
        "route_decision": route.decision,
        "kb_prefix": route.decision["kb_prefix"],
        "worker_name": route.decision["worker_name"],
        "routing_ms": round(
            (runtime.context.clock.monotonic() - state["routing_began"]) * 1000, 3
        ),
    }


def build_router() -> CompiledStateGraph[Any, Context, Any, Any]:
    """Return the router's graph, with no checkpointer of its own: it has nothing to resume."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(RouterState, context_schema=Context)
    nodes = (intent_detect, apply_override_policy, worker_select)
    graph.add_sequence([logged("route", node) for node in nodes])
    graph.add_edge(START, "intent_detect")
    graph.add_edge("worker_select", END)
    return graph.compile()


def only_noted(state: Data) -> bool:
    """Check whether the message was only to be remembered."""
    return bool(state.get("noted") and not state.get("to_search"))


def with_preferences(state: Data, decision: RouteDecision, bases: Bases) -> RouteDecision:
    """Return the decision with preferences of the person as conditions."""
    return call_node("with_preferences", decision, state, decision, bases) if bases else decision
