"""Optuna chooses the configurations, by the measure of those that have run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtra
from workbench.parts.experiments.cells import label
from workbench.parts.experiments.spec import Random

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.parts.experiments.experiment import Experiment


def search(experiment: Experiment, search: Random, work: Callable[[], None]) -> None:
    """Add configurations one by one until there are so many.

    A search that is resumed proposes the same ones again, of which nothing runs twice.

    Raises:
        MissingExtra: Optuna is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingExtra("Optuna", "optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    grid, enough = experiment.spec.grid, min(search.n, experiment.spec.size)

    def mean(trial: Any) -> float:
        variant = {
            name: grid[name][trial.suggest_categorical(name, range(len(grid[name])))]
            for name in grid
        }
        if variant not in experiment.variants:
            experiment.steer("add", values=variant)
            work()
        score = float(experiment.scores().mean()[label(variant)])
        # stopped, nothing was scored, or all are there
        if math.isnan(score) or len(experiment.variants) >= enough:
            trial.study.stop()
        return score

    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=search.seed)
    )
    study.enqueue_trial(dict.fromkeys(grid, 0))
    study.optimize(mean, n_trials=20 * search.n)  # most proposals may be there already
