"""Two runs of a recorded graph next to each other: where they part, and what differs at the end."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.parts.record.digests import digest, plain

if TYPE_CHECKING:
    import pandas

    from workbench.parts.record.effects import GraphEffect
    from workbench.parts.record.run import GraphRun


class Comparison:
    """What differs between two runs.

    Attributes:
        first, second: the runs.
    """

    def __init__(self, first: GraphRun, second: GraphRun):
        self.first, self.second = first, second

    @cached_property
    def _effects(self) -> tuple[dict[str, GraphEffect], dict[str, GraphEffect]]:
        """The last effect at each place: before an answer a node stops there, after it it gives its change."""
        return tuple({effect.at: effect for effect in run.effects} for run in (self.first, self.second))  # type: ignore[return-value]

    @cached_property
    def differences(self) -> list[str]:
        """The places at which something else came of it, or only one did something, in the order of the first."""
        one, two = self._effects
        return [
            at
            for at in dict.fromkeys([*one, *two])
            if at not in one or at not in two or digest(one[at].value) != digest(two[at].value)
        ]

    @property
    def divergence(self) -> str:
        """The first place at which they differ; empty when they are equal."""
        return next(iter(self.differences), "")

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each place: what came of it in both, and how long it took."""
        import pandas

        one, two = self._effects
        differing = set(self.differences)
        return pandas.DataFrame(
            {
                "at": at,
                "equal": at not in differing,
                "first": plain(one[at].value) if at in one else None,
                "second": plain(two[at].value) if at in two else None,
                "first_seconds": one[at].seconds if at in one else None,
                "second_seconds": two[at].seconds if at in two else None,
                "second_source": _source(two.get(at)),
            }
            for at in dict.fromkeys([*one, *two])
        )

    def state(self) -> pandas.DataFrame:
        """Return a row for each field of the final states that differs."""
        import pandas

        one, two = (plain(run.state) for run in (self.first, self.second))
        if not isinstance(one, dict) or not isinstance(two, dict):
            one, two = {"": one}, {"": two}
        rows = [
            {"field": name, "first": one.get(name), "second": two.get(name)}
            for name in dict.fromkeys([*one, *two])
            if one.get(name) != two.get(name)
        ]
        return pandas.DataFrame(rows, columns=["field", "first", "second"])

    def cost(self) -> pandas.DataFrame:
        """Return for each run: effects, how many it executed itself, seconds and tokens of those."""
        import pandas

        rows = {}
        for run in (self.first, self.second):
            effects = run.effects
            own = [effect for effect in effects if not effect.replayed and not effect.edited]
            rows[run.run_id] = {
                "effects": len(effects),
                "executed": len(own),
                "seconds": round(sum(effect.seconds for effect in own if effect.kind == "node"), 3),
                "tokens": sum(effect.tokens for effect in own),
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


def _source(effect: GraphEffect | None) -> str:
    if effect is None:
        return ""
    return "edited" if effect.edited else "tape" if effect.replayed else "executed"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
