"""Recipes of plans: which searches a question needs, by intent, over one knowledge base.

Texts that name one another are followed with ``chain_exploration``, each side of a comparison by itself. Documents with
typed fields are selected by them; a chain joins in where words of the question are left that no field accounts for. A
plain search stands beside each chain; the merge weighs what both find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.language.names import names_in
from workbench.ports import KnowledgeBase, Tool
from workbench.state import Condition, NameRead, QueryIntent, RouteDecision
from workbench.text import STOP_WORDS, fold, language_of, terms
from workbench.views.labels import Labels

CHAIN, SEARCH = "chain_exploration", "hybrid_search"
FULL, WIDE, SHORT, NAMES = (15.0, 50), (20.0, 50), (10.0, 30), (10.0, 20)
RANK = (15.0, 30)
"""Budgets of the table: seconds and results, at the default settings; other settings scale them."""
_JOINING = re.compile(r"\b(?:and|or|nor|than|vs|versus)\b|[&,;、，/]|[和与及跟或]|还是", re.I)
_BESIDE = re.compile("[的这那部位首个本]")
"""What stands between two names that a question sets side by side, and what may stand there too."""


def say(key: str, query: str, **words: object) -> str:
    """Return a sentence of a plan in the language of the query.

    >>> say("plan_who", "老舍是谁？", name="Lao She")
    '确认 Lao She 是谁'
    """
    return Labels(language_of(query))(key, query=query, **words)


def listed(words: Sequence[str], query: str) -> str:
    """Join words in the language of the query."""
    return ("、" if language_of(query) == "zh" else ", ").join(words)


def assumptions(query: str, decision: RouteDecision, knowledge: Sequence[KnowledgeBase]) -> list[str]:
    """Return what a plan takes for granted: several bases, how the question was read, names that nobody knows."""
    lines = []
    if len(knowledge) > 1:
        lines.append(say("plan_several", query, names=", ".join(base.name for base in knowledge)))
    question = decision.get("question")
    if question and question["understood"]:
        lines.append(say("plan_understood", query, read=listed(question["understood"], query)))
    if question and question["not_applied"]:
        lines.append(say("plan_not_applied", query, parts=listed(question["not_applied"], query)))
    names = decision["extracted_entities"]["low_level"]
    unknown = [name for name in names if not any(base.find_entity(name) for base in knowledge)]
    if unknown:
        lines.append(say("plan_unlinked", query, names=listed(unknown, query)))
    return lines


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
    """What one branch of a plan is for: the question, and its words as one knowledge base is searched for them."""

    query: str
    words_searched: str
    decision: RouteDecision
    names: tuple[str, ...]
    most: int

    @property
    def words(self) -> list[str]:
        """What the question asks beside names and fields."""
        return self.decision["extracted_entities"]["high_level"]

    @property
    def selection(self) -> dict[str, Any]:
        """The input of ``discover``: conditions, order, the field to count by; empty where none is read."""
        selection: dict[str, Any] = {"conditions": list(self.decision["filters"])} if self.decision["filters"] else {}
        question = self.decision.get("question")
        if question and question["sort"]:
            selection["sort"] = dict(question["sort"])
        if question and question["count"] and (question["group"] or not self.words):
            selection["count_by"] = question["group"]
        return selection

    @property
    def grounded(self) -> str:
        """The question, with the knowledge base's own spelling of names that it writes otherwise.

        Of a recommendation only its content is searched: "Recommend a few" would find a title with these words.
        """
        wish = self.decision["query_intent"] == "recommend"
        return with_names(" ".join(self.words) if wish else self.words_searched, self.names).strip()

    def search(self, label: str = "hybrid", key: str = "plan_search", **words: object) -> Draft:
        """Return a plain search for the question."""
        return Draft(label, SEARCH, say(key, self.query, **words), {"query": self.grounded})

    def fallback(self, steps: int) -> Draft:
        """Return a search by meaning alone, for when these steps found too little."""
        words = say("plan_fallback", self.query)
        after = tuple(range(steps))
        return Draft(
            "naive", "naive_search", words, {"query": self.grounded}, SHORT, after, condition="if_insufficient"
        )

    def discover(self) -> Draft:
        """Return the selection of documents by their fields."""
        words = say("plan_discover", self.query)
        return Draft("discover", "discover", words, {"query": self.grounded, **self.selection}, WIDE)


def without_refused(query: str, conditions: Iterable[Condition], base: KnowledgeBase) -> str:
    """Return the query without the values and names that a condition refuses: they would rank what is left out first.

    A query of nothing else stays as it is.
    """
    refused = [c["value"] for c in conditions if c["op"] in ("ne", "not_in")]
    values = {fold(str(value)) for one in refused for value in (one if isinstance(one, list) else [one])}
    if not values:
        return query
    spans = [(start, end) for start, end, _, value in base.values_in(query) if fold(value) in values]
    spans += [(n["start"], n["end"]) for n in names_in(query, [base]) if fold(n["name"]) in values]
    return _without(query, spans) or query


def with_names(query: str, names: Iterable[str]) -> str:
    """Return the query and the names that it does not hold.

    >>> with_names("茶馆哪一年出版？", ["The Teahouse"]), with_names("Who is Lao She?", ["Lao She"])
    ('茶馆哪一年出版？ The Teahouse', 'Who is Lao She?')
    """
    return " ".join([query, *(name for name in names if fold(name) not in fold(query))])


def drafts_for(ask: Ask, base: KnowledgeBase, tools: Mapping[str, Tool]) -> list[Draft]:
    """Return the steps that a question needs in one knowledge base."""
    intent = ask.decision["query_intent"]
    if ask.selection and intent in ("qa", "unknown"):
        return [ask.discover(), ask.search()]
    return _chained(ask, base, tools) or RECIPES[intent](ask)


def _otherwise(ask: Ask) -> list[Draft]:
    return [ask.search()]


def _qa(ask: Ask) -> list[Draft]:
    if not ask.names:
        return _otherwise(ask)
    about = ask.search(slug(ask.names[0]), "plan_about", name=listed(ask.names, ask.query))
    return [about, ask.fallback(1)]


def _discover(ask: Ask) -> list[Draft]:
    """Find candidates, by fields where the question has conditions or nothing else, then look at them together."""
    first = ask.search(key="plan_candidates")
    if ask.selection:
        first = ask.discover()
    elif not (ask.words or ask.names):
        first = Draft("discover", "discover", say("plan_candidates", ask.query), {"query": ""}, WIDE)
    if not ask.grounded:
        return [first]
    take = {"candidates": (0, "candidates")}
    rank = Draft("global", "global_search", say("plan_rank", ask.query), {"query": ask.grounded}, RANK, take=take)
    return [first, rank]


def _compare(ask: Ask) -> list[Draft]:
    if not ask.names:
        return _otherwise(ask)
    themes = ask.decision["extracted_entities"]["high_level"]
    sides = [
        Draft(slug(name), SEARCH, say("plan_side", ask.query, name=name), {"query": " ".join([name, *themes])})
        for name in ask.names[: max(1, ask.most - 1)]
    ]
    after = tuple(range(len(sides)))
    words = say("plan_together", ask.query)
    return [*sides, Draft("naive", "naive_search", words, {"query": ask.grounded}, SHORT, after)]


def _person(ask: Ask) -> list[Draft]:
    if not ask.names:
        return _otherwise(ask)
    name = ask.names[0]
    who = say("plan_who", ask.query, name=name)
    works = say("plan_works", ask.query, name=name)
    return [
        Draft(slug(name), "local_search", who, {"query": name, "entities": [name]}, NAMES),
        Draft("works", SEARCH, works, {"query": ask.grounded}, FULL, (0,)),
    ]


RECIPES: dict[QueryIntent, Callable[[Ask], list[Draft]]] = {
    "qa": _qa,
    "recommend": _discover,
    "list": _discover,
    "compare": _compare,
    "person": _person,
    "unknown": _otherwise,
}


# --- Chains ---


def _chained(ask: Ask, base: KnowledgeBase, tools: Mapping[str, Tool]) -> list[Draft]:
    """Return the steps that follow chains, or none where fields answer or the names are another base's."""
    intent, question = ask.decision["query_intent"], ask.decision.get("question")
    names = names_in(ask.query, [base])
    typed = any(field["documents"] for field in base.schema())
    if CHAIN not in tools or len({name["name"] for name in names}) > len(ask.names):
        return []
    if typed and not (question and question["words"] and intent in ("qa", "unknown", "person")):
        return []
    if not typed and intent in ("recommend", "list") and not names:
        return []
    sides = _sides(ask, names, base)
    drafts = [
        Draft(f"side_{number}", CHAIN, say("plan_side", ask.query, name=name), {"query": query})
        for number, (name, query) in enumerate(sides.items(), start=1)
    ] or [Draft("chain", CHAIN, say("plan_chain", ask.query), {"query": ask.grounded})]
    drafts.append(ask.search())
    return [*drafts, ask.fallback(len(drafts))]


def _sides(ask: Ask, names: Sequence[NameRead], base: KnowledgeBase) -> dict[str, str]:
    """Return name -> the question without the others that it sets beside it, as many as there is room for.

    Names of which no text is a document's own are no sides: every text may speak of all of them.
    """
    beside = _side_by_side(ask.query, names)
    distinct = dict.fromkeys(name["name"] for name in beside)
    if not 2 <= len(distinct) < ask.most - 1:
        return {}
    entities = [base.find_entity(name) for name in distinct]
    if not any(entity and entity["doc_id"] for entity in entities):
        return {}
    spans = [(n["name"], n["start"], n["end"]) for n in beside]
    return {name: _without(ask.query, [span for other, *span in spans if other != name]) for name in distinct}


def _side_by_side(query: str, names: Sequence[NameRead]) -> list[NameRead]:
    """Return the longest row of names of which each is joined to the next by nothing but "and", "or" or a comma.

    >>> def names(query, *surfaces):
    ...     return [{"name": n, "start": query.index(n), "end": query.index(n) + len(n)} for n in surfaces]
    >>> questions = "Which is older, Salt Road or Tin?", "Who is the mother of Salt Road's writer, Tin or not?"
    >>> [[n["name"] for n in _side_by_side(q, names(q, "Salt Road", "Tin"))] for q in questions]
    [['Salt Road', 'Tin'], ['Salt Road']]
    """
    rows: list[list[NameRead]] = [[]]
    for name in sorted(names, key=lambda n: n["start"]):
        if rows[-1] and _are_joined(query[rows[-1][-1]["end"] : name["start"]]):
            rows[-1].append(name)
        else:
            rows.append([name])
    return max(rows, key=lambda row: len({name["name"] for name in row}))


def _are_joined(between: str) -> bool:
    left = _BESIDE.sub(" ", _JOINING.sub(" ", between))
    return _JOINING.search(between) is not None and STOP_WORDS.issuperset(terms(left))


def _without(query: str, spans: Iterable[Sequence[int]]) -> str:
    for start, end in sorted(map(tuple, spans), reverse=True):
        query = query[:start] + query[end:]
    return " ".join(query.split())


def slug(name: str) -> str:
    """Return a short ASCII label of a name.

    >>> slug("The Teahouse"), slug("Amélie"), slug("茶馆")
    ('teahouse', 'amelie', 'name')
    """
    words = re.findall(r"[a-z0-9]+", fold(name).replace("'", ""))
    words = words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words
    return "_".join(words)[:40].strip("_") or "name"
