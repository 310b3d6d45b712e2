"""``workbench report``: write a report on a topic, or bring one up to date."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.ask import kb_option, read_argument
from workbench.cli.follow import ANSWER, finish, follow
from workbench.cli.page import Page, paged, parse_points


@click.command()
@click.argument("topic", default="")
@click.option(
    "--update", metavar="RUN", help="Bring the report of a run up to date with the corpus."
)
@kb_option
@click.option("--type", "report_type", help="short, long, or your own.")
@click.option("--style", help="Of the references: default, apa, ieee, gb7714 or bibtex.")
@click.option(
    "--review", type=parse_points, default="", metavar="POINTS", help="Where to stop and ask."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file: .md or .html.")
@paged
def report(
    page: Page,
    topic: str,
    update: str | None,
    kb: tuple[str, ...],
    *,
    output: str | None,
    **more: Any,
) -> int:
    """Write a report on a topic; "-" reads it from standard input.

    What stands behind a colon are its aspects, each a section: "Tides: causes, records, power". Points of review are
    clarify, plan, step, reflect and outline. --update writes only what changed into a new report.
    """
    if bool(topic) == bool(update):
        raise click.UsageError("Name a topic, or with --update the run of a report.")
    with page.open() as wb:
        if update:
            run = wb.run(update).report.update()
            counts = run.report.metrics
            page.say(
                f"Sections written: {counts['sections_written']}, unchanged: {counts['sections_reused']}."
            )
            document = run.to_dict()
        else:
            run = wb.report(read_argument(topic), kb=list(kb) or None, wait=False, **more)
            document, _ = follow(page, run, False)
        if output and document["status"] == "done":
            page.say(str(run.report.write(output)))
    return finish(page, document, () if output else ANSWER[:1])
