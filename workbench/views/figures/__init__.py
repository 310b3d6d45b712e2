"""Records -> plotly figures, for cells, reports and a close look. Pure: equal data gives an equal figure.

Colour never stands alone: every status has its sign and its word (``labels``), its shape or its line, and the colours
keep apart for colour-blind eyes. Each is a ``picture.Picture``: ``to_frame()`` is what it was drawn from.
"""

from __future__ import annotations

from workbench.views.figures.findings import findings
from workbench.views.figures.scores import rankings, reliability

__all__ = ["findings", "rankings", "reliability"]
