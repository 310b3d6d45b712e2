"""The parts of the bench: head, answer with its citations, calls of models, evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from markupsafe import Markup

from workbench.records.figures import Piece, fitting, numbered_source
from workbench.state import Data
from workbench.text import closest, content_terms, sentences, terms
from workbench.views.blocks import shared_values, split_row, split_tables
from workbench.views.labels import Labels
from workbench.views.markup import Picture, draw, el, joined, safe
from workbench.views.outline import run_facts
from workbench.views.plan import needs_in_words
from workbench.views.review import need_verdict, needs_text, support_text

VIEWS = ("work", "runs", "compare", "knowledge")


def head(document: Data | None, labels: Labels, **about: Any) -> Picture:
    """Return the head of a run, or of an empty bench.

    Args:
        document: of the run; None before there is one.
        labels: the words.
        about: the open ``view`` of ``VIEWS``; the ``origin`` of a fork, and its ``name`` (``edits.fork_name``); a
            ``message`` about the last action.
    """
    facts = run_facts(document, labels) if document else ()
    return Picture(draw("run.head", labels, document=document, facts=facts, views=VIEWS, **about))


_DECORATION = re.compile(r"^- |\s?\[\d{1,4}\]")
"""Marks of a list and of citations, which are left out where a sentence is quoted."""
_MARK = re.compile(r"\[(\d{1,4})\]([。，、；：？！.,;:?!]*)")
"""A citation, and the punctuation after it, which must not begin a line."""
_CITED = re.compile(rf"[^\s<>&;\[\]]{{0,12}}\s?(?:{_MARK.pattern})+")
"""Citations with the end of the word before them, which stay on its line."""
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_EM = re.compile(r"(?<![\w*])\*(?=\S)([^*<>]+)\*(?!\w)")


class Marks:
    """Citations as buttons that show their evidence, each that of its own sentence; a mark without one stays text."""

    def __init__(self, citations: Sequence[Data], labels: Labels):
        self._labels = labels
        self._cited = dict[int, list[tuple[int, str]]]()
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
        """Return a line of text with its marks as buttons, and what Markdown emphasizes."""
        line = _STRONG.sub(r"<strong>\1</strong>", str(safe(text)))  # no tag is of the text
        line = _EM.sub(r"<em>\1</em>", line)
        line = _CITED.sub(r'<span class="wb-keep">\g<0></span>', line)
        return Markup(_MARK.sub(lambda mark: self(int(mark[1]), mark[2]), line))


def answer(document: Data, labels: Labels, draft: str = "") -> Picture:
    """Return the answer of a run, or the ``draft`` of it so far, with its citations as buttons.

    On a bench the document has the ``pieces`` that were found, and what names are ``called``; see ``evidence``.
    """
    marks = Marks(document["citations"], labels)
    needs = needs_in_words(document)
    blocks = [
        (is_table, [_claim(document, line, is_table, marks) for line in lines])
        for is_table, lines in split_tables(document["answer"] or draft)
    ]
    return Picture(
        draw(
            "run.answer",
            labels,
            document=document,
            blocks=blocks,
            support=support_text(document["support"], labels),
            needs=needs_text(needs, labels),
            verdicts=[(need_verdict(need, labels), need) for need in needs],
        )
    )


def _claim(document: Data, line: str, is_table: bool, marks: Marks) -> Data:
    """Return a line of an answer, or a row of a table in it, with its verdicts and its citations by key."""
    cells = split_row(line) if is_table else [re.sub("^[-*] ", "", line)]
    cited = enumerate(document["citations"])
    return {
        "is_item": line.startswith(("- ", "* ")),
        "cells": [marks.line(cell) for cell in cells],
        "support": [claim for claim in document["support"] if claim["sentence"] in line],
        "shared": shared_values(cells),
        "cited": {key: each for key, each in cited if each["sentence"] in line},
    }


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines that differ, each as ``del`` or ``ins`` and its text, with a line around them.

    >>> changed_lines("a\\nb", "a\\nc")
    [('span', 'a'), ('del', 'b'), ('ins', 'c')]
    """
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:]
    return [
        ({"-": "del", "+": "ins"}.get(line[0], "span"), line[1:])
        for line in lines
        if line[0] != "@"
    ]


_MOST_SHOWN = 400


def evidence(
    pieces: Sequence[Piece],
    figures: Mapping[str, Any],
    labels: Labels,
    *,
    chosen: str = "",
    sentence: str = "",
    question: str = "",
    marks: str = "",
    relevant: Mapping[str, bool] = {},
    titles: Mapping[str, str] = {},
    called: Mapping[str, str] = {},
    needs: Sequence[Data] = (),
    max_characters: int = 10_000,
) -> Picture:
    """Return the list of distinct pieces, best first; its front-end sorts, searches and marks words.

    Those that are not in the context are folded behind the others. An excerpt begins at the first word of the question.

    Args:
        pieces: of ``Run.pieces``.
        figures: of the run (``records.figures``).
        labels: the words.
        chosen: ``result_id`` or key of the piece whose full text is shown.
        sentence: of the answer; the most similar sentence of the chosen piece, and its fields' values in it are marked.
        question: what was asked and searched, whose words are marked.
        marks: the status of a run whose chosen piece can be pinned or struck out; empty where it cannot.
        relevant: what the person said of pieces, by key.
        titles: of the steps, by id.
        called: the words for fields, and the Chinese names of documents, by name.
        needs: of the answer; a piece shows those that it meets best.
        max_characters: of the context; before there is one, those that fit are shown.
    """
    distinct = [piece for piece in pieces if piece["why"] != "duplicate"]
    sources = [numbered_source(p["n"], p["title"], p["text"]) for p in distinct if p["n"]]
    first = figures["in_prompt"] or fitting(sources, max_characters)
    rows = {}
    words = content_terms(question)
    for place, piece in enumerate(distinct[:_MOST_SHOWN]):
        is_open = chosen in (piece["result_id"], piece["key"])
        text = piece["text"]
        rows[piece["key"]] = draw(
            "run.piece",
            labels,
            piece=piece,
            place=place,
            opened=is_open,
            rest=place >= first,
            text=_marked(text, sentence) if is_open else _excerpt(text, words),
            needs=needs,
            sentence=_DECORATION.sub("", sentence),
            pieces=distinct,
            marks=marks,
            said=relevant.get(piece["key"]),
            titles=titles,
            called=called,
        )
    return Picture(
        draw(
            "run.evidence",
            labels,
            figures=figures,
            first=first,
            n=len(distinct),
            most=_MOST_SHOWN,
            words=" ".join(words),
        ),
        rows,
    )


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return a text from a little before the first of these words on, as the front-end marks them.

    >>> _excerpt("It was made in the long summer of that year, of a thief who dreams.", ["thief"])
    '… of that year, of a thief who dreams.'
    """
    text = " ".join(text.split())
    marked = "|".join(map(re.escape, words)) or "^"
    before = r"(?:(?<=\s)\S.{0,20})?(?<![a-z0-9])"
    behind = r"(?:(?<=[\u2e80-\uffff])|(?:e?s|e?d|ing)?(?![a-z0-9]))"
    match = re.search(f"{before}(?:{marked}){behind}", text, re.IGNORECASE)
    return f"… {text[match.start() :]}" if match and match.start() > 20 else text


def _marked(text: str, sentence: str) -> Markup:
    """Return a text with the sentence marked that shares most words with another sentence.

    >>> str(_marked("It is green. It was released in 2003.", "Moss was released in 2003 [1]."))
    'It is green. <mark>It was released in 2003.</mark>'
    """
    best = closest(sentence, sentences(text))
    if not {*terms(sentence)} & {*terms(best)}:
        return safe(text)
    before, marked, after = text.partition(best)
    return joined([before, el("mark", marked), after])
