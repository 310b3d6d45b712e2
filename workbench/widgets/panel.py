"""The parts of every widget: pictures that send events, panels, roots with the style, buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import anywidget
import IPython.display
import ipywidgets
import traitlets
from markupsafe import Markup

from workbench.errors import WorkbenchError
from workbench.state import Data
from workbench.views.drawing import STYLE
from workbench.views.labels import LANGUAGES, Labels, labels_for
from workbench.views.markup import NOTHING, Picture, draw
from workbench.widgets.display import in_kernel

_FOLDER = Path(__file__).parent


class Event(NamedTuple):
    """An action of a person in a picture.

    ``kind`` is ``choose`` (a row), ``remove``, or the action of a button; ``key`` is that of the row or the button.
    """

    kind: str
    key: str = ""


Listener = Callable[[Event], None]


class Shared(ipywidgets.Widget):
    """The script and the style of all pictures, sent and saved once per notebook."""

    pick = traitlets.Unicode().tag(sync=True)
    css = traitlets.Unicode().tag(sync=True)
    _only: ClassVar[Shared | None] = None

    @classmethod
    def only(cls) -> Shared:
        """Return the instance of this process, or a new one when it was closed."""
        if cls._only is None or cls._only.comm is None:
            pick, css = ((_FOLDER / name).read_text("utf-8") for name in ("pick.js", "bench.css"))
            cls._only = cls(pick=pick, css=STYLE + css)
        return cls._only


class _Sender(anywidget.AnyWidget):
    """A front-end that sends events."""

    shared = traitlets.Instance(Shared).tag(sync=True, **ipywidgets.widget_serialization)

    def __init__(self, listener: Listener | None = None, **traits: Any):
        super().__init__(shared=Shared.only(), **traits)
        self._listeners: list[Listener] = [listener] if listener else []
        self.on_msg(lambda _, content, __: self.press(*_read_event(content)))

    def on_event(self, listener: Listener) -> None:
        """Call a listener for every event."""
        self._listeners.append(listener)

    def press(self, kind: str, key: str = "") -> None:
        """Send an event, as the front-end does on a click or a key."""
        for listener in self._listeners:
            listener(Event(kind, key))


def _read_event(content: Any) -> tuple[str, str]:
    """Read an event from a message of a browser, which may be anything."""
    message = content if isinstance(content, dict) else {}
    return str(message.get("kind") or ""), str(message.get("key") or "")


def _picture(shown: Picture | Markup) -> Picture:
    return shown if isinstance(shown, Picture) else Picture(shown)


class Pick(_Sender):
    """A picture, whose events go to ``listener``.

    Only changed rows are sent; a front-end that connects later gets the whole picture.

    Attributes:
        picture: the picture.
    """

    # short, for it is saved with every one: it runs `pick.js` of the shared model
    _esm = _FOLDER / "load.js"
    html = traitlets.Unicode("").tag(sync=True)

    def __init__(self, shown: Picture | Markup = NOTHING, **traits: Any):
        self.picture = _picture(shown)
        super().__init__(html=self.picture.html, **traits)

    def show(self, shown: Picture | Markup = NOTHING) -> None:
        """Show another picture, sending only its changes."""
        picture = _picture(shown)
        rows = picture.changed(self.picture)
        self.picture = picture
        if rows is None:
            self.html = picture.html
        elif rows:
            self.send({"rows": rows})

    def reveal(self, key: str) -> None:
        """Bring a row into view."""
        self.send({"reveal": key})

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """Return the state for a front-end that connects, with the current rows."""
        state = super().get_state(key, drop_defaults)
        return {**state, "html": self.picture.html} if "html" in state else state


class Sheet(_Sender):
    """The stylesheet of the root around it, and the keys that are the root's: ``primary``, ``escape``, ``undo``."""

    _esm = _FOLDER / "sheet.js"
    lang = traitlets.Unicode("en").tag(sync=True)
    dead = traitlets.Unicode().tag(sync=True)


class Root(ipywidgets.VBox):
    """The outermost widget: the style, the language, the guarded keys."""

    def __init__(self, children: Any = (), lang: str = "en", **traits: Any):
        self.sheet = Sheet(lang=lang, dead=Labels(lang[:2])("run_again"))
        super().__init__([self.sheet, *children], **traits)
        self.add_class("wb-root")


class CellRoot(Root):
    """A root that a cell displays in two outputs: a static form for readers without a front-end, and the widget.

    With both in one output, a reopened notebook would show only an error in place of the widget. The stylesheet hides
    the static form while the widget lives.
    """

    _handle: Any = None
    _displayed: Mapping[str, str] = {}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the static form."""
        raise NotImplementedError

    def _static_form(self) -> dict[str, str]:
        """Return the static form, with the text for a widget whose kernel has ended."""
        bundle = self._repr_mimebundle_()
        bundle["text/html"] += str(draw("parts.ended", text=self.sheet.dead))
        return bundle

    def update_static_form(self) -> None:
        """Update the static form, if it is displayed and has changed."""
        if self._handle:
            bundle = self._static_form()
            if bundle != self._displayed:
                self._displayed = bundle
                self._handle.update(bundle, raw=True)

    def _ipython_display_(self) -> None:
        self._displayed = self._static_form()
        self._handle = IPython.display.display(self._displayed, raw=True, display_id=True)
        if in_kernel():  # without a text, for without a front-end there is nothing to show
            view = {"model_id": self.model_id, "version_major": 2, "version_minor": 0}
            IPython.display.display(
                {"application/vnd.jupyter.widget-view+json": view, "text/plain": ""}, raw=True
            )


class Panel(traitlets.HasTraits):
    """A part of the bench, which a cell can show alone too.

    Attributes:
        asked: the last request of a person, with its number ``n``.
        region: the widget.
    """

    request = traitlets.Dict()
    region: ipywidgets.Box

    def __init__(self, labels: Labels):
        super().__init__()
        self.labels = labels

    def ask(self, **request: Any) -> None:
        """Publish a request of a person."""
        self.request = {**request, "n": self.request.get("n", 0) + 1}

    def on_request(self, listener: Callable[[Data], Any]) -> None:
        """Call a listener for every request."""
        self.observe(lambda change: listener(change.new), "request")


def display_if(widget: ipywidgets.DOMWidget, shown: Any) -> None:
    """Show or hide a widget, which keeps its state."""
    widget.layout.display = None if shown else "none"


def set_class(widget: ipywidgets.DOMWidget, name: str, present: Any) -> None:
    """Add a class to a widget, or remove it."""
    (widget.add_class if present else widget.remove_class)(name)


def on_change(widget: ipywidgets.Widget, listener: Callable[[], Any]) -> None:
    """Call when a person changed the value of a widget."""
    widget.observe(lambda _: listener(), "value")


def press_button(
    text: str, press: Callable[[], Any], *classes: str, tooltip: str | None = None
) -> ipywidgets.Button:
    """Return a button of ipywidgets that calls ``press``."""
    button = ipywidgets.Button(description=text, tooltip=tooltip)
    button.on_click(lambda _: press())
    for cls in classes:
        button.add_class(cls)
    return button


def labels_in(lang: str | None, *saved: str, message: str) -> Labels:
    """Return the labels in this language, or in the first saved one, or in that of the message.

    Raises:
        WorkbenchError: there are no labels in that language.
    """
    if lang is not None and lang not in LANGUAGES:
        raise WorkbenchError(f"lang is {lang!r}. Known: {', '.join(LANGUAGES)}.")
    chosen = next(filter(None, (lang, *saved)), "")
    return Labels(chosen) if chosen in LANGUAGES else labels_for(message)
