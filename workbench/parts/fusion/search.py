"""``fusion_search``: the whole fusion graph as a step of a plan, with its retries; what ``wb.fusion`` plans.

Inside a run the graph keeps its checkpoints among the run's, so a run that was killed continues at its unfinished node.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, cast

from langgraph.runtime import get_runtime
from pydantic import Field

from workbench.parts.fusion.canvas_question import Operation
from workbench.parts.fusion.graph import FusionInput, FusionOptions, build_fusion
from workbench.ports import Context, KnowledgeBase, ToolLog
from workbench.records.lease import SystemClock
from workbench.state import Json, SubStep
from workbench.tools.evidence import titles
from workbench.tools.tool import FunctionTool, Search, ToolOutput


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


class _Alone:
    """The ports of the graph where no run brings its own."""

    def __init__(self, base: KnowledgeBase):
        self.base = base
        self.searched = self
        self.clock = SystemClock()

    def names(self) -> list[str]:
        return [self.base.name]

    def get(self, name: str) -> KnowledgeBase:
        return self.base


@cache
def _graph() -> Any:
    return build_fusion().compile()


async def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """Both sources at once, fused, reranked, judged, and asked again for what is missing; the best pass."""
    question = {name: value for name, value in tool_input if name in FusionInput.__annotations__}
    options = {name: value for name, value in tool_input if name not in question}
    config: Any = {"configurable": {**options, "kb_prefix": knowledge.name}}
    alone = cast(Any, _Alone(knowledge))
    run = _context()
    # the base as of the date that the run asks
    ports = replace(run, corpora=alone) if run else alone
    state = await _graph().ainvoke(
        {**question, "session_id": "", "messages": []}, config, context=ports
    )
    began = min(datetime.fromisoformat(line["at"]) for line in state["log"])
    for line in state["log"]:
        offset = (datetime.fromisoformat(line["at"]) - began).total_seconds() * 1000
        detail = {
            name: value
            for name, value in line.items()
            if name not in ("node", "at", "duration_ms")
        }
        took = round(offset, 3), line["duration_ms"]
        log.sub_steps.append(
            SubStep(name=line["node"], offset_ms=took[0], duration_ms=took[1], detail=detail)
        )
    return Output(
        results=state["reranked_results"],
        candidates=titles(state["reranked_results"]),
        best_pass=state["best"]["retry_count"] + 1,
        **{
            name: state[name]
            for name in ("quality_score", "retry_count", "best_effort", "passes")
        },
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
