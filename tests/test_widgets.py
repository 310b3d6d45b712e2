"""The plan editor, its forms and the review panel without a browser: fields are set, buttons pressed, results read."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import ipywidgets
import pydantic
import pytest
from pydantic import BaseModel

from tests import handmade
from tests.servers import ScriptedServer
from tests.servers.roles import responder, role_of
from tests.test_hostile import ALL, HOSTILE, STEERING, read
from tests.test_roles import CORE, GOOD, KEY, QUESTION
from workbench.errors import InvalidAnswer
from workbench.graphs.plan import with_names
from workbench.plans import Plan, PlanStep
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.tools.registry import ToolRegistry, check
from workbench.views.labels import Labels
from workbench.views.markup import draw
from workbench.views.plan import document_titles, step_titles
from workbench.widgets.bench import Bench
from workbench.widgets.calls import Calls
from workbench.widgets.form import Fields, Message, form_fields, step_names
from workbench.widgets.panel import Event
from workbench.widgets.plan import PlanEditor
from workbench.widgets.review import Review

TOOLS = ToolRegistry()
A, B, C, D = "step_0_a", "step_1_b", "step_2_c", "step_3_d"


def step(step_id: str, *depends_on: str, **more: Any) -> PlanStep:
    said = {"objective": f"About {step_id}", "tool": "hybrid_search", "tool_input": {"query": step_id}, **more}
    return PlanStep(step_id=step_id, depends_on=list(depends_on), **said)


def plan() -> Plan:
    last = step(D, C, tool_input={"query": D, "entities": {"$from": f"{A}.entities"}})
    return Plan(problem_statement="Who?", steps=[step(A), step(B), step(C, A, B), last])


def document(
    made: Plan | None = None, status: str = "paused", point: str | None = "plan", **more: Any
) -> dict[str, Any]:
    made = plan() if made is None else made
    args = {"plan": made.dump()} if point == "plan" else {"next_steps": more.pop("next_steps", [])}
    review = {
        "action_requests": [{"name": point, "args": args, "description": ""}],
        "review_configs": [],
        "point": point,
    }
    told = {"run_id": "r1", "status": status, "message": "Who?", "plan": made.dump(), "records": [], **more}
    return json.loads(json.dumps({**told, "review": review if status == "paused" else None}))


def forecast(made: Plan) -> Any:
    told = {"replayed": False, "runs": True, "p50_s": 0.4, "p90_s": 0.9}
    rows = [{"step_id": step.step_id, "tool": step.tool, **told} for step in made.steps]
    return {"steps": rows, "seconds": {"p50": 0.4 * len(rows), "p90": 9.9}, "basis": 38}


def editor(told: dict[str, Any] | None = None, language: str = "en", editable: bool = True, **more: Any) -> PlanEditor:
    made = PlanEditor(Labels(language), lambda one: check(one, TOOLS), TOOLS, forecast)
    made.show(told or document(**more), editable=editable)
    return made


def put(made: PlanEditor, path: str, value: Any) -> None:
    """Give the field of a path, as ``budget.top_k`` or ``tool_input.query``, a value."""
    dict(form_fields(made.fields.form))[path].control.widget.value = value


def ids(made: PlanEditor) -> list[str]:
    return [one["step_id"] for one in made.plan["steps"]]


def of(made: PlanEditor, step_id: str) -> dict[str, Any]:
    return Plan.load(made.plan).step(step_id).model_dump()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("objective", "喜宴\nand more"), ("tool", "naive_search"), ("condition", "if_insufficient"),
        ("depends_on", [C]), ("priority", 7), ("budget.top_k", 9), ("budget.timeout_s", 2.5),
        ("tool_input.entities", ["喜宴"]),
    ],
)  # fmt: skip
def test_each_field_of_a_step(field: str, value: Any):
    made = editor()
    made.chosen = B
    put(made, field, value)
    found: Any = of(made, B)
    for name in field.split("."):
        found = found[name]
    assert found == value and made.edits == 1
    others = [one for one in made.plan["steps"] if one["step_id"] != B]
    assert others == [one for one in plan().dump()["steps"] if one["step_id"] != B]
    made.pressed(Event("undo"))
    assert made.plan == plan().dump() and made.edits == 0


def test_limits_are_folded_unless_one_is_not_the_usual() -> None:
    made = editor()
    for name, value, opened in (("objective", "x", False), ("budget.top_k", 9, True), ("priority", 7, True)):
        made.chosen = B
        put(made, name, value)
        made.chosen, made.chosen = A, B
        numbers = made.form.children[-1]
        assert (numbers.layout.display is None) is made.fields.limits.value is opened, name
        made.pressed(Event("undo"))
    made.fields.limits.value = True
    assert numbers.layout.display is None


def test_add_and_remove():
    made = editor()
    made.bar.press("add")
    assert made.chosen == ids(made)[-1] == "step_4_new" and of(made, made.chosen)["tool_input"] == {"query": "Who?"}
    assert not made.problems and made.form.layout.display is None
    for path, value, query in (("objective", "the fathers", "the fathers"), ("tool_input.query", "fathers", "fathers"),
                               ("objective", "both fathers", "fathers")):  # fmt: skip
        made._typed(path, {"query": value} if path != "objective" else value)
        assert of(made, made.chosen)["tool_input"] == {"query": query}, "it follows the objective until it is edited"
    made.fields.head.press("remove")
    assert "step_4_new" not in ids(made) and made.chosen == "" and made.form.layout.display == "none"
    made.bar.press("add")
    made.list.press("remove", B)
    assert of(made, C)["depends_on"] == [A]
    assert ids(made) == [A, C, D, "step_4_new"]
    changes = " ".join(re.sub("<[^>]*>", " ", made.below.html).split())
    assert "+ Who? − step_1_b" in changes
    made.below.press("discard")
    assert made.plan == plan().dump() and made.edits == 0
    made.pressed(Event("undo"))
    assert ids(made) == [A, C, D, "step_4_new"], "letting go can be taken back too"
    made = editor()
    made.chosen = A
    for typed in ("A", "An", "Ang"):
        put(made, "objective", typed)
    made.pressed(Event("undo"))
    assert made.plan == plan().dump() and made.edits == 0, "a word at once"


def test_the_same_version_keeps_edits_and_typing_and_another_one_lets_them_go():
    made = editor()
    made.chosen = A
    put(made, "objective", "mine")
    changes: list[Any] = []
    made.fields.fields["objective"].control.widget.observe(changes.append, "value")
    made.show(document(), live={}, editable=True)
    assert of(made, A)["objective"] == "mine" and made.edits == 1 and changes == []
    second = plan().model_copy(update={"version": 2})
    made.show(document(second), editable=True)
    assert made.edits == 0 and not made.problems and made.chosen == A
    assert made.fields.fields["objective"].control.widget.value == f"About {A}"
    made.show(document(Plan(steps=[step(B)])), editable=True)
    assert made.chosen == "" and ids(made) == [B]


def test_what_has_run_is_history_while_paused_and_free_when_done():
    ran = [handmade.record(A, "hybrid_search", 0, 500, 5)]
    ran.append(handmade.record(B, "hybrid_search", 0, 500, 5, status="failed", error="ValueError: no"))
    more = [step("step_4_more", C).model_dump()]
    made = editor(document(status="paused", point="reflect", records=ran, next_steps=more))
    assert ids(made) == [A, B, C, D, "step_4_more"] and made.plan["steps"][4:] == more
    assert "wb-proposed" in made.list.picture.rows["step_4_more"] and made.edits == 0
    for locked, why in ((A, "has already run"), (C, "was approved")):
        made.chosen = locked
        assert made.fields.fields["objective"].control.widget.disabled and why in made.fields.head.html
        made.list.press("remove", locked)
        made.fields.head.press("remove")
        assert ids(made) == [A, B, C, D, "step_4_more"]
    made.chosen = "step_4_more"
    assert not made.fields.fields["objective"].control.widget.disabled
    put(made, "objective", "mine")
    assert made.edits == 1 and made.plan["steps"][-1]["objective"] == "mine"
    made.list.press("remove", "step_4_more")
    assert ids(made) == [A, B, C, D] and made.edits == 1
    done = editor(document(status="done", point=None, records=ran))
    done.chosen = A
    assert not done.fields.fields["objective"].control.widget.disabled and "ValueError: no" in done.list.picture.rows[B]
    put(done, "objective", "otherwise")
    assert "edited" in done.list.picture.rows[A] and "5 returned" not in done.list.picture.rows[A]
    running = editor(document(status="running", point=None), editable=False)
    running.bar.press("add")
    running.list.press("remove", A)
    assert ids(running) == [A, B, C, D] and "Add step" not in running.bar.html


class Inner(BaseModel):
    year_from: int | None = None
    ratio: float | None = pydantic.Field(None, ge=0, le=1)


class Everything(BaseModel):
    query: str
    count: int = 50
    share: float = 0.5
    deep: bool = False
    maybe: bool | None = None
    kind: Literal["a", "b"] = "a"
    names: list[str] = pydantic.Field(default_factory=list)
    title: str | None = None
    limit: int | None = None
    filters: Inner = Inner()
    anything: dict[str, Any] = pydantic.Field(default_factory=dict)


def form(schema: Any = Everything, language: str = "en", **more: Any) -> tuple[Fields, list[str]]:
    heard: list[str] = []
    return Fields(schema.model_json_schema(), Labels(language), heard.append, **more), heard


def test_a_form_leaves_defaults_out_and_keeps_what_was_typed():
    fields, heard = form()
    fields.show({"query": "x"})
    assert fields.fields["count"].control.widget.value == 50 and fields.value == {"query": "x"}
    fields.fields["count"].control.widget.value = 7
    assert fields.value == {"query": "x", "count": 7} and heard == ["count"]
    fields.fields["count"].control.widget.value = 50
    assert fields.value == {"query": "x"}
    fields.show({"query": "x", "count": 50})
    assert fields.value == {"query": "x", "count": 50}, "what was given is kept"
    fields, _ = form()
    fields.show({"query": "x", "names": {"$from": "step_0.entities"}})
    field = fields.fields["names"]
    field.control.widget.value = '["Ang Lee"]'
    assert fields.value["names"] == ["Ang Lee"] and not fields.faults
    field.control.widget.value = '["Ang Lee"'
    assert fields.value["names"] == ["Ang Lee"] and "not valid JSON" in fields.faults["names"]
    field.control.widget.value = "NaN"
    assert "NaN" in fields.faults["names"]
    limit = fields.fields["limit"]
    limit.control.widget.value = "many"
    assert fields.faults["limit"] == "many is not a whole number. Enter one, or leave this empty."
    fields.report({})
    assert "many is not a whole number" in limit.box.children[-1].html and limit.control.widget.value == "many"


@pytest.mark.parametrize(
    "value",
    [
        {"query": "喜宴\nsecond line", "names": ["a", "喜宴"], "deep": True, "maybe": False, "kind": "b"},
        {"query": "", "title": "", "limit": 3, "share": 1, "filters": {"year_from": None}},
        {"query": {"$from": "step_0.query"}, "names": {"$from": "step_0.entities"}, "count": "fifty"},
        {"query": "x", "unknown": [1, {"a": None}], "filters": {"$from": "a.b"}, "kind": "c", "names": ["", 1]},
        {"query": "x", "deep": 1, "count": True, "limit": None, "filters": None, "anything": {"a": [1]}},
    ],
)
def test_what_is_not_touched_comes_back_as_it_was(value: dict[str, Any]):
    fields, heard = form()
    fields.show(value)
    assert repr(fields.value) == repr({n: value[n] for n in fields.fields if n in value}) and heard == []
    assert set(fields.value) == set(value)
    fields.show({"query": "y"})
    assert fields.value == {"query": "y"}, "another value leaves nothing behind"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_messages_are_text(text: str):
    schema = {"properties": {text: {"type": "string", "description": text}}, "required": [text]}
    fields = Fields(schema, Labels("en"))
    fields.show({text: text})
    fields.report({text: [Message(text, text)]})
    label, _, note = fields.fields[text].box.children
    for html in (label.value, note.html):
        assert "<script" not in html and "<img" not in html and "<a " not in html and "\x1b" not in html
    assert fields.value == {text: text}


@pytest.fixture
def done(tmp_path: Path, server: ScriptedServer) -> Iterator[Run]:
    server.respond = responder(**GOOD)
    (tmp_path / "Kiln.md").write_text("# Kiln\n\nThe east kiln was built in 1993 by Mei Lan.\n", encoding="utf-8")
    told = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": KEY, **CORE}
    with Workbench.open(tmp_path / "w", **told) as wb:
        wb.add_knowledge("notes", [tmp_path / "Kiln.md"])
        yield wb.ask(QUESTION, kb="notes")


def on_bench(run: Run, role: str, lang: str = "en") -> tuple[Bench, Calls]:
    bench = run._workspace.bench(run, lang=lang)
    calls = bench.working.calls
    assert calls is not None
    calls.list.press("edit", run.calls().by_role(role)[-1]["key"])
    return bench, calls


def test_a_prompt_and_a_model_hold_for_the_role(done: Run, server: ScriptedServer) -> None:
    bench, calls = on_bench(done, "writer")
    assert "$memory, $totals, $findings, $evidence, $question" in calls.slots.value
    calls.fields["system"].control.widget.value = str(calls.fields["system"].value) + "\nBe brief."
    assert list(calls.edits["prompts"]) == ["writer.en"] and not calls.button.disabled
    before = len(server.requests)
    calls.button.click()
    bench.wait()
    assert role_of(server.requests[before]) == "writer"
    assert "Be brief." in str(server.requests[before]["messages"][0]["content"])
    calls.open(bench.run.calls().by_role("writer")[-1]["key"])
    assert "Be brief." in str(calls.fields["system"].value), "the fork's own prompt is what is edited next"
    calls.fields["model"].control.widget.value = "rules"
    assert calls.edits == {"models": {"writer": "rules"}}
    calls.button.click()
    bench.wait()
    assert "writer" not in {call["role"] for call in bench.run.calls()}
    bench.close()


def test_what_a_fork_refuses_is_shown_and_the_text_stays(done: Run) -> None:
    bench, calls = on_bench(done, "writer")
    calls.fields["user"].control.widget.value = "$question $weather"
    calls.submit()
    assert "$weather" in bench.head.html and calls.opened and bench.run_id == done.run_id
    assert calls.fields["user"].control.widget.value == "$question $weather"
    bench.sheet.press("escape")
    assert not calls.opened and calls.edits == {}
    bench.close()


COMPARISON = "Compare The Wedding Banquet and Eat Drink Man Woman"
UNKNOWN = "Who directed Zorblax the Unseen?"


@pytest.fixture(scope="module")
def wb(shared_wb: Workbench) -> Workbench:
    return shared_wb


def panel(run: Run, lang: str = "en", **more: Any) -> Review:
    review = Review(Labels(lang))
    review.show(run.to_dict(), **more)

    def give(change: Any) -> None:
        try:
            run.answer_review(dict(change.new))
        except InvalidAnswer as error:
            review.refuse(str(error))

    review.observe(give, "response")
    return review


def field(review: Review, label: str) -> Any:
    """The control under a label, found as a person does."""
    return next(
        box.children[1]
        for box in whole(review)
        if isinstance(box, ipywidgets.VBox) and box.children and f">{label}</label>" in _html(box.children[0])
    )


def whole(review: Review) -> list[Any]:
    return [*every(review.inside), *every(review.dock)]


def every(widget: Any) -> list[Any]:
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in every(child))]


def _html(widget: Any) -> str:
    return widget.value if isinstance(widget, ipywidgets.HTML) else ""


def text(review: Review) -> str:
    return " ".join([review.band.html, review.why.html, review.refusal.html, *map(_html, whole(review))])


@pytest.mark.parametrize("send", [lambda review: review.send.click(), lambda review: review.submit()])
def test_respond_opens_a_field_and_sends_its_text(wb: Workbench, send: Callable[[Review], None]) -> None:
    run = wb.ask(COMPARISON, kb="film", review=["plan"])
    review = panel(run)
    saying = review.message
    assert review._message_box.layout.display == "none"
    review.respond.click()
    assert review._message_box.layout.display is None and review.send.disabled
    saying.value = "only the fathers"
    send(review)  # by its button, or by control and enter
    assert run.decisions[0]["action"] == "respond" and run.decisions[0]["message"] == "only the fathers"
    assert "fathers" in run.query


def test_steps_are_named_by_their_titles_or_by_id() -> None:
    long = "Which film has more fathers in it, and which of them cooks for his three daughters on Sundays?"
    made = Plan(
        steps=[
            step(A, tool_input={"query": "Heist"}),
            step(B, tool_input={"query": "heist"}),
            step(C, tool_input={"query": "Heist"}),
            step(D, tool_input={"query": long}),
        ]
    )
    titles = step_titles(made)
    control = step_names("", titles)
    assert control.write([A, B, C, "mine"])
    assert control.widget.value == ["Heist", "heist (2)", "Heist (3)", "mine"]
    for typed, step_id in ((long, D), (D, D), ("HEIST (3)", C), (" heist ", A), ("ghost", "ghost")):
        control.widget.value = [typed]
        assert control.read() == [step_id] and control.widget.value == [titles.get(step_id, step_id)]
    control.widget.value = ["Heist", A]
    assert control.read() == [A], "the same step twice is one"


def test_no_id_of_a_step_is_shown_in_its_row_its_form_or_a_problem() -> None:
    steps = [step(A, tool_input={"query": ALL}), step(B, A, tool_input={"query": "Sons"}), step(C, "step_9_x")]
    made = editor(made=Plan(problem_statement="Who?", steps=steps))
    made.chosen = B
    shown = [made.list.html, made.fields.head.html, made.below.html]
    made.chosen = C
    shown.append(dict(form_fields(made.fields.form))["depends_on"]._note.html)  # type: ignore[union-attr]
    page = read(" ".join(shown))
    assert not page.tags & {"a", "iframe", "img", "link", "script", "style"}
    assert "step_0" not in page.text and "step_1_b" not in page.text and "“Sons”" in page.text
    made.chosen = B
    [title] = dict(form_fields(made.fields.form))["depends_on"].control.widget.value
    assert title == step_titles(made._draft.plan)[A] and not STEERING.search(title)


def test_a_step_is_named_as_its_question_names_what_it_searches() -> None:
    names = [
        {"name": "The Wedding Banquet", "surface": "《喜宴》"},
        {"name": "Eat Drink Man Woman", "surface": "《饮食男女》"},
    ]
    for asked, surface in (("《喜宴》和《饮食男女》有什么不同？", "《喜宴》"), (COMPARISON, "The Wedding Banquet")):
        question = {"text": asked, "names": [{**names[0], "surface": surface}, names[1]]}
        if asked == COMPARISON:
            question["names"] = [{**name, "surface": name["name"]} for name in names]
        queries = ["The Wedding Banquet", with_names(asked, [name["name"] for name in names])]
        made = Plan(steps=[step(f"step_{n}", tool_input={"query": query}) for n, query in enumerate(queries)])
        told = {"plan": made.dump(), "route_decision": {"question": question}}
        assert [*document_titles(told).values()] == [surface, asked]


def test_problems_of_the_plan_keep_it_from_running(wb: Workbench) -> None:
    run = wb.ask(COMPARISON, kb="film", review=["plan"])
    review = panel(run)
    problems = [{"step_id": "a", "field": "top_k", "message": "top_k is 0.", "fix": "Give 1 or more."}] * 2
    review.show(run.to_dict(), plan=run.plan.dump(), problems=problems)  # type: ignore[union-attr]
    assert review.primary.disabled and "Approve" in review.primary.description
    assert "2 problems to fix first" in review.band.html
    review.submit()
    assert not run.decisions and review.response == {}
    review.show(run.to_dict())
    assert not review.primary.disabled


def test_thresholds_begin_at_what_was_judged_by_and_are_judged_again(wb: Workbench) -> None:
    run = wb.ask(COMPARISON, kb="film", review=["reflect"])
    review = panel(run)
    least = field(review, "Minimum evidence, pieces")
    judged = run.reflections[-1]["signals"]["thresholds"]["min_evidence"]
    assert least.value == str(judged) != "8" and "are enough here, where 8 are usual" in review.why.html
    assert field(review, "Minimum top score, 0 to 1").value == "0.5"
    least.value = "60"
    assert review.primary.description == "Reflect again as edited"
    review.primary.click()
    assert run.decisions[0]["edits"] == {"thresholds": {"min_evidence": 60}}
    assert run.status == "paused"


@pytest.mark.parametrize("edit", ["none", "a step left out", "searched on"])
@pytest.mark.parametrize("question", [COMPARISON, UNKNOWN])
@pytest.mark.parametrize("point", ["plan", "reflect"])
def test_what_is_announced_is_what_runs(wb: Workbench, question: str, point: str, edit: str) -> None:
    """The bar says how many steps will run; these run, whatever was edited."""
    run = wb.ask(question, kb="film", review=["plan", "reflect"])
    if point == "reflect":
        run.approve()
    review, before = Review(Labels("en"), forecast=partial(wb.runs.forecast, run)), len(run.records)
    plan = run.plan
    if edit == "a step left out" and point == "plan":
        plan = plan.without(plan.steps[0].step_id)
    review.show(run.to_dict(), plan=plan.dump() if edit == "a step left out" else None)
    if edit == "searched on" and point == "reflect":
        review.search.click()
    announced = re.search(r"(\d+) steps? will run", review.band.html)
    review.observe(lambda change: run.answer_review(dict(change.new)) if change.new else None, "response")
    review.submit()
    ran = {record["step_id"] for record in run.records[before:] if record["status"] != "skipped"}
    assert len(ran) == (int(announced[1]) if announced else 0)


def test_the_same_question_keeps_what_was_typed_and_another_begins_anew(wb: Workbench) -> None:
    run = wb.ask(COMPARISON, kb="film", review=["plan", "reflect"])
    review = panel(run)
    review.note.value = "my note"
    field(review, "Minimum evidence, pieces").value = "4"
    review.show(run.to_dict())
    assert review.note.value == "my note" and field(review, "Minimum evidence, pieces").value == "4"
    review.primary.click()
    review.show(run.to_dict())
    assert run.review["point"] == "reflect" and review.note.value == ""  # type: ignore[index]
    assert review.primary.description == "Approve: answer now"
    assert field(review, "Minimum evidence, pieces").value == "4"  # what was decided is in force


def test_a_refused_answer_is_explained_and_everything_stays(wb: Workbench) -> None:
    run = wb.ask(COMPARISON, kb="film", review=["plan"])
    review, plan = panel(run), run.plan
    assert plan is not None
    review.note.value = "try"
    review.show(run.to_dict(), plan=plan.replace("step_2_naive", tool="teleport").dump())
    review.primary.click()  # only the server knows the tools
    assert run.status == "paused" and not run.decisions
    assert 'role="alert"' in review.refusal.html and "teleport" in review.refusal.html
    assert review.note.value == "try" and not review.primary.disabled
    review.show(run.to_dict())
    review.primary.click()
    assert run.decisions[0]["note"] == "try" and review.refusal.html == ""


FORM = {
    "type": "object",
    "properties": {
        "to": {"type": "string"}, "copies": {"type": "integer", "minimum": 1}, "colour": {"enum": ["red", "blue"]},
        "urgent": {"type": "boolean", "default": False}, "more": {"type": "object", "additionalProperties": True},
    },
    "required": ["to"],
}  # fmt: skip


def request(point: str, args: Mapping[str, Any], form: Any = None, allowed: Any = None) -> dict[str, Any]:
    config = {"action_name": point, "args_schema": form or {"type": "object", "properties": {}}}
    if allowed:
        config["allowed_decisions"] = allowed
    action = {"name": point, "args": dict(args), "description": f"Do {point}?"}
    return {"action_requests": [action], "review_configs": [config], "review_id": f"0-{point}", "run_id": "r"}


def paused_at(asked: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"records": [], "reflections": [], "decisions": [], "plan": None, "route_decision": None}
    return {"run_id": "r", "status": "paused", "review": asked, **empty, **more}


def test_an_unknown_point_gets_a_whole_form() -> None:
    values = {"to": "a@b", "copies": 1, "urgent": False, "colour": "red", "more": {"x": [1]}}
    review = Review(Labels("en"))
    review.show(paused_at(request("send_mail", values, FORM, ["approve", "reject"])))
    assert [name for name in ("stop", "respond", "form") if getattr(review, name).layout.display is None] == ["stop"]
    review.show(paused_at(request("send_mail", values, FORM)))
    assert "Do send_mail?" in review.band.html and "a@b" in review.why.html
    assert review.primary.description == "Approve"
    field(review, "copies").value = "2"
    field(review, "more").value = '{"x": [1, 2]}'
    assert review.primary.description == "Continue as edited"
    review.submit()
    edited = review.response["decisions"][0]["edited_action"]
    assert edited == {"name": "send_mail", "args": {"to": "a@b", "copies": 2, "more": {"x": [1, 2]}}}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_whatever_stands_in_a_request_or_a_refusal_is_text(lang: str) -> None:
    needs = [{"need": ALL, "kind": "words", "met": 0.2, "by": [], "title": ALL, "quote": ALL, "said": ""}]
    signals = {
        "evidence_count": 1,
        "needs": needs,
        "missing": [ALL],
        "unknown": [ALL],
        "thresholds": {"min_evidence": 8},
    }
    judged = {"next_steps": [], "activate": [], "rewrite_query": ALL, "should_continue": True, "reasoning": ALL}
    judged |= {"current_iteration": 1, "max_iterations": 3, "signals": signals}
    for asked in (request("reflect", judged), request(ALL, {ALL: ALL})):
        review = Review(Labels(lang))
        review.show(paused_at(asked, plan={"steps": []}))
        review.refuse(ALL)
        page = read(text(review))
        assert "alert" in review.refusal.html and not page.tags & {"a", "iframe", "img", "link", "script", "style"}
        assert not [name for name in page.attributes if name.startswith(("on", "href", "src"))]
        assert not STEERING.search(text(review).replace("\n", " "))


def test_the_row_of_a_call_says_what_was_replied_or_why_it_was_not_used(done: Run) -> None:
    call = {**done.calls()[0], "node": "generate", "reply": "Ang Lee\n made <b>it</b>.", "input": 1200, "output": 8}
    for state, words in (
        ({}, "Ang Lee made &lt;b&gt;it&lt;/b&gt;."),
        ({"outcome": "refused", "why": "steps.0: required"}, "steps.0: required"),
        ({"replayed": True}, "from the tape"),
    ):
        [row] = re.findall(
            r'<details class="wb-call".*?</summary>', str(draw("calls.all", Labels("en"), calls=[call | state])), re.S
        )
        cells = re.findall(r'<span class="wb-number wb-small">(.*?)</span>', row)
        assert words in row and cells[:2] == ["1,200", "8"] and len(cells) == 3


def test_a_reply_in_json_is_a_tree_and_its_texts_stay_texts(done: Run) -> None:
    call, deep = done.calls()[0], "[" * 5000 + "]" * 5000
    wide = json.dumps({"<img src=x>": ["<script>", {"a": [[[[[[["<img>"]]]]]]]}]})
    for reply in (wide, deep, deep[:9999], "[" * 40 + "]" * 40, ALL):
        shown = str(draw("calls.all", Labels("en"), calls=[{**call, "reply": reply}]))
        assert "<script" not in shown and "<img" not in shown
        assert reply != wide or "<summary><b>&lt;img src=x&gt;</b>" in shown
