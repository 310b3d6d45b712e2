"""The tools of a knowledge base as LangChain tools, for any agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field, create_model

from workbench.errors import KnowledgeError, ToolError, UnknownTool
from workbench.models.chat import untitled
from workbench.ports import KnowledgeBase, Tool
from workbench.records.prompts import fenced
from workbench.state import Data, Json, without_none
from workbench.text import joined_values
from workbench.tools.evidence import passage_id
from workbench.tools.tool import StepLog, read_input

RESULTS = 8
"""How many results a tool returns unless its caller asks for more."""
_FOR_STEPS = ("results", "entities", "candidates")
"""What later steps of a plan read of an output; a model reads the passages."""
ToolResult = tuple[str, list[Document]]


def langchain_tools(
    tools: Mapping[str, Tool], base: KnowledgeBase, names: Sequence[str]
) -> list[BaseTool]:
    """Return tools over a knowledge base, each with its own schema.

    A result is text for the model, each passage after its id in brackets, and as artifact LangChain documents with
    ``id``, ``doc_id``, ``title`` and ``score``.

    Args:
        tools: of the workspace, by name.
        base: what they search.
        names: which.

    Raises:
        UnknownTool: lists the known ones.
    """
    if unknown := [name for name in names if name not in tools]:
        raise UnknownTool(unknown[0], tools)
    return [_as_langchain(tools[name], base) for name in names]


def model_input(tool: Tool, bases: Sequence[KnowledgeBase]) -> type[BaseModel]:
    """Return a tool's input as a model fills it in: few results by default, and a base where there are several.

    Where no base has typed fields there are no conditions on them.
    """
    without = ["kb_prefix", "top_k"] + (
        [] if any(base.about()["fields"] for base in bases) else ["conditions"]
    )
    fields: Json = {
        name: (field.annotation, field)
        for name, field in tool.input_schema.model_fields.items()
        if name not in without
    }
    if "top_k" in tool.input_schema.model_fields:
        fields["top_k"] = (
            int,
            Field(RESULTS, ge=1, le=50, description="How many results at most"),
        )
    if len(bases) > 1:
        one_of = Literal
        names = [base.name for base in bases]
        fields["kb_prefix"] = (
            one_of[tuple(names)],
            Field(names[0], description="The knowledge base"),
        )
    return create_model(f"{tool.name}_input", **fields)


def as_function(tool: Tool, schema: type[BaseModel]) -> Json:
    """Return a tool as servers of OpenAI's kind take it."""
    parameters = untitled(schema.model_json_schema())
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _as_langchain(tool: Tool, base: KnowledgeBase) -> BaseTool:
    async def call(**values: Any) -> ToolResult:
        filled = without_none(values)
        output = await tool(read_input(tool, filled), base, StepLog())
        data = output.model_dump(mode="json")
        return result_text(data), [as_document(result) for result in data.get("results", [])]

    return _structured(tool.name, tool.description, model_input(tool, [base]), call, base)


def _structured(
    name: str,
    description: str,
    schema: type[BaseModel],
    call: Callable[..., Coroutine[Any, Any, ToolResult]],
    base: KnowledgeBase,
) -> BaseTool:
    async def acall(**values: Any) -> ToolResult:
        try:
            return await call(**values)
        except (ToolError, KnowledgeError) as error:
            raise ToolException(str(error)) from error  # a model reads it, and asks again

    def wait(**values: Any) -> ToolResult:
        with ThreadPoolExecutor(1) as thread:  # the caller's may have a running loop
            return thread.submit(asyncio.run, acall(**values)).result()

    return StructuredTool(
        name=name,
        description=description,
        args_schema=schema,
        func=wait,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
        metadata={"corpus": base.fingerprint()},
    )


def result_text(output: Data, shown: Collection[str] = ()) -> str:
    """Return an output as a model reads it: its results, but for the text of ``shown`` ones, and what else it says."""
    lines = [
        _passage(result, result["result_id"] in shown) for result in output.get("results", [])
    ]
    more = [
        f"{name}: {joined_values(value)}"
        for name, value in output.items()
        if name not in _FOR_STEPS and value
    ]
    return fenced("\n\n".join([*more, *lines])) or "Nothing was found."


def _short(value: Any) -> str:
    """Return a field's value; of a long list its beginning and how many there are."""
    if isinstance(value, list) and len(value) > RESULTS:
        return f"{joined_values(value[:RESULTS])}, … ({len(value)} in all)"
    return joined_values(value)


def _passage(result: Data, is_shown: bool) -> str:
    about = result.get("metadata") or {}
    fields = "; ".join(
        f"{name}: {_short(value)}" for name, value in (about.get("fields") or {}).items() if value
    )
    title = f"{about.get('title') or ''} ({fields})" if fields else about.get("title") or ""
    if is_shown:
        return f"[{passage_id(result)}] {about.get('title') or ''}: as above"
    return f"[{passage_id(result)}] {title}\n{result['evidence']}".rstrip()


def as_document(result: Data) -> Document:
    """Return a result as a LangChain document, with its id, document, title and score."""
    about = result.get("metadata") or {}
    known_fields = {
        name: about[name] for name in ("doc_id", "title", "url", "fields") if about.get(name)
    }
    return Document(
        result["evidence"],
        id=passage_id(result),
        metadata={**known_fields, "score": float(result["score"])},
    )
