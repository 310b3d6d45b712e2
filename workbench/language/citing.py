"""The marks ``[n]`` of an answer: read, renumber and set them, and make their citations."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.state import Citation, Evidence, RetrievalResult
from workbench.text import sentences

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
