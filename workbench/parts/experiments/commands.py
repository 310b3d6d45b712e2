"""``workbench experiment``: run, look at, steer, stop and report sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from workbench.cli.page import Page, json_object, paged
from workbench.parts.experiments.store import ACTS

if TYPE_CHECKING:
    from workbench.parts.experiments.experiment import Experiment

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def experiment() -> None:
    """Sweep settings over questions, or parameters over a notebook, and compare."""


@experiment.command()
@click.argument("spec", metavar="FILE", type=FILE)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes."
)
@click.option(
    "--dask", metavar="ADDRESS", default="", help="A Dask scheduler whose workers run cells too."
)
@click.option(
    "--check/--no-check",
    default=True,
    help="Run one cell in a hundred alone, and compare its bytes.",
)
@click.option("--forecast", is_flag=True, help="Only check the file, and say what would run.")
@click.option(
    "--notify",
    metavar="URL",
    multiple=True,
    help="Tell an address of Apprise of pauses, failures, the end.",
)
@paged
def run(page: Page, spec: Path, check: bool, forecast: bool, **options: Any) -> int:
    """Run the experiment that the YAML FILE describes, or what is missing of it."""
    with page.open(make=True) as wb:
        expected = wb.experiments.prepare(spec).forecast()
        if forecast:
            page.give(expected, expected["text"])
            return 0
        page.say(expected["text"], "dim")
        done = wb.experiments.run(spec, progress=page.progress, **options)
        differing = done.check() if check and not done.spec.notebook else []
        if page.as_json:
            page.result({**done.status(), "differing": differing})
        else:
            click.echo(_table(done))
        if differing:
            page.say(
                f"{len(differing)} cells differ from a run alone: {', '.join(differing)}", "red"
            )
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
@click.argument("act", type=click.Choice(ACTS))
@click.argument("configuration", type=int, required=False)
@click.option(
    "--set", "values", metavar="JSON", default="{}", help='Parameters, as {"top_k": 3}.'
)
@paged
def steer(page: Page, name: str, act: str, configuration: int | None, values: str) -> None:
    """Change an experiment while it runs: pause or resume it; drop, take back, clone or change a configuration by its
    number; add one.
    """
    with page.open() as wb:
        try:
            parameters = json_object(values, '{"top_k": 3}')
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--set") from None
        experiment = wb.experiments.get(name)
        experiment.steer(act, configuration, parameters)
        page.give(
            experiment.status(),
            *(f"{number}: {text}" for number, text in enumerate(experiment.labels)),
        )


@experiment.command()
@click.argument("name")
@click.option("--measure", default="", help="Another figure than the one that decides.")
@click.option(
    "--pauses", is_flag=True, help="Play each pause both ways too: what a person is worth there."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write one HTML page instead.")
@paged
def report(page: Page, name: str, measure: str, pauses: bool, out: Path | None) -> None:
    """Compare the configurations of an experiment: figures, differences with intervals, and what is decided."""
    with page.open() as wb:
        experiment = wb.experiments.get(name)
        played: Any = experiment.pauses() if pauses else []
        if out:
            experiment.report(out, played)
            page.say(f"Written: {out}", "green")
        elif page.as_json:
            # has no NaN
            page.result(json.loads(experiment.compare(measure).to_json(orient="records")))
        else:
            click.echo(_table(experiment, measure))
            if pauses:
                click.echo(
                    f"\n{played.to_frame().to_string(index=False)}\n\n{played.compared().to_string()}"
                )


@experiment.command()
@click.argument("name")
@paged
def stop(page: Page, name: str) -> None:
    """Stop an experiment after the cell that runs; `run` continues it."""
    with page.open() as wb:
        wb.experiments.get(name).stop()


def _table(done: Experiment, measure: str = "") -> str:
    table = done.to_frame() if done.spec.notebook else done.compare(measure)
    return table.dropna(axis=1, how="all").astype(object).fillna("").to_string()
