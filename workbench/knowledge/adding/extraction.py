"""What a model says while texts are indexed: whom they name, what they state, and what a community is about.

Rules have found names already; where a model has read a passage, its names are in their place, and what it states
joins the graph. Everything is kept by content at once, so that an ``add`` that was stopped pays for nothing twice, and
a later one without a model continues with what is there. What it will take is told first, and nothing is asked that
would go over ``WORKBENCH_INDEX_TOKEN_BUDGET``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

from workbench.knowledge.graph import graph as communities
from workbench.knowledge.indexes.index import Index
from workbench.knowledge.names.entities import Name, Stated
from workbench.ports import Community
from workbench.state import Json
from workbench.text import sentences

_HANDFUL, _KINDS, _MEMBERS = 64, 20, 20
"""Passages that are read before they are kept; relations and names that tell of a community."""


class Titled(NamedTuple):
    """A passage as a model reads it, and the digest of its text."""

    title: str
    text: str
    digest: str

    def key(self, recipe: str) -> str:
        """Under which what this recipe says of it is kept."""
        return _key(recipe, self.title, self.text)


class Extraction(NamedTuple):
    """What a passage names and states."""

    names: list[Name]
    relations: list[Stated]


@dataclass(frozen=True)
class Forecast:
    """What reading so many passages with a model will take, about.

    Attributes:
        model: who would read.
        passages: that it has not read yet.
        tokens: that it would read and write.
        money: what they cost; None where the model has no price.
        budget: tokens that one ``add`` may take.
    """

    model: str
    passages: int
    tokens: int
    money: float | None
    budget: int

    def __str__(self) -> str:
        money = f", {self.money:.2f} by the prices" if self.money is not None else ""
        return f"{self.passages:,} passages for {self.model}: about {self.tokens:,} tokens{money}"


class Extractor(Protocol):
    """A model that reads what is indexed.

    Attributes:
        model: its name.
        recipe: the model and the versions of its prompts: what is kept is kept under it.
    """

    model: str
    recipe: str

    def forecast(self, passages: Iterable[Titled]) -> Forecast:
        """Return what reading these will take."""

    def read(self, passages: Sequence[Titled]) -> dict[int, Extraction | None]:
        """Return what each names and states, by its place; None where the model said nothing that can be used.

        A passage that it was not asked about, since the budget is spent or its server is away, is not there.
        """

    def summarize(self, groups: Sequence[Mapping[str, str]]) -> dict[int, str]:
        """What each community is about, by its place, from ``title``, ``members``, ``relations`` and ``documents``."""

    def spent(self) -> Json:
        """Tokens and money of this ``add``, and why the model is not asked any more, if it is not."""


class Modelled:
    """One ``add``'s use of a model, or of what one has said before.

    Args:
        index: keeps what it says.
        extractor: None where no model may be asked; what was kept is used all the same.
        forget: leave what was kept aside too: rules do everything.
    """

    def __init__(self, index: Index, extractor: Extractor | None, forget: bool = False):
        self._index, self.extractor = index, extractor
        before = "" if forget else index.meta("extractor")
        self.recipe = extractor.recipe if extractor else before
        self._before, self.read, self.unusable, self.left, self.summaries, self.note = before, 0, 0, 0, 0, ""

    @property
    def whole(self) -> bool:
        """Check whether everything that the base holds has been read by this recipe."""
        return self.recipe == self._before and self._index.meta("extractor_left", "0") == "0"

    def forecast(self, passages: Iterable[Titled]) -> Forecast | None:
        """Return what is left to read of these; None where there is no model."""
        return self.extractor.forecast(self._missing(passages)) if self.extractor else None

    def withdraw(self, why: str) -> None:
        """Ask no model in this ``add``, and say why."""
        self.extractor, self.recipe, self.note = None, self._before, why

    def _missing(self, passages: Iterable[Titled]) -> Iterator[Titled]:
        rest = iter(passages)
        while part := list(islice(rest, _HANDFUL)):
            known = self._values(p.key(self.recipe) for p in part)
            yield from (p for p in {p.key(self.recipe): p for p in part}.values() if p.key(self.recipe) not in known)

    def _values(self, keys: Iterable[str]) -> Json:
        rows = self._index.rows_in("SELECT key, value FROM said WHERE key IN ({})", list(keys))
        return {key: json.loads(value) for key, value in rows}

    def _keep(self, rows: Iterable[tuple[str, str, Any]]) -> None:
        with self._index.transaction() as connection:
            told = ((key, digest, json.dumps(value, ensure_ascii=False)) for key, digest, value in rows)
            connection.executemany("INSERT OR IGNORE INTO said VALUES (?, ?, ?)", told)

    def ensure(self, passages: Sequence[Titled], on_done: Callable[[int, int], None]) -> None:
        """Let the model read those that it has not read; without one, count them."""
        missing = list(self._missing(passages)) if self.recipe else []
        if self.extractor is None:
            self.left += len(missing)
            return
        for start in range(0, len(missing), _HANDFUL):
            part = missing[start : start + _HANDFUL]
            found = self.extractor.read(part)
            self._keep((part[n].key(self.recipe), part[n].digest, said) for n, said in found.items())
            self.unusable += (useless := sum(said is None for said in found.values()))
            self.read, self.left = self.read + len(found) - useless, self.left + len(part) - len(found)
            on_done(min(start + _HANDFUL, len(missing)), len(missing))

    def kept(self, passages: Sequence[Titled]) -> dict[Titled, Extraction]:
        """Return what is known of these."""
        if not self.recipe:
            return {}
        found = self._values(p.key(self.recipe) for p in passages)
        return {
            p: Extraction([Name(*name) for name in said[0]], [Stated(*stated) for stated in said[1]])
            for p in passages
            if (said := found.get(p.key(self.recipe)))
        }

    def describe(self, tell: Callable[[int, int], None]) -> bool:
        """Let the model say what each community is about; whether any now says something else.

        What it says is kept by what the community holds, so that one that stays as it was is not asked about again.
        """
        every = [row[0] for row in self._index.rows("SELECT community_id FROM communities ORDER BY community_id")]
        if not self.recipe or not every:
            return False
        used, changed = set[str](), False
        for start in range(0, len(every), _HANDFUL):
            part = communities.read(self._index, every[start : start + _HANDFUL])
            groups = [self._group(community) for community in part]
            keys = [_key(self.recipe, *group.values()) for group in groups]
            known = self._values(keys)
            asked = [n for n, key in enumerate(keys) if key not in known]
            if asked and self.extractor:
                said = self.extractor.summarize([groups[n] for n in asked])
                new = {keys[asked[n]]: text for n, text in said.items()}
                self._keep((key, "", text) for key, text in new.items())
                known, self.summaries = {**known, **new}, self.summaries + len(new)
            used.update(known)
            told = [(text, c["community_id"]) for c, key in zip(part, keys, strict=True) if (text := known.get(key))]
            before = {c["community_id"]: c["summary"] for c in part}
            if told := [(text, i) for text, i in told if before[i] != text]:
                with self._index.transaction() as connection:
                    connection.executemany("UPDATE communities SET summary = ? WHERE community_id = ?", told)
                changed = True
            tell(min(start + _HANDFUL, len(every)), len(every))
        with self._index.transaction() as connection:
            old = {row[0] for row in connection.execute("SELECT key FROM said WHERE digest = ''")} - used
            connection.executemany("DELETE FROM said WHERE key = ?", ((key,) for key in sorted(old)))
        return changed

    def _group(self, community: Community) -> dict[str, str]:
        members, docs = community["members"][:_MEMBERS], community["doc_ids"][:_MEMBERS]
        names = dict(self._index.rows_in("SELECT entity_id, name FROM entities WHERE entity_id IN ({})", members))
        sql = "SELECT DISTINCT sentence FROM relations WHERE source IN ({}) ORDER BY relation_id LIMIT ?"
        stated = [row[0] for row in self._index.rows_in(sql, members, _KINDS)]
        first = "SELECT doc_id, text FROM passages WHERE position = 0 AND doc_id IN ({})"
        leads = {i: next(iter(sentences(text)), "") for i, text in self._index.rows_in(first, docs)}
        return {
            "title": community["title"],
            "members": ", ".join(names[i] for i in members if i in names),
            "relations": "\n".join(stated),
            "documents": "\n".join(leads[i] for i in docs if leads.get(i)),
        }

    def remember(self) -> None:
        """Note whose word the graph holds now, and how many passages it has not read."""
        before = 0 if self.extractor or not self.recipe else int(self._index.meta("extractor_left", "0"))
        self._index.set_meta("extractor", self.recipe)
        self._index.set_meta("extractor_left", str(before + self.left))

    def report(self) -> Json:
        """Return what was asked in this ``add``; nothing where nothing was."""
        spent = self.extractor.spent() if self.extractor else {}
        if self.left and not self.extractor:
            self.note = self.note or "no model may be asked (WORKBENCH_INDEX_TOKEN_BUDGET), and one has read the rest"
        if not spent and not self.note:
            return {}
        told = {"read": self.read, "by_rules": self.unusable + self.left, "summaries": self.summaries, **spent}
        return {**told, "note": self.note or spent.get("note", "")}


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
