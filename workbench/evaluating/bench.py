"""A workspace measured on a file of questions: what the command line and a notebook call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from workbench.evaluating import calibration, reflection, retrieval
from workbench.evaluating.asking import Measured, Told
from workbench.evaluating.rankings import BASELINES, WITHOUT, Found, Ranker, Row, changed, chosen, ranker, read_rows
from workbench.evaluating.retrieval import CUTS, Measure, rankers_of
from workbench.graphs.route import AGENT_TYPES
from workbench.knowledge.library import Library
from workbench.ports import Context, KnowledgeBase
from workbench.runs.recording import Recording


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


async def _fewer(of: Measure, name: str, rank: Ranker, whole: Measured[Found], passes: int) -> Measured[Found]:
    """What the agent does with so many passes at most: where it needed no more it has done that already."""
    longer = {i for i, found in whole.found.items() if found.passes > passes}
    again = await replace(of, asked=[one for one in of.asked if one.id in longer]).ask(name, rank)
    kept = [told for told in whole.failures if not any(told.startswith(f"{i}: ") for i in longer)]
    return Measured({**whole.found, **again.found}, {**whole.seconds, **again.seconds}, [*kept, *again.failures])


class Bench(Protocol):
    """Whose knowledge bases and tools are measured: a ``Workbench``."""

    knowledge: Library

    def ports(self) -> Context:
        """The ports that nodes see."""

    def call(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """Wait for what is measured."""

    def runs(self) -> Sequence[Recording]:
        """The runs of the workspace, newest first."""


def _measured(
    measuring: Callable[..., Coroutine[Any, Any, dict[str, Any]]],
    bench: Bench,
    kb: str,
    questions: Path,
    *,
    where: Mapping[str, str] | None = None,
    limit: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The table that ``measuring`` makes, with the models that took part.

    Args:
        measuring: one of the functions ``measure``.
        bench: an open workspace.
        kb: the knowledge base to search.
        questions: JSON Lines: ``id``, ``question``, the gold documents, and whatever else.
        where: only questions that hold these values.
        limit: only so many of them.
        **options: of what measures.
    """
    base, context = bench.knowledge.get(kb), bench.ports()
    rows = chosen(read_rows(questions, "id", "question"), where or {}, limit)
    told = base.describe()
    models = {name: told[name] for name in ("embedding_model", "reranker")}
    names = sorted({context.settings.model_of(role) for role in context.models})
    models["language_model"] = ", ".join(names) or "none"
    table = bench.call(measuring(rows, base, context, **options))
    return {**table, "models": models}


eval_retrieval = partial(_measured, retrieval.measure)


def eval_reflection(bench: Bench, kb: str, questions: Path, *, decided: bool = False, **options: Any) -> dict[str, Any]:
    """Whether reflection pays (``evaluating.reflection``); ``decided``: what people's decisions came to as well."""
    people = reflection.decided_by_people(bench.runs(), kb) if decided else None
    return _measured(reflection.measure, bench, kb, questions, decided=people, **options)


eval_calibration = partial(_measured, calibration.measure)
eval_together = partial(_measured, measure)
