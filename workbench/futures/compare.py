"""Runs next to one another: where they part, and what each planned, found, decided, took and said.

The first run is what the others are compared with: ``gained`` is what another has and it has not. Nothing here says
which is the better one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import zip_longest
from operator import ne
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import RunError
from workbench.language.citing import marked_sentences
from workbench.plans import last_records
from workbench.records.figures import Identity, figures, identity
from workbench.records.prompts import Prompt
from workbench.records.proposals import JUDGED_BY
from workbench.records.tape import begun, comparable, fingerprints, key_of_record
from workbench.runs.fork import saved, spent
from workbench.runs.recording import Recording
from workbench.settings import MODELS
from workbench.state import Citation, Data, Decision, ExecutionRecord, Json
from workbench.text import fold
from workbench.views.blocks import Block
from workbench.views.comparison import LETTERS, beside
from workbench.views.labels import labels_for
from workbench.views.render import Shown

if TYPE_CHECKING:
    import pandas


Place = tuple[int, int, str]
"""Where something stands in the course of a run: pass, order within the pass, name."""
_LAST = 1_000_000
_MARKS = re.compile(r"\s*\[(\d+)\]")
_BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,3}[.、)）])\s*")


@dataclass(frozen=True)
class Point:
    """Something that two runs may differ in: ``value`` is compared, ``brief`` is shown."""

    where: str
    name: str
    value: Any
    brief: Any


class Side:
    """One run as it stands in a comparison: what it found and said, and its course, each worked out once."""

    def __init__(self, run: Recording):
        self.run, self.effects = run, run.tape()
        self.begun, self.knowledge = begun(self.effects), fingerprints(self.effects)
        self.plans, self.decisions = run.plans, run.decisions

    @property
    def settings(self) -> Json | None:
        """Return the settings that it worked with; None when it has no tape."""
        return self.begun.get("settings")

    @cached_property
    def pieces(self) -> dict[Identity, Json]:
        """Return the evidence by identity: rank, score, and who found it."""
        found, last = dict[Identity, list[Json]](), last_records(self.run.records)
        for step_id, results in self.run.found.items():
            for rank, piece in enumerate(results, 1):
                place = {"step_id": step_id, "tool": last[step_id]["tool"], "rank": rank, "score": piece["score"]}
                found.setdefault(identity(piece), []).append(place)
        return {
            identity(piece): {
                "rank": rank,
                "score": round(piece["score"], 6),
                "found_by": found.get(identity(piece), []),
                "piece": piece,
            }
            for rank, piece in enumerate(self.run.evidence, 1)
        }

    @cached_property
    def claims(self) -> dict[str, Json]:
        """The sentences and items of the answer, by what they say without marks and bullets; of a report its claims."""
        sources, found = _sources(self.run.citations), dict[str, Json]()
        claims = [(one["sentence"], one["cited"]) for one in self.run.support] if "report" in self.run.options else []
        for sentence, cited in claims or [(one, _MARKS.findall(one)) for one in marked_sentences(self.run.answer)]:
            bare = _BULLET.sub("", _MARKS.sub("", sentence)).strip()
            marks = dict.fromkeys(map(int, cited))
            if key := fold(bare):
                found.setdefault(key, {"text": bare, "citations": [sources[n] for n in marks if n in sources]})
        return found

    @cached_property
    def points(self) -> dict[Place, Point]:
        """Everything in which another run may differ, keyed by its place in the run; in no order."""
        run = self.run
        found = {
            (0, 0, ""): Point("question", "", run.message, run.message),
            (0, 3, ""): Point("query", "", run.query, run.query),
            (_LAST, 0, ""): Point("evidence", "", comparable(run.evidence), len(run.evidence)),
            (_LAST, 1, ""): Point("answer", "", run.answer, run.answer[:300]),
        }
        for name, value in (self.settings or {}).items():
            found[0, 1, name] = Point("settings", name, value, value)
        for name, version in self.knowledge.items():
            found[0, 2, name] = Point("knowledge", name, version, version[:12])
        if self.plans:
            first = self.plans[0]
            steps = [step.model_dump(mode="json") for step in first.steps]
            value = [steps, first.execution_mode, first.problem_statement]
            found[0, 4, ""] = Point("plan", "1", value, [step.step_id for step in first.steps])
        return {**found, **dict(self._passes())}

    def _passes(self) -> Iterator[tuple[Place, Point]]:
        """Decisions before a pass, its steps, its reflection, the decisions on that."""
        reached = 1
        for number, decision in enumerate(self.decisions):
            brief = decision_brief(decision)
            value = [comparable(decision["proposal"]), decision["action"], decision["edits"], decision["message"]]
            order, edited = 3 if decision["point"] == "reflect" else 0, set(decision["edits"])
            yield (reached, order, f"{number:06d}"), Point("decision", decision["review_id"], value, brief)
            if order and not (edited and edited <= set(JUDGED_BY)):  # else the same evidence is judged again
                reached += 1
        results: dict[tuple[str, int], list[Any]] = {}
        for effect in self.effects:
            if effect.kind == "tool" and effect.value["body"]:
                record, pieces = effect.value["record"], effect.value["body"]["results"]
                place = (record["step_id"], record["attempt"])
                results[place] = [[*identity(piece), round(piece["score"], 6)] for piece in pieces]
        for step_id, attempts in self.steps.items():
            value = [
                [key_of_record(r), r["status"], r["error"], results.get((step_id, r["attempt"]), [])] for r in attempts
            ]
            yield (attempts[0]["iteration"], 1, step_id), Point("step", step_id, value, _step(attempts))
        for reflection in self.run.reflections:
            n, signals = reflection["current_iteration"], Json(reflection["signals"])
            signals.pop("time_left_s", None)
            value = comparable({**reflection, "signals": signals})
            yield (n, 2, ""), Point("reflection", str(n), value, reflection["reasoning"])

    @cached_property
    def steps(self) -> dict[str, list[ExecutionRecord]]:
        """Return the attempts of each step, in their order."""
        steps: dict[str, list[ExecutionRecord]] = {}
        for record in sorted(self.run.records, key=lambda r: (r["iteration"], r["step_id"], r["attempt"])):
            steps.setdefault(record["step_id"], []).append(record)
        return steps

    def named(self, where: str) -> dict[str, Point]:
        """Return the points of one kind by name."""
        return {point.name: point for point in self.points.values() if point.where == where}


def decision_brief(decision: Decision) -> Json:
    """Return a decision with what it was made on."""
    names = ("review_id", "point", "action", "edits", "message", "who", "note")
    proposal = decision["proposal"]
    proposed = {name: proposal[name] for name in _PROPOSED if name in proposal}
    return {**{name: decision[name] for name in names}, "proposed": proposed}  # type: ignore[literal-required]


_PROPOSED = ("plan", "should_continue", "activate", "next_steps", "reasoning")


def _sources(citations: Iterable[Citation]) -> dict[int, Json]:
    """Return the evidence behind each number, by what it is: numbers shift from run to run."""
    names = ("title", "url", "doc_id", "kb_prefix")
    return {
        c["n"]: {"n": c["n"], "result_id": c["result_id"], **{k: str(c["source"].get(k) or "") for k in names}}
        for c in citations
    }


Key = TypeVar("Key", bound=Hashable)
_MODELS = (*MODELS, "rerank_model")
_STEPS = ("added", "removed", "same", "changed")
_PIECES = ("gained", "lost", "same", "moved")
_CLAIMS = ("gained", "lost", "shared", "recited")


@dataclass(frozen=True)
class Comparison(Shown):
    """Two to four runs next to one another. A list named for runs has one entry a run, None where it has nothing.

    Attributes:
        runs: ``{"run_id", "status", "message", "query", "kb", "origin"}`` each; the first is what the others are
            compared with.
        parts: the first point at which they part, ``{"where", "name", "pass", "values"}``; None when they do not.
            ``where`` is ``question``, ``settings``, ``knowledge``, ``query``, ``plan``, ``decision``, ``step``,
            ``reflection``, ``evidence`` or ``answer``.
        caveats: why a difference need not come from an edit: ``{"what", "name", "values"}``, of ``model``,
            ``settings``, ``knowledge``, ``question``, ``handlers``, ``tools``, ``versions``, ``unfinished``,
            ``no_tape``.
        plan: of each other run, ``Plan.diff`` from the first run's newest plan to its own; None without a plan.
        steps: ``{"step_id", "same", "changes", "sides"}``, a side ``{"tool", "status", "attempts", "found", "seconds",
            "replayed"}``; ``same`` is the same call with the same end and the same findings in all, ``changes`` has
            ``added``, ``removed``, ``changed``, ``same`` or ``""`` for each other run.
        evidence: ``{"source_id", "granularity", "kb", "title", "text_differs", "changes", "sides"}``; ``changes`` has
            ``gained``, ``lost``, ``moved``, ``same`` or ``""`` for each other run, and a side ``rank`` and ``score``
            after the merge and ``found_by``: step, tool, rank and score in what the step found.
        decisions: ``{"number", "same", "sides"}``, a side with what was proposed, what was answered, and by
            whom.
        claims: ``{"text", "changes", "sides"}``; ``changes`` has ``shared``, ``recited`` (the same words from other
            evidence), ``gained``, ``lost`` or ``""``, and a side the ``citations``, each with its source.
        cost: a run's figures (``figures.Figures``), and its ``tokens``, ``about`` so many where a server does not count
            them; ``saved_tokens`` are those that the tape spared.
        workspace: where the runs are, so that what is shown of them can graft; no part of the data.
    """

    runs: list[Json]
    parts: Json | None
    caveats: list[Json]
    plan: list[Json | None]
    steps: list[Json]
    evidence: list[Json]
    decisions: list[Json]
    claims: list[Json]
    cost: list[Json]
    workspace: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> Json:
        """As JSON."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "workspace"}
        return json.loads(json.dumps({"document": "workbench.comparison/1", **told}))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per piece of evidence: ``change_B``; ``rank_A``, ``score_A`` and ``steps_A`` of each run."""
        import pandas

        rows = []
        for piece in self.evidence:
            row = {name: piece[name] for name in ("source_id", "granularity", "kb", "title", "text_differs")}
            row |= {f"change_{LETTERS[n]}": change for n, change in enumerate(piece["changes"], 1)}
            for letter, side in zip(LETTERS, piece["sides"], strict=False):
                row |= {f"{name}_{letter}": side[name] if side else None for name in ("rank", "score")}
                row[f"steps_{letter}"] = ", ".join(f["step_id"] for f in side["found_by"]) if side else ""
            rows.append(row)
        return pandas.DataFrame(rows)

    def blocks(self) -> list[Block]:
        """As blocks of text, in the language of the first question."""
        return beside(self.to_dict(), labels_for(self.message))

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first question."""
        return str(self.runs[0]["message"])

    def __repr__(self) -> str:
        parted = f"they part at {self.parts['where']} {self.parts['name']}".rstrip() if self.parts else "no difference"
        return f"<Comparison of {', '.join(run['run_id'] for run in self.runs)}: {parted}>"


def compared(runs: Sequence[Recording], workspace: Any = None) -> Comparison:
    """See ``Workbench.compare``, which gives itself as the workspace."""
    if not 2 <= len(runs) <= len(LETTERS):
        raise RunError(f"Two to {len(LETTERS)} runs can be compared, and this is {len(runs)}.")
    sides = [Side(run) for run in runs]
    names = ("run_id", "status", "message", "query")
    return Comparison(
        runs=[
            {**{name: getattr(run, name) for name in names}, "kb": run.kb_prefix, "origin": run.origin} for run in runs
        ],
        parts=_parts(sides),
        caveats=_caveats(sides),
        plan=_plans(sides),
        steps=_steps(sides),
        evidence=_evidence(sides),
        decisions=_decisions(sides),
        claims=_claims(sides),
        cost=[_cost(side) for side in sides],
        workspace=workspace,
    )


def _parts(sides: Sequence[Side]) -> Json | None:
    """Return the first point of their course that is not the same in all."""
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
    """Return what differs besides plans and decisions, and what is not known."""
    stated: list[tuple[str, str, list[Any]]] = []
    if all(side.settings is not None for side in sides):
        for what in ("settings", "prompts", "versions"):
            known = [side.begun.get(what) or {} for side in sides]
            for name in _in_order(known):
                values = [own.get(name) for own in known]
                if what == "prompts":
                    values = [own and Prompt(*name.split("."), **own).label for own in values]
                stated.append(("model" if what == "settings" and name in _MODELS else what, name, values))
        for what in ("handlers", "tools"):
            stated.append((what, "", [sorted(side.begun.get(what) or []) for side in sides]))
    for name in _in_order([side.knowledge for side in sides]):
        versions = [side.knowledge.get(name) for side in sides]
        if None not in versions:  # a base that only one of them asked is seen in its plan
            stated.append(("knowledge", name, [str(version)[:12] for version in versions]))
    stated.append(("question", "", [side.run.message for side in sides]))
    found = [{"what": what, "name": name, "values": values} for what, name, values in stated if not _alike(values)]
    for letter, side in zip(LETTERS, sides, strict=False):
        if side.run.status != "done":
            found.append({"what": "unfinished", "name": letter, "values": [side.run.status]})
        if side.settings is None:
            found.append({"what": "no_tape", "name": letter, "values": []})
    return found


def _plans(sides: Sequence[Side]) -> list[Json | None]:
    first = sides[0].plans
    return [first[-1].diff(side.plans[-1]) if first and side.plans else None for side in sides[1:]]


def _steps(sides: Sequence[Side]) -> list[Json]:
    rows, courses = [], [side.named("step") for side in sides]
    for step_id in _in_order([side.steps for side in sides]):
        points = [course.get(step_id) for course in courses]
        values = [point and point.value for point in points]
        row = {"step_id": step_id, "same": _alike(values), "changes": _changes(values, _STEPS, ne)}
        rows.append({**row, "sides": [point and point.brief for point in points]})
    return rows


def _step(attempts: Sequence[ExecutionRecord]) -> Json:
    last = attempts[-1]
    return {
        "tool": last["tool"],
        "status": last["status"],
        "attempts": len(attempts),
        "found": last["output_summary"]["evidence_count"],
        "seconds": round(last["duration_ms"] / 1000, 3),
        "replayed": any(record.get("replayed", False) for record in attempts),
    }


def _evidence(sides: Sequence[Side]) -> list[Json]:
    rows, pieces = [], [side.pieces for side in sides]
    for key in _in_order(pieces):
        places = [of.get(key) for of in pieces]
        found = [place["piece"] for place in places if place]
        shown = [place and {name: place[name] for name in ("rank", "score", "found_by")} for place in places]
        rows.append(
            {
                **dict(zip(("source_id", "granularity", "kb"), key, strict=True)),
                "title": str(found[0]["metadata"].get("title") or key[0]),
                "text_differs": not _alike([piece["evidence"] for piece in found]),
                "changes": _changes(places, _PIECES, _moved),
                "sides": shown,
            }
        )
    return rows


def _moved(one: Data, other: Data) -> bool:
    return (one["rank"], one["score"]) != (other["rank"], other["score"])


def _claims(sides: Sequence[Side]) -> list[Json]:
    rows, claims = [], [side.claims for side in sides]
    for key in _in_order(claims):
        stated = [of.get(key) for of in claims]
        text = next(claim["text"] for claim in stated if claim)
        cited = [claim and {"citations": claim["citations"]} for claim in stated]
        rows.append({"text": text, "changes": _changes(cited, _CLAIMS, _recited), "sides": cited})
    return rows


def _recited(first: Data, other: Data) -> bool:
    behind = [{(c["result_id"], c["kb_prefix"]) for c in side["citations"]} for side in (first, other)]
    return behind[0] != behind[1]


def _changes(sides: Sequence[Any], words: Sequence[str], differ: Callable[[Any, Any], bool]) -> list[str]:
    """Return the change of each run next to the first one, in these words: more, less, the same, other."""
    more, less, same, other = words
    first, *rest = sides
    changes = []
    for side in rest:
        if side is None:
            changes.append("" if first is None else less)
        elif first is None:
            changes.append(more)
        else:
            changes.append(other if differ(first, side) else same)
    return changes


def _decisions(sides: Sequence[Side]) -> list[Json]:
    rows = []
    for number, points in enumerate(zip_longest(*(side.named("decision").values() for side in sides))):
        same = _alike([point and point.value for point in points])
        rows.append({"number": number, "same": same, "sides": [point and point.brief for point in points]})
    return rows


def _cost(side: Side) -> Json:
    names = ("records", "log", "statistics", "reflections", "evidence", "citations", "support")
    told = figures({name: getattr(side.run, name, None) or [] for name in names})
    took, spared = spent(side.effects), saved(side.effects)
    return {**told, "tokens": took["tokens"], "about": took["about"], "saved_tokens": spared["tokens"]}


def _in_order(keyed: Sequence[Mapping[Key, Any]]) -> list[Key]:
    """Return every key once: those of the first in its order, then what the others have besides."""
    return list(dict.fromkeys(key for one in keyed for key in one))
