"""Follow a run, ask the person where it pauses, and say how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import EXIT_CODES, FAILED, Page, json_object
from workbench.errors import InvalidAnswer, NotPaused
from workbench.records import proposals
from workbench.state import Data, Json
from workbench.text import visible, visible_json
from workbench.views.labels import (
    SIGNS,
    Labels,
    duration_text,
    labels_for,
    milliseconds,
    reading_text,
)

if TYPE_CHECKING:
    from rich.status import Status

    from workbench.runs.run import Run
    from workbench.session import Workbench

Document = Data
KEYS = {"a": "approve", "e": "edit", "n": "reject", "r": "respond", "q": "leave"}
ANSWER = ("answer", "sources")


def carry(
    page: Page, begin: Callable[[Workbench], Run], *, stream: bool, make: bool = False
) -> int:
    """Begin or continue a run, follow it, ask the person where there is one, and say how it ended.

    Returns:
        The exit code: 0 done, 3 paused, 4 interrupted, 1 failed.
    """
    with page.open(make=make) as wb:
        run = begin(wb)
        document, streamed = follow(page, run, stream)
        total = run.calls().total()
    code = finish(page, document, ANSWER, streamed)
    if total.get("calls") and not page.as_json:
        page.say(labels_for(document["message"])("models_took", **total), "dim")
    return code


def follow(page: Page, run: Run, stream: bool) -> tuple[Document, str]:
    """Return the document of the run where it stopped, and the answer as far as it was written while it came."""
    streamed = ""
    try:
        streamed = watch(page, run, stream)
        if page.person:
            while run.status == "paused" and (decision := decide(page, run)) is not None:
                try:
                    run.answer_review(decision, wait=False)
                    streamed = watch(page, run, stream)
                except InvalidAnswer as refused:
                    page.say(str(refused), "red")
    except KeyboardInterrupt:
        run.cancel(resumable=True)
    except (InvalidAnswer, NotPaused):
        raise
    except Exception:  # a node of a recorded graph raises what it likes
        if run.status != "failed":
            raise
    return run.to_dict(), streamed


def watch(page: Page, run: Run, stream: bool) -> str:
    """Show what happens until the run pauses or ends; return the answer as far as it was written.

    Raises:
        WorkbenchError: the run failed, or refused the answer that it was given.
    """
    labels = labels_for(run.message)
    parts = []
    with page.err.status("") if page.watched else nullcontext() as status:
        for event in run.events():
            if event.get("status") != "token":
                _tell(page, status, event, labels)
            elif stream and not page.as_json:
                if status:
                    status.stop()
                parts.append(event["content"])
                click.echo(visible(event["content"]), nl=False)
    if parts:
        click.echo()
    run.wait()
    return "".join(parts)


def _tell(page: Page, status: Status | None, event: Data, labels: Labels) -> None:
    """Move the spinner, and say what ended; without a spinner only notes are said."""
    from rich.markup import escape

    now = ""
    progress = event["content"] if event.get("status") == "progress" else {}
    if progress.get("note") and progress["stage"] != "report":
        page.say(progress["note"], "yellow")
    elif not status:
        return
    elif progress.get("note"):
        page.say(f"{SIGNS['success']} {progress['note']}", "dim")
    elif progress:
        now = labels(progress["stage"])
    elif begun := event.get("retrieval_step_start"):
        now = f"{begun['step_id']} · {begun['tool']}"
    elif (done := event.get("retrieval_step_done")) and done["status"] != "skipped":
        count = labels("n_found", n=done["evidence_count"])
        sign = SIGNS[done["status"]]
        took = milliseconds(done["duration_ms"])
        page.say(f"{sign} {done['step_id']} · {count} · {took}", "dim")
    if now and status:
        status.update(escape(visible(now)))


def decide(page: Page, run: Run) -> Json | None:
    """Return the person's answer in the middleware's shape; None when the run is left waiting."""
    from workbench.graphs.reviewers import answer
    from workbench.views.outline import outline

    request = run.review
    labels = labels_for(run.message)
    if request is None:
        return None
    page.show(outline(run.to_dict(), _at_pause(request)[1:]), page.err)
    try:
        while (action := _choose(page, labels)) != "leave":
            edits = edited(page, request, labels) if action == "edit" else None
            if action == "edit" and not edits:
                page.say(labels("nothing_changed"), "yellow")
                continue
            message = _prompt(labels("your_words")) if action == "respond" else ""
            return answer(
                action,
                point=request["point"],
                edits=edits,
                message=message,
                note=_prompt(labels("why"), default=""),
            )
    except click.Abort:  # Ctrl-C or the end of the input: the run waits as before
        page.say("")
    return None


def _prompt(text: str, **more: Any) -> str:
    return str(
        click.prompt(text, prompt_suffix=" ", err=True, show_default=False, **more)
    ).strip()


def _choose(page: Page, labels: Labels) -> str:
    """Ask for one letter until it is one of ours."""
    choices = "  ".join(f"[{key}] {labels(action)}" for key, action in KEYS.items())
    while True:
        page.say(choices, "bold")
        word = _prompt(">").lower()
        if action := KEYS.get(word, word if word in KEYS.values() else ""):
            return action
        page.say(labels("choose_one", keys=", ".join(KEYS)), "yellow")


def edited(page: Page, request: Data, labels: Labels) -> Json:
    """Return what the person changed in the proposal, with their editor; broken JSON is explained and opened again."""
    if proposals.kind(request) == "clarify":
        return _answers(page, request, labels)
    form = proposals.schema(request)
    before = {**dict.fromkeys(form["properties"]), **proposals.in_force(request)}
    text: str | None = visible_json(json.dumps(before, ensure_ascii=False, indent=2)) + "\n"
    while (text := click.edit(text, extension=".json", require_save=True)) is not None:
        try:
            return changes(before, text, form.get("required", ()))
        except ValueError as error:
            page.say(str(error), "red")
            if not click.confirm(labels("edit_again"), default=True, err=True):
                break
    return {}


def _answers(page: Page, request: Data, labels: Labels) -> Json:
    """Ask question by question; an empty line goes by what is assumed."""
    answers = {}
    for question in proposals.proposal(request)["questions"]:
        page.say(question["question"], "bold")
        for number, option in enumerate(question["options"], 1):
            page.say(f"  {number}. {option}")
        page.say(labels("assumed_unless", what=question["assumed"]), "dim")
        if text := _prompt(">", default=""):
            answers[question["question_id"]] = text
    return {"answers": answers} if answers else {}


def changes(before: Data, text: str, required: Any = ()) -> Json:
    """Return the fields of a JSON object that are not as they were.

    Raises:
        ValueError: says where the JSON breaks, or which field cannot be changed here.

    >>> changes({"query": None, "thresholds": {}}, '{"query": "only comedies", "thresholds": {}}')
    {'query': 'only comedies'}
    """
    after = json_object(text)
    if unknown := sorted(set(after) - set(before)):
        raise ValueError(f"{unknown[0]!r} cannot be changed here. Known: {', '.join(before)}.")
    return proposals.differing(before, after, required)


def _at_pause(request: Data) -> tuple[str, ...]:
    """Return what to show of a run that waits: while a report is written, its plan has run long since."""
    report = proposals.kind(request) == "outline"
    return ("head", "review") if report else ("head", "plan", "reflections", "review")


def finish(page: Page, document: Document, parts: tuple[str, ...], streamed: str = "") -> int:
    """Say the last word of a command on a run: its answer or its pause, how to go on; return the exit code."""
    from workbench.views.outline import outline

    status = document["status"]
    run_id = document["run_id"]
    code = EXIT_CODES.get(status, FAILED)
    if page.as_json:
        page.result(document)
        return code
    labels = labels_for(document["message"])
    if status in ("failed", "interrupted", "running"):
        if document["error"]:
            page.say(f"error: {document['error']}", "red")
        what = labels("go_on") if status == "failed" else labels("interrupted_run", run_id=run_id)
        page.say(f"{what}{labels('colon')}{page.command('resume', run_id)}", "yellow")
        return code
    if status == "paused":
        page.show(outline(document, _at_pause(document["review"] or {})))
        show_ways_on(page, document)
        return code
    if "graph" in document:
        page.show(outline(document, ("head", *parts)))
        return code
    shown = streamed.strip() and streamed.strip() == (document["answer"] or "").strip()
    page.show(
        outline(document, tuple(part for part in parts if not (shown and part == "answer")))
    )
    alone = "head" not in parts
    if alone and (read := reading_text(document, labels)):
        page.say(read, "dim")
    took = duration_text(document["figures"], labels)
    page.say(f"{labels.status(status)} · {took} · {page.command('show', run_id)}", "dim")
    if alone:
        whose = [] if document["user_id"] == "default" else ["--user", document["user_id"]]
        more = page.command("ask", "QUESTION", "--session", document["session_id"], *whose)
        page.say(f"{labels('talk_goes_on')}{labels('colon')}{more}", "dim")
    return code


def show_ways_on(page: Page, document: Document) -> None:
    """Say the exact commands that answer a pause."""
    labels = labels_for(document["message"])
    page.say(f"{labels('go_on')}{labels('colon')}")
    values = {"edit": ["FILE.json"], "respond": ["TEXT"]}
    for action in proposals.allowed(document["review"] or {}):
        page.say(
            f"  {page.command('resume', document['run_id'], f'--{action}', *values.get(action, []))}"
        )
