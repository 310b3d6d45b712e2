"""A chat model as a reranker: the grader ranks the passages that answer the question, in one call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

from pydantic import Field

from workbench.errors import ModelError, Unusable
from workbench.graphs.roles import ModelForm, ask_model, numbered
from workbench.ports import Context

_PASSAGES, _CHARACTERS = 50, 12_000
"""Passages of one call, and characters of all of them."""


class Order(ModelForm):
    """What the grader fills in: the numbers of the passages that meet the need, the best first."""

    passages: list[int] = Field(
        max_length=_PASSAGES, description="Numbers of passages that meet the need, the best first"
    )


def grader(
    ports: Callable[[], Context], submit: Callable[[Coroutine[Any, Any, Any]], Future[Any]]
) -> Callable[[str, Sequence[str]], list[float]]:
    """Return a reranker for a thread that may block; ``submit`` begins work on the loop of the model's connections."""
    return lambda query, texts: submit(graded(ports(), query, texts)).result() if texts else []


async def graded(context: Context, query: str, texts: Sequence[str]) -> list[float]:
    """Return a score for each text: the share of the texts ranked behind it; the others keep their order.

    Raises:
        ModelError: there is no model for the role.
        Unusable: it failed, or said what cannot be used.
    """
    if "grader" not in context.models:
        raise ModelError("The reranker is 'grader', and there is no model for it. Set WORKBENCH_GRADER_MODEL.")
    count = len(texts)

    def problems(form: Order) -> list[str]:
        wrong = [n for n in form.passages if not 1 <= n <= count]
        wrong += [n for n in dict.fromkeys(form.passages) if form.passages.count(n) > 1]
        return [f"passage [{n}]: each of 1 to {count} at most once." for n in wrong[:5]]

    each = _CHARACTERS // max(1, count)
    listed = "\n\n".join(f"[{n}] {' '.join(text.split())[:each]}" for n, text in enumerate(texts, 1))
    slots = {"question": query, "needs": numbered([query]), "evidence": listed}
    reply = await ask_model(context, "grader", Order, slots, question=query, at="rerank", problems=problems, quiet=True)
    if reply.form is None:
        raise Unusable(f"The grader gave no order, so the passages keep theirs: {reply.refused[-1]}")
    first = [n - 1 for n in reply.form.passages]
    order = [*first, *(n for n in range(count) if n not in first)]
    return [round(1 - order.index(n) / count, 6) for n in range(count)]
