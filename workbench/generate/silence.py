"""What is said where no evidence is looked at: to a greeting, and when a search was stopped or failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.state import ExecutionRecord

_THANKS = re.compile(r"\b(?:thank|thanks|thx|ty|cheers|appreciated)\b|谢|辛苦", re.IGNORECASE)
_PARTING = re.compile(
    r"\b(?:bye|goodbye|see (?:you|ya)|farewell|good night|take care)\b|再见|拜拜|回头见|明天见|晚安", re.IGNORECASE
)


def stopped(zh: bool) -> str:
    """A reviewer stopped the search before it found anything."""
    if zh:
        return "审阅者停止了检索，此前没有找到任何证据，因此无法回答。"
    return "The reviewer stopped the search, and nothing had been found by then: there is no evidence to answer from."


def failed(zh: bool, records: Sequence[ExecutionRecord]) -> str:
    """Every search failed: that says nothing of the corpus."""
    what = "; ".join(dict.fromkeys(f"{r['tool']}: {r['error'] or r['status']}" for r in records))
    if zh:
        return f"检索失败，因此无法判断资料库里有没有答案（{what}）。"
    return f"The search failed, so this is no statement about the corpus ({what})."


def greeting(zh: bool, bases: Sequence[str], message: str = "", example: str = "…") -> str:
    """A short reply to what is no question: what can be asked, with an example.

    >>> greeting(False, ["lab"], "Thanks!", "Apollo")[:60]
    'You are welcome. I answer questions from the knowledge base '
    """
    if _PARTING.search(message):
        return "再见！" if zh else "Goodbye!"
    lead = ("不客气。" if zh else "You are welcome. ") if _THANKS.search(message) else ("你好！" if zh else "Hello! ")
    if zh and not bases:
        return lead + "目前还没有知识库可以用来回答，请先添加：`workbench kb add NAME PATH...`。"
    if not bases:
        return lead + "There is no knowledge base to answer from yet: add one with `workbench kb add NAME PATH...`."
    if zh:
        return f"{lead}我根据知识库 {'、'.join(bases)} 回答问题，并注明出处。例如：“关于《{example}》有哪些内容？”"
    base, names = "knowledge base" if len(bases) == 1 else "knowledge bases", ", ".join(bases)
    return (
        f"{lead}I answer questions from the {base} {names}, with sources: for example, “What is said about {example}?”"
    )
