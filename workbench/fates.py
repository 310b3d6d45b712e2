"""What became of everything that the steps found: cited, in the prompt, or dropped, and why.

Pure data, from what a run keeps: the findings of each step, the merge, the citations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

from workbench.state import Citation, Merged, RetrievalResult

Fate = Literal["found", "cited", "used", "dropped"]
Why = Literal["", "duplicate", "results", "characters", "without"]
_Identity = tuple[str, str, str]


class Piece(TypedDict):
    """One finding of one or several steps.

    ``n`` is its place in the merge, None when it did not come so far. ``score`` is after the merge, ``scores`` what
    each step gave it, ``ranks`` its place in each step's findings, both by step. ``why`` it was dropped: ``results``
    and ``characters`` are the two limits of the merge, ``without`` a fork that leaves it out, ``duplicate`` the same
    piece again, whose ``of`` is the place of the one that was kept.
    """

    key: str
    n: int | None
    result_id: str
    title: str
    text: str
    score: float
    scores: dict[str, float]
    ranks: dict[str, int]
    tools: list[str]
    fate: Fate
    why: Why
    of: int | None


def pieces(
    found: Mapping[str, Sequence[RetrievalResult]],
    kept: Sequence[RetrievalResult],
    merged: Merged | None = None,
    citations: Iterable[Citation] = (),
) -> list[Piece]:
    """Every finding, those in the merge first, in its order; then what was dropped, best first.

    Args:
        found: what each step found, by step.
        kept: the distinct pieces, best first; with a merge those that it kept.
        merged: the merge, once there is one: then each piece has its fate.
        citations: of the answer.
    """
    places = {_identity(result): n for n, result in enumerate(kept, 1)}
    scores: dict[_Identity, dict[str, float]] = {}
    ranks: dict[_Identity, dict[str, int]] = {}
    first, again = dict[_Identity, RetrievalResult](), list[tuple[str, RetrievalResult]]()
    for step_id, results in found.items():
        for rank, result in enumerate(results, 1):
            identity = _identity(result)
            if identity in first:
                again.append((step_id, result))
            first.setdefault(identity, result)
            scores.setdefault(identity, {}).setdefault(step_id, result["score"])
            ranks.setdefault(identity, {}).setdefault(step_id, rank)
    cited = {citation["result_id"] for citation in citations}
    used = merged["statistics"]["used"] if merged else 0

    def piece(result: RetrievalResult, n: int | None, fate: Fate, why: Why = "", key: str = "") -> Piece:
        identity = _identity(result)
        return Piece(
            key=key or "/".join(identity),
            n=n if why != "duplicate" else None,
            result_id=result["result_id"],
            title=str(result["metadata"].get("title") or result["source_id"]),
            text=result["evidence"],
            score=result["score"],
            scores=scores.get(identity, {}),
            ranks=ranks.get(identity, {}),
            tools=[str(tool) for tool in result["metadata"].get("tools") or []],
            fate=fate,
            why=why,
            of=places.get(identity) if why == "duplicate" else None,
        )

    rows = [piece(result, n, *_fate(result, n, used, cited, merged)) for n, result in enumerate(kept, 1)]
    if merged:
        beyond: Why = "results" if merged["statistics"]["after_dedup"] > len(kept) else "without"
        left = [result for identity, result in first.items() if identity not in places]
        rows += [piece(result, None, "dropped", beyond) for result in sorted(left, key=_order)]
        rows += [
            piece(result, None, "dropped", "duplicate", key="/".join((*_identity(result), step_id)))
            for step_id, result in sorted(again, key=lambda one: (*_order(one[1]), one[0]))
        ]
    return rows


def _fate(result: RetrievalResult, n: int, used: int, cited: set[str], merged: Merged | None) -> tuple[Fate, Why]:
    if merged is None:
        return "found", ""
    if result["result_id"] in cited:
        return "cited", ""
    return ("used", "") if n <= used else ("dropped", "characters")


def _identity(result: RetrievalResult) -> _Identity:
    """What makes two findings one piece, as the merge has it."""
    return result["source_id"], result["granularity"], str(result["metadata"].get("kb_prefix", ""))


def _order(result: RetrievalResult) -> tuple[float, str]:
    return -result["score"], result["source_id"]
