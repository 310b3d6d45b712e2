"""Make one text of many, one call of a model at a time: ``collapse``, ``refine``, ``tree``, or a registered function.

    async def halves(texts, reduce, max_tokens):
        return await reduce([await reduce(texts[::2]), await reduce(texts[1::2] or texts[:1])])

    register_reduce("halves", halves)  # then WORKBENCH_REDUCE_STRATEGY=halves

``await reduce(texts)`` is one call; ``max_tokens`` is about how much one call should be given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from workbench.errors import SettingsError, shown
from workbench.records.tape import estimated_tokens

Reduce = Callable[[Sequence[str]], Awaitable[str]]
Strategy = Callable[[Sequence[str], Reduce, int], Awaitable[str]]


async def collapse(texts: Sequence[str], reduce: Reduce, max_tokens: int) -> str:
    """Reduce as many texts at once as fit, at least two, until one is left."""
    while len(groups := fitting(texts, max_tokens)) > 1:
        texts = await _each(groups, reduce)
    return await reduce(groups[0])


async def refine(texts: Sequence[str], reduce: Reduce, max_tokens: int) -> str:
    """Work each text into a running one."""
    running = texts[0] if len(texts) > 1 else await reduce(texts)
    for text in texts[1:]:
        running = await reduce([running, text])
    return running


async def tree(texts: Sequence[str], reduce: Reduce, max_tokens: int) -> str:
    """Reduce pairs, all of a level at the same time."""
    while len(texts) > 2:
        texts = await _each([texts[n : n + 2] for n in range(0, len(texts), 2)], reduce)
    return await reduce(texts)


REDUCE: dict[str, Strategy] = {"collapse": collapse, "refine": refine, "tree": tree}


def register_reduce(name: str, function: Strategy) -> None:
    """Make a strategy known to ``reduce_strategy``, or replace it."""
    REDUCE[name] = function


def reduce_of(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises:
        SettingsError: there is none.
    """
    if name not in REDUCE:
        raise SettingsError(f"Unknown reduce strategy {shown(name)}. Known: {', '.join(sorted(REDUCE))}.")
    return REDUCE[name]


def fitting(texts: Sequence[str], max_tokens: int) -> list[list[str]]:
    """Return the texts in groups of about so many tokens, at least two in each but the last.

    >>> [len(group) for group in fitting(["a" * 40] * 5, 30)], [len(group) for group in fitting(["a" * 400] * 3, 30)]
    ([3, 2], [2, 1])
    """
    groups: list[list[str]] = [[]]
    for text in texts:
        size = sum(map(estimated_tokens, [*groups[-1], text]))
        if len(groups[-1]) > 1 and size > max_tokens:
            groups.append([])
        groups[-1].append(text)
    return groups


async def _each(groups: Sequence[Sequence[str]], reduce: Reduce) -> list[str]:
    async def single(group: Sequence[str]) -> str:
        return await reduce(group) if len(group) > 1 else group[0]

    return list(await asyncio.gather(*map(single, groups)))
