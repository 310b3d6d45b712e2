"""Other people's functions and retrievers as tools of ours: a form from the signature, evidence from what returns."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Set
from functools import update_wrapper
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, create_model

from workbench.errors import ToolError, shown
from workbench.ports import KnowledgeBase, Tool, ToolLog
from workbench.state import Granularity, Json, RetrievalResult, SourceType, drop
from workbench.text import text_digest
from workbench.tools.evidence import make_evidence, ranked, titles
from workbench.tools.scoring import Question
from workbench.tools.tool import FunctionTool, Search, contained, plain

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool


_HANDED_IN = ("knowledge", "log")
_TEXT = ("evidence", "text", "page_content", "content")
_ID = ("source_id", "chunk_id", "id", "doc_id")
_OURS = ("result_id", "source_id", "chunk_id", "id")
_PORT = {
    "name": str,
    "description": str,
    "input_schema": type,
    "output_schema": type,
    "parallel": bool,
    "intents": Set,
}


class ToolOptions(TypedDict, total=False):
    """Options of an adapted tool, as ``FunctionTool`` has them."""

    description: str
    intents: Iterable[str]
    parallel: bool
    output_schema: type[BaseModel]


def from_function(
    function: Callable[..., Any], name: str = "", **options: Unpack[ToolOptions]
) -> FunctionTool:
    """Make a tool of a plain or async function.

    It returns a list of strings, dicts (``evidence`` or ``text``; optionally ``score`` 0..1, ``source_id``, ``title``,
    ...) or LangChain ``Document``s; or a mapping with such a list under ``results`` and whatever else its output schema
    has.

    Raises:
        ToolError: the signature cannot be turned into a form, or the description is missing.
    """
    name = name or function.__name__
    description = (
        options.get("description") or (inspect.getdoc(function) or "").partition("\n")[0]
    )
    if not description:
        raise ToolError(
            f"Tool {name!r} needs a description: give description=... or a docstring."
        )
    parameters = _parameters(name, function)
    schema = _input_schema(name, parameters)
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

    async def run(tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog) -> Any:
        ports = {"knowledge": knowledge, "log": log}
        args = {
            name: ports[name] if name in ports else getattr(tool_input, name)
            for name in parameters
        }

        def call() -> Any:
            with contained(name):
                returned = function(**args)
                if isinstance(returned, Iterator):
                    return list(islice(returned, MAX_RESULTS + 1))
                return returned

        returned = function(**args) if is_async else await asyncio.to_thread(call)
        if inspect.isawaitable(returned):
            returned = await returned
        if isinstance(returned, AsyncIterable):
            returned = [item async for item in returned]
        return returned

    update_wrapper(run, function, ())  # whoever asks for the source gets the user's
    return _as_function_tool(name, description, schema, run, options)


def from_retriever(
    name: str, retriever: BaseRetriever, **options: Unpack[ToolOptions]
) -> FunctionTool:
    """Make a tool of any LangChain retriever.

    Raises:
        ToolError: the object is not a retriever.
    """
    from langchain_core.retrievers import BaseRetriever

    kind = type(retriever).__name__
    if not isinstance(retriever, BaseRetriever):
        raise ToolError(
            f"Tool {name!r}: {kind} is no LangChain BaseRetriever. "
            "For a vector store call .as_retriever(); for a function use @registry.tool."
        )

    async def run(tool_input: Any, knowledge: KnowledgeBase, log: ToolLog) -> Any:
        with log("retrieve", retriever=kind) as detail:
            documents = await retriever.ainvoke(tool_input.query)
            detail["hits"] = len(documents)
        return documents

    return _as_function_tool(
        name, options.get("description") or f"LangChain retriever {kind}", Search, run, options
    )


def as_tool(tool: Any, intents: Iterable[str]) -> Tool:
    """Return a tool unchanged, or make one of a LangChain tool or a function.

    Raises:
        ToolError: it is none of these; said at once, since it would break every later run.
    """
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

    if isinstance(tool, BaseTool):
        return _from_langchain(tool, intents)
    if isinstance(tool, BaseRetriever):
        raise ToolError(
            f"{type(tool).__name__} is a retriever. Use register_retriever(NAME, retriever)."
        )
    if inspect.isfunction(tool):
        return from_function(tool, intents=intents)
    missing = [
        name for name, kind in _PORT.items() if not isinstance(getattr(tool, name, None), kind)
    ]
    schemas = [name for name in ("input_schema", "output_schema") if name not in missing]
    missing += [name for name in schemas if not issubclass(getattr(tool, name), BaseModel)]
    if missing or not callable(tool):
        raise ToolError(
            f"{shown(tool)} is no tool: it has no valid {', '.join(missing) or '__call__'}. Give a function with "
            "annotated parameters, a LangChain tool, or an object with everything that the Tool port asks for."
        )
    return tool


def _from_langchain(tool: BaseTool, intents: Iterable[str]) -> FunctionTool:
    schema = tool.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        raise ToolError(
            f"Tool {tool.name!r} has no pydantic args_schema. Wrap it in a function with annotated parameters."
        )

    async def run(tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog) -> Any:
        with log("langchain tool", tool=tool.name):
            returned = await tool.ainvoke(tool_input.model_dump())
        return [returned] if isinstance(returned, str) else returned

    name = re.sub(r"\W+", "_", tool.name).lower()
    return _as_function_tool(
        name,
        tool.description or f"LangChain tool {tool.name}",
        schema,
        run,
        ToolOptions(intents=intents),
    )


def _as_function_tool(
    name: str,
    description: str,
    schema: type[BaseModel],
    run: Callable[..., Any],
    options: ToolOptions,
) -> FunctionTool:
    """Return the tool whose function returns what ``run`` returns in our shape."""
    intents = frozenset(options.get("intents", ()))
    if intents and "query" not in schema.model_fields:
        raise ToolError(
            f"Tool {name!r} is planned for {sorted(intents)}, so it needs a parameter `query: str`."
        )

    async def search(tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog) -> Json:
        return normalise(name, await run(tool_input, knowledge, log), tool_input, knowledge)

    update_wrapper(search, run, ())
    fields: Json = {**options, "description": description, "intents": intents}
    return FunctionTool(name=name, function=search, input_schema=schema, **fields)


def normalise(name: str, returned: Any, tool_input: BaseModel, knowledge: KnowledgeBase) -> Json:
    """Return what a function returned as an output: results ranked, at most ``top_k``.

    Raises:
        ToolError: names the result that cannot be taken, and what can.
    """
    extra = dict(returned) if isinstance(returned, Mapping) and "results" in returned else {}
    items = extra.pop("results", returned)
    # a DataFrame; iterated, it gives its column names
    if hasattr(items, "to_dict") and hasattr(items, "columns"):
        items = items.to_dict("records")
    if isinstance(items, (str, bytes, Mapping, BaseModel)) or not isinstance(items, Iterable):
        raise ToolError(
            f"{name} returned {type(items).__name__}. Return a list of strings, dicts or Documents, a DataFrame, "
            "or a dict with one of these under 'results'."
        )
    # a set has no order of its own
    items = sorted(items, key=repr) if isinstance(items, Set) else list(items)
    if len(items) > MAX_RESULTS:
        raise ToolError(
            f"{name} returned more than {MAX_RESULTS:,} results. Return the best of them."
        )
    texts = [value for _, value in tool_input if isinstance(value, str)]
    question = Question.read(str(getattr(tool_input, "query", " ".join(texts))), knowledge)
    results = [_result(name, place, item, question) for place, item in enumerate(items, start=1)]
    best = ranked(results, getattr(tool_input, "top_k", len(results)))
    return {"candidates": titles(best), **extra, "results": best}


MAX_RESULTS = 100_000
"""Results that a function may return, or an iterator give, before ``top_k`` are taken."""


class _Row(BaseModel, extra="allow"):
    """The fields of a result that are read by name; all others become metadata."""

    evidence: str = Field(validation_alias=AliasChoices(*_TEXT), pattern=r"\S")
    score: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    source_type: SourceType = "chunk"
    granularity: Granularity = "low_level"
    metadata: Json | None = None


def _result(name: str, place: int, item: Any, question: Question) -> RetrievalResult:
    """Return one result in our shape."""
    at = f"{name}: result {place}"
    fields = item._asdict() if hasattr(item, "_asdict") else item
    try:
        row = plain({"evidence": fields} if isinstance(fields, str) else fields)
    except ToolError as error:
        raise ToolError(f"{at}: {error}") from None
    if not isinstance(row, dict):
        raise ToolError(f"{at} is a {type(item).__name__}. Give a string, a dict or a Document.")
    if row.get("score") is None and isinstance(fields, Mapping):
        row["score"] = fields.get("score")  # what is not a number is no missing score
    if isinstance(row.get("score"), bool):
        row["score"] = str(row["score"])  # nor is a yes a probability
    try:
        parsed = _Row.model_validate(row)
    except ValidationError as error:
        fault = error.errors()[0]
        field = str(fault["loc"][0])
        what = "no text" if field in _TEXT else f"the {field} {shown(fault['input'])}"
        raise ToolError(
            f"{at} has {what}: {fault['msg']}. Give a non-empty 'text' and, where it is known, "
            "a 'score', the probability that it is relevant, 0 to 1; else it is estimated from the text."
        ) from None
    extra = parsed.model_extra or {}
    metadata = {**(parsed.metadata or {}), **extra}
    ids = [row[key] for row in (extra, metadata) for key in _ID if row.get(key)]
    source_id = str(ids[0]) if ids else text_digest(parsed.evidence, 16)
    blank = {"doc_id": source_id.partition("#")[0], "title": "", "url": "", "licence": ""}
    metadata = drop({**blank, **metadata}, *_OURS)
    metadata["title"] = title = str(metadata["title"] or metadata.get("source", ""))
    score = parsed.score
    if score is None:
        score = question.judge(
            "keyword_search", parsed.evidence, title, str(metadata["doc_id"]), bm25=1 / place
        )
    kinds = {"source_type": parsed.source_type, "granularity": parsed.granularity}
    result = make_evidence(
        source_id, parsed.evidence, score, name, question.knowledge.name, **kinds, place=place
    )
    return {**result, "metadata": {**metadata, **result["metadata"]}}


def _parameters(name: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError) as error:
        raise ToolError(
            f"Tool {name!r}: its signature cannot be read ({error}). Annotate with importable types."
        ) from None
    return dict(signature.parameters)


def _input_schema(name: str, parameters: Mapping[str, inspect.Parameter]) -> type[BaseModel]:
    fields: Json = {}
    for parameter in parameters.values():
        if parameter.name in _HANDED_IN:
            continue
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise ToolError(
                f"Tool {name!r}: parameter {parameter} cannot be a field of a form. Name each input."
            )
        if parameter.annotation is parameter.empty:
            raise ToolError(
                f"Tool {name!r}: parameter {parameter.name!r} needs an annotation, e.g. `: str`."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    fields.setdefault(
        "kb_prefix", (str | None, Field(None, description="The knowledge base; empty: the run's"))
    )
    return create_model(
        f"{name.title().replace('_', '')}Input", __config__=ConfigDict(extra="forbid"), **fields
    )
