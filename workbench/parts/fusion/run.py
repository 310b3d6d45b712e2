"""The fusion graph as a run: its plan of one step, and its outcome."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.runs.recording import Recording
    from workbench.runs.run import Run

TOOL = "fusion_search"


def _outcome(run: Recording) -> Json:
    """Return the outcome of the fusion graph, {} without one: ``quality_score``, ``retry_count``, ``best_pass``,
    ``best_effort``, the ``passes``, and the ``operation_results`` of a canvas."""
    last = next(
        (r for r in reversed(run.records) if r["tool"] == TOOL and r["raw_output_ref"]), None
    )
    if last is None or run.plan is None:
        return {}
    output = run._store.body(run.run_id, str(last["raw_output_ref"]))["output"]
    figures = {
        name: value for name, value in output.items() if name not in ("entities", "candidates")
    }
    return {**figures, "operation_results": run.plan.metadata.get("operation_results", [])}


outcome = property(_outcome)
"""``run.fusion``."""


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
        strategy: ``rrf``, ``weighted``, ``cascade``, ``zscore`` or ``percentile``; None for the setting, as below.
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
    from workbench.parts.fusion.canvas_question import (
        choose_base,
        known_operation,
        read_question,
    )
    from workbench.parts.fusion.graph import fusion_options, read_config

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
        tool=TOOL,
        tool_input={"query": question, **tool_input},
        budget=PlanBudget(
            timeout_s=settings.time_budget_s, max_retries=settings.step_max_retries
        ),
    )
    plan = Plan(problem_statement=question, steps=[step], metadata=about)
    arguments: Any = {"kb": kb, "plan": plan, "settings": {"max_iterations": 1}, **options}
    run: Run = (wb.ask if wait else wb.start)(question, **arguments)
    return run
