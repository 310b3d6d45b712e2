"""``reflection``: whether what an earlier step found speaks of all that is asked; it searches nothing itself.

A plan gives it what a step found: ``{"found": {"$from": "step_0_search.results"}}``. What is missing stands in its log
and its output. Where ``WORKBENCH_REFLECTION_ALLOW_RETRY`` says so, the dispatcher does that step again, asking for what
is missing too, and what it had found before does not count any more.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from workbench.language.question import read
from workbench.parts.reports.validating import meant_by, validate
from workbench.ports import KnowledgeBase, ToolLog
from workbench.tools.tool import Found, FunctionTool, Search


class Input(Search):
    """What was found, by ``$from``."""

    found: list[dict[str, Any]] = Field(default_factory=list, description="Results of an earlier step, by $from")


class Output(Found):
    """What it speaks of; ``results`` stay empty: nothing new was found."""

    keywords: list[str] = Field(default_factory=list, description="What an answer must speak of")
    covered: list[str] = Field(default_factory=list, description="What it does")
    missing: list[str] = Field(default_factory=list, description="What it does not")
    coverage: float = Field(1.0, description="The share that is covered, 0 to 1")
    passed: bool = Field(True, description="Whether that is enough")


def reflection(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """Hold the evidence against the question."""
    with log("validate", pieces=len(tool_input.found)) as detail:
        told = [f"{one.get('metadata', {}).get('title') or ''}. {_said(one)}" for one in tool_input.found]
        reading = read(tool_input.query, [knowledge])
        said = validate(reading, "\n".join(told), meant_by(tool_input.query, knowledge))
        detail |= {"coverage": said["coverage"], "passed": said["passed"], "missing": said["missing"]}
        if not said["passed"]:
            detail["error"] = f"not covered: {', '.join(said['missing']) or 'nothing was found'}"
    return Output(**said)


def _said(result: dict[str, Any]) -> str:
    """The text of a result with the typed fields of its document."""
    fields = result.get("metadata", {}).get("fields") or {}
    values = (", ".join(map(str, v)) if isinstance(v, list) else str(v) for v in fields.values() if v not in (None, ""))
    return " ".join([str(result.get("evidence") or ""), *values])


TOOL = FunctionTool(
    name="reflection",
    description="Checks whether what an earlier step found speaks of all that is asked, and says what is missing.",
    input_schema=Input,
    output_schema=Output,
    function=reflection,
    calibration="Nothing is scored: coverage is the share of the question's names, conditions and words.",
)
