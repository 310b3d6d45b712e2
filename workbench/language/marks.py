"""What stands where in a question: names, values, words of fields and tables, dates, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.knowledge.names.schema import spoken, spoken_words
from workbench.language.dates import read_dates
from workbench.language.names import QUOTED, blotted, names_in
from workbench.language.wording import TABLE, fields_of, fold_in_place, word_spans, words_of
from workbench.language.words import closed_words, pattern, stop_words
from workbench.ports import Field, KnowledgeBase
from workbench.state import Condition, NameRead, Sort
from workbench.text import CJK, fold, language_of

LONGEST = 3_000
"""Characters of a question that are read."""
NEAR = 24
"""Characters between a field's word and the value that it belongs to, at most."""
TRUTHS = frozenset(("yes", "no", "true", "false", "是", "否", "有", "无"))
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


class Marks:
    """A question with what is marked in it, and what of it is accounted for.

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
                self.tell(f"as of {self.date_asked}", f"截至 {self.date_asked}")
        nouns = self._nouns()
        self.table = self._table(nouns, values)
        if self.table:
            self.fields = [
                f
                for f in self.fields
                if self.select([self.table, Condition(field=f["name"], op="exists", value=True)], limit=1)
            ]
        self.values = [value for value in values if value.field in self.fields]
        self.called = self._called()
        self.heads = [s for word in nouns for s in word_spans(word, self.plain) if not meets(s, self.values)]
        self.heads = sorted([*self.heads, *self._valued_heads()])

    # --- What stands where ---

    def find(self, name: str) -> re.Match[str] | None:
        """Search the question, without its names, for a pattern of ``words.toml``."""
        return pattern(name).search(self.plain)

    def phrase(self, span: Any) -> str:
        """Return the text of a span."""
        return self.text[slice(*at(span))].strip()

    def skip(self, span: Any) -> None:
        """Note that a part of the question is not applied."""
        self.not_applied.append(self.phrase(span))

    def _names_and_values(self) -> tuple[list[NameRead], list[Span]]:
        text = self.text[:LONGEST]
        by_name = {field["name"]: field for field in self.fields}
        words = spoken(spoken_words(f for f in self.fields if f["type"] == "category"), text)
        names = names_in(text, self.bases)
        people = [at(n) for n in names if n["entity_id"] and _FULL_NAME.fullmatch(n["surface"])]
        values = [Span(s, e, by_name[name], value) for s, e, name, value in words if fold(value) not in TRUTHS]
        values = [value for value in values if at(value) not in people]

        def is_value(name: NameRead) -> bool:
            return any(v.start <= name["start"] and name["end"] <= v.end for v in values)

        return [name for name in names if name["doc_id"] or not is_value(name)], values

    def _nouns(self) -> dict[str, str]:
        """Return folded noun -> the table whose documents it calls, "" for those of all."""
        nouns = dict.fromkeys(closed_words()["words"]["nouns"].split(), "")
        for base in self.bases:
            known = base.nouns()
            nouns |= {fold(word): "" for kind in ("en", "zh") for word in known.get(kind, ())}
            tables = [*known.get("types", ()), *known.get("tables", ())]
            nouns |= {fold(table): table for table in tables if table != "Document"}
        return nouns

    def _table(self, nouns: dict[str, str], taken: Sequence[Any]) -> Condition | None:
        """Return the condition on the one table that a noun calls; of none that is refused or has all documents."""
        reaches = [(end, until) for _, end, until in self.negations()]
        named: dict[str, str] = {}
        for word, table in nouns.items():
            spans = word_spans(word, self.plain) if table else []
            if any(not meets(span, taken) and not meets(span, reaches) for span in spans):
                named[word.rstrip("s")] = table
        found = []
        for table in named.values():
            inside, outside = (Condition(field=TABLE["name"], op=op, value=table) for op in ("eq", "ne"))
            if self.select([inside], limit=1) and self.select([outside], limit=1):
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
            determined = pattern("values.determined").search(self.plain[: value.start]) and self.stands_alone(value)
            if plural or (pattern("values.ends_zh").match(rest) if chinese else determined):
                yield at(value)

    def clause(self, span: At) -> At:
        """Return the clause around a span."""
        ends = pattern("words.clause")
        before = [match.end() for match in ends.finditer(self.plain, 0, span[0])]
        after = ends.search(self.plain, span[1])
        return (before[-1] if before else 0), (after.start() if after else len(self.plain))

    def nearest(self, thing: Any, kind: str, most: int = NEAR) -> Span | None:
        """Return the nearest word of a field of this type in the same clause, at most ``most`` characters away."""
        start, end = at(thing)
        low, high = self.clause((start, end))
        inside = [c for c in self.called if c.field["type"] == kind and low <= c.start and c.end <= high]
        by_distance = sorted((max(c.start - end, start - c.end, 0), c.start, c) for c in inside)
        return by_distance[0][2] if by_distance and by_distance[0][0] <= most else None

    def of_type(self, kind: str) -> list[Field]:
        """Return the fields of a type that documents have."""
        return [field for field in self.fields if field["type"] == kind and field["documents"]]

    def only(self, kind: str) -> Field | None:
        """Return the one field of a type, if there is exactly one."""
        fields = self.of_type(kind)
        return fields[0] if len(fields) == 1 else None

    def select(self, conditions: Sequence[Condition], sort: Sort | None = None, limit: int | None = None) -> list[str]:
        """Return the documents of all knowledge bases that hold."""
        return [doc_id for base in self.bases for doc_id in base.select(conditions, sort, limit)]

    # --- Negation ---

    def read_negations(self, things: Iterable[Any], counted: Iterable[Any]) -> None:
        """Read which of these are refused; dates and numbers (``counted``) not across the noun of "without noise"."""
        spans, negated = sorted(map(at, [*things, *counted])), self.refused
        counted_spans = set(map(at, counted))
        for start, end, until in self.negations(spans):
            reached = [span for span in spans if end <= span[0]]
            before = [span for span in spans if self.clause(span)[0] <= span[0] and span[1] <= start]
            if reached and reached[0][0] <= min(until, end + NEAR):
                of_noun = pattern("negation.of_noun").fullmatch(self.plain[start:end])
                gap = re.findall(r"\w+", pattern("words.stop_zh").sub(" ", self.plain[end : reached[0][0]]))
                if of_noun and reached[0] in counted_spans and not stop_words().issuperset(gap):
                    continue
                self.used.append((start, end))
                for span in [reached[0], *self.joined(reached)]:
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

    def negations(self, spans: Iterable[At] = ()) -> Iterator[tuple[int, int, int]]:
        """Yield ``(start, end, until)`` of each negation: where it stands, and how far it reaches."""
        masked = blotted(self.plain, spans)
        for name in ("negation.never", "negation.only"):
            masked = blotted(masked, [match.span() for match in pattern(name).finditer(masked)])
        for match in pattern("negation.before").finditer(masked):
            end = pattern("negation.ends").search(masked, match.end())
            yield *match.span(), end.start() if end else len(masked)

    def joined(self, spans: Sequence[At]) -> Iterator[At]:
        """Yield what is joined with the first of these spans by commas, "and" and "or"."""
        for first, second in pairwise(spans):
            if not pattern("words.joined").fullmatch(self.plain[first[1] : second[0]]):
                return
            yield second

    def report_negations(self) -> None:
        """Report a negation that reaches no value, name, number or date: it is never turned into its opposite."""
        for start, end, reach in self.negations([*self.refused, *self.used]):
            refuses = any(end <= begin <= reach or stop <= start <= stop + NEAR for begin, stop in self.refused)
            until = min([reach, end + NEAR, *(begin for begin, _ in self.used if begin >= end)])
            if not refuses and self.plain[end:until].strip(" _"):
                self.skip((start, until))

    def stands_alone(self, value: Span) -> bool:
        """Return True for a value that is not part of another phrase, nor the topic of a text."""
        rest = self.plain[value.end :]
        behind = len(self.plain) - len(rest.lstrip())
        follows = [at(thing)[0] for thing in (*self.heads, *self.values, *self.names, *self.called)]
        alone = behind in follows or pattern("values.behind").match(rest)
        return bool(alone) and not pattern("values.topic").search(self.plain[: value.start])

    def tell(self, english: str, chinese: str) -> None:
        """Note how a part of the question was understood."""
        self.understood.append(chinese if self.language == "zh" else english)
