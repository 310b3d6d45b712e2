"""A conversation in two or three sentences: each stands in a message or in a note, and is text that people read."""

from __future__ import annotations

import pytest

from tests.blind import BLIND, rows
from tests.test_remembering import bench, server  # noqa: F401  fixtures
from workbench.language.summarizing import LONGEST, quoted, summarize, without_person


def said(*contents: str) -> list[dict[str, str]]:
    """Messages of the person and answers, by turns."""
    return [{"role": ("user", "assistant")[k % 2], "content": content} for k, content in enumerate(contents)]


@pytest.mark.parametrize(
    ("messages", "notes", "text"),
    [
        (
            said("What did the bridge cost?", "The corpus does not say."),
            ["I live in Leeds"],
            "The person: I live in Leeds\nAsked: What did the bridge cost?",
        ),
        (
            said("我不喜欢恐怖片。", "记住了。", "《异形》是谁导演的？", "《异形》由雷德利·斯科特于1979年执导 [1]。"),
            ["我不喜欢恐怖片"],
            "用户：我不喜欢恐怖片\n问过：《异形》是谁导演的？\n查明：《异形》由雷德利·斯科特于1979年执导。",
        ),
        (
            said("Who built the mill?", "Ann Lee built it.", "And the kiln?", "So.", "Was the mill sold?", "In 1903."),
            [],
            "Asked: Who built the mill?\nFound: Ann Lee built it.",
        ),
        (said("Thanks!", "You're welcome."), [], ""),
    ],
)
def test_it_says_what_the_person_is_like_what_was_asked_and_what_was_found(messages, notes, text):
    assert summarize(messages, notes) == text


@pytest.mark.parametrize("name", ["film_en", "film_zh", "work_en", "work_zh", "friends_en", "family_zh"])
def test_every_sentence_of_a_real_conversation_stands_in_it(name):
    turns = [
        {"role": row["role"], "content": row["text"]}
        for row in rows(BLIND / "memory" / name / "turns.jsonl")
        if row["role"] in ("user", "assistant")
    ]
    found = quoted(summarize(turns))
    assert 1 <= len(found) <= 3 and max(map(len, found)) <= LONGEST
    assert all(any(sentence in turn["content"] for turn in turns) for sentence in found)


@pytest.mark.parametrize(
    ("before", "after", "old"),
    [
        ("I don't like horror films.", "Actually, I like horror films now.", "I don't like horror films"),
        ("我不喜欢恐怖片。", "我现在喜欢恐怖片了。", "我不喜欢恐怖片"),
        ("I don't like horror films.", "Forget that I don't like horror films.", "I don't like horror films"),
    ],
)
def test_what_does_not_hold_any_more_is_in_no_prompt_and_in_no_newer_summary(bench, before, after, old):  # noqa: F811
    wb = bench(summary_from=4, summary_every=1, history_window=2)
    for message in (before, "How old is the bridge?", "And the mill?", "And the kiln?"):
        wb.ask(message, kb="general", session="s")
        wb._work.loop.settle(10)
    assert old in wb.memory.view(session="s").summaries[0]["text"]
    for message in (after, "How old is the well?", "And the inn?"):
        run = wb.ask(message, kb="general", session="s")
        wb._work.loop.settle(10)
    conversation = run._row["conversation_id"]
    assert old not in wb._work.durable.conversations.get_summary(conversation)["summary"]
    run = wb.ask("And the barn?", kb="general", session="s")
    prompt = [part["text"] for part in run.prompt_parts() if part["kept"] and part["part"] in ("core", "summary")]
    assert not any(old in text for text in prompt)


def test_a_prompt_has_the_person_from_core_memory_alone():
    assert without_person("The person: I like tea\nAsked: Who?") == "Asked: Who?"
    assert without_person("用户：我喜欢茶") == ""
