"""The scorer can fail: right answers pass, and of the same answers spoilt in each of many ways hardly any."""

from __future__ import annotations

import re
from functools import cache

import pytest

from workbench.evaluating.judging import Piece, Words, judge
from workbench.text import CJK

from .blind import BLIND, SETS, corpus, questions, rows, vocabulary

FALSE = {
    "en": [
        "It was banned in Portugal until 1987",
        "Ingrid Solberg paid for all of it",
        "The number was later set to 4711",
    ],
    "zh": ["此事后来被法院判为无效", "全部费用由挪威政府承担", "后来这个数字改成了 4711"],
}


@cache
def ideal() -> list[tuple[dict, str, list[Piece], Words]]:
    """Gold, answer, what its marks stand for (four documents that it does not cite last), vocabulary."""
    golds = {gold["id"]: gold for name in SETS for gold in questions(name)}
    found = []
    for row in rows(BLIND.parents[1] / "tests" / "ideal_answers.jsonl"):
        name = row["id"].rpartition("-")[0]
        documents = corpus(name)
        titles = {title: key for key, (title, _) in documents.items()}
        cites = dict.fromkeys(titles.get(mark, mark) for mark in re.findall(r"\[([^\]]+)\]", row["answer"]))
        keys = [*cites, *[key for key in documents if key not in cites][:4]]
        answer = re.sub(r"\[([^\]]+)\]", lambda m: f"[{keys.index(titles.get(m[1], m[1])) + 1}]", row["answer"])  # noqa: B023
        pieces = [Piece(names=[key], title=documents[key][0], text="\n".join(documents[key])) for key in keys]
        found.append((golds[row["id"]], answer, pieces, Words.read(vocabulary(name))))
    return found


def passes(gold, answer, pieces, words) -> bool:
    return judge(gold, answer, pieces, words)["right"]


def test_right_answers_pass() -> None:
    wrong = {gold["id"]: judge(gold, *rest)["wrong"] for gold, *rest in ideal()}
    assert len(wrong) >= 40 and sum(map(bool, wrong.values())) <= 0.05 * len(wrong), {
        k: v for k, v in wrong.items() if v
    }


def hedged(gold, answer, pieces, n):
    lead = {"en": ["The following is false: ", "It is not true that "], "zh": ["以下内容是错误的：", "以下说法不实。"]}
    return lead[gold["lang"]][n % 2] + answer, pieces


def falsehood(gold, answer, pieces, n):
    return f"{answer} {FALSE[gold['lang']][n % 3]}.", pieces


def marked_falsehood(gold, answer, pieces, n):
    return f"{answer} {FALSE[gold['lang']][n % 3]} [1].", pieces


def borrowed(gold, answer, pieces, n):
    """A sentence of a document that is not cited, with the mark of one that is."""
    line = max(pieces[-1]["text"].splitlines()[2:], key=len)
    return f"{answer}\n{line[:300]} [1]", pieces


def dumped(gold, answer, pieces, n):
    return "\n".join(f"{p['text']} [{i}]" for i, p in enumerate(pieces, 1)), pieces


def answer_and_dump(gold, answer, pieces, n):
    return f"{answer}\n{dumped(gold, answer, pieces, n)[0]}", pieces


def unrelated(gold, answer, pieces, n):
    return answer, [*pieces[-4:], *pieces[:-4]] if len(pieces) > 8 else pieces[::-1]


def unmarked(gold, answer, pieces, n):
    return re.sub(r" ?\[\d+\]", "", answer), pieces


def negated(gold, answer, pieces, n):
    if CJK.search(answer):
        changed = re.sub(r"是(?!的)|于|有", lambda m: {"是": "不是", "于": "不于", "有": "没有"}[m[0]], answer, count=1)
        return (changed if changed != answer else f"并非{answer}"), pieces
    changed = re.sub(r"\b(is|was|are|were|has|have|cannot|stood|draws|cost)\b", r"\1 not", answer, count=1)
    return (changed if changed != answer else f"Not {answer}"), pieces


def refused(gold, answer, pieces, n):
    return {"en": "The corpus does not say.", "zh": "资料库没有提到。"}[gold["lang"]], pieces


def of_another_question(gold, answer, pieces, n):
    others = [e for e in ideal() if e[0]["lang"] == gold["lang"] and not e[0]["refuse"] and e[0] is not gold]
    return others[n % len(others)][1:3]


def swapped(gold, answer, pieces, n):
    """The first thing that has to be said, replaced: a number by another, a name by another's."""
    said = [say for point in [*gold["must"], *gold.get("list", {}).get("exact", ())] for say in point["say"]]
    said += re.findall(r"\d{4}", answer)
    said += [str(gold["number"]["is"])] if "number" in gold else []
    say = next(say for say in said if say.lower() in answer.lower())
    other = re.sub(r"\d+", lambda m: str(int(m[0]) + 3), say)
    other = other if other != say else {"en": "Ingrid Solberg", "zh": "韩梅梅"}[gold["lang"]]
    return re.sub(re.escape(say), other, answer, flags=re.IGNORECASE), pieces


def halved(gold, answer, pieces, n):
    items = [m.span() for m in re.finditer(r"[^\n\[]*\[\d+\]", answer)]
    return answer[: items[(len(items) - 1) // 2][1]], pieces


def with_foreign_items(gold, answer, pieces, n):
    return f"{answer}\n- {pieces[-1]['title']} [{len(pieces)}]", pieces


def raw(gold, answer, pieces, n):
    facts = [(pieces[0]["title"], "related_to", re.sub(r" ?\[\d+\]", "", answer))]
    shapes = [
        "{0} --[{1}]--> {2} [1]",
        '{{"title": "{0}", "{1}": "{2}"}} [1]',
        "{0} {1} {2} [1]",
        "| {0} | {1} | {2} | [1]",
    ]
    return "; ".join(shapes[n % 4].format(*fact) for fact in facts), pieces


ANY = (hedged, falsehood, marked_falsehood, borrowed, dumped, answer_and_dump, of_another_question)
ANSWERED = (unrelated, unmarked, negated, refused, swapped, raw)
LISTED = (halved, with_foreign_items)


@pytest.mark.parametrize("spoil", [*ANY, *ANSWERED, *LISTED], ids=lambda spoil: spoil.__name__)
def test_spoilt_answers_fail(spoil) -> None:
    entries = [e for e in ideal() if spoil in ANY or not e[0]["refuse"]]
    entries = [e for e in entries if spoil not in LISTED or len(e[0].get("list", {}).get("exact", ())) > 1]
    passed = [
        (gold["id"], spoilt[0])
        for n, (gold, answer, pieces, words) in enumerate(entries)
        if passes(gold, *(spoilt := spoil(gold, answer, pieces, n)), words)
    ]
    assert len(entries) >= 8 and len(passed) <= 0.05 * len(entries), passed
