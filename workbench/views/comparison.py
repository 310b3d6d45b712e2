"""Two to four runs side by side as blocks, with a sign per change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from workbench.state import Data
from workbench.views.blocks import (
    INSET,
    Block,
    Lines,
    Paragraph,
    Table,
    answer_blocks,
    clipped,
    columns,
)
from workbench.views.edits import decision_texts, field_changes, field_title, fork_name
from workbench.views.labels import Labels, milliseconds, percent, phase_name, reviewer_name
from workbench.views.markup import draw

LETTERS = "ABCD"
_MOST_ROWS = 40
"""Rows of a table that are shown; ``Comparison.to_dict()`` has all."""
_SAME = ("same", "shared")
_ORDER = (
    *["differ", "added", "gained", "removed", "lost", "changed", "moved", "recited", "open"],
    *_SAME,
)
"""Kinds of change, the most important first."""
_ONLY = {"added": "only_b", "gained": "only_b", "removed": "only_a", "lost": "only_a"}


def change(kind: str, labels: Labels) -> str:
    """Return the sign and the word of a change.

    >>> change("gained", Labels("en")), change("same", Labels("zh"))
    ('+ gained', '= 相同')
    """
    return labels(f"beside_{kind}" if kind in _SAME else kind)


def _kind_shown(kind: str, document: Data) -> str:
    """Return the kind of a change; of two runs the one that alone has it. Another question gains and loses nothing."""
    runs = document["runs"]
    if len(runs) == 2:
        return _ONLY.get(kind, kind)
    questions = {run["message"] for run in runs}
    return "in_some" if kind in _ONLY and len(questions) > 1 else kind


def beside(document: Data, labels: Labels) -> list[Block]:
    """Return the runs, a verdict, the answers, then what differs, and the metrics."""
    parts = {name: _part(name, document, labels) for name in _PARTS if document[name]}
    verdict = [
        labels(f"verdict_{parts[name][0]}_{name}", counts=parts[name][1])
        for name in ("claims", "evidence")
        if name in parts
    ]
    return [
        *_lines("runs", document, labels),
        *_lines("verdict", document, labels, texts=verdict),
        *_lines("causes", document, labels, mark="paused"),
        *_lines("unknown", document, labels, mark="interrupted"),
        *(block for _, _, block in parts.values() if block),
        _figures(document, labels),
    ]


def _lines(
    name: str, document: Data, labels: Labels, mark: str = "", **about: Any
) -> Iterator[Lines]:
    """Yield the lines of a macro, if it has any: a verdict is strong, the letter of a run is set apart."""
    lines = _text(name, labels, document=document, **about).splitlines()
    if lines:
        yield Lines([_paragraph(line) for line in lines], mark)


def _paragraph(line: str) -> Paragraph:
    if line[1:2] != " " or line[0] not in "=~○ABCD":
        return line
    return [(line[0], "letter"), line[1:]] if line[0] in LETTERS else (line, "strong")


def _text(name: str, labels: Labels, **about: Any) -> str:
    return draw(f"beside.{name}", labels, words=_WORDS, **about).unescape()


def _part(name: str, document: Data, labels: Labels) -> tuple[str, str, Block | None]:
    """Return whether a part is the ``same``, its counts, and its table: change, subject, and state in each run.

    Of equal rows it has those of the answers; an answer that is the same in all runs is folded.
    """
    counts = Counter[str]()
    rows = list[Data]()
    kinds = set[str]()
    for row in document[name]:
        kind = _kind(row)
        same = kind in _SAME and not row.get("text_differs")
        counts[_kind_shown(kind, document)] += 1
        if not same or name == "claims":
            rows.append(row)
            differs = "open" if kind == "open" else "other"
            kinds.add("same" if same else differs)
    state = min(kinds, key=("other", "open", "same").index, default="same")
    if name == "evidence":
        rows.sort(key=lambda row: _ORDER.index(_kind(row)))
    elif name == "claims" and len(document["runs"]) == 2:
        rows = [*_paired(rows), *(row for row in rows if all(row["sides"]))]
    letters = LETTERS[: len(document["runs"])]
    kind = "number" if name == "evidence" else "text"
    heads = columns(
        labels, "change:change", _PARTS[name], *(f"{letter}:{kind}" for letter in letters)
    )
    cells = [
        (
            _changes(row, document, labels),
            _text(f"of_{name}", labels, row=row, document=document),
            *(
                _text(f"side_{name}", labels, side=side, row=row) if side else "–"
                for side in row["sides"]
            ),
        )
        for row in rows[:_MOST_ROWS]
    ]
    notes = [labels("and_more", n=len(rows) - _MOST_ROWS)] if len(rows) > _MOST_ROWS else []
    summary = labels("comma").join(
        labels(f"count_{kind}", n=counts[kind])
        for kind in dict.fromkeys(_kind_shown(kind, document) for kind in _ORDER)
        if counts[kind]
    )
    title = f"{labels(f'beside_{name}')} · {summary}"
    answer = document["runs"][0]["answer"]
    if name == "claims" and state == "same" and answer:
        inside = tuple(answer_blocks(answer, "", labels))
        return state, summary, Table(title, (), (), False, inside=inside)
    if not rows:  # that evidence is the same is in the verdict
        return state, summary, None if name == "evidence" else Lines([f"= {title}"])
    if name == "evidence":
        notes.append(labels("beside_rank"))
    table = clipped(title, heads, cells, notes=notes)
    if name == "steps":
        table = replace(table, inside=tuple(_lines("effects", document, labels)))
    return state, summary, table


def _paired(rows: Sequence[Data]) -> Iterator[Data]:
    """Yield what only the first of two answers says next to what only the second says, in their order."""
    alone = [[row for row in rows if not row["sides"][n]] for n in (1, 0)]
    for first, second in zip_longest(*alone):
        yield {
            "changes": ["differ"] if first and second else (first or second)["changes"],
            "sides": [first and first["sides"][0], second and second["sides"][1]],
        }


def _kind(row: Data) -> str:
    """Return the most important change of a row among the runs."""
    return min(filter(None, row["changes"]), key=_ORDER.index, default="same")


def _changes(row: Data, document: Data, labels: Labels) -> str:
    """Return the most important change of a row, and whether its text is another."""
    kinds = [
        _kind_shown(_kind(row), document),
        *(["reworded"] if row.get("text_differs") else []),
    ]
    return "\n".join(change(kind, labels) for kind in kinds)


_WORDS = {
    "who": reviewer_name,
    "decision": decision_texts,
    "fields": field_changes,
    "fork": fork_name,
    "field": field_title,
}
_PARTS = {"claims": "claim", "evidence": "piece", "steps": "step", "decisions": "point"}
"""Each table, with the heading of its rows; their texts are in the template."""
_COUNTS = (
    *("needs_met", "statements", "citation_recall"),
    *("found", "evidence", "in_prompt", "cited"),
    *("total_s", "calls", "tokens"),
)
"""What was reached, then how, then what it cost."""
_SAVED = {"total_s": "saved_s", "calls": "saved_calls", "tokens": "saved_tokens"}
"""Costs, each with the part that a recording saved: to reuse work is not to be faster."""


def _figures(document: Data, labels: Labels) -> Block:
    """Return the figures that any run has, a column per run; of two runs their difference too."""
    costs = document["cost"]
    lines = []
    for name in _COUNTS:
        title = labels(f"metric_{name}")
        values = [cost[name] or 0 for cost in costs]
        saved = [cost[_SAVED[name]] or 0 for cost in costs] if name in _SAVED else []
        if any(saved):
            values = [*map(sum, zip(values, saved, strict=True))]
            lines.append((name, labels("metric_whole", what=title), values))
            lines.append((_SAVED[name], labels("metric_saved", what=title), saved))
        else:
            lines.append((name, title, values))
    for phase in dict.fromkeys(name for cost in costs for name in cost["phases"]):
        title = phase_name(phase, labels)
        spans = [cost["phases"].get(phase, 0) for cost in costs]
        lines.append(("phase_s", f"{INSET}{title[:1].upper()}{title[1:]}", spans))
    rows = []
    for name, title, values in lines:
        if not any(values):
            continue
        write: Callable[[Any], str] = percent if name == "citation_recall" else "{:,}".format
        if name.endswith("_s"):
            write = milliseconds
            values = [1000 * value for value in values]
        cells = [write(value) if value else "0" for value in values]
        if len(values) == 2:
            digits = None if name.endswith("_s") else 2
            before, after = (round(value, digits) for value in values)
            change = after - before  # of what is shown
            sign = "+" if change > 0 else "−"
            cells.append(sign + write(abs(change)) if change else "=")
        about = name == "tokens" and any(cost["about"] for cost in costs)
        rows.append((title + (labels("beside_about") if about else ""), *cells))
    heads = [*LETTERS[: len(costs)]]
    if len(costs) == 2:
        heads += ["B − A"]
    return clipped(
        labels("cost"),
        columns(labels, "beside_figure", *(f"{head}:number" for head in heads)),
        rows,
        notes=[labels("not_waiting")],
    )
