"""The document of a run as blocks, in the language of the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workbench.extensions import required
from workbench.plans import Plan, last_records
from workbench.records import proposals
from workbench.records.tape import EDITED
from workbench.state import Data, ExecutionRecord
from workbench.views.blocks import (
    Block,
    Lines,
    Span,
    answer_blocks,
    clipped,
    columns,
    one_line,
)
from workbench.views.edits import edit_texts
from workbench.views.labels import (
    Labels,
    as_of_text,
    duration_text,
    labels_for,
    milliseconds,
    reading_text,
    reason_text,
    reviewer_name,
    savings_text,
    score_text,
)
from workbench.views.markup import cut, draw, step_name
from workbench.views.render import page_html
from workbench.views.review import (
    needs_text,
    reflection_tables,
    review_blocks,
    support_text,
)
from workbench.views.terminal import plain

ON_PAPER = ("head", "review", "answer", "sources", "plan", "reflections", "decisions", "evidence")
"""The order for a page: the result comes first."""
IN_TERMINAL = ("head", "plan", "reflections", "decisions", "review", "answer", "sources")
"""The order for a terminal: the result comes last, next to the prompt."""


def outline(document: Data, parts: Sequence[str] = ON_PAPER) -> list[Block]:
    """Return the blocks of a run, in this order, without its empty parts."""
    labels = labels_for(document["message"])
    # a part runs graphs of other people
    own = required("views", "graph_run", "record") if "graph" in document else {}
    return [block for part in parts for block in {**_PARTS, **own}[part](document, labels)]


def run_html(document: Data) -> str:
    """Return a run as static HTML without scripts, readable in both themes and without a front-end."""
    return str(page_html(outline(document), labels_for(document["message"])))


def run_text(document: Data, width: int = 100, parts: Sequence[str] = IN_TERMINAL) -> str:
    """Return a run as plain text of at most ``width`` columns, Chinese characters counted as two."""
    return plain(outline(document, parts), width)


def without_clock(document: Data) -> Data:
    """Return the run's document without its times, so that a cell that is executed again shows the same."""
    return {**document, "log": [], "figures": {**document["figures"], "saved_calls": 0}}


def _head(document: Data, labels: Labels) -> Iterator[Block]:
    review = document["review"]
    facts: list[str | Span] = [(labels.status(document["status"]), "status")]
    facts += (
        [(labels.get(f"point_{review['point']}", review["point"]), "strong")] if review else []
    )
    facts += run_facts(document, labels)
    line: list[str | Span] = [(f"{labels('run')} ", "dim"), (document["run_id"], "code")]
    for fact in facts:
        line += [(" · ", "dim"), fact]
    read, holder = (
        [(text, "dim")] if text else []
        for text in (reading_text(document, labels), document["holder"])
    )
    yield Lines([(document["message"], "strong"), *read, line, *holder])
    if document["error"]:
        yield Lines(
            [(f"{labels('error')}{labels('colon')}{document['error']}", "strong")], mark="failed"
        )


def run_facts(document: Data, labels: Labels) -> list[str]:
    """Return the knowledge base, the dates, the duration, the calls that the tape saved, and the counts of evidence."""
    figures = document["figures"]
    facts = [document["kb_prefix"], as_of_text(document, labels) if document.get("as_of") else ""]
    facts.append(duration_text(figures, labels) if document["log"] else "")
    facts.append(savings_text(figures, labels) if figures["saved_calls"] else "")
    facts.append(draw("parts.counted", labels, figures=figures))
    return list(filter(None, facts))


def _answer_text(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield the paragraphs of the answer; nothing while there is none."""
    if document["answer"]:
        yield from answer_blocks(document["answer"], labels("answer"), labels)
        trust = (
            support_text(document["support"], labels),
            needs_text(proposals.ledger(document), labels),
        )
        yield from (Lines([(text, "dim")]) for text in trust if text)


def _sources(document: Data, labels: Labels) -> Iterator[Block]:
    first: dict[int, Data] = {}
    for citation in document["citations"]:
        first.setdefault(citation["n"], citation["source"])
    rows = []
    for n, source in sorted(first.items()):
        title = source.get("title") or source.get("doc_id")
        texts = (title, source.get("licence"), source.get("url"))
        rows.append((f"[{n}]", *map(one_line, texts)))
    if rows:
        yield clipped(
            labels("sources"), columns(labels, ":number", "source", "licence", ":url"), rows
        )
    if notes := document["statistics"].get("enrichment", {}).get("notes"):
        yield Lines([(one_line(note), "dim") for note in notes])


def _plan(document: Data, labels: Labels) -> Iterator[Block]:
    """Yield one row per step: its status, dependencies, findings and time."""
    if not document["plan"]:
        return
    plan = Plan.load(document["plan"])
    records = document["records"]
    last = last_records(records)
    number = {step_id: str(index) for index, step_id in enumerate(plan.by_id(), 1)}
    rows = []
    for step in plan.steps:
        record = last.get(step.step_id)
        summary = record["output_summary"] if record else {}
        status = labels.status("pending")
        duration = ""
        if record:
            attempt = f" ×{record['attempt']}" if record["attempt"] > 1 else ""
            status = labels.status(record["status"]) + attempt
            if EDITED in record.get("effect", {}):
                status += f" · {labels('edit_results')}"
            timed = document["log"] and record["status"] != "skipped"
            duration = milliseconds(record["duration_ms"]) if timed else ""
        score = summary.get("top_score")
        rows.append(
            (
                number[step.step_id],
                status,
                f"{step_name(one_line(step.step_id))}\n{cut(step.objective, 200)}",
                step.tool,
                ", ".join(number.get(source, source) for source in step.dependencies()),
                str(summary.get("evidence_count", "")),
                "" if score is None else score_text(score),
                duration,
            )
        )
    names = ":number status:status step tool:code after found:number best:number time:number"
    version = labels("version", n=plan.version)
    title = f"{labels('plan')} · {version} · {labels('steps', n=len(rows))}"
    heads = columns(labels, *names.split())
    yield clipped(title, heads, rows, notes=_errors(records, last, labels))


def _errors(
    records: Sequence[ExecutionRecord], last: Mapping[str, ExecutionRecord], labels: Labels
) -> Iterator[str]:
    """Yield the error of each failed attempt, with its number unless it is the only one."""
    for record in records:
        if record["error"]:
            single = record["attempt"] == 1 and record == last[record["step_id"]]
            attempt = "" if single else f" · {labels('attempt', n=record['attempt'])}"
            yield f"{step_name(record['step_id'])}{attempt}{labels('colon')}{reason_text(record, labels)}"


def _reflections(document: Data, labels: Labels) -> Iterator[Block]:
    for reflection in document["reflections"]:
        yield from reflection_tables(reflection, labels)


def _decisions(document: Data, labels: Labels) -> Iterator[Block]:
    rows = []
    for decision in document["decisions"]:
        edits = labels("semicolon").join(
            edit_texts(decision["edits"], decision["proposal"], labels)
        )
        rows.append(
            (
                labels.get(f"point_{decision['point']}", decision["point"]),
                labels(decision["action"]),
                reviewer_name(decision["who"], labels),
                cut(edits or decision["message"], 200),
                decision["note"],
            )
        )
    if rows:
        yield clipped(
            labels("decisions"),
            columns(labels, "point", "action", "who", "changes", "note"),
            rows,
        )


def _evidence(document: Data, labels: Labels) -> Iterator[Block]:
    cited = {citation["n"] for citation in document["citations"]}  # they are listed as sources
    rows = [
        (
            f"[{piece['n']}]",
            one_line(piece["title"]),
            score_text(piece["score"]),
            ", ".join(piece["tools"]),
        )
        for piece in document["evidence"][: document["figures"]["in_prompt"] or None]
        if piece["n"] not in cited
    ]
    if rows:
        yield clipped(
            labels("evidence_also" if cited else "evidence_title"),
            columns(labels, ":number", "piece", "score:number", "found_by"),
            rows,
            opened=False,
        )


_PARTS = {
    "head": _head,
    "review": review_blocks,
    "answer": _answer_text,
    "sources": _sources,
    "plan": _plan,
    "reflections": _reflections,
    "decisions": _decisions,
    "evidence": _evidence,
}
