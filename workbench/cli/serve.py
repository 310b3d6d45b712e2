"""``workbench mcp``: the workspace as tools for other agents."""

from __future__ import annotations

import click

from workbench.cli.page import Page, paged
from workbench.serve import TOOLS, required


@click.command()
@click.option("--only", type=click.Choice(TOOLS), multiple=True, help="Offer this tool; several times for several.")
@paged
def mcp(page: Page, only: tuple[str, ...]) -> None:
    """Serve the workspace to other agents by the Model Context Protocol.

    Over standard input and output: search, ask, show, compare, fork, and answer a pause. No tool takes a path. With
    --only search --only show --only compare nothing is written.
    """
    required()
    with page.open() as wb:
        from workbench.serve.tools import server_of

        server_of(wb, only or TOOLS).run()
