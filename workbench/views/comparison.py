"""Two to four runs side by side as blocks, with a sign per change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from workbench.state import Data
from workbench.views.blocks import (
    INSET,
    Block,
    Column,
    Lines,
    Paragraph,
    Table,
    answer_blocks,
    clipped,
    columns,
    one_line,
)
from workbench.views.edits import decision_texts, field_changes, fork_name
from workbench.views.labels import Labels, milliseconds, percent
from workbench.views.labels.sentences import decision_name, phase_name, reviewer_name
from workbench.views.markup import cut, draw, step_name

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


def _of_two(kind: str, document: Data) -> str:
    """Return the kind of a change; of two runs the one that alone has it."""
    return _ONLY.get(kind, kind) if len(document["runs"]) == 2 else kind


def beside(document: Data, labels: Labels) -> list[Block]:
    """Return the runs, a verdict, the answers, then what differs, and the metrics."""
    parts = {name: _part(name, document, labels) for name in _PARTS if document[name]}
    verdict = [
        labels(f"verdict_{parts[name][0]}_{name}", counts=parts[name][1])
        for name in ("claims", "evidence")
        if name in parts
    ]
    return [
        _runs(document, labels),
        _verdict(document, verdict, labels),
        *_caveats(document, labels),
        *(block for _, _, block in parts.values() if block),
        _figures(document, labels),
    ]


def _runs(document: Data, labels: Labels) -> Block:
    lines = list[Paragraph]()
    for letter, run in zip(LETTERS, document["runs"], strict=False):
        name = fork_name(run["changes"], labels)
        facts = [run["run_id"], name and f"↳ {name}"]
        if letter == "A" or run["message"] != document["runs"][0]["message"]:
            facts.append(one_line(run["message"]))
        lines.append([(f"{letter} ", "strong"), cut(" · ".join(filter(None, facts)), 400)])
    return Lines(lines)


def _verdict(document: Data, texts: Sequence[str], labels: Labels) -> Block:
    """Return whether answers and evidence are the same, and where the runs first differ."""
    parts = document["parts"]
    if not parts:
        return Lines([(labels("no_difference"), "strong")])
    titles = document["titles"]
    name = titles.get(parts["name"], parts["name"])
    name = decision_name(name, labels) if parts["where"] == "decision" else name
    what = labels(f"part_{parts['where']}", name=name)
    values = parts["values"]
    lines: list[Paragraph] = [
        *((text, "strong") for text in texts),
        *_text("effects", labels, document=document).splitlines(),
        cut(step_name(labels("they_part", what=what)), 200),
    ]
    if any(value != values[0] for value in values):  # else the steps tell
        sides = zip(LETTERS, values, strict=False)
        lines += [
            [(letter, "letter"), f" {_side_text(value, labels, titles)}"]
            for letter, value in sides
            if value is not None
        ]
    return Lines(lines)


def _side_text(value: Any, labels: Labels, titles: Mapping[str, str] = {}) -> str:
    if isinstance(value, Mapping):
        name = "side_decisions" if "action" in value else "side_step"
        return _text(name, labels, side=value, row={})
    if isinstance(value, list):
        value = labels("comma").join(titles.get(item) or step_name(item) for item in value)
    return "—" if value is None else cut(value, 300)


def _text(name: str, labels: Labels, **about: Data) -> str:
    return draw(f"beside.{name}", labels, words=_WORDS, **about).unescape()


def _caveats(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield other possible causes of a difference, then what is unknown."""
    causes = list[str]()
    unknown = list[str]()
    first = document["parts"]
    for caveat in document["caveats"]:
        what = caveat["what"]
        if first and (what, caveat["name"]) == (first["where"], first["name"]):
            continue  # the verdict has it
        texts = [cut(labels(f"caveat_{what}", name=caveat["name"]), 200)]
        if what not in ("unfinished", "no_tape", "question"):
            values = zip(LETTERS, caveat["values"], strict=False)
            texts += [f"{letter} {_side_text(value, labels)}" for letter, value in values]
        (unknown if what in ("unfinished", "no_tape") else causes).append(" · ".join(texts))
    if causes:
        yield Lines([(labels("not_only"), "strong"), *causes], mark="paused")
    if unknown:
        yield Lines(unknown, mark="interrupted")


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
        counts[kind] += 1
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
        labels(f"count_{_of_two(kind, document)}", n=counts[kind])
        for kind in _ORDER
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
    return state, summary, clipped(title, heads, cells, notes=notes)


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
    kinds = [_of_two(_kind(row), document), *(["reworded"] if row.get("text_differs") else [])]
    return "\n".join(change(kind, labels) for kind in kinds)


_WORDS = {"who": reviewer_name, "decision": decision_texts, "fields": field_changes}
_PARTS = {"claims": "claim", "evidence": "piece", "steps": "step", "decisions": "point"}
"""Each table, with the heading of its rows; their texts are in the template."""
_COUNTS = (
    "needs_met",
    "citation_recall",
    "statements",
    "cited",
    "in_prompt",
    "evidence",
    "found",
    "total_s",
    "whole_s",
    "calls",
    "saved_calls",
    "tokens",
    "saved_tokens",
)
"""What was reached, then what it cost; ``whole_s`` is the time without reuse, where something was reused."""


def _figures(document: Data, labels: Labels) -> Block:
    """Return the figures that any run has, a column per run; of two runs their difference too.

    The phases below the time add up to it.
    """
    costs = document["cost"]
    reused = any(cost["saved_s"] for cost in costs)
    costs = [cost | {"whole_s": reused * (cost["total_s"] + cost["saved_s"])} for cost in costs]
    lines = [
        (name, labels(f"metric_{name}"), [cost[name] or 0 for cost in costs]) for name in _COUNTS
    ]
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
            change = values[1] - values[0]
            sign = "+" if change > 0 else "−"
            cells.append(sign + write(abs(change)) if change else "=")
        about = name == "tokens" and any(cost["about"] for cost in costs)
        rows.append((title + (labels("beside_about") if about else ""), *cells))
    heads = [Column(letter, "number") for letter in LETTERS[: len(costs)]]
    if len(costs) == 2:
        heads.append(Column("B − A", "number"))
    return clipped(
        labels("cost"),
        [*columns(labels, "beside_figure"), *heads],
        rows,
        notes=[labels("not_waiting")],
    )
