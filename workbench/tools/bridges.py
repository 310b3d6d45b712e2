"""Whom a passage brings in: the names in it that lead on, by how well the sentences that say them cover a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.context import KnowledgeBase, Passage
from workbench.text import fold, sentences
from workbench.tools.asked_words import AskedWords, stems
from workbench.tools.walk import HUB, OUT, PHRASE


class Bridge(NamedTuple):
    """A name in a sentence of a passage: how the sentence covers the question, and of which documents it is."""

    surface: str
    sentence: str
    parent: str
    doc_ids: frozenset[str]
    cover: float

    @property
    def name(self) -> str:
        """As names are compared."""
        return fold(self.surface)


def bridges(passages: Sequence[Passage], words: AskedWords, knowledge: KnowledgeBase) -> list[Bridge]:
    """Each name once, by the sentence that covers most of the words; those that documents are about count for more."""
    best: dict[str, Bridge] = {}
    for bridge in _named(passages, words, knowledge):
        if len(bridge.name) > 1 and (bridge.name not in best or bridge.cover > best[bridge.name].cover):
            best[bridge.name] = bridge
    return sorted(best.values(), key=lambda b: (-round(b.cover * (OUT if b.doc_ids else PHRASE), 9), b.name))


def _named(passages: Sequence[Passage], words: AskedWords, knowledge: KnowledgeBase) -> Iterator[Bridge]:
    """Titles in every sentence; known names, which are dearer to find, in those that cover something."""
    for link in knowledge.ways.links_from([passage["chunk_id"] for passage in passages]):
        cover = words.share(stems(link["sentence"]))
        yield Bridge(link["surface"], link["sentence"], link["chunk_id"], frozenset({link["doc_id"]}), cover)
    for passage in passages:
        for sentence in sentences(passage["text"]):
            cover = words.share(stems(sentence))
            for mention in knowledge.link(sentence) if cover else ():
                entity = knowledge.entity(mention["entity_id"])
                if entity and entity["doc_id"]:
                    doc_ids = frozenset({entity["doc_id"]})
                    yield Bridge(mention["surface"], sentence, passage["chunk_id"], doc_ids, cover)
                elif entity and 1 < len(knowledge.mentions_of(entity["entity_id"])) <= HUB:
                    yield Bridge(mention["surface"], sentence, passage["chunk_id"], frozenset(), cover)
