"""Triples to documents: ``head<TAB>relation<TAB>tail``, a line each, one document for each head.

Relations are the fields of a document, and its text says them, a line a relation, so that words and vectors find it.
The order of the lines changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from workbench.knowledge.reading.files import Unreadable, lines
from workbench.text import clean

SUFFIXES = (".tsv", ".tsv.gz")
NODE = "Node"
"""The type of a document that is a head."""
_HEADER = ({"head", "subject"}, {"relation", "predicate"}, {"tail", "object"})

Tails = dict[str, list[str]]
"""Relation -> the tails of one head."""


def are_in(path: Path) -> bool:
    """Check that a file holds triples; a table of another width does not."""
    sample = [
        line.rstrip("\r\n").count("\t")
        for _, line in islice(lines(path), 20)
        if isinstance(line, str)
    ]
    return 2 in sample or not any(sample)


def heads(path: Path) -> Iterator[tuple[int, str | tuple[str, Tails]]]:
    """Yield ``(line, reason)`` for a line that is no triple, then ``(line, (name, tails))`` of each head, by name."""
    by_head: dict[str, tuple[int, set[tuple[str, str]]]] = {}
    for number, line in lines(path):
        cells = _cells(line)
        if isinstance(cells, str):
            yield number, cells
            continue
        is_header = number == 1 and all(
            c.lower() in names for c, names in zip(cells, _HEADER, strict=False)
        )
        if cells and not is_header:
            head, relation, tail = cells
            by_head.setdefault(head, (number, set()))[1].add((relation, tail))
    for head, (number, pairs) in sorted(by_head.items()):
        tails: Tails = {}
        for relation, tail in sorted(pairs):
            tails.setdefault(relation, []).append(tail)
        yield number, (head, tails)


def _cells(line: str | Unreadable) -> list[str] | str:
    """Return the three names of a line, none for an empty one, or why it has no three."""
    longest = 500
    if isinstance(line, Unreadable):
        return str(line)
    cells = [cell.strip() for cell in clean(line).strip("\r\n").split("\t")]
    if not any(cells):
        return []
    if len(cells) != 3:
        return f"{len(cells)} cells: a triple is head, relation and tail, with a tab between them"
    if not all(cells):
        return "one of the three is empty: write it, or leave the line out"
    if max(map(len, cells)) > longest:
        return f"one of the three has more than {longest} characters: shorten it"
    return cells


def card(name: str, tails: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a head, a line for each relation.

    >>> card("Tampopo", {"written_by": ["Jûzô Itami"], "has_tags": ["food", "ramen"]})
    'Tampopo — written by: Jûzô Itami.\\nTampopo — has tags: food, ramen.'
    """
    lines = (in_words(name, relation, ", ".join(several)) for relation, several in tails.items())
    return "\n".join(f"{line.removesuffix('.')}." for line in lines)


def in_words(head: str, relation: str, tail: str) -> str:
    """Return one triple in words.

    >>> in_words("Tampopo", "written_by", "Jûzô Itami")
    'Tampopo — written by: Jûzô Itami'
    """
    return f"{head} — {relation.replace('_', ' ')}: {tail}"
