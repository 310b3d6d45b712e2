"""Two to four runs side by side: what each decided, ran, found, said and took. A sign and a word for every change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from workbench.records.timeline import work_ticks
from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.told import edits_told, saved_told, tokens_told, who_told
from workbench.views.page import Markup, button, code, el, family, glyph

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
    head = el("h3.wb-title", title, " ", el("span.wb-dim", told))
    return el("section.wb-part", head, table, aria_label=title, data_part=name)


def _rows(rows: Sequence[tuple[str, Markup]], name: str, heads: Any, labels: Labels, shown: Collection[int]) -> Markup:
    if not rows:
        return el("div.wb-dim", labels("beside_all_same"))
    body = [row for n, (_, row) in enumerate(rows) if n in shown]
    left = len(rows) - len(body)
    more = button(labels("beside_more", n=left), "more", key=name, cls="wb-quiet") if left else None
    return el("div", el("table.wb-table", el("thead", el("tr", heads)), el("tbody", body)), more)


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
        el("div.wb-dim", letter(n) if len(document["plan"]) > 1 else None, " ", line)
        for n, diff in enumerate(document["plan"], 1)
        for line in _edited((diff or {}).get("changed", {}).get(row["step_id"], {}), labels)
    ]
    name = el("td", el("span.wb-strong", row["step_id"]), " ", [[" ", code(tool)] for tool in tools], told)
    cells = [el("td.wb-nowrap", _side(side, labels)) for side in row["sides"]]
    return el("tr", el("td.wb-nowrap", _changes(row["changes"], labels)), name, cells)


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
    return [sign, " ", ended, word, el("div.wb-dim", labels("n_found", n=side["found"]))]


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
        return _table("claims", title, (), (), labels, el("div.wb-dim", labels("beside_no_answer")))
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
    sources = el("div.wb-dim", cut(" · ".join(cited), 240)) if cited else None
    text = el("td", el("span", row["text"], cls="wb-ink wb-fail" if kind == "lost" else None), sources)
    return el(
        "tr",
        el("td.wb-nowrap", _changes(row["changes"], labels)),
        text,
        [_cited(side, labels) for side in row["sides"]],
    )


def _cited(side: Mapping[str, Any] | None, labels: Labels) -> Markup:
    if side is None:
        return el("td", "–")
    marks = [el("span.wb-mark", f"[{c['n']}]", " ", title=c["title"] or c["result_id"]) for c in side["citations"]]
    return el("td", marks or el("span.wb-dim", labels("nothing_cited")))


def evidence_table(document: Document, labels: Labels, differing: bool, whole: bool) -> Markup:
    """The pieces of evidence: gained, lost, moved, the same; each by rank."""
    title = labels("beside_evidence")
    if not document["evidence"]:
        return _table("evidence", title, (), (), labels, el("div.wb-dim", labels("beside_no_evidence")))
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
        el("div.wb-dim", told, title=cut(", ".join(steps))) if told else None,
    )
    return el("tr", el("td.wb-nowrap", kinds, reworded), name, [_rank(side, labels) for side in piece["sides"]])


def _some(names: Sequence[str]) -> str:
    """The first name, shortened, and how many more."""
    brief = names[0] if len(names[0]) <= _ID else f"{names[0][: _ID - 1]}…"
    return f"{brief} +{len(names) - 1}" if len(names) > 1 else brief


def _rank(side: Mapping[str, Any] | None, labels: Labels) -> Markup:
    if side is None:
        return el("td.wb-number", "–")
    score = el("div.wb-dim", f"{side['score']:.2f}" if side["score"] >= 0.01 else "<0.01")
    return el("td.wb-number", f"#{side['rank']}", score, title=labels("beside_rank", n=side["rank"]))


def cut(text: str, most: int = _BRIEF) -> str:
    """A text that is not longer than this, with how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… +{len(text) - most}"


def _json(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))


def beside_head(document: Document, labels: Labels, *, differing: bool = False, graft: bool | None = None) -> Markup:
    """Which runs these are, where they part, what differs beside the edit, and what can be done.

    Args:
        document: of the comparison.
        labels: the words.
        differing: whether only differences are shown.
        graft: whether the graft panel is open; None offers none.
    """
    switch = button(
        labels("only_differences"), "differing", cls="wb-switch", role="switch", aria_checked=str(differing).lower()
    )
    actions = [switch, button(labels("swap"), "swap", cls="wb-quiet", title=labels("swap_told"))]
    if graft is not None:
        word = labels("graft_close" if graft else "graft_open")
        actions.append(button(word, "panel", aria_expanded=str(graft).lower()))
    runs = [_run(n, run, document, labels) for n, run in enumerate(document["runs"])]
    top = el("div.wb-beside-top", el("div.wb-main", runs), el("div.wb-actions", actions))
    parts = el("p.wb-beside-parts", _parts(document["parts"], labels))
    return el("div.wb-beside-head", top, parts, _caveats(document, labels))


def _run(n: int, run: Mapping[str, Any], document: Document, labels: Labels) -> Markup:
    said = run["message"] if n == 0 or run["message"] != document["runs"][0]["message"] else ""
    origin = next((i for i, one in enumerate(document["runs"]) if one["run_id"] == run["origin"]), None)
    made = labels("made_from", run=LETTERS[origin] if origin is not None else run["origin"]) if run["origin"] else None
    return el(
        "div.wb-beside-run",
        letter(n),
        el("span", code(run["run_id"]), " ", glyph(run["status"], labels, said=False), " ", labels(run["status"])),
        button(labels("open_run"), "open", key=run["run_id"], cls="wb-quiet", name=_opening(run, labels)),
        el("span.wb-dim", made) if made else None,
        el("span.wb-cut.wb-beside-said", said, title=said) if said else None,
    )


def _opening(run: Mapping[str, Any], labels: Labels) -> str:
    return labels("open_run_told", run=run["run_id"])


def _parts(parts: Mapping[str, Any] | None, labels: Labels) -> Any:
    if parts is None:
        return el("b.wb-strong", labels("no_difference"))
    what = labels(f"part_{parts['where']}", name=parts["name"])
    values = [el("span", letter(n), " ", _value(v, labels)) for n, v in enumerate(parts["values"])]
    return [el("b.wb-strong", labels("they_part", what=what)), *values]


def _value(value: Any, labels: Labels) -> str:
    """What a run had at a point, in words."""
    if isinstance(value, Mapping) and "action" in value:
        return answered(value, labels)
    if isinstance(value, Mapping):
        return " · ".join([labels(value["status"]), value["tool"], labels("n_found", n=value["found"])])
    if isinstance(value, list):
        return cut(labels("comma").join(map(str, value)))
    return "—" if value is None else cut(str(value))


def _caveats(document: Document, labels: Labels) -> Markup | None:
    causes, unknown = list[Markup](), list[Markup]()
    for caveat in document["caveats"]:
        told: list[Any] = [labels(f"caveat_{caveat['what']}", name=caveat["name"])]
        if caveat["what"] in ("unfinished", "no_tape"):
            unknown.append(el("li", told))
            continue
        if caveat["what"] != "question":
            told += [[" ", letter(n), " ", _value(v, labels)] for n, v in enumerate(caveat["values"])]
        causes.append(el("li", told))
    if not causes and not unknown:
        return None
    first = [el("p.wb-strong", labels("not_only")), el("ul", causes)] if causes else []
    also = [el("ul", unknown)] if unknown else []
    return el("div.wb-band.wb-person", glyph("warning", labels, said=False), el("div", first, also), role="note")


def beside_body(document: Document, labels: Labels, *, differing: bool = False, whole: Collection[str] = ()) -> Markup:
    """The tables and the timing.

    Args:
        document: of the comparison.
        labels: the words.
        differing: leave out what is the same.
        whole: tables shown to their end, of ``steps``, ``claims`` and ``evidence``.
    """
    columns = [
        [steps_table(document, labels, differing, "steps" in whole), decisions_table(document, labels, differing)],
        [_timing(document, labels)],
        [claims_table(document, labels, differing, "claims" in whole)],
        [evidence_table(document, labels, differing, "evidence" in whole)],
    ]
    names = ("plan", "timing", "claims", "evidence")
    cells = [el(f"div.wb-beside-{name}", part) for name, part in zip(names, columns, strict=True)]
    return el(
        "div",
        _summary(document, labels),
        el("div", cells, cls="wb-beside-grid" if len(document["runs"]) == 2 else "wb-beside-grid wb-many"),
    )


# the summary


def _summary(document: Document, labels: Labels) -> Markup:
    costs, runs = document["cost"], range(len(document["runs"]))
    numbers = [_numbers(document, n) for n in runs]
    rows = [
        el("tr", el("td", letter(n)), el("td", _chose(document, n, labels)), _counted(numbers[n], costs[n], labels))
        for n in runs
    ]
    if len(rows) == 2:
        rows.append(_difference(numbers, labels))
    names = ("calls", "pieces", "claims", "took", "tokens", "saved")
    heads = [el("th"), el("th", labels("beside_decided"))]
    heads += [el("th.wb-number", labels(f"beside_{name}")) for name in names]
    table = el("table.wb-table", el("thead", el("tr", heads)), el("tbody", rows))
    note = el("div.wb-dim", labels("not_waiting"))
    return el("div.wb-beside-summary", table, note)


def _numbers(document: Document, n: int) -> dict[str, float]:
    claims = [row["sides"][n] for row in document["claims"] if row["sides"][n]]
    cost = document["cost"][n]
    return {
        "calls": cost["calls"],
        "taped": cost["saved_calls"],
        "pieces": cost["evidence"],
        "cited": sum(bool(side["citations"]) for side in claims),
        "claims": len(claims),
        "seconds": cost["total_s"],
        "tokens": cost["tokens"],
    }


def _counted(told: Mapping[str, float], cost: Mapping[str, Any], labels: Labels) -> list[Markup]:
    spared = [saved_told(cost, labels)]
    spared += [labels("beside_saved_tokens", n=f"{cost['saved_tokens']:,}")] if cost["saved_tokens"] else []
    cells = (
        f"{told['calls']} + {told['taped']}",
        str(told["pieces"]),
        labels("beside_of", n=told["cited"], most=told["claims"]) if told["claims"] else "–",
        milliseconds(told["seconds"] * 1000),
        tokens_told(cost["tokens"], cost["about"], labels) if told["tokens"] else "–",
        labels("comma").join(spared) if cost["saved_calls"] else "–",
    )
    return [el("td.wb-number", cell) for cell in cells]


def _difference(numbers: Sequence[Mapping[str, float]], labels: Labels) -> Markup:
    """The second run less the first."""
    less = {name: numbers[1][name] - numbers[0][name] for name in numbers[0]}
    seconds = f"{'−' if less['seconds'] < 0 else '+'}{milliseconds(abs(less['seconds']) * 1000)}"
    steps = _signed(less["calls"] + less["taped"])
    told = (steps, _signed(less["pieces"]), _signed(less["cited"]), seconds, _signed(less["tokens"]), "")
    name = el("td.wb-dim", labels("beside_difference", first="A", other="B"), colspan=2)
    return el("tr.wb-difference", name, [el("td.wb-number", cell) for cell in told])


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{abs(value):,}"


def _chose(document: Document, n: int, labels: Labels) -> str:
    """What a run decided where they decided otherwise."""
    rows = [row for row in document["decisions"] if row["sides"][n]]
    if not rows:
        return labels("beside_asked_nobody")
    told = [_decision(row["sides"][n], labels) for row in rows if not row["same"]]
    return labels("comma").join(told[:2]) if told else labels("beside_decided_alike")


def _decision(side: Mapping[str, Any], labels: Labels) -> str:
    edited = sorted(side["edits"])
    fields = f" ({labels('comma').join(map(str, edited))})" if edited else ""
    return f"{labels('point_' + side['point'])}{labels('colon')}{labels('did_' + side['action'])}{cut(fields, 60)}"


# timing

_PARTS = (
    ("taped", "saved_s", "beside_recorded"),
    ("search", "retrieval_s", "beside_searching"),
    ("answer", "generation_s", "beside_answering"),
)


def _timing(document: Document, labels: Labels) -> Markup:
    costs = document["cost"]
    whole = max((sum(c[name] for _, name, _ in _PARTS) for c in costs), default=0) or 0.001
    bars = [_lane(n, cost, whole, labels) for n, cost in enumerate(costs)]
    ticks = [
        el("span", f"{ms / 1000:g}", style=f"left:{_share(ms / 1000, whole)}")
        for _, ms in work_ticks((), whole * 1000, most=5)
    ]
    legend = [el("span.wb-legend", el(f"i.wb-bar-{kind}"), " ", labels(word)) for kind, _, word in _PARTS]
    title = labels("beside_timing")
    head = el("h3.wb-title", title, " ", el("span.wb-dim", labels("beside_scale")))
    axis = el("div.wb-beside-axis", ticks, aria_hidden="true")
    return el("section.wb-part", head, bars, axis, el("div.wb-dim", legend), aria_label=title)


def _lane(n: int, cost: Mapping[str, Any], whole: float, labels: Labels) -> Markup:
    at, drawn, told = 0.0, list[Markup](), list[str]()
    for kind, name, word in _PARTS:
        seconds = cost[name]
        if seconds > 0:
            style = f"left:{_share(at, whole)};width:{_share(seconds, whole)}"
            drawn.append(el(f"i.wb-bar-{kind}", style=style))
            told.append(f"{labels(word)} {milliseconds(seconds * 1000)}")
        at += seconds
    said = " · ".join(told) or "–"
    track = el("div.wb-track-line", drawn, role="img", aria_label=said)
    return el("div.wb-lane", letter(n), el("div.wb-main", track, el("div.wb-dim", said)))


def _share(seconds: float, whole: float) -> str:
    return f"{100 * seconds / whole:.2f}%"
