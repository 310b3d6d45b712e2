"""The runs of a workspace as one table: what was asked and answered, how it ended, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.state import Data, Json
from workbench.views.edits import fork_name
from workbench.views.labels import Labels, labels_for
from workbench.views.markup import Picture, draw
from workbench.views.render import FrameList

PAGE = 20
"""Runs of one page."""
FACTS = ("seconds", "calls", "cited", "model", "tokens", "money", "needs", "score")
SORTS = {"title": "question_asked", "status": "status", "kb": "runs_kb", "created_at": "when"}
"""Columns of every run, with their labels."""
_LABELS = {"tokens": "metric_tokens", "money": "runs_cost"}
_FORMATS = {"money": ".4f", "score": ".0%"}


def runs_table(
    rows: Sequence[Data], labels: Labels, costs: Mapping[str, Data], **about: Any
) -> Picture:
    """Return one page of the table.

    Args:
        rows: of ``wb.runs.lines``, those of this page.
        labels: the words.
        costs: of ``family.details``, by run.
        about: ``total``, how many runs there are on all pages; the ``page``, from 0; ``sort``, the column, and whether
            the largest value comes first; the ``marked`` runs, and the letters of those to be ``compared``: of
            a single one with its ``partner``, ``parent`` or ``open``; ``here``,
            the run on the bench; whether they are ``narrowed``;
            ``hidden``, how many marked ones are not among them.
    """
    facts = {
        fact: _LABELS.get(fact, f"runs_{fact}")
        for fact in FACTS
        if any(costs[row["run_id"]][fact] for row in rows)
    }
    about |= {"facts": facts, "costs": costs, "sorts": SORTS, "rows": rows, "most": PAGE}
    newest_year = max((row["created_at"] for row in rows), default="")[:4]
    drawn = {}
    for row in rows:
        name = fork_name(costs[row["run_id"]]["changes"], labels)
        begun = row["created_at"].replace("T", " ")
        when = begun[5:16] if begun.startswith(newest_year) else begun[:10]
        cells = {"name": name, "when": when, "figure": _figure}
        drawn[row["run_id"]] = draw("runs.row", labels, row=row, about=about, **cells)
    return Picture(draw("runs.table", labels, about=about), drawn)


def _figure(fact: str, value: float) -> str:
    """Return a figure of a run as text."""
    return f"{value:{_FORMATS.get(fact, ',')}}"


class RunLines(FrameList[Json]):
    """Lines of runs; a notebook shows the first page of them, each fork below its origin.

    Attributes:
        changes: returns those of the fork that a line is about.
    """

    changes: Callable[[Data], Data | None]

    def _repr_html_(self) -> str:
        labels = labels_for(self[0]["message"] if self else "")
        return str(draw("runs.lines", labels, rows=self[:PAGE], total=len(self), name=self.name))

    def name(self, row: Data, labels: Labels) -> str:
        """Return the name of a fork; empty for a run of its own."""
        return fork_name(self.changes(row), labels)
