"""A reviewer fitted on what a person decided: it answers where the person would have agreed, and asks where it may not.

From each decision at reflect it learns one thing: whether the person accepted the proposal as it stood. What it says of
itself (agreement, reliability, where it would have gone another way than the person) is always from decisions that it
was not fitted on: each is predicted by a fit on all the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.graphs.reviewers import Answer, answer
from workbench.state import Decision

if TYPE_CHECKING:
    import numpy as np
    import pandas


FEWEST, FEWEST_OF_EACH = 30, 5
"""Decisions, and decisions of either kind, below which it is not to be trusted."""
FEATURES = ("evidence", "top score", "coverage", "missing", "failures", "iteration", "goes on")


def features(proposal: Mapping[str, Any]) -> list[float]:
    """What a proposal shows, each about 0 to 2: counts and scores as shares of their thresholds.

    >>> features({"signals": {"evidence_count": 5, "thresholds": {"min_evidence": 10}}, "should_continue": True})
    [0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    """
    seen = proposal.get("signals", {})
    enough, coverage = seen.get("thresholds", {}), seen.get("coverage", [])
    met = [c["found"] >= c["needed"] for c in coverage]
    return [
        min(seen.get("evidence_count", 0) / max(enough.get("min_evidence", 1), 1), 2.0),
        min(seen.get("top_score", 0.0) / max(enough.get("min_top_score", 1.0), 1e-6), 2.0),
        sum(met) / len(met) if met else 1.0,
        min(len(seen.get("missing", [])) / 3, 2.0),
        min((len(seen.get("failures", [])) + len(seen.get("timeouts", []))) / 3, 2.0),
        proposal.get("current_iteration", 0) / max(proposal.get("max_iterations", 1), 1),
        float(bool(proposal.get("should_continue"))),
    ]


@dataclass(frozen=True)
class Trial:
    """One decision, and what a fit on all the others would have said of it.

    Attributes:
        review_id: the decision's.
        probability: that the person accepts the proposal, 0 to 1.
        accepted: whether the person did.
        action: what the person did.
    """

    review_id: str
    probability: float
    accepted: bool
    action: str


class ThresholdReviewer:
    """Accepts a proposal that the person would have accepted with at least the probability ``trust``, else asks.

    Use ``ThresholdReviewer.fit``.

    Attributes:
        trials: each decision that it was fitted on, predicted without it.
        trust: the probability from which it answers by itself.
        trusted: whether there were enough decisions, of both kinds.
        why: why it is not trusted; empty when it is.
    """

    def __init__(self, weights: Sequence[float], trials: Sequence[Trial], trust: float, why: str):
        self._weights, self.trials, self.trust, self.why = list(weights), list(trials), trust, why

    @classmethod
    def fit(cls, decisions: Iterable[Mapping[str, Any] | Decision], trust: float = 0.9) -> ThresholdReviewer:
        """Learn from decisions at reflect; those of other points and of reviewers that are no person are left out.

        Args:
            decisions: ``Decision`` rows of any number of runs.
            trust: from which probability it answers by itself, 0.5 to 1.
        """
        if not 0.5 <= trust <= 1:
            raise ValueError(f"trust is {trust:g}; it is a probability from 0.5 to 1.")
        rows = [d for d in decisions if d["point"] == "reflect" and d.get("who", "person") == "person"]
        known = [features(d["proposal"]) for d in rows]
        accepted = [d["action"] == "approve" for d in rows]
        yes, no = sum(accepted), len(rows) - sum(accepted)
        why = ""
        if len(rows) < FEWEST:
            why = f"{len(rows)} decisions of a person at reflect; {FEWEST} are the fewest that it is trusted on."
        elif min(yes, no) < FEWEST_OF_EACH:
            rare = "accepted" if yes < no else "changed or refused"
            why = f"only {min(yes, no)} of {len(rows)} were {rare}; {FEWEST_OF_EACH} are the fewest of each kind."
        if not rows:
            return cls([0.0] * (len(FEATURES) + 1), [], trust, why)
        trials = []
        for place, row in enumerate(rows):
            others = [i for i in range(len(rows)) if i != place]
            weights = _fitted([known[i] for i in others], [accepted[i] for i in others])
            probability = round(_probability(weights, known[place]), 6)
            trials.append(Trial(row.get("review_id", ""), probability, accepted[place], row["action"]))
        return cls(_fitted(known, accepted), trials, trust, why)

    @property
    def trusted(self) -> bool:
        """Whether it answers at all."""
        return not self.why

    def probability(self, proposal: Mapping[str, Any]) -> float:
        """How probable it is that the person accepts this proposal."""
        return _probability(self._weights, features(proposal))

    def __call__(self, request: Mapping[str, Any]) -> Answer | None:
        """Accept what the person would accept; None, which asks the person, for all else."""
        if not self.trusted or request["point"] != "reflect":
            return None
        probability = self.probability(request["action_requests"][0]["args"])
        if probability < self.trust:
            return None
        return answer("approve", who="autopilot", note=f"the person accepts such a proposal with {probability:.0%}")

    # what it says of itself

    def report(self) -> dict[str, Any]:
        """How far it can be trusted.

        ``decisions``; ``alone``: how many it would have answered by itself; ``agreement``: the share of these that the
        person accepted too (None when there are none); ``overruled``: where it would have accepted and the person
        decided otherwise; ``ece``: expected calibration error; ``trusted``, ``why``.
        """
        alone = [t for t in self.trials if t.probability >= self.trust]
        overruled = [
            {"review_id": t.review_id, "probability": t.probability, "action": t.action}
            for t in alone
            if not t.accepted
        ]
        curve = self.reliability()
        error = sum(row["count"] * abs(row["said"] - row["was"]) for row in curve) / max(len(self.trials), 1)
        return {
            "decisions": len(self.trials),
            "alone": len(alone),
            "agreement": round(1 - len(overruled) / len(alone), 6) if alone else None,
            "overruled": overruled,
            "ece": round(error, 6),
            "trusted": self.trusted,
            "why": self.why,
        }

    def reliability(self, bins: int = 5) -> list[dict[str, Any]]:
        """For each bin of the probability that was said, what was: ``{"said", "was", "count"}``, lowest first."""
        rows = []
        for low in range(bins):
            inside = [t for t in self.trials if min(int(t.probability * bins), bins - 1) == low]
            if inside:
                said = sum(t.probability for t in inside) / len(inside)
                was = sum(t.accepted for t in inside) / len(inside)
                rows.append({"said": round(said, 6), "was": round(was, 6), "count": len(inside)})
        return rows

    def to_frame(self) -> pandas.DataFrame:
        """One row a decision: what was predicted without it, what the person did."""
        import pandas

        columns = ["review_id", "probability", "accepted", "action"]
        return pandas.DataFrame([[getattr(t, c) for c in columns] for t in self.trials], columns=columns)

    def __repr__(self) -> str:
        found = self.report()
        agreement = "nothing to agree on" if found["agreement"] is None else f"agreement {found['agreement']:.0%}"
        state = "trusted" if self.trusted else f"not trusted: {self.why}"
        return f"<ThresholdReviewer: {found['decisions']} decisions, {found['alone']} alone, {agreement}; {state}>"


def _fitted(known: Sequence[Sequence[float]], accepted: Sequence[bool], ridge: float = 1.0) -> list[float]:
    """Logistic regression with a ridge, by Newton's method (Hastie et al. 2009, 4.4.1); the bias comes last."""
    import numpy as np

    x = np.array([[*row, 1.0] for row in known], float)
    y, weights = np.array(accepted, float), np.zeros(x.shape[1])
    penalty = np.diag([ridge] * (x.shape[1] - 1) + [1e-3])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (p - y) + penalty @ weights
        step: np.ndarray = np.linalg.solve((x.T * (p * (1 - p))) @ x + penalty, gradient)
        weights -= step
        if float(np.abs(step).max()) < 1e-8:
            break
    return [float(w) for w in weights]


def _probability(weights: Sequence[float], row: Sequence[float]) -> float:
    z = sum(w * v for w, v in zip(weights, [*row, 1.0], strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
