"""A review point: the question, the reasons for the proposal, and the signals of a reflection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from markupsafe import Markup

from workbench.plans import format_condition, work_seconds
from workbench.records import proposals
from workbench.state import Data, Reflection
from workbench.views.blocks import INSET, Block, Lines, Paragraph, Table, clipped, columns
from workbench.views.labels import SIGNS, Labels
from workbench.views.markup import Picture, cut, draw, el
from workbench.views.render import page_html

_MOST_LISTED = 6
"""Names or steps that are listed; the rest is counted."""
_LONGEST_TEXT = 50_000
_THRESHOLDS = {
    "evidence_count": "evidence",
    "top_score": "top_score",
    "probability": "probability",
    "candidates": "candidates",
}
"""A signal -> its threshold, without ``min_``."""


def band(request: Data, labels: Labels, message: str) -> Picture:
    """Return the question of a decision, with what happens once it is answered or what prevents that."""
    return Picture(draw("review.band", labels, question=review_question(request, labels), message=message))


def why(document: Data, labels: Labels) -> Picture:
    """Return the reasons for a proposal as HTML."""
    request, blocks = document["review"], list[Block]()
    if proposals.kind(request) == "reflect":
        blocks += reflection_tables(cast(Reflection, proposals.proposal(request)), labels)
    reasons = list(_reasons(document, labels))
    blocks += [Lines(reasons)] if reasons else []
    html = page_html([*blocks, *_source_table(request, labels)], labels, "wb-worked")
    return Picture(el("div.wb-why", Markup(html)))


def review_blocks(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield the question of a paused run with its reasons, for a page and a terminal; nothing when it is not paused."""
    request = document["review"]
    if not request:
        return
    lines: list[Paragraph] = [(review_question(request, labels), "strong"), (labels("clock"), "dim")]
    lines += [*_draft(request, labels), *_reasons(document, labels)]
    yield Lines(lines, mark="paused")
    yield from _source_table(request, labels)


def review_question(request: Data, labels: Labels) -> str:
    """Return the question to decide, in one sentence."""
    kind, proposal = proposals.kind(request) or request.get("point", ""), proposals.proposal(request)
    if not kind:
        subject = proposals.description(request) or proposals.point(request).replace("_", " ")
        return labels("ask_other", what=subject)
    stops = kind == "reflect" and not proposal.get("should_continue", True)
    title = cut(str(proposal.get("title") or ""), 120)
    return labels("ask_reflect_stop" if stops else f"ask_{kind}", title=title)


# reasons, by the kind of the proposal


def _reasons(document: Data, labels: Labels) -> Iterator[Paragraph]:
    request = document["review"]
    return _BY_KIND.get(proposals.kind(request), _custom)(document, proposals.proposal(request), labels)


def _clarify(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    for question in proposal["questions"]:
        yield cut(question["question"], 1000)
        yield from (f"  {n}. {cut(option)}" for n, option in enumerate(question["options"], 1))
        yield (labels("assumed_unless", what=cut(question["assumed"])), "dim")


def _plan(document: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    plan, route, comma = proposal["plan"], document["route_decision"] or {}, labels("comma")
    names = (route.get("extracted_entities") or {}).get("low_level") or []
    intent, planner = route.get("query_intent"), (plan.get("metadata") or {}).get("planner")
    facts = {
        "read_as": labels(f"intent_{intent}") if intent else None,
        "names_in_it": name_list(names, labels),
        "filters_in_it": comma.join(format_condition(c) for c in route.get("filters") or [] if isinstance(c, Mapping)),
        "not_applied": comma.join((route.get("question") or {}).get("not_applied") or []),
        "planned_by": labels(f"planner_{planner}") if planner in ("rules", "llm") else planner,
    }
    yield from _facts({labels(name): text for name, text in facts.items()}, labels)


def _step(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    yield (labels("inbox_step", steps=name_list(proposal["wave"], labels)), "dim")


def _reflect(document: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    if fewer := proposals.fewer(document["review"]):
        yield (labels("enough_here", **fewer), "dim")
    if "remaining_budget" in proposal:
        spent = work_seconds(document["records"])
        total = spent + max(proposal["remaining_budget"], 0.0)
        yield from _facts({labels("signal_work"): labels("seconds_of", n=f"{spent:.2f}", m=f"{total:.0f}")}, labels)


def _outline(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    if words := proposal.get("total_estimated_words"):
        yield (labels("writes_words", n=f"{words:,}"), "dim")


def _custom(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    return _facts({name: _text(value, labels) for name, value in proposal.items()}, labels)


_BY_KIND = {
    "clarify": _clarify,
    "plan": _plan,
    "step": _step,
    "reflect": _reflect,
    "outline": _outline,
}


def _draft(request: Data, labels: Labels) -> Iterator[Paragraph]:
    """Yield the outline of a report as a tree, where that is proposed."""
    proposal = proposals.proposal(request)
    if proposals.kind(request) != "outline":
        return
    yield (proposal["title"], "strong")
    for section in proposal["sections"]:
        pieces, inset = len(section["evidence_ids"]), INSET * section["section_id"].count(".")
        evidence = labels("section_pieces", n=pieces) if pieces else labels("section_bare")
        yield [(f"{inset}{section['section_id']} ", "dim"), section["title"], (f" · {evidence}", "dim")]
        if section["summary"] and section["summary"] != section["title"]:
            yield (f"{inset}{INSET}{cut(section['summary'], 300)}", "dim")


def _source_table(request: Data, labels: Labels) -> Iterator[Table]:
    if pieces := request.get("evidence"):
        rows = [(f"[{n}]", p["result_id"], p["title"], f"{p['score']:.2f}") for n, p in enumerate(pieces, 1)]
        heads = columns(labels, ":number", ":code", "piece", "score:number")
        yield clipped(labels("sources"), heads, rows, opened=False)


def _facts(facts: Mapping[str, Any], labels: Labels) -> Iterator[Paragraph]:
    """Yield a line per fact that is not empty."""
    colon = labels("colon")
    for name, text in facts.items():
        if text:
            yield [(f"{cut(name)}{colon}", "dim"), cut(text, 1000)]


def name_list(names: Sequence[object], labels: Labels) -> str:
    """Return the first of these names, and how many more there are."""
    shown = [cut(str(name), 200) for name in list(names)[:_MOST_LISTED]]
    more = len(names) - _MOST_LISTED
    return labels("comma").join([*shown, labels("and_more", n=more)] if more > 0 else shown)


def _text(value: Any, labels: Labels) -> str:
    if isinstance(value, bool):
        return labels("form_yes" if value else "form_no")
    if isinstance(value, int | float):
        return f"{value:,g}" if abs(value) < 1e6 else f"{value:g}"
    if isinstance(value, list | tuple):
        return name_list(value, labels)
    return cut(str(value), 500) if value is not None else ""


def support_text(claims: Sequence[Data], labels: Labels) -> str:
    """Return how many statements their sources support."""
    supported = sum(claim["verdict"] == "supported" for claim in claims)
    return labels("answer_supported", n=supported, of=len(claims))


def text_lines(text: str) -> list[str]:
    """Return the lines of a long text that are not empty."""
    return [line for line in cut(text, _LONGEST_TEXT).splitlines() if line.strip()]


# signals


def reflection_tables(reflection: Reflection, labels: Labels) -> Iterator[Table]:
    """Yield the conclusion of a reflection with its signals against their thresholds, then the needs of the answer."""
    signals, colon, comma = reflection["signals"], labels("colon"), labels("comma")
    notes = [reflection["reasoning"]] if reflection["reasoning"] else []
    for name in ("missing", "unknown", "timeouts", "failures"):
        if signals.get(name):
            notes.append(labels(name) + colon + comma.join(map(str, signals[name])))
    if reflection["should_continue"]:
        steps = comma.join([*reflection["activate"], *(str(s.get("step_id", "?")) for s in reflection["next_steps"])])
        conclusion = labels("goes_on") + (colon + steps if steps else "")
        if reflection["rewrite_query"]:
            notes.append(f"{labels('rewritten')}{colon}{reflection['rewrite_query']}")
    else:
        conclusion = f"{labels('stops')}{colon}{labels(reflection['stop_reason'] or 'no_further_action')}"
    title = labels("reflection", n=reflection["current_iteration"], m=reflection["max_iterations"])
    title = cut(f"{title} · {conclusion}", 400)
    heads = columns(labels, "signal", "value:number", "needed:number", ":status")
    yield clipped(title, heads, signal_rows(signals, labels), notes=notes)
    ledger = sorted(signals.get("needs") or (), key=lambda need: need["met"] >= proposals.MET)
    needs = [(_need_text(need, labels), need["need"], f"{need['met']:.0%}", need["title"]) for need in ledger]
    if needs:
        met = sum(text.startswith(SIGNS["done"]) for text, *_ in needs)
        title = f"{labels('needs')} · {labels('needs_met', n=met, most=len(needs))}"
        yield clipped(title, columns(labels, ":status", "need", "value:number", "need_piece"), needs)


def signal_rows(signals: Data, labels: Labels) -> list[tuple[str, str, str, str]]:
    """Return the signals with their value, threshold and verdict; custom signals come last.

    >>> seen = {"evidence_count": 7, "top_score": 0.8, "thresholds": {"min_evidence": 8, "min_top_score": 0.5}}
    >>> signal_rows(seen, Labels("en"))
    [('pieces of evidence', '7', '8', '✗ not enough'), ('top score', '0.80', '0.50', '✓ enough')]
    """

    def row(name: str, value: Any, minimum: Any) -> tuple[str, str, str, str]:
        verdict = "" if minimum is None else labels("enough" if value >= minimum else "short")
        return name, _number(value), _number(minimum), verdict

    limits, needs = signals.get("thresholds") or {}, signals.get("needs")
    unsaid = {*_THRESHOLDS, "thresholds", "iteration", "time_left_s"} | ({"answered"} if needs else set())
    rows = [
        row(labels(name), signals[name], limits.get(f"min_{key}"))
        for name, key in _THRESHOLDS.items()
        if name in signals
    ]
    sides = [] if needs else signals.get("coverage") or []
    rows += [row(str(side["name"]), side["found"], side["needed"]) for side in sides]
    for name, value in signals.items():
        if name not in unsaid and not isinstance(value, dict | list):
            rows.append((labels(name), labels(f"kind_{value}") if name == "kind" else _number(value), "", ""))
    return rows


def _need_text(need: Data, labels: Labels) -> str:
    """Return the verdict of a person on a need, or else that of the evidence, with its sign."""
    decided = need["said"] in proposals.DECIDED
    met = decided or need["met"] >= proposals.MET
    evidence = "met" if met else need["said"] or "unmet"
    verdict = need["said"] if decided else evidence
    return f"{'✓' if met else '!'} {labels(f'need_{verdict}')}"


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return SIGNS["success" if value else "failed"]
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)
