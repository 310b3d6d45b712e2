"""Mermaid flowcharts drawn as SVG while the site is built: no script and no network is needed to see them.

Reads what our pages use: ``flowchart`` or ``graph``, ``LR`` or ``TD``, nodes with a label, solid and dotted arrows. A
subgraph is not framed; ``retrieval\\3aplanner`` is the node ``planner`` of the subgraph ``retrieval``.
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
HEIGHT, GAP, CHARACTER = 26, 30, 7.3


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
        elif line and not line.startswith(
            ("subgraph", "end", "direction", "classDef", "%%")
        ):
            pieces = ARROW.split(line)
            ends = [named(piece) for piece in pieces[::3]]
            for source, arrow, target in zip(
                ends, pieces[1::3], ends[1:], strict=False
            ):
                if source and target and source != target:
                    edges.append((source, target, arrow.startswith("-.")))
    return sideways, labels, edges


def drawn(text: str) -> str:
    """Return the chart as SVG in the colours of the page."""
    sideways, labels, edges = parsed(text)
    layers = layered(list(labels), [(source, target) for source, target, _ in edges])
    widths = {name: len(label) * CHARACTER + 18 for name, label in labels.items()}
    widest = max(widths.values())
    low = min(row for _, row in layers.places.values())
    along = [0.0]  # where each layer begins
    for layer in range(max(layer for layer, _ in layers.places.values()) + 1):
        inside = max(
            widths[name] for name, place in layers.places.items() if place[0] == layer
        )
        along.append(along[-1] + (inside + GAP if sideways else HEIGHT + GAP))

    def corner(name: str) -> tuple[float, float]:
        layer, row = layers.places[name]
        if sideways:
            return along[layer] + 2, (row - low) * (HEIGHT + 24) + 2
        return (row - low) * (widest + 14) + (widest - widths[name]) / 2 + 2, along[
            layer
        ] + 2

    shapes, right, top, bottom = [], 0.0, 0.0, 0.0
    for source, target, dotted in edges:
        (x1, y1), (x2, y2) = corner(source), corner(target)
        back = (source, target) in layers.back
        if sideways and back and layers.places[source][1] < 0:  # above the boxes
            x1, x2 = x1 + widths[source] / 2, x2 + widths[target] / 2
            high = min(y1, y2) - 26
            bends, top = (
                f"{x1:.0f},{high:.0f} {x2:.0f},{high:.0f}",
                min(top, high + 4),
            )
        elif sideways and back:  # below them
            x1, x2, y1, y2 = (
                x1 + widths[source] / 2,
                x2 + widths[target] / 2,
                y1 + HEIGHT,
                y2 + HEIGHT,
            )
            deep = max(y1, y2) + 26
            bends, bottom = (
                f"{x1:.0f},{deep:.0f} {x2:.0f},{deep:.0f}",
                max(bottom, deep - 4),
            )
        elif sideways:
            x1, y1, y2 = x1 + widths[source], y1 + HEIGHT / 2, y2 + HEIGHT / 2
            bends = f"{(x1 + x2) / 2:.0f},{y1:.0f} {(x1 + x2) / 2:.0f},{y2:.0f}"
        elif back:  # to the right of the boxes
            x1, x2, y1, y2 = (
                x1 + widths[source],
                x2 + widths[target],
                y1 + HEIGHT / 2,
                y2 + HEIGHT / 2,
            )
            far = max(x1, x2) + 40
            bends, right = (
                f"{far:.0f},{y1:.0f} {far:.0f},{y2:.0f}",
                max(right, far - 8),
            )
        else:
            x1, x2, y1 = x1 + widths[source] / 2, x2 + widths[target] / 2, y1 + HEIGHT
            bends = f"{x1:.0f},{(y1 + y2) / 2:.0f} {x2:.0f},{(y1 + y2) / 2:.0f}"
        kind = " back" if back else " dotted" if dotted else ""
        path = f"M{x1:.0f},{y1:.0f} C{bends} {x2:.0f},{y2:.0f}"
        shapes.append(
            f'<path class="arrow{kind}" d="{path}" marker-end="url(#tip)"/>'
        )
    for name, label in labels.items():
        x, y = corner(name)
        right, bottom = max(right, x + widths[name]), max(bottom, y + HEIGHT)
        shapes.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{widths[name]:.0f}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x + widths[name] / 2:.0f}" y="{y + 17.5:.0f}">{escape(label)}</text>'
        )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    head = f'<defs>{tip}<path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
    size = f'viewBox="0 {top:.0f} {right + 4:.0f} {bottom - top + 4:.0f}" style="max-width:{right + 4:.0f}px"'
    said = escape(
        "; ".join(
            f"{labels[source]} to {labels[target]}" for source, target, _ in edges
        )
    )
    return f'<svg class="flowchart" {size} role="img" aria-label="{said}">{head}{"".join(shapes)}</svg>'


class Flowchart(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", drawn("\n".join(self.content)), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("mermaid", Flowchart)
    return {"parallel_read_safe": True}
