"""A report as people hold it: a view of the run that wrote it. It keeps nothing of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from markupsafe import Markup
from pydantic import BaseModel, BeforeValidator, Field

from workbench.errors import RunError, refusing
from workbench.graphs.reviewers import ReplayReviewer
from workbench.parts.reports.assembly import consistency_texts, written_sections
from workbench.parts.reports.kinds import report_type
from workbench.parts.reports.markdown import (
    Chapter,
    document_style,
    html,
    markdown,
    page,
    plain_mark,
    rendered,
)
from workbench.plans import ENDED_WELL, Plan, is_idle, last_records
from workbench.records.writing import write_file
from workbench.runs.run import Run
from workbench.settings import RULES, Settings
from workbench.state import Data, ExecutionRecord, Json, RetrievalResult, drop, pick
from workbench.text import clean
from workbench.views.drawing import STYLE
from workbench.views.labels import Labels, labels_for
from workbench.views.markup import draw
from workbench.views.render import CLASSES
from workbench.views.review import support_text
from workbench.views.run import Marks

_PLANNING = ("intent_detect", "prepare_retrieval", "clarify", "planner")
_WRITING = ("outliner", "review_outline", "section", "consistency", "assemble")
_GRANULARITY = {"chunk": "Chunk", "relationship": "AtomicKnowledge", "community": "KGSubgraph"}
_FORMS = ("md", "html")
_ENDED = ("completed", "partial", "failed")
_UPDATE_OPTIONS = ("kb", "user", "worker", "thresholds", "settings", "prompts", "report")
"""Options of a run that hold for its update too."""


def _storable(value: Any) -> Any:
    """Return a text as a store takes it."""
    return clean(value) if isinstance(value, str) else value


Sentence = Annotated[str, BeforeValidator(_storable), Field(pattern=r"\S", max_length=1_000)]


class ReportOptions(BaseModel, extra="forbid"):
    """The options of a report."""

    report_type: str | None = None
    style: Literal["default", "apa", "ieee", "gb7714", "bibtex"] | None = None
    assumptions: list[Sentence] = Field([], max_length=50)
    cached: bool = True


def asked_for(settings: Settings, options: Data) -> Json:
    """Return what a run keeps of the report that is wanted.

    Raises:
        WorkbenchError: there is no such option, type or style, or an assumption is no text.
    """
    with refusing("report", ReportOptions.model_fields):
        request = ReportOptions.model_validate(options)
    name = report_type(request.report_type or settings.report_type).name
    style = request.style or settings.citation_style
    return {**request.model_dump(), "report_type": name, "style": style}


class Report:
    """A report and how it came about.

    Attributes:
        run: the run that wrote it: its plan, records, timeline, tape and forks.
        report_id: ``plan_id:version:report_type``.
        cache_hit: whether all of it was there already.
        outline: ``report_type``, ``title``, ``abstract``, ``sections``, ``total_estimated_words``.
        title: its title.
        chapters: its title, sections and what is around them, each with its heading and its text in Markdown.
        text: the report in Markdown.
        consistency: statements and their verdicts, precision and recall of citations, contradictions, ``score``.
        clarifications: what the topic left open, with what was answered or assumed.
    """

    def __init__(self, run: Run):
        values = run.state
        self.run = run
        self._values = values
        self._kept = values.get("report") or {}
        self.report_id: str = self._kept.get("report_id", "")
        self.cache_hit: bool = self._kept.get("cache_hit", False)
        self.outline: Json = values.get("outline") or {}
        self.title: str = self.outline.get("title", "")
        self.chapters: list[Chapter] = self._kept.get("chapters", [])
        self.text = markdown(self.chapters)
        self.consistency: Json = self._kept.get("consistency", {})
        self.clarifications: list[Json] = values.get("clarifications", [])

    def html(self, prefix: str = "") -> Markup:
        """Return it as HTML; ``prefix`` stands before the names of its anchors."""
        labels = labels_for(self.run.message)
        body = html(self.chapters, labels, prefix)
        return draw("report.provenance", labels, run=self.run) + body

    @property
    def status(self) -> str:
        """``completed``, ``partial`` (a task or the model failed, or it was stopped), ``needs_clarification`` or
        ``failed``; until then that of the run.
        """
        status = self.run.status
        if status == "paused" and (self.run.review or {}).get("point") == "clarify":
            return "needs_clarification"
        if status in ("failed", "cancelled"):
            return "failed"
        if status != "done":
            return status
        last = [r for r in last_records(self.run.records).values() if not is_idle(r)]
        if last and not any(r["status"] in ENDED_WELL for r in last):
            return "failed"
        undone = any(r["status"] not in ENDED_WELL for r in last)
        writers = {
            section["by"] for section in self._values.get("sections", []) if section["sources"]
        }
        model_failed = self._kept.get("by", RULES) != RULES and writers == {RULES}
        return "partial" if undone or model_failed or self._kept.get("stopped") else "completed"

    @property
    def sections(self) -> list[Json]:
        """Return the sections, in order: ``text`` with the report's numbers, ``claims``, ``evidence_ids``, ``by``."""
        texts = {c["name"]: c["text"] for c in self.chapters}
        numbers = self._kept.get("numbers", {})
        return [
            {
                **drop(section, "sources"),
                "text": texts.get(section["section_id"], section["text"]),
                "evidence_ids": [i for i in section["sources"] if i in numbers],
            }
            for section in (written_sections(self._values) if self.outline else ())
        ]

    @property
    def notes(self) -> list[str]:
        """Return what happened to the outline, the abstract and each section that a model did not write well."""
        return [
            *self._kept.get("notes", []),
            *(
                f"{section['title']}: {note}"
                for section in self.sections
                for note in section["notes"]
            ),
        ]

    @property
    def metrics(self) -> Json:
        """``planning_seconds``, ``execution_seconds``, ``reporting_seconds``; sections written and taken over."""
        spent = Counter[str]()
        for line in self.run.log:
            spent[line["node"]] += line["duration_ms"]
        sections = self._values.get("sections", [])
        reused = sum(section["reused"] for section in sections)
        return {
            "planning_seconds": round(sum(spent[node] for node in _PLANNING) / 1000, 3),
            "execution_seconds": round(self._values.get("retrieval_ms", 0.0) / 1000, 3),
            "reporting_seconds": round(sum(spent[node] for node in _WRITING) / 1000, 3),
            "sections_written": len(sections) - reused,
            "sections_reused": reused,
        }

    def update(self) -> Run:
        """Ask again with the same plan: sections whose evidence did not change stay, to the byte.

        ``run.report.metrics`` says how many sections were written.

        Raises:
            RunError: there is no report yet, or the corpus of today gives none.
        """
        self._require_text()
        options = self.run.options
        arguments = {name: options[name] for name in _UPDATE_OPTIONS if options.get(name)}
        arguments["as_of"], arguments["known"] = options.get("dates", ("", ""))
        # what was answered holds, though the documents, and so the options, may read differently now
        answers = [
            pick(decision, "point", "action", "edits", "message", "note")
            for decision in self.run.decisions
            if decision["point"] == "clarify"
        ]
        arguments |= {
            "review": ["clarify"] if answers else [],
            "reviewer": ReplayReviewer(answers, rest="rules"),
        }
        arguments["report"] = {**arguments["report"], "cached": True}
        run = self.run._workspace.ask(self.run.message, plan=self.run.plan, **arguments)
        if run.status != "done":
            hint = run.error or "continue with resume"
            raise RunError(f"Run {run.run_id}, which asks again, is {run.status}: {hint}.")
        return run

    def _require_text(self) -> None:
        if not self.text:
            raise RunError(f"Run {self.run.run_id} has no report yet: it is {self.run.status}.")

    def to_dict(self) -> Json:
        """Return everything as JSON, by the names of the requirement: ``input``, ``messages``, ``status``,
        ``response``, ``planner``, ``execution_records``, ``report``, ``report_context``, ``errors``, ``metrics``.
        """
        run = self.run
        plan = run.plan
        last = last_records(run.records)
        findings = run._results_by_step()
        reflected = {
            reflection["current_iteration"]: reflection for reflection in run.reflections
        }
        records = [
            {
                "record_id": f"{r['step_id']}/{r['attempt']}",
                "task_id": r["step_id"],
                "session_id": run.session_id,
                "worker_type": r["tool"],
                "inputs": r["raw_input"],
                "tool_calls": [_call(r)],
                "reflection": reflected.get(r["iteration"]),
                "evidence": [_evidence_json(piece) for piece in findings.get(r["step_id"], [])],
                "status": r["status"],
                "metadata": {
                    "latency_seconds": round(r["duration_ms"] / 1000, 6),
                    "error": r["error"],
                },
            }
            for r in run.records
        ]
        consistency = self.consistency
        sections = self.sections
        report = {
            "outline": self.outline,
            "sections": sections,
            "final_report": self.text,
            "references": self._kept.get("references", ""),
            "consistency_check": consistency,
        }
        context = {
            "outline": self.outline,
            "section_drafts": {section["section_id"]: section["text"] for section in sections},
            "citations": list(run.citations),
            "consistency_check_results": consistency,
            "report_type": self._kept.get("report_type", ""),
            "report_id": self.report_id,
            "cache_hit": self.cache_hit,
            "notes": self.notes,
        }
        errors = [f"{i}: {r['error']}" for i, r in last.items() if r["error"] and not is_idle(r)]
        turns = {"user": run.message, "assistant": self.text or run.answer}
        messages = [{"role": role, "content": text} for role, text in turns.items() if text]
        return {
            "session_id": run.session_id,
            "input": run.message,
            "messages": [*self._values.get("history", []), *messages],
            "status": self.status,
            "response": turns["assistant"],
            "planner": {
                "plan_spec": self._plan_spec(plan, last) if plan else {},
                "plan_context": {
                    "original_query": run.message,
                    "refined_query": run.query if run.query != run.message else None,
                    "clarification_history": [
                        pick(turn, "question", "answer") for turn in self.clarifications
                    ],
                    "user_preferences": {"known": self._kept.get("preferences", "").splitlines()},
                    "domain_context": run.state.get("kb_prefix", "")
                    or run._workspace.settings.default_domain,
                },
                "signal": plan.signal() if plan else {},
                "clarifications": self.clarifications,
            },
            "execution_records": records,
            "execution_context": self._execution_context(last),
            "report": report,
            "report_context": context,
            "errors": [*errors, *([run.error] if run.error else [])],
            "metrics": self.metrics,
            "report_id": self.report_id,
            "cache_hit": self.cache_hit,
        }

    def _plan_spec(self, plan: Plan, last: Mapping[str, ExecutionRecord]) -> Json:
        nodes = [
            {
                "task_id": step.step_id,
                "task_type": step.tool,
                "description": step.objective,
                "depends_on": step.dependencies(),
                "parameters": step.tool_input,
                "priority": step.priority,
                "status": last[step.step_id]["status"] if step.step_id in last else "pending",
            }
            for step in plan.steps
        ]
        return {
            "plan_id": plan.plan_id,
            "version": plan.version,
            "problem_statement": {
                "original_query": self.run.message,
                "refined_query": self.run.query,
            },
            "assumptions": list(
                dict.fromkeys([*self._kept.get("assumptions", []), *plan.assumptions])
            ),
            "task_graph": {"nodes": nodes, "execution_mode": plan.execution_mode},
            "acceptance_criteria": plan.acceptance_criteria,
            "status": self.status,
        }

    def _execution_context(self, last: Mapping[str, ExecutionRecord]) -> Json:
        records = self.run.records
        before = dict[str, str]()
        tries = Counter[str]()
        # what ended well is done again only where a reflection found it wanting
        for record in records:
            tries[record["step_id"]] += before.get(record["step_id"]) in ENDED_WELL
            before[record["step_id"]] = record["status"]
        steps = self.run.plan.by_id() if self.run.plan and self.status not in _ENDED else {}
        return {
            "current_task_id": next((step_id for step_id in steps if step_id not in last), None),
            "completed_task_ids": [i for i, r in last.items() if r["status"] in ENDED_WELL],
            "tool_call_history": [{"task_id": r["step_id"], **_call(r)} for r in records],
            "intermediate_results": {i: r["output_summary"] for i, r in last.items()},
            "reflection_retry_counts": dict(+tries),
            "errors": [
                {"task_id": i, "error": r["error"]} for i, r in last.items() if r["error"]
            ],
            "evidence_registry": {r["result_id"]: _evidence_json(r) for r in self.run.evidence},
        }

    def write(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write it to a file: Markdown or HTML, by the file's ending.

        Args:
            path: the file.
            replace: whether another file of that name may be replaced.

        Raises:
            RunError: there is no report yet, no such form, or another file of that name.
        """
        file = Path(path).expanduser()
        form = file.suffix.lower().lstrip(".")
        if form not in _FORMS:
            raise RunError(
                f"{file} has an ending that is not a form of a report. Known: {', '.join(_FORMS)}."
            )
        self._require_text()
        labels = labels_for(self.run.message)
        text = page(self.title, self.html(), labels) if form == "html" else self.text
        file.parent.mkdir(parents=True, exist_ok=True)
        return write_file(file, text.encode(), replace=replace, kind=RunError)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Report {self.run.run_id} {self.status}: {self.title!r}, {len(self.sections)} sections>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the report for a notebook: its progress, then its text; the run until there is a text."""
        if not self.text:
            return {**self.run._repr_mimebundle_(), "text/plain": repr(self)}
        return {
            "text/plain": self.text,
            "text/html": fragment(self, labels_for(self.run.message)),
        }


def _call(record: ExecutionRecord) -> Json:
    return {"tool": record["tool"], "input": record["raw_input"], "status": record["status"]}


def _evidence_json(result: RetrievalResult) -> Json:
    """Return a piece of evidence by the names of the requirement."""
    fields = pick(result, "result_id", "evidence", "metadata", "score")
    entity = "DO" if result["metadata"].get("doc_id") else "L2-DO"
    return {
        **fields,
        "granularity": _GRANULARITY.get(result["source_type"], entity),
        "source": ", ".join(result["metadata"].get("tools") or []),
    }


def write_report(
    wb: Any,
    question: str,
    *,
    assumptions: Sequence[str] = (),
    report_type: str | None = None,
    style: str | None = None,
    cached: bool = True,
    wait: bool = True,
    **options: Any,
) -> Run:
    """Write a report: a run that plans and searches as any other, and whose answer has sections and references.

    ``run.report`` is the report: its text, outline, claims and checks, and the files it can be written to.

    Args:
        question: the topic; behind a colon its aspects, each a section: "Tides: causes, records, power".
        assumptions: what is taken as given, a sentence each.
        report_type: ``short``, ``long``, or a custom one; None for the setting.
        style: of the references: ``default``, ``apa``, ``ieee``, ``gb7714``, ``bibtex``; None for the setting.
        cached: take over what an earlier report of the same wrote from the same evidence.
        wait: False returns at once.
        **options: those of ``start``; ``review`` may also name ``clarify`` and ``outline``.

    Raises:
        WorkbenchError: no such type or style; it says which there are.
    """
    arguments = {
        **options,
        "report": {
            "report_type": report_type,
            "style": style,
            "assumptions": assumptions,
            "cached": cached,
        },
    }
    return (wb.ask if wait else wb.start)(question, **arguments)


@property  # type: ignore[misc]
def report(run: Run) -> Report:
    """Return the report that a run writes.

    Raises:
        RunError: it writes none.
    """
    if "report" not in run.options:
        raise RunError(
            f"Run {run.run_id} writes no report: it was asked with ask. Ask for one with wb.report."
        )
    return Report(run)


# a report on the bench: how it stands, its sections folded with their statements, and its marks as buttons


def finished(report: Report, citations: Sequence[Data], labels: Labels) -> Markup:
    """Return a report that is written.

    Args:
        report: the report.
        citations: of its run; a mark is a button whose key is the citation's place.
        labels: the words.
    """
    mark = Marks(citations, labels)
    first, *rest = report.chapters
    # the head of the bench has the topic
    head = first["text"] if report.title == report.run.message else markdown([first])
    head = rendered(head, mark)
    folds: list[Json] = []
    for chapter in rest:
        own = plain_mark if chapter["name"] == "references" else mark
        if "." in chapter["name"]:  # a section below another
            folds[-1]["below"] += rendered(markdown([chapter]), own)
        else:
            folds.append(_fold(chapter, rendered(chapter["text"], own), report.sections, labels))
    return draw(
        "report.finished",
        labels,
        standing=_status_line(report, labels),
        files={"md": report.text, "html": page(report.title, report.html(), labels)},
        first=head,
        chapters=folds,
    )


def fragment(report: Report, labels: Labels) -> str:
    """Return the same as static HTML for a cell; the id of the run stands before the names of its anchors."""
    return draw(
        "report.fragment",
        labels,
        standing=_status_line(report, labels),
        body=report.html(f"{report.run.run_id}-"),
        classes=CLASSES,
        style=Markup(STYLE + document_style()),
    )


def written_so_far(report: Report, heard: Collection[str], labels: Labels) -> Markup:
    """Return the sections of a report that is being written, ticked if done; ``heard`` are titles of more."""
    sections = report.outline.get("sections") or []
    titles = {*heard, *(section["title"] for section in report.sections)}
    return draw("report.written", labels, sections=sections, there=titles)


def _status_line(report: Report, labels: Labels) -> str:
    """Return how it ended, in how many sections something was found, how much of it is supported."""
    status = report.status
    sections = report.sections
    words = [] if status == "completed" else [labels.get(f"report_{status}", labels(status))]
    covered = sum(bool(section["evidence_ids"]) for section in sections)
    words.append(labels("report_found", n=covered, of=len(sections)))
    words += consistency_texts(report.consistency, labels)
    words += [labels("report_taken_over")] if report.cache_hit else []
    return " · ".join(words)


def _fold(chapter: Chapter, below: Markup, sections: Sequence[Data], labels: Labels) -> Json:
    """Return a chapter, folded; below a section how its statements stand, which is open where one has no support."""
    name = chapter["name"]
    own = [section for section in sections if section["section_id"].partition(".")[0] == name]
    claims = [
        {**claim, "shown": _line(claim["text"])} for section in own for claim in section["claims"]
    ]
    return {
        "heading": _line(chapter["heading"].removeprefix("## ")),
        "below": below,
        "number": name,
        "count": support_text(claims, labels),
        "claims": claims,
    }


def _line(text: str) -> Markup:
    return rendered(text, plain_mark, line=True)
