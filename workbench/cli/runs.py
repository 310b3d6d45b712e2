"""The runs of a workspace: ``show``, ``runs``, ``cancel``, ``feedback``, ``clear``; ``gc`` frees, ``backup`` copies."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.ask import show_ways_on
from workbench.cli.page import Page, Pair, Text, paged, table
from workbench.text import visible
from workbench.views.labels import Labels, labels_for

if TYPE_CHECKING:
    from workbench.runs.calls import Calls
    from workbench.runs.feedback import Feedbacks
    from workbench.runs.run import Run


SUMMARY = ("run_id", "status", "holder", "message", "query", "session_id", "user_id", "created_at")


@click.command()
@click.argument("run_id", type=Text())
@click.option("--calls", is_flag=True, help="What models saw and said instead: every call whole.")
@paged
def show(page: Page, run_id: str, calls: bool) -> None:
    """Show a run: plan, records, reflections, decisions, timeline, answer and sources."""
    with page.open() as wb:
        run = wb.run(run_id)
        document, made = run.to_dict(), run.calls() if calls else None
    if made is not None:
        _calls(page, made)
        return
    if page.as_json:
        page.result(document)
        return
    from workbench.views.outline import IN_TERMINAL, outline

    page.show(outline(document, IN_TERMINAL))
    if document["status"] == "paused":
        show_ways_on(page, document)
    if document["status"] in ("interrupted", "failed"):
        page.say(page.command("resume", run_id))


def _calls(page: Page, made: Calls) -> None:
    """Every call of a model, with its messages."""
    if page.as_json:
        page.result({"calls": made})
        return
    for call in made:
        counted = f"{call['input']} + {call['output']} tokens" if call["input"] is not None else ""
        facts = [call["at"], call["model"], call["prompt"], counted, f"{call['seconds']:.3f} s"]
        click.echo(f"{call['n']}. {call['role']}: {', '.join(filter(None, facts))}  {call['key']}")
        for kind, text in [*call["messages"], ["failed" if call["failed"] else "said", call["reply"]]]:
            click.echo(visible(f"[{kind}]\n{text}\n"))


@click.group(invoke_without_command=True)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@click.option("--session", type=Text(), help="Only of this conversation.")
@click.option("--user", type=Text(), help="Only of this user.")
@click.option("--status", type=click.Choice(["running", "paused", "interrupted", "done", "failed", "cancelled"]))
@paged
def runs(page: Page, limit: int, session: str | None, user: str | None, status: str | None) -> None:
    """List the runs, newest first; `workbench runs rm RUN_ID` forgets one."""
    if click.get_current_context().invoked_subcommand:
        return
    wanted = {name: value for name, value in (("session_id", session), ("user_id", user)) if value}
    with page.open() as wb:
        listed = wb.runs.lines(limit if status is None else 10_000, **wanted)
        found = [row for row in listed if status in (None, row["status"])][:limit]
    if page.as_json:
        page.result({"runs": found})
    elif not found:
        page.say(f"No runs here yet. Ask something: {page.command('ask', 'QUESTION')}")
    else:
        page.out.print(_table(found))


def summary(run: Run) -> dict[str, Any]:
    """One run in a list."""
    return {name: getattr(run, name) for name in SUMMARY}


def _table(found: list[dict[str, Any]]) -> Any:

    from rich.text import Text as RichText

    from workbench.views.terminal import status_look

    labels, listed = Labels("en"), table()
    for name in ("run", "status", "begun", "question"):
        listed.add_column(name, no_wrap=name != "question", overflow="fold")
    for row in found:
        status, begun = labels.status(row["status"]), datetime.fromisoformat(row["created_at"]).astimezone()
        listed.add_row(
            RichText(row["run_id"], "cyan"),
            RichText(status, status_look(status)),
            RichText(f"{begun:%Y-%m-%d %H:%M}", "dim"),
            _question(row),
        )
    return listed


def _question(row: dict[str, Any]) -> Any:
    """What was asked, and under it how it was read, where that differs, and who works on it."""
    from rich.text import Text as RichText

    from workbench.views.labels.sentences import read_told

    asked = RichText(visible(" ".join(row["message"].split()))[:200])
    for line in filter(None, (read_told(row, labels_for(row["message"])), row["holder"])):
        asked.append(f"\n{visible(' '.join(line.split()))[:200]}", "dim")
    return asked


@click.command()
@click.argument("run_ids", type=Text(), nargs=-1, required=True, metavar="RUN_ID...")
@paged
def cancel(page: Page, run_ids: tuple[str, ...]) -> None:
    """Stop runs for good.

    In whatever process they are at work; what is finished is kept.
    """
    with page.open() as wb:
        found = [wb.run(run_id) for run_id in run_ids]
        stood = [summary(run.cancel()) for run in found]
    page.give({"runs": stood}, *(f"{row['run_id']}: {row['status']}" for row in stood))


@runs.command("rm")
@click.argument("run_ids", type=Text(), nargs=-1, required=True, metavar="RUN_ID...")
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
@click.argument("run_id", type=Text(), default="")
@click.option("--good/--bad", "good", default=None, help="What you think of the answer of RUN_ID.")
@click.option("--withdraw", is_flag=True, help="Take back what was said of it.")
@click.option("--note", type=Text(), default="", help="In words.")
@click.option("--who", type=Text(), default="", help="Whose verdict it is.  [default: the run's user]")
@click.option("--label", "labels", type=Pair(), multiple=True, help="What else to know of it; several times.")
@paged
def feedback(
    page: Page, run_id: str, good: bool | None, withdraw: bool, note: str, who: str, labels: tuple[tuple[str, str], ...]
) -> None:
    """Say what you think of an answer, or list what was said: of RUN_ID, or of all runs.

    Each person has one verdict on a run; the newest holds.
    """
    says = good is not None or withdraw
    if (says and not run_id) or (good is not None and withdraw):
        raise click.UsageError("Name RUN_ID and one of --good, --bad and --withdraw; none of them lists what was said.")
    if not says and (note or who or labels):
        raise click.UsageError("Say --good or --bad too; --note, --who and --label only go with a verdict.")
    with page.open() as wb:
        if run_id:
            run = wb.run(run_id)
            if says:
                run.feedback(good, note, who=who, **dict(labels))
            found = wb.feedback(run=run_id)
        else:
            found = wb.feedback()
    if page.as_json:
        page.result({"feedback": found})
    elif not found:
        page.say("Nothing was said yet. Say it with: " + page.command("feedback", run_id or "RUN_ID", "--good"))
    else:
        page.out.print(_verdicts(found))


def _verdicts(found: Feedbacks) -> Any:
    from rich.text import Text as RichText

    listed = table()
    for name in ("run", "verdict", "who", "question and note"):
        listed.add_column(name, no_wrap=name != "question and note", overflow="fold")
    for one in found:
        said = RichText(visible(" ".join(one["question"].split()))[:200])
        marks = [one["note"], *(f"{name}={value}" for name, value in one["labels"].items())]
        for line in filter(None, marks):
            said.append(f"\n{visible(' '.join(line.split()))[:200]}", "dim")
        verdict = RichText("good", "green") if one["good"] else RichText("bad", "red")
        listed.add_row(RichText(one["run_id"], "cyan"), verdict, RichText(visible(one["who"])), said)
    return listed


@click.command()
@click.option("--session", type=Text(), help="The conversation to forget; of the user “default” without --user.")
@click.option("--user", type=Text(), help="The user; without --session, all of their conversations.")
@paged
def clear(page: Page, session: str | None, user: str | None) -> None:
    """Forget one conversation of one user, or all of a user's."""
    if session is None and user is None:
        raise click.UsageError("Name the conversation with --session, its user with --user, or both.")
    user = user or "default"
    with page.open() as wb:
        count = wb.clear(session=session, user=user)
    what = "all conversations" if session is None else f"conversation {session!r}"
    said = f"Forgot {count} message{'s' * (count != 1)}: {what} of user {user!r}."
    page.give({"messages": count, "session": session, "user": user}, said)


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@paged
def backup(page: Page, path: Path) -> None:
    """Copy the workspace into the new folder PATH; runs may be at work meanwhile."""
    with page.open() as wb:
        page.give({"path": str(wb.backup(path))}, f"✓ Copied to {path}. It opens with --workspace {path}.")


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
