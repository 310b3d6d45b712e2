"""Mermaid flowcharts drawn as SVG while the site is built: no script and no network is needed to see them.

Reads what our pages use: ``flowchart`` or ``graph``, ``LR`` or ``TD``, nodes with a label, solid and dotted arrows. A subgraph is
not framed; ``retrieval\\3aplanner`` is the node ``planner`` of the subgraph ``retrieval``.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from workbench.views.layout import layered

ARROW = re.compile(r"\s*(-->|-\.->|-\. ([^.]+) \.->)\s*")
NODE = re.compile(r"^([\w\\]+)(?:[\[(]+(.*?)[\])]+)?(?::::\w+)?$")
HEIGHT, GAP, CHARACTER = 26, 34, 7.2


def parsed(text: str) -> tuple[bool, dict[str, str], list[tuple[str, str, bool]]]:
    """Return whether it runs from left to right, label per node, and (source, target, dotted) per arrow."""
    sideways, labels, edges = False, dict[str, str](), list[tuple[str, str, bool]]()

    def named(part: str) -> str | None:
        match = NODE.match(part.strip())
        if match is None:
            return None
        name, label = match[1], re.sub(r"<[^>]+>", "", match[2] or "")
        if label or name not in labels:
            labels[name] = (label or name.rpartition("\\3a")[2]).strip("_")
        return name

    for line in text.split("---\n")[-1].splitlines():
        line = line.strip().rstrip(";")
        if line.startswith(("flowchart", "graph")):
            sideways = line.endswith("LR")
        elif line and not line.startswith(("subgraph", "end", "direction", "classDef", "%%")):
            pieces = ARROW.split(line)
            ends = [named(piece) for piece in pieces[::3]]
            for source, arrow, target in zip(ends, pieces[1::3], ends[1:], strict=False):
                if source and target and source != target:
                    edges.append((source, target, arrow.startswith("-.")))
    return sideways, labels, edges


def drawn(text: str) -> str:
    """Return the chart as SVG in the colours of the page."""
    sideways, labels, edges = parsed(text)
    layers = layered(list(labels), [(source, target) for source, target, _ in edges])
    width = max(len(label) for label in labels.values()) * CHARACTER + 18
    step = (width + 46, HEIGHT + 14) if sideways else (HEIGHT + GAP, width + 14)
    low = min(row for _, row in layers.places.values())

    def place(name: str) -> tuple[float, float]:
        layer, row = layers.places[name]
        along, across = layer * step[0] + 2, (row - low) * step[1] + 2
        return (along, across) if sideways else (across, along)

    shapes, right, bottom = [], 0.0, 0.0
    for source, target, dotted in edges:
        (x1, y1), (x2, y2) = place(source), place(target)
        back = (source, target) in layers.back
        if sideways:
            x1, x2, y1, y2 = x1 + (0 if back else width), x2 + (width if back else 0), y1 + HEIGHT / 2, y2 + HEIGHT / 2
            bend = (x2 - x1) / 2
            path = f"M{x1:.0f},{y1:.0f} C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"
        else:
            x1, x2, y1, y2 = x1 + width / 2, x2 + width / 2, y1 + (0 if back else HEIGHT), y2 + (HEIGHT if back else 0)
            bend = (y2 - y1) / 2
            path = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"
        kind = " back" if back else " dotted" if dotted else ""
        shapes.append(f'<path class="arrow{kind}" d="{path}" marker-end="url(#tip)"/>')
    for name, label in labels.items():
        x, y = place(name)
        right, bottom = max(right, x + width), max(bottom, y + HEIGHT)
        shapes.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x + width / 2:.0f}" y="{y + 17.5:.0f}">{escape(label)}</text>'
        )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    head = f'<defs>{tip}<path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
    size = f'viewBox="0 0 {right + 4:.0f} {bottom + 4:.0f}" style="max-width:{right + 4:.0f}px"'
    said = escape("; ".join(f"{labels[source]} to {labels[target]}" for source, target, _ in edges))
    return f'<svg class="flowchart" {size} role="img" aria-label="{said}">{head}{"".join(shapes)}</svg>'


class Flowchart(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", drawn("\n".join(self.content)), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("mermaid", Flowchart)
    return {"parallel_read_safe": True}
