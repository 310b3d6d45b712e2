"""What people are worth: every pause played both ways from the tape, and when a reviewer may act alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pandas
from scipy.stats import binomtest

from workbench.errors import RunError
from workbench.graphs.reviewers import Reviewer
from workbench.parts.experiments.reviewers import margin
from workbench.parts.experiments.what_if import what_if
from workbench.runs.run import Run
from workbench.state import Data, Json
from workbench.views.render import FrameList

NOT_PERSONS = frozenset({"rules", "recording", "threshold", "model"})
"""Who answers when no person does."""


class Pauses(FrameList[Json]):
    """Pauses, each with what came of it: ``alone`` as the rules proposed, and with the ``person``.

    A row has ``run_id``, ``at`` (the review point), ``margin`` (of the proposal), ``action``, the scores ``alone`` and
    ``person``, ``gain`` (their difference), ``mattered`` (the person's was better), ``seconds`` (what the person took,
    where it is known) and ``other_run`` (the branch that was not taken).
    """

    columns = (
        "run_id",
        "at",
        "margin",
        "action",
        "alone",
        "person",
        "gain",
        "mattered",
        "seconds",
        "other_run",
    )

    def worth(self, reviewer: Reviewer) -> Json:
        """Return what a reviewer would have made of the pauses: it answers, or returns None and a person is asked.

        ``missed_support`` is the share of all pauses at which it answers where a person would have mattered, ``bound``
        what that share is at most, with 95 % confidence, and ``quality`` the mean score.
        """
        return self._worth([reviewer(row["request"]) is not None for row in self])

    def _worth(self, alone: list[bool]) -> Json:
        table = self.to_frame().fillna(0.0)
        acts = pandas.Series(alone, dtype=bool)
        n = max(1, len(self))
        missed = int(table["mattered"][acts].sum())
        values = {
            "asked": (~acts).sum() / n,
            "missed_support": missed / n,
            "bound": binomtest(missed, n).proportion_ci(0.9).high if self else 1.0,
            "quality": table["alone"].where(acts, table["person"]).sum() / n,
            "gain": table["gain"][~acts].sum() / n,
            "attention_s": table["seconds"][~acts].sum(),
        }
        return {
            "pauses": len(self),
            **{name: round(float(value), 4) for name, value in values.items()},
        }

    def above(self, limit: float) -> Json:
        """Return what acting alone from this margin on is worth."""
        return {"margin": limit, **self._worth([row["margin"] >= limit for row in self])}

    def threshold(self, share: float = 0.05) -> Json:
        """Return the margin from which on to act alone, so that the missed support stays under ``share``.

        Margins are tried from the highest down, each by Clopper and Pearson's bound, until one fails: a fixed sequence,
        so that with 95 % confidence none that passed is beyond ``share``, for as many pauses as there are. With fewer
        than about 60 it is to ask always (``inf``).
        """
        threshold = math.inf
        for limit in sorted({row["margin"] for row in self}, reverse=True):
            missed = sum(row["mattered"] for row in self if row["margin"] >= limit)
            if binomtest(missed, len(self)).proportion_ci(0.9).high > share:
                break
            threshold = limit
        return self.above(threshold)

    def compared(self) -> pandas.DataFrame:
        """Return what asking always, never, and below the threshold are worth, a row each."""
        own = self.threshold()
        rows = {
            "ask always": self.above(math.inf),
            "ask never": self.above(-math.inf),
            f"ask below {own['margin']}": own,
        }
        return pandas.DataFrame.from_dict(rows, orient="index").drop(columns="margin")


def play_both_ways(run: Run, score: Callable[[Any], Json], measure: str) -> Iterator[Json]:
    """Yield the pauses of a run, each played both ways.

    Where persons decided, a pause is a decision of theirs, against what was proposed to them. Elsewhere it is a
    reflection, against the other choice: whether a person there could have made the answer better.

    Args:
        run: that is done.
        score: returns the measures of a run.
        measure: the one that counts.
    """
    persons = any(decision["who"] not in NOT_PERSONS for decision in run.decisions)
    own = score(run).get(measure, 0.0)
    for at, action, proposal, branch_run, seconds in _decided(run) if persons else _possible(run):
        point = at.partition("-")[2]
        branch = score(branch_run).get(measure, 0.0)
        alone, person = (branch, own) if persons else (own, max(own, branch))
        request = {
            "point": point,
            "review_id": at,
            "action_requests": [{"name": point, "args": proposal}],
        }
        yield {
            "run_id": run.run_id,
            "at": at,
            "margin": round(margin(proposal), 4) if point == "reflect" else 0.0,
            "action": action,
            "alone": alone,
            "person": person,
            "gain": person - alone,
            "mattered": person > alone,
            "seconds": seconds,
            "other_run": branch_run.run_id,
            "request": request,
        }


_Played = tuple[str, str, Data, "Run", float | None]


def _decided(run: Run) -> Iterator[_Played]:
    decisions = run.decisions
    before = run.row["created_at"]
    for number, decision in enumerate(decisions):
        seconds = (
            datetime.fromisoformat(decision["decided_at"]) - datetime.fromisoformat(before)
        ).total_seconds()
        before = decision["decided_at"]
        branch_run = run
        if decision["who"] in NOT_PERSONS:
            continue
        if decision["action"] != "approve":
            answers = [*decisions[:number], {"point": decision["point"], "action": "approve"}]
            branch_run = run.fork(answers=answers, mismatch="rules", rest="rules")
        yield decision["review_id"], decision["action"], decision["proposal"], branch_run, seconds


def _possible(run: Run) -> Iterator[_Played]:
    try:
        points = what_if(run)
    except RunError:  # a branch asks a person
        return
    for point, proposal in zip(points, run.reflections, strict=False):
        branches = {point["stop"], point["go_on"]} - {None, run.run_id}
        branch_run = run._workspace.run(branches.pop()) if branches else run
        yield (
            f"{point['iteration']}-reflect",
            "reject" if point["recorded"] == "go_on" else "edit",
            proposal,
            branch_run,
            None,
        )
