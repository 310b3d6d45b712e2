"""Judge whether the passages that a sentence cites support it, by a plain rule.

A sentence is compared with the few neighbouring sentences of a passage, or with its typed fields, that say most of it.
It is supported where nearly all of its words are there, and every name, number and date is in the passage. A number
that the sources do not have, or a negation that they do not share, is never supported. A logistic regression on the
same signals and the order of the words was no better (``experiments/support.py`` measures the rule on public claims).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple

from workbench.language.citing import marked_sentences
from workbench.text import CJK, days, fold, sentences, simplified, stem, terms

Verdict = Literal["supported", "partly", "unsupported", "uncited"]
ALL, MOST = 0.9, 0.6
"""Shares of a sentence's words that a text has which says all of it, and which is about the same."""
_WINDOW = 3
"""Sentences of a passage that are compared together."""
_MARKS = re.compile(r"\s?\[\d+\]")
_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?")
ADDRESS = re.compile(r"(?:https?://|(?<![\w/])/(?=\w+/))[^\s)\]>）」】，。；]+")
"""A link or a path: one that no source has is never supported."""
_QUOTED = re.compile(r"[《〈“\"「『]([^》〉”\"」』]{1,400})[》〉”\"」』]")
_QUOTATION = 4
"""Words from which on something quoted is not a title but must be in a source word for word."""
_LEAD = re.compile(r"^(?:[\s*#>|_-]|[+•]\s|\d{1,3}(?:[.)]\s+|、))+")
_PROPER = re.compile(r"\b[A-Z][\w’'-]*(?:\s+(?:of|the|de|van|von|da|la)?\s*[A-Z][\w’'-]*)*")
_DENIES = re.compile(
    r"\b(?:not|never|no|nor|neither|without|cannot|none|nobody|nothing)\b|n['’]t\b|[不没未無无非]|没有|從未|从未",
    re.I,
)
_NO_DENIAL = re.compile(
    r"不(?:仅|僅|但|只|过|過|同|久|少|断|斷)|非(?:常|洲)|无(?:论|論|线|線)|未(?:来|來)|not only|no\.? ?\d",
    re.I,
)
_PARTICLE = re.compile(r"^\W*(?:no|yes|是|不是|不|否|没有)\s*[:：,，]\s*", re.I)
_SAYS_NOTHING = re.compile(
    r"\b(?:corpus|evidence|sources?|documents?|passages?|knowledge base|nothing)\b.{0,60}\b(?:not|no|nothing|never)\b"
    r"|\b(?:not|no|nothing)\b.{0,40}\b(?:in|from|by) the (?:corpus|evidence|sources?|documents?|passages?)"
    r"|(?:资料|資料|证据|證據|文档|文檔|来源|來源|知识库|知識庫).{0,20}(?:没有|沒有|未|无|無)|没有(?:找到|提到|说明)"
    r"|pieces? of evidence\b|条证据",
    re.I,
)


def is_refusal(sentence: str) -> bool:
    """Check whether a sentence says that the corpus does not say something.

    >>> is_refusal("The corpus does not say who built it."), is_refusal("Ann Lee built it.")
    (True, False)
    """
    return bool(_SAYS_NOTHING.search(sentence))


class Support(NamedTuple):
    """The verdict on one sentence of an answer, the sources that it cites and those that support it, and why not."""

    sentence: str
    verdict: Verdict
    cited: list[int]
    by: list[int]
    why: str


class Agreement(NamedTuple):
    """How far a source agrees with a sentence.

    Attributes:
        share: of the words of the sentence that the best place of the source says, 0 to 1.
        missing: the names, numbers, dates, addresses and quotations that the source does not have.
        denied: that only one of them is negated.
    """

    share: float
    missing: list[str]
    denied: bool

    @property
    def lacks_exact(self) -> bool:
        """Return True where a number, a date, an address or a quotation is missing."""
        return any(
            _NUMBER.match(item) or ADDRESS.match(item) or item[0] == "“" for item in self.missing
        )


Shares = Callable[[str, Sequence[str]], Sequence[float]]
"""How much of a sentence each text says, 0 to 1."""


def checked(
    text: str,
    sources: Mapping[int, str],
    shares: Shares | None = None,
    tables: Mapping[int, str] = MappingProxyType({}),
) -> list[Support]:
    """Check each statement of an answer against its sources.

    Args:
        text: an answer with marks like ``[1]``.
        sources: number of a mark -> text.
        shares: returns how much of a sentence each text says; by default the share of its words.
        tables: number of a mark -> the typed fields of the source as text.

    >>> statements = checked("It was built in 1993 [1]. It has 40 rooms [1]. It is nice.", {1: "It was built in 1993."})
    >>> [statement.verdict for statement in statements]
    ['supported', 'unsupported', 'uncited']
    """
    return [check_sentence(sentence, sources, shares, tables) for sentence in statements(text)]


def statements(text: str) -> list[str]:
    """Return the sentences of an answer that state something: no questions, headings or remarks on the corpus."""
    return [
        sentence
        for sentence in marked_sentences(text)
        if _states(_bare(sentence), bool(_cited(sentence)))
    ]


def _states(text: str, cites: bool) -> bool:
    if not text or text[-1] in "?？:：" or not terms(text) or re.fullmatch(r"\d{1,3}[.)]", text):
        return False
    return cites or not _SAYS_NOTHING.search(text)


def check_sentence(
    sentence: str,
    sources: Mapping[int, str],
    shares: Shares | None = None,
    tables: Mapping[int, str] = MappingProxyType({}),
) -> Support:
    """Check one sentence against its sources; ``by`` are those that support it, wholly or in part."""
    cited = _cited(sentence)
    text = _bare(sentence)
    if not cited:
        return Support(sentence, "uncited", [], [], "")
    pairs = [(sources.get(n, ""), tables.get(n, "")) for n in cited]
    each = [verdict(text, agreement(text, *pair, shares)) for pair in pairs]
    together = agreement(
        text,
        "\n".join(source for source, _ in pairs),
        "\n".join(table for _, table in pairs),
        shares,
    )
    best = max([*each, verdict(text, together)], key=_VERDICTS.index)
    by = [n for n, label in zip(cited, each, strict=True) if label != "unsupported"]
    return Support(sentence, best, cited, by, ", ".join(together.missing))


_VERDICTS: tuple[Verdict, ...] = ("unsupported", "partly", "supported")


def verdict(sentence: str, seen: Agreement) -> Verdict:
    """Return the verdict; where its names and numbers are there, other words alone prove nothing."""
    if seen.denied or seen.lacks_exact:
        return "unsupported"
    if seen.share >= ALL and not seen.missing:
        return "supported"
    if seen.share >= MOST or (_exact(sentence) and not seen.missing):
        return "partly"
    return "unsupported"


def agreement(
    sentence: str, source: str, table: str = "", shares: Shares | None = None
) -> Agreement:
    """Compare a sentence with the text of a source and with its typed fields as text."""
    sentence = _PARTICLE.sub("", sentence)
    places = [*_places(source), *filter(None, [table])]
    covered = (shares or by_words)(sentence, places) if places else [0.0]
    missing = lost(sentence, f"{source}\n{table}")
    return Agreement(max(covered), missing, _contrary(sentence, f"{source}\n{table}"))


def lost(sentence: str, source: str) -> list[str]:
    """Return the names, numbers and dates of a sentence that a source does not have."""
    content = _content(source)
    return [item for item in _exact(sentence) if not _has(item, *content)]


def _has(item: str, text: str, words: tuple[str, ...], numbers: frozenset[str]) -> bool:
    if _NUMBER.fullmatch(item):
        return _number(item) in numbers
    if item[0] == "“":
        return all(_spelled(part) in _spelled(text) for part in re.split(r"…|\.{3}", item))
    if ADDRESS.fullmatch(item):
        return fold(item) in text
    last = [word for word in _words(item) if len(word) > 2 or CJK.match(word)][-1:]
    return fold(item) in text or bool(last and last[0] in words)


def _spelled(text: str) -> str:
    """Return the words of a text, each Chinese character as one, with blanks around."""
    words = re.findall(rf"{CJK.pattern}|[^\W_]+", simplified(fold(text)))
    return f" {' '.join(words)} "


def denies(text: str) -> bool:
    """Check whether a text says that something is not so.

    >>> denies("It was never built."), denies("不仅很大"), denies("他没有参加")
    (True, False, True)
    """
    return bool(_DENIES.search(_NO_DENIAL.sub(" ", text)))


def _contrary(sentence: str, source: str) -> bool:
    """Check whether the sentence of a source that says most of this one is negated where this one is not."""
    words = _words(_DENIES.sub("", sentence))
    best = [0.0, 0.0]  # of lines that deny nothing, and of those that do
    for line in sentences(source):
        share = _share(words, set(_words(_DENIES.sub("", line))))
        best[denies(line)] = max(best[denies(line)], share)
    own = denies(sentence)
    return best[not own] >= MOST and best[not own] > best[own]


def _bare(sentence: str) -> str:
    """Return a sentence without its marks, and without what makes it an item of a list."""
    return _LEAD.sub("", _MARKS.sub("", sentence).strip()).rstrip(" *-#>|")


def _cited(sentence: str) -> list[int]:
    return list(dict.fromkeys(int(n) for n in re.findall(r"\[(\d+)\]", sentence)))


def by_words(sentence: str, texts: Sequence[str]) -> list[float]:
    """Return the share of a sentence's words that each text has."""
    words = _words(sentence)
    return [_share(words, set(_words(text))) for text in texts]


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(stem(term) for term in terms(simplified(text)))


@lru_cache(maxsize=1_024)
def _content(source: str) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """Return a source folded, its terms, and its numbers."""
    dates = " ".join(day.search_terms() for *_, day in days(source)).split()
    return (
        fold(source),
        _words(source),
        frozenset(map(_number, [*_NUMBER.findall(source), *dates])),
    )


def _share(words: Sequence[str], text_words: set[str]) -> float:
    total = sum(map(_weight, words))
    return sum(_weight(word) for word in words if word in text_words) / total if total else 0.0


def _weight(word: str) -> float:
    # Short Latin words are mostly grammar.
    return 1.0 if len(word) > 3 or CJK.match(word) or word.isdigit() else 0.3


def _places(source: str) -> list[str]:
    """Return every few neighbouring sentences of a source, each behind its first line, which is often its title."""
    first, *_ = source.strip().splitlines() or [""]
    lead = first if len(first) <= 100 else ""
    every = sentences(source)
    starts = range(max(1, len(every) - _WINDOW + 1)) if every else ()
    return [" ".join([lead, *every[n : n + _WINDOW]]) for n in starts]


def _exact(sentence: str) -> list[str]:
    """Return addresses, names, numbers and quoted titles; the first word is not a name for its capital."""
    names = [m.group() for m in _PROPER.finditer(sentence) if m.start() > 0 or " " in m.group()]
    addresses = [address.rstrip(".,;:") for address in ADDRESS.findall(sentence)]
    quoted = [
        f"“{match[1]}”"
        if match[0][0] not in "《〈" and len(terms(match[1])) >= _QUOTATION
        else match[1]
        for match in _QUOTED.finditer(sentence)
    ]
    names = [name for name in names if len(name) > 1]
    return list(dict.fromkeys([*addresses, *_NUMBER.findall(sentence), *quoted, *names]))


def _number(digits: str) -> str:
    return digits.replace(",", "").rstrip(".")
