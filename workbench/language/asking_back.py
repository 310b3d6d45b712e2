"""Asking back: the readings of a question that leaves open what decides its answer.

Four things leave it open: a report without a subject; a pronoun without anything before it; two documents of one name;
"the loan", 那份合同, that nothing in the question or the conversation explains and that several of the passages have.
``asking_back.json`` has how new to the conversation the question must be for that, and how many passages
(``experiments/followups.py DATA --fit`` makes it).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.language.names import names_in
from workbench.ports import Bases
from workbench.state import Data
from workbench.text import content_stems

FITTED: dict[str, float] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""``shared``: of the question's weight, at most this share is of words that the conversation has; ``holding``: of the
first passages, at least so many have the noun."""
FIRST = 10
READINGS = 4
_CLOSED = (
    "of in on at for to from with by as that which who whose where when is are was were be do does did has have had "
    "and or if can could will would should may a an the this it i you we they he she"
)
_NOT_CLOSED = rf"(?!(?:{_CLOSED.replace(' ', '|')})\b)"
_EXPLAINED = r"['’]s\b| *\b(?:of|that|which|who|where|when|whose|for|to|in which)\b"
_NOUN = re.compile(
    rf"\b(?:the|this|that) (?P<en>(?:{_NOT_CLOSED}[\w-]+ ?){{1,3}})(?P<of>{_EXPLAINED})?"
    r"|(?:[这那][个部位家款本篇座支份项]|该)(?P<zh>[\u4e00-\u9fff]{2,3}?)(?=[的是在有]|\W|$)",
    re.I,
)
_UNIQUE = re.compile(r"[A-Z\d]|\b(?:same|only|most|least|first|last|next|other|\w+est)\b")
_KIND = re.compile(r"\((.+)\)$")


_SUBJECTLESS = re.compile(
    r"\W*(?:(?:please|can you|could you) )*(?:write|prepare|make|give|create|draft)(?: me| us)? (?:an? |the )?"
    r"(?:(?:full|complete|short|detailed|long|brief|comprehensive) )*(?:report|summary|overview|review|analysis)\W*"
    r"|(?:请|帮我|给我)*(?:写|做|生成|准备|出)一?[份个篇]?(?:(?:完整|详细|简短|全面|简要)的?)?(?:报告|总结|综述|概述|分析)\W*",
    re.I,
)
_PRONOUN = re.compile(
    r"\W*(?:(?:who|what|when|where|why|how|which)(?: \w+)? )?(?:is|are|was|were|do|does|did|has|have|had|can|could)"
    r" (he|she|they|him|his|her|their|it(?= \w+\W*$))\b|\W*(he|she|they|his|her|their)\b|(?:请问)?([他她它]们?)",
    re.I,
)


class Reading(NamedTuple):
    """What a question may mean, and the document that it would be about, or ""."""

    text: str
    doc_id: str = ""


class Open(NamedTuple):
    """What a question leaves open: which of the readings, the subject of a report, or whom ``word`` means."""

    what: Literal["which", "subject", "pronoun"]
    readings: list[Reading]
    word: str = ""


def left_open(
    question: str,
    results: Sequence[Data],
    bases: Bases,
    history: Sequence[Data],
) -> Open | None:
    """Return what the question leaves open; None where it is clear.

    Args:
        question: as the user wrote it.
        results: the evidence, best first.
        bases: the knowledge bases that were searched.
        history: the messages before it, oldest first, each with ``role`` and ``content``.
    """
    pronoun = None if history else _PRONOUN.match(question)
    if pronoun or _SUBJECTLESS.fullmatch(question):
        word = next(filter(None, pronoun.groups())) if pronoun else ""
        return Open("pronoun" if pronoun else "subject", [], word)
    readings = _namesakes(question, bases) or _missing(question, results, bases, history)
    return Open("which", readings[:READINGS]) if readings else None


def _namesakes(question: str, bases: Bases) -> list[Reading]:
    """Return the documents of a name that several have and nothing in the question tells apart."""
    for base in bases:
        for mention in base.link(question):
            entities = [base.entity(i) for i in (mention["entity_id"], *mention.get("others", []))]
            ids = list(dict.fromkeys(entity["doc_id"] for entity in entities if entity and entity["doc_id"]))
            if len(ids) > 1:
                return _distinguished([passage for i in ids for passage in base.passages(doc_ids=[i])[:1]])
        titles = base.ways.titles_in(question)
        ids = titles[0]["doc_ids"] if len(titles) == 1 else []
        passages = [passage for i in ids for passage in base.passages(doc_ids=[i])[:1]]
        matches = [_KIND.search(passage["title"]) for passage in passages]
        kinds = {match[1] for match in matches if match}
        if len(kinds) == len(passages) > 1 and not any(content_stems(kind) & content_stems(question) for kind in kinds):
            return _distinguished(passages)
    return []


def _distinguished(passages: Sequence[Data]) -> list[Reading]:
    """Return documents by their titles, with the first field that tells apart those that share one."""
    titles = [passage["title"] for passage in passages]
    if len(set(titles)) < len(titles):
        fields = [{**passage["fields"], "id": passage["doc_id"]} for passage in passages]
        name = next(n for n in (*fields[0], "id") if len({str(own.get(n)) for own in fields}) == len(fields))
        titles = [f"{title} ({name} {own.get(name, '–')})" for title, own in zip(titles, fields, strict=True)]
    return [Reading(title, passage["doc_id"]) for title, passage in zip(titles, passages, strict=True)]


def _titles(results: Sequence[Data]) -> dict[str, str]:
    """Return title -> document, best first."""
    by_title: dict[str, str] = {}
    for result in results:
        by_title.setdefault(result["metadata"]["title"], result["metadata"].get("doc_id", ""))
    return by_title


def _missing(
    question: str,
    results: Sequence[Data],
    bases: Bases,
    history: Sequence[Data],
) -> list[Reading]:
    """Return the documents that "the loan" may be of, where nothing says which loan."""
    names = names_in(question, bases)
    if names and not history:
        return []  # a name explains "the author"; after a conversation it may be a mere "in California"
    questions = [entry["content"] for entry in history if entry["role"] == "user"][-1:]
    documents = {name["doc_id"] for text in questions for name in names_in(text, bases)}
    before = content_stems(" ".join(entry["content"] for entry in history))
    own = content_stems(question)
    weights = {word: max([base.term_weight(word) for base in bases], default=1.0) for word in own}
    shared = sum(weights[word] for word in own & before) / (sum(weights.values()) or 1.0)
    if shared > FITTED["shared"]:
        return []
    first = [result for result in results if result["source_type"] == "chunk"][:FIRST]
    for noun in _nouns(question):
        words = content_stems(noun)
        holding = [result for result in first if words and words <= content_stems(result["evidence"])]
        explained = any(result["metadata"]["doc_id"] in documents for result in first) or words <= before
        titles = _titles(holding)
        if len(titles) >= FITTED["holding"] and not explained:
            return [Reading(f"{noun}: {title}", doc_id) for title, doc_id in titles.items()]
    return []


def _nouns(question: str) -> list[str]:
    """Return what is spoken of as known: nouns after "the" that no further words explain."""
    matches = [match for match in _NOUN.finditer(question) if match["of"] in (None, "'s", "’s")]
    nouns = [(match["en"] or match["zh"]).strip() for match in matches]
    return [noun for noun in nouns if not _UNIQUE.search(noun)]
