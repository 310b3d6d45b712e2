"""``workbench demo``: the whole path on a corpus of the project, with nothing to configure.

Which corpus, under which name, and what is asked of it, says ``data/demo.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from workbench.cli.page import DONE, Page, paged
from workbench.errors import CorpusError

DEMO = Path("data") / "demo.toml"
EVERYTHING = ("head", "plan", "reflections", "timeline", "answer", "sources")


@click.command()
@paged
def demo(page: Page) -> int:
    """Index a corpus and ask it two questions.

    It shows the plan, the reflection, the timeline and the cited answer.
    """
    from workbench.cli.knowledge import progress, show_report
    from workbench.cli.watch import finish, follow

    shown, documents = find_demo(), []
    kb, corpus = shown["kb"], shown["corpus"]
    with page.open(make=True) as wb:
        page.say(f"Indexing {corpus} into the knowledge base `{kb}` …", "bold")
        with progress(page) as tell:
            report = wb.add_knowledge(kb, [corpus], progress=tell)
        show_report(page, report, wb.knowledge.get(kb).counts())
        for question in (shown["whole"], shown["short"]):
            page.say(f"\n$ {page.command('ask', question, '--kb', kb)}", "bold")
            documents.append(follow(page, wb.start(question, kb=kb), stream=False)[0])
            if not page.as_json:
                finish(page, documents[-1], EVERYTHING if question == shown["whole"] else ("answer", "sources"))
    if page.as_json:
        page.result({"knowledge": asdict(report), "runs": documents})
    else:
        show_next(page, shown, documents[0]["run_id"])
    return max((0 if document["status"] == "done" else 1 for document in documents), default=DONE)


def find_demo() -> dict[str, Any]:
    """What is shown: ``kb``, ``corpus`` as a path, and the questions; of here, or of the clone that this is run from.

    Raises:
        CorpusError: an installed wheel has no corpus.
    """
    clone = Path(__file__).parents[2] / DEMO
    for place in (DEMO, clone):
        if place.is_file():
            shown = tomllib.loads(place.read_text(encoding="utf-8"))
            return {**shown, "corpus": place.with_name(shown["corpus"])}
    raise CorpusError(
        f"{DEMO} is not here: its corpus is CC BY-SA, so the installed package leaves it out. Run `workbench demo` in "
        "a clone of the repository, or index files of your own: workbench kb add NAME PATH..."
    )


def show_next(page: Page, shown: dict[str, Any], run_id: str) -> None:
    """What to try after the demo."""
    page.say("\nWhat next", "bold")
    review = ("ask", shown["review"], "--kb", shown["kb"], "--review", "plan,reflect")
    for what, words in (
        ("decide yourself at the plan and after each pass", review),
        ("filters in plain words", ("ask", shown["filters"], "--kb", shown["kb"])),
        ("everything that a run did", ("show", run_id)),
        ("the same as data", ("show", run_id, "--json")),
        ("what is configured and what could be", ("doctor",)),
    ):
        page.say(f"  {page.command(*words)}")
        page.say(f"      {what}", "dim")
    page.say("  make lab")
    page.say("      the notebooks: plan, reflection, DAG and timeline in JupyterLab", "dim")
