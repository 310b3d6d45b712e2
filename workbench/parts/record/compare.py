"""Two runs of a recorded graph next to each other: where they part, and what differs at the end."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.parts.record.digests import digest, plain

if TYPE_CHECKING:
    import pandas

    from workbench.parts.record.run import GraphRun
    from workbench.records.tape import Effect


class Comparison:
    """What differs between two runs.

    Attributes:
        first, second: the runs.
    """

    def __init__(self, first: GraphRun, second: GraphRun):
        self.first, self.second = first, second

    @cached_property
    def _effects(self) -> tuple[dict[str, Effect], dict[str, Effect]]:
        """Return the last effect at each place; a node that asked has its question there until it was answered."""
        return tuple({effect.at: effect for effect in run.effects} for run in (self.first, self.second))  # type: ignore[return-value]

    @cached_property
    def differences(self) -> list[str]:
        """List the places where the results differ or only one run has an effect, in the order of the first."""
        first, second = self._effects
        return [
            at
            for at in dict.fromkeys([*first, *second])
            if at not in first or at not in second or digest(first[at].value) != digest(second[at].value)
        ]

    @property
    def divergence(self) -> str:
        """Return the first place where they differ; empty when they are equal."""
        return next(iter(self.differences), "")

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each place: what came of it in both, and how long it took."""
        import pandas

        first, second = self._effects
        differing = set(self.differences)
        return pandas.DataFrame(
            {
                "at": at,
                "equal": at not in differing,
                "first": plain(first[at].value) if at in first else None,
                "second": plain(second[at].value) if at in second else None,
                "first_seconds": first[at].seconds if at in first else None,
                "second_seconds": second[at].seconds if at in second else None,
                "second_source": second[at].source if at in second else "",
            }
            for at in dict.fromkeys([*first, *second])
        )

    def state(self) -> pandas.DataFrame:
        """Return a row for each field of the final states that differs."""
        import pandas

        first, second = (plain(run.state) for run in (self.first, self.second))
        if not isinstance(first, dict) or not isinstance(second, dict):
            first, second = {"": first}, {"": second}
        rows = [
            {"field": name, "first": first.get(name), "second": second.get(name)}
            for name in dict.fromkeys([*first, *second])
            if first.get(name) != second.get(name)
        ]
        return pandas.DataFrame(rows, columns=["field", "first", "second"])

    def cost(self) -> pandas.DataFrame:
        """Return for each run: effects, how many it executed itself, seconds and tokens of those."""
        import pandas

        rows = {
            run.run_id: {
                "effects": len(run.effects),
                "executed": len(run.executed),
                **run.cost[["seconds", "tokens"]].sum(),
            }
            for run in (self.first, self.second)
        }
        return pandas.DataFrame.from_dict(rows, orient="index")

    def __repr__(self) -> str:
        where = f"part at {self.divergence}" if self.differences else "are equal"
        return f"<Comparison: {self.first.run_id} and {self.second.run_id} {where}>"

    def _repr_html_(self) -> str:
        from markupsafe import escape

        head = f"<p>{escape(repr(self).strip('<>'))}</p>"
        tables = (self.cost(), self.state().map(_short), self.to_frame()[["at", "equal", "second_source"]])
        return head + "".join(table.to_html(escape=True) for table in tables)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
