"""Why a run asks: the question to decide, the signals against their thresholds, and what the proposal rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.plans import ENDED_WELL, last_records, work_seconds, written
from workbench.records import proposals
from workbench.views.claims import standing_told, statements
from workbench.views.foreseen import foreseen_told
from workbench.views.labels import Labels
from workbench.views.outline import need_told
from workbench.views.page import Data, Markup, Picture, code, cut, el, glyph, joined

MOST_LISTED = 6
"""Names, waves, steps or sides that are written out; of the rest there is a count."""
_MEASURED = (
    ("evidence_count", "signal_evidence", "min_evidence"),
    ("top_score", "signal_score", "min_top_score"),
    ("probability", "signal_probability", "min_probability"),
    ("candidates", "signal_candidates", "min_candidates"),
)
"""Signal, its title, and the threshold that it is held against."""
_KNOWN = {"thresholds", "coverage", "missing", "unknown", "timeouts", "failures", "iteration", "time_left_s"}
_KNOWN |= {"holding", "complete", *(name for name, _, _ in _MEASURED)}


def question(request: Data, labels: Labels) -> str:
    """What is to be decided, in one sentence."""
    point, proposed = proposals.kind(request), proposals.proposal(request)
    if not point:
        what = proposals.description(request) or proposals.point(request).replace("_", " ")
        return labels("ask_other", what=what)
    stops = point == "reflect" and not proposed.get("should_continue", True)
    return labels("ask_reflect_stop" if stops else f"ask_{point}", title=cut(str(proposed.get("title") or ""), 120))


def band(request: Data, labels: Labels, problems: int = 0) -> Picture:
    """The band above the decision: the question, and that there is time; or what is to be mended first."""
    told = labels("problems_to_mend", n=problems) if problems else labels("clock_bench")
    asked = el("h3.wb-title.wb-strong", question(request, labels))
    sentences = el("div.wb-main", asked, el("div.wb-small", told))
    return Picture(el("div.wb-band.wb-person", glyph("paused", labels), sentences, role="status"))


def refused(message: str, labels: Labels) -> Picture:
    """Why an answer was not taken."""
    if not message:
        return Picture()
    said = el("div", el("b", labels("answer_refused")), el("p", message))
    return Picture(el("div.wb-refused.wb-fail", glyph("invalid", labels), said, role="alert"))


def why(document: Data, labels: Labels) -> Picture:
    """What the proposal rests on, by review point; in a graph of one's own the proposal itself."""
    request = document["review"]
    parts = {"clarify": _clarify, "plan": _plan, "step": _step, "reflect": _reflect}
    parts |= {"outline": _outline, "section": _section, "report": _report}
    told = parts.get(proposals.kind(request), _other)(document, proposals.proposal(request), labels)
    return Picture(el("div.wb-why", list(told)))


def _clarify(_: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    asked = []
    for one in proposed["questions"]:
        options = el("ul", [el("li", option) for option in one["options"]]) if one["options"] else None
        told = el("p.wb-dim", labels("assumed_unless", what=one["assumed"]))
        asked.append([el("dt", one["question"]), el("dd", options, told)])
    yield el("dl.wb-facts-list", asked)


def _plan(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    plan, route = proposed["plan"], document["route_decision"] or {}
    names = (route.get("extracted_entities") or {}).get("low_level") or []
    filters, reading = route.get("filters") or [], route.get("question") or {}
    intent, planner = route.get("query_intent"), (plan.get("metadata") or {}).get("planner")
    yield _facts(
        {
            "read_as": labels(f"intent_{intent}") if intent else None,
            "names_in_it": _names(names, labels),
            "filters_in_it": labels("comma").join(written(c) for c in filters if isinstance(c, Mapping)),
            "not_applied": labels("comma").join(reading.get("not_applied") or []),
            "planned_by": labels(f"planner_{planner}") if planner in ("rules", "llm") else planner,
            "will_run": _waves(plan["steps"], document["review"].get("ahead"), labels),
        },
        labels,
    )


def _step(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    steps = {step["step_id"]: step for step in proposed["plan"]["steps"]}
    found = {step_id: _found(record, labels) for step_id, record in last_records(document["records"]).items()}
    lines = []
    for step_id in list(proposed["wave"])[:MOST_LISTED]:
        step = steps.get(step_id, {})
        before = [f"{name} ({found[name]})" for name in step.get("depends_on", ()) if name in found]
        with_what = labels("starts_with", steps=_names(before, labels)) if before else labels("starts_with_nothing")
        lines.append(el("li", code(step_id), " ", code(step.get("tool", "")), el("p.wb-dim", with_what)))
    more = len(proposed["wave"]) - MOST_LISTED
    if more > 0:
        lines.append(el("li.wb-dim", labels("and_more", n=more)))
    listed = [el("span", step_id, ": ", told, " ") for step_id, told in found.items()]
    yield _facts({"starts_now": el("ul", lines), "found_so_far": joined(listed[-MOST_LISTED:])}, labels)


def _reflect(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    seen = proposed.get("signals") or {}
    yield el("p.wb-reasoning", proposed.get("reasoning"))
    meters = [*_meters(seen, labels), *_budget(document, proposed, labels)]
    yield el("div.wb-meters", meters, role="group", aria_label=labels("why_signals"))
    if entries := list(seen.get("needs") or []):
        lines = [_need(entry, labels) for entry in entries]
        heading = el("div.wb-dim.wb-strong", labels("needs"))
        yield joined([heading, el("div.wb-meters.wb-needs", lines, role="group", aria_label=labels("needs"))])
    if fewer := proposals.fewer(document["review"]):
        yield el("p.wb-dim", labels("enough_here", **fewer))
    listed = {name: _names(seen.get(name) or [], labels) for name in ("missing", "unknown", "timeouts", "failures")}
    own = {name: value for name, value in seen.items() if name not in _KNOWN and not isinstance(value, dict | list)}
    if "kind" in own:
        own["kind"] = labels(f"kind_{own['kind']}")
    yield _facts({**listed, **{name: _told(value, labels) for name, value in own.items()}}, labels)


def _outline(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    told, _, _ = foreseen_told(document["review"], labels)
    if words := proposed.get("total_estimated_words"):
        told = " · ".join(filter(None, [labels("writes_words", n=f"{words:,}"), told]))
    yield el("p.wb-dim", told) if told else joined([])


def _section(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    yield statements(proposed["claims"], labels)
    sources = [one["title"] for one in document["review"].get("evidence") or ()]
    lines = [el("li", el("span.wb-number", f"[{n}]"), " ", title) for n, title in enumerate(sources, 1)]
    heading = el("div.wb-dim.wb-strong", labels("sources"))
    yield joined([heading, el("ul.wb-sources", lines)]) if lines else el("p.wb-dim", labels("section_bare"))
    yield joined([el("p.wb-alert", note) for note in proposed.get("notes") or ()])


def _report(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    check = proposed.get("consistency") or {}
    if check:
        score = meter(labels("report_score"), check["score"], None, labels, most=1.0, told=f"{check['score']:.2f}")
        yield el("div.wb-meters", score, role="group", aria_label=labels("why_signals"))
    yield joined([el("p.wb-dim", line) for line in standing_told(check, labels)])
    yield statements(document["review"].get("unsupported") or (), labels)


def _other(_: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    found = [[el("dt", name), el("dd", told)] for name, value in proposed.items() if (told := _told(value, labels))]
    yield el("dl.wb-facts-list", found) if found else joined([])


# meters


def _meters(seen: Data, labels: Labels) -> Iterator[Markup]:
    enough = seen.get("thresholds") or {}
    for name, title, wanted in _MEASURED:
        if name in seen:
            most, short = (1.0, "is_low") if name in ("top_score", "probability") else (None, "is_short")
            yield meter(labels(title), seen[name], enough.get(wanted), labels, most=most, short=short)
    if "holding" in seen:
        told = labels("all_found") if seen.get("complete") else ""
        yield meter(labels("signal_holding"), seen["holding"], 1, labels, told=told)
    sides = [] if seen.get("needs") else list(seen.get("coverage") or [])
    most = max((max(side["found"], side["needed"]) for side in sides), default=1)
    for side in sides[: 2 * MOST_LISTED]:
        yield meter(str(side["name"]), side["found"], side["needed"], labels, most=most)
    if len(sides) > 2 * MOST_LISTED:
        yield el("p.wb-dim", labels("and_more", n=len(sides) - 2 * MOST_LISTED))


def _budget(document: Data, proposed: Data, labels: Labels) -> Iterator[Markup]:
    """How much is left: passes, and seconds of work."""
    if "max_iterations" in proposed:
        now, most = proposed["current_iteration"], proposed["max_iterations"]
        left = labels("passes_left", n=most - now) if now < most else labels("is_last")
        told = labels("n_of_m", n=now, m=most)
        yield _row(labels("signal_passes"), now / max(most, 1), None, told, left, now < most, labels)
    if "remaining_budget" in proposed:
        spent = work_seconds(document["records"])
        rest = max(proposed["remaining_budget"], 0.0)
        told = labels("seconds_of", n=f"{spent:.2f}", m=f"{spent + rest:.0f}")
        left = labels("seconds_left", n=f"{rest:.0f}") if rest else labels("is_used_up")
        yield _row(labels("signal_work"), spent / (spent + rest or 1), None, told, left, rest > 0, labels)


def _need(entry: Data, labels: Labels) -> Markup:
    """A line of the ledger: how surely it is met, by what, and what a person said of it."""
    sign, _, word = need_told(entry, labels).partition(" ")
    return _row(entry["need"], entry["met"], proposals.MET, cut(entry["title"], 60), word, sign == "✓", labels)


def meter(
    title: str,
    value: float,
    wanted: float | None,
    labels: Labels,
    *,
    most: float | None = None,
    short: str = "is_short",
    told: str = "",
) -> Markup:
    """One signal against what is asked for: a bar, a tick at the threshold, both numbers, a sign and a word."""
    scale = most or max(value, wanted or 0, 1) * (1.0 if value > (wanted or 0) else 1.2)
    if wanted is None:
        return _row(title, value / scale, None, told or _number(value), "", True, labels)
    both = labels("n_at_least" if value > wanted else "n_of_m", n=_number(value), m=_number(wanted))
    fine = value >= wanted
    return _row(
        title, value / scale, wanted / scale, told or both, labels("is_enough" if fine else short), fine, labels
    )


def _row(title: str, filled: float, tick: float | None, told: str, verdict: str, fine: bool, labels: Labels) -> Markup:
    ink = "person" if not fine else "done" if verdict else "idle"
    bar = el(
        f"div.wb-meter.wb-{ink}",
        el("i", style=f"width:{_percent(filled)}%"),
        el("b", style=f"left:{_percent(tick)}%") if tick is not None else None,
        role="meter",
        aria_label=title,
        aria_valuenow=_percent(filled),
        aria_valuetext=f"{told} {verdict}".strip(),
    )
    sign = glyph("done" if fine else "warning", labels, said=False) if verdict else None
    judged = el(f"span.wb-verdict.wb-{ink}", sign, el("span", verdict))
    return el("div.wb-meter-row", el("span.wb-cut", title, title=title), bar, el("span", told), judged)


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.4g}"


# words


def _facts(rows: Data, labels: Labels) -> Markup:
    """Labels and what stands behind them, without those of which nothing is known."""
    found = [[el("dt", labels(name)), el("dd", told)] for name, told in rows.items() if told]
    return el("dl.wb-facts-list", found) if found else joined([])


def _names(names: Sequence[object], labels: Labels) -> str:
    shown = [cut(str(name), 200) for name in list(names)[:MOST_LISTED]]
    more = len(names) - MOST_LISTED
    return labels("comma").join([*shown, labels("and_more", n=more)] if more > 0 else shown)


def _waves(steps: Sequence[Data], ahead: Sequence[str] | None, labels: Labels) -> Markup | None:
    always = [step for step in steps if step.get("condition", "always") == "always"]
    if ahead is not None:  # a pause from before requests said what will run
        always = [step for step in steps if step["step_id"] in ahead]
    asleep = [step["step_id"] for step in steps if step.get("condition") == "if_insufficient"]
    found = proposals.waves(always)
    lines = [labels("wave_n", n=n, steps=_names(wave, labels)) for n, wave in enumerate(found[:MOST_LISTED], 1)]
    lines += [labels("more_waves", n=len(found) - MOST_LISTED)] if len(found) > MOST_LISTED else []
    lines += [labels("only_if_thin", steps=_names(asleep, labels))] if asleep else []
    return el("ul", [el("li", line) for line in lines]) if lines else None


def _found(record: Data, labels: Labels) -> str:
    ended_well = record["status"] in ENDED_WELL
    return labels("n_found", n=record["output_summary"]["evidence_count"]) if ended_well else labels(record["status"])


def _told(value: Any, labels: Labels) -> str:
    if isinstance(value, bool):
        return labels("form_yes" if value else "form_no")
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list | tuple):
        return _names(value, labels)
    return cut(str(value), 500) if value is not None else ""


def _number(value: float) -> str:
    if isinstance(value, float) and value % 1:
        return f"{value:.2f}"
    return f"{value:,g}" if abs(value) < 1e6 else f"{value:g}"
