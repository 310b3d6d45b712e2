"""The answer, sentence by sentence, each ``[n]`` a way to its evidence; and what was said before it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.draw.page import Markup, Picture, button, el, glyph
from workbench.labels import Labels
from workbench.labels.told import read_told

Document = Mapping[str, Any]
_MARK = re.compile(r"\[(\d{1,4})\]([。，、；：？！.,;:?!]*)")
"""A mark, and the punctuation after it, which is never to begin a line."""
_MOST_CHARACTERS = 50_000


def answer(document: Document, labels: Labels, written: str = "") -> Picture:
    """The answer of a run, or as much of it as is written; a number in brackets is a button that shows its evidence."""
    text = (document["answer"] or written)[:_MOST_CHARACTERS]
    cited = dict[int, list[tuple[int, str]]]()
    for index, citation in enumerate(document["citations"]):
        cited.setdefault(citation["n"], []).append((index, str(citation["source"].get("title") or "")))
    title = el("div", el("h3", labels("answer"), cls="wb-title"), _counted(document, labels), cls="wb-bar")
    if not text:
        return Picture(_section(title, el("p", _silence(document, labels), cls="wb-dim")))
    paragraphs = [el("p", _marked(line, cited, labels)) for line in text.splitlines() if line.strip()]
    return Picture(_section(title, el("div", paragraphs, cls="wb-answer", lang=labels.html_lang)))


def _section(*parts: Markup) -> Markup:
    """The parts in one section."""
    return el("section", parts, cls="wb-section")


def _silence(document: Document, labels: Labels) -> str:
    if document["error"]:
        return str(document["error"])
    return labels("writing") if document["status"] == "running" else labels("no_answer")


def _counted(document: Document, labels: Labels) -> Markup | None:
    if not document["answer"]:
        return None
    return el("span", labels("answer_sources", n=document["figures"]["cited"]), cls="wb-dim")


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
        found.append(el("span", cite, mark[2], cls="wb-keep") if mark[2] else cite)
    return [*found, line[end:]]


def turns(messages: Sequence[Mapping[str, Any]], labels: Labels) -> Picture:
    """The conversation so far: questions and answers, folded, the newest last; a question opens its run."""
    rows = [
        el(
            "div",
            glyph(turn["status"], labels),
            el(
                "div",
                button(turn["message"], "open", key=turn["run_id"], cls="wb-quiet wb-turn"),
                el("span", read_told(turn, labels), cls="wb-dim"),
                cls="wb-main",
            ),
            cls="wb-turn-row",
        )
        for turn in messages
    ]
    if not rows:
        return Picture()
    summary = el("summary", labels("conversation", n=len(rows)))
    return Picture(el("details", summary, rows, cls="wb-turns", data_fold="turns"))
