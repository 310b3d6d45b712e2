"""Times in what documents say: from when a clause holds, and until when; facts that follow one another.

A date is taken as its first day, and what is asked "as of" it as its last; ``valid_to`` is the first day on
which a fact holds no more. The grammar is in ``times.toml``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from workbench.state import Passage, TimedFact
from workbench.text import CJK, STOP_WORDS, dates, fold, iso, sentences, stem, terms

_AS_GOOD = 0.25
_NAMED = 0.6
"""The share of the words of its subject with which a question names a fact."""
_ROLE = 5
"""Characters of a Chinese attribute that does not say whose it is."""
_LEAST, _SAYS, _NEARLY = 0.3, 0.5, 0.1
"""What a word weighs at least; the share of the words with which a passage speaks of them, and as good as the best."""
_NEVER = "9999"
_HABIT = 0.05
"""The share of documents that tell of what was superseded, from which a question is asked as of today."""
_LONGEST = 80
"""Characters of a value."""


class Clause(NamedTuple):
    """``text[start:end]`` of a sentence; ``bare`` is without its dates; ``cuts`` are the ends that it names.

    ``told``: it says its beginning itself; ``meant``: and only that it was meant to be; ``now``: by "now" alone.
    """

    start: int
    end: int
    bare: str
    begin: str
    until: str
    cuts: tuple[tuple[int, int, str], ...]
    later: bool
    told: bool
    meant: bool
    now: bool


class Times(NamedTuple):
    """When the statements of a document hold, since when they are known, when it was published; "" is open."""

    valid_from: str = ""
    valid_to: str = ""
    known_since: str = ""
    published: str = ""

    @property
    def since(self) -> str:
        """From when on what has no date of its own holds."""
        return self.valid_from or self.published

    @property
    def now(self) -> str:
        """When its "now" is: the day on which it came, at the latest."""
        return self.since or self.known_since


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files("workbench.knowledge").joinpath("times.toml").read_text(encoding="utf-8"))


@cache
def _time(name: str) -> re.Pattern[str]:
    return re.compile(_words()["time"][name])


@cache
def _patterns() -> tuple[tuple[bool, bool, str, re.Pattern[str]], ...]:
    """``(Chinese, of a successor, what it is of, pattern)`` in their order."""
    parts, found = _words()["parts"], []
    for given in _words()["facts"]:
        for language in ("en", "zh"):
            for place, written in enumerate(given[language]):
                while re.search(r"\{([A-Z]+|[\u4e00-\u9fff])\}", written):
                    written = re.sub(r"\{([A-Z]+|[\u4e00-\u9fff])\}", lambda m: parts[m[1]], written)
                name = "" if given.get("successor") else _words()["names"][language][place]
                found.append((language == "zh", bool(given.get("successor")), name, re.compile(written, re.I)))
    return tuple(found)


def first_day(date: str) -> str:
    """The first day of a date of any precision.

    >>> first_day("2003"), last_day("2003"), last_day("2003-02")
    ('2003-01-01', '2003-12-31', '2003-02-31')
    """
    return date + "-01-01"[len(date) - 4 :] if date else ""


def last_day(date: str) -> str:
    """Its last day, as texts compare."""
    return date + "-12-31"[len(date) - 4 :] if date else ""


def after(date: str, as_of: str) -> bool:
    """Whether a date is later than what is asked as of."""
    return bool(date and as_of) and first_day(date) > last_day(as_of)


@lru_cache(maxsize=8192)
def clauses(sentence: str, prior: str = "", now: str = "") -> tuple[Clause, ...]:
    """The clauses of a sentence with their times; a date alone is of the next.

    ``prior`` is the time of what stands before, ``now`` that of "now" in its document.
    """
    spans, start = [], 0
    for match in _time("split").finditer(sentence):
        if start < match.start():
            spans.append((start, match.start()))
            start = match.end()
    spans.append((start, len(sentence)))
    found: list[Clause] = []
    dated = dates(sentence)
    opened = -1
    for begin_at, end_at in spans:
        own = [one for one in dated if begin_at <= one[0] < end_at]
        at = opened if opened >= 0 else begin_at
        clause = _clause(sentence, at, end_at, [one for one in dated if at <= one[0] < end_at], found, prior, now)
        opened = at if own and not re.search(r"\w", clause.bare) and end_at != spans[-1][1] else -1
        if opened < 0:
            found.append(clause)
    return tuple(found)


def _clause(
    sentence: str,
    start: int,
    end: int,
    own: Sequence[tuple[int, int, str]],
    before: Sequence[Clause],
    prior: str,
    now: str,
) -> Clause:
    begin, until, cuts, bare, last = "", "", list[tuple[int, int, str]](), "", start
    for place, (at, to, date) in enumerate(own):
        lead, behind = sentence[start:at], sentence[to:end]
        ends, closes = _time("until").search(lead), _time("closes").match(behind)
        joint = bool(ends and re.fullmatch(r"(?i)\s*and\b.*", ends[0]))
        if (
            ends
            and (place or not re.match(r"(?i)\s*to\b", ends[0]))
            and (not joint or re.search(r"(?i)\bbetween\b", lead))
        ) or closes:
            full = _time("included").search(lead) or _time("included_behind").match(behind)
            until = until or (str(int(date[:4]) + 1) if full and len(date) == 4 else date)
            cuts.append((start + (ends.start() if ends else len(lead)), to + (closes.end() if closes else 0), date))
        else:
            begin = max(begin, date)
        led = _time("lead").search(sentence[last:at])
        tail = _time("tail").match(behind)
        bare += sentence[last : last + led.start()] if led else sentence[last:at]
        bare += " "
        last = to + (tail.end() if tail else 0)
    bare += sentence[last:end]
    said = sentence[start:end]
    later, years, present = bool(_time("later").match(said)), _years(said), _time("present").search(said)
    meant = bool(_time("meant").search(said))
    stands = _reached(before, prior)
    told, dated = bool(begin or years or later or present), bool(begin or until)
    if meant:  # what was only meant is told by whoever knows the end of it
        begin = max(begin, now)
    elif not begin and not until:
        ended = max((one.until for one in before), default="")
        if years:
            begin = str(int(stands[:4]) + years) if stands and years > 0 else now
        else:
            begin = (
                (ended or now)
                if present
                else stands
                if told
                else (before[-1].until or before[-1].begin)
                if before
                else ""
            )
    bare = re.sub(r"\s+", " ", bare).strip(" ,，.。;；:：()（）*_-")
    return Clause(start, end, bare, begin, until, tuple(cuts), later, told or meant, meant, begin == now and not dated)


def _reached(told: Sequence[Clause], prior: str) -> str:
    """The time that these clauses have come to."""
    return max((one.until or one.begin for one in told), default="") or prior


def _years(text: str) -> int:
    """How many years later a clause is, at most; 0 where it says nothing of it, -1 where not how many."""
    match = _time("years_later").search(text)
    if not match:
        return 0
    said = (match["n"] or match["zh"] or "one").lower().replace("两", "二")
    numbers = [re.fullmatch(r"([a-z]+)(.*)", word) for word in _words()["time"]["numbers"].split()]
    if said.isdecimal():
        return int(said)
    return next(
        (n for n, word in enumerate(numbers, 1) if word and said in word.groups()), said in ("a", "another") or -1
    )


def as_seen(text: str, as_of: str, since: str = "", now: str = "") -> str:
    """``all_seen`` of one text.

    >>> as_seen("Ann led it from 1998 until 2004, when Bo took over. It is green.", "2003")
    'Ann led it from 1998.'
    """
    return all_seen([text], as_of, since, now)[0]


def all_seen(texts: Sequence[str], as_of: str, since: str = "", now: str = "") -> list[str]:
    """The texts of a document without what begins later, or may: what is undated after it goes with it.

    ``since`` is from when on what has no date of its own holds, ``now`` of when its "now" is; without one that is
    after every date. Where all that is dated begins later, nothing is left.
    """
    if not as_of:
        return list(texts)
    written = since or max((date for text in texts for *_, date in dates(text)), default="")
    gone, prior, early, late, found = after(written, as_of), since, False, False, []
    for text in texts:
        lines = []
        for line in text.split("\n"):
            seen, parts = [], sentences(line)
            for part in parts:
                told = clauses(part, prior, now or _NEVER)
                before, (left, gone) = gone, _seen(part, told, as_of, gone)
                if all(one.now for one in told if one.told):
                    gone = gone or before  # "now" is said in passing: what follows goes on with what stood before
                for one in told:
                    early |= one.told and bool(one.begin) and not after(one.begin, as_of)
                    late |= one.told and after(one.begin, as_of)
                prior = _reached([one for one in told if not one.now], prior)
                seen += [left] if left else []
            if seen or not parts:
                lines.append(line if seen == parts else ("" if CJK.search(line) else " ").join(seen))
        found.append("\n".join(lines).strip("\n") if "\n".join(lines) != text else text)
    return found if early or not late else [""] * len(found)


def _seen(sentence: str, told: Sequence[Clause], as_of: str, gone: bool) -> tuple[str, bool]:
    """As much of a sentence as is told by then, and whether what follows without a date is later."""
    end, cuts, first = len(sentence), list[tuple[int, int, str]](), next((one for one in told if one.told), None)
    if first and first.begin and not after(first.begin, as_of):
        gone = False  # what stands before the date in its sentence goes with it
    for clause in told:
        if clause.told and clause.begin:
            gone = after(clause.begin, as_of)
        left_open = [cut for cut in clause.cuts if after(cut[2], as_of)]
        if gone or (left_open and not (clause.told and clause.begin)):  # of an end alone nobody knows the beginning
            end, gone = min(end, clause.start), True
        elif left_open:
            gone, cuts = True, cuts + left_open
    if not any(re.search(r"\w", sentence[one.start : min(one.end, end)]) for one in told if one.start < end):
        return "", gone
    if not cuts and end == len(sentence):
        return sentence, gone
    if first is None or first.start >= end:
        return "", gone
    left, stop = sentence[:end], sentence[-1] if sentence[-1] in ".。!！?？；" else ""
    for start, to, _ in reversed(cuts):
        if start < end:
            left = left[:start].rstrip() + left[to:]
    left = re.sub(r"(?i)(?:[\s,，;；、(（]|\b(?:and|but|while|whereas)\b)+$", "", left).lstrip(" ,，")
    if any(after(date, as_of) for _, _, date in dates(left)):
        return "", True  # a date that is no clause's own
    return (left if left.endswith(stop) else left + stop) if left else "", gone


def times_of(fields: Mapping[str, Any], added: str = "") -> Times:
    """The times that a document's metadata gives; a day of publication is when it is known and begins to hold."""
    low = {str(name).lower(): value for name, value in fields.items()}

    def of(kind: str) -> str:
        return next((date for name in _words()["fields"][kind] if (date := iso(low.get(name)))), "")

    published = of("published")
    return Times(of("valid_from"), of("valid_to"), of("known_since") or published or added, published)


def read_facts(title: str, text: str, times: Times, fields: Mapping[str, Any]) -> Iterator[TimedFact]:
    """The facts with times that a document states, in their order."""
    held, prior = dict[str, TimedFact](), times.since
    given = {str(name).lower() for name in fields} & {
        *_words()["fields"]["valid_from"],
        *_words()["fields"]["valid_to"],
    }
    for name, value in fields.items() if given else ():
        if isinstance(value, str | int | float) and name.lower() not in _named_times() and len(str(value)) < _LONGEST:
            yield _fact(title, name, str(value), f"{name}: {value}", times.valid_from, times.valid_to, times, title)
    if times.valid_to:  # the whole of it has an end
        yield _fact(title, "", text.strip()[:_LONGEST], text.strip(), times.valid_from, times.valid_to, times, title)
    for sentence in sentences(text):
        told, since = clauses(sentence, prior, times.now), times.since and max(times.since, prior)
        prior = _reached(told, prior)
        for clause in told:
            begin = clause.begin or ("" if clause.until else since)
            until = clause.until or ("" if clause.begin else times.valid_to)
            if (begin or until) and not clause.meant:
                for fact in _stated(title, clause, sentence, begin, until, times, held):
                    held[fold(fact["value"])] = held[""] = fact
                    yield fact


@cache
def _named_times() -> frozenset[str]:
    return frozenset(name for names in _words()["fields"].values() for name in names)


def _stated(
    title: str, clause: Clause, sentence: str, begin: str, until: str, times: Times, held: Mapping[str, TimedFact]
) -> Iterator[TimedFact]:
    bare = re.sub(
        r"(?i)^(?:when|whereupon|after which|at which point|and|then|who|which|it(?= was (?!\w+ed\b)))\s+",
        "",
        clause.bare,
    )
    bare = re.sub(r"\s+", " ", _time("adverbs").sub("", bare)).strip(" ,，#-*")
    bare = re.sub(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])|^(?:后|便|遂|即)(?=[\u3400-\u9fff])", "", bare)
    chinese = bool(CJK.search(bare))
    for zh, successor, name, pattern in _patterns():
        if zh != chinese or not (match := pattern.fullmatch(bare)):
            continue
        said = {k: (v or "").strip(" ,，的") for k, v in match.groupdict().items()}
        attribute = said.get("attribute") or said.get("attribute2") or name
        subject, last = said.get("subject", ""), held.get(fold(said.get("old", ""))) or held.get("")
        if (successor or (not attribute and not subject)) and last:
            subject, attribute = subject or last["subject"], attribute or last["attribute"]
        if successor and attribute and said["old"]:
            yield _fact(subject, attribute, said["old"], sentence, "", begin, times, title)
        if attribute:
            yield _fact(subject, attribute, said["value"], sentence, begin, until, times, title)
        return
    short = re.fullmatch(
        r"(?:(?:in|at|on|to|by|and) )*(?P<value>[A-Z\d]\S*(?: [A-Z\d]\S*){0,4})|[由是为](?P<zh>[\u3400-\u9fff]{2,4})",
        bare,
    )
    if clause.told and short and held and held[""]["sentence"] == sentence:  # "in 1998 Ann, in 2005 Bo"
        last, value = held[""], short["value"] or short["zh"]
        yield _fact(last["subject"], last["attribute"], value, sentence, begin, until, times, title)
    elif clause.later and held and bare and len(bare) < _LONGEST:
        last = held[""]
        value = re.sub(r"(?i)\s*(?:took over|succeeded|followed|took charge|did)$|^由|(?:接任|继任|担任)$", "", bare)
        yield _fact(last["subject"], last["attribute"], value, sentence, begin, until, times, title)


def _fact(
    subject: str, attribute: str, value: str, sentence: str, begin: str, until: str, times: Times, title: str
) -> TimedFact:
    short = re.fullmatch(r"(?:[Tt]he )(\w+)", subject)
    if _time("general").match(subject) or (short and short[1].lower() in title.lower().split()):
        own = not CJK.search(attribute) or len(attribute) <= _ROLE or attribute.startswith(title) or " " in attribute
        subject = title if own else ""
    subject, attribute = (
        re.sub(r"(?i)^the ", "", subject),
        attribute.removeprefix(subject or "\0").lstrip("的") or attribute,
    )
    given = {
        "subject": subject,
        "attribute": attribute,
        "value": re.sub(r"(?i)^(?:an?|the) |,? and$", "", value.strip()),
    }
    said = {"sentence": sentence, "valid_from": begin, "valid_to": until, "known_since": times.known_since}
    return TimedFact(**given, **said, doc_id="", chunk_id="", holds=True)  # type: ignore[typeddict-item]


def words(text: str) -> frozenset[str]:
    """The stems of a text that tell something."""
    return frozenset(stem(t) for t in terms(text) if t not in STOP_WORDS)


def insert(
    connection: Any, doc_id: str, title: str, texts: Sequence[str], fields: Mapping[str, Any], added: str
) -> None:
    """Keep the facts with times of a document, in place of those that it had."""
    connection.execute("DELETE FROM timed WHERE doc_id = ?", (doc_id,))
    times, rows = times_of(fields, added), dict[str, tuple[str, str, str]]()
    for place, text in enumerate(texts):
        if times.since or times.valid_to or dates(text):
            for fact in read_facts(title, text, times, {} if place else fields):
                chunk_id, own = f"{doc_id}#{place}", json.dumps(fact, ensure_ascii=False)
                told = json.dumps({**fact, "doc_id": doc_id, "chunk_id": chunk_id}, ensure_ascii=False)
                rows.setdefault(own, (doc_id, chunk_id, told))
    connection.executemany("INSERT INTO timed VALUES (?, ?, ?)", rows.values())


def tell(index: Any) -> None:
    """Read the facts of documents that were indexed before facts had times; a kill in the middle is made good."""
    if index.meta("superseding"):
        return
    with index.transaction() as connection:
        for doc_id, title, fields, added in index.rows("SELECT doc_id, title, fields, added FROM documents"):
            texts = [
                t for (t,) in index.rows("SELECT text FROM passages WHERE doc_id = ? ORDER BY position", (doc_id,))
            ]
            insert(connection, doc_id, title, texts, json.loads(fields), added)
        note(index)


def kept(index: Any) -> list[TimedFact]:
    """The facts of an index, as they were read."""
    return [json.loads(fact) for (fact,) in index.rows("SELECT fact FROM timed ORDER BY chunk_id, rowid")]


def note(index: Any) -> None:
    """Note whether its documents make a habit of telling what was superseded, so that no question has to find out."""
    (documents,) = index.rows("SELECT count(*) FROM documents")[0]
    index.set_meta("superseding", "yes" if superseded(settled(kept(index)), documents) else "no")


def _key(fact: TimedFact) -> str:
    if CJK.search(fact["attribute"]):
        return re.sub(r"[\s的《》]", "", fold(fact["subject"] + fact["attribute"].removeprefix(fact["subject"])))
    of = words(fact["attribute"]) - {"new", "current", "former", "act", "interim"}
    return " ".join([*sorted(words(fact["subject"])), "|", *sorted(of)])


def settled(facts: Iterable[TimedFact], as_of: str = "", known: str = "") -> list[TimedFact]:
    """The facts that are told and known by then: a later one closes the open end of the earlier one of its kind.

    ``holds`` is false of what has ended by then. They come by subject and attribute, in the order of their times.
    """
    told: dict[str, list[TimedFact]] = {}
    every = list(facts)
    begun: dict[str, list[TimedFact]] = {}
    for fact in every:
        if fact["valid_from"]:
            begun.setdefault(_key(fact), []).append(fact)
    for fact in every:
        if not fact["valid_from"] and any(
            fold(one["value"]) == fold(fact["value"])
            or (after(one["valid_from"], as_of) and first_day(one["valid_from"]) < first_day(fact["valid_to"]))
            for one in begun.get(_key(fact), ())
        ):
            continue  # of whom it is known since when, or that somebody later came before
        if not after(fact["valid_from"], as_of) and not after(fact["known_since"], known):
            told.setdefault(_key(fact), []).append(fact)
    found = []
    for group in (told[key] for key in sorted(told)):
        group.sort(key=lambda f: (first_day(f["valid_from"]), f["valid_to"], f["value"]))
        for place, fact in enumerate(group):
            nexts = (o["valid_from"] for o in group[place + 1 :] if fold(o["value"]) != fold(fact["value"]))
            begin = first_day(fact["valid_from"])
            end = fact["valid_to"] or next((one for one in nexts if first_day(one) > begin), "")
            if after(end, as_of):
                end = ""
            now, said = last_day(as_of) or "9999", as_seen(fact["sentence"], as_of)
            said = said or told_shortly(fact)
            found.append(
                TimedFact(**{**fact, "sentence": said, "valid_to": end, "holds": not end or first_day(end) > now})
            )
        begun_now = any(fact["holds"] and fact["valid_from"] for fact in found[-len(group) :])
        for fact in found[-len(group) :] if begun_now else ():
            fact["holds"] = fact["holds"] and bool(fact["valid_from"])
    return found


def told_shortly(fact: TimedFact) -> str:
    """A fact whose sentence cannot be shown."""
    return f"{fact['subject']}, {(fact['attribute'].split() or [''])[0]}: {fact['value']}"


def superseded(facts: Iterable[TimedFact], documents: int = 0) -> bool:
    """Whether settled facts were followed by others of their kind that say something else.

    Args:
        facts: of a base.
        documents: how many it has; then this is so only where it is a habit of them (``_HABIT``): prose that names
            many years tells of few things that were superseded.
    """
    groups: dict[str, list[TimedFact]] = {}
    for fact in facts:
        groups.setdefault(_key(fact), []).append(fact)
    telling = {
        fact["doc_id"]
        for group in groups.values()
        if any(
            not one["holds"]
            and (not one["attribute"] or any(o["valid_from"] and fold(o["value"]) != fold(one["value"]) for o in group))
            for one in group
        )
        for fact in group
    }
    return len(telling) > documents * _HABIT


def disagreeing(facts: Sequence[TimedFact]) -> list[list[TimedFact]]:
    """Settled facts of one subject and attribute that say different values of one time, from different documents."""
    groups: dict[str, list[TimedFact]] = {}
    for fact in facts:
        groups.setdefault(_key(fact), []).append(fact)
    found = []
    for group in groups.values():
        at_once = [f for f in group if any(_against(f, other) for other in group)]
        if at_once:
            found.append(at_once)
    return found


def _against(one: TimedFact, other: TimedFact) -> bool:
    if fold(one["value"]) == fold(other["value"]) or one["doc_id"] == other["doc_id"]:
        return False
    a, b = sorted((one, other), key=lambda f: first_day(f["valid_from"]))
    return not a["valid_to"] or first_day(a["valid_to"]) > first_day(b["valid_from"])


def asked_for(
    query: str,
    as_of: str,
    facts: Callable[[str], list[TimedFact]],
    near: Callable[[str], Iterable[Passage]],
    weight: Any,
) -> list[TimedFact]:
    """The facts that a question asks for, as of the time that it names, else as of the date: those that hold.

    Beside the facts that were read stands the last that is said of it by then: of equal times the fact wins.
    """
    named = [date for _, _, date in dates(query) if not after(date, as_of)]
    at = named[0] if len(named) == 1 else as_of
    asks = (words(given) for said, given in _words()["asks"].items() if re.search(said, query, re.I))
    asked = words(_time("asking").sub(" ", query))
    meant = asked.union(*asks)
    groups: dict[str, list[TimedFact]] = {}
    for fact in facts(at):
        groups.setdefault(_key(fact), []).append(fact)
    scores = {key: max(_about(meant, fact) for fact in group) for key, group in groups.items()}
    best = max(scores.values(), default=0.0)
    own = [groups[key] for key, score in scores.items() if score and score >= best - _AS_GOOD]
    found = [fact for group in own for fact in ([one for one in group if one["holds"]] or group[-1:])]
    others = {fact["sentence"] for key, group in groups.items() if own and not scores[key] for fact in group}
    last = _last_said(asked, at, near(query), weight, others)
    begun = max((first_day(fact["valid_from"]) for fact in found), default="")
    return [last] if last and first_day(last["valid_from"]) > begun else found


def _last_said(
    asked: frozenset[str], at: str, passages: Iterable[Passage], weight: Callable[[str], float], others: set[str]
) -> TimedFact | None:
    """The last dated clause, by then, of what speaks of the words that are asked; None where nothing surely does."""
    wanted = {word: weight(word) + _LEAST for word in asked if not word.isdecimal() and len(word) > 1}
    seen: list[tuple[float, tuple[str, int], TimedFact]] = []
    for passage in passages:
        times = times_of(passage["fields"])
        own = as_seen(passage["text"], at, times.since, times.now)
        held = words(f"{passage['title']} {own}")
        share = sum(wanted[word] for word in wanted if word in held) / (sum(wanted.values()) or 1.0)
        prior, dated = "", list[tuple[str, str, str]]()
        for sentence in sentences(own):
            start, mine = 0, len(dated)
            for clause in clauses(sentence, prior, times.now) if sentence not in others else ():
                if (clause.told or clause.until) and not clause.meant:
                    dated.append((clause.begin, clause.until, sentence[start : clause.end]))
                    start, prior = clause.end, clause.until or clause.begin
            if len(dated) > mine:  # what follows in its sentence goes on with it
                dated[-1] = (*dated[-1][:2], dated[-1][2] + sentence[start:])
        if not dated and times.since:
            dated = [(times.since, times.valid_to, own.strip())]
        for place, (begin, until, part) in enumerate(dated):
            said = re.sub(r"(?i)^(?:\W|(?:and|but|while|whereas)\b)+|[\s,，;；。.、#]+$", "", part)
            fact = _fact(passage["title"], "", said, said, begin, until, times, passage["title"])
            fact["doc_id"], fact["chunk_id"] = passage["doc_id"], passage["chunk_id"]
            seen.append((share, (first_day(begin), -place), fact))
    best = max((share for share, *_ in seen), default=0.0)
    close = [one for one in seen if one[0] >= max(_SAYS, best - _NEARLY)]
    return max(close, key=lambda one: one[1])[2] if close else None


def _about(asked: frozenset[str], fact: TimedFact) -> float:
    subject, attribute = words(fact["subject"]), words(fact["attribute"])
    whole = subject or attribute
    named = len(whole & asked) / (len(whole) or 1)
    if named < _NAMED or not attribute & asked:
        return 0.0
    same = fact["attribute"] in _words()["names"]["en"] + _words()["names"]["zh"]  # words that all say it
    return (
        named + (1.0 if same else len(attribute & asked) / len(attribute)) + 0.1 * len(words(fact["sentence"]) & asked)
    )


def asked_as_of(message: str) -> tuple[str, int, int]:
    """The date that a question is asked as of, and where it says so; "" where it names none.

    >>> asked_as_of("As of March 2003, who leads it?"), asked_as_of("截至2003年，谁是馆长？"), asked_as_of("in 2003?")
    (('2003-03', 0, 18), ('2003', 0, 8), ('', 0, 0))
    """
    for start, end, date in dates(message):
        if match := _time("as_of").search(message[:start]):
            tail = re.match(r"\s*(?:年?(?:底|末)|为止|止)?\s*[,，]?\s*", message[end:])
            return date, match.start(), end + (tail.end() if tail else 0)
    return "", 0, 0
