"""The earlier system's names for how fine a piece of evidence is, for what is read beside its caches and records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Granularity = Literal["DO", "L2-DO", "Chunk", "AtomicKnowledge", "KGSubgraph"]


def granularity_of(result: Mapping[str, Any]) -> Granularity:
    """What a piece of evidence (a ``RetrievalResult``) is called there.

    A thing with a document of its own is a ``DO``, one that is only named in documents an ``L2-DO``; a passage is a
    ``Chunk``, a relation ``AtomicKnowledge``, a community of things a ``KGSubgraph``.

    >>> [granularity_of({"source_type": kind, "metadata": {}}) for kind in ("chunk", "relationship", "community")]
    ['Chunk', 'AtomicKnowledge', 'KGSubgraph']
    >>> [granularity_of({"source_type": "entity", "metadata": {"doc_id": doc_id}}) for doc_id in ("d1", "")]
    ['DO', 'L2-DO']
    """
    kinds: dict[str, Granularity] = {"chunk": "Chunk", "relationship": "AtomicKnowledge", "community": "KGSubgraph"}
    return kinds.get(result["source_type"]) or ("DO" if result["metadata"].get("doc_id") else "L2-DO")
