"""What is done while the kills come: questions over the film corpus with scripted decisions, a long conversation,
adding documents, and what keeps a workspace in order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.shelves import corpus
from workbench.graphs.reviewers import Answer, answer

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
        "recommendation, reviewed", "推荐几部类似《喜宴》的电影", review=("plan", "reflect"),
        answers=(
            {"action": "approve", "note": "先看看"}, {"action": "respond", "message": "要喜剧"},
            {"action": "edit", "point": "plan", "edits": {"thresholds": {"min_evidence": 4}}},
            {"action": "edit", "point": "reflect", "edits": {"rewrite_query": "李安 家庭 喜剧"}},
            {"action": "reject"},
        ),
    ),
    Question(
        "comparison, every wave", "Compare Memento and Inception", review=("step", "reflect"),
        answers=(
            {"action": "edit", "point": "step", "edits": {"thresholds": {"min_evidence": 3}}}, {"action": "approve"},
        ),
    ),
    Question("streamed", "Who directed Memento?", streamed=True),
)  # fmt: skip


@dataclass(frozen=True)
class Talk:
    """A conversation of so many turns over no corpus, the last of them undisturbed."""

    name: str
    turns: int

    def message(self, number: int) -> str:
        """What is said in a turn: something of the person, or a question."""
        return f"I like shelf {number}." if number % 3 else f"What did I say about shelf {number - 1}?"


TALKS = (Talk("a conversation of 200 turns", 200),)


@dataclass(frozen=True)
class Adding:
    """Bringing documents into a knowledge base, or making it anew of what its index holds: the file is gone.

    Attributes:
        first: how many films are there already, added undisturbed.
        then: how many are added, of which some were there before, some differ, and some are gone; 0 for made anew.
    """

    name: str
    first: int
    then: int

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The two corpora as files: before, and as it is to become (in the same place: ``films.jsonl``)."""
        rows = [json.loads(line) for line in FILMS.read_text(encoding="utf-8").splitlines()[: self.first + self.then]]
        before, after = folder / "before.jsonl", folder / "after.jsonl"
        changed = [{**row, "overview": f"{row['overview']}{' Again.' * (not i % 3)}"} for i, row in enumerate(rows)]
        kept = [row for i, row in enumerate(changed) if i % 5 or i >= self.first]
        for path, lines in ((before, rows[: self.first]), (after, kept)):
            path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in lines), encoding="utf-8")
        return before, after


ADDINGS = (Adding("kb add, from nothing", 0, 30), Adding("kb add, a change", 24, 12), Adding("kb rebuild", 24, 0))


@dataclass(frozen=True)
class Keeping:
    """A command that keeps a small workspace in order, or takes a base out of it.

    Attributes:
        left: what processes that were killed have left: files by their paths.
    """

    name: str
    left: tuple[str, ...] = ()

    def furnish(self, wb: Any, films: Path) -> None:
        """Two bases, runs that are done, one that was cancelled, and one that waits."""
        for base in ("film", "other"):
            wb.add_knowledge(base, [corpus(films / f"{base}.jsonl", 8)])
        for number in (2, 3):
            wb.ask(f"Who directed Film {number}?", kb="film")
        wb.ask("Who directed Film 4?", kb="other", review={"reflect"}).cancel()
        wb.ask("Who directed Film 5?", kb="film", review={"reflect"}, session="waits")

    def damage(self, folder: Path) -> None:
        """Do to a workspace that is closed what is to be mended."""
        for name in self.left:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("{}")


_LEFT = (
    *("leases/0123.json", "leases/4567.lock"),
    *("knowledge/.film.rebuild-1/index.db", "knowledge/.other.ready/index.db", "knowledge/.gone.removed-1/index.db"),
    *("knowledge/.gone.lock", "knowledge/.other.holder.json"),
    *("knowledge/film/.sources.json.01234567", "knowledge/other/.arrays.89abcdef"),
)
KEEPINGS = (Keeping("gc --yes", left=_LEFT), Keeping("kb remove"))
