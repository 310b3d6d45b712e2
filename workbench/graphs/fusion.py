"""The fusion graph: two sources asked at once, fused, reranked, judged, and asked again where that falls short.

    START -> retrieve_graph   -> fuse_results -> rerank_results -> check_quality -> END
    START -> retrieve_vectors ->                                                -> both sources again

Its nodes are the stages of ``hybrid_search`` (``tools/hybrid.py``), which runs one pass of them. A retry asks what the
best passages leave of the question, of each name that they bring in (``tools/next_hop.py``), else the question in other
words; what it finds joins what was found before, and the best pass is what stands at the end.
With the strategy ``cascade`` the vectors are asked only where the graph is not sure.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, Required, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import WorkbenchError, shown
from workbench.graphs.completeness import FIRST, incomplete
from workbench.graphs.merge import with_hops
from workbench.graphs.rewrite import rewritten
from workbench.ports import Context, KnowledgeBase
from workbench.settings import Settings
from workbench.state import RetrievalResult
from workbench.tools import evidence, hybrid, next_hop
from workbench.tools.fusing import STRATEGIES
from workbench.tools.scoring import LEAD, Question, probability
from workbench.tools.tool import StepLog

Operation = Literal["decomposition", "scoring", "explanation", "verification", "review"]
SURE = 0.8
"""How probable the graph's best passage must be, by itself, for a cascade to leave the vectors alone."""


class FusionConfig(BaseModel):
    """What ``config["configurable"]`` may set; what it does not, the settings say."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    fusion_strategy: str = "rrf"
    rerank_model: str = ""
    quality_threshold: float = Field(0.7, ge=0, le=1)
    max_retries: int = Field(3, ge=0, le=10)
    top_k: int = Field(10, ge=1, le=1000)
    kb_prefix: str = ""


class FusionInput(MessagesState, total=False):
    """What is asked: ``query``, else the last message of a person."""

    session_id: Required[str]
    canvas_path: Required[str]
    operation: Required[Operation]
    target_nodes: list[str]
    query: str


class FusionState(FusionInput, total=False):
    """What each node gives.

    ``asked`` is what was asked, ``{"pass", "query"}``, of a sub-question all of ``next_hop.Input``; those of the last
    pass are asked next. ``graph_results`` and ``vector_results`` are ``{"source", "pass", "ask", "chunk_id",
    "score"}``, best first, source by source, ``ask`` counting in ``asked``; ``fused_results`` are ``{"pass", "ask",
    "chunk_id"}``; ``reranked_results`` is evidence (``RetrievalResult``). ``best`` is the best pass so far.
    """

    graph_results: list[dict[str, Any]]
    vector_results: list[dict[str, Any]]
    fused_results: list[dict[str, Any]]
    reranked_results: list[dict[str, Any]]
    quality_score: float
    retry_count: int
    asked: list[dict[str, Any]]
    best: dict[str, Any]
    reading: Annotated[Any, UntrackedValue(Any, guard=False)]
    """The question as the base sees it; not kept, so a resume reads it again."""


async def retrieve_graph(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """Passages by their place in the knowledge graph."""
    return await asyncio.to_thread(_retrieve, hybrid.from_graph, "graph_results", state, config, runtime)


async def retrieve_vectors(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """Passages by their words and by what they mean."""
    return await asyncio.to_thread(_retrieve, hybrid.from_texts, "vector_results", state, config, runtime)


def _retrieve(source: Any, key: str, state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Any:
    """What one source finds for what this pass asks, behind what it found before."""
    base, options = _asked(config, runtime)
    found, reading = [], None
    with base.reading():
        for number, ask in _now(state):
            reading = Question.of(ask["query"], base)
            hits = source(reading, _pool(ask, options), StepLog(runtime.context.clock))
            found += [
                {"source": name, "pass": ask["pass"], "ask": number, "chunk_id": chunk_id, "score": score}
                for name, ranking in hits.items()
                for chunk_id, score in ranking
            ]
    change: dict[str, Any] = {key: [*cast(Any, state).get(key, []), *found]}
    return change if "asked" in state else {**change, "reading": reading}


def sources(state: FusionState, config: RunnableConfig) -> list[str]:
    """Both sources at once; of a cascade, the graph first."""
    cascade = config_of(config).fusion_strategy == "cascade"
    return ["retrieve_graph"] if cascade else ["retrieve_graph", "retrieve_vectors"]


def after_graph(
    state: FusionState, config: RunnableConfig, runtime: Runtime[Context]
) -> Literal["fuse_results", "retrieve_vectors"]:
    """On to the fusion; a cascade whose graph is not sure asks the vectors too."""
    if config_of(config).fusion_strategy != "cascade":
        return "fuse_results"
    base, _ = _asked(config, runtime)
    question = _reading(state, base)
    first = base.passages([hit["chunk_id"] for hit in state["graph_results"][:FIRST]])
    best = max((probability("local_search", question.signals(passage)) for passage in first), default=0.0)
    return "fuse_results" if best >= SURE and "asked" not in state else "retrieve_vectors"


def fuse_results(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """The passages of both sources in one order, for each thing that this pass asks."""
    base, options = _asked(config, runtime)
    fused = []
    with base.reading():
        for number, ask in _now(state):
            question = _reading(state, base) if ask["pass"] == 1 else Question.of(ask["query"], base)
            hits = _hits(state, number, first="graph" if options.fusion_strategy == "cascade" else "bm25")
            found = hybrid.fused(question, hits, _pool(ask, options), StepLog(), options.fusion_strategy)
            fused += [{"pass": ask["pass"], "ask": number, "chunk_id": passage["chunk_id"]} for passage in found]
    return {"fused_results": fused}


def rerank_results(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """The passages read again beside what was asked, as evidence with calibrated scores, with the best of before."""
    base, options = _asked(config, runtime)
    found: list[RetrievalResult] = list(state.get("best", {}).get("reranked_results", []))
    hops: list[RetrievalResult] = []
    with base.reading():
        for number, ask in _now(state):
            passages = base.passages([one["chunk_id"] for one in state["fused_results"] if one["ask"] == number])
            hits = _hits(state, number)
            if ask.get("name"):
                hops += next_hop.judged(_sub_question(ask), passages, hits, base)
            else:
                found += hybrid.reranked(_reading(state, base), passages, hits, StepLog(), options.rerank_model)
    together = evidence.ranked(found, len(found))
    return {"reranked_results": evidence.ranked(with_hops(together, hops) if hops else together, options.top_k)}


def check_quality(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """How likely it is that nothing needed is missing, 0 to 1; the best pass; and what to ask next, if anything."""
    base, options = _asked(config, runtime)
    query, found = query_of(state), state["reranked_results"]
    asked = state.get("asked") or [{"pass": 1, "query": query}]
    retries = asked[-1]["pass"] - 1
    with base.reading():
        quality = quality_of(query, found, base)
        best = state.get("best") or {"quality_score": -1.0}
        if quality > best["quality_score"]:
            best = {"quality_score": quality, "reranked_results": found, "retry_count": retries}
        following = []
        if best["quality_score"] < options.quality_threshold and retries < options.max_retries:
            following = further(query, best["reranked_results"], base, [ask["query"] for ask in asked], 1 - quality)
    shown = {name: best[name] for name in ("quality_score", "reranked_results")}
    asked = [*asked, *({"pass": retries + 2, **ask} for ask in following)]
    return {**shown, "best": best, "retry_count": retries, "asked": asked}


def further(
    query: str, found: Sequence[RetrievalResult], base: KnowledgeBase, asked: Collection[str], doubt: float
) -> list[dict[str, Any]]:
    """What else may be asked: what the evidence leaves of the question, of the names it brings in; else other words."""
    hops = [hop for hop in next_hop.sub_questions(query, found, base) if hop.query not in asked]
    if hops:
        return [
            {
                "query": hop.query,
                "question": query,
                "name": hop.name,
                "passage": hop.passage,
                "sentence": f"{hop.title}. {hop.sentence}",
                "doubt": round(doubt, 3),
            }
            for hop in hops
        ]
    names = [entity for mention in base.link(query) if (entity := base.entity(mention["entity_id"]))]
    aliases = [alias for entity in names for alias in (entity["name"], *entity["aliases"])]
    most = math.log(1 + base.counts()["passages"])
    other = rewritten(query, aliases, found, lambda term: base.term_weight(term) / most, base.nouns().get("en", ()))
    return [] if other in asked else [{"query": other}]


def should_retry(state: FusionState, config: RunnableConfig) -> Literal["retry", "end"]:
    """Again while the quality is below the threshold, retries are left, and there is something else to ask."""
    options = config_of(config)
    if state["quality_score"] >= options.quality_threshold or state["retry_count"] >= options.max_retries:
        return "end"
    return "retry" if state["asked"][-1]["pass"] > state["retry_count"] + 1 else "end"


def again(state: FusionState, config: RunnableConfig) -> list[str]:
    """Where ``should_retry`` leads: to the sources, or to the end."""
    return sources(state, config) if should_retry(state, config) == "retry" else [END]


def quality_of(question: str, found: Sequence[Mapping[str, Any]], base: KnowledgeBase) -> float:
    """The probability, to three digits, that the first five hold all that is needed."""
    return round(1 - incomplete(question, cast(Sequence[RetrievalResult], found), base), 3) if found else 0.0


def query_of(state: Mapping[str, Any]) -> str:
    """The question: ``query``, else the last message of a person.

    Raises:
        WorkbenchError: there is neither.
    """
    said = [str(m.content) for m in state.get("messages", []) if isinstance(m, HumanMessage)]
    query = str(state.get("query") or (said[-1] if said else "")).strip()
    if not query:
        raise WorkbenchError('Nothing is asked. Give a question: {"query": "..."}, or a message of a person.')
    return query


def config_of(config: RunnableConfig, **settings: Any) -> FusionConfig:
    """The options of a call, over those of the settings.

    Raises:
        WorkbenchError: names the option, and what it takes.
    """
    given = {name: value for name, value in (config.get("configurable") or {}).items() if value is not None}
    try:
        options = FusionConfig.model_validate({**settings, **given})
    except ValidationError as error:
        first = error.errors()[0]
        what = ".".join(map(str, first["loc"]))
        raise WorkbenchError(f"{what} cannot be {shown(first['input'])}: {first['msg']}.") from None
    if options.fusion_strategy not in STRATEGIES:
        raise WorkbenchError(
            f"There is no fusion strategy {shown(options.fusion_strategy)}. Known: {', '.join(STRATEGIES)}."
        )
    return options


def fusion_options(settings: Settings) -> dict[str, Any]:
    """What ``config["configurable"]`` has where nothing else is said."""
    return {
        "fusion_strategy": settings.fusion_strategy,
        "quality_threshold": settings.quality_threshold,
        "max_retries": settings.max_retries,
    }


def build_fusion() -> StateGraph[Any, Context, Any, Any]:
    """The graph, not compiled: ``build_fusion().compile(checkpointer=...)``."""
    graph = StateGraph(FusionState, context_schema=Context, input_schema=FusionInput)
    for name, node in (
        ("retrieve_graph", retrieve_graph),
        ("retrieve_vectors", retrieve_vectors),
        ("fuse_results", fuse_results),
        ("rerank_results", rerank_results),
        ("check_quality", check_quality),
    ):
        graph.add_node(name, cast(Any, node), input_schema=FusionState)
    graph.add_conditional_edges(START, cast(Any, sources), ["retrieve_graph", "retrieve_vectors"])
    graph.add_conditional_edges("retrieve_graph", after_graph, ["fuse_results", "retrieve_vectors"])
    graph.add_edge("retrieve_vectors", "fuse_results")
    graph.add_edge("fuse_results", "rerank_results")
    graph.add_edge("rerank_results", "check_quality")
    graph.add_conditional_edges("check_quality", cast(Any, again), ["retrieve_graph", "retrieve_vectors", END])
    return graph


def _asked(config: RunnableConfig, runtime: Runtime[Context]) -> tuple[KnowledgeBase, FusionConfig]:
    """The base that is asked, and how."""
    options = config_of(config)
    known = runtime.context.searched
    names = known.names()
    if not options.kb_prefix and len(names) != 1:
        raise WorkbenchError(
            f'Which base? Give config["configurable"]["kb_prefix"]: one of {", ".join(names) or "none"}.'
        )
    return known.get(options.kb_prefix or names[0]), options


def _reading(state: FusionState, base: KnowledgeBase) -> Question:
    return state.get("reading") or Question.of(query_of(state), base)


def _now(state: Mapping[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """What this pass asks, and its places in ``asked``."""
    asked = state.get("asked") or [{"pass": 1, "query": query_of(state)}]
    return [(number, ask) for number, ask in enumerate(asked) if ask["pass"] == asked[-1]["pass"]]


def _sub_question(ask: Mapping[str, Any]) -> next_hop.Input:
    return next_hop.Input.model_validate({name: value for name, value in ask.items() if name != "pass"})


def _pool(ask: Mapping[str, Any], options: FusionConfig) -> int:
    return next_hop.HITS if ask.get("name") else max(LEAD, options.top_k)


def _hits(state: FusionState, ask: int, first: str = "") -> dict[str, list[tuple[str, float]]]:
    """The ranking of each source for one thing that was asked, that of ``first`` before the others."""
    found: dict[str, list[tuple[str, float]]] = {first: []} if first else {}
    for one in (*state.get("vector_results", []), *state.get("graph_results", [])):
        if one["ask"] == ask:
            found.setdefault(one["source"], []).append((one["chunk_id"], one["score"]))
    return found
