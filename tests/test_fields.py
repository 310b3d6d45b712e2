"""Forms of the bench: a JSON schema's values, and a call of a model that is edited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.servers import ScriptedServer
from tests.servers.roles import responder, role_of
from tests.test_hostile import ALL, HOSTILE
from tests.test_roles import CORE, GOOD, KEY, QUESTION
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.tools.registry import ToolRegistry
from workbench.views.labels import Labels
from workbench.views.markup import draw
from workbench.widgets.bench import Bench
from workbench.widgets.calls import Calls
from workbench.widgets.form import Fields, Message, form_fields


class Inner(BaseModel):
    year_from: int | None = None
    ratio: float | None = Field(None, ge=0, le=1)


class Everything(BaseModel):
    query: str
    count: int = 50
    share: float = 0.5
    deep: bool = False
    maybe: bool | None = None
    kind: Literal["a", "b"] = "a"
    names: list[str] = Field(default_factory=list)
    title: str | None = None
    limit: int | None = None
    filters: Inner = Inner()
    anything: dict[str, Any] = Field(default_factory=dict)


def form(schema: Any = Everything, language: str = "en", **more: Any) -> tuple[Fields, list[str]]:
    heard: list[str] = []
    return Fields(schema.model_json_schema(), Labels(language), heard.append, **more), heard


def test_defaults_are_shown_and_left_out_until_they_are_changed():
    fields, heard = form()
    fields.show({"query": "x"})
    assert fields.fields["count"].control.widget.value == 50 and fields.value == {"query": "x"}
    fields.fields["count"].control.widget.value = 7
    assert fields.value == {"query": "x", "count": 7} and heard == ["count"]
    fields.fields["count"].control.widget.value = 50
    assert fields.value == {"query": "x"}
    fields.show({"query": "x", "count": 50})
    assert fields.value == {"query": "x", "count": 50}, "what was given is kept"


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


def test_a_reference_is_json_and_can_become_a_value():
    fields, _ = form()
    fields.show({"query": "x", "names": {"$from": "step_0.entities"}})
    field = fields.fields["names"]
    field.control.widget.value = '["Ang Lee"]'
    assert fields.value["names"] == ["Ang Lee"] and not fields.faults
    field.control.widget.value = '["Ang Lee"'
    assert fields.value["names"] == ["Ang Lee"] and "not valid JSON" in fields.faults["names"]
    field.control.widget.value = "NaN"
    assert "NaN" in fields.faults["names"]


def test_a_number_that_is_none_is_told_and_kept_as_typed():
    fields, heard = form()
    fields.show({"query": "x"})
    limit = fields.fields["limit"]
    limit.control.widget.value = "many"
    assert fields.faults == {"limit": "many is not a whole number. Enter one, or leave this empty."}
    fields.report({})
    assert "many is not a whole number" in limit.box.children[-1].html and limit.control.widget.value == "many"
    limit.control.widget.value = "12"
    fields.report({})
    assert fields.value == {"query": "x", "limit": 12} and limit.box.children[-1].html == ""
    within = dict(form_fields(fields))["filters.year_from"]
    within.control.widget.value = "1993"
    assert fields.value["filters"] == {"year_from": 1993} and heard[-1] == "filters.year_from"


def test_a_form_of_every_tool():
    for name, tool in ToolRegistry().items():
        fields = Fields(tool.input_schema.model_json_schema(), Labels("zh"))
        if "query" in fields.fields:
            assert fields.fields["query"].control.widget.value == ""
            fields.show({"query": "x", "top_k": 3})
            assert fields.value["top_k"] == 3, name
        fields.disable(True)
        assert all(f.control.widget.disabled for p, f in form_fields(fields) if not isinstance(f.control, Fields))


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


def typed(calls: Calls, name: str, value: str) -> None:
    calls.fields[name].control.widget.value = value


def test_a_prompt_and_a_model_hold_for_the_role(done: Run, server: ScriptedServer) -> None:
    bench, calls = on_bench(done, "writer")
    assert "$question, $memory, $totals, $findings, $evidence" in calls.slots.value
    typed(calls, "system", str(calls.fields["system"].value) + "\nBe brief.")
    assert list(calls.edits["prompts"]) == ["writer.en"] and not calls.button.disabled
    before = len(server.requests)
    calls.button.click()
    bench.wait()
    assert role_of(server.requests[before]) == "writer"
    assert "Be brief." in str(server.requests[before]["messages"][0]["content"])
    calls.open(bench.run.calls().by_role("writer")[-1]["key"])
    assert "Be brief." in str(calls.fields["system"].value), "the fork's own prompt is what is edited next"
    typed(calls, "model", "rules")
    assert calls.edits == {"models": {"writer": "rules"}}
    calls.button.click()
    bench.wait()
    assert "writer" not in {call["role"] for call in bench.run.calls()}
    bench.close()


def test_what_a_fork_refuses_is_shown_and_the_text_stays(done: Run) -> None:
    bench, calls = on_bench(done, "writer")
    typed(calls, "user", "$question $weather")
    calls.submit()
    assert "$weather" in bench.head.html and calls.opened and bench.run_id == done.run_id
    assert calls.fields["user"].control.widget.value == "$question $weather"
    bench.sheet.press("escape")
    assert not calls.opened and calls.edits == {}
    bench.close()


def test_what_a_model_said_is_text(done: Run) -> None:
    call: dict[str, Any] = {**done.calls()[0], "reply": ALL, "messages": [["human", ALL]]}
    shown = draw("calls.edited", Labels("en"), call=call)
    assert "<script" not in shown and "<img" not in shown
