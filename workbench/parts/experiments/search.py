"""Optuna chooses the configurations, by the measure of those that have run."""

from __future__ import annotations

from statistics import fmean
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
    for seed in range(search.seed, search.seed + 20 * search.n):  # most proposals may be there already
        variants, scores = experiment.variants, [*experiment.scores().values()]
        if len(variants) >= min(search.n, experiment.spec.size) or not scores[-1]:  # stopped, or nothing was scored
            break
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        for variant, values in zip(variants, scores, strict=True):
            places = {name: grid[name].index(variant[name]) for name in grid}
            if values:
                mean = fmean(values.values())
                study.add_trial(optuna.trial.create_trial(params=places, distributions=space, value=mean))
        variant = {name: grid[name][place] for name, place in study.ask(space).params.items()}
        if variant not in variants:
            experiment.steer("add", values=variant)
            work()
