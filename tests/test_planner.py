"""Routing and planning: the knowledge base of a message, and the steps by which it is answered."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.films import where
from tests.servers import Reply, scripted_server
from workbench.graphs.plan import RulePlanner
from workbench.graphs.planner import continued
from workbench.graphs.route import decide, is_small_talk, parse_worker_name
from workbench.plans import Plan, PlanStep
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.tools.registry import ToolRegistry, check


def plan_for(
    shelf: Any, question: str, kb: tuple[str, ...] = ("film",), worker: str = "", tools: Any = None, **settings: Any
) -> Plan:
    tools = ToolRegistry() if tools is None else tools
    decision, prefixes = decide(question, list(kb), worker, shelf)
    made = RulePlanner(Settings.load(**settings))
    plan = asyncio.run(made(question, decision, [shelf.get(name) for name in prefixes], tools))
    assert check(plan, tools) == []
    return plan


def shape(plan: Plan) -> list[str]:
    """A line a step: ``id tool <- dependencies``."""
    return [
        f"{s.step_id} {s.tool}" + (f" <- {', '.join(s.dependencies())}" if s.dependencies() else "") for s in plan.steps
    ]


TABLE = """
喜宴哪一年上映？ | wedding_banquet hybrid_search, naive naive_search<0
Who directed The Wedding Banquet? | wedding_banquet hybrid_search, naive naive_search<0
推荐几部类似《喜宴》的电影 | hybrid hybrid_search, global global_search<0
List Christopher Nolan films after 2005 | discover discover, global global_search<0
推荐几部90年代的喜剧 | discover discover
对比《喜宴》和《推手》 | wedding_banquet hybrid_search, pushing_hands hybrid_search, naive naive_search<01
Who is Ang Lee and what has he directed? | ang_lee local_search, works hybrid_search<0
What do plants need? | chain chain_exploration, hybrid hybrid_search, naive naive_search<01
你好 | hybrid hybrid_search
Compare them | hybrid hybrid_search
张艺谋是谁？ | 张艺谋 local_search, works hybrid_search<0
"""
"""Question, and the plan of its intent: each step with its tool and the steps that it waits for."""
BUDGETS = {
    "chain_exploration": (15, 50), "hybrid_search": (15, 50), "naive_search": (10, 30), "global_search": (15, 30),
}  # fmt: skip
BUDGETS |= {"discover": (20, 50), "local_search": (10, 20)}


@pytest.mark.parametrize(("question", "expected"), [row.split(" | ") for row in TABLE.strip().splitlines()])
def test_plans_by_intent(shelf: Any, question: str, expected: str) -> None:
    plan = plan_for(shelf, question)
    steps = [re.sub(r"step_(\d)_\w+", r"\1", line.partition(" ")[2]).replace(" <- ", "<") for line in shape(plan)]
    names = [step.step_id.split("_", 2)[2] for step in plan.steps]
    assert ", ".join(f"{n} {s.replace(', ', '')}" for n, s in zip(names, steps, strict=True)) == expected
    assert all((s.budget.timeout_s, s.budget.top_k) == BUDGETS[s.tool] for s in plan.steps)
    assert plan.problem_statement == question
    asleep = [step.tool for step in plan.steps if step.condition == "if_insufficient"]
    assert asleep == ["naive_search"] * ("naive" in expected and "对比" not in question)


def test_conditions_and_candidates_reach_the_tools(shelf: Any) -> None:
    found, ranked = plan_for(shelf, "列出李安2000年以后的电影").steps
    assert found.tool_input["conditions"] == [
        *where("directors = Ang Lee"),
        {"field": "year", "op": "gt", "value": "2000"},
    ]
    assert ranked.tool_input["candidates"] == {"$from": "step_0_discover.candidates"}


REFUSALS = [
    ("推荐几部电影，不要恐怖片", "genres", "恐怖"),
    ("Recommend some films, no horror please", "genres", "horror"),
    ("我不喜欢恐怖片，有什么推荐？", "genres", "恐怖"),
    ("Recommend a film not by Christopher Nolan", "directors", "Nolan"),
    ("推荐不是诺兰导演的电影", "directors", "诺兰"),
    ("List drama films but no comedies", "genres", "comed"),
]


@pytest.mark.parametrize(("question", "field", "word"), REFUSALS)
def test_what_a_condition_refuses_is_not_searched_for(shelf: Any, question: str, field: str, word: str) -> None:
    first, *others = plan_for(shelf, question).steps
    assert {(one["field"], one["op"]) for one in first.tool_input["conditions"]} >= {(field, "ne")}
    assert not [step for step in (first, *others) if word.lower() in step.tool_input["query"].lower()]


def test_a_plan_speaks_the_language_of_the_question(shelf: Any) -> None:
    chinese, english = plan_for(shelf, "90年代的喜剧有哪些？"), plan_for(shelf, "List comedies from the 1990s")
    assert chinese.assumptions == ["理解为：年份在1990到1999之间、类型是喜剧。"]
    assert english.assumptions == ["Read as: genre is Comedy, year from 1990 to 1999."]
    assert "字段" in chinese.steps[0].objective and "fields" in english.steps[0].objective
    assert chinese.acceptance_criteria == ["年份在1990到1999之间", "类型是喜剧", "所有符合条件的条目"]
    assert english.acceptance_criteria == ["genre is Comedy", "year from 1990 to 1999", "every item that fits"]


def test_a_branch_for_each_knowledge_base(shelf: Any) -> None:
    plan = plan_for(shelf, "Compare Inception and Photosynthesis", kb=("film", "essays"))
    assert shape(plan) == [
        "step_0_film_inception hybrid_search",
        "step_1_film_naive naive_search <- step_0_film_inception",
        "step_2_essays_photosynthesis hybrid_search",
        "step_3_essays_naive naive_search <- step_2_essays_photosynthesis",
    ]
    assert [s.tool_input["kb_prefix"] for s in plan.steps] == ["film", "film", "essays", "essays"]
    assert "film, essays" in plan.assumptions[0]


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_no_more_tasks_than_allowed_and_what_is_left_out_is_said(shelf: Any, most: int) -> None:
    question = "Compare Inception, Tenet, Memento and Hulk"
    plan = plan_for(shelf, question, kb=("film", "essays"), max_tasks=most)
    assert len(plan.steps) == most
    assert any(f"at most {most} steps" in assumption for assumption in plan.assumptions)


@pytest.mark.parametrize(
    ("agent", "tool"),
    [
        ("naive_rag_agent", "naive_search"),
        ("graph_agent", "local_search"),
        ("hybrid_agent", "hybrid_search"),
        ("deep_research_agent", "deep_research"),
    ],
)
def test_another_agent_is_one_step_of_its_tool(shelf: Any, agent: str, tool: str) -> None:
    plan = plan_for(shelf, "Compare Inception and Tenet", worker=f"film:{agent}")
    assert [s.tool for s in plan.steps] == [tool]


def own_tools() -> ToolRegistry:
    tools = ToolRegistry()

    @tools.tool(description="Award winners by name", intents={"qa"})
    def awards(query: str) -> list[str]:
        return [query]

    @tools.tool(description="Needs more than a query", intents={"qa"})
    def prices(query: str, currency: str) -> list[str]:
        return [query, currency]

    return tools


def test_a_tool_of_ones_own_joins_for_its_intents(shelf: Any) -> None:
    plan = plan_for(shelf, "喜宴哪一年上映？", tools=own_tools())
    assert shape(plan)[2:] == ["step_2_awards awards"]
    assert plan.steps[2].objective == "Award winners by name"
    assert all(s.tool != "awards" for s in plan_for(shelf, "推荐几部科幻片", tools=own_tools()).steps)
    assert len(plan_for(shelf, "喜宴哪一年上映？", tools=own_tools(), max_tasks=2).steps) == 2


def test_planning_anew_goes_on_behind_what_has_run(wb: Workbench) -> None:
    run = wb.ask("Who directed The Wedding Banquet?", kb="film", review=["plan", "reflect"]).approve()
    first, *_ = run.plan.steps
    assert {record["step_id"] for record in run.records} == {first.step_id}
    run.respond("And who wrote Sense and Sensibility?")
    assert run.review["point"] == "plan" and run.plan.version == 2 == len(run.plans)
    assert run.plan.steps[0] == first and len(run.plan.steps) > 2
    assert [step.step_id.split("_")[1] for step in run.plan.steps] == [str(n) for n in range(len(run.plan.steps))]


def test_what_ended_well_is_not_run_again():
    def steps(*given: tuple[str, str, list[str]]) -> Plan:
        told = {"objective": "", "tool": "hybrid_search"}
        return Plan(steps=[PlanStep(step_id=i, tool_input={"query": q}, depends_on=on, **told) for i, q, on in given])

    before = steps(("step_0_a", "one", []), ("step_1_b", "two", []), ("step_2_c", "three", []))
    records: list[Any] = [
        {"step_id": i, "attempt": 1, "status": status}
        for i, status in (("step_0_a", "success"), ("step_1_b", "failed"))
    ]
    made = steps(("step_0_x", "one", []), ("step_1_y", "two", ["step_0_x"]))
    plan = continued(made, before, records)
    assert [f"{step.step_id} {step.depends_on}" for step in plan.steps] == [
        "step_0_a []", "step_1_b []", "step_2_y ['step_0_a']",
    ]  # fmt: skip


def drafted(tool: str = "hybrid_search", **more: Any) -> dict[str, Any]:
    return {"name": "look", "objective": "查《喜宴》", "tool": tool, "query": "喜宴", **more}


def condition(field: str, op: str, *values: str) -> dict[str, Any]:
    return {"field": field, "op": op, "value": values[0]}


def llm_plan(workspace: Path, *answers: Any, kb: str | list[str] = "film") -> tuple[Plan, list[str]]:
    with scripted_server(*(Reply([json.dumps(answer, ensure_ascii=False)]) for answer in answers)) as server:
        models = {"chat_base_url": server.url, "models": {"planner": "openai:m"}}
        with Workbench.open(workspace, **models) as wb:
            if "essays" not in wb.knowledge.names():
                (workspace / "tea.md").write_text("# Tea\n\nOolong tea is partly oxidised.\n", encoding="utf-8")
                wb.add_knowledge("essays", [workspace / "tea.md"])
            run = wb.ask("喜宴哪一年上映？", kb=kb, review="plan")
            return run.plan, [json.dumps(request["messages"], ensure_ascii=False) for request in server.requests]


def test_a_model_plans(workspace: Path) -> None:
    answer = {
        "steps": [
            drafted(
                "discover",
                name="Find",
                conditions=[condition("directors", "eq", "Ang Lee"), condition("year", "ge", "1990")],
            ),
            drafted("global_search", name="rank", candidates={"$from": "Find.candidates"}, depends_on=["Find"]),
        ],
        "assumptions": ["只看李安"],
    }
    plan, _ = llm_plan(workspace, answer)
    assert shape(plan) == ["step_0_find discover", "step_1_rank global_search <- step_0_find"]
    assert plan.steps[0].tool_input["conditions"] == [
        {"field": "directors", "op": "eq", "value": "Ang Lee"},
        {"field": "year", "op": "ge", "value": "1990"},
    ]
    assert plan.steps[1].tool_input["candidates"] == {"$from": "step_0_find.candidates"}
    assert (plan.metadata["planner"], plan.metadata["answer"]) == ("llm", "first")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (drafted("hybrid_search", count_by="year"), "count_by"),
        (drafted("discover", conditions=[condition("regisseur", "eq", "Ang Lee")]), "regisseur"),
        (drafted("discover", conditions=[condition("year", "gt", "soon")]), "soon"),
        (drafted(query={"$from": "find.results", "text": "Who made {}?"}), "depends on 'find'"),
    ],
)
def test_what_a_tool_does_not_take_goes_back(workspace: Path, wrong: Any, why: str) -> None:
    plan, sent = llm_plan(workspace, {"steps": [wrong]}, {"steps": [drafted()]})
    assert plan.metadata["answer"] == "repaired" and why in plan.metadata["refused"][0] and why in sent[1]


def test_the_model_chooses_the_knowledge_base_of_a_step(workspace: Path) -> None:
    answer = {"steps": [drafted(kb_prefix="essays"), drafted(name="two", kb_prefix="film")]}
    plan, _ = llm_plan(workspace, answer, kb=["film", "essays"])
    assert [s.tool_input["kb_prefix"] for s in plan.steps] == ["essays", "film"]


def test_a_source_outside_is_offered_only_where_a_vocabulary_allows_it(workspace: Path) -> None:
    for name, offered in (("film", True), ("essays", False)):
        _, sent = llm_plan(workspace, {"steps": [drafted()]}, kb=name)
        assert ("- enrichment:" in sent[0]) is offered


SMALL_TALK = """Hello | hi there! | Good morning | Thanks a lot | Thank you, bye! | Who are you? | What can you do?
你好 | 您好！ | 谢谢你 | 再见 | 你是谁？ | 你能做什么 | 早上好 | 好的，谢谢"""
QUESTIONS = "Hello, who directed Inception? | 你好，推荐一部电影 | Who is Ang Lee? | 再推荐几部 | | 谢谢你能来"


def test_small_talk_is_nothing_but_small_talk() -> None:
    assert [text for text in SMALL_TALK.replace("\n", "|").split("|") if not is_small_talk(text.strip())] == []
    assert [text for text in QUESTIONS.split("|") if is_small_talk(text.strip())] == []


@pytest.mark.parametrize(
    ("name", "worker"),
    [
        ("film:graph_agent:retrieve_only", ("film", "graph_agent", "retrieve_only")),
        ("film:graph_agent", ("film", "graph_agent", "retrieve_only")), ("film", ("", "film", "retrieve_only")),
        ("default:graph_agent", ("", "graph_agent", "retrieve_only")),
        ("hybrid_agent", ("", "hybrid_agent", "retrieve_only")), ("", ("", "", "retrieve_only")),
        ("general", ("", "", "retrieve_only")), ("general:graph_agent:retrieve_only", ("", "", "retrieve_only")),
    ],
)  # fmt: skip
def test_worker_names(name: str, worker: tuple[str, str, str]) -> None:
    assert tuple(parse_worker_name(name)) == worker


@pytest.mark.parametrize(
    ("message", "requested", "worker", "prefixes", "method"),
    [
        ("喜宴哪一年上映？", [], "", ["film"], "heuristic"),
        ("How do plants turn sunlight into sugar?", [], "", ["essays"], "heuristic"),
        ("推荐几部科幻片", [], "", ["film"], "heuristic"),
        ("谁导演了《红高粱》？", [], "", ["film"], "heuristic"),
        ("Hello!", [], "", [], "default"),
        ("Best pizza dough recipe", [], "", ["film", "essays"], "heuristic"),  # searched where it may be
        ("Who is Ang Lee?", ["essays"], "", ["essays"], "override"),
        ("Who is Ang Lee?", ["film", "essays"], "", ["film", "essays"], "override"),
        ("Who is Ang Lee?", ["general"], "film:graph_agent", [], "override"),
        ("Who is Ang Lee?", [""], "film:graph_agent", [], "override"),
        ("Hello!", [], "film:graph_agent", ["film"], "override"),
        ("Who is Ang Lee?", ["essays"], "film:graph_agent", ["film"], "override"),
        ("Who is Ang Lee?", [], "graph_agent", ["film"], "heuristic"),
    ],
)
def test_the_knowledge_base(shelf, message, requested, worker, prefixes, method):
    decision, found = decide(message, requested, worker, shelf)
    assert (found, decision["method"]) == (prefixes, method), decision["reason"]
    assert decision["kb_prefix"] == (prefixes[0] if prefixes else "general")
    agent = "graph_agent" if "graph_agent" in worker else "fusion_agent"
    assert decision["worker_name"] == (f"{prefixes[0]}:{agent}:retrieve_only" if prefixes else "")


def test_what_only_another_base_knows_brings_it_in(shelf: Any) -> None:
    assert decide("Compare Inception and Photosynthesis", [], "", shelf).kb_prefixes == ["essays", "film"]


def test_without_automatic_routing_nothing_is_searched(shelf: Any) -> None:
    decision, prefixes = decide("Who is Ang Lee?", [], "", shelf, auto_route=False)
    assert (prefixes, decision["kb_prefix"], decision["worker_name"]) == ([], "general", "")
    assert "off" in decision["reason"]
