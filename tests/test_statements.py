"""What a message says that is worth remembering, what it asks, and what replaces what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.blind import BLIND, rows
from tests.ordinary_questions import below, more, shipped
from workbench.language.statements import Statement, read_statements, same_thing

from .score_memory import ours, right

# (message, kind and polarity and thing of each statement, what is left to be answered)
STATED = [
    ("I don't like horror films, recommend something else", ["dislike horror films"], "recommend something else"),
    ("我不喜欢恐怖片，换个别的推荐吧", ["dislike 恐怖片"], "换个别的推荐吧"),
    ("我不喜欢恐怖片", ["dislike 恐怖片"], ""),
    ("别给我推荐恐怖片了", ["dislike 恐怖片"], ""),
    ("不要再推荐爱情片了", ["dislike 爱情片"], ""),
    ("no more horror", ["dislike horror"], ""),
    ("I'm off coffee", ["dislike coffee"], ""),
    ("其实我更喜欢科幻片", ["like 科幻片"], ""),
    ("比起咖啡，我更喜欢茶", ["like 茶"], ""),
    ("I prefer tea to coffee", ["like tea"], ""),
    ("我不再喜欢爵士乐了", ["dislike 爵士乐"], ""),
    ("I like jazz, blues and soul, what else is there?", ["like jazz, blues and soul"], "what else is there?"),
    ("我喜欢科幻片，但不喜欢恐怖片。有什么推荐？", ["like 科幻片", "dislike 恐怖片"], "有什么推荐？"),
    ("Please always answer in French.", ["like answer in French"], ""),
    ("My favourite colour is green", ["like green"], ""),
    ("我最喜欢的颜色是绿色", ["like 绿色"], ""),
    ("Stop recommending musicals.", ["dislike musicals"], ""),
    ("Please don't show me podcasts any more.", ["dislike podcasts"], ""),
    ("以后别推荐播客。", ["dislike 播客"], ""),
    ("我对足球不感兴趣", ["dislike 足球"], ""),
    ("我对考古很感兴趣", ["like 考古"], ""),
    ("I'm very keen on chess", ["like chess"], ""),
    ("I'm a big opera fan", ["like opera"], ""),
    ("I'm a primary school teacher", ["fact primary school teacher"], ""),
    ("我是一名护士", ["job 护士"], ""),
    ("I'm allergic to nuts. What can I eat?", ["health nuts"], "What can I eat?"),
    ("我青霉素过敏", ["health 青霉素过敏"], ""),
    ("I hope to retire next year", ["intent retire next year"], "I hope to retire next year"),
    ("我的目标是减重十公斤", ["intent 减重十公斤"], "我的目标是减重十公斤"),
    ("I have two sons", ["fact two sons"], ""),
    ("我女儿今年七岁", ["女儿 七岁"], ""),
    ("I need a present for my aunt", ["intent present for my aunt"], "I need a present for my aunt"),
    ("My name is Anna", ["name Anna"], ""),
    ("我叫王小明", ["name 王小明"], ""),
    ("I live in Leeds now", ["home Leeds"], ""),
    ("我住在杭州", ["home 杭州"], ""),
    ("I work as a nurse", ["job nurse"], ""),
    ("我对花生过敏，能吃什么？", ["health 花生"], "能吃什么？"),
    ("My daughter is seven", ["daughter seven"], ""),
    ("I'm planning a trip to Kyoto", ["intent trip to Kyoto"], "I'm planning a trip to Kyoto"),
    ("我打算学钢琴", ["intent 学钢琴"], "我打算学钢琴"),
    (
        "I'm looking for a knife for my mother.",
        ["intent knife for my mother"],
        "I'm looking for a knife for my mother.",
    ),
    ("I don't like jazz, blues or soul, what else is there?", ["dislike jazz, blues or soul"], "what else is there?"),
    ("I hate motorways because they are loud.", ["dislike motorways"], ""),
    ("I hate motorways, maybe the coast", ["dislike motorways"], "I hate motorways, maybe the coast"),
]
NOTHING = [
    "My sister loves horror films",
    "我姐姐特别喜欢恐怖片",
    'He said "I hate horror films"',
    "他说他不喜欢恐怖片",
    "I don't mind horror",
    "I can't wait for the weekend",
    "Oh great, I just love waiting in line",
    "我恨不得现在就走，呵呵",
    "I used to like sushi",
    "今天天气真好",
    "Thanks a lot!",
    "I used to love sushi, but not any more",
    "Musicals? No thanks.",
    "I don't like it",
    "我喜欢免费的",
    "It's not that I don't like jazz",
    "我不是不喜欢爵士",
]
ASKED = [
    "Do I have to like horror films to like Alien?",
    "If I liked horror films, what would you recommend?",
    "如果我喜欢恐怖片，你会推荐什么？",
    "Which films do you have for someone who hates horror?",
    "Show me Ridley Scott films, no science fiction please",
    "Steven Spielberg 的电影,不要科幻片和战争片",
    "不喜欢恐怖片的人适合看什么？",
    "films that are not comedies",
    "帮我翻译一下：I hate Mondays.",
    "Remind me to buy milk",
    "What do I do when the index is broken?",
    "Where do I find the manual?",
    "What is my best option?",
    "Which version came earlier?",
    "What is the first recommendation of the report?",
    "我今晚吃什么好？",
    "我今天想看点什么？",
    "之前的版本是哪一个？",
    "报告的第一条建议是什么？",
    "我们公司去年选了哪家供应商？",
    "我想找一部九十年代的片子",
    "I want to know who wrote Emma",
    "我不喜欢坐船的话，怎么去普陀山？",
    "please translate: I don't like olives",
    "No more than five results, please",
    "What if I said that I hate olives?",
]
RECALLED = [
    ("What did I say about horror films?", "horror films", "user", ""),
    ("我刚才说的那个导演是谁？", "那个导演", "user", ""),
    ("第一个问题我问了什么", "第一个问题", "user", "first"),
    ("remind me what we decided about the budget", "budget", "", ""),
    ("Which film did you recommend earlier?", "film", "assistant", ""),
    ("你刚才推荐的第二部片子叫什么？", "第二部片子", "assistant", ""),
    ("What's my name?", "name", "user", ""),
    ("我们之前聊过签证吗？", "签证", "", ""),
    ("Do you remember what I told you about the visa?", "visa", "user", ""),
    ("刚才你建议的菜谱是哪个？", "菜谱", "assistant", ""),
    ("我说过预算是多少吗？", "预算", "user", ""),
    ("还记得我的预算吗？", "预算", "user", ""),
    ("数据库我们最后怎么定的？", "数据库", "", ""),
    ("我们住的酒店叫什么来着？", "住的酒店", "", ""),
    ("What was my last question?", "last question", "user", "last"),
]
CORRECTED = [
    ("Sorry, I meant Thursday, not Tuesday.", "The review is on Tuesday.", "The review is on Thursday", "Tuesday"),
    ("我说错了，是周五不是周四", "会议在周四", "会议在周五", "周四"),
    ("搞错了，不是周四而是周五", "会议在周四", "会议在周五", "周四"),
    ("I moved to Oslo", "I live in Leeds", "Oslo", "Leeds"),
    ("我搬到成都了", "我住在杭州", "成都", "杭州"),
    ("I don't like horror films any more", "I love horror", "horror films", "horror"),
    ("我现在不喜欢恐怖片了", "我喜欢恐怖片", "恐怖片", "恐怖片"),
]


def told(statement: Statement) -> str:
    return f"{statement.polarity or statement.attribute or statement.kind} {statement.about}"


@pytest.mark.parametrize(("message", "statements", "rest"), STATED)
def test_what_is_stated_and_what_is_left(message, statements, rest):
    read = read_statements(message)
    assert ([told(s) for s in read.statements], read.rest, read.recalls) == (statements, rest, None)
    assert all(s.text in message for s in read.statements), "a note is in the words of the message"


@pytest.mark.parametrize("message", NOTHING)
def test_what_states_nothing_of_the_person_is_left_as_it_is(message):
    read = read_statements(message)
    assert (read.statements, read.rest, read.recalls) == ([], message, None)


@pytest.mark.parametrize("message", ASKED)
def test_what_only_asks_stays_whole(message):
    read = read_statements(message)
    assert (read.statements, read.rest, read.recalls) == ([], message, None)


@pytest.mark.parametrize(("message", "about", "whose", "which"), RECALLED)
def test_what_asks_for_the_conversation(message, about, whose, which):
    recalls = read_statements(message).recalls
    assert recalls is not None
    assert (recalls.about, recalls.whose, recalls.which) == (about, whose, which)


@pytest.mark.parametrize(("message", "earlier", "about", "replaces"), CORRECTED)
def test_a_correction_knows_what_it_corrects(message, earlier, about, replaces):
    [statement] = read_statements(message, ["今天天气真好", earlier]).statements
    assert (statement.kind, statement.about, statement.replaces) == ("correction", about, replaces)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("My name is Anna", "I'm called Jo", True),
        ("I live in Leeds", "I moved to Oslo", True),
        ("我住在杭州", "我搬到成都了", True),
        ("I live in Leeds", "I work as a nurse", False),
        ("My favourite colour is green", "My favourite colour is red", True),
        ("I love horror", "I don't like horror films", True),
        ("I love films", "I don't like horror films", False),
        ("我喜欢恐怖片", "我不爱看恐怖片", True),
        ("我喜欢电影", "我不喜欢恐怖电影", False),
        ("I'm allergic to nuts", "I'm allergic to latex", False),
    ],
)
def test_whether_one_statement_takes_the_place_of_another(one, other, same):
    [older], [newer] = read_statements(one).statements, read_statements(other).statements
    assert same_thing(newer, older) is same


def test_no_ordinary_question_is_read_as_more_than_a_question():
    """Two of the shipped ones begin with a preference, which is rightly noted: "I don't like horror. Which ..."."""
    assert len([q for asked in shipped().values() for q in asked if more(q)]) <= 3


@pytest.mark.skipif(
    not os.environ.get("WORKBENCH_TEST_QUESTIONS"),
    reason="WORKBENCH_TEST_QUESTIONS names no folder with public questions",
)
def test_hardly_an_ordinary_public_question_is_read_as_more_than_a_question():
    asked = [q for some in below(Path(os.environ["WORKBENCH_TEST_QUESTIONS"])).values() for q in some]
    assert asked
    assert sum(bool(more(q)) for q in asked) <= 0.002 * len(asked)


def test_what_is_read_of_the_frozen_messages_is_right():
    """The halves that may be looked at: precision first, then how much is read."""
    dev = [row for name in ("statements", "said") for row in rows(BLIND / "memory" / f"{name}.jsonl")]
    dev = [(row, ours(row)) for row in dev if row["split"] == "dev"]
    read = [right(row, said)["kind"] for row, said in dev if said["kind"] != "none"]
    assert sum(read) >= 0.97 * len(read)
    assert sum(read) >= 95
    assert sum(right(row, said)["also_question"] for row, said in dev) >= 0.97 * len(dev)


WORDS = [
    "i",
    "don't",
    "like",
    "really",
    "我",
    "不",
    "喜欢",
    "恐怖片",
    "最近",
    ",",
    "，",
    ".",
    "？",
    "?",
    "what",
    "说",
    "and",
    "but",
    "“",
    "”",
    "《",
    "»",
    "not",
    "其实",
    "was",
    "的",
    "了",
    "my",
    "is",
]


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=60).map("".join)))
@settings(max_examples=150, deadline=None)
def test_every_message_is_read_in_its_own_words(message):
    read = read_statements(message)
    assert all(s.about and s.text in message for s in read.statements if s.kind != "correction")
    assert not (read.recalls and read.statements)


@pytest.mark.parametrize(
    "pasted", ["i really " * 5_000, "a, " * 10_000, "我" * 20_000, "其实真的" * 5_000, "not " * 9_000]
)
def test_a_pasted_text_states_nothing_and_is_read_to_its_end(pasted):
    assert read_statements(pasted).statements == []
    assert read_statements(pasted + "。Who wrote this?").rest.endswith("Who wrote this?")
