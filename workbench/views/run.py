"""The bench's own parts: head, progress, answer with its citations, calls of models, evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

from markupsafe import Markup

from workbench.records.figures import Piece
from workbench.state import Data
from workbench.text import sentences, terms
from workbench.views.labels import Labels
from workbench.views.labels.sentences import read_told
from workbench.views.outline import run_facts, supported_told
from workbench.views.page import BLANK, Picture, draw, el, joined, safe

VIEWS = ("work", "runs", "compare", "knowledge")


def head(
    document: Data | None,
    labels: Labels,
    *,
    view: str = "work",
    origin: str | None = None,
    said: str = "",
    sure: bool = False,
) -> Picture:
    """Return the head of a run, or of an empty bench.

    Args:
        document: of the run; None before there is one.
        labels: the words.
        view: which of ``VIEWS`` is open.
        origin: the run from which this one was made.
        said: a message about what was done just now, for everybody to see.
        sure: whether a person pressed *Cancel*, and is asked if they are sure.
    """
    facts, read = list[str](), ""
    if document is not None:
        read, facts = read_told(document, labels), run_facts(document, labels)
        for last in document["reflections"][-1:]:
            facts.append(labels("pass_of", n=last["current_iteration"], most=last["max_iterations"]))
        facts += [] if document["log"] else [labels("nothing_run")]
        facts += [document["holder"]] if document["holder"] and document["status"] == "running" else []
    shown = {"document": document, "origin": origin, "views": VIEWS, "view": view, "said": said, "sure": sure}
    return Picture(draw("run.head", labels, read=read, facts=facts, **shown))


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
}
"""Nodes that are part of one that is drawn."""
_INSIDE = {"retrieval": CHILD, "reporter": REPORT}


def rail(document: Data, labels: Labels, report: bool = False) -> Picture:
    """Return where a run is in its graphs; nodes that it did not come to, as for small talk, stay hollow.

    ``report`` says that it writes one, so that what writes it is in place of what answers.
    """
    states = node_states(document, report)
    names = ["reporter" if report and name == "generate" else name for name in PARENT]
    nested = {n: {child: states[child] for child in _INSIDE[n]} if n in _INSIDE else states[n] for n in names}
    words = labels("comma").join(f"{labels(f'node_{name}')} {labels(state)}" for name, state in states.items())
    return Picture(draw("run.rail", labels, states=nested, told=words))


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


_MARK = re.compile(r"\[(\d{1,4})\]([。，、；：？！.,;:?!]*)")
"""A mark, and the punctuation after it, which is never to begin a line."""
_MOST_CHARACTERS = 50_000


class Marks:
    """Marks as buttons that show their evidence, each that of its own sentence; a mark of nothing stays words."""

    def __init__(self, citations: Sequence[Data], labels: Labels):
        self._labels, self._cited = labels, dict[int, list[tuple[int, str]]]()
        for place, citation in enumerate(citations):
            title = str(citation["source"].get("title") or "")
            self._cited.setdefault(citation["n"], []).append((place, title))

    def __call__(self, number: int, behind: str) -> Markup:
        """Return the button of a mark with the punctuation behind it; its key is the place of the citation."""
        places = self._cited.get(number)
        if not places:
            return safe(f"[{number}]{behind}")
        key, title = places.pop(0) if len(places) > 1 else places[0]
        return draw("run.cite", self._labels, n=number, key=str(key), title=title, behind=behind)

    def line(self, text: str) -> Markup:
        """Return a line of text with its marks as buttons."""
        pieces, end = list[str](), 0
        for mark in _MARK.finditer(text):
            pieces += [text[end : mark.start()], self(int(mark[1]), mark[2])]
            end = mark.end()
        return joined([*pieces, text[end:]])


def answer(document: Data, labels: Labels, written: str = "") -> Picture:
    """The answer of a run, or as much of it as is written; a number in brackets is a button that shows its evidence."""
    text, marks = (document["answer"] or written)[:_MOST_CHARACTERS], Marks(document["citations"], labels)
    words = labels("answer_sources", n=document["figures"]["cited"]) if document["answer"] else ""
    if words and document["support"]:
        words += f" · {supported_told(document['support'], labels)}"
    lines = [marks.line(line) for line in text.splitlines() if line.strip()]
    return Picture(draw("run.answer", labels, document=document, told=words, paragraphs=lines))


def turns(messages: Sequence[Data], labels: Labels) -> Picture:
    """Return the conversation so far: questions and answers, folded, the newest last; a question opens its run."""
    rows = [(turn, read_told(turn, labels)) for turn in messages]
    return Picture(draw("run.turns", labels, rows=rows)) if rows else BLANK


def calls(found: Sequence[Data], labels: Labels) -> Picture:
    """Return the calls of ``Run.calls``, each with a button to edit it; nothing where no model was asked."""
    return Picture(draw("calls.all", labels, calls=found)) if found else BLANK


MOST_SHOWN, _MOST_DROPPED = 12, 3
"""Pieces that are shown before `all`."""
_TEXT = 600


def evidence(
    pieces: Sequence[Piece], labels: Labels, *, chosen: str = "", said: str = "", every: bool = False
) -> Picture:
    """Return the list of pieces, best first, what was dropped last.

    Args:
        pieces: of ``Run.pieces``.
        labels: the words.
        chosen: ``result_id`` or key of the piece whose text is shown whole.
        said: a sentence of the answer; the sentence of the chosen piece that is nearest to it is marked.
        every: show all of them.
    """
    dropped, shown = [p for p in pieces if p["fate"] == "dropped"], list(pieces)
    if not every:
        shown = [p for p in pieces if p["fate"] != "dropped"][:MOST_SHOWN] + dropped[:_MOST_DROPPED]
    if chosen and not any(piece["result_id"] == chosen for piece in shown):
        shown += [piece for piece in pieces if piece["result_id"] == chosen]
    one = next((p["key"] for p in shown if chosen and chosen in (p["result_id"], p["key"])), "")
    rows = {p["key"]: _piece(p, labels, p["key"] == one, said) for p in shown}
    cited, kept = (sum(map(test, pieces)) for test in (lambda p: p["fate"] == "cited", itemgetter("in_prompt")))
    judged = dropped or any(piece["fate"] in ("cited", "used") for piece in pieces)
    words = labels("evidence_kept" if judged else "evidence_found", n=len(pieces), kept=kept, cited=cited)
    more = len(pieces) if len(pieces) > len(shown) or every else 0
    return Picture(draw("run.evidence", labels, told=words, more=more, every=every), rows)


def _nearest(text: str, said: str) -> Markup:
    """Return the text of a piece, with the sentence marked that shares most words with what was said of it.

    >>> str(_nearest("It is green. It was released in 2003.", "Moss was released in 2003 [1]."))
    'It is green. <mark>It was released in 2003.</mark>'
    """
    wanted, parts = set(terms(said)), sentences(text)
    shares = [len(wanted & set(terms(sentence))) for sentence in parts]
    most = max(shares, default=0)
    if not most:
        return safe(text)
    before, marked, after = text.partition(parts[shares.index(most)])
    return joined([before, el("mark", marked), after])


def _piece(piece: Piece, labels: Labels, whole: bool, said: str) -> Markup:
    text = _nearest(str(piece["text"]), said) if whole else " ".join(str(piece["text"]).split())[:_TEXT]
    score = "<0.01" if 0 < piece["score"] < 0.005 else f"{piece['score']:.2f}"  # what is little is not nothing
    return draw("run.piece", labels, piece=piece, text=text, whole=whole, score=score)
