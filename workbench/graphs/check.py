"""Checking an answer against what it cites, by the checker's model where there is one, and marking what fails.

Rules look at every statement first. A model may find support where the words differ; it cannot give it to a number
or a negation that the sources do not have.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from workbench.errors import Divergence, KnowledgeError
from workbench.graphs.roles import ModelForm, numbered, say, told_evidence
from workbench.language.citing import marked_sentences
from workbench.language.support import ADDRESS, Shares, Support, checked
from workbench.ports import Context, KnowledgeBase
from workbench.state import Evidence, RetrievalResult, Supported
from workbench.text import CJK
from workbench.tools.next_hop import Reading

_MOST, _VALUES = 40, 30
_SAID = {
    "unsupported": (" (not in its sources)", "（来源中没有依据）"),
    "uncited": (" (without a source)", "（未注明出处）"),
}


class Checked(ModelForm):
    """What the checker says of one sentence."""

    sentence: int = Field(ge=1, le=_MOST)
    verdict: Literal["supported", "partly", "unsupported"]


class CheckedAll(ModelForm):
    """What the checker fills in."""

    sentences: list[Checked] = Field(max_length=_MOST)


async def supported(context: Context, text: str, evidence: Evidence, question: str) -> list[Supported]:
    """Return every statement of an answer with what became of it."""
    rules = _by_rules(context, text, evidence)
    asked = [one for one in rules if one.cited and {*one.cited} <= {*range(1, len(evidence) + 1)}]
    said: dict[str, str] = {}
    if "checker" in context.models and asked:
        groups = _groups(asked, evidence, context.settings.merge_max_characters)
        for told in await asyncio.gather(*(_by_model(context, group, evidence, question) for group in groups)):
            said |= told
    judge = context.settings.model_of("checker") if said else ""
    return [_told(one, said.get(one.sentence, ""), judge) for one in rules]


def _by_rules(context: Context, text: str, evidence: Evidence) -> list[Support]:
    cited = sorted({int(n) for n in re.findall(r"\[(\d+)\]", text)} & {*range(1, len(evidence) + 1)})
    try:
        bases = {n: _base_of(evidence[n - 1], context) for n in cited}
        sources = {n: source_of(evidence[n - 1], bases[n]) for n in cited}
        tables = {n: table for n in cited if (table := table_of(evidence[n - 1], bases[n]))}
        base = next(filter(None, bases.values()), None)
        return checked(text, sources, meant(base) if base else None, tables)
    except (Divergence, KnowledgeError):  # other words than the recorded ones: the base is not there to be asked
        return checked(text, {n: source_of(evidence[n - 1], None) for n in cited})


def _groups(asked: Sequence[Support], evidence: Evidence, most: int) -> Iterator[list[Support]]:
    """Sentences that are checked together: so many that a form, and what they cite a prompt, can hold."""
    group, cited = list[Support](), set[int]()
    for one in asked:
        pieces = [evidence[n - 1] for n in sorted(cited | {*one.cited})]
        if group and (len(group) == _MOST or len(told_evidence(pieces, sys.maxsize)) > most):
            yield group
            group, cited = [], set()
        group, cited = [*group, one], cited | {*one.cited}
    yield group


async def _by_model(context: Context, asked: Sequence[Support], evidence: Evidence, question: str) -> dict[str, str]:
    cited = sorted({n for one in asked for n in one.cited})
    pieces = [evidence[n - 1] for n in cited]
    place = {n: at for at, n in enumerate(cited, 1)}
    lines = [f"{one.sentence} (cites {', '.join(str(place[n]) for n in one.cited)})" for one in asked]
    slots = {
        "sentences": numbered(lines),
        "evidence": told_evidence(pieces, context.settings.merge_max_characters),
    }
    reply = await say(context, "checker", CheckedAll, slots, question=question)
    if reply.form is None:
        return {}
    return {asked[one.sentence - 1].sentence: one.verdict for one in reply.form.sentences if one.sentence <= len(asked)}


def _told(one: Support, verdict: str, judge: str) -> Supported:
    """What counts of the rules and the model: names and numbers that are not there outrank a model's "supported",
    and an address that is not there, or a quotation that nobody said so, is never its."""
    final: Any = one.verdict
    sure = one.probability
    if verdict and one.verdict != "uncited":
        bounded = "unsupported" if ADDRESS.search(one.why) or "“" in one.why else "partly"
        final = bounded if verdict != "unsupported" and one.why else verdict
        sure = {"supported": 1.0, "partly": 0.5}.get(final, 0.0)
    by = one.cited if final == "supported" and verdict else one.by
    return Supported(
        sentence=one.sentence,
        verdict=final,
        probability=sure,
        cited=one.cited,
        by=list(by),
        why=one.why,
        judge=judge if verdict else "",
    )


def meant(base: KnowledgeBase) -> Shares:
    """Return how much of a sentence texts say, by what words mean where the base can tell."""

    return lambda sentence, texts: Reading.of(sentence, texts, base).shares()


def _base_of(result: RetrievalResult, context: Context) -> KnowledgeBase | None:
    name = result["metadata"].get("kb_prefix") or ""
    return context.knowledge.get(name) if name in context.knowledge.names() else None


def source_of(result: RetrievalResult, base: KnowledgeBase | None) -> str:
    """Return a piece of evidence as a checker reads it: its title and its text."""
    title = str(result["metadata"].get("title") or "")
    return "\n".join([" / ".join(_also(title, base)) if title else "", result["evidence"]]).strip()


def table_of(result: RetrievalResult, base: KnowledgeBase | None) -> str:
    """Return what its typed fields say, each with the words by which people call it; "" without any."""
    title, fields = str(result["metadata"].get("title") or ""), result["metadata"].get("fields") or {}
    called = {f["name"]: [w for words in f["called"].values() for w in words] for f in (base.schema() if base else ())}
    lines = []
    for name, value in fields.items():
        values = value if isinstance(value, list) else [value]
        told = [" / ".join(_also(str(one), base)) for one in values[:_VALUES] if one not in (None, "")]
        lines += [f"{' '.join([name, *called.get(name, ())])}: {', '.join(told)}."] if told else []
    return "\n".join([" / ".join(_also(title, base)), *lines]) if lines else ""


def _also(name: str, base: KnowledgeBase | None) -> list[str]:
    """Return a name, and how the knowledge base writes it otherwise."""
    entity = base.find_entity(name) if base else None
    return list(dict.fromkeys([name, *(entity["aliases"] if entity else [])]))


def with_marks(text: str, found: Sequence[Supported]) -> str:
    """Return the answer with a word behind each statement that its sources do not support.

    >>> one = Supported(sentence="It is green.", verdict="uncited", probability=0, cited=[], by=[], why="", judge="")
    >>> with_marks("It is green. Why?", [one])
    'It is green (without a source). Why?'
    """
    verdicts = {one["sentence"]: one["verdict"] for one in found}
    told, at = "", 0
    for sentence in marked_sentences(text):  # each where it stands: one may be said twice, or be a part of another
        stands = re.compile(r"\s*".join(map(re.escape, sentence.split()))).search(text, at)
        aside = _SAID.get(verdicts.get(sentence, ""))
        if stands and aside:
            cut = stands.end() - len(re.search(r"[.!?。！？；]?$", sentence)[0])  # type: ignore[index]
            told, at = f"{told}{text[at:cut]}{aside[bool(CJK.search(sentence))]}", cut
        elif stands:
            told, at = told + text[at : stands.end()], stands.end()
    return told + text[at:]
