"""Optuna chooses the configurations, by the measure of those that have run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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
    space: Any = {name: optuna.distributions.CategoricalDistribution(range(len(grid[name]))) for name in grid}
    for seed in range(search.seed, search.seed + 20 * search.n):  # most proposals may be there already
        variants, means = experiment.variants, experiment.scores().mean()
        if len(variants) >= min(search.n, experiment.spec.size) or math.isnan(means.iloc[-1]):  # stopped, or unscored
            break
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        for variant, mean in zip(variants, means, strict=True):
            places = {name: grid[name].index(variant[name]) for name in grid}
            if not math.isnan(mean):
                study.add_trial(optuna.trial.create_trial(params=places, distributions=space, value=mean))
        variant = {name: grid[name][place] for name, place in study.ask(space).params.items()}
        if variant not in variants:
            experiment.steer("add", values=variant)
            work()
