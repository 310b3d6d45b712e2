"""Follow-ups: a message that leans on the conversation, said again so that it stands alone.

Four ways of leaning: a pronoun or demonstrative ("he", 这部片子) takes a name from the turns before; an elliptic
question ("And Pushing Hands?", 那2005年以后呢？) puts its new name or condition into the question before; a question
without a subject (导演是谁？) gets one; a wish for more (再推荐几部) repeats what was wished. Whatever stands alone is
left letter by letter. The patterns are in ``question/followups.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.context import KnowledgeBase
from workbench.question.described import named_for_described
from workbench.question.filters import Asked, asked_fields
from workbench.question.intent import detect_intent, is_smalltalk
from workbench.question.language import patterns
from workbench.question.names import Named, bare, is_person, names_in
from workbench.question.reading import themes
from workbench.text import CJK, language_of

Link = Callable[[str], list[Named]]


@dataclass
class Turn:
    """A question, said so that it stands alone, with its names; its answer is linked when it is asked for."""

    question: str
    names: list[Named]
    link: Link
    answer: str = ""

    @cached_property
    def answered(self) -> list[Named]:
        """The known names of the answer."""
        return [name for name in self.link(self.answer) if name["bases"]]

    def named(self, person: bool) -> list[Named]:
        """The persons (or the rest) that the question names, or else those of the answer, the likeliest first."""
        asked = [n for n in reversed(self.names) if is_person(n) == person and (n["bases"] or not person)]
        return asked or [n for n in self.answered if is_person(n) == person]


def standalone(message: str, history: Sequence[Mapping[str, Any]], bases: Sequence[KnowledgeBase]) -> str:
    """The message as a question that stands alone.

    Args:
        message: what the user says now.
        history: the window of messages before it, oldest first, each with ``role`` and ``content``.
        bases: the knowledge bases whose names are known.
    """
    question = resolve(message, history, lambda text: names_in(text, bases))
    return named_for_described(question, names_in(question, bases), bases)


def resolve(message: str, history: Sequence[Mapping[str, Any]], link: Link) -> str:
    """As ``standalone``, with the names of a text given by ``link``. Earlier follow-ups are resolved first.

    >>> history = [{"role": "user", "content": "List comedies from the 1990s"}, {"role": "assistant", "content": "..."}]
    >>> resolve("And from the 1980s?", history, lambda text: [])
    'List comedies from the 1980s'
    """
    turns: list[Turn] = []
    for said in history:
        if said["role"] == "user" and not is_smalltalk(said["content"]):
            question = _against(said["content"], turns, link)
            turns.append(Turn(question, link(question), link))
        elif said["role"] == "assistant" and turns:
            turns[-1].answer += said["content"] + "\n"
    return _against(message, turns, link)


def _against(message: str, turns: Sequence[Turn], link: Link) -> str:
    """The message after these turns."""
    if not turns or is_smalltalk(message):
        return message
    wished = detect_intent(turns[-1].question, turns[-1].names)[0] in ("recommend", "list")
    if _says("more", message) and (wished or not _says("alike", message)):
        return turns[-1].question
    names = link(message)
    instead = (_narrowed(message, names, turns[-1]) if wished else "") or _beside(message, names, turns)
    if instead:
        return instead
    said = _with_antecedents(message, names, turns)
    if said != message:
        return said
    return _into_question(message, names, turns[-1]) or _with_subject(message, names, turns) or message


def _says(kind: str, text: str) -> re.Match[str] | None:
    return patterns("followups.txt")[kind].search(text)


# A pronoun takes a name.


def _with_antecedents(message: str, names: Sequence[Named], turns: Sequence[Turn]) -> str:
    """The message with every pronoun that has no antecedent of its own replaced by a name."""
    blanked = _blank(message, names)
    found: list[tuple[int, int, str]] = []
    for kind in ("they", "former", "nth", "he", "it"):
        for match in patterns("followups.txt")[kind].finditer(blanked):
            free = not any(start < match.end() and match.start() < end for start, end, _ in found)
            instead = _antecedents(kind, match, names, turns) if free else []
            if instead:
                found.append((*match.span(), _phrase(instead, match, message)))
    if not found and not names:
        found = _missing(message, turns)
    for start, end, phrase in sorted(found, reverse=True):
        message = message[:start] + phrase + message[end:]
    return _without_opener(message) if found else message


def _missing(message: str, turns: Sequence[Turn]) -> list[tuple[int, int, str]]:
    """What a comparison without its other side leaves out: "something similar", 类似的, "which came first?"."""
    chinese, last = language_of(message) == "zh", turns[-1]
    alike, which = _says("alike", message), _says("which", message)
    if which and len(last.names) > 1:
        sides = [_written(name, chinese) for name in last.names[:_SEVERAL]]
        if chinese:
            return [(which.start("which"), which.start("which"), _listed(sides, chinese))]
        end = len(message.rstrip(" ?."))
        return [(end, end, f", {' or '.join(sides)}")]
    model = _likeliest(turns, False) or _likeliest(turns, True)
    if alike and model:
        said = re.sub(r" (?:this|that)$", "", alike.group(), flags=re.I)
        joint = "" if chinese else " " if said.lower().endswith("like") else " to "
        return [(*alike.span(), f"{said}{joint}{_written(model[0], chinese)}")]
    return []


def _antecedents(kind: str, match: re.Match[str], names: Sequence[Named], turns: Sequence[Turn]) -> list[Named]:
    """The names that a pronoun stands for; none when it finds its own in the message."""
    before = [name for name in names if name["end"] <= match.start()]
    if kind in ("he", "it"):
        person = kind == "he"
        if any(is_person(name) == person for name in before) or (not person and _says("expletive", match.string)):
            return []
        return _likeliest(turns, person, _role_asked(match.string))
    if before:
        return []
    last = turns[-1]
    films = list({name["name"]: name for name in last.answered if not is_person(name)}.values())
    if kind == "nth":
        new = [name for name in films if name["name"] not in [asked["name"] for asked in last.names]]
        place = patterns("followups.txt")["ordinal"].search(match.group())
        at = _place(place.lastgroup or "") if place else 0
        return new[at:][:1] if at >= 0 else new[-1:]
    several = last.names if len(last.names) > 1 else films
    if len({is_person(name) for name in several[:2]}) > 1:
        several = _works_of(turns)[-2:]  # a person and a work are no pair
    if kind == "former":
        former = re.search(r"former|前", match.group(), re.I) is not None
        return several[:1] if former else several[1:2]
    return several[:_SEVERAL] if len(several) > 1 else []


def _works_of(turns: Sequence[Turn]) -> list[Named]:
    """The works that the questions named, each once, in the order in which they were spoken of last."""
    works: dict[str, Named] = {}
    for name in (name for turn in turns for name in turn.names if not is_person(name)):
        works.pop(name["name"], None)
        works[name["name"]] = name
    return list(works.values())


def _likeliest(turns: Sequence[Turn], person: bool, role: str = "") -> list[Named]:
    """The name spoken of last; of persons, one who has the role that is asked about, if anybody has."""
    spoken: list[Named] = []
    for turn in reversed(turns):
        spoken += turn.named(person)
        fitting = [name for name in spoken if not role or role in name["roles"]]
        if fitting:
            return fitting[:1]
    return spoken[:1]


def _role_asked(message: str) -> str:
    if re.search(r"\bdirect|\bfilmmak|导|拍", message, re.I):
        return "director"
    return "cast" if re.search(r"\bstar|\bact|\bplay|演", message, re.I) else ""


_SEVERAL = 4
_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}


def _place(ordinal: str) -> int:
    return _PLACES[ordinal]


def _phrase(names: Sequence[Named], match: re.Match[str], message: str) -> str:
    """Names as the message would write them, in the possessive where the pronoun was."""
    chinese = language_of(message) == "zh"
    words = list(dict.fromkeys(_written(name, chinese) for name in names))
    phrase = _listed(words, chinese)
    pronoun, after = match.group().lower(), message[match.end() :]
    owns = pronoun in ("his", "its", "their") or (
        pronoun == "her" and re.match(r" (?!in |to |on |with |from |for )\w", after)
    )
    return f"{phrase}'s" if owns else phrase


def _listed(words: Sequence[str], chinese: bool) -> str:
    """
    >>> _listed(["Hulk", "Tenet", "Memento"], False), _listed(["《喜宴》", "《推手》"], True)
    ('Hulk, Tenet and Memento', '《喜宴》和《推手》')
    """
    *first, last = words
    return (("、" if chinese else ", ").join(first) + ("和" if chinese else " and ") if first else "") + last


def _written(name: Named, chinese: bool) -> str:
    """A name in a sentence of that language: titles in 《》 in Chinese, no Chinese writing in English."""
    surface = bare(name["surface"])
    if not chinese:
        return name["name"] if CJK.search(surface) else surface
    return surface if is_person(name) else f"《{surface}》"


# An elliptic question goes into the question before.


def _into_question(message: str, names: Sequence[Named], last: Turn) -> str:
    """The question before with the names and conditions of an elliptic one put in place of its own, or ""."""
    opened = _says("opener", message)
    rest, begin = _fragment(message)
    asked = [ask for ask in asked_fields(message, names) if ask.field not in ("director", "cast")]
    if not rest or _says("asks", _blank(message, names)[begin : begin + len(rest)]):
        return ""
    if names and _says("work", rest):
        return _without_opener(message)  # "And the director of Inception?" asks a thing of its own
    leftover = themes(_blank(message, names, asked))
    questioned = bool(opened) or re.search(r"[?？]\s*$|呢", message) is not None
    if leftover:
        return _appended(last.question, rest) if opened and not _of_a_thing(rest) else ""
    if not (asked or (names and questioned)):
        return ""
    return _replaced(message, rest, names, asked, last)


def _narrowed(message: str, names: Sequence[Named], last: Turn) -> str:
    """The wish before under one more condition: "再推荐几部90年代的", "which of them are comedies?"."""
    asked = asked_fields(message, names)
    if not names and _says("superlative", message):
        return _appended(last.question, _fragment(message)[0])
    if not asked or not _says("more_of", message) or themes(_blank(message, names, asked)):
        return ""
    if names:
        return _with_people(names, asked, last)
    return _replaced(message, "", [], asked, last)


def _with_people(names: Sequence[Named], asked: Sequence[Asked], last: Turn) -> str:
    """The wish before for works that these people are in, or made; "" when the message names anything else."""
    roles = {str(ask.value): ask.field for ask in asked if ask.field in ("director", "cast")}
    if not all(name["name"] in roles for name in names):
        return ""
    chinese, question = language_of(last.question) == "zh", last.question
    for name in names:
        english, zh = ("starring {}", "由{}主演") if roles[name["name"]] == "cast" else ("directed by {}", "由{}导演")
        question = _appended(question, (zh if chinese else english).format(_written(name, chinese)))
    return question


def _beside(message: str, names: Sequence[Named], turns: Sequence[Turn]) -> str:
    """ "和《推手》比呢？": what was spoken of last beside the new name; "" for any other message."""
    last = _likeliest(turns, is_person(names[0])) if len(names) == 1 else []
    if not last or not _says("beside", _blank(message, names)):
        return ""
    chinese = language_of(message) == "zh"
    sides = [_written(name, chinese) for name in (*last, *names)]
    return f"对比{_listed(sides, True)}" if chinese else f"Compare {_listed(sides, False)}"


def _replaced(message: str, rest: str, names: Sequence[Named], asked: Sequence[Asked], last: Turn) -> str:
    """Swap names of the same kind and conditions on the same field; what has no counterpart is appended."""
    swaps: list[tuple[int, int, str]] = []
    added: list[str] = []
    for name, old in _pairs(names, last.names):
        if old:
            swaps.append((old["start"], old["end"], _dressed(name["surface"], old["surface"])))
        else:
            added.append(name["surface"])
    theirs = {ask.field: ask for ask in asked_fields(last.question, last.names)}
    for ask in asked:
        phrase, old_ask = message[ask.start : ask.end], theirs.get(ask.field)
        if old_ask:
            swaps.append((old_ask.start, old_ask.end, phrase))
        else:
            added.append(phrase)
    question = last.question
    for start, end, phrase in sorted(swaps, reverse=True):
        question = question[:start] + phrase + question[end:]
    if added and not swaps and rest:
        return _appended(question, rest)
    return _appended(question, " ".join(added)) if added else question


def _pairs(names: Sequence[Named], old: Sequence[Named]) -> list[tuple[Named, Named | None]]:
    """Each new name with the old one that it takes the place of: of its kind, the last ones of the question."""
    pairs: list[tuple[Named, Named | None]] = []
    for person in (False, True):
        new = [name for name in names if is_person(name) == person]
        same = [name for name in old if is_person(name) == person]
        if new and not same and len(old) == len(new) and not all(name["bases"] for name in [*new, *old]):
            same = list(old)  # what nobody knows may be of either kind
        places = same[-len(new) :] if new else []
        pairs += [(name, places[i] if i < len(places) else None) for i, name in enumerate(new)]
    return pairs


def _dressed(new: str, old: str) -> str:
    """The new name, in 《》 if the old one was."""
    return f"《{new}》" if old.startswith("《") and not new.startswith("《") else new


def _fragment(message: str) -> tuple[str, int]:
    """The message without its opener ("and", 那) and its tail (呢？), and where that begins."""
    opened = _says("opener", message)
    begin = opened.end() if opened else 0
    tail = _says("tail", message[begin:])
    return message[begin : begin + tail.start()].strip() if tail else message[begin:].strip(), begin


def _appended(question: str, words: str) -> str:
    """Words at the end of a question, before its mark.

    >>> _appended("List Ang Lee films.", "after 2005"), _appended("列出李安的电影", "2005年以后的")
    ('List Ang Lee films after 2005.', '列出李安的电影，2005年以后的')
    """
    said = question.rstrip(" ?？.。!！")
    joint = "，" if CJK.search(said[-1:]) else " " if _says("preposition", words) else ", "
    return said + joint + words + question[len(said) :]


def _without_opener(message: str) -> str:
    opened = _says("opener", message)
    rest = message[opened.end() :] if opened else message
    return rest[:1].upper() + rest[1:] if rest.strip() else message


# A question without a subject gets one.


def _with_subject(message: str, names: Sequence[Named], turns: Sequence[Turn]) -> str:
    """导演是谁？ of the work that was spoken of, 还导演过什么？ of the person; "" when the message has its subject."""
    if names:
        return ""
    rest, _ = _fragment(message)
    person = _says("of_a_person", rest) is not None
    if not person and not _of_a_thing(rest):
        return ""
    found = _likeliest(turns, person, _role_asked(rest) if person else "")
    if not found:
        return ""
    chinese = language_of(message) == "zh"
    subject = _written(found[0], chinese)
    if chinese:
        joint = "" if _says("asks", rest) else "的"
        return f"{subject}{joint}{_without_opener(message).lstrip('的')}"
    words = rest.rstrip(" ?.!")
    joint = (
        " "
        if re.search(r"(?:directed|wrote|made|released|produced)$", words)
        else " in "
        if words.endswith("starred")
        else " of "
    )
    return f"{words[:1].upper()}{words[1:]}{joint}{subject}?"


def _of_a_thing(rest: str) -> bool:
    """Whether nothing is said but what can be asked of a work: its director, its year, its plot."""
    left = patterns("followups.txt")["work"].sub(" ", rest)
    return left != rest and not re.search(r"\w", patterns("followups.txt")["glue"].sub(" ", left))


def _blank(message: str, names: Sequence[Named], asked: Sequence[Asked] = ()) -> str:
    """The message with its names, and what it asks of fields, blotted out at the same length."""
    for start, end in [*((n["start"], n["end"]) for n in names), *((a.start, a.end) for a in asked)]:
        message = message[:start] + "_" * (end - start) + message[end:]
    return message
