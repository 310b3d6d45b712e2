"""Other people's functions and retrievers as tools of ours: a form from the signature, evidence from what returns."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from workbench.errors import ToolError, shown
from workbench.ports import KnowledgeBase, Tool, ToolLog
from workbench.state import RetrievalResult
from workbench.text import clean
from workbench.tools.evidence import ranked, titles
from workbench.tools.scoring import Question
from workbench.tools.tool import Found, FunctionTool, Search, contained, plain

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool


CALIBRATION = (
    "A score that it gives is taken as a probability; without one, the text is judged by keyword_search's model, "
    "from the share of the question's words that it holds and its place in the list."
)
_HANDED_IN = ("knowledge", "log")
_TEXT, _ID = ("evidence", "text", "page_content", "content"), ("source_id", "chunk_id", "id", "doc_id")
_OURS = ("result_id", "source_id", "chunk_id", "id")
_PORT = {
    "name": str,
    "description": str,
    "input_schema": type,
    "output_schema": type,
    "parallel": bool,
    "calibration": str,
    "intents": Set,
}
SourceType = Literal["chunk", "entity", "relationship", "community"]
Granularity = Literal["low_level", "high_level", "community"]


def from_function(
    function: Callable[..., Any],
    *,
    name: str = "",
    description: str = "",
    intents: Iterable[str] = (),
    parallel: bool = True,
    calibration: str = "",
    output_schema: type[BaseModel] | None = None,
) -> FunctionTool:
    """A tool of a plain or async function.

    It returns a list of strings, dicts (``evidence`` or ``text``; optionally ``score`` 0..1, ``source_id``, ``title``,
    ...) or LangChain ``Document``s; or a mapping with such a list under ``results`` and whatever else its output schema
    has.

    Raises:
        ToolError: the signature cannot be turned into a form, or the description is missing.
    """
    name = name or function.__name__
    described = description or (inspect.getdoc(function) or "").partition("\n")[0]
    if not described:
        raise ToolError(f"Tool {name!r} needs a description: give description=... or a docstring.")
    parameters = _parameters(name, function)
    handed_in = [p for p in _HANDED_IN if p in parameters]
    schema = _input_schema(name, parameters)
    if intents and "query" not in schema.model_fields:
        raise ToolError(f"Tool {name!r} is planned for {sorted(intents)}, so it needs a parameter `query: str`.")

    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

    async def run(tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog) -> dict[str, Any]:
        given = {field: getattr(tool_input, field) for field in schema.model_fields if field in parameters}
        given |= {p: {"knowledge": knowledge, "log": log}[p] for p in handed_in}

        def call() -> Any:
            with contained(name):
                returned = function(**given)
                return list(islice(returned, MOST + 1)) if isinstance(returned, Iterator) else returned

        returned = function(**given) if is_async else await asyncio.to_thread(call)
        if inspect.isawaitable(returned):
            returned = await returned
        if isinstance(returned, AsyncIterable):
            returned = [item async for item in returned]
        return normalise(name, returned, tool_input, knowledge)

    return FunctionTool(
        name=name,
        description=described,
        input_schema=schema,
        output_schema=output_schema or Found,
        function=run,
        parallel=parallel,
        calibration=calibration or CALIBRATION,
        intents=frozenset(intents),
    )


def from_retriever(
    name: str, retriever: BaseRetriever, *, description: str = "", intents: Iterable[str] = (), parallel: bool = True
) -> FunctionTool:
    """A tool of any LangChain retriever.

    Raises:
        ToolError: the object is no retriever.
    """
    from langchain_core.retrievers import BaseRetriever

    if not isinstance(retriever, BaseRetriever):
        raise ToolError(
            f"Tool {name!r}: {type(retriever).__name__} is no LangChain BaseRetriever. "
            "For a vector store call .as_retriever(); for a function use @registry.tool."
        )

    async def run(tool_input: Search, knowledge: KnowledgeBase, log: ToolLog) -> dict[str, Any]:
        with log("retrieve", retriever=type(retriever).__name__) as detail:
            documents = await retriever.ainvoke(tool_input.query)
            detail["hits"] = len(documents)
        return normalise(name, documents, tool_input, knowledge)

    return FunctionTool(
        name=name,
        description=description or f"LangChain retriever {type(retriever).__name__}",
        input_schema=Search,
        output_schema=Found,
        function=run,
        parallel=parallel,
        calibration=CALIBRATION,
        intents=frozenset(intents),
    )


def as_tool(given: Any, intents: Iterable[str] = ()) -> Tool:
    """What was given as a tool of ours: as it is, or made of a LangChain tool or a function.

    Raises:
        ToolError: it is none of these; said at once, since it would break every later run.
    """
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

    if isinstance(given, BaseTool):
        return _from_langchain(given, intents)
    if isinstance(given, BaseRetriever):
        raise ToolError(f"{type(given).__name__} is a retriever. Use register_retriever(NAME, retriever).")
    if inspect.isfunction(given):
        return from_function(given, intents=intents)
    lacks = [name for name, kind in _PORT.items() if not isinstance(getattr(given, name, None), kind)]
    lacks += [
        n for n in ("input_schema", "output_schema") if n not in lacks and not issubclass(getattr(given, n), BaseModel)
    ]
    if lacks or not callable(given):
        raise ToolError(
            f"{shown(given)} is no tool: it has no valid {', '.join(lacks) or '__call__'}. Give a function with "
            "annotated parameters, a LangChain tool, or an object with everything that the Tool port asks for."
        )
    return given


def _from_langchain(tool: BaseTool, intents: Iterable[str]) -> FunctionTool:
    schema = tool.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        raise ToolError(
            f"Tool {tool.name!r} has no pydantic args_schema. Wrap it in a function with annotated parameters."
        )
    if intents and "query" not in schema.model_fields:
        raise ToolError(f"Tool {tool.name!r} is planned for {sorted(intents)}, so it needs an input `query: str`.")
    name = re.sub(r"\W+", "_", tool.name).lower()

    async def run(tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog) -> dict[str, Any]:
        with log("langchain tool", tool=tool.name):
            returned = await tool.ainvoke(tool_input.model_dump())
        return normalise(name, [returned] if isinstance(returned, str) else returned, tool_input, knowledge)

    return FunctionTool(
        name=name,
        description=tool.description or f"LangChain tool {tool.name}",
        input_schema=schema,
        output_schema=Found,
        function=run,
        calibration=CALIBRATION,
        intents=frozenset(intents),
    )


def normalise(name: str, returned: Any, tool_input: BaseModel, knowledge: KnowledgeBase) -> dict[str, Any]:
    """What a function returned as an output: results ranked, at most ``top_k``.

    Raises:
        ToolError: names the result that cannot be taken, and what can.
    """
    extra = dict(returned) if isinstance(returned, Mapping) and "results" in returned else {}
    items = extra.pop("results", returned)
    if hasattr(items, "to_dict") and hasattr(items, "columns"):  # a DataFrame; iterated, it gives its column names
        items = items.to_dict("records")
    if isinstance(items, (str, bytes, Mapping, BaseModel)) or not isinstance(items, Iterable):
        raise ToolError(
            f"{name} returned {type(items).__name__}. Return a list of strings, dicts or Documents, a DataFrame, "
            "or a dict with one of these under 'results'."
        )
    items = sorted(items, key=repr) if isinstance(items, Set) else list(items)  # a set has no order of its own
    if len(items) > MOST:
        raise ToolError(f"{name} returned more than {MOST:,} results. Return the best of them.")
    asked = [value for _, value in tool_input if isinstance(value, str)]
    question = Question.of(str(getattr(tool_input, "query", " ".join(asked))), knowledge)
    results = [_result(name, place, item, question) for place, item in enumerate(items, start=1)]
    kept = ranked(results, getattr(tool_input, "top_k", len(results)))
    return {"candidates": titles(kept), **extra, "results": kept}


MOST = 100_000
"""Results that a function may return, or an iterator give, before ``top_k`` are taken."""


def _result(name: str, place: int, item: Any, question: Question) -> RetrievalResult:
    """One result in our shape: what is known by name is read, everything else becomes metadata."""
    found = _as_dict(name, place, item)
    told = found.pop("metadata", {}) or {}
    if not isinstance(told, Mapping):
        raise ToolError(f"{name}: result {place} has metadata that is a {type(told).__name__}. Give a dict.")
    text = next((found.pop(key) for key in _TEXT if key in found), None)
    if not isinstance(text, str) or not text.strip():
        given = "" if text is None else f" but a {type(text).__name__}"
        raise ToolError(
            f"{name}: result {place} has no text{given}. Give a non-empty string under 'evidence' or 'text'."
        )
    text = clean(str(text))  # numpy's strings are no plain ones
    ids = [given[key] for given in (found, told) for key in _ID if given.get(key)]
    source_id = clean(str(ids[0])) if ids else hashlib.sha256(text.encode()).hexdigest()[:16]
    score = _score(name, place, found.pop("score", None))
    source_type = _one_of(name, place, "source_type", found.pop("source_type", "chunk"), SourceType)
    granularity = _one_of(name, place, "granularity", found.pop("granularity", "low_level"), Granularity)
    metadata = {"doc_id": source_id.partition("#")[0], "title": "", "url": "", "licence": "", **told, **found}
    try:
        metadata = plain({key: value for key, value in metadata.items() if key not in _OURS})
    except ToolError as error:
        raise ToolError(f"{name}: result {place}: {error}") from None
    metadata["title"] = str(metadata["title"] or metadata.get("source", ""))
    if score is None:
        score = question.judge("keyword_search", text, metadata["title"], str(metadata["doc_id"]), bm25=1 / place)
    return RetrievalResult(
        result_id=f"{granularity}:{source_id}",
        source_id=source_id,
        source_type=source_type,
        granularity=granularity,
        score=round(score, 6),
        evidence=text,
        metadata={**metadata, "kb_prefix": question.knowledge.name, "tools": [name], "place": place},
    )


def _one_of(name: str, place: int, key: str, value: Any, kinds: Any) -> Any:
    known = get_args(kinds)
    if value not in known:
        raise ToolError(f"{name}: result {place} has the {key} {value!r}. Known: {', '.join(known)}.")
    return value


def _as_dict(name: str, place: int, item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"evidence": item}
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, BaseModel):
        return item.model_dump()
    if is_dataclass(item) and not isinstance(item, type):
        return asdict(item)
    if isinstance(item, tuple) and hasattr(item, "_asdict"):
        return dict(item._asdict())
    if hasattr(item, "page_content") and hasattr(item, "metadata"):
        return {
            "evidence": item.page_content,
            "metadata": dict(item.metadata or {}),
            **({"id": item.id} if item.id else {}),
        }
    raise ToolError(f"{name}: result {place} is a {type(item).__name__}. Give a string, a dict or a Document.")


def _score(name: str, place: int, score: Any) -> float | None:
    if score is None:
        return None
    number = float("nan")
    if not isinstance(score, (bool, str, bytes)) and str(getattr(score, "dtype", "")) != "bool":
        with suppress(TypeError, ValueError, OverflowError):
            number = float(score)  # numpy's and decimal's numbers too
    if not 0 <= number <= 1:
        raise ToolError(
            f"{name}: result {place} has the score {shown(score)}. "
            "Give the probability that it is relevant, 0 to 1, or no score: then it is estimated from the text."
        )
    return number


def _parameters(name: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError) as error:
        raise ToolError(
            f"Tool {name!r}: its signature cannot be read ({error}). Annotate with importable types."
        ) from None
    return dict(signature.parameters)


def _input_schema(name: str, parameters: Mapping[str, inspect.Parameter]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.name in _HANDED_IN:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolError(f"Tool {name!r}: parameter {parameter} cannot be a field of a form. Name each input.")
        if parameter.annotation is parameter.empty:
            raise ToolError(f"Tool {name!r}: parameter {parameter.name!r} needs an annotation, e.g. `: str`.")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    fields.setdefault("kb_prefix", (str | None, Field(None, description="The knowledge base; empty: the run's")))
    return create_model(f"{name.title().replace('_', '')}Input", __config__=ConfigDict(extra="forbid"), **fields)
