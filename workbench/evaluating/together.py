"""Everything that is measured of a set, with every question asked once of each tool: ranks, reflection, calibration.

What one pass was enough for is not asked again with one pass at most: equal input gives an equal run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.context import Context, KnowledgeBase
from workbench.evaluating import calibration, reflection, retrieval
from workbench.evaluating.rankings import BASELINES, WITHOUT, Ranker, changed, ranker
from workbench.evaluating.retrieval import CUTS, Measure, Measured, Told, rankers_of
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
    agent, most = AGENT_TYPES[0], context.settings.max_iterations
    rankers = rankers_of([agent, *tools], list(WITHOUT), context)
    of = Measure.of(rows, knowledge, gold, docs, told)
    whole = await of.ask(agent, rankers[agent])
    done = {agent: whole}
    for name, rank in rankers.items():
        if name == f"{agent} without reflect":
            done[name] = await _fewer(of, name, rank, whole, 1)
        elif name != agent:
            done[name] = await of.ask(name, rank)
    between = [
        await _fewer(of, f"{agent}, {n} passes", ranker(agent, changed(context, {"max_iterations": n})), whole, n)
        for n in range(2, most)
    ]
    passes = [done[f"{agent} without reflect"], *between, whole]
    own = {name: done[name] for name in rankers if " without " not in name and name not in BASELINES}
    return {
        "retrieval": retrieval.table(of, done, cuts),
        "reflection": reflection.table(of, passes[:most], agent, cuts),
        "calibration": calibration.table(of, own),
    }


async def _fewer(of: Measure, name: str, rank: Ranker, whole: Measured, passes: int) -> Measured:
    """What the agent does with so many passes at most: where it needed no more it has done that already."""
    longer = {i for i, found in whole.found.items() if found.passes > passes}
    again = await replace(of, asked=[one for one in of.asked if one.id in longer]).ask(name, rank)
    kept = [told for told in whole.failures if not any(told.startswith(f"{i}: ") for i in longer)]
    return Measured({**whole.found, **again.found}, {**whole.seconds, **again.seconds}, [*kept, *again.failures])
