"""``workbench canvas``: what is on a JSON Canvas, and five operations on its nodes."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli.page import Page, Text, paged

OPERATIONS = ("decomposition", "scoring", "explanation", "verification", "review")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--operation", type=click.Choice(OPERATIONS), help="What to do; without it the canvas is only shown.")
@click.option(
    "--nodes", type=Text(), default="", metavar="ID,...", help="The nodes to work on; by default all that fit."
)
@click.option("--kb", type=Text(), help="The knowledge base to ask; by default one of this canvas, made when needed.")
@click.option("--write", type=click.Path(path_type=Path), metavar="COPY", help="Put what is found into a copy of FILE.")
@paged
def canvas(page: Page, file: Path, operation: str | None, nodes: str, kb: str | None, write: Path | None) -> None:
    """Show the JSON Canvas FILE, or work on its nodes: split, score, explain, verify, plan a review.

    Results are tables; with --write they also become nodes and edges in a copy, which Obsidian opens.
    """
    if write and not operation:
        raise click.UsageError("--write puts what an operation finds into a copy: name one with --operation.")
    with page.open(make=True) as wb:
        shown = wb.canvas(file)
        if operation:
            found = shown.work(operation, [one.strip() for one in nodes.split(",") if one.strip()], kb)
            copy = found.save(write) if write else None
            page.present(found)
            if copy:
                page.say(f"Written: {copy.path}", "green")
        else:
            page.present(shown)
