"""Reading a question: names, conditions, order and count, what is asked for. Made once, over the bases that are asked.

Nothing here belongs to a domain: fields, values and what they are called come from the schema of a base. What is
negated never becomes a positive condition: where it is not clear what is meant, no condition is read, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from workbench.context import Field, KnowledgeBase
from workbench.language.amounts import Amount, dates, numbers, whole
from workbench.language.marks import Called, Marks, Span, Value
from workbench.language.names import blotted
from workbench.language.telling import in_words, shown
from workbench.language.ways import way, ways
from workbench.state import AnswerType, Condition, NameRead, Op, QueryIntent, Reading, Sort
from workbench.text import fold, language_of

__all__ = ["in_words", "is_smalltalk", "read", "shown"]

NEAR = 24
"""Characters within which a word says something of what stands beside it."""
_MEASURE = "[个部篇份项人条款本种名位家次台件起]"
_FEW = r"\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|[一两二三四五六七八九十]"
_OPPOSITE: dict[str, Op] = {"eq": "ne", "in": "not_in", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}


@cache
def _smalltalk() -> re.Pattern[str]:
    lines = files("workbench.language").joinpath("smalltalk.txt").read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line.strip() and not line.startswith("#")))


def is_smalltalk(message: str) -> bool:
    """Whether the message is nothing but a greeting, thanks, a farewell or a question about who answers.

    >>> [is_smalltalk(m) for m in ("Hello there!", "你好，你是谁？", "Hello, who wrote this?", "再推荐几部")]
    [True, True, False, False]
    """
    parts = [
        part.strip()
        for part in re.split(r"[\W_]*[,.!?:;，。！？：；~～、\n…]+[\W_]*", message.lower().replace("’", "'"))
    ]
    said = [re.sub(r"[^\w\s']", "", part).strip() for part in parts]
    said = [part for part in said if part]
    return bool(said) and all(_smalltalk().fullmatch(part) for part in said)


def read(question: str, bases: Sequence[KnowledgeBase]) -> Reading:
    """What a question asks, over the schemas and names of these knowledge bases.

    Args:
        question: as it stands alone.
        bases: the knowledge bases that are asked; with none only the words are read.
    """
    return _Reader(question, bases).reading()


class _Reader:
    """One question while it is read. What is understood is used up: what is left are its words."""

    def __init__(self, question: str, bases: Sequence[KnowledgeBase]):
        self.question, self.bases, self.marks = question, bases, Marks(question, bases)
        self.plain, self.fields, self.names = self.marks.plain, self.marks.fields, self.marks.names
        self.language = language_of(question)
        self.used: list[Span] = []
        self.conditions: list[Condition] = []
        self.sources: list[Span] = []
        self.ordered: list[Span] = []
        self.understood: list[str] = []
        self.unclear: list[str] = []
        self.wanting = any(way("intent", name).search(self.plain) for name in ("list", "recommend"))

    def reading(self) -> Reading:
        """Read it: what all else depends on first."""
        count, group = self._count()
        amounts = self._amounts()
        for _, amount in amounts:
            self.used.append((amount.start, amount.tail))
        sort, limit = (None, None) if group else self._order()
        wanting = self.wanting or count or sort is not None
        specific = any(name["doc_id"] for name in self.names) and not wanting
        values = [] if specific else self._values(wanting)
        explains = any(way("answers", kind).search(self.plain) for kind in ("reason", "manner"))
        over = not specific and (wanting or (not explains and bool(values or self.marks.heads)))
        holding = {(name["start"], name["end"]): self._holding(name) for name in self.names}
        things = [*((a.start, a.end) for _, a in amounts), *((v.start, v.end) for v in self.marks.values)]
        self.negated = self.marks.negated([*things, *(span for span, held in holding.items() if held), *self.ordered])
        if any(self.negated.get(span) for span in self.ordered):
            self.unclear += [self.question[slice(*span)] for span in self.ordered]
            sort = limit = None
        self._of_amounts(amounts, over)
        self._of_values(values if over else [], specific)
        self._of_names(holding, over)
        self._either_of_two()
        self._of_empty()
        self._of_negated(over)
        limit = limit or self._wanted()
        asked = self._asked(group, specific)
        intent = self._intent(over, sort, count, asked)
        if sort:
            field = next(field for field in self.fields if field["name"] == sort["field"])
            self._tell_order(field, sort["descending"], limit)
        if count:
            self._tell(f"counted by {group}" if group else "counted", f"按{group}计数" if group else "计数")
        return Reading(
            question=self.question,
            language="zh" if self.language == "zh" else "en",
            intent=intent,
            answer_type=self._answer(intent, asked, count),
            names=self.names,
            conditions=self.conditions,
            sort=sort,
            limit=limit,
            count=count,
            group=group,
            asked=asked,
            words=list(dict.fromkeys(self._content())),
            understood=list(dict.fromkeys(self.understood)),
            not_understood=list(dict.fromkeys(self.unclear)),
        )

    def _free(self, start: int, end: int) -> bool:
        return not any(start < until and begin < end for begin, until in self.used)

    def _tell(self, english: str, chinese: str) -> None:
        self.understood.append(chinese if self.language == "zh" else english)

    def _tell_order(self, field: Field, descending: bool, limit: int | None) -> None:
        how = ("latest", "earliest") if field["type"] == "date" else ("highest", "lowest")
        chosen = f"the {'one' if limit == 1 else limit} with the {how[not descending]} {shown(field, 'en')}"
        ordered = f"ordered by {shown(field, 'en')}, {how[not descending]} first"
        wie = ("最晚", "最早") if field["type"] == "date" else ("最高", "最低")
        self._tell(
            chosen if limit else ordered,
            f"{shown(field, 'zh')}{wie[not descending]}的{limit}个" if limit else f"按{shown(field, 'zh')}排列，{wie[not descending]}的在前",
        )

    def _add(self, field: Field, op: Op, value: Any, span: Span) -> None:
        """A condition, or its opposite where it is negated; none where that is not clear."""
        said = self.negated.get(span)
        if said == "free":
            return
        if said == "unclear" or (said == "no" and op not in _OPPOSITE):
            self.unclear.append(self.question[slice(*span)].strip())
            return
        condition = Condition(field=field["name"], op=_OPPOSITE[op] if said else op, value=value)
        if condition not in self.conditions:
            self.conditions.append(condition)
            self.sources.append(span)
            self.understood.append(in_words(condition, field, self.language))

    def _either_of_two(self) -> None:
        """Conditions on two fields of which one is enough cannot be asked together: neither is, and that is said."""
        told = sorted(zip(self.sources, self.conditions, self.understood, strict=True), key=lambda one: one[0])
        for one, other in zip(told, told[1:], strict=False):
            between = self.plain[one[0][1] : other[0][0]]
            if one[1]["field"] != other[1]["field"] and re.fullmatch(r"\s*or(?: \w+)?(?: by)?\s*|或者?(?:是|由)?", between):
                self.unclear.append(self.question[one[0][0] : other[0][1]])
                for _, condition, said in (one, other):
                    if condition in self.conditions:
                        self.conditions.remove(condition)
                        self.understood.remove(said)

    def _add_all(self, field: Field, found: Sequence[tuple[Span, Any]]) -> None:
        """Conditions on one field: those that are refused apart, the others all, or one of them."""
        for refused in (True, False):
            parts = [(span, value) for span, value in found if bool(self.negated.get(span)) == refused]
            several = len({value for _, value in parts}) > 1
            between = self.plain[parts[0][0][1] : parts[-1][0][0]] if several else ""
            if several and (not field["many"] or refused or re.search(ways("values")["either"], between)):
                clear = [part for part in parts if self.negated.get(part[0]) in (None, "no")]
                if clear:
                    self._add(field, "in", list(dict.fromkeys(value for _, value in clear)), clear[0][0])
                parts = [part for part in parts if part not in clear]
            for span, value in parts:
                self._add(field, "eq", value, span)

    # count and order

    def _count(self) -> tuple[bool, str]:
        if most := way("count", "most_often").search(self.plain):
            heads = [*self.marks.heads, *((v.start, v.end) for v in self.marks.values)]
            around = [n for n in heads if 0 <= n[0] - most.end() <= 1 or 0 <= most.start() - n[1] <= 1]
            named = [c for c in self.marks.called if c.field["type"] in ("category", "name") and self._asks_for(c)]
            who = [f for f in self.fields if f["type"] == "name"] if way("answers", "person").search(self.plain) else []
            group = named[0].field["name"] if named else who[0]["name"] if len(who) == 1 else ""
            if around and group:
                self.used += [most.span(), *((c.start, c.end) for c in named[:1])]
                return True, group
        match = way("count", "how_many").search(self.plain)
        if not match:
            return False, ""
        behind = next((c for c in self.marks.called if 0 <= c.start - match.end() <= 2), None)
        if behind and behind.field["type"] == "number":
            return False, ""  # "how many pages does X have" asks for a field
        self.used.append(match.span())
        for called in self.marks.called:
            before = way("count", "each").search(self.plain[max(0, called.start - NEAR) : called.start])
            if before and called.field["type"] in ("category", "name", "date"):
                self.used.append((called.start, called.end))
                return True, called.field["name"]
        return True, ""

    def _order(self) -> tuple[Sort | None, int | None]:
        without_values = blotted(self.plain, [(value.start, value.end) for value in self.marks.values])
        for name, descending in (("last_date", True), ("first_date", False), ("most", True), ("least", False)):
            matches = way("order", name).finditer(without_values)
            match = next((m for m in matches if self._free(*m.span())), None)
            if not match or way("order", "not_one").match(self.plain, match.end()):
                continue
            fields = [f for f in self.fields if f["type"] == ("date" if name.endswith("date") else "number")]
            heads = [*self.marks.heads, *((v.start, v.end) for v in self.marks.values)]
            headed = any(0 <= start - match.end() <= NEAR for start, _ in heads)
            measured = self._measured(match.group(), self.fields)
            near = self.marks.near(*match.span(), fields)
            field = measured[0] if len(measured) == 1 else near.field if near else None
            if field is None and name.endswith("date") and fields and (headed or self.language == "zh"):
                field = fields[0]
            if field is None:
                if headed and not re.search(r"\bmost\b", match.group()):
                    self.unclear.append(self.question[slice(*match.span())])
                continue
            self.ordered = [match.span()]
            self.used += [match.span(), *([(near.start, near.end)] if near and near.field == field else [])]
            limit = self._number_beside(*match.span())
            return Sort(field=field["name"], descending=descending), limit or (None if self._plural(match.end(), near) else 1)
        return None, None

    def _number_beside(self, start: int, end: int) -> int | None:
        after = re.match(rf"\s*(?:的\s*|前)?({_FEW})(?=\s|{_MEASURE}|$)", self.plain[end:])
        before = re.search(rf"\b({_FEW})\s*$|([两二三四五六七八九十])\s*{_MEASURE}的?$", self.plain[max(0, start - 8) : start])
        later = re.match(rf"[^，。,.]{{0,6}}?的前?({_FEW}){_MEASURE}", self.plain[end:])
        found = before or after or later
        return whole(next(filter(None, found.groups()))) if found else None

    def _plural(self, end: int, near: Called | None) -> bool:
        measured = near is not None and 0 <= near.start - end <= 1
        return not measured and bool(re.match(r"\s+(?:[\w-]+ ){0,2}[a-z]{3,}(?<!s)s\b(?! (?:is|was|does|did|has))", self.plain[end:]))

    def _wanted(self) -> int | None:
        """How many are asked for: "three papers", 推荐五篇; one alone is only a way of speaking."""
        match = re.search(
            rf"\b(?:top|list|name|show|give|recommend|suggest|find)\s+(?:me\s+)?({_FEW})\b(?!\s*%)"
            rf"|(?:推荐|列出|列举|给我|找|前)({_FEW}){_MEASURE}",
            self.plain,
        )
        number = whole(match[1] or match[2]) if match else None
        return number if number != 1 else None

    def _measured(self, text: str, fields: Iterable[Field]) -> list[Field]:
        """The fields that an adjective measures ("longer than", 最贵), by their words and by their units."""
        for adjective, words in ways("measures").items():
            if re.search(adjective, text):
                said = re.compile(rf"(?<![a-z])(?:{words}|{adjective})", re.I)
                held = [f for f in fields if f["type"] == "number"]
                return [f for f in held if any(said.match(fold(word)) for word in (*_all_called(f), f["name"], f["unit"]))]
        return []

    # numbers and dates

    def _amounts(self) -> list[tuple[Field | None, Amount]]:
        """What is compared with a number or a date, and the field that it is of; None where no field is."""
        found: list[tuple[Field | None, Amount]] = []
        dated = [field for field in self.fields if field["type"] == "date"]
        plain = self.plain
        for amount in dates(plain):
            near = self.marks.near(amount.start, amount.end, dated)
            if dated:
                found.append((near.field if near else dated[0], amount))
                self._use_called(near, amount)
            plain = blotted(plain, [(amount.start, amount.end)])
        for amount in numbers(plain):
            near = self._near_number(amount)
            by_unit = [f for f in self.fields if f["type"] == "number" and self._is_unit(amount.unit, f)]
            measured = self._measured(plain[amount.start : amount.end], self.fields)
            field = by_unit[0] if len(by_unit) == 1 else near.field if near else measured[0] if len(measured) == 1 else None
            if not amount.op:
                stated = near and re.fullmatch(r"\s*(?:(?:is|are|was|were|of|=|equals?)\b|为|是|等于|:)?\s*", plain[near.end : amount.start])
                if field is None or not (stated or (by_unit and amount.tail > amount.end and near)):
                    continue
                amount = amount._replace(op="eq")
            found.append((field, amount))
            if field and near and near.field == field:
                self._use_called(near, amount)
        return sorted(found, key=lambda one: one[1].start)

    def _near_number(self, amount: Amount) -> Called | None:
        counted = [field for field in self.fields if field["type"] == "number"]
        return self.marks.near(amount.start, amount.end, counted)

    def _use_called(self, near: Called | None, amount: Amount) -> None:
        if near and max(near.start - amount.tail, amount.start - near.end) <= NEAR:
            self.used.append((near.start, near.end))

    def _is_unit(self, unit: str, field: Field) -> bool:
        if not unit:
            return False
        own, (_, base) = fold(field["unit"]), _unit(field)
        called = any(fold(word) == unit or (len(unit) == 1 and fold(word).startswith(unit)) for word in _all_called(field))
        return unit in (own, base) or called or bool(_factor(unit, base))

    def _of_amounts(self, amounts: Iterable[tuple[Field | None, Amount]], over: bool) -> None:
        for field, amount in amounts:
            span = (amount.start, amount.end)
            if field is None or (field["type"] == "date" and not over):
                self.used.remove((amount.start, amount.tail))
                if field is None and over:
                    self.unclear.append(self.question[slice(*span)].strip())
                continue
            values = amount.value if isinstance(amount.value, list) else [amount.value]
            told = [_in_unit(value, amount, field) if isinstance(value, float) else value for value in values]
            self._add(field, amount.op, told if isinstance(amount.value, list) else told[0], span)  # type: ignore[arg-type]

    # values and names

    def _values(self, wanting: bool) -> list[Value]:
        """The values that are said of documents, and no theme or part of something else."""
        found = [value for value in self.marks.values if self._free(value.start, value.end)]
        said = [value for value in found if self._is_said(value, wanting)]
        for one, other in [*zip(found, found[1:], strict=False), *zip(found[:0:-1], found[-2::-1], strict=False)]:
            joined = re.fullmatch(ways("values")["joined"], self.plain[min(one.end, other.end) : max(one.start, other.start)])
            if one in said and other not in said and one.field == other.field and joined:
                said.append(other)
        return sorted(said)  # type: ignore[type-var]

    def _is_said(self, value: Value, wanting: bool) -> bool:
        before, behind = self.plain[max(0, value.start - 2 * NEAR) : value.start], self.plain[value.end :]
        near = self.marks.near(value.start, value.end, [value.field])
        if near and (0 <= near.start - value.end <= 4 or 0 <= value.start - near.end <= 12):
            self.used.append((near.start, near.end))
            return True
        if way("values", "theme").search(before):
            return False
        if any(self._adjective(value.end, noun[0]) for noun in self.marks.heads):
            return True
        if way("values", "followed").match(behind) and any(noun[1] == value.start - 1 for noun in self.marks.heads):
            return True
        if self.language == "zh":
            stands = way("values", "zh_before").search(before) or way("values", "zh_behind").match(behind)
            return bool(stands)
        if way("values", "existing").search(before):
            return True
        if not way("values", "followed").match(behind):
            return False
        if way("values", "predicate").search(before):
            return wanting or bool(self.marks.heads)
        nouns = any(noun[1] <= value.start for noun in self.marks.heads)
        prepared = way("values", "preposition").search(before)
        return bool(way("values", "determined").search(before) or (prepared and (nouns or wanting)) or (_plural(value, self.plain) and not re.search(r"\b(?:why|how(?! many)|what)\b", self.plain)))

    def _adjective(self, end: int, noun: int) -> bool:
        """Whether what ends there stands before a noun as an adjective does."""
        between = self.plain[end:noun]
        if noun < end or any(sign in between for sign in ",.;?!，。；"):
            return False
        words = re.findall(r"[a-z'-]+", between)
        if any(re.fullmatch(r"by|of|in|from|with|that|which|and|or|about|on|for|is|are|was|were|has|have|do|does|did", w) for w in words):
            held = [v for v in self.marks.values if end <= v.start and v.end <= noun]
            return bool(held) and bool(re.fullmatch(ways("values")["joined"], self.plain[end : held[0].start]))
        return len(words) <= 2 and len(re.findall(r"[\u4e00-\u9fff]", between)) <= 6

    def _of_values(self, said: Sequence[Value], specific: bool) -> None:
        every = said if specific else [v for v in self.marks.values if v in said or self.negated.get((v.start, v.end))]
        for field in [f for f in self.fields if any(v.field == f for v in every)]:
            parts = [((v.start, v.end), v.value) for v in every if v.field == field and self._free(v.start, v.end)]
            self.used += [span for span, _ in parts if self.negated.get(span) != "free"]
            self._add_all(field, parts)

    def _holding(self, name: NameRead) -> list[Field]:
        """The fields of which it is a value; a part of a name is the one value that has it."""
        named = [field for field in self.fields if field["type"] in ("name", "category")]
        return [field for field in named if self._value(field, name) is not None]

    def _value(self, field: Field, name: NameRead) -> str | None:
        condition = Condition(field=field["name"], op="eq", value=name["name"])
        if any(base.select([condition], None, 1) for base in self.bases):
            return name["name"]
        if name["doc_id"] or field["type"] != "name":
            return None
        part = fold(name["name"])
        values = {value for base in self.bases for value, _ in base.tally(field["name"]) if part in re.split(r"[\s·]", fold(value))}
        return values.pop() if len(values) == 1 else None

    def _of_names(self, holding: dict[Span, list[Field]], over: bool) -> None:
        """Names that a field holds: by the word that stands with them, else where only one field can be meant."""
        kept: list[NameRead] = []
        found: dict[str, list[tuple[Span, Any]]] = {}
        for name in self.names:
            span = (name["start"], name["end"])
            held = holding[span]
            role = self._role(span, held)
            field = role.field if role else held[0] if len(held) == 1 else None
            if role and self._not_behind(span, role):
                self.negated[span] = "no" if span not in self.negated else "unclear"
            elif re.match(r"\s+(?:(?:did|does|do|has|have|had|is|was)\s*(?:not?\b|n['’]t|never\b|nothing\b)|never\b)|\s*(?:没有?|未|不)(?!是)", self.plain[span[1] :]):
                self.negated.setdefault(span, "no" if held else "unclear")
            refused = self.negated.get(span)
            joined = bool(found) and not role and re.fullmatch(ways("values")["joined"], self.plain[self._last : span[0]])
            if joined and field is None:
                field = next((f for f in held if f["name"] in found), None)
            if not held and not name["doc_id"] and over and (role := self._role(span, self.fields)) and role.field["type"] == "name":
                field = role.field  # nobody of that name: said by its role
            if field is None or not (refused or (over and (role or joined or not name["doc_id"]))):
                if refused and held:
                    self.unclear.append(name["surface"])
                kept.append(name)
                continue
            self.used += [span, *([(role.start, role.end)] if role else [])]
            found.setdefault(field["name"], []).append((span, self._value(field, name) or name["name"]))
            self._last = span[1]
        for field in self.fields:
            self._add_all(field, found.get(field["name"], []))
        self.names = kept

    def _role(self, span: Span, fields: Iterable[Field]) -> Called | None:
        """The word of one of these fields that stands with a name: "directed by X", "did X direct", X负责的."""
        names = {field["name"] for field in fields}
        others = [(n["start"], n["end"]) for n in self.marks.names if (n["start"], n["end"]) != span]
        best: list[tuple[int, Called]] = []
        for called in self.marks.called:
            gap = self.plain[called.end : span[0]] if called.end <= span[0] else self.plain[span[1] : called.start]
            apart = any(min(span[1], called.end) <= start < max(span[0], called.start) for start, _ in others)
            asks = self._asks_for(called) and called.end <= span[0]
            if called.field["name"] in names and len(gap) <= NEAR and not apart and not asks and not re.search("[,;，；。?？]", gap):
                best.append((len(gap), called))
        return min(best, key=lambda one: one[0])[1] if best else None

    def _not_behind(self, span: Span, role: Called) -> bool:
        """Whether a negation stands between a name and its role: "X did not direct", X没有审理的."""
        return any(span[1] <= n.start and n.end <= role.start for n in self.marks.negations)

    def _asks_for(self, called: Called) -> bool:
        """Whether a field's word asks for its value: "who directed", "the author of", 谁负责, ...的作者是谁."""
        before, after = self.plain[max(0, called.start - 14) : called.start], self.plain[called.end : called.end + 10]
        return bool(
            re.search(r"\b(?:who|what|which|when|how much|how)\b(?: (?:is|was|are|were|the|did|does))*\s*$|谁[^，。]{0,4}$|什么$|哪[些个位种]$", before)
            or re.match(r"\s*(?:是|为|有)?(?:谁|什么|哪|多少|几|何)", after)
        )

    # what is refused, and what is asked

    def _of_empty(self) -> None:
        """Fields that are to be empty: "without damages", 没有赔偿的."""
        for called in self.marks.called:
            values = any(0 <= v.start - called.end <= 4 for v in self.marks.values)
            if self._free(called.start, called.end) and not values and self.marks.empty(called) and not self._named_before(called):
                self.used.append((called.start, called.end))
                condition = Condition(field=called.field["name"], op="exists", value=False)
                self.conditions.append(condition)
                self.understood.append(in_words(condition, called.field, self.language))

    def _named_before(self, called: Called) -> bool:
        return called.field["type"] == "name" and any(0 <= called.start - n["end"] <= 6 for n in self.marks.names)

    def _of_negated(self, over: bool) -> None:
        """What is negated and was not read: said, never turned round."""
        for before, after, until, _ in self.marks.negations if over else ():
            word = re.match(
                r"\s*(?:(?:an?|any|the|be|been|have|has|being)\s+)*([a-z][\w-]{2,}(?: [a-z][\w-]{2,})?|[\u3400-\u9fff]{2,6})",
                self.plain[after:until],
            )
            if word and self._free(before, after + word.end()) and not any(after <= s[0] <= until for s in self.used):
                self.unclear.append(self.question[after : after + word.end()].strip())

    def _asked(self, group: str, specific: bool) -> list[str]:
        """The fields whose values are asked for."""
        wants = re.search(r"\b(?:what|who|whom|whose|when|where|which|how)\b|谁|什么|哪|多少|多长|多久|几|何", self.plain)
        tells = bool(self.names) and re.search(r"[?？]\s*$|吗|呢|\b(?:tell|show|give)\b", self.plain)
        if group or not (wants or tells):
            return []
        stop = set(ways("generic")["stop_en"].split())
        free = [c for c in self.marks.called if self._free(c.start, c.end) and self.plain[c.start : c.end] not in stop]
        asked = [(c.start, c.field["name"]) for c in free if self._asks_for(c) or self.names or not self.conditions]
        if specific:
            asked += [(v.start, v.field["name"]) for v in self.marks.values if way("answers", "yes_no").search(self.plain)]
        if not asked and self.names and way("answers", "date").search(self.plain):
            dated = [field["name"] for field in self.fields if field["type"] == "date"]
            asked = [(0, dated[0])] if len(dated) == 1 and not self._content() else []
        return list(dict.fromkeys(name for _, name in sorted(asked)))

    def _intent(self, over: bool, sort: Sort | None, count: bool, asked: Sequence[str]) -> QueryIntent:
        if is_smalltalk(self.question):
            return "unknown"
        compared = re.search(r"compar|对比|比较一?下", self.plain)
        if way("intent", "compare").search(self.plain) and (len(self.names) > 1 or compared):
            return "compare"
        if len(self.names) > 1 and way("intent", "better").search(self.plain):
            return "compare"
        if way("intent", "recommend").search(self.plain):
            return "recommend"
        if count or sort or (self.conditions and (over or not (self.names or asked))):
            return "list"
        alone = len(self.names) == 1 and not self.names[0]["doc_id"] and not asked
        if alone and way("intent", "person").search(self.plain):
            return "person"
        listed = way("intent", "list").search(self.plain) and self.marks.heads
        return "list" if listed and not self.names and not asked else "qa"

    def _answer(self, intent: QueryIntent, asked: Sequence[str], count: bool) -> AnswerType:
        kinds: dict[str, AnswerType] = {"number": "number", "date": "date"}
        wanted: tuple[AnswerType, ...] = ("reason", "person", "date", "place", "number", "manner", "yes_no")
        if count:
            return "number"
        for kind in wanted:
            if way("answers", kind).search(self.plain):
                return kind
        types = [kinds[field["type"]] for field in self.fields if field["name"] in asked[:1] and field["type"] in kinds]
        return types[0] if types else "list" if intent in ("list", "recommend") else "text"

    def _content(self) -> list[str]:
        """What is left when everything that was read and the way of asking is taken away."""
        nouns = [span for span in self.marks.nouns if self.plain[slice(*span)] not in ("report", "paper", "note")]
        spans = [*self.used, *nouns, *(n[:2] for n in self.marks.negations), *(c[:2] for c in self.marks.called)]
        left = blotted(self.plain, spans)
        generic = ways("generic")
        stop = frozenset(generic["stop_en"].split())
        chinese = "|".join(sorted(generic["stop_zh"].split(), key=lambda word: (-len(word), word)))
        found: list[str] = []
        for match in re.finditer(r"[A-Za-z][\w'’-]*|\d[\w.]*|[\u3400-\u4dbf\u4e00-\u9fff]+", left):
            word = self.question[match.start() : match.end()]
            if match.group()[0].isascii():
                bare = re.sub(r"(?:['’](?:s|m|d|re|ve|ll)|n['’]t)$", "", match.group().lower())
                found += [word] if bare not in stop and (len(bare) > 1 or bare.isdigit()) else []
            else:
                found += [part for part in re.split(chinese, word) if len(part) > 1]
        return found


def _all_called(field: Field) -> list[str]:
    return [word for many in field["called"].values() for word in many]


def _plural(value: Value, plain: str) -> bool:
    word = plain[value.start : value.end]
    return word.endswith("s") and word != fold(value.value)


def _unit(field: Field) -> tuple[float, str]:
    """The unit of a field as how many of what it counts: 万元 is 10,000 元; "hours" may be its name."""
    unit = fold(field["unit"]) or next((word for word in map(fold, _all_called(field)) if _factor(word, word)), "")
    match = re.match(r"(百万|千万|万|亿|千(?![克米])|thousand|million|billion)\s*(?:of )?", unit)
    sizes = {"千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8, "thousand": 1e3, "million": 1e6, "billion": 1e9}
    return (sizes[match[1]], unit[match.end() :]) if match else (1.0, unit)


def _factor(unit: str, base: str) -> float | None:
    """How many of ``base`` one ``unit`` is; None where they are not of one kind."""
    for kind in ways("units").values():
        sizes = {word: size for words, size in kind.items() for word in words.split("|")}
        if unit in sizes and base in sizes:
            return float(sizes[unit] / sizes[base])
    return None


def _in_unit(value: float, amount: Amount, field: Field) -> float | int:
    """A number of a question in the unit of its field."""
    size, base = _unit(field)
    if size > 1 and (amount.scaled or amount.unit == base):
        value /= size
    elif amount.unit and (factor := _factor(amount.unit, base)):
        value *= factor
    value = round(value, 9)
    return int(value) if value == int(value) else value
