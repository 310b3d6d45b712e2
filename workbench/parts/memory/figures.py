"""What a conversation costs, turn by turn: its part of each prompt, next to sending everything that was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plotly.graph_objects import Scatter

from workbench.state import Data
from workbench.views.drawing import COLOURS, DIM
from workbench.views.figures.picture import Picture, axis, picture
from workbench.views.labels import Labels

_COLOURS = {"core": COLOURS["person"][1], "summary": COLOURS["done"][1], "episode": COLOURS["person"][0]}
_COLOURS["history"] = COLOURS["run"][1]


def tokens(rows: Sequence[Data], title: str, labels: Labels) -> Picture:
    """Tokens by part, stacked, a turn a place; and a line for sending all.

    Args:
        rows: ``turn``, ``core``, ``summary``, ``episode``, ``history`` and ``all``, in tokens.
        title: what stands above.
        labels: the words.
    """
    turns = [row["turn"] for row in rows]

    def trace(part: str, line: Data, **look: Any) -> Scatter:
        return Scatter(
            x=turns, y=[row[part] for row in rows], name=labels(f"mem_{part}"), mode="lines", line=line, **look
        )

    traces = [
        trace(part, {"color": colour, "width": 1, "shape": "hv"}, fillcolor=colour, stackgroup="prompt")
        for part, colour in _COLOURS.items()
    ]
    traces.append(trace("all", {"color": DIM, "width": 2, "dash": "dash"}))
    last = rows[-1] if rows else {"turn": 0, "all": 0}
    sent = sum(last.get(part, 0) for part in _COLOURS)
    share = f"{1 - sent / last['all']:.0%}" if last["all"] else "0%"
    under = labels("mem_saved", turn=last["turn"], sent=f"{sent:,}", all=f"{last['all']:,}", share=share)
    axes = {"xaxis": axis(labels("mem_of_turn")), "yaxis": axis(labels("mem_tokens"))}
    return picture(rows, traces, title, under, 400, hovermode="x unified", **axes)
