"""Judges of answers: models, or prompts of one model, grade them one by one.

A judge is ``MODEL``, or ``MODEL@FILE.toml`` with a prompt of its own, so that one model can judge by several prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from workbench.graphs.roles import ask_model, evidence_text
from workbench.parts.evaluate.measures import percent
from workbench.ports import Context
from workbench.records.prompts import LANGUAGES, fenced
from workbench.state import Data, Json

if TYPE_CHECKING:
    from workbench.session import Workbench

GRADES = ("correct", "faithful")


class Grade(BaseModel):
    """The form that a judge fills in."""

    model_config = ConfigDict(extra="forbid")

    correct: bool
    faithful: bool
    reason: str = Field("", max_length=300)


def read_judge(judge: str) -> tuple[str, Path | None]:
    """Return the model, and the file of the prompt where there is one.

    >>> read_judge("openai:m@strict.toml"), read_judge("openai:m@fast")
    (('openai:m', PosixPath('strict.toml')), ('openai:m@fast', None))
    """
    model, _, file = judge.rpartition("@")
    return (model, Path(file)) if model and file.endswith(".toml") else (judge, None)


def judge_contexts(wb: Workbench, judges: Sequence[str]) -> dict[str, Context]:
    """Return the ports of each judge.

    Raises:
        SettingsError: a file is not a prompt of a judge.
    """
    panel = {}
    for judge in judges:
        model, file = read_judge(judge)
        panel[judge] = wb.ports(
            model, {f"judge.{language}": file for language in LANGUAGES} if file else {}
        )
    return panel


def judged_texts(row: Data, gold: Sequence[str], run: Any, limit: int) -> dict[str, str]:
    """Return what is judged: question, gold answers, answer, and at most ``limit`` characters of its evidence."""
    # Passages of the evidence that a judge reads.
    return {
        "question": row["question"],
        "gold": fenced(" / ".join(map(str, gold))),
        "answer": fenced(run.answer or ""),
        "evidence": fenced(evidence_text(run.evidence[:10], limit)),
    }


def judged(
    wb: Workbench, panel: Mapping[str, Context], answers: Sequence[Mapping[str, str]]
) -> Json:
    """Return, per grade, the share of the answers on which all judges agree, and their number.

    ``refused`` counts the replies that could not be used.
    """
    by_judge = [wb.call(grades(context, answers)) for context in panel.values()]
    votes = list(zip(*by_judge, strict=True))
    figures: Json = {
        "judges": ", ".join(panel),
        "refused": sum(vote is None for group in votes for vote in group),
    }
    for name in GRADES:
        verdicts = [
            {None if vote is None else bool(getattr(vote, name)) for vote in group}
            for group in votes
        ]
        agreed = [
            True in verdict for verdict in verdicts if len(verdict) == 1 and None not in verdict
        ]
        figures |= {
            name: percent(sum(agreed) / len(agreed)) if agreed else None,
            f"{name} agreed": len(agreed),
        }
    return figures


async def grades(context: Context, answers: Sequence[Mapping[str, str]]) -> list[Grade | None]:
    """Return a judge's grade of each answer; None where its reply cannot be used."""
    return [
        (await ask_model(context, "judge", Grade, texts, question=texts["question"])).form
        for texts in answers
    ]
