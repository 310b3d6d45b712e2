"""What is noted, not kept, taken back and asked of memory, at the door, without a model; in English and Chinese."""

from __future__ import annotations

import pytest

from tests.test_remembering import bench  # noqa: F401  a fixture
from workbench.parts.memory.preferences import read_preferences
from workbench.parts.memory.recall import by_rules
from workbench.parts.memory.service import find_store

CONVERSATIONS = [
    # what is asked to be remembered answers the person's question
    ["remember that I live in Oslo", "Noted", "Where do I live?", "“I live in Oslo”"],
    ["请记住我住在奥斯陆。", "记住了", "我住在哪里？", "“我住在奥斯陆”"],
    ["Remember that I am in Oslo.", "Noted", "Remember that I live in Rome.", "", "Where do I live?", "live in Rome"],
    # the newest note on one thing holds
    ["I love Chinese food.", "Noted", "I hate Chinese food.", "Noted", "Do I like Chinese food?", "I hate Chinese"],
    ["Remember that I live in Osaka.", "", "Remember that I live in Rome.", "", "Where do I live?", "!Osaka"],
    ["Remember that my tea is oolong.", "", "Remember that my tea is jasmine.", "", "What is my tea?", "!oolong"],
    ["记住我住在成都", "", "记住我住在杭州", "", "我住在哪里？", "!成都"],
    ["My name is Rhea. Please call me Ray.", "Noted", "What is my name?", "Ray"],
    ["我叫小安。", "记住了", "我叫什么？", "小安", "What is my name?", "小安"],
    ["I love horror.", "", "I don't like horror any more.", "", "What films do I like?", "!I love horror"],
    # likes are asked for in the first person
    ["I like westerns.", "", "What kind of films do I like?", "“I like westerns”"],
    ["我喜欢科幻片。", "", "我喜欢什么类型的电影？", "“我喜欢科幻片”"],
    ["What kind of films do I like?", "Nothing of that is noted"],
    ["I do not like long answers.", "", "What kind of answers do I like?", "“I do not like long answers”"],
    # the conversation is asked only where the question says so
    ["Who wrote Cold Soup?", "", "What did I ask about Cold Soup?", "You asked on"],
    ["I don't like horror films.", "", "What did I say about horror?", "“I don't like horror films.”"],
    ["What did I say about opera?", "Nothing in this conversation is about “opera”."],
    ["我说过关于京剧的什么？", "在这段对话里没有找到"],
    # and the rest of a message is answered
    ["I don't like horror. Which films are there?", "Paper Boats"],
    ["I don't like horror, recommend something else.", "Noted: I don't like horror."],
]


@pytest.mark.parametrize("turns", CONVERSATIONS, ids=lambda turns: turns[-2])
@pytest.mark.few(12)
def test_memory_holds_what_was_asked_for_and_says_what_it_does_not_hold(bench, turns):  # noqa: F811
    wb = bench()
    for message, expected in zip(turns[::2], turns[1::2], strict=True):
        answer = wb.ask(message, kb="film", session="s").answer
        assert (expected[1:] not in answer) if expected.startswith("!") else (expected in answer), (message, answer)


def test_what_an_answer_said_is_quoted_and_never_the_question(bench):  # noqa: F811
    wb = bench()
    conversations = find_store(wb)
    for asked, answer, again in (
        ("《喜宴》是谁导演的？", "《喜宴》由李安执导 [1]。它拍于1993年。", "刚才说的那个导演是谁？"),
        ("Who directed Paper Boats?", "R. Lund made it [1].", "Who was the director you mentioned earlier?"),
    ):
        conversation = conversations.get_or_create_conversation_id("default", again)
        message = conversations.append_message(conversation, "user", asked)
        conversations.append_message(conversation, "assistant", answer, answers=message)
        run = wb.ask(again, kb="film", session=again)
        assert answer.split(" [1]")[0] in run.answer and asked not in run.answer and not run.records


ORDINARY = [
    "What was agreed on 3 May?", "Which films were made before 2003?", "Was the mill owned by Ann Lee before?",
    "2003年之前上映的电影有哪些？", "刚刚上映的电影有哪些？", "How do I reset the kiln?", "Do I need a permit?",
    "Am I allowed to open the kiln at night?", "Where can I find the manual?", "我怎么重置窑炉？",
    "I want to know who built the mill.", "I'd like a film about rivers.", "I am looking for papers on whales.",
    "I have a question about kilns.", "I like it when it rains", "I liked Paper Boats, what next?",
    "My pump is leaking.", "Remember the Titans", "Call me back later", "Who will forget The Long Dark?",
    "Forget about Paris, which films are from 2005?", "我想看一部喜剧", "我叫了外卖", "喜欢这部电影的人还喜欢什么",
    "He said that he likes tea.",
]  # fmt: skip


@pytest.mark.parametrize("message", ORDINARY)
def test_an_ordinary_message_is_searched_as_it_is(message):
    assert by_rules(message) == {"noted": [], "recalls": None, "to_search": message}


@pytest.mark.parametrize(
    ("message", "stated", "rest"),
    [
        ("I like horror, drama and comedy.", ["horror, drama and comedy"], ""),
        ("I like horror but I hate comedy. What now?", ["horror", "comedy"], "What now?"),
        ("Hi, my name is Dana.", ["Dana"], ""),
        ("Please remember that I like tea, and recommend a film.", ["tea"], "recommend a film."),
        ("我不喜欢铜管乐队，推荐别的", ["铜管乐队"], "推荐别的"),
        ("我叫小安，记住我住在成都。", ["小安", "我住在成都"], ""),
        ("I live in Oslo. Which films are set there?", [], "I live in Oslo. Which films are set there?"),
        ("I like tea. " * 300, [], "I like tea. " * 300),
    ],
)
def test_what_a_message_states_and_what_remains_to_be_answered(message, stated, rest):
    notes, left = read_preferences(message)
    assert ([note["about"] for note in notes], left) == (stated, rest)
