"""What is only described is said outright: 喜宴的导演还拍过什么？ asks of 李安, "after Inception" is after 2010.

A question for the name itself (《喜宴》的导演是谁？) stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.context import KnowledgeBase
from workbench.question.names import Named, is_person
from workbench.text import CJK, language_of

# Names are blotted out, so that a work is a run of low lines.
_DESCRIBED = re.compile(
    r"\b(?:the )?(?:director|filmmaker) (?:of|behind) _+(?!_)(?=\W*\w)"
    r"|_+['’]s (?:director|filmmaker)(?=\W*\w)"
    r"|(?<![和与跟及、_])_+的(?:那[位个名])?导演(?=(?!一样|相同|不同|是谁|是哪|是什么人|叫|姓|名|呢|有哪|有谁|都?有[谁哪]|\W*$).)"
)
_BESIDE = re.compile(
    r"^\W*(?:which|what|list|show|name|any|give)\b.*\b(?P<en>after|before|since) _+(?!_)\W*$"
    r"|比_+(?!_)还?更?(?P<zh>早|晚|新|老)的|_+(?!_)(?P<ago>之后|以后|之前|以前)的",
    re.IGNORECASE,
)
"""Films after another film are films after its year."""
_ASKS_FOR_IT = re.compile(r"\b(?:who|what)(?: is|'s|’s| was| are| were)\W+$|谁是$", re.IGNORECASE)
_AND_MORE = re.compile(
    r"^\W*who (?:directed|made) _+(?!_)(?:,? and|[?.]) (?P<en>(?:what|which)\b[^?]*?)\b(?:he|she|they)\b"
    r"|^\W*_+的?(?:导演)?是?谁(?:导演|执导|拍)?的?[？?，,、。\s]*[他她]?(?P<zh>)(?=[还又也]|的其他)",
    re.IGNORECASE,
)
"""Who directed it, and what else of theirs: the second half, said by name, asks both."""


def named_for_described(question: str, names: Sequence[Named], bases: Sequence[KnowledgeBase]) -> str:
    """The question with "the director of <film>" said by name, and "films after <film>" by its year.

    Args:
        question: as it stands alone.
        names: the names in it.
        bases: where the film's typed fields are.
    """
    works = [name for name in names if name["bases"] and not is_person(name)]
    if not works:
        return question
    blotted = question
    for work in works:
        blotted = blotted[: work["start"]] + "_" * (work["end"] - work["start"]) + blotted[work["end"] :]
    by_name = {base.name: base for base in bases}
    if beside := _BESIDE.search(blotted):
        return _dated(question, works, beside, by_name)
    if more := _AND_MORE.search(blotted):
        director = _written(_director(works[0], by_name), question, bases)
        return f"{more['en'] or ''}{director}{question[more.end() :]}" if director else question
    for match in reversed(list(_DESCRIBED.finditer(blotted))):
        work = next(name for name in works if match.start() <= name["start"] < match.end())
        director = _written(_director(work, by_name), question, bases)
        if director and not _ASKS_FOR_IT.search(blotted[: match.start()]):
            question = question[: match.start()] + director + question[match.end() :]
    return question


def _dated(question: str, works: Sequence[Named], beside: re.Match[str], bases: Mapping[str, KnowledgeBase]) -> str:
    work = next((name for name in works if beside.start() <= name["start"] < beside.end()), works[-1])
    year = _fields(work, bases).get("year")
    if not year:
        return question
    if beside["en"]:
        return f"{question[: work['start']]}{year}{question[work['end'] :]}"
    when = "以后" if beside["zh"] in ("晚", "新") or beside["ago"] in ("之后", "以后") else "以前"
    return f"{question[: beside.start()]}{year}年{when}的{question[beside.end() :]}"


def _director(work: Named, bases: Mapping[str, KnowledgeBase]) -> str:
    directors = _fields(work, bases).get("directors") or []
    return str(directors[0]) if len(directors) == 1 else ""


def _fields(work: Named, bases: Mapping[str, KnowledgeBase]) -> Mapping[str, Any]:
    """The typed fields of the document about a work."""
    base = bases[work["bases"][0]]
    entity = base.entity(work["entity_id"])
    found = base.passages_of([entity["doc_id"]]) if entity and entity["doc_id"] else []
    return found[0]["fields"] if found else {}


def _written(name: str, question: str, bases: Sequence[KnowledgeBase]) -> str:
    """The name as the language of the question writes it, where a knowledge base knows."""
    entity = next((found for base in bases if (found := base.find_entity(name))), None)
    if not entity or language_of(question) != "zh":
        return name
    return next((alias for alias in entity["aliases"] if CJK.search(alias)), name)
