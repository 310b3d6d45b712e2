"""Recipes with ``chain_exploration``: a bridge is followed, and each side of a comparison by itself.

Documents with typed fields say in one passage what most questions ask of them; a chain joins in only where a question
is a bridge by its words. Texts that only name one another are always followed: what names the answer is seldom known
before it is read. A search looks beside the chain, for what answers by itself; the merge weighs what both say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.context import KnowledgeBase, Tool
from workbench.language.hops import is_bridge
from workbench.language.names import names_in
from workbench.retrieval.drafts import SHORT, Ask, Draft
from workbench.retrieval.wording import say
from workbench.state import NameRead

CHAIN, SEARCH = "chain_exploration", "hybrid_search"
_YES_OR_NO = re.compile(
    r"\W*(?:are|is|was|were|do|does|did|have|has|had)\b|.*\bboth\b|.*(?:都|是否|同一|相同|一样)", re.I
)


def chained(ask: Ask, base: KnowledgeBase, tools: Mapping[str, Tool]) -> list[Draft]:
    """The steps that follow chains, or none where chains are not what is wanted."""
    intent = ask.decision["query_intent"]
    if CHAIN not in tools:
        return []
    names = names_in(ask.query, [base])
    typed = any(field["documents"] for field in base.schema())
    if intent in ("recommend", "list") and (typed or not names):
        return []
    if typed and (intent == "compare" or not is_bridge(ask.query, names, base.lexicon())):
        return []
    if len({named["name"] for named in names}) > len(ask.names):
        return []  # the others are another base's to tell
    sides = _sides(ask, names, base)
    drafts = [
        Draft(f"side_{number}", CHAIN, say("side", ask.query, name=name), {"query": query})
        for number, (name, query) in enumerate(sides.items(), start=1)
    ] or [Draft("chain", CHAIN, say("chain", ask.query), {"query": ask.grounded})]
    if not typed:
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


def _sides(ask: Ask, names: Sequence[NameRead], base: KnowledgeBase) -> dict[str, str]:
    """Name -> the question without the other names; of a comparison alone, and as many as there is room for.

    Names of which no text is a document's own are no sides: every text may speak of all of them.
    """
    compared = ask.decision["query_intent"] == "compare" or _YES_OR_NO.match(ask.query)
    distinct = {named["name"]: named for named in reversed(names)}
    if not compared or not 2 <= len(distinct) < ask.most - 1:
        return {}
    entities = [base.find_entity(name) for name in distinct]
    if not any(entity and entity["doc_id"] for entity in entities):
        return {}
    return {named["name"]: _without(ask.query, [n for n in names if n["name"] != named["name"]]) for named in names}


def _without(query: str, names: Sequence[NameRead]) -> str:
    for named in sorted(names, key=lambda n: -n["start"]):
        query = query[: named["start"]] + query[named["end"] :]
    return " ".join(query.split())
