"""``workbench kb``: knowledge bases; and ``workbench demo``, the whole path on a corpus with nothing to configure.

Which corpus the demo takes, under which name, and what is asked of it, says ``data/demo.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.follow import ANSWER, finish, follow
from workbench.cli.page import DONE, FAILED, Page, paged
from workbench.errors import CorpusError, WorkbenchError
from workbench.state import Json

if TYPE_CHECKING:
    from workbench.knowledge.adding import AddReport
    from workbench.session import Workbench

_name = click.argument("name")


@click.group()
def kb() -> None:
    """Knowledge bases: add files, list, inspect, rebuild, remove."""


@kb.command()
@_name
@click.argument(
    "paths",
    type=click.Path(exists=True, path_type=Path),
    nargs=-1,
    required=True,
    metavar="PATH...",
)
@click.option(
    "--vocabulary", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="What the words of the fields mean (TOML); by default the file next to them.",
)  # fmt: skip
@click.option(
    "--replace",
    is_flag=True,
    help="Put documents in the place of those of other files that have the same ids.",
)
@paged
def add(
    page: Page, name: str, paths: tuple[Path, ...], vocabulary: Path | None, replace: bool
) -> None:
    """Index files or folders (texts, tables, pages, Office files, canvases) under NAME; unchanged ones are free."""
    with page.open(make=True) as wb:
        report = wb.add_knowledge(name, paths, vocabulary=vocabulary, replace=replace)
        show_report(page, report, wb)
    if not page.as_json:
        page.say(page.command("ask", "...", "--kb", name), "dim")


_REPORTED = ("added", "changed", "deleted", "unchanged")


def show_report(page: Page, report: AddReport, wb: Workbench) -> None:
    """Say what an indexing did, and what it left out."""
    problems_shown = 10
    counts = wb.knowledge.get(report.name).about()["counts"]
    if page.as_json:
        page.result({**asdict(report), "counts": counts})
        return
    numbers = [(getattr(report, name), name) for name in _REPORTED]
    summary = " · ".join(f"{number:,} {name}" for number, name in numbers if number)
    page.say(f"✓ {report.name}: {summary or 'nothing there'} · {report.seconds:.1f} s")
    page.say("  " + " · ".join(f"{count:,} {what}" for what, count in counts.items()), "dim")
    places: dict[str, list[str]] = {}
    for problem in report.problems:
        place = f"{problem['file']}:{problem['line']}" if problem["line"] else problem["file"]
        places.setdefault(problem["reason"], []).append(place)
    for reason, alike in list(places.items())[:problems_shown]:
        more = f" and {len(alike) - 1:,} more" if len(alike) > 1 else ""
        page.say(f"! {alike[0]}{more}: {reason}")
    if len(places) > problems_shown:
        page.say(f"! {len(places) - problems_shown:,} more reasons; --json lists all problems")


@kb.command()
@_name
@paged
def rebuild(page: Page, name: str) -> None:
    """Index NAME again.

    From its files and, where they are gone, from the documents that its index kept.
    """
    with page.open() as wb:
        report = wb.knowledge.rebuild(name)
        show_report(page, report, wb)
    if page.as_json:
        return
    for path in report.missing:
        page.say(f"! {path} is not there any more")
    if report.stored:
        page.say(f"! {report.stored:,} documents came from the old index: their files are gone")
    if report.kept:
        page.say(f"The damaged index is kept in {report.kept}", "dim")


@kb.command("list")
@paged
def list_(page: Page) -> int:
    """List the knowledge bases with what is in them."""
    bases = []
    faults = {}
    with page.open() as wb:
        for name in wb.knowledge.names():
            try:
                bases.append(wb.knowledge.get(name).inspect())
            except WorkbenchError as fault:
                faults[name] = str(fault)
    if not page.as_json:
        for name, text in faults.items():
            page.say(f"✗ {name}: {text}")
    counted = list(bases[0]["counts"]) if bases else []
    rows = [
        (
            base["name"],
            *(f"{base['counts'][what]:,}" for what in counted),
            base["embedding_model"],
        )
        for base in bases
    ]
    columns = ("name:code", *(f"{what}:number" for what in counted), "embeddings")
    empty = f"No knowledge base here yet. {page.command('kb', 'add', 'NAME', 'PATH...')}"
    if rows or page.as_json or not faults:
        page.table({"knowledge": bases, "faults": faults}, columns, rows, empty)
    return FAILED if faults else DONE


@kb.command()
@_name
@paged
def inspect(page: Page, name: str) -> None:
    """Look into NAME: counts, growth, coverage, fields and files."""
    with page.open() as wb:
        page.present(wb.inspect_knowledge(name))


@kb.command()
@_name
@click.option(
    "--as-of", default="", metavar="DATE", help="Only documents that hold on that date."
)
@click.option("--known", default="", metavar="DATE", help="Only what was known by then.")
@paged
def facts(page: Page, name: str, as_of: str, known: str) -> None:
    """List what the typed fields of the documents of NAME say, with the dates of each document."""
    from workbench.knowledge.dated import typed_facts
    from workbench.runs.asking import iso_date

    with page.open() as wb:
        rows = typed_facts(
            wb.knowledge.get(name), [iso_date("as_of", as_of), iso_date("known", known)]
        )
    columns = ("document", "field", "value", "valid_from", "valid_to", "known_since")
    cells = ([row[column] for column in columns] for row in rows)
    page.table({"facts": rows}, columns, cells, "No typed field says anything here.")


@kb.command()
@_name
@paged
def remove(page: Page, name: str) -> None:
    """Forget a knowledge base; the runs that used it stay."""
    with page.open() as wb:
        wb.knowledge.remove(name)
    page.give({"removed": name}, f"Removed {name}.")


DEMO = Path("data") / "demo.toml"
EVERYTHING = ("head", "plan", "reflections", "answer", "sources")


@click.command()
@paged
def demo(page: Page) -> int:
    """Index a corpus and ask it two questions.

    It shows the plan, the reflection, the timeline and the cited answer.
    """
    shown = find_demo()
    documents = []
    kb = shown["kb"]
    corpus = shown["corpus"]
    with page.open(make=True) as wb:
        page.say(f"Indexing {corpus} into the knowledge base `{kb}` …", "bold")
        report = wb.add_knowledge(kb, [corpus])
        if not page.as_json:
            show_report(page, report, wb)
        for question in (shown["whole"], shown["short"]):
            page.say(f"\n$ {page.command('ask', question, '--kb', kb)}", "bold")
            document, _ = follow(page, wb.start(question, kb=kb), stream=False)
            documents.append(document)
            if not page.as_json:
                finish(page, document, EVERYTHING if question == shown["whole"] else ANSWER)
    if page.as_json:
        page.result({"knowledge": asdict(report), "runs": documents})
    else:
        review = page.command("ask", shown["review"], "--kb", kb, "--review", "plan,reflect")
        page.say(f"\nDecide yourself at the plan and after each pass:\n  {review}", "bold")
    return max((0 if document["status"] == "done" else 1 for document in documents), default=DONE)


def find_demo() -> Json:
    """Return ``kb``, ``corpus`` as a path, and the questions, from this folder or from the clone of this package.

    Raises:
        CorpusError: an installed wheel has no corpus.
    """
    clone = Path(__file__).parents[2] / DEMO
    for place in (DEMO, clone):
        if place.is_file():
            shown = tomllib.loads(place.read_text("utf-8"))
            return {**shown, "corpus": place.with_name(shown["corpus"])}
    raise CorpusError(
        f"{DEMO} is not here: its corpus is CC BY-SA, so the installed package leaves it out. Run `workbench demo` in "
        "a clone of the repository, or index files of your own: workbench kb add NAME PATH..."
    )
