"""What can be seen of relevance without labels: how much of the question's weight a passage covers, and whose it is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workbench.context import Entity, KnowledgeBase, Passage
from workbench.knowledge.keywords import stem
from workbench.text import CJK, fold, terms
from workbench.tools.calibration import probability

# Words that ask rather than name: a passage that answers need not hold them.
_ASKING = (
    "a an the of in on at to for from by with and or not is are was were be been being do does did done has have had "
    "can could will would shall should may might must i me my you your we us our it its he him his she her they them "
    "their this that these those there here what which who whom whose when where why how many much any some all also "
    "about as than then so if but into please tell give show list find name recommend suggest compare like similar "
    "between"
)
_ASKING_ZH = re.compile(
    "哪一年|哪一部|哪一个|什么时候|为什么|是什么|什么样|怎么样|有没有|有哪些|哪几部|哪几个|几部|几个|多少|什么|哪些|哪个|哪位|哪里|哪部|哪年|"
    "请问|请|推荐|介绍|一下|列出|列举|告诉我|对比|比较|类似于|类似|相似|关于|谁|哪|怎么|如何|还有|以及|和|与|跟|或|的|了|吗|呢|吧|是|在|有|"
    "被|把|给我|我|你|他|她|它|这|那|都|也|又|最"
)
_QUOTED = re.compile("《([^》]+)》")
_ASKING_WORDS = frozenset(_ASKING.split())


@dataclass(frozen=True)
class Named:
    """A known name in the question: its entity, its weight (inverse document frequency), the passages that name it."""

    entity: Entity
    weight: float
    chunk_ids: frozenset[str]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A query as one knowledge base sees it: the names that it knows, and the weighted words around them."""

    text: str
    knowledge: KnowledgeBase
    weights: Mapping[str, float]
    quoted: frozenset[str]
    named: tuple[Named, ...]

    @classmethod
    def of(cls, text: str, knowledge: KnowledgeBase, also: Sequence[str] = ()) -> Question:
        """Read a query; ``also`` are further names that are meant, unknown ones are left out."""
        mentions = knowledge.link(text)
        found = [knowledge.entity(m["entity_id"]) for m in mentions] + [knowledge.find_entity(name) for name in also]
        entities = {e["entity_id"]: e for e in found if e is not None}
        rest, reached = [], 0
        for mention in mentions:
            rest.append(text[reached : mention["start"]])
            reached = mention["end"]
        rest.append(text[reached:])
        plain = " / ".join(rest)
        passages = knowledge.counts()["passages"] if entities else 0
        return cls(
            text=text,
            knowledge=knowledge,
            weights={word: knowledge.term_weight(word) for word in content_terms(plain)},
            quoted=frozenset(content_terms(" / ".join(_QUOTED.findall(plain)))),
            named=tuple(_named(e, passages, knowledge) for e in entities.values()),
        )

    @property
    def entities(self) -> list[str]:
        """Names of the entities, in the order of the question."""
        return [n.entity["name"] for n in self.named]

    @property
    def subjects(self) -> list[str]:
        """Ids of the documents that are about a named entity."""
        return [n.entity["doc_id"] for n in self.named if n.entity["doc_id"]]

    def signals(self, passage: Passage) -> dict[str, float]:
        """What is seen of one passage, each 0 to 1.

        ``covered`` and ``missing`` are shares of the question's weight (words by inverse document frequency, names as
        one unit); what is in neither is in another script than the passage, and cannot be compared, unless it is a
        title in 《》: the index would know it. ``subject``: the document is about a name in the question. ``named``:
        share of the names that the passage or its fields hold.
        """
        held, chinese = passage_terms(
            f"{passage['title']}\n{passage['text']}\n{' / '.join(field_values(passage['fields']))}"
        )
        covered = missing = total = 0.0
        for word, weight in self.weights.items():
            total += weight
            if stem(word) in held:
                covered += weight
            elif word in self.quoted or bool(CJK.match(word)) == chinese:
                missing += weight
        names_held = 0
        for name in self.named:
            total += name.weight
            if _holds(passage, name):
                covered += name.weight
                names_held += 1
            else:
                missing += name.weight
        return {
            "covered": covered / total if total else 0.0,
            "missing": missing / total if total else 0.0,
            "subject": float(passage["doc_id"] in self.subjects),
            "named": names_held / len(self.named) if self.named else 0.0,
        }

    def judge(self, tool: str, text: str, title: str = "", doc_id: str = "") -> float:
        """The probability that a text is relevant, from its words alone."""
        passage = Passage(chunk_id="", doc_id=doc_id, title=title, text=text, position=0, url="", licence="", fields={})
        return probability(tool, self.signals(passage))


def _holds(passage: Passage, name: Named) -> bool:
    """Whether a passage is about a name or says it; passages from elsewhere are read, ours are known by their ids."""
    if passage["chunk_id"] in name.chunk_ids or (passage["doc_id"] and passage["doc_id"] == name.entity["doc_id"]):
        return True
    if passage["chunk_id"]:
        return any(fold(value) in name.names for value in field_values(passage["fields"]))
    text = f" {fold(passage['title'])} {fold(passage['text'])} "
    return any(re.search(rf"(?<![a-z0-9]){re.escape(n)}(?![a-z0-9])", text) for n in name.names)


def content_terms(text: str) -> list[str]:
    """The distinct terms that carry content, in order; question words go.

    >>> content_terms("Who directed the film about a dream thief?"), content_terms("推荐几部武侠电影")
    (['directed', 'film', 'dream', 'thief'], ['武侠', '侠电', '电影'])
    """
    bare = _ASKING_ZH.sub(" ", text)
    return [t for t in dict.fromkeys(terms(bare)) if t not in _ASKING_WORDS and not (len(t) == 1 and t.isalpha())]


@lru_cache(maxsize=4096)
def passage_terms(text: str) -> tuple[frozenset[str], bool]:
    """The stems that a text holds, and whether it is written in Chinese."""
    characters = len(CJK.findall(text))
    return frozenset(stem(t) for t in terms(text)), characters * 8 > len(text)


def _named(entity: Entity, passages: int, knowledge: KnowledgeBase) -> Named:
    chunk_ids = frozenset(knowledge.mentions_of(entity["entity_id"]))
    weight = math.log(1 + (max(0, passages - len(chunk_ids)) + 0.5) / (len(chunk_ids) + 0.5))
    return Named(entity, weight, chunk_ids, tuple(fold(n) for n in (entity["name"], *entity["aliases"]) if len(n) > 1))


def field_values(fields: Mapping[str, Any]) -> list[str]:
    """The typed values of a document, each as text.

    >>> field_values({"year": 1993, "directors": ["Ang Lee"]})
    ['1993', 'Ang Lee']
    """
    values = [v if isinstance(v, list) else [v] for v in fields.values()]
    return [str(item) for group in values for item in group]


def cosine_signals(hits: Sequence[tuple[str, float]]) -> dict[str, dict[str, float]]:
    """``cosine`` and ``lead`` (how far above the list's middle, in its spread, 0 to 1) of each hit, by chunk id.

    >>> cosine_signals([("a", .8), ("b", .4), ("c", .4)])["a"]
    {'cosine': 0.8, 'lead': 1.0}
    """
    if not hits:
        return {}
    values = sorted(cosine for _, cosine in hits)
    middle, low = values[len(values) // 2], values[0]
    spread = max(0.05, middle - low)
    return {i: {"cosine": c, "lead": round(max(0.0, min(1.0, (c - middle) / (4 * spread))), 6)} for i, c in hits}
