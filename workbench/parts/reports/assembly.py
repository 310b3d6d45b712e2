"""A report held against its evidence: each statement against what it cites, once, when its section is written; then the
typed values of its sources against one another, and all statements against the words of the topic. And from written
sections to one text: numbers of the sources, what stands around the sections, references, and the appendix that says
how far it can be trusted.

The tool ``reflection`` holds what an earlier step found against the question and searches nothing itself. A plan gives
it that as ``{"found": {"$from": "step_0_search.results"}}``; its log and its output name what is missing. Where
``WORKBENCH_REFLECTION_ALLOW_RETRY`` is set, the dispatcher does that step again, asking for what is missing too, and
what it had found before does not count any more.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, combinations, count
from typing import Any

from langgraph.runtime import Runtime
from pydantic import Field

from workbench.graphs.answer_check import supported, with_marks
from workbench.graphs.generate import offline, without_evidence
from workbench.graphs.writer_prompt import merged_evidence
from workbench.language import citing
from workbench.language.answer import group_by_document
from workbench.language.fields import MOST_VALUES, Document, FieldsWriter, table
from workbench.language.question import read
from workbench.language.words import fields_by_name, shown
from workbench.parts.reports.citing import references
from workbench.parts.reports.kinds import report_type
from workbench.parts.reports.markdown import (
    Chapter,
    answer_lines,
    escaped,
    markdown,
    without_tags,
)
from workbench.parts.reports.writer import abstract_by_model, writes
from workbench.ports import Bases, Context, KnowledgeBase, ToolLog
from workbench.settings import RULES
from workbench.state import (
    ConversationState,
    Data,
    Evidence,
    Json,
    Question,
    RetrievalResult,
    SectionContent,
    SectionOutline,
    pick,
)
from workbench.text import detect_language, fold, text_digest, unmarked
from workbench.tools.scoring import field_values, word_shares
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


def fingerprint(section: SectionOutline, pieces: Evidence, who: str) -> str:
    """Return what a section is written from, as a hash; its place in the report does not matter."""
    texts = [
        (r["result_id"], r["metadata"].get("title"), r["evidence"], r["metadata"].get("fields"))
        for r in pieces
    ]
    request = (section["title"], section["summary"], section["query"], section["quotes"])
    return text_digest(repr((request, texts, who)), 16)


async def checked(
    content: SectionContent,
    pieces: Evidence,
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

    claims: list[Any] = [
        {
            "claim_id": f"{content['fingerprint']}/{number}",
            "section_id": content["section_id"],
            "text": without_marks(statement["sentence"]),
            "evidence_ids": ids(statement["cited"]),
            "entities": sorted(
                {m["surface"] for base in bases for m in base.link(statement["sentence"])}
            ),
            "supporting_ids": ids(statement["by"]),
            **pick(statement, "verdict", "why", "judge"),
        }
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
        return any(word_shares(word, [text], base)[0] >= clear_enough for base in bases)

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


async def assemble(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Return the chapters, with numbers, references and an appendix; their text is the answer of the run."""
    report = state["report"]
    assembly = _Assembly(state, runtime.context)
    await assembly.write_body()
    body = markdown(assembly.chapters)
    listed = assembly.list_references(report["style"])
    if "appendix" in assembly.kind.parts:
        assembly.add("appendix", assembly.appendix())
    pieces = assembly.by_number()
    change = {
        **report,
        "evidence": [r["result_id"] for r in assembly.results],
        "chapters": assembly.chapters,
        "references": listed,
        "numbers": assembly.numbers,
        "notes": [*report.get("notes", []), *assembly.notes],
    }
    return {
        "report": change,
        "answer": markdown(assembly.chapters),
        "citations": [
            citing.citation(n, sentence, pieces[n])
            for sentence in citing.marked_sentences(body)
            for n in citing.cited(sentence)
            if n in pieces
        ],
        "support": assembly.support(),
    }


class _Assembly:
    """A report while it is put together; until all is written its marks are places in the evidence."""

    def __init__(self, state: ConversationState, context: Context):
        self.state = state
        self.context = context
        self.kind = report_type(state["report"]["report_type"])
        self.labels = Labels(detect_language(state["message"]))
        self.results = merged_evidence(state)
        self.numbers = {result["result_id"]: n for n, result in enumerate(self.results, 1)}
        self.sections: Any = []
        # with the numbers of the report; a mark that points at nothing goes
        for section in written_sections(state):
            sources = enumerate(section["sources"], 1)
            places = {n: self.numbers[piece] for n, piece in sources if piece in self.numbers}
            text = citing.renumbered(section["text"], places)[0]
            self.sections.append({**section, "text": text})
        self.reading = state["route_decision"]["question"]
        self.chapters: list[Chapter] = []
        self.bases = context.bases(state["kb_prefixes"])
        self.fields = FieldsWriter(self.reading, group_by_document(self.results), self.bases)
        self.notes: list[str] = []

    def by_number(self) -> dict[int, RetrievalResult]:
        """Return the cited pieces, in the order of their numbers."""
        results = {r["result_id"]: r for r in self.results}
        numbers = sorted(self.numbers, key=self.numbers.__getitem__)
        return {self.numbers[i]: results[i] for i in numbers if i in results}

    def add(
        self, name: str, text: str, heading: str = "", lines: Sequence[tuple[int, str]] = ()
    ) -> None:
        """Add a chapter under its usual heading, or another; without either and without a text there is none."""
        if text or heading:
            heading = heading or f"## {self.labels(f'part_{name}')}"
            self.chapters.append(
                Chapter(name=name, heading=heading, text=text, references=[*lines])
            )

    async def write_body(self) -> None:
        """Add everything before the references; an answer where there is nothing to write sections of."""
        state = self.state
        context = self.context
        wanted = self.kind.parts
        head = ""
        opening, listed = list[str](), list[str]()
        if not any(section["sources"] for section in self.sections):
            opening = [without_evidence(state, context) or self._answer()]
            wanted = frozenset()
        elif wanted:
            opening = [self._open(), self._comparison()]
            if self.reading["conditions"] or self.reading["sort"]:
                head, *listed = re.split("[:：]\n", self._answer(), maxsplit=1)
                opening[:0] = [] if listed else [head]
        if "abstract" in wanted and writes(context):
            opening.append(await self._abstract())
        text = "\n\n".join(filter(None, opening))
        self.add("title", text, f"# {escaped(state['outline']['title'])}")
        for section in self.sections:
            number = section["section_id"]
            level = "##" + "#" * number.count(".")
            dot = "" if "." in number else "."
            title = escaped(self.fields.called(section["title"]))
            text = "\n\n".join(filter(None, [self._together(section["text"]), section["text"]]))
            self.add(number, text, f"{level} {number}{dot} {title}")
        self.add("contradictions", self._contradictions())
        self.add("conclusion", self._together(self._text()) if "conclusion" in wanted else "")
        if "glossary" in wanted:
            self.add("glossary", self._glossary())
        for text in listed:  # what they add up to has been said
            self.add("listed", text, f"## {head}")
        self._number_sources()
        if "introduction" in wanted:  # says how many are cited
            self.add("introduction", self._scope())
            self.chapters.insert(1, self.chapters.pop())

    def _answer(self) -> str:
        return answer_lines(offline(self.state, self.context).text)

    def _number_sources(self) -> None:
        """Give each cited piece its number: that of an earlier report of the same, else in order of appearance.

        Numbers that were given stay, so that a section that did not change reads the same.
        """
        earlier = self.state["report"]["numbers"]
        ids = [result["result_id"] for result in self.results]
        free = count(max(earlier.values(), default=0) + 1)
        numbers = {}
        for n in citing.cited(markdown(self.chapters)):
            if 1 <= n <= len(ids):
                numbers[n] = earlier.get(ids[n - 1]) or next(free)
        self.numbers = {ids[n - 1]: number for n, number in numbers.items()}
        for chapter in self.chapters:
            chapter["text"] = citing.renumbered(chapter["text"], numbers)[0]

    def list_references(self, style: str) -> str:
        """Add the references, and return them a line each."""
        pieces = self.by_number()
        lines = references(list(pieces.values()), style, self.labels.language)
        if style == "bibtex" and lines:
            listed = "\n".join(["```bibtex", *lines, "```"])
            self.add("references", listed)
            return listed
        numbered = list(zip(pieces, lines, strict=True))
        texts = [f"[{n}] {line}" for n, line in numbered]
        self.add("references", "\n\n".join(texts), lines=numbered)
        return "\n".join(texts)

    async def _abstract(self) -> str:
        """Return the model's, held against the sources as a section is."""
        sections = [section["text"] for section in self.sections]
        text = await abstract_by_model(self.context, self.state["message"], sections)
        if not text:
            self.notes.append("abstract: the model gave none that can be used")
        if not text or not self.context.settings.consistency_check:
            return text
        support = await supported(self.context, text, self.results, self.state["message"])
        return with_marks(text, support, self.labels.language)

    def _comparison(self) -> str:
        """Return the typed fields of the things that are compared, side by side, and what they have in common."""
        fields = self.fields
        about = fields.about()
        if self.reading["intent"] != "compare":
            return ""
        if len(about) < 2:
            return self.labels("part_no_fields")
        rows = [[*map(answer_lines, row)] for row in fields.rows(about)]
        return f"{table(rows)}\n\n{answer_lines(fields.compared(about))}" if rows[1:] else ""

    def _contradictions(self) -> str:
        """Return the values of its sources that differ, each with its source."""
        lines = []
        for pair in self.state["report"].get("consistency", {}).get("contradictions", ()):
            first, second = (self.numbers[i] for i in pair["sources"])
            lines.append(
                f"- {escaped(pair['first'])} [{first}]{self.labels('semicolon')}{escaped(pair['second'])} [{second}]"
            )
        return "\n".join(lines)

    def _together(self, text: str) -> str:
        """Return how many documents a section cites, and which values several of them have; "" for one document."""
        fields = self.fields
        numbers = citing.cited(text)
        pieces = [self.results[n - 1] for n in numbers]
        documents = group_by_document(pieces).values()
        parts = [self._extent(documents)]
        for name in fields.typed:
            counts = Counter(chain(*(fields.value_texts(d, name) for d in documents)))
            values = [f"{value} ({n})" for value, n in counts.most_common(MOST_VALUES) if n > 1]
            if values:
                facts = self.labels("comma").join(values)
                parts.append(f"{fields.shown(name)}{self.labels('colon')}{facts}")
        text = escaped(fields.say("; ", "，").join(parts))
        return citing.marked(text + fields.say(".", "。"), *numbers) if len(documents) > 1 else ""

    def _extent(self, documents: Collection[Document], inside: str = "") -> str:
        """Return how many documents these are, ``inside`` of what, and the span of their first dates."""
        dates = sorted({self.fields.date(document.doc_id) for document in documents} - {""})
        span = self.labels("part_span", first=dates[0], last=dates[-1]) if dates[1:] else ""
        return f"{self.fields.counted(len(documents))}{inside}{span}"

    def _scope(self) -> str:
        """Return how many documents are cited, and the span of their first dates."""
        cited = group_by_document([*self.by_number().values()]).values()
        what = self._extent(cited, self.fields.inside())
        return self.labels("part_scope", what=escaped(what), n=len(self.numbers))

    def _open(self) -> str:
        """Return the topics that nothing was found on."""
        missing = [escaped(s["title"]) for s in self.sections if not s["sources"]]
        titles = self.labels("comma").join(missing)
        return self.labels("part_open", titles=titles) if missing else ""

    def _glossary(self) -> str:
        """Return names that sections speak of and none is about, with the first sentence of their documents."""
        most_listed = 10
        claims = chain(*(section["claims"] for section in self.sections))
        names = {fold(name) for claim in claims for name in claim["entities"]}
        used = {*citing.cited(self._text())}
        lines = [
            f"- **{escaped(d.title)}**{self.labels('colon')}{without_tags(d.sentences[0].text)} [{d.n}]"
            for d in self.fields.documents.values()
            if fold(d.title) in names and d.sentences and not used & {s.n for s in d.sentences}
        ]
        return "\n".join(sorted(lines)[:most_listed])

    def _text(self) -> str:
        return "\n".join(section["text"] for section in self.sections)

    def appendix(self) -> str:
        """Return by whom it was written, what was counted, and what was assumed."""
        report = self.state["report"]
        plan = self.state.get("plan") or {}
        assumed = dict.fromkeys([*report.get("assumptions", []), *plan.get("assumptions", [])])
        counts = consistency_texts(report.get("consistency", {}), self.labels)
        parts = [f"*{self._writers()}*", escaped(" · ".join(counts))]
        lines = [f"- {escaped(text)}" for text in assumed]
        parts += [f"### {self.labels('part_assumed')}", "\n".join(lines)] if lines else []
        return "\n\n".join(filter(None, parts))

    def _writers(self) -> str:
        labels = self.labels
        writers = dict.fromkeys(section["by"] for section in self.sections if section["sources"])
        names = labels("comma").join(labels.get(f"mem_by_{writer}", writer) for writer in writers)
        return labels("written_by" if {*writers} - {RULES} else "written_by_rules", who=names)

    def support(self) -> list[Json]:
        """Return each statement as those of an answer are kept."""

        def marks(ids: Sequence[str]) -> list[int]:
            return [self.numbers[i] for i in ids if i in self.numbers]

        return [
            {
                "sentence": claim["text"],
                "cited": marks(claim["evidence_ids"]),
                "by": marks(claim["supporting_ids"]),
                **pick(claim, "verdict", "why", "judge"),
            }
            for section in self.sections
            for claim in section["claims"]
        ]


def consistency_texts(check: Data, labels: Labels) -> list[str]:
    """Return a sentence each on the support and the contradictions of a report; nothing where it was not checked."""
    if not check:
        return []
    lines = [labels("answer_supported", n=check["supported"], of=check["statements"])]
    pairs = check.get("contradictions") or ()
    return lines + [labels("report_contradicts", n=len(pairs))] * bool(pairs)
