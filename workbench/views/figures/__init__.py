"""Plotly figures, each a ``picture.Picture``: ``to_frame()`` returns its rows."""

from __future__ import annotations

from workbench.views.figures.charts import findings

__all__ = ["findings"]
