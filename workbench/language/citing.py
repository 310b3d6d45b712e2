"""The marks ``[n]`` of an answer: read, renumber and set them, make their citations, and compare what they support.

Whether a source supports a sentence is a comparison of words; what they mean is not judged. A sentence is ``supported``
where each of its content words is in what it cites, and ``unsupported`` where a number, an address or a quotation is
not there. Otherwise nothing is judged: the words that were not found are named, and a model may judge.
``experiments/support.py`` measures both verdicts on public claims.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from workbench.state import Citation, Evidence, RetrievalResult
from workbench.text import (
    CJK,
    STOP_WORDS,
    days,
    fold,
    sentences,
    simplified,
    stem,
    terms,
    unmarked,
)

_MARK = re.compile(r"\s?[\[【]\s*(\d{1,4}(?:\s*[,，、;]\s*\d{1,4})*)\s*[\]】]")
_TABLE_HEAD = re.compile(r"^\|.*\n\|[\s:|-]+\|$", re.M)
_STRAY = re.compile(r"^([”」』）]*(?:\s?\[\d+\])+[.。]?|[”」』）]+)\s*")


def cite(text: str, evidence: Evidence) -> tuple[str, list[Citation], list[int]]:
    """Read the marks of an answer and take out those that point at nothing.

    Args:
        text: an answer with marks like ``[1]``, ``[1, 2]`` or ``【1】``.
        evidence: the pieces ``[1]``, ``[2]``, ... in order.

    Returns:
        The text with every mark written ``[n]``; a citation for each mark of each sentence, in their order; the numbers
        that were taken out because no evidence has them.

    >>> piece = {"result_id": "low_level:mv1#0", "metadata": {"title": "Moss", "doc_id": "mv1"}}
    >>> text, citations, unknown = cite("It is a 2003 novel 【1, 7】. It is green.", [piece])
    >>> text, [(c["n"], c["sentence"]) for c in citations], unknown
    ('It is a 2003 novel [1]. It is green.', [(1, 'It is a 2003 novel [1].')], [7])
    """
    text, unknown = renumbered(text, {n: n for n in range(1, len(evidence) + 1)})
    citations = []
    for sentence in marked_sentences(text):
        citations += [citation(n, sentence, evidence[n - 1]) for n in cited(sentence)]
    return text, citations, unknown


def cited(sentence: str) -> list[int]:
    """Return the numbers of the marks of a sentence, each once."""
    return list(dict.fromkeys(map(int, re.findall(r"\[(\d{1,4})\]", sentence))))


def renumbered(text: str, numbers: Mapping[int, int]) -> tuple[str, list[int]]:
    """Return the text with other numbers in its marks, and the numbers that have none and are taken out.

    >>> renumbered("It is 【1, 7】. It is green [2].", {1: 4, 2: 5})
    ('It is [4]. It is green [5].', [7])
    """
    unknown: list[int] = []

    def rewrite(match: re.Match[str]) -> str:
        marks = [int(n) for n in re.findall(r"\d+", match.group(1))]
        unknown.extend(n for n in marks if n not in numbers)
        rewritten = "".join(f"[{numbers[n]}]" for n in marks if n in numbers)
        lead = " " if match.group()[0].isspace() and rewritten else ""
        return lead + rewritten

    return _MARK.sub(rewrite, text), list(dict.fromkeys(unknown))


def citation(n: int, sentence: str, result: RetrievalResult) -> Citation:
    """Return one mark: ``source`` has ``title``, ``url``, ``licence``, ``doc_id`` and ``kb_prefix``.

    What has no title goes by the tool that found it.
    """
    metadata = result["metadata"]
    source = {
        name: metadata.get(name, "")
        for name in ("title", "url", "licence", "doc_id", "kb_prefix")
    }
    source["title"] = source["title"] or ", ".join(metadata.get("tools", []))
    return Citation(n=n, result_id=result["result_id"], sentence=sentence, source=source)


def marked_sentences(text: str) -> list[str]:
    """Return the sentences of an answer; a mark that stands behind the full stop belongs to the sentence before it.

    >>> marked_sentences("It is green. [1] It is big. 他说：“很好。”[2]真的。")
    ['It is green. [1]', 'It is big.', '他说：“很好。”[2]', '真的。']
    >>> marked_sentences("| | Moss |\\n| --- | --- |\\n| year | 1821 [1] |")
    ['| year | 1821 [1] |']
    """
    result: list[str] = []
    for sentence in sentences(_TABLE_HEAD.sub("", text)):
        stray = _STRAY.match(sentence)
        if stray and result:
            between = "" if stray.group(1)[0] in "”」』）" else " "
            result[-1] = f"{result[-1]}{between}{stray.group(1).strip()}"
            sentence = sentence[stray.end() :]
        if sentence:
            result.append(sentence)
    return result


def marked(text: str, *numbers: int) -> str:
    """Return a sentence with its marks before the full stop, or at its end when it closes otherwise.

    >>> marked("It ends.", 3), marked("结束。", 3), marked('He said "no."', 3)
    ('It ends [3].', '结束 [3]。', 'He said "no." [3]')
    """
    marks = "".join(f"[{n}]" for n in dict.fromkeys(numbers))
    if not marks:
        return text
    stop = re.search(r"[.!?。！？；]$", text)
    return f"{text[: stop.start()].rstrip()} {marks}{stop.group()}" if stop else f"{text} {marks}"


def marked_each(text: str, number: int) -> str:
    """Return a quotation with the mark behind each of its sentences: a row of a table may hold several.

    >>> marked_each("It ends. It begins.", 3), marked_each("结束。开始。", 3)
    ('It ends [3]. It begins [3].', '结束 [3]。开始 [3]。')
    """
    return re.sub(
        r"(?<=[。！？；]) ",
        "",
        " ".join(marked(sentence, number) for sentence in sentences(text)),
    )


_EDGE = re.compile(
    r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9.\]])(?=[\u4e00-\u9fff])|(?<=[》）])(?=\[\d)"
)


def spaced(text: str) -> str:
    """Return Chinese text with a blank where it meets Latin letters, digits or a mark.

    >>> spaced("《茶馆》由Lao She写成[1]。")
    '《茶馆》由 Lao She 写成 [1]。'
    """
    return re.sub(r"(?<=[\u4e00-\u9fff])(?=\[\d)", " ", _EDGE.sub(" ", text))


# what supports a sentence

Verdict = Literal["supported", "unsupported", "unjudged", "uncited"]
_SAME_SENTENCE = 0.6
"""Share of its words from which on a sentence of a source is taken for the same with another negation."""
_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?")
ADDRESS = re.compile(r"(?:https?://|(?<![\w/])/(?=\w+/))[^\s)\]>）」】，。；]+")
"""A link or a path: one that no source has is never supported."""
_QUOTED = re.compile(r"[《〈“\"「『]([^》〉”\"」』]{1,400})[》〉”\"」』]")
_QUOTATION = 4
"""Words from which on something quoted is not a title but must be in a source word for word."""
_LEAD = re.compile(r"^(?:[\s*#>|_-]|[+•]\s|\d{1,3}(?:[.)]\s+|、))+")
_DENIES = re.compile(
    r"\b(?:not|never|no|nor|neither|without|cannot|none|nobody|nothing)\b|n['’]t\b|[不没未無无非]|没有|從未|从未",
    re.I,
)
_NO_DENIAL = re.compile(
    r"不(?:仅|僅|但|只|过|過|同|久|少|断|斷)|非(?:常|洲)|无(?:论|論|线|線)|未(?:来|來)|not only|no\.? ?\d",
    re.I,
)
_PARTICLE = re.compile(r"^\W*(?:no|yes|是|不是|不|否|没有)\s*[:：,，]\s*", re.I)
_RELATES = re.compile(
    r"(?:\bno recorded value )?\bin common\b|\bdiffer\b|没有相同的记载|的?共同之处|不同之处", re.I
)
"""What a comparison says of its sources together, so that none of them has the words."""
_SAYS_NOTHING = re.compile(
    r"\b(?:corpus|evidence|sources?|documents?|passages?|knowledge base|nothing)\b.{0,60}\b(?:not|no|nothing|never)\b"
    r"|\b(?:not|no|nothing)\b.{0,40}\b(?:in|from|by) the (?:corpus|evidence|sources?|documents?|passages?)"
    r"|(?:资料|資料|证据|證據|文档|文檔|来源|來源|知识库|知識庫).{0,20}(?:没有|沒有|未|无|無)|没有(?:找到|提到|说明)"
    r"|pieces? of evidence\b|条证据|^Not applied:|^未应用的条件",
    re.I,
)


def is_refusal(sentence: str) -> bool:
    """Check whether a sentence says that the corpus does not say something.

    >>> is_refusal("The corpus does not say who built it."), is_refusal("Ann Lee built it.")
    (True, False)
    """
    return bool(_SAYS_NOTHING.search(sentence))


class Support(NamedTuple):
    """The verdict on one sentence of an answer, the sources that it cites, those that support it, and what none has."""

    sentence: str
    verdict: Verdict
    cited: list[int]
    by: list[int]
    why: str


def checked(text: str, sources: Mapping[int, str]) -> list[Support]:
    """Check each statement of an answer against its sources.

    Args:
        text: an answer with marks like ``[1]``.
        sources: number of a mark -> text.

    >>> statements = checked("It was built in 1993 [1]. It has 40 rooms [1]. It is nice.", {1: "It was built in 1993."})
    >>> [statement.verdict for statement in statements]
    ['supported', 'unsupported', 'uncited']
    """
    return [check_sentence(sentence, sources) for sentence in statements(text)]


def statements(text: str) -> list[str]:
    """Return the sentences of an answer that state something: no questions, headings or remarks on the corpus."""
    return [
        sentence
        for sentence in marked_sentences(text)
        if _states(_bare(sentence), bool(cited(sentence)))
    ]


def _states(text: str, cites: bool) -> bool:
    if not text or text[-1] in "?？:：" or not terms(text) or re.fullmatch(r"\d{1,3}[.)]", text):
        return False
    return cites or not _SAYS_NOTHING.search(text)


def check_sentence(sentence: str, sources: Mapping[int, str]) -> Support:
    """Check one sentence against its sources, separately and all together."""
    numbers = cited(sentence)
    text = _bare(sentence)
    if not numbers:
        return Support(sentence, "uncited", [], [], "")
    verdict, missing = compare(text, "\n".join(sources.get(n, "") for n in numbers))
    alone = [n for n in numbers if compare(text, sources.get(n, ""))[0] == "supported"]
    by = (alone or numbers) if verdict == "supported" else []
    return Support(sentence, verdict, numbers, by, ", ".join(missing))


def compare(sentence: str, source: str) -> tuple[Verdict, list[str]]:
    """Compare a sentence with a source; return the verdict, and what of the sentence the source does not have.

    >>> compare("The mill was built of stone in 1993.", "The mill was built in 1993.")
    ('unjudged', ['stone'])
    >>> compare("The mill was built.", "The mill was never built.")
    ('unjudged', [])
    """
    sentence = _RELATES.sub(" ", _PARTICLE.sub("", sentence))
    if exact := lost(sentence, source):
        return "unsupported", exact
    missing = lost_words(sentence, source)
    denied = _is_contrary(sentence, source)
    return ("unjudged" if missing or denied else "supported"), missing


def lost(sentence: str, source: str) -> list[str]:
    """Return the numbers, addresses and quotations of a sentence that a source does not have."""
    content = _content(source)
    return [item for item in _exact(sentence) if not _has(item, *content)]


def lost_words(sentence: str, source: str) -> list[str]:
    """Return the words of a sentence that a source does not have, whatever their endings."""
    _, words, _ = _content(source)
    missing = list[str]()
    for word in terms(simplified(sentence)):
        if stem(word) in words or (word in STOP_WORDS and not denies(word)):
            continue
        if missing and CJK.match(word) and missing[-1][-1] == word[0]:
            missing[-1] += word[1:]  # the terms of Chinese overlap
        else:
            missing.append(word)
    return list(dict.fromkeys(missing))


def _has(item: str, text: str, words: frozenset[str], numbers: frozenset[str]) -> bool:
    if _NUMBER.fullmatch(item):
        return _number(item) in numbers
    if item[0] == "“":
        return all(_spelled(part) in _spelled(text) for part in re.split(r"…|\.{3}", item))
    return fold(item) in text


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


def _is_contrary(sentence: str, source: str) -> bool:
    """Return True where the sentence of a source that has most of these words is negated and this one is not."""
    words = {*_words(_DENIES.sub("", sentence))}
    best = [0.0, 0.0]  # of lines that deny nothing, and of those that do
    for line in sentences(source):
        share = len(words.intersection(_words(_DENIES.sub("", line)))) / max(1, len(words))
        best[denies(line)] = max(best[denies(line)], share)
    own = denies(sentence)
    return best[not own] >= _SAME_SENTENCE and best[not own] > best[own]


def _bare(sentence: str) -> str:
    """Return a sentence without its marks, and without what makes it an item of a list."""
    return _LEAD.sub("", unmarked(sentence).strip()).rstrip(" *-#>|")


def by_words(sentence: str, texts: Sequence[str]) -> list[float]:
    """Return the share of a sentence's words that each text has."""
    words = _words(sentence)
    counts = [sum(word in text_words for word in words) for text_words in map(_words, texts)]
    return [count / len(words) if words else 0.0 for count in counts]


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(stem(term) for term in terms(simplified(text)))


@lru_cache(maxsize=1_024)
def _content(source: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return a source folded, its words and its numbers, those of its dates too."""
    dates = " ".join(day.search_terms() for *_, day in days(source)).split()
    return (
        fold(source),
        frozenset([*_words(source), *map(stem, dates)]),
        frozenset(map(_number, [*_NUMBER.findall(source), *dates])),
    )


def _exact(sentence: str) -> list[str]:
    """Return the addresses, numbers and quotations of a sentence."""
    addresses = [address.rstrip(".,;:") for address in ADDRESS.findall(sentence)]
    quoted = [
        f"“{match[1]}”"
        for match in _QUOTED.finditer(sentence)
        if match[0][0] not in "《〈" and len(terms(match[1])) >= _QUOTATION
    ]
    return list(dict.fromkeys([*addresses, *_NUMBER.findall(sentence), *quoted]))


def _number(digits: str) -> str:
    return digits.replace(",", "").rstrip(".")
