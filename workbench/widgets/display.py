"""Which results show themselves as widgets in a Jupyter kernel."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from workbench.extensions import load, paths

_WIDGETS = {
    "workbench.runs.run:Run": "workbench.widgets.bench:find_bench",
    "workbench.runs.past:Past": "workbench.widgets.futures:past_panel",
    "workbench.futures.tree:Tree": "workbench.widgets.futures:forks_panel",
    "workbench.futures.compare:Comparison": "workbench.widgets.futures:comparison_panel",
}
"""What a cell shows as a widget: a class, and what makes the widget of its objects; loaded when first shown."""


def register() -> None:
    """Let this kernel's cells show runs, canvases, checkpoints and the like as widgets; elsewhere nothing is done.

    It is IPython's own registry of display functions, so that what is shown knows nothing of its widget.
    """
    if not in_kernel():
        return
    from IPython.core.getipython import get_ipython

    formatter = cast(Any, get_ipython()).display_formatter.ipython_display_formatter
    for shown, widget in {**_WIDGETS, **paths("cells")}.items():
        module, _, name = shown.partition(":")
        formatter.for_type_by_name(module, name, partial(_show, widget))


def _show(widget: str, result: Any) -> None:
    load(widget)(result)._ipython_display_()


def in_kernel() -> bool:
    """Return whether this process is a Jupyter kernel, to which front-ends connect."""
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
