"""The past of a run: its checkpoints as a list, and the tree of forks as an indented list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from workbench.state import Data
from workbench.views.comparison import LETTERS
from workbench.views.labels import SIGNS, Labels, milliseconds
from workbench.views.labels.sentences import edits_told, run_edits_told, saved_told
from workbench.views.outline import INSET, Block, Lines, Table, clipped, columns, one_line
from workbench.views.page import Picture, cut, draw
from workbench.views.render import page_html

MOST_SHOWN = 400
_VALUE = 1_200
_NODES = ("route", "recall", "planner", "executor", "persist")
"""Nodes that have a word of their own."""


@dataclass(frozen=True)
class Row:
    """One moment of a run.

    Attributes:
        key: a checkpoint's id, or a review point's.
        decision: the review point that was decided here; a fork from here decides it again.
        name: what it is, in a word or two.
        told: what happened, in a line.
        status: its sign.
        said: a person's own words.
        side: at the right: how long it took, or that it was recorded.
        notable: it is shown when not all are.
    """

    key: str
    name: str
    told: str
    status: str = "done"
    said: str = ""
    side: str = ""
    notable: bool = True
    decision: str = ""


def rows_of(document: Data, found: Sequence[Data], labels: Labels) -> list[Row]:
    """Return the rows of checkpoints (``Checkpoint.to_dict()``), or without them those of the decisions.

    Args:
        document: of the run.
        found: its checkpoints, oldest first; empty when they were let go.
        labels: the words.
    """
    if not found:
        return [_decided(decision["review_id"], decision, labels) for decision in document["decisions"]]
    rows, waves = list[Row](), 0
    for one in found:
        waves += one["graph"] == "retrieval" and "executor" in one["ran"]
        rows.append(_row(one, document, waves, labels))
    return rows


def _row(one: Data, document: Data, wave: int, labels: Labels) -> Row:
    """Return a checkpoint: by the decision that it took, the point at which it asks, or the node that led to it."""
    key, ran = one["id"], one["ran"]
    changes = {change["key"]: change for change in one["changes"] or ()}
    decisions = {decision["review_id"]: decision for decision in document["decisions"]}
    inner = ran if one["graph"] == "retrieval" else ()

    def added(name: str) -> list[str]:
        return changes.get(name, {}).get("added", [])

    if inner and (made := added("decisions")) and made[-1] in decisions:
        return _decided(key, decisions[made[-1]], labels)
    if one["asks"] and one["asks"] not in decisions:
        return Row(key, labels("point_" + one["asks"].partition("-")[2]), labels("past_asks"), "paused")
    if "executor" in inner:
        return _wave(key, added("records"), document, wave, labels)
    counted = document["figures"]
    if "planner" in inner and (plan := changes.get("plan")):
        steps = labels("steps", n=len(plan["added"]) + len(plan["changed"]))
        return Row(key, labels("node_planner"), labels("past_plan", version=plan["after"], steps=f"+{steps}"))
    if "reflector" in inner:
        return Row(key, labels("node_reflector"), _judged(added("reflections"), document, labels))
    if "merger" in inner:
        merged = labels("past_merged", found=counted["found"], kept=counted["evidence"])
        return Row(key, labels("node_merger"), merged)
    if one["graph"] == "conversation" and "generate" in ran:
        answered = labels("past_answered", n=len(document["answer"] or ""), cited=counted["cited"])
        return Row(key, labels("node_generate"), answered)
    names = [labels(f"node_{name}") if name in _NODES else str(name) for name in dict.fromkeys(ran)]
    words = labels("past_node", node=labels("comma").join(names)) if names else labels("past_input")
    return Row(key, one["graph"], words, "pending", notable=False)


def _decided(key: str, decision: Data, labels: Labels) -> Row:
    who, what = decision["who"], labels("did_" + decision["action"])
    words = labels("past_by_you", what=what) if who == "person" else labels("past_by", what=what, who=who)
    edits = [cut(words, 120) for words in edits_told(decision["edits"], decision["proposal"], labels)]
    said = " · ".join(filter(None, (decision["message"], decision["note"])))
    name = labels("past_decision", point=labels("point_" + decision["point"]))
    words += f"{labels('colon')}{labels('comma').join(edits)}" if edits else ""
    return Row(key, name, words, "paused", said, decision=decision["review_id"])


def _wave(key: str, names: Sequence[str], document: Data, wave: int, labels: Labels) -> Row:
    records = {f"{record['step_id']}/{record['attempt']}": record for record in document["records"]}
    made = [records[name] for name in names if name in records]
    found = sum(record["output_summary"]["evidence_count"] for record in made)
    steps = labels("comma").join([record["step_id"] for record in made][:3] or names[:3])
    steps += f" +{len(names) - 3}" if len(names) > 3 else ""
    taped = bool(made) and all(record.get("replayed") for record in made)
    bad = next((r["status"] for r in made if r["status"] in ("failed", "timeout")), "recorded" if taped else "done")
    span = milliseconds(max((record["duration_ms"] for record in made), default=0))
    side = labels("past_recorded") if taped else span
    return Row(key, labels("past_wave", n=wave), labels("past_found", n=found, steps=steps), bad, side=side)


def _judged(names: Sequence[str], document: Data, labels: Labels) -> str:
    for made in document["reflections"]:
        if str(made["current_iteration"]) in names:
            word = labels("past_judged_on" if made["should_continue"] else "past_judged_stop")
            return f"{word} · {made['reasoning']}"
    return labels("past_node", node=labels("node_reflector"))


def checkpoints(
    rows: Sequence[Row], labels: Labels, *, chosen: str = "", every: bool = False, pruned: bool = False
) -> Picture:
    """Return the list.

    Args:
        rows: what ``rows_of`` gave.
        labels: the words.
        chosen: the key of the row that is looked at.
        every: show the inner checkpoints too.
        pruned: there are only decisions left.
    """
    shown = [row for row in rows if every or row.notable][:MOST_SHOWN]
    more = len(rows) if len(rows) > len(shown) or every else 0
    frame = draw("past.checkpoints", labels, shown=len(shown), more=more, every=every, pruned=pruned)
    drawn = {row.key: draw("past.checkpoint", labels, row=row, chosen=row.key == chosen) for row in shown}
    return Picture(frame, drawn)


def looked_at(
    row: Row, one: Data | None, values: Data, labels: Labels, *, review: str, ask: Sequence[str] = ()
) -> Markup:
    """Return one moment, looked at: what changed, the state, and the fork from it.

    Args:
        row: the row.
        one: its checkpoint; None when only the decision is left.
        values: the state as it stood.
        labels: the words.
        review: the review point that comes after it; empty when none does.
        ask: review points at which a fork may ask where no one was asked.
    """
    number, _, point = review.partition("-")
    tables = list[Table]()
    if one:
        if one["changes"]:
            rows = [(change["key"], "\n".join(_became(change))) for change in one["changes"]]
            tables.append(clipped(labels("past_changes"), columns(labels, ":code", "changes:change"), rows))
        cells = tuple((name, cut(value, _VALUE)) for name, value in sorted(values.items()))
        tables.append(Table(labels("past_values"), columns(labels, ":code", ""), cells, opened=False))
    look = {"row": row, "one": one, "fork": f"{labels('point_' + point)} {number}" if point else number, "ask": ask}
    html = Markup(page_html(tables, labels, "wb-worked")) if tables else ""
    return draw("past.moment", labels, tables=html, **look)


def _became(change: Data) -> Iterator[str]:
    before, after = change.get("before", ""), change.get("after", "")
    if before or after:
        yield f"{before} → {after}" if before else str(after)
    for sign, kind in (("+", "added"), ("~", "changed"), ("−", "removed")):
        if names := change.get(kind):
            yield f"{sign} {', '.join(names[:12])}" + (f" +{len(names) - 12}" if len(names) > 12 else "")


def past_blocks(document: Data, found: Sequence[Data], labels: Labels) -> list[Block]:
    """Return a table of checkpoints: the id that a fork takes, what it is, what happened."""
    rows = []
    for n, (one, row) in enumerate(zip(found, rows_of(document, found, labels), strict=False), 1):
        pruned = labels("let_go") if one["changes"] is None else ""
        words = " · ".join(filter(None, (row.told, row.side, pruned)))
        rows.append((str(n), one["id"][:18], row.name, SIGNS.get(row.status, "·"), words))
    head = Lines([(document["message"], "strong"), [(labels("run") + " ", "dim"), (document["run_id"], "code")]])
    heads = columns(labels, ":number", "checkpoint:code:whole", "node::whole", ":status", "changes")
    return [head, clipped(labels("checkpoints", n=len(rows)), heads, rows)]


# the tree of forks

MOST_RUNS = 200
"""Runs that are shown."""
DEEPEST = 12
"""Levels of the tree that are drawn as levels."""


def forks(tree: Data, labels: Labels, marked: Sequence[str] = ()) -> Picture:
    """Return the runs of a tree (``Tree.to_dict()``), a row each.

    Args:
        tree: the document of the tree.
        labels: the words.
        marked: the runs to be compared, in their order.
    """
    nodes, letters = tree["runs"], dict(zip(marked, LETTERS, strict=False))
    rows = {}
    for node in nodes[:MOST_RUNS]:
        run_id = node["run_id"]
        words = {"made": _made(node, labels), "saved": _saved(node, labels), "told": _told(node, labels)}
        words["letter"] = letters.get(run_id, "")
        place = {"here": run_id == tree["here"], "depth": min(node["depth"], DEEPEST)}
        rows[run_id] = draw("past.run", labels, node=node, **place, **words)
    shown = {"counted": _count(nodes, labels), "letters": [*letters.values()], "left": len(nodes) - len(rows)}
    return Picture(draw("past.forks", labels, tree=tree, **shown), rows)


def tree_blocks(nodes: Sequence[Data], here: str | None, labels: Labels) -> list[Block]:
    """Return a table of runs, each before its own forks."""
    rows = []
    for node in nodes[:MOST_RUNS]:
        depth, made, parent = node["depth"], _told(node, labels), node["parent"]
        place = f"{INSET * (min(depth, DEEPEST) - 1)}└ " if depth else ""
        place += f"[{depth}] " if depth > DEEPEST else ""
        made = " · ".join([_made(node, labels), made]) if parent else made
        subject = cut(f"{'▸ ' if node['run_id'] == here else ''}{made}", 200)
        status, saved = labels.status(node["status"]), _saved(node, labels) if parent else ""
        rows.append((place + node["run_id"], status, subject, saved))
    heads = columns(labels, "run:code", "status:status", "made_by", "saved")
    left = len(nodes) - len(rows)
    return [clipped(_count(nodes, labels), heads, rows, notes=[labels("and_more", n=left)] if left else [])]


def _count(nodes: Sequence[Data], labels: Labels) -> str:
    return labels("forks_count", n=len(nodes), forks=sum(node["parent"] is not None for node in nodes))


def _saved(node: Data, labels: Labels) -> str:
    return saved_told(node["saved"], labels) if node["saved"]["saved_calls"] else ""


def _made(node: Data, labels: Labels) -> str:
    """Return how a run came to be."""
    if node["parent"] is None:
        return labels("forks_first")
    if node["also"]:
        return labels("graft")
    at = next((edit["at"] for edit in node["edits"] if edit["what"] == "decision"), None)
    if node["mode"] == "fork" and at:
        return labels("forks_fork_at", point=labels("point_" + at.partition("-")[2]))
    return labels(node["mode"])


def _told(node: Data, labels: Labels) -> str:
    """Return the question of an original run; of one that was made from another what was edited."""
    edits = "" if node["parent"] is None else " · ".join(run_edits_told(node, labels))
    return edits or one_line(node["message"])
