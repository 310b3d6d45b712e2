"""The bench's own parts: head, progress, answer with its citations, evidence, and the bar of a fork."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from workbench.records.figures import Piece
from workbench.text import sentences, terms
from workbench.views.labels import Labels
from workbench.views.labels.sentences import read_told
from workbench.views.outline import run_facts
from workbench.views.page import Data, Picture, button, draw, el, joined

# the head of the bench

VIEWS = ("work", "runs", "compare", "knowledge")
_UNDER_WAY = ("running", "paused", "interrupted")


def head(
    document: Data | None,
    labels: Labels,
    *,
    view: str = "work",
    origin: str | None = None,
    said: str = "",
    sure: bool = False,
) -> Picture:
    """The head of a run, or of an empty bench.

    Args:
        document: of the run; None before there is one.
        labels: the words.
        view: which of ``VIEWS`` is open.
        origin: the run from which this one was made.
        said: a message about what was done just now, for everybody to see.
        sure: whether a person pressed *Cancel*, and is asked if they are sure.
    """
    more: dict[str, Any] = {"status": "", "read": "", "facts": (), "actions": ""}
    if document is not None:
        asks = sure and document["status"] in _UNDER_WAY
        told = {"status": document["status"], "origin": origin, "plan": document["plan"], "sure": asks}
        actions = draw("run.actions", labels=labels, **told)
        read, status = read_told(document, labels), _status(document, labels)
        more = {"status": status, "read": read, "facts": _facts(document, labels), "actions": actions}
    shown = {"document": document, "origin": origin, "views": VIEWS, "view": view, "said": said}
    return Picture(draw("run.head", labels=labels, **shown, **more))


def _status(document: Data, labels: Labels) -> str:
    status, review = labels(document["status"]), document["review"]
    if document["status"] == "paused" and review:
        return f"{status} · {labels('point_' + str(review['point']))}"
    return status


def _facts(document: Data, labels: Labels) -> list[str]:
    facts, reflections = run_facts(document, labels), document["reflections"]
    if reflections:
        last = reflections[-1]
        facts.append(labels("pass_of", n=last["current_iteration"], most=last["max_iterations"]))
    facts += [] if document["log"] else [labels("nothing_run")]
    facts += [document["holder"]] if document["holder"] and document["status"] == "running" else []
    return facts


PARENT = ("route", "recall", "retrieval", "generate", "persist")
CHILD = ("planner", "executor", "reflector", "merger")
REPORT = ("outliner", "section", "consistency", "assemble")
_IN_CHILD = {
    "intent_detect": "route",
    "apply_override_policy": "route",
    "worker_select": "route",
    "prepare_retrieval": "recall",
    "clarify": "recall",
    "review_clarify": "recall",
    "review_plan": "planner",
    "dispatcher": "executor",
    "review_reflect": "reflector",
    "review_outline": "outliner",
    "review_section": "section",
    "research": "section",
    "review_report": "assemble",
}
"""Nodes that are part of one that is drawn."""
_INSIDE = {"retrieval": CHILD, "reporter": REPORT}


def rail(document: Data, labels: Labels, report: bool = False) -> Picture:
    """Where a run is in its graphs; nodes that it did not come to, as for small talk, stay hollow.

    ``report`` says that it writes one, so that what writes it is in place of what answers.
    """
    states = node_states(document, report)
    names = ["reporter" if report and name == "generate" else name for name in PARENT]
    nested = {n: {child: states[child] for child in _INSIDE[n]} if n in _INSIDE else states[n] for n in names}
    told = labels("comma").join(f"{labels(f'node_{name}')} {labels(state)}" for name, state in states.items())
    return Picture(draw("run.rail", labels=labels, states=nested, told=told))


def node_states(document: Data, report: bool = False) -> dict[str, str]:
    """Each node with ``done``, ``running``, ``paused``, ``failed``, ``interrupted``, ``cancelled`` or ``pending``."""
    ran = {_IN_CHILD.get(entry["node"], entry["node"]) for entry in document["log"]}
    order = ("route", "recall", *CHILD, *(REPORT if report else ("generate",)), "persist")
    states = {name: "done" if name in ran else "pending" for name in order}
    status = document["status"]
    if status == "done":
        return states
    last = next((_IN_CHILD.get(entry["node"], entry["node"]) for entry in reversed(document["log"])), "")
    place = order.index(last) if last in order else -1
    stays = status == "paused" or last in ("executor", "section")  # these come again
    here = order[place if stays and last else min(place + 1, len(order) - 1)]
    later = order.index(here) + 1
    states |= dict.fromkeys(order[later:], "pending")
    return {**states, here: status if status in ("running", "paused", "failed", "cancelled") else "interrupted"}


# the answer with its citations, the conversation before it, the evidence

_MARK = re.compile(r"\[(\d{1,4})\]([。，、；：？！.,;:?!]*)")
"""A mark, and the punctuation after it, which is never to begin a line."""
_MOST_CHARACTERS = 50_000


def answer(document: Data, labels: Labels, written: str = "") -> Picture:
    """The answer of a run, or as much of it as is written; a number in brackets is a button that shows its evidence."""
    text = (document["answer"] or written)[:_MOST_CHARACTERS]
    cited = dict[int, list[tuple[int, str]]]()
    for index, citation in enumerate(document["citations"]):
        cited.setdefault(citation["n"], []).append((index, str(citation["source"].get("title") or "")))
    lines = [_marked(line, cited, labels) for line in text.splitlines() if line.strip()]
    told, silence = _counted(document, labels), "" if text else _silence(document, labels)
    return Picture(draw("run.answer", labels=labels, told=told, silence=silence, paragraphs=lines))


def verdict(good: bool | None, labels: Labels) -> Picture:
    """What a person can say of an answer, and what they have said."""
    return Picture(draw("run.verdict", labels=labels, good=good))


def _silence(document: Data, labels: Labels) -> str:
    if document["error"]:
        return str(document["error"])
    return labels("writing") if document["status"] == "running" else labels("no_answer")


def _counted(document: Data, labels: Labels) -> str:
    if not document["answer"]:
        return ""
    told, support = labels("answer_sources", n=document["figures"]["cited"]), document["support"]
    if support:
        whole = sum(one["verdict"] == "supported" for one in support)
        told = f"{told} · {labels('answer_supported', n=whole, of=len(support))}"
    return told


def _marked(line: str, cited: Mapping[int, list[tuple[int, str]]], labels: Labels) -> Markup:
    """A line whose ``[n]`` are buttons where there is evidence of that number; the key is the citation's place."""
    found, end = list[Markup | str](), 0
    for mark in _MARK.finditer(line):
        number = int(mark[1])
        if number not in cited:
            continue
        found.append(line[end : mark.start()])
        index, title = cited[number].pop(0) if len(cited[number]) > 1 else cited[number][0]
        name = labels("show_evidence", n=number, title=title)
        end = mark.end()
        cite = button(f"[{number}]", "evidence", key=str(index), cls="wb-cite", name=name)
        found.append(el("span.wb-keep", cite, mark[2]) if mark[2] else cite)
    return joined([*found, line[end:]])


def turns(messages: Sequence[Mapping[str, Any]], labels: Labels) -> Picture:
    """The conversation so far: questions and answers, folded, the newest last; a question opens its run."""
    rows = [(turn, read_told(turn, labels)) for turn in messages]
    return Picture(draw("run.turns", labels=labels, rows=rows)) if rows else Picture()


MOST_SHOWN = 12
"""Pieces that are shown before `all`."""
_TEXT = 600


def evidence(
    pieces: Sequence[Piece], labels: Labels, *, chosen: str = "", said: str = "", every: bool = False
) -> Picture:
    """The list of pieces, best first, what was dropped last.

    Args:
        pieces: of ``Run.pieces``.
        labels: the words.
        chosen: ``result_id`` or key of the piece whose text is shown whole.
        said: a sentence of the answer; the sentence of the chosen piece that is nearest to it is marked.
        every: show all of them.
    """
    counts = {fate: sum(piece["fate"] == fate for piece in pieces) for fate in ("cited", "used", "dropped")}
    shown = (
        pieces
        if every
        else [p for p in pieces if p["fate"] != "dropped"][:MOST_SHOWN]
        + [p for p in pieces if p["fate"] == "dropped"][:3]
    )
    if chosen and not any(piece["result_id"] == chosen for piece in shown):
        shown = [*shown, *(piece for piece in pieces if piece["result_id"] == chosen)]
    one = next((p["key"] for p in shown if chosen and chosen in (p["result_id"], p["key"])), "")
    rows = {p["key"]: _piece(p, labels, p["key"] == one, said) for p in shown}
    kept = sum(piece["in_prompt"] for piece in pieces)
    told = labels("evidence_found", n=len(pieces))
    if any(counts.values()):
        told = labels("evidence_kept", n=len(pieces), kept=kept, cited=counts["cited"])
    more = len(pieces) if len(pieces) > len(shown) or every else 0
    return Picture(draw("run.evidence", labels=labels, told=told, more=more, every=every), rows)


def _nearest(text: str, said: str) -> Markup:
    """The text of a piece, with the sentence marked that shares most words with what was said of it.

    >>> str(_nearest("It is green. It was released in 2003.", "Moss was released in 2003 [1]."))
    'It is green. <mark>It was released in 2003.</mark>'
    """
    wanted = set(terms(said))
    score, _, best = max(
        ((len(wanted & set(terms(s))), -i, s) for i, s in enumerate(sentences(text))), default=(0, 0, "")
    )
    before, marked, after = text.partition(best) if score else (text, "", "")
    return joined([before, el("mark", marked) if marked else None, after])


def _piece(piece: Piece, labels: Labels, whole: bool, said: str) -> Markup:
    text = _nearest(str(piece["text"]), said) if whole else " ".join(str(piece["text"]).split())[:_TEXT]
    url = piece["url"] if re.match(r"https?://\S+$", piece["url"]) else None
    look = {"url": url, "text": text, "whole": whole, "score": _score(piece["score"])}
    return draw("run.piece", labels=labels, piece=piece, **look)


def _score(score: float) -> str:
    """Two digits; what is little is not nothing."""
    return "<0.01" if 0 < score < 0.005 else f"{score:.2f}"


# the bar of a fork


def fork_bar(edits: int, problems: int, labels: Labels) -> Picture:
    """What pressing will do: a fork with so many edits; or how many problems are to be fixed first."""
    return Picture(draw("run.fork_bar", labels=labels, edits=edits, problems=problems))
