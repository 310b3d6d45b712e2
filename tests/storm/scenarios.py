"""What is done while the kills come: questions over the film corpus with scripted decisions, and adding documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.reviewers import Answer, answer

FILMS = Path(__file__).resolve().parent.parent.parent / "data" / "films.jsonl"


@dataclass(frozen=True)
class Question:
    """One run: the message, where a person decides, what they decide, and what was said before.

    Attributes:
        answers: by the number of the review; after the last one everything is approved.
        before: earlier questions of the same session, asked undisturbed.
        streamed: the answer comes from a chat model, token by token.
    """

    name: str
    message: str
    review: tuple[str, ...] = ()
    answers: tuple[Mapping[str, Any], ...] = ()
    before: tuple[str, ...] = ()
    streamed: bool = False

    def answer(self, review_id: str) -> Answer:
        """What the person says at this review point."""
        number = int(review_id.split("-")[0])
        return answer(**self.answers[number]) if number < len(self.answers) else answer("approve")


QUESTIONS = (
    Question("a fact", "喜宴哪一年上映？"),
    Question("a follow-up", "它的导演还拍过哪些电影？", before=("喜宴哪一年上映？",)),
    Question(
        "recommendation, reviewed",
        "推荐几部类似《喜宴》的电影",
        review=("plan", "reflect"),
        answers=(
            {"action": "approve", "note": "先看看"},
            {"action": "respond", "message": "要喜剧"},
            {"action": "edit", "point": "plan", "edits": {"thresholds": {"min_evidence": 4}}},
            {"action": "edit", "point": "reflect", "edits": {"rewrite_query": "李安 家庭 喜剧"}},
            {"action": "reject"},
        ),
    ),
    Question(
        "comparison, every wave",
        "Compare Memento and Inception",
        review=("step", "reflect"),
        answers=(
            {"action": "edit", "point": "step", "edits": {"thresholds": {"min_evidence": 3}}},
            {"action": "approve"},
        ),
    ),
    Question("streamed", "Who directed Memento?", streamed=True),
)


@dataclass(frozen=True)
class Adding:
    """Bringing documents into a knowledge base, or making it anew of what its index holds: the file is gone.

    Attributes:
        first: how many films are there already, added undisturbed.
        then: how many are added, of which some were there before, some differ, and some are gone; 0 for made anew.
        part: passages in a part of the graph, which grows then also where there are few; 0 for what the settings say.
    """

    name: str
    first: int
    then: int
    part: int = 0

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The two corpora as files: before, and as it is to become (in the same place: ``films.jsonl``)."""
        rows = [json.loads(line) for line in FILMS.read_text(encoding="utf-8").splitlines()[: self.first + self.then]]
        before, after = folder / "before.jsonl", folder / "after.jsonl"
        changed = [
            {**row, "overview": f"{row['overview']} Seen again."} if i % 3 == 0 else row for i, row in enumerate(rows)
        ]
        kept = [row for i, row in enumerate(changed) if i % 5 or i >= self.first]
        for path, lines in ((before, rows[: self.first]), (after, kept)):
            path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in lines), encoding="utf-8")
        return before, after


ADDINGS = (
    Adding("kb add, from nothing", 0, 30),
    Adding("kb add, a change", 24, 12),
    Adding("kb add, from nothing, in parts", 0, 30, 8),
    Adding("kb add, more, in parts", 24, 12, 8),
    Adding("kb rebuild", 24, 0),
    Adding("kb rebuild, in parts", 24, 0, 8),
)
