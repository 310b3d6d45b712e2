"""The text of a DOCX file as a reader sees it: changes accepted, fields and controls filled in, nothing twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from workbench.knowledge.reading import blocks
from workbench.state import Json

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NOT_SHOWN = "del moveFrom instrText delText Fallback pPr rPr sdtPr sectPr tblPr tcPr trPr tblGrid"
_HIDDEN = frozenset(_NOT_SHOWN.split())
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}


class Word:
    """The parts of a file, parsed."""

    def __init__(self, parts: Mapping[str, bytes]):
        self._parts = {name: ElementTree.fromstring(content) for name, content in sorted(parts.items())}
        styles = self._parts.get("styles", ElementTree.Element("none"))
        self._styles = {_get(style, "styleId"): _property(style, "name") for style in styles.iter(f"{_W}style")}
        self._title = ""

    def record(self) -> Json:
        """Return title, text and properties; headers and footers come once, at the end."""
        texts = [text for text in self._blocks(self._parts["document"]) if text]
        for name, part in self._parts.items():
            if name.startswith(("header", "footer")):
                texts += [text for text in self._blocks(part) if text not in texts and re.search(r"[^\W\d]", text)]
        core = {_tag(element): element.text or "" for element in self._parts.get("core", ())}
        keywords = [word.strip() for word in re.split("[,，;；]", core.get("keywords", "")) if word.strip()]
        return {
            "title": core.get("title") or self._title,
            "author": core.get("creator", ""),
            "date": core.get("created", "")[:10],
            "keywords": keywords,
            "text": re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(texts)),
        }

    def _blocks(self, parent: ElementTree.Element) -> Iterator[str]:
        """Yield the paragraphs and tables in an element; the boxes and notes of a paragraph follow it."""
        for block in _inside(parent, "p", "tbl"):
            if _tag(block) == "tbl":
                yield self._table(block)
            elif _tag(block) == "p":
                parts = list(_inside(block, "txbxContent"))
                yield self._paragraph(block, "".join(map(_text, parts)).strip())
                for part in parts:
                    if _tag(part) == "txbxContent":
                        yield from self._blocks(part)
                    for note in self._parts.get(_NOTES.get(_tag(part), ""), ()):
                        if _get(note, "id") == _get(part, "id"):
                            yield from self._blocks(note)

    def _paragraph(self, paragraph: ElementTree.Element, text: str) -> str:
        style = self._styles.get(_property(paragraph, "pPr", "pStyle"), "")
        kind = re.match(r"(title|heading|list)\s?(\d?)", style, re.IGNORECASE)
        if text and kind and kind[1].lower() != "list":
            text = " ".join(text.split())
            self._title = self._title or text
            return f"{'#' * int(kind[2] or 1)} {text}"
        listed = kind or paragraph.find(f"{_W}pPr/{_W}numPr") is not None
        return f"- {text}" if text and listed else text

    def _table(self, table: ElementTree.Element) -> str:
        """Return the rows; a merged cell is there once."""
        rows = list[list[str]]()
        for row in _inside(table, "tr"):
            texts = list[str]()
            for cell in _inside(row, "tc") if _tag(row) == "tr" else ():
                if _tag(cell) != "tc":
                    continue
                merged = cell.find(f"{_W}tcPr/{_W}vMerge")
                text = " ".join(self._blocks(cell))
                if cell.find(f".//{_W}tbl") is not None:
                    text = re.sub(r"(?<!\\)\|( --- \|)*", " ", text)
                continues = merged is not None and _get(merged, "val") != "restart"
                width = int(_property(cell, "tcPr", "gridSpan") or 1)
                texts += ["" if continues else " ".join(text.split()), *[""] * (width - 1)]
            rows += [texts] if texts else []
        width = max(map(len, rows), default=0)
        rows = [[*row, *[""] * (width - len(row))] for row in rows]
        return "\n".join(blocks.row(row, head=not place and len(rows) > 1) for place, row in enumerate(rows))


def _inside(parent: ElementTree.Element, *stops: str) -> Iterator[ElementTree.Element]:
    """Yield what is visible in an element, in its order, without what is inside a ``stops`` element."""
    for child in parent:
        if _tag(child) not in _HIDDEN and child.find(f"{_W}rPr/{_W}vanish") is None:
            yield child
            if _tag(child) not in stops:
                yield from _inside(child, *stops)


def _text(element: ElementTree.Element) -> str:
    name = _tag(element)
    if name == "t":
        return element.text or ""
    if name == "sym":
        sign = chr(int(_get(element, "char") or "20", 16))
        return "" if "\ue000" <= sign <= "\uf8ff" else sign
    return _SIGNS.get(name, "")


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _get(element: ElementTree.Element, name: str) -> str:
    return element.get(f"{_W}{name}", "")


def _property(element: ElementTree.Element, *path: str) -> str:
    child = element.find("/".join(f"{_W}{name}" for name in path))
    return "" if child is None else _get(child, "val")
