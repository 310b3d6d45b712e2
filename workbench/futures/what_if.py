"""What a run would have been: every reflect point decided otherwise, and the answer without each step and each source.

For the second, one thing at a time is left out of the merge, and the answer is made anew; plan, tools and reflections
come from the tape. Only single removals are tried: what two steps both found, neither of them alone takes away, and the
table says who else found it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError
from workbench.graphs.merge import PLACES, distinct
from workbench.graphs.reflect import Proposal, propose
from workbench.language.citing import marked_sentences
from workbench.plans import ENDED_WELL, IDLE, last_records
from workbench.records.proposals import JUDGED_BY
from workbench.records.tape import Effect
from workbench.runs.recording import Recording
from workbench.tools.registry import BUILT_IN
from workbench.views.graft import leave_one_out_blocks, what_if_blocks
from workbench.views.outline import Block
from workbench.views.render import Shown

if TYPE_CHECKING:
    import pandas


Point = dict[str, Any]
Forks = Callable[..., Recording]
"""Makes a run of the one that is looked at, by its edits, and waits for it."""
Forget = Callable[[Recording], None]
"""Lets go of a run that was made only to be looked at."""


class WhatIf(Shown):
    """What each reflect point was worth.

    Attributes:
        run: the run that was played.
        points: one dict a point:
            ``iteration``; ``recorded`` (``go_on`` or ``stop``);
            ``stop`` and ``go_on``: each ``run_id``, ``pieces``, ``top_score``, ``coverage`` (share of the named things
            with enough evidence), ``probability`` (of the answer, as the last reflection saw it; None where it did
            not say), ``recall`` (of gold documents, among the first five; None without
            gold), ``first`` (those five), ``answer``, ``live`` (calls that no tape had);
            ``go_on`` is None where the rules know nothing more to do;
            ``gain``, what going on adds, or takes away: ``pieces`` found, ``merged``, ``top_score``, ``coverage``,
            ``probability``, ``recall``, ``left`` (documents that are no longer among the
            first five), ``answer_changes``, ``new`` (result ids);
            ``cost``: ``seconds``, ``tokens``, ``calls``;
            ``value``: ``pieces_per_s``, ``recall_per_s``; None where going on took no time.
    """

    def __init__(self, run: Recording, points: list[Point]):
        self.run, self.points, self.message = run, points, run.message

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"run_id": self.run.run_id, "message": self.run.message, "points": self.points}

    def to_frame(self) -> pandas.DataFrame:
        """One row a point: what going on gains, costs and is worth."""
        import pandas

        rows = [
            {
                "iteration": p["iteration"],
                "recorded": p["recorded"],
                **{f"gain_{name}": value for name, value in (p["gain"] or {}).items() if name not in ("new", "left")},
                **(p["cost"] or {}),
                **(p["value"] or {}),
            }
            for p in self.points
        ]
        return pandas.DataFrame(rows)

    def blocks(self) -> list[Block]:
        """A row a reflect point."""
        return what_if_blocks(self)


def what_if(run: Recording, fork: Forks, forget: Forget | None, gold: Collection[str] = ()) -> list[Point]:
    """The points of ``Run.what_if``; the runs that are made for it are kept where nothing is given to ``forget`` them.

    Raises:
        RunError: the run is not done.
    """
    if run.status != "done":
        raise RunError(f"Run {run.run_id} is {run.status}: only a run that is done can be played otherwise.")
    visits, points = _visits(run), []
    for place, visit in enumerate(visits):
        edits = _otherwise(run, visits[:place], visit)
        other = None if edits is None else _done(fork(**edits), "played otherwise")
        points.append(_point(visit, run, other, frozenset(gold)))
        if other is not None and forget is not None:
            forget(other)
    return points


def _done(fork: Recording, how: str) -> Recording:
    """The fork, when it came to its end."""
    if fork.status != "done":
        raise fork.divergence or RunError(f"{fork.run_id}, {how}, is {fork.status}: {fork.error}")
    return fork


def _visits(run: Recording) -> list[dict[str, Any]]:
    """Each time that the run stood at a reflect point: ``{"reflection", "went_on", "before", "decision"}``.

    ``before`` are decisions at other points since the visit before; ``decision`` is the recorded one, if it asked.
    """
    asked = [d for d in run.decisions if d["point"] == "reflect"]
    if asked:
        visits, before = list[dict[str, Any]](), list[Any]()
        for decision in run.decisions:
            if decision["point"] == "reflect":
                visits.append({"reflection": decision["proposal"], "before": before, "decision": decision})
                before = []
            else:
                before.append(decision)
        for visit in visits:
            visit["went_on"] = _went_on(visit["decision"])
        return visits
    waiting = [(_pass_of(d, run), d) for d in run.decisions]
    return [
        {
            "reflection": reflection,
            "went_on": reflection["should_continue"],
            "decision": None,
            "before": [d for n, d in waiting if n == reflection["current_iteration"]],
        }
        for reflection in run.reflections
    ]


def _went_on(decision: Mapping[str, Any]) -> bool:
    if decision["action"] in ("reject", "respond"):
        return decision["action"] == "respond"
    edits, proposal = decision["edits"], decision["proposal"]
    if "should_continue" in edits:
        return bool(edits["should_continue"])
    return bool(proposal["should_continue"] or set(edits) & {"next_steps", "activate", "rewrite_query", *JUDGED_BY})


def _pass_of(decision: Mapping[str, Any], run: Recording) -> int:
    """The pass in which something was decided about the plan or a wave."""
    wave = set(decision["proposal"].get("wave", ()))
    return min((r["iteration"] for r in run.records if r["step_id"] in wave), default=1)


def _otherwise(run: Recording, earlier: Sequence[Mapping[str, Any]], visit: Mapping[str, Any]) -> dict[str, Any] | None:
    """The edits of the fork that decides otherwise at this visit; None where the rules know nothing more to do."""
    decided: list[Mapping[str, Any]] = []
    for before in earlier:
        decided += [*before["before"], before["decision"] or {"point": "reflect", "action": "approve"}]
    decided += visit["before"]
    if visit["went_on"]:
        here: dict[str, Any] = {"point": "reflect", "action": "reject"}
    else:
        more = _more(run, visit["reflection"])
        if more is None:
            return None
        here = {"point": "reflect", "action": "edit", "edits": {**more, "should_continue": True}}
    review = list(dict.fromkeys([*run.options["review"], "reflect"]))
    answers = [*decided, {**here, "who": "what-if"}]
    return {"answers": answers, "review": review, "mismatch": "rules", "rest": "rules"}


def _more(run: Recording, reflection: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the rules would do next if the evidence were not enough."""
    done = reflection["current_iteration"]
    records = [r for r in run.records if r["iteration"] <= done and r["error"] not in IDLE]
    begun = {r["step_id"] for r in run.records if r["iteration"] <= done}
    plan = next((p for p in reversed(run.plans) if begun >= set(p.by_id())), run.plans[0])
    seen = {**reflection["signals"], "evidence_count": 0, "time_left_s": 1.0}
    ran = {r["step_id"] for r in records}
    activated = [s.step_id for s in plan.steps if s.condition != "always" and s.step_id in ran]
    tools = sorted({*run.begun.get("tools", BUILT_IN), *(step.tool for step in plan.steps)})
    proposal = propose(Proposal(run.query, plan, seen, records, tools, activated), done + 1)
    if not proposal["should_continue"]:
        return None
    return {"next_steps": proposal["next_steps"], "activate": proposal["activate"]}


def _point(visit: Mapping[str, Any], run: Recording, fork: Recording | None, gold: frozenset[str]) -> Point:
    stop, go_on = (fork, run) if visit["went_on"] else (run, fork)
    sides = {
        "stop": _side(stop, gold) if stop is not None else None,
        "go_on": _side(go_on, gold) if go_on is not None else None,
    }
    point: Point = {
        "iteration": visit["reflection"]["current_iteration"],
        "recorded": "go_on" if visit["went_on"] else "stop",
        **sides,
        **dict.fromkeys(("gain", "cost", "value")),
    }
    if stop is not None and go_on is not None:
        gain, cost = _gain(stop, go_on, sides), _cost(stop.tape(), go_on.tape())
        seconds = cost["seconds"]
        value = {
            f"{name}_per_s": None if not seconds or gain[name] is None else round(gain[name] / seconds, 3)
            for name in ("pieces", "recall")
        }
        point |= {"gain": gain, "cost": cost, "value": value}
    return point


def _side(run: Recording, gold: frozenset[str]) -> dict[str, Any]:
    """What one way came to."""
    pieces = _pieces(run)
    signals = run.reflections[-1]["signals"] if run.reflections else {}
    coverage = signals.get("coverage", [])
    documents = list(
        dict.fromkeys(str(piece["metadata"].get("doc_id") or piece["source_id"]) for piece in run.evidence)
    )
    first = documents[:PLACES]
    return {
        "run_id": run.run_id,
        "pieces": len(pieces),
        "top_score": max((piece["score"] for piece in pieces.values()), default=0.0),
        "coverage": round(sum(c["found"] >= c["needed"] for c in coverage) / len(coverage), 6) if coverage else None,
        "probability": signals.get("probability"),
        "recall": round(len(gold.intersection(first)) / len(gold), 6) if gold else None,
        "first": first,
        "answer": run.answer,
        "live": run.called if run.origin else [],
    }


def _pieces(run: Recording) -> dict[str, Any]:
    """Every distinct piece that any step found, whether it was merged or not."""
    return {f"{p['metadata'].get('kb_prefix', '')}/{p['result_id']}": p for p in distinct(run.found)}


def _gain(stop: Recording, go_on: Recording, sides: Mapping[str, Any]) -> dict[str, Any]:
    before, after = _pieces(stop), _pieces(go_on)
    merged = {piece["result_id"] for piece in stop.evidence}
    one, two = sides["stop"], sides["go_on"]
    gain = {
        name: None if None in (one[name], two[name]) else round(two[name] - one[name], 6)
        for name in ("top_score", "coverage", "probability", "recall")
    }
    return {
        "pieces": len(set(after) - set(before)),
        "merged": len({piece["result_id"] for piece in go_on.evidence} - merged),
        **gain,
        "left": [document for document in one["first"] if document not in two["first"]],
        "answer_changes": stop.answer != go_on.answer,
        "new": [after[name]["result_id"] for name in after if name not in before],
    }


def _cost(stop: Iterable[Effect], go_on: Iterable[Effect]) -> dict[str, Any]:
    """What going on took beyond what stopping took: seconds and tokens as recorded when the work was done."""
    known = {effect.key for effect in stop}
    work = [e for e in go_on if e.key not in known and e.kind in ("tool", "model", "plan", "handler")]
    return {
        "seconds": round(sum(e.seconds for e in work), 3),
        "tokens": sum(e.tokens for e in work),
        "calls": sum(e.kind == "tool" for e in work),
    }


ALIKE = 0.6
"""From how much in common a sentence counts as the same one, said otherwise."""
_MARKS = re.compile(r"\s?\[\d+\]")


class LeaveOneOut(Shown):
    """What the answer rests on.

    Attributes:
        run: the run.
        removals: one dict a removal: ``kind`` (``step`` or ``evidence``), ``left_out`` (its id), ``title``, ``gone``
            (sentences of the answer that vanish), ``changed`` (``[before, after]``), ``cited_otherwise`` (same words,
            other sources), ``added`` (sentences that only the answer without it has), ``answer``, ``called`` (tools
            that ran again; none, unless the tape is incomplete).
        sentences: one dict a sentence: ``sentence``, ``cites`` (``{"n", "result_id", "title", "steps"}``),
            ``rests_on`` (the steps without any one of which it vanishes or changes), ``needs`` (the same of pieces),
            ``spared`` (steps that found what it cites, and without any one of which it stands).
    """

    def __init__(self, run: Recording, removals: list[dict[str, Any]], sentences: list[dict[str, Any]]):
        self.run, self.removals, self.sentences, self.message = run, removals, sentences, run.message

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "run_id": self.run.run_id,
            "message": self.run.message,
            "sentences": self.sentences,
            "removals": self.removals,
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row a removal: what was left out, and how many sentences vanish, change, or rest on other sources."""
        import pandas

        rows = [
            {
                **{name: r[name] for name in ("kind", "left_out", "title")},
                **{name: len(r[name]) for name in ("gone", "changed", "cited_otherwise", "added", "called")},
            }
            for r in self.removals
        ]
        return pandas.DataFrame(rows)

    def blocks(self) -> list[Block]:
        """Which step paid for which sentence, then what each removal does."""
        return leave_one_out_blocks(self)


def leave_one_out(
    run: Recording, fork: Forks, forget: Forget, provenance: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The removals and the sentences of ``Run.leave_one_out``.

    Args:
        run: the run.
        fork: makes a run of it.
        forget: lets go of that again.
        provenance: ``Run.provenance`` of the run.

    Raises:
        RunError: the run is not done, or cannot be made again as it was.
    """

    def left(**what: Any) -> dict[str, Any]:
        return _without(fork, forget, what)

    if run.status != "done" or run.plan is None:
        raise RunError(f"Run {run.run_id} is {run.status}, or asked no knowledge base: there is nothing to leave out.")
    as_it_is = left()
    if as_it_is["answer"] != run.answer or as_it_is["called"]:
        raise RunError(
            f"Run {run.run_id} cannot be made again as it was: its corpus or its model says something else now, so that"
            " no difference could be laid to what is left out. See `replay` for where it differs."
        )
    removals = [
        {**what, **_effect_on_answer(run, left(**{name: [what["left_out"]]}))} for name, what in _removable(run)
    ]
    return removals, _paid(run, removals, provenance)


def _removable(run: Recording) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each step that found something, then each piece that the answer cites."""
    for step_id, record in last_records(run.records).items():
        if record["status"] in ENDED_WELL and record["output_summary"]["evidence_count"]:
            title = record["input_summary"]["objective"]
            yield "steps", {"kind": "step", "left_out": step_id, "title": title}
    for result_id, title in {c["result_id"]: c["source"]["title"] for c in run.citations}.items():
        yield "evidence", {"kind": "evidence", "left_out": result_id, "title": title}


def _without(fork: Forks, forget: Forget, without: dict[str, list[str]]) -> dict[str, Any]:
    """The answer without something, as the run's tape gives it; the run that made it is let go again."""
    made = _done(fork(without=without, mismatch="rules", rest="rules"), f"made without {without}")
    told = {"answer": made.answer, "cited": _cited(made), "called": made.called}
    forget(made)
    return told


def _cited(run: Recording) -> dict[str, list[str]]:
    """Each sentence of an answer, without its marks, and the pieces that it cites."""
    cited: dict[str, list[str]] = {words(s): [] for s in marked_sentences(run.answer)}
    for citation in run.citations:
        cited.setdefault(words(citation["sentence"]), []).append(citation["result_id"])
    return {sentence: pieces for sentence, pieces in cited.items() if sentence}


def words(sentence: str) -> str:
    """A sentence without its marks.

    >>> words("It is a 1993 paper [1][2].")
    'It is a 1993 paper.'
    """
    return _MARKS.sub("", sentence).strip()


def _effect_on_answer(run: Recording, other: dict[str, Any]) -> dict[str, Any]:
    """What a removal did to the answer: sentences gone, changed, cited otherwise or added; and the new answer."""
    before, after = _cited(run), other["cited"]
    lost, added = [s for s in before if s not in after], [s for s in after if s not in before]
    changed: list[list[str]] = []
    for sentence in lost:
        near = max(added, key=lambda s: SequenceMatcher(None, sentence, s).ratio(), default="")
        if near and SequenceMatcher(None, sentence, near).ratio() >= ALIKE:
            changed.append([sentence, near])
            added.remove(near)
    return {
        "gone": [s for s in lost if s not in {pair[0] for pair in changed}],
        "changed": changed,
        "cited_otherwise": [s for s in before if s in after and set(before[s]) != set(after[s])],
        "added": added,
        "answer": other["answer"],
        "called": other["called"],
    }


def _paid(
    run: Recording, removals: Sequence[dict[str, Any]], provenance: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Sentence -> evidence -> steps."""
    finders: dict[str, list[str]] = {}
    numbers: dict[str, tuple[int, str]] = {}
    for row in provenance:
        finders.setdefault(row["result_id"], []).append(row["step_id"])
        numbers.setdefault(row["result_id"], (row["n"], row["title"]))
    table = []
    for sentence, pieces in _cited(run).items():
        hit = [r for r in removals if sentence in r["gone"] or sentence in [pair[0] for pair in r["changed"]]]
        rests_on = [r["left_out"] for r in hit if r["kind"] == "step"]
        found_by = dict.fromkeys(step for piece in pieces for step in finders.get(piece, ()))
        table.append(
            {
                "sentence": sentence,
                "cites": [
                    {"n": numbers[p][0], "result_id": p, "title": numbers[p][1], "steps": finders[p]}
                    for p in dict.fromkeys(pieces)
                    if p in numbers
                ],
                "rests_on": rests_on,
                "needs": [r["left_out"] for r in hit if r["kind"] == "evidence"],
                "spared": [step for step in found_by if step not in rests_on],
            }
        )
    return table
