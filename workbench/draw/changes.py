"""The tables of a comparison: steps, decisions, claims and evidence, each row with sign and word of its change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from workbench.draw.page import Markup, button, code, el, family, glyph
from workbench.labels import Labels, milliseconds
from workbench.labels.told import edits_told, who_told

Document = Mapping[str, Any]
LETTERS = "ABCD"
MOST_ROWS, MOST_OF_A_KIND, MOST_UNFOLDED = 24, 4, 400
"""Rows that a table shows at first, pieces of one kind of change, and rows that it shows when all are asked for."""
_BRIEF, _ID = 160, 24
_INKS = {"gained": "run", "added": "run", "lost": "fail", "removed": "fail", "same": "idle", "shared": "idle"}
_SAME = ("same", "shared")
_STEPS = ("added", "removed", "changed", "same")
_PIECES = ("gained", "lost", "moved", "same")
_CLAIMS = ("gained", "lost", "recited", "shared")


def letter(n: int) -> Markup:
    """The mark of a run: A is filled, the others are outlined."""
    return el("b", LETTERS[n], cls="wb-letter" if n else "wb-letter wb-first")


def change(kind: str, labels: Labels) -> Markup:
    """Sign and word of a change."""
    sign, _, word = labels(f"beside_{kind}" if kind in _SAME else kind).partition(" ")
    return el("span", el("b", sign), " ", word, cls=f"wb-change wb-{_INKS.get(kind, 'person')}")


def _table(name: str, title: str, kinds: Iterable[str], order: Sequence[str], labels: Labels, table: Any) -> Markup:
    """A part with its title and its counts of changes."""
    counts = Counter(kinds)
    told = labels("comma").join(labels(f"count_{kind}", n=counts[kind]) for kind in order if counts[kind])
    head = el("h3", title, " ", el("span", told, cls="wb-dim"), cls="wb-title")
    return el("section", head, table, cls="wb-part", aria_label=title, data_part=name)


def _rows(rows: Sequence[tuple[str, Markup]], name: str, heads: Any, labels: Labels, shown: Collection[int]) -> Markup:
    if not rows:
        return el("div", labels("beside_all_same"), cls="wb-dim")
    body = [row for n, (_, row) in enumerate(rows) if n in shown]
    left = len(rows) - len(body)
    more = button(labels("beside_more", n=left), "more", key=name, cls="wb-quiet") if left else None
    return el("div", el("table", el("thead", el("tr", heads)), el("tbody", body), cls="wb-table"), more)


def _shown(kinds: Sequence[str], whole: bool) -> set[int]:
    """Which rows are shown: what differs comes first, in its place."""
    most = MOST_UNFOLDED if whole else MOST_ROWS
    first = sorted(range(len(kinds)), key=lambda n: kinds[n] in _SAME)
    return set(first[:most])


def _kind(changes: Sequence[str], order: Sequence[str]) -> str:
    """The change of a row as a whole: the weightiest among the runs."""
    return min((kind for kind in changes if kind), key=order.index, default=order[-1])


def _changes(changes: Sequence[str], labels: Labels) -> Any:
    """The changes of a row; by run where there are more than two."""
    if len(changes) == 1:
        return change(changes[0], labels)
    return [
        el("div", [letter(n) for n, one in enumerate(changes, 1) if one == kind], " ", change(kind, labels))
        for kind in dict.fromkeys(filter(None, changes))
    ]


def _heads(what: str, document: Document, labels: Labels) -> list[Markup]:
    runs = [el("th", letter(n)) for n in range(len(document["runs"]))]
    return [el("th", labels("change")), el("th", what), *runs]


def steps_table(document: Document, labels: Labels, differing: bool, whole: bool) -> Markup:
    """The steps, in the order of the plans."""
    kinds = [_kind(row["changes"], _STEPS) for row in document["steps"]]
    rows = [
        (kind, _step(row, document, labels))
        for row, kind in zip(document["steps"], kinds, strict=True)
        if not (differing and kind == "same")
    ]
    shown = _shown([kind for kind, _ in rows], whole)
    table = _rows(rows, "steps", _heads(labels("step"), document, labels), labels, shown)
    return _table("steps", labels("beside_plan"), kinds, _STEPS, labels, table)


def _step(row: Mapping[str, Any], document: Document, labels: Labels) -> Markup:
    tools = dict.fromkeys(side["tool"] for side in row["sides"] if side)
    told = [
        el("div", letter(n) if len(document["plan"]) > 1 else None, " ", line, cls="wb-dim")
        for n, diff in enumerate(document["plan"], 1)
        for line in _edited((diff or {}).get("changed", {}).get(row["step_id"], {}), labels)
    ]
    name = el("td", el("span", row["step_id"], cls="wb-strong"), " ", [[" ", code(tool)] for tool in tools], told)
    cells = [el("td", _side(side, labels), cls="wb-nowrap") for side in row["sides"]]
    return el("tr", el("td", _changes(row["changes"], labels), cls="wb-nowrap"), name, cells)


def _edited(fields: Mapping[str, Any], labels: Labels) -> list[str]:
    """What was edited in a step, a line a field; of a tool's input only the fields that differ."""
    lines = []
    for field, (old, new) in fields.items():
        pairs = {field: (old, new)}
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            names = dict.fromkeys([*old, *new])
            pairs = {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}
        if field != "tool":  # both stand behind the step's name
            lines += [f"{name}{labels('colon')}{_json(one)} → {_json(two)}" for name, (one, two) in pairs.items()]
    return lines


def _side(side: Mapping[str, Any] | None, labels: Labels) -> Any:
    """How a step ended in a run, what it found, and how long that took."""
    if side is None:
        return "–"
    if side["status"] == "skipped":
        return [glyph("skipped", labels, said=False), " ", labels("skipped")]
    recorded = side["replayed"] and family(side["status"]) == "done"
    word = labels("beside_recorded") if side["replayed"] else milliseconds(side["seconds"] * 1000)
    ended = [] if family(side["status"]) == "done" else [labels(side["status"]), " · "]
    sign = glyph("recorded" if recorded else side["status"], labels, said=False)
    return [sign, " ", ended, word, el("div", labels("n_found", n=side["found"]), cls="wb-dim")]


def decisions_table(document: Document, labels: Labels, differing: bool) -> Markup | None:
    """What was decided; None when nobody was asked."""
    if not document["decisions"]:
        return None
    kinds = ["same" if row["same"] else "changed" for row in document["decisions"]]
    rows = [
        (kind, _decision_row(row, kind, labels))
        for row, kind in zip(document["decisions"], kinds, strict=True)
        if not (differing and kind == "same")
    ]
    shown = _shown([kind for kind, _ in rows], True)
    table = _rows(rows, "decisions", _heads(labels("point"), document, labels), labels, shown)
    return _table("decisions", labels("beside_decisions"), kinds, _STEPS, labels, table)


def _decision_row(row: Mapping[str, Any], kind: str, labels: Labels) -> Markup:
    point = next(labels(f"point_{side['point']}") for side in row["sides"] if side)
    cells = [el("td", answered(side, labels) if side else "–") for side in row["sides"]]
    return el("tr", el("td", change(kind, labels)), el("td", f"{row['number']} {point}"), cells)


def answered(side: Mapping[str, Any], labels: Labels) -> str:
    """What was decided, by whom, with which words."""
    who = who_told(side["who"], labels)
    said = edits_told(side["edits"], side["proposed"], labels)
    said += [f"“{text}”" for text in (side["message"], side["note"]) if text]
    return cut(" · ".join([labels("aside", said=labels("did_" + side["action"]), more=who), *said]), 400)


def claims_table(document: Document, labels: Labels, differing: bool, whole: bool) -> Markup:
    """The answers, sentence by sentence."""
    title = labels("beside_answer")
    if not document["claims"]:
        return _table("claims", title, (), (), labels, el("div", labels("beside_no_answer"), cls="wb-dim"))
    kinds = [_kind(row["changes"], _CLAIMS) for row in document["claims"]]
    rows = [
        (kind, _claim(row, labels))
        for row, kind in zip(document["claims"], kinds, strict=True)
        if not (differing and kind == "shared")
    ]
    shown = _shown([kind for kind, _ in rows], whole)
    table = _rows(rows, "claims", _heads(labels("claim"), document, labels), labels, shown)
    return _table("claims", title, kinds, _CLAIMS, labels, table)


def _claim(row: Mapping[str, Any], labels: Labels) -> Markup:
    kind = _kind(row["changes"], _CLAIMS)
    cited = {c["title"] or c["result_id"]: None for side in row["sides"] if side for c in side["citations"]}
    sources = el("div", cut(" · ".join(cited), 240), cls="wb-dim") if cited else None
    text = el("td", el("span", row["text"], cls="wb-ink wb-fail" if kind == "lost" else None), sources)
    return el(
        "tr",
        el("td", _changes(row["changes"], labels), cls="wb-nowrap"),
        text,
        [_cited(side, labels) for side in row["sides"]],
    )


def _cited(side: Mapping[str, Any] | None, labels: Labels) -> Markup:
    if side is None:
        return el("td", "–")
    marks = [
        el("span", f"[{c['n']}]", " ", cls="wb-mark", title=c["title"] or c["result_id"]) for c in side["citations"]
    ]
    return el("td", marks or el("span", labels("nothing_cited"), cls="wb-dim"))


def evidence_table(document: Document, labels: Labels, differing: bool, whole: bool) -> Markup:
    """The pieces of evidence: gained, lost, moved, the same; each by rank."""
    title = labels("beside_evidence")
    if not document["evidence"]:
        return _table("evidence", title, (), (), labels, el("div", labels("beside_no_evidence"), cls="wb-dim"))
    kinds = [_kind(piece["changes"], _PIECES) for piece in document["evidence"]]
    ranked = sorted(
        (_PIECES.index(kind), min(side["rank"] for side in piece["sides"] if side), n)
        for n, (piece, kind) in enumerate(zip(document["evidence"], kinds, strict=True))
        if not (differing and kind == "same" and not piece["text_differs"])
    )
    order = [kinds[n] for _, _, n in ranked]
    rows = [(kinds[n], _piece(document["evidence"][n], labels)) for _, _, n in ranked]
    shown = _shown(order, True) if whole else _first_of_each(order)
    table = _rows(rows, "evidence", _heads(labels("piece"), document, labels), labels, shown)
    return _table("evidence", title, kinds, _PIECES, labels, table)


def _first_of_each(kinds: Sequence[str]) -> set[int]:
    seen, shown = Counter[str](), set[int]()
    for n, kind in enumerate(kinds):
        seen[kind] += 1
        if seen[kind] <= MOST_OF_A_KIND:
            shown.add(n)
    return shown


def _piece(piece: Mapping[str, Any], labels: Labels) -> Markup:
    first, *others = piece["sides"]
    steps = dict.fromkeys(f["step_id"] for side in others if side for f in side["found_by"])
    if first:
        steps = dict.fromkeys(f["step_id"] for f in first["found_by"])
    told = labels("beside_found_by", steps=_some(list(steps))) if steps else None
    kinds = _changes(piece["changes"], labels)
    reworded = el("div", change("reworded", labels)) if piece["text_differs"] else None
    name = el(
        "td",
        " ".join(str(piece["title"]).split()),
        el("div", told, cls="wb-dim", title=cut(", ".join(steps))) if told else None,
    )
    return el("tr", el("td", kinds, reworded, cls="wb-nowrap"), name, [_rank(side, labels) for side in piece["sides"]])


def _some(names: Sequence[str]) -> str:
    """The first name, shortened, and how many more."""
    brief = names[0] if len(names[0]) <= _ID else f"{names[0][: _ID - 1]}…"
    return f"{brief} +{len(names) - 1}" if len(names) > 1 else brief


def _rank(side: Mapping[str, Any] | None, labels: Labels) -> Markup:
    if side is None:
        return el("td", "–", cls="wb-number")
    score = el("div", f"{side['score']:.2f}" if side["score"] >= 0.01 else "<0.01", cls="wb-dim")
    return el("td", f"#{side['rank']}", score, cls="wb-number", title=labels("beside_rank", n=side["rank"]))


def cut(text: str, most: int = _BRIEF) -> str:
    """A text that is not longer than this, with how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… +{len(text) - most}"


def _json(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
