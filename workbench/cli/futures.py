"""What is made of runs: ``compare``, ``fork``, ``replay``; and a run carried elsewhere: ``export``, ``import``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from workbench.cli.ask import ANSWER, finish, follow, object_in
from workbench.cli.page import FAILED, Page, Pair, Text, paged
from workbench.errors import Divergence
from workbench.views.labels import labels_for


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
        page.present(wb.compare(*run_ids))


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
@click.option("--as-of", type=Text(), metavar="DATE", help="Ask as of another date.")
@click.option("--known", type=Text(), metavar="DATE", help="Ask for what was known by another date.")
@click.option("--set", "pairs", type=Text(), multiple=True, metavar="NAME=VALUE", help="Change a setting.")
@click.option("--model", "models", type=Pair(), multiple=True, help="planner=openai:NAME, or rules: another model.")
@click.option("--prompt", "prompts", type=Pair(), multiple=True, help="planner=FILE.toml: another prompt.")
@click.option("--reply", "replies", type=Pair(), multiple=True, help="3=TEXT: what a model is to have said.")
@click.option("--forecast", is_flag=True, help="Say what running --plan would take, and do not run it.")
@paged
def fork(
    page: Page,
    run_id: str,
    plan: Any,
    decision: str | None,
    at: str | None,
    query: str | None,
    as_of: str | None,
    known: str | None,
    pairs: tuple[str, ...],
    forecast: bool,
    **own: tuple[tuple[str, str], ...],
) -> int:
    """Fork a run: run it again with one thing changed.

    What the change does not touch comes from its tape, and the run itself stays as it is. `workbench compare RUN_ID
    NEW_ID` then shows what the edit changed.
    """

    edits: dict[str, Any] = {
        "at": at,
        "query": query,
        "as_of": as_of,
        "known": known,
        "settings": dict(map(_setting, pairs)) or None,
    }
    edits["plan"] = object_in(plan, "a plan", '{"steps": [...]}') if plan else None
    edits |= {name: dict(given) or None for name, given in own.items()}
    edits["decision"] = _decision(decision) if decision is not None else None
    if forecast:
        return _forecast(page, run_id, edits["plan"])
    with page.open() as wb:
        run = wb.run(run_id).fork(wait=False, **{name: value for name, value in edits.items() if value is not None})
        document, streamed = follow(page, run, sys.stdout.isatty())
    code = finish(page, document, ANSWER, streamed)
    if not page.as_json:
        from workbench.views.labels.sentences import saved_told

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
    from workbench.views.graft import forecast_blocks

    page.show(forecast_blocks(found, labels_for(message)))
    return 0


_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("run_id", type=Text())
@click.argument("path", type=_FILE, metavar="FILE.zip")
@paged
def export(page: Page, run_id: str, path: Path) -> None:
    """Seal an ended run in a file.

    It replays anywhere, without the corpus. No secret is in it.
    """
    with page.open() as wb:
        wb.export(run_id, path)
    size = path.expanduser().stat().st_size
    page.give({"run_id": run_id, "path": str(path), "bytes": size}, f"✓ {path} ({size / 1e6:,.2f} MB)", style="green")


@click.command("import")
@click.argument("path", type=_FILE, metavar="FILE.zip")
@click.option("--as-new", is_flag=True, help="Give it a new id, when another run has its own.")
@paged
def import_(page: Page, path: Path, as_new: bool) -> None:
    """Bring in a run that was exported; the same one here already is left as it is."""
    from workbench.futures.capsule import read

    sealed = read(path.expanduser())["run"]["run_id"]
    with page.open(make=True) as wb:
        new = as_new or sealed not in wb.runs
        run = wb.import_capsule(path, as_new=as_new)
        told = {"run_id": run.run_id, "status": run.status, "message": run.message}
    said = f"✓ Run {run.run_id} is {'brought in' if new else 'here already, with the same content'}."
    page.give({**told, "new": new}, said, page.command("show", run.run_id), style="green")


@click.command()
@click.argument("run_id", type=Text())
@click.option(
    "--mode", type=click.Choice(["replay", "regression"]), default="replay", show_default=True,
    help="All from the tape; or models asked again.",
)  # fmt: skip
@click.option(
    "--corpus", type=click.Choice(["check", "tape"]), default="check", show_default=True,
    help="Compare the corpus that is here with the recorded one, or do not look at it.",
)  # fmt: skip
@paged
def replay(page: Page, run_id: str, mode: Any, corpus: Any) -> int | None:
    """Replay a run from its tape.

    Where it does not fit, the first point that differs is named: what was expected, and what came.
    """

    with page.open() as wb:
        try:
            again = wb.replay(run_id, mode, corpus)
        except Divergence as found:
            page.give({"run_id": run_id, "mode": mode, "divergence": found.to_dict()}, str(found), style="red")
            return FAILED
        told = {"run_id": run_id, "mode": mode, "divergence": None, "replay": again.run_id, "answer": again.answer}
    same = {"replay": "the same bytes", "regression": "the same tools"}[mode]
    page.give(told, f"✓ {same}: {page.command('show', told['replay'])}", style="green")
    return None
