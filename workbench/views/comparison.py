"""Two to four runs side by side as blocks, with a sign per change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from workbench.state import Data
from workbench.views.blocks import Block, Column, Lines, Paragraph, clipped, columns, one_line
from workbench.views.edits import decision_texts, field_changes, fork_name
from workbench.views.labels import Labels, milliseconds, percent, score_text
from workbench.views.labels.sentences import (
    decision_name,
    reviewer_name,
)
from workbench.views.markup import cut, step_name

LETTERS = "ABCD"
_MOST_ROWS = 40
"""Rows of a table that are shown; ``Comparison.to_dict()`` has all."""
_SAME = ("same", "shared")
_ORDER = (*["added", "gained", "removed", "lost", "changed", "moved", "recited", "open"], *_SAME)
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
    """Return the runs, a verdict, the answers, then what differs; of equal rows only those of the answer."""
    parts = {name: _part(name, document, labels) for name in _PARTS if document[name]}
    verdict = [
        labels(f"verdict_{parts[name][0]}_{name}", counts=parts[name][1])
        for name in ("claims", "evidence")
        if name in parts
    ]
    tables = [
        parts[name][2]
        for name in sorted(parts, key=lambda name: (parts[name][0] == "same", name != "claims"))
    ]
    blocks = [
        _runs(document, labels),
        _verdict(document, verdict, labels),
        *_caveats(document, labels),
    ]
    return [*blocks, _figures(document, labels), *tables]


def lettered(document: Data) -> list[tuple[str, Data]]:
    """Return the runs of a comparison, each with its letter."""
    return list(zip(LETTERS, document["runs"], strict=False))


def _runs(document: Data, labels: Labels) -> Block:
    """Return one line per run."""
    lines = list[Paragraph]()
    for letter, run in lettered(document):
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
    name = decision_name(parts["name"], labels) if parts["where"] == "decision" else parts["name"]
    what = labels(f"part_{parts['where']}", name=name)
    where = cut(step_name(labels("they_part", what=what)), 200)
    values = parts["values"]
    lines: list[Paragraph] = [(labels("semicolon").join(texts), "strong"), where]
    if any(value != values[0] for value in values):  # else the steps tell
        sides = zip(LETTERS, values, strict=False)
        lines += [
            [(f"{letter} ", "strong"), _side_text(value, labels)]
            for letter, value in sides
            if value is not None
        ]
    return Lines(lines)


def _side_text(value: Any, labels: Labels) -> str:
    if isinstance(value, Mapping) and "action" in value:
        return _decided(value, labels)
    if isinstance(value, Mapping):
        value = f"{labels(value['status'])} · {value['tool']} · {_result_text(value, labels)}"
    if isinstance(value, list):
        value = labels("comma").join(map(step_name, value))
    return "—" if value is None else cut(value)


def _caveats(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield other possible causes of a difference, then what is unknown."""
    causes = list[str]()
    unknown = list[str]()
    for caveat in document["caveats"]:
        what = caveat["what"]
        texts = [cut(labels(f"caveat_{what}", name=caveat["name"]), 200)]
        if what not in ("unfinished", "no_tape", "question"):
            values = zip(LETTERS, caveat["values"], strict=False)
            texts += [f"{letter} {_side_text(value, labels)}" for letter, value in values]
        (unknown if what in ("unfinished", "no_tape") else causes).append(" · ".join(texts))
    if causes:
        yield Lines([(labels("not_only"), "strong"), *causes], mark="paused")
    if unknown:
        yield Lines(unknown, mark="interrupted")


def _part(name: str, document: Data, labels: Labels) -> tuple[str, str, Block]:
    """Return whether a part is the ``same``, its counts, and its table: change, subject, and state in each run."""
    title, what, subject, cell = _PARTS[name]
    counts = Counter[str]()
    rows = []
    kinds = set[str]()
    faint = 0
    for row in document[name]:
        kind = _kind(row)
        same = kind in _SAME and not row.get("text_differs")
        if not same and name == "evidence" and all(s["score"] < 0.005 for s in row["sides"] if s):
            faint += 1
            continue
        counts[kind] += 1
        if not same or name == "claims":
            rows.append((counts[kind], kind, row))
            differs = "open" if kind == "open" else "other"
            kinds.add("same" if same else differs)
    equal = "faint" if faint else "same"
    state = min(kinds, key=("other", "open", "same").index, default=equal)
    first = sorted(rows, key=itemgetter(0))[:_MOST_ROWS]  # some of each kind
    cells = []
    for _, _, row in sorted(first, key=lambda entry: _ORDER.index(entry[1])):
        sides = (cell(side, labels) if side else "–" for side in row["sides"])
        cells.append((_changes(row, document, labels), subject(row, document, labels), *sides))
    heads = (
        *columns(labels, "change:change", what),
        *(Column(letter) for letter, _ in lettered(document)),
    )
    notes = [labels("and_more", n=len(rows) - _MOST_ROWS)] if len(rows) > _MOST_ROWS else []
    notes += [labels("beside_faint", n=faint)] if faint else []
    summary = labels("comma").join(
        labels(f"count_{_of_two(kind, document)}", n=counts[kind])
        for kind in _ORDER
        if counts[kind]
    )
    title = f"{labels(title)} · {summary}"
    return (
        state,
        summary,
        clipped(title, heads, cells, notes=notes) if rows or faint else Lines([(title, "dim")]),
    )


def _kind(row: Data) -> str:
    """Return the most important change of a row among the runs."""
    return min(filter(None, row["changes"]), key=_ORDER.index, default="same")


def _changes(row: Data, document: Data, labels: Labels) -> str:
    """Return the changes of a row; by run where there are more than two."""
    changes = row["changes"]
    lines = [change(_of_two(_kind(row), document), labels)]
    if len(changes) > 1:
        lines = [
            f"{change(kind, labels)} {LETTERS[n]}" for n, kind in enumerate(changes, 1) if kind
        ]
    return "\n".join([*lines, *([change("reworded", labels)] if row.get("text_differs") else [])])


def _step(row: Data, document: Data, labels: Labels) -> str:
    tools = dict.fromkeys(side["tool"] for side in row["sides"] if side)
    lines = [" · ".join([step_name(row["step_id"]), *tools])]
    for letter, diff in zip(LETTERS[1:], document["plan"], strict=False):
        fields = dict((diff or {}).get("changed", {}).get(row["step_id"], {}))
        fields.pop("tool", None)  # both are behind the step's name
        lines += [f"{letter} {line}" for line in field_changes(fields, labels)]
    return "\n".join(lines)


def _ended(side: Data, labels: Labels) -> str:
    took = labels("beside_recorded") if side["replayed"] else milliseconds(side["seconds"] * 1000)
    took = labels("edit_results") if side["by_hand"] else took
    return f"{labels.status(side['status'])} · {took} · {_result_text(side, labels)}"


def _result_text(side: Data, labels: Labels) -> str:
    """Return what a step gave as text, of a recorded graph, or how much it found."""
    return cut(side["text"], 200) or labels("n_found", n=side["found"])


def _point(row: Data, _: Data, labels: Labels) -> str:
    point = next(side["point"] for side in row["sides"] if side)
    return decision_name(f"{row['number']}-{point}", labels)


def _decided(side: Data, labels: Labels) -> str:
    """Return a decision: the action, the person, the edits and the words."""
    action = labels(
        "aside", said=labels("did_" + side["action"]), more=reviewer_name(side["who"], labels)
    )
    texts = decision_texts(side, labels)
    return cut(step_name(" · ".join([action, *texts])), 400)


def _cited(side: Data, labels: Labels) -> str:
    cited = [f"[{c['n']}] {one_line(c['title'] or c['result_id'])}" for c in side["citations"]]
    return " · ".join(cited) or labels("nothing_cited")


def _piece(row: Data, _: Data, labels: Labels) -> str:
    first = next(side for side in row["sides"] if side)
    steps = list(dict.fromkeys(finding["step_id"] for finding in first["found_by"]))
    title = one_line(row["title"])
    if not steps:
        return title
    more = f" +{len(steps) - 1}" if len(steps) > 1 else ""
    return labels(
        "aside",
        said=title,
        more=labels("beside_found_by", steps=cut(step_name(steps[0]), 60) + more),
    )


_PARTS: Mapping[
    str, tuple[str, str, Callable[[Data, Data, Labels], str], Callable[[Data, Labels], str]]
] = {
    "claims": ("beside_answer", "claim", lambda row, *_: str(row["text"]), _cited),
    "steps": ("beside_plan", "step", _step, _ended),
    "decisions": ("beside_decisions", "point", _point, _decided),
    "evidence": (
        "beside_evidence",
        "piece",
        _piece,
        lambda side, _: f"#{side['rank']} {score_text(side['score'])}",
    ),
}
"""Each table: its title, the heading of its rows, the text of a row, and its state in one run."""


_COUNTS = (
    "statements",
    "citation_recall",
    "evidence",
    "calls",
    "saved_calls",
    "tokens",
    "saved_tokens",
)
_SPANS = ("total_s", "retrieval_s", "generation_s", "saved_s")


def _figures(document: Data, labels: Labels) -> Block:
    """Return the figures that any run has, a column per run; of two runs their difference too."""
    rows = []
    for name in _COUNTS + _SPANS:
        values = [cost[name] or 0 for cost in document["cost"]]
        if not any(values):
            continue
        written = (
            percent
            if name == "citation_recall"
            else milliseconds
            if name in _SPANS
            else "{:,}".format
        )
        if name in _SPANS:
            values = [1000 * value for value in values]
        cells = [written(value) if value else "–" for value in values]
        if len(values) == 2:
            change = values[1] - values[0]
            sign = "+" if change > 0 else "−"
            cells.append(sign + written(abs(change)) if change else "=")
        about = name == "tokens" and any(cost["about"] for cost in document["cost"])
        rows.append(
            (labels(f"beside_{name}") + (labels("beside_about") if about else ""), *cells)
        )
    letters = [letter for letter, _ in lettered(document)]
    heads = [Column(text, "number") for text in (*letters, "Δ")[: len(rows[0]) - 1]]
    first = columns(labels, "beside_figure")
    return clipped(labels("cost"), [*first, *heads], rows, notes=[labels("not_waiting")])
