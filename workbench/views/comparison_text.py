"""What there is to read of a comparison: its document as blocks, the first run as A, the others as B, C and D."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.views.comparison import (
    LETTERS,
    TABLES,
    caveats_told,
    first_of_each,
    made_from,
    parted,
    rows_of,
    value_told,
)
from workbench.views.labels import SIGNS, Labels, milliseconds
from workbench.views.labels.sentences import edits_told, saved_told, tokens_told, took_told, who_told
from workbench.views.outline import Block, Column, Lines, Span, clipped, columns, one_line
from workbench.views.page import Data

_MOST_OF_A_KIND = 8


def beside(document: Data, labels: Labels) -> list[Block]:
    """The blocks of a comparison; tables in which nothing differs are left out."""
    letters = LETTERS[: len(document["runs"])]
    return [block for part in _PARTS for block in part(document, letters, labels)]


def _beside(names: Sequence[str], letters: str, labels: Labels) -> list[Column]:
    """Columns of these names, then one a run."""
    return [*columns(labels, *names), *map(Column, letters)]


def _differing(rows: Sequence[Sequence[str]], same: str) -> bool:
    return any(row[1] != same for row in rows)


def _head(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    first, lines = document["runs"][0], list[tuple[Span, ...]]()
    for letter, run in zip(letters, document["runs"], strict=True):
        facts: list[Span] = [(f"{letter} ", "strong"), (run["run_id"], "code"), (" · ", "dim")]
        facts += [(labels.status(run["status"]), "status")]
        if run["origin"]:
            facts += [(" · ", "dim"), (made_from(run, document, labels), "dim")]
        if run is first or run["message"] != first["message"]:
            facts += [(" · ", "dim"), (run["message"], "")]
        if run["query"] not in (run["message"], "") and run["query"] != first["query"]:
            facts += [(" · ", "dim"), (run["query"], "dim")]
        lines.append(tuple(facts))
    yield Lines(tuple(lines))
    parts = document["parts"]
    values = zip(letters, parts["values"] if parts else (), strict=False)
    sides = (((f"{letter} ", "strong"), (_told(value, labels)[:300], "")) for letter, value in values)
    yield Lines((((parted(parts, labels), "strong"),), *sides))


def _told(value: Any, labels: Labels) -> str:
    return value_told(value, labels, labels.status, _answered)


def _caveats(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    causes, unknown = list[tuple[Span, ...]](), list[tuple[Span, ...]]()
    for cause, told, values in caveats_told(document, labels):
        sides = [f"{letter} {_told(value, labels)}" for letter, value in zip(letters, values, strict=False)]
        line = told + labels("colon") + labels("comma").join(sides) if sides else told
        (causes if cause else unknown).append(((line, ""),))
    if causes:
        yield Lines((((labels("not_only"), "strong"),), *causes), mark="paused")
    if unknown:
        yield Lines(tuple(unknown), mark="interrupted")


def _plan(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    for letter, diff in zip(letters[1:], document["plan"], strict=True):
        rows = [
            (labels(kind), name, "", "", "") for kind in ("added", "removed") for name in (diff or {}).get(kind, [])
        ]
        for name, fields in (diff or {}).get("changed", {}).items():
            rows += [(labels("changed"), name, field, _json(old), _json(new)) for field, (old, new) in fields.items()]
        rows += [
            (labels("changed"), "", field, _json(old), _json(new))
            for field, (old, new) in (diff or {}).get("plan", {}).items()
        ]
        if rows:
            heads = _beside(["change", "step", "field"], f"A{letter}", labels)
            yield clipped(f"{labels('plan_changes')} · {letter}", heads, rows)


def _steps(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    rows = [
        (row["step_id"], labels("same") if row["same"] else "~", *(_step(side, labels) for side in row["sides"]))
        for row in document["steps"]
    ]
    if _differing(rows, labels("same")):
        yield clipped(labels("steps_beside"), _beside(["step", "change::whole"], letters, labels), rows)


def _step(side: Mapping[str, Any] | None, labels: Labels) -> str:
    if side is None:
        return "—"
    if side["status"] == "skipped":
        return labels.status("skipped")
    told = [f"{SIGNS[side['status']]} {side['tool']}", labels("n_found", n=side["found"])]
    return " · ".join([*told, labels("steps_taped") if side["replayed"] else milliseconds(side["seconds"] * 1000)])


def _decisions(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    rows = []
    for row in document["decisions"]:
        point = next(labels(f"point_{side['point']}") for side in row["sides"] if side)
        answered = [_answered(side, labels) if side else "—" for side in row["sides"]]
        change = f"~ {labels('comma').join(labels(f'of_{name}') for name in row['differs'])}".strip()
        rows.append((f"{row['number']} {point}", labels("same") if row["same"] else change, *answered))
    if _differing(rows, labels("same")):
        yield clipped(labels("decisions_beside"), _beside(["point::whole", "change"], letters, labels), rows)


def _answered(side: Mapping[str, Any], labels: Labels) -> str:
    """What was answered and by whom; below it what had been proposed."""
    told = labels("aside", said=labels(side["action"]), more=who_told(side["who"], labels))
    said = edits_told(side["edits"], side["proposed"], labels)
    said += [text for text in (side["message"], side["note"]) if text]
    proposed = side["proposed"]
    steps = labels("comma").join(proposed["steps"])
    if "should_continue" in proposed:
        steps = f"{labels('goes_on' if proposed['should_continue'] else 'stops')} {steps}".strip()
    return f"{' · '.join([told, *said])}\n{labels('proposed')}{labels('colon')}{steps}"


def _evidence(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    table, found = TABLES["evidence"], rows_of("evidence", document)
    counts = Counter(map(table.kind, found))
    differing = [piece for piece in found if table.kind(piece) != "same" or piece["text_differs"]]
    if not differing:
        return
    best = [differing[n] for n in first_of_each([*map(table.kind, differing)], _MOST_OF_A_KIND)]
    rows = [
        (
            " ".join([_changes(piece, labels), *([labels("reworded")] if piece["text_differs"] else [])]),
            one_line(piece["title"]),
            *map(_found, piece["sides"]),
        )
        for piece in best
    ]
    heads = _beside(["change::whole", "piece"], letters, labels)
    left = len(differing) - len(best)
    title = labels("evidence_beside", **{kind: counts[kind] for kind in table.order})
    yield clipped(title, heads, rows, notes=[labels("and_more", n=left)] if left else [])


def _changes(row: Mapping[str, Any], labels: Labels) -> str:
    return " ".join(labels(change) if change else "—" for change in row["changes"])


def _found(side: Mapping[str, Any] | None) -> str:
    """Place and score in the merged evidence; below it the steps that found it, each with its rank there."""
    if side is None:
        return "—"
    steps = ", ".join(f"{found['step_id']} #{found['rank']}" for found in side["found_by"])
    return f"#{side['rank']} {side['score']:.2f}\n{one_line(steps or ', '.join(side['tools']))}"


def _claims(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    rows = [
        (
            _changes(claim, labels),
            one_line(claim["text"]),
            *(_cited(side, labels) for side in claim["sides"]),
        )
        for claim in document["claims"]
    ]
    if document["parts"] is not None and rows:
        yield clipped(labels("claims_beside"), _beside(["change::whole", "claim"], letters, labels), rows)


def _cited(side: Mapping[str, Any] | None, labels: Labels) -> str:
    if side is None:
        return "—"
    found = [f"[{c['n']}] {one_line(c['title'] or c['result_id'])}" for c in side["citations"]]
    return labels("comma").join(found) or labels("nothing_cited")


def _cost(document: Data, letters: str, labels: Labels) -> Iterator[Block]:
    rows = [
        (
            letter,
            took_told(cost, labels),
            str(cost["calls"]),
            saved_told(cost, labels) if cost["saved_calls"] else "0",
            tokens_told(cost["tokens"], cost["about"], labels) if cost["tokens"] else "",
        )
        for letter, cost in zip(letters, document["cost"], strict=True)
    ]
    heads = columns(labels, "run", "time:number", "steps_made:number", "steps_taped:number", "tokens_made:number")
    yield clipped(labels("cost"), heads, rows, notes=[labels("not_waiting")])


def forecast_blocks(forecast: Mapping[str, Any], labels: Labels) -> list[Block]:
    """What a fork will take: which steps run again, and how long such calls took in the past."""
    rows = [
        (
            step["step_id"],
            step["tool"],
            labels("steps_made" if step["runs"] else "steps_taped" if step["replayed"] else "steps_asleep"),
            *(milliseconds(step[name] * 1000) if step["runs"] else "" for name in ("p50_s", "p90_s")),
        )
        for step in forecast["steps"]
    ]
    heads = (*columns(labels, "step", "tool:code", "status"), Column("P50", "number"), Column("P90", "number"))
    p50, p90 = (milliseconds(forecast["seconds"][name] * 1000) for name in ("p50", "p90"))
    note = labels("forecast_basis", n=forecast["basis"])
    title = labels("forecast", p50=p50, p90=p90)
    return [clipped(title, heads, rows, notes=[note])]


_PARTS = (_head, _caveats, _plan, _steps, _decisions, _evidence, _claims, _cost)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
