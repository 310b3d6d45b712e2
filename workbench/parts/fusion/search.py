"""``fusion_search``: the whole fusion graph as a step of a plan, with its retries; what ``wb.fusion`` plans.

Inside a run the graph keeps its checkpoints among the run's, so a run that was killed continues at its unfinished node.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.runtime import get_runtime
from pydantic import Field

from workbench.parts.fusion.canvas_work import (
    Operation,
    choose_base,
    known_operation,
    read_question,
)
from workbench.parts.fusion.graph import (
    FusionInput,
    FusionOptions,
    build_fusion,
    fusion_options,
    read_config,
)
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.ports import Context, KnowledgeBase, SystemClock, ToolLog
from workbench.runs.run import Run
from workbench.runs.stored import Recording
from workbench.settings import default_settings
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
        self.settings = default_settings()

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
    config = {"configurable": {**options, "kb_prefix": knowledge.name}}
    alone = _Alone(knowledge)
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
        step = SubStep(
            name=line["node"],
            offset_ms=round(offset, 3),
            duration_ms=line["duration_ms"],
            detail=detail,
        )
        log.sub_steps.append(step)
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
    figures = {
        name: value for name, value in output.items() if name not in ("entities", "candidates")
    }
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
