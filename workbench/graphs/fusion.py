"""The fusion graph: two sources asked at once, fused, reranked, judged, and asked again where that falls short.

    START -> retrieve_graph   -> fuse_results -> rerank_results -> check_quality -> END
    START -> retrieve_vectors ->                                                -> both sources again

Its nodes are the stages of ``hybrid_search`` (``tools/hybrid.py``), which runs one pass of them. A retry asks for the
question in other words, then for the words that nothing found so far says; the best pass is what stands at the end.
With the strategy ``cascade`` the vectors are asked only where the graph is not sure.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Required, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import WorkbenchError, shown
from workbench.graphs.completeness import FIRST, incomplete
from workbench.graphs.rewrite import rewritten
from workbench.ports import Context, KnowledgeBase
from workbench.settings import Settings
from workbench.state import RetrievalResult
from workbench.tools import evidence, hybrid
from workbench.tools.fusing import STRATEGIES
from workbench.tools.next_hop import sub_questions
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

    ``graph_results`` and ``vector_results`` are ``{"source", "pass", "chunk_id", "score"}``, best first, source by
    source; ``fused_results`` are ids of passages; ``reranked_results`` is evidence (``RetrievalResult``). ``asked`` is
    what each pass asks, and the last one the next pass; ``best`` is the best pass so far.
    """

    graph_results: list[dict[str, Any]]
    vector_results: list[dict[str, Any]]
    fused_results: list[str]
    reranked_results: list[dict[str, Any]]
    quality_score: float
    retry_count: int
    asked: list[str]
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
    asked = state.get("asked") or [query_of(state)]
    with base.reading():
        question = Question.of(asked[-1], base)
        hits = source(question, _pool(options), StepLog(runtime.context.clock))
    found = [
        {"source": name, "pass": len(asked), "chunk_id": chunk_id, "score": score}
        for name, ranking in hits.items()
        for chunk_id, score in ranking
    ]
    change: dict[str, Any] = {key: [*cast(Any, state).get(key, []), *found]}
    return {**change, "reading": question} if len(asked) == 1 else change


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
    return "fuse_results" if best >= SURE and len(state.get("asked", [])) < 2 else "retrieve_vectors"


def fuse_results(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """The passages of both sources, of every pass so far, in one order."""
    base, options = _asked(config, runtime)
    hits = _hits([*state.get("vector_results", []), *state.get("graph_results", [])])
    rankings = {f"{source} {number}": ranking for (source, number), ranking in hits.items()}
    if options.fusion_strategy == "cascade":
        rankings = dict(sorted(rankings.items(), key=lambda one: not one[0].startswith("graph")))
    with base.reading():
        found = hybrid.fused(_reading(state, base), rankings, _pool(options), StepLog(), options.fusion_strategy)
    return {"fused_results": [passage["chunk_id"] for passage in found]}


def rerank_results(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """The passages read again beside the question, as evidence with calibrated scores."""
    base, options = _asked(config, runtime)
    hits = _best(_hits(state.get("vector_results", [])))
    with base.reading():
        question, passages = _reading(state, base), base.passages(state["fused_results"])
        found = hybrid.reranked(question, passages, hits, StepLog(), options.rerank_model)
        return {"reranked_results": evidence.ranked(found, options.top_k)}


def check_quality(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
    """How likely it is that nothing needed is missing, 0 to 1; the best pass; and what to ask next, if anything."""
    base, options = _asked(config, runtime)
    query, found = query_of(state), state["reranked_results"]
    asked = state.get("asked") or [query]
    retries = len(asked) - 1
    with base.reading():
        quality = quality_of(query, found, base)
        wanting = quality < options.quality_threshold and retries < options.max_retries
        following = next((one for one in further(query, found, base) if one not in asked), "") if wanting else ""
    best = state.get("best") or {"quality_score": -1.0}
    if quality > best["quality_score"]:
        best = {"quality_score": quality, "reranked_results": found, "retry_count": retries}
    shown = {name: best[name] for name in ("quality_score", "reranked_results")}
    return {**shown, "best": best, "retry_count": retries, "asked": [*asked, following] if following else asked}


def further(query: str, found: Sequence[Mapping[str, Any]], base: KnowledgeBase) -> Iterator[str]:
    """What else may be asked: what the evidence leaves of the question, of the names it brings in; other words."""
    results = cast(Sequence[RetrievalResult], found)
    for hop in sub_questions(query, results, base):
        yield hop.query
    names = [entity for mention in base.link(query) if (entity := base.entity(mention["entity_id"]))]
    aliases = [alias for entity in names for alias in (entity["name"], *entity["aliases"])]
    most = math.log(1 + base.counts()["passages"])
    yield rewritten(query, aliases, results, lambda term: base.term_weight(term) / most, base.nouns().get("en", ()))


def should_retry(state: FusionState, config: RunnableConfig) -> Literal["retry", "end"]:
    """Again while the quality is below the threshold, retries are left, and there is something else to ask."""
    options = config_of(config)
    if state["quality_score"] >= options.quality_threshold or state["retry_count"] >= options.max_retries:
        return "end"
    return "retry" if len(state["asked"]) > state["retry_count"] + 1 else "end"


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


def _pool(options: FusionConfig) -> int:
    return max(LEAD, options.top_k)


def _hits(results: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], list[tuple[str, float]]]:
    """The rankings of each source and pass."""
    found: dict[tuple[str, int], list[tuple[str, float]]] = {}
    for one in results:
        found.setdefault((one["source"], one["pass"]), []).append((one["chunk_id"], one["score"]))
    return found


def _best(hits: Mapping[tuple[str, int], Sequence[tuple[str, float]]]) -> dict[str, list[tuple[str, float]]]:
    """Of each source the best that any pass says of a passage; word scores as shares of their pass's best one."""
    best: dict[str, dict[str, float]] = {}
    for (source, _), ranking in hits.items():
        kept = best.setdefault(source, {})
        top = ranking[0][1] if source == "bm25" and ranking else 1.0
        for chunk_id, score in ranking:
            kept[chunk_id] = max(kept.get(chunk_id, -1.0), score / top)
    return {s: sorted(kept.items(), key=lambda pair: (-pair[1], pair[0])) for s, kept in best.items()}
