"""``workbench record``: run a LangGraph graph from the terminal, with its runs kept."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import EXIT_CODES, Page, paged
from workbench.errors import RunError
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
        agent = wb.record(load_graph(graph), graph.rpartition(":")[2])
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


def load_graph(name: str) -> Any:
    """Return the graph that ``module:attribute``, ``file.py:attribute`` or a name in ``langgraph.json`` names.

    Raises:
        RunError: there is none.
    """
    if ":" not in name:
        graphs = (
            json.loads(Path("langgraph.json").read_text("utf-8"))["graphs"] if Path("langgraph.json").exists() else {}
        )
        if name not in graphs:
            raise RunError(f"{name!r} is not in langgraph.json. Known: {', '.join(graphs) or 'none'}; or MODULE:GRAPH.")
        name = graphs[name] if isinstance(graphs[name], str) else graphs[name]["path"]
    module, _, attribute = name.rpartition(":")
    path = Path(module)
    if path.suffix == ".py":
        sys.path.insert(0, str(path.resolve().parent))
        module = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RunError(f"{name!r} cannot be loaded: {error}.") from None


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
