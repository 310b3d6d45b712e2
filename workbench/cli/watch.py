"""Carry a run to its pause or its end while somebody watches: live lines, tokens, questions, the last word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import EXIT_CODES, FAILED, Page
from workbench.errors import InvalidAnswer, NotPaused, WorkbenchError

if TYPE_CHECKING:
    from rich.status import Status

    from workbench.run import Run
    from workbench.session import Workbench

Document = Mapping[str, Any]
ANSWER = ("answer", "sources")
PAUSE = ("head", "plan", "reflections", "review")


def carry(page: Page, begin: Callable[[Workbench], Run], *, stream: bool, make: bool = False) -> int:
    """Begin or go on with a run, follow it, ask the person where there is one, and say how it ended.

    Returns:
        The exit code: 0 done, 3 paused, 4 interrupted, 1 failed.
    """
    with page.open(make=make) as wb:
        document, streamed = follow(page, begin(wb), stream)
    return finish(page, document, ANSWER, streamed)


def follow(page: Page, run: Run, stream: bool) -> tuple[Document, str]:
    """The document of the run where it stopped, and the answer as far as it was written while it came."""
    written = ""
    try:
        written = watch(page, run, stream)
        if page.person:
            from workbench.cli.person import decide

            while run.status == "paused" and (given := decide(page, run)) is not None:
                try:
                    run.answer_review(given, wait=False)
                    written = watch(page, run, stream)
                except InvalidAnswer as refused:
                    page.say(str(refused), "red")
    except KeyboardInterrupt:
        run.interrupt()
    except (InvalidAnswer, NotPaused):
        raise
    except WorkbenchError:
        if run.status != "failed":
            raise
    return run.to_dict(), written


def watch(page: Page, run: Run, stream: bool) -> str:
    """Show what happens until the run pauses or ends; the answer as far as it was written to standard output.

    Raises:
        WorkbenchError: the run failed, or refused the answer that it was given.
    """
    from workbench.labels import labels_for
    from workbench.text import visible

    labels, written = labels_for(run.message), list[str]()
    with _spinner(page) as spinner:
        for event in run.events():
            if event.get("status") == "token" and stream and not page.as_json:
                spinner.stop()
                written.append(event["content"])
                click.echo(visible(event["content"]), nl=False)
            elif "retrieval_step_done" in event:
                spinner.step(event["retrieval_step_done"], labels)
            elif "retrieval_step_start" in event:
                spinner.say(f"{event['retrieval_step_start']['step_id']} · {event['retrieval_step_start']['tool']}")
            elif event.get("status") == "progress" and event["content"].get("note"):
                page.say(event["content"]["note"], "yellow")
            elif event.get("status") == "progress":
                spinner.say(labels(event["content"]["stage"]))
    if written:
        click.echo()
    run.wait()
    return "".join(written)


class _Spinner:
    """One moving line on standard error, and a line for each step that ended; silent where nobody watches."""

    def __init__(self, page: Page, status: Status | None):
        self._page, self._status = page, status

    def say(self, text: str) -> None:
        from rich.markup import escape

        from workbench.text import visible

        if self._status:
            self._status.update(escape(visible(text)))

    def step(self, done: Mapping[str, Any], labels: Any) -> None:
        from workbench.labels import SIGNS, milliseconds

        if self._status and done["status"] != "skipped":
            found = labels("n_found", n=done["evidence_count"])
            line = f"{SIGNS[done['status']]} {done['step_id']} · {found} · {milliseconds(done['duration_ms'])}"
            self._page.say(line, "dim")

    def stop(self) -> None:
        if self._status:
            self._status.stop()


@contextmanager
def _spinner(page: Page) -> Iterator[_Spinner]:
    if not page.watched:
        yield _Spinner(page, None)
        return
    with page.err.status("") as status:
        yield _Spinner(page, status)


def finish(page: Page, document: Document, show: tuple[str, ...], streamed: str = "") -> int:
    """The last word of a command on a run: its answer or its pause, how to go on, and the exit code."""
    from workbench.labels import labels_for
    from workbench.labels.told import read_told, took_told
    from workbench.show import outline

    status, run_id = document["status"], document["run_id"]
    code = EXIT_CODES.get(status, FAILED)
    if page.as_json:
        page.result(document)
        return code
    labels = labels_for(document["message"])
    if status == "paused":
        page.show(outline(document, PAUSE))
        show_ways_on(page, document)
    elif status == "failed":
        page.say(f"error: {document['error']}", "red")
        page.say(f"{labels('go_on')}{labels('colon')}{page.command('resume', run_id)}")
    elif status in ("interrupted", "running"):
        if document["error"]:
            page.say(f"error: {document['error']}", "red")
        page.say(
            f"{labels('interrupted_run', run_id=run_id)}{labels('colon')}{page.command('resume', run_id)}", "yellow"
        )
    else:
        heard = streamed.strip() and streamed.strip() == (document["answer"] or "").strip()
        page.show(outline(document, tuple(part for part in show if not (heard and part == "answer"))))
        if "head" not in show and (read := read_told(document, labels)):
            page.say(read, "dim")
        page.say(
            f"{labels.status(status)} · {took_told(document['figures'], labels)} · {page.command('show', run_id)}",
            "dim",
        )
        if "head" not in show:
            whose = [] if document["user_id"] == "default" else ["--user", document["user_id"]]
            more = page.command("ask", "QUESTION", "--session", document["session_id"], *whose)
            page.say(f"{labels('talk_goes_on')}{labels('colon')}{more}", "dim")
    return code


def show_ways_on(page: Page, document: Document) -> None:
    """The exact commands that answer a pause."""
    from workbench.labels import labels_for

    labels, run_id = labels_for(document["message"]), document["run_id"]
    page.say(f"{labels('go_on')}{labels('colon')}")
    for option, argument in (("approve", ""), ("edit", "FILE.json"), ("respond", "TEXT"), ("reject", "")):
        words = [f"--{option}", *([argument] if argument else [])]
        page.say(f"  {page.command('resume', run_id, *words)}")
