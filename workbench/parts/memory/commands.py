"""``workbench memory``: what is remembered of a person, looked at, corrected and forgotten."""

from __future__ import annotations

import click

from workbench.cli.page import Page, paged
from workbench.state import drop

_user = click.option("--user", default="default", show_default=True, help="Of whom.")
_id = click.argument("memory_id", metavar="ID")
_text = click.argument("text")


@click.group()
def memory() -> None:
    """Show, add, edit and forget what is remembered of a person."""


@memory.command()
@click.argument("query", default="")
@_user
@click.option("--session", help="Only of this conversation.")
@click.option("--ended", is_flag=True, help="With what does not hold any more, and why.")
@paged
def show(page: Page, query: str, user: str, session: str | None, ended: bool) -> None:
    """Show what is known: each with where it is from, who noted it, since when; or what fits QUERY best."""
    if query and ended:
        raise click.UsageError("QUERY searches what is known now: leave --ended out.")
    with page.open() as wb:
        if query:
            results = wb.memory.search(query, user=user, session=session)
            page.present(results, {"found": [*results]})
        else:
            page.present(wb.memory.view(user, session=session, ended=ended))


@memory.command()
@click.argument("section")
@_text
@_user
@paged
def add(page: Page, section: str, text: str, user: str) -> None:
    """Write TEXT into SECTION; what it contradicts is replaced, and stays in the history.

    Sections: persona, human, name, preferences, current_intent, facts, archival.
    """
    with page.open() as wb:
        wb.memory.core_memory_update(section, text, user=user)
        page.present(wb.memory.view(user))


@memory.command()
@_id
@_text
@click.option("--why", default="", help="Kept with the old version.")
@_user
@paged
def edit(page: Page, memory_id: str, text: str, why: str, user: str) -> None:
    """Put another version in the place of a memory; the old one is kept."""
    with page.open() as wb:
        wb.memory.edit(memory_id, text, user=user, why=why)
        page.present(wb.memory.view(user))


@memory.command()
@click.option("--memory", metavar="ID", help="One memory, with its versions.")
@click.option("--message", metavar="ID", help="One exchange.")
@click.option("--session", help="One conversation.")
@click.option("--user", help="Whose; alone, everything of theirs.")
@click.option("--yes", is_flag=True, help="Do it; without it nothing changes.")
@paged
def forget(page: Page, yes: bool, **what: str | None) -> None:
    """Say what would go, and with --yes forget it for good: no file of the workspace holds it then."""
    with page.open() as wb:
        report = wb.memory.forget(**what, dry_run=not yes)
    page.present(report, drop(vars(report), "message"))
