"""Runs side by side: where they part, and the plan, evidence, decisions, claims, time and cost of each.

The first run is the baseline: ``gained`` is what another run has and the baseline lacks. No run is called better.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import RunError
from workbench.language.citing import marked_sentences
from workbench.plans import last_records
from workbench.records.document import run_document
from workbench.records.figures import Identity, identity, source_title
from workbench.records.prompts import Prompt
from workbench.records.proposals import JUDGED_BY, ledger
from workbench.records.tape import EDITED, begun, comparable, fingerprints
from workbench.runs.family import fork_changes
from workbench.runs.stored import Recording, origin_of
from workbench.settings import flatten_settings
from workbench.state import Citation, Decision, ExecutionRecord, Json, drop, pick, unique
from workbench.text import fold, unmarked
from workbench.views.blocks import Block
from workbench.views.comparison import LETTERS, beside
from workbench.views.labels import labels_for, need_states
from workbench.views.plan import query_text, quoted, step_titles, words_asked
from workbench.views.render import Shown

if TYPE_CHECKING:
    import pandas


Place = tuple[int, int, str]
"""A position in the course of a run: pass, order within the pass, name."""
_MARKS = re.compile(r"\s*\[(\d+)\]")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.、)）])\s*")
_PROPOSAL_FIELDS = ("plan", "should_continue", "activate", "next_steps", "reasoning")


@dataclass(frozen=True)
class Point:
    """Something in which two runs may differ: ``value`` is compared, ``brief`` is shown."""

    where: str
    name: str
    value: Any
    brief: Any


class Side:
    """One run of a comparison: its evidence, claims and course, each computed once."""

    def __init__(self, run: Recording):
        self.run = run
        self.effects = run.tape()
        self.begun = begun(self.effects)
        self.knowledge = fingerprints(self.effects)
        recorded = self.begun.get("settings")
        # None for a run without a tape
        self.settings = None if recorded is None else flatten_settings(recorded)

    def awaits(self, step_id: str) -> bool:
        """Return whether the run may still bring what it lacks; a step only while it is planned."""
        planned = not self.run.plan or step_id in ("", *self.run.plan.by_id())
        return self.run.status != "done" and planned

    @cached_property
    def pieces(self) -> dict[Identity, Json]:
        """Return what the answer was written from, by identity: rank, score, and the steps that found it."""
        used = (self.run.state.get("merged") or {}).get("statistics", {}).get("used")
        found_by = defaultdict[Identity, list[Json]](list)
        last = last_records(self.run.records)
        for step_id, results in self.run._results_by_step().items():
            step = {"step_id": step_id, "tool": last[step_id]["tool"]}
            for rank, result in enumerate(results, 1):
                entry = {**step, "rank": rank, "score": result["score"]}
                found_by[identity(result)].append(entry)
        return {
            identity(result): {
                "rank": rank,
                "score": round(result["score"], 6),
                "found_by": found_by[identity(result)],
                "result": result,
            }
            for rank, result in enumerate(self.run.evidence[:used], 1)
        }

    @cached_property
    def claims(self) -> dict[str, Json]:
        """Return the sentences of the answer, or the claims of a report, by their text without marks and bullets."""
        claims = [
            (claim["sentence"], claim["cited"]) for claim in self.run.state.get("support", [])
        ]
        if "report" not in self.run.options or not claims:
            claims = [
                (sentence, _MARKS.findall(sentence))
                for sentence in marked_sentences(self.run.answer)
            ]
        sources = _sources(self.run.citations)
        by_text = dict[str, Json]()
        for sentence, cited in claims:
            bare = _BULLET.sub("", unmarked(sentence)).strip(" |").replace(" | ", " · ")
            numbers = dict.fromkeys(map(int, cited))
            citations = [sources[n] for n in numbers if n in sources]
            if key := fold(bare):
                by_text.setdefault(key, {"text": bare, "citations": citations})
        return by_text

    @cached_property
    def points(self) -> dict[Place, Point]:
        """Return everything in which another run may differ, by its place in the run, unordered."""
        last = 1_000_000
        run = self.run
        points = {
            (0, 0, ""): Point("question", "", run.message, run.message),
            (0, 3, ""): Point("query", "", run.query, run.query),
            (last, 0, ""): Point("evidence", "", comparable(run.evidence), len(run.evidence)),
            (last, 1, ""): Point("answer", "", run.answer, run.answer[:300]),
        }
        for name, value in (self.settings or {}).items():
            points[0, 1, name] = Point("settings", name, value, value)
        for name, version in self.knowledge.items():
            points[0, 2, name] = Point("knowledge", name, version, version[:12])
        if run.plans:
            plan = run.plans[0]["plan"]
            steps = [step.model_dump(mode="json") for step in plan.steps]
            value = [steps, plan.execution_mode, plan.problem_statement]
            points[0, 4, ""] = Point("plan", "1", value, [step.step_id for step in plan.steps])
        return {**points, **dict(self._passes())}

    def _passes(self) -> Iterator[tuple[Place, Point]]:
        """Yield, pass by pass, the decisions before it, its steps, its reflection, the decisions on that."""
        iteration = 1
        for number, decision in enumerate(self.run.decisions):
            # a recorded graph has its places
            iteration = Json(decision).get("iteration", iteration)
            value = [
                comparable(decision["proposal"]),
                decision["action"],
                decision["edits"],
                decision["message"],
            ]
            after_reflection = decision["point"] == "reflect"
            edited = set(decision["edits"])
            place = (iteration, 3 if after_reflection else 0, f"{number:06d}")
            yield place, Point("decision", decision["review_id"], value, decision_brief(decision))
            # else the same evidence is judged again
            if after_reflection and not (edited and edited <= set(JUDGED_BY)):
                iteration += 1
        results = {}
        for effect in self.effects:
            if effect.kind == "tool" and effect.value["body"]:
                record = effect.value["record"]
                results[record["step_id"], record["attempt"]] = [
                    [*identity(result), round(result["score"], 6)]
                    for result in effect.value["body"]["results"]
                ]
        for step_id, attempts in self.steps.items():
            value = [
                [
                    r["tool"],
                    # the calls before it are compared as steps of their own
                    {**r.get("effect", {}).get("input", {}), "upstream": []},
                    r["status"],
                    r["error"],
                    results.get((step_id, r["attempt"]), []),
                ]
                for r in attempts
            ]
            yield (
                (attempts[0]["iteration"], 1, step_id),
                Point("step", step_id, value, _step_brief(attempts)),
            )
        for reflection in self.run.reflections:
            n = reflection["current_iteration"]
            signals = Json(reflection["signals"])
            signals.pop("time_left_s", None)
            value = comparable({**reflection, "signals": signals})
            yield (n, 2, ""), Point("reflection", str(n), value, reflection["reasoning"])

    @cached_property
    def steps(self) -> dict[str, list[ExecutionRecord]]:
        """Return the attempts of each step, in their order."""
        steps = defaultdict[str, list[ExecutionRecord]](list)
        key = itemgetter("iteration", "step_id", "attempt")
        for record in sorted(self.run.records, key=key):
            steps[record["step_id"]].append(record)
        return dict(steps)

    def points_by_name(self, where: str) -> dict[str, Point]:
        """Return the points of one kind by name."""
        return {point.name: point for point in self.points.values() if point.where == where}


def decision_brief(decision: Decision) -> Json:
    """Return a decision with its proposal in short."""
    names = ("review_id", "point", "action", "edits", "message", "who", "note")
    proposal = decision["proposal"]
    brief = {name: proposal[name] for name in _PROPOSAL_FIELDS if name in proposal}
    return {**pick(decision, *names), "proposal": brief}


def _sources(citations: Iterable[Citation]) -> dict[int, Json]:
    """Return the evidence behind each number, since numbers shift from run to run."""
    names = ("title", "url", "doc_id", "kb_prefix")
    sources = {}
    for citation in citations:
        about = {name: str(citation["source"].get(name) or "") for name in names}
        about["result_id"] = citation["result_id"]
        sources[citation["n"]] = {"n": citation["n"], **about}
    return sources


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Comparison(Shown):
    """Two to four runs side by side. A list of ``sides`` has one entry per run, None where the run has nothing.

    Attributes:
        runs: ``{"run_id", "status", "message", "query", "kb", "answer", "origin"}`` each; the first is the baseline.
        titles: of the steps, by id; where they differ, that of the first run.
        parts: the first point at which they part, ``{"where", "name", "pass", "values"}``; None when they do not.
            ``where`` is ``question``, ``settings``, ``knowledge``, ``query``, ``plan``, ``decision``, ``step``,
            ``reflection``, ``evidence`` or ``answer``.
        caveats: why a difference need not come from an edit: ``{"what", "name", "values"}``, of ``model``,
            ``settings``, ``knowledge``, ``question``, ``handlers``, ``tools``, ``versions``, ``unfinished``,
            ``no_tape``.
        plan: of each other run, ``Plan.diff`` from the first run's newest plan to its own; None without a plan.
        steps: ``{"step_id", "same", "changes", "sides"}``, a side ``{"query", "tool", "status", "found", "seconds",
            "replayed", "by_hand"}``; ``same`` is the same call with the same end and the same findings in all,
            ``changes`` has ``added``, ``removed``, ``changed``, ``same`` or ``""`` for each other run, here and below
            ``open`` where a run that is not done may still bring it.
        evidence: ``{"source_id", "granularity", "kb", "title", "text_differs", "changes", "sides"}``; ``changes`` has
            ``gained``, ``lost``, ``moved``, ``same`` or ``""`` for each other run, and a side ``rank`` and ``score``
            after the merge and ``found_by``: step, tool, rank and score in what the step found.
        decisions: ``{"number", "same", "changes", "sides"}``, a side with proposal, answer and reviewer.
        claims: ``{"text", "changes", "sides"}``; ``changes`` has ``shared``, ``recited`` (the same words from other
            evidence), ``gained``, ``lost`` or ``""``, and a side its ``text`` and the ``citations``, each with its
            source.
        cost: a run's figures (``figures.Figures``), its ``needs_met``, and its ``tokens``, ``about`` so many where a
            server does not count them; ``saved_tokens`` are those that the tape spared.
    """

    runs: list[Json]
    titles: dict[str, str]
    parts: Json | None
    caveats: list[Json]
    plan: list[Json | None]
    steps: list[Json]
    evidence: list[Json]
    decisions: list[Json]
    claims: list[Json]
    cost: list[Json]

    def to_dict(self) -> Json:
        """Return the comparison as JSON."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.loads(json.dumps({"document": "workbench.comparison/1", **content}))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per piece of evidence: ``change_B``; ``rank_A``, ``score_A`` and ``steps_A`` of each run."""
        import pandas

        rows = []
        for piece in self.evidence:
            row = drop(piece, "changes", "sides")
            row |= {
                f"change_{LETTERS[n]}": change for n, change in enumerate(piece["changes"], 1)
            }
            for letter, side in zip(LETTERS, piece["sides"], strict=False):
                place = side or {"rank": None, "score": None, "found_by": []}
                row[f"rank_{letter}"] = place["rank"]
                row[f"score_{letter}"] = place["score"]
                row[f"steps_{letter}"] = ", ".join(f["step_id"] for f in place["found_by"])
            rows.append(row)
        return pandas.DataFrame(rows)

    def blocks(self) -> list[Block]:
        """Return blocks of text, in the language of the first question."""
        return beside(self.to_dict(), labels_for(self.message))

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first question."""
        return str(self.runs[0]["message"])

    def __repr__(self) -> str:
        difference = (
            f"they part at {self.parts['where']} {self.parts['name']}"
            if self.parts
            else "no difference"
        )
        return f"<Comparison of {', '.join(run['run_id'] for run in self.runs)}: {difference.rstrip()}>"


def compared(runs: Sequence[Recording]) -> Comparison:
    """Compare two to four runs (``Workbench.compare``)."""
    if not 2 <= len(runs) <= len(LETTERS):
        raise RunError(f"Two to {len(LETTERS)} runs can be compared, and this is {len(runs)}.")
    sides = [Side(run) for run in runs]
    baseline, *plans = [run.plan for run in runs]
    names = ("run_id", "status", "message", "query")
    return Comparison(
        runs=[
            {
                **{name: getattr(run, name) for name in names},
                "kb": run.state.get("kb_prefix", ""),
                "answer": "" if "report" in run.options else run.answer,
                "origin": origin_of(run),
                "changes": fork_changes(run, origin_of(run)),
            }
            for run in runs
        ],
        titles=quoted(
            step_titles(
                *(version["plan"] for side in reversed(sides) for version in side.run.plans),
                asked=words_asked(runs[0].state),
            )
        ),
        parts=_parts(sides),
        caveats=_caveats(sides),
        plan=[baseline.diff(plan) if baseline and plan else None for plan in plans],
        steps=_steps(sides),
        evidence=[*_evidence(sides)],
        decisions=_decisions(sides),
        claims=[*_claims(sides)],
        cost=[_cost(side) for side in sides],
    )


def _parts(sides: Sequence[Side]) -> Json | None:
    """Return the first point of their course that is not equal in all runs."""
    courses = [side.points for side in sides]
    untaped = any(side.settings is None for side in sides)
    for place in sorted({place for course in courses for place in course}):
        points = [course.get(place) for course in courses]
        first = next(point for point in points if point)
        unknown = untaped and first.where in ("settings", "knowledge")
        if unknown or _alike([point and point.value for point in points]):
            continue
        number = place[0] if first.where in ("decision", "step", "reflection") else None
        values = [point and point.brief for point in points]
        return {"where": first.where, "name": first.name, "pass": number, "values": values}
    return None


def _alike(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)


def _caveats(sides: Sequence[Side]) -> list[Json]:
    """Return what differs besides plans and decisions, and what is unknown."""
    candidates = []
    if all(side.settings is not None for side in sides):
        for what in ("settings", "prompts", "versions"):
            recorded = [
                {**side.begun, "settings": side.settings}.get(what) or {} for side in sides
            ]
            for name in _in_order(recorded):
                values = [values_by_name.get(name) for values_by_name in recorded]
                if what == "prompts":
                    values = [p and Prompt(*name.split("."), **p).label for p in values]
                is_model = name.endswith("_model") or name.startswith("models.")
                kind = "model" if what == "settings" and is_model else what
                candidates.append((kind, name, values))
        for what in ("handlers", "tools"):
            candidates.append((what, "", [sorted(side.begun.get(what) or []) for side in sides]))
    for name in _in_order([side.knowledge for side in sides]):
        versions = [side.knowledge.get(name) for side in sides]
        if None not in versions:  # a base that only some of them asked is seen in the plan
            candidates.append(("knowledge", name, [str(version)[:12] for version in versions]))
    candidates.append(("question", "", [side.run.message for side in sides]))
    caveats = [
        {"what": what, "name": name, "values": vs}
        for what, name, vs in candidates
        if not _alike(vs)
    ]
    for letter, side in zip(LETTERS, sides, strict=False):
        if side.run.status != "done":
            caveats.append({"what": "unfinished", "name": letter, "values": [side.run.status]})
        if side.settings is None:
            caveats.append({"what": "no_tape", "name": letter, "values": []})
    return caveats


def _steps(sides: Sequence[Side]) -> list[Json]:
    courses = [side.points_by_name("step") for side in sides]
    step_ids = _in_order([side.steps for side in sides])
    rows = [_row(sides, [course.get(i) for course in courses], i) for i in step_ids]
    return [{"step_id": i, **row} for i, row in zip(step_ids, rows, strict=True)]


def _row(sides: Sequence[Side], points: Sequence[Point | None], step_id: str = "") -> Json:
    values = [point and point.value for point in points]
    words = ("added", "removed", "changed", "same")
    return {
        "same": _alike(values),
        "changes": _changes(sides, values, words, step_id),
        "sides": [point and point.brief for point in points],
    }


def _step_brief(attempts: Sequence[ExecutionRecord]) -> Json:
    last = attempts[-1]
    summary = last["output_summary"]
    return {
        "query": query_text(last["raw_input"]),
        "tool": last["tool"],
        "status": last["status"],
        "found": summary["evidence_count"],
        "text": summary.get("text", ""),
        "seconds": round(last["duration_ms"] / 1000, 3),
        "replayed": any(record.get("replayed") for record in attempts),
        "by_hand": EDITED in last.get("effect", {}),
    }


def _evidence(sides: Sequence[Side]) -> Iterator[Json]:
    for key in _in_order([side.pieces for side in sides]):
        pieces = [side.pieces.get(key) for side in sides]
        results = [piece["result"] for piece in pieces if piece]
        places = [piece and (piece["rank"], piece["score"]) for piece in pieces]
        yield {
            **dict(zip(("source_id", "granularity", "kb"), key, strict=True)),
            "title": source_title(results[0]),
            "text_differs": not _alike([result["evidence"] for result in results]),
            "changes": _changes(sides, places, ("gained", "lost", "moved", "same")),
            "sides": [piece and pick(piece, "rank", "score", "found_by") for piece in pieces],
        }


def _claims(sides: Sequence[Side]) -> Iterator[Json]:
    for key in _in_order([side.claims for side in sides]):
        claims = [side.claims.get(key) for side in sides]
        sources = [
            claim and {(c["result_id"], c["kb_prefix"]) for c in claim["citations"]}
            for claim in claims
        ]
        yield {
            "text": next(claim["text"] for claim in claims if claim),
            "changes": _changes(sides, sources, ("gained", "lost", "recited", "shared")),
            "sides": claims,
        }


def _changes(
    sides: Sequence[Side], values: Sequence[Any], words: Sequence[str], step_id: str = ""
) -> list[str]:
    """Return the change of each run against the first; None is a run without it.

    Args:
        sides: the runs.
        values: of each run.
        words: for what was gained, lost and changed, and for what is the same.
        step_id: of the step whose values they are.
    """
    gained, lost, changed, same = words
    first, *rest = values
    changes = []
    for side, value in zip(sides[1:], rest, strict=True):
        lacking = sides[0] if first is None else side
        if value == first:
            changes.append("" if value is None else same)
        elif None in (first, value) and lacking.awaits(step_id):
            changes.append("open")
        elif value is None:
            changes.append(lost)
        else:
            changes.append(gained if first is None else changed)
    return changes


def _decisions(sides: Sequence[Side]) -> list[Json]:
    decisions = [side.points_by_name("decision").values() for side in sides]
    return [
        {"number": number, **_row(sides, points)}
        for number, points in enumerate(zip_longest(*decisions))
    ]


def _cost(side: Side) -> Json:
    own = [effect for effect in side.effects if not effect.replayed]
    tokens = sum(effect.tokens for effect in own)
    about = any(effect.tokens and not effect.counted for effect in own)
    document = run_document(side.run)
    return {
        **document["figures"],
        "needs_met": need_states(ledger(document))["reached"],
        "tokens": tokens,
        "about": about,
        "saved_tokens": sum(e.tokens for e in side.effects) - tokens,
    }


def _in_order(mappings: Sequence[Mapping[Key, Any]]) -> list[Key]:
    """Return every key once: those of the first mapping in its order, then the additional ones of the others."""
    return unique(key for mapping in mappings for key in mapping)
