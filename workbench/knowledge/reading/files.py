"""Which files a corpus has, and what they hold as text: never more of one available than a record may be long.

Files come from anywhere. A pipe would never end, a line may be a gigabyte long, a picture may be called ``notes.md``,
and the encoding is whatever an old editor left: each is either read or said, with the fix.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import CorpusError, shown
from workbench.extensions import paths
from workbench.text import CJK

_READ = """
    .jsonl .jsonl.gz .json .md .markdown .txt .csv .tsv .tsv.gz .html .htm .rst .ipynb .pdf .docx .pptx .xlsx .epub .rtf
    .odt .eml readme license
"""
SUFFIXES = (*_READ.split(), *paths("readers"))
STRUCTURE = "canvas:node"
"""The field of a document that keeps its node of a drawing: ``id``, ``position``, ``links``; no other format has it."""
LOOKS = ("group", "color")
"""Fields that say how a node looks; they name nothing in the graph."""
LONGEST = 16 * 2**20
"""Bytes of one line of JSONL, one cell of CSV, one whole Markdown or text file."""
BROKEN = (OSError, EOFError, zlib.error)
"""What reading a damaged file raises."""
EMPTY = "the file is empty"
_HIDDEN = "hidden, by the dot before its name"
_OUTSIDE = "a link out of the folder, which is not followed: give that file itself"
_LINKED = "a link to a folder, which is not followed: give that folder itself"
_PART = 2**20
_AT_MOST = f"at most {LONGEST >> 20} MB: cut it into several documents"
_BINARY = (
    b"%PDF-",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"SQLite",
    b"\x7fELF",
)
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
LARGER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
}
"""Encodings of which people name a part, and write the whole."""
_ODD = re.compile(r"ÿ|[^\W\d_][¡-©«-´¶¸»-¿×÷][^\W\d_]|[\ue000-\uf8ff]")
"""What no text has: signs between letters, characters without a meaning."""
_SAVE = "save the file as UTF-8"


class Unreadable(ValueError):
    """A record or file that gives no document; the message says why, and the fix."""


class Note(str):
    """A decision about a file, or a part that was left out, that concerns all of its documents."""


def given_paths(paths: Any) -> list[Path]:
    """Return the files and folders that were given: one path, or several.

    >>> [path.name for path in given_paths("papers.jsonl")]
    ['papers.jsonl']

    Raises:
        CorpusError: something else was given.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    if isinstance(several, bytes) or not isinstance(several, Iterable):
        raise CorpusError(f"paths is {shown(paths)}. Give files or folders: ['papers.jsonl'].")
    entries = list(several)
    for path in entries:
        if not isinstance(path, str | os.PathLike) or not str(path).strip():
            raise CorpusError(
                f"{shown(path)} is no path. Give files or folders: ['papers.jsonl']."
            )
    return [Path(path) for path in entries]


def files(paths: Iterable[Path]) -> Iterator[tuple[Path, str, str]]:
    """(file, its name within what was given, why it is left out or nothing).

    What was given and cannot be a corpus is an error before anything is read.

    Raises:
        CorpusError: a path does not exist, cannot be looked at, or is of no known kind.
    """
    for path in paths:
        kind = path_kind(path)
        if kind == "folder":
            yield from sorted(_below(path))
        elif kind == "nothing":
            raise CorpusError(f"There is no file or folder {shown(str(path))}.")
        elif not path.name.lower().endswith(SUFFIXES):
            raise CorpusError(
                f"{shown(str(path))} is of no known kind. Known: {', '.join(SUFFIXES)}."
            )
        elif kind != "file":
            raise CorpusError(
                f"{shown(str(path))} is a pipe or a device, not a file. Save what it gives to a file."
            )
        else:
            yield path, path.name, ""


def path_kind(path: Path) -> str:
    """Return ``folder``, ``file``, ``other`` or ``nothing``.

    Raises:
        CorpusError: the system refuses to look, as at a name of 300 letters.
    """
    try:
        if path.is_dir():
            return "folder"
        if path.is_file():
            return "file"
        return "other" if path.exists() else "nothing"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CorpusError(f"{shown(str(path))} cannot be looked at: {reason}.") from None


def _below(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the files below a folder, and why some are left out; of a folder that is, nothing below it is looked at."""

    def unseen(error: OSError) -> None:
        raise CorpusError(
            f"The folder {shown(error.filename)} cannot be read: {error.strerror}."
        ) from None

    inside = folder.resolve()
    for place, folders, names in os.walk(folder, onerror=unseen):
        reasons = {name: _left_out(Path(place, name), inside) for name in (*folders, *names)}
        folders[:] = [name for name in folders if not reasons[name]]
        for name, why in reasons.items():
            if name in folders:
                continue
            if not why and not name.lower().endswith(SUFFIXES):
                why = f"not a kind of file that is read: {Path(name).suffix or name}"
            path = Path(place, name)
            yield path, path.relative_to(folder).as_posix(), why


def _left_out(path: Path, inside: Path) -> str:
    """Return why a file or folder is not looked at; "" where it is."""
    if path.name.startswith("."):
        return _HIDDEN
    if not path.is_symlink():
        return ""
    if path.is_dir():
        return _LINKED
    # realpath, since resolve() raises for a link to itself
    return "" if Path(os.path.realpath(path)).is_relative_to(inside) else _OUTSIDE


def must_be_file(path: Path) -> None:
    """Raise ``Unreadable`` for what would never end, is not there or empty, or has a name that no store takes."""
    if not str(path).isprintable() and any("\ud800" <= sign <= "\udfff" for sign in str(path)):
        raise Unreadable("its name is not UTF-8: rename it")
    if not path.is_file():
        what = (
            "a link to nothing"
            if path.is_symlink() and not path.exists()
            else "a pipe, a device or a folder"
        )
        raise Unreadable(f"{what}, not a file: take it out of the folder")
    if not path.stat().st_size:
        raise Unreadable(EMPTY)


def lines(path: Path) -> Iterator[tuple[int, str | Unreadable]]:
    """Yield the lines of a plain or gzipped file with their ends, counted from 1; a bad line is its fault.

    The encoding is decided once, of the whole file: a line alone may be legal in several.

    Raises:
        Unreadable: the file is not text, or its encoding is not known.
    """
    encoding = _line_encoding(path)
    # a line break is no byte of its own there
    if encoding in _MARKS.values() and encoding != "utf-8-sig":
        yield from enumerate(read_text(path).splitlines(keepends=True), 1)
        return
    with _opened(path) as file:
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST and not line.endswith(b"\n"):
                size = len(line) + _skip(file)
                yield number, Unreadable(f"the line has {size / 2**20:,.0f} MB; {_AT_MOST}")
                continue
            try:
                yield number, _text(line, encoding)
            except Unreadable as error:
                yield number, error


def _opened(path: Path) -> Any:
    return (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb")


def _skip(file: Any) -> int:
    """Read on to the end of the line, and return how long that was."""
    size = 0
    while part := file.readline(_PART):
        size += len(part)
        if part.endswith(b"\n"):
            break
    return size


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        Unreadable: it is too long, not text, or in an encoding that is not known.
    """
    must_be_short(path)
    return decoded(path.read_bytes())


def must_be_short(path: Path) -> None:
    """Raise ``Unreadable`` for a file that is longer than a record may be."""
    if (size := path.stat().st_size) > LONGEST:
        raise Unreadable(f"the file has {size / 2**20:,.0f} MB; {_AT_MOST}")


def decoded(raw: bytes) -> str:
    """Return the text of a whole file, in the encoding that it declares or that it is most likely to have.

    >>> decoded("湖水是咸的".encode("gb18030")), decoded("湖".encode("utf-16")), decoded("湖水是鹹的".encode("big5"))
    ('湖水是咸的', '湖', '湖水是鹹的')

    Raises:
        Unreadable: with the guesses and the fix.
    """
    _must_be_text(raw)
    encoding = _mark(raw)
    if not encoding:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            encoding = _guess(raw)
    return _text(raw, encoding)


def _text(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        why = f"not {encoding.upper()}: {error.reason} at byte {error.start}"
        raise Unreadable(f"{why}; {_SAVE}") from None


def _mark(raw: bytes) -> str:
    """Return the encoding that the first bytes say."""
    mark = next((mark for mark in _MARKS if raw.startswith(mark)), b"")
    # 中文 has few, ASCII half
    damaged = mark == codecs.BOM_UTF16_LE and raw[:512].count(0) * 20 <= len(raw[:512])
    legal = damaged and len(raw) % 2 == 0 and CJK.search(raw[:512].decode("utf-16", "ignore"))
    return "" if damaged and not legal else _MARKS.get(mark, "")


def _line_encoding(path: Path) -> str:
    """Return the encoding of a file of lines, which is read in parts: that of its first megabyte."""
    # a broken file is reported where its lines are read
    with _opened(path) as file, suppress(*BROKEN):
        sample = file.read(_PART)
        # the first line may be broken: only it is lost then
        _must_be_text(sample[:512].partition(b"\n")[0], share=3)
        if encoding := _mark(sample):
            return encoding
        try:
            codecs.getincrementaldecoder("utf-8")().decode(sample)
        except UnicodeDecodeError:
            legal = sum(
                map(
                    len,
                    re.findall(rb"[\xe3-\xf4][\x80-\xbf]{2,3}|[\xc3-\xdf][\x80-\xbf]", sample),
                )
            )
            if legal < 0.9 * len(re.findall(rb"[\x80-\xff]", sample)):
                with suppress(Unreadable):  # each line that is not UTF-8 says so
                    return _guess(sample)
    return "utf-8"


def _guess(raw: bytes) -> str:
    """Return the encoding that bytes which are no UTF-8 are most likely in.

    Raises:
        Unreadable: none of them gives a text that anybody writes.
    """
    from chardetng_py import EncodingDetector  # type: ignore[import-untyped]

    detector = EncodingDetector()
    detector.feed(raw, last=True)
    guess = codecs.lookup(detector.guess(tld=None, allow_utf8=False)).name
    encoding = LARGER.get(guess, guess)
    text = raw.decode(encoding, "replace")
    high = sum(byte > 127 for byte in raw)
    short = high < 5 and not re.search(rb"[A-Za-z]", raw)
    if short or _ODD.search(text) or text.count("\ufffd") * 50 > high:
        raise Unreadable(
            f"not UTF-8, and {encoding.upper()} would be {shown(text[:40])}; {_SAVE}"
        )
    return encoding


def _must_be_text(raw: bytes, share: int = 20) -> None:
    if raw.startswith(_BINARY):
        raise Unreadable(
            "this is a picture, an archive or a document, not text: save its text as .txt or .md"
        )
    if raw.count(0) * share > len(raw) and not _mark(raw):
        raise Unreadable(f"this is no text, or UTF-16 without its mark: {_SAVE}")
