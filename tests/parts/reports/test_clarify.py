"""What a report's question leaves open: found by rules, asked or assumed, said in the query, stated in the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import click
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import ValidationError

from tests import handmade
from tests.servers import Reply, scripted_server
from workbench.cli.follow import edited
from workbench.errors import InvalidAnswer
from workbench.graphs.planner import planner
from workbench.graphs.reviewers import answer
from workbench.graphs.route import read_question
from workbench.knowledge.library import Library
from workbench.models.chat import open_chat_model
from workbench.parts.reports.clarify import (
    ClarifyEdits,
    answered,
    clarify,
    open_questions,
    refined,
    review_clarify,
    stated,
)
from workbench.plans import Plan, PlanStep
from workbench.ports import Context
from workbench.records import proposals
from workbench.records.document import run_document
from workbench.settings import Settings
from workbench.state import ConversationState, RetrievalState
from workbench.testing import FixedPlanner, memory_context
from workbench.views.labels import Labels
from workbench.views.outline import outline
from workbench.views.render import display_data
from workbench.views.review import why
from workbench.widgets.review import Review, primary

H78, H18 = "Harbour (1978, Ida Brandt)", "Harbour (2018, Ole Lund)"
ROWS = [
    {"id": "h1", "type": "Play", "title": "Harbour", "year": 1978, "authors": ["Ida Brandt"],
     "text": "Harbour is a play. Two sailors wait for a ship."},
    {"id": "h2", "type": "Play", "title": "Harbour", "year": 2018, "authors": ["Ole Lund"],
     "text": "Harbour is a play. A customs officer meets her brother."},
    {"id": "g", "type": "Play", "title": "灯塔", "year": 1994, "authors": ["沈望"],
     "text": "《灯塔》是一部话剧，讲守塔人的一生。"},
    {"id": "g2", "type": "Play", "title": "灯塔", "year": 2012, "authors": ["李海"],
     "text": "《灯塔》是一部话剧，讲渔村的风暴。"},
    {"id": "k", "type": "Play", "title": "Kiln", "year": 2001, "authors": ["Mei Lan"],
     "text": "Kiln is about potters."},
]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("clarify")
    (folder / "plays.jsonl").write_text("\n".join(json.dumps(r, ensure_ascii=False) for r in ROWS), "utf-8")
    (folder / "notes").mkdir()
    (folder / "notes" / "tea.md").write_text("# Tea\n\nOolong tea is partly oxidised.\n", "utf-8")
    found = Library(folder / "kb", Settings.load(embedding_model="hashing", rerank_model="none"))
    found.add("plays", [folder / "plays.jsonl"])
    found.add("notes", [folder / "notes"])
    yield found
    found.close()


def opened(library: Library, query: str, base: str = "plays", **more: Any) -> list[Any]:
    bases: list[Any] = [library.get(base)]
    return open_questions(query, read_question(query, bases)["question"], bases, **more)


# --- the rules ---


@pytest.mark.parametrize(
    ("query", "options", "meant"),
    [
        ("What is Harbour about?", [H18, H78], {"1978": "doc:h1", "2018": "doc:h2"}),
        ("《灯塔》讲什么？", ["灯塔（1994，沈望）", "灯塔（2012，李海）"], {"1994": "doc:g", "2012": "doc:g2"}),
    ],
)
def test_a_name_that_several_bear_is_asked_and_the_answer_tells_them_apart(library, query, options, meant):
    (asked,) = opened(library, query)
    assert (asked["kind"], asked["must"]) == ("name", True) and set(asked["options"]) == set(options)
    assert asked["assumed"] == asked["options"][0] and refined(query, [asked]) == query
    for year, entity_id in meant.items():
        said = refined(query, answered([asked], {asked["question_id"]: f"that of {year}"}))
        (mention,) = library.get("plays").link(said)
        assert mention["entity_id"] == entity_id and "others" not in mention
        assert refined(said, answered([asked], {asked["question_id"]: year})) == said, "said once"


def test_what_the_question_tells_apart_is_not_asked(library):
    assert opened(library, "What is the Harbour of 1978 about?") == []
    assert opened(library, "What is Kiln about?") == []


@pytest.mark.parametrize("query", ["Write a full report.", "请写一份全面的报告。"])
def test_a_question_without_a_subject_is_asked_for_one(library, query):
    scope = next(one for one in opened(library, query, base="notes"))
    assert scope["kind"] == "scope" and not scope["must"] and "notes" in scope["assumed"]
    assert opened(library, query, base="notes", domain="tea houses")[0]["assumed"] == "tea houses"
    assert opened(library, query, base="notes", domain="通用")[0]["assumed"] == scope["assumed"]
    said = refined(query, answered([scope], {"scope": "oolong"}))
    assert "oolong" in said and opened(library, said, base="notes") == []


# --- the nodes ---


class Desk:
    """The nodes before the plan, and the planner, over real bases."""

    def __init__(self, library: Library, base: str = "plays", **settings: Any):
        step = PlanStep(step_id="a", objective="", tool="naive_search", tool_input={"query": "q"})
        context = memory_context(planner=FixedPlanner(Plan(steps=[step])), **settings)
        self.base, self.context = base, replace(context, knowledge=library)
        graph = StateGraph(ConversationState, context_schema=Context)
        graph.add_node("clarify", clarify)
        graph.add_node("review_clarify", review_clarify)
        child = StateGraph(RetrievalState, context_schema=Context)
        child.add_node("planner", planner)
        child.add_edge(START, "planner")
        graph.add_node("planning", child.compile())
        for one, other in ((START, "clarify"), ("clarify", "review_clarify"), ("planning", END)):
            graph.add_edge(one, other)
        graph.add_conditional_edges("review_clarify", lambda state: END if state.get("stop_reason") else "planning")
        self.graph = graph.compile(checkpointer=InMemorySaver())
        self.config: Any = {"configurable": {"thread_id": "t"}}

    async def ask(self, query: str, *, review: Any = (), **report: Any) -> Any:
        base = self.context.knowledge.get(self.base)
        route = {
            "kb_prefix": base.name,
            "worker_name": "",
            "method": "override",
            "reason": "",
            **read_question(query, [base]),
        }
        state = {"run_id": "r", "query": query, "message": query, "kb_prefix": base.name, "kb_prefixes": [base.name],
                 "route_decision": route, "session_id": "s", "review": list(review), "report": report}  # fmt: skip
        return await self.graph.ainvoke(state, self.config, context=self.context)

    async def asked(self) -> Any:
        snapshot = await self.graph.aget_state(self.config)
        return snapshot.interrupts[0].value if snapshot.interrupts else None

    async def say(self, action: str, **more: Any) -> Any:
        given = answer(action, point="clarify", **more)
        return await self.graph.ainvoke(Command(resume=given), self.config, context=self.context)


AMBIGUOUS = "What is Harbour about?"


async def test_a_name_stops_the_report_and_its_answer_reaches_query_reading_and_plan(library):
    desk = Desk(library)
    await desk.ask(AMBIGUOUS, type="short")
    request = await desk.asked()
    assert (request["point"], request["review_id"], proposals.kind(request)) == ("clarify", "0-clarify", "clarify")
    assert proposals.description(request) == "Which “Harbour” is meant?" and "plan" not in request
    state = await desk.say("edit", edits={"answers": {"name:Harbour": "1978"}}, note="the old one")
    assert state["query"] == "What is Harbour (1978) about?"
    assert [name["doc_id"] for name in state["route_decision"]["question"]["names"]] == ["h1"]
    assert [one["answer"] for one in state["clarifications"]] == [H78]
    assert state["plan"]["assumptions"] == [f"“Harbour” means {H78}."]
    (kept,) = desk.context.runs.decisions("r")
    assert state["decisions"] == [kept] and kept["edits"] == {"answers": {"name:Harbour": "1978"}}
    assert kept["note"] == "the old one"


@pytest.mark.parametrize(
    ("settings", "query", "review", "stops"),
    [
        ({}, AMBIGUOUS, (), True), ({"stop_on_clarification": False}, AMBIGUOUS, (), False),
        ({"stop_on_clarification": False}, AMBIGUOUS, ("clarify",), True), ({}, "Write a report.", (), False),
        ({"allow_unclarified_plan": False}, "Write a report.", (), True), ({}, "Write a report.", ("clarify",), True),
        ({"allow_unclarified_plan": False}, "What is Kiln about?", ("clarify",), False),
    ],
)  # fmt: skip
async def test_when_a_run_stops_and_when_it_goes_on_with_what_is_assumed(library, settings, query, review, stops):
    desk = Desk(library, **settings)
    state = await desk.ask(query, review=review, type="short")
    assert bool(await desk.asked()) is stops
    if not stops:
        assert state["plan"]["assumptions"] == stated(state["clarifications"], "en")


async def test_words_or_another_query_are_read_and_nothing_is_asked_twice(library):
    desk = Desk(library)
    await desk.ask(AMBIGUOUS, type="short")
    state = await desk.say("respond", message="I mean the one by Ida Brandt")
    assert state["query"] == "What is Harbour (1978) about? I mean the one by Ida Brandt"
    desk = Desk(library)
    await desk.ask(AMBIGUOUS, type="short")
    state = await desk.say("edit", edits={"query": "What is Kiln about?"})
    assert state["query"] == "What is Kiln about?" and state["clarifications"] == []


async def test_stopping_writes_nothing(library):
    desk = Desk(library)
    await desk.ask(AMBIGUOUS, type="short")
    state = await desk.say("reject")
    assert state["stop_reason"] == "stopped_by_reviewer" and "plan" not in state and not state["use_retrieval"]


@pytest.mark.parametrize(
    ("edits", "told"),
    [({"answers": {"time": "2001"}}, "Known: name:Harbour"), ({"query": " "}, "pattern"), ({"plan": {}}, "Known: ans")],
)
async def test_what_does_not_fit_is_refused_and_the_pause_stands(library, edits, told):
    desk = Desk(library)
    await desk.ask(AMBIGUOUS, type="short")
    with pytest.raises((ValidationError, InvalidAnswer), match=told):
        await desk.say("edit", edits=edits)
    assert (await desk.asked())["point"] == "clarify"


@pytest.fixture
def modelled(library: Library) -> Iterator[Any]:
    """A desk whose planner is a model that says this."""
    with scripted_server(Reply(["nothing"])) as server:

        def desk(*replies: Any) -> Any:
            server.answer(*(Reply([json.dumps(one)]) for one in replies))
            told = {
                "models": {"planner": "openai:m"},
                "chat_base_url": server.url,
                "chat_api_key": "k",
                "model_retries": 0,
            }
            made = Desk(library, **told)
            made.context.planner.name = "rules"
            model = open_chat_model(made.context.settings, "planner")
            made.context = replace(made.context, models={"planner": model})
            made.server = server
            return made

        yield desk


async def test_a_model_asks_besides_and_is_asked_once(modelled):
    question = {"question": "For whom is it?", "options": ["pupils"], "assumed": "for everybody"}
    desk = modelled({"questions": [question]})
    await desk.ask("What is Kiln about?", review=["clarify"], type="short", assumptions=["In English."])
    (asked,) = (await desk.asked())["action_requests"][0]["args"]["questions"]
    assert (asked["question_id"], asked["kind"], asked["options"]) == ("model:1", "model", ["pupils"])
    assert "In English." in str(desk.server.requests[0])
    calls = len(desk.server.requests)
    state = await desk.say("edit", edits={"answers": {"model:1": "1"}})
    assert state["query"] == "What is Kiln about? (For whom is it? pupils)"
    again = [request for request in desk.server.requests[calls:] if "You prepare a report" in str(request)]
    assert calls and not again, "it is not asked anew when the run goes on"


# --- what a person sees of it ---


def paused(asked: Any) -> Any:
    """The document of a run that waits at this point."""
    request = {
        "action_requests": [{"name": "clarify", "args": {"questions": asked}, "description": "?"}],
        "review_configs": [{"action_name": "clarify", "allowed_decisions": ["approve", "edit", "reject", "respond"],
                            "args_schema": ClarifyEdits.model_json_schema()}],
        "run_id": "r", "review_id": "0-clarify", "point": "clarify", "in_force": {"query": AMBIGUOUS, "answers": {}},
    }  # fmt: skip
    return {**run_document(handmade.paused()), "review": request}


def test_the_form_has_a_field_a_question_and_the_button_says_what_will_happen(library):
    asked, labels = opened(library, AMBIGUOUS), Labels("en")
    document, review = paused(asked), Review(labels)
    review.show(document)
    form: Any = review._form
    field = form.answers.fields["name:Harbour"].control.widget
    assert list(field.options) == asked[0]["options"] and asked[0]["assumed"] in field.placeholder
    assert (review.primary.description, review.stop.description) == ("Continue with what is assumed", "Write no report")
    review.submit()
    assert [one["type"] for one in review.response["decisions"]] == ["approve"]
    field.value = "1978"
    assert form.edits(None) == {"answers": {"name:Harbour": "1978"}}
    assert primary(document["review"], form.edits(None), 0, labels) == "Continue as edited"
    review.show(document)
    review.submit()
    assert review.response["decisions"][0]["edited_action"]["args"] == {"answers": {"name:Harbour": "1978"}}


def test_what_is_asked_stands_in_every_form_and_is_no_markup(library):
    (asked,) = opened(library, AMBIGUOUS)
    document = paused([{**asked, "options": [*asked["options"], "<b>x</b>"]}])
    shown = why(document, Labels("en")).html
    assert asked["question"] in shown and H18 in shown and "<b>x</b>" not in shown
    text = display_data(outline(document, ("review",)), Labels("en"))["text/plain"]
    assert asked["question"] in text and f"2. {asked['options'][1]}" in text and "回答这些问题吗" in text


def test_at_the_terminal_each_question_is_asked_by_itself(library, monkeypatch):
    said: list[str] = []
    page: Any = SimpleNamespace(say=lambda text, style="": said.append(text))
    request = paused(opened(library, AMBIGUOUS))["review"]
    monkeypatch.setattr(click, "prompt", lambda *_, **__: " 2 ")
    assert edited(page, request, Labels("zh")) == {"answers": {"name:Harbour": "2"}}
    assert "Which “Harbour” is meant?" in said and any(line.startswith("留空则假定：") for line in said)
    monkeypatch.setattr(click, "prompt", lambda *_, **__: "")
    assert edited(page, request, Labels("zh")) == {}
