"""Two to four runs side by side as blocks: what each decided, ran, found, said and took, with a sign per change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from workbench.views.labels import Labels, milliseconds
from workbench.views.labels.sentences import edits_told, saved_told, tokens_told, took_told, who_told
from workbench.views.outline import Block, Column, Lines, clipped, columns, one_line
from workbench.views.page import Data, cut, draw
from workbench.views.plan_graph import fields_told

LETTERS = "ABCD"
MOST_ROWS = 40
"""Rows that are shown of a table; ``Comparison.to_dict()`` has all."""
_SAME = ("same", "shared")
_ORDER = ("added", "gained", "removed", "lost", "changed", "moved", "recited", *_SAME)
"""Kinds of change, the weightiest first."""


def change(kind: str, labels: Labels) -> str:
    """Return the sign and the word of a change.

    >>> change("gained", Labels("en")), change("same", Labels("zh"))
    ('+ gained', '= 相同')
    """
    return labels(f"beside_{kind}" if kind in _SAME else kind)


def beside(document: Data, labels: Labels, differing: bool = True) -> list[Block]:
    """Return the blocks of a comparison; with ``differing`` without the rows that are the same."""
    tables = (block for name in _PARTS for block in _table(name, document, labels, differing))
    return [_head(document, labels), *_caveats(document, labels), *tables, _cost(document, labels)]


def bar(document: Data, labels: Labels, *, differing: bool, graft: bool) -> Markup:
    """Return the buttons above a comparison.

    Args:
        document: of the comparison.
        labels: the words.
        differing: whether only differences are shown.
        graft: whether the graft panel is open.
    """
    return draw("graft.bar", labels=labels, runs=lettered(document), differing=differing, graft=graft)


def lettered(document: Data) -> list[tuple[str, Data]]:
    """Return the runs of a comparison, each with its letter."""
    return list(zip(LETTERS, document["runs"], strict=False))


def _head(document: Data, labels: Labels) -> Block:
    """Which runs these are, and where they first differ."""
    runs, parts = document["runs"], document["parts"]
    letters = dict(zip((run["run_id"] for run in runs), LETTERS, strict=False))
    lines = []
    for letter, run in zip(LETTERS, runs, strict=False):
        facts = [run["run_id"], labels.status(run["status"])]
        if origin := run["origin"]:
            facts.append(labels("made_from", run=letters.get(origin, origin)))
        if letter == "A" or run["message"] != runs[0]["message"]:
            facts.append(one_line(run["message"]))
        lines.append(((f"{letter} ", "strong"), (cut(" · ".join(facts), 400), "")))
    text = labels("no_difference")
    if parts:
        text = labels("they_part", what=labels(f"part_{parts['where']}", name=parts["name"]))
    where = ((cut(text, 200), "strong"), (_each(parts["values"], labels) if parts else "", ""))
    return Lines((*lines, where))


def _each(values: Any, labels: Labels) -> str:
    """What each run had at a point."""
    return "".join(f" {letter} {_value(value, labels)}" for letter, value in zip(LETTERS, values, strict=False))


def _value(value: Any, labels: Labels) -> str:
    if isinstance(value, Mapping) and "action" in value:
        return _answered(value, labels)
    if isinstance(value, Mapping):
        value = " · ".join([labels(value["status"]), value["tool"], labels("n_found", n=value["found"])])
    if isinstance(value, list):
        value = labels("comma").join(map(str, value))
    return "—" if value is None else cut(value)


def _caveats(document: Data, labels: Labels) -> Iterator[Block]:
    """What else may be the cause of a difference, then what is not known."""
    lines: dict[str, list[Any]] = {"paused": [((labels("not_only"), "strong"),)], "interrupted": []}
    for caveat in document["caveats"]:
        what = caveat["what"]
        mark = "interrupted" if what in ("unfinished", "no_tape") else "paused"
        values = () if what == "question" or mark == "interrupted" else caveat["values"]
        text = cut(labels(f"caveat_{what}", name=caveat["name"]), 200) + _each(values, labels)
        lines[mark].append(((text, ""),))
    if len(lines["paused"]) > 1:
        yield Lines(tuple(lines["paused"]), mark="paused")
    if lines["interrupted"]:
        yield Lines(tuple(lines["interrupted"]), mark="interrupted")


class _Part(NamedTuple):
    """A table: its title, what its rows are, the text of a row, and how that is in one run."""

    title: str
    what: str
    subject: Callable[[Data, Data, Labels], str]
    cell: Callable[[Data, Labels], str]


def _table(name: str, document: Data, labels: Labels, differing: bool) -> Iterator[Block]:
    part = _PARTS[name]
    counts, rows = Counter[str](), []
    for row in document[name]:
        kind = _kind(row)
        counts[kind] += 1
        if not differing or kind not in _SAME or row.get("text_differs"):
            rows.append((counts[kind], kind, row))
    if not rows:
        return
    summary = labels("comma").join(labels(f"count_{kind}", n=counts[kind]) for kind in _ORDER if counts[kind])
    first = sorted(rows, key=itemgetter(0))[:MOST_ROWS]  # some of each kind
    cells = []
    for _, _, row in sorted(first, key=lambda entry: _ORDER.index(entry[1])):
        sides = (part.cell(side, labels) if side else "–" for side in row["sides"])
        cells.append((_changes(row, labels), part.subject(row, document, labels), *sides))
    letters = (Column(letter) for letter in LETTERS[: len(document["runs"])])
    heads = (Column(labels("change"), "change"), Column(labels(part.what)), *letters)
    notes = [labels("and_more", n=len(rows) - MOST_ROWS)] if len(rows) > MOST_ROWS else []
    yield clipped(f"{labels(part.title)} · {summary}", heads, cells, notes=notes)


def _kind(row: Data) -> str:
    """The change of a row as a whole: the weightiest among the runs."""
    changes = row.get("changes") or ["same" if row["same"] else "changed"]
    return min(filter(None, changes), key=_ORDER.index, default="same")


def _changes(row: Data, labels: Labels) -> str:
    """The changes of a row; by run where there are more than two."""
    changes = row.get("changes", ())
    lines = [change(_kind(row), labels)]
    if len(changes) > 1:
        lines = [f"{change(kind, labels)} {LETTERS[n]}" for n, kind in enumerate(changes, 1) if kind]
    return "\n".join([*lines, *([change("reworded", labels)] if row.get("text_differs") else [])])


def _step(row: Data, document: Data, labels: Labels) -> str:
    tools = dict.fromkeys(side["tool"] for side in row["sides"] if side)
    lines = [" ".join([row["step_id"], *tools])]
    for letter, diff in zip(LETTERS[1:], document["plan"], strict=False):
        fields = dict((diff or {}).get("changed", {}).get(row["step_id"], {}))
        fields.pop("tool", None)  # both are behind the step's name
        lines += [f"{letter} {line}" for line in fields_told(fields, labels)]
    return "\n".join(lines)


def _ended(side: Data, labels: Labels) -> str:
    took = labels("beside_recorded") if side["replayed"] else milliseconds(side["seconds"] * 1000)
    return f"{labels.status(side['status'])} · {took} · {labels('n_found', n=side['found'])}"


def _point(row: Data, _: Data, labels: Labels) -> str:
    point = next(side["point"] for side in row["sides"] if side)
    return f"{row['number']} {labels(f'point_{point}')}"


def _answered(side: Data, labels: Labels) -> str:
    """What was decided, by whom, with which words."""
    edits = edits_told(side["edits"], side["proposed"], labels)
    words = [f"“{text}”" for text in (side["message"], side["note"]) if text]
    action = labels("aside", said=labels("did_" + side["action"]), more=who_told(side["who"], labels))
    return cut(" · ".join([action, *edits, *words]), 400)


def _claim(row: Data, *_: Any) -> str:
    return str(row["text"])


def _cited(side: Data, labels: Labels) -> str:
    cited = [f"[{c['n']}] {one_line(c['title'] or c['result_id'])}" for c in side["citations"]]
    return " · ".join(cited) or labels("nothing_cited")


def _piece(row: Data, _: Data, labels: Labels) -> str:
    first = next(side for side in row["sides"] if side)
    steps, title = list(dict.fromkeys(found["step_id"] for found in first["found_by"])), one_line(row["title"])
    if not steps:
        return title
    more = f" +{len(steps) - 1}" if len(steps) > 1 else ""
    return labels("aside", said=title, more=labels("beside_found_by", steps=cut(steps[0], 60) + more))


def _rank(side: Data, _: Labels) -> str:
    return f"#{side['rank']} {side['score']:.2f}"


_PARTS: Mapping[str, _Part] = {
    "steps": _Part("beside_plan", "step", _step, _ended),
    "decisions": _Part("beside_decisions", "point", _point, _answered),
    "claims": _Part("beside_answer", "claim", _claim, _cited),
    "evidence": _Part("beside_evidence", "piece", _piece, _rank),
}


def _cost(document: Data, labels: Labels) -> Block:
    """The numbers, one row per run."""
    rows, notes = [], []
    for letter, n, cost in zip(LETTERS, range(len(document["runs"])), document["cost"], strict=False):
        claims = [row["sides"][n] for row in document["claims"] if row["sides"][n]]
        cited = sum(bool(side["citations"]) for side in claims)
        saved = [saved_told(cost, labels)] if cost["saved_calls"] else []
        saved += [labels("beside_saved_tokens", n=f"{cost['saved_tokens']:,}")] if cost["saved_tokens"] else []
        cells = (letter, f"{cost['calls']} + {cost['saved_calls']}", str(cost["evidence"]))
        tokens = tokens_told(cost["tokens"], cost["about"], labels)
        shares = labels("beside_of", n=cited, most=len(claims))
        rows.append((*cells, shares, tokens, labels("comma").join(saved)))
        notes.append(f"{letter} {took_told(cost, labels)}")
    names = ("calls:number", "pieces:number", "claims", "tokens:number", "saved")
    heads = columns(labels, "", *(f"beside_{name}" for name in names))
    return clipped(labels("cost"), heads, rows, notes=[*notes, labels("not_waiting")])
