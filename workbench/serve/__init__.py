"""Doors for other programs: ``graphs`` for a LangGraph server, ``tools`` for agents (Model Context Protocol)."""

from __future__ import annotations

from importlib.util import find_spec

from workbench.errors import MissingExtra

TOOLS = ("search", "ask", "show", "compare", "fork", "answer")
"""What an agent may be offered; ``search``, ``show`` and ``compare`` leave nothing behind."""


def required() -> None:
    """Refuse to serve tools where the protocol's library is missing.

    Raises:
        MissingExtra: it is not installed.
    """
    if not find_spec("mcp"):
        raise MissingExtra("workbench mcp", "mcp")
