"""``workbench memory``: what is remembered of a person, looked at, searched, corrected, taken back, and forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import Page, Text, paged

if TYPE_CHECKING:
    from workbench.session import Workbench

_SECTIONS = ("persona", "human", "name", "preferences", "current_intent", "facts", "archival")


class Moment(Text):
    """A turn of the session, the id of a run or of a message, a day, or a time."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A number is a turn."""
        said = super().convert(value, param, ctx)
        return int(said) if said.isdecimal() and len(said) < 7 else said


_user = click.option("--user", type=Text(), default="default", show_default=True, help="Of whom.")
_session = click.option("--session", type=Text(), help="Only of this conversation.")


@click.group()
def memory() -> None:
    """What is remembered of a person: show, search, correct, undo, forget."""


@memory.command()
@_user
@_session
@click.option("--at", type=Moment(), help="As of a turn of --session, a run, a message, or a day: 2026-01-31.")
@click.option("--ended", is_flag=True, help="With what does not hold any more, and why.")
@paged
def show(page: Page, user: str, session: str | None, at: Any, ended: bool) -> None:
    """What is known: each with where it is from, who noted it, since when."""
    with page.open() as wb:
        page.present(wb.memory.view(user, session=session, at=at, ended=ended))


@memory.command()
@click.argument("query", type=Text())
@_user
@_session
@click.option("--limit", type=click.IntRange(min=1, max=100), default=10, show_default=True, help="How many.")
@paged
def search(page: Page, query: str, user: str, session: str | None, limit: int) -> None:
    """What fits QUERY best: of core memory, of the archive, of earlier exchanges."""
    with page.open() as wb:
        _rows(page, "found", wb.memory.search(query, user=user, session=session, limit=limit))


@memory.command()
@click.argument("before", type=Moment())
@click.argument("after", type=Moment(), required=False)
@_user
@click.option("--session", type=Text(), help="Of the turns BEFORE and AFTER.")
@paged
def diff(page: Page, before: Any, after: Any, user: str, session: str | None) -> None:
    """What changed between two moments, as --at of `memory show` takes them; AFTER is now without one."""
    with page.open() as wb:
        _rows(page, "changes", wb.memory.diff(before, after, user=user, session=session))


@memory.command()
@click.argument("run_id", type=Text())
@paged
def blame(page: Page, run_id: str) -> None:
    """Of which parts the prompt of a run was made, and which memory probably stood behind which sentence."""
    with page.open() as wb:
        run = wb.run(run_id)
        parts, blamed = run.prompt_parts(), run.blame()
    if page.as_json:
        page.result({"parts": [*parts], "blame": [*blamed]})
    else:
        page.show([*parts.blocks(), *blamed.blocks()])


@memory.command()
@click.argument("section", type=click.Choice(_SECTIONS))
@click.argument("text", type=Text())
@_user
@paged
def add(page: Page, section: str, text: str, user: str) -> None:
    """Write TEXT into SECTION; what it contradicts is replaced, and stays in the history."""

    def change(wb: Workbench) -> None:
        if section == "archival":
            wb.memory.archival_memory_insert(text, user=user)
        else:
            wb.memory.core_memory_update(section, text, user=user)

    _steered(page, user, change)


@memory.command()
@click.argument("memory_id", type=Text(), metavar="ID")
@click.argument("text", type=Text())
@click.option("--why", type=Text(), default="", help="Kept with the old version.")
@_user
@paged
def edit(page: Page, memory_id: str, text: str, why: str, user: str) -> None:
    """Put another version in the place of a memory; the old one is kept."""
    _steered(page, user, lambda wb: wb.memory.edit(memory_id, text, user=user, why=why))


@memory.command()
@click.argument("memory_id", type=Text(), metavar="ID")
@click.option("--off", is_flag=True, help="Let go of it.")
@_user
@paged
def pin(page: Page, memory_id: str, off: bool, user: str) -> None:
    """Keep a memory whatever else is said."""
    _steered(page, user, lambda wb: wb.memory.pin(memory_id, not off, user=user))


@memory.command()
@click.argument("memory_id", type=Text(), metavar="ID")
@click.option("--why", type=Text(), required=True, help="Why it does not hold any more.")
@_user
@paged
def invalidate(page: Page, memory_id: str, why: str, user: str) -> None:
    """Say that a memory does not hold any more; it stays in the history."""
    _steered(page, user, lambda wb: wb.memory.invalidate(memory_id, why, user=user))


@memory.command()
@_user
@paged
def undo(page: Page, user: str) -> None:
    """Take back the last change of what is remembered of a person."""
    _steered(page, user, lambda wb: wb.memory.undo(user=user))


@memory.command()
@click.argument("file", type=Text())
@_user
@paged
def export(page: Page, file: str, user: str) -> None:
    """Write all that is remembered of a person into FILE, as JSON; what is forgotten later stays in it."""
    with page.open() as wb:
        written = wb.memory.export(file, user=user)
    page.give({"file": str(written)}, f"Written to {written}.")


@memory.command()
@click.option("--memory", "memory_id", type=Text(), metavar="ID", help="One memory, with its versions.")
@click.option("--message", type=Text(), metavar="ID", help="One exchange.")
@click.option("--session", type=Text(), help="One conversation.")
@click.option("--user", type=Text(), help="Whose; alone, everything of theirs.")
@click.option("--yes", is_flag=True, help="Do it; without it nothing changes.")
@paged
def forget(
    page: Page, memory_id: str | None, message: str | None, session: str | None, user: str | None, yes: bool
) -> None:
    """Say what would go, and with --yes forget it for good: no file of the workspace holds it then."""
    with page.open() as wb:
        found = wb.memory.forget(memory=memory_id, message=message, session=session, user=user, dry_run=not yes)
    if page.as_json:
        page.result({name: value for name, value in vars(found).items() if name != "message"})
    else:
        page.show(found.blocks())


def _rows(page: Page, name: str, rows: Any) -> None:
    if page.as_json:
        page.result({name: [*rows]})
    else:
        page.show(rows.blocks())


def _steered(page: Page, user: str, change: Callable[[Workbench], Any]) -> None:
    """Make a change, and show what is known then."""
    with page.open() as wb:
        change(wb)
        page.present(wb.memory.view(user))
