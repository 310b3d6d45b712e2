"""A conversation in two or three sentences: each stands in a message, and is text that people read."""

from __future__ import annotations

import pytest

from tests.blind import BLIND, rows
from tests.test_remembering import bench  # noqa: F401  a fixture
from workbench.parts.memory.remember import bring_up
from workbench.parts.memory.service import find_store
from workbench.parts.memory.summarizing import _HEADS, LONGEST, summarize


@pytest.mark.parametrize("name", ["film_en", "film_zh", "work_en", "work_zh", "friends_en", "family_zh"])
def test_every_sentence_of_a_real_conversation_stands_in_it(name):
    turns = [
        {"role": row["role"], "content": row["text"]}
        for row in rows(BLIND / "memory" / name / "turns.jsonl")
        if row["role"] in ("user", "assistant")
    ]
    heads = tuple(head for heads in _HEADS.values() for head in heads)
    lines = summarize(turns).splitlines()
    found = [next(line.removeprefix(head) for head in heads if line.startswith(head)) for line in lines]
    assert 1 <= len(found) <= 3 and max(map(len, found)) <= LONGEST
    assert all(any(sentence in turn["content"] for turn in turns) for sentence in found)


@pytest.mark.parametrize(
    ("before", "asked", "after", "old"),
    [
        ("I don't like horror films.", "Do I like horror?", "Actually, I like horror films now.", "don't like horror"),
        ("我不喜欢恐怖片。", "我喜欢恐怖片吗？", "我现在喜欢恐怖片了。", "不喜欢恐怖片"),
    ],
)
@pytest.mark.few(2)
def test_what_does_not_hold_any_more_is_in_no_prompt_and_in_no_newer_summary(bench, before, asked, after, old):  # noqa: F811
    wb = bench(summary_from=4, summary_every=1, history_window=2)
    for message in (before, asked, "How old is the bridge?", "And the mill?", "And the kiln?"):
        wb.ask(message, kb="general", session="s")
        wb._work.loop.settle(10)
    for message in (after, "How old is the well?", "And the inn?"):
        run = wb.ask(message, kb="general", session="s")
        wb._work.loop.settle(10)
        if message == after:
            continue
        prompt = [part["text"] for part in run.prompt_parts() if part["kept"] and part["part"] in ("core", "summary")]
        assert not any(old in text for text in prompt), prompt
    summary = find_store(wb).get_summary(run.row["conversation_id"])["summary"]
    assert old not in summary and 1 <= len(summary.splitlines()) <= 3 and not summary.startswith("{")


def test_a_summary_that_a_model_made_leaves_the_prompt_when_what_it_may_say_has_ended(bench):  # noqa: F811
    wb = bench(summary_from=90, history_window=2)
    run = wb.ask("Remember that I live in Leeds.", kb="general", session="s")
    wb._work.loop.settle(10)
    store, conversation = find_store(wb), run.row["conversation_id"]
    store.save_summary(conversation, "They live in Leeds.", 0, author="openai:m")
    [memory] = store.memories("default")

    def recalled():
        return wb.ports().memory.recall("?", user_id="default", conversation_id=conversation)["summary"]

    assert recalled()["summary"] == "They live in Leeds."
    wb.memory.invalidate(memory["id"], "moved")
    assert recalled() is None
    assert wb.call(bring_up(wb.ports(), store, conversation, "default")) and recalled()["summary"] == ""
