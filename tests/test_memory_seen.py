"""``wb.memory``: what is known is seen with where it is from, searched, corrected, taken back and compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner

from tests.parts.memory.test_remembering import bench, talk  # noqa: F401  a fixture
from tests.servers import ScriptedServer
from tests.test_hostile import ALL, NAME
from tests.test_store import postgres  # noqa: F401  every database
from tests.test_store import store as conversations  # noqa: F401
from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.parts.memory.store import MemoryStore
from workbench.records.conversations import SqlConversations
from workbench.session import Workbench


@pytest.fixture
def store(conversations: SqlConversations) -> MemoryStore:  # noqa: F811
    return MemoryStore(conversations)


Make = Callable[..., Workbench]


def told(wb: Workbench, *messages: str, session: str = "s", user: str = "default", kb: str = "film") -> list[Any]:
    return [wb.ask(message, kb=kb, session=session, user=user) for message in messages]


def contents(known: Any) -> list[str]:
    return [row["content"] for row in known.memories]


def test_what_is_known_is_seen_with_its_turn_author_and_time(bench: Make) -> None:  # noqa: F811
    wb = bench(memory_core=True)
    told(wb, "How is the weather?", "I don't like horror films.", "Actually, I like horror films now.")
    known = wb.memory.view()
    assert known.core["human"]["preferences"] == contents(known) and len(known.memories) == 1
    [now] = known.memories
    assert (now["turn"], now["session"], now["author"]) == (3, "s", "rules")
    assert now["said"] == "Actually, I like horror films now." and now["created_at"].startswith("20")
    assert [row["replaced_by"] for row in wb.memory.view(ended=True).memories] == [now["id"], ""]
    assert list(known.to_frame()["content"]) == contents(known)
    assert "horror" in str(known) and "turn 3 of conversation “s”" in known._repr_html_()
    assert wb.memory.view("nobody").memories == [] and wb.memory.view(session="other").memories == []


def test_a_memory_is_edited_ended_and_each_is_undone(bench: Make) -> None:  # noqa: F811
    wb = bench(memory_core=True)
    told(wb, "I don't like horror films.")
    memory = wb.memory
    [first] = memory.view().memories
    edited = memory.edit(first["id"], "I don't like comedy films.", why="a slip")
    [now] = memory.view().memories
    assert now["id"] == edited and (now["author"], now["polarity"]) == ("person", "dislike")
    assert "comedy" in now["about"] and "by hand" in str(memory.view())
    run = wb.ask("Recommend some films.", kb="film", session="t")
    assert "comedy" in run.state["memory_context"] and "Cold Soup" not in run.answer
    assert memory.undo() == first["id"] and contents(memory.view()) == [first["content"]]
    memory.invalidate(first["id"], "said in jest")
    assert memory.view().memories == []
    [gone] = memory.view(ended=True).memories
    assert gone["ended_why"] == "said in jest" and "said in jest" in str(memory.view(ended=True))
    memory.undo()
    assert contents(memory.view()) == [first["content"]]
    with pytest.raises(WorkbenchError, match="Say why"):
        memory.invalidate(first["id"], " ")
    for steer in (memory.edit, memory.invalidate):
        with pytest.raises(WorkbenchError, match="bob"):
            steer(first["id"], "x", user="bob")


def test_the_tools_are_methods_that_an_agent_can_be_given(bench: Make) -> None:  # noqa: F811
    memory = bench().memory
    update = partial(memory.core_memory_update, user="ann", author="agent")
    update("human", "不喜欢恐怖片")
    update("preferences", "喜欢诺兰")
    core = update("persona", "我是电影推荐专家。")
    assert core["human"]["preferences"] == ["不喜欢恐怖片", "喜欢诺兰"] and core["persona"] == "我是电影推荐专家。"
    assert update("human", "喜欢恐怖片")["human"]["preferences"] == ["喜欢诺兰", "喜欢恐怖片"], "it is replaced"
    human = {"name": "User", "preferences": ["喜欢诺兰", "不喜欢恐怖片"], "current_intent": "寻找90年代经典"}
    core = memory.core_memory_update("human", human, user="eve")
    assert {name: core["human"][name] for name in human} == human, "filled in from an object"
    memory.core_memory_update("name", "Ann", user="eve")
    assert memory.view("eve").core["human"]["name"] == "Ann"
    kept = memory.archival_memory_insert("The kiln in the east is the hotter one.", user="ann", author="agent")
    [found, *_] = memory.archival_memory_search("which kiln is hotter?", user="ann")
    assert found["id"] == kept and memory.view().memories == []
    assert {row["author"] for row in memory.view("ann").memories} == {"agent"}
    with pytest.raises(WorkbenchError, match="Known: persona, human"):
        update("mood", "x")


def test_memories_and_exchanges_are_searched_for_their_person_alone(bench: Make) -> None:  # noqa: F811
    wb = bench(memory_core=True)
    told(wb, "Remember that my cat is called Biscuit.", "How is the weather?", kb="general")
    told(wb, "Remember that my cat is called Pepper.", user="bob", kb="general")
    found = wb.memory.search("the name of my cat")
    assert {"facts", "episode"} <= {row["part"] for row in found} and found[0]["similarity"] >= found[-1]["similarity"]
    assert "Biscuit" in str(found) and "Pepper" not in str(found)
    assert not any(row["part"] == "episode" for row in wb.memory.search("the name of my cat", session="other"))
    assert not wb.memory.search("zymurgy quixotic") and len(wb.memory.search("cat", limit=1)) == 1
    assert list(found.to_frame()["id"]) == [row["id"] for row in found]


def test_a_prompt_is_mapped_part_by_part_with_what_was_left_out(bench: Make, server: ScriptedServer) -> None:  # noqa: F811
    wb = bench(memory_core=True, chat_base_url=server.url, models={"writer": "openai:m"}, history_window=2)
    towns = [f"How is the weather in town {n}?" for n in range(4)]
    told(wb, "Remember that my cat is called Biscuit.", *towns, kb="general")
    run = wb.ask("What is my cat called, and which town was it?", kb="film", session="s")
    parts = run.prompt_parts()
    kinds = [part["part"] for part in parts if part["kept"]]
    assert kinds == sorted(kinds, key=["system", "core", "summary", "episode", "evidence", "history", "question"].index)
    assert {"system", "core", "history", "question"} <= set(kinds)
    [fact] = [part for part in parts if part["part"] == "core"]
    assert (fact["turn"], fact["session"], fact["author"]) == (1, "s", "rules")
    sent = sum(len(m["content"]) for m in server.requests[-1]["messages"]) / 4
    assert 0.6 * sent < sum(p["tokens"] for p in parts if p["kept"]) < 1.4 * sent, "about what was sent"
    wb.close()
    tight = bench(memory_core=True, memory_token_budget=5)
    run = tight.ask("What is my cat called?", kb="film", session="s")
    assert any(p["why"] == "budget" and not p["kept"] for p in run.prompt_parts())
    assert "no room in the budget" in str(run.prompt_parts())


def test_hostile_text_is_text_wherever_memory_shows_itself(bench: Make) -> None:  # noqa: F811
    wb = bench(memory_core=True)
    for section in ("name", "facts", "archival"):
        wb.memory.core_memory_update(section, ALL) if section != "archival" else wb.memory.archival_memory_insert(ALL)
    run = wb.ask(ALL, kb="film", session=f"s {NAME}")
    for one in (wb.memory.view(ended=True), wb.memory.search(ALL), run.prompt_parts()):
        html = one._repr_html_()
        assert "<script" not in html and "<img" not in html and "\x1b" not in html + str(one)


def test_every_command_says_what_it_did(bench: Make, tmp_path: Any) -> None:  # noqa: F811
    wb = bench(memory_core=True)
    told(wb, "I don't like horror films.", "Recommend some films.")
    wb.close()

    def command(*words: str) -> Any:
        done = CliRunner().invoke(main, ["memory", *words, "--workspace", str(tmp_path / "w"), "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    [memory] = command("show")["memories"]
    assert memory["turn"] == 1 and command("show", "--session", "s")["memories"] == [memory]
    assert command("show", "horror")["found"][0]["text"] == memory["content"]
    [edited] = command("edit", memory["id"], "I don't like comedies.", "--why", "a slip")["memories"]
    assert command("add", "name", "Ann")["core"]["human"]["name"] == "Ann"
    assert len(command("add", "archival", "The east kiln is hot.")["memories"]) == 3
    assert len(command("show", "--ended")["memories"]) == 4
    assert not command("forget", "--memory", edited["id"])["done"]
    assert command("forget", "--memory", edited["id"], "--yes")["done"]
    assert all(row["id"] != edited["id"] for row in command("show", "--ended")["memories"])
    plain = CliRunner().invoke(main, ["memory", "show", "--workspace", str(tmp_path / "w")])
    assert "Ann" in plain.output and "{" not in plain.output
    wrong = CliRunner().invoke(main, ["memory", "edit", "nothing", "x", "--workspace", str(tmp_path / "w")])
    assert wrong.exit_code == 1 and "is no memory of 'default' that holds" in wrong.output


def test_what_is_pressed_on_the_bench_changes_what_is_remembered(bench: Make) -> None:  # noqa: F811
    wb = bench(memory_core=True)
    *_, run = told(wb, "I don't like horror films.", "Recommend some films.")
    [noted] = wb.memory.view().memories
    page = wb.bench(run, session="s")
    page.working.memory.list.press("invalidate", noted["id"])
    assert not wb.memory.view().memories
    page.working.memory.list.press("undo")
    page.working.memory.list.press("correct", noted["id"])
    page.working.memory.text.value = "I don't like comedy films."
    assert [memory["content"] for memory in wb.memory.view().memories] == ["I don't like comedy films."]
