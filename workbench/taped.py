"""The ports of a run over its tape: what nodes read of a knowledge base and of the conversation is recorded, or
answered from there.

A replay needs no corpus: its knowledge bases are what the tape says of them. A fork reads the real ones where they are,
and falls back to the tape where they are not, as in a workspace to which only the run was brought.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, cast

from workbench.context import Context, Conversations, KnowledgeBase, KnowledgeBases, TypedGraph
from workbench.errors import KnowledgeError, UnknownKnowledge
from workbench.tape import FROM_TAPE, SEALED, Effect, Tape

READS = (
    *("counts", "keyword_search", "vector_search", "rerank", "term_weight", "passages", "passages_of", "select"),
    *("schema", "nouns", "lexicon", "values_in", "tally", "notable"),
    *("link", "entity", "find_entity", "relations_of", "mentions_of", "communities", "communities_of"),
    *("typed.kinds", "typed.readings", "typed.sides"),
)


def taped(context: Context, tape: Tape) -> Context:
    """The context with every port that reads the world over this tape."""
    return replace(
        context,
        tape=tape,
        knowledge=TapedBases(context.knowledge, tape),
        corpora=context.knowledge,
        conversations=cast(Conversations, TapedConversations(context.conversations, tape)),
        clock=context.clock if tape.mode not in SEALED else StillClock(begun(tape)),
    )


def begun(tape: Tape) -> datetime:
    """When the recorded run began."""
    found = next(effect for effect in tape.known.values() if (effect.kind, effect.name) == ("begin", "clock"))
    return datetime.fromisoformat(found.value)


class StillClock:
    """A clock that reads no clock: it begins where the recorded run began, and each look is a microsecond later."""

    def __init__(self, began: datetime):
        self._began, self._looks = began, 0

    def now(self) -> datetime:
        """The recorded beginning, and a little more at every look."""
        self._looks += 1
        return self._began + timedelta(microseconds=self._looks)

    def monotonic(self) -> float:
        """Seconds since the beginning: the looks so far, each a microsecond."""
        self._looks += 1
        return self._looks / 1e6


class TapedBases:
    """The knowledge bases of a run."""

    def __init__(self, real: KnowledgeBases, tape: Tape):
        self.real, self._tape = real, tape
        self._open: dict[str, TapedBase] = {}

    def names(self) -> list[str]:
        """Known names, sorted; those of the recorded run in a replay."""
        if self._tape.mode == "fork" and (here := self.real.names()):
            self._tape.keep(Effect("knowledge", "names", "", {}, here))
            return here
        return self._tape.effect("knowledge", "names", {}, self.real.names)

    def get(self, name: str) -> KnowledgeBase:
        """The knowledge base of that name; one that is only on the tape is only as much as the tape says.

        Raises:
            UnknownKnowledge: neither here nor on the tape.
        """
        if name not in self._open:
            self._open[name] = TapedBase(name, self.real, self._tape)
        return cast(KnowledgeBase, self._open[name])


class TapedBase:
    """One knowledge base: each read is an effect under the base's fingerprint."""

    def __init__(self, name: str, bases: KnowledgeBases, tape: Tape):
        self.name, self._bases, self._tape = name, bases, tape
        self._known: dict[tuple[str, str], Any] = {}
        self._here = tape.mode not in FROM_TAPE and self._is_here()
        self._fingerprint: str = self._of_documents()

    def _is_here(self) -> bool:
        with suppress(UnknownKnowledge):
            return bool(self._bases.get(self.name))
        return False

    def _of_documents(self) -> str:
        name = f"{self.name}.fingerprint"
        if not self._here:
            return self._tape.effect("knowledge", name, {}, lambda: self._bases.get(self.name).fingerprint())
        found = self._bases.get(self.name).fingerprint()
        self._tape.keep(Effect("knowledge", name, "", {}, found))
        return found

    def fingerprint(self) -> str:
        """Of the documents, as this run sees them."""
        return self._fingerprint

    def warm(self) -> None:
        """Load what is slow to load, where there is something to load."""
        if self._here:
            self._bases.get(self.name).warm()

    def reading(self) -> AbstractContextManager[None]:
        """One generation for a whole block of reads."""
        return self._bases.get(self.name).reading() if self._here else nullcontext()

    def graph(self) -> Any:
        """The graph itself, which no tape holds.

        Raises:
            KnowledgeError: the base is not in this workspace.
        """
        if not self._here:
            raise KnowledgeError(f"The graph of {self.name!r} is not on the tape. Add the corpus to this workspace.")
        return self._bases.get(self.name).graph()

    @property
    def typed(self) -> TypedGraph:
        """What a planner reads of the relations by their types; only tools follow them."""
        return cast(TypedGraph, TapedTyped(self))

    def __getattr__(self, method: str) -> Any:
        if method not in READS:
            raise AttributeError(f"A knowledge base has no {method!r}.")

        def read(*arguments: Any) -> Any:
            given = [sorted(a) if isinstance(a, (set, frozenset)) else a for a in arguments]
            place = (method, json.dumps(given, sort_keys=True, ensure_ascii=False))
            if place not in self._known:
                self._known[place] = self._read(method, given)
            return self._known[place]

        return read

    def _read(self, method: str, given: Sequence[Any]) -> Any:
        name = f"{self.name}.{method}"
        if not self._here:
            found = self._tape.find("knowledge", name, self._fingerprint, given)
            if found is None:
                raise KnowledgeError(
                    f"{self.name!r} is not in this workspace, and the tape has no {method} of {_short(given)}. "
                    f"Add the corpus: workbench kb add {self.name} PATH..."
                )
            self._tape.keep(replace(found, replayed=True))
            return _loaded(method, found.value)
        value = attrgetter(method)(self._bases.get(self.name))(*given)
        self._tape.keep(Effect("knowledge", name, self._fingerprint, given, value))
        return value


class TapedTyped:
    """The relations of a taped base by their types: its reads, under names of their own."""

    def __init__(self, base: TapedBase):
        self._base = base

    def __getattr__(self, method: str) -> Any:
        return getattr(self._base, f"typed.{method}")


class TapedConversations:
    """The conversations of a run: what was said before is read once, and is part of the tape."""

    def __init__(self, real: Conversations, tape: Tape):
        self._real, self._tape = real, tape

    def list_messages(
        self, conversation_id: str, limit: int | None = None, before: str | None = None
    ) -> list[dict[str, Any]]:
        """The newest messages before the run's own, oldest first."""
        forked = self._tape.mode == "fork"  # in a conversation of its own, in which nothing was said
        return self._tape.effect(
            "memory",
            "list_messages",
            {"limit": limit},
            lambda: [] if forked else self._real.list_messages(conversation_id, limit, before=before),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _loaded(method: str, value: Any) -> Any:
    """A value as the base gives it: JSON has no tuples."""
    if method in ("keyword_search", "vector_search", "values_in", "tally"):
        return [tuple(pair) for pair in value]
    return value


def _short(given: Sequence[Any]) -> str:
    text = json.dumps(list(given), ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
