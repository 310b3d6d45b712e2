"""The runs of a workspace: ``show``, ``runs``, ``remove``, ``cancel``, ``feedback``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from workbench.cli.follow import show_ways_on
from workbench.cli.page import Page, paged
from workbench.state import Data, without_empty
from workbench.text import visible
from workbench.views.labels import Labels, labels_for, reading_text

if TYPE_CHECKING:
    from workbench.runs.calls import Calls
    from workbench.views.runs import RunLines

_run_ids = click.argument("run_ids", nargs=-1, required=True, metavar="RUN_ID...")


@click.command()
@click.argument("run_id")
@click.option("--calls", is_flag=True, help="What models saw and said instead: every call whole.")
@paged
def show(page: Page, run_id: str, calls: bool) -> None:
    """Show a run: plan, records, reflections, decisions, timeline, answer and sources."""
    from workbench.views.outline import IN_TERMINAL, outline

    with page.open() as wb:
        run = wb.run(run_id)
        if calls:
            _calls(page, run.calls())
        elif page.as_json:
            page.result(run.to_dict())
        else:
            document = run.to_dict()
            page.show(outline(document, IN_TERMINAL))
            if document["status"] == "paused":
                show_ways_on(page, document)
            if document["status"] in ("interrupted", "failed"):
                page.say(page.command("resume", run_id))


def _calls(page: Page, calls: Calls) -> None:
    """Print every call of a model, with its messages."""
    if page.as_json:
        page.result({"calls": calls})
        return
    for call in calls:
        counted = (
            f"{call['input']} + {call['output']} tokens" if call["input"] is not None else ""
        )
        facts = [call["at"], call["model"], call["prompt"], counted, f"{call['seconds']:.3f} s"]
        click.echo(f"{call['place']}: {', '.join(filter(None, facts))}  {call['key']}")
        for kind, text in [
            *call["messages"],
            ["failed" if call["failed"] else "said", call["reply"]],
        ]:
            click.echo(visible(f"[{kind}]\n{text}\n"))


@click.command()
@click.argument("run_id", required=False)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many."
)
@click.option("--session", help="Only of this conversation.")
@click.option("--user", help="Only of this user.")
@click.option(
    "--status",
    type=click.Choice(["running", "paused", "interrupted", "done", "failed", "cancelled"]),
)
@paged
def runs(
    page: Page,
    run_id: str | None,
    limit: int,
    *,
    session: str | None,
    user: str | None,
    status: str | None,
) -> None:
    """List the runs, newest first; with RUN_ID those that were made from it."""
    empty = f"No runs here yet. Ask something: {page.command('ask', 'QUESTION')}"
    options = {"session_id": session, "user_id": user, "status": status, "origin": run_id}
    wanted = without_empty(options)
    with page.open() as wb:
        if run_id:
            empty = f"Nothing was made of run {wb.run(run_id).run_id} yet."
        listed = wb.runs.lines(limit, **wanted)
        rows = [_row(run, listed) for run in listed]
    columns = ("run:code", "status:status", "begun:dim", "question")
    page.table({"runs": listed}, columns, rows, empty)


def _row(run: Data, listed: RunLines) -> tuple[str, ...]:
    """Return what was asked, under it how it was read, where that differs, and who works on it."""
    begun = datetime.fromisoformat(run["created_at"]).astimezone()
    labels = labels_for(run["message"])
    origin = labels("forked_from", run=run["origin"]) if run["origin"] else ""
    words = (
        run["message"],
        reading_text(run, labels),
        labels("colon").join(filter(None, [origin, listed.name(run, labels)])),
        run["holder"] or "",
    )
    return (
        run["run_id"],
        Labels("en").status(run["status"]),
        f"{begun:%Y-%m-%d %H:%M}",
        _lines(*words),
    )


def _lines(*texts: str) -> str:
    # Characters of a text in a list.
    longest = 200
    return "\n".join(" ".join(text.split())[:longest] for text in texts if text)


@click.command()
@_run_ids
@paged
def cancel(page: Page, run_ids: tuple[str, ...]) -> None:
    """Stop runs for good.

    In whatever process they are at work; what is finished is kept.
    """
    with page.open() as wb:
        runs = [wb.run(run_id) for run_id in run_ids]
        stopped = [{"run_id": run.run_id, "status": run.cancel().status} for run in runs]
    page.give({"runs": stopped}, *(f"{row['run_id']}: {row['status']}" for row in stopped))


@click.command()
@_run_ids
@paged
def remove(page: Page, run_ids: tuple[str, ...]) -> None:
    """Forget runs and everything that they did.

    What was said in their conversations stays.
    """
    with page.open() as wb:
        for run_id in run_ids:
            wb.run(run_id)
        for run_id in run_ids:
            wb.runs.remove(run_id)
    page.give({"removed": list(run_ids)}, f"Removed {', '.join(run_ids)}.")


@click.command()
@click.argument("run_id", default="")
@click.option(
    "--good/--bad", "good", default=None, help="What you think of the answer of RUN_ID."
)
@click.option("--withdraw", is_flag=True, help="Take back what was said of it.")
@click.option("--note", default="", help="In words.")
@paged
def feedback(page: Page, run_id: str, good: bool | None, withdraw: bool, note: str) -> None:
    """Say what you think of an answer, or list what was said: of RUN_ID, or of all runs.

    Each person has one verdict on a run; the newest holds.
    """
    judged = good is not None or withdraw
    if (judged and not run_id) or (good is not None and withdraw) or (note and not judged):
        raise click.UsageError(
            "Name RUN_ID and one of --good, --bad and --withdraw; none of them lists what was said."
        )
    with page.open() as wb:
        run = wb.run(run_id) if run_id else None
        if run and judged:
            run.feedback(good, note)
        verdicts = wb.feedback(run=run_id or None)
    rows = (
        (
            v["run_id"],
            "✓ good" if v["good"] else "✗ bad",
            v["who"],
            _lines(v["question"], v["note"]),
        )
        for v in verdicts
    )
    page.table(
        {"feedback": verdicts, "ratings": verdicts.ratings()},
        ("run:code", "verdict:status", "who", "question and note"),
        rows,
        "Nothing was said yet. Say it with: "
        + page.command("feedback", run_id or "RUN_ID", "--good"),
    )
