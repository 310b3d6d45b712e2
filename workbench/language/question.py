"""Read a question once: names, conditions on typed fields, order, count, total, the date as of which it asks.

Only closed classes are read: dates, numbers, units, comparison, negation, order, question words, and the names, fields,
values and tables of the knowledge bases. A condition counts only where field and value are both certain. Every other
condition is listed in ``not_applied``, which the answer shows, and its words are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from workbench.language.marks import NEAR, TRUTHS, At, Marks, Span, at, meets
from workbench.language.names import blotted
from workbench.language.numbers import NumberSpan, read_limit, read_numbers
from workbench.language.wording import TABLE, TOTALS_ZH, fits, in_unit, in_words, shown, words_of
from workbench.language.words import closed_words, is_small_talk, pattern, stop_words
from workbench.ports import Field, KnowledgeBase
from workbench.state import AnswerType, Condition, NameRead, Op, QueryIntent, Question, Sort, Total
from workbench.text import fold

_OPPOSITES: dict[str, Op] = {"eq": "ne", "in": "not_in", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}


def read(text: str, bases: Sequence[KnowledgeBase], today: str = "") -> Question:
    """Read a question over the fields and names of these knowledge bases.

    Args:
        text: the question as it stands alone.
        bases: the knowledge bases that are asked; with none only its words are read.
        today: the ISO day that "last month" and 近三年 are relative to; without one they are not applied.
    """
    return _Reader(text, bases, today).question()


class _Reader(Marks):
    """A question while it is read."""

    def question(self) -> Question:
        """Read everything, what the rest depends on first."""
        numbers = read_numbers(blotted(self.plain, map(at, [*self.dates, *self.values])))
        has_document = any(name["doc_id"] for name in self.names)
        fitting = any(number.op != "eq" and self._field_of(number) for number in numbers)
        fitting = fitting or any(self.nearest(date, "date", 8) or self.only("date") for date in self.dates)
        certain = fitting and not has_document
        limit = read_limit(self.plain)
        limit = None if limit == 1 else limit
        count, group = self._count()
        total = self._total()
        sort, superlative = (None, False) if group or total else self._sort(numbers)
        self.wishes = bool(self.find("intent.recommend"))
        wanting = bool(self.wishes or count or sort or total or self.find("intent.list"))
        used = list(self.used)
        self.read_negations([*self.values, *self.names], [*self.dates, *numbers])
        refuses = any(self.refused.get(at(thing)) for thing in (*self.values, *self.names))
        headed = bool(self.heads)
        selecting = wanting or certain or (headed and refuses) or ((headed or refuses) and not has_document)
        if selecting:
            self._apply_values()
            self._apply_names()
            self._apply_empty()
        else:
            self.refused, self.used = {}, used
        self._apply_numbers(numbers, selecting, limit)
        self._apply_dates(selecting, has_document)
        if selecting:
            self.report_negations()
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

    # --- Conditions ---

    def _add(self, field: Field, op: Op, value: Any, span: At, called: Span | None = None) -> None:
        """Add a condition, turned where it is refused; ``called`` is the word of its field beside it."""
        self.used += [span, *([at(called)] if called and called.field == field else [])]
        refused = self.refused.get(span)
        if refused is False or (refused and op not in _OPPOSITES):
            self.skip(span)
            return
        condition = Condition(field=field["name"], op=_OPPOSITES[op] if refused else op, value=value)
        if condition not in [known for _, known, _ in self.conditions]:
            self.conditions.append((span[0], condition, in_words(condition, field, self.language)))

    def _add_values(self, field: Field, found: Sequence[tuple[At, str]]) -> None:
        """Add the values of one field: refused ones apart; of the others one is enough, unless a document has many."""
        for refused in (True, False):
            part: list[tuple[At, Any]] = [
                (span, value) for span, value in found if bool(self.refused.get(span)) == refused
            ]
            values = list(dict.fromkeys(value for _, value in part))
            between = self.plain[part[0][0][1] : part[-1][0][0]] if part else ""
            if len(values) > 1 and (refused or not field["many"] or re.search(r"\bor\b|或|还是", between)):
                self.used += [span for span, _ in part]
                part = [(part[0][0], values)]
            for span, value in part:
                self._add(field, "in" if isinstance(value, list) else "eq", value, span)

    def _apply_values(self) -> None:
        """Apply the values of categories that stand by themselves: not inside another phrase, not as a topic."""
        applied = [v for v in self.values if at(v) in self.refused or self.stands_alone(v)]
        for value in applied:
            near = self.nearest(value, "category", 4)
            if near and near.field == value.field:
                self.used.append(at(near))
        for field in {value.field["name"]: value.field for value in applied}.values():
            self._add_values(field, [(at(v), v.value) for v in applied if v.field == field])

    def _apply_names(self) -> None:
        """Apply the names that a field holds: by the word beside it, else by the field that holds it."""
        names, found = list[NameRead](), dict[str, list[tuple[At, str]]]()
        before: tuple[int, Field] | None = None
        held = [field for field in self.fields if field["type"] in ("name", "category")]
        for name in self.names:
            span = at(name)
            counts = {
                f["name"]: len(self.select([Condition(field=f["name"], op="eq", value=name["name"])])) for f in held
            }
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
            truths = {fold(value): value for value in called.field["values"] if fold(value) in TRUTHS}
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
            field, near = self._field_of(number), self.nearest(span, "number")
            beside = near is not None and near.field == field and max(near.start - span[1], span[0] - near.end) <= 4
            if number.op == "eq" and not (beside or (field and number.unit and selecting)):
                continue  # a bare number is a word
            if field is None or number.unclear:
                if selecting:
                    self.skip(span)
                continue
            scaled = bool(pattern("measure.scale").search(self.plain[slice(*span)]))
            bounds = [in_unit(b, number.unit, field, scaled) for b in (number.low, number.high) if b is not None]
            self._add(field, cast(Op, number.op), bounds if number.op == "between" else bounds[0], span, near)

    def _field_of(self, number: NumberSpan) -> Field | None:
        """Return the number's field: by its unit, by the field's word beside it, or by what an adjective measures."""
        by_unit = [f for f in self.of_type("number") if number.unit and fits(number.unit, f)]
        if len(by_unit) == 1:
            return by_unit[0]
        near = self.nearest(number, "number")
        if near and (not number.unit or near.field in by_unit or not by_unit):
            return near.field
        return self._measured(self.plain[slice(*at(number))], by_unit or self.of_type("number"))

    def _measured(self, text: str, fields: Iterable[Field]) -> Field | None:
        """Return the one field that an adjective of this text measures."""
        for adjective, words in closed_words()["measures"].items():
            if re.search(adjective, text):
                own = re.compile(words, re.I)
                found = [f for f in fields if any(own.match(fold(w)) for w in (*words_of(f), f["name"], f["unit"]))]
                return found[0] if len(found) == 1 else None
        return None

    def _apply_dates(self, selecting: bool, has_document: bool) -> None:
        """Apply dates to the field that is called beside them; else where each that may be meant selects the same."""
        for date in [] if has_document and not selecting else self.dates:
            near = self.nearest(date, "date")
            dated, size = self.of_type("date"), len(date.low or date.high)
            precise = [field for field in dated if len(str(field["high"])) >= size]  # a year has no months
            fields = [near.field] if near else precise or dated
            op, value = cast(Op, date.op), date.low if date.op in ("gt", "ge") else date.high or date.low
            bounds: Any = [date.low, date.high] if op == "between" else value
            tests = [] if date.unclear else [Condition(field=f["name"], op=op, value=bounds) for f in fields]
            found = [self.select([test]) for test in tests]
            if not found or found.count(found[0]) < len(found):
                if selecting or date.unclear or fields:
                    self.skip(date)
            elif selecting or found[0]:  # else a date that a text speaks of
                self._add(fields[0], op, bounds, at(date), near)

    # --- Count, total, order ---

    def _count(self) -> tuple[bool, str]:
        match = self.find("count.how_many")
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
        match = self.find("total.sum") or self.find("total.mean")
        if not match:
            return None
        near = self.nearest(match.span(), "number")
        words = re.findall(r"[a-z]+", self.plain)
        fitting = [f for f in self.of_type("number") if any(fits(word, f) for word in words)]
        field = near.field if near else fitting[0] if len(fitting) == 1 else self.only("number")
        if field is None:
            self.skip(match.span())
            return None
        how_much = self.find("total.how_much")
        self.used += [match.span(), *([at(near)] if near else []), *([how_much.span()] if how_much else [])]
        return Total(field=field["name"], function="sum" if self.find("total.sum") else "mean")

    def _sort(self, numbers: Sequence[NumberSpan]) -> tuple[Sort | None, bool]:
        """Return the order that a superlative asks for, and whether it asks for a single document."""
        masked = blotted(self.plain, map(at, [*self.values, *numbers, *self.dates]))
        scope = [self.table] if self.table else []
        for name, descending in (("last_date", True), ("first_date", False), ("most", True), ("least", False)):
            match = pattern(f"order.{name}").search(masked)
            if not match:
                continue
            kind, end = "date" if name.endswith("date") else "number", match.end()
            near = self.nearest(match.span(), kind, 12)
            headed = [s for s in self.heads if -2 <= s[0] - end <= NEAR or self._is_linked(s[1], match.start())]
            of_kind = self.of_type(kind)
            measured = None if kind == "date" else self._measured(match.group(), of_kind)
            field = near.field if near else measured or self.only(kind)
            if field is None and kind == "date":
                firsts = [self.select(scope, Sort(field=f["name"], descending=descending), 1) for f in of_kind]
                field = of_kind[0] if firsts and firsts.count(firsts[0]) == len(firsts) else None
            about = bool(headed or self.table)
            if field is None or not (near or about):
                if about:
                    self.skip(match.span())
                continue
            self.used += [match.span(), *([at(near)] if near else [])]
            behind = next((self.plain[slice(*span)] for span in headed if span[0] >= end), "")
            return Sort(field=field["name"], descending=descending), not (behind.isascii() and behind.endswith("s"))
        return None, False

    def _is_linked(self, end: int, start: int) -> bool:
        """Return True for "which mill is the oldest": nothing but a verb stands between."""
        return end <= start and bool(pattern("order.linked").fullmatch(self.plain[end:start]))

    # --- What is asked for ---

    def _asked_fields(self, group: str, has_document: bool) -> list[str]:
        if group or not (self.find("answers.subject") or has_document):
            return []
        kinds = ("date", "number") if self.find("answers.person") else ()
        free = [c for c in self.called if not meets(c, self.used) and c.field["type"] not in kinds]
        free = [c for c in free if self.plain[c.start : c.end] not in stop_words()]
        fields = [c.field["name"] for c in free]
        if has_document and self.find("answers.yes_no"):
            fields += [value.field["name"] for value in self.values]
            free += self.values
        self.used += map(at, free)
        date = self.only("date")
        if not fields and date and has_document and self.find("answers.date"):
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
        if self.find("intent.compare") or (len(self.names) > 1 and self.find("intent.either")):
            return "compare"
        if self.wishes:
            return "recommend"
        if listing:
            return "list"
        alone = len(self.names) == 1 and not self.names[0]["doc_id"]
        if alone and self.find("intent.person"):
            return "person"
        return "list" if self.find("intent.list") and self.heads and not self.names else "qa"

    def _answer_type(self, intent: QueryIntent, count: bool) -> AnswerType:
        kinds: tuple[AnswerType, ...] = ("reason", "person", "date", "place", "number", "manner", "yes_no")
        if count:
            return "number"
        listed: AnswerType = "list" if intent in ("list", "recommend") else "text"
        return next((kind for kind in kinds if self.find(f"answers.{kind}")), listed)

    def _describe(self, count: bool, group: str, sort: Sort | None, limit: int | None, total: Total | None) -> None:
        if sort:
            field = next(field for field in self.fields if field["name"] == sort["field"])
            kinds = {"number": ("highest", "lowest", "最高", "最低")}.get(
                field["type"], ("latest", "earliest", "最晚", "最早")
            )
            first, zh_first = kinds[not sort["descending"] :: 2]
            only, zh_only = (f", the first {limit}", f"，取前 {limit} 个") if limit else ("", "")
            self.tell(
                f"by {shown(field, 'en')}, {first} first{only}", f"按{shown(field, 'zh')}，{zh_first}的在前{zh_only}"
            )
        if count:
            self.tell(f"counted by {group}" if group else "counted", f"按{group}计数" if group else "计数")
        if total:
            self.tell(f"{total['function']} of {total['field']}", f"{total['field']}的{TOTALS_ZH[total['function']]}")
