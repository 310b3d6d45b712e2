"""The tree of forks as a list with a gutter, as in a git log: how each run was made, how it stands, what was saved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.told import edits_told, fork_edit_told, saved_told
from workbench.views.page import Markup, Picture, badge, button, closed, code, el, family, glyph, opened

Document = Mapping[str, Any]
MOST_SHOWN = 400
_BRIEF, _VALUE = 200, 1_200


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


def rows_of(document: Document, found: Sequence[Mapping[str, Any]], labels: Labels) -> list[Row]:
    """The rows of checkpoints (``Checkpoint.to_dict()``), or without them those of the decisions.

    Args:
        document: of the run.
        found: its checkpoints, oldest first; empty when they were let go.
        labels: the words.
    """
    if not found:
        return [_decided(decision["review_id"], decision, labels) for decision in document["decisions"]]
    records = {f"{record['step_id']}/{record['attempt']}": record for record in document["records"]}
    waves, rows = 0, list[Row]()
    for one in found:
        changes = {change["key"]: change for change in one["changes"] or ()}
        if one["graph"] == "retrieval" and "executor" in one["ran"]:
            waves += 1
        rows.append(_row(one, changes, document, records, waves, labels))
    return rows


def _row(
    one: Mapping[str, Any],
    changes: Mapping[str, Any],
    document: Document,
    records: Mapping[str, Any],
    wave: int,
    labels: Labels,
) -> Row:
    key, ran = one["id"], one["ran"]
    inside = one["graph"] == "retrieval"
    if inside and (made := changes.get("decisions", {}).get("added")):
        decision = next((d for d in document["decisions"] if d["review_id"] == made[-1]), None)
        if decision:
            return _decided(key, decision, labels)
    if one["asks"]:
        point = labels("point_" + one["asks"].partition("-")[2])
        if not _answered(one["asks"], document):
            return Row(key, point, labels("past_asks"), "paused")
    if inside and "executor" in ran:
        return _wave(key, changes, records, wave, labels)
    if inside and "planner" in ran and "plan" in changes:
        plan = changes["plan"]
        steps = labels("steps", n=len(plan["added"]) + len(plan["changed"]))
        return Row(key, labels("node_planner"), labels("past_plan", version=plan["after"], steps=f"+{steps}"))
    if inside and "reflector" in ran:
        return _judged(key, changes, document, labels)
    if inside and "merger" in ran:
        told_n = {"found": document["figures"]["found"], "kept": document["figures"]["evidence"]}
        return Row(key, labels("node_merger"), labels("past_merged", **told_n))
    if one["graph"] == "conversation" and "generate" in ran:
        told_n = {"n": len(document["answer"]), "cited": document["figures"]["cited"]}
        return Row(key, labels("node_generate"), labels("past_answered", **told_n))
    name = labels("comma").join(dict.fromkeys(_node(node, labels) for node in ran))
    told = labels("past_node", node=name) if name else labels("past_input")
    return Row(key, one["graph"], told, "pending", notable=False)


def _node(node: str, labels: Labels) -> str:
    return labels(f"node_{node}") if node in ("route", "recall", "planner", "executor", "persist") else str(node)


def _answered(review_id: str, document: Document) -> bool:
    return any(decision["review_id"] == review_id for decision in document["decisions"])


def _decided(key: str, decision: Mapping[str, Any], labels: Labels) -> Row:
    who = decision["who"]
    what = labels("did_" + decision["action"])
    told = labels("past_by_you", what=what) if who == "person" else labels("past_by", what=what, who=who)
    edits = [_text(told, 120) for told in edits_told(decision["edits"], decision["proposal"], labels)]
    said = " · ".join(text for text in (decision["message"], decision["note"]) if text)
    name = labels("past_decision", point=labels("point_" + decision["point"]))
    told += f"{labels('colon')}{labels('comma').join(edits)}" if edits else ""
    return Row(key, name, told, "paused", said, decision=decision["review_id"])


def _wave(key: str, changes: Mapping[str, Any], records: Mapping[str, Any], wave: int, labels: Labels) -> Row:
    names = changes.get("records", {}).get("added", [])
    made = [records[name] for name in names if name in records]
    found = sum(record["output_summary"]["evidence_count"] for record in made)
    steps = labels("comma").join([record["step_id"] for record in made][:3] or names[:3])
    steps += f" +{len(names) - 3}" if len(names) > 3 else ""
    taped = bool(made) and all(record.get("replayed") for record in made)
    bad = next((r["status"] for r in made if r["status"] in ("failed", "timeout")), "recorded" if taped else "done")
    span = milliseconds(max((record["duration_ms"] for record in made), default=0))
    side = labels("past_recorded") if taped else span
    return Row(key, labels("past_wave", n=wave), labels("past_found", n=found, steps=steps), bad, side=side)


def _judged(key: str, changes: Mapping[str, Any], document: Document, labels: Labels) -> Row:
    names = changes.get("reflections", {}).get("added", [])
    made = next((r for r in document["reflections"] if str(r["current_iteration"]) in names), None)
    told = labels("past_node", node=labels("node_reflector"))
    if made:
        told = f"{labels('past_judged_on' if made['should_continue'] else 'past_judged_stop')} · {made['reasoning']}"
    return Row(key, labels("node_reflector"), told)


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
        pressed = str(every).lower()
        more = button(labels("past_every", n=len(rows)), "every", cls="wb-switch", role="switch", aria_checked=pressed)
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
    cls = "wb-row wb-past-row" if row.notable else "wb-row wb-past-row wb-past-inner"
    return el(
        "div",
        el("span.wb-past-name", row.name),
        glyph(row.status, labels),
        el("div.wb-main", el("div.wb-lines", row.told), said),
        el("span.wb-side.wb-dim", row.side),
        cls=cls,
        role="option",
        aria_selected=str(chosen).lower(),
        data_key=row.key,
    )


def looked_at(
    row: Row,
    one: Mapping[str, Any] | None,
    values: Mapping[str, Any] | str,
    labels: Labels,
    *,
    review: str,
    ask: Sequence[str] = (),
) -> Markup:
    """One moment, looked at: what changed, the state, and the fork from it.

    Args:
        row: the row.
        one: its checkpoint; None when only the decision is left.
        values: the state as it stood; or why it cannot be read.
        labels: the words.
        review: the review point that comes after it; empty when none does.
        ask: review points at which a fork may ask where nobody was asked.
    """
    told = None
    if one:
        words = {"id": one["id"][:18], "graph": one["graph"], "step": one["step"], "at": _when(one["at"])}
        told = el("div.wb-dim", labels("past_input_step", **words))
    head = el("h3.wb-title.wb-lines", f"{row.name} · {row.told}")
    parts = [_forking(row.key, review, ask, labels)]
    if one:
        parts += [_changed(one["changes"], labels), _state(values, labels)]
    return el("section.wb-part.wb-past-look", head, told, parts, aria_label=labels("past_changes"))


def _forking(key: str, review: str, ask: Sequence[str], labels: Labels) -> Markup:
    if review:
        told = labels("past_fork_told", point=_point(review, labels))
        go = button(labels("past_fork"), "fork", key=key, cls="wb-primary")
        return el("div.wb-bar", go, el("span.wb-dim", told))
    if ask:
        buttons = [
            button(labels("past_fork_ask", point=labels(f"point_{point}")), f"fork:{point}", key=key) for point in ask
        ]
        return el("div.wb-bar", buttons)
    return el("div.wb-dim", labels("past_no_review"))


def _point(review_id: str, labels: Labels) -> str:
    number, _, point = review_id.partition("-")
    return f"{labels('point_' + point)} {number}" if point else number


def _changed(changes: Sequence[Mapping[str, Any]] | None, labels: Labels) -> Markup:
    title = el("h4.wb-strong", labels("past_changes"))
    if not changes:
        return el("div", title, el("div.wb-dim", labels("past_unchanged" if changes is not None else "let_go")))
    rows = [el("tr", el("td", code(change["key"])), el("td", _became(change))) for change in changes]
    return el("div", title, el("table.wb-table", el("tbody", rows)))


def _became(change: Mapping[str, Any]) -> list[Any]:
    signs = (("+", "run", "added"), ("~", "person", "changed"), ("−", "fail", "removed"))
    lists = [
        el(f"div.wb-ink.wb-{ink}", el("b", sign), " ", _listed(change[kind]))
        for sign, ink, kind in signs
        if change.get(kind)
    ]
    before, after = change.get("before", ""), change.get("after", "")
    if not before and not after:
        return lists
    said = [el("span.wb-struck", before), " → "] if before else []
    return [el("div", said, after), *lists]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" +{len(names) - 12}" if len(names) > 12 else "")


def _state(values: Mapping[str, Any] | str, labels: Labels) -> Markup:
    if isinstance(values, str):
        return el("div.wb-alert", labels("past_value_gone", why=values))
    rows = [el("tr", el("td", code(name)), el("td", _text(value, _VALUE))) for name, value in sorted(values.items())]
    table = el("table.wb-table.wb-past-values", el("tbody", rows))
    return el("details", el("summary", labels("past_values")), table, data_fold="values")


def _text(value: Any, most: int = _BRIEF) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= most else f"{text[:most]}… +{len(text) - most}"


def _when(at: str) -> str:
    return at[:19].replace("T", " ")


Node = Mapping[str, Any]
LETTERS = "ABCD"
DEEPEST, MOST_RUNS = 8, 200
"""Levels that the gutter draws as levels, and runs that are shown."""
_LANE, _MIDDLE, _LONG = 12, 25, 400


def forks(tree: Mapping[str, Any], labels: Labels, marked: Sequence[str] = ()) -> Picture:
    """The runs of a tree (``Tree.to_dict()``), a row each.

    Args:
        tree: the document of the tree.
        labels: the words.
        marked: the runs to be compared, in their order.
    """
    nodes, here = tree["runs"], tree["here"]
    if not nodes:
        return Picture(el("div.wb-dim.wb-part", labels("forks_none")))
    shown = nodes[:MOST_RUNS]
    gutters = _gutters(shown)
    rows = {
        node["run_id"]: _run_row(node, gutter, labels, here == node["run_id"], marked)
        for node, gutter in zip(shown, gutters, strict=True)
    }
    left = len(nodes) - len(shown)
    more = el("div.wb-dim", labels("and_more", n=left)) if left else ""
    head = el(
        "div.wb-bar",
        _title(nodes, here, labels),
        el("span.wb-push"),
        _comparing(marked, len(nodes), labels),
    )
    title = labels("forks")
    return Picture(
        Markup(opened("section.wb-part") + head + opened("div.wb-list", role="tree", aria_label=title)),
        rows,
        Markup(closed("div") + more + closed("section")),
    )


def _title(nodes: Sequence[Node], here: str | None, labels: Labels) -> Markup:
    title = labels("forks") if here is None else labels("forks_of", run=nodes[0]["run_id"])
    counted = labels("forks_count", n=len(nodes), forks=sum(node["parent"] is not None for node in nodes))
    return el("h3.wb-title", title, " ", el("span.wb-dim", counted))


def _comparing(marked: Sequence[str], there: int, labels: Labels) -> Markup:
    letters = labels("comma").join(LETTERS[: len(marked)])
    if len(marked) >= 2:
        return button(labels("forks_compare", letters=letters), "compare", cls="wb-primary")
    one = labels("forks_only") if there < 2 else labels("forks_choose")
    word = labels("forks_choose_more", letter=letters) if marked else one
    return el("span.wb-dim", word)


def _run_row(node: Node, gutter: Markup, labels: Labels, here: bool, marked: Sequence[str]) -> Markup:
    run_id, saved = node["run_id"], node["saved"]
    head = [
        el("span.wb-strong.wb-run-id", run_id),
        code(_made(node, labels)),
        badge("recorded", saved_told(saved, labels), labels) if saved["saved_calls"] else None,
        el("span.wb-ink.wb-run", labels("forks_here")) if here else None,
    ]
    status = el("span", labels(node["status"]), cls=f"wb-ink wb-{family(node['status'])}")
    told = el("div.wb-dim.wb-lines", _told(node, labels))
    side = el("div.wb-side", status, el("div.wb-dim", _run_when(node)))
    return el(
        "div.wb-row.wb-fork",
        gutter,
        el("span.wb-fork-status", glyph(node["status"], labels)),
        el("div.wb-main", el("div.wb-fork-head", head), told),
        side,
        _mark(run_id, labels, marked),
        role="treeitem",
        aria_level=node["depth"] + 1,
        aria_selected=str(here).lower(),
        data_key=run_id,
    )


def _mark(run_id: str, labels: Labels, marked: Sequence[str]) -> Markup:
    place = marked.index(run_id) if run_id in marked else None
    told = labels("forks_mark_told", run=run_id)
    if place is not None:
        told = labels("forks_marked", letter=LETTERS[place])
    sign = el("b.wb-letter.wb-first", LETTERS[place]) if place is not None else labels("forks_mark")
    pressed = str(place is not None).lower()
    return button(sign, "mark", cls="wb-fork-mark", name=told, title=told, aria_pressed=pressed)


def _made(node: Node, labels: Labels) -> str:
    """How a run came to be."""
    if node["parent"] is None:
        return labels("forks_first")
    if node["also"]:
        return labels("graft")
    at = next((edit["at"] for edit in node["edits"] if edit["what"] == "decision"), None)
    if node["mode"] == "fork" and at:
        return labels("forks_fork_at", point=labels("point_" + at.partition("-")[2]))
    return labels(node["mode"])


def _told(node: Node, labels: Labels) -> str:
    """The question of a run of its own; of one that was made from another what was edited."""
    if node["parent"] is None:
        return " ".join(node["message"].split())
    told = [fork_edit_told(edit, labels) for edit in node["edits"]]
    told += [labels("also_from", run=labels("comma").join(node["also"]))] if node["also"] else []
    told += [labels("is_gone", run=labels("comma").join(node["gone"]))] if node["gone"] else []
    return " · ".join(told) or " ".join(node["message"].split())


def _run_when(node: Node) -> str:
    return str(node["created_at"])[5:16].replace("T", " ")


# the gutter


def _gutters(nodes: Sequence[Node]) -> list[Markup]:
    """For each row the lines left of it: levels as lanes, curves to forks, dashed ones from a graft's other sources."""
    lanes = [min(node["depth"], DEEPEST) for node in nodes]
    lasting = _lasting(nodes, lanes)
    joins = _joins(nodes)
    deepest = max(lanes) + (1 if joins else 0)
    width = (deepest + 1) * _LANE + 6
    return [_gutter(n, lanes, lasting[n], joins, deepest, width, nodes) for n in range(len(nodes))]


def _lasting(nodes: Sequence[Node], lanes: Sequence[int]) -> list[set[int]]:
    """For each row the lanes whose line goes on below it, to a fork that comes later."""
    below: set[int] = set()
    found: list[set[int]] = []
    for n in reversed(range(len(nodes))):
        found.append(set(below))
        below = {lane for lane in below if lane < lanes[n]}
        if nodes[n]["depth"]:
            below.add(_above(nodes[n]))
    return found[::-1]


def _above(node: Node) -> int:
    """The lane of the run that it was made from."""
    return min(node["depth"] - 1, DEEPEST)


def _joins(nodes: Sequence[Node]) -> list[tuple[int, int]]:
    """(first row, last row) between a graft and each of its other sources."""
    places = {node["run_id"]: n for n, node in enumerate(nodes)}
    pairs = [(places[other], n) for n, node in enumerate(nodes) for other in node["also"] if other in places]
    return [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]


def _gutter(
    n: int,
    lanes: Sequence[int],
    lasting: set[int],
    joins: Sequence[tuple[int, int]],
    deepest: int,
    width: int,
    nodes: Sequence[Node],
) -> Markup:
    """One row's lines; above its middle a curve from its parent's lane, below it the lines of those still to come."""
    x, lane = _x(lanes[n]), lanes[n]
    lines = []
    for other in sorted(lasting):
        if other < lane:
            lines.append(f"M{_x(other)} 0V{_LONG}")
        elif other == lane:
            lines.append(f"M{x} {_MIDDLE}V{_LONG}")
    if nodes[n]["depth"]:
        above = _x(_above(nodes[n]))
        lines.append(f"M{x} 0V{_MIDDLE}" if above == x else f"M{above} 0V6Q{above} {_MIDDLE} {x} {_MIDDLE}")
    drawn = [el("path.wb-fork-line", d="".join(lines))] if lines else []
    far = _x(deepest)
    dashed = "".join(_joining(n, first, last, x, far) for first, last in joins if first <= n <= last)
    drawn += [el("path.wb-fork-line.wb-fork-join", d=dashed)] if dashed else []
    dot = el("circle.wb-fork-dot", cx=x, cy=_MIDDLE, r=4)
    lines_drawn = el("svg", drawn, dot, width=width, height="100%", aria_hidden="true")
    return el("span.wb-fork-gutter", lines_drawn, style=f"width:{width}px")


def _joining(n: int, first: int, last: int, x: int, far: int) -> str:
    if n == first:
        return f"M{x} {_MIDDLE}Q{far} {_MIDDLE} {far} {_MIDDLE + 16}V{_LONG}"
    return f"M{far} 0V{_MIDDLE - 16}Q{far} {_MIDDLE} {x} {_MIDDLE}" if n == last else f"M{far} 0V{_LONG}"


def _x(lane: int) -> int:
    return 8 + _LANE * lane
