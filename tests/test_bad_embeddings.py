"""Embedding servers that misbehave, while indexing and while asking: nothing wrong is kept, and all goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.servers import Reply, ScriptedServer, scripted_server
from tests.shelves import fill
from tests.test_bad_models import KEY, QUESTION, TEXTS, no_key_in
from workbench.errors import ModelError, SettingsError
from workbench.models.embeddings import text_model
from workbench.session import Workbench
from workbench.settings import Settings


def embed(text: str) -> list[float]:
    """Four numbers that know a few words."""
    return [1.0, *(float(word in text) for word in ("Banquet", "Hands", "Memento"))]


@pytest.fixture
def server():
    with scripted_server(Reply()) as running:
        running.embed = embed
        yield running


def bench(place: Path, url: str, **settings) -> Workbench:
    fast = {"model_backoff_s": 0.01, "chat_timeout_s": 5, "max_iterations": 1}
    names = {"embedding_model": "openai:vectors", "rerank_model": "none"}
    return Workbench.open(place, embedding_base_url=url, embedding_api_key=KEY, **{**names, **fast, **settings})


VECTORS = {
    "fewer": (lambda text: None if "Hands" in text else embed(text), "2 vectors for 3 texts"),
    "none": (lambda text: None, "No embedding data"),
    "not a number": (lambda text: [1.0, math.nan, 0.0, 0.0], "not finite"),
    "infinite": (lambda text: [1.0, math.inf, 0.0, 0.0], "not finite"),
    "zeros": (lambda text: [0.0] * 4, "nothing but zeros"),
    "different lengths": (lambda text: embed(text)[: 3 if "Hands" in text else 4], "different lengths"),
    "empty": (lambda text: [], "empty vectors"),
    "words": (lambda text: ["one", "two"], "not numbers"),
    "nulls": (lambda text: [None, 1.0], "numbers"),
}
REPLIES = {
    "wrong key": (Reply(status=401, message=f"no: {KEY}"), "WORKBENCH_EMBEDDING_API_KEY"),
    "no such model": (Reply(status=404, message="no model"), "WORKBENCH_EMBEDDING_MODEL"),
    "500": (Reply(status=500, message=KEY), "500"),
    "429": (Reply(status=429, message="slow down", headers={"Retry-After": "3600"}), "429"),
    "hangs": (Reply(hang=True), "WORKBENCH_CHAT_TIMEOUT_S"),
    "a page": (Reply(body=b"<html>", content_type="text/html"), "often ends in /v1"),
    "other JSON": (Reply(body=b'{"hello": 1}'), "often ends in /v1"),
    "no JSON": (Reply(body=b"{hello"), "often ends in /v1"),
    "a list": (Reply(body=b"[1]"), "often ends in /v1"),
    "no UTF-8": (Reply(body=b'{"data": "\xff\xfe"}'), "failed"),
}


OF_MANY = ("fewer", "different lengths")
"""What cannot be wrong of a single vector."""

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the client, about the words


def spoil(server: ScriptedServer, name: str) -> str:
    """Let the server misbehave; the words that a person must read."""
    if name in VECTORS:
        server.embed, words = VECTORS[name]
        return words
    reply, words = REPLIES[name]
    server.answer(reply)
    return words


def fix(server: ScriptedServer) -> None:
    server.embed = embed
    server.answer(Reply())


@pytest.mark.parametrize("name", [*VECTORS, *REPLIES])
@pytest.mark.few(6)
def test_indexing_with_a_bad_server_keeps_nothing_wrong(name, tmp_path, server, capfd):
    words = spoil(server, name)
    with bench(tmp_path, server.url, chat_timeout_s=0.5) as wb:
        with pytest.raises(ModelError) as raised:
            fill(wb, TEXTS)
        said = str(raised.value)
        assert words in said and server.url in said and KEY not in said and "\n" not in said
        assert raised.value.__suppress_context__, "a traceback shows nothing of what the library raised"
        fix(server)
    with bench(tmp_path, server.url) as wb:
        fill(wb, TEXTS)
        run = wb.ask(QUESTION, kb="notes")
        assert run.status == "done" and "Ang Lee" in run.answer
        assert {r["status"] for r in run.records} <= {"success", "skipped"}
    no_key_in(tmp_path)
    out, err = capfd.readouterr()
    assert KEY not in out + err


WHILE_ASKING = ("500", "hangs", "zeros")  # the others spoil a question as they spoil an index
FULL = pytest.mark.full


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in WHILE_ASKING else FULL)
        for name in [*VECTORS, *REPLIES]
        if name not in OF_MANY
    ],
)
def test_asking_with_a_bad_server_shows_it_in_the_records(name, tmp_path, server):
    with bench(tmp_path, server.url) as wb:
        fill(wb, TEXTS)
    spoil(server, name)
    with bench(tmp_path, server.url, chat_timeout_s=0.5) as wb:
        run = wb.ask(QUESTION, kb="notes")
        assert run.status == "done"
        failed = [r for r in run.records if r["status"] == "failed"]
        assert failed and all("embedding model" in r["error"] for r in failed)
        assert KEY not in json.dumps(run.to_dict())
        fix(server)
        assert "Ang Lee" in wb.ask(QUESTION, kb="notes", session="b").answer
    no_key_in(tmp_path)


def test_another_model_behind_the_same_name(tmp_path, server):
    with bench(tmp_path, server.url) as wb:
        fill(wb, TEXTS)
        server.embed = lambda text: [1.0, 0.5]
        (wb.path / "notes" / "new.md").write_text("# New\n\nEat Drink Man Woman is a film by Ang Lee.\n")
        (failed,) = {r["error"] for r in wb.ask(QUESTION, kb="notes").records if r["status"] == "failed"}
        assert "2 numbers, and the index has 4" in failed and "kb rebuild" in failed
        server.embed = embed
        fill(wb, TEXTS)
        assert "Ang Lee" in wb.ask(QUESTION, kb="notes", session="b").answer


def test_vectors_of_two_lengths_in_two_batches(tmp_path, server):
    notes = tmp_path / "many"
    notes.mkdir()
    for n in range(200):
        (notes / f"{n:03}.md").write_text(f"# Note {n:02}\n\nThis is note {n}.\n")
    server.embed = lambda text: embed(text)[: 3 if len(server.requests) > 1 else 4]
    with bench(tmp_path / "w", server.url) as wb, pytest.raises(ModelError, match="3 and 4 numbers"):
        wb.add_knowledge("many", [notes])
    server.embed = embed
    with bench(tmp_path / "w", server.url) as wb:
        wb.add_knowledge("many", [notes])
        assert wb.knowledge.get("many").about()["counts"]["documents"] == 200


def test_openai_itself_wants_a_key_and_no_key_has_a_dash_of_print():
    with pytest.raises(SettingsError, match="WORKBENCH_EMBEDDING_API_KEY"):
        text_model(Settings(embedding_model="openai:x")).array(["a"])
    with pytest.raises(SettingsError, match="copy it again") as raised:
        text_model(Settings(embedding_model="openai:x", embedding_api_key="sk–123")).array(["a"])
    assert "123" not in str(raised.value)
