"""What may be quoted of the evidence: whole sentences, list items, rows of tables, code; without their markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from workbench.text import CJK, fold, sentences, terms

LONGEST = 600
"""Characters of one quotation; a longer one is cut at a word."""
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)、])\s+(?=\S)")
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$|^\s*(?:[-*_=~]\s*){3,}$")


def parts(text: str, title: str) -> Iterator[tuple[str, str]]:
    r"""``(heading, text)`` of each sentence, list item, row of a table and block of code of a passage, in order.

    >>> list(parts("# Oven\n\n- It is **hot**. Mind it.\n\n|what|how|\n|--|--|\n|bread|220 °C|", "Oven"))
    [('Oven', 'It is hot. Mind it.'), ('Oven', 'bread: how 220 °C')]
    """
    heading, header, prose, code = "", list[str](), list[str](), list[str]()
    fenced = listed = False
    lines = [*text.splitlines(), ""]
    for place, line in enumerate(lines):
        fence = bool(_FENCE.match(line))
        item, row = _ITEM.match(line), line.strip().startswith("|") and line.count("|") > 1
        mark = re.match(r"^\s*#{1,6}\s+(.+?)\s*#*\s*$", line)
        if not fenced and (fence or not line.strip() or item or row or mark or _RULE.match(line)):
            said = [cut(bare(" ".join(prose)))] if listed else _sentences(prose, title)
            yield from ((heading, one) for one in said if one)
            prose, listed = [], False
        if fence or (fenced and place == len(lines) - 1):
            if code:
                yield heading, cut("; ".join(part.strip() for part in code if part.strip()))
            fenced, code = not fenced, []
            continue
        if fenced:
            code.append(line)
            continue
        if _RULE.match(line) or not line.strip():
            header = header if line.strip() else []
        elif mark:
            heading = bare(mark[1])
        elif item:
            prose, listed = [line[item.end() :].strip()], True
        elif row:
            cells = [bare(cell) for cell in line.strip().strip("|").split("|")]
            if place + 1 < len(lines) and _RULE.match(lines[place + 1]):
                header = cells
            else:
                yield heading, cut(_row(header, cells))
        else:
            prose.append(line.strip())


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """A row of a table in words: its first cell, and the others by their heads."""
    named = header if len(header) == len(cells) else [""] * len(cells)
    first, *rest = [(head, cell) for head, cell in zip(named, cells, strict=True) if cell] or [("", "")]
    return ": ".join(filter(None, [first[1], ", ".join(f"{head} {cell}".strip() for head, cell in rest)]))


def _sentences(lines: Sequence[str], title: str) -> Iterator[str]:
    text = " ".join(lines)
    if CJK.search(text):
        text = re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])", "", text)
    for sentence in sentences(without_heading(text, title)):
        if (said := cut(in_words(bare(_ITEM.sub("", sentence)), title))) and fold(said) != fold(title):
            yield said


def bare(text: str) -> str:
    """A text without markup, control characters and marks of its own, which would point at other evidence.

    >>> bare("**Run** `tarn save` [2] as in [the guide](http://x)\\x1b!")
    'Run tarn save as in the guide!'
    """
    text = re.sub(r"!?\[([^\[\]]*)\]\([^()\s]*\)", r"\1", text)
    text = re.sub(
        r"\s?[\[【]\d+(?:[,，、]\s*\d+)*[\]】]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]",
        "",
        text,
    )
    text = re.sub(r"\*\*|__(?=\S)|(?<=\S)__|`+|</?[a-zA-Z][^<>]{0,80}>|^\s*>+\s?", "", text)
    return re.sub(r"\s+", " ", text).strip()


def in_words(text: str, title: str) -> str:
    """A sentence; a relation of the document's own, in the notation of triples, as words.

    >>> in_words("Tampopo — has_tags: food, ramen.", "Tampopo"), in_words("Ann — she said: no.", "Tampopo")
    ('Tampopo: tags food, ramen.', 'Ann — she said: no.')
    """
    relation = re.match(rf"{re.escape(title)} — (?:has[_ ])?([\w -]+): (.+)", text) if title else None
    return f"{title}: {relation[1].replace('_', ' ')} {relation[2]}" if relation else text


def cut(text: str) -> str:
    """A text that is not too long to be quoted."""
    if len(text) <= LONGEST:
        return text
    return re.sub(r"\s+\S*$", "", text[:LONGEST]) + " …"


def without_heading(text: str, title: str) -> str:
    """A sentence without the heading that a passage begins with, when the two ran together.

    >>> without_heading("Cache design We decided on 512 MB.", "Cache design")
    'We decided on 512 MB.'
    >>> without_heading("Tides is a 2000 novel.", "Tides")
    'Tides is a 2000 novel.'
    """
    ran_on = re.match(rf"{re.escape(title)}\s+(?=[A-Z\u4e00-\u9fff])", text) if title else None
    return text[ran_on.end() :] if ran_on and len(terms(text[ran_on.end() :])) > 2 else text
