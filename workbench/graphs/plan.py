"""Planning by rules: which searches a question needs, by intent, in which order.

``RulePlanner`` follows a table: each intent has a recipe that makes the steps of one knowledge base. Documents with
typed fields are selected by them; the part ``chains`` plans for texts that name one another. The branches are joined by
the user's own tools that ask for the intent, cut to the most tasks that a plan may have, and numbered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from workbench.extensions import call_node
from workbench.graphs.needs import read_needs
from workbench.graphs.route import AGENT_TOOLS, workers_by_base
from workbench.plans import Plan, PlanBudget, PlanStep, step_renamed
from workbench.ports import Bases, KnowledgeBase, Tools
from workbench.settings import RULES, Settings
from workbench.state import Json, QueryIntent, RouteDecision, unique, without_empty
from workbench.text import detect_language, fold
from workbench.tools.registry import BUILT_IN
from workbench.views.labels import Labels

SEARCH = "hybrid_search"
FIRST_SEARCH = "first_search"
"""In the metadata of a plan of the rules: a model plans where it does not answer."""
FULL, WIDE, SHORT, NAMES, RANK = (15.0, 50), (20.0, 50), (10.0, 30), (10.0, 20), (15.0, 30)
"""Budgets of the table: seconds and results, at the default settings; other settings scale them."""

PLANNED_BY = (
    "planner",
    "max_tasks",
    "execution_mode",
    "step_timeout_s",
    "step_top_k",
    "step_max_retries",
)
"""Settings on which a plan of the rules depends."""


def say(key: str, query: str, **words: object) -> str:
    """Return a sentence of a plan in the language of the query.

    >>> say("plan_who", "老舍是谁？", name="老舍")
    '确认老舍是谁'
    """
    return Labels(detect_language(query))(key, query=query, **words)


def slug(name: str) -> str:
    """Return a short label of a name.

    >>> slug("The Teahouse"), slug("Amélie"), slug("《茶馆》")
    ('teahouse', 'amelie', '茶馆')
    """
    words = re.findall(r"[a-z0-9\u4e00-\u9fff]+", fold(name).replace("'", ""))
    words = words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words
    return "_".join(words)[:40].strip("_") or "name"


def scaled_budget(settings: Settings, seconds: float, results: int) -> PlanBudget:
    """Return a budget of the table, scaled by the settings."""
    return PlanBudget(
        timeout_s=round(seconds / FULL[0] * settings.step_timeout_s, 3),
        top_k=max(1, round(results / FULL[1] * settings.step_top_k)),
        max_retries=settings.step_max_retries,
    )


@dataclass(frozen=True)
class RulePlanner:
    """Plans by intent, the same plan for the same question.

    Attributes:
        settings: ``max_tasks``, ``execution_mode`` and the budget of a step.
    """

    settings: Settings
    name: ClassVar[str] = RULES

    async def __call__(
        self, query: str, decision: RouteDecision, knowledge: Bases, tools: Tools
    ) -> Plan:
        """Return the plan for a question: a branch for each worker of each knowledge base."""
        branches = []
        notes = []
        by_intent = False
        bases = {base.name: base for base in knowledge}
        for agent in workers_by_base(decision["worker_name"], list(bases)):
            base = bases[agent.kb_prefix]
            wanted = AGENT_TOOLS.get(agent.agent_type, ())
            if not wanted and self.settings.planner == "one_step":
                wanted = (SEARCH,)
            prefix = base.name if len(knowledge) > 1 else ""
            names = names_for(base, knowledge, decision)
            ask = Ask(query, decision, names, self.settings, prefix)
            if not wanted:
                branches.append(steps_for(ask, base, tools))
                by_intent = True
                continue
            tool = next((name for name in wanted if name in tools), wanted[0])
            # a plan says which tool stands in for one that is not registered
            if tool != wanted[0]:
                words = {"agent": agent.agent_type, "wanted": wanted[0], "tool": tool}
                notes.append(say("plan_stands_in", query, **words))
            branches.append([ask.search(tool.removesuffix("_search"), tool=tool)])
        own = [*self._registered(query, decision["query_intent"], knowledge, tools)]
        limit = self.settings.max_tasks
        steps, left_out = _numbered(branches, own if by_intent else [], limit)
        if left_out:
            notes.append(say("plan_left_out", query, tools=", ".join(left_out), most=limit))
        return Plan(
            problem_statement=query,
            assumptions=unique([*assumptions(query, decision, knowledge), *notes]),
            steps=steps,
            execution_mode=self.settings.execution_mode,
            acceptance_criteria=[need.text for need in read_needs(query, decision)],
            metadata={"planner": self.name, "route": summary(decision, knowledge)},
        )

    def _registered(
        self, query: str, intent: QueryIntent, knowledge: Bases, tools: Tools
    ) -> Iterator[PlanStep]:
        """Yield a step for each of the user's own tools that asks for this intent and needs nothing but a query."""
        for name in sorted(set(tools) - set(BUILT_IN)):
            tool = tools[name]
            fields = tool.input_schema.model_fields
            required = {field for field, info in fields.items() if info.is_required()}
            if intent in tool.intents and "query" in fields and required <= {"query"}:
                several = len(knowledge) > 1 and "kb_prefix" in fields
                prefix = {"kb_prefix": knowledge[0].name} if several else {}
                yield PlanStep(
                    step_id=slug(name),
                    objective=tool.description or say("plan_search", query),
                    tool=name,
                    tool_input={"query": query, **prefix},
                    budget=scaled_budget(self.settings, *FULL),
                )


def _numbered(
    branches: Sequence[Sequence[PlanStep]], own: Sequence[PlanStep], max_tasks: int
) -> tuple[list[PlanStep], list[str]]:
    """Return numbered steps, and the tools of those for which there was no room.

    The first steps of every branch come before the second of any, and the table before the user's own tools.
    """
    rows = [*branches, *([step] for step in own)]
    places = sorted(
        (step.priority, b, i) for b, steps in enumerate(branches) for i, step in enumerate(steps)
    )
    places += [(1, len(branches) + n, 0) for n in range(len(own))]
    steps = []
    ids = [dict[str, str]() for _ in rows]
    for number, (_, b, i) in enumerate(sorted(places[:max_tasks], key=lambda place: place[1:])):
        step = rows[b][i]
        ids[b][step.step_id] = f"step_{number}_{step.step_id.partition(':')[2] or step.step_id}"
        steps.append(step_renamed(step, ids[b]))
    return steps, [rows[b][i].tool for _, b, i in places[max_tasks:]]


def names_for(base: KnowledgeBase, knowledge: Bases, decision: RouteDecision) -> tuple[str, ...]:
    """Return the names that this base is asked for: the ones that it knows, and the ones that none knows."""
    names = decision["extracted_entities"]["low_level"]
    if len(knowledge) == 1:
        return tuple(names)
    bases_of = {
        name: [other_base.name for other_base in knowledge if other_base.entity(name)]
        for name in names
    }
    return tuple(name for name in names if base.name in bases_of[name] or not bases_of[name])


def summary(decision: RouteDecision, knowledge: Bases) -> Json:
    """Return what the plan keeps of the route: no times, so that equal questions give equal plans."""
    return {
        "query_intent": decision["query_intent"],
        "kb_prefixes": [base.name for base in knowledge],
        "method": decision["method"],
        "worker_name": decision["worker_name"],
        "filters": list(decision["filters"]),
        "entities": list(decision["extracted_entities"]["low_level"]),
    }


def assumptions(query: str, decision: RouteDecision, knowledge: Bases) -> list[str]:
    """Return what a plan takes for granted: several bases, how the question was read, unknown names."""
    question = decision.get("question")
    names = decision["extracted_entities"]["low_level"]
    unknown = [name for name in names if not any(base.entity(name) for base in knowledge)]
    parts = {
        "plan_several": (
            "names",
            [base.name for base in knowledge] if len(knowledge) > 1 else [],
        ),
        "plan_understood": ("read", question["understood"] if question else []),
        "plan_not_applied": ("parts", question["not_applied"] if question else []),
        "plan_unlinked": ("names", unknown),
    }
    return [
        say(key, query, **{word: listed(values, query)})
        for key, (word, values) in parts.items()
        if values
    ]


def listed(words: Sequence[str], query: str) -> str:
    """Join words in the language of the query."""
    return ("、" if detect_language(query) == "zh" else ", ").join(words)


# --- The steps of one knowledge base ---


@dataclass
class Ask:
    """What one branch of a plan is for: the question, and its words as one knowledge base is searched for them."""

    query: str
    decision: RouteDecision
    names: tuple[str, ...]
    settings: Settings
    prefix: str = ""  # of the knowledge base, where there are several
    number: int = 0  # of the newest step

    def step(
        self,
        label: str,
        tool: str,
        key: str,
        tool_input: Json,
        budget: tuple[float, int] = FULL,
        after: Sequence[PlanStep] = (),
        condition: Literal["always", "if_insufficient"] = "always",
        about: Sequence[str] = (),
    ) -> PlanStep:
        """Return a step ``about`` names, with an id that holds within the branch; the plan numbers it."""
        self.number += 1
        question = self.decision.get("question")
        surfaces = {n["name"]: n["surface"] for n in question["names"]} if question else {}
        name = listed([surfaces.get(name, name) for name in about], self.query)
        where = {"kb_prefix": self.prefix} if self.prefix else {}
        return PlanStep(
            step_id=f"{self.number}:{slug(self.prefix) + '_' if self.prefix else ''}{label}",
            objective=say(key, self.query, name=name),
            tool=tool,
            tool_input={**tool_input, **where},
            depends_on=[step.step_id for step in after],
            budget=scaled_budget(self.settings, *budget),
            priority=1 + max((step.priority for step in after), default=0),
            condition=condition,
        )

    @property
    def words(self) -> list[str]:
        """Return what the question asks next to names and fields."""
        return self.decision["extracted_entities"]["high_level"]

    @property
    def selection(self) -> Json:
        """Return the input of ``discover``: conditions and order; empty where none is read."""
        question = self.decision.get("question")
        sort = question and question["sort"]
        return without_empty({"conditions": self.decision["filters"], "sort": sort})

    @property
    def grounded(self) -> str:
        """Return the question, with the knowledge base's own spelling of names that it writes otherwise.

        Of a recommendation only its content is searched: "Recommend a few" would find a title with these words.
        """
        wish = self.decision["query_intent"] == "recommend"
        text = " ".join(self.words) if wish else searched_text(self.query, self.decision)
        return with_names(text, self.names).strip()

    def search(
        self, label: str = "hybrid", key: str = "plan_search", tool: str = SEARCH, **more: Any
    ) -> PlanStep:
        """Return a plain search for the question."""
        return self.step(label, tool, key, {"query": self.grounded or self.query}, **more)

    def naive(self, key: str, after: Sequence[PlanStep], **more: Any) -> PlanStep:
        """Return a search by meaning alone, behind these steps."""
        return self.search("naive", key, "naive_search", budget=SHORT, after=after, **more)

    def discover(self, key: str = "plan_discover") -> PlanStep:
        """Return the selection of documents by their fields."""
        query = " ".join(self.words) if self.selection else ""
        return self.step("discover", "discover", key, {"query": query, **self.selection}, WIDE)


def searched_text(query: str, decision: RouteDecision) -> str:
    """Return the query; where a condition refuses something, only what else is asked: it would rank that first."""
    entities = decision["extracted_entities"]
    refuses = any(condition["op"] in ("ne", "not_in") for condition in decision["filters"])
    return " ".join([*entities["low_level"], *entities["high_level"]]) if refuses else query


def with_names(query: str, names: Iterable[str]) -> str:
    """Return the query and the names that it does not hold.

    >>> with_names("茶馆哪一年出版？", ["The Teahouse"]), with_names("Who is Lao She?", ["Lao She"])
    ('茶馆哪一年出版？ The Teahouse', 'Who is Lao She?')
    """
    return " ".join([query, *(name for name in names if fold(name) not in fold(query))])


def steps_for(ask: Ask, base: KnowledgeBase, tools: Tools) -> list[PlanStep]:
    """Return the steps that a question needs in one knowledge base."""
    intent = ask.decision["query_intent"]
    if ask.selection and intent in ("qa", "unknown"):
        return [ask.discover(), *([ask.search()] if ask.grounded else [])]
    recipe = RECIPES[intent] if ask.names or RECIPES[intent] is _discover else _otherwise
    return call_node("chain_steps", [], ask, base, tools) or recipe(ask)


def _otherwise(ask: Ask) -> list[PlanStep]:
    return [ask.search()]


def _qa(ask: Ask) -> list[PlanStep]:
    about = ask.search(slug(ask.names[0]), "plan_about", about=ask.names)
    return [about, ask.naive("plan_fallback", [about], condition="if_insufficient")]


def _discover(ask: Ask) -> list[PlanStep]:
    """Find candidates, by fields where the question has conditions or nothing else, then look at them together."""
    if ask.selection:
        first = ask.discover()
    elif ask.words or ask.names:
        first = ask.search(key="plan_candidates")
    else:
        first = ask.discover("plan_candidates")
    if not ask.grounded:
        return [first]
    taken = {"query": ask.grounded, "candidates": {"$from": f"{first.step_id}.candidates"}}
    return [first, ask.step("global", "global_search", "plan_rank", taken, RANK, [first])]


def _compare(ask: Ask) -> list[PlanStep]:
    sides = []
    for name in ask.names[: max(1, ask.settings.max_tasks - 1)]:
        query = " ".join([name, *ask.words])
        sides.append(ask.step(slug(name), SEARCH, "plan_side", {"query": query}, about=[name]))
    return [*sides, ask.naive("plan_together", sides)]


def _person(ask: Ask) -> list[PlanStep]:
    name = ask.names[0]
    tool_input = {"query": name, "entities": [name]}
    who = ask.step(slug(name), "local_search", "plan_who", tool_input, NAMES, about=[name])
    works = ask.search("works", "plan_works", after=[who], about=[name])
    return [who, works]


RECIPES: dict[QueryIntent, Callable[[Ask], list[PlanStep]]] = {
    "qa": _qa,
    "recommend": _discover,
    "list": _discover,
    "compare": _compare,
    "person": _person,
    "unknown": _otherwise,
}
