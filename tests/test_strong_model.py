"""What a strong model finds and concludes reaches its other roles and the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.servers.roles import responder
from tests.servers.scripted import scripted_server
from workbench.runs.recording import recorded
from workbench.session import Workbench

QUESTION = "Which films did Ang Lee direct?"
SEARCH = {"name": "lee", "objective": "Ang Lee", "tool": "hybrid_search", "query": "Ang Lee director"}
SELECT = {
    "name": "films", "objective": "his films", "tool": "discover", "query": "films",
    "conditions": [{"field": "directors", "op": "eq", "value": "Ang Lee"}],
}  # fmt: skip
PLAN = {"steps": [SEARCH, SELECT], "acceptance_criteria": ["films of Ang Lee"], "assumptions": []}


@pytest.fixture
def asked(workspace) -> Any:
    """Ask with a model of these roles; gives the run and what each role was sent."""

    def ask(roles: dict[str, Callable[[str], Any]], question: str = QUESTION, **settings: Any) -> tuple[Any, Any]:
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
                run = recorded(wb.ask(question, kb="film"))
                return run.error, run.state, run.evidence, run.answer, run.reflections, run.records, sent

    return ask


def enough(_: str) -> Any:
    needs = [{"need": 1, "passages": [1], "verdict": "met"}]
    return {"needs": needs, "enough": True, "steps": [], "reasoning": "It is."}


def test_the_reflector_sees_the_first_of_each_step_under_its_name(asked):
    *_, sent = asked({"planner": lambda _: PLAN, "reflector": enough}, reflector_window=3)
    [text] = sent["reflector"]
    assert "(hybrid_search), 3 of " in text and "(discover), 3 of " in text
    assert "[6]" in text and "[7]" not in text


def test_what_was_met_stays_and_stop_is_a_word(asked):
    first_reply = {
        "needs": [{"need": 1, "passages": [2], "verdict": "met"}],
        "enough": False,
        "steps": [{**SEARCH, "query": "Ang Lee awards"}],
        "reasoning": "More.",
    }
    last_reply = {"needs": [], "enough": False, "stop": True, "steps": [], "reasoning": "Nothing else is there."}
    replies = iter([first_reply, last_reply])
    roles = {"planner": lambda _: PLAN, "reflector": lambda _: next(replies)}
    _, state, _, _, reflections, records, sent = asked(roles)
    first, second = sent["reflector"]
    met = first.partition("[2] ")[2].partition("[3] ")[0]
    assert "What met a need so far, 1 of 1 shown:" in second and met[:80] in second.partition("(hybrid_search)")[0]
    assert len(reflections) == 2 and state["stop_reason"] == "no_further_action"
    assert "Nothing else is there" in reflections[-1]["reasoning"]
    assert not any(record["iteration"] == 3 for record in records)


def test_the_writer_hears_the_planner_and_the_reflector(asked):
    *_, sent = asked({"planner": lambda _: PLAN, "reflector": enough, "writer": lambda _: "Two films [1]."})
    [text] = sent["writer"]
    assert "- films of Ang Lee: met by [" in text and "It is" in text
    assert "(directors = Ang Lee)" in text, "the count of the step that selects"
    assert "hold the conditions" not in text, "no total of what the rules read"
    assert "score 0.00" not in text


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


def test_bounds_off_leaves_the_answer_as_the_model_wrote_it(asked):
    roles = {"planner": lambda _: PLAN, "reflector": enough, "writer": lambda _: "Zork built it in 1802 [1]."}
    _, state, _, answer, *_ = asked(roles, bounds="off")
    assert answer == "Zork built it in 1802 [1]." and state["support"][0]["verdict"] != "supported"


def test_on_failure_raise_mixes_no_two_planners(asked):
    error, *_ = asked({"planner": lambda _: "nothing usable"}, on_failure="raise")
    assert error and "WORKBENCH_ON_FAILURE" in error


def test_a_formatter_of_ones_own_shows_the_passages(workspace):
    sent: list[str] = []

    def reflects(text: str) -> Any:
        sent.append(text)
        return enough(text)

    async def formatter(query: str, passages: list[Any]) -> list[str]:
        return [f"{piece['metadata']['title']}!" for piece in passages]

    with scripted_server() as server:
        server.respond = responder(planner=lambda _: PLAN, reflector=reflects)
        models = {"planner": "openai:m", "reflector": "openai:m"}
        with Workbench.open(workspace, chat_base_url=server.url, models=models) as wb:
            wb.register("formatter", formatter)
            run = wb.ask(QUESTION, kb="film")
            assert "[1] " in sent[0] and "!" in sent[0].partition("[1] ")[2].partition("[2] ")[0]
            asked = len(server.requests)
            assert wb.replay(run.run_id).answer == run.answer and len(server.requests) == asked


def test_on_failure_raise_holds_for_a_reflector_that_names_no_step(asked):
    lost = {"needs": [], "enough": False, "steps": [], "reasoning": "More."}
    error, *_ = asked({"planner": lambda _: PLAN, "reflector": lambda _: lost}, on_failure="raise")
    assert error and "reflector" in error


def test_a_right_count_is_not_marked_though_no_passage_says_it(asked):
    roles = {"planner": lambda _: PLAN, "reflector": enough}
    for writer, mark in (("He made TOTAL of them.", False), ("He made 77 of them.", True)):

        def say(text: str, writer: str = writer) -> str:
            return writer.replace("TOTAL", text.partition("Totals: ")[2].split()[0])

        *_, answer, _, _, _ = asked({**roles, "writer": say})
        assert ("without a source" in answer) is mark, answer


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


def test_totals_are_of_the_conditions_that_the_plan_searched_whoever_planned(asked):
    def count(text: str) -> str:
        return f"There are {text.partition('Totals: ')[2].split()[0]} of them."

    roles = {"planner": lambda _: PLAN, "reflector": enough, "writer": count}
    error, _, _, answer, _, records, sent = asked(roles, "How many comedies from 1994 are there?", search_first=True)
    assert not error and set(sent) == {"writer"} and "discover" in {record["tool"] for record in records}, (
        "the rules planned"
    )
    totals = sent["writer"][0].partition("Totals: ")[2].splitlines()[0]
    assert " hold (" in totals and "1994" in totals and "in all" not in totals
    assert "without a source" not in answer, answer


def test_the_planner_of_a_report_is_told_its_aspects(workspace):
    sent: list[str] = []

    def plan(text: str) -> Any:
        sent.append(text)
        return PLAN

    with scripted_server() as server:
        server.respond = responder(planner=plan)
        with Workbench.open(workspace, chat_base_url=server.url, models={"planner": "openai:m"}) as wb:
            assert wb.report("Ang Lee: early films, awards", kb="film").report
    assert "The answer is a report. Its aspects: early films, awards." in sent[0]


def test_needs_carry_no_number_of_the_rules_and_what_no_passage_says_is_not_shown(asked):
    fields = {name: value for name, value in SELECT.items() if name != "query"}
    *_, sent = asked({"planner": lambda _: {**PLAN, "steps": [SEARCH, fields]}, "reflector": enough})
    [text] = sent["reflector"]
    assert "so far" not in text and "hold" in text.partition("Searches that were made:")[2]
    listed = text.partition("(discover)")[2].partition("</evidence>")[0]
    assert "directors: Ang Lee" in listed and "film directed" not in listed, "fields alone, where fields were asked for"
