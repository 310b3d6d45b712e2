"""What is remembered, to be looked at: what is known of whom, what a prompt is made of, what is behind a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from workbench.views.labels import Labels, labels_for
from workbench.views.outline import Block, Column, Lines, clipped, columns
from workbench.views.page import Data, Picture, cut, draw
from workbench.views.render import Shown, page_html

if TYPE_CHECKING:
    import pandas

Row = Data
ORDER = ("system", "core", "summary", "episode", "evidence", "history", "question")
"""The parts of a prompt, in their order."""
_OF_MEMORY = ("core", "summary", "episode", "history")
_BAR = 24


class Rows(list[Any], Shown):
    """Rows that show themselves, in the language of ``message``; ``to_frame()`` makes a table of them."""

    def __init__(self, rows: Iterable[Any], message: str, blocks: Callable[[Sequence[Any], Labels], list[Block]]):
        super().__init__(rows)
        self.message, self._blocks = message, blocks

    def blocks(self) -> list[Block]:
        """Return a table of them."""
        return self._blocks(self, labels_for(self.message))

    def to_frame(self) -> pandas.DataFrame:
        """Return one row each."""
        import pandas

        return pandas.DataFrame([dict(row) for row in self])

    def __repr__(self) -> str:
        return str(self)


# static forms


def known_blocks(known: Data, labels: Labels) -> list[Block]:
    """Return what is known of a person: what holds, what ended, their conversations, and a summary."""
    who = labels("mem_known_of", who=known["user"])
    when = labels("mem_as_of", at=day(known["at"])) if known["at"] else ""
    holding = [row for row in known["memories"] if not row["ended_at"]]
    heads = columns(
        labels, "mem_section", "mem_content", "mem_from", "mem_who", "mem_since", "mem_version:number", "mem_id:code"
    )
    rows = [
        (
            labels(f"mem_{row['section']}"),
            _content(row, labels),
            source(row, labels),
            author(row["author"], labels),
            day(row["created_at"]),
            str(row["version"]),
            row["id"],
        )
        for row in holding
    ]
    title = " · ".join(filter(None, (who, when, labels("mem_count", n=len(rows)))))
    results: list[Block] = [clipped(title, heads, rows, notes=[] if rows else [labels("mem_nothing")])]
    if ended := [row for row in known["memories"] if row["ended_at"]]:
        heads = columns(labels, "mem_section", "mem_content", "mem_from", "mem_until", "mem_why", "mem_id:code")
        gone = [
            (
                labels(f"mem_{row['section']}"),
                _content(row, labels),
                source(row, labels),
                day(row["ended_at"]),
                row["ended_why"],
                row["id"],
            )
            for row in ended
        ]
        results.append(clipped(labels("mem_ended"), heads, gone, opened=False))
    if talks := known["conversations"]:
        heads = columns(labels, "mem_session", "mem_messages:number", "mem_since")
        words = [(one["session_id"], str(one["messages"]), day(one["created_at"])) for one in talks]
        results.append(clipped(labels("mem_talks", n=len(words)), heads, words, opened=False))
    for summary in known["summaries"]:
        by = " · ".join(
            filter(None, (author(summary["author"], labels), labels("mem_covers", n=summary["covered_message_count"])))
        )
        lines = [((line, ""),) for line in cut(summary["text"], 1_500).splitlines()]
        heading = f"{labels('mem_summary')}{labels('colon')}{summary['session_id']}"
        results.append(Lines((((heading, "strong"),), *lines, ((by, "dim"),))))
    return results


def found_blocks(query: str, rows: Sequence[Row], labels: Labels) -> list[Block]:
    """Return what a search found, best first."""
    heads = columns(labels, ":number", "mem_part", "mem_content", "mem_from", "mem_id:code")
    words = [
        (f"{row['similarity']:.2f}", labels(f"mem_{row['part']}"), row["text"], source(row, labels), row["id"])
        for row in rows
    ]
    return [clipped(labels("mem_found", n=len(words), query=query), heads, words)]


def changes_blocks(changes: Sequence[Row], labels: Labels) -> list[Block]:
    """Return what changed between two moments."""
    heads = columns(labels, "mem_change:status", "mem_before", "mem_after", "mem_why")
    words = [(_change(row, labels), row["before"], row["after"], row["why"]) for row in changes]
    notes = [] if words else [labels("mem_no_change")]
    return [clipped(labels("mem_changes", n=len(words)), heads, words, notes=notes)]


def _change(row: Row, labels: Labels) -> str:
    sign = {"new": "+", "changed": "→", "ended": "−"}[row["change"]]
    return f"{sign} {labels('mem_' + row['change'])}"


def prompt_blocks(parts: Sequence[Row], labels: Labels) -> list[Block]:
    """Return the token map of a prompt, and what was left out of it."""
    total = sum(part["tokens"] for part in parts if part["kept"]) or 1
    rows = []
    for name in ORDER:
        if kept := [part["tokens"] for part in parts if part["part"] == name and part["kept"]]:
            bar = "█" * max(round(_BAR * sum(kept) / total), 1)
            rows.append((labels(f"mem_{name}"), str(len(kept)), f"{sum(kept):,}", bar))
    heads = (*columns(labels, "mem_part", "mem_pieces:number", "mem_tokens:number"), Column("", "bar"))
    results: list[Block] = [clipped(labels("mem_prompt", n=f"{total:,}"), heads, rows)]
    if out := [part for part in parts if not part["kept"]]:
        heads = columns(labels, "mem_part", "mem_content", "mem_from", "mem_tokens:number", "mem_why")
        left = [
            (labels(f"mem_{p['part']}"), p["text"], source(p, labels), str(p["tokens"]), labels(f"mem_why_{p['why']}"))
            for p in out
        ]
        results.append(clipped(labels("mem_left_out", n=len(out)), heads, left))
    return results


def blame_blocks(rows: Sequence[Row], labels: Labels) -> list[Block]:
    """Return which memory probably stood behind which sentence."""
    heads = columns(labels, "mem_sentence", "mem_memory", "mem_from", "mem_how", "mem_id:code")
    words = [
        (
            row["sentence"] or labels("mem_whole"),
            row["text"],
            source(row, labels),
            labels(f"mem_how_{row['how']}", n=f"{row['share']:.0%}"),
            row["id"],
        )
        for row in rows
    ]
    return [clipped(labels("mem_blame"), heads, words, notes=[labels("mem_probably" if words else "mem_no_blame")])]


def source(row: Row, labels: Labels) -> str:
    """Return where something was said: which turn of which conversation, else by hand or on which day."""
    if row.get("turn"):
        words = labels("mem_turn", n=row["turn"])
        return f"{words} · {cut(row['session'], 40)}" if row.get("session") else words
    if row.get("author") == "person":
        return labels("mem_by_hand")
    return day(row.get("at") or row.get("created_at") or "")


def author(name: str, labels: Labels) -> str:
    """Who noted something: the rules, a person, or a model by its name."""
    return labels(f"mem_by_{name}") if name in ("rules", "person", "agent") else name


def day(moment: str) -> str:
    """Return a moment in UTC, to the minute."""
    return moment[:16].replace("T", " ")


def _content(row: Row, labels: Labels) -> str:
    return f"{row['content']} · {labels('mem_pinned')}" if row["pinned"] else str(row["content"])


# on the bench


def panel(
    parts: Sequence[Row], blamed: Sequence[Row], labels: Labels, *, held: Mapping[str, Row], undo: bool = False
) -> Picture:
    """What a run knew, of what its prompt was made, and what stood behind its answer; nothing where it knew nothing.

    Args:
        parts: of ``Run.prompt_parts``.
        blamed: of ``Run.blame``.
        labels: the words.
        held: memories that hold now, by id: these can be corrected, pinned, and said to be over.
        undo: whether something was changed here that can be taken back.
    """
    of_memory = [part for part in parts if part["part"] in _OF_MEMORY]
    if not of_memory and not blamed:
        return Picture()
    kept = [part for part in of_memory if part["kept"]]
    words = labels("mem_panel_told", n=len(kept), tokens=f"{sum(p['tokens'] for p in kept):,}")
    now = [{**row, "kept": True, "why": "", "author": "", "tokens": 0} for row in blamed]
    known = {row["id"]: row for row in [*now, *of_memory]}
    rows = [_recalled(part, labels, held.get(part["id"])) for part in known.values() if part["part"] != "history"]
    tables = page_html([*prompt_blocks(parts, labels), *blame_blocks(blamed, labels)], labels, "wb-worked")
    return Picture(draw("memory.panel", labels, told=words, tables=Markup(tables), rows=rows, undo=undo))


def _recalled(part: Row, labels: Labels, now: Row | None) -> dict[str, Any]:
    """Return one thing that was recalled: from where, whether it was used; and what can be done about it."""
    tokens = labels("mem_of_tokens", n=f"{part['tokens']:,}") if part["tokens"] else ""
    notes = [source(part, labels), author(part["author"], labels), tokens]
    notes += [labels(f"mem_why_{part['why']}")] if part["why"] else []
    if part["part"] == "core":
        notes += [labels("mem_pinned")] if now and now["pinned"] else [] if now else [labels("mem_over")]
    do = [("without", "mem_without")] if part["why"] not in ("left_out", "struck") else []
    if now:
        do += [("correct", "mem_correct"), ("pin", "mem_unpin" if now["pinned"] else "mem_pin")]
        do += [("invalidate", "mem_invalidate")]
    return {"part": part, "notes": " · ".join(filter(None, notes)), "do": do}
