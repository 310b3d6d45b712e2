"""What there is to read of a run: its document as a few blocks of plain data, in the language of the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.plans import Plan, last_records
from workbench.records.proposals import MET, SETTLED, description, fewer, kind, point, proposal
from workbench.records.timeline import GAPS, Bar, attempts, bars, busy_ms, drawn, span_ms
from workbench.state import Data, ExecutionRecord, Reflection
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
from workbench.views.page import cut

Span = tuple[str, str]
"""A piece of text and its look: ``""``, ``strong``, ``dim``, ``code``, ``status``."""
Paragraph = str | Span | Sequence[str | Span]

ON_PAPER = ("head", "review", "answer", "sources", "plan", "reflections", "decisions", "timeline", "evidence")
"""The order for a page: what was asked for comes first."""
IN_TERMINAL = ("head", "plan", "reflections", "decisions", "timeline", "review", "answer", "sources")
"""The order for a terminal: what was asked for comes last, next to the prompt."""
INSET = "\u00a0\u00a0"
_LONGEST_TEXT = 50_000


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
    """Paragraphs of text with looks; ``mark`` sets them apart, ``heading`` names them where nothing else does."""

    paragraphs: Sequence[Paragraph]
    mark: str = ""
    heading: str = ""

    def spans(self) -> Iterator[list[Span]]:
        """Yield each paragraph as spans."""
        for paragraph in self.paragraphs:
            alone = isinstance(paragraph, str) or isinstance(paragraph[0], str)
            parts: Any = [paragraph] if alone else paragraph
            yield [(part, "") if isinstance(part, str) else part for part in parts]


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
    """Return the blocks of a run, in this order; parts of which nothing is known are left out."""
    labels = labels_for(document["message"])
    return [block for part in parts for block in _PARTS[part](document, labels)]


def _head(document: Data, labels: Labels) -> Iterator[Block]:
    plan, review = document["plan"], document["review"]
    facts: list[str | Span] = [(labels.status(document["status"]), "status")]
    facts += [(labels(f"point_{review['point']}"), "strong")] if review else []
    facts += run_facts(document, labels)
    if plan and plan["version"] > 1:
        facts.append(f"{labels('plan')} {labels('version', n=plan['version'])}")
    line: list[str | Span] = [(labels("run") + " ", "dim"), (document["run_id"], "code")]
    for fact in facts:
        line += [(" · ", "dim"), fact]
    read, holder = ([(text, "dim")] if text else [] for text in (read_told(document, labels), document["holder"]))
    yield Lines([(document["message"], "strong"), *read, line, *holder])
    if document["error"]:
        yield Lines([(f"{labels('error')}{labels('colon')}{document['error']}", "strong")], mark="failed")


def run_facts(document: Data, labels: Labels) -> list[str]:
    """Return which base was asked, as of when, how long it took, and what the tape saved."""
    counted = document["figures"]
    facts = [document["kb_prefix"], as_of_told(document, labels) if document.get("as_of") else ""]
    facts.append(took_told(counted, labels) if document["log"] else "")
    facts.append(saved_told(counted, labels) if counted["saved_calls"] else "")
    return list(filter(None, facts))


def _open_review(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield what a paused run asks the person now; nothing when it is not waiting."""
    request = document["review"]
    if not request:
        return
    actions, asked = request["action_requests"], kind(request)
    waves = filter(None, (action["args"].get("wave") for action in actions))
    lines: list[Paragraph] = [(review_question(request, labels), "strong"), (labels("clock"), "dim")]
    lines += [(labels("comma").join(map(str, wave)), "code") for wave in waves]
    for question in actions[0]["args"].get("questions") or ():
        lines += [question["question"], *(f"  {n}. {option}" for n, option in enumerate(question["options"], 1))]
        lines.append((labels("assumed_unless", what=question["assumed"]), "dim"))
    lines += _of_report(asked, request, labels)
    for memory in request.get("obeyed") or ():
        lines.append([(labels("mem_strike") + " ", "dim"), (memory["memory_id"], "code"), f" {memory['told']}"])
    if less := fewer(request):
        lines.append((labels("enough_here", **less), "dim"))
    yield Lines(lines, mark="paused")
    if asked in ("outline", "section") and (pieces := request.get("evidence")):
        rows = [(f"[{n}]", p["result_id"], p["title"], f"{p['score']:.2f}") for n, p in enumerate(pieces, 1)]
        heads = columns(labels, ":number", ":code", "piece", "score:number")
        yield clipped(labels("sources"), heads, rows, opened=False)


def _of_report(asked: str, request: Data, labels: Labels) -> Iterator[Paragraph]:
    """Yield the sections of an outline in their tree; a section with what is not supported in it."""
    proposed = proposal(request)
    if asked == "outline":
        yield (proposed["title"], "strong")
        for section in proposed["sections"]:
            pieces, inset = len(section["evidence_ids"]), INSET * section["section_id"].count(".")
            rests = labels("section_pieces", n=pieces) if pieces else labels("section_bare")
            yield [(f"{inset}{section['section_id']} ", "dim"), section["title"], (f" · {rests}", "dim")]
            if section["summary"] and section["summary"] != section["title"]:
                yield (f"{inset}{INSET}{cut(section['summary'], 300)}", "dim")
    elif asked == "section":
        yield from _text_lines(proposed["text"])
        for claim in proposed["claims"]:
            if claim["verdict"] != "supported":
                yield [(f"! {claim_told(claim, labels)}{labels('colon')}", "strong"), without_emphasis(claim["text"])]


def _text_lines(text: str) -> list[str]:
    return [line for line in cut(text, _LONGEST_TEXT).splitlines() if line.strip()]


def review_question(request: Data, labels: Labels) -> str:
    """Return what the person is asked at this point, in one sentence."""
    asked, proposed = kind(request) or request.get("point", ""), proposal(request)
    if not asked:
        return labels("ask_other", what=description(request) or point(request).replace("_", " "))
    stops = asked == "reflect" and not proposed.get("should_continue", True)
    title = cut(str(proposed.get("title") or ""), 120)
    return labels("ask_reflect_stop" if stops else f"ask_{asked}", title=title)


def claim_told(claim: Data, labels: Labels) -> str:
    """Return the verdict on a statement, and why.

    >>> claim_told({"verdict": "unsupported", "why": "1877"}, Labels("en"))
    'not in its sources (1877)'
    """
    verdict = labels(f"claim_{claim['verdict']}")
    return labels("aside", said=verdict, more=claim["why"]) if claim.get("why") else verdict


def without_emphasis(text: str) -> str:
    r"""Return a sentence of Markdown without its emphasis and its backslashes.

    >>> print(without_emphasis(r"**Kiln \& Sons**: it is *red*"))
    Kiln & Sons: it is red
    """
    return re.sub(r"\\([!-/:-@\[-`{-~])|\*+", r"\1", text)


def standing_told(check: Data, labels: Labels) -> list[str]:
    """Return how a report stands against its evidence, a sentence each; nothing where it was not checked."""
    if not check:
        return []
    lines = [labels("answer_supported", n=check["supported"], of=check["statements"])]
    against = len(check.get("contradictions") or ())
    return [*lines, labels("report_contradicts", n=against)] if against else lines


def _answer_text(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield the answer's text, one paragraph per line; nothing while there is no answer."""
    if document["answer"]:
        yield Lines(_text_lines(document["answer"]), heading=labels("answer"))
        if support := document["support"]:
            yield Lines([(supported_told(support, labels), "dim")])


def supported_told(support: Sequence[Data], labels: Labels) -> str:
    """Return how many of these statements their sources support."""
    whole = sum(one["verdict"] == "supported" for one in support)
    return labels("answer_supported", n=whole, of=len(support))


def _sources(document: Data, labels: Labels) -> Iterator[Block]:
    first: dict[int, Data] = {}
    for citation in document["citations"]:
        first.setdefault(citation["n"], citation["source"])
    rows = []
    for n, source in sorted(first.items()):
        texts = (source.get("title") or source.get("doc_id"), source.get("licence"), source.get("url"))
        rows.append((f"[{n}]", *map(one_line, texts)))
    if rows:
        yield clipped(labels("sources"), columns(labels, ":number", "source", "licence", ":url"), rows)
    if notes := document["statistics"].get("enrichment", {}).get("notes"):
        yield Lines([(one_line(note), "dim") for note in notes])


def _plan(document: Data, labels: Labels) -> Iterator[Block]:
    if document["plan"]:
        shown = bars(document["log"], document["records"], document["decisions"]) if document["log"] else []
        yield plan_table(document["plan"], document["records"], labels, shown)


def plan_table(plan: Data, records: Iterable[ExecutionRecord], labels: Labels, shown: Sequence[Bar] = ()) -> Table:
    """Return one row a step: how it went, what it is, what it waits for, what it found, when."""
    records = list(records)
    steps, last, span = Plan.load(plan).steps, last_records(records), span_ms(shown)
    number = {step.step_id: str(index) for index, step in enumerate(steps, 1)}
    rows, notes = [], []
    for step in steps:
        record = last.get(step.step_id)
        of_step = [bar for bar in shown if bar.kind == "step" and bar.step_id == step.step_id]
        summary, status, took = record["output_summary"] if record else {}, labels.status("pending"), ""
        if record:
            status = labels.status(record["status"]) + (f" ×{record['attempt']}" if record["attempt"] > 1 else "")
            took = milliseconds(record["duration_ms"]) if shown and record["status"] != "skipped" else ""
        score = summary.get("top_score")
        rows.append(
            (
                number[step.step_id],
                status,
                f"{one_line(step.step_id)}\n{cut(step.objective, 200)}",
                step.tool,
                ", ".join(number.get(d, d) for d in step.dependencies()),
                str(summary.get("evidence_count", "")),
                "" if score is None else f"{score:.2f}",
                took,
                drawn(of_step, span, 20) if of_step else "",
            )
        )
        for failed in (r for r in records if r["step_id"] == step.step_id and r["error"]):
            again = f" · {labels('attempt', n=failed['attempt'])}" if failed["attempt"] > 1 or failed != record else ""
            notes.append(f"{step.step_id}{again}{labels('colon')}{reason_told(failed['error'] or '', labels)}")
    work = Column(labels("when"), "bar", roomy=True)
    names = (":number", "status:status", "step", "tool:code", "after", "found:number", "best:number", "time:number")
    title = " · ".join([labels("plan"), labels("version", n=plan["version"]), labels("steps", n=len(steps))])
    return clipped(title, (*columns(labels, *names), work), rows, notes=notes)


def _reflections(document: Data, labels: Labels) -> Iterator[Block]:
    return (reflection_table(reflection, labels) for reflection in document["reflections"])


def reflection_table(reflection: Reflection, labels: Labels) -> Table:
    """Signals against what is asked for, and what follows from them."""
    signals, colon, comma = reflection["signals"], labels("colon"), labels("comma")
    notes = [reflection["reasoning"]] if reflection["reasoning"] else []
    for name in ("missing", "unknown", "timeouts", "failures"):
        if signals.get(name):
            notes.append(labels(name) + colon + comma.join(map(str, signals[name])))
    if reflection["should_continue"]:
        steps = [*reflection["activate"], *(str(s.get("step_id", "?")) for s in reflection["next_steps"])]
        notes.append(labels("goes_on") + (colon + comma.join(steps) if steps else ""))
        if reflection["rewrite_query"]:
            notes.append(f"{labels('rewritten')}{colon}{reflection['rewrite_query']}")
    else:
        notes.append(f"{labels('stops')}{colon}{labels(reflection['stop_reason'] or 'no_further_action')}")
    title = labels("reflection", n=reflection["current_iteration"], m=reflection["max_iterations"])
    heads = columns(labels, "signal", "value:number", "needed:number", ":status")
    return clipped(title, heads, signal_rows(signals, labels), notes=notes)


def need_told(entry: Data, labels: Labels) -> str:
    """Return how a line of the ledger stands: what a person said of it, else what the evidence says, with its sign."""
    fine = entry["said"] in SETTLED or entry["met"] >= MET
    word = entry["said"] if entry["said"] in SETTLED else "met" if fine else entry["said"] or "unmet"
    return f"{'✓' if fine else '!'} {labels(f'need_{word}')}"


_ASKED = {
    "evidence_count": "evidence",
    "top_score": "top_score",
    "probability": "probability",
    "candidates": "candidates",
}


def signal_rows(signals: Data, labels: Labels) -> list[tuple[str, str, str, str]]:
    """Signal, value, what is asked for, whether that is enough; signals of one's own come last, as they are.

    >>> seen = {"evidence_count": 7, "top_score": 0.8, "thresholds": {"min_evidence": 8, "min_top_score": 0.5}}
    >>> signal_rows(seen, Labels("en"))
    [('pieces of evidence', '7', '8', '✗ not enough'), ('top score', '0.80', '0.50', '✓ enough')]
    """

    def row(name: str, have: Any, need: Any) -> tuple[str, str, str, str]:
        verdict = "" if need is None else labels("enough" if have >= need else "short")
        return name, _number(have), _number(need), verdict

    asked, needs = signals.get("thresholds") or {}, signals.get("needs") or []
    rows = [row(labels(name), signals[name], asked.get(f"min_{of}")) for name, of in _ASKED.items() if name in signals]
    rows += [(entry["need"], f"{entry['met']:.0%}", entry["title"], need_told(entry, labels)) for entry in needs]
    rows += [row(str(s["name"]), s["found"], s["needed"]) for s in ([] if needs else signals.get("coverage") or [])]
    known = {*_ASKED, "thresholds", "iteration", "time_left_s"}
    for name, value in signals.items():
        if name not in known and not isinstance(value, dict | list):
            rows.append((labels(name), labels(f"kind_{value}") if name == "kind" else _number(value), "", ""))
    return rows


def _decisions(document: Data, labels: Labels) -> Iterator[Block]:
    rows = []
    for decision in document["decisions"]:
        edits = labels("semicolon").join(edits_told(decision["edits"], decision["proposal"], labels))
        words = (labels(f"point_{decision['point']}"), labels(decision["action"]), who_told(decision["who"], labels))
        rows.append((*words, cut(edits or decision["message"], 200), decision["note"]))
    if rows:
        yield clipped(labels("decisions"), columns(labels, "point", "action", "who", "changes", "note"), rows)


def _timeline(document: Data, labels: Labels) -> Iterator[Block]:
    if document["log"]:
        found = bars(document["log"], document["records"], document["decisions"])
        yield timeline_table(found, labels, took_told(document["figures"], labels))


def timeline_table(found: Sequence[Bar], labels: Labels, took: str = "") -> Table:
    """Graph nodes, then steps with the inside of their tools, as text bars on one axis of work time."""
    span, nodes = span_ms(found), dict[str, list[Bar]]()
    for bar in found:
        if bar.kind == "node":
            nodes.setdefault(bar.name, []).append(bar)
    lanes = [(name, runs, busy_ms(runs)) for name, runs in nodes.items() if busy_ms(runs) >= 1]  # else no bar to see
    lanes += [(labels(bar.kind), [bar], bar.duration_ms) for bar in found if bar.kind in GAPS]
    for step, inside in attempts(found):
        again = f" ({labels('attempt', n=step.attempt)})" if step.attempt > 1 else ""
        lanes.append((f"{SIGNS[step.status]} {step.step_id}{again}", [step], step.duration_ms))
        lanes += [(f"{INSET}{sub.name}", [sub], sub.duration_ms) for sub in inside]
    rows = [(name, drawn(of_lane, span), milliseconds(took_ms)) for name, of_lane, took_ms in lanes]
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
        yield clipped(title, columns(labels, ":number", "piece", "score:number", "found_by"), rows, opened=False)


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
    """Return a table of clipped cells, without the columns in which nothing stands."""
    cells = [[cut(str(cell), 400) for cell in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in cells)]
    shown, body = (tuple(heads[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in cells))
    return Table(title, shown, body, opened, tuple(cut(note, 1000) for note in notes))


def one_line(value: Any) -> str:
    """Return a value on one line: the line below a cell's first is ours to write."""
    return " ".join(str(value or "").split())


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return SIGNS["success" if value else "failed"]
    if isinstance(value, float):
        return f"{value:.2f}" if value % 1 else f"{value:g}"
    return str(len(value) if isinstance(value, list) else value)
