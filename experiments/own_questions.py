"""Ask the sixty questions of our own (``experiments/questions``) and count what the answers are worth.

    python experiments/own_questions.py [--half fit|report|both] [--show]

The three corpora are indexed into a temporary workspace with the default models, and every question is asked by
``Workbench.ask``, as a user who has said nothing before, on the day of asking. ``--show`` prints the answers of the
half ``fit``; of the half ``report`` nothing but counts is ever printed. Columns:

right     the answer has all that is right and nothing that is wrong, and is of the expected kind
useful    it has all that is right and nothing that is wrong, but is of another kind
denied    it says that the corpus has nothing, with what is right in the evidence
invented  it has a name, a number or a quotation that neither the corpus nor the question has
dropped   conditions that were neither understood, nor named as not applied, nor are in the answer
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from workbench.ports import SystemClock
from workbench.runs.run import Run
from workbench.session import Workbench
from workbench.settings import default_settings
from workbench.text import fold, sentences

FOLDER = Path(__file__).resolve().parent / "questions"
MORNING = datetime(2026, 11, 25, 9, tzinfo=UTC)
BASES = {"诗社": "poetry"}
"""What a knowledge base is called, where its folder's name is not allowed."""
OUTCOMES = ("right", "useful", "denied", "invented", "dropped")
SURE = ("fields", "quotation")
MARK = re.compile(r"\s*\[\d+(?:[,，]\s*\d+)*\]")
ITEM = re.compile(r"\s*(?:[-*]|\d+[.、])\s")
SHORTEST = 8
"""Characters of a sentence that is a quotation and no value."""
SOURCE = re.compile(r"\s*[（(][^（()）]*[)）](?=[.。!！?？；]?$)")
HEAD = re.compile(r"\d+ (?:documents?|results?)|共?\s*\d+\s*(?:篇|份|条|个|位|首|部)")
QUOTED = re.compile(r"[“「《](.+?)[”」》]|(?<!\*)\*([^*\n]+)\*(?!\*)")
NUMBER = re.compile(r"\d{4}-\d{2}(?:-\d{2})?|\d+(?:,\d{3})*(?:\.\d+)?")
NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w'’-]+")


class DayOfAsking(SystemClock):
    """A clock that goes, and says that it is the day of asking."""

    def __init__(self) -> None:
        super().__init__()
        self._start = self.monotonic()

    def now(self) -> datetime:
        """Return the time of day since the morning of asking."""
        return MORNING + timedelta(seconds=self.monotonic() - self._start)


class Score(NamedTuple):
    """What one answer is worth.

    Attributes:
        question: its row.
        kind: of the answer.
        counts: by the names of ``OUTCOMES``.
        answer: its text.
        why: what was invented and dropped.
    """

    question: dict[str, Any]
    kind: str
    counts: dict[str, int]
    answer: str
    why: list[str]


def main() -> None:
    """Ask, and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=("fit", "report", "both"), default="both")
    parser.add_argument("--show", action="store_true", help="print the answers of the half fit")
    args = parser.parse_args()
    lines = (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    scores = list(score_all(q for q in questions if args.half in (q["half"], "both")))
    for score in scores:
        if args.show and score.question["half"] == "fit":
            sys.stdout.write(described(score))
    for half in ("fit", "report"):
        sys.stdout.write(
            table(half, [score for score in scores if score.question["half"] == half])
        )


def score_all(questions: Iterable[dict[str, Any]]) -> Iterator[Score]:
    """Index the corpora, ask the questions, and yield their scores."""
    with (
        # "last month" is the same on every day of running
        patch("workbench.session.SystemClock", DayOfAsking),
        tempfile.TemporaryDirectory() as folder,
        Workbench.open(folder, default_settings()) as wb,
    ):
        corpora: dict[str, str] = {}
        for question in questions:
            kb = question["kb"]
            name = BASES.get(kb, kb)
            if kb not in corpora:
                wb.add_knowledge(name, [FOLDER / kb], lambda *_: None)
                files = [path for path in (FOLDER / kb).rglob("*") if path.is_file()]
                corpora[kb] = "\n".join(
                    f"{path.stem}\n{path.read_text(encoding='utf-8')}" for path in files
                )
            run = wb.ask(
                question["question"], kb=name, session=question["id"], user=question["id"]
            )
            yield score_run(question, run, corpora[kb])


def score_run(question: dict[str, Any], run: Run, corpus: str) -> Score:
    """Hold an answer against what is right, its evidence and its corpus."""
    answer = run.answer
    evidence = json.dumps(run.evidence, ensure_ascii=False)
    route: dict[str, Any] = dict(run.state["route_decision"] or {})
    understood = dict(route.get("question") or {})
    kind = kind_of(run)
    whole = all(re.search(right, answer) for right in question["right"])
    clean = whole and not any(re.search(wrong, answer) for wrong in question["wrong"])
    right = clean and is_expected(question, kind)
    in_evidence = all(
        re.search(r, evidence) or not re.search(r, corpus) for r in question["right"]
    )
    answerable = question["kind"] in (*SURE, "recommend")
    is_denied = kind == "nothing" and answerable and bool(run.evidence) and in_evidence
    known = f"{corpus}\n{question['question']}\n{json.dumps(understood, ensure_ascii=False)}"
    invented = list(inventions(answer, kind, known, question["right"]))
    heard = conditions_in(understood, route.get("filters"), answer)
    dropped = [
        condition for condition in question["conditions"] if not re.search(condition, heard)
    ]
    useful = clean and not right and (kind in (*SURE, "closest") or kind == question["kind"])
    counts = (right, useful and bool(question["right"]), is_denied, bool(invented), len(dropped))
    why = [
        *(f"invented {text!r}" for text in invented),
        *(f"dropped {text!r}" for text in dropped),
    ]
    return Score(question, kind, dict(zip(OUTCOMES, map(int, counts), strict=True)), answer, why)


def conditions_in(understood: dict[str, Any], filters: Any, answer: str) -> str:
    """Return where a condition may be: as understood, as not applied, or in the answer outside its list.

    A date in a list's item is not a condition that was applied.
    """
    keys = ("conditions", "sort", "limit", "understood", "not_applied", "date_asked")
    names = [name["name"] for name in understood.get("names", [])]
    lines = [line for line in answer.split("\n") if not ITEM.match(line)]
    return json.dumps(
        [filters, names, lines, *(understood.get(key) for key in keys)], ensure_ascii=False
    )


def kind_of(run: Run) -> str:
    """Return the kind of an answer; ``talk`` for one without a search."""
    if run.status == "paused":
        return "asks"
    return run.state["answer_kind"] or "talk"


def is_expected(question: dict[str, Any], kind: str) -> bool:
    """Return True where an answer is of the kind that a question asks for."""
    expected = question["kind"]
    if expected == "closest":
        return kind in ("closest", "nothing")
    if expected == "recommend" or (expected == "asks" and question["right"]):
        return kind in (*SURE, expected)
    return kind == expected


def inventions(answer: str, kind: str, known: str, right: list[str]) -> Iterator[str]:
    """Yield what of an answer is in neither the corpus nor the question.

    Sentences of the corpus are left out; of the rest, numbers, names within a sentence and whatever is quoted are
    looked up. A number that was computed is known when it is right; one that is wrong is not right, and no invention.
    """
    if kind not in (*SURE, "closest"):
        return
    numbers = {as_number(number) for number in NUMBER.findall(known)}
    for text in sentences(MARK.sub("", answer)):
        if is_verbatim(text, known):
            continue
        rest = HEAD.sub("", text)
        for pattern in right:
            rest = re.sub(pattern, "", rest)
        yield from (n for n in NUMBER.findall(rest) if as_number(n) not in numbers)
        yield from (name for name in NAME.findall(rest) if fold(name) not in fold(known))
        for first, second in QUOTED.findall(rest):
            # A field is quoted as "name: value", which is so in no file.
            parts = re.split(r"[:：]\s*", first or second)
            if not all(is_verbatim(part, known) for part in parts):
                yield first or second


def is_verbatim(text: str, known: str) -> bool:
    """Return True where a text is in the corpus as it is, but for its number and the title behind it."""
    text = MARK.sub("", text).strip()
    return any(squeezed(bare(part)) in squeezed(known) for part in (text, SOURCE.sub("", text)))


def bare(text: str) -> str:
    """Return a sentence without its marks, bullets and outer punctuation."""
    return MARK.sub("", text).strip(" -*“”\"'.。!！?？；…\n")


def squeezed(text: str) -> str:
    """Return a text without the spaces and signs that a format adds."""
    return re.sub(r"[\s*#\[\]“”\"]+", "", fold(text))


def as_number(text: str) -> str:
    """Return a number as it is compared: ``48.50`` is ``48.5``, a date stays a date."""
    return text if "-" in text else f"{float(text.replace(',', '')):g}"


def described(score: Score) -> str:
    """Return a question of the half ``fit`` with its answer and outcome."""
    question = score.question
    outcome = ", ".join(name for name in OUTCOMES if score.counts[name]) or "wrong"
    head = f"{question['id']} {question['kb']} {question['kind']}: {question['question']}"
    return "\n  ".join([head, f"[{score.kind}: {outcome}] {score.answer}", *score.why]) + "\n\n"


def table(half: str, scores: list[Score]) -> str:
    """Return the counts of one half: by knowledge base, language and kind, and over all."""
    if not scores:
        return ""
    rows: list[tuple[str, ...]] = [("", "asked", *OUTCOMES)]
    groups = [(key, value) for key in ("kb", "lang", "kind") for value in values_of(key, scores)]
    for key, value in [*groups, ("half", half)]:
        group = [score for score in scores if score.question[key] == value]
        sums: Counter[str] = Counter()
        for score in group:
            sums.update(score.counts)
        rows.append((value, str(len(group)), *(str(sums[name]) for name in OUTCOMES)))
    return "\n".join(["", *("\t".join(row).expandtabs(12) for row in rows), ""])


def values_of(key: str, scores: list[Score]) -> list[str]:
    """Return the values of a key of the questions, in their order."""
    return list(dict.fromkeys(score.question[key] for score in scores))


if __name__ == "__main__":
    main()
