"""Why an answer is wrong: where its gold documents were lost on the way, and what would let them pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from workbench.ports import KnowledgeBase
from workbench.records.prompts import Prompts
from workbench.runs.stored import found_pieces, prompts_of
from workbench.state import Json, RetrievalResult, drop, unique

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


Check = Callable[[Any], bool]


class Loss(NamedTuple):
    """Where a wrong answer lost a gold document.

    Attributes:
        stage: one of ``STAGES``.
        document: the gold document that was lost first; "" where the question has none.
        rank_by_words, rank_by_meaning: where no step found it; None beyond the first thousand.
    """

    stage: str
    document: str
    rank_by_words: int | None = None
    rank_by_meaning: int | None = None


def find_loss(run: Any, gold: Sequence[str], base: KnowledgeBase) -> Loss:
    """Return where a run lost the first of its gold documents.

    Args:
        run: that is done.
        gold: ids of the documents that answer its question.
        base: that was searched.
    """
    loss = _first_loss(run, gold, base)
    if loss.stage in (NOT_FOUND, CUT) and any(
        decision["action"] != "approve" for decision in run.decisions
    ):
        approved = run.fork(answers=[], mismatch="rules", rest="rules")
        if STAGES.index(_first_loss(approved, gold, base).stage) > STAGES.index(loss.stage):
            return loss._replace(stage=DECIDED)
    return loss


def find_mend(
    run: Any, loss: Loss, gold: Sequence[str], base: KnowledgeBase, is_right: Check
) -> tuple[str, str]:
    """Return the smallest change that makes the answer right, and the run that shows it; both empty where none does.

    Tried are forks, of which the tape answers all that the change does not touch: one decision approved instead, the
    prompts as shipped, the rules as writer; and limits, each doubled where the document is lost next, of which those
    that were not needed are taken back.
    """
    for change, edits in _single_changes(run, loss.stage):
        fork = run.fork(**edits)
        if is_right(fork):
            return change, fork.run_id
    # Settings that let a document pass where it was lost, if they are wider, and how wide they may be.
    limits_at = {
        NOT_FOUND: {"step_top_k": 400, "max_iterations": 6},
        CUT: {"merge_max_results": 400},
        BEYOND: {"merge_max_characters": 80_000},
    }
    settings: Json = {}
    set_here = run._workspace.settings.model_dump() | run.options.get("settings", {})
    while limits := [
        (name, widest)
        for name, widest in limits_at.get(loss.stage, {}).items()
        if settings.get(name, 0) < widest
    ]:
        name, widest = limits[0]
        settings[name] = min(2 * settings.get(name, set_here[name]), widest)
        fork = run.fork(settings=settings)
        if is_right(fork):
            return _needed(run, settings, fork, is_right)
        loss = find_loss(fork, gold, base)
    return "", ""


def _needed(run: Any, settings: Json, fork: Any, is_right: Check) -> tuple[str, str]:
    """Return the settings without which the answer is not right."""
    for name in list(settings):
        fewer = drop(settings, name)
        if fewer and is_right(without := run.fork(settings=fewer)):
            settings = fewer
            fork = without
    return ", ".join(f"{name}={value}" for name, value in settings.items()), fork.run_id


def _single_changes(run: Any, stage: str) -> Iterator[tuple[str, Json]]:
    if stage == DECIDED:
        review_ids = [
            decision["review_id"] for decision in run.decisions if decision["action"] != "approve"
        ]
        approved = {"decision": {"action": "approve"}, "mismatch": "rules", "rest": "rules"}
        yield from ((f"approve {at}", {"at": at, **approved}) for at in reversed(review_ids))
    if stage in (NOT_USED, USED):
        shipped = Prompts()
        yield from (
            (f"prompt {name} as shipped", {"prompts": {name: shipped[name]}})
            for name in prompts_of(run).own()
        )
        yield "writer=rules", {"models": {"writer": "rules"}}


def _first_loss(run: Any, gold: Sequence[str], base: KnowledgeBase) -> Loss:
    losses = [_loss(run, document, base) for document in gold]
    return min(losses, key=lambda loss: STAGES.index(loss.stage), default=Loss(USED, ""))


def _loss(run: Any, document: str, base: KnowledgeBase) -> Loss:
    evidence = run.evidence
    in_prompt = [
        evidence[piece["n"] - 1]
        for piece in found_pieces(run)
        if piece["in_prompt"] and piece["n"]
    ]
    cited = {str(citation["source"].get("doc_id", "")) for citation in run.citations}
    results = [result for results in run._results_by_step().values() for result in results]
    if document in cited:
        return Loss(USED, document)
    if document in _documents(in_prompt):
        return Loss(NOT_USED, document)
    if document in _documents(evidence):
        return Loss(BEYOND, document)
    if document in _documents(results):
        return Loss(CUT, document)
    words, meaning = (_rank(base, kind, run.query, document) for kind in ("words", "meaning"))
    is_there = words or meaning or base.passages(doc_ids=[document])
    return Loss(NOT_FOUND if is_there else NOT_IN_CORPUS, document, words, meaning)


def hiddenness(question: str, gold: Sequence[str], base: KnowledgeBase) -> float:
    """Return 1 less the mean percentile of the gold documents by words and by meaning: 0 where both rank them first."""
    size = int(base.about()["counts"]["documents"])
    ranks = [_rank(base, kind, question, name) for kind in ("words", "meaning") for name in gold]
    percentiles = [1 - (rank - 1) / size if rank else 0.0 for rank in ranks]
    return round(1 - sum(percentiles) / len(percentiles), 4) if percentiles else 0.0


def _documents(results: Iterable[RetrievalResult]) -> set[str]:
    return {str(result["metadata"].get("doc_id") or "") for result in results}


def _rank(base: KnowledgeBase, kind: Any, question: str, document: str) -> int | None:
    """Return the place of a document among those of the first passages; None beyond."""
    passages = base.search(kind, question, 1000)
    ranked = unique(chunk_id.rpartition("#")[0] for chunk_id, _ in passages)
    return ranked.index(document) + 1 if document in ranked else None
