"""``workbench ask`` and ``workbench resume``: follow a run, ask the person where it pauses, say how it ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import EXIT_CODES, FAILED, Page, Pair, Text, paged
from workbench.errors import InvalidAnswer, NotPaused, WorkbenchError
from workbench.records import proposals
from workbench.text import visible, visible_json
from workbench.views.labels import SIGNS, Labels, labels_for, milliseconds

if TYPE_CHECKING:
    from rich.status import Status

    from workbench.runs.run import Run
    from workbench.session import Workbench


KEYS = {"a": "approve", "e": "edit", "s": "reject", "r": "respond", "q": "leave"}
EMPTY: Mapping[str, Any] = {"query": "", "thresholds": {}, "needs": {}, "struck": []}
"""How fields that can be edited begin which the proposal does not hold."""


def decide(page: Page, run: Run) -> dict[str, Any] | None:
    """The person's answer in the middleware's shape; None when the run is left waiting."""
    from workbench.graphs.reviewers import answer
    from workbench.views.outline import outline

    request, labels = run.review, labels_for(run.message)
    if request is None:
        return None
    page.show(outline(run.to_dict(), tuple(part for part in pause_of(request) if part != "head")), page.err)
    try:
        while True:
            action = _choose(page, labels)
            if action == "leave":
                return None
            edits, message = None, ""
            if action == "edit":
                edits = edited(page, request, labels)
                if not edits:
                    page.say(labels("nothing_changed"), "yellow")
                    continue
            if action == "respond":
                message = click.prompt(labels("your_words"), prompt_suffix=" ", err=True)
            note = click.prompt(labels("why"), default="", show_default=False, prompt_suffix=" ", err=True)
            return answer(action, point=request["point"], edits=edits, message=message, note=note)
    except click.Abort:  # Ctrl-C or the end of the input: the run waits as before
        page.say("")
        return None


def _choose(page: Page, labels: Labels) -> str:
    """One letter, asked for until it is one of ours."""
    choices = "  ".join(f"[{key}] {labels(action)}" for key, action in KEYS.items())
    while True:
        page.say(choices, "bold")
        given = click.prompt(">", prompt_suffix=" ", err=True).strip().lower()
        if given in KEYS:
            return KEYS[given]
        if given in KEYS.values():
            return given
        page.say(labels("choose_one", keys=", ".join(KEYS)), "yellow")


def edited(page: Page, request: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """What the person changed in the proposal, with their editor; broken JSON is explained and opened again."""

    if proposals.kind(request) == "clarify":
        return _answers(page, request, labels)
    proposed = proposals.proposal(request)
    before = {name: proposed.get(name, EMPTY.get(name)) for name in proposals.schema(request)["properties"]}
    text: str | None = visible_json(json.dumps(before, ensure_ascii=False, indent=2)) + "\n"
    while True:
        text = click.edit(text, extension=".json", require_save=True)
        if text is None:
            return {}
        try:
            return changes(before, text)
        except ValueError as error:
            page.say(str(error), "red")
            if not click.confirm(labels("edit_again"), default=True, err=True):
                return {}


def _answers(page: Page, request: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """What the person answers, question by question; an empty line goes by what is assumed."""
    given = {}
    for one in proposals.proposal(request)["questions"]:
        page.say(one["question"], "bold")
        for number, option in enumerate(one["options"], 1):
            page.say(f"  {number}. {option}")
        page.say(labels("assumed_unless", what=one["assumed"]), "dim")
        said = click.prompt(">", default="", show_default=False, prompt_suffix=" ", err=True)
        if said.strip():
            given[one["question_id"]] = said.strip()
    return {"answers": given} if given else {}


def changes(before: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The fields of a JSON object that are not as they were.

    Raises:
        ValueError: says where the JSON breaks, or which field cannot be changed here.

    >>> changes({"query": "", "thresholds": {}}, '{"query": "only comedies", "thresholds": {}}')
    {'query': 'only comedies'}
    """
    try:
        after = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"This is not JSON: line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This cannot be used: {error}.") from None
    if not isinstance(after, dict):
        raise ValueError('An edit is a JSON object: {"query": "..."}.')
    unknown = sorted(set(after) - set(before))
    if unknown:
        raise ValueError(f"{unknown[0]!r} cannot be changed here. Known: {', '.join(before)}.")
    return {name: value for name, value in after.items() if value != before[name]}


Document = Mapping[str, Any]
ANSWER = ("answer", "sources")


def pause_of(request: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What is shown of a run that waits: while a report is written, its plan has run long since."""
    written = proposals.kind(request or {}) in ("outline", "section", "report")
    return ("head", "review") if written else ("head", "plan", "reflections", "review")


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
            elif event.get("status") == "progress" and event["content"]["stage"] == "report":
                spinner.written(event["content"]["note"])
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

        if self._status:
            self._status.update(escape(visible(text)))

    def step(self, done: Mapping[str, Any], labels: Any) -> None:

        if self._status and done["status"] != "skipped":
            found = labels("n_found", n=done["evidence_count"])
            line = f"{SIGNS[done['status']]} {done['step_id']} · {found} · {milliseconds(done['duration_ms'])}"
            self._page.say(line, "dim")

    def written(self, title: str) -> None:
        if self._status:
            self._page.say(f"{SIGNS['done']} {title}", "dim")

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
    from workbench.views.labels.sentences import read_told, took_told
    from workbench.views.outline import outline

    status, run_id = document["status"], document["run_id"]
    code = EXIT_CODES.get(status, FAILED)
    if page.as_json:
        page.result(document)
        return code
    labels = labels_for(document["message"])
    if status == "paused":
        page.show(outline(document, pause_of(document["review"])))
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

    labels, run_id = labels_for(document["message"]), document["run_id"]
    page.say(f"{labels('go_on')}{labels('colon')}")
    for option, argument in (("approve", ""), ("edit", "FILE.json"), ("respond", "TEXT"), ("reject", "")):
        words = [f"--{option}", *([argument] if argument else [])]
        page.say(f"  {page.command('resume', run_id, *words)}")


LONGEST_EDIT = 2**22
"""Characters of an edit that are read: a larger one breaks in its middle, and is refused as no JSON."""


class Points(click.ParamType):
    """Review points: ``plan,reflect``, or ``all``; those of a question, or those that are given."""

    name = "points"

    def __init__(self, report: bool = False):
        self._report = report

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The points, in the order in which a run meets them."""
        from workbench.state import REPORT_POINTS, REVIEW_POINTS

        points: Sequence[str] = REPORT_POINTS if self._report else REVIEW_POINTS
        asked = {point.strip() for point in str(value).split(",") if point.strip()}
        if asked == {"all"}:
            return list(points)
        for unknown in sorted(asked - set(points)):
            self.fail(f"{unknown!r} is not a review point. Known: {', '.join(points)}, all.", param, ctx)
        return [point for point in points if point in asked]


@click.command()
@click.argument("message", type=Text())
@click.option("--kb", type=Text(), multiple=True, metavar="NAME", help="Knowledge base; several times for several.")
@click.option(
    "--review", type=Points(), default="", metavar="POINTS", help="Where to stop and ask: plan,step,reflect or all."
)
@click.option("--session", type=Text(), help="The conversation that this goes on.  [default: a new one]")
@click.option("--user", type=Text(), default="default", show_default=True, help="Whose conversation.")
@click.option("--as-of", type=Text(), metavar="DATE", help="Only documents that held then: a year, month or day.")
@click.option("--known", type=Text(), metavar="DATE", help="Only what was known by then.")
@click.option("--stream/--no-stream", default=None, help="Write the answer while it comes.  [default: on a terminal]")
@click.option("--model", "models", type=Pair(), multiple=True, help="planner=openai:NAME, all=rules: who does what.")
@click.option("--prompt", "prompts", type=Pair(), multiple=True, help="planner=FILE.toml: what it is asked with.")
@paged
def ask(
    page: Page,
    message: str,
    kb: tuple[str, ...],
    review: list[str],
    user: str,
    *,
    session: str | None,
    as_of: str | None,
    known: str | None,
    stream: bool | None,
    models: tuple[tuple[str, str], ...],
    prompts: tuple[tuple[str, str], ...],
) -> int:
    """Ask a question; "-" reads it from standard input.

    With --review the run stops at those points: on a terminal you are asked, elsewhere it stays paused (exit code 3)
    and `workbench resume` goes on.
    """

    asked = sys.stdin.read() if message == "-" else message

    def begin(wb: Workbench) -> Run:
        own: Any = {"models": dict(models), "prompts": dict(prompts), "as_of": as_of or "", "known": known or ""}
        return wb.start(asked, kb=list(kb) or None, review=review, session=session, user=user, **own)

    return carry(page, begin, stream=sys.stdout.isatty() if stream is None else stream, make=True)


@click.command()
@click.argument("question", type=Text(), default="")
@click.option("--kb", type=Text(), help="The knowledge base.")
@click.option("--strategy", type=Text(), help="rrf, weighted, cascade, zscore or percentile.")
@click.option("--rerank", type=Text(), help="The reranker, by name; none for none.")
@click.option("--quality-threshold", type=float, help="Below it is asked again, 0 to 1.")
@click.option("--max-retries", type=int, help="How often at most.")
@click.option("--canvas", type=Text(), default="", help="A canvas in the knowledge base, whose nodes ask.")
@click.option("--operation", type=Text(), default="explanation", show_default=True, help="What is done with them.")
@click.option("--nodes", type=Text(), default="", metavar="ID,...", help="Which of them.")
@paged
def fusion(page: Page, nodes: str, **options: Any) -> int:
    """Ask the fusion graph: two sources at once, fused, reranked, judged, and asked again where that falls short."""
    targets = [one.strip() for one in nodes.split(",") if one.strip()]
    return carry(page, lambda wb: wb.fusion(nodes=targets, wait=False, **options), stream=sys.stdout.isatty())


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
@click.option(
    "--strike", type=Text(), multiple=True, metavar="ID", help="Go on without obeying that memory; several times."
)
@click.option("--respond", type=Text(), metavar="TEXT", help="Say it in words; they become part of the query.")
@click.option("--note", type=Text(), default="", metavar="TEXT", help="Why; kept with the decision.")
@click.option("--stream/--no-stream", default=None, help="Write the answer while it comes.  [default: on a terminal]")
@paged
def resume(
    page: Page,
    run_id: str,
    approve: bool,
    reject: bool,
    edit: Any,
    *,
    strike: tuple[str, ...],
    respond: str | None,
    note: str,
    stream: bool | None,
) -> int:
    """Answer a paused run, or go on with an interrupted one.

    Without an answer a paused run asks you on a terminal, and elsewhere shows what it waits for (exit code 3).
    """
    from workbench.graphs.reviewers import answer

    asked = (("approve", approve), ("reject", reject), ("edit", edit or strike), ("respond", respond))
    given = [name for name, on in asked if on]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} exclude each other: give one answer.")
    edits = {**(object_in(edit) if edit else {}), **({"struck": [*strike]} if strike else {})} or None

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


@click.command()
@click.argument("question", type=Text(), default="")
@click.option("--run", "run_id", type=Text(), help="The report of a run that there is, in place of a new one.")
@click.option("--update", type=Text(), metavar="RUN", help="Bring the report of a run up to date with the corpus.")
@click.option("--kb", type=Text(), multiple=True, metavar="NAME", help="Knowledge base; several times for several.")
@click.option("--type", "report_type", type=Text(), help="short, long, or one's own.")
@click.option("--style", type=Text(), help="Of the references: default, apa, ieee, gb7714 or bibtex.")
@click.option("--assume", type=Text(), multiple=True, metavar="SENTENCE", help="What is taken as given.")
@click.option("--review", type=Points(report=True), default="", metavar="POINTS", help="Where to stop and ask.")
@click.option("--fresh", is_flag=True, help="Take nothing over from an earlier report.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file: .md, .html or .pdf.")
@paged
def report(
    page: Page,
    question: str,
    kb: tuple[str, ...],
    assume: tuple[str, ...],
    *,
    run_id: str | None,
    update: str | None,
    fresh: bool,
    output: str | None,
    **options: Any,
) -> int:
    """Write a report on a topic; "-" reads it from standard input.

    What stands behind a colon are its aspects, each a section: "Tides: causes, records, power". Points of review are
    clarify, plan, step, reflect, outline, section and report. --update writes only what changed into a
    new report.
    """
    if sum(map(bool, (question, run_id, update))) != 1:
        raise click.UsageError("Name a topic, or with --run or --update the run of a report.")
    with page.open() as wb:
        if update:
            run = wb.run(update).report.update()
            counts = run.report.metrics
            page.say(f"Sections written: {counts['sections_written']}, unchanged: {counts['sections_reused']}.")
            if output:
                page.say(str(run.report.write(output)))
            page.say(page.command("report", "--run", run.run_id), "dim")
            return 0
        if run_id:
            run = wb.run(run_id)
            document: Document = run.to_dict()
        else:
            asked = sys.stdin.read() if question == "-" else question
            run = wb.report(asked, kb=list(kb) or None, assumptions=assume, cached=not fresh, wait=False, **options)
            document, _ = follow(page, run, False)
        if output and document["status"] == "done":
            page.say(str(run.report.write(output)))
    return finish(page, document, () if output else ANSWER[:1])
