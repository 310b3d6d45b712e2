"""The blocks of a text: headings, list items, rows of tables, code, lines of prose. Markdown, read leniently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt

from workbench.text import CJK

ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)、])\s+(?=\S)|^\s*\d{1,3}、(?=\S)")
_QUOTED = re.compile(r"^\s*>[>\s]*")
_ROW = re.compile(r"\s*\|.*\|")
_TIME = r"\d?\d:\d\d(?::\d\d)?"
_TURN = re.compile(
    rf"(\A|\n\n)([\[(]?(?:\d[\d/.: -]*[ ,T])?{_TIME}[\])]? {{1,4}}\S.{{0,30}}|\S.{{0,30}} {{2,4}}{_TIME})"
    rf" *\n(?=\S)(?!.*{_TIME})"
)
"""The line over each turn of a chat or a transcript: a name and a time."""
_OVER = re.compile(
    r"(?m)^( *)(?![-*+•]\s|[>#|]|\d{1,3}[.)、])(\S.{0,38})\n(?=(?:\1 +\S.*(?:\n|\Z))+(?:\s*\n|\Z))"
)
"""A short line over lines that are all indented more."""
_NARROW = 40
"""The width of lines that were broken to fit; a Chinese character is two wide."""
_TIGHT = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")


class Block(NamedTuple):
    """One block.

    Attributes:
        kind: of the block.
        text: unchanged, a list item with its mark and a row with its bars; a heading and code without their marks.
        level: of a heading, from 1.
        head: the head of a row's table, two lines; the line that opens code.
        apart: whether a blank line is before it.
    """

    kind: Literal["heading", "text", "item", "row", "code"]
    text: str
    level: int = 0
    head: str = ""
    apart: bool = True


@cache
def _markdown() -> MarkdownIt:
    """Return a parser of blocks alone, which drops nothing: no HTML, no definitions of links."""
    # Lists and quotations in one another; the library drops what is deeper.
    deepest = 100
    parser = (
        MarkdownIt("commonmark", {"maxNesting": deepest})
        .enable("table")
        .disable(["html_block", "reference"])
    )
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def blocks(text: str) -> Iterator[Block]:
    r"""Yield the blocks of a text in their order; lines that were broken to fit are joined, other breaks remain.

    >>> [(b.kind, b.text) for b in blocks("# Tea\n\nHot.\n- green\n  leaves\n\n|a|b|\n|-|-|\n|1|2|\n```\nx = 1\n```")]
    [('heading', 'Tea'), ('text', 'Hot.'), ('item', '- green leaves'), ('row', '|1|2|'), ('code', 'x = 1')]
    """
    lines = text.split("\n")
    marker = ""
    head = ""
    level = 0
    for token in _markdown().parse(text):
        begin, end = token.map or (0, 0)
        apart = not begin or not _plain(lines[begin - 1])
        if token.type == "list_item_open":
            indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
            marker = f"{indent}{token.info}{token.markup} "
        elif token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "table_open":
            head = "\n".join(map(_plain, lines[begin : begin + 2]))
            for number in range(begin + 2, end):
                yield Block(
                    "row", _plain(lines[number]), head=head, apart=apart and number == begin + 2
                )
        elif token.type == "table_close":
            head = ""
        elif token.type == "fence" or (
            token.type == "code_block" and not CJK.search(token.content)
        ):
            opening = f"{token.markup or '```'}{token.info}"
            yield Block("code", token.content.strip("\n"), head=opening, apart=apart)
        elif token.type in ("inline", "code_block") and not head:
            if level and len(token.content) <= 200 and "\n" not in token.content:
                yield Block("heading", _bare(token.content), level, apart=apart)
            else:
                yield from _prose(f"{marker}{token.content.strip(chr(10))}".split("\n"), apart)
            marker = ""
            level = 0


def _prose(lines: Sequence[str], apart: bool) -> Iterator[Block]:
    """Yield the items, rows and paragraphs in the lines of a paragraph."""
    starts = [n for n, line in enumerate(lines) if n == 0 or ITEM.match(line) or _ROW.match(line)]
    starts += [
        n + 1 for n, line in enumerate(lines[:-1]) if _ROW.match(line) and n + 1 not in starts
    ]
    for start, end in pairwise([*sorted(starts), len(lines)]):
        part = lines[start:end]
        separate = apart and start == 0
        if _ROW.match(part[0]):
            yield Block("row", part[0].strip(), apart=separate)
        elif ITEM.match(part[0]):
            indent = part[0][: len(part[0]) - len(part[0].lstrip())]
            yield Block("item", indent + joined(part), apart=separate)
        else:
            for number, paragraph in enumerate(_unwrapped(part)):
                yield Block("text", paragraph, apart=separate and number == 0)


def cells(row: str) -> list[str]:
    r"""Return the cells of a row.

    >>> cells("| a | b \\| c |")
    ['a', 'b | c']
    """
    return [
        cell.strip().replace(r"\|", "|")
        for cell in re.split(r"(?<!\\)\|", re.sub(r"^\||(?<!\\)\|$", "", row))
    ]


def laid_out(text: str) -> str:
    r"""Return plain text with its headings as in Markdown: short lines over lines that are all indented more.

    Elsewhere an indent says nothing.

    >>> laid_out("OPTIONS\n   -o, --only\n       Print only\n       matches.\n\n   Other text.")
    '\n## OPTIONS\n\n\n## -o, --only\n\nPrint only\nmatches.\n\nOther text.'
    >>> laid_out("2025-11-03 09:12 王芳\n大家早。")
    '2025-11-03 09:12 王芳: 大家早。'
    """
    if "```" in text:  # it is Markdown
        return text
    text = _OVER.sub(r"\n## \2\n\n", _TURN.sub(r"\1\2: ", text.expandtabs()))
    return re.sub(r"(?m)^ +", "", text)


def code(text: str, language: str) -> str:
    """Return a text as a block of code, between fences that it does not hold itself."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _plain(line: str) -> str:
    """Return a line without the marks of a quotation around it."""
    return _QUOTED.sub("", line).strip()


def _bare(heading: str) -> str:
    return re.sub(r"`+|\*\*|!?\[([^\[\]]*)\]\([^()\s]*\)", r"\1", heading).strip()


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Return the paragraphs of lines: a line that nearly fills the widest one, or ends in mid-sentence, continues."""
    widest = max(map(_width, lines))
    parts = list[list[str]]()
    continues = False
    for line in lines:
        if continues or (parts and _is_continued(parts[-1][-1], line)):
            parts[-1].append(line)
        else:
            parts.append([line])
        continues = (
            widest <= 130
            and _width(line) >= max(_NARROW, 0.7 * widest)
            and not line.endswith("  ")
        )
    return [joined(part) for part in parts]


def _is_continued(line: str, after: str) -> bool:
    """Check whether a sentence continues in the next line, however wide this one is."""
    if CJK.match(after) and after.rstrip()[-1:] in "。！？；":
        return bool(CJK.match(line.rstrip()[-1:])) and "：" not in after
    return _width(line) >= _NARROW and (after[:1].islower() or line.rstrip()[-1:] in ",，、")


def _width(line: str) -> int:
    return len(line) + len(CJK.findall(line))


def joined(lines: Sequence[str]) -> str:
    """Return lines as one; between Chinese characters there is no space."""
    text = lines[0].strip()
    for line in map(str.strip, lines[1:]):
        tight = text and line and _TIGHT.match(text[-1]) and _TIGHT.match(line)
        text += line if tight else f" {line}"
    return text
