"""What is said when the corpus says nothing, and to a greeting: honest, short, and what was looked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.generate.voice import Voice
from workbench.state import ExecutionRecord


def silent(voice: Voice, looked_for: Sequence[str], read: int, note: str = "") -> str:
    """The corpus does not say; what was looked for, in how much.

    >>> silent(Voice("en"), ["Parasite"], 12)
    'The corpus does not say. Looked for Parasite in 12 pieces of evidence.'
    >>> silent(Voice("zh"), ["寄生虫"], 12)
    '资料库没有提到。查找的是：寄生虫（共 12 条证据）。'
    """
    lead = note or voice.pick("The corpus does not say.", "资料库没有提到。")
    sought = voice.pick(", ", "、").join(looked_for)
    if not sought:
        return lead
    pieces = "1 piece" if read == 1 else f"{read} pieces"
    tail = voice.pick(f"Looked for {sought} in {pieces} of evidence.", f"查找的是：{sought}（共 {read} 条证据）。")
    return voice.joined([lead, tail])


def nothing_named(voice: Voice, names: Sequence[str], read: int) -> str:
    """The corpus has nothing of these names, written as the question writes them.

    >>> nothing_named(Voice("en"), ["Parasite"], 12)
    'The corpus does not say: it has nothing named “Parasite”. Looked for Parasite in 12 pieces of evidence.'
    """
    bare = [name.strip('《》“”"') for name in names]
    quoted = voice.pick(" or ", "或").join(
        name if name.startswith("《") else f"“{b}”" for name, b in zip(names, bare, strict=True)
    )
    note = voice.pick(f"The corpus does not say: it has nothing named {quoted}.", f"资料库没有提到{quoted}。")
    said = silent(voice, bare, read, note)
    if voice.language == "zh" and any("·" in name for name in names):
        said += "资料库里的外国人名多用原文，可以改用原文姓名再问。"
    return said


def not_said(voice: Voice, what: Sequence[str], read: int) -> str:
    """The corpus knows the thing and not what was asked of it.

    Args:
        voice: the language.
        what: what was asked, in the words of ``lacking``.
        read: how many sentences there are on it.

    >>> not_said(Voice("en"), ["the box office of Hulk"], 3)
    'The corpus does not say anything about the box office of Hulk. Looked for it in 3 sentences.'
    """
    sought = voice.listed(list(dict.fromkeys(what)))
    note = voice.pick(f"The corpus does not say anything about {sought}.", f"资料库没有提到{sought}。")
    sentences = "1 sentence" if read == 1 else f"{read} sentences"
    tail = f"Looked for {'it' if len(what) == 1 else 'them'} in {sentences}."
    return voice.joined([note, voice.pick(tail, f"已查找相关的 {read} 句资料。")])


def lacking(voice: Voice, names: tuple[str, str] | str, of: str) -> str:
    """What was asked and is not said: by the names of a facet, or a word of the question.

    >>> lacking(Voice("zh"), ("the cast of {}", "{}的主演"), "《喜宴》"), lacking(Voice("en"), "ending", "Inception")
    ('《喜宴》的主演', '“ending” (Inception)')
    """
    english, chinese = (f"“{names}” ({{}})", f"{{}}的“{names}”") if isinstance(names, str) else names
    return voice.pick(english, chinese).format(of)


def stopped(voice: Voice) -> str:
    """A reviewer stopped the search before it found anything."""
    return voice.pick(
        "The reviewer stopped the search, and nothing had been found by then: there is no evidence to answer from.",
        "审阅者停止了检索，此前没有找到任何证据，因此无法回答。",
    )


def failed(voice: Voice, records: Sequence[ExecutionRecord]) -> str:
    """Every search failed: that says nothing of the corpus."""
    what = "; ".join(dict.fromkeys(f"{r['tool']}: {r['error'] or r['status']}" for r in records))
    return voice.pick(
        f"The search failed, so this is no statement about the corpus ({what}).",
        f"检索失败，因此无法判断资料库里有没有答案（{what}）。",
    )


_THANKS = re.compile(r"\b(?:thank|thanks|thx|ty|cheers|appreciated)\b|谢|辛苦", re.IGNORECASE)
_PARTING = re.compile(
    r"\b(?:bye|goodbye|see (?:you|ya)|farewell|good night|take care)\b|再见|拜拜|回头见|明天见|晚安", re.IGNORECASE
)


def greeting(voice: Voice, bases: Sequence[str], message: str = "") -> str:
    """A short reply to what is no question: what can be asked, with an example.

    >>> print(greeting(Voice("en"), ["film"], "Thanks!"))
    You are welcome. I answer questions from the knowledge base film, with sources: for example, “Who directed Hulk?”
    """
    if _PARTING.search(message):
        return voice.pick("Goodbye!", "再见！")
    lead = voice.pick("Hello!", "你好！")
    if _THANKS.search(message):
        lead = voice.pick("You are welcome.", "不客气。")
    if not bases:
        return voice.joined(
            [
                lead,
                voice.pick(
                    "There is no knowledge base to answer from yet: add one with `workbench kb add NAME PATH...`.",
                    "目前还没有知识库可以用来回答，请先添加：`workbench kb add NAME PATH...`。",
                ),
            ]
        )
    bases_en = "knowledge base" if len(bases) == 1 else "knowledge bases"
    example = voice.pick("“Who directed Hulk?”", "“喜宴哪一年上映？”")
    if "film" not in bases:
        example = voice.pick("“What is said about …?”", "“资料里关于……是怎么说的？”")
    english = f"I answer questions from the {bases_en} {voice.listed(bases)}, with sources: for example, {example}"
    chinese = voice.spaced(f"我根据知识库{voice.listed(bases)}回答问题，并注明出处。例如：{example}")
    return voice.joined([lead, voice.pick(english, chinese)])
