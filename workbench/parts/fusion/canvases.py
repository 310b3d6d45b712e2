"""An open canvas: shown, and worked on with what a knowledge base says, into a copy."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from workbench.errors import UnknownKnowledge, shown
from workbench.knowledge.reading.files import Unreadable
from workbench.parts.fusion.canvas import SUFFIX, Canvas, CanvasError, node_text
from workbench.parts.fusion.canvas_work import Desk, Entry, known_operation, work, worth
from workbench.parts.fusion.drawing import beside, canvas_blocks, work_blocks
from workbench.records.writing import write_file
from workbench.state import Data, Json
from workbench.views.blocks import Block
from workbench.views.labels import labels_for
from workbench.views.render import Shown


class CanvasFile(Canvas, Shown):
    """A canvas in a file, as ``wb.canvas`` opens it.

    Attributes:
        path: the file.
        nodes, edges: by id, as the file has them.
        problems: what is wrong in it, with the fix; it stays in the file unchanged.
    """

    def __init__(self, path: Path, workspace: Any):
        try:
            if path.suffix.lower() != SUFFIX:
                raise Unreadable(f"a canvas ends in {SUFFIX}: rename it")
            super().__init__(self.read_text(path))
        except (Unreadable, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise CanvasError(f"{shown(str(path))} cannot be opened: {why}.") from None
        self.path = path
        self.workspace = workspace

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first text, which determines the language."""
        texts = (node_text(node, "text") for node in self.nodes.values())
        return next(filter(None, texts), "")

    def blocks(self) -> list[Block]:
        """Return nodes, edges and problems as tables."""
        return list(canvas_blocks(self, self.path.name, labels_for(self.message)))

    def to_dict(self) -> Json:
        """Return the canvas as JSON: nodes with the groups around them, edges, problems."""
        nodes = [{**node, "groups": self.around(i)} for i, node in self.nodes.items()]
        return {
            "canvas_path": str(self.path),
            "nodes": nodes,
            "edges": list(self.edges.values()),
            "problems": self.problems,
        }

    def _repr_html_(self) -> str:
        return beside(self, self.blocks(), labels_for(self.message))

    def __repr__(self) -> str:
        return f"<Canvas {self.path.name}: {len(self.nodes)} nodes, {len(self.edges)} edges>"

    def work(self, operation: str, nodes: Iterable[str] = (), kb: str | None = None) -> Worked:
        """Work on nodes: ``decomposition``, ``scoring``, ``explanation``, ``verification`` or ``review`` of them.

        Args:
            operation: its name.
            nodes: their ids; none means the answers for ``scoring``, and every node with a text for the others.
            kb: the knowledge base to ask; None for a temporary one of this canvas file, to which no other question can
                be routed; ``wb.add_knowledge`` makes one that lasts.

        Raises:
            CanvasError: there is no such operation or node.
        """
        known_operation(operation)
        node_ids = [nodes] if isinstance(nodes, str) else list(nodes)
        with self._base(kb) as base:
            desk = Desk(self, base, labels_for(self.message))
            return Worked(operation, tuple(work(desk, operation, node_ids)), self, base.name)

    @contextmanager
    def _base(self, kb: str | None) -> Iterator[Any]:
        """Yield the base of that name, or a temporary one of this canvas."""
        if kb is not None:
            yield self.workspace.knowledge.get(kb)
            return
        name = f"canvas-{uuid4().hex[:12]}"
        try:
            self.workspace.add_knowledge(name, [self.path], lambda *_: None)
            yield self.workspace.knowledge.get(name)
        finally:
            with suppress(UnknownKnowledge):
                self.workspace.knowledge.remove(name)


@dataclass(frozen=True)
class Worked(Shown):
    """The results of an operation on nodes of a canvas.

    Attributes:
        operation: its name.
        entries: one per node: ``node``, ``title``, ``score``, ``note``, ``run_id``, and ``rows`` of ``kind``, ``text``,
            ``because`` and ``node``.
        canvas: the canvas.
        kb: the knowledge base that was asked.
    """

    operation: str
    entries: tuple[Entry, ...]
    canvas: CanvasFile
    kb: str

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first text of the canvas, which determines the language."""
        return self.canvas.message

    def to_dict(self) -> Json:
        """Return the results as JSON."""
        head = {"canvas_path": str(self.canvas.path), "operation": self.operation, "kb": self.kb}
        return {
            **head,
            "target_nodes": [entry["node"] for entry in self.entries],
            "results": list(self.entries),
        }

    def blocks(self) -> list[Block]:
        """Return a table for each node."""
        return list(work_blocks(self.operation, self.entries, labels_for(self.message)))

    def _repr_html_(self) -> str:
        # Results up to which a picture shows them as nodes; a table has them all.
        most_added = 10
        canvas = self.copy() if len(self.entries) < most_added else self.canvas
        return beside(canvas, self.blocks(), labels_for(self.message), -1)

    def copy(self) -> Canvas:
        """Return the canvas with the results: a new node next to each target, with edges to the nodes it is about."""
        labels = labels_for(self.message)
        canvas = self.canvas
        numbers = count(
            1 + max(map(int, re.findall(r'"wb-\w+-(\d{1,9})"', canvas.raw)), default=0)
        )
        placed = dict(canvas.nodes)
        nodes = []
        edges = []

        def connect(start: str, end: str, name: str) -> None:
            edge = {"id": f"wb-edge-{next(numbers)}", "fromNode": start, "toNode": end}
            edges.append({**edge, "label": labels(f"canvas_{name}")})

        for entry in self.entries:
            kinds = [row["kind"] for row in entry["rows"]]
            color = "6"
            head = f"**{labels(f'canvas_{self.operation}')}**"
            if entry["score"] is not None:
                color = {0.0: "1", 0.5: "2", 1.0: "4"}[worth(kinds[0])]
                counts = Counter(labels(f"canvas_{kind}") for kind in kinds)
                head += "".join(f" · {name} {n}" for name, n in counts.items())
            lines = [
                f"- {labels('canvas_' + row['kind'])}: {row['text']} — {row['because']}"
                for row in entry["rows"]
            ]
            text = "\n".join(filter(None, [head, *lines, entry["note"]]))
            new = {
                "id": f"wb-text-{next(numbers)}",
                "type": "text",
                "text": text,
                **_size(text),
                "color": color,
            }
            new["x"], new["y"] = _room(canvas, placed, new, entry["node"])
            nodes.append(placed.setdefault(new["id"], new))
            connect(entry["node"], new["id"], self.operation)
            worst = {row["node"]: row["kind"] for row in reversed(entry["rows"])}
            for node, kind in worst.items():
                if node not in ("", entry["node"]):
                    connect(node, new["id"], kind)
        added = {"nodes": nodes, "edges": edges}
        return Canvas(
            _text(
                {**canvas.content, **{n: [*canvas.content.get(n, ()), *added[n]] for n in added}}
            )
        )

    def save(self, path: str | Path) -> CanvasFile:
        """Write that copy into a file.

        Raises:
            CanvasError: the file is there already, with something else in it.
        """
        return CanvasFile(write(Path(path).expanduser(), self.copy().raw), self.canvas.workspace)


def _size(text: str) -> Json:
    # 汉字 is wide
    lines = sum(1 + len(line.encode("gb18030", "replace")) // 42 for line in text.split("\n"))
    return {"width": 400, "height": max(80, 40 + 26 * lines)}


def _room(canvas: Canvas, placed: Mapping[str, Data], new: Data, node_id: str) -> tuple[int, int]:
    """Return a free place right of a node, lower where another node or group is."""
    gap = 40
    neighbour = canvas.nodes[node_id]
    groups = canvas.around(node_id)
    x = math.ceil(neighbour["x"] + neighbour["width"]) + 2 * gap
    y = math.ceil(neighbour["y"])
    for placed_id, node in sorted(placed.items(), key=lambda pair: pair[1]["y"]):
        low = node["y"] + node["height"]
        beside_it = node["x"] < x + new["width"] + gap and node["x"] + node["width"] + gap > x
        if (
            placed_id not in groups
            and beside_it
            and node["y"] < y + new["height"] + gap
            and low + gap > y
        ):
            y = math.ceil(low) + gap
    return x, y


def _text(content: Data) -> str:
    """Return a canvas as text.

    Raises:
        CanvasError: a number is infinite for Python, as 1e400, for which JSON has no word.
    """
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent="\t")
    except ValueError:
        raise CanvasError(
            "A number of the canvas is too large to be written: make it smaller."
        ) from None
    # half of a surrogate pair has no UTF-8
    return json.dumps(content, indent="\t") if re.search("[\ud800-\udfff]", text) else text


def write(place: Path, text: str) -> Path:
    """Put a canvas into a new file, wholly or not at all.

    Raises:
        CanvasError: it is there already, with something else in it; or cannot be written.
    """
    if place.suffix.lower() != SUFFIX:
        raise CanvasError(f"{shown(str(place))} is not a name of a canvas: end it in {SUFFIX}.")
    return write_file(place, text.encode(), replace=False, kind=CanvasError)


def canvas(wb: Any, path: str | Path) -> CanvasFile:
    """Open a JSON Canvas: see it, work on its nodes, put answers next to them in a copy.

    Raises:
        CanvasError: the file is not a canvas, or cannot be read.
    """
    wb._must_be_open()
    return CanvasFile(Path(path).expanduser(), wb)
