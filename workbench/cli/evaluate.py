"""``workbench eval``: how good answers and rankings are, on a table of questions, with a baseline beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any

import click

from workbench.cli.page import Page, Pair, Text, paged
from workbench.text import visible_json

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUT = click.Path(dir_okay=False, writable=True, path_type=Path)


class Cuts(Text):
    """``1,2,5,10`` from the command line."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers, smallest first."""
        try:
            found = sorted({int(part) for part in super().convert(value, param, ctx).split(",")})
        except ValueError:
            found = [0]
        if found[0] < 1:
            self.fail(f"{value!r} is no list of whole numbers from 1 on. Write it as 1,2,5,10.", param, ctx)
        return tuple(found)


@click.group("eval")
def evaluate() -> None:
    """Measure: a table of questions, with a baseline beside it."""


def printed(page: Page, table: dict[str, Any], text: str) -> None:
    """Print a table, as JSON or as it is."""
    if page.as_json:
        page.result(table)
    else:
        click.echo(text)


def _options(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one decorator."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


_some = _options(
    click.option("--where", type=Pair(), multiple=True, help="Only questions that hold this value."),
    click.option("--limit", type=click.IntRange(min=1), help="Only so many questions, evenly drawn."),
)
_set = _options(
    click.option("--kb", type=Text(), required=True, help="The knowledge base to search."),
    click.option("--questions", "file", type=FILE, required=True, help="JSON Lines: id, question, and the rest."),
    _some,
)


@evaluate.command()
@_set
@click.option("--tool", "tools", type=Text(), multiple=True, help="What is measured; the first one leads.")
@click.option(
    "--without",
    "parts",
    type=Text(),
    multiple=True,
    help="Each agent once more without this part: plan, reflect or merge.",
)
@click.option("--k", "cuts", type=Cuts(), default="1,2,5,10", show_default=True, help="Where rankings are cut.")
@click.option("--gold", type=Text(), default="gold", show_default=True, help="The field with the gold documents.")
@click.option(
    "--docs", type=Pair(), multiple=True, help="Only documents that hold this value; conv=conv: the question's."
)
@click.option("--plot", type=OUT, help="Draw how far the scores can be believed, into this HTML file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of the diagram.")
@paged
def retrieval(page: Page, kb: str, file: Path, plot: Path | None, lang: str, **options: Any) -> None:
    """How well tools rank documents: recall, all-found, MRR and nDCG in percent, beside BM25, dense and their fusion.

    A tool is any of `workbench`'s or your own, or an agent (fusion_agent: the whole retrieval graph). It gets the words
    of a question; a question with `conv` is asked within the documents of that `conv`. Where its scores are
    probabilities, their calibration error is printed too.
    """
    from workbench.evaluating.retrieval import bins_of, eval_retrieval, table_text

    table = _measured(page, eval_retrieval, kb, file, options, partial(table_text, cuts=options["cuts"]))
    if plot:
        from workbench.views.figures import reliability

        reliability(bins_of(table), language=lang).write_html(plot)


@evaluate.command()
@_set
@click.option("--judge", "judges", type=Text(), multiple=True, help="Grades the answers: MODEL, MODEL@PROMPT.toml.")
@click.option("--pair-judge", "pair_judges", type=Text(), multiple=True, help="Says whose answers are better.")
@click.option("--label", type=click.IntRange(min=0), default=0, help="Put the answers to so many before a person.")
@paged
def answers(page: Page, kb: str, file: Path, **options: Any) -> None:
    """How good answers are: against the gold ones, against what they cite, and by judges; with and without models.

    A question has an `answer` and `gold` documents, or what it must say and cite (`must`, `list`, `number`), or
    `refuse`. Beside them stand the best passage, the writer's model without evidence, where there is one, and the
    writer over the gold documents. Up to five judges grade, up to five compare, each a model, or a model with a prompt
    of its own. What people say of a sample (--label, `wb.inbox()`) corrects them.
    """
    from workbench.evaluating.answers import eval_answers, table_text

    _measured(page, eval_answers, kb, file, options, table_text)


@evaluate.command()
@click.argument("file", type=FILE, required=False)
@click.option("--all", "every", is_flag=True, help="Print those that have a label too.")
@click.option("--user", type=Text(), default="default", show_default=True, help="Who says so.")
@click.option("--table", type=FILE, help="Print this table of `eval answers --json`, corrected by the labels.")
@paged
def labels(page: Page, file: Path | None, every: bool, user: str, table: Path | None) -> None:
    """Print the answers that wait for a person's label, as JSON Lines; or take such a FILE, filled in."""
    from workbench.evaluating.answers import read_table, relabelled, table_text
    from workbench.evaluating.labels import listed, take

    with page.open() as wb:
        taken = take(wb, file, user) if file else 0
        if table:
            corrected = relabelled(read_table(table), wb.labels.list())
            printed(page, corrected, table_text(corrected))
        elif file:
            waiting = wb.labels.waiting()
            page.give({"taken": taken, "waiting": waiting}, f"{taken} labels taken; {waiting} answers wait for one")
        elif page.as_json:
            page.result({"labels": wb.labels.list(not every)})
        else:
            for row in listed(wb, not every):
                click.echo(visible_json(json.dumps(row, ensure_ascii=False)))


@evaluate.command()
@paged
def feedback(page: Page) -> None:
    """Count what people thought of answers, by the kind of answer and the agent that searched."""
    with page.open() as wb:
        rows = wb.feedback().ratings()
    told = [
        f"{row['answer_kind'] or '-':<12} {row['agent_type'] or '-':<20} {row['good']:>5} {row['bad']:>5}"
        for row in rows
    ]
    page.give({"ratings": rows}, f"{'answer':<12} {'agent':<20} {'good':>5} {'bad':>5}", *told)


@evaluate.command()
@click.option("--conversations", type=FILE, required=True, help="JSON Lines: turns, or sessions of `Name: message`.")
@click.option("--questions", "file", type=FILE, required=True, help="JSON Lines: id, question, gold, and perhaps conv.")
@click.option("--k", "cuts", type=Cuts(), default="5,10,25", show_default=True, help="Where rankings are cut.")
@click.option(
    "--errata", type=FILE, help="Questions whose key is wrong, an id a line: all is counted without them too."
)
@_some
@paged
def memory(page: Page, conversations: Path, file: Path, where: Any, **options: Any) -> None:
    """How well earlier turns are recalled: by the last ones, a summary, BM25, vectors, both fused, and by Workbench.

    By turn and by session; only the words of a question and its `conv` are read when it is asked. Needs no workspace.
    """
    from workbench.evaluating.memory import eval_memory, table_text
    from workbench.settings import Settings

    with _progress(page) as progress:
        table = eval_memory(Settings.load(), conversations, file, where=dict(where), progress=progress, **options)
    printed(page, table, table_text(table, options["cuts"]))


def _measured(
    page: Page,
    measure: Callable[..., dict[str, Any]],
    kb: str,
    file: Path,
    options: dict[str, Any],
    text: Callable[[Any], str],
) -> Any:
    """Measure, and print the table."""
    pairs: dict[str, dict[str, str]] = {name: dict(options[name]) for name in ("where", "docs") if name in options}
    with page.open() as wb, _progress(page) as progress:
        table = measure(wb, kb, file, **{**options, **pairs, "progress": progress})
    printed(page, table, text(table))
    return table


@contextmanager
def _progress(page: Page, every: int = 50) -> Iterator[Callable[[str, int, int], None] | None]:
    """Print a line for every fiftieth question, where a person watches."""

    def tell(tool: str, done: int, total: int) -> None:
        if done == total or done % every == 0:
            page.say(f"{tool}: {done} of {total}", "dim")

    yield tell if page.watched else None
