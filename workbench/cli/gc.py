"""``workbench gc``: what the workspace no longer needs, and with ``--yes`` it goes."""

from __future__ import annotations

import click

from workbench.cli.page import Page, paged


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Also free runs that ended more than DAYS days ago.",
)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep only the newest N ended runs.")
@click.option("--tapes", is_flag=True, help="Also free the tapes of ended runs, which can then no longer be replayed.")
@click.option("--yes", is_flag=True, help="Do it; without it nothing changes.")
@paged
def gc(page: Page, older_than: float | None, keep: int | None, tapes: bool, yes: bool) -> None:
    """Say what is no longer needed and, with --yes, free it.

    Runs that run, wait for an answer or were interrupted are never touched.
    """
    with page.open() as wb:
        freed = wb.gc(older_than=older_than, keep=keep, tapes=tapes, yes=yes)
    total = sum(found["bytes"] for found in freed)
    if page.as_json:
        page.result({"done": yes, "bytes": total, "freed": freed})
        return
    for found in freed:
        page.say(f"{found['count']:>8,}  {found['bytes'] / 1e6:>9,.2f} MB  {found['kind']}")
        if found["detail"]:
            page.say(f"          {found['detail']}", "yellow")
    if yes:
        page.say(f"✓ Freed {total / 1e6:,.2f} MB." if freed else "Nothing to free.", "green")
    elif freed:
        page.say(f"{total / 1e6:,.2f} MB can be freed. {page.command('gc', '--yes')}")
    else:
        page.say("Nothing to free.")
