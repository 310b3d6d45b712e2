"""What a plan says to people, in the language of the question."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.context import KnowledgeBase
from workbench.state import RouteDecision
from workbench.text import language_of

_SENTENCES: dict[str, tuple[str, str]] = {
    "search": ("Find what the corpus says on: {query}", "在语料中查找：{query}"),
    "about": ("Find what the corpus says about {name}: {query}", "查找关于 {name} 的内容：{query}"),
    "fallback": ("Search once more by meaning alone, if that was not enough", "若证据不足，再按语义检索一次"),
    "discover": ("Find the documents whose fields hold what is asked: {query}", "按字段条件筛选：{query}"),
    "candidates": ("Find candidates for: {query}", "查找候选：{query}"),
    "rank": ("Look at the candidates together, with the groups they belong to", "结合所属社群综合考察各候选"),
    "side": ("Find what the corpus says about {name}", "查找 {name} 一方的内容"),
    "together": ("Find what speaks of all sides: {query}", "查找能并列比较各方的内容：{query}"),
    "who": ("Find out who {name} is", "确认 {name} 是谁"),
    "works": ("Find the documents of {name}: {query}", "查找 {name} 的相关文档：{query}"),
    "chain": ("Follow what names what, from text to text: {query}", "沿各篇之间的提及逐步查找：{query}"),
    "path": ("Follow the relations {path} from {name}: {query}", "从 {name} 沿关系 {path} 查找：{query}"),
    "left_out": (
        "There was no room for {tools}: a plan has at most {most} steps.",
        "计划最多 {most} 步，未安排：{tools}。",
    ),
    "stands_in": (
        "{agent} would run {wanted}, which is not registered; {tool} runs in its place.",
        "{agent} 所需的工具 {wanted} 未注册，改用 {tool}。",
    ),
    "several": ("Asked of {names}, each by itself.", "分别在以下知识库中查找：{names}。"),
    "understood": ("Read as: {read}.", "理解为：{read}。"),
    "not_understood": ("Not understood, and searched without: {parts}.", "未能理解，检索时未计入：{parts}。"),
    "unlinked": (
        "{names}: not a name that the knowledge base knows; searched by its words.",
        "知识库中没有名为 {names} 的条目，按字面检索。",
    ),
    "need_names": ("The evidence names {names}.", "证据提到 {names}。"),
    "need_sides": ("There is evidence for every side: {names}.", "各方都有证据：{names}。"),
    "need_candidates": (
        "Several different candidates, each with what people choose by.",
        "有多个不同的候选，且各有可供选择的信息。",
    ),
    "need_items": ("Every item that fits is there, and each one fits.", "符合条件的条目齐全，且逐项符合。"),
    "need_person": (
        "The evidence says who {names} is, and with what documents.",
        "证据说明 {names} 是谁，以及有哪些相关文档。",
    ),
    "need_any": ("The evidence bears on the question.", "证据与问题相关。"),
}


def say(key: str, query: str, **words: object) -> str:
    """A sentence in the language of the query.

    >>> say("who", "老舍是谁？", name="Lao She")
    '确认 Lao She 是谁'
    """
    return _SENTENCES[key][_chinese(query)].format(query=query, **words)


def assumptions(query: str, decision: RouteDecision, knowledge: Sequence[KnowledgeBase]) -> list[str]:
    """What the plan takes for granted: several knowledge bases, filters as they were read, names nobody knows."""
    said = []
    if len(knowledge) > 1:
        said.append(say("several", query, names=", ".join(base.name for base in knowledge)))
    reading = decision.get("reading")
    if reading and reading["understood"]:
        said.append(say("understood", query, read=_listed(reading["understood"], query)))
    if reading and reading["not_understood"]:
        said.append(say("not_understood", query, parts=_listed(reading["not_understood"], query)))
    names = decision["extracted_entities"]["low_level"]
    unknown = [name for name in names if not any(base.find_entity(name) for base in knowledge)]
    if unknown:
        said.append(say("unlinked", query, names=_listed(unknown, query)))
    return said


def acceptance(query: str, decision: RouteDecision) -> list[str]:
    """When the evidence will do, by intent."""
    intent, names = decision["query_intent"], decision["extracted_entities"]["low_level"]
    criteria = {
        "qa": "need_names" if names else "need_any",
        "compare": "need_sides" if names else "need_any",
        "recommend": "need_candidates",
        "list": "need_items",
        "person": "need_person" if names else "need_any",
        "unknown": "need_any",
    }
    said = [say(criteria[intent], query, names=_listed(names, query))]
    return said


def _chinese(query: str) -> bool:
    return language_of(query) == "zh"


def _listed(words: Sequence[str], query: str) -> str:
    return ("、" if _chinese(query) else ", ").join(words)
