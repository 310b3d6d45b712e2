"""Routing: which knowledge base a message goes to, what it wants, and which worker takes it.

Its own small graph, ``intent_detect -> apply_override_policy -> worker_select``, without a checkpointer. ``decide`` is
the same road as one pure function, for whoever has a question but no graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from langgraph.runtime import Runtime
from pydantic import Field, create_model

from workbench.errors import UnknownKnowledge
from workbench.events import logged
from workbench.graphs.roles import ModelForm, card, say
from workbench.language.question import read
from workbench.language.words import is_small_talk
from workbench.ports import Bases, Context, KnowledgeBase, KnowledgeBases, routed
from workbench.state import Condition, ExtractedEntities, Json, QueryIntent, Question, RouteDecision
from workbench.text import language_of, terms

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


__all__ = [
    "AGENT_TYPES",
    "Worker",
    "build_router",
    "decide",
    "is_small_talk",
    "make_worker_name",
    "parse_worker_name",
    "read_question",
    "read_workers",
    "workers_of",
]

GENERAL, DEFAULT = "general", "default"
AGENT_TYPES = ("fusion_agent", "naive_rag_agent", "graph_agent", "hybrid_agent", "deep_research_agent")
"""The first is the default: plan, execute, reflect. Any other runs its one tool."""
AGENT_TOOLS: dict[str, tuple[str, ...]] = {
    "naive_rag_agent": ("naive_search",),
    "graph_agent": ("local_search",),
    "hybrid_agent": ("hybrid_search",),
    "deep_research_agent": ("deep_research", "hybrid_search"),
}
"""Agent type -> its one tool; a second one stands in where the first is not registered, and the plan says so."""
AGENT_MODE = "retrieve_only"
_NEAR = 0.15
"""Knowledge bases whose fit is so near the best one's are asked too."""
_MOST_ASKED = 3
_LOOKED_AT = 5


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
    """Read a worker name, also in its older forms: ``kb:agent``, and one part alone, which is an agent type.

    The knowledge base ``default`` is none in particular: the router chooses.

    >>> parse_worker_name("papers:graph_agent").agent_mode, tuple(parse_worker_name("default:graph_agent"))
    ('retrieve_only', ('', 'graph_agent', 'retrieve_only'))
    >>> tuple(parse_worker_name("graph_agent")), tuple(parse_worker_name("general"))
    (('', 'graph_agent', 'retrieve_only'), ('', '', 'retrieve_only'))

    Raises:
        ValueError: a fourth part, an unknown agent type, or another mode than ``retrieve_only``.
    """
    parts = [part.strip() for part in name.split(":")]
    if len(parts) > 3:
        raise ValueError(f"Worker name {name!r} has {len(parts)} parts. It is kb_prefix:agent_type:{AGENT_MODE}.")
    if len(parts) == 1:
        return Worker("", "" if parts[0] == GENERAL else parts[0], AGENT_MODE)
    kb_prefix, agent_type, mode = [*parts, ""][:3]
    if mode not in ("", AGENT_MODE):
        raise ValueError(f"Worker name {name!r} has the mode {mode!r}. Agents only retrieve: use {AGENT_MODE!r}.")
    if agent_type and agent_type not in AGENT_TYPES:
        raise ValueError(f"Worker name {name!r} has the agent type {agent_type!r}. Known: {', '.join(AGENT_TYPES)}.")
    if kb_prefix == GENERAL:
        return Worker("", "", AGENT_MODE)
    return Worker("" if kb_prefix == DEFAULT else kb_prefix, agent_type or AGENT_TYPES[0], AGENT_MODE)


def read_workers(names: str) -> list[Worker]:
    """Read worker names that are joined by commas: one run asks all of them."""
    return [parse_worker_name(name) for name in names.split(",")]


def workers_of(names: str, prefixes: Sequence[str]) -> list[Worker]:
    """Return the workers of a run, base by base; a single name holds for every base.

    >>> [make_worker_name(*w[:2]) for w in workers_of("papers:graph_agent,naive_rag_agent", ["papers"])]
    ['papers:graph_agent:retrieve_only', 'papers:naive_rag_agent:retrieve_only']
    >>> [worker.kb_prefix for worker in workers_of("papers:graph_agent", ["papers", "notes"])]
    ['papers', 'notes']
    """
    workers = read_workers(names)
    if len(workers) == 1:
        workers = [workers[0]._replace(kb_prefix="")]
    every = [(kb, worker.agent_type) for kb in prefixes for worker in workers if worker.kb_prefix in ("", kb)]
    return [Worker(kb, agent_type or AGENT_TYPES[0], AGENT_MODE) for kb, agent_type in dict.fromkeys(every)]


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
    wished = _wished(requested, worker_name)
    fits = _find_fits(message, wished, knowledge, auto_route)
    route = _choose(message, requested, wished, fits, knowledge, auto_route, today=today)
    return _with_worker(route, worker_name)


def _wished(requested: Sequence[str], worker_name: str) -> list[str] | None:
    """Return the knowledge bases that the user asked for; [] for ``general``; None for no wish."""
    if requested and all(name in ("", GENERAL) for name in requested):
        return []
    workers = read_workers(worker_name)
    if named := [worker.kb_prefix for worker in workers if worker.kb_prefix]:
        return list(dict.fromkeys(named))
    if worker_name and not any(worker.agent_type for worker in workers):
        return []
    return list(dict.fromkeys(name for name in requested if name not in ("", GENERAL))) or None


def _find_fits(message: str, wished: list[str] | None, knowledge: KnowledgeBases, auto_route: bool) -> list[Fit]:
    """Score every knowledge base where the router has to choose between several, the best first."""
    names = knowledge.names()
    if wished is not None or not auto_route or len(names) < 2 or is_small_talk(message):
        return []
    return sorted((_fit(message, knowledge.get(name)) for name in names), key=lambda f: (-f["score"], f["kb_prefix"]))


def _fit(message: str, base: KnowledgeBase) -> Fit:
    """Score what a base knows of a question: its names, values and words of its fields, the words of its passages."""
    linked = [base.entity(mention["entity_id"]) for mention in base.link(message)]
    held = frozenset(terms(message))
    known = {
        "knows": [entity["name"] for entity in linked if entity],
        "has": [value for *_, value in base.values_in(message)],
        "has the fields": [field["name"] for field in base.schema() if _is_called(field["called"], held)],
    }
    weights = dict(zip(known, (0.7, 0.4, 0.3), strict=True))
    nouns = {kind: words for kind, words in base.nouns().items() if kind in ("en", "zh")}
    coverage = _coverage(message, base)
    doubt = (1 - 0.3 * _is_called(nouns, held)) * (1 - 0.6 * coverage)
    for verb, found in known.items():
        doubt *= 1 - weights[verb] * bool(found)
    reasons = [f"{verb} {', '.join(dict.fromkeys(found))}" for verb, found in known.items() if found]
    reasons += [f"says {coverage:.0%} of the question in one passage"] if coverage >= 0.005 else []
    return Fit(kb_prefix=base.name, score=round(1 - doubt, 6), reason="; ".join(reasons) or "knows nothing of it")


def _is_called(words: Mapping[str, Sequence[str]], held: frozenset[str]) -> bool:
    """Check whether a text with these terms has one of these words."""
    return any(set(parts) <= held for many in words.values() for word in many if (parts := terms(word)))


def _coverage(message: str, base: KnowledgeBase) -> float:
    """Return the idf-weighted share of the question's words that the best of a few passages has."""
    weights = {term: base.term_weight(term) for term in dict.fromkeys(terms(message))}
    total = sum(weights.values()) or 1.0
    hits = base.passages([chunk_id for chunk_id, _ in base.keyword_search(message, _LOOKED_AT)])
    texts = [set(terms(f"{passage['title']} {passage['text']}")) for passage in hits]
    return max((sum(w for term, w in weights.items() if term in words) / total for words in texts), default=0.0)


def _choose(
    message: str,
    requested: Sequence[str],
    wished: list[str] | None,
    fits: Sequence[Fit],
    knowledge: KnowledgeBases,
    auto_route: bool,
    chosen: tuple[list[str] | None, str] | None = None,
    today: str = "",
) -> Route:
    """Apply what was asked for, or choose; every way of choosing says why. ``chosen`` is what a model says."""
    known, fit = knowledge.names(), 1.0
    prefixes, why = list[str](), "there is no knowledge base"
    if wished is not None:
        prefixes, why = wished, f"{', '.join(wished) or GENERAL} was asked for"
    elif is_small_talk(message):
        why = "small talk needs no knowledge base"
    elif not auto_route:
        why = "automatic routing is off and no knowledge base was asked for"
    elif fits:
        near = [one for one in fits if one["score"] >= fits[0]["score"] - _NEAR][:_MOST_ASKED]
        prefixes, fit = [one["kb_prefix"] for one in near], fits[0]["score"]
        unsure = f"unsure between {', '.join(prefixes)}: " if len(near) > 1 else ""
        why = unsure + "; ".join(f"{one['kb_prefix']} {one['reason']}" for one in near)
    elif known:
        prefixes, why = list(known), f"{known[0]} is the only knowledge base"
    method: Literal["heuristic", "llm", "override", "default"] = "heuristic" if prefixes else "default"
    if wished is not None:
        method = "override"
    elif chosen and chosen[0] is not None:
        prefixes, fit, why, method = chosen[0], 1.0, chosen[1], "llm"
    elif chosen:
        why = f"{why}; {chosen[1]}"
    for name in prefixes:
        if name not in known:
            raise UnknownKnowledge(name, known)
    prefix = prefixes[0] if prefixes else GENERAL
    decision = RouteDecision(
        requested_kb_prefix=",".join(requested),
        routed_kb_prefix=prefix,
        kb_prefix=prefix,
        confidence=round(fit, 2),
        method=method,
        reason=why,
        worker_name="",
        **read_question(message, [knowledge.get(name) for name in prefixes], today),
    )
    return Route(decision, prefixes)


def read_question(question: str, bases: Bases, today: str = "") -> Understood:
    """Return what a route decision says of the question itself, read over these knowledge bases."""
    if is_small_talk(question):
        reading = Question(
            text=question,
            language="zh" if language_of(question) == "zh" else "en",
            intent="unknown",
            answer_type="text",
            names=[],
            conditions=[],
            sort=None,
            limit=None,
            count=False,
            group="",
            total=None,
            fields=[],
            words=[],
            date_asked="",
            understood=[],
            not_applied=[],
        )
    else:
        reading = read(question, bases, today)
    return Understood(
        query_intent=reading["intent"],
        media_type_hint="",
        filters=reading["conditions"],
        extracted_entities={
            "low_level": list(dict.fromkeys(name["name"] for name in reading["names"])),
            "high_level": reading["words"],
        },
        question=reading,
    )


class Understood(TypedDict):
    """The part of a route decision that depends on nothing but the question and the knowledge bases."""

    query_intent: QueryIntent
    media_type_hint: str
    filters: list[Condition]
    extracted_entities: ExtractedEntities
    question: Question


def _with_worker(route: Route, worker_name: str) -> Route:
    """Name the workers: those that were asked for, or the one that plans by intent; none for ``general``."""
    workers = workers_of(worker_name, route.kb_prefixes)
    name = ",".join(make_worker_name(*one[:2]) for one in (workers if "," in worker_name else workers[:1]))
    return Route({**route.decision, "worker_name": name}, route.kb_prefixes)


class RouterState(TypedDict, total=False):
    """What the router shares with the conversation, and what it carries between its own nodes."""

    run_id: str
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
    context, began = runtime.context, runtime.context.clock.monotonic()
    wished, auto_route = _wished_in(state), context.settings.auto_route
    fits = await asyncio.to_thread(_find_fits, state["message"], wished, context.knowledge, auto_route)
    return {"fits": fits, "routing_began": began}


def _wished_in(state: RouterState) -> list[str] | None:
    return _wished(state.get("requested_kb_prefixes", []), state.get("worker_name", ""))


async def apply_override_policy(state: RouterState, runtime: Runtime[Context]) -> Json:
    """Choose the knowledge bases: what was asked for, else what fits."""
    context, message, wished = runtime.context, state["message"], _wished_in(state)
    workers, known = None, context.knowledge.names()
    chosen: tuple[list[str] | None, str] | None = None
    if "router" in context.parts and wished is None:
        workers = await routed(context, message, known)
        chosen = None if workers is None else (_wished([], workers) or [], "the registered router says so")
    elif "router" in context.models and len(state["fits"]) > 1:  # the user asked for none, and there are several
        chosen = await _routed_by_model(context, message, known)
    requested, auto_route = state.get("requested_kb_prefixes", []), context.settings.auto_route
    route = _choose(message, requested, wished, state["fits"], context.knowledge, auto_route, chosen, context.today)
    change = {"route_decision": route.decision, "kb_prefixes": route.kb_prefixes}
    if workers is None:
        return change
    return {**change, "route_decision": {**route.decision, "method": "heuristic"}, "worker_name": workers}


async def _routed_by_model(context: Context, message: str, known: Sequence[str]) -> tuple[list[str] | None, str]:
    """Return the knowledge bases that the model names, and its reason; None and why where it names none to use."""
    one_of: Any = Literal
    several: Any = list[one_of[tuple(known)]]  # type: ignore[misc]
    form = create_model(
        "Routed",
        __base__=ModelForm,
        bases=(several, Field(default_factory=list, max_length=_MOST_ASKED)),
        reason=(str, Field("", max_length=300)),
    )
    slots = {"question": message, "bases": card(context.bases(known))}
    said = await say(context, "router", form, slots, question=message)
    if said.form is None:
        return None, f"the model did not route ({said.refused[-1]})"
    return list(dict.fromkeys(said.form.bases)), said.form.reason.strip() or "the model says so"


async def worker_select(state: RouterState, runtime: Runtime[Context]) -> Json:
    """Name the worker that takes the message."""
    route = _with_worker(Route(state["route_decision"], state["kb_prefixes"]), state.get("worker_name", ""))
    runtime.stream_writer({"route_decision": route.decision})
    return {
        "route_decision": route.decision,
        "kb_prefix": route.decision["kb_prefix"],
        "worker_name": route.decision["worker_name"],
        "routing_ms": round((runtime.context.clock.monotonic() - state["routing_began"]) * 1000, 3),
    }


def build_router() -> CompiledStateGraph[Any, Context, Any, Any]:
    """Return the router's graph, with no checkpointer of its own: it has nothing to resume."""
    from langgraph.graph import END, START, StateGraph

    graph: StateGraph[Any, Context, Any, Any] = StateGraph(RouterState, context_schema=Context)
    graph.add_node(logged("route", intent_detect))
    graph.add_node(logged("route", apply_override_policy))
    graph.add_node(logged("route", worker_select))
    graph.add_edge(START, "intent_detect")
    graph.add_edge("intent_detect", "apply_override_policy")
    graph.add_edge("apply_override_policy", "worker_select")
    graph.add_edge("worker_select", END)
    return graph.compile()
