"""A summary is made of the conversation's own sentences, keeps its size, and goes on from an older one."""

from __future__ import annotations

import pytest

from tests.blind import BLIND, rows
from tests.summaries import conversation, faithful, in_steps, measured
from workbench.language.summarizing import MOST, Summary, loads, summarized


def said(*contents: str) -> list[dict[str, str]]:
    """Messages of the person and answers, by turns."""
    return [{"role": ("user", "assistant")[k % 2], "content": content} for k, content in enumerate(contents)]


@pytest.mark.parametrize(
    ("messages", "language", "text"),
    [
        (
            said("I live in Leeds.", "Noted.", "What did the bridge cost?", "The corpus does not say."),
            "en",
            "What the person wants and is like:\n- I live in Leeds\nStill open:\n- What did the bridge cost?",
        ),
        (
            said("我不喜欢恐怖片。", "好的。", "《异形》是谁导演的？", "《异形》由雷德利·斯科特于1979年执导。"),
            "zh",
            "用户的需求与情况：\n- 我不喜欢恐怖片\n- 《异形》是谁导演的？\n"
            "已经查明：\n- 《异形》由雷德利·斯科特于1979年执导。",
        ),
        (said("Thanks!", "You're welcome."), "en", ""),
    ],
)
def test_it_says_what_is_wanted_what_was_found_and_what_is_open(messages, language, text):
    assert summarized(messages).text(language) == text


def test_a_goal_is_open_until_it_is_reached():
    planned = summarized(said("I'm planning a talk on peat bogs.", "Noted."))
    assert [item.text for item in planned.open] == ["I'm planning a talk on peat bogs"]
    assert summarized(said("I finished the talk on peat bogs."), planned).open == ()


@pytest.mark.parametrize(
    ("before", "after", "gone", "kept"),
    [
        ("I live in Leeds.", "I moved to Oslo.", "Leeds", "Oslo"),
        ("我住在杭州。", "我搬到成都了。", "杭州", "成都"),
        ("I love horror.", "I don't like horror films any more.", "I love", "don't like horror"),
        ("预算是3000元。", "说错了，预算是5000元，不是3000元。", "- 预算是3000元", "5000"),
    ],
)
def test_what_is_corrected_is_replaced(before, after, gone, kept):
    text = summarized(said(before, "OK.", after)).text("en")
    assert gone not in text
    assert kept in text


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("turns", [20, 100])
def test_it_keeps_what_was_planted_and_invents_nothing(language, turns, monkeypatch):
    monkeypatch.setattr("tests.summaries.MANY", 4)
    got = measured(language, turns)
    assert got["foreign"] == 0
    assert got["stale"] == 0
    assert got["longest"] <= MOST
    assert sum(got["kept"].values()) >= 0.85 * sum(got["planted"].values())


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", range(3))
def test_going_on_gives_about_what_beginning_anew_gives(language, seed):
    messages = conversation(language, 60, seed).messages
    steps, whole = in_steps(messages), summarized(messages)
    one, other = set(steps.sentences()), set(whole.sentences())
    assert len(one & other) >= 0.8 * len(one | other)
    assert len(steps.dumps()) < 60 * MOST
    assert loads(steps.dumps()) == steps
    assert summarized(messages) == whole


def test_it_is_bounded_however_long_the_conversation_is():
    sizes = [len(in_steps(conversation("en", turns, 1).messages, 50).dumps()) for turns in (100, 300)]
    assert sizes[1] < 1.3 * sizes[0]


@pytest.mark.parametrize("name", ["film_en", "film_zh", "work_en", "work_zh", "friends_en", "family_zh"])
def test_every_sentence_of_a_real_conversation_stands_in_it(name):
    turns = [
        {"role": row["role"], "content": row["text"]}
        for row in rows(BLIND / "memory" / name / "turns.jsonl")
        if row["role"] in ("user", "assistant")
    ]
    summary = in_steps(turns)
    assert faithful(summary, turns) == []
    assert summary.sentences()


def test_a_text_that_is_no_summary_says_so():
    with pytest.raises(ValueError, match="no summary"):
        loads("{}")
    assert loads(Summary().dumps()) == Summary()
