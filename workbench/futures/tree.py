"""The tree of forks: which run was made from which, what was edited in it, and what the tape spared it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from workbench.errors import UnknownRun
from workbench.plans import edit_of, work_seconds
from workbench.records.proposals import JUDGED_BY
from workbench.state import Data, Json
from workbench.views.blocks import Block
from workbench.views.labels import labels_for
from workbench.views.past import tree_blocks
from workbench.views.render import Shown


class Node(TypedDict):
    """One run in the tree.

    ``parent`` is the run that it was made from, ``also`` the others whose tapes answer too (a graft), ``gone`` those of
    them that are no longer here. ``mode`` is ``live`` for a run of its own, or the tape's: ``fork``, ``replay``,
    ``regression``. ``edits`` says in short what was edited; ``saved`` what the tape spared:
    ``saved_calls`` and ``saved_s`` of ``figures.Figures``.
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
    """Runs and what was made of them, each before its own forks, the newest question first.

    Attributes:
        nodes: one a run, in the order of the drawing.
        here: the run from which it is looked at, if it is one.
        workspace: where the runs are, so that what is shown of them can be opened; no part of the data.
    """

    nodes: tuple[Node, ...]
    here: str | None = None
    workspace: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> Json:
        """As JSON: a flat list, in which ``depth`` and ``parent`` say the shape."""
        return json.loads(json.dumps({"document": "workbench.tree/1", "here": self.here, "runs": list(self.nodes)}))

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return the first question."""
        return self.nodes[0]["message"] if self.nodes else ""

    def blocks(self) -> list[Block]:
        """As a table."""
        return tree_blocks(self.nodes, self.here, labels_for(self.message))

    def __repr__(self) -> str:
        return f"<Tree of {len(self.nodes)} runs>"


def tree(rows: Sequence[Data], status: Callable[[str], str], run_id: str | None = None, workspace: Any = None) -> Tree:
    """Return the forest of all runs, or the tree in which one run stands.

    Args:
        rows: of ``RunStore.lineage``, newest first.
        status: says how a run stands of which the row says that it runs.
        run_id: whose tree; None for all.
        workspace: where the runs are.

    Raises:
        UnknownRun: there is no such run.
    """
    known = {row["run_id"]: row for row in rows}
    if run_id is not None and run_id not in known:
        raise UnknownRun(run_id, list(known)[:5])
    place = {one: n for n, one in enumerate(known)}
    above = {one: next(iter(_sources(row)), "") for one, row in known.items()}
    # a run is made from an older one; what says otherwise is no parent, so that there is no circle
    parents = {one: of if place.get(of, -1) > place[one] else None for one, of in above.items()}
    children: dict[str | None, list[str]] = {}
    for one in reversed(known):  # oldest first: siblings stand in the order in which they were made
        children.setdefault(parents[one], []).append(one)
    roots = list(reversed(children.get(None, [])))
    if run_id is not None:
        roots = [run_id]
        while (over := parents[roots[0]]) is not None:
            roots = [over]
    nodes = [_node(known[one], known, depth, status) for one, depth in _walk(roots, children)]
    return Tree(tuple(nodes), run_id, workspace)


def _walk(roots: Sequence[str], children: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, int]]:
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        one, depth = waiting.pop()
        yield one, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(one, ()))]


def _sources(row: Data) -> list[str]:
    return list((row["options"].get("tape") or {}).get("sources", []))


def _node(row: Data, known: Mapping[str, Data], depth: int, status: Callable[[str], str]) -> Node:
    sources = _sources(row)
    origin = known.get(sources[0]) if sources else None
    return Node(
        run_id=row["run_id"],
        parent=sources[0] if sources else None,
        also=sources[1:],
        gone=[source for source in sources if source not in known],
        mode=row["options"]["tape"]["mode"] if sources else "live",
        depth=depth,
        status=status(row["run_id"]) if row["status"] == "running" else row["status"],
        message=row["message"],
        created_at=row["created_at"],
        edits=edits(row, origin) if origin else [],
        saved={"saved_calls": row["steps"] or 0, "saved_s": round(work_seconds(json.loads(row["calls"] or "[]")), 6)},
    )


def edits(row: Data, origin: Data) -> list[Json]:
    """Return what was edited in a run since the one that it was made from: ``{"what", ...}``, one entry an edit."""
    mine, theirs, found = row["options"], origin["options"], list[Json]()
    if row["message"] != origin["message"]:
        found.append({"what": "query", "query": row["message"]})
    if mine.get("plan") and mine["plan"] != theirs.get("plan"):
        found.append({"what": "plan", **edit_of(origin["plan"], mine["plan"])})
    settings, before = mine.get("settings", {}), theirs.get("settings", {})
    if settings != before:
        found.append({"what": "settings", "settings": {k: v for k, v in settings.items() if before.get(k) != v}})
    if list(mine["review"]) != list(theirs["review"]):
        found.append({"what": "review", "review": list(mine["review"])})
    for name in (*JUDGED_BY, "without"):
        if mine.get(name) and mine[name] != theirs.get(name):
            found.append({"what": name, name: mine[name]})
    for name in ("prompts", "replies"):
        now, was = mine.get(name, {}), theirs.get(name, {})
        if differing := sorted(key for key in now if now[key] != was.get(key)):
            found.append({"what": name, name: differing})
    decisions = mine.get("decisions", [])
    if decisions and "review_id" not in decisions[-1]:  # the others are rows of the run that it was made from
        given = decisions[-1]
        at = f"{len(decisions) - 1}-{given['point']}"
        found.append(
            {"what": "decision", "at": at, "action": given["action"], "fields": sorted(given.get("edits", {}))}
        )
    elif mine.get("tape") and len(decisions) < origin["decided"]:
        found.append({"what": "asked_anew", "at": str(len(decisions))})
    return found
