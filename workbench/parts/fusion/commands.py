"""``workbench fusion``: the fusion graph; ``workbench canvas``: five operations on the nodes of a JSON Canvas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from workbench.cli.follow import carry
from workbench.cli.page import Page, paged


@click.command()
@click.argument("question", default="")
@click.option("--kb", help="The knowledge base.")
@click.option("--strategy", help="How the rankings are fused; a wrong name lists them.")
@click.option("--rerank", help="The reranker, by name; none for none.")
@click.option("--quality-threshold", type=float, help="Below it is asked again, 0 to 1.")
@click.option("--max-retries", type=int, help="How often at most.")
@click.option("--canvas", default="", help="A canvas in the knowledge base, whose nodes ask.")
@click.option(
    "--operation", default="explanation", show_default=True, help="What is done with them."
)
@click.option("--nodes", default="", metavar="ID,...", help="Which of them.")
@paged
def fusion(page: Page, nodes: str, **options: Any) -> int:
    """Ask the fusion graph: two sources at once, fused, reranked, judged, and asked again where that falls short."""
    return carry(
        page,
        lambda wb: wb.fusion(nodes=_ids(nodes), wait=False, **options),
        stream=sys.stdout.isatty(),
    )


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--operation",
    help="What to do: decomposition, scoring, explanation, verification, review; by default the canvas is shown.",
)
@click.option(
    "--nodes", default="", metavar="ID,...", help="The nodes to work on; by default all that fit."
)
@click.option(
    "--kb", help="The knowledge base to ask; by default one of this canvas, made when needed."
)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="COPY",
    help="Put the results into a copy of FILE.",
)
@paged
def canvas(
    page: Page, file: Path, operation: str | None, nodes: str, kb: str | None, write: Path | None
) -> None:
    """Show the JSON Canvas FILE, or work on its nodes: split, score, explain, verify, plan a review.

    Results are tables; with --write they also become nodes and edges in a copy, which Obsidian opens.
    """
    if write and not operation:
        raise click.UsageError(
            "--write puts what an operation finds into a copy: name one with --operation."
        )
    with page.open(make=True) as wb:
        shown = wb.canvas(file)
        if operation:
            results = shown.work(operation, _ids(nodes), kb)
            copy = results.save(write) if write else None
            page.present(results)
            if copy:
                page.say(f"Written: {copy.path}", "green")
        else:
            page.present(shown)


def _ids(nodes: str) -> list[str]:
    return [name.strip() for name in nodes.split(",") if name.strip()]
