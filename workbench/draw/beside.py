"""Two to four runs side by side: what each decided, ran, found, said and took. A sign and a word for every change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workbench.draw.changes import (
    LETTERS,
    answered,
    claims_table,
    cut,
    decisions_table,
    evidence_table,
    letter,
    steps_table,
)
from workbench.draw.page import Markup, button, code, el, glyph
from workbench.labels import Labels, milliseconds
from workbench.labels.told import saved_told, tokens_told
from workbench.timeline import work_ticks

Document = Mapping[str, Any]


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
    top = el("div", el("div", runs, cls="wb-main"), el("div", actions, cls="wb-actions"), cls="wb-beside-top")
    parts = el("p", _parts(document["parts"], labels), cls="wb-beside-parts")
    return el("div", top, parts, _caveats(document, labels), cls="wb-beside-head")


def _run(n: int, run: Mapping[str, Any], document: Document, labels: Labels) -> Markup:
    said = run["message"] if n == 0 or run["message"] != document["runs"][0]["message"] else ""
    origin = next((i for i, one in enumerate(document["runs"]) if one["run_id"] == run["origin"]), None)
    made = labels("made_from", run=LETTERS[origin] if origin is not None else run["origin"]) if run["origin"] else None
    return el(
        "div",
        letter(n),
        el("span", code(run["run_id"]), " ", glyph(run["status"], labels, said=False), " ", labels(run["status"])),
        button(labels("open_run"), "open", key=run["run_id"], cls="wb-quiet", name=_opening(run, labels)),
        el("span", made, cls="wb-dim") if made else None,
        el("span", said, cls="wb-cut wb-beside-said", title=said) if said else None,
        cls="wb-beside-run",
    )


def _opening(run: Mapping[str, Any], labels: Labels) -> str:
    return labels("open_run_told", run=run["run_id"])


def _parts(parts: Mapping[str, Any] | None, labels: Labels) -> Any:
    if parts is None:
        return el("b", labels("no_difference"), cls="wb-strong")
    what = labels(f"part_{parts['where']}", name=parts["name"])
    values = [el("span", letter(n), " ", _value(v, labels)) for n, v in enumerate(parts["values"])]
    return [el("b", labels("they_part", what=what), cls="wb-strong"), *values]


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
    first = [el("p", labels("not_only"), cls="wb-strong"), el("ul", causes)] if causes else []
    also = [el("ul", unknown)] if unknown else []
    return el("div", glyph("warning", labels, said=False), el("div", first, also), cls="wb-band wb-person", role="note")


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
    cells = [el("div", part, cls=f"wb-beside-{name}") for name, part in zip(names, columns, strict=True)]
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
    heads += [el("th", labels(f"beside_{name}"), cls="wb-number") for name in names]
    table = el("table", el("thead", el("tr", heads)), el("tbody", rows), cls="wb-table")
    note = el("div", labels("not_waiting"), cls="wb-dim")
    return el("div", table, note, cls="wb-beside-summary")


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
    return [el("td", cell, cls="wb-number") for cell in cells]


def _difference(numbers: Sequence[Mapping[str, float]], labels: Labels) -> Markup:
    """The second run less the first."""
    less = {name: numbers[1][name] - numbers[0][name] for name in numbers[0]}
    seconds = f"{'−' if less['seconds'] < 0 else '+'}{milliseconds(abs(less['seconds']) * 1000)}"
    steps = _signed(less["calls"] + less["taped"])
    told = (steps, _signed(less["pieces"]), _signed(less["cited"]), seconds, _signed(less["tokens"]), "")
    name = el("td", labels("beside_difference", first="A", other="B"), colspan=2, cls="wb-dim")
    return el("tr", name, [el("td", cell, cls="wb-number") for cell in told], cls="wb-difference")


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
    legend = [el("span", el("i", cls=f"wb-bar-{kind}"), " ", labels(word), cls="wb-legend") for kind, _, word in _PARTS]
    title = labels("beside_timing")
    head = el("h3", title, " ", el("span", labels("beside_scale"), cls="wb-dim"), cls="wb-title")
    axis = el("div", ticks, cls="wb-beside-axis", aria_hidden="true")
    return el("section", head, bars, axis, el("div", legend, cls="wb-dim"), cls="wb-part", aria_label=title)


def _lane(n: int, cost: Mapping[str, Any], whole: float, labels: Labels) -> Markup:
    at, drawn, told = 0.0, list[Markup](), list[str]()
    for kind, name, word in _PARTS:
        seconds = cost[name]
        if seconds > 0:
            style = f"left:{_share(at, whole)};width:{_share(seconds, whole)}"
            drawn.append(el("i", cls=f"wb-bar-{kind}", style=style))
            told.append(f"{labels(word)} {milliseconds(seconds * 1000)}")
        at += seconds
    said = " · ".join(told) or "–"
    track = el("div", drawn, cls="wb-track-line", role="img", aria_label=said)
    return el("div", letter(n), el("div", track, el("div", said, cls="wb-dim"), cls="wb-main"), cls="wb-lane")


def _share(seconds: float, whole: float) -> str:
    return f"{100 * seconds / whole:.2f}%"
