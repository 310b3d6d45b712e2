"""Why a run asks: the question to decide, the signals against their thresholds, and what the proposal rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.plans import last_records, work_seconds, written
from workbench.records import proposals
from workbench.views.labels import Labels
from workbench.views.page import Markup, Picture, code, el, glyph, joined

Document = Mapping[str, Any]
Request = Mapping[str, Any]
MOST_LISTED = 6
"""Names, waves, steps or sides that are written out; of the rest there is a count."""
_OWN = {"thresholds", "coverage", "missing", "unknown", "timeouts", "failures", "iteration", "time_left_s"}
_SHOWN = {"evidence_count", "top_score", "candidates", "holding", "complete"}


def question(request: Request, labels: Labels) -> str:
    """What is to be decided, in one sentence."""
    point, proposed = proposals.kind(request), proposals.proposal(request)
    if not point:
        what = proposals.description(request) or proposals.point(request).replace("_", " ")
        return labels("ask_other", what=what)
    stops = point == "reflect" and not proposed.get("should_continue", True)
    return labels("ask_reflect_stop" if stops else f"ask_{point}")


def band(request: Request, labels: Labels, problems: int = 0) -> Picture:
    """The band above the decision: the question, and that there is time; or what is to be mended first."""
    told = labels("problems_to_mend", n=problems) if problems else labels("clock_bench")
    asked = el("h3", question(request, labels), cls="wb-title wb-strong")
    sentences = el("div", asked, el("div", told, cls="wb-small"), cls="wb-main")
    return Picture(el("div", glyph("paused", labels), sentences, cls="wb-band wb-person", role="status"))


def refused(message: str, labels: Labels) -> Picture:
    """Why an answer was not taken."""
    if not message:
        return Picture()
    said = el("div", el("b", labels("answer_refused")), el("p", message))
    return Picture(el("div", glyph("invalid", labels), said, cls="wb-refused wb-fail", role="alert"))


def why(document: Document, labels: Labels) -> Picture:
    """What the proposal rests on, by review point; in a graph of one's own the proposal itself."""
    request = document["review"]
    parts = {"plan": _plan, "step": _step, "reflect": _reflect}.get(proposals.kind(request), _other)
    return Picture(el("div", list(parts(document, proposals.proposal(request), labels)), cls="wb-why"))


def _plan(document: Document, proposed: Mapping[str, Any], labels: Labels) -> Iterator[Markup]:
    plan, route = proposed["plan"], document["route_decision"] or {}
    names = (route.get("extracted_entities") or {}).get("low_level") or []
    filters, reading = route.get("filters") or [], route.get("reading") or {}
    planner = (plan.get("metadata") or {}).get("planner")
    facts = [
        (labels("read_as"), labels(f"intent_{route['query_intent']}") if route.get("query_intent") else None),
        (labels("names_in_it"), _names(names, labels)),
        (labels("filters_in_it"), labels("comma").join(written(c) for c in filters if isinstance(c, Mapping))),
        (labels("not_understood"), labels("comma").join(reading.get("not_understood") or [])),
        (labels("planned_by"), labels(f"planner_{planner}") if planner in ("rules", "llm") else planner),
        (labels("will_run"), _waves(plan["steps"], document["review"].get("ahead"), labels)),
    ]
    yield _facts(facts)


def _step(document: Document, proposed: Mapping[str, Any], labels: Labels) -> Iterator[Markup]:
    steps = {step["step_id"]: step for step in proposed["plan"]["steps"]}
    last = last_records(document["records"])
    lines = []
    for step_id in list(proposed["wave"])[:MOST_LISTED]:
        step = steps.get(step_id, {})
        before = [f"{name} ({_found(last[name], labels)})" for name in step.get("depends_on", ()) if name in last]
        with_what = labels("starts_with", steps=_names(before, labels)) if before else labels("starts_with_nothing")
        lines.append(el("li", code(step_id), " ", code(step.get("tool", "")), el("p", with_what, cls="wb-dim")))
    more = len(proposed["wave"]) - MOST_LISTED
    if more > 0:
        lines.append(el("li", labels("and_more", n=more), cls="wb-dim"))
    done = [_found(record, labels) for record in last.values()]
    listed = [el("span", step_id, ": ", told, " ") for step_id, told in zip(last, done, strict=True)]
    yield _facts(
        [(labels("starts_now"), el("ul", lines)), (labels("found_so_far"), joined(listed[-MOST_LISTED:]) or None)]
    )


def _reflect(document: Document, proposed: Mapping[str, Any], labels: Labels) -> Iterator[Markup]:
    seen = proposed.get("signals") or {}
    yield el("p", proposed.get("reasoning"), cls="wb-reasoning")
    meters = [*_meters(seen, labels), *_budget(document, proposed, labels)]
    yield el("div", meters, cls="wb-meters", role="group", aria_label=labels("why_signals"))
    if fewer := proposals.fewer(document["review"]):
        yield el("p", labels("enough_here", **fewer), cls="wb-dim")
    own = [
        (labels(name), _brief(value, labels))
        for name, value in seen.items()
        if name not in _OWN | _SHOWN and not isinstance(value, dict | list)
    ]
    names = [(labels(kind), _names(seen.get(kind) or [], labels)) for kind in ("missing", "unknown")]
    ends = [(labels(kind), _names(seen.get(kind) or [], labels)) for kind in ("timeouts", "failures")]
    yield _facts([*names, *ends, *own])


def _other(document: Document, proposed: Mapping[str, Any], labels: Labels) -> Iterator[Markup]:
    yield _facts([(name, _brief(value, labels)) for name, value in proposed.items()])


# meters


def _meters(seen: Mapping[str, Any], labels: Labels) -> Iterator[Markup]:
    enough = seen.get("thresholds") or {}
    for name, title, wanted in (
        ("evidence_count", "signal_evidence", "min_evidence"),
        ("top_score", "signal_score", "min_top_score"),
        ("candidates", "signal_candidates", "min_candidates"),
    ):
        if name in seen:
            score = name == "top_score"
            yield meter(
                labels(title),
                seen[name],
                enough.get(wanted),
                labels,
                most=1.0 if score else None,
                short="is_low" if score else "is_short",
            )
    if "holding" in seen:
        told = labels("all_found") if seen.get("complete") else ""
        yield meter(labels("signal_holding"), seen["holding"], 1, labels, told=told)
    sides = list(seen.get("coverage") or [])
    most = max((max(side["found"], side["needed"]) for side in sides), default=1)
    for side in sides[: 2 * MOST_LISTED]:
        yield meter(str(side["name"]), side["found"], side["needed"], labels, most=most)
    if len(sides) > 2 * MOST_LISTED:
        yield el("p", labels("and_more", n=len(sides) - 2 * MOST_LISTED), cls="wb-dim")


def _budget(document: Document, proposed: Mapping[str, Any], labels: Labels) -> Iterator[Markup]:
    """How much is left: passes, and seconds of work."""
    if "max_iterations" in proposed:
        now, most = proposed["current_iteration"], proposed["max_iterations"]
        left = labels("passes_left", n=most - now) if now < most else labels("is_last")
        told = labels("n_of_m", n=now, m=most)
        yield _row(labels("signal_passes"), now / max(most, 1), None, told, left, now < most, labels)
    if "remaining_budget" in proposed:
        spent = work_seconds(document["records"])
        whole = max(spent + max(proposed["remaining_budget"], 0.0), spent)
        told = labels("seconds_of", n=f"{spent:.2f}", m=f"{whole:.0f}")
        left = labels("seconds_left", n=f"{whole - spent:.0f}") if whole > spent else labels("is_used_up")
        yield _row(labels("signal_work"), spent / whole if whole else 0.0, None, told, left, whole > spent, labels)


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
    numbers = _number(value) if wanted is None else labels("n_of_m", n=_number(value), m=_number(wanted))
    if wanted is not None and value > wanted:
        numbers = labels("n_at_least", n=_number(value), m=_number(wanted))
    fine = wanted is None or value >= wanted
    word = "" if wanted is None else labels("is_enough" if fine else short)
    tick = None if wanted is None else wanted / scale
    return _row(title, value / scale, tick, told or numbers, word, fine, labels)


def _row(title: str, filled: float, tick: float | None, told: str, verdict: str, fine: bool, labels: Labels) -> Markup:
    ink = "person" if not fine else "done" if verdict else "idle"
    bar = el(
        "div",
        el("i", style=f"width:{_percent(filled)}%"),
        el("b", style=f"left:{_percent(tick)}%") if tick is not None else None,
        cls=f"wb-meter wb-{ink}",
        role="meter",
        aria_label=title,
        aria_valuenow=_percent(filled),
        aria_valuetext=f"{told} {verdict}".strip(),
    )
    sign = glyph("done" if fine else "warning", labels, said=False) if verdict else None
    judged = el("span", sign, el("span", verdict), cls=f"wb-verdict wb-{ink}")
    return el("div", el("span", title, cls="wb-cut", title=title), bar, el("span", told), judged, cls="wb-meter-row")


def _percent(share: float | None) -> str:
    return f"{100 * min(max(share or 0.0, 0.0), 1.0):.4g}"


# words


def _facts(rows: Sequence[tuple[str, Any]]) -> Markup:
    """Names and what they are, without those of which nothing is known."""
    found = [[el("dt", name), el("dd", told)] for name, told in rows if told]
    return el("dl", found, cls="wb-facts-list") if found else joined([])


def _names(names: Sequence[object], labels: Labels) -> str:
    shown = labels("comma").join(str(_short(name)) for name in list(names)[:MOST_LISTED])
    more = len(names) - MOST_LISTED
    return f"{shown}{labels('comma')}{labels('and_more', n=more)}" if more > 0 else shown


def _short(name: object, most: int = 200) -> str:
    """A name that is not endless; escaping comes where it is put in."""
    text = str(name)
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,})"


def _waves(steps: Sequence[Mapping[str, Any]], ahead: Sequence[str] | None, labels: Labels) -> Markup | None:
    always = [step for step in steps if step.get("condition", "always") == "always"]
    if ahead is not None:  # a pause from before requests said what will run
        always = [step for step in steps if step["step_id"] in ahead]
    asleep = [step["step_id"] for step in steps if step.get("condition") == "if_insufficient"]
    found = proposals.waves(always)
    lines = [labels("wave_n", n=n, steps=_names(wave, labels)) for n, wave in enumerate(found[:MOST_LISTED], 1)]
    if len(found) > MOST_LISTED:
        lines.append(labels("more_waves", n=len(found) - MOST_LISTED))
    if asleep:
        lines.append(labels("only_if_thin", steps=_names(asleep, labels)))
    return el("ul", [el("li", line) for line in lines]) if lines else None


def _found(record: Mapping[str, Any], labels: Labels) -> str:
    if record["status"] in ("success", "partial"):
        return labels("n_found", n=record["output_summary"]["evidence_count"])
    return labels(record["status"])


def _brief(value: Any, labels: Labels) -> str:
    if isinstance(value, bool):
        return labels("form_yes" if value else "form_no")
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list | tuple):
        return _names(value, labels)
    return _short(value, 500) if value not in (None, "") else ""


def _number(value: float) -> str:
    return (
        f"{value:.2f}"
        if isinstance(value, float) and value % 1
        else f"{value:,g}"
        if abs(value) < 1e6
        else f"{value:g}"
    )
