"""What there is to read of a run: its document as a few blocks of plain data, in the language of the question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.plans import Plan, last_records
from workbench.records.proposals import MET, SETTLED, description, fewer, kind, point, proposal
from workbench.records.timeline import GAPS, Bar, attempts, bars, busy_ms, drawn, span_ms
from workbench.state import ExecutionRecord, Reflection
from workbench.views.claims import claim_told, standing_told
from workbench.views.claims import plain as claim_text
from workbench.views.foreseen import foreseen_told
from workbench.views.labels import SIGNS, Labels, labels_for, milliseconds
from workbench.views.labels.sentences import (
    as_of_told,
    edits_told,
    read_told,
    reason_told,
    saved_told,
    took_told,
    who_told,
)
from workbench.views.page import Data, cut

Span = tuple[str, str]
"""A piece of text and its look: ``""``, ``strong``, ``dim``, ``code``, ``status``."""

ON_PAPER = ("head", "review", "answer", "sources", "plan", "reflections", "decisions", "timeline", "evidence")
"""The order for a page: what was asked for comes first."""
IN_TERMINAL = ("head", "plan", "reflections", "decisions", "timeline", "review", "answer", "sources")
"""The order for a terminal: what was asked for comes last, beside the prompt."""


@dataclass(frozen=True)
class Column:
    """``kind``: ``text``, ``number``, ``code``, ``status``, ``change``, ``bar`` or ``url``. ``roomy``: only where there
    is room; ``whole``: never broken over lines."""

    name: str
    kind: str = "text"
    roomy: bool = False
    whole: bool = False


def columns(labels: Labels, *names: str) -> tuple[Column, ...]:
    """Columns headed by labels, each as ``label:kind`` or ``label:kind:whole``; without a kind it is text.

    >>> [(c.name, c.kind, c.whole) for c in columns(Labels("zh"), "step", ":number", "change::whole")]
    [('步骤', 'text', False), ('', 'number', False), ('变化', 'text', True)]
    """
    parts = ([*name.split(":"), "", ""][:3] for name in names)
    return tuple(Column(labels(name) if name else "", kind or "text", whole=bool(whole)) for name, kind, whole in parts)


@dataclass(frozen=True)
class Lines:
    """Paragraphs of spans; ``mark`` sets them apart, ``heading`` names them where nothing else does."""

    paragraphs: tuple[tuple[Span, ...], ...]
    mark: str = ""
    heading: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under a title; a closed table is folded where folding is possible."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    opened: bool = True
    notes: tuple[str, ...] = ()


Block = Lines | Table


def outline(document: Data, parts: Sequence[str] = ON_PAPER) -> list[Block]:
    """The blocks of a run, in this order; parts of which nothing is known are left out."""
    labels = labels_for(document["message"])
    return [block for part in parts for block in _PARTS[part](document, labels)]


def _head(document: Data, labels: Labels) -> Iterator[Block]:
    plan = document["plan"]
    facts: list[Span] = [(labels("run") + " ", "dim"), (document["run_id"], "code")]
    facts += [(" · ", "dim"), (labels.status(document["status"]), "status")]
    if document["review"]:
        facts += [(" · ", "dim"), (labels(f"point_{document['review']['point']}"), "strong")]
    for fact in run_facts(document, labels):
        facts += [(" · ", "dim"), (fact, "")]
    if plan and plan["version"] > 1:
        facts += [(" · ", "dim"), (f"{labels('plan')} {labels('version', n=plan['version'])}", "")]
    read, held = (((line, "dim"),) if line else () for line in (read_told(document, labels), document["holder"]))
    yield Lines(tuple(filter(None, (((document["message"], "strong"),), read, tuple(facts), held))))
    if document["error"]:
        yield Lines((((f"{labels('error')}{labels('colon')}{document['error']}", "strong"),),), mark="failed")


def run_facts(document: Data, labels: Labels) -> list[str]:
    """Which base was asked, as of when, how long it took, and what the tape saved."""
    counted = document["figures"]
    facts = [document["kb_prefix"], as_of_told(document, labels) if document.get("as_of") else ""]
    facts.append(took_told(counted, labels) if document["log"] else "")
    facts.append(saved_told(counted, labels) if counted["saved_calls"] else "")
    return list(filter(None, facts))


def _open_review(document: Data, labels: Labels) -> Iterator[Block]:
    """What a paused run asks the person now; nothing when it is not waiting."""
    request = document["review"]
    if not request:
        return
    paragraphs: list[tuple[Span, ...]] = [((review_question(request, labels), "strong"),), ((labels("clock"), "dim"),)]
    for action in request["action_requests"]:  # the plan and the reflection stand in tables of their own
        paragraphs += [
            ((labels("comma").join(map(str, wave)), "code"),) for wave in [action["args"].get("wave")] if wave
        ]
    for one in request["action_requests"][0]["args"].get("questions") or ():
        paragraphs.append(((one["question"], ""),))
        options = [(f"  {n}. {option}", "") for n, option in enumerate(one["options"], 1)]
        paragraphs += [*((option,) for option in options), ((labels("assumed_unless", what=one["assumed"]), "dim"),)]
    shown = kind(request) if kind(request) in _OF_REPORTS else ""
    paragraphs += _OF_REPORTS[shown](request, proposal(request), labels) if shown else []
    for one in request.get("obeyed") or ():
        paragraphs.append(((labels("mem_strike") + " ", "dim"), (one["memory_id"], "code"), (f" {one['told']}", "")))
    if less := fewer(request):
        paragraphs.append(((labels("enough_here", **less), "dim"),))
    line, roles, over = foreseen_told(request, labels)
    paragraphs += [((one, "strong"),) for one in over]
    paragraphs += [((one, "dim"),) for one in [line, *roles] if one]
    yield Lines(tuple(paragraphs), mark="paused")
    if shown and (pieces := request.get("evidence")):
        rows = [(f"[{n}]", p["result_id"], p["title"], f"{p['score']:.2f}") for n, p in enumerate(pieces, 1)]
        heads = columns(labels, ":number", ":code", "piece", "score:number")
        yield clipped(labels("sources"), heads, rows, opened=False)


def _outline_told(_: Data, proposed: Data, labels: Labels) -> Iterator[tuple[Span, ...]]:
    """The sections as they stand in their tree, and how much each rests on."""
    yield ((proposed["title"], "strong"),)
    for one in proposed["sections"]:
        pieces = labels("section_pieces", n=len(one["evidence_ids"])) if one["evidence_ids"] else labels("section_bare")
        inset = "\u00a0\u00a0" * one["section_id"].count(".")
        yield ((f"{inset}{one['section_id']} ", "dim"), (one["title"], ""), (f" · {pieces}", "dim"))
        if one["summary"] and one["summary"] != one["title"]:
            yield ((f"{inset}\u00a0\u00a0{cut(one['summary'], 300)}", "dim"),)


def _section_told(_: Data, proposed: Data, labels: Labels) -> Iterator[tuple[Span, ...]]:
    yield from (((line, ""),) for line in cut(proposed["text"], 50_000).splitlines() if line.strip())
    yield from _claims_told(proposed["claims"], labels)


def _report_told(request: Data, proposed: Data, labels: Labels) -> Iterator[tuple[Span, ...]]:
    yield from (((line, ""),) for line in cut(proposed["final_report"], 50_000).splitlines() if line.strip())
    yield from (((line, "dim"),) for line in standing_told(proposed.get("consistency") or {}, labels))
    yield from _claims_told(request.get("unsupported") or (), labels)


def _claims_told(claims: Sequence[Data], labels: Labels) -> Iterator[tuple[Span, ...]]:
    """The statements that their sources do not bear out wholly."""
    for one in claims:
        if one["verdict"] != "supported":
            yield ((f"! {claim_told(one, labels)}{labels('colon')}", "strong"), (claim_text(one["text"]), ""))


_OF_REPORTS: Mapping[str, Callable[[Data, Data, Labels], Iterable[tuple[Span, ...]]]] = {
    "outline": _outline_told,
    "section": _section_told,
    "report": _report_told,
}


def review_question(request: Mapping[str, Any], labels: Labels) -> str:
    """What the person is asked at this point, in one sentence."""
    asked, proposed = kind(request) or request.get("point", ""), proposal(request)
    if not asked:
        return labels("ask_other", what=description(request) or point(request).replace("_", " "))
    stops = asked == "reflect" and not proposed.get("should_continue", True)
    title = cut(str(proposed.get("title") or ""), 120)
    return labels("ask_reflect_stop" if stops else f"ask_{asked}", title=title)


def _answer_text(document: Data, labels: Labels) -> Iterator[Block]:
    """The answer's text, a paragraph a line; nothing while there is no answer."""
    if document["answer"]:
        lines = [line for line in cut(document["answer"], 50_000).splitlines() if line.strip()]
        yield Lines(tuple(((line, ""),) for line in lines), heading=labels("answer"))
        if support := document["support"]:
            whole = sum(one["verdict"] == "supported" for one in support)
            yield Lines((((labels("answer_supported", n=whole, of=len(support)), "dim"),),))


def _sources(document: Data, labels: Labels) -> Iterator[Block]:
    first: dict[int, Mapping[str, Any]] = {}
    for citation in document["citations"]:
        first.setdefault(citation["n"], citation["source"])
    rows = [
        (
            f"[{n}]",
            one_line(source.get("title") or source.get("doc_id")),
            one_line(source.get("licence")),
            one_line(source.get("url")),
        )
        for n, source in sorted(first.items())
    ]
    if rows:
        yield clipped(labels("sources"), columns(labels, ":number", "source", "licence", ":url"), rows)
    if notes := document["statistics"].get("enrichment", {}).get("notes"):
        yield Lines(tuple(((one_line(note), "dim"),) for note in notes))


def _plan(document: Data, labels: Labels) -> Iterator[Block]:
    if document["plan"]:
        shown = bars(document["log"], document["records"], document["decisions"]) if document["log"] else []
        yield plan_table(document["plan"], document["records"], labels, shown)


def plan_table(plan: Data, records: Iterable[ExecutionRecord], labels: Labels, shown: Sequence[Bar] = ()) -> Table:
    """One row a step: how it went, what it is, what it waits for, what it found, when."""
    records = list(records)
    steps, last, span = Plan.load(plan).steps, last_records(records), span_ms(shown)
    number = {step.step_id: str(index) for index, step in enumerate(steps, 1)}
    rows, notes = [], []
    for step in steps:
        record = last.get(step.step_id)
        of_step = [bar for bar in shown if bar.kind == "step" and bar.step_id == step.step_id]
        summary = record["output_summary"] if record else {}
        score = summary.get("top_score")
        status = labels.status(record["status"] if record else "pending")
        if record and record["attempt"] > 1:
            status += f" ×{record['attempt']}"
        rows.append(
            (
                number[step.step_id],
                status,
                f"{one_line(step.step_id)}\n{cut(step.objective, 200)}",
                step.tool,
                ", ".join(number.get(d, d) for d in step.dependencies()),
                str(summary.get("evidence_count", "")),
                "" if score is None else f"{score:.2f}",
                milliseconds(record["duration_ms"]) if shown and record and record["status"] != "skipped" else "",
                drawn(of_step, span, 20) if of_step else "",
            )
        )
        for failed in (r for r in records if r["step_id"] == step.step_id and r["error"]):
            again = f" · {labels('attempt', n=failed['attempt'])}" if failed["attempt"] > 1 or failed != record else ""
            notes.append(f"{step.step_id}{again}{labels('colon')}{reason_told(failed['error'] or '', labels)}")
    work = Column(labels("when"), "bar", roomy=True)
    names = (":number", "status:status", "step", "tool:code", "after", "found:number", "best:number", "time:number")
    count = labels("steps", n=len(steps))
    title = f"{labels('plan')} · {labels('version', n=plan['version'])} · {count}"
    return clipped(title, (*columns(labels, *names), work), rows, notes=notes)


def _reflections(document: Data, labels: Labels) -> Iterator[Block]:
    for reflection in document["reflections"]:
        yield reflection_table(reflection, labels)


def reflection_table(reflection: Reflection, labels: Labels) -> Table:
    """Signals against what is asked for, and what follows from them."""
    heads = columns(labels, "signal", "value:number", "needed:number", ":status")
    n, m = reflection["current_iteration"], reflection["max_iterations"]
    notes, signals = [reflection["reasoning"]] if reflection["reasoning"] else [], reflection["signals"]
    for name in ("missing", "unknown", "timeouts", "failures"):
        if signals.get(name):
            notes.append(labels(name) + labels("colon") + labels("comma").join(map(str, signals[name])))
    if reflection["should_continue"]:
        steps = labels("comma").join(
            [*reflection["activate"], *(str(s.get("step_id", "?")) for s in reflection["next_steps"])]
        )
        notes.append(f"{labels('goes_on')}{labels('colon')}{steps}" if steps else labels("goes_on"))
        if reflection["rewrite_query"]:
            notes.append(f"{labels('rewritten')}{labels('colon')}{reflection['rewrite_query']}")
    else:
        notes.append(f"{labels('stops')}{labels('colon')}{labels(reflection['stop_reason'] or 'no_further_action')}")
    rows = signal_rows(signals, labels)
    return clipped(labels("reflection", n=n, m=m), heads, rows, notes=notes)


def need_told(entry: Mapping[str, Any], labels: Labels) -> str:
    """How a line of the ledger stands: what a person said of it, else what the evidence says, with its sign."""
    fine = entry["said"] in SETTLED or entry["met"] >= MET
    word = entry["said"] if entry["said"] in SETTLED else "met" if fine else entry["said"] or "unmet"
    return f"{'✓' if fine else '!'} {labels(f'need_{word}')}"


def signal_rows(signals: Mapping[str, Any], labels: Labels) -> list[tuple[str, str, str, str]]:
    """Signal, value, what is asked for, whether that is enough; signals of one's own come last, as they are.

    >>> seen = {"evidence_count": 7, "top_score": 0.8, "thresholds": {"min_evidence": 8, "min_top_score": 0.5}}
    >>> signal_rows(seen, Labels("en"))
    [('pieces of evidence', '7', '8', '✗ not enough'), ('top score', '0.80', '0.50', '✓ enough')]
    """

    def verdict(enough: bool) -> str:
        return labels("enough" if enough else "short")

    asked, rows = dict(signals.get("thresholds") or {}), []
    for name, wanted in (
        ("evidence_count", "min_evidence"),
        ("top_score", "min_top_score"),
        ("probability", "min_probability"),
        ("candidates", "min_candidates"),
    ):
        if name in signals:
            have, need = signals[name], asked.pop(wanted, None)
            rows.append((labels(name), _number(have), _number(need), "" if need is None else verdict(have >= need)))
    for entry in signals.get("needs") or []:
        rows.append((entry["need"], f"{entry['met']:.0%}", entry["title"], need_told(entry, labels)))
    for side in [] if signals.get("needs") else signals.get("coverage") or []:
        enough = side["found"] >= side["needed"]
        rows.append((str(side["name"]), _number(side["found"]), _number(side["needed"]), verdict(enough)))
    known = {"evidence_count", "top_score", "candidates", "probability", "thresholds", "iteration", "time_left_s"}
    for name, value in signals.items():
        if name not in known and not isinstance(value, dict | list):
            rows.append((labels(name), labels(f"kind_{value}") if name == "kind" else _number(value), "", ""))
    return rows


def _decisions(document: Data, labels: Labels) -> Iterator[Block]:
    semicolon = labels("semicolon")
    rows = [
        (
            labels(f"point_{decision['point']}"),
            labels(decision["action"]),
            who_told(decision["who"], labels),
            cut(
                semicolon.join(edits_told(decision["edits"], decision["proposal"], labels)) or decision["message"],
                200,
            ),
            decision["note"],
        )
        for decision in document["decisions"]
    ]
    if rows:
        heads = columns(labels, "point", "action", "who", "changes", "note")
        yield clipped(labels("decisions"), heads, rows)


def _timeline(document: Data, labels: Labels) -> Iterator[Block]:
    if document["log"]:
        found = bars(document["log"], document["records"], document["decisions"])
        yield timeline_table(found, labels, took_told(document["figures"], labels))


def timeline_table(found: Sequence[Bar], labels: Labels, took: str = "") -> Table:
    """Graph nodes, then steps with the inside of their tools, as text bars on one axis of work time."""
    span, nodes, rows = span_ms(found), dict[str, list[Bar]](), list[tuple[str, str, str]]()
    gaps = [bar for bar in found if bar.kind in GAPS]
    for bar in found:
        if bar.kind == "node":
            nodes.setdefault(bar.name, []).append(bar)
    for name, runs in nodes.items():
        if busy_ms(runs) >= 1:  # what takes less has no bar to see
            rows.append((name, drawn(runs, span), milliseconds(busy_ms(runs))))
    rows += [(labels(gap.kind), drawn([gap], span), milliseconds(gap.duration_ms)) for gap in gaps]
    for step, inside in attempts(found):
        again = f" ({labels('attempt', n=step.attempt)})" if step.attempt > 1 else ""
        rows.append(
            (f"{SIGNS[step.status]} {step.step_id}{again}", drawn([step], span), milliseconds(step.duration_ms))
        )
        rows += [(f"\u00a0\u00a0{sub.name}", drawn([sub], span), milliseconds(sub.duration_ms)) for sub in inside]
    title = " · ".join(filter(None, (labels("timeline"), took)))
    return clipped(title, columns(labels, "", "when:bar", "time:number"), rows, opened=False)


def _evidence(document: Data, labels: Labels) -> Iterator[Block]:
    rows = [
        (f"[{piece['n']}]", one_line(piece["title"]), f"{piece['score']:.2f}", ", ".join(piece["tools"]))
        for piece in document["evidence"]
    ]
    if rows:
        counted = document["figures"]
        title = labels("evidence", n=counted["evidence"], used=counted["in_prompt"])
        heads = columns(labels, ":number", "piece", "score:number", "found_by")
        yield clipped(title, heads, rows, opened=False)


_PARTS = {
    "head": _head,
    "review": _open_review,
    "answer": _answer_text,
    "sources": _sources,
    "plan": _plan,
    "reflections": _reflections,
    "decisions": _decisions,
    "timeline": _timeline,
    "evidence": _evidence,
}


def clipped(
    title: str,
    heads: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    opened: bool = True,
    notes: Iterable[str] = (),
) -> Table:
    """A table of clipped cells, without the columns in which nothing stands."""
    cells = [[cut(str(cell), 400) for cell in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in cells)]
    return Table(
        title,
        tuple(heads[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in cells),
        opened,
        tuple(cut(note, 1000) for note in notes),
    )


def one_line(value: Any) -> str:
    """A value on one line: the line below a cell's first is ours to write."""
    return " ".join(str(value or "").split())


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) and value % 1 else _brief(value)


def _brief(value: Any) -> str:
    if isinstance(value, bool):
        return SIGNS["success" if value else "failed"]
    return f"{value:g}" if isinstance(value, float) else f"{len(value)}" if isinstance(value, list) else str(value)
