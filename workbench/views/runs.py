"""The runs of a workspace as one table: what was asked and answered, how it ended, and what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.state import Data
from workbench.views.comparison import LETTERS
from workbench.views.labels import Labels
from workbench.views.labels.sentences import origin_text
from workbench.views.markup import Picture, draw

PAGE = 20
"""Runs of one page."""
_FACTS = ("model", "tokens", "money", "score")
SORTS = {"title": "question_asked", "status": "status", "kb": "runs_kb", "created_at": "when"}
"""Columns by which the table can be sorted, with their labels."""


def runs_table(
    rows: Sequence[Data],
    labels: Labels,
    *,
    total: int,
    page: int = 0,
    sort: tuple[str, bool] = ("created_at", True),
    marked: Sequence[str] = (),
    here: str = "",
    costs: Mapping[str, Data],
) -> Picture:
    """Return one page of the table.

    Args:
        rows: of ``wb.runs.lines``, those of this page.
        labels: the words.
        total: how many there are on all pages.
        page: the number of the page, from 0.
        sort: the column, and whether the largest value comes first.
        marked: the runs that are chosen, in order.
        here: the run on the bench.
        costs: of ``wb.runs.costs``, by run.
    """
    letters = dict(zip(marked, LETTERS, strict=False))
    facts = [fact for fact in _FACTS if any(costs[row["run_id"]][fact] for row in rows)]
    drawn = {}
    for row in rows:
        run_id = row["run_id"]
        mark = letters.get(run_id, "✓") if run_id in marked else ""
        drawn[run_id] = draw(
            "runs.row",
            labels,
            row=row,
            mark=mark,
            here=run_id == here,
            cost=costs[run_id],
            twin=origin_text(row, labels),
            facts=facts,
        )
    frame = draw(
        "runs.table",
        labels,
        marked=len(marked),
        letters=[*letters.values()],
        sort=sort,
        sorts=SORTS,
        facts=facts,
        total=total,
        page=page,
        before=page * PAGE,
        shown=len(rows),
    )
    return Picture(frame, drawn)
