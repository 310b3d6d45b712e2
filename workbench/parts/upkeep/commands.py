"""``workbench backup`` and ``workbench gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from workbench.cli.page import Page, paged


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@paged
def backup(page: Page, path: Path) -> None:
    """Copy the workspace into the new folder PATH; runs may be at work meanwhile."""
    with page.open() as wb:
        page.give(
            {"path": str(wb.backup(path))},
            f"✓ Copied to {path}. It opens with --workspace {path}.",
        )


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Also free runs that ended more than DAYS days ago.",
)
@click.option(
    "--keep", type=click.IntRange(min=0), metavar="N", help="Keep only the newest N ended runs."
)
@click.option(
    "--tapes",
    is_flag=True,
    help="Also free the tapes of ended runs, which can then no longer be replayed.",
)
@click.option("--yes", is_flag=True, help="Do it; without it nothing changes.")
@paged
def gc(page: Page, yes: bool, **options: Any) -> None:
    """List what is not needed any more and, with --yes, free it.

    Runs that run, wait for an answer or were interrupted are never touched.
    """
    with page.open() as wb:
        freed = wb.gc(yes=yes, **options)
    total = sum(part["bytes"] for part in freed)
    page.table(
        {"done": yes, "bytes": total, "freed": freed},
        ("count:number", "MB:number", "what"),
        (
            (
                f"{f['count']:,}",
                f"{f['bytes'] / 1e6:,.2f}",
                "\n".join(filter(None, (f["kind"], f["detail"]))),
            )
            for f in freed
        ),
        "Nothing to free.",
    )
    if freed and not page.as_json:
        size = f"{total / 1e6:,.2f} MB"
        page.say(
            f"✓ Freed {size}." if yes else f"{size} can be freed. {page.command('gc', '--yes')}"
        )
