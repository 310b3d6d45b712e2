"""A JSON schema as a form: each kind of value, what is left out, what is no value, what is hostile."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.test_hostile import HOSTILE
from workbench.tools.registry import ToolRegistry
from workbench.views.labels import Labels
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
