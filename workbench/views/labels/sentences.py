"""Notes of the code in words: authors of edits, reasons for skipped steps, the costs of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workbench.records import proposals
from workbench.state import Data
from workbench.views.labels import Labels, milliseconds

MISSING = ("unmet", "open")
"""The states of needs for which there is too little."""


def need_state(need: Data) -> str:
    """Return a person's word on a need, ``met``, ``unmet``, ``unjudged``, or ``likely`` where likeness was measured."""
    if need["kind"] == "step":
        return "unjudged"
    exact = need["kind"] in ("name", "field", "condition", "count") or "verdict" in need
    sure = "met" if exact or (need["kind"] != "words" and need["met"] == 1) else "likely"
    decided = need["said"] in proposals.DECIDED or need["met"] < proposals.MET
    return (need["said"] or "unmet") if decided else sure


def need_states(needs: Sequence[Data]) -> Counter[str]:
    """Count the needs by state, all that are ``needed``, and those ``reached``: met, surely or likely."""
    states = Counter(map(need_state, needs))
    states["needed"] = len(needs) - states["struck"]
    states["reached"] = states["met"] + states["likely"] + states["confirmed"]
    return states


def needs_sentence(needs: Sequence[Data], labels: Labels) -> str:
    """Return how many of the needs are met, how the others stand, and the names of those that are not met."""
    comma = labels("comma")
    states = need_states(needs)
    names = [need["need"] for need in needs if need_state(need) in MISSING]

    def counted(*kinds: str) -> list[str]:
        return [labels(f"needs_{kind}", n=states[kind]) for kind in kinds if states[kind]]

    met = labels("needs_met", n=states["reached"], of=states["needed"])
    how = comma.join(counted("likely", "confirmed"))
    parts = [labels("aside", said=met, more=how) if how else met] if states["needed"] else []
    if names:
        parts.append(labels("needs_unmet", n=len(names), names=comma.join(names)))
    return " · ".join([*parts, *counted("struck", "unjudged")])


def field_label(name: str, labels: Labels) -> str:
    """Return the label of a field of an answer."""
    return labels.get(f"edited_{name}", name)


def as_of_text(document: Data, labels: Labels) -> str:
    """Return the dates of a run: as of which facts were true, and were known."""
    pairs = zip(("as_of_told", "known_told"), document["as_of"], strict=True)
    return labels("comma").join(labels(key, at=date) for key, date in pairs if date)


def reading_text(run: Data, labels: Labels) -> str:
    """Return how a follow-up question was read; empty where it was taken literally."""
    if run["query"] not in (run["message"], ""):
        return labels("read_alone", query=run["query"])
    return ""


def decision_name(review_id: str, labels: Labels) -> str:
    """Return the number of a decision, from 1, and its point; of a recorded graph its place.

    >>> from workbench.views.labels import Labels
    >>> decision_name("1-reflect", Labels("en")), decision_name("review/1", Labels("en"))
    ('2 · reflect', 'review/1')
    """
    number, _, point = review_id.partition("-")
    if number.isdecimal():
        return f"{int(number) + 1} · {labels.get(f'point_{point}', point)}"
    return review_id


def reviewer_name(who: str, labels: Labels) -> str:
    """Return the author of a decision."""
    if who in ("person", "fork"):
        return labels({"person": "by_person", "fork": "fork"}[who])
    return who


def reason_text(record: Data, labels: Labels) -> str:
    """Return why a step was skipped, cut short or failed; messages of tools and libraries are unchanged.

    >>> from workbench.views.labels import Labels
    >>> reason_text({"reason": {"kind": "after_timeout", "step": "step_0"}, "error": "..."}, Labels("zh"))
    '前置步骤 step_0 超时'
    """
    if reason := record.get("reason"):
        return labels(reason["kind"], **reason)
    return str(record["error"])


def duration_text(figures: Data, labels: Labels) -> str:
    """Return how long a run worked.

    >>> from workbench.views.labels import Labels
    >>> duration_text({"total_s": 10.4}, Labels("en"))
    '10.40 s in all'
    """
    return labels("took", span=_span(figures["total_s"]))


def phase_name(phase: str, labels: Labels) -> str:
    """Return the name of a phase; of a recorded graph, a node's."""
    return labels.get(f"phase_{phase}", phase)


def savings_text(figures: Data, labels: Labels) -> str:
    """Return the number of calls of tools that the tape answered, and the time that they had taken."""
    calls = figures["saved_calls"]
    return labels("calls_saved", n=calls, span=_span(figures["saved_s"]))


def _span(seconds: float) -> str:
    return milliseconds(seconds * 1000)
