"""How many texts become one, a model's call at a time: strategies by name, and those of one's own.

A strategy is ``async (texts, reduce, max_tokens) -> text``: ``texts`` is what was made of each batch of evidence, at
least one; ``await reduce(some)`` is one call that makes one text of some, in the order in which they are given; and
``max_tokens`` is about how much one call should be given. One of one's own, in two lines::

    async def halves(texts, reduce, max_tokens):
        return await reduce([await reduce(texts[::2]), await reduce(texts[1::2] or texts[:1])])

    register_reduce("halves", halves)  # then WORKBENCH_REDUCE_STRATEGY=halves
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from workbench.errors import SettingsError, shown
from workbench.records.tape import estimated_tokens

Reduce = Callable[[Sequence[str]], Awaitable[str]]
"""One call: of some texts one."""
Strategy = Callable[[Sequence[str], Reduce, int], Awaitable[str]]


async def collapse(texts: Sequence[str], reduce: Reduce, max_tokens: int) -> str:
    """All at once where they fit; else as many at once as fit, at least two, until one is left."""
    while len(groups := list(fitting(texts, max_tokens))) > 1:
        texts = await _each(groups, reduce)
    return await reduce(groups[0])


async def refine(texts: Sequence[str], reduce: Reduce, max_tokens: int) -> str:
    """One running text, into which the next are worked one by one: the slowest, and the one that forgets least."""
    running = texts[0] if len(texts) > 1 else await reduce(texts)
    for text in texts[1:]:
        running = await reduce([running, text])
    return running


async def tree(texts: Sequence[str], reduce: Reduce, max_tokens: int) -> str:
    """Pairs, then pairs of what came of them, and so on; the pairs of a level at the same time."""
    while len(texts) > 2:
        texts = await _each([texts[n : n + 2] for n in range(0, len(texts), 2)], reduce)
    return await reduce(texts)


REDUCE: dict[str, Strategy] = {"collapse": collapse, "refine": refine, "tree": tree}
"""The strategies by name."""


def register_reduce(name: str, function: Strategy) -> None:
    """A strategy of one's own, for ``reduce_strategy``; one of the same name is replaced.

    Args:
        name: how the setting calls it.
        function: ``async (texts, reduce, max_tokens) -> text``, as above.

    Raises:
        SettingsError: there is no name, or nothing that can be called.
    """
    if not isinstance(name, str) or not name.strip() or not callable(function):
        raise SettingsError(
            f"A reduce strategy was given as {shown(name)}, {shown(function)}. "
            "Give a name and `async def f(texts, reduce, max_tokens)` that returns a text."
        )
    REDUCE[name] = function


def reduce_of(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        SettingsError: there is none.
    """
    if name not in REDUCE:
        known = ", ".join(sorted(REDUCE))
        raise SettingsError(
            f"Unknown reduce strategy {shown(name)} (WORKBENCH_REDUCE_STRATEGY). Known: {known}; "
            "give one of your own with register_reduce(NAME, FUNCTION)."
        )
    return REDUCE[name]


def fitting(texts: Sequence[str], max_tokens: int) -> Iterator[list[str]]:
    """The texts in groups of about so many tokens, at least two in each but the last.

    >>> [len(group) for group in fitting(["a" * 40] * 5, 30)], [len(group) for group in fitting(["a" * 400] * 3, 30)]
    ([3, 2], [2, 1])
    """
    group, size = list[str](), 0
    for text in texts:
        tokens = estimated_tokens(text)
        if len(group) > 1 and size + tokens > max_tokens:
            yield group
            group, size = [], 0
        group.append(text)
        size += tokens
    yield group


async def _each(groups: Sequence[Sequence[str]], reduce: Reduce) -> list[str]:
    """Each group made one text, all at the same time; one text alone stays as it is."""

    async def one(group: Sequence[str]) -> str:
        return await reduce(group) if len(group) > 1 else group[0]

    return list(await asyncio.gather(*map(one, groups)))
