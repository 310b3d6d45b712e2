"""What models cost: tokens as their servers count them, and money by a table of prices.

``WORKBENCH_PRICES`` names a TOML file, dollars (or whatever) for a million tokens::

    ["openai:gpt-5-mini"]
    input = 0.25
    cached = 0.025
    output = 2.0
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from workbench.errors import SettingsError
from workbench.records.tape import Effect

Prices = Mapping[str, Mapping[str, float]]
_KINDS = ("input", "output", "cached")


class Spent(NamedTuple):
    """Tokens that models read, those of them that a server had cached, and that they wrote; and what that cost.

    ``money`` counts the calls of models that have a price; ``unpriced`` is how many have none.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    money: float = 0.0
    calls: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.input + self.output


def spent(calls: Iterable[Effect]) -> Spent:
    """Return what these calls of models took; of one whose server counts nothing, about as much as its text."""
    total = Spent()
    for call in calls:
        reply = call.value if isinstance(call.value, Mapping) else {}
        usage = reply.get("usage") or {"input": call.tokens, "output": 0, "cached": 0}
        money = reply.get("money")
        total = Spent(
            total.input + usage["input"],
            total.cached + usage["cached"],
            total.output + usage["output"],
            round(total.money + (money or 0.0), 9),
            total.calls + 1,
            total.unpriced + (money is None),
        )
    return total


def price(prices: Prices, model: str, usage: Mapping[str, int] | None) -> float | None:
    """Return what a call cost; None where the model has no price or its server counts nothing.

    >>> price({"openai:m": {"input": 1.0, "output": 4.0}}, "openai:m", {"input": 500_000, "output": 1_000, "cached": 0})
    0.504
    """
    rates = prices.get(model.partition("?")[0])
    if usage is None or rates is None:
        return None
    read = (usage["input"] - usage["cached"]) * rates["input"] + usage["cached"] * rates.get(
        "cached", rates["input"]
    )
    return round((read + usage["output"] * rates["output"]) / 1e6, 9)


def read_prices(path: str) -> Prices:
    """Return the table of a file; nothing for "".

    Raises:
        SettingsError: it cannot be read, or a price is not a number of 0 or more.
    """
    if not path:
        return {}
    try:
        table = tomllib.loads(Path(path).expanduser().read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"WORKBENCH_PRICES is {path!r}, which cannot be read: {error}."
        ) from None
    for model, rates in table.items():
        right = isinstance(rates, dict) and {"input", "output"} <= set(rates) <= set(_KINDS)
        if not right or not all(
            type(p) in (int, float) and math.isfinite(p) and p >= 0 for p in rates.values()
        ):
            raise SettingsError(
                f"WORKBENCH_PRICES: {model!r} is {rates!r}. Give `input` and `output`, and `cached` if it differs: "
                "numbers for a million tokens."
            )
    return table
