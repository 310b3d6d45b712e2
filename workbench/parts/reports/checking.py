"""A report as a whole held against its evidence: what its sources contradict one another in, and how well it is cited.

Each sentence has been held against what it cites when its section was written; here they meet.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from workbench.language.support import by_words, denies, lost
from workbench.state import Claim, RetrievalResult, SectionContent
from workbench.text import fold, terms

SAME = 0.6
"""The share of a statement's words with which another speaks of the same."""
_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?(?![A-Za-z.]*\d)")
_LED_BY = re.compile(r"^\*\*[^*\n]{1,200}\*\*(?:（[^）\n]{1,200}）)?(?:: |：)(?=.)")
_CAPITAL = re.compile(r"\b[A-Z][\w’'-]*")
_Z = 1.96


def claim_id(section_id: str, text: str) -> str:
    """Twelve hex digits of a statement and its section."""
    return hashlib.sha256(f"{section_id}\n{fold(text)}".encode()).hexdigest()[:12]


def without_marks(text: str) -> str:
    """A statement as it stands, without its marks, and without the title of its document before it.

    >>> without_marks("**Survey**: It has 42 arches [3]."), without_marks("**《测量》**：有 42 个桥拱 [3]。")
    ('It has 42 arches.', '有 42 个桥拱。')
    """
    return _LED_BY.sub("", re.sub(r"\s?\[\d+\]", "", text).strip())


def fingerprint(*told: Any) -> str:
    """Sixteen hex digits of what something was made from."""
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def of_evidence(results: Sequence[RetrievalResult]) -> list[tuple[str, str]]:
    """What of the evidence a text depends on: which pieces there are, and what they say."""
    return [(r["result_id"], hashlib.sha256(_read(r).encode()).hexdigest()[:16]) for r in results]


def _read(result: RetrievalResult) -> str:
    return repr((result["metadata"].get("title"), result["evidence"], result["metadata"].get("fields")))


def contradictions(claims: Sequence[Claim], documents: Mapping[str, str]) -> list[dict[str, Any]]:
    """Pairs of statements from different documents that speak of the same and cannot both hold.

    Args:
        claims: of all sections.
        documents: id of a piece -> its document.

    Returns:
        ``first`` and ``second`` (statements), ``sources`` (ids of their pieces), ``about``: ``number`` or ``denial``.

    >>> one = {"claim_id": "a", "section_id": "1", "entities": [], "verdict": "supported", "why": ""}
    >>> said = [{**one, "text": "The bridge has 40 arches.", "evidence_ids": ["p"]},
    ...         {**one, "text": "The bridge has 42 arches.", "evidence_ids": ["q"]}]
    >>> [(c["about"], c["first"]) for c in contradictions(said, {"p": "d1", "q": "d2"})]
    [('number', 'The bridge has 40 arches.')]
    """
    found = []
    for one, other in combinations([c for c in claims if c["evidence_ids"]], 2):
        apart = {documents.get(i) for i in one["evidence_ids"]}.isdisjoint(
            documents.get(i) for i in other["evidence_ids"]
        )
        if about := opposed(one["text"], other["text"]) if apart else "":
            sources = [*one["evidence_ids"], *other["evidence_ids"]]
            found.append({"first": one["text"], "second": other["text"], "sources": sources, "about": about})
    return found


def opposed(one: str, other: str) -> str:
    """In what two statements on the same thing cannot both hold: ``number``, ``denial``, or nothing.

    >>> opposed("The bridge has 40 arches.", "The bridge has 42 arches."), opposed("It burns oil.", "It burns oil.")
    ('number', '')
    """
    numbers, others = set(_NUMBER.findall(one)), set(_NUMBER.findall(other))
    about = "number" if numbers and others and not numbers & others else ""
    about = "denial" if denies(one) != denies(other) else about
    return about if about and _of_the_same(one, other) else ""


def _of_the_same(one: str, other: str) -> bool:
    """Whether two statements name the same things, and say the same of them but for numbers and denial."""
    for said, beside in ((one, other), (other, one)):
        held = set(terms(beside))
        if any(not held & set(terms(name)) for name in _CAPITAL.findall(said) if terms(name)):
            return False
        if any(not _NUMBER.fullmatch(name) for name in lost(said, beside)):
            return False
    return min(_alike(one, other), _alike(other, one)) >= SAME


def _alike(one: str, other: str) -> float:
    return by_words(_NUMBER.sub(" ", one), [_NUMBER.sub(" ", other)])[0]


def consistency(sections: Sequence[SectionContent], results: Sequence[RetrievalResult], open_: int) -> dict[str, Any]:
    """How a report stands against its evidence.

    Args:
        sections: as written.
        results: all the evidence.
        open_: how many sections have nothing.

    Returns:
        ``statements``; how many are ``supported``, ``partly``, ``unsupported``, ``uncited``; ``precision`` (of the
        statements that cite, how many their sources support) and ``recall`` (of all, how many are supported), each
        ``[share, low, high]`` at 95 %; ``contradictions``; ``unsupported_claims``; ``score``, 0 to 1: their harmonic
        mean times the share of sections with something to say.
    """
    claims = [claim for section in sections for claim in section["claims"]]
    counts = {v: sum(c["verdict"] == v for c in claims) for v in ("supported", "partly", "unsupported", "uncited")}
    held, cited = counts["supported"] + counts["partly"], len(claims) - counts["uncited"]
    precision, recall = interval(held, cited), interval(held, len(claims))
    both = 2 * precision[0] * recall[0] / (precision[0] + recall[0]) if precision[0] + recall[0] else 0.0
    covered = 1 - open_ / len(sections) if sections else 0.0
    documents = {r["result_id"]: str(r["metadata"].get("doc_id") or r["source_id"]) for r in results}
    return {
        "statements": len(claims),
        **counts,
        "precision": precision,
        "recall": recall,
        "score": round(both * covered, 4),
        "contradictions": contradictions(claims, documents),
        "unsupported_claims": [c["claim_id"] for c in claims if c["verdict"] in ("unsupported", "uncited")],
    }


def interval(hits: int, of: int) -> list[float]:
    """A share with its 95 % interval (Wilson).

    >>> interval(19, 20), interval(0, 0)
    ([0.95, 0.764, 0.991], [0.0, 0.0, 1.0])
    """
    if not of:
        return [0.0, 0.0, 1.0]
    share, z2 = hits / of, _Z**2
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    wide = _Z * math.sqrt(share * (1 - share) / of + z2 / (4 * of**2)) / (1 + z2 / of)
    return [round(share, 3), round(max(0.0, middle - wide), 3), round(min(1.0, middle + wide), 3)]
