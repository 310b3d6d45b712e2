"""The fusion graph: two sources asked at once, fused, reranked, judged, and asked again where that falls short.

    START -> retrieve_graph   -> fuse_results -> rerank_results -> check_quality -> END
    START -> retrieve_vectors ->                                                -> both sources again

Its nodes are the stages of ``hybrid_search`` (``tools/hybrid.py``), which runs one pass of them. A retry asks what the
best passages leave of the question, of each name that they bring in (``tools/next_hop.py``), else for twice as many
passages with every writing of its names; what it finds joins what was found before, and the best pass is what stands at
the end. With the strategy ``cascade`` the vectors are asked only where the graph is not sure. ``wb.fusion`` makes a run
of it.

| elsewhere it is called | here |
| --- | --- |
| ``CanvasRAGState``, ``CanvasRAGConfig`` | ``FusionState``, ``FusionConfig`` |
| node ``retrieve_graphiti`` giving ``graphiti_results`` | ``retrieve_graph``, ``graph_results`` |
| node ``retrieve_lancedb`` giving ``lancedb_results`` | ``retrieve_vectors``, ``vector_results`` |
| ``build_canvas_rag_graph()`` | ``build_fusion().compile(checkpointer=...)`` |
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Required, cast, get_args

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from typing_extensions import TypedDict

from workbench.errors import ToolError, WorkbenchError, shown
from workbench.events import progress
from workbench.graphs.merge import PLACES, first_documents, with_hops
from workbench.knowledge.dated import last_day
from workbench.parts.fusion.canvas_question import base_of, question_of
from workbench.ports import Context, KnowledgeBase
from workbench.settings import Settings, default_settings
from workbench.state import Data, Json, RetrievalResult
from workbench.text import fold
from workbench.tools import evidence, hybrid, next_hop
from workbench.tools.fusing import STRATEGIES
from workbench.tools.graphiti import GraphitiInput, graphiti
from workbench.tools.next_hop import quality_of
from workbench.tools.scoring import LEAD, Question, probability
from workbench.tools.tool import StepLog

Operation = Literal["decomposition", "scoring", "explanation", "verification", "review"]
STANDING = 3
"""Documents of the best pass that stand in front, whatever a retry finds: the graph has led to them already."""
SURE = 0.8
"""How probable the graph's best passage must be, by itself, for a cascade to leave the vectors alone."""


class FusionConfig(BaseModel):
    """What ``config["configurable"]`` may set; what it does not, the settings say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fusion_strategy: str = "rrf"
    rerank_model: str = ""
    quality_threshold: float = Field(0.7, ge=0, le=1)
    max_retries: int = Field(3, ge=0, le=10)
    top_k: int = Field(10, ge=1, le=1000)
    kb_prefix: str = ""
    graphiti_endpoint: str = Field("", description="Graphiti's REST service, asked beside the base; empty: none")
    lancedb_path: str = Field("", description="Where the base keeps its vectors, if it is by LanceDB; no other folder")

    @field_validator("graphiti_endpoint")
    @classmethod
    def _by_rest(cls, given: str) -> str:
        if given and not given.startswith(("http://", "https://")):
            raise ValueError("it is the address of a database; give that of Graphiti's REST service, http://HOST:PORT")
        return given


class FusionInput(TypedDict, total=False):
    """What is asked: ``query``, else the last message of a person, else what the operation asks of the canvas.

    The base that holds the canvas is asked where no ``kb_prefix`` is given; names on the target nodes are meant too.
    """

    session_id: Required[str]
    canvas_path: Required[str]
    operation: Required[Operation]
    target_nodes: list[str]
    query: str
    messages: Annotated[list[AnyMessage], add_messages]


def _joined(old: list[Json], new: list[Json]) -> list[Json]:
    """The log with more entries, once each; a first pass begins it again, when a thread carries several questions."""
    kept = [] if old and new and new[0]["pass"] < old[-1]["pass"] else old
    return list({(one["node"], one["pass"]): one for one in [*kept, *new]}.values())


class FusionState(FusionInput, total=False):
    """What each node gives.

    ``asked`` is what was asked, ``{"pass", "query"}``, of a sub-question with ``hop`` (the input of ``next_hop``), of
    the same again with ``wide``, how many times as many passages; until it has ``ended`` those of the last pass come
    next. ``graph_results`` and ``vector_results`` are ``{"source", "pass", "ask", "chunk_id", "score"}``, best first,
    source by source, ``ask`` counting in ``asked``; a fact of Graphiti has its ``result`` there not fused by rank.
    ``fused_results`` are ``{"pass", "ask", "chunk_id", "score", "sources"}``; ``reranked_results`` is evidence.
    ``best`` is the best pass so far, which is given at the end; ``best_effort`` says that even it falls short.
    ``passes`` has ``pass``, ``asked``, ``quality_score`` and ``found`` of each; ``log`` a line for each node that ran.
    """

    graph_results: list[Json]
    vector_results: list[Json]
    fused_results: list[Json]
    reranked_results: list[Json]
    quality_score: float
    retry_count: int
    asked: list[Json]
    ended: bool
    best: Json
    best_effort: bool
    passes: list[Json]
    log: Annotated[list[Json], _joined]


class Asking(NamedTuple):
    """What a call asks of which base; ``names`` are meant too."""

    base: KnowledgeBase
    options: FusionConfig
    query: str
    names: list[str]

    def question(self, ask: Data | None = None) -> Question:
        """Return the question, or what a later pass asks for it, as the base sees it."""
        if ask is None or ask["pass"] == 1:
            return Question.of(self.query, self.base, self.names)
        return Question.of(ask["query"], self.base)


async def retrieve_graph(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
    """Return passages by their place in the knowledge graph, behind them the facts of Graphiti where it is set."""
    change = await asyncio.to_thread(_retrieve, hybrid.from_graph, "graph_results", state, config, runtime)
    asking = _asked(state, config, runtime)
    if not asking.options.graphiti_endpoint or _number(state) > 1:
        return change
    try:
        facts = await _facts(asking, getattr(runtime.context, "settings", None) or default_settings())
    except ToolError as error:  # the passages of the base do not depend on a server
        return {**change, "error": str(error)}
    return {**change, "graph_results": [*change["graph_results"], *facts]}


async def _facts(asking: Asking, settings: Settings) -> list[Json]:
    """Return what Graphiti knows of the question, as of the date that the base is asked."""
    tool = graphiti(settings.model_copy(update={"graphiti_endpoint": asking.options.graphiti_endpoint}))
    as_of = getattr(asking.base, "as_of", "")
    given = {
        "query": asking.query,
        "top_k": min(asking.options.top_k, 100),
        "as_of": last_day(as_of) if as_of else None,
    }
    output = cast(Any, await tool(GraphitiInput.model_validate(given), asking.base, StepLog()))
    at = {"source": "graphiti", "pass": 1, "ask": 0}
    return [{**at, "chunk_id": one["source_id"], "score": one["score"], "result": one} for one in output.results]


async def retrieve_vectors(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
    """Return passages by their words and by what they mean."""
    return await asyncio.to_thread(_retrieve, hybrid.from_texts, "vector_results", state, config, runtime)


def _retrieve(source: Any, key: str, state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
    """Return what one source finds for what this pass asks, behind what it found before."""
    asking, log = _asked(state, config, runtime), StepLog(runtime.context.clock)
    first = _number(state) == 1
    found = list[Json]() if first else list(cast(Any, state).get(key, []))
    with asking.base.reading():
        for number, ask in _now(state, asking):
            hits = source(asking.question(ask), _pool(ask, asking.options), log)
            found += [
                {"source": name, "pass": ask["pass"], "ask": number, "chunk_id": chunk_id, "score": score}
                for name, ranking in hits.items()
                for chunk_id, score in ranking
            ]
    # a cascade may leave the vectors out: those of an earlier question of the thread must not stand in for them
    emptied = {"vector_results": list[Any]()} if first and asking.options.fusion_strategy == "cascade" else {}
    return {**emptied, key: found}


async def sources(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> list[str]:
    """Return both sources, to be asked at once; of a cascade, the graph alone."""
    cascade = _options(config, runtime).fusion_strategy == "cascade"
    return ["retrieve_graph"] if cascade else ["retrieve_graph", "retrieve_vectors"]


async def after_graph(
    state: FusionState, config: RunnableConfig, runtime: Runtime[Context]
) -> Literal["fuse_results", "retrieve_vectors"]:
    """Return the fusion; of a cascade whose graph is not sure, the vectors."""
    asking = _asked(state, config, runtime)
    if asking.options.fusion_strategy != "cascade":
        return "fuse_results"
    question, ids = asking.question(), [hit["chunk_id"] for hit in state["graph_results"][:PLACES]]
    first = await asyncio.to_thread(asking.base.passages, ids)
    best = max((probability("local_search", question.signals(passage)) for passage in first), default=0.0)
    return "fuse_results" if best >= SURE and _number(state) == 1 else "retrieve_vectors"


def fuse_results(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
    """Return the passages of both sources in one order, for each thing that this pass asks."""
    asking = _asked(state, config, runtime)
    fused, strategy = list[Json](), asking.options.fusion_strategy
    with asking.base.reading():
        for number, ask in _now(state, asking):
            hits = _hits(state, number)
            if strategy == "cascade":  # the graph leads
                hits = {"graph": hits["graph"], **hits}
            found = hybrid.fused(asking.question(ask), hits, _pool(ask, asking.options), StepLog(), strategy)
            ids = {name: {chunk_id for chunk_id, _ in ranking} for name, ranking in hits.items()}
            for passage, score in found:
                chunk_id = passage["chunk_id"]
                by = [name for name in ids if chunk_id in ids[name]]
                at = {"pass": ask["pass"], "ask": number, "chunk_id": chunk_id}
                fused.append({**at, "score": score, "sources": by})
    return {"fused_results": fused}


def rerank_results(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
    """The passages read again next to what was asked, as evidence with calibrated scores, with the best of before."""
    asking = _asked(state, config, runtime)
    facts = [one["result"] for one in state.get("graph_results", []) if "result" in one]
    found: list[RetrievalResult] = facts if _number(state) == 1 else list(state["best"]["reranked_results"])
    hops: list[RetrievalResult] = []
    with asking.base.reading():
        for number, ask in _now(state, asking):
            ids = [one["chunk_id"] for one in state["fused_results"] if one["ask"] == number]
            passages, hits = asking.base.passages(ids), _hits(state, number)
            if "hop" in ask:
                hops += next_hop.judged(next_hop.NextHopInput.model_validate(ask["hop"]), passages, hits, asking.base)
            else:
                found += hybrid.reranked(asking.question(), passages, hits, StepLog(), asking.options.rerank_model)
    if hops:
        found = with_hops(cast(list[RetrievalResult], evidence.ranked(found, len(found))), hops, kept=STANDING)
    return {"reranked_results": evidence.ranked(found, asking.options.top_k)}


def check_quality(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
    """Return how well the question is covered, 0 to 1; the best pass; and what to ask next, if anything."""
    asking = _asked(state, config, runtime)
    base, options, query, _ = asking
    found = cast(list[RetrievalResult], state["reranked_results"])
    retries, asked = _number(state) - 1, _so_far(state, asking)
    with base.reading():
        quality = quality_of(query, first_documents(found), base)
        best: Json = state["best"] if retries else {"quality_score": -1.0}
        if quality > best["quality_score"]:
            best = {"quality_score": quality, "reranked_results": found, "retry_count": retries}
        following = []
        if best["quality_score"] < options.quality_threshold and retries < options.max_retries:
            following = further(query, best["reranked_results"], base, asked)
    this = {
        "pass": retries + 1,
        "asked": [ask["query"] for _, ask in _now(state, asking)],
        "quality_score": quality,
        "found": [result["source_id"] for result in found],
    }
    return {
        **{name: best[name] for name in ("quality_score", "reranked_results")},
        "best": best,
        "best_effort": best["quality_score"] < options.quality_threshold,
        "retry_count": retries,
        "passes": [*(state["passes"] if retries else []), this],
        "asked": [*asked, *({"pass": retries + 2, **ask} for ask in following)],
        "ended": not following,
    }


def further(query: str, found: Sequence[RetrievalResult], base: KnowledgeBase, asked: Sequence[Data]) -> list[Json]:
    """Return what the next pass asks.

    That is what the evidence leaves of the question, of the names it brings in that have a document; else twice as many
    passages as before, with every writing of the names in the question.
    """
    said = {ask["query"] for ask in asked}
    hops = next_hop.sub_questions(query, found, base, next_hop.MOST + len(said))
    left = [hop for hop in hops if hop.query not in said and base.ways.titles_in(hop.name)]
    if left:
        return [{"query": hop.query, "hop": hop.asked(query)} for hop in left[: next_hop.MOST]]
    entities = [entity for mention in base.link(query) if (entity := base.entity(mention["entity_id"]))]
    writings = dict.fromkeys(name for entity in entities for name in (entity["name"], *entity["aliases"]))
    wide = " ".join([query, *(name for name in writings if fold(name) not in fold(query))])
    return [{"query": wide, "wide": 2 ** asked[-1]["pass"]}]


def should_retry(state: FusionState, config: RunnableConfig) -> Literal["retry", "end"]:
    """Again while the quality is below the threshold, retries are left, and there is something else to ask."""
    options = config_of(config)
    enough = state["quality_score"] >= options.quality_threshold or state["retry_count"] >= options.max_retries
    return "end" if enough or state.get("ended") else "retry"


async def again(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> list[str]:
    """Return where ``should_retry`` leads: to the sources, or to the end."""
    known: Any = {"configurable": _options(config, runtime).model_dump()}
    return await sources(state, config, runtime) if should_retry(state, known) == "retry" else [END]


def query_of(state: Data, otherwise: str = "") -> str:
    """Return the question: ``query``, else the last message of a person, else what a canvas asks.

    Raises:
        WorkbenchError: there is neither.
    """
    said = [str(m.text) for m in state.get("messages", []) if isinstance(m, HumanMessage)]
    query = str(state.get("query") or (said[-1] if said else otherwise)).strip()
    if not query:
        raise WorkbenchError('Nothing is asked. Give a question: {"query": "..."}, or a message of a person.')
    return query


def config_of(config: RunnableConfig, **settings: Any) -> FusionConfig:
    """Return the options of a call, over those of the settings.

    Raises:
        WorkbenchError: names the option, and what it takes.
    """
    configurable = (config.get("configurable") or {}).items()  # LangGraph keeps its own names there too
    given = {name: value for name, value in configurable if name in FusionConfig.model_fields and value is not None}
    place = str(settings.get("lancedb_path", ""))
    if (asked := given.get("lancedb_path")) and Path(str(asked)).expanduser() != Path(place or ".").expanduser():
        raise WorkbenchError(
            f"lancedb_path is {shown(asked)}, and the base keeps its vectors {shown(place) if place else 'elsewhere'}. "
            "Set WORKBENCH_VECTOR_STORE=lancedb and WORKBENCH_LANCEDB_PATH, and `workbench kb rebuild` it."
        )
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


def known_operation(name: Any) -> Operation:
    """Return the operation of that name.

    Raises:
        WorkbenchError: there is none; lists those that there are.
    """
    if name not in get_args(Operation):
        raise WorkbenchError(f"There is no operation {shown(name)}. Known: {', '.join(get_args(Operation))}.")
    return cast(Operation, name)


def fusion_options(settings: Settings) -> Json:
    """Return what ``config["configurable"]`` has where nothing else is said; the base itself knows its reranker."""
    return {
        "fusion_strategy": settings.fusion_strategy,
        "quality_threshold": settings.quality_threshold,
        "max_retries": settings.max_retries,
        "graphiti_endpoint": settings.graphiti_endpoint,
        "lancedb_path": settings.lancedb_path if settings.vector_store == "lancedb" else "",
    }


def build_fusion(
    schema: type[FusionState] = FusionState, names: Mapping[str, str] = MappingProxyType({})
) -> StateGraph[Any, Context, Any, Any]:
    """Return the graph, not compiled: ``build_fusion().compile(checkpointer=...)``; ``names`` are other names in it."""
    graph = StateGraph(schema, context_schema=Context, input_schema=FusionInput)
    nodes = (retrieve_graph, retrieve_vectors, fuse_results, rerank_results, check_quality)
    called = {node.__name__: names.get(node.__name__, node.__name__) for node in nodes}
    for node in nodes:
        graph.add_node(called[node.__name__], cast(Any, _noted(node, names)), input_schema=schema)
    graph_node, vectors, fuse, rerank, check = called.values()
    first = {name: called[name] for name in ("retrieve_graph", "retrieve_vectors")}
    graph.add_conditional_edges(START, cast(Any, sources), cast(Any, first))
    graph.add_conditional_edges(graph_node, after_graph, {"fuse_results": fuse, "retrieve_vectors": vectors})
    graph.add_edge(vectors, fuse)
    graph.add_edge(fuse, rerank)
    graph.add_edge(rerank, check)
    graph.add_conditional_edges(check, cast(Any, again), cast(Any, {**first, END: END}))
    return graph


CanvasRAGConfig = FusionConfig


class CanvasRAGState(FusionState, total=False):
    """The state with the names that the two sources have elsewhere, as well."""

    graphiti_results: list[Json]
    lancedb_results: list[Json]


def build_canvas_rag_graph() -> CompiledStateGraph[Any, Context, Any, Any]:
    """Return the graph under the names that it has elsewhere, compiled, its checkpoints in memory."""
    own = {"retrieve_graph": "retrieve_graphiti", "retrieve_vectors": "retrieve_lancedb"}
    own |= {"graph_results": "graphiti_results", "vector_results": "lancedb_results"}
    return build_fusion(CanvasRAGState, own).compile(checkpointer=InMemorySaver())


def schema_text() -> str:
    """Return the bytes of ``fusion.schema.json``: what the graph takes."""
    schema = build_fusion().compile().get_input_jsonschema()
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _noted(node: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    """The node with a line in the state's log and an event in the stream; what it gives is given by other names too."""

    async def noted(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Json:
        clock = runtime.context.clock
        at, began, given = clock.now().isoformat(), clock.monotonic(), (state, config, runtime)
        change = await node(*given) if inspect.iscoroutinefunction(node) else await asyncio.to_thread(node, *given)
        took = {"at": at, "duration_ms": round((clock.monotonic() - began) * 1000, 3)}
        counts = {key: len(value) for key, value in change.items() if key.endswith("_results") and value}
        told = change["passes"][-1] if "passes" in change else {"pass": _number(state), **counts}
        failed = {"error": change.pop("error")} if "error" in change else {}
        line = {"node": node.__name__, **told, **failed, **took}
        runtime.stream_writer(progress("fusion", **line))
        return {**change, "log": [line], **{names[key]: value for key, value in change.items() if key in names}}

    return noted


def _asked(state: FusionState, config: RunnableConfig, runtime: Runtime[Context]) -> Asking:
    """Return what is asked, and of which base."""
    options, known, canvas = _options(config, runtime), runtime.context.searched, state.get("canvas_path")
    known_operation(state.get("operation"))
    name, names = options.kb_prefix, known.names()
    if canvas:
        name = base_of(known, canvas, [name] if name else names)
    elif not name and len(names) != 1:
        raise WorkbenchError(
            f'Which base? Give config["configurable"]["kb_prefix"]: one of {", ".join(names) or "none"}.'
        )
    base = known.get(name or names[0])
    targets = state.get("target_nodes") or []
    said, names = question_of(base, canvas, state["operation"], targets) if canvas else ("", [])
    return Asking(base, options, query_of(state, said), names)


def _options(config: RunnableConfig, runtime: Runtime[Context]) -> FusionConfig:
    """Return the options of a call, over those of the settings."""
    settings = getattr(runtime.context, "settings", None)
    return config_of(config, **(fusion_options(settings) if settings else {}))


def _so_far(state: FusionState, asking: Asking) -> list[Json]:
    """Return what was asked, this pass last; a state that has ended is that of the thread's last question."""
    return [{"pass": 1, "query": asking.query}] if _number(state) == 1 else state["asked"]


def _now(state: FusionState, asking: Asking) -> list[tuple[int, Json]]:
    """Return what this pass asks, and its places in ``asked``."""
    return [(n, ask) for n, ask in enumerate(_so_far(state, asking)) if ask["pass"] == _number(state)]


def _number(state: FusionState) -> int:
    """Return which pass this is, from 1."""
    return 1 if state.get("ended", True) else int(state["asked"][-1]["pass"])


def _pool(ask: Data, options: FusionConfig) -> int:
    return next_hop.HITS if "hop" in ask else max(LEAD, options.top_k) * ask.get("wide", 1)


def _hits(state: FusionState, ask: int) -> dict[str, list[tuple[str, float]]]:
    """Return the ranking of each source for one thing that was asked."""
    found: dict[str, list[tuple[str, float]]] = {"bm25": [], "dense": [], "graph": []}
    for one in (*state.get("vector_results", []), *state.get("graph_results", [])):
        if one["ask"] == ask and "result" not in one:
            found[one["source"]].append((one["chunk_id"], one["score"]))
    return found
