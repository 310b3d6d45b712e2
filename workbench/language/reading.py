"""Reading a question: names, conditions, order and count, what is asked for. Made once, over the bases that are asked.

Nothing here belongs to a domain: fields, values and what they are called come from the schema of a base. What is
negated never becomes a positive condition: where it is not clear what is meant, no condition is read, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from workbench.language.amounts import whole
from workbench.language.conditions import NEAR, Conditions, in_words, shown
from workbench.language.marks import Called, way, ways
from workbench.language.names import blotted
from workbench.ports import Field, KnowledgeBase
from workbench.state import AnswerType, QueryIntent, Question, Sort

__all__ = ["in_words", "is_smalltalk", "read", "shown"]

_LONGEST_TALK = 300
_MEASURE = "[个部篇份项人条款本种名位家次台件起]"
_FEW = r"\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|[一两二三四五六七八九十]"


@cache
def _smalltalk() -> re.Pattern[str]:
    lines = files("workbench.language").joinpath("smalltalk.txt").read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line.strip() and not line.startswith("#")))


def is_smalltalk(message: str) -> bool:
    """Whether the message is nothing but a greeting, thanks, a farewell or a question about who answers.

    >>> [is_smalltalk(m) for m in ("Hello there!", "你好，你是谁？", "Hello, who wrote this?", "再推荐几部")]
    [True, True, False, False]
    """
    if len(message) > _LONGEST_TALK:
        return False
    parts = [
        part.strip()
        for part in re.split(r"[\W_]*[,.!?:;，。！？：；~～、\n…]+[\W_]*", message.lower().replace("’", "'"))
    ]
    said = [re.sub(r"[^\w\s']", "", part).strip() for part in parts]
    said = [part for part in said if part]
    return bool(said) and all(_smalltalk().fullmatch(part) for part in said)


def read(question: str, bases: Sequence[KnowledgeBase]) -> Question:
    """What a question asks, over the schemas and names of these knowledge bases.

    Args:
        question: as it stands alone.
        bases: the knowledge bases that are asked; with none only the words are read.
    """
    return _Reader(question, bases).reading()


class _Reader(Conditions):
    """A question with its order, its count and what it asks for."""

    def reading(self) -> Question:
        """Read it: what all else depends on first."""
        count, group = self._count()
        amounts = self._amounts()
        for _, amount in amounts:
            self.used.append((amount.start, amount.tail))
        sort, limit = (None, None) if group else self._order()
        wanting = self.wanting or count or sort is not None
        subject = re.match(r"\W*(?:is|are|was|were|does|did|has|had)(?:n['’]t)? _", self.plain)
        of_one = bool(subject and self.names) and not self._holding(self.names[0])  # "is X a report": of X alone
        specific = (of_one or any(name["doc_id"] for name in self.names)) and not wanting
        values = [] if specific else self._values(wanting)
        explains = any(way("answers", kind).search(self.plain) for kind in ("reason", "manner"))
        holding = {(name["start"], name["end"]): self._holding(name) for name in self.names}
        works = way("intent", "works").search(self.plain) and any(holding.values())
        over = not specific and (wanting or (not explains and bool(values or self.marks.heads or works)))
        things = [*((a.start, a.end) for _, a in amounts), *((v.start, v.end) for v in self.marks.values)]
        self.negated = self.marks.negated([*things, *(span for span, held in holding.items() if held), *self.ordered])
        if any(self.negated.get(span) for span in self.ordered):
            self.unclear += [self.question[slice(*span)] for span in self.ordered]
            sort = limit = None
        self._of_amounts(amounts, over)
        self._of_values(values if over else [], specific)
        self._of_names(holding, over)
        self._of_guessed()
        self._either_of_two()
        self._of_empty()
        self._of_negated(over)
        if count and not sort and self._of_nothing_else() and self._content():
            self.used, self.conditions, self.understood, count = [], [], [], False
        limit = limit or self._wanted()
        asked = self._asked(group, specific)
        intent = self._intent(over, sort, count, asked)
        asked = [] if intent == "person" else asked
        if sort:
            field = next(field for field in self.fields if field["name"] == sort["field"])
            self._tell_order(field, sort["descending"], limit)
        if count:
            self._tell(f"counted by {group}" if group else "counted", f"按{group}计数" if group else "计数")
        return Question(
            text=self.question,
            language="zh" if self.language == "zh" else "en",
            intent=intent,
            answer_type=self._answer(intent, asked, count),
            names=self.names,
            conditions=self.conditions,
            sort=sort,
            limit=limit,
            count=count,
            group=group,
            fields=asked,
            words=[w for w in dict.fromkeys(self._content()) if not (limit and re.fullmatch(_FEW, w.lower()))],
            understood=list(dict.fromkeys(self.understood)),
            date_asked="",
            not_applied=list(dict.fromkeys(self.unclear)),
            open=[],
        )

    def _tell_order(self, field: Field, descending: bool, limit: int | None) -> None:
        how = ("latest", "earliest") if field["type"] == "date" else ("highest", "lowest")
        chosen = f"the {'one' if limit == 1 else limit} with the {how[not descending]} {shown(field, 'en')}"
        ordered = f"ordered by {shown(field, 'en')}, {how[not descending]} first"
        wie = ("最晚", "最早") if field["type"] == "date" else ("最高", "最低")
        self._tell(
            chosen if limit else ordered,
            f"{shown(field, 'zh')}{wie[not descending]}的{limit}个"
            if limit
            else f"按{shown(field, 'zh')}排列，{wie[not descending]}的在前",
        )

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
            headed |= (
                bool(heads) and re.fullmatch(r"\W*", without_values[match.end() :]) is not None
            )  # "is the oldest?"
            headed |= bool(
                re.match(
                    r"(?:oldest|earliest) [a-z]+(?: (?:by|of|from|with|that|which)\b|\W*$)",
                    without_values[match.start() :],
                )
            )
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
            return Sort(field=field["name"], descending=descending), limit or (
                None if self._plural(match.end(), near) else 1
            )
        return None, None

    def _number_beside(self, start: int, end: int) -> int | None:
        after = re.match(rf"\s*(?:的\s*|前)?({_FEW})(?=\s|{_MEASURE}|$)", self.plain[end:])
        before = re.search(
            rf"\b({_FEW})\s*$|([两二三四五六七八九十])\s*{_MEASURE}的?$", self.plain[max(0, start - 8) : start]
        )
        later = re.match(rf"[^，。,.]{{0,6}}?的前?({_FEW}){_MEASURE}", self.plain[end:])
        found = before or after or later
        return whole(next(filter(None, found.groups()))) if found else None

    def _plural(self, end: int, near: Called | None) -> bool:
        measured = near is not None and 0 <= near.start - end <= 1
        return not measured and bool(
            re.match(r"\s+(?:[\w-]+ ){0,2}[a-z]{3,}(?<!s)s\b(?! (?:is|was|does|did|has))", self.plain[end:])
        )

    def _wanted(self) -> int | None:
        """How many are asked for: "three papers", 推荐五篇; one alone is only a way of speaking."""
        match = re.search(
            rf"\b(?:top|list|name|show|give|recommend|suggest|find)\s+(?:me\s+)?({_FEW})\b(?!\s*%)"
            rf"|(?:推荐|列出|列举|给我|找|前)({_FEW}){_MEASURE}",
            self.plain,
        )
        number = whole(match[1] or match[2]) if match else None
        return number if number != 1 else None

    def _asked(self, group: str, specific: bool) -> list[str]:
        """The fields whose values are asked for."""
        wants = re.search(
            r"\b(?:what|who|whom|whose|when|where|which|how)\b|谁|什么|哪|多少|多长|多久|几|何", self.plain
        )
        tells = bool(self.names) and re.search(r"[?？]\s*$|吗|呢|\b(?:tell|show|give)\b", self.plain)
        if group or not (wants or tells):
            return []
        stop = set(ways("generic")["stop_en"].split())
        free = [c for c in self.marks.called if self._free(c.start, c.end) and self.plain[c.start : c.end] not in stop]
        person, date, number = (way("answers", kind).search(self.plain) for kind in ("person", "date", "number"))
        if person and not (date or number):
            free = [called for called in free if called.field["type"] not in ("date", "number")]
        asked = [(c.start, c.field["name"]) for c in free if self._asks_for(c) or self.names or not self.conditions]
        if specific:
            asked += [
                (v.start, v.field["name"]) for v in self.marks.values if way("answers", "yes_no").search(self.plain)
            ]
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
        alone = len(self.names) == 1 and not self.names[0]["doc_id"]
        who = re.match(
            r"^\W*who (?:is|was|are) _+(?!['’]s|的)|^_+(?:到底|究竟)?是(?:谁|什么人|何许人)|^谁是_+\W*$", self.plain
        )
        if alone and (who or (not asked and way("intent", "person").search(self.plain))):
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
        spans = [
            *self.used,
            *nouns,
            *(self.marks.heads if self.conditions else ()),
            *(n[:2] for n in self.marks.negations),
            *(c[:2] for c in self.marks.called),
            *(
                asks.span() for asks in way("answers", "number").finditer(self.plain)
            ),  # "how long": what kind, not of what
        ]
        left = blotted(self.plain, spans)
        generic = ways("generic")
        stop = frozenset(generic["stop_en"].split())
        chinese = "|".join(sorted(generic["stop_zh"].split(), key=lambda word: (-len(word), word)))
        found, single = list[str](), list[str]()
        for match in re.finditer(r"[A-Za-z][\w'’-]*|\d[\w.]*|[\u3400-\u4dbf\u4e00-\u9fff]+", left):
            word = self.question[match.start() : match.end()]
            if match.group()[0].isascii():
                bare = re.sub(r"(?:['’](?:s|m|d|re|ve|ll)|n['’]t)$", "", match.group().lower())
                found += [word] if bare not in stop and (len(bare) > 1 or bare.isdigit()) else []
            else:
                parts = re.split(chinese, word)
                found += [part for part in parts if len(part) > 1]
                single += [part for part in parts if len(part) == 1]
        return found or ([] if self.conditions else single)
