"""The plan as a graph in SVG, and what an edited plan will take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from workbench.plans import ENDED_WELL, Plan, PlanStep
from workbench.state import Data, ExecutionRecord, Json
from workbench.views.drawing import Body, Box, Drawing, Line, network, sheet
from workbench.views.labels import SIGNS, Labels, labels_for, reason_text, seconds_text
from workbench.views.markup import Picture, draw, family
from workbench.views.plan import PlanView, step_titles

_DASHED = ("recorded", "proposed")


def plan_graph(view: PlanView) -> Picture:
    """Return the graph of a plan, whose boxes can be chosen, with a legend."""
    body = _body(view)
    return Picture(draw("plan.graph", view.labels, body=body, legend=view.legend()), body.rows)


def dag(
    plan: Plan, records: Iterable[ExecutionRecord] = (), words: Mapping[str, str] = {}
) -> Drawing:
    """Draw the plan downwards: one box per step with its status and findings, the critical path heavy.

    Args:
        plan: the plan.
        records: of its steps.
        words: the question's own words for what is searched (``words_asked``).
    """
    labels = labels_for(plan.problem_statement)
    view = PlanView(plan, labels, step_titles(plan, asked=words), list(records))
    rows = list(_rows(view))
    under = f"{labels('version', n=plan.version)} · {labels('steps', n=len(rows))}"
    return sheet(rows, _body(view), plan.problem_statement, under, view.legend())


def _rows(view: PlanView) -> Iterator[Json]:
    """Yield one row per step: how it went, and whether it is critical."""
    critical = {end for edge in view.critical for end in edge}
    for step in view.plan.steps:
        record: Data = view.last.get(step.step_id) or {"status": "pending"}
        yield {
            **step.model_dump(include={"step_id", "objective", "tool", "condition"}),
            "depends_on": step.dependencies(),
            **{name: record.get(name) for name in ("status", "duration_ms", "error")},
            "replayed": bool(record.get("replayed")),
            "attempts": record.get("attempt", 0),
            "evidence_count": record.get("output_summary", {}).get("evidence_count"),
            "critical": step.step_id in critical,
        }


def _body(view: PlanView) -> Body:
    boxes = {step.step_id: _box(view, step) for step in view.plan.steps}
    return network(boxes, [Line(*edge, view.look(edge)) for edge in view.edges])


def _box(view: PlanView, step: PlanStep) -> Box:
    labels = view.labels
    status = view.status(step)
    record = view.last.get(step.step_id)
    fact = " · ".join(view.facts(step)[: 1 + (status in ENDED_WELL)])
    sign = SIGNS.get(status, "·")
    shown = f"{sign} {view.word(step)}"
    under = shown if fact in shown else f"{shown} · {fact}"
    title = [step.step_id, step.tool, step.objective[:300], shown, fact]
    title += [reason_text(record, labels)] if record and record["error"] else []
    ink = family(status)
    dashed = status in _DASHED
    return Box(
        view.titles[step.step_id],
        f"{sign} {fact}" if status == "success" else under,
        "\n".join(title),
        ink,
        "done-tint" if ink == "done" and not dashed else "ground",
        border=4 if status == "invalid" else 1.5,
        dashed=dashed,
        chosen=step.step_id == view.chosen,
    )


# an edited plan


def count_changes(changes: Data) -> int:
    """Return the number of changes in a ``Draft``."""
    fields = sum(map(len, changes["changed"].values()))
    return len(changes["added"]) + len(changes["removed"]) + fields


def forecast_text(forecast: Data, labels: Labels) -> str:
    """Return how many steps of a plan will run (``fork.Forecast``), and how long they are expected to take."""
    seconds = forecast["seconds"]
    tokens = forecast.get("tokens")
    basis = forecast["basis"]
    running = sum(row["runs"] for row in forecast["steps"])
    if not running:
        text = labels("plan_nothing_anew")
    else:
        spans = {name: seconds_text(span) for name, span in seconds.items()}
        expected = (
            labels("plan_forecast", **spans, n=basis) if basis else labels("plan_no_forecast")
        )
        text = labels("plan_runs", n=running) + expected
    return text + (labels("plan_tokens", n=f"{tokens:,}") if tokens else "")
