"""The tree of forks: which run was made from which, what was edited in it, and what its tape saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from workbench.errors import UnknownRun
from workbench.plans import plan_edit, work_seconds
from workbench.records.proposals import JUDGED_BY
from workbench.settings import flatten_settings
from workbench.state import Data, Json
from workbench.views.blocks import Block
from workbench.views.labels import labels_for
from workbench.views.past import tree_blocks
from workbench.views.render import Shown


class Node(TypedDict):
    """One run in the tree.

    ``parent`` is the run that it was made from, ``also`` further runs whose tapes answer (a graft), ``gone`` those of
    them that were removed. ``mode`` is ``live`` without a parent, or the tape's: ``fork``, ``replay``, ``regression``.
    ``edits`` lists what was edited, ``saved`` what came from the tape: ``saved_calls`` and ``saved_s`` of
    ``figures.Figures``.
    """

    run_id: str
    parent: str | None
    also: list[str]
    gone: list[str]
    mode: str
    depth: int
    status: str
    message: str
    created_at: str
    edits: list[Json]
    saved: dict[str, float]


@dataclass(frozen=True)
class Tree(Shown):
    """Runs with their forks, each before its own forks, the newest question first.

    Attributes:
        nodes: one per run, in the order of the drawing.
        here: the run whose tree it is; None for the forest of all runs.
    """

    nodes: tuple[Node, ...]
    here: str | None = None

    def to_dict(self) -> Json:
        """Return the tree as JSON: a flat list, in which ``depth`` and ``parent`` give the shape."""
        return json.loads(json.dumps({"document": "workbench.tree/1", "here": self.here, "runs": list(self.nodes)}))

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first question."""
        return self.nodes[0]["message"] if self.nodes else ""

    def blocks(self) -> list[Block]:
        """Return the tree as a table."""
        return tree_blocks(self.nodes, self.here, labels_for(self.message))

    def __repr__(self) -> str:
        return f"<Tree of {len(self.nodes)} runs>"


def tree(rows: Sequence[Data], status: Callable[[str], str], run_id: str | None = None) -> Tree:
    """Return the forest of all runs, or the tree of one run.

    Args:
        rows: of ``RunStore.lineage``, newest first.
        status: returns the status of a run whose row says that it runs.
        run_id: whose tree; None for all runs.

    Raises:
        UnknownRun: there is no such run.
    """
    rows_by_id = {row["run_id"]: row for row in rows}
    if run_id is not None and run_id not in rows_by_id:
        raise UnknownRun(run_id, list(rows_by_id)[:5])
    position = {row_id: number for number, row_id in enumerate(rows_by_id)}
    parents, children = dict[str, str | None](), dict[str | None, list[str]]()
    for row_id, row in reversed(rows_by_id.items()):  # oldest first: siblings in the order in which they were made
        parent = next(iter(_sources(row)), "")
        # a run is made from an older one; a row that says otherwise has no parent, so that there is no cycle
        parents[row_id] = parent if position.get(parent, -1) > position[row_id] else None
        children.setdefault(parents[row_id], []).append(row_id)
    roots = children.get(None, [])
    if run_id is not None:
        root = run_id
        while (parent_id := parents[root]) is not None:
            root = parent_id
        roots = [root]
    nodes, waiting = list[Node](), [(root, 0) for root in roots]
    while waiting:
        row_id, depth = waiting.pop()
        nodes.append(_node(rows_by_id[row_id], rows_by_id, depth, status))
        waiting += [(child, depth + 1) for child in reversed(children.get(row_id, []))]
    return Tree(tuple(nodes), run_id)


def _sources(row: Data) -> list[str]:
    return list((row["options"].get("tape") or {}).get("sources", []))


def _node(row: Data, rows_by_id: Mapping[str, Data], depth: int, status: Callable[[str], str]) -> Node:
    sources = _sources(row)
    origin = rows_by_id.get(sources[0]) if sources else None
    return Node(
        run_id=row["run_id"],
        parent=sources[0] if sources else None,
        also=sources[1:],
        gone=[source for source in sources if source not in rows_by_id],
        mode=row["options"]["tape"]["mode"] if sources else "live",
        depth=depth,
        status=status(row["run_id"]) if row["status"] == "running" else row["status"],
        message=row["message"],
        created_at=row["created_at"],
        edits=edits(row, origin) if origin else [],
        saved={"saved_calls": row["steps"] or 0, "saved_s": round(work_seconds(json.loads(row["calls"] or "[]")), 6)},
    )


def edits(row: Data, origin: Data) -> list[Json]:
    """Return what was edited in a run since the run that it was made from: ``{"what", ...}``, one entry per edit."""
    new, old, changes = row["options"], origin["options"], list[Json]()
    if row["message"] != origin["message"]:
        changes.append({"what": "query", "query": row["message"]})
    if new.get("plan") and new["plan"] != old.get("plan"):
        changes.append({"what": "plan", **plan_edit(origin["plan"], new["plan"])})
    settings, before = (flatten_settings(options.get("settings", {})) for options in (new, old))
    if settings != before:
        changes.append({"what": "settings", "settings": {k: v for k, v in settings.items() if before.get(k) != v}})
    review = list(new.get("review", []))
    if review != list(old.get("review", [])):
        changes.append({"what": "review", "review": review})
    for name in (*JUDGED_BY, "without"):
        if new.get(name) and new[name] != old.get(name):
            changes.append({"what": name, name: new[name]})
    for name in ("prompts", "results"):
        values, before = new.get(name, {}), old.get(name, {})
        if changed := sorted(key for key in values if values[key] != before.get(key)):
            changes.append({"what": name, name: changed})
    decisions = new.get("decisions", [])
    if decisions and "review_id" not in decisions[-1]:  # the earlier ones are rows of the run that it was made from
        last = decisions[-1]
        at, fields = f"{len(decisions) - 1}-{last['point']}", sorted(last.get("edits", {}))
        changes.append({"what": "decision", "at": at, "action": last["action"], "fields": fields})
    elif new.get("tape") and len(decisions) < origin["decided"]:
        changes.append({"what": "asked_anew", "at": str(len(decisions))})
    return changes
