"""Files in a zip that is the same bytes each time, and out of one that is trusted in nothing.

A capsule holds JSON and one page of HTML; ``manifest.json`` names every file with its size and SHA-256. Whoever made a
zip may have lied in each of its headers, so sizes are counted while reading and nothing is ever written to disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

from workbench.errors import CapsuleError, shown
from workbench.sqlite import refused

KIND, FORMAT = "workbench.capsule", 1
MANIFEST = "manifest.json"
MOST_FILES = 32
MOST_BYTES = 256 * 2**20
"""Of all files together, unpacked."""
MOST_RATIO = 200
"""Unpacked to packed, beyond the first MiB; JSON is packed 5 to 30 times."""
_MANIFEST_BYTES = 64 * 2**10
_PIECE = 64 * 2**10
_MADE = (1980, 1, 1, 0, 0, 0)
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError),
    OverflowError,
)


def sealed(files: Mapping[str, bytes], about: Mapping[str, Any]) -> bytes:
    """A zip of these files and their manifest: the same bytes for the same files.

    Raises:
        CapsuleError: they are more than any workspace would take in again.
    """
    total = sum(map(len, files.values()))
    if total > MOST_BYTES:
        raise CapsuleError(f"The run holds {total:,} bytes; a capsule may hold {MOST_BYTES:,}.")
    listed = {n: {"bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for n, b in sorted(files.items())}
    manifest = {"kind": KIND, "format": FORMAT, **about, "files": listed}
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in {MANIFEST: pretty(manifest), **dict(sorted(files.items()))}.items():
            entry = zipfile.ZipInfo(name, _MADE)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, content)
    return packed.getvalue()


def pretty(value: Any) -> bytes:
    """JSON for people."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def lines(rows: Iterable[Any]) -> bytes:
    """JSON, a row a line."""
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows).encode()


def put(path: Path, content: bytes) -> None:
    """Write a new file whole or not at all.

    Raises:
        CapsuleError: something else stands there.
        WorkspaceError: it cannot be written.
    """
    try:
        if path.is_dir():
            raise CapsuleError(f"{path} is a folder. Name a file in it.")
        if path.exists():
            if path.read_bytes() == content:
                return
            raise CapsuleError(f"{path} is there already, and is something else. Name another file, or remove it.")
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(beside).chmod(0o644)
            Path(beside).replace(path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise refused(error, path) from error


def opened(path: Path) -> dict[str, bytes]:
    """The files of a capsule, the manifest too, each as its hash says; nothing is written.

    Raises:
        CapsuleError: it is no capsule, a newer one, or damaged; or it is made to do harm.
    """
    try:
        with path.open("rb") as file:
            _look_at_end(file, path)
            with zipfile.ZipFile(file) as archive:
                return _files(archive, path)
    except OSError as error:
        raise CapsuleError(f"{path} cannot be read: {error.strerror or error}.") from None
    except _BROKEN as error:
        raise CapsuleError(f"{path} is damaged: {str(error) or type(error).__name__}. Export the run again.") from None


def _look_at_end(file: Any, path: Path) -> None:
    """What the end of a zip says of its list of entries, before that list is read into memory."""
    size = file.seek(0, os.SEEK_END)
    tail_at = max(0, size - 22 - 2**16)
    file.seek(tail_at)
    tail = file.read()
    file.seek(0)
    begin = tail.rfind(b"PK\x05\x06")
    if begin < 0 or len(tail) - begin < 22:
        _no(path, "it is not a zip file, or not all of one")
    *_, entries, length, _, _ = struct.unpack("<4s4H2LH", tail[begin : begin + 22])
    if (
        size > MOST_BYTES
        or entries > MOST_FILES
        or length > MOST_FILES * 512
        or tail[begin - 20 :][:4] == b"PK\x06\x07"
    ):
        _no(path, f"it is larger than a capsule can be ({entries:,} entries, {size:,} bytes)")


def _files(archive: zipfile.ZipFile, path: Path) -> dict[str, bytes]:
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        _check_entry(entry, path)
        if entry.filename in entries:
            _no(path, f"it has two files named {shown(entry.filename)}")
        entries[entry.filename] = entry
    if MANIFEST not in entries:
        _no(path, f"it has no {MANIFEST}")
    found = {MANIFEST: _read(archive, entries[MANIFEST], _MANIFEST_BYTES, path)}
    listed = _listed(found[MANIFEST], path)
    missing, extra = sorted(listed.keys() - entries), sorted(entries.keys() - listed - {MANIFEST})
    if missing or extra:
        _no(path, f"{shown((missing or extra)[0])} is {'missing' if missing else 'not in its manifest'}")
    left = MOST_BYTES
    for name, told in listed.items():
        found[name] = _read(archive, entries[name], left, path)
        left -= len(found[name])
        if (len(found[name]), hashlib.sha256(found[name]).hexdigest()) != (told["bytes"], told["sha256"]):
            _no(path, f"{name} is not what its hash says")
    return found


def _check_entry(entry: zipfile.ZipInfo, path: Path) -> None:
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    if stat.S_ISLNK(kind):
        _no(path, f"{shown(name)} is a link")
    if name != entry.filename or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", name):
        _no(path, f"{shown(name)} is not the name of a file in a capsule: it may lead outside")
    if kind not in (0, stat.S_IFREG) or entry.is_dir():
        _no(path, f"{name} is not a file")
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _no(path, f"{name} is encrypted, or packed in a way that capsules are not")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, path: Path) -> bytes:
    """A file of the zip, counted while it is unpacked."""
    content, packed = bytearray(), max(1, entry.compress_size)
    with archive.open(entry) as file:
        while piece := file.read(_PIECE):
            content += piece
            if len(content) > most or len(content) > 2**20 + MOST_RATIO * packed:
                _no(path, f"{entry.filename} unpacks to more than a capsule can hold")
    return bytes(content)


def _listed(content: bytes, path: Path) -> dict[str, dict[str, Any]]:
    manifest = loaded(content, MANIFEST, path)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND or not isinstance(manifest.get("format"), int):
        _no(path, f"its {MANIFEST} is not that of a capsule")
    if manifest["format"] > FORMAT:
        raise CapsuleError(
            f"{path} was written by a newer workbench (capsule format {manifest['format']}; known here: {FORMAT}). "
            "Upgrade workbench."
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(f, dict) and {"bytes", "sha256"} <= {*f} for f in files.values()
    ):
        _no(path, f"its {MANIFEST} does not list its files")
    return files


def loaded(content: bytes, name: str, path: Path) -> Any:
    """JSON that can be kept again: finite numbers, whole characters, not nested without end.

    Raises:
        CapsuleError: it is not.
    """
    try:
        value = json.loads(content.decode(), parse_constant=_not_finite)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CapsuleError(f"{path} is refused: {name} is not JSON as a capsule has it ({reason}).") from None


def _not_finite(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _no(path: Path, why: str) -> NoReturn:
    raise CapsuleError(f"{path} is refused: {why}. Nothing was brought in.")
