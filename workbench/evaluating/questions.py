"""How many answers are right: every question of a file is asked, and its answer compared with the gold one.

A row of the table is a JSON object: ``id``, ``question``, and the gold of ``judging``. More, where there is any:

    kind, split     by which the table is split: dev was looked at while something was built, test was not
    earlier         questions asked before, in the same conversation
    session         rows that are one conversation, in their order

A row without gold is asked and not judged: those that follow may stand on it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypedDict

from workbench.evaluating.judging import NOTHING, Piece, Words, held, judge, piece_of
from workbench.evaluating.rankings import read_rows
from workbench.evaluating.statistics import percent, wilson
from workbench.text import sentences

USER = "evaluation"
BASELINE = "{kb}:naive_rag_agent:retrieve_only"
"""One vector search: the first two sentences of its best passage, cited, are what the whole path has to beat."""

GOLD = ("must", "some", "list", "number", "refuse", "must_not")
COUNTS = ("right", "rightly refused", "refused over evidence", "false", "baseline")
"""``refused over evidence``: though one of the first three pieces holds what answers."""


class Bench(Protocol):
    """Whoever answers questions: a ``Workbench``."""

    def ask(self, message: str, *, kb: str, session: str, user: str, worker: str, incognito: bool) -> Any:
        """Ask and wait: a run."""


class Score(TypedDict):
    """One question, what was said, and what is wrong with it; ``baseline``: whether the best passage answers it."""

    id: str
    kind: str
    split: str
    question: str
    said: str
    right: bool
    refused: bool
    refusal_is_right: bool
    over_evidence: bool
    false: bool
    wrong: list[str]
    baseline: bool


def read_questions(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file.

    Raises:
        CorpusError: names the file and the line that is no such row.
    """
    return read_rows(path, "id", "question")


def score_questions(
    bench: Bench,
    rows: Sequence[Mapping[str, Any]],
    *,
    kb: str,
    words: Words = NOTHING,
    baseline: bool = True,
    keep: bool = False,
    each: Callable[[Mapping[str, Any], Any], None] | None = None,
) -> list[Score]:
    """Ask every question, and search for it once more for the baseline, each conversation in a session of its own.

    Args:
        bench: a ``Workbench``.
        rows: as ``read_questions`` gives them.
        kb: the knowledge base.
        words: the vocabulary of its corpus.
        baseline: whether to search for the best passage too.
        keep: write the runs down, so that they can be looked at later; else they are incognito.
        each: called with the row and the run of each question as they come, the baseline's left out.
    """
    ask = partial(bench.ask, kb=kb, user=USER, incognito=not keep)
    scores = []
    fresh = uuid.uuid4().hex[:8]  # a conversation of the last evaluation is no part of this one
    for row in rows:
        session = f"{USER}-{fresh}-{row.get('session') or row['id']}"
        for question in row.get("earlier", ()):
            ask(question, session=session, worker="")
        run = ask(row["question"], session=session, worker="")
        if each:
            each(row, run)
        if any(name in row for name in GOLD):
            plain = baseline and ask(row["question"], session=f"{session}-plain", worker=BASELINE.format(kb=kb))
            scores.append(score(row, run, words, plain or None))
    return scores


def score(row: Mapping[str, Any], run: Any, words: Words = NOTHING, plain: Any = None) -> Score:
    """Hold one run against its row, and the best passage of another."""
    pieces = [piece_of(result) for result in run.evidence]
    verdict = judge(row, (run.answer or "") if run.status == "done" else "", pieces, words)
    found = [piece_of(result) for result in plain.evidence[:1]] if plain else []
    refuse = bool(row.get("refuse"))
    return Score(
        id=row["id"],
        kind=row.get("kind", ""),
        split=row.get("split", ""),
        question=row["question"],
        said=run.answer or "",
        right=verdict["right"],
        refused=verdict["refused"],
        refusal_is_right=refuse and verdict["right"],
        over_evidence=verdict["refused"] and not refuse and held(row, pieces[:3]),
        false=verdict["false"],
        wrong=verdict["wrong"],
        baseline=bool(found) and judge(row, best_passage(found, plain.evidence[0]["evidence"]), found, words)["right"],
    )


def best_passage(found: Sequence[Piece], text: str) -> str:
    """Its first two sentences, cited."""
    return " ".join(f"{sentence} [1]" for sentence in sentences(text)[:2]) if found else ""


def counted(scores: Sequence[Score]) -> dict[str, int]:
    """How many there are of each of ``COUNTS``, and how many were asked."""
    names = ("right", "refusal_is_right", "over_evidence", "false", "baseline")
    return {"asked": len(scores)} | {
        told: sum(s[name] for s in scores)  # type: ignore[literal-required]
        for told, name in zip(COUNTS, names, strict=True)
    }


def table_text(groups: Mapping[str, Sequence[Score]], *, told: bool = True) -> str:
    """The table for people, a line a group, then what is wrong; what was tried on ``test`` is not told, only counted.

    >>> score = Score(id="1", kind="", split="dev", question="Who?", said="", right=False, refused=False,
    ...     refusal_is_right=False, over_evidence=False, false=False, wrong=["missing: Lao She of mv1"], baseline=True)
    >>> print(table_text({"all": [score]}))
                    right      95 %      rightly refused   refused over evidence   false   baseline
    all               0/1    0-79 %                    0                       0       0          1
      1 Who? -> missing: Lao She of mv1
    """
    lines = [f"{'':<16}{'right':>5}{'95 %':>10}      {COUNTS[1]}   {COUNTS[2]}   {COUNTS[3]}   {COUNTS[4]}"]
    for name, scores in groups.items():
        n = counted(scores)
        low, high = (round(percent(share)) for share in wilson(n["right"], n["asked"]))
        right = f"{n['right']}/{n['asked']}"
        cells = [f"{n[name]:>{width}}" for name, width in zip(COUNTS[1:], (21, 24, 8, 11), strict=True)]
        lines.append(f"{name:<14}{right:>7}{f'{low}-{high} %':>10}{''.join(cells)}")
    shown = {s["id"]: s for scores in groups.values() for s in scores if told and s["split"] != "test" and s["wrong"]}
    return "\n".join([*lines, *(f"  {i} {s['question']} -> {'; '.join(s['wrong'])}" for i, s in shown.items())])


def split(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """By ``split`` where there is any, and all of them."""
    names = dict.fromkeys(s["split"] for s in scores if s["split"])
    return {name: [s for s in scores if s["split"] == name] for name in names} | {"all": list(scores)}
