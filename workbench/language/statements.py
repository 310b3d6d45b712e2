"""What a message says of the person that is worth remembering, and what of it is still a question.

By grammar and speech acts, in English and Chinese (``statements.toml``): a message is cut into clauses, and each states
something of the person, asks or orders something, asks for what was said before, or is none of them. Quotations,
suppositions, irony and what others like state nothing.
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
from workbench.language.reading import is_smalltalk
from workbench.text import CJK, STOP_WORDS, fold, simplified

Kind = Literal["preference", "fact", "intent", "correction"]
ONE_OF_A_KIND = ("name", "home", "age", "job")
"""Facts of which a person has one: a new one takes the place of the old."""
_MOST = 60
"""Clauses of a message that are read for statements."""
_LONGEST = 400
"""Characters of a clause that is read; a longer one is pasted text."""


@dataclass(frozen=True)
class Statement:
    """What a person says of themselves.

    Args:
        polarity: ``like`` or ``dislike``, of a preference and of the correction of one; else "".
        about: the thing, as a person would note it.
        text: a note that stands alone, in the words of the message.
        replaces: of a correction, the words by which the earlier one is known.
        attribute: what kind of fact, where grammar tells it: ``name``, ``job``, ``home``, ``my sister`` ...
    """

    kind: Kind
    polarity: Literal["like", "dislike", ""]
    about: str
    text: str
    replaces: str = ""
    attribute: str = ""


@dataclass(frozen=True)
class Recall:
    """A question for the conversation itself: of what, said by whom, and the how manieth (``first``, ``last``, "3")."""

    about: str
    whose: Literal["user", "assistant", ""]
    which: str


@dataclass(frozen=True)
class Read:
    """What a message states, what of it is still a question or an order, and whether it asks for what was said."""

    statements: list[Statement] = field(default_factory=list)
    rest: str = ""
    recalls: Recall | None = None


# --- The words (``statements.toml``) as patterns ---


@dataclass(frozen=True)
class _Pattern:
    regex: re.Pattern[str]
    given: dict[str, Any]

    def search(self, text: str) -> dict[str, tuple[int, int]] | None:
        """Group -> its place."""
        match = self.regex.search(text)
        if not match:
            return None
        return {n.rstrip("0123456789_"): match.span(n) for n, value in match.groupdict().items() if value}


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("statements.toml").read_text(encoding="utf-8"))


def _compiled(written: str) -> re.Pattern[str]:
    parts = _words()["parts"]
    while (grown := re.sub(r"\{([A-Z]+|[\u4e00-\u9fff]+)\}", lambda match: parts[match[1]], written)) != written:
        written = grown
    number = iter(range(1000))
    return re.compile(re.sub(r"\(\?P<([a-z]+)\d*>", lambda match: f"(?P<{match[1]}_{next(number)}>", written))


@cache
def phrase(section: str, name: str) -> re.Pattern[str]:
    """The pattern of that name."""
    return _compiled(_words()[section][name])


@cache
def _many(section: str) -> tuple[_Pattern, ...]:
    given = _words()[section]
    return tuple(_Pattern(_compiled(one["re"]), one) for one in (given["of"] if isinstance(given, dict) else given))


@cache
def _lasting() -> tuple[re.Pattern[str], ...]:
    """Orders that last, which say what somebody likes: "stop suggesting musicals", 以后用英文."""
    return *(one.regex for one in _many("patterns") if one.given.get("lasts")), phrase("replies", "standing")


# --- Clauses ---


@dataclass(frozen=True)
class _Clause:
    text: str
    start: int
    end: int
    closed: str
    sentence: int


def _plain(message: str) -> str:
    """In lower case and simplified characters, quotations blotted out; every character stays in its place."""
    low = "".join(c.lower() if len(c.lower()) == 1 else c for c in simplified(message))
    low = phrase("changes", "polite").sub(lambda match: " " * len(match[0]), low.replace("’", "'"))
    return phrase("edges", "quoted").sub(lambda match: match[0][0] + "_" * (len(match[0]) - 2) + match[0][-1], low)


def _clauses(plain: str) -> list[_Clause]:
    found, start, sentence = [], 0, 0
    for match in phrase("edges", "break").finditer(plain):
        if match[0].strip() in (",", "，") and phrase("edges", "leans").search(plain[start : match.start()]):
            continue
        if plain[start : match.start()].strip():
            found.append(_Clause(plain[start : match.start()], start, match.start(), match[0].strip(), sentence))
        elif found and match[0].strip():
            found[-1] = replace(found[-1], closed=found[-1].closed + match[0].strip())
        sentence += bool(re.search(r"[.。！!?？…\n]", match[0]))
        start = match.end()
    if plain[start:].strip():
        found.append(_Clause(plain[start:], start, len(plain), "", sentence))
    return found


# --- Reading ---


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
    read, marked = _alone(message.strip())
    if read.recalls or not (earlier or marked):
        return read
    plain = _plain(message.strip())
    return replace(read, statements=_corrected(message.strip(), plain, _clauses(plain), read.statements, earlier))


@lru_cache(maxsize=4096)
def _alone(message: str) -> tuple[Read, bool]:
    """What it says by itself, and whether it says that it corrects something."""
    plain = _plain(message)
    if not plain or is_smalltalk(message):
        return Read(), False
    clauses = _clauses(plain)
    if recall := _recall(message, clauses):
        return Read([], "", recall), False
    if phrase("none", "irony").search(plain):
        return Read([], _rest(message, clauses, set())), False
    said: dict[int, list[Statement]] = _Said(message, clauses).statements()
    statements = list(dict.fromkeys(statement for found in said.values() for statement in found))
    return Read(statements, _rest(message, clauses, set(said))), _corrects(plain, clauses)


def _corrects(plain: str, clauses: Sequence[_Clause]) -> bool:
    if re.search(r"不是[^，,。]+[，,]\s*(?:而?是|在)|是[^，,。]+[，,]\s*不是", plain):
        return True
    return any(phrase("corrections", "strong").search(clause.text) for clause in clauses)


_DISLIKED = {"kind": "preference", "polarity": "dislike"}


class _Said:
    """The statements of the clauses of a message."""

    def __init__(self, message: str, clauses: list[_Clause]):
        self.message = message
        self.clauses = clauses
        self.of_me = True
        """Whether a clause without a subject is said of the person."""

    def statements(self) -> dict[int, list[Statement]]:
        """By the number of the clause."""
        found: dict[int, list[Statement]] = {}
        closed = -1
        for i, clause in enumerate(self.clauses[:_MOST]):
            before = [c.text for c in self.clauses[:i] if c.sentence == clause.sentence]
            supposed = any(phrase("none", "supposes").search(c) for c in [*before, clause.text])
            if clause.sentence != closed and i:
                closed = -1
            if clause.sentence == closed or supposed or len(clause.text) > _LONGEST:
                continue
            reported = phrase("none", "reports").search(clause.text) and not phrase("none", "mine").search(clause.text)
            if reported or (clause.closed[:1] in (":", "：") and _asks(clause.text)):
                closed = clause.sentence
            if replied := self._replied(i):
                found[i] = found[i + 1] = replied
                continue
            if self._asked(clause) and not self._orders_no_more(clause):
                if not before and re.match(r"\W*(?:why|how|do|does|did|is|are|难道|为什么)", clause.text):
                    closed = clause.sentence
                continue
            if read := self._of(i, clause):
                listed = {self.clauses.index(more): list[Statement]() for more in self._listed(i)}
                found |= {i: read, **listed}
        return found

    def _replied(self, i: int) -> list[Statement]:
        """A thing that is asked of oneself and answered: "Musicals? No thanks." """
        if i + 1 == len(self.clauses) or self.clauses[i].closed[:1] not in ("?", "？") or _asks(self.clauses[i].text):
            return []
        clause, answer = self.clauses[i], self.clauses[i + 1].text
        for polarity in ("dislike", "like"):
            if len(clause.text) <= 40 and phrase("replies", polarity).match(answer):
                about = _bare(self.message[clause.start : clause.end], "preference")
                text = _note(self.message[clause.start : self.clauses[i + 1].end])
                return [Statement("preference", polarity, about, text)] if about else []
        return []

    def _asked(self, clause: _Clause) -> bool:
        return clause.closed[:1] in ("?", "？") or _asks(clause.text)

    def _orders_no_more(self, clause: _Clause) -> bool:
        return clause.closed[:1] not in ("?", "？") and any(pattern.search(clause.text) for pattern in _lasting())

    def _of(self, i: int, clause: _Clause) -> list[Statement]:
        text = clause.text
        if phrase("none", "idiom").search(text):
            return []
        if name := phrase("edges", "named").fullmatch(self.message[clause.start : clause.end].strip()):
            return [Statement("fact", "", name[1], _note(name[0]), "", "name")]
        past = phrase("none", "past").search(text)
        if past:
            return self._no_more(i, clause)
        first = i == 0 or self.clauses[i - 1].sentence != clause.sentence
        if not first and phrase("none", "limits").match(text):
            return []  # of what is asked here, and of nothing else
        called = phrase("edges", "noun_zh").search(self.clauses[-1].text if i + 1 < len(self.clauses) else text)
        me, joint = self._subject(text) if self.of_me and not called else ("", 0)
        for pattern in _many("patterns"):
            places = pattern.search(me + text[joint:])
            shift = joint - len(me)
            places = places and {name: (start + shift, end + shift) for name, (start, end) in places.items()}
            if places and "about" in places and (read := self._made(clause, pattern.given, places)):
                self.of_me = True
                return read
        less = phrase("none", "but_not").match(text) if i else None
        if less and any(one.polarity == "like" for one in self._of(i - 1, self.clauses[i - 1])):
            return self._made(clause, _DISLIKED, {"about": less.span(1)})
        if not re.match(r"\W*(?:i\b|我(?!们?的?(?:爸|妈|哥|姐|弟|妹|朋友|同事|老)))", text):
            self.of_me = not re.search(
                r"\b(?:he|she|they|people|everyone|my|his|her|\w+s)\b|喜欢|爱|讨厌|说|觉得|认为", text
            )
        return []

    def _subject(self, text: str) -> tuple[str, int]:
        """The person, where a clause leaves them out ("Hate olives.", 但不喜欢恐怖片), and where they would stand."""
        joint = re.match(r"\W*(?:(?:但是?|不过|可是|而且?|所以|but|and)\s*)?", text)
        start = joint.end() if joint else 0
        if phrase("edges", "bare_zh").match(text, start):
            return "我", start
        return ("i ", start) if phrase("edges", "bare_en").match(text, start) else ("", 0)

    def _no_more(self, i: int, clause: _Clause) -> list[Statement]:
        """What was liked and is no longer: the next clause, or the end of this one, says so."""
        later = " ".join(c.text for c in self.clauses[i : i + 2])
        past = phrase("none", "was").search(clause.text)
        if not past or not phrase("none", "over").search(later):
            return []
        return self._made(clause, _DISLIKED, {"about": past.span(past.lastindex or 0)}, later=True)

    def _made(
        self, clause: _Clause, given: dict[str, Any], places: dict[str, tuple[int, int]], later: bool = False
    ) -> list[Statement]:
        about = self._thing(clause, places["about"], given["kind"])
        i = self.clauses.index(clause)
        if i and re.fullmatch(r"(?:it|them|它们?|那个)", about, re.I):
            about = self._meant(self.clauses[i - 1]) or about
        if not about or (given["kind"] == "preference" and phrase("none", "pointing").match(_plain(about))):
            return []
        start, end = clause.start, clause.end
        if later and i + 1 < len(self.clauses):
            end = self.clauses[i + 1].end
        elif places["about"][1] >= len(clause.text.rstrip()):
            end = max([end, *(more.end for more in self._listed(i))])
            about += self.message[clause.end : end]
        attribute = given.get("attribute", "")
        if not attribute and (place := places.get("attribute")):
            attribute = self._cut(clause, place).strip()
            attribute = f"favourite {attribute}" if given["kind"] == "preference" else attribute
        text = _note(self.message[start:end])
        one = Statement(given["kind"], given.get("polarity", ""), about, text, "", attribute)
        less = self._thing(clause, places["less"], given["kind"]) if "less" in places else ""
        return [one, replace(one, polarity="dislike", about=less)] if less else [one]

    def _meant(self, clause: _Clause) -> str:
        """What a clause names, which the next one calls "it" or "them"; "" where it says more than a name."""
        named = re.sub(r"^\W*(?:and |but |so )?(?:no|the|those|these|all)?\b", "", clause.text)
        if not named.strip() or phrase("edges", "says").search(named) or len(named.split()) > 5:
            return ""
        return self.message[clause.end - len(named) : clause.end].strip()

    def _listed(self, i: int) -> list[_Clause]:
        """The clauses behind that go on with the list with which this one ends: "jazz, blues and soul"."""
        found: list[_Clause] = []
        for clause in self.clauses[i + 1 :]:
            listed = self.clauses[i].closed in (",", "，") and clause.sentence == self.clauses[i].sentence
            words = clause.text.split()
            short = len(words) <= 4 and not CJK.search(clause.text)
            if (
                not (listed and short)
                or _asks(clause.text)
                or re.match(r"\W*(?:i|but|not|so|please|though|because)\b", clause.text)
            ):
                break
            found.append(clause)
        return found if found and re.match(r"\W*(?:and|or|as well as)\b|.* (?:and|or) ", found[-1].text) else []

    def _cut(self, clause: _Clause, place: tuple[int, int]) -> str:
        return self.message[clause.start + place[0] : clause.start + place[1]]

    def _thing(self, clause: _Clause, place: tuple[int, int], kind: str) -> str:
        return _bare(self._cut(clause, place), kind)


def _bare(words: str, kind: str) -> str:
    """A thing without the words around it.

    >>> _bare("watching any brass bands at all.", "preference"), _bare("看那种恐怖片了", "preference")
    ('brass bands', '恐怖片')
    """
    words = words.strip(" \t,，.。!！、:：")
    if kind == "preference":
        words = phrase("edges", "lead").sub("", words)
        words = phrase("edges", "zh_lead").sub("", words)
    elif kind == "fact":
        words = re.sub(r"^(?:an?|the) (?=\w)", "", words, flags=re.I)
    words = phrase("edges", "tail").sub("", words)
    words = phrase("edges", "zh_tail").sub("", words)
    words = words.strip(" \t,，.。!！、:：")
    if phrase("edges", "quoted").fullmatch(words) and words[0] != "《":
        words = words[1:-1]
    return words


def _note(words: str) -> str:
    """A note without what joins it to what stood before.

    >>> _note(" but I live in Leeds"), _note("所以我住在北京")
    ('I live in Leeds', '我住在北京')
    """
    return phrase("edges", "joining").sub("", words).strip(" \t\n,，;；:：-–—")


# --- What is asked ---


def _asks(text: str) -> bool:
    """Whether a clause asks or orders something, by its words alone."""
    if phrase("asks", "of_me").match(text):
        return bool(re.search(r"\b(?:(?:not|n't) (?:know|sure) (?:what|who|which|how|where|whether|if))\b", text))
    if CJK.search(text):
        return bool(phrase("asks", "zh").search(text))
    return bool(phrase("asks", "question").search(text) or phrase("asks", "order").search(text))


def _names(clauses: Sequence[_Clause]) -> bool:
    """Whether a message only names what is sought: "songs that are not sad", 不是悲歌的曲子."""
    if clauses and phrase("edges", "noun_zh").search(clauses[-1].text):
        return True
    return not any(
        phrase("edges", "says").search(re.sub(r"(?<=\w )(?:that|which|who|whose|where)\b.*", "", c.text))
        for c in clauses
    )


def _rest(message: str, clauses: list[_Clause], said: set[int]) -> str:
    """The message without its statements when what is left asks or orders something; else ""."""
    left = [i for i in range(len(clauses)) if i not in said]
    wishes = [i for i in said if _wishes(clauses[i].text)]
    asks = [i for i in left if clauses[i].closed[:1] in ("?", "？") or _asks(clauses[i].text)]
    if not asks and not wishes:
        return message if not said and _names(clauses) else ""
    kept = (
        sorted({*left, *wishes})
        if not asks
        else [i for i in left if i <= asks[-1] or clauses[i].sentence == clauses[asks[-1]].sentence]
    )
    if wishes and asks:
        kept = sorted({*kept, *wishes})
    parts: list[str] = []
    last = -2
    for i in kept:
        end = clauses[i + 1].start if i + 1 < len(clauses) else len(message)
        piece = message[clauses[i].start : end]
        parts.append(piece if last == i - 1 or not parts else f" {piece}")
        last = i
    whole = "".join(parts).strip()
    if not said:
        return message
    return phrase("edges", "joining").sub("", whole).strip(" \t\n,，;；:：-–—")


def _wishes(text: str) -> bool:
    return any(p.given.get("asks") and p.search(text) for p in _many("patterns"))


# --- What was said before ---

_NUMBERS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]


def _recall(message: str, clauses: list[_Clause]) -> Recall | None:
    """Whether the message asks for the conversation: a clause does, or two ("I gave two. Which were they?")."""
    all_of_it = [_Clause(_plain(message), 0, len(message), "?", 0)] if len(clauses) > 1 else []
    for clause in [*clauses, *all_of_it]:
        text = clause.text
        if phrase("edges", "no_recall").search(text) or len(text) > _LONGEST:
            continue
        for pattern in _many("recalls"):
            if (clause in all_of_it) != bool(pattern.given.get("whole")):
                continue
            match = pattern.regex.search(text)
            if not match or (not CJK.search(text) and not _is_asked(clause)):
                continue
            places = [match.span(n) for n, value in match.groupdict().items() if value and not n.startswith("who")]
            abouts = [_about_recalled(message, clause, place) for place in places]
            about = max(abouts, key=len, default="") if CJK.search(text) else " ".join(filter(None, abouts))
            who = next((value for n, value in match.groupdict().items() if value and n.startswith("who")), "")
            return Recall(about, _whose(who or text, who), _which(text))
    return None


def _is_asked(clause: _Clause) -> bool:
    return (
        clause.closed[:1] in ("?", "？")
        or _asks(clause.text)
        or bool(
            re.match(
                r"\W*(?:and |so )?(?:remind|tell|repeat|recap|what|who|which|where|when|how|did|have|do|can)\b",
                clause.text,
            )
        )
    )


def _about_recalled(message: str, clause: _Clause, place: tuple[int, int]) -> str:
    words = message[clause.start + place[0] : clause.start + place[1]].strip()
    for _ in range(3):
        words = (
            (phrase("edges", "recall_edge_zh" if CJK.search(words) else "recall_edge"))
            .sub("", words)
            .strip(" \t,，.。?？'\"")
        )
    return words


def _whose(text: str, who: str) -> Literal["user", "assistant", ""]:
    who = who or re.sub(r"\bremind me|\b(?:do|can|could|would) you\b|\btell me|提醒我|你?还?记得", "", text)
    if re.search(r"\bwe\b|[我咱]们|^咱$", who):
        return ""
    if phrase("whose", "user").search(who):
        return "user"
    return "assistant" if phrase("whose", "assistant").search(who) else ""


def _which(text: str) -> str:
    if phrase("which", "first").search(text):
        return "first"
    if match := phrase("edges", "ordinal").search(text):
        english, digits, chinese, plain = match.groups()
        if chinese and not chinese.isdecimal():
            return str("一二三四五六七八九十".index(chinese) + 1)
        return digits or chinese or plain or str(_NUMBERS.index(english) + 1)
    return "last" if phrase("which", "last").search(text) else ""


# --- What replaces what ---


def _corrected(
    message: str, plain: str, clauses: list[_Clause], statements: list[Statement], earlier: Sequence[str]
) -> list[Statement]:
    """The statements, those that correct something said before as corrections."""
    before = [s for said in earlier for s in read_statements(said).statements]
    marked = _corrects(plain, clauses)
    found = []
    for statement in statements:
        old = next((s for s in reversed(before) if same_thing(statement, s) and not _agree(statement, s)), None)
        if old or (marked and statement.kind != "intent") or (marked and earlier):
            replaced = old.about if old else _replaced(message, plain)[1]
            statement = replace(statement, kind="correction", replaces=replaced)
        found.append(statement)
    if found or not (marked or before or earlier):
        return found
    return _of_old(message, plain, clauses, before, earlier, marked)


def _of_old(
    message: str, plain: str, clauses: list[_Clause], before: list[Statement], earlier: Sequence[str], marked: bool
) -> list[Statement]:
    """A correction that is told by what was said before: "Thursday, not Tuesday", 之前说不看…"""
    if len(clauses) > 1 and (said := phrase("changes", "said").search(clauses[0].text)):
        old = (
            read_statements(message[clauses[0].start + said.end() : clauses[0].end]).statements
            or read_statements("我" + message[clauses[0].start + said.end() : clauses[0].end]).statements
        )
        if old and old[0].polarity:
            other: Literal["like", "dislike"] = "like" if old[0].polarity == "dislike" else "dislike"
            return [replace(old[0], kind="correction", polarity=other, text=message, replaces=old[0].text)]
    new, words = _replaced(message, plain) if marked else ("", "")
    if new:
        whole = next((one for one in reversed(earlier) if _swapped(one, words, new)), "")
        note = _swapped(whole, words, new).strip(" .。!！") if whole else ""
        last = next((s for s in reversed(before) if s.text and s.text.strip() in whole), None) if whole else None
        last = last or (before[-1] if before and not words else None)
        about = new if last or not note else note
        kept = last or Statement("fact", "", "", "")
        replaced = words or (last.about if last else whole)
        return [Statement("correction", kept.polarity, about, note or _note(message), replaced, kept.attribute)]
    changed = [c for c in clauses if not _asks(c.text)]
    if not any(phrase("changes", "words").search(c.text) for c in changed):
        return []
    content = _content(" ".join(c.text for c in changed))
    old_text = next((one for one in reversed(earlier) if _content(one) & content), "")
    if not old_text:
        return []
    clause = max(changed, key=lambda c: (len(_content(c.text) & _content(old_text)), c.start))
    old = [s for s in before if s.text and s.text in old_text]
    about = _bare(re.sub(r"^\W*(?:i|we|我们?)(?: now)? ", "", message[clause.start : clause.end], flags=re.I), "intent")
    return [Statement("correction", "", about, _note(message), old[0].about if old else old_text)]


def _swapped(text: str, old: str, new: str) -> str:
    """What was said, with the new words in the place of the old, or of the one value of their kind; "" without any.

    >>> _swapped("The meeting is on Tuesday.", "", "Thursday"), _swapped("我们六月十二号出发", "", "二十号")
    ('The meeting is on Thursday.', '我们六月二十号出发')
    """
    of_kind = (
        r"\d+",
        r"\w*day\b",
        "(?:周|星期)[一二三四五六日天]",
        rf"[\d一二两三四五六七八九十百千万]+{re.escape(new[-1:])}",
    )
    kind = next((one for one in of_kind if re.fullmatch(one, new, re.I)), "")
    at = text.lower().find(old.lower()) if old and not (kind and not re.fullmatch(kind, old, re.I)) else -1
    if at >= 0:
        return text[:at] + new + text[at + len(old) :]
    place = re.search(kind, text, re.I) if kind else None
    return text[: place.start()] + new + text[place.end() :] if place else ""


def _content(text: str) -> frozenset[str]:
    """What a text speaks of: its stems without the words that say nothing by themselves."""
    low = re.sub(
        r"[我你他她们的了是在不]|\b(?:again|now|not|still|after|all|any ?more)\b|现在|如今|后来", " ", fold(text)
    )
    return frozenset(stem for word in low.split() if word not in STOP_WORDS for stem in stems(word) if len(stem) > 1)


def _replaced(message: str, plain: str) -> tuple[str, str]:
    """What is so, and what was said: of "it's Leeds, not York" ``("Leeds", "York")``."""
    for pattern in _many("corrections"):
        if places := pattern.search(plain):
            cut = {name: message[slice(*place)] for name, place in places.items()}
            return _bare(cut.get("new", ""), "fact"), _bare(cut.get("old", ""), "fact")
    return "", ""


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
        if one.kind != "preference" and one.attribute not in ("health", "language", "origin", "status"):
            return True
    return any(_overlap(a, b) for a in filter(None, (one.about, one.replaces)) for b in filter(None, (other.about,)))


def _overlap(one: str, other: str) -> bool:
    a, b = (re.sub(r"^(?:看|吃|喝|听|读|玩)(?=..)", "", fold(text)) for text in (one, other))
    if CJK.search(a) or CJK.search(b):
        short, long = sorted((a.replace(" ", ""), b.replace(" ", "")), key=len)
        return bool(short) and (long.startswith(short) and (len(short) > 1 or len(long) == 1))
    short_keys, long_keys = sorted((_keys(a), _keys(b)), key=len)
    return bool(short_keys) and set(short_keys) <= set(long_keys) and long_keys[0] in short_keys
