"""How many questions as of a date are answered right, and how many show what came later, over ``data/blind/time``.

python -m tests.score_time [NAME]    with a name, docs/scores/time-NAME.md is written too

``right``: the first sentence has an acceptable value, and no other value of the slot before it; where nothing is known,
the whole answer has no value. ``alone``: right, and the whole answer has no other value of the slot. ``future said``: a
value from after the date stands in the answer; ``future shown``: in it or in the text of its evidence. The plain
way asks the same words without ``as_of``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from workbench import Workbench
from workbench.evaluating.statistics import wilson
from workbench.session import Options
from workbench.text import CJK

from .blind import BLIND, rows

ROOT = BLIND.parents[1]
TIME = BLIND / "time"
HALVES = ("open", "reserved", "third", "fourth")
JUDGED = ("right", "alone", "future said", "future shown")
SPACED = re.compile(rf"(?<={CJK.pattern})[ \t]+|[ \t]+(?={CJK.pattern})")
"""Answers are set with a space between Chinese and digits, corpora are not."""
SENTENCE = re.compile(r"(?<=[.!?])\s+(?!\[)|(?<=[。！？])(?!\s*\[)|\n+")


def first_at(text: str, values: list[str]) -> int | None:
    """Where the first of these values begins, as a whole word or number; None when none is there."""
    text, found = SPACED.sub("", text), []
    for value in values:
        left = r"(?<![a-z0-9.])" if re.match(r"[a-z0-9]", value, re.I) else ""
        right = r"(?![a-z0-9]|\.\d)" if re.search(r"[a-z0-9]$", value, re.I) else ""
        found += [m.start() for m in re.finditer(left + re.escape(value) + right, text, re.I | re.A)]
    return min(found, default=None)


def judged(gold: dict, answer: str, evidence: list[str]) -> dict[str, bool]:
    """What holds of an answer.

    >>> gold = {"answer": ["Ada"], "past": [], "future": ["Karl"]}
    >>> judged(gold, "Ada led it until 2004, then Karl [1].", ["Ada led it."])
    {'right': True, 'alone': False, 'future said': True, 'future shown': True}
    >>> judged({"answer": ["8元"], "past": ["18元"], "future": []}, "收费 8 元 [1]。", [])["alone"]
    True
    """
    wrong = gold["past"] + gold["future"]
    first = SENTENCE.split(answer.strip())[0]
    at, other = first_at(first, gold["answer"]), first_at(first, wrong)
    alone = first_at(answer, wrong) is None
    right = at is not None and (other is None or at < other) if gold["answer"] else alone
    said = first_at(answer, gold["future"]) is not None
    shown = said or any(first_at(text, gold["future"]) is not None for text in evidence)
    return {"right": right, "alone": right and alone, "future said": said, "future shown": shown}


def asked(wb: Workbench, gold: dict, switched: bool) -> dict[str, bool]:
    """A question asked in a conversation of its own, with its date where ``switched``."""
    when = {"as_of": gold["as_of"]} if switched and gold["as_of"] else {}
    run = wb.ask(gold["question"], kb=gold["knowledge"], session=uuid.uuid4().hex, incognito=True, **when)
    return judged(gold, run.answer or "", [one["evidence"] for one in run.evidence])


def measured(half: str, takes: bool) -> Iterator[tuple[dict, dict, dict]]:
    """Each question of a half, what ours and what the plain way is worth: the same run where no date is passed."""
    with tempfile.TemporaryDirectory() as folder, Workbench.open(folder) as wb:
        for base in sorted(path for path in (TIME / half).iterdir() if path.is_dir()):
            report = wb.add_knowledge(f"{half}_{base.name}", [base])
            print(f"{report.name}: {report.added} added, {len(report.problems)} not taken", file=sys.stderr, flush=True)
        for gold in rows(TIME / half / "questions.jsonl"):
            plain = asked(wb, gold, switched=False)
            yield gold, asked(wb, gold, switched=True) if takes and gold["as_of"] else plain, plain


def told(n: int, of: int) -> str:
    low, high = wilson(n, of)
    return f"{n}/{of} = {n / of:.1%} ({low:.0%} to {high:.0%})"


def table(found: list[tuple[dict, dict, dict]]) -> str:
    """Ours with its 95 % interval and the plain way beside it, for all, each language, kind, date, and who says it."""
    lines = [f"| | {' | '.join(f'{name} | plain' for name in JUDGED)} |", "| --- |" + " --: |" * (2 * len(JUDGED))]
    groups = {"all": found}
    for key in ("language", "kind", "when", "by"):
        for value in sorted({gold[key] for gold, *_ in found}):
            groups[f"{key}: {value}"] = [row for row in found if row[0][key] == value]
    for name, some in groups.items():
        cells = []
        for what in JUDGED:
            ours, plain = (sum(row[n][what] for row in some) for n in (1, 2))
            cells += [told(ours, len(some)), f"{plain / len(some):.1%}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    takes = "as_of" in Options.__annotations__
    found = {half: list(measured(half, takes)) for half in HALVES}
    text = "\n\n".join(f"**{half}**\n\n{table(some)}" for half, some in found.items())
    text += "" if takes else "\n\nThe date was not passed: `ask` takes no `as_of`, so ours is the plain way."
    missed = [
        f"| {gold['question']} | {gold['as_of'] or ''} | {', '.join(gold['answer']) or 'nothing'} |"
        for half in HALVES
        for gold, ours, _ in found[half]
        if half != "third" and not ours["right"]
    ]
    seen = "\n".join(["| not right, without `third` | as of | gold |", "| --- | --- | --- |", *missed])
    print(text)
    for name in sys.argv[1:]:
        commit = subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True).strip()
        head = f"# Facts in time, at {commit}\n\n`python -m tests.score_time`: `data/blind/time` in fresh workspaces."
        Path(ROOT / "docs" / "scores" / f"time-{name}.md").write_text(f"{head}\n\n{text}\n\n{seen}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
