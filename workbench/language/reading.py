"""Reading a question: names, conditions, order and count, what is asked for. Made once, over the bases that are asked.

Nothing here belongs to a domain: fields, values and what they are called come from the schema of a base. What is
negated never becomes a positive condition: where it is not clear what is meant, no condition is read, and that is said.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from workbench.context import Field, KnowledgeBase
from workbench.days import days
from workbench.knowledge.schema import number, spoken, spoken_words
from workbench.language.names import QUOTED, blotted, names_in
from workbench.language.times import times
from workbench.state import AnswerType, Condition, NameRead, Op, QueryIntent, Reading, Sort
from workbench.text import CJK, fold, language_of

__all__ = ["is_smalltalk", "read"]

NEAR = 24
"""Characters within which a word says something of what stands beside it."""
_CLAUSE = re.compile(r"[,;.!?:，。；！？：]|\b(?:but|which|who|whose|that|whereas|while)\b|但|而")
_MEASURE = "[个部篇份项人条款本种名位家次台件]"
_DIGITS = {
    sign: value
    for value, signs in enumerate(["零〇", "一", "二两", "三", "四", "五", "六", "七", "八", "九", "十"])
    for sign in signs
}
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: value for value, word in enumerate(_WORDS, start=1)}
_AMOUNT = re.compile(
    r"(?<![a-z0-9.])[$€£¥￥]?\s*(?P<number>\d[\d,]*(?:\.\d+)?)\s*"
    r"(?P<scale>百万|[kK](?![a-z])|million|billion|thousand|[千万萬亿億])?\s*"
    r"(?P<unit>%|[a-zµ]{1,10}\b|[\u4e00-\u9fff]{1,2})?",
    re.I,
)
_SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "千": 1e3,
    "万": 1e4,
    "萬": 1e4,
    "million": 1e6,
    "百万": 1e6,
    "亿": 1e8,
    "億": 1e8,
    "billion": 1e9,
}
_ADJECTIVES = {  # what an order or a comparison measures by itself
    r"expensive|cheap|pric|贵|便宜": ("price", "cost", "budget", "价格", "费用", "成本", "预算"),
    r"long|short|长|短|久": ("duration", "length", "runtime", "time", "时长", "片长", "长度", "工期", "期限"),
    r"old|young|年长|年轻": ("age", "年龄"),
    r"heav|light|重|轻": ("weight", "重量"),
}


class _Part(NamedTuple):
    """``question[start:end]`` was read: as a condition of a field, an order, a count, ..."""

    start: int
    end: int


class _Called(NamedTuple):
    """``question[start:end]`` calls a field."""

    start: int
    end: int
    field: Field


@cache
def _ways() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("ways.toml").read_text(encoding="utf-8"))


@cache
def _way(section: str, name: str) -> re.Pattern[str]:
    given = _ways()[section][name]
    return re.compile("|".join(f"(?:{one})" for one in ([given] if isinstance(given, str) else given)), re.I)


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
        for part in re.split(r"[\W_]*[,.!?;:，。！？；：~～、\n…]+[\W_]*", message.lower().replace("’", "'"))
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
    """One question while it is read. Every part that is read is used up: what is left are its words."""

    def __init__(self, question: str, bases: Sequence[KnowledgeBase]):
        self.question, self.bases = question, bases
        self.zh = language_of(question) == "zh"
        self.fields = list({field["name"]: field for base in bases for field in base.schema()}.values())
        self.nouns = [
            word for base in bases for kind, words in base.nouns().items() for word in words if kind in ("en", "zh")
        ]
        categories = [field for field in self.fields if field["type"] == "category"]
        self.spoken = spoken(spoken_words(categories), question)
        grouping = {(start, end) for start, end, _, _ in self.spoken}
        self.names = [n for n in names_in(question, bases) if n["doc_id"] or (n["start"], n["end"]) not in grouping]
        self.plain = blotted(_place_for_place(question), [(n["start"], n["end"]) for n in self.names])
        self.plain = blotted(self.plain, [match.span() for match in QUOTED.finditer(self.plain)])
        self.used: list[_Part] = []
        self.conditions: list[Condition] = []
        self.understood: list[str] = []
        self.unclear: list[str] = []
        self.called = self._called()
        self.negated = list(self._negations())

    def reading(self) -> Reading:
        """Read it: what is most certain first."""
        count, group = self._count()
        listing = count or bool(
            _way("intent", "list").search(self.plain) or _way("intent", "recommend").search(self.plain)
        )
        listing = listing or self._says_nouns()
        self._of_dates(listing)
        self._of_numbers()
        sort, limit = self._order()
        self._of_values(listing or sort is not None)
        self._of_names(listing or sort is not None)
        self._of_negated()
        limit = limit or self._wanted()
        asked = self._asked(group)
        intent = self._intent(listing, sort, count, asked)
        if count:
            self._tell(f"counted by {group}" if group else "counted", f"按{group}计数" if group else "计数")
        return Reading(
            question=self.question,
            language="zh" if self.zh else "en",
            intent=intent,
            answer_type=self._answer(intent, asked, count),
            names=self.names,
            conditions=self.conditions,
            sort=sort,
            limit=limit,
            count=count,
            group=group,
            asked=asked,
            words=self._words(),
            understood=list(dict.fromkeys(self.understood)),
            not_understood=list(dict.fromkeys(self.unclear)),
        )

    # where things stand

    def _called(self) -> list[_Called]:
        """Where the fields are called by one of their words, longest first."""
        found: list[_Called] = []
        words = [(word, field) for field in self.fields for many in field["called"].values() for word in many]
        for word, field in sorted(words, key=lambda pair: -len(pair[0])):
            for start, end in _word_spans(fold(word), self.plain):
                if not any(start < c.end and c.start < end for c in found):
                    found.append(_Called(start, end, field))
        return sorted(found, key=lambda one: one.start)

    def _negations(self) -> Iterator[tuple[int, int, int]]:
        """``(start, end, until)``: a word that negates, and how far it reaches."""
        masked = self.plain
        for match in _way("negation", "not_one").finditer(self.plain):
            masked = blotted(masked, [match.span()])
        for match in _way("negation", "before").finditer(masked):
            end = _way("negation", "ends").search(masked, match.end())
            yield match.start(), match.end(), end.start() if end else len(masked)

    def _is_negated(self, start: int, end: int) -> bool:
        for begin, after, until in self.negated:
            if after <= start and end <= until + 1:
                between = self.plain[after:start]
                words = len(re.findall(r"[a-z0-9'’-]+|[\u3400-\u9fff]{2}", between))
                if words <= 6:
                    self.used.append(_Part(begin, after))
                    return True
        predicate = self.plain[end : end + 12]
        return bool(re.match(r"\s*(?:is|are|was|were)(?:n['’]t| not)\b", predicate)) and not self.zh

    def _near(self, start: int, end: int, fields: Iterable[Field]) -> _Called | None:
        """The nearest word that calls one of these fields in the same clause."""
        known = {field["name"] for field in fields}
        clause = self._clause(start, end)
        inside = [c for c in self.called if c.field["name"] in known and clause[0] <= c.start and c.end <= clause[1]]
        return min(inside, key=lambda c: (max(c.start - end, start - c.end, 0), c.start), default=None)

    def _clause(self, start: int, end: int) -> tuple[int, int]:
        before = [m.end() for m in _CLAUSE.finditer(self.plain, 0, start)]
        after = _CLAUSE.search(self.plain, end)
        return (before[-1] if before else 0), (after.start() if after else len(self.plain))

    def _free(self, start: int, end: int) -> bool:
        return not any(start < part.end and part.start < end for part in self.used)

    def _use(self, *spans: tuple[int, int]) -> None:
        self.used += [_Part(*span) for span in spans]

    def _noun_spans(self) -> list[tuple[int, int]]:
        generic = _ways()["generic"]
        words = {fold(word) for word in (*self.nouns, *generic["nouns_en"], *generic["nouns_zh"])}
        return sorted(span for word in words for span in _word_spans(word, self.plain))

    def _says_nouns(self) -> bool:
        """Whether documents are spoken of in the plural at the head: "comedies from ...", "films by ..."."""
        return bool(
            re.match(
                r"^\W*(?:all |the |any |some )?(?:[\w-]+ ){0,3}[\w-]+s "
                r"(?:by|from|of|in|with|after|before|that|which|not|without)\b",
                self.plain,
            )
        ) and not _way("answers", "yes_no").search(self.plain)

    # what is read

    def _add(self, field: Field, op: Op, value: Any, negated: bool = False) -> None:
        if negated:
            opposite: dict[str, Op] = {
                "eq": "ne",
                "in": "not_in",
                "contains": "ne",
                "exists": "exists",
                "gt": "le",
                "ge": "lt",
                "lt": "ge",
                "le": "gt",
            }
            if op not in opposite:
                self._say_unclear(field, value)
                return
            op, value = opposite[op], (not value if op == "exists" else value)
        condition = Condition(field=field["name"], op=op, value=value)
        if condition not in self.conditions:
            self.conditions.append(condition)
            self._tell_condition(condition, field)

    def _tell_condition(self, condition: Condition, field: Field) -> None:
        self.understood.append(in_words(condition, field, "zh" if self.zh else "en"))

    def _tell(self, english: str, chinese: str) -> None:
        self.understood.append(chinese if self.zh else english)

    def _say_unclear(self, field: Field | None, value: object) -> None:
        self.unclear.append(str(value))

    def _count(self) -> tuple[bool, str]:
        match = _way("count", "how_many").search(self.plain)
        if not match:
            return False, ""
        behind = next((c for c in self.called if match.end() <= c.start <= match.end() + 2), None)
        if behind and behind.field["type"] == "number":
            return False, ""  # "how many pages does X have" asks for a field
        self._use(match.span())
        for called in self.called:
            before = _way("count", "each").search(self.plain[max(0, called.start - NEAR) : called.start])
            if before and called.field["type"] in ("category", "name", "date"):
                self._use((called.start, called.end))
                return True, called.field["name"]
        return True, ""

    def _of_dates(self, listing: bool) -> None:
        dated = [field for field in self.fields if field["type"] == "date"]
        for start, end, op, value in self._dates():
            if not self._free(start, end) or not dated:
                continue
            near = self._near(start, end, dated)
            field = near.field if near else dated[0]
            if not near and len(dated) > 1 and not listing:
                continue
            self._add(field, op, value, self._is_negated(start, end))
            self._use((start, end), *([(near.start, near.end)] if near else []))

    def _dates(self) -> Iterator[tuple[int, int, Op, Any]]:
        """Days, months and years with what stands around them, as conditions."""
        taken: list[tuple[int, int]] = []
        for start, end, day in days(self.plain):
            if day.year:
                taken.append((start, end))
                yield self._bounded(start, end, f"{day.year}-{day.month:02}-{day.day:02}")
        plain = blotted(self.plain, taken)
        for match in _MONTH.finditer(plain):
            taken.append(match.span())
            month = int(match["zh_month"]) if match["zh_month"] else _MONTHS.index(match["month"][:3].lower()) + 1
            if 1 <= month <= 12:
                yield self._bounded(*match.span(), f"{match['year'] or match['zh_year']}-{month:02}")
        for time in times(blotted(self.plain, taken)):
            if time.first and time.last:
                ends = [str(time.first), str(time.last)]
                yield (time.start, time.end, *(("eq", ends[0]) if time.first == time.last else ("between", ends)))
            elif time.first:
                yield time.start, time.end, "ge", str(time.first)
            else:
                yield time.start, time.end, "le", str(time.last)

    def _bounded(self, start: int, end: int, value: str) -> tuple[int, int, Op, Any]:
        before, after = self.plain[max(0, start - NEAR) : start], self.plain[end : end + NEAR]
        ops: dict[str, Op] = {"after": "gt", "since": "ge", "before": "lt", "until": "le"}
        for name, op in ops.items():
            if match := _way("dates", f"{name}_behind").match(after):
                return start, end + match.end(), op, value
        for name, op in ops.items():
            if match := _way("dates", name).search(before):
                return start - len(before) + match.start(), end, op, value
        return start, end, "eq", value

    def _of_numbers(self) -> None:
        counted = [field for field in self.fields if field["type"] == "number"]
        for match in _AMOUNT.finditer(self.plain):
            start, end = match.span()
            if not self._free(start, end):
                continue
            op, begin, until = self._comparison(start, end)
            other = re.match(r"\s*(?:and|to|-|–|到|至|和|与)\s*", self.plain[match.end("number") :])
            second = _AMOUNT.match(self.plain, match.end("number") + other.end()) if other else None
            between = re.search(r"\bbetween\s*$|介于$|在$", self.plain[:start]) or (
                other and other.group().strip() in ("到", "至", "-", "–")
            )
            unit = ((second and between and second["unit"]) or match["unit"] or "").strip()
            near = self._near(start, end, counted)
            by_unit = [f for f in counted if unit and f["unit"] and fold(f["unit"]).startswith(fold(unit))]
            field = near.field if near else by_unit[0] if len(by_unit) == 1 else self._measured(begin, until, counted)
            if op is None and not (second and between and field):
                stated = near and re.fullmatch(
                    r"\s*(?:is|are|was|were|of|=|equals?|为|是|等于)?\s*", self.plain[near.end : start]
                )
                if not (stated and field):
                    continue
                op = "eq"
            if field is None:
                if not re.search(r"\b(?:minutes|hours|days) ago", self.plain[start : end + 10]):
                    self.unclear.append(self.question[begin:until].strip())
                continue
            value = float(match["number"].replace(",", "")) * _SCALES.get((match["scale"] or "").lower(), 1.0)
            whole = int(value) if value == int(value) else value
            if second and between:
                top = float(second["number"].replace(",", "")) * _SCALES.get((second["scale"] or "").lower(), 1.0)
                self._add(field, "between", [whole, int(top) if top == int(top) else top], self._is_negated(start, end))
                self._use((start, second.end()))
                continue
            negated = self._is_negated(begin, until)
            self._add(field, op, whole, negated)
            self._use((begin, until), *([(near.start, near.end)] if near else []))

    def _comparison(self, start: int, end: int) -> tuple[Op | None, int, int]:
        before, after = self.plain[max(0, start - NEAR) : start], self.plain[end : end + NEAR]
        tail = self.plain[end - 2 : end]
        for name, op in (("at_least_after", "ge"), ("at_most_after", "le")):
            for behind, shift in ((after, 0), (tail + after, -2)):
                if match := _way("compare", name).match(behind):
                    return op, start, end + shift + match.end()  # type: ignore[return-value]
        found = [
            (match.start(), op)
            for name, op in (("at_least", "ge"), ("at_most", "le"), ("more", "gt"), ("less", "lt"))
            if (match := re.search(rf"(?:{_ways()['compare'][name]})\s*(?:a |an |the |about |了)?$", before, re.I))
        ]
        if not found:
            return None, start, end
        at, op = min(found)
        return op, start - len(before) + at, end  # type: ignore[return-value]

    def _measured(self, start: int, end: int, fields: Sequence[Field]) -> Field | None:
        """The field that an adjective measures ("longer than", 最贵), or the only one of its kind."""
        around = self.plain[max(0, start - NEAR) : end + NEAR]
        for adjective, words in _ADJECTIVES.items():
            if re.search(adjective, around):
                for field in fields:
                    said = fold(" ".join([field["name"], *(w for many in field["called"].values() for w in many)]))
                    if any(word in said for word in words):
                        return field
                return None
        return None

    def _order(self) -> tuple[Sort | None, int | None]:
        ends: tuple[tuple[str, bool, str], ...] = (
            ("last_date", True, "date"),
            ("first_date", False, "date"),
            ("most", True, "number"),
            ("least", False, "number"),
        )
        for name, descending, kind in ends:
            match = _way("order", name).search(self.plain)
            if not match or not self._free(*match.span()):
                continue
            if re.match(r"\s+(?:week|month|year|name|time|step)\b", self.plain[match.end() :]):
                continue
            fields = [field for field in self.fields if field["type"] == kind]
            other = [field for field in self.fields if field["type"] in ("number", "date")]
            near = self._near(*match.span(), other if kind == "number" else fields)
            field = near.field if near else self._measured(*match.span(), fields)
            if field is None and kind == "date" and fields:
                field = fields[0]
            if field is None and kind == "number" and re.search(r"long|short|长|短|久", match.group()) is None:
                field = fields[0] if len(fields) == 1 and near else None
            if field is None:
                if kind == "number" and match.group().strip().lower() in (
                    "most",
                    "best",
                    "top",
                    "least",
                    "最好",
                    "最大",
                ):
                    continue  # "most important": no measure is meant
                self.unclear.append(match.group().strip())
                continue
            self._use(match.span(), *([(near.start, near.end)] if near else []))
            limit = self._number_beside(*match.span())
            self._tell(
                f"ordered by {shown(field, 'en')}, {'highest or latest' if descending else 'lowest or earliest'} first",
                f"按{shown(field, 'zh')}{'从高到低' if descending else '从低到高'}排列",
            )
            return Sort(field=field["name"], descending=descending), limit or (None if self._plural(match.end()) else 1)
        return None, None

    def _number_beside(self, start: int, end: int) -> int | None:
        around = [self.plain[end : end + 10], self.plain[max(0, start - 8) : start]]
        for text, pattern in zip(
            around,
            (
                rf"\s*(?:的\s*)?(\d+|{'|'.join(_NUMBERS)}|[一二两三四五六七八九十])(?=\s|{_MEASURE}|$)",
                rf"(\d+|{'|'.join(_NUMBERS)}|[两三四五六七八九十])\s*{_MEASURE}?的?\s*$",
            ),
            strict=True,
        ):
            if match := re.search(pattern, text) if pattern.endswith("$") else re.match(pattern, text):
                return _whole(match[1])
        return None

    def _plural(self, end: int) -> bool:
        return (
            bool(re.match(r"\s+(?:[\w-]+ ){0,2}[a-z]{3,}(?<!s)s\b(?! (?:is|was|does|did|has))", self.plain[end:]))
            and not self.zh
        )

    def _wanted(self) -> int | None:
        """How many are asked for: "three papers", 推荐五篇."""
        match = re.search(
            r"\b(?:top|list|name|show|give me|recommend|suggest|find|any)\s+(?:me\s+)?"
            rf"(\d+|{'|'.join(_NUMBERS)})\b(?!\s*%)"
            rf"|(?:推荐|列出|列举|给我|找|前)(\d+|[一两二三四五六七八九十]){_MEASURE}?",
            self.plain,
        )
        return _whole(match[1] or match[2]) if match else None

    def _of_values(self, listing: bool) -> None:
        """Values of categories, where they are said of documents and are no theme."""
        categories = [field for field in self.fields if field["type"] == "category"]
        named = [(name["start"], name["end"]) for name in self.names]
        found = [
            one
            for one in self.spoken
            if self._free(one[0], one[1]) and not any(one[0] < end and start < one[1] for start, end in named)
        ]
        by_name = {field["name"]: field for field in categories}
        spans: dict[tuple[str, bool], list[tuple[int, int, str]]] = {}
        for start, end, name, value in found:
            negated = self._is_negated(start, end)
            if self._is_theme(start) and not negated:
                continue
            if negated or self._said_of_documents(start, end, by_name[name], listing):
                spans.setdefault((name, negated), []).append((start, end, value))
        for (name, negated), parts in spans.items():
            field, values = by_name[name], list(dict.fromkeys(value for *_, value in parts))
            self._use(*((start, end) for start, end, _ in parts))
            if len(values) == 1:
                self._add(field, "eq", values[0], negated)
            elif negated or not field["many"] or self._either(parts):
                self._add(field, "in", values, negated)
            else:
                for value in values:
                    self._add(field, "eq", value)

    def _either(self, parts: Sequence[tuple[int, int, str]]) -> bool:
        between = self.plain[parts[0][1] : parts[-1][0]]
        return bool(re.search(r"\bor\b|或|还是", between))

    def _is_theme(self, start: int) -> bool:
        return bool(
            re.search(
                r"\b(?:about|on|regarding|concerning|of)\s+(?:the |an? )?$|关于$|有关$|讲$",
                self.plain[max(0, start - NEAR) : start],
            )
        )

    def _said_of_documents(self, start: int, end: int, field: Field, listing: bool) -> bool:
        """Whether a value is said of documents: it stands at a noun of theirs or its field's word, or after "is"."""
        near = self._near(start, end, [field])
        if near and (abs(near.start - end) <= 4 or abs(start - near.end) <= 12):
            self._use((near.start, near.end))
            return True
        if any(0 <= noun[0] - end <= 14 and "," not in self.plain[end : noun[0]] for noun in self._noun_spans()):
            return True
        if re.search(
            r"\b(?:is|are|was|were|be|been|marked|still|already|as|from|in)\s+(?:the )?$|(?:是|为|属于|处于|来自|在)$",
            self.plain[max(0, start - 16) : start],
        ):
            return listing or bool(re.match(r"\W*$|\s*的?\W*$", self.plain[end:]))
        word = self.plain[start:end]
        plural = bool(re.search(r"[a-z]{3,}s$", word)) and fold(word) != fold(str(field["values"]))
        return listing and (plural or self.zh or bool(re.match(r"\s+[\w-]+s\b", self.plain[end:])))

    def _of_names(self, listing: bool) -> None:
        """Names that a field holds: by the word that stands with them, else where only one field can be meant."""
        named = [field for field in self.fields if field["type"] in ("name", "category")]
        kept: list[NameRead] = []
        groups: dict[tuple[str, bool], list[tuple[NameRead, str]]] = {}
        for name in self.names:
            holding = [field for field in named if self._holds(field, name["name"])]
            negated = self._is_negated(name["start"], name["end"])
            near = self._near(name["start"], name["end"], holding)
            beside = near and max(near.start - name["end"], name["start"] - near.end) <= NEAR
            asks = near and self._asks_for(near)
            field = near.field if near and beside and not asks else holding[0] if len(holding) == 1 else None
            said = bool(near and beside and not asks) or (listing and not name["doc_id"]) or negated
            if (
                not holding and not name["doc_id"] and (role := self._role(name))
            ):  # nobody of that name: said by its role
                near, beside, asks, field, said = role, True, False, role.field, True
            if field is None or not said:
                if negated and name["bases"] and holding:
                    self.unclear.append(name["surface"])
                kept.append(name)
                continue
            if near and beside:
                self._use((near.start, near.end))
            self._use((name["start"], name["end"]))
            groups.setdefault((field["name"], negated), []).append((name, name["name"]))
        fields = {field["name"]: field for field in named}
        for (field_name, negated), given in groups.items():
            values = list(dict.fromkeys(value for _, value in given))
            field = fields[field_name]
            if len(values) > 1 and (negated or not field["many"] or self._or_between(given)):
                self._add(field, "in", values, negated)
            else:
                for value in values:
                    self._add(field, "eq", value, negated)
        self.names = kept

    def _role(self, name: NameRead) -> _Called | None:
        """The field of names whose word stands right at a name: "directed by X", X写的."""
        for called in self.called:
            if called.field["type"] == "name" and self._free(called.start, called.end):
                before = re.fullmatch(r"\s*(?:by|is|:|：|是|为)?\s*", self.plain[called.end : name["start"]])
                if called.end <= name["start"] and before and not self._asks_for(called):
                    return called
        return None

    def _or_between(self, given: Sequence[tuple[NameRead, str]]) -> bool:
        between = self.plain[given[0][0]["end"] : given[-1][0]["start"]]
        return bool(re.search(r"\bor\b|或|还是", between))

    def _asks_for(self, called: _Called) -> bool:
        """Whether a field's word asks for its value: "who directed", "the author of", 谁负责, ...的作者是谁."""
        before, after = self.plain[max(0, called.start - 14) : called.start], self.plain[called.end : called.end + 10]
        return bool(
            re.search(
                r"\b(?:who|what|which|when|where|how much)\b[\w\s'’]{0,10}$|谁[^，。]{0,4}$|什么$|哪[个位]$", before
            )
            or re.match(r"\s*(?:是|为|有)?(?:谁|什么|哪|多少|几|何)|\s+of\b|\s*[?？]", after)
        )

    def _holds(self, field: Field, name: str) -> bool:
        condition = Condition(field=field["name"], op="eq", value=name)
        return any(base.select([condition], None, 1) for base in self.bases)

    def _of_negated(self) -> None:
        """What is negated and was not read: said, never turned round."""
        for _, after, until in self.negated:
            rest = self.plain[after:until]
            word = re.match(
                r"\s*(?:an?|any|the|be|been|have|has|being)?\s*"
                r"([a-z][\w-]{2,}(?: [a-z][\w-]{2,})?|[\u3400-\u9fff]{2,6})",
                rest,
            )
            free = word and self._free(after + word.start(1), after + word.end(1))
            if not word or not free or any(part.start <= after + word.start(1) < part.end for part in self.used):
                continue
            field = next((c.field for c in self.called if abs(c.start - (after + word.start(1))) <= 1), None)
            if field is not None and re.match(r"\s*(?:an?|any|the)?\s*$", rest[: word.start(1)]):
                self._add(field, "exists", True, negated=True)
                self._use((after + word.start(1), after + word.end(1)))
            elif _way("intent", "list").search(self.plain) or _way("intent", "recommend").search(self.plain):
                self.unclear.append(self.question[after - 0 : after + word.end(1)].strip())

    def _asked(self, group: str) -> list[str]:
        """The fields whose values are asked for."""
        if group:
            return []
        wants = re.search(
            r"\b(?:what|who|whom|whose|when|where|which|how)\b|谁|什么|哪|多少|多长|多久|几|何", self.plain
        )
        tells = bool(self.names) and re.search(r"[?？]\s*$|吗|呢|\b(?:tell|show|give)\b", self.plain)
        if not wants and not tells:
            return []
        asked = [c.field["name"] for c in self.called if self._free(c.start, c.end)]
        if not asked and self.names and _way("answers", "date").search(self.plain):
            dated = [field["name"] for field in self.fields if field["type"] == "date"]
            asked = dated if len(dated) == 1 and not self._content() else []
        return list(dict.fromkeys(asked))

    def _intent(self, listing: bool, sort: Sort | None, count: bool, asked: Sequence[str]) -> QueryIntent:
        if is_smalltalk(self.question):
            return "unknown"
        if _way("intent", "compare").search(self.plain) and (
            len(self.names) > 1 or re.search(r"compar|对比|比较一?下", self.plain)
        ):
            return "compare"
        if len(self.names) > 1 and _way("intent", "better").search(self.plain):
            return "compare"
        if _way("intent", "recommend").search(self.plain):
            return "recommend"
        if count or sort or (self.conditions and listing) or (self.conditions and not self.names and not asked):
            return "list"
        if (
            len(self.names) == 1
            and not self.names[0]["doc_id"]
            and _way("intent", "person").search(self.plain)
            and not asked
        ):
            return "person"
        if (
            listing
            and not self.names
            and not asked
            and _way("intent", "list").search(self.plain)
            and self._noun_spans()
        ):
            return "list"
        return "qa"

    def _answer(self, intent: QueryIntent, asked: Sequence[str], count: bool) -> AnswerType:
        if count:
            return "number"
        kinds: dict[str, AnswerType] = {"number": "number", "date": "date"}
        for kind in ("reason", "person", "date", "place", "number", "manner", "yes_no"):
            if _way("answers", kind).search(self.plain):
                return kind  # type: ignore[return-value]
        fields = {field["name"]: field for field in self.fields}
        if asked and fields[asked[0]]["type"] in kinds:
            return kinds[fields[asked[0]]["type"]]
        return "list" if intent in ("list", "recommend") else "text"

    def _words(self) -> list[str]:
        return list(dict.fromkeys(self._content()))

    def _content(self) -> list[str]:
        """What is left when everything that was read and the way of asking is taken away."""
        nouns = [span for span in self._noun_spans() if self.plain[slice(*span)] not in ("report", "paper", "note")]
        spans = [*self.used, *nouns, *((n[0], n[1]) for n in self.negated), *((c.start, c.end) for c in self.called)]
        left = blotted(self.plain, [(s[0], s[1]) for s in spans])
        stop, chinese = _stop_words()
        found: list[str] = []
        for match in re.finditer(r"[A-Za-z][\w'’-]*|\d[\w.]*|[\u3400-\u4dbf\u4e00-\u9fff]+", left):
            word = self.question[match.start() : match.end()] if len(left) == len(self.question) else match.group()
            if match.group()[0].isascii():
                bare = re.sub(r"['’](?:s|m|d|re|ve|ll)$", "", match.group().lower())
                found += [word] if bare not in stop and (len(bare) > 1 or bare.isdigit()) else []
            else:
                found += [part for part in chinese.split(word) if part]
        return found


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = re.compile(
    r"\b(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?,? (?:of )?(?P<year>(?:1[5-9]|20)\d\d)\b"
    r"|(?P<zh_year>(?:1[5-9]|20)\d\d)(?:年|-)(?P<zh_month>1[0-2]|0?[1-9])(?:月份?)?(?!\d)(?![-日号])",
    re.I,
)


@cache
def _stop_words() -> tuple[frozenset[str], re.Pattern[str]]:
    generic = _ways()["generic"]
    chinese = sorted(generic["stop_zh"].split(), key=lambda word: (-len(word), word))
    return frozenset(generic["stop_en"].split()), re.compile("|".join(chinese))


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

    def one(given: Any) -> str:
        said = field["values_called"].get(str(given), {}).get(language, [])
        text = said[0] if said and zh else f"{given:,}" if isinstance(given, int | float) else str(given)
        return text + (
            (field["unit"] if zh else f" {field['unit']}") if field["unit"] and field["type"] == "number" else ""
        )

    several = [one(given) for given in value] if isinstance(value, list) else []
    if op == "exists":
        return (f"{name}{'有' if value else '没有'}记载") if zh else f"{'with' if value else 'without'} {name}"
    if op == "between":
        return f"{name}在{several[0]}到{several[1]}之间" if zh else f"{name} from {several[0]} to {several[1]}"
    if op in ("in", "not_in"):
        joined = "或".join(several) if zh else " or ".join(several)
        return (
            f"{name}{'不' if op == 'not_in' else ''}是{joined}"
            if zh
            else f"{name} is {'not ' if op == 'not_in' else ''}{joined}"
        )
    dated = field["type"] == "date"
    english = {
        "eq": "is", "ne": "is not", "contains": "contains",
        "gt": "after" if dated else "over", "ge": "since" if dated else "at least",
        "lt": "before" if dated else "under", "le": "until" if dated else "at most",
    }  # fmt: skip
    chinese = {
        "eq": "是{}", "ne": "不是{}", "contains": "含有{}", "gt": "在{}之后" if dated else "超过{}",
        "ge": "在{}及以后" if dated else "至少{}", "lt": "在{}之前" if dated else "低于{}", "le": "在{}及以前" if dated else "至多{}",
    }  # fmt: skip
    return name + chinese[op].format(one(value)) if zh else f"{name} {english[op]} {one(value)}"


def shown(field: Field, language: str) -> str:
    """What a field is called in a language, or by its own name."""
    return (field["called"].get(language) or field["called"].get("en") or [field["name"]])[0]


def _whole(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    return _NUMBERS.get(text) or _DIGITS.get(text)


def _word_spans(word: str, text: str) -> list[tuple[int, int]]:
    """Where a folded word stands in a folded text, in its usual forms."""
    if CJK.search(word):
        return [m.span() for m in re.finditer(re.escape(word), text)] if len(word) > 1 else []
    stem = re.sub(r"(?<=[a-z]{5})(?:ors?|ers?|ing|ed)$|(?<=[a-z]{3})(?:es|s|e)$", "", word)
    ending = r"(?:y|ies|e|s|es|ed|d|ing|ors?|ers?)?" if re.fullmatch(r"[a-z ]+", word) else ""
    stem = re.sub(r"(?<=[a-z]{2})y$", "", stem) if ending else word
    return [m.span() for m in re.finditer(rf"(?<![a-z0-9]){re.escape(stem)}{ending}(?![a-z0-9])", text)]


def _place_for_place(text: str) -> str:
    """The text folded sign for sign, so that what stands where in it stands there in the question."""
    return "".join(
        f if len(f := fold(sign)) == 1 else sign.lower() if len(sign.lower()) == 1 else sign for sign in text
    )


_Read = Callable[[str, Sequence[KnowledgeBase]], Reading]
_ = number
