"""What was last said, by a date, of what a question asks.

No word of any subject is known here. What the passages that speak of the question say is put in the order of its times,
and the value of the last statement is what neither the question nor the statement before it says: a name, where the
question asks who or where; a number, where it asks how much. The closed classes of words are in ``times.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from workbench.knowledge.times import (
    Clause,
    Times,
    after,
    as_seen,
    clauses,
    first_day,
    grammar,
    last_day,
    of_this,
    times_of,
    words,
)
from workbench.state import Passage, TimedFact
from workbench.text import CJK, STOP_WORDS, dates, fold, sentences, stem, terms

_SAYS, _NEARLY, _LEAST = 0.45, 0.1, 0.3
"""The share of the question that a passage says, and as good as the best; what a word weighs at least."""
_OTHER = 0.7
"""What is left of the share of a line that is of another one of the kind."""
_LIGHT, _VERB = 0.3, 2
"""What a verb, or a word that has many others of its meaning, weighs of its weight; characters of a Chinese verb."""
_TITLE = 0.05
"""How much more a word of the title tells."""
_WIDER = 3
"""How many words or characters that are not new may still belong to a value, on either side."""
_TOKEN = re.compile(
    r"[〇零一二三四五六七八九十两半百千万]+|[\u3400-\u9fff]"
    r"|[$€£]?[^\W_\u3400-\u9fff]+(?:['’.:/&-][^\W_\u3400-\u9fff]+)*[%€£$]?"
)
_PART = re.compile(r"[,;:，；、：()（）。.!?！？]")


class Asked(NamedTuple):
    """A question: its ``text`` without dates and question words, what it asks for, and the units of its text.

    A unit is what it weighs, and the terms one of which says it.
    """

    text: str
    number: bool
    person: bool
    units: list[tuple[float, frozenset[str]]]

    def share(self, title: frozenset[str], held: frozenset[str]) -> float:
        """How much of the question a text with these terms is about, 0 to a little over 1."""
        said = sum(w * (1 + _TITLE * bool(any_of & title)) for w, any_of in self.units if any_of & held)
        return said / (sum(weight for weight, _ in self.units) or 1.0)


class Said(NamedTuple):
    """What a sentence says of one time.

    ``known`` is since when; ``share``: how much of the question its line is about, and ``own`` it alone; ``planned``:
    that it was to be so.
    """

    begin: str
    until: str
    text: str
    sentence: str
    passage: Passage
    known: str
    share: float
    own: float
    planned: bool


class Token(NamedTuple):
    """A word, a number or a Chinese character; ``kind`` is ``asked``, ``old``, ``new``, ``stop`` or ``date``."""

    start: int
    end: int
    text: str
    kind: str
    part: int

    @property
    def named(self) -> bool:
        """Whether it is written like a name."""
        return self.text[0].isupper() or bool(re.search(r"\d", self.text))


def last_said(
    query: str,
    as_of: str,
    near: Callable[[str], Iterable[tuple[Passage | None, Passage]]],
    weight: Callable[[str], float],
) -> list[TimedFact]:
    """What was last said by then of what is asked, or by the time that the question names; what had ended says so.

    ``near`` gives passages as they are seen by then, None where nothing of them is, each with the whole of it, which
    tells what it is about.
    """
    named = [date for _, _, date in dates(query) if not after(date, as_of)]
    at = named[0] if len(named) == 1 else as_of
    asked = _asked(query, weight)
    if asked is None:
        return []
    around = list(near(query))
    told = [one for seen, whole in around if seen for one in _statements(seen, whole["text"], at, asked)]
    best = max((one.share for one in told), default=0.0)
    surely = max(_SAYS, best - _NEARLY)
    about = [w for _, w in around if asked.share(_terms(w["title"]), _terms(f"{w['title']} {w['text']}")) >= _SAYS]
    last = max((times_of(whole["fields"]).known_since for whole in about), default="")
    told = [one for one in told if not one.planned or one.known >= last]  # whoever tells of it later knows better
    told.sort(key=lambda one: (first_day(one.begin), one.known))
    for sure in (True, False):
        before, found = ("", ""), list[tuple[Said, str]]()
        for one in told:
            if one.share < surely and not (found and _names(one.text, found[-1][1], asked)):
                continue
            if found and _follows(one, found[0][0]):
                if value := _value(one.text, asked, found[0][0].text, found[0][1], sure):
                    before, found = (found[0][0].text, found[0][1]), [(one, value)]
            elif not found or _beside(one, found[0][0]):
                value = _value(one.text, asked, *before, sure)
                found += [(one, value)] if value and value not in {other for _, other in found} else []
        if found:
            return [_fact(*each, at) for each in found]
    return []


def _beside(one: Said, other: Said) -> bool:
    """Whether another document says it of the same time, as well and no earlier."""
    same = one.passage["doc_id"] != other.passage["doc_id"] and one.known == other.known and one.begin == other.begin
    return same and one.share >= other.share


def _follows(one: Said, before: Said) -> bool:
    """Whether a statement is of a later time; of the same, whether more of the question is in it, or a later document
    says it."""
    if after(one.begin, before.begin) or (one.begin and not before.begin):
        return True
    if one.passage["doc_id"] == before.passage["doc_id"]:
        return one.own > before.own
    return one.known > before.known


def _names(text: str, value: str, asked: Asked) -> bool:
    """Whether a text names a value."""
    names = {m[0] for m in _TOKEN.finditer(value) if m[0][0].isupper()} - {m[0] for m in _TOKEN.finditer(asked.text)}
    size = min(len(value), 3)
    some = {value[i : i + size] for i in range(len(value) + 1 - size) if CJK.match(value[i])}
    whole = bool(names) and names <= {m[0] for m in _TOKEN.finditer(text)}  # a family name alone may be another's
    return whole or any(t in text and t not in asked.text for t in some)


def _asked(query: str, weight: Callable[[str], float]) -> Asked | None:
    """What a question asks for; None where it asks for no thing that changes with time."""
    person = bool(grammar("person").search(query))
    number = bool(grammar("number").search(query) or (grammar("clock").search(query) and dates(query)))
    if (grammar("reason").search(query) and not number) or not (number or person or grammar("thing").search(query)):
        return None
    bare = query
    for start, end, _ in reversed(dates(query)):
        bare = bare[:start] + " " + bare[end:]
    text = grammar("asking").sub(" ", bare)
    verbs = grammar("verb").search(bare)
    light = frozenset(terms(" ".join(filter(None, verbs.groups())))) if verbs else frozenset[str]()
    marked = grammar("asking").sub(" ", grammar("wh").sub("?", grammar("kind").sub("?", bare)))
    return Asked(text, number, person, list(_units(marked, light, weight)))


def _units(text: str, light: frozenset[str], weight: Callable[[str], float]) -> Iterator[tuple[float, frozenset[str]]]:
    """English words with those of their meaning, and Chinese characters with the pairs that they stand in.

    What is nowhere, and no name, tells nothing of where to look. ``light`` are verbs, which another may stand for; in
    Chinese, those are beside the question word, a ``?``.
    """
    nowhere = weight("\0")
    for word in re.findall(r"[^\W\u3400-\u9fff]+(?:['’-]\w+)*", text):
        for term in terms(word):
            if term not in STOP_WORDS and len(term) > 1 and (weight(term) < nowhere or word[0].isupper()):
                same = [words(group) for group in grammar("same") if stem(term) in words(group)]
                heavy = _LIGHT if same or term in light else 1
                yield (weight(term) + _LEAST) ** 2 * heavy, frozenset({stem(term)}.union(*same))
    for match in re.finditer(r"(\?*)([\u3400-\u9fff]{2,})(\?*)", fold(text)):
        run = match[2]
        pairs = [frozenset(run[j : j + 2] for j in (i - 1, i) if 0 <= j < len(run) - 1) for i in range(len(run))]
        there = [frozenset(pair for pair in some if weight(pair) < nowhere) for some in pairs]
        for i, some in enumerate(there):
            heavy = _LIGHT if (match[1] and i < _VERB) or (match[3] and i >= len(run) - _VERB) else 1
            if some:
                yield (min(map(weight, some)) + _LEAST) ** 2 * heavy, some
            elif not all(there[j] for j in (i - 1, i + 1) if 0 <= j < len(run)):
                yield (nowhere + _LEAST) ** 2 * heavy, pairs[i]


def _statements(passage: Passage, whole: str, at: str, asked: Asked) -> Iterator[Said]:
    """What a passage, as it is seen by then, says of one time after the other."""
    times, title = _times(passage), _terms(passage["title"])
    seen = as_seen(passage["text"], at, times.since, times.now)
    prior, dated = times.since, bool(dates(seen))

    def said(begin: str, until: str, text: str, sentence: str, share: float) -> Said:
        planned = bool(grammar("planned").search(text) and not grammar("leaves").search(text))
        own = asked.share(frozenset(), _terms(text))
        return Said(begin, until or times.valid_to, text, sentence, passage, times.known_since, share, own, planned)

    for line, context in _in_context(seen, whole):
        share = asked.share(title, title | context) * (_OTHER if _contrasts(line, asked) else 1)
        part = sentences(line)
        for place, sentence in enumerate(part):
            told = clauses(sentence, prior, times.now)
            timed = not dated or any(one.told or one.until for one in told)
            if not any(one.told for one in told) and (since := of_this(part[place + 1 : place + 2])):
                yield said(since, "", sentence, sentence, share)
            elif timed or asked.share(frozenset(), _terms(sentence)) >= _SAYS:
                for begin, until, text in _of_one_time(sentence, told, prior):
                    if begin or until or times.valid_to:
                        yield said(begin, until, text, sentence, share)
            prior = max((one.until or one.begin for one in told if not one.now), default="") or prior


def _in_context(seen: str, whole: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The lines of a text as it is seen, but for headings, and the terms of what each is read with."""
    lines = [(line, _terms(line)) for line in whole.split("\n")]
    for line in seen.split("\n"):
        here = _terms(line)
        place = max(range(len(lines)), key=lambda i: len(lines[i][1] & here))  # it may have been longer
        if grammar("heading").match(line) and not dates(line):
            continue
        heads = (held for one, held in reversed(lines[:place]) if held and not grammar("item").match(one))
        yield line, lines[place][1] | (next(heads, frozenset()) if grammar("item").match(line) else frozenset())


def _times(passage: Passage) -> Times:
    """The times of its document."""
    return Times(**{name: value for name, value in passage.get("times", {}).items() if name in Times._fields})


def _contrasts(line: str, asked: Asked) -> bool:
    """Whether a line is of a deputy, a half or a former one, and the question is not."""
    found = [m[0].lower() for m in grammar("contrast").finditer(line) if (m[1] or m[2]).lower() in asked.text.lower()]
    return bool(found) and not grammar("contrast").search(asked.text)


def _of_one_time(sentence: str, told: Sequence[Clause], prior: str) -> Iterator[tuple[str, str, str]]:
    """``(begin, until, text)`` of the clauses that have one time; what stands before a date goes with it."""
    first = next((one for one in told if one.told or one.until), None)
    begin, until = (first.begin, first.until) if first else (prior, "")
    start = end = 0
    for clause in told:
        said = sentence[clause.start : clause.end]
        if clause.meant or grammar("birth").search(said) or (clause.now and grammar("planned").search(said)):
            continue
        own = (clause.begin or ("" if clause.until else begin), clause.until)
        at_once = clause.now and begin and not after(clause.begin, begin)
        if own != (begin, until) and not at_once and (clause.told or clause.until or (until and clause.begin == until)):
            if end > start:
                yield begin, until, sentence[start:end]
            start, (begin, until) = clause.start if end else 0, own
        end = clause.end
    if end > start:
        yield begin, until, sentence[start:end]


def _value(text: str, asked: Asked, before: str, old: str, sure: bool) -> str:
    """What a statement says that neither the question nor the one before it says; "" where that is nothing asked.

    ``old`` is the value of the one before.
    """
    tokens = _tokens(text, asked, before)
    gone = _gone(text, tokens)
    best: tuple[tuple[int, int, int], str] | None = None
    for first, last in _runs(text, tokens, gone):
        lead = tokens[first - 1] if first and tokens[first - 1].part == tokens[first].part else None
        beside = bool(lead and lead.kind == "asked" and not text[lead.end : tokens[first].start].strip())
        led = 2 if grammar("leads").search(text[: tokens[first].start]) else int(beside)
        start, end = _wide(tokens, first, last, asked.number)
        if old and old in text[start:end]:
            start, end = tokens[first].start, tokens[last].end
        typed = _typed(text[start:end], text[end : end + _WIDER], tokens[first : last + 1], asked, led)
        if typed or not sure:
            key = (typed, led, sum(one.kind == "asked" for one in tokens if one.part == tokens[first].part))
            if best is None or key > best[0] or (key == best[0] and led == 2 and CJK.match(text[start:end])):
                best = key, text[start:end]
    value = best[1] if best else ""
    name = grammar("person_zh" if CJK.search(value) else "person_en").search(value) if asked.person else None
    return name[1] if name else value


def _tokens(text: str, asked: Asked, before: str) -> list[Token]:
    dated = [(start, end) for start, end, _ in dates(text)] + [m.span() for m in grammar("spans").finditer(text)]
    said, old = _keys(f"{asked.text} {' '.join(' '.join(some) for _, some in asked.units)}"), _keys(before)
    former = [m.span() for m in grammar("former").finditer(text)]
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        (start, end), word = match.span(), match[0]
        if CJK.match(word) and not grammar("numeral").match(word):
            keys, empty = {text[max(0, start - 1) : end], text[start : end + 1]}, word in grammar("function")
        else:
            keys, empty = {fold(word), *(() if re.search(r"\d", word) else words(word))}, word.lower() in _empty()
        kind = "asked" if keys & said and (CJK.match(word) or not empty) else "stop" if empty else "new"
        if kind == "new" and (keys & old or any(s <= start and end <= e for s, e in former)):
            kind = "old"
        if any(s < end and start < e for s, e in dated):
            kind = "date"
        apart = bool(found and _PART.search(text[found[-1].end : start]))
        found.append(Token(start, end, word, kind, found[-1].part + apart if found else 0))
    return found


def _runs(text: str, tokens: Sequence[Token], gone: frozenset[int]) -> Iterator[tuple[int, int]]:
    """The first and the last place of what is new, function words inside it kept; a copula begins another."""
    first = last = -1
    for i, token in enumerate(tokens):
        if token.kind == "new" and token.part not in gone:
            between = tokens[last + 1 : i]
            apart = first < 0 or token.part != tokens[last].part or any(one.kind != "stop" for one in between)
            apart = apart or bool(grammar("leads").search(text[: token.start]))
            if apart and first >= 0:
                yield first, last
            first, last = (i if apart else first), i
    if first >= 0:
        yield first, last


def _typed(said: str, behind: str, run: Sequence[Token], asked: Asked, led: int) -> int:
    """Whether what is new is of the kind that is asked for: 2 surely, 1 perhaps, 0 not."""
    if asked.number:
        return 2 * any(grammar("numeral").search(one.text) for one in run)
    if asked.person and grammar("vacant").search(said):
        return 2
    if CJK.search(said):
        if len(said) < 2:
            return 0
        if not asked.person or any(c in grammar("surnames") for c in said[:-1]) or said[-2] in "老小大阿":
            return 2 if len(run) > 1 or led > 1 else 1
        return int(bool(led or grammar("holds").search(said + behind)) and not grammar("numeral").search(said))
    named = [one for one in run if one.named and not (asked.person and one.text[0].isdecimal())]
    if any(one.start for one in named):
        return 2
    return int(bool(named) and named[0].text.lower() not in _ordinary())


def _wide(tokens: Sequence[Token], first: int, last: int, number: bool) -> tuple[int, int]:
    """Where a value begins and ends, with what belongs to it of words that are not new: the rest of a name, a unit."""
    zh = any(CJK.match(one.text) for one in tokens[first : last + 1])

    def belongs(i: int, beside: Token) -> bool:
        one = tokens[i] if 0 <= i < len(tokens) else None
        if one is None or one.part != beside.part or one.kind not in ("asked", "old"):
            return False
        if CJK.match(one.text):
            return (i > last or number) and (one.start == beside.end or one.end == beside.start)
        if one.kind == "asked" and (i > last or not one.named):
            return True
        return beside.named if one.named else number and not zh and i > last

    for _ in range(_WIDER):
        first -= belongs(first - 1, tokens[first])
        last += belongs(last + 1, tokens[last])
    return tokens[first].start, tokens[last].end


def _gone(text: str, tokens: Sequence[Token]) -> frozenset[int]:
    """The parts that tell who left, unless that is all that is told."""
    parts: dict[int, list[Token]] = {}
    for token in tokens:
        parts.setdefault(token.part, []).append(token)
    gone = set[int]()
    for part, own in parts.items():
        if grammar("leaves").search(text[own[0].start : own[-1].end]):
            gone.add(part)
            while (
                part
                and ";" not in text[parts[part - 1][-1].end : parts[part][0].start]
                and not any(one.kind == "new" for one in own if one.named or CJK.match(one.text))
            ):
                part -= 1
                gone.add(part)
    left = any(one.kind == "new" for part, own in parts.items() if part not in gone for one in own)
    return frozenset(gone) if left else frozenset()


def _keys(text: str) -> set[str]:
    """The words of a text, its numbers as they are written, and its pairs of Chinese characters."""
    single = {fold(m[0]) for m in _TOKEN.finditer(text) if not CJK.match(m[0]) or grammar("numeral").match(m[0])}
    return single | words(text) | {text[i : i + 2] for i in range(len(text) - 1) if CJK.match(text[i])}


def _terms(text: str) -> frozenset[str]:
    return frozenset(stem(term) for term in terms(text))


@cache
def _ordinary() -> frozenset[str]:
    return frozenset(files("workbench.knowledge").joinpath("ordinary_words.txt").read_text(encoding="utf-8").split())


@cache
def _empty() -> frozenset[str]:
    return STOP_WORDS | frozenset(grammar("empty"))


def _fact(one: Said, value: str, at: str) -> TimedFact:
    passage, end = one.passage, first_day(one.until)
    return TimedFact(
        subject=passage["title"] if not after(_times(passage).since, at) else "",
        attribute="",
        value=value,
        sentence=one.sentence,
        valid_from=one.begin,
        valid_to=one.until,
        known_since=one.known,
        doc_id=passage["doc_id"],
        chunk_id=passage["chunk_id"],
        holds=not end or end > (last_day(at) or "9999"),
    )
