"""Bridges and sides: which questions take a second step, and the plans that are made of them."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.shelf import VOCABULARY
from workbench.graphs.plan import RulePlanner
from workbench.graphs.route import read_question
from workbench.knowledge.library import Library
from workbench.settings import Settings
from workbench.state import RouteDecision
from workbench.tools.registry import ToolRegistry, check

TEXTS = [
    ("a", "Lanterns at Dusk", "Lanterns at Dusk is a drama directed by Mara Velden."),
    ("b", "Salt Road", "Salt Road is a drama directed by Teo Brandt."),
    ("c", "Mara Velden", "Mara Velden (born 1920) was a director."),
    ("d", "夜航灯", "《夜航灯》由林若川执导。"),
    ("e", "盐路", "《盐路》由白石执导。"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hops")
    lines = (json.dumps({"id": i, "title": t, "text": x}, ensure_ascii=False) for i, t, x in TEXTS)
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    library = Library(folder / "knowledge", Settings.load(embedding_model="hashing"))
    library.add("texts", [folder / "texts.jsonl"], vocabulary=VOCABULARY)
    yield library.get("texts")
    library.close()


def plan_for(question, base):
    decision = RouteDecision(
        requested_kb_prefix="texts",
        routed_kb_prefix="texts",
        kb_prefix="texts",
        confidence=1.0,
        method="override",
        reason="",
        worker_name="texts:fusion_agent:retrieve_only",
        **read_question(question, [base]),
    )
    plan = asyncio.run(RulePlanner(Settings.load())(question, decision, [base], ToolRegistry()))
    assert check(plan, ToolRegistry()) == []
    return plan


TYPED = [
    {"id": "lan", "title": "Lanterns at Dusk", "director": "Mara Velden", "year": 1948},
    {"id": "sal", "title": "Salt Road", "director": "Teo Brandt", "year": 1951},
    {"id": "pier", "title": "The Pier", "director": "Mara Velden", "year": 1953},
]
SAID = "A drama that premiered in Oslo at the film days and ran for a summer."


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typed")
    lines = (json.dumps({**row, "text": SAID}) for row in TYPED)
    (folder / "films.jsonl").write_text("\n".join(lines), encoding="utf-8")
    library = Library(folder / "knowledge", Settings.load(embedding_model="hashing"))
    library.add("texts", [folder / "films.jsonl"])
    yield library.get("texts")
    library.close()


@pytest.mark.parametrize(
    ("question", "chained"),
    [
        ("Where was the director of Lanterns at Dusk born?", True),
        ("Lanterns at Dusk 的 director 的妻子毕业于哪所学院？", True),
        ("Who is the director of Lanterns at Dusk?", False),
        ("When did Salt Road premiere in Oslo?", True),
        ("Which documents have the director Mara Velden?", False),
        ("Compare Salt Road and The Pier", False),
    ],
)
def test_typed_documents_are_chained_when_words_are_left_that_no_field_takes(question, chained, typed):
    tools = [step.tool for step in plan_for(question, typed).steps]
    assert ("chain_exploration" in tools) is chained, tools


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        (
            "Which film has the director who died first, Lanterns at Dusk or Salt Road?",
            [
                "Which film has the director who died first, Lanterns at Dusk or ?",
                "Which film has the director who died first, or Salt Road?",
            ],
        ),
        (
            "比较一下《夜航灯》和《盐路》的导演谁更年长",
            ["比较一下《夜航灯》和的导演谁更年长", "比较一下和《盐路》的导演谁更年长"],
        ),
    ],
)
def test_each_side_of_a_comparison_is_followed_by_itself(question, sides, base):
    plan = plan_for(question, base)
    followed = [step for step in plan.steps if step.tool == "chain_exploration"]
    assert [step.tool_input["query"] for step in followed] == sides
    assert plan.steps[-1].depends_on == [step.step_id for step in plan.steps[:-1]]


def test_a_list_is_no_chain(base):
    tools = [step.tool for step in plan_for("List some documents about lanterns", base).steps]
    assert "chain_exploration" not in tools
