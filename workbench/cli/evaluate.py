"""``workbench eval``: how good the answers are, on a table of questions."""

from __future__ import annotations

from pathlib import Path

import click

from workbench.cli.page import Page, Text, paged


@click.group("eval")
def evaluate() -> None:
    """Measure: a table of questions, with a baseline beside it."""


@evaluate.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kb", type=Text(), default="film", show_default=True, help="The knowledge base to ask.")
@click.option("--no-baseline", is_flag=True, help="Do not ask everything once more with one vector search.")
@click.option("--keep", is_flag=True, help="Write the runs down, to look at them with `workbench runs`.")
@paged
def questions(page: Page, file: Path, kb: str, no_baseline: bool, keep: bool) -> int:
    """Ask every question of FILE (JSON Lines) and print how many are right, by category. Ends with 1 if any is not."""
    from workbench.evaluate import read_questions, score_questions, table_text

    rows = read_questions(file)
    with page.open() as wb:
        wb.knowledge.get(kb)  # an unknown one is an error before the first question
        asked = 0

        def tell(score: object, run: object) -> None:
            nonlocal asked
            asked += 1
            if page.watched and asked % 10 == 0:
                page.say(f"{asked} of {len(rows)} asked", "dim")

        table = score_questions(wb, rows, kb=kb, baseline=not no_baseline, keep=keep, each=tell)
    if page.as_json:
        page.result(table)
    else:
        click.echo(table_text(table))
    return 0 if all(score["right"] for score in table["questions"]) else 1
