"""The fusion graph: two sources in parallel, fused, reranked, judged, and retried where the quality is too low.

    START -> retrieve_graph   -> fuse_results -> rerank_results -> check_quality -> END
    START -> retrieve_vectors ->                                                -> both sources again

Its nodes are the stages of ``hybrid_search`` (``tools/hybrid.py``), which runs one pass of them. A retry asks for
twice as many passages, with every spelling of the names; its results join the earlier ones, and the best pass is
returned. ``fusion_search`` is the whole graph as a step of a plan, and ``wb.fusion`` makes a run of that. Inside a run
the graph keeps its checkpoints among the run's, so a run that was killed continues at its unfinished node.

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
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, Required, cast

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from pydantic import ConfigDict, Field, field_validator
from typing_extensions import TypedDict

from workbench.errors import ToolError, WorkbenchError, refusing, shown
from workbench.events import progress
from workbench.graphs.merge import first_documents
from workbench.graphs.plan import with_names
from workbench.knowledge.dated import last_day
from workbench.parts.fusion.canvas_work import (
    Operation,
    choose_base,
    known_operation,
    question_nodes,
    read_question,
)
from workbench.parts.fusion.graphiti import GraphitiInput, graphiti
from workbench.parts.fusion.settings import FusionSettings
from workbench.parts.fusion.strategies import STRATEGIES
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.ports import Context, KnowledgeBase, SystemClock, ToolLog
from workbench.runs.run import Run
from workbench.runs.stored import Recording
from workbench.settings import Settings, default_settings
from workbench.state import Data, Evidence, Hits, Json, RetrievalResult, SubStep, drop, pick
from workbench.tools import evidence, hybrid
from workbench.tools.scoring import LEAD, Question, coverage
from workbench.tools.tool import FunctionTool, Search, StepLog, ToolOutput

SOURCES = ("retrieve_graph", "retrieve_vectors")


class FusionOptions(FusionSettings):
    """How two sources are fused, and how often they are asked again."""

    rerank_model: str = ""
    """The reranker; empty: the one of the knowledge base, none: none"""
    top_k: int = Field(10, ge=1, le=1000)
    """How many results at most"""


class FusionConfig(FusionOptions):
    """The options in ``config["configurable"]``; the settings fill in the others."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kb_prefix: str = ""
    graphiti_endpoint: str = ""
    """Graphiti's REST service, asked next to the base; empty: none"""
    lancedb_path: str = ""
    """Where the base keeps its vectors, if it is by LanceDB; no other folder"""

    @field_validator("graphiti_endpoint")
    @classmethod
    def _by_rest(cls, address: str) -> str:
        if address and not address.startswith(("http://", "https://")):
            raise ValueError(
                "it is the address of a database; give that of Graphiti's REST service, http://HOST:PORT"
            )
        return address


class FusionInput(TypedDict, total=False):
    """The question: ``query``, or the last message of a person, or what the operation asks about the canvas.

    Without a ``kb_prefix`` the base that holds the canvas is asked; names on the target nodes count as in the question.
    """

    session_id: Required[str]
    canvas_path: Required[str]
    operation: Required[Operation]
    target_nodes: list[str]
    query: str
    messages: Annotated[list[AnyMessage], add_messages]


def _extend_log(old: list[Json], new: list[Json]) -> list[Json]:
    """Append log lines, each once; a first pass restarts the log, when a thread carries several questions."""
    earlier = [] if old and new and new[0]["pass"] < old[-1]["pass"] else old
    return list({(line["node"], line["pass"]): line for line in [*earlier, *new]}.values())


class FusionState(FusionInput, total=False):
    """The results of the nodes.

    ``asked`` lists the query of each pass; until the graph has ``ended`` the last one is next.
    ``graph_results`` and ``vector_results`` are ``{"source", "pass", "chunk_id", "score"}``, best first per source; a
    fact of Graphiti has a ``result`` and is not fused by rank.
    ``fused_results`` are ``{"pass", "chunk_id", "score", "sources"}``; ``reranked_results`` is evidence.
    ``best`` is the best pass so far, which is returned; ``best_effort`` tells that its quality is too low as well.
    ``passes`` has ``pass``, ``asked``, ``quality_score`` and ``found`` of each; ``log`` one line per node that ran.
    """

    graph_results: list[Json]
    vector_results: list[Json]
    fused_results: list[Json]
    reranked_results: list[Json]
    quality_score: float
    retry_count: int
    asked: list[str]
    ended: bool
    best: Json
    best_effort: bool
    passes: list[Json]
    log: Annotated[list[Json], _extend_log]


class Request(NamedTuple):
    """The question of a call, its ports and its base; ``names`` count as in the question.

    ``own`` are the documents of nodes whose text is judged: no text is evidence for itself. ``queries`` are the queries
    of all passes so far, that of this one last.
    """

    context: Context
    base: KnowledgeBase
    options: FusionConfig
    query: str
    names: list[str]
    own: frozenset[str]
    queries: list[str]

    @property
    def number(self) -> int:
        """Return the number of this pass, from 1."""
        return len(self.queries)

    @property
    def pool(self) -> int:
        """Return how many passages are looked at: twice as many in each pass."""
        return max(LEAD, self.options.top_k) * 2 ** (self.number - 1)

    def question(self) -> Question:
        """Return the question as the base reads it."""
        return Question.read(self.query, self.base, self.names)

    def question_now(self) -> Question:
        """Return what this pass asks: the question, or a wider query."""
        return Question.read(self.queries[-1], self.base) if self.number > 1 else self.question()


async def retrieve_graph(state: FusionState, request: Request) -> Json:
    """Return passages by their place in the knowledge graph, and then facts of Graphiti where it is set."""
    change = await asyncio.to_thread(
        _retrieve, hybrid.from_graph, "graph_results", state, request
    )
    if not request.options.graphiti_endpoint or request.number > 1:
        return change
    try:
        facts = await _facts(request)
    except ToolError as error:  # the passages of the base do not depend on a server
        return {**change, "error": str(error)}
    return {**change, "graph_results": [*change["graph_results"], *facts]}


async def _facts(request: Request) -> list[Json]:
    """Return the facts of Graphiti about the question, as of the date of the base."""
    endpoint = {"graphiti_endpoint": request.options.graphiti_endpoint}
    tool = graphiti(request.context.settings.model_copy(update=endpoint))
    date = getattr(request.base, "as_of", "")
    top_k = min(request.options.top_k, 100)
    as_of = last_day(date) if date else None
    tool_input = GraphitiInput.model_validate(
        {"query": request.query, "top_k": top_k, "as_of": as_of}
    )
    output = cast(Any, await tool(tool_input, request.base, StepLog()))
    return [
        {**_hit("graphiti", 1, fact["source_id"], fact["score"]), "result": fact}
        for fact in output.results
    ]


def _hit(source: str, number: int, chunk_id: str, score: float) -> Json:
    return {"source": source, "pass": number, "chunk_id": chunk_id, "score": score}


def retrieve_vectors(state: FusionState, request: Request) -> Json:
    """Return passages by their words and by their meaning."""
    return _retrieve(hybrid.from_texts, "vector_results", state, request)


def _retrieve(source: Any, key: str, state: FusionState, request: Request) -> Json:
    """Return the hits of one source in this pass after its earlier ones."""
    with request.base.reading():
        log = StepLog(request.context.clock)
        rankings = source(request.question_now(), request.pool, log)
    hits = list[Json]() if request.number == 1 else list(cast(Any, state).get(key, []))
    hits += [
        _hit(name, request.number, *hit) for name, ranking in rankings.items() for hit in ranking
    ]
    return {key: hits}


def fuse_results(state: FusionState, request: Request) -> Json:
    """Merge the passages that both sources found in this pass into one ranking."""
    strategy = request.options.fusion_strategy
    hits = _hits(state, request.number)
    if strategy == "cascade":  # the graph leads
        hits = {"graph": hits["graph"], **hits}
    with request.base.reading():
        question = request.question_now()
        ranking = hybrid.fuse(question, hits, request.pool, StepLog(), STRATEGIES[strategy])
    scores = {name: dict(source_hits) for name, source_hits in hits.items()}
    fused = [
        {
            "pass": request.number,
            "chunk_id": passage["chunk_id"],
            "score": score,
            "sources": [name for name in scores if passage["chunk_id"] in scores[name]],
        }
        for passage, score in ranking
    ]
    return {"fused_results": fused}


def rerank_results(state: FusionState, request: Request) -> Json:
    """Rerank the passages against the question, as evidence with calibrated scores, with the best pass so far."""
    facts = [hit["result"] for hit in state.get("graph_results", []) if "result" in hit]
    before = facts if request.number == 1 else state["best"]["reranked_results"]
    ids = [hit["chunk_id"] for hit in state["fused_results"]]
    ids = [i for i in ids if evidence.document_id(i) not in request.own]
    hits = _hits(state, request.number)
    model = request.options.rerank_model
    with request.base.reading():
        passages = request.base.passages(ids)
        results = hybrid.rerank(request.question(), passages, hits, StepLog(), model)
    return {"reranked_results": evidence.ranked([*before, *results], request.options.top_k)}


def check_quality(state: FusionState, request: Request) -> Json:
    """Return the quality, 0 to 1; the best pass; and the query of the next pass, if any."""
    _, base, options, query, *_ = request
    results = cast(list[RetrievalResult], state["reranked_results"])
    retries = request.number - 1
    with base.reading():
        quality = measure_quality(query, first_documents(results), base)
        best = state["best"] if retries else {"quality_score": -1.0}
        if quality > best["quality_score"]:
            best = {"quality_score": quality, "reranked_results": results, "retry_count": retries}
        falls_short = best["quality_score"] < options.quality_threshold
        goes_on = falls_short and retries < options.max_retries
        following = [widened(query, base)] if goes_on else []
    this = {
        "pass": request.number,
        "asked": request.queries[-1:],
        "quality_score": quality,
        "found": [result["source_id"] for result in results],
    }
    return {
        **pick(best, "quality_score", "reranked_results"),
        "best": best,
        "best_effort": falls_short,
        "retry_count": retries,
        "passes": [*(state["passes"] if retries else []), this],
        "asked": [*request.queries, *following],
        "ended": not following,
    }


def measure_quality(question: str, results: Evidence, knowledge: KnowledgeBase) -> float:
    """Return the share of the question's words and names that results cover, times their mean score.

    The mean is over those that say something of the question which the better ones do not.
    """
    texts = [
        f"{result['metadata'].get('title') or ''}. {result['evidence']}" for result in results
    ]
    weights, rows = coverage(question, texts, knowledge)
    covered = [0.0] * len(weights)
    share = 0.0
    scores = []
    for result, row in zip(results, rows, strict=True):
        together = [max(pair) for pair in zip(covered, row, strict=True)]
        new_share = sum(
            weight * clearness for weight, clearness in zip(weights, together, strict=True)
        )
        # What a document must add to the share of the question that the better ones cover.
        if new_share >= share + 0.01:
            covered = together
            share = new_share
            scores.append(result["score"])
    return round(share * sum(scores) / len(scores), 3) if scores else 0.0


def widened(query: str, base: KnowledgeBase) -> str:
    """Return a query with every spelling of the names in it."""
    linked = (base.entity(mention["entity_id"]) for mention in base.link(query))
    spellings = (
        name for entity in linked if entity for name in (entity["name"], *entity["aliases"])
    )
    return with_names(query, dict.fromkeys(spellings))


def should_retry(state: FusionState, config: RunnableConfig) -> Literal["retry", "end"]:
    """Retry until ``check_quality`` has ended it: the quality is high enough, or no retries are left."""
    return "end" if state["ended"] else "retry"


async def again(state: FusionState, config: RunnableConfig) -> list[str]:
    """Route to both sources again, or to the end."""
    return list(SOURCES) if should_retry(state, config) == "retry" else [END]


def read_query(state: Data, otherwise: str) -> str:
    """Return the question: ``query``, or the last message of a person, or what a canvas asks.

    Raises:
        WorkbenchError: there is neither.
    """
    messages = [str(m.text) for m in state.get("messages", []) if isinstance(m, HumanMessage)]
    query = str(state.get("query") or (messages[-1] if messages else otherwise)).strip()
    if not query:
        raise WorkbenchError(
            'Nothing is asked. Give a question: {"query": "..."}, or a message of a person.'
        )
    return query


def read_config(config: RunnableConfig, **settings: Any) -> FusionConfig:
    """Return the options of a call, over those of the settings.

    Raises:
        WorkbenchError: names the option, and what it takes.
    """
    # LangGraph keeps its own names there too
    configurable = (config.get("configurable") or {}).items()
    own = {
        name: value
        for name, value in configurable
        if name in FusionConfig.model_fields and value is not None
    }
    place = str(settings.get("lancedb_path", ""))
    path = own.get("lancedb_path")
    if path and Path(str(path)).expanduser() != Path(place or ".").expanduser():
        raise WorkbenchError(
            f"lancedb_path is {shown(path)}, and the base keeps its vectors {shown(place) if place else 'elsewhere'}. "
            "Set WORKBENCH_VECTOR_STORE=lancedb and WORKBENCH_LANCEDB_PATH, and `workbench kb rebuild` it."
        )
    with refusing():
        return FusionConfig.model_validate({**settings, **own})


def fusion_options(settings: Settings) -> Json:
    """Return the defaults of ``config["configurable"]``; the reranker is the base's own."""
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
    """Return the graph, not compiled: ``build_fusion().compile(checkpointer=...)``; ``names`` rename nodes and keys."""
    graph = StateGraph(schema, context_schema=Context, input_schema=FusionInput)
    nodes = (retrieve_graph, retrieve_vectors, fuse_results, rerank_results, check_quality)
    node_names = {node.__name__: names.get(node.__name__, node.__name__) for node in nodes}
    for node in nodes:
        graph.add_node(node_names[node.__name__], _logged(node, names), input_schema=schema)
    graph_node, vectors, fuse, rerank, check = node_names.values()
    for source in (graph_node, vectors):
        graph.add_edge(START, source)
        graph.add_edge(source, fuse)
    graph.add_edge(fuse, rerank)
    graph.add_edge(rerank, check)
    following: Any = {**pick(node_names, *SOURCES), END: END}
    graph.add_conditional_edges(check, again, following)
    return graph


CanvasRAGConfig = FusionConfig


class CanvasRAGState(FusionState, total=False):
    """The state with the second names of the two sources."""

    graphiti_results: list[Json]
    lancedb_results: list[Json]


def build_canvas_rag_graph() -> CompiledStateGraph[Any, Context, Any, Any]:
    """Return the graph under its second names, compiled, with checkpoints in memory."""
    names = {"retrieve_graph": "retrieve_graphiti", "retrieve_vectors": "retrieve_lancedb"}
    names |= {"graph_results": "graphiti_results", "vector_results": "lancedb_results"}
    return build_fusion(CanvasRAGState, names).compile(checkpointer=InMemorySaver())


def schema_text() -> str:
    """Return the text of ``fusion.schema.json``, the input schema of the graph."""
    schema = build_fusion().compile().get_input_jsonschema()
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _logged(node: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    """Wrap a node: read its request, add a log line and a stream event, and repeat keys that have a second name."""

    async def logged(
        state: FusionState, config: RunnableConfig, runtime: Runtime[Context]
    ) -> Json:
        context = runtime.context
        clock = context.clock
        at = clock.now().isoformat()
        started = clock.monotonic()
        request = await asyncio.to_thread(_read_request, state, config, context)
        change = (
            await node(state, request)
            if inspect.iscoroutinefunction(node)
            else await asyncio.to_thread(node, state, request)
        )
        duration = round((clock.monotonic() - started) * 1000, 3)
        counts = {
            key: len(value) for key, value in change.items() if key.endswith("_results") and value
        }
        line = {
            "node": node.__name__,
            **(
                change["passes"][-1] if "passes" in change else {"pass": request.number, **counts}
            ),
            **({"error": change.pop("error")} if "error" in change else {}),
            "at": at,
            "duration_ms": duration,
        }
        runtime.stream_writer(progress("fusion", **line))
        return {
            **change,
            "log": [line],
            **{names[key]: value for key, value in change.items() if key in names},
        }

    return logged


def _read_request(state: FusionState, config: RunnableConfig, context: Context) -> Request:
    """Return the question of a call, and its base."""
    options = read_config(config, **fusion_options(context.settings))
    bases = context.searched
    canvas = state.get("canvas_path")
    known_operation(state.get("operation"))
    name = options.kb_prefix
    names = [name] if name else bases.names()
    if canvas:
        name = choose_base(bases, canvas, names)
    elif len(names) != 1:
        raise WorkbenchError(
            f'Which base? Give config["configurable"]["kb_prefix"]: one of {", ".join(names) or "none"}.'
        )
    base = bases.get(name or names[0])
    targets = state.get("target_nodes") or []
    question, names = (
        read_question(base, canvas, state["operation"], targets) if canvas else ("", [])
    )
    judged = canvas and state["operation"] in ("scoring", "verification")
    documents = question_nodes(base, canvas) if canvas and judged else {}
    own = frozenset(doc_id for node, doc_id in documents.items() if node in targets)
    query = read_query(state, question)
    # an ended state belongs to the thread's last question
    queries = [query] if state.get("ended", True) else state["asked"]
    return Request(context, base, options, query, names, own, queries)


def _hits(state: FusionState, number: int) -> dict[str, Hits]:
    """Return the ranking of each source in one pass."""
    rankings: dict[str, Hits] = {"bm25": [], "dense": [], "graph": []}
    for hit in (*state.get("vector_results", []), *state.get("graph_results", [])):
        if hit["pass"] == number and "result" not in hit:
            rankings[hit["source"]].append((hit["chunk_id"], hit["score"]))
    return rankings


# as a step of a plan, and as a run


class Input(FusionOptions, Search):
    """The input of ``fusion_search``."""

    canvas_path: str = ""
    """A canvas in the knowledge base; empty: none"""
    operation: Operation = "explanation"
    """What is done with its nodes"""
    target_nodes: list[str] = Field(default_factory=list)
    """Their ids"""


class Output(ToolOutput):
    """The output of ``fusion_search``."""

    quality_score: float = 0
    """How likely it is that nothing needed is missing, 0 to 1"""
    retry_count: int = 0
    """How often it was asked again"""
    best_pass: int = 1
    """The pass whose results these are"""
    best_effort: bool = False
    """Whether even the best pass falls short"""
    passes: list[Json] = Field(default_factory=list)
    """What each asked, how good it was"""


@cache
def _graph() -> Any:
    return build_fusion().compile()


async def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """Both sources at once, fused, reranked, judged, and asked again for what is missing; the best pass."""
    values = dict(tool_input)
    options = drop(values, *FusionInput.__annotations__)
    question = drop(values, *options)
    config = {"configurable": {**options, "kb_prefix": knowledge.name}}
    bases: Any = SimpleNamespace(names=lambda: [knowledge.name], get=lambda _: knowledge)
    run = _context()
    # the base as of the date that the run asks
    ports = (
        replace(run, corpora=bases)
        if run
        else SimpleNamespace(searched=bases, clock=SystemClock(), settings=default_settings())
    )
    state = await _graph().ainvoke(
        {**question, "session_id": "", "messages": []}, config, context=ports
    )
    began = min(datetime.fromisoformat(line["at"]) for line in state["log"])
    for line in state["log"]:
        offset = (datetime.fromisoformat(line["at"]) - began).total_seconds() * 1000
        step = SubStep(
            name=line["node"],
            offset_ms=round(offset, 3),
            duration_ms=line["duration_ms"],
            detail=drop(line, "node", "at", "duration_ms"),
        )
        log.sub_steps.append(step)
    return Output(
        results=state["reranked_results"],
        candidates=evidence.titles(state["reranked_results"]),
        best_pass=state["best"]["retry_count"] + 1,
        **pick(state, "quality_score", "retry_count", "best_effort", "passes"),
    )


def _context() -> Context | None:
    """Return the ports of the run in which this is called."""
    with suppress(RuntimeError):
        context = getattr(get_runtime(), "context", None)
        return context if isinstance(context, Context) else None
    return None


TOOL = FunctionTool(
    name="fusion_search",
    planned=False,
    description="The fusion graph: two sources at once, fused, reranked, judged, and asked again; slower and surer.",
    input_schema=Input,
    output_schema=Output,
    function=search,
)


@property  # type: ignore[misc]
def outcome(run: Recording) -> Json:
    """Return the outcome of the fusion graph, {} without one: ``quality_score``, ``retry_count``, ``best_pass``,
    ``best_effort``, the ``passes``, and the ``operation_results`` of a canvas."""
    last = next(
        (r for r in reversed(run.records) if r["tool"] == TOOL.name and r["raw_output_ref"]), None
    )
    if last is None or run.plan is None:
        return {}
    output = run._store.body(run.run_id, str(last["raw_output_ref"]))["output"]
    figures = drop(output, "entities", "candidates")
    return {**figures, "operation_results": run.plan.metadata.get("operation_results", [])}


def fusion(
    wb: Any,
    question: str = "",
    *,
    strategy: str | None = None,
    rerank: str | None = None,
    quality_threshold: float | None = None,
    max_retries: int | None = None,
    canvas: str | Path = "",
    operation: str = "explanation",
    nodes: Iterable[str] = (),
    wait: bool = True,
    **options: Any,
) -> Run:
    """Ask the fusion graph: a run whose plan is that graph, so it is shown, streamed, resumed, replayed and forked.

    ``run.fusion`` says how good each pass was, and what the operation found for the nodes of the canvas;
    ``run.fork(plan=run.plan.replace("fusion", tool_input={...}))`` asks it otherwise.

    Args:
        question: what is asked; empty with a canvas, whose nodes and operation then ask.
        strategy: how the rankings are fused, one of ``STRATEGIES``; None for the setting, as below.
        rerank: the reranker, by name.
        quality_threshold: below it is asked again, 0 to 1.
        max_retries: how often at most.
        canvas: a canvas in a knowledge base, which is asked if ``kb`` names none.
        operation: what is done with its nodes.
        nodes: their ids.
        wait: False returns at once.
        **options: those of ``start``.

    Raises:
        WorkbenchError: no such canvas, node, operation or strategy; it says which there are.
    """
    wb._must_be_open()
    configurable = {
        "fusion_strategy": strategy,
        "rerank_model": rerank,
        "quality_threshold": quality_threshold,
        "max_retries": max_retries,
    }
    settings = wb.settings
    config = read_config({"configurable": configurable}, **fusion_options(settings))
    elsewhere = {"kb_prefix", "graphiti_endpoint", "lancedb_path"}
    tool_input = config.model_dump(exclude=elsewhere)
    about: Json = {"planner": "fusion"}
    kb = options.pop("kb", None)
    if path := str(canvas):
        work = known_operation(operation)
        targets = [nodes] if isinstance(nodes, str) else list(nodes)
        kb = choose_base(wb.knowledge, path, [kb] if isinstance(kb, str) else kb or ())
        asks, _ = read_question(wb.knowledge.get(kb), path, work, targets)
        question = question or asks
        tool_input |= {"canvas_path": path, "operation": work, "target_nodes": targets}
        # the results of an explanation are those of the run itself
        if work != "explanation" and Path(path).expanduser().is_file():
            about["operation_results"] = list(wb.canvas(path).work(work, targets, kb).entries)
    step = PlanStep(
        step_id="fusion",
        objective=question,
        tool=TOOL.name,
        tool_input={"query": question, **tool_input},
        budget=PlanBudget(
            timeout_s=settings.time_budget_s, max_retries=settings.step_max_retries
        ),
    )
    plan = Plan(problem_statement=question, steps=[step], metadata=about)
    arguments = {"kb": kb, "plan": plan, "settings": {"max_iterations": 1}, **options}
    return (wb.ask if wait else wb.start)(question, **arguments)
