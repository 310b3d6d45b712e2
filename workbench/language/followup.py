"""Follow-ups: a message that leans on the conversation, said again so that it stands alone.

A pronoun takes a name from the turns before ("he", 它); an elliptic question ("And Apollo?", 那2005年以后呢？) puts its
name or condition into the question before; a question for a field of nothing (预算是多少？) gets the subject that was
spoken of last; a wish for more repeats what was wished. What stands alone is left letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.language.amounts import times
from workbench.language.names import names_in
from workbench.language.question import is_small_talk, read
from workbench.ports import KnowledgeBase
from workbench.state import NameRead, Question
from workbench.text import CJK, language_of

_PERSON = re.compile(r"\b(?:he|him|his|she|her|hers)\b|(?<![其吉])[他她](?!们)|(?:这|那|该)(?:个|位)人", re.I)
_THING = re.compile(
    r"\bits?\b(?! (?:true|possible)\b)"
    r"|\b(?:this|that) (?:one|\w+)\b(?= *(?:\?|$|is|was|has|have|did|does|cost|take|use|in|of))"
    r"|它(?!们)|(?:这|那|该|此)(?:一?[个部份篇项条款本种])[\u4e00-\u9fff]{0,4}?(?=[的是有在由讲用花]|$|[？?，。])",
    re.I,
)
_SEVERAL = re.compile(
    r"\b(?:they|them|these|those|the two|both of them)\b"
    r"|[它他她]们|(?:这|那)(?:两|几|些)[个部份篇项条款本种]?|[两二]者",
    re.I,
)
_THEIR = re.compile(r"\btheir\b", re.I)
_OWNS = ("his", "its", "their", "hers")
_OPENER = re.compile(
    r"^\s*(?:(?:and )?(?:what|how) (?:about|of)|and(?: also)?|but|so|then|same for|now|or)\b[\s,:]*"
    r"|^\s*(?:那么?(?![部些个位一两])|还有|以及|然后|换成|改成|如果是|要是)[，,\s]*",
    re.I,
)
_TAIL = re.compile(r"[又也]?(?:呢|怎么样|如何|的话)?[\s？?。.!！]*$")
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how|is|was|are|were|did|does|do|has|have|recommend|suggest|list"
    r"|compare|tell|show|find|give)\b|谁|什么|啥|哪|几|多少|多长|多久|吗|是不是|有没有|怎么|为什么|推荐|列出|列举|对比|比较|介绍",
    re.I,
)
_MORE = re.compile(
    r"^\W*(?:(?:any|some|a few|show me|give me|recommend(?: me)?|suggest|list|tell me|what|are there any|do you have"
    r"|i want)\W+)*(?:more|others?|another(?: one)?|else|other ones)(?: \w+)?(?: please)?\W*$"
    r"|^\W*(?:再|还|另外|换)(?:给我|帮我)?(?:推荐|来|列|说|介绍|找|换|要)?(?:几|一|两|三|些|点|一些)?[部个批份篇项条]?(?:别的|其他的?)?"
    r"(?:吧|呗|可以吗)?\W*$|^\W*(?:还有(?:吗|没有|别的吗|其他的?吗|哪些|什么)?|有没有(?:别的|其他的?)|更多|继续|别的呢|还有呢)\W*$",
    re.I,
)
_AMONG = re.compile(
    r"\b(?:which|how many|any|only|just)?\s*(?:ones? )?(?:of|among) (?:them|these|those)\b|^\W*(?:only|just) |^\W*其中",
    re.I,
)


_PLACED = re.compile(
    r"\bthe (?:(?P<pair>former|latter)|(?P<place>first|second|third|fourth|fifth|last) one)\b"
    r"|(?P<zh_pair>[前后])者|第(?P<zh_place>[一二三四五])[个部份篇项条款本种]|最后一[个部份篇项条款本种]",
    re.I,
)
_ORDINALS = {
    "first": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "last": -1,
    "一": 0,
    "二": 1,
    "三": 2,
    "四": 3,
    "五": 4,
}
_COMPARED = re.compile(
    r"^\W*(?:那么?|如果)?(?:和|跟|与|同)_+(?:相|对)?比|^\W*(?:and )?(?:compared (?:to|with)|versus|vs\.?) _+\W*$", re.I
)
_COMPARE_THEM = re.compile(
    r"^\W*compare (?:the two|them|these|both)\b|^\W*(?:对比|比较)(?:一下)?(?:这|那)?(?:两|二)[个部份篇项者]", re.I
)
_ALIKE = re.compile(r"\bsimilar(?: ones?)?\b(?! to)|\b\w+ like (?:this|that)\b(?! \w)|(?:类似|相似)于?(?=的)", re.I)


@dataclass(frozen=True)
class Turn:
    """A question that was said so that it stands alone, its reading, and the names of its answer."""

    question: str
    reading: Question
    names: tuple[NameRead, ...]
    answered: tuple[NameRead, ...] = ()


def standalone(message: str, history: Sequence[Mapping[str, Any]], bases: Sequence[KnowledgeBase]) -> str:
    """The message as a question that stands alone.

    Args:
        message: what the user says now.
        history: the window of messages before it, oldest first, each with ``role`` and ``content``.
        bases: the knowledge bases whose names and fields are known.
    """
    turns: list[Turn] = []
    for said in history:
        if said["role"] == "user" and not is_small_talk(said["content"]):
            question = _against(said["content"], turns, bases)
            turns.append(Turn(question, read(question, bases), tuple(names_in(question, bases))))
        elif said["role"] == "assistant" and turns:
            known = [name for name in names_in(said["content"], bases) if name["bases"]]
            turns[-1] = replace(turns[-1], answered=(*turns[-1].answered, *known))
    return _against(message, turns, bases)


def _against(message: str, turns: Sequence[Turn], bases: Sequence[KnowledgeBase]) -> str:
    if not turns or is_small_talk(message):
        return message
    last, reading, names = turns[-1], read(message, bases), names_in(message, bases)
    if _MORE.search(message):
        return last.question
    if instead := _beside(message, names, turns) or _among(message, reading, last, bases):
        return instead
    said = _with_antecedents(message, names, turns, _things(bases))
    if said != message:
        return _without_opener(said)
    return (
        _into_question(message, reading, names, last, bases)
        or _similar(message, names, turns)
        or _with_subject(message, reading, names, turns)
        or message
    )


def _things(bases: Sequence[KnowledgeBase]) -> re.Pattern[str]:
    """The ways of saying "it" with a word for the documents: that paper, 这篇论文, 该文档."""
    words = [word for base in bases for kind, many in base.nouns().items() if kind in ("en", "zh") for word in many]
    english = "|".join(re.escape(w) for w in words if not CJK.search(w)) or "document"
    chinese = "|".join(re.escape(w) for w in sorted(words, key=len, reverse=True) if CJK.search(w)) or "文档"
    return re.compile(
        rf"\b(?:this|that|the same) (?:{english})\b"
        rf"|\bthe (?:{english})\b(?! (?:_|about|with|where|that|in which|by|of|from|called))"
        rf"|(?:这|那|该|此|本)(?:一?[部个份篇])?(?:{chinese})(?!名)",
        re.I,
    )


def _with_antecedents(message: str, mine: Sequence[NameRead], turns: Sequence[Turn], things: re.Pattern[str]) -> str:
    """The message with every pronoun replaced by the name that was spoken of last, where it has none of its own."""
    blanked = _blotted(message, mine)
    found: list[tuple[int, int, str]] = []
    for match in _PLACED.finditer(blanked):
        if not mine and (one := _placed(match, turns)):
            found.append((*match.span(), _phrase([one], "", message)))
    for pattern, names in ((_SEVERAL, _spoken(turns)), (_THEIR, _spoken(turns))):
        several = names if len(names) > 1 else []
        found += [(*m.span(), _phrase(several, m.group(), message)) for m in pattern.finditer(blanked) if several]
    for pattern, person in ((_PERSON, True), (things, False), (_THING, False)):
        for match in pattern.finditer(blanked):
            free = all(match.end() <= start or end <= match.start() for start, end, _ in found)
            own = any(name["end"] <= match.start() and _is_person(name) == person for name in mine)
            one = _likeliest(turns, person) if free and not own else None
            if one:
                found.append((*match.span(), _phrase([one], match.group(), message)))
    for start, end, phrase in sorted(found, reverse=True):
        message = message[:start] + phrase + message[end:]
    return message


def _spoken(turns: Sequence[Turn]) -> list[NameRead]:
    """The several names of the last question, or else those of its answer."""
    asked = turns[-1].names
    return list({name["name"]: name for name in (asked if len(asked) > 1 else turns[-1].answered)}.values())[:4]


def _is_person(name: NameRead) -> bool:
    return name["type"].lower() == "person"


def _likeliest(turns: Sequence[Turn], person: bool) -> NameRead | None:
    """The name spoken of last that may be meant: in a question before an answer."""
    for turn in reversed(turns):
        for names in (list(reversed(turn.names)), turn.answered):
            fitting = [name for name in names if _is_person(name) == person]
            if fitting:
                return fitting[0]
    loose = [
        n for turn in reversed(turns) for n in (*reversed(turn.names), *turn.answered) if not (person and n["doc_id"])
    ]
    return loose[0] if loose else None


def _placed(match: re.Match[str], turns: Sequence[Turn]) -> NameRead | None:
    """ "the second one", 第二个, the former: of what was listed or named last."""
    asked = turns[-1].names
    listed = [n for n in turns[-1].answered if n["doc_id"] and n["name"] not in {name["name"] for name in asked}]
    pair = match["pair"] or match["zh_pair"]
    names = list({n["name"]: n for n in (asked if pair and len(asked) > 1 else listed or asked)}.values())
    place = (
        int(pair.lower() not in ("former", "前"))
        if pair
        else _ORDINALS[(match["place"] or match["zh_place"] or "last").lower()]
    )
    return names[place] if -len(names) <= place < len(names) else None


def _beside(message: str, names: Sequence[NameRead], turns: Sequence[Turn]) -> str:
    """ "和《推手》比呢？", "compare the two": what was spoken of last, side by side; "" for any other message."""
    zh, two = language_of(message) == "zh", _spoken(turns)
    if len(names) == 1 and _COMPARED.search(_blotted(message, names)):
        last = _likeliest(turns, _is_person(names[0]))
        two = [last, names[0]] if last else []
    elif names or not _COMPARE_THEM.search(message):
        return ""
    sides = [_written(name, zh) for name in two[:4]]
    joined = (
        ("和" if zh else " and ").join([("、" if zh else ", ").join(sides[:-1]), sides[-1]]) if len(sides) > 1 else ""
    )
    return (f"对比{joined}" if zh else f"Compare {joined}") if joined else ""


def _similar(message: str, names: Sequence[NameRead], turns: Sequence[Turn]) -> str:
    """ "something similar", 类似的: to what was spoken of last."""
    match, model = _ALIKE.search(message), _likeliest(turns, False)
    if names or not match or not model:
        return ""
    zh = language_of(message) == "zh"
    said = re.sub(r" (?:this|that)$", "", match.group(), flags=re.I)
    joint = "" if zh else " " if said.lower().endswith("like") else " to "
    return f"{message[: match.start()]}{said}{joint}{_written(model, zh)}{message[match.end() :]}"


def _among(message: str, reading: Question, last: Turn, bases: Sequence[KnowledgeBase]) -> str:
    """The wish before under what is asked of those that it found: "which of them are finished?"."""
    match = _AMONG.search(message)
    wished = last.reading["intent"] in ("list", "recommend") or last.reading["conditions"]
    if not (match and wished) or not (reading["conditions"] or reading["sort"] or reading["count"]):
        return ""
    question = last.question
    for condition in reading["conditions"]:
        question = _without(question, condition["field"], bases)
    rest = _TAIL.sub("", (message[: match.start()] + message[match.end() :]).strip(" ,，?？"))
    return _appended(question, re.sub(r"^(?:is|are|was|were|有|是)\s*", "", rest))


def _into_question(
    message: str, reading: Question, names: Sequence[NameRead], last: Turn, bases: Sequence[KnowledgeBase]
) -> str:
    """The question before with the name or conditions of an elliptic one in the place of its own, or ""."""
    opened = _OPENER.match(message)
    rest = _TAIL.sub("", message[opened.end() :] if opened else message).strip()
    questioned = bool(opened) or re.search(r"[?？]\s*$|呢", message)
    if not rest or not questioned or _ASKS.search(_blotted(message, names)[opened.end() if opened else 0 :]):
        return ""
    if names and reading["fields"]:
        return _without_opener(message)  # "And the author of Apollo?" asks a thing of its own
    if names:
        return _swapped(last, names) or _appended(last.question, rest)
    if reading["conditions"]:
        question = last.question
        for condition in reading["conditions"]:
            question = _without(question, condition["field"], bases)
        return _appended(question, rest)
    if reading["fields"] and last.names:
        return _of(rest, last.names[-1], message)
    return ""


def _swapped(last: Turn, new: Sequence[NameRead]) -> str:
    """The question before with these names in the place of its own, those of one kind first."""
    old = last.names
    if not old:
        return ""
    question = last.question
    pairs: list[tuple[NameRead, NameRead]] = []
    for name in new[-len(old) :]:
        free = [other for other in old if other not in [pair[0] for pair in pairs]]
        alike = [other for other in free if _is_person(other) == _is_person(name) or not name["bases"]]
        if not alike:
            return ""
        pairs.append((alike[-1], name))
    for gone, name in sorted(pairs, key=lambda pair: -pair[0]["start"]):
        quoted = gone["surface"].startswith("《") and not name["surface"].startswith("《")
        surface = f"《{name['surface']}》" if quoted else name["surface"]
        question = question[: gone["start"]] + surface + question[gone["end"] :]
    return question


def _without(question: str, field: str, bases: Sequence[KnowledgeBase]) -> str:
    """The question without the shortest run of words that makes it ask something of a field."""
    asked = [c for c in read(question, bases)["conditions"] if c["field"] == field]
    if not asked:
        return question
    for time in reversed(times(question)):
        left = f"{question[: time.start].rstrip()} {question[time.end :].lstrip()}".strip()
        if not any(c["field"] == field for c in read(left, bases)["conditions"]):
            return re.sub(r"(?<=[\u4e00-\u9fff]) 的?(?=[\u4e00-\u9fff])", "", left)
    words = list(re.finditer(r"[A-Za-z0-9'’-]+|[\u3400-\u9fff]", question))
    for size in range(1, min(len(words), 12)):
        for first in range(len(words) - size, -1, -1):
            start, end = words[first].start(), words[first + size - 1].end()
            left = f"{question[:start].rstrip()} {question[end:].lstrip()}".strip()
            if not any(c["field"] == field for c in read(left, bases)["conditions"]):
                return re.sub(r"\s+(?:from|in|since|after|before|of|by|the)\s*(?=[?.!]|$)", "", left)
    return question


def _with_subject(message: str, reading: Question, names: Sequence[NameRead], turns: Sequence[Turn]) -> str:
    """预算是多少？ of what was spoken of last; "" when the message has a subject of its own."""
    if names or reading["conditions"] or reading["words"] or reading["count"] or not reading["fields"]:
        return ""
    found = _likeliest(turns, bool(re.match(r"\W*[都还又也]", message)))
    return _of(_TAIL.sub("", message).strip(), found, message) if found else ""


def _of(words: str, name: NameRead, message: str) -> str:
    subject = _written(name, language_of(message) == "zh")
    if language_of(message) == "zh":
        joint = "" if re.match(r"\W*[都还又也]", words) or _ASKS.search(words) else "的"
        return f"{subject}{joint}{words.lstrip('的')}？"
    joint = "in" if re.search(r"ed$", words.rstrip(" ?")) else "of"
    return f"{words[:1].upper()}{words[1:].rstrip(' ?')} {joint} {subject}?"


def _written(name: NameRead, chinese: bool) -> str:
    """A name in a sentence of that language: documents in 《》 in Chinese."""
    surface = name["surface"].strip('《》〈〉「」『』"“” ')
    if not chinese:
        return name["name"] if CJK.search(surface) else surface
    return f"《{surface}》" if name["doc_id"] else surface


def _phrase(names: Sequence[NameRead], pronoun: str, message: str) -> str:
    chinese = language_of(message) == "zh"
    *first, end = dict.fromkeys(_written(name, chinese) for name in names)
    joined = (("、" if chinese else ", ").join(first) + ("和" if chinese else " and ") if first else "") + end
    return f"{joined}'s" if pronoun.lower() in _OWNS else joined


def _appended(question: str, words: str) -> str:
    """Words at the end of a question, before its mark.

    >>> _appended("List the papers.", "after 2005"), _appended("列出论文", "2005年以后的")
    ('List the papers after 2005.', '列出论文，2005年以后的')
    """
    said = question.rstrip(" ?？.。!！")
    joint = "，" if CJK.search(said[-1:]) else " "
    return said + joint + words + question[len(said) :]


def _without_opener(message: str) -> str:
    rest = _OPENER.sub("", message)
    return rest[:1].upper() + rest[1:] if rest.strip() else message


def _blotted(message: str, names: Sequence[NameRead]) -> str:
    for name in names:
        message = message[: name["start"]] + "_" * (name["end"] - name["start"]) + message[name["end"] :]
    return message
