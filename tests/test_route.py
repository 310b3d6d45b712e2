"""Routing: the worker's name, the intent, the filters and the knowledge base of a message, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shelf import shelf
from workbench.errors import UnknownKnowledge
from workbench.question.names import names_in
from workbench.question.reading import themes
from workbench.question.times import times, years
from workbench.route import (
    build_router,
    decide,
    detect_intent,
    extract_filters,
    is_smalltalk,
    make_worker_name,
    parse_worker_name,
    read_question,
)

__all__ = ["shelf"]

INTENTS = {
    "qa": """
        喜宴哪一年上映？
        《喜宴》是谁导演的？
        少年派的奇幻漂流讲了什么故事？
        卧虎藏龙的主演有哪些人？
        李安1993年拍了哪部电影？
        喜宴是李安导演的吗？
        介绍一下《星际穿越》
        谁是《奥本海默》的导演？
        《红高粱》是哪一年的电影？
        《致命魔术》是什么类型的电影？
        《记忆碎片》改编自哪篇短篇小说？
        Who directed The Wedding Banquet?
        who directed inception
        What year did Brokeback Mountain come out?
        Tell me about The Wedding Banquet
        Which film did Ang Lee make in 1993?
        How long is Interstellar?
        Who plays Batman in Batman Begins?
        Describe the plot of The Prestige
        Inception release date
        盗梦空间好看吗
        Name the director of Life of Pi
        Has Ang Lee ever directed a western?""",
    "recommend": """
        推荐几部类似《喜宴》的电影
        有什么好看的科幻片？
        我喜欢盗梦空间，还有什么类似的？
        想看一部轻松的喜剧
        有没有像《星际穿越》一样的科幻电影
        推荐李安2000年以后的电影
        Recommend some films similar to Inception
        Can you suggest a good comedy from the 1990s?
        What should I watch tonight?
        Movies like Memento
        I loved Brokeback Mountain, what else would I like?
        Any good war movies after 2000?
        What are the best Christopher Nolan films?
        Which films are similar to The Dark Knight?
        来几部李安的片子
        I'm looking for something in the vein of Memento""",
    "compare": """
        对比《喜宴》和《饮食男女》的风格
        《喜宴》和《推手》哪个更早上映？
        李安和诺兰的风格有什么不同？
        比较一下盗梦空间和星际穿越
        断背山与冰风暴的异同
        Compare Inception and Interstellar
        What is the difference between The Wedding Banquet and Eat Drink Man Woman?
        Which is longer, Inception or Tenet?
        Inception vs Interstellar
        Which came first, Memento or Insomnia?
        What do Hulk and Gemini Man have in common?
        Did Memento come out before Inception?
        Batman Begins or The Dark Knight, who stars in each of them?
        喜宴跟饮食男女比怎么样
        Who has directed more films, Ang Lee or Christopher Nolan?""",
    "list": """
        列出李安导演的所有电影
        李安2000年以后导演过哪些电影？
        李安一共拍了多少部电影？
        90年代的喜剧有哪些？
        1993年有哪些电影上映
        台湾电影有哪些
        李安的电影
        List Christopher Nolan films after 2005
        Which films did Ang Lee direct after 2000?
        How many films did Ang Lee direct?
        Show me all comedies from the 1990s
        Ang Lee's films since 2005
        Nolan movies
        What has Ang Lee directed?
        Are there any Taiwanese films?
        诺兰拍过的电影都有什么
        哪些电影是斯派克·李导演的
        Tell me all the movies Ang Lee made""",
    "person": """
        李安是谁？
        谁是李安
        介绍一下李安
        克里斯托弗·诺兰是什么人
        张艺谋是谁？
        谁是 Christopher Nolan？
        Christopher Nolan 是什么样的导演，拍过什么？
        Who is Ang Lee and what has he directed?
        Tell me about Christopher Nolan
        What is Tim Burton known for?
        Who was Akira Kurosawa?
        李安这个导演怎么样
        Ang Lee: who is he?
        Ang Lee""",
    "unknown": """
        你好
        Thanks a lot!
        asdf qwer""",
}


@pytest.mark.parametrize(
    ("intent", "question"), [(i, q.strip()) for i, block in INTENTS.items() for q in block.strip().splitlines()]
)
def test_intent(shelf: Any, intent: str, question: str) -> None:
    found, confidence, reason = detect_intent(question, names_in(question, [shelf.get("film")]))
    assert found == intent, reason
    assert 0 <= confidence <= 1


def test_confidence_follows_the_evidence() -> None:
    weak = detect_intent("films about tea", [])
    strong = detect_intent("List all films about tea", [])
    torn = detect_intent("Recommend or compare films", [])
    assert weak[0] == strong[0] == "list"
    assert weak[1] < strong[1]
    assert torn[1] < strong[1]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("films after 2005", 2006, None),
        ("films since 2005", 2005, None),
        ("from 2005 on", 2005, None),
        ("2005 or later", 2005, None),
        ("before 2000", None, 1999),
        ("no later than 1999", None, 1999),
        ("in the 1990s", 1990, 1999),
        ("comedies of the eighties", 1980, 1989),
        ("the late '90s", 1996, 1999),
        ("before the 1990s", None, 1989),
        ("between 1990 and 2000", 1990, 2000),
        ("from 1990 to 1995", 1990, 1995),
        ("1990–2000", 1990, 2000),
        ("after 1990 and before 2000", 1991, 1999),
        ("1993 or 1994", 1993, 1994),
        ("2005年以后的电影", 2006, None),
        ("2005年以来", 2005, None),
        ("从1990年至今", 1990, None),
        ("2000年以前", None, 1999),
        ("90年代的喜剧", 1990, 1999),
        ("上世纪八十年代", 1980, 1989),
        ("90年代后期", 1996, 1999),
        ("1990年到2000年之间", 1990, 2000),
        ("1993年的电影", 1993, 1993),
        ("一九九三年", 1993, 1993),
        ("二〇〇五年之后", 2006, None),
        ("21世纪的科幻片", 2001, 2100),
        ("a 2000 meters race for $2000", None, None),
        ("after 2010 and before 2000", None, None),
    ],
)
def test_years(text: str, first: int | None, last: int | None) -> None:
    bounds = {"year_from": first, "year_to": last}
    assert years(times(text)) == {name: year for name, year in bounds.items() if year}


@pytest.mark.parametrize(
    ("question", "filters"),
    [
        ("List Christopher Nolan films after 2005", {"year_from": 2006, "director": "Christopher Nolan"}),
        ("李安2000年以后导演过哪些电影？", {"year_from": 2001, "director": "Ang Lee"}),
        ("推荐李安2000年以后的电影", {"year_from": 2001, "director": "Ang Lee"}),
        ("Films starring Hugh Jackman", {"cast": "Hugh Jackman"}),
        ("列出诺兰的科幻片", {"director": "Christopher Nolan", "genre": "Science Fiction"}),
        ("Suggest a Taiwanese film", {"country": "Taiwan"}),
        ("台湾电影有哪些", {"country": "Taiwan"}),
        ("90年代的喜剧", {"year_from": 1990, "year_to": 1999, "genre": "Comedy"}),
        ("romantic comedies", {"genre": "Comedy"}),
        ("war films", {"genre": "War"}),
        ("films about war", {}),
        ("家庭题材的电影", {"genre": "Family"}),
        ("剧情是什么", {}),
        ("给我推荐一些恐怖片，不要喜剧", {"genre": "Horror"}),
        ("something that is not a comedy", {}),
        ("films like those of Ang Lee", {"director": "Ang Lee"}),
        ("directors similar to Ang Lee", {}),
        ("Who directed Wonder Woman 1984?", {}),
        ("《霸王别姬》是谁导演的？", {}),
        ("films directed by Zhang Yimou", {"director": "Zhang Yimou"}),
        (
            "Films with Michael Caine directed by Christopher Nolan",
            {"cast": "Michael Caine", "director": "Christopher Nolan"},
        ),
        ("something like Inception, but not by Christopher Nolan", {}),
        ("列出1990年到1995年的李安电影", {"year_from": 1990, "year_to": 1995, "director": "Ang Lee"}),
        ("李安 电影", {"director": "Ang Lee"}),
    ],
)
def test_filters(shelf: Any, question: str, filters: dict[str, Any]) -> None:
    assert extract_filters(question, names_in(question, [shelf.get("film")])) == filters


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("对比《喜宴》和《饮食男女》的风格", ["The Wedding Banquet", "Eat Drink Man Woman"]),
        ("Who starred in Wong Kar-wai's Chungking Express?", ["Wong Kar-wai", "Chungking Express"]),
        ("《喜宴2》什么时候上映？", ["喜宴2"]),
        ("Who directed 霸王别姬?", ["霸王别姬"]),
        ("推荐几部王家卫的电影", ["王家卫"]),
        ("推荐几部好看的电影", []),
        ("汤姆·克鲁斯主演的电影", ["汤姆·克鲁斯"]),
        ("What should I watch in March?", []),
        ("Suggest a Taiwanese film", []),
        ("LIST ALL FILMS", []),
    ],
)
def test_names_known_and_unknown_in_the_order_of_the_question(shelf: Any, question: str, names: list[str]) -> None:
    assert read_question(question, [shelf.get("film")])["extracted_entities"]["low_level"] == names


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Recommend some films about family and cooking from the 1990s", ["family", "cooking"]),
        ("推荐几部关于家庭和美食的电影", ["家庭", "美食"]),
        ("What is it about?", []),
    ],
)
def test_themes(question: str, expected: list[str]) -> None:
    assert themes(question) == expected


SMALLTALK = """
    Hello
    hi there!
    Good morning
    Thanks a lot
    Thank you, bye!
    Who are you?
    What can you do?
    你好
    您好！
    谢谢你
    再见
    你是谁？
    你能做什么
    早上好
    好的，谢谢"""


@pytest.mark.parametrize("message", [line.strip() for line in SMALLTALK.strip().splitlines()])
def test_smalltalk(message: str) -> None:
    assert is_smalltalk(message)


@pytest.mark.parametrize(
    "message",
    ["Hello, who directed Inception?", "你好，推荐一部电影", "Who is Ang Lee?", "再推荐几部", "", "谢谢你能来"],
)
def test_not_smalltalk(message: str) -> None:
    assert not is_smalltalk(message)


@pytest.mark.parametrize(
    ("name", "worker"),
    [
        ("film:graph_agent:retrieve_only", ("film", "graph_agent", "retrieve_only")),
        ("film:graph_agent", ("film", "graph_agent", "retrieve_only")),
        ("film", ("", "film", "retrieve_only")),
        ("default:graph_agent", ("", "graph_agent", "retrieve_only")),
        ("hybrid_agent", ("", "hybrid_agent", "retrieve_only")),
        ("", ("", "", "retrieve_only")),
        ("general", ("", "", "retrieve_only")),
        ("general:graph_agent:retrieve_only", ("", "", "retrieve_only")),
    ],
)
def test_worker_names(name: str, worker: tuple[str, str, str]) -> None:
    assert tuple(parse_worker_name(name)) == worker


@pytest.mark.parametrize("name", ["film:graph_agent:chat", "film:graph_agent:retrieve_only:x", "film:wizard"])
def test_a_bad_worker_name_is_shown(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        parse_worker_name(name)


def test_worker_names_go_round() -> None:
    assert make_worker_name(*parse_worker_name("film:graph_agent")[:2]) == "film:graph_agent:retrieve_only"
    assert make_worker_name("general", "graph_agent") == make_worker_name("") == ""


@pytest.mark.parametrize(
    ("message", "requested", "worker", "prefixes", "method"),
    [
        ("喜宴哪一年上映？", [], "", ["film"], "heuristic"),
        ("How do plants turn sunlight into sugar?", [], "", ["essays"], "heuristic"),
        ("推荐几部科幻片", [], "", ["film"], "heuristic"),
        ("谁导演了《红高粱》？", [], "", ["film"], "heuristic"),
        ("Hello!", [], "", [], "default"),
        ("Best pizza dough recipe", [], "", [], "default"),
        ("Who is Ang Lee?", ["essays"], "", ["essays"], "override"),
        ("Who is Ang Lee?", ["film", "essays"], "", ["film", "essays"], "override"),
        ("Who is Ang Lee?", ["general"], "film:graph_agent", [], "override"),
        ("Who is Ang Lee?", [""], "film:graph_agent", [], "override"),
        ("Hello!", [], "film:graph_agent", ["film"], "override"),
        ("Who is Ang Lee?", ["essays"], "film:graph_agent", ["film"], "override"),
        ("Who is Ang Lee?", [], "graph_agent", ["film"], "heuristic"),
    ],
)
def test_the_knowledge_base(
    shelf: Any, message: str, requested: list[str], worker: str, prefixes: list[str], method: str
) -> None:
    decision, found = decide(message, requested, worker, shelf)
    assert (found, decision["method"]) == (prefixes, method), decision["reason"]
    assert decision["kb_prefix"] == (prefixes[0] if prefixes else "general")
    agent = "graph_agent" if "graph_agent" in worker else "fusion_agent"
    assert decision["worker_name"] == (f"{prefixes[0]}:{agent}:retrieve_only" if prefixes else "")


def test_what_only_another_base_knows_brings_it_in(shelf: Any) -> None:
    assert decide("Compare Inception and Photosynthesis", [], "", shelf).kb_prefixes == ["essays", "film"]


def test_without_automatic_routing_nothing_is_searched(shelf: Any) -> None:
    decision, prefixes = decide("Who is Ang Lee?", [], "", shelf, auto_route=False)
    assert (prefixes, decision["kb_prefix"], decision["worker_name"]) == ([], "general", "")
    assert "off" in decision["reason"]


@pytest.mark.parametrize(("requested", "worker"), [(["edu"], ""), ([], "edu:graph_agent"), (["film", "edu"], "")])
def test_an_unknown_knowledge_base_lists_the_known(shelf: Any, requested: list[str], worker: str) -> None:
    with pytest.raises(UnknownKnowledge, match=r"'edu'.*essays, film"):
        decide("Who is Ang Lee?", requested, worker, shelf)


def test_the_graph_decides_as_the_function_does(shelf: Any) -> None:
    import asyncio

    from workbench.testing import memory_context

    context = memory_context([shelf.get("film"), shelf.get("essays")])
    state = asyncio.run(build_router().ainvoke({"message": "Who is Ang Lee?"}, context=context))
    decision, prefixes = decide("Who is Ang Lee?", [], "", shelf)
    assert state["route_decision"] == decision
    assert (state["kb_prefix"], state["kb_prefixes"]) == ("film", prefixes)
    assert state["worker_name"] == "film:fusion_agent:retrieve_only"
    assert state["routing_ms"] >= 0
