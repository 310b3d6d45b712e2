"""Conversations whose truth is known by construction, and what a summary keeps of them.

python -m tests.summaries [NAME]    with a name, docs/scores/summary-NAME.md is written too
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from workbench.evaluating.statistics import wilson
from workbench.language.summarizing import MOST, Summary, loads, summarized

ROOT = Path(__file__).resolve().parents[1]
TURNS = (20, 50, 100)
"""Messages of the person; each is answered."""
HEAD = ["", "turns", "recall", "95 %", "statements", "changes", "unanswered", "found", f"last {MOST} characters"]
HEAD += ["stale", "foreign sentences", "longest", "seconds"]
MANY = 20
"""Conversations of each length and language."""

# What is planted: (what the person says, the words that have to be kept). {a} and {b} are drawn anew.
PLANTED = {
    "en": [
        ("My name is {name}.", "{name}"),
        ("I live in {place}.", "{place}"),
        ("By the way, I can't stand {thing}.", "{thing}"),
        ("I really love {other}.", "{other}"),
        ("I work as a {job}.", "{job}"),
        ("I'm allergic to {food}.", "{food}"),
        ("The budget for the {project} is {number} euros.", "{number}"),
        ("Our {project} has to be ready by {day} May.", "{day} May"),
        ("I'm planning a {project} with my sister.", "{project} with my sister"),
        ("Please don't recommend {hated} again.", "{hated}"),
    ],
    "zh": [
        ("我叫{name}。", "{name}"),
        ("我住在{place}。", "{place}"),
        ("对了，我受不了{thing}。", "{thing}"),
        ("我特别喜欢{other}。", "{other}"),
        ("我是一名{job}。", "{job}"),
        ("我对{food}过敏。", "{food}"),
        ("{project}的预算是{number}元。", "{number}"),
        ("{project}要在五月{day}号之前完成。", "五月{day}号"),
        ("我打算和妹妹一起办{project}。", "一起办{project}"),
        ("以后别给我推荐{hated}了。", "{hated}"),
    ],
}
CHANGED = {
    "en": [("I moved to {place}.", "{place}", 1), ("Actually I don't like {other} any more.", "don't like {other}", 3)],
    "zh": [("我上个月搬到{place}了。", "{place}", 1), ("其实我现在不喜欢{other}了。", "不喜欢{other}", 3)],
}
"""What takes the place of one of the planted, by its number."""
DRAWN = {
    "en": {
        "name": ["Marta", "Oluwaseun", "Kirsten", "Pavel"],
        "place": ["Leeds", "Turku", "Porto", "Graz"],
        "thing": ["loud music", "spreadsheets", "horror films", "olives"],
        "other": ["slow trains", "brass bands", "field recordings", "rye bread"],
        "job": ["bookbinder", "surveyor", "dental nurse", "statistician"],
        "food": ["hazelnuts", "shellfish", "penicillin", "latex"],
        "project": ["harvest fair", "reading group", "kitchen rebuild", "river survey"],
        "hated": ["podcasts", "musicals", "cruises", "crypto funds"],
    },
    "zh": {
        "name": ["林晓岚", "周子航", "何静", "欧阳明"],
        "place": ["兰州", "泉州", "大理", "烟台"],
        "thing": ["嘈杂的音乐", "恐怖片", "香菜", "加班文化"],
        "other": ["慢火车", "铜管乐", "黑麦面包", "老相机"],
        "job": ["测绘员", "护士", "统计师", "装订工"],
        "food": ["榛子", "虾", "青霉素", "花粉"],
        "project": ["丰收集市", "读书会", "厨房改造", "河流普查"],
        "hated": ["播客", "音乐剧", "邮轮游", "理财产品"],
    },
}
FILLER = {
    "en": [
        ("Who founded the {w} institute?", "The {w} institute was founded in {n} by Ada {W}. It has {n} members."),
        ("How long is the {w} trail?", "The {w} trail is {n} km long. Most people walk it in spring."),
        ("Which tool reads {w} files?", "{W}Reader opens them since version {n}. Let me know if you need more!"),
        ("Thanks!", "You're welcome."),
        ("That was a long day, it rained again.", "I hope it gets better."),
        ("What does {w} mean in this report?", "In this report {w} stands for the yearly rate. It was {n} last year."),
    ],
    "zh": [
        ("{w}研究所是谁创办的？", "{w}研究所由陈{w}在{n}年创办。它有{n}名成员。"),
        ("{w}步道有多长？", "{w}步道全长{n}公里。春天走的人最多。"),
        ("哪个工具能打开{w}文件？", "从{n}版起，{w}阅读器可以打开。还有什么需要的话请告诉我。"),
        ("谢谢", "不客气。"),
        ("今天真够累的，又下雨了。", "希望明天好一些。"),
        ("报告里的{w}是什么意思？", "报告里的{w}指的是年增长率。去年是{n}。"),
    ],
}
WORDS = {
    "en": "alder basalt cobalt dune ember fjord garnet heron iris jasper",
    "zh": "青松 玄石 钴蓝 沙丘 余烬 峡湾 石榴 苍鹭 鸢尾 碧玉",
}
UNANSWERED = {
    "en": ("What did the {w} bridge cost?", "The corpus does not say.", "{w} bridge cost"),
    "zh": ("{w}大桥花了多少钱？", "资料库没有提到。", "{w}大桥花了多少钱"),
}
FOUND = {
    "en": (
        "Who designed the {w} dam?",
        "The {w} dam was designed by Ines Falk.",
        "Tell me more about the {w} dam by Falk.",
        "Ines Falk",
    ),
    "zh": ("{w}水坝是谁设计的？", "{w}水坝由方怡宁设计。", "再说说方怡宁的{w}水坝。", "方怡宁"),
}


@dataclass
class Truth:
    """A conversation, what has to be kept of it by kind, and what may not be."""

    messages: list[dict[str, str]]
    kept: dict[str, list[str]] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)


def conversation(language: str, turns: int, seed: int) -> Truth:
    """One that is drawn: planted statements, two changes, questions with and without answers, and small talk."""
    draw = random.Random(f"{language} {turns} {seed}")
    given = {name: draw.choice(values) for name, values in DRAWN[language].items()}
    given |= {"number": str(draw.randint(2, 89) * 1000 + 250), "day": str(draw.randint(2, 29))}
    words = WORDS[language].split()
    draw.shuffle(words)
    thanked = {"en": "Noted.", "zh": "记下了。"}[language]
    slots = sorted(draw.sample(range(turns), 10))
    said: dict[int, tuple[str, str]] = {}
    truth = Truth([], {"statements": [], "changes": [], "unanswered": [], "found": []})
    changed = {number for _, _, number in CHANGED[language]}
    for number, slot in zip(draw.sample(range(10), 10), slots, strict=True):
        sentence, words_kept = PLANTED[language][number]
        said[slot] = sentence.format(**given), thanked
        if number in changed:
            truth.stale.append(given["place"] if number == 1 else sentence.format(**given).strip(" .。"))
            later = draw.choice([t for t in range(slot + 1, turns + 6) if t not in said and t not in slots])
            new = {**given, "place": draw.choice([p for p in DRAWN[language]["place"] if p != given["place"]])}
            [(change, kept)] = [(c, k) for c, k, n in CHANGED[language] if n == number]
            said[later] = change.format(**new), thanked
            truth.kept["changes"].append(kept.format(**new))
        else:
            truth.kept["statements"].append(words_kept.format(**given))
    free = [t for t in range(turns + 8) if t not in said]
    one, two, three = sorted(draw.sample(free[: turns - 2], 3))
    question, answer, kept = (text.format(w=words[0]) for text in UNANSWERED[language])
    said[one], truth.kept["unanswered"] = (question, answer), [kept]
    question, answer, again, found = (text.format(w=words[1]) for text in FOUND[language])
    said[two], said[three], truth.kept["found"] = (question, answer), (again, answer), [found]
    for turn in range(max([turns, *(t + 1 for t in said)])):
        if turn not in said:
            word = draw.choice(words[2:])
            asked, told = draw.choice(FILLER[language])
            said[turn] = tuple(t.format(w=word, W=word.title(), n=draw.randint(2, 1990)) for t in (asked, told))
        for role, text in zip(("user", "assistant"), said[turn], strict=True):
            truth.messages.append({"role": role, "content": text})
    return truth


def in_steps(messages: list[dict[str, str]], step: int = 5) -> Summary:
    """The summary that is continued again and again, stored as text in between."""
    summary = None
    for start in range(0, len(messages), step):
        summary = summarized(messages[start : start + step], loads(summary.dumps()) if summary else None)
    assert summary
    return summary


def faithful(summary: Summary, messages: list[dict[str, str]]) -> list[str]:
    """Its sentences that stand in no message."""
    said = "\n".join(message["content"] for message in messages)
    return [s for told in summary.sentences() for s in told.split(" → ") if s not in said]


def measured(language: str, turns: int) -> dict:
    """Over ``MANY`` conversations: what was kept, what was stale, what was not said, how long it is."""
    kinds = ("statements", "changes", "unanswered", "found")
    total = {"kept": dict.fromkeys(kinds, 0), "planted": dict.fromkeys(kinds, 0)}
    total |= {"stale": 0, "old": 0, "foreign": 0, "sentences": 0, "longest": 0, "window": 0, "seconds": 0.0}
    for seed in range(MANY):
        truth = conversation(language, turns, seed)
        started = time.perf_counter()
        summary = in_steps(truth.messages)
        total["seconds"] += (time.perf_counter() - started) / MANY
        text = summary.text(language)
        last = "\n".join(m["content"] for m in truth.messages)[-MOST:]
        for kind in kinds:
            total["kept"][kind] += sum(words in text for words in truth.kept[kind])
            total["planted"][kind] += len(truth.kept[kind])
            total["window"] += sum(words in last for words in truth.kept[kind])
        total["stale"] += sum(old in text for old in truth.stale)
        total["old"] += len(truth.stale)
        total["foreign"] += len(faithful(summary, truth.messages))
        total["sentences"] += len(summary.sentences())
        total["longest"] = max(total["longest"], sum(map(len, summary.sentences())))
    return total


def main() -> None:
    lines = [f"| {' | '.join(HEAD)} |", f"| --- {'| --: ' * (len(HEAD) - 1)}|"]
    for language in ("en", "zh"):
        for turns in TURNS:
            got = measured(language, turns)
            n, of = sum(got["kept"].values()), sum(got["planted"].values())
            low, high = wilson(n, of)
            kinds = " | ".join(f"{got['kept'][k]}/{got['planted'][k]}" for k in got["kept"])
            lines.append(
                f"| {language} | {turns} | {n / of:.0%} | {low:.0%} to {high:.0%} | {kinds} | {got['window'] / of:.0%}"
                f" | {got['stale']}/{got['old']} | {got['foreign']}/{got['sentences']} | {got['longest']}"
                f" | {got['seconds']:.2f} |"
            )
    print("\n".join(lines))
    if len(sys.argv) > 1:
        commit = subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True).strip()
        head = f"# Summaries at {commit}\n\n`python -m tests.summaries`: {MANY} conversations of each kind, drawn;"
        head += " summed up every five messages."
        (ROOT / "docs" / "scores" / f"summary-{sys.argv[1]}.md").write_text(
            f"{head}\n\n" + "\n".join(lines) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
