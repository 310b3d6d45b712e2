"""Which results show themselves as widgets in a Jupyter kernel."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, cast

from workbench.extensions import load, paths


def register() -> None:
    """Let this kernel's cells show runs as benches; elsewhere nothing is done.

    It is IPython's own registry of display functions, so that what is shown knows nothing of its widget.
    """
    if not in_kernel():
        return
    from IPython.core.getipython import get_ipython

    formatter = cast(Any, get_ipython()).display_formatter.ipython_display_formatter
    widgets = {"workbench.runs.run:Run": "workbench.widgets.bench:find_bench", **paths("cells")}
    for shown, widget in widgets.items():
        module, _, name = shown.partition(":")
        formatter.for_type_by_name(module, name, partial(_show, widget))


def find_widget(shown: Any) -> Any:
    """Return the widget of a part for an object; None where no part has one."""
    made_by = paths("cells").get(f"{type(shown).__module__}:{type(shown).__qualname__}")
    return load(made_by)(shown) if made_by else None


def _show(widget: str, result: Any) -> None:
    load(widget)(result)._ipython_display_()


def in_kernel() -> bool:
    """Return whether this process is a Jupyter kernel, to which front-ends connect."""
    # a kernel has it loaded, and a process that does not need it starts sooner
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
