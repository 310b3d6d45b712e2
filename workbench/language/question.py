"""Read a question once: names, conditions on typed fields, order, count, the date as of which it asks.

Only closed classes are read: dates, numbers, units, comparison, negation, order, question words, and the names, fields,
values and tables of the knowledge bases. A condition counts only where field and value are both certain. Every other
condition is listed in ``not_applied``, which the answer shows, and its words are searched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple, cast

from workbench.knowledge.names.schema import NUMBERED
from workbench.language.dates_and_numbers import (
    DateSpan,
    NumberSpan,
    read_dates,
    read_limit,
    read_numbers,
)
from workbench.language.names import At, at, blotted, known_name, meets, names_in
from workbench.language.words import (
    NO,
    TABLE,
    YES,
    closed_words,
    degrees,
    field_words,
    fields_by_name,
    fits,
    fold_in_place,
    in_unit,
    in_words,
    is_small_talk,
    measured,
    own_words,
    pattern,
    word_spans,
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
)
from workbench.text import CJK, STOP_WORDS, STOP_WORDS_ZH, detect_language, fold, fold_word

LONGEST = 3_000
"""Characters of a question that are read."""
REACH = 24
"""Most characters between a field's word and its value."""
_OPPOSITES: dict[str, Op] = {
    "eq": "ne",
    "in": "not_in",
    "gt": "le",
    "ge": "lt",
    "lt": "ge",
    "le": "gt",
}


class Span(NamedTuple):
    """``text[start:end]`` means this value of this field, or calls the field where ``value`` is empty."""

    start: int
    end: int
    field: Field
    value: str = ""


def _is_inside(name: NameRead, span: Span) -> bool:
    return span.start <= name["start"] and name["end"] <= span.end


def _only(fields: Sequence[Field]) -> Field | None:
    """Return the one field, if there is exactly one."""
    return fields[0] if len(fields) == 1 else None


def _holding(date: DateSpan, fields: Iterable[Field]) -> list[Field]:
    """Return the fields that may hold a date: a year has no months."""
    size = len(date.low or date.high)
    return [field for field in fields if len(str(field["high"])) >= size]


def read(text: str, bases: Bases, today: str = "") -> Question:
    """Read a question over the fields and names of these knowledge bases.

    Args:
        text: the question as it stands alone.
        bases: the knowledge bases that are asked; with none only its words are read.
        today: the ISO day that "last month" and 近三年 are relative to; without one they are not applied.
    """
    return unread(text) if is_small_talk(text) else _Reader(text, bases, today).question()


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


_CODE = re.compile(r"\s?(?:no\.? ?|number |#)?([a-z]*\d[a-z\d.-]*)(?<![.-])(?![\w%])")


class _Reader:
    """Reads one question.

    Each reading step notes the spans that it accounts for in ``used``; the rest are the words of the question.

    Attributes:
        heads: where documents are called by their nouns, of the knowledge bases or in general.
        table: the condition on the table of the documents, where a noun chooses among several.
        fields: of the documents of this table.
        refused: span -> True if it is negated; False where it is negated twice, which is not clear.
    """

    def __init__(self, text: str, bases: Bases, today: str):
        self.text = text
        self.bases = bases
        self.language = detect_language(text)
        self.used = list[At]()
        self.refused = dict[At, bool]()
        self.conditions = list[tuple[int, Condition, str]]()
        self.heads = list[At]()
        self.understood = list[str]()
        self.not_applied = list[str]()
        self.date_asked = ""
        self.fields = list(fields_by_name(bases).values())
        self.folded = fold_in_place(text[:LONGEST])
        nouns = self._nouns()
        self.names, values = self._names_and_values(nouns)
        taken = [*map(at, self.names)]
        self.plain = blotted(self.folded, taken)
        values = [value for value in values if not meets(value, taken)]
        dates = [
            d for d in read_dates(blotted(text[:LONGEST], taken), today) if not meets(d, values)
        ]
        self.dates = [date for date in dates if date.op != "as_of"]
        for date in dates:
            if date.op == "as_of":
                self.date_asked = date.high
                self.used.append(at(date))
                self.understood.append(
                    f"截至 {date.high}" if self.language == "zh" else f"as of {date.high}"
                )
        self.table = self._table(nouns, values)
        if self.table:
            self.fields = [
                f
                for f in self.fields
                if self.select(
                    [self.table, Condition(field=f["name"], op="exists", value=True)], limit=1
                )
            ]
        self.values = [
            value for value in values if value.field in self.fields and not self._of_date(value)
        ]
        self.called = self._called(nouns)
        if self.called and not any(name["doc_id"] for name in self.names):
            # of a document a field is asked: "when was titanic released"
            taken = [*map(at, [*self.names, *self.values, *self.called])]
            careless = [n for n in names_in(text, bases, "careless") if n["doc_id"]]
            self.names += [name for name in careless if not meets(name, taken)]
            self.plain = blotted(self.plain, map(at, self.names))
        heads = [span for word in nouns for span in word_spans(word, self.plain)]
        self.heads = sorted([*heads, *map(at, filter(self._is_plural, self.values))])

    def question(self) -> Question:
        """Read everything, what the rest depends on first."""
        numbers = read_numbers(self.plain)
        has_document = any(name["doc_id"] for name in self.names)
        dated = _only(self.of_type("date"))
        fitting = any(map(self._number_field, numbers)) or any(
            dated or self.nearest(date, "date", 8) for date in self.dates
        )
        start, end, limit = read_limit(self.plain) or (0, 0, None)
        self.used.append((start, end))
        limit = None if limit == 1 else limit
        aggregate, aggregated = self._aggregate()
        count = not aggregate and self._count()
        sort, superlative = self._sort(numbers) if aggregate != "count" else (None, False)
        self.wishes = bool(self.find("intent.recommend"))
        flags = [called for called in self.called if self._is_flag(called)]
        self._read_negations([*self.values, *self.names, *self.dates, *numbers, *flags])
        refuses = any(self.refused.get(at(value)) for value in self.values)
        selecting = bool(
            self.wishes
            or aggregate
            or count
            or sort
            or self.find("intent.list")
            or (
                not has_document
                and (fitting or self.heads or refuses or flags or self._chooses())
            )
        )
        if selecting:
            self._apply_values()
            self._apply_names()
            self._apply_empty()
            for called in flags:
                yes = next(value for value in called.field["values"] if fold(value) in YES)
                if not meets(called, self.used):
                    self._add(called.field, "eq", yes, at(called))
        else:
            self.refused = {}
        self._apply_numbers(numbers, selecting)
        self._apply_codes()
        self._apply_dates(selecting, has_document)
        if selecting:
            self._report_negations()
        listing = bool(count or sort or self.conditions)
        if selecting and self.table:
            self.conditions.append((-1, self.table, in_words(self.table, TABLE, self.language)))
        if limit is None and superlative:
            limit = 1
        fields = aggregated or self._asked_fields(has_document)
        intent = self._intent(listing)
        conditions = sorted(self.conditions, key=lambda entry: entry[0])
        self.understood += [text for _, _, text in conditions]
        return {
            **unread(self.text),
            "intent": intent,
            "answer_type": self._answer_type(intent, count),
            "names": self.names,
            "conditions": [condition for _, condition, _ in conditions],
            "sort": sort,
            "limit": limit,
            "count": count,
            "aggregate": aggregate,
            "fields": fields,
            "words": self._content(),
            "date_asked": self.date_asked,
            "understood": list(dict.fromkeys(self.understood)),
            "not_applied": list(dict.fromkeys(self.not_applied)),
        }

    # --- What stands where ---

    def find(self, name: str) -> re.Match[str] | None:
        """Search the question, without its names, for a pattern of ``words.toml``."""
        return pattern(name).search(self.plain)

    def skip(self, span: Any) -> None:
        """Note that a part of the question is not applied."""
        self.not_applied.append(self.text[slice(*at(span))].strip())

    def select(
        self, conditions: Sequence[Condition], sort: Sort | None = None, limit: int | None = None
    ) -> list[str]:
        """Return the documents of all knowledge bases that hold."""
        return [doc_id for base in self.bases for doc_id in base.select(conditions, sort, limit)]

    def _names_and_values(self, nouns: Collection[str]) -> tuple[list[NameRead], list[Span]]:
        text = self.text[:LONGEST]
        words = [
            (word, field, value)
            for field in self.fields
            for value in field["values"]
            for word in (
                value,
                *(w for words in field["values_called"].get(value, {}).values() for w in words),
            )
            if len(word) > 1 and not word.isdigit() and fold_word(value) not in (*YES, *NO)
        ]
        values = self._calls(words, self.folded, [])
        words = [(word, field, "") for field in self.fields for word in field_words(field)]
        called = self._calls(words, self.folded, [])
        linked = [
            n
            for n in names_in(text, self.bases)
            if n["doc_id"]
            or not (
                (not n["entity_id"] and any(_is_inside(n, span) for span in called))
                or fold(n["surface"]) in nouns
                or any(_is_inside(n, value) for value in values)
            )
        ]
        return [*linked, *self._numbered(nouns, linked)], values

    def _numbered(
        self, nouns: Collection[str], names: Collection[NameRead]
    ) -> Iterator[NameRead]:
        """Yield the documents that are called by a noun and their number: "issue 104"."""
        spans = [span for noun in nouns for span in word_spans(noun, self.folded)]
        codes = [(start, code) for start, end in spans if (code := _CODE.match(self.folded, end))]
        for base in self.bases if codes else []:
            keys = [f["name"] for f in base.about()["fields"] if NUMBERED.search(f["relation"])]
            for (start, code), key in product(codes, keys):
                doc_ids = base.select([Condition(field=key, op="eq", value=code[1])])
                entity = base.entity(f"doc:{doc_ids[0]}") if len(doc_ids) == 1 else None
                if entity and not meets((start, code.end()), names):
                    yield known_name(self.text, start, code.end(), entity, base)

    def _calls(
        self, words: Iterable[tuple[str, Field, str]], text: str, taken: Sequence[Any]
    ) -> list[Span]:
        """Return where words call fields or values in a folded text, longer words first, in the order of the text."""
        calls = list[Span]()
        folded = ((fold_word(word), field, value) for word, field, value in words)
        for word, field, value in sorted(folded, key=lambda entry: -len(entry[0])):
            if word[:3] in text:  # else no form of it is there
                spans = [
                    Span(*span, field, value) for span in word_spans(word, text, verb=not value)
                ]
                calls += [span for span in spans if not meets(span, [*calls, *taken])]
        return sorted(calls, key=at)

    def _nouns(self) -> dict[str, str]:
        """Return folded noun -> the table whose documents it calls, "" for those of all."""
        nouns = dict.fromkeys(closed_words()["words"]["nouns"].split(), "")
        for base in self.bases:
            vocabulary = base.about()["nouns"]
            nouns |= {
                fold(word): "" for kind in ("en", "zh") for word in vocabulary.get(kind, ())
            }
            tables = [*filter(self._is_kind, vocabulary.get("tables", ()))]
            nouns |= {fold(table): table for table in [*vocabulary.get("types", ()), *tables]}
        return nouns

    def _is_kind(self, name: str) -> bool:
        """Check whether a file or folder is called as a kind of documents: "papers", "which paper"; not "pydantic"."""
        noun = fold(name)
        return (
            bool(CJK.search(noun))
            or noun.endswith("s")
            or any(
                self.folded[end - 1] == "s" or pattern("words.kind").search(self.folded[:start])
                for start, end in word_spans(noun, self.folded, verb=False)
            )
        )

    def _table(self, nouns: dict[str, str], taken: Sequence[Any]) -> Condition | None:
        """Return the condition on the one table that a noun calls; of none that is refused or has all documents."""
        taken = [*taken, *((end, until) for _, end, until in self._negations())]
        tables = {
            word.rstrip("s"): table
            for word, table in nouns.items()
            if table and any(not meets(span, taken) for span in word_spans(word, self.plain))
        }
        if len(tables) != 1:
            return None
        inside, outside = (
            Condition(field=TABLE["name"], op=op, value=table)
            for table in tables.values()
            for op in ("eq", "ne")
        )
        return inside if self.select([outside], limit=1) else None

    def _called(self, nouns: dict[str, str]) -> list[Span]:
        """Return where fields are called by their words, or measured by adjectives; words of values belong to those.

        A field that says what documents are called is called by none: "which river".
        """
        fields = [field for field in self.fields if field["name"] not in nouns.values()]
        words = [(word, field, "") for field in fields for word in field_words(field)]
        words += [(word, field, "") for word, field in own_words(fields, nouns).items()]
        calls = self._calls(words, self.plain, [*self.values, *self.dates])
        for degree, _ in degrees(self.plain):
            field = _only(measured(degree[0], fields))
            if field and not meets(degree.span(), calls):
                calls.append(Span(*degree.span(), field))
        return calls

    def _of_date(self, value: Span) -> bool:
        """Return True for a value that is the word of a date field before a date: "closed before March"."""
        words = [fold(word) for field in self.of_type("date") for word in field_words(field)]
        dated = any(0 <= date.start - value.end <= 4 for date in self.dates)
        return dated and self.folded[value.start : value.end] in words

    def _is_plural(self, value: Span) -> bool:
        """Return True for a value that means the documents that have it: "laptops"."""
        surface = self.plain[value.start : value.end]
        return not CJK.search(surface) and surface not in (fold(value.value), value.value)

    def _stands_alone(self, value: Span) -> bool:
        """Return True for a value that is not part of a longer phrase, nor what a text is about."""
        word = re.match(r"\s*([a-z']+)", self.plain[value.end :])
        spans = (*self.heads, *self.values, *self.names, *self.called, *self.used)
        closed = not word or word[1] in STOP_WORDS or word[1].endswith("ed")
        if (
            word
            and not closed
            and value.end + word.start(1) not in {at(span)[0] for span in spans}
        ):
            return False  # "graph neural networks"
        exact = self.text[value.start : value.end] == value.value != value.value.lower()
        exact = exact or value.field["relation"] in closed_words()["values"]["topics"]
        return exact or not pattern("values.topic").search(self.plain[: value.start])

    def nearest(self, span: Any, kind: str, limit: int = REACH) -> Span | None:
        """Return the nearest word of a field of this type, at most ``limit`` characters away."""
        start, end = at(span)
        fields = [called for called in self.called if called.field["type"] == kind]
        distances = [
            (max(called.start - end, start - called.end, 0), called.start, called)
            for called in fields
        ]
        distance, _, called = min(
            distances, key=lambda entry: entry[:2], default=(limit + 1, 0, None)
        )
        return called if distance <= limit else None

    def of_type(self, kind: str) -> list[Field]:
        """Return the fields of a type that documents have."""
        return [field for field in self.fields if field["type"] == kind and field["documents"]]

    # --- Negation ---

    def _read_negations(self, marks: Iterable[Any]) -> None:
        """Read which of these values, names, dates and numbers are negated."""
        spans = sorted(map(at, marks))
        refused = self.refused
        for start, end, until in self._negations(spans):
            reached = [span for span in spans if end <= span[0]]
            before = [span for span in spans if span[1] <= start]
            if reached and reached[0][0] <= min(until, end + REACH):
                self.used.append((start, end))
                # "not present on 5 March" refuses what stands before the date
                on = [at(date) for date in self.dates if date.op == "eq"]
                clear = reached[0] not in on or not self._says(end, reached[0][0])
                for span in [reached[0], *self._joined(reached)]:
                    refused[span] = clear and span not in refused
            elif before and not pattern("words.clause").search(self.plain[before[-1][1] : start]):
                # "that she did not edit": who is meant stands before it
                refused[before[-1]] = False
        only = [match.end() for match in pattern("negation.only").finditer(self.plain)]
        for start, end in spans:
            behind = pattern("negation.behind").match(self.plain[end:])
            if behind:
                self.used.append((end, end + behind.end()))
                refused.setdefault((start, end), True)
            if any(0 <= start - stop <= 4 for stop in only):
                refused[start, end] = False

    def _negations(self, spans: Iterable[At] = ()) -> Iterator[tuple[int, int, int]]:
        """Yield ``(start, end, until)`` of each negation: where it stands, and how far it reaches."""
        masked = blotted(self.plain, spans)
        for name in ("negation.never", "negation.only"):
            masked = blotted(masked, [match.span() for match in pattern(name).finditer(masked)])
        for match in pattern("negation.before").finditer(masked):
            end = pattern("negation.ends").search(masked, match.end())
            yield *match.span(), end.start() if end else len(masked)

    def _says(self, start: int, end: int) -> bool:
        """Return True where a part of the question has a word that is neither a field's nor a stop word."""
        left = blotted(self.plain, map(at, self.called))[start:end]
        return any(word not in STOP_WORDS for word in re.findall(r"[a-z0-9]+", left))

    def _joined(self, spans: Sequence[At]) -> Iterator[At]:
        """Yield what is joined with the first of these spans by commas, "and" and "or"."""
        for first, second in pairwise(spans):
            if not pattern("words.joined").fullmatch(self.plain[first[1] : second[0]]):
                return
            yield second

    def _report_negations(self) -> None:
        """Report a negation that reaches no value, name, number or date: it is never turned into its opposite."""
        for start, end, reach in self._negations(self.used):
            refuses = any(
                end <= begin <= reach or stop <= start <= stop + REACH
                for begin, stop in self.refused
            )
            until = min(reach, end + REACH)
            if not refuses and self.plain[end:until].strip(" _"):
                self.skip((start, until))

    # --- Conditions ---

    def _add(
        self, field: Field, op: Op, value: Any, span: At, called: Span | None = None
    ) -> None:
        """Add a condition, turned where it is refused; ``called`` is the word of its field next to it."""
        self.used += [span, *([at(called)] if called else [])]
        refused = self.refused.get(span)
        if refused is False or (refused and op not in _OPPOSITES):
            self.skip(span)
            return
        condition = Condition(
            field=field["name"], op=_OPPOSITES[op] if refused else op, value=value
        )
        text = in_words(condition, field, self.language)
        if text not in (before for _, _, before in self.conditions):
            self.conditions.append((span[0], condition, text))

    def _add_values(self, field: Field, occurrences: Sequence[tuple[At, Any]]) -> None:
        """Add the values of one field: refused ones apart; of the others one is enough, unless a document has many."""
        for refused in (True, False, None):
            part = [
                (span, value) for span, value in occurrences if self.refused.get(span) is refused
            ]
            values = list(dict.fromkeys(value for _, value in part))
            between = self.plain[part[0][0][1] : part[-1][0][0]] if part else ""
            either = refused or not field["many"] or re.search(r"\bor\b|或|还是", between)
            if len(values) > 1 and either:
                self.used += [span for span, _ in part]
                part = [(part[0][0], values)]
            for span, value in part:
                self._add(field, "in" if isinstance(value, list) else "eq", value, span)

    def _apply_values(self) -> None:
        """Apply the values of categories that stand by themselves: not inside another phrase, not as a topic."""
        applied = [v for v in self.values if at(v) in self.refused or self._stands_alone(v)]
        for value in applied:
            field_word = self.nearest(value, "category", 4)
            if field_word and field_word.field == value.field:
                self.used.append(at(field_word))
        for field in {value.field["name"]: value.field for value in applied}.values():
            self._add_values(field, [(at(v), v.value) for v in applied if v.field == field])

    def _apply_names(self) -> None:
        """Apply the names that a field holds: of several fields the one that is called next to it, else the usual."""
        names = []
        applied = []
        for name in self.names:
            span = at(name)
            called = self.nearest(name, "name")
            counts = {}
            for field in (*self.of_type("name"), *self.of_type("category")):
                holds = Condition(field=field["name"], op="eq", value=name["name"])
                counts[field["name"]] = len(self.select([holds]))
            usual = max(counts, key=lambda name: (counts[name], name), default="")
            leads = called and called.end <= span[0]
            before = (
                self.plain[max(0, called.start - 8) : called.start] if called and leads else ""
            )
            asks = pattern("intent.subject").search(before)  # its value is asked for
            if called and not asks and (counts[called.field["name"]] or not name["entity_id"]):
                self.used.append(at(called))
                applied.append((called.field["name"], span, name["name"]))
            elif usual and counts[usual] and (not name["doc_id"] or span in self.refused):
                applied.append((usual, span, name["name"]))
            else:
                names.append(name)
        for field in self.fields:
            self._add_values(
                field, [(span, name) for owner, span, name in applied if owner == field["name"]]
            )
        self.names = names

    def _apply_empty(self) -> None:
        """Apply "without a budget" and 没有负责人: the field is to be empty, or to be "no"."""
        for called in self.called:
            empty = pattern("negation.empty").search(self.plain[: called.start])
            if empty and not any(0 <= value.start - called.end <= 4 for value in self.values):
                no = next((value for value in called.field["values"] if fold(value) in NO), None)
                self.used.append(empty.span())
                self.refused.pop(at(called), None)  # "no" is the value here, and refuses nothing
                self._add(called.field, "eq" if no else "exists", no or False, at(called))

    def _chooses(self) -> bool:
        """Return True for a choice among documents by a value of theirs: "which kettle is from Norway"."""
        which = self.find("intent.which")
        asks_field = which and any(0 <= called.start - which.end() <= 2 for called in self.called)
        return bool(which and not asks_field and any(map(self._stands_alone, self.values)))

    def _is_flag(self, called: Span) -> bool:
        """Return True for a field of yes and no that the question calls without one of them: "in stock"."""
        values = called.field["values"]
        answered = any(0 <= value.start - called.end <= 4 for value in self.values)
        kinds = {fold(value) for value in values}
        return not answered and kinds <= {*YES, *NO} and not kinds.isdisjoint(YES)

    def _apply_numbers(self, numbers: Sequence[NumberSpan], selecting: bool) -> None:
        for number in numbers:
            span = at(number)
            field = self._number_field(number)
            beside = self.nearest(span, "number", 4) or (number.unit and selecting)
            if number.op == "eq" and not (field and beside):
                continue  # a bare number is a word
            if field is None or number.unclear:
                if selecting:
                    self.skip(span)
                continue
            scaled = bool(pattern("measure.scale").search(self.plain[slice(*span)]))
            bounds = [
                in_unit(b, number.unit, field, scaled)
                for b in (number.low, number.high)
                if b is not None
            ]
            self._add(
                field,
                cast(Op, number.op),
                bounds if number.op == "between" else bounds[0],
                span,
                self.nearest(span, "number"),
            )

    def _apply_codes(self) -> None:
        """Apply a number or code behind the word of a field that has it as a value: "plot 9", "room B12"."""
        refused = [(end, until) for _, end, until in self._negations()]
        for called in self.called:
            code = _CODE.match(self.folded, called.end)
            kind = called.field["type"]
            if not code or kind in ("number", "date") or meets(code.span(1), refused):
                continue
            value = self.text[slice(*code.span(1))]
            holds = Condition(field=called.field["name"], op="eq", value=value)
            if self.select([holds], limit=1):
                self.names = [name for name in self.names if not meets(name, [code.span(1)])]
                self._add(called.field, "eq", value, code.span(1), called)

    def _number_field(self, number: NumberSpan) -> Field | None:
        """Return the number's field: by its unit, or by the nearest word of a field."""
        by_unit = [field for field in self.of_type("number") if fits(number.unit, field)]
        called = self.nearest(number, "number")
        fitting = called and (called.field in by_unit or not by_unit)
        return _only(by_unit) or (called.field if called and fitting else None)

    def _apply_dates(self, selecting: bool, has_document: bool) -> None:
        """Apply dates to the field that is called next to them; else where all possible fields select the same."""
        for date in [] if has_document and not selecting else self.dates:
            field_word = self.nearest(date, "date")
            bound = date.op != "eq"
            dated = [field_word.field] if field_word else self.of_type("date")
            fields = _holding(date, dated) or (dated if bound else [])
            op = cast(Op, date.op)
            value = date.low or date.high
            bounds: Any = [date.low, date.high] if op == "between" else value
            tests = [Condition(field=field["name"], op=op, value=bounds) for field in fields]
            selections = [self.select([test]) for test in tests if not date.unclear]
            if not selections or selections.count(selections[0]) < len(selections):
                if selecting or date.unclear or fields or bound:  # else a text may speak of it
                    self.skip(date)
            elif selecting or selections[0]:  # else a date that a text speaks of
                self._add(fields[0], op, bounds, at(date), field_word)

    # --- Count, order ---

    def _count(self) -> bool:
        match = self.find("count.how_many")
        # "how many pages does it have" counts no documents
        if not match or not (
            self.language == "zh" or any(0 <= s - match.end() <= REACH for s, _ in self.heads)
        ):
            return False
        self.used.append(match.span())
        return True

    def _aggregate(self) -> tuple[Aggregate, list[str]]:
        """Return what is asked of all documents together, and the fields: of a number, and by which it is asked."""
        numbers = [called for called in self.called if called.field["type"] == "number"]
        has_order = any(map(self.find, ("intent.which", "order.most", "order.least")))
        for name in cast(Any, () if has_order or len(numbers) != 1 else ("sum", "mean")):
            match = self.find(f"aggregate.{name}")
            if match:
                self.used += [match.span(), at(numbers[0])]
                return name, [numbers[0].field["name"], *self._each(by=True)]
        grouping = self._each(by=bool(self.find("count.how_many"))) or self._grouping()
        return ("count", grouping) if grouping else ("", [])

    def _each(self, *, by: bool) -> list[str]:
        """Return the field that is called behind "per", or "by" where that asks for no order."""
        for mark in pattern("aggregate.each").finditer(self.plain):
            for called in self._groups():
                if 0 <= called.start - mark.end() <= 2 and (by or not mark[0].startswith("by")):
                    self.used += [mark.span(), at(called)]
                    return [called.field["name"]]
        return []

    def _groups(self) -> list[Span]:
        return [c for c in self.called if c.field["type"] in ("category", "name", "date")]

    def _grouping(self) -> list[str]:
        """Return the field by whose values documents are counted: "who has most papers", "which methods are slow"."""
        groups = self._groups()
        superlative = self.find("aggregate.most") if self.find("intent.subject") else None
        which = self.find("intent.which")
        values = pattern("aggregate.values")
        orders = ("order.most", "order.least", "order.last_date", "order.first_date")
        numbers = any(called.field["type"] == "number" for called in self.called)
        has_order = numbers or any(map(self.find, orders))
        if superlative:  # "the most papers", 论文最多
            zh = bool(CJK.search(superlative[0]))
            gaps = [
                superlative.start() - e if zh else s - superlative.end() for s, e in self.heads
            ]
            groups = groups if any(0 <= gap <= REACH for gap in gaps) else []
        elif which and not has_order and not any(name["doc_id"] for name in self.names):
            groups = [
                called
                for called in groups
                if 0 <= called.start - which.end() <= 2
                and any(value.field != called.field for value in self.values)
            ]
        else:  # "list all labels"
            groups = [
                c
                for c in groups
                if values.fullmatch(f"{self.plain[: c.start]}_{self.plain[c.end :]}")
            ]
        field = _only([called.field for called in groups])
        if field is None:
            return []
        self.used += [at(groups[0]), *([superlative.span()] if superlative else [])]
        return [field["name"]]

    def _sort(self, numbers: Sequence[NumberSpan]) -> tuple[Sort | None, bool]:
        """Return the order that is asked for, and whether a superlative asks for a single document."""
        masked = blotted(self.plain, map(at, [*self.values, *numbers, *self.dates]))
        scope = [self.table] if self.table else []
        # "lowest price first" asks for the lowest price: what "first" asks for comes last
        for name in ("last_date", "most", "least", "first_date"):
            descending = name in ("last_date", "most")
            match = pattern(f"order.{name}").search(masked)
            if not match:
                continue
            (start, end), kind = match.span(), "date" if name.endswith("date") else "number"
            field_word = self.nearest((start, end), kind, 12) or self._ordered_by(kind)
            # "the oldest mill", or "which mill is the oldest"
            headed = [
                span
                for span in sorted([*self.heads, *map(at, self.values)])
                if -2 <= span[0] - end <= REACH
                or pattern("order.behind").fullmatch(masked[span[1] : start])
            ]
            of_kind = self.of_type(kind) if kind == "date" else measured(match[0], self.fields)
            firsts = [
                self.select(scope, Sort(field=f["name"], descending=descending), 1)
                for f in of_kind
            ]
            same = kind == "date" and len({*map(tuple, firsts)}) == 1
            counts = match[0] in closed_words()["order"]["counts"]  # of what is called
            usual = None if counts else _only(of_kind[:1] if same else of_kind)
            field = field_word.field if field_word else usual
            stop = max(end, field_word.end) if field_word else end
            first = re.match(r"\s*first\b", masked[stop:])
            about = bool(headed or self.table or first)
            if field is None or not (field_word or about):
                if (
                    about or of_kind or self.heads or self.values
                ):  # of documents it is not left unsaid
                    self.skip((start, end))
                continue
            self.used += [(start, end), *([at(field_word)] if field_word else [])]
            self.used += [(stop, stop + first.end())] if first else []
            behind = next((self.plain[slice(*head)] for head in headed if head[0] >= end), "")
            return Sort(field=field["name"], descending=descending), not (
                first or (behind.isascii() and behind.endswith("s"))
            )
        return self._sort_by_field(), False

    def _sort_by_field(self) -> Sort | None:
        """Return the order that "by year", 按年份 and 热量从低到高 ask for."""
        down = self.find("order.down")
        direction = down or self.find("order.up")
        by = self._ordered_by("date", "number")
        for called in [by] if by else self.called if direction else ():
            if called.field["type"] in ("date", "number"):
                self.used += [direction.span()] if direction else []
                self.used += [at(called)] if by else []
                return Sort(field=called.field["name"], descending=bool(down))
        return None

    def _ordered_by(self, *kinds: str) -> Span | None:
        """Return the field that is called behind "by", which is accounted for then."""
        for called in self.called:
            by = pattern("order.by").search(self.plain[: called.start])
            if by and called.field["type"] in kinds:
                self.used.append(by.span())
                return called
        return None

    # --- What is asked for ---

    def _asked_fields(self, has_document: bool) -> list[str]:
        if not (self.find("intent.subject") or has_document):
            return []
        free = [called for called in self.called if not meets(called, self.used)]
        if self.find("answers.person") and not self.find("answers.date"):  # "who launched it"
            free = [called for called in free if called.field["type"] not in ("date", "number")]
        if has_document and self.find(
            "answers.yes_no"
        ):  # "is it from Italy" asks for the country
            free += [value for value in self.values if not meets(value, self.used)]
        earlier, dated = self.find("order.earlier_or_later"), _only(self.of_type("date"))
        if len(self.names) > 1 and earlier and dated:
            free.append(Span(*earlier.span(), dated))
        self.used += map(at, free)
        return list(dict.fromkeys(span.field["name"] for span in free))

    def _content(self) -> list[str]:
        """Return the content words that nothing accounts for, in order, as they are written."""
        # words that ask to compare, or name the corpus: no passage has to say them
        compares = [match.span() for match in pattern("intent.compare").finditer(self.folded)]
        left = blotted(self.folded, [*self.used, *self.heads, *map(at, self.names), *compares])
        left = blotted(left, [match.span() for match in pattern("words.corpus").finditer(left)])
        left = STOP_WORDS_ZH.sub(lambda match: "_" * len(match[0]), left)
        words = []
        light_words = closed_words()["words"]["light"].split()
        for match in re.finditer(
            r"(?<!['’])[a-z0-9](?:[a-z0-9'’.-]*[a-z0-9])?|[\u3400-\u9fff]+", left
        ):
            word = re.sub(r"['’]s?$", "", match[0])
            if word not in STOP_WORDS and word not in light_words:
                words.append(self.text[match.start() : match.start() + len(word)])
        return list(dict.fromkeys(words))

    def _intent(self, listing: bool) -> QueryIntent:
        if self.find("intent.compare") or (len(self.names) > 1 and self.find("intent.either")):
            return "compare"
        if self.wishes or listing:
            return "recommend" if self.wishes else "list"
        if len(self.names) == 1 and not self.names[0]["doc_id"] and self.find("intent.person"):
            return "person"
        return "list" if self.find("intent.list") and self.heads and not self.names else "qa"

    def _answer_type(self, intent: QueryIntent, count: bool) -> AnswerType:
        if count:
            return "number"
        kinds = (kind for kind in closed_words()["answers"] if self.find(f"answers.{kind}"))
        listed = "list" if intent in ("list", "recommend") else "text"
        return cast(AnswerType, next(kinds, listed))
