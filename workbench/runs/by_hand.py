"""A result that is put in place by hand: of a step's tool, of a model, or of another effect on the tape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel, ValidationError

from workbench.errors import RunError, ToolError, shown
from workbench.records.tape import Effect, places, result_name
from workbench.runs.recording import Recording
from workbench.state import Json


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
        value: Any = _tool_value(run, at, effect, result)
    elif effect.kind == "model":
        value = _reply(effect, result)
    else:
        value = result
    try:
        return {result_name(effect): json.loads(json.dumps(value, allow_nan=False))}
    except (TypeError, ValueError) as error:
        raise RunError(f"The result of {at} is no JSON: {error}.") from None


def _reply(effect: Effect, result: Any) -> Json:
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    value = {name: reply for name, reply in effect.value.items() if name != "error"}
    return {**value, **({"chunks": [text]} if "chunks" in value else {"text": text})}


def _tool_value(run: Recording, at: str, effect: Effect, result: Any) -> Json:
    # LangGraph's import is most of a second, which a bench that is only shown does not pay
    from workbench.graphs.execute import RESULTS, make_body, make_record

    record, body = effect.value["record"], effect.value["body"] or {"output": {}, "results": []}
    fields = dict(result) if isinstance(result, Mapping) else {RESULTS: result}
    if RESULTS in fields:
        listed = (
            fields[RESULTS] if isinstance(fields[RESULTS], (list, tuple)) else [fields[RESULTS]]
        )
        fields[RESULTS] = [
            _piece(piece, f"{at}#{n}", record["tool"]) for n, piece in enumerate(listed, 1)
        ]
    output = {**body["output"], RESULTS: body["results"], **fields}
    version = next(v["plan"] for v in reversed(run.plans) if record["step_id"] in v["plan"].by_id())
    step = version.step(record["step_id"])
    try:
        schema: type[BaseModel] = run._workspace.tools[step.tool].output_schema
        unknown = [name for name in fields if name not in schema.model_fields]
        if unknown:
            raise ToolError(
                f"{step.tool} has no output {shown(unknown[0])}. It has: {', '.join(schema.model_fields)}."
            )
        new_body = make_body(schema.model_validate(output), step)
    except (ToolError, ValidationError) as error:
        raise RunError(f"The result of {at} does not fit: {error}") from None
    new = make_record(
        step, record["attempt"], record["iteration"], "success", record["started_at"], body=new_body
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
