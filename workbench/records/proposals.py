"""What is proposed at a review point: what of it can be edited, the values now in force, and what an edit changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from workbench.state import ACTIONS, Data, Json

Request = Data
Step = Data
LIMITS, NEEDS, PIECES = "thresholds", "needs", "pieces"
JUDGED_BY = (LIMITS, NEEDS, PIECES)
"""The edits that hold only what changes of them; after these alone the same evidence is judged again."""
Verdict = Literal["open", "confirmed", "struck"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What a person can say of a need: it is searched for until it is met, it is met, or it is none."""
Mark = Literal["pinned", "struck", ""]
MARKS: tuple[Mark, ...] = get_args(Mark)
"""What a person can say of a piece of evidence: it comes first, it is left out, or neither."""
DECIDED = VERDICTS[1:]
"""What is searched for no further."""
MET = 0.5
"""How sure it must be that a need is met."""
LONGEST_NEED = 500
"""Characters."""
_UNJUDGED = {"kind": "step", "met": 0.0, "by": (), "title": "", "quote": "", "said": ""}
_KINDS = {
    "clarify": {"questions"},
    "plan": {"plan"},
    "step": {"plan", "wave"},
    "reflect": {"next_steps", "activate", "rewrite_query", "should_continue"},
    "outline": {"title", "sections"},
}


def proposal(request: Request) -> Data:
    """Return what is proposed."""
    return _first(request, "action_requests").get("args") or {}


def point(request: Request) -> str:
    """Return the review point; in a custom graph the name of the action."""
    return str(request.get("point") or _first(request, "action_requests").get("name") or "")


def kind(request: Request) -> str:
    """Return the review point where what is proposed is of its kind; empty in a custom graph."""
    name = point(request)
    needed = _KINDS.get(name)
    return name if needed and needed <= set(proposal(request)) else ""


def description(request: Request) -> str:
    """Return what the graph says about it, in a sentence."""
    return str(_first(request, "action_requests").get("description") or "")


def last_needs(reflections: Sequence[Data]) -> list[Data]:
    """Return the needs of the newest reflection."""
    return [
        need
        for reflection in reflections[-1:]
        for need in (reflection.get("signals") or {}).get("needs") or ()
    ]


def allowed(request: Request) -> tuple[str, ...]:
    """Return the answers that are taken; all of them where nothing is said."""
    return tuple(_first(request, "review_configs").get("allowed_decisions") or ACTIONS)


def schema(request: Request) -> Data:
    """Return the JSON schema of what can be edited."""
    return _first(request, "review_configs").get("args_schema") or {
        "type": "object",
        "properties": {},
    }


def property_schema(name: str, root: Data) -> Data:
    """Return the schema of one property, without references and null.

    >>> schema = {"$defs": {"A": {"type": "object"}}, "properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}]}}}
    >>> property_schema("a", schema)
    {'type': 'object'}
    """
    return resolved(root.get("properties", {}).get(name, {}), root.get("$defs", {}))


def resolved(spec: Data, definitions: Data) -> Data:
    """Return a schema without references and null."""
    for _ in range(5):
        options = [option for option in spec.get("anyOf", ()) if option.get("type") != "null"]
        if len(options) == 1:
            spec = options[0]
        elif "$ref" in spec:
            spec = definitions.get(str(spec["$ref"]).rpartition("/")[2], {})
        else:
            break
    return spec


def in_force(request: Request) -> Json:
    """Return what can be edited, with the values that hold now; what has none is left out.

    >>> asked = {"action_requests": [{"args": {"rewrite_query": "q", "reasoning": "thin"}}],
    ...          "review_configs": [{"args_schema": {"properties": {"rewrite_query": {}, "activate": {}}}}]}
    >>> in_force(asked)
    {'rewrite_query': 'q'}
    """
    args = proposal(request)
    form = schema(request)
    values = {**(request.get("in_force") or {}), **args}
    if judged_by := _judged_by(request):  # what is judged and what can be edited are one figure
        values[LIMITS] = {**values.get(LIMITS, {}), **judged_by}
    names = form.get("properties", {})
    editable = {name: values[name] for name in names if values.get(name) is not None}
    if isinstance(editable.get(LIMITS), Mapping):
        limits = property_schema(LIMITS, form).get("properties", {})
        editable[LIMITS] = {
            name: value for name, value in editable[LIMITS].items() if name in limits
        }
    return editable


def fewer(request: Request) -> dict[str, int]:
    """``n`` pieces are asked for, and ``least`` are all that the knowledge base can give; empty where it has as many.

    >>> fewer({"in_force": {"thresholds": {"min_evidence": 8}},
    ...        "action_requests": [{"args": {"signals": {"thresholds": {"min_evidence": 3}}}}]})
    {'n': 8, 'least': 3}
    """
    wanted = request.get("in_force", {}).get(LIMITS, {}).get("min_evidence", 0)
    possible = (_judged_by(request) or {}).get("min_evidence", wanted)
    return {"n": wanted, "least": possible} if possible < wanted else {}


def _judged_by(request: Request) -> Data | None:
    """Return the thresholds by which a reflection judged: never more than the knowledge base can give."""
    seen = proposal(request).get("signals")
    return seen.get(LIMITS) or None if isinstance(seen, Mapping) else None


def differing(before: Data, now: Data, required: Iterable[str] = ()) -> Json:
    """Return what of ``now`` is not as it was; nothing for None, which leaves a value unchanged.

    >>> before = {"query": "a", "thresholds": {"min_evidence": 8, "min_top_score": 0.5}}
    >>> differing(before, {"query": "a", "thresholds": {"min_evidence": 3, "min_top_score": 0.5}})
    {'thresholds': {'min_evidence': 3}}
    """
    changed = {}
    for name, value in now.items():
        old = before.get(name)
        if value is None or value == old:
            continue
        if name in JUDGED_BY and isinstance(value, Mapping) and isinstance(old, Mapping):
            value = differing(old, value)
            if not value:
                continue
        changed[name] = value
    if changed:
        changed = {**{name: now[name] for name in required if name in now}, **changed}
    return changed


def next_pass(
    reflection: Data,
    steps: Sequence[Step],
    woken: Sequence[str],
    query: str,
    goes_on: bool,
) -> Json:
    """Return what differs from a reflection's proposal in its next steps, woken steps, query, and whether to go on.

    Steps that are left as they were proposed ask the new query, where they asked the old one.

    Args:
        reflection: the reflection.
        steps: the steps to run next.
        woken: ids of conditional steps to run.
        query: the rewritten query.
        goes_on: whether a person chose to; else it follows from what there is to do.
    """
    changed: Json = {}
    before = list(reflection["next_steps"])
    old = str(reflection["rewrite_query"])
    if list(steps) != before:
        changed["next_steps"] = [
            asking(step, old, query) if step in before else dict(step) for step in steps
        ]
    if list(woken) != list(reflection["activate"]):
        changed["activate"] = list(woken)
    if query != old:
        changed["rewrite_query"] = query
    if goes_on and not will_go_on(reflection, changed):
        changed["should_continue"] = True
    return changed


def ledger(document: Data) -> list[Data]:
    """Return the needs of the newest reflection of a run, then what a person added to its plan, which nothing judged.

    Those that are neither met nor decided come first: their places are their numbers wherever they are shown.

    >>> added = {"edits": {"plan": {"steps": [{"objective": "the fathers"}]}}, "proposal": {"plan": None}}
    >>> ledger({"reflections": [], "decisions": [added]})
    [{'need': 'the fathers', 'kind': 'step', 'met': 0.0, 'by': (), 'title': '', 'quote': '', 'said': ''}]
    """
    ledger = {need["need"]: need for need in last_needs(document["reflections"])}
    for decision in document["decisions"]:
        objectives = _objectives(decision["proposal"])
        for text in _objectives(decision["edits"]):
            if text and text not in objectives:
                ledger.setdefault(text, {"need": text, **_UNJUDGED})
    return sorted(ledger.values(), key=lambda need: need["said"] in DECIDED or need["met"] >= MET)


def _objectives(planned: Data) -> list[str]:
    steps = [*(planned.get("plan") or {}).get("steps", ()), *planned.get("next_steps", ())]
    return [step["objective"].strip()[:LONGEST_NEED] for step in steps]


def will_go_on(reflection: Data, changed: Data) -> bool:
    """Return whether retrieval continues after these edits, as the graph takes them."""
    if "should_continue" in changed:
        return bool(changed["should_continue"])
    if not set(changed) - set(JUDGED_BY):
        return bool(reflection["should_continue"])
    now = {**reflection, **changed}
    old = reflection["rewrite_query"]
    return bool(
        now["next_steps"]
        or now["activate"]
        or (now["rewrite_query"] and now["rewrite_query"] != old)
    )


def asking(step: Step, old: str, new: str) -> Json:
    """Return the step as JSON, asking the new query where it asked the old one."""
    if not (old and new):
        return dict(step)
    return {
        **step,
        "tool_input": {
            name: new if value == old else value for name, value in step["tool_input"].items()
        },
    }


def _first(request: Request, part: str) -> Data:
    entries = request.get(part) or [{}]
    return entries[0] if isinstance(entries[0], Mapping) else {}
