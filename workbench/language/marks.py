"""What stands where in a question: names, words of fields, values, nouns, and how far a negation reaches."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.knowledge.names.schema import spoken, spoken_words
from workbench.language.judging import forms, root
from workbench.language.names import QUOTED, blotted, names_in
from workbench.ports import Field, KnowledgeBase
from workbench.text import CJK, fold

# --- The words of asking (``ways.toml``) as patterns ---


@cache
def _all() -> dict[str, Any]:
    return tomllib.loads(files("workbench.language").joinpath("ways.toml").read_text(encoding="utf-8"))


def ways(section: str) -> dict[str, Any]:
    """A section as it is written."""
    return dict(_all()[section])


@cache
def way(section: str, name: str) -> re.Pattern[str]:
    """The patterns of that name as one."""
    given = _all()[section][name]
    return re.compile("|".join(f"(?:{one})" for one in ([given] if isinstance(given, str) else given)), re.I)


# --- What stands where in a question: names, words of fields, values, nouns, and how far a negation reaches ---

Span = tuple[int, int]
_CLAUSE = re.compile(r"[,;.!?:，。；！？：](?!\d)|\b(?:but|which|who|whose|that|whereas|while)\b|但|而(?![非不且])")
_FULL_NAME = re.compile(r"(?:[A-Z][\w.'’-]* )+[A-Z][\w'’-]*")
"""Two words with capitals or more: who is named so is no mere value of a field."""
_DONE = re.compile(r"\w{2,}(?:ed|en|ade|wn|ought|und|ne) $")
_TRUTHS = frozenset(("yes", "no", "true", "false", "是", "否", "有", "无"))
LONGEST = 3_000
"""Characters of a question that are read."""
_ENGLISH, _CHINESE = 3, 6
"""Content words and signs that may stand between a negation and what it negates."""


class Called(NamedTuple):
    """``question[start:end]`` calls a field."""

    start: int
    end: int
    field: Field


class Value(NamedTuple):
    """``question[start:end]`` is a word for a value of a category."""

    start: int
    end: int
    field: Field
    value: str


class _Negation(NamedTuple):
    start: int
    end: int
    until: int
    refuses: bool


class Marks:
    """Everything that was found in a question before any of it is understood.

    Attributes:
        plain: the question folded sign for sign, with names and quotations blotted out.
        nouns: where documents are called what the bases call them; ``heads``: and where something seems to be.
    """

    def __init__(self, question: str, bases: Sequence[KnowledgeBase]):
        folded = _place_for_place(question[:LONGEST])
        self.fields = list({field["name"]: field for base in bases for field in base.schema()}.values())
        by_name = {field["name"]: field for field in self.fields}
        categories = [field for field in self.fields if field["type"] == "category"]
        found = [
            Value(start, end, by_name[name], value)
            for start, end, name, value in spoken(spoken_words(categories), question[:LONGEST])
            if fold(value) not in _TRUTHS
        ]
        names = names_in(question[:LONGEST], bases)
        people = {(n["start"], n["end"]) for n in names if n["entity_id"] and _FULL_NAME.fullmatch(n["surface"])}
        found = [value for value in found if (value.start, value.end) not in people]
        self.names = [
            name
            for name in names
            if name["doc_id"] or not any(v.start <= name["start"] and name["end"] <= v.end for v in found)
        ]
        taken = [(name["start"], name["end"]) for name in self.names]
        taken += [match.span() for match in QUOTED.finditer(folded)]
        self.plain = blotted(folded, taken)
        self.values = [
            value for value in found if not any(value.start < end and start < value.end for start, end in taken)
        ]
        self.words = {
            word for base in bases for kind, many in base.nouns().items() if kind in ("en", "zh") for word in many
        }
        self.nouns = self._nouns()
        self.called = self._called()
        taken = [(v.start, v.end) for v in self.values] + [(c.start, c.end) for c in self.called]
        heads = {match.span(match.lastgroup or 0) for match in way("generic", "heads").finditer(self.plain)}
        stop = ways("generic")["stop_en"].split() + ways("generic")["stop_zh"].split()
        free = {(a, b) for a, b in heads if not any(a < e and s < b for s, e in taken) and self.plain[a:b] not in stop}
        self.heads = sorted(free | set(self.nouns))
        truths = [c for c in self.called if c.field["values"] and {fold(v) for v in c.field["values"]} <= _TRUTHS]
        self.called = [called for called in self.called if called not in truths]
        yes = {c.field["name"]: v for c in truths for v in c.field["values"] if fold(v) in ("yes", "true", "是", "有")}
        self.values += [Value(*c, yes[c.field["name"]]) for c in truths if c.field["name"] in yes]
        self.values.sort(key=lambda value: value.start)
        self.negations = list(self._negations())
        self.exempt = [match.end() for match in way("negation", "exempt").finditer(self.plain)]

    def _nouns(self) -> list[Span]:
        generic = ways("generic")
        words = {fold(word) for word in (*self.words, *generic["nouns_en"], *generic["nouns_zh"])}
        spans = {
            span for word in words if len(word) > 1 or not CJK.match(word) for span in word_spans(word, self.plain)
        }
        spans = {span for span in spans if not self.plain[slice(*span)].endswith("ed")}  # "reported" is no report
        single = "".join(re.escape(word) for word in words if len(word) == 1 and CJK.match(word))
        ends = [value.end for value in self.values]
        spans |= {(at, at + 1) for at in ends if single and re.match(f"[{single}]", self.plain[at:])}
        return sorted(spans)

    def _called(self) -> list[Called]:
        """Where fields are called by one of their words, the longest first; values and nouns are none."""
        found: list[Called] = []
        words = [(fold(word), field) for field in self.fields for many in field["called"].values() for word in many]
        known = [word for word, _ in words]
        short: dict[str, list[Field]] = {}
        for word, field in words:
            for form in (way("generic", "endings").sub("", word), *forms(word)):
                if len(form) > 1 and form not in known and field not in short.setdefault(form, []):
                    short[form].append(field)
        words += [(form, fields[0]) for form, fields in short.items() if len(fields) == 1]
        for word, field in sorted(words, key=lambda pair: -len(pair[0])):
            for start, end in word_spans(word, self.plain):
                inside = any(v.start < end and start < v.end and v.end - v.start >= end - start for v in self.values)
                done = word == "by" and _DONE.search(self.plain[:start])  # whoever did that, and no author
                if not inside and not done and not any(start < c.end and c.start < end for c in found):
                    found.append(Called(start, end, field))
        found += [one for one in self._doers() if not any(one.start < c.end and c.start < one.end for c in found)]
        return sorted(found, key=lambda one: one.start)

    def _doers(self) -> Iterator[Called]:
        """Fields called by what somebody does, where it is asked who: an editor edits, writers wrote."""
        if not re.search(r"\b(?:who|whom|whose|by)\b", self.plain):
            return
        doers = {field["name"]: re.search(r"([a-z]{3,})(?:or|er)s?$", fold(field["name"])) for field in self.fields}
        bases = {match[1] + e: name for name, match in doers.items() if match for e in ("", "e")}
        for match in re.finditer(r"[a-z]{4,}", self.plain):
            field = next((one for one in self.fields if one["name"] == bases.get(root(match[0]))), None)
            if field and field["type"] in ("name", "category"):
                yield Called(*match.span(), field)

    def _negations(self) -> Iterator[_Negation]:
        masked = self.plain
        for name in ("none", "exempt"):
            masked = blotted(masked, [match.span() for match in way("negation", name).finditer(masked)])
        masked = blotted(masked, [(value.start, value.end) for value in self.values])
        for name, ends in (("refuse", "ends_refuse"), ("plain", "ends")):
            for match in list(way("negation", name).finditer(masked)):
                end = way("negation", ends).search(masked, match.end())
                yield _Negation(*match.span(), end.start() if end else len(masked), name == "refuse")
                masked = blotted(masked, [match.span()])

    def negated(self, spans: Iterable[Span]) -> dict[Span, str]:
        """Which of these things are negated: ``no``; ``unclear`` where they are so twice; ``free`` after "not only".

        A negation takes the first thing that it reaches, and those that are joined with it.
        """
        things = sorted(set(spans))
        told: dict[Span, str] = {}
        for negation in self.negations:
            behind = [span for span in things if span[0] >= negation.end]
            if not behind or behind[0][0] > negation.until or self._far(negation.end, behind[0][0]):
                continue
            for span in (behind[0], *self._joined(behind)):
                told[span] = "unclear" if span in told else "no"
        for place, span in enumerate(things):
            outside = way("negation", "outside").match(self.plain, span[1])
            if outside or way("negation", "behind").match(self.plain, self._after_noun(span[1])):
                for one in (span, *self._joined(things[place::-1])):
                    told[one] = "no" if outside or one not in told else "unclear"
            if any(at <= span[0] and not self.plain[at : span[0]].strip(" 是") for at in self.exempt):
                told[span] = "free"
        return told

    def _far(self, start: int, end: int) -> bool:
        between = self.plain[start:end]
        stop = set(ways("generic")["stop_en"].split())
        words = [word for word in re.findall(r"[a-z][a-z'’-]*", between) if word not in stop]
        return len(words) > _ENGLISH or len(CJK.findall(between)) > _CHINESE

    def _joined(self, things: Sequence[Span]) -> list[Span]:
        """What is joined with the first of these; a comma alone joins nothing that "or" does not end."""
        found, joins, strong = [], [], 0
        for one, other in pairwise(things):
            between = self.plain[self._after_noun(min(one[1], other[1])) : max(one[0], other[0])]
            if not re.fullmatch(ways("values")["joined"], between):
                break
            found.append(other)
            joins.append(between)
            if between.strip() not in (",", "，"):
                strong = len(found)
        return found[:strong]

    def _after_noun(self, end: int) -> int:
        """Where what ends there ends with its noun: 市场部的项目."""
        end += bool(re.match("[的类型]", self.plain[end:]))
        return next((noun[1] for noun in self.heads if 0 <= noun[0] - end <= 1), end)

    def empty(self, called: Called) -> bool:
        """Whether a field is said to be empty: "without damages", 没有负责人."""
        before = re.sub(r"\s*\b(?:any|an?|the|known|given)?\s*$|任何$", "", self.plain[: called.start])
        if way("negation", "empty_behind").match(self.plain, called.end):
            return True
        match = way("negation", "empty").search(before)
        return bool(match) and any(
            n.start <= match.start() < n.end or n.end == match.end() for n in self.negations if match
        )

    def near(self, start: int, end: int, fields: Iterable[Field]) -> Called | None:
        """The nearest word that calls one of these fields in the same clause."""
        known = {field["name"] for field in fields}
        before = [m.end() for m in _CLAUSE.finditer(self.plain, 0, start)]
        after = _CLAUSE.search(self.plain, end)
        low, high = (before[-1] if before else 0), (after.start() if after else len(self.plain))
        inside = [c for c in self.called if c.field["name"] in known and low <= c.start and c.end <= high]
        if not inside:  # "a yield that is at least 0.5": what is said of it comes behind "that"
            whole = [m.end() for m in re.finditer("[,;.!?，。；！？]", self.plain[:start])]
            inside = [c for c in self.called if c.field["name"] in known and (whole or [0])[-1] <= c.start < start]
        return min(inside, key=lambda c: (max(c.start - end, start - c.end, 0), c.start), default=None)


def word_spans(word: str, text: str) -> list[Span]:
    """Where a folded word stands in a folded text, in its usual forms."""
    if CJK.search(word):
        return [m.span() for m in re.finditer(re.escape(word), text)] if len(word) > 1 else []
    if re.fullmatch(r"[a-z ]+", word) and len(word) > 3:
        bare = re.sub(r"ies$", "y", re.sub(r"(?:(?<=[sxz])|(?<=[cs]h))es$|(?<=[a-rt-z])s$", "", word))
        open_end = bare[-1] in "ey"
        said = bare[:-1] + r"(?:y|ies|ied|e|es|ed|ing)" if open_end else re.escape(bare) + r"(?:s|es|ed|ing)?"
    else:
        said = re.escape(word)
    return [m.span() for m in re.finditer(rf"(?<![a-z0-9]){said}(?![a-z0-9])", text)]


def _place_for_place(text: str) -> str:
    """The text folded sign for sign, so that what stands where in it stands there in the question."""
    return "".join(
        f if len(f := fold(sign)) == 1 else sign.lower() if len(sign.lower()) == 1 else sign for sign in text
    )
