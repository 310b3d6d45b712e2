"""Which path of typed relations a question asks for: all that its words allow, scored by how well they tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.knowledge.vocabulary import GROUPING
from workbench.ports import RelationKind
from workbench.tools.path_words import UNTYPED, WORKS, Asked, Cue

NOBODY = GROUPING | WORKS
"""Types that "who" does not ask for; of a type that is not known it may be."""
_NEVER = float("-inf")
LONGEST = 3
"""Relations of the longest path."""


class Hop(NamedTuple):
    """One relation of a path, with or against its direction."""

    relation: str
    forward: bool

    @property
    def reverse(self) -> Hop:
        """The same relation the other way."""
        return Hop(self.relation, not self.forward)

    def __str__(self) -> str:
        return self.relation if self.forward else f"~{self.relation}"


Path = tuple[Hop, ...]


TOLD, TOLD_BACK, SKIPPED = 2.0, 0.6, -2.0
"""What a relation counts that a word tells, the way back along it, and a word that tells none."""
UNTOLD, UNTOLD_END = -2.5, -1.0
"""What a relation counts that no word tells, but for the way back; and more so when it is the last."""
ASKED, NOT_ASKED = 2.0, -3.0
"""What an end counts that is what is asked for, or is not."""
ROUND_AGAIN, LONGER = -3.0, -0.1
"""What a path counts that goes the same way twice, and each of its relations."""


@dataclass(frozen=True)
class Schema:
    """Which relations lead from which type to which, and how often."""

    ends: Mapping[tuple[str, Hop], Mapping[str, int]] = field(repr=False)
    counts: Mapping[Hop, int]

    @classmethod
    def of(cls, kinds: Sequence[RelationKind]) -> Schema:
        """The schema of a base with these relations."""
        ends: dict[tuple[str, Hop], dict[str, int]] = defaultdict(dict)
        counts: dict[Hop, int] = defaultdict(int)
        for kind in kinds:
            if kind["type"] not in UNTYPED:
                ends[kind["source"], Hop(kind["type"], True)][kind["target"]] = kind["count"]
                ends[kind["target"], Hop(kind["type"], False)][kind["source"]] = kind["count"]
                for forward in (True, False):
                    counts[Hop(kind["type"], forward)] += kind["count"]
        return cls(dict(ends), dict(counts))

    def after(self, types: frozenset[str]) -> dict[Hop, frozenset[str]]:
        """Every hop that these types mostly make, with the types that it mostly leads to."""
        met: dict[Hop, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for (start, hop), ends in self.ends.items():
            if start in types and 10 * sum(ends.values()) > self.counts[hop]:
                for kind, count in ends.items():
                    met[hop][kind] += count
        return {hop: _mostly(counts) for hop, counts in sorted(met.items())}

    def leads(self, hop: Hop) -> frozenset[str]:
        """The types that a hop mostly leads to, from wherever."""
        met: dict[str, int] = defaultdict(int)
        for (_, other), ends in self.ends.items():
            for kind, count in ends.items() if other == hop else ():
                met[kind] += count
        return _mostly(met)

    def paths(self, starts: Collection[Hop], relations: frozenset[str]) -> Iterator[tuple[Path, frozenset[str]]]:
        """Every path that begins so, and the types of its end; a short one may have one relation that nothing calls."""
        stack: list[tuple[Path, frozenset[str]]] = []
        for hop in sorted(starts):
            ends = self.leads(hop)
            yield (hop,), ends
            stack.append(((hop,), ends))
        while stack:
            path, types = stack.pop()
            for hop, ends in self.after(types).items():
                longer = (*path, hop)
                uncalled = {other.relation for other in longer} - relations
                if len(uncalled) <= (len(longer) < LONGEST):
                    yield longer, ends
                    if len(longer) < LONGEST:
                        stack.append((longer, ends))


def _mostly(counts: Mapping[str, int]) -> frozenset[str]:
    """The types that make up more than a tenth."""
    total = sum(counts.values())
    return frozenset(kind for kind, count in counts.items() if count * 10 > total)


def score(asked: Asked, path: Path, ends: frozenset[str]) -> float:
    """How well the words of a question tell a path; 0 is nothing told and nothing against it."""
    told = max(_aligned(order, path, asked) for order in asked.orders())
    again = ROUND_AGAIN if len(path) > 2 and path[0] == path[2] else 0.0
    return told + again + LONGER * len(path) + _as_asked(asked, path, ends)


def signals(asked: Asked, path: Path, ends: frozenset[str]) -> dict[str, float]:
    """What is seen of a path that was chosen, each 0 to 1.

    ``hops``: the share of its relations that a word tells; ``asked``: its end is what is asked for, 0.5 where nothing
    says; ``read``: the share of the question's words that call up a relation or ask.
    """
    called = {name for cue in asked.cues for name in cue.weights}
    right = _as_asked(asked, path, ends)
    return {
        "hops": sum(hop.relation in called for hop in path) / len(path),
        "asked": 0.5 if right == 0 else float(right > 0),
        "read": asked.read,
    }


def _as_asked(asked: Asked, path: Path, ends: frozenset[str]) -> float:
    """Whether the end of the path is what the question word asks for."""
    total = 0.0
    if asked.kind == "person":
        total += ASKED if "Person" in ends else NOT_ASKED if ends & NOBODY else 0.0
    elif asked.kind == "work":
        total += ASKED if ends & WORKS else NOT_ASKED
    elif asked.kind:
        total += ASKED if any(asked.kind in kind.lower() for kind in ends) else NOT_ASKED
    if asked.relation:
        if path[-1].relation not in asked.relation.weights:
            total += NOT_ASKED
        elif asked.kind or not ends & WORKS:  # "genre" asks for one, and not for the books of one
            total += ASKED
    return total


def _aligned(cues: Sequence[Cue], path: Path, asked: Asked) -> float:
    """The best way to hand the cues to the hops, both in their order."""
    row = [SKIPPED * sum(_most(cue) for cue in cues[:n]) for n in range(len(cues) + 1)]
    for place, hop in enumerate(path):
        back = place > 0 and path[place - 1].relation == hop.relation
        gain, untold = (TOLD_BACK, 0.0) if back else (TOLD, UNTOLD)
        if place == len(path) - 1 and not (back and asked.kind == "work"):
            untold += UNTOLD_END
        new, told = [row[0] + untold], [_NEVER]
        for n, cue in enumerate(cues, start=1):
            said = cue.weights.get(hop.relation, 0.0)
            first, again = (row[n - 1] + gain * said, told[-1]) if said else (_NEVER, _NEVER)
            told.append(max(first, again, told[-1] + SKIPPED * _most(cue)))
            new.append(max(told[-1], row[n] + untold))
        row = new
    return row[-1]


def _most(cue: Cue) -> float:
    return max(cue.weights.values())
