"""Plans of several hops: a bridge is followed with ``chain_exploration``, and each side of a comparison by itself.

Documents with typed fields say in one passage what most questions ask of them; a chain joins in where a question has
words that no name, field or condition of the corpus takes. Texts that only name one another are always followed: what
names the answer is seldom known before it is read. A search looks beside the chain, for what answers by itself; the
merge weighs what both say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.language.names import names_in
from workbench.ports import KnowledgeBase, Tool
from workbench.state import NameRead, RouteDecision
from workbench.text import STOP_WORDS, fold, language_of, terms
from workbench.tools.next_hop import SAID, Reading

# --- What a plan says to people, in the language of the question ---

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
    reading = decision.get("question")
    if reading and reading["understood"]:
        said.append(say("understood", query, read=listed(reading["understood"], query)))
    if reading and reading["not_applied"]:
        said.append(say("not_understood", query, parts=listed(reading["not_applied"], query)))
    names = decision["extracted_entities"]["low_level"]
    unknown = [name for name in names if not any(base.find_entity(name) for base in knowledge)]
    if unknown:
        said.append(say("unlinked", query, names=listed(unknown, query)))
    return said


def _chinese(query: str) -> bool:
    return language_of(query) == "zh"


def listed(words: Sequence[str], query: str) -> str:
    """Words in a row, in the language of the query."""
    return ("、" if _chinese(query) else ", ").join(words)


FULL, WIDE, SHORT, NAMES = (15.0, 50), (20.0, 50), (10.0, 30), (10.0, 20)
RANK = (15.0, 30)
"""Budgets of the table: seconds and results, at the default settings; other settings scale them."""


@dataclass(frozen=True)
class Draft:
    """A step without a number. ``after`` and ``take`` (input -> (draft, its output)) point at earlier drafts."""

    label: str
    tool: str
    objective: str
    tool_input: dict[str, Any]
    budget: tuple[float, int] = FULL
    after: tuple[int, ...] = ()
    take: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    condition: Literal["always", "if_insufficient"] = "always"

    @property
    def before(self) -> list[int]:
        """Every earlier draft that must have ended."""
        return sorted({*self.after, *(source for source, _ in self.take.values())})


@dataclass(frozen=True)
class Ask:
    """What one branch of a plan is for: the question, as one knowledge base is asked it."""

    query: str
    decision: RouteDecision
    names: tuple[str, ...]
    most: int

    @property
    def words(self) -> list[str]:
        """What the question asks beside names and fields."""
        return self.decision["extracted_entities"]["high_level"]

    @property
    def selection(self) -> dict[str, Any]:
        """What ``discover`` is given: conditions, order, by which field to count; nothing where none is read."""
        given: dict[str, Any] = {"conditions": list(self.decision["filters"])} if self.decision["filters"] else {}
        reading = self.decision.get("question")
        if reading and reading["sort"]:
            given["sort"] = dict(reading["sort"])
        if reading and reading["count"] and (reading["group"] or not self.words):
            given["count_by"] = reading["group"]
        return given

    @property
    def grounded(self) -> str:
        """The question, with the knowledge base's own spelling of names that it writes otherwise."""
        return _with_names(self.query, self.names)


def _with_names(query: str, names: Iterable[str]) -> str:
    """The query and the names that it does not hold.

    >>> _with_names("茶馆哪一年出版？", ["The Teahouse"]), _with_names("Who is Lao She?", ["Lao She"])
    ('茶馆哪一年出版？ The Teahouse', 'Who is Lao She?')
    """
    return " ".join([query, *(name for name in names if fold(name) not in fold(query))])


# --- Recipes with ``chain_exploration``: a bridge is followed, and each side of a comparison by itself ---

CHAIN, SEARCH = "chain_exploration", "hybrid_search"
_JOINING = re.compile(r"\b(?:and|or|nor|than|vs|versus)\b|[&,;、，/]|[和与及跟或]|还是", re.I)
_BESIDE = re.compile("[的这那部位首个本]")
"""What stands between two names that a question sets side by side, and what may stand there too."""


def chained(ask: Ask, base: KnowledgeBase, tools: Mapping[str, Tool]) -> list[Draft]:
    """The steps that follow chains, or none where chains are not what is wanted."""
    intent = ask.decision["query_intent"]
    if CHAIN not in tools:
        return []
    names = names_in(ask.query, [base])
    if typed(base):
        if not _beyond_fields(ask, names, base):
            return []
    elif intent in ("recommend", "list") and not names:
        return []
    if len({named["name"] for named in names}) > len(ask.names):
        return []  # the others are another base's to tell
    sides = _sides(ask, names, base)
    drafts = [
        Draft(f"side_{number}", CHAIN, say("side", ask.query, name=name), {"query": query})
        for number, (name, query) in enumerate(sides.items(), start=1)
    ] or [Draft("chain", CHAIN, say("chain", ask.query), {"query": ask.grounded})]
    drafts.append(Draft("hybrid", SEARCH, say("search", ask.query), {"query": ask.grounded}))
    again = Draft(
        "naive",
        "naive_search",
        say("fallback", ask.query),
        {"query": ask.grounded},
        SHORT,
        tuple(range(len(drafts))),
        condition="if_insufficient",
    )
    return [*drafts, again]


def typed(base: KnowledgeBase) -> bool:
    """Whether documents have fields of their own."""
    return any(field["documents"] for field in base.schema())


def _beyond_fields(ask: Ask, names: Sequence[NameRead], base: KnowledgeBase) -> bool:
    """Whether typed documents may answer no question in one step: it has words that no field, name or condition takes
    and no document that it names says, or it asks for a field of what it names under a condition.
    """
    intent, reading = ask.decision["query_intent"], ask.decision.get("question")
    if reading is None or intent in ("recommend", "compare"):
        return False
    through = bool(names and reading["fields"])
    if through and reading["conditions"]:
        return True
    return (through or intent != "list") and bool(reading["words"]) and not _said_there(reading["words"], names, base)


def _said_there(words: Sequence[str], names: Sequence[NameRead], base: KnowledgeBase) -> bool:
    """Whether the documents that a question names say all of these words."""
    passages = base.passages_of(sorted({named["doc_id"] for named in names} - {""}))
    read = Reading.of(" ".join(words), [passage["text"] for passage in passages], base)
    return all(max(column) >= SAID for column in zip(*read.texts, strict=True)) if read.texts else False


def _sides(ask: Ask, names: Sequence[NameRead], base: KnowledgeBase) -> dict[str, str]:
    """Name -> the question without the others that it sets beside it, as many as there is room for.

    Names of which no text is a document's own are no sides: every text may speak of all of them.
    """
    beside = _side_by_side(ask.query, names)
    distinct = dict.fromkeys(named["name"] for named in beside)
    if not 2 <= len(distinct) < ask.most - 1:
        return {}
    entities = [base.find_entity(name) for name in distinct]
    if not any(entity and entity["doc_id"] for entity in entities):
        return {}
    return {name: _without(ask.query, [n for n in beside if n["name"] != name]) for name in distinct}


def _side_by_side(query: str, names: Sequence[NameRead]) -> list[NameRead]:
    """The names of the longest row of which each is joined to the next by nothing but "and", "or" or a comma.

    >>> def names(query, *said):
    ...     return [{"name": n, "start": query.index(n), "end": query.index(n) + len(n)} for n in said]
    >>> asked = "Which is older, Salt Road or Tin?", "Who is the mother of Salt Road's writer, Tin or not?"
    >>> [[n["name"] for n in _side_by_side(q, names(q, "Salt Road", "Tin"))] for q in asked]
    [['Salt Road', 'Tin'], ['Salt Road']]
    """
    rows: list[list[NameRead]] = [[]]
    for named in sorted(names, key=lambda n: n["start"]):
        if rows[-1] and _joined(query[rows[-1][-1]["end"] : named["start"]]):
            rows[-1].append(named)
        else:
            rows.append([named])
    return max(rows, key=lambda row: len({named["name"] for named in row}))


def _joined(between: str) -> bool:
    left = _BESIDE.sub(" ", _JOINING.sub(" ", between))
    return _JOINING.search(between) is not None and STOP_WORDS.issuperset(terms(left))


def _without(query: str, names: Sequence[NameRead]) -> str:
    for named in sorted(names, key=lambda n: -n["start"]):
        query = query[: named["start"]] + query[named["end"] :]
    return " ".join(query.split())
