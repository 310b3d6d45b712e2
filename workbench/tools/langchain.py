"""The tools of a knowledge base as LangChain tools, for any agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.documents import Document
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field, create_model

from workbench.errors import KnowledgeError, ToolError, UnknownTool
from workbench.ports import KnowledgeBase, Tool
from workbench.records.prompts import fenced
from workbench.state import Data, Json
from workbench.tools.tool import StepLog, read_input

RESULTS = 8
"""How many results a tool returns unless its caller asks for more."""
LONGEST_DOCUMENT = 6_000
"""Characters of a document that ``open_document`` returns at once."""
_FOR_STEPS = ("results", "entities", "candidates")
"""What later steps of a plan read of an output; a model reads the passages."""
ToolResult = tuple[str, list[Document]]


def langchain_tools(tools: Mapping[str, Tool], base: KnowledgeBase, names: Sequence[str]) -> list[BaseTool]:
    """Return tools over a knowledge base, each with its own schema.

    A result is text for the model, each passage after its id in brackets, and as artifact LangChain documents with
    ``id``, ``doc_id``, ``title`` and ``score``.

    Args:
        tools: of the workspace, by name.
        base: what they search.
        names: which; ``open_document`` is one more.

    Raises:
        UnknownTool: lists the known ones.
    """
    if unknown := [name for name in names if name not in tools and name != "open_document"]:
        raise UnknownTool(unknown[0], [*tools, "open_document"])
    return [_open_document(base) if name == "open_document" else _search(tools[name], base) for name in names]


def _search(tool: Tool, base: KnowledgeBase) -> BaseTool:
    fields: Json = {
        name: (field.annotation, field)
        for name, field in tool.input_schema.model_fields.items()
        if name not in ("kb_prefix", "top_k")
    }
    if "top_k" in tool.input_schema.model_fields:
        fields["top_k"] = (int, Field(RESULTS, ge=1, le=50, description="How many results at most"))

    async def call(**values: Any) -> ToolResult:
        filled = {name: value for name, value in values.items() if value is not None}
        output = await tool(read_input(tool, filled), base, StepLog())
        return _as_text_and_documents(output.model_dump(mode="json"))

    return _structured(tool.name, tool.description, fields, call, base)


def _open_document(base: KnowledgeBase) -> BaseTool:
    fields: Json = {
        "document": (str, Field(min_length=1, description="The id of a document, or of one of its passages")),
        "start": (int, Field(0, ge=0, description="At which character to begin")),
    }

    async def call(document: str, start: int = 0) -> ToolResult:
        passages = base.passages(doc_ids=[document]) or base.passages(doc_ids=[document.rpartition("#")[0]])
        if not passages:
            raise ToolError(f"There is no document {document!r}. Give an id that a search returned.")
        text = "\n".join(passage["text"] for passage in passages)
        end = start + LONGEST_DOCUMENT
        more = f"\n({len(text) - end} characters follow: start={end}.)" if len(text) > end else ""
        results = [
            {"source_id": p["chunk_id"], "evidence": p["text"], "score": 1.0, "metadata": {**p, "text": ""}}
            for p in passages
        ]
        return fenced(f"{passages[0]['title']}\n{text[start:end]}{more}"), [as_document(result) for result in results]

    return _structured("open_document", "The whole text of a document.", fields, call, base)


def _structured(
    name: str, description: str, fields: Json, call: Callable[..., Coroutine[Any, Any, ToolResult]], base: KnowledgeBase
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
        args_schema=create_model(f"{name}_input", **fields),
        func=wait,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
        metadata={"corpus": base.fingerprint()},
    )


def _as_text_and_documents(output: Data) -> ToolResult:
    """Return an output as text and as documents: its results, and whatever else it has to say."""
    results = output.get("results", [])
    lines = [_passage(result) for result in results]
    more = [f"{name}: {_text(value)}" for name, value in output.items() if name not in _FOR_STEPS and value]
    text = fenced("\n\n".join([*more, *lines]))
    return text or "Nothing was found.", [as_document(result) for result in results]


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _passage(result: Data) -> str:
    about = result.get("metadata") or {}
    fields = "; ".join(f"{name}: {_text(value)}" for name, value in (about.get("fields") or {}).items() if value)
    title = f"{about.get('title') or ''} ({fields})" if fields else about.get("title") or ""
    return f"[{_id(result)}] {title}\n{result['evidence']}"


def _id(result: Data) -> str:
    """Return what a passage is called everywhere, or the id of an entity, relation or community."""
    return str(result["source_id"] if result.get("source_type", "chunk") == "chunk" else result["result_id"])


def as_document(result: Data) -> Document:
    """Return a result as a LangChain document, with its id, document, title and score."""
    about = result.get("metadata") or {}
    known_fields = {name: about[name] for name in ("doc_id", "title", "url", "fields") if about.get(name)}
    return Document(result["evidence"], id=_id(result), metadata={**known_fields, "score": float(result["score"])})
