"""Bridges and sides: which questions take a second step, and the plans that are made of them."""

from __future__ import annotations

import asyncio
import json

import pytest

from workbench.graphs.plan import RulePlanner
from workbench.graphs.route import read_question
from workbench.knowledge.library import Library
from workbench.settings import Settings
from workbench.state import RouteDecision
from workbench.tools.registry import ToolRegistry, check


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
