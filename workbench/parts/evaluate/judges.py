"""Judges of answers: one to five models or prompts grade them one by one.

A judge is ``MODEL``, or ``MODEL@FILE.toml`` with a prompt of its own, so that one model can judge by several prompts.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from workbench.errors import WorkbenchError
from workbench.graphs.roles import say, told_evidence
from workbench.parts.evaluate.measures import percent
from workbench.ports import Context
from workbench.records.prompts import LANGUAGES, fenced
from workbench.state import Data, Json

GRADES = ("correct", "faithful")
_MOST = 5
_SHOWN = 10


class Judging(Protocol):
    """Whoever has judges: a ``Workbench``."""

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a coroutine."""

    def ports(self, judge: str = "", prompts: Data | None = None) -> Context:
        """Return the ports with this judge."""


class Grade(BaseModel):
    """What a judge of an answer fills in."""

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


def panel_of(bench: Judging, judges: Sequence[str]) -> dict[str, Context]:
    """Return the ports of each judge.

    Raises:
        WorkbenchError: there are more than five.
        SettingsError: a file is no prompt for this.
    """
    if len(judges) > _MOST:
        raise WorkbenchError(f"{len(judges)} judges are too many. Name one to {_MOST}.")
    panel = {}
    for judge in judges:
        model, file = read_judge(judge)
        panel[judge] = bench.ports(model, {f"judge.{lang}": file for lang in LANGUAGES} if file else {})
    return panel


def texts_of(row: Data, gold: Sequence[str], run: Any, most: int) -> dict[str, str]:
    """Return what is judged: question, gold answers, answer, and at most ``most`` characters of its evidence."""
    return {
        "question": row["question"],
        "gold": fenced(" / ".join(map(str, gold))),
        "answer": fenced(run.answer or ""),
        "evidence": fenced(told_evidence(run.evidence[:_SHOWN], most)),
    }


def judged(bench: Judging, panel: Mapping[str, Context], answers: Sequence[Mapping[str, str]]) -> Json:
    """Return of each grade the share of the answers on which all judges agree, and on how many they do.

    ``refused`` counts the replies that could not be used.
    """
    grades = [bench.call(_grades(context, answers)) for context in panel.values()]
    votes = list(zip(*grades, strict=True))
    figures: Json = {"judges": ", ".join(panel), "refused": sum(one is None for of in votes for one in of)}
    for name in GRADES:
        verdicts = [{None if one is None else bool(getattr(one, name)) for one in of} for of in votes]
        agreed = [True in verdict for verdict in verdicts if len(verdict) == 1 and None not in verdict]
        figures |= {name: percent(sum(agreed) / len(agreed)) if agreed else None, f"{name} agreed": len(agreed)}
    return figures


async def _grades(context: Context, answers: Sequence[Mapping[str, str]]) -> list[Grade | None]:
    return [(await say(context, "judge", Grade, texts, question=texts["question"])).form for texts in answers]
