"""JSON Canvas 1.0: a file of nodes (text, file, link, group) and edges, read leniently.

What is wrong with a node or an edge is said with its id, its line and the fix; it stays in the file unchanged, and the
rest is used. Which group a node is in says where it stands. Nothing is fetched, and no file outside the folder of the
canvas is opened.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from json.decoder import WHITESPACE, scanstring  # type: ignore[attr-defined]
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from workbench.errors import CorpusError, shown
from workbench.knowledge.reading import vault
from workbench.knowledge.reading.files import Unreadable, must_be_file, must_be_short
from workbench.knowledge.reading.triples import in_words
from workbench.state import Data, Json
from workbench.text import clean, sentences

SUFFIX = ".canvas"
STRUCTURE = "canvas:node"
"""The field of a document that keeps its node: ``id``, ``position``, ``links``; nothing else that is read has it."""
LOOKS = ("group", "color")
"""Fields that say where a node stands and how it looks; they name nothing in the graph."""
CONTENT = {"text": "text", "file": "file", "link": "url", "group": ""}
"""What a node of each type must have."""
COLORS = {"1": "red", "2": "orange", "3": "yellow", "4": "green", "5": "cyan", "6": "purple"}
SIDES = ("top", "right", "bottom", "left")
LEADS_TO, IN_GROUP = "leads_to", "in_group"
ARRAYS = ("nodes", "edges")
_PLACE = ("x", "y", "width", "height")
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_DEEPEST = 20
"""Groups in one another that are told; more hold no name that helps."""
_TITLE, _ID, _TOLD = 80, 400, 100
_EMPHASIS = re.compile(r"\*{1,3}|`|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")
_NO_ID = [("has no id: give it one, a short text that no other has", True)]
_TWICE = [("is there twice, and the first is kept: give this one another id", True)]
_ENDS_SENTENCE = tuple(".!?。！？…;；")


class CanvasError(CorpusError, Unreadable):
    """A canvas cannot be read, changed or written; the message names the node and the fix."""


class Fault(NamedTuple):
    """What is wrong with one node or edge, in which line, and the fix."""

    line: int
    reason: str


class Card(NamedTuple):
    """A node as a document will say it; ``file`` is what is to be read for it."""

    line: int
    node: Data
    title: str
    text: str
    fields: Json
    file: Path | None = None


class Canvas:
    """A canvas unchanged in a file.

    Attributes:
        nodes: the usable ones by id, in the order of the file. Edit them with ``edit``, ``add``, ``connect``,
            ``remove``; what is not known of them is kept.
        edges: the usable ones by id.
        problems: what is wrong with others.
    """

    def __init__(self, raw: str = "{}"):
        self.was, self.raw = raw, raw if raw.strip() else "{}"
        self.nodes: dict[str, Json] = {}
        self.edges: dict[str, Json] = {}
        self.problems: list[Fault] = []
        self._starts: dict[tuple[str, str], int] = {}
        self._members = _members(self.raw)
        self._arrays = {
            key: [item[1:] for item in _items(self.raw, start)] for key, start, *_ in self._members if key in ARRAYS
        }
        self._last = max(map(int, re.findall(r'"wb-\w+-(\d{1,9})"', self.raw)), default=0)
        self._ends = [match.start() for match in re.finditer("\n", self.raw)]
        for name, kept, check in (("nodes", self.nodes, _node_faults), ("edges", self.edges, self._edge_faults)):
            for place, (start, _, found) in enumerate(self._arrays.get(name, ())):
                what, why = f"{name[:-1]} number {place + 1}", [*_NO_ID]
                if _has_id(found):
                    what = f"{name[:-1]} {shown(found['id'])}"
                    why = _TWICE if found["id"] in kept else list(check(found))
                for reason, _ in why:
                    self._blame(start, f"{what} {reason}")
                if not any(fatal for _, fatal in why):
                    kept[found["id"]] = found
                    self._starts[name, found["id"]] = start
        seen: dict[tuple[float, ...], str] = {}
        for node in self.groups:
            if (other := seen.setdefault(_box(node), node["id"])) != node["id"]:
                both = f"group {shown(node['id'])} covers just what group {shown(other)} covers"
                told = f"{both}, so that each would hold the other; it counts as inside: move one"
                self._blame(self._starts["nodes", node["id"]], told)

    @staticmethod
    def raw_of(path: Path) -> str:
        """Return the text of a file.

        Raises:
            Unreadable: it is no file, too long, or not UTF-8; with the fix.
        """
        if not path.exists():
            raise CanvasError("there is no such file: name one that is there")
        if not path.is_file() or path.stat().st_size:  # a new canvas is an empty file
            must_be_file(path)
        must_be_short(path)
        raw = path.read_bytes()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CanvasError(f"not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8") from None

    def _blame(self, at: int, reason: str) -> None:
        self.problems.append(Fault(bisect_left(self._ends, at) + 1, reason))

    def _edge_faults(self, edge: Data) -> Iterator[tuple[str, bool]]:
        for end in ("fromNode", "toNode"):
            if not isinstance(edge.get(end), str) or edge[end] not in self.nodes:
                yield f"has {end} {shown(edge.get(end))}, which is no usable node: draw it anew, or delete it", True
        yield from _optional(edge, {"fromSide": SIDES, "toSide": SIDES, "fromEnd": _ENDS, "toEnd": _ENDS})

    # where things stand

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
        found, one = list[str](), node_id
        while (one := self.parents.get(one, "")) and len(found) < _DEEPEST:
            found.append(one)
        return found

    def links(self) -> Iterator[tuple[str, str, str, str]]:
        """(id of the edge, from, label, to) the way each arrow points; an edge with two arrows comes twice."""
        for edge_id, edge in self.edges.items():
            ends, label = (edge["fromNode"], edge["toNode"]), text_of(edge, "label")
            back = edge.get("fromEnd", "none") == "arrow"
            if not back or edge.get("toEnd", "arrow") != "none":
                yield edge_id, ends[0], label, ends[1]
            if back:
                yield edge_id, ends[1], label, ends[0]

    # edits

    def edit(self, node_id: str, **changes: Any) -> Json:
        """Change a node or an edge; None takes a key away.

        Raises:
            CanvasError: there is none of that id, or a value is not allowed.
        """
        held = self._held(node_id)
        now = {**held[node_id], **changes, "id": node_id}
        return self._put(held, {key: value for key, value in now.items() if value is not None}, shown(node_id))

    def add(self, kind: str = "text", content: str = "", *, beside: str | None = None, **more: Any) -> str:
        """Return a new node, where there is room next to another one or below all; its id.

        Args:
            kind: ``text``, ``file``, ``link`` or ``group``.
            content: the text, the path, the address or the label.
            next to: the id of a node.
            **more: other keys of the node, as ``color``, ``width``.
        """
        lines = sum(1 + len(line.encode("gb18030", "replace")) // 42 for line in content.split("\n"))  # 汉字 is wide
        size = {"width": 400, "height": max(80, 40 + 26 * lines)}
        made = {"id": self._free(kind), "type": kind, CONTENT.get(kind) or "label": content, **size, **more}
        if not {"x", "y"} <= made.keys():
            made["x"], made["y"] = self._room(made, self.nodes.get(beside or ""))
        return str(self._put(self.nodes, made, "The new node")["id"])

    def connect(self, start: str, end: str, label: str = "", **more: Any) -> str:
        """Return a new edge from one node to another; its id."""
        made = {"id": self._free("edge"), "fromNode": start, "toNode": end, **({"label": label} if label else {})}
        return str(self._put(self.edges, made | more, "The new edge")["id"])

    def _put(self, held: dict[str, Json], element: Json, name: str) -> Json:
        for why, _ in self._edge_faults(element) if held is self.edges else _node_faults(element):
            raise CanvasError(f"{name} {why}.")
        held[element["id"]] = element
        self.__dict__.pop("parents", None)
        return element

    def remove(self, node_id: str) -> None:
        """Take out a node with its edges, or an edge."""
        del self._held(node_id)[node_id]
        self.edges = {i: e for i, e in self.edges.items() if {e["fromNode"], e["toNode"]} <= self.nodes.keys()}
        self.__dict__.pop("parents", None)

    def _held(self, node_id: str) -> dict[str, Json]:
        """Return the nodes, or the edges, with the one of that id in them."""
        if node_id in self.edges and node_id not in self.nodes:
            return self.edges
        self.named(node_id)
        return self.nodes

    def named(self, node_id: str) -> Json:
        """Return the node of that id.

        Raises:
            CanvasError: with the known ones.
        """
        if node_id not in self.nodes:
            known = ", ".join([*map(repr, list(self.nodes)[:8]), *["…"] * (len(self.nodes) > 8)]) or "none"
            raise CanvasError(f"There is no node {shown(node_id)}. Known: {known}")
        return self.nodes[node_id]

    def _free(self, kind: str) -> str:
        """Return an id that nothing in the file has."""
        self._last += 1
        return f"wb-{kind}-{self._last}"

    def _room(self, made: Data, beside: Data | None) -> tuple[int, int]:
        """Right of a node, lower where something or another group stands; below all without one."""
        gap, groups = 40, self.around(beside["id"]) if beside else ()
        others = [node for node_id, node in self.nodes.items() if node_id not in groups]
        if beside is None:
            return 0, math.ceil(max((n["y"] + n["height"] for n in self.nodes.values()), default=-gap)) + gap
        x, y = math.ceil(beside["x"] + beside["width"]) + 2 * gap, math.ceil(beside["y"])
        column = [n for n in others if n["x"] < x + made["width"] + gap and n["x"] + n["width"] + gap > x]
        for node in sorted(column, key=lambda n: n["y"]):
            if node["y"] < y + made["height"] + gap and node["y"] + node["height"] + gap > y:
                y = math.ceil(node["y"] + node["height"]) + gap
        return x, y

    def written(self) -> str:
        """Return the canvas as a file has it: unchanged, or as Obsidian writes it, one element per line.

        What was not touched of nodes, edges and other members is as it was, to the byte.
        """
        members = {key: self.raw[start:end] for key, start, end, _ in self._members}
        changed = False
        for name, held in (("nodes", self.nodes), ("edges", self.edges)):
            before = [self.raw[start:end] for start, end, _ in self._arrays.get(name, ())]
            lines = [*self._lines(name, held)]
            if lines != before:
                changed, members[name] = True, "[\n\t\t" + ",\n\t\t".join(lines) + "\n\t]" if lines else "[]"
        told = ",\n".join(f"\t{_dumped(key)}:{text}" for key, text in members.items())
        return f"{{\n{told}\n}}" if changed else self.was

    def _lines(self, name: str, held: Mapping[str, Json]) -> Iterator[str]:
        """Yield the elements of an array as they are now; what is not usable stays in it."""
        usable = {start: element_id for (kind, element_id), start in self._starts.items() if kind == name}
        for start, end, element in self._arrays.get(name, ()):
            element_id = usable.get(start)
            if element_id is None or held.get(element_id) == element:
                yield self.raw[start:end]
            elif element_id in held:
                yield _dumped(held[element_id])
        yield from (_dumped(element) for i, element in held.items() if (name, i) not in self._starts)

    # documents

    def cards(self, folder: Path) -> Iterator[Card | Fault]:
        """Yield every node that says something as a document, and what is wrong with files next to the canvas."""
        at = {i: bisect_left(self._ends, self._starts["nodes", i]) + 1 for i in self.nodes}
        said = {i: title_and_text(node) for i, node in self.nodes.items()}
        inside, links = defaultdict[str, list[str]](list), defaultdict[str, list[list[str]]](list)
        lines = defaultdict[str, list[str]](list)  # edges in words; a question or an answer would only be repeated
        labelled = {node["id"] for node in self.groups if said[node["id"]][0]}
        for node_id in self.nodes:
            home = next((group for group in self.around(node_id) if group in labelled), "")
            if home and said[node_id][0]:
                inside[home] += [said[node_id][0]] * is_name(said[node_id][0])
                sentence = in_words(said[node_id][0], IN_GROUP, said[home][0])
                links[node_id].append([IN_GROUP, clean(home), sentence])
        for _, start, label, end in self.links():
            if said[start][0] and said[end][0] and start != end:
                relation = "_".join(clean(label).split())[:200] or LEADS_TO
                links[start].append([relation, clean(end), in_words(said[start][0], relation, said[end][0])])
                if is_name(said[end][0]):
                    lines[start].append(f"{links[start][-1][2]}.")
        for node_id, node in self.nodes.items():
            (title, text), file = said[node_id], None
            if not title:
                continue
            if node["type"] == "group":
                text = f"{title}: {', '.join(inside[node_id][:_TOLD])}" if inside[node_id] else title
            if node["type"] == "file":
                try:
                    file = beside(folder, node["file"])
                except Unreadable as error:
                    yield Fault(at[node_id], f"node {shown(node_id)}: {error}")
            groups = [said[i][0] for i in self.around(node_id)[::-1] if i in labelled]
            place = {key: node[key] for key in _PLACE}
            structure = {"id": clean(node_id), "position": place, "links": links[node_id]}
            fields = {"group": groups, "color": color_of(node), STRUCTURE: structure}
            fields = {key: value for key, value in fields.items() if value}
            text = "\n\n".join([text, *lines[node_id][:_TOLD]])
            yield Card(at[node_id], node, title, text, fields, file)


_ENDS = ("none", "arrow")


def text_of(element: Data, key: str) -> str:
    """Return a text of a node or an edge; what is none counts for nothing."""
    return element[key] if isinstance(element.get(key), str) else ""


def color_of(element: Data) -> str:
    """Return the colour by its name, or as ``#rrggbb``; "" is none."""
    color = text_of(element, "color")
    return COLORS.get(color) or (color.lower() if _HEX.fullmatch(color) else "")


def is_name(title: str) -> bool:
    """Check whether a title names a thing; others are the beginning of a text."""
    return not title.endswith(_ENDS_SENTENCE)


def title_of(node: Data) -> str:
    """Return what a node is called."""
    return title_and_text(node)[0]


def title_and_text(node: Data) -> tuple[str, str]:
    """Return the title of a node, and its text, which a short first line heads."""
    kind, content = node["type"], clean(text_of(node, CONTENT[node["type"]] or "label")).strip()
    if kind == "file":
        name = PurePosixPath(content.replace("\\", "/")).stem[:_TITLE] + text_of(node, "subpath")[:_TITLE]
        return name, f"{content}{text_of(node, 'subpath')}"
    if kind == "link":
        return re.sub(r"^\w+://(?:www\.)?|[?#].*$", "", content).rstrip("/")[:_TITLE], content
    if kind == "group":
        return content[:_TITLE], content
    content = vault.unlinked(content)
    first, _, rest = content.partition("\n")
    bare = _EMPHASIS.sub("", first.lstrip("#").strip())
    if bare and len(bare) <= _TITLE and not bare.endswith(_ENDS_SENTENCE):
        return bare, f"# {bare}\n\n{rest.strip()}" if rest.strip() else content
    return (sentences(content)[0][:_TITLE] if sentences(content) else ""), content


def section(text: str, subpath: str) -> str:
    r"""Return the part of a text under the heading, or the block, that a subpath names; all of it where there is none.

    >>> section("# Tea\n## Green\nHot.\n## Black\nStrong.", "#Green"), section("One.\n\nTwo. ^b", "#^b")
    ('## Green\nHot.\n', 'Two. ^b')
    """
    name = re.escape(subpath.rpartition("#")[2].strip())
    if name.startswith(r"\^"):
        return next((block for block in re.split(r"\n\s*\n", text) if re.search(rf"{name}\s*$", block)), text)
    begin = re.search(rf"(?m)^(#{{1,6}})[ \t]+{name}[ \t]*$", text) if name else None
    if begin is None:
        return text
    end = re.search(rf"(?m)^#{{1,{len(begin[1])}}}[ \t]", text[begin.end() :])
    return text[begin.start() : begin.end() + end.start() if end else None]


def beside(folder: Path, file: str) -> Path:
    """Return the file that a node names, inside the folder of its canvas, whether from there or from the vault's root.

    Raises:
        CanvasError: it lies elsewhere, is hidden or not there; nothing was opened.
    """
    name = PurePosixPath(file.replace("\\", "/"))
    named = f"file {shown(file)}"
    if name.is_absolute() or ".." in name.parts or ":" in file or "\0" in file:
        raise CanvasError(f"{named} leads out of the folder of the canvas, and is not read: put it beside the canvas")
    if any(part.startswith(".") for part in name.parts):
        raise CanvasError(f"{named} is hidden, by the dot before its name, and is not read: give it another name")
    root = Path(os.path.realpath(folder))
    home = vault.root_of(root) or root
    shorter = [n for n in range(1, len(name.parts)) if root.parts[-n:] == name.parts[:n]]
    for base, start in ((root, 0), (home, 0), *((root, n) for n in shorter)):
        found = Path(os.path.realpath(base.joinpath(*name.parts[start:])))
        if not found.is_relative_to(home):
            raise CanvasError(f"{named} is a link out of the folder of the canvas, and is not read: copy it here")
        if os.path.lexists(found):
            must_be_file(found)
            return found
    raise CanvasError(f"{named} is not beside the canvas: put it there, or delete the node")


def _members(raw: str) -> list[tuple[str, int, int, Any]]:
    """Return (key, begin, end, value) of everything in the text of a canvas."""
    bare = len(raw) - len(raw.removeprefix(codecs.BOM_UTF8.decode()))
    try:
        whole = json.loads(raw[bare:])
    except json.JSONDecodeError as error:
        raise CanvasError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}: mend it there"
        ) from None
    except (RecursionError, ValueError) as error:
        raise CanvasError(
            f"not usable as JSON ({type(error).__name__}): make it flatter, its numbers shorter"
        ) from None
    if not isinstance(whole, dict):
        raise CanvasError(f'a canvas is {{"nodes": [...], "edges": [...]}}, not {type(whole).__name__}')
    for key in ARRAYS:
        if not isinstance(whole.get(key, []), list):
            raise CanvasError(f"{key} is {shown(whole[key])}: it must be a list")
    return list(_items(raw, _space(raw, bare)))


def _space(raw: str, at: int) -> int:
    match = WHITESPACE.match(raw, at)
    return int(match.end()) if match else at


def _items(raw: str, at: int) -> Iterator[tuple[str, int, int, Any]]:
    """(key, begin, end, value) of everything in the object or array that begins there."""
    decode, close = json.JSONDecoder().raw_decode, "}" if raw[at] == "{" else "]"
    at, key = _space(raw, at + 1), ""
    while raw[at] != close:
        if close == "}":
            key, at = scanstring(raw, at + 1)
            at = _space(raw, _space(raw, at) + 1)
        value, end = decode(raw, at)
        yield key, at, end, value
        at = _space(raw, end)
        at = _space(raw, at + 1) if raw[at] == "," else at


def _dumped(element: Any) -> str:
    """Return JSON of an element that is written again.

    Raises:
        CanvasError: it has a number that Python reads as infinite, as 1e400, for which JSON has no word.
    """
    try:
        text = json.dumps(element, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise CanvasError(f"{shown(element)} has a number that is too large to be written: make it smaller") from None
    half = re.search("[\ud800-\udfff]", text)  # half a sign is no UTF-8
    return json.dumps(element, separators=(",", ":")) if half else text


def _has_id(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("id"), str) and bool(found["id"].strip())


def _node_faults(node: Data) -> Iterator[tuple[str, bool]]:
    """(what is wrong with the fix, whether the node cannot be used for it)."""
    kind = node.get("type")
    if len(node["id"]) > _ID:
        yield f"has an id of more than {_ID} characters: shorten it", True
    if not isinstance(kind, str) or kind not in CONTENT:
        yield f"has type {shown(kind)}: use one of {', '.join(CONTENT)}", True
        return
    for key in _PLACE:
        value = node.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
            yield f"has {key} {shown(value)}: a number of pixels is needed", True
        elif value < 0 and key in ("width", "height"):
            yield f"has {key} {value}: it must not be negative", True
    needed = CONTENT[kind]
    if needed and not isinstance(node.get(needed), str):
        yield f"has {needed} {shown(node.get(needed))}: a {kind} node needs a text there", True
    yield from _optional(node, {})


def _optional(element: Data, allowed: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, bool]]:
    for key in ("label", "color", "subpath"):
        if key in element and not isinstance(element[key], str):
            yield f"has {key} {shown(element[key])}, which is ignored: write a text", False
    if text_of(element, "color") and not color_of(element):
        yield f"has color {shown(element['color'])}, which is ignored: use 1 to 6, or #rrggbb", False
    for key, values in allowed.items():
        if key in element and element[key] not in values:
            yield f"has {key} {shown(element[key])}, which is ignored: use one of {', '.join(values)}", False


def _box(node: Data) -> tuple[float, ...]:
    """Left, top, right, bottom."""
    return node["x"], node["y"], node["x"] + node["width"], node["y"] + node["height"]


def _parents(nodes: Sequence[Data]) -> dict[str, str]:
    """Return the smallest group around each node; of equal rectangles the later one is inside."""
    import numpy as np

    groups = [node for node in reversed(nodes) if node["type"] == "group"]
    groups.sort(key=lambda node: node["width"] * node["height"])  # the later of equal ones comes first
    place = {node["id"]: n + 1 for n, node in enumerate(groups)}
    left, top, right, low = np.array([_box(node) for node in groups], dtype=float).reshape(-1, 4).T
    parents = dict[str, str]()
    for node in nodes:
        a, b, c, d = _box(node)
        larger = place.get(node["id"], 0)  # a group is not inside a smaller one
        inside = (left[larger:] <= a) & (top[larger:] <= b) & (right[larger:] >= c) & (low[larger:] >= d)
        if inside.any():
            parents[node["id"]] = groups[larger + int(inside.argmax())]["id"]
    return parents
