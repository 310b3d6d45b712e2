"""Optuna chooses the configurations, by the measure of those that have run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import MissingExtra
from workbench.parts.experiments.spec import Random

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.parts.experiments.experiment import Experiment


def search(experiment: Experiment, search: Random, work: Callable[[], None]) -> None:
    """Add configurations one by one until there are so many; what has run counts after an interruption too.

    Raises:
        MissingExtra: Optuna is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingExtra("Optuna", "optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    grid = experiment.spec.grid
    space = {name: optuna.distributions.CategoricalDistribution(range(len(grid[name]))) for name in grid}
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=search.seed))
    for variant, value in zip(experiment.variants, _means(experiment), strict=True):
        places = {name: grid[name].index(variant[name]) for name in grid}
        if value is not None:
            study.add_trial(optuna.trial.create_trial(params=places, distributions=space, value=value))
    for _ in range(20 * search.n):  # most proposals may be there already
        if len(experiment.variants) >= min(search.n, experiment.spec.size):
            break
        trial = study.ask(space)
        variant = {name: grid[name][trial.params[name]] for name in grid}
        if variant not in experiment.variants:
            experiment.steer("add", values=variant)
            work()
        value = _means(experiment)[experiment.variants.index(variant)]
        if value is None:  # stopped, or nothing of it could be scored
            break
        study.tell(trial, value)


def _means(experiment: Experiment) -> list[float | None]:
    scores = experiment.scores().values()
    return [sum(values.values()) / len(values) if values else None for values in scores]
