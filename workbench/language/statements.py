"""What a message says of the person that is worth remembering, and what of it is still a question.

A small default that would rather miss than be wrong: a message is cut into clauses, and a clause states something when
the whole of it fits one of a few grammatical patterns, in English or Chinese (``statements.toml``). Whatever fits none
is left as it is, so a question stays whole. The role ``memory`` reads more, with a model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

from workbench.language.judging import stems
from workbench.language.question import is_small_talk
from workbench.text import CJK, fold, simplified

Kind = Literal["preference", "fact", "intent", "correction"]
ONE_OF_A_KIND = ("name", "home", "age", "job")
"""Facts of which a person has one: a new one takes the place of the old."""
_LONGEST, _LONGEST_CLAUSE, _MOST = 2_000, 200, 60
"""Characters of a message and of a clause, and clauses, that are read; what is more is pasted, not said."""


@dataclass(frozen=True)
class Statement:
    """What a person says of themselves.

    Args:
        polarity: ``like`` or ``dislike``, of a preference and of the correction of one; else "".
        about: the thing, as a person would note it.
        text: a note that stands alone, in the words of the message.
        replaces: of a correction, the words by which the earlier one is known.
        attribute: what kind of fact, where grammar tells it: ``name``, ``job``, ``home``, ``daughter`` ...
    """

    kind: Kind
    polarity: Literal["like", "dislike", ""]
    about: str
    text: str
    replaces: str = ""
    attribute: str = ""


@dataclass(frozen=True)
class Recall:
    """A question for the conversation itself: of what, said by whom, and the how manieth (``first``, ``last``)."""

    about: str
    whose: Literal["user", "assistant", ""]
    which: str


@dataclass(frozen=True)
class Read:
    """What a message states, what of it is still to be answered, and whether it asks for what was said.

    ``rest`` is the whole message unless it states what is so or is liked; "" when then nothing is left that could ask.
    """

    statements: list[Statement] = field(default_factory=list)
    rest: str = ""
    recalls: Recall | None = None


@dataclass(frozen=True)
class _Pattern:
    regex: re.Pattern[str]
    given: dict[str, Any]


@dataclass(frozen=True)
class _Clause:
    text: str
    start: int
    end: int
    closed: str
    sentence: int


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("statements.toml").read_text(encoding="utf-8"))


def _compiled(written: str) -> re.Pattern[str]:
    parts = {**_words()["parts"], **{name: _words()["recalls"][name] for name in "说问讲忆亲"}}
    return re.compile(re.sub(r"\{([A-Z]+|[\u4e00-\u9fff])\}", lambda match: parts[match[1]], written))


@cache
def phrase(section: str, name: str) -> re.Pattern[str]:
    """The pattern of that name."""
    return _compiled(_words()[section][name])


@cache
def _many(section: str, name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(_compiled, _words()[section][name]))


@cache
def _patterns() -> tuple[_Pattern, ...]:
    return tuple(_Pattern(_compiled(one), given) for given in _words()["patterns"] for one in given["re"])


def read_statements(message: str, earlier: Sequence[str] = ()) -> Read:
    """What a message states of the person, what of it is still to be answered, what it asks to be recalled.

    Args:
        message: what the user says.
        earlier: what the user said before, oldest first: a statement that contradicts one of them corrects it.

    >>> read = read_statements("I don't like brass bands, recommend something else")
    >>> [(s.kind, s.polarity, s.about) for s in read.statements], read.rest
    ([('preference', 'dislike', 'brass bands')], 'recommend something else')
    >>> read_statements("我刚才说的那个画家是谁？").recalls
    Recall(about='那个画家', whose='user', which='')
    """
    message = message.strip()
    read = _alone(message) if len(message) <= _LONGEST else Read([], message)
    if read.recalls or not earlier:
        return read
    corrected = _corrected(read, earlier) or _swapped(message, earlier)
    return Read(corrected, read.rest if read.statements or not corrected else "")


@lru_cache(maxsize=4096)
def _alone(message: str) -> Read:
    if not message or is_small_talk(message):
        return Read([], message)
    clauses = _clauses(_plain(message))
    if recall := _recall(message, clauses):
        return Read([], "", recall)
    said: dict[int, Statement] = {}
    off = -1  # the sentence of which the rest is supposed or quoted
    for i, clause in enumerate(clauses[:_MOST]):
        if clause.closed[:1] in (":", "：") or phrase("none", "supposes").search(clause.text):
            off = clause.sentence
        goes_on = i - 1 in said and clauses[i - 1].sentence == clause.sentence
        if clause.sentence != off and i not in said and (found := _stated(message, clause, goes_on)):
            last = _listed(clauses, i)
            more, end = message[clause.end : clauses[last].end], clauses[last].end
            one = replace(found, about=found.about + more, text=_note(message[clause.start : end]))
            said |= dict.fromkeys(range(i, last + 1), one)
    return Read(list(dict.fromkeys(said.values())), _rest(message, clauses, said))


def _plain(message: str) -> str:
    """In lower case and simplified characters, quotations blotted out; every character stays in its place."""
    low = "".join(c.lower() if len(c.lower()) == 1 else c for c in simplified(message)).replace("’", "'")
    return phrase("none", "quoted").sub(lambda match: match[0][0] + "_" * (len(match[0]) - 2) + match[0][-1], low)


def _clauses(plain: str) -> list[_Clause]:
    found, start, sentence = list[_Clause](), 0, 0
    ends = [(match.start(), match.end()) for match in phrase("none", "break").finditer(plain)]
    for begin, end in [*ends, (len(plain), len(plain))]:
        closed = plain[begin:end].strip()
        if plain[start:begin].strip():
            found.append(_Clause(plain[start:begin], start, begin, closed, sentence))
        elif found and closed:
            found[-1] = replace(found[-1], closed=found[-1].closed + closed)
        sentence += bool(re.search(r"[.。！!?？…\n]", closed))
        start = end
    return found


def _stated(message: str, clause: _Clause, goes_on: bool) -> Statement | None:
    """What a clause states; a question states nothing.

    Args:
        goes_on: whether a clause without a subject is said of the person: 我喜欢散文，但不喜欢诗.
    """
    if clause.closed[:1] in ("?", "？") or len(clause.text) > _LONGEST_CLAUSE:
        return None
    joint = phrase("none", "joint").match(clause.text)
    at = joint.end() if joint else 0
    dropped = "我" if CJK.search(clause.text) else "i "
    for me in ("", dropped) if goes_on else ("",):
        for pattern in _patterns():
            if match := pattern.regex.fullmatch(me + clause.text[at:]):
                shift = clause.start + at - len(me)
                cut = {n: message[shift + match.start(n) : shift + match.end(n)] for n in match.groupdict()}
                about = _bare(cut["about"])
                if about and not phrase("none", "pointing").match(about):
                    return _statement(pattern.given, about, cut, _note(message[clause.start : clause.end]))
    return None


def _listed(clauses: list[_Clause], i: int) -> int:
    """The clause with which a list ends that begins in this one: "jazz, blues and soul"."""
    for j, clause in enumerate(clauses[i + 1 : i + 9], i + 1):
        items = clauses[j - 1].closed in (",", "，") and clause.sentence == clauses[i].sentence
        if not items or len(clause.text.split()) > 4 or CJK.search(clause.text) or asks(clause.text):
            return i
        if re.search(r"\w (?:and|or) \w|^ ?(?:and|or) ", clause.text):
            return j
    return i


def _statement(given: dict[str, Any], about: str, cut: dict[str, str], text: str) -> Statement:
    attribute = " ".join(filter(None, (given.get("attribute", ""), cut.get("of", "").strip())))
    return Statement(given["kind"], given.get("polarity", ""), about, text, "", attribute)


def _bare(words: str) -> str:
    """A thing without the words around it.

    >>> _bare("watching any brass bands at all."), _bare("看那种恐怖片了")
    ('brass bands', '恐怖片')
    """
    for side in ("lead", "lead", "tail"):
        words = phrase("none", side).sub("", words.strip(" \t,，.。!！、:："))
    whole = phrase("none", "quoted").fullmatch(words)
    return words[1:-1] if whole and words[0] != "《" else words.strip(" \t,，.。!！、:：")


def _note(words: str) -> str:
    """A note without what joins it to what stood before.

    >>> _note(" but I live in Leeds"), _note("所以我住在北京")
    ('I live in Leeds', '我住在北京')
    """
    return phrase("none", "joint").sub("", words).strip(" \t\n,，;；:：-–—")


def asks(text: str) -> bool:
    """Whether some words ask or order something: by a question mark, or by how they begin.

    >>> [asks(text) for text in ("recommend something else", "the weather is fine", "换个别的推荐吧", "今天天气真好")]
    [True, False, True, False]
    """
    return bool(re.search("[?？]", text) or phrase("asks", "asks").search(text.lower()))


def _rest(message: str, clauses: list[_Clause], said: dict[int, Statement]) -> str:
    """The message without its statements when what is left asks or orders something; what is intended stays with it.

    "" when what is left only tells something, and the whole message when that is not plain.
    """
    left = [i for i in range(len(clauses)) if i not in said or said[i].kind == "intent"]
    if not any(asks(clauses[i].text + clauses[i].closed[:1]) for i in left):
        plain = all(is_small_talk(clauses[i].text) or phrase("asks", "tells").match(clauses[i].text) for i in left)
        intends = any(one.kind == "intent" for one in said.values())
        return "" if said and plain and not intends else message
    ends = [clause.start for clause in clauses[1:]] + [len(message)]
    pieces = [message[clauses[i].start : ends[i]] + ("" if i + 1 in left else " ") for i in left]
    return _note("".join(pieces))


# --- What was said before ---


def _recall(message: str, clauses: list[_Clause]) -> Recall | None:
    """What a clause asks of the conversation; where it names nothing, of what the clause before it says."""
    for i, clause in enumerate(clauses[:_MOST]):
        text = clause.text + ("?" if clause.closed[:1] in ("?", "？") else "")
        if len(text) > _LONGEST_CLAUSE or not asks(text) or phrase("none", "supposes").search(text):
            continue
        zh = bool(CJK.search(text))
        match = next(filter(None, (one.search(text) for one in _many("recalls", "zh" if zh else "en"))), None)
        before = phrase("recalls", "before").search(clauses[i - 1].text) if i else None
        if match is None and before and phrase("recalls", "of_it").match(text):
            match = before
        if match:
            about = _about(message[clause.start : clause.end], zh)
            if before and (match is before or not about):
                about = _about(message[clauses[i - 1].start : clauses[i - 1].end], zh)
            who = next(filter(None, match.groups()), "")
            return Recall(about, _whose(who), _which(text))
    return None


def _about(words: str, zh: bool) -> str:
    """What is left of a question for the conversation without the words that make it one.

    >>> _about("What did I say about brass bands", zh=False), _about("数据库我们最后是怎么定的", zh=True)
    ('brass bands', '数据库')
    """
    if zh:
        parts = (part.strip().lstrip("的") for part in phrase("recalls", "between_zh").split(words) if part)
        return max(parts, key=len, default="")
    after = phrase("recalls", "after_en").search(words)
    words = after[1] if after else phrase("recalls", "inside_en").sub(" ", words)
    for _ in range(2):
        words = phrase("recalls", "edge_en").sub("", words)
    return " ".join(words.split()).strip(" ,.?'\"")


def _whose(who: str) -> Literal["user", "assistant", ""]:
    if not who or re.search(r"we|us|our|[我咱]们|咱", who):
        return ""
    return "user" if re.match(r"i\b|m[ey]\b|我", who) else "assistant"


def _which(text: str) -> str:
    return next((one for one in ("first", "last") if phrase("recalls", one).search(text)), "")


# --- What replaces what ---


def _corrected(read: Read, earlier: Sequence[str]) -> list[Statement]:
    """The statements, those that take the place of something said before as corrections."""
    before = [s for said in earlier if len(said) <= _LONGEST for s in _alone(said.strip()).statements]
    found = []
    for one in read.statements:
        old = next((s for s in reversed(before) if same_thing(one, s) and not _agree(one, s)), None)
        found.append(replace(one, kind="correction", replaces=old.about) if old else one)
    return found


def _swapped(message: str, earlier: Sequence[str]) -> list[Statement]:
    """A correction that names what was said and what is so: "I meant Thursday, not Tuesday", 是周五不是周四."""
    plain = _plain(message) if len(message) <= _LONGEST_CLAUSE else ""
    if not phrase("corrections", "marked").search(plain) or "?" in plain or "？" in plain:
        return []
    match = next(filter(None, (one.search(plain) for one in _many("corrections", "of"))), None)
    if not match:
        return []
    new, old = (_bare(message[match.start(n) : match.end(n)]) for n in ("new", "old"))
    whole = next((one for one in reversed(earlier) if old and old.lower() in one.lower()), "")
    at = whole.lower().find(old.lower())
    about = re.sub(r"\b(\w+) \1\b", r"\1", whole[:at] + new + whole[at + len(old) :]).strip(" .。!！") if whole else new
    return [Statement("correction", "", about, about if whole else _note(message), old)] if new else []


def _agree(one: Statement, other: Statement) -> bool:
    """Whether they say the same, so that neither corrects the other."""
    same = fold(one.about) == fold(other.about) or (bool(_keys(one.about)) and _keys(one.about) == _keys(other.about))
    if one.attribute and one.attribute == other.attribute and not (one.polarity or other.polarity):
        return same
    return one.polarity == other.polarity and (same or not one.attribute)


def _keys(text: str) -> tuple[str, ...]:
    """The stems of a thing, what tells it apart first: of "books by Orwell" Orwell."""
    parts = re.split(r"\b(?:by|of|with|from|about|in)\b", fold(text))
    return tuple(
        dict.fromkeys(stem for part in reversed(parts) for word in part.split() for stem in sorted(stems(word)))
    )


def same_thing(one: Statement, other: Statement) -> bool:
    """Whether the newer statement takes the place of the older: of one kind, and about the same.

    A thing is the same when one is called by the first words of the other: what is only its kind is another thing.

    >>> from functools import partial
    >>> liked = partial(Statement, "preference", "like", text="")
    >>> same_thing(liked("brass"), liked("brass bands")), same_thing(liked("bands"), liked("brass bands"))
    (True, False)
    >>> same_thing(liked("恐怖片"), liked("看恐怖片")), same_thing(liked("片"), liked("恐怖片"))
    (True, False)
    """
    if one.kind != other.kind and "correction" not in (one.kind, other.kind):
        return False
    if one.attribute != other.attribute and (one.attribute and other.attribute):
        return False
    if one.attribute and one.attribute == other.attribute:
        if one.attribute in ONE_OF_A_KIND or one.attribute.startswith("favourite "):
            return True
        if one.kind != "preference" and one.attribute != "health":
            return True
    return any(_overlap(a, b) for a in filter(None, (one.about, one.replaces)) for b in filter(None, (other.about,)))


def names(thing: str, text: str) -> bool:
    """Whether a text names a thing in its own words.

    >>> names("brass bands", "I can do without a brass band"), names("恐怖片", "恐怖片看腻了"), names("band", "Bandage")
    (True, True, False)
    """
    if CJK.search(thing):
        return fold(thing).replace(" ", "") in fold(text).replace(" ", "")
    return bool(_keys(fold(thing))) and set(_keys(fold(thing))) <= set(_keys(fold(text)))


def _overlap(one: str, other: str) -> bool:
    a, b = (re.sub(r"^(?:看|吃|喝|听|读|玩)(?=..)", "", fold(text)) for text in (one, other))
    if CJK.search(a) or CJK.search(b):
        short, long = sorted((a.replace(" ", ""), b.replace(" ", "")), key=len)
        return bool(short) and (long.startswith(short) and (len(short) > 1 or len(long) == 1))
    short_keys, long_keys = sorted((_keys(a), _keys(b)), key=len)
    return bool(short_keys) and set(short_keys) <= set(long_keys) and long_keys[0] in short_keys
