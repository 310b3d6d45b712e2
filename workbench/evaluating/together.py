"""Everything that is measured of a set, with every question asked once of each tool: ranks, reflection, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.context import Context, KnowledgeBase
from workbench.evaluating import calibration, reflection, retrieval
from workbench.evaluating.rankings import BASELINES, WITHOUT, changed, ranker
from workbench.evaluating.retrieval import CUTS, Measure, Told, rankers_of
from workbench.evaluating.rows import Row
from workbench.route import AGENT_TYPES


async def measure(
    rows: Sequence[Row],
    knowledge: KnowledgeBase,
    context: Context,
    *,
    tools: Sequence[str] = (),
    cuts: Sequence[int] = CUTS,
    gold: str = "gold",
    docs: Mapping[str, str] | None = None,
    told: Told | None = None,
) -> dict[str, Any]:
    """``{"retrieval", "reflection", "calibration"}``: the tables of these three modules.

    The fusion agent leads, and stands without each of its parts; then the tools and the baselines follow. Arguments are
    those of ``retrieval.measure``.
    """
    agent = AGENT_TYPES[0]
    rankers = rankers_of([agent, *tools], list(WITHOUT), context)
    between = {
        f"{agent}, {most} passes": ranker(agent, changed(context, {"max_iterations": most}))
        for most in range(2, context.settings.max_iterations)
    }
    of = Measure.of(rows, knowledge, gold, docs, told)
    done = {name: await of.ask(name, rank) for name, rank in {**rankers, **between}.items()}
    passes = [done[f"{agent} without reflect"], *(done[name] for name in between), done[agent]]
    own = {name: done[name] for name in rankers if " without " not in name and name not in BASELINES}
    return {
        "retrieval": retrieval.table(of, {name: done[name] for name in rankers}, cuts),
        "reflection": reflection.table(of, passes, agent, cuts),
        "calibration": calibration.table(of, own),
    }
