"""What a conversation costs, turn by turn: its part of each prompt, beside sending everything that was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plotly.graph_objects import Scatter

from workbench.views.drawing import COLOURS, DIM
from workbench.views.figures.paper import axis, paper
from workbench.views.figures.picture import Picture
from workbench.views.labels import Labels

_PARTS = (("core", "person", 1), ("summary", "person", 1), ("episode", "person", 0), ("history", "run", 1))
"""Part, family of colour, and which of its three; as on the bench, where a summary is hatched."""


def tokens(rows: Sequence[Mapping[str, Any]], title: str, labels: Labels) -> Picture:
    """Tokens by part, stacked, a turn a place; and a line for sending all.

    Args:
        rows: ``turn``, ``core``, ``summary``, ``episode``, ``history`` and ``all``, in tokens.
        title: what stands above.
        labels: the words.
    """
    turns = [row["turn"] for row in rows]
    data = []
    for part, family, which in _PARTS:
        ink, fill = COLOURS[family][0], COLOURS[family][which]
        line, values = {"color": ink, "width": 1, "shape": "hv"}, [row[part] for row in rows]
        look: dict[str, Any] = {"line": line, "fillcolor": fill, "stackgroup": "prompt", "mode": "lines"}
        if part == "summary":
            look["fillpattern"] = {"shape": "/", "fgcolor": fill, "bgcolor": COLOURS[family][2], "size": 6}
        data.append(Scatter(x=turns, y=values, name=labels(f"mem_{part}"), **look))
    dotted = {"color": DIM, "width": 2, "dash": "dash"}
    data.append(Scatter(x=turns, y=[row["all"] for row in rows], name=labels("mem_all"), mode="lines", line=dotted))
    last = rows[-1] if rows else {"turn": 0, "all": 0}
    sent = sum(last.get(part, 0) for part, *_ in _PARTS)
    share = f"{1 - sent / last['all']:.0%}" if last["all"] else "0%"
    under = labels("mem_saved", turn=last["turn"], sent=f"{sent:,}", all=f"{last['all']:,}", share=share)
    layout = {"xaxis": axis(labels("mem_of_turn")), "yaxis": axis(labels("mem_tokens")), "hovermode": "x unified"}
    return Picture.of(rows, data, paper(title, 860, 380, under, below=90, left=70, **layout))
