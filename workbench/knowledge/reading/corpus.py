"""Read files and folders as documents, and cut documents into passages.

A record's text is its ``text``, ``overview`` or ``content``. ``id``, ``title``, ``url``, ``licence``, ``type`` (of what
the document is about: ``Paper``), ``aliases`` (other names of the document) and ``names`` (other names of anybody in
it, ``{"Lao She": ["老舍"]}``) are read by name; everything else becomes a typed field, of which some are other names
too (``title_en``, ``authors_zh``: ``vocabulary.py``). Triples give one document per head. What cannot be read is listed
with file, line and reason, and the rest is used.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import yaml

from workbench import extensions
from workbench.errors import shown
from workbench.knowledge import vocabulary
from workbench.knowledge.reading import formats as documents
from workbench.knowledge.reading import tables
from workbench.knowledge.reading.blocks import Block, blocks, laid_out
from workbench.knowledge.reading.files import (
    BROKEN,
    STRUCTURE,
    Note,
    Unreadable,
    files,
    lines,
    must_be_file,
    path_kind,
    read_text,
)
from workbench.plans import canonical_json
from workbench.state import Data, Json, as_list, drop, unique
from workbench.text import CJK, amount, clean, fold, iso, sentences, text_digest

TEXT_KEYS = ("text", "overview", "content", "正文", "内容", "简介")
_SYNONYMS = {"title": ("name", "标题", "题名", "名称", "姓名"), "id": ("编号", "id")}
"""Other keys for a title and an id, in any case; as fields they keep their names."""
_TIGHT = tuple("。！？；，、》”")
_DEEPEST = 20
_READ_BY_NAME = {*TEXT_KEYS, "id", "title", "url", "licence", "license", "type"}
_RESERVED = _READ_BY_NAME | {"aliases", "names", STRUCTURE}
_UNTYPED = frozenset(_READ_BY_NAME.union(*_SYNONYMS.values()))
"""Columns that are text whatever is written in them."""
_LINK = re.compile(r"!?\[\[([^\[\]|#^]*)((?:#[^\[\]|]*)?)(?:\|([^\[\]]*))?\]\]")
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(.*?\n)(?:\1|\.\.\.)[ \t]*(?:\r?\n|$)", re.DOTALL)
_ILLEGIBLE: dict[int, str | None] = dict.fromkeys(
    [*range(9), *range(14, 32), 0x7F, 0xAD, 0x200B, 0x2060, 0xFEFF]
)
_ILLEGIBLE |= {0x0B: "\n", 0x0C: "\n\n", 0x0D: "\n", 0x85: "\n", 0x2028: "\n", 0x2029: "\n\n"}


class Problem(TypedDict):
    """One line or file that was left out, and why. ``line`` counts from 1; 0 means the whole file."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class Document:
    """One document as loaded. ``source`` is the file it came from; it does not count as content."""

    doc_id: str
    title: str
    text: str
    url: str = ""
    licence: str = ""
    type: str = "Document"
    fields: Data = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    names: Mapping[str, list[str]] = field(default_factory=dict)
    source: str = ""

    def digest(self) -> str:
        """Return hex digest of the content: two documents with one digest are the same document."""
        content = drop(vars(self), "doc_id", "source")
        return text_digest(canonical_json([self.doc_id, content]))


class Place(NamedTuple):
    """Where a document was read: source, line, digest."""

    source: str
    line: int
    digest: str


class Reading:
    """The documents of these files and folders one by one, in their order; a second one of an id is a problem.

    Only the ids are held, in ``places``, which may be on disk. ``problems`` and ``sources`` are complete when the last
    document has come.

    Raises:
        CorpusError: a path does not exist, or a named file is of no known kind.
    """

    def __init__(self, roots: Sequence[Path]):
        self.problems: list[Problem] = []
        self.sources = set[str]()
        self.places: Any = dict[str, Place]()
        self._folders = tuple(
            f"{path.resolve().as_posix()}/" for path in roots if path_kind(path) == "folder"
        )
        # those that parts read first: a canvas says more of a file than the file alone
        self._files = sorted(
            files(roots), key=lambda file: not file[1].endswith((*extensions.paths("readers"),))
        )

    def __iter__(self) -> Iterator[Document]:
        with documents.Reader() as reader:
            for path, name, why in self._files:
                source = Path(
                    os.path.realpath(path)
                ).as_posix()  # which takes a loop of links too
                if why or source in self.sources:
                    continue
                self.sources.add(source)
                renamed = 0
                for line, result in _read(path, name, reader, self.sources):
                    if isinstance(result, str):
                        self._leave_out(path, line, result)
                    elif document := self._placed(result, path, line):
                        renamed += document.doc_id != result.doc_id
                        yield document
                if renamed:
                    why = f"{renamed:,} ids are of other files too, and begin with the name of this one here"
                    self._leave_out(
                        path,
                        0,
                        Note(f"{why}: kb add --replace puts these documents in place of those"),
                    )
        for path, name, why in self._files:
            if why and not name.endswith(vocabulary.FILE):
                self._leave_out(path, 0, why)

    def _placed(self, document: Document, path: Path, line: int) -> Document | None:
        """Return the document under an id that no other source has; None for one that was read already."""
        digest = document.digest()
        source = document.source
        for doc_id in _own_ids(document, path):
            place = self.places.get(doc_id)
            equal = place is not None and place.digest == digest
            if place and place.line and (place.source == source or equal):
                why = f"was used before ({Path(place.source).name}, line {place.line}); the first is kept"
                self._leave_out(path, line, Note(f"id {shown(doc_id)} {why}"))
                return None
            holder = place and (place.line or not self.has_lost(place.source))
            if not holder or place.source == source or equal:
                owner = (
                    place.source if place and equal and Path(place.source).exists() else source
                )
                self.places[doc_id] = Place(source, line, digest)
                return replace(document, doc_id=doc_id, source=owner)
        return None

    def has_lost(self, source: str) -> bool:
        """Check whether a file is gone from a folder that was given."""
        return source.startswith(self._folders) and not Path(source).exists()

    def _leave_out(self, path: Path, line: int, reason: str) -> None:
        self.problems.append({"file": str(path), "line": line, "reason": reason})


def _own_ids(document: Document, path: Path) -> Iterator[str]:
    """Yield the id of a document, then with more and more of its path before it."""
    yield document.doc_id
    parts = path.resolve().as_posix().split("/")
    name = document.doc_id.partition("#")[0]
    depth = name.count("/") + 1
    own_id = document.doc_id
    if "/".join(parts[-depth:]) != name:  # an id that is not the name of the file
        own_id = f"{parts[-1]}#{own_id}"
        depth = 1
        yield own_id
    for part in reversed(parts[:-depth]):
        own_id = f"{part}/{own_id}"
        yield own_id


def made_title(text: str) -> str:
    r"""Return the title of a document that has none: its beginning, to be shown. It counts for nothing in a search.

    >>> made_title("Hello there. More."), made_title("- age: 3\n- species: Gentoo\n- sex: female")
    ('Hello there.', 'Gentoo, female')
    """
    values = re.findall(r"(?m)^- [^:\n]{1,80}: (.+)", text)
    words = [value for value in values if not amount(value)]  # numbers say little of what it is
    return (", ".join((words or values)[:3]) or sentences(re.sub("^(?:-|#+) ", "", text))[0])[:80]


def chunks(text: str, limit: int, title: str = "") -> list[str]:
    r"""Return text in passages of at most ``limit`` characters; each, and each section in it, begins with its headings.

    Prose is cut between sentences; a list item, a row and a block of code only where they are longer than a passage.
    A table that continues has its head again. The document's own title is no heading.

    >>> chunks("One is here. Two is here. Three is here.", 26)
    ['One is here. Two is here.', 'Three is here.']
    >>> chunks("他来了。她走了。", 5)
    ['他来了。', '她走了。']
    >>> chunks("# Tea\n## Green\nIt is hot.\n- one\n- two", 100, "Tea")
    ['# Green\n\nIt is hot.\n\n- one\n- two']
    """
    passages = []
    body = ""
    for glue, piece, opening in _pieces(text, limit, fold(title)):
        if body and piece and len(body) + len(glue) + len(piece) <= limit:
            body += glue + piece
        else:
            passages += [body] * bool(body)
            body = opening
    return [*passages, body] if body else passages


def _pieces(text: str, limit: int, title: str) -> Iterator[tuple[str, str, str]]:
    """Yield the space before a piece, the piece, and the piece as it begins a passage; an empty one ends a passage."""
    path = list[tuple[int, str]]()
    unused = list[tuple[int, str]]()
    last = Block("heading", "")
    for block in chain(blocks(text), [Block("heading", "")]):
        if block.kind == "heading" and len(block.text) <= limit // 3:
            for level, heading in unused:
                if level >= block.level:  # a heading without a text becomes a text
                    yield "\n\n", f"# {heading}", f"# {heading}"
            path, unused = (
                [section for section in open if section[0] < block.level]
                for open in (path, unused)
            )
            if fold(block.text) == title:
                yield "", "", ""  # what follows is under no heading
            elif block.text:
                path.append((block.level, block.text))
                unused.append(path[-1])
            last = block
        elif block.text.strip():
            above = [heading for _, heading in path]
            while len(" › ".join(above)) > limit // 3:
                above = above[1:]
            headings = f"# {' › '.join(above)}\n\n" if path else ""
            for glue, piece, opening in _cut(block, last, limit - len(headings)):
                begins = last.kind == "heading" and path
                yield glue, headings + opening if begins else piece, headings + opening
                unused = [section for section in unused if section[1] not in above]
                last = Block("text", "")
            last = block


def _cut(block: Block, last: Block, room: int) -> Iterator[tuple[str, str, str]]:
    """Yield the pieces of a block that have room in a passage; ``last`` is the block before it.

    Code that is longer is cut like prose, without its fences.
    """
    glue = "\n" if block.kind == last.kind and not block.apart else "\n\n"
    head = f"{block.head}\n" if block.kind == "row" and block.head else ""
    continues = last.kind == "row" and last.head == block.head and not block.apart
    text = block.text if continues else head + block.text
    fenced = "\n".join([block.head, block.text, re.sub("[^`~].*", "", block.head)])
    if block.kind == "code" and len(fenced) <= room:
        yield glue, fenced, fenced
    elif block.kind in ("row", "item") and len(head) + len(block.text) <= room:
        yield glue, text, head + block.text
    else:
        code = block.kind == "code"
        before = ""
        parts = [*filter(str.strip, text.split("\n"))] if code else sentences(text)
        for part in (
            part
            for long in parts
            for part in ([long] if len(long) <= room else _short(long, room))
        ):
            tight = CJK.match(part) and before.endswith(_TIGHT)
            joint = "\n" if code else " " * (not tight)
            yield joint if before else glue, part, part
            before = part


def _short(sentence: str, limit: int) -> Iterator[str]:
    begin = 0
    while len(sentence) - begin > limit:
        cut = sentence.rfind(" ", begin + limit // 2, begin + limit)
        cut = cut if cut > begin else begin + limit
        if part := sentence[begin:cut].strip():
            yield part
        begin = cut
    if rest := sentence[begin:].strip():
        yield rest


Read = Iterator[tuple[int, Document | str]]
"""``(line, document)``, or ``(line, reason)`` why there is none."""


def _read(path: Path, doc_id: str, reader: documents.Reader, also: set[str]) -> Read:
    """Yield the documents of a file; ``also`` gets other files that were read for it."""
    name = path.name.lower()
    suffix = path.suffix.lower()
    try:
        must_be_file(path)
        if name.endswith((".jsonl", ".jsonl.gz")):
            yield from _documents(partial(_json_lines, path), path)
        elif suffix == ".json":
            yield from _json_file(path, doc_id)
        elif name.endswith(tables.TRIPLES) and tables.are_triples(path):
            yield from _triples(path)
        elif name.endswith((".csv", *tables.TRIPLES)):
            yield from _documents(partial(tables.records, path, _UNTYPED), path, is_table=True)
        elif read := extensions.provided("readers", suffix):
            yield from read(
                path, doc_id, lambda file, title: _read(file, title, reader, also), also
            )
        elif suffix in documents.READERS:
            yield from _formatted(path, doc_id, reader)
        else:
            yield from _prose(path, doc_id, suffix)
    except Unreadable as error:
        yield 0, str(error)
    except (*BROKEN, UnicodeDecodeError) as error:
        yield 0, f"the file cannot be read to its end: {error}"


def _formatted(path: Path, doc_id: str, reader: documents.Reader) -> Read:
    record = reader.read(path)
    sheets = record.pop("sheets", [])
    for sheet in sheets:
        yield from _documents(partial(tables.sheet, sheet, _UNTYPED), path, is_table=True)
    if attached := record.get("attachments"):
        yield 0, Note(f"what is attached is not read: {shown(', '.join(attached))}")
    if not sheets:
        title = str(record.get("title") or "")[:200]  # a subject may be a paragraph
        yield 1, _file_document({"id": doc_id, **record, "title": title}, path)


def _documents(read: Callable[[], tables.Records], path: Path, *, is_table: bool = False) -> Read:
    """Yield the documents of records; equal rows of a table are several documents."""
    equal = Counter[str]()
    for line, record in _with_titles(read):
        document: Document | str
        try:
            if isinstance(record, Unreadable):
                raise record
            document = record if isinstance(record, Note) else _document(record, path)
        except Unreadable as error:
            document = str(error)
        if is_table and isinstance(document, Document) and "id" not in record:
            equal[document.doc_id] += 1
            number = equal[document.doc_id]
            if number > 1:
                document = replace(document, doc_id=f"{document.doc_id}-{number}")
        yield line, document


def _json_lines(path: Path) -> tables.Records:
    for number, line in lines(path):
        try:
            if isinstance(line, Unreadable):
                raise line
            # str.strip() would drop separators too, and a line that holds them is bad
            if line.strip(" \t\r\n\v\f"):
                yield number, _json(line)
        except Unreadable as error:
            yield number, error


def _with_titles(read: Callable[[], tables.Records]) -> tables.Records:
    """Yield records, each with a title: without one it is what their first keys say, as many as tell them all apart.

    A single such key of one word, such as ``mission`` or 菜名, says what the records are.

    Args:
        read: returns the records from the beginning, at each call.
    """
    keys = _naming_keys(record for _, record in read() if isinstance(record, dict))
    word = keys[0].removesuffix("称").removesuffix("名") if len(keys) == 1 else ""
    for number, record in read():
        if keys and isinstance(record, dict):
            kind = {"type": word} if word.isalpha() and not iso(record[keys[0]]) else {}
            record = {**kind, **record, "title": ", ".join(str(record[key]) for key in keys)}
        yield number, record


def _naming_keys(records: Iterable[Json]) -> list[str]:
    longest = 80
    titles = ("title", *_SYNONYMS["title"])
    keys = list[str]()
    apart = {n: set[int]() for n in (1, 2, 3)}
    for record in records:
        if any(value and name.lower() in titles for name, value in record.items()):
            return []
        texts = [name for name, value in record.items() if isinstance(value, str | int)]
        keys = keys or [name for name in texts if name.lower() not in _RESERVED][:3]
        names = [record.get(key) for key in keys]
        short = [isinstance(name, str | int) and len(str(name)) <= longest for name in names]
        for n, seen in [*apart.items()]:
            row = hash(str(names[:n]))
            if n > len(names) or not all(short[:n]) or row in seen:
                del apart[n]
            else:
                seen.add(row)
        if not apart:
            return []
    return keys[: min(apart)]


def _triples(path: Path) -> Read:
    source = path.resolve().as_posix()
    for line, head in tables.heads(path):
        if isinstance(head, str):
            yield line, head
            continue
        name, tails = head
        text = tables.head_text(name, tails)
        names = tuple(dict.fromkeys(vocabulary.other_names(tails)))
        more: Any = {"type": tables.NODE, "fields": tails, "aliases": names, "source": source}
        yield line, Document(name, name, text, **more)


def _json_file(path: Path, doc_id: str) -> Read:
    """Read a list of objects, or an object around one list of them, as records; another object is one document.

    Objects that are alike, by their names, are such a list.
    """
    content = _json(read_text(path))
    single = isinstance(content, Mapping)
    if single and not any(_text(content.get(key)) for key in TEXT_KEYS):
        tables = [table for value in content.values() if (table := _table(value))]
        frame = [name for name, value in content.items() if not _table(value)]
        if whole := _table(content):
            content = whole
            single = False
        elif len(tables) == 1 and not any(
            isinstance(content[name], Mapping | list) for name in frame
        ):
            if frame:
                why = f"what stands around its list is left out: {shown(', '.join(frame))}"
                yield 0, Note(why)
            content = tables[0]
            single = False
    if single:
        content = [{"id": doc_id, "title": path.stem, **content}]
    records = list(chain.from_iterable(map(_parts, as_list(content))))
    for number, document in _documents(lambda: enumerate(records, 1), path):
        yield number, f"record {number}: {document}" if isinstance(document, str) else document


def _table(value: Any) -> list[Any]:
    """Return the objects of a list, or of an object most of whose keys its objects share; [] for anything else."""
    if isinstance(value, Mapping):
        inner = [*value.values()]
        if len(inner) < 3 or not all(isinstance(record, Mapping) for record in inner):
            return []
        shared = set.intersection(*map(set, inner))
        named = [{"name": name, **record} for name, record in value.items()]
        return named if 2 * len(shared) > len(set.union(*map(set, inner))) else []
    is_list = isinstance(value, list) and all(isinstance(record, Mapping) for record in value)
    return value if is_list else []


def _parts(record: Any) -> Iterator[Any]:
    """Yield the records that are the text of a record, each with its other keys; else the record."""
    content = [record.get(key) for key in TEXT_KEYS] if isinstance(record, Mapping) else []
    lists = [v for v in content if v and isinstance(v, list) and isinstance(v[0], Mapping)]
    frame = {k: v for k, v in record.items() if k != "id" and v not in lists} if lists else {}
    for part in lists[0] if len(lists) == 1 else ():
        yield {**frame, **part} if isinstance(part, Mapping) else part
    if len(lists) != 1:
        yield record


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise Unreadable(f"nested deeper than {_DEEPEST} levels: make it flatter") from None
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(f"not usable: {error}") from None


def _no_constant(name: str) -> None:
    raise Unreadable(f"{name} is no JSON number: leave it out, or write null")


def _prose(path: Path, doc_id: str, suffix: str) -> Read:
    text = read_text(path)
    record = Json()
    if suffix == ".rst":
        text = _as_markdown(text)
        # a heading behind a paragraph is a section's
        record["title"] = documents.first_heading(text) if text.startswith("# ") else ""
    elif suffix == ".txt":
        text = laid_out(text)
    else:
        try:
            text, record = _front_matter(text)
        except Unreadable as error:
            yield 1, str(error)
        text = unlinked(_COMMENT.sub(lambda match: match[1] or "", text))
        record.setdefault("title", documents.first_heading(text))
    yield 1, _file_document({"id": doc_id, **record, "text": text}, path)


def _file_document(record: Json, path: Path) -> Document:
    """Return the document of a file, titled by its name where it has no title: by its folder's where that says more."""
    if isinstance(record.get("title"), Mapping):  # in several languages
        return _document(record, path)
    name = path.parent.name if path.stem.lower() in ("readme", "index") else path.stem
    title = str(record.get("title") or name).strip()
    if title.casefold() != name.casefold():
        record["aliases"] = [*_strings(record.get("aliases"), "aliases"), name]
    return _document({**record, "title": title}, path)


def unlinked(text: str) -> str:
    """Return a text in which each link to a note is the words that it shows.

    >>> unlinked("Ask [[Notes/lamp|the lamp]] or [[gate]] and [[lamp#Oil]].")
    'Ask the lamp or gate and lamp > Oil.'
    """
    return _LINK.sub(
        lambda link: link[3] or " > ".join(filter(None, (link[1], link[2].strip("#^")))), text
    )


def _as_markdown(text: str) -> str:
    r"""Return reStructuredText with its headings as in Markdown, without the names of its directives and roles.

    Pictures, comments and the targets of links are left out.

    >>> _as_markdown("====\n Kiln\n====\n\n.. note:: Hot.\n\nSee :ref:`the lamp <lamp>`::\n\n  x\n\nUse\n---\n.. No.\n")
    '# Kiln\n\nHot.\n\nSee the lamp:\n\n  x\n\n## Use'
    """
    levels = dict[str, int]()

    def heading(match: re.Match[str]) -> str:
        mark = match[1] or match[4]
        over = bool(match[1])  # a line over it makes another level
        return f"{'#' * levels.setdefault(f'{mark}{over}', len(levels) + 1)} {(match[2] or match[3]).rstrip()}"

    mark = r"([=~^\"'*+#`:._-])"
    text = re.sub(
        rf"(?m)^{mark}\1{{2,}}[ \t]*\n[ \t]*(\S.*)\n\1{{3,}}[ \t]*$|^(\S.*)\n{mark}\4{{2,}}[ \t]*$",
        heading,
        text,
    )
    pictures = {*re.findall(r"(?m)^\.\. \|([^|\n]+)\| image::", text)}
    text = re.sub(r"(?m)^[ \t]*\.\. (?:\|.+?\| +)?image::.*(?:\n[ \t]+\S.*)*", "", text)
    text = re.sub(r"\|(?=\S)([^|\n]+)\|", lambda m: "" if m[1] in pictures else m[0], text)
    # the options of a directive, its body stays
    text = re.sub(r"(?m)^[ \t]*\.\. [\w:-]+::[ \t]*(.*)(?:\n[ \t]+:[\w-]+:.*)*", r"\1", text)
    text = re.sub(r"(?m)^[ \t]*\.\. (?!\[\w+\] |\|).*(?:\n+[ \t]+\S.*)*", "", text)
    text = re.sub(r"(?m)^[ \t]*:(?:[\w-]+)?:[ \t]*$", "", text)
    text = re.sub(r"(?m):{2}[ \t]*$", ":", text)
    text = re.sub(
        r"(?::[\w:+.-]{1,60}:)?(``?)~?([^`<\n]+?)(?:\s*<[^<>`]*>)?\1_{0,2}", r"\2", text
    )
    return text.strip()


def _front_matter(text: str) -> tuple[str, Json]:
    """Return the text, and the fields that YAML (---) or TOML (+++) at its head give.

    Raises:
        Unreadable: it is not what its marks say.
    """
    match = _FRONT.match(text)
    if not match:
        return text, {}
    try:
        values = (
            tomllib.loads(match[2], parse_float=str)
            if match[1] == "+++"
            else yaml.load(match[2], Loader=_Plain)
        )
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        why = str(getattr(error, "problem", None) or error or "nested too deep")
        place = getattr(error, "problem_mark", None)
        where = f"line {place.line + 2}: " if place else ""
        fix = "quote a value that holds ': ' or begins with '{'"
        raise Unreadable(
            f"the front matter cannot be read ({where}{why}), and is kept as text: {fix}"
        ) from None
    if not isinstance(values, dict):  # two rules, and prose between them
        return text, {}
    return text[match.end() :], {
        name: _front_value(value) for name, value in values.items() if isinstance(name, str)
    }


_COMMENT = re.compile(r"(?ms)(^```.*?^```)|<!--(?:(?!<!--).)*?-->")
"""A comment of HTML, which is not for readers; in a block of code it is what the code says."""


class _Plain(yaml.BaseLoader):
    """YAML without guesses, so that a version, a time and ``no`` stay what is written, and without references."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a reference to another value")
        return super().compose_node(parent, index)


def _front_value(value: Any) -> Any:
    """Return a value as the type that it spells; of a list of persons or places their names."""
    if isinstance(value, list):
        cells = value[0].split("，") if len(value) == 1 and isinstance(value[0], str) else value
        return [
            _front_value(cell.get("name", cell) if isinstance(cell, dict) else cell)
            for cell in cells
            if cell
        ]
    if isinstance(value, dict):
        return {str(name): _front_value(inner) for name, inner in value.items()}
    if not isinstance(value, str):
        return value.isoformat() if hasattr(value, "isoformat") else value
    return {"true": True, "false": False, "null": None, "~": None}.get(
        value.lower(), tables.typed(unlinked(value))
    )


def _document(record: Any, path: Path) -> Document:
    longest_id = 500
    if not isinstance(record, dict):
        raise Unreadable(f"a JSON object is needed, not {type(record).__name__}")
    record = _cleaned(record)
    for name in [*record]:
        key = name.lower()
        if key in _READ_BY_NAME - {"id", *record}:  # of two keys one stays a field
            record[key] = record.pop(name)
    lengths = {"title": 500, "url": 2_000, "licence": 2_000, "license": 2_000, "type": 200}
    for name, longest in lengths.items():
        if len(str(record.get(name) or "")) > longest:
            raise Unreadable(f"{name} has more than {longest:,} characters: shorten it")
    for key, synonyms in _SYNONYMS.items():
        values = [value for name, value in record.items() if value and name.lower() in synonyms]
        if record.get(key) in (None, "") and values:
            record[key] = values[0]
    names = record.get("title")
    if isinstance(names, Mapping):  # in several languages
        record["title"], *others = [text for _, text in _flat("", names)] or [""]
        record["aliases"] = [*_strings(record.get("aliases"), "aliases"), *others]
        record = {name: value for name, value in record.items() if value is not names}
    key = next((key for key in TEXT_KEYS if _text(record.get(key))), "")
    text = _text(record.pop(key)) if key else ""
    kinds = record.get("type") if isinstance(record.get("type"), list) else ""  # of one document
    fields = {
        name: value
        for name, value in _without_objects(record)
        if (name not in _RESERVED - {*TEXT_KEYS} or value is kinds)
        and value not in (None, "", [])
    }
    title = str(record.get("title") or "").strip()
    licences = {name: record[name] for name in ("licence", "license") if record.get(name)}
    if not text:  # what a row of a table describes has a licence of its own
        fields |= licences
    lines, sections = _card(title, fields)
    text = "\n\n".join(filter(None, [text or lines, *sections])) or title
    if not text:
        raise Unreadable(f"no text: give one of {', '.join(TEXT_KEYS)}, or fields")
    title = title or made_title(text)
    doc_id = record.get(
        "id",
        f"{path.name.split('.')[0]}-{text_digest(title + text, 10)}",
    )
    if isinstance(doc_id, bool) or not isinstance(doc_id, str | int) or not str(doc_id).strip():
        raise Unreadable(f"id is {shown(doc_id)}: a string or a whole number is needed")
    if len(str(doc_id)) > longest_id:
        raise Unreadable(f"id has more than {longest_id} characters: shorten it")
    aliases_given = [*_strings(record.get("aliases"), "aliases"), *vocabulary.other_names(fields)]
    return Document(
        doc_id=str(doc_id).strip(),
        title=title,
        text=text.strip(),
        url=str(record.get("url") or ""),
        licence=str(next(iter(licences.values()), "")),
        type="Document" if kinds else dict(_flat("", record.get("type"))).get("", "Document"),
        fields=fields,
        aliases=tuple(name for name in dict.fromkeys(aliases_given) if name != title),
        names=_names(record.get("names"), fields),
        source=path.resolve().as_posix(),
    )


def _without_objects(record: Data) -> Iterator[tuple[str, Any]]:
    """Yield keys and values, of an object in the record its own: ``size`` and ``width`` are ``size width``."""
    for name, value in record.items():
        if isinstance(value, Mapping) and name not in _RESERVED:
            yield from ((f"{name} {key}", inner) for key, inner in value.items())
        else:
            yield name, value


def _card(title: str, fields: Data) -> tuple[str, list[str]]:
    r"""Return the text of a record that has none: a line for each field; and the sections of those with sentences.

    >>> _card("Mara", {"name": "Mara", "topics": ["tea", "bees"], "home": {"city": "Oslo"}})
    ('- topics: tea, bees\n- home city: Oslo', [])
    >>> _card("Kruger", {"size": 19485, "notes": ["Home to many lions.", "It is dry."]})
    ('- size: 19485', ['# notes\n\nHome to many lions.\nIt is dry.'])
    """
    lines = []
    sections = []
    for name, value in _flat("", fields):
        if _is_prose(value):
            sections.append(f"# {name}\n\n{value}")
        elif value != title:
            lines.append(f"- {name}: {value}")
    return "\n".join(lines), sections


def _is_prose(text: str) -> bool:
    """Check whether a value is written in sentences; a pattern would take time with the square of its length."""
    ends = text.rstrip().endswith((".", "!", "?")) and len(text.split(None, 3)) > 3
    return ends or any(mark in text for mark in "。！？")


def _text(value: Any) -> str:
    """Return a text, or one of its lines; "" for what is neither."""
    lines = as_list(value)
    return "\n".join(lines).strip() if all(isinstance(line, str) for line in lines) else ""


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name} {key}".strip(), inner)
    elif isinstance(value, list) and any(isinstance(inner, Mapping | list) for inner in value):
        for inner in value:
            first, *more = [*_flat("", inner)] or [("", "")]
            if more:  # what is said of one thing stays together
                yield name, "; ".join(f"{key} {text}".strip() for key, text in (first, *more))
            elif first[1]:
                yield f"{name} {first[0]}".strip(), first[1]
    elif value not in (None, "", []):
        lines = [str(line) for line in as_list(value)]
        yield name, ("\n" if any(map(_is_prose, lines)) else ", ").join(lines)


def legible(text: str) -> str:
    r"""Return a text without what is not visible: pictures in letters, signs that steer a terminal or break words.

    >>> legible("so\u00adft \x1b[31mred\x1b[0m\x0cpage\r\n![x](data:image/png;base64,AAAA)")
    'soft red\n\npage\n![x]()'
    """
    text = clean(text)
    if "data:" in text:
        text = re.sub(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=\s]{4,}", "", text)
    if text.isascii() and text.isprintable():
        return text
    text = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", text.replace("\r\n", "\n"))
    return text.translate(_ILLEGIBLE)


def _names(value: Any, fields: Data) -> dict[str, list[str]]:
    if not isinstance(value, dict) and value not in (None, ""):
        raise Unreadable('names must be an object such as {"Lao She": ["老舍"]}')
    names = {
        name: _strings(values, f"names of {name!r}") for name, values in (value or {}).items()
    }
    for name, alias in vocabulary.other_names_of_values(fields):
        names[name] = unique([*names.get(name, []), alias])
    return names


def _strings(value: Any, what: str) -> list[str]:
    if value is None:
        return []
    values = as_list(value)
    if not all(isinstance(v, str) for v in values):
        raise Unreadable(f"{what} must be a list of strings")
    return [v.strip() for v in values if v.strip()]


def _cleaned(value: Any, depth: int = 0) -> Any:
    """Return the value with every text clean, and nothing that a store, a checkpoint or JSON would not give back."""
    if depth > _DEEPEST:
        raise Unreadable(f"nested deeper than {_DEEPEST} levels: make it flatter")
    if isinstance(value, str):
        return legible(value)
    if isinstance(value, list):
        return [_cleaned(v, depth + 1) for v in value]
    if isinstance(value, dict):
        return {clean(str(k)): _cleaned(v, depth + 1) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise Unreadable("a number is too large: leave it out, or write it as text")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise Unreadable(
            f"{shown(value)} is a whole number of more than 64 bits: write it as text"
        )
    return value
