"""A report beside the evidence of a later day: what became of each of its statements, and what is new.

Only what changed speaks: a contradiction or a support that the report had already is no news.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from workbench.language.support import Shares, held
from workbench.reports.checking import of_evidence, opposed
from workbench.reports.extracting import sentences_in
from workbench.state import Claim, RetrievalResult, SectionContent
from workbench.text import fold
from workbench.views.labels import Labels, labels_for
from workbench.views.outline import Block, Lines, Table, columns
from workbench.views.render import Shown

Became = Literal["contradicted", "stale", "moved", "better_supported", "kept", "new"]
_SIGNS = {"contradicted": "≠", "stale": "−", "moved": "→", "better_supported": "↑", "kept": "=", "new": "+"}
_MOST = 3
"""Places that are named where a statement stands besides."""


@dataclass(frozen=True)
class Change:
    """What became of one statement.

    Attributes:
        claim_id: of the statement; so are ``section_id`` and ``text``.
        section: the title of its section.
        became: ``kept``: its sources say it as before. ``moved``: they do no more, and another does. ``stale``: nothing
            supports it. ``contradicted``: something new says the contrary. ``better_supported``: something new, from
            another document, says it too. ``new``: the later report says it, and this one does not.
        why: ``gone`` or ``changed``, of its sources; else "".
        said: the sentence that says the contrary.
        before: its sources then, ``{"result_id", "title"}`` each.
        after: what supports it now; or what contradicts it.
    """

    claim_id: str
    section_id: str
    section: str
    text: str
    became: Became
    why: str = ""
    said: str = ""
    before: tuple[dict[str, str], ...] = ()
    after: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class Changes(Shown):
    """A report's statements beside the evidence of a later day, in the order of its sections.

    Attributes:
        message: its topic, in whose language it is shown.
        rows: one for each statement, then those that are new.
        sections_written: how many sections an update writes, or wrote.
        sections_kept: how many it takes over as they are.
        runs: the run of the report, and of the later one; "" for one that is not kept.
    """

    message: str
    rows: tuple[Change, ...]
    sections_written: int = 0
    sections_kept: int = 0
    runs: tuple[str, str] = field(default=("", ""))

    @property
    def counts(self) -> dict[str, int]:
        """How many statements became what."""
        return {name: sum(row.became == name for row in self.rows) for name in get_args(Became)}

    def __bool__(self) -> bool:
        """Whether anything is to be told."""
        return any(row.became != "kept" for row in self.rows) or bool(self.sections_written)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        told = {
            "counts": self.counts,
            "rows": [vars(row) for row in self.rows],
            "runs": self.runs,
            "sections_written": self.sections_written,
            "sections_kept": self.sections_kept,
        }
        return json.loads(json.dumps(told))

    def blocks(self) -> list[Block]:
        """A line that counts, then a table for each section in which something changed."""
        labels = labels_for(self.message)
        return [_head(self, labels), *_tables(self, labels)]


class Then(NamedTuple):
    """A report as it was, or as it is today: its sections and the evidence that it was written from."""

    sections: Sequence[SectionContent]
    evidence: Sequence[RetrievalResult]

    def claims(self) -> Iterator[tuple[SectionContent, Claim]]:
        """Its statements, in order, each with its section."""
        yield from ((section, claim) for section in self.sections for claim in section["claims"])


def changes(
    old: Then,
    new: Then,
    *,
    still: Sequence[RetrievalResult] = (),
    shares: Shares | None = None,
) -> list[Change]:
    """What became of each statement of a report, and what a later one says that it did not.

    Args:
        old: the report.
        new: the later one.
        still: pieces of the old evidence as the corpus has them today, where they are no part of the new.
        shares: how much of a sentence each text says, by what words mean; by the words themselves without it.
    """
    judge = _Judge(old, new, still, shares)
    rows = [judge.of(section, claim) for section, claim in old.claims()]
    said = {fold(row.text) for row in rows}
    for section, claim in new.claims():
        if fold(claim["text"]) not in said:
            own = (claim["claim_id"], claim["section_id"], section["title"], claim["text"])
            rows.append(Change(*own, "new", after=judge.named(claim["evidence_ids"])))
    return rows


class _Judge:
    def __init__(self, old: Then, new: Then, still: Sequence[RetrievalResult], shares: Shares | None):
        self.then = {r["result_id"]: r for r in old.evidence}
        self.now = {r["result_id"]: r for r in (*still, *new.evidence)}
        told = dict(of_evidence(old.evidence))
        self.same = {i for i, digest in of_evidence([*self.now.values()]) if told.get(i) == digest}
        self.fresh = [r for i, r in self.now.items() if i not in self.same]
        self.sentences = [(r, s.text) for r in self.fresh for s in sentences_in(1, r)]
        self.before = {fold(s.text) for r in old.evidence for s in sentences_in(1, r)}
        self.shares = shares

    def named(self, ids: Iterable[str]) -> tuple[dict[str, str], ...]:
        """Pieces for people: as they are now, or were."""
        there = [(i, self.now.get(i) or self.then.get(i)) for i in ids]
        return tuple({"result_id": i, "title": _title(r) if r else i} for i, r in there)

    def of(self, section: SectionContent, claim: Claim) -> Change:
        """One statement and what became of it."""
        own, before = claim["evidence_ids"], self.named(claim["evidence_ids"])
        about = (claim["claim_id"], claim["section_id"], section["title"], claim["text"])
        lost_ = [i for i in own if i not in self.same]
        why = "" if not lost_ else "changed" if any(i in self.now for i in lost_) else "gone"
        if contrary := self._contrary(claim["text"]):
            return Change(*about, "contradicted", why, contrary[1], before, self.named([contrary[0]["result_id"]]))
        standing = [i for i in own if i in self.same or (i in self.now and self._says(self.now[i], claim["text"]))]
        documents = {_document(self.then[i]) for i in own if i in self.then}
        if standing or not own:
            more = [r for r in self.fresh if _document(r) not in documents and self._says(r, claim["text"])]
            became: Became = "better_supported" if more and own else "kept"
            after = [*standing, *(r["result_id"] for r in more if own)][: _MOST + len(standing)]
            return Change(*about, became, why, "", before, self.named(after))
        other = [i for i, r in self.now.items() if i not in own and self._says(r, claim["text"])]
        return Change(*about, "moved" if other else "stale", why, "", before, self.named(other[:_MOST]))

    def _says(self, piece: RetrievalResult, text: str) -> bool:
        """Whether a piece says all of a statement: its words as a checker reads them, and every name and number."""
        source = f"{_title(piece)}\n{piece['evidence']}"
        return held(f"{text} [1]", {1: source}, self.shares).verdict == "supported"

    def _contrary(self, text: str) -> tuple[RetrievalResult, str] | None:
        """A sentence that was not there before and cannot hold beside this one."""
        found = ((r, said) for r, said in self.sentences if fold(said) not in self.before)
        return next(((r, said) for r, said in found if opposed(text, said)), None)


def _document(result: RetrievalResult) -> str:
    return str(result["metadata"].get("doc_id") or result["source_id"])


def _title(result: RetrievalResult) -> str:
    return str(result["metadata"].get("title") or result["source_id"])


# how it is shown


def _head(found: Changes, labels: Labels) -> Lines:
    counted = [f"{_SIGNS[name]} {labels(f'living_{name}')} {n}" for name, n in found.counts.items() if n]
    sections = labels("living_sections", n=found.sections_written, kept=found.sections_kept)
    told = labels("comma").join(counted) if found else labels("living_nothing")
    return Lines((((found.message, "strong"),), ((told, ""),), ((sections, "dim"),)))


def _tables(found: Changes, labels: Labels) -> Iterator[Table]:
    titles = dict.fromkeys((row.section_id, row.section) for row in found.rows)
    heads = columns(labels, "change::whole", "living_statement", "living_before", "living_after")
    for section_id, title in sorted(titles, key=lambda one: [int(p) if p.isdigit() else 0 for p in one[0].split(".")]):
        rows = [row for row in found.rows if (row.section_id, row.section) == (section_id, title)]
        told = [_row(row, labels) for row in rows if row.became != "kept"]
        if told:
            kept = len(rows) - len(told)
            notes = (labels("living_kept_n", n=kept),) if kept else ()
            yield Table(f"{section_id} {title}", heads, tuple(told), notes=notes)


def _row(row: Change, labels: Labels) -> tuple[str, str, str, str]:
    why = f" ({labels(f'living_{row.why}')})" if row.why else ""
    after = f"{_titles(row.after, labels)}{labels('colon') + row.said if row.said else ''}"
    return (
        f"{_SIGNS[row.became]} {labels(f'living_{row.became}')}",
        row.text,
        f"{_titles(row.before, labels)}{why}" if row.before else "—",
        after or "—",
    )


def _titles(pieces: Sequence[Mapping[str, str]], labels: Labels) -> str:
    return labels("comma").join(dict.fromkeys(piece["title"] for piece in pieces))
