"""Records -> plotly figures: the plan as a DAG, and what ran when. Pure: equal data gives an equal figure.

Colour never stands alone: every status has its sign and its word (``labels.py``), and the colours keep apart for
colour-blind eyes. The data behind each figure is a DataFrame too (``dag_frame``, ``timeline_frame``).
"""

from __future__ import annotations

from workbench.figures.dag import dag, dag_frame, dag_rows
from workbench.figures.timeline import timeline, timeline_frame

__all__ = ["dag", "dag_frame", "dag_rows", "timeline", "timeline_frame"]
