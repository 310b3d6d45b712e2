"""What a report's question leaves open: found by rules, asked or assumed, said in the query, stated in the plan."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests import handmade
from tests.servers import Reply, scripted_server
from tests.shelves import CORE, CORPORA
from tests.test_retrieval_graph import desk, step
from workbench.errors import InvalidAnswer
from workbench.graphs.route import read_question
from workbench.language.question import read
from workbench.parts.reports.assembly import validate
from workbench.parts.reports.graph import ClarifyEdits, answered, open_questions, refined, stated
from workbench.records import proposals
from workbench.records.document import run_document
from workbench.session import Workbench
from workbench.views.labels import Labels
from workbench.views.outline import outline
from workbench.views.render import display_data
from workbench.views.review import why

H78, H18 = "Harbour (year 1978)", "Harbour (year 2018)"


@pytest.fixture(scope="module")
def wb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    folder = tmp_path_factory.mktemp("clarify")
    (folder / "tea.md").write_text("# Tea\n\nOolong tea is partly oxidised.\n", "utf-8")
    with Workbench.open(folder / "w", **CORE) as opened:
        opened.add_knowledge("plays", [CORPORA / "plays.jsonl"])
        opened.add_knowledge("notes", [folder / "tea.md"])
        yield opened


@pytest.fixture(scope="module")
def library(wb: Workbench) -> Any:
    return wb.knowledge


def opened(library: Any, query: str, base: str = "plays", **more: Any) -> list[Any]:
    bases: list[Any] = [library.get(base)]
    return open_questions(read_question(query, bases)["question"], bases, **more)


@pytest.mark.parametrize(
    ("query", "options", "meant"),
    [
        ("What is Harbour about?", [H18, H78], {"that of 1978": "doc:h1", "Ole Lund": "doc:h2", "2018": "doc:h2"}),
        ("《灯塔》讲什么？", ["灯塔 (year 1994)", "灯塔 (year 2012)"], {"1994": "doc:g", "2012年的": "doc:g2"}),
    ],
)
def test_a_name_that_several_bear_is_asked_and_the_answer_tells_them_apart(library, query, options, meant):
    (asked,) = opened(library, query)
    assert (asked["kind"], asked["must"]) == ("name", True) and set(asked["options"]) == set(options)
    assert asked["assumed"] == asked["options"][0]
    for text, entity_id in meant.items():
        refined_query = refined(query, answered([asked], {asked["question_id"]: text}))
        mention, *_ = library.get("plays").link(refined_query)
        assert mention["entity_id"] == entity_id and "others" not in mention
        assert refined(refined_query, answered([asked], {asked["question_id"]: text})) == refined_query, "once"


AMBIGUOUS = "What is Harbour about?"


def report(wb: Workbench, query: str = AMBIGUOUS, **options: Any) -> Any:
    return wb.report(query, kb="plays", report_type="short", cached=False, **options)


def test_a_name_stops_the_report_and_its_answer_reaches_query_reading_and_plan(wb):
    run = report(wb)
    assert (run.status, run.review["point"], run.review["review_id"]) == ("paused", "clarify", "0-clarify")
    assert proposals.description(run.review) == "Which “Harbour” is meant?" and "plan" not in run.review
    run.edit(answers={"name:Harbour": "1978"}, note="the old one")
    assert run.status == "done" and run.query == "What is Harbour about? (1978)"
    assert [name["doc_id"] for name in run.state["route_decision"]["question"]["names"]] == ["h1"]
    assert [one["answer"] for one in run.state["clarifications"]] == ["1978"]
    assert run.plan.assumptions == ["“Harbour” means 1978."]
    (kept,) = run.decisions
    assert (kept["edits"], kept["note"]) == ({"answers": {"name:Harbour": "1978"}}, "the old one")


@pytest.mark.parametrize(
    ("settings", "query", "review", "stops"),
    [
        ({}, AMBIGUOUS, (), True), ({"stop_on_clarification": False}, AMBIGUOUS, (), False),
        ({"stop_on_clarification": False}, AMBIGUOUS, ("clarify",), True), ({}, "Write a report.", (), False),
        ({"allow_unclarified_plan": False}, "Write a report.", (), True), ({}, "Write a report.", ("clarify",), True),
        ({"allow_unclarified_plan": False}, "What is Kiln about?", ("clarify",), False),
    ],
)  # fmt: skip
def test_when_a_run_stops_and_when_it_goes_on_with_what_is_assumed(wb, settings, query, review, stops):
    run = report(wb, query, review=review, settings=settings)
    assert run.status == ("paused" if stops else "done"), run.error
    if not stops:
        assert run.plan.assumptions == stated(run.state["clarifications"], "en")


@pytest.mark.parametrize(("domain", "assumed"), [("tea houses", "tea houses"), ("通用", "plays")])
def test_a_question_without_a_subject_is_about_the_domain_or_all_that_there_is(wb, domain, assumed):
    assert assumed in str(report(wb, "Write a report.", settings={"default_domain": domain}).plan.assumptions)


def test_words_or_another_query_are_read_and_nothing_is_asked_twice(wb):
    run = report(wb).respond("I mean the one by Ida Brandt")
    assert run.query == "What is Harbour about? (I mean the one by Ida Brandt)"
    run = report(wb)
    run.edit(query="What is Kiln about?")
    assert run.query == "What is Kiln about?" and run.state["clarifications"] == []


@pytest.mark.parametrize(
    ("edits", "told"),
    [({"answers": {"time": "2001"}}, "Known: name:Harbour"), ({"query": " "}, "pattern"), ({"plan": {}}, "Known: ans")],
)
def test_what_does_not_fit_is_refused_and_the_pause_stands(wb, edits, told):
    run = report(wb)
    with pytest.raises(InvalidAnswer, match=told):
        run.edit(**edits)
    assert run.review["point"] == "clarify" and not run.decisions


def test_a_model_asks_besides_and_is_asked_once(wb):
    question = {"question": "For whom is it?", "options": ["pupils"], "assumed": "for everybody"}
    told = {"models": {"planner": "openai:m"}, "model_retries": 0}
    with (
        scripted_server(Reply([json.dumps({"questions": [question]})])) as server,
        Workbench.open(wb.path, chat_base_url=server.url, **told, **CORE) as asking,
    ):
        run = report(asking, "What is Kiln about?", review=["clarify"], assumptions=["In English."])
        (asked,) = proposals.proposal(run.review)["questions"]
        assert (asked["question_id"], asked["kind"], asked["options"]) == ("model:1", "model", ["pupils"])
        assert "In English." in str(server.requests[0])
        run.edit(answers={"model:1": "1"})
        assert run.query == "What is Kiln about? (For whom is it? pupils)"
        about = ["You prepare a report" in str(request) for request in server.requests]
        assert about.count(True) == 1 < len(about), "it is not asked anew when the run goes on"


def paused(asked: Any) -> Any:
    """The document of a run that waits at this point."""
    request = {
        "action_requests": [{"name": "clarify", "args": {"questions": asked}, "description": "?"}],
        "review_configs": [{"action_name": "clarify", "allowed_decisions": ["approve", "edit", "reject", "respond"],
                            "args_schema": ClarifyEdits.model_json_schema()}],
        "run_id": "r", "review_id": "0-clarify", "point": "clarify", "in_force": {"query": AMBIGUOUS, "answers": {}},
    }  # fmt: skip
    return {**run_document(handmade.paused()), "review": request}


def test_what_is_asked_stands_in_every_form_and_is_no_markup(library):
    (asked,) = opened(library, AMBIGUOUS)
    document = paused([{**asked, "options": [*asked["options"], "<b>x</b>"]}])
    shown = why(document, Labels("en")).html
    assert asked["question"] in shown and H18 in shown and "<b>x</b>" not in shown
    text = display_data(outline(document, ("review",)), Labels("en"))["text/plain"]
    assert asked["question"] in text and f"2. {asked['options'][1]}" in text and "回答这些问题吗" in text
    assert opened(library, "What is the Harbour of 1978 about?") == []
    assert opened(library, "What is Kiln about?") == []


__all__ = ["desk"]


def test_the_other_language_counts_where_the_base_knows_the_name(shelf: Any):
    base, asked = shelf.get("film"), "李安拍过哪些电影？"
    made = [
        validate(read(asked, [base]), f"{who} made several films.", [base]).passed for who in ("Ang Lee", "Spike Lee")
    ]
    assert made == [True, False]


JUDGE = {"query": "amber lantern violin", "found": {"$from": "a.results"}}
STEPS = (
    step("a", tool="shy", tool_input={"query": "amber"}),
    step("judge", tool="reflection", tool_input=JUDGE),
    step("b", "judge"),
)


@pytest.fixture
def shy(desk):
    """A tool that says what it is asked alone: the first search falls short of what is validated."""

    @desk.wb.tools.tool
    def shy(query: str) -> list[str]:
        """Finds what it is asked for."""
        desk.calls.append(query)
        return [f"about {query}"]

    return desk


def attempts(run) -> list[tuple[str, int, str]]:
    return [(r["step_id"], r["attempt"], r["status"]) for r in run.records]


def test_without_leave_it_only_reports(shy):
    run = shy.ask(*STEPS)
    assert attempts(run) == [("a", 1, "success"), ("judge", 1, "partial"), ("b", 1, "success")]
    record = next(r for r in run.records if r["step_id"] == "judge")
    assert "lantern" in record["error"] and record["raw_input"]["found"] == {"$from": "a.results"}
    assert record["output_summary"]["evidence_count"] == 0


def test_with_leave_the_step_asks_for_what_is_missing_and_what_it_had_found_is_out(shy):
    run = shy.ask(*STEPS, settings={"reflection_allow_retry": True})
    done = [("a", 1, "success"), ("judge", 1, "partial"), ("a", 2, "success"), ("judge", 2, "success")]
    assert attempts(run) == [*done, ("b", 1, "success")]
    assert shy.calls[:2] == ["amber", "amber lantern violin"], "the plan itself stays as it was"
    said = [piece["evidence"] for piece in run.evidence]
    assert "about amber lantern violin" in said and "about amber" not in said


def test_a_retry_waits_and_a_cancel_ends_the_wait(desk):
    first, again = desk.ask(step("a", tool="flaky"), settings={"retry_delay_s": 0.4}).records
    began, next_one = (datetime.fromisoformat(r["started_at"]) for r in (first, again))
    assert (first["status"], again["status"]) == ("failed", "success") and (next_one - began).total_seconds() >= 0.4
    run = desk.start(step("a", tool="broken"), settings={"retry_delay_s": 600})
    next(event for event in run.events() if "retrieval_step_done" in event)
    run.cancel()
    assert run.wait(20).status == "cancelled"
