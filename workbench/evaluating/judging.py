"""The scorer of one answer: what it must say and cite, what it must not say, and that the sources support all of it.

Gold is a JSON object:

    must        [{"say": [one of these], "cite": [by a mark of one of these documents; of any, if empty]}], each in a
                sentence or line
    some        {"least": n, "of": [{say, cite}]}: at least so many of these
    list        {"exact": [{say, cite}], "may": [{say, cite}]}: all of these, and no mark of another document
    number      {"is": n, "cite": [documents]}: a count, with marks of these documents only
    must_not    what would be false
    refuse      true: that the corpus does not say it has to be said

An answer is read as claims: sentences and lines, a quotation being one. A claim with marks has to stand in what they
cite, word by word; one without may only use words of the question, of the titles cited, and of the frame of an answer.
Lexical on purpose: it needs no model, and says which word it did not find. It cannot see that two names of one source
were swapped; what has to be said (``must``) can.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import Any, TypedDict

from workbench.numerals import whole
from workbench.text import CJK, fold, sentences

Gold = Mapping[str, Any]


class Verdict(TypedDict):
    """``wrong``: what is, each with its kind before the colon. ``false``: something was said that is not so."""

    right: bool
    refused: bool
    false: bool
    wrong: list[str]


_FALSE = ("false", "negated", "foreign", "count")
_REFUSAL = re.compile(
    r"do(?:es)?(?: not|n't) (?:say|mention|name|know|have|hold|contain|cover|give)|nothing (?:in|about|on) |"
    r"no (?:\w+ ){0,4}(?:in|of) the (?:corpus|knowledge base)|not (?:in|part of) the (?:corpus|knowledge base)|"
    r"(?:没有|未)(?:\S{0,6})?(?:提到|提及|说明|说|记载|收录|找到|相关|回答|答案|资料|信息|内容)",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:following|above|below|this|it|that)\b[^.\n]{0,30}\b(?:is|are)\b[^.\n]{0,12}"
    r"\b(?:false|untrue|wrong|incorrect|not (?:true|so|correct|right))\b|以[下上][^。\n]{0,8}(?:错|不实|假|不对)",
    re.IGNORECASE,
)
_RAW = re.compile(
    r'\w~?_\w+ \w|--\[|\]->|->|→|\{"|"\s*:|\|\s*-{2,}|^\s*\||\*\*|^#{1,6} |::\s|(?: [-|] [^\n]*){4}', re.MULTILINE
)
"""How graphs, JSON, markup and tables are written down; and a list run together in one line."""

_MARK = re.compile(r"\s?\[(\d{1,4})\]")
_STRAY = re.compile(r"^((?:\s?\[\d+\])+[.。]?)\s*")
_NOT = re.compile(
    r"\b(?:not|no|never|neither|nor|without|none|cannot|unable|except|false|other than)\b|n't\b|不|没|未|无法|并非|除",
    re.IGNORECASE,
)
_FRAME = tomllib.loads(files("workbench.evaluating").joinpath("frame.toml").read_text(encoding="utf-8"))
_WORDS, _PHRASES, _GLUE = set(_FRAME["en"].split()), _FRAME["zh"].split(), set(_FRAME["glue"])
_COUNTS, _MONTHS = _FRAME["counts"].split(" "), _FRAME["months"].split(" ")


_ANSWERED = re.compile(r"^(?:yes|no|是的|不是|不|不能|没有|可以)[,.:;，。：；]\s*")


class Piece(TypedDict):
    """What ``[n]`` stands for: the names of its document, its title, and all that it says."""

    names: Sequence[str]
    title: str
    text: str


def piece_of(result: Mapping[str, Any]) -> Piece:
    """A ``RetrievalResult`` as a piece; a field that holds the id of a document names it too."""
    metadata = result["metadata"]
    fields, title = metadata.get("fields", {}), str(metadata.get("title") or "")
    told = [f"{name}: {json.dumps(value, ensure_ascii=False)}." for name, value in fields.items()]
    names = [str(metadata.get("doc_id") or ""), *(value for value in fields.values() if isinstance(value, str))]
    return Piece(names=names, title=title, text="\n".join([title, result["evidence"], *told]))


@dataclass(frozen=True)
class Words:
    """What a corpus' vocabulary calls fields, and values in either language: names of one thing are the same."""

    fields: frozenset[str] = frozenset()
    same: tuple[frozenset[str], ...] = ()

    @classmethod
    def read(cls, vocabulary: Mapping[str, Any]) -> Words:
        """From the tables of a ``vocabulary.toml``."""

        def names(key: str, entry: Mapping[str, Any]) -> frozenset[str]:
            return frozenset(fold(name) for name in [key, *(n for some in entry.values() for n in some)])

        fields = [names(key, entry["names"]) for key, entry in vocabulary.get("fields", {}).items()]
        values = [names(k, e["names"]) for entries in vocabulary.get("values", {}).values() for k, e in entries.items()]
        words = [names(key, entry) for key, entry in vocabulary.get("words", {}).items()]
        return cls(frozenset().union(*fields), (*values, *words))

    def widened(self, text: str) -> str:
        """A folded text, and the other names of every value that it holds."""
        return " ".join([text, *(name for same in self.same if any(_in(name, text) for name in same) for name in same)])


NOTHING = Words()


@dataclass(frozen=True)
class Claim:
    """A sentence or line, without its marks, and their numbers; ``sentences`` it has, a quotation being several."""

    text: str
    marks: tuple[int, ...]
    sentences: int = 1


def claims(answer: str) -> list[Claim]:
    """The claims of an answer.

    >>> [(c.text, c.marks) for c in claims("It is red. [1] “It is. So red.” [2]")]
    [('It is red.', (1,)), ('“It is. So red.”', (2,))]
    """
    units: list[str] = []
    for sentence in sentences(re.sub(r"(?m)^\d{1,2}[.)、]\s+", "- ", answer)):
        stray = _STRAY.match(sentence)
        if stray and units:
            units[-1] += stray.group(1)
            sentence = sentence[stray.end() :]
        if units and (units[-1].count("“") > units[-1].count("”") or units[-1].endswith("；") or sentence[:1] in "(（"):
            units[-1] += f" {sentence}"
        elif sentence:
            units.append(sentence)
    found = []
    for unit in units:
        marks = tuple(dict.fromkeys(int(n) for n in _MARK.findall(unit)))
        text = re.sub(r"^[-•*]\s+", "", _MARK.sub("", unit).strip())
        if text.strip(" .。“”"):
            found.append(Claim(text, marks, max(1, len(sentences(text)))))
    return found


def judge(gold: Gold, answer: str, pieces: Sequence[Piece], words: Words = NOTHING) -> Verdict:
    """Hold an answer against its gold.

    Args:
        gold: a row of the questions.
        answer: with marks ``[n]``.
        pieces: what ``[1]`` and its successors stand for.
        words: the vocabulary of the corpus.
    """
    reading = _Reading(gold, claims(answer), pieces, words)
    wrong = list(reading.wrong(answer))
    false = any(entry.partition(":")[0] in _FALSE for entry in wrong)
    return Verdict(right=not wrong, refused=reading.refused, false=false, wrong=wrong)


def held(gold: Gold, pieces: Iterable[Piece]) -> bool:
    """Whether these pieces hold something that answers: a point that must be said, in its document."""
    wanted = [*gold.get("must", ()), *gold.get("list", {}).get("exact", ()), *gold.get("some", {}).get("of", ())]
    if gold.get("number"):
        return any(cited(piece, gold["number"]["cite"]) for piece in pieces)
    return any(says(p["text"], point["say"]) and cited(p, point["cite"]) for p in pieces for point in wanted)


def cited(piece: Piece, documents: Iterable[str]) -> bool:
    """Whether a piece is of one of these documents, of any where none is named."""
    wanted = set(documents)
    return not wanted or any(name in wanted for name in piece["names"])


def says(text: str, names: Iterable[str]) -> bool:
    """Whether a text has one of these names as whole words; "yes" and "no" only where it begins.

    >>> says("In 1993, 21,000 of them", ["21000"]), says("In 1993", ["99"]), says("No: it is not", ["no"])
    (True, False, True)
    """
    folded = _flat(text)
    return any(folded.startswith(n) if n in ("yes", "no") else _in(n, folded) for n in map(_flat, names))


@dataclass
class _Reading:
    gold: Gold
    claims: list[Claim]
    pieces: Sequence[Piece]
    words: Words
    refused: bool = field(init=False)

    def __post_init__(self) -> None:
        self.refused = any(not claim.marks and _REFUSAL.search(claim.text) for claim in self.claims)
        self.asked = _flat(" ".join([*self.gold.get("earlier", ()), self.gold["question"]]))
        self.cited = [p for n in dict.fromkeys(n for c in self.claims for n in c.marks) for p in self._pieces([n])]
        self.titles = _flat("\n".join(piece["title"] for piece in self.cited))

    def wrong(self, answer: str) -> Iterable[str]:
        """What is wrong, kind before the colon."""
        if not answer.strip():
            yield "missing: there is no answer"
        if _HEDGE.search(answer):
            yield "false: takes back what it says"
        if _RAW.search(answer):
            yield f"raw: {_RAW.search(answer)[0]!r}"  # type: ignore[index]
        denied = self.gold.get("must_not", ())
        yield from (f"false: says {name!r}" for name in denied if any(says(c.text, [name]) for c in self.claims))
        yield from self._length()
        for claim in self.claims:
            yield from self._supported(claim)
        yield from self._said()

    def _pieces(self, marks: Iterable[int]) -> list[Piece]:
        return [self.pieces[n - 1] for n in marks if 1 <= n <= len(self.pieces)]

    def _said(self) -> Iterable[str]:
        if self.gold.get("refuse"):
            if not self.refused:
                yield "answered: the corpus does not say it"
            return
        if self.refused:
            yield "refused: the corpus says it"
        listed, number = self.gold.get("list", {}), self.gold.get("number")
        points = [*self.gold.get("must", ()), *listed.get("exact", ())]
        yield from (
            f"missing: {point['say'][0]} of {(point['cite'] or ['any'])[0]}" for point in points if not self._has(point)
        )
        some = self.gold.get("some")
        if some and (count := sum(self._has(point) for point in some["of"])) < some["least"]:
            yield f"missing: names {count} of the {some['least']} that it should"
        if listed or number:
            named = [*listed.get("exact", ()), *listed.get("may", ()), *([number] if number else [])]
            documents = [document for point in named for document in point["cite"]]
            yield from (f"foreign: {piece['title']}" for piece in self.cited if not cited(piece, documents))
        if number and not self.refused:
            if not self.cited:
                yield "missing: nothing counted is cited"
            counts = next((found for c in self.claims if (found := _numbers(c.text) - _numbers(self.asked))), set())
            if str(number["is"]) not in counts:
                yield f"count: {', '.join(counts) or 'none'} instead of {number['is']}"
        says_no = any(_NOT.search(say) for point in points for say in point["say"])
        first = _flat(self.claims[0].text) if self.claims else ""
        opposite = re.match(r"yes\b|是的|可以" if says_no else r"no\b|不[,，是。]", first)
        if opposite and self.gold.get("kind") == "yes/no":
            yield "false: the opposite"

    def _has(self, point: Mapping[str, Any]) -> bool:
        """Said in a claim that cites it; a bare yes or no, or the head of a list, counts with the marks of the next."""
        for claim, after in zip_longest(self.claims, self.claims[1:]):
            marks = claim.marks or (after.marks if after and (len(claim.text) < 5 or claim.text[-1] in ":：") else ())
            if says(claim.text, point["say"]) and any(cited(piece, point["cite"]) for piece in self._pieces(marks)):
                return True
        return False

    def _length(self) -> Iterable[str]:
        needed = max(1, len(self.gold.get("must", ())), len(self.gold.get("list", {}).get("exact", ())))
        needed = max(needed, self.gold.get("number", {}).get("is", 1), len(self.gold.get("some", {}).get("of", ())))
        size = sum(claim.sentences for claim in self.claims)
        if size > 5 + 2 * needed:
            yield f"long: {size} sentences, {needed} needed"
        widths = [len(claim.text) + len(CJK.findall(claim.text)) for claim in self.claims]
        if max(widths, default=0) > 600 or sum(widths) > 600 + 300 * needed:
            yield f"long: {sum(widths)} characters, {needed} needed"

    def _supported(self, claim: Claim) -> Iterable[str]:
        """Every word stands in what is cited, or in the question, or belongs to the frame of an answer."""
        own = self._pieces(claim.marks)
        if claim.marks and not own:
            yield "unsupported: a mark of nothing"
        if not claim.marks and _REFUSAL.search(claim.text):
            return  # it claims nothing of the world
        leads = not own and claim.text.endswith((":", "："))
        source = _flat("\n".join(p["text"] for p in (self.cited if leads else own))) if own or leads else self.titles
        given = self.words.widened(f"{source} \n{self.asked} {' '.join(self.gold_names())}")
        lost = _lost(_flat(claim.text), given, self.words.fields)
        counts = {str(len(self.cited)), str(len(claim.marks)), str(self.gold.get("number", {}).get("is", ""))}
        lost = [word for word in lost if word not in counts | self._reckoned(claim)]
        if lost:
            yield f"unsupported: {', '.join(lost[:6])} in {claim.text[:80]!r}"
        if self._turned(claim, own):
            yield f"negated: {claim.text[:80]!r}"

    def _reckoned(self, claim: Claim) -> set[str]:
        """Numbers that are made of those given: a difference of two that are said; 2011 for "after 2010"."""
        if not claim.marks:
            near = {int(n) + one for n in _numbers(self.asked) if n.isdigit() for one in (-1, 1, 9)}
            return {str(n) for n in near} | (set(re.findall(r"\d+", claim.text)) if self.refused else set())
        said = [float(n) for n in _numbers(claim.text)]
        return {f"{abs(one - other):g}" for one in said for other in said if one != other != 0}

    def gold_names(self) -> list[str]:
        """Names under which the gold knows the documents that are cited: a title in the other language."""
        listed = self.gold.get("list", {})
        points = [*listed.get("exact", ()), *listed.get("may", ()), *self.gold.get("must", ())]
        titled = [p for p in points if any(c["title"] in p["say"] and cited(c, p["cite"]) for c in self.cited)]
        return [_flat(say) for point in titled for say in point["say"]]

    def _turned(self, claim: Claim, own: Sequence[Piece]) -> bool:
        """Whether a claim denies what the sentence nearest to it does not, or the other way round."""
        flat = _ANSWERED.sub("", _flat(claim.text))
        denials = _denials(flat)
        if not own:
            return len(denials) > len(_denials(self.asked)) and len(claim.text) > 5
        mine = _content(flat)
        parts = [_flat(part) for piece in own for line in piece["text"].splitlines() for part in sentences(line)]
        shares = [(len(mine & _content(part)) / max(1, len(mine)), part) for part in parts]
        best = max((share for share, _ in shares), default=0.0)
        near = [_denials(part) for share, part in shares if share >= best - 0.1]
        if denials:
            known = [denied for found in near for denied in found]
            foreign = any(denied and not any(denied & other for other in known) for denied in denials)
            return foreign or len(denials) > max(map(len, near), default=0)
        whole = [part for share, part in shares if share > 0.85 and len(mine) > 0.85 * len(_content(part))]
        return bool(whole) and all(_denials(part) for part in whole)


def _flat(text: str) -> str:
    """Folded, thousands without commas, no blank between a number and Chinese."""
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", fold(text)).replace("’", "'")
    return re.sub(rf"(?<=\d) (?={CJK.pattern})|(?<={CJK.pattern}) (?=\d)", "", plain)


@cache
def _whole(name: str) -> re.Pattern[str]:
    before, after = (r"(?<![a-z0-9])(?<!\d\.)", r"(?![a-z0-9])(?!\.\d)")
    return re.compile((before if name[:1].isascii() else "") + re.escape(name) + (after if name[-1:].isascii() else ""))


def _in(name: str, text: str) -> bool:
    return name in text and _whole(name).search(text) is not None


_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?")
_CHINESE_NUMBER = re.compile("[零〇一二两三四五六七八九十百千万]+")


def _numbers(text: str) -> set[str]:
    """The numbers of a text, however they are written.

    >>> sorted(_numbers("九十天, 5 March, three of 2024-01-15"))
    ['1', '15', '2024', '3', '5', '90']
    """
    flat = _flat(text)
    found = {number.lstrip("0") or "0" for number in re.findall(r"\d+(?:\.\d+)?", flat)}
    found |= {str(_COUNTS.index(word)) for word in _WORD.findall(flat) if word in _COUNTS}
    found |= {str(_MONTHS.index(word)) for word in _WORD.findall(flat) if word in _MONTHS}
    return found | {str(_chinese(number)) for number in _CHINESE_NUMBER.findall(flat)}


def _chinese(number: str) -> int:
    thousands, _, rest = number.rpartition("万")
    return (whole(thousands) or 0) * 10_000 + (whole(rest) or 0)


def _denials(text: str) -> list[set[str]]:
    """What follows each negation of a folded text."""
    return [_content(text[match.end() : match.end() + 30]) for match in _NOT.finditer(text)]


def _content(text: str) -> set[str]:
    """Words that say something, Chinese ones as pairs of characters."""
    pairs = {run[i : i + 2] for run in re.findall(f"{CJK.pattern}+", text) for i in range(len(run) - 1)}
    return {word for word in _WORD.findall(text) if word not in _WORDS} | pairs


def _lost(text: str, given: str, fields: frozenset[str]) -> list[str]:
    """The words and numbers of a text that are not given; both folded."""
    for name in sorted((name for name in fields if len(name) > 1), key=len, reverse=True):
        text = _whole(name).sub(" ", text)
    known, numbers = set(_WORD.findall(given)), _numbers(given)
    found = []
    for word in dict.fromkeys(_WORD.findall(text)):
        if word[0].isdigit():
            if (word.lstrip("0") or "0") not in numbers:
                found.append(word)
        elif word in _COUNTS and word not in _WORDS:
            found += {str(_COUNTS.index(word))} - numbers
        elif len(word) > 1 and word not in _WORDS and word not in known and not _inflected(word, known):
            found.append(word)
    for phrase in _PHRASES:
        text = text.replace(phrase, " ")
    for run in re.findall(f"{CJK.pattern}+", text):
        found += _lost_chinese(run, given, numbers)
    return found


def _inflected(word: str, known: set[str]) -> bool:
    stem = re.sub(r"(?:'s|ies|y|es|s|ed|d|ing|ly)$", "", word)
    ends = ("", "s", "es", "e", "ed", "d", "ing", "'s", "ly", "y", "ies", f"{stem[-1:]}ing")
    return len(stem) > 2 and any(f"{stem}{end}" in known for end in ends)


def _lost_chinese(run: str, given: str, numbers: set[str]) -> list[str]:
    """Stretches of Chinese of which no two characters stand side by side in what is given."""
    bare = [True] * len(run)
    for place in range(len(run)):
        if run[place] in _GLUE or (len(run) == 1 and run in given):
            bare[place] = False
        if run[place : place + 2] in given and place + 1 < len(run):
            bare[place] = bare[place + 1] = False
    for match in _CHINESE_NUMBER.finditer(run):
        if str(_chinese(match[0])) in numbers:
            bare[match.start() : match.end()] = [False] * len(match[0])
    return "".join(sign if lost else " " for sign, lost in zip(run, bare, strict=True)).split()
