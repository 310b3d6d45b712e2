"""``workbench graft`` and ``workbench what-if``: branches merged, and what a run would have been."""

from __future__ import annotations

from typing import Any

import click

from workbench.cli.page import Page, Text, paged


@click.command()
@click.argument("base", type=Text(), metavar="RUN_ID")
@click.argument("steps", type=Text(), nargs=-1, required=True, metavar="STEP=RUN_ID...")
@click.option("--prefer", type=Text(), metavar="RUN_ID", help="The run that holds where two contradict one another.")
@paged
def graft(page: Page, base: str, steps: tuple[str, ...], prefer: str | None) -> None:
    """Merge branches: a new run like RUN_ID, with these steps of other runs.

    The tapes of all of them answer, so only what the graft touches runs again; conflicts are shown.
    """
    wanted: dict[str, list[str]] = {}
    for pair in steps:
        step_id, _, run_id = pair.rpartition("=")
        if not step_id or not run_id:
            raise click.UsageError(f"{pair!r} is not STEP=RUN_ID, as step_2_naive=0f3a5c7e9b1d.")
        wanted.setdefault(step_id, []).append(run_id)
    with page.open() as wb:
        made = wb.graft(dict(wanted), base=base, prefer=prefer)
        if page.as_json:
            told = {"base": made.base, "steps": made.steps, "conflicts": made.conflicts, "anew": made.anew}
            page.result({**told, "provenance": made.provenance(), "run": made.to_dict()})
            return
        from workbench.futures.shown import graft_blocks
        from workbench.show import IN_TERMINAL, outline

        page.show([*outline(made.to_dict(), IN_TERMINAL), *graft_blocks(made)])
        page.say(page.command("show", made.run_id))


@click.command("what-if")
@click.argument("run_id", type=Text())
@click.option("--gold", type=Text(), multiple=True, metavar="DOC_ID", help="A document that should be found; repeat.")
@paged
def what_if(page: Page, run_id: str, gold: tuple[str, ...]) -> None:
    """Play every reflect point both ways, and say which step paid for which sentence of the answer."""
    with page.open() as wb:
        run = wb.run(run_id)
        played, paid = run.what_if(gold=gold, keep=False), run.leave_one_out()
        if page.as_json:
            told: dict[str, Any] = {**played.to_dict(), **paid.to_dict()}
            page.result(told)
            return
        from workbench.futures.shown import leave_one_out_blocks, what_if_blocks

        page.show([*what_if_blocks(played), *leave_one_out_blocks(paid)])
