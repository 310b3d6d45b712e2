"""``workbench prompts``: what each role asks its model, and whether another version of it is better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from workbench.cli.evaluate import FILE, printed
from workbench.cli.page import Page, Pair, Text, paged


@click.group()
def prompts() -> None:
    """What the roles ask their models: list, show, compare, test."""


@prompts.command("list")
@paged
def list_(page: Page) -> None:
    """Every prompt with its version, where it is from, and the slots that it may name."""
    from workbench.records.prompts import SLOTS, Prompts

    found = Prompts(page.workspace / "prompts")
    rows = [
        {"name": name, "version": one.label, "source": one.source, "slots": list(SLOTS[one.role])}
        for name, one in found.items()
    ]
    if page.as_json:
        page.result({"prompts": rows})
    else:
        for row in rows:
            click.echo(f"{row['name']:<14}{row['version']:<12}{row['source']:<12}{', '.join(row['slots'])}")


@prompts.command()
@click.argument("name", type=Text())
@click.option("--diff", "compare", is_flag=True, help="Only what differs from the shipped one.")
@paged
def show(page: Page, name: str, compare: bool) -> None:
    """Print the prompt NAME (planner, planner.zh), as a file to begin with."""
    from workbench.records.prompts import Prompts

    one = Prompts(page.workspace / "prompts")[name]
    if page.as_json:
        page.result({"name": one.name, **one.dump(), "diff": one.diff()})
    else:
        click.echo(one.diff() if compare else one.text())


@prompts.command()
@click.argument("name", type=Text())
@click.option("--questions", "file", type=FILE, required=True, help="JSON Lines: id, question, answer, gold.")
@click.option("--kb", type=Text(), required=True, help="The knowledge base to ask.")
@click.option("--with", "other", type=FILE, required=True, help="The other version, a .toml file.")
@click.option("--where", type=Pair(), multiple=True, help="Only questions that hold this value.")
@click.option("--limit", type=click.IntRange(min=1), help="Only so many questions, evenly drawn.")
@paged
def test(page: Page, name: str, file: Path, kb: str, other: Path, where: Any, limit: int | None) -> None:
    """Ask the same questions with the prompt NAME as it is and with another version, and compare, pair by pair."""
    from workbench.errors import WorkbenchError
    from workbench.parts.evaluate.answers import eval_answers

    with page.open() as wb:
        role = name.partition(".")[0]
        wb.prompts[name]  # an unknown one is an error before the first question
        if role == "judge":
            command = f"workbench eval answers --judge MODEL --judge MODEL@{other.name}"
            raise WorkbenchError(f"A judge's prompt changes no answer. See how two of them agree: {command}.")
        if role not in wb.ports().models:
            raise WorkbenchError(f"No model is the {role} here. Set WORKBENCH_{role.upper()}_MODEL.")
        ways = {"as it is": {}, other.name: {"prompts": {name: other}}}
        table = eval_answers(wb, kb, file, ways=ways, where=dict(where), limit=limit)
    printed(page, table)
