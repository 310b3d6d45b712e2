"""What every widget is made of: pictures that tell what was pressed, panels, roots with the style, buttons."""

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
from workbench.views.labels import LANGUAGES, Labels, labels_for
from workbench.views.page import NOTHING, Picture
from workbench.widgets.display import in_kernel

_HERE = Path(__file__).parent


class Event(NamedTuple):
    """What a person did in a picture.

    ``kind`` is ``choose`` (a row), ``move`` (a row, to stand before another or at the end), ``remove``, or what a
    button does; ``key`` is the row's or the button's.
    """

    kind: str
    key: str = ""
    before: str = ""


Heard = Callable[[Event], None]


class Shared(ipywidgets.Widget):
    """What all of them have in common, sent and saved once: a notebook with a hundred pictures has it once too."""

    pick = traitlets.Unicode().tag(sync=True)
    css = traitlets.Unicode().tag(sync=True)
    _only: ClassVar[Shared | None] = None

    @classmethod
    def only(cls) -> Shared:
        """Return the one of this process; another one, when that was closed."""
        if cls._only is None or cls._only.comm is None:
            texts = ((_HERE / name).read_text(encoding="utf-8") for name in ("pick.js", "bench.css"))
            cls._only = cls(**dict(zip(("pick", "css"), texts, strict=True)))
        return cls._only


class _Telling(anywidget.AnyWidget):
    """A front-end that sends events."""

    shared = traitlets.Instance(Shared).tag(sync=True, **ipywidgets.widget_serialization)

    def __init__(self, heard: Heard | None = None, **traits: Any):
        super().__init__(shared=Shared.only(), **traits)
        self._heard: list[Heard] = [heard] if heard else []
        self.on_msg(lambda _, content, __: self.press(*_event_of(content)))

    def on_event(self, heard: Heard) -> None:
        """Hear every event."""
        self._heard.append(heard)

    def press(self, kind: str, key: str = "", before: str = "") -> None:
        """What the front-end does on a click or a key; scripts and tests press this way."""
        for heard in self._heard:
            heard(Event(kind, key, before))


def _event_of(content: Any) -> tuple[str, str, str]:
    """Return the event in a message from a browser, which may be anything."""
    known = content if isinstance(content, dict) else {}
    kind, key, before = (str(known.get(name) or "") for name in ("kind", "key", "before"))
    return kind, key, before


def _picture(shown: Picture | Markup) -> Picture:
    return shown if isinstance(shown, Picture) else Picture(shown)


class Pick(_Telling):
    """A picture, whose events are told to ``heard``.

    Rows that change are sent alone; a front-end that connects later gets the whole.

    Attributes:
        picture: what it shows.
    """

    _esm = _HERE / "load.js"  # short, for it is saved with every one: it runs `pick.js` of the shared model
    html = traitlets.Unicode("").tag(sync=True)

    def __init__(self, shown: Picture | Markup = NOTHING, **traits: Any):
        self.picture = _picture(shown)
        super().__init__(html=self.picture.html, **traits)

    def show(self, shown: Picture | Markup = NOTHING) -> None:
        """Show this and nothing else, sending no more than what is not as it was."""
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
        """Return the state that a front-end reads when it connects: with every row as it is now."""
        state = super().get_state(key, drop_defaults)
        return {**state, "html": self.picture.html} if "html" in state else state


class Sheet(_Telling):
    """The stylesheet of the root around it, and the keys that are the root's: ``primary``, ``escape``, ``undo``,
    ``redo``."""

    _esm = _HERE / "sheet.js"
    lang = traitlets.Unicode("en").tag(sync=True)


class Root(ipywidgets.VBox):
    """What everything of the bench is in: the style, the language, the guarded keys."""

    def __init__(self, children: Any = (), lang: str = "en", **traits: Any):
        self.sheet = Sheet(lang=lang)
        super().__init__([self.sheet, *children], **traits)
        self.add_class("wb-root")


class CellRoot(Root):
    """A root that a cell displays in two outputs: a static form, for who reads without a front-end, then itself.

    With both in one output a reopened notebook would show an error in place of the widget, and nothing else. The
    stylesheet hides the static form while the widget lives.
    """

    _handle: Any = None
    _displayed: Mapping[str, str] = {}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the static form."""
        raise NotImplementedError

    def update_static_form(self) -> None:
        """Bring the static form up to date, if it is displayed and there is something new."""
        if self._handle and (now := self._repr_mimebundle_()) != self._displayed:
            self._displayed = now
            self._handle.update(now, raw=True)

    def _ipython_display_(self) -> None:
        self._displayed = self._repr_mimebundle_()
        self._handle = IPython.display.display(self._displayed, raw=True, display_id=True)
        if in_kernel():  # the widget without a text: where there is no front-end, nothing stands in its place
            view = {"model_id": self.model_id, "version_major": 2, "version_minor": 0}
            IPython.display.display({"application/vnd.jupyter.widget-view+json": view, "text/plain": ""}, raw=True)


class Panel(traitlets.HasTraits):
    """A part of the bench, which can stand alone in a cell too.

    Attributes:
        asked: what a person asked for last by pressing in it, with ``n``, the number of times so far.
        region: the widget, to be put into another.
    """

    asked = traitlets.Dict()
    region: ipywidgets.Box

    def __init__(self, labels: Labels):
        super().__init__()
        self.labels = labels

    def ask(self, **what: Any) -> None:
        """Tell what a person asked for."""
        self.asked = {**what, "n": self.asked.get("n", 0) + 1}

    def on_asked(self, heard: Callable[[Data], Any]) -> None:
        """Hear everything that is asked for."""
        self.observe(lambda change: heard(change.new), "asked")


class PanelRoot(CellRoot):
    """A panel alone in a cell.

    Args:
        panel: the panel.
        given: what it shows; its own static form is that of the cell.
        act: does what is asked for; the widget that it gives is shown below the panel.
    """

    def __init__(self, panel: Panel, given: Any, act: Callable[[Data], Any]):
        self._given, self._act, self._below = given, act, ipywidgets.VBox()
        super().__init__([panel.region, self._below], panel.labels.html_lang)
        panel.on_asked(self._asked)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """That of what it shows."""
        return self._given._repr_mimebundle_()

    def _asked(self, asked: Data) -> None:
        if widget := self._act(asked):
            self._below.children = [widget]


def display_if(widget: ipywidgets.DOMWidget, shown: Any) -> None:
    """Show or hide a widget; what is hidden stays what it is."""
    widget.layout.display = None if shown else "none"


def on_change(widget: ipywidgets.Widget, heard: Callable[[], Any]) -> None:
    """Call when a person changed the value of a widget."""
    widget.observe(lambda _: heard(), "value")


def press_button(text: str, press: Callable[[], Any], *classes: str, told: str | None = None) -> ipywidgets.Button:
    """Return a button of ipywidgets, with what pressing it does."""
    button = ipywidgets.Button(description=text, tooltip=told)
    button.on_click(lambda _: press())
    for cls in classes:
        button.add_class(cls)
    return button


def labels_in(lang: str | None, *kept: str, message: str) -> Labels:
    """Return the words in the language that is asked for, or else the first that was kept; else in that of the message.

    Raises:
        WorkbenchError: there are no words in that language.
    """
    if lang is not None and lang not in LANGUAGES:
        raise WorkbenchError(f"lang is {lang!r}. Known: {', '.join(LANGUAGES)}.")
    chosen = next(filter(None, (lang, *kept)), "")
    return Labels(chosen) if chosen in LANGUAGES else labels_for(message)
