"""Records -> plotly figures, for cells, reports and a close look. Pure: equal data gives an equal figure.

Colour never stands alone: every status has its sign and its word (``labels``), its shape or its line, and the colours
keep apart for colour-blind eyes. Each is a ``picture.Picture``: ``to_frame()`` is what it was drawn from.
"""

from __future__ import annotations

from workbench.figures.dag import dag
from workbench.figures.findings import findings
from workbench.figures.graph import graph
from workbench.figures.knowledge import knowledge
from workbench.figures.rankings import rankings
from workbench.figures.reliability import reliability
from workbench.figures.steps import dag_rows
from workbench.figures.timeline import timeline

__all__ = ["dag", "dag_rows", "findings", "graph", "knowledge", "rankings", "reliability", "timeline"]
