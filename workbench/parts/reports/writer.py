"""A report's outline, sections and abstract by the writer's model; None wherever it gives nothing that can be used.

What a model writes is cleaned here: headings, links and marks of evidence that it was not shown are taken out, and what
was is said in the notes. Whether its sentences hold is seen once, by ``checked``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from workbench import ports
from workbench.graphs.roles import NONE, ask_model, evidence_text, numbered
from workbench.knowledge.reading.blocks import ITEM, Block, blocks, cells
from workbench.language.citing import renumbered
from workbench.ports import Context
from workbench.records.tape import estimated_tokens
from workbench.state import Json, RetrievalResult
from workbench.text import CJK, detect_language, fold, terms, visible

_SECTIONS, _CLAIMS = 12, 40
"""Most sections of an outline, and claims of a batch."""
_PIECE, _CLAIM, _SHORT = 500, 600, 300
"""Characters of a piece in the prompt of an outline, of a claim, and of another line."""
_MOST_SHOWN = 30
"""Pieces of evidence in the prompt of an outline."""


_STARTS = re.compile(r"^(?:(?:#{1,6}|[-+*])(?:\s+|$)|>\s*|`{3,}|~{3,}|\d{1,9}[.)]\s+(?=[#>*+`~-]))+")
"""What would open a heading, a list, a quotation or a fence, where a line begins."""
_LINK = re.compile(r"(?:https?://|www\.)[^\s)\]>）」】，。；]+")


class ModelForm(BaseModel, extra="forbid"):
    """What the writer fills in."""


class OutlinedSection(ModelForm):
    """A section as an outline proposes it."""

    title: str = Field(min_length=1, max_length=120)
    summary: str = Field(max_length=600)
    query: str = Field(max_length=400)
    evidence: list[int] = Field(min_length=1, max_length=100)


class Outlined(ModelForm):
    """An outline."""

    sections: list[OutlinedSection] = Field(min_length=1, max_length=_SECTIONS)


class TextForm(ModelForm):
    """A text."""

    text: str = Field(min_length=1, max_length=20_000)


class MappedClaim(ModelForm):
    """A claim that pieces of evidence make."""

    text: str = Field(min_length=1, max_length=_CLAIM)
    ids: list[int] = Field(min_length=1, max_length=20)
    entities: list[str] = Field(max_length=20)


class MappedClaims(ModelForm):
    """The claims of a batch of evidence."""

    claims: list[MappedClaim] = Field(max_length=_CLAIMS)


class Draft(NamedTuple):
    """What a model wrote: Markdown without headings, ``[n]`` the n-th piece; and what was fixed or removed."""

    text: str
    notes: list[str]


async def outlined_by_model(
    context: Context, question: str, results: Sequence[RetrievalResult], aspects: Sequence[str]
) -> list[Json] | None:
    """Return the sections that a model proposes: ``title``, ``summary``, ``query``, ``evidence`` (numbers of results).

    Args:
        context: the ports.
        question: what the report is on.
        results: the evidence, of which the first ``_MOST_SHOWN`` pieces are shown, each cut short.
        aspects: what the plan asked for.
    """
    if not ready(context) or not results:
        return None
    short = [r.copy() for r in results[:_MOST_SHOWN]]
    for piece in short:
        piece["evidence"] = piece["evidence"][:_PIECE]

    def problems(form: Outlined) -> list[str]:
        titles = [fold(part.title) for part in form.sections]
        faults = _unknown({n for part in form.sections for n in part.evidence}, range(1, len(short) + 1))
        faults += ["title: two sections have the same."] if len(set(titles)) < len(titles) else []
        return faults + (["title: a section has none."] if not all(map(terms, titles)) else [])

    slots = {
        "aspects": numbered([_line(aspect) for aspect in aspects]),
        "evidence": evidence_text(short, context.settings.merge_max_characters),
        "most": str(_SECTIONS),
    }
    form = await _Writing(context, question, "", short).filled(Outlined, "outline", slots, problems)
    if form is None:
        return None
    return [
        {
            "title": _line(part.title).strip(" #*"),
            "summary": _line(part.summary),
            "query": _line(part.query) or _line(part.title).strip(" #*"),
            "evidence": list(dict.fromkeys(part.evidence)),
        }
        for part in form.sections
    ]


async def section_by_model(
    context: Context, *, question: str, title: str, summary: str, pieces: Sequence[RetrievalResult], wish: str = ""
) -> Draft | None:
    """Return a section that a model wrote from its own evidence: without text, and with the reasons in its notes, where
    nothing of it can be used; None where there is no model, or no evidence.

    Args:
        context: the ports.
        question: what the report is on.
        title: of the section.
        summary: what it is about.
        pieces: its evidence, best first; ``[n]`` in the text is the n-th.
        wish: what a reviewer wants of it.

    Raises:
        WorkbenchError: the registered reducer gave no text.
    """
    if not ready(context) or not pieces:
        return None
    writing = _Writing(context, question, title, pieces, summary=summary or NONE, wish=wish or NONE)
    mapped = context.settings.mapreduce and len(pieces) >= context.settings.mapreduce_threshold
    text = await (writing.reduced() if mapped else writing.directly())
    return Draft(text, list(dict.fromkeys(writing.notes)))


async def abstract_by_model(context: Context, question: str, sections_text: str) -> str | None:
    """Return a few sentences that say what a report found, with its marks; None where none can be used.

    Args:
        context: the ports.
        question: what the report is on.
        sections_text: its sections, with marks.
    """
    if not ready(context) or not sections_text.strip():
        return None
    share = min(1.0, context.settings.merge_max_characters / len(sections_text))
    slots = {"sections": "\n\n".join(part[: int(len(part) * share)] for part in sections_text.split("\n\n"))}
    writing = _Writing(context, question, "", [])
    return await writing.text("abstract", slots, map(int, re.findall(r"\[(\d+)\]", sections_text))) or None


class _Writing:
    """One text while it is written: every call of the model, and what was taken out of its replies."""

    def __init__(self, context: Context, question: str, title: str, pieces: Sequence[RetrievalResult], **slots: str):
        self._context, self._title, self._pieces = context, title, pieces
        self._slots = {"question": question, "title": title, **slots}
        self._language = detect_language(question)
        self.notes: list[str] = []
        self._replied = True

    async def directly(self) -> str:
        """From so many pieces a call, each seeing the end of what was written before it."""
        parts, limit = list[str](), self._context.settings.section_max_context_characters
        for batch in self._batches():
            earlier = _unmarked("\n\n".join(parts))[-limit:] if limit else ""
            slots = {"earlier": earlier or NONE, "evidence": self._evidence(batch)}
            parts += filter(None, [await self.text("section", slots, batch)])
            if not self._replied:
                break
        return "\n\n".join(parts)

    async def reduced(self) -> str:
        """Each batch made claims, and the claims of all of them one text."""
        context, calls = self._context, [self._claims(batch) for batch in self._batches()]
        mapped = await asyncio.gather(*calls) if context.settings.parallel_map else [await call for call in calls]
        texts = [text for text in mapped if text]
        if not texts:
            return ""
        if "reducer" in context.parts:
            text = await ports.call_reducer(context, texts, self._joined)
        else:
            strategy, limit = context.settings.reduce_strategy, context.settings.max_tokens_per_reduce
            text = await reduced(texts, self._joined, strategy, limit)
        return self._cleaned(text, range(1, len(self._pieces) + 1))

    def _batches(self) -> list[list[int]]:
        """Return the numbers of the pieces: so many a batch, and no more than a prompt holds."""
        settings = self._context.settings
        batches, size = [list[int]()], 0
        for n, piece in enumerate(self._pieces, 1):
            length = len(evidence_text([piece], 0)) + 10
            full = len(batches[-1]) == settings.section_max_evidence or size + length > settings.merge_max_characters
            if batches[-1] and full:
                batches.append([])
                size = 0
            batches[-1].append(n)
            size += length
        return batches

    def _evidence(self, batch: Sequence[int]) -> str:
        """Return all of a batch, which was made to fit."""
        pieces = [self._pieces[n - 1] for n in batch]
        return evidence_text(pieces, sum(len(piece["evidence"]) for piece in pieces) + 10**6, batch)

    async def _claims(self, batch: Sequence[int]) -> str:
        """Return what a batch says, a claim a line."""

        def problems(form: MappedClaims) -> list[str]:
            return _unknown({n for claim in form.claims for n in claim.ids}, batch)

        form = await self.filled(MappedClaims, "map", {"evidence": self._evidence(batch)}, problems)
        lines = []
        for claim in form.claims if form else ():
            marks = "".join(f"[{n}]" for n in dict.fromkeys(claim.ids))
            entities = filter(None, (re.sub(r"[()\[\]【】]", "", _line(name)) for name in claim.entities))
            names = f" ({words})" if (words := ", ".join(entities)) else ""
            lines.append(f"- {_line(_unmarked(claim.text), _CLAIM)} {marks}{names}")
        return "\n".join(lines)

    async def _joined(self, texts: Sequence[str]) -> str:
        """Return one call: of some texts one. Where the model gives nothing, they stand one below the other."""
        marks = (int(n) for text in texts for n in re.findall(r"\[(\d+)\]", text))
        joined = await self.text("reduce", {"claims": "\n\n".join(texts)}, marks)
        return joined or "\n".join(re.sub(r"(?<=\]) \([^()\n]*\)$", "", text, flags=re.M) for text in texts)

    async def text(self, prompt: str, slots: Mapping[str, str], numbers: Iterable[int]) -> str:
        """Return a text by the model, cleaned, that cites nothing but these; "" where none can be used."""
        marks = {n: n for n in numbers}

        def problems(form: TextForm) -> list[str]:
            text = renumbered(_plain(form.text, self._title), marks)[0]
            if not terms(_unmarked(text)) or not re.search(r"\[\d+\]", text):
                return ["text: no sentence has the number of its source behind it. Write from what you were given."]
            return [_WRONG_LANGUAGE[self._language]] if _foreign(text, self._language) else []

        form = await self.filled(TextForm, prompt, slots, problems)
        return self._cleaned(form.text, marks) if form else ""

    async def filled(
        self, form: type[BaseModel], prompt: str, slots: Mapping[str, str], problems: Callable[[Any], list[str]]
    ) -> Any:
        """Return what the model filled in, or None; why not is in the notes."""
        reply = await ask_model(
            self._context,
            "writer",
            form,
            {**self._slots, **slots},
            question=self._slots["question"],
            problems=problems,
            at=self._title[:80],
            prompt=prompt,
            language=self._language,
        )
        self.notes += reply.refused
        self._replied = reply.replied
        return reply.form

    def _cleaned(self, text: str, numbers: Iterable[int]) -> str:
        """Return a model's Markdown as a section may have it; what was taken out is noted."""
        text, unknown = renumbered(_plain(text, self._title), {n: n for n in numbers})
        if unknown:
            self.notes.append(f"citations of no evidence were removed: {', '.join(f'[{n}]' for n in unknown)}")
        words = fold("\n".join(f"{p['evidence']} {p['metadata'].get('url') or ''}" for p in self._pieces))
        foreign = [place for place in _LINK.findall(text) if fold(place.rstrip(".,;:")) not in words]
        for place in sorted(foreign, key=len, reverse=True):
            text = text.replace(place, "")
        if foreign:
            self.notes.append(f"addresses of no source were removed: {', '.join(foreign[:5])[:_SHORT]}")
        return re.sub(r"[ \t]+(?=\n|$)|(?<=\S) +(?= )", "", text).strip()


def ready(context: Context) -> bool:
    """Return whether a model writes: one is named for it, and no custom writer replaces it."""
    return "writer" in context.models and "writer" not in context.parts


def _unknown(numbers: Set[int], valid: Sequence[int]) -> list[str]:
    """Return the faults of numbers of evidence that was not shown."""
    shown = f"{valid[0]} to {valid[-1]}" if valid else "none"
    return [f"evidence: there is no [{n}]. Known: {shown}." for n in sorted(numbers - {*valid})[:5]]


def _line(text: str, limit: int = _SHORT) -> str:
    """In one line, not too long, and nothing in it that steers a terminal."""
    return " ".join(visible(text).split())[:limit].strip()


def _foreign(text: str, language: str) -> bool:
    """Return whether a text is plainly in the other language; names and quotations in it may be.

    >>> _foreign("长桥有四十个桥拱[1]。", "en"), _foreign("The bridge (长桥) is red [1].", "en"), _foreign("Red.", "zh")
    (True, False, True)
    """
    chinese = len(CJK.findall(text))
    return not chinese if language == "zh" else chinese > 2 * len(re.findall("[A-Za-z]+", text))


_WRONG_LANGUAGE = {
    "en": "text: it is not in English. Write in English.",
    "zh": "text: it is not in Chinese. 请用中文书写。",
}


def _unmarked(text: str) -> str:
    return renumbered(text, {})[0].strip()


def _plain(text: str, title: str) -> str:
    """Return the paragraphs and lists of a model's Markdown: no heading, picture, link, fence or tag."""
    lines: list[str] = []
    for block in blocks(_linkless(visible(text))):
        line = _plain(block.text, title) if block.kind == "code" else " ".join(_as_line(block).split())
        bare = fold(re.sub(r"^[\d.、\s]+|[\s*_:：#]", "", line))
        if block.kind == "heading" or not terms(line) or bare == fold(re.sub(r"\s", "", title)):
            continue
        is_item = line.startswith("- ")
        follows_item = bool(lines) and lines[-1].lstrip().startswith("- ")
        gap = "\n" if is_item and follows_item else "\n\n"
        lines.append(gap + _harmless(line, "- " if is_item else ""))
    return "".join(lines).strip()


def _harmless(line: str, lead: str) -> str:
    """Return a line in which nothing opens a block, a tag, a link, or a definition that would redirect marks."""
    line = lead + _STARTS.sub("", line.removeprefix(lead))
    line = re.sub(r"^((?:- )?\[[^\]]*\]):", r"\1 :", line.replace("](", "] ("))
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", line)


def _as_line(block: Block) -> str:
    """Return a block as text; an item, or the row of a table, as an item of a list."""
    if block.kind == "row":
        first, *rest = filter(str.strip, cells(block.text))
        return "- " + ": ".join(filter(None, [first, ", ".join(rest)]))
    return re.sub(ITEM, "- ", block.text) if block.kind == "item" else block.text


def _linkless(text: str) -> str:
    """Without pictures and tags, and of a link what it says."""
    bare = re.sub(r"!\[[^\[\]]*\]\([^()]*\)|</?[a-zA-Z!][^<>]{0,200}>", "", text)
    if bare != text:
        return _linkless(bare)  # what stood around a tag may be one now
    return re.sub(r"\[([^\[\]]*)\]\(([^()\s]*)[^()]*\)", lambda m: f"[{m[1]}]" if m[1].isdigit() else m[1], text)


# one text of many, by calls of a model that make one of a few: a strategy says which few go into a call

Reduce = Callable[[Sequence[str]], Awaitable[str]]
"""One call of a model: of some texts one."""


async def reduced(texts: Sequence[str], reduce: Reduce, strategy: str, max_tokens: int) -> str:
    """Return one text of all.

    Args:
        texts: at least one.
        reduce: a call; those of a round are made at the same time.
        strategy: ``collapse`` gives a call as many texts as fit, ``refine`` a running text and the next, ``tree`` two.
        max_tokens: about how much a call is given.
    """
    while True:
        groups = STRATEGIES[strategy](texts, max_tokens)
        if len(groups) == 1:
            return await reduce(groups[0])
        texts = await asyncio.gather(*(_reduced_group(group, reduce) for group in groups))


async def _reduced_group(group: Sequence[str], reduce: Reduce) -> str:
    return await reduce(group) if len(group) > 1 else group[0]


def _fitting(texts: Sequence[str], max_tokens: int) -> list[list[str]]:
    """Return the texts in groups of about so many tokens, at least two in each but the last.

    >>> [len(group) for group in _fitting(["a" * 40] * 5, 30)], [len(group) for group in _fitting(["a" * 400] * 3, 30)]
    ([3, 2], [2, 1])
    """
    groups: list[list[str]] = [[]]
    for text in texts:
        size = sum(map(estimated_tokens, [*groups[-1], text]))
        if len(groups[-1]) > 1 and size > max_tokens:
            groups.append([])
        groups[-1].append(text)
    return groups


STRATEGIES: Mapping[str, Callable[[Sequence[str], int], list[list[str]]]] = {
    "collapse": _fitting,
    "refine": lambda texts, _: [[*texts[:2]], *([text] for text in texts[2:])],
    "tree": lambda texts, _: [[*texts[n : n + 2]] for n in range(0, len(texts), 2)],
}
