"""Make one text of many by calls of a model that make one of a few: a strategy says which few go into a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from workbench.records.tape import estimated_tokens

Reduce = Callable[[Sequence[str]], Awaitable[str]]
"""One call of a model: of some texts one."""


async def reduced(texts: Sequence[str], reduce: Reduce, strategy: str, max_tokens: int) -> str:
    """Return one text of all.

    Args:
        texts: at least one.
        reduce: a call; those of a round are made at the same time.
        strategy: ``collapse`` gives a call as many texts as fit, ``refine`` a running text and the next, ``tree`` two.
        max_tokens: about how much a call is given.
    """
    while True:
        groups = STRATEGIES[strategy](texts, max_tokens)
        if len(groups) == 1:
            return await reduce(groups[0])
        texts = await asyncio.gather(*(_joined(group, reduce) for group in groups))


async def _joined(group: Sequence[str], reduce: Reduce) -> str:
    return await reduce(group) if len(group) > 1 else group[0]


def _fitting(texts: Sequence[str], max_tokens: int) -> list[list[str]]:
    """Return the texts in groups of about so many tokens, at least two in each but the last.

    >>> [len(group) for group in _fitting(["a" * 40] * 5, 30)], [len(group) for group in _fitting(["a" * 400] * 3, 30)]
    ([3, 2], [2, 1])
    """
    groups: list[list[str]] = [[]]
    for text in texts:
        size = sum(map(estimated_tokens, [*groups[-1], text]))
        if len(groups[-1]) > 1 and size > max_tokens:
            groups.append([])
        groups[-1].append(text)
    return groups


def _first_two(texts: Sequence[str], _: int) -> list[list[str]]:
    return [[*texts[:2]], *([text] for text in texts[2:])]


def _pairs(texts: Sequence[str], _: int) -> list[list[str]]:
    return [[*texts[n : n + 2]] for n in range(0, len(texts), 2)]


STRATEGIES = {"collapse": _fitting, "refine": _first_two, "tree": _pairs}
