"""Planning by rules: which tools a question needs, in which order.

``RulePlanner`` follows a table by intent. Each intent has a recipe that drafts the steps of one knowledge base; drafts
are then joined by the registered tools that ask for the intent, cut to the most tasks a plan may have, and numbered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.graphs.needs import read_needs
from workbench.graphs.recipes import FULL, Ask, Draft, assumptions, drafts_for, say, slug, without_refused
from workbench.graphs.route import AGENT_TOOLS, workers_of
from workbench.plans import Plan, PlanBudget, PlanStep
from workbench.ports import KnowledgeBase, Tool
from workbench.settings import Settings, default_settings
from workbench.state import QueryIntent, RouteDecision
from workbench.tools.registry import BUILT_IN

ONE = "hybrid_search"
"""The whole plan where one step is wanted whatever is asked."""


class RulePlanner:
    """Plans by intent, the same plan for the same question.

    Args:
        settings: ``max_tasks``, ``execution_mode`` and the budget of a step.
    """

    name = "rules"

    def __init__(self, settings: Settings | None = None):
        self.settings = settings or default_settings()

    async def __call__(
        self, query: str, decision: RouteDecision, knowledge: Sequence[KnowledgeBase], tools: Mapping[str, Tool]
    ) -> Plan:
        """Return the plan for a question: a branch for each worker of each knowledge base."""
        branches, notes, by_intent = list[list[Draft]](), list[str](), False
        bases = {base.name: base for base in knowledge}
        for worker in workers_of(decision["worker_name"], list(bases)):
            base, tool, stands_in = bases[worker.kb_prefix], ONE, list[str]()
            if not self._one_step(worker.agent_type):
                tool, stands_in = _tool_of(worker.agent_type, tools, query)
            notes += [note for note in stands_in if note not in notes]
            text = without_refused(query, decision["filters"], base)
            ask = Ask(query, text, decision, names_for(base, knowledge, decision), self.settings.max_tasks)
            drafts = _one_step(ask, tool) if tool else drafts_for(ask, base, tools)
            branches.append(_in_base(drafts, base) if len(knowledge) > 1 else drafts)
            by_intent = by_intent or not tool
        own = _registered(query, decision["query_intent"], knowledge, tools) if by_intent else []
        steps, left_out = self._number(branches, own)
        if left_out:
            notes.append(say("plan_left_out", query, tools=", ".join(left_out), most=self.settings.max_tasks))
        return Plan(
            problem_statement=query,
            assumptions=[*assumptions(query, decision, knowledge), *notes],
            steps=steps,
            execution_mode=self.settings.execution_mode,
            acceptance_criteria=[need.text for need in read_needs(query, decision)],
            metadata={"planner": self.name, "route": summary(decision, knowledge)},
        )

    def _one_step(self, agent_type: str) -> bool:
        return self.settings.planner == "one_step" and agent_type not in AGENT_TOOLS

    def _number(self, branches: Sequence[Sequence[Draft]], own: Sequence[Draft]) -> tuple[list[PlanStep], list[str]]:
        """Steps of the drafts, and the tools of those for which there was no room.

        The first steps of every branch come before the second of any, and the table before the user's own tools.
        """
        depths = [_depths(drafts) for drafts in branches]
        places = sorted((depths[b][i], b, i) for b, drafts in enumerate(branches) for i in range(len(drafts)))
        places += [(0, len(branches) + n, 0) for n in range(len(own))]
        drafts = [*branches, *([draft] for draft in own)]
        kept, over = places[: self.settings.max_tasks], places[self.settings.max_tasks :]
        kept.sort(key=lambda place: place[1:])
        ids = {(b, i): f"step_{number}_{drafts[b][i].label}" for number, (_, b, i) in enumerate(kept)}
        steps = [self._step(ids, b, drafts[b][i], i, depth) for depth, b, i in kept]
        return steps, [drafts[b][i].tool for _, b, i in over]

    def _step(self, ids: Mapping[tuple[int, int], str], branch: int, draft: Draft, index: int, depth: int) -> PlanStep:
        taken = {name: {"$from": f"{ids[branch, source]}.{given}"} for name, (source, given) in draft.take.items()}
        return PlanStep(
            step_id=ids[branch, index],
            objective=draft.objective,
            tool=draft.tool,
            tool_input={**draft.tool_input, **taken},
            depends_on=[ids[branch, source] for source in draft.before],
            budget=budget_of(self.settings, *draft.budget),
            priority=depth + 1,
            condition=draft.condition,
        )


def budget_of(settings: Settings, seconds: float, results: int) -> PlanBudget:
    """Return a budget of the table, scaled by the settings."""
    return PlanBudget(
        timeout_s=round(seconds / FULL[0] * settings.step_timeout_s, 3),
        top_k=max(1, round(results / FULL[1] * settings.step_top_k)),
        max_evidence_count=settings.step_max_evidence,
        max_retries=settings.step_max_retries,
    )


def _one_step(ask: Ask, tool: str) -> list[Draft]:
    """The plan of an agent that has one tool."""
    return [Draft(tool.removesuffix("_search"), tool, say("plan_search", ask.query), {"query": ask.grounded})]


def _tool_of(agent_type: str, tools: Mapping[str, Tool], query: str) -> tuple[str, list[str]]:
    """The one tool of an agent type, "" for the one that plans by intent; and a note when another tool stands in."""
    if agent_type not in AGENT_TOOLS:
        return "", []
    wanted, *others = AGENT_TOOLS[agent_type]
    tool = next((name for name in (wanted, *others) if name in tools), wanted)
    return tool, [say("plan_stands_in", query, agent=agent_type, wanted=wanted, tool=tool)] if tool != wanted else []


def _registered(
    query: str, intent: QueryIntent, knowledge: Sequence[KnowledgeBase], tools: Mapping[str, Tool]
) -> list[Draft]:
    """A step for each tool of the user's own that asks for this intent and needs nothing but a query."""
    drafts = []
    for name in sorted(set(tools) - set(BUILT_IN)):
        tool = tools[name]
        fields = tool.input_schema.model_fields
        needed = {field for field, info in fields.items() if info.is_required()}
        if intent in tool.intents and "query" in fields and needed <= {"query"}:
            prefix = {"kb_prefix": knowledge[0].name} if len(knowledge) > 1 and "kb_prefix" in fields else {}
            drafts.append(
                Draft(slug(name), name, tool.description or say("plan_search", query), {"query": query, **prefix})
            )
    return drafts


def _in_base(drafts: Sequence[Draft], base: KnowledgeBase) -> list[Draft]:
    return [
        replace(d, label=f"{slug(base.name)}_{d.label}", tool_input={**d.tool_input, "kb_prefix": base.name})
        for d in drafts
    ]


def _depths(drafts: Sequence[Draft]) -> list[int]:
    """How many steps come before each one, on its longest way."""
    depths: list[int] = []
    for draft in drafts:
        depths.append(1 + max((depths[source] for source in draft.before), default=-1))
    return depths


def names_for(base: KnowledgeBase, knowledge: Sequence[KnowledgeBase], decision: RouteDecision) -> tuple[str, ...]:
    """The names that this knowledge base is asked for: the ones that it knows, and the ones that none knows."""
    names = decision["extracted_entities"]["low_level"]
    if len(knowledge) == 1:
        return tuple(names)
    known = {name: [other.name for other in knowledge if other.find_entity(name)] for name in names}
    return tuple(name for name in names if base.name in known[name] or not known[name])


def summary(decision: RouteDecision, knowledge: Sequence[KnowledgeBase]) -> dict[str, Any]:
    """What the plan keeps of the route: no times, so that equal questions give equal plans."""
    return {
        "query_intent": decision["query_intent"],
        "kb_prefixes": [base.name for base in knowledge],
        "method": decision["method"],
        "worker_name": decision["worker_name"],
        "filters": list(decision["filters"]),
        "entities": list(decision["extracted_entities"]["low_level"]),
    }
