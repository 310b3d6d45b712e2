"""Records -> plotly figures of what has axes. Pure: equal data gives an equal figure.

Colour never stands alone: every fate and tool has its sign and its word (``labels``). Each is a ``picture.Picture``:
``to_frame()`` is what it was drawn from.
"""

from __future__ import annotations

from workbench.views.figures.charts import findings, reliability, tokens

__all__ = ["findings", "reliability", "tokens"]
