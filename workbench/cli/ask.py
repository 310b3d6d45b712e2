"""``workbench ask`` and ``workbench resume``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import Page, Text, paged

if TYPE_CHECKING:
    from workbench.run import Run
    from workbench.session import Workbench

LONGEST_EDIT = 2**22
"""Characters of an edit that are read: a larger one breaks in its middle, and is refused as no JSON."""
POINTS = ("plan", "step", "reflect")


class Points(click.ParamType):
    """Review points: ``plan,reflect``, or ``all``."""

    name = "points"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The points, in the order in which a run meets them."""
        asked = {point.strip() for point in str(value).split(",") if point.strip()}
        if asked == {"all"}:
            return list(POINTS)
        for unknown in sorted(asked - set(POINTS)):
            self.fail(f"{unknown!r} is not a review point. Known: {', '.join(POINTS)}, all.", param, ctx)
        return [point for point in POINTS if point in asked]


@click.command()
@click.argument("message", type=Text())
@click.option("--kb", type=Text(), multiple=True, metavar="NAME", help="Knowledge base; several times for several.")
@click.option(
    "--review", type=Points(), default="", metavar="POINTS", help="Where to stop and ask: plan,step,reflect or all."
)
@click.option("--session", type=Text(), help="The conversation that this goes on.  [default: a new one]")
@click.option("--user", type=Text(), default="default", show_default=True, help="Whose conversation.")
@click.option("--stream/--no-stream", default=None, help="Write the answer while it comes.  [default: on a terminal]")
@paged
def ask(
    page: Page,
    message: str,
    kb: tuple[str, ...],
    review: list[str],
    user: str,
    *,
    session: str | None,
    stream: bool | None,
) -> int:
    """Ask a question; "-" reads it from standard input.

    With --review the run stops at those points: on a terminal you are asked, elsewhere it stays paused (exit code 3)
    and `workbench resume` goes on.
    """
    from workbench.cli.watch import carry

    asked = sys.stdin.read() if message == "-" else message

    def begin(wb: Workbench) -> Run:
        return wb.start(asked, kb=list(kb) or None, review=review, session=session, user=user)

    return carry(page, begin, stream=sys.stdout.isatty() if stream is None else stream, make=True)


@click.command()
@click.argument("run_id", type=Text())
@click.option("--approve", is_flag=True, help="Go on as proposed.")
@click.option("--reject", is_flag=True, help="Stop here and answer with what there is.")
@click.option(
    "--edit",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help='Go on with changes: a JSON object, as {"query": "..."}; - is standard input.',
)
@click.option("--respond", type=Text(), metavar="TEXT", help="Say it in words; they become part of the query.")
@click.option("--note", type=Text(), default="", metavar="TEXT", help="Why; kept with the decision.")
@click.option("--stream/--no-stream", default=None, help="Write the answer while it comes.  [default: on a terminal]")
@paged
def resume(
    page: Page, run_id: str, approve: bool, reject: bool, edit: Any, respond: str | None, note: str, stream: bool | None
) -> int:
    """Answer a paused run, or go on with an interrupted one.

    Without an answer a paused run asks you on a terminal, and elsewhere shows what it waits for (exit code 3).
    """
    from workbench.cli.watch import carry
    from workbench.reviewers import answer

    given = [
        name for name, on in (("approve", approve), ("reject", reject), ("edit", edit), ("respond", respond)) if on
    ]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} exclude each other: give one answer.")
    edits = object_in(edit) if edit else None

    def begin(wb: Workbench) -> Run:
        run = wb.run(run_id)
        if given:
            point = (run.review or {}).get("point", "")
            message = respond or ""
            return run.answer_review(answer(given[0], point=point, edits=edits, message=message, note=note), wait=False)
        return run if run.status == "paused" else run.resume(wait=False)

    return carry(page, begin, stream=sys.stdout.isatty() if stream is None else stream)


def object_in(file: Any, what: str = "an edit", like: str = '{"query": "..."}') -> dict[str, Any]:
    """The JSON object in the file."""
    try:
        edits = json.loads(file.read(LONGEST_EDIT + 1))
    except json.JSONDecodeError as error:
        raise click.UsageError(f"{file.name}, line {error.lineno}: this is not JSON: {error.msg}.") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file.name} is not UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file.name} cannot be used: {error}. Give plain JSON values.") from None
    except OSError as error:
        raise click.UsageError(f"{file.name} cannot be read: {error.strerror}.") from None
    if not isinstance(edits, dict):
        raise click.UsageError(f"{file.name} holds no JSON object. {what.capitalize()} looks like {like}.")
    return edits
