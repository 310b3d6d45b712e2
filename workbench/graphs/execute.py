"""The executor: one attempt at one step. It never raises for what a tool does; every attempt leaves a record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

from langgraph.runtime import Runtime
from pydantic import BaseModel, TypeAdapter, ValidationError

from workbench.errors import (
    KnowledgeError,
    ToolError,
    UnfitCondition,
    UnknownKnowledge,
    WorkbenchError,
    WorkspaceError,
    shown,
)
from workbench.events import progress
from workbench.knowledge.dated import dated, last_day
from workbench.plans import Plan, PlanStep, last_records
from workbench.ports import Context
from workbench.records.tape import Tape, attempt_arguments, call_parts
from workbench.state import (
    ExecutionRecord,
    Json,
    Reason,
    RetrievalResult,
    RetrievalState,
    StepStatus,
    StepTask,
    SubStep,
    pick,
)
from workbench.text import clean
from workbench.tools.registry import resolve_input
from workbench.tools.tool import StepLog, contained, plain, read_input, shown_results
from workbench.views.labels import Labels

_EVIDENCE = TypeAdapter(list[RetrievalResult])
RESULTS = "results"
"""What a body keeps apart from the rest of an output, and a record as a reference: it may be long."""


async def executor(task: StepTask, runtime: Runtime[Context]) -> Json:
    """Run the step, keep its record and body, and give the record.

    An attempt whose record is already kept is not run again: it had finished when its process was killed.
    """
    context = runtime.context
    step = PlanStep.model_validate(task["step"])
    before = context.runs.record(task["run_id"], step.step_id, task["attempt"])
    if before is not None:
        return {"records": [before]}
    which = pick(task, "attempt", "iteration")
    runtime.stream_writer(
        {"retrieval_step_start": {"step_id": step.step_id, "tool": step.tool, **which}}
    )
    effect = describe_effect(task, step, context)
    effect["limit_s"] = time_limit(task, step)
    taped = from_tape(task, step, effect, context.tape)
    if taped is None and task["attempt"] > 1:
        await asyncio.sleep(context.settings.retry_delay_s)
    record, body = taped or await attempt(task, step, context)
    record["effect"] = effect
    context.runs.save_record(task["run_id"], record, body)
    summary = record["output_summary"]
    runtime.stream_writer(
        {
            "retrieval_step_done": {
                "step_id": step.step_id,
                "status": record["status"],
                "duration_ms": record["duration_ms"],
                **which,
                **summary,
            }
        }
    )
    progress_details = {
        "error": record["error"],
        "agent_type": step.tool,
        "retrieval_count": summary["evidence_count"],
    }
    runtime.stream_writer(progress("retrieval", **_done(task, context), **progress_details))
    return {"records": [record]}


def describe_effect(task: StepTask, step: PlanStep, context: Context) -> Json:
    """Return what determines this attempt: the documents, the tool's input and budget, and the calls before it."""
    args = attempt_arguments(step, task["kb_prefix"], task["attempt"], task.get("upstream", {}))
    version = ""
    with suppress(UnknownKnowledge):  # the attempt fails for it, and leaves its record
        version = dated(context.knowledge.get(args["kb"]), task["dates"]).fingerprint()
    return context.tape.marked(step.tool, {"version": version, "input": args}, step.step_id)


def from_tape(
    task: StepTask, step: PlanStep, effect: Json, tape: Tape
) -> tuple[ExecutionRecord, Json | None] | None:
    """Return the record and body of the same call on another run's tape, when this run may take them from there.

    Raises:
        Divergence: this run must take them from there, and the tape does not have them.
    """
    effect_before = tape.find("tool", step.tool, call_parts(effect), step.step_id)
    if effect_before is None:
        return None
    record = effect_before.value["record"]
    body = effect_before.value["body"]
    if tape.mode == "fork" and record["status"] == "timeout":
        limit = record["effect"].get("limit_s", effect["limit_s"])
        if effect["limit_s"] > limit + 0.5:
            return None  # it was cut short by a budget that is larger now
    own = {
        "step_id": step.step_id,
        **pick(task, "attempt", "iteration"),
        "raw_output_ref": f"{step.step_id}/{task['attempt']}" if body else None,
        "input_summary": {**record["input_summary"], "objective": step.objective},
    }
    return cast(ExecutionRecord, {**record, **own, "replayed": True}), body


def time_limit(task: StepTask, step: PlanStep) -> float:
    """Return the seconds of an attempt: the smaller of the step's limit and what is left of the run's budget."""
    return min(step.budget.timeout_s, task["remaining_s"])


async def attempt(
    task: StepTask, step: PlanStep, context: Context
) -> tuple[ExecutionRecord, Json | None]:
    """Return one attempt, timed and bounded: its record, and its body when it found anything out.

    The time-out is the smaller of the step's own and what is left of the run's budget. A synchronous tool runs in a
    thread: when it is late its result is dropped. A cancelled run records the attempt as cancelled, and stops.
    """
    log = StepLog(context.clock)
    clock = context.clock
    started_at = clock.now().isoformat()
    began = clock.monotonic()
    limit = time_limit(task, step)
    raw_input = step.tool_input
    body: Json | None = None
    status: StepStatus = "success"
    error: str | None = None
    reason: Reason | None = None

    def record(status: StepStatus) -> ExecutionRecord:
        return make_record(
            step,
            task["attempt"],
            task["iteration"],
            status,
            started_at,
            error=error,
            reason=reason,
            raw_input=raw_input,
            seconds=clock.monotonic() - began,
            body=body,
            sub_steps=log.sub_steps,
        )

    try:
        raw_input = _inputs(task, step, context)
        async with asyncio.timeout(limit):  # `wait_for` loses a cancel that comes with the result
            with contained(step.tool):
                output = await _call(step, raw_input, task, context, log)
        body = make_body(output, step)
        status, error = _partial(log.sub_steps)
    except TimeoutError:
        status = "timeout"
        reason = Reason(kind="took_longer", tool=step.tool, n=f"{limit:g}")
    except asyncio.CancelledError:
        if context.runs.is_cancelled(task["run_id"]):
            context.runs.save_record(task["run_id"], record("cancelled"), None)
        raise
    except Exception as fault:
        unfit = isinstance(fault, UnknownKnowledge | UnfitCondition)
        if isinstance(fault, WorkspaceError | KnowledgeError) and not unfit:
            # a full disk or a damaged index: the run stops, and is resumed once that is repaired
            raise
        # a tool may raise anything else; the record shows it, and the reflector reacts to it
        status = "failed"
        name = "" if isinstance(fault, WorkbenchError) else f"{type(fault).__name__}: "
        error = f"{name}{fault}"
    return record(status), body


def _inputs(task: StepTask, step: PlanStep, context: Context) -> Json:
    """Return the step's input with references filled from the outputs of earlier steps, and what its budget says."""
    bodies = {
        i: context.runs.body(task["run_id"], ref) for i, ref in task["sources"].items() if ref
    }
    outputs = {i: {**body["output"], RESULTS: body["results"]} for i, body in bodies.items()}
    inputs = resolve_input(step, outputs)
    fields = context.tools[step.tool].input_schema.model_fields
    for name, value in (("top_k", step.budget.top_k), ("timeout_s", step.budget.timeout_s)):
        if name in fields:
            inputs.setdefault(name, value)
    if task["dates"][0] and "as_of" in fields:
        inputs.setdefault("as_of", last_day(task["dates"][0]))
    return inputs


async def _call(
    step: PlanStep, inputs: Json, task: StepTask, context: Context, log: StepLog
) -> BaseModel:
    tool = context.tools[step.tool]
    base = dated(
        context.searched.get(inputs.get("kb_prefix") or task["kb_prefix"]), task["dates"]
    )
    return shown_results(await tool(read_input(tool, inputs), base, log), base)


def _partial(sub_steps: list[SubStep]) -> tuple[StepStatus, str | None]:
    """Return ``partial`` with the errors, if some of the tool's own steps failed."""
    failed = [s for s in sub_steps if "error" in s["detail"]]
    if not failed:
        return "success", None
    return "partial", "; ".join(f"{s['name']}: {s['detail']['error']}" for s in failed)


def make_body(output: BaseModel, step: PlanStep) -> Json:
    """Return the body of an output as JSON, whatever a custom tool returned.

    Raises:
        ToolError: it is no output, or a result in it is no evidence.
    """
    if not isinstance(output, BaseModel):
        raise ToolError(
            f"{step.tool} returned a {type(output).__name__}. A tool returns its output schema."
        )
    data = plain(output.model_dump())
    results = data.pop("results", [])
    try:
        _EVIDENCE.validate_python(results)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, ("results", *fault["loc"])))
        raise ToolError(
            f"{step.tool} returned {where} = {shown(fault['input'])}: {fault['msg']}."
        ) from None
    # also where the tool has no ``top_k`` of its own
    limit = min(step.budget.top_k, step.budget.max_evidence_count)
    return {"results": results[:limit], "output": data, "found": len(results)}


def make_record(
    step: PlanStep,
    attempt: int,
    iteration: int,
    status: StepStatus,
    started_at: str,
    *,
    error: str | None = None,
    reason: Reason | None = None,
    raw_input: Json | None = None,
    seconds: float = 0.0,
    body: Json | None = None,
    sub_steps: Sequence[SubStep] = (),
) -> ExecutionRecord:
    """Return the record of an attempt, or of a step that never started."""
    args = step.tool_input if raw_input is None else raw_input
    results = body["results"] if body else []
    summary = {
        "evidence_count": len(results),
        "context_length": sum(len(r["evidence"]) for r in results),
        "top_score": max((r["score"] for r in results), default=0.0),
    }
    if body and body["found"] > len(results):
        summary["cut"] = body["found"] - len(results)
    long = {
        name: step.tool_input[name]
        for name, (_, field) in step.references().items()
        if field == RESULTS and "text" not in step.tool_input[name]
    }
    if reason:
        error = Labels("en")(reason["kind"], **reason)
    record = ExecutionRecord(
        step_id=step.step_id,
        attempt=attempt,
        iteration=iteration,
        tool=step.tool,
        status=status,
        error=clean(error) if error else None,
        started_at=started_at,
        duration_ms=round(seconds * 1000, 3),
        input_summary={
            "tool": step.tool,
            "objective": step.objective,
            "input_keys": sorted(args),
        },
        output_summary=summary,
        raw_input={**args, **long},
        raw_output_ref=f"{step.step_id}/{attempt}" if body else None,
        sub_steps=plain(list(sub_steps)),
    )
    return {**record, "reason": reason} if reason else record


def _done(task: StepTask, context: Context) -> dict[str, int]:
    """Return how many of the steps that run have ended: those before this wave, and those of it that have a record."""
    ended = [
        e["step_id"]
        for e in task.get("wave", [])
        if context.runs.record(task["run_id"], e["step_id"], e["attempt"])
    ]
    return {"completed": len({*task.get("tried", []), *ended}), "total": task.get("total", 0)}


# --- Steps that will never start, and their records: nothing waits forever ---


def unended(state: RetrievalState, reason: str, stops: bool = False) -> dict[str, Reason]:
    """Return step -> reason for every step without an end that would run.

    When retrieval ``stops``, conditional steps end too: they were not needed, or held back.
    """
    plan = Plan.load(state["plan"])
    woken = state["activated"]
    ends = plan.ends(state["records"])
    reasons = dict[str, Reason]()
    for step in plan.steps:
        if step.step_id in ends:
            continue
        if step.condition == "always" or step.step_id in woken:
            reasons[step.step_id] = Reason(kind=reason)
        elif stops:
            kind = "held_back" if step.condition == "held" else "not_needed"
            reasons[step.step_id] = Reason(kind=kind)
    return reasons


def skip(
    state: RetrievalState, context: Context, reasons: Mapping[str, Reason]
) -> list[ExecutionRecord]:
    """Keep and return one record per step, in the order of the plan, as the attempt after the last one."""
    last = last_records(state["records"])
    skipped = []
    now = context.clock.now().isoformat()
    for step in Plan.load(state["plan"]).steps:
        if step.step_id in reasons:
            attempt = last[step.step_id]["attempt"] + 1 if step.step_id in last else 1
            record = make_record(
                step, attempt, state["iteration"], "skipped", now, reason=reasons[step.step_id]
            )
            context.runs.save_record(state.get("run_id", ""), record, None)
            skipped.append(record)
    return skipped
