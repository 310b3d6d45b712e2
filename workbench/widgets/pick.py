"""The widgets with a front-end of their own: one shows markup and tells what was chosen, one brings the style."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import anywidget
import ipywidgets
import traitlets

from workbench.views.page import Picture

_HERE = Path(__file__).parent


class Event(NamedTuple):
    """What somebody did in a picture.

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
        """The one of this process; another one, when that was closed."""
        if cls._only is None or cls._only.comm is None:
            texts = ((_HERE / name).read_text(encoding="utf-8") for name in ("pick.js", "bench.css"))
            cls._only = cls(**dict(zip(("pick", "css"), texts, strict=True)))
        return cls._only


class _Telling(anywidget.AnyWidget):
    """A front-end that sends events."""

    shared = traitlets.Instance(Shared).tag(sync=True, **ipywidgets.widget_serialization)

    def __init__(self, **traits: Any):
        super().__init__(shared=Shared.only(), **traits)
        self._heard: list[Heard] = []
        self.on_msg(lambda _, content, __: self.press(*_told(content)))

    def on_event(self, heard: Heard) -> None:
        """Hear every event."""
        self._heard.append(heard)

    def press(self, kind: str, key: str = "", before: str = "") -> None:
        """What the front-end does on a click or a key; scripts and tests press this way."""
        for heard in self._heard:
            heard(Event(kind, key, before))


def _told(content: Any) -> tuple[str, str, str]:
    """The event in a message from a browser, which may be anything."""
    known = content if isinstance(content, dict) else {}
    kind, key, before = (str(known.get(name) or "") for name in ("kind", "key", "before"))
    return kind, key, before


class Pick(_Telling):
    """A picture, and what is chosen in it.

    Rows that change are sent alone; a front-end that connects later gets the whole.
    """

    _esm = _HERE / "load.js"  # short, for it is saved with every one: it runs `pick.js` of the shared model
    html = traitlets.Unicode("").tag(sync=True)

    def __init__(self, picture: Picture | None = None, **traits: Any):
        self._picture = picture or Picture()
        super().__init__(html=self._picture.html, **traits)

    @property
    def picture(self) -> Picture:
        """What it shows."""
        return self._picture

    def show(self, picture: Picture) -> None:
        """Show this picture, sending no more than what is not as it was."""
        rows = picture.changed(self._picture)
        self._picture = picture
        if rows is None:
            self.html = picture.html
        elif rows:
            self.send({"rows": rows})

    def reveal(self, key: str) -> None:
        """Bring a row into view."""
        self.send({"reveal": key})

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """The state that a front-end reads when it connects: with every row as it is now."""
        state = super().get_state(key, drop_defaults)
        return {**state, "html": self._picture.html} if "html" in state else state


class Sheet(_Telling):
    """The stylesheet of the root around it, and the keys that are the root's: ``primary``, ``escape``, ``undo``,
    ``redo``."""

    _esm = _HERE / "sheet.js"
    lang = traitlets.Unicode("en").tag(sync=True)


class Root(ipywidgets.VBox):
    """What everything of the bench stands in: the style, the language, the guarded keys."""

    def __init__(self, children: Any = (), lang: str = "en", **traits: Any):
        self.sheet = Sheet(lang=lang)
        super().__init__([self.sheet, *children], **traits)
        self.add_class("wb-root")
