"""``workbench experiment``: run, look at, stop and report sweeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.page import Page, paged

if TYPE_CHECKING:
    from workbench.parts.experiments.experiment import Experiment

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def experiment() -> None:
    """Sweep settings over questions, or parameters over a notebook, and compare."""


@experiment.command()
@click.argument("spec", metavar="FILE", type=FILE)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option("--check/--no-check", default=True, help="Run one cell in a hundred alone, and compare its bytes.")
@paged
def run(page: Page, spec: Path, workers: int, check: bool) -> int:
    """Run the experiment that the YAML FILE describes, or what is missing of it."""
    with page.open(make=True) as wb:
        done = wb.experiments.run(spec, workers=workers, progress=_progress(page))
        differing = done.check() if check and not done.spec.notebook else []
        click.echo(_table(done))
        if differing:
            page.say(f"{len(differing)} cells differ from a run alone: {', '.join(differing)}", "red")
        return 1 if differing or done.status()["failed"] else 0


@experiment.command()
@click.argument("name", default="")
@paged
def status(page: Page, name: str) -> None:
    """Say how far an experiment is; without a name, list them."""
    with page.open() as wb:
        experiments = [wb.experiments.get(name)] if name else wb.experiments
        rows = [experiment.status() for experiment in experiments]
        if page.as_json:
            page.result(rows)
        else:
            for row in rows:
                click.echo("  ".join(f"{key} {value}" for key, value in row.items()))


@experiment.command()
@click.argument("name")
@click.option("--measure", default="", help="Another figure than the one that decides.")
@click.option("--out", type=click.Path(path_type=Path), help="Write one HTML page instead.")
@paged
def report(page: Page, name: str, measure: str, out: Path | None) -> None:
    """Compare the configurations of an experiment: figures, differences with intervals, and what is decided."""
    with page.open() as wb:
        experiment = wb.experiments.get(name)
        if out:
            experiment.report(out)
            page.say(f"Written: {out}", "green")
        elif page.as_json:
            page.result(experiment.compare(measure).to_dict("records"))
        else:
            click.echo(_table(experiment, measure))


@experiment.command()
@click.argument("name")
@paged
def stop(page: Page, name: str) -> None:
    """Stop an experiment after the cell that runs; `run` continues it."""
    with page.open() as wb:
        wb.experiments.get(name).stop()


def _progress(page: Page) -> Callable[[str, int, int], None] | None:
    def tell(name: str, done: int, total: int) -> None:
        if done == total or done % 20 == 0:
            page.say(f"{name}: {done} of {total}", "dim")

    return tell if page.watched else None


def _table(done: Experiment, measure: str = "") -> str:
    if done.spec.notebook:
        return str(done.to_frame().to_string(index=False))
    return str(done.compare(measure).to_string(index=False))
