"""What is said when the corpus says nothing, and to a greeting: honest, short, and what was looked for."""

from __future__ import annotations

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


def not_said(voice: Voice, what: Sequence[str], of: Sequence[str], read: int) -> str:
    """The corpus knows the thing and not what was asked of it. ``read`` counts sentences on it.

    >>> not_said(Voice("en"), ["the box office"], ["Hulk"], 3)
    'The corpus does not say anything about the box office of Hulk. Looked for it in 3 sentences.'
    """
    asked, whose = voice.listed(list(what)), voice.listed(list(of))
    note = voice.pick(
        f"The corpus does not say anything about {asked}" + (f" of {whose}." if whose else "."),
        f"资料库没有提到{whose}{'的' if whose else ''}{asked}。",
    )
    sentences = "1 sentence" if read == 1 else f"{read} sentences"
    them = "it" if len(what) == 1 else "them"
    return voice.joined([note, voice.pick(f"Looked for {them} in {sentences}.", f"已查找相关的 {read} 句资料。")])


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


def greeting(voice: Voice, bases: Sequence[str], message: str = "") -> str:
    """A short reply to what is no question: what can be asked, with an example.

    >>> greeting(Voice("en"), ["film"])
    'Hello! I answer questions from the knowledge base film, with sources. For example: “Who directed The Wedding Banquet?”'
    """
    if not bases:
        return voice.pick(
            "Hello! There is no knowledge base to answer from yet. Add one with `workbench kb add NAME PATH...`.",
            "你好！目前还没有知识库可以用来回答。请先添加：`workbench kb add NAME PATH...`。",
        )
    known = voice.listed(list(bases))
    film = "film" in bases
    return voice.pick(
        f"Hello! I answer questions from the knowledge base{'s' if len(bases) > 1 else ''} {known}, with sources. For example: "
        + ("“Who directed The Wedding Banquet?”" if film else "“What is said about …?”"),
        f"你好！我根据知识库 {known} 回答问题，并注明出处。例如："
        + ("“喜宴哪一年上映？”" if film else "“资料里关于……是怎么说的？”"),
    )
