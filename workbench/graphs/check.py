"""Check an answer against its sources, by rules and by the checker's model where there is one; mark what fails.

Rules check every statement first. Where a model checks too, its verdict counts, but for an address that no source has,
and what the rules missed is shown with it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from workbench.errors import Divergence, KnowledgeError
from workbench.graphs.roles import ModelForm, ask_model, evidence_text, numbered
from workbench.language.citing import marked_sentences
from workbench.language.numbers import read_numbers
from workbench.language.support import ADDRESS, Shares, Support, checked, is_refusal
from workbench.ports import Context, KnowledgeBase
from workbench.state import Evidence, RetrievalResult, Supported
from workbench.text import CJK
from workbench.tools.scoring import shares_said

_SENTENCES, _VALUES = 40, 30
MARKS = {
    "unsupported": (" (not in its sources)", "（来源中没有依据）"),
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
    statements = [_counted(each, counts) for each in _by_rules(context, text, evidence)]
    numbers = {*range(1, len(evidence) + 1)}
    cited = [each for each in statements if each.cited and {*each.cited} <= numbers]
    # a sentence without a source may have that of the next one
    led = [
        sentence._replace(cited=after.cited)
        for sentence, after in pairwise(statements)
        if not sentence.cited and after in cited
    ]
    # a model also judges what cites nothing: it may say what is not said, or what the passages of others say
    bare = [
        each
        for each in statements
        if each.verdict == "uncited" and each.sentence not in {s.sentence for s in led}
    ]
    citing = [*cited, *led, *bare] if cited else []
    verdicts: dict[str, str] = {}
    if "checker" in context.models and citing:
        groups = _groups(citing, evidence, context.settings.merge_max_characters)
        for checked_group in await asyncio.gather(
            *(_by_model(context, group, evidence, question) for group in groups)
        ):
            verdicts |= checked_group
    judge = context.settings.role_model("checker") if verdicts else ""
    return [
        _combined(each, verdicts.get(each.sentence, ""), judge, evidence) for each in statements
    ]


def _counted(statement: Support, counts: Collection[float]) -> Support:
    """Return a statement without a source as supported, where each of its numbers was counted in the corpus."""
    numbers = read_numbers(statement.sentence) if statement.verdict == "uncited" and counts else []
    if not numbers or not all(
        number.low == number.high and number.low in counts for number in numbers
    ):
        return statement
    return statement._replace(verdict="supported")


def _by_rules(context: Context, text: str, evidence: Evidence) -> list[Support]:
    cited = {
        int(n): evidence[int(n) - 1]
        for n in re.findall(r"\[(\d+)\]", text)
        if 1 <= int(n) <= len(evidence)
    }
    try:
        bases = {n: _base(result, context) for n, result in cited.items()}
        sources = {n: source_text(result, bases[n]) for n, result in cited.items()}
        tables = {n: fields_text(result, bases[n]) for n, result in cited.items()}
        base = next(filter(None, bases.values()), None)
        return checked(
            text,
            sources,
            shares_by_meaning(base) if base else None,
            {n: t for n, t in tables.items() if t},
        )
    except (Divergence, KnowledgeError):  # a replay without the base
        return checked(text, {n: source_text(result, None) for n, result in cited.items()})


def _groups(
    statements: Sequence[Support], evidence: Evidence, limit: int
) -> Iterator[list[Support]]:
    """Yield statements that are checked together: as many as fit a form, and whose sources fit a prompt."""
    group, cited = list[Support](), set[int]()
    for statement in statements:
        pieces = [evidence[n - 1] for n in sorted(cited | {*statement.cited})]
        if group and (len(group) == _SENTENCES or len(evidence_text(pieces, sys.maxsize)) > limit):
            yield group
            group, cited = [], set()
        group, cited = [*group, statement], cited | {*statement.cited}
    yield group


async def _by_model(
    context: Context, group: Sequence[Support], evidence: Evidence, question: str
) -> dict[str, str]:
    cited = sorted({n for statement in group for n in statement.cited})
    lines = [
        f"{each.sentence} (cites {', '.join(map(str, each.cited)) or 'nothing'})" for each in group
    ]
    slots = {
        "sentences": numbered(lines),
        "evidence": evidence_text(
            [evidence[n - 1] for n in cited], context.settings.merge_max_characters, cited
        ),
    }
    reply = await ask_model(context, "checker", CheckedAll, slots, question=question)
    verdicts = reply.form.sentences if reply.form else []
    return {
        group[each.sentence - 1].sentence: each.verdict
        for each in verdicts
        if each.sentence <= len(group)
    }


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


def shares_by_meaning(base: KnowledgeBase) -> Shares:
    """Return a function that tells how much of a sentence texts say, by the meaning of words where the base has it."""
    return lambda sentence, texts: shares_said(sentence, texts, base)


def _base(result: RetrievalResult, context: Context) -> KnowledgeBase | None:
    name = result["metadata"].get("kb_prefix") or ""
    return context.knowledge.get(name) if name in context.knowledge.names() else None


def source_text(result: RetrievalResult, base: KnowledgeBase | None) -> str:
    """Return the title and the text of a piece of evidence."""
    title = str(result["metadata"].get("title") or "")
    return "\n".join(
        [" / ".join(_writings(title, base)) if title else "", result["evidence"]]
    ).strip()


def fields_text(result: RetrievalResult, base: KnowledgeBase | None) -> str:
    """Return the typed fields of a piece in sentences, each with all words for the field; "" without any."""
    title, fields = (
        str(result["metadata"].get("title") or ""),
        result["metadata"].get("fields") or {},
    )
    called = {
        f["name"]: [w for words in f["called"].values() for w in words]
        for f in (base.about()["fields"] if base else ())
    }
    lines = []
    for name, content in fields.items():
        values = [
            v
            for v in (content if isinstance(content, list) else [content])[:_VALUES]
            if v not in (None, "")
        ]
        if values:
            writings = ", ".join(" / ".join(_writings(str(value), base)) for value in values)
            lines.append(f"{' '.join([name, *called.get(name, ())])}: {writings}.")
    return "\n".join([" / ".join(_writings(title, base)), *lines]) if lines else ""


def _writings(name: str, base: KnowledgeBase | None) -> list[str]:
    """Return a name and the other ways in which the knowledge base writes it."""
    entity = base.entity(name) if base else None
    return list(dict.fromkeys([name, *(entity["aliases"] if entity else [])]))


def with_marks(text: str, support: Sequence[Supported]) -> str:
    """Return the answer with a mark behind each statement that its sources do not support.

    >>> one = Supported(sentence="It is green.", verdict="uncited", cited=[], by=[], why="", judge="")
    >>> with_marks("It is green. Why?", [one])
    'It is green (without a source). Why?'
    """
    verdicts = {each["sentence"]: each["verdict"] for each in support}
    marked, at = "", 0
    # each at its place: one may be repeated, or be a part of another
    for sentence in marked_sentences(text):
        match = re.compile(r"\s*".join(map(re.escape, sentence.split()))).search(text, at)
        if not match:
            continue
        end = match.end()
        mark = MARKS.get(verdicts.get(sentence, ""))
        if mark and not is_refusal(sentence):
            end -= len(sentence) - len(re.sub(r"[.!?。！？；]$", "", sentence))
            marked, at = f"{marked}{text[at:end]}{mark[bool(CJK.search(sentence))]}", end
        marked, at = marked + text[at : match.end()], match.end()
    return marked + text[at:]
