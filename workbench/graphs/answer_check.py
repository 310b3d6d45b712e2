"""An answer held against its sources: each statement gets a verdict, and what fails is marked.

Rules check every statement first. Where the checker's model checks too, its verdict counts, but for an address that no
source has, and what the rules missed is shown with it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Literal

from pydantic import Field

from workbench.errors import Divergence, KnowledgeError
from workbench.graphs.roles import ModelForm, ask_model
from workbench.graphs.slots import evidence_text, numbered
from workbench.language.citing import (
    ADDRESS,
    Support,
    checked,
    cited,
    is_refusal,
    marked_sentences,
)
from workbench.language.dates_and_numbers import read_numbers
from workbench.language.quoting import parts as quotations
from workbench.language.words import field_words, fields_by_name, value_texts
from workbench.ports import Context, KnowledgeBase
from workbench.state import Evidence, RetrievalResult, Supported, unique
from workbench.text import CJK

_SENTENCES, _VALUES = 40, 30
MARKS = {
    "unsupported": (" (not in its sources)", "（来源中没有依据）"),
    "unjudged": (" (not all in its sources)", "（来源中不全有）"),
    "uncited": (" (without a source)", "（未注明出处）"),
}
"""Verdict -> what stands behind a sentence in an answer, in English and in Chinese."""


class Checked(ModelForm):
    """The checker's verdict on one sentence."""

    sentence: int = Field(ge=1, le=_SENTENCES)
    verdict: Literal["supported", "partly", "unsupported"]


class CheckedAll(ModelForm):
    """The form of the checker."""

    sentences: list[Checked] = Field(max_length=_SENTENCES)


async def supported(
    context: Context, text: str, evidence: Evidence, question: str, counts: Collection[float] = ()
) -> list[Supported]:
    """Return every statement of an answer with its verdict; one that only states ``counts`` needs no source."""
    statements = [_counted(statement, counts) for statement in _by_rules(context, text, evidence)]
    numbers = {*range(1, len(evidence) + 1)}
    citing = [s for s in statements if s.cited and {*s.cited} <= numbers]
    verdicts = dict[str, str]()
    checker = ""
    if citing and "checker" in context.models:
        # a sentence without a source may have that of the next one
        led = [
            sentence._replace(cited=after.cited)
            for sentence, after in pairwise(statements)
            if not sentence.cited and after in citing
        ]
        sentences = {s.sentence for s in led}
        # a model also judges what cites nothing: it may say what is not said, or what the passages of others say
        uncited = [
            s for s in statements if s.verdict == "uncited" and s.sentence not in sentences
        ]
        verdicts, _ = await verdicts_by_model(
            context, [*citing, *led, *uncited], evidence, question
        )
        checker = context.settings.role_model("checker")
    return [_combined(s, verdicts.get(s.sentence, ""), checker, evidence) for s in statements]


def _counted(statement: Support, counts: Collection[float]) -> Support:
    """Return a statement without a source as supported, where each of its numbers was counted in the corpus."""
    if statement.verdict != "uncited" or not counts:
        return statement
    numbers = read_numbers(statement.sentence)
    counted = all(number.low == number.high and number.low in counts for number in numbers)
    return statement._replace(verdict="supported") if numbers and counted else statement


def _by_rules(context: Context, text: str, evidence: Evidence) -> list[Support]:
    numbers = cited(text)
    pieces = {n: result for n, result in enumerate(evidence, 1) if n in numbers}
    try:
        sources = {n: source_text(r, _base(r, context)) for n, r in pieces.items()}
    except (Divergence, KnowledgeError):  # a replay without the base
        sources = {n: source_text(r, None) for n, r in pieces.items()}
    return checked(text, sources)


def _groups(
    statements: Sequence[Support], evidence: Evidence, limit: int
) -> Iterator[list[Support]]:
    """Yield statements that are checked together: as many as fit a form, and whose sources fit a prompt."""
    group = list[Support]()
    numbers = set[int]()
    for statement in statements:
        numbers |= {*statement.cited}
        text = evidence_text([evidence[n - 1] for n in sorted(numbers)], sys.maxsize)
        if group and (len(group) == _SENTENCES or len(text) > limit):
            yield group
            group = []
            numbers = {*statement.cited}
        group.append(statement)
    yield group


async def verdicts_by_model(
    context: Context, statements: Sequence[Support], evidence: Evidence, question: str
) -> tuple[dict[str, str], list[str]]:
    """Return the verdicts of the checker's model by sentence, and what was wrong where it gave none."""
    groups = _groups(statements, evidence, context.settings.merge_max_characters)
    calls = (_by_model(context, group, evidence, question) for group in groups)
    verdicts = dict[str, str]()
    faults = list[str]()
    for by_sentence, refused in await asyncio.gather(*calls):
        verdicts |= by_sentence
        faults += [] if by_sentence else refused
    return verdicts, faults


async def _by_model(
    context: Context, group: Sequence[Support], evidence: Evidence, question: str
) -> tuple[dict[str, str], list[str]]:
    numbers = sorted({n for statement in group for n in statement.cited})
    pieces = [evidence[n - 1] for n in numbers]
    lines = [
        f"{statement.sentence} (cites {', '.join(map(str, statement.cited)) or 'nothing'})"
        for statement in group
    ]
    slots = {
        "sentences": numbered(lines),
        "evidence": evidence_text(pieces, context.settings.merge_max_characters, numbers),
    }
    reply = await ask_model(context, "checker", CheckedAll, slots, question=question)
    verdicts = {
        group[verdict.sentence - 1].sentence: verdict.verdict
        for verdict in (reply.form.sentences if reply.form else ())
        if verdict.sentence <= len(group)
    }
    return verdicts, reply.refused


def _combined(support: Support, verdict: str, judge: str, evidence: Evidence) -> Supported:
    """Return a model's verdict where there is one, with what the rules missed.

    An address that no source has fails, and so does a quotation in the language of its sources that none of them has.
    """
    final: Any = support.verdict
    by = support.by
    if verdict and (final != "uncited" or verdict != "unsupported"):
        sources = [evidence[n - 1]["evidence"] for n in support.cited if n <= len(evidence)]
        translated = not any(
            bool(CJK.search(text)) == bool(CJK.search(support.sentence)) for text in sources
        )
        quoted = "“" in support.why and not translated
        final = "unsupported" if quoted or ADDRESS.search(support.why) else verdict
        by = support.cited if final == "supported" else by
    return Supported(
        sentence=support.sentence,
        verdict=final,
        cited=support.cited,
        by=list(by),
        why=support.why,
        judge=judge if verdict else "",
    )


def _base(result: RetrievalResult, context: Context) -> KnowledgeBase | None:
    name = result["metadata"].get("kb_prefix") or ""
    return context.knowledge.get(name) if name in context.knowledge.names() else None


def source_text(result: RetrievalResult, base: KnowledgeBase | None) -> str:
    """Return the title of a piece of evidence, its text, also in the form that is quoted, and its typed fields.

    Each field has all words for it, each value all its writings.
    """
    metadata = result["metadata"]
    title = str(metadata.get("title") or "")
    heading = " / ".join(_writings(title, base)) if title else ""
    plain = [text for _, text in quotations(result["evidence"], title)]
    fields = fields_by_name([base] if base else [])
    lines = []
    for name, content in (metadata.get("fields") or {}).items():
        field = fields.get(name)
        lines += [name, *(field_words(field) if field else ())]
        for value in value_texts(content)[:_VALUES]:
            texts = field["values_called"].get(value, {}).values() if field else ()
            lines += [*_writings(value, base), *chain(*texts)]
    return "\n".join([heading, *plain, result["evidence"], *lines]).strip()


def _writings(name: str, base: KnowledgeBase | None) -> list[str]:
    """Return a name and the other ways in which the knowledge base writes it."""
    entity = base.entity(name) if base else None
    return unique([name, *(entity["aliases"] if entity else [])])


def with_marks(text: str, support: Sequence[Supported], language: str) -> str:
    """Return the answer with a mark behind each statement that its sources do not support.

    >>> one = Supported(sentence="It is green.", verdict="uncited", cited=[], by=[], why="", judge="")
    >>> with_marks("It is green. Why?", [one], "en")
    'It is green (without a source). Why?'
    """
    verdicts = {each["sentence"]: each["verdict"] for each in support}
    marked = ""
    at = 0
    # each at its place: one may be repeated, or be a part of another
    for sentence in marked_sentences(text):
        match = re.compile(r"\s*".join(map(re.escape, sentence.split()))).search(text, at)
        if not match:
            continue
        end = match.end()
        mark = MARKS.get(verdicts.get(sentence, ""))
        if mark and not is_refusal(sentence):
            end -= len(sentence) - len(re.sub(r"[.!?。！？；]$", "", sentence))
            marked = f"{marked}{text[at:end]}{mark[language == 'zh']}"
            at = end
        marked = marked + text[at : match.end()]
        at = match.end()
    return marked + text[at:]
