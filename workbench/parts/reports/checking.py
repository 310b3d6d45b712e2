"""A report held against its evidence: each statement against what it cites, once, when its section is written; then the
typed values of its sources against one another, and all statements against the words of the topic.

The tool ``reflection`` holds what an earlier step found against the question and searches nothing itself. A plan gives
it that as ``{"found": {"$from": "step_0_search.results"}}``; its log and its output name what is missing. Where
``WORKBENCH_REFLECTION_ALLOW_RETRY`` is set, the dispatcher does that step again, asking for what is missing too, and
what it had found before does not count any more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import combinations

from langgraph.runtime import Runtime
from pydantic import Field

from workbench.graphs.generate import merged_evidence, supported, with_marks
from workbench.language.answer import group_by_document
from workbench.language.question import read
from workbench.language.support import by_words
from workbench.language.words import fields_by_name, shown
from workbench.ports import Bases, Context, KnowledgeBase, ToolLog
from workbench.state import (
    Claim,
    ConversationState,
    Data,
    Evidence,
    Json,
    Question,
    RetrievalResult,
    SectionContent,
    SectionOutline,
)
from workbench.text import detect_language, fold, text_digest, unmarked
from workbench.tools.scoring import field_values, shares_said
from workbench.tools.tool import FunctionTool, Search, ToolOutput
from workbench.views.labels import Labels

_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
LED_BY = re.compile(
    r"^\*\*[^*\n]{1,200}\*\*(?: \([^)\n]{1,40}\)|（[^）\n]{1,240}）)?(?:: |：)(?=.)"
)


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

    >>> without_marks("**Survey** (1853): It has 42 arches [3]."), without_marks("**《测量》**：有 42 个桥拱 [3]。")
    ('It has 42 arches.', '有 42 个桥拱。')
    """
    return LED_BY.sub("", unmarked(text).strip())


def contradictions(results: Evidence, bases: Bases, language: str) -> list[Json]:
    """Pairs of values of a field that differ: of two documents of one title, or of a document and its own text.

    Only dates and numbers are compared, and a year only with the first sentence that begins with the title: what two
    sentences mean is no rule's to say.

    Args:
        results: the evidence that is cited.
        bases: what the fields are.
        language: of the report.

    Returns:
        ``first`` and ``second`` (what is said, and whether in a field or in a text), ``sources`` (ids of their
        pieces), ``about``: the field.
    """
    labels = Labels(language)
    pairs = []
    for name, field in fields_by_name(bases).items():
        if field["type"] not in ("date", "number"):
            continue
        called = shown(field, language)
        statements = [
            (d, value, labels("part_field", title=d.title, name=called, value=value))
            for d in group_by_document(results).values()
            for value in d.values(name)
            if len(d.values(name)) == 1
        ]
        differing = [
            (first, document.n, second, namesake.n)
            for (document, value, first), (namesake, value_there, second) in combinations(
                statements, 2
            )
            if fold(document.title) == fold(namesake.title) and value != value_there
        ]
        for document, value, first in statements:
            texts = (sentence.text for sentence in document.sentences)
            own = next((text for text in texts if text.startswith(document.title)), "")
            years = _YEAR.findall(own)
            if _YEAR.fullmatch(value) and years and value not in years:
                text = labels("part_text", text=own)
                differing.append((first, document.n, text, document.n))
        for first, n, second, m in differing:
            sources = [results[n - 1]["result_id"], results[m - 1]["result_id"]]
            pairs.append({"first": first, "second": second, "sources": sources, "about": name})
    return pairs


def fingerprint(section: SectionOutline, pieces: Sequence[RetrievalResult], who: str) -> str:
    """Return what a section is written from, as a hash; its place in the report does not matter."""
    texts = [
        (r["result_id"], r["metadata"].get("title"), r["evidence"], r["metadata"].get("fields"))
        for r in pieces
    ]
    request = (section["title"], section["summary"], section["query"], section["quotes"])
    return text_digest(repr((request, texts, who)), 16)


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

    def ids(marks: Sequence[int]) -> list[str]:
        return [pieces[n - 1]["result_id"] for n in marks if n <= len(pieces)]

    claims = [
        Claim(
            claim_id=f"{content['fingerprint']}/{number}",
            section_id=content["section_id"],
            text=without_marks(statement["sentence"]),
            evidence_ids=ids(statement["cited"]),
            entities=sorted(
                {m["surface"] for base in bases for m in base.link(statement["sentence"])}
            ),
            verdict=statement["verdict"],
            why=statement["why"],
            supporting_ids=ids(statement["by"]),
            judge=statement["judge"],
        )
        for number, statement in enumerate(support, 1)
    ]
    language = detect_language(question)
    return {**content, "text": with_marks(content["text"], support, language), "claims": claims}


async def consistency(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Hold the sections against the evidence, and against the words of the topic."""
    context = runtime.context
    sections = written_sections(state)
    if not context.settings.consistency_check:
        return {"report": {**state["report"], "consistency": {}}}
    check = _measures(sections)
    bases = context.bases(state["kb_prefixes"])
    cited = {i for s in sections for claim in s["claims"] for i in claim["evidence_ids"]}
    pieces = [piece for piece in merged_evidence(state) if piece["result_id"] in cited]
    language = detect_language(state["message"])
    check["contradictions"] = await asyncio.to_thread(contradictions, pieces, bases, language)
    text = "\n".join(section["text"] for section in sections)
    reading = state["route_decision"]["question"]
    validation = validate(reading, text, bases)
    check["validation"] = validation.model_dump(exclude={*ToolOutput.model_fields})
    return {"report": {**state["report"], "consistency": check}}


def _measures(sections: Sequence[SectionContent]) -> Json:
    """Return how sections stand against their evidence.

    Returns:
        ``statements``; how many have which verdict, see ``Supported``; ``precision``, the share
        of the statements that cite that their sources support; ``recall``, the same of all statements;
        ``unsupported_claims``; ``score``, 0 to 1: their harmonic mean times the share of sections with a text.
    """
    claims = [claim for section in sections for claim in section["claims"]]
    verdicts = [claim["verdict"] for claim in claims]
    counts = {
        v: verdicts.count(v)
        for v in ("supported", "partly", "unsupported", "unjudged", "uncited")
    }
    backed = counts["supported"] + counts["partly"]
    cited = len(claims) - counts["uncited"]
    # the harmonic mean of precision and recall
    both = 2 * backed / (cited + len(claims) or 1)
    covered = sum(bool(section["sources"]) for section in sections) / (len(sections) or 1)
    return {
        "statements": len(claims),
        **counts,
        "precision": round(backed / (cited or 1), 3),
        "recall": round(backed / (len(claims) or 1), 3),
        "score": round(both * covered, 4),
        "unsupported_claims": [
            c["claim_id"] for c in claims if c["verdict"] in ("unsupported", "uncited")
        ],
    }


# whether a text answers a question: the words, names and conditions that it must speak of


class Validation(ToolOutput):
    """What a text says of what was asked; as a tool's output without ``results``: nothing new was found."""

    keywords: list[str] = Field(default_factory=list)
    """What an answer must speak of"""
    covered: list[str] = Field(default_factory=list)
    """What it does"""
    missing: list[str] = Field(default_factory=list)
    """What it does not"""
    coverage: float = 1.0
    """The share that is covered, 0 to 1"""
    passed: bool = True
    """Whether every name is covered, and enough of all"""


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
    # The share of keywords that must be covered, and how much of one a text must say, by its
    # words or their meaning.
    pass_share = 0.6
    clear_enough = 0.5
    folded = fold(text)

    def names(*writings: str) -> bool:
        entities = (base.entity(writing) for base in bases for writing in writings)
        aliases = (name for e in entities if e for name in (e["name"], *e["aliases"]))
        return any(fold(name) in folded for name in (*writings, *aliases))

    def says(word: str) -> bool:
        return (
            max(
                *by_words(word, [text]),
                *(shares_said(word, [text], base)[0] for base in bases),
                0.0,
            )
            >= clear_enough
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
        missing=[keyword for keyword in by_keyword if keyword not in covered],
        coverage=share,
        passed=bool(text.strip()) and share >= pass_share and has_names,
    )


# the tool


class ReflectionInput(Search):
    """What was found, by ``$from``."""

    found: list[Json] = Field(default_factory=list)
    """Results of an earlier step, by $from"""


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
    values = field_values(metadata.get("fields") or {})
    return " ".join(
        [f"{metadata.get('title') or ''}.", str(result.get("evidence") or ""), *values]
    )


TOOL = FunctionTool(
    name="reflection",
    planned=False,
    description="Checks whether what an earlier step found speaks of all that is asked, and says what is missing.",
    input_schema=ReflectionInput,
    output_schema=Validation,
    function=reflection,
)
