"""What waits for a person, to read: where there is no front-end, and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from workbench.labels import Labels
from workbench.show.outline import Block, Column, Lines, clipped
from workbench.waiting import Question, how_long, short


def inbox_blocks(asked: Sequence[Question], labels: Labels, now: datetime) -> list[Block]:
    """A row a question, newest first."""
    if not asked:
        return [Lines((((labels("inbox_empty"), "strong"),),))]
    names = (("question_asked", "text"), ("point", "text"), ("proposed_in_short", "text"), ("waits_for", "number"))
    columns = (*(Column(labels(name), kind) for name, kind in names), Column(labels("run"), "code"))
    rows = [
        (
            " ".join(question.first.message.split()),
            labels(f"point_{question.point}"),
            " ".join(short(question.first.request, labels).split()),
            how_long(question.first.since, now),
            question.first.run_id if len(question.runs) == 1 else labels("inbox_runs", n=len(question.runs)),
        )
        for question in asked
    ]
    runs = sum(len(question.runs) for question in asked)
    counted = labels("inbox_count", questions=len(asked), runs=runs)
    return [clipped(f"{labels('inbox')}{labels('colon')}{counted}", columns, rows)]
