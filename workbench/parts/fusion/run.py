"""The fusion graph as a run: its plan of one step, and what the run tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.plans import Plan, PlanBudget, PlanStep

if TYPE_CHECKING:
    from workbench.runs.recording import Recording

TOOL = "fusion_search"


def fusion_plan(wb: Any, question: str, options: Mapping[str, Any], on: Mapping[str, Any], kb: Any) -> tuple[Plan, Any]:
    """The plan, and the base that is asked; what an operation finds on a canvas whose file is here stands with it.

    An explanation is what the run itself finds.
    """
    from workbench.parts.fusion.canvas_question import base_of, question_of
    from workbench.parts.fusion.graph import config_of, fusion_options, known_operation

    asked = config_of({"configurable": dict(options)}, **fusion_options(wb.settings)).model_dump(
        exclude={"kb_prefix", "graphiti_endpoint", "lancedb_path"}
    )
    about: dict[str, Any] = {"planner": "fusion"}
    if canvas := on["canvas_path"]:
        operation, nodes = known_operation(on["operation"]), on["target_nodes"]
        kb = base_of(wb.knowledge, canvas, [kb] if isinstance(kb, str) else kb or ())
        asks, _ = question_of(wb.knowledge.get(kb), canvas, operation, nodes)
        question, asked = question or asks, {**asked, **on}
        if operation != "explanation" and Path(canvas).expanduser().is_file():
            about["operation_results"] = list(wb.canvas(canvas).work(operation, nodes, kb).entries)
    budget = PlanBudget(timeout_s=wb.settings.time_budget_s, max_retries=wb.settings.step_max_retries)
    step = PlanStep(
        step_id="fusion", objective=question, tool=TOOL, tool_input={"query": question, **asked}, budget=budget
    )
    return Plan(problem_statement=question, steps=[step], metadata=about), kb


def told(run: Recording) -> dict[str, Any]:
    """See ``Recording.fusion``."""
    last = next((r for r in reversed(run.records) if r["tool"] == TOOL and r["raw_output_ref"]), None)
    if last is None or run.plan is None:
        return {}
    output = run._store.body(run.run_id, str(last["raw_output_ref"]))["output"]
    kept = {name: value for name, value in output.items() if name not in ("entities", "candidates")}
    return {**kept, "operation_results": run.plan.metadata.get("operation_results", [])}
