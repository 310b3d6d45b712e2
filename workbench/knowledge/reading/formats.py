"""HTML, reStructuredText, notebooks, PDF and DOCX to a record whose text has its blocks marked as Markdown has them.

Nothing in a file is run or fetched: scripts and the outputs of notebooks are left out, an archive is measured before
it is unpacked. They are read in a process of their own, which ends with whoever keeps it too long. A further kind is a
function from a path to a record, and its line in ``READERS``.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.knowledge.reading import blocks
from workbench.knowledge.reading.files import LONGEST, Unreadable, must_be_short, whole
from workbench.knowledge.reading.tables import typed
from workbench.text import CJK

PATIENCE_S = 120.0
"""Seconds that reading one document may take."""
_DROPPED = ("script", "style", "template", "noscript", "nav", "svg", "head")
_LINES = ("tr", "div", "section", "article", "figcaption", "caption", "br")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = (*_HEADINGS, "p", "pre", "dl", "ul", "ol", "table", "blockquote")
_METAS = {
    "author": ("author", "citation_author", "dc.creator"),
    "date": ("date", "citation_publication_date", "citation_date", "dc.date", "article:published_time"),
    "keywords": ("keywords", "citation_keywords"),
}
_CELL, _HEAD, _APART, _KEPT, _SPACE = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4"
"""Signs that no text has: the end of a cell, the head of a table, an empty line, a break and a blank that remain."""
_MOST = 8
"""How many times the longest text an archive may unpack to: styles and pictures are in it too."""


class Reader:
    """The process that reads documents: begun with the first one, and again where one broke it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def read(self, path: Path) -> dict[str, Any]:
        """What a file says, as ``title``, ``text`` and its fields.

        Raises:
            Unreadable: with the reason, and the mend.
        """
        process = self._process = self._process or _begun()
        assert process.stdin and process.stdout
        with suppress(BrokenPipeError):
            process.stdin.write(f"{json.dumps(str(path))}\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            self.__exit__()
            late = process.returncode == _LATE
            why = f"reading it takes longer than {PATIENCE_S:,.0f} s" if late else "reading it breaks its reader"
            raise Unreadable(f"{why}: save its text as .txt or .md")
        found: dict[str, Any] = json.loads(answer)
        if "unreadable" in found:
            raise Unreadable(found["unreadable"])
        return found


_LATE = 1
"""How a process ends that ``faulthandler`` ends."""


def _begun() -> subprocess.Popen[str]:
    # -P: what lies in the working directory is no library
    command = [sys.executable, "-P", "-c", f"from {__name__} import serve; serve({PATIENCE_S})"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    )


def serve(patience_s: float) -> None:
    """Read the documents whose paths come in, one a line; one that takes too long ends the process from outside."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a parser prints is no answer
    for line in sys.stdin:
        faulthandler.dump_traceback_later(patience_s, exit=True)
        try:
            found = record(Path(json.loads(line)))
        except Unreadable as error:
            found = {"unreadable": str(error)}
        except OSError as error:
            found = {"unreadable": f"the file cannot be read to its end: {error}"}
        faulthandler.cancel_dump_traceback_later()
        out.write(f"{json.dumps(found)}\n")
        out.flush()


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


_CLOSED = re.compile(r"<(/?)(?:div|span|section|article|table|ul|ol|blockquote|font|center|b|i|em|strong)\b", re.I)
"""Elements that a page has to close."""
_DEEPEST = 1_000


def _must_be_flat(markup: str) -> None:
    """Raises ``Unreadable`` for a page that would take hours: each element is looked for in all around it."""
    depth = 0
    for tag in _CLOSED.finditer(markup):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            raise Unreadable(f"nested deeper than {_DEEPEST:,} levels: make it flatter")


def _page(markup: str) -> dict[str, Any]:
    from bs4 import BeautifulSoup

    _must_be_flat(markup)
    page: Any = BeautifulSoup(markup, "html.parser")
    metas: dict[str, list[str]] = {}
    for tag in page.find_all("meta", content=True):
        metas.setdefault(str(tag.get("name") or tag.get("property")).lower(), []).append(str(tag["content"]).strip())
    title = page.find("h1") or page.find("title") or page.find(_HEADINGS)
    name = " ".join(title.get_text().split()) if title else ""
    for tag in page.find_all(_DROPPED):
        tag.decompose()
    for string in page.find_all(string=True):
        if type(string).__name__ != "NavigableString":
            string.extract()  # a comment, a declaration
        elif not string.find_parent("pre"):
            string.replace_with(re.sub(r"\s+", " ", string))
    for tag in page.find_all("pre"):
        tag.string = blocks.code(tag.get_text()).replace("\n", _KEPT).replace(" ", _SPACE)
    for tag in page.find_all(["td", "th"]):
        tag.append(_CELL)
    for tag in page.find_all(["li", "dt"]):
        tag.insert(0, "\n- ")
        tag.append("\n" if tag.name == "li" else ": ")
    for tag in page.find_all(_HEADINGS):
        tag.insert(0, f"{'#' * int(tag.name[1])} ")
    for tag in page.find_all([*_LINES, *_BLOCKS]):
        inner = tag.find_parent(["td", "th"]) or (tag.name == "p" and tag.find_parent(["li", "dd"]))
        around = " " if inner else "\n" if tag.name in _LINES else f"\n{_APART}\n"
        tag.insert_before(around)
        tag.insert_after(around)
        if tag.name == "tr" and tag.find("th") and not tag.find("td"):
            tag.insert(0, _HEAD)
    lines = (_row(line) if _CELL in line else " ".join(line.split()) for line in page.get_text().split("\n"))
    text = "\n".join(line for line in lines if line)
    text = re.sub(rf"(\n?{_APART}\n?)+", "\n\n", text).strip().replace(_KEPT, "\n").replace(_SPACE, " ")
    said = {field: [one for name in names for one in metas.get(name, ()) if one] for field, names in _METAS.items()}
    keywords = [word.strip() for one in said["keywords"] for word in re.split("[,，;；]", one) if word.strip()]
    date = said["date"][0] if said["date"] else ""
    return {"title": name, "text": text, "author": _one(said["author"]), "date": date, "keywords": keywords}


def _one(values: list[str]) -> Any:
    """Several values; a single one by itself."""
    unique = list(dict.fromkeys(values))
    return unique[0] if len(unique) == 1 else unique


def _row(line: str) -> str:
    """A row of a table."""
    bare = line.strip().replace(_KEPT, " ").removesuffix(_CELL)
    return blocks.row(bare.removeprefix(_HEAD).split(_CELL), head=bare.startswith(_HEAD))


def _rst(path: Path) -> dict[str, Any]:
    import docutils.core
    from docutils import nodes

    safe = {"file_insertion_enabled": False, "raw_enabled": False, "report_level": 5, "halt_level": 5}
    text, fields = whole(path), dict[str, Any]()
    for info in docutils.core.publish_doctree(text, settings_overrides=safe).findall(nodes.docinfo):
        for one in info:
            if isinstance(one, nodes.field):
                fields[one[0].astext()] = one[1].astext()
            else:
                fields[one.tagname] = [part.astext() for part in one] if one.tagname == "authors" else one.astext()
    parts = docutils.core.publish_parts(text, writer="html5", settings_overrides={**safe, "embed_stylesheet": False})
    page = _page(f"{parts['html_title']}{parts['html_subtitle']}{parts['fragment']}")
    return {**page, **{name: typed(v) if isinstance(v, str) else v for name, v in fields.items()}}


def _notebook(path: Path) -> dict[str, Any]:
    import nbformat

    book = nbformat.reads(whole(path), as_version=4)
    language = str(book.metadata.get("language_info", {}).get("name", ""))
    texts = (blocks.code(c.source, language) if c.cell_type == "code" else c.source for c in book.cells if c.source)
    text = "\n\n".join(texts)
    heading = next((block.text for block in blocks.blocks(text) if block.kind == "heading"), "")
    authors = [str(one.get("name")) for one in book.metadata.get("authors", []) if isinstance(one, Mapping)]
    said = {name: book.metadata[name] for name in ("date", "keywords") if isinstance(book.metadata.get(name), str)}
    return {"title": book.metadata.get("title") or heading, "text": text, "author": _one(authors), **said}


def _pdf(path: Path) -> dict[str, Any]:
    from pypdf import PdfReader

    must_be_short(path)
    pdf = PdfReader(path)
    if pdf.is_encrypted and not pdf.decrypt(""):
        raise Unreadable("an encrypted PDF: save it without its password")
    said: Any = pdf.metadata or {}
    text = "\n\n".join(_unwrapped(page.extract_text()) for page in pdf.pages)
    made = re.match(r"D:(\d{4})(\d\d)?(\d\d)?", str(said.get("/CreationDate") or ""))
    date = "-".join(part for part in made.groups() if part) if made else ""
    return {"title": said.get("/Title"), "author": said.get("/Author"), "date": date, "text": text}


def _unwrapped(text: str) -> str:
    """Lines joined to paragraphs: one that is nearly full, and ends no sentence, goes on in the next.

    >>> _unwrapped("Results\\nThe mean of the first twenty samples\\nwas four.")
    'Results\\n\\nThe mean of the first twenty samples was four.'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    full, joined = max(map(len, lines), default=0) * 0.7, ""
    for line in lines:
        glue = "" if joined and CJK.match(joined[-1]) and CJK.match(line) else " "
        joined += line + (glue if len(line) >= full and line[-1] not in ".!?。！？:：" else "\n\n")
    return re.sub(r"([㐀-鿿，、；]) (?=[㐀-鿿])", r"\1", joined).strip()


def _docx(path: Path) -> dict[str, Any]:
    import docx

    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > _MOST * LONGEST:
            raise Unreadable(f"it unpacks to more than {_MOST * LONGEST // 2**20} MB: save its text as .txt or .md")
    word: Any = docx.Document(str(path))
    said, texts, title = word.core_properties, list[str](), ""
    for block in word.iter_inner_content():
        if hasattr(block, "rows"):
            rows = [[cell.text for cell in row.cells] for row in block.rows]
            made = [blocks.row(row, head=not place and len(rows) > 1) for place, row in enumerate(rows)]
            texts.append("\n".join(made))
        elif text := block.text.strip():
            style = re.match(r"(Title|Heading|List)\s?(\d?)", block.style.name)
            if style and style[1] != "List":
                title, text = title or text, f"{'#' * int(style[2] or 1)} {' '.join(text.split())}"
            elif style or block._p.xpath("./w:pPr/w:numPr"):
                text = f"- {text}"
            texts.append(text)
    text = re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(texts))
    date = said.created.date().isoformat() if said.created else ""
    keywords = [word.strip() for word in re.split("[,，;；]", said.keywords or "") if word.strip()]
    title = said.title or title
    return {"title": title, "author": said.author, "date": date, "keywords": keywords, "text": text}


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".html": _html,
    ".htm": _html,
    ".rst": _rst,
    ".ipynb": _notebook,
    ".pdf": _pdf,
    ".docx": _docx,
}
