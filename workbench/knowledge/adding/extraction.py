"""Names and relations that a model reads while texts are indexed.

Where a model has read a passage, its names replace those of the rules, and its relations join the graph. Each answer is
stored by content at once, so that an ``add`` that was stopped pays for nothing twice, and a later one without a model
uses what is there. Nothing is asked that would exceed ``WORKBENCH_INDEX_TOKEN_BUDGET``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.entities import Name, Stated
from workbench.state import Json

_BATCH = 64
"""Passages that are read before they are stored."""


class Titled(NamedTuple):
    """A passage as a model reads it, with the digest of its text."""

    title: str
    text: str
    digest: str

    def key(self, recipe: str) -> str:
        """Return the key under which an answer by this recipe is stored."""
        return hashlib.sha256("\0".join((recipe, self.title, self.text)).encode()).hexdigest()[:32]


class Extraction(NamedTuple):
    """The names and relations of a passage."""

    names: list[Name]
    relations: list[Stated]


class Extractor(Protocol):
    """A model that reads what is indexed.

    Attributes:
        recipe: the model and the versions of its prompts: what is kept is kept under it.
    """

    recipe: str

    def refusal(self, passages: Iterable[Titled]) -> str:
        """Return the forecast of what reading these takes, where it exceeds the budget, else ""."""

    def read(self, passages: Sequence[Titled]) -> dict[int, Extraction | None]:
        """Return what each names and states, by its place; None where the model said nothing that can be used.

        A passage that it was not asked about, since the budget is spent or its server is away, is not there.
        """

    def spent(self) -> Json:
        """Tokens and money of this ``add``, and why the model is not asked any more, if it is not."""


class Modelled:
    """The answers of a model for one ``add``, new ones and those of before.

    Args:
        index: stores the answers.
        extractor: None where no model may be asked; stored answers are used all the same.
        forget: use no stored answer either: rules do everything.
    """

    def __init__(self, index: Index, extractor: Extractor | None, forget: bool = False):
        self._index, self.extractor = index, extractor
        self._before = "" if forget else index.meta("extractor")
        self.recipe = extractor.recipe if extractor else self._before
        self._read = self._unusable = self._left = 0
        self._note = ""

    @property
    def complete(self) -> bool:
        """Check whether this recipe has read everything in the base, as far as a model may be asked."""
        unread = self.recipe != self._before or self._index.meta("extractor_left", "0") != "0"
        return not (self.extractor and unread)

    def limit(self, passages: Iterable[Titled]) -> None:
        """Ask no model in this ``add`` where reading these would exceed the budget."""
        if self.extractor and (refusal := self.extractor.refusal(self._missing(passages))):
            self.extractor, self.recipe, self._note = None, self._before, refusal

    def _missing(self, passages: Iterable[Titled]) -> Iterator[Titled]:
        remaining = iter(passages)
        while batch := {passage.key(self.recipe): passage for passage in islice(remaining, _BATCH)}:
            stored = self._answers(batch)
            yield from (passage for key, passage in batch.items() if key not in stored)

    def _answers(self, keys: Iterable[str]) -> Json:
        rows = self._index.rows_in("SELECT key, value FROM said WHERE key IN ({})", list(keys))
        return {key: json.loads(value) for key, value in rows}

    def _store(self, rows: Iterable[tuple[str, str, Any]]) -> None:
        with self._index.transaction() as connection:
            texts = ((key, digest, json.dumps(answer, ensure_ascii=False)) for key, digest, answer in rows)
            connection.executemany("INSERT OR IGNORE INTO said VALUES (?, ?, ?)", texts)

    def ensure(self, passages: Sequence[Titled], on_done: Callable[[int, int], None]) -> None:
        """Let the model read the passages that it has not read; without one, count them."""
        missing = list(self._missing(passages)) if self.recipe else []
        if self.extractor is None:
            self._left += len(missing)
            return
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            answers = self.extractor.read(batch)
            self._store((batch[n].key(self.recipe), batch[n].digest, answer) for n, answer in answers.items())
            unusable = sum(answer is None for answer in answers.values())
            self._unusable += unusable
            self._read += len(answers) - unusable
            self._left += len(batch) - len(answers)
            on_done(start + len(batch), len(missing))

    def extractions(self, passages: Sequence[Titled]) -> dict[Titled, Extraction]:
        """Return what a model has read in these."""
        keys = {passage: passage.key(self.recipe) for passage in passages} if self.recipe else {}
        answers = self._answers(keys.values())
        return {
            passage: Extraction([Name(*name) for name in names], [Stated(*stated) for stated in relations])
            for passage, key in keys.items()
            if answers.get(key)
            for names, relations in [answers[key]]
        }

    def finish(self) -> None:
        """Store the recipe of the graph's answers, and how many passages it has not read."""
        before = 0 if self.extractor or not self.recipe else int(self._index.meta("extractor_left", "0"))
        self._index.set_meta("extractor", self.recipe)
        self._index.set_meta("extractor_left", str(before + self._left))

    def report(self) -> Json:
        """Return what was asked in this ``add``; empty where nothing was."""
        spent = self.extractor.spent() if self.extractor else {}
        if self._left and not self.extractor and not self._note:
            self._note = "no model may be asked (WORKBENCH_INDEX_TOKEN_BUDGET), and one has read the rest"
        note = self._note or spent.get("note", "")
        if not spent and not note:
            return {}
        by_rules = self._unusable + self._left
        return {"read": self._read, "by_rules": by_rules, **spent, "note": note}
