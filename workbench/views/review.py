"""Why a run asks: the question to decide, the signals against their thresholds, and what the proposal rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from markupsafe import Markup

from workbench.plans import ENDED_WELL, last_records, work_seconds, written
from workbench.records import proposals
from workbench.state import Data, Reflection
from workbench.views.labels import Labels
from workbench.views.outline import (
    claim_told,
    reflection_table,
    review_question,
    without_emphasis,
)
from workbench.views.page import NOTHING, Picture, cut, draw
from workbench.views.render import page_html

MOST_LISTED = 6
"""Names, waves, steps or sides that are written out; of the rest there is a count."""


def band(request: Data, labels: Labels, problems: int = 0) -> Picture:
    """Return the band above the decision: the question, and that there is time; or what is to be fixed first."""
    question = review_question(request, labels)
    return Picture(draw("review.band", labels, question=question, problems=problems))


def statements(claims: Sequence[Data], labels: Labels) -> Markup:
    """Return a row for each statement of a report, those without support first; nothing where there is none."""
    ordered = sorted(claims, key=lambda one: one["verdict"] == "supported")
    rows = [(one["verdict"], claim_told(one, labels), without_emphasis(one["text"])) for one in ordered]
    return draw("review.statements", labels, claims=rows) if claims else NOTHING


def why(document: Data, labels: Labels) -> Picture:
    """Return what the proposal rests on, by review point; in a graph of one's own the proposal itself."""
    request = document["review"]
    parts = _PARTS.get(proposals.kind(request), _other)(document, proposals.proposal(request), labels)
    return Picture(draw("review.why", parts=list(parts)))


def _clarify(_: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    yield draw("review.questions", labels, questions=proposed["questions"])


def _plan(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    plan, route, comma = proposed["plan"], document["route_decision"] or {}, labels("comma")
    names = (route.get("extracted_entities") or {}).get("low_level") or []
    intent, planner = route.get("query_intent"), (plan.get("metadata") or {}).get("planner")
    facts = {
        "read_as": labels(f"intent_{intent}") if intent else None,
        "names_in_it": _names(names, labels),
        "filters_in_it": comma.join(written(c) for c in route.get("filters") or [] if isinstance(c, Mapping)),
        "not_applied": comma.join((route.get("question") or {}).get("not_applied") or []),
        "planned_by": labels(f"planner_{planner}") if planner in ("rules", "llm") else planner,
        "will_run": _waves(plan["steps"], document["review"].get("ahead") or (), labels),
    }
    yield _facts(facts, labels)


def _step(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    steps = {step["step_id"]: step for step in proposed["plan"]["steps"]}
    found = {step_id: _found(record, labels) for step_id, record in last_records(document["records"]).items()}
    rows = []
    for step_id in list(proposed["wave"])[:MOST_LISTED]:
        step = steps.get(step_id, {})
        before = [f"{name} ({found[name]})" for name in step.get("depends_on", ()) if name in found]
        begins = labels("starts_with", steps=_names(before, labels)) if before else labels("starts_with_nothing")
        rows.append((step_id, step.get("tool", ""), begins))
    wave = draw("review.wave", labels, steps=rows, more=len(proposed["wave"]) - MOST_LISTED)
    yield _facts({"starts_now": wave}, labels)


def _reflect(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    yield Markup(page_html([reflection_table(cast(Reflection, proposed), labels)], labels, "wb-worked"))
    if fewer := proposals.fewer(document["review"]):
        yield _line(labels("enough_here", **fewer))
    if "remaining_budget" in proposed:
        spent = work_seconds(document["records"])
        total = spent + max(proposed["remaining_budget"], 0.0)
        yield _facts({"signal_work": labels("seconds_of", n=f"{spent:.2f}", m=f"{total:.0f}")}, labels)


def _outline(_: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    if words := proposed.get("total_estimated_words"):
        yield _line(labels("writes_words", n=f"{words:,}"))


def _section(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    sources = [one["title"] for one in document["review"].get("evidence") or ()]
    shown = {"claims": statements(proposed["claims"], labels), "notes": proposed.get("notes") or ()}
    yield draw("review.section", labels, sources=sources, **shown)


def _other(_: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    texts = ((name, _text(value, labels)) for name, value in proposed.items())
    yield draw("review.facts", rows=[(name, text) for name, text in texts if text])


_PARTS = {
    "clarify": _clarify,
    "plan": _plan,
    "step": _step,
    "reflect": _reflect,
    "outline": _outline,
    "section": _section,
}


# words


def _line(text: str) -> Markup:
    return draw("review.told", line=text)


def _facts(rows: Data, labels: Labels) -> Markup:
    """Labels and what stands behind them, without those of which nothing is known."""
    return draw("review.facts", rows=[(labels(name), text) for name, text in rows.items() if text])


def _names(names: Sequence[object], labels: Labels) -> str:
    shown = [cut(str(name), 200) for name in list(names)[:MOST_LISTED]]
    more = len(names) - MOST_LISTED
    return labels("comma").join([*shown, labels("and_more", n=more)] if more > 0 else shown)


def _waves(steps: Sequence[Data], ahead: Sequence[str], labels: Labels) -> Markup:
    asleep = [step["step_id"] for step in steps if step.get("condition") == "if_insufficient"]
    found = proposals.waves([step for step in steps if step["step_id"] in ahead])
    lines = [labels("wave_n", n=n, steps=_names(wave, labels)) for n, wave in enumerate(found[:MOST_LISTED], 1)]
    lines += [labels("more_waves", n=len(found) - MOST_LISTED)] if len(found) > MOST_LISTED else []
    lines += [labels("only_if_thin", steps=_names(asleep, labels))] if asleep else []
    return draw("review.lines", lines=lines) if lines else NOTHING


def _found(record: Data, labels: Labels) -> str:
    ended_well = record["status"] in ENDED_WELL
    return labels("n_found", n=record["output_summary"]["evidence_count"]) if ended_well else labels(record["status"])


def _text(value: Any, labels: Labels) -> str:
    if isinstance(value, bool):
        return labels("form_yes" if value else "form_no")
    if isinstance(value, float) and value % 1:
        return f"{value:.2f}"
    if isinstance(value, int | float):
        return f"{value:,g}" if abs(value) < 1e6 else f"{value:g}"
    if isinstance(value, list | tuple):
        return _names(value, labels)
    return cut(str(value), 500) if value is not None else ""
