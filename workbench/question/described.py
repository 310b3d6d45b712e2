"""A person who is only described takes their name: 喜宴的导演还拍过什么？ asks of 李安.

A question for the name itself (《喜宴》的导演是谁？) stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.context import KnowledgeBase
from workbench.question.names import Named, is_person
from workbench.text import CJK, language_of

_DIRECTOR = re.compile(
    r"(?P<en>\b(?:the )?(?:director|filmmaker)s? (?:of|behind) _+(?!_))(?=\W*\w)"
    r"|(?P<en_of>_+['’]s (?:director|filmmaker))(?=\W*\w)"
    r"|(?P<zh>_+的(?:那[位个名])?导演)(?=(?!是谁|是哪|是什么人|叫|姓|名|呢|有哪|有谁|都?有[谁哪]|\W*$).)"
)
_ASKS_FOR_IT = re.compile(r"\b(?:who|what)(?: is|'s|’s| was| are| were)\W+$|谁是$", re.IGNORECASE)


def named_for_described(question: str, names: Sequence[Named], bases: Sequence[KnowledgeBase]) -> str:
    """The question with "the director of <film>" said by name, where exactly one person is that.

    Args:
        question: as it stands alone.
        names: the names in it.
        bases: where the film's typed fields are.
    """
    works = [name for name in names if name["bases"] and not is_person(name)]
    blotted = question
    for work in works:
        blotted = blotted[: work["start"]] + "_" * (work["end"] - work["start"]) + blotted[work["end"] :]
    for match in reversed(list(_DIRECTOR.finditer(blotted))):
        work = next(name for name in works if match.start() <= name["start"] < match.end())
        director = _director(work, {base.name: base for base in bases})
        if director and not _ASKS_FOR_IT.search(blotted[: match.start()]):
            said = _written(director, bases) if language_of(question) == "zh" else director
            question = question[: match.start()] + said + question[match.end() :]
    return question


def _director(work: Named, bases: Mapping[str, KnowledgeBase]) -> str:
    base = bases[work["bases"][0]]
    entity = base.entity(work["entity_id"])
    found = base.passages_of([entity["doc_id"]]) if entity and entity["doc_id"] else []
    directors = found[0]["fields"].get("directors") or [] if found else []
    return str(directors[0]) if len(directors) == 1 else ""


def _written(name: str, bases: Sequence[KnowledgeBase]) -> str:
    """The name in Chinese, where a knowledge base has it."""
    entity = next((found for base in bases if (found := base.find_entity(name))), None)
    return next((alias for alias in entity["aliases"] if CJK.search(alias)), name) if entity else name
