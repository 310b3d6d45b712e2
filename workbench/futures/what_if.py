"""What a run would have been: every reflect point decided otherwise, from the same tape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError
from workbench.graphs.merge import PLACES, distinct
from workbench.graphs.reflect import Proposal, propose
from workbench.plans import IDLE
from workbench.records.proposals import JUDGED_BY
from workbench.records.tape import Effect
from workbench.runs.recording import Recording
from workbench.tools.registry import BUILT_IN
from workbench.views.graft import what_if_blocks
from workbench.views.outline import Block
from workbench.views.render import Shown

if TYPE_CHECKING:
    import pandas


Point = dict[str, Any]
Forks = Callable[..., Recording]
"""Makes a run of the one that is looked at, by its edits, and waits for it."""
Forget = Callable[[Recording], None]
"""Removes a run that was made only to be looked at."""


class WhatIf(Shown):
    """What each reflect point was worth.

    Attributes:
        run: the run that was played.
        points: one dict per point:
            ``iteration``; ``recorded`` (``go_on`` or ``stop``);
            ``stop`` and ``go_on``: each ``run_id``, ``pieces``, ``probability`` (of the answer, as the last reflection
            saw it; None where it did not say), ``recall`` (of gold documents, among the first five; None without
            gold), ``first`` (those five), ``answer``, ``live`` (calls that no tape had); ``go_on`` is None where the
            rules know nothing more to do;
            ``gain``, what going on adds, or takes away: ``pieces``, ``probability``, ``recall``, ``left`` (documents
            that are no longer among the first five), ``answer_changes``, ``new`` (result ids);
            ``cost``: ``seconds``, ``tokens``, ``calls``.
    """

    def __init__(self, run: Recording, points: list[Point]):
        self.run, self.points, self.message = run, points, run.message

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"run_id": self.run.run_id, "message": self.message, "points": self.points}

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per point: what going on gains and costs."""
        import pandas

        return pandas.json_normalize([{name: p[name] for name in _SHOWN} for p in self.points], sep="_")

    def blocks(self) -> list[Block]:
        """Return a table with a row per reflect point."""
        return what_if_blocks(self.points, self.message)


_SHOWN = ("iteration", "recorded", "gain", "cost")


def what_if(run: Recording, fork: Forks, forget: Forget | None, gold: Collection[str] = ()) -> list[Point]:
    """Return the points of ``Run.what_if``; without ``forget`` the runs that are made for it are kept.

    Raises:
        RunError: the run is not done.
    """
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be played otherwise.")
    visits, points = _visits(run), []
    for place, visit in enumerate(visits):
        edits = _otherwise(run, visits[:place], visit)
        other = fork(**edits) if edits else None
        if other and other.status != "done":
            raise other.divergence or RunError(f"{other.run_id}, played otherwise, is {other.status}: {other.error}")
        points.append(_point(visit, run, other, frozenset(gold)))
        if other and forget:
            forget(other)
    return points


def _visits(run: Recording) -> list[dict[str, Any]]:
    """Return each reflection of the run: ``{"reflection", "went_on", "before", "decision"}``.

    ``before`` are decisions at other points since the reflection before; ``decision`` is the recorded one, if any.
    """
    visits, before = list[dict[str, Any]](), list[Any]()
    for decision in run.decisions:
        if decision["point"] != "reflect":
            before.append(decision)
            continue
        seen = {"reflection": decision["proposal"], "went_on": _went_on(decision)}
        visits.append({**seen, "before": before, "decision": decision})
        before = []
    if visits:
        return visits
    for reflection in run.reflections:
        now = [d for d in before if _pass_of(d, run) == reflection["current_iteration"]]
        seen = {"reflection": reflection, "went_on": reflection["should_continue"]}
        visits.append({**seen, "before": now, "decision": None})
    return visits


def _went_on(decision: Mapping[str, Any]) -> bool:
    if decision["action"] in ("reject", "respond"):
        return decision["action"] == "respond"
    edits, proposal = decision["edits"], decision["proposal"]
    if "should_continue" in edits:
        return bool(edits["should_continue"])
    return bool(proposal["should_continue"] or set(edits) & {"next_steps", "activate", "rewrite_query", *JUDGED_BY})


def _pass_of(decision: Mapping[str, Any], run: Recording) -> int:
    """Return the pass in which something was decided about the plan or a wave."""
    wave = set(decision["proposal"].get("wave", ()))
    return min((r["iteration"] for r in run.records if r["step_id"] in wave), default=1)


def _otherwise(run: Recording, earlier: Sequence[Mapping[str, Any]], visit: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the edits of the fork that decides otherwise here; None where the rules know nothing more to do."""
    answers: list[Mapping[str, Any]] = []
    for before in earlier:
        answers += [*before["before"], before["decision"] or {"point": "reflect", "action": "approve"}]
    here: dict[str, Any] = {"point": "reflect", "action": "reject", "who": "what-if"}
    if not visit["went_on"]:
        more = _more(run, visit["reflection"])
        if more is None:
            return None
        here |= {"action": "edit", "edits": {**more, "should_continue": True}}
    review = list(dict.fromkeys([*run.options["review"], "reflect"]))
    return {"answers": [*answers, *visit["before"], here], "review": review, "mismatch": "rules", "rest": "rules"}


def _more(run: Recording, reflection: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the rules would do next if the evidence were not enough."""
    done = reflection["current_iteration"]
    before = [r for r in run.records if r["iteration"] <= done]
    records = [r for r in before if r["error"] not in IDLE]
    begun, ran = {r["step_id"] for r in before}, {r["step_id"] for r in records}
    plan = next((p for p in reversed(run.plans) if begun >= set(p.by_id())), run.plans[0])
    seen = {**reflection["signals"], "evidence_count": 0, "time_left_s": 1.0}
    activated = [s.step_id for s in plan.steps if s.condition != "always" and s.step_id in ran]
    tools = sorted({*run.begun.get("tools", BUILT_IN), *(step.tool for step in plan.steps)})
    proposal = propose(Proposal(run.query, plan, seen, records, tools, activated), done + 1)
    if not proposal["should_continue"]:
        return None
    return {"next_steps": proposal["next_steps"], "activate": proposal["activate"]}


def _point(visit: Mapping[str, Any], run: Recording, fork: Recording | None, gold: frozenset[str]) -> Point:
    stop, go_on = (fork, run) if visit["went_on"] else (run, fork)
    point: Point = {
        "iteration": visit["reflection"]["current_iteration"],
        "recorded": "go_on" if visit["went_on"] else "stop",
        "stop": stop and _side(stop, gold),
        "go_on": go_on and _side(go_on, gold),
        "gain": None,
        "cost": None,
    }
    if stop and go_on:
        point |= {"gain": _gain(stop, go_on, point), "cost": _cost(stop.tape(), go_on.tape())}
    return point


def _side(run: Recording, gold: frozenset[str]) -> dict[str, Any]:
    """Return what one way came to."""
    documents = [str(piece["metadata"].get("doc_id") or piece["source_id"]) for piece in run.evidence]
    first = list(dict.fromkeys(documents))[:PLACES]
    return {
        "run_id": run.run_id,
        "pieces": len(_pieces(run)),
        "probability": run.reflections[-1]["signals"].get("probability") if run.reflections else None,
        "recall": round(len(gold.intersection(first)) / len(gold), 6) if gold else None,
        "first": first,
        "answer": run.answer,
        "live": run.called if run.origin else [],
    }


def _pieces(run: Recording) -> dict[str, str]:
    """Return every distinct piece that any step found, merged or not: its result id by its place."""
    return {f"{p['metadata'].get('kb_prefix', '')}/{p['result_id']}": p["result_id"] for p in distinct(run.found)}


def _gain(stop: Recording, go_on: Recording, point: Point) -> dict[str, Any]:
    before, after, first, then = _pieces(stop), _pieces(go_on), point["stop"], point["go_on"]
    new = [result_id for place, result_id in after.items() if place not in before]
    gain: dict[str, Any] = {"pieces": len(new)}
    for name in ("probability", "recall"):
        gain[name] = None if None in (first[name], then[name]) else round(then[name] - first[name], 6)
    left = [document for document in first["first"] if document not in then["first"]]
    return {**gain, "left": left, "answer_changes": stop.answer != go_on.answer, "new": new}


def _cost(stop: Iterable[Effect], go_on: Iterable[Effect]) -> dict[str, Any]:
    """Return what going on took beyond what stopping took: seconds and tokens as recorded when the work was done."""
    keys = {effect.key for effect in stop}
    work = [e for e in go_on if e.key not in keys and e.kind in ("tool", "model", "plan", "handler")]
    seconds, tokens = round(sum(e.seconds for e in work), 3), sum(e.tokens for e in work)
    return {"seconds": seconds, "tokens": tokens, "calls": sum(e.kind == "tool" for e in work)}
