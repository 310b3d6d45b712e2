"""Runs beside one another: where they part, and what each planned, found, decided, took and said.

The first run is what the others are compared with: ``gained`` is what another has and it has not. Nothing here says
which is the better one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import RunError
from workbench.fork import saved, spent
from workbench.futures.sides import Side, by_step, decision_brief
from workbench.labels import Labels, labels_for
from workbench.run import Run
from workbench.show import Block, page_html, plain
from workbench.show.beside import LETTERS, beside
from workbench.state import ExecutionRecord
from workbench.tape import differences

if TYPE_CHECKING:
    import pandas

Key = TypeVar("Key", bound=Hashable)
_DECIDED = ("proposal", "action", "edits", "message")
MODELS = ("chat_model", "embedding_model", "rerank_model")


@dataclass(frozen=True)
class Comparison:
    """Two to four runs beside one another. A list named for runs has one entry a run, None where it has nothing.

    Attributes:
        runs: ``{"run_id", "status", "message", "query", "kb", "origin"}`` each; the first is what the others are
            compared with.
        parts: the first point at which they part, ``{"where", "name", "pass", "values", "differs"}``; None when they do
            not. ``where`` is ``question``, ``settings``, ``knowledge``, ``query``, ``plan``, ``decision``, ``step``,
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
        decisions: ``{"number", "same", "differs", "sides"}``, a side with what was proposed, what was answered, and by
            whom.
        claims: ``{"text", "changes", "sides"}``; ``changes`` has ``shared``, ``recited`` (the same words from other
            evidence), ``gained``, ``lost`` or ``""``, and a side the ``citations``, each with its source.
        cost: a run's figures (``counted.Figures``), and its ``tokens``, ``about`` so many where a server does not count
            them; ``saved_tokens`` are those that the tape spared.
        workspace: where the runs are, so that what is shown of them can graft; no part of the data.
    """

    runs: list[dict[str, Any]]
    parts: dict[str, Any] | None
    caveats: list[dict[str, Any]]
    plan: list[dict[str, Any] | None]
    steps: list[dict[str, Any]]
    evidence: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    cost: list[dict[str, Any]]
    workspace: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "workspace"}
        return json.loads(json.dumps({"document": "workbench.comparison/1", **told}))

    def to_frame(self) -> pandas.DataFrame:
        """One row a piece of evidence: ``change_B`` beside ``rank_A``, ``score_A``, ``steps_A`` of each run."""
        rows = []
        for piece in self.evidence:
            row = {name: piece[name] for name in ("source_id", "granularity", "kb", "title", "text_differs")}
            row |= {f"change_{LETTERS[n]}": change for n, change in enumerate(piece["changes"], 1)}
            for letter, side in zip(LETTERS, piece["sides"], strict=False):
                row |= {f"{name}_{letter}": side[name] if side else None for name in ("rank", "score")}
                row[f"steps_{letter}"] = ", ".join(f["step_id"] for f in side["found_by"]) if side else ""
            rows.append(row)
        return _frame(rows)

    def claims_frame(self) -> pandas.DataFrame:
        """One row a claim: ``change_B`` beside ``sources_A``, the results behind it in each run."""
        rows = []
        for claim in self.claims:
            row = {"claim": claim["text"]}
            row |= {f"change_{LETTERS[n]}": change for n, change in enumerate(claim["changes"], 1)}
            for letter, side in zip(LETTERS, claim["sides"], strict=False):
                row[f"sources_{letter}"] = ", ".join(c["result_id"] for c in side["citations"]) if side else ""
            rows.append(row)
        return _frame(rows)

    def blocks(self) -> list[Block]:
        """As blocks of text, in the language of the first question."""
        return beside(self.to_dict(), self._labels)

    @property
    def _labels(self) -> Labels:
        return labels_for(self.runs[0]["message"])

    def _ipython_display_(self) -> None:
        from workbench.widgets.shown import shown

        def widget() -> Any:
            from workbench.widgets.beside import beside_of

            return beside_of(self)

        shown({"text/plain": str(self), "text/html": self._repr_html_()}, widget)

    def _repr_html_(self) -> str:
        return page_html(self.blocks(), self._labels)

    def __str__(self) -> str:
        return plain(self.blocks(), 100)

    def __repr__(self) -> str:
        parted = f"they part at {self.parts['where']} {self.parts['name']}".rstrip() if self.parts else "no difference"
        return f"<Comparison of {', '.join(run['run_id'] for run in self.runs)}: {parted}>"


def compared(runs: Sequence[Run], workspace: Any = None) -> Comparison:
    """See ``Workbench.compare``, which gives itself as the workspace."""
    if not 2 <= len(runs) <= len(LETTERS):
        raise RunError(f"Two to {len(LETTERS)} runs can be compared, and this is {len(runs)}.")
    sides = [Side(run) for run in runs]
    names = ("run_id", "status", "message", "query", "kb", "origin")
    return Comparison(
        runs=[{name: getattr(side, name) for name in names} for side in sides],
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


def _parts(sides: Sequence[Side]) -> dict[str, Any] | None:
    """The first point of their course that is not the same in all."""
    courses = [side.points() for side in sides]
    untaped = any(side.settings is None for side in sides)
    for place in sorted({place for course in courses for place in course}):
        points = [course.get(place) for course in courses]
        known = next(point for point in points if point)
        if untaped and known.where in ("settings", "knowledge"):  # not known is not another
            continue
        values = [point.value if point else None for point in points]
        if any(value != values[0] for value in values):
            number = place[0] if known.where in ("decision", "step", "reflection") else None
            other = next(value for value in values if value != values[0])
            return {
                "where": known.where,
                "name": known.name,
                "pass": number,
                "values": [point.brief if point else None for point in points],
                "differs": [path for path in differences(values[0], other) if path][:10],
            }
    return None


def _caveats(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """What differs beside plans and decisions, and what is not known."""
    found: list[dict[str, Any]] = []

    def note(what: str, name: str, values: Sequence[Any]) -> None:
        if any(value != values[0] for value in values):
            found.append({"what": what, "name": name, "values": list(values)})

    taped = [side for side in sides if side.settings is not None]
    if len(taped) == len(sides):
        for name in dict.fromkeys(name for side in taped for name in side.settings or {}):
            note("model" if name in MODELS else "settings", name, [(side.settings or {}).get(name) for side in taped])
        for what in ("handlers", "tools"):
            note(what, "", [sorted(side.begin.get(what) or []) for side in taped])
        versions = [side.begin.get("versions") or {} for side in taped]
        for name in sorted({name for one in versions for name in one}):
            note("versions", name, [one.get(name) for one in versions])
    for name in dict.fromkeys(name for side in sides for name in side.knowledge):
        having = [side.knowledge.get(name) for side in sides]
        if None not in having:  # a base that only one of them asked is seen in its plan
            note("knowledge", name, [str(version)[:12] for version in having])
    note("question", "", [side.message for side in sides])
    for letter, side in zip(LETTERS, sides, strict=False):
        if side.status != "done":
            found.append({"what": "unfinished", "name": letter, "values": [side.status]})
        if side.settings is None:
            found.append({"what": "no_tape", "name": letter, "values": []})
    return found


def _plans(sides: Sequence[Side]) -> list[dict[str, Any] | None]:
    first = sides[0].plans
    return [first[-1].diff(side.plans[-1]) if first and side.plans else None for side in sides[1:]]


def _steps(sides: Sequence[Side]) -> list[dict[str, Any]]:
    attempts = [by_step(side.records) for side in sides]
    courses = [{p.name: p.value for p in side.points().values() if p.where == "step"} for side in sides]
    return [
        {
            "step_id": step_id,
            "same": all(course.get(step_id) == courses[0].get(step_id) for course in courses),
            "changes": [_step_change(courses[0].get(step_id), course.get(step_id)) for course in courses[1:]],
            "sides": [_step(of[step_id]) if step_id in of else None for of in attempts],
        }
        for step_id in _in_order(attempts)
    ]


def _step_change(one: Any, other: Any) -> str:
    if one is None or other is None:
        return "added" if other else "removed" if one else ""
    return "same" if one == other else "changed"


def _step(attempts: Sequence[ExecutionRecord]) -> dict[str, Any]:
    last = attempts[-1]
    return {
        "tool": last["tool"],
        "status": last["status"],
        "attempts": len(attempts),
        "found": last["output_summary"]["evidence_count"],
        "seconds": round(last["duration_ms"] / 1000, 3),
        "replayed": any(record.get("replayed", False) for record in attempts),
    }


def _evidence(sides: Sequence[Side]) -> list[dict[str, Any]]:
    rows, pieces = [], [side.pieces for side in sides]
    for key in _in_order(pieces):
        having = [of.get(key) for of in pieces]
        texts = {one["piece"]["evidence"] for one in having if one}
        first = next(one["piece"] for one in having if one)
        rows.append(
            {
                "source_id": key[0],
                "granularity": key[1],
                "kb": key[2],
                "title": str(first["metadata"].get("title") or key[0]),
                "text_differs": len(texts) > 1,
                "changes": [_change(having[0], one, "same", "moved", _moved) for one in having[1:]],
                "sides": [{k: v for k, v in one.items() if k != "piece"} if one else None for one in having],
            }
        )
    return rows


def _moved(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one["rank"], one["score"]) != (other["rank"], other["score"])


def _claims(sides: Sequence[Side]) -> list[dict[str, Any]]:
    rows, claims = [], [side.claims for side in sides]
    for key in _in_order(claims):
        having = [of.get(key) for of in claims]
        rows.append(
            {
                "text": next(one["text"] for one in having if one),
                "changes": [_change(having[0], one, "shared", "recited", _recited) for one in having[1:]],
                "sides": [{"citations": one["citations"]} if one else None for one in having],
            }
        )
    return rows


def _recited(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    behind = [{(c["result_id"], c["kb_prefix"]) for c in side["citations"]} for side in (one, other)]
    return behind[0] != behind[1]


def _change(one: Any, other: Any, same: str, moved: str, differ: Callable[[Any, Any], bool]) -> str:
    if one is None or other is None:
        return "gained" if other else "lost" if one else ""
    return moved if differ(one, other) else same


def _decisions(sides: Sequence[Side]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    made = [[p.value for p in side.points().values() if p.where == "decision"] for side in sides]
    for number in range(max(len(side.decisions) for side in sides)):
        having = [side.decisions[number] if number < len(side.decisions) else None for side in sides]
        values = [of[number] if number < len(of) else None for of in made]
        other = next((value for value in values if value != values[0]), values[0])
        rows.append(
            {
                "number": number,
                "same": all(value == values[0] for value in values),
                "differs": [
                    name for name, one, two in zip(_DECIDED, values[0] or (), other or (), strict=False) if one != two
                ],
                "sides": [decision_brief(one) if one else None for one in having],
            }
        )
    return rows


def _cost(side: Side) -> dict[str, Any]:
    took, spared = spent(side.effects), saved(side.effects)
    return {**side.figures, "tokens": took["tokens"], "about": took["about"], "saved_tokens": spared["tokens"]}


def _in_order(keyed: Sequence[Mapping[Key, Any]]) -> list[Key]:
    """Every key once: those of the first in its order, then what the others have beside it."""
    return list(dict.fromkeys(key for one in keyed for key in one))


def _frame(rows: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame([dict(row) for row in rows])
