"""Several things bear one name: the words around it and the other names beside it say which one is meant.

A bearer speaks through what the base says of it: the names that it is related to, and the words of its document. Where
none of them stands out, the name stays ambiguous: the best connected bearer is given, and the others with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench.context import Entity, Mention
from workbench.knowledge import view
from workbench.knowledge.index import Index
from workbench.knowledge.surfaces import STOP
from workbench.text import CJK, terms

RIVALS = 8
"""Bearers of one name that are looked at."""
LEAD = 0.35
"""How much rarer words must speak for a bearer than for the next, as a share of the weight of the rarest word."""
_MOST = 0.7
"""A bearer of whom nearly as many words speak as of the best one is not ruled out."""
_UNTYPED = "Document"
_ASKED = "who whom whose what which when where why how is are was were be did does do has have"
_ASKING = STOP | frozenset(_ASKED.split())
"""Words that choose nobody."""


@dataclass(frozen=True)
class Known:
    """What a base says of one bearer of a name: ``beside`` are the entities related to it, ``words`` all its terms."""

    entity: Entity
    year: int | None
    beside: frozenset[str]
    words: frozenset[str]


def rivals(known: Sequence[Known]) -> list[Known]:
    """Those that are different things: documents of one title without a type or year are the parts of one."""
    first, *rest = known
    return [first, *(other for other in rest if _different(first, other))]


def _different(one: Known, other: Known) -> bool:
    if one.year is not None and other.year is not None:
        return one.year != other.year
    return one.entity["type"] != _UNTYPED or other.entity["type"] != _UNTYPED


def told_apart(
    text: str,
    mention: Mention,
    mentions: Iterable[Mention],
    known: Sequence[Known],
    weight: Callable[[str], float],
    rarest: float,
) -> Mention:
    """The mention with who is meant; ``others`` are those whom nothing in the text tells from it.

    Args:
        text: in which the name stands.
        mention: of the name.
        mentions: of every name in the text.
        known: the bearers, the best connected first.
        weight: how rare a term is.
        rarest: the weight of a term that one passage has.
    """
    around = f"{text[: mention['start']]} / {text[mention['end'] :]}"
    words = [w for w in dict.fromkeys(terms(around)) if w not in _ASKING and (len(w) > 1 or CJK.match(w))]
    beside = {m["entity_id"] for m in mentions if m["start"] != mention["start"]}
    scores = {
        bearer.entity["entity_id"]: rarest * (len(beside & bearer.beside) + (str(bearer.year) in words))
        + sum(weight(word) for word in words if word in bearer.words)
        for bearer in rivals(known)
    }
    return _said(mention, scores, LEAD * rarest)


def _said(mention: Mention, scores: Mapping[str, float], lead: float) -> Mention:
    best = max(scores, key=lambda entity_id: scores[entity_id])  # the first of equal ones
    close = [i for i in scores if scores[i] > scores[best] - lead or scores[i] > _MOST * scores[best]]
    others = [entity_id for entity_id in close if entity_id != best]
    plain = Mention(start=mention["start"], end=mention["end"], surface=mention["surface"], entity_id=best)
    return Mention(**plain, others=others) if others else plain


def in_question(
    text: str, mentions: Sequence[Mention], index: Index, weight: Callable[[str], float], rarest: float
) -> list[Mention]:
    """The mentions of a text, each name that several bear told apart as far as the text allows."""
    found = []
    for mention in mentions:
        bearers = [mention["entity_id"], *mention.get("others", ())][:RIVALS]
        known = [one for entity_id in bearers if (one := _known(index, entity_id))] if len(bearers) > 1 else []
        found.append(told_apart(text, mention, mentions, known, weight, rarest) if known else mention)
    return found


def _known(index: Index, entity_id: str) -> Known | None:
    entity = next(iter(view.entities(index, "WHERE entity_id = ?", (entity_id,))), None)
    if entity is None:
        return None
    beside = {i: (name, *json.loads(aliases)) for i, name, aliases in index.rows(_BESIDE, (entity_id,) * 2)}
    passages = index.rows(_SAID, (entity["doc_id"],))
    said = [*(name for names in beside.values() for name in names), *(text for _, text in passages)]
    year = passages[0][0] if passages else None
    return Known(entity, year, frozenset(beside), frozenset(term for text in said for term in terms(text)))


_BESIDE = (
    "SELECT entity_id, name, aliases FROM relations JOIN entities ON entity_id = target "
    "WHERE source = ? AND relations.type != 'mentions' UNION "
    "SELECT entity_id, name, aliases FROM relations JOIN entities ON entity_id = source "
    "WHERE target = ? AND relations.type != 'mentions' LIMIT 200"
)
_SAID = (
    "SELECT year, passages.text FROM documents JOIN passages ON passages.doc_id = documents.doc_id "
    "WHERE documents.doc_id = ? ORDER BY position LIMIT 3"
)
