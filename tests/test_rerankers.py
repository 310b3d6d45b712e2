"""Rerankers behind one interface: by name, per call and by setting; never another one in silence."""

from __future__ import annotations

import asyncio
import json

import pytest

from workbench.errors import MissingExtra, ModelError
from workbench.models import rerank
from workbench.parts.fusion.graph import build_fusion
from workbench.session import Workbench

CORE = {"embedding_model": "hashing", "model_backoff_s": 0.01}
TEXTS = ["Tea is grown in the hills.", "Bees make honey all summer.", "Stones are older than tea."]


def opened(folder, **settings):
    wb = Workbench.open(folder / "w", **{**CORE, **settings})
    path = folder / "notes.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{n}", "text": t}) + "\n" for n, t in enumerate(TEXTS)))
    wb.add_knowledge("notes", [path])
    return wb


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
    with opened(tmp_path, rerank_model="some/encoder") as wb:
        assert pieces(wb)["d1#0"] == 1.0 and pieces(wb, rerank_model="another/one")["d1#0"] == 1.0
        pieces(wb, rerank_model="none")
        assert asked == ["some/encoder", "another/one"]
        assert wb.knowledge.get("notes").inspect()["reranker"] == "some/encoder"
        assert wb.knowledge.get("notes").rerank("honey?", TEXTS) is None, "judging sentences asks the base's own"
        wb.register("reranker", lambda query, texts: [float("Stones" in t) for t in texts])
        assert pieces(wb)["d2#0"] == 1.0 and asked == ["some/encoder", "another/one"]


def test_a_cross_encoder_without_its_library_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(rerank, "find_spec", lambda name: None)
    with opened(tmp_path) as wb, pytest.raises(MissingExtra, match=r"pip install 'workbench\[cross-encoder\]'$"):
        wb.knowledge.get("notes").rerank("honey?", TEXTS, "cross-encoder/ms-marco-MiniLM-L-6-v2")


def test_a_real_cross_encoder_from_a_folder_and_one_that_is_not_there(tmp_path):
    pytest.importorskip("sentence_transformers", reason="the extra cross-encoder is not installed")
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    letters = sorted({word.strip(".?").lower() for text in [*TEXTS, "who makes"] for word in text.split()} | {".", "?"})
    folder = tmp_path / "tiny"
    folder.mkdir()
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]))
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(folder)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(letters) + 5, num_labels=1, initializer_range=1.0, **small)
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    scores = rerank.cross_encoded(str(folder), "Who makes honey?", TEXTS)
    assert len(set(scores)) == 3 and scores == rerank.cross_encoded(str(folder), "Who makes honey?", TEXTS)
    assert rerank.cross_encoded(str(folder), "Who makes honey?", TEXTS[::-1]) == pytest.approx(scores[::-1], abs=1e-4)
    assert rerank.cross_encoded(str(folder), "x", []) == []
    with pytest.raises(ModelError, match=r"'no/such-model' is neither a folder .*hf download no/such-model"):
        rerank.cross_encoded("no/such-model", "x", TEXTS)
