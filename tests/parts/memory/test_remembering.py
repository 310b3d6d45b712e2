"""Memory: noted, obeyed, recalled, summed up, taken back; by rules and by models, in English and Chinese."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cases import tables
from tests.parts.memory.test_forgetting import holders
from tests.servers import Reply, ScriptedServer
from tests.servers.roles import role_of
from tests.shelves import CORPORA, shelved, workbench
from tests.test_hostile import ALL, NAME
from tests.test_store import postgres  # noqa: F401  every database
from tests.test_store import store as conversations  # noqa: F401
from workbench.errors import ModelError, WorkbenchError
from workbench.models.embeddings import HashingEmbeddings
from workbench.parts.memory.reading import read_preferences
from workbench.parts.memory.recall import Recalling, by_rules, find_store
from workbench.parts.memory.store import MemoryStore, core_memory
from workbench.records.conversations import SqliteConversations
from workbench.runs.stored import debug_events
from workbench.session import Workbench
from workbench.settings import Settings

CORE = {"embedding_model": "hashing", "rerank_model": "none", "model_backoff_s": 0.01}
CASES = tables("remembering", end="\n")


def test_memories_and_exchanges_are_kept_once_seen_and_undone(conversations):  # noqa: F811
    store = MemoryStore(conversations)
    first = store.remember("ann", "preferences", "likes horror", about="horror", polarity="like")
    assert store.remember("ann", "preferences", "other words", key=first) == first, "kept once"
    second = store.remember("ann", "preferences", "no horror", about="horror", polarity="dislike", replaces=[first])
    assert [m["content"] for m in store.memories("ann")] == ["no horror"]
    [old, new] = store.memories("ann", ended=True)
    assert old["replaced_by"] == second and new["ended_at"] is None
    assert store.undo("ann") == first and [m["content"] for m in store.memories("ann")] == ["likes horror"]
    store.end("ann", [first], "a slip")
    assert store.memories("ann") == [] and store.memories("ann", ended=True)[0]["ended_why"] == "a slip"
    store.undo("ann")
    with pytest.raises(WorkbenchError, match="bob"):
        store.undo("bob")
    store.remember("ann", "name", "Ann")
    store.remember("ann", "name", "Anna")
    assert core_memory(store.memories("ann"))["human"]["name"] == "Anna", "one name, the newest"
    with pytest.raises(WorkbenchError, match="Known: persona"):
        store.remember("ann", "mood", "x")
    store.forget([first])
    assert all(m["id"] != first for m in store.memories("ann", ended=True))
    conversation = store.get_or_create_conversation_id("ann", "s")
    asked = store.append_message(conversation, "user", "Which kiln is hot?", message_key="r:user")
    for _ in range(2):
        store.append_message(conversation, "assistant", "The east one.", message_key="r:assistant", answers=asked)
    [episode] = store.episodes(conversation)
    assert (episode["user_message"], episode["assistant_message"]) == ("Which kiln is hot?", "The east one.")
    assert store.unembedded("m", 9) == [episode]
    store.save_vectors([(episode["id"], b"12345678")], "m")
    [embedded] = store.episodes(conversation, model="m")
    assert embedded["vector"] == b"12345678" and not store.unembedded("m", 9)
    store.save_summary(conversation, "Of kilns.", 2, "rules")
    store.save_summary(conversation, "late, and of less", 1, "rules")
    assert store.get_summary(conversation)["summary"] == "Of kilns."
    store.clear("ann", "s")
    assert not store.episodes(conversation) and store.get_summary(conversation) is None


class Outage(HashingEmbeddings):
    """Takes no text that holds this, and counts how often it is asked."""

    def __init__(self, poison: str):
        super().__init__()
        self.calls, self._poison = 0, poison

    def array(self, texts):
        self.calls += 1
        if any(self._poison in text for text in texts):
            raise ModelError("away")
        return super().array(texts)


def test_what_fits_is_recalled_and_words_do_where_the_model_fails(tmp_path):
    kept = MemoryStore(SqliteConversations(":memory:"))
    with kept.conversations_store:
        conversation = kept.get_or_create_conversation_id("ann", "s")
        for asked, said in (("我最喜欢的导演是李安", "记住了。"), *((f"weather {n}?", "Rain.") for n in range(9))):
            message = kept.append_message(conversation, "user", asked)
            kept.append_message(conversation, "assistant", said, answers=message)
        settings = Settings.load(**CORE, history_window=2)
        for model, note in ((HashingEmbeddings(), ""), (Outage(""), "away")):
            found, why = Recalling(kept, settings, model).find("导演是谁", "ann", conversation)
            assert found[0]["user_message"] == "我最喜欢的导演是李安" and note in why
        strict = Settings.load(**CORE, memory_least=0.9)
        found, _ = Recalling(kept, strict, HashingEmbeddings()).find("violins", "ann", conversation)
        assert found == [], "what does not fit is not recalled"
        away = Outage("")
        nothing = Recalling(kept, settings, away).find("导演是谁", "bob")
        assert nothing == ([], "") and not away.calls, "the first question of a conversation waits for no vector"


@pytest.fixture
def bench(tmp_path: Path, opens: Any) -> Callable[..., Workbench]:
    return lambda **settings: opens(shelved(tmp_path / "w", CORPORA / "three_films.jsonl"), **{**CORE, **settings})


def test_a_preference_is_noted_left_out_in_a_fork_and_replayed(bench):
    wb = bench(memory_core=True)
    run = wb.ask("I don't like horror films.", kb="film", session="s")
    assert run.answer.startswith("Noted") and not run.records, "nothing is searched"
    run = wb.ask("Recommend some films.", kb="film", session="s")
    titles = {r["metadata"]["title"] for r in run.evidence}
    assert "Paper Boats" in titles and "The Long Dark" not in run.answer
    assert any("horror" in line.lower() and "since you said" in line for line in run.plan.assumptions)
    [used] = [part for part in run.prompt_parts() if part["part"] == "core"]
    assert used["conditions"] == ["genres is not Horror"] and not used["unused"]
    assert used["content"] == "I don't like horror films", "without the name of its section"
    assert {part["author"] for part in run.prompt_parts() if part["part"] == "history"} == {"user", "assistant"}
    assert "3 documents" in wb.ask("How many films are there?", kb="film", session="s").answer, "it is no advice"
    [noted] = wb.memory.view().memories
    other = wb.ask("How many films are there?", kb="film", session="t")
    assert [part["unused"] for part in other.prompt_parts() if part["part"] == "core"] == [True]
    fork = run.fork(without=[noted["id"]]).wait()
    assert not any("since you said" in line for line in fork.plan.assumptions)
    assert wb.replay(run.run_id).to_dict()["answer"] == run.answer
    known = wb.ports().memory.recall("x", user_id="default", conversation_id="")["memories"]
    assert len(known) == 1, "forks note nothing"
    both = wb.ask("I don't like horror films, recommend some.", kb="film", session="u")
    assert both.state["noted"] and "The Long Dark" not in both.answer, "what this question says it does not want"
    said = wb.ask("What did I say about horror films?", kb="film", session="s")
    assert "I don't like horror films" in said.answer and not said.records
    other = wb.ask("Recommend some films.", kb="film", session="t", user="bob")
    assert not other.state["memory_context"]


def test_nothing_is_noted_where_it_is_off_or_incognito(bench):
    wb = bench(memory_core=False)
    run = wb.ask("I don't like horror films.", kb="film", session="s")
    assert not run.state["noted"]
    wb.close()
    private = bench(memory_core=True)
    private.ask("I don't like horror films.", kb="film", session="s", incognito=True)
    run = private.ask("Recommend some films.", kb="film", session="s")
    assert not run.state["memory_context"]


def test_a_long_conversation_is_summed_up_recalled_and_told_what_was_left_out(bench, server):
    told = {"chat_base_url": server.url, "models": {"writer": "openai:m"}}
    wb = bench(**told, summary_from=4, summary_every=2, history_window=2)
    wb.ask("My cat is called Biscuit.", kb="general", session="s")
    for n in range(5):
        wb.ask(f"How is the weather in town number {n}?", kb="general", session="s")
        wb._work.loop.settle(10)
    run = wb.ask("What is the name of my cat?", kb="general", session="s")
    sent = "\n".join(m["content"] for m in server.requests[-1]["messages"])
    assert "Biscuit" in sent and sent.count("What is the name of my cat?") == 1
    parts = run.state["remembered"]
    assert {"summary", "history"} <= {p["part"] for p in parts if p["kept"]}
    assert any(p["part"] == "episode" and "Biscuit" in p["text"] for p in parts)
    wb.close()
    tight = bench(**told, memory_token_budget=0)
    run = tight.ask("What is the name of my cat?", kb="general", session="s")
    assert {p["why"] for p in run.state["remembered"] if p["tokens"]} == {"budget"}


def test_the_summarizer_is_asked_as_often_as_it_is_due_and_may_fail(bench, server):
    def reply(request: dict[str, Any]) -> Reply:
        return Reply([json.dumps({"summary": "They speak of towns."})] if role_of(request) == "summarizer" else ["So."])

    server.respond = reply
    wb = bench(chat_base_url=server.url, models={"summarizer": "openai:m"})
    for n in range(15):
        wb.ask(f"Town number {n}?", kb="general", session="s")
        wb._work.loop.settle(10)
    asked = [r for r in server.requests if role_of(r) == "summarizer"]
    # at 10 messages 4 are covered; then whenever 5 more have left the window of 6: at 16, 22 and 28 of 30
    assert len(asked) == 4 and "They speak of towns." in asked[1]["messages"][-1]["content"]
    server.respond = lambda request: Reply(status=500, message="out of order")
    conversation = wb.runs.list()[0].row["conversation_id"]
    for n in range(3):
        assert wb.ask(f"Hamlet number {n}?", kb="general", session="s").status == "done"
        wb._work.loop.settle(10)
    kept = find_store(wb).get_summary(conversation)
    assert kept["author"] == "rules", "where the model fails the rules do it"


def test_a_model_reads_messages_and_what_it_gives_is_bounded(bench, server):
    said = {"section": "preferences", "content": "No horror, please", "about": "horror", "polarity": "dislike"}
    asks = {"question": "", "asks_what_was_said": False, "about": ""}
    replies = [{"notes": [{**said, "replaces": []}], **asks}, {"notes": [{**said, "replaces": [1, 9]}], **asks}]

    def reply(request: dict[str, Any]) -> Reply:
        return Reply(
            [json.dumps(replies.pop(0)) if replies else "nothing"] if role_of(request) == "memory" else ["So."]
        )

    server.respond = reply
    wb = bench(memory_core=True, models={"memory": "openai:m"}, chat_base_url=server.url)
    run = wb.ask("Scary ones are not for me.", kb="film", session="s")
    assert run.answer.startswith("Noted: No horror, please. To undo") and not run.records
    wb.ask("As I said: none of the scary ones.", kb="film", session="s")
    [now] = wb.ports().memory.recall("x", user_id="default", conversation_id="")["memories"]
    assert now["author"] == "openai:m" and now["content"] == "No horror, please", "one takes the place of the other"
    run = wb.ask("Recommend some films.", kb="film", session="s")
    assert "No horror" in run.state["memory_context"], "where the model gives nothing usable the rules read"
    asked = [r for r in server.requests if role_of(r) == "memory"]
    wb.ask("Which films are there?", kb="film", session="s")
    after = [r for r in server.requests if role_of(r) == "memory"]
    assert asked and after == asked, "who speaks of nobody says nothing of themselves"


def test_the_log_says_what_was_recalled(bench):
    wb = bench(memory_core=True, summary_from=4, summary_every=1, history_window=2)
    for said in ("I don't like horror films.", "Which films are there?", "And which of 2005?", "And of 2010?"):
        run = wb.ask(said, kb="film", session="s")
        wb._work.loop.settle(10)
    [told] = [event["history"] for event in debug_events(run) if "history" in event]
    assert told == {"history_count": 2, "has_memory_context": True, "has_summary": True, "episodic_count": 1}


def test_a_key_that_a_model_repeats_and_one_that_a_person_types_are_kept_nowhere(tmp_path, server):
    key = "sk-planted-0123456789"
    chunks = ["Your header is: Author", "ization: Bearer sk-plan", "ted-0123456789."]
    server.respond = lambda request: Reply(chunks)
    settings = {"chat_model": "openai:m", "chat_base_url": server.url, "chat_api_key": key, "model_retries": 0}
    with Workbench.open(tmp_path / "w", **CORE, **settings) as wb:
        run = wb.ask(f"Repeat {key}, please.", kb="general", session="s")
        wb._work.loop.settle(10)
        told = json.dumps([run.to_dict(), run._store.contents(run.run_id), wb.messages("s")], ensure_ascii=False)
        assert key not in told and "[secret]" in run.message and server.requests
    assert not holders(tmp_path / "w", key)


@pytest.mark.parametrize("turns", CASES["conversations"], ids=lambda turns: turns[-2])
@pytest.mark.few(12)
def test_memory_holds_what_was_asked_for_and_says_what_it_does_not_hold(bench, turns):
    wb = bench()
    for message, expected in zip(turns[::2], turns[1::2], strict=True):
        answer = wb.ask(message, kb="film", session="s").answer
        assert (expected[1:] not in answer) if expected.startswith("!") else (expected in answer), (message, answer)


def test_what_an_answer_said_is_quoted_and_never_the_question(bench):
    wb = bench()
    held = find_store(wb)
    for asked, answer, again in (
        ("《喜宴》是谁导演的？", "《喜宴》由李安执导 [1]。它拍于1993年。", "刚才说的那个导演是谁？"),
        ("Who directed Paper Boats?", "R. Lund made it [1].", "Who was the director you mentioned earlier?"),
    ):
        conversation = held.get_or_create_conversation_id("default", again)
        message = held.append_message(conversation, "user", asked)
        held.append_message(conversation, "assistant", answer, answers=message)
        run = wb.ask(again, kb="film", session=again)
        assert answer.split(" [1]")[0] in run.answer and asked not in run.answer and not run.records


@pytest.mark.parametrize("message", [message for (message,) in CASES["ordinary"]])
def test_an_ordinary_message_is_searched_as_it_is(message):
    assert by_rules(message) == {"noted": [], "recalls": None, "to_search": message}


def test_what_a_message_states_and_what_remains_to_be_answered():
    for message, stated, rest in CASES["stated"]:
        notes, left = read_preferences(message)
        assert ("; ".join(note["about"] for note in notes), left) == (stated, rest)
    assert read_preferences("I like tea. " * 300) == ([], "I like tea. " * 300)


@pytest.mark.parametrize(
    ("before", "asked", "after", "old"),
    [
        ("I don't like horror films.", "Do I like horror?", "Actually, I like horror films now.", "don't like horror"),
        ("我不喜欢恐怖片。", "我喜欢恐怖片吗？", "我现在喜欢恐怖片了。", "不喜欢恐怖片"),
    ],
)
@pytest.mark.few(2)
def test_what_does_not_hold_any_more_is_in_no_prompt_and_in_no_newer_summary(bench, before, asked, after, old):
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


Make = Callable[..., Workbench]


def told(wb: Workbench, *messages: str, session: str = "s", user: str = "default", kb: str = "film") -> list[Any]:
    return [wb.ask(message, kb=kb, session=session, user=user) for message in messages]


def contents(known: Any) -> list[str]:
    return [row["content"] for row in known.memories]


def test_what_is_known_is_seen_with_its_turn_author_and_time(bench: Make) -> None:
    wb = bench(memory_core=True)
    told(wb, "How is the weather?", "I don't like horror films.", "Actually, I like horror films now.")
    known = wb.memory.view()
    assert known.core["human"]["preferences"] == contents(known) and len(known.memories) == 1
    [now] = known.memories
    assert (now["turn"], now["session"], now["author"]) == (3, "s", "rules")
    assert now["said"] == "Actually, I like horror films now." and now["created_at"].startswith("20")
    assert [row["replaced_by"] for row in wb.memory.view(ended=True).memories] == [now["id"], ""]
    assert list(known.to_frame()["content"]) == contents(known)
    assert "horror" in str(known) and "turn 3 of conversation “How is the weather?”" in known._repr_html_()
    assert wb.memory.view("nobody").memories == [] and wb.memory.view(session="other").memories == []


def test_a_memory_is_edited_ended_and_each_is_undone(bench: Make) -> None:
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


def test_the_tools_are_methods_that_an_agent_can_be_given(bench: Make) -> None:
    memory = bench().memory
    update = partial(memory.core_memory_update, user="ann", author="agent")
    update("human", "不喜欢恐怖片")
    update("preferences", "喜欢诺兰")
    core = update("persona", "我是电影推荐专家。")
    assert core["human"]["preferences"] == ["不喜欢恐怖片", "喜欢诺兰"] and core["persona"] == "我是电影推荐专家。"
    assert update("human", "喜欢恐怖片")["human"]["preferences"] == ["喜欢诺兰", "喜欢恐怖片"], "it is replaced"
    memory.core_memory_update("name", "Ann", user="eve")
    assert memory.view("eve").core["human"]["name"] == "Ann"
    kept = memory.archival_memory_insert("The kiln in the east is the hotter one.", user="ann", author="agent")
    [found, *_] = memory.archival_memory_search("which kiln is hotter?", user="ann")
    assert found["id"] == kept and memory.view().memories == []
    assert {row["author"] for row in memory.view("ann").memories} == {"agent"}
    with pytest.raises(WorkbenchError, match="Known: persona, human"):
        update("mood", "x")


def test_memories_and_exchanges_are_searched_for_their_person_alone(bench: Make) -> None:
    wb = bench(memory_core=True)
    told(wb, "Remember that my cat is called Biscuit.", "How is the weather?", kb="general")
    told(wb, "Remember that my cat is called Pepper.", user="bob", kb="general")
    found = wb.memory.search("the name of my cat")
    assert {"facts", "episode"} <= {row["part"] for row in found} and found[0]["similarity"] >= found[-1]["similarity"]
    assert "Biscuit" in str(found) and "Pepper" not in str(found)
    assert not any(row["part"] == "episode" for row in wb.memory.search("the name of my cat", session="other"))
    assert not wb.memory.search("zymurgy quixotic") and len(wb.memory.search("cat", limit=1)) == 1
    assert list(found.to_frame()["id"]) == [row["id"] for row in found]


def test_a_prompt_is_mapped_part_by_part_with_what_was_left_out(bench: Make, server: ScriptedServer) -> None:
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


def test_hostile_text_is_text_wherever_memory_shows_itself(bench: Make) -> None:
    wb = bench(memory_core=True)
    for section in ("name", "facts", "archival"):
        wb.memory.core_memory_update(section, ALL) if section != "archival" else wb.memory.archival_memory_insert(ALL)
    run = wb.ask(ALL, kb="film", session=f"s {NAME}")
    for one in (wb.memory.view(ended=True), wb.memory.search(ALL), run.prompt_parts()):
        html = one._repr_html_()
        assert "<script" not in html and "<img" not in html and "\x1b" not in html + str(one)


def test_every_command_says_what_it_did(bench: Make, tmp_path: Any) -> None:
    wb = bench(memory_core=True)
    told(wb, "I don't like horror films.", "Recommend some films.")
    wb.close()
    shell = partial(workbench, tmp_path / "w", "memory")

    def command(*words: str) -> Any:
        done = shell(*words, "--json")
        assert done.returncode == 0, done.stderr
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
    assert "Ann" in shell("show").stdout and "{" not in shell("show").stdout
    wrong = shell("edit", "nothing", "x")
    assert wrong.returncode == 1 and "is no memory of 'default' that holds" in wrong.stderr


def test_what_is_pressed_on_the_bench_changes_what_is_remembered(bench: Make) -> None:
    wb = bench(memory_core=True)
    *_, run = told(wb, "I don't like horror films.", "Recommend some films.")
    [noted] = wb.memory.view().memories
    page = wb.bench(run, session="s")
    page.working.memory.region.press("invalidate", noted["id"])
    assert not wb.memory.view().memories
    page.working.memory.region.press("undo")
    assert 'data-field value="I don&#x27;t like horror films"' in page.working.memory.region.html
    page.working.memory.region.press("correct: ", noted["id"])
    page.working.memory.region.press("correct:I don't like comedy films.", noted["id"])
    assert [memory["content"] for memory in wb.memory.view().memories] == ["I don't like comedy films."]
