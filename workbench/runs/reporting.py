"""A report as people hold it: a view of the run that wrote it. It keeps nothing of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, shown
from workbench.graphs.report_assembly import standing
from workbench.plans import ENDED_WELL, IDLE, last_records
from workbench.reports.assembling import in_order, renumbered
from workbench.reports.citing import STYLES
from workbench.reports.kinds import report_type
from workbench.settings import Settings
from workbench.text import language_of

if TYPE_CHECKING:
    from workbench.runs.run import Run

_WRITING = ("outliner", "section", "research", "consistency", "assemble")
_FORMS = ("md", "html", "pdf", "ipynb")


_ASKED = ("report_type", "style", "assumptions", "cached")


def asked_for(settings: Settings, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a run keeps of the report that is wanted.

    Raises:
        WorkbenchError: there is no such option, type or style, or an assumption is no text.
    """
    if unknown := set(given) - set(_ASKED):
        raise RunError(f"report has {shown(sorted(map(str, unknown))[0])}. Known: {', '.join(_ASKED)}.")
    name = report_type(given.get("report_type") or settings.report_type).name
    style, assumptions = given.get("style") or settings.citation_style, given.get("assumptions") or []
    if style not in STYLES:
        raise RunError(f"There is no citation style {shown(style)}. Known: {', '.join(STYLES)}.")
    told = [assumptions] if isinstance(assumptions, str) else list(assumptions)
    if wrong := next((one for one in told if not isinstance(one, str) or not one.strip()), None):
        raise RunError(f"assumptions holds {shown(wrong)}. Give a list of sentences.")
    return {"type": name, "style": style, "assumptions": told, "cached": bool(given.get("cached", True))}


class Report:
    """A report and how it came about.

    Attributes:
        run: the run that wrote it: its plan, records, timeline, tape and forks.
    """

    def __init__(self, run: Run):
        self.run = run
        self._values: Mapping[str, Any] = run._values()
        self._kept: Mapping[str, Any] = self._values.get("report") or {}

    @property
    def status(self) -> str:
        """``completed``, ``partial`` (a task failed, or it was stopped), ``needs_clarification`` or ``failed``; until
        then that of the run.
        """
        status = self.run.status
        if status == "paused" and (self.run.review or {}).get("point") == "clarify":
            return "needs_clarification"
        if status in ("failed", "cancelled"):
            return "failed"
        if status != "done":
            return status
        last = [r for r in last_records(self.run.records).values() if r["error"] not in IDLE]
        if last and not any(r["status"] in ENDED_WELL for r in last):
            return "failed"
        bad = (
            any(r["status"] not in ENDED_WELL for r in last) or self._kept.get("stopped") or self._kept.get("rejected")
        )
        return "partial" if bad else "completed"

    @property
    def report_id(self) -> str:
        """``plan_id:version:report_type``."""
        return str(self._kept.get("report_id", ""))

    @property
    def cache_hit(self) -> bool:
        """Whether all of it was there already."""
        return bool(self._kept.get("cache_hit"))

    @property
    def title(self) -> str:
        """Its title."""
        return str(self.outline.get("title", ""))

    @property
    def text(self) -> str:
        """The report in Markdown."""
        return str(self._kept.get("final_report", ""))

    @property
    def outline(self) -> dict[str, Any]:
        """``report_type``, ``title``, ``abstract``, ``sections``, ``total_estimated_words``."""
        return dict(self._values.get("outline") or {})

    @property
    def sections(self) -> list[dict[str, Any]]:
        """The sections, in order: ``text`` with the report's numbers, ``claims``, ``evidence_ids``, who wrote it."""
        if not self.outline:
            return []
        numbers = self._kept.get("numbers", {})
        return [
            {
                **{name: value for name, value in one.items() if name != "sources"},
                "text": renumbered(one["text"], one["sources"], numbers) if numbers else one["text"],
                "evidence_ids": [i for i in one["sources"] if i in numbers],
            }
            for one in in_order(standing(self._values))
        ]

    @property
    def consistency(self) -> dict[str, Any]:
        """Statements and their verdicts, precision and recall of citations, contradictions, ``score``."""
        return dict(self._kept.get("consistency") or {})

    @property
    def metrics(self) -> dict[str, Any]:
        """``planning_seconds``, ``execution_seconds``, ``reporting_seconds``; sections written and taken over."""
        spent: dict[str, float] = {}
        for line in self.run.log:
            spent[line["node"]] = spent.get(line["node"], 0.0) + line["duration_ms"] / 1000
        planning = sum(spent.get(n, 0.0) for n in ("intent_detect", "prepare_retrieval", "clarify", "planner"))
        written = [one for one in self._values.get("sections", []) if not one["reused"]]
        return {
            "planning_seconds": round(planning, 3),
            "execution_seconds": round(float(self._values.get("retrieval_ms", 0.0)) / 1000, 3),
            "reporting_seconds": round(sum(spent.get(name, 0.0) for name in _WRITING), 3),
            "sections_written": len(written),
            "sections_reused": len(self._values.get("sections", [])) - len(written),
        }

    @property
    def clarifications(self) -> list[dict[str, Any]]:
        """What the topic left open, with what was answered or assumed."""
        return list(self._values.get("clarifications") or [])

    def resume(self, answers: Mapping[str, str] | str | None = None) -> Report:
        """Go on: with answers to what is asked (by question id, or in words), or with what is assumed.

        Raises:
            NotPaused, InvalidAnswer: as ``run.answer_review``.
        """
        if self.run.status == "paused":
            if isinstance(answers, str):
                self.run.respond(answers)
            elif answers:
                self.run.edit({"answers": dict(answers)})
            else:
                self.run.approve()
        elif self.run.status in ("interrupted", "failed"):
            self.run.resume().wait()
        return Report(self.run)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON, by the names of the requirement: ``status``, ``response``, ``planner``,
        ``execution_records``, ``report``, ``report_context``, ``errors``, ``metrics``.
        """
        run, plan = self.run, self.run.plan
        last = last_records(run.records)
        nodes = [
            {
                "task_id": step.step_id,
                "task_type": step.tool,
                "description": step.objective,
                "depends_on": step.dependencies(),
                "status": last[step.step_id]["status"] if step.step_id in last else "pending",
            }
            for step in (plan.steps if plan else ())
        ]
        found = run.found
        records = [
            {
                "record_id": f"{r['step_id']}/{r['attempt']}",
                "task_id": r["step_id"],
                "session_id": run.session_id,
                "worker_type": r["tool"],
                "inputs": r["raw_input"],
                "evidence": found.get(r["step_id"], []),
                "status": r["status"],
                "metadata": {"latency_seconds": round(r["duration_ms"] / 1000, 6), "error": r["error"]},
            }
            for r in run.records
        ]
        spec: dict[str, Any] = {}
        if plan:
            graph = {"nodes": nodes, "execution_mode": plan.execution_mode}
            spec = {
                "plan_id": plan.plan_id,
                "version": plan.version,
                "problem_statement": {"original_query": run.message, "refined_query": run.query},
                "assumptions": list(dict.fromkeys([*self._kept.get("assumptions", []), *plan.assumptions])),
                "task_graph": graph,
                "acceptance_criteria": plan.acceptance_criteria,
                "status": self.status,
            }
        report = {
            "outline": self.outline,
            "sections": self.sections,
            "final_report": self.text,
            "references": "\n".join(self._kept.get("references", [])),
            "consistency_check": self.consistency,
        }
        context = {
            "outline": self.outline,
            "section_drafts": {one["section_id"]: one["text"] for one in self.sections},
            "citations": list(run.citations),
            "consistency_check_results": self.consistency,
            "report_type": self._kept.get("type", ""),
            "report_id": self.report_id,
            "cache_hit": self.cache_hit,
        }
        errors = [f"{i}: {r['error']}" for i, r in last.items() if r["error"] and r["error"] not in IDLE]
        return {
            "status": self.status,
            "response": self.text or run.answer,
            "planner": {"plan_spec": spec, "clarifications": self.clarifications},
            "execution_records": records,
            "report": report,
            "report_context": context,
            "errors": [*errors, *([run.error] if run.error else [])],
            "metrics": self.metrics,
            "report_id": self.report_id,
            "cache_hit": self.cache_hit,
        }

    def write(self, path: str | Path) -> Path:
        """Write it to a file: Markdown, HTML, PDF or a notebook, by the file's ending.

        Raises:
            RunError: there is no report yet, or no such form.
        """
        file = Path(path).expanduser()
        form = file.suffix.lower().lstrip(".")
        if form not in _FORMS:
            raise RunError(f"{file} has an ending that is no form of a report. Known: {', '.join(_FORMS)}.")
        if not self.text:
            raise RunError(f"Run {self.run.run_id} has no report yet: it is {self.run.status}.")
        content = self.rendered(form)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise RunError(f"{file} cannot be written: {error.strerror}. Name another place.") from None
        return file

    def rendered(self, form: str) -> bytes:
        """It in one of its forms: ``md``, ``html``, ``pdf`` or ``ipynb``."""
        from workbench.reports import rendering
        from workbench.runs.pictures import on_paper

        if form == "md":
            return self.text.encode()
        told = {
            "title": self.title,
            "language": language_of(self.run.message),
            "final_report": self.text,
            "figures": on_paper(self.run),
            "question": self.run.message,
            "kb_prefix": self.run.kb_prefix,
            "report_type": self._kept.get("type", ""),
            "style": self._kept.get("style", ""),
        }
        if form == "html":
            return rendering.to_html(told).encode()
        if form == "pdf":
            return rendering.to_pdf(told)
        return json.dumps(rendering.to_notebook(told), ensure_ascii=False, indent=1).encode()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Report {self.run.run_id} {self.status}: {self.title!r}, {len(self.sections)} sections>"

    def _repr_markdown_(self) -> str:
        return self.text
