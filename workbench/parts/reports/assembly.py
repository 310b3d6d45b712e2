"""From written sections to one text: numbers of the sources, what stands around the sections, references, and the
appendix that says how far it can be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime

from workbench.graphs.check import supported, with_marks
from workbench.graphs.generate import merged_evidence, offline, without_evidence
from workbench.graphs.roles import budget_spent
from workbench.language import citing
from workbench.language.fields import FieldsWriter
from workbench.parts.reports.checking import written_sections
from workbench.parts.reports.citing import references
from workbench.parts.reports.extracting import definitions
from workbench.parts.reports.kinds import report_type
from workbench.parts.reports.markdown import escaped
from workbench.parts.reports.showing import consistency_texts
from workbench.parts.reports.writer import abstract_by_model
from workbench.ports import Context
from workbench.records.tape import RULES
from workbench.state import ConversationState, Data, Json, RetrievalResult, SectionContent, Supported
from workbench.text import detect_language, fold
from workbench.views.labels import Labels

MARK = re.compile(r"\[(\d+)\]")
_GONE: Any = {"result_id": "", "metadata": {}}


def source_numbers(sections: Sequence[SectionContent], earlier: Mapping[str, int]) -> dict[str, int]:
    """Return the number of each cited piece: as in an earlier report of the same, else in order of appearance.

    Numbers that were given stay, so that a section that did not change reads the same.
    """
    numbers, free = dict[str, int](), max(earlier.values(), default=0)
    for section in sections:
        for n in map(int, MARK.findall(section["text"])):
            piece = section["sources"][n - 1] if 1 <= n <= len(section["sources"]) else ""
            if piece and piece not in numbers:
                free += piece not in earlier
                numbers[piece] = earlier.get(piece, free)
    return numbers


def renumbered(text: str, sources: Sequence[str], numbers: Mapping[str, int]) -> str:
    """Return a section's text with the numbers of the report in place of its own; a mark that points at nothing goes.

    >>> renumbered("It is green [1][2].", ["p", "q"], {"p": 7, "q": 3})
    'It is green [7][3].'
    """

    places = {n: numbers[piece] for n, piece in enumerate(sources, 1) if piece in numbers}
    return citing.renumbered(text, places)[0]


def without_heading(text: str, title: str) -> str:
    """Return a section's text without its own heading over it once more."""
    first, _, rest = text.lstrip().partition("\n")
    bare = fold(re.sub(r"^[#\s]*[\d.]*\s*|[*_\s:：]+$|^\**", "", first))
    return rest.strip() if bare == fold(title) else text.strip()


async def assemble(state: ConversationState, runtime: Runtime[Context]) -> Json:
    """Return one text with numbers, references and an appendix; it is the answer of the run."""
    report, assembly = state["report"], _Assembly(state, runtime.context)
    body = await assembly.body()
    appendix = assembly.appendix() if "appendix" in assembly.kind.parts else ""
    pieces, bibtex = assembly.by_number(), report["style"] == "bibtex"
    lines = references(list(pieces.values()), report["style"], assembly.labels.language) if pieces else []
    listed = [f"[{n}] {line}" for n, line in zip(pieces, lines, strict=True)]
    if bibtex and lines:
        listed = ["```bibtex", *lines, "```"]
    behind = assembly.headed("references", ("\n" if bibtex else "\n\n").join(listed)) + assembly.headed(
        "appendix", appendix
    )
    text = "\n\n".join([*body, *behind]) + "\n"
    final = {
        **report,
        "evidence": [r["result_id"] for r in assembly.results],
        "final_report": text,
        "references": listed,
    }
    return {
        "report": {**final, "numbers": assembly.numbers, "notes": [*report.get("notes", []), *assembly.notes]},
        "answer": text,
        "citations": citing.cite("\n\n".join(body), assembly.places())[1],
        "support": _support(assembly.sections, assembly.numbers),
    }


class _Assembly:
    """A report while it is put together; what its parts cite beyond the sections gets numbers behind theirs."""

    def __init__(self, state: ConversationState, context: Context):
        self.state, self.context = state, context
        self.kind = report_type(state["report"]["type"])
        self.labels = Labels(detect_language(state["message"]))
        self.zh = self.labels.language == "zh"
        self.results, self.sections = merged_evidence(state), written_sections(state)
        self.numbers = source_numbers(self.sections, state["report"].get("numbers", {}))
        self.reading = state["route_decision"]["question"]
        self.notes: list[str] = []

    def by_number(self) -> dict[int, RetrievalResult]:
        """Return the cited pieces, in the order of their numbers."""
        numbered = {self.numbers[r["result_id"]]: r for r in self.results if r["result_id"] in self.numbers}
        return dict(sorted(numbered.items()))

    def places(self) -> list[Any]:
        """Return the cited pieces, the one with the number 1 first."""
        pieces = self.by_number()
        return [pieces.get(n, _GONE) for n in range(1, max(pieces, default=0) + 1)]

    def headed(self, name: str, text: str, level: int = 2) -> list[str]:
        """Return a part under its heading; nothing where it is empty."""
        return [f"{'#' * level} {self.labels(f'part_{name}')}", text] if text else []

    async def body(self) -> list[str]:
        """Return everything before the references; an answer where there is nothing to write sections of."""
        state, context, wanted, introduction, abstract = self.state, self.context, self.kind.parts, "", ""
        if not any(section["sources"] for section in self.sections):
            introduction = self._cited(without_evidence(state, context) or offline(state, context).text)
            wanted = frozenset()
        listed = bool(self.reading["conditions"] or self.reading["sort"]) or self.reading["intent"] == "compare"
        if "introduction" in wanted:
            introduction = self._cited(offline(state, context).text) if listed else self._rests()
        if "abstract" in wanted and "writer" in context.models and not budget_spent(context):
            abstract = await self._abstract()
        conclusion = [self._rests() if listed else "", self._open()] if "conclusion" in wanted else []
        glossary = self._glossary() if "glossary" in wanted else ""
        lines = [f"# {escaped(state['outline']['title'])}", *filter(None, [abstract])]
        lines += self.headed("introduction", introduction)
        for section in self.sections:
            depth = section["section_id"].count(".")
            number = f"{section['section_id']}{'' if depth else '.'}"
            text = renumbered(section["text"], section["sources"], self.numbers)
            lines.append(f"{'#' * (2 + depth)} {number} {escaped(section['title'])}")
            lines += [without_heading(text, section["title"])] if text.strip() else []
        lines += self.headed("conclusion", "\n\n".join(filter(None, conclusion)))
        return lines + self.headed("glossary", glossary)

    async def _abstract(self) -> str:
        """Return the model's, held against the sources as a section is."""
        sections = "\n\n".join(renumbered(s["text"], s["sources"], self.numbers) for s in self.sections)
        text = await abstract_by_model(self.context, self.state["message"], sections) or ""
        if not text:
            self.notes.append("abstract: the model gave none that can be used, so there is none")
        if not text or not self.context.settings.consistency_check:
            return text
        return with_marks(text, await supported(self.context, text, self.places(), self.state["message"]))

    def _rests(self) -> str:
        """Return which documents each section rests on, a line a section: a summary without a model."""
        fields = FieldsWriter(self.reading, {}, self.context.bases(self.state["kb_prefixes"]))
        pieces = {r["result_id"]: r for r in self.results if r["result_id"] in self.numbers}
        lines = []
        for section in self.sections:
            marks: dict[str, int] = {}
            for piece in section["sources"]:
                if piece in pieces:
                    marks.setdefault(_title(pieces[piece]), self.numbers[piece])
            if list(map(fold, marks)) == [fold(section["title"])]:
                continue  # it says so itself
            called = ((escaped(fields.called(title)) if self.zh else escaped(title), n) for title, n in marks.items())
            cited = [f"《{title}》 [{n}]" if self.zh else f"{title} [{n}]" for title, n in called]
            if cited:
                names = self.labels("comma").join(cited)
                lines.append(f"- **{escaped(section['title'])}**{self.labels('colon')}{names}")
        return "\n".join(lines)

    def _open(self) -> str:
        missing = [section["title"] for section in self.sections if not section["sources"]]
        return self.labels("part_open", titles=self.labels("comma").join(missing)) if missing else ""

    def _glossary(self) -> str:
        names = {name for section in self.sections for claim in section["claims"] for name in claim["entities"]}
        return "\n".join(
            f"- **{name}**{self.labels('colon')}{self._cited(f'{text} [{n}]')}"
            for name, text, n in definitions(names, self.results, self.sections)
        )

    def _cited(self, text: str) -> str:
        """Return a text whose marks are places in the evidence, with the numbers of the report."""
        pieces = [r["result_id"] for r in self.results]
        entry: Any = {"text": text, "sources": pieces}
        self.numbers |= source_numbers([entry], self.numbers)
        return renumbered(text, pieces, self.numbers)

    def appendix(self) -> str:
        """Return by whom it was written, how it stands against its sources, which contradict, and what was assumed."""
        report, plan = self.state["report"], self.state.get("plan") or {}
        check: Data = report.get("consistency", {})
        against = [
            (escaped(pair["first"]), escaped(pair["second"]), *(self.numbers.get(i) for i in pair["sources"]))
            for pair in check.get("contradictions", ())
        ]
        parts = {
            "contradictions": "\n".join(
                f"- {first} — {second} {' '.join(f'[{n}]' for n in cited if n)}" for first, second, *cited in against
            ),
            "assumed": "\n".join(
                f"- {escaped(text)}"
                for text in dict.fromkeys([*report.get("assumptions", []), *plan.get("assumptions", [])])
            ),
        }
        headed = (line for name, text in parts.items() for line in self.headed(name, text, 3))
        return "\n\n".join([f"*{self._writers()}*", *consistency_texts(check, self.labels), *headed])

    def _writers(self) -> str:
        labels, comma = self.labels, self.labels("comma")
        writers = dict.fromkeys(section["by"] for section in self.sections if section["by"] != RULES)
        ruled = [escaped(s["title"]) for s in self.sections if s["by"] == RULES and s["sources"]]
        if not writers:
            return labels("written_by_rules")
        by = labels("written_by", who=comma.join(writers))
        return by + (labels("written_by_rules_too", titles=comma.join(ruled)) if ruled else "")


def _title(result: RetrievalResult) -> str:
    return str(result["metadata"].get("title") or result["source_id"])


def _support(sections: Sequence[SectionContent], numbers: Mapping[str, int]) -> list[Supported]:
    """Each statement as those of an answer are kept."""
    support = []
    for claim in (claim for section in sections for claim in section["claims"]):
        cited = [numbers[i] for i in claim["evidence_ids"] if i in numbers]
        support.append(
            Supported(
                sentence=claim["text"],
                verdict=claim["verdict"],
                probability={"supported": 1.0, "partly": 0.5}.get(claim["verdict"], 0.0),
                cited=cited,
                by=cited if claim["verdict"] in ("supported", "partly") else [],
                why=claim["why"],
                judge="",
            )
        )
    return support
