"""The blocks of a text: headings, list items, rows of tables, code, lines of prose. Markdown, read leniently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import Literal, NamedTuple

from workbench.text import CJK

ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)、])\s+(?=\S)|^\s*\d{1,3}、(?=\S)")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?\S)(?:\s+#+)?\s*$")
_UNDERLINE = re.compile(r"^(?:={3,}|-{3,})\s*$")
_QUOTED = re.compile(r"^\s*>[>\s]*")
_LONGEST_HEADING = 200
_NARROW, _WIDE = 40, 130
"""The width of lines that were broken to fit; a Chinese character is two wide."""


class Block(NamedTuple):
    """One block.

    Attributes:
        kind: what it is.
        text: as it stands, a list item with its mark and a row with its bars; a heading and code without their marks.
        level: of a heading, from 1.
        head: the head of a row's table, two lines; the line that opens code.
        apart: whether a blank line is before it.
    """

    kind: Literal["heading", "text", "item", "row", "code"]
    text: str
    level: int = 0
    head: str = ""
    apart: bool = True


def blocks(text: str) -> Iterator[Block]:
    r"""Yield the blocks of a text in their order; lines that were broken to fit are joined, other breaks remain.

    >>> [(b.kind, b.text) for b in blocks("# Tea\n\nHot.\n- green\n  leaves\n\n|a|b|\n|-|-|\n|1|2|\n```\nx = 1\n```")]
    [('heading', 'Tea'), ('text', 'Hot.'), ('item', '- green leaves'), ('row', '|1|2|'), ('code', 'x = 1')]
    """
    lines, at, apart, listed = text.split("\n"), 0, True, False
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            end = next((n for n in range(at + 1, len(lines)) if _closes(lines[n], fence[1])), len(lines))
            yield Block("code", "\n".join(lines[at + 1 : end]), head=lines[at].strip(), apart=apart)
            at, apart = end + 1, False
            continue
        if apart and not listed and (end := _indented(lines, at)) > at:
            yield Block("code", dedent("\n".join(lines[at:end])).strip("\n"), head="```", apart=True)
            at, apart = end, True
            continue
        line = _plain(lines[at])
        after = _plain(lines[at + 1]) if at + 1 < len(lines) else ""
        at += 1
        if not line.strip() or _is_rule(line):
            apart = True
            continue
        listed = bool(ITEM.match(line))
        if mark := _heading(line):
            yield Block("heading", _bare(mark[2]), len(mark[1]), apart=apart)
        elif _is_row(line, after):
            head = ""
            if "|" in after and _is_rule(after):
                head, at = f"{line.strip()}\n{after.strip()}", at + 1
            rows = [] if head else [line]
            while at < len(lines) and "|" in (row := _plain(lines[at])):
                rows.append(row)
                at += 1
            for row in rows or [line]:
                yield Block("row", row.strip(), head=head if rows else "", apart=apart)
                apart = False
        elif not listed and _UNDERLINE.match(after) and len(line) <= _LONGEST_HEADING:
            yield Block("heading", _bare(line.strip()), 1 if after.startswith("=") else 2, apart=apart)
            at += 1
        else:
            prose = [line]
            while at < len(lines) and not _begins(*map(_plain, (lines[at], *lines[at + 1 : at + 2]))):
                prose.append(_plain(lines[at]))
                at += 1
            if listed:
                yield Block("item", line[: len(line) - len(line.lstrip())] + _joined(prose), apart=apart)
            else:
                for paragraph in _unwrapped(prose):
                    yield Block("text", paragraph, apart=apart)
                    apart = False
        apart = False


def cells(row: str) -> list[str]:
    r"""Return the cells of a row.

    >>> cells("| a | b \\| c |")
    ['a', 'b | c']
    """
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", re.sub(r"^\||(?<!\\)\|$", "", row))]


def code(text: str, language: str = "") -> str:
    """Return a text as a block of code, between fences that it does not hold itself."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _plain(line: str) -> str:
    """Return a line without the marks of a quotation around it."""
    return _QUOTED.sub("", line).rstrip("\r")


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def _heading(line: str) -> re.Match[str] | None:
    return _HEADING.match(line) if len(line) <= _LONGEST_HEADING else None


def _is_rule(line: str) -> bool:
    """Check whether a line divides: a rule, or what is beneath the head of a table."""
    signs = "".join(line.split())
    marks = set(signs)
    return len(signs) > 2 and ((marks <= {*"|:-"} and "-" in marks) or (len(marks) == 1 and signs[0] in "*_=~"))


def _is_row(line: str, after: str) -> bool:
    bars = line.count("|")
    return bars > 0 and ((line.lstrip().startswith("|") and bars > 1) or ("|" in after and _is_rule(after)))


def _indented(lines: Sequence[str], at: int) -> int:
    """Where code ends that is indented and begins here; prose of which only the first line is, is none."""
    begin = at
    if ITEM.match(lines[at]):
        return begin
    while at < len(lines) and lines[at].strip():
        if not lines[at].startswith(("    ", "\t")) or CJK.search(lines[at]):
            return begin
        at += 1
    return at


def _begins(line: str, after: str = "") -> bool:
    """Check whether a line ends the prose before it."""
    if not line.strip() or _FENCE.match(line) or _is_rule(line) or ITEM.match(line) or _heading(line):
        return True
    return _is_row(line, after)


def _bare(heading: str) -> str:
    return re.sub(r"`+|\*\*|!?\[([^\[\]]*)\]\([^()\s]*\)", r"\1", heading).strip()


def _unwrapped(lines: Sequence[str]) -> list[str]:
    widest, parts, goes_on = max(map(_width, lines)), list[list[str]](), False
    for line in lines:
        cut = bool(parts) and _goes_on(parts[-1][-1], line)
        if (goes_on or cut) and not line.startswith(("    ", "\t")):
            parts[-1].append(line)
        else:
            parts.append([line])
        goes_on = widest <= _WIDE and _width(line) >= max(_NARROW, 0.7 * widest) and not line.endswith("  ")
    return [_joined(part) for part in parts]


def _goes_on(line: str, after: str) -> bool:
    """Check whether a sentence continues in the next line, however wide this one is."""
    if CJK.match(after) and after.rstrip()[-1:] in "。！？；":
        return bool(CJK.match(line.rstrip()[-1:])) and "：" not in after
    return _width(line) >= _NARROW and after[:1].islower()


def _width(line: str) -> int:
    return len(line) if line.isascii() else len(line) + len(CJK.findall(line))


_TIGHT = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")


def _joined(lines: Sequence[str]) -> str:
    """Lines as one; between Chinese characters there is no space."""
    text = lines[0].strip()
    for line in map(str.strip, lines[1:]):
        tight = text and line and _TIGHT.match(text[-1]) and _TIGHT.match(line)
        text += line if tight else f" {line}"
    return text
