"""How a recorded run is looked at: graph, timeline, documents that it found, and what is not on the tape."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from workbench.parts.record import langgraph_copy
from workbench.parts.record.digests import digest, leaves
from workbench.state import Json, RetrievalResult

if TYPE_CHECKING:
    import pandas

    from workbench.parts.record.run import GraphRun
    from workbench.records.tape import Effect
    from workbench.views.drawing import Drawing

_OUTSIDE: Mapping[str, tuple[str, ...]] = {
    "clock": ("time", "datetime"),
    "chance": ("random", "secrets", "uuid"),
    "environment": ("os",),
    "files": ("pathlib", "io", "shutil", "sqlite3"),
    "network": ("requests", "httpx", "urllib", "http", "aiohttp", "socket"),
}
"""What a node may read besides its state, and the modules through which it does."""
_FILES = ("open",)


def dag(run: GraphRun) -> Drawing:
    """Draw the graph with its subgraphs, and where the run went in it."""
    from workbench.views.graph import graph, walked

    drawable = run.agent._copy.get_graph(xray=True)
    nodes = [effect for effect in run.effects if effect.kind == "node"]
    status = run.status
    current = [nodes[-1].name.rpartition(".")[2]] if nodes and status != "done" else []
    return graph(walked(drawable, map(_entry, nodes), status, current), f"{run.agent.name} {run.run_id}")


def timeline(run: GraphRun) -> Drawing:
    """Draw when nodes ran, and the calls inside them."""
    from workbench.views.timeline import when

    effects = run.effects
    return when(
        [_entry(effect) for effect in effects if effect.kind == "node"],
        [_record(effect) for effect in effects if effect.kind not in ("node", "edge")],  # type: ignore[misc]
        title=f"{run.agent.name} {run.run_id}",
    )


def _entry(effect: Effect) -> Json:
    name = effect.name.rpartition(".")[2]
    return {"node": name, "timestamp": _moment(effect), "duration_ms": 1000 * effect.seconds}


def _record(effect: Effect) -> Json:
    return {
        "step_id": effect.at,
        "attempt": 1,
        "tool": effect.name,
        "status": "completed",
        "started_at": _moment(effect),
        "duration_ms": 1000 * effect.seconds,
        "output_summary": {},
        "sub_steps": [],
        "replayed": effect.replayed,
    }


def _moment(effect: Effect) -> str:
    return datetime.fromtimestamp(effect.started_at, UTC).isoformat()


def cost(run: GraphRun) -> pandas.DataFrame:
    """Return a row for each node: its executions, calls of models, seconds and tokens.

    What a tape answered took nothing here, and is not counted.
    """
    frame = run.to_frame()
    node = frame["at"].str.partition(":")[0].str.rpartition("/")[0].rename("node")
    is_node = frame["kind"].isin(["node", "edge"])
    columns = {"executions": is_node, "model_calls": frame["kind"] == "model", "tokens": frame["tokens"]}
    counted = frame.assign(**columns, seconds=frame["seconds"].where(is_node, 0.0))
    own = counted[frame["source"] == "executed"]
    return own.groupby(node)[["executions", "model_calls", "seconds", "tokens"]].sum().round({"seconds": 3})


# documents


def evidence(run: GraphRun) -> list[RetrievalResult]:
    """Return LangChain documents that tools and nodes gave, in the order in which they came, each once.

    The id is the document's own, its metadata's ``id`` or ``source``, or a digest of its text; the score is its
    metadata's ``score`` or ``relevance_score``, 0 where there is none.
    """
    from langchain_core.documents import Document

    results: dict[str, RetrievalResult] = {}
    for effect in run.effects:
        for document in leaves(effect.value):
            if not isinstance(document, Document):
                continue
            metadata = dict(document.metadata)
            source = str(document.id or metadata.get("id") or metadata.get("source") or digest(document.page_content))
            results.setdefault(
                source,
                RetrievalResult(
                    result_id=source,
                    source_id=source,
                    source_type="chunk",
                    granularity="low_level",
                    score=float(metadata.get("score") or metadata.get("relevance_score") or 0.0),
                    evidence=document.page_content,
                    metadata={"doc_id": source, **metadata, "at": effect.at},
                ),
            )
    return list(results.values())


# what is not on the tape


def unrecorded(run: GraphRun) -> pandas.DataFrame:
    """Return for each node what its code reads besides the state that is not on the tape, and its share of the time.

    It is read off the code: names of modules for clock, chance, environment, files and network. A node is ``opaque``
    where it reads such a thing and none of its calls is on the tape: a fork takes it whole, or executes it whole.
    """
    import pandas

    effects = run.effects
    total = sum(effect.seconds for effect in effects if effect.kind == "node") or 1.0
    calls = {effect.at.partition(":")[0] for effect in effects if effect.kind != "node"}
    rows = []
    for path, node in langgraph_copy.nodes(run.agent._copy):
        own = [effect for effect in effects if effect.kind == "node" and effect.name == path]
        reads = sorted(set(_reads(langgraph_copy.functions(node.runnable))))
        recorded = any(effect.at in calls for effect in own)
        share = round(sum(effect.seconds for effect in own) / total, 3)
        rows.append({"node": path, "reads": reads, "opaque": bool(reads) and not recorded, "share": share})
    return pandas.DataFrame(rows, columns=["node", "reads", "opaque", "share"])


def _reads(functions: Iterable[types.FunctionType]) -> Iterator[str]:
    for function in functions:
        for name in function.__code__.co_names:
            if name in _FILES and name not in function.__globals__:
                yield "files"
            target = function.__globals__.get(name)
            module = target if isinstance(target, types.ModuleType) else getattr(target, "__module__", None)
            top = str(getattr(module, "__name__", module) or "").partition(".")[0]
            if target is os.environ:
                yield "environment"
            yield from (what for what, modules in _OUTSIDE.items() if top in modules)
