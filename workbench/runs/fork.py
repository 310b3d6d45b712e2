"""A new run made from another: what may be edited, and the options with which the new run begins.

A fork begins at START with the same message, settings and history. Its tape answers whatever the edit does not touch,
so only what depends on the edit is done again; the run that it came from never changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from workbench.errors import RunError, ToolError, refusing, shown
from workbench.graphs.reviewers import Mismatch, repeat_answer
from workbench.records.store import RunRow
from workbench.records.tape import Effect, places, result_name
from workbench.runs.asking import (
    IsoDate,
    SettingsEdits,
    ThresholdEdits,
    checked_message,
    checked_points,
    read_plan,
)
from workbench.runs.calls import own_prompts
from workbench.runs.stored import Recording, checked_marks, found_pieces, prompts_of, tool_output
from workbench.settings import merge_settings, models_by_role
from workbench.state import REPORT_POINTS, REVIEW_POINTS, Data, Decision, Json, without_none
from workbench.text import as_text


def _points(review: Any, info: ValidationInfo) -> list[str]:
    return checked_points(review, info.context or REVIEW_POINTS)


class Edits(BaseModel):
    """The edits of a fork. What is not given is as in the run that it is made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: Annotated[Json | None, BeforeValidator(lambda plan: read_plan(plan).dump())] = None
    """The first plan; with ``at`` of a plan or step review, the plan decided on there."""
    decision: Json | None = None
    """``{"action", "edits"?, "message"?, "note"?}``, in place of the recorded one at ``at``."""
    query: Annotated[str, BeforeValidator(checked_message)] = ""
    """The message."""
    settings: SettingsEdits = {}
    """Single settings that differ."""
    at: str | None = None
    """A ``review_id``, as ``1-reflect``; the last one when only ``decision`` is given. What was decided before it is
    decided again, what came after it is asked again; so is it itself, when nothing is given in its place."""
    answers: list[Json] | None = None
    """Decisions in place of the recorded ones, in the order in which they are asked for."""
    graft: Json = {}
    """The origins of the steps of a graft, stored with the new run."""
    review: Annotated[list[str], BeforeValidator(_points)] = []
    """Review points."""
    without: list[str] = []
    """Ids of memories that are not recalled, by which everything may change."""
    thresholds: ThresholdEdits = {}
    """``min_evidence`` and ``min_top_score``. This and the next four replace single entries of the origin's."""
    needs: dict[str, str] = {}
    """Verdicts on needs, by need."""
    pieces: dict[str, str] = {}
    """Marks of pieces of evidence, ``pinned`` or ``struck``, by their keys."""
    prompts: dict[str, Json] = {}
    """Prompts that differ, as JSON, by name."""
    results: Json = {}
    """Results put in place by hand, by ``result_name`` of the effects."""
    as_of: IsoDate = ""
    """The date of what is true."""
    known: IsoDate = ""
    """The date of what is known."""
    mode: Literal["fork", "replay"] = "fork"
    """Of the tape."""
    sources: list[str] = []
    """Other runs whose tapes answer too, after the origin's; with the origin among them, in their order."""
    mismatch: Mismatch = "ask"
    """What happens to a recorded decision whose proposal has changed."""
    rest: Mismatch = "ask"
    """Who answers after the last recorded decision."""

    @property
    def dates(self) -> list[str]:
        """Return both dates; empty where neither is given."""
        return [self.as_of, self.known] if self.as_of or self.known else []

    @classmethod
    def read(cls, run: Recording, edits: Data) -> Edits:
        """Return the edits that ``Run.fork`` takes, where numbers, places and roles are those of the run.

        Raises:
            RunError: there is no such edit, effect or piece, or a setting is not one, or is a secret.
        """
        edits = dict(edits)
        if "result" in edits:
            edits["results"] = replaced_result(run, str(edits.pop("at", "")), edits.pop("result"))
        edits = without_none(edits)
        if models := edits.pop("models", None):
            edits["settings"] = merge_settings(
                edits.get("settings", {}), {"models": models_by_role(models)}
            )
        if prompts := edits.get("prompts"):
            edits["prompts"] = own_prompts(prompts, prompts_of(run))
        if marks := edits.get("pieces"):
            edits["pieces"] = checked_marks(marks, found_pieces(run))
        points = REPORT_POINTS if run.options.get("report") else REVIEW_POINTS
        with refusing(options=[*cls.model_fields, "models", "result"]):
            return cls.model_validate(edits, context=points)


_REPLACED = ("review", "without", "graft")
_MERGED = ("thresholds", "needs", "pieces", "prompts", "results")
_EDITED = (
    "plan",
    "decision",
    "query",
    "settings",
    "at",
    "answers",
    *_REPLACED,
    *_MERGED,
    "dates",
)


def forked(
    row: RunRow, decisions: Sequence[Decision], new_id: str, edits: Edits
) -> tuple[str, Json]:
    """Return the message and the options of a run that is made from another.

    Args:
        row: the run it is made from.
        decisions: that run's.
        new_id: of the new run.
        edits: what differs.

    Raises:
        RunError: there is no such review point.
    """
    origin = row["options"]
    changes = edits.model_dump(exclude_unset=True)
    own = [] if row["run_id"] in edits.sources else [row["run_id"]]
    options = {
        **origin,
        "debug": False,
        "incognito": False,
        "session": f"{origin['session']} ({edits.mode} {new_id})"[:200],
        "tape": {"mode": edits.mode, "sources": [*own, *edits.sources]},
        "settings": merge_settings(origin.get("settings", {}), edits.settings),
        "edited": [name for name in _EDITED if getattr(edits, name)],
        "mismatch": edits.mismatch,
        "rest": edits.rest,
    }
    options.pop("graft", None)  # what is made of a graft is no graft
    options |= {name: changes[name] for name in _REPLACED if name in changes}
    options |= {
        name: {**origin.get(name, {}), **changes[name]} for name in _MERGED if name in changes
    }
    if edits.dates:
        options["dates"] = edits.dates
    decided = [dict(d) for d in (decisions if edits.answers is None else edits.answers)]
    at = edits.at
    if at is not None and not decided and not options["review"]:
        raise RunError(
            f"Run {row['run_id']} has no review point. Name one for the new run: review=['reflect']."
        )
    decision = edits.decision
    if edits.plan and at is None:
        options["plan"] = edits.plan
    elif edits.plan:
        decision = {"action": "edit", "edits": {"plan": edits.plan}}
    if decision is not None or at is not None:
        number, point = _place(decided, at)
        decided = decided[:number]
        if decision is not None:
            repeat_answer({"point": point, **decision})  # refuses an invalid decision
            decided.append({"point": point, "who": "fork", **decision})
    return edits.query or row["message"], {**options, "decisions": decided}


def _place(decisions: list[Json], at: str | None) -> tuple[int, str]:
    """Return the number and the point of a review: of a decision, or of the next one.

    Raises:
        RunError: there is no such review point.
    """
    ids = [d["review_id"] for d in decisions]
    if at is None and not ids:
        raise RunError(
            "This run decided nothing that could be decided otherwise. Name the review point with `at`."
        )
    place = ids[-1] if at is None else at
    number, _, point = str(place).partition("-")
    if place not in ids and (number != str(len(ids)) or not point):
        raise RunError(
            f"No review point {place!r} in this run. It has: {', '.join(ids) or 'none'}."
        )
    return int(number), point


def replaced_result(run: Recording, at: str, result: Any) -> Json:
    """Return the value that takes the place of an effect's, by the effect's name.

    Args:
        run: the run that is forked.
        at: the place of the effect: ``step_1/1`` of a tool's call, ``writer/1`` of a model's.
        result: of a tool its results (texts, LangChain documents or pieces of evidence), or a mapping of the fields of
            its output that are replaced; of a model its reply; of anything else its value.

    Raises:
        RunError: there is no such effect, or it cannot have this result.
    """
    by_place = places(run.tape())
    effect = by_place.get(at)
    if effect is None:
        raise RunError(
            f"Run {run.run_id} has no effect at {shown(at)}. It has: {', '.join(by_place)}."
        )
    if effect.kind == "tool":
        value = _tool_value(run, at, effect, result)
    elif effect.kind == "model":
        text = as_text(result)
        value = {name: reply for name, reply in effect.value.items() if name != "error"}
        value |= {"chunks": [text]} if "chunks" in value else {"text": text}
    else:
        value = result
    try:
        return {result_name(effect): json.loads(json.dumps(value, allow_nan=False))}
    except (TypeError, ValueError) as error:
        raise RunError(f"The result of {at} is no JSON: {error}.") from None


def _tool_value(run: Recording, at: str, effect: Effect, result: Any) -> Json:
    # LangGraph's import is most of a second, which a bench that is only shown does not pay
    from workbench.graphs.execute import RESULTS, make_body, make_record

    record = effect.value["record"]
    fields = dict(result) if isinstance(result, Mapping) else {RESULTS: result}
    if RESULTS in fields:
        listed = (
            fields[RESULTS] if isinstance(fields[RESULTS], (list, tuple)) else [fields[RESULTS]]
        )
        fields[RESULTS] = [
            _piece(piece, f"{at}#{n}", record["tool"]) for n, piece in enumerate(listed, 1)
        ]
    output = {**tool_output(effect), **fields}
    version = next(
        v["plan"] for v in reversed(run.plans) if record["step_id"] in v["plan"].by_id()
    )
    step = version.step(record["step_id"])
    try:
        schema = run._workspace.tools[step.tool].output_schema
        unknown = [name for name in fields if name not in schema.model_fields]
        if unknown:
            raise ToolError(
                f"{step.tool} has no output {shown(unknown[0])}. It has: {', '.join(schema.model_fields)}."
            )
        new_body = make_body(schema.model_validate(output), step)
    except (ToolError, ValidationError) as error:
        raise RunError(f"The result of {at} does not fit: {error}") from None
    new = make_record(
        step,
        record["attempt"],
        record["iteration"],
        "success",
        record["started_at"],
        body=new_body,
    )
    return {"record": {**new, "raw_input": record["raw_input"]}, "body": new_body}


def _piece(piece: Any, name: str, tool: str) -> Any:
    """Return a piece of evidence: of a text and of a document what is missing is filled in."""
    if isinstance(piece, Document):
        name = str(piece.id or name)
        piece = {"evidence": piece.page_content, "metadata": {"doc_id": name, **piece.metadata}}
    if isinstance(piece, str):
        piece = {"evidence": piece}
    if not isinstance(piece, Mapping):
        return piece
    from workbench.tools.evidence import make_evidence

    return {**make_evidence(name, "", 1.0, tool, ""), "result_id": name, **piece}
