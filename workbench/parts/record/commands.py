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
@click.argument("graph", metavar="MODULE:GRAPH", default="")
@click.argument("inputs", metavar="INPUT", default="")
@click.option("--run", "run_id", default="", metavar="ID", help="Continue this run, or answer it.")
@click.option("--answer", default=None, metavar="JSON", help="What the run asks for, as JSON or plain text.")
@click.option("--thread", default="", help="A conversation that is continued.")
@click.option("--replay", is_flag=True, help="Run it again from its tape alone.")
@paged
def record(page: Page, graph: str, inputs: str, run_id: str, answer: str | None, thread: str, replay: bool) -> int:
    """Run a LangGraph graph with everything on a tape.

    MODULE:GRAPH names a compiled graph, or a function that returns one; MODULE may be a file. A name without a colon is
    looked up in langgraph.json. INPUT is JSON, or plain text. A run remembers its graph: --run needs no MODULE:GRAPH.
    Without both, the runs that wait for an answer are listed.
    """
    from workbench.parts.record.questions import read_json

    with page.open(make=True) as wb:
        if not graph and not run_id:
            for waiting in wb._services["record"].waiting():
                click.echo(_text(waiting))
            return 0
        if not run_id:
            run = wb.record(graph).ask(read_json(inputs), thread=thread)
        else:
            runs: Any = wb.record(graph) if graph else wb
            run = runs.run(run_id)
            if replay:
                run = run.replay()
            elif answer is not None:
                run = run.answer(read_json(answer))
            else:
                run = run.resume()
        click.echo(_text(run))
        return EXIT_CODES.get(run.status, 1)


def _text(run: GraphRun) -> str:
    lines = [f"{run.run_id}  {run.status}"]
    lines += [f"{question.at} asks: {_shown(question.value)}" for question in run.questions]
    if run.status == "done":
        lines.append(_shown(run.state))
    return "\n".join(lines)


def _shown(value: Any) -> str:
    from workbench.parts.record.digests import plain

    return visible(json.dumps(plain(value), ensure_ascii=False))
