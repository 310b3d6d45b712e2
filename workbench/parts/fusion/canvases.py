"""A canvas that is open: shown, edited, saved, worked on with what a knowledge base says; and canvases made of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench.errors import UnknownKnowledge, shown
from workbench.knowledge.reading.canvas import SUFFIX, Canvas, CanvasError, text_of
from workbench.knowledge.reading.files import Unreadable
from workbench.parts.fusion.canvas_work import OPERATIONS, Desk, Entry, work
from workbench.parts.fusion.drawing import canvas_blocks, drawn, work_blocks
from workbench.plans import Plan
from workbench.records.writing import write_file
from workbench.state import Json
from workbench.views.blocks import Block
from workbench.views.labels import labels_for
from workbench.views.render import Shown, page_html

if TYPE_CHECKING:
    from workbench.parts.fusion.canvas_export import Part
    from workbench.runs.run import Run


class CanvasFile(Canvas, Shown):
    """A canvas in a file, as ``wb.canvas`` opens it.

    Attributes:
        path: the file.
        nodes, edges: by id, as the file has them; edit them with ``edit``, ``add``, ``connect`` and ``remove``.
        problems: what is wrong in it, with line and mend; it stays in the file unchanged.
    """

    def __init__(self, path: Path, workspace: Any):
        try:
            if path.suffix.lower() != SUFFIX:
                raise Unreadable(f"a canvas ends in {SUFFIX}: rename it")
            super().__init__(self.raw_of(path))
        except (Unreadable, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise CanvasError(f"{shown(str(path))} cannot be opened: {why}.") from None
        self.path, self.workspace = path, workspace

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return a text of it, which says the language."""
        return next((said for node in self.nodes.values() if (said := text_of(node, "text"))), "")

    def blocks(self) -> list[Block]:
        """Nodes, edges and problems as tables."""
        return list(canvas_blocks(self, self.path.name, labels_for(self.message)))

    def to_dict(self) -> Json:
        """As JSON: the nodes with the groups around them, the edges, what is wrong."""
        nodes = [{**node, "groups": self.around(i)} for i, node in self.nodes.items()]
        problems = [fault._asdict() for fault in self.problems]
        return {"canvas_path": str(self.path), "nodes": nodes, "edges": list(self.edges.values()), "problems": problems}

    def _repr_html_(self) -> str:
        labels = labels_for(self.message)
        return drawn(self, labels).html + page_html(self.blocks(), labels)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def __repr__(self) -> str:
        return f"<Canvas {self.path.name}: {len(self.nodes)} nodes, {len(self.edges)} edges>"

    def work(self, operation: str, nodes: Iterable[str] = (), kb: str | None = None) -> Worked:
        """Work on nodes: ``decomposition``, ``scoring``, ``explanation``, ``verification`` or ``review`` of them.

        Args:
            operation: its name.
            nodes: their ids; none means the answers for ``scoring``, and every node with a text for the others.
            kb: the knowledge base to ask; None for one of this canvas alone, as its file is. It is gone afterwards, so
                that no other question is ever routed to it; ``wb.add_knowledge`` makes one that lasts.

        Raises:
            CanvasError: there is no such operation or node.
        """
        if operation not in OPERATIONS:
            raise CanvasError(f"There is no operation {shown(operation)}. Known: {', '.join(OPERATIONS)}.")
        asked = [nodes] if isinstance(nodes, str) else list(nodes)
        with self._base(kb) as base:
            desk = Desk(self, base, labels_for(self.message))
            return Worked(operation, tuple(work(desk, operation, asked)), self, base.name)

    @contextmanager
    def _base(self, kb: str | None) -> Iterator[Any]:
        """The base of that name, or one of this canvas for as long as it is worked on."""
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

    def save(self, path: str | Path | None = None) -> Path:
        """Write it: into its file, or into a new one. What was not touched stays as it was, to the byte.

        Raises:
            CanvasError: somebody else has changed the file meanwhile, or the new one is there already.
        """
        place = self.path if path is None else Path(path).expanduser()
        if path is None and self.raw_of(place) != self.was:
            raise CanvasError(f"{shown(str(place))} was changed since it was opened: open it again, or save a copy.")
        text = self.written()
        write(place, text, over=path is None)
        if path is None:
            super().__init__(text)
        return place


@dataclass(frozen=True)
class Worked(Shown):
    """What an operation found for nodes of a canvas.

    Attributes:
        operation: its name.
        entries: one a node: ``node``, ``title``, ``score``, ``note``, ``run_id``, and ``rows`` of ``kind``, ``text``,
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
        """Return a text of the canvas, which says the language."""
        return self.canvas.message

    def to_dict(self) -> Json:
        """As JSON."""
        told = {"canvas_path": str(self.canvas.path), "operation": self.operation, "kb": self.kb}
        return {**told, "target_nodes": [one["node"] for one in self.entries], "results": list(self.entries)}

    def blocks(self) -> list[Block]:
        """Return a table for each node."""
        return list(work_blocks(self.operation, self.entries, labels_for(self.message)))

    def copy(self) -> Canvas:
        """Return the canvas with it: a new node next to each target, and edges to what it is about."""
        labels, copy = labels_for(self.message), Canvas(self.canvas.written())
        for entry in self.entries:
            score = "" if entry["score"] is None else f" · {entry['score']:.0%}"
            head = f"**{labels(f'canvas_{self.operation}')}**{score}"
            lines = [f"- {labels('canvas_' + row['kind'])}: {row['text']}" for row in entry["rows"]]
            new = copy.add(
                "text", "\n".join(filter(None, [head, *lines, entry["note"]])), beside=entry["node"], color="6"
            )
            copy.connect(entry["node"], new, labels(f"canvas_{self.operation}"))
            for kind, node in dict.fromkeys((row["kind"], row["node"]) for row in entry["rows"]):
                if node not in ("", entry["node"]):
                    copy.connect(node, new, labels(f"canvas_{kind}"))
        return copy

    def save(self, path: str | Path) -> CanvasFile:
        """Write that copy into a file.

        Raises:
            CanvasError: the file is there already, with something else in it.
        """
        return CanvasFile(write(Path(path).expanduser(), self.copy().written()), self.canvas.workspace)


def write(place: Path, text: str, *, over: bool = False) -> Path:
    """Put a canvas into a file, wholly or not at all.

    Raises:
        CanvasError: it is there already, with something else in it, and may not be replaced; or cannot be written.
    """
    if place.suffix.lower() != SUFFIX:
        raise CanvasError(f"{shown(str(place))} is no name of a canvas: end it in {SUFFIX}.")
    return write_file(place, text.encode(), replace=over, kind=CanvasError)


def canvas(wb: Any, path: str | Path) -> CanvasFile:
    """Open a JSON Canvas: see it, edit it, write it back, work on its nodes, put answers next to them.

    Raises:
        CanvasError: it is no canvas, or cannot be read.
    """
    wb._must_be_open()
    return CanvasFile(Path(path).expanduser(), wb)


def to_canvas(run: Run, path: str | Path, what: Part = "run") -> CanvasFile:
    """Write the run as a canvas: question, steps, evidence, answer; or its ``plan``, ``knowledge`` or ``tree``.

    Raises:
        CanvasError: there is no such part, or the file is there already, with something else in it.
    """
    from workbench.parts.fusion.canvas_export import made_of

    return CanvasFile(write(Path(path).expanduser(), made_of(run, what)), run.workspace)


def plan_from_canvas(run: Run, path: str | Path) -> Plan:
    """Read the plan as a person left it on the canvas of ``to_canvas(path, "plan")``, for ``edit`` or ``fork``.

    Raises:
        CanvasError: it is no canvas, or a step takes its input from one that no edge leads from any more.
        PlanError: the plan is not valid.
    """
    from workbench.parts.fusion.canvas_export import plan_of

    return plan_of(CanvasFile(Path(path).expanduser(), run.workspace), run.plan or Plan())
