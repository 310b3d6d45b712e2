"""Times in what documents say: from when a clause holds, and until when; facts that follow one another.

A date is taken as its first day, and what is asked "as of" it as its last; ``valid_to`` is the first day on
which a fact holds no more. The grammar is in ``times.toml``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from workbench.state import TimedFact
from workbench.text import CJK, STOP_WORDS, dates, fold, iso, sentences, stem, terms

_ROLE = 5
"""Characters of a Chinese attribute that does not say whose it is."""
_NEVER = "9999"
_HABIT, _SAMPLE = 0.06, 400
"""The share of documents that tell from when on or until when something holds, of which a question is asked as of
today; of how many."""
_PLAIN = re.compile(r"[a-z ]+|[\u3400-\u9fff\s]+")
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
def grammar(name: str) -> Any:
    """What ``times.toml`` gives for a name in ``[time]`` or ``[said]``: a pattern, words, or groups of words."""
    given = (_words()["time"] | _words()["said"])[name]
    if isinstance(given, list):
        return given
    return frozenset(given.split() if " " in given else given) if _PLAIN.fullmatch(given) else re.compile(given)


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
    for match in grammar("split").finditer(sentence):
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
    dated_at = max((one.begin for one in found if one.told and not one.now and not one.meant), default="")
    for place, one in enumerate(found):
        if one.now and dated_at and not one.meant and any(o.begin == dated_at for o in found[place + 1 :]):
            found[place] = one._replace(begin=dated_at, now=False)  # "it is now in Rome, where it was moved in 2011"
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
        ends, closes = grammar("until").search(lead), grammar("closes").match(behind)
        joint = bool(ends and re.fullmatch(r"(?i)\s*and\b.*", ends[0]))
        arrives = ends and before and not re.search(r"\w", lead[: ends.start()]) and re.search(r"\w", behind)
        if (
            ends
            and not arrives  # "..., until in 2018 it was moved"
            and (place or not re.match(r"(?i)\s*to\b", ends[0]))
            and (not joint or re.search(r"(?i)\bbetween\b", lead))
        ) or closes:
            full = grammar("included").search(lead) or grammar("included_behind").match(behind)
            until = until or (str(int(date[:4]) + 1) if full and len(date) == 4 else date)
            cuts.append((start + (ends.start() if ends else len(lead)), to + (closes.end() if closes else 0), date))
        elif begin and grammar("leaves").search(behind[: own[place + 1][0] - to] if place + 1 < len(own) else behind):
            until = date  # "editor since 2002, who leaves in 2011"
            cuts.append((start + len(lead.rstrip()), end, date))
        else:
            begin = max(begin, date)
        led = grammar("lead").search(sentence[last:at])
        tail = grammar("tail").match(behind)
        bare += sentence[last : last + led.start()] if led else sentence[last:at]
        bare += " "
        last = to + (tail.end() if tail else 0)
    bare += sentence[last:end]
    said = sentence[start:end]
    later, years, present = bool(grammar("later").match(said)), _years(said), grammar("present").search(said)
    meant = bool(grammar("meant").search(said))
    stands = _reached(before, prior)
    told, dated = bool(begin or years or later or present), bool(begin or until)
    by_now = not dated and bool(meant or (told and (not stands if years > 0 else years or present)))
    if meant:  # what was only meant is told by whoever knows the end of it
        begin = max(begin, now)
    elif not begin and until:
        begin = before[-1].until if before and before[-1].until and before[-1].until <= until else ""
    elif not begin:
        going_on = (before[-1].until or before[-1].begin) if before else ""
        ended = max((one.until for one in before), default="")
        later_on = str(int(stands[:4]) + years) if stands and years > 0 else now
        begin = later_on if years else (ended or now) if present else stands if told else going_on
        by_now = by_now and begin == now
    bare = re.sub(r"\s+", " ", bare).strip(" ,，.。;；:：()（）*_-")
    return Clause(start, end, bare, begin, until, tuple(cuts), later, told or meant, meant, by_now)


def _reached(told: Sequence[Clause], prior: str) -> str:
    """The time that these clauses have come to."""
    return max((one.until or one.begin for one in told), default="") or prior


def _years(text: str) -> int:
    """How many years later a clause is, at most; 0 where it says nothing of it, -1 where not how many."""
    match = grammar("years_later").search(text)
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
            for place, part in enumerate(parts):
                told = clauses(part, prior, now or _NEVER)
                before, (left, gone) = gone, _seen(part, told, as_of, gone)
                if all(one.now for one in told if one.told):
                    gone = gone or before  # "now" is said in passing: what follows goes on with what stood before
                if not any(one.told for one in told) and after(of_this(parts[place + 1 : place + 2]), as_of):
                    left, gone = "", True
                for one in told:
                    early |= one.told and bool(one.begin) and not after(one.begin, as_of)
                    late |= one.told and after(one.begin, as_of)
                prior = _reached([one for one in told if not one.now], prior)
                seen += [left] if left else []
            if seen or not parts:
                lines.append(line if seen == parts else ("" if CJK.search(line) else " ").join(seen))
        found.append("\n".join(lines).strip("\n") if "\n".join(lines) != text else text)
    return found if early or not late else [""] * len(found)


def of_this(following: Sequence[str]) -> str:
    """From when on a sentence holds that has no date itself: "... This has been so since 2013."."""
    told = clauses(following[0]) if following and grammar("this").match(following[0]) else ()
    return next((one.begin for one in told if one.told), "")


def _seen(sentence: str, told: Sequence[Clause], as_of: str, gone: bool) -> tuple[str, bool]:
    """As much of a sentence as is told by then, and whether what follows without a date is later."""
    first = next((one for one in told if one.told or one.until), None)
    begun = any(one.told and one.begin and not after(one.begin, as_of) for one in told)
    kept, left = list[Clause](), ""
    for place, clause in enumerate(told):
        if not place and first and (first.begin or begun):
            gone = after(first.begin, as_of)  # what stands before the date in its sentence goes with it
        if clause.told and clause.begin:
            gone = after(clause.begin, as_of)
        open_cuts = [cut for cut in clause.cuts if after(cut[2], as_of)]
        if gone or (open_cuts and not begun and not (clause.told and clause.begin)):
            gone = True  # of an end alone nobody knows the beginning
            continue
        own, gone = sentence[clause.start : clause.end], bool(open_cuts)
        for start, to, _ in reversed(open_cuts):
            own = own[: start - clause.start].rstrip() + own[to - clause.start :]
        if kept and kept[-1] is told[place - 1]:
            left += sentence[kept[-1].end : clause.start] + own
        else:
            left += (("，" if CJK.search(left) else ", ") + own.lstrip(" ,，;；、")) if left else own
        kept.append(clause)
    if left == sentence:
        return sentence, gone
    if not any(one.told or one.until for one in kept) or any(after(date, as_of) for _, _, date in dates(left)):
        return "", gone or bool(kept)  # nothing that has a date, or a date that is no clause's own
    left = re.sub(r"(?i)(?:[\s,，;；、(（]|\b(?:and|but|while|whereas)\b)+$", "", left)
    left = re.sub(r"(?i)^(?:[\s,，;；、]|\b(?:and|but|while|whereas)\b)+", "", left)
    stop = sentence[-1] if sentence[-1] in ".。!！?？；" else ""
    return (left if left.endswith(stop) else left + stop) if re.search(r"\w", left) else "", gone


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
        prior = _reached([one for one in told if not one.now], prior)
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
    bare = re.sub(r"\s+", " ", grammar("adverbs").sub("", bare)).strip(" ,，#-*")
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
    if grammar("general").match(subject) or (short and short[1].lower() in title.lower().split()):
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
    """Note whether its documents make a habit of telling of times, so that no question has to find out.

    A sample of ``_SAMPLE`` tells; then a question is asked as of today.
    """
    found = index.rows("SELECT doc_id FROM documents ORDER BY doc_id")
    found = found[:: max(1, len(found) // _SAMPLE)]
    telling = 0
    for (doc_id,) in found:
        ((fields,),) = index.rows("SELECT fields FROM documents WHERE doc_id = ?", (doc_id,))
        times = times_of(json.loads(fields))
        texts = index.rows("SELECT text FROM passages WHERE doc_id = ?", (doc_id,))
        telling += bool(times.valid_from or times.valid_to) or any(_lasting(text) for (text,) in texts)
    index.set_meta("superseding", "yes" if telling > len(found) * _HABIT else "no")


def _lasting(text: str) -> bool:
    """Whether a text says from when on something holds, or until when."""
    said = dates(text)
    return any(grammar("lasting").search(text[max(0, a - 20) : a] + "\0" + text[b : b + 8]) for a, b, _ in said)


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
            now, said = last_day(as_of) or "9999", fact["sentence"]
            said = (as_seen(said, as_of) or told_shortly(fact)) if as_of and _may_tell_later(said, as_of) else said
            found.append(
                TimedFact(**{**fact, "sentence": said, "valid_to": end, "holds": not end or first_day(end) > now})
            )
        begun_now = any(fact["holds"] and fact["valid_from"] for fact in found[-len(group) :])
        for fact in found[-len(group) :] if begun_now else ():
            fact["holds"] = fact["holds"] and bool(fact["valid_from"])
    return found


def _may_tell_later(sentence: str, as_of: str) -> bool:
    """Whether ``as_seen`` has anything to look for: most sentences name no later date, and no "now"."""
    hints = ("present", "meant", "years_later")
    return any(after(date, as_of) for *_, date in dates(sentence)) or any(grammar(n).search(sentence) for n in hints)


def told_shortly(fact: TimedFact) -> str:
    """A fact whose sentence cannot be shown."""
    return f"{fact['subject']}, {(fact['attribute'].split() or [''])[0]}: {fact['value']}"


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


def asked_as_of(message: str) -> tuple[str, int, int]:
    """The date that a question is asked as of, and where it says so; "" where it names none.

    >>> asked_as_of("As of March 2003, who leads it?"), asked_as_of("截至2003年，谁是馆长？"), asked_as_of("in 2003?")
    (('2003-03', 0, 18), ('2003', 0, 8), ('', 0, 0))
    """
    for start, end, date in dates(message):
        if match := grammar("as_of").search(message[:start]):
            tail = re.match(r"\s*(?:年?(?:底|末)|为止|止)?\s*[,，]?\s*", message[end:])
            return date, match.start(), end + (tail.end() if tail else 0)
    return "", 0, 0
