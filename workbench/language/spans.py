"""Where a question has what its knowledge bases know: names, values, words of fields and tables; and dates, numbers.

Nothing is decided here but what a word is: what it asks for is read in ``question.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from workbench.knowledge.names.schema import NUMBERED
from workbench.language.dates_and_numbers import DateSpan, NumberSpan, read_dates, read_numbers
from workbench.language.names import At, at, blotted, known_name, meets, names_in
from workbench.language.words import (
    NO,
    TABLE,
    YES,
    closed_words,
    degrees,
    field_words,
    fields_by_name,
    fold_in_place,
    measured,
    own_words,
    pattern,
    word_spans,
)
from workbench.ports import Bases, Field
from workbench.state import Condition, NameRead, Sort
from workbench.text import CJK, detect_language, fold, fold_word

LONGEST = 3_000
"""Characters of a question that are read."""
REACH = 24
"""Most characters between a field's word and its value."""
CODE = re.compile(r"\s?(?:no\.? ?|number |#)?([a-z]*\d[a-z\d.-]*)(?<![.-])(?![\w%])")
"""A number or code behind a word."""


class Span(NamedTuple):
    """``text[start:end]`` means this value of this field, or calls the field where ``value`` is empty."""

    start: int
    end: int
    field: Field
    value: str = ""


@dataclass(frozen=True)
class Spans:
    """A question, and what stands where in it.

    Attributes:
        text: the question.
        bases: the knowledge bases that are asked.
        folded: its beginning, folded character by character.
        plain: the same, its names blotted out.
        table: the condition on the table of the documents, where a noun chooses among several.
        fields: of the documents of this table.
        names: what is called by a name.
        values: words for values of fields.
        called: words for fields, and adjectives that measure one.
        dates: that documents may have.
        as_of: dates as of which is asked.
        numbers: without dates and limits.
        heads: what documents are called.
    """

    text: str
    bases: Bases
    folded: str
    plain: str
    table: Condition | None
    fields: Sequence[Field]
    names: Sequence[NameRead]
    values: Sequence[Span]
    called: Sequence[Span]
    dates: Sequence[DateSpan]
    as_of: Sequence[DateSpan]
    numbers: Sequence[NumberSpan]
    heads: Sequence[At]

    @cached_property
    def language(self) -> str:
        """Return the language of the question."""
        return detect_language(self.text)

    @cached_property
    def has_document(self) -> bool:
        """Return True where a document is named."""
        return any(name["doc_id"] for name in self.names)

    def find(self, name: str) -> re.Match[str] | None:
        """Search the question, without its names, for a pattern of ``words.toml``."""
        return pattern(name).search(self.plain)

    def of_type(self, kind: str) -> list[Field]:
        """Return the fields of a type that documents have."""
        return [field for field in self.fields if field["type"] == kind and field["documents"]]

    def nearest(self, span: Any, kind: str, limit: int = REACH) -> Span | None:
        """Return the nearest word of a field of this type, at most ``limit`` characters away."""
        start, end = at(span)
        distances = [
            (max(called.start - end, start - called.end, 0), called.start, called)
            for called in self.called
            if called.field["type"] == kind
        ]
        distance, _, called = min(
            distances, key=lambda entry: entry[:2], default=(limit + 1, 0, None)
        )
        return called if distance <= limit else None


def selected(
    bases: Bases,
    conditions: Sequence[Condition],
    sort: Sort | None = None,
    limit: int | None = None,
) -> list[str]:
    """Return the documents of all knowledge bases that hold."""
    return [doc_id for base in bases for doc_id in base.select(conditions, sort, limit)]


def find_spans(text: str, bases: Bases, today: str = "") -> Spans:
    """Find what a question has; each word has one meaning: names go before values, values before words of fields."""
    beginning = text[:LONGEST]
    folded = fold_in_place(beginning)
    fields = list(fields_by_name(bases).values())
    nouns = _nouns(folded, bases)
    values = _calls(_words_of_values(fields), folded)
    names = _names(beginning, folded, bases, values, fields)
    names += _numbered(beginning, folded, bases, nouns, names)
    values = [value for value in values if not meets(value, names)]
    plain = blotted(folded, map(at, names))
    dates = [
        date
        for date in read_dates(blotted(beginning, map(at, names)), today)
        if not meets(date, values)
    ]
    table = _table(plain, nouns, bases)
    if table:
        fields = [
            field
            for field in fields
            if selected(
                bases, [table, Condition(field=field["name"], op="exists", value=True)], limit=1
            )
        ]
    as_of = [date for date in dates if date.op == "as_of"]
    dates = [date for date in dates if date.op != "as_of"]
    values = [
        value
        for value in values
        if value.field in fields and not _is_word_of_date(value, folded, fields, dates)
    ]
    called = _called(plain, fields, nouns, [*values, *dates])
    if called and not any(name["doc_id"] for name in names):
        # of a document a field is asked: "when was titanic released"
        careless = [name for name in names_in(text, bases, "careless") if name["doc_id"]]
        names += [name for name in careless if not meets(name, [*names, *values, *called])]
        plain = blotted(plain, map(at, names))
    heads = [span for noun in nouns for span in word_spans(noun, plain)]
    heads += [at(value) for value in values if _is_plural(value, plain)]
    return Spans(
        text=text,
        bases=bases,
        folded=folded,
        plain=plain,
        table=table,
        fields=fields,
        names=names,
        values=values,
        called=called,
        dates=dates,
        as_of=as_of,
        numbers=read_numbers(plain),
        heads=sorted(heads),
    )


def negations(plain: str, taken: Iterable[At] = ()) -> Iterator[tuple[int, int, int]]:
    """Yield ``(start, end, until)`` of each negation outside of what is taken: its place, and how far it reaches."""
    masked = blotted(plain, taken)
    for name in ("negation.never", "negation.only"):
        masked = blotted(masked, [match.span() for match in pattern(name).finditer(masked)])
    for match in pattern("negation.before").finditer(masked):
        end = pattern("negation.ends").search(masked, match.end())
        yield *match.span(), end.start() if end else len(masked)


def _calls(
    words: Iterable[tuple[str, Field, str]], text: str, taken: Sequence[Any] = ()
) -> list[Span]:
    """Return where words call fields or values in a folded text, longer words first, in the order of the text."""
    calls = list[Span]()
    folded = ((fold_word(word), field, value) for word, field, value in words)
    for word, field, value in sorted(folded, key=lambda entry: -len(entry[0])):
        if word[:3] in text:  # else no form of it is there
            spans = [Span(*span, field, value) for span in word_spans(word, text, not value)]
            calls += [span for span in spans if not meets(span, [*calls, *taken])]
    return sorted(calls, key=at)


def _words_of_values(fields: Iterable[Field]) -> Iterator[tuple[str, Field, str]]:
    for field in fields:
        for value in field["values"]:
            translated = field["values_called"].get(value, {}).values()
            for word in (value, *(word for words in translated for word in words)):
                if len(word) > 1 and not word.isdigit() and fold_word(value) not in (*YES, *NO):
                    yield word, field, value


# --- Names ---


def _names(
    text: str, folded: str, bases: Bases, values: Sequence[Span], fields: Iterable[Field]
) -> list[NameRead]:
    """Return names, without those that are only a value or the word of a field."""
    called = _calls(
        ((word, field, "") for field in fields for word in field_words(field)), folded
    )
    return [
        name
        for name in names_in(text, bases)
        if name["doc_id"]
        or not (_is_inside(name, values) or (not name["entity_id"] and _is_inside(name, called)))
    ]


def _is_inside(name: NameRead, spans: Iterable[Span]) -> bool:
    return any(span.start <= name["start"] and name["end"] <= span.end for span in spans)


def _numbered(
    text: str, folded: str, bases: Bases, nouns: Iterable[str], names: Sequence[NameRead]
) -> Iterator[NameRead]:
    """Yield the documents that are called by a noun and their number: "issue 104"."""
    ends = {end for noun in nouns for _, end in word_spans(noun, folded)}
    codes = [code for end in ends if (code := CODE.match(folded, end))]
    for base in bases if codes else ():
        keys = [f["name"] for f in base.about()["fields"] if NUMBERED.search(f["relation"])]
        for code, key in product(codes, keys):
            doc_ids = base.select([Condition(field=key, op="eq", value=code[1])])
            entity = base.entity(f"doc:{doc_ids[0]}") if len(doc_ids) == 1 else None
            if entity and not meets(code.span(), names):
                yield known_name(text, *code.span(), entity, base)


# --- Nouns of documents, and their tables ---


def _nouns(folded: str, bases: Bases) -> dict[str, str]:
    """Return folded noun -> the table whose documents it calls, "" for those of all."""
    nouns = dict.fromkeys(closed_words()["words"]["nouns"].split(), "")
    for base in bases:
        vocabulary = base.about()["nouns"]
        nouns |= {fold(word): "" for kind in ("en", "zh") for word in vocabulary.get(kind, ())}
        tables = [table for table in vocabulary.get("tables", ()) if _is_kind(table, folded)]
        nouns |= {fold(table): table for table in [*vocabulary.get("types", ()), *tables]}
    return nouns


def _is_kind(name: str, folded: str) -> bool:
    """Check whether a file or folder is called as a kind of documents: "papers", "which paper"; not "pydantic"."""
    noun = fold(name)
    return (
        bool(CJK.search(noun))
        or noun.endswith("s")
        or any(
            folded[end - 1] == "s" or pattern("words.kind").search(folded[:start])
            for start, end in word_spans(noun, folded, verb=False)
        )
    )


def _table(plain: str, nouns: Mapping[str, str], bases: Bases) -> Condition | None:
    """Return the condition on the one table that a noun calls; None where it has all documents."""
    tables = {
        word.rstrip("s"): table
        for word, table in nouns.items()
        if table and word_spans(word, plain)
    }
    if len(tables) != 1:
        return None
    [table] = tables.values()
    outside = Condition(field=TABLE["name"], op="ne", value=table)
    return {**outside, "op": "eq"} if selected(bases, [outside], limit=1) else None


# --- Words of fields and values ---


def _called(
    plain: str, fields: Sequence[Field], nouns: Mapping[str, str], taken: Sequence[Any]
) -> list[Span]:
    """Return where fields are called by their words, or measured by adjectives.

    A field that says what documents are called is called by none: "which river".
    """
    fields = [field for field in fields if field["name"] not in nouns.values()]
    words = [(word, field, "") for field in fields for word in field_words(field)]
    words += [(word, field, "") for word, field in own_words(fields, nouns).items()]
    calls = _calls(words, plain, taken)
    glued = {word: field for word, field, _ in words if word.isalpha()}
    for pair in re.finditer(
        r"(?=\b([a-z]+) ([a-z]+)\b)", plain
    ):  # "win percent", of "winpercent"
        if field := glued.get(pair[1] + pair[2]):
            calls.append(Span(pair.start(1), pair.end(2), field))
    for degree, _ in degrees(plain):
        numbers = measured(degree[0], fields)
        if len(numbers) == 1 and not meets(degree.span(), calls):
            calls.append(Span(*degree.span(), numbers[0]))
    return calls


def _is_word_of_date(
    value: Span, folded: str, fields: Iterable[Field], dates: Iterable[DateSpan]
) -> bool:
    """Return True for a value that is the word of a date field before a date: "closed before March"."""
    words = [fold(word) for f in fields if f["type"] == "date" for word in field_words(f)]
    is_dated = any(0 <= date.start - value.end <= 4 for date in dates)
    return is_dated and folded[value.start : value.end] in words


def _is_plural(value: Span, plain: str) -> bool:
    """Return True for a value that means the documents that have it: "laptops"."""
    surface = plain[value.start : value.end]
    return not CJK.search(surface) and surface not in (fold(value.value), value.value)
