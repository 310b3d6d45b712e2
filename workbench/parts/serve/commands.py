"""The workspace for others: ``workbench mcp`` as tools for agents, ``workbench serve`` over HTTP."""

from __future__ import annotations

import signal
from contextlib import suppress

import click

from workbench.cli.page import Page, paged
from workbench.errors import needing

TOOLS = (
    *("search", "ask", "show", "answer"),
    *("core_memory_update", "archival_memory_insert", "archival_memory_search"),
)
"""What an agent may be offered; ``search``, ``show``, ``archival_memory_search`` write nothing."""


@click.command()
@click.option(
    "--only",
    type=click.Choice(TOOLS),
    multiple=True,
    help="Offer this tool; several times for several.",
)
@paged
def mcp(page: Page, only: tuple[str, ...]) -> None:
    """Serve the workspace to other agents by the Model Context Protocol.

    Over standard input and output: search, ask, show, answer a pause, and what is remembered of a person. No tool
    takes a path. With --only search --only show nothing is written.
    """
    with needing("workbench mcp", "mcp"):
        from workbench.parts.serve.mcp import make_server
    with page.open() as wb:
        make_server(wb, tuple(dict.fromkeys(only)) or TOOLS).run()


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(min=0.05),
    metavar="SECONDS",
    default=15.0,
    show_default=True,
    help="After so long without an event a stream sends a comment, so that no proxy takes it for dead.",
)
@paged
def over_http(page: Page, host: str, port: int, heartbeat: float) -> None:
    """Serve the workspace over HTTP: chat, a stream of events, runs and their records, answers to pauses, feedback.

    Only this machine is answered, unless WORKBENCH_HTTP_TOKEN is set, of 16 characters or more: every request then
    carries it as "Authorization: Bearer TOKEN".
    """
    with needing("workbench serve", "http"):
        import uvicorn  # noqa: F401

        from workbench.parts.serve import http
    with page.open() as wb, http.listen(host, port, http.read_token(wb.settings)) as listening:
        port = listening.getsockname()[1]
        page.give(
            {"host": host, "port": port},
            f"Listening on http://{host}:{port}/api/v1 (Ctrl-C ends it).",
        )
        # stopped either way, the workspace is closed
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            http.make_server(wb, heartbeat).run(sockets=[listening])
