"""Read a question once: conditions on typed fields, order, count, fields asked for, the date as of which it asks.

Only closed classes are read: dates, numbers, units, comparison, negation, order, question words, and the names, fields,
values and tables of the knowledge bases. ``spans.py`` finds where they stand. Each reader here yields ``Part``s of the
question that it accounts for, with the conditions that they state; what no part covers are the words that are searched.
A condition counts only where field and value are both certain. Every other one is listed in ``not_applied``, which the
answer shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from workbench.language.dates_and_numbers import NumberSpan, read_limit
from workbench.language.names import At, at, blotted, meets
from workbench.language.spans import CODE, REACH, Span, Spans, find_spans, negations, selected
from workbench.language.words import (
    NO,
    TABLE,
    YES,
    closed_words,
    fits,
    in_unit,
    in_words,
    is_small_talk,
    measured,
    pattern,
)
from workbench.ports import Bases, Field
from workbench.state import (
    Aggregate,
    AnswerType,
    Condition,
    NameRead,
    Op,
    QueryIntent,
    Question,
    Sort,
    unique,
)
from workbench.text import STOP_WORDS, STOP_WORDS_ZH, detect_language, fold

_OPPOSITES: dict[str, Op] = {
    "eq": "ne",
    "in": "not_in",
    "gt": "le",
    "ge": "lt",
    "lt": "ge",
    "le": "gt",
}
Negated = Mapping[At, bool]
"""Span -> True if it is negated; False where it is not clear whether it is, as after two negations."""


class Part(NamedTuple):
    """``text[start:end]`` states a condition, or one that is skipped, or is accounted for by another part."""

    start: int
    end: int
    condition: Condition | None = None
    is_skipped: bool = False


class Overall(NamedTuple):
    """What is asked of all documents together, as ``Question`` has it, and the parts that ask it."""

    sort: Sort | None
    limit: int | None
    counts: bool
    aggregate: Aggregate
    fields: list[str]
    parts: list[Part]


def read(text: str, bases: Bases, today: str = "") -> Question:
    """Read a question over the fields and names of these knowledge bases.

    Args:
        text: the question as it stands alone.
        bases: the knowledge bases that are asked; with none only its words are read.
        today: the ISO day that "last month" and 近三年 are relative to; without one they are not applied.
    """
    if is_small_talk(text):
        return unread(text)
    spans = find_spans(text, bases, today)
    overall = _read_overall(spans)
    negated, parts = _read_negations(spans)
    parts = [*overall.parts, *parts, *(Part(*at(date)) for date in spans.as_of)]
    recommends = bool(spans.find("intent.recommend"))
    selects = recommends or _selects(spans, overall, negated, parts)
    if selects:
        parts += _read_values(spans, negated, parts)
        parts += _read_names(spans, negated)
        parts += _read_presence(spans, negated)
    else:
        negated = {}
    parts += _read_numbers(spans, negated, selects)
    parts += _read_codes(spans, negated)
    parts += _read_dates(spans, negated, selects)
    covered = [part for part in parts if not part.is_skipped]
    if selects:
        parts += _read_other_negations(spans, negated, covered)
    names = [name for name in spans.names if not meets(name, covered)]
    called = [] if overall.fields else _asked_fields(spans, names, covered)
    stated = sorted((part for part in parts if part.condition), key=at)
    conditions = [part.condition for part in stated if part.condition]
    listing = bool(overall.counts or overall.sort or conditions)
    if selects and spans.table:
        conditions = [spans.table, *conditions]
    intent = _intent(spans, names, recommends, listing)
    language = spans.language
    dates = [date.high for date in spans.as_of]
    schema = {field["name"]: field for field in [TABLE, *spans.fields]}
    in_text = {in_words(c, schema[c["field"]], language): c for c in conditions}
    as_of = [f"截至 {date}" if language == "zh" else f"as of {date}" for date in dates]
    skipped = [text[part.start : part.end].strip() for part in parts if part.is_skipped]
    return {
        **unread(text),
        "intent": intent,
        "answer_type": _answer_type(spans, intent, overall.counts),
        "names": names,
        "conditions": list(in_text.values()),
        "sort": overall.sort,
        "limit": overall.limit,
        "count": overall.counts,
        "aggregate": overall.aggregate,
        "fields": overall.fields or unique(span.field["name"] for span in called),
        "words": _content(spans, [*covered, *called]),
        "date_asked": dates[-1] if dates else "",
        "understood": unique([*as_of, *in_text]),
        "not_applied": unique(skipped),
    }


def unread(text: str) -> Question:
    """Return a question of which nothing is read, as a greeting is."""
    return Question(
        text=text,
        language=cast(Any, detect_language(text)),
        intent="unknown",
        answer_type="text",
        names=[],
        conditions=[],
        sort=None,
        limit=None,
        count=False,
        aggregate="",
        fields=[],
        words=[],
        date_asked="",
        understood=[],
        not_applied=[],
    )


def _selects(
    spans: Spans,
    overall: Overall,
    negated: Negated,
    parts: Sequence[Part],
) -> bool:
    """Return True where documents are chosen by conditions; else their texts may speak of what looks like one."""
    if overall.aggregate or overall.counts or overall.sort or spans.find("intent.list"):
        return True
    if spans.has_document:
        return False
    dated = _only(spans.of_type("date"))
    return bool(
        spans.heads
        or any(map(_is_flag, spans.called))
        or any(negated.get(at(value)) for value in spans.values)
        or any(_number_field(number, spans) for number in spans.numbers)
        or any(dated or spans.nearest(date, "date", 8) for date in spans.dates)
        or _chooses(spans, parts)
    )


def _chooses(spans: Spans, parts: Sequence[Part]) -> bool:
    """Return True for a choice among documents by a value of theirs: "which kettle is from Norway"."""
    which = spans.find("intent.which")
    if not which or any(0 <= called.start - which.end() <= 2 for called in spans.called):
        return False
    return any(_stands_alone(value, spans, parts) for value in spans.values)


def _stands_alone(value: Span, spans: Spans, parts: Sequence[Part]) -> bool:
    """Return True for a value that is not part of a longer phrase, nor what a text is about."""
    word = re.match(r"\s*([a-z']+)", spans.plain[value.end :])
    if word and word[1] not in STOP_WORDS:
        marks = (*spans.heads, *spans.values, *spans.names, *spans.called, *parts)
        if value.end + word.start(1) not in {at(span)[0] for span in marks}:
            return False  # "graph neural networks"
    exact = spans.text[value.start : value.end] == value.value != value.value.lower()
    exact = exact or value.field["relation"] in closed_words()["values"]["topics"]
    return exact or not pattern("values.topic").search(spans.plain[: value.start])


# --- Negation ---


def _read_negations(spans: Spans) -> tuple[dict[At, bool], list[Part]]:
    """Read which values, names, dates, numbers and flags are negated."""
    flags = filter(_is_flag, spans.called)
    places = sorted(map(at, [*spans.values, *spans.names, *spans.dates, *spans.numbers, *flags]))
    negated = dict[At, bool]()
    parts = list[Part]()
    for start, end, until in negations(spans.plain, places):
        behind = [place for place in places if end <= place[0]]
        before = [place for place in places if place[1] <= start]
        if behind and behind[0][0] <= min(until, end + REACH):
            parts.append(Part(start, end))
            # "not present on 5 March" refuses what stands before the date
            on = [at(date) for date in spans.dates if date.op == "eq"]
            clear = behind[0] not in on or not _says(spans, end, behind[0][0])
            for place in [behind[0], *_joined(behind, spans)]:
                negated[place] = clear and place not in negated
        elif before:
            # "that she did not edit": who is meant stands before it
            negated[before[-1]] = False
    only = [match.end() for match in pattern("negation.only").finditer(spans.plain)]
    for start, end in places:
        if match := pattern("negation.behind").match(spans.plain[end:]):
            parts.append(Part(end, end + match.end()))
            negated.setdefault((start, end), True)
        if any(0 <= start - stop <= 4 for stop in only):
            negated[start, end] = False
    return negated, parts


def _says(spans: Spans, start: int, end: int) -> bool:
    """Return True where a part of the question has a word that is neither a field's nor a stop word."""
    left = blotted(spans.plain, map(at, spans.called))[start:end]
    return not STOP_WORDS.issuperset(re.findall(r"[a-z0-9]+", left))


def _joined(places: Sequence[At], spans: Spans) -> Iterator[At]:
    """Yield what is joined with the first of these places by commas, "and" and "or"."""
    for first, second in pairwise(places):
        if not pattern("words.joined").fullmatch(spans.plain[first[1] : second[0]]):
            return
        yield second


def _read_other_negations(
    spans: Spans, negated: Negated, parts: Sequence[Part]
) -> Iterator[Part]:
    """Skip a negation that reaches no value, name, number or date: it is never turned into its opposite."""
    for start, end, reach in negations(spans.plain, map(at, parts)):
        until = min(reach, end + REACH)
        reached = any(
            end <= begin <= reach or stop <= start <= stop + REACH for begin, stop in negated
        )
        if not reached and spans.plain[end:until].strip(" _"):
            yield Part(start, until, is_skipped=True)


# --- Conditions ---


def _read_condition(
    field: Field, op: Op, value: Any, span: Any, negated: Negated, called: Span | None = None
) -> Iterator[Part]:
    """Yield a condition, turned where it is negated, and the word of its field next to it."""
    if called:
        yield Part(*at(called))
    start, end = at(span)
    is_negated = negated.get((start, end))
    if is_negated is False or (is_negated and op not in _OPPOSITES):
        yield from (Part(start, end), Part(start, end, is_skipped=True))
    else:
        op = _OPPOSITES[op] if is_negated else op
        yield Part(start, end, Condition(field=field["name"], op=op, value=value))


def _read_equal(
    places: Sequence[tuple[Field, At, str]], spans: Spans, negated: Negated
) -> Iterator[Part]:
    """Yield values by their fields: negated ones apart; of the others one is enough, unless a document has many."""
    for field in {field["name"]: field for field, *_ in places}.values():
        for is_negated in (True, False, None):
            alike = [
                (span, value)
                for owner, span, value in places
                if owner == field and negated.get(span) is is_negated
            ]
            values = unique(value for _, value in alike)
            between = spans.plain[alike[0][0][1] : alike[-1][0][0]] if alike else ""
            either = is_negated or not field["many"] or re.search(r"\bor\b|或|还是", between)
            if len(values) > 1 and either:
                yield from (Part(*span) for span, _ in alike)
                yield from _read_condition(field, "in", values, alike[0][0], negated)
            else:
                for span, value in alike:
                    yield from _read_condition(field, "eq", value, span, negated)


def _read_values(spans: Spans, negated: Negated, parts: Sequence[Part]) -> Iterator[Part]:
    """Read the values of categories that stand by themselves: not inside another phrase, not as a topic."""
    values = [v for v in spans.values if at(v) in negated or _stands_alone(v, spans, parts)]
    for value in values:
        called = spans.nearest(value, "category", 4)
        if called and called.field == value.field:
            yield Part(*at(called))
    yield from _read_equal([(v.field, at(v), v.value) for v in values], spans, negated)


def _read_names(spans: Spans, negated: Negated) -> Iterator[Part]:
    """Read the names that a field holds: of several fields the one that is called next to it, else the usual."""
    places = []
    fields = [*spans.of_type("name"), *spans.of_type("category")]
    for name in spans.names:
        counts = {}
        for field in fields:
            holds = Condition(field=field["name"], op="eq", value=name["name"])
            counts[field["name"]] = len(selected(spans.bases, [holds]))
        usual = max(fields, key=lambda f: (counts[f["name"]], f["name"]), default=None)
        called = spans.nearest(name, "name")
        leads = called is not None and called.end <= name["start"]
        before = spans.plain[max(0, called.start - 8) : called.start] if called and leads else ""
        asks = pattern("intent.subject").search(before)  # its value is asked for: "who wrote"
        if called and not asks and (counts[called.field["name"]] or not name["entity_id"]):
            yield Part(*at(called))
            places.append((called.field, at(name), name["name"]))
        elif usual and counts[usual["name"]] and (not name["doc_id"] or at(name) in negated):
            places.append((usual, at(name), name["name"]))
    yield from _read_equal(places, spans, negated)


def _is_flag(called: Span) -> bool:
    """Return True for a field of yes and no: "in stock"."""
    kinds = {fold(value) for value in called.field["values"]}
    return kinds <= {*YES, *NO} and not kinds.isdisjoint(YES)


def _read_presence(spans: Spans, negated: Negated) -> Iterator[Part]:
    """Read "in stock", and "without a budget" and 没有负责人: the field is to be "yes"; to be "no", or empty."""
    for called in spans.called:
        values = {fold(value) in YES: value for value in called.field["values"]}
        empty = pattern("negation.empty").search(spans.plain[: called.start])
        answered = any(0 <= value.start - called.end <= 4 for value in spans.values)
        if empty and not answered:
            yield Part(*empty.span())  # "no" is the value here, and negates nothing
            no = _nothing(called, values, spans)
            op: Op = "exists" if no is False else "eq"
            yield from _read_condition(called.field, op, no, called, {})
        elif _is_flag(called):
            yield from _read_condition(called.field, "eq", values[True], called, negated)


def _nothing(called: Span, values: Mapping[bool, str], spans: Spans) -> Any:
    """Return the value that says no: of a flag, and 0 where a number is ever that; False where none does."""
    if _is_flag(called):
        return values.get(False, False)
    zero = Condition(field=called.field["name"], op="eq", value=0)
    is_number = called.field["type"] == "number"
    return 0 if is_number and selected(spans.bases, [zero], limit=1) else False


def _read_numbers(spans: Spans, negated: Negated, selects: bool) -> Iterator[Part]:
    for number in spans.numbers:
        start, end = at(number)
        field = _number_field(number, spans)
        if number.op == "eq" and not (field and spans.nearest(number, "number", 4)):
            continue  # a bare number is a word
        if field is None or number.unclear:
            if selects:
                yield Part(start, end, is_skipped=True)
            continue
        scaled = bool(pattern("measure.scale").search(spans.plain[start:end]))
        bounds = [
            in_unit(bound, number.unit, field, scaled)
            for bound in (number.low, number.high)
            if bound is not None
        ]
        value = bounds if number.op == "between" else bounds[0]
        called = spans.nearest(number, "number")
        yield from _read_condition(field, cast(Op, number.op), value, number, negated, called)


def _number_field(number: NumberSpan, spans: Spans) -> Field | None:
    """Return the number's field: by its unit, or by the nearest word of a field."""
    by_unit = [field for field in spans.of_type("number") if fits(number.unit, field)]
    called = spans.nearest(number, "number")
    fitting = called and (called.field in by_unit or not by_unit)
    return _only(by_unit) or (called.field if called and fitting else None)


def _read_codes(spans: Spans, negated: Negated) -> Iterator[Part]:
    """Read a number or code behind the word of a field that has it as a value: "plot 9", "room B12"."""
    refused = [(end, until) for _, end, until in negations(spans.plain)]
    for called in spans.called:
        code = CODE.match(spans.folded, called.end)
        is_text = called.field["type"] not in ("number", "date")
        if code and is_text and not meets(code.span(1), refused):
            value = spans.text[slice(*code.span(1))]
            holds = Condition(field=called.field["name"], op="eq", value=value)
            if selected(spans.bases, [holds], limit=1):
                place = code.span(1)
                yield from _read_condition(called.field, "eq", value, place, negated, called)


def _read_dates(spans: Spans, negated: Negated, selects: bool) -> Iterator[Part]:
    """Read dates of the field that is called next to them; else where all possible fields select the same."""
    for date in [] if spans.has_document and not selects else spans.dates:
        called = spans.nearest(date, "date")
        bound = date.op != "eq"
        dated = [called.field] if called else spans.of_type("date")
        # a year has no months
        size = len(date.low or date.high)
        fields = [f for f in dated if len(str(f["high"])) >= size] or (dated if bound else [])
        op = cast(Op, date.op)
        value: Any = [date.low, date.high] if op == "between" else date.low or date.high
        tests = [Condition(field=field["name"], op=op, value=value) for field in fields]
        selections = [selected(spans.bases, [test]) for test in tests if not date.unclear]
        if not selections or selections.count(selections[0]) < len(selections):
            if selects or date.unclear or fields or bound:  # else a text may speak of it
                yield Part(*at(date), is_skipped=True)
        elif selects or selections[0]:  # else a date that a text speaks of
            yield from _read_condition(fields[0], op, value, date, negated, called)


def _only(fields: Sequence[Field]) -> Field | None:
    """Return the one field, if there is exactly one."""
    return fields[0] if len(fields) == 1 else None


# --- Order, count, figures of all documents ---


def _read_overall(spans: Spans) -> Overall:
    start, end, limit = read_limit(spans.plain) or (0, 0, None)
    aggregate, called, words = _read_aggregate(spans)
    count = None if aggregate else _read_count(spans)
    sort, is_single, parts = (None, False, []) if aggregate == "count" else _read_sort(spans)
    parts += [Part(*at(span)) for span in [(start, end), *called, *words]]
    parts += [Part(*count.span())] if count else []
    limit = None if limit == 1 else limit
    return Overall(
        sort=sort,
        limit=1 if limit is None and is_single else limit,
        counts=bool(count),
        aggregate=aggregate,
        fields=[span.field["name"] for span in called],
        parts=parts,
    )


def _read_count(spans: Spans) -> re.Match[str] | None:
    """Match the words that ask for a count of documents: "how many pages does it have" is another question."""
    match = spans.find("count.how_many")
    headed = match and any(0 <= start - match.end() <= REACH for start, _ in spans.heads)
    return match if headed or spans.language == "zh" else None


def _read_aggregate(spans: Spans) -> tuple[Aggregate, list[Span], list[At]]:
    """Return what is asked of all documents together, the fields (of a number, by which), and the other words."""
    numbers = [called for called in spans.called if called.field["type"] == "number"]
    orders = ("intent.which", "order.most", "order.least")
    if len(numbers) == 1 and not any(map(spans.find, orders)):
        for name in ("sum", "mean"):
            if match := spans.find(f"aggregate.{name}"):
                called, words = _read_each(spans, by=True)
                return name, [*numbers, *called], [match.span(), *words]
    called, words = _read_each(spans, by=bool(spans.find("count.how_many")))
    if not called:
        called, words = _read_grouping(spans, bool(numbers))
    return "count" if called else "", called, words


def _read_each(spans: Spans, *, by: bool) -> tuple[list[Span], list[At]]:
    """Return the field that is called behind "per", or "by" where that asks for no order."""
    for mark in pattern("aggregate.each").finditer(spans.plain):
        for called in _groups(spans):
            if 0 <= called.start - mark.end() <= 2 and (by or not mark[0].startswith("by")):
                return [called], [mark.span()]
    return [], []


def _groups(spans: Spans) -> list[Span]:
    return [c for c in spans.called if c.field["type"] in ("category", "name", "date")]


def _read_grouping(spans: Spans, has_number: bool) -> tuple[list[Span], list[At]]:
    """Return the field by whose values documents are counted: "who has most papers", "which methods are slow"."""
    groups = _groups(spans)
    superlative = spans.find("aggregate.most") if spans.find("intent.subject") else None
    which = spans.find("intent.which")
    values = pattern("aggregate.values")
    if which and not (superlative or has_number or spans.has_document):
        groups = [
            called
            for called in groups
            if 0 <= called.start - which.end() <= 2
            and any(value.field != called.field for value in spans.values)
        ]
    elif not superlative:  # "list all labels"
        groups = [
            called
            for called in groups
            if values.fullmatch(f"{spans.plain[: called.start]}_{spans.plain[called.end :]}")
        ]
    return (groups, [superlative.span()] if superlative else []) if len(groups) == 1 else ([], [])


def _read_sort(spans: Spans) -> tuple[Sort | None, bool, list[Part]]:
    """Return the order that is asked for, and whether a superlative asks for a single document."""
    masked = blotted(spans.plain, map(at, [*spans.values, *spans.numbers, *spans.dates]))
    parts = list[Part]()
    # "lowest price first" asks for the lowest price: what "first" asks for comes last
    for name in ("last_date", "most", "least", "first_date"):
        if match := pattern(f"order.{name}").search(masked):
            sort, is_single, more = _read_superlative(name, match, masked, spans)
            parts += more
            if sort:
                return sort, is_single, parts
    down = spans.find("order.down")
    direction = down or spans.find("order.up")
    by, more = _ordered_by(spans, "date", "number")
    for called in [by] if by else spans.called if direction else ():
        if called.field["type"] in ("date", "number"):
            parts += [*more, *([Part(*direction.span())] if direction else [])]
            return Sort(field=called.field["name"], descending=bool(down)), False, parts
    return None, False, parts


def _read_superlative(
    name: str, match: re.Match[str], masked: str, spans: Spans
) -> tuple[Sort | None, bool, list[Part]]:
    """Return the order of a superlative, and whether it asks for a single document."""
    kind = "date" if name.endswith("date") else "number"
    descending = name in ("last_date", "most")
    called, parts = spans.nearest(match.span(), kind), list[Part]()
    if not called:
        called, parts = _ordered_by(spans, kind)
    stop = max(match.end(), called.end) if called else match.end()
    first = re.match(r"\s*first\b", masked[stop:])
    about = spans.heads or spans.values or spans.table or first
    fields = spans.of_type(kind) if kind == "date" else measured(match[0], spans.fields)
    field = called.field if called else None
    counts = match[0] in closed_words()["order"]["counts"]  # of what is called
    if about and not (field or counts):
        field = _usual(fields, kind, descending, spans)
    if field is None:  # of documents it is not left unsaid
        skipped = [Part(*match.span(), is_skipped=True)] if about or fields else []
        return None, False, [*parts, *skipped]
    parts += [Part(*match.span()), *([Part(*at(called))] if called else [])]
    parts += [Part(stop, stop + first.end())] if first else []
    return Sort(field=field["name"], descending=descending), not first, parts


def _usual(fields: Sequence[Field], kind: str, descending: bool, spans: Spans) -> Field | None:
    """Return the field that a superlative is of where none is called: the only one, or dates with the same first."""
    scope = [spans.table] if spans.table else []
    orders = [Sort(field=field["name"], descending=descending) for field in fields]
    firsts = {tuple(selected(spans.bases, scope, order, 1)) for order in orders if kind == "date"}
    return fields[0] if len(fields) == 1 or len(firsts) == 1 else None


def _ordered_by(spans: Spans, *kinds: str) -> tuple[Span | None, list[Part]]:
    """Return the field that is called behind "by"."""
    for called in spans.called:
        by = pattern("order.by").search(spans.plain[: called.start])
        if by and called.field["type"] in kinds:
            return called, [Part(*by.span()), Part(*at(called))]
    return None, []


# --- What is asked for ---


def _asked_fields(spans: Spans, names: Sequence[NameRead], parts: Sequence[Part]) -> list[Span]:
    """Return the words for what is asked of a document, which no condition has."""
    if not (spans.find("intent.subject") or spans.has_document):
        return []
    free = [called for called in spans.called if not meets(called, parts)]
    if spans.find("answers.person") and not spans.find("answers.date"):  # "who launched it"
        free = [called for called in free if called.field["type"] not in ("date", "number")]
    # "is it from Italy" asks for the country
    if spans.has_document and spans.find("answers.yes_no"):
        free += [value for value in spans.values if not meets(value, parts)]
    earlier, dated = spans.find("order.earlier_or_later"), _only(spans.of_type("date"))
    if len(names) > 1 and earlier and dated:
        free.append(Span(*earlier.span(), dated))
    return free


def _intent(
    spans: Spans, names: Sequence[NameRead], recommends: bool, listing: bool
) -> QueryIntent:
    if spans.find("intent.compare") or (len(names) > 1 and spans.find("intent.either")):
        return "compare"
    if recommends or listing:
        return "recommend" if recommends else "list"
    if len(names) == 1 and not names[0]["doc_id"] and spans.find("intent.person"):
        return "person"
    return "list" if spans.find("intent.list") and spans.heads and not names else "qa"


def _answer_type(spans: Spans, intent: QueryIntent, count: bool) -> AnswerType:
    if count:
        return "number"
    kinds = (kind for kind in closed_words()["answers"] if spans.find(f"answers.{kind}"))
    listed = "list" if intent in ("list", "recommend") else "text"
    return cast(AnswerType, next(kinds, listed))


def _content(spans: Spans, parts: Sequence[Any]) -> list[str]:
    """Return the content words that nothing accounts for, in order, as they are written."""
    # words that ask to compare, or name the corpus: no passage has to say them
    compares = [match.span() for match in pattern("intent.compare").finditer(spans.folded)]
    left = blotted(spans.folded, map(at, [*parts, *spans.heads, *spans.names, *compares]))
    left = blotted(left, [match.span() for match in pattern("words.corpus").finditer(left)])
    left = STOP_WORDS_ZH.sub(lambda match: "_" * len(match[0]), left)
    closed = {*STOP_WORDS, *closed_words()["words"]["light"].split()}
    matches = re.finditer(r"(?<!['’])[a-z0-9](?:[a-z0-9'’.-]*[a-z0-9])?|[\u3400-\u9fff]+", left)
    places = [match.span() for match in matches if match[0] not in closed]
    return unique(spans.text[slice(*place)] for place in places)
