"""Read a question once: names, conditions on typed fields, order, count, total, the date as of which it asks.

Only closed classes are read: dates, numbers, units, comparison, negation, order, question words, and the names, fields
and values of the knowledge bases. A condition counts only where field and value are both certain. Every other
condition is listed in ``not_applied``, which the answer shows, and its words are searched.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple, cast

from workbench.knowledge.names.schema import spoken, spoken_words
from workbench.language.dates import DateSpan, read_dates
from workbench.language.names import QUOTED, blotted, names_in
from workbench.language.numbers import NumberSpan, convert, read_limit, read_numbers
from workbench.ports import Field, KnowledgeBase
from workbench.state import AnswerType, Condition, NameRead, Op, QueryIntent, Question, Sort, Total
from workbench.text import CJK, fold, language_of

LONGEST = 3_000
"""Characters of a question that are read."""
NEAR = 24
"""Characters between a field's word and the value that it belongs to, at most."""
_LONGEST_TALK = 300
_OPPOSITES: dict[str, Op] = {"eq": "ne", "in": "not_in", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
_JOINED = re.compile(
    r"\s*[片类型]?(?:,|and|or|nor|、|和|与|或者?|及)+\s*(?:(?:an?|the|any|by|is|are|was|were|still|yet) )*"
)
_CLAUSE = re.compile(r"[,;.!?，；。！？](?!\d)")
_TOPIC = re.compile(r"(?:\b(?:about|on|regarding|concerning|mention\w*)\s+(?:the |an? )?|关于|有关|讲述?|提到)\Z")
_TRUTHS = frozenset(("yes", "no", "true", "false", "是", "否", "有", "无"))
_DETERMINED = re.compile(r"\b(?:which|what|any|some|all|every|an?|\w+est|most \w+)\s+\Z")
_ENDS_ZH = re.compile(r"\s*(?:有哪些|有几|有多少|吗|呢|[，。？?！!]|$)")
_FULL_NAME = re.compile(r"(?:[A-Z][\w.'’-]* )+[A-Z][\w'’-]*")
_SCALE = re.compile(r"[千万亿]|\d\s?[km]\b|thousand|million|billion", re.I)
_SUBJECT = re.compile(r"\b(?:who|whom|whose|what|which|when|where|how)\b|谁|什么|哪|多少|几|何")


class Span(NamedTuple):
    """``text[start:end]`` means this value of this field, or calls the field where ``value`` is empty."""

    start: int
    end: int
    field: Field
    value: str = ""


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("words.toml").read_text(encoding="utf-8"))


@cache
def pattern(section: str, name: str) -> re.Pattern[str]:
    """Compile a pattern of ``words.toml``."""
    return re.compile(_words()[section][name], re.I)


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
    """A question while it is read. ``used`` are the spans that are accounted for: what is left are its words."""

    def __init__(self, text: str, bases: Sequence[KnowledgeBase], today: str):
        self.text, self.bases, self.today = text, bases, today
        self.language = language_of(text)
        self.fields = list({field["name"]: field for base in bases for field in base.schema()}.values())
        folded = fold_in_place(text[:LONGEST])
        self.names, self.values = self._names_and_values(text[:LONGEST])
        taken = [(name["start"], name["end"]) for name in self.names]
        taken += [match.span() for match in QUOTED.finditer(folded)]
        self.plain, self.cased = blotted(folded, taken), blotted(text[:LONGEST], taken)
        self.values = [v for v in self.values if not any(v.start < e and s < v.end for s, e in taken)]
        self.called = self._called()
        self.heads: list[tuple[int, int]] = []
        self.heads = sorted(self._heads())
        self.used: list[tuple[int, int]] = []
        self.conditions: list[tuple[int, Condition, str]] = []
        self.understood: list[str] = []
        self.not_applied: list[str] = []

    def question(self) -> Question:
        """Read everything, what the rest depends on first."""
        dates, date_asked = self._dates()
        rest = blotted(self.plain, [(d.start, d.end) for d in dates] + [(v.start, v.end) for v in self.values])
        numbers = read_numbers(rest)
        has_document = any(name["doc_id"] for name in self.names)
        number_fits = any(n.op != "eq" and self._field_of(n) for n in numbers)
        date_fits = any(self._nearest(d.start, d.end, "date", 8) or self._only("date") for d in dates)
        self.certain = not has_document and (number_fits or date_fits)
        limit = read_limit(self.plain)
        limit = None if limit == 1 else limit
        count, group = self._count()
        total = self._total()
        sort, superlative = (None, False) if group or total else self._sort([(n.start, n.end) for n in numbers])
        wishes = pattern("intent", "recommend").search(self.plain)
        wanting = bool(wishes or count or sort or total or pattern("intent", "list").search(self.plain))
        used = list(self.used)
        negated = self._negated([*self.values, *dates, *numbers, *self.names])
        refuses = any(negated.get((value.start, value.end)) for value in self.values)
        selecting = wanting or self.certain or ((bool(self.heads) or refuses) and not has_document)
        if not selecting:
            negated, self.used = {}, used
        if selecting:
            self._apply_values(negated)
            self._apply_names(negated)
            self._apply_empty()
        self._apply_numbers(numbers, negated, selecting, limit)
        self._apply_dates(dates, negated, selecting, has_document)
        if selecting:
            self._report_negations(negated)
        if limit is None and superlative:
            limit = 1
        fields = self._asked_fields(group, has_document)
        words = self._content(limit)
        intent = self._intent(count, sort, selecting)
        conditions = sorted(self.conditions, key=lambda found: found[0])
        self.understood = [*self.understood, *(text for _, _, text in conditions)]
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
            date_asked=date_asked,
            understood=list(dict.fromkeys(self.understood)),
            not_applied=list(dict.fromkeys(self.not_applied)),
        )

    # --- What stands where ---

    def _names_and_values(self, text: str) -> tuple[list[NameRead], list[Span]]:
        by_name = {field["name"]: field for field in self.fields}
        categories = [field for field in self.fields if field["type"] == "category"]
        words = spoken(spoken_words(categories), text)
        values = [Span(s, e, by_name[name], value) for s, e, name, value in words if fold(value) not in _TRUTHS]
        names = names_in(text, self.bases)
        people = {(n["start"], n["end"]) for n in names if n["entity_id"] and _FULL_NAME.fullmatch(n["surface"])}
        values = [value for value in values if (value.start, value.end) not in people]

        def is_value(name: NameRead) -> bool:
            return any(v.start <= name["start"] and name["end"] <= v.end for v in values)

        return [name for name in names if name["doc_id"] or not is_value(name)], values

    def _called(self) -> list[Span]:
        """Return where fields are called by their words, longer words first; words of values are left to the values."""
        found: list[Span] = []
        pairs = [(fold(word), field) for field in self.fields for word in words_of(field)]
        for word, field in sorted(pairs, key=lambda pair: -len(pair[0])):
            for start, end in word_spans(word, self.plain):
                if not any(start < o.end and o.start < end for o in (*found, *self.values)):
                    found.append(Span(start, end, field))
        return sorted(found, key=lambda span: span.start)

    def _heads(self) -> Iterator[tuple[int, int]]:
        """Yield where documents are called by what the knowledge bases, or everybody, call them."""
        kinds = ("en", "zh", "types", "tables")
        nouns = {word for base in self.bases for kind in kinds for word in base.nouns().get(kind, ())}
        for word in {fold(noun) for noun in (*nouns, *_words()["words"]["nouns"].split())}:
            yield from word_spans(word, self.plain)
        for value in self.values:  # "laptops", "the cheapest phone": a value that stands for the documents that have it
            surface, rest = self.plain[value.start : value.end], self.plain[value.end :]
            chinese = bool(CJK.search(surface))
            plural = not chinese and surface not in (fold(value.value), value.value)
            determined = _DETERMINED.search(self.plain[: value.start]) and self._stands_alone(value)
            if plural or (_ENDS_ZH.match(rest) if chinese else determined):
                yield value.start, value.end

    def _is_free(self, start: int, end: int) -> bool:
        return not any(start < until and begin < end for begin, until in self.used)

    def _clause(self, start: int, end: int) -> tuple[int, int]:
        before = [match.end() for match in _CLAUSE.finditer(self.plain, 0, start)]
        after = _CLAUSE.search(self.plain, end)
        return (before[-1] if before else 0), (after.start() if after else len(self.plain))

    def _nearest(self, start: int, end: int, kind: str, most: int = NEAR) -> Span | None:
        """Return the nearest word of a field of this type in the same clause, at most ``most`` characters away."""
        low, high = self._clause(start, end)
        inside = [c for c in self.called if c.field["type"] == kind and low <= c.start and c.end <= high]
        by_distance = sorted((max(c.start - end, start - c.end, 0), c.start, c) for c in inside)
        return by_distance[0][2] if by_distance and by_distance[0][0] <= most else None

    def _only(self, kind: str) -> Field | None:
        """Return the one field of this type, if there is exactly one."""
        fields = [field for field in self.fields if field["type"] == kind and field["documents"]]
        return fields[0] if len(fields) == 1 else None

    # --- Negation ---

    def _negated(self, things: Iterable[Any]) -> dict[tuple[int, int], bool]:
        """Return span -> True for each thing that is refused; False where it is so twice, which is not clear."""
        spans = sorted(_span(thing) for thing in things)
        negated: dict[tuple[int, int], bool] = {}
        for start, end, until in self._negations(spans):
            behind = [span for span in spans if end <= span[0]]
            reached = behind if behind and behind[0][0] <= until else []
            before = [span for span in spans if self._clause(*span)[0] <= span[0] and span[1] <= start]
            if reached and reached[0][0] - end <= NEAR:
                self.used.append((start, end))
                for span in [reached[0], *self._joined(reached)]:
                    negated[span] = span not in negated
            elif before and not _CLAUSE.search(self.plain[before[-1][1] : start]):
                negated[before[-1]] = False  # "that she did not edit": who is meant stands before it
        for span in spans:
            behind_it = pattern("negation", "behind").match(self.plain[span[1] :])
            if behind_it and behind_it.group():
                self.used.append((span[1], span[1] + behind_it.end()))
                negated.setdefault(span, True)
            if any(0 <= span[0] - m.end() <= 4 for m in pattern("negation", "only").finditer(self.plain)):
                negated[span] = False
        return negated

    def _negations(self, spans: Iterable[tuple[int, int]] = ()) -> Iterator[tuple[int, int, int]]:
        """Yield ``(start, end, until)`` of each negation: where it stands, and how far it reaches."""
        masked = blotted(self.plain, list(spans))
        for name in ("never", "only"):
            masked = blotted(masked, [match.span() for match in pattern("negation", name).finditer(masked)])
        for match in pattern("negation", "before").finditer(masked):
            end = pattern("negation", "ends").search(masked, match.end())
            yield match.start(), match.end(), end.start() if end else len(masked)

    def _joined(self, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield what is joined with the first of these spans by commas, "and" and "or"."""
        for first, second in pairwise(spans):
            if not _JOINED.fullmatch(self.plain[first[1] : second[0]]):
                return
            yield second

    def _report_negations(self, negated: dict[tuple[int, int], bool]) -> None:
        """Report a negation that reaches no value, name, number or date: it is never turned into its opposite."""
        for start, end, reach in self._negations([*negated, *self.used]):
            until = min(reach, end + NEAR)
            refuses = any(end <= at <= reach or stop <= start <= stop + NEAR for at, stop in (*negated, *self.used))
            if not refuses and self.plain[end:until].strip(" _"):
                self.not_applied.append(self.text[start:until].strip())

    # --- Conditions ---

    def _add(
        self, field: Field, op: Op, value: Any, span: tuple[int, int], negated: dict[tuple[int, int], bool]
    ) -> None:
        self.used.append(span)
        refused = negated.get(span)
        if refused is False or (refused and op not in _OPPOSITES):
            self.not_applied.append(self.text[slice(*span)].strip())
            return
        condition = Condition(field=field["name"], op=_OPPOSITES[op] if refused else op, value=value)
        if condition not in [known for _, known, _ in self.conditions]:
            self.conditions.append((span[0], condition, in_words(condition, field, self.language)))

    def _add_values(
        self, field: Field, found: Sequence[tuple[tuple[int, int], str]], negated: dict[tuple[int, int], bool]
    ) -> None:
        """Add the values of one field: refused ones apart; of the others one is enough, unless a document has many."""
        for refused in (True, False):
            part = [(span, value) for span, value in found if bool(negated.get(span)) == refused]
            values = list(dict.fromkeys(value for _, value in part))
            between = self.plain[part[0][0][1] : part[-1][0][0]] if part else ""
            if len(values) > 1 and (refused or not field["many"] or re.search(r"\bor\b|或|还是", between)):
                self._add(field, "in", values, part[0][0], negated)
                self.used += [span for span, _ in part]
                continue
            for span, value in part:
                self._add(field, "eq", value, span, negated)

    def _apply_values(self, negated: dict[tuple[int, int], bool]) -> None:
        """Apply the values of categories that stand by themselves: not inside another phrase, not as a topic."""
        for field in {value.field["name"]: value.field for value in self.values}.values():
            own = [v for v in self.values if v.field["name"] == field["name"]]
            said = [v for v in own if (v.start, v.end) in negated or self._stands_alone(v)]
            for value in said:
                near = self._nearest(value.start, value.end, "category", 4)
                if near and near.field["name"] == field["name"]:
                    self.used.append((near.start, near.end))
            self._add_values(field, [((v.start, v.end), v.value) for v in said], negated)

    def _stands_alone(self, value: Span) -> bool:
        if _TOPIC.search(self.plain[: value.start]):
            return False
        behind = value.end + len(self.plain[value.end :]) - len(self.plain[value.end :].lstrip())
        follows = [start for start, _ in self.heads] + [v.start for v in self.values] + [n["start"] for n in self.names]
        follows += [c.start for c in self.called]
        return behind in follows or bool(pattern("values", "behind").match(self.plain[value.end :]))

    def _apply_names(self, negated: dict[tuple[int, int], bool]) -> None:
        """Apply the names that a field holds: by the word beside it, else by the field that holds it."""
        kept: list[NameRead] = []
        found: dict[str, list[tuple[tuple[int, int], str]]] = {}
        before: tuple[int, Field] | None = None
        for name in self.names:
            span = (name["start"], name["end"])
            holders = [f for f in self.fields if f["type"] in ("name", "category") and self._holds(f, name["name"])]
            role = self._role(span)
            field = role.field if role and (role.field in holders or not name["entity_id"]) else None
            if field is None and before and before[1] in holders:
                joined = _JOINED.fullmatch(self.plain[before[0] : span[0]])
                field = before[1] if joined else None
            if field is None and holders and (not name["doc_id"] or span in negated):
                field = max(holders, key=lambda f: (self._count_of(f, name["name"]), f["name"]))
            if field is None:
                kept.append(name)
                continue
            if role and role.field == field:
                self.used.append((role.start, role.end))
            found.setdefault(field["name"], []).append((span, name["name"]))
            before = span[1], field
        for field in self.fields:
            self._add_values(field, found.get(field["name"], []), negated)
        self.names = kept

    def _holds(self, field: Field, value: str) -> bool:
        condition = Condition(field=field["name"], op="eq", value=value)
        return any(base.select([condition], None, 1) for base in self.bases)

    def _count_of(self, field: Field, value: str) -> int:
        condition = Condition(field=field["name"], op="eq", value=value)
        return sum(len(base.select([condition])) for base in self.bases)

    def _role(self, span: tuple[int, int]) -> Span | None:
        """Return the field's word that stands with a name ("edited by X", X编辑的), unless it asks for its value."""
        others = [(n["start"], n["end"]) for n in self.names if (n["start"], n["end"]) != span]
        best: list[tuple[int, int, Span]] = []
        for called in self.called:
            low, high = min(span[1], called.end), max(span[0], called.start)
            gap = self.plain[low:high]
            apart = any(low <= start < high for start, _ in others) or re.search(r"[,;，；。?？]|\b(?:and|or)\b", gap)
            asks = called.end <= span[0] and _SUBJECT.search(self.plain[max(0, called.start - 8) : called.start])
            asks = asks or re.match(r"\s*(?:是|为)?(?:谁|什么|哪|多少|几)", self.plain[called.end :])
            if called.field["type"] == "name" and len(gap) <= NEAR and not apart and not asks:
                best.append((len(gap), called.start, called))
        return min(best)[2] if best else None

    def _apply_empty(self) -> None:
        """Apply "without a budget", 没有负责人: the field is to be empty."""
        for called in self.called:
            span, before = (called.start, called.end), self.plain[: called.start]
            truths = {fold(value): value for value in called.field["values"] if fold(value) in _TRUTHS}
            empty = pattern("negation", "empty").search(before)
            if empty and not any(0 <= v.start - called.end <= 4 for v in self.values):
                self.used.append(empty.span())
                refused = next((truths[word] for word in ("no", "false", "否", "无") if word in truths), None)
                self._add(called.field, "eq" if refused else "exists", refused or False, span, {})
            elif truths and re.search(r"\b(?:with|have|has|having)\s+(?:an?\s+|the\s+)?\Z|有\Z", before):
                held = next((truths[word] for word in ("yes", "true", "是", "有") if word in truths), None)
                self._add(called.field, "eq", held, span, {}) if held else None

    def _apply_numbers(
        self, numbers: Sequence[NumberSpan], negated: dict[tuple[int, int], bool], selecting: bool, limit: int | None
    ) -> None:
        for number in numbers:
            span = (number.start, number.end)
            if not self._is_free(*span) or (limit is not None and number.low == limit and not number.unit):
                continue
            field = self._field_of(number)
            near = self._nearest(*span, "number")
            beside = near is not None and near.field == field and max(near.start - span[1], span[0] - near.end) <= 4
            if number.op == "eq" and not (beside or (field and number.unit and selecting)):
                continue  # a bare number is a word
            if field is None or number.unclear:
                if selecting:
                    self.not_applied.append(self.text[slice(*span)].strip())
                continue
            scaled = bool(_SCALE.search(self.plain[slice(*span)]))
            bounds = [_in_unit(b, number.unit, field, scaled) for b in (number.low, number.high) if b is not None]
            if near and near.field == field:
                self.used.append((near.start, near.end))
            self._add(field, cast(Op, number.op), bounds if number.op == "between" else bounds[0], span, negated)

    def _field_of(self, number: NumberSpan) -> Field | None:
        """Return the number's field: by its unit, by the field's word beside it, or by what an adjective measures."""
        counted = [field for field in self.fields if field["type"] == "number"]
        by_unit = [f for f in counted if number.unit and _fits(number.unit, f)]
        if len(by_unit) == 1:
            return by_unit[0]
        near = self._nearest(number.start, number.end, "number")
        if near and (not number.unit or near.field in by_unit or not by_unit):
            return near.field
        measured = self._measured(self.plain[number.start : number.end], by_unit or counted)
        return measured[0] if len(measured) == 1 else None

    def _measured(self, text: str, fields: Iterable[Field]) -> list[Field]:
        for adjective, words in _words()["measures"].items():
            if re.search(adjective, text):
                found = re.compile(words, re.I)
                return [f for f in fields if any(found.match(fold(w)) for w in (*words_of(f), f["name"], f["unit"]))]
        return []

    def _dates(self) -> tuple[list[DateSpan], str]:
        """Return the dates of the question, and the one as of which it asks, which is no condition."""
        dates, as_of = [], ""
        for date in read_dates(self.cased, self.today):
            if any(date.start < v.end and v.start < date.end for v in self.values):
                continue
            if date.op == "as_of":
                as_of = date.high or date.low
                self.used.append((date.start, date.end))
                self._tell(f"as of {as_of}", f"截至 {as_of}")
            else:
                dates.append(date)
        return dates, as_of

    def _apply_dates(
        self, dates: Sequence[DateSpan], negated: dict[tuple[int, int], bool], selecting: bool, has_document: bool
    ) -> None:
        """Apply dates to the date field that is called beside them, else to the only one, else to the commonest."""
        dated = [field for field in self.fields if field["type"] == "date" and field["documents"]]
        for date in dates:
            span = (date.start, date.end)
            if has_document and not selecting:
                continue
            near = self._nearest(*span, "date")
            if date.unclear or not dated:
                if selecting or date.unclear:
                    self.not_applied.append(self.text[slice(*span)].strip())
                continue
            field = near.field if near else dated[0]
            ends = [date.low, date.high] if date.op == "between" else (date.high or date.low)
            value: Any = ends if date.op == "between" else (date.low if date.op in ("gt", "ge") else ends)
            op = cast(Op, date.op)
            condition = Condition(field=field["name"], op=op, value=value)
            if not selecting and not any(base.select([condition], None, 1) for base in self.bases):
                continue  # a date that a text speaks of, not the date of a document
            if near:
                self.used.append((near.start, near.end))
            self._add(field, op, value, span, negated)

    # --- Count, total, order ---

    def _count(self) -> tuple[bool, str]:
        match = pattern("count", "how_many").search(self.plain)
        if not match:
            return False, ""
        behind = next((c for c in self.called if 0 <= c.start - match.end() <= 2), None)
        if behind and behind.field["type"] == "number":
            return False, ""  # "how many pages does it have" asks for a field
        nouns = [*self.heads, *((v.start, v.end) for v in self.values)]
        if self.language != "zh" and not any(0 <= start - match.end() <= NEAR for start, _ in nouns):
            return False, ""
        self.used.append(match.span())
        for called in self.called:
            if pattern("count", "each").search(self.plain[: called.start]) and called.field["type"] != "number":
                self.used.append((called.start, called.end))
                return True, called.field["name"]
        return True, ""

    def _total(self) -> Total | None:
        for function in ("sum", "mean"):
            match = pattern("total", function).search(self.plain)
            if not match:
                continue
            near = self._nearest(*match.span(), "number")
            counted = [f for f in self.fields if f["type"] == "number" and f["documents"]]
            fitting = [f for f in counted if any(_fits(word, f) for word in re.findall(r"[a-z]+", self.plain))]
            field = near.field if near else fitting[0] if len(fitting) == 1 else self._only("number")
            if field is None:
                self.not_applied.append(self.text[slice(*match.span())])
                return None
            self.used += [match.span(), *([(near.start, near.end)] if near else [])]
            how_many = re.search(r"\bhow (?:many|much)\b|是?多少", self.plain)
            self.used += [how_many.span()] if how_many else []
            return Total(field=field["name"], function="sum" if function == "sum" else "mean")
        return None

    def _sort(self, numbers: Sequence[tuple[int, int]]) -> tuple[Sort | None, bool]:
        """Return the order that a superlative asks for, and whether it asks for a single document."""
        masked = blotted(self.plain, [*((value.start, value.end) for value in self.values), *numbers])
        for name, descending in (("last_date", True), ("first_date", False), ("most", True), ("least", False)):
            match = pattern("order", name).search(masked)
            if not match:
                continue
            kind = "date" if name.endswith("date") else "number"
            near = self._nearest(*match.span(), kind, 12)
            headed = any(-2 <= start - match.end() <= NEAR for start, _ in self.heads) or not self.heads
            counted = [f for f in self.fields if f["type"] == "number" and f["documents"]]
            measured = self._measured(match.group(), counted) if kind == "number" else []
            field = near.field if near else measured[0] if len(measured) == 1 else self._only(kind)
            if field is None and kind == "date" and headed:
                field = next((f for f in self.fields if f["type"] == "date" and f["documents"]), None)
            if field is None or not (near or (headed and self.heads)):
                if self.heads and headed:
                    self.not_applied.append(self.text[slice(*match.span())])
                continue
            self.used += [match.span(), *([(near.start, near.end)] if near and near.field == field else [])]
            behind = next((self.plain[s:e] for s, e in self.heads if 0 <= s - match.end() <= NEAR), "")
            several = behind.isascii() and behind.endswith("s")
            return Sort(field=field["name"], descending=descending), not several
        return None, False

    # --- What is asked for ---

    def _asked_fields(self, group: str, has_document: bool) -> list[str]:
        if group or not (_SUBJECT.search(self.plain) or has_document):
            return []
        kinds = ("date", "number") if pattern("answers", "person").search(self.plain) else ()
        free = [c for c in self.called if self._is_free(c.start, c.end) and c.field["type"] not in kinds]
        free = [c for c in free if self.plain[c.start : c.end] not in stop_words()]
        self.used += [(c.start, c.end) for c in free]
        fields = [c.field["name"] for c in free]
        if has_document and pattern("answers", "yes_no").search(self.plain):
            fields += [value.field["name"] for value in self.values]
            self.used += [(value.start, value.end) for value in self.values]
        date = self._only("date")
        if not fields and date and has_document and pattern("answers", "date").search(self.plain):
            fields = [date["name"]] if not self._content(None) else []
        return list(dict.fromkeys(fields))

    def _content(self, limit: int | None) -> list[str]:
        """Return the content words that nothing accounts for, in order, as they are written."""
        spans = [*self.used, *self.heads, *((n["start"], n["end"]) for n in self.names)]
        left = blotted(fold_in_place(self.text[:LONGEST]), spans)
        left = pattern("words", "stop_zh").sub(lambda match: "_" * len(match[0]), left)
        found = []
        for match in re.finditer(r"[a-z0-9][a-z0-9'’.-]*[a-z0-9]|[a-z0-9]|[\u3400-\u9fff]+", left):
            word = re.sub(r"['’]s?$", "", match[0])
            is_limit = limit is not None and (word == str(limit) or read_limit(f"top {word}") == limit)
            if word not in stop_words() and not is_limit:
                found.append(self.text[match.start() : match.start() + len(word)])
        return list(dict.fromkeys(found))

    def _intent(self, count: bool, sort: Sort | None, selecting: bool) -> QueryIntent:
        if is_small_talk(self.text):
            return "unknown"
        if pattern("intent", "compare").search(self.plain) or (
            len(self.names) > 1 and pattern("intent", "either").search(self.plain)
        ):
            return "compare"
        if pattern("intent", "recommend").search(self.plain):
            return "recommend"
        if count or sort or (selecting and self.conditions):
            return "list"
        alone = len(self.names) == 1 and not self.names[0]["doc_id"]
        if alone and pattern("intent", "person").search(self.plain):
            return "person"
        listed = pattern("intent", "list").search(self.plain) and self.heads
        return "list" if listed and not self.names else "qa"

    def _answer_type(self, intent: QueryIntent, count: bool) -> AnswerType:
        kinds: tuple[AnswerType, ...] = ("reason", "person", "date", "place", "number", "manner", "yes_no")
        if count:
            return "number"
        found = next((kind for kind in kinds if pattern("answers", kind).search(self.plain)), "text")
        return "list" if found == "text" and intent in ("list", "recommend") else found  # type: ignore[return-value]

    def _tell(self, english: str, chinese: str) -> None:
        self.understood.append(chinese if self.language == "zh" else english)

    def _describe(self, count: bool, group: str, sort: Sort | None, limit: int | None, total: Total | None) -> None:
        if sort:
            field = next(field for field in self.fields if field["name"] == sort["field"])
            first = ("highest", "lowest") if field["type"] == "number" else ("latest", "earliest")
            zh_first = ("最高", "最低") if field["type"] == "number" else ("最晚", "最早")
            down = not sort["descending"]
            only = f", the first {limit}" if limit else ""
            zh_only = f"，取前 {limit} 个" if limit else ""
            self._tell(
                f"by {shown(field, 'en')}, {first[down]} first{only}",
                f"按{shown(field, 'zh')}，{zh_first[down]}的在前{zh_only}",
            )
        if count:
            self._tell(f"counted by {group}" if group else "counted", f"按{group}计数" if group else "计数")
        if total:
            self._tell(f"{total['function']} of {total['field']}", f"{total['field']}的{TOTALS_ZH[total['function']]}")


TOTALS_ZH = {"sum": "总和", "mean": "平均值"}


def _span(thing: Any) -> tuple[int, int]:
    return (thing["start"], thing["end"]) if isinstance(thing, dict) else (thing.start, thing.end)


def words_of(field: Field) -> list[str]:
    """Return every word by which a field is called, in both languages."""
    return [word for words in field["called"].values() for word in words]


def word_spans(word: str, text: str) -> list[tuple[int, int]]:
    """Return where a folded word stands in a folded text, its plural and verb endings included.

    >>> word_spans("editors", "who edited it?")
    [(4, 10)]
    """
    if CJK.search(word):
        return [match.span() for match in re.finditer(re.escape(word), text)]
    if not re.fullmatch(r"[a-z ]{4,}", word):
        return [match.span() for match in re.finditer(rf"(?<![a-z0-9]){re.escape(word)}s?(?![a-z0-9])", text)]
    bare = re.sub(r"ies$", "y", re.sub(r"(?<=[a-rt-z])s$", "", word))
    stem = bare[:-1] + r"(?:y|ies|ied|e|es|ed|ing)" if bare[-1] in "ey" else re.escape(bare) + r"(?:s|es|ed|ing)?"
    if re.search(r"[a-z]{3}[st]or$", bare):  # what an editor has done is edited
        stem = rf"(?:{stem}|{bare[:-2]}ed)"
    return [match.span() for match in re.finditer(rf"(?<![a-z0-9]){stem}(?![a-z0-9])", text)]


def fold_in_place(text: str) -> str:
    """Fold a text character by character, so that positions stay those of the text."""
    return "".join(f if len(f := fold(c)) == 1 else c.lower() if len(c.lower()) == 1 else c for c in text)


def _fits(unit: str, field: Field) -> bool:
    units = [fold(field["unit"]), *map(fold, words_of(field))]
    return any(unit == own or convert(1.0, unit, own) is not None for own in units if own)


def _in_unit(value: float, unit: str, field: Field, scaled: bool) -> float | int:
    """Return a number of a question in the unit of its field: 3 million are 300 where a field counts 万元."""
    size, bare = _scale_of(fold(field["unit"]))
    if size > 1 and (scaled or unit == bare):
        value, unit = value / size, ""
    own = fold(field["unit"]) or next((fold(w) for w in words_of(field) if convert(1.0, unit, fold(w)) is not None), "")
    changed = convert(value, unit, own) if unit and own and unit != own else None
    value = round(value if changed is None else changed, 9)
    return int(value) if value == int(value) else value


def _scale_of(unit: str) -> tuple[float, str]:
    """Return how many of what a unit like 万元 counts, and what it counts."""
    match = re.match(r"(百万|千万|万|亿|千(?![克米])|thousand|million|billion)\s*(?:of )?", unit)
    sizes = {"千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8, "thousand": 1e3, "million": 1e6, "billion": 1e9}
    return (sizes[match[1]], unit[match.end() :]) if match else (1.0, unit)


_OPS = {
    "en": {"eq": "is {}", "ne": "is not {}", "contains": "contains {}", "gt": "over {}", "ge": "at least {}"}
    | {"lt": "under {}", "le": "at most {}", "in": "is {}", "not_in": "is not {}", "between": "from {} to {}"},
    "zh": {"eq": "是{}", "ne": "不是{}", "contains": "含有{}", "gt": "超过{}", "ge": "至少{}"}
    | {"lt": "低于{}", "le": "至多{}", "in": "是{}", "not_in": "不是{}", "between": "在{}到{}之间"},
}
_DATE_OPS = {
    "en": {"gt": "after {}", "ge": "since {}", "lt": "before {}", "le": "until {}"},
    "zh": {"gt": "在{}之后", "ge": "在{}及以后", "lt": "在{}之前", "le": "在{}及以前"},
}


def in_words(condition: Condition, field: Field, language: str) -> str:
    """Write a condition as a person says it.

    >>> field = Field(name="budget", type="number", many=False, documents=3, low=1.0, high=9.0, values=[], unit="EUR",
    ...               called={"en": ["budget"], "zh": ["预算"]}, values_called={}, relation="")
    >>> in_words({"field": "budget", "op": "gt", "value": 3000000}, field, "en")
    'budget over 3,000,000 EUR'
    >>> in_words({"field": "budget", "op": "ne", "value": 5}, field, "zh")
    '预算不是5EUR'
    """
    zh, name, op, value = language == "zh", shown(field, language), condition["op"], condition["value"]
    if op == "exists":
        return (f"{name}{'有' if value else '没有'}记载") if zh else f"{'with' if value else 'without'} {name}"
    values = [_value_in_words(each, field, language) for each in (value if isinstance(value, list) else [value])]
    if op in ("in", "not_in"):
        values = [("或" if zh else " or ").join(values)]
    phrases = _OPS[language] | (_DATE_OPS[language] if field["type"] == "date" else {})
    return f"{name}{'' if zh else ' '}{phrases[op].format(*values)}"


def _value_in_words(value: Any, field: Field, language: str) -> str:
    called = field["values_called"].get(str(value), {}).get(language, [])
    foreign = bool(CJK.search(str(value))) != (language == "zh")
    text = called[0] if called and foreign else f"{value:,}" if isinstance(value, int | float) else str(value)
    unit = field["unit"] if field["type"] == "number" else ""
    return f"{text}{' ' if unit and language == 'en' else ''}{unit}"


def shown(field: Field, language: str) -> str:
    """Return what a field is called in a language, or its own name."""
    return (field["called"].get(language) or field["called"].get("en") or [field["name"]])[0]
