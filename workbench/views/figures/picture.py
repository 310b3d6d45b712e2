"""A plotly figure that carries its data, and can be had on dark ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from plotly.graph_objects import Figure

from workbench.views.figures.paper import IN_THE_DARK

if TYPE_CHECKING:
    import pandas


class Picture(Figure):
    """A figure like any other of plotly's, static, with the rows that it was drawn from."""

    _rows: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], data: Iterable[Any], layout: Mapping[str, Any]) -> Picture:
        """The figure of these traces and this layout, drawn from these rows."""
        picture = cls(data=list(data), layout=dict(layout))
        picture._rows = tuple(rows)
        return picture

    def to_frame(self) -> pandas.DataFrame:
        """What is drawn, as a table."""
        import pandas

        return pandas.DataFrame(list(self._rows))

    def dark(self) -> Picture:
        """The same on dark ground. Nothing that is saved can know a notebook's theme, so nobody else can choose."""
        drawn = _recoloured(self.to_plotly_json())
        return Picture.of(self._rows, drawn["data"], drawn["layout"])

    def __reduce__(self) -> Any:
        """A copy carries the data too."""
        return (*super().__reduce__()[:2], {"_rows": self._rows})


def _recoloured(value: Any, colour: bool = False) -> Any:
    """The same figure with each of our colours as it is in the dark; what people wrote is left alone."""
    if isinstance(value, dict):
        return {key: _recoloured(inner, key.endswith("color")) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_recoloured(inner, colour) for inner in value]
    return IN_THE_DARK.get(value, value) if colour and isinstance(value, str) else value
