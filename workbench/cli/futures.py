"""What is made of runs: ``fork``, ``compare`` and ``replay``; and a run in a file: ``export``, ``import``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from workbench.cli.ask import read_argument
from workbench.cli.follow import ANSWER, finish, follow
from workbench.cli.page import FAILED, JsonFile, Page, Pair, paged, parse_points
from workbench.errors import Divergence
from workbench.state import Json, without_none
from workbench.views.labels import labels_for, savings_text

_file = click.argument("path", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")


@click.command()
@click.argument("run_ids", nargs=-1, required=True, metavar="RUN_ID RUN_ID...")
@paged
def compare(page: Page, run_ids: tuple[str, ...]) -> None:
    """Compare two to four runs side by side.

    Where they part, plan, evidence, decisions, claims, time and cost.
    """
    with page.open() as wb:
        page.present(wb.compare(*run_ids))


class Decision(JsonFile):
    """A decision: an action that needs no more, or what a file says."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the decision as a mapping."""
        if value in ("approve", "reject"):
            return {"action": value}
        if value != "-" and not Path(value).is_file():
            self.fail(
                f"{value!r} is neither approve nor reject, and there is no such file.", param, ctx
            )
        return super().convert(value, param, ctx)


@click.command()
@click.argument("run_id")
@click.option(
    "--plan",
    type=JsonFile('{"steps": [...]}'),
    metavar="FILE",
    help="JSON of the plan to run instead.",
)
@click.option(
    "--decision", type=Decision('{"action": "edit", "edits": {...}}'), metavar="FILE|ACTION",
    help='approve, reject, or a JSON file: {"action": "edit", "edits": {...}}.',
)  # fmt: skip
@click.option("--at", metavar="ID", help="Review point, as 1-reflect; alone it asks you there.")
@click.option(
    "--result",
    metavar="VALUE",
    help="With --at PLACE, as step_1/1: what came back there instead, text or JSON.",
)
@click.option(
    "--review", type=parse_points, metavar="POINTS", help="Where the new run stops and asks."
)
@click.option("--query", metavar="TEXT", help="Ask this instead.")
@click.option("--as-of", metavar="DATE", help="Ask as of another date.")
@click.option("--known", metavar="DATE", help="Ask for what was known by another date.")
@click.option(
    "--set", "settings", type=Pair(), multiple=True, help="max_iterations=2: change a setting."
)
@click.option(
    "--model",
    "models",
    type=Pair(),
    multiple=True,
    help="planner=openai:NAME, or rules: another model.",
)
@paged
def fork(page: Page, run_id: str, settings: Any, models: Any, **edits: Any) -> int:
    """Fork a run: run it again with one thing changed.

    What the change does not touch comes from its tape, and the run itself stays unchanged. `workbench compare RUN_ID
    NEW_ID` then shows what the edit changed.
    """
    changed = without_none(edits)
    if "result" in changed:
        changed["result"] = _json_or_text(read_argument(changed["result"]))
    if settings:
        changed["settings"] = {name: _json_or_text(value) for name, value in settings}
    if models:
        changed["models"] = dict(models)
    with page.open() as wb:
        origin = wb.run(run_id)
        unfit = sorted(changed.keys() - {"at", "result"})
        if unfit and hasattr(origin, "agent"):
            raise click.UsageError(
                f"A run of a recorded graph is forked by --at and --result, not by --{unfit[0]}."
            )
        run = origin.fork(wait=False, **changed)
        document, streamed = follow(page, run, sys.stdout.isatty())
    code = finish(page, document, ANSWER, streamed)
    if not page.as_json and "figures" in document:
        saved = savings_text(document["figures"], labels_for(document["message"]))
        page.say(f"{saved} · {page.command('compare', run_id, run.run_id)}", "dim")
    return code


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


@click.command()
@click.argument("run_id")
@_file
@paged
def export(page: Page, run_id: str, path: Path) -> None:
    """Write an ended run to FILE, by its ending.

    .zip is the whole run: it replays anywhere, without the corpus, and no secret is in it. .md and .html are
    its report.
    """
    with page.open() as wb:
        if path.suffix in (".md", ".html"):
            wb.run(run_id).report.write(path)
        elif path.suffix == ".zip":
            wb.export(run_id, path)
        else:
            raise click.UsageError(
                f"{path} must end in .zip (the run), or .md or .html (its report)."
            )
    size = path.expanduser().stat().st_size
    page.give(
        {"run_id": run_id, "path": str(path), "bytes": size}, f"✓ {path} ({size / 1e6:,.2f} MB)"
    )


@click.command("import")
@_file
@click.option("--as-new", is_flag=True, help="Give it a new id, when another run has its own.")
@paged
def import_(page: Page, path: Path, as_new: bool) -> None:
    """Import a run that was exported as .zip; where it is here already, it stays unchanged."""
    with page.open(make=True) as wb:
        run = wb.import_capsule(path, as_new=as_new)
        page.give(
            {"run_id": run.run_id, "status": run.status, "message": run.message},
            f"✓ Run {run.run_id} is here.",
            page.command("show", run.run_id),
        )


@click.command()
@click.argument("run_id")
@paged
def replay(page: Page, run_id: str) -> int | None:
    """Replay a run from its tape.

    Where it does not fit, the first point that differs is named: what was expected, and what came.
    """
    document: Json = {"run_id": run_id, "divergence": None}
    with page.open() as wb:
        try:
            again = wb.replay(run_id)
        except Divergence as error:
            page.give({**document, "divergence": error.to_dict()}, str(error))
            return FAILED
        document |= {"replay": again.run_id, "answer": again.to_dict()["answer"]}
    page.give(document, f"✓ the same bytes: {page.command('show', document['replay'])}")
    return None
