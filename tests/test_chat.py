"""Chat models over real HTTP on loopback: what is streamed, and how each failure reads."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from tests.servers import Reply, scripted_server
from workbench.errors import ModelError, SettingsError
from workbench.models.chat import open_chat_model, stream_text
from workbench.settings import Settings

KEY = "sk-very-secret-1234567890"


def model_at(url: str, **more):
    return open_chat_model(Settings(chat_model="openai:scripted", chat_base_url=url, chat_api_key=KEY, **more))


async def chunks_of(model) -> list[str]:
    return [chunk async for chunk in stream_text(model, [HumanMessage("hello")])]


def test_no_name_means_the_offline_writer():
    assert open_chat_model(Settings()) is None


@pytest.mark.parametrize("name", ["openai", "openai:", "anthropic:claude", "gpt-4"])
def test_an_unknown_model_lists_the_known(name):
    with pytest.raises(SettingsError, match=r"WORKBENCH_CHAT_MODEL is .*'openai:NAME'"):
        open_chat_model(Settings(chat_model=name, chat_api_key=KEY))


def test_openai_itself_wants_a_key_and_a_server_of_ones_own_does_not():
    with pytest.raises(SettingsError, match="WORKBENCH_CHAT_API_KEY"):
        open_chat_model(Settings(chat_model="openai:gpt"))
    assert open_chat_model(Settings(chat_model="openai:gpt", chat_base_url="http://127.0.0.1:9/v1")) is not None


def test_the_key_is_in_no_form_of_the_model():
    model = model_at("http://127.0.0.1:9/v1")
    assert KEY not in repr(model) + str(model) + str(model.model_dump())


async def test_an_answer_comes_in_the_models_own_chunks():
    with scripted_server(Reply(["《喜宴》", "于 1993 ", "年上映 [1]。"])) as server:
        assert await chunks_of(model_at(server.url)) == ["《喜宴》", "于 1993 ", "年上映 [1]。"]
    assert server.requests[0]["model"] == "scripted"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "mend"),
    [
        (400, "WORKBENCH_MERGE_MAX_CHARACTERS"),
        (401, "WORKBENCH_CHAT_API_KEY"),
        (403, "May this key"),
        (404, "WORKBENCH_CHAT_MODEL"),
    ],
)
async def test_a_refusal_names_the_server_the_status_and_the_mend(status, mend):
    reply = Reply(status=status, message=f"no, {KEY} is refused")
    with scripted_server(reply) as server, pytest.raises(ModelError) as raised:
        await chunks_of(model_at(server.url))
    said = str(raised.value)
    assert server.url in said and str(status) in said and mend in said
    assert KEY not in said and raised.value.__suppress_context__


async def test_a_server_that_is_not_there_is_named():
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9/.*WORKBENCH_CHAT_BASE_URL"):
        await chunks_of(model_at("http://127.0.0.1:9/v1"))


async def test_a_slow_server_names_the_timeout():
    with scripted_server(Reply(["late"], delay_s=1.0)) as server, pytest.raises(ModelError, match="CHAT_TIMEOUT_S"):
        await chunks_of(model_at(server.url, chat_timeout_s=0.1))


async def test_an_answer_that_breaks_off_is_an_error_after_its_first_chunks():
    seen = []
    reply = Reply(["The ", "Wedding ", "Banquet"], break_after=2)
    with scripted_server(reply) as server, pytest.raises(ModelError, match="broke off"):
        async for chunk in stream_text(model_at(server.url), [HumanMessage("hello")]):
            seen.append(chunk)
    assert seen == ["The ", "Wedding "]
