"""Why an answer is wrong: where its gold documents were lost on the way, and what would let them pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from workbench.ports import KnowledgeBase
from workbench.runs.recording import found_pieces, results_by_step
from workbench.state import Json, RetrievalResult

NOT_IN_CORPUS, DECIDED, NOT_FOUND, CUT, BEYOND, NOT_USED, USED = STAGES = (
    "not in the corpus",
    "lost by a decision",
    "not found",
    "cut in the merge",
    "beyond the prompt",
    "in the prompt, not used",
    "used, and the answer is wrong",
)
"""Where a document was lost, in the order of a run."""
CHANGES: dict[str, Json] = {
    NOT_FOUND: {"step_top_k": 200, "merge_max_results": 400, "merge_max_characters": 40_000},
    CUT: {"merge_max_results": 400, "merge_max_characters": 40_000},
    BEYOND: {"merge_max_characters": 40_000},
}
"""Settings that would let a document pass where it was lost."""
_DEEP = 1000
"""Places of a ranking that are looked at for a document that no step found."""


class Loss(NamedTuple):
    """Where a wrong answer lost a gold document.

    Attributes:
        stage: one of ``STAGES``.
        document: the gold document that was lost first; "" where the question has none.
        words, meaning: its rank by keywords and by vectors where no step found it; None beyond the first thousand.
    """

    stage: str
    document: str
    words: int | None = None
    meaning: int | None = None


def find_loss(run: Any, gold: Sequence[str], base: KnowledgeBase) -> Loss:
    """Return where a run lost the first of its gold documents.

    Args:
        run: that is done.
        gold: ids of the documents that answer its question.
        base: that was searched.
    """
    loss = _first_loss(run, gold, base)
    if loss.stage in (NOT_FOUND, CUT) and any(decision["action"] != "approve" for decision in run.decisions):
        approved = run.fork(answers=[], mismatch="rules", rest="rules")
        if STAGES.index(_first_loss(approved, gold, base).stage) > STAGES.index(loss.stage):
            return loss._replace(stage=DECIDED)
    return loss


def _first_loss(run: Any, gold: Sequence[str], base: KnowledgeBase) -> Loss:
    losses = [_loss(run, document, base) for document in gold]
    return min(losses, key=lambda loss: STAGES.index(loss.stage), default=Loss(USED, ""))


def _loss(run: Any, document: str, base: KnowledgeBase) -> Loss:
    evidence = run.evidence
    in_prompt = [evidence[piece["n"] - 1] for piece in found_pieces(run) if piece["in_prompt"] and piece["n"]]
    cited = {str(citation["source"].get("doc_id", "")) for citation in run.citations}
    results = [result for results in results_by_step(run).values() for result in results]
    if document in cited:
        return Loss(USED, document)
    if document in _documents(in_prompt):
        return Loss(NOT_USED, document)
    if document in _documents(evidence):
        return Loss(BEYOND, document)
    if document in _documents(results):
        return Loss(CUT, document)
    words, meaning = (_rank(base.search(kind, run.query, _DEEP), document) for kind in ("words", "meaning"))
    is_there = words or meaning or _has(base, document)
    return Loss(NOT_FOUND if is_there else NOT_IN_CORPUS, document, words, meaning)


def _documents(results: Iterable[RetrievalResult]) -> set[str]:
    return {str(result["metadata"].get("doc_id") or "") for result in results}


def _rank(ranking: Iterable[tuple[str, float]], document: str) -> int | None:
    documents = dict.fromkeys(chunk_id.rpartition("#")[0] for chunk_id, _ in ranking)
    return next((rank for rank, ranked in enumerate(documents, start=1) if ranked == document), None)


def _has(base: KnowledgeBase, document: str) -> bool:
    return bool(base.passages(doc_ids=[document]))
