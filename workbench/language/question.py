"""Read a question once: names, conditions on typed fields, order, count, total, the date as of which it asks.

Only closed classes are read: dates, numbers, units, comparison, negation, order, question words, and the names, fields,
values and tables of the knowledge bases. A condition counts only where field and value are both certain. Every other
condition is listed in ``not_applied``, which the answer shows, and its words are searched.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple, cast

from workbench.knowledge.names.schema import spoken, spoken_words
from workbench.language.dates import read_dates
from workbench.language.names import QUOTED, blotted, names_in
from workbench.language.numbers import NumberSpan, read_limit, read_numbers
from workbench.language.wording import (
    TABLE,
    TOTALS_ZH,
    fields_of,
    fits,
    fold_in_place,
    in_unit,
    in_words,
    shown,
    word_spans,
    words_of,
)
from workbench.ports import Field, KnowledgeBase
from workbench.state import AnswerType, Condition, NameRead, Op, QueryIntent, Question, Sort, Total
from workbench.text import CJK, fold, language_of

LONGEST = 3_000
"""Characters of a question that are read."""
NEAR = 24
"""Characters between a field's word and the value that it belongs to, at most."""
_LONGEST_TALK = 300
_OPPOSITES: dict[str, Op] = {"eq": "ne", "in": "not_in", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
_TRUTHS = frozenset(("yes", "no", "true", "false", "是", "否", "有", "无"))
_FULL_NAME = re.compile(r"(?:[A-Z][\w.'’-]* )+[A-Z][\w'’-]*")

At = tuple[int, int]
"""Where something stands: ``text[start:end]``."""


class Span(NamedTuple):
    """``text[start:end]`` means this value of this field, or calls the field where ``value`` is empty."""

    start: int
    end: int
    field: Field
    value: str = ""


def at(thing: Any) -> At:
    """Return where a name, a value, a date or a number stands."""
    return (thing["start"], thing["end"]) if isinstance(thing, dict) else (thing[0], thing[1])


def meets(thing: Any, others: Iterable[Any]) -> bool:
    """Return True where a thing overlaps one of the others."""
    start, end = at(thing)
    return any(start < until and begin < end for begin, until in map(at, others))


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("words.toml").read_text(encoding="utf-8"))


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern of ``words.toml``, by its section and name: ``pattern("count.how_many")``."""
    section, key = name.split(".")
    return re.compile(_words()[section][key], re.I)


@cache
def stop_words() -> frozenset[str]:
    """Return the English function words and words of asking."""
    return frozenset(_words()["words"]["stop"].split())


@cache
def _small_talk() -> re.Pattern[str]:
    lines = files("workbench.language").joinpath("smalltalk.txt").read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line.strip() and not line.startswith("#")))


def is_small_talk(message: str) -> bool:
    """Return True for a message of nothing but greetings, thanks, farewells and questions about who answers.

    >>> [is_small_talk(m) for m in ("Hello there!", "你好，你是谁？", "Hello, who wrote this?", "再推荐几部")]
    [True, True, False, False]
    """
    if len(message) > _LONGEST_TALK:
        return False
    parts = re.split(r"[\W_]*[,.!?:;，。！？：；~～、\n…]+[\W_]*", message.lower().replace("’", "'"))
    bare = [re.sub(r"[^\w\s']", "", part).strip() for part in parts]
    return any(bare) and all(_small_talk().fullmatch(part) for part in bare if part)


def read(text: str, bases: Sequence[KnowledgeBase], today: str = "") -> Question:
    """Read a question over the fields and names of these knowledge bases.

    Args:
        text: the question as it stands alone.
        bases: the knowledge bases that are asked; with none only its words are read.
        today: the ISO day that "last month" and 近三年 are relative to; without one they are not applied.
    """
    return _Reader(text, bases, today).question()


class _Reader:
    """A question while it is read.

    Attributes:
        used: what is accounted for: what is left are the words of the question.
        heads: where documents are called by what the knowledge bases, or everybody, call them.
        table: the condition that a noun puts on the table of the documents, where it chooses among several.
        fields: those that documents of this table have.
        refused: span -> True for what is refused; False where it is so twice, which is not clear.
    """

    def __init__(self, text: str, bases: Sequence[KnowledgeBase], today: str):
        self.text, self.bases, self.language = text, bases, language_of(text)
        self.used: list[At] = []
        self.heads: list[At] = []
        self.refused: dict[At, bool] = {}
        self.conditions: list[tuple[int, Condition, str]] = []
        self.understood: list[str] = []
        self.not_applied: list[str] = []
        self.date_asked = ""
        self.fields = list(fields_of(bases).values())
        self.folded = fold_in_place(text[:LONGEST])
        self.names, values = self._names_and_values()
        taken = [*map(at, self.names), *(match.span() for match in QUOTED.finditer(self.folded))]
        self.plain = blotted(self.folded, taken)
        values = [value for value in values if not meets(value, taken)]
        dates = [d for d in read_dates(blotted(text[:LONGEST], taken), today) if not meets(d, values)]
        self.dates = [date for date in dates if date.op != "as_of"]
        for date in dates:
            if date.op == "as_of":
                self.date_asked = date.high or date.low
                self.used.append(at(date))
                self._tell(f"as of {self.date_asked}", f"截至 {self.date_asked}")
        nouns = self._nouns()
        self.table = self._table(nouns, values)
        if self.table:
            self.fields = [f for f in self.fields if self._select([self.table, _exists(f)], limit=1)]
        self.values = [value for value in values if value.field in self.fields]
        self.called = self._called()
        self.heads = [s for word in nouns for s in word_spans(word, self.plain) if not meets(s, self.values)]
        self.heads = sorted([*self.heads, *self._valued_heads()])

    def question(self) -> Question:
        """Read everything, what the rest depends on first."""
        numbers = read_numbers(blotted(self.plain, map(at, [*self.dates, *self.values])))
        has_document = any(name["doc_id"] for name in self.names)
        fitting = any(number.op != "eq" and self._field_of(number) for number in numbers)
        fitting = fitting or any(self._nearest(date, "date", 8) or self._only("date") for date in self.dates)
        certain = fitting and not has_document
        limit = read_limit(self.plain)
        limit = None if limit == 1 else limit
        count, group = self._count()
        total = self._total()
        sort, superlative = (None, False) if group or total else self._sort(numbers)
        self.wishes = bool(self._find("intent.recommend"))
        wanting = bool(self.wishes or count or sort or total or self._find("intent.list"))
        used = list(self.used)
        self._read_negations([*self.values, *self.names], [*self.dates, *numbers])
        refuses = any(self.refused.get(at(value)) for value in self.values)
        selecting = wanting or certain or ((bool(self.heads) or refuses) and not has_document)
        if selecting:
            self._apply_values()
            self._apply_names()
            self._apply_empty()
        else:
            self.refused, self.used = {}, used
        self._apply_numbers(numbers, selecting, limit)
        self._apply_dates(selecting, has_document)
        if selecting:
            self._report_negations()
        listing = bool(count or sort or self.conditions)
        if selecting and self.table:
            self.conditions.append((-1, self.table, in_words(self.table, TABLE, self.language)))
        if limit is None and superlative:
            limit = 1
        fields = self._asked_fields(group, has_document)
        words = self._content(limit)
        intent = self._intent(listing)
        conditions = sorted(self.conditions, key=lambda found: found[0])
        self.understood += [text for _, _, text in conditions]
        self._describe(count, group, sort, limit, total)
        return Question(
            text=self.text,
            language="zh" if self.language == "zh" else "en",
            intent=intent,
            answer_type=self._answer_type(intent, count),
            names=self.names,
            conditions=[condition for _, condition, _ in conditions],
            sort=sort,
            limit=limit,
            count=count,
            group=group,
            total=total,
            fields=[] if intent == "person" else fields,
            words=words,
            date_asked=self.date_asked,
            understood=list(dict.fromkeys(self.understood)),
            not_applied=list(dict.fromkeys(self.not_applied)),
        )

    # --- What stands where ---

    def _find(self, name: str) -> re.Match[str] | None:
        return pattern(name).search(self.plain)

    def _phrase(self, span: Any) -> str:
        return self.text[slice(*at(span))].strip()

    def _skip(self, span: Any) -> None:
        self.not_applied.append(self._phrase(span))

    def _names_and_values(self) -> tuple[list[NameRead], list[Span]]:
        text = self.text[:LONGEST]
        by_name = {field["name"]: field for field in self.fields}
        words = spoken(spoken_words(f for f in self.fields if f["type"] == "category"), text)
        names = names_in(text, self.bases)
        people = [at(n) for n in names if n["entity_id"] and _FULL_NAME.fullmatch(n["surface"])]
        values = [Span(s, e, by_name[name], value) for s, e, name, value in words if fold(value) not in _TRUTHS]
        values = [value for value in values if at(value) not in people]

        def is_value(name: NameRead) -> bool:
            return any(v.start <= name["start"] and name["end"] <= v.end for v in values)

        return [name for name in names if name["doc_id"] or not is_value(name)], values

    def _nouns(self) -> dict[str, str]:
        """Return folded noun -> the table whose documents it calls, "" for those of all."""
        nouns = dict.fromkeys(_words()["words"]["nouns"].split(), "")
        for base in self.bases:
            known = base.nouns()
            nouns |= {fold(word): "" for kind in ("en", "zh") for word in known.get(kind, ())}
            tables = [*known.get("types", ()), *known.get("tables", ())]
            nouns |= {fold(table): table for table in tables if table != "Document"}
        return nouns

    def _table(self, nouns: dict[str, str], taken: Sequence[Any]) -> Condition | None:
        """Return the condition on the one table that a noun calls; of none that is refused or has all documents."""
        reaches = [(end, until) for _, end, until in self._negations()]
        named: dict[str, str] = {}
        for word, table in nouns.items():
            spans = word_spans(word, self.plain) if table else []
            if any(not meets(span, taken) and not meets(span, reaches) for span in spans):
                named[word.rstrip("s")] = table
        found = []
        for table in named.values():
            inside, outside = (Condition(field=TABLE["name"], op=op, value=table) for op in ("eq", "ne"))
            if self._select([inside], limit=1) and self._select([outside], limit=1):
                found.append(inside)
        return found[0] if len(found) == 1 else None

    def _called(self) -> list[Span]:
        """Return where fields are called by their words, longer words first; words of values are left to the values."""
        found: list[Span] = []
        pairs = [(fold(word), field) for field in self.fields for word in words_of(field)]
        for word, field in sorted(pairs, key=lambda pair: -len(pair[0])):
            spans = [Span(*span, field) for span in word_spans(word, self.plain)]
            found += [span for span in spans if not meets(span, [*found, *self.values, *self.dates])]
        return sorted(found, key=at)

    def _valued_heads(self) -> Iterator[At]:
        """Yield values that stand for the documents that have them: "laptops", "the cheapest phone"."""
        for value in self.values:
            surface, rest = self.plain[value.start : value.end], self.plain[value.end :]
            chinese = bool(CJK.search(surface))
            plural = not chinese and surface not in (fold(value.value), value.value)
            determined = pattern("values.determined").search(self.plain[: value.start]) and self._stands_alone(value)
            if plural or (pattern("values.ends_zh").match(rest) if chinese else determined):
                yield at(value)

    def _clause(self, span: At) -> At:
        ends = pattern("words.clause")
        before = [match.end() for match in ends.finditer(self.plain, 0, span[0])]
        after = ends.search(self.plain, span[1])
        return (before[-1] if before else 0), (after.start() if after else len(self.plain))

    def _nearest(self, thing: Any, kind: str, most: int = NEAR) -> Span | None:
        """Return the nearest word of a field of this type in the same clause, at most ``most`` characters away."""
        start, end = at(thing)
        low, high = self._clause((start, end))
        inside = [c for c in self.called if c.field["type"] == kind and low <= c.start and c.end <= high]
        by_distance = sorted((max(c.start - end, start - c.end, 0), c.start, c) for c in inside)
        return by_distance[0][2] if by_distance and by_distance[0][0] <= most else None

    def _of_type(self, kind: str) -> list[Field]:
        return [field for field in self.fields if field["type"] == kind and field["documents"]]

    def _only(self, kind: str) -> Field | None:
        fields = self._of_type(kind)
        return fields[0] if len(fields) == 1 else None

    def _select(self, conditions: Sequence[Condition], sort: Sort | None = None, limit: int | None = None) -> list[str]:
        return [doc_id for base in self.bases for doc_id in base.select(conditions, sort, limit)]

    def _agreed(self, fields: Sequence[Field], select: Callable[[Field], list[str]]) -> Field | None:
        """Return a field where it does not matter which of these is meant: every one selects the same documents."""
        found = [sorted(select(field)) for field in fields]
        return fields[0] if found and all(ids == found[0] for ids in found) else None

    # --- Negation ---

    def _read_negations(self, things: Iterable[Any], counted: Iterable[Any]) -> None:
        """Read which of these are refused; dates and numbers (``counted``) not across the noun of "without violence"."""
        spans, negated = sorted(map(at, [*things, *counted])), self.refused
        counted_spans = set(map(at, counted))
        for start, end, until in self._negations(spans):
            reached = [span for span in spans if end <= span[0]]
            before = [span for span in spans if self._clause(span)[0] <= span[0] and span[1] <= start]
            if reached and reached[0][0] <= min(until, end + NEAR):
                of_noun = pattern("negation.of_noun").fullmatch(self.plain[start:end])
                gap = re.findall(r"\w+", pattern("words.stop_zh").sub(" ", self.plain[end : reached[0][0]]))
                if of_noun and reached[0] in counted_spans and not stop_words().issuperset(gap):
                    continue
                self.used.append((start, end))
                for span in [reached[0], *self._joined(reached)]:
                    negated[span] = span not in negated
            elif before and not pattern("words.clause").search(self.plain[before[-1][1] : start]):
                negated[before[-1]] = False  # "that she did not edit": who is meant stands before it
        for span in spans:
            behind = pattern("negation.behind").match(self.plain[span[1] :])
            if behind and behind.group():
                self.used.append((span[1], span[1] + behind.end()))
                negated.setdefault(span, True)
            if any(0 <= span[0] - only.end() <= 4 for only in pattern("negation.only").finditer(self.plain)):
                negated[span] = False

    def _negations(self, spans: Iterable[At] = ()) -> Iterator[tuple[int, int, int]]:
        """Yield ``(start, end, until)`` of each negation: where it stands, and how far it reaches."""
        masked = blotted(self.plain, spans)
        for name in ("negation.never", "negation.only"):
            masked = blotted(masked, [match.span() for match in pattern(name).finditer(masked)])
        for match in pattern("negation.before").finditer(masked):
            end = pattern("negation.ends").search(masked, match.end())
            yield *match.span(), end.start() if end else len(masked)

    def _joined(self, spans: Sequence[At]) -> Iterator[At]:
        """Yield what is joined with the first of these spans by commas, "and" and "or"."""
        for first, second in pairwise(spans):
            if not pattern("words.joined").fullmatch(self.plain[first[1] : second[0]]):
                return
            yield second

    def _report_negations(self) -> None:
        """Report a negation that reaches no value, name, number or date: it is never turned into its opposite."""
        for start, end, reach in self._negations([*self.refused, *self.used]):
            refuses = any(end <= begin <= reach or stop <= start <= stop + NEAR for begin, stop in self.refused)
            until = min([reach, end + NEAR, *(begin for begin, _ in self.used if begin >= end)])
            if not refuses and self.plain[end:until].strip(" _"):
                self._skip((start, until))

    # --- Conditions ---

    def _add(self, field: Field, op: Op, value: Any, span: At, called: Span | None = None) -> None:
        """Add a condition, turned where it is refused; ``called`` is the word of its field beside it."""
        self.used += [span, *([at(called)] if called and called.field == field else [])]
        refused = self.refused.get(span)
        if refused is False or (refused and op not in _OPPOSITES):
            self._skip(span)
            return
        condition = Condition(field=field["name"], op=_OPPOSITES[op] if refused else op, value=value)
        if condition not in [known for _, known, _ in self.conditions]:
            self.conditions.append((span[0], condition, in_words(condition, field, self.language)))

    def _add_values(self, field: Field, found: Sequence[tuple[At, str]]) -> None:
        """Add the values of one field: refused ones apart; of the others one is enough, unless a document has many."""
        for refused in (True, False):
            part = [(span, value) for span, value in found if bool(self.refused.get(span)) == refused]
            values = list(dict.fromkeys(value for _, value in part))
            between = self.plain[part[0][0][1] : part[-1][0][0]] if part else ""
            if len(values) > 1 and (refused or not field["many"] or re.search(r"\bor\b|或|还是", between)):
                self._add(field, "in", values, part[0][0])
                self.used += [span for span, _ in part]
                continue
            for span, value in part:
                self._add(field, "eq", value, span)

    def _apply_values(self) -> None:
        """Apply the values of categories that stand by themselves: not inside another phrase, not as a topic."""
        applied = [v for v in self.values if at(v) in self.refused or self._stands_alone(v)]
        for value in applied:
            near = self._nearest(value, "category", 4)
            if near and near.field == value.field:
                self.used.append(at(near))
        for field in {value.field["name"]: value.field for value in applied}.values():
            self._add_values(field, [(at(v), v.value) for v in applied if v.field == field])

    def _stands_alone(self, value: Span) -> bool:
        rest = self.plain[value.end :]
        behind = len(self.plain) - len(rest.lstrip())
        follows = [at(thing)[0] for thing in (*self.heads, *self.values, *self.names, *self.called)]
        alone = behind in follows or pattern("values.behind").match(rest)
        return bool(alone) and not pattern("values.topic").search(self.plain[: value.start])

    def _apply_names(self) -> None:
        """Apply the names that a field holds: by the word beside it, else by the field that holds it."""
        names, found = list[NameRead](), dict[str, list[tuple[At, str]]]()
        before: tuple[int, Field] | None = None
        held = [field for field in self.fields if field["type"] in ("name", "category")]
        for name in self.names:
            span = at(name)
            counts = {f["name"]: len(self._select([_equals(f, name)])) for f in held}
            holders = [field for field in held if counts[field["name"]]]
            role = self._role(span)
            field = role.field if role and (role.field in holders or not name["entity_id"]) else None
            if field is None and before and before[1] in holders:
                joined = pattern("words.joined").fullmatch(self.plain[before[0] : span[0]])
                field = before[1] if joined else None
            if field is None and holders and (not name["doc_id"] or span in self.refused):
                field = max(holders, key=lambda f: (counts[f["name"]], f["name"]))
            if field is None:
                names.append(name)
                continue
            if role and role.field == field:
                self.used.append(at(role))
            found.setdefault(field["name"], []).append((span, name["name"]))
            before = span[1], field
        for field in self.fields:
            self._add_values(field, found.get(field["name"], []))
        self.names = names

    def _role(self, span: At) -> Span | None:
        """Return the field's word that stands with a name ("edited by X", X编辑的), unless it asks for its value."""
        others = [start for start, end in map(at, self.names) if (start, end) != span]
        best: list[tuple[int, int, Span]] = []
        for called in self.called:
            low, high = min(span[1], called.end), max(span[0], called.start)
            gap = self.plain[low:high]
            apart = any(low <= start < high for start in others) or pattern("words.apart").search(gap)
            before, behind = self.plain[max(0, called.start - 8) : called.start], self.plain[called.end :]
            asks = called.end <= span[0] and pattern("answers.subject").search(before)
            asks = asks or pattern("answers.subject_behind").match(behind)
            if called.field["type"] == "name" and len(gap) <= NEAR and not apart and not asks:
                best.append((len(gap), called.start, called))
        return min(best)[2] if best else None

    def _apply_empty(self) -> None:
        """Apply "without a budget", 没有负责人: the field is to be empty."""
        for called in self.called:
            before = self.plain[: called.start]
            truths = {fold(value): value for value in called.field["values"] if fold(value) in _TRUTHS}
            empty = pattern("negation.empty").search(before)
            if empty and not any(0 <= value.start - called.end <= 4 for value in self.values):
                self.used.append(empty.span())
                refused = next((truths[word] for word in ("no", "false", "否", "无") if word in truths), None)
                self._add(called.field, "eq" if refused else "exists", refused or False, at(called))
            elif pattern("values.has").search(before):
                held = next((truths[word] for word in ("yes", "true", "是", "有") if word in truths), None)
                self._add(called.field, "eq", held, at(called)) if held else None

    def _apply_numbers(self, numbers: Sequence[NumberSpan], selecting: bool, limit: int | None) -> None:
        for number in numbers:
            span = at(number)
            if meets(span, self.used) or (limit is not None and number.low == limit and not number.unit):
                continue
            field, near = self._field_of(number), self._nearest(span, "number")
            beside = near is not None and near.field == field and max(near.start - span[1], span[0] - near.end) <= 4
            if number.op == "eq" and not (beside or (field and number.unit and selecting)):
                continue  # a bare number is a word
            if field is None or number.unclear:
                if selecting:
                    self._skip(span)
                continue
            scaled = bool(pattern("measure.scale").search(self.plain[slice(*span)]))
            bounds = [in_unit(b, number.unit, field, scaled) for b in (number.low, number.high) if b is not None]
            self._add(field, cast(Op, number.op), bounds if number.op == "between" else bounds[0], span, near)

    def _field_of(self, number: NumberSpan) -> Field | None:
        """Return the number's field: by its unit, by the field's word beside it, or by what an adjective measures."""
        by_unit = [f for f in self._of_type("number") if number.unit and fits(number.unit, f)]
        if len(by_unit) == 1:
            return by_unit[0]
        near = self._nearest(number, "number")
        if near and (not number.unit or near.field in by_unit or not by_unit):
            return near.field
        return self._measured(self.plain[slice(*at(number))], by_unit or self._of_type("number"))

    def _measured(self, text: str, fields: Iterable[Field]) -> Field | None:
        """Return the one field that an adjective of this text measures."""
        for adjective, words in _words()["measures"].items():
            if re.search(adjective, text):
                own = re.compile(words, re.I)
                found = [f for f in fields if any(own.match(fold(w)) for w in (*words_of(f), f["name"], f["unit"]))]
                return found[0] if len(found) == 1 else None
        return None

    def _apply_dates(self, selecting: bool, has_document: bool) -> None:
        """Apply dates to the date field that is called beside them, else to the only one."""
        for date in [] if has_document and not selecting else self.dates:
            near = self._nearest(date, "date")
            dated, size = self._of_type("date"), len(date.low or date.high)
            precise = [field for field in dated if len(str(field["high"])) >= size]  # a year has no months
            fields = [near.field] if near else precise or dated
            if date.unclear or not fields:
                if selecting or date.unclear:
                    self._skip(date)
                continue
            value: Any = [date.low, date.high] if date.op == "between" else date.high or date.low
            value = date.low if date.op in ("gt", "ge") else value
            tests = {f["name"]: Condition(field=f["name"], op=cast(Op, date.op), value=value) for f in fields}
            field = self._agreed(fields, lambda f, tests=tests: self._select([tests[f["name"]]]))  # type: ignore[misc]
            if field is None:
                self._skip(date)
            elif selecting or self._select([tests[field["name"]]], limit=1):
                self._add(field, cast(Op, date.op), value, at(date), near)  # else a date that a text speaks of

    # --- Count, total, order ---

    def _count(self) -> tuple[bool, str]:
        match = self._find("count.how_many")
        if not match:
            return False, ""
        behind = next((c for c in self.called if 0 <= c.start - match.end() <= 2), None)
        if behind and behind.field["type"] == "number":
            return False, ""  # "how many pages does it have" asks for a field
        nouns = [*self.heads, *map(at, self.values)]
        if self.language != "zh" and not any(0 <= start - match.end() <= NEAR for start, _ in nouns):
            return False, ""
        self.used.append(match.span())
        for called in self.called:
            if pattern("count.each").search(self.plain[: called.start]) and called.field["type"] != "number":
                self.used.append(at(called))
                return True, called.field["name"]
        return True, ""

    def _total(self) -> Total | None:
        match = self._find("total.sum") or self._find("total.mean")
        if not match:
            return None
        near = self._nearest(match.span(), "number")
        words = re.findall(r"[a-z]+", self.plain)
        fitting = [f for f in self._of_type("number") if any(fits(word, f) for word in words)]
        field = near.field if near else fitting[0] if len(fitting) == 1 else self._only("number")
        if field is None:
            self._skip(match.span())
            return None
        how_much = self._find("total.how_much")
        self.used += [match.span(), *([at(near)] if near else []), *([how_much.span()] if how_much else [])]
        return Total(field=field["name"], function="sum" if self._find("total.sum") else "mean")

    def _sort(self, numbers: Sequence[NumberSpan]) -> tuple[Sort | None, bool]:
        """Return the order that a superlative asks for, and whether it asks for a single document."""
        masked = blotted(self.plain, map(at, [*self.values, *numbers, *self.dates]))
        scope = [self.table] if self.table else []
        for name, descending in (("last_date", True), ("first_date", False), ("most", True), ("least", False)):
            match = pattern(f"order.{name}").search(masked)
            if not match:
                continue
            kind, end = "date" if name.endswith("date") else "number", match.end()
            near = self._nearest(match.span(), kind, 12)
            headed = [s for s in self.heads if -2 <= s[0] - end <= NEAR or self._is_linked(s[1], match.start())]
            of_kind = self._of_type(kind)
            measured = None if kind == "date" else self._measured(match.group(), of_kind)
            field = near.field if near else measured or self._only(kind)
            if field is None and kind == "date":
                order = [Sort(field=f["name"], descending=descending) for f in of_kind]
                by_name = {sort["field"]: self._select(scope, sort, 1) for sort in order}
                field = self._agreed(of_kind, lambda f, by_name=by_name: by_name[f["name"]])  # type: ignore[misc]
            about = bool(headed or self.table)
            if field is None or not (near or about):
                if about:
                    self._skip(match.span())
                continue
            self.used += [match.span(), *([at(near)] if near else [])]
            behind = next((self.plain[slice(*span)] for span in headed if span[0] >= end), "")
            return Sort(field=field["name"], descending=descending), not (behind.isascii() and behind.endswith("s"))
        return None, False

    def _is_linked(self, end: int, start: int) -> bool:
        """Return True for "which film is the longest": nothing but a verb stands between."""
        return end <= start and bool(pattern("order.linked").fullmatch(self.plain[end:start]))

    # --- What is asked for ---

    def _asked_fields(self, group: str, has_document: bool) -> list[str]:
        if group or not (self._find("answers.subject") or has_document):
            return []
        kinds = ("date", "number") if self._find("answers.person") else ()
        free = [c for c in self.called if not meets(c, self.used) and c.field["type"] not in kinds]
        free = [c for c in free if self.plain[c.start : c.end] not in stop_words()]
        fields = [c.field["name"] for c in free]
        if has_document and self._find("answers.yes_no"):
            fields += [value.field["name"] for value in self.values]
            free += self.values
        self.used += map(at, free)
        date = self._only("date")
        if not fields and date and has_document and self._find("answers.date"):
            fields = [date["name"]] if not self._content(None) else []
        return list(dict.fromkeys(fields))

    def _content(self, limit: int | None) -> list[str]:
        """Return the content words that nothing accounts for, in order, as they are written."""
        left = blotted(self.folded, [*self.used, *self.heads, *map(at, self.names)])
        left = pattern("words.stop_zh").sub(lambda match: "_" * len(match[0]), left)
        found = []
        for match in re.finditer(r"[a-z0-9][a-z0-9'’.-]*[a-z0-9]|[a-z0-9]|[\u3400-\u9fff]+", left):
            word = re.sub(r"['’]s?$", "", match[0])
            is_limit = limit is not None and (word == str(limit) or read_limit(f"top {word}") == limit)
            if word not in stop_words() and not is_limit:
                found.append(self.text[match.start() : match.start() + len(word)])
        return list(dict.fromkeys(found))

    def _intent(self, listing: bool) -> QueryIntent:
        if is_small_talk(self.text):
            return "unknown"
        if self._find("intent.compare") or (len(self.names) > 1 and self._find("intent.either")):
            return "compare"
        if self.wishes:
            return "recommend"
        if listing:
            return "list"
        alone = len(self.names) == 1 and not self.names[0]["doc_id"]
        if alone and self._find("intent.person"):
            return "person"
        return "list" if self._find("intent.list") and self.heads and not self.names else "qa"

    def _answer_type(self, intent: QueryIntent, count: bool) -> AnswerType:
        kinds: tuple[AnswerType, ...] = ("reason", "person", "date", "place", "number", "manner", "yes_no")
        if count:
            return "number"
        found = next((kind for kind in kinds if self._find(f"answers.{kind}")), None)
        return found or ("list" if intent in ("list", "recommend") else "text")

    def _tell(self, english: str, chinese: str) -> None:
        self.understood.append(chinese if self.language == "zh" else english)

    def _describe(self, count: bool, group: str, sort: Sort | None, limit: int | None, total: Total | None) -> None:
        if sort:
            field = next(field for field in self.fields if field["name"] == sort["field"])
            first = ("highest", "lowest") if field["type"] == "number" else ("latest", "earliest")
            zh_first = ("最高", "最低") if field["type"] == "number" else ("最晚", "最早")
            down = not sort["descending"]
            only, zh_only = (f", the first {limit}", f"，取前 {limit} 个") if limit else ("", "")
            self._tell(
                f"by {shown(field, 'en')}, {first[down]} first{only}",
                f"按{shown(field, 'zh')}，{zh_first[down]}的在前{zh_only}",
            )
        if count:
            self._tell(f"counted by {group}" if group else "counted", f"按{group}计数" if group else "计数")
        if total:
            self._tell(f"{total['function']} of {total['field']}", f"{total['field']}的{TOTALS_ZH[total['function']]}")


def _exists(field: Field) -> Condition:
    return Condition(field=field["name"], op="exists", value=True)


def _equals(field: Field, name: NameRead) -> Condition:
    return Condition(field=field["name"], op="eq", value=name["name"])
