"""``workbench record``: run a LangGraph graph from the terminal, with its runs kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import EXIT_CODES, Page, paged
from workbench.text import visible

if TYPE_CHECKING:
    from workbench.parts.record.run import GraphRun


@click.command()
@click.argument("graph", metavar="MODULE:GRAPH")
@click.argument("inputs", metavar="INPUT", default="")
@click.option("--run", "run_id", default="", metavar="ID", help="Continue this run, or answer it.")
@click.option("--answer", default=None, metavar="JSON", help="What the run asks for, as JSON or plain text.")
@click.option("--thread", default="", help="A conversation that is continued.")
@click.option("--replay", is_flag=True, help="Run it again from its tape alone.")
@paged
def record(page: Page, graph: str, inputs: str, run_id: str, answer: str | None, thread: str, replay: bool) -> int:
    """Run a LangGraph graph with everything on a tape.

    MODULE:GRAPH names a compiled graph, or a function that returns one; MODULE may be a file. A name without a colon is
    looked up in langgraph.json. INPUT is JSON; plain text becomes a user's message.
    """
    with page.open(make=True) as wb:
        agent = wb.record(graph)
        if not run_id:
            run = agent.ask(_json(inputs, {"messages": [("user", inputs)]}), thread=thread)
        elif replay:
            run = agent.run(run_id).replay()
        elif answer is not None:
            run = agent.run(run_id).answer(_json(answer, answer))
        else:
            run = agent.run(run_id).resume()
        click.echo(_text(run))
        return EXIT_CODES.get(run.status, 1)


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise


def _text(run: GraphRun) -> str:
    lines = [f"{run.run_id}  {run.status}"]
    lines += [f"{question.at} asks: {_shown(question.value)}" for question in run.questions]
    if run.status == "done":
        lines.append(_shown(run.state))
    return "\n".join(lines)


def _shown(value: Any) -> str:
    from workbench.parts.record.digests import plain

    return visible(json.dumps(plain(value), ensure_ascii=False))
