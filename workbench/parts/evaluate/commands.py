"""``workbench eval``: how good answers and rankings are, on a table of questions, compared with a baseline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from workbench.cli.page import Page, Pair, paged
from workbench.state import Json


@click.group("eval")
def evaluate() -> None:
    """Measure on a table of questions, compared with a baseline."""


def questions(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which questions are asked."""
    for option in (
        click.option(
            "--limit", type=click.IntRange(min=1), help="Only so many questions, evenly drawn."
        ),
        click.option(
            "--where", type=Pair(), multiple=True, help="Only questions that hold this value."
        ),
        click.option(
            "--questions",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            required=True,
            help="JSON Lines: id, question, and the rest.",
        ),
    ):
        command = option(command)
    return command


_kb = click.option("--kb", required=True, help="The knowledge base to search.")


@evaluate.command()
@_kb
@questions
@click.option("--tool", "tools", multiple=True, help="What is measured; the first one leads.")
@click.option(
    "--without",
    "parts",
    multiple=True,
    help="Each agent once more without this: plan, reflect or merge.",
)
@click.option(
    "--k",
    "cuts",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 2, 5, 10),
    show_default=True,
    help="Where rankings are cut; several times for several.",
)
@click.option(
    "--gold", default="gold", show_default=True, help="The field with the gold documents."
)
@paged
def retrieval(page: Page, kb: str, **options: Any) -> None:
    """Measure rankings of documents: recall, all-found, MRR and nDCG in percent; BM25, dense and their fusion too.

    A tool is any of `workbench`'s or your own, or an agent (fusion_agent: the whole retrieval graph). It gets the words
    of a question. Where its scores are probabilities, their calibration error is printed too.
    """
    from workbench.parts.evaluate.retrieval import eval_retrieval

    _measure(page, eval_retrieval, kb, options)


@evaluate.command()
@_kb
@questions
@click.option(
    "--judge", "judges", multiple=True, help="Grades the answers: MODEL, MODEL@PROMPT.toml."
)
@paged
def answers(page: Page, kb: str, **options: Any) -> None:
    """Measure answers: against the gold ones, against what they cite, and by judges; with and without models.

    A question has an `answer` and `gold` documents, or what it must say and cite (`must`, `list`, `number`), or
    `refuse`. The baselines are the best passage, the writer's model without evidence, where there is one, and the
    writer over the gold documents. Judges grade, each a model, or a model with a prompt of its own.
    """
    from workbench.parts.evaluate.answers import eval_answers

    _measure(page, eval_answers, kb, options)


def _measure(page: Page, measure: Callable[..., Json], kb: str, options: Json) -> None:
    """Print the table of a measurement."""
    arguments = {**options, "where": dict(options["where"]), "progress": page.progress}
    with page.open() as wb:
        table = measure(wb, kb, **arguments)
    if page.as_json:
        page.result(table)
    else:
        click.echo(table)
