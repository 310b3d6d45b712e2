"""The node that makes one text of a report's sections: what stands before and behind them, references, the appendix."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime

from workbench.graphs.check import supported, with_marks
from workbench.graphs.generate import found, offline, without_evidence
from workbench.graphs.roles import budget_spent
from workbench.language.citing import cite
from workbench.language.fields import FieldsWriter
from workbench.parts.reports import assembling, checking
from workbench.parts.reports.assembling import heading, renumbered
from workbench.parts.reports.checking import of_evidence
from workbench.parts.reports.citing import references
from workbench.parts.reports.extracting import definitions, matrix
from workbench.parts.reports.kinds import ReportType, report_type
from workbench.parts.reports.markdown import escaped
from workbench.parts.reports.validating import meant_by, validate
from workbench.parts.reports.writer import abstract_by_model
from workbench.plans import last_records
from workbench.ports import Context
from workbench.records.tape import RULES
from workbench.state import Claim, ConversationState, RetrievalResult, SectionContent, Supported
from workbench.text import language_of

_GONE: Any = {"result_id": "", "metadata": {}}


def standing(state: Mapping[str, Any]) -> list[SectionContent]:
    """The sections of the outline that are written, in its order."""
    by_id = {one["section_id"]: one for one in state.get("sections", [])}
    return [by_id[one["section_id"]] for one in state["outline"]["sections"] if one["section_id"] in by_id]


async def assemble(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """One text with numbers, references and an appendix; it is the answer of the run."""
    context, report, results = runtime.context, state["report"], found(state)
    zh, kind = language_of(state["message"]) == "zh", report_type(report["type"])
    front = _Front(state, context, kind, zh)
    written = any(section["sources"] for section in front.sections)
    parts = await front.parts() if written else {"introduction": front.told()}
    numbers, by_id = front.numbers, {r["result_id"]: r for r in results}
    order = sorted((n, i) for i, n in numbers.items() if i in by_id)
    lines = references([by_id[i] for _, i in order], report["style"], "zh" if zh else "en") if order else []
    told = [f"[{n}] {line}" for (n, _), line in zip(order, lines, strict=True)]
    if report["style"] == "bibtex" and lines:
        told = ["```bibtex", *lines, "```"]
    if "appendix" in kind.parts:
        parts["appendix"] = _appendix(state, front.sections, numbers, zh)
    text = assembling.markdown(state["outline"], front.sections, numbers, told, parts, zh)
    body = text.partition(f"\n## {heading('references', zh)}")[0]
    final = {name: value for name, value in report.items() if name not in ("redo", "again")}
    final["evidence"] = [list(pair) for pair in of_evidence(results)]
    return {
        "report": {
            **final,
            "final_report": text,
            "references": told,
            "numbers": numbers,
            "notes": [*report.get("notes", []), *front.notes],
        },
        "answer": text,
        "citations": cite(body, _by_place(numbers, results))[1],
        "support": _support(front.sections, numbers),
    }


def _by_place(numbers: Mapping[str, int], results: Sequence[RetrievalResult]) -> list[Any]:
    """The pieces, the one with the number 1 first."""
    by_number = {numbers[r["result_id"]]: r for r in results if r["result_id"] in numbers}
    return [by_number.get(n, _GONE) for n in range(1, max(by_number, default=0) + 1)]


class _Front:
    """What stands around the sections; what it cites beyond them gets numbers behind theirs."""

    def __init__(self, state: ConversationState, context: Context, kind: ReportType, zh: bool):
        self.state, self.context, self.kind, self.zh = state, context, kind, zh
        self.results, self.sections = found(state), standing(state)
        self.numbers = assembling.numbers_of(self.sections, state["report"].get("numbers", {}))
        self.reading = state["route_decision"]["question"]
        self.notes: list[str] = []

    def told(self) -> str:
        """What an answer would say, where there is nothing to write sections of."""
        return self._cited(without_evidence(self.state, self.context) or offline(self.state, self.context).text)

    async def parts(self) -> dict[str, str]:
        """Those that this kind of report has."""
        listed = bool(self.reading["conditions"] or self.reading["sort"]) or self.reading["intent"] == "compare"
        wanted, made = self.kind.parts, dict[str, str]()
        map_ = self._map()
        if "introduction" in wanted:
            made["introduction"] = self._cited(offline(self.state, self.context).text) if listed else map_
        if "abstract" in wanted and "writer" in self.context.models and not budget_spent(self.context):
            made["abstract"] = await self._abstract()
        if "conclusion" in wanted:
            made["conclusion"] = "\n\n".join(filter(None, [map_ if listed else "", self._open()]))
        if "glossary" in wanted:
            made["glossary"] = self._glossary()
        return made

    async def _abstract(self) -> str:
        """By the model, held against the sources as a section is."""
        told = "\n\n".join(renumbered(s["text"], s["sources"], self.numbers) for s in self.sections)
        text = await abstract_by_model(self.context, self.state["message"], told) or ""
        if not text:
            self.notes.append("abstract: the model gave none that can be used, so there is none")
        if not text or not self.context.settings.consistency_check:
            return text
        pieces = _by_place(self.numbers, self.results)
        return with_marks(text, await supported(self.context, text, pieces, self.state["message"]))

    def _map(self) -> str:
        """Which documents each section rests on."""
        titles = {r["result_id"]: str(r["metadata"].get("title") or r["source_id"]) for r in self.results}
        by_title: dict[str, list[int]] = {}
        for piece, n in self.numbers.items():
            by_title.setdefault(titles.get(piece, ""), []).append(n)
        rests = [
            (s["title"], list(dict.fromkeys(titles[i] for i in s["sources"] if i in titles))) for s in self.sections
        ]
        fields = FieldsWriter(self.reading, {}, self.context.bases(self.state["kb_prefixes"]))
        return matrix(rests, by_title, self.zh, fields.called)

    def _open(self) -> str:
        missing = [section["title"] for section in self.sections if not section["sources"]]
        if not missing:
            return ""
        return (
            f"{heading('open', True)}：{'、'.join(missing)}。"
            if self.zh
            else f"{heading('open', False)}: {', '.join(missing)}."
        )

    def _glossary(self) -> str:
        names = {name for section in self.sections for claim in section["claims"] for name in claim["entities"]}
        lines = []
        for name, text, n in definitions(names, self.results, self.sections, self.zh):
            lines.append(f"- **{name}**{'：' if self.zh else ': '}{self._cited(f'{text} [{n}]')}")
        return "\n".join(lines)

    def _cited(self, text: str) -> str:
        """A text whose marks are places in the evidence, with the numbers of the report."""
        free = max(self.numbers.values(), default=0)
        for n in map(int, assembling.MARK.findall(text)):
            piece = self.results[n - 1]["result_id"] if 1 <= n <= len(self.results) else ""
            if piece and piece not in self.numbers:
                free += 1
                self.numbers[piece] = free
        return renumbered(text, [r["result_id"] for r in self.results], self.numbers)


def _appendix(
    state: ConversationState, sections: Sequence[SectionContent], numbers: Mapping[str, int], zh: bool
) -> str:
    report = state["report"]
    titles = [(r["result_id"], _title(r)) for r in found(state) if r["source_type"] == "chunk"]
    used = {title for piece, title in titles if piece in numbers}
    steps = [
        (i, r["tool"], str(r["raw_input"].get("query", "")), int(r["output_summary"]["evidence_count"]))
        for i, r in last_records(state.get("records", [])).items()
        if r["status"] != "skipped"
    ]
    writers = [by for by in dict.fromkeys(one["by"] for one in sections) if by != RULES]
    if writers:
        by = f"撰写：{'、'.join(writers)}" if zh else f"Written by {', '.join(writers)}"
        if ruled := [escaped(one["title"]) for one in sections if one["by"] == RULES and one["sources"]]:
            by += (
                f"；由规则摘录：{'、'.join(ruled)}"
                if zh
                else f"; by rules, sentences of the sources: {', '.join(ruled)}"
            )
    else:
        by = (
            "由规则逐句摘录，未使用语言模型"
            if zh
            else "Sentences of the sources, chosen by rules; no language model wrote this"
        )
    return assembling.appendix(
        report.get("consistency", {}),
        written_by=by,
        assumptions=list(dict.fromkeys([*report.get("assumptions", []), *_assumed(state)])),
        steps=steps,
        unused=[title for title in dict.fromkeys(title for _, title in titles) if title not in used],
        numbers=numbers,
        zh=zh,
    )


def _assumed(state: ConversationState) -> list[str]:
    return list((state.get("plan") or {}).get("assumptions", []))


def _title(result: RetrievalResult) -> str:
    return str(result["metadata"].get("title") or result["source_id"])


def _support(sections: Sequence[SectionContent], numbers: Mapping[str, int]) -> list[Supported]:
    """Each statement as those of an answer are kept."""
    found_ = []
    for claim in (claim for section in sections for claim in section["claims"]):
        cited = [numbers[i] for i in claim["evidence_ids"] if i in numbers]
        found_.append(
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
    return found_


async def checked(
    content: SectionContent,
    pieces: Sequence[RetrievalResult],
    question: str,
    kb_prefixes: Sequence[str],
    context: Context,
) -> SectionContent:
    """A section with its statements, and a word behind each that its sources do not bear out."""
    if not context.settings.consistency_check or not pieces:
        return content
    support = await supported(context, content["text"], pieces, question)
    bases = context.bases(kb_prefixes)
    claims = [
        Claim(
            claim_id=checking.claim_id(content["section_id"], said["sentence"]),
            section_id=content["section_id"],
            text=checking.without_marks(said["sentence"]),
            evidence_ids=[pieces[n - 1]["result_id"] for n in said["cited"] if n <= len(pieces)],
            entities=sorted({m["surface"] for base in bases for m in base.link(said["sentence"])}),
            verdict=said["verdict"],
            why=said["why"],
        )
        for said in support
    ]
    return {**content, "text": with_marks(content["text"], support), "claims": claims}


async def consistency(state: ConversationState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Hold the sections against one another and against all the evidence."""
    if not runtime.context.settings.consistency_check:
        return {"report": {**state["report"], "consistency": {}}}
    sections = standing(state)
    empty = sum(not one["sources"] for one in sections)
    check = await asyncio.to_thread(checking.consistency, sections, found(state), empty)
    bases = runtime.context.bases(state["kb_prefixes"])
    text, reading = "\n".join(one["text"] for one in sections), state["route_decision"]["question"]
    check["validation"] = dict(validate(reading, text, meant_by(state["query"], bases[0]) if bases else None))
    return {"report": {**state["report"], "consistency": check}}
