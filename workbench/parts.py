"""Parts of one's own, in place of ours or after them: checked when they are given, recorded like every effect of a run.

| part | called as | gives |
| --- | --- | --- |
| ``planner`` | ``async (query, decision, knowledge, tools)`` | a ``Plan`` |
| ``reflector`` | ``async (query, evidence, proposal)`` | what differs from the rules' proposal, or {} |
| ``merger`` | ``async (query, evidence)`` | the pieces that stay, in their order |
| ``writer`` | ``async (query, evidence)`` | the answer, with ``[n]`` for the n-th piece |
| ``reranker`` | ``(query, texts)``, in a thread | a score for each text, higher is better |
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.context import Context
from workbench.errors import WorkbenchError, shown
from workbench.plans import unkeepable

PARAMETERS = {
    "planner": "query, decision, knowledge, tools",
    "reflector": "query, evidence, proposal",
    "merger": "query, evidence",
    "writer": "query, evidence",
    "reranker": "query, texts",
}
_PROPOSED = ("should_continue", "stop_reason", "next_steps", "activate", "rewrite_query", "reasoning")


def checked(what: str, given: Any, parameters: str = "") -> Any:
    """What was given, when it can be called as this part is; said now, since later it would break every run.

    Raises:
        WorkbenchError: there is no such part; or says what was given, and what is taken.
    """
    if not parameters and what not in PARAMETERS:
        raise WorkbenchError(f"There is no part {shown(what)}. Known: {', '.join(PARAMETERS)}.")
    if given is None:
        return None
    parameters = parameters or PARAMETERS[what]
    called = given if inspect.isroutine(given) else getattr(given, "__call__", None)  # noqa: B004, an object may be one
    try:
        inspect.signature(given).bind(*parameters.split(", "))
    except (TypeError, ValueError):
        called = None
    wants_async = what != "reranker"
    if called is None or inspect.iscoroutinefunction(called) is not wants_async:
        raise WorkbenchError(
            f"{shown(given)} cannot be a {what}. Give `{'async ' * wants_async}def {what}({parameters})`."
        )
    return given


async def _made(part: str, context: Context, *given: Any) -> Any:
    """What the part says, from the tape or by asking it.

    Raises:
        WorkbenchError: it is nothing that can be kept.
    """

    async def ask() -> Any:
        found = await context.parts[part](*given)
        if fault := unkeepable(found):
            raise WorkbenchError(f"The {part} gave what cannot be kept: {fault}.")
        return found

    return (await context.tape.aeffect("handler", f"own:{part}", given, ask, clock=context.clock.monotonic)).value


async def proposed(context: Context, query: str, evidence: Sequence[Any], rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules' proposal as one's own reflector changed it; it never goes on without a step, or too often.

    Raises:
        WorkbenchError: it changes what is no part of a proposal.
    """
    changes = await _made("reflector", context, query, list(evidence), dict(rules))
    if not isinstance(changes, Mapping) or set(changes) - set(_PROPOSED):
        raise WorkbenchError(f"The reflector gave {shown(changes)}. Give a dict with some of {', '.join(_PROPOSED)}.")
    new = {**rules, **changes}
    may = new["current_iteration"] < new["max_iterations"] and bool(new["next_steps"] or new["activate"])
    if new["should_continue"] and may:
        return {**new, "stop_reason": None}
    stop = new["stop_reason"] or ("no_further_action" if new["should_continue"] else "quality_satisfied")
    return {**new, "should_continue": False, "next_steps": [], "activate": [], "stop_reason": stop}


async def ordered(context: Context, query: str, evidence: Sequence[Any]) -> list[Any]:
    """The pieces that one's own merger keeps, in its order.

    Raises:
        WorkbenchError: it gives something that is no piece of this evidence.
    """
    known = {piece["result_id"]: piece for piece in evidence}
    kept = await _made("merger", context, query, list(evidence))
    ids = [one.get("result_id") if isinstance(one, Mapping) else one for one in kept if isinstance(kept, list)]
    if not isinstance(kept, list) or any(one not in known for one in ids):
        raise WorkbenchError(f"The merger gave {shown(kept)}. Give a list of pieces of the evidence it was given.")
    return [known[one] for one in dict.fromkeys(ids)]


async def written(context: Context, query: str, evidence: Sequence[Any]) -> str:
    """The answer of one's own writer.

    Raises:
        WorkbenchError: it is no text.
    """
    text = await _made("writer", context, query, list(evidence))
    if not isinstance(text, str) or not text.strip():
        raise WorkbenchError(f"The writer gave {shown(text)}. Give the answer as text, with [n] for the n-th piece.")
    return text


def scored(reranker: Any, query: str, texts: Sequence[str]) -> list[float]:
    """The scores of one's own reranker.

    Raises:
        WorkbenchError: there is not one number for each text.
    """
    found = list(reranker(query, list(texts))) if texts else []
    if len(found) != len(texts) or not all(isinstance(s, int | float) and math.isfinite(s) for s in found):
        raise WorkbenchError(f"The reranker gave {shown(found)} for {len(texts)} texts. Give a number for each.")
    return [float(score) for score in found]
