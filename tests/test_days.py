"""Days and names written as one word: what a question asks of is found where the texts say it otherwise."""

from __future__ import annotations

import json

import pytest

from workbench import Workbench
from workbench.graphs.route import read_question
from workbench.language.names import apart, joined_in, together
from workbench.text import days
from workbench.tools.scoring import Question

CHATS = [
    ("20260810_1800", "20260810_18:00", "JakeWatson: How is the new bakery?\nLiHua: The bread is good."),
    ("20260811_0900", "20260811_09:00", "JakeWatson: Hello LiHua, did you go to the bakery?\nLiHua: I bought bread."),
    ("20260812_0900", "20260812_09:00", "AnnSmith: Jake asked me about bread from the bakery.\nLiHua: Buy the bread."),
]


@pytest.fixture(scope="module")
def wb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chats")
    lines = [json.dumps({"id": i, "time": time, "text": text}) for i, time, text in CHATS]
    (folder / "chats.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with Workbench.open(folder / "workspace") as opened:
        opened.add_knowledge("chats", [folder / "chats.jsonl"])
        yield opened


@pytest.fixture
def chats(wb):
    return wb.knowledge.get("chats")


def found(wb, tool: str, query: str, chats) -> list[str]:
    import asyncio

    from workbench.tools.registry import StepLog
    from workbench.tools.tool import read_input

    one = wb.ports().tools[tool]
    output = asyncio.run(one(read_input(one, {"query": query, "top_k": 5}), chats, StepLog()))
    return [result["metadata"]["doc_id"] for result in output.results]


def test_the_text_of_a_day_comes_first_when_the_day_is_asked_for(wb, chats) -> None:
    for day in ("20260810", "2026-08-10", "August 10th, 2026", "2026年8月10日"):
        query = f"Who asked about the bakery and the bread on {day}?"
        assert found(wb, "hybrid_search", query, chats)[0] == "20260810_1800"
    assert found(wb, "chain_exploration", "Who asked about it on 20260811?", chats)[0] == "20260811_0900"


def test_a_day_that_no_text_is_of_stays_a_word(wb, chats) -> None:
    question = Question.read("What was said on 20250810 about bread?", chats)
    assert question.dated == () and "20250810" in question.weights


def test_a_name_written_as_one_word_is_held_by_its_parts(wb, chats) -> None:
    question = Question.read("What did Jake Watson ask Li Hua?", chats)
    assert {"JakeWatson", "LiHua"} <= set(question.words.replace("?", "").split())
    question = Question.read("What did Jake Watson say?", chats)
    seen = {p["doc_id"]: question.signals(p)["covered"] for p in chats.passages(doc_ids=[i for i, _, _ in CHATS])}
    assert seen["20260810_1800"] > seen["20260812_0900"]


def test_names_that_no_text_joins_stay_apart(wb, chats) -> None:
    assert together("Did Ann Watson meet Jake Watson?", chats) == "Did Ann Watson meet JakeWatson?"
    assert apart("iPhone, NATO and McDonald's: Ann") == ""


def test_a_part_of_a_name_written_as_one_word_is_nobody_else(wb, chats) -> None:
    """A Jake alone may be anybody's; of Jake Watson the base knows what it says of JakeWatson."""
    assert joined_in("Did Jake Watson ask Li Hua?", chats) == [(4, 15), (20, 26)]
    names = read_question("Did Jake Watson ask about bread?", [chats])["extracted_entities"]["low_level"]
    assert names == ["Jake Watson"]
    run = wb.ask("Did Jake Watson ask about bread?", kb="chats")
    assert run.reflections and not any(r["signals"]["unknown"] for r in run.reflections)
    (last,) = wb.ask("Did Jill Watson ask about bread?", kb="chats").reflections[-1:]
    assert last["signals"]["unknown"] == ["Jill Watson"]


def test_no_month_of_thirteen_and_no_day_in_a_longer_number() -> None:
    assert days("20261310, 120260810 and 31 February") == []
