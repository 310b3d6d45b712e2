"""The extractor: a chat model reads passages as they are indexed, a few per call, several calls at once.

Only names that a passage has are taken, and only relations between two of them, or between one and the title.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from workbench.graphs.roles import ModelForm, Reply, ask_model
from workbench.knowledge.adding.extraction import Extraction, Forecast, Titled
from workbench.knowledge.names.entities import LONGEST_NAME, Name, Stated
from workbench.ports import Context
from workbench.records.prompts import fenced
from workbench.records.spending import Spent, price, spent
from workbench.records.tape import Effect, NoTape, estimated_tokens
from workbench.state import Json
from workbench.text import detect_language, fold, sentences

_PASSAGES, _CHARACTERS = 4, 6_000
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


class _Counted(NoTape):
    """Keeps of the calls what they took, and not what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.total = Spent()

    def keep(self, effect: Effect) -> None:
        """Add it up."""
        sums: list[Any] = [round(a + b, 9) for a, b in zip(self.total, spent([effect]), strict=True)]
        self.total = Spent(*sums)

    def calls(self) -> list[Effect]:
        """Return all calls as one."""
        usage = {"input": self.total.input, "output": self.total.output, "cached": self.total.cached}
        return [Effect("model", "extractor", {}, {"usage": usage, "money": self.total.money})]


class ModelExtractor:
    """Reads with the extractor's model; one for each ``add``, which it counts.

    Args:
        context: the ports, with a model for the extractor.
        submit: begins work on the loop to which the model's connections belong.
    """

    def __init__(self, context: Context, submit: Callable[[Coroutine[Any, Any, Any]], Future[Any]]):
        settings = context.settings
        self._tape, self._budget, self._submit = _Counted(), settings.index_token_budget, submit
        within = settings.model_copy(update={"token_budget": self._budget, "money_budget": 0.0})
        self._context = replace(context, settings=within, tape=self._tape)
        self.model = settings.role_model("extractor")
        labels = [context.prompts.for_language("extractor", language).label for language in ("en", "zh")]
        self.recipe = f"{self.model} {' '.join(labels)}"
        self._failed, self._begun, self._dearer, self._why = 0, 0, 1.0, ""

    def forecast(self, passages: Iterable[Titled]) -> Forecast:
        """Estimate tokens and money: each text is read once, as much is written, and each call has its instructions."""
        count = texts = 0
        for passage in passages:
            count, texts = count + 1, texts + estimated_tokens(passage.title + passage.text)
        instructions = estimated_tokens(self._prompt("en", {"passages": ""}))
        read = texts + -(-count // _PASSAGES) * instructions
        money = price(self._context.prices, self.model, {"input": read, "output": texts, "cached": 0})
        return Forecast(self.model, count, read + texts, money, self._budget)

    def _prompt(self, language: str, slots: Mapping[str, str]) -> Any:
        return self._context.prompts.for_language("extractor", language).messages(slots)

    def read(self, passages: Sequence[Titled]) -> dict[int, Extraction | None]:
        """Return the names and statements of each passage, by its place; see ``extraction.Extractor``.

        Those of calls that were not made, or not answered, are left out.
        """
        batches = list(_batches(passages))

        async def every() -> list[Reply | None]:
            free = asyncio.Semaphore(self._context.settings.max_concurrency)
            return list(await asyncio.gather(*(self._read([passages[at] for at in batch], free) for batch in batches)))

        if self._why:
            return {}
        work = self._submit(every())
        try:
            replies = work.result()
        except BaseException:  # an interrupt: nothing more is asked
            work.cancel()
            raise
        extractions: dict[int, Extraction | None] = {}
        for places, reply in zip(batches, replies, strict=True):
            if reply is not None and reply.replied:
                by_number = {passage.passage: passage for passage in reply.form.passages} if reply.form else {}
                extractions |= {at: _grounded(passages[at], by_number.get(n)) for n, at in enumerate(places, 1)}
        return extractions

    async def _read(self, batch: Sequence[Titled], free: asyncio.Semaphore) -> Reply | None:
        """Let the model read one batch; None where the budget is spent."""
        texts = "\n\n".join(f"[{n}] {passage.title}\n{passage.text}" for n, passage in enumerate(batch, 1))
        slots = {"passages": fenced(texts)}
        tokens = estimated_tokens(self._prompt(detect_language(texts), slots)) + estimated_tokens(texts)
        async with free:
            if not self._allowed(tokens):
                return None
            before, self._begun = self._tape.total.tokens, self._begun + tokens
            reply = await ask_model(
                self._context, "extractor", ReadPassages, slots, question=texts, prompt="extractor", quiet=True
            )
            self._begun -= tokens
            self._dearer = max(self._dearer, (self._tape.total.tokens - before) / tokens)
        self._failed = 0 if reply.replied else self._failed + 1
        # Calls that fail one after the other; then the server is taken to be away.
        if self._failed >= 3:
            self._why = reply.refused[-1]
        return reply

    def spent(self) -> Json:
        """Return tokens and money so far, and why no more calls are made."""
        total = self._tape.total
        summary = {"name": self.model, "tokens": total.tokens, "money": None if total.unpriced else total.money}
        return {**summary, "note": self._why}

    def _allowed(self, tokens: int) -> bool:
        """Check whether so many more tokens are within the budget, with those of the calls that are under way.

        A call is taken to be as much dearer than estimated as the dearest one so far.
        """
        spent = self._tape.total.tokens
        if not self._why and spent + (self._begun + tokens) * self._dearer > self._budget:
            self._why = f"{spent:,} of {self._budget:,} tokens are spent (WORKBENCH_INDEX_TOKEN_BUDGET)"
        return not self._why


def _batches(passages: Sequence[Titled]) -> Iterator[list[int]]:
    """Yield the places of the passages of each call: few, short together, and of one language."""
    batch: list[int] = []
    length, language = 0, ""
    for at, passage in enumerate(passages):
        own = detect_language(passage.text)
        if batch and (len(batch) == _PASSAGES or length + len(passage.text) > _CHARACTERS or own != language):
            yield batch
            batch, length = [], 0
        batch.append(at)
        length, language = length + len(passage.text), own
    if batch:
        yield batch


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
