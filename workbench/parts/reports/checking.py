"""A report held against its evidence: each statement against what it cites, once, when its section is written; then the
statements against one another, and all of them against the words of the topic.

The tool ``reflection`` holds what an earlier step found against the question and searches nothing itself. A plan gives
it that as ``{"found": {"$from": "step_0_search.results"}}``; its log and its output name what is missing. Where
``WORKBENCH_REFLECTION_ALLOW_RETRY`` is set, the dispatcher does that step again, asking for what is missing too, and
what it had found before does not count any more.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import chain, combinations

from langgraph.runtime import Runtime
from pydantic import Field

from workbench.graphs.generate import merged_evidence, supported, with_marks
from workbench.language.question import read
from workbench.language.support import by_words, denies, lost
from workbench.ports import Bases, Context, KnowledgeBase, ToolLog
from workbench.state import (
    Claim,
    ConversationState,
    Data,
    Json,
    Question,
    RetrievalResult,
    SectionContent,
    SectionOutline,
)
from workbench.text import detect_language, fold, terms
from workbench.tools.scoring import shares_said
from workbench.tools.tool import FunctionTool, Search, ToolOutput

_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?(?![A-Za-z.]*\d)")
LED_BY = re.compile(r"^\*\*[^*\n]{1,200}\*\*(?:（[^）\n]{1,200}）)?(?:: |：)(?=.)")
_CAPITAL = re.compile(r"\b[A-Z][\w’'-]*")


def written_sections(state: Data) -> list[SectionContent]:
    """Return the sections of the outline that are written, in its order."""
    by_id = {section["section_id"]: section for section in state.get("sections", [])}
    return [
        by_id[outline["section_id"]]
        for outline in state["outline"]["sections"]
        if outline["section_id"] in by_id
    ]


def without_marks(text: str) -> str:
    """Return a statement as it stands, without its marks, and without the title of its document before it.

    >>> without_marks("**Survey**: It has 42 arches [3]."), without_marks("**《测量》**：有 42 个桥拱 [3]。")
    ('It has 42 arches.', '有 42 个桥拱。')
    """
    return LED_BY.sub("", re.sub(r"\s?\[\d+\]", "", text).strip())


def contradictions(claims: Sequence[Claim], documents: Mapping[str, str]) -> list[Json]:
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
    pairs = []
    for first, second in combinations([c for c in claims if c["evidence_ids"]], 2):
        sources = [*first["evidence_ids"], *second["evidence_ids"]]
        own = {documents.get(i) for i in first["evidence_ids"]}
        if own & {documents.get(i) for i in second["evidence_ids"]}:
            continue
        if about := opposed(first["text"], second["text"]):
            pairs.append(
                {
                    "first": first["text"],
                    "second": second["text"],
                    "sources": sources,
                    "about": about,
                }
            )
    return pairs


def opposed(first: str, second: str) -> str:
    """In what two statements on the same thing cannot both hold: ``number``, ``denial``, or nothing.

    >>> opposed("The bridge has 40 arches.", "The bridge has 42 arches."), opposed("It burns oil.", "It burns oil.")
    ('number', '')
    >>> opposed("Each run is kept.", "Each run is kept; no server, account or key is needed.")
    ''
    """
    numbers = set(_NUMBER.findall(first))
    second_numbers = set(_NUMBER.findall(second))
    about = "number" if numbers and second_numbers and not numbers & second_numbers else ""
    if denies(first) != denies(second):
        # a longer one that denies something else contradicts nothing
        return "denial" if _of_the_same(first, second, 0.8) else ""
    return about if about and _of_the_same(first, second, 0.6) else ""


def _of_the_same(first: str, second: str, threshold: float) -> bool:
    """Return whether two statements name the same things, and share most words but for numbers and denial."""
    for text, beside in ((first, second), (second, first)):
        words = set(terms(beside))
        if any(not words & set(terms(name)) for name in _CAPITAL.findall(text) if terms(name)):
            return False
        if any(not _NUMBER.fullmatch(name) for name in lost(text, beside)):
            return False
    return min(_alike(first, second), _alike(second, first)) >= threshold


def _alike(first: str, second: str) -> float:
    return by_words(_NUMBER.sub(" ", first), [_NUMBER.sub(" ", second)])[0]


def fingerprint(section: SectionOutline, pieces: Sequence[RetrievalResult], who: str) -> str:
    """Return what a section is written from, as a hash; its place in the report does not matter."""
    texts = [
        (r["result_id"], r["metadata"].get("title"), r["evidence"], r["metadata"].get("fields"))
        for r in pieces
    ]
    request = (section["title"], section["summary"], section["query"], section["quotes"])
    return hashlib.sha256(repr((request, texts, who)).encode()).hexdigest()[:16]


async def checked(
    content: SectionContent,
    pieces: Sequence[RetrievalResult],
    question: str,
    kb_prefixes: Sequence[str],
    context: Context,
) -> SectionContent:
    """Return a section with its statements, and a word behind each that its sources do not bear out."""
    if not context.settings.consistency_check or not pieces:
        return content
    support = await supported(context, content["text"], pieces, question)
    bases = context.bases(kb_prefixes)
    claims = [
        Claim(
            claim_id=f"{content['fingerprint']}/{number}",
            section_id=content["section_id"],
            text=without_marks(statement["sentence"]),
            evidence_ids=[
                pieces[n - 1]["result_id"] for n in statement["cited"] if n <= len(pieces)
            ],
            entities=sorted(
                {m["surface"] for base in bases for m in base.link(statement["sentence"])}
            ),
            verdict=statement["verdict"],
            why=statement["why"],
        )
        for number, statement in enumerate(support, 1)
    ]
    language = detect_language(question)
    return {**content, "text": with_marks(content["text"], support, language), "claims": claims}


async def consistency(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Hold the sections against one another, against all the evidence, and against the words of the topic."""
    context = runtime.context
    sections = written_sections(state)
    if not context.settings.consistency_check:
        return {"report": {**state["report"], "consistency": {}}}
    check = await asyncio.to_thread(_measures, sections, merged_evidence(state))
    text = "\n".join(section["text"] for section in sections)
    reading = state["route_decision"]["question"]
    validation = validate(reading, text, context.bases(state["kb_prefixes"]))
    check["validation"] = validation.model_dump(exclude={*ToolOutput.model_fields})
    return {"report": {**state["report"], "consistency": check}}


def _measures(sections: Sequence[SectionContent], results: Sequence[RetrievalResult]) -> Json:
    """Return how sections stand against their evidence.

    Returns:
        ``statements``; how many are ``supported``, ``partly``, ``unsupported``, ``uncited``; ``precision``, the share
        of the statements that cite that their sources support; ``recall``, the same of all statements;
        ``contradictions``; ``unsupported_claims``; ``score``, 0 to 1: their harmonic mean times the share of sections
        with something to say.
    """
    claims = [claim for section in sections for claim in section["claims"]]
    counts = {
        v: sum(c["verdict"] == v for c in claims)
        for v in ("supported", "partly", "unsupported", "uncited")
    }
    backed = counts["supported"] + counts["partly"]
    cited = len(claims) - counts["uncited"]
    # the harmonic mean of precision and recall
    both = 2 * backed / (cited + len(claims)) if claims else 0.0
    covered = (
        sum(bool(section["sources"]) for section in sections) / len(sections) if sections else 0.0
    )
    documents = {
        r["result_id"]: str(r["metadata"].get("doc_id") or r["source_id"]) for r in results
    }
    return {
        "statements": len(claims),
        **counts,
        "precision": round(backed / cited, 3) if cited else 0.0,
        "recall": round(backed / len(claims), 3) if claims else 0.0,
        "score": round(both * covered, 4),
        "contradictions": contradictions(claims, documents),
        "unsupported_claims": [
            c["claim_id"] for c in claims if c["verdict"] in ("unsupported", "uncited")
        ],
    }


# whether a text answers a question: the words, names and conditions that it must speak of

PASS_SHARE, COVERED = 0.6, 0.5
"""The share of keywords that must be covered, and how much of one a text must say, by its words or their meaning."""


class Validation(ToolOutput):
    """What a text says of what was asked; as a tool's output without ``results``: nothing new was found."""

    keywords: list[str] = Field(default_factory=list, description="What an answer must speak of")
    covered: list[str] = Field(default_factory=list, description="What it does")
    missing: list[str] = Field(default_factory=list, description="What it does not")
    coverage: float = Field(1.0, description="The share that is covered, 0 to 1")
    passed: bool = Field(True, description="Whether every name is covered, and enough of all")


def validate(reading: Question, text: str, bases: Bases = ()) -> Validation:
    """Hold a text against what its question asks.

    Args:
        reading: of the question.
        text: an answer, or the evidence for one.
        bases: what knows other writings of names, and which words mean nearly the same.

    >>> reading = {"names": [{"name": "Salt Mill", "surface": "Salt Mill"}], "words": ["built", "died"],
    ...            "conditions": [{"field": "place", "op": "eq", "value": "Saltaire"}]}
    >>> found = validate(reading, "Salt Mill was built in Saltaire.")
    >>> found.covered, found.missing, found.coverage, found.passed
    (['Salt Mill', 'Saltaire', 'built'], ['died'], 0.75, True)
    >>> validate({"names": [], "words": ["建造者"], "conditions": []}, "盐仓由沈万和建造。").passed
    True
    """
    folded = fold(text)

    def names(*writings: str) -> bool:
        known = (base.entity(writing) for base in bases for writing in writings)
        entities = [entity for entity in known if entity]
        aliases = [
            *writings,
            *(name for entity in entities for name in (entity["name"], *entity["aliases"])),
        ]
        return any(fold(name) in folded for name in aliases)

    def says(word: str) -> bool:
        return (
            max(
                *by_words(word, [text]),
                *(shares_said(word, [text], base)[0] for base in bases),
                0.0,
            )
            >= COVERED
        )

    by_keyword = {name["name"]: names(name["name"], name["surface"]) for name in reading["names"]}
    has_names = all(by_keyword.values())
    for value in (
        str(c["value"]) for c in reading["conditions"] if c["op"] in ("eq", "contains")
    ):
        by_keyword[value] = names(value)
    for word in reading["words"]:
        by_keyword.setdefault(word, names(word) or says(word))
    covered = [keyword for keyword, present in by_keyword.items() if present]
    share = round(len(covered) / len(by_keyword), 6) if by_keyword else 1.0
    return Validation(
        keywords=list(by_keyword),
        covered=covered,
        missing=[keyword for keyword, present in by_keyword.items() if not present],
        coverage=share,
        passed=bool(text.strip()) and share >= PASS_SHARE and has_names,
    )


# the tool


class ReflectionInput(Search):
    """What was found, by ``$from``."""

    found: list[Json] = Field(
        default_factory=list, description="Results of an earlier step, by $from"
    )


def reflection(tool_input: ReflectionInput, knowledge: KnowledgeBase, log: ToolLog) -> Validation:
    """Hold the evidence against the question."""
    with log("validate", pieces=len(tool_input.found)) as detail:
        text = "\n".join(map(_result_text, tool_input.found))
        validation = validate(read(tool_input.query, [knowledge]), text, [knowledge])
        detail |= validation.model_dump(include={"coverage", "passed", "missing"})
        if not validation.passed:
            detail["error"] = (
                f"not covered: {', '.join(validation.missing) or 'nothing was found'}"
            )
    return validation


def _result_text(result: Json) -> str:
    """Return the title, the text and the typed fields of a result."""
    metadata = result.get("metadata", {})
    values = [
        value for value in (metadata.get("fields") or {}).values() if value not in (None, "")
    ]
    lists = (value if isinstance(value, list) else [value] for value in values)
    return " ".join(
        [
            f"{metadata.get('title') or ''}.",
            str(result.get("evidence") or ""),
            *map(str, chain(*lists)),
        ]
    )


TOOL = FunctionTool(
    name="reflection",
    planned=False,
    description="Checks whether what an earlier step found speaks of all that is asked, and says what is missing.",
    input_schema=ReflectionInput,
    output_schema=Validation,
    function=reflection,
)
