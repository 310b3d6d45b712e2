"""The plan as a graph in SVG, and what an edited plan changes against the one that was shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from workbench.plans import ENDED_WELL, Plan, PlanStep
from workbench.state import Data, ExecutionRecord, Json
from workbench.views.drawing import Body, Box, Drawing, Line, network, sheet
from workbench.views.labels import SIGNS, Labels, labels_for, milliseconds
from workbench.views.labels.sentences import reason_told
from workbench.views.outline import clipped, columns
from workbench.views.page import Picture, cut, draw, family
from workbench.views.plan import PlanView, seconds_told
from workbench.views.render import page_html

_DASHED = ("recorded", "proposed")
_SINCE = {"added_in": "+", "changed_in": "~"}


def plan_graph(view: PlanView) -> Picture:
    """Return the graph: edges, boxes that can be chosen, and what the lines mean."""
    picture = plan_body(view).picture(role="listbox", aria_label=view.labels("plan"))
    return Picture(draw("plan.graph", svg=picture.frame, legend=_legend(view)), picture.rows)


def dag(
    plan: Plan,
    records: Iterable[ExecutionRecord] = (),
    title: str = "",
    versions: Sequence[Plan] = (),
    running: Collection[str] = (),
) -> Drawing:
    """Draw the plan from left to right: a box per step with its status and what it found; the critical path is heavy.

    Args:
        plan: what is drawn.
        records: what its steps did.
        title: above it; else the question.
        versions: every version of the plan, oldest first.
        running: the steps that are at work.
    """
    labels = labels_for(plan.problem_statement)
    view = PlanView(plan, labels, list(records), live=dict.fromkeys(running, 0.0))
    rows = dag_rows(view, versions)
    known = {row["step_id"] for row in rows}
    removed = len({step.step_id for version in versions for step in version.steps} - known)
    facts = [labels("version", n=plan.version), labels("steps", n=len(rows))]
    facts += [labels("count_removed", n=removed)] if removed else []
    badges = {row["step_id"]: _badge(row) for row in rows}
    words = {_badge(row): labels(key, n=row[key]) for key in _SINCE for row in rows if row[key]}
    legend = [_legend(view), *(f"{badge} {word}" for badge, word in words.items())]
    heading = title or plan.problem_statement or labels("plan")
    return sheet(rows, plan_body(view, badges), heading, " · ".join(facts), "   ".join(legend).strip())


def dag_rows(view: PlanView, versions: Sequence[Plan] = ()) -> list[Json]:
    """Return one row per step: how it went, whether it is critical, and in which versions it was added or changed."""
    critical = {end for edge in view.critical for end in edge}
    added, changed = _history(view.plan, versions)
    rows = []
    for step in view.plan.steps:
        record: Data = view.last.get(step.step_id) or {}
        own = {key: getattr(step, key) for key in ("step_id", "objective", "tool", "condition")}
        row = {
            **own,
            "depends_on": step.dependencies(),
            "status": "running" if step.step_id in view.live else record.get("status", "pending"),
            "replayed": bool(record.get("replayed")),
            "attempts": record.get("attempt", 0),
            "duration_ms": record.get("duration_ms"),
            "evidence_count": record.get("output_summary", {}).get("evidence_count"),
            "error": record.get("error"),
            "critical": step.step_id in critical,
            "added_in": added.get(step.step_id),
            "changed_in": changed.get(step.step_id),
        }
        rows.append(row)
    return rows


def _history(plan: Plan, versions: Sequence[Plan]) -> tuple[dict[str, int], dict[str, int]]:
    """Step -> the version that added it, and the last that changed it; the steps of the first version have none."""
    added, changed = dict[str, int](), dict[str, int]()
    known = [*(version for version in versions if version.version < plan.version), plan]
    for before, after in pairwise(known):
        difference = before.diff(after)
        added |= dict.fromkeys(difference["added"], after.version)
        changed |= dict.fromkeys(difference["changed"], after.version)
    return added, changed


def _badge(row: Data) -> str:
    return next((f"{sign}v{row[key]}" for key, sign in _SINCE.items() if row[key]), "")


def plan_body(view: PlanView, badges: Mapping[str, str] | None = None) -> Body:
    """Draw the steps and who waits for whom; a badge is in the corner of its step."""
    boxes = {i: _box(view, step, (badges or {}).get(i, "")) for i, step in view.plan.by_id().items()}
    return network(boxes, [Line(*edge, view.look(edge)) for edge in view.edges])


def _box(view: PlanView, step: PlanStep, badge: str) -> Box:
    labels, status, record = view.labels, view.status(step), view.last.get(step.step_id)
    fact = view.facts(step)[0] if view.live.get(step.step_id) != 0 else ""
    if record and status in (*ENDED_WELL, "recorded"):
        found = labels("step_found", n=record["output_summary"].get("evidence_count", 0))
        fact = f"{found} · {milliseconds(record['duration_ms'])}"
    sign = f"{SIGNS.get(status, '·')} {view.word(step)}"
    title = [step.step_id, step.tool, step.objective[:300], sign, fact]
    title += [reason_told(record["error"], labels)] if record and record["error"] else []
    ink, dashed = family(status), status in _DASHED
    return Box(
        step.step_id,
        f"{sign} · {fact}" if fact else sign,
        "\n".join(title),
        ink,
        "done-tint" if ink == "done" and not dashed else "ground",
        border=4 if status == "invalid" else 1.5,
        dashed=dashed,
        badge=badge,
        chosen=step.step_id == view.chosen,
    )


def _legend(view: PlanView) -> str:
    recorded = any(view.status(step) == "recorded" for step in view.plan.steps)
    signs = (("━", "critical", view.critical), ("╌", "graph_cycle", view.cycle), ("┄", "step_recorded", recorded))
    return "   ".join(f"{sign} {view.labels(word)}" for sign, word, there in signs if there)


# what an edit changes


@dataclass(frozen=True)
class Changes:
    """What is different: steps, fields of steps by id as ``{field: [old, new]}``, whether the order is another."""

    version: int = 1
    added: Sequence[PlanStep] = ()
    removed: Sequence[PlanStep] = ()
    changed: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    moved: bool = False

    @property
    def count(self) -> int:
        """Return how many edits that is."""
        return len(self.added) + len(self.removed) + sum(map(len, self.changed.values())) + self.moved


def plan_changes(changes: Changes, labels: Labels) -> Markup:
    """Return a line a change; nothing where there is none."""
    if not changes.count:
        return Markup()
    rows = [
        (f"~ {labels('changed')}", step_id, "\n".join(fields_told(fields, labels)))
        for step_id, fields in changes.changed.items()
    ]
    for sign, kind, steps in (("+", "added", changes.added), ("−", "removed", changes.removed)):
        rows += [(f"{sign} {labels(kind)}", step.step_id, step.tool) for step in steps]
    rows += [(f"~ {labels('changed')}", labels("plan_order"), "")] if changes.moved else []
    table = clipped(labels("changes"), columns(labels, "change:change", "step", "changes"), rows)
    html = Markup(page_html([table], labels, "wb-worked"))
    return draw("plan.changes", labels, version=changes.version, table=html)


def plan_forecast(forecast: Data, valid: bool, labels: Labels) -> Markup:
    """How long it will take (``fork.Forecast``), in one line; the last word of it while the plan cannot be run."""
    seconds, tokens, said = forecast["seconds"], forecast.get("tokens"), labels("plan_nothing_anew")
    if any(row["runs"] for row in forecast["steps"]):
        said = labels("plan_no_forecast")
        if basis := forecast["basis"]:
            said = labels("plan_forecast", p50=seconds_told(seconds["p50"]), p90=seconds_told(seconds["p90"]), n=basis)
    if tokens is not None:
        said += labels("plan_tokens", n=f"{tokens:,}") if tokens else labels("plan_no_tokens")
    return draw("plan.forecast", told=said if valid else labels("plan_forecast_later", before=said))


def plan_faults(problems: Sequence[str], labels: Labels) -> Markup:
    """Return what is wrong with the plan as a whole."""
    return draw("plan.faults", labels, problems=problems) if problems else Markup()


def fields_told(fields: Mapping[str, Sequence[Any]], labels: Labels) -> Iterator[str]:
    """Yield what was edited in a step, one line per field; of its budget and of a tool's input only what differs."""
    for name, (old, new) in fields.items():
        pairs = {name: (old, new)}
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            pairs = {one: (old.get(one), new.get(one)) for one in dict.fromkeys([*old, *new])}
        for one, (before, after) in pairs.items():
            if before != after:
                yield f"{one}{labels('colon')}{_brief(before, labels)} → {_brief(after, labels)}"


def _brief(value: Any, labels: Labels) -> str:
    if value in (None, [], ""):
        return labels("plan_nothing")
    return cut(labels("comma").join(map(str, value)) if isinstance(value, list) else value)
