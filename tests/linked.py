"""A knowledge base in memory whose texts name one another by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.ports import AroundKind, Link, LinkKind, Mention
from workbench.testing import MemoryKnowledge
from workbench.text import sentences


class LinkedKnowledge(MemoryKnowledge):
    """A few texts, with the links between them: a document's id is its title, and nothing else is a phrase."""

    def link(self, text: str, kind: LinkKind = "name") -> list[Mention]:
        found = [(text.find(doc_id), doc_id) for doc_id in self._texts] if kind == "title" else []
        return [Mention(start=at, end=at + len(i), surface=i, doc_ids=[i]) for at, i in sorted(found) if at >= 0]

    def around(self, kind: AroundKind, ids: Sequence[str] = (), limit: int = 0) -> list[Any]:
        """Return the other ids in the texts, or the sentences that hold an id."""
        if kind == "links":
            own = [chunk_id.rpartition("#")[0] for chunk_id in ids]
            return [link for doc_id in self._texts for i in own if i != doc_id for link in self._said(doc_id, i)]
        return []

    def _said(self, doc_id: str, within: str) -> list[Link]:
        told = [sentence for sentence in sentences(self._texts.get(within, "")) if doc_id in sentence]
        return [Link(chunk_id=f"{within}#0", doc_id=doc_id, surface=doc_id, sentence=sentence) for sentence in told]
