"""``workbench record``: run a LangGraph graph from the terminal, with its runs kept."""

from __future__ import annotations

import click

from workbench.cli.follow import ANSWER, finish, follow
from workbench.cli.page import Page, paged


@click.command()
@click.argument("graph", metavar="MODULE:GRAPH")
@click.argument("inputs", metavar="INPUT")
@click.option("--thread", default="", help="A conversation that is continued.")
@paged
def record(page: Page, graph: str, inputs: str, thread: str) -> int:
    """Run a LangGraph graph with everything on a tape.

    MODULE:GRAPH names a compiled graph, or a function that returns one; MODULE may be a file. A name without a colon is
    looked up in langgraph.json. INPUT is JSON, plain text, or a .zip that `workbench export` wrote. The run is listed,
    shown, answered, forked, compared and replayed like any other: `workbench runs`, `show`, `resume`, `fork`,
    `compare`, `replay`.
    """
    from workbench.parts.record.questions import read_json

    with page.open(make=True) as wb:
        agent = wb.record(graph)
        run = (
            agent.read_capsule(inputs)
            if inputs.endswith(".zip")
            else agent.start(read_json(inputs), thread=thread)
        )
        document, _ = follow(page, run, False)
        return finish(page, document, ANSWER)
