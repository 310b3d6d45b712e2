"""A knowledge base in memory whose texts name one another by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.ports import Link, Titled, Ways
from workbench.testing import MemoryKnowledge
from workbench.text import sentences, stem, terms


class LinkedKnowledge(MemoryKnowledge):
    """A few texts, with the ways between them."""

    @property
    def ways(self) -> Ways:
        """Return the ways between the texts."""
        return MemoryWays(self._texts)


class MemoryWays(Ways):
    """Ways between a few texts: a document's id is its title, and nothing else is a phrase."""

    def __init__(self, texts: Mapping[str, str]):
        self._texts = texts

    def titles_in(self, text: str) -> list[Titled]:
        """Return every id that is in the text, in its order."""
        found = [(text.find(doc_id), doc_id) for doc_id in self._texts]
        return [Titled(start=at, end=at + len(i), doc_ids=[i]) for at, i in sorted(found) if at >= 0]

    def links_from(self, chunk_ids: Sequence[str]) -> list[Link]:
        """Return the other ids in the texts."""
        own = [chunk_id.rpartition("#")[0] for chunk_id in chunk_ids]
        return [link for doc_id in self._texts for i in own if i != doc_id for link in self._said(doc_id, i)]

    def naming(self, doc_id: str, most: int) -> list[str]:
        """Return the texts that hold the id."""
        found = sorted(f"{i}#0" for i in self._texts if i != doc_id and self._said(doc_id, i))
        return found if len(found) <= most else []

    def links_to(self, doc_id: str, chunk_ids: Sequence[str]) -> list[Link]:
        """Return the sentences that hold the id."""
        return [link for chunk_id in chunk_ids for link in self._said(doc_id, chunk_id.rpartition("#")[0])]

    def _said(self, doc_id: str, within: str) -> list[Link]:
        told = [sentence for sentence in sentences(self._texts.get(within, "")) if doc_id in sentence]
        return [Link(chunk_id=f"{within}#0", doc_id=doc_id, surface=doc_id, sentence=sentence) for sentence in told]

    def stems(self, chunk_ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the stems of the texts and of their ids."""
        texts = {
            i: f"{doc_id} {self._texts[doc_id]}" for i in chunk_ids if (doc_id := i.rpartition("#")[0]) in self._texts
        }
        return {i: frozenset(map(stem, terms(text))) for i, text in texts.items()}
