"""The tree of forks as a list with a gutter, as in a git log: how each run was made, how it stands, what was saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.draw.page import Markup, Picture, badge, button, closed, code, el, family, glyph, opened
from workbench.labels import Labels
from workbench.labels.told import fork_edit_told, saved_told

Node = Mapping[str, Any]
LETTERS = "ABCD"
DEEPEST, MOST_SHOWN = 8, 200
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
        return Picture(el("div", labels("forks_none"), cls="wb-dim wb-part"))
    shown = nodes[:MOST_SHOWN]
    gutters = _gutters(shown)
    rows = {
        node["run_id"]: _row(node, gutter, labels, here == node["run_id"], marked)
        for node, gutter in zip(shown, gutters, strict=True)
    }
    left = len(nodes) - len(shown)
    more = el("div", labels("and_more", n=left), cls="wb-dim") if left else ""
    head = el(
        "div",
        _title(nodes, here, labels),
        el("span", cls="wb-push"),
        _comparing(marked, len(nodes), labels),
        cls="wb-bar",
    )
    title = labels("forks")
    return Picture(
        Markup(opened("section", cls="wb-part") + head + opened("div", cls="wb-list", role="tree", aria_label=title)),
        rows,
        Markup(closed("div") + more + closed("section")),
    )


def _title(nodes: Sequence[Node], here: str | None, labels: Labels) -> Markup:
    title = labels("forks") if here is None else labels("forks_of", run=nodes[0]["run_id"])
    counted = labels("forks_count", n=len(nodes), forks=sum(node["parent"] is not None for node in nodes))
    return el("h3", title, " ", el("span", counted, cls="wb-dim"), cls="wb-title")


def _comparing(marked: Sequence[str], there: int, labels: Labels) -> Markup:
    letters = labels("comma").join(LETTERS[: len(marked)])
    if len(marked) >= 2:
        return button(labels("forks_compare", letters=letters), "compare", cls="wb-primary")
    one = labels("forks_only") if there < 2 else labels("forks_choose")
    word = labels("forks_choose_more", letter=letters) if marked else one
    return el("span", word, cls="wb-dim")


def _row(node: Node, gutter: Markup, labels: Labels, here: bool, marked: Sequence[str]) -> Markup:
    run_id, saved = node["run_id"], node["saved"]
    head = [
        el("span", run_id, cls="wb-strong wb-run-id"),
        code(_made(node, labels)),
        badge("recorded", saved_told(saved, labels), labels) if saved["saved_calls"] else None,
        el("span", labels("forks_here"), cls="wb-ink wb-run") if here else None,
    ]
    status = el("span", labels(node["status"]), cls=f"wb-ink wb-{family(node['status'])}")
    told = el("div", _told(node, labels), cls="wb-dim wb-lines")
    side = el("div", status, el("div", _when(node), cls="wb-dim"), cls="wb-side")
    return el(
        "div",
        gutter,
        el("span", glyph(node["status"], labels), cls="wb-fork-status"),
        el("div", el("div", head, cls="wb-fork-head"), told, cls="wb-main"),
        side,
        _mark(run_id, labels, marked),
        cls="wb-row wb-fork",
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
    sign = el("b", LETTERS[place], cls="wb-letter wb-first") if place is not None else labels("forks_mark")
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


def _when(node: Node) -> str:
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
    drawn = [el("path", d="".join(lines), cls="wb-fork-line")] if lines else []
    far = _x(deepest)
    dashed = "".join(_joining(n, first, last, x, far) for first, last in joins if first <= n <= last)
    drawn += [el("path", d=dashed, cls="wb-fork-line wb-fork-join")] if dashed else []
    dot = el("circle", cx=x, cy=_MIDDLE, r=4, cls="wb-fork-dot")
    lines_drawn = el("svg", drawn, dot, width=width, height="100%", aria_hidden="true")
    return el("span", lines_drawn, cls="wb-fork-gutter", style=f"width:{width}px")


def _joining(n: int, first: int, last: int, x: int, far: int) -> str:
    if n == first:
        return f"M{x} {_MIDDLE}Q{far} {_MIDDLE} {far} {_MIDDLE + 16}V{_LONG}"
    return f"M{far} 0V{_MIDDLE - 16}Q{far} {_MIDDLE} {x} {_MIDDLE}" if n == last else f"M{far} 0V{_LONG}"


def _x(lane: int) -> int:
    return 8 + _LANE * lane
