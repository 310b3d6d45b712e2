"""``workbench compare``, ``workbench fork``, ``workbench tree`` and ``workbench checkpoints``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.ask import object_in
from workbench.cli.page import Page, Text, paged

MOST_RUNS = 200


@click.command()
@click.argument("run_ids", type=Text(), nargs=-1, required=True, metavar="RUN_ID RUN_ID...")
@paged
def compare(page: Page, run_ids: tuple[str, ...]) -> None:
    """Compare two to four runs side by side.

    Where they part, plan, evidence, decisions, claims, time and cost.
    """
    if not 2 <= len(run_ids) <= 4:
        raise click.UsageError(f"Two to four runs can be compared, and this is {len(run_ids)}.")
    with page.open() as wb:
        found = wb.compare(*run_ids)
    if page.as_json:
        page.result(found.to_dict())
    else:
        page.show(found.blocks())


@click.command()
@click.argument("run_id", type=Text())
@click.option("--plan", type=click.File(encoding="utf-8"), metavar="FILE", help="JSON of the plan to run instead.")
@click.option(
    "--decision",
    type=Text(),
    metavar="FILE|ACTION",
    help='approve, reject, or a JSON file: {"action": "edit", "edits": {...}}.',
)
@click.option(
    "--at", type=Text(), metavar="ID", help="Review point, as 1-reflect, or checkpoint; alone it asks you there."
)
@click.option("--query", type=Text(), metavar="TEXT", help="Ask this instead.")
@click.option("--set", "pairs", type=Text(), multiple=True, metavar="NAME=VALUE", help="Change a setting.")
@click.option("--forecast", is_flag=True, help="Say what running --plan would take, and do not run it.")
@paged
def fork(
    page: Page,
    run_id: str,
    plan: Any,
    decision: str | None,
    at: str | None,
    query: str | None,
    pairs: tuple[str, ...],
    forecast: bool,
) -> int:
    """Fork a run: run it again with one thing changed.

    What the change does not touch comes from its tape, and the run itself stays as it is. `workbench compare RUN_ID
    NEW_ID` then shows what the edit changed.
    """
    from workbench.cli.watch import ANSWER, finish, follow
    from workbench.labels import labels_for
    from workbench.labels.told import saved_told

    edits: dict[str, Any] = {"at": at, "query": query, "settings": dict(map(_setting, pairs)) or None}
    edits["plan"] = object_in(plan, "a plan", '{"steps": [...]}') if plan else None
    edits["decision"] = _decision(decision) if decision is not None else None
    if forecast:
        return _forecast(page, run_id, edits["plan"])
    with page.open() as wb:
        run = wb.run(run_id).start_fork(**{name: value for name, value in edits.items() if value is not None})
        document, streamed = follow(page, run, sys.stdout.isatty())
    code = finish(page, document, ANSWER, streamed)
    if not page.as_json:
        page.say(f"{saved_told(document['figures'], labels_for(document['message']))} · "
                 f"{page.command('compare', run_id, run.run_id)}", "dim")  # fmt: skip
    return code


def _decision(given: str) -> dict[str, Any]:
    """A decision: an action that needs no more, or what a file says."""
    if given in ("approve", "reject"):
        return {"action": given}
    if given != "-" and not Path(given).is_file():
        raise click.UsageError(f"--decision {given!r} is neither approve nor reject, and there is no such file.")
    with click.open_file(given, encoding="utf-8") as file:
        return object_in(file, "a decision", '{"action": "edit", "edits": {...}}')


def _setting(pair: str) -> tuple[str, Any]:
    """``max_iterations=2``: the value as JSON, or else as it stands."""
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--set {pair!r} is not NAME=VALUE, as max_iterations=2.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _forecast(page: Page, run_id: str, plan: Mapping[str, Any] | None) -> int:
    from workbench.plans import Plan

    if plan is None:
        raise click.UsageError(
            "--forecast needs --plan: what a new question or decision will plan is not known before."
        )
    with page.open() as wb:
        run = wb.run(run_id)
        found = run.forecast(Plan.load(plan))
        message = run.message
    if page.as_json:
        page.result(found)
        return 0
    from workbench.labels import labels_for
    from workbench.show.beside import forecast_blocks

    page.show(forecast_blocks(found, labels_for(message)))
    return 0


@click.command()
@click.argument("run_id", type=Text(), required=False)
@paged
def tree(page: Page, run_id: str | None) -> None:
    """Show which runs were made from which.

    Forks, replays and grafts, what was edited, and what the tape saved.
    """
    with page.open() as wb:
        found = wb.tree(run_id)
    if page.as_json:
        page.result(found.to_dict())
    elif found.nodes:
        page.show(found.blocks(MOST_RUNS))
    else:
        page.say(f"No runs here yet. Ask something: {page.command('ask', 'QUESTION')}")


@click.command()
@click.argument("run_id", type=Text())
@click.argument("checkpoint_id", type=Text(), required=False)
@paged
def checkpoints(page: Page, run_id: str, checkpoint_id: str | None) -> None:
    """List every checkpoint of a run.

    Inside the retrieval graph too; with CHECKPOINT_ID, the state there as JSON.
    """
    from workbench.labels import labels_for
    from workbench.past import past_blocks

    with page.open() as wb:
        run = wb.run(run_id)
        if checkpoint_id is not None:
            one = run.checkpoint(checkpoint_id)
            page.result({**one.to_dict(), "values": one.values})
            return
        found, message = run.checkpoints(), run.message
    if page.as_json:
        page.result({"run_id": run_id, "checkpoints": [one.to_dict() for one in found]})
        return
    page.show(past_blocks(run_id, message, found, labels_for(message)))
    if found:
        page.say(f"{page.command('checkpoints', run_id, 'ID')} · {page.command('fork', run_id, '--at', 'ID')}", "dim")
