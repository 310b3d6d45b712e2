"""The past of a run: its checkpoints as a list, and the tree of forks as an indented list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.views.comparison import LETTERS
from workbench.views.labels import SIGNS, Labels, milliseconds
from workbench.views.labels.sentences import edits_told, run_edits_told, saved_told
from workbench.views.outline import Block, Lines, Table, clipped, columns
from workbench.views.page import (
    Data,
    Markup,
    Picture,
    badge,
    button,
    closed,
    code,
    cut,
    el,
    family,
    glyph,
    joined,
    opened,
)
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
    """The rows of checkpoints (``Checkpoint.to_dict()``), or without them those of the decisions.

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
    """A checkpoint: by the decision that it took, the point at which it asks, or the node that led to it."""
    key = one["id"]
    changes = {change["key"]: change for change in one["changes"] or ()}
    decisions = {decision["review_id"]: decision for decision in document["decisions"]}
    inner = set(one["ran"]) if one["graph"] == "retrieval" else set()
    if inner and (made := _added(changes, "decisions")) and made[-1] in decisions:
        return _decided(key, decisions[made[-1]], labels)
    if one["asks"] and one["asks"] not in decisions:
        return Row(key, labels("point_" + one["asks"].partition("-")[2]), labels("past_asks"), "paused")
    if "executor" in inner:
        return _wave(key, _added(changes, "records"), document, wave, labels)
    node, told, counted = "", "", document["figures"]
    if "planner" in inner and (plan := changes.get("plan")):
        steps = labels("steps", n=len(plan["added"]) + len(plan["changed"]))
        node, told = "planner", labels("past_plan", version=plan["after"], steps=f"+{steps}")
    elif "reflector" in inner:
        node, told = "reflector", _judged(_added(changes, "reflections"), document, labels)
    elif "merger" in inner:
        node, told = "merger", labels("past_merged", found=counted["found"], kept=counted["evidence"])
    elif one["graph"] == "conversation" and "generate" in one["ran"]:
        node, told = "generate", labels("past_answered", n=len(document["answer"] or ""), cited=counted["cited"])
    if node:
        return Row(key, labels(f"node_{node}"), told)
    names = [labels(f"node_{name}") if name in _NODES else str(name) for name in dict.fromkeys(one["ran"])]
    told = labels("past_node", node=labels("comma").join(names)) if names else labels("past_input")
    return Row(key, one["graph"], told, "pending", notable=False)


def _added(changes: Data, key: str) -> list[str]:
    return changes.get(key, {}).get("added", [])


def _decided(key: str, decision: Data, labels: Labels) -> Row:
    who, what = decision["who"], labels("did_" + decision["action"])
    told = labels("past_by_you", what=what) if who == "person" else labels("past_by", what=what, who=who)
    edits = [cut(told, 120) for told in edits_told(decision["edits"], decision["proposal"], labels)]
    said = " · ".join(text for text in (decision["message"], decision["note"]) if text)
    name = labels("past_decision", point=labels("point_" + decision["point"]))
    told += f"{labels('colon')}{labels('comma').join(edits)}" if edits else ""
    return Row(key, name, told, "paused", said, decision=decision["review_id"])


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
    made = next((r for r in document["reflections"] if str(r["current_iteration"]) in names), None)
    if not made:
        return labels("past_node", node=labels("node_reflector"))
    return f"{labels('past_judged_on' if made['should_continue'] else 'past_judged_stop')} · {made['reasoning']}"


def checkpoints(
    rows: Sequence[Row], labels: Labels, *, chosen: str = "", every: bool = False, pruned: bool = False
) -> Picture:
    """The list.

    Args:
        rows: what ``rows_of`` gave.
        labels: the words.
        chosen: the key of the row that is looked at.
        every: show the inner checkpoints too.
        pruned: there are only decisions left.
    """
    shown = [row for row in rows if every or row.notable][:MOST_SHOWN]
    counted = el("span.wb-dim", labels("past_count", n=len(shown))) if shown else None
    more = None
    if len(rows) > len(shown) or every:
        more = button(labels("past_every", n=len(rows)), "every", cls="wb-switch", role="switch", aria_checked=every)
    title = el("h3.wb-title", labels("past"), " ", counted)
    bar = el("div.wb-bar", title, el("span.wb-push"), more)
    note = el("div.wb-dim", labels("past_pruned")) if pruned else ""
    if not shown:
        return Picture(el("section.wb-part", bar, note or el("div.wb-dim", labels("past_none"))))
    drawn = {row.key: _drawn(row, row.key == chosen, labels) for row in shown}
    listing = opened("div.wb-list.wb-past", role="listbox", aria_label=labels("past"), data_scroll="past")
    return Picture(Markup(opened("section.wb-part") + bar + note + listing), drawn, closed("div", "section"))


def _drawn(row: Row, chosen: bool, labels: Labels) -> Markup:
    said = el("div.wb-dim.wb-lines", f"“{row.said}”") if row.said else None
    return el(
        "div.wb-row.wb-past-row" if row.notable else "div.wb-row.wb-past-row.wb-past-inner",
        el("span.wb-past-name", row.name),
        glyph(row.status, labels),
        el("div.wb-main", el("div.wb-lines", row.told), said),
        el("span.wb-side.wb-dim", row.side),
        role="option",
        aria_selected=chosen,
        data_key=row.key,
    )


def looked_at(
    row: Row,
    one: Data | None,
    values: Data,
    labels: Labels,
    *,
    review: str,
    ask: Sequence[str] = (),
) -> Markup:
    """One moment, looked at: what changed, the state, and the fork from it.

    Args:
        row: the row.
        one: its checkpoint; None when only the decision is left.
        values: the state as it stood.
        labels: the words.
        review: the review point that comes after it; empty when none does.
        ask: review points at which a fork may ask where nobody was asked.
    """
    told = None
    if one:
        when = one["at"][:19].replace("T", " ")
        words = {"id": one["id"][:18], "graph": one["graph"], "step": one["step"], "at": when}
        told = el("div.wb-dim", labels("past_input_step", **words))
    head = el("h3.wb-title.wb-lines", f"{row.name} · {row.told}")
    parts = [_forking(row.key, review, ask, labels)]
    if one:
        parts += [_changed(one["changes"], labels), _state(values, labels)]
    return el("section.wb-part.wb-past-look", head, told, parts, aria_label=labels("past_changes"))


def _forking(key: str, review: str, ask: Sequence[str], labels: Labels) -> Markup:
    if review:
        number, _, point = review.partition("-")
        told = labels("past_fork_told", point=f"{labels('point_' + point)} {number}" if point else number)
        go = button(labels("past_fork"), "fork", key=key, cls="wb-primary")
        return el("div.wb-bar", go, el("span.wb-dim", told))
    if not ask:
        return el("div.wb-dim", labels("past_no_review"))
    words = {point: labels("past_fork_ask", point=labels(f"point_{point}")) for point in ask}
    return el("div.wb-bar", [button(word, f"fork:{point}", key=key) for point, word in words.items()])


def _changed(changes: Sequence[Data] | None, labels: Labels) -> Markup:
    if not changes:
        return el("div.wb-dim", labels("past_unchanged" if changes is not None else "let_go"))
    rows = [(change["key"], "\n".join(_became(change))) for change in changes]
    table = clipped(labels("past_changes"), columns(labels, ":code", "changes:change"), rows)
    return Markup(page_html([table], labels, "wb-worked"))


def _became(change: Data) -> Iterator[str]:
    before, after = change.get("before", ""), change.get("after", "")
    if before or after:
        yield f"{before} → {after}" if before else str(after)
    for sign, kind in (("+", "added"), ("~", "changed"), ("−", "removed")):
        if names := change.get(kind):
            yield f"{sign} {', '.join(names[:12])}" + (f" +{len(names) - 12}" if len(names) > 12 else "")


def _state(values: Data, labels: Labels) -> Markup:
    rows = tuple((name, cut(value, _VALUE)) for name, value in sorted(values.items()))
    table = Table(labels("past_values"), columns(labels, ":code", ""), rows, opened=False)
    return Markup(page_html([table], labels, "wb-worked"))


# the tree of forks

MOST_RUNS = 200
"""Runs that are shown."""
DEEPEST = 12
"""Levels of the tree that are drawn as levels."""


def forks(tree: Data, labels: Labels, marked: Sequence[str] = ()) -> Picture:
    """The runs of a tree (``Tree.to_dict()``), a row each.

    Args:
        tree: the document of the tree.
        labels: the words.
        marked: the runs to be compared, in their order.
    """
    nodes, here = tree["runs"], tree["here"]
    if not nodes:
        return Picture(el("div.wb-dim.wb-part", labels("forks_none")))
    rows = {node["run_id"]: _run_row(node, labels, here == node["run_id"], marked) for node in nodes[:MOST_RUNS]}
    left = len(nodes) - len(rows)
    more = el("div.wb-dim", labels("and_more", n=left)) if left else None
    title = labels("forks") if here is None else labels("forks_of", run=nodes[0]["run_id"])
    counted = el("h3.wb-title", title, " ", el("span.wb-dim", _count(nodes, labels)))
    head = el("div.wb-bar", counted, el("span.wb-push"), _comparing(marked, len(nodes), labels))
    listed = opened("div.wb-list", role="tree", aria_label=labels("forks"))
    return Picture(
        joined([opened("section.wb-part"), head, listed]), rows, joined([closed("div"), more, closed("section")])
    )


def _count(nodes: Sequence[Data], labels: Labels) -> str:
    return labels("forks_count", n=len(nodes), forks=sum(node["parent"] is not None for node in nodes))


def _comparing(marked: Sequence[str], there: int, labels: Labels) -> Markup:
    letters = labels("comma").join(LETTERS[: len(marked)])
    if len(marked) >= 2:
        return button(labels("forks_compare", letters=letters), "compare", cls="wb-primary")
    one = labels("forks_only") if there < 2 else labels("forks_choose")
    return el("span.wb-dim", labels("forks_choose_more", letter=letters) if marked else one)


def _run_row(node: Data, labels: Labels, here: bool, marked: Sequence[str]) -> Markup:
    run_id, saved, status = node["run_id"], node["saved"], node["status"]
    head = [
        el("span.wb-strong.wb-run-id", run_id),
        code(_made(node, labels)),
        badge("recorded", saved_told(saved, labels), labels) if saved["saved_calls"] else None,
        el("span.wb-ink.wb-run", labels("forks_here")) if here else None,
    ]
    when = str(node["created_at"])[5:16].replace("T", " ")
    return el(
        "div.wb-row.wb-fork",
        el("span.wb-fork-status", glyph(status, labels)),
        el("div.wb-main", el("div.wb-fork-head", head), el("div.wb-dim.wb-lines", _told(node, labels))),
        el("div.wb-side", el(f"span.wb-ink.wb-{family(status)}", labels(status)), el("div.wb-dim", when)),
        _mark(run_id, labels, marked),
        style=f"padding-left:{4 + 16 * min(node['depth'], DEEPEST)}px",
        role="treeitem",
        aria_level=node["depth"] + 1,
        aria_selected=here,
        data_key=run_id,
    )


def _mark(run_id: str, labels: Labels, marked: Sequence[str]) -> Markup:
    chosen = run_id in marked
    sign: Any = labels("forks_mark")
    told = labels("forks_mark_told", run=run_id)
    if chosen:
        mine = LETTERS[marked.index(run_id)]
        sign, told = el("b.wb-letter.wb-first", mine), labels("forks_marked", letter=mine)
    return button(sign, "mark", cls="wb-fork-mark", name=told, title=told, aria_pressed=chosen)


def _made(node: Data, labels: Labels) -> str:
    """How a run came to be."""
    if node["parent"] is None:
        return labels("forks_first")
    if node["also"]:
        return labels("graft")
    at = next((edit["at"] for edit in node["edits"] if edit["what"] == "decision"), None)
    if node["mode"] == "fork" and at:
        return labels("forks_fork_at", point=labels("point_" + at.partition("-")[2]))
    return labels(node["mode"])


def _told(node: Data, labels: Labels) -> str:
    """The question of a run of its own; of one that was made from another what was edited."""
    if node["parent"] is None:
        return " ".join(node["message"].split())
    return " · ".join(run_edits_told(node, labels)) or " ".join(node["message"].split())


# both as text


def past_blocks(document: Data, found: Sequence[Data], labels: Labels) -> list[Block]:
    """Return a table of checkpoints: the id that a fork takes, what it is, what happened."""
    rows = []
    for n, (one, row) in enumerate(zip(found, rows_of(document, found, labels), strict=False), 1):
        pruned = labels("let_go") if one["changes"] is None else ""
        told = " · ".join(filter(None, (row.told, row.side, pruned)))
        rows.append((str(n), one["id"][:18], row.name, SIGNS.get(row.status, "·"), told))
    head = Lines((((document["message"], "strong"),), ((labels("run") + " ", "dim"), (document["run_id"], "code"))))
    heads = columns(labels, ":number", "checkpoint:code:whole", "node::whole", ":status", "changes")
    return [head, clipped(labels("checkpoints", n=len(rows)), heads, rows)]


def tree_blocks(nodes: Sequence[Data], here: str | None, labels: Labels) -> list[Block]:
    """Return a table of runs, each before its own forks."""
    rows = [_tree_row(node, here, labels) for node in nodes[:MOST_RUNS]]
    heads = columns(labels, "run:code", "status:status", "made_by", "saved")
    left = len(nodes) - len(rows)
    notes = [labels("and_more", n=left)] if left else []
    return [clipped(_count(nodes, labels), heads, rows, notes=notes)]


def _tree_row(node: Data, here: str | None, labels: Labels) -> tuple[str, ...]:
    depth, saved = node["depth"], node["saved"]
    indent = "\u00a0\u00a0" * (min(depth, DEEPEST) - 1) + "└ " if depth else ""
    deep = f"[{depth}] " if depth > DEEPEST else ""
    made = [_made(node, labels)] if node["parent"] else []
    subject = ("▸ " if node["run_id"] == here else "") + " · ".join([*made, _told(node, labels)])
    spared = saved_told(saved, labels) if node["parent"] and saved["saved_calls"] else ""
    return indent + deep + node["run_id"], labels.status(node["status"]), cut(subject, 200), spared
