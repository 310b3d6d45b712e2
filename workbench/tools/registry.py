"""Which tools there are, and whether a plan can be run with them.

A built-in tool is a file with a function and a ``TOOL`` (the smallest is ``naive.py``), and a line in ``BUILT_IN``. A
tool of the user, from a notebook cell::

    @wb.tools.tool(description="Award winners by name", intents={"qa"})
    def awards(query: str, knowledge, top_k: int = 10) -> list[str]:
        return [line for line in open("awards.txt") if query in line][:top_k]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import ValidationError

from workbench.errors import (
    PlanError,
    ToolError,
    UnfitCondition,
    UnknownKnowledge,
    UnknownTool,
    shown,
)
from workbench.extensions import paths
from workbench.language.words import fields_by_name
from workbench.plans import Plan, PlanStep, problem
from workbench.ports import Bases, Context, KnowledgeBase, KnowledgeBases, Tool
from workbench.state import Data, Json, as_list, drop
from workbench.tools.tool import FunctionTool, StepLog, input_fault, read_input

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

    from workbench.tools.adapt import ToolOptions


__all__ = [
    "BUILT_IN",
    "FunctionTool",
    "StepLog",
    "ToolRegistry",
    "check",
    "names_for_agents",
    "read_input",
    "require",
    "resolve_input",
]

BUILT_IN = {
    "naive_search": "workbench.tools.naive",
    "keyword_search": "workbench.tools.keyword",
    "local_search": "workbench.tools.local",
    "global_search": "workbench.tools.global_",
    "hybrid_search": "workbench.tools.hybrid",
    "discover": "workbench.tools.discover",
    "open_document": "workbench.tools.open_document",
    **paths("tools"),
}


class ToolRegistry(Mapping[str, Tool]):
    """Tools by name: ours, imported when first asked for, then the registered ones in the order of their coming.

    >>> registry = ToolRegistry()
    >>> list(registry)[:2], registry["naive_search"].parallel
    (['naive_search', 'keyword_search'], True)
    """

    def __init__(self, bases: KnowledgeBases | None = None) -> None:
        self._tools: dict[str, Tool | str] = dict(BUILT_IN)
        self._bases = bases

    def __getitem__(self, name: str) -> Tool:
        if not isinstance(name, str) or name not in self._tools:
            raise UnknownTool(name, self._tools)
        tool = self._tools[name]
        if isinstance(tool, str):
            module, _, attribute = tool.partition(":")
            loaded: Tool = getattr(import_module(module), attribute or "TOOL")
            tool = self._tools[name] = loaded
        return tool

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def register(self, tool: Any, *, intents: Iterable[str] = (), replace: bool = False) -> Tool:
        """Take a tool in: one of ours (the ``Tool`` port), a LangChain tool or a function.

        Args:
            tool: what a LangChain tool or a function returns is taken as by ``tool``.
            intents: intents for which the rule planner adds a step with a LangChain tool or a function.
            replace: whether it may take the place of the tool of this name.

        Raises:
            ToolError: it is none of these, or lacks something; or the name is taken, and ``replace`` is not set.
        """
        if not isinstance(tool, FunctionTool):
            from workbench.tools.adapt import as_tool

            tool = as_tool(tool, intents)
        if tool.name in self._tools and not replace:
            raise ToolError(
                f"There is a tool {tool.name!r} already. Choose another name, or say replace=True. "
                f"Known: {', '.join(sorted(self._tools))}."
            )
        self._tools[tool.name] = tool
        return tool

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str = "",
        replace: bool = False,
        **options: Unpack[ToolOptions],
    ) -> Any:
        """Make a tool of a plain or async function; a decorator, with or without arguments.

        The function's annotated parameters become the input's fields; ``knowledge`` and ``log`` are handed in when it
        names them. It returns a list of strings, dicts or LangChain ``Document``s (see ``adapt.from_function``). The
        function itself comes back unchanged.

        Raises:
            ToolError: the function or its name cannot be a tool's.
        """
        from workbench.tools.adapt import from_function

        def take(function: Callable[..., Any]) -> Callable[..., Any]:
            self.register(from_function(function, name, **options), replace=replace)
            return function

        return take(function) if function is not None else take

    def as_langchain(self, kb: str, names: Sequence[str] = ()) -> list[BaseTool]:
        """Return tools over a knowledge base for any LangChain agent.

        Args:
            kb: the knowledge base.
            names: which tools; by default search, typed fields where there are some, registered ones, whole documents.

        Raises:
            UnknownKnowledge: lists the known bases.
            UnknownTool: lists the known tools.
        """
        from workbench.tools.langchain import langchain_tools

        if self._bases is None:
            raise ToolError(
                "These tools belong to no workspace. Use those of an open one: wb.tools."
            )
        base = self._bases.get(kb)
        return langchain_tools(self, base, names or names_for_agents(self, [base]))

    def register_retriever(
        self,
        name: str,
        retriever: BaseRetriever,
        *,
        replace: bool = False,
        **options: Unpack[ToolOptions],
    ) -> FunctionTool:
        """Make a tool of any LangChain retriever; ids come from ``Document.id``, its metadata, or its content.

        Raises:
            ToolError: the name is taken or not one, or the object is no retriever.
        """
        from workbench.tools.adapt import from_retriever

        tool = from_retriever(name, retriever, **options)
        self.register(tool, replace=replace)
        return tool


def names_for_agents(tools: Iterable[str], bases: Iterable[KnowledgeBase]) -> list[str]:
    """Return the tools of an agent: search, typed fields where there are some, registered ones, whole documents."""
    fields = ["discover"] if any(base.about()["fields"] for base in bases) else []
    return [
        "hybrid_search",
        *fields,
        *(name for name in tools if name not in BUILT_IN),
        "open_document",
    ]


def check(plan: Plan, tools: Mapping[str, Tool]) -> list[Json]:
    """Everything that is wrong with a plan: its shape, its tools, their inputs, its references (``problem`` each).

    What a ``$from`` brings is only known when its step has run, and is checked then.
    """
    steps = plan.by_id()
    problems = plan.problems()
    for step in plan.steps:
        if step.tool in tools:
            problems += [
                *_input_problems(step, tools[step.tool]),
                *_reference_problems(step, steps, tools),
            ]
        else:
            unknown = str(UnknownTool(step.tool, tools))
            message, _, fix = unknown.partition(". ")
            sentence = f"{step.step_id}: {message[:1].lower()}{message[1:]}."
            names = ", ".join(sorted(tools))
            problems.append(
                problem(
                    step.step_id,
                    "tool",
                    sentence,
                    fix,
                    "unknown_tool",
                    tool=step.tool,
                    known=names,
                )
            )
    return problems


def require(plan: Plan, tools: Mapping[str, Tool]) -> Plan:
    """Return the plan, when it can be run.

    Raises:
        PlanError: with every problem.
    """
    problems = check(plan, tools)
    if problems:
        raise PlanError(problems)
    return plan


def resolve_input(step: PlanStep, outputs: Mapping[str, Data]) -> Json:
    """Return the step's input with every ``$from`` filled in from the outputs of earlier steps, by step id.

    >>> step = PlanStep(step_id="b", objective="", tool="t", tool_input={"entities": {"$from": "a.found"}})
    >>> resolve_input(step, {"a": {"found": ["茶馆"]}})
    {'entities': ['茶馆']}
    >>> asks = step.model_copy(update={"tool_input": {"query": {"$from": "a.found", "text": "Who wrote {}?"}}})
    >>> resolve_input(asks, {"a": {"found": ["茶馆", "雷雨"]}})
    {'query': 'Who wrote 茶馆, 雷雨?'}

    Raises:
        ToolError: a step has no output, its output no such field, or there is nothing to put in a text.
    """
    filled = dict(step.tool_input)
    for name, (source, field) in step.references().items():
        output = outputs.get(source)
        if output is None or field not in output:
            names = "no output" if output is None else ", ".join(output) or "nothing"
            raise ToolError(
                f"{step.step_id} takes {name!r} from {source}.{field}, which is not there. It gave: {names}."
            )
        filled[name] = output[field]
        if "text" in step.tool_input[name]:
            words = _words(output[field])
            if not words:
                raise ToolError(
                    f"{step.step_id} takes {name!r} from {source}.{field}, which is empty."
                )
            filled[name] = step.tool_input[name]["text"].replace(GAP, words)
    return filled


GAP = "{}"
"""The place in a text of what an earlier step found."""


def _words(value: Any) -> str:
    """Return what a step found as part of a text: of names the first few, of passages the first."""
    longest_in_gap = 300
    in_gap = 5
    items = as_list(value)
    if items and isinstance(items[0], dict):
        items = [items[0].get("evidence", "")]
    return ", ".join(map(str, items[:in_gap])).strip()[:longest_in_gap]


def _input_problems(step: PlanStep, tool: Tool) -> Iterator[Json]:
    references = step.references()
    literals = drop(step.tool_input, *references)
    try:
        tool.input_schema.model_validate(literals)
    except ValidationError as error:
        for fault in error.errors():
            if not fault["loc"] or fault["loc"][0] not in references:
                path, message, fix = input_fault(tool, fault)
                place = f"tool_input.{path}"
                sentence = f"{step.step_id}: {message}"
                yield problem(
                    step.step_id, place, sentence, fix, "input", name=path, **_rule(fault, tool)
                )


def _rule(fault: Any, tool: Tool) -> Json:
    """Return which rule of pydantic's an input broke, and by what: plain values, for who says it in other words."""
    limits = {
        name: value
        for name, value in fault.get("ctx", {}).items()
        if isinstance(value, str | int | float)
    }
    details = {"rule": fault["type"], "value": shown(fault["input"]), "limits": limits}
    fields = tool.input_schema.model_fields
    details["known"] = ", ".join(fields)
    field = fields.get(str(fault["loc"][0])) if len(fault["loc"]) == 1 else None
    if field and not field.is_required():
        default = field.get_default(call_default_factory=True)
        details |= {} if default in (None, [], "") else {"default": str(default)}
    return details


def _reference_problems(
    step: PlanStep, steps: Mapping[str, PlanStep], tools: Mapping[str, Tool]
) -> Iterator[Json]:
    for name, (source, field) in step.references().items():
        place = f"tool_input.{name}"
        inputs = tools[step.tool].input_schema.model_fields
        if name not in inputs:
            message = f"{step.step_id}: {step.tool} has no input {name!r}."
            names = ", ".join(inputs)
            details = {"name": name, "rule": "extra_forbidden", "known": names}
            yield problem(
                step.step_id, place, message, f"Its inputs: {names}.", "input", **details
            )
        elif "text" in (value := step.tool_input[name]):
            text = value["text"]
            kind = inputs[name].annotation
            if kind is not str or not isinstance(text, str) or GAP not in text:
                where = (
                    "Only a text has words around it"
                    if kind is not str
                    else f"{text!r} has no {GAP}"
                )
                fix = f"{GAP} in the text of a query is the place of what {source} finds."
                yield problem(
                    step.step_id, place, f"{step.step_id}: input {name!r}: {where}.", fix
                )
        if source in steps and steps[source].tool in tools:
            outputs = tools[steps[source].tool].output_schema.model_fields
            if field not in outputs:
                message = f"{step.step_id}: {name!r} takes {field!r} from {source}, which does not give it."
                names = ", ".join(outputs)
                fix = f"{steps[source].tool} gives: {names}."
                details = {"name": name, "wanted": field, "source": source, "known": names}
                yield problem(step.step_id, place, message, fix, "not_given", **details)


def condition_faults(tool_input: Data, bases: Bases) -> list[str]:
    """Return what is wrong with conditions and order: fields that no base has, and values that do not fit theirs."""
    base_fields = fields_by_name(bases)
    conditions = tool_input.get("conditions") or []
    sort = tool_input.get("sort")
    field_names = [each.get("field") for each in [*conditions, sort] if isinstance(each, dict)]
    field_names += [tool_input["count_by"]] if tool_input.get("count_by") else []
    faults = [
        f"The documents have no field {name!r}. Fields: {', '.join(base_fields) or 'none'}."
        for name in field_names
        if name not in [*base_fields, "table"]
    ]
    try:
        for base in [] if faults or not conditions else bases:
            filled: Any = [{"op": "eq", "value": None, **condition} for condition in conditions]
            base.select(filled)
    except UnfitCondition as error:
        faults.append(str(error))
    return faults


def base_problems(plan: Plan, context: Context, kb: str) -> Iterator[Json]:
    """Yield a problem for each base that is not there, and each condition that does not fit; ``kb`` is the run's."""
    for step in plan.steps:
        if step.references() or not hasattr(context.tools[step.tool].input_schema, "restricts"):
            continue  # what it takes from another step is seen when that has run
        try:
            bases = context.bases([step.tool_input.get("kb_prefix") or kb])
            faults = condition_faults(step.tool_input, bases)
        except UnknownKnowledge as unknown:
            faults = [str(unknown)]
        for fault in faults:
            yield problem(step.step_id, "tool_input", f"{step.step_id}: {fault}", "")
