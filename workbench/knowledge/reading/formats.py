"""Pages, notebooks and binary formats to a record whose text has its blocks marked as in Markdown.

Nothing in a file is run or fetched: scripts and the outputs of notebooks are left out, an archive is measured before
it is unpacked. They are read in a process of their own, which ends when a file takes too long. A further kind is a
function from a path to a record, and its line in ``READERS``.
"""

from __future__ import annotations

import email
import email.policy
import faulthandler
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.knowledge.reading import blocks
from workbench.knowledge.reading.files import (
    LARGER,
    LONGEST,
    Unreadable,
    must_be_short,
    read_text,
)
from workbench.state import Json
from workbench.text import fold, iso

PATIENCE_S = 120.0
"""Seconds that reading one document may take."""
_LEFT_OUT = (
    "head, script, style, template, noscript, svg, nav, header:not(:has(h1)), footer, aside, [hidden], "
    "[aria-hidden=true], [style*='display:none' i], [style*='display: none' i]"
)
"""What is not seen of a page, and what is around every page of a site."""


class Reader:
    """The process that reads documents: begun with the first one, and again where one broke it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
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
            print(json.dumps(str(path)), file=process.stdin, flush=True)
        answer = process.stdout.readline()
        if not answer:
            self.__exit__()
            # How a process ends that `faulthandler` ends.
            late = process.returncode == 1
            why = (
                f"reading it takes longer than {PATIENCE_S:,.0f} s"
                if late
                else "reading it breaks its reader"
            )
            raise Unreadable(f"{why}: save its text as .txt or .md")
        record = json.loads(answer)
        if "unreadable" in record:
            raise Unreadable(record["unreadable"])
        return record


def _begun() -> subprocess.Popen[str]:
    # -P: what lies in the working directory is no library
    command = [sys.executable, "-P", "-c", f"from {__name__} import serve; serve({PATIENCE_S})"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONIOENCODING": "utf-8",
    }
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        env=environment,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
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
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(answer), file=out, flush=True)


def record(path: Path) -> Json:
    """Return what a file says, as ``title``, ``text`` and its fields.

    Raises:
        Unreadable: with the reason, and the fix.
    """
    kind = path.suffix.lower()
    try:
        result = READERS[kind](path)
    except Unreadable:
        raise
    except OSError as error:
        raise Unreadable(f"the file cannot be read to its end: {error}") from None
    except Exception as error:  # whatever a parser raises over a damaged file
        if "password" in str(error):
            raise Unreadable("an encrypted file: save it without its password") from None
        raise Unreadable(
            f"a damaged {kind} file ({type(error).__name__}: {error}): save it again"
        ) from None
    if not result["text"].strip() and not result.get("sheets"):
        raise Unreadable(
            "it holds no text" + (", only pictures: run OCR over it" if kind == ".pdf" else "")
        )
    return {name: value for name, value in result.items() if value}


def first_heading(text: str) -> str:
    """Return the first heading, if it is of the first level: any other names a section."""
    first = next((block for block in blocks.blocks(text) if block.kind == "heading"), None)
    return first.text if first and first.level == 1 else ""


def _html(path: Path) -> Json:
    must_be_short(path)
    declared = b"charset" in path.read_bytes()[:2048]
    return _page(path.read_bytes() if declared else read_text(path))


def _page(content: bytes | str) -> Json:
    from bs4 import BeautifulSoup

    page = BeautifulSoup(content, "html.parser")
    about = _extracted(str(page).encode(), "text/html")
    for tag in page.select(_LEFT_OUT):
        tag.decompose()
    body = page.main or page  # around it a site says the same on each page
    for broken in body.find_all(string=re.compile(r"\n")):
        if not broken.find_parent("pre"):  # anywhere else a break of the line is a space
            broken.replace_with(re.sub(r"\s+", " ", broken))
    text = str(_extracted(str(body).encode(), "text/html")["text"])
    # the words of a link and of an emphasis are the text, not their marks
    text = re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", text)
    text = re.sub(r"(\*\*|`)(?=\S)([^*`\n]+?)\1", r"\2", text)
    return {
        **about,
        "title": _page_title(text, about["title"]),
        "text": text,
    }


def _page_title(text: str, name: str) -> str:
    """Return the heading with which the name of a page begins, "Tea" of "Tea - The Teahouse"; else the first one."""
    headings = [block.text for block in blocks.blocks(text) if block.kind == "heading"]
    titles = (heading for heading in headings if heading and fold(name).startswith(fold(heading)))
    return next(titles, first_heading(text) or name)


def _notebook(path: Path) -> Json:
    """Read the cells of a notebook; outputs are left out."""
    book = json.loads(path.read_bytes())
    about = book.get("metadata", {})
    texts = []
    language = about.get("language_info", {}).get("name", "")
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if source.strip() and cell["cell_type"] != "raw":
            texts.append(blocks.code(source, language) if cell["cell_type"] == "code" else source)
    text = "\n\n".join(texts)
    if len(text) > LONGEST:
        raise Unreadable(
            f"its cells have {len(text) / 2**20:,.0f} MB: cut it into several notebooks"
        )
    return {
        "title": about.get("title") or first_heading(text),
        "text": text,
        "author": _single([author.get("name", "") for author in about.get("authors", [])]),
    }


def _mail(path: Path) -> Json:
    """Read a mail: its text, or its page where that says far more. Attachments are named only."""
    must_be_short(path)
    mail: Any = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    # whom it is to is no field: it would hold the same names as the author
    readers = f"To: {mail.get('to', '')}; {mail.get('cc', '')}".rstrip("; ")
    texts = list[str]()
    pages = list[str]()
    attached = []
    for part in mail.walk():
        kind = part.get_content_type()
        if kind in ("text/plain", "text/html"):
            charset = part.get_content_charset("utf-8")
            part.set_param("charset", LARGER.get(charset, charset))
            (texts if kind == "text/plain" else pages).append(part.get_content())
        elif kind.startswith("multipart/") and not part.is_multipart():
            texts.append(part.get_payload())  # its boundaries are lost, its text is not
        elif name := part.get_filename():
            attached.append(name)
    # as Markdown, the line before a signature would make a heading of what is above it, and what
    # follows a quotation at once would be of it
    text = re.sub(r"(?m)^-- ?\r?$", "", "\n".join(texts))
    text = blocks.laid_out(re.sub(r"(?m)^(>.*)\n(?!>)", r"\1\n\n", text))
    page = str(_page("\n".join(pages))["text"]) if pages else ""
    return {
        "title": mail.get("subject", ""),
        "type": "Mail",
        "author": re.sub(r"\"|\s+<[^<>]*>", "", mail.get("from", "")),
        "date": iso(str(mail["date"])),
        "attachments": attached,
        "text": f"{readers}\n\n{page if len(page) > 2 * len(text) else text}",
    }


def _office(path: Path) -> Json:
    """Read PDF, DOCX, PPTX, XLSX, EPUB, RTF and ODT."""
    import kreuzberg

    # how many times the longest text an archive may unpack to: styles and pictures are in it too
    unpacked = 8
    must_be_short(path)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if sum(part.file_size for part in archive.infolist()) > unpacked * LONGEST:
                raise Unreadable(
                    f"it unpacks to more than {unpacked * LONGEST // 2**20} MB: save its text as .txt"
                )
    record = _extracted(path.read_bytes(), kreuzberg.detect_mime_type_from_path(str(path)))
    # marks of notes, and what is escaped
    text = re.sub(
        r"\[\^\w+\](?::\n +)?|\[\d+\]\(#[^()]*\)|\\([!-/:-@\[-`{}~])", r"\1", record["text"]
    )
    return {**record, "text": text}


def _extracted(content: bytes, mime: str) -> Json:
    """Return the Markdown of a document, and what it says of itself."""
    import kreuzberg

    config = kreuzberg.ExtractionConfig(output_format="markdown", use_cache=False)
    extracted = kreuzberg.extract_bytes_sync(content, mime, config=config)
    about = extracted.metadata
    tags = about.get("meta_tags") or {}
    date = about.get("created_at") or tags.get("date") or tags.get("dc_date")
    sheets = [table.cells for table in extracted.tables if "spreadsheet" in mime]
    return {
        "title": about.get("title") or first_heading(extracted.content),
        "author": _single(about.get("authors") or []) or tags.get("citation_author"),
        "date": iso(date or tags.get("citation_date")),
        "keywords": about.get("keywords"),
        "text": extracted.content.strip(),
        "sheets": [sheet for sheet in sheets if len(sheet) > 1 and len(sheet[0]) > 1],
    }


def _single(values: list[str]) -> Any:
    """Return several values; a single one on its own."""
    return values[0] if len(values) == 1 else values


READERS: dict[str, Callable[[Path], Json]] = {
    ".html": _html,
    ".htm": _html,
    ".ipynb": _notebook,
    ".eml": _mail,
    **dict.fromkeys((".pdf", ".docx", ".pptx", ".xlsx", ".epub", ".rtf", ".odt"), _office),
}
