"""``workbench mcp``: the workspace as tools for other agents."""

from __future__ import annotations

from importlib.util import find_spec

import click

from workbench.cli.page import Page, paged
from workbench.errors import MissingExtra

TOOLS = ("search", "ask", "show", "compare", "fork", "answer")
"""What an agent may be offered; ``search``, ``show`` and ``compare`` leave nothing behind."""


@click.command()
@click.option("--only", type=click.Choice(TOOLS), multiple=True, help="Offer this tool; several times for several.")
@paged
def mcp(page: Page, only: tuple[str, ...]) -> None:
    """Serve the workspace to other agents by the Model Context Protocol.

    Over standard input and output: search, ask, show, compare, fork, and answer a pause. No tool takes a path. With
    --only search --only show --only compare nothing is written.
    """
    if not find_spec("mcp"):
        raise MissingExtra("workbench mcp", "mcp")
    with page.open() as wb:
        from workbench.cli.tools import server_of

        server_of(wb, tuple(dict.fromkeys(only)) or TOOLS).run()
