"""The bench's own parts: head, progress, answer with its citations, evidence, and the bar of a fork."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.records.figures import Piece
from workbench.text import sentences, terms
from workbench.views.labels import Labels
from workbench.views.labels.sentences import read_told
from workbench.views.outline import run_facts
from workbench.views.page import Data, Markup, Picture, badge, button, closed, code, el, glyph, joined, opened

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
        sure: whether somebody pressed *Cancel*, and is asked if they are sure.
    """
    if document is None:
        question, read, status = labels("bench_empty"), "", None
        facts: Sequence[Markup | None] = ()
    else:
        question, read, status = document["message"], read_told(document, labels), _status(document, labels)
        facts = _facts(document, labels, origin)
    top = el(
        "div.wb-head-top",
        el(
            "div.wb-main",
            el("h2.wb-question", question),
            el("p.wb-dim", read) if read else None,
            el("div.wb-facts.wb-dim", facts),
        ),
        el("div.wb-actions", status, _actions(document, labels, origin, sure)),
    )
    alert = el("p.wb-said", said, role="status") if said else None
    return Picture(el("div.wb-head-inside", top, _tabs(view, labels), alert))


def _status(document: Data, labels: Labels) -> Markup:
    status, review = document["status"], document["review"]
    word = labels(status)
    if status == "paused" and review:
        word = f"{word} · {labels('point_' + str(review['point']))}"
    return el("span", badge(status, word, labels), role="status", aria_live="polite", cls="wb-status")


def _facts(document: Data, labels: Labels, origin: str | None) -> Sequence[Markup | None]:
    made = [f" {labels('forked_from', run=origin)}"] if origin else []
    facts, reflections = run_facts(document, labels), document["reflections"]
    if reflections:
        last = reflections[-1]
        facts.append(labels("pass_of", n=last["current_iteration"], most=last["max_iterations"]))
    facts += [] if document["log"] else [labels("nothing_run")]
    facts += [document["holder"]] if document["holder"] and document["status"] == "running" else []
    return [el("span", labels("run"), " ", code(document["run_id"]), *made), *(el("span", fact) for fact in facts)]


def _actions(document: Data | None, labels: Labels, origin: str | None, sure: bool) -> list[Markup]:
    if document is None:
        return []
    if sure and document["status"] in _UNDER_WAY:
        sure_buttons = [button(labels("cancel_yes"), "cancel:yes"), button(labels("cancel_no"), "cancel:no")]
        return [el("span.wb-alert", labels("cancel_sure"), role="alert"), *sure_buttons]
    status, found = document["status"], []
    if status in ("interrupted", "failed"):
        found.append(button(labels("carry_on"), "resume", cls="wb-primary", title=labels("carry_on_told")))
    if status == "done" and origin:
        found.append(button(labels("compare_with", run=origin), "view:compare"))
    if status == "done" and document["plan"]:
        found.append(button(labels("fork_anew"), "fork", title=labels("fork_anew_told")))
    if status in _UNDER_WAY:
        found.append(button(labels("cancel_run"), "cancel", cls="" if status == "running" else "wb-quiet"))
    for name in ("new_question", "new_conversation"):
        found.append(button(labels(name), name, cls="wb-quiet", title=labels(f"{name}_told")))
    return found


def _tabs(view: str, labels: Labels) -> Markup:
    tabs = [button(labels(f"view_{name}"), f"view:{name}", cls="wb-tab", aria_pressed=name == view) for name in VIEWS]
    return el("nav.wb-tabs", tabs, aria_label=labels("views"))


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
    """Where a run stands in its graphs; nodes that it did not come to, as for small talk, stay hollow.

    ``report`` says that it writes one, so that what writes it stands in place of what answers.
    """
    states = node_states(document, report)
    pieces: list[Markup] = []
    for name in PARENT:
        name = "reporter" if report and name == "generate" else name
        if name in _INSIDE:
            inside = _linked([_node(child, states[child], labels) for child in _INSIDE[name]])
            frame = el("span.wb-rail-name", labels(f"rail_{name}"))
            pieces.append(el("span.wb-rail-child", frame, inside))
        else:
            pieces.append(_node(name, states[name], labels))
    return Picture(el("div.wb-rail-line", _linked(pieces), role="img", aria_label=_told(states, labels)))


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


def _node(name: str, state: str, labels: Labels) -> Markup:
    here = " wb-here" if state in ("running", "paused", "failed", "interrupted", "cancelled") else ""
    current = "step" if here else None
    return el(
        "span", glyph(state, labels), el("span", labels(f"node_{name}")), cls=f"wb-node{here}", aria_current=current
    )


def _linked(pieces: Sequence[Markup]) -> list[Markup]:
    dash = el("span.wb-dash", aria_hidden="true")
    return [part for piece in pieces for part in (piece, dash)][:-1]


def _told(states: Mapping[str, str], labels: Labels) -> str:
    return labels("comma").join(f"{labels(f'node_{name}')} {labels(state)}" for name, state in states.items())


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
    title = el("div.wb-bar", el("h3.wb-title", labels("answer")), _counted(document, labels))
    if not text:
        return Picture(el("section.wb-section", title, el("p.wb-dim", _silence(document, labels))))
    paragraphs = [el("p", _marked(line, cited, labels)) for line in text.splitlines() if line.strip()]
    return Picture(el("section.wb-section", title, el("div.wb-answer", paragraphs, lang=labels.html_lang)))


def verdict(good: bool | None, labels: Labels) -> Picture:
    """What a person can say of an answer, and what they have said."""
    buttons = [
        button(labels(f"feedback_{name}"), name, aria_pressed=good is (name == "good")) for name in ("good", "bad")
    ]
    words = el("span.wb-dim.wb-small", labels("feedback_asked"))
    return Picture(el("div.wb-bar", words, buttons, role="group", aria_label=labels("feedback_asked")))


def _silence(document: Data, labels: Labels) -> str:
    if document["error"]:
        return str(document["error"])
    return labels("writing") if document["status"] == "running" else labels("no_answer")


def _counted(document: Data, labels: Labels) -> Markup | None:
    if not document["answer"]:
        return None
    told, support = labels("answer_sources", n=document["figures"]["cited"]), document["support"]
    if support:
        whole = sum(one["verdict"] == "supported" for one in support)
        told = f"{told} · {labels('answer_supported', n=whole, of=len(support))}"
    return el("span.wb-dim", told)


def _marked(line: str, cited: Mapping[int, list[tuple[int, str]]], labels: Labels) -> list[Markup | str]:
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
    return [*found, line[end:]]


def turns(messages: Sequence[Mapping[str, Any]], labels: Labels) -> Picture:
    """The conversation so far: questions and answers, folded, the newest last; a question opens its run."""
    rows = [
        el(
            "div.wb-turn-row",
            glyph(turn["status"], labels),
            el(
                "div.wb-main",
                button(turn["message"], "open", key=turn["run_id"], cls="wb-quiet wb-turn"),
                el("span.wb-dim", read_told(turn, labels)),
            ),
        )
        for turn in messages
    ]
    if not rows:
        return Picture()
    summary = el("summary", labels("conversation", n=len(rows)))
    return Picture(el("details.wb-turns", summary, rows, data_fold="turns"))


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
    return Picture(_head(pieces, counts, labels), rows, _foot(len(pieces), len(shown), every, labels))


def _head(pieces: Sequence[Piece], counts: Mapping[str, int], labels: Labels) -> Markup:
    kept = sum(piece["in_prompt"] for piece in pieces)
    merged = sum(counts.values()) > 0
    told = labels("evidence_kept", n=len(pieces), kept=kept, cited=counts["cited"]) if merged else ""
    told = told or labels("evidence_found", n=len(pieces))
    title = el("div.wb-bar", el("h3.wb-title", labels("evidence_title")), el("span.wb-dim", told))
    scroll = opened("div.wb-list.wb-pieces", data_scroll="pieces", role="listbox", aria_label=labels("evidence_title"))
    return joined([opened("section.wb-section"), title, scroll])


def _nearest(text: str, said: str) -> Markup:
    """The text of a piece, with the sentence marked that shares most words with what was said of it.

    >>> _nearest("It is green. It was released in 2003.", "Moss was released in 2003 [1].")
    'It is green. <mark>It was released in 2003.</mark>'
    """
    wanted = set(terms(said))
    score, _, best = max(
        ((len(wanted & set(terms(s))), -i, s) for i, s in enumerate(sentences(text))), default=(0, 0, "")
    )
    before, marked, after = text.partition(best) if score else (text, "", "")
    return joined([before, el("mark", marked) if marked else None, after])


def _piece(piece: Piece, labels: Labels, whole: bool, said: str) -> Markup:
    dropped = piece["fate"] == "dropped"
    text = str(piece["text"]) if whole else " ".join(str(piece["text"]).split())
    url = piece["url"] if re.match(r"https?://\S+$", piece["url"]) else None
    title = el("a", piece["title"], href=url, target="_blank", rel="noopener noreferrer") if url else piece["title"]
    score = el("div.wb-score", el("span", _score(piece["score"])), _meter(piece["score"], dropped))
    fate = [el("span.wb-dim", labels("dropped", why=labels(f"why_{piece['why']}", n=piece["of"])))] if dropped else []
    if piece["fate"] == "cited":
        fate = [el("span.wb-small.wb-ink.wb-done", labels("cited"))]
    main = el(
        "div.wb-main",
        el("div", title, cls="wb-struck" if dropped else "wb-strong"),
        el(
            "div",
            _nearest(text, said) if whole else text[:_TEXT],
            cls="wb-dim" + (" wb-kept" if whole else " wb-lines"),
        ),
        el("div.wb-tags", [code(name) for name in piece["tools"]], *fate),
    )
    number = el("span.wb-piece-n.wb-number", str(piece["n"]) if piece["n"] else "–")
    key = piece["key"]
    return el(
        "div.wb-row.wb-piece",
        number,
        main,
        score,
        data_key=key,
        role="option",
        aria_selected=whole,
        tabindex="-1",
    )


def _score(score: float) -> str:
    """Two digits; what is little is not nothing."""
    return "<0.01" if 0 < score < 0.005 else f"{score:.2f}"


def _meter(score: float, dropped: bool) -> Markup:
    width = 100 * min(max(score, 0.0), 1.0)
    return el("div", el("i", style=f"width:{width:.1f}%"), cls=f"wb-meter wb-{'idle' if dropped else 'run'}")


def _foot(found: int, shown: int, every: bool, labels: Labels) -> Markup:
    more = found > shown or every
    press = button(labels("show_fewer") if every else labels("show_all", n=found), "every") if more else None
    return joined([closed("div"), el("div.wb-bar", press) if press else None, closed("section")])


# the bar of a fork


def fork_bar(edits: int, problems: int, labels: Labels) -> Picture:
    """What pressing will do: a fork with so many edits; or how many problems are to be mended first."""
    fork = labels("fork_edits", n=edits)
    told = labels("problems_to_mend", n=problems) if problems else labels("fork_edits_told")
    buttons = [button(fork, "fork", cls="wb-primary", disabled=problems > 0), button(labels("discard"), "discard")]
    words = el("div.wb-main", el("p", told), el("div.wb-bar", buttons))
    return Picture(el("div.wb-band.wb-run", words, role="group", aria_label=fork))
