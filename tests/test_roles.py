"""A model at every node: who is asked, with what, what is kept, what reaches the others, and what is not followed."""

import asyncio
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from tests.servers import Reply, ScriptedServer, only, scripted_server
from tests.servers.roles import needs, responder, role_of
from tests.shelves import jsonl, noted
from workbench.errors import SettingsError
from workbench.records.prompts import NAMES, Prompts, fenced, slots
from workbench.runs.asking import checked_settings
from workbench.runs.stored import prompts_of, snapshot
from workbench.session import Workbench
from workbench.settings import ROLES, Settings

KEY = "sk-secret-of-the-roles-7731"
NOTES = {
    "Kiln": "The east kiln was built in 1993 by Mei Lan. It burns wood.",
    "Mei Lan": "Mei Lan was born in Jingdezhen. She learned from her uncle.",
    "Glaze": "Celadon glaze needs iron oxide.",
    "茶馆": "《茶馆》由老舍写成，1957年发表。",
}
CORE = {"embedding_model": "hashing", "rerank_model": "none", "model_backoff_s": 0.01}
QUESTION = "Where was the person born who built the east kiln?"


@pytest.fixture
def bench(tmp_path: Path, server: ScriptedServer, opens: Any) -> Callable[..., Workbench]:
    noted(tmp_path / "w", NOTES)

    told = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": KEY, **CORE}
    return lambda **settings: opens(tmp_path / "w", **{**told, **settings})


def step(query: str, tool: str = "naive_search", **more: Any) -> dict[str, Any]:
    return {"name": "look", "objective": f"find {query}", "tool": tool, "query": query, **more}


def reflects(enough: bool, *steps: dict[str, Any], verdict: str = "met") -> Callable[[str], dict[str, Any]]:
    """A reflector that says one thing of every need, with the first passage behind it."""

    def says(text: str) -> dict[str, Any]:
        told = [{"need": n, "verdict": verdict, "passages": [1]} for n, _ in enumerate(needs(text), 1)]
        return {"needs": told, "enough": enough, "steps": list(steps), "reasoning": "As I see it."}

    return says


GOOD = {
    "planner": lambda _: {"steps": [step("east kiln")], "acceptance_criteria": ["Mei Lan born"]},
    "reflector": reflects(True),
    "writer": lambda _: "Mei Lan was born in Jingdezhen [1].",
    "checker": lambda _: {"sentences": [{"sentence": 1, "verdict": "supported"}]},
    "follow_up": lambda _: {"question": "When was the east kiln built?"},
    "rewriter": lambda _: {"query": "east kiln builder"},
}


def test_models_by_role_come_from_the_environment_and_code_wins(monkeypatch) -> None:
    monkeypatch.setenv("WORKBENCH_MODELS", '{"writer": "openai:w", "judge": {"model": "openai:j", "effort": "low"}}')
    monkeypatch.setenv("WORKBENCH_MODELS__FOLLOW_UP", "rules")
    settings = Settings.load(models={"writer": "openai:mine"})
    assert settings.models == {"writer": "openai:mine", "judge": "openai:j?effort=low", "follow_up": "rules"}
    again = pickle.loads(pickle.dumps(settings))  # noqa: S301, of our own making
    assert again == settings, "a process of its own has the settings of the parts too"
    assert checked_settings({"models": {"planner": "openai:p"}}) == {"models": {"planner": "openai:p"}}
    monkeypatch.setenv("WORKBENCH_MODELS", "[")
    with pytest.raises(SettingsError, match="WORKBENCH_MODELS is not a JSON object"):
        Settings.load()


def test_every_role_is_asked_and_each_call_is_told(bench, server) -> None:
    server.respond = responder(**GOOD)
    wb = bench()
    run = wb.ask(QUESTION)
    assert run.status == "done" and run.answer.startswith("Mei Lan was born in Jingdezhen [1]")
    calls = run.calls()
    roles = ["planner", "reflector", "writer", "checker"]
    assert [call["role"] for call in calls] == roles, "one base and no history: there is nothing to route or follow"
    assert [role_of(request) for request in server.requests] == [call["role"] for call in calls]
    assert run.plan.metadata["planner"] == "llm" and run.reflections[-1]["signals"]["judge"] == "openai:m"
    for call, request in zip(calls, server.requests, strict=True):
        sent = [str(message["content"]) for message in request["messages"]]
        assert [text for _, text in call["messages"]] == sent and call["reply"] and not call["failed"]
        assert (call["input"], call["output"], call["model"]) == (7, 5, "openai:m")
        version = wb.prompts[call["role"]].version
        assert call["prompt"] == f"{call['role']}.en {version}" and call["sampling"]["temperature"] == 0
    assert list(calls.to_frame()["role"]) == [call["role"] for call in calls]
    assert "<table" in calls._repr_html_()


def test_mixed_runs_and_models_given_as_objects(bench, server) -> None:
    server.respond = responder(**GOOD)
    wb = bench(chat_model="")
    enough = {"needs": [], "enough": True, "steps": [], "reasoning": ""}
    judge = FakeListChatModel(responses=[json.dumps(enough)])
    run = wb.ask(QUESTION, kb="notes", models={"reflector": judge})
    assert run.plan.metadata["planner"] == "rules" and [c["role"] for c in run.calls()] == ["reflector"]
    assert run.calls()[0]["model"].startswith("langchain:FakeListChatModel") and not server.requests
    run = wb.ask(QUESTION, kb="notes", models={"all": "openai:m", "writer": "rules", "checker": "rules"})
    assert {c["role"] for c in run.calls()} == {"planner", "reflector"}
    with pytest.raises(SettingsError, match="Known: all, router"):
        wb.ask(QUESTION, models={"poet": "openai:m"})
    with pytest.raises(SettingsError, match="WORKBENCH_MODELS__WRITER is 'gpt'"):
        wb.ask(QUESTION, models={"writer": "gpt"})


def test_no_evidence_and_an_unmet_field_are_never_enough(bench, server, tmp_path) -> None:
    server.respond = responder(**{**GOOD, "planner": lambda _: {"steps": [step("zzz", tool="keyword_search")]}})
    wb = bench(max_iterations=1)
    run = wb.ask("zzz qqq?", kb="notes")
    assert not run.evidence and run.reflections[-1]["stop_reason"] != "quality_satisfied"
    server.respond = responder(**{**GOOD, "planner": lambda _: {"steps": [step("Bea")]}})
    rows = [
        {"id": "a", "title": "Ada", "text": "A ship.", "length": 20},
        {"id": "b", "title": "Bea", "text": "A ship."},
    ]
    wb.add_knowledge("ships", [jsonl(tmp_path / "ships.jsonl", rows)])
    run = wb.ask("What is the length of Bea?", kb="ships")
    seen = run.reflections[-1]["signals"]
    assert any("length" in lost for lost in seen.get("overruled", [])) or seen.get("missing_fields")
    assert run.reflections[-1]["stop_reason"] != "quality_satisfied"


def test_what_a_reviewer_says_is_an_instruction_to_the_planner(bench, server) -> None:
    heard: list[str] = []

    def plans(text: str) -> dict[str, Any]:
        heard.append(text)
        return {"steps": [step(f"kiln {len(heard)}")]}

    server.respond = responder(**{**GOOD, "planner": plans})
    run = bench().ask(QUESTION, kb="notes", review="plan")
    run.respond("look at the uncle too").approve()
    assert run.query == QUESTION and "look at the uncle too" in heard[-1]
    assert "look at the uncle too" not in heard[0] and run.plan.problem_statement == QUESTION
    assert "not run: " in heard[-1] and "not run: " not in heard[0], "the plan that is answered"
    run = bench().ask(QUESTION, kb="notes", review="reflect", session="another")
    run.respond("look at the uncle too")
    assert run.evidence[0]["evidence"][:40] in heard[-1] and "success" in heard[-1], "and what it found"


def test_budgets_of_tokens_and_money_stop_cleanly(bench, server, tmp_path) -> None:
    server.respond = responder(**{**GOOD, "reflector": reflects(False, step("Mei Lan"), verdict="missing")})
    prices = tmp_path / "prices.toml"
    prices.write_text('["openai:m"]\ninput = 1000000.0\noutput = 0.0\n', encoding="utf-8")
    wb = bench(token_budget=20, prices=str(prices))
    run = wb.ask(QUESTION, kb="notes")
    assert run.status == "done" and len(server.requests) == 2 and run.answer
    assert "20 tokens are spent" in run.reflections[-1]["signals"]["spent"]
    assert "20 tokens are spent" in run.reflections[-1]["reasoning"]
    assert [c["money"] for c in run.calls()] == [7.0] * 2
    assert wb.replay(run.run_id).status == "done"
    cheap = bench(money_budget=8.0, prices=str(prices))
    assert len(cheap.ask(QUESTION, kb="notes").calls()) == 2


@pytest.mark.parametrize("count", [12, pytest.param(50, marks=pytest.mark.full)])
async def test_many_answers_stream_at_once_without_a_mix_up(count, bench, server) -> None:
    def says(request: dict[str, Any]) -> Reply:
        number = str(request["messages"][-1]["content"]).rpartition("number ")[2].split("?")[0]
        return Reply([f"It is {number}", f" and {number}", " [1]."], delay_s=0.01)

    server.respond = says
    wb = bench(**only("writer"))

    async def streamed(number: int) -> str:
        events = wb.start(f"Which kiln has the number {number}?", kb="notes").aio.events()
        return "".join([event["content"] async for event in events if event.get("status") == "token"])

    answers = await asyncio.gather(*map(streamed, range(count)))
    assert answers == [f"It is {n} and {n} [1]." for n in range(count)]


def test_a_resumed_run_keeps_its_prompts(bench, server) -> None:
    server.respond = responder(**GOOD)
    wb = bench()
    wb.prompts["writer"] = {"user": "$question Be brief."}
    run = wb.ask(QUESTION, kb="notes", review="reflect")
    del wb.prompts["writer"]
    run.approve()
    assert "Be brief." in run.calls().by_role("writer")[0]["messages"][-1][1]
    assert prompts_of(run)["writer"].user == "$question Be brief."


def test_every_prompt_names_only_its_slots_and_uses_what_matters() -> None:
    prompts = Prompts()
    assert len(prompts) == 2 * len(NAMES) and set(ROLES) <= set(NAMES)
    for prompt in prompts.values():
        told = prompt.messages({slot: f"«{slot}»" for slot in slots(prompt.role)})
        text = "".join(text for _, text in told)
        assert all(f"«{slot}»" in text for slot in slots(prompt.role)), prompt.name


def test_prompts_are_set_taken_back_and_read_from_files(tmp_path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    prompts = Prompts(folder)
    prompts["planner"] = {"system": "Plan $question for $$5."}
    assert prompts["planner"].label.startswith("3+")
    assert prompts["planner.zh"].source == "shipped" and list(prompts.own()) == ["planner.en"]
    assert prompts["planner"].messages(dict.fromkeys(slots("planner"), "x"))[0][1] == "Plan x for $5."
    del prompts["planner"]
    assert prompts["planner"].source == "shipped"
    (folder / "judge.en.toml").write_text('version = 3\nsystem = "Judge."\nuser = "$answer"\n', encoding="utf-8")
    assert (prompts["judge"].version, prompts["judge"].system) == (3, "Judge.")
    prompts["judge.zh"] = folder / "judge.en.toml"
    assert prompts["judge.zh"].system == "Judge."
    for bad in ("$evil", "5$ off", "x" * 100_001):
        with pytest.raises(SettingsError, match=r"prompt planner\.en"):
            prompts["planner"] = {"user": bad}
    with pytest.raises(SettingsError, match="Known: abstract"):
        prompts["poet"]
    (folder / "router.en.toml").write_text("system = 1", encoding="utf-8")
    with pytest.raises(SettingsError, match="is not a prompt"):
        prompts["router"]
    (folder / "router.en.toml").unlink()
    assert fenced("</corpus>") == "‹/corpus>"


LEE = "Which films did Ang Lee direct?"
SEARCH = {"name": "lee", "objective": "Ang Lee", "tool": "hybrid_search", "query": "Ang Lee director"}
SELECT = {
    "name": "films", "objective": "his films", "tool": "discover", "query": "films",
    "conditions": [{"field": "directors", "op": "eq", "value": "Ang Lee"}],
}  # fmt: skip
PLAN = {"steps": [SEARCH, SELECT], "acceptance_criteria": ["films of Ang Lee"], "assumptions": []}


@pytest.fixture
def asked(workspace) -> Any:
    """Ask with a model of these roles; gives the run and what each role was sent."""

    def ask(roles: dict[str, Callable[[str], Any]], question: str = LEE, **settings: Any) -> tuple[Any, Any]:
        sent: dict[str, list[str]] = {}

        def heard(role: str) -> Callable[[str], Any]:
            def say(text: str) -> Any:
                sent.setdefault(role, []).append(text)
                return roles[role](text)

            return say

        models = {"models": dict.fromkeys(roles, "openai:m")}
        with scripted_server() as server:
            server.respond = responder(**{role: heard(role) for role in roles})
            with Workbench.open(workspace, chat_base_url=server.url, **models, **settings) as wb:
                run = snapshot(wb.ask(question, kb="film"))
                return run.error, run.state, run.evidence, run.answer, run.reflections, run.records, sent

    return ask


def enough(_: str) -> Any:
    needs = [{"need": 1, "passages": [1], "verdict": "met"}]
    return {"needs": needs, "enough": True, "steps": [], "reasoning": "It is."}


def test_a_strict_checker_is_not_overruled_on_form(asked):
    """A date in other words, a sentence whose source stands in the next, and a right refusal carry no mark."""
    text = (
        "He is known for films. Brokeback Mountain came out on the 2nd of September 2005 [1]. "
        "The corpus does not say who paid for them [1]."
    )

    def checker(_: str) -> Any:
        verdicts = ["supported", "unsupported", "supported"]  # the cited ones first
        return {"sentences": [{"sentence": n, "verdict": v} for n, v in enumerate(verdicts, 1)]}

    roles = {"planner": lambda _: PLAN, "reflector": enough, "writer": lambda _: text, "checker": checker}
    _, state, _, answer, *_ = asked(roles)
    assert "(" not in answer, answer
    assert [each["verdict"] for each in state["support"]][:2] == ["supported", "supported"]
    roles |= {"writer": lambda _: "Zork built it in 1802 [1]."}
    _, state, _, answer, *_ = asked({**roles, "checker": lambda _: ""}, bounds="off")
    assert answer == "Zork built it in 1802 [1]."


@pytest.mark.parametrize(
    ("role", "reply", "why"),
    [
        ("planner", "nothing usable", "WORKBENCH_ON_FAILURE"),
        ("reflector", {"needs": [], "enough": False, "steps": [], "reasoning": "More."}, "reflector"),
    ],
)
def test_on_failure_raise_mixes_no_model_with_the_rules(asked, role, reply, why):
    error, *_ = asked({"planner": lambda _: PLAN, role: lambda _: reply}, on_failure="raise")
    assert error and why in error


def test_a_query_holds_what_an_earlier_step_found(asked):
    """A plan hops over text, the tape has the query that was asked, and where nothing was found nothing is searched."""
    hop = {**SEARCH, "name": "hop", "query": {"$from": "films.candidates", "text": "Who wrote {}?"}}
    _, _, _, _, _, records, sent = asked({"planner": lambda _: {**PLAN, "steps": [SELECT, hop]}, "reflector": enough})
    assert records[-1]["raw_input"]["query"].startswith("Who wrote ") and "{}" not in records[-1]["raw_input"]["query"]
    assert records[-1]["raw_input"]["query"] in sent["reflector"][0]
    none = {**SELECT, "conditions": [{"field": "year", "op": "gt", "value": "2090"}]}
    _, _, _, _, _, records, _ = asked({"planner": lambda _: {**PLAN, "steps": [none, hop]}, "reflector": enough})
    assert "films.candidates, which is empty" in str([record["error"] for record in records])


def test_no_model_plans_what_the_first_search_answers(asked):
    roles = {"planner": lambda _: PLAN, "reflector": enough, "writer": lambda _: "Christopher Nolan did [1]."}
    _, _, _, answer, reflections, _, sent = asked(roles, "Who directed Memento?", search_first=True)
    assert set(sent) == {"writer"} and "No model was asked to plan" in reflections[0]["reasoning"]
    assert answer == "Christopher Nolan did [1]."
    *_, sent = asked(roles, "Who is the uncle of Zork of Zorkland?", search_first=True)
    assert set(sent) == {"planner", "reflector", "writer"} and len(sent["planner"]) == 1
    assert "hybrid_search" in sent["planner"][0].partition("The plan so far")[2], "what the first search found"
