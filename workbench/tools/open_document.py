"""``open_document``: the passages of one document, in their order."""

from __future__ import annotations

from pydantic import Field

from workbench.errors import ToolError
from workbench.plans import Frozen
from workbench.ports import KnowledgeBase, ToolLog
from workbench.tools import evidence
from workbench.tools.tool import FunctionTool, ToolOutput


class OpenDocumentInput(Frozen):
    """The input of ``open_document``."""

    document: str = Field(min_length=1)
    """The title or id of a document, or the id of one of its passages"""
    start: int = Field(0, ge=0)
    """At which passage to begin"""
    kb_prefix: str | None = None
    """The knowledge base; empty: the one of the run"""


class OpenDocumentOutput(ToolOutput):
    """The output of ``open_document``."""

    more: str = ""
    """Where to begin next, when passages follow"""


def search(
    tool_input: OpenDocumentInput, knowledge: KnowledgeBase, log: ToolLog
) -> OpenDocumentOutput:
    """Return passages of the document from ``start`` on, at least one."""
    name = tool_input.document
    entity = knowledge.entity(name)
    ids = [name, evidence.document_id(name), entity["doc_id"] if entity else ""]
    with log("open") as detail:
        passages = next(
            filter(None, (knowledge.passages(doc_ids=[doc_id]) for doc_id in ids if doc_id)), []
        )
        detail["passages"] = len(passages)
    if not passages:
        raise ToolError(
            f"There is no document {name!r}. Give a title or an id that a search returned."
        )
    # Characters of a document that are returned at once.
    left = 6_000
    shown = passages[tool_input.start : tool_input.start + 1]
    for passage in passages[tool_input.start + 1 :]:
        left -= len(passage["text"])
        if left < len(shown[0]["text"]):
            break
        shown.append(passage)
    end = tool_input.start + len(shown)
    more = f"{len(passages) - end} passages follow: start={end}" if end < len(passages) else ""
    # The score of a passage that nothing was compared with.
    results = [dict(evidence.chunk(passage, 0.5, TOOL.name, knowledge.name)) for passage in shown]
    return OpenDocumentOutput(results=results, candidates=[passages[0]["title"]], more=more)


TOOL = FunctionTool(
    name="open_document",
    description="A whole document, passage by passage, by its title or id.",
    input_schema=OpenDocumentInput,
    output_schema=OpenDocumentOutput,
    function=search,
)
