"""The one way to be a tool: a function, two schemas and what a plan, a form and a drawing need to know of it."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from workbench.errors import ToolError
from workbench.knowledge.dated import PartialBase, restricted
from workbench.plans import Frozen
from workbench.ports import Clock, KnowledgeBase, ToolLog
from workbench.state import Json, Op, SubStep
from workbench.text import clean


@contextmanager
def contained(name: str) -> Iterator[None]:
    """Turn what would end the process, its event loop or a future into a failure of the tool.

    argparse, click and ``sys.exit`` raise SystemExit; a ``next`` without a default raises StopIteration, which no
    future can carry; an unrequested cancellation would stop the whole run.

    Raises:
        ToolError: names what the tool raised.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        raise _failure(name, error) from error
    except Exception as error:  # an iterator's end would end the loop that runs the tool
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            raise _failure(name, error) from error
        raise
    except BaseException as error:
        raise _failure(name, error) from error


def _is_cancelled() -> bool:
    """Return whether the task in which this is called is being cancelled from outside."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # in a thread: what is raised there is the tool's own
        return False
    return task is not None and task.cancelling() > 0


def _failure(name: str, error: BaseException) -> ToolError:
    text = clean(f"{type(error).__name__}: {error}").removesuffix(": ")
    return ToolError(f"{name} raised {text}. A tool fails by an Exception of its own.")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers of other libraries as numbers, dates as text, what is not finite as null.

    >>> from decimal import Decimal
    >>> plain({"when": Decimal("0.5"), 1: {"a"}, "text": "bad \\ud83d"})
    {'when': '0.5', '1': ['a'], 'text': 'bad ?'}

    Raises:
        ToolError: it holds itself, or what cannot be read.
    """
    try:
        return to_jsonable_python(
            _cleaned(value),
            fallback=_fallback,
            inf_nan_mode="null",
            bytes_mode="base64",
            serialize_unknown=False,
        )
    except (PydanticSerializationError, RecursionError, TypeError, ValueError) as error:
        raise ToolError(f"a {type(value).__name__} cannot be kept as JSON: {error}") from None


def _cleaned(value: Any) -> Any:
    """Replace characters that no store takes; a set has an order, so that the same input gives the same bytes."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(_cleaned, value), key=repr)
    return [_cleaned(inner) for inner in value] if type(value) in (list, tuple) else value


def _fallback(value: Any) -> Any:
    """Arrays, tables and numbers of numpy and pandas give their own; what else there is, its text."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict("records")
    if hasattr(value, "tolist"):
        return value.tolist()
    if {"__str__", "__repr__"}.isdisjoint(
        name for kind in type(value).__mro__[:-1] for name in vars(kind)
    ):
        raise TypeError(f"a {type(value).__name__} has no text of its own")
    return clean(str(value))


class ConditionInput(Frozen):
    """A condition on one typed field of a document."""

    field: str
    """A field of the documents"""
    op: Op = "eq"
    """How it is compared"""
    value: str | int | float | bool | list[str | int | float] | None = None
    """A text, number or date; a list for in, not_in and between"""


class Search(Frozen):
    """The input of every built-in tool; some add to it."""

    restricts: ClassVar[bool] = True
    """Whether the tool sees only the documents for which the conditions hold; one that does not applies them itself."""

    query: str = Field(min_length=1)
    """What to look for, in the words of the question"""
    conditions: list[ConditionInput] = Field([])
    """What the documents' fields must hold, all of it"""
    top_k: int = Field(50, ge=1, le=1000)
    """How many results at most"""
    kb_prefix: str | None = None
    """The knowledge base; empty: the one of the run"""


class ToolOutput(BaseModel, use_attribute_docstrings=True):
    """The output of every built-in tool; some add to it. Later steps read it by ``$from``."""

    results: list[Json] = []
    """Evidence, best first (RetrievalResult)"""
    entities: list[str] = []
    """Names that the query holds, then related ones"""
    candidates: list[str] = []
    """Titles found beyond the ones named in the query"""


@dataclass(frozen=True)
class FunctionTool:
    """A tool made of a function ``(tool_input, knowledge, log) -> output``, plain or ``async``.

    Attributes:
        name: letters without capitals, digits and underscores, as plans write it.
        description: one sentence for people and for planning models.
        parallel: whether it may run next to other steps.
        planned: whether a model that plans may choose it.
        intents: intents for which the rule planner adds a step with this tool.

    Raises:
        ToolError: the name is not one.
    """

    name: str
    description: str
    function: Callable[[Any, KnowledgeBase, ToolLog], Any]
    input_schema: type[BaseModel] = Search
    output_schema: type[BaseModel] = ToolOutput
    parallel: bool = True
    planned: bool = True
    intents: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        longest_name = 64
        if (
            not self.name.isidentifier()
            or self.name != self.name.lower()
            or len(self.name) > longest_name
        ):
            raise ToolError(
                f"{self.name!r} is not a name for a tool. Use letters without capitals (Chinese ones too), digits and "
                f"underscores, a letter first, {longest_name} at most."
            )

    async def __call__(
        self, tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog
    ) -> BaseModel:
        """Run it; a plain function runs in a thread, so that a slow one does not hold up the others."""
        if isinstance(tool_input, Search) and tool_input.restricts:
            knowledge = restricted(knowledge, [c.model_dump() for c in tool_input.conditions])
        with contained(self.name):
            if inspect.iscoroutinefunction(self.function):
                output = await self.function(tool_input, knowledge, log)
            else:
                output = await asyncio.to_thread(
                    self._in_one_generation, tool_input, knowledge, log
                )
        try:
            checked_output = self.output_schema.model_validate(output)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "shape"
            raise ToolError(
                f"{self.name} gave an output without a valid {where}: {first['msg']}. "
                f"Its output schema has: {', '.join(self.output_schema.model_fields)}."
            ) from None
        return shown_results(checked_output, knowledge)

    def _in_one_generation(
        self, tool_input: BaseModel, knowledge: KnowledgeBase, log: ToolLog
    ) -> Any:
        with contained(self.name), knowledge.reading():
            return self.function(tool_input, knowledge, log)


def shown_results(output: Any, base: KnowledgeBase) -> BaseModel:
    """Return the output without results of documents that a dated or restricted base leaves out.

    A tool comes to documents by more ways than a search: names, links, the graph.
    """
    if not isinstance(base, PartialBase):
        return output
    return cast(
        BaseModel,
        output.model_copy(update={"results": [r for r in output.results if not base.hides(r)]}),
    )


class StepLog:
    """A tool's own log (the ``ToolLog`` port), in milliseconds from the moment it was made.

    >>> log = StepLog()
    >>> with log("bm25", k=30) as detail:
    ...     detail["hits"] = 12
    >>> log.sub_steps[0]["name"], log.sub_steps[0]["detail"]
    ('bm25', {'k': 30, 'hits': 12})
    """

    def __init__(self, clock: Clock | None = None):
        self.sub_steps: list[SubStep] = []
        self._now = clock.monotonic if clock else time.perf_counter
        self._begun = self._now()

    @contextmanager
    def __call__(self, name: str, **detail: Any) -> Iterator[Json]:
        """Time the block; the entry stands from its start, so nested ones come in the order of their starts."""
        start = self._now()
        entry = SubStep(
            name=name,
            offset_ms=self._milliseconds(start - self._begun),
            duration_ms=0.0,
            detail=detail,
        )
        self.sub_steps.append(entry)
        try:
            yield detail
        except BaseException as error:
            detail["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            entry["duration_ms"] = self._milliseconds(self._now() - start)

    @staticmethod
    def _milliseconds(seconds: float) -> float:
        return round(seconds * 1000, 3)


def read_input(tool: Any, values: Json) -> BaseModel:
    """Return the tool's input from plain data.

    Raises:
        ToolError: names each field, the reason and what is allowed.
    """
    try:
        return tool.input_schema.model_validate(values)
    except ValidationError as error:
        faults = [input_fault(tool, e) for e in error.errors()]
        raise ToolError(
            " ".join(f"{tool.name}: {message} {fix}" for _, message, fix in faults)
        ) from None


def input_fault(tool: Any, error: Any) -> tuple[str, str, str]:
    """``(field, message, fix)`` for one of pydantic's errors about a tool's input."""
    path = ".".join(str(part) for part in error["loc"])
    field = str(error["loc"][0]) if error["loc"] else ""
    inputs = ", ".join(tool.input_schema.model_fields)
    if error["type"] == "missing":
        return path, f"input {path!r} is missing.", f"Give {allowed(tool.input_schema, field)}."
    if field not in tool.input_schema.model_fields:
        return path, f"{tool.name} has no input {path!r}.", f"Its inputs: {inputs}."
    message = f"input {path!r} is {error['input']!r}: {error['msg'][:1].lower()}{error['msg'][1:].rstrip('.')}."
    return path, message, f"Give {allowed(tool.input_schema, field)}."


def allowed(schema: type[BaseModel], field: str) -> str:
    """Return what a field takes, for people.

    >>> allowed(Search, "top_k")
    'integer, 1 to 1000 (default 50)'
    """
    spec = schema.model_json_schema()["properties"].get(field, {})
    options = [option for option in spec.get("anyOf", [spec]) if option.get("type") != "null"]
    kinds = " or ".join(_kind(option) for option in options) or "a value"
    default = f" (default {spec['default']!r})" if spec.get("default") not in (None, "") else ""
    return kinds + default


def _kind(option: Json) -> str:
    if "enum" in option or "const" in option:
        return "one of " + ", ".join(
            repr(value) for value in option.get("enum", [option.get("const")])
        )
    if option.get("type") == "array":
        return f"a list of {_kind(option.get('items', {}))}s"
    kind = option.get("type", "an object" if "$ref" in option else "a value")
    low = option.get("minimum", option.get("minLength"))
    high = option.get("maximum", option.get("maxLength"))
    unit = " characters" if kind == "string" else ""
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}{unit}"
    return f"{kind}, {low} or more{unit}" if low is not None else kind
