"""The past of a run: its checkpoints as a list, and the tree of its forks as an indented list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from workbench.state import Data
from workbench.views.blocks import INSET, Block, Lines, clipped, columns, one_line
from workbench.views.labels import SIGNS, Labels
from workbench.views.labels.sentences import decision_name, edit_texts, run_edit_texts, savings_text
from workbench.views.markup import Picture, cut, draw

_NOTABLE = {"planner", "executor", "reflector", "merger", "generate"}
_NODES = {"route", "recall", "persist"} | _NOTABLE
"""Nodes that have a label."""


@dataclass(frozen=True)
class Row:
    """A checkpoint in a list.

    Attributes:
        key: the id of the checkpoint.
        name: its name, in a word or two.
        text: what happened, in a line.
        status: its sign.
        notable: whether the bench lists it.
        decision: the review point that was decided here; a fork from here decides it again.
    """

    key: str
    name: str
    text: str
    status: str = "done"
    notable: bool = True
    decision: str = ""


def past_rows(document: Data, checkpoints: Sequence[Data], labels: Labels) -> list[Row]:
    """Return the rows of checkpoints (``Checkpoint.to_dict()``), oldest first."""
    decisions = {decision["review_id"]: decision for decision in document["decisions"]}
    judgements = {str(reflection["current_iteration"]): reflection for reflection in document["reflections"]}
    return [_row(checkpoint, decisions, judgements, labels) for checkpoint in checkpoints]


def _row(checkpoint: Data, decisions: Mapping[str, Data], judgements: Mapping[str, Data], labels: Labels) -> Row:
    """Return the row of a checkpoint: of its decision, its question, or the nodes that led to it."""
    key, ran, asks, inner = checkpoint["id"], checkpoint["ran"], checkpoint["asks"], checkpoint["graph"] == "retrieval"
    changes = checkpoint["changes"] or ()
    added = {change["key"]: change.get("added", []) for change in changes}
    decided = [decisions[review_id] for review_id in added.get("decisions", ()) if review_id in decisions]
    if inner and decided:
        return _decision_row(key, decided[-1], labels)
    if asks and asks not in decisions:
        return Row(key, labels("point_" + asks.partition("-")[2]), labels("past_asks"), "paused")
    names = [labels(f"node_{name}") if name in _NODES else str(name) for name in dict.fromkeys(ran)]
    judged = [judgements[number] for number in added.get("reflections", ()) if number in judgements]
    text = " · ".join(line for change in changes for line in _entry_lines(change))
    for reflection in judged:
        verdict = labels("past_judged_on" if reflection["should_continue"] else "past_judged_stop")
        text = f"{verdict} · {reflection['reasoning']}"
    name = labels("comma").join(names) or labels("past_input")
    notable = bool({*ran} & _NOTABLE)
    return Row(key, name, cut(text, 200), "done" if ran else "pending", notable)


def _decision_row(key: str, decision: Data, labels: Labels) -> Row:
    who, action = decision["who"], labels("did_" + decision["action"])
    text = labels("past_by_you", what=action) if who == "person" else labels("past_by", what=action, who=who)
    edits = [cut(words, 120) for words in edit_texts(decision["edits"], decision["proposal"], labels)]
    text += f"{labels('colon')}{labels('comma').join(edits)}" if edits else ""
    remarks = "".join(f" “{words}”" for words in (decision["message"], decision["note"]) if words)
    name = labels("past_decision", point=labels("point_" + decision["point"]))
    return Row(key, name, text + remarks, "paused", decision=decision["review_id"])


def checkpoint_list(rows: Sequence[Row], labels: Labels, reviews: Mapping[str, str]) -> Picture:
    """Return the notable checkpoints; ``reviews`` has the review point that a fork from each comes to, by key."""
    shown = {row.key: _listed(row, labels, reviews.get(row.key, "")) for row in rows if row.notable}
    return Picture(draw("past.checkpoints", labels, shown=len(shown)), shown)


def _listed(row: Row, labels: Labels, review: str) -> Markup:
    return draw("past.checkpoint", labels, row=row, fork=decision_name(review, labels) if review else "")


def _entry_lines(change: Data) -> Iterator[str]:
    """Yield which entries of a list were added, changed and removed."""
    for sign, kind in (("+", "added"), ("~", "changed"), ("−", "removed")):
        if names := change.get(kind):
            yield f"{sign} {', '.join(names[:12])}" + (f" +{len(names) - 12}" if len(names) > 12 else "")


def past_blocks(document: Data, checkpoints: Sequence[Data], labels: Labels) -> list[Block]:
    """Return a table of checkpoints: the id that a fork takes, the name, and what happened."""
    rows = []
    pairs = zip(checkpoints, past_rows(document, checkpoints, labels), strict=False)
    for n, (checkpoint, row) in enumerate(pairs, 1):
        pruned = labels("let_go") if checkpoint["changes"] is None else ""
        text = " · ".join(filter(None, (row.text, pruned)))
        rows.append((str(n), checkpoint["id"][:18], row.name, SIGNS.get(row.status, "·"), text))
    head = Lines([(document["message"], "strong"), [(labels("run") + " ", "dim"), (document["run_id"], "code")]])
    heads = columns(labels, ":number", "checkpoint:code:whole", "node::whole", ":status", "changes")
    return [head, clipped(labels("checkpoints", n=len(rows)), heads, rows)]


# the tree of forks

MOST_RUNS = 200
"""Runs that are shown."""
DEEPEST = 12
"""Levels of the tree that are indented."""


def tree_blocks(nodes: Sequence[Data], current: str | None, labels: Labels) -> list[Block]:
    """Return a table of runs, each before its own forks."""
    rows = []
    for node in nodes[:MOST_RUNS]:
        inset, here = INSET * min(node["depth"], DEEPEST), "▸ " if node["run_id"] == current else ""
        made_by, saved = one_line(node["message"]), ""
        if node["parent"]:
            made_by = " · ".join(run_edit_texts(node, labels)) or labels(node["mode"])
            saved = savings_text(node["saved"], labels) if node["saved"]["saved_calls"] else ""
        rows.append((inset + node["run_id"], labels.status(node["status"]), cut(here + made_by, 200), saved))
    heads = columns(labels, "run:code", "status:status", "made_by", "saved")
    forks = sum(node["parent"] is not None for node in nodes)
    notes = [labels("and_more", n=len(nodes) - len(rows))] if len(nodes) > len(rows) else []
    return [clipped(labels("forks_count", n=len(nodes), forks=forks), heads, rows, notes=notes)]
