"""Routing: the worker's name, the intent, the filters and the knowledge base of a message, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shelf import shelf
from workbench.graphs.route import decide, is_small_talk, parse_worker_name

__all__ = ["shelf"]

SMALL_TALK = """Hello | hi there! | Good morning | Thanks a lot | Thank you, bye! | Who are you? | What can you do?
你好 | 您好！ | 谢谢你 | 再见 | 你是谁？ | 你能做什么 | 早上好 | 好的，谢谢"""
QUESTIONS = "Hello, who directed Inception? | 你好，推荐一部电影 | Who is Ang Lee? | 再推荐几部 | | 谢谢你能来"


def test_small_talk_is_nothing_but_small_talk() -> None:
    assert [text for text in SMALL_TALK.replace("\n", "|").split("|") if not is_small_talk(text.strip())] == []
    assert [text for text in QUESTIONS.split("|") if is_small_talk(text.strip())] == []


@pytest.mark.parametrize(
    ("name", "worker"),
    [
        ("film:graph_agent:retrieve_only", ("film", "graph_agent", "retrieve_only")),
        ("film:graph_agent", ("film", "graph_agent", "retrieve_only")), ("film", ("", "film", "retrieve_only")),
        ("default:graph_agent", ("", "graph_agent", "retrieve_only")),
        ("hybrid_agent", ("", "hybrid_agent", "retrieve_only")), ("", ("", "", "retrieve_only")),
        ("general", ("", "", "retrieve_only")), ("general:graph_agent:retrieve_only", ("", "", "retrieve_only")),
    ],
)  # fmt: skip
def test_worker_names(name: str, worker: tuple[str, str, str]) -> None:
    assert tuple(parse_worker_name(name)) == worker


@pytest.mark.parametrize(
    ("message", "requested", "worker", "prefixes", "method"),
    [
        ("喜宴哪一年上映？", [], "", ["film"], "heuristic"),
        ("How do plants turn sunlight into sugar?", [], "", ["essays"], "heuristic"),
        ("推荐几部科幻片", [], "", ["film"], "heuristic"),
        ("谁导演了《红高粱》？", [], "", ["film"], "heuristic"),
        ("Hello!", [], "", [], "default"),
        ("Best pizza dough recipe", [], "", ["film", "essays"], "heuristic"),  # searched where it may be
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
