"""Which files a corpus has, and what they hold as text: never more of one at hand than a record may be long.

Files come from anywhere. A pipe would never end, a line may be a gigabyte long, a picture may be called ``notes.md``,
and the encoding is whatever an old editor left: each is either read or said, with the mend.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.errors import CorpusError, shown

SUFFIXES = (
    ".jsonl",
    ".jsonl.gz",
    ".md",
    ".markdown",
    ".txt",
    ".csv",
    ".tsv",
    ".tsv.gz",
    ".html",
    ".htm",
    ".rst",
    ".ipynb",
    ".pdf",
    ".docx",
    ".canvas",
)
LONGEST = 16 * 2**20
"""Bytes of one line of JSONL, one cell of CSV, one whole Markdown or text file."""
BROKEN = (OSError, EOFError, zlib.error)
"""What reading a damaged file raises."""
EMPTY = "the file is empty"
_HIDDEN = "hidden, by the dot before its name"
_OUTSIDE = "a link out of the folder, which is not followed: give that file itself"
_LINKED = "a link to a folder, which is not followed: give that folder itself"
_PART = 2**20
_AT_MOST = f"at most {LONGEST // 2**20} MB: cut it into several documents"
_KINDS = (
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAVE = "save the file as UTF-8"


class Unreadable(ValueError):
    """A record or file that gives no document; the message says why, and the mend."""


def given_paths(paths: Any) -> list[Path]:
    """The files and folders that were given: one path, or several.

    >>> [path.name for path in given_paths("papers.jsonl")]
    ['papers.jsonl']

    Raises:
        CorpusError: something else was given.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    if isinstance(several, bytes) or not isinstance(several, Iterable):
        raise CorpusError(f"paths is {shown(paths)}. Give files or folders: ['papers.jsonl'].")
    found = list(several)
    for path in found:
        if not isinstance(path, str | os.PathLike) or not str(path).strip():
            raise CorpusError(f"{shown(path)} is no path. Give files or folders: ['papers.jsonl'].")
    return [Path(path) for path in found]


def files(paths: Iterable[Path]) -> Iterator[tuple[Path, str, str]]:
    """(file, its name within what was given, why it is left out or nothing).

    What was given and cannot be a corpus is an error before anything is read.

    Raises:
        CorpusError: a path does not exist, cannot be looked at, or is of no known kind.
    """
    for path in paths:
        kind = _kind(path)
        if kind == "folder":
            yield from sorted(_below(path))
        elif kind == "nothing":
            raise CorpusError(f"There is no file or folder {shown(str(path))}.")
        elif not path.name.lower().endswith(SUFFIXES):
            raise CorpusError(f"{shown(str(path))} is of no known kind. Known: {', '.join(SUFFIXES)}.")
        elif kind != "file":
            raise CorpusError(f"{shown(str(path))} is a pipe or a device, not a file. Save what it gives to a file.")
        else:
            yield path, path.name, ""


def _kind(path: Path) -> str:
    try:
        return "folder" if path.is_dir() else "file" if path.is_file() else "other" if path.exists() else "nothing"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CorpusError(f"{shown(str(path))} cannot be looked at: {reason}.") from None


def _below(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """The files below a folder, and why some are left out; of a folder that is, nothing below it is looked at."""

    def unseen(error: OSError) -> None:
        raise CorpusError(f"The folder {shown(error.filename)} cannot be read: {error.strerror}.") from None

    inside = folder.resolve()
    for place, folders, names in os.walk(folder, onerror=unseen):
        left = {name: _HIDDEN for name in (*folders, *names) if name.startswith(".")}
        left |= {name: _LINKED for name in folders if name not in left and Path(place, name).is_symlink()}
        links = [Path(place, name) for name in names if name not in left and Path(place, name).is_symlink()]
        left |= {link.name: _OUTSIDE for link in links if not link.resolve().is_relative_to(inside)}
        folders[:] = [name for name in folders if name not in left]
        for name in (*names, *left.keys() - set(names)):
            known = name.lower().endswith(SUFFIXES)
            why = left.get(name) or ("" if known else f"not a kind of file that is read: {Path(name).suffix or name}")
            path = Path(place, name)
            yield path, path.relative_to(folder).as_posix(), why


def must_be_file(path: Path) -> None:
    """Raises ``Unreadable`` for what would never end, is not there or empty, or has a name that no store takes."""
    if not str(path).isprintable() and any("\ud800" <= sign <= "\udfff" for sign in str(path)):
        raise Unreadable("its name is not UTF-8: rename it")
    if not path.is_file():
        what = "a link to nothing" if path.is_symlink() and not path.exists() else "a pipe, a device or a folder"
        raise Unreadable(f"{what}, not a file: take it out of the folder")
    if not path.stat().st_size:
        raise Unreadable(EMPTY)


def lines(path: Path) -> Iterator[tuple[int, bytes | Unreadable]]:
    """The lines of a plain, gzipped or UTF-16 file as UTF-8 bytes, counted from 1; one that is too long is its fault.

    Raises:
        Unreadable: the file is no text.
    """
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        begin = file.read(512)
        _must_be_text(begin.partition(b"\n")[0], share=3)  # the first line may be broken: only that one is lost then
        if begin.startswith(_UTF16) and begin.count(0) * 20 > len(begin):  # a mark alone may be a broken byte
            yield from enumerate((line.encode() + b"\n" for line in whole(path).split("\n")), 1)
            return
        file.seek(0)
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST and not line.endswith(b"\n"):
                size = len(line) + _skip(file)
                yield number, Unreadable(f"the line has {size / 2**20:,.0f} MB; {_AT_MOST}")
            else:
                yield number, line


def _skip(file: Any) -> int:
    """Read on to the end of the line, and say how long that was."""
    size = 0
    while part := file.readline(_PART):
        size += len(part)
        if part.endswith(b"\n"):
            break
    return size


def whole(path: Path) -> str:
    """The text of a file.

    Raises:
        Unreadable: it is too long, no text, or in an encoding that is not known.
    """
    with path.open("rb") as file:
        raw = file.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise Unreadable(f"the file has {path.stat().st_size / 2**20:,.0f} MB; {_AT_MOST}")
    _must_be_text(raw)
    return decoded(raw)


def must_be_short(path: Path) -> None:
    """Raises ``Unreadable`` for a file that is longer than a record may be."""
    if (size := path.stat().st_size) > LONGEST:
        raise Unreadable(f"the file has {size / 2**20:,.0f} MB; {_AT_MOST}")


def text_lines(path: Path, faults: dict[int, str]) -> Iterator[tuple[int, str]]:
    """The lines of a text file, numbered and decoded one by one, their ends kept; ``faults`` gets what is none.

    Raises:
        Unreadable: the file is no text.
    """
    for number, line in lines(path):
        try:
            if isinstance(line, Unreadable):
                raise line
            yield number, decoded(line)
        except Unreadable as error:
            faults[number] = str(error)


def decoded(raw: bytes) -> str:
    """Text of any of the encodings in which Chinese and English files are found.

    >>> decoded("推手".encode("gb18030")), decoded("推手".encode("utf-16"))
    ('推手', '推手')

    Raises:
        Unreadable: with the mend.
    """
    utf16 = raw.startswith(_UTF16)
    try:
        return raw.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        if utf16:
            raise Unreadable(f"not UTF-16, as its mark says: {error.reason} at byte {error.start}; {_SAVE}") from None
        where = f"not UTF-8: {error.reason} at byte {error.start}"
    if not _looks_chinese(raw):
        raise Unreadable(f"{where}; {_SAVE}")
    try:
        return raw.decode("gb18030")
    except UnicodeDecodeError:
        raise Unreadable(f"{where}, and not GB18030; {_SAVE}") from None


def _looks_chinese(raw: bytes) -> bool:
    """Whether bytes above 127 stand together, as Chinese ones do; an accented letter of Latin-1 stands alone."""
    high = sum(byte > 127 for byte in raw)
    alone = len(re.findall(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])", raw))
    return alone * 3 <= high


def _must_be_text(raw: bytes, share: int = 20) -> None:
    for begin, what in _KINDS:
        if raw.startswith(begin):
            raise Unreadable(f"this is {what}, not text: save its text as .txt or .md")
    if raw.count(0) * share > len(raw) and not raw.startswith(_UTF16):
        raise Unreadable(f"this is no text, or UTF-16 without its mark: {_SAVE}")
