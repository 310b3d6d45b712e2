"""Who decides at a reflection when no person does, a fitted threshold or a chat model; and what people are worth: every
pause played both ways from the tape, and when a reviewer may act alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from math import inf
from typing import Any

import pandas
from scipy.stats import binomtest

from workbench.errors import RunError, WorkbenchError
from workbench.graphs.reviewers import Reply, answer
from workbench.models.chat import open_chat_model, stream_text
from workbench.parts.experiments.what_if import what_if
from workbench.runs.run import Run
from workbench.settings import Settings
from workbench.state import Data, Json
from workbench.text import to_json
from workbench.views.render import FrameList

_INSTRUCTION = (
    "You review a search before the answer is written. Read the question, the evidence and the proposal. Reply with "
    "'go on' if something that the answer needs is missing, 'stop' if more would not help, else 'approve'."
)


def margin(proposal: Data) -> float:
    """Return the smaller of evidence and top score as shares of their thresholds.

    >>> margin({"signals": {"evidence_count": 5, "top_score": 0.9, "thresholds": {"min_evidence": 10}}})
    0.5
    """
    signals = proposal.get("signals", {})
    thresholds = signals.get("thresholds", {})
    return min(
        signals.get(name, 0) / max(thresholds.get(limit, 1.0), 1e-6)
        for name, limit in (("evidence_count", "min_evidence"), ("top_score", "min_top_score"))
    )


class ThresholdReviewer:
    """Acts alone from a margin on, as proposed; below it searches on.

    Args:
        limit: as ``Pauses.threshold`` of an experiment returns it in ``margin``.
    """

    def __init__(self, limit: float):
        self._limit = limit

    def __call__(self, request: Data) -> Reply:
        """Return the answer to one request."""
        is_enough = margin(request["action_requests"][0]["args"]) >= self._limit
        return _chosen("approve" if is_enough else "go on", "threshold", request)


class ModelReviewer:
    """Lets a chat model decide at each reflection whether to search on.

    Args:
        settings: where its server is.
        model: its name, as in the settings.
    """

    def __init__(self, settings: Settings, model: str):
        opened = open_chat_model(settings.with_changes({"models": {"judge": model}}), "judge")
        if opened is None:
            raise WorkbenchError("A model that reviews needs a name, as {model: openai:NAME}.")
        self._model = opened

    async def __call__(self, request: Data) -> Reply:
        """Return its answer; one that begins with neither "go on" nor "stop" approves.

        Raises:
            ModelError: its server failed.
        """
        pieces = "\n\n".join(piece["evidence"] for piece in request.get("evidence", [])[:8])
        proposal = to_json(request["action_requests"][0]["args"])
        messages = [
            ("system", _INSTRUCTION),
            ("human", f"{request['in_force']['query']}\n\n{pieces}\n\n{proposal}"),
        ]
        reply = "".join([chunk async for chunk in stream_text(self._model, messages)])
        reply = reply.strip(" '\"\n").casefold()
        choice = next((c for c in ("go on", "stop") if reply.startswith(c)), "approve")
        return _chosen(choice, "model", request)


def _chosen(choice: str, who: str, request: Data) -> Reply:
    # a person who goes on may; these would for ever, so that from the second decision on they approve
    if int(request["review_id"].partition("-")[0]) > 1:
        choice = "approve"
    edits = {"should_continue": True} if choice == "go on" else {}
    action = {"go on": "edit", "stop": "reject"}.get(choice, "approve")
    return answer(action, point="reflect", edits=edits, who=who)


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

    def above(self, limit: float) -> Json:
        """Return what acting alone from this margin on is worth.

        ``missed_support`` is the share of all pauses at which no person is asked and one would have mattered, ``bound``
        what that share is at most, with 95 % confidence, and ``quality`` the mean score.
        """
        table = self.to_frame().fillna(0.0)
        acts = table["margin"].astype(float) >= limit
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
            "margin": limit,
            "pauses": len(self),
            **{name: round(float(value), 4) for name, value in values.items()},
        }

    def threshold(self, share: float = 0.05) -> Json:
        """Return the margin from which on to act alone, so that the missed support stays under ``share``.

        Margins are tried from the highest down, each by Clopper and Pearson's bound, until one fails: a fixed sequence,
        so that with 95 % confidence none that passed is beyond ``share``, for as many pauses as there are. With fewer
        than about 60 it is to ask always (``inf``).
        """
        threshold = inf
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
            "ask always": self.above(inf),
            "ask never": self.above(-inf),
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
