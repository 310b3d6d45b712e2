"""HTML, reStructuredText, notebooks, PDF and DOCX to a record: one line of text a heading, paragraph, item or row.

Nothing in a file is run or fetched: scripts and the outputs of notebooks are left out, an archive is measured before
it is unpacked. A further kind is a function from a path to a record, and its line in ``READERS``.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.knowledge.files import LONGEST, Unreadable, must_be_short, whole
from workbench.text import CJK

_DROPPED = ("script", "style", "template", "noscript", "nav", "svg", "head")
_BLOCKS = "h[1-6]|p|li|tr|pre|d[tdl]|div|ul|ol|table|blockquote|section|article|figcaption|caption|br"
_LINES = re.compile(f"^({_BLOCKS})$")
_CELL = "\x1f"
_MOST = 8
"""How many times the longest text an archive may unpack to: styles and pictures are in it too."""


def record(path: Path) -> dict[str, Any]:
    """What a file says, as ``title``, ``text`` and its fields.

    Raises:
        Unreadable: with the reason, and the mend.
    """
    kind = path.suffix.lower()
    try:
        found = READERS[kind](path)
    except (Unreadable, OSError):
        raise
    except ImportError as error:
        raise Unreadable(f"{kind} needs {error.name}: pip install 'workbench[documents]'") from None
    except Exception as error:  # whatever a parser raises over a damaged file
        raise Unreadable(f"a damaged {kind} file ({type(error).__name__}: {error}): save it anew") from None
    if not found["text"].strip():
        raise Unreadable("it holds no text" + (", only pictures: run OCR over it" if kind == ".pdf" else ""))
    return {name: value for name, value in found.items() if value}


def _html(path: Path) -> dict[str, Any]:
    return _page(whole(path))


def _page(markup: str) -> dict[str, Any]:
    from bs4 import BeautifulSoup

    page: Any = BeautifulSoup(markup, "html.parser")
    metas = {str(tag.get("name")).lower(): tag.get("content") for tag in page.find_all("meta")}
    title = page.find("h1") or page.find("title")
    name = " ".join(title.get_text().split()) if title else ""
    for tag in page.find_all(_DROPPED):
        tag.decompose()
    for string in page.find_all(string=True):
        if type(string).__name__ != "NavigableString":
            string.extract()  # a comment, a declaration
        elif not string.find_parent("pre"):
            string.replace_with(re.sub(r"\s+", " ", string))
    for tag in page.find_all(["td", "th"]):
        tag.append(_CELL)
    for tag in page.find_all(_LINES):
        if not (tag.name in ("p", "div") and tag.find_parent(["td", "th"])):
            tag.insert_before("\n")
            tag.append("\n")
    lines = (_row(line) if _CELL in line else line.rstrip() for line in page.get_text().split("\n"))
    text = "\n".join(line for line in lines if line.strip())
    return {"title": name, "text": text, **{key: metas.get(key) for key in ("author", "date", "keywords")}}


def _row(line: str) -> str:
    return " | ".join(cell.strip() for cell in line.strip(f" {_CELL}").split(_CELL))


def _rst(path: Path) -> dict[str, Any]:
    import docutils.core

    safe = {"file_insertion_enabled": False, "raw_enabled": False, "report_level": 5, "halt_level": 5}
    parts = docutils.core.publish_parts(
        whole(path), writer="html5", settings_overrides={**safe, "embed_stylesheet": False}
    )
    return _page(parts["html_body"])


def _notebook(path: Path) -> dict[str, Any]:
    import nbformat

    cells = nbformat.reads(whole(path), as_version=4).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    heading = re.search(r"^#{1,6}\s+(.+?)\s*#*$", prose, re.MULTILINE)
    texts = (re.sub(r"^#{1,6}\s+", "", c.source, flags=re.M) if c.cell_type == "markdown" else c.source for c in cells)
    return {"title": heading[1] if heading else "", "text": "\n".join(texts)}


def _pdf(path: Path) -> dict[str, Any]:
    from pypdf import PdfReader

    must_be_short(path)
    pdf = PdfReader(path)
    if pdf.is_encrypted and not pdf.decrypt(""):
        raise Unreadable("an encrypted PDF: save it without its password")
    said: Any = pdf.metadata or {}
    text = "\n".join(_unwrapped(page.extract_text()) for page in pdf.pages)
    return {"title": said.get("/Title"), "author": said.get("/Author"), "text": text}


def _unwrapped(text: str) -> str:
    """Lines joined to paragraphs: one that is nearly full, and ends no sentence, goes on in the next.

    >>> _unwrapped("Results\\nThe mean of the first twenty samples\\nwas four.")
    'Results\\nThe mean of the first twenty samples was four.'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    full, joined = max(map(len, lines), default=0) * 0.7, ""
    for line in lines:
        glue = "" if joined and CJK.match(joined[-1]) and CJK.match(line) else " "
        joined += line + (glue if len(line) >= full and line[-1] not in ".!?。！？:：" else "\n")
    return re.sub(r"([㐀-鿿，、；]) (?=[㐀-鿿])", r"\1", joined).strip()


def _docx(path: Path) -> dict[str, Any]:
    import docx

    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > _MOST * LONGEST:
            raise Unreadable(f"it unpacks to more than {_MOST * LONGEST // 2**20} MB: save its text as .txt or .md")
    word: Any = docx.Document(str(path))
    lines, title = list[str](), word.core_properties.title
    for block in word.iter_inner_content():
        if hasattr(block, "rows"):
            lines += [" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in block.rows]
        else:
            lines.append(block.text)
            title = title or (block.text if block.style.name.startswith(("Title", "Heading")) else "")
    return {"title": title, "author": word.core_properties.author, "text": "\n".join(lines)}


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".html": _html,
    ".htm": _html,
    ".rst": _rst,
    ".ipynb": _notebook,
    ".pdf": _pdf,
    ".docx": _docx,
}
