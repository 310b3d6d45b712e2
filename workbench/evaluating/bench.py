"""A workspace, measured: the doors of the tables, for the command line and for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from workbench.context import Context
from workbench.evaluating import calibration, kbqa, reflection, retrieval, together
from workbench.evaluating.rows import chosen, read_rows
from workbench.knowledge.library import Library
from workbench.loop import LoopThread


class Bench(Protocol):
    """Whose knowledge bases and tools are measured: a ``Workbench``."""

    knowledge: Library

    def ports(self) -> Context:
        """The ports that nodes see."""


class Door:
    """The door of one table: ``measure`` over a file of questions, with the models that took part.

    Args:
        measure: what makes the table of chosen rows.
    """

    def __init__(self, measure: Callable[..., Coroutine[Any, Any, dict[str, Any]]]):
        self._measure = measure

    def __call__(
        self,
        bench: Bench,
        kb: str,
        questions: Path,
        *,
        where: Mapping[str, str] | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """The table.

        Args:
            bench: an open workspace.
            kb: the knowledge base to search.
            questions: JSON Lines: ``id``, ``question``, the gold documents, and whatever else.
            where: only questions that hold these values.
            limit: only so many of them.
            **options: of what measures.
        """
        return _measured(bench, kb, questions, where, limit, self._measure, options)


eval_retrieval = Door(retrieval.measure)
eval_kbqa = Door(kbqa.measure)
eval_reflection = Door(reflection.measure)
eval_calibration = Door(calibration.measure)
eval_together = Door(together.measure)


def _measured(
    bench: Bench,
    kb: str,
    questions: Path,
    where: Mapping[str, str] | None,
    limit: int | None,
    measure: Callable[..., Coroutine[Any, Any, dict[str, Any]]],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    base, context = bench.knowledge.get(kb), bench.ports()
    rows: Sequence[dict[str, Any]] = chosen(read_rows(questions, "id", "question"), where or {}, limit)
    told = base.describe()
    models = {name: told[name] for name in ("embedding_model", "reranker")}
    models["language_model"] = context.settings.chat_model or "none"
    loop = LoopThread("evaluation")
    try:
        table = loop.call(measure(rows, base, context, **options))
    finally:
        loop.close()
    return {**table, "models": models}
