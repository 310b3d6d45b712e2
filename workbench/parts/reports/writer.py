"""A report's outline, sections and abstract by the writer's model, where it gives what can be used; else by rules: a
section for each aspect of the topic, or for each document that was found.

What a model writes is cleaned here: headings, links and marks of evidence that it was not shown are taken out, and what
was is said in the notes. Whether its sentences hold is seen once, by ``checked``.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from itertools import chain, compress
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, Field

from workbench.errors import WorkbenchError, shown
from workbench.graphs.needs import LinkedName, read_supply
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.slots import NONE, evidence_text, numbered
from workbench.knowledge.reading.blocks import ITEM, Block, blocks, cells
from workbench.language.answer import CLOSED, group_by_document
from workbench.language.citing import cited, marked_each, renumbered, spaced
from workbench.language.fields import FieldsWriter
from workbench.language.quoting import Sentence, split_sentences
from workbench.parts.reports.kinds import ReportType, report_type
from workbench.parts.reports.markdown import answer_lines, bare, escaped, without_tags
from workbench.ports import Bases, Context, call_part
from workbench.records.figures import source_title
from workbench.records.tape import estimated_tokens
from workbench.state import (
    Data,
    Evidence,
    Json,
    Question,
    ReportOutline,
    RetrievalResult,
    SectionOutline,
    unique,
)
from workbench.text import CJK, detect_language, fold, sentences, terms, titled, unmarked, visible
from workbench.tools.scoring import word_shares


def enough(phrase: str, texts: Sequence[str], bases: Bases) -> list[float]:
    """Return how much of a phrase each text says, by what words mean in the best base; 0 for too little."""
    # A text is about what it says at least so much of: in the same language, and in another.
    within = 0.5
    across = 0.4
    chinese = bool(CJK.search(phrase))
    by_base = [word_shares(phrase, texts, base) for base in bases]
    return [
        max(rows) * (max(rows) >= (within if bool(CJK.search(text)) == chinese else across))
        for text, *rows in zip(texts, *by_base, strict=True)
    ]


def whole_sentences(pieces: Evidence) -> list[Sentence]:
    """Return the sentences that may be quoted; one that begins small goes with the one before it."""
    joined_sentences = list[Sentence]()
    for sentence in split_sentences(pieces):
        continues = (
            joined_sentences
            and joined_sentences[-1].n == sentence.n
            and sentence.text[:1].islower()
        )
        if continues and joined_sentences[-1].text[-1] in CLOSED:
            sentence = sentence._replace(text=f"{joined_sentences.pop().text} {sentence.text}")
        joined_sentences.append(sentence)
    return joined_sentences


def by_aspect(
    titles: Sequence[str], subject: str, pieces: Evidence, bases: Bases
) -> list[SectionOutline]:
    """Return a section for each title, of the sentences that say enough of it, and no more of another."""
    pool = whole_sentences(pieces)
    quotes = [list[Sentence]() for _ in titles]
    texts = [f"{sentence.title}. {sentence.text}" for sentence in pool]
    for sentence, *scores in zip(
        pool, *(enough(title, texts, bases) for title in titles), strict=True
    ):
        if any(scores):
            quotes[scores.index(max(scores))].append(sentence)
    return [
        outlined(
            title,
            f"{subject} {title}",
            [pieces[s.n - 1] for s in own],
            quotes=[s.text for s in own],
        )
        for title, own in zip(titles, quotes, strict=True)
    ]


def plain_outline(state: Data, results: Evidence, bases: Bases) -> ReportOutline:
    """Return the sections of a topic, as many as its kind of report has; those without evidence stay, and state it."""
    kind = report_type(state["report"]["report_type"])
    subject = state["query"]
    reading = state["route_decision"]["question"]
    fields = FieldsWriter(reading, group_by_document(results), bases)
    pieces = [r for r in results if r["source_type"] != "community"]
    compared = {document.doc_id for document in fields.about()}
    supply = read_supply(state["route_decision"], bases)
    names = [*supply.linked, *(LinkedName(name, (name,)) for name in supply.unknown)]
    selects = reading["conditions"] or reading["sort"]
    if selects:
        holding = {document.doc_id for document in fields.holding}
        pieces = [piece for piece in pieces if piece["metadata"].get("doc_id") in holding]
    elif reading["intent"] == "compare" and len(compared) > 1:
        pieces = [piece for piece in pieces if piece["metadata"].get("doc_id") in compared]
    elif names:  # what names nothing of the topic is not on it
        pieces = [piece for piece in pieces if any(name.covered_by(piece) for name in names)]
    about = pieces
    if not selects and not names:
        texts = [f"{source_title(piece)}. {piece['evidence']}" for piece in pieces]
        about = list(compress(pieces, enough(subject, texts, bases)))
    depths = {
        title: depth
        for aspect, parts in state["report"].get("aspects", [])
        for depth, title in (("", aspect), *((".", part) for part in parts))
    }
    depths = depths or dict.fromkeys(kind.wanted, "")
    sections = by_aspect([*depths], subject, pieces if about else [], bases)
    sections = [
        {**section, "section_id": depth}
        for section, depth in zip(sections, depths.values(), strict=True)
    ]
    for section in sections if selects or names else ():
        if fields.field_called(section["title"]):  # its values are known, and need no likeness
            section["evidence_ids"] = unique(piece["result_id"] for piece in pieces)
            section["quotes"] = []
    ids = set(chain(*(section["evidence_ids"] for section in sections)))
    documents: dict[str, list[RetrievalResult]] = {}
    used = {source_title(piece) for piece in pieces if piece["result_id"] in ids}
    for piece in about:
        if source_title(piece) not in used:
            documents.setdefault(source_title(piece), []).append(piece)
    own_section = [] if used else [*documents][: kind.sections - 1]
    sections += [
        outlined(title, f"{subject} {title}", documents.pop(title)) for title in own_section
    ]
    rest = list(chain(*documents.values())) if selects or not used else []
    title = fields.say(f"Other {fields.noun(2)}", f"其余{fields.noun(2)}")
    firsts = {sentence.doc_id: sentence.text for sentence in reversed(whole_sentences(rest))}
    sections += [outlined(title, subject, rest, quotes=[*firsts.values()])] if rest else []
    return new_outline(state, placed(sections)[: kind.sections])


def outlined(
    title: str, query: str, pieces: Evidence, *, summary: str = "", quotes: Sequence[str] = ()
) -> SectionOutline:
    """Return a section from these pieces; its summary is their titles where none is given."""
    titles = unique(map(source_title, pieces))
    return SectionOutline(
        section_id="",
        title=title if CJK.match(title) else title[:1].upper() + title[1:],
        summary=summary or ", ".join(titles[:4]) + (" …" if len(titles) > 4 else ""),
        query=query,
        evidence_ids=unique(piece["result_id"] for piece in pieces),
        estimated_words=max(60, 40 * len(pieces)),
        quotes=[*quotes],
    )


def new_outline(state: Data, sections: list[SectionOutline]) -> ReportOutline:
    """Return an outline of these sections."""
    return ReportOutline(
        report_type=state["report"]["report_type"],
        title=" ".join(state["message"].split())[:300],
        abstract=None,
        sections=sections,
        total_estimated_words=sum(section["estimated_words"] for section in sections),
    )


def carried(
    earlier: ReportOutline, results: Evidence, known_ids: Iterable[str], bases: Bases
) -> ReportOutline:
    """Return the outline of a model or a person over the evidence of today.

    A piece whose id is not known joins the section whose title it says best, if it says it.
    """
    present = {r["result_id"] for r in results}
    earlier_ids = {*known_ids}
    fresh = [r for r in results if r["result_id"] not in earlier_ids]
    added = by_aspect([section["title"] for section in earlier["sections"]], "", fresh, bases)
    sections = list[SectionOutline]()
    for section, new in zip(earlier["sections"], added, strict=True):
        ids = [i for i in section["evidence_ids"] if i in present]
        quotes = [*section["quotes"], *new["quotes"]] if section["quotes"] else []
        sections.append(
            {**section, "evidence_ids": [*ids, *new["evidence_ids"]], "quotes": quotes}
        )
    return {**earlier, "sections": sections}


def placed(sections: Sequence[SectionOutline]) -> list[SectionOutline]:
    """Sections with ids that say where they stand; one whose id is below another's stays below what precedes it.

    >>> [one["section_id"] for one in placed([{"section_id": i} for i in ("2", "1.1", "1.1.1", "")])]
    ['1', '1.1', '1.1.1', '2']
    """
    results: list[SectionOutline] = []
    counts: list[int] = []
    for section in sections:
        depth = min(section["section_id"].count("."), len(counts))
        counts = [*counts[: depth + 1], 0][: depth + 1]
        counts[depth] += 1
        results.append({**section, "section_id": ".".join(map(str, counts))})
    return results


_SECTIONS = 12
"""Most sections of an outline."""
_DROPPED = re.compile(
    r"!\[[^\[\]]*\]\([^()]*\)|</?[a-zA-Z!][^<>]{0,200}>|(?<=\d\])\([^()\s]*\)"
    r"|^[ \t]*(?:`{3,}|~{3,}).*$|^(?: {4}|\t)[ \t]*",
    re.M,
)
"""Pictures, tags, the addresses of marks, fences, and what would make code of a line."""
_LINK = re.compile(r"(?:https?://|www\.)[^\s)\]>）」】，。；]+")


def _line(text: str) -> str:
    """In one line, and nothing in it that steers a terminal."""
    return " ".join(visible(text).split())


def _name(text: str) -> str:
    return re.sub(r"[()\[\]【】]", "", _line(text))


class OutlinedSection(ModelForm):
    """A section as an outline proposes it."""

    title: Annotated[
        str,
        Field(min_length=1, max_length=120),
        AfterValidator(lambda text: _line(text).strip(" #*")),
    ]
    summary: Annotated[str, Field(max_length=600), AfterValidator(_line)]
    query: Annotated[str, Field(max_length=400), AfterValidator(_line)]
    evidence: list[int] = Field(min_length=1, max_length=100)


class Outlined(ModelForm):
    """An outline."""

    sections: list[OutlinedSection] = Field(min_length=1, max_length=_SECTIONS)


class TextForm(ModelForm):
    """A text."""

    text: str = Field(min_length=1, max_length=20_000)


class MappedClaim(ModelForm):
    """A claim that pieces of evidence make."""

    text: Annotated[
        str,
        Field(min_length=1, max_length=600),
        AfterValidator(lambda text: _line(renumbered(text, {})[0])),
    ]
    ids: list[int] = Field(min_length=1, max_length=20)
    entities: list[Annotated[str, AfterValidator(_name)]] = Field(max_length=20)


class MappedClaims(ModelForm):
    """The claims of a batch of evidence."""

    claims: list[MappedClaim] = Field(max_length=40)


class Draft(NamedTuple):
    """A section's Markdown without headings, ``[n]`` the n-th piece; what was fixed or removed; who wrote it."""

    text: str
    notes: list[str]
    by: str


def writes(context: Context) -> bool:
    """Return whether a model writes: one is named for it, and no custom writer replaces it."""
    return "writer" in context.models and "writer" not in context.parts


async def outlined_by_model(
    context: Context, question: str, results: Evidence, aspects: Sequence[str]
) -> list[Json] | None:
    """Return the sections that a model proposes: ``title``, ``summary``, ``query``, ``evidence`` (numbers of results).

    Args:
        context: the ports.
        question: what the report is on.
        results: the evidence, of which the first pieces are shown, each cut short.
        aspects: what the plan asked for.
    """
    # Pieces of evidence in the prompt of an outline, and characters of one.
    most_shown = 30
    longest = 500
    short: Any = [
        {**piece, "evidence": piece["evidence"][:longest]} for piece in results[:most_shown]
    ]

    def problems(form: Outlined) -> list[str]:
        titles = [fold(part.title) for part in form.sections]
        faults = _unknown(
            {n for part in form.sections for n in part.evidence}, range(1, len(short) + 1)
        )
        faults += ["title: two sections have the same."] if len(set(titles)) < len(titles) else []
        return faults + (["title: a section has none."] if not all(map(terms, titles)) else [])

    slots = {
        "aspects": numbered([_line(aspect) for aspect in aspects]),
        "evidence": evidence_text(short, context.settings.merge_max_characters),
        "most": str(_SECTIONS),
    }
    form = await _Writing(context, question, "", short).filled(
        Outlined, "outline", slots, problems
    )
    return [part.model_dump() for part in form.sections] if form else None


async def section_by_model(
    context: Context, question: str, section: SectionOutline, pieces: Evidence, wish: str = ""
) -> Draft:
    """Return a section that a model wrote from its own evidence; without text where nothing of it can be used.

    Args:
        context: the ports.
        question: what the report is on.
        section: its outline.
        pieces: its evidence, best first; ``[n]`` in the text is the n-th.
        wish: what a reader wants of it.

    Raises:
        WorkbenchError: the registered reducer gave no text.
    """
    slots = {"summary": section["summary"] or NONE, "wish": wish or NONE}
    writing = _Writing(context, question, section["title"], pieces, **slots)
    mapped = context.settings.mapreduce and len(pieces) >= context.settings.mapreduce_threshold
    text = await (writing.reduced() if mapped else writing.directly())
    return Draft(text, unique(writing.notes), context.settings.role_model("writer"))


async def abstract_by_model(context: Context, question: str, sections: Sequence[str]) -> str:
    """Return a few sentences that say what a report found, with its marks; "" where none can be used.

    Args:
        context: the ports.
        question: what the report is on.
        sections: their texts, with marks.
    """
    share = min(1.0, context.settings.merge_max_characters / max(1, sum(map(len, sections))))
    slots = {"sections": "\n\n".join(text[: int(len(text) * share)] for text in sections)}
    return await _Writing(context, question, "", []).text(
        "abstract", slots, cited("".join(sections))
    )


class _Writing:
    """One text while it is written: every call of the model, and what was taken out of its replies."""

    def __init__(
        self, context: Context, question: str, title: str, pieces: Evidence, **slots: str
    ):
        self._context = context
        self._title = title
        self._pieces = pieces
        self._slots = {"question": question, "title": title, **slots}
        self._language = detect_language(question)
        self.notes: list[str] = []

    async def directly(self) -> str:
        """From so many pieces a call, each seeing the end of what was written before it."""
        parts = list[str]()
        limit = self._context.settings.section_max_context_characters
        for batch in self._batches():
            earlier = unmarked("\n\n".join(parts))[-limit:] if limit else ""
            slots = {"earlier": earlier or NONE, "evidence": self._evidence(batch)}
            parts += filter(None, [await self.text("section", slots, batch)])
        return "\n\n".join(parts)

    async def reduced(self) -> str:
        """Each batch made claims, and the claims of all of them one text."""
        context = self._context
        calls = [self._claims(batch) for batch in self._batches()]
        mapped = (
            await asyncio.gather(*calls)
            if context.settings.parallel_map
            else [await call for call in calls]
        )
        texts = [text for text in mapped if text]
        if not texts:
            return ""
        if "reducer" in context.parts:
            text = await call_part("reducer", context, texts, unrecorded=(self._joined,))
            if not isinstance(text, str) or not text.strip():
                raise WorkbenchError(
                    f"The reducer gave {shown(text)}. Give a text, as `await reduce(texts)` gives it."
                )
        else:
            strategy = context.settings.reduce_strategy
            limit = context.settings.max_tokens_per_reduce
            text = await reduced(texts, self._joined, strategy, limit)
        return self._cleaned(text, range(1, len(self._pieces) + 1))

    def _batches(self) -> list[list[int]]:
        """Return the numbers of the pieces: so many a batch, and no more than a prompt holds."""
        settings = self._context.settings
        batches = [list[int]()]
        size = 0
        for n, piece in enumerate(self._pieces, 1):
            length = len(evidence_text([piece], 0)) + 10
            full = (
                len(batches[-1]) == settings.section_max_evidence
                or size + length > settings.merge_max_characters
            )
            if batches[-1] and full:
                batches.append([])
                size = 0
            batches[-1].append(n)
            size += length
        return batches

    def _evidence(self, batch: Sequence[int]) -> str:
        """Return all of a batch, which was made to fit."""
        return evidence_text([self._pieces[n - 1] for n in batch], sys.maxsize, batch)

    async def _claims(self, batch: Sequence[int]) -> str:
        """Return what a batch says, a claim a line."""

        def problems(form: MappedClaims) -> list[str]:
            return _unknown({n for claim in form.claims for n in claim.ids}, batch)

        form = await self.filled(
            MappedClaims, "map", {"evidence": self._evidence(batch)}, problems
        )
        lines = []
        for claim in form.claims if form else ():
            marks = "".join(f"[{n}]" for n in dict.fromkeys(claim.ids))
            names = ", ".join(filter(None, claim.entities))
            lines.append(f"- {claim.text} {marks}" + f" ({names})" * bool(names))
        return "\n".join(lines)

    async def _joined(self, texts: Sequence[str]) -> str:
        """Return one call: of some texts one. Where the model gives nothing, they stand one below the other."""
        joined = await self.text("reduce", {"claims": "\n\n".join(texts)}, cited("".join(texts)))
        return joined or "\n".join(
            re.sub(r"(?<=\]) \([^()\n]*\)$", "", text, flags=re.M) for text in texts
        )

    async def text(self, prompt: str, slots: Mapping[str, str], numbers: Iterable[int]) -> str:
        """Return a text by the model, cleaned, that cites nothing but these; "" where none can be used."""
        marks = {n: n for n in numbers}

        def problems(form: TextForm) -> list[str]:
            text = renumbered(_plain(form.text, self._title), marks)[0]
            if not terms(unmarked(text)) or not cited(text):
                return [
                    "text: no sentence has the number of its source behind it. Write from what you were given."
                ]
            return [_WRONG_LANGUAGE[self._language]] if _foreign(text, self._language) else []

        form = await self.filled(TextForm, prompt, slots, problems)
        return self._cleaned(form.text, marks) if form else ""

    async def filled(
        self,
        form: type[BaseModel],
        prompt: str,
        slots: Mapping[str, str],
        problems: Callable[[Any], list[str]],
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
        return reply.form

    def _cleaned(self, text: str, numbers: Iterable[int]) -> str:
        """Return a model's Markdown as a section may have it; what was taken out is noted."""
        text, unknown = renumbered(_plain(text, self._title), {n: n for n in numbers})
        if unknown:
            self.notes.append(
                f"citations of no evidence were removed: {', '.join(f'[{n}]' for n in unknown)}"
            )
        words = fold(
            "\n".join(f"{p['evidence']} {p['metadata'].get('url') or ''}" for p in self._pieces)
        )
        foreign = [
            place for place in _LINK.findall(text) if fold(place.rstrip(".,;:")) not in words
        ]
        for place in sorted(foreign, key=len, reverse=True):
            text = text.replace(place, "")
        if foreign:
            self.notes.append(
                f"addresses of no source were removed: {', '.join(foreign[:5])[:300]}"
            )
        return re.sub(r"[ \t]+(?=\n|$)|(?<=\S) +(?= )", "", text).strip()


def _unknown(numbers: Set[int], valid: Sequence[int]) -> list[str]:
    """Return the faults of numbers of evidence that was not shown."""
    shown = f"{valid[0]} to {valid[-1]}" if valid else "none"
    return [
        f"evidence: there is no [{n}]. Known: {shown}." for n in sorted(numbers - {*valid})[:5]
    ]


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


def _plain(text: str, title: str) -> str:
    r"""Return the paragraphs and lists of a model's Markdown: no heading, picture, link, fence or tag.

    >>> print(_plain("# Fuel\n\n**Fuel:**\n\n1. See [K](http://k.example) [1].\n\n|K|Wood|\n|-|-|\n|K1|9 [2]|", "Fuel"))
    - See K [1].
    - K1: 9 [2]
    >>> print(_plain("```\n<b>Kiln 2</b> burns ![x](http://p.example/p.png) wood [2](http://x.example).\n```", ""))
    Kiln 2 burns wood [2].
    """
    lines = ""
    for block in blocks(_DROPPED.sub("", visible(text))):
        line = _as_line(block)
        heading = fold(re.sub(r"^[\d.、\s]+|[\s*_:：#]", "", line))
        if (
            block.kind == "heading"
            or not terms(line)
            or heading == fold(re.sub(r"\s", "", title))
        ):
            continue
        is_item = block.kind in ("row", "item")
        follows_item = lines.rpartition("\n")[2].startswith("- ")
        lines += ("\n" if is_item and follows_item else "\n\n") + "- " * is_item + line
    return lines.strip()


def _as_line(block: Block) -> str:
    """Return what a block shows; the cells of a row behind its first one."""
    text = re.sub(ITEM, "", block.text)
    if block.kind == "row":
        first, *rest = filter(str.strip, cells(block.text))
        text = ": ".join(filter(None, [first, ", ".join(rest)]))
    return bare(text)


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


# a section without a model: sentences of its evidence, grouped by document, each with its mark


def section_text(
    section: SectionOutline, pieces: Evidence, question: Question, bases: Bases, kind: ReportType
) -> str:
    """Write the section in Markdown; ``[n]`` is the n-th piece. A paragraph for each document.

    Args:
        section: its outline.
        pieces: its evidence.
        question: the topic as it was read: its language and names.
        bases: how they write titles and names.
        kind: of report: how many sentences it quotes, in all and of one document.
    """
    documents = group_by_document(pieces)
    fields = FieldsWriter(question, documents, bases)
    field = fields.field_called(section["title"])
    lines = [fields.statement(document, [field]) for document in documents.values() if field]
    if lines := list(filter(None, lines)):
        return answer_lines("\n".join(f"- {line}" for line in lines[: kind.statements]))
    if field or not pieces:
        title = escaped(section["title"])
        return fields.say(
            f"The corpus says nothing on “{title}”.", f"资料库没有关于“{title}”的内容。"
        )
    wanted = {fold(quote) for quote in section["quotes"]}
    by_text = {fold(s.text): s for s in reversed(whole_sentences(pieces))}
    quoted = [s for key, s in by_text.items() if key in wanted or not wanted]
    by_document: dict[str, list[Sentence]] = {}
    of_one = kind.of_one * (2 if len({s.doc_id for s in quoted}) == 1 else 1)
    for sentence in sorted(quoted, key=lambda s: (s.n, s.place)):
        own = by_document.setdefault(sentence.doc_id, [])
        if len(own) < of_one and sum(map(len, by_document.values())) < kind.statements:
            own.append(sentence)
    by_date = sorted(
        filter(None, by_document.values()), key=lambda own: fields.date(own[0].doc_id) or "~"
    )
    text = "\n\n".join(
        _paragraph(own, source_title(pieces[own[0].n - 1]), fields) for own in by_date
    )
    return spaced(text) if question["language"] == "zh" else text


def _paragraph(quoted: Sequence[Sentence], title: str, fields: FieldsWriter) -> str:
    """Write what one document says; foreign sentences in quotation marks, behind whose words they are."""
    called = escaped(fields.called(title))
    about = [title * (fields.called(title) != title), fields.date(quoted[0].doc_id)]
    inside = escaped("，".join(filter(None, about)))
    english, chinese = (f" ({inside})", f"（{inside}）") if inside else ("", "")
    lead = fields.say(f"**{called}**{english}: ", f"**{titled(called)}**{chinese}：")
    if detect_language(quoted[0].text) != fields.question["language"]:
        words = " ".join(
            f"“{text}” [{s.n}]" for s in quoted for text in sentences(without_tags(s.text))
        )
        return lead + fields.say(words, f"{words}。")
    texts = []
    for sentence in quoted:
        begun = "… " * sentence.text[:1].islower() + without_tags(sentence.text)
        closed = begun + fields.say(".", "。") * (begun[-1:] not in CLOSED)
        texts.append(marked_each(closed, sentence.n))
    text = fields.say(" ", "").join(texts)
    if len(sentences(title)) > 1:  # a title that ends in its middle
        return re.sub(r"^(?=[#>+*-])", r"\\", text)
    return lead + text
