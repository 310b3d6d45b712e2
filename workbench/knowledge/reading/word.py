"""The text of a DOCX file as a reader sees it: changes accepted, fields and controls filled in, nothing twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from workbench.knowledge.reading import blocks
from workbench.state import Json

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NOT_SHOWN = "del moveFrom instrText delText Fallback pPr rPr sdtPr sectPr tblPr tcPr trPr tblGrid"
_UNSEEN = frozenset(_NOT_SHOWN.split())
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}


class Word:
    """The parts of a file, parsed."""

    def __init__(self, parts: Mapping[str, bytes]):
        self._parts = {name: ElementTree.fromstring(content) for name, content in sorted(parts.items())}
        styles = self._parts.get("styles", ElementTree.Element("none"))
        self._styles = {_get(style, "styleId"): _of(style, "name") for style in styles.iter(f"{_W}style")}
        self._title = ""
        self._behind = list[str]()

    def record(self) -> Json:
        """Return title, text and properties; headers and footers come once, at the end."""
        texts = list(self._blocks(self._parts["document"]))
        for name, part in self._parts.items():
            if name.startswith(("header", "footer")):
                texts += [text for text in self._blocks(part) if text not in texts and re.search(r"[^\W\d]", text)]
        about = {tag(one): one.text or "" for one in self._parts.get("core", ())}
        keywords = [word.strip() for word in re.split("[,，;；]", about.get("keywords", "")) if word.strip()]
        return {
            "title": about.get("title") or self._title,
            "author": about.get("creator", ""),
            "date": about.get("created", "")[:10],
            "keywords": keywords,
            "text": re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(texts)),
        }

    def _blocks(self, parent: ElementTree.Element) -> Iterator[str]:
        for child in parent:
            if tag(child) == "p":
                yield from filter(None, (self._paragraph(child), *self._taken()))
            elif tag(child) == "tbl":
                yield from filter(None, (self._table(child), *self._taken()))
            elif tag(child) not in _UNSEEN:
                yield from self._blocks(child)

    def _taken(self) -> list[str]:
        """Return what is in boxes and notes of the block before."""
        taken, self._behind = self._behind, []
        return taken

    def _paragraph(self, paragraph: ElementTree.Element) -> str:
        text = "".join(self._inline(paragraph)).strip()
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        name = self._styles.get(_get(style, "val"), "") if style is not None else ""
        kind = re.match(r"(title|heading|list)\s?(\d?)", name, re.IGNORECASE)
        if text and kind and kind[1].lower() != "list":
            text = " ".join(text.split())
            self._title = self._title or text
            return f"{'#' * int(kind[2] or 1)} {text}"
        listed = kind or paragraph.find(f"{_W}pPr/{_W}numPr") is not None
        return f"- {text}" if text and listed else text

    def _inline(self, parent: ElementTree.Element) -> Iterator[str]:
        """Yield the text in an element; what stands next to it waits until the block has ended."""
        for child in parent:
            name = tag(child)
            if name == "t":
                yield child.text or ""
            elif name == "txbxContent":
                self._keep(self._blocks(child))
            elif name in _SIGNS:
                yield _SIGNS[name]
            elif name == "sym":
                sign = chr(int(_get(child, "char") or "20", 16))
                yield "" if "\ue000" <= sign <= "\uf8ff" else sign
            elif name in _NOTES:
                self._keep(self._note(_NOTES[name], _get(child, "id")))
            elif name not in _UNSEEN and child.find(f"{_W}rPr/{_W}vanish") is None:
                yield from self._inline(child)

    def _keep(self, texts: Iterator[str]) -> None:
        """Let texts wait; those that stand next to them wait with them."""
        before, self._behind = self._behind, []
        self._behind = [*before, *texts]

    def _note(self, part: str, number: str) -> Iterator[str]:
        for note in self._parts.get(part, ()):
            if _get(note, "id") == number:
                yield from self._blocks(note)

    def _table(self, table: ElementTree.Element) -> str:
        """Return the rows; a merged cell stands once."""
        rows = list[list[str]]()
        for row in _within(table, "tr"):
            texts = list[str]()
            for cell in _within(row, "tc"):
                properties = cell.find(f"{_W}tcPr")
                merged = None if properties is None else properties.find(f"{_W}vMerge")
                goes_on = merged is not None and _get(merged, "val") != "restart"
                text = " ".join(self._blocks(cell))
                if cell.find(f".//{_W}tbl") is not None:
                    text = re.sub(r"(?<!\\)\|( --- \|)*", " ", text)
                text = " ".join(text.split())
                wide = 0 if properties is None else int(_of(properties, "gridSpan") or 1) - 1
                texts += ["" if goes_on else text, *[""] * wide]
            rows.append(texts)
        width = max(map(len, rows), default=0)
        rows = [[*row, *[""] * (width - len(row))] for row in rows]
        return "\n".join(blocks.row(row, head=not place and len(rows) > 1) for place, row in enumerate(rows))


def tag(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _get(element: ElementTree.Element, name: str) -> str:
    return element.get(f"{_W}{name}", "")


def _of(element: ElementTree.Element, name: str) -> str:
    """Return the value of a property."""
    found = element.find(f"{_W}{name}")
    return "" if found is None else _get(found, "val")


def _within(element: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """Yield the rows of a table, or the cells of a row, also those in content controls."""
    for child in element:
        if tag(child) == name:
            yield child
        elif tag(child) in ("sdt", "sdtContent", "ins", "customXml"):
            yield from _within(child, name)
