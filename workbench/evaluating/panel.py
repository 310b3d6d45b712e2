"""Judges of answers: one to five models or prompts grade them one by one, or say which of two ways' answers is better.

A judge is ``MODEL``, or ``MODEL@FILE.toml`` with a prompt of its own, so that one model can judge by several prompts.
Two answers are compared in both orders; a judge has said something where both orders say the same (Zheng et al.,
NeurIPS 2023, on the bias for a place), the panel where all of its judges have said the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from workbench.errors import WorkbenchError
from workbench.evaluating.statistics import Bootstrap, percent
from workbench.graphs.cards import told_evidence
from workbench.graphs.roles import say
from workbench.ports import Context
from workbench.records.prompts import LANGUAGES, fenced

MARKS = re.compile(r"\s?\[\d+\]")
"""Citations in an answer."""
GRADES = ("correct", "faithful")
_MOST = 5
_SHOWN = 10
_GRADE, _COMPARE = "judge", "judge_pairs"
Asked = Mapping[str, str]
"""What is judged: the texts that ``records.store.JUDGED`` names."""


class Judging(Protocol):
    """Whoever has judges: a ``Workbench``."""

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a coroutine."""

    def ports(self, judge: str = "", prompts: Mapping[str, Any] | None = None) -> Context:
        """The ports with this judge."""


class Judged(BaseModel):
    """What a judge of one answer fills in."""

    model_config = ConfigDict(extra="forbid")

    correct: bool
    faithful: bool
    reason: str = Field("", max_length=300)


class Better(BaseModel):
    """What a judge of two answers fills in."""

    model_config = ConfigDict(extra="forbid")

    better: Literal["first", "second", "tie"]
    reason: str = Field("", max_length=300)


def read_judge(judge: str) -> tuple[str, Path | None]:
    """The model and the file of the prompt, where there is one.

    >>> read_judge("openai:m@strict.toml"), read_judge("openai:m@fast")
    (('openai:m', PosixPath('strict.toml')), ('openai:m@fast', None))
    """
    model, _, file = judge.rpartition("@")
    return (model, Path(file)) if model and file.endswith(".toml") else (judge, None)


def panel_of(bench: Judging, judges: Sequence[str], pairs: bool = False) -> list[Context]:
    """The ports of each judge, to grade or to compare.

    Raises:
        WorkbenchError: there are more than five.
        SettingsError: a file is no prompt for this.
    """
    if len(judges) > _MOST:
        raise WorkbenchError(f"{len(judges)} judges are too many. Name one to {_MOST}.")
    prompt, found = _COMPARE if pairs else _GRADE, []
    for model, file in map(read_judge, judges):
        own = {f"{prompt}.{language}": file for language in LANGUAGES} if file else {}
        found.append(bench.ports(model, own))
    return found


def asked_of(row: Mapping[str, Any], run: Any, most: int) -> dict[str, str]:
    """An answer as it is judged: with its question, the gold answer, and at most ``most`` characters of evidence."""
    gold = [row["answer"]] if "answer" in row else row.get("answers", [])
    return {
        "question": row["question"],
        "gold": " / ".join(map(str, gold)),
        "answer": run.answer or "",
        "evidence": told_evidence(run.evidence[:_SHOWN], most),
    }


def graded(bench: Judging, panel: Sequence[Context], answers: Sequence[Asked]) -> list[dict[str, list[bool | None]]]:
    """What each judge says of each answer, by grade; None for a reply that could not be used."""
    said = [bench.call(_graded(context, answers)) for context in panel]
    return [
        {name: [None if one is None else getattr(one, name) for one in of] for name in GRADES}
        for of in zip(*said, strict=True)
    ]


async def _graded(context: Context, answers: Sequence[Asked]) -> list[Judged | None]:
    said = []
    for one in answers:
        slots = {
            "question": one["question"],
            "gold": fenced(one["gold"]),
            **{name: fenced(one[name]) for name in ("answer", "evidence")},
        }
        said.append((await say(context, _GRADE, Judged, slots, question=one["question"])).form)
    return said


def told_grades(judges: Sequence[str], votes: Sequence[Mapping[str, Sequence[bool | None]]]) -> dict[str, Any]:
    """What a panel says: shares of the answers on which all agree, on how many they do, and Krippendorff's alpha."""
    refused = sum(vote is None for of in votes for vote in of["correct"])
    found: dict[str, Any] = {"judges": list(judges), "refused": refused}
    for name in GRADES:
        agreed = [of[name][0] for of in votes if None not in of[name] and len(set(of[name])) == 1]
        found[name] = percent(sum(map(bool, agreed)) / len(agreed)) if agreed else None
        found[f"{name} agreed"], found[f"{name} alpha"] = len(agreed), alpha([of[name] for of in votes])
    return found


def compared(
    bench: Judging,
    judges: Sequence[str],
    panel: Sequence[Context],
    answers: Mapping[str, Asked],
    against: Mapping[str, Asked],
    bootstrap: Bootstrap,
) -> dict[str, Any]:
    """How often a way's answers are better than another's, by question; the same answer is no question to a judge.

    Wins, ties, losses and what is undecided are counts; ``difference`` is wins less losses in percent of all questions,
    with its interval. ``alpha`` is over every judge in every order. ``orders`` has, by judge, of how many answers both
    orders could be used, in how many percent they contradict, and how often for the first or the second place.
    """
    asked = {i for i in answers if MARKS.sub("", answers[i]["answer"]) != MARKS.sub("", against[i]["answer"])}
    ids = [i for i in answers if i in asked]
    said = [bench.call(_compared(context, [(answers[i], against[i]) for i in ids])) for context in panel]
    votes = {i: [of[n] for of in said] for n, i in enumerate(ids)}
    verdicts = {i: verdict(votes[i]) if i in asked else "tie" for i in answers}
    count = Counter(verdicts.values())
    won, lost = ({i: float(said == which) for i, said in verdicts.items()} for which in ("win", "loss"))
    return {
        "judges": list(judges),
        **{name: count[which] for name, which in (("wins", "win"), ("ties", "tie"), ("losses", "loss"))},
        "undecided": count[None],
        "alike": len(answers) - len(ids),
        **bootstrap.compare({"wins": won}, {"wins": lost})["wins"],
        "alpha": alpha([[vote for orders in votes[i] for vote in orders] for i in ids]),
        "orders": [{"judge": name, **_orders(of)} for name, of in zip(judges, said, strict=True)],
    }


Orders = tuple[str | None, str | None]
"""What a judge says of a way with its answer first, and with its answer second: win, tie or loss."""


async def _compared(context: Context, pairs: Sequence[tuple[Asked, Asked]]) -> list[Orders]:
    said = []
    for one, other in pairs:
        ahead = await _better(context, one, other)
        behind = await _better(context, other, one)
        said.append((_WHEN_FIRST.get(ahead), _WHEN_SECOND.get(behind)))
    return said


_WHEN_FIRST = {"first": "win", "second": "loss", "tie": "tie"}
_WHEN_SECOND = {"first": "loss", "second": "win", "tie": "tie"}


async def _better(context: Context, first: Asked, second: Asked) -> str:
    slots = {
        "question": first["question"],
        "gold": fenced(first["gold"]),
        "first": fenced(MARKS.sub("", first["answer"])),
        "second": fenced(MARKS.sub("", second["answer"])),
    }
    said = await say(context, _GRADE, Better, slots, question=first["question"], prompt=_COMPARE)
    return said.form.better if said.form else ""


def verdict(votes: Sequence[Orders]) -> str | None:
    """What all judges say in both orders; None where they do not.

    >>> verdict([("win", "win"), ("win", "win")]), verdict([("win", "loss")]), verdict([("win", None)])
    ('win', None, None)
    """
    said = {vote for orders in votes for vote in orders}
    return said.pop() if len(said) == 1 else None


def _orders(said: Sequence[Orders]) -> dict[str, Any]:
    usable = [orders for orders in said if None not in orders]
    apart = [orders for orders in usable if len(set(orders)) > 1]
    return {
        "usable": len(usable),
        "contradict": percent(len(apart) / len(usable)) if usable else None,
        "first": apart.count(("win", "loss")),
        "second": apart.count(("loss", "win")),
    }


def alpha(votes: Sequence[Sequence[Any]]) -> float | None:
    """Krippendorff's alpha of nominal votes, a row an item, None for no vote; None where it cannot be said.

    >>> alpha([[True, True], [False, False], [True, False]]), alpha([[True], [False]])
    (0.444, None)
    """
    items = [[v for v in row if v is not None] for row in votes]
    items = [row for row in items if len(row) > 1]
    every = Counter(v for row in items for v in row)
    n = sum(every.values())
    expected = n * n - sum(count * count for count in every.values())
    if not items or not expected:
        return None
    apart = sum((len(row) ** 2 - sum(c * c for c in Counter(row).values())) / (len(row) - 1) for row in items)
    return round(1 - (n - 1) * apart / expected, 3)
