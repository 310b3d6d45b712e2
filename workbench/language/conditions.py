"""What documents must hold, as a question says it: conditions on numbers, dates, values and names.

Negation is laid upon what it reaches (``marks.py``); what is not clear becomes no condition and is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from workbench.language.amounts import Amount, dates, numbers
from workbench.language.marks import Called, Marks, Span, Value, way, ways
from workbench.language.names import blotted
from workbench.ports import Field, KnowledgeBase
from workbench.state import Condition, NameRead, Op
from workbench.text import CJK, fold, language_of

NEAR = 24
"""Characters within which a word says something of what stands beside it."""
_OPPOSITE: dict[str, Op] = {"eq": "ne", "in": "not_in", "gt": "le", "ge": "lt", "lt": "ge", "le": "gt"}
_SAID = {
    "en": {"eq": "is {}", "ne": "is not {}", "contains": "contains {}", "gt": "over {}", "ge": "at least {}"},
    "zh": {"eq": "是{}", "ne": "不是{}", "contains": "含有{}", "gt": "超过{}", "ge": "至少{}"},
}
_SAID["en"] |= {"lt": "under {}", "le": "at most {}", "in": "is {}", "not_in": "is not {}", "between": "from {} to {}"}
_SAID["zh"] |= {"lt": "低于{}", "le": "至多{}", "in": "是{}", "not_in": "不是{}", "between": "在{}到{}之间"}
_DATED = {
    "en": {"gt": "after {}", "ge": "since {}", "lt": "before {}", "le": "until {}"},
    "zh": {"gt": "在{}之后", "ge": "在{}及以后", "lt": "在{}之前", "le": "在{}及以前"},
}


_TWICE = 2
"""A name is in one role by itself when it has that so many times as often as any other."""


class Conditions:
    """One question while it is read. What is understood is used up: what is left are its words."""

    def __init__(self, question: str, bases: Sequence[KnowledgeBase]):
        self.question, self.bases, self.marks = question, bases, Marks(question, bases)
        self.plain, self.fields, self.names = self.marks.plain, self.marks.fields, self.marks.names
        self.language = language_of(question)
        self.used: list[Span] = []
        self.conditions: list[Condition] = []
        self.sources: list[Span] = []
        self.negated: dict[Span, str] = {}
        self.ordered: list[Span] = []
        self.guessed: list[Span] = []
        self.understood: list[str] = []
        self.unclear: list[str] = []
        self.wanting = any(way("intent", name).search(self.plain) for name in ("list", "recommend"))

    def _free(self, start: int, end: int) -> bool:
        return not any(start < until and begin < end for begin, until in self.used)

    def _tell(self, english: str, chinese: str) -> None:
        self.understood.append(chinese if self.language == "zh" else english)

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
        for one, other in pairwise(told):
            between = self.plain[one[0][1] : other[0][0]]
            if one[1]["field"] != other[1]["field"] and re.fullmatch(
                r"\s*or(?: \w+)?(?: by)?\s*|或者?(?:是|由)?", between
            ):
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

    def _measured(self, text: str, fields: Iterable[Field]) -> list[Field]:
        """The fields that an adjective measures ("longer than", 最贵), by their words and by their units."""
        for adjective, words in ways("measures").items():
            if re.search(adjective, text):
                said = re.compile(rf"(?<![a-z])(?:{words}|{adjective})", re.I)
                held = [f for f in fields if f["type"] == "number"]
                return [
                    f for f in held if any(said.match(fold(word)) for word in (*_all_called(f), f["name"], f["unit"]))
                ]
        return []

    def _amounts(self) -> list[tuple[Field | None, Amount]]:
        """What is compared with a number or a date, and the field that it is of; None where no field is."""
        found: list[tuple[Field | None, Amount]] = []
        dated = [field for field in self.fields if field["type"] == "date"]
        plain = self.plain
        for amount in dates(plain):
            near = self.marks.near(amount.start, amount.end, dated)
            if dated:
                found.append((near.field if near else dated[0], amount))
                self.guessed += [] if near else [(amount.start, amount.end)]
                self._use_called(near, amount)
            plain = blotted(plain, [(amount.start, amount.end)])
        for amount in numbers(plain):
            near = self._near_number(amount)
            by_unit = [f for f in self.fields if f["type"] == "number" and self._is_unit(amount.unit, f)]
            measured = self._measured(plain[amount.start : amount.end], self.fields)
            field = (
                by_unit[0] if len(by_unit) == 1 else near.field if near else measured[0] if len(measured) == 1 else None
            )
            if not amount.op:
                stated = near and re.fullmatch(
                    r"\s*(?:(?:is|are|was|were|of|=|equals?)\b|为|是|等于|:)?\s*", plain[near.end : amount.start]
                )
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
        called = any(
            fold(word) == unit or (len(unit) == 1 and fold(word).startswith(unit)) for word in _all_called(field)
        )
        return unit in (own, base) or called or bool(_factor(unit, base))

    def _of_amounts(self, amounts: Iterable[tuple[Field | None, Amount]], over: bool) -> None:
        for field, amount in amounts:
            span = (amount.start, amount.end)
            if field is None or (field["type"] == "date" and not over):
                self.used.remove((amount.start, amount.tail))
                if field is None and over:
                    self.unclear.append(self.question[amount.start : max(amount.end, amount.tail)].strip())
                continue
            values = amount.value if isinstance(amount.value, list) else [amount.value]
            told = [_in_unit(value, amount, field) if isinstance(value, float) else value for value in values]
            self._add(field, amount.op, told if isinstance(amount.value, list) else told[0], span)  # type: ignore[arg-type]

    def _of_guessed(self) -> None:
        """A date without the word of a field is of the first field under which something holds.

        Where nothing holds under any, it stands when documents are asked for by it, and is let go, with a word, when a
        question asks for something else.
        """
        dated = [field for field in self.fields if field["type"] == "date"]
        for span in [one for one in self.guessed if one in self.sources]:
            place = self.sources.index(span)
            others = [one for n, one in enumerate(self.conditions) if n != place]
            told = [(Condition({**self.conditions[place], "field": field["name"]}), field) for field in dated]
            held = next((one for one in told if self._holds([*others, one[0]])), None)
            said = in_words(self.conditions[place], told[0][1], self.language)
            if held:
                self.conditions[place] = held[0]
                self.understood[self.understood.index(said)] = in_words(*held, self.language)
            elif others and self._holds(others) and not self.wanting and self._asks():
                self.unclear.append(self.question[slice(*span)])
                self.understood.remove(said)
                del self.conditions[place], self.sources[place]

    def _of_nothing_else(self) -> bool:
        """Whether all conditions are dates without a field, of things that no base has: "how many came in 2024"."""
        guessed = bool(self.sources) and set(self.sources) <= set(self.guessed)
        return guessed and len(self.sources) == len(self.conditions) and not (self.marks.nouns or self.marks.values)

    def _asks(self) -> bool:
        """Whether the question asks for a person, a time, a reason and so on, and not for documents alone."""
        return any(way("answers", kind).search(self.plain) for kind in ways("answers"))

    def _holds(self, conditions: Sequence[Condition]) -> bool:
        return any(base.select(conditions, None, 1) for base in self.bases)

    def _values(self, wanting: bool) -> list[Value]:
        """The values that are said of documents, and no theme or part of something else."""
        found = [value for value in self.marks.values if self._free(value.start, value.end)]
        said = [value for value in found if self._is_said(value, wanting)]
        for one, other in [*pairwise(found), *zip(found[:0:-1], found[-2::-1], strict=False)]:
            joined = re.fullmatch(
                ways("values")["joined"], self.plain[min(one.end, other.end) : max(one.start, other.start)]
            )
            if one in said and other not in said and one.field == other.field and joined:
                said.append(other)
        return sorted(said, key=lambda value: value.start)

    def _is_said(self, value: Value, wanting: bool) -> bool:
        before, behind = self.plain[max(0, value.start - 2 * NEAR) : value.start], self.plain[value.end :]
        near = self.marks.near(value.start, value.end, [value.field])
        if near and (0 <= near.start - value.end <= 4 or 0 <= value.start - near.end <= 12):
            self.used.append((near.start, near.end))
            return True
        if any(fold(word) in self.plain[value.start : value.end] for word in _all_called(value.field)):
            return True  # "the sales department" says its field
        if way("values", "theme").search(before):
            return False
        if any(self._adjective(value.end, noun[0]) for noun in self.marks.heads):
            return True
        tells = way("values", "tells").search(before)
        if tells and any(noun[1] == value.start - len(before) + tells.start() for noun in self.marks.heads):
            return False  # what documents tell of, and none of their values: 哪篇讲两个部门之间的预算
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
        return bool(
            way("values", "determined").search(before)
            or (prepared and (nouns or wanting))
            or (_plural(value, self.plain) and not re.search(r"\b(?:why|how(?! many)|what)\b", self.plain))
        )

    def _adjective(self, end: int, noun: int) -> bool:
        """Whether what ends there stands before a noun as an adjective does."""
        between = self.plain[end:noun]
        if noun < end or any(sign in between for sign in ",.;?!，。；"):
            return False
        words = re.findall(r"[a-z'-]+", between)
        if any(
            re.fullmatch(r"by|of|in|from|with|that|which|and|or|about|on|for|is|are|was|were|has|have|do|does|did", w)
            for w in words
        ):
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

    def _mostly(self, name: NameRead, held: Sequence[Field]) -> Field | None:
        """The field that is meant by a name that several have: the one that has it more than twice as often as any
        other, else the one with the fewest names a document, its makers; "with X" is in the one with the most.
        """
        if len(held) < 2:
            return held[0] if held else None
        counts = sorted(((self._often(field, name), field["name"]) for field in held), reverse=True)
        if counts[0][0] > _TWICE * counts[1][0]:
            return next(field for field in held if field["name"] == counts[0][1])
        beside = re.search(r"\b(?:with|featuring|alongside)\s+$|[和与跟有]$", self.plain[: name["start"]])
        told = sorted(held, key=lambda field: self._breadth(field))
        return None if any(field["type"] != "name" for field in held) else told[-1 if beside else 0]

    def _breadth(self, field: Field) -> float:
        """How many names a document has in a field."""
        return sum(count for base in self.bases for _, count in base.tally(field["name"])) / max(1, field["documents"])

    def _often(self, field: Field, name: NameRead) -> int:
        condition = Condition(field=field["name"], op="eq", value=name["name"])
        return sum(len(base.select([condition])) for base in self.bases)

    def _value(self, field: Field, name: NameRead) -> str | None:
        condition = Condition(field=field["name"], op="eq", value=name["name"])
        if any(base.select([condition], None, 1) for base in self.bases):
            return name["name"]
        longer = re.match(r"\s+[A-Z]\w", self.question[name["end"] :]) or re.search(
            r"(?<!^)\b[A-Z]\w+\s+$", self.question[: name["start"]]
        )
        if name["doc_id"] or field["type"] != "name" or longer:
            return None  # another person's name
        part = fold(name["name"])
        values = {
            value
            for base in self.bases
            for value, _ in base.tally(field["name"])
            if part in re.split(r"[\s·]", fold(value))
        }
        return values.pop() if len(values) == 1 else None

    def _of_names(self, holding: dict[Span, list[Field]], over: bool) -> None:
        """Names that a field holds: by the word that stands with them, else where only one field can be meant."""
        kept: list[NameRead] = []
        found: dict[str, list[tuple[Span, Any]]] = {}
        last = 0
        roles = self._roles(holding)
        for name in self.names:
            span = (name["start"], name["end"])
            held = holding[span]
            role = roles[span]
            other = (
                None if role or name["doc_id"] else self._role(span, [f for f in self.fields if f["type"] == "name"])
            )
            if other and held and self._beside(span, other):
                role = other  # "edited by X", where X is known for something else
            field = role.field if role else self._mostly(name, held)
            if role and self._not_behind(span, role):
                self.negated[span] = "no" if span not in self.negated else "unclear"
            elif re.match(
                r"\s+(?:(?:did|does|do|has|have|had|is|was)\s*(?:not?\b|n['’]t|never\b|nothing\b)|never\b)|\s*(?:没有?|未|不)(?!是)",
                self.plain[span[1] :],
            ):
                self.negated.setdefault(span, "no" if held else "unclear")
            refused = self.negated.get(span)
            joined = bool(found) and not role and re.fullmatch(ways("values")["joined"], self.plain[last : span[0]])
            if joined:
                field = next((f for f in held if f["name"] in found), field)
            if (
                not held
                and not name["doc_id"]
                and over
                and (role := self._role(span, self.fields))
                and role.field["type"] == "name"
            ):
                field = role.field  # nobody of that name: said by its role
            if field is None or not (refused or (over and (role or joined or not name["doc_id"]))):
                if refused and held:
                    self.unclear.append(name["surface"])
                kept.append(name)
                continue
            self.used += [span, *([(role.start, role.end)] if role else [])]
            found.setdefault(field["name"], []).append((span, self._value(field, name) or name["name"]))
            last = span[1]
        for field in self.fields:
            self._add_all(field, found.get(field["name"], []))
        self.names = kept

    def _roles(self, holding: dict[Span, list[Field]]) -> dict[Span, Called | None]:
        """The role of each name; of names that are joined the first has that of the next: "did X and Y write"."""
        roles = {span: self._role(span, held) for span, held in holding.items()}
        for one, other in reversed(list(pairwise(sorted(roles)))):
            role = roles[other]
            joined = re.fullmatch(ways("values")["joined"], self.plain[one[1] : other[0]])
            if roles[one] is None and role and joined and role.field in holding[one]:
                roles[one] = role
        return roles

    def _role(self, span: Span, fields: Iterable[Field]) -> Called | None:
        """The word of one of these fields that stands with a name: "written by X", "did X write", X负责的."""
        names = {field["name"] for field in fields}
        others = [(n["start"], n["end"]) for n in self.marks.names if (n["start"], n["end"]) != span]
        best: list[tuple[int, Called]] = []
        for called in self.marks.called:
            gap = self.plain[called.end : span[0]] if called.end <= span[0] else self.plain[span[1] : called.start]
            apart = any(min(span[1], called.end) <= start < max(span[0], called.start) for start, _ in others)
            asks = self._asks_for(called) and called.end <= span[0]
            if (
                called.field["name"] in names
                and len(gap) <= NEAR
                and not apart
                and not asks
                and not re.search("[,;，；。?？]", gap)
            ):
                best.append((len(gap), called))
        return min(best, key=lambda one: one[0])[1] if best else None

    def _beside(self, span: Span, called: Called) -> bool:
        """Whether a name and the word of a field stand side by side."""
        return max(called.start - span[1], span[0] - called.end) <= len(" by ")

    def _not_behind(self, span: Span, role: Called) -> bool:
        """Whether a negation stands between a name and its role: "X did not direct", X没有审理的."""
        return any(span[1] <= n.start and n.end <= role.start for n in self.marks.negations)

    def _asks_for(self, called: Called) -> bool:
        """Whether a field's word asks for its value: "who wrote", "the author of", 谁负责, ...的作者是谁."""
        before, after = self.plain[max(0, called.start - 14) : called.start], self.plain[called.end : called.end + 10]
        return bool(
            re.search(
                r"\b(?:who|what|which|when|how much|how)\b(?: (?:is|was|are|were|the|did|does))*\s*$"
                r"|谁[^，。]{0,4}$|什么$|哪[些个位种]$",
                before,
            )
            or re.match(r"\s*(?:是|为|有)?(?:谁|什么|哪|多少|几|何)", after)
        )

    def _of_empty(self) -> None:
        """Fields that are to be empty: "without damages", 没有赔偿的."""
        for called in self.marks.called:
            values = any(0 <= v.start - called.end <= 4 for v in self.marks.values)
            if (
                self._free(called.start, called.end)
                and not values
                and self.marks.empty(called)
                and not self._named_before(called)
            ):
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
                r"\s*(?:(?:an?|any|the|be|been|have|has|being)\s+)*"
                r"([a-z][\w-]{2,}(?: [a-z][\w-]{2,})?|[\u3400-\u9fff]{2,6})",
                self.plain[after:until],
            )
            if word and self._free(before, after + word.end()) and not any(after <= s[0] <= until for s in self.used):
                self.unclear.append(self.question[after : after + word.end()].strip())


def in_words(condition: Condition, field: Field, language: str) -> str:
    """A condition as a person says it.

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
    said = [_value(one, field, language) for one in (value if isinstance(value, list | tuple) else [value])]
    if op in ("in", "not_in"):
        said = [("或" if zh else " or ").join(said)]
    ways = _SAID[language] | (_DATED[language] if field["type"] == "date" else {})
    return f"{name}{'' if zh else ' '}{ways[op].format(*said)}"


def _value(given: Any, field: Field, language: str) -> str:
    called = field["values_called"].get(str(given), {}).get(language, [])
    foreign = bool(CJK.search(str(given))) != (language == "zh")
    text = called[0] if called and foreign else f"{given:,}" if isinstance(given, int | float) else str(given)
    unit = field["unit"] if field["type"] == "number" else ""
    return f"{text}{' ' if unit and language == 'en' else ''}{unit}"


def shown(field: Field, language: str) -> str:
    """What a field is called in a language, or by its own name."""
    return (field["called"].get(language) or field["called"].get("en") or [field["name"]])[0]


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
