"""How something shows itself in a cell: static first, for whoever reads without a front-end; then the live widget.

With both in one output a reopened notebook would show an error in place of the widget, and nothing else; so they are
two, and the stylesheet hides the static form while the widget lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

_WIDGETS = {
    ("workbench.runs.run", "Run"): ("workbench.widgets.bench", "bench_of"),
    ("workbench.runs.past", "Past"): ("workbench.widgets.past", "past_of"),
    ("workbench.futures.tree", "Tree"): ("workbench.widgets.futures", "forks_of"),
    ("workbench.futures.compare", "Comparison"): ("workbench.widgets.futures", "beside_of"),
}
"""What a cell shows as a widget: its class, and what makes the widget of it; loaded when first shown."""


def register() -> None:
    """Let this kernel's cells show runs, checkpoints, trees and comparisons as widgets; elsewhere nothing is done.

    It is IPython's own registry of display functions, so that what is shown knows nothing of its widget.
    """
    if not in_kernel():
        return
    from IPython.core.getipython import get_ipython

    formatter = cast(Any, get_ipython()).display_formatter.ipython_display_formatter
    for (module, name), (room, make) in _WIDGETS.items():
        formatter.for_type_by_name(module, name, partial(_show, room, make))


def _show(room: str, make: str, given: Any) -> None:
    """Display its static form and its widget; a bench keeps its own static form up to date."""
    widget = getattr(import_module(room), make)(given)
    if hasattr(widget, "_ipython_display_") and hasattr(widget, "_static"):
        widget._ipython_display_()
    else:
        from IPython.display import display

        display(given._repr_mimebundle_(), raw=True)
        live(widget)


def live(widget: Any) -> None:
    """Display a widget without a text form: where there is no front-end, nothing stands in its place."""
    from IPython.display import display

    view = {"model_id": widget.model_id, "version_major": 2, "version_minor": 0}
    display({"application/vnd.jupyter.widget-view+json": view, "text/plain": ""}, raw=True)


def in_kernel() -> bool:
    """Whether this process is a Jupyter kernel, to which front-ends connect."""
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


class Static:
    """The static form of a widget whose content changes: displayed once, brought up to date by its handle."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown: Mapping[str, str] = {}

    def display(self, bundle: Mapping[str, str]) -> None:
        """Display it here."""
        from IPython.display import display

        self._shown = dict(bundle)
        self._handle = display(dict(bundle), raw=True, display_id=True)

    def show(self, bundle: Callable[[], Mapping[str, str]]) -> None:
        """Bring what is displayed up to date, if it is displayed and there is something new."""
        if self._handle is None:
            return
        now = dict(bundle())
        if now != self._shown:
            self._shown = now
            self._handle.update(now, raw=True)
