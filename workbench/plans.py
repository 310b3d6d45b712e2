"""The one plan type: what it holds, its order, its versions, its difference to another; and conditions as lines.

A plan is a DAG of steps. People edit it, models write it, forks change it; so it is validated as a whole, and a
problem names the step and the fix. Whether a step's tool and input exist is checked by ``tools.registry.check``.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from workbench.errors import PlanError
from workbench.state import Condition, Data, ExecutionRecord, Json, Op, Reason, Records, unique
from workbench.text import clean, fold, text_digest

SIGNS: Mapping[str, Op] = {
    "!=": "ne",
    ">=": "ge",
    "<=": "le",
    "=": "eq",
    ">": "gt",
    "<": "lt",
    "not in": "not_in",
    "in": "in",
    "between": "between",
    "contains": "contains",
    "exists": "exists",
    "missing": "exists",
}
_LINE = re.compile(
    r"(?P<field>\S(?:.*?\S)?)\s*(?P<sign>!=|>=|<=|=|>|<|(?<=\s)(?:not in|in|between|contains|exists|missing)(?=\s|$))"
    r"\s*(?P<value>.*)"
)


def format_condition(condition: Data) -> str:
    """Return a condition in one line.

    >>> format_condition({"field": "year", "op": "between", "value": ["1990", "1999"]})
    'year between 1990 and 1999'
    >>> format_condition({"field": "status", "op": "not_in", "value": ["done", "open"]})
    'status not in done, open'
    """
    field = condition["field"]
    op = condition["op"]
    value = condition.get("value")
    if op == "exists":
        return f"{field} {'exists' if value in (True, None) else 'missing'}"
    sign = next(sign for sign, name_of_op in SIGNS.items() if name_of_op == op)
    joint = " and " if op == "between" else ", "
    return f"{field} {sign} {joint.join(map(str, value)) if isinstance(value, list | tuple) else value}"


def parse_condition(line: str) -> Condition:
    """Return a line as a condition.

    >>> parse_condition("budget >= 100000"), parse_condition("name missing")
    ({'field': 'budget', 'op': 'ge', 'value': 100000}, {'field': 'name', 'op': 'exists', 'value': False})

    Raises:
        ValueError: with the line and how one is written.
    """
    match = _LINE.fullmatch(line.strip())
    if not match or (not match["value"] and match["sign"] not in ("exists", "missing")):
        raise ValueError(
            f"{line.strip()!r} is no condition: write field, sign, value ({', '.join(SIGNS)})"
        )
    op = SIGNS[match["sign"]]
    value = match["value"].strip()
    if op == "exists":
        return Condition(field=match["field"], op=op, value=match["sign"] == "exists")
    if op in ("in", "not_in", "between"):
        parts = re.split(r"\s+and\s+" if op == "between" else r"\s*[,，、]\s*", value)
        return Condition(field=match["field"], op=op, value=[_typed(part) for part in parts])
    return Condition(field=match["field"], op=op, value=_typed(value))


def _typed(text: str) -> str | int | float:
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d+", text) else text


ENDED_WELL = ("success", "partial")


class Frozen(BaseModel):
    """Values that are checked once: an unknown one is refused, and none can be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    def copy_with(self, **fields: Any) -> Self:
        """Return a copy with other values in these fields."""
        return self.model_copy(update=fields)


class PlanBudget(Frozen):
    """What one step may spend. ``timeout_s`` seconds an attempt; ``max_retries`` attempts after the first."""

    timeout_s: float = 15
    top_k: int = 50
    max_evidence_count: int = 100
    max_retries: int = 1


class PlanStep(Frozen):
    """One call of one tool. A ``tool_input`` value may be ``{"$from": "step_id.field"}``, which is a dependency too.

    For a text there may be words around it: ``{"$from": "step_id.field", "text": "Who built {}?"}``.

    A step runs automatically (``always``), when the reflector or a person wakes it (``if_insufficient``), or only
    when a person does (``held``).
    """

    step_id: str
    objective: str
    tool: str
    tool_input: Json = Field(default_factory=dict)
    depends_on: list[str] = Field(default_factory=list)
    budget: PlanBudget = PlanBudget()
    priority: int = 1
    condition: Literal["always", "if_insufficient", "held"] = "always"

    def references(self) -> dict[str, tuple[str, str]]:
        """Return input field -> (step, field of its output) for every ``$from`` in the input."""
        sources = {}
        for name, value in self.tool_input.items():
            if isinstance(value, dict) and {"$from"} <= set(value) <= {"$from", "text"}:
                source, _, field = str(value["$from"]).partition(".")
                sources[name] = (source, field)
        return sources

    def input_with(self, name_of: Callable[[str], str]) -> Json:
        """Return the input with another name for each step that a ``$from`` names."""
        sources = self.references().items()
        renamed = {
            n: {**self.tool_input[n], "$from": f"{name_of(source)}.{field}"}
            for n, (source, field) in sources
        }
        return {**self.tool_input, **renamed}

    def dependencies(self) -> list[str]:
        """Return the stated dependencies, then those that references imply."""
        sources = (source for source, _ in self.references().values())
        return unique([*self.depends_on, *sources])


class Plan(Frozen):
    """A DAG of steps with a version. ``plan_id`` is a hash of the content, so equal plans have equal ids."""

    version: int = 1
    problem_statement: str = ""
    assumptions: list[str] = Field(default_factory=list)
    steps: list[PlanStep] = Field(default_factory=list)
    execution_mode: Literal["sequential", "parallel", "adaptive"] = "parallel"
    acceptance_criteria: list[str] = Field(default_factory=list)
    metadata: Json = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _without_id(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            return {k: v for k, v in data.items() if k != "plan_id"}
        return data

    @property
    def plan_id(self) -> str:
        """Twelve hex digits of the content: everything but version and metadata."""
        content = self.model_dump(mode="json", exclude={"version", "metadata"})
        return text_digest(canonical_json(content), 12)

    def step(self, step_id: str) -> PlanStep:
        """Return the step of that id; ``KeyError`` when there is none."""
        return self.by_id()[step_id]

    def by_id(self) -> dict[str, PlanStep]:
        """Return the steps by id, in the order of the plan."""
        return {step.step_id: step for step in self.steps}

    def dump(self) -> Json:
        """Return the JSON form, with ``plan_id``: what the state carries and the store keeps."""
        return {"plan_id": self.plan_id, **self.model_dump(mode="json")}

    @classmethod
    def load(cls, data: Data) -> Plan:
        """Read the JSON form; a stale ``plan_id`` is ignored, since it follows from the content.

        Raises:
            pydantic.ValidationError: a field has the wrong type or is unknown.
        """
        return cls.model_validate(data)

    def topological_order(self) -> list[str]:
        """Step ids, dependencies first; among equals by priority, then by place in the plan.

        Raises:
            PlanError: the steps form a cycle, or depend on what is not there.
        """
        problems = self.problems()
        if problems:
            raise PlanError(problems)
        place = {step.step_id: (step.priority, index) for index, step in enumerate(self.steps)}
        sorter = TopologicalSorter({step.step_id: step.dependencies() for step in self.steps})
        sorter.prepare()
        order: list[str] = []
        waiting: list[str] = []
        while sorter.is_active():
            waiting = sorted([*waiting, *sorter.get_ready()], key=place.__getitem__)
            order.append(waiting.pop(0))
            sorter.done(order[-1])
        return order

    def ready_steps(self, records: Records = (), activated: Iterable[str] = ()) -> list[PlanStep]:
        """Return the steps that may start now, by priority: not begun, dependencies ended well, condition met.

        A conditional step needs its dependencies to have ended in any way, and to be activated. A step whose last
        attempt failed or timed out is ready again while it has retries left.
        """
        ends = self.ends(records)
        woken = set(activated)

        def ready(step: PlanStep) -> bool:
            before = [ends.get(dependency) for dependency in step.dependencies()]
            if step.step_id in ends or None in before:
                return False
            if step.condition != "always":
                return step.step_id in woken
            return all(status in ENDED_WELL for status in before)

        return sorted(filter(ready, self.steps), key=lambda step: step.priority)

    def ahead(
        self, records: Records, activated: Iterable[str], taped: Mapping[str, str]
    ) -> list[PlanStep]:
        """Every step that will still be done if all goes well, in the order of their waves (see ``ready_steps``).

        ``taped`` says how steps end that a tape answers: they are not done, and what is behind them starts or does not.
        """
        steps = list[PlanStep]()
        woken = list(activated)
        ends = {step_id: end for step_id, end in taped.items() if end}
        while True:
            ended: Any = [
                {"step_id": step_id, "attempt": math.inf, "status": end}
                for step_id, end in ends.items()
            ]
            wave = self.ready_steps([*records, *ended], woken)
            if not wave:
                return steps
            steps += wave
            ends |= {step.step_id: "success" for step in wave}

    def blocked_steps(self, records: Records, activated: Iterable[str]) -> dict[str, Reason]:
        """Return the steps that can never start, with the reason: all behind one that did not end well or is held."""
        ends = self.ends(records)
        blocked = dict[str, Reason]()
        ends |= {
            s.step_id: "held"
            for s in self.steps
            if s.condition == "held" and s.step_id not in {*ends, *activated}
        }
        for step_id in self.topological_order():
            step = self.step(step_id)
            bad = [
                dependency
                for dependency in step.dependencies()
                if ends.get(dependency, "success") not in ENDED_WELL
            ]
            if bad and step_id not in ends and step.condition == "always":
                blocked[step_id] = Reason(kind=f"after_{ends[bad[-1]]}", step=bad[-1])
                ends[step_id] = "skipped"
        return blocked

    def ends(self, records: Records) -> dict[str, str]:
        """Return how each step ended; one that has retries left has not."""
        steps = self.by_id()
        return {
            step_id: record["status"]
            for step_id, record in last_records(records).items()
            if step_id not in steps
            or record["status"] not in ("failed", "timeout")
            or record["attempt"] > steps[step_id].budget.max_retries
        }

    def replace(self, step_id: str, **fields: Any) -> Plan:
        """Return a copy with some fields of one step changed; fields of the budget (``top_k=20``) are taken too.

        Raises:
            PlanError: no such step.
        """
        if step_id not in self.by_id():
            ids = ", ".join(self.by_id()) or "none"
            raise PlanError(
                [
                    problem(
                        step_id, "step_id", f"No step {step_id!r} in the plan.", f"Known: {ids}."
                    )
                ]
            )
        old = self.step(step_id).model_dump()
        budget = {
            name: fields.pop(name) for name in list(fields) if name in PlanBudget.model_fields
        }
        changed = PlanStep.model_validate(
            {**old, **fields, "budget": {**old["budget"], **fields.get("budget", {}), **budget}}
        )
        return self.copy_with(
            steps=[changed if step.step_id == step_id else step for step in self.steps]
        )

    def adding(self, *steps: PlanStep) -> Plan:
        """Return a copy with these steps at the end."""
        return self.copy_with(steps=[*self.steps, *steps])

    def without(self, *step_ids: str) -> Plan:
        """Return a copy without these steps; what depended on them no longer does."""
        steps = [
            s.copy_with(depends_on=[d for d in s.depends_on if d not in step_ids])
            for s in self.steps
            if s.step_id not in step_ids
        ]
        return self.copy_with(steps=steps)

    def critical_path(self, seconds: Mapping[str, float] | None = None) -> list[str]:
        """Return the chain of steps that takes longest, by measured ``seconds`` or else by the steps' time-outs."""
        cost = {
            s.step_id: (seconds or {}).get(s.step_id, 0.0 if seconds else s.budget.timeout_s)
            for s in self.steps
        }
        steps = self.by_id()
        best = dict[str, tuple[float, list[str]]]()
        for step_id in self.topological_order():
            before = max(
                (best[d] for d in steps[step_id].dependencies()),
                key=lambda b: b[0],
                default=(0.0, []),
            )
            best[step_id] = (before[0] + cost[step_id], [*before[1], step_id])
        return max(best.values(), key=lambda b: b[0], default=(0.0, []))[1]

    def diff(self, changed_plan: Plan) -> Json:
        """Return the changes to another plan.

        They are ``{"added", "removed", "changed": {id: {field: [old, new]}}, "plan": {...}}``.
        """
        mine = self.by_id()
        theirs = changed_plan.by_id()
        changed = {
            i: _changes(mine[i], theirs[i]) for i in mine if i in theirs and mine[i] != theirs[i]
        }
        return {
            "added": [i for i in theirs if i not in mine],
            "removed": [i for i in mine if i not in theirs],
            "changed": changed,
            "plan": {
                name: [getattr(self, name), getattr(changed_plan, name)]
                for name in (
                    "problem_statement",
                    "assumptions",
                    "execution_mode",
                    "acceptance_criteria",
                )
                if getattr(self, name) != getattr(changed_plan, name)
            },
        }

    def signal(self) -> Json:
        """Return the plan as reports and schedulers read it."""
        return {
            "plan_id": self.plan_id,
            "version": self.version,
            "mode": self.execution_mode,
            "tasks": [step.model_dump(mode="json") for step in self.steps],
            "execution_sequence": self.topological_order(),
            "assumptions": self.assumptions,
            "acceptance_criteria": self.acceptance_criteria,
        }

    def problems(self) -> list[Json]:
        """Return everything that is wrong with the shape, as ``problem`` each."""
        most_steps = 200
        if (count := len(self.steps)) > most_steps:
            message = f"The plan has {count:,} steps; {most_steps} are the most."
            fix = "Ask for less, or in several runs."
            return [
                problem("", "steps", message, fix, "too_many_steps", count=count, most=most_steps)
            ]
        return [*self._step_problems(), *self._cycle()]

    def _step_problems(self) -> Iterator[Json]:
        longest_id = 100
        step_ids = [step.step_id for step in self.steps]
        for index, step in enumerate(self.steps):
            name = step.step_id
            place = index + 1
            for field, value in step.model_dump().items():
                if fault := unkeepable({field: value}):
                    message = f"Step {place}: {fault}."
                    fix = "Give plain, short JSON values."
                    yield problem(
                        name, field, message, fix, "unkeepable", place=place, fault=fault
                    )
            if (length := len(name)) > longest_id:
                message = f"Step {place} has an id of {length:,} characters."
                yield problem(
                    name, "step_id", message, "Shorten it.", "long_id", place=place, length=length
                )
            if not name.strip():
                yield problem(
                    name,
                    "step_id",
                    f"Step {place} has no id.",
                    "Give it one.",
                    "no_id",
                    place=place,
                )
            if name in step_ids[:index]:
                message = f"Step id {name!r} is used twice."
                yield problem(name, "step_id", message, "Rename one of the two.", "used_twice")
            for missing in [d for d in step.dependencies() if d not in step_ids]:
                rest = ", ".join(k for k in step_ids if k != name) or "none"
                message = f"{name} depends on {missing!r}, which is not in the plan."
                fix = f"Known: {rest}."
                yield problem(
                    name, "depends_on", message, fix, "no_such_step", missing=missing, known=rest
                )
            yield from _budget_problems(step)

    def _cycle(self) -> list[Json]:
        steps = self.by_id()
        try:
            TopologicalSorter(
                {i: [d for d in s.dependencies() if d in steps] for i, s in steps.items()}
            ).prepare()
        except CycleError as error:
            path = list(reversed(error.args[1]))
            shown = path
            if len(path) > 10:
                shown = [*path[:8], f"({len(path) - 9} more)", path[-1]]
            message = f"Cycle: {' -> '.join(shown)}."
            fix = "Take out one of these dependencies."
            return [problem(path[0], "depends_on", message, fix, "cycle", path=path)]
        return []


WIDE_TOP_K = 2 * PlanBudget().top_k
"""From this ``top_k`` on, a search counts as a different call than one for fewer results."""
_NOT_COMPARED = ("top_k", "passage", "sentence")
"""Inputs that do not make a call a different one."""


def problem(
    step_id: str, field: str, message: str, fix: str, kind: str = "", **values: Any
) -> Json:
    """Return one entry of ``PlanError.problems``; ``kind`` and ``values`` let a view phrase it in another language.

    >>> problem("a", "budget.top_k", "a: top_k is 0.", "Give 1 or more (default 50).", "too_small", value=0)["values"]
    {'value': 0}
    """
    return {
        "step_id": step_id,
        "field": field,
        "message": message,
        "fix": fix,
        "kind": kind,
        "values": values,
    }


def _budget_problems(step: PlanStep) -> Iterator[Json]:
    for field, minimum in (
        ("timeout_s", 0),
        ("top_k", 1),
        ("max_evidence_count", 1),
        ("max_retries", 0),
    ):
        value = getattr(step.budget, field)
        if value < minimum or (field == "timeout_s" and value <= 0) or value != value:
            default = PlanBudget.model_fields[field].default
            ask = "more than 0" if field == "timeout_s" else f"{minimum} or more"
            message = f"{step.step_id}: {field} is {value:g}."
            fix = f"Give {ask} (default {default})."
            details = {"name": field, "value": f"{value:g}", "least": minimum, "default": default}
            yield problem(step.step_id, f"budget.{field}", message, fix, "too_small", **details)


def unkeepable(value: Any) -> str:
    """Return why a value cannot be stored as JSON, in a few words; empty when it can.

    >>> unkeepable({"a": [1, "茶馆", None]}), unkeepable({"a": [float("nan")]}), unkeepable({"a": {1: "x"}})
    ('', '$.a[0] is nan', '$.a has a name that is no text')
    """
    deepest = 30
    longest = 10_000
    most_values = 100_000
    waiting = [("$", 0, value)]
    for _ in range(most_values):
        if not waiting:
            return ""
        where, depth, item = waiting.pop()
        if depth > deepest:
            return f"{where[:60]}… is nested deeper than {deepest} levels"
        if isinstance(item, Mapping):
            if not all(isinstance(name, str) for name in item):
                return f"{where} has a name that is no text"
            waiting += [
                (f"{where}.{name[:40]}", depth + 1, inner) for name, inner in item.items()
            ]
            waiting += [(f"{where}, a name,", depth, name) for name in item]
        elif isinstance(item, list | tuple):
            waiting += [
                (f"{where}[{place}]", depth + 1, inner)
                for place, inner in enumerate(item[:most_values])
            ]
        elif fault := _unkeepable_value(item, longest):
            return f"{where} {fault}"
    return f"it holds more than {most_values:,} values"


def _unkeepable_value(value: Any, longest: int) -> str:
    if isinstance(value, str):
        if len(value) > longest:
            return f"has {len(value):,} characters; {longest:,} are the most"
        if value.isascii() or clean(value) == unicodedata.normalize("NFC", value):
            return ""
        return "holds broken text"
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int):
        return "is a whole number of more than 64 bits" if abs(value) >= 2**63 else ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {value}"
    return f"is a {type(value).__name__}, which is no JSON"


def step_renamed(step: PlanStep, names: Mapping[str, str]) -> PlanStep:
    """Return a copy of the step with other ids for itself and for what it depends on, by the old ones."""
    return step.copy_with(
        step_id=names.get(step.step_id, step.step_id),
        depends_on=[names.get(dependency, dependency) for dependency in step.depends_on],
        tool_input=step.input_with(lambda source: names.get(source, source)),
    )


def needed(plan: Plan, step_id: str) -> set[str]:
    """Return the ids of a step and of everything that it needs."""
    steps = plan.by_id()
    ids = {step_id}
    waiting = [step_id]
    while waiting:
        if step := steps.get(waiting.pop()):
            new = {*step.dependencies()} - ids
            ids |= new
            waiting += new
    return ids


def fresh_id(plan: Plan, label: str) -> str:
    """Return a step id that the plan does not have, continuing its numbering."""
    number = len(plan.steps)
    while any(step.step_id.startswith(f"step_{number}_") for step in plan.steps):
        number += 1
    return f"step_{number}_{label}"


def is_idle(record: ExecutionRecord) -> bool:
    """Check whether the step was skipped because nothing needed it, or it was held back."""
    return record.get("reason", {}).get("kind") in ("not_needed", "held_back")


def last_records(records: Records) -> dict[str, ExecutionRecord]:
    """Return the newest attempt of each step."""
    last: dict[str, ExecutionRecord] = {}
    for record in records:
        before = last.get(record["step_id"])
        if before is None or record["attempt"] >= before["attempt"]:
            last[record["step_id"]] = record
    return last


def call_key(tool: str, tool_input: Data) -> tuple[str, str]:
    """Return a key that is equal for equal calls: the tool and its input, regardless of spelling and ``top_k``.

    >>> call_key("naive_search", {"query": " 茶馆 ", "top_k": 30}) == call_key("naive_search", {"query": "茶馆"})
    True
    """
    fields = {
        k: v
        for k, v in tool_input.items()
        if k not in _NOT_COMPARED and v not in (None, "", [], {})
    }
    if tool_input.get("top_k", 0) >= WIDE_TOP_K:
        fields["wide"] = True
    if isinstance(fields.get("query"), str):
        fields["query"] = fold(fields["query"])
    return tool, canonical_json(fields)


def calls(plan: Plan, records: Records, activated: Iterable[str] = ()) -> set[tuple[str, str]]:
    """Return every call that was made, or will be made automatically."""
    last = last_records(records)
    skipped = {step_id for step_id, record in last.items() if record["status"] == "skipped"}
    conditional = {step.step_id for step in plan.steps if step.condition != "always"}
    left_out = skipped | (conditional - last.keys() - set(activated))
    calls = [(r["tool"], r["raw_input"]) for i, r in last.items() if i not in skipped]
    calls += [(s.tool, s.tool_input) for s in plan.steps if s.step_id not in left_out]
    return {call_key(tool, tool_input) for tool, tool_input in calls}


def work_seconds(records: Records) -> float:
    """Return the elapsed work time: the union of the attempts' intervals: parallel steps count once, pauses never."""
    spans = sorted(
        (datetime.fromisoformat(r["started_at"]).timestamp(), r["duration_ms"] / 1000)
        for r in records
        if r["duration_ms"] > 0
    )
    total = 0.0
    reached = float("-inf")
    for start, duration in spans:
        end = start + duration
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def canonical_json(value: Any) -> str:
    """Return a value as canonical JSON: sorted keys, no spaces, non-ASCII unchanged.

    >>> canonical_json({"b": 1, "a": "茶馆"})
    '{"a":"茶馆","b":1}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _changes(old: PlanStep, new: PlanStep) -> dict[str, list[Any]]:
    before = old.model_dump(mode="json")
    after = new.model_dump(mode="json")
    return {name: [before[name], after[name]] for name in before if before[name] != after[name]}
