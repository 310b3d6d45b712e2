"""How single messages are read: what is worth remembering, and whether an answer is wanted, over the frozen messages.

python -m tests.score_memory [NAME]    with a name, docs/scores/memory-NAME.md is written too
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from workbench.evaluating.statistics import wilson
from workbench.knowledge.indexes.keywords import stem
from workbench.language.statements import asks, read_statements
from workbench.text import CJK, fold

from .blind import BLIND, rows

ROOT = BLIND.parents[1]
JUDGED = ("kind", "polarity", "about", "also_question")


def units(text: str) -> Counter[str]:
    """Stems of words, and each Chinese character by itself."""
    spaced = CJK.sub(lambda match: f" {match[0]} ", fold(text))
    return Counter(stem(word) for word in "".join(c if c.isalnum() else " " for c in spaced).split())


def near(one: str, other: str) -> bool:
    """Whether two notes share most of their words: F1 of at least 0.6."""
    a, b = units(one), units(other)
    return 2 * (a & b).total() >= 0.6 * (a.total() + b.total())


def ours(row: dict) -> dict:
    """What ``read_statements`` makes of a message."""
    read = read_statements(row["text"], [row["earlier"]] if row.get("earlier") else [])
    wants = bool(read.recalls) or asks(read.rest)
    if read.recalls:
        return {"kind": "recall", "polarity": None, "about": [read.recalls.about], "also_question": wants}
    first = max(read.statements, key=lambda s: s.kind == "correction", default=None)
    if not first:
        return {"kind": "none", "polarity": None, "about": [], "also_question": wants}
    about = [s.about for s in read.statements if s.kind == first.kind]
    return {"kind": first.kind, "polarity": first.polarity or None, "about": about, "also_question": wants}


def keyword(row: dict) -> dict:
    """The plain way: a preference where a word of liking stands, a question where a question mark does."""
    low = row["text"].lower()
    word = next((word for word in ("like", "love", "喜欢", "爱") if word in low), "")
    against = any(no in low for no in ("n't", "not ", "不"))
    asks = low.rstrip().endswith(("?", "？"))
    about = [low.partition(word)[2].strip(" .。!！,，")] if word else []
    polarity = ("dislike" if against else "like") if word else None
    return {"kind": "preference" if word else "none", "polarity": polarity, "about": about, "also_question": asks}


def right(row: dict, said: dict) -> dict[str, bool]:
    """Which of what is judged is right; ``about`` of a message that states nothing: nothing is said of it."""
    about = any(near(row["about"], one) for one in said["about"]) if row["about"] else not said["about"]
    return {**{name: row[name] == said[name] for name in JUDGED}, "about": about}


def table(some: list[dict]) -> list[str]:
    """A row for each thing judged: ours, the most frequent value, the plain way."""
    marks = {name: [right(row, read(row)) for row in some] for name, read in (("ours", ours), ("keyword", keyword))}
    lines = ["| | right | 95 % | majority | keyword |", "| --- | --: | --: | --: | --: |"]
    for name in JUDGED:
        n = sum(mark[name] for mark in marks["ours"])
        low, high = wilson(n, len(some))
        most = Counter(str(row[name]) for row in some).most_common(1)[0][1]
        plain = sum(mark[name] for mark in marks["keyword"])
        lines.append(f"| {name} | {n}/{len(some)} = {n / len(some):.0%} | {low:.0%} to {high:.0%} | {most} | {plain} |")
    return [*lines, *kinds(some, marks)]


def kinds(some: list[dict], marks: dict[str, list[dict]]) -> list[str]:
    """Of the messages read as a statement or a question for the conversation, and of those that are: the right ones."""
    lines = []
    for name, of in (("precision", lambda row: ours(row)["kind"]), ("recall", lambda row: row["kind"])):
        hit = [mark["kind"] for row, mark in zip(some, marks["ours"], strict=True) if of(row) != "none"]
        low, high = wilson(sum(hit), len(hit))
        lines.append(f"| {name} | {sum(hit)}/{len(hit)} = {sum(hit) / len(hit):.0%} | {low:.0%} to {high:.0%} | | |")
    return lines


def wrong(some: list[dict]) -> list[str]:
    """What is wrong, where it may be looked at."""
    found = []
    for row in some:
        said = ours(row)
        bad = [f"{name} {said[name]!r} for {row[name]!r}" for name, ok in right(row, said).items() if not ok]
        if bad:
            found.append(f"| {row['text']} | {'; '.join(bad)} |".replace("\n", " "))
    return found


def main() -> None:
    halves = {
        f"{name}.jsonl, {half}": [row for row in rows(BLIND / "memory" / f"{name}.jsonl") if row["split"] == half]
        for name in ("statements", "said")
        for half in ("dev", "test")
    }
    told = "\n\n".join("\n".join([f"**{name}**", "", *table(some)]) for name, some in halves.items())
    bad = [line for name, some in halves.items() if name.endswith("dev") for line in wrong(some)]
    seen = "\n".join(["| message of `dev` | what is wrong |", "| --- | --- |", *bad])
    print(f"{told}\n\n{seen}" if "--wrong" in sys.argv else told)
    for name in [arg for arg in sys.argv[1:] if not arg.startswith("--")]:
        commit = subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True).strip()
        head = (
            f"# Statements read, at {commit}\n\n`python -m tests.score_memory`: single messages of `data/blind/memory`."
        )
        path = Path(ROOT / "docs" / "scores" / f"memory-{name}.md")
        path.write_text(f"{head}\n\n{told}\n\n{seen}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
