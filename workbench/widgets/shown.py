"""How something shows itself in a cell: static first, for whoever reads without a front-end; then the live widget.

With both in one output a reopened notebook would show an error in place of the widget, and nothing else; so they are
two, and the stylesheet hides the static form while the widget lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def shown(bundle: Mapping[str, str], make: Callable[[], Any]) -> None:
    """Display the static form, and beside a kernel the widget too.

    Args:
        bundle: the static form, by MIME type.
        make: makes the widget; called only where it can live.
    """
    from IPython.display import display

    display(dict(bundle), raw=True)
    if in_kernel():
        live(make())


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
