"""A review point: the question, the reasons for the proposal, and the signals of a reflection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from workbench.records import proposals
from workbench.state import Data
from workbench.views.blocks import Block, Lines, Paragraph, Table, clipped, columns
from workbench.views.labels import SIGNS, Labels, need_state, needs_sentence
from workbench.views.markup import Picture, cut, draw, el
from workbench.views.plan import document_titles, needs_in_words, query_text, words_asked
from workbench.views.render import page_html

_MOST_LISTED = 6
"""Names or steps that are listed; the rest is counted."""
_SHORT = ("partly", "unjudged", "unsupported", "uncited")
"""Verdicts on sentences of which their passages do not have all."""
_THRESHOLDS = ("evidence_count", "top_score", "probability", "candidates")
"""Signals with a threshold."""


def band(
    document: Data, labels: Labels, message: str, edits: Data, problems: Sequence[Data]
) -> Picture:
    """Return the question of a decision as edited, with what happens then, or the problems that prevent it."""
    request = document["review"]
    needs = needs_in_words(document) if proposals.kind(request) == "reflect" else []
    return Picture(
        draw(
            "review.band",
            labels,
            question=review_question(request, labels, edits),
            needs=needs_text(needs, labels),
            message=message,
            problems=problems,
        )
    )


def why(document: Data, labels: Labels) -> Picture:
    """Return the reasons for a proposal as HTML."""
    request = document["review"]
    blocks: list[Block] = [Lines([*_reasons(document, labels)])]
    if proposals.kind(request) == "reflect":
        # the form has the needs, and the reasons its conclusion
        signals, *_ = reflection_tables(proposals.proposal(request), labels)
        blocks.append(replace(signals, title=labels("signals"), opened=False))
    return Picture(el("div.wb-why", page_html(blocks, labels, "wb-worked")))


def review_blocks(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield the question of a paused run with its reasons, for a page and a terminal; nothing when it is not paused."""
    request = document["review"]
    if not request:
        return
    question = (review_question(request, labels), "strong")
    yield Lines([question, (labels("clock"), "dim"), *_reasons(document, labels)], mark="paused")


def review_question(request: Data, labels: Labels, edits: Data = MappingProxyType({})) -> str:
    """Return the question to decide, in one sentence."""
    kind = proposals.kind(request)
    proposal = proposals.proposal(request)
    if not kind:
        subject = proposals.description(request) or proposals.point(request).replace("_", " ")
        return labels("ask_other", what=subject)
    stops = kind == "reflect" and not proposals.will_go_on(proposal, edits)
    title = cut(str(proposal.get("title") or ""), 120)
    return labels("ask_reflect_stop" if stops else f"ask_{kind}", title=title)


# reasons, by the kind of the proposal


def _reasons(document: Data, labels: Labels) -> Iterator[Paragraph]:
    request = document["review"]
    return _BY_KIND.get(proposals.kind(request), _custom)(
        document, proposals.proposal(request), labels
    )


def _clarify(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    for question in proposal["questions"]:
        yield cut(question["question"], 1000)
        yield from (f"  {n}. {cut(option)}" for n, option in enumerate(question["options"], 1))
        yield (labels("assumed_unless", what=cut(question["assumed"])), "dim")


def _plan(document: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    plan = proposal["plan"]
    route = document["route_decision"] or {}
    question = route.get("question") or {}
    comma = labels("comma")
    names = [
        " = ".join(dict.fromkeys([name["surface"].strip("《》"), name["name"]])).replace(
            " ", "\u00a0"
        )
        for name in question.get("names", ())
    ]
    intent = route.get("query_intent")
    planner = (plan.get("metadata") or {}).get("planner")
    facts = {
        "read_as": labels(f"intent_{intent}") if intent else None,
        "names_in_it": name_list(names, labels),
        "filters_in_it": query_text({"conditions": route.get("filters")}, words_asked(document)),
        "not_applied": comma.join(question.get("not_applied", ())),
        "planned_by": labels.get(f"planner_{planner}", planner or ""),
    }
    yield from _facts({labels(name): text for name, text in facts.items()}, labels)


def _step(document: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    steps = list(map(document_titles(document).get, proposal["wave"]))
    yield (labels("inbox_step", steps=name_list(steps, labels)), "dim")


def _reflect(document: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    what, because = _conclusion(proposal, labels)
    yield (labels("suggests", what=what, why=because), "strong")
    # beside "keep searching" it would say the opposite
    fewer = proposals.fewer(document["review"])
    if fewer and not proposal["should_continue"]:
        yield labels("enough_here", **fewer)
    woken = proposal.get("activate", ())
    planned = [step for step in document["plan"]["steps"] if step["step_id"] in woken]
    for step in [*planned, *proposal.get("next_steps", ())]:
        query = query_text(step["tool_input"]) or step["objective"]
        yield [(cut(query, 300), "strong"), f" · {step['tool']}"]


def _outline(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    if words := proposal.get("total_estimated_words"):
        yield (labels("writes_words", n=f"{words:,}"), "dim")
    found = {
        f"{section['section_id']} {section['title']}": len(section["evidence_ids"])
        for section in proposal["sections"]
    }
    for name, n in found.items():
        text = labels("section_pieces", n=n) if n else labels("section_bare")
        yield from _facts({name: text}, labels)


def _custom(_: Data, proposal: Data, labels: Labels) -> Iterator[Paragraph]:
    return _facts(
        {name: cut(value) for name, value in proposal.items() if value is not None}, labels
    )


_BY_KIND = {
    "clarify": _clarify,
    "plan": _plan,
    "step": _step,
    "reflect": _reflect,
    "outline": _outline,
}


def _facts(facts: Mapping[str, Any], labels: Labels) -> Iterator[Paragraph]:
    """Yield a line per fact that is not empty."""
    colon = labels("colon")
    for name, text in facts.items():
        if text:
            yield [(f"{cut(name)}{colon}", "dim"), cut(text, 1000)]


def name_list(names: Sequence[object], labels: Labels) -> str:
    """Return the first of these names, and how many more there are."""
    shown = [cut(str(name), 200) for name in names[:_MOST_LISTED]]
    more = len(names) - _MOST_LISTED
    return labels("comma").join([*shown, labels("and_more", n=more)] if more > 0 else shown)


def support_text(claims: Sequence[Data], labels: Labels) -> str:
    """Return how many sentences and rows of tables agree with their passages, and how many do not, or cite none."""
    counts = Counter(claim["verdict"] for claim in claims)
    rows = sum(str(claim.get("sentence", "")).startswith("|") for claim in claims)
    parts = {"support_sentences": len(claims) - rows, "support_rows": rows}
    subject = labels("support_and").join(labels(key, n=n) for key, n in parts.items() if n)
    rest = [labels(f"support_{name}", n=counts[name]) for name in _SHORT if counts[name]]
    supported = labels("support_found" if rest else "support_all", n=counts["supported"])
    return f"{subject}{labels('comma').join([supported, *rest])}" if claims else ""


def needs_text(needs: Sequence[Data], labels: Labels) -> str:
    """Return how needs stand, after their sign; it is green where all were checked."""
    if not needs:
        return ""
    worst = min(map(_sign, needs), key="!○●✓".index)
    return f"{worst} {cut(needs_sentence(needs, labels), 300)}"


# signals


def _conclusion(reflection: Data, labels: Labels) -> tuple[str, str]:
    """Return what a reflection suggests, and why."""
    if reflection["should_continue"]:
        steps = [*reflection["activate"], *reflection["next_steps"]]
        return labels("goes_on"), labels("steps", n=len(steps))
    return labels("stops"), labels(reflection["stop_reason"] or "no_further_action")


def reflection_tables(reflection: Data, labels: Labels) -> Iterator[Table]:
    """Yield the conclusion of a reflection with its signals against their thresholds, then the needs of the answer."""
    signals = reflection["signals"]
    colon = labels("colon")
    notes = [reflection["reasoning"]] if reflection["reasoning"] else []
    conclusion = colon.join(_conclusion(reflection, labels))
    if reflection["should_continue"] and reflection["rewrite_query"]:
        notes.append(f"{labels('rewritten')}{colon}{reflection['rewrite_query']}")
    title = labels(
        "reflection", n=reflection["current_iteration"], m=reflection["max_iterations"]
    )
    title = cut(f"{title} · {conclusion}", 400)
    heads = columns(labels, "signal", "value:number", "needed:number", ":status")
    yield clipped(title, heads, signal_rows(signals, labels), notes=notes)
    needs = [
        (
            need_verdict(need, labels),
            need["need"],
            f"{need['title']} · {need['quote']}".strip(" ·"),
        )
        for need in signals.get("needs") or ()
    ]
    if needs:
        heads = columns(labels, ":status", "need", "need_piece")
        yield clipped(labels("needs"), heads, needs)  # they are counted below the answer


def signal_rows(signals: Data, labels: Labels) -> Iterator[tuple[str, str, str, str]]:
    """Yield the signals with their value, threshold and verdict; custom signals come last.

    >>> seen = {"evidence_count": 7, "top_score": 0.8, "thresholds": {"min_evidence": 8, "min_top_score": 0.5}}
    >>> list(signal_rows(seen, Labels("en")))
    [('distinct pieces', '7', '8', '✗ not enough'), ('top score', '0.80', '0.50', '✓ enough')]
    """

    limits = signals.get("thresholds") or {}
    needs = signals.get("needs")
    unsaid = {"thresholds", "iteration", "time_left_s", *(["answered"] if needs else [])}
    for name in dict.fromkeys([*_THRESHOLDS, *signals]):
        value = signals.get(name)
        if value is None or name in unsaid or isinstance(value, dict | list):
            continue
        minimum = limits.get(f"min_{name.removesuffix('_count')}")
        judged = minimum is not None and (
            name != "probability" or not needs
        )  # else a need says it
        verdict = labels("enough" if value >= minimum else "short") if judged else ""
        shown = labels(f"kind_{value}") if name == "kind" else _number(value)
        yield labels(name), shown, _number(minimum), verdict


def need_verdict(need: Data, labels: Labels) -> str:
    """Return the verdict of a person on a need, or else that of the evidence, with its sign."""
    return f"{_sign(need)} {labels('need_' + need_state(need))}"


def _sign(need: Data) -> str:
    signs = {"likely": "done", "unmet": "warning", "open": "warning", "unjudged": "pending"}
    return SIGNS[signs.get(need_state(need), "success")]


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return SIGNS["success" if value else "failed"]
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)
