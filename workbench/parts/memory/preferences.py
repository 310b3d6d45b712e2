"""Read what a message says plainly about the person: likes, dislikes, a name, and facts to remember.

Closed patterns only, in English and Chinese. Anything else that people say of themselves is kept by a model, by the
person (``wb.memory``) or by a tool, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from workbench.language.words import is_small_talk
from workbench.text import CJK, fold, sentences, stem, terms

DENIAL, NOT_KEPT = "denial", "not kept"
"""Sections of statements that are not memories: one that ends a fact, and a fact without a request to keep it."""
LONGEST, _LONGEST_CLAUSE = 2_000, 200
"""Characters of a message and of a clause; whatever is longer was pasted."""


class Statement(NamedTuple):
    """What a person says of themselves: where it belongs, in which words, and about which thing.

    ``attribute`` is set where a person has one of a kind ("live in", "favourite tea").
    """

    section: str
    content: str
    about: str
    polarity: str = ""
    attribute: str = ""


_LEAD = re.compile(
    r"(?:(?:well|ok|okay|oh|hi|hello|hey|actually|also|and|but|so|please|no|yes)\b"
    r"|其实|不过|但是?|另外|对了|还有|而且|请|你好|[\s,，:：])*"
)
_ASKS = (
    r"(?:what|which|who|whose|where|when|why|how|do|does|did|is|are|was|were|can|could|would|will|recommend|suggest"
    r"|show|list|give|find|tell|please|i|i'm|my|call|remember|forget)\b"
)
_CUT = re.compile(
    rf"(?:,|;|,? (?:and|but|so)) (?={_ASKS})|[;；]|[，,](?=(?:请|你|帮我)*(?:记住|记下|记着)|[请给帮推有哪谁那换])",
    re.IGNORECASE,
)
_CUT_ZH = re.compile(rf"{_CUT.pattern}|(?<!记住)(?<!记下)(?<!记着)[，,]", re.IGNORECASE)
_QUESTION = re.compile(r"[?？]\W*$|什么|谁|哪|怎|几|多少|是否|有没有|[吗呢]\W*$")

_OFTEN = r"(?:really |also |just |now |still |quite |do |much )*"
_NOT = r"(?:do not|don't|does not|doesn't|no longer)"
_LIKES = {
    "dislike": rf"i {_OFTEN}(?:{_NOT} {_OFTEN}(?:likes?|loves?|enjoy)|hates?|dislikes?) (.+)"
    "|我?(?:真的?|很|也|已经|现在|一点都?|最|并|都)*(?:不(?:再|太|大|怎么|是很)?(?:喜欢|爱)|讨厌)(?!的)(.+)",
    "like": rf"i {_OFTEN}(?:likes?|loves?|enjoys?) (.+)"
    "|(?:我(?:真的?|很|也|还|现在|最|特别|非常|更|挺|又)*(?:喜欢|爱)|喜欢)(?!的)(.+)",
}
_PRONOUN = re.compile(
    r"(?:it|that|this|them|you|your|him|her|his|their|these|those|how|when|what|if|whether)\b|[这那你您它他她]", re.I
)
_TAIL = re.compile(r"(?: (?:any ?more|now|at all|either|too|very much|so much|a lot))+$|(?:了|啊|呀)+$", re.I)
_NAME = re.compile(
    r"(call me|my name is|my name's) (.+)|我?(叫我|我叫|我的名字是|我的名字叫)(.+?)(?:吧|就行|就好|就可以)?了?", re.I
)
_REMEMBER = re.compile(
    r"(?:remember|note)(?: that|:) (.+)|remember ((?:i|i'm|my|we|our)\b.+)"
    r"|(?:你|帮我|要)*(?:记住|记下|记着)[，,：:]?(.+)",
    re.I,
)
_FACT = re.compile(
    r"(?:i(?:'m| am| was)|my (?:[\w'-]+ ){1,5}?(?:is|are|was|were))"
    r" (?!(?:not )?(?:\w+ing|interested|curious|sure|after|afraid)\b).+"
    r"|i (?:live|lived|work|worked|moved|used to|have(?! (?:to|a question|trouble|problems?)\b)) .+"
    r"|my (?:[\w'-]+ ){1,4}(?:lives|works|has|have) .+"
    r"|我(?:不?是(?!想|问|在)|不?住|有(?!问题|个问题|一个问题|疑问)|姓|今年|搬|的.{1,10}?(?:是|叫|住|在)|对.+过敏$"
    r"|最?喜欢的.{1,8}?是|不?在.+(?:工作|上班|上学))(?!.*(?:想|请|怎)).*",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    r"my (.+?) (?:is|are|was|were)\b|i (live|work) (?:in|at|for)\b|我(住|的.{1,8}?(?=是|叫|在))", re.I
)
_NEGATION = re.compile(
    r"\b(?:(?:do|does|did)(?: not|n't)|not|no longer|never|any ?more|at all)\b|n't\b|我|不再?|没有?|了\W*$", re.I
)


def read_preferences(message: str, facts: Iterable[str] = ()) -> tuple[list[Statement], str]:
    """Return what a message states of the person, and what of it remains to be answered.

    Args:
        message: what the person says.
        facts: noted earlier: a clause that denies one of them ends it.

    >>> statements, rest = read_preferences("I don't like brass bands, recommend something else.")
    >>> statements[0].about, statements[0].polarity, rest
    ('brass bands', 'dislike', 'recommend something else.')
    >>> [(s.section, s.about) for s in read_preferences("我叫小安，记住我住在成都。")[0]]
    [('name', '小安'), ('facts', '我住在成都')]
    """
    if len(message) > LONGEST:
        return [], message
    statements, rest, earlier = list[Statement](), list[str](), list(facts)
    for clause in _clauses(message.replace("’", "'")):
        bare = clause[_LEAD.match(clause.lower()).end() :].strip(" ,，.。!！;；\n")  # type: ignore[union-attr]
        if statement := None if _QUESTION.search(clause) or len(bare) > _LONGEST_CLAUSE else _read(bare, earlier):
            statements.append(statement)
        elif bare:
            rest.append(clause)
    left = " ".join(rest)
    if not all(s.section == NOT_KEPT for s in statements) or not left:
        return statements, "" if is_small_talk(left) else left
    return [], message


def _clauses(message: str) -> list[str]:
    clauses = list[str]()
    for sentence in sentences(message):
        cut = _CUT_ZH if CJK.search(sentence) and not _REMEMBER.search(sentence) else _CUT
        clauses += [part.strip() for part in cut.split(sentence)]
    return clauses


def _read(clause: str, facts: Iterable[str]) -> Statement | None:
    if match := _REMEMBER.fullmatch(clause):
        content = next(filter(None, match.groups())).strip()
        return read_note(content) or Statement("facts", content, content, "", _attribute(content))
    if statement := read_note(clause, own=True):
        return statement
    if not re.match(r"(?:i|i'm|my)\b|我", clause, re.I):
        return None
    if denied := next((fact for fact in facts if denies(clause, fact)), ""):
        return Statement(DENIAL, clause, denied)
    return Statement(NOT_KEPT, clause, clause) if _FACT.fullmatch(clause) else None


def read_note(text: str, own: bool = False) -> Statement | None:
    """Return the preference or the name in a note; with or without "I", unless it has to be the person's ``own``."""
    for polarity, pattern in _LIKES.items():
        subject = "" if own or re.match(r"i\b", text, re.I) or CJK.search(text) else "I "
        match = re.fullmatch(pattern, subject + text, re.I)
        about = _TAIL.sub("", next(filter(None, match.groups()), "").strip()) if match else ""
        if about and len(about) <= 80 and not _PRONOUN.match(about):
            return Statement("preferences", text, about, polarity)
    match = _NAME.fullmatch(text)
    name = (match[2] or match[4]).strip() if match else ""
    return Statement("name", text, name, "", "name") if match and _is_name(name, match[1] or "") else None


def _is_name(text: str, lead: str) -> bool:
    words = text.split()
    if CJK.search(text):
        return len(text) <= 12 and not re.match("[了不上你他她去来]", text)
    capitals = all(word[0].isupper() for word in words)
    return 0 < len(words) <= 4 and (capitals or (len(words) == 1 and "name" in lead.lower()))


def _attribute(text: str) -> str:
    match = _ATTRIBUTE.match(text)
    return fold(next(filter(None, match.groups()))) if match else ""


def same_thing(new: Statement, old: Statement) -> bool:
    """Return whether two statements are about the same words, so that the newer takes the place of the older.

    >>> oolong = Statement("preferences", "", "oolong", "like")
    >>> [same_thing(Statement("preferences", "", about, "dislike"), oolong) for about in ("oolong tea", "tea")]
    [True, False]
    """
    if new.section != old.section:
        return False
    if new.section != "preferences":
        return fold(new.content) == fold(old.content) or (bool(new.attribute) and new.attribute == old.attribute)
    short, long = sorted(([stem(t) for t in terms(_bare(s.about))] for s in (new, old)), key=len)
    kind = 2 if CJK.search(new.about) else 1  # "oolong" and "oolong tea", 乌龙 and 乌龙茶
    same_words = bool(short) and long[: len(short)] == short and len(long) - len(short) <= kind
    return long == short if new.polarity == old.polarity else same_words


def _bare(about: str) -> str:
    return re.sub(r"(?i)^(?:(?:the|a|to|watching|eating) )+|^[看吃喝听读玩](?=..)", "", fold(about))


def denies(clause: str, fact: str) -> bool:
    """Return whether a clause says of a fact, in its own words, that it is not so.

    >>> denies("I am not allergic", "I am allergic to peanuts"), denies("我不住在成都了", "我住在成都")
    (True, True)
    """
    words = [{stem(t) for t in terms(_NEGATION.sub(" ", text))} - {"i", "am", "im"} for text in (clause, fact)]
    negated = [bool(re.search(r"\bnot?\b|n't|\bnever\b|[不没]", text, re.I)) for text in (clause, fact)]
    return bool(words[0]) and words[0] <= words[1] and negated == [True, False]
