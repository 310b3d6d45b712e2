"""The extractor: a chat model reads passages as they are indexed, a few per call, several calls at once.

Only names that a passage has are taken, and only relations between two of them, or between one and the title.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

from pydantic import Field

from workbench.graphs.roles import ModelForm, Reply, ask_model
from workbench.knowledge.adding.extraction import Extraction, Titled
from workbench.knowledge.names.entities import LONGEST_NAME, Name, Stated
from workbench.ports import Context
from workbench.records.prompts import fenced
from workbench.records.spending import price, spent
from workbench.records.tape import Effect, NoTape, estimated_tokens
from workbench.state import Json
from workbench.text import detect_language, fold, sentences

_PASSAGES = 4
"""Of one call."""
_UNTYPED = "Other"


class ExtractedEntity(ModelForm):
    """Something with a name."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    type: Literal["Person", "Place", "Organisation", "Work", "Other"]


class Fact(ModelForm):
    """A relation between two names."""

    subject: str = Field(min_length=1, max_length=LONGEST_NAME)
    relation: str = Field(min_length=1, max_length=40)
    object: str = Field(min_length=1, max_length=LONGEST_NAME)


class ReadPassage(ModelForm):
    """The names and statements of one passage."""

    passage: int = Field(ge=1, le=_PASSAGES)
    entities: list[ExtractedEntity] = Field(max_length=40)
    relations: list[Fact] = Field(max_length=40)


class ReadPassages(ModelForm):
    """The form of the extractor."""

    passages: list[ReadPassage] = Field(max_length=_PASSAGES)


class _Calls(NoTape):
    """Keeps the calls while texts are indexed, to add up what they took."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = list[Effect]()

    def keep(self, effect: Effect) -> None:
        """Keep a call."""
        self._kept.append(effect)

    def calls(self) -> list[Effect]:
        """Return all calls."""
        return self._kept


Batch = Sequence[tuple[int, Titled]]
"""The passages of one call, each with its place."""


class ModelExtractor:
    """Reads with the extractor's model; one for each ``add``, which it counts.

    Args:
        context: the ports, with a model for the extractor.
        submit: begins work on the loop to which the model's connections belong.
    """

    def __init__(self, context: Context, submit: Callable[[Coroutine[Any, Any, Any]], Future[Any]]):
        settings = context.settings
        self._budget, self._submit = settings.index_token_budget, submit
        within = settings.model_copy(update={"token_budget": self._budget, "money_budget": 0.0})
        self._context = replace(context, settings=within, tape=_Calls())
        self._model = settings.role_model("extractor")
        labels = [context.prompts.for_language("extractor", language).label for language in ("en", "zh")]
        self.recipe = f"{self._model} {' '.join(labels)}"
        self._estimated, self._note = 0, ""

    def refusal(self, passages: Iterable[Titled]) -> str:
        """Return the forecast of what reading these takes, where it exceeds the budget, else "".

        Each text is read once, as much is written, and each call has its instructions.
        """
        lengths = [estimated_tokens(passage.title + passage.text) for passage in passages]
        calls, texts = math.ceil(len(lengths) / _PASSAGES), sum(lengths)
        read = texts + calls * self._instructions("en")
        if read + texts <= self._budget:
            return ""
        money = price(self._context.prices, self._model, {"input": read, "output": texts, "cached": 0})
        cost = f", {money:.2f} by the prices" if money is not None else ""
        return (
            f"{len(lengths):,} passages for {self._model}: about {read + texts:,} tokens{cost}. "
            f"WORKBENCH_INDEX_TOKEN_BUDGET is {self._budget:,}: raise it to ask"
        )

    def _instructions(self, language: str) -> int:
        prompt = self._context.prompts.for_language("extractor", language)
        return estimated_tokens(prompt.messages({"passages": ""}))

    def read(self, passages: Sequence[Titled]) -> dict[int, Extraction | None]:
        """Return the names and statements of each passage, by its place; see ``extraction.Extractor``.

        Those of calls that were not made, or not answered, are left out.
        """
        work = self._submit(self._read(list(_batches(passages))))
        try:
            extractions: dict[int, Extraction | None] = work.result()
        except BaseException:  # an interrupt: nothing more is asked
            work.cancel()
            raise
        return extractions

    async def _read(self, batches: Sequence[Batch]) -> dict[int, Extraction | None]:
        """Read batches, so many at once as there may be calls, while the budget lasts and the server answers."""
        extractions: dict[int, Extraction | None] = {}
        at_once = self._context.settings.max_concurrency
        for start in range(0, len(batches), at_once):
            wave = batches[start : start + at_once]
            if self._note or not self._allowed(wave):
                break
            replies = await asyncio.gather(*map(self._ask, wave))
            for batch, reply in zip(wave, replies, strict=True):
                by_number = {passage.passage: passage for passage in reply.form.passages} if reply.form else {}
                if reply.replied:
                    extractions |= {at: _grounded(text, by_number.get(n)) for n, (at, text) in enumerate(batch, 1)}
            if not any(reply.replied for reply in replies):  # its server is away
                self._note = replies[-1].refused[-1]
        return extractions

    async def _ask(self, batch: Batch) -> Reply:
        slots = {"passages": fenced(_texts(batch))}
        return await ask_model(
            self._context, "extractor", ReadPassages, slots, question=batch[0][1].text, prompt="extractor", quiet=True
        )

    def _allowed(self, wave: Sequence[Batch]) -> bool:
        """Check whether these calls are within the budget, as much dearer than estimated as those so far."""
        used = spent(self._context.tape.calls()).tokens
        estimate = sum(self._instructions("en") + 2 * estimated_tokens(_texts(batch)) for batch in wave)
        dearer = max(1.0, used / self._estimated) if self._estimated else 1.0
        if used + estimate * dearer > self._budget:
            self._note = f"{used:,} of {self._budget:,} tokens are spent (WORKBENCH_INDEX_TOKEN_BUDGET)"
        self._estimated += estimate
        return not self._note

    def spent(self) -> Json:
        """Return tokens and money so far, and why no more calls are made."""
        total = spent(self._context.tape.calls())
        money = None if total.unpriced else total.money
        return {"name": self._model, "tokens": total.tokens, "money": money, "note": self._note}


def _texts(batch: Batch) -> str:
    return "\n\n".join(f"[{n}] {passage.title}\n{passage.text}" for n, (_, passage) in enumerate(batch, 1))


def _batches(passages: Sequence[Titled]) -> Iterator[Batch]:
    """Yield the passages of each call: few, and of one language."""
    for _, own in groupby(enumerate(passages), key=lambda entry: detect_language(entry[1].text)):
        remaining = list(own)
        for start in range(0, len(remaining), _PASSAGES):
            yield remaining[start : start + _PASSAGES]


def _grounded(passage: Titled, read_passage: ReadPassage | None) -> Extraction | None:
    """Return what the passage confirms of a reply; None where the reply has nothing on it."""
    if read_passage is None:
        return None
    parts = [(fold(sentence), sentence) for sentence in sentences(passage.text)]
    title = fold(passage.title)

    def find_sentence(*names: str) -> str:
        wanted = [fold(name) for name in names if fold(name) != title]
        return next((sentence for folded, sentence in parts if all(name in folded for name in wanted)), "")

    names = {}
    for entity in read_passage.entities:
        if stands := find_sentence(entity.name) if fold(entity.name) != title else "":
            names[entity.name] = Name(entity.name, "Name" if entity.type == _UNTYPED else entity.type, stands)
    stated = []
    for fact in read_passage.relations:
        ends = (fact.subject.strip(), fact.object.strip())
        apart = fold(ends[0]) != fold(ends[1])
        # the sentence that says both, else the one of the object: who is meant by "she" the model has read
        stands = find_sentence(*ends) or (find_sentence(ends[0]) and find_sentence(ends[1]))
        if apart and stands and (kind := _kind(fact.relation)):
            stated.append(Stated(ends[0], kind, ends[1], stands))
    return Extraction(list(names.values()), stated)


def _kind(relation: str) -> str:
    """Return a relation as the graph names it; "" for one that says nothing.

    >>> _kind("was born in"), _kind("出生于"), _kind("mentions")
    ('was_born_in', '出生于', '')
    """
    kind = re.sub(r"\W+", "_", fold(relation)).strip("_")
    return "" if kind == "mentions" else kind
