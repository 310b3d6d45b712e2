"""A reviewer fitted on decisions: it approves where the person would have approved, and asks otherwise.

A proposal has a margin: the smaller of its evidence and its score, as shares of their thresholds. The lowest margin
from which on the person approved often enough, and more often than overall, is learned for proposals that stop and for
those that continue.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from workbench.graphs.reviewers import Answer, answer
from workbench.plans import canonical_json
from workbench.state import Data, Decision, Json

FEWEST, FEWEST_OF_EACH = 30, 5
"""Questions, and decisions of either kind, that it needs."""
ONE_SIDED = 1.645
"""Standard errors of a one-sided bound at 95 %."""
NOT_PERSONS = frozenset({"rules", "autopilot", "recording"})


def margin(proposal: Data) -> float:
    """Return the smaller of evidence and top score as shares of their thresholds.

    >>> margin({"signals": {"evidence_count": 5, "top_score": 0.9, "thresholds": {"min_evidence": 10}}})
    0.5
    """
    signals = proposal.get("signals", {})
    thresholds = signals.get("thresholds", {})
    evidence = signals.get("evidence_count", 0) / max(thresholds.get("min_evidence", 1), 1)
    return float(min(evidence, signals.get("top_score", 0.0) / max(thresholds.get("min_top_score", 1.0), 1e-6)))


class ThresholdReviewer:
    """Approves what the person approved before in at least the share ``trust``, else asks.

    Use ``ThresholdReviewer.fit``.

    Attributes:
        trust: the share of approvals that it needs.
        limits: whether the proposal continues -> the lowest margin that it approves.
        why: why it is not trusted and always asks; empty when it is trusted.
    """

    def __init__(self, cases: Sequence[tuple[bool, float, bool]], trust: float, questions: int):
        self._cases, self.trust, self.limits = list(cases), trust, dict[bool, float]()
        total, approved = len(cases), sum(approved for *_, approved in cases)
        for continues in (False, True):
            for limit in sorted({own for kind, own, _ in cases if kind is continues}):
                if (lower_bound(self._outcomes({continues: limit})) or 0.0) > max(trust, approved / total):
                    self.limits[continues] = limit
                    break
        self.why = ""
        if questions < FEWEST:
            self.why = f"not trusted: {total} decisions on {questions} questions; it needs {FEWEST} questions."
        elif (fewest := min(approved, total - approved)) < FEWEST_OF_EACH:
            self.why = f"not trusted: only {fewest} of {total} are of the rarer kind; it needs {FEWEST_OF_EACH}."
        elif not self.limits:
            self.why = f"not trusted: it predicts no better than that {approved / total:.0%} are approved."

    @classmethod
    def fit(
        cls, decisions: Iterable[Data | Decision], trust: float = 0.9, questions: Sequence[Hashable] | None = None
    ) -> ThresholdReviewer:
        """Learn from decisions of persons at reflect; a decision that was replayed counts once.

        Args:
            decisions: ``Decision`` rows of any number of runs.
            trust: the share of approvals that it needs, 0.5 to 1.
            questions: the question of each decision; by default decisions on the same evidence share their question.
        """
        if not 0.5 <= trust <= 1:
            raise ValueError(f"trust is {trust:g}; it is a probability from 0.5 to 1.")
        cases: dict[Hashable, tuple[bool, float, bool]] = {}
        groups = set[Hashable]()
        for place, row in enumerate(decisions):
            who, proposal = row.get("who", "person"), row["proposal"]
            if row["point"] != "reflect" or who in NOT_PERSONS:
                continue
            evidence = canonical_json({k: v for k, v in proposal.get("signals", {}).items() if k != "time_left_s"})
            group = (who, evidence if questions is None else questions[place])
            groups.add(group)
            case = (bool(proposal.get("should_continue")), margin(proposal), row["action"] == "approve")
            cases.setdefault((group, evidence, row["action"]), case)
        return cls(list(cases.values()), trust, len(groups))

    @property
    def trusted(self) -> bool:
        """Check whether it approves anything."""
        return not self.why

    def probability(self, proposal: Data) -> float:
        """Return the share of approvals of proposals with at least this margin; 0 without any."""
        outcomes = self._outcomes({bool(proposal.get("should_continue")): margin(proposal)})
        return sum(outcomes) / len(outcomes) if outcomes else 0.0

    def __call__(self, request: Data) -> Answer | None:
        """Approve what the person would approve; return None, which asks the person, for all else."""
        if not self.trusted or request["point"] != "reflect":
            return None
        proposal = request["action_requests"][0]["args"]
        if margin(proposal) < self.limits.get(bool(proposal.get("should_continue")), math.inf):
            return None
        note = f"the person approved {self.probability(proposal):.0%} of such proposals"
        return answer("approve", who="autopilot", note=note)

    def report(self) -> Json:
        """Return how far it can be trusted.

        ``decisions``; ``alone``: how many it would have approved alone; ``agreement``: the share of these that the
        person approved too (None without any), and ``at_least``, its lower bound at 95 %; ``base_rate``: the share that
        the person approves; ``trusted``, ``why``.
        """
        alone, total = self._outcomes(self.limits), len(self._cases)
        return {
            "decisions": total,
            "alone": len(alone),
            "agreement": round(sum(alone) / len(alone), 6) if alone else None,
            "at_least": lower_bound(alone),
            "base_rate": round(sum(approved for *_, approved in self._cases) / max(1, total), 6),
            "trusted": self.trusted,
            "why": self.why,
        }

    def __repr__(self) -> str:
        return f"<ThresholdReviewer: {len(self._cases)} decisions; {self.why or 'trusted'}>"

    def _outcomes(self, limits: Mapping[bool, float]) -> list[bool]:
        """Return for each case within these limits whether the person approved."""
        return [approved for continues, own, approved in self._cases if own >= limits.get(continues, math.inf)]


def lower_bound(outcomes: Sequence[bool]) -> float | None:
    """Return the lower bound at 95 % of the share of successes (Wilson's score, one-sided); None without outcomes.

    >>> lower_bound([True] * 27), lower_bound([])
    (0.908907, None)
    """
    if not outcomes:
        return None
    total, z2 = len(outcomes), ONE_SIDED**2
    share = sum(outcomes) / total
    spread = ONE_SIDED * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return round((share + z2 / (2 * total) - spread) / (1 + z2 / total), 6)
