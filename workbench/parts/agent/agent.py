"""LangChain's agent over the tools of a knowledge base, as a recorded graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.errors import ModelError, UnknownTool
from workbench.extensions import required
from workbench.graphs.slots import card
from workbench.parts.agent.turn import NO_MODEL


def agent(
    wb: Any,
    kb: str,
    *,
    model: Any = None,
    tools: Sequence[str] = (),
    review: bool | str | Sequence[str] = False,
    name: str = "",
) -> Any:
    """Return an agent over a knowledge base: a model calls tools until it answers, and everything is on a tape.

    It is LangChain's ``create_agent``, as ``wb.record`` returns it: ``agent.ask("Who built Moss Mill?")``.

    Args:
        kb: the knowledge base.
        model: a LangChain chat model that calls tools; by default that of the role ``agent``.
        tools: names of tools; by default as ``wb.tools.as_langchain`` chooses them.
        review: True asks a person before each call of a tool; names ask before calls of these.
        name: of its runs.

    Raises:
        ModelError: there is no model.
        UnknownKnowledge: lists the known bases.
        UnknownTool: lists the tools that it has.
    """
    # How many calls of tools it may make for one question.
    tool_calls = 24
    # How often an agent may ask its model for one question.
    calls = 12
    from langchain.agents import create_agent
    from langchain.agents.middleware import (
        HumanInTheLoopMiddleware,
        ModelCallLimitMiddleware,
        ToolCallLimitMiddleware,
    )

    base = wb.knowledge.get(kb)
    model = model or wb.ports().models.get("agent")
    if model is None:
        raise ModelError(NO_MODEL)
    tools_of_base = wb.tools.as_langchain(kb, tools)
    middleware: list[Any] = [
        ModelCallLimitMiddleware(run_limit=calls, exit_behavior="end"),
        ToolCallLimitMiddleware(run_limit=tool_calls, exit_behavior="continue"),
    ]
    if review:
        offered = [tool.name for tool in tools_of_base]
        names = [review] if isinstance(review, str) else review
        names = offered if names is True else list(names)
        if unknown := [name for name in names if name not in offered]:
            raise UnknownTool(unknown[0], offered)
        middleware.append(HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(names, True)))
    prompt = wb.prompts.for_language("agent", wb.settings.lang or "en")
    [[_, system], _] = prompt.messages({"corpus": card([base]), "question": "", "today": ""})
    graph = create_agent(
        model,
        tools_of_base,
        system_prompt=system,
        middleware=middleware,
        name=name or f"agent {kb}",
    )
    return required("workbench", "record", "record")(wb, graph)
