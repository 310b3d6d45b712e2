"""The zip of a capsule: the same bytes each time, trusted in nothing when read; and what it says of itself.

For people that is a page and a short text, for machines RO-Crate 1.1 metadata:
https://www.researchobject.org/ro-crate/specification/1.1/
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

from workbench.errors import CapsuleError, shown
from workbench.records.tape import Effect, begun, fingerprints
from workbench.text import visible
from workbench.views.labels import labels_for
from workbench.views.render import run_html

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
        _refuse(path, "it is not a zip file, or not all of one")
    *_, entries, length, _, _ = struct.unpack("<4s4H2LH", tail[begin : begin + 22])
    if (
        size > MOST_BYTES
        or entries > MOST_FILES
        or length > MOST_FILES * 512
        or tail[begin - 20 :][:4] == b"PK\x06\x07"
    ):
        _refuse(path, f"it is larger than a capsule can be ({entries:,} entries, {size:,} bytes)")


def _files(archive: zipfile.ZipFile, path: Path) -> dict[str, bytes]:
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        _check_entry(entry, path)
        if entry.filename in entries:
            _refuse(path, f"it has two files named {shown(entry.filename)}")
        entries[entry.filename] = entry
    if MANIFEST not in entries:
        _refuse(path, f"it has no {MANIFEST}")
    found = {MANIFEST: _read(archive, entries[MANIFEST], _MANIFEST_BYTES, path)}
    listed = _listed(found[MANIFEST], path)
    missing, extra = sorted(listed.keys() - entries), sorted(entries.keys() - listed - {MANIFEST})
    if missing or extra:
        _refuse(path, f"{shown((missing or extra)[0])} is {'missing' if missing else 'not in its manifest'}")
    left = MOST_BYTES
    for name, told in listed.items():
        found[name] = _read(archive, entries[name], left, path)
        left -= len(found[name])
        if (len(found[name]), hashlib.sha256(found[name]).hexdigest()) != (told["bytes"], told["sha256"]):
            _refuse(path, f"{name} is not what its hash says")
    return found


def _check_entry(entry: zipfile.ZipInfo, path: Path) -> None:
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    if stat.S_ISLNK(kind):
        _refuse(path, f"{shown(name)} is a link")
    if name != entry.filename or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", name):
        _refuse(path, f"{shown(name)} is not the name of a file in a capsule: it may lead outside")
    if kind not in (0, stat.S_IFREG) or entry.is_dir():
        _refuse(path, f"{name} is not a file")
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _refuse(path, f"{name} is encrypted, or packed in a way that capsules are not")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, path: Path) -> bytes:
    """A file of the zip, counted while it is unpacked."""
    content, packed = bytearray(), max(1, entry.compress_size)
    with archive.open(entry) as file:
        while piece := file.read(_PIECE):
            content += piece
            if len(content) > most or len(content) > 2**20 + MOST_RATIO * packed:
                _refuse(path, f"{entry.filename} unpacks to more than a capsule can hold")
    return bytes(content)


def _listed(content: bytes, path: Path) -> dict[str, dict[str, Any]]:
    manifest = loaded(content, MANIFEST, path)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND or not isinstance(manifest.get("format"), int):
        _refuse(path, f"its {MANIFEST} is not that of a capsule")
    if manifest["format"] > FORMAT:
        raise CapsuleError(
            f"{path} was written by a newer workbench (capsule format {manifest['format']}; known here: {FORMAT}). "
            "Upgrade workbench."
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(f, dict) and {"bytes", "sha256"} <= {*f} for f in files.values()
    ):
        _refuse(path, f"its {MANIFEST} does not list its files")
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


def _refuse(path: Path, why: str) -> NoReturn:
    raise CapsuleError(f"{path} is refused: {why}. Nothing was brought in.")


METADATA, PAGE, READ_ME = "ro-crate-metadata.json", "run.html", "README.md"
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]
_FORMATS = {
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "html": "text/html",
    "md": "text/markdown",
}
_ENDS = {"done": "CompletedActionStatus", "failed": "FailedActionStatus", "cancelled": "FailedActionStatus"}
ABOUT = {
    "run.json": "What was asked, how it ended, and what came of it",
    "plans.jsonl": "Every version of the plan, with who made it and why",
    "records.jsonl": "What each attempt at each step did",
    "bodies.jsonl": "What each attempt found",
    "decisions.jsonl": "What was answered at review points, with what was proposed",
    "events.jsonl": "The log of the graph's nodes",
    "tape.jsonl": "Every other effect of the run: plans, models, reads of knowledge and of the conversation",
    "evidence.jsonl": "The evidence, best first, as the answer's [n] count it",
    "settings.json": "The settings in force, without secrets and addresses",
    "knowledge.json": "The fingerprint of each knowledge base that was asked",
    "licences.json": "The texts in this capsule, with their sources and licences",
    PAGE: "The run as a page to read",
    READ_ME: "What this is",
}


def described(contents: Mapping[str, Any], document: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that are made of a run's contents, the metadata over all of them last."""
    effects, texts = taped(contents), licences(contents)
    begin = begun(effects)
    merged = (contents["run"]["result"] or {}).get("merged") or {}
    made = {
        "evidence.jsonl": lines(merged.get("retrieval_results", [])),
        "settings.json": pretty(begin.get("settings", {})),
        "knowledge.json": pretty(dict(sorted(fingerprints(effects).items()))),
        "licences.json": pretty(texts),
        PAGE: _page(document),
        READ_ME: _read_me(document, begin.get("versions", {}), texts),
    }
    return {**made, METADATA: pretty(metadata(contents["run"], begin.get("versions", {}), texts, {**files, **made}))}


def taped(contents: Mapping[str, Any]) -> list[Effect]:
    """The effects on the tape of a run; none for a run without one."""
    return [Effect(**{k: v for k, v in row.items() if k != "page"}) for row in contents["tape"]]


def licences(contents: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every document of which a text is in the capsule: ``{"kb_prefix", "doc_id", "title", "url", "licence"}``."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    effects = [(effect["name"].partition(".")[0], effect["value"]) for effect in contents["tape"]]
    for base, value in [*effects, ("", contents["bodies"]), ("", contents["run"]["result"])]:
        for text in _texts(value):
            kb, doc_id = str(text.get("kb_prefix") or base), str(text["doc_id"])
            row = {name: str(text.get(name) or "") for name in ("title", "url", "licence")}
            if doc_id and not any(found.get((kb, doc_id), {}).get(name) for name in row):
                found[kb, doc_id] = {"kb_prefix": kb, "doc_id": doc_id, **row}
    return [found[place] for place in sorted(found)]


def _texts(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("doc_id"), str) and "licence" in value:
            yield value
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def metadata(
    row: Mapping[str, Any], versions: Mapping[str, str], texts: list[dict[str, str]], files: Mapping[str, bytes]
) -> dict[str, Any]:
    """The crate: its files, the run as the action that made them, with what, and under which licences texts stand."""
    ids = {name: f"#licence-{n}" for n, name in enumerate(sorted({t["licence"] for t in texts if t["licence"]}), 1)}
    ids = {name: name if name.startswith(("http://", "https://")) and " " not in name else i for name, i in ids.items()}
    told = [f"{sum(t['licence'] == name for t in texts)} documents: {name}" for name in ids]
    graph: list[dict[str, Any]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": f"Workbench run {row['run_id']}",
            "description": row["message"],
            "datePublished": row["ended_at"] or row["created_at"],
            "license": [{"@id": i} for i in ids.values()] or "No text in this capsule says its licence.",
            "hasPart": [{"@id": name} for name in (*sorted(files), MANIFEST)],
            "mentions": {"@id": "#run"},
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": row["message"],
            "startTime": row["created_at"],
            "endTime": row["ended_at"] or row["created_at"],
            "actionStatus": {"@id": f"http://schema.org/{_ENDS[row['status']]}"},
            "instrument": {"@id": "#workbench"},
            "object": [{"@id": name} for name in ("settings.json", "knowledge.json")],
            "result": [{"@id": name} for name in sorted(files) if name not in ("settings.json", "knowledge.json")],
            **({"error": row["error"]} if row["error"] else {}),
        },
        *_software(versions),
        *(
            {"@id": i, "@type": "CreativeWork", "name": name, "description": t}
            for (name, i), t in zip(ids.items(), told, strict=True)
        ),
        *(_file(name, files[name]) for name in sorted(files)),
        {
            "@id": MANIFEST,
            "@type": "File",
            "name": "Every file with its size and SHA-256",
            "encodingFormat": _FORMATS["json"],
        },
    ]
    return {"@context": _CONTEXT, "@graph": graph}


def _software(versions: Mapping[str, str]) -> list[dict[str, Any]]:
    others = [name for name in versions if name != "workbench"]
    return [
        {
            "@id": "#workbench",
            "@type": "SoftwareApplication",
            "name": "workbench",
            "version": versions.get("workbench", "unknown"),
            "softwareRequirements": [{"@id": f"#{name}"} for name in others],
        },
        *(
            {"@id": f"#{name}", "@type": "SoftwareApplication", "name": name, "version": versions[name]}
            for name in others
        ),
    ]


def _file(name: str, content: bytes) -> dict[str, Any]:
    return {
        "@id": name,
        "@type": "File",
        "name": ABOUT[name],
        "encodingFormat": _FORMATS[name.rpartition(".")[2]],
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _page(document: Mapping[str, Any]) -> bytes:
    title, language = escape(visible(document["message"])), labels_for(document["message"]).html_lang
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n{run_html(dict(document))}\n</body>\n</html>\n"
    ).encode()


def _read_me(document: Mapping[str, Any], versions: Mapping[str, str], texts: list[dict[str, str]]) -> bytes:
    made = ", ".join(f"{name} {number}" for name, number in versions.items()) or "a workbench without tapes"
    rows = "\n".join(f"| `{name}` | {what} |" for name, what in ABOUT.items())
    return f"""# A run of workbench, sealed

Run `{document["run_id"]}`, made with {made}. `{PAGE}` shows it in a browser, `{METADATA}` describes it to machines.

    workbench import FILE.zip              # into any workspace; the corpus is not needed
    workbench replay {document["run_id"]}          # once more, from its tape: no network, no model
    workbench show {document["run_id"]}

| file | what it holds |
| --- | --- |
{rows}

It holds texts of {len(texts)} documents; `licences.json` says under which licence each of them stands.
""".encode()
