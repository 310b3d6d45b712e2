"""``graph_paths``: a question that is a path of typed relations ("books of the author of X"), followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from workbench.knowledge.reading.triples import NODE
from workbench.ports import KnowledgeBase, Relation, RelationKind, ToolLog
from workbench.state import RetrievalResult
from workbench.tools import evidence
from workbench.tools.path_match import Hop, Path, Schema, score, signals
from workbench.tools.path_words import UNTYPED, Asked, Lexicon, Topic, topics
from workbench.tools.scoring import ordered, probability
from workbench.tools.tool import Found, FunctionTool, Search

WIDEST = 5_000
"""Entities from which a path goes on; of more the best connected with its beginning."""
TRIED = 12
"""Paths that are followed before giving up: the first that leads anywhere is the answer."""

SURE, HALF_TOLD = 0.7, 0.5
"""What a path must have for a plan to count on it: its probability, and the share of its relations that words tell."""


class Input(Search):
    """What ``graph_paths`` can be asked."""

    entities: list[str] = Field(default_factory=list, description="The name that the question is about, when known")


class Output(Found):
    """What ``graph_paths`` gives: ``entities`` are the topic and then the answers."""

    answers: list[str] = Field(default_factory=list, description="Names at the end of the path, best first")
    path: list[str] = Field(default_factory=list, description="Its relations from the topic on, ~ against direction")


@dataclass(frozen=True)
class Way:
    """One way to read a question: from whom, along which relations."""

    topic: Topic
    path: Path
    score: float
    asked: Asked
    ends: frozenset[str]

    @property
    def signals(self) -> dict[str, float]:
        """What is seen of it; ``named``: the topic is written like a name, and nothing else in the question is."""
        return {**signals(self.asked, self.path, self.ends), "named": float(self.topic.whole)}

    @property
    def probability(self) -> float:
        """That the path is the one asked for, and the base complete."""
        return probability(TOOL.name, self.signals)

    @property
    def over_triples(self) -> bool:
        """Whether it begins or ends at a head of triples, which has no text of its own."""
        return NODE in {self.topic.entity["type"], *self.ends}

    def __str__(self) -> str:
        return " ".join([self.topic.entity["name"], *map(str, self.path)])


Chain = tuple[Relation, ...]


def search(tool_input: Input, knowledge: KnowledgeBase, log: ToolLog) -> Output:
    """Link the topic, choose the path, follow it; every answer with the relations that lead to it."""
    with log("link") as detail:
        found = topics(tool_input.query, tool_input.entities, knowledge)
        detail["topics"] = [topic.entity["name"] for topic in found[:5]]
    with log("match") as detail:
        ways = ways_of(tool_input.query, found, knowledge)
        detail["paths"] = {str(way): round(way.score, 2) for way in ways[:5]}
    with log("follow") as detail:
        followed = ((way, follow(way, knowledge)) for way in ways[:TRIED])
        way, chains = next(((way, chains) for way, chains in followed if chains), (None, {}))
        if way is None:
            return Output()
        detail["path"], detail["answers"] = str(way), len(chains)
    with log("evidence") as detail:
        names = {end: entity["name"] for end in chains if (entity := knowledge.entity(end))}
        results = evidence.ranked(told(way, chains, knowledge), tool_input.top_k)
        detail["hits"] = len(results)
    answers = list(dict.fromkeys(names.values()))
    topic = way.topic.entity["name"]
    return Output(
        results=results,
        entities=[topic, *answers],
        candidates=answers,
        answers=answers,
        path=[str(hop) for hop in way.path],
    )


def ways_of(text: str, found: Sequence[Topic], knowledge: KnowledgeBase) -> list[Way]:
    """Every way to read a question, best first; shorter before longer, then by name."""
    kinds = knowledge.typed.kinds()
    called = {
        relation: [w for words in field["called"].values() for w in words]
        for field in knowledge.schema()
        for relation in (field["name"], field["relation"])  # triples call both the same
    }
    spoken = knowledge.nouns()
    lexicon = Lexicon.of(kinds, called, [*spoken.get("en", ()), *spoken.get("zh", ())])
    documents = frozenset(spoken.get("types", ()))
    schema = Schema.of([_of_works(kind, documents) for kind in kinds])
    ways = []
    for topic in found:
        readings = lexicon.read(text, topic.start, topic.end)
        relations = frozenset(relation for cue in readings[0].cues for relation in cue.weights)
        sides = knowledge.typed.sides(topic.entity["entity_id"])
        starts = {Hop(name, forward) for name, forward, _ in sides if name not in UNTYPED}
        for path, ends in schema.paths(starts, relations):
            told, reading = max(((score(r, path, ends), -n) for n, r in enumerate(readings)))
            ways.append(Way(topic, path, topic.score + told, readings[-reading], ends))
    order = ((-round(w.score, 6), len(w.path), w.topic.start, w.path, w.topic.entity["entity_id"]) for w in ways)
    return [way for _, way in sorted(zip(order, ways, strict=True), key=lambda pair: pair[0])]


def _of_works(kind: RelationKind, documents: frozenset[str]) -> RelationKind:
    """A kind of relation in which every type of a base's documents is a work."""
    source, target = ("Work" if end in documents else end for end in (kind["source"], kind["target"]))
    return RelationKind(type=kind["type"], source=source, target=target, count=kind["count"])


def lead(text: str, knowledge: KnowledgeBase) -> Way | None:
    """The path that a question surely asks for, which only the tool follows; None for a question of another kind."""
    with knowledge.reading():
        way = next(iter(ways_of(text, topics(text, (), knowledge), knowledge)), None)
    unsure = way is None or way.probability < SURE or way.asked.several or way.signals["hops"] < HALF_TOLD
    return None if unsure else way


def follow(way: Way, knowledge: KnowledgeBase) -> dict[str, Chain]:
    """Where a path ends: entity id -> one chain of relations that leads there; reached by most chains first.

    The topic is met once: it is neither an answer nor on the way to one. "Other books" are none of those whose authors
    lead back to books.
    """
    topic = way.topic.entity["entity_id"]
    before = reached = dict[str, tuple[int, Chain]]({topic: (1, ())})
    for place, hop in enumerate(way.path):
        back = place > 0 and way.path[place - 1] == hop.reverse
        gone = before.keys() | {topic} if back and way.asked.more else {topic}
        met: dict[str, tuple[int, Chain]] = {}
        for relation in knowledge.typed.follow(_widest(reached), hop.relation, hop.forward):
            here, there = _ends(relation, hop)
            if there not in gone:
                ways, chain = reached[here]
                known = met.get(there)
                met[there] = (known[0] + ways, known[1]) if known else (ways, (*chain, relation))
        before, reached = reached, met
    return {end: reached[end][1] for end in sorted(reached, key=lambda end: (-reached[end][0], end))}


def _widest(reached: Mapping[str, tuple[int, Chain]]) -> list[str]:
    return sorted(reached, key=lambda i: (-reached[i][0], i))[:WIDEST]


def _ends(relation: Relation, hop: Hop) -> tuple[str, str]:
    ends = relation["source"], relation["target"]
    return ends if hop.forward else (ends[1], ends[0])


def told(way: Way, chains: Mapping[str, Chain], knowledge: KnowledgeBase) -> Iterator[RetrievalResult]:
    """Each answer as evidence: its chain in words, and the passage that states the last of its relations."""
    ids = {i for chain in chains.values() for relation in chain for i in (relation["source"], relation["target"])}
    names = {i: entity["name"] for i in sorted(ids) if (entity := knowledge.entity(i))}
    stated = {p["chunk_id"]: p for p in knowledge.passages(_chunks(chains.values()))}
    for (end, chain), share in zip(chains.items(), ordered(len(chains)), strict=True):
        words = "; ".join(_said(relation, names) for relation in chain)
        sentences = " ".join(dict.fromkeys(relation["sentence"] for relation in chain))
        last = Relation(
            relation_id=" > ".join(relation["relation_id"] for relation in chain),
            source=way.topic.entity["entity_id"],
            type=" ".join(map(str, way.path)),
            target=end,
            sentence=f"{words}. {sentences}",
            chunk_id=chain[-1]["chunk_id"],
        )
        result = evidence.relationship(
            last, way.probability * share, TOOL.name, knowledge.name, stated.get(last["chunk_id"])
        )
        result["metadata"]["signals"] = way.signals
        result["metadata"]["path"] = {
            "topic": names[last["source"]],
            "relations": [str(hop) for hop in way.path],
            "answer": names[end],
            "said": words,
            "by_way_of": [names[_ends(r, hop)[1]] for r, hop in zip(chain[:-1], way.path, strict=False)],
            "of": len(chains),
            "sure": way.probability,
        }
        yield result


def _chunks(chains: Iterable[Chain]) -> list[str]:
    return sorted({chain[-1]["chunk_id"] for chain in chains})


def _said(relation: Relation, names: Mapping[str, str]) -> str:
    """A relation in words: "The Teahouse — written by: Lao She"."""
    return f"{names[relation['source']]} — {relation['type'].replace('_', ' ')}: {names[relation['target']]}"


TOOL = FunctionTool(
    name="graph_paths",
    description="Follows the path of relations that a question asks for: the books of the author of X.",
    input_schema=Input,
    output_schema=Output,
    function=search,
    calibration="Logistic in the words read, whether the end is what is asked for, and how the topic is written.",
)
