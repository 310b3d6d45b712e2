"""From written sections to one text: numbers of the sources, what stands around the sections, references, and the
appendix that says how far it can be trusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, count
from typing import Any

from langgraph.runtime import Runtime

from workbench.graphs.generate import (
    merged_evidence,
    offline,
    supported,
    with_marks,
    without_evidence,
)
from workbench.language import citing
from workbench.language.answer import group_by_document
from workbench.language.fields import MOST_VALUES, Document, FieldsWriter, table
from workbench.parts.reports.checking import written_sections
from workbench.parts.reports.citing import references
from workbench.parts.reports.kinds import report_type
from workbench.parts.reports.markdown import (
    Chapter,
    answer_lines,
    escaped,
    markdown,
    without_tags,
)
from workbench.parts.reports.showing import consistency_texts
from workbench.parts.reports.writer import abstract_by_model, writes
from workbench.ports import Context
from workbench.settings import RULES
from workbench.state import ConversationState, Json, RetrievalResult, Supported
from workbench.text import detect_language, fold
from workbench.views.labels import Labels

_GONE: Any = {"result_id": "", "metadata": {}}


async def assemble(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Return the chapters, with numbers, references and an appendix; their text is the answer of the run."""
    report = state["report"]
    assembly = _Assembly(state, runtime.context)
    await assembly.write_body()
    body = markdown(assembly.chapters)
    listed = assembly.list_references(report["style"])
    if "appendix" in assembly.kind.parts:
        assembly.add("appendix", assembly.appendix())
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
        "citations": citing.cite(body, assembly.places())[1],
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

    def places(self) -> list[Any]:
        """Return the cited pieces, the one with the number 1 first."""
        pieces = self.by_number()
        return [pieces.get(n, _GONE) for n in range(1, max(pieces, default=0) + 1)]

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

    def support(self) -> list[Supported]:
        """Return each statement as those of an answer are kept."""

        def marks(ids: Sequence[str]) -> list[int]:
            return [self.numbers[i] for i in ids if i in self.numbers]

        return [
            Supported(
                sentence=claim["text"],
                verdict=claim["verdict"],
                cited=marks(claim["evidence_ids"]),
                by=marks(claim.get("supporting_ids", claim["evidence_ids"])),
                why=claim["why"],
                judge=claim.get("judge", ""),
            )
            for section in self.sections
            for claim in section["claims"]
        ]
