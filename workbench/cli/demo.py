"""``workbench demo``: the whole path on the films, with nothing to configure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from workbench.cli.page import DONE, Page, paged
from workbench.errors import CorpusError

FILMS = Path("data") / "films.jsonl"
COMPARE, WHEN = "对比《喜宴》和《饮食男女》的风格", "When was The Wedding Banquet released?"
LIKE = "推荐几部类似《喜宴》的电影"
EVERYTHING = ("head", "plan", "reflections", "timeline", "answer", "sources")


@click.command()
@paged
def demo(page: Page) -> int:
    """Index the films and ask two questions.

    It shows the plan, the reflection, the timeline and the cited answer.
    """
    from workbench.cli.knowledge import progress, show_report
    from workbench.cli.watch import finish, follow

    films, documents = find_films(), []
    with page.open(make=True) as wb:
        page.say(f"Indexing {films} into the knowledge base `film` …", "bold")
        with progress(page) as tell:
            report = wb.add_knowledge("film", [films], progress=tell)
        show_report(page, report, wb.knowledge.get("film").counts())
        for question in (COMPARE, WHEN):
            page.say(f"\n$ {page.command('ask', question, '--kb', 'film')}", "bold")
            documents.append(follow(page, wb.start(question, kb="film"), stream=False)[0])
            if not page.as_json:
                finish(page, documents[-1], EVERYTHING if question == COMPARE else ("answer", "sources"))
    if page.as_json:
        page.result({"knowledge": asdict(report), "runs": documents})
    else:
        show_next(page, documents[0]["run_id"])
    return max((0 if document["status"] == "done" else 1 for document in documents), default=DONE)


def find_films() -> Path:
    """The film corpus: where one stands, or in the clone that this package is run from.

    Raises:
        CorpusError: an installed wheel has no corpus.
    """
    clone = Path(__file__).parents[2] / FILMS
    for place in (FILMS, clone):
        if place.is_file():
            return place
    raise CorpusError(
        f"{FILMS} is not here: its text is CC BY-SA, so the installed package leaves it out. Run `workbench demo` in a "
        "clone of the repository, or index files of your own: workbench kb add NAME PATH..."
    )


def show_next(page: Page, run_id: str) -> None:
    """What to try after the demo."""
    page.say("\nWhat next", "bold")
    for what, words in (
        ("decide yourself at the plan and after each pass", ("ask", LIKE, "--kb", "film", "--review", "plan,reflect")),
        ("filters in plain words", ("ask", "List Christopher Nolan films after 2005", "--kb", "film")),
        ("everything that a run did", ("show", run_id)),
        ("the same as data", ("show", run_id, "--json")),
        ("what is configured and what could be", ("doctor",)),
    ):
        page.say(f"  {page.command(*words)}")
        page.say(f"      {what}", "dim")
    page.say("  make lab")
    page.say("      the notebooks: plan, reflection, DAG and timeline in JupyterLab", "dim")
