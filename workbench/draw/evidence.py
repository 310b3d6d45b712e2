"""The evidence: how many pieces came how far, and each piece with its score, who found it and what became of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.draw.page import Markup, Picture, button, closed, code, el, joined, opened
from workbench.fates import Piece
from workbench.labels import Labels
from workbench.text import sentences, terms

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
    title = el("div", el("h3", labels("evidence_title"), cls="wb-title"), el("span", told, cls="wb-dim"), cls="wb-bar")
    funnel = _funnel(len(pieces), kept, counts["cited"], labels) if merged and pieces else None
    scroll = opened(
        "div", cls="wb-list wb-pieces", data_scroll="pieces", role="listbox", aria_label=labels("evidence_title")
    )
    return joined([opened("section", cls="wb-section"), title, funnel, scroll])


def _funnel(found: int, kept: int, cited: int, labels: Labels) -> Markup:
    """How many came how far, as bars on one scale."""
    stages = (("stage_found", found, "idle"), ("stage_prompt", kept, "run"), ("stage_cited", cited, "done"))
    rows = [
        el(
            "div",
            el("span", labels(name), cls="wb-funnel-name wb-small"),
            el("div", el("i", style=f"width:{100 * count / found:.2f}%"), cls=f"wb-meter wb-{ink}"),
            el("span", f"{count:,}", cls="wb-small wb-number"),
            cls="wb-funnel-row",
        )
        for name, count, ink in stages
    ]
    return el("div", rows, cls="wb-funnel")


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
    score = el("div", el("span", _score(piece["score"])), _meter(piece["score"], dropped), cls="wb-score")
    fate = (
        [el("span", labels("dropped", why=labels(f"why_{piece['why']}", n=piece["of"])), cls="wb-dim")]
        if dropped
        else []
    )
    if piece["fate"] == "cited":
        fate = [el("span", labels("cited"), cls="wb-small wb-ink wb-done")]
    main = el(
        "div",
        el("div", title, cls="wb-struck" if dropped else "wb-strong"),
        el(
            "div",
            _nearest(text, said) if whole else text[:_TEXT],
            cls="wb-dim" + (" wb-kept" if whole else " wb-lines"),
        ),
        el("div", [code(name) for name in piece["tools"]], *fate, cls="wb-tags"),
        cls="wb-main",
    )
    number = el("span", str(piece["n"]) if piece["n"] else "–", cls="wb-piece-n wb-number")
    key = piece["key"]
    chosen = "true" if whole else "false"
    return el(
        "div",
        number,
        main,
        score,
        cls="wb-row wb-piece",
        data_key=key,
        role="option",
        aria_selected=chosen,
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
    return joined([closed("div"), el("div", press, cls="wb-bar") if press else None, closed("section")])
