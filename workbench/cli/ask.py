"""``workbench ask`` and ``resume``: begin a run, or answer it where it waits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.follow import carry
from workbench.cli.page import JsonFile, Page, Pair, paged, parse_points

if TYPE_CHECKING:
    from workbench.runs.run import Run
    from workbench.session import Workbench


kb_option = click.option(
    "--kb", multiple=True, metavar="NAME", help="Knowledge base; several times for several."
)
_stream = click.option(
    "--stream/--no-stream", default=lambda: sys.stdout.isatty(), show_default="on a terminal",
    help="Write the answer while it comes.",
)  # fmt: skip


def read_argument(text: str) -> str:
    """Read the text, which ``-`` has on standard input."""
    return sys.stdin.read() if text == "-" else text


@click.command()
@click.argument("message")
@kb_option
@click.option(
    "--review",
    type=parse_points,
    default="",
    metavar="POINTS",
    help="Where to stop and ask: plan,step,reflect or all.",
)
@click.option("--session", help="The conversation to continue.  [default: a new one]")
@click.option("--user", default="default", show_default=True, help="Whose conversation.")
@click.option(
    "--as-of",
    default="",
    metavar="DATE",
    help="Only documents that held then: a year, month or day.",
)
@click.option("--known", default="", metavar="DATE", help="Only what was known by then.")
@click.option(
    "--model",
    "models",
    type=Pair(),
    multiple=True,
    help="planner=openai:NAME, all=rules: who does what.",
)
@_stream
@paged
def ask(
    page: Page, message: str, kb: tuple[str, ...], *, stream: bool, models: Any, **more: Any
) -> int:
    """Ask a question; "-" reads it from standard input.

    With --review the run stops at those points: on a terminal you are asked, elsewhere it stays paused (exit code 3)
    and `workbench resume` continues it.
    """
    question = read_argument(message)

    def begin(wb: Workbench) -> Run:
        return wb.start(question, kb=list(kb) or None, models=dict(models), **more)

    return carry(page, begin, stream=stream, make=True)


@click.command()
@click.argument("run_id")
@click.option("--approve", is_flag=True, help="Go on as proposed.")
@click.option("--reject", is_flag=True, help="Answer now, with what there is.")
@click.option(
    "--edit", type=JsonFile('{"query": "..."}'), metavar="FILE",
    help='Continue with changes: a JSON object, as {"query": "..."}; - is standard input.',
)  # fmt: skip
@click.option("--respond", metavar="TEXT", help="Say it in words; they become part of the query.")
@click.option("--note", default="", metavar="TEXT", help="Why; kept with the decision.")
@_stream
@paged
def resume(
    page: Page,
    run_id: str,
    edit: Any,
    respond: str | None,
    note: str,
    stream: bool,
    **flags: bool,
) -> int:
    """Answer a paused run, or continue an interrupted one.

    Without an answer a paused run asks you on a terminal, and elsewhere shows what it waits for (exit code 3).
    """
    from workbench.graphs.reviewers import answer

    answers = [
        name for name, on in {**flags, "edit": edit is not None, "respond": respond}.items() if on
    ]
    if len(answers) > 1:
        raise click.UsageError(
            f"--{answers[0]} and --{answers[1]} exclude each other: give one answer."
        )

    def begin(wb: Workbench) -> Run:
        run = wb.run(run_id)
        if answers:
            point = (run.review or {}).get("point", "")
            decision = answer(
                answers[0], point=point, edits=edit or None, message=respond or "", note=note
            )
            return run.answer_review(decision, wait=False)
        return run if run.status == "paused" else run.resume(wait=False)

    return carry(page, begin, stream=stream)
