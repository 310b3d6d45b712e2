"""Parts: capabilities that extend the core. Each is one folder, known by its ``PART``, and loaded when first used.

The core imports no part: it looks up here what a part provides, by kind and name, and works without a missing part.
A distribution adds a part of its own by an entry point in the group ``workbench.parts``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.metadata import entry_points
from importlib.util import find_spec
from threading import get_ident
from types import MappingProxyType
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError

Paths = Mapping[str, str]
"""Name -> ``"module:name"``."""
_NONE: Paths = MappingProxyType({})
BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent", "agents", "retrieval_graph"),
    "chains": (),
    "memory": ("memory", "prompt_parts"),
    "reports": ("report",),
    "fusion": ("fusion", "canvas"),
    "evaluate": (),
    "graft": ("graft",),
    "inbox": ("inbox",),
    "experiments": ("experiments", "what_if"),
    "record": ("record", "read_traces"),
    "serve": (),
    "sources": (),
    "upkeep": ("gc", "backup"),
}
"""The parts of this package, each with the attributes that it gives to ``Workbench`` and ``Run``."""


class Part(NamedTuple):
    """One capability and what it adds. Values are ``"module:name"``, the module relative to ``package``.

    Attributes:
        name: the name that messages use.
        package: where its modules are.
        settings: a pydantic model, whose fields are settings of the workspace.
        nodes: what the graphs call.
        tools: tools for plans, by their names.
        commands: commands of ``workbench``.
        workbench: attributes of ``Workbench``: functions and properties, whose first argument is the workspace.
        run: attributes of ``Run``, likewise.
        forms: widgets of review points.
        widgets: other widgets.
        cells: what a cell shows as a widget, by ``"module:Class"`` of its objects.
        views: pictures and texts.
        readers: functions that read files as documents, by suffix (``knowledge/reading/corpus.py``).
        stores: where vectors or conversations may be kept instead.
        sources: what is asked outside the corpus.
        services: what makes a ``Service``; each is made once for an open workspace.
    """

    name: str
    package: str
    settings: str = ""
    nodes: Paths = _NONE
    tools: Paths = _NONE
    commands: Paths = _NONE
    workbench: Paths = _NONE
    run: Paths = _NONE
    forms: Paths = _NONE
    widgets: Paths = _NONE
    cells: Paths = _NONE
    views: Paths = _NONE
    readers: Paths = _NONE
    stores: Paths = _NONE
    sources: Paths = _NONE
    services: Paths = _NONE


class Service:
    """What a part does while a workspace is open; a part overrides what it needs.

    Args:
        wb: the open workspace.
    """

    def __init__(self, wb: Any):
        self._wb = wb

    def memory(self, driver: Any, memory: Any) -> Any:
        """Return what the runs of a driver recall from, given what would be used without this part."""
        return memory

    def find(self, run_id: str) -> Any:
        """Return a run of this part; None when it has none of that id."""

    def ended(self, run: Any) -> None:
        """Hear of a run that has ended."""

    def counted(self, name: str, seconds: float | None) -> None:
        """Hear how long something took that is done next to runs; None says that it failed."""

    def cleared(self) -> None:
        """Clear caches of conversations: some were deleted."""

    def close(self) -> None:
        """Stop the work in progress."""


@cache
def parts() -> Mapping[str, Part]:
    """Return the installed parts by name: those of this package, then those of other distributions."""
    modules = [f"workbench.parts.{name}" for name in BUILT_IN]
    modules_loaded = [import_module(module).PART for module in modules if find_spec(module)]
    modules_loaded += [entry.load() for entry in entry_points(group="workbench.parts")]
    return {part.name: part for part in modules_loaded}


def paths(kind: str) -> dict[str, str]:
    """Return what parts provide of a kind, by name, as ``"module:name"``; nothing is imported.

    >>> paths("tools")["fusion_search"]
    'workbench.parts.fusion.graph:TOOL'
    """
    return {
        name: f"{part.package}.{path}"
        for part in parts().values()
        for name, path in getattr(part, kind).items()
    }


def load(path: str) -> Any:
    """Import what ``"module:name"`` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def provided(kind: str, name: str) -> Any:
    """Return the object that a part provides under this kind and name; None without one."""
    path = paths(kind).get(name)
    return load(path) if path else None


def call_node(name: str, default: Any, *args: Any) -> Any:
    """Return what the node of a part returns; the default without that part."""
    node = provided("nodes", name)
    return node(*args) if node else default


def required(kind: str, name: str, part: str) -> Any:
    """Return the object that a part provides.

    Raises:
        WorkbenchError: the part is not installed.
    """
    brought = provided(kind, name)
    if brought is None:
        raise WorkbenchError(missing(name, part))
    return brought


def missing(name: str, part: str) -> str:
    """Return the message that a part is not installed."""
    return (
        f"{name!r} belongs to the part {part!r}, which is not installed. Parts here: {', '.join(parts()) or 'none'}. "
        f"Put workbench/parts/{part} back, or install the distribution that brings it."
    )


class Extended:
    """A class to which parts add attributes; ``_kind`` is the field of ``Part`` that names them."""

    _kind = ""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            # `__get__` binds the function or property of the part as if it stood in the class.
            if path := paths(self._kind).get(name):
                return load(path).__get__(self, type(self))
            for part, names in BUILT_IN.items():
                if name in names and part not in parts():
                    raise AttributeError(missing(name, part))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> Iterator[str]:
        yield from super().__dir__()
        yield from paths(self._kind)


# --- Libraries that others import ---


@contextmanager
def importing_without(library: str, package: str) -> Iterator[None]:
    """Let this thread import a package without a library that it loads only because it is installed.

    Who imports the package later has it whole: a copy that lacks the library is not left in ``sys.modules``.
    """
    thread = get_ident()
    before = {*sys.modules}
    refused = list[str]()

    class Finder(MetaPathFinder):
        def find_spec(self, fullname: str, *_: Any) -> None:
            if fullname == library and get_ident() == thread:
                refused.append(fullname)
                raise ModuleNotFoundError(fullname)

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in {*sys.modules} - before if refused else ():
            if name.partition(".")[0] == package:
                del sys.modules[name]
