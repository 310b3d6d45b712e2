"""Answers: told everything in order, quoted from what was found, and held against what they cite."""

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.graphs.generate import generate, messages
from workbench.graphs.route import read_question
from workbench.language.support import checked
from workbench.testing import MemoryKnowledge, memory_context

SOURCES = {1: "kiln\nThe kiln was built in 1993 by Mei Lan.", 2: "glaze\nIt has iron.", 3: "茶馆\n《茶馆》由老舍写成。"}
SOURCES[4] = "tape\nA replay is exact, call by call:\nIt needs no network."


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("The kiln was built in 1993 [1].", "supported"), ("The kiln was built in 1883 [1].", "unsupported"),
        ("The kiln was not built in 1993 [1].", "unjudged"), ("The kiln was built in 1993.", "uncited"),
        ("The kiln was built in 1993 [2].", "unsupported"), ("《茶馆》由老舍写成 [3]。", "supported"),
        ("A replay is exact, call by call [4].", "supported"), ("《茶馆》不是老舍写成的 [3]。", "unjudged"),
        ("《茶馆》于1957年由老舍写成 [3]。", "unsupported"),
    ],
)  # fmt: skip
def test_a_statement_is_held_against_what_it_cites(said: str, verdict: str) -> None:
    [one] = checked(f"{said} The corpus does not say. What was it? These are:", SOURCES)
    assert one.verdict == verdict, one


KNOWLEDGE = MemoryKnowledge("notes", {"cache.md": "The cache size is 512 MB."})
CONTEXT = memory_context([KNOWLEDGE])
ASKED = "What is the cache size?"


def state(**more: Any) -> Any:
    found = {"context": "", "retrieval_results": [], "reference": {}, "statistics": {}}
    told = {"message": ASKED, "query": ASKED, "kb_prefix": "notes", "kb_prefixes": ["notes"], "use_retrieval": True}
    return {**told, "route_decision": read_question(ASKED, [KNOWLEDGE]), "merged": found, "records": [], **more}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"use_retrieval": False}, "notes"),
        ({"stop_reason": "stopped_by_reviewer"}, "reviewer stopped"),
        ({"records": [{"step_id": "s", "attempt": 1, "tool": "a", "status": "failed", "error": "boom"}]}, "boom"),
        ({}, "does not say"),
    ],
)
async def test_without_evidence_the_reason_is_said(more, said):
    given = await generate(state(**more), SimpleNamespace(context=CONTEXT, stream_writer=lambda event: None))
    assert said in given["answer"] and given["citations"] == []


def test_a_question_that_was_stored_is_asked_once():
    asking = state(history=[{"role": "user", "content": ASKED, "created_at": ""}])
    assert sum(ASKED in text for _, text in messages(asking, CONTEXT)) == 1


def test_what_a_tool_of_ones_own_found_on_a_known_thing_answers(wb):
    @wb.tools.tool(intents={"qa"})
    def awards(query: str) -> list[str]:
        """Prizes, from a list of one's own."""
        return ["《喜宴》获得第 43 届柏林国际电影节最佳影片金熊奖。", "《推手》获得金马奖。"]

    run = wb.ask("《喜宴》得过什么奖？", kb="film")
    assert "金熊奖" in run.answer.splitlines()[0], "what else is quoted stands behind it, and names its own film"
    assert "awards" in run.evidence[run.citations[0]["n"] - 1]["metadata"]["tools"]
