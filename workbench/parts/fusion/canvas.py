"""Read JSON Canvas 1.0: a file of nodes (text, file, link, group) and edges.

A problem of a node or an edge is reported with its id and the fix; the element stays in the file unchanged, and the
rest is used. The groups around a node say what it belongs to. Nothing is fetched, and no file outside the folder of the
canvas is opened.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from workbench.errors import CorpusError, shown
from workbench.knowledge.reading.corpus import Document, Read, unlinked
from workbench.knowledge.reading.files import (
    STRUCTURE,
    SUFFIXES,
    Unreadable,
    must_be_file,
    must_be_short,
)
from workbench.knowledge.reading.tables import TRIPLES, in_words
from workbench.state import Data, Json, pick, without_empty
from workbench.text import clean, sentences

SUFFIX = ".canvas"
CONTENT = {"text": "text", "file": "file", "link": "url", "group": ""}
"""The key that a node of each type must have."""
COLORS = {"1": "red", "2": "orange", "3": "yellow", "4": "green", "5": "cyan", "6": "purple"}
LEADS_TO, IN_GROUP = "leads_to", "in_group"
ARRAYS = ("nodes", "edges")
VAULT = ".obsidian"
"""The folder at the root of a vault, from which its canvases name files."""
_PLACE = ("x", "y", "width", "height")
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_EMPHASIS = re.compile(r"\*{1,3}|`|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")
_NO_ID = "has no id: give it one, a short text that no other has"
_TWICE = "is there twice, and the first is kept: give this one another id"
_ENDS_SENTENCE = tuple(".!?。！？…;；")


class CanvasError(CorpusError, Unreadable):
    """A canvas cannot be read or written; the message names the node and the fix."""


class Canvas:
    """The canvas that a text holds.

    Attributes:
        raw, content: the text, and what it holds.
        nodes: the usable ones by id, in the order of the file.
        edges: the usable ones by id.
        problems: what is wrong with the others, and the fix.
    """

    def __init__(self, raw: str = "{}"):
        self.raw = raw
        self.nodes: dict[str, Json] = {}
        self.edges: dict[str, Json] = {}
        self.problems: list[str] = []
        self.content = _parsed(raw)
        for name, elements, check in (
            ("nodes", self.nodes, _node_faults),
            ("edges", self.edges, self._edge_faults),
        ):
            for number, element in enumerate(self.content.get(name, ()), 1):
                label = f"{name[:-1]} number {number}"
                faults = [(_NO_ID, True)]
                if _has_id(element):
                    label = f"{name[:-1]} {shown(element['id'])}"
                    faults = (
                        [(_TWICE, True)] if element["id"] in elements else list(check(element))
                    )
                self.problems += [f"{label} {reason}" for reason, _ in faults]
                if not any(fatal for _, fatal in faults):
                    elements[element["id"]] = element

    @staticmethod
    def read_text(path: Path) -> str:
        """Return the text of a file.

        Raises:
            Unreadable: it is no file, too long, or not UTF-8; with the fix.
        """
        if not path.exists():
            raise CanvasError("there is no such file: name one that is there")
        if not path.is_file() or path.stat().st_size:  # a new canvas is an empty file
            must_be_file(path)
        must_be_short(path)
        try:
            return path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise CanvasError(
                f"not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8"
            ) from None

    def _edge_faults(self, edge: Data) -> Iterator[tuple[str, bool]]:
        for end in ("fromNode", "toNode"):
            if not isinstance(edge.get(end), str) or edge[end] not in self.nodes:
                yield (
                    f"has {end} {shown(edge.get(end))}, which is no usable node: draw it again, or delete it",
                    True,
                )
        yield from _optional(edge)

    @property
    def groups(self) -> list[Json]:
        """Return the nodes that are groups."""
        return [node for node in self.nodes.values() if node["type"] == "group"]

    @cached_property
    def parents(self) -> dict[str, str]:
        """Return the innermost group that holds each node, by id; a node in none is not in it."""
        return _parents(list(self.nodes.values()))

    def around(self, node_id: str) -> list[str]:
        """Return the ids of the groups around a node, the innermost first."""
        # Groups around a node that are named; more have no name that helps.
        deepest = 20
        groups = list[str]()
        parent = self.parents.get(node_id)
        while parent and len(groups) < deepest:
            groups.append(parent)
            parent = self.parents.get(parent)
        return groups

    def links(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (id of the edge, from, label, to) as each arrow points; an edge with two arrows comes twice."""
        for edge_id, edge in self.edges.items():
            start = edge["fromNode"]
            end = edge["toNode"]
            label = node_text(edge, "label")
            back = edge.get("fromEnd", "none") == "arrow"
            if not back or edge.get("toEnd", "arrow") != "none":
                yield edge_id, start, label, end
            if back:
                yield edge_id, end, label, start

    def node(self, node_id: str) -> Json:
        """Return the node of that id.

        Raises:
            CanvasError: with the known ones.
        """
        if node_id not in self.nodes:
            names = ", ".join(map(repr, list(self.nodes)[:8])) or "none"
            raise CanvasError(f"There is no node {shown(node_id)}. The first are: {names}")
        return self.nodes[node_id]

    def relations(self, texts: Mapping[str, tuple[str, str]]) -> tuple[dict[str, list[Any]], ...]:
        """Return by node what a group holds, where a node leads as links, and the sentences for its edges.

        Args:
            texts: title and text of each node.
        """
        members = defaultdict[str, list[str]](list)
        links = defaultdict[str, list[list[str]]](list)
        lines = defaultdict[str, list[str]](list)
        for node_id, (title, _) in texts.items():
            group = next((i for i in self.around(node_id) if texts[i][0]), "")
            if group and title:
                members[group] += [title] * is_name(title)
                links[node_id].append(
                    [IN_GROUP, clean(group), in_words(title, IN_GROUP, texts[group][0])]
                )
        for _, start, label, end in self.links():
            title = texts[start][0]
            end_title = texts[end][0]
            if title and end_title and start != end:
                relation = "_".join(clean(label).split())[:200] or LEADS_TO
                sentence = in_words(title, relation, end_title)
                links[start].append([relation, clean(end), sentence])
                if is_name(end_title):  # a question or an answer would only be repeated
                    lines[start].append(f"{sentence}.")
        return members, links, lines


_MANY_RECORDS = (".jsonl", ".jsonl.gz", ".csv", ".xlsx", *TRIPLES, SUFFIX)


def read(path: Path, name: str, read_file: Callable[[Path, str], Read], also: set[str]) -> Read:
    """Yield a document for each node that has a title; that of a file says what the file says.

    Args:
        path: of the canvas.
        name: of the canvas, with which ids begin.
        read_file: reads the documents of a file that a node shows, given its title.
        also: gets other files that were read for it.
    """
    listed = 100
    board = Canvas(Canvas.read_text(path))
    yield from ((1, problem) for problem in board.problems)
    texts = {node_id: title_and_text(node) for node_id, node in board.nodes.items()}
    members, links, lines = board.relations(texts)
    for node_id, node in board.nodes.items():
        title, text = texts[node_id]
        if not title:
            continue
        called = title
        if node["type"] == "group":
            text = ": ".join(filter(None, [title, ", ".join(members[node_id][:listed])]))
        groups = [texts[i][0] for i in reversed(board.around(node_id)) if texts[i][0]]
        position = pick(node, *_PLACE)
        structure = {"id": clean(node_id), "position": position, "links": links[node_id]}
        fields = {"group": groups, "color": node_color(node), STRUCTURE: structure}
        fields = without_empty(fields)
        is_file = node["type"] == "file"
        for document in _file_documents(path.parent, node, title, read_file) if is_file else ():
            if isinstance(document, str):
                yield 1, f"node {shown(node_id)}: {document}"
                continue
            also.add(document.source)  # it needs no document of its own
            called = document.title
            fields = {**document.fields, **fields}
            text = document.text
        address = node_text(node, "url")
        url = clean(address) if re.match("https?://", address) else ""
        names = (title,) if title != called else ()
        yield (
            1,
            Document(
                f"{name}#{structure['id']}",
                called,
                "\n\n".join([text, *lines[node_id][:listed]]),
                url,
                "",
                node["type"].capitalize(),
                fields,
                names,
                source=path.resolve().as_posix(),
            ),
        )


def _file_documents(
    folder: Path, node: Data, title: str, read_file: Callable[[Path, str], Read]
) -> Iterator[Document | str]:
    """Yield what the file of a node says, or what is wrong with it."""
    try:
        file = beside(folder, node["file"])
    except Unreadable as error:
        yield str(error)
        return
    name = file.name.lower()
    if name.endswith(_MANY_RECORDS):
        yield f"{file.name} holds many records: add it as a file of its own"
    elif name.endswith(SUFFIXES):
        for _, document in read_file(file, title):
            yield f"{file.name}: {document}" if isinstance(document, str) else document


def node_text(element: Data, key: str) -> str:
    """Return a text of a node or an edge; what is none counts for nothing."""
    return element[key] if isinstance(element.get(key), str) else ""


def node_color(element: Data) -> str:
    """Return the colour by its name, or as ``#rrggbb``; "" is none."""
    color = node_text(element, "color")
    return COLORS.get(color) or (color.lower() if _HEX.fullmatch(color) else "")


def is_name(title: str) -> bool:
    """Check whether a title names a thing; others are the beginning of a text."""
    return not title.endswith(_ENDS_SENTENCE)


def node_title(node: Data) -> str:
    """Return what a node is called."""
    return title_and_text(node)[0]


def title_and_text(node: Data) -> tuple[str, str]:
    """Return the title of a node, and its text, which a short first line heads."""
    longest = 80
    kind = node["type"]
    content = clean(node_text(node, CONTENT[node["type"]] or "label")).strip()
    if kind == "file":
        name = (
            PurePosixPath(content.replace("\\", "/")).stem[:longest]
            + node_text(node, "subpath")[:longest]
        )
        return name, f"{content}{node_text(node, 'subpath')}"
    if kind == "link":
        return re.sub(r"^\w+://(?:www\.)?|[?#].*$", "", content).rstrip("/")[:longest], content
    if kind == "group":
        return content[:longest], content
    content = unlinked(content)
    first, _, rest = content.partition("\n")
    bare = _EMPHASIS.sub("", first.lstrip("#").strip())
    if bare and len(bare) <= longest and not bare.endswith(_ENDS_SENTENCE):
        return bare, f"# {bare}\n\n{rest.strip()}" if rest.strip() else content
    return (sentences(content)[0][:longest] if sentences(content) else ""), content


def beside(folder: Path, file: str) -> Path:
    """Return the file that a node names, inside the folder of its canvas, whether from there or from the vault's root.

    Raises:
        CanvasError: it lies elsewhere, is hidden or not there; nothing was opened.
    """
    name = PurePosixPath(file.replace("\\", "/"))
    label = f"file {shown(file)}"
    if name.is_absolute() or ".." in name.parts or ":" in file or "\0" in file:
        raise CanvasError(
            f"{label} leads out of the folder of the canvas, and is not read: put it next to the canvas"
        )
    if any(part.startswith(".") for part in name.parts):
        raise CanvasError(
            f"{label} is hidden, by the dot before its name, and is not read: give it another name"
        )
    root = Path(os.path.realpath(folder))
    home = next((path for path in (root, *root.parents) if (path / VAULT).is_dir()), root)
    for base in (root, home):
        path = Path(os.path.realpath(base / name))
        if not path.is_relative_to(home):
            raise CanvasError(
                f"{label} is a link out of the folder of the canvas, and is not read: copy it here"
            )
        if os.path.lexists(path):
            must_be_file(path)
            return path
    raise CanvasError(f"{label} is not next to the canvas: put it there, or delete the node")


def _parsed(raw: str) -> Json:
    """Return the content of a canvas; an empty file is an empty canvas."""
    try:
        content = json.loads(raw.removeprefix("\ufeff") if raw.strip() else "{}")
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise CanvasError(f"not JSON: {error.msg} at {where}: correct it there") from None
    except (RecursionError, ValueError) as error:
        why = type(error).__name__
        raise CanvasError(
            f"not usable as JSON ({why}): make it flatter, its numbers shorter"
        ) from None
    if not isinstance(content, dict):
        raise CanvasError(
            f'a canvas is {{"nodes": [...], "edges": [...]}}, not {type(content).__name__}'
        )
    for key in ARRAYS:
        if not isinstance(content.get(key, []), list):
            raise CanvasError(f"{key} is {shown(content[key])}: it must be a list")
    return content


def _has_id(element: Any) -> bool:
    return (
        isinstance(element, dict)
        and isinstance(element.get("id"), str)
        and bool(element["id"].strip())
    )


def _node_faults(node: Data) -> Iterator[tuple[str, bool]]:
    """Return (what is wrong with the fix, whether the node cannot be used for it)."""
    longest_id = 400
    kind = node.get("type")
    if len(node["id"]) > longest_id:
        yield f"has an id of more than {longest_id} characters: shorten it", True
    if not isinstance(kind, str) or kind not in CONTENT:
        yield f"has type {shown(kind)}: use one of {', '.join(CONTENT)}", True
        return
    for key in _PLACE:
        value: Any = node.get(key)
        if type(value) not in (int, float) or not abs(value) < 1e9:
            yield f"has {key} {shown(value)}: a number of pixels is needed", True
        elif value < 0 and key in ("width", "height"):
            yield f"has {key} {value}: it must not be negative", True
    needed = CONTENT[kind]
    if needed and not isinstance(node.get(needed), str):
        yield f"has {needed} {shown(node.get(needed))}: a {kind} node needs a text there", True
    yield from _optional(node)


def _optional(element: Data) -> Iterator[tuple[str, bool]]:
    for key in ("label", "color", "subpath"):
        if key in element and not isinstance(element[key], str):
            yield f"has {key} {shown(element[key])}, which is ignored: write a text", False
    if node_text(element, "color") and not node_color(element):
        yield (
            f"has color {shown(element['color'])}, which is ignored: use 1 to 6, or #rrggbb",
            False,
        )


def box(node: Data) -> tuple[float, ...]:
    """Return left, top, right and bottom of a node."""
    return node["x"], node["y"], node["x"] + node["width"], node["y"] + node["height"]


def _parents(nodes: Sequence[Data]) -> dict[str, str]:
    """Return the smallest group around each node; of equal rectangles the later one is inside."""
    groups = [node for node in reversed(nodes) if node["type"] == "group"]
    # the later of equal ones comes first
    groups.sort(key=lambda node: node["width"] * node["height"])
    place = {node["id"]: n + 1 for n, node in enumerate(groups)}
    areas = [(node["id"], *box(node)) for node in groups]
    parents = {}
    for node in nodes:
        left, top, right, low = box(node)
        larger = areas[place.get(node["id"], 0) :]  # a group is not inside a smaller one
        holding = (
            i for i, a, b, c, d in larger if a <= left and b <= top and right <= c and low <= d
        )
        if group := next(holding, ""):
            parents[node["id"]] = group
    return parents
