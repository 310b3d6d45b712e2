"""A reviewer fitted on what a person decided: it answers where the person would have agreed, and asks where it may not.

From each decision at reflect it learns one thing: whether the person accepted the proposal as it stood. What it says of
itself (agreement, where it would have gone another way than the person) is always from decisions that it
was not fitted on: those of one person on one question are predicted by a fit on all the others, and a decision that was
replayed counts once. It answers only where that tells more than how often the person accepts anyway.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.graphs.reviewers import Answer, answer
from workbench.plans import canonical_json
from workbench.state import Data, Decision, Json

if TYPE_CHECKING:
    import pandas


FEWEST, FEWEST_OF_EACH = 30, 5
"""Questions decided, and of either kind, below which it is not to be trusted."""
ONE_SIDED = 1.645
"""Standard errors of a bound that holds with 95 %."""
FEATURES = 7
"""How many numbers ``features`` gives."""
NO_PERSONS = frozenset({"rules", "autopilot", "recording"})
"""Who answers and is no person."""


def features(proposal: Data) -> list[float]:
    """Return what a proposal shows, each about 0 to 2: counts and scores as shares of their thresholds.

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


class Trial(NamedTuple):
    """One decision, and what a fit on all the others would have said of it."""

    review_id: str
    probability: float  # that the person accepts the proposal
    accepted: bool
    action: str
    base: float = 0.5  # how often the person accepts, from all the others too


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
    def fit(
        cls,
        decisions: Iterable[Data | Decision],
        trust: float = 0.9,
        questions: Sequence[Hashable] | None = None,
    ) -> ThresholdReviewer:
        """Learn from decisions at reflect; those of other points and of reviewers that are no person are left out.

        Args:
            decisions: ``Decision`` rows of any number of runs.
            trust: from which probability it answers by itself, 0.5 to 1.
            questions: the question of each decision; without it those that saw the same evidence are of one question.
        """
        if not 0.5 <= trust <= 1:
            raise ValueError(f"trust is {trust:g}; it is a probability from 0.5 to 1.")
        rows, groups = _once(list(decisions), questions)
        known = [features(row["proposal"]) for row in rows]
        accepted = [row["action"] == "approve" for row in rows]
        trials = []
        for row, group, seen, yes in zip(rows, groups, known, accepted, strict=True):
            others = [place for place, other in enumerate(groups) if other != group]
            weights = _fitted([known[place] for place in others], [accepted[place] for place in others])
            base = (sum(accepted[place] for place in others) + 1) / (len(others) + 2)
            probability = round(_probability(weights, seen), 6)
            trials.append(Trial(row.get("review_id", ""), probability, yes, row["action"], round(base, 6)))
        return cls(_fitted(known, accepted), trials, trust, _why(trials, len(set(groups))))

    @property
    def trusted(self) -> bool:
        """Check whether it answers at all."""
        return not self.why

    def probability(self, proposal: Data) -> float:
        """Return how probable it is that the person accepts this proposal."""
        return _probability(self._weights, features(proposal))

    def __call__(self, request: Data) -> Answer | None:
        """Accept what the person would accept; None, which asks the person, for all else."""
        if not self.trusted or request["point"] != "reflect":
            return None
        probability = self.probability(request["action_requests"][0]["args"])
        if probability < self.trust:
            return None
        note = (
            f"the person accepts such a proposal with {probability:.0%}, and any with {self.report()['base_rate']:.0%}"
        )
        return answer("approve", who="autopilot", note=note)

    # what it says of itself

    def report(self) -> Json:
        """Return how far it can be trusted.

        ``decisions``; ``alone``: how many it would have answered by itself; ``agreement``: the share of these that the
        person accepted too (None when there are none), ``at_least``: the bound above which it lies with 95 %;
        ``base_rate``: the share that the person accepts; ``overruled``: where it would have accepted and the person
        decided otherwise; ``trusted``, ``why``.
        """
        alone = [trial for trial in self.trials if trial.probability >= self.trust]
        overruled = [
            {"review_id": trial.review_id, "probability": trial.probability, "action": trial.action}
            for trial in alone
            if not trial.accepted
        ]
        right = len(alone) - len(overruled)
        return {
            "decisions": len(self.trials),
            "alone": len(alone),
            "agreement": round(right / len(alone), 6) if alone else None,
            "at_least": least(right, len(alone)),
            "base_rate": round(sum(t.accepted for t in self.trials) / max(1, len(self.trials)), 6),
            "overruled": overruled,
            "trusted": self.trusted,
            "why": self.why,
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a decision: what was predicted without it, what the person did."""
        import pandas

        return pandas.DataFrame(self.trials, columns=Trial._fields).drop(columns="base")

    def __repr__(self) -> str:
        state = "trusted" if self.trusted else f"not trusted: {self.why}"
        return f"<ThresholdReviewer: {len(self.trials)} decisions, agreement {self.report()['agreement']}; {state}>"


def _once(decisions: Sequence[Data], questions: Sequence[Hashable] | None) -> tuple[list[Data], list[Hashable]]:
    """Persons' decisions at reflect, a replayed one once, and of whom on which question each is."""
    found: dict[Hashable, tuple[Data, Hashable]] = {}
    for place, row in enumerate(decisions):
        who = row.get("who", "person")
        if row["point"] == "reflect" and who not in NO_PERSONS:
            seen = {k: v for k, v in row["proposal"].get("signals", {}).items() if k != "time_left_s"}
            evidence = canonical_json(seen)
            group = who, evidence if questions is None else questions[place]
            found.setdefault((group, evidence, row["action"]), (row, group))
    return [row for row, _ in found.values()], [group for _, group in found.values()]


def _why(trials: Sequence[Trial], questions: int) -> str:
    """Return why it is not to be trusted, or nothing."""
    yes = sum(trial.accepted for trial in trials)
    fewest = min(yes, len(trials) - yes)
    if questions < FEWEST:
        told = f"{len(trials)} decisions of a person at reflect, on {questions} questions"
        return f"{told}; {FEWEST} are the fewest that it is trusted on."
    if fewest < FEWEST_OF_EACH:
        rare = "accepted" if fewest == yes else "changed or refused"
        return f"only {fewest} of {len(trials)} were {rare}; {FEWEST_OF_EACH} are the fewest of each kind."
    # by how many nats the fit told each decision better than how often the person accepts
    better = [math.log(_of(t.probability, t.accepted) / _of(t.base, t.accepted)) for t in trials]
    mean = statistics.fmean(better)
    if mean - ONE_SIDED * statistics.pstdev(better) / math.sqrt(questions) <= 0:
        share = f"{yes / len(trials):.0%}"
        return f"it tells no better than that {share} are accepted (by {mean:.3f} nats, of which it is not sure)."
    return ""


def _of(probability: float, accepted: bool) -> float:
    """Return the probability of what happened."""
    return max(probability if accepted else 1 - probability, 1e-6)


def least(right: int, asked: int) -> float | None:
    """The share of right ones is at least this, with 95 % (Wilson's score, one-sided); None where nothing was asked.

    >>> least(27, 27), least(0, 0)
    (0.908907, None)
    """
    if not asked:
        return None
    share, z2 = right / asked, ONE_SIDED**2
    spread = ONE_SIDED * math.sqrt(share * (1 - share) / asked + z2 / (4 * asked**2))
    return round((share + z2 / (2 * asked) - spread) / (1 + z2 / asked), 6)


def _fitted(known: Sequence[Sequence[float]], accepted: Sequence[bool], ridge: float = 1.0) -> list[float]:
    """Logistic regression with a ridge, by Newton's method (Hastie et al. 2009, 4.4.1); the bias comes last."""
    import numpy as np

    x = np.array([[*row, 1.0] for row in known], float).reshape(len(known), FEATURES + 1)
    y, weights = np.array(accepted, float), np.zeros(x.shape[1])
    penalty = np.diag([*[ridge] * FEATURES, 1e-3])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        weights -= np.linalg.solve((x.T * (p * (1 - p))) @ x + penalty, x.T @ (p - y) + penalty @ weights)
    return [float(weight) for weight in weights]


def _probability(weights: Sequence[float], row: Sequence[float]) -> float:
    z = sum(w * v for w, v in zip(weights, [*row, 1.0], strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
