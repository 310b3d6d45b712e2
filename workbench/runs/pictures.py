"""The pictures of a run; the ``to_frame()`` of each is the table behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from workbench.errors import KnowledgeError, RunError
from workbench.ports import KnowledgeBase, KnowledgeBases
from workbench.runs.past import Checkpoint
from workbench.runs.recording import Recording
from workbench.views import plan_graph
from workbench.views.drawing import Drawing
from workbench.views.graph import graph as draw_graph
from workbench.views.graph import walked
from workbench.views.knowledge import around
from workbench.views.knowledge import knowledge as draw_knowledge
from workbench.views.labels import labels_for
from workbench.views.timeline import when


def dag(run: Recording) -> Drawing:
    """See ``Run.dag``."""
    versions = run.plans
    if not versions:
        raise RunError(f"Run {run.run_id} has no plan to draw: it is {run.status}, and made none.")
    plans = [version["plan"] for version in versions]
    return plan_graph.dag(plans[-1], run.records, run.query, plans)


def timeline(run: Recording) -> Drawing:
    """See ``Run.timeline``."""
    return when(run.log, run.records, run.decisions, language=_language(run))


def graph(run: Recording, checkpoints: Callable[[], Sequence[Checkpoint]]) -> Drawing:
    """See ``Run.graph``."""
    next_nodes = [] if run.status == "done" else _next_nodes(checkpoints())
    return draw_graph(walked(_drawable(), run.log, run.status, next_nodes), run.query, _language(run))


def knowledge(run: Recording) -> Drawing:
    """See ``Run.knowledge``."""
    base = _base(run, run._workspace.knowledge)
    documents = [str(piece["source"].get("doc_id", "")) for piece in run.citations]
    documents = documents or [str(piece["metadata"].get("doc_id", "")) for piece in run.evidence[:8]]
    neighbourhood = around(base, documents, f"{run.query}\n{run.answer}")
    return draw_knowledge(neighbourhood, run.query, _language(run))


def _base(run: Recording, bases: KnowledgeBases) -> KnowledgeBase:
    """Return the knowledge base that was asked."""
    name = run.state.get("kb_prefix", "")
    if not name:
        raise RunError(f"Run {run.run_id} asked no knowledge base: there is no graph around its answer.")
    if name not in bases.names():
        raise KnowledgeError(
            f"Run {run.run_id} asked {name!r}, which this workspace does not have (a run that was imported comes "
            f"without its corpus). Add it with `workbench kb add {name} PATH...`."
        )
    return bases.get(name)


def _next_nodes(checkpoints: Sequence[Checkpoint]) -> list[str]:
    """Return where a run stands, as LangGraph says: the next nodes of the innermost graph that has some."""
    last = {checkpoint.graph: checkpoint for checkpoint in checkpoints}
    newest = max(
        (checkpoint for checkpoint in reversed(last.values()) if checkpoint.next),
        key=lambda checkpoint: checkpoint.at,
        default=None,
    )
    if newest is None:
        return []
    outer = "" if newest.graph == "conversation" else f"{newest.graph}:"
    return [f"{outer}{node}" for node in newest.next]


def _language(run: Recording) -> Any:
    return labels_for(run.message).language


@cache
def _drawable() -> Any:
    """LangGraph's own drawing of the conversation graph, the graphs inside it unfolded."""
    from workbench.graphs.conversation import build_conversation

    return build_conversation().get_graph(xray=True)
