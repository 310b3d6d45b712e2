"""What is kept of a run: its row, plans, records, decisions, findings and tape, as attributes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

from workbench.extensions import Extended
from workbench.knowledge.dated import dates_asked
from workbench.plans import Plan, last_records
from workbench.records.document import run_document
from workbench.records.figures import Identity, Piece, identity, pieces
from workbench.records.prompts import Prompts
from workbench.records.store import RunRow
from workbench.records.tape import Effect, begun
from workbench.runs.calls import Calls, calls_of
from workbench.state import (
    Citation,
    Decision,
    ExecutionRecord,
    Json,
    Obeyed,
    Reflection,
    Remembered,
    RetrievalResult,
    RouteDecision,
    Supported,
)

if TYPE_CHECKING:
    import pandas

    from workbench.runs.fork import Cost
    from workbench.runs.workers import Work


class Recording(Extended):
    """A run as it is kept; it starts nothing and changes nothing.

    Everything is read from the workspace when it is asked for, so two handles of one run, in two processes too, agree.
    What ``recording`` gives reads everything once, when it is first asked for.
    """

    _kind = "run"

    def __init__(self, work: Work, run_id: str):
        self._work, self.run_id, self._store = work, run_id, work.driver(run_id).runs

    def recording(self, run_id: str = "") -> Recording:
        """This run, or another one of the workspace, read once.

        Raises:
            UnknownRun: it is no longer kept.
        """
        still = Recording(self._work, run_id or self.run_id)
        still._work, still._store = cast(Any, _Once(still._work)), cast(Any, _Once(still._store))
        still._row  # noqa: B018, raises where there is none
        return still

    @property
    def workspace(self) -> Any:
        """Return the open workspace that it belongs to."""
        return self._work.workspace

    # how it stands

    @property
    def status(self) -> str:
        """``running``, ``paused``, ``interrupted``, ``done``, ``failed`` or ``cancelled``."""
        return self._work.status(self.run_id)

    @property
    def holder(self) -> str | None:
        """Return who works on it now, in words: process, host and since when; None when no one does."""
        return self._work.holder(self.run_id)

    @property
    def review(self) -> Json | None:
        """Return what the run asks a person, in the shape of LangChain's human-in-the-loop middleware, or None."""
        return self._work.pending(self.run_id) if self.status == "paused" else None

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self._row["error"]

    @property
    def message(self) -> str:
        """Return what the user wrote."""
        return self._row["message"]

    @property
    def as_of(self) -> list[str]:
        """Return the dates of what was to hold and to be known, ``["2003", ""]``; empty where none was asked."""
        dates = dates_asked({"dates": self.options.get("dates"), "route_decision": self.route_decision})
        return dates if any(dates) else []

    @property
    def session_id(self) -> str:
        """Return the conversation to which it belongs: ``ask(..., session=run.session_id)`` continues with it."""
        return self._row["session_id"]

    @property
    def conversation_id(self) -> str:
        """Return the id of that conversation of its user in the store."""
        return self._row["conversation_id"]

    @property
    def user_id(self) -> str:
        """Whose it is."""
        return self._row["user_id"]

    @property
    def created_at(self) -> str:
        """UTC, ISO 8601."""
        return self._row["created_at"]

    # what it did

    @property
    def query(self) -> str:
        """Return the question as it stands alone: a follow-up with what it refers to."""
        return self._values().get("query", self.message)

    @property
    def kb_prefix(self) -> str:
        """Return the knowledge base that was asked; empty for none."""
        return self._values().get("kb_prefix", "")

    @property
    def route_decision(self) -> RouteDecision | None:
        """Return where the message went, and what it wants."""
        return self._values().get("route_decision")

    @property
    def plan(self) -> Plan | None:
        """Return the newest version of the plan."""
        versions = self.plans
        return versions[-1] if versions else None

    @property
    def plans(self) -> list[Plan]:
        """Return every version of the plan, oldest first."""
        return [Plan.load(row["plan"]) for row in self._store.plans(self.run_id)]

    @property
    def plan_history(self) -> list[Json]:
        """Return who made each version, and why: ``{"version", "author", "reason", "plan"}``."""
        return self._store.plans(self.run_id)

    @property
    def records(self) -> list[ExecutionRecord]:
        """Return what each attempt at each step did."""
        return self._store.records(self.run_id)

    @property
    def reflections(self) -> list[Reflection]:
        """Return the judgements, one a pass."""
        return self._values().get("reflections", [])

    @property
    def remembered(self) -> list[Remembered]:
        """Return what was recalled of the person and the conversation: whether it stands in the prompt, or why not."""
        return self._values().get("remembered", [])

    @property
    def obeyed(self) -> list[Obeyed]:
        """Memories that became conditions on what was searched."""
        return self._values().get("obeyed", [])

    @property
    def decisions(self) -> list[Decision]:
        """Return what was answered at review points."""
        return self._store.decisions(self.run_id)

    @property
    def merged(self) -> Json:
        """Return the evidence as the answer sees it; empty before the merge."""
        return self._values().get("merged", {})

    @property
    def found(self) -> dict[str, list[RetrievalResult]]:
        """Return what each step that has ended well found, by step."""
        return self._work.found_by_step(self.run_id)

    @property
    def evidence(self) -> list[RetrievalResult]:
        """Return the evidence, best first: what was merged, or all that was found so far."""
        return self.merged["retrieval_results"] if self.merged else self._work.found_so_far(self.run_id)

    def provenance(self) -> list[Json]:
        """Return where each piece of evidence came from: a row per piece and step that found it.

        ``n`` and ``result_id`` of the piece, its ``title`` and ``score``; ``step_id`` and ``tool``; ``from_run`` and
        ``from_step``, the branch from which a graft took the step.
        """
        finders: dict[Identity, dict[str, None]] = {}
        for step_id, results in self.found.items():
            for result in results:
                finders.setdefault(identity(result), {})[step_id] = None
        records, origins, rows = last_records(self.records), self.grafted.get("steps", {}), []
        for n, piece in enumerate(self.evidence, 1):
            about = {"n": n, "result_id": piece["result_id"], "title": piece["metadata"].get("title", "")}
            for step_id in finders.get(identity(piece), ()):
                origin = origins.get(step_id, {"run_id": self.run_id, "step_id": step_id})
                found_by = {"score": piece["score"], "step_id": step_id, "tool": records[step_id]["tool"]}
                rows.append({**about, **found_by, "from_run": origin["run_id"], "from_step": origin["step_id"]})
        return rows

    @property
    def pieces(self) -> list[Piece]:
        """Everything that was found, and what became of it: cited, in the prompt, or dropped, and why."""
        merged = cast(Any, self.merged) or None
        return pieces(self.found, self.evidence, merged, self.citations)

    @property
    def answer(self) -> str:
        """Return the answer, with its ``[n]``; empty before there is one."""
        return self._values().get("answer", "")

    @property
    def answer_kind(self) -> str:
        """``fields``, ``quotation``, ``closest``, ``nothing`` or ``asks`` without a model; else empty."""
        return self._values().get("answer_kind", "")

    @property
    def citations(self) -> list[Citation]:
        """Return the evidence behind each ``[n]``."""
        return self._values().get("citations", [])

    @property
    def support(self) -> list[Supported]:
        """Return each statement of the answer, held against what it cites."""
        return self._values().get("support", [])

    @property
    def statistics(self) -> Json:
        """Counts and times of the retrieval."""
        return self.merged.get("statistics", {})

    @property
    def stop_reason(self) -> str | None:
        """Why retrieval ended."""
        return self._values().get("stop_reason")

    @property
    def log(self) -> list[Json]:
        """One entry a node that ran: ``node, node_type, duration_ms, timestamp, input, output, sub_steps``.

        ``events.nested`` puts them in levels: the subgraph, its nodes, their steps, what each tool did.
        """
        events = self._store.events(self.run_id)
        return [event["execution_log"] for event in events if "execution_log" in event]

    @property
    def debug_events(self) -> list[Json]:
        """Return what is for no chat client: where it was routed, each step, what was merged, the log."""
        from workbench.graphs.merge import merged_events

        found: list[Json] = []
        for kept in self._store.events(self.run_id):
            found += kept.get("debug", [])
            if kept.get("execution_log", {}).get("node") == "merger" and self.merged:
                found += merged_events(cast(Any, self.merged), self._values().get("runs", []))
            found.append({name: value for name, value in kept.items() if name != "debug"})
        return found

    def to_dict(self) -> Json:
        """Return the whole run as one JSON document (``run.schema.json``); its ``execution_log`` is in levels."""
        from workbench.events import nested  # it imports LangGraph, which a bench that only shows runs does without

        still = self.recording()
        return {**run_document(still), "execution_log": nested(still.log)}

    def to_frame(self) -> pandas.DataFrame:
        """One row an attempt, in the order in which they began."""
        import pandas

        rows = [
            {
                **{
                    key: r[key] for key in ("step_id", "attempt", "iteration", "tool", "status", "duration_ms", "error")
                },
                **{key: r["output_summary"][key] for key in ("evidence_count", "context_length", "top_score")},
            }
            for r in self.records
        ]
        return pandas.DataFrame(rows)

    # its tape

    def tape(self) -> list[Effect]:
        """Everything that the run asked of the world, and what came of it."""
        return self._work.tape(self.run_id)

    def calls(self) -> Calls:
        """Return the calls of models: what each saw, what it said, what it took."""
        return calls_of(self.tape())

    @property
    def prompts(self) -> Prompts:
        """Return the prompts that it worked with; an edit of one of them is for a fork: ``run.fork(prompts={...})``."""
        return Prompts(kept={**self.begun.get("prompts", {}), **self.options.get("prompts", {})})

    @property
    def begun(self) -> Json:
        """Return what the run began with, by name: settings, tools, versions, clock; empty without a tape."""
        return begun(self.tape())

    @property
    def grafted(self) -> Json:
        """Return what it was put together from: ``base`` and ``steps``; {} unless it is a graft."""
        return self.options.get("graft", {})

    @property
    def origin(self) -> str | None:
        """Return the run from which this one was made; None for a run of its own."""
        return next(iter(self.sources), None)

    @property
    def sources(self) -> list[str]:
        """Return the runs whose tapes answer this one."""
        return (self.options.get("tape") or {}).get("sources", [])

    @property
    def called(self) -> list[str]:
        """Return the steps that this run did itself, where the tape of another run had no answer."""
        return [r["step_id"] for r in self.records if "effect" in r and not r.get("replayed")]

    @property
    def saved(self) -> Cost:
        """Return what the tape of another run spared this one: calls of tools, their seconds, and tokens."""
        from workbench.runs.fork import saved

        return saved(self.tape())

    @property
    def options(self) -> Json:
        """Return what it was started with, as JSON."""
        return self._row["options"]

    @property
    def _row(self) -> RunRow:
        return self._store.get(self.run_id)

    def _values(self) -> Json:
        return self._row["result"] or self._work.values(self.run_id)


class _Once:
    """Another object, each of whose methods is called once for the same arguments."""

    def __init__(self, of: Any):
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        setattr(self, name, cache(found) if callable(found) else found)
        return getattr(self, name)
