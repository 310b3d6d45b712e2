"""One run as it stands in a comparison: what it was given, did, found and said, read once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.canonical import comparable
from workbench.counted import Figures, figures
from workbench.language.citations import marked_sentences
from workbench.plans import ENDED_WELL, Plan, last_records
from workbench.run import Run
from workbench.state import Citation, Decision, ExecutionRecord, Reflection, RetrievalResult
from workbench.tape import Effect, key_of_record
from workbench.text import fold

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
    """What a comparison reads of one run; everything but the run's own row is read once."""

    def __init__(self, run: Run):
        self.run_id, self.status, self.origin = run.run_id, run.status, run.origin
        self.message, self.query, self.kb = run.message, run.query, run.kb_prefix
        self.effects: list[Effect] = run.tape()
        self.records: list[ExecutionRecord] = run.records
        self.plans: list[Plan] = run.plans
        self.decisions: list[Decision] = run.decisions
        self.reflections: list[Reflection] = run.reflections
        self.evidence: list[RetrievalResult] = run.evidence
        self.answer, self.citations = run.answer, run.citations
        names = ("records", "log", "statistics", "reflections", "evidence", "citations")
        self.figures: Figures = figures({name: getattr(run, name) for name in names})
        self.begin: dict[str, Any] = {e.name: e.value for e in self.effects if e.kind == "begin"}

    @property
    def settings(self) -> dict[str, Any] | None:
        """The settings that it worked with; None when it has no tape."""
        return self.begin.get("settings")

    @cached_property
    def knowledge(self) -> dict[str, str]:
        """Fingerprint by knowledge base."""
        read = [e for e in self.effects if e.kind == "knowledge" and e.name.endswith(".fingerprint")]
        return {e.name.removesuffix(".fingerprint"): str(e.value) for e in read}

    @cached_property
    def found(self) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
        """Which steps found a piece: step, tool, rank in what it found, score."""
        last, found = last_records(self.records), dict[tuple[str, str, str], list[dict[str, Any]]]()
        for effect in self.effects:
            record = effect.value["record"] if effect.kind == "tool" else None
            if not record or record["status"] not in ENDED_WELL or not effect.value["body"]:
                continue
            if record["attempt"] != last[record["step_id"]]["attempt"]:
                continue
            for rank, piece in enumerate(effect.value["body"]["results"], 1):
                place = {"step_id": record["step_id"], "tool": record["tool"], "rank": rank, "score": piece["score"]}
                found.setdefault(identity(piece), []).append(place)
        return found

    @cached_property
    def pieces(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """The evidence by identity: rank, score, and who found it."""
        return {
            identity(piece): {
                "rank": rank,
                "score": round(piece["score"], 6),
                "found_by": self.found.get(identity(piece), []),
                "tools": list(piece["metadata"].get("tools", [])),
                "piece": piece,
            }
            for rank, piece in enumerate(self.evidence, 1)
        }

    @cached_property
    def claims(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The sentences and items of the answer, by what they say without marks and bullets."""
        sources, found, seen = _sources(self.citations), dict[tuple[str, int], dict[str, Any]](), dict[str, int]()
        for sentence in marked_sentences(self.answer):
            bare = _BULLET.sub("", _MARKS.sub("", sentence)).strip()
            said = fold(bare)
            if not said:
                continue
            seen[said] = seen.get(said, 0) + 1
            marks = dict.fromkeys(int(n) for n in _MARKS.findall(sentence))
            found[said, seen[said]] = {"text": bare, "citations": [sources[n] for n in marks if n in sources]}
        return found

    def points(self) -> dict[Place, Point]:
        """Everything in which another run may differ, by where it stands in the course of the run."""
        found = {
            (0, 0, ""): Point("question", "", self.message, self.message),
            (0, 3, ""): Point("query", "", self.query, self.query),
            (_LAST, 0, ""): Point("evidence", "", comparable(self.evidence), len(self.evidence)),
            (_LAST, 1, ""): Point("answer", "", self.answer, self.answer[:300]),
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
            order = 3 if decision["point"] == "reflect" else 0
            yield (reached, order, f"{number:06d}"), Point("decision", decision["review_id"], value, brief)
            if order and set(decision["edits"]) != {"thresholds"}:  # those alone judge the same pass anew
                reached += 1
        for step_id, attempts in by_step(self.records).items():
            one = attempts[-1]
            value = [step_value(record, self._ids(record)) for record in attempts]
            brief = {"tool": one["tool"], "status": one["status"], "found": one["output_summary"]["evidence_count"]}
            yield (attempts[0]["iteration"], 1, step_id), Point("step", step_id, value, brief)
        for reflection in self.reflections:
            n = reflection["current_iteration"]
            yield (n, 2, ""), Point("reflection", str(n), comparable(_judged(reflection)), reflection["reasoning"])

    def _ids(self, record: ExecutionRecord) -> list[Any]:
        return self._results.get((record["step_id"], record["attempt"]), [])

    @cached_property
    def _results(self) -> dict[tuple[str, int], list[Any]]:
        made = [e.value for e in self.effects if e.kind == "tool" and e.value["body"]]
        return {
            (value["record"]["step_id"], value["record"]["attempt"]): [
                [*identity(piece), round(piece["score"], 6)] for piece in value["body"]["results"]
            ]
            for value in made
        }


def identity(piece: RetrievalResult) -> tuple[str, str, str]:
    """What tells pieces of evidence apart, as the merge does."""
    return piece["source_id"], piece["granularity"], str(piece["metadata"].get("kb_prefix", ""))


def by_step(records: Iterable[ExecutionRecord]) -> dict[str, list[ExecutionRecord]]:
    """The attempts of each step, in their order."""
    found: dict[str, list[ExecutionRecord]] = {}
    for record in sorted(records, key=lambda r: (r["iteration"], r["step_id"], r["attempt"])):
        found.setdefault(record["step_id"], []).append(record)
    return found


def step_value(record: ExecutionRecord, found: Sequence[Any]) -> list[Any]:
    """What two attempts must share to be the same: what determined them, how they ended, what they found."""
    return [key_of_record(record), record["status"], record["error"], list(found)]


def decision_brief(decision: Decision) -> dict[str, Any]:
    """A decision with what it was made on, short."""
    proposal = decision["proposal"]
    if decision["point"] == "reflect":
        steps = [*proposal.get("activate", []), *(step.get("step_id", "?") for step in proposal.get("next_steps", []))]
        proposed = {"should_continue": proposal.get("should_continue", False), "steps": steps}
        proposed["reasoning"] = proposal.get("reasoning", "")
    else:
        plan = proposal.get("plan") or {}
        steps = [step["step_id"] for step in plan.get("steps", [])]
        proposed = {"version": plan.get("version"), "steps": steps}
        proposed |= {"plan": plan} if "plan" in decision["edits"] else {}
    kept = ("review_id", "point", "action", "edits", "message", "who", "note")
    return {**{name: decision[name] for name in kept}, "proposed": proposed}  # type: ignore[literal-required]


def _judged(reflection: Reflection) -> Mapping[str, Any]:
    signals = {name: value for name, value in reflection["signals"].items() if name != "time_left_s"}
    return {**reflection, "signals": signals}


def _sources(citations: Iterable[Citation]) -> dict[int, dict[str, Any]]:
    """The evidence behind each number, by what it is: numbers shift from run to run."""
    names = ("title", "url", "doc_id", "kb_prefix")
    return {
        c["n"]: {"n": c["n"], "result_id": c["result_id"], **{k: str(c["source"].get(k) or "") for k in names}}
        for c in citations
    }
