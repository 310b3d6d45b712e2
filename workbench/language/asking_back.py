"""Asking back: a pronoun without anything before it, and a name that several documents have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from workbench.ports import Bases
from workbench.state import Data, Question
from workbench.text import content_stems

READINGS = 4
_KIND = re.compile(r"\((.+)\)$")


_PRONOUN = re.compile(
    r"\W*(?:(?:who|what|when|where|why|how|which)(?: \w+)? )?(?:is|are|was|were|do|does|did|has|have|had|can|could)"
    r" (he|she|they|him|his|her|their|it(?= \w+\W*$))\b|\W*(he|she|they|his|her|their)\b|(?:请问)?([他她它]们?)",
    re.I,
)


class Reading(NamedTuple):
    """The title of a document that a question may mean, and its id."""

    text: str
    doc_id: str


class Open(NamedTuple):
    """What a question leaves open: which of the readings its ``word`` means; a pronoun has none."""

    readings: list[Reading]
    word: str


def left_open(question: Question, bases: Bases, history: Sequence[Data]) -> Open | None:
    """Return what the question leaves open; None where it is clear.

    Args:
        question: as it was read.
        bases: the knowledge bases that were searched.
        history: the messages before it; after any of them a pronoun has something to refer to.
    """
    if pronoun := None if history else _PRONOUN.match(question["text"]):
        return Open([], next(filter(None, pronoun.groups())))
    return name_left_open(question["text"], bases)


def name_left_open(question: str, bases: Bases) -> Open | None:
    """Return the documents of a name that several have and nothing in the question tells apart."""
    for base in bases:
        for mention in base.link(question):
            entities = [base.entity(i) for i in (mention["entity_id"], *mention.get("others", []))]
            ids = list(
                dict.fromkeys(
                    entity["doc_id"] for entity in entities if entity and entity["doc_id"]
                )
            )
            if len(ids) > 1:
                passages = [passage for i in ids for passage in base.passages(doc_ids=[i])[:1]]
                return Open(_distinguished(passages), mention["surface"])
        titles = base.link(question, "title")
        ids = titles[0]["doc_ids"] if len(titles) == 1 else []
        passages = [passage for i in ids for passage in base.passages(doc_ids=[i])[:1]]
        matches = [_KIND.search(passage["title"]) for passage in passages]
        kinds = {match[1] for match in matches if match}
        if len(kinds) == len(passages) > 1 and not any(
            content_stems(kind) & content_stems(question) for kind in kinds
        ):
            return Open(_distinguished(passages), titles[0]["surface"])
    return None


def _distinguished(passages: Sequence[Data]) -> list[Reading]:
    """Return documents by their titles, with the briefest field that tells apart those that share one."""
    titles = [passage["title"] for passage in passages]
    if len(set(titles)) < len(titles):
        fields = [{**passage["fields"], "id": passage["doc_id"]} for passage in passages]
        texts = {name: [str(own.get(name, "–")) for own in fields] for name in fields[0]}
        apart = [
            name for name, values in texts.items() if name != "id" and len({*values}) == len(fields)
        ]
        name = min(apart, key=lambda name: max(map(len, texts[name])), default="id")
        values = [
            own[name] if isinstance(own.get(name), list) else [own.get(name, "–")] for own in fields
        ]
        titles = [
            f"{title} ({name} {', '.join(map(str, v))})"
            for title, v in zip(titles, values, strict=True)
        ]
    readings = [
        Reading(title, passage["doc_id"]) for title, passage in zip(titles, passages, strict=True)
    ]
    return readings[:READINGS]
