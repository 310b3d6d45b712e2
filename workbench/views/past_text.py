"""The checkpoints of a run, and the tree of forks, as tables for text and static HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.views.labels import Labels
from workbench.views.labels.sentences import run_edits_told, saved_told
from workbench.views.outline import Block, Lines, clipped, columns

DEEPEST = 12
"""Levels of the tree that are drawn as levels."""
_SHORT = 18
"""Characters of an id that are shown: they hold its whole time."""
_MOST_CHANGES = 6


def past_blocks(run_id: str, message: str, found: Iterable[Mapping[str, Any]], labels: Labels) -> list[Block]:
    """A table of checkpoints: what ran, what comes next, what changed."""
    rows = [
        (
            str(n),
            one["id"][:_SHORT],
            f"{one['graph']} {one['step']}",
            _counted(one["ran"]) or "—",
            one["asks"] or _counted(one["next"]) or "—",
            str(one["decided"]),
            labels("let_go") if one["changes"] is None else _told(one["changes"]),
        )
        for n, one in enumerate(found, 1)
    ]
    names = (":number", "checkpoint:code:whole", "graph::whole", "node", "next", "decided:number", "changes")
    head = Lines((((message, "strong"),), ((labels("run") + " ", "dim"), (run_id, "code"))))
    return [head, clipped(labels("checkpoints", n=len(rows)), columns(labels, *names), rows)]


def _counted(names: Sequence[str]) -> str:
    return ", ".join(f"{name} ×{names.count(name)}" if names.count(name) > 1 else name for name in dict.fromkeys(names))


def _told(changes: Iterable[Mapping[str, Any]]) -> str:
    """The changes in short: lists by what was added to them, all else by name."""
    told = []
    for change in changes:
        named = (("+", change.get("added", [])), ("~", change.get("changed", [])), ("−", change.get("removed", [])))
        entries = [f"{sign}{name}" for sign, names in named for name in names]
        told.append(f"{change['key']} {' '.join(entries)}" if entries else change["key"])
    return ", ".join(told[:_MOST_CHANGES]) + (f" +{len(told) - _MOST_CHANGES}" if len(told) > _MOST_CHANGES else "")


def tree_blocks(nodes: Sequence[Mapping[str, Any]], here: str | None, labels: Labels, most: int) -> list[Block]:
    """A table of runs, at most so many: each before its own forks, with what was edited and what the tape spared."""
    rows = [
        (_drawn(node), labels.status(node["status"]), _subject(node, labels, here), _saved(node, labels))
        for node in nodes[:most]
    ]
    heads = columns(labels, "run:code", "status:status", "made_by", "saved")
    left = len(nodes) - len(rows)
    title = labels("forks_count", n=len(nodes), forks=sum(node["parent"] is not None for node in nodes))
    return [clipped(title, heads, rows, notes=[labels("and_more", n=left)] if left else [])]


def _drawn(node: Mapping[str, Any]) -> str:
    depth = node["depth"]
    deep = f"[{depth}] " if depth > DEEPEST else ""
    return ("\u00a0\u00a0" * (min(depth, DEEPEST) - 1) + "└ " if depth else "") + deep + node["run_id"]


def _subject(node: Mapping[str, Any], labels: Labels, here: str | None) -> str:
    """The question of a run of its own; of one that was made from another, how and what was edited."""
    marked = "▸ " if node["run_id"] == here else ""
    if node["parent"] is None:
        return marked + " ".join(node["message"].split())[:200]
    made = labels("graft" if node["also"] else node["mode"])
    return marked + " · ".join([made, *run_edits_told(node, labels)])


def _saved(node: Mapping[str, Any], labels: Labels) -> str:
    if node["parent"] is None or not node["saved"]["saved_calls"]:
        return ""
    return saved_told(node["saved"], labels)
