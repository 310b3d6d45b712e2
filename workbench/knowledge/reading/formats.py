"""Pages, reStructuredText, notebooks and binary formats to a record whose text has its blocks marked as in Markdown.

Nothing in a file is run or fetched: scripts and the outputs of notebooks are left out, an archive is measured before
it is unpacked. They are read in a process of their own, which ends when a file takes too long. A further kind is a
function from a path to a record, and its line in ``READERS``.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.knowledge.reading import blocks
from workbench.knowledge.reading.files import LONGEST, Unreadable, must_be_short, read_text
from workbench.knowledge.reading.tables import typed
from workbench.knowledge.reading.word import Word
from workbench.state import Json

PATIENCE_S = 120.0
"""Seconds that reading one document may take."""
_UNSEEN = (
    "script, style, template, noscript, svg, head, [hidden], [aria-hidden=true], [style*='display:none' i], "
    "[style*='display: none' i], [style*='visibility:hidden' i], [style*='visibility: hidden' i]"
)
_AROUND = "nav, header, footer, aside, [role=navigation], [role=banner], [role=contentinfo], [role=search]"
_OF_A_LINE = """
    tr td th div section article figcaption br summary details option select textarea label button address main header
    footer aside figure
"""
_LINES = frozenset(_OF_A_LINE.split())
_UNCLOSED = {"tr": ("tr", "td", "th"), "td": ("td", "th"), "th": ("td", "th"), "li": ("li",), "option": ("option",)}
_UNCLOSED |= {"dt": ("dt", "dd"), "dd": ("dt", "dd")}
"""Elements whose end may be left out, and those that they end."""
_ITEM_ENDS = ("\n\r", ": \r")
"""Ends of an item and of a term; the blank at their end, which no element has, tells them apart from others."""
_SPANS = ("colspan", "rowspan")
_LEFT = re.compile(r"/(charts|diagrams|embeddings|media|notesSlides)/[^_]")
"""Parts of an Office file that are not text."""
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BLOCKS = ("p", "dl", "ul", "ol", "table", "blockquote")
_METAS = {
    "author": ("author", "citation_author", "dc.creator"),
    "date": ("date", "citation_publication_date", "citation_date", "dc.date", "article:published_time"),
    "keywords": ("keywords", "citation_keywords"),
}
_APART, _BREAK, _SPACE = "\ufdd2", "\ufdd3", "\ufdd4"
"""Signs that no text has: an empty line, a break and a blank that remain."""
_UNPACKED = 8
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

    def read(self, path: Path) -> Json:
        """Return what a file says, as ``title``, ``text`` and its fields.

        Raises:
            Unreadable: with the reason, and the fix.
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
        record: Json = json.loads(answer)
        if "unreadable" in record:
            raise Unreadable(record["unreadable"])
        return record


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
            answer = record(Path(json.loads(line)))
        except Unreadable as error:
            answer = {"unreadable": str(error)}
        except OSError as error:
            answer = {"unreadable": f"the file cannot be read to its end: {error}"}
        faulthandler.cancel_dump_traceback_later()
        out.write(f"{json.dumps(answer)}\n")
        out.flush()


def record(path: Path) -> Json:
    """Return what a file says, as ``title``, ``text`` and its fields.

    Raises:
        Unreadable: with the reason, and the fix.
    """
    kind = path.suffix.lower()
    try:
        result = READERS[kind](path)
    except (Unreadable, OSError):
        raise
    except ImportError as error:
        raise Unreadable(f"{kind} needs {error.name}: pip install 'workbench[documents]'") from None
    except Exception as error:  # whatever a parser raises over a damaged file
        if "password" in str(error):
            raise Unreadable("an encrypted file: save it without its password") from None
        raise Unreadable(f"a damaged {kind} file ({type(error).__name__}: {error}): save it again") from None
    if not result["text"].strip() and not result.get("sheets"):
        raise Unreadable("it holds no text" + (", only pictures: run OCR over it" if kind == ".pdf" else ""))
    return {name: value for name, value in result.items() if value}


def _html(path: Path) -> Json:
    from bs4 import BeautifulSoup

    page: Any = BeautifulSoup(read_text(path), "html.parser")
    metas: dict[str, list[str]] = {}
    for tag in page.find_all("meta", content=True):
        metas.setdefault(str(tag.get("name") or tag.get("property")).lower(), []).append(str(tag["content"]).strip())
    tag_title = page.find("title")
    name = " ".join(tag_title.get_text().split()) if tag_title else ""
    for tag in page.select(_UNSEEN):
        tag.decompose()
    seen, main = _words(page), _main(page)
    left = seen - _words(main)
    heading = main.find(_HEADINGS[0])
    body = _page(main)
    values = {
        field: [text for name in names for text in metas.get(name, ()) if text] for field, names in _METAS.items()
    }
    keywords = [word.strip() for text in values["keywords"] for word in re.split("[,，;；]", text) if word.strip()]
    return {
        **body,
        "title": body["title"] if heading else name or body["title"],
        "author": _single(values["author"]),
        "date": values["date"][0] if values["date"] else "",
        "keywords": keywords,
        "notes": [f"{left} words around its main part are left out (navigation, header, footer)"] if left else [],
    }


def _words(tag: Any) -> int:
    return len(tag.get_text(" ").split())


def _main(page: Any) -> Any:
    """Return the part of a page that is its own: what it marks as such, else all but what is around every page."""
    marked = page.select("main, [role=main]") or page.find_all("article")
    if len(marked) == 1 and marked[0].get_text().strip():
        for tag in marked[0].find_all("nav"):
            tag.decompose()
        return marked[0]
    for tag in page.select(_AROUND):
        inner = tag.find_parent(["article", "section"]) and tag.name in ("header", "aside")
        titled = tag.name == "header" and tag.find("h1") and len(page.find_all("h1")) == 1
        if not inner and not titled and not tag.decomposed:
            tag.decompose()
    return page


def _page(page: Any) -> Json:
    """Return title and text of what remains of a page, which is gone through once, however deep it is."""
    for tag in page.find_all([*_UNCLOSED]):  # an end that is not written is where the next one begins
        while tag.parent.name in _UNCLOSED[tag.name]:
            tag.parent.insert_after(tag)
    headings = [tag for tag in page.find_all(_HEADINGS) if tag.get_text().strip()]
    title = min(headings, key=lambda tag: tag.name != "h1", default=None)
    raw = "".join(_marked(page))
    lines = (" ".join(line.split()) for line in raw.split("\n"))
    text = "\n".join(line for line in lines if line.strip("# "))
    text = re.sub(rf"(\n?{_APART}\n?)+", "\n\n", text).strip().replace(_BREAK, "\n").replace(_SPACE, " ")
    return {"title": " ".join(title.get_text().split()) if title else "", "text": text}


def _marked(page: Any) -> Iterator[str]:
    """Yield the text of a page with the marks of its blocks."""
    stack, items = [(iter(page.contents), "")], 0
    while stack:
        children, end = stack[-1]
        node = next(children, None)
        if node is None:
            stack.pop()
            items -= end.startswith(_ITEM_ENDS)
            yield end
        elif type(node).__name__ == "NavigableString":
            yield re.sub(r"\s+", " ", node)
        elif node.name == "pre":
            yield f"\n{_APART}\n{_verbatim(blocks.code(node.get_text()))}\n{_APART}\n"
        elif node.name == "table" and _is_data(node):
            yield f"\n{_APART}\n{_verbatim(_table(node))}\n{_APART}\n"
        elif getattr(node, "contents", None) is not None:
            begin, end = _around(node, items > 0)
            items += end.startswith(_ITEM_ENDS)
            yield begin
            stack.append((iter(node.contents), end))


def _around(tag: Any, in_item: bool) -> tuple[str, str]:
    """Return what stands before and after the text of an element."""
    apart = f"\n{_APART}\n"
    if tag.name in _HEADINGS:
        return f"{apart}{'#' * int(tag.name[1])} ", apart
    if tag.name in ("li", "dt"):
        first = str(tag.parent.get("start", 1))
        numbered = tag.parent.name == "ol" and first.isdecimal()
        number = f"{int(first) + len(tag.find_previous_siblings('li'))}." if numbered else "-"
        return f"\n{number} ", _ITEM_ENDS[tag.name == "dt"]
    if tag.name == "dd":
        return "", _ITEM_ENDS[0]
    if tag.name == "p" and in_item:
        return " ", " "
    return ("\n", "\n") if tag.name in _LINES else (apart, apart) if tag.name in _BLOCKS else ("", "")


def _verbatim(text: str) -> str:
    """Return a text whose breaks and blanks remain."""
    return text.replace("\n", _BREAK).replace(" ", _SPACE)


def _is_data(table: Any) -> bool:
    """Check for a table of values; others lay out a page."""
    if any(cell.find_parent("table") is table for cell in table.find_all("th")):
        return True
    return not any(
        cell.find(["div", "ul", "pre", "table"]) or len(cell.find_all("p")) > 1 for cell in table.find_all("td")
    )


def _table(table: Any) -> str:
    """Return a table with a cell that spans several repeated in each; the rows of its head become one."""
    grid, heads = dict[tuple[int, int], str](), 0
    rows = [row for row in table.find_all("tr") if row.find_parent("table") is table]
    for y, row in enumerate(rows):
        cells, x = row.find_all(["td", "th"], recursive=False), 0
        for cell in cells:
            while (y, x) in grid:
                x += 1
            wide, high = (_span(cell.get(name)) for name in _SPANS)
            below = range(y, min(y + (high or len(rows)), len(rows)))
            text = " ".join(cell.get_text(" ").split())
            for place in itertools.product(below, range(x, x + min(wide or 1, 200))):
                grid.setdefault(place, text)
        if heads == y and cells and all(cell.name == "th" for cell in cells):
            heads += 1
    width = max((x for _, x in grid), default=-1) + 1
    lines = [[grid.get((y, x), "") for x in range(width)] for y in range(len(rows))]
    if heads and heads < len(lines):
        joined = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*lines[:heads], strict=True)]
        lines[:heads] = [joined]
    caption = table.find("caption")
    above = f"{' '.join(caption.get_text().split())}\n\n" if caption else ""
    return above + "\n".join(blocks.row(line, head=bool(heads) and not y) for y, line in enumerate(lines))


def _span(value: Any) -> int:
    return int(value) if str(value).isdecimal() else 1


def _single(values: list[str]) -> Any:
    """Return several values; a single one on its own."""
    unique = list(dict.fromkeys(values))
    return unique[0] if len(unique) == 1 else unique


def _rst(path: Path) -> Json:
    import docutils.core
    from bs4 import BeautifulSoup
    from docutils import nodes

    from workbench.knowledge.reading.sphinx import keep_unknown

    safe = {"file_insertion_enabled": False, "raw_enabled": False, "report_level": 5, "halt_level": 5}
    text, fields = read_text(path), Json()
    with keep_unknown():
        for info in docutils.core.publish_doctree(text, settings_overrides=safe).findall(nodes.docinfo):
            for node in info:
                if isinstance(node, nodes.field):
                    fields[node[0].astext()] = node[1].astext()
                elif node.tagname == "authors":
                    fields["authors"] = [part.astext() for part in node]
                else:
                    fields[node.tagname] = node.astext()
        settings = {**safe, "embed_stylesheet": False}
        parts = docutils.core.publish_parts(text, writer="html5", settings_overrides=settings)
    page = _page(BeautifulSoup(f"{parts['html_title']}{parts['html_subtitle']}{parts['fragment']}", "html.parser"))
    left = re.findall(r"(?m)^\s*\.\. (?:include|raw|literalinclude)::\s*(.*)", text)
    notes = [f"what it includes is left out: {', '.join(left)}"] if left else []
    typed_fields = {name: typed(v) if isinstance(v, str) else v for name, v in fields.items()}
    return {**page, **typed_fields, "notes": notes}


def _notebook(path: Path) -> Json:
    """Read the cells of a notebook of any version; what its outputs weigh does not matter."""
    try:
        book = json.loads(path.read_bytes())
        cells = book.get("cells") or [cell for sheet in book.get("worksheets", []) for cell in sheet["cells"]]
    except (ValueError, AttributeError) as error:
        raise Unreadable(f"a damaged .ipynb file ({error}): open it in Jupyter, and save it again") from None
    about = book.get("metadata") or {}
    language = str((about.get("language_info") or {}).get("name", ""))
    texts = list[str]()
    for cell in cells:
        source = cell.get("source") or cell.get("input") or ""
        source = "".join(source) if isinstance(source, list) else str(source)
        level = "#" * int(cell.get("level", 1)) if cell.get("cell_type") == "heading" else ""
        code = cell.get("cell_type") not in ("markdown", "raw", "heading")
        texts.append(blocks.code(source, language) if code and source.strip() else f"{level} {source}".strip())
    text = "\n\n".join(filter(None, texts))
    if len(text) > LONGEST:
        raise Unreadable(f"its cells have {len(text) / 2**20:,.0f} MB: cut it into several notebooks")
    outputs = sum(bool(cell.get("outputs")) for cell in cells)
    heading = next((block.text for block in blocks.blocks(text) if block.kind == "heading"), "")
    authors = [str(a.get("name")) for a in about.get("authors") or [] if isinstance(a, Mapping)]
    values = {name: about[name] for name in ("date", "keywords") if isinstance(about.get(name), str)}
    notes = [f"the outputs of {outputs} cells are left out"] if outputs else []
    return {"title": about.get("title") or heading, "text": text, "author": _single(authors), **values, "notes": notes}


def _office(path: Path) -> Json:
    """Read PDF, PPTX, XLSX, EPUB, RTF, ODT and mail."""
    import kreuzberg

    must_be_short(path)
    left = [] if path.suffix.lower() in (".pdf", ".rtf", ".eml") else _pictures(_parts(path, ""))
    config = kreuzberg.ExtractionConfig(output_format="markdown", use_cache=False)
    extracted = kreuzberg.extract_file_sync(str(path), config=config)
    about: Any = extracted.metadata
    sheets = [table.cells for table in extracted.tables] if path.suffix.lower() == ".xlsx" else []
    text = re.sub(r"\\([!-/:-@\[-`{}~])", r"\1", extracted.content)
    date = re.match(r"\d{4}-\d\d-\d\d", str(about.get("created_at") or ""))
    heading = next((block.text for block in blocks.blocks(text) if block.kind == "heading"), "")
    return {
        "title": about.get("title") or about.get("subject") or heading,
        "author": _single(about.get("authors") or []),
        "date": date[0] if date else "",
        "keywords": about.get("keywords") or [],
        "text": text.strip(),
        "sheets": [sheet for sheet in sheets if len(sheet) > 1 and len(sheet[0]) > 1],
        "notes": left,
    }


def _parts(path: Path, pattern: str) -> dict[str, bytes]:
    """Return the files in an Office document by name; the content of those that match a pattern."""
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > _UNPACKED * LONGEST:
            raise Unreadable(f"it unpacks to more than {_UNPACKED * LONGEST // 2**20} MB: save its text as .txt or .md")
        names = archive.namelist()
        return {name: archive.read(name) if pattern and re.fullmatch(pattern, name) else b"" for name in names}


def _pictures(names: Iterable[str]) -> list[str]:
    left = Counter(match[1] for name in names if (match := _LEFT.search(name)))
    return [f"left out: {', '.join(f'{count} {what}' for what, count in left.items())}"] if left else []


def _docx(path: Path) -> Json:
    parts = _parts(
        path, r"word/(?:document|styles|footnotes|endnotes|comments|header\d*|footer\d*)\.xml|docProps/core\.xml"
    )
    if not parts.get("word/document.xml"):
        raise Unreadable("a damaged .docx file: save it again")
    word = Word({name.rsplit("/")[-1][:-4]: content for name, content in parts.items() if content})
    return {**word.record(), "notes": _pictures(parts)}


READERS: dict[str, Callable[[Path], Json]] = {
    ".html": _html,
    ".htm": _html,
    ".rst": _rst,
    ".ipynb": _notebook,
    ".docx": _docx,
    **dict.fromkeys((".pdf", ".pptx", ".xlsx", ".epub", ".rtf", ".odt", ".eml"), _office),
}
