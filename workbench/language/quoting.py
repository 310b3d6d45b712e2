"""What may be quoted of the evidence: whole sentences, list items, rows of tables, code; without their markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from workbench.knowledge.reading.blocks import ITEM, Block, blocks, cells
from workbench.text import fold, sentences, terms

LONGEST = 600
"""Characters of one quotation; a longer one is cut at a word."""


def parts(text: str, title: str) -> Iterator[tuple[str, str]]:
    r"""``(heading, text)`` of each sentence, list item, row of a table and block of code of a passage, in order.

    >>> list(parts("# Oven\n\n- It is **hot**. Mind it.\n\n|what|how|\n|--|--|\n|bread|220 °C|", "Oven"))
    [('Oven', 'It is hot. Mind it.'), ('Oven', 'bread: how 220 °C')]
    """
    heading = ""
    for block in blocks(text):
        if block.kind == "heading":
            heading = bare(block.text)
        elif block.kind == "text":
            yield from ((heading, one) for one in _sentences(block.text, title))
        elif said := _whole(block):
            yield heading, cut(said)


def _whole(block: Block) -> str:
    """A list item, a row or code in words."""
    if block.kind == "item":
        return bare(ITEM.sub("", block.text))
    if block.kind == "row":
        head = block.head.partition("\n")[0]
        return _row([bare(cell) for cell in cells(head)] if head else [], [bare(cell) for cell in cells(block.text)])
    return "; ".join(part.strip() for part in block.text.split("\n") if part.strip())


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """A row of a table in words: its first cell, and the others by their heads."""
    named = header if len(header) == len(cells) else [""] * len(cells)
    first, *rest = [(head, cell) for head, cell in zip(named, cells, strict=True) if cell] or [("", "")]
    return ": ".join(filter(None, [first[1], ", ".join(f"{head} {cell}".strip() for head, cell in rest)]))


def _sentences(text: str, title: str) -> Iterator[str]:
    for sentence in sentences(without_heading(text, title)):
        if (said := cut(in_words(bare(sentence), title))) and fold(said) != fold(title):
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
