"""The parts of the bench: head, answer with its citations, calls of models, evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import unified_diff

from markupsafe import Markup

from workbench.records.figures import Piece
from workbench.state import Data
from workbench.text import sentences, terms
from workbench.views.labels import Labels
from workbench.views.labels.sentences import reading_text
from workbench.views.markup import BLANK, ROWS, Picture, draw, el, joined, safe
from workbench.views.outline import run_facts
from workbench.views.review import support_text

VIEWS = ("work", "runs", "compare", "knowledge")


def head(
    document: Data | None,
    labels: Labels,
    *,
    view: str = "work",
    origin: str | None = None,
    message: str = "",
) -> Picture:
    """Return the head of a run, or of an empty bench.

    Args:
        document: of the run; None before there is one.
        labels: the words.
        view: the open one of ``VIEWS``.
        origin: the run that this one was forked from.
        message: about the last action.
    """
    facts, read = list[str](), ""
    if document is not None:
        read, facts = reading_text(document, labels), run_facts(document, labels)
        for last in document["reflections"][-1:]:
            facts.append(labels("pass_of", n=last["current_iteration"], most=last["max_iterations"]))
        facts += [] if document["log"] else [labels("nothing_run")]
    state = {"document": document, "origin": origin, "view": view, "message": message}
    return Picture(draw("run.head", labels, read=read, facts=facts, views=VIEWS, **state))


_MARK = re.compile(r"\[(\d{1,4})\]([。，、；：？！.,;:?!]*)")
"""A citation, and the punctuation after it, which must not begin a line."""
_MOST_CHARACTERS = 50_000


class Marks:
    """Citations as buttons that show their evidence, each that of its own sentence; a mark without one stays text."""

    def __init__(self, citations: Sequence[Data], labels: Labels):
        self._labels, self._cited = labels, dict[int, list[tuple[int, str]]]()
        for index, citation in enumerate(citations):
            title = str(citation["source"].get("title") or "")
            self._cited.setdefault(citation["n"], []).append((index, title))

    def __call__(self, number: int, behind: str) -> Markup:
        """Return the button of a mark with the punctuation behind it; its key is the index of the citation."""
        cited = self._cited.get(number)
        if not cited:
            return safe(f"[{number}]{behind}")
        key, title = cited.pop(0) if len(cited) > 1 else cited[0]
        return draw("run.cite", self._labels, n=number, key=str(key), title=title, behind=behind)

    def line(self, text: str) -> Markup:
        """Return a line of text with its marks as buttons."""
        pieces, end = list[str](), 0
        for mark in _MARK.finditer(text):
            pieces += [text[end : mark.start()], self(int(mark[1]), mark[2])]
            end = mark.end()
        return joined([*pieces, text[end:]])


def answer(document: Data, labels: Labels, draft: str = "") -> Picture:
    """Return the answer of a run, or the ``draft`` of it so far, with its citations as buttons."""
    text, marks = (document["answer"] or draft)[:_MOST_CHARACTERS], Marks(document["citations"], labels)
    facts = labels("answer_sources", n=document["figures"]["cited"]) if document["answer"] else ""
    if facts and document["support"]:
        facts += f" · {support_text(document['support'], labels)}"
    lines = [
        (line[:2] in ("- ", "* "), marks.line(re.sub("^[-*] ", "", line))) for line in text.splitlines() if line.strip()
    ]
    return Picture(draw("run.answer", labels, document=document, facts=facts, paragraphs=lines))


def turns(messages: Sequence[Data], labels: Labels) -> Picture:
    """Return the questions before this one, folded; a question opens its run."""
    rows = [(turn, reading_text(turn, labels)) for turn in messages]
    return Picture(draw("run.turns", labels, rows=rows)) if rows else BLANK


def calls(run_calls: Sequence[Data], labels: Labels) -> Picture:
    """Return the calls of ``Run.calls``; nothing where no model was called."""
    return Picture(draw("calls.all", labels, calls=run_calls)) if run_calls else BLANK


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines that differ, each as ``del`` or ``ins`` and its text, with a line around them.

    >>> changed_lines("a\\nb", "a\\nc")
    [('span', 'a'), ('del', 'b'), ('ins', 'c')]
    """
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:]
    return [({"-": "del", "+": "ins"}.get(line[0], "span"), line[1:]) for line in lines if line[0] != "@"]


_MOST_SHOWN = 400
_LONGEST_PREVIEW = 600


def evidence(
    pieces: Sequence[Piece],
    labels: Labels,
    *,
    chosen: str = "",
    sentence: str = "",
    question: str = "",
    marks: str = "",
    relevant: Mapping[str, bool] = {},
) -> Picture:
    """Return the list of pieces, best first, dropped ones last; its front-end sorts, searches and marks words.

    Args:
        pieces: of ``Run.pieces``.
        labels: the words.
        chosen: ``result_id`` or key of the piece whose full text is shown.
        sentence: of the answer; the most similar sentence of the chosen piece is marked.
        question: whose words are marked.
        marks: the status of a run whose chosen piece can be pinned or struck out; empty where it cannot.
        relevant: what the person said of pieces, by key.
    """
    shown = pieces[:_MOST_SHOWN]
    opened = next((p["key"] for p in shown if chosen and chosen in (p["result_id"], p["key"])), "")
    rows = {p["key"]: _piece(p, labels, p["key"] == opened, sentence, place) for place, p in enumerate(shown)}
    if chosen_piece := next((p for p in shown if p["key"] == opened and p["why"] != "duplicate"), None):
        ranks, said = _ranks(chosen_piece, pieces, labels), relevant.get(opened)
        acts = draw("run.piece_acts", labels, piece=chosen_piece, marks=marks, said=said, ranks=ranks)
        rows[opened] = Markup(rows[opened].replace(ROWS, acts))
    fates, unique = Counter(piece["fate"] for piece in pieces), sum(piece["n"] is not None for piece in pieces)
    counts = {"n": len(pieces), "unique": unique, "kept": sum(p["in_prompt"] for p in pieces), "cited": fates["cited"]}
    facts = labels("evidence_kept" if fates.keys() - {"found"} else "evidence_found", **counts)
    more = labels("and_more", n=len(pieces) - len(shown)) if len(pieces) > len(shown) else ""
    words = " ".join(dict.fromkeys(terms(question)))
    return Picture(draw("run.evidence", labels, facts=facts, more=more, words=words), rows)


def _marked(text: str, sentence: str) -> Markup:
    """Return a text with the sentence marked that shares most words with another sentence.

    >>> str(_marked("It is green. It was released in 2003.", "Moss was released in 2003 [1]."))
    'It is green. <mark>It was released in 2003.</mark>'
    """
    wanted = set(terms(sentence))
    best = max(sentences(text), key=lambda part: len(wanted & set(terms(part))), default="")
    if not wanted & set(terms(best)):
        return safe(text)
    before, marked, after = text.partition(best)
    return joined([before, el("mark", marked), after])


def _ranks(piece: Piece, pieces: Sequence[Piece], labels: Labels) -> str:
    """Return the parts of a score, each with the rank that it alone would give."""

    def rank(name: str, value: float) -> int:
        return 1 + sum(each["signals"].get(name, 0) > value for each in pieces)

    parts = [(name, value, rank(name, value)) for name, value in piece["signals"].items() if value]
    return " · ".join(labels("piece_signal", name=name, value=f"{value:.2f}", rank=n) for name, value, n in parts)


def _piece(piece: Piece, labels: Labels, opened: bool, sentence: str, place: int) -> Markup:
    text = str(piece["text"])
    shown = _marked(text, sentence) if opened else " ".join(text.split())[:_LONGEST_PREVIEW]
    score = "<0.01" if 0 < piece["score"] < 0.005 else f"{piece['score']:.2f}"
    return draw("run.piece", labels, piece=piece, text=shown, opened=opened, score=score, place=place)
