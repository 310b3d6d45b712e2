"""What a run would have been: every reflect point decided otherwise, from the same tape."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypedDict

from workbench.errors import RunError
from workbench.graphs.merge import distinct, first_documents
from workbench.graphs.reflect import Proposal, propose
from workbench.plans import is_idle
from workbench.records.tape import begun
from workbench.runs.run import Run
from workbench.runs.stored import Recording, live_steps, snapshot
from workbench.state import Data, Json, unique
from workbench.tools.registry import BUILT_IN
from workbench.views.render import FrameList


class Point(TypedDict):
    """One reflection, played both ways.

    Attributes:
        iteration: the pass that it judged.
        recorded: what was done: ``go_on`` or ``stop``.
        stop: the run that stops there; ``go_on`` the one that continues, None where the rules have nothing more to try.
        pieces: ids of the pieces that going on found in addition.
        recall: what going on adds to the recall of the gold documents among the first five; None without gold.
        answer_changes: whether the answer becomes another.
        seconds: what going on takes, as recorded when the work was done, and ``tokens``.
        live: the steps that no tape had, and that were run for this.
    """

    iteration: int
    recorded: str
    stop: str | None
    go_on: str | None
    pieces: list[str]
    recall: float | None
    answer_changes: bool
    seconds: float
    tokens: int
    live: list[str]


class WhatIf(FrameList[Point]):
    """The worth of each reflect point; a table in a notebook."""

    columns = tuple(Point.__annotations__)


def what_if(run: Run, gold: Collection[str] = ()) -> WhatIf:
    """Play every reflect point of a run both ways, go on and stop: what going on found, and what it cost.

    Args:
        run: the run.
        gold: ids of the documents that should be found; then the gain in recall is a column too.

    Raises:
        RunError: the run is not done.
    """
    if run.status != "done":
        raise RunError(
            f"Run {run.run_id} is {run.status}: only a run that is done can be played otherwise."
        )
    still = snapshot(run)
    visits = _visits(still)
    points = WhatIf()
    for place, visit in enumerate(visits):
        visit["went_on"] = visit is not visits[-1]
        edits = _otherwise(still, visits[:place], visit)
        played = snapshot(run.fork(**edits)) if edits else None
        if played and played.status != "done":
            raise RunError(
                f"{played.run_id}, played otherwise, is {played.status}: {played.error}"
            )
        points.append(_point(visit, still, played, frozenset(gold)))
    return points


def _visits(run: Recording) -> list[Json]:
    """Return each reflection of the run: ``{"reflection", "before", "decision"}``.

    ``before`` are decisions at other points since the reflection before; ``decision`` is the recorded one, if any.
    """
    visits = list[Json]()
    before = list[Any]()
    for decision in run.decisions:
        if decision["point"] != "reflect":
            before.append(decision)
            continue
        visits.append(
            {"reflection": decision["proposal"], "before": before, "decision": decision}
        )
        before = []
    if visits:
        return visits
    for reflection in run.reflections:
        now = [d for d in before if _iteration(d, run) == reflection["current_iteration"]]
        visits.append({"reflection": reflection, "before": now, "decision": None})
    return visits


def _iteration(decision: Data, run: Recording) -> int:
    """Return the pass in which something was decided about the plan or a wave."""
    wave = set(decision["proposal"].get("wave", ()))
    return min((r["iteration"] for r in run.records if r["step_id"] in wave), default=1)


def _otherwise(run: Recording, earlier: Sequence[Data], visit: Data) -> Json | None:
    """Return the edits of the fork that decides otherwise here; None where the rules know nothing more to do."""
    answers = []
    for before in earlier:
        answers += [
            *before["before"],
            before["decision"] or {"point": "reflect", "action": "approve"},
        ]
    decision: Json = {"point": "reflect", "action": "reject", "who": "what-if"}
    if not visit["went_on"]:
        more = _more(run, visit["reflection"])
        if more is None:
            return None
        decision |= {"action": "edit", "edits": {**more, "should_continue": True}}
    review = unique([*run.options["review"], "reflect"])
    return {
        "answers": [*answers, *visit["before"], decision],
        "review": review,
        "mismatch": "rules",
        "rest": "rules",
    }


def _more(run: Recording, reflection: Data) -> Json | None:
    """Return what the rules would do next if the evidence were not enough."""
    done = reflection["current_iteration"]
    before = [r for r in run.records if r["iteration"] <= done]
    records = [r for r in before if not is_idle(r)]
    started = {r["step_id"] for r in before}
    ran = {r["step_id"] for r in records}
    plans = [version["plan"] for version in run.plans]
    plan = next((p for p in reversed(plans) if started >= set(p.by_id())), plans[0])
    seen = {**reflection["signals"], "evidence_count": 0, "time_left_s": 1.0}
    activated = [s.step_id for s in plan.steps if s.condition != "always" and s.step_id in ran]
    tools = sorted(
        {*begun(run.tape()).get("tools", BUILT_IN), *(step.tool for step in plan.steps)}
    )
    proposal = propose(Proposal(run.query, plan, seen, records, tools, activated), done + 1)
    if not proposal["should_continue"]:
        return None
    return {"next_steps": proposal["next_steps"], "activate": proposal["activate"]}


def _point(visit: Data, run: Recording, fork: Recording | None, gold: frozenset[str]) -> Point:
    stop, go_on = (fork, run) if visit["went_on"] else (run, fork)
    before = stop or run
    after = go_on or run
    keys = {effect.key for effect in before.tape()}
    at_stop = _pieces(before)
    work = [
        e
        for e in after.tape()
        if e.key not in keys and e.kind in ("tool", "model", "plan", "handler")
    ]
    recalls = [len(gold & _first(each)) / len(gold) for each in (before, after) if gold]
    return Point(
        iteration=visit["reflection"]["current_iteration"],
        recorded="go_on" if visit["went_on"] else "stop",
        stop=stop.run_id if stop else None,
        go_on=go_on.run_id if go_on else None,
        pieces=[result_id for place, result_id in _pieces(after).items() if place not in at_stop],
        recall=round(recalls[1] - recalls[0], 6) if fork and gold else None,
        answer_changes=before.answer != after.answer,
        seconds=round(sum(e.seconds for e in work), 3),
        tokens=sum(e.tokens for e in work),
        live=live_steps(fork) if fork else [],
    )


def _first(run: Recording) -> set[str]:
    """Return the first documents of the evidence."""
    first = first_documents(run.evidence)
    return {piece["metadata"].get("doc_id") or piece["source_id"] for piece in first}


def _pieces(run: Recording) -> dict[str, str]:
    """Return every distinct piece that any step found, merged or not: its result id by its place."""
    pieces = distinct(run._results_by_step())
    return {
        f"{p['metadata'].get('kb_prefix', '')}/{p['result_id']}": p["result_id"] for p in pieces
    }
