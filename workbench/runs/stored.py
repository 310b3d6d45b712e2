"""What is kept of a run: its row, plans, records, decisions, findings and tape, as attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from workbench.errors import RunError, shown
from workbench.events import nested
from workbench.extensions import Extended
from workbench.knowledge.dated import question_dates
from workbench.plans import Plan
from workbench.records.document import run_document
from workbench.records.figures import Piece, own, pieces
from workbench.records.prompts import Prompts
from workbench.records.proposals import MARKS
from workbench.records.store import RunRow
from workbench.records.tape import Effect, begun, places, read
from workbench.runs.calls import Calls, model_calls
from workbench.state import (
    Citation,
    Data,
    Decision,
    ExecutionRecord,
    Json,
    Reflection,
    RetrievalResult,
)
from workbench.views.blocks import clipped, columns, one_line
from workbench.views.labels import labels_for, score_text
from workbench.views.markup import cut
from workbench.views.render import display_data

if TYPE_CHECKING:
    import pandas

    from workbench.runs.work import Work


class EvidenceList(list[RetrievalResult]):
    """Pieces of evidence, of which a notebook shows a row each."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        labels = labels_for("")
        rows = [
            (
                one_line(piece["metadata"].get("title")),
                score_text(piece["score"]),
                ", ".join(piece["metadata"].get("tools", ())),
                cut(one_line(piece["evidence"]), 200),
            )
            for piece in self
        ]
        heads = columns(labels, "piece", "score:number", "found_by", "passage")
        return display_data([clipped(labels("evidence_title"), heads, rows)], labels)


@runtime_checkable
class SelfContained(Protocol):
    """A run that replays and exports itself, as one of a recorded graph."""

    def replay(self) -> Any:
        """Run it again from its tape."""

    def export(self, path: str | Path) -> Path:
        """Seal it in a zip file."""


class StoredRun:
    """A run of the workspace or of a recorded graph, as its row has it.

    Everything is read from the workspace when it is asked for, so two handles of one run, in two processes too, agree.
    """

    def __init__(self, work: Work, run_id: str):
        self._work = work
        self.run_id = run_id
        self._store = work.driver(run_id).runs

    @property
    def _workspace(self) -> Any:
        """Return the open workspace that it belongs to."""
        return self._work.workspace

    @property
    def row(self) -> RunRow:
        """Return its row in the store: ids of user and conversation, options, moments, error."""
        return self._store.get(self.run_id, whole=True)

    @property
    def status(self) -> str:
        """``running``, ``paused``, ``interrupted``, ``done``, ``failed`` or ``cancelled``."""
        return self._work.status(self.run_id)

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self.row["error"]

    @property
    def message(self) -> str:
        """Return what the user wrote."""
        return self.row["message"]

    @property
    def session_id(self) -> str:
        """Return the conversation to which it belongs: ``ask(..., session=run.session_id)`` continues with it."""
        return self.row["session_id"]

    @property
    def options(self) -> Json:
        """Return what it was started with, as JSON."""
        return self.row["options"]

    @property
    def decisions(self) -> list[Decision]:
        """Return what was answered at review points."""
        return self._store.decisions(self.run_id)

    def cancel(self, *, resumable: bool = False) -> Self:
        """Stop the work now, with its tools, in whatever process it is done. What is finished is kept.

        Args:
            resumable: stop only what this process does, and leave the run to be resumed, as Ctrl-C does.

        Raises:
            WorkspaceBusy: the other process has not stopped in time; it will when it wakes.
        """
        (self._work.interrupt if resumable else self._work.cancel)(self.run_id)
        return self


class Recording(StoredRun, Extended):
    """A stored run of the workspace, read-only.

    What ``recorded`` returns reads everything once, when it is first asked for.
    """

    _kind = "run"

    @property
    def state(self) -> Json:
        """Return the current state of its graph: where it was routed, what was recalled and merged, and so on."""
        return self.row["result"] or self._work.values(self.run_id)

    @property
    def review(self) -> Json | None:
        """Return what the run asks a person, in the shape of LangChain's human-in-the-loop middleware, or None."""
        return self._work.pending(self.run_id) if self.status == "paused" else None

    # what it did

    @property
    def query(self) -> str:
        """Return the question as it stands alone: a follow-up with what it refers to."""
        return self.state.get("query", self.message)

    @property
    def plan(self) -> Plan | None:
        """Return the newest version of the plan."""
        versions = self.plans
        return versions[-1]["plan"] if versions else None

    @property
    def plans(self) -> list[Json]:
        """Return each version of the plan, oldest first: ``{"version", "author", "reason", "plan"}``."""
        return [{**row, "plan": Plan.load(row["plan"])} for row in self._store.plans(self.run_id)]

    @property
    def records(self) -> list[ExecutionRecord]:
        """Return what each attempt at each step did."""
        return self._store.records(self.run_id)

    @property
    def reflections(self) -> list[Reflection]:
        """Return the judgements, one a pass."""
        return self.state.get("reflections", [])

    @property
    def evidence(self) -> EvidenceList:
        """Return the evidence, best first: what was merged, or all that was found so far."""
        from workbench.graphs.merge import distinct, marked

        merged = self.state.get("merged")
        if merged:
            return EvidenceList(merged["retrieval_results"])
        return EvidenceList(distinct(marked(self._results_by_step(), piece_marks(self))))

    @property
    def answer(self) -> str:
        """Return the answer, with its ``[n]``; empty before there is one."""
        return self.state.get("answer", "")

    @property
    def citations(self) -> list[Citation]:
        """Return the evidence behind each ``[n]``."""
        return self.state.get("citations", [])

    @property
    def log(self) -> list[Json]:
        """Return one entry per node that ran: ``node, node_type, duration_ms, timestamp, input, output, sub_steps``.

        ``events.nested`` puts them in levels: the subgraph, its nodes, their steps, what each tool did.
        """
        events = self._store.events(self.run_id)
        return [event["execution_log"] for event in events if "execution_log" in event]

    def to_dict(self) -> Json:
        """Return the whole run as one JSON document (``run.schema.json``); its ``execution_log`` is in levels."""
        still = snapshot(self)
        holder = self._work.holder(self.run_id)
        return {
            **run_document(still, holder, asked_dates(still)),
            "execution_log": nested(still.log),
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return one row per attempt, by start."""
        import pandas

        names = ("step_id", "attempt", "iteration", "tool", "status", "duration_ms", "error")
        summary = ("evidence_count", "context_length", "top_score")
        rows = [record | record["output_summary"] for record in self.records]
        return pandas.DataFrame(rows, columns=[*names, *summary])

    # its tape

    def tape(self) -> list[Effect]:
        """Everything that the run asked of the world, and what came of it."""
        return read(self._store, self.run_id)

    def results_by_place(self) -> Json:
        """Return what can be put in place by hand, by its place: the output of a tool, the reply of a model."""
        results = {}
        for place, effect in places(self.tape()).items():
            results[place] = tool_output(effect) if effect.kind == "tool" else effect.value
        return results

    def _results_by_step(self) -> dict[str, list[RetrievalResult]]:
        """Return what each step that has ended well found, by step."""
        from workbench.graphs.merge import gather

        return gather(self.records, self._store, self.run_id)

    def _read_once(self, runs: Sequence[Any] = ()) -> Recording:
        """Return the run, read once, to be compared with others."""
        return snapshot(self)

    def calls(self) -> Calls:
        """Return the calls of models: what each saw, what it said, what it took."""
        return model_calls(self.tape(), self.state)


def tool_output(effect: Effect) -> Json:
    """Return the output of a tool's call, with its results."""
    body = effect.value["body"] or {"output": {}, "results": []}
    return {**body["output"], "results": body["results"]}


def snapshot(run: Recording, run_id: str = "") -> Recording:
    """Return this run, or another run of its workspace; each is read once.

    Raises:
        UnknownRun: it is no longer kept.
    """
    still = Recording(run._work, run_id or run.run_id)
    for name in ("_work", "_store"):
        setattr(still, name, _MemoizingProxy(getattr(still, name)))
    for name in ("tape", "_results_by_step"):
        setattr(still, name, cache(getattr(still, name)))
    still.row  # noqa: B018, raises where there is none
    return still


def asked_dates(run: Recording) -> list[str]:
    """Return the dates of what was to hold and to be known, ``["2003", ""]``; empty where none was asked."""
    dates = question_dates(
        {"dates": run.options.get("dates"), "route_decision": run.state.get("route_decision")}
    )
    return dates if any(dates) else []


def found_pieces(run: Recording) -> list[Piece]:
    """Return everything that was found, and what became of it: cited, in the prompt, or dropped, and why."""
    return pieces(
        run._results_by_step(),
        run.evidence,
        run.state.get("merged") or None,
        run.citations,
        piece_marks(run),
    )


def piece_marks(run: Recording) -> dict[str, str]:
    """Return what was said of pieces of evidence, by key: in the run, or when it was forked."""
    marks = run.state.get("pieces") or run.options.get("pieces") or {}
    return marks


def checked_marks(marks: Mapping[Any, str], pieces: Iterable[Piece]) -> dict[str, str]:
    """Return marks of evidence by the keys of its pieces, for which its numbers may be given.

    Raises:
        RunError: there is no such piece or mark.
    """
    keys: dict[Any, str] = {}
    for piece in pieces:
        keys[piece["key"]] = keys[piece["n"]] = piece["key"]
    if unknown := [key for key in marks if key is None or key not in keys]:
        raise RunError(f"This run has no piece of evidence {shown(unknown[0])}.")
    if wrong := [mark for mark in marks.values() if mark not in MARKS]:
        raise RunError(
            f"{shown(wrong[0])} is not a mark of evidence. Known: pinned, struck, or '' for neither."
        )
    return {keys[key]: mark for key, mark in marks.items()}


def live_steps(run: Recording) -> list[str]:
    """Return the steps that this run did itself, where the tape of another run had no answer."""
    return [record["step_id"] for record in own(run.records) if "effect" in record]


def tape_sources(options: Data) -> list[str]:
    """Return the runs whose tapes answer a run with these options."""
    return (options.get("tape") or {}).get("sources", [])


def origin_of(run: Recording) -> str | None:
    """Return the run from which this one was made; None for a run of its own."""
    return next(iter(tape_sources(run.options)), None)


def prompts_of(run: Recording) -> Prompts:
    """Return the prompts that it worked with; an edit of one of them is for a fork: ``run.fork(prompts={...})``."""
    return Prompts(
        saved={**begun(run.tape()).get("prompts", {}), **run.options.get("prompts", {})}
    )


def debug_events(run: Recording) -> list[Json]:
    """Return what is for no chat client: where it was routed, each step, what was merged, the log."""
    from workbench.graphs.merge import merged_events

    events = []
    state = run.state
    for event in run._store.events(run.run_id):
        events += event.get("debug", [])
        if event.get("execution_log", {}).get("node") == "merger" and state.get("merged"):
            events += merged_events(state["merged"], state.get("runs", []))
        events.append({name: value for name, value in event.items() if name != "debug"})
    return events


class _MemoizingProxy:
    """Another object, each of whose methods is called once for the same arguments."""

    def __init__(self, target: Any):
        self._of = target

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._of, name)
        setattr(self, name, cache(attribute) if callable(attribute) else attribute)
        return getattr(self, name)
