"""Two to four runs side by side: what each decided, ran, found, said and took. A sign and a word for every change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.records.timeline import work_ticks
from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.sentences import edits_told, saved_told, tokens_told, took_told, who_told
from workbench.views.outline import Block, Column, Lines, clipped
from workbench.views.page import Data, Markup, button, code, cut, el, family, glyph, joined, read, table

LETTERS = "ABCD"
MOST_ROWS, MOST_OF_A_KIND, MOST_UNFOLDED = 24, 4, 400
"""Rows that a table shows at first, pieces of one kind of change, and rows that it shows when all are asked for."""
_ID = 24
_INKS = {"gained": "run", "added": "run", "lost": "fail", "removed": "fail", "same": "idle", "shared": "idle"}
_SAME = ("same", "shared")


def letter(n: int) -> Markup:
    """The mark of a run: A is filled, the others are outlined."""
    return el("b.wb-letter" if n else "b.wb-letter.wb-first", LETTERS[n])


def change(kind: str, labels: Labels) -> Markup:
    """Sign and word of a change."""
    sign, _, word = labels(f"beside_{kind}" if kind in _SAME else kind).partition(" ")
    return el(f"span.wb-change.wb-{_INKS.get(kind, 'person')}", el("b", sign), " ", word)


# the tables


class _Table(NamedTuple):
    """A part of the comparison with a row for each of its things.

    Attributes:
        title: of the part.
        what: what its rows are.
        empty: what is said where there is nothing.
        order: its kinds of changes, the weightiest first, no change last.
        look: the class of its cells.
        named: what a row is about.
        cell: how that is in one run.
    """

    title: str
    what: str
    empty: str
    order: Sequence[str]
    look: str
    named: Callable[[Data, Data, Labels], Any]
    cell: Callable[[Data, Labels], Any]

    def kind(self, row: Data) -> str:
        """The change of a row as a whole: the weightiest among the runs."""
        return min(filter(None, row["changes"]), key=self.order.index, default=self.order[-1])


class Part(NamedTuple):
    """A table of the comparison: cells row by row, and how many rows are left out."""

    title: str
    counts: str
    heads: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    left: int
    empty: str


def part(name: str, document: Data, labels: Labels, differing: bool, whole: bool = False) -> Part:
    """Return a table with its counts of changes, and as many rows as are asked for."""
    one, found = TABLES[name], rows_of(name, document)
    counts = Counter(one.kind(row) for row in found)
    told = labels("comma").join(labels(f"count_{kind}", n=counts[kind]) for kind in one.order if counts[kind])
    rows = [row for row in found if not (differing and one.kind(row) in _SAME and not row.get("text_differs"))]
    kinds = [one.kind(row) for row in rows]
    shown = first_of_each(kinds, MOST_OF_A_KIND) if name == "evidence" and not whole else _first(kinds, whole)
    cells = [_cells_of(one, rows[n], document, labels) for n in sorted(shown)]
    heads = [labels("change"), labels(one.what), *(letter(n) for n in range(len(document["runs"])))]
    empty = labels("beside_all_same" if found else one.empty)
    return Part(labels(one.title), told, heads, cells, len(rows) - len(cells), empty)


def _part(name: str, document: Data, labels: Labels, differing: bool, whole: bool) -> Markup:
    made, look = part(name, document, labels, differing, whole), TABLES[name].look
    head = el("h3.wb-title", made.title, " ", el("span.wb-dim", made.counts))
    drawn = [
        el("tr", el("td.wb-nowrap", first), el("td", named), [el(f"td{look}", side) for side in sides])
        for first, named, *sides in made.rows
    ]
    more = button(labels("beside_more", n=made.left), "more", key=name, cls="wb-quiet") if made.left else None
    inside = el("div", table([el("th", head) for head in made.heads], drawn), more)
    if not made.rows:
        inside = el("div.wb-dim", made.empty)
    return el("section.wb-part", head, inside, aria_label=made.title, data_part=name)


def rows_of(name: str, document: Data) -> list[Data]:
    """The rows of a part; decisions with their change as others have it, evidence by its change and its best rank."""
    rows = list(document[name])
    if name == "decisions":
        return [{**row, "changes": ["same" if row["same"] else "changed"]} for row in rows]
    if name == "evidence":
        kind, order = TABLES[name].kind, TABLES[name].order
        rows.sort(key=lambda row: (order.index(kind(row)), min(side["rank"] for side in row["sides"] if side)))
    return rows


def _cells_of(one: _Table, row: Data, document: Data, labels: Labels) -> list[Any]:
    reworded = el("div", change("reworded", labels)) if row.get("text_differs") else None
    sides = (one.cell(side, labels) if side else "–" for side in row["sides"])
    return [[_changes(row["changes"], labels), reworded], one.named(row, document, labels), *sides]


def _first(kinds: Sequence[str], whole: bool) -> Sequence[int]:
    """Rows that are shown: what differs comes first."""
    first = sorted(range(len(kinds)), key=lambda n: kinds[n] in _SAME)
    return first[: MOST_UNFOLDED if whole else MOST_ROWS]


def first_of_each(kinds: Sequence[str], most: int) -> Sequence[int]:
    """The places of the first rows of each kind of change, at most so many of a kind."""
    return [n for n, kind in enumerate(kinds) if kinds[:n].count(kind) < most]


def _changes(changes: Sequence[str], labels: Labels) -> Any:
    """The changes of a row; by run where there are more than two."""
    if len(changes) == 1:
        return change(changes[0], labels)
    return [
        el("div", [letter(n) for n, one in enumerate(changes, 1) if one == kind], " ", change(kind, labels))
        for kind in dict.fromkeys(filter(None, changes))
    ]


def _step(row: Data, document: Data, labels: Labels) -> Any:
    tools = dict.fromkeys(side["tool"] for side in row["sides"] if side)
    told = [
        el("div.wb-dim", letter(n) if len(document["plan"]) > 1 else None, " ", line)
        for n, diff in enumerate(document["plan"], 1)
        for line in _edited((diff or {}).get("changed", {}).get(row["step_id"], {}), labels)
    ]
    return [el("span.wb-strong", row["step_id"]), " ", [[" ", code(tool)] for tool in tools], told]


def _edited(fields: Data, labels: Labels) -> list[str]:
    """What was edited in a step, a line a field; of a tool's input only the fields that differ."""
    lines = []
    for field, (old, new) in fields.items():
        pairs = {field: (old, new)}
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            names = dict.fromkeys([*old, *new])
            pairs = {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}
        if field != "tool":  # both stand behind the step's name
            lines += [f"{name}{labels('colon')}{cut(one)} → {cut(two)}" for name, (one, two) in pairs.items()]
    return lines


def _ended(side: Data, labels: Labels) -> Any:
    """How a step ended in a run, what it found, and how long that took."""
    status, well = side["status"], family(side["status"]) == "done"
    if status == "skipped":
        return [glyph(status, labels, said=False), " ", labels(status)]
    sign = glyph("recorded" if side["replayed"] and well else status, labels, said=False)
    word = labels("beside_recorded") if side["replayed"] else milliseconds(side["seconds"] * 1000)
    ended = [] if well else [labels(status), " · "]
    return [sign, " ", ended, word, el("div.wb-dim", labels("n_found", n=side["found"]))]


def _point(row: Data, _: Data, labels: Labels) -> str:
    point = next(side["point"] for side in row["sides"] if side)
    return f"{row['number']} {labels(f'point_{point}')}"


def _answered(side: Data, labels: Labels) -> str:
    """What was decided, by whom, with which words."""
    who = who_told(side["who"], labels)
    said = edits_told(side["edits"], side["proposed"], labels)
    said += [f"“{text}”" for text in (side["message"], side["note"]) if text]
    return cut(" · ".join([labels("aside", said=labels("did_" + side["action"]), more=who), *said]), 400)


def _claim(row: Data, *_: Any) -> Any:
    cited = {c["title"] or c["result_id"]: None for side in row["sides"] if side for c in side["citations"]}
    lost = TABLES["claims"].kind(row) == "lost"
    sources = el("div.wb-dim", cut(" · ".join(cited), 240)) if cited else None
    return [el("span.wb-ink.wb-fail" if lost else "span", row["text"]), sources]


def _cited(side: Data, labels: Labels) -> Any:
    marks = [el("span.wb-mark", f"[{c['n']}]", " ", title=c["title"] or c["result_id"]) for c in side["citations"]]
    return marks or el("span.wb-dim", labels("nothing_cited"))


def _piece(piece: Data, _: Data, labels: Labels) -> Any:
    sides = piece["sides"][:1] if piece["sides"][0] else piece["sides"]
    steps = list(dict.fromkeys(f["step_id"] for side in sides if side for f in side["found_by"]))
    title = " ".join(str(piece["title"]).split())
    if not steps:
        return title
    first = steps[0] if len(steps[0]) <= _ID else f"{steps[0][: _ID - 1]}…"
    some = f"{first} +{len(steps) - 1}" if len(steps) > 1 else first
    return [title, el("div.wb-dim", labels("beside_found_by", steps=some), title=cut(", ".join(steps)))]


def _rank(side: Data, labels: Labels) -> Any:
    score = el("div.wb-dim", f"{side['score']:.2f}" if side["score"] >= 0.01 else "<0.01")
    return [el("span", f"#{side['rank']}", title=labels("beside_rank", n=side["rank"])), score]


_STEPS = ("added", "removed", "changed", "same")
_CLAIMS = ("gained", "lost", "recited", "shared")
_PIECES = ("gained", "lost", "moved", "same")
TABLES: Mapping[str, _Table] = {
    "steps": _Table("beside_plan", "step", "beside_all_same", _STEPS, ".wb-nowrap", _step, _ended),
    "decisions": _Table("beside_decisions", "point", "", _STEPS, "", _point, _answered),
    "claims": _Table("beside_answer", "claim", "beside_no_answer", _CLAIMS, "", _claim, _cited),
    "evidence": _Table("beside_evidence", "piece", "beside_no_evidence", _PIECES, ".wb-number", _piece, _rank),
}


# the head


def beside_head(document: Data, labels: Labels, *, differing: bool = False, graft: bool | None = None) -> Markup:
    """Which runs these are, where they part, what differs beside the edit, and what can be done.

    Args:
        document: of the comparison.
        labels: the words.
        differing: whether only differences are shown.
        graft: whether the graft panel is open; None offers none.
    """
    switch = button(labels("only_differences"), "differing", cls="wb-switch", role="switch", aria_checked=differing)
    actions = [switch, button(labels("swap"), "swap", cls="wb-quiet", title=labels("swap_told"))]
    if graft is not None:
        word = labels("graft_close" if graft else "graft_open")
        actions.append(button(word, "panel", aria_expanded=graft))
    runs = [_run(n, run, document, labels) for n, run in enumerate(document["runs"])]
    top = el("div.wb-beside-top", el("div.wb-main", runs), el("div.wb-actions", actions))
    parts = el("p.wb-beside-parts", _parts(document["parts"], labels))
    return el("div.wb-beside-head", top, parts, _caveats(document, labels))


def _run(n: int, run: Data, document: Data, labels: Labels) -> Markup:
    said = run["message"] if n == 0 or run["message"] != document["runs"][0]["message"] else ""
    told = labels("open_run_told", run=run["run_id"])
    return el(
        "div.wb-beside-run",
        letter(n),
        el("span", code(run["run_id"]), " ", glyph(run["status"], labels, said=False), " ", labels(run["status"])),
        button(labels("open_run"), "open", key=run["run_id"], cls="wb-quiet", name=told),
        el("span.wb-dim", _made_from(run, document, labels)) if run["origin"] else None,
        el("span.wb-cut.wb-beside-said", said, title=said) if said else None,
    )


def _made_from(run: Data, document: Data, labels: Labels) -> str:
    """From which run another was made: its letter where it stands beside it, else its id."""
    ids = [one["run_id"] for one in document["runs"]]
    origin = run["origin"]
    return labels("made_from", run=LETTERS[ids.index(origin)] if origin in ids else origin)


def _parts(parts: Data | None, labels: Labels) -> list[Any]:
    """Where the runs part, and what each had there."""
    if parts is None:
        return [el("b.wb-strong", labels("no_difference"))]
    where = labels("they_part", what=labels(f"part_{parts['where']}", name=parts["name"]))
    sides = [el("span", letter(n), " ", _value(value, labels)) for n, value in enumerate(parts["values"])]
    return [el("b.wb-strong", where), *([" ", side] for side in sides)]


def _value(value: Any, labels: Labels) -> str:
    """What a run had at a point, in words: a decision, how a step ended, a list, or anything else."""
    if isinstance(value, Mapping) and "action" in value:
        return _answered(value, labels)
    if isinstance(value, Mapping):
        return " · ".join([labels(value["status"]), value["tool"], labels("n_found", n=value["found"])])
    if isinstance(value, list):
        return cut(labels("comma").join(map(str, value)))
    return "—" if value is None else cut(value)


def caveats(document: Data, labels: Labels) -> tuple[list[Markup], list[Markup]]:
    """Return what else may be the cause of a difference, and what is not known, in words."""
    causes, unknown = list[Markup](), list[Markup]()
    for caveat in document["caveats"]:
        cause = caveat["what"] not in ("unfinished", "no_tape")
        values = caveat["values"] if cause and caveat["what"] != "question" else ()
        sides = [[" ", letter(n), " ", _value(value, labels)] for n, value in enumerate(values)]
        told = labels(f"caveat_{caveat['what']}", name=caveat["name"])
        (causes if cause else unknown).append(el("li", told, sides))
    return causes, unknown


def _caveats(document: Data, labels: Labels) -> Markup | None:
    causes, unknown = caveats(document, labels)
    if not causes and not unknown:
        return None
    first = [el("p.wb-strong", labels("not_only")), el("ul", causes)] if causes else []
    also = [el("ul", unknown)] if unknown else []
    return el("div.wb-band.wb-person", glyph("warning", labels, said=False), el("div", first, also), role="note")


def beside_body(document: Data, labels: Labels, *, differing: bool = False, whole: Collection[str] = ()) -> Markup:
    """The tables and the timing.

    Args:
        document: of the comparison.
        labels: the words.
        differing: leave out what is the same.
        whole: tables shown to their end, of ``steps``, ``claims`` and ``evidence``.
    """
    parts = {name: _part(name, document, labels, differing, name in whole) for name in ("steps", "claims", "evidence")}
    decided = _part("decisions", document, labels, differing, True) if document["decisions"] else None
    cells = [
        el("div.wb-beside-plan", parts["steps"], decided),
        el("div.wb-beside-timing", _timing(document, labels)),
        el("div.wb-beside-claims", parts["claims"]),
        el("div.wb-beside-evidence", parts["evidence"]),
    ]
    grid = el("div.wb-beside-grid" if len(document["runs"]) == 2 else "div.wb-beside-grid.wb-many", cells)
    return el("div", _summary(document, labels), grid)


# the summary

_COLUMNS = ("calls", "pieces", "claims", "took", "tokens", "saved")


def summary(document: Data, labels: Labels) -> tuple[list[str], list[list[Any]]]:
    """Return the heads and the rows of the numbers: one per run, and of two runs the difference."""
    numbers = [_numbers(document, n) for n in range(len(document["runs"]))]
    rows = [
        [letter(n), _chose(document, n, labels), *_counted(told, cost, labels)]
        for n, (told, cost) in enumerate(zip(numbers, document["cost"], strict=True))
    ]
    if len(rows) == 2:
        rows.append(["", labels("beside_difference", first="A", other="B"), *_difference(*numbers)])
    return ["", labels("beside_decided"), *(labels(f"beside_{name}") for name in _COLUMNS)], rows


def _summary(document: Data, labels: Labels) -> Markup:
    heads, rows = summary(document, labels)
    drawn = [el("tr", _numbered("td", row)) for row in rows]
    numbers = table(_numbered("th", heads), drawn)
    return el("div.wb-beside-summary", numbers, el("div.wb-dim", labels("not_waiting")))


def _numbered(tag: str, cells: Sequence[Any]) -> list[Markup]:
    """Cells of which all but the first two are numbers."""
    return [el(tag, cell) for cell in cells[:2]] + [el(f"{tag}.wb-number", cell) for cell in cells[2:]]


def _numbers(document: Data, n: int) -> Counter[str]:
    claims = [row["sides"][n] for row in document["claims"] if row["sides"][n]]
    cost = document["cost"][n]
    numbers = {name: cost[name] for name in ("calls", "saved_calls", "evidence", "total_s", "tokens")}
    return Counter({**numbers, "claims": len(claims), "cited": sum(bool(side["citations"]) for side in claims)})


def _counted(told: Data, cost: Data, labels: Labels) -> Sequence[str]:
    spared = [saved_told(cost, labels)]
    spared += [labels("beside_saved_tokens", n=f"{cost['saved_tokens']:,}")] if cost["saved_tokens"] else []
    return (
        f"{told['calls']} + {told['saved_calls']}",
        str(told["evidence"]),
        labels("beside_of", n=told["cited"], most=told["claims"]) if told["claims"] else "–",
        milliseconds(told["total_s"] * 1000),
        tokens_told(told["tokens"], cost["about"], labels) if told["tokens"] else "–",
        labels("comma").join(spared) if told["saved_calls"] else "–",
    )


def _difference(first: Counter[str], other: Counter[str]) -> Sequence[str]:
    """The second run less the first."""
    other.subtract(first)
    steps, seconds = other["calls"] + other["saved_calls"], other["total_s"]
    took = f"{'−' if seconds < 0 else '+'}{milliseconds(abs(seconds) * 1000)}"
    return _signed(steps), _signed(other["evidence"]), _signed(other["cited"]), took, _signed(other["tokens"]), ""


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{abs(value):,}"


def _chose(document: Data, n: int, labels: Labels) -> str:
    """What a run decided where they decided otherwise."""
    rows = [row for row in document["decisions"] if row["sides"][n]]
    if not rows:
        return labels("beside_asked_nobody")
    told = [_decision(row["sides"][n], labels) for row in rows if not row["same"]]
    return labels("comma").join(told[:2]) if told else labels("beside_decided_alike")


def _decision(side: Data, labels: Labels) -> str:
    edited = labels("comma").join(sorted(side["edits"]))
    fields = cut(f" ({edited})" if edited else "", 60)
    return f"{labels('point_' + side['point'])}{labels('colon')}{labels('did_' + side['action'])}{fields}"


# timing

_PARTS = (
    ("taped", "saved_s", "beside_recorded"),
    ("search", "retrieval_s", "beside_searching"),
    ("answer", "generation_s", "beside_answering"),
)


def _timing(document: Data, labels: Labels) -> Markup:
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


def _lane(n: int, cost: Data, whole: float, labels: Labels) -> Markup:
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


# the same as text

_PARTS_READ = ("steps", "decisions", "evidence", "claims")


def beside(document: Data, labels: Labels) -> list[Block]:
    """Return the blocks of a comparison; tables in which nothing differs are left out."""
    runs = [((read(_run(n, run, document, labels)), ""),) for n, run in enumerate(document["runs"])]
    blocks: list[Block] = [Lines((*runs, ((read(joined(_parts(document["parts"], labels))), "strong"),)))]
    causes, unknown = ([((read(line), ""),) for line in lines] for lines in caveats(document, labels))
    blocks += [Lines((((labels("not_only"), "strong"),), *causes), mark="paused")] if causes else []
    blocks += [Lines(tuple(unknown), mark="interrupted")] if unknown else []
    for name in _PARTS_READ:
        made = part(name, document, labels, differing=True)
        notes = [labels("and_more", n=made.left)] if made.left else []
        blocks += [_read_table(f"{made.title} · {made.counts}", made.heads, made.rows, notes)] if made.rows else []
    heads, rows = summary(document, labels)
    times = [f"{LETTERS[n]} {_time(cost, labels)}" for n, cost in enumerate(document["cost"])]
    return [*blocks, _read_table(labels("cost"), heads, rows, [*times, labels("not_waiting")])]


def _time(cost: Data, labels: Labels) -> str:
    saved = f" · {saved_told(cost, labels)}" if cost["saved_calls"] else ""
    return took_told(cost, labels) + saved


def _read_table(title: str, heads: Iterable[Any], rows: Iterable[Iterable[Any]], notes: Sequence[str]) -> Block:
    read_rows = [tuple(read(joined([cell])) for cell in row) for row in rows]
    return clipped(title, [Column(read(joined([head]))) for head in heads], read_rows, notes=notes)
