"""Files to documents: JSONL (also gzipped), Markdown, text and CSV, one or a folder of them, Chinese and English.

A record's text is its ``text``, ``overview`` or ``content``. ``id``, ``title``, ``url``, ``licence``, ``type`` (what
the document is about: ``Film``), ``aliases`` (other names of the document) and ``names`` (other names of anybody in
it, ``{"Ang Lee": ["李安"]}``) are read by name; everything else becomes a typed field. What cannot be read is listed
with file, line and reason, and the rest is kept.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from workbench.errors import CorpusError
from workbench.plans import canonical_json
from workbench.text import CJK, clean, sentences

TEXT_KEYS = ("text", "overview", "content")
SUFFIXES = (".jsonl", ".jsonl.gz", ".md", ".markdown", ".txt", ".csv")
_RESERVED = {*TEXT_KEYS, "id", "title", "url", "licence", "license", "type", "aliases", "names"}


class Problem(TypedDict):
    """One line that was left out, and why. ``line`` counts from 1; 0 means the whole file."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class Document:
    """One document as loaded. ``source`` is the file it came from; it is no part of the content."""

    doc_id: str
    title: str
    text: str
    url: str = ""
    licence: str = ""
    type: str = "Document"
    fields: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    names: Mapping[str, list[str]] = field(default_factory=dict)
    source: str = ""

    def content(self) -> dict[str, Any]:
        """Everything but where it came from."""
        return {
            "title": self.title,
            "text": self.text,
            "url": self.url,
            "licence": self.licence,
            "type": self.type,
            "fields": dict(self.fields),
            "aliases": list(self.aliases),
            "names": dict(self.names),
        }

    def digest(self) -> str:
        """Hex digest of the content: two documents with one digest are the same document."""
        return hashlib.sha256(canonical_json([self.doc_id, self.content()]).encode()).hexdigest()


@dataclass
class Loaded:
    """What the files gave. ``sources`` are all files that were read to the end, also the ones without a document."""

    documents: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def load(paths: Iterable[str | Path]) -> Loaded:
    """Every document of these files and folders, in their order; a second document of one id is a problem.

    Raises:
        CorpusError: a path does not exist, or a named file is of no known kind.
    """
    loaded, seen = Loaded(), dict[str, tuple[str, int]]()
    for path, name in _files(paths):
        source = path.resolve().as_posix()
        if source in loaded.sources:
            continue
        loaded.sources.append(source)
        for line, found in _read(path, name):
            if isinstance(found, str):
                loaded.problems.append({"file": str(path), "line": line, "reason": found})
            elif found.doc_id in seen:
                file, first = seen[found.doc_id]
                reason = f"id {found.doc_id!r} was used before ({Path(file).name}, line {first}); the first is kept"
                loaded.problems.append({"file": str(path), "line": line, "reason": reason})
            else:
                seen[found.doc_id] = (str(path), line)
                loaded.documents.append(found)
    return loaded


def chunks(text: str, limit: int) -> list[str]:
    """The text in pieces of at most ``limit`` characters, cut between sentences; a longer sentence is cut at a space.

    >>> chunks("One is here. Two is here. Three is here.", 26)
    ['One is here. Two is here.', 'Three is here.']
    >>> chunks("他来了。她走了。", 5)
    ['他来了。', '她走了。']
    """
    pieces: list[str] = []
    for sentence in (part for whole in sentences(text) for part in _short(whole, limit)):
        glue = "" if pieces and CJK.match(sentence) and pieces[-1][-1:] in "。！？；，、》”" else " "
        if pieces and len(pieces[-1]) + len(glue) + len(sentence) <= limit:
            pieces[-1] += glue + sentence
        else:
            pieces.append(sentence)
    return pieces


def _short(sentence: str, limit: int) -> Iterator[str]:
    while len(sentence) > limit:
        cut = sentence.rfind(" ", limit // 2, limit)
        cut = cut if cut > 0 else limit
        yield sentence[:cut].strip()
        sentence = sentence[cut:].strip()
    if sentence:
        yield sentence


def _files(paths: Iterable[str | Path]) -> Iterator[tuple[Path, str]]:
    """(file, its name within what was given)."""
    for path in map(Path, paths):
        if path.is_dir():
            visible = (p for p in path.rglob("*") if not any(n.startswith(".") for n in p.relative_to(path).parts))
            files = sorted(p for p in visible if p.is_file() and p.name.lower().endswith(SUFFIXES))
            yield from ((p, p.relative_to(path).as_posix()) for p in files)
        elif not path.exists():
            raise CorpusError(f"There is no file or folder {str(path)!r}.")
        elif not path.name.lower().endswith(SUFFIXES):
            raise CorpusError(f"{str(path)!r} is of no known kind. Known: {', '.join(SUFFIXES)}.")
        else:
            yield path, path.name


def _read(path: Path, doc_id: str) -> Iterator[tuple[int, Document | str]]:
    """(line, document) or (line, reason why there is none)."""
    name = path.name.lower()
    try:
        if name.endswith((".jsonl", ".jsonl.gz")):
            yield from _jsonl(path)
        elif name.endswith(".csv"):
            yield from _csv(path)
        else:
            yield 1, _prose(path, doc_id, markdown=not name.endswith(".txt"))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, _Unreadable) as error:
        yield 0, f"the file cannot be read to its end: {error}"


class _Unreadable(ValueError):
    """A record or file that gives no document; the message says why."""


def _jsonl(path: Path) -> Iterator[tuple[int, Document | str]]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        for line, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            try:
                record = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
                yield line, _document(record, path)
            except UnicodeDecodeError as error:
                yield line, f"not UTF-8: {error.reason} at byte {error.start}"
            except json.JSONDecodeError as error:
                yield line, f"not JSON: {error.msg} at column {error.colno}"
            except RecursionError:
                yield line, "not usable: nested too deeply"
            except _Unreadable as error:
                yield line, str(error)


def _no_constant(name: str) -> None:
    raise _Unreadable(f"{name} is no JSON number")


def _csv(path: Path) -> Iterator[tuple[int, Document | str]]:
    rows = csv.DictReader(_decoded(path.read_bytes()).splitlines(keepends=True), strict=True)
    for row in rows:
        try:
            if None in row:
                raise _Unreadable(f"more cells than the {len(rows.fieldnames or [])} columns of the header")
            yield rows.line_num, _document({k.strip(): _typed(v) for k, v in row.items() if v and v.strip()}, path)
        except _Unreadable as error:
            yield rows.line_num, str(error)


def _typed(cell: str) -> Any:
    """A cell as the value that it spells.

    >>> _typed("1993"), _typed("7.5"), _typed("Drama | Comedy"), _typed("007"), _typed("喜剧；爱情")
    (1993, 7.5, ['Drama', 'Comedy'], '007', ['喜剧', '爱情'])
    """
    cell = cell.strip()
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", cell):
        return int(cell)
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})\.\d{1,15}", cell):
        return float(cell)
    if len(cell) < 300 and re.search(r"[|；]", cell):
        return [part.strip() for part in re.split(r"[|；]", cell) if part.strip()]
    return cell


def _prose(path: Path, doc_id: str, *, markdown: bool) -> Document:
    text, record = _decoded(path.read_bytes()), dict[str, Any]()
    if markdown:
        text, record = _front_matter(text)
        heading = re.search(r"^#{1,6}\s+(.+?)\s*#*$", text, re.MULTILINE)
        record.setdefault("title", heading[1] if heading else path.stem)
        text = re.sub(r"^#{1,6}\s+", "", text, flags=re.MULTILINE)
    return _document({"id": doc_id, "title": path.stem, **record, "text": text}, path)


def _front_matter(text: str) -> tuple[str, dict[str, Any]]:
    """The text and the ``key: value`` lines between the two ``---`` at its head; a value may be JSON or ``a | b``."""
    match = re.match(r"---\s*\n(.*?)\n---\s*\n", text, re.DOTALL)
    if not match:
        return text, {}
    pairs = re.findall(r"^([\w-]+):[ \t]*(.+?)[ \t]*$", match[1], re.MULTILINE)
    return text[match.end() :], {name: _json_or_cell(value) for name, value in pairs}


def _json_or_cell(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=_no_constant)
    except ValueError:
        return _typed(value.strip("'\""))


def _decoded(raw: bytes) -> str:
    """Text of any of the encodings in which Chinese and English files are found."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("gb18030")


def _document(record: Any, path: Path) -> Document:
    if not isinstance(record, dict):
        raise _Unreadable(f"a JSON object is needed, not {type(record).__name__}")
    record = _cleaned(record)
    text = next((record[key] for key in TEXT_KEYS if isinstance(record.get(key), str) and record[key].strip()), "")
    if not text:
        raise _Unreadable(f"no text: give one of {', '.join(TEXT_KEYS)}")
    title = str(record.get("title") or "").strip() or sentences(text)[0][:80]
    doc_id = record.get("id", f"{path.name.split('.')[0]}-{hashlib.sha256((title + text).encode()).hexdigest()[:10]}")
    if isinstance(doc_id, bool) or not isinstance(doc_id, str | int) or not str(doc_id).strip():
        raise _Unreadable(f"id is {doc_id!r}: a string or a whole number is needed")
    return Document(
        doc_id=str(doc_id).strip(),
        title=title,
        text=text.strip(),
        url=str(record.get("url") or ""),
        licence=str(record.get("licence") or record.get("license") or ""),
        type=str(record.get("type") or "Document"),
        fields={name: value for name, value in record.items() if name not in _RESERVED and value not in (None, "", [])},
        aliases=tuple(dict.fromkeys(_strings(record.get("aliases"), "aliases"))),
        names=_names(record.get("names")),
        source=path.resolve().as_posix(),
    )


def _names(value: Any) -> dict[str, list[str]]:
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise _Unreadable('names must be an object such as {"Ang Lee": ["李安"]}')
    return {name: _strings(others, f"names of {name!r}") for name, others in value.items()}


def _strings(value: Any, what: str) -> list[str]:
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(v, str) for v in values):
        raise _Unreadable(f"{what} must be a list of strings")
    return [v.strip() for v in values if v.strip()]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(v) for v in value]
    if isinstance(value, dict):
        return {clean(str(k)): _cleaned(v) for k, v in value.items()}
    return value
